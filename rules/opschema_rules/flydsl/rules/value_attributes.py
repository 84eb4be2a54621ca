"""Attributes that FlyDSL's values do not have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt, quoted
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.suggestions import near_names
from opschema_cli.word_search import MANY
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.dead_code import may_pass
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree, Kind
from opschema_rules.flydsl.operands import LONGEST
from opschema_rules.flydsl.possible_types import own_variables, possible_of
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.rules.tensor_uses import OF_TORCH
from opschema_rules.flydsl.usage import is_meant_to_fail, may_be_absent
from opschema_rules.flydsl.value_classes import ASKING, bodies_with_values, value_classes
from opschema_rules.flydsl.value_table import ENUMERATIONS, NUMERIC, attributes, attributes_of_any

_AXES = frozenset({"x", "y", "z"})
_INDEXES = frozenset({"thread_idx", "block_idx", "block_dim", "grid_dim"})
_OF_INDEXES = _AXES | {"factory", "dtype"}
_BY_AXIS = frozenset({"thread_id", "block_id", "block_dim", "grid_dim"})
_SUBSCRIBED = [f"{index}[" for index in sorted(_INDEXES)]
_WORD = re.compile(r"\w+")
_DOTTED = re.compile(r"\b([A-Za-z_]\w*)\.(\w+)")


@rule("FLY233", "value-attribute", pure=True)
def value_attribute(file: FlyFile) -> Iterator[Diagnostic]:
    """An attribute that a value of FlyDSL does not have.

    What FlyDSL's functions return (`make_tiled_copy()`, `get_slice()`, `Vector.filled()`, `fx.Int32(n)`), and what a launcher
    is passed for a parameter with an annotation of FlyDSL, are values of its own classes. An attribute or a method that their
    class does not have raises `AttributeError` when the function is traced. So do an axis other than `x`, `y` and `z` of
    `fx.thread_idx` and the like, and a member that an enumeration does not have.

    Only values are checked that a variable certainly has, and only attributes that no release from 0.1.8 to 0.5.0 has, nor any
    class of a FlyDSL in the workspace. Names that the file asks about with `hasattr()` or sets itself are left alone.

    Bad:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        tile, layout = fx.make_layout_tv(fx.make_layout(64, 1), fx.make_layout(1, 1))
        copy = fx.make_tiled_copy(atom, layout, tile)
        part = copy.slice(fx.thread_idx.x)
        part.partition(A)
    ```

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor):
        row = fx.block_idx.w
        total = fx.Vector.filled(4, 0.0, fx.Float32)
        A[row] = total.sum()
    ```

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor):
        total = fx.Vector.filled(4, 0.0, fx.Float32)
        A[0] = total.reduce(fx.ReductionOp.SUM)
    ```

    Good:

    ```python
    @flyc.kernel
    def copy(A: fx.Tensor):
        atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
        tile, layout = fx.make_layout_tv(fx.make_layout(64, 1), fx.make_layout(1, 1))
        copy = fx.make_tiled_copy(atom, layout, tile)
        part = copy.get_slice(fx.thread_idx.x)
        part.partition_S(A)
        total = fx.Vector.filled(4, 0.0, fx.Float32)
        if hasattr(total, "sum"):
            A[0] = total.sum()
        total = [1, 2]
        total.sort()
    ```
    """
    tree = file.tree
    for body in bodies_with_values(tree):
        yield from _lacking(tree, body)
    for each in tree.files:
        if tree.bodies.program.module_name(each.path).partition(".")[0] != ROOT:
            yield from _members(tree, each)


def _lacking(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on attributes of the values that a function makes, in it and in nested functions."""
    for inner, owner, word, at in (*_of_variables(tree, body), *_of_results(body)):
        kind = value_classes(tree).of(inner, owner)
        if not kind or word in attributes(kind) or word.startswith("_"):  # tables have no private names
            continue
        if _is_torchs(tree, inner, owner, word) or _may_have(tree, inner, kind, owner, word, at):
            continue
        near = near_names(word, list(attributes(kind)), 1)
        written = excerpt(body.file.text(owner), LONGEST)
        value = "number" if kind == NUMERIC else f"`{kind}`"
        message = f"`{written}` is a FlyDSL {value}, which has no `{word}`: it raises `AttributeError`"
        place = inner.at(Expr("name", at, at + len(word), word))
        yield Diagnostic(message + (f"; did you mean `{near[0]}`?" if near else ""), place)


def _of_variables(tree: FlyTree, body: Body) -> Iterator[tuple[Body, Expr, str, int]]:
    """Yield the attributes of a function's own variables that none of their possible types has, with the function and the place
    of each use.
    """
    suspects = set(_suspects(body))
    for inner in tree.bodies.inside(body) if suspects else ():
        for use in inner.scope.uses:
            if use.start in suspects:
                first, _, rest = use.name.partition(".")
                owner, word = Expr("name", use.start, use.start + len(first), first), rest.partition(".")[0]
                at = body.file.source.text.find(word, owner.end, use.end)
                if word:  # else it is set there
                    yield inner, owner, word, at if at >= 0 else use.start


def _of_results(body: Body) -> Iterator[tuple[Body, Expr, str, int]]:
    """Yield the methods of results of calls and operations that none of the possible types has."""
    for call in body.scope.calls:
        callee = call.items[0]
        kinds = possible_of(body, callee.items[0]) if callee.kind == "attribute" else frozenset[str]()
        if kinds and callee.text not in attributes_of_any(kinds):
            yield body, callee.items[0], callee.text, callee.end - len(callee.text)


def _suspects(body: Body) -> Iterator[int]:
    """Yield the places in a function's text where a variable has an attribute that none of its possible types has."""
    known = own_variables(body)
    for at, name, word in _attributes(body, known):
        if word not in attributes_of_any(known[name]):
            yield at


def _attributes(body: Body, names: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Yield the places in a function's text where one of some names, or a dotted name that ends like it, has an attribute, with
    both.
    """
    text = body.file.source.text
    start, end = body.function.outer if body.function is not None else (0, 0)
    if len(names) > MANY:
        found = _DOTTED.finditer(text, start, end)
        yield from ((match.start(), match[1], match[2]) for match in found if match[1] in names)
        return
    for name in names:
        at, dotted = start, f"{name}."
        while (at := text.find(dotted, at, end)) >= 0:
            word = _WORD.match(text, at + len(dotted))
            if word is not None:
                yield at, name, word[0]
            at += len(dotted)


def _is_torchs(tree: FlyTree, body: Body, owner: Expr, word: str) -> bool:
    """Whether another rule reports an attribute: a torch attribute of a traced function's tensor parameter."""
    binder = body.binder(owner.text) if owner.kind == "name" else None
    traced = tree.traced_of(binder)
    found = traced.parameter(owner.text) if traced is not None else None
    return found is not None and found.kind is Kind.TENSOR and word in OF_TORCH and not tree.contract.own


def _may_have(tree: FlyTree, body: Body, kind: str, owner: Expr, word: str, at: int) -> bool:
    """Whether a value may have an attribute, or its use is never reached."""
    if tree.contract.own and tree.answers.may_have(kind, word):
        return True
    name = Expr("name", owner.start, owner.end, f"{owner.text}.{word}") if owner.kind == "name" else owner
    if tree.words.is_replaced(word) or may_be_another(tree, body, name):
        return True
    if owner.text in _asked(body):
        return True
    return may_pass(tree, body, at) or may_be_absent(tree, body, at, word) or is_meant_to_fail(tree, body)


@cached_on_argument
def _asked(body: Body) -> frozenset[str]:
    """The names whose types a function or an enclosing one tests."""
    calls = (call for call in body.scope.calls if call.callee in ASKING)
    own = frozenset(item.text for call in calls for item in call.positional()[:1])
    return own | _asked(body.parent) if body.parent is not None else own


def _members(tree: FlyTree, each: PythonFile) -> Iterator[Diagnostic]:
    """Yield findings on axes and enumeration members in one file that FlyDSL does not have."""
    uses = tree.words.indexes[each.path].uses
    wrong = {use for use in uses if _absent(use.split("."))}
    for body in tree.bodies.calling(each, _BY_AXIS):
        yield from _axes(tree, body)
    if any(index in each.source.text for index in _SUBSCRIBED):
        for body in tree.bodies.of(each):
            yield from _subscribed(tree, body)
    for body in tree.bodies.of(each) if wrong else ():
        for use in body.scope.uses:
            parts = use.name.split(".") if use.name in wrong else []
            absent = _absent(
                tree.names.full(body, ".".join(parts[: _at(parts) + 1])).split(".") + parts[_at(parts) + 1 :]
            )
            if parts and absent and not _may_be_there(tree, body, Expr("name", use.start, use.end, use.name), *absent):
                yield Diagnostic(_no_member(*absent), body.at(use.span))


def _subscribed(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on subscripts of `thread_idx` and similar names, which only have attributes."""
    for item in all_statements(body.statements):
        for expr in own_expressions(item):
            owner = expr.items[0] if expr.kind == "subscript" else None
            word = owner.text.rpartition(".")[2] if owner is not None and owner.kind == "name" else ""
            if owner is None or word not in _INDEXES or tree.names.full(body, owner.text).rpartition(".")[2] != word:
                continue
            if not _may_be_there(tree, body, owner, word, "__getitem__"):
                message = f"`{word}` has no items: it raises `TypeError`; its axes are `x`, `y` and `z`"
                yield Diagnostic(message, body.at(expr))


def _at(parts: list[str]) -> int:
    """Return the index of the enumeration or grid index among the words of a name."""
    return next((at for at, part in enumerate(parts) if part in _INDEXES or part in ENUMERATIONS), len(parts))


def _absent(parts: list[str]) -> tuple[str, str] | None:
    """Return the enumeration or grid index in a dotted name, and the member that it does not have."""
    at = _at(parts)
    if at + 1 >= len(parts):
        return None
    holder, word = parts[at], parts[at + 1]
    if holder in _INDEXES:
        return (holder, word) if word not in _OF_INDEXES and not word.startswith("_") else None
    return (holder, word) if word not in ENUMERATIONS[holder] and word[:1].isupper() else None


def _no_member(holder: str, word: str) -> str:
    if holder in _INDEXES:
        return f"`{holder}` has no `{word}`: it raises `AttributeError`; its axes are `x`, `y` and `z`"
    near = near_names(word, sorted(ENUMERATIONS[holder]), 1) or sorted(ENUMERATIONS[holder])
    kept = "did you mean `" + near[0] + "`?" if len(near) == 1 else "it has " + quoted(near)
    return f"`{holder}` has no `{word}`: it raises `AttributeError`; {kept}"


def _axes(tree: FlyTree, body: Body) -> Iterator[Diagnostic]:
    """Yield findings on calls of `thread_id()` and similar functions with an unknown axis."""
    for call in body.scope.calls:
        word = call.callee.rpartition(".")[2]
        axis = call.items[1] if word in _BY_AXIS and call.keywords == ("",) else None
        if axis is None or axis.kind != "const" or axis.value in _AXES or not isinstance(axis.value, str):
            continue
        if tree.names.called(body, call) == word and not _may_be_there(tree, body, call.items[0], "Tuple3D", word):
            yield Diagnostic(f"`{word}` has the axes `x`, `y` and `z`: it raises", body.at(axis))


def _may_be_there(tree: FlyTree, body: Body, name: Expr, holder: str, word: str) -> bool:
    """Whether a name may have another meaning, or its use is never reached."""
    kind = "Tuple3D" if holder in _INDEXES else holder
    if may_be_another(tree, body, name) or (tree.contract.own and tree.answers.may_have(kind, word)):
        return True
    at = name.start
    return may_pass(tree, body, at) or may_be_absent(tree, body, at, word) or is_meant_to_fail(tree, body)

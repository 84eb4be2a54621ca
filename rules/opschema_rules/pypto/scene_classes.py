"""Classes of scene tests: their decorator, their cases, and what their functions read from these."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.python import LEAVING, Class, Expr, Function, PythonFile, Statement

BASE, DECORATOR, BUILDER = "SceneTestCase", "scene_test", "TaskArgsBuilder"
ARGUMENTS = frozenset({"TensorArg", "Scalar"})

_EXPECTS_ERROR = ("raises", "assertRaises", "xfail", "monkeypatch")
"""Words in files whose tests may be wrong on purpose."""

_COMMENT = re.compile(r"(?m)(?<=\s)#[^\n\"']*$")

_ADDED = re.compile(r"""\b(TensorArg|Scalar)\(\s*["'](\w+)["']""")
_STOPS = ("try", "match", "for", "while", "with", "def", "class", "global", "nonlocal", "import", "other")
_NOT_RETURNING = frozenset({"skip", "skipTest", "fail", "importorskip", "exit"})
_LATER = frozenset({"lambda", "listcomp", "setcomp", "dictcomp", "generator", "other"})
"""Expression kinds whose parts may not be evaluated."""


class Case(msgspec.Struct, frozen=True):
    """A case: its dict, and its fields with key and value."""

    expr: Expr
    fields: dict[str, tuple[Expr, Expr]]

    @property
    def title(self) -> str:
        """Its name in messages."""
        name = self.fields["name"][1].value if "name" in self.fields else None
        return f"case `{name}`" if isinstance(name, str) else "a case"


def expects_error(text: str) -> bool:
    """Whether code or strings of a file mention expected errors; comments do not count."""
    if not any(word in text for word in _EXPECTS_ERROR):
        return False
    code = _COMMENT.sub("", text)
    return any(word in code for word in _EXPECTS_ERROR)


@cached_on_argument
def harness_names(file: PythonFile) -> frozenset[str]:
    """Return the names that a file imports from simpler's test harness and never rebinds; empty if its code expects errors."""
    if expects_error(file.source.text):
        return frozenset()
    body = file.body
    bound = Counter([item.name for item in body.imports] + [item.target for item in body.assigns])
    bound.update([item.name for item in body.classes] + [item.name for item in body.functions])
    return frozenset(
        item.name
        for item in file.body.imports
        if item.module.partition(".")[0] == "simpler_setup"
        and item.name == item.attr
        and not item.guarded
        and bound[item.name] == 1
    )


def decorator_of(file: PythonFile, cls: Class) -> Expr | None:
    """Return the ``@scene_test(...)`` of a class."""
    names = harness_names(file)
    found = [item for item in cls.decorators if item.kind == "call" and item.callee == DECORATOR]
    return found[0] if len(found) == 1 and DECORATOR in names and cls.sure else None


def is_plain(file: PythonFile, cls: Class) -> bool:
    """Whether the harness runs a class unchanged as a test: its only base is the harness's class, and it is not skipped."""
    bases = [item.text for item in cls.bases]
    decorators = [item.callee or item.text for item in cls.decorators]
    is_skipped = any("skip" in name.lower() for name in decorators) or "__test__" in file.source.text
    return bases == [BASE] and BASE in harness_names(file) and cls.name.startswith("Test") and not is_skipped


def cases_of(cls: Class) -> list[Case] | None:
    """Return the cases of a class; None if not all of them are written as dicts."""
    assigned = [item for item in cls.body.assigns if item.target == "CASES"]
    value = assigned[0].value if len(assigned) == 1 and assigned[0].sure else None
    if value is None or value.kind != "list":
        return None
    found = [_case(item) for item in value.items]
    known = [item for item in found if item is not None]
    return known if len(known) == len(found) else None


def _case(expr: Expr) -> Case | None:
    fields = written_fields(expr)
    return Case(expr, fields) if fields is not None else None


def written_fields(expr: Expr) -> dict[str, tuple[Expr, Expr]] | None:
    """The fields of a dict whose keys are all strings; None of anything else."""
    keys = expr.items[::2]
    if expr.kind != "dict" or not all(key.kind == "const" and isinstance(key.value, str) for key in keys):
        return None
    return {str(key.value): (key, value) for key, value in zip(keys, expr.items[1::2], strict=True)}


class BuiltArgument(msgspec.Struct, frozen=True):
    """An argument that a test adds when it makes a ``TaskArgsBuilder(...)``: its name, empty where that is not known."""

    name: str
    is_scalar: bool
    expr: Expr


def built_arguments(file: PythonFile, cls: Class, members: Collection[str]) -> Iterator[list[BuiltArgument]]:
    """The arguments of each builder that ``generate_args()`` of a class makes, up to the first one that is not known; none where
    the names of all are different and not among ``members``, and each scalar stands behind all tensors.
    """
    names = harness_names(file)
    for function in cls.body.functions if BUILDER in names else ():
        if function.name != "generate_args" or _are_plain(file.source.text, function, members):
            continue
        for call in function.body.calls:
            if call.callee == BUILDER:
                found = [_built(names, item) for item in call.positional()]
                known = found.index(None) if None in found else len(found)
                yield [item for item in found[:known] if item is not None]


def _are_plain(text: str, function: Function, members: Collection[str]) -> bool:
    """Whether the arguments in the text of a function are surely right, whichever of them go to one builder."""
    found = _ADDED.findall(text, function.start, function.outer.end)
    kinds, names = [kind for kind, _ in found], {name for _, name in found}
    return kinds == sorted(kinds, reverse=True) and len(names) == len(found) and names.isdisjoint(members)


def _built(names: frozenset[str], expr: Expr) -> BuiltArgument | None:
    first = next(iter(expr.positional()), None) if expr.callee in names else None
    if first is None or expr.callee not in ARGUMENTS:
        return None
    name = first.value if isinstance(first.value, str) else ""
    return BuiltArgument(name, expr.callee == "Scalar", expr)


def sure_reads(function: Function, name: str) -> Iterator[tuple[str, Expr]]:
    """The items that a function surely reads of a mapping that it gets under a name, by constant keys (``params["n"]``)."""
    for expr in _sure(function.statements):
        yield from ((str(item.items[1].value), item) for item in _evaluated(expr) if is_item(item, name))


def is_item(expr: Expr, name: str) -> bool:
    """Whether an expression is an item of a name by a constant string."""
    if expr.kind != "subscript" or len(expr.items) != 2 or expr.items[0].text != name:
        return False
    return expr.items[1].kind == "const" and isinstance(expr.items[1].value, str)


def _sure(statements: Iterable[Statement]) -> Iterator[Expr]:
    """The expressions that a block surely evaluates, up to the first statement after which nothing is sure."""
    for item in statements:
        if item.kind in _STOPS:
            return
        if item.kind == "if":
            yield item.exprs[0]
            if any(_leaves(block) for block in item.blocks):
                return
        elif item.kind in ("assign", "annassign"):
            yield item.exprs[-1]
        elif item.kind == "assert":
            yield item.exprs[0]
        else:
            yield from item.exprs
        if item.kind in LEAVING:
            return


def _leaves(statements: Iterable[Statement]) -> bool:
    return any(
        item.kind in LEAVING
        or any(_leaves(block) for block in item.blocks)
        or any((expr.callee or "").rpartition(".")[2] in _NOT_RETURNING for expr in item.exprs if expr.kind == "call")
        for item in statements
    )


def _evaluated(expr: Expr) -> Iterator[Expr]:
    if expr.kind in _LATER:
        return
    yield expr
    first_only = expr.kind in ("boolop", "ifexp", "compare")
    for item in expr.items[: 2 if expr.kind == "compare" else 1] if first_only else expr.items:
        yield from _evaluated(item)

"""Uses of renamed FlyDSL names in a tree."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import libcst as cst
import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Import, PythonFile, Use
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Place, Span, SpanSet
from opschema_rules.flydsl.api_guards import names_version
from opschema_rules.flydsl.api_renames import Renamed
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.model import FlyTree

_TENSOR = frozenset({"torch.Tensor", "torch.nn.Parameter"})


class ApiUse(msgspec.Struct, frozen=True):
    """A use of a renamed name: the place of its last word, and the other places that change with it.

    ``imported`` is the import, where that binds the word: ``reads`` are then what reads it. ``chosen`` is whether the code
    around chooses between the names: it is for another FlyDSL.
    """

    row: Renamed
    path: str
    word: Span
    reads: tuple[Span, ...] = ()
    imported: Import | None = None
    chosen: bool = False

    @property
    def place(self) -> Place:
        """The place of the word."""
        return Place(self.path, self.word)


def api_uses(tree: FlyTree, file: PythonFile, rows: Iterable[Renamed]) -> Iterator[ApiUse]:
    """Yield the uses of names in a file outside FlyDSL itself."""
    known = {row.old: row for row in rows if not row.is_method and row.word in file.source.text}
    reads: dict[tuple[str, str], list[tuple[Body, Use]]] = {}
    for row, at, body, use in _reads(tree, file, known) if known else ():
        words = use.name.split(".")
        if at == 0:
            reads.setdefault((row.word, words[0]), []).append((body, use))
        elif words[at] == row.word and _means(tree, row, [(body, use)]):
            span = _word(file, use, at)
            if span is not None:
                yield ApiUse(row, file.path, span, chosen=_is_chosen(tree, row, body, span.start))
    for row, body, item in _imports(tree, file, known) if known else ():
        found = reads.get((row.word, item.name), [])
        span = _imported_word(file, item)
        if span is not None and _means(tree, row, found):
            plain = item.name == item.attr
            spans = tuple(Span(use.start, use.start + len(item.name)) for _, use in found) if plain else ()
            yield ApiUse(row, file.path, span, spans, item, _is_chosen(tree, row, body, span.start))


def _is_chosen(tree: FlyTree, row: Renamed, body: Body, at: int) -> bool:
    """Whether a place is for some releases only, or is guarded (by an `if` or `try`) together with a use of the new name."""
    for outer in body.outward():
        guarded, with_new = _guarded(outer, row.new_word)
        if at in guarded and any(not span.start <= at < span.end for span in with_new):
            return True
    return names_version(tree, body, at)


@lru_cache(maxsize=256)
def _guarded(body: Body, word: str) -> tuple[SpanSet, list[Span]]:
    """Return the guarded stretches of a body, and those that contain a word."""
    spans, places = body.scope.guarded, _places(body.file.source.text, word)
    return SpanSet(spans), [span for span in spans if _next_place(places, span.start) < span.end] if places else []


@lru_cache(maxsize=16)
def _places(text: str, word: str) -> list[int]:
    return [match.start() for match in re.finditer(rf"\b{re.escape(word)}\b", text)]


def _next_place(places: list[int], at: int) -> float:
    """Return the first of sorted places at or after one; infinity if there is none."""
    index = bisect.bisect_left(places, at)
    return places[index] if index < len(places) else math.inf


def _reads(tree: FlyTree, file: PythonFile, known: dict[str, Renamed]) -> Iterator[tuple[Renamed, int, Body, Use]]:
    """Yield the reads of a name, each with the index of its word in the dotted name."""
    for body in tree.bodies.of(file):
        for use in body.scope.uses:
            words = use.name.split(".")
            for at in range(len(words)):
                row = known.get(tree.names.full(body, ".".join(words[: at + 1])))
                if row is not None:
                    yield row, at, body, use


def _imports(tree: FlyTree, file: PythonFile, known: dict[str, Renamed]) -> Iterator[tuple[Renamed, Body, Import]]:
    for body in tree.bodies.of(file):
        for item in body.scope.imports:
            row = _imported(tree, file, body, item, known)
            if row is not None and item.attr == row.word:
                yield row, body, item


def _imported(tree: FlyTree, file: PythonFile, body: Body, item: Import, known: dict[str, Renamed]) -> Renamed | None:
    """Return the renamed name that an import refers to."""
    module = tree.bodies.program.absolute_module(file, item)
    if not item.attr or module is None:
        return None
    return known.get(f"{module}.{item.attr}") or known.get(tree.names.full(body, item.name))


def _word(file: PythonFile, use: Use, at: int) -> Span | None:
    """Return the place of a word of a dotted name; None if there is white space around the dots."""
    words = use.name.split(".")
    start = use.start + sum(len(word) + 1 for word in words[:at])
    return Span(start, start + len(words[at])) if file.text(use.span) == use.name else None


def _imported_word(file: PythonFile, item: Import) -> Span | None:
    """Return the place of the imported name in an import."""
    text = file.text(item.span)
    return Span(item.start, item.start + len(item.attr)) if text.startswith(item.attr) else None


def _means(tree: FlyTree, row: Renamed, reads: list[tuple[Body, Use]]) -> bool:
    """Whether a name is to be renamed. If the old and the new name coexist, all reads must be calls that the new one certainly
    accepts.
    """
    if not row.tensors or Era.CURRENT not in tree.contract.eras or not tree.contract.source:
        return True
    calls = [next((call for call in body.scope.calls if call.items[0].span == use.span), None) for body, use in reads]
    given = [(body, _first(call)) for (body, _), call in zip(reads, calls, strict=True) if call is not None]
    return len(given) == len(reads) > 0 and all(
        value is not None and is_torch(tree, body, value) for body, value in given
    )


def _first(call: Expr) -> Expr | None:
    given = call.positional()
    return given[0] if given else call.keyword("tensor")


def is_torch(tree: FlyTree, body: Body, expr: Expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is certainly a torch tensor, assuming that the names in ``seen`` are."""
    if expr.kind == "call":
        callee = expr.items[0]
        name = tree.bodies.external(body, expr.callee)
        if name.startswith("torch."):
            return name.count(".") == 1 and name.rpartition(".")[2] in _MAKERS
        if callee.kind == "attribute":
            return callee.text in _METHODS and is_torch(tree, body, callee.items[0], seen)
        owner, _, method = expr.callee.rpartition(".")
        inner = Expr("name", callee.start, callee.start + len(owner), owner)
        return method in _METHODS and bool(owner) and is_torch(tree, body, inner, seen)
    if expr.kind == "subscript":
        return is_torch(tree, body, expr.items[0], seen)
    if expr.kind != "name" or "." in expr.text or expr.text in seen:
        return expr.text in seen
    binder = body.binder(expr.text) or tree.bodies.module(body.file)
    param = next((item for item in binder.params if item.name == expr.text), None)
    annotation = param.annotation if param is not None else None
    if annotation is not None and not any(item.target == expr.text for item in binder.scope.assigns):
        return annotation.kind == "name" and tree.bodies.external(binder.parent or binder, annotation.text) in _TENSOR
    values = binder.values(expr.text)
    return bool(values) and all(is_torch(tree, binder, value, seen | {expr.text}) for value in values or ())


_MAKERS = frozenset(
    {"empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "empty_like", "zeros_like"}
    | {"ones_like", "full_like", "rand_like", "randn_like", "linspace", "eye", "cat", "stack", "as_tensor"}
)
_METHODS = frozenset(
    {"cuda", "cpu", "to", "contiguous", "clone", "detach", "view", "reshape", "flatten", "t", "transpose", "permute"}
    | {
        "half",
        "float",
        "bfloat16",
        "double",
        "int",
        "long",
        "unsqueeze",
        "squeeze",
        "expand",
        "requires_grad_",
        "fill_",
    }
)


def method_uses(tree: PythonTree, path: str, row: Renamed) -> Iterator[ApiUse]:
    """Yield the places where a file defines or reads a renamed method, or has its name as a string."""
    for attribute in tree.attributes(row.word):
        yield ApiUse(row, path, tree.span(attribute.attr))
    for name in tree.names(row.word):
        if isinstance(tree.parent(name), cst.FunctionDef | cst.AssignTarget | cst.AnnAssign):
            yield ApiUse(row, path, tree.span(name))
    for text in tree.strings(row.word):
        start, end = tree.span(text)
        quote = len(text.quote)
        yield ApiUse(row, path, Span(start + len(text.prefix) + quote, end - quote))

"""The names that a tree's own code generator lets formulas use, read from the code that checks them.

A generator keeps the names that a formula may use in a set: ``set(inputs) | set(params)``, then ``names.add("elem_bytes")``,
``names.update(HELPERS)``. Such a set is read here part by part. Where one part is not understood, nothing is said of the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_rules.tileops.conditions import is_nothing

BYTES = "elem_bytes"
"""The name that every formula knows, so every set of names contains it."""

MAX_NAMES = 1000
"""Maximum number of names to follow in one function: a generator has a dozen."""

_WORDS = (BYTES, "roofline", "flops", "inputs", "params")
_COPIES = frozenset({"set", "list", "tuple", "frozenset", "sorted", "dict", "iter"})


class FormulaNames(msgspec.Struct, frozen=True):
    """Names that formulas of one layer may use: those that ``sections`` of a signature declare, and some ``names``."""

    place: Place
    sections: frozenset[str]
    names: frozenset[str]


class GeneratorNames(msgspec.Struct, frozen=True):
    """The names that the generator allows in ``vars``, ``flops`` and ``bytes``; None if it is not understood."""

    variables: FormulaNames | None = None
    arithmetic: FormulaNames | None = None

    def of_layer(self, layer: str) -> FormulaNames | None:
        """The names of one layer."""
        return self.variables if layer == "vars" else self.arithmetic


@lru_cache(maxsize=2)
def generator_names(bodies: Bodies) -> GeneratorNames:
    """Names that the generator of a package lets formulas use; unknown where several differ."""
    found = [names for body in _generators(bodies) for names in _sets(body)]
    variables = {item for item in found if "inputs" in item.sections}
    arithmetic = {item for item in found if "inputs" not in item.sections}
    return GeneratorNames(_only(variables), _only(arithmetic))


def _only(found: set[FormulaNames]) -> FormulaNames | None:
    return next(iter(found)) if len(found) == 1 else None


def _generators(bodies: Bodies) -> Iterator[Body]:
    for file in bodies.files:
        if all(word in file.source.text for word in _WORDS):
            yield from (body for body in bodies.of(file) if body.function is not None and BYTES in body.scope.strings)


def _sets(body: Body) -> Iterator[FormulaNames]:
    """The sets of names that a function makes."""
    reader = _Reader()
    for name, added in reader.added(body).items():
        found = reader.of_name(body, name, MAX_CALLS) if any(map(_is_bytes, added)) else None
        place = next((item.span for item in body.scope.assigns if item.target == name), None)
        if found is not None and place is not None:
            sections = frozenset(text for kind, text in found if kind == "section")
            names = frozenset(text for kind, text in found if kind == "name")
            yield FormulaNames(body.at(place), sections, names)


def _is_bytes(expr: Expr) -> bool:
    return any(item.value == BYTES for item in expr.walk())


def _added(body: Body) -> dict[str, list[Expr]]:
    """The values that a body assigns to each of its names, and those that methods put into the set that a name is."""
    found: dict[str, list[Expr]] = {}
    for assign in body.scope.assigns:
        if assign.value is not None and "." not in assign.target:
            found.setdefault(assign.target, []).append(assign.value)
    for call in body.scope.calls:
        name, _, method = call.callee.partition(".")
        if method in ("add", "update") and name in found:
            found[name] += call.items[1:]
    return found


_Part = tuple[str, str]


class _Reader:
    """Reads expressions of collections as the names in them: parts ``("section", "inputs")`` or ``("name", "x")``."""

    def __init__(self) -> None:
        self.open: set[tuple[Body, str]] = set()
        self.steps = 0
        self._added: dict[Body, dict[str, list[Expr]]] = {}

    def added(self, body: Body) -> dict[str, list[Expr]]:
        """The parts of each collection that a body makes."""
        if body not in self._added:
            self._added[body] = _added(body)
        return self._added[body]

    def of_name(self, body: Body, name: str, hops: int) -> set[_Part] | None:
        """The names in a collection that is called ``name``; None if they are not known."""
        binder = body.binder(name) or _module(body)
        self.steps += 1
        if hops == 0 or self.steps > MAX_NAMES:
            return None
        if (binder, name) in self.open:
            return set()
        loops = [loop for loop in binder.scope.loops if name in loop.targets]
        if loops:
            keys = all(loop.targets[0] == name for loop in loops)
            return self._all(binder, [loop.iterable for loop in loops], hops - 1) if keys else None
        if binder.values(name) is None or not binder.binds(name):
            return None
        self.open.add((binder, name))
        found = self._all(binder, self.added(binder).get(name, []), hops - 1)
        self.open.discard((binder, name))
        return found

    def _all(self, body: Body, exprs: list[Expr], hops: int) -> set[_Part] | None:
        found = [self.of(body, expr, hops) for expr in exprs]
        return None if None in found else set[_Part]().union(*(item for item in found if item is not None))

    def of(self, body: Body, expr: Expr, hops: int) -> set[_Part] | None:
        """The names in a collection."""
        if is_nothing(expr):
            return set()
        if expr.kind == "const":
            return {("name", expr.value)} if isinstance(expr.value, str) else None
        if expr.kind == "name" and "." not in expr.text:
            return self.of_name(body, expr.text, hops)
        section = _section(expr)
        if section:
            return {("section", section)}
        parts = _parts(expr)
        return self._all(body, parts, hops) if parts is not None else None


def _parts(expr: Expr) -> list[Expr] | None:
    """Return the collections, or the elements, that a collection is made from; None for anything but a collection."""
    if expr.kind in ("binary", "boolop") and expr.text in ("|", "or"):
        return list(expr.items)
    if expr.kind in ("set", "list", "tuple", "starred"):
        return list(expr.items)
    if expr.kind == "dict":
        return [item if item.kind != "absent" else expr.items[2 * at + 1] for at, item in enumerate(expr.items[::2])]
    if expr.kind == "ifexp":
        return list(expr.items[1:])
    if expr.kind in ("setcomp", "listcomp", "generator") and len(expr.items) == 2:
        element, clause = expr.items
        target = clause.items[0].items[0] if clause.items[0].kind == "tuple" else clause.items[0]
        return [clause.items[1]] if element.kind == "name" and element.text == target.text else None
    if expr.kind != "call":
        return None
    if expr.callee in _COPIES:
        return list(expr.items[1:2])
    owner = expr.items[0].owner
    return [owner] if owner is not None and expr.items[0].member in ("keys", "items", "copy") else None


def _section(expr: Expr) -> str:
    """The key of a mapping that an expression reads: ``inputs`` of ``signature.get("inputs")``."""
    reads = len(expr.items) > 1 and (
        expr.kind == "subscript" or (expr.kind == "call" and expr.items[0].member == "get")
    )
    key = expr.items[1].value if reads else None
    return key if isinstance(key, str) else ""


def _module(body: Body) -> Body:
    return next(outer for outer in body.outward() if outer.parent is None)

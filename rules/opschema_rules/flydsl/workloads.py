"""Workloads: the numbers that the tree's code passes to launchers, in loops, parametrized tests and callers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice, product

import msgspec

from opschema_cli.evaluation.statements import is_variable, names_read
from opschema_cli.source.bodies import Body, arguments_for
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.alternatives import rows
from opschema_rules.flydsl.model import Call, FlyTree, Kind
from opschema_rules.flydsl.tensors import number, shape_of, value_of

_MOST = 64
_DEEPEST = 12
_HOPS = 2
_BITS = 200
"""Maximum number of bits of a number."""

Numbers = Mapping[str, int]


class Workload(msgspec.Struct, frozen=True):
    """The numbers that one call passes to a launcher's parameters, and the parameters among them that are sizes of tensors."""

    call: Call
    numbers: Mapping[str, int]
    sizes: frozenset[str]


def workloads(tree: FlyTree, call: Call) -> Iterator[Workload]:
    """Yield the workloads of a call of a launcher, each once."""
    reader = _Reader(tree, call.body)
    numbers = {item.name for item in call.target.call_parameters if item.kind in (Kind.NUMBER, Kind.CONSTEXPR)}
    if not numbers or call.unpacks:
        return
    bound = arguments_for(call.expr, [item.param for item in call.target.call_parameters])
    given = {name: expr for name, expr in bound.items() if name in numbers and _is_countable(expr)}
    if reader.is_guarded(call.expr):
        return
    seen: list[dict[str, int]] = []
    for known in reader.rows(given.values()):
        values = {name: reader.value(expr, known) for name, expr in given.items()}
        passed = {name: value for name, value in values.items() if value is not None}
        if passed and passed not in seen:
            seen.append(passed)
            sizes = frozenset(name for name in passed if reader.is_size(given[name]))
            yield Workload(call, passed, sizes)


def _is_countable(expr: Expr) -> bool:
    return expr.kind in ("const", "name", "unary", "binary", "call", "subscript")


class _Reader:
    """Reads the numbers of one body."""

    def __init__(self, tree: FlyTree, body: Body, hops: int = _HOPS) -> None:
        self.tree = tree
        self.body = body
        self.hops = hops
        self._constants: dict[str, int | None] = {}
        self._passed: dict[frozenset[str], list[Numbers]] = {}

    def rows(self, exprs: Iterable[Expr]) -> Iterator[Numbers]:
        """Yield the values that the names in expressions may have at the same time."""
        groups: dict[tuple[str, ...], list[Numbers]] = {}
        free = self._free(exprs)
        for name in sorted(free):
            if not any(name in group for group in groups):
                found = self._rows_of(name, free)
                groups[tuple(found[0]) if found else (name,)] = found
        known = [group for group in groups.values() if group]
        for parts in islice(product(*known), _MOST):
            yield {name: value for part in parts for name, value in part.items()}

    def _free(self, exprs: Iterable[Expr]) -> set[str]:
        """Return the names that expressions depend on, through variables that are assigned once."""
        found: set[str] = set()
        waiting, left = list(names_read(exprs)), _MOST
        while waiting and left:
            name, left = waiting.pop(), left - 1
            if name in found:
                continue
            found.add(name)
            value = value_of(self.tree, self.body, name)
            value = value if value is not None else self._unpacked(name)
            waiting += names_read([value]) if value is not None else []
        return found

    def is_guarded(self, call: Expr) -> bool:
        """Whether a condition before or around a call names a passed value, or a value that it depends on."""
        names = {name.partition(".")[0] for name in self._free(call.items[1:])}
        tests = (item.expr for item in self.body.scope.conditions if item.expr.start < call.end)
        return any(not names.isdisjoint(name.partition(".")[0] for name in names_read([test])) for test in tests)

    def _unpacked(self, name: str) -> Expr | None:
        """Return the unpacked size, such as ``t.shape[1]`` for the second target, if a variable is assigned once from all sizes of
        a tensor.
        """
        values = [item for item in self.body.scope.assigns if item.target == name]
        found = [item for item in self.body.scope.unpacks if name in item.targets and not item.starred]
        taken = name in self.body.scope.deleted or any(item.name == name for item in self.body.params)
        if len(values) != 1 or len(found) != 1 or taken:
            return None
        shape, at = found[0].value, found[0].targets.index(name)
        if shape.kind == "call" and len(shape.items) == 1:
            shape = shape.items[0]
        holder, _, method = shape.text.rpartition(".")
        if shape.kind != "name" or method not in ("shape", "size") or not holder:
            return None
        sized = Expr("name", shape.start, shape.end, f"{holder}.shape")
        return Expr(
            "subscript", shape.start, shape.end, "", None, (sized, Expr("const", shape.start, shape.end, "", at))
        )

    def _rows_of(self, name: str, free: set[str]) -> list[Numbers]:
        written = rows(self.tree, self.body, name)
        if written:
            return [
                {each: value for each, (at, expr) in row.items() if (value := number(self.tree, at, expr)) is not None}
                for row in written
            ]
        return self._of_callers(frozenset(free)) if any(item.name == name for item in self.body.params) else []

    def _of_callers(self, names: frozenset[str]) -> list[Numbers]:
        """Return the numbers that callers of the function pass for some of its parameters."""
        if names not in self._passed:
            self._passed[names] = self._find_passed(names) if self.hops else []
        return self._passed[names]

    def _find_passed(self, names: frozenset[str]) -> list[Numbers]:
        found: list[Numbers] = []
        for body, call in self.tree.bodies.calls_of(self.body)[:_MOST]:
            reader = _Reader(self.tree, body, self.hops - 1)
            if reader.is_guarded(call):
                continue
            bound = arguments_for(call, self.body.params)
            given = {name: expr for name, expr in bound.items() if name in names and _is_countable(expr)}
            for known in reader.rows(given.values()):
                values = {name: reader.value(expr, known) for name, expr in given.items()}
                found.append({name: value for name, value in values.items() if value is not None})
        return [item for item in found if item][:_MOST]

    def value(self, expr: Expr, known: Numbers, depth: int = _DEEPEST) -> int | None:
        """Return the integer value of an expression, given the values of names."""
        if depth <= 0:
            return None
        if is_variable(expr) and expr.text in known:
            return known[expr.text]
        if expr.kind == "binary":
            left, right = (self.value(item, known, depth - 1) for item in expr.items)
            return computed(expr.text, left, right) if left is not None and right is not None else None
        if is_variable(expr):
            value = value_of(self.tree, self.body, expr.text)
            value = value if value is not None else self._unpacked(expr.text)
            local = value is not None and (self.body.binder(expr.text) is self.body or self.body.function is None)
            return self.value(value, known, depth - 1) if value is not None and local else self._constant(expr)
        extent = self._extent(expr, known, depth)
        return extent if extent is not None else number(self.tree, self.body, expr)

    def _constant(self, expr: Expr) -> int | None:
        if expr.text not in self._constants:
            self._constants[expr.text] = number(self.tree, self.body, expr)
        return self._constants[expr.text]

    def _extent(self, expr: Expr, known: Numbers, depth: int) -> int | None:
        """Return a size, a stride or the number of elements of a tensor with a known shape."""
        owner = _owner(expr)
        shape = shape_of(self.tree, self.body, owner) if owner is not None else None
        if shape is None or shape[0] is not self.body:
            return None
        sizes = [self.value(item, known, depth - 1) for item in shape[1]]
        dims = [
            number(self.tree, self.body, item)
            for item in (expr.items[1:] if expr.kind in ("subscript", "call") else ())
        ]
        total = 1
        if dims and dims[0] is not None and -len(sizes) <= dims[0] < len(sizes):
            if not _is_stride(expr):
                return sizes[dims[0]]
            sizes, dims = sizes[dims[0] % len(sizes) + 1 :], []
        for size in sizes if not dims else [None]:
            if size is None:
                return None
            total *= size
        return total

    def is_size(self, expr: Expr) -> bool:
        """Whether an expression is a size of a tensor, or is computed from names by which the body's tensors are created."""
        if _owner(expr) is not None:
            return True
        names = set(names_read([expr]))
        return bool(names) and all(name in self._making or self._unpacked(name) is not None for name in names)

    @cached_property
    def _making(self) -> set[str]:
        """The names used to create tensors."""
        calls = [call for call in self.body.scope.calls if "." in call.callee and len(call.items) > 1]
        made = (call for call in calls if self.tree.names.external(self.body, call.callee).startswith("torch."))
        return self._free(item for call in made for item in call.items[1:])


def _owner(expr: Expr) -> Expr | None:
    """Return the tensor in ``t.shape[0]``, ``t.size(0)``, ``t.stride(0)`` and ``t.numel()``."""
    head = expr.items[0] if expr.kind in ("subscript", "call") else None
    if head is None or head.kind != "name":
        return None
    name, _, method = head.text.rpartition(".")
    sized = (method == "shape" and expr.kind == "subscript") or (
        method in ("size", "stride", "numel") and expr.kind == "call"
    )
    return Expr("name", head.start, head.start + len(name), name) if sized and name and "." not in name else None


def _is_stride(expr: Expr) -> bool:
    return expr.callee.endswith(".stride")


def computed(operator: str, left: int, right: int) -> int | None:
    """Return the result of integer arithmetic; None if it is undefined or too large."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right if left.bit_length() + right.bit_length() < _BITS else None
        case "//":
            return left // right if right else None
        case "%":
            return left % right if right else None
        case "**":
            return left**right if 0 <= right * left.bit_length() < _BITS and right < _BITS else None
        case "<<":
            return left << right if 0 <= right < _BITS else None
    return None

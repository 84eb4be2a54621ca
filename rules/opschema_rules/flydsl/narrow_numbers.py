"""32-bit numbers in launchers and kernels, and their values under a workload."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable, own_expressions, sure_expressions, targets
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import LEAVING, Expr, Statement
from opschema_cli.source.text import Span
from opschema_rules.flydsl.device_values import DEEPEST, DeviceValues, device_values, statements_of, stays_python
from opschema_rules.flydsl.gpu_blocks import is_gpu_loop
from opschema_rules.flydsl.model import FlyTree, Traced
from opschema_rules.flydsl.needs import is_const_expr
from opschema_rules.flydsl.number_types import I32, I32_MAX, I64, NumberTypes
from opschema_rules.flydsl.tensors import number
from opschema_rules.flydsl.usage import is_unsure
from opschema_rules.flydsl.workloads import Workload, computed

U32_MAX = 2**32 - 1
_SMALL = 2**16
"""The largest product of all sizes for which no overflow is expected, even with constants and indices."""
_AXES = ("x", "y", "z")
_GROWING = frozenset({"+", "*", "<<"})
_LOOP = "loop."
_REDUCING = frozenset({"&", "^", "%", "&=", "^=", "%="})
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Overflow(msgspec.Struct, frozen=True):
    """A 32-bit expression whose value under a workload, or largest value there, needs more bits."""

    traced: Traced
    body: Body
    expr: Expr
    value: int
    workload: Workload


class _Frame(msgspec.Struct, frozen=True):
    """A traced function with the values of its parameters, the largest block and thread indices, and the numbers of blocks and
    threads.
    """

    traced: Traced
    numbers: Mapping[str, int]
    sizes: frozenset[str]
    indices: Mapping[str, int]


def overflows(tree: FlyTree, found: Iterable[Workload]) -> Iterator[Overflow]:
    """Yield the expressions that overflow with these workloads, each with the first workload that shows it and is known to be
    passed.
    """
    seen: set[tuple[str, int]] = set()
    for workload in found:
        call = workload.call
        for item in _of(tree, workload):
            key = (item.body.file.path, item.expr.start)
            if key not in seen and not is_unsure(tree, call.body, call.expr):
                seen.add(key)
                yield item


def _of(tree: FlyTree, workload: Workload) -> Iterator[Overflow]:
    if prod(abs(workload.numbers[name]) + 1 for name in workload.sizes if name in workload.numbers) <= _SMALL:
        return
    traced = workload.call.target
    launcher = _Frame(traced, workload.numbers, workload.sizes, {})
    for frame in (launcher, *_kernels(tree, launcher)):
        reader = _Reader(tree, frame)
        yield from (Overflow(frame.traced, body, expr, value, workload) for body, expr, value in reader.overflows())


def _kernels(tree: FlyTree, launcher: _Frame) -> Iterator[_Frame]:
    """Yield the kernels that a launcher is known to launch, with the values that it passes."""
    reader = _Reader(tree, launcher)
    run = reader.surely_run
    for kernel in tree.finder.called_in(launcher.traced.body):
        for call in kernel.calls if kernel.kind == "kernel" else ():
            sure = call.expr.span in run and call.body is launcher.traced.body
            if sure and len(call.launches) == 1 and not call.unpacks:
                arguments = {item.name: call.argument(item.name) for item in kernel.call_parameters}
                given = {name: expr for name, expr in arguments.items() if expr is not None}
                numbers = {
                    name: value for name, expr in given.items() if (value := reader.top(call.body, expr)) is not None
                }
                sizes = frozenset(name for name in numbers if reader.is_size(call.body, given[name]))
                yield _Frame(kernel, numbers, sizes, dict(_indices(reader, call.body, call.launches[0])))


def _indices(reader: _Reader, body: Body, launch: Expr) -> Iterator[tuple[str, int]]:
    for word, index, count_of in (("grid", "block_idx", "grid_dim"), ("block", "thread_idx", "block_dim")):
        given = launch.keyword(word)
        for axis, expr in zip(_AXES, given.elements or () if given is not None else (), strict=False):
            count = reader.top(body, expr)
            if count is not None and count > 0:
                yield f"{index}.{axis}", count - 1
                yield f"{count_of}.{axis}", count


def _may_leave(statements: Sequence[Statement]) -> bool:
    return any(item.kind in LEAVING for item in all_statements(statements))


def _reduced(expr: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression that loses some bits: in a mask, a remainder or an exclusive or."""
    if expr.kind == "binary" and expr.text in _REDUCING:
        yield from (part for item in expr.items for part in item.walk())


def _is_scrambling(value: object) -> bool:
    """Whether a number looks like a factor of a hash or a random number generator, which may wrap, and not like a size."""
    return isinstance(value, int) and value > _SMALL and value % 2 == 1


class _Reader:
    """Reads the numbers of one traced function."""

    def __init__(self, tree: FlyTree, frame: _Frame) -> None:
        self.tree = tree
        self.frame = frame
        self.values: DeviceValues = device_values(tree, frame.traced)
        self.types = NumberTypes(self.values, self.top)
        self._added = Counter(
            item.exprs[0].text
            for body in self.values.bodies
            for item in statements_of(body)
            if item.kind == "augassign" and is_variable(item.exprs[0])
        )
        self._before = ""

    def overflows(self) -> Iterator[tuple[Body, Expr, int]]:
        """Yield the innermost 32-bit expressions that overflow in the last thread of the last block."""
        body = self.frame.traced.body
        text = body.file.text(body.function.outer) if body.function is not None else ""
        if "*" not in text and "<<" not in text:
            return
        meant = self._wrapping(body)
        for item in self._running(body, body.statements):
            if not meant.isdisjoint(target.text for target in targets(item)):
                continue
            yield from self._added_to(body, item)
            wide = {
                expr.items[1].span
                for expr in own_expressions(item)
                if self.types.of(body, expr) == I64 and expr.kind == "call"
            }
            for expr in sure_expressions(item):
                value = self._overflow(body, expr, I32_MAX if expr.span in wide else U32_MAX)
                if (
                    value is not None
                    and expr.span not in meant
                    and expr.span not in {target.span for target in targets(item)}
                ):
                    yield body, expr, value

    @property
    def surely_run(self) -> set[Span]:
        """The expressions that the function is known to evaluate."""
        body = self.frame.traced.body
        return {expr.span for item in self._running(body, body.statements) for expr in sure_expressions(item)}

    def _wrapping(self, body: Body) -> set[Span | str]:
        """Return the expressions and names that lose some bits on purpose, so that an overflow does no harm."""
        statements = list(statements_of(body))
        parts = [part for item in statements for expr in own_expressions(item) for part in _reduced(expr)]
        names = {item.exprs[0].text for item in statements if item.kind == "augassign" and item.text in _REDUCING}
        return {*names, *(part.span for part in parts), *(part.text for part in parts if is_variable(part))}

    def _added_to(self, body: Body, item: Statement) -> Iterator[tuple[Body, Expr, int]]:
        """Yield the overflow of ``x *= y``, if nothing else changes the variable."""
        if item.kind == "augassign" and self._added[item.exprs[0].text] == 1:
            self._before = item.exprs[0].text
            expr = Expr("binary", item.start, item.end, item.text, None, item.exprs)
            value = self._overflow(body, expr, U32_MAX)
            if value is not None:
                yield body, expr, value
            self._before = ""

    def _running(self, body: Body, statements: Sequence[Statement]) -> Iterator[Statement]:
        """Yield the statements that the last thread of the last block is known to run."""
        for item in statements:
            yield item
            taken = self._taken(body, item)
            yield from self._running(body, taken or ())
            if item.kind in LEAVING or any(map(_may_leave, item.blocks if taken is None else (taken,))):
                return

    def _taken(self, body: Body, item: Statement) -> Sequence[Statement] | None:
        """Return the block of a statement that runs; None if that is not known."""
        if item.kind == "if":
            test = item.exprs[0].items[1] if is_const_expr(item.exprs[0]) else item.exprs[0]
            holds = self._holds(body, test)
            return (
                None if holds is None else item.blocks[0] if holds else item.blocks[1] if len(item.blocks) > 1 else ()
            )
        if item.kind == "for":
            runs = self._last(body, item, DEEPEST) is not None or self._runs_python(body, item)
            return item.blocks[0] if runs else None
        return item.blocks[0] if item.kind == "with" else None

    def _runs_python(self, body: Body, item: Statement) -> bool:
        """Whether Python runs a loop at least once while it traces."""
        iterable = item.exprs[1]
        if is_gpu_loop(iterable) and not stays_python(self.frame.traced.body, body, item.start):
            return False
        if iterable.callee.rpartition(".")[2] not in ("range", "range_constexpr"):
            return True
        bounds = [self.top(body, part) for part in iterable.items[1:]]
        return not bounds or bounds[0] != 0 or len(bounds) > 1

    def _last(self, body: Body, item: Statement, depth: int) -> int | None:
        """Return the last value of the variable of a loop over a ``range``, in every thread; None if it may not be reached."""
        call = item.exprs[1]
        bounds = list(call.items[1:])
        if call.callee.rpartition(".")[2] != "range" or any(call.keywords) or not 1 <= len(bounds) <= 3:
            return None
        found = [self.top(body, part, depth - 1) for part in bounds]
        varies = any(self._varying(body, part, depth) for part in bounds)
        if None in found or varies or any(map(_may_leave, item.blocks)):
            return None
        known = [part for part in found if part is not None]
        steps = range(*known) if len(known) < 3 or known[2] > 0 else range(0)
        return steps[-1] if steps else None

    def _holds(self, body: Body, test: Expr) -> bool | None:
        """Whether a condition holds for the last thread of the last block; None if that is not known."""
        if test.kind == "boolop":
            found = [self._holds(body, item) for item in test.items]
            settled = test.text == "or"
            return settled if settled in found else None if None in found else not settled
        if test.kind != "compare" or test.text not in _COMPARED:
            return None
        left, right = (self.top(body, item) for item in test.items)
        return _COMPARED[test.text](left, right) if left is not None and right is not None else None

    def _overflow(self, body: Body, expr: Expr, most: int) -> int | None:
        if expr.kind != "binary" or expr.text not in _GROWING or self.types.of(body, expr) != I32:
            return None
        value = self.top(body, expr)
        inner = (self.top(body, item) for item in expr.items)
        if value is None or value <= most or any(item is None or not 0 <= item <= most for item in inner):
            return None
        return value if self.is_size(body, expr) else None

    def top(self, body: Body, expr: Expr, depth: int = DEEPEST) -> int | None:
        """Return the value of an expression, or its largest value in a launch; None if that is not known."""
        if depth <= 0:
            return None
        match expr.kind:
            case "name":
                return self._name(body, expr, depth)
            case "binary":
                return self._binary(body, expr, depth)
            case "call" if self.types.of(body, expr) in (I32, I64):
                return self.top(body, expr.items[1], depth - 1)
        return number(self.tree, body, expr)

    def _binary(self, body: Body, expr: Expr, depth: int) -> int | None:
        left, right = (self.top(body, item, depth - 1) for item in expr.items)
        if left is None or right is None or left < 0 or right < 0:
            return None
        free = [bool(self._varying(body, item, depth)) for item in expr.items]
        if expr.text not in _GROWING and (free[1] or (free[0] and expr.text not in ("//", "-"))):
            return None
        names = [self._varying(body, item, depth) for item in expr.items]
        return computed(expr.text, left, right) if not names[0] & names[1] else None

    def _name(self, body: Body, expr: Expr, depth: int) -> int | None:
        index = self._index(body, expr.text)
        if index:
            return self.frame.indices.get(index)
        if not is_variable(expr):
            return None
        if self._added[expr.text] and expr.text != self._before:
            return None
        bound = self.values.bindings(body, expr.text)
        if bound is None:
            return number(self.tree, body, expr)
        if bound == [None]:
            return self.frame.numbers.get(expr.text) if self.values.parameter(body, expr.text) else None
        one = bound[0] if len(bound) == 1 else None
        if isinstance(one, Statement):
            inside = one.blocks[0][0].start <= expr.start < one.blocks[0][-1].end
            return self._last(body, one, depth - 1) if inside else None
        return self.top(body, one, depth - 1) if one is not None else None

    def _index(self, body: Body, name: str) -> str:
        parts = self.tree.names.full(body, name).split(".") if "_idx." in name or "_dim." in name else []
        return ".".join(parts[-2:]) if len(parts) > 2 else ""

    def _varying(self, body: Body, expr: Expr, depth: int) -> set[str]:
        """Return the indices and loop variables that an expression depends on."""
        return {item for item in self._leaves(body, expr, depth) if "_idx." in item or item.startswith(_LOOP)}

    def is_size(self, body: Body, expr: Expr) -> bool:
        """Whether an expression depends on nothing but sizes of tensors and indices."""
        leaves = self._leaves(body, expr, DEEPEST)
        return bool(leaves) and all("." in item or item in self.frame.sizes for item in leaves)

    def _leaves(self, body: Body, expr: Expr, depth: int) -> set[str]:
        """Return the parameters and indices that an expression depends on."""
        if depth <= 0:
            return {""}
        found: set[str] = set()
        for part in expr.walk():
            index = self._index(body, part.text) if part.kind == "name" else ""
            if index:
                found.add(index)
            elif part.kind == "const" and _is_scrambling(part.value):
                found.add("")
            elif is_variable(part):
                bound = self.values.bindings(body, part.text)
                if bound == [None]:
                    found.add(part.text if self.values.parameter(body, part.text) else "")
                elif bound is None and _is_scrambling(number(self.tree, body, part)):
                    found.add("")
                else:
                    inner = [item for item in bound or () if isinstance(item, Expr)]
                    found |= {leaf for item in inner for leaf in self._leaves(body, item, depth - 1)}
                    for item in (item for item in bound or () if isinstance(item, Statement)):
                        found.add(f"{_LOOP}{item.start}")
                        found |= self._leaves(body, item.exprs[1], depth - 1)
        return found

"""The safe evaluator: what an expression is worth, under a whitelist and a budget.

An expression is compiled once into nested closures, one per node; nothing is handed to Python's own
``eval``. Text that is outside the whitelist is refused as a whole, wherever in the expression it stands.

Work is paid for where it can repeat: a straight expression is bounded by its length, so steps are charged
per round of a comprehension and per item that a function or an operator reads.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from time import perf_counter
from types import GeneratorType
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

from opschema_cli.schema.expression import Expression
from opschema_cli.schema.shape_functions import (
    ROOFLINE_ARITHMETIC_FUNCTIONS,
    ROOFLINE_VARS_FUNCTIONS,
    SHAPE_FUNCTIONS,
    Functions,
)

__all__ = [
    "ROOFLINE_ARITHMETIC_FUNCTIONS",
    "ROOFLINE_VARS_FUNCTIONS",
    "SHAPE_FUNCTIONS",
    "Budget",
    "BudgetExceeded",
    "EvaluateError",
    "EvaluationError",
    "Functions",
    "Tensor",
    "Unbound",
    "Unsupported",
    "Value",
    "evaluate",
]

# Values and errors ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """A tensor as a rule sees it: a shape, None while it is not known, and the name it goes by."""

    shape: tuple[int, ...] | None = None
    name: str = "tensor"

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Raises:
            Unbound: the shape is not known.
        """
        if self.shape is None:
            raise Unbound(f"{self.name}.shape")
        return len(self.shape)

    def __bool__(self) -> NoReturn:
        raise TypeError("a tensor has no truth value; test `is None` or its shape")


Value: TypeAlias = (
    "bool | int | float | str | range | type | Tensor "
    "| Sequence[Value] | AbstractSet[Value] | Mapping[Any, Value] | None"
)
"""What a name may stand for. Containers are tuples, lists, sets, frozensets and dicts; they are only read."""


class EvaluateError(Exception):
    """An expression has no value; ``offset`` counts the characters of its text, -1 where none is known."""

    wording = "{}"

    def __init__(self, subject: str, offset: int = -1) -> None:
        super().__init__(subject, offset)
        self.subject = subject
        self.offset = offset

    @property
    def reason(self) -> str:
        """What is wrong, in words."""
        return self.wording.format(self.subject)

    def __str__(self) -> str:
        return self.reason


class Unbound(EvaluateError):  # noqa: N818 - a state of knowledge; the solver goes on from it
    """A name (``C``), or the shape of a tensor (``x.shape``), has no value."""

    wording = "`{}` has no value"

    @property
    def name(self) -> str:
        """The name, or ``name.shape``."""
        return self.subject


class Unsupported(EvaluateError):  # noqa: N818
    """The expression uses syntax, an attribute or a function outside the whitelist."""

    wording = "{} cannot be used here"


class BudgetExceeded(EvaluateError):  # noqa: N818
    """The expression asks for more than its :class:`Budget`."""

    wording = "it takes more {} than an expression may"

    @property
    def which(self) -> str:
        """What ran out: ``steps``, ``size``, ``time`` or ``depth``."""
        return self.subject


class EvaluationError(EvaluateError):
    """Python would raise here: a wrong type, index, key or value, or a division by zero."""


_ERRORS = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    *(EvaluateError, RecursionError, MemoryError),
)


def _located(error: Exception, offset: int) -> EvaluateError:
    """``error`` as one of ours, at ``offset`` unless a node further in has claimed it."""
    if isinstance(error, RecursionError):
        return BudgetExceeded("depth", offset)
    if isinstance(error, MemoryError):
        return BudgetExceeded("size", offset)
    if isinstance(error, KeyError):  # whose text is the key, however large
        return EvaluationError("there is no such key", offset)
    if not isinstance(error, EvaluateError):
        return EvaluationError(str(error)[:300], offset)
    if error.offset < 0:
        error.offset = offset
    return error


# The budget -------------------------------------------------------------------------------------------


class Budget(NamedTuple):
    """What one evaluation may use: steps, items of one container, bits of one integer, seconds."""

    steps: int = 100_000
    items: int = 100_000
    bits: int = 4096
    seconds: float = 0.05


_CLOCK_STEPS = 512
"""Steps between two looks at the clock; the first look starts it, so that no short rule depends on time."""

_MAX_SET = 1024
"""Largest set: items can be chosen to share one hash, and then building it takes quadratic time."""

_NUMBERS = frozenset({bool, int, float})
_SCALARS = _NUMBERS | {type(None), type, range}
_SEQUENCES = frozenset({tuple, list, str})
_SETS = frozenset({set, frozenset})
_CONTAINERS = frozenset({tuple, list, set, frozenset, dict})
_HEAVY = _CONTAINERS | {str}
_SIZED = _HEAVY | {range}
_ITERABLE = _SIZED | {GeneratorType}


class Run:
    """One evaluation: its names, the variables of its comprehensions, and what is left of its budget."""

    __slots__ = ("_checkpoint", "_deadline", "budget", "env", "slots", "steps")

    def __init__(self, env: Mapping[str, Value], budget: Budget, slots: int) -> None:
        self.env = env
        self.budget = budget
        self.slots: list[Any] = [None] * slots
        self.steps = budget.steps
        self._checkpoint = budget.steps - _CLOCK_STEPS if budget.steps > _CLOCK_STEPS else 0
        self._deadline = 0.0

    def charge(self, steps: int) -> None:
        """Pay ``steps``.

        Raises:
            BudgetExceeded: the steps or the time are used up.
        """
        self.steps -= steps
        if self.steps < self._checkpoint:
            self._look()

    def _look(self) -> None:
        if self.steps < 0:
            raise BudgetExceeded("steps")
        now = perf_counter()
        if not self._deadline:
            self._deadline = now + self.budget.seconds
        elif now > self._deadline:
            raise BudgetExceeded("time")
        self._checkpoint = max(self.steps - _CLOCK_STEPS, 0)

    def limit(self, size: int, most: int) -> None:
        """Refuse a ``size`` above ``most``."""
        if size > most:
            raise BudgetExceeded("size")

    def grow(self, length: int) -> None:
        """Pay for a new container of ``length`` items, before it is built."""
        if length > 64:
            self.limit(length, self.budget.items)
            self.charge(length >> 3)

    def weigh(self, value: Any, factor: int = 1) -> None:
        """Pay for reading all of ``value``, however deep; shared parts count each time they are met."""
        kind = value.__class__
        if kind is str:
            self.charge((len(value) >> 4) * factor)
        elif kind in _CONTAINERS:
            self.charge((len(value) + 1) * factor)
            for part in value if kind is not dict else chain.from_iterable(value.items()):
                if part.__class__ in _HEAVY:
                    self.weigh(part, factor)

    def each(self, values: Any) -> Iterable[Any]:
        """``values`` if it can be iterated; the loop pays per round."""
        if values.__class__ not in _ITERABLE:
            raise TypeError(f"{_kind(values)} cannot be iterated")
        return values

    def stream(self, values: Any) -> Iterable[Any]:
        """``values`` item by item, paid as they are taken; a generator pays for itself."""
        return self.each(values) if values.__class__ is GeneratorType else self._paid(self.each(values))

    def _paid(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self.charge(1)
            yield value

    def items(self, values: Any) -> list[Any]:
        """All items of ``values`` as a new list, paid for."""
        items = list(islice(self.each(values), self.budget.items + 1))
        self.limit(len(items), self.budget.items)
        self.charge(len(items))
        return items

    def make_set(self, items: list[Any]) -> set[Any]:
        """The set of ``items``, paid for."""
        self.limit(len(items), _MAX_SET)
        self.weigh(items)
        return set(items)

    def plus(self, left: Any, right: Any) -> Any:
        """``left + right`` of numbers, or of two tuples, lists or texts."""
        lefts, rights = left.__class__, right.__class__
        if lefts in _NUMBERS and rights in _NUMBERS:
            return left + right
        if lefts is not rights or lefts not in _SEQUENCES:
            raise _mismatch("+", left, right)
        self.grow(len(left) + len(right))
        return left + right

    def times(self, left: Any, right: Any) -> Any:
        """``left * right`` of numbers, or of an integer and a tuple, list or text."""
        lefts, rights = left.__class__, right.__class__
        if lefts in _NUMBERS and rights in _NUMBERS:
            if lefts is not float and rights is not float:
                self.limit(left.bit_length() + right.bit_length(), self.budget.bits)
            return left * right
        if rights in _SEQUENCES:
            left, right, lefts, rights = right, left, rights, lefts
        if lefts not in _SEQUENCES or rights not in _NUMBERS or rights is float:
            raise _mismatch("*", left, right)
        self.grow(len(left) * max(right, 0))
        return left * right


def _kind(value: object) -> str:
    return "None" if value is None else repr(type(value).__name__)


def _mismatch(sign: str, left: object, right: object) -> TypeError:
    return TypeError(f"`{sign}` cannot combine {_kind(left)} and {_kind(right)}")


# Operators --------------------------------------------------------------------------------------------

_Operator: TypeAlias = Callable[[Run, Any, Any], Any]


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any], *, sets: bool = False) -> _Operator:
    """An operator whose result is no larger than its operands: on numbers and, where told, on sets."""

    def compute(run: Run, left: Any, right: Any) -> Any:
        lefts, rights = left.__class__, right.__class__
        if lefts not in _NUMBERS or rights not in _NUMBERS:
            if not sets or lefts not in _SETS or rights not in _SETS:
                raise _mismatch(sign, left, right)
            run.limit(len(left) + len(right), _MAX_SET)
            run.weigh(left)
            run.weigh(right)
        return apply(left, right)

    return compute


def _power(run: Run, left: Any, right: Any) -> Any:
    lefts, rights = left.__class__, right.__class__
    if lefts not in _NUMBERS or rights not in _NUMBERS:
        raise _mismatch("**", left, right)
    if lefts is not float and rights is not float and right > 0:
        run.limit((left.bit_length() - 1) * right, run.budget.bits)
    result = left**right
    if isinstance(result, complex):
        raise ValueError("a negative number has no real root of this degree")
    return result


def _shift_left(run: Run, left: Any, right: Any) -> Any:
    if {left.__class__, right.__class__} - {bool, int}:
        raise _mismatch("<<", left, right)
    if left and right > 0:
        run.limit(left.bit_length() + right, run.budget.bits)
    return left << right


_BINARY: Mapping[type[ast.operator], _Operator] = {
    ast.Add: Run.plus,
    ast.Mult: Run.times,
    ast.Sub: _arithmetic("-", operator.sub, sets=True),
    ast.Div: _arithmetic("/", operator.truediv),
    ast.FloorDiv: _arithmetic("//", operator.floordiv),
    ast.Mod: _arithmetic("%", operator.mod),
    ast.BitAnd: _arithmetic("&", operator.and_, sets=True),
    ast.BitOr: _arithmetic("|", operator.or_, sets=True),
    ast.BitXor: _arithmetic("^", operator.xor, sets=True),
    ast.RShift: _arithmetic(">>", operator.rshift),
    ast.LShift: _shift_left,
    ast.Pow: _power,
}

_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    # Python 3.12 warns of ~True.
    ast.Invert: lambda value: ~(int(value) if value.__class__ is bool else value),
}


def _equal(run: Run, left: Any, right: Any) -> bool:
    if left.__class__ not in _SCALARS and right.__class__ not in _SCALARS:
        if left.__class__ is Tensor or right.__class__ is Tensor:
            raise TypeError("tensors compare element by element; compare their shapes")
        run.weigh(left)
        run.weigh(right)
    return bool(left == right)


def _ordering(compare: Callable[[Any, Any], Any]) -> _Operator:
    def compute(run: Run, left: Any, right: Any) -> Any:
        if left.__class__ in _HEAVY:
            run.weigh(left)
            run.weigh(right)
        return compare(left, right)

    return compute


def _identical(run: Run, left: Any, right: Any) -> bool:
    if not any(value is None or value.__class__ in (bool, type) for value in (left, right)):
        raise TypeError("`is` compares places in memory; compare values with `==`")
    return left is right


def _contains(run: Run, item: Any, box: Any) -> bool:
    kind = box.__class__
    if kind is GeneratorType or (kind is range and item.__class__ not in (bool, int)):
        return any(_equal(run, item, candidate) for candidate in run.stream(box))
    if kind not in _SIZED:
        raise TypeError(f"{_kind(box)} cannot be searched")
    run.weigh(item)
    if kind not in _SETS and kind is not dict:
        run.weigh(box)
    return item in box


def _not(compare: _Operator) -> _Operator:
    return lambda run, left, right: not compare(run, left, right)


_COMPARE: Mapping[type[ast.cmpop], _Operator] = {
    ast.Eq: _equal,
    ast.NotEq: _not(_equal),
    ast.Lt: _ordering(operator.lt),
    ast.LtE: _ordering(operator.le),
    ast.Gt: _ordering(operator.gt),
    ast.GtE: _ordering(operator.ge),
    ast.Is: _identical,
    ast.IsNot: _not(_identical),
    ast.In: _contains,
    ast.NotIn: _not(_contains),
}


# Compilation ------------------------------------------------------------------------------------------

_Code: TypeAlias = Callable[[Run], Any]
_N = TypeVar("_N", bound=ast.expr)


class _Program(NamedTuple):
    code: _Code
    slots: int
    cost: int
    start: int


class _Compiler:
    """Turns one expression into closures; knows which names its comprehensions bind."""

    def __init__(self, expression: Expression, functions: Functions) -> None:
        self.expression = expression
        self.functions = functions
        self.scopes: list[dict[str, int | None]] = []
        self.slots = 0
        self.nodes = 0

    def compile(self, node: ast.expr, *, generator: bool = False) -> _Code:
        """The code of ``node``; ``generator`` where a generator may stand, so that none ever gets away."""
        self.nodes += 1
        compiler = _COMPILERS.get(type(node))
        if compiler is None or (isinstance(node, ast.GeneratorExp) and not generator):
            self.refuse(_FORBIDDEN.get(type(node), f"`{type(node).__name__}`"), node)
        code = compiler(self, node)
        return code if type(node) in _CANNOT_FAIL else _placed(code, self.offset(node))

    def refuse(self, what: str, node: ast.expr) -> NoReturn:
        """Refuse the expression because of ``node``."""
        raise Unsupported(what, self.offset(node))

    def offset(self, node: ast.expr) -> int:
        """Where ``node`` starts, in characters."""
        return self.expression.start_of(node)

    def local(self, node: ast.Name) -> int | None:
        """The slot of a comprehension's variable; None for a name from outside."""
        scope = next((scope for scope in reversed(self.scopes) if node.id in scope), None)
        if scope is None:
            return None
        slot = scope[node.id]
        if slot is None:
            self.refuse(f"`{node.id}`, which the comprehension binds only later,", node)
        return slot


def _placed(code: _Code, offset: int) -> _Code:
    """``code``, with its errors placed at ``offset``."""

    def placed(run: Run) -> Any:
        try:
            return code(run)
        except _ERRORS as error:
            raise _located(error, offset) from None

    return placed


_FORBIDDEN: Mapping[type[ast.expr], str] = {
    ast.Await: "`await`",
    ast.Dict: "a dict display",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator that no function or loop takes in",
    ast.JoinedStr: "an f-string",
    ast.Lambda: "`lambda`",
    ast.NamedExpr: "`:=`",
    ast.Slice: "a slice of several axes",
    ast.Starred: "`*`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
}
_CANNOT_FAIL = frozenset({ast.Constant, ast.Name, ast.Tuple, ast.List})

_COMPILERS: dict[type[ast.expr], Callable[[_Compiler, Any], _Code]] = {}


def _compiles(kind: type[_N]) -> Callable[[Callable[[_Compiler, _N], _Code]], None]:
    def register(compiler: Callable[[_Compiler, _N], _Code]) -> None:
        _COMPILERS[kind] = compiler

    return register


@_compiles(ast.Constant)
def _constant(compiler: _Compiler, node: ast.Constant) -> _Code:
    value = node.value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        compiler.refuse(f"a constant of type {_kind(value)}", node)
    return lambda run: value


@_compiles(ast.Name)
def _name(compiler: _Compiler, node: ast.Name) -> _Code:
    name, offset = node.id, compiler.offset(node)
    if name.startswith("__") and name.endswith("__"):
        compiler.refuse(f"the name `{name}`", node)
    slot = compiler.local(node)
    if slot is not None:
        return lambda run: run.slots[slot]
    function = compiler.functions.get(name)
    known_type = function.type if function is not None else None

    def code(run: Run) -> Any:
        try:
            return run.env[name]
        except KeyError:
            if known_type is None:
                raise Unbound(name, offset) from None
            return known_type

    return code


@_compiles(ast.Attribute)
def _attribute(compiler: _Compiler, node: ast.Attribute) -> _Code:
    if node.attr not in ("shape", "ndim"):
        compiler.refuse(f"the attribute `.{node.attr}`", node)
    base, attribute = compiler.compile(node.value), node.attr
    start, end = compiler.expression.span_of(node.value)
    written = compiler.expression.text[start:end]

    def code(run: Run) -> Any:
        tensor = base(run)
        if tensor.__class__ is not Tensor:
            raise TypeError(f"`{written}` is {_kind(tensor)}, which has no `.{attribute}`")
        if tensor.shape is None:
            raise Unbound(f"{written}.shape")
        return tensor.shape if attribute == "shape" else len(tensor.shape)

    return code


@_compiles(ast.Subscript)
def _subscript(compiler: _Compiler, node: ast.Subscript) -> _Code:
    base = compiler.compile(node.value)
    index = _slice(compiler, node.slice) if isinstance(node.slice, ast.Slice) else compiler.compile(node.slice)

    def code(run: Run) -> Any:
        values, key = base(run), index(run)
        kind = values.__class__
        if kind in _SETS or kind not in _SIZED:
            raise TypeError(f"{_kind(values)} takes no index")
        if key.__class__ is not slice:
            run.weigh(key)
        elif kind is not range:
            run.grow(len(values))
        return values[key]

    return code


def _slice(compiler: _Compiler, node: ast.Slice) -> _Code:
    lower, upper, step = (
        compiler.compile(bound) if bound is not None else lambda run: None
        for bound in (node.lower, node.upper, node.step)
    )
    return lambda run: slice(lower(run), upper(run), step(run))


@_compiles(ast.BinOp)
def _binary(compiler: _Compiler, node: ast.BinOp) -> _Code:
    apply = _BINARY.get(type(node.op))
    if apply is None:
        compiler.refuse("`@`", node)
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    return lambda run: apply(run, left(run), right(run))


@_compiles(ast.UnaryOp)
def _unary(compiler: _Compiler, node: ast.UnaryOp) -> _Code:
    apply, operand = _UNARY[type(node.op)], compiler.compile(node.operand)
    return lambda run: apply(operand(run))


@_compiles(ast.BoolOp)
def _boolean(compiler: _Compiler, node: ast.BoolOp) -> _Code:
    *leading, last = (compiler.compile(value) for value in node.values)
    stop = isinstance(node.op, ast.Or)

    def code(run: Run) -> Any:
        for operand in leading:
            value = operand(run)
            if (not value) is not stop:
                return value
        return last(run)

    return code


@_compiles(ast.IfExp)
def _conditional(compiler: _Compiler, node: ast.IfExp) -> _Code:
    test, body, orelse = (compiler.compile(part) for part in (node.test, node.body, node.orelse))
    return lambda run: body(run) if test(run) else orelse(run)


@_compiles(ast.Compare)
def _compare(compiler: _Compiler, node: ast.Compare) -> _Code:
    left = compiler.compile(node.left)
    links = [
        (_COMPARE[type(sign)], compiler.compile(right, generator=isinstance(sign, (ast.In, ast.NotIn))))
        for sign, right in zip(node.ops, node.comparators, strict=True)
    ]
    if len(links) == 1:
        [(compare_two, other)] = links
        return lambda run: compare_two(run, left(run), other(run))

    def code(run: Run) -> Any:
        value = left(run)
        result: Any = True
        for compare, following in links:
            right = following(run)
            result = compare(run, value, right)
            if not result:
                return result
            value = right
        return result

    return code


@_compiles(ast.Tuple)
def _tuple(compiler: _Compiler, node: ast.Tuple) -> _Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: tuple([element(run) for element in elements])


@_compiles(ast.List)
def _list(compiler: _Compiler, node: ast.List) -> _Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: [element(run) for element in elements]


@_compiles(ast.Set)
def _set(compiler: _Compiler, node: ast.Set) -> _Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: run.make_set([element(run) for element in elements])


@_compiles(ast.Call)
def _call(compiler: _Compiler, node: ast.Call) -> _Code:
    if not isinstance(node.func, ast.Name):
        compiler.compile(node.func)
        compiler.refuse("a call of anything but a named function", node)
    name = node.func.id
    function = compiler.functions.get(name)
    if function is None or compiler.local(node.func) is not None:
        compiler.refuse(f"the function `{name}`", node)
    call = function.call
    arguments = [compiler.compile(value, generator=not index) for index, value in enumerate(node.args)]
    named = _keywords(compiler, node.keywords)
    misfit = _misfit(call, len(arguments), named)

    def code(run: Run) -> Any:
        if name in run.env:
            raise TypeError(f"`{name}` is a value here, not the function")
        if misfit:
            raise TypeError(f"`{name}()` does not take these arguments: {misfit}")
        values = [argument(run) for argument in arguments]
        if not named:
            return call(run, *values)
        return call(run, *values, **{key: value(run) for key, value in named.items()})

    return code


def _misfit(call: Callable[..., Any], count: int, named: Mapping[str, _Code]) -> str:
    """Why a function cannot take ``count`` arguments and the ``named`` ones; empty if it can."""
    try:
        _signature(call).bind(None, *[None] * count, **named)
    except TypeError as error:
        return str(error)
    return ""


_signature = lru_cache(maxsize=64)(inspect.signature)


def _keywords(compiler: _Compiler, keywords: Sequence[ast.keyword]) -> dict[str, _Code]:
    named = {}
    for item in keywords:
        if item.arg is None:
            compiler.refuse("`**`", item.value)
        named[item.arg] = compiler.compile(item.value)
    return named


# Comprehensions ---------------------------------------------------------------------------------------


class _Loop(NamedTuple):
    """One ``for`` clause: what it iterates, what each item is bound to, and the price of a round."""

    source: _Code
    bind: Callable[[Run, Any], None]
    conditions: tuple[_Code, ...]
    cost: int


def _elements(compiler: _Compiler, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> _Code:
    """The elements, lazily; as in Python, the first iterable is looked up at once."""
    first = compiler.compile(node.generators[0].iter, generator=True)
    targets = [name for loop in node.generators for name in _target_names(compiler, loop.target)]
    compiler.scopes.append(dict.fromkeys(targets))
    loops = [_loop(compiler, loop, None if index else first) for index, loop in enumerate(node.generators)]
    before = compiler.nodes
    element = compiler.compile(node.elt)
    loops[-1] = loops[-1]._replace(cost=loops[-1].cost + compiler.nodes - before)
    compiler.scopes.pop()
    rounds = _rounds(loops)

    def code(run: Run) -> Any:
        values = run.each(first(run))
        return (element(run) for _ in rounds(run, values))

    return code


_compiles(ast.GeneratorExp)(_elements)


@_compiles(ast.ListComp)
def _list_comprehension(compiler: _Compiler, node: ast.ListComp) -> _Code:
    generate = _elements(compiler, node)
    return lambda run: run.items(generate(run))


@_compiles(ast.SetComp)
def _set_comprehension(compiler: _Compiler, node: ast.SetComp) -> _Code:
    generate = _elements(compiler, node)
    return lambda run: run.make_set(run.items(generate(run)))


def _loop(compiler: _Compiler, node: ast.comprehension, source: _Code | None) -> _Loop:
    if node.is_async:
        compiler.refuse("`async`", node.target)
    if source is None:
        source = compiler.compile(node.iter, generator=True)
    bind = _target(compiler, node.target)
    before = compiler.nodes
    conditions = tuple(compiler.compile(condition) for condition in node.ifs)
    return _Loop(source, bind, conditions, 1 + compiler.nodes - before)


def _rounds(loops: Sequence[_Loop]) -> Callable[[Run, Iterable[Any]], Iterator[None]]:
    """A generator that binds the variables of ``loops`` and yields once for each combination."""
    loop, *rest = loops
    inner = _rounds(rest) if rest else None
    _, bind, conditions, cost = loop

    def rounds(run: Run, values: Iterable[Any]) -> Iterator[None]:
        for value in values:
            run.charge(cost)
            bind(run, value)
            if conditions and not all(condition(run) for condition in conditions):
                continue
            if inner is None:
                yield None
            else:
                yield from inner(run, run.each(rest[0].source(run)))

    return rounds


def _target_names(compiler: _Compiler, target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(compiler, element)
    else:
        compiler.refuse("a loop variable that is not a name", target)


def _target(compiler: _Compiler, target: ast.expr) -> Callable[[Run, Any], None]:
    """Binds an item to a loop variable, or unpacks it to several."""
    if isinstance(target, ast.Name):
        scope = compiler.scopes[-1]
        slot = scope[target.id]
        if slot is None:
            slot = scope[target.id] = compiler.slots
            compiler.slots += 1
        return lambda run, item: run.slots.__setitem__(slot, item)
    assert isinstance(target, (ast.Tuple, ast.List))  # _target_names refuses the rest
    parts = [_target(compiler, element) for element in target.elts]

    def unpack(run: Run, item: Any) -> None:
        items = list(islice(run.each(item), len(parts) + 1))
        if len(items) != len(parts):
            raise ValueError(f"{len(parts)} loop variables cannot take this number of items")
        for part, one in zip(parts, items, strict=True):
            part(run, one)

    return unpack


# Evaluation -------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _program(expression: Expression, functions: Functions) -> _Program:
    compiler = _Compiler(expression, functions)
    code = compiler.compile(expression.tree)
    return _Program(code, compiler.slots, compiler.nodes, compiler.offset(expression.tree))


def evaluate(
    expression: Expression,
    env: Mapping[str, Value],
    *,
    functions: Functions = SHAPE_FUNCTIONS,
    budget: Budget = Budget(),  # noqa: B008 - immutable
) -> Value:
    """The value of ``expression``, as Python would compute it with the names in ``env``.

    A name in ``env`` hides the function or type of that name. The clock starts after some hundred steps,
    so an ordinary rule gives the same answer however busy the machine is.

    Raises:
        Unbound: it reads a name that ``env`` lacks, or the shape of a tensor whose shape is not known.
        Unsupported: it holds something outside the whitelist, reached or not.
        BudgetExceeded: it needs more than ``budget``.
        EvaluationError: Python would raise.
    """
    program = _program(expression, functions)
    run = Run(env, budget, program.slots)
    try:
        run.charge(program.cost)
        value: Value = program.code(run)
    except _ERRORS as error:
        raise _located(error, program.start) from None
    return value

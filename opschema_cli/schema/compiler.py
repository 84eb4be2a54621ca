"""Compiles an expression into nested closures, one for each node; what is outside the whitelist is refused as a whole."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NoReturn, TypeAlias, TypeVar

import msgspec

from opschema_cli.schema.budget import SETS, SIZED, Run, kind_of
from opschema_cli.schema.expression import Expression
from opschema_cli.schema.operators import BINARY, COMPARE, UNARY
from opschema_cli.schema.shape_functions import Functions
from opschema_cli.schema.values import FAILURES, Tensor, Unbound, Unsupported, located

Code: TypeAlias = Callable[[Run], Any]
_N = TypeVar("_N", bound=ast.expr)


class Compiler:
    """Turns one expression into closures; knows which names its comprehensions bind."""

    def __init__(self, expression: Expression, functions: Functions) -> None:
        self.expression = expression
        self.functions = functions
        self.scopes: list[dict[str, int | None]] = []
        self.slots = 0
        self.nodes = 0

    def compile(self, node: ast.expr, *, generator: bool = False) -> Code:
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


def _placed(code: Code, offset: int) -> Code:
    """``code``, with its errors placed at ``offset``."""

    def placed(run: Run) -> Any:
        try:
            return code(run)
        except FAILURES as error:
            raise located(error, offset) from None

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

_COMPILERS: dict[type[ast.expr], Callable[[Compiler, Any], Code]] = {}


def _compiles(kind: type[_N]) -> Callable[[Callable[[Compiler, _N], Code]], None]:
    def register(compiler: Callable[[Compiler, _N], Code]) -> None:
        _COMPILERS[kind] = compiler

    return register


@_compiles(ast.Constant)
def _constant(compiler: Compiler, node: ast.Constant) -> Code:
    value = node.value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        compiler.refuse(f"a constant of type {kind_of(value)}", node)
    return lambda run: value


@_compiles(ast.Name)
def _name(compiler: Compiler, node: ast.Name) -> Code:
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
def _attribute(compiler: Compiler, node: ast.Attribute) -> Code:
    if node.attr not in ("shape", "ndim"):
        compiler.refuse(f"the attribute `.{node.attr}`", node)
    base, attribute = compiler.compile(node.value), node.attr
    start, end = compiler.expression.span_of(node.value)
    written = compiler.expression.text[start:end]

    def code(run: Run) -> Any:
        tensor = base(run)
        if tensor.__class__ is not Tensor:
            raise TypeError(f"`{written}` is {kind_of(tensor)}, which has no `.{attribute}`")
        if tensor.shape is None:
            raise Unbound(f"{written}.shape")
        return tensor.shape if attribute == "shape" else len(tensor.shape)

    return code


@_compiles(ast.Subscript)
def _subscript(compiler: Compiler, node: ast.Subscript) -> Code:
    base = compiler.compile(node.value)
    index = _slice(compiler, node.slice) if isinstance(node.slice, ast.Slice) else compiler.compile(node.slice)

    def code(run: Run) -> Any:
        values, key = base(run), index(run)
        kind = values.__class__
        if kind in SETS or kind not in SIZED:
            raise TypeError(f"{kind_of(values)} takes no index")
        if key.__class__ is not slice:
            run.weigh(key)
        elif kind is not range:
            run.grow(len(values))
        return values[key]

    return code


def _slice(compiler: Compiler, node: ast.Slice) -> Code:
    lower, upper, step = (
        compiler.compile(bound) if bound is not None else lambda run: None
        for bound in (node.lower, node.upper, node.step)
    )
    return lambda run: slice(lower(run), upper(run), step(run))


@_compiles(ast.BinOp)
def _binary(compiler: Compiler, node: ast.BinOp) -> Code:
    apply = BINARY.get(type(node.op))
    if apply is None:
        compiler.refuse("`@`", node)
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    return lambda run: apply(run, left(run), right(run))


@_compiles(ast.UnaryOp)
def _unary(compiler: Compiler, node: ast.UnaryOp) -> Code:
    apply, operand = UNARY[type(node.op)], compiler.compile(node.operand)
    return lambda run: apply(operand(run))


@_compiles(ast.BoolOp)
def _boolean(compiler: Compiler, node: ast.BoolOp) -> Code:
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
def _conditional(compiler: Compiler, node: ast.IfExp) -> Code:
    test, body, orelse = (compiler.compile(part) for part in (node.test, node.body, node.orelse))
    return lambda run: body(run) if test(run) else orelse(run)


@_compiles(ast.Compare)
def _compare(compiler: Compiler, node: ast.Compare) -> Code:
    left = compiler.compile(node.left)
    links = [
        (COMPARE[type(sign)], compiler.compile(right, generator=isinstance(sign, (ast.In, ast.NotIn))))
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
def _tuple(compiler: Compiler, node: ast.Tuple) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: tuple([element(run) for element in elements])


@_compiles(ast.List)
def _list(compiler: Compiler, node: ast.List) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: [element(run) for element in elements]


@_compiles(ast.Set)
def _set(compiler: Compiler, node: ast.Set) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: run.make_set([element(run) for element in elements])


@_compiles(ast.Call)
def _call(compiler: Compiler, node: ast.Call) -> Code:
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


def _misfit(call: Callable[..., Any], count: int, named: Mapping[str, Code]) -> str:
    """Why a function cannot take ``count`` arguments and the ``named`` ones; empty if it can."""
    try:
        _signature(call).bind(None, *[None] * count, **named)
    except TypeError as error:
        return str(error)
    return ""


_signature = lru_cache(maxsize=64)(inspect.signature)


def _keywords(compiler: Compiler, keywords: Sequence[ast.keyword]) -> dict[str, Code]:
    named = {}
    for item in keywords:
        if item.arg is None:
            compiler.refuse("`**`", item.value)
        named[item.arg] = compiler.compile(item.value)
    return named


class _Loop(msgspec.Struct, frozen=True):
    """One ``for`` clause: what it iterates, what each item is bound to, and the price of a round."""

    source: Code
    bind: Callable[[Run, Any], None]
    conditions: tuple[Code, ...]
    cost: int


def _elements(compiler: Compiler, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Code:
    """The elements, lazily; as in Python, the first iterable is looked up at once."""
    first = compiler.compile(node.generators[0].iter, generator=True)
    targets = [name for loop in node.generators for name in _target_names(compiler, loop.target)]
    compiler.scopes.append(dict.fromkeys(targets))
    loops = [_loop(compiler, loop, None if index else first) for index, loop in enumerate(node.generators)]
    before = compiler.nodes
    element = compiler.compile(node.elt)
    loops[-1] = msgspec.structs.replace(loops[-1], cost=loops[-1].cost + compiler.nodes - before)
    compiler.scopes.pop()
    rounds = _rounds(loops)

    def code(run: Run) -> Any:
        values = run.each(first(run))
        return (element(run) for _ in rounds(run, values))

    return code


_compiles(ast.GeneratorExp)(_elements)


@_compiles(ast.ListComp)
def _list_comprehension(compiler: Compiler, node: ast.ListComp) -> Code:
    generate = _elements(compiler, node)
    return lambda run: run.items(generate(run))


@_compiles(ast.SetComp)
def _set_comprehension(compiler: Compiler, node: ast.SetComp) -> Code:
    generate = _elements(compiler, node)
    return lambda run: run.make_set(run.items(generate(run)))


def _loop(compiler: Compiler, node: ast.comprehension, source: Code | None) -> _Loop:
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
    bind, conditions, cost = loop.bind, loop.conditions, loop.cost

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


def _target_names(compiler: Compiler, target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _target_names(compiler, element)
    else:
        compiler.refuse("a loop variable that is not a name", target)


def _target(compiler: Compiler, target: ast.expr) -> Callable[[Run, Any], None]:
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

"""Compiles an expression into nested closures, one for each node; kinds without a registered compiler are refused.

Comprehensions are in :mod:`opschema_cli.schema.comprehensions`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, TypeVar

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
        """Compile ``node``; ``generator`` where a generator is allowed, so that no generator is ever returned as a value."""
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
        """The start of ``node``, in characters."""
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


def compiles(kind: type[_N]) -> Callable[[Callable[[Compiler, _N], Code]], None]:
    """Register the compiler of a kind of node."""

    def register(compiler: Callable[[Compiler, _N], Code]) -> None:
        _COMPILERS[kind] = compiler

    return register


@compiles(ast.Constant)
def _constant(compiler: Compiler, node: ast.Constant) -> Code:
    value = node.value
    if value is not None and not isinstance(value, (bool, int, float, str)):
        compiler.refuse(f"a constant of type {kind_of(value)}", node)
    return lambda run: value


@compiles(ast.Name)
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


@compiles(ast.Attribute)
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


@compiles(ast.Subscript)
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


@compiles(ast.BinOp)
def _binary(compiler: Compiler, node: ast.BinOp) -> Code:
    apply = BINARY.get(type(node.op))
    if apply is None:
        compiler.refuse("`@`", node)
    left, right = compiler.compile(node.left), compiler.compile(node.right)
    return lambda run: apply(run, left(run), right(run))


@compiles(ast.UnaryOp)
def _unary(compiler: Compiler, node: ast.UnaryOp) -> Code:
    apply, operand = UNARY[type(node.op)], compiler.compile(node.operand)
    return lambda run: apply(operand(run))


@compiles(ast.BoolOp)
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


@compiles(ast.IfExp)
def _conditional(compiler: Compiler, node: ast.IfExp) -> Code:
    test, body, orelse = (compiler.compile(part) for part in (node.test, node.body, node.orelse))
    return lambda run: body(run) if test(run) else orelse(run)


@compiles(ast.Compare)
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


@compiles(ast.Tuple)
def _tuple(compiler: Compiler, node: ast.Tuple) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: tuple([element(run) for element in elements])


@compiles(ast.List)
def _list(compiler: Compiler, node: ast.List) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: [element(run) for element in elements]


@compiles(ast.Set)
def _set(compiler: Compiler, node: ast.Set) -> Code:
    elements = [compiler.compile(element) for element in node.elts]
    return lambda run: run.make_set([element(run) for element in elements])


@compiles(ast.Call)
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
    """The reason why a function cannot take ``count`` arguments and the ``named`` ones; empty if it can."""
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

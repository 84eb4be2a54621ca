"""Compiles comprehensions and generator expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from opschema_cli.schema.budget import Run
from opschema_cli.schema.compiler import Code, Compiler, compiles


class _Loop(msgspec.Struct, frozen=True):
    """One ``for`` clause: its iterable, its targets, and the cost of an iteration."""

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


compiles(ast.GeneratorExp)(_elements)


@compiles(ast.ListComp)
def _list_comprehension(compiler: Compiler, node: ast.ListComp) -> Code:
    generate = _elements(compiler, node)
    return lambda run: run.items(generate(run))


@compiles(ast.SetComp)
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

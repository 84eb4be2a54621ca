"""What functions capture: their free variables, exactly as Python has them, and those of the functions they reach."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import PythonFile, Use
from opschema_rules.flydsl.model import FlyTree, nested


class Cell(msgspec.Struct, frozen=True):
    """A variable of the function ``binder`` that functions inside it capture."""

    binder: Body
    name: str

    @property
    def is_parameter(self) -> bool:
        """Whether callers give its value."""
        return any(item.name == self.name for item in self.binder.params)


class Capture(msgspec.Struct, frozen=True):
    """A cell and one function that captures it."""

    cell: Cell
    body: Body


def captured(tree: FlyTree, body: Body) -> list[Capture]:
    """What a function captures, and in turn the functions that it captures: all that its cache key comes from."""
    found: list[Capture] = []
    reached, waiting = {body}, [body]
    while waiting:
        current = waiting.pop()
        for cell in cells(current):
            found.append(Capture(cell, current))
            inner = function_of(tree, cell)
            if inner is not None and inner not in reached:
                reached.add(inner)
                waiting.append(inner)
    return found


def function_of(tree: FlyTree, cell: Cell) -> Body | None:
    """The function that a cell holds: the one ``def`` that gives it its value."""
    functions = tree.bodies.functions_within(cell.binder, cell.name)
    others = any(item.target == cell.name for item in cell.binder.scope.assigns) or cell.is_parameter
    return functions[0] if len(functions) == 1 and not others else None


def cells(body: Body) -> list[Cell]:
    """The free variables of a function, each with the function around it that binds it."""
    around = body.parent
    if around is None:
        return []
    bound = [(name, around.binder(name)) for name in sorted(free_names(body))]
    return [Cell(binder, name) for name, binder in bound if binder is not None]


def free_names(body: Body) -> frozenset[str]:
    """The names of a function that it finds in the functions around it; none where the file's scopes cannot be told."""
    if body.function is None:
        return frozenset()
    return _tables(body.file).get(_key(body), frozenset())


def definition(body: Body) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree of a function; None where its file cannot be read."""
    return _definitions(body.file).get(_key(body)) if body.function is not None else None


def _key(body: Body) -> tuple[str, int]:
    """A function's name and line."""
    assert body.function is not None
    return body.function.name, body.file.source.position(body.function.span.start).line


def uses(tree: FlyTree, capture: Capture) -> Iterator[tuple[Body, Use]]:
    """Where a function and those written inside it read what is captured, in the text's order."""
    for body in nested(tree.bodies, capture.body):
        for use in body.scope.uses:
            if (
                use.name.partition(".")[0] == capture.cell.name
                and body.binder(capture.cell.name) is capture.cell.binder
            ):
                yield body, use


@lru_cache(maxsize=32)
def _tables(file: PythonFile) -> dict[tuple[str, int], frozenset[str]]:
    """The free names of each function of a file, by its name and line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(file.source.text, file.path, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[tuple[str, int], frozenset[str]] = {}
    waiting: list[symtable.SymbolTable] = [top]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        if isinstance(table, symtable.Function):
            found[table.get_name(), table.get_lineno()] = frozenset(table.get_frees())
    return found


@lru_cache(maxsize=16)
def _definitions(file: PythonFile) -> dict[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a file, by their name and line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {(node.name, node.lineno): node for node in ast.walk(tree) if isinstance(node, kinds)}


def dotted(node: ast.AST) -> str:
    """A dotted name; empty for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""

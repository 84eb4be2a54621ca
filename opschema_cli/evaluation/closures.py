"""Closures: the variables that functions capture from others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from opschema_cli.evaluation.free_names import FreeNames
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import PythonFile, Use


class Cell(msgspec.Struct, frozen=True):
    """A variable of the function ``binder`` that functions inside it capture."""

    binder: Body
    name: str

    @property
    def is_parameter(self) -> bool:
        """Whether callers pass its value."""
        return any(item.name == self.name for item in self.binder.params)


class Capture(msgspec.Struct, frozen=True):
    """A cell and one function that captures it."""

    cell: Cell
    body: Body


class Closures:
    """The closures of a program; ``free`` returns the free variables of a file's functions."""

    def __init__(self, bodies: Bodies, free: Callable[[PythonFile], FreeNames]) -> None:
        self.bodies = bodies
        self._free = free

    def cells(self, body: Body) -> list[Cell]:
        """Return the variables that a function captures itself, each with the function that binds it."""
        around = body.parent
        if around is None or body.function is None:
            return []
        names = self._free(body.file).get(body.function.start, ())
        bound = [(name, around.binder(name)) for name in names]
        return [Cell(binder, name) for name, binder in bound if binder is not None]

    def captured(self, body: Body) -> list[Capture]:
        """Return the variables that a function captures, and those that the captured functions capture in turn."""
        found: list[Capture] = []
        reached, waiting = {body}, [body]
        while waiting:
            current = waiting.pop()
            for cell in self.cells(current):
                found.append(Capture(cell, current))
                inner = self.function_of(cell)
                if inner is not None and inner not in reached:
                    reached.add(inner)
                    waiting.append(inner)
        return found

    def function_of(self, cell: Cell) -> Body | None:
        """Return the function in a cell, if a single ``def`` is its only binding."""
        functions = self.bodies.functions_within(cell.binder, cell.name)
        others = any(item.target == cell.name for item in cell.binder.scope.assigns) or cell.is_parameter
        return functions[0] if len(functions) == 1 and not others else None

    def reads(self, capture: Capture) -> Iterator[tuple[Body, Use]]:
        """Yield the reads of a captured variable in a function and its nested functions, in source order."""
        name = capture.cell.name
        for body in self.bodies.inside(capture.body):
            for use in body.scope.uses:
                if use.name.partition(".")[0] == name and body.binder(name) is capture.cell.binder:
                    yield body, use

"""The registration graph of a tree: its operators, and the one that each name, attribute or call refers to.

The pack's own rules look at the operators; packs that build on this one ask the graph. It is made once for each project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.evaluation.values import ClassValue, Frame, Plain, Value, Values
from opschema_cli.project import Project
from opschema_cli.requirements import Version
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, FunctionRef, Program
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.resolution import ClassKey
from opschema_rules.torchlib.annotations import Annotations
from opschema_rules.torchlib.api_calls import api_calls
from opschema_rules.torchlib.aten_tables import table_kernels
from opschema_rules.torchlib.autograd_functions import autograd_functions
from opschema_rules.torchlib.calls import CallFinder
from opschema_rules.torchlib.definitions import Definer
from opschema_rules.torchlib.detection import REGISTERS_CLASSES, TorchlibOptions, cpp_sources, sources
from opschema_rules.torchlib.dialect import TORCH
from opschema_rules.torchlib.hub_kernels import generated_modules, modules_of_kernels
from opschema_rules.torchlib.inference import Inferrer
from opschema_rules.torchlib.mentions import files_that_call
from opschema_rules.torchlib.model import Operator, Tree
from opschema_rules.torchlib.operators import Join, NamedEvent
from opschema_rules.torchlib.registrations import Walker
from opschema_rules.torchlib.search import search_of
from opschema_rules.torchlib.storage import implementations
from opschema_rules.torchlib.values import Handle, OpName
from opschema_rules.torchlib.versions import find_release

if TYPE_CHECKING:
    from opschema_rules.torchlib.cpp_model import CppOperators


class Graph:
    """The operators of one tree, joined with the code that registers, holds and calls them."""

    def __init__(self, tree: Tree, evaluator: Evaluator, join: Join) -> None:
        self.tree = tree
        self.evaluator = evaluator
        self._join = join

    def named(self, name: str) -> list[Operator]:
        """The operators that ``namespace::name`` may be; empty when none is sure to have that name."""
        found = self._join.of_value(OpName(tuple(name.replace("::", ".").split("."))))
        return [*found, *self._unnamed] if found else []

    @cached_property
    def _unnamed(self) -> list[Operator]:
        """The operators whose names are not known."""
        return [operator for operator in self.tree.operators if operator.names is None]

    def called(self, body: Body, callee: Expr, owner: ClassRef | None = None) -> tuple[Operator, ...] | None:
        """Every operator that ``callee`` may be in a body, with an object of the class ``owner`` as its instance; None when it may
        be anything else but ``None``.
        """
        return self.operators_in(self.frame(body, owner), callee)

    def operators_in(self, frame: Frame, callee: Expr) -> tuple[Operator, ...] | None:
        """Return the operators that a callee in a frame refers to."""
        found = self.evaluator.evaluate(frame, callee)
        return self._operators(item for item in found if item != Plain(None))

    def frame(self, body: Body, owner: ClassRef | None = None) -> Frame:
        """The frame of a body whose calls are ignored."""
        return self.evaluator.frames.assumed(self._own(body), owner)

    def _own(self, body: Body) -> Body:
        """Return the same body among those that are evaluated here."""
        bodies = self.evaluator.bodies
        if body.function is None:
            return bodies.module(body.file) if body.cls is None else bodies.cls(ClassRef(body.file, body.cls)) or body
        return bodies.function(FunctionRef(body.file, body.function)) or body

    def _operators(self, values: Iterator[Value]) -> tuple[Operator, ...] | None:
        operators: dict[Operator, None] = {}
        for value in values:
            found = self._join.of_value(value) if isinstance(value, Handle) else self._by_name(value)
            if not found:
                return None
            operators.update(dict.fromkeys(found))
        return tuple(operators)

    def _by_name(self, value: Value) -> list[Operator]:
        return self.named(value.name) if isinstance(value, OpName) and value.name else []

    def attribute(self, ref: ClassRef, name: str) -> Values:
        """Values that an attribute of a class may have, with those that other code writes to it."""
        return self.evaluator.attribute(ClassValue(ref), name)

    def class_of(self, key: ClassKey) -> ClassRef | None:
        """The top-level class of a key."""
        path, start = key
        file = self.evaluator.program.load(path)
        found = next((cls for cls in file.body.classes if cls.start == start), None) if file is not None else None
        return ClassRef(file, found) if file is not None and found is not None else None

    def kernels(self, operator: Operator) -> Iterator[Body]:
        """The Python functions that run as kernels of an operator."""
        return (body for body, _ in implementations(operator))

    @property
    def named_events(self) -> list[NamedEvent]:
        """The events that define operators or register their fakes."""
        return self._join.named_events

    @cached_property
    def holders(self) -> dict[Operator, set[tuple[ClassKey, str]]]:
        """The attributes of classes to which code outside them writes each operator."""
        found: dict[Operator, set[tuple[ClassKey, str]]] = {}
        for attribute, written in self.evaluator.written.items():
            values = (value for item in written for value in self.evaluator.values(item))
            for operator in (one for value in values for one in self._join.of_value(value)):
                found.setdefault(operator, set()).add(attribute)
        return found


@lru_cache(maxsize=2)
def graph_of(project: Project, options: TorchlibOptions) -> Graph:
    """The graph of a project, made once."""
    modules = sources(project, options)
    paths, words = search_of(project, options).finish()
    evaluator = TreeEvaluator(Bodies(_program(project, paths), paths), (TORCH,))
    tree = Tree(project, evaluator, find_release(project, options.torch))
    opaque = any(found for _, found in project.scan(REGISTERS_CLASSES, modules))
    definer = Definer(evaluator, Inferrer(Annotations(evaluator, opaque=opaque), tree.torch))
    join = Join(tree, evaluator, definer)
    walker = Walker(evaluator, filter(None, map(project.python, paths)), words)
    events = walker.walk_all()
    tree.api_calls += api_calls(events)
    join.join(events, _cpp(project, options, tree.torch))
    tree.of_torch += table_kernels(tree, modules)
    others = set(modules) - set(paths)
    callers = sorted({*files_that_call(project, tree.operators, others, paths), *modules_of_kernels(project, others)})
    project.load_python(callers)
    finder = CallFinder(evaluator, join, tree.operators)
    for asked in (paths, callers):  # the latter are parsed meanwhile
        files = [file for file in map(project.python, asked) if file is not None]
        finder.find(project, files)
    tree.functions += autograd_functions(tree, modules)
    return Graph(tree, evaluator, join)


def _program(project: Project, paths: Sequence[str]) -> Program:
    """The modules of the workspace, with those that a build writes."""
    generated = generated_modules(project)

    def load(path: str) -> PythonFile | None:
        return generated.get(path) or project.python(path)

    return Program((*project.workspace.files, *generated), load, paths)


def _cpp(project: Project, options: TorchlibOptions, torch: Version) -> CppOperators | None:
    """Return the operators that the workspace's C++ defines and registers; None if there is none."""
    paths = cpp_sources(project, options)
    if not paths:
        return None
    # Not at the top: most trees register in Python alone.
    from opschema_rules.torchlib.cpp import read_cpp

    return read_cpp(project, paths, options.namespaces, torch)

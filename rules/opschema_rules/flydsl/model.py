"""A tree of FlyDSL kernels: traced functions with their parameters, calls and launches, and the tensors that are wrapped and
described.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import msgspec

from opschema_cli.evaluation.closures import Closures
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.free_names import FreeNames
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body, argument_for
from opschema_cli.source.python import Expr, Function, Param, PythonFile
from opschema_cli.source.text import Place
from opschema_rules.flydsl.answers import Answers
from opschema_rules.flydsl.contract import Contract
from opschema_rules.flydsl.file_index import FREE_NAMES
from opschema_rules.flydsl.names import Names
from opschema_rules.flydsl.own_package import OwnPackage
from opschema_rules.flydsl.words import Words

CONTRACT = "contract"
"""Name of the release that the kernels are for, which results may depend on."""

TracedKind: TypeAlias = Literal["kernel", "jit"]


class Kind(Enum):
    """The kind of value that a parameter of a traced function accepts."""

    TENSOR = "tensor"
    NUMBER = "number at run time"
    CONSTEXPR = "constant at compile time"
    STREAM = "stream"
    POINTER = "pointer"
    TYPE = "type"
    DSL = "other value of the DSL"
    PYTHON = "plain Python value"
    NONE = "not annotated"
    UNKNOWN = "unknown"


class Parameter(msgspec.Struct, frozen=True, eq=False):
    """A parameter; ``dsl`` is the name of its annotation in FlyDSL (``Int32``), empty for any other."""

    param: Param
    kind: Kind
    dsl: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.param.name


class Traced(msgspec.Struct, eq=False, dict=True):
    """A function under ``flyc.kernel`` (which a launch starts on the GPU) or ``flyc.jit`` (which is traced and compiled).

    ``decorator`` is the decorator's expression, or the call ``flyc.jit(function)``.
    """

    body: Body
    kind: TracedKind
    decorator: Expr
    parameters: tuple[Parameter, ...]
    find_calls: Callable[[Traced], list[Call]]

    @cached_property
    def calls(self) -> list[Call]:
        """Its calls that can be followed."""
        return [item for item in self._found if not item.others]

    @cached_property
    def possible_calls(self) -> list[Call]:
        """Calls on results of factories that call this function, or another one that the factory may return instead."""
        return [item for item in self._found if item.others]

    @cached_property
    def _found(self) -> list[Call]:
        return self.find_calls(self)

    @property
    def function(self) -> Function:
        """The function."""
        assert self.body.function is not None
        return self.body.function

    @property
    def factory(self) -> Body | None:
        """The function in which it is defined; None at the top level."""
        around = self.body.parent
        return around if around is not None and around.function is not None else None

    @property
    def name(self) -> str:
        """Its name."""
        return self.function.name

    @property
    def title(self) -> str:
        """Its name, qualified with the functions and classes around it."""
        names = [item.function or item.cls for item in self.body.outward()]
        return ".".join(item.name for item in reversed(names) if item is not None)

    @property
    def place(self) -> Place:
        """The place of its name."""
        return self.body.at(self.function.span)

    @cached_property
    def takes_instance(self) -> bool:
        """Whether its first parameter is the instance or class of a method call."""
        return self.body.parent is not None and self.body.parent.cls is not None and bool(self.body.this)

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a caller fills."""
        return self.parameters[1:] if self.takes_instance else self.parameters

    @cached_property
    def names(self) -> set[str] | None:
        """The first words of all names in the function and in nested ones; None if it may read all its variables."""
        found: set[str] = set()
        for scope in self.body.scope.walk():
            if any(call.callee in ("locals", "vars", "eval", "exec") for call in scope.calls):
                return None
            said = [*(item.name for item in scope.uses), *(item.target for item in scope.assigns), *scope.deleted]
            found.update(item.partition(".")[0] for item in said)
        return found

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of that name."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        return {item.name: item for item in self.parameters}

    @cached_property
    def passed_names(self) -> frozenset[str]:
        """The names of the parameters that a caller fills."""
        return frozenset(item.name for item in self.call_parameters)


class Call(msgspec.Struct, frozen=True, eq=False):
    """A call of a traced function that stands in ``body``; ``launches`` are the calls of ``.launch`` on what a kernel's call gives.

    Of a call of ``flyc.compile``, ``expr`` is what it says of the function: the arguments behind it. ``others`` are the functions
    of which it may be a call instead.
    """

    target: Traced
    body: Body
    expr: Expr
    launches: tuple[Expr, ...] = ()
    others: tuple[Traced, ...] = ()

    @property
    def place(self) -> Place:
        """The place of the call."""
        return self.body.at(self.expr)

    @property
    def launch(self) -> Expr | None:
        """The first of its launches."""
        return self.launches[0] if self.launches else None

    @property
    def compiles(self) -> bool:
        """Whether it is a call of ``flyc.compile``."""
        return self.expr.items[0].start != self.expr.start

    @property
    def unpacks(self) -> bool:
        """Whether ``*`` or ``**`` may pass further arguments."""
        return any(word in ("*", "**") for word in self.expr.keywords)

    def argument(self, name: str) -> Expr | None:
        """Return the argument for that parameter; None if there is none or if unpacking may pass it."""
        return argument_for(self.expr, [item.param for item in self.target.call_parameters], name)


class Wrap(msgspec.Struct, frozen=True, eq=False):
    """A tensor wrapped by ``from_dlpack`` or ``from_torch_tensor``; ``marks`` are the chained marking calls, in order."""

    body: Body
    expr: Expr
    api: str
    marks: tuple[Expr, ...] = ()

    @property
    def tensor(self) -> Expr | None:
        """The tensor."""
        given = self.expr.positional()
        return given[0] if given else self.expr.keyword("tensor")

    @property
    def whole(self) -> Expr:
        """The wrapping expression with its marks."""
        return self.marks[-1] if self.marks else self.expr


class Descriptor(msgspec.Struct, frozen=True, eq=False):
    """A call that makes a buffer descriptor of a tensor. ``params`` are those of the function that is called.

    Its ``num_records`` is how many bytes may be read and written; without, and with ``max_size`` false, it comes from the
    tensor's layout.
    """

    body: Body
    expr: Expr
    api: str
    params: tuple[Param, ...]

    @property
    def place(self) -> Place:
        """The place of the call."""
        return self.body.at(self.expr)

    def argument(self, name: str) -> Expr | None:
        """The argument for one parameter."""
        return argument_for(self.expr, self.params, name)

    @property
    def tensor(self) -> Expr | None:
        """The tensor that is described."""
        return self.argument(self.params[0].name) if self.params else None

    @property
    def max_size(self) -> Expr | None:
        """The argument ``max_size``."""
        return self.argument("max_size")

    @property
    def num_records(self) -> Expr | None:
        """The argument ``num_records_bytes``."""
        return self.argument("num_records_bytes")

    @property
    def takes_bytes(self) -> bool:
        """Whether the called function has a parameter for the number of bytes."""
        return any(item.name == "num_records_bytes" for item in self.params)


class Finder(Protocol):
    """Finds what the files of a tree trace, wrap and describe."""

    def traced_in(self, file: PythonFile) -> list[Traced]:
        """Return the functions that a file traces."""

    def wraps_in(self, file: PythonFile) -> list[Wrap]:
        """Return the tensors that a file wraps."""

    def descriptors_in(self, file: PythonFile) -> list[Descriptor]:
        """Return the descriptors that a file makes."""

    def traced_of(self, body: Body) -> Traced | None:
        """Return the traced function with that body."""

    def applied_in(self, body: Body) -> list[Traced]:
        """Return the functions that ``flyc.jit(function)`` traces in a body."""

    def called_in(self, body: Body) -> list[Traced]:
        """Return the traced functions that a body calls, in the order of their first calls."""

    def calls_of_result(self, function: Body) -> list[tuple[Body, Expr]]:
        """Return the calls on results of factories that may call an untraced function."""


class FlyTree(msgspec.Struct, eq=False, dict=True):
    """The FlyDSL code of the files ``paths``: all of a workspace, or one file that is judged with what it needs of the others.

    What is asked of other files is recorded by ``bodies.program``, ``answers`` and ``words``.
    """

    project: Project
    bodies: Bodies
    names: Names
    contract: Contract
    package: OwnPackage
    answers: Answers
    words: Words
    paths: list[str]
    finder: Finder = msgspec.field(default=None)  # type: ignore[assignment]
    failing: dict[Body, bool] = msgspec.field(default_factory=dict)
    """Whether errors are expected wherever a function is called, for functions examined so far."""

    @cached_property
    def files(self) -> list[PythonFile]:
        """Its files that parse."""
        return [file for file in map(self.bodies.program.load, self.paths) if file is not None]

    @cached_property
    def traced(self) -> list[Traced]:
        """The functions that its files trace."""
        return [item for file in self.files for item in self.finder.traced_in(file)]

    @property
    def launches(self) -> Iterator[tuple[Call, Expr]]:
        """The launches of the kernels of its files, each with the call of the kernel."""
        calls = (call for traced in self.traced for call in traced.calls)
        return ((call, launch) for call in calls for launch in call.launches)

    @cached_property
    def wraps(self) -> list[Wrap]:
        """The tensors that its files wrap."""
        return [item for file in self.files for item in self.finder.wraps_in(file)]

    @cached_property
    def descriptors(self) -> list[Descriptor]:
        """The descriptors that its files make."""
        return [item for file in self.files for item in self.finder.descriptors_in(file)]

    @cached_property
    def evaluator(self) -> Evaluator:
        """The evaluator of its expressions."""
        return TreeEvaluator(self.bodies)

    @cached_property
    def closures(self) -> Closures:
        """The closures of its functions."""
        return Closures(self.bodies, self._free_names)

    def _free_names(self, file: PythonFile) -> FreeNames:
        return self.project.file_readings(FREE_NAMES, [file])[file.path]

    def traced_of(self, body: Body | None) -> Traced | None:
        """Return the traced function with that body."""
        return self.finder.traced_of(body) if body is not None and body.function is not None else None

    def around(self, body: Body) -> Traced | None:
        """Return the innermost traced function that contains a body."""
        return next((found for item in body.outward() if (found := self.traced_of(item)) is not None), None)

    def within(self, traced: Traced) -> Iterator[Body]:
        """Yield the function's body and all nested ones."""
        yield from self.bodies.inside(traced.body)

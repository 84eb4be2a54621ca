"""Subjects of this pack's rules: operators and their registrations.

A registration is one call or decorator. An :class:`Operator` is a definition with all that is registered for it, joined
over files. What cannot be followed is None or :class:`Unresolved`, never a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.requirements import Release, Version
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.cpp_strings import Literal as CppLiteral
from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.python import Assign, Expr, Unpack
from opschema_cli.source.resolution import Unresolved
from opschema_rules.torchlib.ended_libraries import ends_early

if TYPE_CHECKING:
    from opschema_rules.aten.known import AtenOperators
    from opschema_rules.torchlib.cpp_signature import CppSignature

Role: TypeAlias = Literal[
    "fake", "kernel", "autograd", "vmap", "autocast", "torch_dispatch", "effect", "fallthrough", "other"
]
"""The role of a registration. ``fallthrough`` passes calls on to the next key; it is not a kernel, fake or gradient."""

OPTION = "the option `torch`"
NEWEST = "the newest that opschema knows; no requirement file in the root requires torch"
"""The source of a release that the options name."""

Through: TypeAlias = Literal["torch.ops", "handle"]

ProblemKind: TypeAlias = Literal[
    "annotation", "return-annotation", "kind", "type", "tuple", "return-type", "string-annotation", "default",
    "mutates-string", "mutates-name", "mutates-type", "inplace", "out",
]  # fmt: skip
"""Kinds of problems that ``infer_schema`` rejects: a parameter or a return without annotation, a kind of parameter (``*args``,
positional-only), a type, a tuple as a parameter, a type of a returned value, a quoted annotation with names unknown in the
module, a type of default, a ``mutates_args`` that is a string other than ``"unknown"``, names no parameter or one that is not a
tensor, and the requirements of the tags ``inplace`` and ``out``.
"""


class Problem(msgspec.Struct, frozen=True):
    """A problem for which ``infer_schema`` raises, or ``define`` for the tags of a schema string, as data for a rule's message.

    ``name`` is the parameter, empty for the returned value; ``written`` the annotation, default or name as it is written;
    ``instead`` what torch takes in its place, empty when that is not known. Of ``inplace`` and ``out`` ``written`` is empty
    when something is missing, and may be ``positional``, ``mutates_args`` or a number of returns.
    """

    kind: ProblemKind
    place: Place
    name: str = ""
    written: str = ""
    instead: str = ""


class Tree(msgspec.Struct, eq=False, dict=True):
    """One workspace: its code, the torch release that it is for, its operators, and registrations that belong to none of them.

    ``namespaces`` are those that the tree defines operators in. ``unresolved`` are the registrations that cannot be followed,
    and why. ``cpp_registrations`` are all of C++, ``cpp_problems`` what torch refuses in its blocks. ``of_torch`` are the
    registrations for operators of PyTorch, ``rows`` the tables of such, ``api_calls`` the calls that register. ``target_of_both``
    gives the library that two C++ files are surely part of; empty if there is none. ``may_be_defined`` is whether a definition
    that cannot be followed may be of a qualified name. ``functions`` are those of autograd in the same files.
    ``runtime_kernels`` are those of ExecuTorch's own runtime.
    """

    project: Project
    evaluator: Evaluator
    release: Release
    operators: list[Operator] = msgspec.field(default_factory=list)
    strays: list[StrayRegistration] = msgspec.field(default_factory=list)
    namespaces: frozenset[str] = frozenset()
    unresolved: list[tuple[Place, str]] = msgspec.field(default_factory=list)
    cpp_registrations: list[CppRegistration] = msgspec.field(default_factory=list)
    cpp_problems: list[CppProblem] = msgspec.field(default_factory=list)
    runtime_kernels: list[CppRegistration] = msgspec.field(default_factory=list)
    of_torch: list[StrayRegistration] = msgspec.field(default_factory=list)
    rows: list[Row] = msgspec.field(default_factory=list)
    api_calls: list[ApiCall] = msgspec.field(default_factory=list)
    target_of_both: Callable[[str, str], str] = lambda path, other: ""
    may_be_defined: Callable[[str], bool] = lambda name: False
    functions: list[AutogradFunction] = msgspec.field(default_factory=list)

    @property
    def bodies(self) -> Bodies:
        """The code."""
        return self.evaluator.bodies

    @cached_property
    def claims(self) -> Counter[str]:
        """The number of operators that may have each name; under the empty one, of those that may have any."""
        return Counter(name for operator in self.operators for name in operator.names or ("",))

    @cached_property
    def by_name(self) -> dict[str, list[Operator]]:
        """The operators that may have each name: several where a condition decides which definition takes place."""
        found: dict[str, list[Operator]] = {}
        for operator in self.operators:
            for name in operator.names or ():
                found.setdefault(name, []).append(operator)
        return found

    @cached_property
    def of_torch_by_function(self) -> dict[int, list[StrayRegistration]]:
        """The kernels in Python for operators of torch, by the identity of their functions."""
        found: dict[int, list[StrayRegistration]] = {}
        for item in self.of_torch:
            if isinstance(item.registration.function, Body) and item.registration.role == "kernel":
                found.setdefault(id(item.registration.function), []).append(item)
        return found

    @cached_property
    def aten(self) -> AtenOperators:
        """The operators of torch itself."""
        # Not at the top: most trees register nothing for them.
        from opschema_rules.aten.known import aten_operators

        return aten_operators(self.project, self.torch, named=self.release.source == OPTION and not self.release.doubt)

    @property
    def torch(self) -> Version:
        """The release of torch that it is for."""
        return self.release.version

    @property
    def names_no_release(self) -> bool:
        """Whether the newest release is assumed because nothing in the tree requires one."""
        return self.release.source == NEWEST

    @property
    def release_doubt(self) -> str:
        """The reason why the tables of that release are not certain to apply; empty if they are."""
        return self.release.doubt


class Row(msgspec.Struct, frozen=True):
    """A row of a table of kernels: the operator of torch that it names, the places of the name and of the table, and whether there
    is more in the row than a function, which may be a condition.
    """

    name: str
    place: Place
    table: Place
    function: Expr
    conditional: bool = False


class ApiCall(msgspec.Struct, frozen=True):
    """A call of a function of ``torch.library``: its full ``name``, where it is named, and the keywords with their values."""

    name: str
    body: Body
    place: Place
    keywords: tuple[tuple[str, Place], ...] = ()


class Definition(msgspec.Struct, frozen=True, eq=False):
    """The definition of an operator: ``custom_op``/``triton_op`` on a function, ``define`` with a schema, or ``m.def`` in C++.

    ``schema`` is what torch's dispatcher gets: parsed from the string, or inferred from the function as ``infer_schema`` does
    (a type that it would refuse, or that cannot be followed, is the empty name; it marks nothing as written when ``mutates``
    is None). ``written`` is where the schema is stated: the string, or the function's name. ``function`` is the Python
    function under the decorator, ``call`` the registering call with ``body`` around it; both None for C++. ``explicit`` is
    true when a schema string was given. ``mutates`` are the names of ``mutates_args``, None when not told (or ``"unknown"``,
    which ``mutates_unknown`` says). ``tags`` are those of ``torch.Tag``, as ``inplace``. ``problems`` are what
    ``infer_schema`` refuses, and what tags forbid, ``errors`` what is wrong with a schema string (spans in its own text).
    ``name_place`` is where the name is written; in C++ ``literal`` leads from the schema's text to the file. ``conditional``
    is true when it may not take place, in C++ under the ``conditions`` of the preprocessor or (``branch``) in an ``if`` or a loop.
    ``helper`` is the function that makes the call, where it is called for that.
    """

    api: Literal["custom_op", "triton_op", "define", "cpp"]
    place: Place
    written: Place
    schema: OperatorSchema | Unresolved
    explicit: bool
    body: Body | None = None
    call: Expr | None = None
    function: Body | None = None
    mutates: frozenset[str] | None = None
    mutates_place: Place | None = None
    mutates_unknown: bool = False
    name_place: Place | None = None
    device_types: frozenset[str] | None = frozenset()
    tags: frozenset[str] | None = frozenset()
    problems: tuple[Problem, ...] = ()
    errors: tuple[SchemaError, ...] = ()
    literal: CppLiteral | None = None
    conditional: bool = False
    conditions: tuple[Condition, ...] = ()
    branch: bool = False
    helper: str = ""


class Registration(msgspec.Struct, frozen=True, eq=False):
    """One thing registered for an operator.

    ``keys`` are dispatch keys or device types (empty: all), None when not known. ``function`` is the Python function
    (Unresolved when it cannot be followed); None for C++, where only the place is known. ``setup`` is the ``setup_context``
    of an autograd registration. ``conditional`` is true when it stands under a condition or in a handler, so that it may
    not take place. ``default_place`` is where the operator's name is written with the overload ``.default``, as a string.
    ``partial`` is the function that a ``functools.partial`` makes, for which ``function`` is unresolved.
    ``refused`` names what is called where the call lacks its function and torch takes it for no decorator. ``form`` is what is
    called (``register_fake``), ``helper`` the function that makes the call where it is called for that, ``symbol`` the C++
    function as it is written, ``kernels`` its signatures, one for each build that has another; None of what is not a function.
    """

    role: Role
    place: Place
    keys: frozenset[str] | None = frozenset()
    function: Body | Unresolved | None = None
    setup: Body | Unresolved | None = None
    body: Body | None = None
    call: Expr | None = None
    conditional: bool = False
    language: Literal["python", "cpp"] = "python"
    default_place: Place | None = None
    refused: str = ""
    form: str = ""
    helper: str = ""
    symbol: str = ""
    kernels: tuple[CppSignature, ...] | Unresolved | None = None
    partial: Body | None = None


class CppRegistration(msgspec.Struct, frozen=True, eq=False):
    """An ``m.impl``, or the function of an ``m.def``; ``name`` as in a definition, ``function`` as written.

    ``path`` is the file in which that is written, ``namespace`` the one of C++ around it; ``stable`` that of the stable ABI.
    """

    name: str
    registration: Registration
    conditions: tuple[Condition, ...] = ()
    function: str = ""
    path: str = ""
    namespace: str = ""
    stable: bool = False


class CppProblem(msgspec.Struct, frozen=True):
    """A call of a C++ library that torch refuses, whatever it registers; ``other`` is the place of the other side."""

    place: Place
    message: str
    other: Place | None = None


class OpCall(msgspec.Struct, frozen=True, eq=False):
    """A call of an operator: ``torch.ops.ns.name(...)``, its handle, or the decorated function; and the consumer of its result,
    if that does nothing but use the call.
    """

    place: Place
    body: Body
    call: Expr
    through: Through
    taken: Unpack | Assign | None = None


class Operator(msgspec.Struct, eq=False, dict=True):
    """One operator with all that is registered for it.

    ``names`` are the qualified names (``ns::name``, ``ns::name.overload``) that it may have: several when a factory makes
    one operator for each, None when they are not known. ``complete`` is false when registrations that cannot be followed
    may be for it, so that nothing may be said of what is missing.
    """

    tree: Tree
    names: frozenset[str] | None
    definition: Definition
    registrations: list[Registration] = msgspec.field(default_factory=list)
    calls: list[OpCall] = msgspec.field(default_factory=list)
    complete: bool = True

    __repr__ = object.__repr__

    @property
    def release_doubt(self) -> str:
        """The reason why no known release of torch is certain to apply; empty if one is."""
        return self.tree.release.doubt

    @property
    def title(self) -> str:
        """The name in findings: its one name, the first of several, or the name of its function."""
        if self.names:
            return min(self.names)
        function = self.definition.function
        return function.function.name if function is not None and function.function is not None else "an operator"

    @property
    def place(self) -> Place:
        """The place of the definition."""
        return self.definition.place

    @property
    def mutated(self) -> frozenset[str] | None:
        """The arguments that it is declared to write; None if that is not known."""
        schema = self.definition.schema
        if self.definition.explicit and isinstance(schema, OperatorSchema):
            return frozenset(item.name for item in schema.arguments if item.is_write)
        return self.definition.mutates

    def other_schemas(self, registration: Registration) -> list[OperatorSchema]:
        """The schemas of other definitions of its names for which a registration may be, where conditions decide."""
        definition = self.definition
        if not (definition.conditional and (registration.conditional or ends_early(definition.body, definition.call))):
            return []
        others = {
            id(other): other for name in self.names or () for other in self.tree.by_name[name] if other is not self
        }
        registered = (one for one in others.values() if any(item is registration for item in one.registrations))
        schemas = (one.definition.schema for one in registered)
        return [schema for schema in schemas if isinstance(schema, OperatorSchema)]

    def of_role(self, role: Role) -> list[Registration]:
        """The registrations of one role."""
        return [item for item in self.registrations if item.role == role]


class StrayRegistration(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A registration for a qualified name that nothing in the tree defines, in a namespace in which the tree defines others."""

    tree: Tree
    name: str
    registration: Registration

    __repr__ = object.__repr__


class StrayUse(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A use of ``torch.ops`` by a name that nothing defines, and the name of the operator that is meant; ``sure`` unless another
    package may define it.
    """

    tree: Tree
    name: str
    meant: str
    place: Place
    sure: bool

    __repr__ = object.__repr__


class DispatcherCall(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A look-up of an operator in C++, with the type that it is called with where that is written."""

    tree: Tree
    name: str
    overload: str
    place: Place
    signature: CppSignature | None = None

    __repr__ = object.__repr__


class AutogradFunction(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A subclass of ``torch.autograd.Function``: its ``forward``, ``backward`` and, if it has one, ``setup_context``."""

    tree: Tree
    name: str
    forward: Body
    backward: Body
    setup: Body | None = None

    __repr__ = object.__repr__


class AtenKernel(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A kernel for an operator of torch itself: ``name`` is ``add.Tensor``, without its namespace.

    ``conditions`` are those of the preprocessor under which it is registered in C++.
    """

    tree: Tree
    name: str
    registration: Registration
    conditions: tuple[Condition, ...] = ()

    __repr__ = object.__repr__

    @property
    def title(self) -> str:
        """The name in findings."""
        return f"aten::{self.name}"

"""The pack's subjects: descriptions of programs (``kernel_config.py``, ``CALLABLE``), and specs beside entries of pypto-lib.

What is not known is None or has a reason, and no rule judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.source.call_misfits import Fault
from opschema_cli.source.python import Class, Expr, Param, PythonFile
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import Entry
from opschema_rules.pypto.scenes import Scene

DslDirection: TypeAlias = Literal["in", "out", "inout", "scalar"]
"""A direction in pypto's language: ``pl.Tensor``, ``pl.Out``, ``pl.InOut``, ``pl.Scalar``."""


class Direction(str, Enum):
    """A member of the runtime's ``ArgDirection``."""

    SCALAR = "SCALAR"
    IN = "IN"
    OUT = "OUT"
    INOUT = "INOUT"


class Declared(msgspec.Struct, frozen=True):
    """One entry of a signature, and its place; for a computed one ``expr`` is the entire list and ``written`` is false."""

    direction: Direction
    expr: Expr
    written: bool = True


class Signature(msgspec.Struct, frozen=True):
    """A list of directions. ``slots`` is None if it is not known, and ``reason`` says why. ``enum`` is the enum's name in the
    list (``D``, ``ArgDirection``), empty if the list is empty or computed. ``refused`` are entries that are not directions.
    """

    expr: Expr
    slots: tuple[Declared, ...] | None
    reason: str = ""
    enum: str = ""
    refused: tuple[Expr, ...] = ()

    @property
    def is_computed(self) -> bool:
        """Whether its entries are computed, so that none can be edited."""
        return any(not slot.written for slot in self.slots or ())

    @property
    def tensors(self) -> tuple[Declared, ...]:
        """The entries that are tensors, in order."""
        return tuple(slot for slot in self.slots or () if slot.direction is not Direction.SCALAR)


@dataclass(eq=False)
class Part:
    """A dict of a description: its fields, each with key and value. ``source`` is the workspace path of the C++ source, None
    when it is not known or not there; ``missing`` that path where it is known and there is no such file, else empty.
    ``signature`` is None when there is none. ``written`` is false of a dict that is computed, so that nothing of it can be edited.
    """

    program: Program = field(repr=False)
    expr: Expr
    fields: Mapping[str, tuple[Expr, Expr]]
    source: str | None
    signature: Signature | None
    missing: str = field(default="", kw_only=True)
    written: bool = field(default=True, kw_only=True)

    @property
    def place(self) -> Place:
        """The place of the dict."""
        return self.at(self.expr)

    def at(self, target: Expr | Span) -> Place:
        """Return the place of a stretch of the description's file."""
        return Place(self.program.file.path, target.span if isinstance(target, Expr) else target)

    def related(self, target: Expr | Span, message: str) -> Related:
        """Return a stretch of the description's file as the other side of a finding."""
        return Related(self.at(target), message)

    def text(self, name: str) -> str | None:
        """Return a field that is a string; None if it is missing or not known."""
        found = self.fields.get(name)
        value = found[1].value if found is not None and found[1].kind == "const" else None
        return value if isinstance(value, str) else None


@dataclass(eq=False)
class Kernel(Part):
    """A kernel: its ``func_id``, None when that is not known. ``title`` is how messages call it. ``indexes`` are the numbers in
    its ``arg_index``, None when it has none or they are not known; ``fixed`` says that no code of the file can change them.
    """

    func_id: int | None = None
    indexes: tuple[int, ...] | None = None
    fixed: bool = False

    @property
    def title(self) -> str:
        """``kernel 3 (`softmax`)``."""
        name = self.text("name") or (self.source or "").rpartition("/")[2].partition(".")[0]
        number = f"kernel {self.func_id}" if self.func_id is not None else "a kernel"
        return f"{number} (`{name}`)" if name else number


@dataclass(eq=False)
class OrchestrationPart(Part):
    """The orchestration: the name of its function and the entry found for it, None if it cannot be read. ``shared`` if other
    programs of the workspace have the same source.
    """

    function: str = ""
    entry: Entry | None = None
    shared: bool = False


@dataclass(eq=False)
class Program:
    """One description in ``file``: a module (``KERNELS``, ``ORCHESTRATION``), a class (``CALLABLE``) or a call
    (``ChipCallable.build``).

    ``base`` is the folder that relative sources are relative to; ``runtime`` the runtime that it is for, empty when that is
    not told. ``unnumbered`` are kernels without a ``func_id``. ``whole`` says that every kernel of it is known, so that an id
    that is not here is nowhere; ``listed`` that it is one of several callables, of which a case may run none. ``owner`` is the
    class that describes it, ``scene`` the arguments that a test passes to it, where they are known. ``joined`` holds its tasks,
    once a rule has asked for them.
    """

    project: Project = field(repr=False)
    file: PythonFile
    form: Literal["module", "class", "call"]
    name: str
    span: Span
    base: str
    contract: Contract
    runtime: str = ""
    kernels: list[Kernel] = field(default_factory=list)
    unnumbered: list[Kernel] = field(default_factory=list)
    orchestration: OrchestrationPart | None = None
    whole: bool = True
    listed: bool = False
    owner: Class | None = None
    scene: Scene | None = None
    joined: dict[str, tuple[object, ...]] = field(default_factory=dict, repr=False)

    def kernel(self, func_id: int | None) -> Kernel | None:
        """Return the only kernel with that id; None if there is none or several."""
        found = self._by_id.get(func_id, ()) if func_id is not None else ()
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_id(self) -> dict[int, list[Kernel]]:
        """The kernels of each id; a program may have hundreds."""
        found: dict[int, list[Kernel]] = {}
        for item in self.kernels:
            if item.func_id is not None:
                found.setdefault(item.func_id, []).append(item)
        return found


SignatureRule = Literal["sum", "arg_index", "widest"]

NEWEST = "the newest runtime is assumed"
"""The source of a contract that nothing in the tree shows."""


class Contract(msgspec.Struct, frozen=True):
    """Demands of the tree's runtime: limits of arguments, and how a kernel's signature meets the payload.

    ``sum``: the signatures of a task's kernels together have one entry for each tensor of the payload (until simpler
    ``b972b288e``). ``arg_index``: each entry names its slot in a parallel list (until ``b1e4bd239``). ``widest``: entry *i* is
    slot *i*, and the longest signature counts. ``source`` says how this was found out, ``limits_source`` how the limits were;
    ``certain`` is false when nothing in the tree tells and the newest is assumed. ``dumps`` is false where the tree's runtime
    reads no kernel's signature at all; a limit is 0 where it is not known. ``names_entry`` is false where the runtime on the
    device looks for ``aicpu_orchestration_entry``, whatever the description names.
    """

    rule: SignatureRule = "widest"
    core_tensors: int = 32
    core_scalars: int = 16
    chip_tensors: int = 256
    chip_scalars: int = 128
    source: str = NEWEST
    limits_source: str = "the newest runtime"
    certain: bool = False
    dumps: bool = True
    names_entry: bool = True

    @property
    def told(self) -> str:
        """The addition to messages that only apply to older runtimes: how signatures are read, and where that is shown."""
        return "" if self.rule == "widest" else f" (`{self.rule.replace('_', '-')}`, says {self.source})"


class SpecMisfit(msgspec.Struct, frozen=True):
    """An argument that a class of specs does not accept, or a missing one, with the names of the accepted ones."""

    place: Place
    cls: str
    fault: Fault
    name: str
    known: tuple[str, ...]


class SpecItem(msgspec.Struct, frozen=True, eq=False):
    """A ``TensorSpec(...)`` of pypto-lib: the name it is for, whether it is an output, has an initial value and stays on the
    device (None when that is not known). ``is_scalar`` of a ``ScalarSpec(...)``, ``misfit`` of a call that fails.
    """

    file: PythonFile
    name: str
    call: Expr
    is_output: bool | None
    has_init: bool | None
    resident: bool | None
    is_scalar: bool = False
    misfit: SpecMisfit | None = None

    @property
    def place(self) -> Place:
        """The place that marks it as an output; otherwise the call."""
        return self._said("is_output")

    @property
    def value_place(self) -> Place:
        """The place of the initial value; otherwise the call."""
        return self._said("init_value")

    def _said(self, keyword: str) -> Place:
        said = self.call.keyword(keyword)
        return Place(self.file.path, said.span if said is not None else self.call.span)


class EntryParam(msgspec.Struct, eq=False):
    """A parameter of an entry: the direction that its annotation says, None when it is not known, and the specs that are
    passed for it. ``whole`` says that no further spec may be, ``hosts`` are the parameters of ``@pl.jit.host`` entries that
    are handed on to it, whose specs are its own then. ``read`` says that the entry's own body surely reads it.
    """

    param: Param
    direction: DslDirection | None
    specs: tuple[SpecItem, ...]
    whole: bool
    read: bool = False
    hosts: tuple[Place, ...] = ()

    @property
    def outputs(self) -> list[SpecItem]:
        """The specs that are outputs."""
        return [item for item in self.specs if item.is_output]


class SpecOrder(msgspec.Struct, frozen=True):
    """Fully known specs, in the order in which they are written and passed: those of tensors; with ``counted``, all that are
    passed, each of which is one argument of the entry in a run that should succeed.
    """

    items: tuple[SpecItem, ...]
    counted: bool


class WrongCall(msgspec.Struct, frozen=True):
    """A call of a function of pypto's language with the wrong number of arguments."""

    place: Place
    target: Place
    name: str
    taken: int
    passed: int


class UnknownKey(msgspec.Struct, frozen=True):
    """An item that a golden function reads by a name that none of the specs of ``call`` has."""

    place: Place
    key: str
    names: tuple[str, ...]
    call: Place


class UnusedComparison(msgspec.Struct, frozen=True):
    """A comparison function for a missing output: its key, and the spec of that name, if there is one."""

    place: Place
    key: str
    spec: Place | None
    outputs: tuple[str, ...]


@dataclass(eq=False)
class SpecEntry:
    """A ``@pl.jit`` function (``host`` for ``@pl.jit.host``), or the orchestration of a ``@pl.program``, with the specs that a
    harness passes to it. ``spelled`` is how its file writes ``pl.Out`` and ``pl.InOut``, where it has a way to.
    """

    project: Project = field(repr=False)
    file: PythonFile
    name: str
    span: Span
    outer: Span
    host: bool
    params: list[EntryParam]
    spelled: Mapping[str, str]
    lists: tuple[SpecOrder, ...] = ()
    wrong_calls: tuple[WrongCall, ...] = ()
    unknown_keys: tuple[UnknownKey, ...] = ()
    misfits: tuple[SpecMisfit, ...] = ()
    unused_comparisons: tuple[UnusedComparison, ...] = ()

    def at(self, target: Expr | Span) -> Place:
        """Return the place of a stretch of the entry's file."""
        return Place(self.file.path, target.span if isinstance(target, Expr) else target)

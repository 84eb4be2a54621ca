"""The pack's subjects: descriptions of programs (``kernel_config.py``, ``CALLABLE``), and specs beside entries of pypto-lib.

What cannot be told is None or has a reason, and no rule judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.project import Project
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import Entry


class Direction(str, Enum):
    """A member of the runtime's ``ArgDirection``."""

    SCALAR = "SCALAR"
    IN = "IN"
    OUT = "OUT"
    INOUT = "INOUT"


@dataclass(frozen=True)
class Declared:
    """One entry of a signature, and where it is written."""

    direction: Direction
    expr: Expr


@dataclass(frozen=True)
class Signature:
    """A list of directions as it is written. ``slots`` is None when it is not known (made by a call, from a table), and
    ``reason`` says why. ``enum`` is how the list spells the enum (``D``, ``ArgDirection``), empty when it has no entry.
    """

    expr: Expr
    slots: tuple[Declared, ...] | None
    reason: str = ""
    enum: str = ""

    @property
    def tensors(self) -> tuple[Declared, ...]:
        """The entries that are tensors, in order."""
        return tuple(slot for slot in self.slots or () if slot.direction is not Direction.SCALAR)


@dataclass(eq=False)
class Part:
    """A dict of a description: its fields, each with key and value. ``source`` is the workspace path of the C++ source, None
    when it is not known or not there; ``signature`` is None when there is none.
    """

    program: Program = field(repr=False)
    expr: Expr
    fields: Mapping[str, tuple[Expr, Expr]]
    source: str | None
    signature: Signature | None

    @property
    def place(self) -> Place:
        """The dict."""
        return self.at(self.expr)

    def at(self, target: Expr | Span) -> Place:
        """A stretch of the description's file as a place."""
        return Place(self.program.file.path, target.span if isinstance(target, Expr) else target)

    def related(self, target: Expr | Span, message: str) -> Related:
        """The same as the other side of a finding."""
        return Related(self.at(target), message)

    def text(self, name: str) -> str | None:
        """A field that is a string; None when it is absent or not known."""
        found = self.fields.get(name)
        value = found[1].value if found is not None and found[1].kind == "const" else None
        return value if isinstance(value, str) else None


@dataclass(eq=False)
class Kernel(Part):
    """A kernel: its ``func_id``, None when that is not known. ``title`` is how messages call it."""

    func_id: int | None = None

    @property
    def title(self) -> str:
        """``kernel 3 (`softmax`)``."""
        name = self.text("name") or (self.source or "").rpartition("/")[2].partition(".")[0]
        number = f"kernel {self.func_id}" if self.func_id is not None else "a kernel"
        return f"{number} (`{name}`)" if name else number


@dataclass(eq=False)
class OrchestrationPart(Part):
    """The orchestration: the name of its function, and what that is found to submit; None when it cannot be read."""

    function: str = ""
    entry: Entry | None = None


@dataclass(eq=False)
class Program:
    """One description: a module (``KERNELS``, ``ORCHESTRATION``) or a class (``CALLABLE``) in ``file``.

    ``base`` is the folder that relative sources are relative to; ``runtime`` the runtime that it is for, empty when that is
    not told. ``whole`` tells that every kernel of it is known, so that an id that is not here is nowhere.
    """

    project: Project = field(repr=False)
    file: PythonFile
    form: Literal["module", "class"]
    name: str
    span: Span
    base: str
    contract: Contract
    runtime: str = ""
    kernels: list[Kernel] = field(default_factory=list)
    orchestration: OrchestrationPart | None = None
    whole: bool = True

    def kernel(self, func_id: int | None) -> Kernel | None:
        """The one kernel of that id; None when there is none or are several."""
        found = [item for item in self.kernels if func_id is not None and item.func_id == func_id]
        return found[0] if len(found) == 1 else None


SignatureRule = Literal["sum", "arg_index", "widest"]


@dataclass(frozen=True)
class Contract:
    """What the runtime of the tree demands: limits of arguments, and how a kernel's signature meets the payload.

    ``sum``: the signatures of a task's kernels together have one entry for each tensor of the payload (until simpler
    ``b972b288e``). ``arg_index``: each entry names its slot in a parallel list (until ``b1e4bd239``). ``widest``: entry *i* is
    slot *i*, and the longest signature counts. ``source`` says how this was found out; ``certain`` is false when nothing in the
    tree tells and the newest is assumed.
    """

    rule: SignatureRule = "widest"
    core_tensors: int = 32
    core_scalars: int = 16
    chip_tensors: int = 256
    chip_scalars: int = 128
    source: str = "the newest runtime is assumed"
    certain: bool = False


@dataclass(frozen=True, eq=False)
class SpecItem:
    """A ``TensorSpec(...)`` of pypto-lib: the name it is for, whether it is an output and has an initial value (None when that
    is not known).
    """

    name: str
    call: Expr
    is_output: bool | None
    has_init: bool | None


@dataclass(eq=False)
class SpecPair:
    """A function that builds specs, and the ``@pl.jit`` entry (or program) that they are for: its parameters with the
    directions that their annotations say (None when not known).
    """

    file: PythonFile
    builder: str
    specs: list[SpecItem]
    entry_file: PythonFile
    entry: str
    params: list[tuple[Param, Literal["in", "out", "inout", "scalar"] | None]]

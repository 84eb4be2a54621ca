"""Calls, cells, plans and results of the harness. No torch here: plans are made without it.

Everything is a msgspec struct, for it travels between processes, and into files that shards are merged from.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Values = Literal["normal", "special", "zeros", "wide", "large", "ties"]
"""Contents of floating-point inputs: normal numbers; NaN, infinities, denormals and zeros among them; zeros only; heavy tails,
up to 55; rows of numbers from 8 to near overflow; multiples of one half, many of them equal, with zeros of both signs. Integers
may also be wide: up to 2**25.
"""

Layout = Literal["contiguous", "strided", "sliced", "transposed", "expanded", "offset"]
"""The layout of inputs in memory: contiguous; every second element of a larger tensor; the columns of a wider matrix; the last
two axes exchanged; the first axis repeated, with stride 0; contiguous, but not at the start of the storage.
"""

Side = Literal["before", "after", "reference", "search", "search-before"]
"""The work of a process: the op of one tree, the reference, or the search for calls that an operator accepts."""


class Input(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tensor that a call passes. ``low`` and ``high`` bound integers and floats (``high`` excluded for integers). Integers that
    are ``ascending`` along the last axis begin with the lowest value and end with the highest one, as offsets of parts do; an
    ``index`` without bounds lies below every size of the other inputs.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    mutated: bool = False
    low: float | None = None
    high: float | None = None
    ascending: bool = False
    index: bool = False


Weakness = Literal["constant", "undefined", "not finite", "empty", "nothing"]
"""The reasons why the results of a call test little, from the mildest to the worst: all elements of each output are equal; an
output is undefined; no element is finite; there are no elements; there is no output.
"""


SHOWS_NOTHING: frozenset[Weakness] = frozenset({"not finite", "empty", "nothing"})
"""Results in which two kernels could differ only by shapes."""


class Output(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The declaration of one tensor that the call returns; None means undeclared. An ``optional`` one may be undefined, which is
    None in Python: a torch operator may leave out results that a mask turns off.
    """

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    optional: bool = False


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A concrete call of an op by its declaration: the arguments of its constructor and its call, and the expected outputs.

    ``params`` are plain data, and go by name to the constructor or to the call, whichever takes them; ``defaults`` are
    declared values of params that the op is left to set itself, which a reference is given; ``tuples`` names the params whose
    declared type is a tuple, since plain data has lists in their place; ``static_dims`` are the params
    that repeat a size of an input, which a reference is not given unless it takes them; ``omitted`` are optional inputs
    left out; ``aliases`` are outputs that may share storage with an input, by name. ``lists`` are arguments that take a list of
    inputs: the names of these by the argument's.
    """

    inputs: tuple[Input, ...]
    params: dict[str, Any] = {}
    tuples: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}
    static_dims: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    omitted: tuple[str, ...] = ()
    aliases: dict[str, str] = {}
    lists: dict[str, tuple[str, ...]] = {}


WRONG = "wrong-"
"""The beginning of the shape of a cell whose call the declaration does not allow."""


FOUND_ROWS = ("call-", "values-")
"""The beginnings of the rows of calls that a search found: an operator may take them that they are not right for."""


LARGE = "large-tensor"
"""The shape of a cell in which a tensor has more than 2³¹ elements."""


class Growth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Two calls that differ in one size, its value in both, and so the calls at all other sizes."""

    fewer: Call
    more: Call
    sizes: tuple[int, int]


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to be checked: op, workload row, dtype, shape derived from the row, values, layout, seed.

    ``again`` cells repeat an earlier one after other shapes went through the same process. The call of a cell whose shape begins
    with ``wrong-`` is one that an op should refuse: ``wrong-dtype``, ``wrong-size``, ``wrong-rank``, ``wrong-device``. If it has a
    ``growth``, a tensor has more than 2³¹ elements: see :mod:`opschema_cli.verify.large`.
    """

    op: str
    row: str
    dtype: str
    shape: str = "row"
    values: Values = "normal"
    layout: Layout = "contiguous"
    seed: int = 0
    again: bool = False
    call: Call
    growth: Growth | None = None

    @property
    def id(self) -> str:
        """Its name, from which its inputs follow: ``Op[row-float16-odd-special-strided-s1-again]``."""
        parts = [self.row, self.dtype, self.shape]
        parts += [part for part in (self.values, self.layout) if part not in ("normal", "contiguous")]
        parts += [f"s{self.seed}"] + ["again"] * self.again
        return f"{self.op}[{'-'.join(parts)}]"

    @property
    def wrong(self) -> bool:
        """Whether the op should refuse its call."""
        return self.shape.startswith(WRONG)

    @property
    def data_key(self) -> str:
        """The key that its inputs are drawn from: the same for a cell and its repetition."""
        return self.id.replace("-again]", "]")


class Tolerance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tolerated distance of a result from the float64 reference: ``ulps`` of its dtype, and ``kappa`` times the error that the
    reference makes in float32. A changed one needs a ``reason``.
    """

    ulps: float = 1.0
    kappa: float = 32.0
    reason: str = ""


class Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The op of one side: a class or function in a module below ``root``, imported with ``paths`` in front of ``sys.path``.

    ``recipe`` is a file of the repository with recipes (see docs/verify.md), empty if there is none. ``operators`` are the
    torch.library operators that a call runs, and ``operators_attribute`` the attribute of the op that names more. With
    ``operator`` (``namespace::name`` or ``namespace::name.overload``) the op is that operator, which importing ``module``
    registers, or the ``imports``: modules, or files and folders of built extensions; ``cuda_imports`` register its
    kernels for CUDA, and are imported where there is a GPU. If this does not register it, functions of the module are called that
    are ``compiling`` it. On a ``backend`` it is called with tensors of the device that the
    imports add to torch.
    """

    root: str
    module: str
    name: str
    paths: tuple[str, ...] = ()
    recipe: str = ""
    operators: tuple[str, ...] = ()
    operators_attribute: str = ""
    operator: str = ""
    imports: tuple[str, ...] = ()
    cuda_imports: tuple[str, ...] = ()
    compiling: tuple[str, ...] = ()
    backend: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of a plan: the cells of one op, the elements of one tensor in an unchanged workload row and in a derived one, and
    the kinds of devices that a call may mix. With ``large`` each op has a cell with a tensor of more than 2³¹ elements.
    """

    cells: int = 40
    row_elements: int = 1 << 24
    derived_elements: int = 1 << 20
    devices: int = 1
    large: bool = False


class Search(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The calls of an operator that the search for its cells begins with: ``samples``, by their labels, from workload rows and the
    repository's tests; ``values`` are ones that its code compares arguments with; ``names`` are
    those of the parameters of its C++ kernel. ``is_nested`` says that it is not defined at the
    top level of its module, ``within`` in which function.
    """

    samples: dict[str, Call] = {}
    values: dict[str, tuple[Any, ...]] = {}
    names: tuple[str, ...] = ()
    is_nested: bool = False
    within: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cells of one op to run. ``reference`` is a dotted function of torch, or empty if only a recipe can provide one.

    ``unplanned`` are cells that cannot be run, by id (all of an op by its name), and why; ``removed`` are those that only
    the tree before has. ``dtypes`` are those of all rows that can be run; ``left_out`` counts the pairs of row and dtype that were
    only partly planned, for want of room (:class:`Limits`). ``implemented`` is the status in the declaration. With ``search`` the
    cells are not known before the operator is imported and called; ``unimported`` if that import failed. ``schema`` is that of an
    operator, as far as its sources show it.
    """

    op: str
    target: Target
    cells: tuple[Cell, ...]
    reference: str = ""
    tolerance: Tolerance = Tolerance()
    unplanned: dict[str, str] = {}
    removed: dict[str, str] = {}
    dtypes: tuple[str, ...] = ()
    left_out: int = 0
    implemented: bool = True
    search: Search | None = None
    unimported: bool = False
    schema: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of everything that a run of the plan reports."""
        return (*(cell.id for cell in self.cells), *self.unplanned, *self.removed)


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a check saw on one side: ``check`` is its name (``shape``, ``poison``, ``input-changed``, ...), and
    ``about`` the output or input that it saw it on, if it was one.
    """

    check: str
    side: str
    message: str
    about: str = ""


COMPARATIVE = frozenset(
    {
        "denormals",
        "gradient-raises",
        "inference-tensor",
        "kept-output",
        "memory",
        "shared-outputs",
        "state",
        "unasked-gradient",
        "zero-sign",
    }
)
"""Checks whose findings are no fault of a side by themselves: they count where after has them and before has not."""

NOTED = frozenset({"compile-skipped", "gradient-skipped", "layout", "overflow"})
"""Checks whose findings are reported where only after has them, and never fail."""

UNSTABLE = frozenset({"changes-with-history", "poison", "second-device"})
"""Checks that an output which differs from call to call (``repeat``) may fail by luck."""


class Returned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output of a run: its name in the result file and its metadata. ``grad`` records whether it requires a gradient when
    the inputs do, or None if that was not checked.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] = ()
    digest: str = ""
    grad: bool | None = None


class Ran(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a worker for one cell on one side.

    ``status`` is ``ok``; ``raised``, by the op (``detail`` is what, ``error`` the same in any tree); ``refused``, the cell cannot
    be run there and ``detail`` says why; ``died`` or ``stalled``, with the worker; ``failed``, the harness did. ``place`` is the
    function of the op's tree in which an error was raised, ``deliberate`` whether a statement there raises it, or an operator.
    ``file`` holds the
    tensors: outputs by name, and inputs that the call may change as ``input:NAME``; the reference's are ``ref64:NAME``,
    ``ref32:NAME`` and, where inputs have 16 bits, ``ref16:NAME``, and ``tolerance`` is the recipe's. ``structure`` is what holds
    the outputs. ``varies`` says that the recipe expects other bits from call to call; the file then has the smallest and largest
    results too, as ``low:NAME`` and ``high:NAME``. Where an output holds integers, it has the inputs as ``in:NAME``. Gradients
    of inputs are ``grad:contiguous:NAME`` and ``grad:strided:NAME``, by the layout of those of the outputs. With
    ``unimported`` the op is there and its import failed; with ``absent`` it is not there. Of a large tensor there is no file:
    ``blocks`` has a hash of each block of an output, and ``agrees`` says that the outputs were compared with calls on parts of the
    inputs; ``detail`` says how far, or why not. The ``weakness`` of its results is reported to the search only.
    """

    cell: str
    status: Literal["ok", "raised", "refused", "died", "stalled", "failed"]
    detail: str = ""
    error: str = ""
    place: str = ""
    deliberate: bool = False
    file: str = ""
    outputs: tuple[Returned, ...] = ()
    structure: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: dict[str, float] = {}
    tolerance: Tolerance | None = None
    varies: bool = False
    unimported: bool = False
    absent: bool = False
    blocks: dict[str, tuple[str, ...]] = {}
    agrees: bool = False
    weakness: Weakness | None = None


Verdict = Literal["unchanged", "within-tolerance", "regression", "wrong-already", "crashed", "not-checked"]
"""Verdicts on cells; see :mod:`opschema_cli.verify.judge`."""


class Figures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The distance of one output of one side from the reference, over its elements: the largest absolute error, the largest
    error in ULPs of its dtype and as a fraction of the tolerance there (``share``), the smallest kappa that the tolerance rule
    would need, the fraction of elements beyond it, and a histogram of log10 of the absolute errors (counts of decades from 1e-12
    to 1e3; the first counts smaller errors, the last larger ones). ``rounded`` is the fraction of elements accepted only because
    the 16-bit reference is no better, ``between`` the fraction whose error exceeds that of one rounding. ``undecided`` of its
    ``elements`` were not judged because the float32 reference is lost there.
    """

    side: str
    output: str
    worst: float = 0.0
    ulps: float = 0.0
    kappa: float = 0.0
    share: float = 0.0
    beyond: float = 0.0
    rounded: float = 0.0
    between: float = 0.0
    at: tuple[int, ...] = ()
    histogram: tuple[int, ...] = ()
    undecided: int = 0
    elements: int = 0


class CellResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one cell; a line of the results' file. ``unimported`` are the sides that could not be imported."""

    id: str
    op: str
    verdict: Verdict
    device: str
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    figures: tuple[Figures, ...] = ()
    seconds: dict[str, float] = {}
    unimported: tuple[str, ...] = ()

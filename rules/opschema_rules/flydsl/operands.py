"""Types of the arguments that FlyDSL's functions take, and what an argument surely is: a value of one of FlyDSL's types, a type, or
a plain Python value.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.possible_types import UNKNOWN, is_scalar, possible_of
from opschema_rules.flydsl.rebinding import is_bound_around
from opschema_rules.flydsl.unbound_names import sets_namespace
from opschema_rules.flydsl.value_classes import plain_name, value_classes
from opschema_rules.flydsl.value_table import NUMERIC

Nature: TypeAlias = Literal[
    "", "value", "torch dtype", "python type", "flydsl type", "operation", "constant", "display"
]
"""Natures of arguments. An `operation` is one of FlyDSL's functions that make copy or MMA operations, passed without a call."""

LONGEST = 80
"""Maximum number of characters of an expression in a message."""

_PYTHON_TYPES = frozenset({"int", "float", "bool", "str", "bytes", "complex"})
_DTYPE_NAMES = """
float16 float32 float64 bfloat16 half float double int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool short int long
float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
"""
_DTYPES = frozenset(_DTYPE_NAMES.split())
_DISPLAYS = frozenset({"tuple", "list", "dict", "set", "fstring"})
_OPERATIONS = ("BufferCopy", "UniversalCopy", "MFMA", "WMMA", "BufferAtomic")

_ALL_NAMES = "Tensor Pointer TiledCopy ThrCopy TiledMma ThrMma CopyAtom MmaAtom Layout Vector SharedAllocator"
ALL = frozenset(_ALL_NAMES.split())
_COPIES = frozenset({"CopyAtom", "TiledCopy", "ThrCopy"})
_MMAS = frozenset({"MmaAtom", "TiledMma", "ThrMma"})


class Argument(msgspec.Struct, frozen=True):
    """The properties of an argument: its nature, the type of a value, and the value of a constant."""

    nature: Nature = ""
    kind: str = ""
    constant: object = None


class Taken(msgspec.Struct, frozen=True):
    """The arguments that a parameter accepts, as text, and the natures and types of values that it is known to reject."""

    words: str
    kinds: frozenset[str] = frozenset()
    natures: frozenset[Nature] = frozenset()
    constants: tuple[type, ...] = ()
    """Types of constants that it rejects."""

    def refuses(self, given: Argument) -> bool:
        """Whether the parameter is known to reject an argument."""
        if given.nature == "constant":
            return isinstance(given.constant, self.constants) and not (
                isinstance(given.constant, bool) and bool not in self.constants
            )
        return given.kind in self.kinds if given.nature == "value" else given.nature in self.natures


_NO_TYPES: frozenset[Nature] = frozenset({"torch dtype", "python type", "flydsl type", "operation", "display"})
_OTHER_TYPES: frozenset[Nature] = frozenset({"torch dtype", "python type", "display"})
_NUMBERS = (int, float, str, bytes)

ELEMENT = Taken("a FlyDSL type, such as `fx.Float32`", ALL | {NUMERIC}, _OTHER_TYPES, (float, str, bytes, type(None)))
DTYPE = Taken("a FlyDSL type, such as `fx.Float32`", ALL | {NUMERIC}, _OTHER_TYPES, (*_NUMBERS, type(None)))
OPTIONAL_DTYPE = Taken("a FlyDSL type, such as `fx.Float32`", ALL, _OTHER_TYPES, _NUMBERS)
CAST = Taken("a FlyDSL type, such as `fx.Float32`", ALL, frozenset({"torch dtype", "display"}), (str, bytes))
COPY = Taken("a copy atom", (ALL | {NUMERIC}) - _COPIES, _NO_TYPES, (*_NUMBERS, type(None)))
COPY_OPERATION = Taken("a copy operation", ALL | {NUMERIC}, _NO_TYPES, (*_NUMBERS, type(None)))
MMA_OPERATION = Taken("an MMA operation", ALL | {NUMERIC}, _NO_TYPES, (*_NUMBERS, type(None)))
MMA = Taken("an MMA atom", (ALL | {NUMERIC}) - _MMAS - _COPIES, _NO_TYPES, (*_NUMBERS, type(None)))
TILED_MMA = Taken("a tiled MMA", (ALL | {NUMERIC}) - {"TiledMma", "ThrMma"}, _NO_TYPES, (*_NUMBERS, type(None)))
TENSOR = Taken("a tensor", (ALL | {NUMERIC}) - {"Tensor"}, _NO_TYPES, (*_NUMBERS, type(None)))
LAYOUT = Taken("a layout", (ALL | {NUMERIC}) - {"Layout"}, _NO_TYPES, (*_NUMBERS, type(None)))
ITERATOR = Taken(
    "a pointer or coordinates", _COPIES | _MMAS | {"Tensor", "Layout", "Vector"}, _NO_TYPES - {"display"}, (str, bytes)
)
NUMBER = Taken(
    "a number",
    _COPIES | _MMAS | {"Layout"},
    frozenset({"torch dtype", "flydsl type", "display"}),
    (str, bytes, type(None)),
)

_ANYTHING = Taken("anything")

FUNCTIONS: dict[str, tuple[Taken, ...]] = {
    "make_copy_atom": (COPY_OPERATION, ELEMENT),
    "make_mma_atom": (MMA_OPERATION,),
    "make_rmem_tensor": (_ANYTHING, DTYPE),
    "make_fragment_like": (Taken("a tensor", ALL - {"Tensor", "Layout"}, _NO_TYPES, _NUMBERS), OPTIONAL_DTYPE),
    "Vector.filled": (_ANYTHING, _ANYTHING, DTYPE),
    "full": (_ANYTHING, _ANYTHING, DTYPE),
    "Vector.from_elements": (
        Taken("the elements", frozenset({NUMERIC}), _NO_TYPES - {"display"}, _NUMBERS),
        OPTIONAL_DTYPE,
    ),
    "Vector.make_type": (_ANYTHING, DTYPE),
    "recast_iter": (Taken("a FlyDSL type", frozenset(), frozenset({"torch dtype", "python type"}), (str,)),),
    "from_c_void_p": (
        Taken("a FlyDSL type, such as `fx.Uint8`", frozenset(), _OTHER_TYPES, (str, int, type(None))),
        Taken("an address", frozenset(), _NO_TYPES, (float, str)),
    ),
    "copy": (COPY, TENSOR, TENSOR),
    "copy_atom_call": (
        Taken("a copy atom", (ALL | {NUMERIC}) - {"CopyAtom"}, _NO_TYPES, (*_NUMBERS, type(None))),
        TENSOR,
        TENSOR,
    ),
    "gemm": (
        Taken("an MMA atom", frozenset({"Tensor", "Layout", "Vector"}), _NO_TYPES, (*_NUMBERS, type(None))),
        *[Taken("a tensor", _COPIES | _MMAS | {"Layout", "Vector", NUMERIC}, _NO_TYPES, _NUMBERS)] * 4,
    ),
    "make_tiled_copy": (COPY, LAYOUT),
    "make_tiled_copy_tv": (COPY, LAYOUT, LAYOUT),
    **{f"make_tiled_copy_{operand}": (COPY, TILED_MMA) for operand in "ABC"},
    "make_tiled_mma": (MMA, LAYOUT),
    "make_layout_tv": (LAYOUT, LAYOUT),
    "make_view": (ITERATOR, LAYOUT),
    "make_buffer_tensor": (TENSOR,),
    "memref_load_vec": (TENSOR,),
    "MFMA": (_ANYTHING, _ANYTHING, _ANYTHING, *[Taken("a FlyDSL type", frozenset(), _OTHER_TYPES, (str,))] * 2),
    "WMMA": (_ANYTHING, _ANYTHING, _ANYTHING, *[Taken("a FlyDSL type", frozenset(), _OTHER_TYPES, (str,))] * 2),
}
"""The positional arguments that FlyDSL's functions accept, by function name; a static method's name includes its class."""

FUNCTION_WORDS = frozenset(name.rpartition(".")[2] for name in FUNCTIONS)
"""The last words of these names."""

METHODS: dict[tuple[str, str], tuple[Taken, ...]] = {
    **{("ThrCopy", name): (TENSOR,) for name in ("partition_S", "partition_D", "retile")},
    **{("ThrMma", f"{verb}_{name}"): (TENSOR,) for verb in ("partition", "make_fragment") for name in "ABC"},
    ("Vector", "to"): (OPTIONAL_DTYPE,),
    ("Vector", "bitcast"): (DTYPE,),
    (NUMERIC, "to"): (CAST,),
    (NUMERIC, "bitcast"): (DTYPE,),
}
"""The arguments that methods accept, by the type of the value."""

METHOD_WORDS = frozenset(word for _, word in METHODS)


def may_be_type(expr: Expr) -> bool:
    """Whether an expression may be a torch dtype, a Python type or the name of one, by its form."""
    word = expr.text.rpartition(".")[2] if expr.kind == "name" else ""
    return word in _DTYPES or word in _PYTHON_TYPES or isinstance(expr.value, str)


def may_be_refused(body: Body, expr: Expr, taken: Taken) -> bool:
    """Whether a parameter may reject an argument, by its form."""
    if expr.kind == "name" and expr.text.partition(".")[0] not in body.visible:
        word = expr.text.rpartition(".")[2]
        if is_scalar(word):
            return "flydsl type" in taken.natures
        return word in _DTYPES or word in _PYTHON_TYPES or word.startswith(_OPERATIONS)
    if expr.kind == "const":
        return taken.refuses(Argument("constant", constant=expr.value))
    if expr.kind in _DISPLAYS:
        return "display" in taken.natures
    if expr.kind == "name" and "display" in taken.natures and expr.text in _tiles(body):
        return True
    kinds = possible_of(body, expr)
    return UNKNOWN not in kinds and not taken.kinds.isdisjoint(kinds)


def argument(tree: FlyTree, body: Body, expr: Expr) -> Argument:
    """Return the known properties of an argument in a body."""
    match expr.kind:
        case "const":
            return Argument("constant", constant=expr.value)
        case _ if expr.kind in _DISPLAYS:
            return Argument("display")
        case "name":
            found = _named(tree, body, expr)
            if found.nature:
                return found
    kind = value_classes(tree).of(body, expr)
    if not kind and expr.kind == "name" and expr.text in _tiles(body):
        made = _tiles(body)[expr.text]
        if plain_name(tree.names.full(body, made.callee)) == "make_layout_tv" and not is_bound_around(
            body, expr.text, expr.start
        ):
            return Argument("display")
    return Argument("value", kind) if kind else Argument()


@cached_on_argument
def _tiles(body: Body) -> dict[str, Expr]:
    """The variables of a function that hold a tile, the first result of `make_layout_tv()`, each with the call."""
    found: dict[str, Expr] = {}
    for item in body.scope.unpacks if body.function is not None else ():
        made, name = item.value, item.targets[0] if len(item.targets) == 2 else ""
        if made.callee.rpartition(".")[2] == "make_layout_tv" and len(body.scope.named.get(name, ())) == 1:
            found[name] = made
    return found


def _tried_import(tree: FlyTree, body: Body, dotted: str) -> str:
    """Return the full name of a name that is `None` if its module cannot be imported, as `torch` often is; empty if other code may
    bind it.
    """
    file, first = body.file, dotted.partition(".")[0]
    is_bound = first in file.rebound or dotted in file.body.named or sets_namespace(file.source.text)
    if is_bound or any(item.attr == "*" for item in file.body.imports):
        return ""
    return tree.bodies.imported_name(body, dotted)


def _named(tree: FlyTree, body: Body, expr: Expr) -> Argument:
    """Return the properties of a name that is not a variable of a function."""
    first = expr.text.partition(".")[0]
    if first in body.visible or is_bound_around(body, first, expr.start):
        return Argument()
    full = tree.names.full(body, expr.text)
    if full:
        last = full.rpartition(".")[2]
        known = is_scalar(last) or last.startswith(_OPERATIONS)
        return Argument("flydsl type" if is_scalar(last) else "operation") if known else Argument()
    kind, external = tree.names.meaning(body, expr.text)
    if kind == "unresolved":
        external = _tried_import(tree, body, expr.text)
    elif kind != "external":
        return Argument()
    if external.startswith("torch.") and external.removeprefix("torch.") in _DTYPES:
        return Argument("torch dtype")
    return Argument("python type") if external in _PYTHON_TYPES else Argument()

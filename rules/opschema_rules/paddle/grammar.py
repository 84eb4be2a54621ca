"""Grammar of the strings in Paddle's operator YAML, as ``paddle/fluid/operators/generator/parse_utils.py`` reads them.

Spans count characters of the string that is parsed. What cannot be read is an :class:`Error`, and left out of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from opschema_cli.source.pieces import Piece, arguments, group, pieces
from opschema_cli.source.text import Span
from opschema_cli.suggestions import suggested

TENSORS = ("Tensor", "Tensor[]")
OUTPUTS = (*TENSORS, "SelectedRows")
NUMBERS = ("bool", "int", "int64_t", "float", "double")
ATTRIBUTES = (
    *("IntArray", "Place", "DataLayout", "DataType", "Scalar"),
    *(f"Scalar({name})" for name in NUMBERS),
    *(f"{name}[]" for name in ("Scalar", "str", *NUMBERS)),
    *("str", *NUMBERS),
)
"""Types of attributes (``attr_types_map`` of ``type_mapping.py``)."""

OTHER_ATTRIBUTES = {"int32_t": "int", "long": "int64_t", "size_t": "size_t"}
"""Types that only the generator of the C++ API knows (``api_base.py``), and those that they are on Linux."""

_COMMA = re.compile(r",(?![^{]*\})")
_ARG = re.compile(r"([^ ]+) \s*([^=]*?)\s*(?:=\s*(.*))?", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]\w*(?:@\w+)?")
_OUTPUT = re.compile(r"([a-zA-Z0-9_[\]]+)\s*(?:\(([a-zA-Z0-9_@]+)\))?\s*(?:\{([^}]+)\})?")
_FORWARD = re.compile(r"\s*([a-z][a-z0-9_]+)\s*(\([^)]+\))\s*->\s*(.+)", re.DOTALL)
_PAIR = re.compile(r"\s*\(?\s*(\w+)\s*->\s*(\w+)\s*\)?\s*")
_KERNEL = re.compile(r"([a-zA-Z0-9_]+)\s*(?:\{([^}]+)\})?")
_COMPLEX = re.compile(r"complex\((\w+)\)")
_CONSTANT = re.compile(r"k?[A-Z][A-Z0-9_]*\Z|k[A-Z]")
_CALL = re.compile(r"\s*([\w:]+)\s*\((.*)\)\s*", re.DOTALL)

T = TypeVar("T")

CALLS = {
    "composite": re.compile(r"[a-z][a-z0-9_]+\s*\([^)]+\)"),
    "invoke": re.compile(r"[A-Za-z_][\w: ]*\(.*\)", re.DOTALL),
}
"""Patterns that fields with a call must contain."""


class Error(msgspec.Struct, frozen=True):
    """Something that the generators reject, or misread."""

    message: str
    span: Span


class Slot(msgspec.Struct, frozen=True):
    """An argument or output."""

    type: str
    name: str
    span: Span
    name_span: Span


class Arg(Slot, frozen=True):
    """An argument: a tensor or an attribute; ``default`` is None without one."""

    default: str | None = None
    default_span: Span = Span(0, 0)

    @property
    def plain_type(self) -> str:
        """The type in C++, where ``Scalar(int)`` and the like are all ``Scalar``, and a list of tensors is ``list of Tensor``."""
        if self.type.startswith("Scalar("):
            return "Scalar"
        return "list of Tensor" if self.type == "Tensor[]" else OTHER_ATTRIBUTES.get(self.type, self.type)

    @property
    def is_tensor(self) -> bool:
        """Whether it is an input, and no attribute."""
        return self.type in TENSORS


class Output(Slot, frozen=True):
    """An output; ``size`` is the expression for the length of a list, empty without one."""

    size: str = ""


class Kernel(msgspec.Struct, frozen=True):
    """A kernel, and the kinds of tensors that it takes and returns; empty if it takes any."""

    name: str
    span: Span
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def is_constant(name: str) -> bool:
    """Whether a name is that of a C++ constant: ``INT_MAX``, ``kMax``."""
    return _CONSTANT.match(name) is not None


class Parsed(msgspec.Struct, frozen=True):
    """Arguments and outputs of an operator or of a ``forward``, which names one, and the errors in them."""

    args: Sequence[Arg] = ()
    outputs: Sequence[Output] = ()
    errors: Sequence[Error] = ()
    name: Piece | None = None

    @property
    def inputs(self) -> list[Arg]:
        """The arguments that are tensors."""
        return [arg for arg in self.args if arg.is_tensor]

    @property
    def attributes(self) -> list[Arg]:
        """The arguments that are no tensors."""
        return [arg for arg in self.args if not arg.is_tensor]

    @property
    def parts(self) -> Mapping[str, Sequence[Slot]]:
        """All parts, by kind."""
        return {"input": self.inputs, "attribute": self.attributes, "output": self.outputs}


MOST = 1_000
"""Maximum number of parts of a string to read; the longest list of arguments has about 60."""


def split(text: str, at: int = 0, comma: re.Pattern[str] = _COMMA) -> Iterator[Piece]:
    """The parts between commas without the space around them; ``at`` is the place of the text."""
    return pieces(text, (found.start() for found in islice(comma.finditer(text), MOST)), at)


def _divided(read: Iterable[T | Error]) -> tuple[list[T], list[Error]]:
    """The items that could be read, and the errors."""
    items = list(read)
    errors = [item for item in items if isinstance(item, Error)]
    return [item for item in items if not isinstance(item, Error)], errors


def parse_args(text: str, at: int = 0) -> tuple[list[Arg], list[Error]]:
    """The arguments in ``(Tensor x, int axis = -1)``."""
    at += len(text) - len(text.lstrip())
    inner = text.strip()
    if not inner.startswith("(") or not inner.endswith(")") or len(inner) < 2:
        return [], [Error("the arguments must be in parentheses", Span(at, at + len(inner)))]
    args, errors = _divided(map(_arg, split(inner[1:-1], at + 1)))
    return args, [*errors, *_order(args), *_twice(args)]


def _arg(part: Piece) -> Arg | Error:
    found = _ARG.fullmatch(part.text)
    if found is None:
        return Error("an argument needs a type and a name", part.span)
    type_, name, default = (group(found, number, part.span.start) for number in (1, 2, 3))
    if type_.text not in (*TENSORS, *ATTRIBUTES, *OTHER_ATTRIBUTES):
        near = suggested(type_.text, (*TENSORS, *ATTRIBUTES))
        return Error(f"unknown argument type `{type_.text}`{near}", type_.span)
    if _WORD.fullmatch(name.text) is None:
        return Error(f"`{name.text}` is not a valid name" if name.text else f"`{part.text}` has no name", part.span)
    if found[3] is None:
        return Arg(type_.text, name.text, part.span, name.span)
    if not default.text or "=" in default.text:
        return Error("a default must be one value after a single `=`", part.span)
    if type_.text in TENSORS:
        return Error(f"the tensor `{name.text}` cannot have a default; list it under `optional` instead", part.span)
    return Arg(type_.text, name.text, part.span, name.span, default.text, default.span)


def _order(args: Sequence[Arg]) -> Iterator[Error]:
    attribute: Arg | None = None
    default: Arg | None = None
    for arg in args:
        if arg.is_tensor and attribute is not None:
            yield Error(f"the tensor `{arg.name}` must come before the attribute `{attribute.name}`", arg.span)
        if not arg.is_tensor and arg.default is None and default is not None:
            yield Error(f"`{arg.name}` has no default, but follows `{default.name}`, which has one", arg.span)
        attribute = attribute or (None if arg.is_tensor else arg)
        default = default or (None if arg.default is None else arg)


def _twice(named: Iterable[Slot]) -> Iterator[Error]:
    seen = set[str]()
    for item in named:
        if item.name in seen:
            yield Error(f"`{item.name}` is declared twice", item.name_span)
        seen.add(item.name)


def parse_outputs(text: str, at: int = 0) -> tuple[list[Output], list[Error]]:
    """The outputs in ``Tensor(out), Tensor[](parts){n}``."""
    outputs, errors = _divided(map(_output, split(text, at)))
    return outputs, [*errors, *_twice(outputs)]


def _output(part: Piece) -> Output | Error:
    found = _OUTPUT.fullmatch(part.text)
    if found is None:
        return Error(f"`{part.text}` is not an output; write `Tensor(name)`", part.span)
    type_, name = group(found, 1, part.span.start), group(found, 2, part.span.start)
    if type_.text not in OUTPUTS:
        return Error(f"unknown output type `{type_.text}`{suggested(type_.text, OUTPUTS)}", type_.span)
    if found[3] and not type_.text.endswith("[]"):
        return Error(f"the output `{name.text or 'out'}` has a length, but is not a list", part.span)
    span = name.span if name.text else part.span
    return Output(type_.text, (name.text or "out").partition("@")[0], part.span, span, found[3] or "")


def parse_forward(text: str) -> Parsed:
    """The name, arguments and outputs in ``abs (Tensor x) -> Tensor(out)``."""
    found = _FORWARD.fullmatch(text)
    if found is None:
        message = "`forward` must be `name (arguments) -> outputs`, without parentheses in the types"
        return Parsed(errors=[Error(message, Span(0, len(text)))])
    args, errors = parse_args(found[2], found.start(2))
    outputs, more = parse_outputs(found[3], found.start(3))
    return Parsed(args, outputs, [*errors, *more], group(found, 1))


def parse_pairs(text: str) -> tuple[list[tuple[Piece, Piece]], list[Error]]:
    """The inputs and outputs in ``(x -> out), (y -> out_y)``."""
    return _divided(map(_pair, split(text)))


def _pair(part: Piece) -> tuple[Piece, Piece] | Error:
    found = _PAIR.fullmatch(part.text)
    if found is None:
        return Error(f"`{part.text}` is not a pair; write `(input -> output)`", part.span)
    return group(found, 1, part.span.start), group(found, 2, part.span.start)


def parse_call(text: str) -> tuple[Piece, list[Piece]] | None:
    """Return the function and arguments in ``full(shape, max(n, 1), dtype)``; None if it is not a call, or its arguments are not
    known.
    """
    found = _CALL.fullmatch(text)
    given = arguments(found[2], found.start(2)) if found is not None and not re.search(r"[<\"']", found[2]) else None
    return (group(found, 1), given) if found is not None and given is not None else None


_SPARSE = {"sparse_coo": "SparseCooTensor", "sparse_csr": "SparseCsrTensor"}
KINDS = {"dense": "DenseTensor", "selected_rows": "SelectedRows", **_SPARSE}
KINDS |= {f"vec::{kind}": name for kind, name in _SPARSE.items()}
"""The classes of tensors by their kinds."""


def parse_kernels(text: str) -> tuple[list[Kernel], list[Error]]:
    """The kernels in ``scale {dense -> dense}, scale_sr {selected_rows -> selected_rows}``."""
    kernels, errors = _divided(map(_kernel, islice(_KERNEL.finditer(text), MOST)))
    if _KERNEL.sub("", text).strip(" ,\t\n") or not (kernels or errors):
        return [], [Error(f"`{text}` is not a list of kernels", Span(0, len(text)))]
    return kernels, errors


def _kernel(found: re.Match[str]) -> Kernel | Error:
    if found[2] is None:
        return Kernel(found[1], Span(*found.span(1)))
    sides = [tuple(item.strip() for item in side.split(",")) for side in found[2].split("->")]
    wrong = next((kind for side in sides for kind in side if kind not in KINDS), None)
    if len(sides) != 2:
        return Error(f"write the tensor kinds of `{found[1]}` as `{{dense -> dense}}`", Span(*found.span()))
    if wrong is not None:
        return Error(f"unknown tensor kind `{wrong}`{suggested(wrong, KINDS)}", Span(*found.span(2)))
    return Kernel(found[1], Span(*found.span(1)), *sides)


def parse_candidates(text: str) -> tuple[str, list[Piece]]:
    """The separator (``>``, ``,`` or none) and the names in ``dtype > x``; ``complex(x)`` is ``x``."""
    mark = ">" if ">" in text else ","
    names = [part for part in split(text, 0, re.compile(mark)) if part.text]
    read = [group(found, 1, name.span.start) if (found := _COMPLEX.fullmatch(name.text)) else name for name in names]
    return (mark if len(names) > 1 else ""), read


ERRORS: Mapping[str, Callable[[str], Sequence[Error]]] = {
    "args": lambda text: parse_args(text)[1],
    "output": lambda text: parse_outputs(text)[1],
    "forward": lambda text: parse_forward(text).errors,
    "inplace": lambda text: parse_pairs(text)[1] if text else (),
    "view": lambda text: parse_pairs(text)[1] if text else (),
    "kernel": lambda text: parse_kernels(text)[1],
}
"""The errors in a field of an entry, or in the ``func`` of its ``kernel``."""

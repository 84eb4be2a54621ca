"""Compares the arguments that Paddle's generators pass with the parameters of C++ functions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from itertools import zip_longest

import msgspec

from opschema_cli.cpp_units import Declared
from opschema_cli.lint.diagnostic import Place
from opschema_cli.phrases import count, quoted
from opschema_cli.source.cpp_functions import CppParameterText
from opschema_cli.source.cpp_text import without_comments
from opschema_cli.source.yaml import Node, scalar_value
from opschema_rules.paddle.cpp import FunctionCheck, cpp_names
from opschema_rules.paddle.grammar import KINDS, NUMBERS, OTHER_ATTRIBUTES
from opschema_rules.paddle.model import OpEntry

_NOISE = re.compile(r"\b(?:phi|paddle|common|std|experimental)::|\bUNUSED\b")
_TENSOR = re.compile(r"\w*Tensor\w*|SelectedRows")
_SHAPES = {
    "const X&": "",
    "const optional<X>&": "optional ",
    "const vector<const X*>&": "list of ",
    "const optional<vector<const X*>>&": "optional list of ",
    "X*": "output ",
    "vector<X*>": "output list of ",
}
"""Words for the types of parameters of a class of tensors X."""

_TYPES = {
    **{name: name for name in (*NUMBERS, "DataType", "DataLayout", "Place")},
    **OTHER_ATTRIBUTES,
    **{f"const {name}&": name for name in ("Place", "Scalar", "IntArray")},
    **{f"const vector<{name}>&": f"{name}[]" for name in (*NUMBERS, "Scalar")},
    "const string&": "str",
    "const vector<string>&": "str[]",
}
_NUMBERS = frozenset((*NUMBERS, "size_t"))
_LITERALS = ("True", "False", "None", "true", "false", "nullptr")
_LISTS = frozenset(("IntArray", "int[]", "int64_t[]"))
CALLED: Mapping[str, Set[str]] = {
    "Scalar": _NUMBERS | {"str", "Scalar"},
    "IntArray": _LISTS,
    "optional list of": {"list of"},
    **dict.fromkeys(_NUMBERS, _NUMBERS),
}
"""Attributes and lists of tensors that C++ converts in a call to the type of a parameter."""

INVOKED = {**CALLED, "Scalar": CALLED["Scalar"] | {"Tensor"}, "IntArray": _LISTS | {"Tensor", "list of Tensor"}}
"""Conversions of the C++ API, which also makes attributes of tensors."""

_BUILT = {**CALLED, "int64_t[]": _LISTS, "list of": {"optional list of"}}
"""Conversions of the static graphs' functions for shapes, which get the values of an ``IntArray``."""

_STORED = {**{name: CALLED[name] for name in ("Scalar", "IntArray")}, "int64_t[]": _LISTS, "float": {"Scalar"}}
"""Conversions of the old static graph when it runs a kernel."""


class Passed(msgspec.Struct, frozen=True):
    """An argument: its name, and its type as :func:`shown_type` writes it; None if that is not known."""

    name: str
    type: str | None


def shown_type(written: str) -> str | None:
    """The type of a parameter: an attribute of YAML, or a tensor (``optional list of DenseTensor``); None if it is unknown."""
    text = " ".join(_NOISE.sub(" ", without_comments(written)).split())
    text = re.sub(r"\s*([<>*&])\s*", r"\1", text)
    if text.startswith("const ") and text[-1] not in "&*":
        text = text.removeprefix("const ")
    tensor = _TENSOR.search(text)
    if tensor is None:
        return _TYPES.get(text)
    shape = _SHAPES.get(text.replace(tensor[0], "X", 1))
    return f"{shape}{tensor[0]}" if shape is not None else None


def passed_to(check: FunctionCheck) -> list[Passed] | None:
    """The arguments and outputs that are passed to a function; None if they are not known.

    In the old static graph, the function in ``infer_meta`` gets what the kernel gets.
    """
    entry, kernel = check.entry, check.kernel
    is_own = kernel is None and not entry.is_legacy and entry.within("infer_meta", "param") is not None
    source = "infer_meta" if is_own else "kernel"
    params = entry.params(source)
    if not entry.is_sound or (params is None and entry.within(source, "param") is not None):
        return None
    names = [arg.name for arg in entry.signature.args] if params is None else list(map(_literal, params))
    if any(name.isidentifier() and name not in entry.arguments and name not in _LITERALS for name in names):
        return None
    base = "MetaTensor" if kernel is None else "Tensor"
    inputs, outputs = (kernel.inputs, kernel.outputs) if kernel is not None else ((), ())
    kinds = {arg.name: KINDS[kind] for arg, kind in zip(entry.signature.inputs, inputs, strict=False)}
    found = [Passed(name, _argument(entry, name, kinds.get(name, base), base)) for name in names]
    for output, kind in zip_longest(entry.signature.outputs, outputs[: len(entry.signature.outputs)]):
        many = "list of " if output.type.endswith("[]") else ""
        found.append(Passed(output.name, f"output {many}{KINDS.get(kind, base)}"))
    return found


def _literal(node: Node) -> str:
    return str(scalar_value(node)) if node.kind == "scalar" else ""


def _argument(entry: OpEntry, name: str, tensor: str, base: str) -> str | None:
    arg = entry.arguments.get(name)
    if arg is None:
        return None
    # The functions for shapes take an absent tensor as an empty one.
    absent = arg.is_tensor and name in entry.optional and (base == "Tensor" or arg.type == "Tensor[]")
    return f"{'optional ' if absent else ''}{arg.plain_type.replace('Tensor', tensor)}"


def takes_string(entry: OpEntry, index: int) -> bool:
    """Whether a function that ``infer_meta`` may name takes a string at an index."""
    symbol = entry.text_of("infer_meta", "func").strip().rpartition("::")[2]
    found = cpp_names(entry.listed.tree).declared([symbol]).get(symbol, ())
    parameters = (one for item in found for one in item.function.parameters[index : index + 1])
    return any(shown_type(one.type) == "str" for one in parameters)


def mismatch(check: FunctionCheck) -> tuple[str, Place] | None:
    """Return the difference between an entry's arguments and the parameters of a function, as text, and its place in the function.

    None if it may be called so, or is not known.
    """
    passed = passed_to(check)
    if passed is None or not check.functions:
        return None
    found = [_compared(check, item, passed) for item in check.functions]
    if all(found) and check.registering:
        found = [_compared(check, item, passed) for item in check.defined()] or found
    return found[0] if all(found) else None


def taken(check: FunctionCheck, item: Declared) -> Sequence[CppParameterText]:
    """The parameters of a function for arguments and outputs: not the context of a kernel, and not the configuration."""
    parameters = item.function.parameters
    if check.kernel is not None:
        return parameters[1:]
    return parameters[:-1] if parameters and parameters[-1].type.endswith("MetaConfig") else parameters


def _compared(check: FunctionCheck, item: Declared, passed: Sequence[Passed]) -> tuple[str, Place] | None:
    entry, function = check.entry, item.function
    if not function.parameters or (function.unsure and not function.template):
        return None
    parameters = taken(check, item)
    if entry.is_legacy or (check.kernel is not None and not entry.calls_through_pointer):
        found = _by_context(passed, parameters, _STORED if entry.is_legacy else {})
    elif check.kernel is not None:
        found = _by_position(passed, parameters, len(parameters), {})
    else:
        needed = sum(not one.default for one in parameters)
        found = _by_position(passed, parameters, needed, CALLED if entry.calls_through_pointer else _BUILT)
    if found is None:
        return None
    message, index = found
    place = parameters[index].span if index < len(parameters) else function.name_span
    return f"`{function.name}()` {message}", Place(item.path, place)


def _by_position(
    passed: Sequence[Passed], parameters: Sequence[CppParameterText], needed: int, conversions: Mapping[str, Set[str]]
) -> tuple[str, int] | None:
    """Compare a call. Kernels are called through pointers of their exact type, without conversions."""
    pairs = enumerate(zip(passed, parameters, strict=False))
    differs = (index for index, (one, to) in pairs if not fits(one.type, shown_type(to.type), conversions))
    at = next(differs, min(len(passed), len(parameters)))
    if needed <= len(passed) <= len(parameters):
        return (_words(passed[at], parameters[at]), at) if at < len(passed) else None
    takes = count(needed, "argument") + ("" if conversions else " after the context")
    start = f"; the first difference is at `{passed[at].name}`" if at < len(passed) else ""
    return f"takes {takes}, but {len(passed)} are passed{start}", at


def _by_context(
    passed: Sequence[Passed], parameters: Sequence[CppParameterText], conversions: Mapping[str, Set[str]]
) -> tuple[str, int] | None:
    """Compare the values that a kernel takes from a context: its inputs, attributes and outputs, each in turn. It may take
    fewer.
    """
    types = [shown_type(item.type) for item in parameters]
    for part in ("input", "attribute", "output") if None not in types else ():
        given = [item for item in passed if _part(item.type) == part]
        wanted = [(index, item) for index, item in enumerate(types) if _part(item) == part]
        if len(given) < len(wanted):
            listed = f"{len(given)}: {quoted(item.name for item in given)}" if given else "none"
            return f"takes {count(len(wanted), part)}, but the entry passes {listed}", wanted[len(given)][0]
        for one, (index, type_) in zip(given, wanted, strict=False):
            if part == "attribute" and not fits(one.type, type_, conversions):
                return _words(one, parameters[index]), index
    return None


def _part(type_: str | None) -> str:
    if type_ is None or not _is_tensor(type_):
        return "attribute"
    return "output" if type_.startswith("output ") else "input"


def _is_tensor(type_: str) -> bool:
    return _TENSOR.search(type_) is not None


def _words(given: Passed, parameter: CppParameterText) -> str:
    written = " ".join(f"{parameter.type} {parameter.name}".split())
    return f"takes `{written}`, but `{given.name}` ({given.type}) is passed"


def fits(given: str | None, wanted: str | None, conversions: Mapping[str, Set[str]]) -> bool:
    """Whether a parameter may accept an argument; ``conversions`` are the further types that each type accepts."""
    if given is None or wanted is None or given == wanted:
        return True
    if not _is_tensor(given) or not _is_tensor(wanted):
        return given in conversions.get(wanted, ())
    shape, _, kind = given.rpartition(" ")
    other_shape, _, other_kind = wanted.rpartition(" ")
    same_shape = shape == other_shape or shape in conversions.get(other_shape, ())
    return same_shape and (bool(conversions) or kind in ("Tensor", other_kind))

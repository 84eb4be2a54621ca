"""Entries that call another operator, and C++ classes and functions that the new static graph needs for an entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.pieces import Piece
from opschema_cli.source.text import Span
from opschema_rules.aten.findings import found, unknown
from opschema_rules.paddle.cpp import cpp_names
from opschema_rules.paddle.cpp_types import INVOKED, fits
from opschema_rules.paddle.defaults import fault_of
from opschema_rules.paddle.grammar import is_constant, parse_call
from opschema_rules.paddle.model import OpEntry, Tree

_OWN = re.compile(r"([A-Za-z_]\w*)(?:\.\w+\(\))?")
_LITERAL = re.compile(r"[-+.\d{]|(?:True|False|None)\Z")


@rule("PDL304", "invoke-call")
def invoke_call(entry: OpEntry) -> Iterator[Diagnostic]:
    """An `invoke` that cannot call the other operator.

    The generators copy `invoke` into C++, so it must be a call that compiles: of an operator in the same group of files, or of a
    function that is written by hand (`copy_to_impl`). It must pass all arguments that have no default, in order, by their names
    in the entry. In the old static graph, which ignores extra arguments, only missing inputs are reported.

    Bad:

    ```yaml
    - op : full
      args : (IntArray shape, Scalar value, DataType dtype = DataType::FLOAT32, Place place = CPUPlace())
      output : Tensor(out)
      infer_meta : {func : CreateInferMeta, param : [shape, dtype]}
      kernel : {func : full, param : [shape, value, dtype], data_type : dtype, backend : place}
    - op : ones
      args : (IntArray shape, DataType dtype = DataType::FLOAT32)
      output : Tensor(out)
      invoke : full(shape, dtype)
    - op : zeros
      args : (IntArray shape, DataType dtype = DataType::FLOAT32)
      output : Tensor(out)
      invoke : fill(sizes, 0, dtype)
    ```

    Good (a default is left out, and a tensor becomes a `Scalar`):

    ```yaml
    - op : full
      args : (IntArray shape, Scalar value, DataType dtype = DataType::FLOAT32, Place place = CPUPlace())
      output : Tensor(out)
      infer_meta : {func : CreateInferMeta, param : [shape, dtype]}
      kernel : {func : full, param : [shape, value, dtype], data_type : dtype, backend : place}
    - op : full_as
      args : (Tensor x, Tensor value, IntArray shape)
      output : Tensor(out)
      invoke : full(shape, value, x.dtype())
    ```
    """
    call = parse_call(entry.text_of("invoke")) if entry.is_sound else None
    if call is None:
        return
    name, given = call
    function, *passed = entry.placed([name, *given], "invoke")
    outputs = [item.name for item in entry.signature.outputs]
    known = {*entry.arguments, *(outputs if entry.is_backward else ()), "true", "false", "nullptr"}
    for text, place in passed:
        own = _OWN.fullmatch(text)
        if own is not None and own[1] not in known and not is_constant(own[1]) and _LITERAL.match(text) is None:
            message = f"`invoke` passes `{own[1]}`, which is not an argument of `{entry.name}`"
            yield unknown(entry, place, own[1], known, message, entry.declared())
    operators = _invoked(entry, name.text)
    if not operators and not _may_be_in_cpp(entry.listed.tree, name.text):
        message = f"no entry declares `{name.text}`, which `{entry.name}` invokes"
        yield unknown(entry, function.span, name.text, entry.listed.tree.beside(entry), message)
    faults = [_fault(entry, operator, given) for operator in operators]
    if operators and all(faults):
        yield found(entry, function.span, f"`invoke` of `{entry.name}` {faults[0]}", operators[0].declared())


def _invoked(entry: OpEntry, name: str) -> list[OpEntry]:
    """The operators in the group of an entry, in the main files or in those of the new static graph, which share gradients."""
    groups = [entry.listed.tree.beside(entry, group) for group in (None, "", "pir")]
    return next((group[one] for one in (name, name.rstrip("_")) for group in groups if one in group), [])


def _may_be_in_cpp(tree: Tree, name: str) -> bool:
    """Whether a function may be written by hand, as those that end with ``_impl`` are."""
    cpp = cpp_names(tree)
    if "::" in name or name.rstrip("_") in tree.by_name or cpp.may_be_registered(name) or name in _by_hand(tree):
        return True
    return name.endswith("_impl") and not any(one.endswith("_impl") for one in cpp.paths)


@cached_on_argument
def _by_hand(tree: Tree) -> frozenset[str]:
    """The functions in headers whose names entries invoke and no entry has."""
    calls = (parse_call(entry.text_of("invoke")) for entry in tree.entries)
    names = {call[0].text for call in calls if call is not None}
    return cpp_names(tree).called_in_headers(name for name in names if name.rstrip("_") not in tree.by_name)


def _fault(entry: OpEntry, operator: OpEntry, given: Sequence[Piece]) -> str:
    """Return the first difference between a call and an operator, as text; empty if there is none, or it is not known."""
    if not operator.is_sound:
        return ""
    parameters, legacy = operator.signature.args, entry.is_legacy
    pointers = len(operator.signature.outputs) if operator.is_backward and entry.eager else 0
    required = operator.signature.inputs if legacy else [one for one in parameters if one.default is None or pointers]
    needed, most = len(required) + pointers, len(parameters) + pointers
    if len(given) < needed or (len(given) > most and not legacy):
        takes = count(needed, "input" if legacy else "argument")
        if needed < len(parameters) and not legacy:
            takes = f"{needed} to {count(len(parameters), 'argument')}"
        return f"passes {count(len(given), 'argument')} to `{operator.name}`, which takes {takes}"
    for one, wanted in zip(given, () if legacy else parameters, strict=False):
        source = entry.arguments.get(one.text)
        if source is not None and not fits(source.plain_type, wanted.plain_type, INVOKED):
            return f"passes `{source.type} {source.name}` as `{wanted.type} {wanted.name}` of `{operator.name}`"
        literal = _LITERAL.match(one.text) is not None and not wanted.is_tensor and wanted.type != "IntArray"
        if fault := fault_of(wanted.type, one.text) if literal else "":
            return f"passes `{one.text}` as `{wanted.type} {wanted.name}` of `{operator.name}`, but it {fault}"
    own, others = entry.returned, operator.returned
    if entry.eager and not pointers and own != others:
        return f"must return {_types(own)}, but `{operator.name}` returns {_types(others)}"
    return ""


def _types(types: Sequence[str]) -> str:
    return f"`{', '.join(types)}`" if types else "nothing"


@rule("PDL205", "missing-interface")
def missing_interface(entry: OpEntry) -> Iterator[Diagnostic]:
    """A class in `traits` or `interfaces`, or a function that such an interface calls, that does not exist.

    The generator of the new static graph writes `traits` and `interfaces` into the class of the operator, and calls functions
    that are written by hand: `HalfOpInferSymbolicShape()` for `InferSymbolicShapeInterface`, and `HalfOpParseKernelKey()` for
    `ParseKernelKeyInterface`. The in-place variant of an operator needs its own function (`Half_OpInferSymbolicShape()`), and
    so does each kernel of an operator with several. A name is reported only if the repository declares most of the others.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      inplace : (x -> out)
      interfaces : paddle::dialect::InferSymbolicShapeInterface
    - op : third
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : third}
      interfaces : paddle::dialect::InferSymbolicShapeInterface
    ```

    ```cpp shapes.h
    OP_DECLARE_INFER_SYMBOLIC_SHAPE(Half)
    OP_DECLARE_INFER_SYMBOLIC_SHAPE(Third)
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      inplace : (x -> out)
      interfaces : paddle::dialect::InferSymbolicShapeInterface
      traits : paddle::dialect::ForwardOnlyTrait
    ```

    ```cpp shapes.h
    OP_DECLARE_INFER_SYMBOLIC_SHAPE(Half)
    bool Half_OpInferSymbolicShape(pir::Operation* op, pir::InferSymbolicShapeContext* context);
    class ForwardOnlyTrait : public pir::OpTraitBase<ForwardOnlyTrait> {};
    ```
    """
    absent, known = _missing(entry.listed.tree), cpp_names(entry.listed.tree).paths
    for place, name in _required(entry):
        if name in absent:
            what = f"class `{name}`" if name.endswith(("Trait", "Interface")) else f"function `{name}()`"
            message = f"no C++ file declares the {what} that `{entry.name}` needs"
            yield unknown(entry, place, name, known, message, cutoff=0.85)


_CALLED = {"InferSymbolicShapeInterface": "OpInferSymbolicShape", "ParseKernelKeyInterface": "OpParseKernelKey"}
"""Functions that interfaces call, without the name of the operator."""


def _required(entry: OpEntry) -> Iterator[tuple[Span, str]]:
    """The classes in ``traits`` and ``interfaces`` and the functions that they call, with the places that ask for them."""
    listed = entry.listed
    if listed.foreign or listed.part in ("dygraph", "legacy") or listed.group not in ("", "pir", "fused", "sparse"):
        return
    for name, place in (*entry.names("traits"), *entry.names("interfaces")):
        symbol = name.rpartition("::")[2]
        yield place, symbol
        if symbol in _CALLED:
            yield from ((place, f"{one}{_CALLED[symbol]}") for one in _classes(entry))


@cached_on_argument
def _missing(tree: Tree) -> frozenset[str]:
    """Return the classes and functions that a tree lacks, although it has most of them."""
    names = {name for entry in tree.entries for _, name in _required(entry)}
    functions = {name for name in names if name.endswith(tuple(_CALLED.values()))}
    cpp = cpp_names(tree)
    return cpp.missing(functions) | cpp.missing(names - functions)


def _classes(entry: OpEntry) -> Iterator[str]:
    """The classes of an operator: one for each kernel, and another for its in-place variant."""
    several, suffix = len(entry.kernels) > 1, "Sp" if entry.listed.group == "sparse" else ""
    in_place = entry.get("inplace") is not None or entry.get("view") is not None
    for mark in ("_",) if entry.name.endswith("_") else ("", "_") if in_place else ("",):
        if several:
            yield from (f"{_pascal(kernel.name)}{suffix}{mark}" for kernel in entry.kernels)
        else:
            yield f"{_pascal(entry.name.rstrip('_'))}{mark}{suffix}"


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))

"""Entries that Paddle's generators reject or misread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.pieces import Piece
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.source.yaml_spans import refused_tabs
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, no_mappings, unknown
from opschema_rules.paddle.defaults import fault_of
from opschema_rules.paddle.grammar import CALLS, ERRORS, parse_call
from opschema_rules.paddle.model import DATA_TRANSFORM, INFER_META, KERNEL, OpEntry, OpFile


@rule("PDL101", "incomplete-entry")
def incomplete_entry(listed: OpFile) -> Iterator[Diagnostic]:
    """An entry that lacks a field that the generators need.

    Every entry needs `op` or `backward_op`, `args` and `output`; a gradient also needs `forward`. An operator of eager mode needs
    `infer_meta` and `kernel`, unless it has `invoke` or `composite`. Otherwise the generators stop with a `KeyError` or
    `AttributeError`.

    Bad:

    ```yaml
    - op : scale_by
      args : (Tensor x, float factor)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : scale_by}
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      invoke : scale_by(x, 0.5f)
    ```
    """
    yield from no_mappings(listed.file, "`op` or `backward_op`")
    for entry in listed.entries:
        if not entry.name:
            yield found(entry, entry.place, "this entry has neither `op` nor `backward_op`")
            continue
        needed = ["args", "output", *(["forward"] if entry.is_backward and entry.listed.group != "pir" else [])]
        if entry.eager and entry.get("invoke") is None and (entry.get("composite") is None or entry.get("kernel")):
            needed += ["infer_meta", "kernel"]
        for field in needed:
            if entry.get(field) is None:
                yield found(entry, entry.place, f"`{entry.name}` has no field `{field}`")


@rule("PDL102", "unknown-operator-field")
def unknown_operator_field(entry: OpEntry) -> Iterator[Diagnostic]:
    """A field that Paddle's parser does not know.

    `check_op_config` in `parse_utils.py` raises an error for an unknown field of an entry, of `infer_meta` or of `kernel`. An
    unknown field of `data_transform` has no effect. If the repository has its own `parse_utils.py`, the rule also accepts the
    fields that it lists.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half, datatype : x}
      inplce : (x -> out)
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta, spmd_rule : ElementwiseUnaryInferSpmd}
      kernel : {func : half, data_type : x}
      inplace : (x -> out)
    ```
    """
    yield from _unknown(entry, [key for key, _ in entry.written.values()], entry.known_fields, entry.misspelt, "")
    for field, known in (("infer_meta", INFER_META), ("kernel", KERNEL), ("data_transform", DATA_TRANSFORM)):
        others = known | (entry.listed.tree.keys if field != "data_transform" else frozenset())
        yield from _unknown(entry, list(entry.keys(field)), others, {}, f" in `{field}`")


def _unknown(
    entry: OpEntry, keys: Sequence[Node], known: frozenset[str], meant: Mapping[str, str], where: str
) -> Iterator[Diagnostic]:
    written = {key.value for key in keys}
    for key in keys:
        if key.value not in known:
            near = meant.get(key.value) or nearest(key.value, known - written)
            yield found(entry, key, f"unknown field `{key.value}`{where}{did_you_mean(near)}")


@rule("PDL103", "operator-syntax")
def operator_syntax(entry: OpEntry) -> Iterator[Diagnostic]:
    """Arguments, outputs or a `forward` that Paddle's parser rejects.

    In `args`, tensors must come before attributes, and attributes without a default before those with one. Their types must be
    those of `type_mapping.py`. A tensor cannot have a default; `optional` lists the tensors that may be absent. The types in
    `forward` must not contain parentheses: write `Scalar` for `Scalar(int)`. `invoke` and `composite` must be calls.

    In eager mode there must be one space between `Tensor` and a name, and `output` must not be empty. The generators read the files
    with PyYAML's own parser, which rejects tabs outside of quotes and comments.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, float factor = 0.5f, integer axis, Tensor mask)
      output : Tensr(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
    ```

    Good (a default with commas, an output without a name, and a list as long as another one):

    ```yaml
    - op : halves
      args : (Tensor[] x, int[] axes = {0, 1}, Scalar(int) n = 2)
      output : Tensor, Tensor[](parts){x.size()}
      infer_meta : {func : HalvesInferMeta}
      kernel : {func : halves}
    ```
    """
    for path in (*((field,) for field in _TEXTS), ("kernel", "func"), ("infer_meta", "func")):
        node = entry.within(*path)
        text = string(node)
        if node is None or (path == ("output",) and _may_be_empty(entry, node)):
            continue
        if text is None:
            yield found(entry, node, f"`{path[-1]}` must be text")
        elif path[0] in CALLS and CALLS[path[0]].search(text) is None:
            yield found(entry, node, f"`{path[0]}` must be a call: `name(x, ...)`")
        elif path[0] in ERRORS:
            yield from (found(entry, entry.inner(node, one.span), one.message) for one in ERRORS[path[0]](text))
    for arg in entry.signature.inputs if entry.eager else ():
        if arg.name_span.start > arg.span.start + len(f"{arg.type} "):
            message = (
                f"write `{arg.type} {arg.name}` with one space; the generator of the C++ API finds no name after two"
            )
            yield found(entry, entry.part(arg.span, "args"), message)
    for span in refused_tabs(entry.file, entry.node):
        yield found(entry, span, "PyYAML, with which the generators read the file, rejects a tab here; write spaces")


def _may_be_empty(entry: OpEntry, output: Node) -> bool:
    """Whether an operator has no outputs: the generator of the C++ API, which eager mode calls, reads a string in any case."""
    return not entry.eager and output.kind == "scalar" and scalar_value(output) is None


_TEXTS = ("args", "output", "forward", "inplace", "view", "optional", "intermediate", "no_need_buffer", *CALLS)


@rule("PDL104", "unknown-tensor")
def unknown_tensor(entry: OpEntry) -> Iterator[Diagnostic]:
    """A field that names an input, output or attribute that the operator does not have.

    `inplace` and `view` map inputs to outputs. `optional` lists inputs and outputs, `intermediate` lists outputs, `no_need_buffer`
    and `data_transform` list inputs, `support_tensor` lists attributes, and `composite` lists arguments and outputs.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, float factor)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half}
      inplace : (x -> output)
      optional : factor
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x, Tensor mask, float factor)
      output : Tensor(out), Tensor(rest)
      infer_meta : {func : HalfInferMeta}
      kernel : {func : half}
      inplace : (x -> out), (mask -> rest)
      optional : mask, rest
    ```
    """
    if not entry.is_sound:
        return
    inputs, attributes, outputs = ([item.name for item in part] for part in entry.signature.parts.values())
    for field in ("inplace", "view"):
        for first, second in entry.pairs(field):
            yield from _unless_known(entry, field, [first], inputs, "an input")
            yield from _unless_known(entry, field, [second], outputs, "an output")
    for path, known, what in (
        (("optional",), [*inputs, *outputs], "a tensor"),
        (("intermediate",), outputs, "an output"),
        (("no_need_buffer",), inputs, "an input"),
        (("data_transform", "skip_transform"), inputs, "an input"),
        (("data_transform", "support_trans_dtype"), inputs, "an input"),
    ):
        yield from _unless_known(entry, path[-1], entry.names(*path), known, what)
    node = entry.get("support_tensor")
    supported = [Piece(item.value, item.span) for item in node.items] if node is not None and node.is_sequence else []
    yield from _unless_known(entry, "support_tensor", supported, attributes, "an attribute")
    # Elsewhere only the name of the function is used.
    is_read = entry.is_legacy or entry.listed.part in ("", "fused")
    call = parse_call(entry.text_of("composite")) if is_read else None
    passed = [name for name in call[1] if name.text.isidentifier()] if call is not None else []
    everything, what = [*inputs, *attributes, *outputs], "an argument or output"
    yield from _unless_known(entry, "composite", entry.placed(passed, "composite"), everything, what)


def _unless_known(
    entry: OpEntry, field: str, names: Sequence[Piece], known: Sequence[str], what: str
) -> Iterator[Diagnostic]:
    for name, place in names:
        if name not in known:
            message = f"`{field}` names `{name}`, which is not {what} of `{entry.name}`"
            yield unknown(entry, place, name, known, message, entry.declared())


@rule("PDL105", "default-value-type")
def default_value_type(entry: OpEntry) -> Iterator[Diagnostic]:
    """A default that does not match the type of its attribute.

    The generators copy defaults into C++, so write them in C++: `true`, not `True`; `"NCHW"` in double quotes; `{1, 1}` for a list;
    `DataType::FLOAT32` for a `DataType`. C++ truncates a fraction that is the default of an `int`.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, bool flag = True, int axis = 0.5, int[] axes = 1, str layout = NCHW, DataType dtype = FLOAT32)
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta}
      kernel : {func : half}
    ```

    Good:

    ```yaml
    - op : half
      args : (Tensor x, bool flag = true, int axis = (1 << 6) - 1, float p = 1, Scalar y = 1e-5f, int[] axes = {}, Place place = {})
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta}
      kernel : {func : half}
    ```
    """
    for arg in entry.signature.attributes if entry.is_sound else ():
        if fault := fault_of(arg.type, arg.default) if arg.default is not None else "":
            message = f"the default `{arg.default}` of `{arg.type} {arg.name}` {fault}"
            yield found(entry, entry.part(arg.default_span, "args"), message)


@rule("PDL106", "list-without-size")
def list_without_size(entry: OpEntry) -> Iterator[Diagnostic]:
    """A `Tensor[]` output without a length.

    The generator of the C++ API needs the length of a `Tensor[]` output, as a C++ expression in braces, unless `inplace` maps an
    input to the output.

    Bad:

    ```yaml
    - op : halves
      args : (Tensor x)
      output : Tensor[](out)
      infer_meta : {func : HalvesInferMeta}
      kernel : {func : halves}
    ```

    Good:

    ```yaml
    - op : halves_
      args : (Tensor[] x, int n)
      output : Tensor[](out), Tensor[](parts){n}
      infer_meta : {func : HalvesInferMeta}
      kernel : {func : halves}
      inplace : (x -> out)
    ```
    """
    if not entry.eager or entry.get("kernel") is None or not entry.is_sound:
        return
    inplace = {second.text for _, second in entry.pairs("inplace")}
    for item in entry.signature.outputs:
        if item.type == "Tensor[]" and not item.size and item.name not in inplace:
            message = f"the output list `{item.name}` has no length; write `{item.type}({item.name}){{...}}`"
            yield found(entry, entry.part(item.span, "output"), message)

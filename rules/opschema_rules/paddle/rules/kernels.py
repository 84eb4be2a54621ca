"""Parameters and kernels of entries, and the C++ functions that they are passed to."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.pieces import Piece
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, unknown
from opschema_rules.paddle.cpp import FunctionCheck, cpp_names
from opschema_rules.paddle.cpp_types import mismatch, takes_string
from opschema_rules.paddle.grammar import is_constant
from opschema_rules.paddle.model import OpEntry

_SELECTING = {"data_type": "DataType", "layout": "DataLayout", "backend": "Place"}


@rule("PDL201", "unknown-parameter")
def unknown_parameter(entry: OpEntry) -> Iterator[Diagnostic]:
    """A parameter of `infer_meta` or `kernel` that is not an argument of the operator.

    The generator passes an unknown name in `infer_meta` as a string, and copies an unknown name in `kernel` into the call. Then the
    generated C++ does not compile, or an attribute is missing at run time. Names of constants (`INT_MAX`, `kMax`) and strings that
    the function in `infer_meta` takes are accepted. `data_type`, `layout` and `backend` must name arguments or be C++ such as
    `DataType::FLOAT32`.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, int axis)
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta, param : [x, dim]}
      kernel : {func : half, param : [x, axes], data_type : input}
    ```

    Good (a literal, and a name that `op_compat.yaml` maps to an argument):

    ```yaml legacy/static_ops.yaml
    - op : half
      args : (Tensor x, int[] ksize)
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta, param : [x, false]}
      kernel : {func : half, param : [x, kernel_size], data_type : 'DataType::FLOAT32'}
    ```

    ```yaml op_compat.yaml
    - op : half
      attrs : {kernel_size : ksize}
    ```
    """
    if not entry.is_sound:
        return
    for field in ("infer_meta", "kernel"):
        for index, item in enumerate(entry.params(field) or ()):
            name = string(item) or ""
            is_own = name in entry.arguments or name in ("true", "false", "nullptr") or is_constant(name)
            if name.isidentifier() and not is_own and (field == "kernel" or not takes_string(entry, index)):
                yield _no_argument(entry, Piece(name, item.span), f"`{field}` passes")
    for field in _SELECTING:
        for name, span in entry.candidates(field)[1]:
            if name not in entry.arguments and name.isidentifier() and name.islower():
                yield _no_argument(entry, Piece(name, span), f"`{field}` names")


def _no_argument(entry: OpEntry, name: Piece, does: str) -> Diagnostic:
    message = f"{does} `{name.text}`, which is not an argument of `{entry.name}`"
    return unknown(entry, name.span, name.text, entry.arguments, message, entry.declared())


@rule("PDL202", "kernel-selection")
def kernel_selection(entry: OpEntry) -> Iterator[Diagnostic]:
    """Kernels, or a choice of data type, layout or backend, that do not match the arguments.

    If an operator is sparse or has several kernels, the kinds of the tensors select one: `scale {dense -> dense}, scale_sr
    {selected_rows -> selected_rows}`. Each kernel must list one kind for each output and for each input that is not optional; it
    may list kinds for optional inputs, too. Sparse operators have no `selected_rows`. In `data_type`, `layout` and `backend`,
    `a > b` means `b` if `a` is not set; `a` must be an attribute of type `DataType`, `DataLayout` or `Place`.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x, Tensor y, str dtype)
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta}
      kernel :
        func : half {dense -> dense}, half_sr {selected_rows, dense -> selected_rows, dense}
        data_type : dtype > x
    ```

    Good (`y` is optional):

    ```yaml
    - op : half
      args : (Tensor x, Tensor y, DataType dtype)
      output : Tensor(out)
      infer_meta : {func : HalfInferMeta}
      kernel :
        func : half {dense -> dense}, half_sr {selected_rows, dense -> selected_rows}
        data_type : dtype > x
      optional : y
    ```
    """
    if not entry.is_sound:
        return
    inputs, outputs = entry.signature.inputs, entry.signature.outputs
    needed = sum(arg.name not in entry.optional for arg in inputs)
    sparse = entry.listed.group == "sparse"
    for kernel in entry.kernels:
        lists = f"the kernel `{kernel.name}` lists"
        if not kernel.outputs:
            if sparse or (len(entry.kernels) > 1 and entry.eager):
                what = "a kernel of a sparse operator" if sparse else "one of several kernels"
                kind = "sparse_coo" if sparse else "dense"
                message = f"`{kernel.name}` is {what}, but lists no tensor kinds, such as `{{{kind} -> {kind}}}`"
                yield found(entry, kernel.span, message)
            continue
        if not needed <= len(kernel.inputs) <= len(inputs):
            message = f"{lists} {count(len(kernel.inputs), 'input')}, but `{entry.name}` has {len(inputs)}"
            yield found(entry, kernel.span, message, entry.declared())
        if len(kernel.outputs) != len(outputs):
            message = f"{lists} {count(len(kernel.outputs), 'output')}, but `{entry.name}` has {len(outputs)}"
            yield found(entry, kernel.span, message, entry.declared())
        if sparse and "selected_rows" in (*kernel.inputs, *kernel.outputs):
            yield found(entry, kernel.span, f"{lists} `selected_rows`, which sparse operators do not have")
    for field, type_ in _SELECTING.items():
        mark, names = entry.candidates(field)
        first = entry.arguments.get(names[0].text) if names else None
        if mark == ">" and first is not None and first.type != type_ and entry.eager:
            message = f"`{field}` prefers `{first.name}`, which is a `{first.type}`; it must be an attribute of type `{type_}`"
            yield found(entry, names[0].span, message, entry.declared())


@rule("PDL203", "cpp-call", needs=(CPP,))
def cpp_call(check: FunctionCheck) -> Iterator[Diagnostic]:
    """A C++ function whose parameters differ from what the generated code passes.

    The function in `infer_meta` takes the parameters and then the outputs; its tensors are `MetaTensor`s. A kernel takes the
    context, the parameters and the outputs. Eager mode calls it through a function pointer whose type is derived from the entry.
    If the kernel has another type, the compiler reports nothing, and the kernel reads shifted or wrong arguments at run time.
    For sparse operators and the static graphs, a kernel takes its inputs, attributes and outputs by index from a context, and may
    take fewer. In `legacy`, the function in `infer_meta` takes what the kernel takes, unless `manual_signature` in
    `op_compat.yaml` lists the operator. Kernels are found by `PD_REGISTER_KERNEL`.

    Bad (the kernel lacks an attribute, and does not accept that `mask` is absent):

    ```yaml
    - op : half
      args : (Tensor x, Tensor mask, bool exact)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta, param : [x]}
      kernel : {func : half}
      optional : mask
    ```

    ```cpp
    namespace phi {
    void UnchangedInferMeta(const MetaTensor& x, MetaTensor* out);
    template <typename T, typename Context>
    void HalfKernel(const Context& ctx, const DenseTensor& x, const DenseTensor& mask, DenseTensor* out) {}
    }
    PD_REGISTER_KERNEL(half, CPU, ALL_LAYOUT, phi::HalfKernel, float, double) {}
    ```

    Good (a declaration that is out of date and has no definition, and an integer that C++ converts):

    ```yaml
    - op : half
      args : (Tensor x, int axis, str layout)
      output : Tensor(out), Tensor[](parts){axis}
      infer_meta : {func : HalfInferMeta, param : [x, axis]}
      kernel : {func : half}
      optional : x
    ```

    ```cpp kernels.h
    namespace phi {
    void HalfInferMeta(const MetaTensor& x, int64_t axis, MetaTensor* out, std::vector<MetaTensor*> parts,
                       MetaConfig config = MetaConfig());
    template <typename T, typename Context>
    void HalfKernel(const Context& ctx, const DenseTensor& x, DenseTensor* out);
    }
    ```

    ```cpp half.cc
    namespace phi {
    template <typename T, typename Context>
    void HalfKernel(const Context& ctx, const paddle::optional<DenseTensor>& x, int axis, const std::string& layout,
                    DenseTensor* out, std::vector<DenseTensor*> parts) {}
    }
    PD_REGISTER_KERNEL(half, CPU, ALL_LAYOUT, phi::HalfKernel, float, double) {}
    ```
    """
    differs = mismatch(check)
    if differs is not None:
        text, place = differs
        what = "`infer_meta`" if check.kernel is None else f"the kernel `{check.kernel.name}`"
        message = f"{text} ({what} of `{check.entry.name}`)"
        yield found(check.entry, check.place, message, Related(place, "declared here"))


@rule("PDL204", "missing-cpp-function", needs=(CPP,))
def missing_cpp_function(check: FunctionCheck) -> Iterator[Diagnostic]:
    """A kernel that no C++ file registers, or a function in `infer_meta` that no C++ file declares.

    A name is reported only if the repository has nearly all other kernels or functions, and if neither the name nor its first words
    are passed to a macro.

    Bad:

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangdInferMeta}
      kernel : {func : half}
    - op : third
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : third}
    - &common
      op : a1
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : third}
    - {<<: *common, op : a2, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a3, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a4, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a5, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a6, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a7, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a8, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    - {<<: *common, op : a9, args : (Tensor x), output : Tensor(out), infer_meta : {func : UnchangedInferMeta}}
    ```

    ```cpp
    namespace phi {
    void UnchangedInferMeta(const MetaTensor& x, MetaTensor* out);
    }
    PD_REGISTER_KERNEL(half, CPU, ALL_LAYOUT, phi::HalfKernel, float, double) {}
    PD_REGISTER_KERNEL(third, CPU, ALL_LAYOUT, phi::ThirdKernel, float, double) {}
    ```

    Good (a macro registers `half_coo`):

    ```yaml
    - op : half
      args : (Tensor x)
      output : Tensor(out)
      infer_meta : {func : UnchangedInferMeta}
      kernel : {func : half_coo}
    ```

    ```cpp
    void UnchangedInferMeta(const MetaTensor& x, MetaTensor* out);
    PD_REGISTER_SPARSE_UNARY_CPU_KERNEL(half, Half)
    ```
    """
    if not check.missing:
        return
    if check.kernel is None:
        message = f"no C++ file declares `{check.name}()`, which `infer_meta` of `{check.entry.name}` names"
    else:
        message = f"no C++ file registers the kernel `{check.name}` of `{check.entry.name}`"
    known = cpp_names(check.entry.listed.tree).known(check)
    yield unknown(check.entry, check.place, check.name.rpartition("::")[2], known, message)

"""Calls of other operators, and classes that the new static graph needs: what looks wrong and is right, and what is wrong."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.paddle.pack import PACK

OPS = """
- op : full
  args : (IntArray shape, Scalar value, DataType dtype = DataType::FLOAT32, Place place = CPUPlace())
  output : Tensor(out)
  infer_meta : {func : CreateInferMeta, param : [shape, dtype]}
  kernel : {func : full, param : [shape, value, dtype], data_type : dtype, backend : place}

- op : scale
  args : (Tensor x, Scalar factor = 1.0, float bias = 0.0, bool after = true)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta, param : [x]}
  kernel : {func : scale}
  inplace : (x -> out)
  backward : scale_grad

- op : concat
  args : (Tensor[] x, Scalar axis = 0)
  output : Tensor(out), Tensor(sizes)
  infer_meta : {func : ConcatInferMeta}
  kernel : {func : concat}
  intermediate : sizes

- op : own
  args : (Tensor x, Tensor[] xs, Tensor n, int axis, int64_t[] sizes, Scalar(int) k, str mode, DataType type)
  output : Tensor(out)
  invoke : 'CALL'
"""

BACKWARD = """
- backward_op : scale_grad
  forward : scale (Tensor x, Scalar factor, float bias, bool after) -> Tensor(out)
  args : (Tensor out_grad, Scalar factor)
  output : Tensor(x_grad)
  invoke : GRADIENT
"""

HEADER = """
#pragma once
Tensor own_impl(const Tensor& x, int axis);
Tensor written_by_hand(const Tensor& x);
class ForwardOnlyTrait;
"""


def found(call: str, gradient: str = "scale(out_grad, factor, 0.0f, true)") -> list[str]:
    files = {
        "ops.yaml": OPS.replace("CALL", call),
        "backward.yaml": BACKWARD.replace("GRADIENT", gradient),
        "api.h": HEADER,
    }
    return [item.message for item in lint_files(PACK, files).diagnostics]


@pytest.mark.parametrize(
    "call",
    [
        "full(sizes, axis)",
        "full(sizes, 1, type)",
        "full ( {1, 2} , k , x.dtype(), x.place() )",
        "full(n, n, DataType::INT64)",
        "full(xs, 1e-5f, (axis > 0) ? type : DataType::INT32, CPUPlace())",
        "scale(x)",
        "scale_(x, n, axis, k.to<bool>())",
        "scale(xs[0], INT_MAX, kLimit, std::max(axis, 1))",
        "concat(xs, k)",
        "concat({x, n}, axis)",
        "own_impl(x, axis)",
        "written_by_hand(x)",
        "paddle::experimental::anything(x, 1, 2)",
        'elsewhere_impl(x, "sum, mean")',
    ],
)
def test_calls_that_compile(call: str) -> None:
    wanted = [] if not call.startswith("elsewhere") else found('elsewhere_impl(x, "a")')
    assert found(call) == wanted == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("fulll(sizes, 1)", "no entry declares `fulll`, which `own` invokes; did you mean `full`?"),
        ("own_imp(x, axis)", "no entry declares `own_imp`, which `own` invokes"),
        ("other_impl(x, axis)", "no entry declares `other_impl`, which `own` invokes"),
        ("full(sizes)", "`invoke` of `own` passes 1 argument to `full`, which takes 2 to 4 arguments"),
        ("scale(x, 1, 1, true, 2)", "`invoke` of `own` passes 5 arguments to `scale`, which takes 1 to 4 arguments"),
        ("full(1, sizes)", "`invoke` of `own` passes `int64_t[] sizes` as `Scalar value` of `full`"),
        ("scale(xs)", "`invoke` of `own` passes `Tensor[] xs` as `Tensor x` of `scale`"),
        ("scale(x, k, k)", "`invoke` of `own` passes `Scalar(int) k` as `float bias` of `scale`"),
        (
            "scale(x, 1, 0, True)",
            "`invoke` of `own` passes `True` as `bool after` of `scale`, but it is Python syntax; write `true`",
        ),
        ("concat(x, axis)", "`invoke` of `own` passes `Tensor x` as `Tensor[] x` of `concat`"),
        ("scale(y)", "`invoke` passes `y`, which is not an argument of `own`"),
        ("full(sizes, 1, y.dtype())", "`invoke` passes `y`, which is not an argument of `own`"),
        ("scale", "`invoke` must be a call: `name(x, ...)`"),
    ],
)
def test_calls_that_do_not(call: str, words: str) -> None:
    assert [message for message in found(call) if words in message] == found(call) != []


def test_a_gradient_that_returns_more_than_it_calls() -> None:
    assert found("scale(x)", "concat(out_grad, factor)") == [
        "`invoke` of `scale_grad` passes `Tensor out_grad` as `Tensor[] x` of `concat`"
    ]


LEGACY = """
- op : crop
  args : (Tensor x, IntArray sizes, int[] ksize = {}, Scalar value = 0.0f)
  output : Tensor(out)
  infer_meta : {func : CropInferMeta, param : [x, value]}
  kernel : {func : crop, param : [x, kernel_size, sizes, value]}
- op : other
  args : (Tensor x)
  output : Tensor(out)
  infer_meta : {func : CropInferMeta}
  kernel : {func : crop}
"""

CROP = """
namespace phi {
void CropInferMeta(const MetaTensor& x, const std::vector<int>& kernel_size, MetaTensor* out, MetaConfig config = MetaConfig());
template <typename T, typename Context>
void CropKernel(const Context& ctx, const DenseTensor& x, const std::vector<int>& kernel_size,
                const std::vector<int64_t>& sizes, const Scalar& value, DenseTensor* out) {}
}
PD_REGISTER_KERNEL(crop, CPU, ALL_LAYOUT, phi::CropKernel, float) {}
"""

COMPAT = """
- op : crop
  attrs : {kernel_size : ksize}
- op : other
  manual_signature : [other]
"""


def test_the_old_static_graph_converts_what_it_stores() -> None:
    files = {"legacy/static_ops.yaml": LEGACY, "crop.cc": CROP, "op_compat.yaml": COMPAT}
    assert lint_files(PACK, files).codes() == ["PDL402"]  # the main files have no `crop`


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "IntArray sizes",
            "float[] sizes",
            "takes `const std::vector<int64_t>& sizes`, but `sizes` (float[]) is passed",
        ),
        (", sizes, value]", ", sizes]", "`CropKernel()` takes 3 attributes, but the entry passes 2"),
        ("[x, kernel_size, sizes", "[x, sizes, kernel_size", "takes `const std::vector<int>& kernel_size`"),
    ],
)
def test_the_old_static_graph_passes_arguments_by_number(old: str, new: str, words: str) -> None:
    files = {"legacy/static_ops.yaml": LEGACY.replace(old, new), "crop.cc": CROP, "op_compat.yaml": COMPAT}
    messages = [item.message for item in lint_files(PACK, files).diagnostics]
    assert messages
    assert any(words in message for message in messages)


def shapes(interfaces: str, header: str, path: str = "ops.yaml", kernel: str = "half", more: str = "") -> list[str]:
    first = """
- op : full_like
  args : (Tensor x)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta}
  kernel : {func : full_like}
  interfaces : a::InferSymbolicShapeInterface, b::ParseKernelKeyInterface
"""
    op = (
        first.replace("full_like", "half")
        .replace("  interfaces", f"{more}  interfaces")
        .replace("func : half", f"func : '{kernel}'")
    )
    op = op[: op.index("  interfaces")] + f"  interfaces : {interfaces}\n"
    known = """
OP_DECLARE_INFER_SYMBOLIC_SHAPE(FullLike)
KernelKeyTuple FullLikeOpParseKernelKey(pir::Operation *op);
class TEST_API InferSymbolicShapeInterface : public pir::OpInterfaceBase<InferSymbolicShapeInterface> {};
class ParseKernelKeyInterface
    : public pir::OpInterfaceBase<ParseKernelKeyInterface> {};
"""
    files = {"ops.yaml": first, path: op if path != "ops.yaml" else first + op, "shapes.h": known + header}
    return [item.message for item in lint_files(PACK, files).diagnostics]


@pytest.mark.parametrize(
    ("interfaces", "header", "path", "kernel", "more"),
    [
        ("InferSymbolicShapeInterface", "OP_DECLARE_INFER_SYMBOLIC_SHAPE(Half)", "ops.yaml", "half", ""),
        (
            "x::InferSymbolicShapeInterface",
            "bool HalfOpInferSymbolicShape(\n  pir::Operation *op);",
            "ops.yaml",
            "half",
            "",
        ),
        ("InferSymbolicShapeInterface", "", "inconsistent/dygraph_ops.yaml", "half", ""),
        ("InferSymbolicShapeInterface", "", "legacy/static_ops.yaml", "half", ""),
        (
            "InferSymbolicShapeInterface",
            "OP_DECLARE_INFER_SYMBOLIC_SHAPE(HalfSp)\nOP_DECLARE_INFER_SYMBOLIC_SHAPE(Half_Sp)",
            "sparse_ops.yaml",
            "half {sparse_coo -> sparse_coo}",
            "  inplace : (x -> out)\n",
        ),
        (
            "InferSymbolicShapeInterface",
            "OP_DECLARE_INFER_SYMBOLIC_SHAPE(HalfDense)\nOP_DECLARE_INFER_SYMBOLIC_SHAPE(HalfSr)",
            "ops.yaml",
            "half_dense {dense -> dense}, half_sr {selected_rows -> selected_rows}",
            "",
        ),
    ],
)
def test_interfaces_with_their_functions(interfaces: str, header: str, path: str, kernel: str, more: str) -> None:
    assert shapes(interfaces, header, path, kernel, more) == []


@pytest.mark.parametrize(
    ("interfaces", "header", "more", "message"),
    [
        (
            "InferSymbolicShapeInterface",
            "",
            "",
            "no C++ file declares the function `HalfOpInferSymbolicShape()` that `half` needs",
        ),
        (
            "ParseKernelKeyInterface",
            "// OP_DECLARE_INFER_SYMBOLIC_SHAPE(Half)",
            "",
            "function `HalfOpParseKernelKey()`",
        ),
        (
            "InferSymbolicShapesInterface",
            "",
            "",
            "class `InferSymbolicShapesInterface` that `half` needs; did you mean `InferSymb",
        ),
        (
            "InferSymbolicShapeInterface",
            "OP_DECLARE_INFER_SYMBOLIC_SHAPE(Half)",
            "  inplace : (x -> out)\n",
            "function `Half_OpInferSymbolicShape()`",
        ),
    ],
)
def test_interfaces_without(interfaces: str, header: str, more: str, message: str) -> None:
    (only,) = shapes(interfaces, header, more=more)
    assert message in only

"""Trees that look wrong and are right: Paddle's own generators (at 4b03158d) accept each of them."""

from __future__ import annotations

import textwrap

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.paddle.pack import PACK

OPS = """
- op : ba_
  args : (Tensor p, Tensor g, float lr)
  output : Tensor(p_out)
  infer_meta : {func : BAInferMeta, local_shape : p, spmd_rule : BASpmd}
  kernel : {func : ba, force_backend : CPU}
  inplace : (p -> p_out)
  backward : ba_grad

- op : bb
  args : (Tensor x,Tensor y,int axis=-1,float[] w={1.0f, 2.0f},str mode="a b")
  output : Tensor (out), Tensor(mask)
  infer_meta :
    func : BBInferMeta
    param : [x, cubic, axis, true, 0, "NCHW", 1e-5]
  kernel :
    func : bb {dense,dense->dense,dense}
    param : [x, y, axis, w, mode, "DataType::FLOAT32", INT_MAX, kLimit]
    data_type : complex(x)
  optional : mask , y
  intermediate : mask
  traits : pir::InplaceTrait

- op : bc
  args : (Scalar start, Scalar(int64_t) end, DataType dtype=phi::DataType::FLOAT32, Place place = phi::CPUPlace())
  output : Tensor
  infer_meta : {func : CreateInferMeta, param : [start, end, dtype]}
  kernel : {func : bc, param : [start, end, dtype], data_type : dtype, backend : place}

- {op: bd, args: "(Tensor x, Scalar(float) v = 1.f)", output: "Tensor(out@R)", infer_meta: {func: M, param: [x]}, kernel: {func: b}}

- op : be
  args : (Tensor[] xs, Tensor lr, bool flag = (1 > 0), double eps = .5, int64_t n = INT64_MAX, str s = std::string(), int q = 'a')
  output : Tensor[](xs_out){xs.size()}, Tensor(lr_out)
  infer_meta : {func : BEInferMeta}
  kernel : {func : "be {dense, dense -> dense, dense}, be_sr {dense, selected_rows -> dense, dense}", data_type : lr}
  inplace : (xs -> xs_out, lr -> lr_out)

- op : bf
  args : (Tensor x, int64_t n = std::numeric_limits<int64_t>::max(), int m = INT_MAX - 1, float g = -FLT_MAX, bool u = 2 > 1)
  output : Tensor(out)
  invoke : bf_impl(x, n, m)

- op : bg
  args : (Tensor x)
  output : Tensor(out), Tensor(x_grad)
  infer_meta : {func : BGInferMeta}
  kernel : {func : bg}
  backward : bg_grad
"""

BACKWARD = """
- backward_op : ba_grad
  forward : ba_ (Tensor b, Tensor a, float rate) -> Tensor(res)
  args : (Tensor a, Tensor res_grad, float rate)
  output : Tensor(b_grad), Tensor(a_grad)
  infer_meta : {func : GeneralBinaryGradInferMeta, param : [a, res_grad]}
  kernel : {func : ba_grad}
  inplace : (res_grad -> b_grad)

- backward_op : bg_grad
  forward : bg (Tensor x) -> Tensor(out), Tensor(x_grad)
  args : (Tensor x_grad, Tensor out_grad, bool extra = false)
  output : Tensor(x_grad@Other)
  infer_meta : {func : UnchangedInferMeta, param : [out_grad]}
  kernel : {func : bg_grad}
"""

CPP = """
namespace phi {
void BBInferMeta(const MetaTensor& x, const std::string& mode, int axis, bool a, int b, const std::string& layout, double eps,
                 MetaTensor* out, MetaTensor* mask);
}
"""

COMPAT = """
- op : ba_ (baa)
  inputs : {p : Param, rest : Residual}
  outputs : {p_out : ParamOut, mid : MidOut}
  extra : {inputs : [Residual], outputs : [MidOut], attrs : [bool use_cudnn = false]}
"""


def test_what_the_generators_accept_is_no_error() -> None:
    found = lint_files(PACK, {"ops.yaml": OPS, "backward.yaml": BACKWARD, "meta.h": CPP, "op_compat.yaml": COMPAT})
    assert [item.message for item in found.diagnostics] == []


def test_aliases_in_op_compat_are_followed() -> None:
    compat = """
- op : other
  attrs : &names {kernel_size : ksize}
- op : half
  attrs : *names
"""
    static = """
- op : half
  args : (Tensor x, int[] ksize)
  output : Tensor(out)
  infer_meta : {func : HalfInferMeta, param : [x]}
  kernel : {func : half, param : [x, kernel_size]}
"""
    files = {"ops.yaml": OPS, "backward.yaml": BACKWARD, "meta.h": CPP, "legacy/static_ops.yaml": static}
    assert "PDL201" not in lint_files(PACK, {**files, "op_compat.yaml": compat}).codes()


def test_a_string_that_the_function_does_not_take_is_reported() -> None:
    files = {"ops.yaml": OPS, "backward.yaml": BACKWARD, "meta.h": CPP.replace("const std::string& mode", "int mode")}
    messages = [item.message for item in lint_files(PACK, files).diagnostics]
    assert messages == ["`infer_meta` passes `cubic`, which is not an argument of `bb`"]


HALF = """
- op : half
  args : (Tensor x, int axis = -1, str mode = "a")
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta, param : [x]}
  kernel : {func : half}
"""


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("_C_ops.half(x, 1, 'a,b')", None),
        ("_C_ops.half_(x, (1, 2)[0], 'a')", None),
        ("paddle._C_ops.half(\n    x,  # the input, first\n    f(1, 2),\n    '''a, b''',\n)", None),
        ("_C_ops.half(*args)", None),
        ("_C_ops.half(x, *rest)", None),
        ("_C_ops.half(x, axis=1)", None),
        ("_C_ops.half(x, lambda a, b: a, 'a', 3)", None),
        ("legacy._C_ops.half(x)", None),
        ("'_C_ops.half(x)'", None),
        ("_C_ops.other(x)", None),
        ("_C_ops.half", None),
        ("_C_ops.half(x", None),
        ("_C_ops.half(x, a == b)", 2),
        ("_C_ops.half(x, 1, 'a', {'b': [1, 2]})", 4),
        ("_C_ops.half(x, (lambda a, b: a)(1, 2), 'a', 3)", 4),
        ("_C_ops.half(_C_ops.half(x, 1, 'a'), f(_C_ops.half(x, axis=1)))", 2),
        ("_C_ops.half()", 0),
    ],
)
def test_calls_in_python(call: str, number: int | None) -> None:
    python = textwrap.dedent(f"from paddle import _C_ops\nout = {call}\n")
    messages = [item.message for item in lint_files(PACK, {"ops.yaml": HALF, "use.py": python}).diagnostics]
    assert len(messages) == (number is not None)
    assert all(f"called with {number} argument" in message for message in messages)

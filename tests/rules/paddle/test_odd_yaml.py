"""Unusual entries that Paddle's parser and generators take (at 4b03158d), in each kind of file, and a few that they refuse."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.paddle.pack import PACK

PLAIN = """\
- op : half
  args : (Tensor x)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta}
  kernel : {func : half}
"""
OTHER = PLAIN.replace("half", "other")
SIGNED = """\
- op : half
  args : ARGS
  output : OUTPUT
  infer_meta : {func : HalfInferMeta}
  kernel : {func : half}
"""


def signed(args: str, output: str = "Tensor(out)", more: str = "") -> str:
    return SIGNED.replace("ARGS", args).replace("OUTPUT", output) + more


ODD = {
    "anchors": PLAIN.replace("args : (", "args : &args (").replace("infer_meta : {", "infer_meta : &meta {")
    + "- op : third\n  args : *args\n  output : Tensor(out)\n  infer_meta : *meta\n  kernel : {func : third}\n",
    "merge": PLAIN.replace("- op", "- &half\n  op") + "- <<: *half\n  op : third\n  kernel : {func : third}\n",
    "lines": signed(
        "(Tensor x,\n          Tensor y,\n    int n = 1)", "Tensor(out),\n     Tensor(mask)", "  intermediate : mask\n"
    ),
    "folded": signed(">\n    (Tensor x,\n    int n = 1)", ">-\n    Tensor(out)"),
    "literal": signed("|\n    (Tensor x, int n = 1)", "|\n    Tensor(out)"),
    "quoted": signed('"(Tensor x, str s = \\"a\\")"', "'Tensor(out)'").replace("op : half", "op : 'half'"),
    "comments": "# é\n" + PLAIN.replace("\n  ", " # one\n\n  # two\n  "),
    "values": PLAIN.replace("InferMeta}", "InferMeta, param : [x, true, 1, -1.5, 'NCHW', 0x10, 1e-3]}"),
    "no parameters": PLAIN.replace("Meta}", "Meta, param : []}").replace("half}", "half, param : []}"),
    "block": PLAIN.replace("{func : half}", "\n    func : half\n    param :\n      - x\n    data_type :\n      x"),
    "no inputs": signed("(IntArray shape, DataType dtype=DataType::FLOAT32, Place place=CPUPlace())").replace(
        "func : half", "func : half, data_type : dtype, backend : place"
    ),
    "view": PLAIN + "  inplace : ( x->out )\n  view : (x -> out)\n",
    "pairs": signed("(Tensor x, Tensor y)", "Tensor(out), Tensor(rest)", "  inplace : (x -> out, y -> rest)\n"),
    "optional": signed("(Tensor x, Tensor[] y)", "Tensor(out), Tensor(rest)", "  optional :  y ,rest\n"),
    "transform": signed(
        "(Tensor x, Tensor y)", more="  data_transform :\n    skip_transform : x, y\n    support_trans_dtype : y\n"
    ),
    "composite": PLAIN + "  composite :  half ( x , out )\n",
    "composite alone": "- op : half\n  args : (Tensor x)\n  output : Tensor(out)\n  composite : half(x, out)\n",
    "invoke": "- op : half\n  args : (Tensor x)\n  output : Tensor(out)\n  invoke :  other ( x )\n",
    "defaults": signed(
        "(Tensor x, int a=1, int b =2, float c = 1.0f/3, bool d = true, int64_t[] e = {1,2}, float[] f = {.5f})"
    ),
    "scalars": signed("(Tensor x, Scalar(int64_t) a, Scalar(float) b = 0, Scalar(bool) c = false, Scalar[] d = {})"),
    "names": signed("(Tensor X, Tensor Y_, int N)", "Tensor(Out@StringTensor)"),
    "selection": signed("(Tensor x, DataType dtype)").replace(
        "func : half", "func : half, data_type : dtype > x, force_backend : CPU"
    ),
    "traits": PLAIN + "  traits : pir::SideEffectTrait , paddle::dialect::ForwardOnlyTrait\n",
    "no name": signed("(Tensor x)", "Tensor"),
    "spaces": signed("(Tensor x,  int   n  =  1 )", "Tensor (out) , Tensor[] (rest) {3}"),
    "no buffer": PLAIN + "  no_need_buffer : x\n",
    "tensors": signed("(Tensor x, IntArray axes, Scalar k)", more="  support_tensor : [axes, k]\n"),
    "repeated key": PLAIN.replace("  args", "  op : half\n  args"),
    "line ends": PLAIN.replace("\n", "\r\n"),
    "byte order": "\ufeff" + PLAIN,
    "flow": "[{op: half, args: '(Tensor x)', output: 'Tensor(out)', infer_meta: {func: M}, kernel: {func: half}}]\n",
    "document": f"---\n{PLAIN}...\n",
    "distributed": PLAIN.replace("Meta}", "Meta, local_shape : out, spmd_rule : ElementwiseUnaryInferSpmd}"),
    "kinds": signed("(Tensor x, Tensor y)").replace(
        "{func : half}", "\n    func : half {dense, dense -> dense},\n      half_sr{selected_rows,dense->selected_rows}"
    ),
}
FILES = ("ops", "strings_ops", "fused_ops", "inconsistent/dygraph_ops", "inconsistent/static_ops", "legacy/static_ops")


@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_what_the_generators_take_is_no_finding(text: str, path: str) -> None:
    files = {"ops.yaml": OTHER, f"{path}.yaml": text if path != "ops" else text.rstrip(".\n") + f"\n{OTHER}"}
    if path == "ops" and text.startswith("["):
        files = {"ops.yaml": text, "inconsistent/dygraph_ops.yaml": OTHER}
    assert [item.message for item in lint_files(PACK, files).diagnostics] == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  optional :\n", "`optional` must be text"),
        ("  inplace : [x, out]\n", "`inplace` must be text"),
        ("  composite : half\n", "`composite` must be a call: `name(x, ...)`"),
    ],
)
def test_fields_that_are_not_what_the_parser_wants(more: str, message: str) -> None:
    assert [item.message for item in lint_files(PACK, {"ops.yaml": PLAIN + more}).diagnostics] == [message]


ONE_SPACE = "write `Tensor x` with one space; the generator of the C++ API finds no name after two"
EMPTY = PLAIN.replace("output : Tensor(out)", "output :")


@pytest.mark.parametrize(
    ("path", "messages"),
    [("ops", [ONE_SPACE]), ("sparse_ops", [ONE_SPACE]), ("fused_ops", []), ("inconsistent/static_ops", [])],
)
def test_the_c_api_reads_a_tensor_after_one_space(path: str, messages: list[str]) -> None:
    text = PLAIN.replace("Tensor x", "Tensor  x").replace("{func : half}", "{func : 'half {dense -> dense}'}")
    files = {"ops.yaml": OTHER, f"{path}.yaml": text}
    assert [item.message for item in lint_files(PACK, files).diagnostics] == messages


@pytest.mark.parametrize(
    ("path", "messages"), [("ops", ["`output` must be text"]), ("fused_ops", []), ("legacy/static_ops", [])]
)
def test_eager_mode_needs_an_output(path: str, messages: list[str]) -> None:
    files = {"other_ops.yaml": OTHER, f"{path}.yaml": EMPTY + OTHER}
    assert [item.message for item in lint_files(PACK, files).diagnostics] == messages


@pytest.mark.parametrize(
    ("old", "new", "tabs"),
    [
        ("Tensor x", "Tensor x,\tTensor y", 1),
        ("op : half", "op :\thalf", 1),
        ("output : Tensor(out)", "output : Tensor(out)\t# all\tof it", 1),
        ("output : Tensor(out)", "output : 'Tensor(out)'\n  #\tall of it", 0),
        ("output : Tensor(out)", "output : |\n    Tensor\t(out)", 0),
        ("output : Tensor(out)", "output : Tensor(out)\n  <<: {output : 'Tensor\t(x)'}", 0),
    ],
)
def test_tabs(old: str, new: str, tabs: int) -> None:
    found = [item.message for item in lint_files(PACK, {"ops.yaml": PLAIN.replace(old, new)}).diagnostics]
    assert found == ["PyYAML, with which the generators read the file, rejects a tab here; write spaces"] * tabs


def test_a_kernel_of_a_sparse_operator_has_no_selected_rows() -> None:
    text = PLAIN.replace("{func : half}", "{func : 'half {selected_rows -> sparse_coo}'}")
    assert [item.message for item in lint_files(PACK, {"ops.yaml": OTHER, "sparse_ops.yaml": text}).diagnostics] == [
        "the kernel `half` lists `selected_rows`, which sparse operators do not have"
    ]


def test_a_kernel_of_a_sparse_operator_lists_kinds() -> None:
    files = {"ops.yaml": OTHER, "sparse_ops.yaml": PLAIN}
    assert [item.message for item in lint_files(PACK, files).diagnostics] == [
        "`half` is a kernel of a sparse operator, but lists no tensor kinds, such as `{sparse_coo -> sparse_coo}`"
    ]

"""Operator YAML that looks wrong and is right, and files that are not operator YAML."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.paddle.defaults import fault_of
from opschema_rules.paddle.grammar import parse_args, parse_kernels, parse_outputs
from opschema_rules.paddle.pack import PACK

OP = """\
- op : half
  args : (Tensor x, int axis)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta}
  kernel : {func : half}
"""


def codes(**texts: str) -> list[str]:
    files = {f"{name.replace('__', '/')}.yaml": text for name, text in texts.items()}
    return [f"{item.code} {item.place.path}" for item in lint_files(PACK, files).diagnostics]


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("int", "true"),
        ("int", "(1 << 31) - 1"),
        ("int64_t", "INT64_MAX"),
        ("int64_t", "0L"),
        ("int", "2.0"),
        ("float", "1.0f/8"),
        ("float", "1."),
        ("float", ".5f"),
        ("double", "1e-6"),
        ("Scalar", "false"),
        ("Scalar(double)", '"1e-5"'),
        ("IntArray", "{}"),
        ("str[]", '{"127.0.0.1:6164"}'),
        ("str", "kDefault"),
        ("bool", "1"),
        ("Place", "CPUPlace()"),
        ("DataType", "phi::DataType::INT64"),
        ("DataLayout", "{}"),
    ],
)
def test_defaults_that_fit(type_: str, default: str) -> None:
    assert fault_of(type_, default) == ""


def test_arguments_over_several_lines() -> None:
    text = OP.replace("(Tensor x, int axis)", "(Tensor x,\n    int axis,\n    int64_t[] sizes = {1, 2})")
    assert codes(ops=text) == []


def test_the_place_of_an_error_in_a_folded_line() -> None:
    text = OP.replace("(Tensor x, int axis)", "(Tensor x,\n    integer axis)")
    linted = lint_files(PACK, {"ops.yaml": text})
    assert [linted.text(item.place) for item in linted.diagnostics] == ["integer"]


def test_names_of_special_outputs() -> None:
    outputs, errors = parse_outputs("Tensor(out@StringTensor), Tensor[](parts){axis < 0 ? f(x, y) : axis}")
    assert [(item.name, item.size) for item in outputs] == [("out", ""), ("parts", "axis < 0 ? f(x, y) : axis")]
    assert errors == []


def test_kernels_on_several_lines_without_commas() -> None:
    kernels, errors = parse_kernels("half {dense, dense -> dense}\n half_sr {selected_rows, dense -> selected_rows}")
    assert [(item.name, item.inputs) for item in kernels] == [
        ("half", ("dense", "dense")),
        ("half_sr", ("selected_rows", "dense")),
    ]
    assert errors == []


def test_the_same_operator_in_both_modes() -> None:
    assert codes(ops=OP.replace("half", "other"), inconsistent__dygraph_ops=OP, inconsistent__static_ops=OP) == []


def test_an_operator_of_eager_mode_whose_gradient_is_written_by_hand() -> None:
    text = OP.replace(
        "  infer_meta : {func : UnchangedInferMeta}\n  kernel : {func : half}\n", "  invoke : half_impl(x)\n"
    )
    assert codes(ops=text + "  backward : half_grad\n", others=OP.replace("half", "other")) == []


def test_the_static_graph_pairs_with_the_main_files() -> None:
    gradient = """\
- backward_op : half_grad
  forward : half (Tensor x, int axis) -> Tensor(out)
  args : (Tensor out_grad, int axis)
  output : Tensor(x_grad)
  infer_meta : {func : UnchangedInferMeta}
  kernel : {func : half_grad}
"""
    op = OP + "  backward : half_grad\n"
    assert codes(inconsistent__static_ops=op, backward=gradient, inconsistent__dygraph_ops=op) == []


def test_the_layout_before_3_0() -> None:
    pir = "paddle__fluid__pir__dialect__operator__ir__"
    old = "paddle__phi__api__yaml__"
    op = OP + "  backward : half_grad\n"
    gradient = OP.replace("- op : half", "- backward_op : half_grad").replace(
        "  args : (Tensor x, int axis)\n  output : Tensor(out)",
        "  forward : half (Tensor x, int axis) -> Tensor(out)\n  args : (Tensor x, Tensor out_grad, int axis)\n"
        "  output : Tensor(x_grad)",
    )
    texts = {f"{old}legacy_ops": op, f"{old}legacy_backward": gradient, f"{old}ops": OP.replace("half", "other")}
    assert codes(**texts, **{f"{pir}ops": op, f"{pir}ops_backward": gradient}) == []


def test_the_parser_of_the_tree_knows_more_fields() -> None:
    parser = "def check(op):\n    base_key_set = (\n        'op',\n        'python_api',\n    )\n"
    text = {"ops.yaml": OP + "  python_api : {name : half}\n"}
    assert [item.code for item in lint_files(PACK, text).diagnostics] == ["PDL102"]
    text["paddle/fluid/operators/generator/parse_utils.py"] = parser
    assert lint_files(PACK, text).codes() == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "- 1\n- [a]\n",
        "op: x\nargs: y\noutput: z\nkernel: 1\n",
        "- op : {}\n  args : []\n  output : {}\n  kernel : []\n  infer_meta : 3\n",
        "- op : x\n  args : (\n  output : Tensor(\n  kernel : {func : '{'}\n  inplace : '->'\n  forward : '('\n",
        "- &a\n  op : x\n  args : *a\n  output : x\n  kernel : *a\n",
        "- op : x\n  args : '" + "(" * 5000 + "'\n  output : " + "Tensor(x)," * 5000 + "\n  kernel : {func : a}\n",
        "- op : 2024-01-01\n  args : !!binary aGk=\n  output : ~\n  kernel : {param : x, func : 1}\n",
    ],
)
def test_hostile_files_make_no_error_in_a_rule(text: str) -> None:
    others = ("op_compat", "op_version", "legacy/ops_exclude", "inconsistent/onednn_ops_extra", "python_api_info")
    for files in ({"ops.yaml": OP + text} if text[:1] == "-" else {"ops.yaml": text}, {"ops.yaml": OP}):
        files |= {f"{name}.yaml": text for name in others}
        assert "OPS900" not in lint_files(PACK, files).codes()


def test_other_yaml_with_an_op_is_none() -> None:
    text = "- op : add\n  args : [x, y]\n  output : z\n- name : relu\n- name : sigmoid\n"
    assert codes(pipeline=text) == []


def test_arguments_without_a_type() -> None:
    args, errors = parse_args("(Tensor x, axis)")
    assert [arg.name for arg in args] == ["x"]
    assert [error.message for error in errors] == ["an argument needs a type and a name"]


def test_an_entry_takes_fields_of_another_by_a_merge_key() -> None:
    merged = """\
- &half
  op : half
  args : (Tensor x, int axis)
  output : Tensor(out)
  infer_meta : {func : UnchangedInferMeta}
  kernel : {func : half}
- <<: *half
  op : third
- <<: [*half]
  op : fourth
  args : (Tensor x, int axis = "x")
"""
    assert codes(ops=merged) == ["PDL105 ops.yaml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("with pytest.raises(ValueError):\n    x = 1\n    _C_ops.half(x)", 0),
        ("self.assertRaises(TypeError, lambda: _C_ops.half(x))", 0),
        ("try:\n    _C_ops.half(x)\nexcept ValueError:\n    pass", 0),
        ("try: _C_ops.half(x)\nexcept ValueError: pass", 0),
        (
            'def f(x):\n    try:\n        y = """\ntext\n"""\n        _C_ops.half(x)\n    except ValueError:\n        pass',
            0,
        ),
        ("def test(self):\n    self.assertRaises(\n        TypeError,\n        lambda: _C_ops.half(x),\n    )", 0),
        ("@pytest.mark.xfail\ndef test():\n    _C_ops.half(x)", 0),
        ("if hasattr(paddle, 'old'):\n    _C_ops.half(x)", 0),
        ("with guard():\n    _C_ops.half(x)", 1),
        ('"""\ntry:\n"""\nif x:\n    _C_ops.half(x)', 1),
        ('def f(x):\n    """Text\n  try:\n    """\n    _C_ops.half(x)', 1),
        ("try:\n    y = 1\nexcept ValueError:\n    _C_ops.half(x)", 1),
        ("_C_ops.half(x)\ndef f(:", 0),
        ("with pytest.raises(ValueError):\n    x = 1\n_C_ops.half(x)", 1),
    ],
)
def test_calls_that_are_expected_to_fail(text: str, expected: int) -> None:
    entry = "- op : half\n  args : (Tensor x, int axis)\n  output : Tensor(out)\n"
    entry += "  infer_meta : {func : UnchangedInferMeta}\n  kernel : {func : half}\n"
    found = lint_files(PACK, {"ops.yaml": entry, "test_half.py": text + "\n"}, ["PDL501"])
    assert len(found.diagnostics) == expected

"""Variants of one operator: what does not fit is reported once, where it is to be changed."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.native_findings import fixed, lines, messages

SUB = """\
- func: sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  structured_delegate: sub.out
- func: sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
  structured_delegate: sub.out
- func: sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: sub_out
"""
FIRST, SECOND, THIRD = (f"- func: {part}" for part in SUB.split("- func: ")[1:])

TANH = """\
- func: tanh(Tensor self, int dim) -> Tensor
  dispatch:
    CPU: tanh
- func: tanh_(Tensor(a!) self, int dim) -> Tensor(a!)
  dispatch:
    CPU: tanh_
- func: tanh.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: tanh_out
"""


@pytest.mark.parametrize("text", [SUB, TANH])
def test_variants_that_fit(text: str) -> None:
    assert lines(text) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("Tensor other, *, Scalar alpha=1) -> Tensor\n", "Tensor wrong, *, Scalar alpha=1) -> Tensor\n", "1:wrong"),
        ("Scalar alpha=1) -> Tensor\n", "Scalar alpha=2) -> Tensor\n", "1:2"),
        ("Scalar alpha=1) -> Tensor\n", "float alpha=1) -> Tensor\n", "1:float"),
        ("Scalar alpha=1) -> Tensor(a!)\n  struct", "Scalar alpha) -> Tensor(a!)\n  struct", "3:alpha"),
        ("Scalar alpha=1, Tensor(a!) out", "float alpha=1, Tensor(a!) out", "5:float"),
        (
            "Tensor other, *, Scalar alpha=1, Tensor(a!) out",
            "Tensor other, Scalar alpha=1, *, Tensor(a!) out",
            "5:alpha",
        ),
        (
            "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1",
            "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1, int n",
            "1:int n",
        ),
        (
            "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)",
            "sub.Tensor(Tensor self, Tensor other)",
            "1:sub.Tensor",
        ),
        ("alpha=1) -> Tensor\n", "alpha=1) -> Tensor?\n", "1:Tensor?"),
    ],
)
def test_a_structured_variant_that_differs(old: str, new: str, found: str) -> None:
    assert [line.partition(" <- ")[0] for line in lines(SUB.replace(old, new, 1))] == [f"ATN311 {found}"]


def test_both_sides_are_shown() -> None:
    text = SUB.replace("Scalar alpha=1, Tensor(a!) out", "float alpha=1, Tensor(a!) out")
    assert lines(text) == ["ATN311 5:float <- 1:Scalar"]
    assert messages(text) == [
        "`sub.out` and `sub.Tensor` are not variants of one operator: `alpha` is `float`, in `sub.Tensor` it is `Scalar`"
    ]


def test_arguments_in_another_order() -> None:
    text = TANH.replace("tanh.out(Tensor self, int dim", "tanh.out(int dim, Tensor self")
    assert lines(text) == ["ATN311 7:int dim <- 1:Tensor self"]


def test_an_out_variant_without_others_like_it() -> None:
    text = TANH.replace("tanh.out(Tensor self, int dim", "tanh.out(Tensor self, SymInt dim")
    assert lines(text) == ["ATN311 7:SymInt <- 1:int"]


def test_a_functional_variant_that_differs_from_two() -> None:
    text = TANH.replace("tanh(Tensor self, int dim)", "tanh(Tensor self, int axis)")
    assert lines(text) == ["ATN311 1:axis <- 4:dim"]


def test_every_argument_that_differs_is_told() -> None:
    text = TANH.replace("tanh.out(Tensor self, int dim", "tanh.out(Tensor? self, SymInt dim")
    assert lines(text) == ["ATN311 7:Tensor? <- 1:Tensor", "ATN311 7:SymInt <- 1:int"]


@pytest.mark.parametrize("name", ["tahn", "__tanh__"])
def test_a_name_that_differs(name: str) -> None:
    assert lines(TANH.replace("tanh(Tensor", f"{name}(Tensor")) == [f"ATN311 1:{name} <- 4:tanh_"]


def test_a_structured_operator_of_another_name() -> None:
    assert lines(SUB.replace("sub.Tensor(", "minus.Tensor(")) == ["ATN311 1:minus.Tensor <- 5:sub.out"]


def test_the_overload_that_is_most_alike_is_meant() -> None:
    text = """\
- func: f(int start, int end) -> Tensor
  dispatch:
    CPU: f
- func: f.step(int start, int end, float step=1) -> Tensor
  dispatch:
    CPU: f_step
- func: f.out(int start, int end, int step=1, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: f_out
"""
    assert lines(text) == ["ATN311 7:int <- 4:float"]


def test_where_nearly_all_differs_it_is_told_once() -> None:
    other = (
        "- func: tanh.out(int a, float b, *, bool c, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    CPU: tanh_out\n"
    )
    assert lines(TANH.partition("- func: tanh.out")[0] + other) == ["ATN311 7:tanh.out <- 1:tanh"]


def test_scratch_arguments() -> None:
    text = TANH.replace("*, Tensor(a!) out", "*, Tensor(a!) _scratch_x, Tensor(a!) out")
    assert lines(text) == ["ATN321 7:Tensor(a!) _scratch_x <- 1:tanh"]


def test_a_variant_that_is_missing_is_no_variant_that_differs() -> None:
    other = "- func: cosh(Tensor self, int dim) -> Tensor\n  dispatch:\n    CPU: cosh\n"
    text = other + TANH.partition("- func: tanh_(")[1] + TANH.partition("- func: tanh_(")[2]
    assert lines(text) == ["ATN331 4:tanh_"]


def test_composite_overloads_may_differ() -> None:
    text = "- func: f(Tensor self) -> Tensor\n- func: f_(Tensor(a!) self, int n) -> Tensor(a!)\n"
    assert lines(text) == []


# -- delegates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delegate", ["sub.oot", "add.out"])
def test_an_unknown_delegate(delegate: str) -> None:
    text = SUB.replace("sub.out", delegate, 1)
    assert lines(text) == [f"ATN312 2:{delegate} <- 5:sub.out"]
    assert fixed(text, "ATN312") == SUB


def test_a_misspelt_out_variant_is_told_once() -> None:
    assert lines(SUB.replace("sub.out(", "subb.out(")) == ["ATN311 5:subb.out <- 1:sub.Tensor"]


def test_an_unknown_delegate_that_may_stand_in_an_entry_that_cannot_be_read() -> None:
    assert lines(FIRST + SECOND + THIRD.replace("Tensor(a!) out", "Tensor(a! out")) == []


def test_a_broken_entry_hides_no_others() -> None:
    broken = "- func: add.out(Tensor self, *, Tensor(a! out) -> Tensor(a!)\n"
    text = SUB.replace("  structured: True\n", "")
    assert lines(broken + text) == ["ATN313 6:sub.out <- 3:sub.out <- 5:sub.out"]
    assert lines(broken + SUB.replace("*, Scalar alpha=1", "*, int alpha=1", 1)) == ["ATN311 2:int <- 6:Scalar"]
    assert lines(broken + TANH.replace("CPU: tanh\n", "CPU: tanh\n  autogen: tanh.o\n")) == [
        "ATN332 5:tanh.o <- 2:tanh"
    ]


@pytest.mark.parametrize("item", ["- null\n", "- tanh\n", "- func: a d.out(Tensor self) -> Tensor\n", "- func: True\n"])
def test_an_item_that_cannot_be_read_may_be_what_is_missing(item: str) -> None:
    for text in (THIRD, SECOND + THIRD, FIRST.replace("sub.out", "sub.oot")):
        assert lines(text + item) == []


def test_a_name_that_cannot_be_read_may_be_any() -> None:
    broken = "- func: a d.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
    assert lines(broken + SUB.replace("sub.out", "sub.oot", 1)) == []


def test_a_delegate_that_is_not_structured() -> None:
    text = SUB.replace("  structured: True\n", "")
    assert lines(text) == ["ATN313 5:sub.out <- 2:sub.out <- 4:sub.out"]
    assert fixed(text, "ATN313", unsafe=True) == SUB


def test_a_delegate_of_another_operator_that_is_not_structured() -> None:
    assert lines(TANH + SUB.replace("sub.out", "tanh.out", 1)) == ["ATN313 11:tanh.out <- 7:tanh.out"]


def test_the_delegate_of_another_operator() -> None:
    text = SUB.replace("sub", "add") + SUB.replace("sub.out", "add.out", 1)
    assert lines(text) == ["ATN314 10:add.out <- 13:sub.out <- 5:add.out"]
    assert fixed(text, "ATN314") == SUB.replace("sub", "add") + SUB


def test_the_delegate_of_another_overload() -> None:
    other = SUB.replace("sub.Tensor", "sub.wide").replace("sub_.Tensor", "sub_.wide").replace("sub.out", "sub.wide_out")
    other = other.replace("Tensor other", "Tensor other, int width").replace("sub_out", "sub_wide_out")
    assert lines(SUB + other) == []
    assert lines(SUB + other.replace("sub.wide_out", "sub.out", 1)) == [
        "ATN314 10:sub.out <- 13:sub.wide_out <- 5:sub.out"
    ]


def test_a_variant_that_does_not_delegate() -> None:
    text = SUB.replace("  structured_delegate: sub.out\n", "  tags: core\n", 1)
    assert lines(text) == ["ATN315 1:sub.Tensor <- 5:sub.out"]
    assert "structured_delegate: sub.out\n  tags" in fixed(text, "ATN315", unsafe=True)


def test_a_variant_with_kernels_that_it_may_not_have_when_it_delegates_has_no_fix() -> None:
    text = SUB.replace("  structured_delegate: sub.out\n", "  dispatch:\n    CPU, SparseCPU: sub\n", 1)
    assert lines(text) == ["ATN315 1:sub.Tensor <- 6:sub.out <- 3:CPU"]
    assert fixed(text, "ATN315", unsafe=True) == text


@pytest.mark.parametrize("value", ["", "null"])
def test_an_empty_delegate_is_none(value: str) -> None:
    assert lines(SUB.replace("structured_delegate: sub.out", f"structured_delegate: {value}", 1)) == [
        "ATN315 1:sub.Tensor <- 5:sub.out"
    ]


@pytest.mark.parametrize("value", ["yes please", "1", "[True]"])
def test_whether_it_is_structured_is_not_known(value: str) -> None:
    assert lines(SUB.replace("structured: True", f"structured: {value}")) == []


def test_kernels_that_torchgen_generates() -> None:
    text = SUB.replace("    CPU: sub_out", "    CPU, Meta: sub_out\n    CompositeExplicitAutogradNonFunctional: f")
    assert lines(text) == ["ATN322 8:Meta", "ATN322 9:CompositeExplicitAutogradNonFunctional"]
    assert lines(TANH.replace("CPU: tanh_out", "Meta: tanh_out")) == []


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_no_functional_variant() -> None:
    assert lines(SECOND + THIRD) == ["ATN316 3:sub.out"]


def test_composite_variants_without_functional_one() -> None:
    text = "- func: f_(Tensor(a!) self) -> Tensor(a!)\n- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
    assert lines(text) == ["ATN316 1:f_"]


def test_an_out_variant_alone() -> None:
    assert lines(THIRD) == ["ATN317 1:sub.out"]


def test_the_functional_variant_may_stand_in_an_entry_that_cannot_be_read() -> None:
    assert lines(FIRST.replace(" -> ", " - ") + THIRD) == []


def test_an_entry_without_schema_may_be_any() -> None:
    text = TANH.replace("int dim, *, Tensor(a!) out", "int axis, *, Tensor(a!) out")
    assert lines(text) == ["ATN311 7:axis <- 1:dim"]
    assert lines(text + "- variants: function\n") == []


def test_nothing_can_be_generated() -> None:
    text = "- func: count(Tensor self) -> (int, bool)\n  dispatch:\n    CPU: count\n"
    assert lines(text) == ["ATN318 1:int, bool"]
    assert lines(text.replace("count(", "_nnz(")) == []
    assert lines(text.replace("int, bool", "int, Tensor")) == []


def test_namespaces() -> None:
    assert lines(TANH.replace("tanh.out", "custom::tanh.out")) == ["ATN319 7:custom::tanh.out <- 1:tanh"]
    assert lines(TANH.replace("tanh.out", "aten::tanh.out")) == []
    assert lines(TANH.replace("func: ", "func: custom::")) == []


def test_a_mutable_operator_and_its_functional_one() -> None:
    text = """\
- func: norm.pure(Tensor x, Tensor m) -> (Tensor, Tensor)
  dispatch:
    CPU: norm_pure
- func: norm(Tensor x, Tensor(a!) m) -> Tensor
  dispatch:
    CPU: norm
  autogen: norm.out
"""
    assert lines(text) == ["ATN320 1:norm.pure <- 4:norm"]


# -- what torchgen cannot tell apart -----------------------------------------------------------------------------------


def test_an_operator_twice() -> None:
    text = "- func: f(Tensor self) -> Tensor\n- func: f(Tensor self) -> Tensor\n- func: custom::f(int n) -> Tensor\n"
    assert lines(text) == ["ATN301 2:f <- 1:f", "ATN301 3:custom::f <- 1:f"]
    assert messages(text)[1] == "`f` is declared a second time, with another schema; leave one of them"


def test_an_operator_twice_is_all_that_is_told() -> None:
    plain = THIRD.replace("  structured: True\n", "")
    assert lines(SUB + plain) == ["ATN301 9:sub.out <- 5:sub.out"]
    assert lines(FIRST + plain + THIRD) == ["ATN301 6:sub.out <- 3:sub.out"]
    other = "- func: tanh.out(int n, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    CPU: tanh_out\n"
    assert lines(other + TANH) == ["ATN301 10:tanh.out <- 1:tanh.out"]


def test_a_signature_twice() -> None:
    text = "- func: f(Tensor self) -> Tensor\n- func: f.same(Tensor(a) self) -> Tensor(a) out\n"
    assert lines(text) == ["ATN302 2:f.same <- 1:f"]


def test_keywords_of_python() -> None:
    assert lines("- func: f(Tensor self, int lambda, *, int from) -> Tensor\n") == ["ATN303 1:lambda", "ATN303 1:from"]
    assert lines("- func: uniform_(Tensor(a!) self, float from=0) -> Tensor(a!)\n") == []


def test_an_in_place_operator_with_out_arguments() -> None:
    assert lines("- func: f_(Tensor(a!)[] self, *, Tensor(b!)[] out) -> ()\n") == ["ATN304 1:Tensor(b!)[] out"]


def test_kernels_in_two_namespaces() -> None:
    text = "- func: f(Tensor self) -> Tensor\n  dispatch:\n    CPU, CUDA: f\n    MPS: a::b::f\n    XPU: at::f\n"
    assert lines(text) == ["ATN305 4:a::b::f <- 3:f"]


def test_the_tag_of_what_is_generated() -> None:
    assert lines("- func: f(Tensor self) -> Tensor\n  tags: [core, generated]\n") == ["ATN306 2:generated"]


# -- what torchgen excepts ---------------------------------------------------------------------------------------------

GENERATION = """\
def add_generated_native_functions(): ...
OUT_OPS_THAT_DONT_GET_GROUPED_PROPERLY = [
    # one
    "sub.out",
]
FUNCTIONAL_OPS_THAT_CANNOT_GET_AN_OUT_VARIANT = [
    "count",  # returns an int
]
"""
COUNT = "- func: count(Tensor self) -> int\n  dispatch:\n    CPU: count\n"


def in_tree(generation: str | None) -> list[str]:
    files = {
        "aten/native_functions.yaml": THIRD + COUNT,
        "torchgen/model.py": "class DispatchKey(Enum):\n    CPU = auto()\n",
    }
    if generation is not None:
        files["torchgen/native_function_generation.py"] = generation
    return [item.code for item in lint_files([PACK], files, ["ATN317", "ATN318"]).diagnostics]


def test_the_trees_own_torchgen_tells_what_it_excepts() -> None:
    assert in_tree(GENERATION) == []
    assert in_tree(GENERATION.replace("count", "other")) == ["ATN318"]
    assert in_tree(GENERATION.replace("sub.out", "add.out")) == ["ATN317"]
    assert in_tree(None) == []

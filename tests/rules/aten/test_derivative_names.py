"""Names and calls in formulas of derivatives.yaml."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.formula_calls import Call, calls_in
from opschema_rules.aten.native import WHOLE
from opschema_rules.aten.pack import PACK

NATIVE = """\
- func: relu(Tensor self) -> Tensor
  variants: function, method
  dispatch:
    CPU: relu
- func: top(Tensor self, int dim) -> (Tensor values, Tensor indices)
  dispatch:
    CPU: top
- func: FULL
  dispatch:
    CompositeExplicitAutograd: full_like
- func: relu_backward(Tensor grad, Tensor result) -> Tensor
  dispatch:
    CPU: relu_backward
- func: gather(Tensor self, int dim, Tensor index, bool sparse=False) -> Tensor
  variants: function, method
  dispatch:
    CPU: gather
- func: sum(Tensor self) -> Tensor
  variants: function, method
- func: sum.dims(Tensor self, int[] dim, bool keep, bool last) -> Tensor
  variants: function, method
"""
FULL = (
    "full_like(Tensor self, Scalar value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,"
    " bool? pin_memory=None) -> Tensor"
)
FILLING = "".join(f"- func: filling_{number}(int number) -> int\n" for number in range(WHOLE))
RELU = "- name: relu(Tensor self) -> Tensor\n"
TOP = "- name: top(Tensor self, int dim) -> (Tensor values, Tensor indices)\n"


def told(derivatives: str, native: str = NATIVE) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    files = {"native_functions.yaml": native.replace("FULL", FULL), "derivatives.yaml": derivatives}
    linted = lint_files([PACK], files, ("ATN429", "ATN436", "ATN437"))
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("derivatives", "name", "reason"),
    [
        (RELU + "  self: grad * alpha\n", "alpha", "the arguments are `self`"),
        (TOP + "  self: f(grad, result1, dim)\n", "result1", "the outputs are called `values` and `indices`"),
        (TOP + "  self: f(grad, dims)\n", "dims", "did you mean `dim`?"),
        (RELU + "  self: f(grad, result1)\n", "result1", "did you mean `result`?"),
        (
            RELU + "  self: grad\n  result: f(self_t, grad)\n",
            "grad",
            "a forward formula is made of tangents: `x_t` for an argument `x`",
        ),
    ],
)
def test_a_name_that_nothing_has(derivatives: str, name: str, reason: str) -> None:
    assert told(derivatives) == [("ATN429", name, f"nothing is called `{name}` here; {reason}")]


@pytest.mark.parametrize(
    "formula",
    [
        "grad * M_PI * kFactor",
        "'[&] { auto scale = self.abs(); return grad * scale; }()'",
        "grad.to(at::kFloat) * c10::scale(self)",
        "f(grad, /*alpha=*/true, \"alpha\")",
    ],
)  # fmt: skip
def test_names_of_cpp(formula: str) -> None:
    assert told(f"{RELU}  self: {formula}\n") == []


def test_the_parts_of_options_are_names_as_well() -> None:
    formulas = "  self: zeros_like(grad)\n  result: f(self_t, dtype, layout, device, pin_memory, options)\n"
    assert told(f"- name: {FULL}\n{formulas}") == []


@pytest.mark.parametrize(
    ("formula", "place", "message"),
    [
        ("at::gathr(grad, 0, self)", "gathr", "there is no `at::gathr`; did you mean `gather`?"),
        ("grad.gathr(0, self)", "gathr", "there is no `grad.gathr`; did you mean `gather`?"),
        ("'not_implement(\"relu\")'", "not_implement", "there is no `not_implement`; did you mean `not_implemented`?"),
    ],
)
def test_a_function_that_resembles_an_operator(formula: str, place: str, message: str) -> None:
    assert told(f"{RELU}  self: {formula}\n", NATIVE + FILLING) == [("ATN436", place, message)]


@pytest.mark.parametrize(
    "formula",
    [
        "gathr(grad, 0, self)",  # perhaps a helper
        "torch::gathr(grad, 0, self)",
        "grad.to().gathr(0, self)",
        "options.gathr(0, grad)",
        "at::gather_all(grad)",
        "relu_bckward(grad, result)",
    ],
)
def test_functions_that_may_be_helpers(formula: str) -> None:
    derivatives = f"{RELU}  self: {formula}\n"
    assert [item for item in told(derivatives, NATIVE + FILLING) if item[0] == "ATN436"] == []


@pytest.mark.parametrize(
    ("formula", "place", "message"),
    [
        ("grad.relu_backward(result)", "relu_backward", "`relu_backward` has no variant `method`; write `at::relu_backward(...)`"),
        ("at::only(grad)", "only", "`only` has no variant `function`; write `x.only(...)`"),
    ],
)  # fmt: skip
def test_an_operator_without_the_variant(formula: str, place: str, message: str) -> None:
    native = NATIVE + "- func: only(Tensor self) -> Tensor\n  variants: method\n" + FILLING
    assert told(f"{RELU}  self: {formula}\n", native) == [("ATN436", place, message)]


@pytest.mark.parametrize(
    "formula",
    ["grad.size(0)", "grad.relu()", "grad.only()", "self.sizes().relu_backward(1)", "relu_backward(grad, self)"],
)
def test_methods_and_functions_that_there_are(formula: str) -> None:
    native = NATIVE + "- func: only(Tensor self) -> Tensor\n  variants: method\n"
    native += "- func: size.int(Tensor self, int dim) -> int\n" + FILLING
    assert told(f"{RELU}  self: {formula}\n", native) == []


def test_functions_are_not_compared_with_a_part_of_the_operators() -> None:
    assert told(f"{RELU}  self: at::gathr(grad, 0, self)\n") == []


@pytest.mark.parametrize(
    ("formula", "name", "message"),
    [
        ("relu_backward(grad)", "relu_backward", "`relu_backward` takes 2 arguments, and 1 is passed"),
        ("at::relu_backward(grad, f(self, 1), 2)", "relu_backward", "`at::relu_backward` takes 2 arguments, and 3 are passed"),
        ("grad.gather(0)", "gather", "`grad.gather` takes 2 to 3 arguments, and 1 is passed"),
        ("grad.relu(self)", "relu", "`grad.relu` takes 0 arguments, and 1 is passed"),
        ("at::sum(grad, {0, 1})", "sum", "`at::sum` takes 1 or 4 arguments, and 2 are passed"),
        ("full_like(grad)", "full_like", "`full_like` takes 2 to 6 arguments, and 1 is passed"),
    ],
)  # fmt: skip
def test_a_wrong_number_of_arguments(formula: str, name: str, message: str) -> None:
    assert told(f"{RELU}  self: '{formula}'\n") == [("ATN437", name, message)]


@pytest.mark.parametrize(
    "formula",
    [
        "relu_backward(grad, f(self, {1, 2}, [&](int x, int y) { return x; }))",
        "relu_backward(grad, std::tuple<int, int>(1, 2), 3)",
        "gather(grad, 0, self, /*sparse=*/false)",
        "full_like(grad, 1, self.options())",
        "full_like(grad, 1, at::kFloat, at::kStrided, self.device(), false)",
        "details::relu_backward(grad)",
        "self.sizes().relu(1)",
        "shape.relu(1, 2)",
        "grad.sum() + at::sum(grad, {0, 1}, true, false)",
        'relu_backward("a, b", grad)',
    ],
)
def test_a_right_number_of_arguments(formula: str) -> None:
    assert [item for item in told(f"{RELU}  self: '{formula}'\n") if item[0] != "ATN429"] == []


def test_calls_of_a_text() -> None:
    text = "at::a(b.c(1, 2), d()) + e::f(x) - g->h(y) * i<2>(z)"
    assert list(calls_in(text)) == [Call("at", "a", 4, 2), Call("b", "c", 8, 2), Call("", "d", 17, 0)]


def test_an_unclosed_call_has_no_number() -> None:
    assert [call.count for call in calls_in("f(a, (b")] == [None]


@pytest.mark.parametrize(
    "formula",
    ["f(std::vector<int64_t>{0, 1}, grad)", "static_cast<double>(2) * grad", "not grad ? helper<bool>(grad) : grad"],
)
def test_words_of_cpp(formula: str) -> None:
    assert told(RELU + f"  self: '{formula}'\n") == []

"""Operators over lists and the derivatives that torchgen uses for them: the rule against torchgen itself."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.oracle import DERIVATIVES, NATIVE, emission_refusal, installed, refusal
from tests.rules.aten.plots import plot

RELU = "- name: relu(Tensor self) -> Tensor\n  self: threshold_backward(grad, result, 0)\n"


def over_lists(name: str, more: str = "", overload: str = "") -> str:
    """The entries of an operator over lists and its in-place variant."""
    dot = f".{overload}" if overload else ""
    return f"""\
- func: _foreach_{name}{dot}(Tensor[] self{more}) -> Tensor[]
  device_check: NoCheck
  dispatch:
    CompositeExplicitAutograd: foreach_{name}
- func: _foreach_{name}_{dot}(Tensor(a!)[] self{more}) -> ()
  device_check: NoCheck
  dispatch:
    CompositeExplicitAutograd: foreach_{name}_
  autogen: _foreach_{name}.{overload and f"{overload}_"}out
"""


def single(schema: str) -> str:
    """The entry of an operator with a kernel."""
    return f"- func: {schema}\n  dispatch:\n    CompositeExplicitAutograd: kernel\n"


TWIN = "twin(Tensor self) -> Tensor"
TWICE = "twin(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor"
IN_PLACE = "twin_(Tensor(a!) self) -> Tensor(a!)"
OWN = "_foreach_twin(Tensor[] self) -> Tensor[]"
OWN_IN_PLACE = "_foreach_twin_(Tensor(a!)[] self) -> ()"
LISTS = over_lists("twin")


def of(schema: str, formulas: str = "self: f(grad)") -> str:
    """An entry of derivatives.yaml."""
    return f"- name: {schema}\n  {formulas}\n"


CASES = {
    "the operator's": (LISTS + single(TWIN), of(TWIN), ""),
    "none": (LISTS + single(TWIN), "", "_foreach_twin_"),
    "the functional variant's": (LISTS + single(TWIN), of(OWN, "self: f(grads[i])"), "_foreach_twin_"),
    "its own": (LISTS + single(TWIN), of(OWN_IN_PLACE, "self: f(grads[i])"), OWN_IN_PLACE),
    "its own beside the operator's": (
        LISTS + single(TWIN),
        of(TWIN) + of(OWN_IN_PLACE, "self: f(grads[i])"),
        OWN_IN_PLACE,
    ),
    "of an operator that is not differentiable": (LISTS + single(TWIN), of(TWIN, "self: non_differentiable"), ""),
    "of an operator whose output is not": (
        LISTS + single(TWIN),
        of(TWIN, "output_differentiability: [False]"),
        "output_differentiability",
    ),
    "of an in-place operator": (
        LISTS + single(IN_PLACE) + "  autogen: twin, twin.out\n",
        of(IN_PLACE),
        "_foreach_twin_",
    ),
    "of an operator with more arguments": (
        over_lists("twin", ", Scalar other", "Scalar") + single(TWICE),
        of(TWICE),
        "_foreach_twin_.Scalar",
    ),
    "of another operator with more, which torchgen lists": (
        over_lists("add", ", Scalar other", "Scalar") + single(TWICE.replace("twin", "add")),
        of(TWICE.replace("twin", "add")),
        "",
    ),
    "of an operator with fewer": (over_lists("twin", ", Tensor[] other") + single(TWIN), of(TWIN), "_foreach_twin_"),
    "of one whose argument is a list itself": (
        over_lists("twin", ", int[1] dim") + single("twin(Tensor self, int[1] dim) -> Tensor"),
        of("twin(Tensor self, int[1] dim) -> Tensor"),
        "int[1]",
    ),
    "of one whose argument is not a list of one size": (
        over_lists("twin", ", int[] dim") + single("twin(Tensor self, int[1] dim) -> Tensor"),
        of("twin(Tensor self, int[1] dim) -> Tensor"),
        "_foreach_twin_",
    ),
    "of one without the optional": (
        over_lists("twin", ", Scalar? other") + single("twin(Tensor self, Scalar other) -> Tensor"),
        of("twin(Tensor self, Scalar other) -> Tensor"),
        "Scalar?",
    ),
    "of one with the optional": (
        over_lists("twin", ", Scalar? other") + single("twin(Tensor self, Scalar? other) -> Tensor"),
        of("twin(Tensor self, Scalar? other) -> Tensor"),
        "",
    ),
    "of one with a keyword": (
        over_lists("twin", ", Scalar other") + single("twin(Tensor self, *, Scalar other) -> Tensor"),
        of("twin(Tensor self, *, Scalar other) -> Tensor"),
        "",
    ),
    "of a functional one by name": (
        LISTS + single("twin_functional(Tensor self) -> Tensor"),
        of("twin_functional(Tensor self) -> Tensor"),
        "",
    ),
    "none is needed": (over_lists("copy"), "", ""),
    "with strides": (LISTS + single(TWIN), of(TWIN, "self: f(grad, self.sym_strides())"), "_foreach_twin"),
    "with strides, and one of its own": (
        "".join(LISTS.partition("- func: _foreach_twin_")[:1]) + single(TWIN),
        of(TWIN, "self: f(grad, self.sym_strides())") + of(OWN, "self: f(grads[i])"),
        "",
    ),
    "with geometry": (LISTS + single(TWIN), of(TWIN, "self: f(grad, TensorGeometry(self))"), "_foreach_twin"),
    "with sizes": (LISTS + single(TWIN), of(TWIN, "self: f(grad, self.sym_sizes())"), ""),
    "with the result": (LISTS + single(TWIN), of(TWIN, "self: f(grad, result)"), ""),
    "with sizes of the result": (LISTS + single(TWIN), of(TWIN, "self: f(grad, result.sym_sizes())"), "_foreach_twin"),
    "with a tensor for all": (
        over_lists("twin", ", Tensor other") + single("twin(Tensor self, Tensor other) -> Tensor"),
        of("twin(Tensor self, Tensor other) -> Tensor", "self: f(grad)\n  result: g(self_t)"),
        "_foreach_twin",
    ),
    "backward only with a tensor for all": (
        over_lists("twin", ", Tensor other") + single("twin(Tensor self, Tensor other) -> Tensor"),
        of("twin(Tensor self, Tensor other) -> Tensor"),
        "",
    ),
    "for AutogradXPU only": (LISTS + single(TWIN), of(TWIN, "dispatch:\n    AutogradXPU:\n      self: f(grad)"), "445"),
}


@pytest.mark.skipif(not version("torch").startswith("2.13."), reason="what is written down is of torch 2.13")
@pytest.mark.parametrize("name", CASES)
def test_it_is_reported_where_torchgen_refuses_it(name: str) -> None:
    native, derivatives, place = CASES[name]
    sound = plot(())
    files = {**sound, NATIVE: sound[NATIVE] + native, DERIVATIVES: sound[DERIVATIVES] + derivatives}
    refused = refusal(files) or emission_refusal(files)
    linted = lint_files([PACK], files)
    found = [(item.code, linted.text(item.place)) for item in linted.diagnostics]
    expected = [("ATN445", "dispatch")] if place == "445" else [("ATN446", place)] if place else []
    assert (found, refused is not None) == (expected, bool(place)), refused


def lint(native: str, derivatives: str, more: dict[str, str] | None = None) -> Linted:
    files = example_files([("yaml", native), ("yaml derivatives.yaml", derivatives), *(more or {}).items()])
    return lint_files([PACK], files, ["ATN446"])


@pytest.mark.parametrize("name", ["floor", "zero_", "mm", "_foreach_mm", "lerp.Tensor"])
def test_every_derivative_is_needed(name: str) -> None:
    """Without one of the installed derivatives, torchgen refuses the operators over lists that use it, if there are any."""
    family = name.removeprefix("_foreach_").partition(".")[0].strip("_")
    files = plot([family])
    entry = re.search(rf"(?ms)^- name: {re.escape(name)}\(.*?(?=^- |\Z)", files[DERIVATIVES])
    assert entry is not None
    files[DERIVATIVES] = files[DERIVATIVES].replace(entry[0], "")
    refused = refusal(files) or emission_refusal(files)
    found = lint_files([PACK], files).codes()
    assert found == ([] if refused is None else ["ATN446"]), refused


def test_messages_tell_both_sides() -> None:
    linted = lint(
        LISTS + single(TWIN) + single(TWICE.replace("(", ".Scalar(", 1)), of(TWICE.replace("(", ".Scalar(", 1))
    )
    (finding,) = linted.diagnostics
    assert finding.message == (
        "torchgen uses the derivative of `twin` for `_foreach_twin_`, and of those in `derivatives.yaml` none takes the "
        "same, elements for lists"
    )
    assert [linted.text(item.place) for item in finding.related] == [TWICE.replace("(", ".Scalar(", 1)]


def test_an_operator_without_a_kernel_of_its_own_needs_none() -> None:
    composite = "- func: _foreach_twin_(Tensor(a!)[] self) -> ()\n  device_check: NoCheck\n"
    assert lint(composite, RELU).codes() == []


def test_derivatives_of_other_operators_are_not_expected_to_have_all() -> None:
    names = ["one", "two", "three", "four"]
    assert lint("".join(map(over_lists, names)), RELU).codes() == []
    assert lint("".join(map(over_lists, names[:3])), RELU).codes() == ["ATN446"] * 3


@pytest.mark.parametrize(
    "broken",
    [
        "- name: twin(Tensor self) -> Tensr\n  self: grad\n",
        "- name: twim(Tensor self) -> Tensor\n  self: grad\n",
        "- name: twin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  self: grad\n",
        "- name: twin(Tensor self, Tensor other) -> Tensor\n  self: grad\n",
        "- {}\n",
        "- twin\n",
        "- name: 3\n",
    ],
)
def test_an_entry_that_cannot_be_told_may_be_the_missing_one(broken: str) -> None:
    assert lint(LISTS + single(TWIN), RELU + broken).codes() == []


GENERATOR = """\
_foreach_ops_without_differentiability_info = {
    # No reference backward available due to the lack of `{maximum, minimum}(tensor, scalar)`.
    ("_foreach_other", "Scalar"),
    ("_foreach_twin", "%s"),
}
"""


@pytest.mark.parametrize(
    ("generator", "codes"),
    [
        (GENERATOR % "", []),
        (GENERATOR % "Scalar", ["ATN446"]),
        ("DONT_REQUIRE_DERIVATIVE = {'x'}\n", []),
    ],
)
def test_the_trees_own_generator_tells_which_need_none(generator: str, codes: list[str]) -> None:
    assert lint(LISTS, RELU, {"python gen_variable_type.py": generator}).codes() == codes


def test_one_derivative_of_the_installed_torch_is_missing() -> None:
    files = {NATIVE: installed(NATIVE), DERIVATIVES: installed(DERIVATIVES)}
    without = re.sub(r"(?ms)^- name: div\.(Tensor|Scalar)\(.*?(?=^- )", "", files[DERIVATIVES])
    found = lint_files([PACK], {**files, DERIVATIVES: without}, ["ATN446"])
    assert sorted({name for item in found.diagnostics for name in item.ops}) == [
        "_foreach_div_.List",
        "_foreach_div_.Scalar",
        "_foreach_div_.ScalarList",
        "_foreach_div_.Tensor",
    ]

"""The requirements of functionalization on operators that write or alias."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files, migrate_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.native_findings import NATIVE, fixed, lines, messages
from tests.rules.aten.oracle import RELEASE, emission_refusal, installed, refusal
from tests.rules.aten.plots import plot

FILL = "- func: fill_(Tensor(a!) self) -> Tensor(a!)\n  dispatch:\n    CPU: fill_\n"
LINE = "  autogen: fill, fill.out\n"
WIDEN = """\
- func: widen(Tensor(a) self, int n) -> Tensor(a)
  dispatch:
    CPU: widen
- func: widen_copy(Tensor self, int n) -> Tensor
  dispatch:
    CompositeExplicitAutogradNonFunctional: widen_copy
  tags: view_copy
"""


def test_an_in_place_operator_alone() -> None:
    assert lines(FILL) == ["ATN371 1:fill_"]
    assert fixed(FILL, "ATN371") == FILL + LINE
    assert lines(FILL + LINE) == []


def test_the_migration_writes_the_line() -> None:
    assert migrate_files(PACK, "add-autogen", {NATIVE: FILL}).files[NATIVE] == FILL + LINE


def test_an_in_place_operator_and_its_functional_one() -> None:
    text = FILL + "- func: fill(Tensor self) -> Tensor\n  dispatch:\n    CPU: fill\n"
    assert lines(text) == ["ATN371 1:fill_"]
    assert fixed(text, "ATN371") == text.replace("CPU: fill_\n", "CPU: fill_\n  autogen: fill.out\n")


def test_a_mutable_operator_alone() -> None:
    text = "- func: norm(Tensor x, Tensor(a!) m) -> Tensor\n  dispatch:\n    CPU: norm\n"
    assert lines(text) == ["ATN371 1:norm"]
    assert fixed(text, "ATN371") == text + "  autogen: norm.out, norm_functional\n"


def test_a_mutable_operator_that_returns_nothing_is_told_once() -> None:
    assert lines("- func: norm(Tensor x, Tensor(a!) m) -> ()\n  dispatch:\n    CPU: norm\n") == ["ATN318 1:norm"]


def test_an_operator_that_is_bound_by_hand() -> None:
    text = FILL + "  manual_cpp_binding: True\n"
    assert messages(text) == [
        "`fill_` writes, has kernels of its own, and is in no group with functional and out variants, for it is bound by "
        "hand (`manual_cpp_binding`)"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "- func: fill_(Tensor(a!) self) -> Tensor(a!)\n",
        "- func: resize_(Tensor(a!) self) -> Tensor(a!)\n  dispatch:\n    CPU: resize_\n",
        WIDEN + "- func: widen_(Tensor(a!) self, int n) -> Tensor(a!)\n  dispatch:\n    CPU: w\n  tags: inplace_view\n",
        "- func: fill_(Tensor(a!) self) -> Tensor(a!)\n  dispatch: 3\n",
    ],
)
def test_operators_that_need_no_group(text: str) -> None:
    assert lines(text) == []


def test_an_in_place_view_of_another_signature() -> None:
    text = WIDEN + "- func: widen_(Tensor(a!) self) -> Tensor(a!)\n  dispatch:\n    CPU: w\n  tags: inplace_view\n"
    assert lines(text) == ["ATN371 8:widen_"]


@pytest.mark.parametrize(
    ("view", "copy", "found"),
    [
        ("int n, Tensor(a) self", "int n, Tensor self", ["ATN372 1:int n"]),
        ("Tensor(a)[] self", "Tensor[] self", ["ATN372 1:Tensor(a)[] self"]),
        ("Tensor(a) self, Tensor(a) x", "Tensor self, Tensor x", ["ATN372 1:Tensor(a)"]),
        ("Tensor self, Tensor(a) x", "Tensor self, Tensor x", ["ATN372 1:Tensor", "ATN372 1:Tensor(a)"]),
    ],
)
def test_arguments_of_views(view: str, copy: str, found: list[str]) -> None:
    text = WIDEN.replace("Tensor(a) self, int n", view).replace("Tensor self, int n", copy)
    assert lines(text) == found


@pytest.mark.parametrize(
    ("returns", "place"), [("(Tensor(a), Tensor(a))", "Tensor(a), Tensor(a)"), ("Tensor(a)?", "Tensor(a)?")]
)
def test_results_of_views(returns: str, place: str) -> None:
    text = WIDEN.replace("-> Tensor(a)", f"-> {returns}").replace("-> Tensor\n", f"-> {returns.replace('(a)', '')}\n")
    assert lines(text) == [f"ATN372 1:{place}"]


def test_the_kernel_of_a_copy() -> None:
    text = WIDEN.replace("CompositeExplicitAutogradNonFunctional", "CPU")
    assert lines(text) == ["ATN373 5:dispatch <- 1:widen"]
    assert lines(text.replace("  dispatch:\n    CPU: widen_copy\n", "")) == ["ATN373 4:widen_copy <- 1:widen"]


def test_the_trees_own_torchgen_tells_what_it_excepts() -> None:
    files = {
        "aten/native_functions.yaml": FILL,
        "torchgen/model.py": "class DispatchKey(Enum):\n    CPU = auto()\n",
        "torchgen/native_function_generation.py": "def add_generated_native_functions(): ...\n",
    }
    checked = 'raise AssertionError("Expected composite implicit autograd kernel")\n'
    listed = 'MUTABLE_OPS_NOT_USING_FUNCTIONALIZATION = (\n    OTHERS\n    + [\n        "fill_",\n    ]\n)\n'
    path = "torchgen/gen_functionalization_type.py"
    for text, codes in {checked: ["ATN371"], checked + listed: [], "": []}.items():
        found = lint_files([PACK], {**files, path: text}, ["ATN371"])
        assert found.codes() == codes


# -- what torchgen refuses only when it writes -------------------------------------------------------------------------


def _judged(family: str, old: str, new: str) -> tuple[str, list[str]]:
    """The errors of torchgen for PyTorch's own entries with a change, and our errors."""
    files = {NATIVE: plot([family])[NATIVE], "tags.yaml": installed("tags.yaml")}
    assert old in files[NATIVE]
    files[NATIVE] = files[NATIVE].replace(old, new)
    assert refusal(files) is None
    refused = emission_refusal(files)
    found = lint_files([PACK], {**files, "requirements.txt": f"torch=={RELEASE}\n"}).diagnostics
    return (refused.message if refused is not None else ""), [f"{item.code} {item.ops}" for item in found]


def test_an_in_place_view_that_torchgen_excepts_by_name_needs_its_variants() -> None:
    said, found = _judged("set", "  autogen: set.source_Tensor, set.source_Tensor_out\n", "")
    assert said.startswith("Expected composite implicit autograd kernel or non-modifying function: set_.source_Tensor")
    assert found == ["ATN371 ('set_.source_Tensor',)"]


@pytest.mark.parametrize("family", ["eye", "range", "fft_fftfreq"])
def test_the_out_argument_of_a_factory_is_called_out(family: str) -> None:
    said, found = _judged(family, "Tensor(a!) out)", "Tensor(a!) result)")
    assert 'Failed to synthesize the expression "const at::Tensor & out"' in said
    assert {item.partition(" ")[0] for item in found} == {"ATN374"}


@pytest.mark.parametrize("family", ["argmax", "arange", "any"])
def test_elsewhere_it_has_any_name(family: str) -> None:
    """None of these takes a dtype from it, or all of them are composite."""
    said, found = _judged(family, "Tensor(a!) out)", "Tensor(a!) result)")
    assert bool(said) is bool(found)

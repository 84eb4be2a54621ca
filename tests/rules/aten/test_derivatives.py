"""derivatives.yaml as it is read: operators, formulas, and what torchgen makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.project import Project
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.aten.derivatives import Definition, definition_of, read_derivatives
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.native import read_native
from opschema_rules.aten.pack import PACK
from opschema_rules.aten.torchgen_table import newest_torchgen

NATIVE = """\
- func: pair(Tensor self, Tensor other, *, Scalar alpha=1) -> (Tensor left, Tensor right, int count)
  dispatch:
    CPU: pair
- func: make(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
  dispatch:
    CompositeExplicitAutograd: make
- func: settle_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: settle_
  autogen: settle, settle.out
- func: custom::twice(Tensor self) -> (Tensor, Tensor)
  dispatch:
    CPU: twice
"""
RULES = [item.code for item in PACK.rules if "ATN400" < item.code < "ATN520" and item.code != "ATN446"]
PAIR = "pair(Tensor self, Tensor other, *, Scalar alpha=1) -> (Tensor left, Tensor right, int count)"
MAKE = "make(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"


def definition(text: str) -> Definition:
    project = Project(Workspace(Path(), {"native_functions.yaml": NATIVE, "derivatives.yaml": text}))
    native, file = project.yaml("native_functions.yaml"), project.yaml("derivatives.yaml")
    assert native is not None
    assert file is not None
    found = definition_of(read_derivatives(file, read_native(native, None), newest_torchgen()).entries[0])
    assert found is not None
    return found


def kinds(text: str) -> dict[tuple[str, ...], str]:
    return {formula.names: formula.kind for formula in definition(text).blocks[0].formulas}


def test_formulas_are_of_arguments_or_outputs() -> None:
    text = f"- name: {PAIR}\n  self: f(grad)\n  other: Non_Differentiable\n  left, right: g(self_t)\n  lefft: x\n  self, left: y\n"
    assert kinds(text) == {
        ("self",): "backward",
        ("other",): "non-differentiable",
        ("left", "right"): "forward",
        ("lefft",): "unknown",
        ("self", "left"): "unknown",
    }


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        (PAIR, ["left", "right", "count"]),
        (MAKE, ["result"]),
        ("settle_(Tensor(a!) self) -> Tensor(a!)", ["result"]),
        ("twice(Tensor self) -> (Tensor, Tensor)", ["result0", "result1"]),
        ("settle(Tensor self) -> Tensor", ["result"]),
    ],
)
def test_outputs_are_called_as_generated_code_calls_them(name: str, outputs: list[str]) -> None:
    found = definition(f"- name: {name}\n")
    assert (found.known, [name for name, _ in found.outputs]) == (True, outputs)


def test_an_operator_that_torchgen_generates_is_known_as_such() -> None:
    operator = definition("- name: settle(Tensor self) -> Tensor\n").operator
    assert operator is not None
    assert (operator.generated, operator.is_abstract, operator.entry.name) == (True, True, "settle_")


def test_tensor_options_are_one_argument() -> None:
    found = definition(f"- name: {MAKE}\n  self: grad\n")
    assert (list(found.arguments), found.has_options) == (["self"], True)


def test_a_changed_schema_is_judged_by_the_operator_of_that_name() -> None:
    found = definition("- name: pair(Tensor slef) -> Tensor\n")
    assert (found.known, list(found.arguments)) == (False, ["self", "other", "alpha"])


@pytest.mark.parametrize(
    ("fields", "outputs"),
    [
        ("self: f(grads)", ("left", "right")),
        ("self: f(grad)", ("left",)),
        ("output_differentiability: [False, True, False]\n  self: f(grad)", ("right",)),
        ("output_differentiability: [True]\n  self: f(grads)", None),
        ("output_differentiability: what\n  self: f(grads)", None),
        ("output_differentiability:\n  self: f(grads)", ("left", "right")),
    ],
)
def test_outputs_with_derivatives(fields: str, outputs: tuple[str, ...] | None) -> None:
    assert definition(f"- name: {PAIR}\n  {fields}\n").blocks[0].outputs == outputs


def test_generated_heirs_of_an_operator_that_writes() -> None:
    found = definition("- name: settle_(Tensor(a!) self) -> Tensor(a!)\n  self: grad\n")
    assert [item.name for item in found.generated_heirs] == ["settle"]


def lint(derivatives: str, native: str = "", **files: str) -> Linted:
    made = example_files([("yaml", native), ("yaml derivatives.yaml", derivatives)])
    return lint_files([PACK], {**made, **files})


@pytest.mark.parametrize(
    ("derivatives", "text", "message"),
    [
        (
            "- name: relu(Tensor self) -> Tensor\n  self: 'a(grad,\n\n    self.sizes())'\n",
            "sizes()",
            "`sizes()` fails for symbolic shapes; torchgen wants `sym_sizes()`",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  self: |\n    f(grads[0],\n      grads[3])\n",
            "grads[3]",
            "`relu` has 1 output; there is no `grads[3]`",
        ),
        (
            '- name: relu(Tensor self) -> Tensor\n  self: "f(\\"(\\", grad, (self)"\n',
            "(",
            "the formula is not C++: nothing closes the `(`",
        ),
        (
            "- name: add.Tensor(Tensor self, Tensor othr, *, Scalar alpha=1) -> Tensor\n  self: grad\n",
            "othr",
            "`name` is a copy of the schema of `add.Tensor`, which has `Tensor other` instead of `Tensor othr`",
        ),
        (
            "- name: add.Tensr(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  self: grad\n",
            "add.Tensr",
            "no operator is called `add.Tensr`; `add.Tensor` has this signature",
        ),
        (
            "- name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n  self, othr: grad\n",
            "othr",
            "`othr` is not an argument or output of `add.Tensor`; did you mean `other`?",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  dispatch:\n    CUDA:\n      self: grad\n",
            "CUDA",
            "`CUDA` is not a dispatch key that a derivative can be for; did you mean `AutogradCUDA`?",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  self: grad\n  result2: self_t\n",
            "result2",
            "`result2` is not an argument or output of `relu`; its output is `result`",
        ),
        (
            "- name: square(Tensor self) -> Tensor\n  self: grad\n",
            "square(Tensor self) -> Tensor",
            "`square` has no kernel that autograd could call; "
            "it needs a `dispatch` with backends or `CompositeExplicitAutograd`",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  self: f(grad, self*self)\n  result: auto_element_wise\n",
            "self",
            "`auto_element_wise` misses this `self`, one character behind another; put spaces around the operator",
        ),
    ],
)
def test_a_finding_stands_at_the_characters_to_change(derivatives: str, text: str, message: str) -> None:
    linted = lint(derivatives)
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics] == [(text, message)]


def test_each_difference_of_a_schema_is_found() -> None:
    linted = lint("- name: expand(Tensor(b) self, int[] size, *, bool implicit=False) -> Tensor(b)\n  self: grad\n")
    assert [linted.text(item.place) for item in linted.diagnostics] == ["b", "int", "b"]


def test_every_fault_of_a_file_is_found_at_once() -> None:
    linted = lint(
        "- name: relu(Tensor self) -> Tensor\n"
        "  self: grads[1] + grad\n"
        "  result: self * slef\n"
        "- 3\n"
        "- name: relu_(Tensor(a!) self) -> Tensor(a!)\n"
        "  self: 0\n"
        "  self: (grad\n"
    )
    assert [(linted.position(item.place).line, item.code) for item in linted.diagnostics] == [
        (2, "ATN421"),
        (2, "ATN422"),
        (3, "ATN431"),
        (3, "ATN435"),
        (3, "ATN429"),
        (4, "ATN401"),
        (6, "ATN402"),
        (7, "ATN403"),
        (7, "ATN428"),
    ]


@pytest.mark.parametrize(
    "derivatives",
    [
        # An argument called `grad`, of which an attribute is saved, is not a gradient.
        "- name: back(Tensor grad, Tensor self) -> (Tensor, Tensor)\n  self: f(grads[0], grads[1], grad.sym_sizes())\n",
        # Words in comments, strings, members, calls and namespaces are not variables.
        '- name: relu(Tensor self) -> Tensor\n  self: f(grad, /*slef=*/true, "selff", self.seld, at::slef, std::get<0>(self))\n',
        # A variable of C++ that is close to nothing.
        "- name: relu(Tensor self) -> Tensor\n  self: grad * kCudnnDoubleBackwardMsg\n",
        # A list does all by itself in forward formulas.
        "- name: join(Tensor[] tensors, int dim=0) -> Tensor\n"
        "  tensors: join_backward(grad, tensors, dim)\n  result: join_jvp(tensors, dim)\n",
        "- name: relu(Tensor self) -> Tensor\n  output_differentiability: [True]\n  self: grad\n",
    ],
)
def test_looks_wrong_and_is_right(derivatives: str) -> None:
    native = (
        "- func: back(Tensor grad, Tensor self) -> (Tensor, Tensor)\n  dispatch:\n    CPU: back\n"
        "- func: join(Tensor[] tensors, int dim=0) -> Tensor\n  dispatch:\n    CPU: join\n"
    )
    assert [item.message for item in lint(derivatives, native).diagnostics] == []


def test_what_follows_from_a_fault_of_the_operator_is_not_told() -> None:
    linted = lint(
        "- name: broken(Tensr self) -> Tensor\n  self: grad\n- name: gone(Tensor x) -> Tensor\n",
        "- func: broken(Tensr self) -> Tensor\n",
    )
    assert [item.place.path for item in linted.diagnostics] == ["native_functions.yaml"]


def test_a_torchgen_from_before_symints_takes_sizes() -> None:
    derivatives = "- name: relu(Tensor self) -> Tensor\n  self: f(grad, self.sizes())\n"
    old, new = "def saved_variables():\n    r'{}.sizes\\(\\)'\n", "r'{}.sym_sizes\\(\\)'\n"
    assert lint(derivatives, **{"load_derivatives.py": old}).codes() == []
    assert lint(derivatives, **{"load_derivatives.py": new}).codes() == ["ATN426"]


def test_the_generator_beside_tells_which_operators_need_no_derivative() -> None:
    derivatives = "- name: relu(Tensor self) -> Tensor\n  self: grad\n"
    listed = 'DONT_REQUIRE_DERIVATIVE = {\n    # "add" is not\n    "relu",\n}\n'
    assert lint(derivatives).codes() == []
    assert lint(derivatives, **{"gen_variable_type.py": listed}).codes() == ["ATN442"]


def test_a_suppression_on_an_entry_covers_it() -> None:
    linted = lint("- name: relu(Tensor self) -> Tensor  # opschema: ignore[ATN428] why\n  self: (grad\n")
    assert linted.codes() == []


HOSTILE = [
    "- name: relu(Tensor self) -> Tensor\n  ? [a, b]\n  : grad\n  ? {x: 1}\n  : y\n  1: grad\n  null: grad\n",
    "- name: relu(Tensor self) -> Tensor\n  dispatch: {a: [b], [c]: d, 1: {self: x}, Default: {self: [grad], 2: 3, 'a,,b': x}}\n",
    "- name: relu(Tensor self) -> Tensor\n  dispatch:\n    <<: {Default: {self: grad}}\n",
    "- name: relu(Tensor self) -> Tensor\n  ',': grad\n  ' ': grad\n  'self,': grad\n  '': x\n",
    f"- name: relu(Tensor self) -> Tensor\n  self: f(grads[{'9' * 5000}], grad_input_mask[{'9' * 5000}])\n",
    f"- name: {'a' * 20000}(Tensor self) -> Tensor\n  self: {'(' * 5000}\n",
    "- name: ''\n  self: grad\n- name: (\n- name: )->\n- name: '->'\n- {}\n- []\n- null\n- name: relu(Tensor self) -> Tensor\n",
    "- name: relu(Tensor self) -> Tensor\n  output_differentiability: &o [*o, [True], null, 3.4]\n  self: '/* grad'\n",
    "- name: >\n    relu(Tensor self) -> Tensor\n  self: >\n    grads[0] + self.sizes()\n",
]


@pytest.mark.parametrize("derivatives", HOSTILE)
def test_malformed_files_end_in_findings(derivatives: str) -> None:
    found = lint(derivatives).diagnostics
    assert found
    assert "OPS900" not in {item.code for item in found}


def test_one_fault_in_the_installed_torch_is_all_that_is_found() -> None:
    torchgen = pytest.importorskip("torchgen")
    folder = Path(torchgen.__file__).parent / "packaged"
    names = ("ATen/native/native_functions.yaml", "ATen/native/tags.yaml", "autograd/derivatives.yaml")
    files = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    files[names[2]] = files[names[2]].replace("  self: grad * self.sgn()\n", "  self: grad * self.sgn(\n", 1)
    assert lint_files([PACK], files, RULES).codes() == ["ATN428"]


def test_a_slip_in_a_variable_is_a_warning() -> None:
    found = lint("- name: relu(Tensor self) -> Tensor\n  self: grad * slef\n").diagnostics
    assert [(item.message, item.severity) for item in found] == [
        ("nothing is called `slef` here; did you mean `self`?", Severity.WARNING)
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "- name: expand(Tensor(b) self, int[]  size, *, bool implicit=False) -> Tensor(b)\n  self: grad\n",
            "- name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)\n  self: grad\n",
        ),
        (
            "- name: 'rel(Tensor self) -> Tensor'\n  self: grad\n",
            "- name: 'relu(Tensor self) -> Tensor'\n  self: grad\n",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  self: f(grads[0],\n    grads[0])\n",
            "- name: relu(Tensor self) -> Tensor\n  self: f(grad,\n    grad)\n",
        ),
        (
            "- name: relu(Tensor self) -> Tensor\n  self: f(self->sizes(), grad.size(-1), self.strides())\n",
            "- name: relu(Tensor self) -> Tensor\n  self: f(self->sym_sizes(), grad.sym_size(-1), self.sym_strides())\n",
        ),
    ],
)
def test_fixes(before: str, after: str) -> None:
    texts, left = fix_files([PACK], example_files([("yaml derivatives.yaml", before)]), RULES, unsafe=True)
    assert texts == {"derivatives.yaml": after}
    assert [item.message for item in left.diagnostics if item.fix is not None] == []


def test_a_number_has_no_fix_since_it_does_not_compile_in_quotes_either() -> None:
    found = lint("- name: relu(Tensor self) -> Tensor\n  self: 0\n").diagnostics
    assert [(item.code, item.fix) for item in found] == [("ATN402", None)]


def test_a_folded_formula_has_no_fix() -> None:
    found = lint("- name: relu(Tensor self) -> Tensor\n  self: >-\n    f(grads[0],\n    self.sizes())\n").diagnostics
    assert [(item.code, item.fix) for item in found] == [("ATN423", None), ("ATN426", None)]


HEIRS = """\
- func: one(Tensor self) -> Tensor
  dispatch:
    CPU: one
- func: one_(Tensor(a!) self) -> Tensor(a!)
- func: two(Tensor self) -> Tensor
  dispatch:
    CPU: two
- func: two_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: two_
  autogen: two.out
- func: three_(Tensor(a!) self, Tensor other) -> Tensor(a!)
  dispatch:
    CPU: three_
  autogen: three, three.out
- func: _foreach_two(Tensor[] self) -> Tensor[]
  dispatch:
    CompositeExplicitAutograd: foreach_two
"""
TWO, THREE = "two(Tensor self) -> Tensor", "three_(Tensor(a!) self, Tensor other) -> Tensor(a!)"
OWN = "- name: two_(Tensor(a!) self) -> Tensor(a!)\n  self: grad\n"


@pytest.mark.parametrize(
    ("derivatives", "code", "text"),
    [
        ("- name: one(Tensor self) -> Tensor\n  self: grad\n", "ATN443", "one(Tensor self) -> Tensor"),
        (f"- name: {TWO}\n  self: f(grad, self.sym_strides())\n", "ATN427", "self.sym_strides()"),
        (f"- name: {TWO}\n  self: f(grad, self.sym_strides())\n{OWN}", "", ""),
        (f"- name: {TWO}\n  output_differentiability: [False]\n", "ATN441", "output_differentiability"),
        (f"- name: {TWO}\n  output_differentiability: [False]\n{OWN}", "", ""),
        (f"- name: {THREE}\n  other: f(grad, self.dim())\n", "ATN444", "self"),
        (f"- name: {THREE}\n  other: f(grad, other)\n", "", ""),
        (
            f"- name: {THREE}\n  other: f(grad, self)\n- name: three(Tensor self, Tensor other) -> Tensor\n  other: grad\n",
            "",
            "",
        ),
        (f"- name: {TWO}\n  dispatch:\n    AutogradXPU:\n      self: grad\n", "ATN445", "dispatch"),
        (f"- name: {TWO}\n  dispatch:\n    AutogradXPU:\n      self: grad\n    Default:\n      self: grad\n", "", ""),
    ],
)
def test_variants_take_their_derivatives_from_others(derivatives: str, code: str, text: str) -> None:
    linted = lint(derivatives, HEIRS)
    found = [(item.code, linted.text(item.place)) for item in linted.diagnostics if item.code in RULES]
    assert found == ([(code, text)] if code else [])


def test_an_argument_that_needs_another_name_is_marked_where_it_is_declared() -> None:
    schema = "fold(Tensor self, Tensor result) -> Tensor"
    linted = lint(f"- name: {schema}\n  self: grad\n", f"- func: {schema}\n  dispatch:\n    CPU: fold\n")
    (finding,) = linted.diagnostics
    assert (finding.code, finding.place.path, linted.text(finding.place)) == (
        "ATN408",
        "native_functions.yaml",
        "result",
    )


def test_many_unknown_names_are_told_without_searching_for_others() -> None:
    derivatives = "".join(f"- name: relu{number}(Tensor self) -> Tensor\n  self: grad\n" for number in range(60))
    named = {"opschema.toml": '[aten]\nnative-functions = "native_functions.yaml"\n'}
    files = {**example_files([("yaml derivatives.yaml", derivatives)]), **named}
    messages = [item.message for item in lint_files([PACK], files).diagnostics]
    assert messages == [f"no operator is called `relu{number}`" for number in range(60)]
    assert (
        lint(derivatives[: derivatives.index("- name: relu1(")])
        .diagnostics[0]
        .message.endswith("`relu` has this signature")
    )


def test_a_lone_list_of_other_operators_is_not_what_derivatives_are_of() -> None:
    files = {
        "third/functions.yaml": "- func: op1(Tensor self) -> Tensor\n  variants: function\n",
        "derivatives.yaml": "".join(
            f"- name: {name}(Tensor self) -> Tensor\n  self: grad\n" for name in ("abs", "sin", "cos", "tan", "exp")
        ),
        "opschema.toml": "[aten]\ninstalled-torch = false\n",
    }
    assert lint_files([PACK], files).codes() == []

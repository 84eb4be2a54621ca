"""``opschema show`` of ATen's operators, and what ``--show-settings`` tells of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.pack import PACK
from tests.tables import Shown, show, shown

ATENKIT = Path(__file__).parents[3] / "fixtures/atenkit"
ALONE = AtenOptions(installed_torch=False)


def _files(**changed: str) -> dict[str, str]:
    """The fixture's YAML, with other texts for some of it."""
    paths = ["aten/native_functions.yaml", "aten/tags.yaml", "autograd/derivatives.yaml", "backend/atenkit.yaml"]
    texts = {path: (ATENKIT / path).read_text(encoding="utf-8") for path in paths}
    return {path: changed.get(path.rpartition("/")[2].partition(".")[0], text) for path, text in texts.items()}


def _show(name: str, files: Mapping[str, str] | None = None) -> Shown | list[str]:
    return show(PACK, files or _files(), name, ALONE)


def _parts(name: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    return shown(PACK, files or _files(), name, ALONE).parts


def _line(path: str, text: str) -> str:
    """Where a line of the fixture that begins so stands."""
    lines = _files()[path].splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))}"


NATIVE, DERIVATIVES, BACKEND = "aten/native_functions.yaml", "autograd/derivatives.yaml", "backend/atenkit.yaml"
ADD, ADD_, ADD_OUT = (_line(NATIVE, f"- func: {name}(") for name in ("add.Tensor", "add_.Tensor", "add.out"))


def test_all_that_is_known_of_an_operator() -> None:
    found = shown(PACK, _files(), "aten::add.Tensor", ALONE)
    assert found.title == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    tags = _line(NATIVE, "tags: [core, pointwise]")
    other, result = _line(DERIVATIVES, "other: handle"), _line(DERIVATIVES, "result: self_t +")
    assert found.parts == [
        ("declared", ADD),
        ("functional", f"{ADD} add.Tensor"),
        ("in-place", f"{ADD_} add_.Tensor"),
        ("out", f"{ADD_OUT} add.out, structured"),
        ("kernel", f"{_line(NATIVE, 'CPU, CUDA: add_out')} CPU, CUDA: add_out (add.out)"),
        ("kernel", f"{ADD} CompositeExplicitAutogradNonFunctional: made by torchgen"),
        ("kernel", f"{ADD} Meta: made by torchgen"),
        ("autograd", f"{_line(DERIVATIVES, 'self: handle')} self: handle_r_to_c(self.scalar_type(), grad)"),
        ("autograd", f"{other} other: handle_r_to_c(other.scalar_type(), maybe_multiply(grad, alpha.conj()))"),
        ("autograd", f"{result} result: self_t + maybe_multiply(other_t, alpha)"),
        ("variants", f"{_line(NATIVE, 'variants: function, method')} function, method"),
        ("tag", f"{tags} core: What a backend has to know; other operators are made of…"),
        ("tag", f"{tags} pointwise: Each element of the result depends on the elements at its…"),
        ("backend", f"{_line(BACKEND, '- add.Tensor')} PrivateUse1: supported"),
    ]


def test_the_namespace_may_be_left_out() -> None:
    assert _show("add.Tensor") == _show("aten::add.Tensor")


def test_an_in_place_operator_has_the_derivative_of_the_functional_one() -> None:
    parts = _parts("add_.Tensor")
    assert ("autograd", f"{DERIVATIVES}:4 self: handle_r_to_c(self.scalar_type(), grad), of add.Tensor") in parts
    assert not [label for label, _ in parts if label == "backend"]


def test_what_torchgen_generates_is_told_from_what_is_declared() -> None:
    found = shown(PACK, _files(), "relu.out", ALONE)
    assert found.title == "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
    generated, autogen = _line(NATIVE, "- func: relu_("), _line(NATIVE, "autogen: relu.out")
    assert found.parts[0] == ("generated", generated)
    assert ("out", f"{autogen} relu.out, generated") in found.parts
    kernels = [line for label, line in found.parts if label == "kernel"]
    assert kernels == [f"{generated} CompositeExplicitAutograd: made by torchgen"]
    assert not [label for label, _ in found.parts if label == "variants"]


def test_a_composite_operator_has_one_kernel_for_all() -> None:
    selu = _line(NATIVE, "- func: selu(")
    kernel = "CompositeImplicitAutograd: at::native::selu, made of other operators"
    assert ("decomposition", f"{selu} {kernel}") in _parts("selu")
    assert _parts("selu")[-1] == ("backend", f"{_line(BACKEND, '- selu')} PrivateUse1: autograd")


def test_a_view_and_its_copy_know_each_other() -> None:
    assert ("view's copy", f"{_line(NATIVE, '- func: expand_copy(')} expand_copy") in _parts("expand")
    assert ("view", f"{_line(NATIVE, '- func: expand(')} expand") in _parts("expand_copy")
    sections = [line.partition(" ")[2] for label, line in _parts("expand") if label == "backend"]
    assert sections == ["PrivateUse1: supported", "PrivateUse1: symint"]


def test_inner_loops_stand_for_kernels() -> None:
    ufunc = "    ufunc_inner_loop:\n    Generic: add (AllAndComplex)\n".replace("    ufunc", "  ufunc", 1)
    native = _files()[NATIVE].replace("  dispatch:\n    CPU, CUDA: add_out\n", ufunc, 1)
    parts = _parts("add.Tensor", _files(native_functions=native))
    assert ("kernel", f"{NATIVE}:16 CPU, CUDA: ufunc_inner_loop (add.out)") in parts


def test_an_operator_whose_schema_cannot_be_read_is_there_all_the_same() -> None:
    broken = _files(native_functions=_files()[NATIVE].replace("add.Tensor(Tensor self", "add.Tensor(Tensr self", 1))
    found = shown(PACK, broken, "add.Tensor", ALONE)
    assert found.title == "aten::add.Tensor"
    assert found.parts == [
        ("declared", f"{ADD} unresolved: its schema cannot be read; `opschema lint` reports why"),
        ("backend", f"{_line(BACKEND, '- add.Tensor')} PrivateUse1: supported"),
    ]


def test_a_backend_alone_has_what_it_lists() -> None:
    files = {BACKEND: _files()[BACKEND]}
    found = shown(PACK, files, "relu", ALONE)
    assert found.title == "relu"
    assert found.parts == [
        ("backend", f"{_line(BACKEND, '- relu')} PrivateUse1: supported"),
        ("unresolved", "it is not an operator of ATen that is known here"),
    ]
    assert _show("reluu", files) == ["relu", "relu_", "selu"]
    assert _show("nothing_like_it", files) == []


def test_an_operator_of_a_backends_own_has_its_schema_there() -> None:
    yaml = "all_version: [v2.1]\ncustom:\n  - func: npu_turn(Tensor self, int k=1) -> Tensor\n    op_api: all_version\n"
    found = shown(PACK, {"op_plugin_functions.yaml": yaml}, "npu_turn", ALONE)
    assert found.title == "npu_turn(Tensor self, int k=1) -> Tensor"
    assert found.parts == [("backend", "op_plugin_functions.yaml:3 op-plugin: custom")]


def test_the_closest_names() -> None:
    assert _show("add") == ["add.Tensor", "add.out"]
    assert _show("scale_shif") == ["scale_shift", "scale_shift_", "scale_shift.out"]


def test_settings_tell_what_each_file_is_taken_for_and_is_judged_by(tmp_path: Path) -> None:
    files = {**_files(), "other.yaml": "name: something else\n"}
    (described,) = PACK.describe(Project(Workspace(tmp_path, files)), ALONE)
    assert [(item.name, item.value, item.note) for item in described.facts] == [
        ("tags", "aten/tags.yaml", "6 tags"),
        ("operators", NATIVE, "20 operators; tags: aten/tags.yaml; read by torch 2.15"),
        ("derivatives", DERIVATIVES, f"9 operators of {NATIVE}"),
        ("backend", BACKEND, f"6 operators, dialect torchgen; compared with `{NATIVE}`"),
    ]


def test_settings_tell_that_no_operators_are_known(tmp_path: Path) -> None:
    (described,) = PACK.describe(Project(Workspace(tmp_path, {BACKEND: _files()[BACKEND]})), ALONE)
    assert [item.note for item in described.facts] == [
        "6 operators, dialect torchgen; no operators to compare it with are known"
    ]

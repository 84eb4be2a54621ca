"""``opschema show`` of ATen's operators, and what ``--show-settings`` tells of their files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opschema_cli.lint.pack import Shown
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.pack import PACK

ATENKIT = Path(__file__).parents[3] / "fixtures/atenkit"
ALONE = AtenOptions(installed_torch=False)


def _files(**changed: str) -> dict[str, str]:
    """The fixture's YAML, with other texts for some of it."""
    paths = ["aten/native_functions.yaml", "aten/tags.yaml", "autograd/derivatives.yaml", "backend/atenkit.yaml"]
    texts = {path: (ATENKIT / path).read_text(encoding="utf-8") for path in paths}
    return {path: changed.get(path.rpartition("/")[2].partition(".")[0], text) for path, text in texts.items()}


def _show(name: str, files: Mapping[str, str] | None = None, options: AtenOptions = ALONE) -> object:
    project = Project(Workspace(Path("/nowhere"), files or _files()))
    return PACK.show(project, options, name)


def _rows(name: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str, str]]:
    shown = _show(name, files)
    assert isinstance(shown, Shown)
    return [(row.slot, row.declared, row.implemented) for row in shown.rows]


def _line(path: str, text: str) -> str:
    """Where a line of the fixture that begins so stands."""
    lines = _files()[path].splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if line.strip().startswith(text))}"


NATIVE, DERIVATIVES, BACKEND = "aten/native_functions.yaml", "autograd/derivatives.yaml", "backend/atenkit.yaml"
ADD, ADD_, ADD_OUT = (_line(NATIVE, f"- func: {name}(") for name in ("add.Tensor", "add_.Tensor", "add.out"))


def test_all_that_is_known_of_an_operator() -> None:
    shown = _show("aten::add.Tensor")
    assert isinstance(shown, Shown)
    assert shown.title == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert shown.places == [("declared", ADD)]
    tags = _line(NATIVE, "tags: [core, pointwise]")
    assert _rows("aten::add.Tensor") == [
        ("functional", "add.Tensor", ADD),
        ("in-place", "add_.Tensor", ADD_),
        ("out", "add.out, structured", ADD_OUT),
        ("variants", "function, method", _line(NATIVE, "variants: function, method")),
        ("dispatch", "CPU, CUDA: add_out (add.out)", _line(NATIVE, "CPU, CUDA: add_out")),
        ("dispatch", "CompositeExplicitAutogradNonFunctional: made by torchgen", ADD),
        ("dispatch", "Meta: made by torchgen", ADD),
        ("derivative", "self: handle_r_to_c(self.scalar_type(), grad)", _line(DERIVATIVES, "self: handle")),
        (
            "derivative",
            "other: handle_r_to_c(other.scalar_type(), maybe_multiply(grad, alpha.conj()))",
            _line(DERIVATIVES, "other: handle"),
        ),
        ("derivative", "result: self_t + maybe_multiply(other_t, alpha)", _line(DERIVATIVES, "result: self_t +")),
        ("tag", "core: What a backend has to know; other operators are made of…", tags),
        ("tag", "pointwise: Each element of the result depends on the elements at its…", tags),
        ("backend", "PrivateUse1: supported", _line(BACKEND, "- add.Tensor")),
    ]


def test_the_namespace_may_be_left_out() -> None:
    assert _show("add.Tensor") == _show("aten::add.Tensor")


def test_an_in_place_operator_has_the_derivative_of_the_functional_one() -> None:
    rows = _rows("add_.Tensor")
    assert ("derivative", "self: handle_r_to_c(self.scalar_type(), grad), of add.Tensor", f"{DERIVATIVES}:4") in rows
    assert not [row for row in rows if row[0] == "backend"]


def test_what_torchgen_generates_is_told_from_what_is_declared() -> None:
    shown = _show("relu.out")
    assert isinstance(shown, Shown)
    assert shown.title == "aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"
    assert shown.places == [("generated", _line(NATIVE, "- func: relu_("))]
    autogen = _line(NATIVE, "autogen: relu.out")
    rows = _rows("relu.out")
    assert ("out", "relu.out, generated", autogen) in rows
    assert [row[1] for row in rows if row[0] == "dispatch"] == ["CompositeExplicitAutograd: made by torchgen"]
    assert not [row for row in rows if row[0] == "variants"]


def test_a_composite_operator_has_one_kernel_for_all() -> None:
    selu = _line(NATIVE, "- func: selu(")
    kernel = "CompositeImplicitAutograd: at::native::selu, made of other operators"
    assert ("dispatch", kernel, selu) in _rows("selu")
    assert _rows("selu")[-1] == ("backend", "PrivateUse1: autograd", _line(BACKEND, "- selu"))


def test_a_view_and_its_copy_know_each_other() -> None:
    assert ("view's copy", "expand_copy", _line(NATIVE, "- func: expand_copy(")) in _rows("expand")
    assert ("view", "expand", _line(NATIVE, "- func: expand(")) in _rows("expand_copy")
    sections = [row[1] for row in _rows("expand") if row[0] == "backend"]
    assert sections == ["PrivateUse1: supported", "PrivateUse1: symint"]


def test_inner_loops_stand_for_kernels() -> None:
    ufunc = "    ufunc_inner_loop:\n    Generic: add (AllAndComplex)\n".replace("    ufunc", "  ufunc", 1)
    native = _files()[NATIVE].replace("  dispatch:\n    CPU, CUDA: add_out\n", ufunc, 1)
    rows = _rows("add.Tensor", _files(native_functions=native))
    assert ("dispatch", "CPU, CUDA: ufunc_inner_loop (add.out)", f"{NATIVE}:16") in rows


def test_an_operator_whose_schema_cannot_be_read_is_there_all_the_same() -> None:
    broken = _files(native_functions=_files()[NATIVE].replace("add.Tensor(Tensor self", "add.Tensor(Tensr self", 1))
    shown = _show("add.Tensor", broken)
    assert isinstance(shown, Shown)
    assert (shown.title, shown.places) == ("aten::add.Tensor", [("declared", ADD)])
    assert [row.slot for row in shown.rows] == ["backend"]
    assert "`opschema lint` tells why" in shown.text


def test_a_backend_alone_tells_what_it_lists() -> None:
    files = {BACKEND: _files()[BACKEND]}
    shown = _show("relu", files)
    assert isinstance(shown, Shown)
    assert [(row.slot, row.declared) for row in shown.rows] == [("backend", "PrivateUse1: supported")]
    assert (shown.title, shown.text) == ("relu", "It is no operator of ATen that is known here.")
    assert _show("reluu", files) == ["relu", "relu_"]
    assert _show("nothing_like_it", files) == []


def test_an_operator_of_a_backends_own_has_its_schema_there() -> None:
    yaml = "all_version: [v2.1]\ncustom:\n  - func: npu_turn(Tensor self, int k=1) -> Tensor\n    op_api: all_version\n"
    shown = _show("npu_turn", {"op_plugin_functions.yaml": yaml})
    assert isinstance(shown, Shown)
    assert shown.title == "npu_turn(Tensor self, int k=1) -> Tensor"
    (row,) = shown.rows
    assert (row.declared, row.implemented) == ("op-plugin: custom", "op_plugin_functions.yaml:3")


def test_the_closest_names() -> None:
    assert _show("add") == ["add.Tensor", "add.out"]
    assert _show("scale_shif") == ["scale_shift", "scale_shift_"]


def test_settings_tell_what_each_file_is_taken_for_and_is_judged_by(tmp_path: Path) -> None:
    files = {**_files(), "other.yaml": "name: something else\n"}
    (described,) = PACK.describe(Project(Workspace(tmp_path, files)), ALONE)
    assert [(item.name, item.value, item.note) for item in described.facts] == [
        ("tags", "aten/tags.yaml", "6 tags"),
        ("operators", NATIVE, "20 operators; tags: aten/tags.yaml; read by torch 2.15"),
        ("derivatives", DERIVATIVES, f"9 operators of {NATIVE}"),
        ("backend", BACKEND, f"6 operators, dialect torchgen; judged by `{NATIVE}`"),
    ]


def test_settings_tell_that_no_operators_are_known(tmp_path: Path) -> None:
    (described,) = PACK.describe(Project(Workspace(tmp_path, {BACKEND: _files()[BACKEND]})), ALONE)
    assert [item.note for item in described.facts] == [
        "6 operators, dialect torchgen; no operators to judge it by are known"
    ]

"""Which release's torchgen reads a file, what follows from that, and what is said where it is not known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import ClassVar

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import examples
from opschema_cli.project import Project
from opschema_cli.requirements import read_version
from opschema_cli.testing import fix_files, lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.draws import draws
from opschema_rules.aten.examples import example_files
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, DerivativesFile, NativeFile
from opschema_rules.aten.pack import PACK
from opschema_rules.aten.torchgen import Torchgen
from opschema_rules.aten.torchgen_table import fitting_release, known_releases, newest_torchgen, torchgen_of
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.rules.aten.entry_findings import NATIVE, entry
from tests.rules.aten.test_vocabulary import MODEL

ALONE = AtenOptions(installed_torch=False)
RANDOM = "_philox_pick_rand(Tensor self) -> Tensor"


def torchgen_for(files: dict[str, str]) -> Torchgen:
    """The torchgen that reads the native_functions.yaml of some files."""
    loaded = load(Project(Workspace(Path("/nowhere"), files)), ALONE)
    return next(item.torchgen for item in loaded.subjects if isinstance(item, NativeFile))


def lint(files: dict[str, str], *codes: str) -> list[Diagnostic]:
    """The findings of some rules."""
    return lint_files([PACK], files, list(codes)).diagnostics


# -- which release ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "release"),
    [
        ("", "2.15"), ("torch", "2.15"), ("torch>=2.6", "2.15"), ("torch==2.6.0", "2.6"), ("torch>=2.4,<2.9", "2.8"),
        ("torch~=2.10.0", "2.10"), ("torchvision==2.6", "2.15"),
    ],
)  # fmt: skip
def test_the_newest_release_that_the_requirements_admit(requires: str, release: str) -> None:
    found = torchgen_for({NATIVE: entry(""), "requirements.txt": f"{requires}\n"})
    assert (found.origin, found.doubt) == (f"torch {release}", "")


def test_the_torchgen_of_the_tree_counts_before_what_it_requires() -> None:
    files = {NATIVE: entry(""), "requirements.txt": "torch==2.6\n", "torchgen/model.py": MODEL}
    assert torchgen_for(files).origin == "the tree's own torchgen"


def _whole(names: frozenset[str]) -> str:
    """A native_functions.yaml with these operators."""
    return "".join(f"- func: {name}(Tensor self) -> Tensor\n" for name in sorted(names)) + "  autogen: generated.out\n"


def _operators(release: str) -> frozenset[str]:
    from opschema_rules.aten.torchgen_table import _releases

    return _releases()[read_version(release) or (0, 0)].operators


def test_pytorchs_own_file_is_of_the_release_whose_operators_it_has() -> None:
    for version in known_releases():
        own = _operators(".".join(map(str, version)))
        fork = {*own, "mine", "mine.out"} - {"add.Tensor"}
        assert fitting_release(frozenset(own)).version == fitting_release(frozenset(fork)).version == version
    files = {NATIVE: _whole(_operators("2.6")), "requirements.txt": "torch>=2.10\n"}
    assert (torchgen_for(files).origin, torchgen_for(files).doubt) == ("torch 2.6", "")


def test_a_fork_with_many_operators_of_its_own_is_of_the_release_that_it_has_whole() -> None:
    own = _operators("2.6")
    fork = own | {f"own_{number}" for number in range(len(own) // 10)}
    assert (fitting_release(fork).version, fitting_release(fork).doubt) == ((2, 6), "")


def test_a_file_of_no_known_release_is_in_doubt() -> None:
    newer = _operators("2.15") | {f"new{number}" for number in range(5)}
    assert torchgen_for({NATIVE: _whole(newer)}).doubt == (
        "opschema knows torch 2.4 to 2.15, which lack `new0` and 4 operators more"
    )
    older = _operators("2.4") - {f"_foreach_{name}" for name in ("abs", "acos", "asin", "atan", "ceil")}
    assert "which have `_foreach_abs` and 4 operators more as well" in torchgen_for({NATIVE: _whole(older)}).doubt


@pytest.mark.parametrize(("key", "expected"), [("SparseXPU", []), ("SparseXPUU", ["ATN131"])])
def test_a_file_of_a_part_of_the_operators_is_of_the_newest_release_that_has_them(
    key: str, expected: list[str]
) -> None:
    names = frozenset(sorted(_operators("2.12"))[::2]) | (_operators("2.12") - _operators("2.13"))
    entry_of_backend = f"- func: relu(Tensor self) -> Tensor\n  dispatch:\n    {key}: relu\n"
    files = {NATIVE: entry_of_backend + _whole(names - {"relu"})}
    assert (torchgen_for(files).origin, torchgen_for(files).doubt) == ("torch 2.12", "")
    assert [item.code for item in lint(files, "ATN131")] == expected


ATEN = "aten/src/ATen/native/native_functions.yaml"
OLD = "- func: can_cast(ScalarType from, ScalarType to) -> bool\n  use_c10_dispatcher: full\n  dispatch:\n    Math: legacy::can\n"


def test_a_file_of_a_torch_before_all_that_are_known_is_not_checked() -> None:
    names = _operators("2.4") - {f"_foreach_{name}" for name in ("abs", "acos", "asin", "atan", "ceil")}
    files = {NATIVE: OLD + _whole(names).replace("  autogen: generated.out\n", "")}
    assert lint(files) == []
    loaded = load(Project(Workspace(Path("/nowhere"), files)), ALONE)
    assert [item.place.path for item in loaded.unresolved] == [NATIVE]
    assert {item.code for item in lint({NATIVE: OLD + _whole(names)})} >= {"ATN102", "ATN131"}


def _without_generated(names: frozenset[str]) -> str:
    """A native_functions.yaml with these operators, of a torchgen before 1.12."""
    return OLD + _whole(names).replace("  autogen: generated.out\n", "")


def test_a_file_with_many_names_of_no_known_release_is_of_a_torch_before_them() -> None:
    few = frozenset(sorted(_operators("2.13"))[:600])
    assert fitting_release(few).doubt == ""
    assert fitting_release(few | {f"_old_name_{number}" for number in range(20)}).doubt == ""
    names = few | {f"_old_name_{number}" for number in range(60)}
    assert lint({NATIVE: _without_generated(names)}) == []


def test_a_torchgen_of_the_tree_that_generates_no_variants_is_older_than_all_that_are_known() -> None:
    files = {NATIVE: _without_generated(_operators("2.13")), "tools/codegen/model.py": MODEL.replace("autogen", "old")}
    assert lint(files) == []
    assert lint({**files, "tools/codegen/model.py": MODEL}) != []


@pytest.mark.parametrize("name", ["derivatives.yaml", "deprecated.yaml"])
def test_files_of_autograd_beside_such_a_file_are_not_checked(name: str) -> None:
    wrong = "- name: relu(Tensor self)\n  aten: relu(selff)\n" if name == "deprecated.yaml" else DERIVATIVES
    names = _operators("2.4") - {f"_foreach_{name}" for name in ("abs", "acos", "asin", "atan", "ceil")}
    path = f"tools/autograd/{name}"
    assert lint({ATEN: _without_generated(names), path: wrong}) == []
    assert {item.place.path for item in lint({ATEN: _whole(_operators("2.13")), path: wrong})} >= {path}


def test_kernels_are_compared_with_the_schemas_of_known_releases_only() -> None:
    kernel = """at::Tensor fill(const at::Tensor& self, at::Scalar value) { return self; }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("fill.Scalar", &fill); m.impl("filll.Scalar", &fill); }
"""
    names = _operators("2.4") - {f"_foreach_{name}" for name in ("abs", "acos", "asin", "atan", "ceil")}
    schema = "- func: fill.Scalar(Tensor self, Scalar value) -> Tensor\n"
    for text, expected in ((OLD, ["REG504"]), ("", ["REG505", "REG504"])):
        end = "" if text else "  autogen: generated.out\n"
        whole = text + schema + _whole(names - {"fill.Scalar"}).replace("  autogen: generated.out\n", end)
        linted = lint_files([TORCHLIB], {ATEN: whole, "kit.cpp": kernel}, ["REG504", "REG505"])
        assert linted.codes() == expected


OUT = "(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch:\n    "
OWN = f"- func: mul.out{OUT}PrivateUse1: mul_out_kit\n- func: div.out{OUT}PrivateUse1, CompositeExplicitAutograd: div_out\n"


def test_a_file_of_the_generator_of_a_backend_is_not_checked() -> None:
    assert lint({NATIVE: OWN}) == []
    loaded = load(Project(Workspace(Path("/nowhere"), {NATIVE: OWN})), ALONE)
    assert [item.place.path for item in loaded.unresolved] == [NATIVE]
    assert loaded.ops == 2


@pytest.mark.parametrize("other", ["CPU: other_out", "CUDA, PrivateUse1: other_out", "PrivateUse: other_out"])
def test_a_file_with_a_key_of_no_backend_outside_is_torchgens(other: str) -> None:
    found = lint({NATIVE: f"{OWN}- func: other.out{OUT}{other}\n"})
    assert {item.code for item in found} == {"ATN131", "ATN317"}


def test_kernels_are_not_judged_by_the_file_of_the_generator_of_a_backend() -> None:
    kernels = 'TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("KIT", &f); }\n'
    for name, expected in (("relu", []), ("rellu", ["REG504"])):
        files = {"aten/src/ATen/native/native_functions.yaml": OWN, "kit.cpp": kernels.replace("KIT", name)}
        assert [item.code for item in lint_files([PACK, TORCHLIB], files).diagnostics] == expected


DERIVATIVES = "- name: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)\n  self: f(grad, self.sizes())\n"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("config/v1r11", []), ("config/v2r1", []), ("config/v2r6", ["ATN426"]), ("config", ["ATN426"])],
)
def test_a_folder_that_names_a_release(folder: str, expected: list[str]) -> None:
    assert [item.code for item in lint({f"{folder}/derivatives.yaml": DERIVATIVES}, "ATN426")] == expected


# -- in doubt ---------------------------------------------------------------------------------------------------------

MISSPELT = "- func: f(Tensor self) -> Tensor\n  varaints: function\n"


def test_what_rests_on_a_release_that_is_not_known_is_a_warning_without_safe_fix() -> None:
    (found,) = lint({NATIVE: MISSPELT, "setup.cfg": "install_requires = torch>=2.16\n"}, "ATN102")
    assert found.severity.value == "warning"
    assert found.message == (
        "torchgen has no field `varaints`; did you mean `variants`?"
        " (opschema knows torch 2.4 to 2.15, and `setup.cfg` asks for 2.16)"
    )
    assert found.fix is not None
    assert (found.fix.safety, found.fix.why_unsafe) == (
        "unsafe",
        "opschema knows torch 2.4 to 2.15, and `setup.cfg` asks for 2.16",
    )
    (known,) = lint({NATIVE: MISSPELT, "setup.cfg": "install_requires = torch>=2.15\n"}, "ATN102")
    assert (known.severity.value, known.fix and known.fix.safety) == ("error", "safe")


def test_what_no_release_takes_is_an_error_even_so() -> None:
    text = "- func: f(Tensor self) -> Tensor\n  variants: function\n  variants: method\n"
    (found,) = lint({NATIVE: text, "setup.cfg": "install_requires = torch>=2.16\n"}, "ATN103")
    assert found.severity.value == "error"


def test_no_fix_writes_a_tag_that_the_release_means_to_be_absent() -> None:
    text = entry("", RANDOM)
    for release, fixed in (("2.14", True), ("2.15", False)):
        texts, _ = fix_files([PACK], {NATIVE: text, "requirements.txt": f"torch=={release}\n"}, ["ATN117"])
        assert ("nondeterministic_seeded" in texts.get(NATIVE, text)) is fixed


# -- conditions and limits --------------------------------------------------------------------------------------------


def model_with(condition: str) -> str:
    """The installed model.py with another condition for the tag of random operators."""
    head, _, rest = MODEL.partition('        if (\n            "rand" in str(self.func.name)')
    assert rest
    return f"{head}        if (\n            {condition}\n        ):\n{rest.partition('        ):' + chr(10))[2]}"


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ('"rand" in str(self.func.name)', ["the name `_philox_pick_rand` holds `rand`"]),
        ('"rand" in str(self.func.name) and "_philox_" not in str(self.func.name)', []),
        ('not str(self.func.name.name) == "_philox_pick_rand"', []),
        ('str(self.func.name.name) in ["other"]', []),
        ('any("sel" in arg.name for arg in self.func.arguments.flat_all)', ["the name `self` holds `sel`"]),
        ('"rand" in str(self.func.name) and self.is_known(1)', []),
        ('self.is_known(1) or "rand" in str(self.func.name)', ["the name `_philox_pick_rand` holds `rand`"]),
        ('__import__("os").system("touch /tmp/executed")', []),
    ],
)
def test_the_condition_of_the_trees_own_torchgen(condition: str, found: list[str]) -> None:
    files = {NATIVE: entry("", RANDOM), "torchgen/model.py": model_with(condition)}
    assert [item.message.partition(",")[0] for item in lint(files, "ATN117")] == found


def test_the_condition_of_every_release() -> None:
    schema = load(Project(Workspace(Path("/nowhere"), {NATIVE: entry("", RANDOM)})), ALONE)
    native = next(item for item in schema.subjects if isinstance(item, NativeFile))
    parsed = native.entries[0].schema
    assert parsed is not None
    found = {version: bool(draws(torchgen_of(version).limits.draws or "", parsed)) for version in known_releases()}
    assert found == {version: version < (2, 15) for version in known_releases()}


DEEP = "backend: XLA\ncpp_namespace: at::native::openreg\nsupported:\n  - abs\n"


@pytest.mark.parametrize(("helper", "codes"), [("2", ["ATN603"]), ("3", [])])
def test_how_deep_a_namespace_may_be_is_read_from_the_trees_own_torchgen(helper: str, codes: list[str]) -> None:
    utils = f"class NamespaceHelper:\n    def __init__(\n        self, namespace_str: str, max_level: int = {helper}\n    ):\n"
    files = {"xla.yaml": DEEP, NATIVE: entry("", "abs(Tensor self) -> Tensor"), "torchgen/model.py": MODEL}
    assert [item.code for item in lint({**files, "torchgen/utils.py": utils}, "ATN603")] == codes


@pytest.mark.parametrize(("depth", "codes"), [("3", ["ATN133"]), ("4", [])])
def test_how_deep_a_kernel_may_lie_is_read_from_the_trees_own_torchgen(depth: str, codes: list[str]) -> None:
    text = entry("dispatch: {CPU: a::b::c::d::f}")
    model = MODEL.replace("v, max_level=3", f"v, max_level={depth}")
    assert [item.code for item in lint({NATIVE: text, "torchgen/model.py": model}, "ATN133")] == codes


# -- every rule says whether it rests on a release ---------------------------------------------------------------------


class Watching:
    """A torchgen that notes which rule asks for it."""

    asked: ClassVar[set[str]] = set()
    rule = ""

    def __init__(self, torchgen: Torchgen) -> None:
        self.torchgen = torchgen

    def __getattr__(self, name: str) -> object:
        if name not in ("digest", "doubt", "origin"):
            Watching.asked.add(Watching.rule)
        return getattr(self.torchgen, name)


def _watched(files: dict[str, str]) -> list[object]:
    """The subjects of some files, each with a torchgen that notes who asks for it."""
    subjects = load(Project(Workspace(Path("/nowhere"), files)), ALONE).subjects
    for subject in subjects:
        if isinstance(subject, NativeFile):
            _ = (groups_of(subject).all, functions_of(subject), subject.complete)  # what all rules share
        if isinstance(subject, NativeFile | DerivativesFile | BackendFile):
            subject.torchgen = Watching(subject.torchgen)  # type: ignore[assignment]
    return subjects


def test_a_rule_that_asks_for_the_torchgen_says_so() -> None:
    """The torchgen that a rule reads may be of another release; only its name does not matter."""
    for files in (example_files(example.fences) for rule in PACK.rules for example in examples(rule.doc)):
        for subject, rule in product(_watched(files), PACK.rules):
            if rule.subject is not None and isinstance(subject, rule.subject):
                Watching.rule = rule.code
                list(rule(subject, rule.options() if rule.options else None))
    assert Watching.asked
    assert " ".join(sorted(Watching.asked - {rule.code for rule in PACK.rules if rule.by_release})) == ""


# -- the variable of the environment ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda path: path.write_text("torch==2.6\n"), lambda path: path.mkdir()])
def test_a_variable_that_names_nothing_usable_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    place = tmp_path / "requirements"
    make(place)
    monkeypatch.setenv("OPSCHEMA_TORCH", str(place))
    with pytest.raises(
        OpschemaError, match=r"OPSCHEMA_TORCH: there is no native_functions\.yaml .*or unset the variable"
    ):
        lint({NATIVE: entry(""), "torchgen/model.py": MODEL}, "ATN102")


def test_a_variable_that_names_another_yaml_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.yaml").write_text("- name: x\n")
    monkeypatch.setenv("OPSCHEMA_TORCH", str(tmp_path / "other.yaml"))
    with pytest.raises(OpschemaError, match=r"has no entries `- func: \.\.\.`"):
        lint({NATIVE: entry("")}, "ATN102")


def test_the_newest_release_is_the_default() -> None:
    assert newest_torchgen() == torchgen_of(known_releases()[-1])

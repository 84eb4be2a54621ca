"""Why a migration found nothing, and what happens where it could not look."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from opschema_cli.config import load_config
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.pack_calls import loaded_by
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.main import run
from opschema_cli.migrate.options import missing
from opschema_cli.project import Project
from opschema_cli.testing import migrate_files
from opschema_cli.workspace import Workspace
from opschema_rules.aten.pack import PACK as ATEN
from opschema_rules.bindings.pack import PACK as BINDINGS
from opschema_rules.flydsl.pack import PACK as FLYDSL
from opschema_rules.magi.examples import example_files as magi_files
from opschema_rules.magi.pack import PACK as MAGI
from opschema_rules.pypto.pack import PACK as PYPTO
from opschema_rules.tileops.examples import example_files as tileops_files
from opschema_rules.tileops.pack import PACK as TILEOPS
from tests.toypack import PACK as TOY

PACKS = (TILEOPS, MAGI, ATEN, PYPTO, FLYDSL)
FIXTURES = Path(__file__).parents[2] / "fixtures"
NATIVE = "- func: relu(Tensor self) -> Tensor\n"
BACKEND = "backend: XLA\ncpp_namespace: torch_xla\nsupported:\n- {}\n- {}\n"

FLY_KERNEL = """\
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def scale(x: fx.Tensor):
    pass
"""
MAGI_OP = '@magi_register_custom_op("kit::rotate", infer_output_meta_fn=["q"])\ndef rotate(q: Tensor) -> Tensor: ...\n'

Opschema = Callable[..., tuple[int, str]]


@pytest.mark.parametrize("pack", PACKS, ids=lambda pack: pack.name)
def test_every_migration_says_why_it_finds_nothing(pack: Pack) -> None:
    for item in pack.all_migrations():
        assert item.settled, item.name
        assert not item.settled.endswith("."), item.name
        assert item.scope is not None or item.anywhere, item.name
        assert item.scope is None or item.scope.absent.startswith("no "), item.name


@pytest.mark.parametrize(
    ("pack", "fixture"),
    [
        (TILEOPS, "tilekit"),
        (MAGI, "magikit"),
        (ATEN, "atenkit"),
        (PYPTO, "orchkit"),
        (FLYDSL, "flykit"),
        (BINDINGS, "bindkit"),
    ],
    ids=lambda item: item if isinstance(item, str) else item.name,
)
def test_what_every_migration_works_on_is_in_a_tree_of_its_kind(pack: Pack, fixture: str) -> None:
    config, _ = load_config(FIXTURES / fixture)
    options = resolve_settings(config, Registry((pack,))).pack_options[pack.name]
    loaded = loaded_by(pack, Project(Workspace(FIXTURES / fixture)), options)
    for item in pack.all_migrations():
        assert item.scope is None or any(isinstance(found, item.scope.types) for found in loaded.subjects), item.name


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"native_functions.yaml": NATIVE}, "no backend YAML in this tree"),
        ({"xla.yaml": BACKEND.format("abs", "relu")}, "every list is in order"),
        ({"xla.yaml": BACKEND.format("relu", "abs")}, ""),
    ],
)
def test_what_it_looks_at_is_not_there_or_as_it_should_be(files: dict[str, str], reason: str) -> None:
    assert migrate_files(ATEN, "sort-lists", files).result.reason == reason


@pytest.mark.parametrize(
    ("pack", "files"),
    [
        (FLYDSL, {"kernels.py": FLY_KERNEL}),
        (ATEN, {"native_functions.yaml": NATIVE, "xla.yaml": BACKEND.format("abs", "relu")}),
        (TILEOPS, tileops_files([])),
        (MAGI, magi_files([("python", MAGI_OP)])),
    ],
    ids=lambda item: getattr(item, "name", ""),
)
def test_no_migration_denies_what_the_tree_has(pack: Pack, files: dict[str, str]) -> None:
    for item in pack.all_migrations():
        if item.scope is not None and not missing(item):
            assert migrate_files(pack, item.name, files).result.reason != item.scope.absent, item.name


def test_a_migration_that_found_something_has_no_reason() -> None:
    assert migrate_files(TOY, "lower-docs", {"a.toy.yaml": "add: {doc: LOUD}\n"}).result.reason == ""
    assert migrate_files(TOY, "lower-docs", {"a.toy.yaml": "add: {doc: low}\n"}).result.reason == "no doc shouts"
    assert migrate_files(TOY, "lower-docs", {"a.toy.yaml": "add: 1\n"}).result.reason == "no toy op in this tree"


@pytest.fixture
def opschema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Opschema:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = tmp_path / "root"
    shutil.copytree(FIXTURES / "orchkit", root)
    monkeypatch.chdir(root)

    def opschema(*args: str) -> tuple[int, str]:
        code = run(["migrate", *args])
        return code, " ".join(capfd.readouterr()[0].split())

    return opschema


@pytest.mark.usefixtures("no_cpp")
def test_a_check_that_could_not_look_fails(opschema: Opschema) -> None:
    code, out = opschema("derive-signatures", "--check")
    assert code == 2
    assert out == (
        "Nothing to migrate: could not look: C++ is not read, as `tree_sitter_cpp` cannot be imported "
        "(install it: pip install opschema-cli)."
    )


@pytest.mark.usefixtures("no_cpp")
def test_a_migration_that_needs_no_cpp_looks_without_it(opschema: Opschema) -> None:
    assert opschema("wrap-outputs", "--check")[0] == 0


def test_with_the_parser_it_looks(opschema: Opschema) -> None:
    code, out = opschema("derive-signatures", "--check")
    assert (code, out) == (0, "Nothing to migrate: every signature that can be derived is declared so.")


def test_a_check_fails_over_a_file_that_it_cannot_parse(opschema: Opschema) -> None:
    path = Path("attention/kernel_config.py")
    path.write_text(path.read_text() + "\ndef (\n")
    assert opschema("derive-signatures", "--check")[0] == 2
    Path("opschema.toml").write_text('ignore = ["OPS102"]\n' + Path("opschema.toml").read_text())
    assert opschema("derive-signatures", "--check")[0] == 0


def test_the_list_gives_each_reason_and_the_packs_that_did_not_look(opschema: Opschema) -> None:
    out = opschema()[1]
    assert "derive-signatures: every signature that can be derived is declared so" in out
    assert "Not applicable: the migrations of " in out
    found = json.loads(opschema("--output-format", "json")[1])
    reasons = {item["name"]: item["reason"] for item in found["migrations"] if item["sites"] == 0}
    assert reasons["derive-signatures"] == "every signature that can be derived is declared so"
    assert all(reasons.values())
    assert "tileops" in found["packs_not_found"]

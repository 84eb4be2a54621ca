"""Packs are imported only where they find something; the rules of the others are known by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from opschema_cli.config import load_config
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.lazy_pack import LazyPack, catalogue_text
from opschema_cli.lint.pack import Speed
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from tests.toypack import PACK


def head(folder: Path, module: str = "tests.toypack") -> LazyPack:
    catalogue = folder / "rules.json"
    catalogue.write_text(catalogue_text(PACK.rules), encoding="utf-8")
    return LazyPack("toy", PACK.detect, PACK.options, module, catalogue)


def empty(folder: Path) -> Project:
    return Project(Workspace(folder))


def test_a_pack_that_finds_nothing_is_not_imported(tmp_path: Path) -> None:
    registry = Registry((head(tmp_path, "no.such.module"),))
    found = registry.found_in(empty(tmp_path), {"toy": PACK.options()})
    assert found.packs == ()
    assert found.rules.keys() >= {rule.code for rule in PACK.rules}
    assert {rule.code for rule in found.find(PACK.rules[0].name)} == {PACK.rules[0].code}


def test_a_pack_that_finds_something_is_imported_and_its_own_rules_count(tmp_path: Path) -> None:
    registry = Registry((head(tmp_path),)).narrowed(["toy"])
    assert registry.packs == (PACK,)
    assert all(registry.rules[rule.code] is rule for rule in PACK.rules)


def test_without_its_catalogue_the_pack_is_asked(tmp_path: Path) -> None:
    made = head(tmp_path)
    made.catalogue.write_text("[[1]]", encoding="utf-8")
    assert made.rules == PACK.rules


def test_a_pack_that_cannot_be_imported_is_left_out_and_named(tmp_path: Path) -> None:
    registry = Registry((head(tmp_path, "no.such.module"),))
    assert registry.packs == ()
    (broken,) = registry.broken
    assert broken.message.startswith("the pack `toy` (no.such.module) cannot be used: ModuleNotFoundError: ")
    assert not broken.needed
    registry.check_needed()


def test_a_pack_that_finds_something_and_cannot_be_imported_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.toy.yaml").write_text("add: {doc: x}\n", encoding="utf-8")
    registry = Registry((head(tmp_path, "no.such.module"),)).found_in(empty(tmp_path), {"toy": PACK.options()})
    assert [pack.needed for pack in registry.broken] == [True]
    with pytest.raises(OpschemaError, match="the pack `toy`"):
        registry.check_needed()
    assert registry.rules.keys() >= {rule.code for rule in PACK.rules}, "a suppression may name them"


def test_rules_are_described_by_the_packs_that_have_them_alone(tmp_path: Path) -> None:
    other = replace(PACK, name="other", rules=(replace(PACK.rules[0], code="OTH101", name="other"),))
    there = replace(head(tmp_path), pages="https://example.org/{code}")
    catalogue = tmp_path / "other.json"
    catalogue.write_text(catalogue_text(other.rules), encoding="utf-8")
    broken = LazyPack("other", other.detect, other.options, "no.such.module", catalogue)
    registry = Registry((broken, there))
    described = {rule.code: (rule.doc, page) for rule, page in registry.described({"TOY101", "OPS101"})}
    assert described["TOY101"] == (PACK.rules[0].doc, "https://example.org/TOY101")
    assert described["OPS101"][1].endswith("/docs/rules/OPS101.md")
    assert len(described) == 2


def test_a_rule_that_the_catalogue_lacks_is_described(tmp_path: Path) -> None:
    pack = head(tmp_path)
    pack.catalogue.write_text(catalogue_text(PACK.rules[1:]), encoding="utf-8")
    missing = PACK.rules[0]
    assert [rule for rule, _ in Registry((pack,)).described({missing.code})] == [missing]


def test_options_of_rules_of_an_unused_pack_are_let_be(tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text(f'[rules.{PACK.rules[0].name}]\nlimit = "any"\n', encoding="utf-8")
    registry = Registry((head(tmp_path),)).narrowed(())
    settings = resolve_settings(load_config(tmp_path)[0], registry)
    assert PACK.rules[0].code in settings.enabled


def test_no_pack_is_imported_in_a_tree_without_any_of_their_files(tmp_path: Path) -> None:
    code = (
        "import sys; from opschema_cli.main import run; run(['lint', '--no-cache', '.'])\n"
        "print(sorted(name for name in sys.modules if name.endswith('.pack') and name.startswith('opschema_rules')))"
    )
    (tmp_path / "plain.py").write_text("x = 1\n", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_a_pack_reads_in_any_case_is_asked_for_before_it_is_imported(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    project, options = empty(tmp_path), {"toy": PACK.options()}
    finds = replace(
        head(tmp_path, "no.such.module"), detect=lambda *_: True, speed=Speed(lambda project, options: ["a.py"])
    )
    assert Registry((finds,)).found_in(project, options).used == {"toy"}
    assert project.inputs == set()
    assert Registry((finds,)).found_in(project, options, prefetch=True).used == {"toy"}
    assert project.inputs == {"a.py"}


def test_a_pack_that_finds_nothing_asks_for_nothing_and_one_that_fails_hides_nothing(tmp_path: Path) -> None:
    def fail(project: Project, options: object) -> list[str]:
        raise ValueError(options)

    for finds in (False, True):
        project = empty(tmp_path)
        failing = replace(head(tmp_path), detect=lambda *_, finds=finds: finds, speed=Speed(fail))
        found = Registry((failing,)).found_in(project, {"toy": PACK.options()}, prefetch=True)
        assert found.used == ({"toy"} if finds else set())
        assert project.inputs == set()

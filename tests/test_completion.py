"""Shell completion knows rules, packs and migrations, and imports none of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from opschema_cli.lint.registry import load_registry
from opschema_cli.main import cli
from opschema_cli.migrate.engine import load_migrations


def completions(*words: str) -> list[str]:
    *before, last = words
    return [
        item.value for item in ShellComplete(cli, {}, "opschema", "_OPSCHEMA_COMPLETE").get_completions(before, last)
    ]


@pytest.mark.parametrize("before", [["rule"], ["rules"], ["lint", "--select"], ["lint", "--ignore"]])
def test_codes_and_names_of_rules(before: list[str]) -> None:
    assert {"REG201", "REG202"} <= set(completions(*before, "REG20"))
    assert all(item.startswith("REG20") for item in completions(*before, "reg20"))
    assert completions(*before, "fake-sig") == ["fake-signature"]
    assert completions(*before, "SUP00")[:2] == ["SUP001", "SUP002"]
    assert completions(*before, "zzz") == []
    registry = load_registry()
    assert set(completions(*before, "")) == {
        word for rule in registry.rules.values() for word in (rule.code, rule.name)
    }


def test_the_last_rule_of_a_list() -> None:
    assert completions("lint", "--select", "REG201,fake-sig") == ["REG201,fake-signature"]


def test_packs_and_migrations() -> None:
    assert completions("list", "--pack", "torch") == ["torchlib"]
    assert completions("list", "--pack", "") == sorted(pack.name for pack in load_registry().all_packs)
    assert completions("migrate", "drop-car") == ["drop-carrier"]
    names = {item.name for pack in load_registry().packs for item in load_migrations(pack)}
    assert completions("migrate", "drop-carrier", "") == sorted(names)


@pytest.mark.parametrize("words", [["rule", ""], ["lint", "--select", "R"], ["list", "--pack", ""], ["migrate", ""]])
def test_nothing_is_imported_for_it(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "opschema.toml").write_text('plugins = ["plugin.py"]\n')
    (tmp_path / "plugin.py").write_text("raise SystemExit(9)\n")
    code = (
        "import sys\nfrom click.shell_completion import ShellComplete\nfrom opschema_cli.main import cli\n"
        f"words = {words!r}\nfound = ShellComplete(cli, {{}}, 'opschema', 'X').get_completions(words[:-1], words[-1])\n"
        "print(len(found), [name for name in sys.modules if name.startswith('opschema_rules')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    count, _, imported = done.stdout.strip().partition(" ")
    assert (int(count) > 5, imported) == (True, "[]")

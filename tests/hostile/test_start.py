"""How Python starts in a hostile tree: what of it is imported in place of our own modules or Python's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import EXECUTABLE, environment

TRAP = "raise SystemExit(f'{__name__} of the linted tree was imported')\n"
NAMES = ("click", "msgspec", "rich", "multiprocessing", "sqlite3", "json", "opschema_rules", "sitecustomize", "libcst")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with modules called like those that a run needs, a pack in metadata of its own, and a package ``opschema_cli``."""
    root = tmp_path / "tree"
    (root / "opschema_cli").mkdir(parents=True)
    for name in NAMES:
        (root / f"{name}.py").write_text(TRAP)
    (root / "evil.py").write_text(TRAP)
    (root / "evil-1.dist-info").mkdir()
    (root / "evil-1.dist-info/METADATA").write_text("Name: evil\nVersion: 1\n")
    (root / "evil-1.dist-info/entry_points.txt").write_text("[opschema.packs]\nevil = evil:PACK\n")
    for name in ("__init__.py", "main.py", "__main__.py"):
        (root / "opschema_cli" / name).write_text(TRAP)
    (root / "ops.py").write_text("import torch\ntorch.library.define('a::b', '(Tensor x -> Tensor')\n")
    (root / ".git").mkdir()
    return root


def lint(tree: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = (*command, "lint", "--output-format", "concise")
    own = environment(tree.parent / "cache", **env)
    return subprocess.run(command, cwd=tree, env=own, capture_output=True, text=True, timeout=60)


def is_own(run: subprocess.CompletedProcess[str]) -> bool:
    assert "of the linted tree was imported" not in run.stdout + run.stderr
    return run.returncode == 1 and "ops.py:2" in run.stdout


def test_the_command_runs_our_own_code(tree: Path) -> None:
    assert is_own(lint(tree, str(EXECUTABLE)))
    assert is_own(lint(tree, str(EXECUTABLE), PYTHONPATH="")), "an empty variable adds no folder"


def test_isolated_the_module_runs_our_own_code(tree: Path) -> None:
    assert is_own(lint(tree, sys.executable, "-I", "-m", "opschema_cli"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="-P is of Python 3.11")
def test_with_a_safe_path_the_module_runs_our_own_code(tree: Path) -> None:
    assert is_own(lint(tree, sys.executable, "-P", "-m", "opschema_cli"))
    assert is_own(lint(tree, sys.executable, "-m", "opschema_cli", PYTHONSAFEPATH="1"))


def test_the_module_alone_runs_the_trees_package_as_the_docs_say(tree: Path) -> None:
    """Python imports it before any of our code runs; should that change, the docs may promise more."""
    run = lint(tree, sys.executable, "-m", "opschema_cli")
    assert "opschema_cli of the linted tree was imported" in run.stderr
    assert "so a tree that holds a package of that name is run instead" in Path("docs/configuration.md").read_text()


def test_in_a_tree_without_that_package_the_module_runs_our_own_code(tree: Path) -> None:
    for path in (tree / "opschema_cli").iterdir():
        path.unlink()
    (tree / "opschema_cli").rmdir()
    assert is_own(lint(tree, sys.executable, "-m", "opschema_cli"))


SPAWNING = """
import multiprocessing
import sys
from opschema_cli.main import main
from opschema_cli.source.python_workers import Parsers
made = Parsers.__init__
def spawning(self, *given, **named):
    made(self, *given, **named)
    self._context = multiprocessing.get_context("spawn")
Parsers.__init__ = spawning
if __name__ == "__main__":
    sys.argv = ["opschema", *sys.argv[1:]]
    main()
"""


def test_processes_that_are_started_anew_import_nothing_of_the_tree(tree: Path) -> None:
    """As on macOS and Windows, where Python starts with the current folder in front of its module path."""
    script = tree.parent / "spawning.py"
    script.write_text(SPAWNING)
    assert is_own(lint(tree, sys.executable, str(script)))

"""A run with the packs in two processes reports what one process reports."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command import Opschema

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

TILEKIT = Path(__file__).parents[2] / "fixtures/tilekit"
REVERSED = """\
import torch


@torch.library.custom_op("kit::twice", mutates_args=())
def twice(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


@twice.register_fake
def _(n: int, x: torch.Tensor) -> torch.Tensor:  # opschema: ignore[SIG101]
    return torch.empty_like(x)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    others = ("elementwise.yaml", "generative.yaml")
    shutil.copytree(TILEKIT, root, ignore=shutil.ignore_patterns("__pycache__", *others))
    (root / "tilekit/twice.py").write_text(REVERSED, encoding="utf-8")
    return root


def lint(opschema: Opschema, root: Path, *options: str) -> dict[str, Any]:
    done = opschema("lint", "--output-format", "json", *options, cwd=root)
    assert done.err == ""
    found: dict[str, Any] = json.loads(done.out)
    return found


def change(root: Path, text: str) -> None:
    file = root / "tilekit/ops/softmax.py"
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")


ANOTHER_PACK = """

import flydsl.compiler as flyc


@flyc.kernel
def kernel(): ...
"""


def test_a_first_run(opschema: Opschema, tree: Path) -> None:
    """The files are parsed once; then the packs run in two processes."""
    (tree / "tilekit/broken.py").write_text("from tilekit import twice\n\nBROKEN = (\n")
    divided = lint(opschema, tree)
    assert {item["code"][:3] for item in divided["diagnostics"]} >= {"CAR", "REG", "SUP"}
    assert divided == lint(opschema, tree), "which is replayed"
    assert divided == lint(opschema, tree, "--no-cache")
    assert divided == lint(opschema, tree, "--no-cache", "--jobs", "1")


def test_one_pack_alone(opschema: Opschema, tree: Path) -> None:
    """The other process only parses what has changed."""
    (tree / "tilekit/twice.py").unlink()
    before = lint(opschema, tree)
    for text in ("\n# a remark\n", "\n\ndef more(: ...\n"):
        change(tree, text)
        divided = lint(opschema, tree)
        assert divided == lint(opschema, tree, "--no-cache", "--jobs", "1")
        assert (divided == before) is (text == "\n# a remark\n")


@pytest.mark.parametrize("text", [f"\nX = {'-' * 50_000}1\n", f"\n\nX = {'a.' * 20_000}a\n", f"\nX = {'(' * 300}\n"])
def test_a_file_that_may_kill_the_process(opschema: Opschema, tree: Path, text: str) -> None:
    lint(opschema, tree)
    change(tree, text)
    assert lint(opschema, tree) == lint(opschema, tree, "--no-cache", "--jobs", "1")


@pytest.mark.parametrize(
    "text", ["\n# a remark\n", "\n\nBROKEN = (\n", f"\n\n{REVERSED.replace('twice', 'again')}", ANOTHER_PACK]
)
def test_a_changed_file(opschema: Opschema, tree: Path, text: str) -> None:
    before = lint(opschema, tree)
    assert {item["code"][:3] for item in before["diagnostics"]} >= {"CAR", "REG", "SUP"}
    change(tree, text)
    divided = lint(opschema, tree)
    assert divided == lint(opschema, tree), "which is told again"
    assert divided == lint(opschema, tree, "--no-cache", "--jobs", "1")
    assert (divided == before) is (text == "\n# a remark\n")
    assert (divided["summary"]["ops"] > before["summary"]["ops"]) is (
        text not in ("\n# a remark\n", "\n\nBROKEN = (\n")
    )


def test_what_one_process_shares_with_the_other(opschema: Opschema, tree: Path) -> None:
    """The operators that write an input are read by the pack of the other process."""
    manifest = tree / "tilekit/manifest/normalization.yaml"
    lint(opschema, tree)
    manifest.write_text(manifest.read_text(encoding="utf-8").replace(", mutated: true", ""), encoding="utf-8")
    divided = lint(opschema, tree)
    assert [item["message"] for item in divided["diagnostics"] if item["code"] == "SIG304"] == [
        "an operator of the op writes `running_mean`, which the manifest does not mark `mutated: true`"
    ]
    assert divided == lint(opschema, tree, "--no-cache", "--jobs", "1")


def test_a_pack_that_finds_nothing_any_more(opschema: Opschema, tree: Path) -> None:
    lint(opschema, tree)
    (tree / "tilekit/twice.py").write_text("def twice(x): ...\n")
    divided = lint(opschema, tree)
    assert "REG" not in {item["code"][:3] for item in divided["diagnostics"]}
    assert divided == lint(opschema, tree, "--no-cache", "--jobs", "1")


def test_more_files_than_one_process_has_parsed_for_both(opschema: Opschema, tree: Path) -> None:
    lint(opschema, tree)
    for number, file in enumerate(sorted((tree / "tilekit").rglob("*.py"))[:8]):
        file.write_text(f"{file.read_text(encoding='utf-8')}\n# remark {number}\n", encoding="utf-8")
    assert lint(opschema, tree) == lint(opschema, tree, "--no-cache", "--jobs", "1")


def test_what_the_other_process_read_is_an_input_of_the_run(opschema: Opschema, tree: Path) -> None:
    lint(opschema, tree)
    change(tree, "\n# a remark\n")
    lint(opschema, tree)
    (tree / "tilekit/twice.py").write_text(REVERSED.replace("(n: int, x: torch.Tensor)", "(x: torch.Tensor, n: int)"))
    assert "REG" not in {item["code"][:3] for item in lint(opschema, tree)["diagnostics"]}


def test_where_the_other_process_dies_its_packs_run_here(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from opschema_cli.lint import forked_run
    from opschema_cli.main import run

    monkeypatch.chdir(tree)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    arguments = ["lint", "--output-format", "json"]

    def told() -> Any:
        run(arguments)
        return json.loads(capfd.readouterr().out)

    before = told()
    change(tree, "\n# a remark\n")
    asked: list[object] = []

    def die(task: object, pipe: object, memory: object) -> None:
        import os

        os._exit(1)

    join = forked_run.ForkedRun.join
    monkeypatch.setattr(forked_run, "_run_child", die)
    monkeypatch.setattr(
        forked_run.ForkedRun, "join", lambda self, project: (asked.append(self), join(self, project))[1]
    )
    assert told() == before
    assert len(asked) == 1
    arguments.append("--no-cache")
    assert told() == before
    assert len(asked) == 2


def test_where_no_process_can_be_started_all_packs_run_here(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from opschema_cli.lint import forked_run
    from opschema_cli.main import run

    monkeypatch.chdir(tree)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))

    def told(*options: str) -> Any:
        run(["lint", "--output-format", "json", *options])
        return json.loads(capfd.readouterr().out)

    before = told("--jobs", "2")
    asked: list[object] = []

    def refuse(self: object, task: object, kind: object) -> None:
        asked.append(kind)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(forked_run.ForkedRun, "__init__", refuse)
    assert told("--jobs", "2", "--no-cache") == before
    change(tree, "\n# a remark\n")
    assert told("--jobs", "2") == before
    assert len(asked) > 1

"""`opschema diff` in repositories with a history, which may be damaged or hostile."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from opschema_cli.session import Session
from tests.command import Done, Here

OPS = """\
import torch


@torch.library.custom_op("kit::scale", mutates_args=())
def scale(x: torch.Tensor, factor: float{default}) -> torch.Tensor:
    return x * factor
"""
OLD, NEW = OPS.replace("{default}", " = 1.0"), OPS.replace("{default}", "")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path, texts: dict[str, str | None]) -> None:
    for path, text in texts.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "change")


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD")


@pytest.fixture(scope="session")
def first_commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit, which each test copies: git takes 15 ms for each command."""
    folder = tmp_path_factory.mktemp("first") / "kit"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main", "--template=")
    with (folder / ".git/config").open("a") as config:
        config.write("[user]\nname = a\nemail = a@b.c\n[gc]\nauto = 0\n")
    commit(folder, {"kit/ops.py": OLD})
    return folder


@pytest.fixture
def root(first_commit: Path, tmp_path: Path) -> Path:
    return shutil.copytree(first_commit, tmp_path / "kit")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all tests: each has its own root, and the list of the installed packs is read once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def opschema(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """The command in this process alone: to fork it for trees of one file costs more than to read them."""
    monkeypatch.setattr(Session, "forks", False)
    return Here(root, cache, monkeypatch, capsys)


def found(done: Done) -> list[tuple[str, str]]:
    return [(item["name"], item["severity"]) for item in json.loads(done.out)["diagnostics"]]


def test_the_tree_is_compared_with_the_main_branch(
    root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opschema = Here(root, cache, monkeypatch, capsys)  # with the process that reads the old side
    git(root, "switch", "-qc", "topic")
    assert opschema("diff").code == 0
    commit(root, {"kit/ops.py": NEW})
    done = opschema("diff")
    assert done.code == 1
    assert "kit/ops.py:5:28  error DIF208 required" in done.out
    message = "`kit::scale`: `factor` now has no default; it had the default `1.0` (affects callers and saved graphs)"
    assert message in " ".join(done.out.split())
    assert f"<main {git(root, 'rev-parse', 'main')[:10]}>/kit/ops.py:5:28" in done.out
    assert git(root, "status", "--porcelain") == ""
    assert opschema("diff").out.split("(1 op")[0] == done.out.split("(1 op")[0]  # from the cache


def test_what_is_cached_follows_the_tree_and_the_configuration(root: Path, opschema: Here) -> None:
    def kinds() -> list[str]:
        return [code for code, _ in found(opschema("diff", "--output-format", "json", "HEAD"))]

    assert kinds() == kinds() == []
    (root / "kit/ops.py").write_text(NEW)
    assert kinds() == kinds() == ["required"]
    (root / "kit/ops.py").unlink()
    assert kinds() == ["operator-removed"]
    (root / "kit/left.py").write_text('NAME = "kit::scale"\n')  # it may be made there
    assert kinds() == kinds() == []
    (root / "opschema.toml").write_text('[diff]\nprivate = ["kit/"]\n')
    (root / "kit/left.py").unlink()
    assert kinds() == []


def test_two_revisions_a_folder_and_levels(root: Path, opschema: Here, tmp_path: Path) -> None:
    commit(root, {"kit/ops.py": NEW})
    commit(root, {"kit/ops.py": NEW.replace("factor", "by"), "kit/more.py": OLD.replace("scale", "shift")})
    json_of = ("diff", "--output-format", "json")
    assert found(opschema(*json_of, "HEAD~1..HEAD")) == [("argument-renamed", "error")]
    assert found(opschema(*json_of, "HEAD~2..HEAD~1", "--level", "serialised")) == [("required", "error")]
    assert found(opschema(*json_of, "HEAD~1..", "--all"))[0] == ("operator-added", "info")
    git(root, "branch", "topic", "HEAD~1")
    assert found(opschema(*json_of, "HEAD...topic")) == []
    assert found(opschema(*json_of, "topic...HEAD")) == [("argument-renamed", "error")]
    assert "`nowhere` is not a file, folder or commit in" in opschema("diff", "--against", "nowhere").err
    copy = tmp_path / "copy"
    (copy / "kit").mkdir(parents=True)
    (copy / "kit/ops.py").write_text(OLD)
    assert ("required", "error") in found(opschema(*json_of, "--against", str(copy)))


KERNEL = """\
#include <torch/library.h>

at::Tensor roll_cuda(const at::Tensor& x, {types}) {{ return x; }}

TORCH_LIBRARY(kit, m) {{ m.def("roll(Tensor x, SymInt n, Tensor? w=None) -> Tensor"); }}
TORCH_LIBRARY_IMPL(kit, CUDA, m) {{ m.impl("roll", &roll_cuda); }}
"""


def test_the_signature_of_a_kernel_in_cpp(root: Path, opschema: Here) -> None:
    commit(root, {"kit/roll.cu": KERNEL.format(types="int64_t n, const c10::optional<at::Tensor>& w")})
    commit(root, {"kit/roll.cu": KERNEL.format(types="int64_t by, std::optional<at::Tensor> w")})
    commit(root, {"kit/roll.cu": KERNEL.format(types="c10::SymInt n, const std::optional<at::Tensor>& w")})
    one, two = (
        opschema("diff", revisions, "--output-format", "concise").out for revisions in ("HEAD~2..HEAD~1", "HEAD~1..")
    )
    assert "DIF404" not in one  # torch takes both for the same schema
    assert "kit/roll.cu:3:12: warning DIF404 [kernel-signature] `kit::roll`: its kernel for `CUDA` now takes" in two
    assert "(affects backends and kernels)" in two


def test_audiences_are_listed_so_that_each_can_be_told(root: Path, opschema: Here) -> None:
    operator = '@torch.library.custom_op("kit::step", mutates_args=())\ndef step(x: torch.Tensor, n: {}) -> torch.Tensor: ...\n'
    commit(root, {"kit/step.py": f"import torch\n\n{operator.format('float')}"})
    commit(root, {"kit/step.py": f"import torch\n\n{operator.format('int')}"})
    done = opschema("diff", "HEAD~1", "--output-format", "concise")
    assert "(affects callers, backends and kernels, and saved graphs)" in done.out


def test_accepted_changes_have_a_reason_and_an_end(root: Path, opschema: Here) -> None:
    commit(root, {"kit/ops.py": NEW})
    entry = '{operator = "%s", reason = "unused", expires = "%s"}'
    allowed = ", ".join(entry % item for item in (("kit::s*", "2999-01-01"), ("kit::gone", "2999-01-01")))
    (root / "opschema.toml").write_text(f"[diff]\nallow = [{allowed}]\n")
    done = opschema("diff", "HEAD~1")
    assert (done.code, "1 suppressed" in done.out) == (0, True)
    assert "DIF901 unused-allowance\n  `kit::gone` accepts no change" in done.out
    (root / "opschema.toml").write_text(f"[diff]\nallow = [{entry % ('kit::scale', '2020-01-01')}]\n")
    done = opschema("diff", "HEAD~1")
    assert (done.code, "DIF902 expired-allowance" in done.out) == (1, True)


def test_moves_and_formatting_change_nothing(root: Path, opschema: Here) -> None:
    commit(root, {"kit/ops.py": None, "kit/core/scaling.py": OLD.replace("(x: ", "(\n    x: ").replace("1.0", "1.00")})
    assert (opschema("diff", "HEAD~1").out[:9], opschema("diff", "HEAD~1", "--all").code) == ("All clean", 0)


def test_a_damaged_or_hostile_history_gets_a_clear_answer(root: Path, opschema: Here, tmp_path: Path) -> None:
    (root / "kit/up.py").symlink_to("/etc/passwd")
    (root / "kit/loop.py").symlink_to("loop.py")
    (root / "kit/again.py").symlink_to("ops.py")
    commit(root, {})
    first = head(root)
    commit(root, {"kit/ops.py": OLD + "def ("})
    broken = head(root)
    commit(root, {"kit/ops.py": OLD})
    assert (opschema("diff", first).code, opschema("diff", first).out[:9]) == (0, "All clean")
    done = opschema("diff", broken)
    assert (done.code, f"<{broken}>/kit/ops.py:7:" in done.out, "OPS102" in done.out) == (2, True, True)
    assert "`nowhere` is not a commit" in opschema("diff", "nowhere").err
    assert "`--upload-pack=x` is not a file, folder or commit" in opschema("diff", "--against=--upload-pack=x").err
    commit(root, {"kit/ops.py": NEW})
    third = head(root)
    blob = git(root, "rev-parse", f"{third}:kit/ops.py")
    file = root / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o600)
    file.write_bytes(b"damaged")
    git(root, "config", "core.fsmonitor", "touch fsmonitor-ran")
    done = opschema("diff", f"{first}..{third}")
    assert (done.code, "its object is missing or damaged" in " ".join(done.out.split())) == (2, True)
    assert not (root / "fsmonitor-ran").exists()


def test_what_the_action_comments_is_written_whatever_the_exit_code(root: Path, opschema: Here) -> None:
    commit(root, {"kit/ops.py": OLD + "def ("})
    commit(root, {"kit/ops.py": NEW})
    for base, code, section in (("HEAD~1", 2, "## Files that could not be read"), ("HEAD~2", 1, "## Breaking changes")):
        git(root, "update-ref", "refs/remotes/origin/main", base)
        done = opschema("diff", "origin/main", "--output-format", "markdown")
        assert (done.code, done.out.startswith("# Changes of operators since"), section in done.out) == (
            code,
            True,
            True,
        )


def test_operators_of_a_file_that_the_old_side_cannot_read_are_not_added(root: Path, opschema: Here) -> None:
    commit(root, {"kit/ops.py": OLD + "def f(:\n"})
    commit(root, {"kit/ops.py": OLD})
    done = opschema("diff", "HEAD~1", "--all", "--show-unresolved", "--output-format", "concise")
    assert (done.code, " added" in done.out) == (2, False)
    assert "`kit::scale` is not found on the old side, but kit/ops.py cannot be read there" in done.out


def test_histories_that_are_not_all_here(
    root: Path, opschema: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root, {"kit/big.py": OLD + "#" * (17 << 20), "opschema.toml": 'exclude = ["nothing"]\n'})
    commit(root, {"kit/big.py": None})
    done = opschema("diff", "HEAD~1")
    assert (done.code, "opschema reads up to 16,777,216" in " ".join(done.out.split())) == (2, True)
    git(root, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--depth=1", root.as_uri(), str(tmp_path / "shallow"))
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", root.as_uri(), str(tmp_path / "partial"))
    monkeypatch.chdir(tmp_path / "shallow")
    assert "this clone is shallow" in opschema("diff", "HEAD~1").err
    monkeypatch.chdir(tmp_path / "partial")
    assert "since it is a partial clone" in opschema("diff", "HEAD").err
    monkeypatch.chdir(tmp_path)
    assert "is in no git repository" in opschema("diff").err


def test_a_lock_file_is_compared_with(root: Path, opschema: Here, tmp_path: Path) -> None:
    assert opschema("diff", "--lock").out == "wrote opschema-contract.json: 1 operator\n"
    lock = json.loads((root / "opschema-contract.json").read_text())["operators"][0]
    assert (lock["name"], lock["schema"]) == ("kit::scale", "(Tensor x, float factor=1.0) -> Tensor")
    assert opschema("diff", "--against", "opschema-contract.json").out[:9] == "All clean"
    (root / "kit/ops.py").write_text(NEW)
    done = opschema("diff", "--against", "opschema-contract.json", "--output-format", "concise")
    assert done.code == 1
    assert "kit/ops.py:5:28: error DIF208" in done.out
    assert "opschema-contract.json:1:1: warning DIF903" in done.out
    (root / "opschema-contract.json").write_text('{"version": 1, "operators": 3}')
    assert "not a lock file" in opschema("diff", "--against", "opschema-contract.json").err


def test_the_changelog_and_the_other_formats(root: Path, opschema: Here) -> None:
    commit(root, {"kit/ops.py": NEW, "kit/more.py": OLD.replace("scale", "shift")})
    done = opschema("diff", "HEAD~1", "--output-format", "markdown")
    assert done.out.splitlines()[2:] == [
        "1 breaking change, 1 other change; 2 operators compared.",
        "",
        "## Breaking changes",
        "",
        "- `kit::scale`: `factor` now has no default; it had the default `1.0` (affects callers and saved graphs) "
        "(`kit/ops.py:5`)",
        "",
        "## Compatible changes",
        "",
        "- `kit::shift` was added (`kit/more.py:5`)",
    ]
    commit(root, {"kit/ops.py": None})
    for name in ("sarif", "github", "gitlab", "junit"):
        done = opschema("diff", "HEAD~1", "--output-format", name)
        assert (done.code, "DIF101" in done.out, "kit/ops.py" in done.out) == (1, True, True)
    annotation = opschema("diff", "HEAD~1", "--output-format", "github").out
    assert annotation.startswith("::error file=kit/ops.py,line=1,")  # a file of the pull request


MAGI = """\
from dataclasses import dataclass
from magi_compiler.api import magi_register_custom_op
from torch import Tensor


@dataclass(frozen=True)
class Config:
    eps: float = 1e-5
    mode: int = 0


@magi_register_custom_op(name="kit::norm", mutates_args=(), infer_output_meta_fn=["x"])
def norm(x: Tensor, config: Config) -> Tensor:
    return x
"""


def test_the_fields_of_a_dataclass_are_arguments_of_the_graph(root: Path, opschema: Here) -> None:
    settings = '[magi]\nmagi = "dataclasses"\n'
    commit(root, {"kit/norm.py": MAGI, "opschema.toml": settings})
    (root / "kit/norm.py").write_text(MAGI.replace("eps", "epsilon").replace("mode: int = 0", "mode: int"))
    done = opschema("diff", "HEAD", "--output-format", "concise")
    assert [line.partition(": error ")[2] for line in done.out.splitlines()[:-1]] == [
        "DIF203 [argument-renamed] `kit::norm`: the lowered schema: the argument `config__eps` is now called "
        "`config__epsilon` (affects callers and saved graphs) (ops: kit::norm)",
        "DIF208 [required] `kit::norm`: the lowered schema: `config__mode` is now required; it had the default `0` "
        "(affects callers and saved graphs) (ops: kit::norm)",
    ]

"""``opschema migrate --apply --verify``: written only if the ops still compute the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.command import TILEKIT, Opschema
from tests.test_git import git

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="tilekit's kernels need a C++ compiler")

MIGRATED = TILEKIT.with_name("tilekit_migrated")
RELU = Path("tilekit/kernels/cuda/relu.cu")
CLIP_RELU = '''\
from opschema_cli.lint.diagnostic import Place
from opschema_cli.lint.pack import Loaded, Pack
from opschema_cli.migrate.migration import Site, migration
from opschema_cli.source.text import Edit, Span

PATH, OLD, NEW = "tilekit/kernels/cuda/relu.cu", "v < 0.0f", "v < 0.5f"


def find(draft, options):
    source = draft.project.source(PATH)
    if OLD in source.text:
        yield Site(Place(PATH, Span(source.text.index(OLD), source.text.index(OLD) + len(OLD))), "clip", ("ReluFwdOp",))


@migration("clip-relu", find=find)
def clip_relu(draft, sites, options):
    """Change what relu computes."""
    for site in sites:
        draft.edit(PATH, [Edit(site.place.span, NEW)])
    yield from ()


PACK = Pack("clip", "a pack", lambda *_: True, lambda *_: Loaded(), (), migrations=lambda: (clip_relu.__migration__,))
'''
"""A pack whose one migration changes what an op computes."""


@pytest.fixture
def tilekit(tmp_path: Path) -> Path:
    """The fixture in a git repository, with the pack that does harm."""
    root = tmp_path / "tilekit"
    shutil.copytree(TILEKIT, root, ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache"))
    (root / "clip.py").write_text(CLIP_RELU)
    config = root / "opschema.toml"
    config.write_text('plugins = ["clip.py"]\n' + config.read_text())
    git(root, "init", "-q", ".")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_what_computes_the_same_is_written(tilekit: Path, tmp_path: Path) -> None:
    done = Opschema(tilekit, tmp_path / "cache")("migrate", "drop-carrier", "--apply", "--verify", timeout=300)
    assert done.code == 0, done.err
    assert "Migrated 2 sites" in done.out
    assert "WindowMaskFwdOp" in done.err
    assert "RotaryTableFwdOp" in done.err
    assert "Passed: " in done.err
    changed = [path.relative_to(MIGRATED) for path in sorted(MIGRATED.rglob("*")) if path.is_file()]
    assert all((tilekit / path).read_bytes() == (MIGRATED / path).read_bytes() for path in changed)


def test_what_computes_something_else_is_not_written(tilekit: Path, tmp_path: Path) -> None:
    done = Opschema(tilekit, tmp_path / "cache")("migrate", "clip-relu", "--apply", "--verify", timeout=300)
    assert done.code == 1, done.err
    assert "regression  ReluFwdOp[" in done.err
    assert "nothing was written" in done.err
    assert (tilekit / RELU).read_bytes() == (TILEKIT / RELU).read_bytes()


def test_verify_goes_with_apply(tilekit: Path, tmp_path: Path) -> None:
    done = Opschema(tilekit, tmp_path / "cache")("migrate", "drop-carrier", "--verify")
    assert (done.code, "--verify goes with --apply" in done.err) == (2, True)

"""`opschema show` of kernels and launchers: parameters, their kinds, and what each call passes."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.lint.pack import Shown
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.examples import HEAD, example_files
from opschema_rules.flydsl.pack import PACK

KIT = """\
@flyc.kernel(name="scale")
def scale(A: fx.Tensor, n: fx.Int32, tile: fx.Constexpr[int] = 4):
    A[fx.thread_idx.x] = n


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    scale(A, n).launch(grid=(n // 4, 1, 1), block=64, stream=stream)
    scale(A, fx.Int32(2), 8)


def run(*tensors):
    launch(*tensors)
"""


def shown(tmp_path: Path, name: str, **others: str) -> object:
    files = {**example_files([("python", KIT)]), **{f"{path}.py": HEAD + text for path, text in others.items()}}
    return PACK.show(Project(Workspace(tmp_path, files)), FlydslOptions("0.4.2"), name)


def test_a_kernel(tmp_path: Path) -> None:
    found = shown(tmp_path, "scale")
    assert isinstance(found, Shown)
    assert found.title == "kernel `scale`"
    assert list(found.places) == [
        ("defined", "kit/kernels.py:8"),
        ("decorator", 'kit/kernels.py:7 flyc.kernel(name="scale")'),
        ("contract", "current (the configuration)"),
        ("called", "kit/kernels.py:14 in launch"),
        ("launched", "kit/kernels.py:14 grid=(n // 4, 1, 1), block=64, stream=stream"),
        ("called", "kit/kernels.py:15 in launch"),
        ("launched", "unresolved"),
    ]
    assert [(row.slot, row.declared, row.implemented, row.note) for row in found.rows] == [
        ("A", "A: fx.Tensor   tensor", "A   14:11\nA   15:11", ""),
        ("n", "n: fx.Int32   number at run time", "n   14:14\nfx.Int32(2)   15:14", ""),
        ("tile", "tile: fx.Constexpr[int] = 4   constant at compile time", "default\n8   15:27", "not read"),
    ]


def test_a_launcher(tmp_path: Path) -> None:
    found = shown(tmp_path, "launch")
    assert isinstance(found, Shown)
    assert found.title == "launcher `launch`"
    assert list(found.places)[2:] == [
        ("called", "kit/kernels.py:19"),
        ("launches", "kit/kernels.py:14 scale"),
        ("launches", "kit/kernels.py:15 scale"),
    ]
    assert [row.implemented for row in found.rows] == ["", "", ""]


def test_names_that_several_have(tmp_path: Path) -> None:
    others = {"kit__more".replace("__", "/"): KIT}
    assert shown(tmp_path, "scale", **others) == ["kit/kernels.py:scale", "kit/more.py:scale"]
    assert isinstance(shown(tmp_path, "kit/more.py:scale", **others), Shown)


def test_close_names(tmp_path: Path) -> None:
    assert shown(tmp_path, "lanch") == ["launch"]
    assert shown(tmp_path, "other") == []


def test_what_the_settings_tell(tmp_path: Path) -> None:
    project = Project(Workspace(tmp_path, example_files([("python", KIT)])))
    (found,) = PACK.describe(project, FlydslOptions("0.4.2"))
    assert [(item.name, item.value, item.note) for item in found.facts] == [
        ("tensor arguments", "current", "the configuration"),
        ("releases", "0.4.2", "the configuration"),
        ("kernels", "1", ""),
        ("under jit", "1", ""),
    ]

"""`opschema show` of kernels and launchers: parameters, their kinds, and what each call passes."""

from __future__ import annotations

from pathlib import Path

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.flydsl.detection import FlydslOptions
from opschema_rules.flydsl.examples import HEAD, example_files
from opschema_rules.flydsl.pack import PACK
from tests.tables import show, shown, table_of

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


def files(**others: str) -> dict[str, str]:
    return {**example_files([("python", KIT)]), **{f"{path}.py": HEAD + text for path, text in others.items()}}


OPTIONS = FlydslOptions("0.4.2")


def test_a_kernel() -> None:
    found = shown(PACK, files(), "scale", OPTIONS)
    assert found.title == "kernel `scale`"
    assert found.parts == [
        ("defined", "kit/kernels.py:8"),
        ("decorator", 'kit/kernels.py:7 flyc.kernel(name="scale")'),
        ("contract", "current (the configuration)"),
        ("called", "kit/kernels.py:14 in launch"),
        ("launched", "kit/kernels.py:14 grid=(n // 4, 1, 1), block=64, stream=stream"),
        ("called", "kit/kernels.py:15 in launch"),
        ("launched", "kit/kernels.py:15 unresolved: no launch of what it returns can be followed"),
    ]
    assert found.rows == [
        ("A", "A: fx.Tensor   tensor", "A      14:11", ""),
        ("", "", "A      15:11", ""),
        ("n", "n: fx.Int32   number at run time", "n      14:14", ""),
        ("", "", "fx.Int32(2)  15:14", ""),
        ("tile", "tile: fx.Constexpr[int] = 4   constant at compile time", "default", "not read"),
        ("", "", "8      15:27", ""),
    ]


def test_a_launcher() -> None:
    found = shown(PACK, files(), "launch", OPTIONS)
    assert found.title == "launcher `launch`"
    assert found.parts[1:] == [
        ("launches", "kit/kernels.py:14 scale"),
        ("launches", "kit/kernels.py:15 scale"),
        ("contract", "current (the configuration)"),
        ("called", "kit/kernels.py:19"),
    ]
    assert [row[2] for row in found.rows] == ["", "", ""]


def test_names_that_several_have() -> None:
    both = files(**{"kit__more".replace("__", "/"): KIT})
    assert show(PACK, both, "scale", OPTIONS) == ["kit/kernels.py:scale", "kit/more.py:scale"]
    assert shown(PACK, both, "kit/more.py:scale", OPTIONS).title == "kernel `scale`"


def test_close_names() -> None:
    assert show(PACK, files(), "lanch", OPTIONS) == ["launch"]
    assert show(PACK, files(), "other", OPTIONS) == []


def test_what_the_settings_tell(tmp_path: Path) -> None:
    project = Project(Workspace(tmp_path, example_files([("python", KIT)])))
    (found,) = PACK.describe(project, FlydslOptions("0.4.2"))
    assert [(item.name, item.value, item.note) for item in found.facts] == [
        ("tensor arguments", "current", "the configuration"),
        ("releases", "0.4.2", "the configuration"),
        ("kernels", "1", ""),
        ("under jit", "1", ""),
    ]


def test_aliases_are_in_the_same_order_in_each_run() -> None:
    text = "".join(f"\n\ndef b{i}():\n    @flyc.kernel\n    def k{i}(A: fx.Tensor):\n        pass\n" for i in range(6))
    table = table_of(PACK, files(one=text, two=text), OPTIONS)
    found = [item.aliases for item in table if item.name.startswith("one.py:")]
    assert found == [(f"b{i}.k{i}", f"k{i}") for i in range(6)]

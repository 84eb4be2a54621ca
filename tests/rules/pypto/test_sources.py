"""PTO115: sources that are not there, and those of which that is not known."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.pypto.pack import PACK

CASE = """\
from simpler.task_interface import ArgDirection as D
from simpler_setup import SceneTestCase, scene_test
{before}

{decorator}
class TestAdd(SceneTestCase):
    CALLABLE = {{
        "orchestration": {{"source": "main.cpp", "function_name": "entry", "signature": [D.IN]}},
        "incores": [{{"func_id": 0, "source": {source}, "core_type": "aiv", "signature": [D.IN]}}],
    }}
{after}
"""
SCENE = '@scene_test(level=2, runtime="host_build_graph")'
MODULE = """\
import os
from pathlib import Path
from simpler.task_interface import ArgDirection as D
ROOT = Path(__file__).parent
KERNELS = [{{"func_id": 0, "source": {source}, "core_type": "aiv", "signature": [D.IN]}}]
"""


def lint(text: str, path: str = "st/add/test_add.py", **others: str) -> Linted:
    files = {"st/add/main.cpp": "\n", "st/add/kernels/add.cpp": "\n", "st/mul/mul.cpp": "\n", path: text}
    return lint_files(
        [PACK], {**files, **{name.replace("_DOT_", "."): text for name, text in others.items()}}, ["PTO115"]
    )


def case(source: str, decorator: str = SCENE, before: str = "", after: str = "", **others: str) -> Linted:
    return lint(CASE.format(source=source, decorator=decorator, before=before, after=after), **others)


def module(source: str) -> Linted:
    return lint(MODULE.format(source=source), "st/add/kernel_config.py")


@pytest.mark.parametrize(
    ("source", "missing", "near"),
    [
        ('"kernels/added.cpp"', "st/add/kernels/added.cpp", "st/add/kernels/add.cpp"),
        ('"../mull/mul.cpp"', "st/mull/mul.cpp", "st/mul/mul.cpp"),
        ('"kernels/other.cpp"', "st/add/kernels/other.cpp", ""),
        ('f"{BASE}/other.cpp"', "st/add/kernels/other.cpp", ""),
    ],
)
def test_a_source_that_is_not_there(source: str, missing: str, near: str) -> None:
    linted = case(source, before='BASE = "kernels"')
    hint = f"; did you mean `{near}`?" if near else ""
    assert [item.message for item in linted.diagnostics] == [f"there is no `{missing}`, the source of kernel 0{hint}"]
    assert [linted.text(item.place) for item in linted.diagnostics] == [source]


@pytest.mark.parametrize(
    "source",
    [
        '"kernels/add.cpp"',
        '"./kernels/../kernels/add.cpp"',
        '"/opt/kernels/other.cpp"',
        '"../../../other.cpp"',
        'find("other.cpp")',
        'f"{BASE}/other.cpp"',
        '"kernels/" + NAME',
        'os.environ["KERNEL"]',
        "None",
        "3",
        '["other.cpp"]',
    ],
)
def test_a_source_that_is_there_or_not_known(source: str) -> None:
    assert case(source).codes() == []


def test_a_class_that_is_not_run_by_itself() -> None:
    assert case('"kernels/other.cpp"', decorator="@dataclass").codes() == []


def test_a_file_that_writes_files() -> None:
    assert case('"kernels/other.cpp"', after="\n    def setup(self, path): path.write_text(KERNEL)").codes() == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("_DOT_gitignore", "other.*\n"),
        ("st/_DOT_gitignore", "kernels/\n!add.cpp\n"),
        ("_DOT_gitmodules", '[submodule "a"]\n\tpath = st/add/kernels\n'),
    ],
)
def test_a_source_that_something_brings(path: str, text: str) -> None:
    assert case('"kernels/other.cpp"', **{path: text}).codes() == []
    assert case('"kernel/another.cpp"', **{path: text}).codes() == ["PTO115"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('str(ROOT / "kernels" / "other.cpp")', ["PTO115"]),
        ('str(ROOT / "kernels" / "add.cpp")', []),
        ("str(ROOT / NAME)", []),
        ('"kernels/other.cpp"', []),
        ('"./kernels/other.cpp"', []),
        ('str(Path("kernels") / "other.cpp")', []),
        ('os.path.join("kernels", "other.cpp")', []),
    ],
)
def test_a_module_knows_paths_from_its_own_folder_alone(source: str, expected: list[str]) -> None:
    assert module(source).codes() == expected


def test_each_part_of_a_program_is_told() -> None:
    linted = lint(
        CASE.format(source='"kernels/other.cpp"', decorator=SCENE, before="", after="").replace(
            '"main.cpp"', '"kernels/other.cpp"'
        )
    )
    assert [item.message.partition(", ")[2] for item in linted.diagnostics] == [
        "the source of the orchestration",
        "the source of kernel 0",
    ]
    assert [len(item.related) for item in linted.diagnostics] == [1, 1]

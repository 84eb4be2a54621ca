"""The targets of CMake files are cached until a CMake file changes, or a source file comes or goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib import cpp_build
from opschema_rules.torchlib.cpp_build import Build

LISTS = """\
if(GPU)
  set(MORE b.cpp)
endif()
file(GLOB REST "rest/*.cpp")
add_library(kit a.cpp ${MORE} ${REST})
target_compile_definitions(kit PRIVATE LIMIT=four)
include(more.cmake)
"""
PROJECT = '[project]\nname = "kit"\n\n[tool.scikit-build.cmake.define]\nEXTENSION = "_C"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "CMakeLists.txt": LISTS,
        "more.cmake": "add_library(${EXTENSION} c.cpp)\n",
        "pyproject.toml": PROJECT,
        "tool.py": "x = 1\n",
        **dict.fromkeys(("a.cpp", "b.cpp", "c.cpp", "rest/d.cpp"), "int x;\n"),
    }
    for path, text in files.items():
        (tmp_path / "root" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / path).write_text(text)
    return tmp_path / "root"


def targets(root: Path) -> dict[str, list[str]]:
    """The targets of each source file with a target, as a new run finds them."""
    project = Project(Workspace(root), Cache(root.parent / "cache.sqlite"), stamp="one")
    build = Build(project, {})
    sources = [path for path in project.workspace.files if path.endswith(".cpp")]
    together = [path for path in sources if path != "a.cpp" and build.target_of_both("a.cpp", path)]
    found = {path: sorted(build.targets(path)) for path in sources if build.targets(path)}
    project.save_readings()
    return {**found, "with a.cpp": together, "macros of a.cpp": sorted(build.macros("a.cpp"))}


FOUND = {
    "a.cpp": ["kit"],
    "b.cpp": ["kit"],
    "c.cpp": ["_C"],
    "rest/d.cpp": ["kit"],
    "with a.cpp": ["b.cpp", "rest/d.cpp"],
    "macros of a.cpp": ["LIMIT"],
}


def test_they_are_what_the_files_say(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert targets(root) == FOUND
    (root / "tool.py").write_text("x = 2\n")
    (root / "a.cpp").write_text("int y;\n")
    monkeypatch.setattr(cpp_build, "CMakeTree", None)
    assert targets(root) == FOUND


@pytest.mark.parametrize(
    ("path", "text", "changed"),
    [
        ("CMakeLists.txt", "add_library(other a.cpp)\ninclude(more.cmake)\n", {"a.cpp": ["other"]}),
        ("more.cmake", "add_library(more c.cpp)\n", {"c.cpp": ["more"]}),
        ("more.cmake", None, {"c.cpp": None}),
        ("pyproject.toml", PROJECT.replace("_C", "_D"), {"c.cpp": ["_D"]}),
        ("rest/e.cpp", "int e;\n", {"rest/e.cpp": ["kit"]}),
        ("rest/d.cpp", None, {"rest/d.cpp": None}),
        ("new/CMakeLists.txt", "add_library(new ../c.cpp)\n", {"c.cpp": ["_C", "new"]}),
    ],
)
def test_a_change_is_seen(root: Path, path: str, text: str | None, changed: dict[str, list[str] | None]) -> None:
    assert targets(root) == FOUND
    if text is None:
        (root / path).unlink()
    else:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    found = targets(root)
    assert {name: found.get(name) for name in changed} == changed

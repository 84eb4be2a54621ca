"""Trees that are judged by a release of torch that the options name, and the releases' own schemas."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.requirements import Version, dotted
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules import TORCH_RELEASES
from opschema_rules.aten.detection import AtenOptions
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, NativeFile, Reference
from opschema_rules.aten.native_table import native_text
from opschema_rules.aten.torchgen_table import known_releases
from opschema_rules.torchlib import api_table, type_table
from opschema_rules.torchlib.pack import PACK as TORCHLIB
from tests.command import Here
from tests.rules.aten.test_vocabulary import MODEL
from tests.schema.test_schema_compatibility import differences_from_torch

BACKEND = "backend: PrivateUse1\ncpp_namespace: at::tile\nsupported:\n  - add.Tensor\n  - cholesky\n"
NATIVE = "- func: add.Tensor(Tensor self, Tensor other) -> Tensor\n- func: cholesky(Tensor self) -> Tensor\n"


def subjects(torch: str, files: dict[str, str]) -> list[object]:
    return load(Project(Workspace(Path("/nowhere"), files)), AtenOptions(torch=torch)).subjects


def reference(torch: str, files: dict[str, str]) -> Reference:
    found = next(item.reference for item in subjects(torch, files) if isinstance(item, BackendFile))
    assert found is not None
    return found


def test_every_release_has_its_schemas_and_its_tables() -> None:
    for known in (known_releases, type_table.known_releases, api_table.known_releases):
        assert tuple(map(dotted, known())) == TORCH_RELEASES
    assert all("- func: add.Tensor(" in native_text(version) for version in known_releases())


def test_the_release_counts_before_what_the_tree_holds_and_requires() -> None:
    files = {
        "tile.yaml": BACKEND,
        "native_functions.yaml": NATIVE,
        "torchgen/model.py": MODEL,
        "requirements.txt": "torch==2.6\n",
    }
    found = reference("2.15", files)
    assert (found.origin, found.version, found.certain) == ("torch 2.15", "2.15", True)
    assert found.torchgen.origin == "torch 2.15"
    natives = [item for item in subjects("2.15", files) if isinstance(item, NativeFile)]
    assert [item.torchgen.origin for item in natives] == ["torch 2.15"]


@pytest.mark.parametrize(("torch", "known"), [("2.6", True), ("2.15", False)])
def test_the_operators_are_those_of_the_release(torch: str, known: bool) -> None:
    assert ("cholesky" in reference(torch, {"tile.yaml": BACKEND}).catalogue.by_name) is known


@pytest.mark.parametrize(
    ("name", "required", "expected"),
    [
        ("addd.Tensor", "torch==99.0.0", ["REG504"]),
        ("addd.Tensor", "torch>=2.3.0", ["REG504"]),
        ("sigmiod", "torch==2.3.0", ["REG504"]),  # a slip, whichever torch it is for
        ("max_unpool2d_backward", "torch==1.10.0", []),  # that torch had it
        ("max_unpool2d_backward", "torch>=1.10.0", ["REG504"]),
    ],
)
def test_kernels_in_cpp_for_an_unknown_release_are_judged_by_the_nearest_unless_all_are_younger(
    name: str, required: str, expected: list[str]
) -> None:
    kernel = f'#include <torch/library.h>\nTORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{ m.impl("{name}", &f); }}\n'
    files = {"k.cpp": kernel, "requirements.txt": f"{required}\n"}
    assert lint_files([TORCHLIB], files, ["REG504"]).codes() == expected


def test_an_unknown_release_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(
        OpschemaError, match=r"torch 3\.1 is not a release that opschema knows; it knows 2\.4, .*, 2\.15"
    ):
        load(Project(Workspace(Path("/nowhere"), {})), AtenOptions(torch="3.1"))


def test_the_command_line_names_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "tile.yaml").write_text(BACKEND)
    here = Here(tree, tmp_path / "cache", monkeypatch, capsys)
    old, new = here("lint", "--torch", "2.6"), here("lint", "--torch", "v2.15.0")
    assert (old.code, new.code) == (0, 1)
    assert "`cholesky` is not an operator of torch 2.15" in new.out
    assert here("lint", "--torch", "2.15").out.partition("read in")[0] == new.out.partition("read in")[0]  # stored
    unknown = here("lint", "--torch", "2.99")
    assert unknown.code == 2
    assert "`2.99` is not a release of torch that opschema knows; known releases: 2.4, 2.5, " in unknown.err


def entries(version: Version) -> dict[str, str]:
    """The schemas of a release by their names."""
    return {name: name + rest for name, rest in re.findall(r"(?m)^- func: ([\w.]+)(\(.*)$", native_text(version))}


def test_what_changes_from_release_to_release_is_judged_as_torch_judges_it() -> None:
    """Each operator that two releases in a row have, if its schema is not the same text."""
    releases = [entries(version) for version in known_releases()]
    changed = [
        (f"aten::{old[name]}", f"aten::{new[name]}")
        for old, new in pairwise(releases)
        for name in old.keys() & new.keys()
        if old[name] != new[name]
    ]
    found, judged = differences_from_torch(changed)
    assert found == []
    assert judged > 30

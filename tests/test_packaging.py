"""The built package: its name, its dependencies, and a description that a package index can show."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.requirements import Requirement

from opschema_cli import __version__
from opschema_cli.errors import DISTRIBUTION

ROOT = Path(__file__).parent.parent
BUILD = "import sys, hatchling.build as build; build.build_sdist(sys.argv[1]); build.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the source distribution and the wheel."""
    pytest.importorskip("hatchling", reason="the extra `test` is not installed")
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(built / f"opschema_cli-{__version__}-py3-none-any.whl")


@pytest.fixture(scope="module", params=["sdist", "wheel"])
def metadata(request: pytest.FixtureRequest, built: Path, wheel: zipfile.ZipFile) -> Message:
    """The metadata that a package index reads."""
    stem = f"opschema_cli-{__version__}"
    if request.param == "wheel":
        return BytesParser().parsebytes(wheel.read(f"{stem}.dist-info/METADATA"))
    with tarfile.open(built / f"{stem}.tar.gz") as archive:
        file = archive.extractfile(f"{stem}/PKG-INFO")
        assert file is not None
        return BytesParser().parsebytes(file.read())


def links(markdown: str) -> list[str]:
    """The targets of all links and images."""
    inline = [
        child for token in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown) for child in token.children or ()
    ]
    found = [token.attrGet("href") or token.attrGet("src") for token in inline if token.type in ("link_open", "image")]
    return [str(target) for target in found]


def test_the_distribution_is_called_opschema_cli(metadata: Message) -> None:
    assert metadata["Name"] == DISTRIBUTION == "opschema-cli"
    assert metadata["Version"] == __version__


def test_no_link_of_the_description_is_relative(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    targets = links(str(metadata.get_payload()))
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith("https://")] == []


def test_a_relative_link_would_be_found() -> None:
    assert links("| [a](docs/a.md) |\n\n![b](b.png) [c](https://c.example)") == [
        "docs/a.md",
        "b.png",
        "https://c.example",
    ]


def test_it_names_its_pages(metadata: Message) -> None:
    urls = dict(str(url).split(", ", 1) for url in metadata.get_all("Project-URL", []))
    assert {"Homepage", "Documentation", "Issues"} <= urls.keys()
    assert all(url.startswith("https://github.com/opschema/opschema") for url in urls.values())


def test_reading_cpp_needs_no_extra(metadata: Message) -> None:
    needs = [Requirement(str(line)) for line in metadata.get_all("Requires-Dist", [])]
    assert {"tree-sitter", "tree-sitter-cpp"} <= {need.name for need in needs if need.marker is None}
    assert "cpp" not in metadata.get_all("Provides-Extra", [])


def test_no_extra_asks_for_the_package_of_another_project(metadata: Message) -> None:
    needs = [Requirement(str(line)) for line in metadata.get_all("Requires-Dist", [])]
    assert "opschema" not in {need.name for need in needs}


def test_the_wheel_holds_command_packs_and_their_data(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    points = wheel.read(f"opschema_cli-{__version__}.dist-info/entry_points.txt").decode()
    assert "opschema = opschema_cli.main:main" in points
    data = [path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*.json")]
    assert len(data) > 6
    assert [name for name in data if name not in names] == []

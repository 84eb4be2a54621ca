"""Collects what the page downloads: Pyodide from the npm registry, wheels from PyPI, opschema from this checkout.

Versions are pinned with their hashes. Nothing of it is committed, and the page loads nothing from another host.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from opschema_cli import __version__
from website.playground.examples import examples

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PYODIDE = "314.0.7"
"""The release of Pyodide; the tags below are those of its Python and of its platform."""
PYODIDE_SHA512 = "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
PYTHON, ABI, PLATFORM = "3.14", "cp314", "pyemscripten_2026_0_wasm32"

FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""The files of Pyodide's npm package that a page loads."""

_OLDEST = (1980, 1, 1, 0, 0, 0)  # of a file in an archive, so that equal contents make equal archives


def write_bundle(folder: Path) -> None:
    """Write what the page downloads to a folder.

    Raises:
        SystemExit: npm or pip fails, or a file is not the pinned one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with TemporaryDirectory() as scratch:
        _write_pyodide(folder, Path(scratch))
        wheels = Path(scratch, "wheels")
        _run(
            *(
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "--only-binary=:all:",
            ),
            *("--python-version", PYTHON, "--implementation", "cp", "--abi", ABI, "--platform", PLATFORM),
            *("-r", str(HERE / "requirements.txt"), "--dest", str(wheels)),
        )
        _write_packages(folder / "packages.zip", wheels)
    shutil.copy(HERE / "worker.mjs", folder)
    (folder / "examples.json").write_bytes(msgspec.json.encode(examples()))


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is needed to fetch what the page in the browser loads") from None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")


def _write_pyodide(folder: Path, scratch: Path) -> None:
    _run("npm", "pack", "--silent", "--pack-destination", str(scratch), f"pyodide@{PYODIDE}")
    content = (scratch / f"pyodide-{PYODIDE}.tgz").read_bytes()
    if base64.b64encode(hashlib.sha512(content).digest()).decode() != PYODIDE_SHA512:
        raise SystemExit(f"pyodide-{PYODIDE}.tgz is not the file that is pinned")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for name in FILES:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())


def _write_packages(target: Path, wheels: Path) -> None:
    """One archive for `site-packages`: the wheels, opschema, and what answers the page."""
    contents: dict[str, bytes] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            contents |= {name: archive.read(name) for name in archive.namelist() if _is_loaded(name)}
    contents |= dict(_own_files())
    contents["playground_browser.py"] = (HERE / "browser.py").read_bytes()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, _OLDEST), content, zipfile.ZIP_DEFLATED)


def _is_loaded(name: str) -> bool:
    """Whether a file of a wheel is read by a program that uses it: not tests, stubs, lists of files, licences."""
    parts = name.split("/")
    if parts[0].endswith(".dist-info"):
        return parts[-1] in ("METADATA", "entry_points.txt")
    return "tests" not in parts and not name.endswith(("/", ".pyi", "py.typed"))


def _own_files() -> Iterator[tuple[str, bytes]]:
    """The files of opschema as a wheel holds them."""
    for package in (ROOT / "opschema_cli", ROOT / "rules/opschema_rules"):
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(package.parent).as_posix(), path.read_bytes()
    points = (point for point in entry_points(group="opschema.packs") if point.value.startswith("opschema_rules."))
    lines = ["[opschema.packs]", *sorted(f"{point.name} = {point.value}" for point in points)]
    info = f"opschema_cli-{__version__}.dist-info"
    yield f"{info}/entry_points.txt", "\n".join([*lines, ""]).encode()
    yield f"{info}/METADATA", f"Metadata-Version: 2.1\nName: opschema-cli\nVersion: {__version__}\n".encode()

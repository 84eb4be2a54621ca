"""Collects what the page downloads: Pyodide from the npm registry, wheels from PyPI, opschema from this checkout.

Versions are pinned with their hashes. Nothing of it is committed, and the page loads nothing from another host. The modules that
the examples import are compiled, by Pyodide itself under Node.js, since compiling them takes longer in a browser than all else.
"""

from __future__ import annotations

import base64
import gzip
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

STDLIB, PACKAGES = "python_stdlib.zip", "packages.tar.gz"

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
        contents = _packages(wheels)
        _write_tar(folder / PACKAGES, contents)
        for name in ("worker.mjs", "unpack.mjs"):
            shutil.copy(HERE / name, folder)
        (folder / "examples.json").write_bytes(msgspec.json.encode(examples()))
        compiled = _compiled(folder, Path(scratch))
    _write_tar(folder / PACKAGES, _with(contents, compiled["site-packages"]))
    _replace_in_zip(folder / STDLIB, compiled["stdlib"])


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
    lock = folder / "pyodide-lock.json"
    lock.write_bytes(msgspec.json.encode({**msgspec.json.decode(lock.read_bytes()), "packages": {}}))  # none is loaded


def _packages(wheels: Path) -> dict[str, bytes]:
    """The files of `site-packages`: the wheels, opschema, and what answers the page."""
    contents: dict[str, bytes] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            contents |= {name: archive.read(name) for name in archive.namelist() if _is_loaded(name)}
    contents |= dict(_own_files())
    contents["playground_browser.py"] = (HERE / "browser.py").read_bytes()
    return contents


def _compiled(folder: Path, scratch: Path) -> dict[str, dict[str, bytes]]:
    """The bytecode of the modules that the examples import, by the path of its source: in `site-packages` and in `stdlib`.

    Raises:
        SystemExit: an example has no answer.
    """
    target = scratch / "compiled.zip"
    _run("node", str(HERE / "compile.mjs"), str(folder), str(HERE / "compiling.py"), str(target))
    found: dict[str, dict[str, bytes]] = {"site-packages": {}, "stdlib": {}}
    with zipfile.ZipFile(target) as archive:
        for name in archive.namelist():
            place, _, path = name.partition("/")
            found[place][path] = archive.read(name)
    return found


def _with(contents: dict[str, bytes], compiled: dict[str, bytes]) -> dict[str, bytes]:
    """Files, of which some modules are bytecode in place of their source."""
    assert compiled
    assert compiled.keys() <= contents.keys()
    kept = {name: content for name, content in contents.items() if name not in compiled}
    return kept | {f"{name}c": content for name, content in compiled.items()}


def _write_tar(target: Path, contents: dict[str, bytes]) -> None:
    """Write files to an archive that is compressed as one, files of a kind beside each other."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(contents, key=lambda name: (Path(name).suffix, name)):
            item = tarfile.TarInfo(name)
            item.size = len(contents[name])
            archive.addfile(item, io.BytesIO(contents[name]))
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _replace_in_zip(target: Path, compiled: dict[str, bytes]) -> None:
    with zipfile.ZipFile(target) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in sorted(_with(contents, compiled).items()):
            archive.writestr(zipfile.ZipInfo(name, _OLDEST), content, zipfile.ZIP_DEFLATED, 9)


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

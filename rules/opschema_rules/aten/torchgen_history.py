"""Writes the table of releases from their own torchgens and schemas.

python -m opschema_rules.aten.torchgen_history FOLDER...   # each holds the torchgen of one release, as in its wheel
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from opschema_cli.project import Project
from opschema_cli.requirements import Version, dotted, read_version
from opschema_cli.workspace import Workspace
from opschema_rules.aten.native import read_native, read_tags
from opschema_rules.aten.torchgen import Home, modules_of, read_torchgen
from opschema_rules.aten.torchgen_table import TABLE, TorchRelease, change, plain

PACKAGED = Home("torchgen/", "torchgen/packaged/autograd/", "torchgen/packaged/ATen/native/tags.yaml")
_NATIVE = "torchgen/packaged/ATen/native/native_functions.yaml"


def read_release(folder: Path) -> TorchRelease:
    """The release whose torchgen lies in a folder.

    Raises:
        SystemExit: there is none.
    """
    paths = [*modules_of(PACKAGED), PACKAGED.tags, _NATIVE]
    texts = {path: (folder / path).read_text(encoding="utf-8") for path in paths if (folder / path).is_file()}
    project = Project(Workspace(Path("/nowhere"), texts))
    torchgen = read_torchgen(project, PACKAGED, [path for path in modules_of(PACKAGED) if path in texts], None)
    native, tags = project.yaml(_NATIVE), project.yaml(PACKAGED.tags)
    if torchgen is None or native is None or tags is None:
        raise SystemExit(f"{folder} holds no torchgen with its schemas")
    torchgen = msgspec.structs.replace(torchgen, tags=read_tags(tags).names, digest="")
    entries = read_native(native, None, torchgen).entries
    return TorchRelease(torchgen, frozenset(entry.name for entry in entries))


def table_text(releases: Iterable[tuple[Version, TorchRelease]]) -> str:
    """The table, a field a line."""
    before: dict[str, object] = {}
    found: dict[str, dict[str, object]] = {}
    for version, release in sorted(releases, key=lambda item: item[0]):
        now = plain(release)
        steps = {name: change(before.get(name, []), value) for name, value in now.items() if value != before.get(name)}
        found[dotted(version)] = steps
        before = now
    return "{\n" + ",\n".join(f' "{name}": {{\n{_lines(steps)}\n }}' for name, steps in found.items()) + "\n}\n"


def _lines(steps: dict[str, object]) -> str:
    return ",\n".join(f'  "{name}": {json.dumps(step)}' for name, step in steps.items())


def write(folders: Iterable[Path]) -> None:
    """Write the table of the releases in these folders."""
    versions = {read_version(folder.name.removeprefix("torch-")): folder for folder in folders}
    TABLE.write_text(
        table_text((version, read_release(folder)) for version, folder in versions.items() if version is not None),
        encoding="utf-8",
    )


if __name__ == "__main__":
    write(map(Path, sys.argv[1:]))

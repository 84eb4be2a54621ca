"""Writes the native_functions.yaml of all releases into one file.

python -m opschema_rules.aten.native_history FOLDER...   # each holds the torchgen of one release, as in its wheel
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from opschema_cli.requirements import read_version
from opschema_rules.aten.native_table import TABLE, encoded, packed

NATIVE = "torchgen/packaged/ATen/native/native_functions.yaml"


def table_bytes(folders: Iterable[Path]) -> bytes:
    """The table of the releases in ``torch-2.15`` and the like."""
    versions = {read_version(folder.name.removeprefix("torch-")): folder for folder in folders}
    return encoded(
        packed(
            {
                version: (folder / NATIVE).read_text(encoding="utf-8")
                for version, folder in versions.items()
                if version is not None
            }
        )
    )


def write(folders: Iterable[Path]) -> None:
    """Write the table of the releases in these folders."""
    TABLE.write_bytes(table_bytes(folders))


if __name__ == "__main__":
    write(map(Path, sys.argv[1:]))

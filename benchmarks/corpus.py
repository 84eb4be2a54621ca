"""Unpacks the revisions of real repositories that the corpus tests and the benchmark read.

    python -m benchmarks.corpus tileops path/to/TileOPs.git corpus-folder
    OPSCHEMA_CORPUS=corpus-folder pytest -m corpus

Nothing of theirs is committed here; the folder lies outside the project.
"""

from __future__ import annotations

import argparse
import subprocess
import tarfile
from pathlib import Path

HEAD = "52dbc086"
CARRIER_FIX = "bfae9be4"

FIXES = {
    "ce6da052": "SIG201",
    "c4ba9a4a": "WKL101",
    "86149d97": "SIG203",
    "4a776dee": "SIG204",
    "24886ce6": "WKL104",
    "139e60ee": "MAN101",
    "6595d9a0": "MAN202",
    "61142fe8": "WKL103",
    "cb6296f3": "REG201",
}
"""Commits of TileOPs that mended a fault by hand, and the rule that finds it at their parents."""

MIGRATED = (
    *("a72e78b9", "daace1e6", "82535c3d", "8ac5b963", "e01a88ee", "a6b9ff24", "6a61ba14", "e4960c8c", "19ee4c2b"),
    *("46d0918a", "9448edbf", "dfce4964", "2b307059", "2ec50323", "c986df54", "40bd165b"),
)
"""Commits of TileOPs, beside :data:`FIXES`, that did by hand what a migration does."""

HISTORY = (
    *(
        "d4f3e5af",
        "e237145c",
        "87a458c6",
        "eac87492",
        "46d0918a",
        "08668189",
        "f851936a",
        "1cae8d85",
        "c2e01ac8",
        "f093e5e9",
    ),
    *(
        "35ab0afa",
        "23f2a765",
        "a63e7e5d",
        "a898f2d3",
        "b41ed2e0",
        "48782d50",
        "3c4d19aa",
        "32f23a9c",
        "6595d9a0",
        "7ce23e32",
    ),
)
"""Twenty commits spread over the manifest's history."""


def revisions() -> dict[str, str]:
    """Every revision by the name of its folder."""
    found = {f"tileops-{HEAD}": HEAD}
    for commit in (CARRIER_FIX, *FIXES, *MIGRATED):
        found[f"tileops-{commit}"] = commit
        found[f"tileops-{commit}-parent"] = f"{commit}^"
    return {**found, **{f"tileops-{commit}": commit for commit in HISTORY}}


def unpack(git: Path, revision: str, folder: Path) -> None:
    """Write the tree of ``revision`` below ``folder``, unless it is there."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    command = ["git", "-C", str(git), "archive", revision]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        tar.extractall(folder, filter="data")


def main() -> None:
    """Unpack all revisions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("repository", choices=["tileops"])
    parser.add_argument("git", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    for name, revision in revisions().items():
        unpack(options.git, revision, options.folder / name)
        print(name)


if __name__ == "__main__":
    main()

"""Writes all tables of torch's releases from their wheels.

pip download --no-deps -d wheels torch==2.15.0   # likewise every release of TORCH_RELEASES, for any platform
python -m benchmarks.torch_releases wheels
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import torch_macros, torch_types
from benchmarks.corpus import unpack_torch
from opschema_rules import TORCH_RELEASES
from opschema_rules.aten import native_history, torchgen_history
from opschema_rules.torchlib import api_history


def main() -> None:
    """Unpack the wheels, and write each table.

    Raises:
        SystemExit: a release is missing.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = {Path(name).name for name in unpack_torch(Path(sys.argv[1]), Path(folder))}
        missing = [name for name in TORCH_RELEASES if f"torch-{name}" not in found]
        if missing:
            raise SystemExit(f"{sys.argv[1]} has no wheel of torch {', '.join(missing)}")
        folders = [Path(folder, "aten", f"torch-{name}") for name in TORCH_RELEASES]
        torchgen_history.write(folders)
        native_history.write(folders)
        api_history.write(folders)
        torch_types.write(Path(folder))
        torch_macros.write(folders)


if __name__ == "__main__":
    main()

"""Adds the releases of FlyDSL that are on PyPI and not yet known to the table of its names.

python -m benchmarks.flydsl_releases           # downloads their wheels, some 80 MB each
python -m benchmarks.flydsl_releases --check   # only says which are missing
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import Version

from opschema_rules.flydsl import api_reading
from opschema_rules.flydsl.contract import RELEASES

_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_LISTED = "Available versions:"


def missing() -> list[Version]:
    """The releases on PyPI that the table lacks.

    Raises:
        subprocess.CalledProcessError: there is no index.
    """
    command = [*_PIP, "index", "versions", api_reading.ROOT]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    (line,) = (line for line in told.splitlines() if line.startswith(_LISTED))
    found = map(Version, line.removeprefix(_LISTED).replace(",", " ").split())
    return sorted(set(found) - set(RELEASES))


def main() -> None:
    """Adds them, or with ``--check`` lists them.

    Raises:
        SystemExit: some are missing, and nothing was to be added.
    """
    found = missing()
    if not found:
        print(f"all releases of FlyDSL are known, the newest is {RELEASES[-1]}")
    elif "--check" in sys.argv:
        raise SystemExit(f"releases of FlyDSL that are not known: {', '.join(map(str, found))}")
    else:
        with tempfile.TemporaryDirectory() as wheels:
            for release in found:
                named = f"{api_reading.ROOT}=={release}"
                subprocess.run([*_PIP, "download", "--quiet", "--no-deps", "-d", wheels, named], check=True)
            api_reading.main(Path(wheels))
        print(
            f"added {', '.join(map(str, found))}; now ask the newest by the tests against FlyDSL (docs/contributing.md)"
        )


if __name__ == "__main__":
    main()

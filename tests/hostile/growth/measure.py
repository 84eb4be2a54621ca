"""What one run costs: processor time and memory of a fork that has imported all of opschema."""

from __future__ import annotations

import gc
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from tests.hostile.growth.model import Files, Kind


class Cost(NamedTuple):
    """Processor seconds of a run with its helpers, the peak MiB of its largest process, its exit code, and the bytes of its
    report.
    """

    seconds: float
    mebibytes: float
    code: int
    report: int


def cost(kind: Kind, n: int, limit: int = 120) -> Cost:
    """What a run over an input of size ``n`` costs; one that takes more than ``limit`` processor seconds ends with code -9."""
    with tempfile.TemporaryDirectory(prefix="opschema-growth-") as folder:
        root = Path(folder, "tree")
        write(root, kind.files(n))
        args = [*kind.args, "--no-cache", "--output-format", kind.format, "--output-file", str(Path(folder, "report"))]
        pid = os.fork()
        if not pid:
            _lint(root, args, limit)
        _, status, used = os.wait4(pid, 0)
        report = Path(folder, "report").stat().st_size if Path(folder, "report").exists() else 0
        code = os.waitstatus_to_exitcode(status)
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, code, report)


def write(root: Path, files: Files) -> None:
    """Write files below a root."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "opschema.toml").write_text("")
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def _lint(root: Path, args: Sequence[str], limit: int) -> NoReturn:
    from opschema_cli.main import run

    code = 1
    with suppress(BaseException):
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(null, stream)
        os.chdir(root)
        code = run([*args])
    os._exit(code)


def prepare() -> None:
    """Import all that a run needs, so that forks need not."""
    from tests.forkserver import _import_all

    _import_all()
    gc.freeze()
    sys.stdout.flush()

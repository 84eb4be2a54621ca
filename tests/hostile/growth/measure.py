"""The cost of one run: processor time and memory of a fork that has imported all of opschema."""

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


ENOUGH = 0.3
"""Processor seconds of a run from which on the next size shows how the time grows."""

MOST = 2**8
"""How many times a kind's size is tried; what then takes no time is bounded by a limit."""


class Growth(NamedTuple):
    """The costs of an input of size ``n`` and of one twice as large, each without those of an input of size 1."""

    n: int
    once: Cost
    twice: Cost

    @property
    def ratio(self) -> float:
        """How many times as long the larger one takes; 0 where neither takes long, for a limit bounds them."""
        return self.twice.seconds / self.once.seconds if self.once.seconds > ENOUGH / 4 else 0.0


def growth(kind: Kind, runs: int = 2) -> Growth:
    """How costs grow from the first size that takes long enough: from ``kind.size`` on, doubled until then."""
    least = _least(kind, 1, 2).seconds
    n, once = kind.size, _least(kind, kind.size, 1)
    while once.seconds - least < ENOUGH and n < kind.size * MOST:
        n, once = 2 * n, _least(kind, 2 * n, 1)
    twice = _least(kind, 2 * n, 1)
    found = _growth(n, once, twice, least)
    if found.ratio > LINEAR:  # perhaps by chance
        once, twice = _least(kind, n, runs), _least(kind, 2 * n, runs)
        found = _growth(n, once, twice, least)
    if found.ratio > LINEAR:  # perhaps a step that comes once, such as work that is done again
        found = _growth(2 * n, twice, _least(kind, 4 * n, runs), least)
    return found


LINEAR = 2.7
"""A ratio above which the time does not grow linearly."""


def _growth(n: int, once: Cost, twice: Cost, least: float) -> Growth:
    return Growth(n, *(one._replace(seconds=max(one.seconds - least, 0.001)) for one in (once, twice)))


def _least(kind: Kind, n: int, runs: int) -> Cost:
    return min((cost(kind, n) for _ in range(runs)), key=lambda one: one.seconds)


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

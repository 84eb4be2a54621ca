"""The harness's side of its worker processes: one for each op and side, replaced when it dies, hangs or is unfit.

Nothing of an op library is imported here: whatever it does to its process, this one goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from opschema_cli.verify import forkserver
from opschema_cli.verify.compute_sanitizer import ReportLog, Tool
from opschema_cli.verify.environments import environment
from opschema_cli.verify.forkserver import Forkserver, Process
from opschema_cli.verify.kernel_caches import remove_abandoned_locks
from opschema_cli.verify.model import Cell, Plan, Ran, Side
from opschema_cli.verify.preloading import Package, package_of
from opschema_cli.verify.protocol import Load, Loaded, Survey, Surveyed
from opschema_cli.verify.sanitizers import under_sanitizer
from opschema_cli.verify.worker_process import Worker

IMPORT_SECONDS = 300.0
"""Seconds that a worker may take to start and to import an op library."""

_GRACE = 3.0

_SLOW_IMPORTS = 2
"""Slow imports of a package after which it is imported once for all other ops."""


class Workers:
    """The processes that run cells; a context manager that ends them all.

    ``folder`` is where tensors go, a temporary one if None, and compilers' caches of sides that have none in ``caches``.
    Processes of one op at a time are kept. ``memory`` limits the address space of each in bytes; 0 does not. Sides may be
    run from different threads. With ``sanitizer`` each but the reference's runs under the one for ``device`` (see
    :mod:`opschema_cli.verify.sanitizers`). On the ``device`` ``cpu`` they see no GPU. ``threads`` are those that each computes
    with, unless the environment says it (``OMP_NUM_THREADS``); 0 leaves it to torch.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        import_seconds: float = IMPORT_SECONDS,
        memory: int = 0,
        device: str = "",
        sanitizer: Tool | None = None,
        threads: int = 0,
        caches: Mapping[Side, Path] | None = None,
    ) -> None:
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="opschema-verify-")) if folder is None else folder.resolve()
        self.import_seconds = import_seconds
        self.memory = memory
        self._lock = threading.Lock()
        self._workers: dict[tuple[str, Side], Worker] = {}
        self._hopeless: dict[tuple[str, Side], Loaded] = {}
        self._forkserver: Forkserver | None = None
        self._imports = Counter[tuple[Side, Package]]()
        self._preloaded: dict[tuple[Side, Package], Forkserver | None] = {}
        self._device, self._sanitizer, self._threads = device, sanitizer, threads
        self._caches = dict(caches or {})
        self._forks = forkserver.available()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self, plan: Plan, *sides: Side) -> None:
        """Have the processes of an op start and import, while the caller goes on; those of other ops end."""
        for side in sides:
            if (plan.op, side) not in self._hopeless:
                self._worker(side, plan)

    def is_hopeless(self, op: str, side: Side) -> bool:
        """Whether it is known that a side of an op cannot be imported."""
        return (op, side) in self._hopeless

    def load(self, side: Side, plan: Plan) -> Loaded:
        """Have a side of an op imported; the process is kept for its cells, unless it cannot be."""
        key = (plan.op, side)
        if key not in self._hopeless:
            worker = self._worker(side, plan)
            known, loaded = worker.is_loaded, worker.load(self.import_seconds)
            if not known:
                self._count_import(side, plan, loaded)
            if loaded.status == "ok":
                return loaded
            self._hopeless[key] = loaded
            self._end(key)
        return self._hopeless[key]

    def survey(self, side: Side, plans: Sequence[Plan]) -> None:
        """Find out which ops cannot be imported since a package is missing or the tree lacks them, in one process; no process is
        started for these.
        """
        found: Surveyed | None = None
        worker = self._begun(Survey(targets=tuple(plan.target for plan in plans)), side, plans[0])
        try:
            found = worker.survey(self.import_seconds)
        finally:
            worker.end(grace=0)
        for index, detail in found.missing.items() if found is not None else ():
            missing = Loaded(status="refused", detail=detail, missing=True)
            self._hopeless.setdefault((plans[index].op, side), missing)
        for index, detail in found.absent.items() if found is not None else ():
            self._hopeless.setdefault((plans[index].op, side), Loaded(status="refused", detail=detail, absent=True))

    def run(
        self,
        side: Side,
        plan: Plan,
        cell: Cell,
        device: str,
        timeout: float,
        repeats: int = 0,
        *,
        computing: float = 0.0,
    ) -> Ran:
        """Run one cell on one side, within ``timeout`` seconds, and ``computing`` more while its process computes. The reference is
        the side ``reference``.

        ``device`` is ``cpu`` or ``cuda``; with ``repeats`` the op is only called so often. Whatever the op does comes back as a
        :class:`Ran`.
        """
        key = (plan.op, side)
        if key in self._hopeless:
            return _unimported(cell, self._hopeless[key])
        worker = self._worker(side, plan)
        try:
            loaded = self.load(side, plan)
            if loaded.status != "ok":
                return msgspec.structs.replace(_unimported(cell, loaded), seconds=worker.new_seconds())
            done = worker.run(cell, device, self._results(side), timeout, repeats, computing=computing)
        except BaseException:
            self._end(key)
            raise
        if done.last:
            self._end(key)
        return msgspec.structs.replace(done.ran, seconds={**worker.new_seconds(), **done.ran.seconds})

    def close(self) -> None:
        """End all processes, and take away the folder if it is a temporary one."""
        self._keep(None)
        for server in (self._forkserver, *self._preloaded.values()):
            if server is not None:
                server.close()
        self._forkserver, self._preloaded = None, {}
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _worker(self, side: Side, plan: Plan) -> Worker:
        self._keep(plan.op)
        with self._lock:
            key = (plan.op, side)
            if key not in self._workers:
                load = Load(side=side, op=plan.op, target=plan.target, reference=plan.reference, memory=self.memory)
                self._workers[key] = self._begun(load, side, plan)
            return self._workers[key]

    def _begun(self, request: Load | Survey, side: Side, plan: Plan) -> Worker:
        log = None
        if self._sanitizer and self._device == "cuda" and side != "reference":
            log = self._folder("sanitizer") / f"{side}-{time.monotonic_ns()}.log"
        return Worker(request, self._process(side, plan, self._environment(side), log), side, ReportLog(log))

    def _cache(self, side: Side) -> Path:
        return self._caches.get(side, self.folder / "caches" / ("sanitized" if self._sanitizer else "") / side)

    def _environment(self, side: Side) -> dict[str, str]:
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if self._device == "cpu" else {}
        threads = (
            {"OMP_NUM_THREADS": str(self._threads)} if self._threads and "OMP_NUM_THREADS" not in os.environ else {}
        )
        return {**environment(self._cache(side)), **hidden, **threads}

    def _process(self, side: Side, plan: Plan, environ: dict[str, str], log: Path | None) -> Process:
        folder = self._folder("empty")
        sanitizer = self._sanitizer if side != "reference" else None
        # A sanitizer is loaded before Python, so there is nothing to be forked.
        if self._forks and sanitizer is None:
            runs_operators = plan.target.operators or plan.target.operators_attribute
            modules = forkserver.OPCHECK if runs_operators and not self._sanitizer else ()
            forked = self._fork_of_package(side, plan, environ, modules)
            if forked is not None:
                return forked
            try:
                self._forkserver = self._forkserver or Forkserver(environ, folder, modules)
                return self._forkserver.spawn(environ)
            except OSError:  # what ails it will ail the worker, too, which can tell
                self._forks = False
        prefix, environ = under_sanitizer(sanitizer, environ, log) if sanitizer is not None else ([], environ)
        return subprocess.Popen(
            [*prefix, sys.executable, "-m", "opschema_cli.verify.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environ,
            start_new_session=True,
        )

    def _count_import(self, side: Side, plan: Plan, loaded: Loaded) -> None:
        """Count slow imports of packages. Only on the CPU: an import may initialize CUDA, which forks cannot use."""
        package = package_of(plan.target, loaded.package)
        if package is not None and loaded.status == "ok" and self._device == "cpu":
            self._imports[side, package] += 1

    def _fork_of_package(
        self, side: Side, plan: Plan, environ: dict[str, str], modules: Sequence[str]
    ) -> Process | None:
        """Fork a process that has imported the package of an op; return None if there is none."""
        slow = (key for key, count in self._imports.items() if count >= _SLOW_IMPORTS and key[0] == side)
        key = next((key for key in slow if package_of(plan.target, key[1].name) == key[1]), None)
        if key is None:
            return None
        if key not in self._preloaded:
            folder, seconds = self._folder("empty"), self.import_seconds
            self._preloaded[key] = Forkserver(environ, folder, modules, package=key[1], seconds=seconds)
        server = self._preloaded[key]
        if server is not None:
            try:
                return server.spawn(environ)
            except OSError:  # its import raised, took too long or left something behind that forks cannot have
                server.close()
                self._preloaded[key] = None
        return None

    def _keep(self, op: str | None) -> None:
        with self._lock:
            ended = [self._workers.pop(key) for key in list(self._workers) if key[0] != op]
        for worker in ended:
            worker.dismiss()
        deadline = time.monotonic() + _GRACE
        for worker in ended:
            worker.end(grace=max(deadline - time.monotonic(), 0.0))

    def _end(self, key: tuple[str, Side]) -> None:
        with self._lock:
            worker = self._workers.pop(key, None)
        if worker is not None:
            worker.end(grace=0)
            remove_abandoned_locks(self._cache(key[1]))

    def _results(self, side: Side) -> str:
        return str(self._folder("results", side))

    def _folder(self, *parts: str) -> Path:
        folder = self.folder.joinpath(*parts)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _unimported(cell: Cell, loaded: Loaded) -> Ran:
    return Ran(
        cell=cell.id, status=loaded.status, detail=loaded.detail, unimported=not loaded.absent, absent=loaded.absent
    )

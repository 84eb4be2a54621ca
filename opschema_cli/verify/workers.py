"""The harness's side of its worker processes: one for each op and side, replaced when it dies, hangs or is unfit.

Nothing of an op library is imported here: whatever it does to its process, this one goes on.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

import msgspec

from opschema_cli.verify import forkserver
from opschema_cli.verify.child_processes import COMPILE_SECONDS, ChildProcesses
from opschema_cli.verify.compute_sanitizer import ReportLog, Tool
from opschema_cli.verify.environments import environment
from opschema_cli.verify.forkserver import Forkserver, Process
from opschema_cli.verify.kernel_caches import remove_abandoned_locks
from opschema_cli.verify.model import Cell, Finding, Plan, Ran, Side
from opschema_cli.verify.protocol import Done, Load, Loaded, Reply, Request, Run, Survey, Surveyed, read_reply, write
from opschema_cli.verify.sanitizers import summary, under_sanitizer

IMPORT_SECONDS = 300.0
"""Seconds that a worker may take to start and to import an op library."""

_Fatal = Literal["died", "stalled"]
_POLL = 0.2
_LOOK = 2.0
_GRACE = 3.0
_TAIL_BYTES = 1 << 16
_TAIL_LINES = 40


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
            loaded = self._worker(side, plan).load(self.import_seconds)
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

    def run(self, side: Side, plan: Plan, cell: Cell, device: str, timeout: float, repeats: int = 0) -> Ran:
        """Run one cell on one side, within ``timeout`` seconds. The reference is the side ``reference``.

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
            done = worker.run(cell, device, self._results(side), timeout, repeats)
        except BaseException:
            self._end(key)
            raise
        if done.last:
            self._end(key)
        return msgspec.structs.replace(done.ran, seconds={**worker.new_seconds(), **done.ran.seconds})

    def close(self) -> None:
        """End all processes, and take away the folder if it is a temporary one."""
        self._keep(None)
        if self._forkserver is not None:
            self._forkserver.close()
            self._forkserver = None
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
            try:
                modules = forkserver.OPCHECK if plan.target.operators and not self._sanitizer else ()
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


class Worker:
    """One process, and what it says."""

    def __init__(self, load: Load | Survey, process: Process, side: Side, log: ReportLog) -> None:
        self._started = time.monotonic()
        self._process = process
        self._side, self._log = side, log
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self._tail = bytearray()
        self._readers = [self._reader(self._read_replies), self._reader(self._read_errors)]
        self._loaded: Loaded | None = None
        self._seconds: dict[str, float] = {}
        self._send(load)

    def load(self, seconds: float) -> Loaded:
        """Return the result of the import, awaited for ``seconds`` since the start."""
        if self._loaded is None:
            reply = self._answer(self._started, seconds)
            if isinstance(reply, Loaded):
                self._loaded = reply
                imported = sum(reply.seconds.values())
                self._seconds = {"start": max(self._answered - self._started - imported, 0.0), **reply.seconds}
            else:
                status, detail = self._obituary(stalled=reply is None, seconds=seconds, at="importing the op")
                self._loaded = Loaded(status=status, detail=detail)
        return self._loaded

    def survey(self, seconds: float) -> Surveyed | None:
        """The answer to a survey; None if the process dies of it or takes longer."""
        reply = self._answer(time.monotonic(), seconds)
        return reply if isinstance(reply, Surveyed) else None

    def run(self, cell: Cell, device: str, folder: str, seconds: float, repeats: int = 0) -> Done:
        """Have a cell run. If the process does not answer in time, or ends, it is the cell's result."""
        self._send(Run(cell=cell, device=device, folder=folder, seconds=seconds, repeats=repeats))
        reply = self._answer(time.monotonic(), seconds)
        if isinstance(reply, Done):
            return self._with_report(reply)
        status, detail = self._obituary(stalled=reply is None, seconds=seconds, at="running the cell")
        return Done(ran=Ran(cell=cell.id, status=status, detail=detail), last=True)

    def new_seconds(self) -> dict[str, float]:
        """The seconds that starting took, reported once."""
        seconds, self._seconds = self._seconds, {}
        return seconds

    def dismiss(self) -> None:
        """Tell the process that there is nothing more to do."""
        with suppress(OSError):
            _stream(self._process.stdin).close()

    def end(self, *, grace: float) -> None:
        """End the process and all that it started; ``grace`` is how long it may take to go by itself."""
        self.dismiss()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        _kill_group(self._process)
        self._process.wait()
        for reader in self._readers:
            reader.join(_GRACE)
        for stream in (self._process.stdout, self._process.stderr):
            _stream(stream).close()

    def _with_report(self, done: Done) -> Done:
        """An answer with the sanitizer's report: a finding of a call that went on, the reason of one that did not."""
        said, ran = self._log.new_report(), done.ran
        if not said:
            return done
        finding = Finding(check="sanitizer", side=self._side, message=said.replace("\n", ", "))
        more = {"findings": (*ran.findings, finding)} if ran.status == "ok" else {"detail": f"{said}\n{ran.detail}"}
        return msgspec.structs.replace(done, ran=msgspec.structs.replace(ran, **more))

    def _send(self, request: Request) -> None:
        with suppress(OSError):
            write(_stream(self._process.stdin), request)

    def _answer(self, started: float, seconds: float) -> Reply | _Ended | None:
        """The next reply; None if there is none within ``seconds``. Time in which processes compute that the worker has started
        does not count: the first call of an op may compile it.
        """
        deadline = started + seconds
        latest = deadline + COMPILE_SECONDS
        children = ChildProcesses(self._process.pid, started)
        while True:
            reply = self._receive(min(time.monotonic() + _LOOK, deadline))
            if reply is not None:
                return reply
            now = time.monotonic()
            if children.have_computed(now):
                deadline = min(now + seconds, latest)
            if now >= deadline:
                return None

    def _receive(self, deadline: float) -> Reply | _Ended | None:
        """The next reply; None if there is none by the deadline."""
        while True:
            try:
                reply = self._replies.get(timeout=min(_POLL, max(deadline - time.monotonic(), 0.0)))
            except queue.Empty:
                # A child of its may hold the pipe open.
                if self._process.poll() is not None and self._replies.empty():
                    return _Ended()
                if time.monotonic() >= deadline:
                    return None
                continue
            return _Ended() if reply is None else reply

    def _obituary(self, *, stalled: bool, seconds: float, at: str) -> tuple[_Fatal, str]:
        """The reason why there is no answer; the process has ended when this returns."""
        if stalled:
            _abort(self._process)
        else:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
        code = self._process.poll()
        _kill_group(self._process)
        self._process.wait()
        self._readers[1].join(_GRACE)
        ending = f"no answer within {seconds:g} s" if stalled else _ending(code)
        text = bytes(self._tail).decode("utf-8", "replace")
        report = summary(text) or self._log.new_report()
        said = [report] if report else text.strip().splitlines()[-_TAIL_LINES:]
        return ("stalled" if stalled else "died"), "\n".join([f"{ending}, {at}", *said])

    def _reader(self, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        return thread

    def _read_replies(self) -> None:
        stream = _stream(self._process.stdout)
        reply: Reply | None = Loaded()
        while reply is not None:
            try:
                reply = read_reply(stream)
            except (OSError, ValueError, msgspec.DecodeError):
                reply = None
            self._answered = time.monotonic()
            self._replies.put(reply)

    def _read_errors(self) -> None:
        stream = _stream(self._process.stderr)
        with suppress(OSError, ValueError):
            while part := os.read(stream.fileno(), _TAIL_BYTES):
                self._tail += part
                del self._tail[:-_TAIL_BYTES]


class _Ended:
    """The process has ended."""


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _ending(code: int | None) -> str:
    """Describe how a process ended."""
    if code is None:
        return "the worker no longer answers"
    if code >= 0:
        return f"the process ended itself with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; the kernel does so when memory is out" if name == "SIGKILL" else ""
    return f"{_KILLED}{name}{hint}"


_KILLED = "the process was killed by "


def killed_from_outside(ran: Ran) -> bool:
    """Whether a process was ended by a signal that others send: those of a fault come from the op."""
    return ran.status == "died" and ran.detail.startswith((f"{_KILLED}SIGKILL", f"{_KILLED}SIGTERM"))


def _abort(process: Process) -> None:
    """Have the process report where it hangs: faulthandler writes the stack."""
    process.send_signal(signal.SIGABRT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _kill_group(process: Process) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            if process.pid:
                os.killpg(process.pid, signal.SIGKILL)
    else:
        process.send_signal(signal.SIGTERM)

"""One worker process from the harness's point of view: its requests, its answers, and its end."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Literal

import msgspec

from opschema_cli.verify.child_processes import COMPILE_SECONDS, ChildProcesses, OwnTime
from opschema_cli.verify.compute_sanitizer import ReportLog
from opschema_cli.verify.forkserver import Process
from opschema_cli.verify.model import Cell, Finding, Ran, Side
from opschema_cli.verify.protocol import Done, Load, Loaded, Reply, Request, Run, Survey, Surveyed, read_reply, write
from opschema_cli.verify.sanitizers import summary

_Fatal = Literal["died", "stalled"]
_POLL = 0.2
_LOOK = 2.0
_GRACE = 3.0
_TAIL_BYTES = 1 << 16
_TAIL_LINES = 40


class Worker:
    """One worker process and its output."""

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

    @property
    def is_loaded(self) -> bool:
        """Whether the result of the import is known."""
        return self._loaded is not None

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
        """Return the answer to a survey, or None if the process dies or takes longer."""
        reply = self._answer(time.monotonic(), seconds)
        return reply if isinstance(reply, Surveyed) else None

    def run(
        self, cell: Cell, device: str, folder: str, seconds: float, repeats: int = 0, *, computing: float = 0.0
    ) -> Done:
        """Have a cell run. If the process does not answer in time, or ends, it is the cell's result. The time is longer by up to
        ``computing`` seconds while the process itself computes.
        """
        self._send(Run(cell=cell, device=device, folder=folder, seconds=seconds, repeats=repeats))
        reply = self._answer(time.monotonic(), seconds, computing)
        if isinstance(reply, Done):
            return self._with_report(reply) if reply.ran.cell == cell.id else self._answered_twice(cell)
        status, detail = self._obituary(stalled=reply is None, seconds=seconds, at="running the cell")
        return Done(ran=Ran(cell=cell.id, status=status, detail=detail), last=True)

    def _answered_twice(self, cell: Cell) -> Done:
        """The result of a cell if another one's is still answered: two processes do so, and either may have taken the request."""
        _kill_group(self._process)
        self._process.wait()
        detail = "an earlier call has forked the process, and both of them went on"
        return Done(ran=Ran(cell=cell.id, status="died", detail=detail), last=True)

    def new_seconds(self) -> dict[str, float]:
        """The seconds that starting took, reported once."""
        seconds, self._seconds = self._seconds, {}
        return seconds

    def dismiss(self) -> None:
        """Tell the process that there is nothing more to do."""
        with suppress(OSError):
            _stream(self._process.stdin).close()

    def end(self, *, grace: float) -> None:
        """End the process and its descendants; ``grace`` is the time that it has to exit by itself."""
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
        """Add the sanitizer's report to an answer: as a finding if the call continued, and otherwise as the reason."""
        said, ran = self._log.new_report(), done.ran
        if not said:
            return done
        finding = Finding(check="sanitizer", side=self._side, message=said.replace("\n", ", "))
        more = {"findings": (*ran.findings, finding)} if ran.status == "ok" else {"detail": f"{said}\n{ran.detail}"}
        return msgspec.structs.replace(done, ran=msgspec.structs.replace(ran, **more))

    def _send(self, request: Request) -> None:
        with suppress(OSError):
            write(_stream(self._process.stdin), request)

    def _answer(self, started: float, seconds: float, computing: float = 0.0) -> Reply | _Ended | None:
        """Return the next reply, or None if there is none within ``seconds``. Time in which child processes of the worker
        compute is not counted, because the first call of an op may compile it. Up to ``computing`` seconds in which the worker
        itself computes are not counted either.
        """
        deadline = started + seconds
        latest, latest_own = deadline + COMPILE_SECONDS, deadline + computing
        children = ChildProcesses(self._process.pid, started)
        own = OwnTime(self._process.pid, started)
        while True:
            reply = self._receive(min(time.monotonic() + _LOOK, deadline))
            if reply is not None:
                return reply
            now = time.monotonic()
            if children.have_computed(now):
                deadline = max(deadline, min(now + seconds, latest))
            if own.has_computed(now):
                deadline = max(deadline, min(now + seconds, latest_own))
            if now >= deadline:
                return None

    def _receive(self, deadline: float) -> Reply | _Ended | None:
        """Return the next reply, or None if there is none by the deadline."""
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
        """Return the reason why there is no answer. The process has ended when this returns."""
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

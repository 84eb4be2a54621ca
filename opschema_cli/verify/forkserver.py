"""Starts worker processes by forking one that has imported torch, which takes 0.05 s instead of 2 s.

``python -m opschema_cli.verify.forkserver [MODULE]...`` imports the modules, then reads requests from the socket that is its
standard input. A request is an environment and four descriptors: the worker's standard streams, and a pipe for its process
number and exit status. The server starts no thread and creates no CUDA context, so a fork of it is as separate as a new process.
It runs nothing of an op library, unless the environment names a package of one that is slow to import: see
:mod:`opschema_cli.verify.preloading`. When the harness ends or is killed, it kills its workers and all that they started.

Not :mod:`multiprocessing.forkserver`, which was tried:

- Its workers import the main module of the parent again and take over its folder and ``sys.path``: each would hold pytest,
  opschema's own command and the linted tree's folder before the op library is imported.
- It starts with the environment of this process, and there is one of it with one list of modules. A side's environment
  (``PYTHONHASHSEED``, ``PYTHONPATH``) has to be set before Python starts.
- If the harness is killed, its workers go on, and the server waits for them: an op that hangs keeps its GPU for good.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Protocol

import msgspec

from opschema_cli.verify.child_processes import is_running
from opschema_cli.verify.preloading import Package, preload

_LOOK = 0.05
"""Seconds between two looks at whether a worker runs whose server was killed."""

_NUMBER = struct.Struct(">i")
_DESCRIPTORS = 4
_READY = b"!"
_PACKAGE = "OPSCHEMA_VERIFY_PACKAGE"
"""The environment variable that names the package to import, as JSON."""


class Process(Protocol):
    """The interface of a worker's process that the harness uses; ``subprocess.Popen`` has it."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @property
    def pid(self) -> int:
        """The process number."""
        ...

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal, if it runs."""
        ...


OPCHECK = (
    *("torch.testing._internal.optests", "torch._dynamo", "torch._functorch.aot_autograd"),
    *("torch._dynamo.backends.inductor", "torch._dynamo.repro.after_dynamo"),
)
"""Modules that torch's tests of an operator and ``torch.compile`` import on first use: together as long as torch itself."""


def available() -> bool:
    """Whether a process that has imported torch can be forked here."""
    return sys.platform == "linux"


class Forkserver:
    """Client of the server process."""

    def __init__(
        self,
        environ: dict[str, str],
        folder: Path,
        modules: Sequence[str] = (),
        *,
        package: Package | None = None,
        seconds: float | None = None,
    ) -> None:
        """``package`` is imported beforehand, within ``seconds``; the environment of its workers is ``environ``."""
        self._ready = False
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(seconds)
        if package is not None:
            environ = {**environ, _PACKAGE: msgspec.json.encode(package).decode()}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "opschema_cli.verify.forkserver", *modules],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environ,
                start_new_session=True,
            )

    def spawn(self, environ: dict[str, str]) -> ForkedWorker:
        """Start a worker with this environment, without waiting for it once the server is ready.

        Raises:
            OSError: the server has ended, or could not import torch or the package.
        """
        if not self._ready and self._socket.recv(1) != _READY:
            raise ConnectionError("the forkserver has ended")
        self._ready = True
        self._socket.settimeout(None)
        pairs = [os.pipe() for _ in range(_DESCRIPTORS)]
        # Standard input is written here and read there; of the others it is the reverse.
        theirs = [pairs[0][0], *(write for _, write in pairs[1:])]
        ours = [pairs[0][1], *(read for read, _ in pairs[1:])]
        data = msgspec.msgpack.encode(environ)
        try:
            socket.send_fds(self._socket, [_NUMBER.pack(len(data))], theirs)
            self._socket.sendall(data)
        except OSError:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return ForkedWorker(*ours)

    def close(self) -> None:
        """End the server and its remaining workers."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with what the import of a package started
        self._process.wait()


class ForkedWorker:
    """A forked worker process; a :class:`Process`. Several threads may wait for it."""

    def __init__(self, stdin: int, stdout: int, stderr: int, status: int) -> None:
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb")
        self._status = status
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, status)
        self._pid: int | None = None
        self._code: int | None = None
        self._orphaned = False
        """Whether the server was killed, so that nobody reports how the worker ends."""

    @property
    def pid(self) -> int:
        """The process number, once it is forked; 0 if the server ended first."""
        with self._lock:
            if self._pid is None:
                self._pid = self._number() or 0
            return self._pid

    def poll(self) -> int | None:
        """See :class:`Process`."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """See :class:`Process`."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a worker", timeout or 0)
        return code

    def send_signal(self, sig: int) -> None:
        """See :class:`Process`."""
        if self.poll() is None and self.pid:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def _ended(self, seconds: float | None) -> int | None:
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._code is None:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not (self._look(left) if self._orphaned else self._hear(left)):
                return None
        return self._code

    def _hear(self, seconds: float | None) -> bool:
        """Receive the server's next report; return False if there is none within the time."""
        if not select.select([self._status], [], [], seconds)[0]:
            return False
        with self._lock:
            # Another thread may have read what this one saw.
            if self._code is None and select.select([self._status], [], [], 0)[0]:
                self._read()
        return True

    def _look(self, seconds: float | None) -> bool:
        """Whether a worker without a server has ended, or there is time to look again."""
        if not self._pid or not is_running(self._pid):
            self._code = -signal.SIGKILL  # as the server; how it ended is not known
        elif seconds == 0:
            return False
        else:
            time.sleep(_LOOK if seconds is None else min(_LOOK, seconds))
        return True

    def _read(self) -> None:
        if self._pid is None:
            self._pid = self._number() or 0
        else:
            self._code = self._number()
            self._orphaned = self._code is None

    def _number(self) -> int | None:
        data = os.read(self._status, _NUMBER.size)
        return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else None


def main() -> None:
    """Import torch and the package, if any, then serve requests."""
    from opschema_cli.verify import reference, runner, worker  # noqa: F401 - every worker needs them, and torch

    for name in sys.argv[1:]:
        with suppress(ImportError):  # of another release of torch
            import_module(name)
    requests = socket.socket(fileno=os.dup(0))
    named = os.environ.pop(_PACKAGE, "")
    if not named:
        _serve(requests, own_environment=False)
        return
    try:
        if preload(msgspec.json.decode(named, type=Package)):
            _serve(requests, own_environment=True)
    finally:
        os._exit(0)  # as workers do: a package's own work for the exit of Python may be about what workers share


def _serve(requests: socket.socket, *, own_environment: bool) -> None:
    """Fork a worker for each request and report its exit status, until the client closes the socket."""
    gc.freeze()  # a worker that looked through all of torch for garbage would also copy it

    awake, alarm = os.pipe()
    for end in (awake, alarm):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(alarm)
    children: dict[int, int] = {}
    requests.sendall(_READY)
    while True:
        readable, _, _ = select.select([requests.fileno(), awake], [], [])
        if awake in readable:
            os.read(awake, 4096)
            _reap(children)
        if requests.fileno() in readable:
            request = _next(requests)
            if request is None:
                _kill_all(children)
                return
            environ, descriptors = request
            pid = os.fork()
            if pid == 0:
                for descriptor in (requests.fileno(), awake, alarm, *children.values()):
                    os.close(descriptor)
                _become_worker({} if own_environment else environ, descriptors)
            os.write(descriptors[3], _NUMBER.pack(pid))
            children[pid] = descriptors.pop()
            for descriptor in descriptors:
                os.close(descriptor)


def _next(requests: socket.socket) -> tuple[dict[str, str], list[int]] | None:
    """The environment and the descriptors of the next worker; None if the client has closed the socket."""
    head, descriptors, _, _ = socket.recv_fds(requests, _NUMBER.size, _DESCRIPTORS)
    if len(head) < _NUMBER.size:
        return None
    data = _exactly(requests, _NUMBER.unpack(head)[0])
    return msgspec.msgpack.decode(data, type=dict[str, str]), descriptors


def _exactly(stream: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = stream.recv(length - len(data))
        if not part:
            raise EOFError("incomplete request")
        data += part
    return data


def _reap(children: dict[int, int]) -> None:
    """Report the exit codes of the workers that have ended."""
    for pid in list(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            descriptor = children.pop(pid)
            with suppress(OSError):
                os.write(descriptor, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(descriptor)


def _kill_all(children: dict[int, int]) -> None:
    """Kill the workers and their process groups, which they lead once they have started."""
    for pid in children:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _become_worker(environ: dict[str, str], descriptors: list[int]) -> None:
    """Serve as a worker and exit. If ``environ`` is empty, keep this process's environment, which a package may have changed."""
    from opschema_cli.verify import worker

    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        if environ:
            os.environ.clear()
            os.environ.update(environ)
        status = worker.main()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()

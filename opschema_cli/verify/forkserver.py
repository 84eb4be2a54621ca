"""Starts worker processes by forking one that has imported torch: a start costs milliseconds instead of seconds.

``python -m opschema_cli.verify.forkserver [MODULE]...`` imports the modules and reads requests from the socket that is its
standard input: an environment, and with it the descriptors that become the worker's standard streams and one for its process
number and exit status. It runs nothing of an op library itself, starts no thread and no CUDA context, so that a fork of it is
as good as a process of its own. Once nobody is left who could ask, be it because the harness was killed, it ends its workers
with all that they started.
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

_NUMBER = struct.Struct(">i")
_DESCRIPTORS = 4
_READY = b"!"


class Process(Protocol):
    """What the harness needs of a worker's process; ``subprocess.Popen`` is one."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    @property
    def pid(self) -> int:
        """Its number."""
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


ALWAYS = ("torch._inductor.config",)
"""What ``torch.use_deterministic_algorithms`` imports."""

OPCHECK = ("torch.testing._internal.optests", "torch._dynamo", "torch._functorch.aot_autograd")
"""What torch's tests of an operator import when they are first run; together this takes as long as torch itself."""


def available() -> bool:
    """Whether a process that has imported torch can be forked here."""
    return sys.platform == "linux"


class Forkserver:
    """The process that forks workers, from the side that asks for them."""

    def __init__(self, environ: dict[str, str], folder: Path, modules: Sequence[str] = ()) -> None:
        self._ready = False
        self._socket, theirs = socket.socketpair()
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
        """A worker with this environment; once there is a forkserver, it starts while the caller goes on.

        Raises:
            OSError: the forkserver has ended, or could not import what it must.
        """
        if not self._ready and self._socket.recv(1) != _READY:
            raise ConnectionError("the forkserver has ended")
        self._ready = True
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
        """End the forkserver, and the workers that are left."""
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._process.kill()
        self._process.wait()


class ForkedWorker:
    """A worker's process that the forkserver forked. Several threads may wait for it."""

    def __init__(self, stdin: int, stdout: int, stderr: int, status: int) -> None:
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb")
        self._status = status
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, status)
        self._pid: int | None = None
        self._code: int | None = None

    @property
    def pid(self) -> int:
        """Its number, awaited until it is forked; 0 if it never was."""
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
            if not select.select([self._status], [], [], left)[0]:
                return None
            with self._lock:
                # Another thread may have read what this one saw.
                if self._code is None and select.select([self._status], [], [], 0)[0]:
                    self._read()
        return self._code

    def _read(self) -> None:
        if self._pid is None:
            self._pid = self._number() or 0
        else:
            found = self._number()
            # Without a word the forkserver itself was killed, and its workers will see no more requests.
            self._code = -signal.SIGKILL if found is None else found

    def _number(self) -> int | None:
        data = os.read(self._status, _NUMBER.size)
        return _NUMBER.unpack(data)[0] if len(data) == _NUMBER.size else None


def main() -> None:
    """Fork a worker for each request, and tell what becomes of it, until nobody asks any more."""
    from opschema_cli.verify import reference, runner, worker  # noqa: F401 - what every worker needs, torch above all

    for name in (*ALWAYS, *sys.argv[1:]):
        with suppress(ImportError):  # of another release of torch
            import_module(name)
    gc.freeze()  # a worker that looked through all of torch for garbage would also copy it

    requests = socket.socket(fileno=os.dup(0))
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
                _become_worker(environ, descriptors)
            os.write(descriptors[3], _NUMBER.pack(pid))
            children[pid] = descriptors.pop()
            for descriptor in descriptors:
                os.close(descriptor)


def _next(requests: socket.socket) -> tuple[dict[str, str], list[int]] | None:
    """The environment and the descriptors of the next worker; None when nobody asks any more."""
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
            raise EOFError("half a request")
        data += part
    return data


def _reap(children: dict[int, int]) -> None:
    """Tell the exit codes of the workers that have ended."""
    for pid in list(children):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            descriptor = children.pop(pid)
            with suppress(OSError):
                os.write(descriptor, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
            os.close(descriptor)


def _kill_all(children: dict[int, int]) -> None:
    """End the workers, each of which leads a group of its own once it has begun."""
    for pid in children:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _become_worker(environ: dict[str, str], descriptors: list[int]) -> None:
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
        os.environ.clear()
        os.environ.update(environ)
        status = worker.main()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()

"""Messages between the harness and its worker processes: msgpack, each message after its length.

Not JSON: a param may be infinite.
"""

from __future__ import annotations

import struct
from typing import IO, Literal

import msgspec

from opschema_cli.verify.model import Call, Cell, Ran, Side, Target

_LENGTH = struct.Struct(">I")


class Load(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message: the op of this process. ``memory`` limits its address space in bytes; 0 does not."""

    side: Side
    op: str
    target: Target
    reference: str = ""
    memory: int = 0


class Run(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Run one cell and save its tensors in ``folder``, within ``seconds``. With ``repeats`` it is only called that many times,
    and the spread of its results is saved.
    """

    cell: Cell
    device: str
    folder: str
    seconds: float
    repeats: int = 0


class Survey(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Sent instead of :class:`Load`: import the ops of one tree one after the other, to find the missing packages."""

    targets: tuple[Target, ...]


class Surveyed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to :class:`Survey`: why targets cannot be imported, by their index, where a package is missing, and where the tree
    does not have them.
    """

    missing: dict[int, str]
    absent: dict[int, str] = {}


class Loaded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to :class:`Load`; unless ``ok``, every cell ends with this status and detail. ``schema`` is that of the op, if
    it is an operator and its calls are searched for; ``calls`` are those of its recipe, by label, and ``reference`` describes
    torch's own reference. With ``absent`` the tree does not have the op, with ``missing`` a required package is not installed.
    ``package`` is a package around the op's module whose import was slow and took most of the time.
    """

    status: Literal["ok", "raised", "refused", "died", "stalled", "failed"] = "ok"
    detail: str = ""
    seconds: dict[str, float] = {}
    schema: str = ""
    calls: dict[str, Call] = {}
    reference: str = ""
    absent: bool = False
    missing: bool = False
    package: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to :class:`Run`. With ``last``, the process ends because it cannot run further cells."""

    ran: Ran
    last: bool = False


Request = Load | Survey | Run
Reply = Loaded | Surveyed | Done


def write(stream: IO[bytes], message: Request | Reply) -> None:
    """Send a message.

    Raises:
        OSError: nobody is there to read it.
    """
    data = msgspec.msgpack.encode(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_request(stream: IO[bytes]) -> Request | None:
    """The next request; None at the end."""
    data = _read(stream)
    return None if data is None else msgspec.msgpack.decode(data, type=Request)


def read_reply(stream: IO[bytes]) -> Reply | None:
    """The next reply; None at the end, also in the midst of one."""
    data = _read(stream)
    return None if data is None else msgspec.msgpack.decode(data, type=Reply)


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None

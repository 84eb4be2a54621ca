"""The use that the C++ of a kernel makes of its arguments, as stored: plain data, so that a warm run reads no kernel.

Spans count characters of the file. What cannot be followed is lost with its reason, and never guessed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from opschema_cli.source.text import Span
from opschema_rules.pypto.facts import ScalarRead

Core = Literal["", "aic", "aiv"]
"""The core that some code is compiled for; empty for both."""

UseKind = Literal["tensor", "pointer", "number", "other"]
"""How ``args[i]`` is used: as a pointer to a tensor's description, to anything else, as a number, or passed on as it is."""

EffectKind = Literal["read", "written", "exchanged", "lost"]
"""What is done to memory. Data of other cores of the task or of other ranks passes through what is ``exchanged``: no direction
of the task follows from that.
"""


class ArgumentUse(msgspec.Struct, frozen=True, array_like=True):
    """A place that uses ``args[index]``."""

    index: int
    kind: UseKind
    span: Span
    core: Core = ""


class Effect(msgspec.Struct, frozen=True, array_like=True):
    """A place that reads or writes the memory that ``args[index]`` leads to, or where the trail ends: ``lost``, with the reason.
    ``first`` says of a read that the kernel surely does it before any of its writes there.
    """

    index: int
    kind: EffectKind
    span: Span
    core: Core = ""
    reason: str = ""
    first: bool = False


class EventFault(msgspec.Struct, frozen=True, array_like=True):
    """A call of ``wait_flag()`` (``waits``) or ``set_flag()`` with two pipes and an event that has no counterpart; ``have`` are the
    calls of the other function with them.
    """

    key: str
    waits: bool
    have: int
    span: Span


class OperandFault(msgspec.Struct, frozen=True, array_like=True):
    """An operand that is wrong, by its kind. ``exchanged``: a load from a tile or a store to one, ``name`` is the right call.
    ``overwritten``: the second of two loads into one tile. ``unused``: a tensor of the global memory that nothing uses.
    ``element``: a tensor over memory of other elements; ``name`` is its name, both types and the pointer.
    ``repeated``: an argument that is unpacked a second time, in place of the one at ``index``.
    """

    kind: Literal["exchanged", "overwritten", "unused", "element", "repeated"]
    name: str
    span: Span
    index: int = -1


class KernelCode(msgspec.Struct, frozen=True, array_like=True):
    """The arguments that a kernel uses and what it does to their memory. ``open`` says why it may use more; empty when it
    does not. ``absent`` says that it shows nothing: it has no entry and includes no code that may have one, or
    uses no argument at all; ``brief`` that memory was
    not followed. ``events`` are calls on any core that have no counterpart, ``operands`` those that are wrong, ``scalars`` are
    arguments that it reads as numbers of one type, which are only noted of kernels that are written by hand.
    """

    uses: tuple[ArgumentUse, ...] = ()
    effects: tuple[Effect, ...] = ()
    open: str = ""
    absent: bool = False
    brief: bool = False
    events: tuple[EventFault, ...] = ()
    operands: tuple[OperandFault, ...] = ()
    scalars: tuple[ScalarRead, ...] = ()

    def of_core(self, core: str) -> KernelCode:
        """The code that is compiled for one core; all of it where the core is not known."""
        if core not in ("aic", "aiv"):
            return self
        uses = tuple(item for item in self.uses if item.core in ("", core))
        effects = tuple(item for item in self.effects if item.core in ("", core))
        return KernelCode(uses, effects, self.open, self.absent, self.brief, self.events, self.operands, self.scalars)

    def effect(self, index: int, kind: EffectKind) -> Effect | None:
        """The first place that has this effect on an argument's memory."""
        found = [item for item in self.effects if item.index == index and item.kind == kind]
        return min(found, key=lambda item: item.span) if found else None

    def reads_first(self, index: int) -> bool:
        """Whether an argument's memory is surely read before it is written."""
        return any(item.index == index and item.first for item in self.effects)

    def lost(self, index: int) -> str:
        """Why it is not known what is done to an argument's memory; empty where it is."""
        found = self.effect(index, "lost")
        return self.open or (found.reason if found is not None else "")

"""How the C++ code of a kernel uses its arguments, as stored: plain data, so that a warm run reads no kernel.

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
"""How ``args[i]`` is used: as a pointer to a tensor's description, to anything else, as a number, or passed on unchanged."""

EffectKind = Literal["read", "written", "exchanged", "lost"]
"""The effect on memory. Memory that is ``exchanged`` passes data of the task's other cores or of other ranks: it does not show a
direction of the task.
"""


class ArgumentUse(msgspec.Struct, frozen=True, array_like=True):
    """A place that uses ``args[index]``; ``conditional`` if it may not be compiled, or is in a branch that may not run."""

    index: int
    kind: UseKind
    span: Span
    core: Core = ""
    conditional: bool = False


class Effect(msgspec.Struct, frozen=True, array_like=True):
    """A place that reads or writes the memory that ``args[index]`` leads to, or where it could not be followed further:
    ``lost``, with the reason. ``first`` is set for a read that is known to precede all of the kernel's writes there.
    """

    index: int
    kind: EffectKind
    span: Span
    core: Core = ""
    reason: str = ""
    first: bool = False


class EventFault(msgspec.Struct, frozen=True, array_like=True):
    """A call of ``wait_flag()`` (``waits``) or ``set_flag()`` with two pipes and an event that has no counterpart; ``have`` are
    the calls of the other function with the same pipes and event.
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
        """Return the code that is compiled for one core; all of it if the core is not known."""
        if core not in ("aic", "aiv"):
            return self
        uses = tuple(item for item in self.uses if item.core in ("", core))
        effects = tuple(item for item in self.effects if item.core in ("", core))
        return KernelCode(uses, effects, self.open, self.absent, self.brief, self.events, self.operands, self.scalars)

    def effect(self, index: int, kind: EffectKind) -> Effect | None:
        """Return the first place that has this effect on an argument's memory."""
        found = [item for item in self.effects if item.index == index and item.kind == kind]
        return min(found, key=lambda item: item.span) if found else None

    def reads_first(self, index: int) -> bool:
        """Whether an argument's memory is known to be read before it is written."""
        return any(item.index == index and item.first for item in self.effects)

    def lost(self, index: int) -> str:
        """The reason why the effects on an argument's memory are not known; empty if they are."""
        found = self.effect(index, "lost")
        return self.open or (found.reason if found is not None else "")

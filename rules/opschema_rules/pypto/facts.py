"""Submits of one orchestration source, as stored: plain data, so that a warm run parses no C++.

Spans count characters of the file. What cannot be followed is told with its reason, and never guessed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from opschema_cli.source.text import Span

Kind = Literal["in", "out", "inout", "no_dep", "scalar"]
"""The call that adds a slot: ``add_input``, ``add_output``, ``add_inout``, ``add_no_dep``, ``add_scalar``."""


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """One argument of a task's payload, in payload order.

    ``argument`` is the index of the orchestration's own tensor (``orch_args.tensor(3)``) that it is or views, -1 for any
    other tensor. ``created`` says that an output is allocated by the runtime (``add_output(create_info)``). ``count`` is
    how many scalars an ``add_scalars`` adds, -1 when that is not known; 1 for all else. ``type`` is what is known of the type of
    one scalar (:mod:`opschema_rules.pypto.cpp_scalars`).
    """

    kind: Kind
    span: Span
    argument: int = -1
    created: bool = False
    count: int = 1
    type: str = ""


class Payload(msgspec.Struct, frozen=True, array_like=True):
    """The payload of one submit: its slots, or the reason why they are not known, and the place of that."""

    slots: tuple[Slot, ...] = ()
    unresolved: str = ""
    lost_at: Span | None = None

    @property
    def tensors(self) -> tuple[Slot, ...]:
        """The slots that are tensors; scalars are not part of a signature."""
        return tuple(slot for slot in self.slots if slot.kind != "scalar")


class KernelId(msgspec.Struct, frozen=True, array_like=True):
    """A kernel that a submit names: its ``func_id``, None when that is not known, and how it is written. ``core`` is the kind
    of core that runs it (``aic``, ``aiv``), empty when the call does not say.
    """

    value: int | None
    text: str
    span: Span
    core: str = ""


class Submit(msgspec.Struct, frozen=True, array_like=True):
    """One submit call: the kernels of its task, and the payloads that it may pass.

    ``payloads`` are alternatives: one for each way through the branches before it. ``order`` counts the calls of an entry as
    they would run; ``conditional`` when it stands in a branch, ``looped`` when in a loop. Turns of a loop that can be
    counted are submits of their own where they differ. ``first`` are the orchestration's own tensors in its payloads that
    nothing has used before, whichever way was gone; ``fresh`` those that nothing may have written without having read them.
    ``absent`` when it stands under an ``#if``, and may not be compiled.
    """

    api: str
    kernels: tuple[KernelId, ...]
    payloads: tuple[Payload, ...]
    span: Span
    order: int = 0
    conditional: bool = False
    looped: bool = False
    first: tuple[int, ...] = ()
    fresh: tuple[int, ...] = ()
    absent: bool = False


class Use(msgspec.Struct, frozen=True, array_like=True):
    """One use of an orchestration's own tensor outside of a payload: it is read or written by the orchestration itself, or
    passed to what cannot be followed (``escapes``). ``conditional``, ``first`` and ``fresh`` as of a submit.
    """

    argument: int
    how: Literal["read", "written", "escapes"]
    span: Span
    order: int = 0
    conditional: bool = False
    first: bool = False
    fresh: bool = False


class Beyond(msgspec.Struct, frozen=True, array_like=True):
    """A ``get_ref(index)`` of a task's ``outputs``, of which the runtime makes ``count`` at most, if the variables of these names
    hold what they seem to: ``outputs``, ``payload`` (empty for ``alloc_tensors()``), and ``tensors`` that the payload adds as
    outputs and that are the orchestration's own. Without ``outputs`` it is a ``tensor(index)`` of a graph, which gets the tensors
    of ``payload``. ``conditional`` as of a submit.
    """

    index: int
    count: int
    span: Span
    outputs: str
    payload: str
    tensors: tuple[str, ...]
    conditional: bool = False


class Needed(msgspec.Struct, frozen=True, array_like=True):
    """An argument of the orchestration that it takes whenever it runs, if its arguments are what they seem to be."""

    kind: Literal["tensor", "scalar"]
    index: int
    span: Span


ScalarReading = Literal["float", "double", "integer", "converted"]
"""The type as which code reads a scalar: the bits of a float, or an integer, which may be ``converted`` to a float."""


class ScalarRead(msgspec.Struct, frozen=True, array_like=True):
    """A scalar that code reads, by its index, and the place of the first read."""

    index: int
    reading: ScalarReading
    span: Span


class Name(msgspec.Struct, frozen=True, array_like=True):
    """A name of the runtime that an orchestration uses: the ``member`` of a class or enumeration, or a function or variable if
    ``owner`` is empty; and where it is used first.
    """

    owner: str
    member: str
    span: Span


class Misfit(msgspec.Struct, frozen=True, array_like=True):
    """A call that cannot be right, by kind.

    ``short``: an array of ``have`` numbers is passed for ``want`` dimensions. ``swapped``: a task is submitted with its payload in
    front of the kernel. ``unsubmitted``: a payload that is declared at ``have`` and filled, and that no followed code submits.
    ``late``: something is added to a payload whose task is submitted already. ``untaken``: a variable, declared at ``have``, with
    the outputs of a task that has no others. ``unequal``: arrays of ``have`` and ``want`` numbers for one view. ``slot``: the
    timing slot ``have`` of a task.
    """

    kind: Literal["short", "swapped", "unsubmitted", "late", "untaken", "unequal", "slot"]
    name: str
    span: Span
    have: int = 0
    want: int = 0


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """An orchestration function, including the submits of functions that it calls.

    ``arguments`` are the indexes of its own tensors that it takes (``orch_args.tensor(i)``) with where each is taken first,
    ``certain`` those that it takes under no condition but those of loops, ``needed`` the arguments that it takes whenever it runs,
    ``beyond`` the outputs that it takes of tasks that have fewer (:mod:`opschema_rules.pypto.cpp_plain` says which of the latter
    two are sure); ``expected`` is ``expected_arg_count`` of the configuration beside it, -1 without. ``unresolved`` says why it may
    submit more than is known; empty when it does not. ``names`` are those that the runtime's headers or the file have to declare,
    ``misfits`` calls that cannot be right, ``scalars`` its own scalars that it reads as one type.
    """

    name: str
    span: Span
    submits: tuple[Submit, ...]
    uses: tuple[Use, ...] = ()
    arguments: tuple[tuple[int, Span], ...] = ()
    expected: int = -1
    unresolved: str = ""
    beyond: tuple[Beyond, ...] = ()
    needed: tuple[Needed, ...] = ()
    names: tuple[Name, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    scalars: tuple[ScalarRead, ...] = ()
    certain: tuple[tuple[int, Span], ...] = ()


class Orchestration(msgspec.Struct, frozen=True, array_like=True):
    """All entries of a file: its exported functions (``extern "C"``) that take the orchestration's arguments."""

    entries: tuple[Entry, ...] = ()

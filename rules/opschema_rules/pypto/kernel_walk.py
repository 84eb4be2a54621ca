"""Follows a kernel's arguments through casts, pointers, views and the functions of its file, to what reads or writes memory.

Order does not matter: a variable may lead to all that is ever assigned to it. An access through one that may lead to several
arguments says nothing of any of them (``lost``), and neither does a call of what is not in the file.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.preprocessor import Condition
from opschema_cli.source.text import Span
from opschema_rules.pypto.kernel_facts import ArgumentUse, Effect, EffectKind, KernelCode, UseKind
from opschema_rules.pypto.kernel_order import Body, Spot, in_order
from opschema_rules.pypto.kernel_pieces import Pieces, parameters_of
from opschema_rules.pypto.kernel_text import DEAD, Function, KernelText, both, is_of_core, one_core
from opschema_rules.pypto.kernel_tokens import Tokens

Level = Literal["args", "slot", "tensor", "memory"]
"""The kinds of values: the list of arguments, one of them as a number, a pointer to a tensor's description, or one into its
memory.
"""

Ref: TypeAlias = "tuple[Level, int]"
Refs: TypeAlias = "frozenset[Ref]"

NOTHING: Refs = frozenset()
ARGS: Refs = frozenset({("args", -1)})
ENTRY = "kernel_entry"
"""The function that the runtime calls (simpler, ``kernel.h``)."""

MAX_STEPS = 30_000
"""Maximum number of steps to follow in one file: statements, twenty tokens of a long one, or a search in 20,000 characters. The
largest kernel of simpler takes 3,200.
"""

MAX_DEPTH = 60
"""Maximum nesting of expressions and statements to follow."""

MAX_CALLS = 400
"""Maximum number of calls with different arguments to follow in one file."""

MAX_MACROS = 200
"""Maximum number of macros of a file to follow. Simpler's kernels have up to ten."""

MAX_NESTING = 30
"""Maximum depth of calls to follow."""

_POINTER_CAST = re.compile(r"\*\s*(?:__\w+__\s*)?[>)]")


class Call(msgspec.Struct, frozen=True):
    """A function with its arguments: where each parameter leads, the numbers among the arguments, the core, whether the call is in
    a branch, and whether it may not be compiled.
    """

    function: tuple[str, int]
    arguments: tuple[Refs, ...]
    numbers: tuple[tuple[str, int], ...]
    core: str
    branches: bool
    is_absent: bool


class Frame(msgspec.Struct):
    """A function that is followed. ``values`` are where variables lead, by the block that declares them; ``queue`` holds the
    pieces to examine.
    """

    function: Function
    pieces: Pieces
    core: str
    numbers: Mapping[str, int]
    values: dict[tuple[int, str], Refs] = msgspec.field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    queue: list[int] = msgspec.field(default_factory=list)
    searched: int = 0
    waiting: set[int] = msgspec.field(default_factory=set)
    returned: Refs = NOTHING

    def push(self, name: str, refs: Refs) -> None:
        """Queue the statements that name a variable; if that is only a number, those that make a pointer."""
        numbers = all(level == "slot" for level, _ in refs)
        self.searched += self.pieces.length
        for index in self.pieces.naming(name):
            if index not in self.waiting and not (numbers and not _POINTER_CAST.search(self.pieces.piece(index).text)):
                self.waiting.add(index)
                heapq.heappush(self.queue, index)

    def find(self, name: str, block: int) -> tuple[int, str] | None:
        """Return the variable with that name that a block sees."""
        around = self.pieces.around
        while block >= 0:
            if (block, name) in self.values:
                return block, name
            block = around[block]
        return (-1, name) if (-1, name) in self.values else None


Apply: TypeAlias = "Callable[[KernelWalk, Frame, int, Tokens], None]"
"""Follows one statement, of a block; see :mod:`opschema_rules.pypto.kernel_statements`."""


class KernelWalk:
    """One file, followed from its entry."""

    def __init__(self, file: KernelText, apply: Apply, *, follows_memory: bool) -> None:
        self.file = file
        self._apply = apply
        self.follows_memory = follows_memory
        self.uses: dict[ArgumentUse, None] = {}
        self.effects: dict[Effect, dict[Spot, None]] = {}
        self._bodies: list[Body] = []
        self._spot = Spot(0, 0)
        self.open = ""
        self._is_moved = False
        self.steps = 0
        self.core = ""
        self.branches = 0
        self._is_absent = False
        self._sure: set[Effect] = set()
        self._given: tuple[Condition, ...] = ()
        self._known: dict[Call, Refs] = {}
        self._pieces: dict[int, Pieces] = {}
        self._tokens: dict[tuple[int, int], Tokens] = {}
        self._depth = 0

    def run(self, entry: Function) -> KernelCode:
        """Follow one definition of the entry. The conditions under which it is compiled hold everywhere."""
        self._given = self.file.conditions(entry.body_at)
        self.enter(entry, (ARGS,), {})
        effects = in_order(self.effects, self._bodies, self.file)
        return KernelCode(() if self._is_moved else tuple(self.uses), tuple(self._settled(effects)), self.open)

    def _settled(self, effects: Iterable[Effect]) -> Iterator[Effect]:
        """Yield the effects; what may not be compiled is lost, unless other code has the same effect."""
        shown = {(item.index, item.kind, item.core) for item in self._sure}
        for item in effects:
            same = {(item.index, item.kind, core) for core in (item.core, "")}
            is_sure = item.kind == "lost" or not shown.isdisjoint(same)
            yield item if is_sure else Effect(item.index, "lost", item.span, item.core, "it may not be compiled")

    # -- notes ---------------------------------------------------------------------------------------------------------

    def lose_all(self, reason: str) -> None:
        """Record that the kernel may use any argument."""
        self.open = self.open or reason

    def move(self, refs: Refs) -> None:
        """Record that a pointer may be moved; for one to the list of arguments, no index is known then."""
        if any(level == "args" for level, _ in refs):
            self._is_moved = True
            self.lose_all("its arguments are reached by an offset")

    def use(self, index: int, kind: UseKind, span: Span) -> None:
        """Record a use of an argument."""
        conditional = self.branches > 0 or self._may_be_absent(span.start)
        self.uses[ArgumentUse(index, kind, span, one_core(self.core), conditional)] = None

    def _may_be_absent(self, offset: int) -> bool:
        """Whether a character of the followed code may not be compiled on its core."""
        conditions = self.file.conditions(offset)
        return self._is_absent or not all(item in self._given or is_of_core(item) for item in conditions)

    def effect(self, refs: Refs, kind: EffectKind, span: Span, reason: str = "") -> None:
        """Record an access to the memory of an argument."""
        found = {index for level, index in refs if level in ("tensor", "memory")}
        if len(found) > 1 and kind != "lost":
            kind, reason = "lost", "a variable leads to several arguments"
        for index in sorted(found):
            effect = Effect(index, kind, span, one_core(self.core), reason)
            self.effects.setdefault(effect, {})[self._spot] = None
            if not self._may_be_absent(span.start):
                self._sure.add(effect)

    def lose(self, refs: Refs, reason: str, span: Span) -> None:
        """Record that unfollowed code has these."""
        if any(level == "args" for level, _ in refs):
            self.lose_all(reason)
        slots: set[Ref] = {("memory", index) for level, index in refs if level == "slot"}
        self.effect(refs | slots, "lost", span, reason)

    def followed(self, refs: Refs) -> Refs:
        """Return those that are followed."""
        if self.follows_memory or not refs:
            return refs
        return frozenset(ref for ref in refs if ref[0] in ("args", "slot"))

    # -- functions -----------------------------------------------------------------------------------------------------

    def enter(self, function: Function, arguments: tuple[Refs, ...], numbers: Mapping[int, int]) -> Refs:
        """Follow a function with its arguments. Return where its result leads."""
        parameters = parameters_of(function)
        takes_all = any(("args", -1) in refs for refs in arguments)
        known = {parameters[at].name: number for at, number in numbers.items() if at < len(parameters) and takes_all}
        core = both(self.core, function.core)
        numbered = tuple(sorted(known.items()))
        place = function.name, function.body_at
        call = Call(place, arguments, numbered, core, self.branches > 0, self._is_absent)
        everything = frozenset(ref for refs in arguments for ref in refs)
        if call in self._known:
            return self._known[call]
        packed = any(item.is_pack for item in parameters) or len(arguments) > len(parameters)
        if packed or len(self._known) >= MAX_CALLS or self._depth >= MAX_NESTING:
            self.lose(
                everything, f"`{function.name}()` is not followed", Span(function.parameters_at, function.body_at)
            )
            return NOTHING
        self._known[call] = NOTHING
        frame = Frame(function, self._pieces_of(function), core, known)
        frame.parameters = frozenset(item.name for item in parameters)
        frame.references = frozenset(item.name for item in parameters if item.is_reference)
        for parameter, refs in zip(parameters, arguments, strict=False):
            refs = self.followed(refs)
            if refs and parameter.name:
                frame.values[-1, parameter.name] = refs
                frame.push(parameter.name, refs)
        self._depth += 1
        self._bodies.append(Body(frame.pieces, self._spot if self._bodies else None))
        self._follow(frame, len(self._bodies) - 1)
        self._lose_in_macros(frame)
        self._depth -= 1
        self._known[call] = frame.returned
        return frame.returned

    def _follow(self, frame: Frame, number: int) -> None:
        outer, spot, branches, is_absent = self.core, self._spot, self.branches, self._is_absent
        while frame.queue:
            index = heapq.heappop(frame.queue)
            frame.waiting.discard(index)
            tokens = self._tokens_of(frame, index)
            self.steps += 1 + len(tokens) // 20 + frame.searched // 20_000
            frame.searched = 0
            if self.steps > MAX_STEPS:
                self.lose_all("too many statements concern its arguments")
                break
            piece = frame.pieces.piece(index)
            self.core = both(frame.core, piece.core)
            self._spot = Spot(number, index)
            self.branches, self._is_absent = branches + frame.pieces.is_branch(index), is_absent
            self._is_absent = self._may_be_absent(piece.code_at)
            if self.core != DEAD:
                self._apply(self, frame, piece.block, tokens)
        self.core, self._spot, self.branches, self._is_absent = outer, spot, branches, is_absent

    def _lose_in_macros(self, frame: Frame) -> None:
        """Lose the variables that occur in the bodies of macros used by a function."""
        if len(self.file.macros) > MAX_MACROS:
            self.lose_all("its file defines too many macros")
            return
        for name in self.file.macros:
            hidden = self.file.words_of(name)
            refs = frozenset(
                ref for (_, variable), found in frame.values.items() if variable in hidden for ref in found
            )
            uses = frame.pieces.naming(name) if refs else ()
            for index in uses[:1]:
                start = frame.pieces.piece(index).start
                self.lose(refs, f"the macro `{name}` uses it", Span(start, start))

    def _pieces_of(self, function: Function) -> Pieces:
        key = function.body_at
        if key not in self._pieces:
            self._pieces[key] = Pieces(function)
        return self._pieces[key]

    def _tokens_of(self, frame: Frame, index: int) -> Tokens:
        key = (frame.function.body_at, index)
        if key not in self._tokens:
            piece = frame.pieces.piece(index)
            self._tokens[key] = Tokens(piece.text, piece.start)
        return self._tokens[key]

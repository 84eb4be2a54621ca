"""Calls in a kernel: functions of its file, instructions, and unknown functions."""

from __future__ import annotations

from itertools import zip_longest

from opschema_cli.source.text import Span
from opschema_rules.pypto.kernel_expressions import ARITHMETIC, Expressions
from opschema_rules.pypto.kernel_operations import (
    AS_NUMBER,
    CONTEXT,
    COPIES_BYTES,
    FIRST_IS_WRITTEN,
    MAKES_GLOBAL,
    NO_EFFECT,
    OF_MEMORY,
    PIPE,
)
from opschema_rules.pypto.kernel_pieces import parameters_of
from opschema_rules.pypto.kernel_text import Function
from opschema_rules.pypto.kernel_tokens import is_name
from opschema_rules.pypto.kernel_walk import NOTHING, Ref, Refs


class Calls(Expressions):
    """The calls in the expressions of one piece."""

    def call(self, name: str, at: int, bracket: int) -> Refs:
        """Follow a call, once. Return where its result leads."""
        if bracket not in self.called:
            self.called[bracket] = self._call(name, at, bracket)
        return self.called[bracket]

    def _call(self, name: str, at: int, bracket: int) -> Refs:
        tokens = self.tokens
        pairs = list(tokens.split(bracket + 1, tokens.partner[bracket]))
        values = [self._given(first, last) for first, last in pairs]
        places = [self.place(first, last) for first, last in pairs]
        refs = frozenset(ref for value in values for ref in value)
        if not (refs or any(places)) or NO_EFFECT.match(name):
            return NOTHING
        span = tokens.span(at, tokens.partner[bracket] + 1)
        if FIRST_IS_WRITTEN.match(name):
            self._instruction(name, [values[0] or places[0], *values[1:]], span)
            return NOTHING
        if name == "TASSIGN" and len(pairs) > 1 and self._gives_address(pairs[0], values[1], span):
            return NOTHING
        kinds = OF_MEMORY.get(name)
        if kinds is not None and all(not value or kind for value, kind in zip_longest(values, kinds)):
            for value, kind in zip(values, kinds, strict=False):
                self.walk.effect(value, kind or "lost", span)
            return NOTHING
        if name in AS_NUMBER:
            self.narrow(refs, [name])
            return NOTHING
        if self._is_view(name):
            return refs
        functions = self.walk.file.functions(name)
        if functions and self.frame.find(name, self.block) is None:
            self._refer(functions, places, span)
            return self._enter(name, pairs, values, span)
        named = NOTHING if ARITHMETIC.fullmatch(name) else frozenset[Ref]().union(*places)
        self.unfollowed(refs | named, f"`{name}()` is not in the file", at, bracket, name)
        return NOTHING

    def _gives_address(self, target: tuple[int, int], refs: Refs, span: Span) -> bool:
        """Follow ``TASSIGN(variable, address)``. Return whether the call is one."""
        first, last = target
        name = self.tokens.words[first]
        if last != first + 1 or not is_name(name):
            return False
        variable = self.frame.find(name, self.block) or (self.block_of(name), name)
        if not refs:
            self.abandon(variable, "it is given another address", span)
        self.bind(variable, refs)
        return True

    def _given(self, first: int, last: int) -> Refs:
        """Return where an argument leads; the target of a pointer (``*target``) may be written through a reference."""
        is_target = last == first + 2 and self.tokens.words[first] == "*"
        if is_target and (refs := self.value(first + 1, last)) and all(level != "args" for level, _ in refs):
            return refs
        return self.value(first, last)

    def _is_view(self, name: str) -> bool:
        """Whether a name is or aliases a view of memory, or a pipe through it."""
        alias = self.walk.file.aliases.get(name, "")
        return name == MAKES_GLOBAL or MAKES_GLOBAL in alias or PIPE.search(f"{name} {alias}") is not None

    def _instruction(self, name: str, values: list[Refs], span: Span) -> None:
        written = values[0]
        atomic = self._is_atomic(span)
        if written and atomic is None:
            self.walk.lose(written, "it may be stored to atomically", span)
        elif written:
            self.walk.effect(written, "written", span)
        if written and atomic:
            self.walk.effect(written, "read", span)
        for value in values[1:]:
            self.walk.effect(value, "read", span)
            if COPIES_BYTES.match(name):
                self.walk.lose(frozenset(ref for ref in value if ref[0] == "slot"), f"`{name}()` copies it", span)

    def _is_atomic(self, span: Span) -> bool | None:
        """Whether a store combines its value with the present one, by its template parameters; None if that is not known."""
        file = self.walk.file
        if file.has_atomic_mode:
            return None
        parameters = file.text[span.start : span.end].partition("(")[0].partition("<")[2]
        if "AtomicType::" in parameters:
            return "AtomicType::AtomicNone" not in parameters
        return None if parameters and file.has_atomics else False

    def _refer(self, functions: list[Function], places: list[Refs], span: Span) -> None:
        """Lose the memory that functions of the file take by reference."""
        for function in functions:
            for parameter, place in zip(parameters_of(function), places, strict=False):
                if parameter.is_reference or parameter.is_pack:
                    self.walk.lose(place, "a reference to it is passed on", span)

    def _enter(self, name: str, pairs: list[tuple[int, int]], values: list[Refs], span: Span) -> Refs:
        functions = self.walk.file.functions(name)
        whole = any(("args", -1) in value for value in values)
        numbers = {at: index for at, pair in enumerate(pairs) if whole and (index := self._index(*pair)) is not None}
        cores = [item.core for item in functions]
        if len(functions) > 1 and (len(set(cores)) < len(cores) or "" in cores):
            refs = frozenset(ref for value in values for ref in value)
            self.walk.lose(refs, f"`{name}()` has several definitions", span)
            return NOTHING
        found: Refs = NOTHING
        for function in functions:
            found |= self.walk.enter(function, tuple(values), numbers)
        return found

    def unfollowed(self, refs: Refs, reason: str, at: int, bracket: int, name: str = "") -> None:
        """Record that a call which is not followed takes these."""
        if CONTEXT.match(name):
            refs = frozenset(ref for ref in refs if ref[0] != "args")
        self.walk.lose(refs, reason, self.tokens.span(at, self.tokens.partner[bracket] + 1))

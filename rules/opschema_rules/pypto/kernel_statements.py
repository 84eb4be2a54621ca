"""One statement of a kernel: where the variables that it declares lead, and the memory that it reads or writes."""

from __future__ import annotations

import re

from opschema_rules.pypto.kernel_calls import Calls
from opschema_rules.pypto.kernel_expressions import ARITHMETIC
from opschema_rules.pypto.kernel_pieces import REACH
from opschema_rules.pypto.kernel_tokens import ASSIGNING, Tokens, is_name
from opschema_rules.pypto.kernel_variables import Result, pointers
from opschema_rules.pypto.kernel_walk import NOTHING, Frame, KernelWalk, Refs

_SKIPPED = frozenset(
    ("using", "typedef", "template", "goto", "break", "continue", "public", "private", "static_assert")
)
_HEADS = frozenset(("if", "while", "for", "switch"))
_BRANCHES = frozenset(("if", "switch"))
_LEADING = frozenset(("do", "constexpr"))


class Statement(Calls):
    """Follows one piece of a function."""

    def follow(self) -> None:
        """Apply the statement."""
        start = 0
        closed = set(self.tokens.partner.values())
        for at, word in enumerate(self.tokens.words):
            if word == ")" and at not in closed:  # the end of a loop's head, which begins in another piece
                self._statement(start, at)
                start = at + 1
            elif word == "[" and (close := self.tokens.partner.get(at)) is not None:
                self._parameters(close + 1)
        self._statement(start, len(self.tokens))

    def _parameters(self, at: int) -> None:
        """Declare the parameters of a lambda, which may have the names of variables around it."""
        close = self.tokens.partner.get(at) if self.tokens.word(at, len(self.tokens)) == "(" else None
        for first, last in self.tokens.split(at + 1, close) if close is not None else ():
            declared = self.tokens.declared(first, last)
            if declared is not None:
                outer = self.frame.find(declared[0], self.block)
                self.abandon(outer, "a parameter of a lambda has its name", self.tokens.span(first, last))

    def _statement(self, start: int, end: int, *, conditional: bool = False) -> None:
        self.walk.branches += conditional
        if not self.sinks():
            self._one(start, end)
        self.rises()
        self.walk.branches -= conditional

    def _one(self, start: int, end: int) -> None:
        words = self.tokens.words
        while start < end and words[start] in _LEADING:
            start += 1
        if start >= end or words[start] in _SKIPPED:
            return
        word = words[start]
        if word in _HEADS:
            at = start + 1 + (self.tokens.word(start + 1, end) == "constexpr")
            close = self.tokens.partner.get(at)
            self._statement(at + 1, close if close is not None and close < end else end)
            if close is not None and close < end:
                self._statement(close + 1, end, conditional=word in _BRANCHES)
        elif word == "else":
            self._statement(start + 1, end, conditional=True)
        elif word == "return":
            self.frame.returned |= self.value(start + 1, end)
            if self._returns_reference():
                self.walk.lose(
                    self.place(start + 1, end), "a reference to it is returned", self.tokens.span(start, end)
                )
        elif word == "case" or word == "default":
            at = self.tokens.find(frozenset(":"), start, end)
            self._statement(at + 1 if at >= 0 else end, end)
        else:
            declares = False
            for first, last in self.tokens.split(start, end):
                declares = self._part(first, last, declares)

    def _part(self, start: int, end: int, declares: bool) -> bool:
        """Follow one of the declarators or expressions between commas. Return whether it declares something."""
        tokens = self.tokens
        at = tokens.find(ASSIGNING, start, end)
        head = at if at >= 0 else end
        declared = tokens.declared(start, head)
        if declares:  # the next name of a declaration: ``int *a = x, *b = y``
            names = [index for index in range(start, head) if is_name(tokens.words[index])]
            declared = (tokens.words[names[0]], names[0] + 1) if names else None
        if declared is None:
            if at >= 0:
                self.assign(start, at, end)
            else:
                self.value(start, end)
            return False
        name, behind = declared
        self._declare(name, behind, head, at, end)
        return True

    def _declare(self, name: str, behind: int, head: int, at: int, end: int) -> None:
        tokens = self.tokens
        following = tokens.word(behind, head)
        refs: Refs = NOTHING
        if at >= 0:
            refs = self.value(at + 1, end)
        elif following == "(" and behind in tokens.partner:
            refs = self._constructed(behind)
        elif following == ":":
            refs = self.value(behind + 1, end)
        if not refs and at >= 0 and not {"&", "&&", "*"}.isdisjoint(tokens.words[:head]):
            self.walk.lose(self.place(at + 1, end), "a reference to it is kept", tokens.span(at, end))
        if following == "[" and refs:
            self.walk.lose(refs, "an array takes it", tokens.span(behind, behind + 1))
            return
        self.narrow(refs, tokens.words[: behind - 1])
        outer = self.frame.find(name, self.block)
        if not refs and outer is not None and outer[0] != self.block:
            self.abandon(outer, "another variable has its name", tokens.span(behind - 1, behind))
        self.bind((self.block, name), refs)

    def _returns_reference(self) -> bool:
        """Whether the function returns a reference."""
        function = self.frame.function
        head = function.file.text[max(0, function.parameters_at - REACH) : function.parameters_at]
        return "&" in re.split(r"[;{}]", head)[-1]

    def _constructed(self, bracket: int) -> Refs:
        """Return where the constructor arguments of an object lead: ``GlobalData g(pointer, shape)``."""
        refs: Refs = NOTHING
        for first, last in self.tokens.split(bracket + 1, self.tokens.partner[bracket]):
            refs |= self.value(first, last)
            if ARITHMETIC.search(" ".join(self.tokens.words[:bracket])) is None or "&" in self.tokens.words[:bracket]:
                self.walk.lose(self.place(first, last), "an object takes it", self.tokens.span(first, last))
        if refs and not self.walk.file.types.isdisjoint(self.tokens.words[:bracket]):
            self.walk.lose(refs, "an object takes it", self.tokens.span(bracket, bracket + 1))
            return NOTHING
        return refs

    def assign(self, start: int, at: int, end: int) -> Refs:
        """Follow ``a = b`` and ``a[i] += b``."""
        refs = self.value(at + 1, end)
        target, behind = self.unary(start, at)
        compound = self.tokens.words[at] != "="
        if compound:
            self.walk.move(target.refs)
        if behind < at:  # not an expression that can be assigned to
            self.read(target, start, at)
            refs |= self.place(at + 1, end)
            self.walk.lose(refs, "the target of its assignment is not followed", self.tokens.span(start, at))
        elif target.place:
            self.walk.effect(target.place, "written", self.tokens.span(start, at))
            if compound:
                self.walk.effect(target.place, "read", self.tokens.span(start, at))
            self.walk.lose(pointers(refs), "it is stored in memory", self.tokens.span(start, at))
        elif refs:
            self._store(start, at, refs, target)
        elif not compound and at == start + 1 and is_name(self.tokens.words[start]):
            variable = self.frame.find(self.tokens.words[start], self.block)
            self.abandon(variable, "a variable that holds it is assigned another value", self.tokens.span(start, at))
        return refs

    def _store(self, start: int, at: int, refs: Refs, target: Result) -> None:
        """Store a value in a variable, or in a field of one."""
        name = self.tokens.words[start]
        local = self.frame.find(name, self.block)
        if at == start + 1 and is_name(name):
            known = local is not None or self.declares(name)
            if name in self.frame.references or not known:
                kept = refs if not known else pointers(refs)
                self.walk.lose(kept, "it outlives the function", self.tokens.span(start, at))
            self.bind(local or (-1 if name in self.frame.parameters else self.block_of(name), name), refs)
        elif not pointers(refs) and is_name(name) and not self.walk.file.has_pointers_in_unions:
            self.bind(local or (self.block_of(name), name), refs)
        else:
            self.walk.lose(refs, "an object takes it", self.tokens.span(start, at))


def apply_statement(walk: KernelWalk, frame: Frame, block: int, tokens: Tokens) -> None:
    """Follow one piece of a function."""
    Statement(walk, frame, block, tokens).follow()

"""Expressions in a kernel: the arguments that they lead to, and the memory that they read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from opschema_rules.pypto.kernel_facts import UseKind
from opschema_rules.pypto.kernel_operations import HANDLE, MEMORY, SHAPES, TENSOR
from opschema_rules.pypto.kernel_tokens import ASSIGNING, is_name
from opschema_rules.pypto.kernel_variables import WIDE, Result, Variables
from opschema_rules.pypto.kernel_walk import NOTHING, Refs

_CASTS = frozenset(("reinterpret_cast", "static_cast", "const_cast", "dynamic_cast", "bit_cast"))
ARITHMETIC = re.compile(
    r"\b(?:bool|char|short|int|signed|unsigned|float|double|half|bfloat16\w*|float\d+\w*|u?int\d+(?:_t)?|hifloat\w*)\b"
)
"""Number types."""

MAX_ALIASES = 4
"""Maximum length of a chain of type aliases to follow."""

_UNREAD = frozenset(("sizeof", "decltype", "alignof", "typeid", "noexcept"))
_QUESTION, _COLON = frozenset("?"), frozenset(":")
_MULTIPLYING = frozenset(("*", "/", "%"))
_SHORT_CIRCUIT = frozenset(("&&", "||"))
_COMPARING = frozenset(("==", "!=", "<=", ">=", "&&", "||", "<", ">", "|", "^", "<<", "&"))


class Expressions(Variables, ABC):
    """The expressions of one piece."""

    def value(self, start: int, end: int) -> Refs:
        """Return where the value of an expression leads."""
        if end - start == 1:
            variable = self.frame.find(self.tokens.words[start], self.block)
            return self.frame.values[variable] if variable is not None else NOTHING
        found = NOTHING if self.sinks() else self._value(start, end)
        self.rises()
        return found

    def _value(self, start: int, end: int) -> Refs:
        tokens = self.tokens
        at = tokens.find(ASSIGNING, start, end)
        if at > start:
            return self.assign(start, at, end)
        question = tokens.find(_QUESTION, start, end)
        colon = tokens.find(_COLON, question, end) if question > start else -1
        if question > start and colon > 0:
            self.value(start, question)
            self.walk.branches += 1
            refs = self.value(question + 1, colon) | self.value(colon + 1, end)
            self.walk.branches -= 1
            return refs
        return self._sum(start, end)

    @abstractmethod
    def assign(self, start: int, at: int, end: int) -> Refs:
        """Follow an assignment."""

    @abstractmethod
    def call(self, name: str, at: int, bracket: int) -> Refs:
        """Follow a call. Return where its result leads."""

    @abstractmethod
    def unfollowed(self, refs: Refs, reason: str, at: int, bracket: int, name: str = "") -> None:
        """Record that a call which is not followed takes these."""

    def _sum(self, start: int, end: int) -> Refs:
        """Follow operands and the operators between them: an address and numbers added to it."""
        refs, term, at, is_number, is_product, is_sum = NOTHING, NOTHING, start, False, False, False
        branches = self.walk.branches
        while at < end:
            result, behind = self.unary(at, end)
            term |= self.read(result, at, behind)
            at = max(behind, at + 1)
            word = self.tokens.word(at, end)
            if word in _MULTIPLYING:
                is_product = True
            elif word:
                refs |= NOTHING if is_product else term
                term, is_product = NOTHING, False
                is_number = is_number or word in _COMPARING
                is_sum = is_sum or word in ("+", "-")
                self.walk.branches += word in _SHORT_CIRCUIT
            at += word in _MULTIPLYING or word in _COMPARING or word in ("+", "-", ",", "?", ":")
        self.walk.branches = branches
        refs |= NOTHING if is_product else term
        if is_sum and not is_number:
            self.walk.move(refs)
        return NOTHING if is_number else refs

    def place(self, start: int, end: int) -> Refs:
        """Return the memory of an expression such as ``x[3]``, which may be written through a reference."""
        if end - start < 2:
            return NOTHING
        result, behind = self.unary(start, end)
        return result.place if behind == end else NOTHING

    def read(self, result: Result, first: int, behind: int) -> Refs:
        """Use the value of a result: its memory is read."""
        if result.place:
            self.walk.effect(result.place, "read", self.tokens.span(first, behind))
        return result.refs

    def unary(self, at: int, end: int) -> tuple[Result, int]:
        """Follow an operand with its prefix operators. Return it with the index of the next token."""
        found = (Result(), end) if self.sinks() else self._unary(at, end)
        self.rises()
        return found

    def _unary(self, at: int, end: int) -> tuple[Result, int]:
        word = self.tokens.word(at, end)
        if word == "*":
            inner, behind = self.unary(at + 1, end)
            refs = self.read(inner, at, behind)
            if any(level == "args" for level, _ in refs):
                self.walk.use(0, "other", self.tokens.span(at, behind))
                return Result(frozenset({("slot", 0)})), behind
            self._lose_numbers(refs, at, behind)
            is_tensor = any(level == "tensor" for level, _ in refs)
            return (Result(refs) if is_tensor else Result(place=_memory(refs))), behind
        if word == "&":
            inner, behind = self.unary(at + 1, end)
            self.walk.move(inner.refs)
            return Result(inner.refs | inner.place), behind
        if word in ("!", "~", "-", "+"):
            inner, behind = self.unary(at + 1, end)
            self.read(inner, at, behind)
            return Result(), behind
        if word in ("++", "--"):
            inner, behind = self.unary(at + 1, end)
            self._counted(inner, at, behind)
            return inner, behind
        result, behind = self._primary(at, end)
        return self._postfix(result, at, behind, end)

    def _counted(self, result: Result, at: int, behind: int) -> None:
        """Record the effect of ``++`` and ``--``."""
        self.walk.move(result.refs)
        for kind in ("read", "written") if result.place else ():
            self.walk.effect(result.place, kind, self.tokens.span(at, behind))

    def _primary(self, at: int, end: int) -> tuple[Result, int]:
        tokens = self.tokens
        word = tokens.word(at, end)
        if word == "(" and at in tokens.partner:
            return self._bracket(at, end)
        if word == "[" and at in tokens.partner:  # a lambda: its body is seen as statements of the function
            behind = tokens.partner[at] + 1
            return Result(), tokens.partner.get(behind, behind - 1) + 1
        if word in _CASTS:
            angle = tokens.behind_angle(at + 1, end)
            close = tokens.partner.get(angle)
            if angle > at + 1 and close is not None:
                kind = " ".join(tokens.words[at + 2 : angle - 1])
                return Result(self._cast(kind, self._argument(angle + 1, close), at, close + 1)), close + 1
            return Result(), at + 1
        if word in _UNREAD:
            return Result(), tokens.partner.get(at + 1, at) + 1
        if word and is_name(word):
            return self._named(at, end)
        return Result(), at + 1

    def _bracket(self, at: int, end: int) -> tuple[Result, int]:
        tokens, close = self.tokens, self.tokens.partner[at]
        following = tokens.word(close + 1, end)
        is_operand = is_name(following) or following in ("(", "*", "&") or following.isdigit()
        is_cast = (tokens.is_type(at + 1, close) and is_operand) or (
            is_name(following) and close == at + 2 and is_name(tokens.words[at + 1])
        )
        if is_cast:
            if tokens.words[at + 1 : close] == ["void"]:
                return Result(), self.unary(close + 1, end)[1]
            inner, behind = self.unary(close + 1, end)
            refs = self.read(inner, at, behind)
            return Result(self._cast(" ".join(tokens.words[at + 1 : close]), refs, at, behind)), behind
        first, behind = self.unary(at + 1, close) if tokens.word(at + 1, close) else (Result(), close)
        if behind == close:
            return first, close + 1
        self.read(first, at, behind)
        return Result(self.value(at + 1, close)), close + 1

    def _cast(self, kind: str, refs: Refs, at: int, behind: int) -> Refs:
        """Follow a cast; a value cast to an unknown type is lost."""
        kind = self._spelled_out(kind)
        if refs and "*" not in kind and not WIDE.search(kind) and not ARITHMETIC.search(kind):
            self.walk.lose(refs, f"`{kind}` is not known", self.tokens.span(at, behind))
            return NOTHING
        if any(level == "args" for level, _ in refs) and "*" in kind and not WIDE.search(kind):
            self.walk.lose_all(f"its arguments are taken for `{kind}`")
        found = set(refs)
        for ref in refs:
            level, index = ref
            if level == "slot":
                use = _use_of(kind)
                self.walk.use(index, use, self.tokens.span(at, behind))
                found.discard(ref)
                if use == "tensor":
                    found.add(("tensor", index))
                elif use == "pointer":
                    found.add(("memory", index))
                elif WIDE.search(kind):
                    found.add(ref)
            elif level == "tensor" and "*" in kind and not TENSOR.search(kind):
                found.discard(ref)
                found.add(("memory", index))
        return frozenset(found)

    def _spelled_out(self, kind: str) -> str:
        """Return a type with the aliases of the file replaced."""
        aliases = self.walk.file.aliases
        for _ in range(MAX_ALIASES if aliases else 0):
            words = [aliases.get(word, word).strip() for word in kind.split()]
            if words == kind.split():
                break
            kind = " ".join(words)
        return kind

    def _argument(self, start: int, end: int) -> Refs:
        return self.value(start, end)

    def _named(self, at: int, end: int) -> tuple[Result, int]:
        tokens = self.tokens
        name, behind = tokens.behind_name(at, end)
        if tokens.word(behind, end) == "(" and behind in tokens.partner:
            return Result(self.call(name, at, behind)), tokens.partner[behind] + 1
        if behind > at + 1:
            return Result(), behind
        variable = self.frame.find(name, self.block)
        return Result(self.frame.values[variable] if variable is not None else NOTHING), behind

    # -- what follows an operand ---------------------------------------------------------------------------------------

    def _postfix(self, result: Result, first: int, at: int, end: int) -> tuple[Result, int]:
        tokens = self.tokens
        while at < end:
            word = tokens.words[at]
            if word == "[" and at in tokens.partner:
                result = self._item(result, first, at)
                at = tokens.partner[at] + 1
            elif word in (".", "->") and at + 1 < end:
                result, at = self._member(result, first, at, end)
            elif word == "(" and at in tokens.partner:
                self.unfollowed(self._values(at) | result.refs, "the called function is not followed", first, at)
                result, at = Result(), tokens.partner[at] + 1
            elif word in ("++", "--"):
                self._counted(result, first, at + 1)
                at += 1
            else:
                break
        return result, at

    def _item(self, result: Result, first: int, at: int) -> Result:
        close = self.tokens.partner[at]
        self.value(at + 1, close)
        if any(level == "args" for level, _ in result.refs):
            index = self._index(at + 1, close)
            if index is None:
                self.walk.lose_all("an index into its arguments is not known")
                return Result()
            self.walk.use(index, "other", self.tokens.span(first, close + 1))
            return Result(frozenset({("slot", index)}))
        if any(level == "tensor" for level, _ in result.refs):
            return result
        self._lose_numbers(result.refs, first, close + 1)
        memory = _memory(result.refs)
        return Result(place=memory | result.place)

    def _lose_numbers(self, refs: Refs, first: int, behind: int) -> None:
        """Lose numeric arguments that are part of the following code, and one in an object that is used as a pointer."""
        numbers = frozenset(ref for ref in refs if ref[0] == "slot")
        self.walk.lose(numbers, "an object that holds it is used as a pointer", self.tokens.span(first, behind))

    def _index(self, start: int, end: int) -> int | None:
        """Return the value of an index: a literal, a constant, or a sum of these."""
        total, sign = 0, 1
        for word in self.tokens.words[start:end]:
            if word in ("+", "-"):
                sign = 1 if word == "+" else -1
                continue
            digits = word.rstrip("uUlL")
            known = self.frame.numbers.get(word)
            number = int(digits) if digits.isdigit() else known if known is not None else None
            if number is None and is_name(word) and word not in self.frame.parameters:
                number = self.walk.file.constant(word)
            if number is None:
                return None
            total, sign = total + sign * number, 1
        return total if start < end else None

    def _member(self, result: Result, first: int, at: int, end: int) -> tuple[Result, int]:
        tokens = self.tokens
        member = tokens.words[at + 1]
        behind = tokens.behind_name(at + 1, end)[1] if is_name(member) else at + 2
        called = tokens.word(behind, end) == "(" and behind in tokens.partner
        values = self._values(behind) if called else NOTHING
        after = tokens.partner[behind] + 1 if called else behind
        if values:
            self.walk.lose(values, f"`{member}()` takes it", tokens.span(first, after))
        if any(level in ("tensor", "memory") for level, _ in result.refs):
            is_memory = all(level == "memory" for level, _ in result.refs)
            if MEMORY.match(member):
                return Result(_memory(result.refs)), after
            if member in HANDLE and not called:
                return result, after
            if SHAPES.match(member) or (not is_memory and not called):
                return Result(), after
            if called:
                self.walk.lose(result.refs, f"`{member}()` is not followed", tokens.span(first, after))
                return Result(), after
            return Result(place=_memory(result.refs)), after
        if called and result.place:
            self.walk.lose(result.place, f"`{member}()` is not followed", tokens.span(first, after))
            return Result(), after
        return Result(frozenset(ref for ref in result.refs if ref[0] == "slot"), result.place), after

    def _values(self, bracket: int) -> Refs:
        """Return where the arguments of a call lead, or the memory that they refer to."""
        if bracket not in self.called:
            self.called[bracket] = self._all_values(bracket)
        return self.called[bracket]

    def _all_values(self, bracket: int) -> Refs:
        refs: Refs = NOTHING
        for first, last in self.tokens.split(bracket + 1, self.tokens.partner[bracket]):
            refs |= self.value(first, last) | self.place(first, last)
        return refs


def _memory(refs: Refs) -> Refs:
    return frozenset(("memory", index) for level, index in refs if level in ("tensor", "memory"))


def _use_of(kind: str) -> UseKind:
    if "*" in kind:
        return "tensor" if TENSOR.search(kind) else "pointer"
    return "other" if WIDE.search(kind) else "number"

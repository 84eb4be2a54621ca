"""A position in the tokens of a schema, the errors found so far, and the recovery from errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from opschema_cli.schema.schema_defaults import BASE_TYPES, COMPOSED
from opschema_cli.schema.schema_tokens import Fault, SchemaError, Tokens, is_stray
from opschema_cli.source.text import Edit, Span

MAX_FAULTS = 100
"""Faults of one schema after which its rest is not read."""


class Unreadable(Exception):  # noqa: N818 - it carries nothing: the fault is already noted
    """The text here could not be read; the reader continues after it."""


class Reader:
    """A place in the words of a schema, and the faults found so far."""

    def __init__(self, text: str) -> None:
        self.tokens = Tokens(text)
        self.words = self.tokens.words
        self.errors: list[SchemaError] = []
        self.unread: list[Span] = []
        self.go(0)
        self.depth = 0

    def go(self, index: int) -> None:
        """Stand at a word."""
        self.at = index
        self.word = self.words[index]

    def next(self) -> str:
        """Skip a token, and return the next one."""
        if self.word:
            self.at += 1
            self.word = self.words[self.at]
        return self.word

    @property
    def peek(self) -> str:
        """The word that follows."""
        return self.words[self.at + 1] if self.word else ""

    @property
    def found(self) -> str:
        """The text at this position, for a message."""
        return f"`{self.word[:40]}`" if self.word else "the end"

    def error(self, kind: Fault, message: str, span: Span, edit: Edit | None = None, *, refused: bool = True) -> None:
        """Record an error that does not prevent parsing."""
        self.errors.append(SchemaError(kind, message, span, edit, refused))

    @property
    def readable(self) -> bool:
        """Whether everything was parsed; ``unread`` has the rest."""
        return not self.unread

    def broken(self, kind: Fault, message: str, span: Span | None = None, edit: Edit | None = None) -> None:
        """Record an error, at this position by default, that leaves a part of the schema unparsed."""
        span = self.tokens.span(self.at) if span is None else span
        self.unread.append(span)
        self.error(kind, message, span, edit)

    def fail(self, kind: Fault, message: str) -> NoReturn:
        """Record that the text at this position cannot be parsed."""
        if is_stray(self.word):
            quote = self.word[0] in "\"'"
            kind = "unclosed" if quote else "character"
            message = f"the string {self.found} is not closed" if quote else f"{self.found} is not allowed in a schema"
        self.broken(kind, message)
        if len(self.errors) > MAX_FAULTS:
            self.go(len(self.words) - 1)
        raise Unreadable

    def items(self, read: Callable[[], None]) -> None:
        """A list in parentheses; a fault of one item does not hide the next."""
        opening = self.at
        if self.next() == ")":
            self.next()
            return
        while True:
            self._item(read)
            if self.word == ")":
                self.next()
                return
            if self.word != ",":
                end = self.tokens.end(self.at - 1)
                edit = Edit(Span(end, end), ")") if self.word == "->" else None
                self.broken("unclosed", "the `(` is not closed", self.tokens.span(opening), edit)
                return
            self.next()

    def _item(self, read: Callable[[], None]) -> None:
        """Parse one item, and handle extra text before the comma or bracket that ends it."""
        if self.word in (",", ")"):
            self._nothing()
            return
        while True:
            first = self.at
            try:
                read()
            except Unreadable:
                self.depth = 0
                self.skip(first)
                return
            if self.word in (",", ")", "->", ""):
                return
            if self.word not in BASE_TYPES and self.word not in COMPOSED:
                break
            end = self.tokens.end(self.at - 1)
            edit = Edit(Span(end, end), ",") if ")" in self.words[self.at :] else None  # else it may be the returns
            self.broken("comma", f"a comma is missing before {self.found}", edit=edit)
        try:
            self.fail("syntax", f"`,` or `)` must follow, not {self.found}")
        except Unreadable:
            self.skip(first)

    def _nothing(self) -> None:
        """Record a comma with nothing before or after it."""
        if self.word == ",":
            span = self.tokens.span(self.at)
            glued = self.words[self.at - 1] == "," and self.tokens.end(self.at - 1) == span.start
            edit = Edit(span if glued else Span(span.start, self.tokens.starts[self.at + 1]), "")
        else:
            span = self.tokens.span(self.at - 1)
            edit = Edit(span, "")
        self.broken("comma", "there is nothing on one side of the comma", span, edit)

    def skip(self, first: int) -> None:
        """Skip to the comma or bracket that ends the item starting at ``first``, or to the arrow or the end of the text."""
        self._find_end(first)
        self.unread.append(Span(self.tokens.starts[first], self.tokens.starts[self.at]))

    def _find_end(self, first: int) -> None:
        depth = 0
        for index in range(first, len(self.words)):
            word = self.words[index]
            if depth == 0 and index >= self.at and word in (",", ")", "->", ""):
                if word in (",", ")"):
                    self.go(index)
                    return
                break
            depth = max(0, depth + (word in ("(", "[")) - (word in (")", "]")))
        while self.word not in (",", ")", "->", ""):  # a bracket of the item is not closed
            self.next()

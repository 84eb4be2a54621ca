"""C++ syntax trees of tree-sitter, as read-only nodes with character offsets.

A text with errors has a tree as well; :attr:`CppTree.errors` says where tree-sitter lost its way.
What the preprocessor makes of a file is in :mod:`opschema_cli.source.preprocessor`, and of strings in
:mod:`opschema_cli.source.cpp_strings`.
"""

from __future__ import annotations

import bisect
import re
import time
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING

from opschema_cli.errors import install_command
from opschema_cli.source.cpp_strings import Literal, joined, read_literal
from opschema_cli.source.preprocessor import Condition, Directives, read_directives
from opschema_cli.source.text import Span

if TYPE_CHECKING:
    import tree_sitter

MAX_CHARACTERS = 1_000_000
"""Maximum length of a text to parse."""

MAX_DEPTH = 500
"""Maximum nesting of brackets to parse; clang's limit is 256."""

SECONDS, SECONDS_PER_CHARACTER = 0.5, 2e-6
"""The processor time limit for one text: about five times what ordinary code takes."""

_START = Span(0, 0)


class CppUnavailableError(ImportError):
    """C++ cannot be read: tree-sitter or its C++ grammar cannot be imported, or they are incompatible; ``name`` is the module,
    ``hint`` the advice.
    """

    @property
    def hint(self) -> str:
        """The advice to the user."""
        return f"install it: {install_command()}"


class CppError(ValueError):
    """A text that is too long, nested too deeply, or takes too much time to parse; ``span`` is the place."""

    def __init__(self, reason: str, span: Span = _START) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


class CppNode:
    """A node of the tree. Two objects are equal if they refer to the same node."""

    __slots__ = ("_node", "parent", "tree")

    def __init__(self, tree: CppTree, node: tree_sitter.Node, parent: CppNode | None) -> None:
        self.tree = tree
        self.parent = parent
        self._node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CppNode) and self.tree is other.tree and self._node == other._node

    def __hash__(self) -> int:
        return hash(self._node.id)

    def __repr__(self) -> str:
        return f"CppNode({self.kind!r}, {self.span.start}-{self.span.end})"

    @property
    def kind(self) -> str:
        """Kind of node, by the grammar's name: ``call_expression``; for punctuation and keywords their text."""
        return self._node.type

    @property
    def span(self) -> Span:
        """The span of the node."""
        if self.tree.is_plain:
            return Span(self._node.start_byte, self._node.end_byte)
        return Span(self.tree.offset(self._node.start_byte), self.tree.offset(self._node.end_byte))

    @property
    def text(self) -> str:
        """The text of the node."""
        if self.tree.is_plain:
            return self.tree.text[self._node.start_byte : self._node.end_byte]
        start, end = self.span
        return self.tree.text[start:end]

    @property
    def is_error(self) -> bool:
        """Whether it is text that does not fit the grammar, or a missing token that the parser inserted."""
        return self._node.is_error or self._node.is_missing

    @property
    def has_error(self) -> bool:
        """Whether it or a descendant is an error."""
        return self._node.has_error or self._node.is_missing

    @property
    def tokens(self) -> list[CppNode]:
        """All children in order, including comments, punctuation and keywords."""
        return [CppNode(self.tree, node, self) for node in self._node.children]

    @property
    def children(self) -> list[CppNode]:
        """Its children without comments, punctuation and keywords."""
        return [CppNode(self.tree, node, self) for node in self._node.named_children if node.type != "comment"]

    def field(self, name: str) -> CppNode | None:
        """Return the child in a field of the grammar (``function`` of a call); the first one if there are several."""
        node = self._node.child_by_field_name(name)
        return CppNode(self.tree, node, self) if node is not None else None

    def fields(self, name: str) -> list[CppNode]:
        """Return all children in a field of the grammar."""
        return [CppNode(self.tree, node, self) for node in self._node.children_by_field_name(name)]

    def walk(self, skip: Callable[[CppNode], bool] | None = None) -> Iterator[CppNode]:
        """Yield the node and its descendants in order, without comments, punctuation and keywords; descendants of nodes to
        ``skip`` are left out.
        """
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if skip is None or not skip(node):
                waiting += reversed(node.children)

    @property
    def ancestors(self) -> Iterator[CppNode]:
        """Yield the enclosing nodes, innermost first."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


class CppTree:
    """A text and its tree."""

    def __init__(self, text: str, tree: tree_sitter.Tree) -> None:
        self.text = text
        self._wide = [] if text.isascii() else _wide_characters(text)
        self.is_plain = not self._wide
        """Whether each character is one byte."""
        self._tree = tree
        self.root = CppNode(self, tree.root_node, None)

    def offset(self, byte: int) -> int:
        """Return the character that begins at or contains a byte."""
        if not self._wide:
            return byte
        at = bisect.bisect_right(self._wide, (byte, len(self.text))) - 1
        if at < 0:
            return byte
        after, characters = self._wide[at]
        return byte - after + characters

    @cached_property
    def directives(self) -> Directives:
        """Its preprocessor conditions and macros."""
        return read_directives(self.text)

    def conditions(self, node: CppNode) -> tuple[Condition, ...]:
        """Return the preprocessor conditions under which a node is compiled."""
        return self.directives.conditions(node.span.start)

    @cached_property
    def errors(self) -> tuple[CppNode, ...]:
        """The outermost syntax errors; empty for a text without any."""
        found = self._tokens(lambda node: node.has_error and not node.is_error)
        return tuple(node for node in found if node.is_error)

    @cached_property
    def comments(self) -> tuple[CppNode, ...]:
        """The comments, in order."""
        return tuple(node for node in self._tokens(lambda node: True) if node.kind == "comment")

    def _tokens(self, opens: Callable[[CppNode], bool]) -> Iterator[CppNode]:
        """Yield all nodes, including punctuation and comments, except descendants of nodes that ``opens`` rejects."""
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            if opens(node):
                waiting += reversed(node.tokens)


def _wide_characters(text: str) -> list[tuple[int, int]]:
    """Return, for each non-ASCII character, the byte and the character after it, from which both count on."""
    found: list[tuple[int, int]] = []
    extra = 0
    for match in re.finditer(r"[^\x00-\x7f]", text):
        extra += _width(match.group()) - 1
        found.append((match.end() + extra, match.end()))
    return found


def _width(character: str) -> int:
    return len(character.encode(errors="replace"))


@cache
def _language() -> tree_sitter.Language:
    try:
        import tree_sitter
        import tree_sitter_cpp
    except ImportError as error:
        name = error.name or "tree_sitter"
        raise CppUnavailableError(f"C++ is not read, as `{name}` cannot be imported", name=name) from error
    try:
        return tree_sitter.Language(tree_sitter_cpp.language())
    except (TypeError, ValueError) as error:
        reason = f"C++ is not read, as `tree_sitter` and `tree_sitter_cpp` do not fit together ({error})"
        raise CppUnavailableError(reason, name="tree_sitter") from error


def parse_cpp(text: str) -> CppTree:
    """Parse a text.

    Raises:
        CppUnavailableError: tree-sitter or its C++ grammar cannot be imported.
        CppError: the text is longer than :data:`MAX_CHARACTERS`, nests deeper than :data:`MAX_DEPTH`, or takes too long.
    """
    language = _language()
    if len(text) > MAX_CHARACTERS:
        raise CppError(f"it has {len(text):,} characters; up to {MAX_CHARACTERS:,} are parsed")
    at = _too_deep(text)
    if at is not None:
        raise CppError(f"its brackets nest deeper than {MAX_DEPTH} levels", Span(at, at))
    import tree_sitter

    data = text.encode(errors="replace")
    until = time.thread_time() + SECONDS + len(data) * SECONDS_PER_CHARACTER
    reached = [0]

    def is_over(byte: int, _: bool) -> bool:
        reached[0] = byte
        return time.thread_time() > until

    try:
        tree = tree_sitter.Parser(language).parse(lambda byte, _: data[byte : byte + _CHUNK], progress_callback=is_over)
    except ValueError:  # it says no more than that it failed, which it only does when it is stopped
        at = len(data[: reached[0]].decode(errors="ignore"))
        raise CppError("it takes too long to parse", Span(at, at)) from None
    return CppTree(text, tree)


_CHUNK = 1 << 16
_BRACKET = re.compile(r"[()\[\]{}]")


def _too_deep(text: str) -> int | None:
    """Return the offset at which brackets are nested too deeply, including those in comments and strings; None if they are not."""
    depth = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match.group() in "([{" else max(0, depth - 1)
        if depth > MAX_DEPTH:
            return match.start()
    return None


def literal(node: CppNode) -> Literal | None:
    """Return the value of a string literal or of adjacent ones; None for anything else, such as a literal with a macro."""
    if node.kind != "concatenated_string":
        return _one_literal(node)
    parts = [_one_literal(item) for item in node.children]
    return None if None in parts else joined(item for item in parts if item is not None)


def _one_literal(node: CppNode) -> Literal | None:
    is_string = node.kind in ("string_literal", "raw_string_literal")
    return read_literal(node.text, node.span.start) if is_string else None

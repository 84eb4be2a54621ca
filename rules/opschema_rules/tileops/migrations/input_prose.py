"""An input's name in the comments, messages and docstrings of a method."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import pairwise

import libcst as cst

from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.mentions import occurrences
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.tileops.migrations.tensor_texts import code_like


def prose(tree: PythonTree) -> list[Span]:
    """The literal text of a module's strings, without their quotes, and its comments."""
    return [*_texts(tree), *_comments(tree.text)]


def rename_words(
    rewrite: Rewrite, function: cst.FunctionDef, texts: Sequence[Span], names: Sequence[str], old: str, new: str
) -> Iterator[Span]:
    """Rename an input in those of ``texts`` that are in a function, where the input is clearly meant; yield the spans of other
    mentions.

    ``names`` are the parameters that are renamed: the input, or ``<input>_shape``, which is then renamed in prose wherever
    it stands. Of a name of one letter nothing comes back: most such words are none.
    """
    tree = rewrite.tree
    start, end = tree.outer(function)
    labels = {span for name in {old, *names} for span in _labels(tree, function, name, old)}
    for span in [item for item in texts if start <= item.start < end]:
        text = tree.text[span.start : span.end]
        sure = {*code_like(text, old), *_subject(text, old), *_within(span, labels)}
        sure |= _shape_words(text, f"{old}_shape") if f"{old}_shape" in names else set()
        for at in sorted(at for at, _ in sure):
            rewrite.replace(Span(span.start + at, span.start + at + len(old)), new)
        known = {*sure, *_documented(text, old)}
        if len(old) > 1 and any(word not in known for word in occurrences(text, old)):
            yield span


def _texts(tree: PythonTree) -> Iterator[Span]:
    for item in tree.nodes:
        if isinstance(item, cst.FormattedStringText):
            yield tree.span(item)
        elif isinstance(item, cst.SimpleString):
            first, last = tree.span(item)
            yield Span(first + len(item.prefix) + len(item.quote), last - len(item.quote))


def _comments(text: str) -> Iterator[Span]:
    """The comments of a module that parses."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text, newline=None).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        if token.type == tokenize.COMMENT:
            start = starts[token.start[0] - 1] + token.start[1]
            yield Span(start, start + len(token.string))


def _documented(text: str, name: str) -> Iterator[Span]:
    """The name where an entry of a docstring begins with it."""
    for match in re.finditer(rf"(?m)^[ \t]*(?::param )?({re.escape(name)})[ \t]*(?:\([^)\n]*\)[ \t]*)?:", text):
        yield Span(*match.span(1))


def _subject(text: str, name: str) -> Iterator[Span]:
    """Yield the name at the beginning of a message that states a requirement on it."""
    match = re.match(rf"{re.escape(name)}(?= (?:must|should|has|is|needs|cannot|does)\b)", text)
    if match:
        yield Span(*match.span())


def _shape_words(text: str, name: str) -> set[Span]:
    """Places where prose has the name of a shape; a string of one word may be a key."""
    return {*occurrences(text, name)} - {*_documented(text, name)} if " " in text.strip() else set()


def _labels(tree: PythonTree, function: cst.FunctionDef, name: str, tensor: str) -> Iterator[Span]:
    """The name in an f-string directly before an expression of the input: ``f"x {x_shape}"``, ``f"bad x: {x.ndim}"``."""
    label = re.compile(rf"(?<![\w.]){re.escape(name)}(?=(?:[ \t]*[=:(][ \t]*|[ \t]+)\Z)")
    for node in tree.walk(function):
        for at, (text, value) in enumerate(pairwise(node.parts if isinstance(node, cst.FormattedString) else ())):
            if isinstance(text, cst.FormattedStringText) and _speaks_of(tree, value, tensor):
                found = label.search(text.value)
                if found and (at == 0 or text.value.strip() != name):  # not the sign of `f"{m} x {x_shape}"`
                    start = tree.span(text).start
                    yield Span(start + found.start(), start + found.end())


def _speaks_of(tree: PythonTree, part: cst.CSTNode, name: str) -> bool:
    nodes = tree.walk(part.expression) if isinstance(part, cst.FormattedStringExpression) else ()
    found = [node for node in nodes if isinstance(node, cst.Name) and node.value in (name, f"{name}_shape")]
    owners = [tree.parent(node) for node in found]
    return any(
        not isinstance(owner, cst.Attribute) or owner.attr is not node
        for node, owner in zip(found, owners, strict=True)
    )


def _within(span: Span, places: set[Span]) -> Iterator[Span]:
    """Convert places of a file to places in a stretch of it."""
    for start, end in places:
        if span.start <= start < span.end:
            yield Span(start - span.start, end - span.start)

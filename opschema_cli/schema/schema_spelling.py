"""The canonical spelling of a schema: torchgen compares its input with the text that it would write itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_tokens import SchemaError, Tokens, is_stray, is_string
from opschema_cli.source.text import Edit, Span


def faults_of_spelling(schema: OperatorSchema, tokens: Tokens, unread: Sequence[Span]) -> list[SchemaError]:
    """Places where a schema is not written as torchgen writes it; ``unread`` is left out.

    torchgen lets a space pass where it takes it into a name or a default.
    """
    text = tokens.text
    if str(schema) == text and not any(mark in text for mark in ('"', "'", "[0", "=[", "...")):
        return []
    spaces = [item for item in _spaces(tokens) if not any(_touch(item.span, span) for span in unread)]
    parentheses = [] if unread else _lone_parentheses(schema, tokens)
    return [*spaces, *_sizes(tokens), *parentheses, *_words(tokens)]


def _touch(span: Span, other: Span) -> bool:
    return span.start <= other.end and other.start <= span.end


def _spaces(tokens: Tokens) -> Iterator[SchemaError]:
    text, words = tokens.text, tokens.words
    place, before, brackets = 0, "", 0
    unclosed = words.count("[") != words.count("]")  # whether a comma stands in a list is not known then
    for index, (word, start) in enumerate(zip(words, tokens.starts, strict=True)):
        wanted = " " if _is_spaced(before, word, brackets > 0) else ""
        if text[place:start] != wanted and not (unclosed and before == ","):
            span = Span(place, start)
            message = "one space belongs here" if wanted else "no space belongs here"
            if not (is_stray(word) or is_stray(before)):
                yield SchemaError("spacing", message, span if place < start else tokens.span(index), Edit(span, wanted))
        brackets += (word == "[") - (word == "]")
        place, before = start + len(word), word


@lru_cache(maxsize=4096)
def _is_spaced(before: str, word: str, in_list: bool) -> bool:
    """Whether torchgen writes a space between two words."""
    if not before or not word:
        return False
    if before == ",":
        return not in_list
    if "->" in (before, word):
        return True
    return (word[0].isalpha() or word[0] == "_") and (before[-1].isalnum() or before[-1] in "_)]?!")


def _sizes(tokens: Tokens) -> Iterator[SchemaError]:
    """``int[02]`` and ``int[0]``: torchgen writes the first as 2 and the second without size."""
    words = tokens.words
    for index, word in enumerate(words[1:-1], 1):
        if word[0] != "0" or words[index - 1] != "[" or words[index + 1] != "]" or words[index - 2] == "=":
            continue
        if word.isdecimal():
            meant = word.lstrip("0")
            edit = Edit(tokens.span(index), meant)
            yield SchemaError("list-size", f"torchgen writes `[{word}]` as `[{meant}]`", tokens.span(index), edit)


def _lone_parentheses(schema: OperatorSchema, tokens: Tokens) -> Iterator[SchemaError]:
    """``-> (Tensor)``: torchgen writes a single return without."""
    if len(schema.returns) != 1 or schema.varret or schema.returns[0].type.name == "Tuple":
        return
    inner, last = schema.returns[0].span, len(tokens.words) - 2
    first = tokens.starts.index(inner.start) - 1
    if tokens.words[first] == "(" and tokens.words[last] == ")" and tokens.starts[last] >= inner.end:
        span = tokens.span(first, last)
        written = tokens.text[slice(*inner)]
        yield SchemaError("spacing", "a single return is written without parentheses", span, Edit(span, written))


def _words(tokens: Tokens) -> Iterator[SchemaError]:
    """Words that torchgen does not read as one."""
    for index, word in enumerate(tokens.words):
        if is_string(word) and (", " in word or "=" in word or "\n" in word):
            message = "torchgen cuts a schema at `, ` and `=`, in a string too"
            yield SchemaError("default", message, tokens.span(index))
        elif word == "...":
            yield SchemaError("vararg", "torchgen has no `...`", tokens.span(index))

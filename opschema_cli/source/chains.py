"""Nesting without brackets: chains of operators, calls and attributes, and of ``elif``.

CPython's parser calls itself once or more for each link. A process dies of too many, which others can do without; where Python
is parsed in the only process there is, such a text is refused before it is parsed.
"""

from __future__ import annotations

import re

from opschema_cli.source.parsing import encoded
from opschema_cli.source.python_facts import STRING_REST, failed

MAX_CHAIN = 400
"""Maximum number of links of a chain to parse in the only process: a limit with a margin for the stack of a browser's worker."""

_TOKEN = re.compile(
    r"""\#[^\r\n]* | "{3} | '{3} | ["'] | [(\[{] | [)\]}] | [,;] | \\\r?\n | \r?\n(?P<indent>[ \t]*)(?P<elif>elif\b|else\b)?
    | [-+*/%@&|^~.<>] | \b(?:not|lambda|else|await|and|or|in|is)\b""",
    re.VERBOSE,
)
_LINK = re.compile(r"[-+*/%@&|^~.<>(\[]|\b(?:not|lambda|else|await|and|or|in|is)\b")
_FORMATTED = re.compile(r"(?:^|\W)(?:r?[ft]|[ft]r)\Z", re.IGNORECASE)
"""The end of the text before a formatted string's quotes."""


def refused(text: str) -> bytes:
    """Return the encoded facts of a text that is not parsed because its chains may be too long for the stack; empty if it is
    parsed.
    """
    place = too_long_chain(text)
    if place is None:
        return b""
    return encoded(failed(f"it chains more than {MAX_CHAIN} operators, calls or branches", place))


def too_long_chain(text: str) -> int | None:
    """Return the place where a chain exceeds :data:`MAX_CHAIN` links, by an upper bound; None if there is none.

    A comma ends a chain, and so does the end of a line outside brackets. Strings count as one link, but for formatted ones, which
    hold expressions.
    """
    at = elifs = total = 0
    links = [0]  # of the chain in each open bracket
    while (match := _TOKEN.search(text, at)) is not None:
        found, at = match.group(), match.end()
        if found[0] in "\"'":
            at = _end_of_string(text, found, at)
            if total + _links_inside(text, match.start(), at) > MAX_CHAIN:
                return match.start()
        elif found[0] in "([{":
            links.append(0)
        elif found[0] in ")]}":
            total += 1 - (links.pop() if len(links) > 1 else 0)
            links[-1] += 1
        elif found[0] in ",;" or (found[0] in "\r\n" and len(links) == 1):
            total -= links[-1]
            links[-1] = 0
            elifs = _elifs(match, elifs)
        elif found[0] not in "#\\\r\n":
            total += 1
            links[-1] += 1
        if elifs > MAX_CHAIN or total > MAX_CHAIN:
            return match.start()
    return None


def _end_of_string(text: str, quotes: str, at: int) -> int:
    rest = STRING_REST[quotes].match(text, at)
    return rest.end() if rest is not None else at


def _links_inside(text: str, start: int, end: int) -> int:
    """Return an upper bound for the links of an expression in a formatted string; 0 for any other string."""
    if not _FORMATTED.search(text[max(0, start - 3) : start]):
        return 0
    return max((len(_LINK.findall(part)) for part in text[start:end].split("{")[1:]), default=0)


def _elifs(line: re.Match[str], before: int) -> int:
    """Return the number of branches counted so far, after the beginning of a line; a line without indentation resets it."""
    if line["elif"] == "elif":
        return before + 1
    ends = line.group()[0] in "\r\n" and not (line["indent"] or line["elif"])
    return 0 if ends else before

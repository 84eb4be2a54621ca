"""Collects the facts of a module's text, or the reason why it has none.

They are those that :mod:`opschema_cli.source.cst_facts` finds in libcst's tree. Where the Python that runs parses the text,
:mod:`opschema_cli.source.ast_facts` finds the same ones several times faster; libcst, whose import takes 0.1 to 0.2 s, is
then not imported.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from opschema_cli.source.ast_facts import NotTakenError, collect_from_ast
from opschema_cli.source.python import ModuleFacts, Scope
from opschema_cli.source.text import Source

if TYPE_CHECKING:
    import libcst as cst

    from opschema_cli.source.cst_spans import Spans

MAX_BRACKETS = 200
"""Maximum nesting of brackets to parse; CPython's own tokenizer rejects more."""

MAX_TREE_DEPTH = 150
"""Maximum depth of a tree to pack, several times that of ordinary code; a deeper one is parsed again instead."""

MAX_CHARACTERS = 2_000_000
"""Maximum length of a text to parse: libcst's tree takes about 300 times its space."""


def collect(text: str) -> ModuleFacts:
    """Collect the facts of a module's text; a syntax error is a fact, never an exception.

    Some texts kill the parsers or keep libcst's busy for hours; :mod:`opschema_cli.source.python_workers` survives that.
    """
    found = collect_plain(text)
    if found is None and find_spec("libcst") is None:  # no WebAssembly build of it is published
        return _error_of_python(text) or failed("it nests too deeply to be read without libcst", 0)
    return found if found is not None else collect_with_tree(text)[0]


def collect_plain(text: str) -> ModuleFacts | None:
    """Collect the facts of a text that the running Python can parse, or that is not parsed at all; None for one that needs
    libcst.
    """
    refused = _refused(text)
    if refused is not None:
        return refused
    try:
        return collect_from_ast(text)
    except NotTakenError:
        return None


def collect_with_tree(text: str) -> tuple[ModuleFacts, tuple[cst.Module, Spans] | None]:
    """Collect the facts of a module's text, and the libcst tree that they come from.

    That is None where the text has no facts but its error, and where the tree nests deeper than :data:`MAX_TREE_DEPTH`.
    """
    # Not at the top: most texts are done without.
    import libcst as cst

    from opschema_cli.source.cst_facts import collect_from_cst
    from opschema_cli.source.cst_spans import placed

    refused = _refused(text)
    if refused is not None:
        return refused, None
    try:
        module = cst.parse_module(text)
    except (cst.ParserSyntaxError, SyntaxError, ValueError) as error:
        return _syntax_error(text, error), None
    except (RecursionError, MemoryError):
        return failed("it nests too deeply", 0), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, when literals are evaluated
            spans, depth = placed(module, text)
            return collect_from_cst(module, spans, text), (module, spans) if depth <= MAX_TREE_DEPTH else None
    except RecursionError:
        return failed("it nests too deeply", 0), None
    except ValueError as error:
        return failed(str(error), 0), None


def _refused(text: str) -> ModuleFacts | None:
    """Return the error for a text that is not parsed at all."""
    if len(text) > MAX_CHARACTERS:
        return failed(f"it has {len(text):,} characters; opschema parses up to {MAX_CHARACTERS:,}", 0)
    deep_at = too_deep(text)
    return failed(f"it nests deeper than {MAX_BRACKETS} brackets", deep_at) if deep_at is not None else None


def failed(reason: str, offset: int) -> ModuleFacts:
    """Return the facts of a text that is not read, with the reason and the place where that begins."""
    return ModuleFacts(Scope(), None, reason, offset)


def _syntax_error(text: str, error: Exception) -> ModuleFacts:
    """Return CPython's error for the text, since libcst's message and place are vague; libcst's if CPython accepts the text."""
    found = _error_of_python(text)
    if found is not None:
        return found
    import libcst as cst

    if isinstance(error, cst.ParserSyntaxError):
        return failed("it does not parse", _offset(text, error.raw_line, error.raw_column))
    return failed(str(error).partition("\n")[0] or "it does not parse", 0)


def _error_of_python(text: str) -> ModuleFacts | None:
    """Return the running Python's syntax error for a text, if it has one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as found:
        return failed(found.msg, _offset(text, found.lineno or 1, (found.offset or 1) - 1))
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _offset(text: str, line: int, column: int) -> int:
    source = Source("", text)
    start, end = source.line_span(max(1, min(line, source.line_count)))
    return max(start, min(start + column, end))


_NO_BRACKETS = bytes(set(range(128)) - set(b"([{)]}"))
_BRACKET_OR_QUOTE = re.compile(r"#[^\r\n]*|\"{3}|'{3}|[\"'(\[{)\]}]")
STRING_REST = {
    '"': re.compile(r'[^"\\\n]*(?:\\.[^"\\\n]*)*"?', re.DOTALL),
    "'": re.compile(r"[^'\\\n]*(?:\\.[^'\\\n]*)*'?", re.DOTALL),
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:""")?', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:''')?", re.DOTALL),
}
"""The rest of a string after its opening quotes, up to its end."""


def too_deep(text: str) -> int | None:
    """Return the place where brackets are nested deeper than :data:`MAX_BRACKETS`; None if there is none."""
    if sum(map(text.count, "([{")) <= MAX_BRACKETS:
        return None
    return _deepest(_brackets(text)) if _may_be_deep(text) else None


def _may_be_deep(text: str) -> bool:
    """Whether brackets are nested deeper than the limit, including those in strings and comments; for most texts, this check is
    enough.
    """
    depth = 0
    for bracket in text.encode("ascii", "ignore").translate(None, _NO_BRACKETS):
        if bracket in b"([{":
            depth += 1
            if depth > MAX_BRACKETS:
                return True
        elif depth:
            depth -= 1
    return False


def _deepest(brackets: Iterable[tuple[str, int]]) -> int | None:
    depth = 0
    for bracket, offset in brackets:
        depth = depth + 1 if bracket in "([{" else max(0, depth - 1)
        if depth > MAX_BRACKETS:
            return offset
    return None


def _brackets(text: str) -> Iterator[tuple[str, int]]:
    """Yield the brackets outside strings and comments."""
    at = 0
    while (match := _BRACKET_OR_QUOTE.search(text, at)) is not None:
        found, at = match.group(), match.end()
        if found in STRING_REST:
            rest = STRING_REST[found].match(text, at)
            at = rest.end() if rest is not None else at
        elif not found.startswith("#"):
            yield found, match.start()

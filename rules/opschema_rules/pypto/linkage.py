"""C++ functions that are known to have a mangled name because they are defined without ``extern "C"``.

Macros and headers may give a function its linkage. So a file counts only if it never says `extern`, includes nothing but the
runtime's headers and the standard library's, and has nothing that may be a macro outside of functions.
"""

from __future__ import annotations

import re

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.cpp_text import only_code, without_comments
from opschema_cli.source.preprocessor import read_directives
from opschema_cli.source.text import Span, places_of, words_in
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.includes import headers_of, includes_others, logical_lines

_NAMES_SYMBOLS = re.compile(
    r"\b(?:extern|export|import|module|(?:asm|__asm\w*)\b(?!\s*volatile\b)|_Pragma|alias|ifunc)\b|##|<%|\?\?"
)
_DIRECTIVE = re.compile(
    r"(?m)^[ \t]*#[ \t]*(?:pragma\b(?![ \t]*once\b)"
    r"|define[ \t]+(?:(?:inline|static|void|namespace|__attribute__)\b|__aicore__\b(?![ \t]*(?:\[aicore\])?[ \t]*$)))"
)
"""Pragmas, and macros for the words of a definition."""

_SPECIFIERS = (
    r"(?:(?:static|inline|__aicore__)\s+|__attribute__\s*\(\(\s*(?:always_inline|visibility\s*\(\s*\))\s*\)\)\s*)*"
)
_NAMESPACE = re.compile(r"\bnamespace\b[\s\w:]*\Z")
_OF_RUNTIME = re.compile(r"(?:\A|/)(?:src/(?:\w+/)*(?:runtime|common|platform)|simpler_setup)/")
_API = re.compile(
    r"(?:pto_orchestration_api|pto_arg_with_deps|pto_async_kernel_api|tensor|intrinsic|pipe_sync)\.h"
    r"|pto/(?:pto-inst|(?:comm|common|cpu|npu)/[\w/-]+)\.hpp"
)
"""Headers of the runtime and of pto-isa that orchestrations and kernels include; a tree does not need to contain them."""

_HEADER = re.compile(r"\.h(?:pp)?\Z")
_DEEPEST = 20
_BRACES = re.compile(r"\b(?:namespace\b[\s\w:]{0,100}|extern\s*)\{")
_BLOCK = re.compile(r"\{[^{}]*\}")
_ALONE = re.compile(r"(?m)^[ \t]*(?!(?:do|else|try)\b)[A-Za-z_]\w*[ \t]*$")
_MACRO = re.compile(
    r"(?:\A|[;{}])\s*(?:[A-Z][A-Z0-9_]+\b|(?!(?:static_assert|__attribute__|enum|struct|union)\b)\w+\s*(?:\([^;{}]*\)\s*)?;)|\b[A-Z][A-Z0-9_]+\s*\("
)


def without_linkage(workspace: Workspace, text: str, name: str, parameters: str) -> Span | None:
    """Return the name of a function in its only definition, if the function is known to have C++ linkage; ``parameters`` is the
    pattern of its parameters.
    """
    code = logical_lines(text)
    if _NAMES_SYMBOLS.search(code) or _DIRECTIVE.search(code) or len(list(places_of(name, code))) != 1:
        return None
    places = only_code(text, directives=False)
    found = re.search(rf"(?:\A|[;{{}}])\s*{_SPECIFIERS}void\s+({re.escape(name)})\s*\({parameters}\)\s*\{{", places)
    if found is None or read_directives(text).conditions(found.start(1)) or has_macros(places):
        return None
    is_plain = _is_in_namespaces(places[: found.start(1)]) and _has_default_visibility(text[: found.start(1)])
    return Span(*found.span(1)) if is_plain and _are_of_runtime(workspace, text, name) else None


def has_macros(code: str) -> bool:
    """Whether something outside of functions may be a macro, in a text without directives."""
    outer = _BRACES.sub("", code)
    for _ in range(_DEEPEST):
        outer = _BLOCK.sub(";", outer)
    return _ALONE.search(outer) is not None or _MACRO.search(outer) is not None


def _is_in_namespaces(before: str) -> bool:
    """Whether the braces that are open at the end of a text all belong to namespaces."""
    closed = 0
    for match in reversed(list(re.finditer(r"[{}]", before))):
        closed += 1 if match[0] == "}" else -1
        if closed < 0:
            if _NAMESPACE.search(before, max(0, match.start() - 200), match.start()) is None:
                return False
            closed = 0
    return True


def _has_default_visibility(before: str) -> bool:
    """Whether the attributes after the last statement of a text set no visibility other than the default."""
    return all(kind == '"default"' for kind in re.findall(r"visibility\s*\(([^()]*)\)", before[-200:]))


class _Headers(msgspec.Struct, frozen=True):
    """The headers of a tree: the ``words`` in the code of the runtime's headers; and by name the paths of those that may declare
    anything: headers of a program, or with a linkage of their own.
    """

    words: set[str]
    others: dict[str, list[str]]


@cached_on_argument
def _headers(workspace: Workspace) -> _Headers:
    found = _Headers(set(), {})
    for path in workspace.files:
        if _HEADER.search(path):
            words = _words(workspace, path) if _OF_RUNTIME.search(path) else {"extern"}
            found.words.update(words)
            if "extern" in words:
                found.others.setdefault(path.rpartition("/")[2], []).append(path)
    return found


def _words(workspace: Workspace, path: str) -> set[str]:
    return words_in(without_comments(workspace.peek(path).decode("utf-8", "replace")))


def _are_of_runtime(workspace: Workspace, text: str, name: str) -> bool:
    """Whether all headers that a file includes are the runtime's, and none of these declares a function."""
    wanted = headers_of(text)
    if includes_others(text) or not all(_API.fullmatch(item) for item in wanted):
        return False
    known = _headers(workspace) if wanted else _Headers(set(), {})
    others = [(path, item) for item in wanted for path in known.others.get(item.rpartition("/")[2], ())]
    return name not in known.words and not any(f"/{path}".endswith(f"/{item}") for path, item in others)

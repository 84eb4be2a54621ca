"""Files to be parsed: those that may register, those that may call their helpers, those that may call an operator.

Told by their text alone, so that the others are never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.torchlib.model import Operator


def _registers_classes(data: bytes) -> bool:
    return b"paque" in data and (b"register_opaque" in data or b"OpaqueBase" in data)


REGISTERS_CLASSES = Reading("torchlib registers classes", _registers_classes, bool)
"""Whether a file may register classes that torch then takes as types of arguments."""


def _mentions(text: str) -> list[str]:
    """The names that a file imports, a module under a star as ``module.*``, and the words behind ``torch.ops``: by these it
    may call what other files define.
    """
    found = {word for ops in _OPS.findall(text) for word in ops.split(".")}
    for module, names in _at_line_starts("from", _FROM, text):
        found.update(_WORD.findall(names) if "*" not in names else [f"{module.rpartition('.')[2]}.*"])
    for (names,) in _at_line_starts("import", _IMPORT, text):
        found.update(module.rpartition(".")[2] for module in _DOTTED.findall(names))
    return sorted(found)


def _at_line_starts(word: str, pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, ...]]:
    """The groups of a pattern at each place of a word before which nothing but white space stands on its line; a plain word is
    found many times as fast as a pattern.
    """
    at = text.find(word)
    while at >= 0:
        start = at
        while start and text[start - 1] in " \t":
            start -= 1
        match = pattern.match(text, at) if not start or text[start - 1] == "\n" else None
        if match is not None:
            yield match.groups()
        at = text.find(word, match.end() if match is not None else at + len(word))


_FROM = re.compile(r"from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n(]+|\([^)]*\))")
_IMPORT = re.compile(r"import[ \t]+([^\n]+)")
_IMPORTS = re.compile(rf"(?m)^[ \t]*(?:{_FROM.pattern}|{_IMPORT.pattern})")
_OPS = re.compile(r"torch\.ops\.([\w.]+)")  # no word's end before it: so it is found many times as fast
_WORD = re.compile(r"[A-Za-z_]\w*")
_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
_MENTIONS = Reading("torchlib mentions of other files", _mentions, list[str])


class Helper(msgspec.Struct, frozen=True):
    """A function or class by whose call another file may register."""

    path: str
    name: str
    is_class: bool = False


def files_that_use(project: Project, helpers: Iterable[Helper], paths: Iterable[str]) -> list[str]:
    """The files among some that import one of the helpers, or its module, and call it, decorate with it or pass it on."""
    by_word: dict[str, set[Helper]] = {}
    for helper in helpers:
        file = PurePosixPath(helper.path)
        stem = file.parent.name if file.stem == "__init__" else file.stem
        for word in (helper.name, stem, f"{stem}.*"):
            by_word.setdefault(word, set()).add(helper)
    found = project.readings(_MENTIONS, paths) if by_word else {}
    mentioned = {path: set().union(*(by_word.get(word, ()) for word in words)) for path, words in found.items()}
    return sorted(path for path, items in mentioned.items() if items and _uses(project, path, items))


def _uses(project: Project, path: str, helpers: Iterable[Helper]) -> bool:
    source = project.source(path)
    if source is None:
        return False
    code = _IMPORTS.sub("", source.text)
    return any(is_used(code, item) or f"{item.name} as " in source.text for item in helpers)


def is_used(code: str, helper: Helper) -> bool:
    """Whether code without its imports uses a helper for more than annotations and type tests, by its text alone."""
    name = re.escape(helper.name)
    return helper.name in code and re.search((_CLASS_USE if helper.is_class else _USE).format(name), code) is not None


_USE = r"\b{0}\b"
_CLASS_USE = r"\b{0}\s*[(.]|(?:@|=\s*|\bpartial\()[\w.]*\b{0}\b|\bclass\s+\w+\([^)]*\b{0}\b"


def files_that_call(project: Project, operators: Iterable[Operator], paths: Iterable[str]) -> list[str]:
    """The files among some that import what may be an operator, or name it behind ``torch.ops``."""
    return _mentioning(project, words_of_operators(operators), paths)


def files_that_mention(project: Project, words: Iterable[str], paths: Iterable[str]) -> list[str]:
    """The files among some that import one of these names or modules, or all that a module has."""
    wanted = set(words)
    found = project.readings(_MENTIONS, paths)
    return sorted(path for path, names in found.items() if any(name in wanted or name.endswith(".*") for name in names))


def _mentioning(project: Project, words: Iterable[str], paths: Iterable[str]) -> list[str]:
    wanted = set(words)
    found = project.readings(_MENTIONS, paths) if wanted else {}
    return sorted(path for path, names in found.items() if not wanted.isdisjoint(names))


def words_of_operators(operators: Iterable[Operator]) -> frozenset[str]:
    """The words by which the operators may be called: their names without namespace and overload, and those of their functions."""
    return frozenset(word for operator in operators for word in _words_of(operator) if word)


def _words_of(operator: Operator) -> Iterator[str]:
    yield from (name.partition("::")[2].partition(".")[0] for name in operator.names or ())
    body = operator.definition.function
    if body is not None and body.function is not None:
        yield body.function.name

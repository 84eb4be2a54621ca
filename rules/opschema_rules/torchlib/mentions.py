"""Files to be parsed: those that may register, those that may call their helpers, those that may call an operator.

Told by their text alone, so that the others are never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from opschema_cli.importing_files import IMPORTED
from opschema_cli.project import Project
from opschema_cli.source.import_text import import_lines
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.ops_words import BEHIND_OPS, HELD, words_of


def mentioned(names: Iterable[str], imports: Iterable[tuple[str, str]]) -> set[str]:
    """Return the names that a file imports (``module.*`` for a star import), and those of ``names`` after ``torch.ops``: it may
    use these to call what other files define.
    """
    found = words_of(names)
    for module, name in imports:
        last = module.rpartition(".")[2]
        found.add(last if not name else f"{last}.*" if name == "*" else name)
    return found


def _mentions(project: Project, paths: Iterable[str]) -> Iterator[tuple[str, set[str]]]:
    """The names that each of some files mentions."""
    paths = list(paths)
    project.inputs.update(paths)
    imports = dict(project.scan(IMPORTED, paths))
    return ((path, mentioned(behind, imports[path])) for path, behind in project.scan(BEHIND_OPS, paths))


_IMPORTS = re.compile(r"(?m)^[ \t]*(?:from[ \t]+[\w.]+[ \t]+import[ \t]+(?:[^\n(]+|\([^)]*\))|import[ \t]+[^\n]+)")


class Helper(msgspec.Struct, frozen=True):
    """A function or class whose call may register in another file. For a class, ``registrars`` are the methods that register,
    and ``others`` those that do not. If it is not ``dependent``, it registers the same for all arguments, and only matters where
    a module calls it. A ``library`` is a variable that holds one: its methods register.
    """

    path: str
    name: str
    is_class: bool = False
    registrars: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    dependent: bool = True
    library: bool = False


def files_that_use(project: Project, helpers: Iterable[Helper], paths: Iterable[str]) -> list[str]:
    """The files among some that import one of the helpers, or its module, and call it, decorate with it or pass it on."""
    by_word: dict[str, set[Helper]] = {}
    for helper in helpers:
        file = PurePosixPath(helper.path)
        stem = file.parent.name if file.stem == "__init__" else file.stem
        for word in (helper.name, stem, f"{stem}.*"):
            by_word.setdefault(word, set()).add(helper)
    found = _mentions(project, paths) if by_word else ()
    used = ((path, set().union(*(by_word.get(word, ()) for word in words))) for path, words in found)
    return sorted(path for path, helpers in used if helpers and _uses(project, path, helpers))


def _uses(project: Project, path: str, helpers: Iterable[Helper]) -> bool:
    source = project.source(path)
    if source is None:
        return False
    code = _without_imports(source.text)
    return any(is_used(code, item) or f"{item.name} as " in source.text for item in helpers)


def _without_imports(text: str) -> str:
    """A text without its import statements."""
    pieces: list[str] = []
    end = 0
    for start, _ in import_lines(text):
        found = _IMPORTS.match(text, start) if start >= end else None
        if found is not None:
            pieces.append(text[end:start])
            end = found.end()
    return "".join((*pieces, text[end:]))


def is_used(code: str, helper: Helper) -> bool:
    """Whether code without its imports uses a helper for more than annotations and type tests, by its text alone."""
    if helper.name not in code:
        return False
    if helper.library:
        return registers_by([helper.name], code)
    # Without a word's end before the name it is found many times as fast.
    found = re.finditer(rf"{re.escape(helper.name)}\b", code)
    places = (place for place in found if not _IN_WORD.match(code, max(0, place.start() - 1), place.start()))
    if not helper.dependent:
        places = (place for place in places if not _in_function(code, place.start()))
    if not helper.is_class:
        return next(places, None) is not None
    by_others = False
    for place in places:
        member = _member(code, place)
        if member is not None and member not in helper.others:
            return True
        by_others = by_others or member is not None
    return by_others and any(f".{name}" in code for name in helper.registrars)


def registers_by(libraries: Iterable[str], code: str) -> bool:
    """Whether code calls a method by which one of some variables registers, going by its text."""
    return any(_LIBRARY_CALL.match(code, end) for name in libraries for end in _ends_of(name, code))


def _ends_of(name: str, code: str) -> Iterator[int]:
    """The end of each occurrence of a name that does not start inside a longer word."""
    at = code.find(name)
    while at >= 0:
        if not _IN_WORD.match(code, max(0, at - 1), at):
            yield at + len(name)
        at = code.find(name, at + 1)


def _in_function(code: str, at: int) -> bool:
    """Whether a place is in the body of a function, by the indentation of the lines before it."""
    start = code.rfind("\n", 0, at) + 1
    indent = _indent(code, start)
    while start and indent:
        start = code.rfind("\n", 0, start - 1) + 1
        line = _LINE.match(code, start)
        if line is None or len(line[1]) >= indent:
            continue
        if line[2] in (")", "]", "}"):  # it ends a line that begins further up
            indent = len(line[1]) + 1
        elif line[2] in ("def", "async"):
            return True
        else:
            indent = len(line[1])
    return False


def _indent(code: str, start: int) -> int:
    line = _LINE.match(code, start)
    return len(line[1]) if line is not None else 0


_LINE = re.compile(r"([ \t]*)(\w+|[^\s#])")
"""The indentation of a line with code, and its first word."""


def _member(code: str, place: re.Match[str]) -> str | None:
    """Return the attribute of a class that is used at a mention of it, empty for the class itself; None for an annotation and
    similar mentions.
    """
    after = _AFTER.match(code, place.end())
    if after is not None:
        return after["member"] or ""
    return "" if _BEFORE.search(code, max(0, place.start() - _REACH), place.start()) else None


_IN_WORD = re.compile(r"\w")
_LIBRARY_CALL = re.compile(rf"\s*\.\s*(?:{'|'.join(apis.LIBRARY)})\s*\(")
_AFTER = re.compile(r"\s*(?:\(|\.\s*(?P<member>\w*))")
_BEFORE = re.compile(r"(?:@|=\s*|\bpartial\()[\w.]*\Z|\bclass\s+\w+\([^)]*\Z")
_REACH = 400
"""Number of characters before a mention of a class that decide what it is used for."""


def files_that_call(
    project: Project, operators: Iterable[Operator], paths: Iterable[str], registering: Iterable[str]
) -> list[str]:
    """Return the files among some that name an operator after ``torch.ops``, or import the function or variable that may be one
    from these files or those that register.
    """
    operators, paths = list(operators), list(paths)
    words = words_of_operators(operators)
    if not words:
        return []
    held = project.scan(HELD, [*paths, *registering])
    made = {name for _, names in held for name in words.intersection(names)}
    made.update(name for operator in operators for name in _function_names(operator))
    behind = dict(project.scan(BEHIND_OPS, paths))
    found = _mentions(project, paths)
    return sorted(
        path for path, names in found if not (made.isdisjoint(names) and words.isdisjoint(words_of(behind[path])))
    )


def files_that_mention(project: Project, words: Iterable[str], paths: Iterable[str]) -> list[str]:
    """The files among some that import one of these names or modules, or all that a module has."""
    wanted = set(words)
    found = _mentions(project, paths)
    return sorted(path for path, names in found if any(name in wanted or name.endswith(".*") for name in names))


def words_of_operators(operators: Iterable[Operator]) -> frozenset[str]:
    """The words by which the operators may be called: their names without namespace and overload, and those of the functions that
    ``custom_op`` makes operators of.
    """
    return frozenset(word for operator in operators for word in _words_of(operator) if word)


def _words_of(operator: Operator) -> Iterator[str]:
    yield from (name.partition("::")[2].partition(".")[0] for name in operator.names or ())
    yield from _function_names(operator)


def _function_names(operator: Operator) -> Iterator[str]:
    body = operator.definition.function
    if operator.definition.api in ("custom_op", "triton_op") and body is not None and body.function is not None:
        yield body.function.name

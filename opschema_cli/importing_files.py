"""Finds Python files that import a module, or names of it from other files, in their texts without parsing them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.import_text import import_statements
from opschema_cli.source.modules import Modules
from opschema_cli.word_search import variant_of

_NAME = re.compile(r"([\w.]+|\*)(?:\s+as\s+\w+)?")

MAX_ROUNDS = 3
"""Maximum number of files in a chain that passes a name on."""


def _imported(data: bytes) -> list[tuple[str, str]]:
    """Return the modules that a text imports, and the names from modules, the latter with leading dots."""
    found: set[tuple[str, str]] = set()
    for module, names in import_statements(data.decode("utf-8", "replace")):
        words = (item[1] for item in _NAME.finditer(names))
        found.update((module, word) if module else (word, "") for word in words)
    return sorted(found)


IMPORTED: Reading[bytes, list[tuple[str, str]]] = Reading("imported names", _imported, list[tuple[str, str]])


def importing_files(
    project: Project, modules: Modules, paths: Collection[str], words: Set[str], names: Collection[str]
) -> list[str]:
    """Return the files that import a module with one of some ``paths``, or that import from such a file and contain one of its
    ``names``, in three rounds; and those that contain a string ending with one of ``words``, the last parts of the modules'
    names, or with a name in one.
    """
    peek = project.workspace.peek
    waiting = [path for path in project.workspace.files if path.endswith(".py")]
    imported = dict(project.scan(IMPORTED, waiting))
    asked = [name.encode() for name in names]
    found = dict.fromkeys(path for path, quotes in project.scan(_quoting(words), waiting) if quotes)
    targets: Collection[str] = paths
    for number in range(MAX_ROUNDS + 1):
        led = leading_to(modules, imported, (path for path in waiting if path not in found), targets)
        targets = [path for path in led if not number or _holds(peek(path), asked)]
        targets = [*targets, *found] if not number else targets
        found.update(dict.fromkeys(targets))
        if not targets:
            break
    return list(found)


def leading_to(
    modules: Modules, imported: Mapping[str, Sequence[tuple[str, str]]], paths: Iterable[str], targets: Collection[str]
) -> list[str]:
    """The files whose imports take a module of one of some ``targets``, or a name from it, by what each file has ``imported``."""
    ends = {_last_word(path) for path in targets}
    near = (path for path in paths if _names_one(imported[path], ends))
    return [path for path in near if leads(modules, path, imported[path], targets)]


def _names_one(imported: Sequence[tuple[str, str]], words: Set[str]) -> bool:
    """Whether imports have one of some words in the name of a module, or import a name from an enclosing package of the file."""
    return any(
        name in words or module.endswith(".") or not words.isdisjoint(module.split(".")) for module, name in imported
    )


def leads(modules: Modules, path: str, imported: Sequence[tuple[str, str]], targets: Collection[str]) -> bool:
    """Whether one of a file's imports takes a module of one of some paths, or a name from it."""
    return any(module in targets for name in imported for module in _modules(modules, path, *name))


def _modules(modules: Modules, path: str, module: str, name: str) -> Iterator[str | None]:
    plain = module.lstrip(".")
    full = modules.absolute_name(path, len(module) - len(plain), plain)
    if full:
        yield modules.module_path(full)
        if name:
            yield modules.module_path(f"{full}.{name}")
        while not name and "." in full:  # `import a.b` imports `a` as well
            full = full.rpartition(".")[0]
            yield modules.module_path(full)


def _last_word(path: str) -> str:
    plain = path.removesuffix(".py").removesuffix("/__init__")
    return posixpath.basename(plain)


def _holds(data: bytes, words: Collection[bytes]) -> bool:
    return any(word in data for word in words)


def _quoting(words: Set[str]) -> Reading[bytes, bool]:
    read = partial(_quotes, words=[word.encode() for word in words])
    return Reading("quotes names of extension modules", read, bool, variant=variant_of(words))


def _quotes(data: bytes, words: Collection[bytes]) -> bool:
    """Whether a text has a string that ends with one of some words, or a name in it, as a part of a dotted name."""
    return any(
        word in data and re.search(rb"""["'](?:[\w.]*\.)?%s(?:\.\w+)?["']""" % re.escape(word), data) is not None
        for word in words
    )

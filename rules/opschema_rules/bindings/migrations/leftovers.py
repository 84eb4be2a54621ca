"""Obstacles to migrating a binding (existing operators, other reads of its name) and remaining mentions of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note
from opschema_cli.project import Project
from opschema_cli.source.cpp_text import end_of_braces
from opschema_cli.source.text import Span
from opschema_rules.bindings.imports import Extensions
from opschema_rules.bindings.model import Binding

_BLOCK = r"\bTORCH_LIBRARY(?:_FRAGMENT|_EXPAND|_FRAGMENT_EXPAND)?\(\s*{0}\s*,"
_LIBRARY = r"\bLibrary\(\s*[\"']{0}[\"']"
_DEFINED = re.compile(
    r"\bdef(?:ine)?\(\s*(?:torch::schema\(|TORCH_SELECTIVE_SCHEMA\()?\s*[rR]?[\"'](?:\(\s*)?(\w+)\s*[(.\"']"
)
_QUALIFIED = r"\b(?:def|define|custom_op|triton_op|TORCH_SELECTIVE_NAME)\(\s*[\"']{0}::(\w+)"


def defined_operators(project: Project, namespace: str) -> frozenset[str]:
    """The names of operators that the tree already defines in a namespace."""
    own = re.escape(namespace)
    block, library, qualified = (re.compile(item.format(own)) for item in (_BLOCK, _LIBRARY, _QUALIFIED))
    found: set[str] = set()
    for source in texts_with(project, [namespace], (path for path in project.workspace.files if _is_code(path))):
        found |= set(qualified.findall(source.text))
        if library.search(source.text) is not None:
            found |= set(_DEFINED.findall(source.text))
        for match in block.finditer(source.text):
            end = end_of_braces(source.text, match.end())  # strings of schemas hold no braces
            found |= set(_DEFINED.findall(source.text[match.end() : end if end >= 0 else None]))
    return frozenset(found)


def _is_code(path: str) -> bool:
    return is_cpp(path) or path.endswith(".py")


def read_by_cpp(project: Project, binding: Binding, aliases: int) -> bool:
    """Whether C++ reads a name from a module otherwise than in its aliases."""
    use = re.compile(rb"\battr\(\s*\"%s\"\s*\)(?!\s*=[^=])" % re.escape(binding.name.encode()))
    word = binding.name.encode()
    texts = (project.workspace.peek(path) for path in project.workspace.files if is_cpp(path))
    return sum(len(use.findall(text)) for text in texts if word in text and b"attr" in text) > aliases


def star_imported(extensions: Extensions) -> set[int]:
    """The ids of modules all of whose names a file imports."""
    found: set[int] = set()
    for body in (body for file in extensions.bodies.files for body in extensions.bodies.of(file)):
        for item in body.scope.imports:
            full = extensions.program.imported_name(body.file, item) if item.attr == "*" else None
            path = extensions.program.module_path(full.removesuffix(".*")) if full is not None else None
            found |= {id(module) for module in extensions.by_path.get(path or "", ())}
    return found


def unparsed(project: Project, paths: Iterable[str]) -> Iterator[Note]:
    """The files that may use a module and cannot be parsed."""
    for path in paths:
        if project.python(path) is None:
            yield Note(Place(path, Span(0, 0)), "this file cannot be parsed; uses of bindings in it are not rewritten")


def mentioned(project: Project, bindings: Iterable[Binding], edited: Mapping[str, Sequence[Span]]) -> Iterator[Note]:
    """Mentions of bindings that become operators in prose and notebooks, and by the full name in strings of Python.

    ``edited`` are the spans of the uses that are rewritten.
    """
    modules: dict[str, set[str]] = {}
    for item in bindings:
        if item.module.name:
            modules.setdefault(item.module.name, set()).add(item.name)
    for name, functions in modules.items():
        last = name.rpartition(".")[2]
        any_of = "|".join(sorted(map(re.escape, functions), key=len, reverse=True))
        short = re.compile(
            rf"(?<!\w){re.escape(last)}\.({any_of})\b|\bfrom[ \t]+[\w.]*{re.escape(last)}[ \t]+import\b[^\n]*?\b({any_of})\b"
        )
        full = re.compile(rf"(?<![\w.]){re.escape(name)}\.({any_of})\b")
        paths = (path for path in project.workspace.files if not is_cpp(path) and not path.endswith(".pyi"))
        for source in texts_with(project, [last], paths):
            spans = edited.get(source.path, ())
            starts = {span.start for span in spans}
            for match in (full if source.path.endswith(".py") else short).finditer(source.text):
                if match.start() not in starts:
                    shown = match[1] or match[2]
                    yield Note(Place(source.path, Span(*match.span())), f"still mentions `{shown}` of `{name}`")

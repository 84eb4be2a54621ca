"""The C++ code of a lazy tensor backend's nodes: the hand-written parts of the classes generated for operators.

For an operator under ``full_codegen`` or ``ir_gen`` a generator that derives from torchgen's declares a class of nodes, such as
``AddScalar`` for ``add.Scalar``. pytorch/xla's leaves ``AddScalar::Lower`` and the function ``AddScalarOutputShape`` to be
written. Files are searched as text, so that a definition which a macro makes counts where its name is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.aten.dialects import DIALECTS
from opschema_rules.aten.kernel_search import cpp_files
from opschema_rules.aten.model import BackendFile, BackendItem

LISTS = ("full_codegen", "ir_gen")
"""The lists for whose operators classes of nodes are generated."""

PARTS = {"Lower": "{}::Lower", "OutputShape": "{}OutputShape"}
"""The functions that are written for a node, each with its full name."""

_NAME = r"\b([A-Za-z_]\w*?)(?:\s*::\s*(Lower)|(OutputShape))\s*\("
_DEFINED = re.compile(_NAME + r"(?:[^;{}#]|\{[^;{}#]*\})*\)[^;{}()#]*\{")
_GENERATED = re.compile(r"[\w>&](?<!\breturn)[ \t]+(?:\$?\{{1,2}[^{}\n]{1,80}\}{1,2}|%s)(?:::Lower|OutputShape)\s*\(")
"""Text of a generator, or of its template, that defines functions of nodes with computed names: a type precedes them."""

_TEXTS = (
    *(".py", ".inc", ".def", ".hpp", ".hh", ".hxx", ".cxx", ".ipp", ".tpp"),
    *(".in", ".tpl", ".tmpl", ".template", ".j2", ".jinja"),
)
"""Ends of the names of other files that may define functions of nodes, or list nodes for macros."""

_MACRO = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)\((?:\\\r?\n|[^\r\n])*(?:Lower|OutputShape)\b")


class Parts(msgspec.Struct, frozen=True, array_like=True):
    """The functions that one file defines for nodes, by their full names, and the names that its macros may define."""

    defined: dict[str, Span]
    perhaps: frozenset[str] = frozenset()


class LazyNodes(msgspec.Struct, eq=False, frozen=True):
    """The nodes that are generated for a backend's operators, and the functions that the tree defines for any node."""

    backend: BackendFile
    nodes: Sequence[tuple[BackendItem, str]]
    defined: Mapping[str, Place]
    perhaps: frozenset[str]


def read_lazy_nodes(
    project: Project, backends: Sequence[BackendFile], files: Sequence[str] = ()
) -> Iterator[LazyNodes]:
    """Yield the nodes of each backend that has any; with ``files`` (paths or patterns), their functions are only searched there."""
    judged = [item for item in backends if DIALECTS[item.dialect].strict and any(_nodes(item))]
    if not judged:
        return
    marks = (b"Lower", b"OutputShape")
    paths = [path for path in cpp_files(project, files) if any(mark in project.workspace.peek(path) for mark in marks)]
    project.claim(paths)
    read = project.readings(_READING, paths)
    defined = {name: Place(path, span) for path, parts in read.items() for name, span in parts.defined.items()}
    perhaps = frozenset(chain.from_iterable(parts.perhaps for parts in read.values()))
    for backend in judged:
        nodes = list(_nodes(backend))
        lacking = {node for _, node in nodes if any(part.format(node) not in defined for part in PARTS.values())}
        followed = any(part.format(node) in defined for _, node in nodes for part in PARTS.values())
        mentioned = _mentioned(project, lacking - perhaps) if followed else frozenset()
        yield LazyNodes(backend, nodes, defined, perhaps | mentioned)


def _mentioned(project: Project, nodes: Collection[str]) -> frozenset[str]:
    """The nodes that the tree may define in ways that are not followed: their names are arguments of macros or templates, names of
    classes or variables. All, if a script or template of the tree writes functions of nodes.
    """
    if not nodes:
        return frozenset()
    named = re.compile(rf"(?<![\w:.])(?<!->)({'|'.join(sorted(nodes))})(?:(?!\w|\s*::|\s*\()|OutputShape\b(?!\s*\())")
    words = [node.encode() for node in nodes]
    found = set[str]()
    for path in dict.fromkeys((*cpp_files(project, ()), *filter(_is_text, project.workspace.files))):
        data = project.workspace.peek(path)
        generates = b"::Lower" in data or b"OutputShape" in data
        source = project.source(path) if generates or any(word in data for word in words) else None
        if source is None or (path.endswith(".py") and not generates):
            continue
        if generates and _GENERATED.search(source.text):
            return frozenset(nodes)
        text = only_code(source.text) if is_cpp(path) else source.text
        found.update(item[1] for item in named.finditer(text))
        if path.endswith(_TEXTS):
            found.update(node for node in nodes if any(part.format(node) in text for part in PARTS.values()))
    return frozenset(found)


def _is_text(path: str) -> bool:
    return path.endswith(_TEXTS)


def node_name(operator: str) -> str:
    """The class of an operator's node, as torchgen names it (``LazyIrSchema.node_name``)."""
    name, _, overload = operator.removeprefix("aten::").partition(".")
    return "".join(word.capitalize() for word in f"{name}_{overload}".lower().split("_"))


def _nodes(backend: BackendFile) -> Iterator[tuple[BackendItem, str]]:
    """The operators with nodes of their own: in-place and out variants share that of the functional one."""
    for item in chain.from_iterable(map(backend.section, LISTS)):
        name, _, overload = item.name.partition(".")
        if not name.endswith("_") and "out" not in overload and item.options is None:
            yield item, node_name(item.name)


def _parts(text: str) -> Parts:
    code = only_code(text)
    defined: dict[str, Span] = {}
    for found in _DEFINED.finditer(code):
        kind = found[2] or found[3]
        defined.setdefault(PARTS[kind].format(found[1]), Span(found.start(1), found.end(2 if found[2] else 3)))
    macros = {found[1] for found in _MACRO.finditer(text)}
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, macros))})\s*\(([^()]{{0,500}})\)") if macros else None
    words = (re.findall(r"\w+", found[1]) for found in used.finditer(code)) if used is not None else ()
    return Parts(defined, frozenset(chain.from_iterable(words)))


_READING: Reading[str, Parts] = Reading("aten: functions of lazy nodes", _parts, Parts)

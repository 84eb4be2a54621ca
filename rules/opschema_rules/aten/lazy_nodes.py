"""The C++ of a lazy tensor backend's nodes: what is written by hand for the classes that are generated for operators.

For an operator under ``full_codegen`` or ``ir_gen`` a generator that derives from torchgen's declares a class of nodes, such as
``AddScalar`` for ``add.Scalar``. pytorch/xla's leaves ``AddScalar::Lower`` and the function ``AddScalarOutputShape`` to be
written. Files are searched as text, so that a definition which a macro makes counts where its name is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.text import Span
from opschema_rules.aten.dialects import DIALECTS
from opschema_rules.aten.kernel_search import cpp_files
from opschema_rules.aten.model import BackendFile, BackendItem

LISTS = ("full_codegen", "ir_gen")
"""The lists for whose operators classes of nodes are generated."""

PARTS = {"Lower": "{}::Lower", "OutputShape": "{}OutputShape"}
"""The functions that are written for a node, each with its full name."""

_MUTE = re.compile(r"""//(?:\\\r?\n|[^\r\n])*|/\*[\s\S]*?(?:\*/|\Z)|"(?:[^"\\\r\n]|\\.)*"?""")
_NAME = r"\b([A-Za-z_]\w*?)(?:\s*::\s*(Lower)|(OutputShape))\s*\("
_DEFINED = re.compile(_NAME + r"[^;{}#]*\)[^;{}()#]*\{")
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
    """The nodes of each backend that has any; their functions are looked for in ``files`` only (paths or patterns), if given."""
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
        yield LazyNodes(backend, list(_nodes(backend)), defined, perhaps)


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
    code = _MUTE.sub(lambda found: re.sub(r"[^\r\n]", " ", found[0]), text)
    defined: dict[str, Span] = {}
    for found in _DEFINED.finditer(code):
        kind = found[2] or found[3]
        defined.setdefault(PARTS[kind].format(found[1]), Span(found.start(1), found.end(2 if found[2] else 3)))
    macros = {found[1] for found in _MACRO.finditer(text)}
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, macros))})\s*\(([^()]{{0,500}})\)") if macros else None
    words = (re.findall(r"\w+", found[1]) for found in used.finditer(code)) if used is not None else ()
    return Parts(defined, frozenset(chain.from_iterable(words)))


_READING: Reading[str, Parts] = Reading("aten: functions of lazy nodes", _parts, Parts)

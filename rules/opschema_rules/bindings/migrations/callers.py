"""Python that uses bound functions, rewritten to call operators."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Import, PythonFile
from opschema_cli.source.text import Edit, Span
from opschema_rules.bindings.imports import Extensions, Target, bindings_of
from opschema_rules.bindings.migrations.derived import DerivedOperator

_FROM = re.compile(r"(?m)^([ \t]*)from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^()#]*)\)|([^\r\n()#\\]*))[ \t]*(?=\r?$)")


_TORCH = "import torch\n"
_ASKS = ("hasattr", "getattr", "setattr", "delattr")


class Rewritten(msgspec.Struct):
    """The edits of one Python file, the names of bindings with uses that cannot be rewritten, and places that pass a module on.

    ``runs_at`` is the first edit of code that runs when the file is imported.
    """

    edits: list[Edit] = msgspec.field(default_factory=list)
    refused: set[str] = msgspec.field(default_factory=set)
    passed_on: list[Place] = msgspec.field(default_factory=list)
    uses: set[str] = msgspec.field(default_factory=set)
    runs_at: int = sys.maxsize

    def add(self, body: Body, edit: Edit) -> None:
        """Add the edit of code of a body."""
        self.edits.append(edit)
        if body.function is None:
            self.runs_at = min(self.runs_at, edit.span.start)


def rewrite_callers(
    extensions: Extensions, bindings: Mapping[int, DerivedOperator], namespace: str
) -> Iterator[tuple[PythonFile, Rewritten]]:
    """The edits of all files that use one of some bindings; ``bindings`` are by their ids."""
    for file in extensions.bodies.files:
        found = Rewritten()
        for body in extensions.bodies.of(file):
            _uses(extensions, body, bindings, namespace, found)
            _imports(extensions, body, bindings, namespace, found)
            found.refused |= _named_in_strings(extensions, body, bindings)
        if found.edits or found.refused or found.passed_on:
            found.edits += _marked_imports(extensions, file, found.edits)
            _import_torch(file, found)
            yield file, found


def _named_in_strings(extensions: Extensions, body: Body, bindings: Mapping[int, DerivedOperator]) -> set[str]:
    """The names that a loader is passed in strings (``load_ext("_C", ["f"])``, ``lazy("f")``), which it looks up in the module."""
    names = {item.binding.name for item in bindings.values()}
    modules = {id(item.binding.module) for item in bindings.values()}
    found: set[str] = set()
    for call in body.scope.calls:
        parts = (part.value for item in call.items[1:] for part in item.walk())
        words = names.intersection(part for part in parts if isinstance(part, str))
        target = extensions.names.value(body, call) if words else None
        if target is not None and any(id(module) in modules for module in target.modules):
            found |= words
    return found


def _moved(target: Target | None, bindings: Mapping[int, DerivedOperator], found: Rewritten) -> str:
    """Return the name of the operator that a target refers to, if it is one of some; if there are several builds, none is
    rewritten.
    """
    items = bindings_of(target) if target is not None else []
    names = {bindings[id(item)].name if id(item) in bindings else "" for item in items}
    if not any(names):
        return ""
    if len(names) > 1 or len({id(item.module) for item in items}) > 1:
        found.refused.add(items[0].name)
        return ""
    return names.pop()


def _uses(
    extensions: Extensions, body: Body, bindings: Mapping[int, DerivedOperator], namespace: str, found: Rewritten
) -> None:
    own = {id(item.binding.module) for item in bindings.values()}
    assigned = {item.value.start for item in body.scope.assigns if item.value is not None and item.value.kind == "name"}
    assigned |= {call.items[1].start for call in body.scope.calls if call.callee in _ASKS and len(call.items) > 2}
    for use in body.scope.uses:
        holder, _, last = use.name.rpartition(".")
        whole = extensions.meaning(body, use.name) if use.start not in assigned else None
        if whole is not None and not whole.name and any(id(module) in own for module in whole.modules):
            found.passed_on.append(body.at(use.span))
        target = extensions.meaning(body, holder) if holder else None
        if target is not None and not target.name:
            member = target.member(last)
            name = _moved(member, bindings, found)
            if name and member is not None and not _can_name_torch(body, use.start):
                found.refused.add(bindings_of(member)[0].name)
            elif name:
                found.add(body, Edit(use.span, f"torch.ops.{namespace}.{name}"))
                found.uses.add(name)


def _imports(
    extensions: Extensions, body: Body, bindings: Mapping[int, DerivedOperator], namespace: str, found: Rewritten
) -> None:
    names = {
        item.start: (item.name, item.attr, name, bindings_of(target)[0].name)
        for item in body.scope.imports
        if item.attr and item.attr != "*"
        for full in [extensions.program.imported_name(body.file, item)]
        if full is not None and _is_of_extension(extensions, full)
        for target in [extensions.names.full_meaning(full)]
        for name in [_moved(target, bindings, found)]
        if name and target is not None
    }
    if not names:
        return
    text = body.file.source.text
    statements = [match for match in _FROM.finditer(text) if any(match.start() <= at < match.end() for at in names)]
    named = {at for at in names if _can_name_torch(body, at)}
    covered = {at for at in named if any(match.start() <= at < match.end() for match in statements)}
    found.refused |= {names[at][3] for at in names.keys() - covered}
    for match in statements:
        own = {names[at] for at in covered if match.start() <= at < match.end()}
        moved = {attr for _, attr, *_ in own}
        items = [item.strip() for item in (match[3] or match[4]).split(",") if item.strip()]
        kept = [item for item in items if item.split()[0] not in moved]
        first = [f"from {match[2]} import {', '.join(kept)}"] if kept else _loading(body, match[2], match.start())
        lines = [*first, *(f"{local} = torch.ops.{namespace}.{name}" for local, _, name, _ in sorted(own))]
        found.add(body, Edit(Span(*match.span()), "\n".join(f"{match[1]}{line}" for line in lines)))
        found.uses |= {name for _, _, name, _ in own}


_INNER = re.compile(r"\bfor\s+[^\n:=]*\btorch\b[^\n:=.]*\bin\b|\blambda\b[^:\n]*\btorch\b\s*[,=:]")
"""Expressions that may bind ``torch`` for a part of a line."""


@lru_cache(maxsize=4)
def _rebinds_torch(text: str) -> bool:
    return _INNER.search(text) is not None


def _can_name_torch(body: Body, at: int) -> bool:
    """Whether ``torch`` is the package at a place of a body, or is where the file imports it."""
    if _rebinds_torch(body.file.source.text):
        return False
    binder = body.binder("torch")
    if binder is None:
        named = body.file.body.named.get("torch", ())
        return all(isinstance(item, Import) and item.module.partition(".")[0] == "torch" for item in named)
    named = binder.scope.named.get("torch", ())
    imports = [item for item in named if isinstance(item, Import) and item.module.partition(".")[0] == "torch"]
    own = len(imports) == len(named) and not any(item.name == "torch" for item in binder.params)
    return own and bool(imports) and (binder is not body or imports[0].start < at)


def _loading(body: Body, module: str, at: int) -> list[str]:
    """The import that still loads an extension, if no other one does so before ``at``."""
    package, _, own = module.rpartition(".")
    dots = package + "." if package.strip(".") == "" and module.startswith(".") else package
    for item in body.file.body.imports:
        if item.guarded or (item.start > at and body.function is None):
            continue
        full = "." * item.level + item.module
        if (full == module and not item.attr) or (item.attr == own and full in (package, dots)):
            return []
    return [f"from {dots} import {own}  # noqa: F401" if dots else f"import {own}  # noqa: F401"]


_ALONE = re.compile(r"[ \t]*(?:import|from)\b[^\n,;#(\\\r]*")


def _marked_imports(extensions: Extensions, file: PythonFile, edits: Iterable[Edit]) -> Iterator[Edit]:
    """Marks for linters on imports that nothing uses once some edits are made: they still load the operators."""
    starts = {item.span.start for item in edits}
    bodies, text = list(extensions.bodies.of(file)), file.source.text
    uses = {(use.name.partition(".")[0], use.start) for body in bodies for use in body.scope.uses if "." in use.name}
    moved = {name for name, start in uses if start in starts}
    kept = {use.name.partition(".")[0] for body in bodies for use in body.scope.uses if use.start not in starts}
    for item in (item for body in bodies for item in body.scope.imports):
        line = _ALONE.match(text, text.rfind("\n", 0, item.start) + 1)
        named = item.name in moved - kept and not re.search(rf"[\"']{re.escape(item.name)}[\"']", text)
        if named and line is not None and text[line.end() : line.end() + 1] in ("", "\r", "\n"):
            end = line.end() - len(line[0]) + len(line[0].rstrip())
            yield Edit(Span(end, end), "  # noqa: F401")


def _is_of_extension(extensions: Extensions, full: str) -> bool:
    """Whether a full name is that of an extension module and a name in it: names passed on by other modules are kept."""
    return extensions.program.module_path(full.rpartition(".")[0]) in extensions.by_path


def _import_torch(file: PythonFile, found: Rewritten) -> None:
    loaded = any(_loads_torch(file, item) and item.start < found.runs_at for item in file.imports.get("torch", ()))
    if not found.edits or loaded:
        return
    imports = [item for item in file.body.imports if item.module != "__future__"]
    first = min((item.start for item in imports), default=0)
    line = file.source.text.rfind("\n", 0, first) + 1
    while line and not re.match(r"(?:from|import)\b", file.source.text[line:]):
        line = file.source.text.rfind("\n", 0, line - 1) + 1
    there = next((item for item in found.edits if item.span.start == line), Edit(Span(line, line), ""))
    found.edits = [item for item in found.edits if item != there]
    found.edits.append(Edit(there.span, f"{_TORCH}{there.replacement}"))


_ONLY_TYPES = re.compile(r"\bTYPE_CHECKING\b")


def _loads_torch(file: PythonFile, item: Import) -> bool:
    """Whether an import binds torch when the file runs."""
    if item.module.partition(".")[0] != "torch" or item.attr:
        return False
    around = (one for one in file.body.conditions if one.body.start <= item.start < one.body.end)
    return not any(_ONLY_TYPES.search(file.text(one.expr)) for one in around)


def merged(edits: Iterable[Edit]) -> list[Edit]:
    """The edits of a file for several modules: the import of torch is inserted once."""
    found = list(dict.fromkeys(edits))
    starts = {item.span.start for item in found if item.replacement.startswith(_TORCH) and item.replacement != _TORCH}
    kept = [item for item in found if item.replacement != _TORCH or item.span.start not in starts]
    first = next((item for item in kept if item.replacement.startswith(_TORCH)), None)
    return [
        Edit(item.span, item.replacement.removeprefix(_TORCH)) if item is not first and item.span.end else item
        for item in kept
    ]

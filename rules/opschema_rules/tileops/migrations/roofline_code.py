"""An input's name in the functions that ``roofline.func`` names: they read an op, or a row, by the names of its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeGuard

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.calls import rename_keyword
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.signatures import rename_parameter
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.tileops.drift import names
from opschema_rules.tileops.migrations.call_sites import CallSites, FunctionKey, key_of
from opschema_rules.tileops.migrations.input_code import method_node
from opschema_rules.tileops.migrations.words import paths_with_any
from opschema_rules.tileops.model import OpEntry

_READS = frozenset({"get", "pop", "setdefault"})
_REFLECTION = frozenset({"getattr", "hasattr", "setattr"})


class RooflineCode:
    """One renaming in the roofline functions of some entries of one manifest, whose own code has the new name already."""

    def __init__(self, draft: Draft, entries: Sequence[OpEntry], old: str, new: str) -> None:
        self.draft = draft
        self.entries = entries
        self.renamed = {old: new, f"{old}_shape": f"{new}_shape"}
        self.old = old
        self.workbench = Workbench(draft)

    def rewrite(self) -> Iterator[Note]:
        """Draft the edits; yield notes on what remains."""
        done: dict[FunctionKey, FunctionRef] = {}
        for ref, users in self._functions():
            keeping = [entry.name for entry in users if entry.input(self.old) is not None]
            if keeping and self._mentions(ref):
                text = f"`{ref.function.name}()` is left unchanged: {names(keeping)} share it and have `{self.old}`"
                yield Note(Place(ref.file.path, ref.function.span), text)
            elif not keeping:
                yield from self._rename(ref, users)
                done[key_of(ref)] = ref
        yield from self._rename_arguments(done)
        yield from self._not_followed()
        self.workbench.commit()

    def _functions(self) -> Iterator[tuple[FunctionRef, list[OpEntry]]]:
        """The functions of these entries, and all entries that name each."""
        found: dict[FunctionKey, tuple[FunctionRef, list[OpEntry]]] = {}
        for entry in self.entries[0].manifest.entries:
            ref = roofline_function(entry)
            if ref is not None:
                found.setdefault(key_of(ref), (ref, []))[1].append(entry)
        return ((ref, users) for ref, users in found.values() if any(entry in self.entries for entry in users))

    def _not_followed(self) -> Iterator[Note]:
        """Notes on entries whose function is unknown, in a module that has the name of the input's shape."""
        shape = f"{self.old}_shape"
        for entry in self.entries:
            path, name = _module(entry)
            node = entry.get("roofline", "func")
            unknown = (
                path is not None and roofline_function(entry) is None and _word(shape).search(self.draft.text(path))
            )
            if unknown and node is not None:
                text = f"`{name}` may read `{shape}`, which is now `{self.renamed[shape]}`; it is not a function that is known"
                yield Note(entry.at(node), text)

    def _mentions(self, ref: FunctionRef) -> bool:
        text = ref.file.source.text[slice(*ref.function.outer)]
        return any(_word(name).search(text) for name in self.renamed)

    def _rename(self, ref: FunctionRef, users: Sequence[OpEntry]) -> Iterator[Note]:
        try:
            with self.workbench.on(ref.file.path) as rewrite:
                node = method_node(rewrite.tree, ref)
                for old, new in self.renamed.items():
                    if ref.function.param(old) is not None:
                        rename_parameter(rewrite, node, old, new)
                    yield from self._rename_reads(rewrite, node, ref, users, old)
        except LeftAlone as left:
            yield Note(left.place, f"rename `{self.old}` in `{ref.function.name}()` by hand: {left.reason}")

    def _rename_reads(
        self, rewrite: Rewrite, node: cst.FunctionDef, ref: FunctionRef, users: Sequence[OpEntry], old: str
    ) -> Iterator[Note]:
        """Rename a function's reads of an op or row, unless the op's own code provides the name."""
        reads = list(_reads(rewrite.tree, node, old, frozenset(param.name for param in ref.function.params)))
        strings = [item for item in rewrite.tree.walk(node) if _is_string(item, old)]
        sure = {span for span, is_sure in reads if is_sure}
        left = {_inside(rewrite.tree, item) for item in strings} | {span for span, _ in reads}
        if left == sure and not any(self._is_given(entry, old) for entry in users):
            for span in sure:
                rewrite.replace(span, self.renamed[old])
            return
        for span in sorted(left):
            text = f"this reads `{old}`; the input is now `{self.renamed[self.old]}`"
            yield Note(Place(ref.file.path, span), text)

    def _is_given(self, entry: OpEntry, name: str) -> bool:
        """Whether the op itself provides the name: as a parameter, or as an attribute, argument or string in its class's file."""
        if entry.param(name) is not None:
            return True
        found = entry.op_class
        files = {ref.file.path for ref in entry.manifest.program.lineage(found)} if isinstance(found, ClassRef) else ()
        word = re.escape(name)
        given = re.compile(rf"""\.{word}(?!\w)|(['"]){word}\1|(?<!\w){word}[ \t]*=(?!=)""")
        return any(given.search(self.draft.text(path)) for path in files)

    def _rename_arguments(self, done: dict[FunctionKey, FunctionRef]) -> Iterator[Note]:
        """Rename the keywords in calls of the functions."""
        calls = CallSites(self.entries[0].manifest.program)
        for path in paths_with_any(self.draft, {ref.function.name for ref in done.values()}):
            file = self.draft.project.python(path)
            for site in calls.of(file) if file is not None else ():
                passed = [name for name in site.call.keywords if name in self.renamed]
                if passed and any(key_of(target) in done for target in site.targets or ()):
                    yield from self._rename_argument(path, site.call.span, passed)

    def _rename_argument(self, path: str, span: Span, passed: Sequence[str]) -> Iterator[Note]:
        try:
            with self.workbench.on(path) as rewrite:
                for name in passed:
                    rename_keyword(rewrite, rewrite.tree.find(span, cst.Call), name, self.renamed[name])
        except LeftAlone as left:
            yield Note(left.place, left.reason)


def roofline_function(entry: OpEntry) -> FunctionRef | None:
    """The function that ``roofline.func`` names, where the workspace has it."""
    path, name = _module(entry)
    found = entry.manifest.program.module_member(path, name) if path is not None else None
    return found if isinstance(found, FunctionRef) else None


def _module(entry: OpEntry) -> tuple[str | None, str]:
    """The file of the module that ``roofline.func`` names, where the workspace has it, and the name in it."""
    dotted = entry.text_at("roofline", "func") or ""
    module, _, name = dotted.rpartition(".")
    is_dotted = module and all(part.isidentifier() for part in dotted.split("."))
    return (entry.manifest.program.module_path(module) if is_dotted else None), name


def _reads(
    tree: PythonTree, function: cst.FunctionDef, name: str, params: frozenset[str]
) -> Iterator[tuple[Span, bool]]:
    """Yield the places where a function reads an attribute or key of that name, and whether the object is known to be its
    argument.
    """
    targets = (node.target for node in tree.walk(function) if isinstance(node, cst.AssignTarget))
    given = {*params, *(target.value for target in targets if isinstance(target, cst.Name))}
    for node in tree.walk(function):
        if isinstance(node, cst.Attribute) and node.attr.value == name and _root(node) in given:
            yield tree.span(node.attr), True
        for owner, key in _keys(node):
            if _is_string(key, name):
                yield _inside(tree, key), _root(owner) in given


def _keys(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """The object that an expression reads by a key, and the key."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        yield node.value, node.slice[0].slice.value
    elif isinstance(node, cst.Comparison) and isinstance(node.comparisons[0].operator, cst.In | cst.NotIn):
        yield node.comparisons[0].comparator, node.left
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _READS:
        yield from ((node.func.value, arg.value) for arg in node.args[:1])
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _REFLECTION:
        yield from ((node.args[0].value, arg.value) for arg in node.args[1:2])


def _root(node: cst.CSTNode) -> str:
    """The name at whose attributes or items an expression looks, through ``vars()`` too."""
    while isinstance(node, cst.Attribute | cst.Subscript | cst.Call):
        if isinstance(node, cst.Call):
            if not (isinstance(node.func, cst.Name) and node.func.value == "vars" and len(node.args) == 1):
                return ""
            node = node.args[0].value
        else:
            node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _is_string(node: cst.CSTNode, value: str) -> TypeGuard[cst.SimpleString]:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == value


def _inside(tree: PythonTree, node: cst.SimpleString) -> Span:
    """A string without its quotes."""
    first, last = tree.span(node)
    return Span(first + len(node.prefix) + len(node.quote), last - len(node.quote))


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")

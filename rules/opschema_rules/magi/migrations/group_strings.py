"""Lookups and mentions by strings of an op whose parameters are grouped."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import External, FunctionRef, Resolution, Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.migrations.grouping import Grouping
from opschema_rules.magi.migrations.indirect_lookups import INDIRECT, indirect_lookups
from opschema_rules.magi.migrations.trees import is_inner, python_files

_METHODS = ("__getattr__", "__getattribute__")
_COMPUTED = r"\bgetattr\(\s*[^\s,'\"][^,]{0,500},\s*(?!['\"])"
_LITERAL = '"'


class NamedInStrings(msgspec.Struct):
    """The places where a string, or the attribute of something that a string names, may be one op."""

    workbench: Workbench
    group: Grouping

    def refuse(self) -> None:
        """Check that nothing looks the op up by a string.

        Raises:
            LeftAlone: it does.
        """
        quoted = rf"['\"](?:{'|'.join(self._words)})['\"]"
        for file, tree, node in self._lookups(rf"{self._origin}|{quoted}"):
            if self._is_op(self._meaning(file, tree, node)):
                raise LeftAlone(Place(file.path, tree.span(node)), "the op is looked up by a string here")

    def notes(self) -> Iterator[Note]:
        """The places that may look the op up, and other mentions of its qualified name."""
        title = self.group.op.title
        lookups = [*self._lookups(self._origin), *self._computed()]
        for file, tree, node in lookups:
            found = self._meaning(file, tree, node)
            if found is None or isinstance(found, Unresolved) or found == External(self._space):
                yield Note(Place(file.path, tree.span(node)), f"this may be `{title}`, which takes other arguments now")
        for place, sure in self._indirect():
            yield Note(place, f"this {'is' if sure else 'may be'} `{title}`, which takes other arguments now")
        registration = self.group.op.registration
        for mention in mentions(self.workbench.draft.project, [*self._qualified(), *self._paths()]):
            at = mention.place
            call = registration.call if at.path == registration.outer.file.path else None
            code = at.path.endswith(".py") and mention.name.startswith("torch.ops.")
            if not code and (call is None or not call.start <= at.span.start < call.end):
                yield Note(at, f"`{title}`, which takes other arguments now, is named here")

    @property
    def _space(self) -> str:
        return "torch.ops." + (self.group.op.name or "").partition("::")[0]

    def _qualified(self) -> list[str]:
        name = self.group.op.name or ""
        return [name, f"torch.ops.{name.replace('::', '.')}"]

    def _paths(self) -> list[str]:
        """Return the op's dotted paths, as passed to a mock."""
        registration = self.group.op.registration
        module = self.group.op.tree.bodies.program.module_name(registration.outer.file.path)
        return [f"'{module}.{registration.handle}'", f'"{module}.{registration.handle}"']

    @property
    def _words(self) -> set[str]:
        """The op's name, and that of its function."""
        return {(self.group.op.name or "").rpartition("::")[2], self.group.op.registration.handle}

    @property
    def _origin(self) -> str:
        """A pattern of the op's namespace and of the last name of its module."""
        registration, space = self.group.op.registration, (self.group.op.name or "").partition("::")[0]
        module = self.group.op.tree.bodies.program.module_name(registration.outer.file.path)
        return rf"\b(?:{re.escape(space)}|{re.escape(module.rpartition('.')[2])})\b"

    def _lookups(self, like: str) -> Iterator[tuple[PythonFile, PythonTree, cst.CSTNode]]:
        """Lookups in the files that hold the op's name, and in whose text a pattern is found."""
        words = self._words
        for file in python_files(
            self.workbench.draft, words, r"getattr|__dict__|\bvars\b|import_module|\bmodules\b", like
        ):
            tree = self.workbench.tree(file.path)
            for word in sorted(words):
                for node in [*self._by_strings(tree, word), *tree.attributes(word)]:
                    if not dotted(node):
                        yield file, tree, node

    def _computed(self) -> Iterator[tuple[PythonFile, PythonTree, cst.CSTNode]]:
        """Objects that something is looked up in by a computed name, where that may be the op's namespace."""
        space = (self.group.op.name or "").partition("::")[0]
        for file in python_files(self.workbench.draft, {"getattr"}, rf"\b{space}\b", r"\bops\b", _COMPUTED):
            tree = self.workbench.tree(file.path)
            for call in tree.calls("getattr"):
                if len(call.args) > 1 and not _text(call.args[1].value):
                    owner = call.args[0].value
                    if self._meaning(file, tree, owner) == External(self._space):
                        yield file, tree, owner

    def _indirect(self) -> Iterator[tuple[Place, bool]]:
        """The places that look the op up in several steps, with whether that is sure; others count if its origin is in the file."""
        for file in python_files(self.workbench.draft, self._words, INDIRECT):
            tree = self.workbench.tree(file.path)
            near = re.search(self._origin, file.source.text) is not None
            for found in (item for word in sorted(self._words) for item in indirect_lookups(tree, word)):
                known = self._named(file, tree, found.node, found.path) if found.own else None
                if found.owner is not None:
                    known = self._meaning(file, tree, found.owner, f".{found.path}")
                unclear = not found.own and (known is None or isinstance(known, Unresolved))
                if self._is_op(known) or (near and unclear):
                    yield Place(file.path, tree.span(found.node)), self._is_op(known)

    def _by_strings(self, tree: PythonTree, word: str) -> Iterator[cst.CSTNode]:
        for string in tree.strings(word):
            for above in tree.ancestors(string):
                if isinstance(above, cst.Call | cst.Subscript):
                    if _lookup(above)[1] == word:
                        yield above
                    break

    def _meaning(self, file: PythonFile, tree: PythonTree, node: cst.CSTNode, behind: str = "") -> Resolution | None:
        """Return the meaning of a lookup, or of ``behind`` in its result; None if it is a lookup in an unnamed object."""
        bodies = self.group.op.tree.bodies
        name = spelled(node)
        name += behind if name else ""
        if name.startswith(_LITERAL):
            module, _, rest = name[1:].partition(_LITERAL)
            path = bodies.program.module_path(module)
            found = self.workbench.draft.project.python(path) if path is not None else None
            return bodies.resolve(bodies.module(found), rest[1:]) if found is not None else External(module)
        return self._named(file, tree, node, name) if name else None

    def _named(self, file: PythonFile, tree: PythonTree, node: cst.CSTNode, name: str) -> Resolution | None:
        """Return the meaning of a dotted name at a node; None if an enclosing expression binds it."""
        bodies = self.group.op.tree.bodies
        if is_inner(tree, node, name.partition(".")[0]):
            return None
        return bodies.resolve(bodies.at(file, tree.span(node).start), name)

    def _is_op(self, found: Resolution | None) -> bool:
        if isinstance(found, FunctionRef):
            return found.function is self.group.op.body.function
        return found == External(self._qualified()[1])


def spelled(node: cst.CSTNode | None) -> str:
    """The dotted name that a lookup by strings means: ``a.b`` of ``getattr(a, "b")``, ``"m".b`` of ``import_module("m").b``."""
    parts: list[str] = []
    while True:
        name = dotted(node)
        if name or (isinstance(node, cst.Call | cst.Subscript) and (name := _imported(node))):
            return ".".join([name, *reversed(parts)])
        node, attribute = _lookup(node)
        if not attribute:
            return ""
        parts.append(attribute)


def _lookup(node: cst.CSTNode | None) -> tuple[cst.CSTNode | None, str]:
    """The object and the attribute of a lookup."""
    if isinstance(node, cst.Attribute):
        return node.value, node.attr.value
    if isinstance(node, cst.Call):
        func, args = node.func, [arg.value for arg in node.args]
        if dotted(func) in ("getattr", "builtins.getattr") and len(args) in (2, 3):
            return args[0], _text(args[1])
        if isinstance(func, cst.Attribute) and func.attr.value in _METHODS and len(args) == 1:
            return func.value, _text(args[0])
    if isinstance(node, cst.Subscript):
        space, key = node.value, _key(node)
        if isinstance(space, cst.Attribute) and space.attr.value == "__dict__":
            return space.value, key
        if isinstance(space, cst.Call) and dotted(space.func) == "vars" and len(space.args) == 1:
            return space.args[0].value, key
    return None, ""


def _imported(node: cst.Call | cst.Subscript) -> str:
    """The module that a string names: ``importlib.import_module("m")``, ``sys.modules["m"]``; quoted."""
    if isinstance(node, cst.Call):
        imports = dotted(node.func) in ("importlib.import_module", "import_module") and len(node.args) == 1
        name = _text(node.args[0].value) if imports else ""
    else:
        name = _key(node) if dotted(node.value) == "sys.modules" else ""
    return f"{_LITERAL}{name}{_LITERAL}" if name else ""


def _key(node: cst.Subscript) -> str:
    index = node.slice[0].slice if len(node.slice) == 1 else None
    return _text(index.value) if isinstance(index, cst.Index) else ""


def _text(node: cst.CSTNode) -> str:
    return node.raw_value if isinstance(node, cst.SimpleString) else ""

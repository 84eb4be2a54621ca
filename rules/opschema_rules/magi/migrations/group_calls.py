"""The calls of an op whose parameters are grouped, and other code that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.calls import rename_keyword
from opschema_cli.migrate.codemods.elements import element_span
from opschema_cli.migrate.codemods.new_imports import extend_import
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import effects
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Import, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import External, FunctionRef, ModuleRef, Resolution, Unresolved
from opschema_cli.source.text import Place, Span
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.migrations.grouping import Grouping
from opschema_rules.magi.migrations.trees import meaning, naming, python_files

_ESCAPES = "the op is used here otherwise than by a call"


class GroupedCalls(msgspec.Struct):
    """Rewrites the calls of one op."""

    workbench: Workbench
    group: Grouping
    functions: Sequence[Body]
    """The op's own functions, in which reads of the flags are rewritten."""
    _extended: set[tuple[str, int]] = msgspec.field(default_factory=set)

    def rewrite(self) -> None:
        """Write the dataclass into every call.

        Raises:
            LeftAlone: the op is used otherwise than by calls, or a call hides what it passes.
        """
        self._refuse_escapes()
        for call in self.group.op.calls:
            if any(_inside(call, body) for body in self.functions):
                raise LeftAlone(call.place, "the op calls itself here")
            with self.workbench.on(call.place.path) as rewrite:
                node = rewrite.tree.find(call.call.span, cst.Call)
                if any(arg.star for arg in node.args):
                    raise LeftAlone(call.place, "this call unpacks its arguments")
                if call.through == "handle":
                    self._handle(rewrite, call, node)
                else:
                    self._lowered(rewrite, node)

    # What is not a call

    def _is_op(self, found: Resolution) -> bool:
        return isinstance(found, FunctionRef) and found.function is self.group.op.body.function

    def _refuse_escapes(self) -> None:
        """Check that the op, and its qualified name, is only called."""
        handle = self.group.op.registration.handle
        for file in naming(self.workbench.draft, self.group.op.tree.bodies, handle, self._is_op):
            with self.workbench.on(file.path) as rewrite:
                for node in self._escapes(file, rewrite.tree):
                    raise LeftAlone(
                        Place(file.path, rewrite.tree.span(node)), "the op is used here otherwise than by a call"
                    )
        space, _, short = (self.group.op.name or "").partition("::")
        called = (r"\bops\b", rf"\b{re.escape(space)}\b", rf"\.\s*{re.escape(short)}\b")
        for file in python_files(self.workbench.draft, {short}, *called):
            tree = self.workbench.tree(file.path)
            for attribute in tree.attributes(short):
                if self._leaks(file, tree, attribute, f"torch.ops.{space}.{short}"):
                    raise LeftAlone(Place(file.path, tree.span(attribute)), _ESCAPES)

    def _leaks(self, file: PythonFile, tree: PythonTree, node: cst.Attribute, full: str) -> bool:
        if meaning(self.group.op.tree.bodies, file, tree, node) != External(full):
            return False
        above = tree.parent(node)
        default = isinstance(above, cst.Attribute) and above.attr.value == "default"
        called = tree.parent(above) if default and above is not None else above
        return not (isinstance(called, cst.Call) and called.func in (node, above))

    def _escapes(self, file: PythonFile, tree: PythonTree) -> Iterator[cst.CSTNode]:
        words = _words(file, self.group.op.registration.handle)
        nodes = [item for word in words for item in (*tree.names(word), *tree.attributes(word))]
        for node in nodes:
            above = tree.parent(node)
            found = meaning(self.group.op.tree.bodies, file, tree, node)
            imported = tree.enclosing(node, cst.ImportAlias) is not None
            defined = isinstance(above, cst.FunctionDef | cst.ClassDef | cst.Param) and above.name is node
            doubtful = isinstance(found, Unresolved) and isinstance(node, cst.Name) and _may_be(file, node.value)
            called = isinstance(above, cst.Call) and above.func is node
            if not imported and not defined and (doubtful or (self._is_op(found) and not called)):
                yield node

    # Calls

    def _handle(self, rewrite: Rewrite, call: OpCall, node: cst.Call) -> None:
        names = [item.name for item in self.group.op.params]
        passed = {
            (arg.keyword.value if arg.keyword is not None else names[index] if index < len(names) else ""): index
            for index, arg in enumerate(node.args)
        }
        flags = sorted((index, name) for name, index in passed.items() if name in self.group.names)
        missing = [flag.name for flag in self.group.flags if flag.default is None and flag.name not in passed]
        if missing or "" in passed or not set(passed) <= set(names):
            raise LeftAlone(call.place, "this call does not match the parameters of the op")
        if flags:
            self._refuse_moved(rewrite.tree, node, [index for index, _ in flags])
            made = self._made(rewrite, node, flags, self._class_name(rewrite, call))
            first = node.args[flags[0][0]]
            label = f"{self.group.parameter}=" if first.keyword is not None else ""
            rewrite.replace(element_span(rewrite.tree, first), label + made)
            _drop_comment(rewrite, first)
            if flags[1:]:
                rewrite.drop(node.args, *(index for index, _ in flags[1:]))

    def _refuse_moved(self, tree: PythonTree, node: cst.Call, at: list[int]) -> None:
        """Arguments that other ones are moved over may have no effects, nor be calls of the op themselves."""
        if at != list(range(at[0], at[-1] + 1)):
            for arg in node.args[at[0] : at[-1] + 1]:
                for problem in effects(tree, arg.value):
                    raise Refused([problem])
        spans = [tree.span(node.args[index].value) for index in at]
        inner = [call.call.span for call in self.group.op.calls]
        for start, end in spans:
            if any(start <= span.start and span.end <= end for span in inner):
                raise Refused([Problem(start, "another call of the op is among the flags")])

    def _made(self, rewrite: Rewrite, node: cst.Call, flags: Sequence[tuple[int, str]], name: str) -> str:
        tree = rewrite.tree
        texts = [f"{flag}={_outer_text(tree, node.args[index].value)}" for index, flag in flags]
        comments = [_comment(tree, node.args[index]) for index, _ in flags]
        if not any(comments):
            return f"{name}({', '.join(texts)})"
        newline, step = tree.module.default_newline, tree.module.default_indent
        indent = tree.indent(tree.span(node.args[flags[0][0]]).start)
        lines = [f"{indent}{step}{text},{comment}" for text, comment in zip(texts, comments, strict=True)]
        return newline.join([f"{name}(", *lines, f"{indent})"])

    def _lowered(self, rewrite: Rewrite, node: cst.Call) -> None:
        before = list(self.group.op.lowering.leaves)
        for index, arg in enumerate(node.args):
            if arg.keyword is None and (index >= len(before) or self.group.lowered[index][0] is not before[index]):
                reason = "this call passes an argument by position whose position has changed"
                raise Refused([Problem(rewrite.tree.span(arg).start, reason)])
        for leaf, name in self.group.lowered:
            if leaf.lowered != name and any(arg.keyword and arg.keyword.value == leaf.lowered for arg in node.args):
                rename_keyword(rewrite, node, leaf.lowered, name)

    # The dataclass in other files

    def _class_name(self, rewrite: Rewrite, call: OpCall) -> str:
        """The caller's name for the dataclass, which it will import."""
        if call.body.file is self.group.op.body.file and "." not in call.call.callee:
            return self.group.name
        prefix, _, _ = call.call.callee.rpartition(".")
        if prefix:
            found = self.group.op.tree.bodies.resolve(call.body, prefix)
            if not isinstance(found, ModuleRef):
                raise LeftAlone(call.place, f"how `{self.group.name}` is named here is not known")
            self._export(found.path, call.call.callee.rpartition(".")[2], call.place)
            return f"{prefix}.{self.group.name}"
        self._import(call.body, call.call.callee, call.place)
        return self.group.name

    def _export(self, path: str, handle: str, place: Place) -> None:
        """Let a module have the dataclass that has the op."""
        if path == self.group.op.body.file.path:
            return
        file = self.workbench.draft.project.python(path)
        if file is None:
            raise LeftAlone(place, f"{path} does not parse")
        self._import(self.group.op.tree.bodies.module(file), handle, place)

    def _import(self, body: Body, handle: str, place: Place) -> None:
        """Import the dataclass where, and as, the op is imported."""
        file = body.file
        scopes = [outer.scope for outer in body.outward() if outer.function is not None or outer.parent is None]
        found = next((item for scope in scopes for item in scope.imports if item.name == handle and item.attr), None)
        if found is None or found.attr == "*":
            raise LeftAlone(place, f"how `{self.group.name}` is to be imported here is not known")
        program = self.group.op.tree.bodies.program
        module = program.absolute_module(file, found)
        path = program.module_path(module) if module is not None else None
        if path is None:
            raise LeftAlone(place, f"how `{self.group.name}` is to be imported here is not known")
        self._export(path, found.attr, place)
        self._extend(file, found)

    def _extend(self, file: PythonFile, found: Import) -> None:
        with self.workbench.on(file.path) as rewrite:
            tree = rewrite.tree
            names = [node for node in tree.nodes if isinstance(node, cst.ImportFrom)]
            statement = next(
                node for node in names if tree.span(node).start <= found.start and found.end <= tree.span(node).end
            )
            key = (file.path, tree.span(statement).start)
            if key not in self._extended:
                self._extended.add(key)
                extend_import(rewrite, statement, self.group.name)


def _words(file: PythonFile, handle: str) -> set[str]:
    """The names under which a file may know the op."""
    imports = [item for scope in file.body.walk() for item in scope.imports]
    assigns = [item for scope in file.body.walk() for item in scope.assigns]
    found = {handle, *(item.name for item in imports if item.attr == handle)}
    return found | {
        item.target.rpartition(".")[2]
        for item in assigns
        if item.value is not None and item.value.text.rpartition(".")[2] in found
    }


def _may_be(file: PythonFile, word: str) -> bool:
    """Whether a file imports or defines a name at its top level."""
    return word in file.imports or word in file.functions


def _inside(call: OpCall, body: Body) -> bool:
    assert body.function is not None
    start, end = body.function.outer
    return call.place.path == body.file.path and start <= call.call.start < end


def _outer_text(tree: PythonTree, node: cst.BaseExpression) -> str:
    start, end = tree.outer(node)
    return tree.text[start:end]


def _comment(tree: PythonTree, arg: cst.Arg) -> str:
    """Return the comment after an argument on a line of its own, with two spaces before it."""
    start, end = element_span(tree, arg)
    at = tree.span(arg.comma).end if isinstance(arg.comma, cst.Comma) else end
    rest = tree.text[at : tree.line_end(at)].strip()
    return f"  {rest}" if rest.startswith("#") and not tree.text[tree.line_start(start) : start].strip() else ""


def _drop_comment(rewrite: Rewrite, arg: cst.Arg) -> None:
    """Remove the comment after an argument, which is written elsewhere."""
    tree = rewrite.tree
    if _comment(tree, arg):
        end = element_span(tree, arg).end
        at = tree.span(arg.comma).end if isinstance(arg.comma, cst.Comma) else end
        line = tree.text[at : tree.line_end(at)].rstrip("\r\n")
        rewrite.replace(Span(at, at + len(line)), "")

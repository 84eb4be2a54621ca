"""Expressions that are instances of a class or of its subclasses, and those that certainly are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

import libcst as cst
import msgspec

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.migrate.codemods.scopes import dotted
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.resolution import ClassRef, External, ModuleRef, Unresolved
from opschema_rules.magi.migrations.trees import is_inner
from opschema_rules.magi.model import MagiTree

Answer: TypeAlias = Literal["yes", "no", "unknown"]

_FOREIGN = ("torch.", "numpy.", "types.", "argparse.")
"""Modules that create none of the tree's own objects."""

_PLAIN = frozenset({"int", "float", "bool", "str", "bytes", "list", "dict", "tuple", "set", "frozenset", "None"})
_SELF = frozenset(
    {"to", "cuda", "cpu", "eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "apply"}
)
"""Methods of ``torch.nn.Module`` that return the module itself."""

_CONTEXTS = frozenset({"setup_context", "forward", "backward", "jvp"})


class Instances(msgspec.Struct, frozen=True):
    """Recognises the instances of one family of classes."""

    tree: MagiTree
    family: Collection[ClassRef]

    @property
    def bodies(self) -> Bodies:
        """The index of the tree's function and module bodies."""
        return self.tree.bodies

    def of(self, file: PythonFile, tree: PythonTree, node: cst.BaseExpression) -> Answer:
        """Whether an expression's value is an instance, by how it is written."""
        body = self.bodies.at(file, tree.span(node).start)
        if isinstance(node, cst.Name):
            inner = is_inner(tree, node, node.value)
            return "unknown" if inner else self._name(body, node.value, MAX_CALLS)
        if isinstance(node, cst.Call):
            return self._made(body, dotted(node.func))
        if isinstance(node, cst.Attribute) and dotted(node):
            return self._dotted(body, dotted(node))
        return "unknown"

    def _dotted(self, body: Body, name: str) -> Answer:
        found = self.bodies.resolve(body, name)
        return "no" if isinstance(found, ClassRef | ModuleRef | External) else "unknown"

    def _name(self, body: Body, name: str, hops: int) -> Answer:
        binder = body.binder(name)
        if binder is None:
            found = self.bodies.resolve(body, name)
            if isinstance(found, ClassRef | ModuleRef | External):
                return "no"
            module = self.bodies.module(body.file)
            return self._assigned(module, name, hops)
        param = next((item for item in binder.params if item.name == name), None)
        written = any(item.target == name for item in binder.scope.assigns)
        if param is None:
            return self._assigned(binder, name, hops)
        answer = self._param(binder, param)
        return "unknown" if written and answer == "no" else answer

    def _param(self, binder: Body, param: Param) -> Answer:
        if param.kind in ("vararg", "kwarg"):
            return "no"
        if binder is binder.method and param.name == binder.this:
            static = "classmethod" in (binder.function.decorator_names if binder.function is not None else ())
            owner = binder.owner
            if static or owner is None:
                return "no"
            return "yes" if owner in self.family else self._of_class(owner)
        if param.name == binder.params[0].name and self._is_context(binder):
            return "no"
        return self._annotated(binder, param.annotation) if param.annotation is not None else "unknown"

    def _of_class(self, owner: ClassRef) -> Answer:
        """Return the answer for ``self`` in a method of another class; a base class of the family counts too."""
        above = [item for ref in self.family for item in self._line(ref)]
        return "yes" if owner in above else "no"

    def _line(self, ref: ClassRef) -> list[ClassRef]:
        line = self.tree.lowerer.classes.line(ref)
        return [] if isinstance(line, Unresolved) else [item for item in line if isinstance(item, ClassRef)]

    def _is_context(self, binder: Body) -> bool:
        """Whether a function's first parameter is an autograd context."""
        if any(binder in (op.setup_context, op.backward) for op in self.tree.ops):
            return True
        owner, function = binder.owner, binder.function
        if owner is None or function is None or function.name not in _CONTEXTS:
            return False
        line = self.tree.lowerer.classes.line(owner)
        outside = [] if isinstance(line, Unresolved) else [item.name for item in line if isinstance(item, External)]
        return "torch.autograd.Function" in outside

    def _annotated(self, binder: Body, annotation: Expr) -> Answer:
        parts = [item for item in annotation.walk() if item.kind not in ("subscript", "binary", "tuple")]
        answers = {self._type(binder.parent or binder, item) for item in parts}
        return "yes" if "yes" in answers else "unknown" if "unknown" in answers else "no"

    def _type(self, body: Body, item: Expr) -> Answer:
        name = item.text if item.kind == "name" else item.value if isinstance(item.value, str) else ""
        if item.kind == "const" and item.value is None:
            return "no"
        found = self.bodies.resolve(body, name.strip()) if name else None
        if isinstance(found, ClassRef):
            return "yes" if found in self.family else self._of_class(found)
        if isinstance(found, External) and (found.name in _PLAIN or found.name.startswith(_FOREIGN)):
            return "no"
        return "no" if isinstance(found, External) and found.name in ("typing.Optional", "typing.Union") else "unknown"

    def _assigned(self, binder: Body, name: str, hops: int) -> Answer:
        values = binder.values(name) if hops > 0 else None
        if not values:
            return "unknown"
        answers = {self._value(binder, value, hops - 1) for value in values}
        return "yes" if "yes" in answers else "unknown" if "unknown" in answers else "no"

    def _value(self, body: Body, value: Expr, hops: int) -> Answer:
        if value.kind == "call":
            return self._made(body, value.callee) if value.callee else self._handed_back(body, value.items[0])
        if value.kind == "name" and "." not in value.text:
            return self._name(body, value.text, hops)
        return "no" if value.kind in ("const", "tuple", "list", "set", "dict", "lambda") else "unknown"

    def _handed_back(self, body: Body, callee: Expr) -> Answer:
        """Of ``Model(...).to(device)``: a module's own method, which hands the module back."""
        made = callee.items[0] if callee.kind == "attribute" and callee.text in _SELF else None
        found = self.bodies.resolve(body, made.callee) if made is not None and made.callee else None
        line = self.tree.lowerer.classes.line(found) if isinstance(found, ClassRef) and found not in self.family else []
        if isinstance(line, Unresolved) or External("torch.nn.Module") not in line:
            return "unknown"
        own = any(item.cls.body.function(callee.text) for item in line if isinstance(item, ClassRef))
        return "unknown" if own else "no"

    def _made(self, body: Body, callee: str) -> Answer:
        found = self.bodies.resolve(body, callee) if callee else None
        if isinstance(found, ClassRef):
            return "yes" if found in self.family else "no"
        foreign = isinstance(found, External) and found.name.startswith(_FOREIGN)
        return "no" if foreign else "unknown"

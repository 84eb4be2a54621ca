"""Calls of ``TensorSpec`` and ``ScalarSpec`` against the fields of these classes, if they are part of the tree."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.evaluation.record_fields import Field, fields_of, is_dataclass
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Assign, Expr, Param, ParamKind
from opschema_cli.source.resolution import bindings_of
from opschema_rules.pypto.language import resolve
from opschema_rules.pypto.model import SpecMisfit

_LEFT_OUT = re.compile(r"\b(?:ClassVar|InitVar)\b")
"""Annotations of attributes that are not fields (`ClassVar`), or not attributes of the instance (`InitVar`)."""

_OWN = frozenset({"__init__", "__new__", "__call__"})


class SpecClasses(msgspec.Struct):
    """The classes of specs that files of a tree name, each with the parameters of its constructor."""

    bodies: Bodies
    _known: dict[tuple[Body, str], list[Param] | None] = msgspec.field(default_factory=dict)

    def misfit(self, body: Body, call: Expr) -> SpecMisfit | None:
        """Return the first reason why a call of a class of specs fails; None if it does not fail or the class is not known."""
        key = (body.binder(call.callee.partition(".")[0]) or self.bodies.module(body.file), call.callee)
        if key not in self._known:
            self._known[key] = self._parameters(*key)
        params = self._known[key]
        found = next(misfits(call, params), None) if params is not None else None
        if params is None or found is None:
            return None
        at = found.argument if found.argument is not None else call.items[0]
        return SpecMisfit(body.at(at), call.callee, found.fault, found.name, tuple(item.name for item in params))

    def may_be_output(self, body: Body, call: Expr) -> bool:
        """Whether a spec may be an output although its call does not say so: its class in the tree has another default."""
        ref = resolve(self.bodies, body, call.callee)
        if not isinstance(ref, ClassRef):
            return isinstance(ref, FunctionRef)
        fields = [item for item in ref.cls.body.assigns if item.target == "is_output"]
        values = [item.value for item in fields if item.value is not None]
        return len(fields) != 1 or any(item.kind != "const" or bool(item.value) for item in values)

    def _parameters(self, body: Body, callee: str) -> list[Param] | None:
        """Return the parameters of a dataclass's constructor; None for any other class, and if they are not known."""
        ref = resolve(self.bodies, body, callee)
        program, first = self.bodies.program, callee.partition(".")[0]
        is_bound_once = len(bindings_of(body.scope, first)) == 1 and "*" not in body.scope.named
        if not isinstance(ref, ClassRef) or not is_bound_once or not is_dataclass(program, ref):
            return None
        if not _is_plain(ref) or not self._is_only(ref, body):
            return None
        fields = fields_of(program, ref)
        return [_parameter(item) for item in fields if item.in_init] if fields is not None else None

    def _is_only(self, ref: ClassRef, body: Body) -> bool:
        """Whether a class keeps its name in its own file, in its package and in a body that uses it, and none of these changes
        it.
        """
        package = f"{ref.file.path.rpartition('/')[0]}/__init__.py".removeprefix("/")
        files = {item.path: item.body for item in (ref.file, body.file)}
        inner = self.bodies.program.load(package) if package in self.bodies.program.files else None
        files |= {package: inner.body} if inner is not None else {}
        bound = [scope for path, scope in files.items() if path != body.file.path]
        is_once = all(len(bindings_of(scope, ref.cls.name)) <= 1 for scope in bound)
        return is_once and not any(
            item.target.startswith(f"{ref.cls.name}.") for scope in files.values() for item in scope.assigns
        )


def _is_plain(ref: ClassRef) -> bool:
    """Whether the constructor of a dataclass is the generated one."""
    cls = ref.cls
    own = {item.name for item in cls.body.functions} | {item.target for item in cls.body.assigns}
    options = [item for decorator in cls.decorators for item in decorator.args]
    fields = [item.value for item in cls.body.assigns if item.annotation is not None and item.value is not None]
    is_written = (
        all(value.kind == "const" and word not in ("", "*", "**") for word, value in options)
        and not any(word == "init" for word, _ in options)
        and not any("**" in item.keywords for item in fields if item.callee.rpartition(".")[2] == "field")
        and not any(_LEFT_OUT.search(ref.file.source.text, *_place(item)) for item in cls.body.assigns)
    )
    is_alone = len(cls.decorators) == 1 and not cls.bases and cls.metaclass is None and not cls.keywords
    return is_written and is_alone and own.isdisjoint(_OWN)


def _place(item: Assign) -> tuple[int, int]:
    """Return the place of a field's annotation."""
    return (item.annotation.start, item.annotation.end) if item.annotation is not None else (0, 0)


def _parameter(field: Field) -> Param:
    kind: ParamKind = "kwonly" if field.by_name_only else "normal"
    return Param(field.name, kind, 0, 0, 0, default=field.default or field.factory)

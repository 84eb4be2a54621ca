"""Calls of ``TensorSpec`` and ``ScalarSpec`` against the fields of these classes, where they are part of the tree."""

from __future__ import annotations

import msgspec

from opschema_cli.evaluation.record_fields import Field, fields_of, is_dataclass
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.call_misfits import misfits
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Expr, Param, ParamKind
from opschema_cli.source.resolution import bindings_of
from opschema_rules.pypto.language import resolve
from opschema_rules.pypto.model import SpecMisfit

_OWN = frozenset({"__init__", "__new__", "__call__"})


class SpecClasses(msgspec.Struct):
    """The classes of specs that files of a tree name, each with the parameters of its constructor."""

    bodies: Bodies
    _known: dict[tuple[Body, str], list[Param] | None] = msgspec.field(default_factory=dict)

    def misfit(self, body: Body, call: Expr) -> SpecMisfit | None:
        """The first reason why a call of a class of specs fails; None where it does not, or the class is not known."""
        key = (body.binder(call.callee.partition(".")[0]) or self.bodies.module(body.file), call.callee)
        if key not in self._known:
            self._known[key] = self._parameters(*key)
        params = self._known[key]
        found = next(misfits(call, params), None) if params is not None else None
        if params is None or found is None:
            return None
        at = found.argument if found.argument is not None else call.items[0]
        return SpecMisfit(body.at(at), call.callee, found.fault, found.name, tuple(item.name for item in params))

    def _parameters(self, body: Body, callee: str) -> list[Param] | None:
        """The parameters of the constructor of a dataclass; None of any other, and where they are not known."""
        ref = resolve(self.bodies, body, callee)
        program = self.bodies.program
        is_bound_once = len(list(bindings_of(body.scope, callee.partition(".")[0]))) == 1
        if not isinstance(ref, ClassRef) or not is_bound_once or not is_dataclass(program, ref):
            return None
        is_plain = len(ref.cls.decorators) == 1 and not ref.cls.bases
        if not is_plain or any(item.name in _OWN for item in ref.cls.body.functions):
            return None
        fields = fields_of(program, ref)
        return [_parameter(item) for item in fields if item.in_init] if fields is not None else None


def _parameter(field: Field) -> Param:
    kind: ParamKind = "kwonly" if field.by_name_only else "normal"
    return Param(field.name, kind, 0, 0, 0, default=field.default or field.factory)

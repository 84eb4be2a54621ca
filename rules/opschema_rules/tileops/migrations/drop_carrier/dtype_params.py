"""The parameter of an op's constructor with the dtype that its carrier only repeated."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.bodies import Bodies, Body, argument_for
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.carrier_inputs import CarrierInput
from opschema_rules.tileops.carriers import Carriers
from opschema_rules.tileops.migrations.drop_carrier.entries import DtypeParam
from opschema_rules.tileops.model import OpImplementation
from opschema_rules.tileops.own_writes import own_write


def dtype_param(carriers: Carriers, op: OpImplementation, found: tuple[CarrierInput, ...]) -> DtypeParam | None:
    """Return the parameter to declare in place of an entry's carriers; None if they have no dtype of their own.

    Raises:
        LeftAlone: it is not known, or its default cannot be written down.
    """
    params = op.call_params("__init__")
    if params is None or not all(item.by_name for item in params):
        raise LeftAlone(op.place, f"the parameters of `{op.name}.__init__()` are not known")
    names = {name for item in found for attribute in item.attributes for name in _fed(carriers, op, attribute)}
    if not names:
        names = {item.name for item in params if _is_dtype(item)}
    if not names and not any(item.lent for item in found):
        return None
    chosen = [item for item in params if item.name in names]
    if len(chosen) != 1:
        what = f"{len(chosen)} parameters" if chosen else "no parameter"
        raise LeftAlone(found[0].entry.at(found[0].tensor.key), f"{what} of `{op.name}.__init__()` may be its dtype")
    return DtypeParam(chosen[0].name, tuple(item.name for item in params), _declared(carriers, op, chosen[0]))


def _is_dtype(param: Param) -> bool:
    words = [item.text for item in param.annotation.walk()] if param.annotation is not None else []
    return any(word.rpartition(".")[2] == "dtype" for word in words)


def _declared(carriers: Carriers, op: OpImplementation, param: Param) -> dict[Data, Data]:
    declared: dict[Data, Data] = {"type": "torch.dtype"}
    if param.default is not None:
        if param.default.kind == "const" and param.default.value is None:
            return {"type": "torch.dtype | None", "default": None, **_kw_only(op, param)}
        init = op.method("__init__")
        body = carriers.bodies.function(init) if init is not None else None
        full = carriers.bodies.external(body.parent or body, param.default.text) if body is not None else ""
        if not full.startswith("torch."):
            raise LeftAlone(op.place, f"the default of `{param.name}` of `{op.name}.__init__()` is not known")
        declared["default"] = full.removeprefix("torch.")
    return {**declared, **_kw_only(op, param)}


def _kw_only(op: OpImplementation, param: Param) -> dict[Data, Data]:
    return {"kw_only": True} if param.kind == "kwonly" and op.entry.manifest.spec.knows("kw-only") else {}


# From the tensor's dtype back to the parameter.


def _fed(carriers: Carriers, op: OpImplementation, attribute: CarrierAttribute) -> Iterator[str]:
    """The constructor's parameters that a carrier's dtype comes from."""
    for body, value in _made(carriers.bodies, attribute):
        for call in (item for item in value.walk() if item.kind == "call"):
            dtype = call.keyword("dtype")
            name = _origin(carriers.bodies, body, dtype, op.ref, MAX_CALLS) if dtype is not None else ""
            if name:
                yield name


def _made(bodies: Bodies, attribute: CarrierAttribute) -> Iterator[tuple[Body, Expr]]:
    """The expressions that make a carrier."""
    for place in attribute.writes:
        file = bodies.program.load(place.path)
        for body in bodies.of(file) if file is not None else ():
            if not _holds(body, place.span):
                continue
            if body.function is not None and body.function.span == place.span:
                yield from ((body, value) for value in body.scope.returns)
            for assign in body.scope.assigns:
                if assign.span == place.span and assign.value is not None:
                    yield body, assign.value
            yield from ((body, call) for call in body.scope.calls if call.span == place.span)
            writes = (own_write(bodies, body, call) for call in body.scope.calls)
            yield from ((body, item.value) for item in writes if item and item.span == place.span and item.value)


def _holds(body: Body, span: Span) -> bool:
    """Whether a span may be in a body: not in a function that ends before it or begins after it."""
    outer = body.function.outer if body.function is not None else span
    return outer.start <= span.start and span.end <= outer.end


def _origin(bodies: Bodies, body: Body, expr: Expr, ref: ClassRef, hops: int) -> str:
    """Return the parameter of the constructor of ``ref`` that an expression in a method refers to; empty if there is none."""
    if expr.kind != "name" or hops <= 0:
        return ""
    holder, _, name = expr.text.rpartition(".")
    if holder:
        return _kept(bodies, ref, name, hops) if holder == body.this else ""
    binder = body.binder(name)
    if binder is None:
        return ""
    if any(item.name == name for item in binder.params):
        return _lifted(bodies, ref, binder, name, hops)
    values = binder.values(name) or []
    return _origin(bodies, binder, values[0], ref, hops - 1) if len(values) == 1 else ""


def _kept(bodies: Bodies, ref: ClassRef, name: str, hops: int) -> str:
    """The parameter that the constructors keep as the attribute ``name``."""
    found = set()
    for owner in bodies.program.lineage(ref):
        init = bodies.program.own_member(owner, "__init__")
        body = bodies.function(init) if isinstance(init, FunctionRef) else None
        for assign in body.scope.assigns if body is not None else ():
            if body is not None and assign.value is not None and body.attribute_of(assign.target) == name:
                found.add(_origin(bodies, body, assign.value, ref, hops - 1))
    return found.pop() if len(found) == 1 else ""


def _lifted(bodies: Bodies, ref: ClassRef, binder: Body, name: str, hops: int) -> str:
    """Return the name that the constructor of ``ref`` has for a constructor's parameter that it passes on."""
    init = bodies.program.member(ref, "__init__")
    body = bodies.function(init) if isinstance(init, FunctionRef) else None
    if body is None or body is binder:
        return name if body is binder else ""
    if binder.function is None or binder.function.name != "__init__":
        return ""
    params = binder.params[1:]
    for call in body.scope.calls:
        if call.items[0].kind == "attribute" and call.items[0].text == "__init__":
            value = argument_for(call, params, name)
            if value is not None:
                return _origin(bodies, body, value, ref, hops - 1)
    return ""

"""Meanings of names in pypto's language: the directions of parameters, and the functions and programs that a harness runs."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, FunctionRef, Resolution, Unresolved
from opschema_cli.source.python import Class, Expr, Function
from opschema_rules.pypto.model import DslDirection

_LANGUAGE = "pypto.language"
_HEADS: dict[str, DslDirection] = {
    "Tensor": "in",
    "DistributedTensor": "in",
    "Out": "out",
    "InOut": "inout",
    "Scalar": "scalar",
}
_ENTRIES = frozenset({"jit", "jit.host"})


def full_name(bodies: Bodies, body: Body, dotted: str, hops: int = MAX_CALLS) -> str:
    """Return the full name of a dotted name, through imports and aliases of imported names; empty for any other."""
    name = bodies.imported_name(body, dotted)
    if name or not hops:
        return name
    first, _, rest = dotted.partition(".")
    binder = body.binder(first) or bodies.module(body.file)
    values = binder.values(first)
    if values and len(values) == 1 and values[0].kind == "name":
        return full_name(bodies, binder, ".".join(filter(None, (values[0].text, rest))), hops - 1)
    return ""


def language_name(bodies: Bodies, body: Body, dotted: str) -> str:
    """Return the name in pypto's language (``Out``, ``jit.host``); empty if it belongs to another module."""
    full = full_name(bodies, body, dotted) if dotted else ""
    return full.removeprefix(f"{_LANGUAGE}.").removeprefix("distributed.") if full.startswith(f"{_LANGUAGE}.") else ""


def direction_of(bodies: Bodies, body: Body, annotation: Expr | None, hops: int = MAX_CALLS) -> DslDirection | None:
    """Return the direction in the annotation of a parameter; None if it is not known."""
    if annotation is None:
        return None
    head = annotation.items[0] if annotation.kind == "subscript" else annotation
    if head.kind != "name":
        return None
    name = language_name(bodies, body, head.text)
    if name or annotation.kind == "subscript" or "." in head.text or not hops:
        return _HEADS.get(name)
    binder = body.binder(head.text) or bodies.module(body.file)
    values = binder.values(head.text)
    return direction_of(bodies, binder, values[0], hops - 1) if values is not None and len(values) == 1 else None


def resolve(bodies: Bodies, body: Body, dotted: str) -> Resolution:
    """Return the meaning of a name, also through a module that a script imports from its own folder."""
    first, _, rest = dotted.partition(".")
    found = [item for item in (body.binder(first) or bodies.module(body.file)).scope.imports if item.name == first]
    for item in found if len(found) == 1 and not rest and not found[0].level and found[0].attr else ():
        folder = body.file.path.rpartition("/")[0]
        beside = "/".join(filter(None, (folder, *item.module.split(".")))) + ".py"
        package = "/".join(filter(None, (folder, "__init__.py")))
        if beside in bodies.program.files and package not in bodies.program.files:
            return bodies.program.module_member(beside, item.attr)
    return bodies.resolve(body, dotted)


def called(bodies: Bodies, body: Body, call: Expr) -> Body | None:
    """Return the body of the function that a call calls; None if it is not known."""
    if call.callee.partition(".")[0] == body.this and body.this:
        return bodies.called(body, call.callee)
    found = resolve(bodies, body, call.callee) if call.callee else Unresolved("it is computed")
    return bodies.function(found) if isinstance(found, FunctionRef) else None


def entries(bodies: Bodies, body: Body, expr: Expr, hops: int = MAX_CALLS) -> Iterator[Body]:
    """Yield the functions that ``fn=`` or ``program=`` refers to: one ``@pl.jit`` function, or the orchestration of a program."""
    if expr.kind == "call":
        target = called(bodies, body, expr) if hops else None
        if target is not None and len(target.scope.returns) == 1:
            yield from entries(bodies, target, target.scope.returns[0], hops - 1)
        return
    found = resolve(bodies, body, expr.text) if expr.kind == "name" else None
    if isinstance(found, FunctionRef):
        function = bodies.function(found)
        if function is not None and is_entry(bodies, function):
            yield function
    elif isinstance(found, ClassRef):
        yield from _orchestration(bodies, found)


def is_entry(bodies: Bodies, body: Body) -> bool:
    """Whether the body belongs to a function that is compiled on its own: ``@pl.jit`` or ``@pl.jit.host``, with or without
    parentheses.
    """
    names = body.function.decorator_names if body.function is not None else []
    return any(language_name(bodies, body.parent or body, name) in _ENTRIES for name in names)


def _orchestration(bodies: Bodies, ref: ClassRef) -> Iterator[Body]:
    """Yield the only function of a program that the host calls."""
    holder = bodies.cls(ref)
    if holder is None or not _is_program(bodies, holder, ref.cls):
        return
    functions = [(item, _kind(bodies, holder, item)) for item in ref.cls.body.functions]
    found = [item for item, kind in functions if kind == "Orchestration"]
    found = found or [item for item, kind in functions if kind == "Opaque"]
    if len(found) == 1 and all(kind is not None for _, kind in functions):
        yield from (item for item in bodies.within(holder) if item.function is found[0])


def _is_program(bodies: Bodies, holder: Body, cls: Class) -> bool:
    outer = holder.parent or holder
    names = [item.callee or item.text for item in cls.decorators]
    return any(language_name(bodies, outer, name) == "program" for name in names)


def _kind(bodies: Bodies, holder: Body, function: Function) -> str | None:
    """Return the type of a function of a program; None if a level or a role places it, or if its type is not known."""
    for decorator in function.decorators:
        name = language_name(bodies, holder, decorator.callee or decorator.text)
        if name == "function":
            if decorator.keyword("level") is not None or decorator.keyword("role") is not None:
                return None
            kind = decorator.keyword("type")
            return "Opaque" if kind is None else kind.text.rpartition(".")[2] or None
    return ""

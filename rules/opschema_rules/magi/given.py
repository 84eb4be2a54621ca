"""What the decorator is given besides a name: written arguments, followed to names, functions and flags."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.source.bodies import MAX_HOPS, Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import Unresolved, ValueRef
from opschema_cli.source.strings import strings
from opschema_cli.source.text import Place
from opschema_rules.magi.classes import truth
from opschema_rules.magi.registrations import Written

MetaKind: TypeAlias = Literal["identity", "function", "lambda", "names", "other"]
Callback: TypeAlias = "Body | Lambda | Unresolved | None"
Argument: TypeAlias = "Written | Unresolved | None"


class Lambda(msgspec.Struct, frozen=True, eq=False):
    """A lambda that is passed as a function: its parameters' names and what it returns."""

    written: Written
    params: tuple[str, ...]
    returned: Expr


class Named(msgspec.Struct, frozen=True, eq=False):
    """A name in a list of names, and where it is written."""

    name: str
    place: Place


class Mutates(msgspec.Struct, frozen=True, eq=False):
    """``mutates_args``: its names; ``string`` holds it when it is one string. ``written`` is None when it is not given."""

    names: tuple[Named, ...] = ()
    string: str | None = None
    written: Written | None = None


class Meta(msgspec.Struct, frozen=True, eq=False):
    """``infer_output_meta_fn``: ``identity`` when it is not given, ``names`` of a list, ``other`` if neither list nor function."""

    kind: MetaKind
    written: Written | None = None
    function: Body | Lambda | None = None
    names: tuple[Named, ...] = ()


def mutates_of(bodies: Bodies, written: Argument) -> Mutates | Unresolved:
    """What ``mutates_args`` says."""
    if written is None or isinstance(written, Unresolved):
        return written if written is not None else Mutates()
    value = followed(bodies, written)
    if value.expr.kind == "const" and isinstance(value.expr.value, str):
        return Mutates(string=value.expr.value, written=written)
    if value.expr.kind == "dict" and not value.expr.items:
        return Mutates(written=written)
    names = _names(bodies, value) if value.expr.kind in ("tuple", "list", "set") else None
    return Mutates(names, written=written) if names is not None else Unresolved("`mutates_args` is computed")


def meta_of(bodies: Bodies, written: Argument) -> Meta | Unresolved:
    """What ``infer_output_meta_fn`` is."""
    found = callback_of(bodies, written)
    if written is None or isinstance(written, Unresolved) or found is None:
        return written if isinstance(written, Unresolved) else Meta("identity", written)
    value = followed(bodies, written)
    if value.expr.kind == "list":
        names = _names(bodies, value)
        return Meta("names", written, names=names) if names is not None else Unresolved("its names are computed")
    if value.expr.kind in ("tuple", "set", "dict", "const"):
        return Meta("other", written)
    if isinstance(found, Unresolved):
        return found
    return Meta("lambda" if isinstance(found, Lambda) else "function", written, found)


def callback_of(bodies: Bodies, written: Argument) -> Callback:
    """The function that is passed; None when it is none."""
    if written is None or isinstance(written, Unresolved):
        return written
    value = followed(bodies, written)
    if value.expr.kind == "const" and value.expr.value is None:
        return None
    if value.expr.kind == "lambda":
        return Lambda(value, tuple(item.text for item in value.expr.items[:-1]), value.expr.items[-1])
    found = bodies.called(value.body, value.expr.text) if value.expr.kind == "name" else None
    return found if found is not None else Unresolved(f"`{value.body.file.text(value.expr)}` cannot be followed")


def flag_of(bodies: Bodies, written: Argument) -> bool | None:
    """A flag, by default false; None when it is not known."""
    if isinstance(written, Unresolved):
        return None
    return truth(bodies, written.body, written.expr, False) if written is not None else False


def followed(bodies: Bodies, written: Written) -> Written:
    """What a name stands for when it is assigned once."""
    body, expr = written.body, written.expr
    for _ in range(MAX_HOPS):
        found = bodies.resolve(body, expr.text) if expr.kind == "name" else None
        value = found.assign.value if isinstance(found, ValueRef) and found.assign.sure else None
        if not isinstance(found, ValueRef) or value is None or found.owner is not None:
            break
        inner = body.binder(expr.text) if found.file is body.file else None
        body, expr = inner or bodies.module(found.file), value
    return Written(body, expr)


def _names(bodies: Bodies, value: Written) -> tuple[Named, ...] | None:
    found: list[Named] = []
    for item in value.expr.items:
        words = strings(bodies, value.body, item, MAX_HOPS)
        if words is None or len(words) != 1:
            return None
        found.append(Named(next(iter(words)), value.body.at(item)))
    return tuple(found)

"""Arguments of the decorator besides a name: followed to names, functions and flags."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import Func, Items, Plain, Table, Text, Unknown, Value
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Place
from opschema_rules.magi.registrations import Written

MetaKind: TypeAlias = Literal["identity", "function", "lambda", "names", "other"]
Callback: TypeAlias = "Body | Lambda | Unresolved | None"
Argument: TypeAlias = "Written | Unresolved | None"


class Lambda(msgspec.Struct, frozen=True, eq=False):
    """A lambda that is passed as a function: its parameters' names and its result."""

    written: Written
    params: tuple[str, ...]
    returned: Expr


class Named(msgspec.Struct, frozen=True, eq=False):
    """A name in a list of names, and where it is written."""

    name: str
    place: Place


class Mutates(msgspec.Struct, frozen=True, eq=False):
    """``mutates_args``: its names; ``string`` holds it if it is one string. ``written`` is None if it is not passed."""

    names: tuple[Named, ...] = ()
    string: str | None = None
    written: Written | None = None


class Meta(msgspec.Struct, frozen=True, eq=False):
    """``infer_output_meta_fn``: ``identity`` if it is not passed, ``names`` for a list, ``other`` if neither list nor function."""

    kind: MetaKind
    written: Written | None = None
    function: Body | Lambda | None = None
    names: tuple[Named, ...] = ()


def mutates_of(evaluator: Evaluator, written: Argument) -> Mutates | Unresolved:
    """The value of ``mutates_args``."""
    if written is None or isinstance(written, Unresolved):
        return written if written is not None else Mutates()
    value = _value(evaluator, written)
    if isinstance(value, Text) and value.names is not None and len(value.names) == 1:
        return Mutates(string=min(value.names), written=written)
    if isinstance(value, Table) and not value.entries and not value.open:
        return Mutates(written=written)
    names = _names(evaluator, value) if isinstance(value, Items) and not value.open else None
    return Mutates(names, written=written) if names is not None else Unresolved("`mutates_args` is computed")


def meta_of(evaluator: Evaluator, written: Argument) -> Meta | Unresolved:
    """The value of ``infer_output_meta_fn``."""
    found = callback_of(evaluator, written)
    if written is None or isinstance(written, Unresolved) or found is None:
        return written if isinstance(written, Unresolved) else Meta("identity", written)
    value = _value(evaluator, written)
    if isinstance(value, Items) and value.kind == "list":
        names = _names(evaluator, value) if not value.open else None
        return Meta("names", written, names=names) if names is not None else Unresolved("its names are computed")
    if isinstance(value, Items | Table | Text | Plain):
        return Meta("other", written)
    if isinstance(found, Unresolved):
        return found
    return Meta("lambda" if isinstance(found, Lambda) else "function", written, found)


def callback_of(evaluator: Evaluator, written: Argument) -> Callback:
    """Return the function that is passed; None if there is none."""
    if written is None or isinstance(written, Unresolved):
        return written
    value = _value(evaluator, written)
    if value == Plain(None):
        return None
    source = evaluator.origin(written.body, written.expr)
    if source.expr is not None and source.expr.kind == "lambda":
        params = tuple(item.text for item in source.expr.items[:-1])
        return Lambda(Written(source.frame.body, source.expr), params, source.expr.items[-1])
    if isinstance(value, Func):
        return value.body
    return Unresolved(f"`{written.body.file.text(written.expr)}` cannot be followed")


def followed(evaluator: Evaluator, written: Written) -> Written:
    """The value of a name that is assigned once."""
    found = evaluator.origin(written.body, written.expr)
    return Written(found.frame.body, found.expr) if found.expr is not None else written


def _value(evaluator: Evaluator, written: Written) -> Value:
    """The one value of an argument."""
    found = evaluator.evaluate(evaluator.frames.at(written.body), written.expr)
    return found[0] if len(found) == 1 else Unknown("it may be several values")


def _names(evaluator: Evaluator, value: Items) -> tuple[Named, ...] | None:
    found: list[Named] = []
    for item in value.elements:
        name, place = evaluator.text(item), item.place
        if name is None or place is None:
            return None
        found.append(Named(name, place))
    return tuple(found)

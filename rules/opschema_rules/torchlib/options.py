"""Options of a registering call, beside names and functions: words (devices, dispatch keys, tags) and ``mutates_args``."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, ExternalName, Items, Plain, Table, Text, Value
from opschema_cli.lint.diagnostic import Place
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.inference import Mutates
from opschema_rules.torchlib.model import Problem


def words_of(evaluator: Evaluator, given: BoundArgument | None) -> frozenset[str] | None:
    """Return one or several strings, a tag or key of torch by its last word; empty if nothing is passed, None if not known."""
    words: set[str] = set()
    for value in evaluator.not_none(given):
        if isinstance(value, Items) and value.open:
            return None
        parts = [evaluator.values(item) for item in value.elements] if isinstance(value, Items) else [(value,)]
        texts = [_words(item[0]) if len(item) == 1 else None for item in parts]
        known = [item for item in texts if item is not None]
        if len(known) != len(texts):
            return None
        words.update(*known)
    return frozenset(words)


def _words(value: Value) -> frozenset[str] | None:
    """The strings that a value may be; a tag or key of torch by its last word."""
    if isinstance(value, ExternalName):
        holder, _, word = value.name.rpartition(".")
        return frozenset({word}) if holder.startswith("torch.") and holder.endswith((".Tag", ".DispatchKey")) else None
    return value.names if isinstance(value, Text) else None


def tags_of(evaluator: Evaluator, given: Mapping[str, BoundArgument], *, is_open: bool) -> frozenset[str] | None:
    """Return the tags that are passed, such as ``inplace``; None if they are not known."""
    return None if is_open and "tags" not in given else words_of(evaluator, given.get("tags"))


def mutates_of(evaluator: Evaluator, given: BoundArgument | None, *, default: bool = False) -> Mutates:
    """The value of ``mutates_args``; with ``default``, none means no names."""
    if given is None:
        return Mutates({} if default else None)
    found, path = evaluator.values(given), given.frame.body.file.path
    value = found[0] if len(found) == 1 else None
    if isinstance(value, Text):
        word = value.start if value.names is not None and len(value.names) == 1 else None
        unknown = word == "unknown"
        return Mutates(None, given.expr, unknown, None if unknown else word, path)
    if value == Plain(None) and default:
        return Mutates({}, given.expr, path=path)
    return Mutates(_names(evaluator, value), given.expr, path=path)


def _names(evaluator: Evaluator, value: Value | None) -> dict[str, Expr | None] | None:
    """The names in a container, each with where it is written; None when they are not known."""
    if isinstance(value, Table) and not value.open:
        return {name: item.expr for name, item in value.words.items()}
    if not isinstance(value, Items) or value.open:
        return None
    texts = [(evaluator.text(item), item.expr) for item in value.elements]
    known = {name: expr for name, expr in texts if name is not None}
    return known if len(known) == len(texts) else None


def mutates_problems(mutates: Mutates, function: Body) -> list[Problem]:
    """Problems of ``mutates_args`` itself: a string, or names that are not parameters."""
    if mutates.string is not None and mutates.expr is not None:
        place = Place(mutates.path, mutates.expr.span)
        return [Problem("mutates-string", place, "", mutates.string)]
    params = {item.name for item in function.params}
    return [
        Problem("mutates-name", Place(mutates.path, expr.span), name, name)
        for name, expr in (mutates.names or {}).items()
        if name not in params and expr is not None
    ]

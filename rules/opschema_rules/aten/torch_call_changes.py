"""Uses of operators in code that another release of PyTorch refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_changes import schema_changes
from opschema_cli.source.python import Expr
from opschema_rules.aten.model import Function
from opschema_rules.aten.signatures import full_name
from opschema_rules.aten.torch_calls import TorchCall

Functions = Mapping[str, Function]


def operators_used(use: TorchCall, functions: Functions) -> list[str]:
    """The operators of a release that a use may be of: one where it names the overload, else all of the name."""
    if use.form == "struct":
        return [name for name in functions if name.replace(".", "_") == use.name]
    base, _, overload = use.name.partition(".")
    overloads = [name for name in functions if name.partition(".")[0] == base]
    if use.form == "ops" and overload:
        wanted = base if overload.partition(".")[0] == "default" else f"{base}.{overload.partition('.')[0]}"
        return [name for name in overloads if name == wanted]
    return overloads


def refusal(call: Expr, before: Sequence[OperatorSchema], now: Mapping[str, OperatorSchema]) -> tuple[str, str]:
    """Return the overload that a call uses, and the part of it that a newer release rejects; empty texts if nothing is certain.

    ``before`` are the schemas that it may be of in the older release, which takes it, and ``now`` those of the newer one.
    """
    taken = [item for item in before if _takes(item, call)]
    name = full_name(taken[0]) if len(taken) == 1 else ""
    if (
        name not in now
        or "*" in call.keywords
        or "**" in call.keywords
        or any(_takes(item, call) for item in now.values())
    ):
        return "", ""
    names = [word for word in call.keywords if word and not now[name].argument(word)]
    if names:
        return name, f"it has no argument {quoted(names)} any more{_new_names(taken[0], now[name], names)}"
    lacking = _lacking(now[name], call)
    return (
        name,
        f"it requires {quoted(lacking)}, but the call does not pass {'it' if len(lacking) == 1 else 'them'}"
        if lacking
        else "",
    )


def _new_names(before: OperatorSchema, now: OperatorSchema, names: Sequence[str]) -> str:
    """The end of a message: the new names of those arguments that are renamed."""
    changes = [item for item in schema_changes(before, now) if item.kind == "argument-renamed"]
    renamed = {item.old.name: item.new.name for item in changes if item.old is not None and item.new is not None}
    return "".join(f"; write `{renamed[name]}` for `{name}`" for name in names if name in renamed)


def _takes(schema: OperatorSchema, call: Expr) -> bool:
    known = all(schema.argument(word) for word in call.keywords if word)
    return known and len(call.positional()) <= len(schema.positional) and not _lacking(schema, call)


def _lacking(schema: OperatorSchema, call: Expr) -> list[str]:
    given = {item.name for item in schema.positional[: len(call.positional())]} | set(call.keywords)
    return [item.name for item in schema.arguments if item.default is None and item.name not in given]

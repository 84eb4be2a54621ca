"""The position of a new parameter, in signatures and in calls."""

from __future__ import annotations

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.insertion import insert_element
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.signatures import listed_parameters
from opschema_cli.source.python import ParamKind
from opschema_rules.flydsl.model import Kind, Parameter, Traced


class Slot(msgspec.Struct, frozen=True):
    """The position of a new parameter among those of a function, counted from 0."""

    index: int
    kind: ParamKind
    before: str
    """The name of the parameter before it; empty for the first."""


def slot_of(traced: Traced) -> Slot:
    """Return the position after the required tensors; without any, after all required positional parameters."""
    params = traced.parameters
    required = 0
    while required < len(params) and _is_plain(params[required]) and params[required].param.default is None:
        required += 1
    tensors = [at for at, item in enumerate(params) if item.kind is Kind.TENSOR]
    plain = [at for at in tensors if at < required]
    by_name = [at for at in tensors if params[at].param.kind == "kwonly"]
    at = plain[-1] if plain else by_name[-1] if by_name else required - 1
    if at < 0:
        return Slot(0, "normal", "")
    return Slot(at + 1, params[at].param.kind, params[at].name)


def _is_plain(item: Parameter) -> bool:
    return item.param.kind in ("posonly", "normal")


def add_parameter(rewrite: Rewrite, function: cst.FunctionDef, slot: Slot, code: str) -> None:
    """Insert the parameter."""
    listed = listed_parameters(function.params)
    names = [item.name.value if isinstance(item, cst.Param) else "" for item in listed]
    at = names.index(slot.before) + 1 if slot.before else 0
    opening = rewrite.tree.text.index("(", rewrite.tree.span(function.name).end) + 1
    insert_element(rewrite, listed, at, code, opening)


def add_argument(rewrite: Rewrite, call: cst.Call, slot: Slot, name: str, code: str) -> None:
    """Insert the argument into a call: by position if all arguments before it are positional, otherwise by name.

    Raises:
        Refused: what the call passes is not known.
    """
    tree, args = rewrite.tree, call.args
    opening = tree.span(call).end - 1
    plain = 0
    while plain < len(args) and args[plain].keyword is None and not args[plain].star:
        plain += 1
    if any(isinstance(arg.value, cst.GeneratorExp) and not arg.value.lpar for arg in args):
        raise Refused([Problem(tree.span(call).start, "a bare generator must be the only argument")])
    if slot.kind in ("posonly", "normal") and plain >= slot.index:
        insert_element(rewrite, args, slot.index, code, opening)
        return
    for arg in args:
        if arg.star == "*" or slot.kind == "posonly":
            raise Refused([Problem(tree.span(arg).start, f"what `{tree.code(arg)}` passes is not known")])
    keywords = [arg.keyword.value if arg.keyword is not None else "" for arg in args]
    at = keywords.index(slot.before) + 1 if slot.before in keywords else len(args)
    insert_element(rewrite, args, at, f"{name}={code}", opening)

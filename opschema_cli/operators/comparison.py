"""A declaration beside its implementations, argument by argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.operators.model import Argument, Implementation, Operator, Return, Signature
from opschema_cli.schema.align import Alignment, Slot, align
from opschema_cli.source.text import Place

ABSENT = "absent"
UNRESOLVED = "unresolved"


class Taken(msgspec.Struct, frozen=True):
    """One side of an argument: the parameter that receives it, or the value that a use passes for it. ``by`` names the function
    and is empty for a use; ``text`` is the code, :data:`ABSENT` or :data:`UNRESOLVED`.
    """

    by: str
    text: str
    note: str = ""
    place: Place | None = None


class ArgumentRow(msgspec.Struct, frozen=True):
    """One argument: its declaration, or None if only the code has it, and everything that receives or passes it."""

    name: str
    declared: Argument | Return | None
    taken: tuple[Taken, ...] = ()


def argument_rows(operator: Operator) -> list[ArgumentRow]:
    """The arguments in their declared order, those that only the code has, and the returns."""
    declared = [leaf for item in operator.declaration.arguments or () for leaf in item.leaves()]
    found: dict[str, list[Taken]] = {item.name: [] for item in declared}
    for item in operator.implementations:
        for signature, arguments in _assigned(item, declared):
            for name, taken in _compared(_title(item, signature), signature, arguments):
                found.setdefault(name, []).append(taken)
    for use in operator.uses:
        for passed in use.passed:
            found.setdefault(passed.argument, []).append(Taken("", passed.text, passed.note, passed.place))
    by_name = {item.name: item for item in declared}
    rows = [ArgumentRow(name, by_name.get(name), tuple(dict.fromkeys(taken))) for name, taken in found.items()]
    if operator.declaration.schema:  # it names them
        return rows
    return [*rows, *(ArgumentRow(item.name or "returns", item) for item in operator.declaration.returns or ())]


def title_of(item: Implementation) -> str:
    """The name of an implementation in a comparison: its role, and its keys."""
    return f"{item.role} {', '.join(item.keys)}" if item.keys else item.role


def _title(item: Implementation, signature: Signature) -> str:
    return signature.name if len(item.signatures) > 1 else title_of(item)


def _assigned(item: Implementation, declared: Sequence[Argument]) -> Iterator[tuple[Signature, list[Argument]]]:
    """Yield each function of an implementation with its arguments. If several could take an argument, choose the one that has
    such a parameter, else one whose parameters are not known.
    """
    arguments: dict[str, list[Argument]] = {signature.name: [] for signature in item.signatures}
    for argument in declared:
        takers = [one for one in item.signatures if not one.takes or argument.role in one.takes]
        having = [one for one in takers if any(argument.name == _slot_name(known) for known in one.parameters or ())]
        unknown = [one for one in takers if one.parameters is None]
        if takers:
            arguments[(having or unknown or takers[-1:])[0].name].append(argument)
    yield from ((signature, arguments[signature.name]) for signature in item.signatures)


def _compared(by: str, signature: Signature, arguments: Sequence[Argument]) -> Iterator[tuple[str, Taken]]:
    if signature.parameters is None:
        yield from ((item.name, Taken(by, UNRESOLVED)) for item in arguments)
        return
    parameters = {_slot_name(item): item for item in signature.parameters}
    found = align(_slots(arguments), _slots(signature.parameters), by=signature.by)
    taken = {ours.name: theirs.name for ours, theirs in (*found.matched, *found.renamed, *found.swallowed)}
    notes = _notes(found, list(parameters))
    for item in arguments:
        parameter = parameters.get(taken.get(item.name, ""))
        if parameter is None:
            yield item.name, Taken(by, ABSENT)
        else:
            note = parameter.note or notes.get(item.name, "")
            yield item.name, Taken(by, parameter_text(parameter), note, parameter.place)
    used = set(taken.values())
    for name, item in parameters.items():
        if name not in used and item.kind not in ("vararg", "kwarg"):
            yield name, Taken(by, parameter_text(item), item.note, item.place)


def _notes(found: Alignment, order: list[str]) -> dict[str, str]:
    renamed = {ours.name: f"named `{theirs.name}`" for ours, theirs in found.renamed}
    moved = {ours.name: f"argument {order.index(theirs.name) + 1} in the code" for ours, theirs in found.reordered}
    return {**renamed, **moved}


def _slot_name(item: Argument) -> str:
    return item.stands_for or item.name


def _slots(arguments: Sequence[Argument]) -> list[Slot]:
    return [Slot(_slot_name(item), item.kind, item.default is None) for item in arguments]


def parameter_text(item: Argument) -> str:
    """A parameter as its signature writes it."""
    return f"*, {item.text}" if item.kind == "kwonly" else item.text or item.name


def declared_text(item: Argument | Return) -> str:
    """Return a declared argument or return value in one line: as written in its file, or built from what is known."""
    if isinstance(item, Return):
        return " ".join(filter(None, ("output", item.type, item.shape)))
    if item.text:
        return f"{item.text}   {item.role}".rstrip()
    words = [item.role, item.type or (item.unresolved and UNRESOLVED), item.shape]
    # A dialect without roles has words of its own for what is written, such as directions.
    words += [word for word, flag in (("optional", item.optional), ("mutated", item.mutated)) if flag and item.role]
    words += [f"= {item.default}"] if item.default is not None else []
    words += ["kw_only"] if item.kind == "kwonly" else []
    return " ".join(filter(None, words))

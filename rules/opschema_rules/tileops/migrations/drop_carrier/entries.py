"""The manifest's side: an entry without its carriers, and with the dtype as the parameter that it always was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.text import Edit
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import YamlEditError, insert_key, remove_item, remove_key, set_value
from opschema_rules.tileops.carrier_inputs import CarrierInput, Lent, says_scalar
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.migrations.drop_carrier.rows import row_edits
from opschema_rules.tileops.model import OpEntry


class DtypeParam(msgspec.Struct, frozen=True):
    """The constructor's parameter that says the dtype: how to declare it, and its neighbours in order."""

    name: str
    order: tuple[str, ...]
    declared: dict[Data, Data]


def entry_edits(entry: OpEntry, carriers: Sequence[CarrierInput], param: DtypeParam | None) -> list[Edit]:
    """The edits that take carriers out of an entry.

    Raises:
        LeftAlone: something in the entry is shared with others or cannot be rewritten with certainty.
    """
    names = [found.tensor.name for found in carriers]
    try:
        return [
            *_inputs(entry, names),
            *_dtypes(entry, carriers),
            *_combos(entry, names),
            *_rules(entry, names),
            *(_params(entry, param) if param is not None else ()),
            *row_edits(entry, [f"{name}_shape" for name in names], param.name if param is not None else ""),
        ]
    except YamlEditError as error:
        raise LeftAlone(entry.at(error.span), f"the entry cannot be rewritten: {error}") from None


def _inputs(entry: OpEntry, names: Sequence[str]) -> list[Edit]:
    owner = entry.get("signature", "inputs")
    if owner is None:
        return []
    if {key.value for key, _ in owner.pairs()} == set(names):
        return set_value(entry.file, owner, {})
    if len(names) > 1:
        raise LeftAlone(entry.at(owner), "several carriers are mixed with real inputs")
    return remove_key(entry.file, owner, names[0])


# Dtypes that were lent.

_REFERENCE = re.compile(r"\b(same_as|promote_int_to_float)\(\s*(\w+)\s*\)")


def _dtypes(entry: OpEntry, carriers: Sequence[CarrierInput]) -> Iterator[Edit]:
    names = {found.tensor.name: found.tensor for found in carriers}
    nodes: dict[int, Lent] = {lent.node.start: lent for found in carriers for lent in found.lent}
    for lent in nodes.values():
        if lent.tensor.name not in names:
            yield from set_value(entry.file, lent.node, _inlined(entry, lent.node, names))


def _inlined(entry: OpEntry, node: Node, carriers: dict[str, Tensor]) -> str:
    """A dtype expression in which each reference to a carrier is the carrier's own dtypes."""

    def own(match: re.Match[str]) -> str:
        carrier = carriers.get(match[2])
        if carrier is None:
            return match[0]
        dtype = _narrowed(entry, carrier)
        if match[1] != "same_as" and not all("float" in word for word in dtype.split("|")):
            raise LeftAlone(entry.at(node), f"`{match[0]}` promotes what `{match[2]}` lends; write its dtypes")
        return dtype

    return _REFERENCE.sub(own, node.value)


def _narrowed(entry: OpEntry, carrier: Tensor) -> str:
    """A carrier's dtypes: those of its column, where ``dtype_combos`` restrict it."""
    if carrier.dtype is None or (_REFERENCE.fullmatch(carrier.dtype.strip()) and carrier.name in carrier.dtype):
        raise LeftAlone(entry.at(carrier.key), f"`{carrier.name}` declares no dtypes to write in its place")
    combos = entry.data_at("signature", "dtype_combos")
    column = {row.get(carrier.name) for row in combos if isinstance(row, dict)} if isinstance(combos, list) else set()
    words = [word.strip() for word in carrier.dtype.split("|")]
    kept = [word for word in words if word in column]
    return " | ".join(kept) if kept and len(kept) < len(words) else carrier.dtype


# Whatever else names a carrier.


def _combos(entry: OpEntry, names: Sequence[str]) -> Iterator[Edit]:
    combos = entry.get("signature", "dtype_combos")
    rows = [row for row in combos.items if row.is_mapping] if combos is not None else []
    columns = {key.value for row in rows for key, _ in row.pairs()}
    signature = entry.get("signature")
    if combos is None or signature is None or not columns & set(names):
        return
    lent = {
        tensor.name for tensor in entry.outputs if tensor.dtype and any(f"({name})" in tensor.dtype for name in names)
    }
    if columns <= set(names) | lent:
        yield from remove_key(entry.file, signature, "dtype_combos")
        return
    if len(columns & set(names)) > 1 or lent & columns:
        raise LeftAlone(entry.at(combos), "`dtype_combos` ties a carrier to other tensors")
    seen: list[Data] = []
    for number, row in enumerate(combos.items):
        data = entry.data_of(row)
        left = {key: value for key, value in data.items() if key not in names} if isinstance(data, dict) else data
        if left in seen:
            yield from remove_item(entry.file, combos, number)
        else:
            seen.append(left)
            for name in names:
                yield from remove_key(entry.file, row, name) if row.pair(name) else ()


def _rules(entry: OpEntry, names: Iterable[str]) -> Iterator[Edit]:
    """Rules that only say that a carrier is 0-dimensional go."""
    owner, signature = entry.get("signature", "shape_rules"), entry.get("signature")
    removed = [rule.index for rule in entry.shape_rules if any(says_scalar(rule.text, name) for name in names)]
    if owner is None or signature is None or not removed:
        return
    if len(removed) == len(owner.items):
        yield from set_value(entry.file, owner, [])
        return
    for index in removed:
        yield from remove_item(entry.file, owner, index)


# The parameter.


def _params(entry: OpEntry, param: DtypeParam) -> list[Edit]:
    if entry.param(param.name) is not None:
        return []
    owner, signature = entry.get("signature", "params"), entry.get("signature")
    if signature is None:
        return []
    if owner is None:
        after = "outputs" if signature.pair("outputs") else None
        return insert_key(entry.file, signature, "params", {param.name: param.declared}, after=after)
    known = [item.name for item in entry.params]
    place = param.order.index(param.name)
    before = [name for name in param.order[:place] if name in known]
    behind = [name for name in param.order[place:] if name in known]
    declared: Data = param.declared
    if not before and behind:
        return insert_key(entry.file, owner, param.name, declared, before=behind[0])
    after = before[-1] if before else (known[-1] if known else None)
    return insert_key(entry.file, owner, param.name, declared, after=after)

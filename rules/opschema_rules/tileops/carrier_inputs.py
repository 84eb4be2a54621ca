"""Carriers in a manifest: 0-dim inputs that no call passes, and of which an entry only uses the dtype."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Param
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.entry_parts import Row, Tensor
from opschema_rules.tileops.model import OpEntry, OpImplementation


class Lent(msgspec.Struct, frozen=True, eq=False):
    """A dtype taken from a carrier: the tensor that takes it and the reference inside its dtype expression."""

    tensor: Tensor
    node: Node
    span: Span


class CarrierInput(msgspec.Struct, frozen=True, eq=False):
    """A manifest input that no call passes. ``rows`` are the workload rows that give its shape, with the keys."""

    entry: OpEntry
    tensor: Tensor
    forward: FunctionRef
    lent: tuple[Lent, ...]
    rows: tuple[tuple[Row, Node], ...]
    attributes: tuple[CarrierAttribute, ...]


def carrier_inputs(op: OpImplementation, made: Callable[[ClassRef], list[CarrierAttribute]]) -> list[CarrierInput]:
    """Return the carriers that one entry declares; ``made`` holds those that a class makes.

    A carrier is a required 0-dim input, no argument of ``forward()`` or ``__init__()``, of which the
    entry uses nothing but the dtype. It must lend that dtype to another tensor, or the class must
    be seen to make a carrier. An entry that is not implemented may run ahead of the code: there the class must make
    one, or take a dtype when it is constructed and nothing when it is called.
    """
    forward, params = op.method("forward"), op.call_params("forward")
    if forward is None or params is None or not all(item.by_name for item in params):
        return []
    passed = {item.name for item in params}
    absent = [tensor for tensor in op.entry.inputs if tensor.name not in passed]
    candidates = [tensor for tensor in absent if _is_scalar(op.entry, tensor)]
    candidates = [tensor for tensor in candidates if not tensor.optional and not tensor.mutated]
    if not candidates:
        return []
    attributes = tuple(made(op.ref))
    if not attributes and not (_accounted_for(op, params) and (op.entry.implemented or _takes_dtype_only(op, params))):
        return []
    taken = {item.name for item in op.call_params("__init__") or []}
    found = []
    for tensor in candidates:
        lent = _lent(op.entry, tensor.name)
        if tensor.name not in taken and lent is not None and (lent or attributes):
            rows = tuple(_rows(op.entry, tensor.name))
            found.append(CarrierInput(op.entry, tensor, forward, tuple(lent), rows, attributes))
    lending = [item for item in found if item.lent]
    return found if len(found) <= len(attributes) else lending


def _accounted_for(op: OpImplementation, params: Sequence[Param]) -> bool:
    """Whether the entry names all that ``forward()`` takes, so that no argument is an input under another name."""
    init = op.call_params("__init__")
    declared = {item.name for item in op.entry.inputs} | {item.name for item in op.entry.params}
    return init is not None and all(item.by_name for item in init) and all(item.name in declared for item in params)


def _takes_dtype_only(op: OpImplementation, params: Sequence[Param]) -> bool:
    """Whether a class takes a dtype when it is constructed, all that its entry declares, and nothing when it is called."""
    taken = {item.name: item for item in op.call_params("__init__") or ()}
    annotations = (item.annotation for item in taken.values())
    dtyped = any(part.member == "dtype" for text in annotations if text is not None for part in text.walk())
    return not params and dtyped and all(item.name in taken for item in op.entry.params)


_EMPTY = re.compile(r"\s*(?:\[\s*\]|\(\s*\))\s*\Z")


def _is_scalar(entry: OpEntry, tensor: Tensor) -> bool:
    """Whether an input is declared 0-dimensional: by its shape, by a rule, or by every workload row."""
    if tensor.attribute("shape") is not None:
        return tensor.shape is not None and _EMPTY.match(tensor.shape) is not None
    if any(says_scalar(rule.text, tensor.name) for rule in entry.shape_rules):
        return True
    return bool(entry.rows) and all(row.data.get(f"{tensor.name}_shape") == [] for row in entry.rows)


def says_scalar(rule: str, name: str) -> bool:
    """Whether a shape rule says of a tensor that it is 0-dimensional, and nothing else."""
    text = re.sub(r"\s", "", rule)
    return text in {
        f"{name}.shape==()", f"{name}.shape==[]", f"tuple({name}.shape)==()", f"list({name}.shape)==[]",
        f"{name}.ndim==0", f"{name}.dim()==0", f"len({name}.shape)==0", f"()=={name}.shape", f"0=={name}.ndim",
    }  # fmt: skip


_REFERENCE = re.compile(r"\b(?:same_as|promote_int_to_float)\(\s*(\w+)\s*\)")


def _lent(entry: OpEntry, name: str) -> list[Lent] | None:
    """Places where other tensors take their dtype from ``name``; None when the entry refers to it in any other way."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found: list[Lent] = []
    for tensor in entry.tensors:
        node = tensor.attribute("dtype") if tensor.name != name else None
        if node is not None and tensor.dtype is not None:
            node = entry.file.document.follow(node)
            matches = [match for match in _REFERENCE.finditer(node.value) if match[1] == name]
            found += (Lent(tensor, node, entry.inner(node, match.span())) for match in matches)
    texts = [rule.text for rule in entry.shape_rules if not says_scalar(rule.text, name)]
    texts += _texts(entry, entry.get("roofline"))
    signature = entry.get("signature")
    for key, value in signature.pairs() if signature is not None else ():
        if key.value not in ("inputs", "outputs", "shape_rules", "dtype_combos"):
            texts += _texts(entry, value)
    for tensor in entry.tensors:
        own = [value for key, value in tensor.node.pairs() if key.value != "dtype"]
        texts += (text for value in own if tensor.name != name for text in _texts(entry, value))
    texts += (key.value for row in entry.rows for key, _ in row.node.pairs())
    return None if any(word.search(text) for text in texts) else found


def _texts(entry: OpEntry, node: Node | None) -> Iterator[str]:
    """Every scalar's text at and below a node; an alias is followed once."""
    open_nodes, seen = ([node] if node is not None else []), set[str]()
    while open_nodes:
        item = open_nodes.pop()
        if item.kind == "alias":
            if item.value not in seen:
                seen.add(item.value)
                open_nodes.append(entry.file.document.follow(item))
        elif item.kind == "scalar":
            yield item.value
        open_nodes += item.items


def _rows(entry: OpEntry, name: str) -> Iterator[tuple[Row, Node]]:
    for row in entry.rows:
        pair = row.node.pair(f"{name}_shape")
        if pair is not None:
            yield row, pair[0]

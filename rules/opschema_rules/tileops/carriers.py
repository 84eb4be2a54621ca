"""Carriers: 0-dim tensors that stand in for a dtype and a device. Found by what they are, whatever they are called.

Data for the carrier rules and for the migration that removes carriers. Those of op classes come from
:mod:`opschema_rules.tileops.carrier_attributes`; a validator's exceptions for them are in
:mod:`opschema_rules.tileops.carve_outs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Param
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.bodies import Bodies
from opschema_rules.tileops.carrier_attributes import CarrierAttribute, Handing, Tracker
from opschema_rules.tileops.custom_ops import CustomOp, Registrations
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.model import Manifest, OpEntry, OpImplementation, Row, Tensor
from opschema_rules.tileops.op_calls import OpCalls


@dataclass(frozen=True, eq=False)
class CarrierParam:
    """A custom op's parameter that every caller fills with a carrier."""

    op: CustomOp
    param: Param
    attributes: tuple[CarrierAttribute, ...]
    handings: tuple[Handing, ...]


@dataclass(frozen=True, eq=False)
class Lent:
    """A dtype taken from a carrier: the tensor that takes it and the reference inside its dtype expression."""

    tensor: Tensor
    node: Node
    span: Span


@dataclass(frozen=True, eq=False)
class CarrierInput:
    """A manifest input that no call passes. ``rows`` are the workload rows that give its shape, with the keys."""

    entry: OpEntry
    tensor: Tensor
    forward: FunctionRef
    lent: tuple[Lent, ...]
    rows: tuple[tuple[Row, Node], ...]
    attributes: tuple[CarrierAttribute, ...]


class Carriers:
    """All carriers of one manifest and its op classes."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.program = manifest.program
        self.bodies = Bodies(manifest.program, manifest.program.package_files)
        self.registrations = Registrations(self.bodies)
        self._elsewhere: dict[str, bool] = {}

    @cached_property
    def attributes(self) -> list[CarrierAttribute]:
        """0-dim tensors that op classes make only to hand them to custom ops that never read them."""
        mentions = MentionIndex(self.bodies)
        calls = OpCalls(self.bodies, self.registrations, mentions)
        return Tracker(self.bodies, calls, mentions, self._used_elsewhere).attributes()

    def _used_elsewhere(self, name: str) -> bool:
        """Whether the library, outside the package of ops, uses an attribute of another object by this name."""
        if name not in self._elsewhere:
            self._elsewhere[name] = self._search(name)
        return self._elsewhere[name]

    def _search(self, name: str) -> bool:
        word = re.compile(rf"(?<!self)\.{re.escape(name)}\b")
        sources = (self.manifest.project.source(path) for path in self._library)
        texts = (source.text for source in sources if source is not None and f".{name}" in source.text)
        return any(word.search(text) for text in texts)

    @cached_property
    def _library(self) -> list[str]:
        """The library's modules that are not among the package of ops: what else lies below its top folder."""
        files, mine = self.program.files, set(self.bodies.paths)
        tops = set()
        for path in self.bodies.paths:
            folder = path.rpartition("/")[0]
            while f"{folder.rpartition('/')[0]}/__init__.py" in files:
                folder = folder.rpartition("/")[0]
            tops.add(folder + "/")
        return sorted(path for path in files if path not in mine and path.startswith(tuple(tops)))

    @cached_property
    def params(self) -> list[CarrierParam]:
        """Parameters of custom ops that only ever take a carrier."""
        taken: dict[tuple[int, str], list[tuple[CarrierAttribute, Handing, CustomOp, Param]]] = {}
        for attribute in self.attributes:
            for handing in attribute.handings:
                for op, param in handing.takers:
                    taken.setdefault((id(op), param.name), []).append((attribute, handing, op, param))
        found = []
        for items in taken.values():
            _, _, op, param = items[0]
            attributes = tuple(dict.fromkeys(item[0] for item in items))
            handings = tuple(dict.fromkeys(item[1] for item in items))
            if self._all_hand(op, attributes, handings):
                found.append(CarrierParam(op, param, attributes, handings))
        return found

    def _all_hand(self, op: CustomOp, attributes: Iterable[CarrierAttribute], handings: Iterable[Handing]) -> bool:
        """Whether no class that holds an op, and no call that names it, hands it anything but a carrier."""
        carrying = {ref for attribute in attributes for ref in self.bodies.family(attribute.owner)}
        if not self.registrations.holders(op) <= carrying:
            return False
        known = {id(handing.call) for handing in handings}
        calls = [call for _, call in self.bodies.calls_of(op.body)]
        for name in op.names or ():
            dotted = "torch.ops." + name.replace("::", ".")
            bodies = self.bodies.holding(name.partition("::")[2])
            calls += (call for body in bodies for call in body.scope.calls if call.callee.startswith(dotted))
        return all(id(call) in known for call in calls)

    def of_class(self, ref: ClassRef) -> list[CarrierAttribute]:
        """The carriers that instances of a class have."""
        lineage = self.program.lineage(ref) if self.attributes else []
        return [item for owner in lineage for item in self._by_owner.get(owner, ())]

    @cached_property
    def _by_owner(self) -> dict[ClassRef, list[CarrierAttribute]]:
        found: dict[ClassRef, list[CarrierAttribute]] = {}
        for item in self.attributes:
            found.setdefault(item.owner, []).append(item)
        return found

    @cached_property
    def entries_by_class(self) -> dict[ClassRef, list[str]]:
        """The names of the entries whose op class is, or inherits from, a class."""
        found: dict[ClassRef, list[str]] = {}
        for entry in self.manifest.entries:
            if isinstance(entry.op_class, ClassRef):
                for ref in self.program.lineage(entry.op_class):
                    found.setdefault(ref, []).append(entry.name)
        return found

    @cached_property
    def inputs(self) -> list[CarrierInput]:
        """Every carrier that an entry declares."""
        pairs = ((entry, entry.op_class) for entry in self.manifest.entries)
        found = (self.inputs_of(OpImplementation(entry, ref)) for entry, ref in pairs if isinstance(ref, ClassRef))
        return [item for items in found for item in items]

    def inputs_of(self, op: OpImplementation) -> list[CarrierInput]:
        """The carriers that one entry declares.

        A carrier is a required 0-dim input, no argument of ``forward()`` or ``__init__()``, of which the
        entry uses nothing but the dtype. It must lend that dtype to another tensor, or the class must
        be seen to make a carrier. An entry that is not implemented may run ahead of the code, so there
        only the class tells.
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
        attributes = tuple(self.of_class(op.ref))
        if not attributes and (not op.entry.implemented or not _accounted_for(op, params)):
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


_KNOWN: WeakKeyDictionary[Manifest, Carriers] = WeakKeyDictionary()


def carriers_of(manifest: Manifest) -> Carriers:
    """The carriers of a manifest, found once."""
    if manifest not in _KNOWN:
        _KNOWN[manifest] = Carriers(manifest)
    return _KNOWN[manifest]


# The manifest's side


def _accounted_for(op: OpImplementation, params: list[Param]) -> bool:
    """Whether the entry names all that ``forward()`` takes, so that no argument is an input under another name."""
    init = op.call_params("__init__")
    declared = {item.name for item in op.entry.inputs} | {item.name for item in op.entry.params}
    return init is not None and all(item.by_name for item in init) and all(item.name in declared for item in params)


_EMPTY = re.compile(r"\s*(?:\[\s*\]|\(\s*\))\s*\Z")


def _is_scalar(entry: OpEntry, tensor: Tensor) -> bool:
    """Whether an input is declared 0-dimensional: by its shape, by a rule, or by every workload row."""
    if tensor.attribute("shape") is not None:
        return tensor.shape is not None and _EMPTY.match(tensor.shape) is not None
    if any(_says_scalar(rule.text, tensor.name) for rule in entry.shape_rules):
        return True
    return bool(entry.rows) and all(row.data.get(f"{tensor.name}_shape") == [] for row in entry.rows)


def _says_scalar(rule: str, name: str) -> bool:
    text = re.sub(r"\s", "", rule)
    return text in {
        f"{name}.shape==()", f"{name}.shape==[]", f"tuple({name}.shape)==()", f"list({name}.shape)==[]",
        f"{name}.ndim==0", f"{name}.dim()==0", f"len({name}.shape)==0", f"()=={name}.shape", f"0=={name}.ndim",
    }  # fmt: skip


_REFERENCE = re.compile(r"\b(?:same_as|promote_int_to_float)\(\s*(\w+)\s*\)")


def _lent(entry: OpEntry, name: str) -> list[Lent] | None:
    """Where other tensors take their dtype from ``name``; None when the entry refers to it in any other way."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    found: list[Lent] = []
    for tensor in entry.tensors:
        node = tensor.attribute("dtype") if tensor.name != name else None
        if node is not None and tensor.dtype is not None:
            node = entry.file.document.follow(node)
            matches = [match for match in _REFERENCE.finditer(node.value) if match[1] == name]
            found += (Lent(tensor, node, entry.inner(node, match.span())) for match in matches)
    rules = (rule.text for rule in entry.shape_rules if not _says_scalar(rule.text, name))
    texts = [*rules, *_texts(entry, entry.get("roofline")), *_texts(entry, entry.get("signature", "static_dims"))]
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

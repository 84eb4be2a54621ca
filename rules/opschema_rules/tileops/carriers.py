"""Carriers: 0-dim tensors that stand for a dtype and a device. They are recognized by their use, whatever their name.

Data for the carrier rules and for the migration that removes carriers: those of op classes
(:mod:`opschema_rules.tileops.carrier_attributes`), of custom ops, and of entries
(:mod:`opschema_rules.tileops.carrier_inputs`). What validators do for their sake is in
:mod:`opschema_rules.tileops.carve_outs` and :mod:`opschema_rules.tileops.demands`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

import msgspec

from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import ClassRef
from opschema_cli.source.python import Param
from opschema_rules.tileops.carrier_attributes import CarrierAttribute, Handing, Tracker
from opschema_rules.tileops.carrier_inputs import CarrierInput, carrier_inputs
from opschema_rules.tileops.custom_ops import CustomOp, CustomOps
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.model import Manifest, OpImplementation


class CarrierParam(msgspec.Struct, frozen=True, eq=False):
    """A custom op's parameter that every caller fills with a carrier."""

    op: CustomOp
    param: Param
    attributes: tuple[CarrierAttribute, ...]
    handings: tuple[Handing, ...]


class Carriers:
    """All carriers of one manifest and its op classes."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.program = manifest.program
        self.bodies = Bodies(manifest.program, manifest.program.package_files)
        self.custom_ops = CustomOps(manifest.project, self.bodies)
        self._elsewhere: dict[str, bool] = {}
        self._inputs: dict[OpImplementation, list[CarrierInput]] = {}

    @cached_property
    def attributes(self) -> list[CarrierAttribute]:
        """0-dim tensors that op classes make only to hand them to custom ops that never read them."""
        mentions = MentionIndex(self.bodies)
        return Tracker(self.bodies, self.custom_ops, mentions, self._used_elsewhere).attributes()

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
        """Return the library's modules outside the package of ops: everything else below its top folder."""
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
        carrying = {ref.key for attribute in attributes for ref in self.bodies.family(attribute.owner)}
        if not self.custom_ops.holders(op) <= carrying:
            return False
        known = {handing.body.at(handing.call) for handing in handings}
        calls = {body.at(call) for body, call in self.bodies.calls_of(op.body)} | self.custom_ops.calls(op)
        return calls <= known

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
        return [found for op in self.manifest.implementations for found in self.inputs_of(op)]

    def inputs_of(self, op: OpImplementation) -> list[CarrierInput]:
        """The carriers that one entry declares."""
        if op not in self._inputs:
            self._inputs[op] = carrier_inputs(op, self.of_class)
        return self._inputs[op]


@lru_cache(maxsize=2)
def carriers_of(manifest: Manifest) -> Carriers:
    """The carriers of a manifest, found once."""
    return Carriers(manifest)


def carrier_names(op: OpImplementation) -> set[str]:
    """The inputs of one entry that are carriers: that the code does not take them is CAR101's to say, once."""
    return {found.tensor.name for found in carriers_of(op.entry.manifest).inputs_of(op)}

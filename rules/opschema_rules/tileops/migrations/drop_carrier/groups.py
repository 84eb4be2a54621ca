"""Groups that must be migrated together: entries and classes that share a carrier, or a custom op of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.migrate.migration import Site
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.program import ClassRef
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.carrier_inputs import CarrierInput
from opschema_rules.tileops.carriers import Carriers, carriers_of
from opschema_rules.tileops.model import Manifest, OpImplementation

INPUT_CODES = ("CAR101", "CAR102", "CAR103", "CAR104")


class Carried(msgspec.Struct, frozen=True, eq=False):
    """A site's subject: the carriers of one entry, or one of an op class alone (``op`` is None)."""

    carriers: Carriers
    op: OpImplementation | None
    inputs: tuple[CarrierInput, ...]
    attributes: tuple[CarrierAttribute, ...]


class Group(msgspec.Struct, frozen=True, eq=False):
    """Sites that are migrated together or not at all."""

    sites: tuple[Site, ...]
    subjects: tuple[Carried, ...]

    @property
    def attributes(self) -> list[CarrierAttribute]:
        """The carriers of its op classes."""
        return list(dict.fromkeys(item for subject in self.subjects for item in subject.attributes))

    @property
    def ops(self) -> list[str]:
        """The names of its ops: entries, or classes that no entry names."""
        named = [subject.op.name for subject in self.subjects if subject.op is not None]
        return named or [attribute.owner.name for attribute in self.attributes]

    @property
    def classes(self) -> list[ClassRef]:
        """The classes whose instances have these carriers."""
        return _classes(self.subjects[0].carriers, self.attributes)


def sites(manifest: Manifest) -> Iterator[Site]:
    """A site for each entry that declares carriers, and for each carrier that a class has beside that."""
    carriers = carriers_of(manifest)
    covered: set[CarrierAttribute] = set()
    for op in manifest.implementations:
        inputs = tuple(carriers.inputs_of(op))
        if inputs:
            attributes = tuple(dict.fromkeys(item for found in inputs for item in found.attributes))
            covered.update(attributes)
            named = ", ".join(f"`{found.tensor.name}`" for found in inputs)
            place = op.entry.at(inputs[0].tensor.key)
            subject = Carried(carriers, op, inputs, attributes)
            yield Site(place, f"drop the carrier {named} of {op.name}", (op.name,), INPUT_CODES, subject)
    for attribute in carriers.attributes:
        if attribute not in covered:
            ops = tuple(sorted(carriers.entries_by_class.get(attribute.owner, ())))
            what = f"`self.{attribute.name}`" if attribute.name else "made for each call"
            title = f"drop the carrier {what} of {attribute.owner.name}"
            yield Site(attribute.writes[0], title, ops, INPUT_CODES, Carried(carriers, None, (), (attribute,)))


def grouped(chosen: Iterable[Site]) -> list[Group]:
    """The chosen sites, those together that share a carrier or a custom op that is registered for them alone."""
    home: dict[object, int] = {}
    groups: dict[int, list[tuple[Site, Carried]]] = {}
    for number, site in enumerate(chosen):
        subject = site.subject
        assert isinstance(subject, Carried)
        keys = [item for attribute in subject.attributes for item in (attribute, *_own_ops(attribute))]
        numbers = {home[key] for key in keys if key in home}
        merged = [pair for other in sorted(numbers) for pair in groups.pop(other)]
        groups[number] = [*merged, (site, subject)]
        for _, other in groups[number]:
            home.update((item, number) for attribute in other.attributes for item in (attribute, *_own_ops(attribute)))
    return [Group(tuple(site for site, _ in pairs), tuple(item for _, item in pairs)) for pairs in groups.values()]


def _own_ops(attribute: CarrierAttribute) -> Iterator[object]:
    """The custom ops that a carrier is handed to, unless a factory makes one for each class."""
    for handing in attribute.handings:
        tensors = handing.body.params[1:]
        yield from (op for op, _ in handing.takers if op.factory is None or tensors)


def _classes(carriers: Carriers, attributes: Sequence[CarrierAttribute]) -> list[ClassRef]:
    found: dict[ClassRef, None] = {}
    for attribute in attributes:
        for ref in carriers.bodies.family(attribute.owner):
            if attribute.owner in carriers.program.lineage(ref):
                found[ref] = None
    return list(found)


def check_whole(group: Group, declared: Mapping[str, CarrierInput]) -> None:
    """Check that nothing outside of a group has its carriers; ``declared`` are those of all entries, by name.

    Raises:
        LeftAlone: an entry that is not to be migrated does, or a custom op of the group serves another class.
    """
    carriers = group.subjects[0].carriers
    names = {subject.op.name for subject in group.subjects if subject.op is not None}
    for attribute in group.attributes:
        for name in carriers.entries_by_class.get(attribute.owner, ()):
            if name not in names and name in declared:
                found = declared[name]
                raise LeftAlone(
                    found.entry.at(found.tensor.key), f"`{name}`, which is not migrated, has the same carrier"
                )
    mine = set(group.attributes)
    for param in carriers.params:
        shared = param.op.factory is None and mine.intersection(param.attributes)
        if shared and not mine.issuperset(param.attributes):
            raise LeftAlone(
                param.op.body.at(param.param.span), "the custom op takes the carrier of an op that is not migrated"
            )

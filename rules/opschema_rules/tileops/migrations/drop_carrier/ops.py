"""Entries, op classes and custom ops, group by group: each all or not at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions as find_mentions
from opschema_cli.migrate.migration import Note, Site
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.phrases import quoted
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.text import Edit
from opschema_rules.tileops.carrier_inputs import CarrierInput
from opschema_rules.tileops.carriers import Carriers
from opschema_rules.tileops.custom_ops import CustomOp
from opschema_rules.tileops.mentions import MentionIndex
from opschema_rules.tileops.migrations.drop_carrier.classes import alone, drop_from_classes
from opschema_rules.tileops.migrations.drop_carrier.dtype_params import dtype_param
from opschema_rules.tileops.migrations.drop_carrier.entries import entry_edits
from opschema_rules.tileops.migrations.drop_carrier.forwards import Eager, inline, is_private
from opschema_rules.tileops.migrations.drop_carrier.groups import Carried, Group, check_whole, grouped
from opschema_rules.tileops.migrations.drop_carrier.narrative import Removed
from opschema_rules.tileops.migrations.drop_carrier.registrations import Registrar
from opschema_rules.tileops.migrations.drop_carrier.unseen import own_calls, unseen


class Outcome(msgspec.Struct):
    """The outcome for all groups: the migrated ones, notes on the others, and the remaining calls to inline."""

    migrated: list[Group] = msgspec.field(default_factory=list)
    notes: list[Note] = msgspec.field(default_factory=list)
    later: list[Eager] = msgspec.field(default_factory=list)

    @property
    def entries(self) -> set[str]:
        """The names of the entries that are migrated."""
        return {item.op.name for group in self.migrated for item in group.subjects if item.op is not None}

    def is_complete(self, carriers: Carriers) -> bool:
        """Whether no entry of a manifest is left with a carrier."""
        return {found.entry.name for found in carriers.inputs} <= self.entries

    def kept(self, carriers: Carriers) -> Iterator[str]:
        """The names of the entries of a manifest that are left with carriers, and of these."""
        migrated = self.entries
        for found in carriers.inputs:
            if found.entry.name not in migrated:
                yield from (found.entry.name, found.tensor.name)

    def leaves_no_input(self, carriers: Carriers) -> bool:
        """Whether some entry of a manifest is left without inputs."""
        mine = (item for group in self.migrated for item in group.subjects if item.carriers is carriers)
        return any(item.op is not None and len(item.inputs) == len(item.op.entry.inputs) for item in mine)

    def remarks(self, removed: Removed) -> Iterator[Note]:
        """Record in ``removed`` the parts of the groups; yield notes on ops that are no longer custom ops."""
        subjects = [item for group in self.migrated for item in group.subjects]
        for carriers in dict.fromkeys(item.carriers for item in subjects):
            yield from unseen(carriers, [item for item in subjects if item.carriers is carriers])
        eager: dict[CustomOp, list[Group]] = {}
        for group in self.migrated:
            handings = [handing for item in group.attributes for handing in item.handings]
            removed.called.update(name for item in handings for name in own_calls(item.body, item.call))
            removed.names.update(found.tensor.name for item in group.subjects for found in item.inputs)
            removed.names.update(item.name for item in group.attributes if item.name)
            for op in dict.fromkeys(op for item in group.attributes for op in alone(item)):
                eager.setdefault(op, []).append(group)
        for op, groups in eager.items():
            bodies = groups[0].subjects[0].carriers.bodies
            calls = bodies.calls_of(op.factory) if op.factory is not None else ()
            removed.registering.update(body.file.path for body, _ in calls)
            first = groups[0].attributes[0].owner
            yield Note(Place(first.file.path, first.cls.span), _told([name for group in groups for name in group.ops]))


def _told(names: Sequence[str]) -> str:
    """Describe the effect on some ops of having no custom op any more."""
    if len(names) == 1:
        return f"without a custom op, `{names[0]}` runs eagerly: `torch.compile` does not take it as one operator"
    shown = quoted(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"without custom ops, {shown} run eagerly: `torch.compile` does not take each as one operator"


class _Tools(NamedTuple):
    """Values looked up once for all groups of a manifest."""

    mentions: MentionIndex
    registrar: Registrar
    declared: dict[str, CarrierInput]

    @classmethod
    def of(cls, workbench: Workbench, carriers: Carriers) -> _Tools:
        declared = {found.entry.name: found for found in carriers.inputs}
        return cls(MentionIndex(carriers.bodies), Registrar(workbench, carriers.bodies), declared)


def migrate_groups(draft: Draft, workbench: Workbench, chosen: Sequence[Site]) -> Outcome:
    """Record the changes for each group of sites that can be migrated with certainty, and notes on the others."""
    outcome = Outcome()
    tools: dict[Carriers, _Tools] = {}
    elsewhere = _Elsewhere(draft)
    for group in grouped(chosen):
        carriers = group.subjects[0].carriers
        if carriers not in tools:
            tools[carriers] = _Tools.of(workbench, carriers)
        mentions, registrar, declared = tools[carriers]
        try:
            with workbench.atomic():
                check_whole(group, declared)
                edits = [(subject, _manifest_edits(subject)) for subject in group.subjects if subject.op is not None]
                left = drop_from_classes(workbench, carriers, mentions, registrar, group.attributes, group.classes)
        except LeftAlone as why:
            outcome.notes += _notes(group, why)
            continue
        for subject, found in edits:
            if subject.op is not None:
                draft.edit(subject.op.entry.file.path, found)
        private = [item for item in left if is_private(carriers.bodies, mentions, item, elsewhere)]
        for item in private:
            if not item.later:
                with workbench.on(item.body.file.path) as rewrite:
                    inline(rewrite, item)
        outcome.later += [item for item in private if item.later]
        outcome.migrated.append(group)
    return outcome


class _Elsewhere:
    """The Python files outside a package by the attributes that they read, each looked up once."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._texts: dict[str, list[str]] = {}

    def __call__(self, bodies: Bodies, name: str) -> list[str]:
        """The texts that read an attribute of that name."""
        if name not in self._texts:
            package, project = set(bodies.paths), self.draft.project
            paths = {item.place.path for item in find_mentions(project, {name}, _python(project, package))}
            read = re.compile(rf"""\.{re.escape(name)}\b|["']{re.escape(name)}["']""")
            texts = (self.draft.text(path) for path in sorted(paths))
            self._texts[name] = [text for text in texts if read.search(text)]
        return self._texts[name]


def _python(project: Project, package: Collection[str]) -> list[str]:
    return [path for path in project.workspace.files if path.endswith(".py") and path not in package]


def _manifest_edits(subject: Carried) -> list[Edit]:
    assert subject.op is not None
    param = dtype_param(subject.carriers, subject.op, subject.inputs)
    return entry_edits(subject.op.entry, subject.inputs, param)


def _notes(group: Group, why: LeftAlone) -> Iterator[Note]:
    """Yield the notes on a group that is left unchanged: at each of its sites, and at the place of the reason."""
    for site in group.sites:
        yield Note(site.place, f"not migrated: {why.reason}", leaves_site=True)
    if all(site.place != why.place for site in group.sites):
        yield Note(why.place, why.reason)

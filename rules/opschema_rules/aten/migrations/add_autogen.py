"""`add-autogen`: writes the lines `autogen: ...` that torchgen requires, and those for operators that should get an out variant."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.autogen import autogen_edits, is_asked_for, listed_names, obstacle, wanted_names
from opschema_rules.aten.differences import name_of, torn
from opschema_rules.aten.functionalization import ungrouped
from opschema_rules.aten.groups import Group, groups_of
from opschema_rules.aten.migrations.scopes import ENTRIES
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import RESTORED
from opschema_rules.aten.traits import autogen_of


class AddAutogen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ops`` are operators, or patterns, that get a generated out variant; without it, only the lines that torchgen
    requires.
    """

    ops: tuple[str, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    """A line to write into an entry; where there can be none, ``why`` says."""

    entry: NativeEntry
    names: tuple[str, ...]
    why: str = ""


def find(draft: Draft, options: AddAutogen) -> Iterator[Site]:
    """The entries whose line is missing or wrong."""
    natives = [item for item in draft.loaded.subjects if isinstance(item, NativeFile)]
    _check_known(natives, options)
    for native in natives:
        lonely = (
            {group for _, group in ungrouped(groups_of(native))} if native.torchgen.exceptions.functionalizes else set()
        )
        for group in groups_of(native).all:
            line = _line(native, group, lonely, options)
            if line is None:
                continue
            title = f"write `autogen: {', '.join(line.names)}`" if line.names else "write `autogen`"
            yield Site(
                line.entry.place, f"{title} in `{line.entry.name}`", (line.entry.name,), ("ATN331",), subject=line
            )


@migration(
    "add-autogen",
    find=find,
    options=AddAutogen,
    scope=ENTRIES,
    settled="every entry that needs an `autogen` line has it",
    proof=RESTORED,
)
def add_autogen(draft: Draft, sites: Sequence[Site], options: AddAutogen) -> Iterator[Note]:
    """Write the `autogen` lines of native_functions.yaml.

    torchgen generates out and functional variants, and wants what it generates listed in the entry that it generates from.
    Without options, the lines are written that it demands: of entries that list something, of those for which a functional
    variant is generated anyway, and of operators with kernels that write and are in no group. `ops` names operators that
    are to get an out variant; shell patterns are taken.

    An existing line is completed, and names that torchgen does not generate are removed from it. A new line is written as
    the last field, or before the tags if the nearest entry has it there. Nothing else is changed. An operator for which
    torchgen generates nothing is left unchanged, with a note that gives the reason.

        opschema migrate add-autogen
        opschema migrate add-autogen -o ops=tanh_,_foreach_lerp.*
    """
    for site in sites:
        line = site.subject
        if not isinstance(line, _Line):
            continue
        if line.why:
            yield Note(site.place, f"torchgen generates nothing for `{line.entry.name}`: {line.why}", leaves_site=True)
            continue
        try:
            draft.edit(site.place.path, autogen_edits(line.entry, line.names))
        except YamlEditError as error:
            yield Note(site.place, f"the line is to be written by hand: {error}", leaves_site=True)


def _line(native: NativeFile, group: Group, lonely: Container[Group], options: AddAutogen) -> _Line | None:
    """Return the line that a group needs; None if it is right or not required."""
    base, names = group.base, wanted_names(group)
    if base is None or group in torn(groups_of(native)) or not groups_of(native).knows_all(group.key[0].base):
        return None
    blocked = obstacle(group) if "out" not in group.variants else None
    if not names or blocked is not None:
        asked = [entry for entry in group.entries if name_of(entry) in options.ops]
        why = group.skipped or (blocked[1] if names and blocked is not None else _why_nothing(group))
        return _Line(asked[0], (), why) if asked and why else None
    chosen = any(fnmatchcase(name_of(entry), pattern) for entry in group.entries for pattern in options.ops)
    wanted = chosen if options.ops else is_asked_for(group) or group in lonely
    if not wanted or _is_right(group, names):
        return None
    return _Line(base, tuple(_merged(base, names)))


def _why_nothing(group: Group) -> str:
    """The reason why a group gets nothing that torchgen does not skip; empty where all variants are declared."""
    return "" if "out" in group.variants else "it returns no tensor"


def _is_right(group: Group, names: list[str]) -> bool:
    """Whether torchgen generates the listed operators."""
    return {item.name for item in group.generated} == set(names) == set(listed_names(group))


def _merged(base: NativeEntry, names: list[str]) -> list[str]:
    """The names of the line, those that it has first, in the order that they have there."""
    given = [name for name, _ in autogen_of(base) if name in names]
    if given == sorted(given):
        return names
    return [*given, *(name for name in names if name not in given)]


def _check_known(natives: Sequence[NativeFile], options: AddAutogen) -> None:
    """Refuse an operator that no file has.

    Raises:
        OptionError: with the nearest name.
    """
    known = {name for native in natives for name in groups_of(native).named}
    for pattern in options.ops if natives else ():
        if not any(fnmatchcase(name, pattern) for name in known):
            raise OptionError(
                f"-o ops={pattern}: no entry declares such an operator{did_you_mean(nearest(pattern, known))}"
            )

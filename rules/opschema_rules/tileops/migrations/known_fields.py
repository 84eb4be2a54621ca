"""Whether an option means a field that there is: a misspelt one would find nothing to migrate, and say no more than that.

A name is refused only where the manifest's schema lists what may stand, no entry has it there, and it is nearly one that is
known. Any other may be a field of the tree's own that an earlier run has dropped, or a name that an author gave. Nothing
is refused once the draft has changes: a step before this one may have taken the field away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import OptionError
from opschema_cli.suggestions import nearest
from opschema_rules.tileops.manifest_schema import allowed_at
from opschema_rules.tileops.migrations.entries import all_entries
from opschema_rules.tileops.migrations.fields import slots, text_of


def check_path(draft: Draft, path: Sequence[str]) -> None:
    """Check the steps of a field's path.

    Raises:
        OptionError: one is misspelt.
    """
    for at, step in enumerate(path) if not draft.changes else ():
        known = allowed_at(path[:at]).keys
        if known and step != "*" and step not in known:
            present = set(_keys(draft, path[:at]))
            meant = nearest(step, known | present, 0.75) if step not in present else None
            if meant is not None:
                raise OptionError(f"no entry has `{'.'.join(path[: at + 1])}`; did you mean `{meant}`?")


def check_value(draft: Draft, path: Sequence[str], value: str) -> None:
    """Check a value, or a pattern of values, of a field that has one of a few.

    Raises:
        OptionError: it is misspelt.
    """
    known = allowed_at(path).values
    if not known or draft.changes or any(fnmatchcase(item, value) for item in known):
        return
    present = {
        text for entry in all_entries(draft) for slot in slots(entry, path) if (text := text_of(slot)) is not None
    }
    meant = nearest(value, known | present, 0.75)
    if meant is not None and not any(fnmatchcase(item, value) for item in present):
        raise OptionError(f"no entry has `{value}` as `{'.'.join(path)}`; did you mean `{meant}`?")


def _keys(draft: Draft, path: Sequence[str]) -> Iterator[str]:
    """The keys that entries have in the mapping at a path."""
    for entry in all_entries(draft):
        for slot in slots(entry, (*path, "")):
            if not slot.missing:
                yield from (key.value for key, _ in slot.owner.pairs())

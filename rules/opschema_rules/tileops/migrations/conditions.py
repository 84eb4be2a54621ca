"""The entries that ``-o op=`` and ``-o where=`` choose."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import OptionError
from opschema_rules.tileops.migrations.entries import all_entries, named, words_of
from opschema_rules.tileops.migrations.fields import read_path, slots, text_of
from opschema_rules.tileops.migrations.known_fields import check_path, check_value
from opschema_rules.tileops.model import OpEntry


class Condition(NamedTuple):
    """A field that is to be there, or to have a value, a shell pattern allowed; with ``wanted`` false, not to."""

    path: tuple[str, ...]
    value: str | None
    wanted: bool

    def holds(self, entry: OpEntry) -> bool:
        """Whether it holds for an entry."""
        found = [slot for slot in slots(entry, self.path) if slot.node is not None]
        if self.value is None:
            return bool(found) is self.wanted
        texts = map(text_of, found)
        return any(text is not None and fnmatchcase(text, self.value) for text in texts) is self.wanted

    def check(self, draft: Draft) -> None:
        """Check the names in its ``where`` option, which may be the reason why no entry has a field.

        Raises:
            OptionError: one is misspelt.
        """
        if self.wanted:
            check_path(draft, self.path)
            if self.value is not None:
                check_value(draft, self.path, self.value)


def chosen(draft: Draft, ops: str, where: str) -> list[OpEntry]:
    """The entries that are named and for which every condition holds.

    A condition is `path=value` or `path!=value`, where the value may be a shell pattern, `has:path` or `lacks:path`.

    Raises:
        OptionError: an op or a field is not known, or a condition is malformed.
    """
    conditions = list(_conditions(where))
    for condition in conditions:
        condition.check(draft)
    return [entry for entry in named(all_entries(draft), ops) if all(item.holds(entry) for item in conditions)]


def _conditions(where: str) -> Iterator[Condition]:
    for text in words_of(where):
        word, colon, path = text.partition(":")
        if colon and word in ("has", "lacks"):
            yield Condition(read_path(path), None, word == "has")
            continue
        path, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"`{text}` is not a condition such as `status=implemented` or `has:source.bench`")
        yield Condition(read_path(path.removesuffix("!")), value, not path.endswith("!"))

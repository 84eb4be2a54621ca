"""Checks an author's ``Pack`` definition when it is created."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from opschema_cli.authoring import at, described, is_options, needs_value, refuse
from opschema_cli.lint.rule import NAME, Rule


class Detection(Protocol):
    """The fields that every pack has."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def options(self) -> type[Any]:
        """The type of its options."""


def check_detection(pack: Detection) -> None:
    """Check the fields that every pack has.

    Raises:
        AuthorError: one is not what it should be.
    """
    if not isinstance(pack.name, str) or not NAME.match(pack.name):
        refuse(f"a pack is called {pack.name!r}; a name is lower-case-words")
    what = f"the pack `{pack.name}`"
    if not is_options(pack.options):
        refuse(f"{what}: options={described(pack.options)}; it is a subclass of `Options`")
    if option := needs_value(pack.options):
        refuse(f"{what}: its option `{option}` needs a default")
    for name in ("detect", "claims"):
        if not callable(getattr(pack, name)):
            refuse(f"{what}: {name}={described(getattr(pack, name))}; it is a function")


def check_records(pack: str, field: str, records: object, noun: str) -> None:
    """Check that a field holds a tuple of rules or migrations.

    Raises:
        AuthorError: it does not.
    """
    what = f"the pack `{pack}`: `{field}`"
    if _kind_of(records) == noun:
        refuse(f"{what} is one {noun}; a tuple of one has a comma: {field}=(my_{noun},)")
    if not isinstance(records, tuple):
        refuse(f"{what} is {described(records)}; it is a tuple: {field}=(my_{noun},)")
    for item in records:
        if _kind_of(item) != noun:
            refuse(f"{what} holds {described(item)}, which is not a {noun}; decorate a function with `@{noun}(...)`")


def _kind_of(record: object) -> str:
    return getattr(type(record), "record_kind", "")


def check_rules(pack: str, rules: Iterable[Rule]) -> None:
    """Check that no two rules of a pack share a code or a name.

    Raises:
        AuthorError: two do.
    """
    known: dict[str, Rule] = {}
    for item in rules:
        for word in (item.code, item.name):
            if word in known and known[word] is not item:
                places = f"{item.code}{at(item.check)} and {known[word].code}{at(known[word].check)}"
                refuse(f"the pack `{pack}` has two rules `{word}`: {places}; give one another code and name")
            if word in known:
                refuse(f"the pack `{pack}` lists the rule {item.code} twice")
        known |= dict.fromkeys((item.code, item.name), item)

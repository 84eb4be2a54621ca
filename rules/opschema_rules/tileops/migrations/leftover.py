"""Mentions in an entry of parameters to remove, and whether anything else gives those names a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.formulas import formulas
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import bound_names, parsed, shape_rules, statement, static_dims


class _Text(NamedTuple):
    """A remaining expression: its kind, its place, and the names in it."""

    what: str
    node: Node
    names: frozenset[str]


class Leftover:
    """The expressions of one entry that are left when parameters go."""

    def __init__(self, entry: OpEntry, names: Sequence[str]) -> None:
        self.entry = entry
        self.names = frozenset(names)
        self.sizes = statement(entry).sizes
        self._rules = [
            (rule, expression, frozenset(use.name for use in expression.names()))
            for rule, expression in shape_rules(entry)
        ]

    @cached_property
    def related(self) -> frozenset[str]:
        """The names in the remaining rules: a row still gives them values."""
        return frozenset(name for _, _, names in self._rules if not names <= self.names for name in names)

    @cached_property
    def removed(self) -> list[int]:
        """The rules that name the parameters alone, where nothing else speaks of these."""
        dropped = self.names - self.sizes - self.related
        return [rule.index for rule, _, names in self._rules if names and names <= dropped]

    @cached_property
    def known(self) -> frozenset[str]:
        """The names that shapes, static dimensions and the remaining rules give a value."""
        rules = (
            name for rule, found, _ in self._rules if rule.index not in self.removed for name in bound_names(found)
        )
        return frozenset({*self.sizes, *(key.value for key, _, _ in static_dims(self.entry)), *rules})

    def notes(self) -> list[Note]:
        """Notes on texts that still name a parameter.

        Raises:
            LeftAlone: nothing would give it a value there.
        """
        given = {name for row in self.entry.rows for name in row.data} & self.related
        return [*self._notes(self._rule_texts(), self.known | given), *self._notes(self._other_texts(), self.known)]

    def _notes(self, texts: Iterator[_Text], known: frozenset[str]) -> Iterator[Note]:
        for what, node, names in texts:
            left = sorted((names & self.names) - self.sizes)
            unknown = [name for name in left if name not in known]
            place = self.entry.at(node)
            if unknown:
                raise LeftAlone(place, f"{what} names `{unknown[0]}`, which nothing else gives a value")
            if left:
                yield Note(place, f"{what} names `{left[0]}`, which is not a parameter any more")

    def _rule_texts(self) -> Iterator[_Text]:
        for rule, _, names in self._rules:
            if rule.index not in self.removed:
                yield _Text(f"this rule of `{self.entry.name}`", rule.node, names)

    def _other_texts(self) -> Iterator[_Text]:
        entry = self.entry
        for key, node, text in static_dims(entry):
            yield _Text(f"`static_dims.{key.value}` of `{entry.name}`", node, _names(text))
        for name, node, text in constraints(entry):
            yield _Text(f"a constraint of `{name}` of `{entry.name}`", node, _names(text))
        own = frozenset(formula.name for formula in formulas(entry) if formula.layer == "vars")
        for formula in formulas(entry):
            names = _names(formula.text) - (own if formula.layer == "arithmetic" else frozenset())
            yield _Text(f"`roofline.{formula.where}` of `{entry.name}`", formula.node, names)


def constraints(entry: OpEntry) -> Iterator[tuple[str, Node, str]]:
    """Yield the textual restrictions of declared dimensions: the tensor, the place, and the text."""
    for tensor in entry.tensors:
        owner = tensor.attribute("constraints")
        owner = entry.file.document.follow(owner) if owner is not None else None
        for _, value in owner.pairs() if owner is not None else ():
            node = entry.file.document.follow(value)
            text = entry.data_of(node) if node.kind == "scalar" else None
            if isinstance(text, str):
                yield tensor.name, node, text


def _names(text: str) -> frozenset[str]:
    expression = parsed(text)
    return frozenset(use.name for use in expression.names()) if expression is not None else frozenset()

"""A value written for a parameter in an entry's rules, formulas and static dimensions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.schema.evaluate import EvaluateError, evaluate
from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import remove_key, set_value
from opschema_rules.tileops.formulas import formulas
from opschema_rules.tileops.migrations.leftover import constraints
from opschema_rules.tileops.migrations.removals import remove_items
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.signature import STATIC_DIM, parsed, static_dims


class ParamTexts:
    """One parameter of one entry and its value; ``edits`` and ``notes`` are the results of folding it."""

    def __init__(self, entry: OpEntry, name: str, value: Data) -> None:
        self.entry = entry
        self.name = name
        self.literal = _literal(value)
        self.is_index = isinstance(value, int) and not isinstance(value, bool)
        self.edits: list[Edit] = []
        self.notes: list[Note] = []

    def fold(self) -> None:
        """Collect the edits; rules that always hold then go.

        Raises:
            LeftAlone: an expression cannot be folded.
            YamlEditError, ValueError: the editor refuses an edit.
        """
        for _, node, text in static_dims(self.entry):
            self._fold_static_dim(node, text)
        removed = [rule.index for rule in self.entry.shape_rules if self._fold_rule(rule.node, rule.text)]
        self.edits += rules_removed(self.entry, removed)
        others = [(node, text) for _, node, text in constraints(self.entry)]
        others += [(formula.node, formula.text) for formula in formulas(self.entry)]
        for node, text in others:
            folded = self._folded(node, text)
            if folded is not None:
                self._set(node, folded)

    def _fold_static_dim(self, node: Node, text: str) -> None:
        expression = parsed(text)
        used = (use.name for use in expression.names()) if expression is not None else re.findall(r"\w+", text)
        if self.name not in used:
            return
        folded = self._replaced(text)
        if folded is None or not self.is_index or not STATIC_DIM.fullmatch(folded):
            raise LeftAlone(
                self.entry.at(node), f"this static dimension uses `{self.name}`, which cannot be folded here"
            )
        self._set(node, folded)

    def _fold_rule(self, node: Node, text: str) -> bool:
        """Whether the rule goes."""
        folded = self._folded(node, text)
        expression = parsed(folded) if folded is not None else None
        if folded is None:
            return False
        if expression is not None and not expression.names():
            try:
                holds = evaluate(expression, {})
            except EvaluateError:
                holds = None
            if holds is True:
                return True
            if holds is False:
                raise LeftAlone(self.entry.at(node), f"the rule `{text}` does not allow {self.literal}")
            self.notes.append(Note(self.entry.at(node), f"this rule is `{folded}` now, which is not known to hold"))
        self._set(node, folded)
        return False

    def _folded(self, node: Node, text: str) -> str | None:
        """Return the text with the value in it; None if it does not use the parameter."""
        expression = parsed(text)
        if expression is None or all(use.name != self.name for use in expression.names()):
            return None
        folded = self._replaced(text)
        if folded is None:
            raise LeftAlone(
                self.entry.at(node), f"this uses `{self.name}`, whose value cannot be written in an expression"
            )
        return folded

    def _replaced(self, text: str) -> str | None:
        expression = parsed(text)
        if expression is None or self.literal is None:
            return None
        uses = [use.span for use in expression.names() if use.name == self.name]
        subscript = STATIC_DIM.fullmatch(text) is not None
        literal = self.literal.strip("()") if subscript or text.strip() == self.name else self.literal
        return apply_edits(text, [Edit(span, literal) for span in uses])

    def _set(self, node: Node, text: str) -> None:
        self.edits += set_value(self.entry.file, node, text)


def _literal(value: Data) -> str | None:
    """Return the value as an operand of an expression; None if it has no such form."""
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    negative = isinstance(value, int | float) and not isinstance(value, bool) and repr(value).startswith("-")
    return f"({value!r})" if negative else repr(value)


def rules_removed(entry: OpEntry, indexes: Sequence[int]) -> Iterator[Edit]:
    """The edits that take out shape rules, with their key where none is left.

    Raises:
        YamlEditError: the editor refuses.
    """
    owner, above = entry.get("signature", "shape_rules"), entry.get("signature")
    if owner is None or above is None or not indexes:
        return
    if len(indexes) == len(owner.items) and above.style != "flow":
        yield from remove_key(entry.file, above, "shape_rules")
    else:
        yield from remove_items(entry.file, owner, indexes)

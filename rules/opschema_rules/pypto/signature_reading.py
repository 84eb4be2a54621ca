"""Reads the signatures of descriptions: lists of the runtime's directions, written or computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from opschema_cli.evaluation.containers import constant
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, EnumMember, ExternalName, Value
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_rules.pypto.description_changes import may_change
from opschema_rules.pypto.model import Declared, Direction, Signature
from opschema_rules.pypto.records import Record, bound

_ENUM = "ArgDirection"
_SET = re.compile(
    r"""\[\s*["'](?:signature|arg_index)["']\s*\]\s*(?:\+=|=(?!=)|\.\s*(?:append|extend|insert|pop)\b)|\bsetdefault\(\s*["'](?:signature|arg_index)["']"""
)
_MARKS = [re.compile(mark) for mark in (r"signature[\"']\s*\]", r"arg_index[\"']\s*\]", r"setdefault\(")]
"""Substrings one of which every such text contains, and which are quick to find."""

_DIRECTIONS = {item.value: item for item in Direction}


class Signatures(msgspec.Struct, frozen=True):
    """Reads the signatures of one tree."""

    bodies: Bodies
    evaluator: Evaluator

    def of_record(self, body: Body, record: Record) -> Signature | None:
        """Return the signature of a dict; None if it has none."""
        fields = record.fields
        if _sets_signatures(body.file.source.text):
            return Signature(next(iter(fields.values()))[1], None, "statements of the file set it")
        if record.computed is not None:
            return self._of_computed(record, record.computed)
        if "signature" not in fields:
            return None
        expr = fields["signature"][1]
        slots = [self._declared(body, item) for item in expr.items] if expr.kind in ("list", "tuple") else [None]
        known = tuple(slot for slot in slots if slot is not None)
        refused = tuple(item for item in expr.items if self._is_refused(body, item)) if expr.kind == "list" else ()
        if refused:
            return Signature(expr, None, "one of its entries is not a direction", refused=refused)
        if len(known) != len(slots):
            return self.computed(expr, bound(self.evaluator, body, expr))
        enum = known[0].expr.text.rpartition(".")[0] if known else ""
        return Signature(expr, known, "", enum)

    def _of_computed(self, record: Record, computed: Mapping[str, BoundArgument]) -> Signature:
        """Return the signature of a computed dict; unknown if it has no signature."""
        if "signature" not in computed:
            return Signature(record.expr, None, "its dict is computed")
        return self.computed(record.fields["signature"][1], computed["signature"])

    def computed(self, expr: Expr, argument: BoundArgument) -> Signature:
        """Return a signature that is not a list of directions: a sum, a comprehension, a call that makes one."""
        if argument.expr is not None and may_change(argument.frame.body.file, argument.expr):
            return Signature(expr, None, "it may be changed")
        values = self.evaluator.values(argument)
        items = self.evaluator.elements(argument.frame, values[0]) if len(values) == 1 else None
        if items is None:
            return Signature(expr, None, "it is computed")
        directions = [self._direction(item) for item in items]
        known = tuple(Declared(item, expr, False) for item in directions if item is not None)
        return (
            Signature(expr, known)
            if len(known) == len(items)
            else Signature(expr, None, "one of its entries is not known")
        )

    def indexes(self, body: Body, record: Record) -> tuple[int, ...] | None:
        """Return the numbers in a kernel's ``arg_index``, however they are computed; None if there are none or they are not
        known.
        """
        if "arg_index" not in record.fields:
            return None
        expr = record.fields["arg_index"][1]
        argument = record.computed["arg_index"] if record.computed is not None else bound(self.evaluator, body, expr)
        values = self.evaluator.values(argument)
        items = self.evaluator.elements(argument.frame, values[0]) if len(values) == 1 else None
        found = [self._number(item) for item in items or ()]
        known = tuple(item for item in found if item is not None)
        return known if items is not None and len(known) == len(found) else None

    def _number(self, item: BoundArgument) -> int | None:
        values = self.evaluator.values(item)
        word = constant(values[0]) if len(values) == 1 else None
        return word[0] if word and isinstance(word[0], int) and not isinstance(word[0], bool) else None

    def _direction(self, item: BoundArgument) -> Direction | None:
        """Return the direction of an element of a computed list."""
        declared = self._declared(item.frame.body, item.expr) if item.expr is not None else None
        if declared is not None:
            return declared.direction
        found = {_named(value) for value in self.evaluator.values(item)}
        return found.pop() if len(found) == 1 else None

    def _declared(self, body: Body, expr: Expr) -> Declared | None:
        """Return one direction: ``D.IN``, where ``D`` is the runtime's enum under any name."""
        owner, _, name = expr.text.rpartition(".")
        if expr.kind != "name" or not owner or name not in _DIRECTIONS:
            return None
        return Declared(_DIRECTIONS[name], expr) if self._is_enum(body, owner) else None

    def _is_refused(self, body: Body, expr: Expr) -> bool:
        """Whether an entry is not a direction: a constant, or a name that the runtime's enum does not have."""
        owner, _, name = expr.text.rpartition(".")
        unknown = expr.kind == "name" and owner and name not in _DIRECTIONS and self._is_enum(body, owner)
        return bool(unknown) or (expr.kind == "const" and isinstance(expr.value, str))

    def _is_enum(self, body: Body, owner: str) -> bool:
        """Whether a name is the enum: by its own name, or imported from the runtime, from the tree, or under a condition."""
        full = self.bodies.external(body, owner)
        if full.rpartition(".")[2] == _ENUM or owner.rpartition(".")[2] == _ENUM:
            return True
        first = owner.partition(".")[0]
        module = self.bodies.module(body.file)
        imported = [item for item in (*body.scope.imports, *module.scope.imports) if item.name == first]
        return bool(imported) and all(item.attr == _ENUM for item in imported)


def _named(value: Value) -> Direction | None:
    """Return the direction of a member of the runtime's enum."""
    full = f"{value.ref.name}.{value.name}" if isinstance(value, EnumMember) else ""
    owner, _, name = (value.name if isinstance(value, ExternalName) else full).rpartition(".")
    return _DIRECTIONS.get(name) if owner.rpartition(".")[2] == _ENUM else None


@lru_cache(maxsize=16)
def _sets_signatures(text: str) -> bool:
    return any(mark.search(text) for mark in _MARKS) and _SET.search(text) is not None

"""Outcomes of the rules of an entry over one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from opschema_cli.phrases import quoted
from opschema_cli.schema.describe import describe
from opschema_cli.schema.evaluate import EvaluateError, Value
from opschema_cli.schema.expression import Expression


class Holds(msgspec.Struct, frozen=True):
    """The rule is true. A ``value`` that is not a bool suggests that the rule does not check what its author intended."""

    value: Value = True


class Violated(msgspec.Struct, frozen=True):
    """The rule is false for all values of the open names.

    ``part`` is the narrowest part of the rule that is to blame, ``values`` the known names it reads (``weight.shape``,
    ``C``), and ``conflict`` says why no value of the open names helps.
    """

    part: Expression
    values: Mapping[str, Value]
    conflict: str = ""

    @property
    def detail(self) -> str:
        """The values as text: "`weight.shape` is (64,), `C` is 128"."""
        readings = [f"`{name}` is {describe(value)}" for name, value in self.values.items()]
        return ", ".join([*readings, self.conflict] if self.conflict else readings)


class Unresolved(msgspec.Struct, frozen=True):
    """The rule depends on ``names`` (``N``, ``y.shape``), which have no value."""

    names: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The missing names as text."""
        return f"{quoted(self.names)} cannot be found"


class Failed(msgspec.Struct, frozen=True):
    """The rule cannot be evaluated."""

    error: EvaluateError


Outcome: TypeAlias = Holds | Violated | Unresolved | Failed


class Solution(msgspec.Struct, frozen=True):
    """The result of solving: an outcome for each rule and each declared shape, in the order given.

    ``values`` are all that is known in the end; ``found_by`` says which rule gave a value that was not known
    before. A declared shape that no rule can express (``[..., N]``) has no outcome.
    """

    values: Mapping[str, Value]
    rules: tuple[Outcome, ...]
    shapes: Mapping[str, Outcome]
    found_by: Mapping[str, Expression]

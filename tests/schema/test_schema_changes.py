"""Changes from one schema to another, in words."""

from __future__ import annotations

import pytest

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_changes import described, schema_changes
from opschema_cli.schema.schema_string import parse_schema

OLD = "f(Tensor(a) self, int n, *, float eps=1e-5, str mode='none') -> Tensor(a)"


def schema(text: str) -> OperatorSchema:
    found = parse_schema(text).schema
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("old", "new", "kinds", "words"),
    [
        ("int n,", "SymInt n,", ["symint"], "`n` is now of type `SymInt`; it was `int`"),
        ("int n,", "int[] n,", ["type"], "`n` is now of type `int[]`; it was `int`"),
        ("int n,", "int m,", ["argument-renamed"], "the argument `n` is now called `m`"),
        ("int n, ", "", ["argument-removed"], "the argument `int n` was removed"),
        ("int n,", "int n, bool up,", ["argument-added"], "the argument `bool up` was added"),
        ("int n, *", "*, int n", ["keyword-only"], "`n` is now keyword-only"),
        ("1e-5", "1", ["default"], "`eps` now has the default `1`; it had the default `1e-5`"),
        ("=1e-5", "", ["default"], "`eps` now has no default; it had the default `1e-5`"),
        ("1e-5", "0.00001", [], ""),
        ("Tensor(a) self", "Tensor(a!) self", ["alias"], "`self` is now `Tensor(a!)`; it was `Tensor(a)`"),
        ("-> Tensor(a)", "-> (Tensor, Tensor)", ["returns"], "it now returns `Tensor, Tensor`; it returned `Tensor`"),
        ("-> Tensor(a)", "-> Tensor", ["return-alias"], "the return is now `Tensor`; it was `Tensor(a)`"),
    ],
)
def test_a_change_is_named_with_both_sides(old: str, new: str, kinds: list[str], words: str) -> None:
    before, now = schema(OLD), schema(OLD.replace(old, new))
    found = list(schema_changes(before, now))
    assert [item.kind for item in found] == kinds
    assert "; ".join(described(item, before, now) for item in found) == words


def test_arguments_that_change_places() -> None:
    before, now = schema("f(Tensor a, Tensor b) -> ()"), schema("f(Tensor b, Tensor a) -> ()")
    assert [described(item, before, now) for item in schema_changes(before, now)] == ["`b` is now in the place of `a`"]

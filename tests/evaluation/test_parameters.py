"""Parameters that a function changes in place."""

from __future__ import annotations

import pytest

from opschema_cli.evaluation.values import Items, Plain, Table
from tests.evaluation.evaluating import values_of


@pytest.mark.parametrize(
    ("body", "is_open"),
    [
        ("slots.append(1)", True),
        ("slots[0] = 1", True),
        ("slots.sort()", True),
        ("slots[0] == 1", False),
        ("other.append(1)", False),
    ],
)
def test_a_list_that_a_function_changes_is_open(body: str, is_open: bool) -> None:
    (value,) = values_of(f"def made(slots):\n    {body}\n    return slots\n\n\nfound = made([0, 1])\n")
    assert isinstance(value, Items)
    assert value.open is is_open


def test_an_item_that_a_function_writes_is_known() -> None:
    (value,) = values_of("def made(row):\n    row['a'] = 1\n    return row\n\n\nfound = made({'b': 2})\n")
    assert isinstance(value, Table)
    assert [key for key, _ in value.entries] == ["b", "a"]
    assert not value.open


@pytest.mark.parametrize(
    ("body", "known"),
    [
        ("row['a'] = 1; found = row['a']", {1}),
        ("for i in turns():\n        row['a'] = 1; found = row['a']", {1}),
        ("for i in turns():\n        row['a'] = 1\n    found = row['a']", {0, 1}),
        ("for i in turns():\n        for j in i:\n            row['a'] = 1\n        found = row['a']", {0, 1}),
        ("while more():\n        row['a'] = 1\n    found = row['a']", {0, 1}),
    ],
)
def test_a_write_in_a_loop_may_not_run(body: str, known: set[int]) -> None:
    values = values_of(f"def made(row):\n    {body}\n    return found\n\n\nfound = made({{'a': 0}})\n")
    assert {item.value for item in values if isinstance(item, Plain)} == known


@pytest.mark.parametrize(
    ("body", "keys", "is_open"),
    [
        ("kw.pop('a', 0)", ["b"], True),
        ("del kw['a']", ["b"], True),
        ("kw.pop(other)", [], True),
        ("kw.clear()", [], True),
        ("kw['c'].pop('a')", ["a", "b"], False),
        ("kw.get('a')", ["a", "b"], False),
    ],
)
def test_keywords_that_a_function_takes_out_are_not_passed_on(body: str, keys: list[str], is_open: bool) -> None:
    text = f"def made(**kw):\n    {body}\n    return passed(**kw)\n\n\ndef passed(**given):\n    return given\n\n\n"
    (value,) = values_of(f"{text}found = made(a=1, b=2)\n")
    assert isinstance(value, Table)
    assert [key for key, _ in value.entries] == keys
    assert value.open is is_open

"""Conditions on texts, whose values are those that Python gives."""

from __future__ import annotations

import pytest

from opschema_cli.evaluation.values import Plain
from tests.evaluation.evaluating import values_of


@pytest.mark.parametrize(
    "test",
    [
        "'::' in 'kit::f'",
        "'::' in 'f'",
        "'::' not in 'f'",
        "'::' not in 'kit::f'",
        "'' in 'f'",
        "'f' in ''",
        "name in name",
    ],
)
def test_whether_a_text_is_in_another(test: str) -> None:
    held = eval(test, {"name": "f"})
    assert values_of(f"name = 'f'\nfound = 1 if {test} else 2\n") == (Plain(1 if held else 2),)


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("name = 'f'\nif more:\n    name = 'kit::f'", "'::' in name"),
        ("import os\nname = os.environ['NAME']", "'::' in name"),
        ("import os\nname = os.environ['NAME']", "name in 'kit::f'"),
    ],
)
def test_whether_a_text_that_is_not_known_is_in_another(before: str, test: str) -> None:
    assert set(values_of(f"{before}\nfound = 1 if {test} else 2\n")) == {Plain(1), Plain(2)}


def test_all_texts_that_it_may_be_agree() -> None:
    text = "name = 'kit::f'\nif more:\n    name = 'kit::g'\nfound = 1 if '::' in name else 2\n"
    assert values_of(text) == (Plain(1),)

"""Values in messages: bounded in length and time, whatever they are."""

from __future__ import annotations

import time
from typing import Any

import pytest

from opschema_cli.schema.describe import MAX_SHOWN, describe
from opschema_cli.schema.evaluate import BudgetExceeded, Tensor, evaluate
from opschema_cli.schema.expression import parse_expression


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((64, 2048), "(64, 2048)"),
        (2**2000, "an integer of 2001 bits"),
        ([-(2**2000), 1], "[an integer of 2001 bits, 1]"),
        ("x" * 500, "'" + "x" * 37 + "..." + "x" * 38 + "'"),
        (int, "int"),
        (Tensor((1, 2)), "a tensor of shape (1, 2)"),
        (1e400, "inf"),
    ],
)
def test_a_value_in_words(value: Any, words: str) -> None:
    assert describe(value) == words


def nested(width: int, levels: int) -> Any:
    value: Any = [0]
    for _ in range(levels):
        value = [value] * width
    return value


@pytest.mark.parametrize(
    "value", [nested(64, 7), nested(1, 5000), {"a" * 10**6: "b" * 10**6}, "x" * 10**7, {(1,) * 10**6}]
)
def test_no_value_is_long_or_takes_long(value: Any) -> None:
    started = time.process_time()
    assert len(describe(value)) <= MAX_SHOWN
    assert time.process_time() - started < 0.5


def test_an_expression_gives_no_value_that_is_dear_to_read() -> None:
    with pytest.raises(BudgetExceeded):
        evaluate(parse_expression("[[[[[[0]*64]*64]*64]*64]*64]*64"), {})

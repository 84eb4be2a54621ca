"""Sums of products of extents: told equal only if they are for all extents."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_rules.flydsl.migrations.counts import MAX_TERMS, Count, TooLargeError

NAMES = ("M", "N", "K")
LEAVES = st.sampled_from([*NAMES, "0", "1", "2", "16"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda item: f"({''.join(item)})"),
    max_leaves=8,
)
VALUES = [{"M": 3, "N": 5, "K": 7}, {"M": 64, "N": 1, "K": 129}, {"M": 11, "N": 4096, "K": 2}]


def count(text: str) -> Count:
    def of(node: ast.expr) -> Count:
        match node:
            case ast.BinOp(left, ast.Add(), right):
                return of(left) + of(right)
            case ast.BinOp(left, ast.Sub(), right):
                return of(left) - of(right)
            case ast.BinOp(left, ast.Mult(), right):
                return of(left) * of(right)
            case ast.Constant(int(value)):
                return Count.of(value)
            case ast.Name(name):
                return Count.named(name)
        raise AssertionError(ast.dump(node))

    return of(ast.parse(text, mode="eval").body)


def value(found: Count, names: dict[str, int]) -> int:
    total = 0
    for product, factor in found.terms.items():
        for name in product:
            factor *= names[name]
        total += factor
    return total


@given(EXPRESSIONS)
def test_a_count_is_what_its_expression_computes(text: str) -> None:
    assert [value(count(text), names) for names in VALUES] == [eval(text, {}, names) for names in VALUES]


@given(EXPRESSIONS, EXPRESSIONS)
def test_a_ratio_holds_for_all_extents(text: str, other: str) -> None:
    ratio = count(text).ratio(count(other))
    if ratio is not None:
        assert [value(count(text), names) for names in VALUES] == [
            ratio * value(count(other), names) for names in VALUES
        ]


@given(EXPRESSIONS, st.sampled_from([1, 2, 4, 8]))
def test_what_is_multiplied_is_found_again(text: str, factor: int) -> None:
    found = count(text)
    assert (found * Count.of(factor)).ratio(found) == (factor if found.terms else None)


@pytest.mark.parametrize(
    ("text", "other", "ratio"),
    [
        ("M*K*2", "K*M", 2),
        ("M*K*2", "M*N", None),
        ("M*K*2-2", "M*K-1", 2),
        ("M*K*2+1", "M*K", None),
        ("(M+1)*K*4", "K+M*K", 4),
        ("M*K", "2*M*K", None),
        ("32", "8", 4),
        ("M", "0", None),
    ],
)
def test_ratios(text: str, other: str, ratio: int | None) -> None:
    assert count(text).ratio(count(other)) == ratio


def test_a_long_sum_is_refused() -> None:
    long = Count({(f"n{number}",): 1 for number in range(MAX_TERMS)})
    with pytest.raises(TooLargeError):
        long * (Count.named("a") + Count.of(1))
    with pytest.raises(TooLargeError):
        long + Count.named("a")

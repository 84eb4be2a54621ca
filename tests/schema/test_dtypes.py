"""Dtype expressions: tokens, chains of references, sizes and suggestions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.schema.dtypes import (
    DtypeResolution,
    canonical,
    is_dtype,
    itemsize,
    parse_dtypes,
    resolve_dtypes,
    suggest_dtype,
)


def resolve(**dtypes: str) -> DtypeResolution:
    return resolve_dtypes({tensor: parse_dtypes(text) for tensor, text in dtypes.items()})


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("float16", [("dtype", "float16", "float16")]),
        ("float16 | same_as( x )", [("dtype", "float16", "float16"), ("same_as", "same_as( x )", "x")]),
        (" promote_int_to_float(é)", [("promote_int_to_float", "promote_int_to_float(é)", "é")]),
        ("a || b", [("dtype", "a", "a"), ("empty", "", ""), ("dtype", "b", "b")]),
        ("a|", [("dtype", "a", "a"), ("empty", "", "")]),
        ("", [("empty", "", "")]),
        ("same_as(x, y)", [("malformed", "same_as(x, y)", "same_as(x, y)")]),
        ("same_as()", [("malformed", "same_as()", "same_as()")]),
        ("same_as (x)", [("malformed", "same_as (x)", "same_as (x)")]),
        ("int8)", [("malformed", "int8)", "int8)")]),
    ],
)
def test_tokens_have_places(text: str, tokens: list[tuple[str, str, str]]) -> None:
    found = parse_dtypes(text).tokens
    assert [(item.kind, text[slice(*item.span)], text[slice(*item.name_span)]) for item in found] == tokens


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *[("bool", 1), ("int8", 1), ("float8_e4m3fn", 1), ("float8_e8m0fnu", 1), ("float4_e2m1fn_x2", 1)],
        *[("float8_e4m3", 1), ("uint16", 2), ("bfloat16", 2), ("half", 2), ("uint32", 4), ("complex32", 4)],
        *[("uint64", 8), ("complex64", 8), ("double", 8), ("complex128", 16), ("fp16", None), ("", None)],
    ],
)
def test_item_sizes_are_torchs(name: str, size: int | None) -> None:
    assert itemsize(name) == size
    assert is_dtype(name) is (size is not None)


def test_aliases_have_one_name() -> None:
    assert [canonical(name) for name in ("half", "long", "float8_e4m3", "float16", "nope")] == [
        *("float16", "int64", "float8_e4m3fn", "float16", "nope")
    ]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("flaot16", "float16"),
        ("torch.float16", "float16"),
        ("Float32", "float32"),
        ("fp16", "float16"),
        ("bf16", "bfloat16"),
        ("float8_e4m3fnz", "float8_e4m3fnuz"),
        ("tensor", None),
    ],
)
def test_suggestions(name: str, suggestion: str | None) -> None:
    assert suggest_dtype(name) == suggestion


def test_references_resolve_through_chains_in_any_order() -> None:
    resolution = resolve(z="same_as(y)", y="same_as(x) | bool", x="half | int32 | float16", w="promote_int_to_float(z)")
    assert resolution.problems == ()
    assert resolution.dtypes == {
        "z": ("float16", "int32", "bool"),
        "y": ("float16", "int32", "bool"),
        "x": ("float16", "int32"),
        "w": ("float16", "float32", "bool"),
    }


@pytest.mark.parametrize(
    ("dtypes", "problem", "resolved"),
    [
        ({"x": "float16 | flot16"}, ("unknown-dtype", "x", "flot16", "float16"), []),
        ({"x": "int8", "y": "same_as(xx)"}, ("unknown-tensor", "y", "xx", "x"), ["x"]),
        ({"x": "int8", "y": "same_az(x)"}, ("malformed", "y", "same_az(x)", "same_as"), ["x"]),
        ({"x": "int8 |"}, ("empty", "x", "", None), []),
        ({"x": "flot16", "y": "same_as(x)", "z": "bool"}, ("unknown-dtype", "x", "flot16", "float16"), ["z"]),
    ],
)
def test_problems_name_the_tensor_and_the_token(
    dtypes: dict[str, str], problem: tuple[str, str, str, str | None], resolved: list[str]
) -> None:
    resolution = resolve(**dtypes)
    [found] = resolution.problems
    written = dtypes[found.tensor][slice(*found.token.name_span)]
    assert (found.kind, found.tensor, written, found.suggestion) == problem
    assert list(resolution.dtypes) == resolved


@pytest.mark.parametrize(
    ("dtypes", "cycles"),
    [
        ({"x": "float16 | same_as(x)"}, [("x", "x")]),
        ({"x": "same_as(y)", "y": "same_as(z)", "z": "same_as(x)"}, [("x", "y", "z", "x")]),
        ({"user": "same_as(x)", "x": "same_as(y)", "y": "same_as(x)", "ok": "bool"}, [("x", "y", "x")]),
        (
            {"a": "same_as(c) | same_as(d)", "c": "same_as(c)", "d": "same_as(a)"},
            [("a", "d", "a"), ("c", "c")],
        ),
    ],
)
def test_each_circle_is_one_problem(dtypes: dict[str, str], cycles: list[tuple[str, ...]]) -> None:
    resolution = resolve(**dtypes)
    assert [problem.cycle for problem in resolution.problems] == cycles
    assert all(problem.token.name == problem.cycle[1] for problem in resolution.problems)
    assert list(resolution.dtypes) == [name for name in dtypes if name == "ok"]


def test_long_chains_are_no_problem() -> None:
    chain = {f"t{index}": f"same_as(t{index + 1})" for index in range(3000)}
    assert resolve(**chain, t3000="bool").dtypes["t0"] == ("bool",)
    assert len(resolve(**chain, t3000="same_as(t0)").problems) == 1


@given(st.dictionaries(st.sampled_from("abcd"), st.text("abcd|() same_as(bool", max_size=30)))
def test_any_text_resolves_or_has_a_problem(dtypes: dict[str, str]) -> None:
    resolution = resolve(**dtypes)
    assert resolution.problems or set(resolution.dtypes) == set(dtypes)

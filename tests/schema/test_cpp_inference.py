"""Schema types of C++ types, compared with those that torch accepts for kernels (``cpp_types.json``, recorded with torch 2.13).

The table has for each C++ type the schema types with which torch 2.13 registers a function of one parameter, or one returned
value, of that type.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from opschema_cli.schema.cpp_inference import mismatches, parameter_type, refused_type, return_type
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema


class Table(msgspec.Struct):
    torch: str
    schema_parameters: list[str]
    schema_returns: list[str]
    parameters: dict[str, list[str]]
    returns: dict[str, list[str]]


TABLE = msgspec.json.decode(Path(__file__).with_name("cpp_types.json").read_bytes(), type=Table)

UNKNOWN = ("std::vector<c10::SymInt>",)
"""Torch infers something that no schema can have; opschema does not judge it."""


def schema(text: str) -> OperatorSchema | None:
    found = parse_schema(text)
    return None if found.errors else found.schema


def test_parameters_are_those_that_torch_accepts() -> None:
    for written, accepted in TABLE.parameters.items():
        for of in TABLE.schema_parameters:
            parsed = schema(f"f({of} x) -> ()")
            if parsed is not None and written not in UNKNOWN:
                assert (not mismatches(parsed, [written], "void")) == (of in accepted), (written, of)


def test_returned_types_are_those_that_torch_accepts() -> None:
    for written, accepted in TABLE.returns.items():
        for of in TABLE.schema_returns:
            parsed = schema(f"f() -> {of}")
            if parsed is not None:
                assert (not mismatches(parsed, [], written)) == (of in accepted), (written, of)


def test_recommended_types_are_accepted() -> None:
    for of in TABLE.schema_parameters:
        parsed = schema(f"f({of} x) -> ()")
        if parsed is not None and (recommended := parameter_type(parsed.arguments[0].type)):
            assert not mismatches(parsed, [recommended], "void"), of
    for of in TABLE.schema_returns:
        parsed = schema(f"f() -> {of}")
        if parsed is not None and len(parsed.returns) == 1 and (recommended := return_type(parsed.returns[0].type)):
            assert not mismatches(parsed, [], recommended), of


@pytest.mark.parametrize(
    ("parameters", "accepted"),
    [
        (["int64_t", "at::IntArrayRef"], True),
        (["c10::SymInt", "c10::SymIntArrayRef"], True),
        (["c10::SymInt", "at::IntArrayRef"], False),
        (["int64_t", "Unknown<int>"], True),
    ],
)
def test_a_kernel_takes_all_symbolic_integers_or_none(parameters: list[str], accepted: bool) -> None:
    parsed = schema("f(SymInt n, SymInt[] sizes) -> ()")
    assert parsed is not None
    assert (not mismatches(parsed, parameters, "void")) == accepted


def test_numbers_that_do_not_compile() -> None:
    assert refused_type("const float") == "double"
    assert refused_type("std::optional<int32_t>") == "std::optional<int64_t>"
    assert refused_type("size_t") == "int64_t"
    assert refused_type("long long") == "int64_t"
    assert refused_type("const std::vector<float>&") == "std::vector<double>"
    assert not refused_type("const std::vector<int64_t>&")
    assert not refused_type("int64_t")
    assert not refused_type("uint")

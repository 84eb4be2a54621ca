"""The violations that the package jsonschema finds in entries are those that jsonschema-rs finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from opschema_rules.tileops import schema_validator
from opschema_rules.tileops.examples import MANIFEST_PATH, example_files
from opschema_rules.tileops.features import FEATURES
from opschema_rules.tileops.manifest_schema import as_json, entry_schema
from opschema_rules.tileops.schema_validator import PythonValidator, RustValidator

WRONG: tuple[Any, ...] = (None, 3, "", "x", [], [1], {}, {"a": 1}, True)


@pytest.fixture(scope="module")
def entry() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(example_files([])[MANIFEST_PATH])["ExampleFwdOp"]
    return found


def variants(data: Any) -> Iterator[Any]:
    """The data with each value in it replaced by wrong ones, left out, or beside an unknown one."""
    yield from WRONG
    if isinstance(data, dict):
        yield {**data, "unknown_key": 1}
        yield {**data, "not a name": data.get("q", {})}
        for key, value in data.items():
            yield {name: item for name, item in data.items() if name != key}
            yield from ({**data, key: other} for other in variants(value))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from ([*data[:index], other, *data[index + 1 :]] for other in variants(value))


@pytest.mark.parametrize("known", [frozenset[str](), frozenset(FEATURES)], ids=["oldest", "newest"])
def test_both_find_the_same(known: frozenset[str], entry: dict[str, Any]) -> None:
    rust = entry_schema(known)._validator
    assert isinstance(rust, RustValidator)
    python = PythonValidator(entry_schema(known)._schema)
    tried = [as_json(data) for data in variants(entry)]
    assert len(tried) > 300
    for data in tried:
        assert {*python.violations(data)} == {*rust.violations(data)}, data
        assert python.accepts(data) == rust.accepts(data)  # type: ignore[arg-type]


def test_without_jsonschema_rs_the_other_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert isinstance(schema_validator.compiled({"type": "object"}), PythonValidator)

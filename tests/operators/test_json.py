"""The JSON of `opschema list` is what its page describes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from opschema_cli.main import run
from opschema_cli.operators import model
from opschema_cli.reporters.operators.json import VERSION
from opschema_cli.reporters.places import Region
from opschema_cli.schema.align import Binding
from opschema_cli.source.python import ParamKind
from opschema_cli.source.text import Place

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## The operator list as JSON\n")[2].partition("\n## ")[0]
TABLES = dict(re.findall(r"^\*\*(\w+)\*\*.*\n\n\| field .*\n\|[-|]+\n((?:\|.*\n)+)", SECTION, re.MULTILINE))
STRUCTS = [item for item in vars(model).values() if isinstance(item, type) and item.__module__ == model.__name__]


def documented(name: str) -> dict[str, str]:
    """The fields of a table of the page, with their types."""
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", TABLES[name], re.MULTILINE))


def shown(kind: msgspec.inspect.Type) -> str:
    """A type of the model as the page names it."""
    match kind:
        case msgspec.inspect.UnionType(types=types):
            return " or ".join(shown(item) for item in types)
        case msgspec.inspect.VarTupleType(item_type=item):
            return f"list of {shown(item)}"
        case msgspec.inspect.DictType(value_type=value):
            return f"object of {shown(value)}"
        case msgspec.inspect.StructType(cls=cls):
            return cls.__name__
        case msgspec.inspect.TupleType() | msgspec.inspect.CustomType():
            return "Place"
    names = {
        "StrType": "string",
        "LiteralType": "string",
        "BoolType": "boolean",
        "IntType": "integer",
        "NoneType": "null",
    }
    return names[type(kind).__name__]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda item: item.__name__)
def test_the_page_has_every_field_with_its_type(struct: type) -> None:
    (info,) = msgspec.inspect.multi_type_info([struct])
    assert isinstance(info, msgspec.inspect.StructType)
    fields = {field.name: shown(field.type) for field in info.fields}
    if struct is model.Operator:
        fields["gaps"] = "list of Gap"
    assert documented(struct.__name__) == fields


def test_the_page_has_the_fields_of_a_place_and_no_other_table() -> None:
    assert list(documented("Place")) == ["path", *Region.__struct_fields__]
    assert set(TABLES) == {Place.__name__, *(item.__name__ for item in STRUCTS)}


def test_the_page_has_every_word_that_a_field_may_be() -> None:
    words = [*get_args(model.Role), *get_args(ParamKind), *get_args(Binding)]
    assert [word for word in words if f"`{word}`" not in SECTION] == []


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    (document,) = re.findall(r"```json\n(.*?)```", SECTION, re.DOTALL)
    (tmp_path / "opschema.toml").write_text("")
    (tmp_path / "ops.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    assert run(["list", "--output-format", "json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed == json.loads(document)
    assert list(flattened(printed)) == list(flattened(json.loads(document))), "the order of the fields"
    assert f"now {VERSION}" in SECTION


def flattened(data: Any) -> Any:
    """The keys of a document, in their order."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield key
        yield from flattened(value)

"""Operators that are listed as dataclasses, named tuples and nested tuples, and registered by lambdas."""

from __future__ import annotations

import pytest

from opschema_cli.source.resolution import Unresolved
from tests.rules.torchlib.operators_of import tree_of

SPEC = """
import torch
from dataclasses import dataclass, field
from typing import NamedTuple
def fake(x, y): return x
@dataclass(frozen=True)
class Spec:
    name: str
    schema: str = "(Tensor x) -> Tensor"
    fake: object = None
    tags: list = field(default_factory=list)
"""
REGISTER = """
for spec in SPECS:
    torch.library.define("kit::" + spec.name, spec.schema)
    torch.library.register_fake("kit::" + spec.name, spec.fake)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SPEC + 'SPECS = [Spec("one", fake=fake), Spec("two", "(Tensor y) -> ()", fake)]' + REGISTER,
         "one(Tensor x) two(Tensor y)"),
        (
            SPEC + "class Row(NamedTuple):\n    name: str\n    fake: object\n    schema: str = '(Tensor z) -> Tensor'\n"
            'SPECS = (Row("one", fake), Row(name="two", fake=fake, schema="(Tensor y) -> Tensor"))' + REGISTER,
            "one(Tensor z) two(Tensor y)",
        ),
        (
            SPEC + "@dataclass\nclass More(Spec):\n    suffix: str = ''\n"
            'SPECS = {"a": More("one", fake=fake), "b": More(name="two", suffix="x")}.values()' + REGISTER,
            "one(Tensor x) two(Tensor x)",
        ),
        (
            SPEC + 'SPECS = {"one": ("(Tensor x) -> Tensor", fake), "two": ("(Tensor y) -> Tensor", fake)}\n'
            'for name, (schema, function) in SPECS.items():\n'
            '    torch.library.define(f"kit::{name}", schema)\n    torch.library.register_fake(f"kit::{name}", function)\n',
            "one(Tensor x) two(Tensor y)",
        ),
        (
            SPEC + 'for at, (name, [schema, *rest]) in enumerate([("one", ["(Tensor x) -> Tensor"])]):\n'
            '    torch.library.define("kit::one", "(Tensor x) -> Tensor")\n',
            "one(Tensor x)",
        ),
    ],
    ids=["dataclass", "named-tuple", "inherited", "nested", "starred"],
)  # fmt: skip
def test_operators_of_a_list(text: str, expected: str) -> None:
    tree = tree_of({"ops.py": text})
    assert not tree.unresolved
    shown = [
        f"{name.removeprefix('kit::')}({item.definition.schema.arguments[0]})"
        for item in tree.operators
        for name in item.names or ()
        if not isinstance(item.definition.schema, Unresolved)
    ]
    assert " ".join(sorted(shown)) == expected


@pytest.mark.parametrize(
    "text",
    [
        SPEC + "SPECS = [Spec(*read())]" + REGISTER,
        SPEC + "@dataclass\nclass Own:\n    name: str\n    schema: str\n    fake: object\n"
        "    def __post_init__(self):\n        self.name = self.name.lower() + read()\n"
        'SPECS = [Own("One", "(Tensor x) -> Tensor", fake)]' + REGISTER,
        SPEC + "@read\nclass Other:\n    name: str\n    schema: str\n    fake: object\n"
        'SPECS = [Other("one", "(Tensor x) -> Tensor", fake)]' + REGISTER,
    ],
    ids=["unpacked", "written", "decorated"],
)
def test_what_is_not_known(text: str) -> None:
    tree = tree_of({"ops.py": text})
    assert not [name for item in tree.operators for name in item.names or ()]
    assert tree.unresolved


FACTORY = """
import torch
class Op:
    def __init__(self, function, schema, namespace="kit"):
        torch.library.define(f"{namespace}::{function.__name__}", schema)
def op(schema, **options):
    return lambda function: Op(function, schema, **options)
@op("(Tensor x) -> Tensor")
def one(x): ...
@op("(Tensor x) -> Tensor", namespace="other")
def two(x): ...
"""


def test_a_lambda_registers_where_it_is_called() -> None:
    tree = tree_of({"ops.py": FACTORY})
    assert not tree.unresolved
    assert {name for item in tree.operators for name in item.names or ()} == {"kit::one", "other::two"}


def test_a_lambda_that_is_not_seen_to_be_called() -> None:
    text = 'import torch, elsewhere\nelsewhere.run(lambda: torch.library.define("kit::one", "(Tensor x) -> Tensor"))\n'
    tree = tree_of({"ops.py": text})
    assert [name for item in tree.operators for name in item.names or ()] == ["kit::one"]
    assert tree_of({"ops.py": text.replace("lambda:", "lambda name:").replace('"kit::one"', "name")}).unresolved

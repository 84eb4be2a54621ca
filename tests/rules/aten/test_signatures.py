"""The conditions for two schemas to be variants of one operator, compared with torchgen's own signatures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

import pytest

from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_rules.aten.signatures import base_name, kind_of, signature_key, view_key


def schema(text: str) -> OperatorSchema:
    found = parse_schema(text, "torchgen").schema
    assert found is not None
    return found


def partition(names: Iterable[str], key: Callable[[str], Hashable]) -> set[frozenset[str]]:
    found: dict[Hashable, set[str]] = {}
    for name in names:
        found.setdefault(key(name), set()).add(name)
    return {frozenset(group) for group in found.values()}


def test_signatures_and_kinds_are_torchgens() -> None:
    folder = Path(pytest.importorskip("torchgen").__file__).parent / "packaged/ATen/native"
    parsed = pytest.importorskip("torchgen.gen").parse_native_yaml(
        str(folder / "native_functions.yaml"), str(folder / "tags.yaml")
    )
    theirs = {str(item.func.name): item.func for item in parsed.native_functions}
    ours = {name: schema(str(func)) for name, func in theirs.items()}
    assert len(ours) > 3000
    assert {name: kind_of(item) for name, item in ours.items()} == {
        name: func.kind().name for name, func in theirs.items()
    }
    assert partition(ours, lambda name: signature_key(ours[name])) == partition(
        theirs, lambda name: str(theirs[name].signature())
    )
    assert partition(ours, lambda name: view_key(signature_key(ours[name]))) == partition(
        theirs, lambda name: str(theirs[name].view_signature())
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(Tensor self) -> Tensor", "f.x(Tensor(a) self) -> Tensor(a) y"),
        ("f(Tensor self) -> Tensor", "f_(Tensor(a!) self) -> Tensor(a!)"),
        ("f(Tensor[] self) -> Tensor[]", "f_(Tensor(a!)[] self) -> ()"),
        ("f(int n) -> (Tensor, Tensor)", "f.o(int n, *, Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))"),
        ("f(Tensor x, Tensor(a!) y) -> Tensor", "f_functional(Tensor x, Tensor y) -> (Tensor, Tensor)"),
        ("__and__(Tensor self) -> Tensor", "__iand__(Tensor(a!) self) -> Tensor(a!)"),
        (
            "f(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            "f.o(int n, *, Tensor(a!) out) -> Tensor(a!)",
        ),
        ("bernoulli(Tensor self, float p=0.5) -> Tensor", "bernoulli.p(Tensor self, float p) -> Tensor"),
    ],
)
def test_one_signature(one: str, other: str) -> None:
    assert signature_key(schema(one)) == signature_key(schema(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f(Tensor self) -> Tensor", "g(Tensor self) -> Tensor"),
        ("f(Tensor self) -> Tensor", "__f__(Tensor self) -> Tensor"),
        ("f(Tensor self) -> Tensor", "f.x(Tensor? self) -> Tensor"),
        ("f(Tensor self) -> Tensor", "f.x(Tensor x) -> Tensor"),
        ("f(Tensor self, int n) -> Tensor", "f.x(Tensor self, *, int n) -> Tensor"),
        ("f(Tensor self, int n=1) -> Tensor", "f.x(Tensor self, int n) -> Tensor"),
        ("f(Tensor self, int[2] n) -> Tensor", "f.x(Tensor self, int[] n) -> Tensor"),
        ("f(Tensor self) -> Tensor", "f.x(Tensor self) -> Tensor[]"),
        ("f(int n, *, bool? pin_memory=None) -> Tensor", "f.x(int n) -> Tensor"),
    ],
)
def test_two_signatures(one: str, other: str) -> None:
    assert signature_key(schema(one)) != signature_key(schema(other))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("add", ("add", False, False, False)),
        ("add_", ("add", True, False, False)),
        ("__and__", ("and", False, True, False)),
        ("__iand__", ("and", True, True, False)),
        ("__index_x__", ("__index_x_", True, False, False)),
        ("norm_functional", ("norm", False, False, True)),
        ("_", ("_", False, False, False)),
    ],
)
def test_names(name: str, parts: tuple[str, bool, bool, bool]) -> None:
    assert base_name(name) == parts
    assert str(base_name(name)) == name

"""Dataclasses, read: fields in order, defaults, and what makes their instances."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opschema_cli.source.resolution import ClassRef, Unresolved
from opschema_rules.magi.dataclasses import Dataclass
from opschema_rules.magi.model import MagiTree

ReadTree = Callable[..., MagiTree]


def read(read_tree: ReadTree, text: str, name: str = "C") -> Dataclass | Unresolved | None:
    tree = read_tree(text)
    found = tree.bodies.program.module_member("kit/ops.py", name)
    assert isinstance(found, ClassRef)
    return tree.lowerer.dataclasses.of(found)


def fields(found: Dataclass | Unresolved | None, tree: MagiTree | None = None) -> list[str]:
    assert isinstance(found, Dataclass)
    return [f"{item.name}: {item.type}" for item in found.fields]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    a: int\n    b: 'float' = 1.0\n", ["a: int", "b: float"]),
        ("    a: int\n    b: str\n    a: float\n", ["a: float", "b: str"]),
        ("    a: ClassVar[int] = 1\n    b: ClassVar = 2\n    c: 'ClassVar[int]' = 3\n    d: int\n", ["d: int"]),
        ("    a: int\n    _: KW_ONLY\n    b: int\n", ["a: int", "b: int"]),
        ("    a: InitVar[int]\n    b: int\n", ["b: int"]),
        ("    a = 1\n    b: int\n", ["b: int"]),
        ("    a: 'Nowhere'\n    b: 'int'\n", ["a: 'Nowhere'", "b: int"]),
    ],
)
def test_fields(body: str, expected: list[str], read_tree: ReadTree) -> None:
    assert fields(read(read_tree, f"@dataclass(frozen=True)\nclass C:\n{body}")) == expected


@pytest.mark.parametrize(
    ("decorator", "frozen"),
    [
        ("@dataclass", False),
        ("@dataclass()", False),
        ("@dataclass(frozen=True, slots=True)", True),
        ("@dataclass(frozen=FROZEN)", True),
        ("@dataclass(frozen=elsewhere())", None),
        ("@dataclass(**options)", None),
        ("@config", True),
        ("@config(frozen=False)", False),
    ],
)
def test_frozen(decorator: str, frozen: bool | None, read_tree: ReadTree) -> None:
    head = "import functools\nFROZEN = True\nconfig = functools.partial(dataclass, frozen=True)\n"
    found = read(read_tree, f"{head}{decorator}\nclass C:\n    a: int\n")
    assert isinstance(found, Dataclass)
    assert found.frozen is frozen


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("class C:\n    a: int\n", type(None)),
        ("@enlarge\n@dataclass(frozen=True)\nclass C:\n    a: int\n", Unresolved),
        ("@dataclass(frozen=True)\nclass C(torch.nn.Module):\n    a: int\n", Unresolved),
        ("from elsewhere import Base\n@dataclass(frozen=True)\nclass C(Base):\n    a: int\n", Unresolved),
        ("@dataclass(frozen=True)\nclass C:\n    if torch.cuda.is_available():\n        a: int\n", Unresolved),
        ("@dataclass(frozen=True)\nclass C(C):\n    a: int\n", Unresolved),
    ],
)
def test_what_is_no_dataclass_or_not_known(text: str, kind: type, read_tree: ReadTree) -> None:
    assert isinstance(read(read_tree, text), kind)


def test_inherited_fields_come_first_and_keep_their_place(read_tree: ReadTree) -> None:
    text = """\
@dataclass(frozen=True)
class A:
    x: int
    y: int = 1
    def __post_init__(self): ...
@dataclass(frozen=True)
class B(A):
    z: int = 2
    x: float
class C(B):
    more: int = 3
"""
    found = read(read_tree, text)
    assert fields(found) == ["x: float", "y: int", "z: int"]
    assert isinstance(found, Dataclass)
    assert found.made.name == "B"
    assert found.post_init is not None
    assert found.own_init is None


def test_init_and_defaults(read_tree: ReadTree) -> None:
    text = """\
@dataclass(frozen=True)
class A:
    kept: int = 5
    made: int = field(default_factory=int)
@dataclass(frozen=True)
class C(A):
    kept: int
    made: int
    hidden: int = field(init=False, default=1)
    sized: list = field(default_factory=list, kw_only=True)
    late: int
    late = 4
    seed: InitVar[int] = 0
"""
    found = read(read_tree, text)
    assert isinstance(found, Dataclass)
    assert {item.name: (item.has_default, item.init, item.kw_only) for item in found.fields} == {
        "kept": (True, True, False),
        "made": (False, True, False),
        "hidden": (True, False, False),
        "sized": (True, True, True),
        "late": (True, True, False),
    }
    assert [item.name for item in found.init_vars] == ["seed"]

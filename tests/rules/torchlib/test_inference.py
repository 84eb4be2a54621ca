"""``infer_schema`` done statically, by version of torch, against what torch itself answers for the installed version."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.requirements import required_release
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.pack import PACK
from opschema_rules.torchlib.type_table import known_releases
from tests.rules.torchlib.operators_of import schema_of, tree_of

HEAD = """\
import collections.abc
import torch
import typing
from typing import *
from torch import Tensor, device, dtype
from torch.types import Number
MORE = List[Tensor]
"""

TYPES = [
    ("Tensor", "Tensor"), ("torch.Tensor", "Tensor"), ("int", "SymInt"), ("float", "float"), ("bool", "bool"), ("str", "str"),
    ("Number", "Scalar"), ("Union[float, int, bool]", "Scalar"), ("int | float | bool | None", "Scalar?"),
    ("dtype", "ScalarType"), ("torch.device", "Device"), ("Optional[Tensor]", "Tensor?"), ("None | int", "SymInt?"),
    ("List[int]", "SymInt[]"), ("Sequence[float]", "float[]"), ("list[bool]", "bool[]"),
    ("collections.abc.Sequence[Tensor]", "Tensor[]"),
    ("List[Optional[Tensor]]", "Tensor?[]"), ("Optional[List[int]]", "SymInt[]?"),
    ("List[Number]", "Scalar[]"), ("MORE", "Tensor[]"), ("'Tensor'", "Tensor"), ("list['Tensor']", "Tensor[]"),
    ("List['Tensor']", None), ("Optional['Tensor']", None),
    ("List[str]", None), ("int | float", None), ("Optional[List[Number]]", None), ("List[List[int]]", None),
    ("Tuple[int, int]", None),
    ("complex", None), ("Any", None), ("List[dtype]", None), ("list", None), ("torch.SymInt", None), ("dict[str, int]", None),
]  # fmt: skip


@pytest.mark.parametrize(("written", "schema"), TYPES)
def test_parameter_types_as_torch_takes_them(written: str, schema: str | None) -> None:
    tree = tree_of(
        {"ops.py": f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: {written}) -> None: ...\n"}
    )
    definition = tree.operators[0].definition
    assert [item.kind for item in definition.problems] == (
        [] if schema else ["tuple" if "Tuple" in written else "type"]
    )
    assert schema_of(tree.operators[0]) == (f"({schema} x) -> ()" if schema else "( x) -> ()")
    assert schema == _asked(written)


CLASSES = """\
import dataclasses, enum
class Plain: ...
class Mode(enum.Enum):
    A = 1
class Level(enum.IntEnum):
    LOW = 1
class Base: ...
class Below(Base): ...
@dataclasses.dataclass
class Data:
    x: int
"""


@pytest.mark.parametrize(
    ("written", "taken"),
    [
        ("torch.Generator", True), ("Mode", True), ("Level", True), ("enum.Enum", True),
        ("Optional[torch.Generator]", False), ("List[Mode]", False), ("Mode | None", False),
        ("Plain", False), ("Below", False), ("Data", False), ("Optional[Plain]", False),
    ],
)  # fmt: skip
def test_classes_that_torch_takes_are_not_followed(written: str, taken: bool) -> None:
    """Torch names such a type by the class; nothing is said of it, but that no list or optional of it is taken."""
    code = f"{HEAD}{CLASSES}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: {written}) -> None: ...\n"
    operator = tree_of({"ops.py": code}).operators[0]
    assert [item.kind for item in operator.definition.problems] == ([] if taken else ["type"])
    assert schema_of(operator) == "( x) -> ()"
    assert (_asked(written, CLASSES) is not None) == taken


@pytest.mark.parametrize(
    ("classes", "torch", "refused"),
    [
        ("class Own: ...", "", True),
        ("from torch._opaque_base import OpaqueBase\nclass Own(OpaqueBase): ...", "", False),
        ("from elsewhere import Base\nclass Own(Base): ...", "", False),
        ("from elsewhere import Base\nclass Own(Base): ...", "2.6", True),
        ("from elsewhere import opaque\n@opaque\nclass Own: ...", "", False),
        ("class Own: ...\ntorch._library.opaque_object.register_opaque_type(Own, typ='reference')", "", False),
        ("import enum\nclass Own(enum.Enum): ...", "2.8", True),
        ("Own = torch.distributed.ProcessGroup", "", False),
    ],
)
def test_classes_that_may_be_registered_with_torch(classes: str, torch: str, refused: bool) -> None:
    code = f"{HEAD}{classes}\n@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: Own) -> None: ...\n"
    problems = tree_of({"ops.py": code}, torch).operators[0].definition.problems
    assert [item.kind for item in problems] == (["type"] if refused else [])


OP = "@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: T) -> None: ...\n"
FUTURE = "from __future__ import annotations\n"
WITHIN = "    " + OP.replace("\n", "\n    ") + "\n"
GUARDED = "if typing.TYPE_CHECKING:\n    from torch import Tensor as T\n"


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (FUTURE + "import torch, typing\n" + GUARDED + OP, False),
        ("import torch, typing\n" + GUARDED + OP.replace("x: T", "x: 'T'"), False),
        (FUTURE + "import torch, typing\n" + GUARDED + "else:\n    T = torch.Tensor\n" + OP, True),
        (FUTURE + "import torch, typing\n" + GUARDED + "from torch import Tensor as T\n" + OP, True),
        (FUTURE + "import torch\n" + OP + "from torch import Tensor as T\n", False),
        (FUTURE + "import torch\ndef later():\n" + WITHIN + "T = torch.Tensor\nlater()\n", True),
        (FUTURE + "import torch\ndef later():\n" + WITHIN + "later()\nT = torch.Tensor\n", False),
        (FUTURE + "import torch\ndef f(x: T) -> None: ...\nT = torch.Tensor\n"
         "torch.library.custom_op('ns::f', f, mutates_args=())", True),
        (FUTURE + "import torch\ndef later():\n    from torch import Tensor as T\n" + WITHIN + "later()\n", False),
    ],
)  # fmt: skip
def test_names_that_annotations_in_strings_find_when_torch_evaluates_them(code: str, known: bool) -> None:
    problems = tree_of({"ops.py": code}).operators[0].definition.problems
    assert [(item.kind, item.name) for item in problems] == ([] if known else [("string-annotation", "x")])
    assert _imports(code) == known


def _imports(code: str) -> bool:
    """Whether the installed torch lets a module be imported."""
    pytest.importorskip("torch")
    try:
        exec(compile(code, "ops.py", "exec", dont_inherit=True), {"__name__": "ops"})
    except ValueError:
        return False
    return True


def _asked(written: str, more: str = "") -> str | None:
    """The schema that the installed torch infers."""
    torch = pytest.importorskip("torch")
    scope: dict[str, object] = {}
    exec(compile(f"{HEAD}{more}def f(x: {written}) -> None: ...\n", "ops.py", "exec", dont_inherit=True), scope)
    try:
        return str(torch.library.infer_schema(scope["f"], mutates_args=())).partition(" x")[0].lstrip("(")
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("None", "()"), ("Tensor", "Tensor"), ("int", "SymInt"), ("List[Tensor]", "Tensor[]"), ("Number", "Scalar"),
        ("Tuple[Tensor, int]", "(Tensor, SymInt)"), ("tuple[Tensor, List[Tensor]]", "(Tensor, Tensor[])"), ("'Tensor'", "Tensor"),
        ("Optional[Tensor]", None), ("List[int]", None), ("str", None), ("tuple", None), ("Tuple[Tensor, ...]", None),
    ],
)  # fmt: skip
def test_returned_types(written: str, schema: str | None) -> None:
    tree = tree_of(
        {"ops.py": f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: int) -> {written}: ...\n"}
    )
    problems = [item.kind for item in tree.operators[0].definition.problems]
    assert problems == ([] if schema else ["return-type"])
    if schema:
        assert schema_of(tree.operators[0]) == f"(SymInt x) -> {schema}"


@pytest.mark.parametrize(
    ("written", "torch", "problem"),
    [
        ("list[int]", "2.6", ("type", "List[int]")), ("list[int]", "2.7", None),
        ("collections.abc.Sequence[int] | None", "2.4", ("type", "Optional[Sequence[int]]")),
        ("Optional[List[Tensor]]", "2.14", ("type", "")), ("Optional[List[Tensor]]", "2.15", None),
        ("Optional[List[Optional[Tensor]]]", "2.15", None),
        ("Tuple[int, int]", "2.6", ("tuple", "List[int]")), ("List[int]", "2.4", None),
    ],
)  # fmt: skip
def test_what_older_versions_refuse(written: str, torch: str, problem: tuple[str, str] | None) -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: {written}) -> None: ...\n"
    problems = tree_of({"ops.py": code}, torch).operators[0].definition.problems
    assert [(item.kind, item.instead) for item in problems] == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("signature", "mutates", "problems"),
    [
        ("x", "()", [("annotation", "x", "")]),
        ("x: Tensor, /", "()", [("kind", "x", "posonly")]),
        ("*x: Tensor, **y: int", "()", [("kind", "x", "vararg"), ("kind", "y", "kwarg")]),
        ("x: Tensor, y: List[int] = [1]", "()", [("default", "y", "[1]")]),
        ("x: Tensor, y: int = None", "()", []),
        ("x: Tensor", "('x')", [("mutates-string", "", "x")]),
        ("x: Tensor", "'unknown'", []),
        ("x: Tensor", "['x', 'z']", [("mutates-name", "z", "z")]),
        ("x: Tensor, n: int", "{'n'}", [("mutates-type", "n", "SymInt")]),
        ("x: 'Tensr'", "()", [("string-annotation", "x", "'Tensr'")]),
        ("x: Unfollowed", "()", []),
    ],
)
def test_problems(signature: str, mutates: str, problems: list[tuple[str, str, str]]) -> None:
    head = "from elsewhere import Unfollowed\n" + HEAD
    code = f"{head}@torch.library.custom_op('ns::f', mutates_args={mutates})\ndef f({signature}) -> None: ...\n"
    code = code.replace("from typing import *", "from typing import List")  # a star could hide any name
    found = tree_of({"ops.py": code}).operators[0].definition.problems
    assert [(item.kind, item.name, item.written) for item in found] == problems


def test_a_missing_return_annotation_and_unknown_mutation() -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args='unknown')\ndef f(x: Tensor, y: Optional[Tensor], n: int): ...\n"
    operator = tree_of({"ops.py": code}).operators[0]
    assert schema_of(operator) == "(Tensor(a0!) x, Tensor(a1!)? y, SymInt n) -> ()"
    assert [item.kind for item in operator.definition.problems] == ["return-annotation"]


@pytest.mark.parametrize(
    ("default", "written"),
    [
        ("1", "1"),
        ("-1.5", "-1.5"),
        ("None", "None"),
        ("True", "True"),
        ("'q'", '"q"'),
        ("torch.float16", "float16"),
        ("LATE()", "LATE()"),
    ],
)
def test_defaults(default: str, written: str) -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: int = {default}) -> None: ...\n"
    definition = tree_of({"ops.py": code}).operators[0].definition
    assert definition.problems == ()
    assert schema_of(tree_of({"ops.py": code}).operators[0]) == f"(SymInt x={written}) -> ()"


@pytest.mark.parametrize(
    ("clauses", "version"),
    [
        (">=2.1", (2, 15)),
        ("==2.6.0", (2, 6)),
        (">=2.4,<2.7", (2, 6)),
        ("<2.7.1", (2, 7)),
        ("<=2.5", (2, 5)),
        ("~=2.8.0", (2, 8)),
        ("==2.6.*", (2, 6)),
        ("==2.10.0+cu128", (2, 10)),
        (">=2.15", (2, 15)),
        (">=2.16", (2, 16)),
        (">2.15.9,<3", (2, 15)),
        ("<2.3", (2, 2)),
        ("", None),
    ],
)
def test_the_newest_version_that_requirements_admit(
    clauses: str, version: tuple[int, int] | None, tmp_path: Path
) -> None:
    project = Project(Workspace(tmp_path, {"requirements.txt": f"torch{clauses}\n"}))
    found = required_release(project, "torch", known_releases())
    assert (found and found.version) == version


def test_a_version_is_read_from_the_requirements() -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: list[int]) -> None: ...\n"
    project = '[project]\ndependencies = ["numpy", "torch==2.6.0"]\n'
    pinned = {"ops.py": code, "pyproject.toml": project, "requirements.txt": "torchvision==0.2\n"}
    assert tree_of(pinned).torch == (2, 6)
    assert tree_of({"ops.py": code, "pyproject.toml": 'dependencies = ["torch>=2.1"]\n'}).torch == (2, 15)
    assert tree_of({"ops.py": code}).torch == (2, 15)


LISTS = "def f(x: Tensor, y: Optional[List[Tensor]]) -> None: ...\ndef g(x: Tensor, y: List[str]) -> None: ...\n"


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        ("torch==2.14.1", ["error Optional[List[Tensor]]", "error List[str]"]),
        ("torch>=2.15", ["error List[str]"]),
        ("torch>=2.16", ["warning List[str], in doubt"]),
        ("torch==2.3.*", ["warning Optional[List[Tensor]], in doubt", "warning List[str], in doubt"]),
    ],
)
def test_no_tree_is_judged_by_another_release_without_a_word(requires: str, found: list[str]) -> None:
    code = HEAD + LISTS.replace("def ", "@torch.library.custom_op('ns::f', mutates_args=())\ndef ")
    files = {
        "ops.py": code.replace("ns::f", "ns::g", 2).replace("ns::g", "ns::f", 1),
        "requirements.txt": f"{requires}\n",
    }
    linted = lint_files([PACK], files, ["REG103"]).diagnostics
    doubt = f"(opschema knows torch 2.4 to 2.15, and `requirements.txt` asks for {requires.strip('torch>=.*')})"
    assert found == [
        f"{item.severity.value} {item.message.split('`')[1]}{', in doubt' if item.message.endswith(doubt) else ''}"
        for item in linted
    ]


def test_a_fix_in_doubt_is_unsafe() -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args=())\ndef f(x: Tuple[int, int]) -> None: ...\n"
    fixes = {
        requires: [
            item.fix and item.fix.safety
            for item in lint_files([PACK], {"ops.py": code, "setup.cfg": requires}).diagnostics
        ]
        for requires in ("torch>=2.15", "torch>=2.16")
    }
    assert fixes["torch>=2.16"] == ["unsafe"]

"""The lowered signature, the mapping tree, and where the decorator refuses."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Lowering

ReadOp = Callable[..., MagiOp]

CFG = """\
@dataclass(frozen=True)
class Inner:
    w: Tensor
    scale: float = 1.0

@dataclass(frozen=True)
class Cfg:
    inner: Inner
    steps: int
"""


def signature(lowering: Lowering) -> str:
    parts = [
        f"{leaf.lowered}: {leaf.lowered_type}" + (f" = {leaf.default}" if leaf.default.kind != "absent" else "")
        for leaf in lowering.leaves
    ]
    return f"({', '.join(parts)}) -> {lowering.returns}"


def refusals(lowering: Lowering) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in lowering.problems]


def test_a_nested_dataclass_becomes_its_leaves(read_op: ReadOp) -> None:
    op = read_op(CFG + "@magi_register_custom_op()\ndef f(x: Tensor, cfg: Cfg) -> Tensor: ...\n")
    assert (
        signature(op.lowering)
        == "(x: Tensor, cfg__inner__w: Tensor, cfg__inner__scale: float = 1.0, cfg__steps: int) -> Tensor"
    )
    assert op.lowering.path == "flatten"
    assert op.lowering.tensors == ("x", "cfg__inner__w")
    assert [branch.path for branch in op.lowering.branches] == [("cfg",), ("cfg", "inner")]


@pytest.mark.parametrize(
    ("params", "lowered", "path"),
    [
        ("x: Tensor, n: int = 2", "(x: Tensor, n: int = 2) -> Tensor", "simple"),
        ("x: 'Tensor'", "(x: Tensor) -> Tensor", "signature"),
        ("x: Tensor, *, n: int", "(x: Tensor, n: int) -> Tensor", "signature"),
        ("x: Tensor, m: Literal['a', 'b'] = 'a'", "(x: Tensor, m: str = 'a') -> Tensor", "signature"),
        ("x: Tensor, m: Text = Text.A", "(x: Tensor, m: str = Text.A) -> Tensor", "signature"),
        ("x: Tensor, m: Plain = Plain.A", "(x: Tensor, m: str) -> Tensor", "signature"),
        ("x: Tensor, k: list[int] = [1]", "(x: Tensor, k: list[int]) -> Tensor", "signature"),
        ("x: Tensor, d: torch.dtype = torch.half", "(x: Tensor, d: dtype = torch.half) -> Tensor", "simple"),
        ("x: Optional[Tensor] = None", "(x: Tensor | None = None) -> Tensor", "simple"),
        ("x: Tensor, k: int = LIMIT", "(x: Tensor, k: int = 7) -> Tensor", "simple"),
        ("x: Hidden", "(x: ?) -> Tensor", None),
        ("x: Tensor, k: int = make()", "(x: Tensor, k: int = make()) -> Tensor", None),
    ],
)
def test_parameters_are_normalised(params: str, lowered: str, path: str | None, read_op: ReadOp) -> None:
    text = f"""\
from elsewhere import Hidden, make
LIMIT = 7
class Text(str, Enum):
    A = "a"
class Plain(Enum):
    A = "a"
@magi_register_custom_op()
def f({params}) -> Tensor: ...
"""
    lowering = read_op(text).lowering
    assert (signature(lowering), lowering.path, lowering.problems) == (lowered, path, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x, y: Tensor) -> Tensor: ...", [("no-annotation", "parameter `x` of `f()`")]),
        ("def f(x: Tensor): ...", [("no-return", "the return value of `f()`")]),
        ("def f(*x: Tensor) -> Tensor: ...", [("variadic", "parameter `x` of `f()`")]),
        ("def f(x: Tensor, m: Mutable) -> Tensor: ...", [("mutable-dataclass", "parameter `m` of `f()`")]),
        ("def f(x: Tensor, m: Holder) -> Tensor: ...", [("mutable-dataclass", "field `Holder.inner`")]),
        ("def f(x: Tensor) -> Frozen: ...", [("dataclass-return", "the return value of `f()`")]),
        ("def f(x: tuple[int, int]) -> Tensor: ...", [("tuple", "parameter `x` of `f()`")]),
        ("def f(x: Optional[tuple[int, int]]) -> Tensor: ...", []),
        ("def f(x: tuple) -> Tensor: ...", []),
        ("def f(x: dict[str, int]) -> Tensor: ...", [("dict", "parameter `x` of `f()`")]),
        ("def f(m: Literal['a', 1]) -> Tensor: ...", [("literal", "parameter `m` of `f()`")]),
        ("def f(m: Number) -> Tensor: ...", [("enum", "parameter `m` of `f()`")]),
        ("def f(cfg: Frozen, x: Tensor) -> Tensor: ...", [("default-order", "parameter `x` of `f()`")]),
        ("def f(x: Tensor, cfg: Frozen) -> Tensor: ...", []),
        (
            "def f(x: Tensor, n: int = 1, k: list[int] = [1]) -> Tensor: ...",
            [("default-order", "parameter `k` of `f()`")],
        ),
        ("def f(x: Tensor, n: int = unknown(), *, k: int) -> Tensor: ...", []),
        ("def f(cfg__a: float, cfg: Frozen) -> Tensor: ...", [("duplicate-name", "field `f.cfg__a`")]),
        ("def f(x: Loop) -> Tensor: ...", [("recursive", "field `Loop.next`")]),
        ("def f(x: Tree) -> Tensor: ...", []),
        ("def f(x: Gone) -> Tensor: ...", [("text-field", "field `Gone.a`")]),
    ],
)
def test_refusals(text: str, expected: list[tuple[str, str]], read_op: ReadOp) -> None:
    head = """\
@dataclass
class Mutable:
    a: int
@dataclass(frozen=True)
class Holder:
    inner: Mutable
@dataclass(frozen=True)
class Frozen:
    a: float = 1.0
@dataclass(frozen=True)
class Loop:
    next: "Loop"
@dataclass(frozen=True)
class Tree:
    left: "Optional[Tree]"
@dataclass(frozen=True)
class Gone:
    a: "Nowhere"
class Number(Enum):
    ONE = 1
"""
    assert refusals(read_op(f"{head}@magi_register_custom_op()\n{text}\n").lowering) == expected


def test_all_problems_are_told_in_the_order_of_the_decorator(read_op: ReadOp) -> None:
    text = "@magi_register_custom_op()\ndef f(m: Literal[1], x, t: tuple[int]): ...\n"
    assert [problem.kind for problem in read_op(text).lowering.problems] == [
        "no-annotation",
        "tuple",
        "no-return",
        "literal",
    ]


@pytest.mark.parametrize(
    ("names", "expanded", "wrong"),
    [
        (["x"], ("x",), ()),
        (["cfg"], ("cfg__inner__w", "cfg__inner__scale", "cfg__steps"), ()),
        (["cfg__inner__w", "cfg", "x"], ("cfg__inner__w", "cfg__inner__scale", "cfg__steps", "x"), ()),
        (["inner", "cfg.inner"], (), ("inner", "cfg.inner")),
    ],
)
def test_mutates_args_are_expanded(
    names: list[str], expanded: tuple[str, ...], wrong: tuple[str, ...], read_op: ReadOp
) -> None:
    op = read_op(CFG + "@magi_register_custom_op()\ndef f(x: Tensor, cfg: Cfg) -> Tensor: ...\n")
    assert op.lowering.expand_mutates(names) == (expanded, wrong)


def test_a_class_below_a_string_annotation_is_not_there_yet(read_op: ReadOp) -> None:
    op = '@magi_register_custom_op()\ndef f(x: Tensor, cfg: "Late") -> Tensor: ...\n'
    text = op + "@dataclass(frozen=True)\nclass Late:\n    a: int\n"
    assert signature(read_op(text).lowering) == "(x: Tensor, cfg: 'Late') -> Tensor"


def test_a_name_for_type_checkers_alone_is_not_there(read_op: ReadOp) -> None:
    text = dedent("""\
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from kit.config import Cfg
    @magi_register_custom_op()
    def f(x: Tensor, cfg: "Cfg") -> Tensor: ...
    """)
    files = {"kit/config.py": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Cfg:\n    a: int\n"}
    assert signature(read_op(text, files).lowering) == "(x: Tensor, cfg: 'Cfg') -> Tensor"


def test_a_local_class_in_a_string_is_found_where_the_function_uses_it(read_op: ReadOp) -> None:
    text = dedent("""\
    def make():
        @dataclass(frozen=True)
        class Cfg:
            a: int
        @magi_register_custom_op()
        def f(x: Tensor, cfg: "Cfg") -> Tensor:
            {body}
    """)
    assert read_op(text.format(body="return Cfg")).lowering.path == "flatten"
    assert read_op(text.format(body="return x")).lowering.path == "simple"


def test_a_dataclass_of_another_file(read_op: ReadOp) -> None:
    files = {
        "kit/config.py": (
            "from kit.base import Base\nimport dataclasses as dc\n@dc.dataclass(frozen=True)\nclass Cfg(Base):\n    b: int = 2\n"
        ),
        "kit/base.py": "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Base:\n    a: 'list[float]'\n",
    }
    text = "from kit.config import Cfg as C\n@magi_register_custom_op()\ndef f(x: Tensor, cfg: C) -> Tensor: ...\n"
    assert signature(read_op(text, files).lowering) == "(x: Tensor, cfg__a: list[float], cfg__b: int = 2) -> Tensor"


def test_what_other_decorators_make_of_the_function_is_not_known(read_op: ReadOp) -> None:
    op = read_op("@magi_register_custom_op()\n@curry\ndef f(x): ...\n")
    assert (op.lowering.problems, op.lowering.complete, op.name) == ((), False, None)
    op = read_op("@magi_register_custom_op()\n@torch.no_grad()\ndef f(x): ...\n")
    assert refusals(op.lowering) == [
        ("no-annotation", "parameter `x` of `f()`"),
        ("no-return", "the return value of `f()`"),
    ]


def test_a_tree_that_grows_without_end_is_given_up(read_op: ReadOp) -> None:
    classes = "@dataclass(frozen=True)\nclass C0:\n    pass\n"
    for index in range(1, 60):
        classes += f"@dataclass(frozen=True)\nclass C{index}:\n    a: C{index - 1}\n    b: C{index - 1}\n"
    lowering = read_op(classes + "@magi_register_custom_op()\ndef f(x: C59) -> Tensor: ...\n").lowering
    assert not lowering.complete

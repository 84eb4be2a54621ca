"""Operators that are tagged ``inplace`` or ``out``: their schemas and what is refused, as the installed torch does."""

from __future__ import annotations

import pytest

from tests.rules.torchlib.operators_of import schema_of, tree_of

HEAD = "import torch\nfrom typing import Optional, Tuple\nfrom torch import Tensor\n"

Told = tuple[str, str, str]

INPLACE: list[tuple[str, str, Told | str]] = [
    ("x: Tensor) -> Tensor", "('x',)", "(Tensor(a0!) x) -> Tensor(a0!)"),
    ("x: Tensor, n: int) -> Tensor", "{'x'}", "(Tensor(a0!) x, SymInt n) -> Tensor(a0!)"),
    (") -> Tensor", "()", ("", "", "a positional Tensor")),
    ("*, x: Tensor) -> Tensor", "('x',)", ("", "", "a positional Tensor")),
    ("x: Optional[Tensor]) -> Tensor", "('x',)", ("x", "Tensor?", "Tensor")),
    ("n: int, x: Tensor) -> Tensor", "('x',)", ("n", "SymInt", "Tensor")),
    ("x: Tensor, y: Tensor) -> Tensor", "('x', 'y')", ("x", "mutates_args", '("x",)')),
    ("x: Tensor) -> Tensor", "'unknown'", ("x", "mutates_args", '("x",)')),
    ("x: Tensor) -> None", "('x',)", ("", "None", "Tensor")),
    ("x: Tensor) -> Tuple[Tensor]", "('x',)", ("", "Tuple[Tensor]", "Tensor")),
]

OUT: list[tuple[str, str, Told | str]] = [
    ("x: Tensor, *, out: Tensor) -> Tensor", "('out',)", "(Tensor x, *Tensor(a1!) out) -> Tensor(a1!)"),
    ("*, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]", "('a', 'b')",
     "(*Tensor(a0!) a, *Tensor(a1!) b) -> (Tensor(a0!), Tensor(a1!))"),
    ("*, out: Tensor) -> Tensor", "'unknown'", "(*Tensor(a0!) out) -> Tensor(a0!)"),
    ("out: Tensor) -> Tensor", "('out',)", ("out", "positional", "keyword-only")),
    ("*, out: Optional[Tensor]) -> Tensor", "('out',)", ("out", "Tensor?", "Tensor")),
    ("*, out: Tensor) -> Tensor", "()", ("", "", "a keyword-only Tensor in `mutates_args`")),
    ("*, out: Tensor) -> None", "('out',)", ("", "None", "Tensor")),
    ("*, out: Tensor) -> Tuple[Tensor]", "('out',)", ("", "Tuple[Tensor]", "Tensor")),
    ("*, a: Tensor, b: Tensor) -> Tensor", "('a', 'b')", ("", "Tensor", "tuple[Tensor, Tensor]")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tag", "function", "mutates", "told"),
    [*(("inplace", *case) for case in INPLACE), *(("out", *case) for case in OUT)],
)
def test_functions(tag: str, function: str, mutates: str, told: Told | str) -> None:
    code = f"{HEAD}@torch.library.custom_op('ns::f', mutates_args={mutates}, tags=torch.Tag.{tag})\ndef f({function}: ...\n"
    operator = tree_of({"ops.py": code}).operators[0]
    found = [(item.name, item.written, item.instead) for item in operator.definition.problems]
    assert operator.definition.tags == frozenset({tag})
    assert found == ([] if isinstance(told, str) else [told])
    assert not isinstance(told, str) or schema_of(operator) == told
    assert _infers(f"{HEAD}def f({function}: ...\n", mutates, tag) == isinstance(told, str)


def _infers(code: str, mutates: str, tag: str) -> bool:
    torch = pytest.importorskip("torch")
    scope: dict[str, object] = {}
    exec(compile(code, "ops.py", "exec", dont_inherit=True), scope)
    try:
        torch.library.infer_schema(scope["f"], mutates_args=eval(mutates), tags=getattr(torch.Tag, tag))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("tag", "schema", "told"),
    [
        ("inplace", "(Tensor(a!) x, int n) -> Tensor(a!)", None),
        ("inplace", "(*, Tensor(a!) x) -> Tensor(a!)", ("", "", "a positional Tensor(a!)")),
        ("inplace", "(Tensor x) -> Tensor", ("x", "Tensor", "Tensor(a!)")),
        ("inplace", "(Tensor(a!)? x) -> Tensor(a!)", ("x", "Tensor(a!)?", "Tensor(a!)")),
        ("inplace", "(Tensor(a!) x) -> ()", ("", "0 returns", "the one argument `x`")),
        ("inplace", "(Tensor(a!) x) -> Tensor", ("", "Tensor", "Tensor(a!)")),
        ("inplace", "(Tensor(a!) x) -> Tensor(a)", ("", "Tensor(a)", "Tensor(a!)")),
        ("inplace", "(Tensor(a!) x, Tensor(b!) y) -> Tensor(b!)", ("", "Tensor(b!)", "Tensor(a!)")),
        ("inplace", "(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", ("y", "Tensor(b!)", "Tensor")),
        ("out", "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", None),
        ("out", "(Tensor x) -> Tensor", ("", "", "a keyword-only Tensor(a!)")),
        ("out", "(Tensor(a!) x) -> Tensor(a!)", ("x", "positional", "keyword-only")),
        ("out", "(*, Tensor(a!)? out) -> Tensor(a!)", ("out", "Tensor(a!)?", "Tensor(a!)")),
        ("out", "(*, Tensor(a!) out) -> ()", ("", "0 returns", "1 returns")),
        ("out", "(*, Tensor(a!) out) -> Tensor", ("out", "Tensor", "Tensor(a!)")),
        ("out", "(*, Tensor(a!) a, Tensor(b!) b) -> (Tensor(b!), Tensor(a!))", ("a", "Tensor(b!)", "Tensor(a!)")),
    ],
)
def test_schema_strings(tag: str, schema: str, told: Told | None) -> None:
    code = f"import torch\nlib = torch.library.Library('tagged', 'FRAGMENT')\nlib.define('f{schema}', tags=[torch.Tag.{tag}])\n"
    problems = tree_of({"ops.py": code}).operators[0].definition.problems
    assert [(item.kind, item.name, item.written, item.instead) for item in problems] == ([(tag, *told)] if told else [])
    assert _defines(code, tag) == (told is None)


def _defines(code: str, tag: str) -> bool:
    pytest.importorskip("torch")
    try:
        exec(code, {})
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("tags", "known"),
    [
        ("None", frozenset()),
        ("()", frozenset()),
        ("Tag.core", frozenset({"core"})),
        ("[Tag.core, torch.Tag.out]", frozenset({"core", "out"})),
        ("TAGS", frozenset({"pointwise"})),
        ("chosen()", None),
        ("[Tag.core, chosen()]", None),
    ],
)
def test_tags_that_are_known(tags: str, known: frozenset[str] | None) -> None:
    head = "from torch import Tag\nfrom elsewhere import chosen\nTAGS = (torch.Tag.pointwise,)\n"
    code = f"{head}torch.library.define('ns::f', '(*, Tensor(a!) out) -> Tensor(a!)', tags={tags})\n"
    assert tree_of(code).operators[0].definition.tags == known


def test_of_two_tags_that_exclude_each_other_and_of_what_is_refused_anyway() -> None:
    head = "@torch.library.custom_op('ns::f', mutates_args=('x',), tags=(torch.Tag.inplace, torch.Tag.out))\n"
    both = tree_of(f"{head}def f(x: Tensor) -> Tensor: ...\n").operators[0].definition.problems
    assert [(item.kind, item.written) for item in both] == [("inplace", "inplace, out")]
    bare = tree_of(f"{head}def f(x) -> Tensor: ...\n").operators[0].definition.problems
    assert [item.kind for item in bare] == ["annotation"]

"""Copies of ATen's schemas beside the originals: what differs, where both sides stand, and for which versions it counts."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.aten.pack import PACK

CODES = [rule.code for rule in PACK.rules if rule.code.startswith("ATN80")]

NATIVE = """\
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- func: pool(Tensor self, SymInt[2] size, SymInt pad=0, *, float eps=1e-05, str mode="none") -> Tensor
- func: view(Tensor(a) self, SymInt[] size) -> Tensor(a)
- func: fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)
- func: pair(Tensor self) -> (Tensor values, Tensor indices)
"""
POOL = 'pool(Tensor self, SymInt[2] size, SymInt pad=0, *, float eps=1e-05, str mode="none") -> Tensor'


def lint(schema: str, versions: str = "all_version", native: str = NATIVE) -> Linted:
    """A copy in op-plugin's YAML beside a native_functions.yaml."""
    copies = f"all_version: [v2.1, v2.2, v2.3]\nofficial:\n  - func: {schema}\n    op_api: {versions}\n"
    return lint_files([PACK], {"native_functions.yaml": native, "op_plugin_functions.yaml": copies}, CODES)


def found(linted: Linted) -> list[tuple[str, str, str]]:
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


SAME = [
    POOL,
    POOL.replace("1e-05", "0.00001"),
    POOL.replace('"none"', "'none'"),
    "pair(Tensor self) -> (Tensor, Tensor)",
    "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "view(Tensor(a) self",  # not a schema: nothing is known of it
]


@pytest.mark.parametrize("schema", SAME)
def test_what_is_the_same_but_for_its_spelling_has_no_findings(schema: str) -> None:
    assert found(lint(schema)) == []


DIFFERENT = [
    (POOL.replace("size,", "shape,"), "ATN802", "shape", "PyTorch calls the argument `shape` `size`"),
    (POOL.replace(", SymInt pad=0", ""), "ATN802", 'str mode="none"', "the argument `SymInt pad=0` of PyTorch's `pool` is missing"),
    (POOL.replace("self,", "self, bool up,"), "ATN802", "bool up", "PyTorch's `pool` has no argument `up`"),
    (POOL.replace(" *,", ""), "ATN802", "float eps=1e-05", "`eps`, `mode` are positional here and keyword-only in PyTorch"),
    (
        "add.Tensor(Tensor other, Tensor self, *, Scalar alpha=1) -> Tensor",
        "ATN802",
        "Tensor other",
        "`other` stands where PyTorch has `self`",
    ),
    (POOL.replace("SymInt[2] size", "int[2] size"), "ATN803", "int[2]", "`size` is `int[2]` here and `SymInt[2]` in PyTorch"),
    (POOL.replace("SymInt[2]", "SymInt[3]"), "ATN803", "SymInt[3]", "`size` is `SymInt[3]` here and `SymInt[2]` in PyTorch"),
    (POOL.replace("eps=1e-05", "eps=1"), "ATN805", "1", "`eps` has the default `1` here and the default `1e-05` in PyTorch"),
    (POOL.replace("pad=0", "pad"), "ATN805", "SymInt pad", "`pad` has no default here and the default `0` in PyTorch"),
    ("pair(Tensor self) -> Tensor", "ATN806", "Tensor", "it returns `Tensor` here and `Tensor, Tensor` in PyTorch"),
    ("add.x() -> ()", "ATN801", "add.x", "`add.x` is not an operator of `native_functions.yaml`; it has `add.Tensor`"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "code", "place", "message"), DIFFERENT)
def test_a_difference_is_one_finding(schema: str, code: str, place: str, message: str) -> None:
    assert found(lint(schema)) == [(code, place, message)]


def test_an_annotation_counts_where_it_stands() -> None:
    linted = lint("view(Tensor self, SymInt[] size) -> Tensor")
    assert [message for _, _, message in found(linted)] == [
        "`self` is annotated `Tensor` here and `Tensor(a)` in PyTorch",
        "it returns `Tensor` here and `Tensor(a)` in PyTorch",
    ]
    assert set(linted.codes()) == {"ATN804"}


def test_both_sides_are_shown() -> None:
    linted = lint(POOL.replace("SymInt pad=0", "int pad=0"))
    (item,) = linted.diagnostics
    (other,) = item.related
    assert (linted.text(item.place), linted.text(other.place), other.message) == (
        "int",
        "SymInt pad=0",
        "PyTorch has `SymInt pad=0`",
    )
    assert (item.severity.value, item.ops) == ("info", ("pool",))


@pytest.mark.parametrize(
    ("versions", "counts"),
    [
        ("all_version", True),
        ("[v2.1, newest]", True),
        ("[v2.1, v2.3]", True),
        ("[v2.1, v2.2]", False),
        ("v2.3", True),
        ("v2.1, v2.3", True),
        ("v2.1", False),
        ("[v2.4, newest]", False),
        ("3", False),
        ("", False),
    ],
)
def test_only_entries_for_the_version_of_the_reference_count(versions: str, counts: bool) -> None:
    assert bool(found(lint("add.Tensor(Tensor self, Tensor rhs, *, Scalar alpha=1) -> Tensor", versions))) == counts


def test_own_operators_are_not_compared() -> None:
    copies = """\
all_version: [v2.1]
official:
custom:
  - func: npu_gelu(Tensor self) -> Tensor
    op_api: all_version
  - {func: add.Tensor(Tensor x) -> Tensor, op_api: all_version}
symint:
  - {func: npu_pool(Tensor self) -> Tensor, op_api: all_version}
  - {func: 'pool(Tensor self, SymInt[2] size, SymInt pad=1, *, float eps=1e-05, str mode="none") -> Tensor', op_api: v2.1}
"""
    linted = lint_files([PACK], {"native_functions.yaml": NATIVE, "op_plugin_functions.yaml": copies}, CODES)
    assert [(item.code, item.ops) for item in linted.diagnostics] == [("ATN805", ("pool",))]


def many(*changes: tuple[str, str]) -> str:
    """A native_functions.yaml of 120 entries."""
    text = "".join(f"- func: op{number}(Tensor self, Scalar x=1) -> Tensor\n" for number in range(120))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def copied(copy: str, aten: str = "aten/src/ATen/native/native_functions.yaml") -> list[tuple[str, str, str]]:
    return found(lint_files([PACK], {aten: many(), "yaml/native_functions.yaml": copy}, CODES))


def test_an_excerpt_of_pytorchs_own_file_is_compared_with_it() -> None:
    assert copied(many()) == []
    assert copied(many(("op7(Tensor self", "op7(Tensor input"), ("op9(", "op9.x("))) == [
        ("ATN802", "input", "PyTorch calls the argument `input` `self`"),
        ("ATN801", "op9.x", "`op9.x` is not an operator of `aten/src/ATen/native/native_functions.yaml`; it has `op9`"),
    ]


def test_another_projects_file_is_no_copy() -> None:
    assert copied(many(("op1", "my1"), ("self", "input"))) == []


def test_two_files_of_which_neither_is_pytorchs_are_not_compared() -> None:
    assert copied(many(("self", "input")), aten="other/native_functions.yaml") == []

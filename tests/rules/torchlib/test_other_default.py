"""REG205: defaults are compared as the schema's type reads them."""

from __future__ import annotations

import pytest

from opschema_cli.testing import fix_files, lint_files
from opschema_rules.torchlib.examples import MODULE, example_files
from opschema_rules.torchlib.pack import PACK

TEXT = """
torch.library.define("kit::f", "(Tensor x, {schema}) -> Tensor")


@torch.library.impl("kit::f", "cpu")
def kernel(x, {param}):
    return reveal(x, a)
"""


def files(schema: str, param: str) -> dict[str, str]:
    return example_files([("python", TEXT.format(schema=schema, param=param))])


@pytest.mark.parametrize(
    ("schema", "param"),
    [
        ("int[2] a=[1,2]", "a=(1, 2)"),
        ("int[2] a=[1, 2]", "a=[1, 2]"),
        ("int[2] a=1", "a=(1, 1)"),
        ("int[2] a=1", "a=1"),  # the function may take both
        ("SymInt[3] a=0", "a=[0, 0, 0]"),
        ("bool[2] a=True", "a=(True, True)"),
        ("float[2] a=1", "a=(1.0, 1)"),
        ("float[] a=[1, 2]", "a=(1.0, 2.0)"),
        ("int[] a=[]", "a=()"),
        ("float a=1", "a=1.0"),
        ("bool a=1", "a=True"),
        ("int[2]? a=3", "a=(3, 3)"),  # of this torch makes no list
        ("ScalarType a=half", "a=torch.float16"),
        ("ScalarType? a=float32", "a=torch.float"),
        ("ScalarType a=6", "a=torch.float32"),
        ("MemoryFormat a=contiguous_format", "a=torch.contiguous_format"),
        ("int a=0x10", "a=16"),  # torch reads 0, which is not for this rule
        ("int[2]? a=None", "a=(1, 1)"),
    ],
)
def test_one_value_in_two_spellings_is_no_other(schema: str, param: str) -> None:
    assert lint_files([PACK], files(schema, param), ["REG205"]).codes() == []


@pytest.mark.parametrize(
    ("schema", "param", "fixed"),
    [
        ("int[2] a=[1,2]", "a=(2, 1)", "a=[1, 2]"),
        ("int[2] a=1", "a=(1, 2)", "a=[1, 1]"),
        ("int[2] a=1", "a: tuple[int, int] = ( 2, 2 )", "a: tuple[int, int] = [1, 1]"),
        ("int[] a=[]", "a=(1,)", "a=[]"),
        ("float a=1", "a=2", "a=1.0"),
        ("float[2] a=1", "a=(2, 2)", "a=[1.0, 1.0]"),
        ("bool a=True", "a=False", "a=True"),
        ("int a=-1", "a=1", "a=-1"),
        ("str a='sum'", "a='mean'", "a='sum'"),
        ("Scalar a=1", "a=2", "a=1"),
    ],
)
def test_another_value_is_replaced_by_what_the_schema_means(schema: str, param: str, fixed: str) -> None:
    texts, left = fix_files([PACK], files(schema, param), ["REG205"], unsafe=True)
    assert f"def kernel(x, {fixed}):" in texts[MODULE]
    assert left.codes() == []


def test_the_written_default_is_shown_with_its_brackets() -> None:
    (found,) = lint_files([PACK], files("int[2] a=1", "a=(1, 2)"), ["REG205"]).diagnostics
    assert found.message.startswith("`a` defaults to `(1, 2)` here and to `1` in the schema")


def test_a_dtype_has_no_fix() -> None:
    linted = lint_files([PACK], files("ScalarType a=half", "a=torch.float32"), ["REG205"])
    assert [item.fix for item in linted.diagnostics] == [None]

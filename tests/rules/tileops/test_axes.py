"""Axes that expressions read, and the rank that a declared shape fixes."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

INPUTS = """\
  inputs:
    a: {dtype: float16, shape: "[M, K]"}
    s: {dtype: float16, shape: "[]"}
    z: {dtype: float16}
    bias: {dtype: float16, shape: "[K]", optional: true}
  outputs:
    y: {dtype: float16, shape: "[M]"}
"""


def lint(rule: str, *codes: str) -> Linted:
    body = f"signature:\n{INPUTS}  shape_rules:\n    - '{rule}'\n"
    body += "workloads:\n  - {a_shape: [4, 8], s_shape: [], z_shape: [4], dtypes: [float16]}\n"
    return lint_files([PACK], example_files([("yaml", body)]), codes or ("SHP112",))


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


TWO = "`{}` reads an axis that `a` does not have, whose shape is `[M, K]`; its axes are 0 to 1, or -2 to -1"
ONE = "`{}` reads an axis that `{}` does not have, whose shape is `[{}]`; its only axis is 0"


@pytest.mark.parametrize(
    ("rule", "place", "message"),
    [
        ("a.shape[3] > 0", "3", TWO.format("a.shape[3]")),
        ("a.shape[-3] > 0", "-3", TWO.format("a.shape[-3]")),
        ("y.shape == (z.shape[7], a.shape[2])", "2", TWO.format("a.shape[2]")),
        ("y.shape[1] == M", "1", ONE.format("y.shape[1]", "y", "M")),
        ("bias is None or bias.shape[1] > 0", "1", ONE.format("bias.shape[1]", "bias", "K")),
        ("M == (0 if bias is None else bias.shape[1])", "1", ONE.format("bias.shape[1]", "bias", "K")),
        ("s.shape[0] > 0", "0", "`s.shape[0]` reads an axis that `s` does not have, whose shape is `[]`"),
        ("all(i > 0 for i in range(a.shape[2]))", "2", TWO.format("a.shape[2]")),
    ],
)
def test_an_axis_that_no_call_has(rule: str, place: str, message: str) -> None:
    linted = lint(rule)
    assert found(linted) == [(place, message)]
    assert [side.message for side in linted.diagnostics[0].related] == [
        message.split("`")[3].join(("the shape of `", "`"))
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "a.shape[1] == a.shape[-2]",
        "z.shape[5] > 0",  # of any rank
        "a.shape[2:] == () and z.ndim > 0",
        "a.ndim < 3 or a.shape[2] > 0",
        "len(a.shape) == 2 or a.shape[2] > 0",
        "a.ndim == 3 and a.shape[2] > 0",
        "M == (a.shape[2] if a.ndim == 3 else K)",
        "eps > 1 or a.shape[2] > 0",  # a param may stand for the rank
        "eps is None or a.shape[2] > 0",
        "all(a.shape[2] > i for i in z.shape)",
        "a.shape[M] > 0",
        "a.shape[True] > 0",
        "b.shape[9] > 0",
    ],
)
def test_axes_that_are_there_or_behind_a_guard(rule: str) -> None:
    assert found(lint(rule)) == []


@pytest.mark.parametrize(
    "shape", ['"[..., K]"', '"[M, *]"', '"[*batch, K]"', '"[M, K] | [K]"', '"same_as(z)"', '"[M, K"', "3"]
)
def test_a_shape_that_leaves_the_rank_open(shape: str) -> None:
    body = f"signature:\n  inputs:\n    x: {{dtype: float16, shape: {shape}}}\n  shape_rules: ['x.shape[5] > 0']\n"
    assert lint_files([PACK], example_files([("yaml", body)]), ["SHP112"]).codes() == []


def test_it_is_said_once() -> None:
    assert lint("a.shape[2] > 0", "SHP112", "WKL201", "WKL202").codes() == ["SHP112"]


FORMULAS = """\
status: STATUS
signature:
  inputs:
    x: {dtype: float16, shape: "[M, K]"}
  static_dims: {N: "x.shape[2]"}
roofline:
  vars:
    L: "x.shape[2] * y.shape[7]"
  flops: "2 * L"
  bytes: "2 * L * elem_bytes"
"""


@pytest.mark.parametrize(("status", "severity"), [("implemented", Severity.ERROR), ("spec-only", Severity.WARNING)])
def test_static_dimensions_and_variables_of_the_roofline(status: str, severity: Severity) -> None:
    body = FORMULAS.replace("STATUS", status)
    linted = lint_files([PACK], example_files([("yaml", body)]), ["SHP112", "ROO104", "WKL202"])
    assert [(item.code, linted.text(item.place), item.severity) for item in linted.diagnostics] == [
        ("SHP112", "2", Severity.ERROR),
        ("SHP112", "2", severity),
    ]


def test_flops_that_may_read_shapes() -> None:
    body = FORMULAS.replace("STATUS", "implemented").replace('"2 * L"', '"a + x.shape[5]"')
    old = lint_files([PACK], {**example_files([("yaml", body)]), "opschema.toml": ""}, ["SHP112"])
    new = lint_files([PACK], example_files([("yaml", body)]), ["SHP112"])
    assert ([old.text(item.place) for item in old.diagnostics], new.codes()) == (["2", "2", "5"], ["SHP112"] * 2)

"""Shape rules and declared shapes as text: what does not parse, means nothing or checks nothing."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

SHAPES = [f"SHP{number}" for number in range(101, 112)]
MANIFEST = "kit/manifest/example.yaml"

INPUTS = 'inputs:\n  x: {dtype: float16}\n  bias: {dtype: "same_as(x)", optional: true}'


def lint(signature: str, *, codes: list[str] = SHAPES, **files: str) -> Linted:
    """Lint the sound entry with parts of its signature replaced."""
    body = "signature:\n" + "".join(f"  {line}\n" for line in signature.splitlines())
    return lint_files([PACK], {**example_files([("yaml", body)]), **files}, codes)


def rules(*texts: str, params: str = "eps: {type: float, default: 0.5}") -> str:
    listed = "".join(f"\n  - {text!r}" for text in texts)
    return f"params: {{{params}}}\nshape_rules:{listed}"


def found(linted: Linted) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


NO_HELPER = "`{}()` is not a function that shape rules may call"
UNBOUND = "nothing gives `{}` a value, so the rule can never be evaluated"
UNREAD = "nothing reads `{}`, so the rule that defines it checks nothing; use it or drop the rule"
VALUE = "`{}` is a value and no comparison, so here the rule holds whatever it is; "

RULES = [
    (
        ["y.shape = x.shape"],
        [("SHP101", "=", "the shape rule is not a Python expression: invalid syntax; compare with `==`")],
    ),
    (["y.shape == x.shape)"], [("SHP101", ")", "the shape rule is not a Python expression: unmatched ')'")]),
    ([""], [("SHP101", "''", "the shape rule is not a Python expression: it is empty")]),
    (
        ["y.shape == broadcast_shape(x.shape)"],
        [("SHP102", "broadcast_shape", NO_HELPER.format("broadcast_shape") + "; is it `broadcast_shapes`?")],
    ),
    (["sum(x.shape) > 0", "y.ndim == 1"], [("SHP102", "sum", NO_HELPER.format("sum"))]),
    (["y.shape == x.shape", "H % H_kv == 0"], [("SHP107", name, UNBOUND.format(name)) for name in ("H", "H_kv")]),
    (
        ["x.shape == (batch, heads)", "y.shape == x.shape", "head % 8 == 0"],
        [("SHP107", "head", UNBOUND.format("head") + "; is it `heads`?")],
    ),
    (["x.shape == (B, S)", "B % 2 == 0 and S > 1", "y.ndim == 2"], []),
    (["S == NC * 8", "y.ndim == NC // 2", "S > 0"], []),
    (["all(size > 0 for size in x.shape)", "isinstance(eps, (float, type(None)))", "y.ndim == 1"], []),
    (["y.shape == x.shape", "_e == (1 if eps is None else eps)"], [("SHP108", "_e", UNREAD.format("_e"))]),
    (["y.shape == x.shape", "_e == (1 if eps is None else eps)", "_e > 0"], []),
    (["y.shape == (B, S)"], []),
    (
        ["y.ndim == x.ndim if eps else x.ndim - 1"],
        [("SHP110", "x.ndim - 1", VALUE.format("x.ndim - 1") + "put the conditional in parentheses")],
    ),
    (
        ["y.ndim == 1", "x.ndim % 8"],
        [("SHP110", "x.ndim % 8", VALUE.format("x.ndim % 8") + "compare it with something")],
    ),
    (["y.ndim == x.ndim if eps else True", "x.shape[0] % 8 or x.ndim == 1"], []),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), RULES)
def test_rules(texts: list[str], expected: list[tuple[str, str, str]]) -> None:
    assert found(lint(rules(*texts))) == expected


def test_a_rule_that_does_not_parse_leaves_its_names_open() -> None:
    assert lint(rules("x.shape == (B, S", "B > 0", "y.ndim == 2")).codes() == ["SHP101"]


def test_a_name_of_a_malformed_section_is_not_missed() -> None:
    broken = "params: [eps, stride]\nshape_rules:\n  - 'stride > 0'\n  - '_s == stride'\n  - 'y.ndim == 1'"
    assert lint(broken).codes() == []


def test_a_name_of_a_workload_row_is_known() -> None:
    entry = (
        "signature:\n  shape_rules: ['kW > 0', 'y.shape == x.shape']\n"
        "workloads:\n  - {x_shape: [4], kW: 3, dtypes: [float16]}\n  - {x_shape: [8], kW: 5, dtypes: [float16]}\n"
    )
    assert lint_files([PACK], example_files([("yaml", entry)]), SHAPES).codes() == []


def test_a_helper_that_the_trees_validator_quotes_is_known() -> None:
    validator = (
        '"""shape_rules workloads roofline signature status"""\n'
        'BUILTINS = [("sum", sum)]\nraise ValueError("shape_rules calls unknown helper")\n'
    )
    rule = rules("sum(x.shape) > 0", "y.ndim == 1")
    assert lint(rule).codes() == ["SHP102"]
    assert lint(rule, **{"scripts/validate.py": validator}).codes() == []


def test_an_old_tree_says_nothing_of_helpers() -> None:
    assert lint(rules("sum(x.shape) > 0", "y.ndim == 1"), **{"opschema.toml": ""}).codes() == []


GUARDS = [
    ("bias.shape == x.shape", ["bias"]),
    ("bias is not None and bias.shape == x.shape", ["bias"]),
    ("bias.ndim == 1 or bias is None", ["bias"]),
    ("bias is None or bias.shape == x.shape", []),
    ("x.ndim == 1 or bias is None or bias.shape == x.shape", []),
    ("(bias is None) == (x.ndim == 1)", []),
    ("all(bias > 0 for bias in x.shape)", []),
]


@pytest.mark.parametrize(("text", "expected"), GUARDS)
def test_optional_inputs_are_guarded(text: str, expected: list[str]) -> None:
    linted = lint(f"{INPUTS}\nshape_rules:\n  - 'y.ndim == 1'\n  - '{text}'", codes=["SHP106"])
    assert [linted.text(item.place) for item in linted.diagnostics] == expected
    assert all("`bias is None or …`" in item.message for item in linted.diagnostics)
    assert [linted.text(side.place) for item in linted.diagnostics for side in item.related] == expected


def test_guards_are_not_asked_for_before_the_tree_knows_optional_inputs() -> None:
    signature = f"{INPUTS}\nshape_rules: ['bias.shape == x.shape', 'y.ndim == 1']"
    assert lint(signature, codes=["SHP106"], **{"opschema.toml": ""}).codes() == []


def test_the_parentheses_fix_keeps_the_rest() -> None:
    signature = 'shape_rules:\n  - "y.ndim == x.ndim if eps else x.ndim - 1"  # keepdim'
    body = "signature:\n" + "".join(f"  {line}\n" for line in signature.splitlines())
    texts, _ = fix_files([PACK], example_files([("yaml", body)]), ["SHP110"], unsafe=True)
    assert '- "y.ndim == (x.ndim if eps else x.ndim - 1)"  # keepdim\n' in texts[MANIFEST]
    assert fix_files([PACK], example_files([("yaml", body)]), ["SHP110"])[0] == {}


NOT_A_LIST = "`inputs.x.shape` is not a list of dimensions: "
DECLARED = [
    ('"[M, K"', [("SHP104", '"[M, K"', "a shape is written `[M, K]`", Severity.ERROR)]),
    ('"(M, K)"', [("SHP104", '"(M, K)"', "a shape is written `[M, K]`", Severity.ERROR)]),
    ('"[M, , K]"', [("SHP104", "", "a dimension is missing", Severity.ERROR)]),
    ('"[M, 2 *]"', [("SHP104", "2 *", "`2 *` is not a size: invalid syntax", Severity.ERROR)]),
    ('"[M] | [M, K]"', [("SHP104", "|", "`|` declares alternatives; a shape is one", Severity.ERROR)]),
    ('"[..., K]"', [("SHP104", "...", "`...` leaves the rank open", Severity.WARNING)]),
    ('"[M, *]"', [("SHP104", "*", "`*` says nothing about the size", Severity.WARNING)]),
    ("[M, K]", []),
    ('"[M, NC + 1, 2 * K]"', []),
    ('"[]"', []),
    ("7", []),
]


@pytest.mark.parametrize(("shape", "expected"), DECLARED)
def test_declared_shapes(shape: str, expected: list[tuple[str, str, str, Severity]]) -> None:
    linted = lint(f"inputs:\n  x: {{dtype: float16, shape: {shape}}}", codes=["SHP104"])
    seen = [
        (item.code, linted.text(item.place), item.message.removeprefix(NOT_A_LIST), item.severity)
        for item in linted.diagnostics
    ]
    assert [(code, message, severity) for code, _, message, severity in seen] == [
        (code, message, severity) for code, _, message, severity in expected
    ]
    assert [text.strip('"') for _, text, *_ in seen] == [text.strip('"') for _, text, *_ in expected]


@pytest.mark.parametrize("shape", ['"[M] | [M, K]"', '"[..., K]"', '"same_as(y)"'])
def test_an_old_tree_may_leave_a_shape_open(shape: str) -> None:
    declared = f"inputs:\n  x: {{dtype: float16, shape: {shape}}}"
    assert lint(declared, codes=["SHP104"], **{"opschema.toml": ""}).codes() == []
    assert lint(declared, codes=["SHP104"]).codes() == ["SHP104"]


STATIC = [
    ("x.shape[-1]", []),
    ("x.shape[dim]", []),
    (
        "x.shape[0] * 2",
        [("x.shape[0] * 2", "the static dimension `N` is `x.shape[0] * 2`; it must be one axis of an input, `x.shape[-1]`")],
    ),
    ("y.shape[0]", [("y", "the static dimension `N` reads `y`, which is not an input")]),
    ("x.shape[dims]", [("dims", "the axis `dims` of the static dimension `N` is neither an integer nor a param; is it `dim`?")]),
    (
        "y.shape[k]",
        [
            ("y", "the static dimension `N` reads `y`, which is not an input"),
            ("k", "the axis `k` of the static dimension `N` is neither an integer nor a param"),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STATIC)
def test_static_dimensions(text: str, expected: list[tuple[str, str]]) -> None:
    linted = lint(f"params: {{dim: {{type: int, default: 0}}}}\nstatic_dims:\n  N: {text}", codes=["SHP103"])
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics] == expected


def test_static_dimensions_of_malformed_inputs_are_left_alone() -> None:
    assert lint('inputs: [x, w]\nparams: 3\nstatic_dims: {N: "w.shape[dim]"}', codes=["SHP103"]).codes() == []


CONSTRAINTS = [
    ('{K: "64 | 128"}', []),
    ('{K: "divisible_by(8)", M: even, 2 * L: power_of_2}', []),
    ("{K: 64}", []),
    ("{N: even}", [("N", "`N` is not a dimension of `x`, whose shape is `[M, K, 2 * L]`")]),
    ("{L: even}", [("L", "`L` is not a dimension of `x`, whose shape is `[M, K, 2 * L]`")]),
    (
        "{K: power_of_two}",
        [
            (
                "power_of_two",
                "the constraint `power_of_two` is neither sizes such as `64 | 128` nor one of `power_of_2`, "
                "`divisible_by(k)`, `even`, `positive`",
            )
        ],
    ),
]


@pytest.mark.parametrize(("constraints", "expected"), CONSTRAINTS)
def test_constraints(constraints: str, expected: list[tuple[str, str]]) -> None:
    linted = lint(
        f'inputs:\n  x: {{dtype: float16, shape: "[M, K, 2 * L]", constraints: {constraints}}}', codes=["SHP105"]
    )
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics] == expected


def test_every_output_has_a_shape() -> None:
    outputs = "outputs:\n  y: {dtype: float16}\n  rest: {dtype: float16}\n  count: {dtype: int32, shape: '[]'}"
    linted = lint(f"{outputs}\nshape_rules: ['y.shape == x.shape']")
    message = "nothing says what shape `rest` has; declare its `shape`, or a rule `rest.shape == …`"
    assert found(linted) == [("SHP109", "rest", message)]


def test_a_size_called_like_a_tensor() -> None:
    inputs = 'inputs:\n  x: {dtype: float16, shape: "[B, S]"}\n  S: {dtype: float16, shape: "[B]"}'
    linted = lint(f"{inputs}\nshape_rules: ['S % 4 == 0 or S.ndim == B', 'y.shape == x.shape']", codes=SHAPES)
    message = "`S` is a tensor as well as a dimension, and in a rule it is the tensor; rename one of them"
    assert found(linted) == [("SHP111", "S", message)]
    assert linted.position(linted.diagnostics[0].place).column == 20


MALFORMED = [
    "shape_rules: 'y.shape == x.shape'",
    "shape_rules: {a: b}",
    "shape_rules: [1, null, [x], {a: 1}]",
    "inputs: {x: float16, y: [1]}\noutputs: null\nstatic_dims: [1]",
    "static_dims: {N: 3, 4: x, M: null, K: [1]}",
    "inputs: {x: {dtype: 1, shape: {a: 1}, constraints: [1]}}",
    "inputs: {x: {dtype: a, shape: null, constraints: {K: null, 1: [2]}}}",
    "inputs: {x: {dtype: a, shape: '[M]', constraints: {M: {a: 1}}}}",
]


@pytest.mark.parametrize("signature", MALFORMED)
def test_malformed_parts_are_left_to_the_structure_rule(signature: str) -> None:
    assert lint(signature).codes() == []


def test_a_name_without_a_value_is_an_error_where_the_specification_says_what_rules_may_call() -> None:
    texts = rules("y.shape == x.shape", "unknown.shape == x.shape")
    assert [item.severity for item in lint(texts).diagnostics] == [Severity.ERROR]
    silent = lint(texts, **{"opschema.toml": ""})
    assert [item.severity for item in silent.diagnostics if item.code == "SHP107"] == [Severity.WARNING]

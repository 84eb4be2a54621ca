"""Workload rows: their number, keys and labels, and whether the signature allows the calls that they describe."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

MANIFEST = "kit/manifest/example.yaml"


def files(rows: str, signature: str = "", status: str = "implemented", **others: str) -> dict[str, str]:
    """The sound entry with these rows, one a line, and parts of its signature replaced."""
    lines = "".join(f"\n  - {row.strip()}" for row in rows.strip().splitlines()) or " []"
    body = f"status: {status}\nworkloads:{lines}\n"
    if signature:
        body += "signature:\n" + "".join(f"  {line}\n" for line in signature.splitlines())
    return {**example_files([("yaml", body)]), **others}


def lint(codes: str, rows: str, signature: str = "", status: str = "implemented", **others: str) -> Linted:
    return lint_files([PACK], files(rows, signature, status, **others), codes.split())


def found(linted: Linted) -> list[tuple[str, str]]:
    """Text at the place, and message of each finding."""
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


OLD = {"opschema.toml": ""}
TWO = "{x_shape: [4, 8], dtypes: [float16], label: a}\n{x_shape: [8, 8], dtypes: [float16], label: b}"


def test_an_implemented_op_has_rows() -> None:
    assert found(lint("WKL101", "")) == [("workloads", "the implemented op has no workload row; it needs two")]
    assert found(lint("WKL101", "", **OLD)) == [("workloads", "the implemented op has no workload row; it needs one")]
    one = TWO.splitlines()[0]
    assert found(lint("WKL101", one)) == [("workloads", "the implemented op has one workload row; it needs two")]
    assert lint("WKL101", one, **OLD).codes() == []
    assert lint("WKL101", "", status="spec-only").codes() == []


def test_a_row_gives_every_required_param() -> None:
    params = "params:\n  a: {type: int}\n  b: {type: int}\n  c: {type: int, default: null}\n  d: {<<: {default: 1}}"
    rows = "{x_shape: [4], a: 1, b: null, dtypes: [float16]}\n{x_shape: [4], c: 1, dtypes: [float16]}"
    linted = lint("WKL102", rows, params)
    message = "the row gives no value to `a`, `b`, which the op cannot do without"
    assert found(linted) == [("{x_shape: [4], c: 1, dtypes: [float16]}", message)]
    assert [linted.text(side.place) for side in linted.diagnostics[0].related] == ["a", "b"]
    assert lint("WKL102", rows, params, **OLD).codes() == []


LABELS = [
    ("llama-8b-fp16", "float16", "fp16", "llama-8b"),
    ("fp16-llama", "float16", "fp16", "llama"),
    ("llama-bf16-8b", "bfloat16", "bf16", "llama-8b"),
    ("a-float8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "a"),
    ("a_e4m3", "float8_e4m3fn", "e4m3", "a"),
    ("a i8", "int8", "i8", "a"),
    ("a-ui8", "uint8", "ui8", "a"),
    ("fp16-4096", "float16", "fp16", '"4096"'),
    ("fp16-bf16-a", "float16, bfloat16", "fp16", "a"),
    ("fp16", "float16", "fp16", None),
    ("llama-8b-fp8-cache", "float16", None, None),
    ("s16-f16x", "float16", None, None),
    ("sixteen16", "int16", None, None),
]


@pytest.mark.parametrize(("label", "dtypes", "token", "bare"), LABELS)
def test_labels_name_no_dtype(label: str, dtypes: str, token: str | None, bare: str | None) -> None:
    rows = f"{{x_shape: [4], dtypes: [{dtypes}], label: {label}}}\n{{x_shape: [8], dtypes: [float64], label: z}}"
    linted = lint("WKL103", rows)
    assert [linted.text(item.place) for item in linted.diagnostics] == ([token] if token else [])
    texts, _ = fix_files([PACK], files(rows), ["WKL103"])
    assert [f"label: {bare}}}" in text for text in texts.values()] == ([True] if bare else [])


def test_a_label_fix_is_unsafe_where_two_rows_would_be_one_case() -> None:
    rows = "{x_shape: [4], dtypes: [float16], label: a-fp16}\n{x_shape: [8], dtypes: [{}], label: a}"
    [same] = lint("WKL103", rows.replace("{}", "float16, float32")).diagnostics
    assert same.fix is not None
    assert (same.fix.safety, same.fix.why_unsafe) == (
        "unsafe",
        "another row would run the same dtype under the same label",
    )
    [other] = lint("WKL103", rows.replace("{}", "float32")).diagnostics
    assert other.fix is not None
    assert (other.fix.safety, other.fix.title) == ("safe", "call the row `a`")


def test_keys_derive_from_the_only_input() -> None:
    rows = (
        "{input_shape: [4], dtypes: [float16], label: a}\n{x_shape: [4], eps: 1.0, __note: b, dtypes: [float16]}\n"
        "{x_shape: [4], axis: 1, dtypes: [float16]}\n{eps: 1.0, dtypes: [float16]}"
    )
    linted = lint("WKL104", rows)
    assert found(linted) == [
        ("input_shape", "`input_shape` is the shape of no input; the row must give the shape of `x` as `x_shape`"),
        ("axis", "`axis` is not a param of the op; a row has `x_shape`, `dtypes`, `label` and params"),
        ("{eps: 1.0, dtypes: [float16]}", "the row has no `x_shape`, which gives the shape of the input"),
    ]
    texts, left = fix_files([PACK], files(rows), ["WKL104"], unsafe=True)
    assert "- {x_shape: [4], dtypes: [float16], label: a}" in texts[MANIFEST]
    assert len(left.diagnostics) == 2
    assert lint("WKL104", rows, **OLD).codes() == []


@pytest.mark.parametrize(
    ("rows", "signature"),
    [
        ("{kv_shape: [4], dtypes: [float16]}", "inputs:\n  q: {dtype: a}\n  k: {dtype: a}"),
        ("{m: 4, n: 8, dtypes: [float16]}", ""),
        ("{x_shape: [4], axis: 1, dtypes: [float16]}", "params: [axis]"),
    ],
)
def test_keys_that_are_free(rows: str, signature: str) -> None:
    assert lint("WKL104", rows, signature).codes() == []


def test_a_param_called_like_a_reserved_key() -> None:
    linted = lint("WKL104", TWO, "params: {label: {type: str}}")
    message = "the param `label` cannot be given in a row, where that key means something else; rename it"
    assert found(linted) == [("label", message)]


OPTIONAL = 'inputs:\n  x: {dtype: float16}\n  bias: {dtype: "same_as(x)", optional: true}'
BIASED = "{x_shape: [4], bias_shape: [4], dtypes: [float16]}"


def test_optional_inputs_are_passed_and_left_out() -> None:
    assert found(lint("WKL105", TWO, OPTIONAL)) == [
        ("bias", "no workload row passes the optional input `bias`; add one with `bias_shape`")
    ]
    assert found(lint("WKL105", BIASED, OPTIONAL)) == [
        ("bias", "every workload row passes the optional input `bias`; add one without `bias_shape`")
    ]
    assert lint("WKL105", f"{TWO}\n{BIASED}", OPTIONAL).codes() == []
    assert lint("WKL105", TWO, OPTIONAL, status="spec-only").codes() == []
    assert lint("WKL105", TWO, OPTIONAL, **OLD).codes() == []


def test_rows_that_repeat() -> None:
    rows = (
        "{x_shape: [4], dtypes: [float16, float32], label: a}\n{dtypes: [float32, float16], x_shape: [4], label: a}\n"
        "{x_shape: [4], dtypes: [float16, float32], label: b}\n{x_shape: [4], dtypes: [float16], label: a}\n"
        "{x_shape: [4], eps: 1, dtypes: [float16]}\n{x_shape: [4], eps: 1.0, dtypes: [float16]}"
    )
    linted = lint("WKL106", rows)
    assert [(item.message, item.severity) for item in linted.diagnostics] == [
        ("the row repeats another one; drop it", Severity.ERROR),
        ("the row measures what `a` measures; only their labels differ", Severity.WARNING),
    ]
    assert [linted.text(item.place)[:20] for item in linted.diagnostics] == [
        "{dtypes: [float32, f",
        "{x_shape: [4], dtype",
    ]
    texts, left = fix_files([PACK], files(rows), ["WKL106"])
    assert texts[MANIFEST].count("label: a") == 2
    assert len(left.diagnostics) == 1


# What the rows mean.

WEIGHTED = """\
inputs:
  x: {dtype: float16}
  weight: {dtype: "same_as(x)", optional: true}
params:
  dim: {type: "int | tuple[int, ...]", default: -1}
  flag: {type: bool, default: true}
"""


def broken(rule: str, rows: str, signature: str = WEIGHTED) -> list[tuple[str, str]]:
    return found(lint("WKL201", rows, f'{signature}\nshape_rules: ["{rule}", "y.shape == x.shape"]'))


GOOD_ROW = "{x_shape: [4, 8], dtypes: [float16]}"


def test_a_row_that_breaks_a_rule() -> None:
    rows = f"{GOOD_ROW}\n{{x_shape: [4, 8], weight_shape: [4], dtypes: [float16]}}"
    assert broken("weight is None or weight.shape == (x.shape[1],)", rows) == [
        (
            "{x_shape: [4, 8], weight_shape: [4], dtypes: [float16]}",
            "the row breaks the shape rule `weight is None or weight.shape == (x.shape[1],)`: "
            "`weight.shape` is (4,), `x.shape` is (4, 8)",
        )
    ]


def test_the_place_is_the_one_value_that_the_rule_reads_and_its_default_is_shown() -> None:
    rows = f"{GOOD_ROW}\n{{x_shape: [4, 8], weight_shape: [8], dtypes: [float16]}}"
    linted = lint("WKL201", rows, f'{WEIGHTED}\nshape_rules: ["weight is None or not flag", "y.shape == x.shape"]')
    reason = "`weight.shape` is (8,), `flag` is True by default"
    assert found(linted) == [("[8]", f"the row breaks the shape rule `weight is None or not flag`: {reason}")]
    assert [(linted.text(side.place), side.message) for side in linted.diagnostics[0].related] == [
        ('"weight is None or not flag"', "every call must satisfy this"),
        ("{type: bool, default: true}", "the default of `flag`"),
    ]
    assert linted.diagnostics[0].severity is Severity.ERROR


def test_a_rule_that_no_row_satisfies_is_one_finding_at_the_rule() -> None:
    rows = "{x_shape: [4, 8], dtypes: [float16]}\n{x_shape: [2, 8], dtypes: [float16]}"
    assert broken("x.shape[0] == 3", rows) == [
        (
            '"x.shape[0] == 3"',
            "none of the 2 workload rows satisfies the shape rule `x.shape[0] == 3`: in the first, `x.shape` is (4, 8)",
        )
    ]


def test_rules_that_contradict_each_other() -> None:
    rules = '"y.shape == tuple(x.shape[i] for i in range(x.ndim) if i not in [dim])", "y.ndim == x.ndim - 1"'
    linted = lint("WKL201", TWO, f"params: {{dim: {{type: int, default: -1}}}}\nshape_rules: [{rules}]")
    reason = "`y.shape` is (4, 8), `x.shape` is (4, 8)"
    message = f"none of the 2 workload rows satisfies the shape rule `y.ndim == x.ndim - 1`: in the first, {reason}"
    assert found(linted) == [('"y.ndim == x.ndim - 1"', message)]
    assert linted.diagnostics[0].related[-1].message == "gives `y.shape`"


ALLOWED = [
    # dim is a tuple, whatever YAML makes of it
    ("dim == (0, 1)", "{x_shape: [4, 8], dim: [0, 1], dtypes: [float16]}"),
    # an aggregate key gives no shape
    ("weight is None or weight.shape == x.shape", "{x_shape: [4], w_shape: [5], dtypes: [float16]}"),
    # no such size is known
    ("x.shape[0] % H == 0", "{x_shape: [4], dtypes: [float16]}"),
    # the row does not say which value it passes
    ("flag", "{x_shape: [4], flag: maybe, dtypes: [float16]}"),
    ("x.shape == (B, S)", "{x_shape: [4, 8], B: 4, dtypes: [float16]}"),
    ("x.shape[0] > 0", "{x_shape: four, dtypes: [float16]}"),
    ("x.shape[0] > 0", "{x_shape: [-4], dtypes: [float16]}"),
]


@pytest.mark.parametrize(("rule", "row"), ALLOWED)
def test_what_a_row_leaves_open_breaks_nothing(rule: str, row: str) -> None:
    assert broken(rule, f"{row}\n{row}") == []


def test_a_size_that_a_row_gives_by_name() -> None:
    rows = f"{{x_shape: [4, 8], B: 5, dtypes: [float16]}}\n{GOOD_ROW}"
    assert broken("x.shape == (B, S)", rows) == [
        (
            "{x_shape: [4, 8], B: 5, dtypes: [float16]}",
            "the row breaks the shape rule `x.shape == (B, S)`: `x.shape` is (4, 8), `B` is 5",
        )
    ]


SHAPED = 'inputs:\n  x: {dtype: float16, shape: "[M, N]"}\n  S: {dtype: float16, shape: "[M, S]", optional: true}'


def test_declared_shapes_hold_for_rows() -> None:
    rows = f"{{x_shape: [4, 8, 2], dtypes: [float16]}}\n{GOOD_ROW}\n{{x_shape: [4, 8], S_shape: [3, 3], dtypes: [float16]}}"
    assert found(lint("WKL201", rows, SHAPED)) == [
        ("[4, 8, 2]", "the row breaks the declared shape of `x`, `[M, N]`: `x.shape` is (4, 8, 2)"),
        (
            "{x_shape: [4, 8], S_shape: [3, 3], dtypes: [float16]}",
            "the row breaks the declared shape of `S`, `[M, S]`: `S.shape` is (3, 3), `M` is 4",
        ),
    ]


def test_static_dimensions_hold_for_rows() -> None:
    signature = 'params: {}\nstatic_dims: {N: "x.shape[-1]"}'
    assert found(lint("WKL201", f"{{x_shape: [4, 8], N: 9, dtypes: [float16]}}\n{GOOD_ROW}", signature)) == [
        (
            "{x_shape: [4, 8], N: 9, dtypes: [float16]}",
            "the row breaks the static dimension `N`, which is `x.shape[-1]`: `N` is 9, `x.shape` is (4, 8)",
        )
    ]


def test_a_param_that_is_none_is_no_size() -> None:
    signature = 'inputs:\n  x: {dtype: float16, shape: "[M, N]"}\nparams: {N: {type: "int | None", default: null}}'
    assert lint("WKL201 WKL202", f"{GOOD_ROW}\n{GOOD_ROW}", signature).codes() == []


def test_rules_that_fail() -> None:
    signature = 'shape_rules: ["x.shape[2] > 0", "x.numel() > 0", "y.shape == x.shape", "H[0] == 1"]'
    linted = lint("WKL202", TWO, signature)
    assert found(linted) == [
        ('"x.shape[2] > 0"', "the shape rule `x.shape[2] > 0` cannot be evaluated: tuple index out of range"),
        ('"x.numel() > 0"', "the shape rule `x.numel() > 0` cannot be evaluated: the attribute `.numel` cannot be used here"),
    ]  # fmt: skip
    assert [linted.text(side.place) for item in linted.diagnostics for side in item.related] == [
        TWO.splitlines()[0]
    ] * 2


def test_a_row_that_breaks_a_rule_does_not_make_others_fail() -> None:
    signature = 'shape_rules: ["x.ndim == 3", "x.shape[2] > 0", "y.shape == x.shape"]'
    assert lint("WKL201 WKL202", TWO, signature).codes() == ["WKL201"]


CONSTRAINED = [
    ("power_of_2", [("[4, 12]", 12)]),
    ("even", []),
    ("positive", []),
    ("8 | 16", [("[4, 12]", 12)]),
    ("divisible_by(8)", [("[4, 12]", 12)]),
    ("divisible_by(k)", []),
    ("divisible_by(0)", []),
    ("round", []),
]


@pytest.mark.parametrize(("constraint", "expected"), CONSTRAINED)
def test_constraints_hold_for_rows(constraint: str, expected: list[tuple[str, int]]) -> None:
    signature = f'inputs:\n  x: {{dtype: float16, shape: "[M, N]", constraints: {{N: {constraint}}}}}'
    rows = "{x_shape: [4, 12], dtypes: [float16]}\n{x_shape: [4, 16], dtypes: [float16]}"
    message = "the row gives `N` of `x` the size {}, which its constraint excludes"
    assert found(lint("WKL203", rows, signature)) == [(text, message.format(size)) for text, size in expected]


MALFORMED = [
    "1",
    "[x_shape, 4]",
    "{x_shape: {a: 1}, dtypes: 3, label: [a]}",
    "{1: 2, null: 3, [a]: 4, dtypes: [1, null, {a: 1}], label: 7}",
    "{x_shape: [[4]], eps: [[1], {a: b}], dtypes: null}",
    "{x_shape: [0x" + "f" * 3000 + "], N: 0x" + "f" * 3000 + ", dtypes: [0x" + "f" * 3000 + "]}",
]
ALL = "WKL101 WKL102 WKL103 WKL105 WKL106 WKL201 WKL202 WKL203"


@pytest.mark.parametrize("row", MALFORMED)
def test_malformed_rows_are_left_to_the_structure_rule(row: str) -> None:
    assert lint(ALL, f"{row}\n{{x_shape: [4], dtypes: [float16]}}").codes() == []


def test_rows_behind_aliases_and_merges() -> None:
    rows = "&a {x_shape: [4], dtypes: [float16], label: a}\n*a\n{<<: *a, label: b}\n{<<: *a, x_shape: [4, 4], label: b-fp16}"
    linted = lint("WKL103 WKL106 WKL201 WKL202", rows, 'shape_rules: ["x.ndim == 1", "y.shape == x.shape"]')
    assert [(item.code, linted.text(item.place)) for item in linted.diagnostics] == [
        ("WKL106", "*a"),
        ("WKL106", "{<<: *a, label: b}"),
        ("WKL201", "[4, 4]"),
        ("WKL103", "fp16"),
    ]
    texts, _ = fix_files([PACK], files(rows), ["WKL106"])
    assert texts[MANIFEST].count("- *a") == 0

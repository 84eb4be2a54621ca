"""Dtype expressions, combinations of dtypes, and the dtypes that rows run."""

# ruff: noqa: E501 - a table of messages, one a line

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML = "kit/manifest/example.yaml"


def files(signature: str, rows: str = "") -> dict[str, str]:
    return example_files([("yaml", f"signature:\n{signature}{rows}")])


def lint(signature: str, code: str, rows: str = "") -> Linted:
    return lint_files([PACK], files(signature, rows), [code])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def tensors(y: str = "same_as(x)", **inputs: str) -> str:
    listed = "".join(f'    {name}: {{dtype: "{text}"}}\n' for name, text in inputs.items())
    return f'  inputs:\n{listed}  outputs:\n    y: {{dtype: "{y}"}}\n'


def combos(*rows: str) -> str:
    return "  dtype_combos:\n" + "".join(f"    - {{{row}}}\n" for row in rows)


@pytest.mark.parametrize(
    ("written", "place", "message", "fixed"),
    [
        ("fp16", "fp16", "the dtype of `x` is `fp16`, which torch does not have; did you mean `float16`?", "float16"),
        (
            "int8 | BF16",
            "BF16",
            "the dtype of `x` is `BF16`, which torch does not have; did you mean `bfloat16`?",
            "int8 | bfloat16",
        ),
        (
            "torch.float32",
            "torch.float32",
            "the dtype of `x` is `torch.float32`, which torch does not have; did you mean `float32`?",
            "float32",
        ),
        ("float16 | ", '"float16 | "', "the dtype of `x` has an empty alternative: `float16 | `", "float16"),
    ],
)
def test_a_spelling_without_doubt_is_written_out(written: str, place: str, message: str, fixed: str) -> None:
    signature = tensors(x=written)
    assert found(lint(signature, "DTY101")) == [(place, message)]
    texts, after = fix_files([PACK], files(signature), ["DTY101"])
    assert f'x: {{dtype: "{fixed}"}}' in texts[YAML]
    assert after.codes() == []


def test_the_closest_name_is_a_guess() -> None:
    before = files(tensors(x="flaot16"))
    assert fix_files([PACK], before, ["DTY101"])[0] == {}
    assert 'dtype: "float16"' in fix_files([PACK], before, ["DTY101"], unsafe=True)[0][YAML]


def test_malformed_functions() -> None:
    assert found(lint(tensors(x="float16", w="sameas(x) | same_as(x"), "DTY101")) == [
        (
            "sameas(x)",
            "`sameas(x)` is neither a dtype nor `same_as(x)` or `promote_int_to_float(x)`; did you mean `same_as(…)`?",
        ),
        (
            "same_as(x",
            "`same_as(x` is neither a dtype nor `same_as(x)` or `promote_int_to_float(x)`; did you mean `same_as(…)`?",
        ),
    ]


def test_a_row_lists_one_dtype_an_item() -> None:
    rows = 'workloads:\n  - {x_shape: [4], dtypes: [fp32, float16, "int8 | int16", same_as(x), 3, no]}\n'
    assert found(lint(tensors(x="float16"), "DTY101", rows)) == [
        ("fp32", "a row's dtype is `fp32`, which torch does not have; did you mean `float32`?"),
        ('"int8 | int16"', "`int8 | int16` is not one dtype; a row lists each by its name"),
        ("same_as(x)", "`same_as(x)` is not one dtype; a row lists each by its name"),
    ]


def test_the_list_of_the_tree_s_validator_counts() -> None:
    spec = "status signature workloads roofline shape_rules\n_TORCH_DTYPES = {\n    'float16',\n    'float32',\n}\n"
    before = {
        **files(tensors(x="half | uint16 | float32")),
        "opschema.toml": "",
        "scripts/validate.py": f'"""{spec}"""\n',
    }
    assert found(lint_files([PACK], before, ["DTY101"])) == [
        ("half", "the dtype of `x` is `half`, which the tree's validator does not accept; write `float16`"),
        ("uint16", "the dtype of `x` is `uint16`, which the tree's validator does not accept"),
    ]
    assert found(lint(tensors(x="half | uint16 | float8_e4m3"), "DTY101")) == []


def test_same_as_names_a_tensor() -> None:
    signature = tensors(y="same_as(inptu)", input="float16") + "  params:\n    n: {type: int}\n"
    linted = lint(signature, "DTY102")
    assert found(linted) == [
        ("inptu", "`y` takes its dtype from `inptu`, which the signature does not declare; did you mean `input`?")
    ]
    texts, _ = fix_files([PACK], files(signature), ["DTY102"], unsafe=True)
    assert 'y: {dtype: "same_as(input)"}' in texts[YAML]
    assert found(lint(signature.replace("inptu", "n"), "DTY102")) == [
        ("n", "`y` takes its dtype from `n`, which is a param, not a tensor")
    ]


@pytest.mark.parametrize("broken", ["  inputs: [x]\n", "  inputs: {x: 3}\n", "  inputs: {<<: {x: {dtype: int8}}}\n"])
def test_nothing_is_unknown_where_a_tensor_may_be_missing(broken: str) -> None:
    signature = (
        broken + "  outputs:\n    y: {dtype: promote_int_to_float(x)}\n    z: {dtype: same_as(x)}\n" + combos("x: int8")
    )
    assert found(lint_files([PACK], files(signature), ["DTY102", "DTY104", "DTY105", "DTY106", "DTY107"])) == []


def test_a_circle_is_shown_once() -> None:
    linted = lint(tensors(x="same_as(w)", w="same_as(v)", v="same_as(x)"), "DTY103")
    message = "these take their dtype from each other: `x` → `w` → `v` → `x`; give one of them a dtype"
    assert found(linted) == [("same_as(w)", message)]
    assert [other.message for other in linted.diagnostics[0].related] == ["the dtype of `w`", "the dtype of `v`"]
    assert found(lint(tensors(x="same_as(x)"), "DTY103")) == [
        ("same_as(x)", "`x` takes its dtype from itself; give it one")
    ]


def test_promotion_is_said_of_outputs_and_refers_to_inputs() -> None:
    assert found(lint(tensors(x="int8", w="promote_int_to_float(x)"), "DTY104")) == [
        ("promote_int_to_float(x)", "`w` is an input; `promote_int_to_float` says what an output is")
    ]
    assert found(lint(tensors(x="int8", y="float64 | promote_int_to_float(z)"), "DTY104")) == [
        ("z", "`promote_int_to_float(z)` must refer to an input, and `z` is not one")
    ]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("x: float16, w: int8, z: int8", [("z", "`z` is not a tensor of the signature")]),
        ("x: float16, wx: int8", [("wx", "`wx` is not a tensor of the signature; did you mean `w`?")]),
        ("w: int8", [("{w: int8}", "the row has no column for `x`; every input has one")]),
        ("x: float16, w: 8", [("8", "`w` has no dtype in this row: `8` is not the name of a dtype")]),
        ("x: float16, w: ", [("", "`w` has no dtype in this row: the column is empty")]),
        ("x: 'float16 | int8', w: int8", [("'float16 | int8'", "`x` has no dtype in this row: `float16 | int8` is more than one dtype; write a row for each")]),
        ("x: float16, w: promote_int_to_float(x)", [("promote_int_to_float(x)", "`w` has no dtype in this row: `promote_int_to_float(x)` may be more than one dtype; write a row for each")]),
        ("x: float61, w: same_as(x)", [("float61", "`x` has no dtype in this row: `float61` is not a dtype of torch; did you mean `float64`?")]),
        ("x: float16, w: same_as(q)", [("same_as(q)", "`w` has no dtype in this row: `same_as(q)` leads to no dtype, because the row has no `q`")]),
        ("x: same_as(w), w: same_as(x)", [("same_as(w)", "`x` has no dtype in this row: `same_as(w)` leads to no dtype, because it leads back to itself"),
                                          ("same_as(x)", "`w` has no dtype in this row: `same_as(x)` leads to no dtype, because it leads back to itself")]),
        ("x: float16, w: same_as(x)", []),
        ("x: float16, w: int8, y: float16", []),
        ("x: float16, w: int8, y: int8", [("int8", "`y` is `int8` and `x` is `float16`, but `y` is declared `same_as(x)`")]),
    ],
)  # fmt: skip
def test_a_row_pins_one_dtype_for_each_input(row: str, expected: list[tuple[str, str]]) -> None:
    signature = tensors(x="float16 | int8", w="float16 | int8") + combos(row)
    assert found(lint(signature, "DTY105")) == expected


def test_a_merged_row_may_have_every_column() -> None:
    rows = "  dtype_combos:\n    - &a {x: float16, w: int8}\n    - {<<: *a, w: float16}\n"
    assert found(lint(tensors(x="float16", w="float16 | int8") + rows, "DTY105")) == []


def test_malformed_combinations_are_the_business_of_the_structure_rule() -> None:
    for rows in ("  dtype_combos: {x: float16}\n", "  dtype_combos: [x, [float16], 3]\n", "  dtype_combos:\n"):
        assert (
            found(lint_files([PACK], files(tensors(x="float16 | float32") + rows), ["DTY105", "DTY106", "DTY107"]))
            == []
        )


def test_no_row_widens_a_union() -> None:
    linted = lint(
        tensors(x="float16 | half", w="int8", y="promote_int_to_float(w)") + combos("x: float32, w: int8, y: int8"),
        "DTY106",
    )
    assert found(linted) == [
        ("float32", "`x` cannot be `float32`: its dtype is `float16 | half`"),
        ("int8", "`y` cannot be `int8`: its dtype is `promote_int_to_float(w)`"),
    ]
    assert found(lint(tensors(x="half", w="int8") + combos("x: float16, w: int8, y: float16"), "DTY106")) == []


def row(dtypes: str) -> str:
    return f"workloads:\n  - {{x_shape: [4], dtypes: [{dtypes}]}}\n"


def test_a_row_runs_what_some_tensor_can_be() -> None:
    linted = lint(tensors(x="bool", w="float16"), "DTY107", row("float16, bool, half, int8, flaot16"))
    assert found(linted) == [("int8", "the row runs `int8`, but no tensor of the op can have it")]


def test_where_combinations_are_listed_one_of_them_has_it() -> None:
    signature = tensors(x="float16 | int8", w="float16 | int8") + combos("x: float16, w: float16")
    linted = lint(signature, "DTY107", row("float16, int8"))
    message = "the row runs `int8`, but no row of `dtype_combos` has it; add the combination, or drop the dtype"
    assert found(linted) == [("int8", message)]
    assert [linted.text(other.place) for other in linted.diagnostics[0].related] == ["dtype_combos"]


@pytest.mark.parametrize(
    "signature",
    [
        tensors(x="float16") + "  params:\n    out_dtype: {type: torch.dtype}\n",
        tensors(x="float16", w="same_as(q)"),
        tensors(x="flaot16"),
        tensors(x="float16", y="same_as(x) | int8"),
        tensors(x="float16 | int8", w="float16") + combos("x: float16, w: same_as(q)"),
    ],
)
def test_what_may_run_it_is_not_judged(signature: str) -> None:
    assert found(lint(signature, "DTY107", row("int8"))) == []


def test_an_input_and_an_output_of_one_name_are_two_tensors() -> None:
    signature = "  inputs:\n    x: {dtype: int8}\n    y: {dtype: float16}\n  outputs:\n    y: {dtype: same_as(y)}\n"
    codes = ["DTY102", "DTY103", "DTY107"]
    assert found(lint_files([PACK], files(signature, row("float16, int8")), codes)) == []


def test_a_combination_that_repeats_another() -> None:
    rows = (
        "x: float16, w: int8",
        "x: half, w: int8",
        "w: int8, x: float32",
        "x: int8, w: same_as(x)",
        "w: int8, x: int8",
    )
    signature = tensors(x="float16 | float32 | int8", w="int8") + combos(*rows)
    linted = lint(signature, "DTY108")
    message = "the row repeats another combination; drop it, or correct what was meant"
    assert found(linted) == [("{x: half, w: int8}", message), ("{w: int8, x: int8}", message)]
    assert [linted.text(side.place) for item in linted.diagnostics for side in item.related] == [
        "{x: float16, w: int8}",
        "{x: int8, w: same_as(x)}",
    ]
    texts, after = fix_files([PACK], files(signature), ["DTY108"])
    assert texts[YAML] == files(signature)[YAML].replace("      - {x: half, w: int8}\n", "").replace(
        "      - {w: int8, x: int8}\n", ""
    )
    assert after.codes() == []


@pytest.mark.parametrize(
    ("rows", "fixable"),
    [
        ("    - {x: int8, w: int8}\n    # why\n    - {x: int8, w: int8}\n", "unsafe"),
        ("    - {x: int8, w: int8}\n    - x: int8  # why\n      w: int8\n", ""),
    ],
)
def test_no_comment_is_lost_with_a_combination(rows: str, fixable: str) -> None:
    signature = tensors(x="int8", w="int8") + "  dtype_combos:\n" + rows
    assert lint(signature, "DTY108").codes() == ["DTY108"]
    assert fix_files([PACK], files(signature), ["DTY108"])[0] == {}
    assert bool(fix_files([PACK], files(signature), ["DTY108"], unsafe=True)[0]) == bool(fixable)


@pytest.mark.parametrize(
    "rows",
    [
        ("x: int8, w: int8", "x: int8"),  # `w` is open
        ("x: int9, w: int8", "x: int9, w: int8"),  # DTY105's
        ("x: int8 | int16, w: int8", "x: int8 | int16, w: int8"),
        ("x: int8, w: same_as(q)", "x: int8, w: same_as(q)"),
        ("",) * 2,
    ],
)
def test_combinations_that_are_not_known_to_be_one(rows: tuple[str, ...]) -> None:
    assert found(lint(tensors(x="int8", w="int8") + combos(*rows), "DTY108")) == []

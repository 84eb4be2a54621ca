"""The values in a single row: labels, values of params, shapes; and omitted shapes."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML = "kit/manifest/example.yaml"
ROW = "x_shape: [4], dtypes: [float16]"


def files(row: str, signature: str = "", **others: str) -> dict[str, str]:
    lines = "".join(f"\n  - {{{item.strip()}}}" for item in row.strip().splitlines())
    body = f"workloads:{lines}\n"
    if signature:
        body += "signature:\n" + "".join(f"  {line}\n" for line in signature.splitlines())
    return {**example_files([("yaml", body)]), **others}


def lint(code: str, row: str, signature: str = "", **others: str) -> Linted:
    return lint_files([PACK], files(row, signature, **others), [code])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


OLD = {"opschema.toml": ""}


@pytest.mark.parametrize(
    ("label", "number"), [("1.10", "1.1"), ("4_096", "4096"), ("0x10", "16"), (".5", "0.5"), ("+7", "7"), ("1.", "1.0")]
)
def test_a_label_that_is_another_number(label: str, number: str) -> None:
    linted = lint("WKL107", f"{ROW}, label: {label}")
    message = f"the label `{label}` is the number {number}, and that is what the row is called; quote it"
    assert found(linted) == [(label, message)]
    assert linted.diagnostics[0].severity is Severity.ERROR
    texts, after = fix_files([PACK], files(f"{ROW}, label: {label}"), ["WKL107"])
    assert f'label: "{label}"}}' in texts[YAML]
    assert after.codes() == []


@pytest.mark.parametrize(
    ("label", "place", "message"),
    [
        ("~", "~", "the label is `~`, so the row is called `None`; name it, or drop `label`"),
        ("", "label", "the label is empty, so the row is called `None`; name it, or drop `label`"),
        ("' '", "' '", "the label is blank, so the row has a name that nobody sees; name it, or drop `label`"),
    ],
)
def test_a_label_that_names_nothing(label: str, place: str, message: str) -> None:
    linted = lint("WKL107", f"{ROW}, label: {label}, eps: 1.0")
    assert found(linted) == [(place, message)]
    assert linted.diagnostics[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    "label",
    [
        "4096",
        "1.5",
        "-3",
        "'1.10'",
        "llama-8b",
        "1e5",
        "'~'",
        "!!str 1.10",
        "010",
        "12:30",
        "no",
        "[a]",
        "true",
        "1.10.2",
    ],
)
def test_labels_that_are_read_as_written_or_are_reported_elsewhere(label: str) -> None:
    assert found(lint("WKL107", f"{ROW}, label: {label}")) == []


def test_a_row_without_label_is_sound() -> None:
    assert found(lint("WKL107", ROW)) == []


def given(kind: str, value: str, default: str = "") -> Linted:
    return lint("WKL108", f"{ROW}, p: {value}", f'params:\n  p: {{type: "{kind}"{default}}}')


@pytest.mark.parametrize(
    ("kind", "value", "advice"),
    [
        ("int", '"5"', "; write `5` without quotes"),
        ("int | tuple[int, int]", "five", ""),
        ("int | tuple[int, int]", "[3, 3, 3]", ""),
        ("list[int]", "[3, '3']", ""),
        ("int", "3.0", ""),
        ("int", "[3]", ""),
        ("bool", "'yes'", "; write `yes` without quotes"),
        ("bool", "1", ""),
        ("str", "3", ""),
        ("float", "{a: 1}", ""),
        ("Literal['sum', 'mean']", "max", ""),
        ("torch.dtype", "float61", ""),
        ("int", "null", ""),
    ],
)
def test_a_param_gets_no_value_of_another_type(kind: str, value: str, advice: str) -> None:
    linted = given(kind, value)
    assert found(linted) == [
        (value, f"the row gives `p` the value `{value}`, which its type `{kind}` does not admit{advice}")
    ]
    assert [linted.text(side.place).strip('"') for side in linted.diagnostics[0].related] == [kind]


def test_null_for_a_param_with_a_default() -> None:
    message = "the row gives `p` the value `~`, which its type `int` does not admit; leave the key out for the default"
    assert found(given("int", "~", ", default: 1")) == [("~", message)]
    assert found(given("int", "~", ", default: null")) == []  # MAN202's


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("float", "1"),
        ("float | None", "null"),
        ("int | tuple[int, int]", "[3, 3]"),
        ("int | list[int] | tuple[int, ...] | None", "[]"),
        ("torch.dtype", "float16"),
        ("torch.dtype", "torch.bfloat16"),
        ("str", "constant"),
        ("Reduction", "mean"),  # it may be any class
        ("Reduction | int", "mean"),
        ("torch.Tensor | None", "[1, 2]"),
        ("Any", "{a: 1}"),
        ("float", "1e-6"),  # YML102's
        ("list[float]", "[1e-6]"),
        ("int", "!!int '3'"),
        ("int (positive)", "'5'"),  # MAN201's
        ("bool", "no"),
        ("Number", ".inf"),
    ],
)
def test_values_that_fit_or_are_not_judged(kind: str, value: str) -> None:
    assert found(given(kind, value)) == []


@pytest.mark.parametrize(
    ("shape", "place", "message"),
    [
        ("[2, -3]", "-3", "`x_shape` has the size `-3`; a size is an integer from 0 up"),
        ("[2, 'n']", "'n'", "`x_shape` has the size `'n'`; a size is an integer from 0 up"),
        (
            "[2, '3']",
            "'3'",
            "`x_shape` has the size `'3'`; a size is an integer from 0 up; write `3` without quotes",
        ),
        ("[2, 4.0]", "4.0", "`x_shape` has the size `4.0`; a size is an integer from 0 up"),
        ("[2, true]", "true", "`x_shape` has the size `true`; a size is an integer from 0 up"),
        ("[2, [3]]", "[3]", "`x_shape` has the size `[3]`; a size is an integer from 0 up"),
        ("8", "8", "`x_shape` is `8`; a row gives a shape as a list of sizes; write `[8]`"),
        ("4x8", "4x8", "`x_shape` is `4x8`; a row gives a shape as a list of sizes, `[4, 8]`"),
        ("", "x_shape", "`x_shape` is empty; a row gives a shape as a list of sizes, `[4, 8]`"),
    ],
)
def test_a_shape_is_a_list_of_sizes(shape: str, place: str, message: str) -> None:
    assert found(lint("WKL108", f"x_shape: {shape}, dtypes: [float16]")) == [(place, message)]


@pytest.mark.parametrize(
    "row",
    [
        "x_shape: [], dtypes: [float16]",
        "x_shape: [0, 4], dtypes: [float16]",
        "x_shape: [0x10, 1_024], dtypes: [float16]",
        "x_shape: [1e3], dtypes: [float16]",  # YML102's
        "x_shape: [[4], [8]], dtypes: [float16]",  # perhaps a list of tensors
        "x_shape: [4], kv_shape: [n, -1], dims: [-1], dtypes: [float16]",  # no tensors
        "x_shape: [4], bias_shape: null, dtypes: [float16]",
    ],
)
def test_shapes_that_are_sound_or_not_judged(row: str) -> None:
    signature = "inputs:\n  x: {dtype: float16}\n  bias: {dtype: same_as(x), optional: true}"
    assert found(lint("WKL108", row, signature)) == []


def test_an_older_tree_may_write_shapes_otherwise_but_no_negative_sizes() -> None:
    rows = "x_shape: 8, dtypes: [float16]\nx_shape: [n, -8, 0.5], dtypes: [float16]"
    assert [text for text, _ in found(lint("WKL108", rows, **OLD))] == ["-8", "0.5"]


def test_a_value_that_a_merge_brings_is_one_finding() -> None:
    merged = "&a x_shape: [4, -1], dtypes: [float16]\n<<: *a, label: b\n<<: *a, x_shape: [4]"
    text = files(merged)[YAML].replace("{&a ", "&a {")
    linted = lint_files([PACK], {**files(merged), YAML: text}, ["WKL108"])
    assert [linted.text(item.place) for item in linted.diagnostics] == ["-1"]


def test_a_value_of_the_wrong_type_breaks_no_shape_rule() -> None:
    signature = 'params:\n  k: {type: int}\nshape_rules: ["k % 2 == 1", "y.shape == x.shape"]'
    assert lint("WKL", f"{ROW}, k: 2.0\n{ROW}, k: 3", signature).codes() == ["WKL108"]


# Shapes that are left out.

TWO = "inputs:\n  x: {dtype: float16}\n  w: {dtype: same_as(x)}\n  b: {dtype: same_as(x), optional: true}"


def test_a_row_without_a_shape_that_the_others_give() -> None:
    linted = lint("WKL109", f"{ROW}, w_shape: [4], label: a\n{ROW}, eps: 1.0, b_shape: [4], label: b", TWO)
    message = "the row has no `w_shape`, which the other rows have: it does not describe the input `w`"
    assert found(linted) == [(f"{{{ROW}, eps: 1.0, b_shape: [4], label: b}}", message)]
    assert [linted.text(side.place) for side in linted.diagnostics[0].related] == ["w_shape", "w"]


@pytest.mark.parametrize(
    "rows",
    [
        f"{ROW}\n{ROW}, label: b",  # the family knows it otherwise
        f"{ROW}, w_shape: [4]\n{ROW}, xw_shape: [4]",  # an aggregate in its place
        f"{ROW}, w_shape: [4]\n{ROW}, K: 4",
        f"{ROW}, w_shape: [4], b_shape: [4]\n{ROW}, w_shape: [4]",  # it is optional
        f"&a {ROW}, w_shape: [4]\n<<: *a, label: b",
    ],
)
def test_shapes_that_are_given_otherwise(rows: str) -> None:
    text = files(rows, TWO)[YAML].replace("{&a ", "&a {")
    assert found(lint_files([PACK], {**files(rows, TWO), YAML: text}, ["WKL109"])) == []


@pytest.mark.parametrize(
    "asking", ['row.get("w_shape", row["x_shape"])', 'row["x_shape"] if "w_shape" not in row else 0']
)
def test_a_benchmark_that_asks_for_the_key(asking: str) -> None:
    bench = {"benchmarks/bench_example.py": f"def shapes(row):\n    return {asking}\n"}
    rows = f"{ROW}, w_shape: [4]\n{ROW}, label: b"
    assert lint("WKL109", rows, TWO).codes() == ["WKL109"]
    assert lint("WKL109", rows, TWO, **bench).codes() == []


def test_a_single_input_is_the_business_of_the_keys() -> None:
    assert lint("WKL109", f"{ROW}\neps: 1.0, dtypes: [float16]").codes() == []

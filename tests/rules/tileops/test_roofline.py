"""Roofline formulas: their syntax, names, form and values, and how much a fault in one counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.main import run as opschema
from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import OP_BASE, example_files
from opschema_rules.tileops.pack import PACK

ROOFLINE = [f"ROO{number}" for number in range(101, 106)]

SIGNATURE = """\
signature:
  inputs:
    x: {dtype: float16, shape: "[M, K]"}
    bias: {dtype: float16, optional: true}
  outputs:
    y: {dtype: float16, shape: "[M, L]"}
  params:
    eps: {type: float, default: 0.5}
  static_dims:
    D: "x.shape[-1]"
  shape_rules:
    - "L2 == 2 * K"
workloads:
  - {x_shape: [4, 8], dtypes: [float16, float32], label: "small"}
  - {x_shape: [2, 16], bias_shape: [8], dtypes: [float16], label: "large"}
"""


def lint(
    flops: str = '"2 * M"',
    bytes_: str = '"M * K * elem_bytes"',
    variables: str = "",
    signature: str = SIGNATURE,
    **files: str,
) -> Linted:
    """Lint an entry with these formulas; ``variables`` are lines of ``vars``."""
    listed = "".join(f"    {line}\n" for line in variables.splitlines())
    roofline = f"roofline:\n  flops: {flops}\n  bytes: {bytes_}\n" + (f"  vars:\n{listed}" if listed else "")
    return lint_files([PACK], {**example_files([("yaml", signature + roofline)]), **files}, ROOFLINE)


def found(linted: Linted) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


OLD = {"opschema.toml": ""}


def test_sound_formulas() -> None:
    variables = (
        'N: "product(size for size in x.shape if size > 1) + K + D + L2"\n'
        'has_bias: "bias is not None"\nwide: "N if has_bias and eps > 0 else int(elem_bytes)"'
    )
    assert found(lint('"ceil(wide / 2) * M + D"', variables=variables)) == []


def test_syntax() -> None:
    linted = lint('"2 * (M"', variables='N: "x.shape["\nP: ""')
    assert [(code, message.partition(":")[0]) for code, _, message in found(linted)] == [
        ("ROO101", "`flops` is not a Python expression"),
        ("ROO101", "`vars.N` is not a Python expression"),
    ]
    assert lint('"2 * (M"', **OLD).codes() == ["ROO101"]


@pytest.mark.parametrize("value", ["12", "1.5", "null", "[1]", "{a: 1}", '""', '"  "'])
def test_fields_that_are_no_text_are_left_to_the_structure_rule(value: str) -> None:
    assert lint(value, value, f"N: {value}").codes() == []


@pytest.mark.parametrize("value", ["1", "[flops]", "null", "x"])
def test_a_malformed_roofline_is_left_to_the_structure_rule(value: str) -> None:
    assert lint_files([PACK], example_files([("yaml", f"{SIGNATURE}roofline: {value}")]), ROOFLINE).codes() == []


NAMES = [
    ("y.shape[0]", "y", "`vars.N` reads the output `y`; a formula knows inputs, params and their dimensions only"),
    ("L", "L", "nothing gives `L` in `vars.N` a value"),
    ("ep", "ep", "nothing gives `ep` in `vars.N` a value; is it `eps`?"),
    ("P + 1", "P", "`vars.N` reads the variable `P`, which is defined below it; define it above"),
    ("sqrt(M)", "sqrt", "`sqrt()` is not a function that `vars.N` may call"),
]


@pytest.mark.parametrize(("text", "name", "message"), NAMES)
def test_names_that_a_variable_does_not_know(text: str, name: str, message: str) -> None:
    assert found(lint(variables=f'N: "{text}"\nP: "M"')) == [("ROO102", name, message)]


NO_ARITHMETIC = "`flops` uses `{}`; it is arithmetic on variables, so put that in `vars`"
ARITHMETIC = [
    ("x * 2", ("ROO102", "x", "`flops` reads the input `x`; put what it needs of it in `vars`")),
    ("max(M, 1)", ("ROO102", "max", "`max()` is not a function that `flops` may call")),
    ("2 * x.shape[0]", ("ROO103", "x.shape[0]", NO_ARITHMETIC.format("x.shape[0]"))),
    ("M in (1, 2)", ("ROO103", "M in (1, 2)", NO_ARITHMETIC.format("M in (1, 2)"))),
    ("[M for _ in K]", ("ROO103", "[M for _ in K]", NO_ARITHMETIC.format("[M for _ in K]"))),
]


@pytest.mark.parametrize(("text", "expected"), ARITHMETIC)
def test_flops_are_arithmetic(text: str, expected: tuple[str, str, str]) -> None:
    assert expected in found(lint(f'"{text}"'))


SHAPES_ONLY = "; a variable reads `.shape` and `.ndim` of inputs, params and helpers"
FORMS = [
    ('N: "x.numel()"', "x.numel()", f"`vars.N` uses `x.numel()`{SHAPES_ONLY}"),
    ('N: "x.dtype"', "x.dtype", f"`vars.N` uses `x.dtype`{SHAPES_ONLY}"),
    ('N: "len(x)"', "x", f"`vars.N` uses `x`{SHAPES_ONLY}"),
    ('N: "(lambda: M)"', "lambda: M", f"`vars.N` uses `lambda: M`{SHAPES_ONLY}"),
    ('N: "torch.numel(x.shape)"', "torch.numel(x.shape)", f"`vars.N` uses `torch.numel(x.shape)`{SHAPES_ONLY}"),
    ('x: "1"', "x", "the variable `x` shadows a name that formulas can use; rename it"),
    ('sum: "1"', "sum", "the variable `sum` shadows a name that formulas can use; rename it"),
    ('2N: "1"', "2N", "the variable `2N` is not a Python name"),
]


@pytest.mark.parametrize(("variables", "text", "message"), FORMS)
def test_variables_read_shapes(variables: str, text: str, message: str) -> None:
    assert found(lint(variables=variables)) == [("ROO103", text, message)]


def test_a_tree_whose_documents_say_nothing_of_layers() -> None:
    assert lint('"2 * x.shape[0]"', variables='N: "max(y.shape[0], batch)"', **OLD).codes() == []


OPTIONAL = [
    ('"2 * M"', 'C: "0 if bias is None else bias.shape[0]"', "`vars.C`", "only tests whether it is passed"),
    ('"M if bias is None else K"', "", "`flops`", "reads no tensor; test it in `vars`"),
    ('"2 * M"', 'C: "(bias is None) + (bias is not None)"', None, ""),
]


@pytest.mark.parametrize(("flops", "variables", "where", "reason"), OPTIONAL)
def test_optional_inputs(flops: str, variables: str, where: str | None, reason: str) -> None:
    linted = lint(flops, variables=variables)
    expected = [("bias", f"{where} uses the optional input `bias`; a formula there {reason}")] if where else []
    assert [(text, message) for code, text, message in found(linted) if code == "ROO105"] == expected


VALUES = [
    ("M - K", "4", "`flops` is -4 on a workload row, and no count: `M` is 4, `K` is 8"),
    ("M * 1e308 * 1e308", "4", "`flops` is inf on a workload row, and no count: `M` is 4"),
    ("2 * M", "0", "`bytes` is 0 on a workload row, but an op moves bytes"),
    ("M // 8", "4", "`flops` is 0 on every workload row, though it is not a literal `0`: `M` is 4"),
    (
        "M // (K - 8)",
        "4",
        "`flops` cannot be evaluated on a workload row, integer division or modulo by zero: `M` is 4, `K` is 8",
    ),
    ("M // 4", "4", None),
    ("0", "M * unknown", None),
]


@pytest.mark.parametrize(("flops", "bytes_", "message"), VALUES)
def test_values(flops: str, bytes_: str, message: str | None) -> None:
    linted = lint(f'"{flops}"', f'"{bytes_}"')
    seen = [item for item in linted.diagnostics if item.code == "ROO104"]
    assert [item.message for item in seen] == ([message] if message else [])
    for item in seen:
        assert linted.text(item.place) == (f'"{flops}"' if item.message.startswith("`flops`") else f'"{bytes_}"')
        assert item.related[0].message == "the row"
        assert linted.text(item.related[0].place).startswith("{x_shape: [4, 8]")


def test_a_variable_that_fails_is_one_finding() -> None:
    linted = lint('"2 * N"', '"N * 2"', 'N: "x.shape[K]"')
    message = "`vars.N` cannot be evaluated on a workload row, tuple index out of range: `x.shape` is (4, 8), `K` is 8"
    assert found(linted) == [("ROO104", '"x.shape[K]"', message)]


def test_rows_that_break_a_rule_and_empty_tensors_are_not_looked_at() -> None:
    broken = SIGNATURE.replace("x_shape: [4, 8]", "x_shape: [4, 8, 1]").replace("x_shape: [2, 16]", "x_shape: [0, 16]")
    assert lint('"M"', '"M * K - 0"', signature=broken).codes() == []


def test_a_planned_op_may_hold_constants() -> None:
    assert lint('"0"', '"0"', signature=SIGNATURE + "status: spec-only\n").codes() == []
    assert lint('"0"', '"M - M"', signature=SIGNATURE + "status: spec-only\n").codes() == ["ROO104"]


def test_an_endless_formula_is_stopped() -> None:
    linted = lint('"sum(i for a in range(10**9) for i in range(10**9))"', '"4"', **OLD)
    [item] = linted.diagnostics
    assert item.message.startswith("`flops` cannot be evaluated on a workload row, it takes more ")


GENERATED = OP_BASE.replace(
    "class Op(ABC):",
    "class Op(ABC):\n    def __init_subclass__(cls, **options):\n        cls.eval_roofline = lambda self: (1, 1)\n",
)
NO_METHOD = """\
from kit.ops.op_base import Op


class ExampleFwdOp(Op):
    def forward(self, x):
        return x
"""


def test_a_fault_is_an_error_only_where_the_formula_runs() -> None:
    fault = '"M * L"'
    by_hand = lint(fault).diagnostics[0]
    assert by_hand.severity is Severity.WARNING
    assert [side.message for side in by_hand.related] == ["written by hand, so the formula does not run"]
    code = {"kit/ops/op_base.py": GENERATED, "kit/ops/example.py": NO_METHOD}
    assert lint(fault, **code).diagnostics[0].severity is Severity.ERROR
    planned = SIGNATURE + "status: spec-only\n"
    assert lint(fault, signature=planned, **code).diagnostics[0].severity is Severity.WARNING


def test_a_name_that_nothing_in_the_entry_has_is_always_an_error() -> None:
    for signature in (SIGNATURE, SIGNATURE + "status: spec-only\n"):
        assert [item.severity for item in lint('"M * z"', signature=signature).diagnostics] == [Severity.ERROR]
    in_rows = SIGNATURE.replace('label: "small"', 'label: "small", z: 4')
    assert [item.severity for item in lint('"M * z"', signature=in_rows).diagnostics] == [Severity.WARNING]


GENERATOR = """\
FUNCTIONS = {"ceil": None, "log2": None}


def make_method(op_name, roofline, signature):
    tensors = signature.get("inputs") or {}
    arguments = list((signature["params"] or {}).keys())
    known = set(tensors) | set(arguments)
    known.add("elem_bytes")
    known.update(FUNCTIONS.keys())
    for name, text in roofline.get("vars", {}).items():
        check(name, text, known)
        known.add(name)
    for text in ("flops", "bytes"):
        check(text, roofline[text], {*roofline["vars"], *arguments, "elem_bytes"})
"""


def test_the_trees_generator_decides_which_dimensions_a_formula_may_read() -> None:
    code = {"kit/ops/generated.py": GENERATOR}
    linted = lint('"2 * N * K"', '"N * elem_bytes"', 'N: "M * x.shape[1]"', **code)
    text = "the roofline reads {} that the tree's generator does not bind: {}; take them from shapes in `vars`"
    assert found(linted) == [("ROO102", "M", text.format("a dimension", "`M`"))]  # nothing is known of `flops`
    assert linted.text(linted.diagnostics[0].related[0].place) == "known"
    assert found(lint('"2 * N"', '"N * elem_bytes"', 'N: "x.shape[0] * x.shape[1]"', **code)) == []


def test_a_changed_generator_is_read_though_the_entry_is_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    roofline = 'roofline:\n  flops: "2 * N * K"\n  bytes: "N * elem_bytes"\n  vars:\n    N: "M * x.shape[1]"\n'
    binding = GENERATOR.replace("set(tensors)", "set(tensors) | set(sizes)")
    files = {**example_files([("yaml", SIGNATURE + roofline)]), "kit/ops/generated.py": binding}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    command = ["lint", "--select", "ROO102", "--fail-on", "warning"]
    assert opschema(command) == 0
    (tmp_path / "kit/ops/generated.py").write_text(GENERATOR)
    assert opschema(command) == 1
    assert "that the tree's generator does not bind" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        ("set(tensors)", "set(dims_of(tensors))"),  # what it knows besides is not understood
        ("set(tensors)", "set(tensors) | set(sizes)"),
        ('known.add("elem_bytes")', "known.add(BYTES)"),
    ],
)
def test_a_generator_that_is_not_understood_changes_nothing(change: tuple[str, str]) -> None:
    code = {"kit/ops/generated.py": GENERATOR.replace(*change)}
    assert found(lint('"2 * N * K"', variables='N: "M"', **code)) == []

"""Programs that FlyDSL traces, as it was tried with 0.2.4 and 0.5.0, and that were reported once."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK


def lint(text: str, release: str = "") -> Linted:
    files = {**BASE_FILES, KERNELS_PATH: HEAD + text}
    if release:
        files["opschema.toml"] = f'[flydsl]\nversion = "{release}"\n'
    return lint_files([PACK], files)


def errors(text: str, release: str = "") -> list[str]:
    return [item.code for item in lint(text, release).diagnostics if item.severity == "error"]


def kernel(body: str, params: str = "A: fx.Tensor, n: fx.Int32, m: fx.Int32") -> str:
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())
    return f"@flyc.kernel\ndef k({params}):\n{lines}"


PARAMETERS = [
    ("def pick(v, n=0):\n    return v if n else v + 1\n\nA[0] = pick(n)", "A: fx.Tensor, n: fx.Int32"),
    (
        "def pick(n):\n    acc = fx.Int32(0)\n    if m > 3:\n        acc = n\n    return acc\n\nA[0] = pick(m)",
        "A: fx.Tensor, n: fx.Int64, m: fx.Int32",
    ),
    (
        "def total(n):\n    acc = 0\n    for i in range(m):\n        acc += n\n    return acc\n\nA[0] = total(m)",
        "A: fx.Tensor, n: fx.Int64, m: fx.Int32",
    ),
    ("def fill(B, n):\n    for i in range(n):\n        B[i] = 0\n\nfill(A, fx.Int32(4))", "A: fx.Tensor, n: fx.Int64"),
    (
        "def get2(rows):\n    return rows[n]\n\nA[0] = get2(A)",
        "A: fx.Tensor, n: fx.Int32, rows: fx.Constexpr[tuple]",
    ),
]


@pytest.mark.parametrize("release", ["0.2.4", "0.5.0"])
@pytest.mark.parametrize(("body", "params"), PARAMETERS)
def test_a_function_inside_has_parameters_of_its_own(body: str, params: str, release: str) -> None:
    assert errors(kernel(body, params), release) == []


@pytest.mark.parametrize(
    ("body", "params", "code"),
    [
        ("def pick(v):\n    return v if n else v + 1\n\nA[0] = pick(n)", "A: fx.Tensor, n: fx.Int32", "FLY229"),
        (
            "def get2():\n    return rows[n]\n\nA[0] = get2()",
            "A: fx.Tensor, n: fx.Int32, rows: fx.Constexpr[tuple]",
            "FLY217",
        ),
    ],
)
def test_what_a_function_inside_captures_is_the_kernels(body: str, params: str, code: str) -> None:
    assert errors(kernel(body, params), "0.2.4") == [code]


LOOPS = [
    "if fx.const_expr(m is None):\n    carry = None\nfor i in range(n):\n    carry = fx.Float32(1.0)",
    "if fx.const_expr(m is None):\n    acc = 0\nelse:\n    for i in range(n):\n        acc = fx.Float32(1.0)",
    "A[(acc := 0)] = n\nfor i in range(n):\n    acc = fx.Float32(1.0)",
    "if fx.const_expr(False):\n    for i in range(fx.Int64(n)):\n        A[i] = 0",
    "if fx.const_expr(False):\n    for i in fx.range_constexpr(0, 3, unroll=2):\n        A[i] = 0",
    "return\nfor i in range(fx.Int64(n)):\n    A[i] = 0",
    "def unused():\n    for i in range(fx.Int64(n)):\n        A[i] = 0\n\nA[0] = n",
    "if fx.const_expr(RELEASE >= (9, 0)):\n    for i in range(fx.Int64(n)):\n        A[i] = 0",
    "if fx.const_expr(RELEASE >= (9, 0)):\n    A[0] = [1, 2][n]",
    "if fx.const_expr(hasattr(fx, 'x')):\n    A[0] = 1 if n else 0",
]
RELEASE = 'import flydsl\n\nRELEASE = tuple(map(int, flydsl.__version__.split(".")[:2]))\n\n\n'


@pytest.mark.parametrize("release", ["0.2.4", "0.5.0"])
@pytest.mark.parametrize("body", LOOPS)
def test_loops_and_code_that_does_not_run(body: str, release: str) -> None:
    assert errors(RELEASE + kernel(body), release) == []


SHRINKING = ["win = win[1:]", "win[:] = [n, n]", "win = [n, n]"]


@pytest.mark.parametrize(
    "body", [f"win = [n, n]\nfor i in range(n):\n    win.append(n)\n    {line}" for line in SHRINKING]
)
def test_lists_that_are_as_long_again(body: str) -> None:
    assert errors(kernel(body), "0.5.0") == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("carry = None\nfor i in range(n):\n    carry = fx.Float32(1.0)", "FLY223"),
        (
            "if fx.const_expr(True):\n    carry = None\n    for i in range(n):\n        carry = fx.Float32(1.0)",
            "FLY223",
        ),
        ("win = [n, n]\nfor i in range(n):\n    win.append(n)\nwin = [n]", "FLY223"),
        ("win = [n, n]\nfor i in range(n):\n    win.append(n)\n    win[0] = n", "FLY223"),
        ("for i in range(fx.Int64(n)):\n    A[i] = 0", "FLY224"),
        ("for i in fx.range_constexpr(0, 3, unroll=2):\n    A[i] = 0", "FLY224"),
    ],
)
def test_loops_that_raise(body: str, code: str) -> None:
    assert errors(RELEASE + kernel(body), "0.5.0") == [code]


def test_names_that_flydsl_knows_by_itself() -> None:
    body = "if const_expr(True):\n    A[0] = n\nfor i in range_constexpr(3):\n    A[i] = n"
    assert errors(kernel(body)) == []
    assert errors(kernel("A[0] = constexpr(n)")) == ["FLY241"]


def test_annotations_of_variables_are_not_evaluated() -> None:
    assert errors(kernel("if n > 3:\n    T0 = n\nz: T0 = n\nA[0] = z")) == []
    assert errors(kernel("if n > 3:\n    T0 = n\nz: int = T0\nA[0] = z")) == ["FLY222"]

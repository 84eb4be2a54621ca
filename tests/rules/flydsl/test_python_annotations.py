"""FLY206: parameters of traced functions that are annotated as plain Python values."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH, example_files
from opschema_rules.flydsl.pack import PACK

LAUNCHED = """\
@flyc.kernel
def scale(A: fx.Tensor, n: {annotation}):
    print(n)


@flyc.jit
def launch(A: fx.Tensor, n):
    scale(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))
"""


def lint(text: str, version: str = "0.4.2") -> Linted:
    toml = ("toml", f'[flydsl]\nversion = "{version}"\n' if version else "")
    return lint_files([PACK], example_files([toml, ("python", text)]), ["FLY206"])


@pytest.mark.parametrize(("written", "made"), [("int", "Int32"), ("float", "Float32"), ("bool", "Boolean")])
def test_numbers_become_what_flydsl_makes_of_them(written: str, made: str) -> None:
    text = LAUNCHED.format(annotation="fx.Int32").replace(", n):", f", n: {written}):")
    linted = lint(text)
    (found,) = linted.diagnostics
    assert found.message == (
        f"`n` of `launch` is annotated `{written}`, which FlyDSL does not use: what is passed becomes `fx.{made}`; annotate "
        f"that, or `fx.Constexpr[{written}]` for a constant"
    )
    assert found.severity is Severity.WARNING
    assert linted.text(found.place) == written
    fixed, left = fix_files([PACK], example_files([("python", text)]), ["FLY206"])
    assert fixed[KERNELS_PATH] == HEAD + text.replace(f"n: {written}", f"n: fx.{made}")
    assert not left.diagnostics


@pytest.mark.parametrize(
    ("passed", "becomes"), [("n: fx.Int64", "fx.Int64"), ("n: fx.Int32", "fx.Int32"), ("n", ""), ("n: fx.Tensor", "")]
)
def test_a_kernel_gets_what_is_passed(passed: str, becomes: str) -> None:
    text = LAUNCHED.format(annotation="int").replace(", n):", f", {passed}):")
    linted = lint(text)
    (found,) = linted.diagnostics
    assert found.message == (
        "`n` of `scale` is annotated `int`, which FlyDSL does not use: what is passed keeps its type; annotate that, such as "
        f"`{becomes or 'fx.Int32'}`, or `fx.Constexpr[int]` for a constant"
    )
    fixed, _ = fix_files([PACK], example_files([("python", text)]), ["FLY206"])
    assert fixed.get(KERNELS_PATH, HEAD + text) == HEAD + text.replace("n: int", f"n: {becomes or 'int'}")


def test_a_string_cannot_be_passed() -> None:
    text = LAUNCHED.format(annotation="str")
    (found,) = lint(text).diagnostics
    assert (
        found.message
        == "`n` of `scale` is annotated `str`, which no call can pass at run time: annotate `fx.Constexpr[str]`"
    )
    assert found.severity is Severity.ERROR
    assert not lint(text, "0.1.8").diagnostics
    assert not lint(text, "").diagnostics


@pytest.mark.parametrize(
    ("version", "is_fixed"), [("0.2.0", False), ("0.2.2", False), ("0.2.3", True), ("0.5.0", True)]
)
def test_a_string_is_a_constant_only_from_0_2_3_on(version: str, is_fixed: bool) -> None:
    (found,) = lint(LAUNCHED.format(annotation="str"), version).diagnostics
    assert (found.fix is not None) is is_fixed
    assert ("capture it instead" in found.message) is not is_fixed


@pytest.mark.parametrize("annotation", ["fx.Int32", "fx.Constexpr[int]", "Unknown", "object", "tuple", "'int'"])
def test_other_annotations(annotation: str) -> None:
    found = lint(LAUNCHED.format(annotation=annotation)).diagnostics
    assert bool(found) == (annotation == "'int'")


@pytest.mark.parametrize(
    ("caller", "codes"),
    [
        ("row(4)\n", ["FLY206"]),
        ("@flyc.kernel\ndef k(A: fx.Tensor):\n    print(row(4))\n", []),
        ("def host_or_not():\n    row(4)\n", []),
        ("@flyc.kernel\ndef k(A: fx.Tensor):\n    print(row(4))\n\n\nrow(8)\n", ["FLY206"]),
        ("", []),
    ],
)
def test_a_function_under_jit_is_compiled_where_the_module_calls_it(caller: str, codes: list[str]) -> None:
    assert lint(f"@flyc.jit\ndef row(width: int):\n    return width\n\n\n{caller}").codes() == codes


def test_without_the_usual_import_there_is_no_fix() -> None:
    text = "from flydsl.compiler import kernel\n\n\n@kernel\ndef scale(n: int):\n    print(n)\n"
    files = {"opschema.toml": '[flydsl]\nversion = "0.4.2"\n', KERNELS_PATH: text}
    (found,) = lint_files([PACK], files, ["FLY206"]).diagnostics
    assert found.fix is None
    assert "`fx.Int32`" in found.message


def test_the_first_parameter_of_a_method_is_left_alone() -> None:
    text = "class Scale:\n    @flyc.kernel\n    def kernel(self: object, n: fx.Int32):\n        print(n)\n"
    assert not lint(text).diagnostics

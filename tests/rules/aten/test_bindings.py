"""The requirements of methods, kernels and Python bindings on an operator."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.entry_findings import NATIVE, entry, fixed, lines
from tests.rules.aten.test_vocabulary import MODEL


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "variants: method",
            "f(Tensor x) -> Tensor",
            ["ATN211 'method': a method needs the positional argument `Tensor self`"],
        ),
        (
            "variants: function, method",
            "f(Tensor? self) -> Tensor",
            ["ATN211 'method': a method needs the positional argument `Tensor self`"],
        ),
        (
            "variants: method",
            "f(*, Tensor self) -> Tensor",
            ["ATN211 'method': a method needs the positional argument `Tensor self`"],
        ),
        (
            "dispatch: {CPU: f_symint}",
            "f(int[] n) -> Tensor",
            [
                "ATN214 'f': the Python binding of a factory needs dtype, layout, device and pin_memory, keyword-…",
                "ATN212 'f_symint': `f_symint` takes a `SymInt` by its name, and no argument is one",
            ],
        ),
        (
            "dispatch: {CPU: a_symint::f}",
            "f(int[] n) -> Tensor",
            ["ATN214 'f': the Python binding of a factory needs dtype, layout, device and pin_memory, keyword-…"],
        ),
        (
            "dispatch: {CPU: f_symint}",
            "f(SymInt[]? n) -> Tensor",
            ["ATN214 'f': the Python binding of a factory needs dtype, layout, device and pin_memory, keyword-…"],
        ),
        (
            "",
            "f_(Tensor(a!) self, Tensor(b!)? x) -> Tensor(a!)",
            ["ATN213 'Tensor(b!)?': `x` is optional and cannot be written"],
        ),
        (
            "",
            "f(Tensor self, str[] x, QScheme y, bool[2] z, int?[] w) -> Tensor",
            [
                "ATN214 'str[]': a Python binding cannot take `str[]`",
                "ATN214 'QScheme': a Python binding cannot take `QScheme`",
                "ATN214 'bool[2]': a Python binding cannot take `bool[2]`",
                "ATN214 'int?[]': a Python binding cannot take `int?[]`",
            ],
        ),
        (
            "",
            "f(Tensor self, Tensor?[] a, float[]? b, Generator[] g, Stream? c, DeviceIndex d) -> Tensor",
            [
                "ATN117 'f': `g` is a `Generator`, so that it needs the tag `nondeterministic_seeded`",
                "ATN214 'Generator[]': a Python binding cannot take `Generator[]`",
            ],
        ),
        ("", "f(Tensor self) -> Generator", ["ATN214 'Generator': a Python binding cannot return `Generator`"]),
        (
            "",
            "f(Tensor self) -> (Tensor a, Tensor)",
            ["ATN214 'Tensor': either all returned values are named or none is"],
        ),
        (
            "",
            "f(Tensor self, bool requires_grad) -> Tensor",
            ["ATN214 'requires_grad': `requires_grad` is the binding's own argument"],
        ),
        (
            "",
            "f(int n, *, ScalarType? dtype=None) -> Tensor",
            ["ATN214 'ScalarType? dtype=None': the Python binding of a factory needs dtype, layout, device and…"],
        ),
        (
            "",
            "f(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> int",
            ["ATN214 'ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None'…"],
        ),
        (
            "category_override: factory",
            "f(Tensor self) -> Tensor",
            ["ATN214 'f': the Python binding of a factory needs dtype, layout, device and pin_memory, keyword-…"],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("variants: method", "f(Tensor x, Tensor self) -> Tensor"),
        ("", "f(Tensor self, Tensor(b)? x) -> Tensor"),
        ("", "f_backward(Tensor self) -> Generator"),
        ("tags: generated", "f(Tensor self) -> Generator"),
        ("category_override: dummy", "f(int n, *, ScalarType? dtype=None) -> Tensor"),
        ("dispatch: {CPU: f}", "f.out(int n, *, Tensor(a!) out) -> Tensor(a!)"),
        ("", "f(int n) -> int"),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


def test_an_operator_without_results_under_a_generator_that_does_not_list_void() -> None:
    generator = "SKIP_PYTHON_BINDINGS = [\n    'alias',\n]\nSUPPORTED_RETURN_TYPES = {\n    'at::Tensor',\n}\n"
    files = {
        NATIVE: entry("", "f(Tensor(a!) x) -> ()") + entry("", "g(Tensor x) -> int"),
        "torchgen/model.py": MODEL,
        "tools/autograd/gen_python_functions.py": generator,
    }
    linted = lint_files([PACK], files, ["ATN214"])
    assert [item.message for item in linted.diagnostics] == ["a Python binding cannot return `int`"]


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "",
            "f(Tensor self, Tensor?[] a, float[]? b, Generator[] g, Stream? c, DeviceIndex d) -> Tensor",
            "tags: nondeterministic_seeded",
        ),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)

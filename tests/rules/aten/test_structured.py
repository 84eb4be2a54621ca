"""Structured kernels."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.entry_findings import NATIVE, WITHOUT_KERNEL, entry, fixed, lines

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"

TANH = "tanh(Tensor self) -> Tensor"


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        (
            "structured: True",
            TANH,
            ["ATN151 'structured': `structured` belongs to the variant with out arguments; this one takes `str…"],
        ),
        (
            "structured_delegate: tanh.out",
            OUT,
            ["ATN151 'structured_delegate': `structured_delegate` belongs to the variants without out argument…"],
        ),
        (
            "structured: True\nstructured_delegate: a.out",
            OUT,
            ["ATN151 'structured_delegate': `structured_delegate` belongs to the variants without out argument…"],
        ),
        (
            "structured: True\ndevice_guard: False",
            OUT,
            ["ATN152 'device_guard': structured kernels do not respect `device_guard: False`"],
        ),
        (
            "structured_delegate: tanh.out\ndevice_guard: False",
            TANH,
            ["ATN152 'device_guard': structured kernels do not respect `device_guard: False`"],
        ),
        (
            "structured_inherits: X",
            OUT,
            ["ATN153 'structured_inherits': `structured_inherits` needs `structured: True`"],
        ),
        (
            "structured: True\nstructured_inherits: at::native::X",
            OUT,
            ["ATN153 'at::native::X': `at::native::X` is written here without its namespace, which is the oper…"],
        ),
        (
            "structured: True\nstructured_inherits: ''",
            OUT,
            ["ATN153 \"''\": `structured_inherits` is empty; it names a class"],
        ),
        ("structured: True\nstructured_inherits: A B", OUT, ["ATN153 'A B': `A B` is not a name of a class"]),
        (
            "structured_delegate: tanh_out",
            TANH,
            ["ATN154 'tanh_out': no operator can be called `tanh_out`; the out variant is called `tanh.out`"],
        ),
        (
            "structured_delegate: aten::tanh.out",
            TANH,
            ["ATN154 'aten::tanh.out': `aten::tanh.out` is written here without its namespace, which is the op…"],
        ),
        ("structured_delegate: ''", TANH, ["ATN154 \"''\": `structured_delegate` is empty; it names the out variant"]),
        ("structured_delegate: tanh.", TANH, ["ATN154 'tanh.': `tanh.` is not a name of an operator"]),
        ("structured_delegate: tanh out", TANH, ["ATN154 'tanh out': `tanh out` is not a name of an operator"]),
        ("structured_delegate: tanh_out.x", TANH, ["ATN154 'tanh_out.x': no operator can be called `tanh_out`"]),
        (
            "structured_delegate: tanh.out\ndispatch:\n  CPU: a",
            TANH,
            ["ATN155 'CPU': the kernel for `CPU` is that of the operator that this one delegates to"],
        ),
        (
            "structured_delegate: tanh.out\ndispatch:\n  CPU, SparseCPU, CUDA: a",
            TANH,
            [
                "ATN155 'CPU': the kernel for `CPU` is that of the operator that this one delegates to",
                "ATN155 'CUDA': the kernel for `CUDA` is that of the operator that this one delegates to",
            ],
        ),
        (
            "structured_delegate: tanh.out\ndispatch:\n  CPU: a\n  SparseCPU: b",
            TANH,
            ["ATN155 'CPU': the kernel for `CPU` is that of the operator that this one delegates to"],
        ),
        (
            "structured: True\ndispatch: {CompositeImplicitAutograd: a, CPU: b}",
            OUT,
            ["ATN157 'CompositeImplicitAutograd': `CompositeImplicitAutograd` cannot be structured"],
        ),
        (
            "structured_delegate: f.out",
            "f(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            ["ATN156 'ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None'…"],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        (
            "structured: True\nstructured_inherits: TensorIteratorBase\ndevice_guard: True\n"
            "dispatch: {CPU: b, SparseCPU: a}",
            OUT,
        ),
        ("structured: False\ndevice_guard: False\nstructured_delegate:", TANH),
        ("structured_delegate: tanh.out\ndispatch: {SparseCPU: a, CompositeExplicitAutograd: b}", TANH),
        ("structured_delegate: __iand__.Tensor_out", TANH),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("structured: True\nstructured_inherits: at::native::X", OUT, "structured: True\nstructured_inherits: X"),
        ("structured_delegate: tanh_out", TANH, "structured_delegate: tanh.out"),
        ("structured_delegate: aten::tanh.out", TANH, "structured_delegate: tanh.out"),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ("structured: True", 1),
        ("structured: True\ndispatch:", 1),
        ("structured: True\ndispatch: {}", 1),
        ("structured: True\ndispatch: {CPU: a}", 0),
        ("structured: True\nufunc_inner_loop: add (All)", 0),
        ("structured: False", 0),
    ],
)
def test_structured_operators_without_kernel(fields: str, count: int) -> None:
    files = {NATIVE: entry(fields, OUT)}
    found = lint_files([PACK], files, [WITHOUT_KERNEL]).diagnostics
    assert [item.severity.value for item in found] == ["warning"] * count

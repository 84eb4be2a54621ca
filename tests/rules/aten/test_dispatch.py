"""Dispatch tables."""

from __future__ import annotations

import pytest

from tests.rules.aten.entry_findings import entry, fixed, lines

OUT = "tanh.out(Tensor self, int dim=1, *, Tensor(a!) out) -> Tensor(a!)"

TANH = "tanh(Tensor self) -> Tensor"


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("dispatch: {CDUA: a}", TANH, ["ATN131 'CDUA': torchgen has no dispatch key `CDUA`; did you mean `CUDA`?"]),
        ("dispatch: {cpu: a}", TANH, ["ATN131 'cpu': torchgen has no dispatch key `cpu`; did you mean `CPU`?"]),
        ("dispatch:\n  CPU,: a", TANH, ["ATN131 'CPU,': a dispatch key is missing at the comma"]),
        (
            "dispatch:\n  'CPU, CDUA': a",
            TANH,
            ["ATN131 'CDUA': torchgen has no dispatch key `CDUA`; did you mean `CUDA`?"],
        ),
        (
            "dispatch: {XLA: a}",
            TANH,
            ["ATN131 'XLA': native_functions.yaml takes no dispatch key `XLA`; kernels of an external backend …"],
        ),
        (
            "dispatch: {AutogradCPU: a}",
            TANH,
            ["ATN131 'AutogradCPU': native_functions.yaml takes no dispatch key `AutogradCPU`"],
        ),
        (
            "dispatch: {Math: a}",
            TANH,
            ["ATN131 'Math': torchgen has no dispatch key `Math`; did you mean `CompositeImplicitAutograd`?"],
        ),
        (
            "dispatch: {CPU: a, CPUU: b}",
            TANH,
            ["ATN131 'CPUU': torchgen has no dispatch key `CPUU`; did you mean `CPU`?"],
        ),
        (
            "dispatch: {QuantizedXYZ: a}",
            TANH,
            ["ATN131 'QuantizedXYZ': torchgen has no dispatch key `QuantizedXYZ`; did you mean `QuantizedCPU`?"],
        ),
        ("dispatch: {1: a}", TANH, ["ATN131 '1': torchgen has no dispatch key `1`"]),
        ("dispatch: {CPU: }", TANH, ["ATN132 'CPU': `CPU` has no kernel"]),
        ("dispatch: {CPU: ''}", TANH, ["ATN132 'CPU': `CPU` has no kernel"]),
        ("dispatch: {CPU: 1}", TANH, ["ATN132 '1': a kernel is the name of a C++ function, and this is a number"]),
        (
            "dispatch: {CPU: on}",
            TANH,
            ["ATN132 'on': a kernel is the name of a C++ function, and this is true or false"],
        ),
        ("dispatch: {CPU: [a]}", TANH, ["ATN132 '[a]': a kernel is the name of a C++ function, and this is a list"]),
        ("dispatch: {CPU: a-b}", TANH, ["ATN133 'a-b': `a-b` is not a name of a C++ function"]),
        ("dispatch:\n  CPU: 'a '", TANH, ["ATN133 \"'a '\": `a ` is not a name of a C++ function"]),
        (
            "dispatch:\n  CPU: a::b::c::d::e",
            TANH,
            ["ATN133 'a::b::c::d::e': `a::b::c::d::e` lies in 4 namespaces; torchgen takes at most 3"],
        ),
        (
            "dispatch:\n  CPU, CUDA: a\n  CUDA: b",
            TANH,
            ["ATN134 'CUDA': `CUDA` has two kernels, the last of which counts"],
        ),
        ("dispatch:\n  CPU, CPU: a", TANH, ["ATN134 'CPU': `CPU` appears twice in this table"]),
        (
            "dispatch: {CompositeExplicitAutograd: a, CompositeImplicitAutograd: b}",
            TANH,
            ["ATN135 'CompositeImplicitAutograd': `CompositeImplicitAutograd` cannot be combined with `Composi…"],
        ),
        (
            "dispatch: {CompositeImplicitAutogradNestedTensor: a, CompositeImplicitAutograd: b, CompositeExplicitAutograd: c}",
            TANH,
            ["ATN135 'CompositeExplicitAutograd': `CompositeExplicitAutograd` cannot be combined with `Composi…"],
        ),
        (
            "dispatch: {CompositeExplicitAutogradNonFunctional: a, CompositeImplicitAutogradNestedTensor: b}",
            TANH,
            ["ATN135 'CompositeImplicitAutogradNestedTensor': `CompositeImplicitAutogradNestedTensor` cannot b…"],
        ),
        (
            "variants: method\ndispatch:\n  CompositeImplicitAutograd: tanh\ntags: core",
            TANH,
            ["ATN136 'dispatch': the table only repeats the default: `CompositeImplicitAutograd: tanh`; leave …"],
        ),
        (
            "dispatch: {CompositeImplicitAutograd: tanh_math}",
            TANH,
            ["ATN136 'tanh_math': the only kernel is composite and must be called `tanh`: rename `tanh_math`, …"],
        ),
        (
            "dispatch: {CompositeImplicitAutograd: at::tanh}",
            TANH,
            ["ATN136 'at::tanh': the only kernel is composite and must be called `tanh`: rename `at::tanh`, an…"],
        ),
        (
            "dispatch: {CompositeImplicitAutograd: tanh_out}",
            OUT,
            ["ATN136 'dispatch': the table only repeats the default: `CompositeImplicitAutograd: tanh_out`; le…"],
        ),
        (
            "dispatch: {CompositeImplicitAutograd: tanh}\nstructured_delegate: tanh.out",
            TANH,
            ["ATN136 'dispatch': the table only repeats the default: `CompositeImplicitAutograd: tanh`; leave …"],
        ),
        (
            "manual_kernel_registration: True\ndispatch: {CPU: a}",
            TANH,
            ["ATN137 'dispatch': `dispatch` has no effect beside `manual_kernel_registration`; keep one"],
        ),
        (
            "",
            "new_x(Tensor self) -> Tensor",
            [
                "ATN138 'new_x': `new_x` is a factory by its name; a factory needs a kernel in `dispatch`, usuall…",
                "ATN214 'new_x': the Python binding of a factory needs dtype, layout, device and pin_memory, keyw…",
            ],
        ),
        (
            "",
            "x_like.o(Tensor self) -> Tensor",
            [
                "ATN138 'x_like.o': `x_like` is a factory by its name; a factory needs a kernel in `dispatch`, us…",
                "ATN214 'x_like.o': the Python binding of a factory needs dtype, layout, device and pin_memory, k…",
            ],
        ),
        (
            "structured_delegate: x_like.out",
            "x_like(Tensor self) -> Tensor",
            ["ATN214 'x_like': the Python binding of a factory needs dtype, layout, device and pin_memory, key…"],
        ),
        (
            "dispatch:",
            "new_x(Tensor self) -> Tensor",
            [
                "ATN138 'new_x': `new_x` is a factory by its name; a factory needs a kernel in `dispatch`, usuall…",
                "ATN214 'new_x': the Python binding of a factory needs dtype, layout, device and pin_memory, keyw…",
            ],
        ),
        (
            "",
            "x(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            ["ATN138 'x': `x` takes a dtype and no tensor; a factory needs a kernel in `dispatch`, usually `Co…"],
        ),
        (
            "",
            "new_x.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
            ["ATN138 'new_x.out': `new_x` is a factory by its name; a factory needs a kernel in `dispatch`, us…"],
        ),
    ],
)
def test_faults(fields: str, schema: str, expected: list[str]) -> None:
    assert lines(entry(fields, schema)) == expected


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ("dispatch: {}", TANH),
        ("dispatch:\n  CPU: a::b::c::d", TANH),
        ("dispatch: {CompositeExplicitAutograd: a, CompositeImplicitAutogradNestedTensor: b}", TANH),
        ("dispatch: {CompositeImplicitAutograd: x}\nstructured_delegate: tanh.out", TANH),
        ("dispatch: {'CompositeImplicitAutograd, CPU': tanh}", TANH),
        ("manual_kernel_registration: False\ndispatch: {CPU: a}", TANH),
        (
            "",
            "x_jvp(Tensor n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        ),
    ],
)
def test_sound_entries(fields: str, schema: str) -> None:
    assert lines(entry(fields, schema)) == []


@pytest.mark.parametrize(
    ("fields", "schema", "expected"),
    [
        ("dispatch: {CDUA: a}", TANH, "dispatch: {CUDA: a}"),
        ("dispatch: {cpu: a}", TANH, "dispatch: {CPU: a}"),
        ("dispatch:\n  'CPU, CDUA': a", TANH, "dispatch:\n  'CPU, CUDA': a"),
        ("dispatch: {Math: a}", TANH, "dispatch: {CompositeImplicitAutograd: a}"),
        ("dispatch:\n  CPU: 'a '", TANH, "dispatch:\n  CPU: 'a'"),
        (
            "variants: method\ndispatch:\n  CompositeImplicitAutograd: tanh\ntags: core",
            TANH,
            "variants: method\ntags: core",
        ),
        ("dispatch: {CompositeImplicitAutograd: tanh_out}", OUT, ""),
    ],
)
def test_fixes(fields: str, schema: str, expected: str) -> None:
    assert fixed(entry(fields, schema)) == entry(expected, schema)

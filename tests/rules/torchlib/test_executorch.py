"""Kernels that ExecuTorch's macros take."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

SCHEMA = (
    'TORCH_LIBRARY(kit, m) { m.def("f.out(Tensor x, SymInt n, ScalarType? t, *, Tensor(a!) out) -> Tensor(a!)"); }\n'
)


def found(text: str) -> list[str]:
    linted = lint_files([PACK], {"ops.cpp": SCHEMA, "kernels.cpp": text}, select=["REG50"])
    return [item.message for item in linted.diagnostics]


def runtime(parameters: str) -> str:
    return f'namespace kit {{ Tensor& f({parameters}) {{}} }}\nEXECUTORCH_LIBRARY(kit, "f.out", kit::f);\n'


def wrapped(parameters: str, index: str, returns: str = "Tensor&") -> str:
    function = f"{returns} f({parameters}) {{}}"
    block = f'TORCH_LIBRARY_IMPL(kit, CPU, m) {{ m.impl("f.out", WRAP_TO_ATEN(f{index})); }}'
    return f"{function}\n{block}\n"


GOOD = "const Tensor& x, int64_t n, optional<ScalarType> t, Tensor& out"


@pytest.mark.parametrize(
    "text",
    [
        runtime(f"KernelRuntimeContext& ctx, {GOOD}"),
        runtime(f"torch::executor::RuntimeContext& ctx, {GOOD}"),
        runtime("executorch::runtime::KernelRuntimeContext& c, const executorch::aten::Tensor& x, int64_t n, Mode t, Tensor& o"),
        runtime(f"Context& ctx, {GOOD}"),
        runtime("KernelRuntimeContext& ctx, const Tensor& x, Tensor& out").replace('"f.out"', '"g.out"'),
        "#if 0\n" + runtime("const Tensor& x") + "#endif\n",
        'template <typename T> T& f(KernelRuntimeContext& c, T x) {}\nEXECUTORCH_LIBRARY(kit, "f.out", f);\n',
        wrapped(GOOD, ", 3"),
        wrapped("const executorch::aten::Tensor& x, int64_t n, optional<ScalarType> t, exec_aten::Tensor& out", ", 3"),
        wrapped(GOOD, ", 3", "MyTensor&"),
    ],
    ids=range(10),
)  # fmt: skip
def test_kernels_that_fit(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (runtime(GOOD), "`kit::f()` does not take the context first, which `EXECUTORCH_LIBRARY` passes: this does not compile"),
        (
            runtime("KernelRuntimeContext& ctx, const Tensor& x, int64_t n, Tensor& out"),
            "`kit::f()` takes 3 arguments after the context, the schema of `kit::f.out` has 4: every call fails",
        ),
        (
            runtime("KernelRuntimeContext& ctx, const Tensor& x, double n, optional<ScalarType> t, Tensor& out"),
            "`kit::f()` takes `double` where the schema of `kit::f.out` has `SymInt n` (`int64_t`): every call fails",
        ),
        (
            runtime("KernelRuntimeContext& ctx, const Tensor& x, int64_t n, optional<ScalarType> t, const Tensor& out"),
            "`kit::f()` takes `const Tensor&` last: `EXECUTORCH_LIBRARY` does not compile without a `Tensor&` there",
        ),
        (
            wrapped("const Tensor& x, int64_t n, Tensor& out", ", 2"),
            "`f()` takes 3 arguments, the schema of `kit::f.out` has 4: torch refuses it when the library is loaded",
        ),
        (
            wrapped(GOOD, ", 4"),
            "`WRAP_TO_ATEN(f, 4)` names no argument: `f()` takes 4 arguments, counted from 0; this does not compile",
        ),
        (
            wrapped(GOOD, ", 1"),
            "`WRAP_TO_ATEN(f, 1)` names `n` (`int64_t`), and `f()` returns `Tensor&`: this does not compile;"
            " give the index of the `out` argument",
        ),
    ],
)  # fmt: skip
def test_kernels_that_do_not(text: str, message: str) -> None:
    assert found(text) == [message]

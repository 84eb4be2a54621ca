"""Kernels by their names: what C++ cannot declare twice, and names of another variant's or device's kernel."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.aten.pack import PACK

CODES = ("ATN139", "ATN323", "ATN324")


def lint(native: str) -> Linted:
    return lint_files([PACK], {"native_functions.yaml": native}, CODES)


def told(native: str) -> list[tuple[str, int, str]]:
    """Code, line and message of each finding."""
    linted = lint(native)
    return [(item.code, linted.position(item.place).line, item.message) for item in linted.diagnostics]


def op(schema: str, kernel: str, key: str = "CPU", more: str = "") -> str:
    """An entry of at least three lines, whose last names the kernel."""
    return f"- func: {schema}\n{more}  dispatch:\n    {key}: {kernel}\n"


TWO = "(Tensor, Tensor)"
OUT_K = ".out(Tensor self, int k=1, *, Tensor(a!) out) -> Tensor(a!)"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            "a(Tensor self, int k=1) -> Tensor",
            "b(Tensor self, int k=1) -> Tensor",
            "`f` is declared for `a` already, with the same parameters and a default for `k`: C++ refuses a second default",
        ),
        (
            "a(Tensor self, int k=1) -> Tensor",
            "b(Tensor x, int n=2) -> Tensor",
            "`f` is declared for `a` already, with the same parameters and a default for `n`: C++ refuses a second default",
        ),
        (
            "a(Tensor self) -> Tensor",
            f"b(Tensor self) -> {TWO}",
            "`f` returns `::std::tuple<at::Tensor,at::Tensor>` for `b`, and `at::Tensor` for `a`, with the same parameters:"
            " C++ refuses the second declaration",
        ),
        (
            "a(Tensor self) -> Tensor",
            "a.two(Tensor self) -> bool",
            "`f` returns `bool` for `a.two`, and `at::Tensor` for `a`, with the same parameters:"
            " C++ refuses the second declaration",
        ),
    ],
)
def test_a_kernel_that_cpp_cannot_declare_for_both(first: str, second: str, message: str) -> None:
    native = op(first, "f") + op(second, "f", "CUDA")
    linted = lint(native)
    (found,) = linted.diagnostics
    assert (found.code, found.message) == ("ATN323", message)
    assert [linted.position(found.place).line, linted.position(found.related[0].place).line] == [6, 3]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a(Tensor self, int k) -> Tensor", "b(Tensor self, int k) -> Tensor"),
        ("a(Tensor self, int k=1) -> Tensor", "b(Tensor self, int k) -> Tensor"),
        ("a(Tensor self, int k=1) -> Tensor", "b(Tensor self, float k=1) -> Tensor"),
        ("a(Tensor self) -> Tensor", f"b(Tensor self, Tensor x) -> {TWO}"),
        ("a(Tensor self) -> Tensor", f"b(Tensor? self) -> {TWO}"),
        (f"a{OUT_K}", f"b{OUT_K}"),
        ("a(Tensor self, SymInt k=1) -> Tensor", "b(Tensor self, SymInt[] k=1) -> Tensor"),
    ],
)
def test_a_kernel_that_cpp_declares_for_both(first: str, second: str) -> None:
    assert told(op(first, "f") + op(second, "f")) == []


def test_one_entry_may_name_its_kernel_for_several_keys() -> None:
    assert told("- func: a(Tensor self, int k=1) -> Tensor\n  dispatch:\n    CPU: f\n    CUDA: f\n    MPS: g\n") == []


def test_namespaces_keep_kernels_apart() -> None:
    schema = "(Tensor self, int k=1) -> Tensor"
    assert told(op(f"a{schema}", "x::f") + op(f"b{schema}", "y::f") + op(f"c{schema}", "f")) == []


def test_the_kernel_of_a_composite_operator_is_declared_as_well() -> None:
    native = "- func: a(Tensor self, int k=1) -> Tensor\n" + op("b(Tensor self, int k=1) -> Tensor", "a")
    assert [(code, line) for code, line, _ in told(native)] == [("ATN323", 4)]


STRUCTURED = """\
- func: {name}.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    {key}: {kernel}
- func: {name}(Tensor self) -> Tensor
  structured_delegate: {name}.out
"""


def test_a_structured_kernel_is_one_class() -> None:
    native = STRUCTURED.format(name="a", key="CPU", kernel="f") + STRUCTURED.format(name="b", key="CUDA", kernel="f")
    message = "the class `structured_f` is declared for `a.out` already: C++ refuses it"
    assert told(native) == [("ATN323", 10, message)]


@pytest.mark.parametrize(("key", "kernel"), [("CPU", "g"), ("SparseCPU", "f")])
def test_structured_kernels_of_their_own_and_functions(key: str, kernel: str) -> None:
    native = STRUCTURED.format(name="a", key="CPU", kernel="f") + STRUCTURED.format(name="b", key=key, kernel=kernel)
    assert told(native) == []


def test_the_same_operator_twice_is_not_judged() -> None:
    assert told(op("a(Tensor self, int k=1) -> Tensor", "f") * 2) == []


@pytest.mark.parametrize(
    ("key", "kernel", "device"),
    [("CUDA", "f_cpu", "CPU"), ("SparseCUDA", "f_sparse_cpu_", "CPU"), ("CPU", "_f_cuda_out", "CUDA"), ("MPS", "f_xpu", "XPU")],
)  # fmt: skip
def test_a_kernel_for_another_device_by_its_name(key: str, kernel: str, device: str) -> None:
    message = f"`{key}` has the kernel `{kernel}`, which is for {device} by its name"
    assert told(op("a(Tensor self) -> Tensor", kernel, key)) == [("ATN139", 3, message)]


@pytest.mark.parametrize(
    ("key", "kernel"),
    [
        ("CUDA", "f_cpu_or_cuda"),
        ("MPS", "f_cpu_fallback"),
        ("XPU", "f_cpu_or_cuda"),
        ("SparseMeta", "f_cpu"),
        ("CPU", "f"),
        ("CPU, CUDA", "f_cpu_cuda"),
        ("CPU, CUDA, XPU", "f_cpu_or_cuda"),
        ("CUDA", "cpublas_f"),
        ("CompositeExplicitAutograd", "f_cuda"),
        ("CUDA", "cuda_f"),
        ("ZeroTensor", "f_cpu"),
    ],
)
def test_a_kernel_whose_name_fits_its_key(key: str, kernel: str) -> None:
    assert told(op("a(Tensor self) -> Tensor", kernel, key)) == []


INPLACE = "a_(Tensor(a!) self) -> Tensor(a!)"
OUT = "a.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


def test_an_in_place_variant_with_the_functional_kernel() -> None:
    native = op("a(Tensor self) -> Tensor", "f") + op(INPLACE, "f")
    assert told(native) == [("ATN324", 6, "`f` is the kernel of `a`, and `a_` needs one of its own")]
    assert told(native.replace("CPU: f", "CPU: g", 1)) == []


def test_an_out_variant_may_overload_the_functional_kernel() -> None:
    assert told(op("a(Tensor self) -> Tensor", "f") + op(OUT, "f")) == []


def test_a_mutable_operator_may_share_a_kernel_with_its_functional() -> None:
    native = op("a(Tensor self, Tensor(a!) x) -> Tensor", "f") + op(
        "a_functional(Tensor self, Tensor x) -> (Tensor, Tensor)", "f"
    )
    assert told(native) == []

"""The class of a backend's kernels: its namespace, its name, and how much of it is written."""

from __future__ import annotations

from opschema_cli.testing import Linted, lint_files
from opschema_rules.aten.pack import PACK
from tests.rules.aten.test_kernels import ADD, EXPAND, EXPAND_SYMINT, NATIVE, RELU, SQUARE, backend

ALL = "[relu, square, add.Tensor, add.Scalar, clamp, expand]"


def lint(cpp: str, namespace: str = "torch_xla", **lists: str) -> Linted:
    files = {
        "native_functions.yaml": NATIVE,
        "xla.yaml": backend(**lists),
        "csrc/kernels.cpp": f"namespace {namespace} {{\n{cpp}}}\n",
    }
    return lint_files([PACK], files, [f"ATN70{number}" for number in (1, 2, 6, 7, 8)])


def findings(cpp: str, namespace: str = "torch_xla", **lists: str) -> list[str]:
    linted = lint(cpp, namespace, **lists)
    return [f"{item.code} {linted.text(item.place)!r}: {item.message}" for item in linted.diagnostics]


def test_where_most_kernels_are_missing_one_note_counts_them() -> None:
    assert findings(RELU, supported=ALL) == [
        "ATN706 'supported': 1 of 6 kernels of `XLANativeFunctions` are defined in this tree;"
        " `square`, `add.Tensor`, `add.Scalar`, `clamp` and 1 more are not"
    ]
    assert findings(RELU + SQUARE, supported="[relu, square]", full_codegen="[clamp, pair, mean.dim]") == []


def test_a_kernel_that_lacks_only_its_suffix_is_reported_where_most_are_missing() -> None:
    message = (
        "ATN701 'expand': torchgen looks for `XLANativeFunctions::expand_symint`, since `symint` lists `expand`; the class has"
        " `expand`: rename it"
    )
    found = findings(EXPAND, supported=ALL, symint="[expand]")
    assert found[1:] == [f"{message}, and have it take `c10::SymInt`"]
    assert found[0].startswith("ATN706")
    of_symint = EXPAND_SYMINT.replace("expand_symint", "expand")
    assert findings(of_symint, supported=ALL, symint="[expand]")[1:] == [message]


def test_the_namespace_of_the_kernels() -> None:
    message = "ATN707 'torch_xla': `cpp_namespace` is `torch_xla`, and 2 of 2 kernels are defined in"
    assert findings(RELU + ADD, "other", supported="[relu, add.Tensor]") == [f"{message} `other::XLANativeFunctions`"]
    assert findings(RELU + ADD, "vendor::torch_xla", supported="[relu, add.Tensor]") == []


def test_few_kernels_in_another_namespace_are_a_note() -> None:
    assert findings(RELU, "other", supported=ALL) == [
        "ATN708 'supported': 6 kernels are not checked: no C++ file defines methods of `torch_xla::XLANativeFunctions`;"
        " `other::XLANativeFunctions` defines 1 of them"
    ]


def test_a_class_of_another_name_is_named_where_it_has_several_kernels() -> None:
    cpp = (RELU + SQUARE + EXPAND).replace("XLANativeFunctions", "AtenXlaType")
    said = "6 kernels are not checked: no C++ file defines methods of `torch_xla::XLANativeFunctions`"
    linted = lint(cpp, supported=ALL)
    assert [item.message for item in linted.diagnostics] == [
        f"{said}; `AtenXlaType` defines 3 of them: if it is meant, write `class_name: AtenXlaType`"
    ]
    assert [linted.text(item.place) for item in linted.diagnostics[0].related] == ["AtenXlaType::relu"]
    calls = "void f(const at::Tensor& x) {\n  at::relu(x);\n  at::square(x);\n  at::expand(x);\n}\n"
    assert [item.message for item in lint(calls, supported=ALL).diagnostics] == [said]


def test_the_class_of_another_backend_is_not_named() -> None:
    other = backend(supported="[relu, square, expand]").replace("cpp_namespace: torch_xla", "cpp_namespace: lazy")
    kernels = {
        "csrc/xla.cpp": f"namespace torch_xla {{\n{RELU + SQUARE + EXPAND}}}\n",
        "csrc/lazy.cpp": f"namespace lazy {{\n{(RELU + SQUARE).replace('XLANativeFunctions', 'AtenLazy')}}}\n",
    }
    files = {
        "native_functions.yaml": NATIVE,
        "xla.yaml": backend(supported=ALL),
        "lazy.yaml": other.replace("backend: XLA", "backend: Lazy"),
        **kernels,
    }
    assert [item.message for item in lint_files([PACK], files, ["ATN708"]).diagnostics] == [
        "3 kernels are not checked: no C++ file defines methods of `lazy::LazyNativeFunctions`"
    ]
    lazy = {
        "csrc/lazy.cpp": kernels["csrc/lazy.cpp"].replace(
            "}\n", "}\n" + EXPAND.replace("XLANativeFunctions", "AtenLazy"), 1
        )
    }
    (found,) = lint_files([PACK], {**files, **lazy}, ["ATN708"]).diagnostics
    assert "`AtenLazy` defines 3 of them" in found.message


def test_a_tree_without_cpp_needs_no_note() -> None:
    files = {"native_functions.yaml": NATIVE, "xla.yaml": backend(supported=ALL)}
    assert lint_files([PACK], files, ["ATN708"]).diagnostics == []

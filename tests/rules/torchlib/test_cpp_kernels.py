"""C++ kernels followed to their functions, and compared with schemas."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.source.resolution import Unresolved
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK
from tests.rules.torchlib.operators_of import schema_of, tree_of

OPS = "at::Tensor f(const at::Tensor& x, int64_t n);\n"
INCLUDED = {"csrc/include/ops.h": "#pragma once\nnamespace kit {\n" + OPS + "}\n"}


def kernel(function: str, before: str = OPS, files: dict[str, str] | None = None, block: str = "kit") -> str:
    """The signature of the function behind one registration, or why it is not followed."""
    text = f'{before}TORCH_LIBRARY_IMPL({block}, CPU, m) {{ m.impl("f", {function}); }}\n'
    define = 'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, int n) -> Tensor"); }\n'
    tree = tree_of({"csrc/ops.cpp": define + text, **(files or {})})
    found = tree.operators[0].registrations[0].kernels
    if isinstance(found, Unresolved):
        return f"? {found.reason}"
    return " | ".join(f"{item.name}({', '.join(item.parameter_types)}) -> {item.returns}" for item in found or ())


UNUSED = "f(const at::Tensor&, int64_t [[maybe_unused]]) -> at::Tensor"
SIGNATURE = "(const at::Tensor&, int64_t) -> at::Tensor"


@pytest.mark.parametrize(
    "function",
    [
        "f",
        "&f",
        "::f",
        "TORCH_FN(f)",
        "TORCH_FN((f))",
        "torch::CppFunction(&f)",
        "torch::CppFunction::makeFromUnboxedFunction(f)",
        "/* the kernel */ &f",
        "TORCH_BOX(&f)",
        "torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(f))",
    ],
)
def test_forms_of_one_function(function: str) -> None:
    assert kernel(function) == f"f{SIGNATURE}"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            "[](const at::Tensor& x, int64_t n) -> at::Tensor { return x; }",
            "(const at::Tensor&, int64_t) -> at::Tensor",
        ),
        ("[](at::Tensor x, int64_t n) { return x; }", "(at::Tensor, int64_t) -> auto"),
        ("static_cast<at::Tensor (*)(const at::Tensor&, double)>(&f)", "(const at::Tensor&, double) -> at::Tensor"),
        ("&f<float>", "f(const at::Tensor&, int64_t) -> at::Tensor"),
        ("make(f)", "? its function is not followed"),
        ("torch::CppFunction::makeFromBoxedFunction<&boxed>()", ""),
        ("torch::CppFunction::makeFallthrough()", ""),
        ("&g", "? no `g` is declared in the files of the workspace that it sees"),
        ("[](auto x, int64_t n) { return x; }", "? its function is not followed"),
    ],
)
def test_other_functions(function: str, expected: str) -> None:
    assert kernel(function) == expected


@pytest.mark.parametrize(
    ("before", "function", "expected"),
    [
        ('#include "include/ops.h"\n', "&kit::f", f"kit::f{SIGNATURE}"),
        ('#include <kit/csrc/include/ops.h>\n', "kit::f", "? no `kit::f` is declared in the files of the workspace that it sees"),
        ('#include <include/ops.h>\n', "kit::f", f"kit::f{SIGNATURE}"),
        ("namespace a { " + OPS + "}\n", "&f", "? no `f` is declared in the files of the workspace that it sees"),
        ("namespace a { " + OPS + "}\nusing namespace a;\n", "&f", f"a::f{SIGNATURE}"),
        ("namespace a { " + OPS + "}\nusing a::f;\n", "&f", f"a::f{SIGNATURE}"),
        ("template <class T> T f(T x, int64_t n);\n", "&f", "? `f` is a template, or not understood"),
        ("at::Tensor f(at::Tensor x);\nat::Tensor f(at::Tensor x, int64_t n);\n", "&f", "? `f` has several overloads"),
        (OPS + OPS.replace(";", " { return x; }"), "&f", f"f{SIGNATURE}"),
        ("namespace a { at::Tensor f(at::Tensor x); }\n" + OPS, "&f", f"f{SIGNATURE}"),
        ("#define ARGS int64_t n, int64_t m\nat::Tensor f(at::Tensor x, ARGS);\n", "&f", "? `f` is a template, or not understood"),
        ("using T = at::Tensor;\nT f(const T& x, int64_t n);\n", "&f", f"f{SIGNATURE}"),
        ("at::Tensor f(c10::DispatchKeySet ks, const at::Tensor& x, int64_t n);\n", "&f", f"f{SIGNATURE}"),
        ("auto f(const at::Tensor& x, int64_t n) -> at::Tensor { return x; }\n", "&f", f"f{SIGNATURE}"),
        ("at::Tensor f(const at::Tensor& x, int64_t n [[maybe_unused]]);\n", "&f", UNUSED),
    ],
)  # fmt: skip
def test_declarations_that_a_file_sees(before: str, function: str, expected: str) -> None:
    assert kernel(function, before, INCLUDED).replace("  ", " ") == expected


@pytest.mark.parametrize(
    ("before", "function", "expected"),
    [
        ("template <int N> at::Tensor t(at::Tensor x);\n", "&t<4>", "t(at::Tensor) -> at::Tensor"),
        ("template <class T, bool B = true> T t(at::Tensor x, T n);\n", "TORCH_FN(t<double>)", "t(at::Tensor, double) -> double"),
        ("using U = double;\ntemplate <class T, class U> U t(T x);\n", "t<int64_t>", "t(int64_t) -> U"),
        ("template <class... T> int64_t t(T... x);\n", "t<int64_t>", "? `t` is a template, or not understood"),
        ("template <class T> struct S { static int64_t t(T x); };\n", "S::t", "? `S::t` is a template, or not understood"),
        ("template <class T> T t(T x);\ntemplate <> double t(double x);\n", "t<double>", "? `t` is a template, or not understood"),
    ],
)  # fmt: skip
def test_functions_made_of_templates(before: str, function: str, expected: str) -> None:
    assert kernel(function, before) == expected


def test_builds_with_functions_of_their_own_are_all_judged() -> None:
    before = "#ifdef ROCM\nat::Tensor f(at::Tensor x);\n#else\nat::Tensor f(at::Tensor x, int64_t n);\n#endif\n"
    assert kernel("&f", before) == "f(at::Tensor) -> at::Tensor | f(at::Tensor, int64_t) -> at::Tensor"


def test_the_namespace_around_a_block_counts() -> None:
    inner = 'namespace kit { TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("f", f); } }\n'
    text = "at::Tensor f(int64_t n);\nnamespace kit { at::Tensor f(at::Tensor x); }\n" + inner
    tree = tree_of({"ops.cpp": 'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x) -> Tensor"); }\n' + text})
    found = tree.operators[0].registrations[0].kernels
    assert isinstance(found, tuple)
    assert [item.name for item in found] == ["kit::f"]


def test_a_boxed_kernel_of_the_stable_abi_is_not_compared() -> None:
    text = (
        'STABLE_TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, int n) -> Tensor"); }\n'
        "void boxed(StableIValue* stack, uint64_t num_args, uint64_t num_outputs);\n"
        "torch::stable::Tensor other(torch::stable::Tensor x);\n"
        'STABLE_TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("f", &boxed); }\n'
    )
    assert lint_files([PACK], {"ops.cpp": text}, ["REG501"]).diagnostics == []
    unboxed = lint_files([PACK], {"ops.cpp": text.replace("&boxed", "TORCH_BOX(&other)")}, ["REG501"])
    assert [item.code for item in unboxed.diagnostics] == ["REG501"]


def test_shifted_arguments_are_one_finding() -> None:
    text = (
        "at::Tensor f(at::Tensor x, double eps, at::Tensor y, int64_t n) { return x; }\n"
        'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, Tensor y, int n, float eps) -> Tensor", &f); }\n'
    )
    [found] = lint_files([PACK], {"ops.cpp": text}, ["REG501"]).diagnostics
    assert found.message == (
        "`f()` takes `double` where the schema of `kit::f` has `Tensor y` (`const at::Tensor&`); 2 further arguments differ, too:"
        " torch refuses it when the library is loaded"
    )
    places = [text[item.place.span.start : item.place.span.end] for item in found.related]
    assert places[:5] == ["at::Tensor y", "int64_t n", "y", "n", "eps"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("std::tuple<at::Tensor, int64_t> f(at::Tensor x, std::optional<double> eps);", "(Tensor _0, float? _1) -> (Tensor, int)"),
        ("void f(at::Tensor& x, c10::SymInt n);", "(Tensor _0, SymInt _1) -> ()"),
        ("Mine f(at::Tensor& x);", "?"),
    ],
)  # fmt: skip
def test_a_definition_without_a_schema_has_that_of_its_function(function: str, expected: str) -> None:
    tree = tree_of({"ops.cpp": function + '\nTORCH_LIBRARY(kit, m) { m.def("f", &f); }\n'})
    assert schema_of(tree.operators[0]) == expected


CONDITIONAL = """\
#ifdef ROCM
at::Tensor f(at::Tensor x);
#else
at::Tensor f(at::Tensor x, int64_t n);
#endif
TORCH_LIBRARY(kit, m) {
#ifdef ROCM
  m.def("f(Tensor x) -> Tensor");
#else
  m.def("f(Tensor x, int n) -> Tensor");
#endif
  m.impl("f", c10::kCUDA, &f);
}
"""
OTHER = """\
at::Tensor f(at::Tensor x, double n);
TORCH_LIBRARY(kit, m) {
  m.def("f(Tensor x, float n) -> Tensor");
  m.impl("f", c10::kCPU, &f);
}
"""


def test_a_function_is_compared_with_the_definition_of_its_build_and_its_file() -> None:
    assert [item.message for item in errors({"gpu/ops.cpp": CONDITIONAL, "cpu/ops.cpp": OTHER})] == []
    wrong = CONDITIONAL.replace("f(at::Tensor x);", "f(double x);")
    assert [item.place.path for item in errors({"gpu/ops.cpp": wrong, "cpu/ops.cpp": OTHER})] == ["gpu/ops.cpp"]


def errors(files: dict[str, str]) -> list[Diagnostic]:
    return [item for item in lint_files(PACK, files, ["REG5"]).diagnostics if item.severity is Severity.ERROR]


BACKEND = """\
#include <torch/library.h>
at::Tensor add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha);
at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out);
at::Tensor mul(at::Tensor self, at::Tensor other);
at::Tensor relu(const at::Tensor& self);
at::Tensor custom(const at::Tensor& x, float eps);
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("add.Tensr", TORCH_FN(add));
  m.impl("add.out", TORCH_FN(add_out));
  m.impl("mul.Tensor", TORCH_FN(mul));
  m.impl("relu", TORCH_FN(relu));
  m.impl("relu", TORCH_FN(relu));
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateuse1, m) { m.impl("relu", torch::autograd::autogradNotImplementedFallback()); }
TORCH_LIBRARY(kit, m) { m.def("custom(Tensor x, float eps) -> Tensor", &custom); }
"""


def test_a_backend_with_six_faults() -> None:
    """A backend outside of PyTorch's tree, judged by the operators of a release that comes with opschema."""
    files = {"backend.cpp": BACKEND, "opschema.toml": '[torchlib]\ntorch = "2.13"\n'}
    found = lint_files(PACK, files, ["REG5"]).diagnostics
    refused = "torch refuses it when the library is loaded"
    near = "`add.Tensor`, `add.out` or `add.Scalar`"
    kernels = "torch's own kernels of `aten::mul.Tensor` take `const at::Tensor &` (1 more difference)"
    assert [f"{item.code} {item.severity.value}: {item.message}" for item in found] == [
        f"REG505 error: `add_out()` takes 3 arguments, the schema of `aten::add.out` has 4: {refused}",
        f"REG505 error: `mul()` takes `at::Tensor`, {kernels}: {refused}",
        "REG502 error: `custom()` takes `float` as `eps`, which torch does not compile; write `double`",
        "REG504 error: torch 2.13 has no operator `aten::add.Tensr`, so that this kernel is never called;"
        f" did you mean {near}?",
        "REG506 warning: `aten::relu` has a kernel for `PrivateUse1` already; torch keeps the one that is registered last",
        "REG507 error: torch has no dispatch key `AutogradPrivateuse1`; did you mean `AutogradPrivateUse1`?",
    ]


@pytest.mark.parametrize(
    ("name", "torch", "severity"),
    [
        ("addmm.dtype_v2", ">=2.6", "warning"),  # a release that is not known may have it
        ("addmm.dtype_v2", "==2.6.0", "error"),
        ("add.Tensr", ">=2.6", "error"),
        ("add", ">=2.6", "error"),
        ("addd.Tensor", ">=2.6", "error"),
        ("add.t", ">=2.6", "warning"),
        ("_cat", ">=1.8", "warning"),  # an operator of its own, before 2.0
        ("_cat", "==2.6.0", "error"),
    ],
)
def test_an_unknown_overload_is_an_error_if_the_release_is_known(name: str, torch: str, severity: str) -> None:
    kernel = f'TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {{ m.impl("{name}", &f); }}'
    files = {"k.cpp": f"#include <torch/library.h>\n{kernel}\n", "requirements.txt": f"torch{torch}\n"}
    assert [item.severity.value for item in lint_files(PACK, files, ["REG504"]).diagnostics] == [severity]


AUTOCAST = """
#include <ATen/autocast_mode.h>

#define KERNEL_MINE(OP, POLICY) KERNEL(c10::DeviceType::PrivateUse1, OP, POLICY)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  KERNEL_MINE(mm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv1d, padding, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(conv1d, lower_precision_fp)
  KERNEL_MINE(bmn, lower_precision_fp)
  KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE(
      ADD_NS(norm), "norm.Scalr", Tensor(const Tensor&, const Scalar&), Tensor(const Tensor&, ScalarType), fp32_append_dtype)
}
"""


def test_macros_for_autocast_register_kernels_of_torchs_operators() -> None:
    files = {"autocast.cpp": AUTOCAST, "opschema.toml": '[torchlib]\ntorch = "2.13"\n'}
    linted = lint_files(PACK, files, ["REG5"])
    assert [item.message.partition(",")[0] for item in linted.diagnostics] == [
        "torch 2.13 has no operator `aten::bmn`",
        "torch 2.13 has no operator `aten::norm.Scalr`",
    ]
    assert tree_of(files).unresolved == []


def test_a_torch_that_the_tree_patches_has_more_operators() -> None:
    patch = (
        "--- a/aten/src/ATen/native/native_functions.yaml\n+++ b/aten/src/ATen/native/native_functions.yaml\n@@ -1,2 +1,3 @@\n"
        " - func: relu(Tensor self) -> Tensor\n+- func: bmn(Tensor self, Tensor mat2) -> Tensor\n"
    )
    files = {"autocast.cpp": AUTOCAST, "opschema.toml": '[torchlib]\ntorch = "2.13"\n', "patches/native.patch": patch}
    [found] = lint_files(PACK, files, ["REG5"]).diagnostics
    assert "`aten::norm.Scalr`" in found.message


def test_a_default_that_torch_reads_as_another_does_not_hide_the_kernel() -> None:
    text = """#include <torch/library.h>
at::Tensor mask(const at::Tensor& x, int64_t bits) { return x; }
TORCH_LIBRARY(kit, m) { m.def("mask(Tensor x, int bits=0x2F, int shift=1) -> Tensor", &mask); }
"""
    found = lint_files([PACK], {"ops.cpp": text}, ["REG110", "REG501"]).diagnostics
    assert [item.code for item in found] == ["REG501", "REG110"]
    refused = lint_files([PACK], {"ops.cpp": text.replace("0x2F", "none")}, ["REG110", "REG501"]).diagnostics
    assert [item.code for item in refused] == ["REG110"]


@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({}, [Severity.ERROR]),
        ({"requirements.txt": "torch>=2.4\n"}, [Severity.ERROR]),
        ({"setup.py": "base_version = '2.9'\n", ".torch_commit": "b" * 40}, [Severity.ERROR]),
        ({".torch_commit": "b" * 40}, [Severity.WARNING]),
        ({"requirements.txt": "torch>=99.0\n"}, [Severity.WARNING]),
        ({"requirements.txt": "torch==99.0.0\n"}, [Severity.WARNING]),
        ({"Dockerfile": "RUN pip install torch==1.13.0\n"}, []),
        ({"docker/requirements.txt": "torch==2.1.0+cpu\n"}, []),
        ({"docker/requirements.txt": "torch==2.9.0+cpu\n"}, [Severity.ERROR]),
    ],
)
def test_a_torch_that_is_not_known_may_take_a_kernel(files: dict[str, str], severity: list[Severity]) -> None:
    kernel = """
#include <torch/library.h>
at::Tensor relu(const at::Tensor& self, int64_t how) { return self; }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("relu", TORCH_FN(relu)); }
"""
    found = lint_files(PACK, {"backend.cpp": kernel, **files}, ["REG505"]).diagnostics
    assert [item.severity for item in found] == severity


KERNELS = """\
#include <torch/library.h>
at::Tensor one(const at::Tensor& x);
at::Tensor two(const at::Tensor& x, int64_t n);
"""
ALTERNATIVES = """\
#ifdef GPU
TORCH_LIBRARY(kit, m) {{ m.def("f(Tensor x) -> Tensor"); }}
#else
TORCH_LIBRARY(kit, m) {{ m.def("f(Tensor x, int n) -> Tensor"); }}
#endif
{kernels}
"""
WITH_KERNELS = """\
#if LIMIT > 3
TORCH_LIBRARY(kit, m) { m.def("f(Tensor x) -> Tensor", &one); }
#else
TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, int n) -> Tensor", &two); }
#endif
"""
ONE, TWO = (f'TORCH_LIBRARY_IMPL(kit, CPU, m) {{ m.impl("f", &{name}); }}\n' for name in ("one", "two"))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (WITH_KERNELS, 0),
        (ALTERNATIVES.format(kernels=f"#ifdef GPU\n{ONE}#else\n{TWO}#endif"), 0),
        (ALTERNATIVES.format(kernels=f"#ifndef GPU\n{TWO}#endif\n#ifdef GPU\n{ONE}#endif"), 0),
        (ALTERNATIVES.format(kernels=f"#if BITS == 32\n{ONE}#else\n{TWO}#endif"), 0),
        (ALTERNATIVES.format(kernels=f"#ifdef GPU\n{TWO}#else\n{ONE}#endif"), 2),
        (WITH_KERNELS.replace("&two", "&one"), 1),
        (ALTERNATIVES.format(kernels="at::Tensor f();\n" + ONE.replace("one", "f")), 2),
    ],
)
def test_a_kernel_is_compared_with_the_definitions_that_it_is_compiled_with(text: str, count: int) -> None:
    found = lint_files([PACK], {"csrc/ops.cpp": KERNELS + text}, ["REG501"]).diagnostics
    assert len(found) == count


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"kit/config.h.in": "#cmakedefine FAST\n#define TPU PrivateUse1\n"}, []),
        ({"kit/config.h": "#define TPU PrivateUse1\n"}, []),
        ({"kit/config.h.in": "#cmakedefine FAST\n"}, ["REG507"]),
        ({}, ["REG507"]),
    ],
)
def test_a_dispatch_key_may_be_a_macro_of_a_header_that_cmake_writes(
    header: dict[str, str], expected: list[str]
) -> None:
    kernel = """
#include <torch/library.h>
#include "config.h"
at::Tensor relu(const at::Tensor& self) { return self; }
TORCH_LIBRARY_IMPL(aten, TPU, m) { m.impl("relu", TORCH_FN(relu)); }
"""
    assert lint_files(PACK, {"kit/relu.cpp": kernel, **header}, ["REG507"]).codes() == expected


STUB = """\
#include <torch/library.h>
TORCH_LIBRARY(kit, m) { m.def("gemm(Tensor a, Tensor b, bool fast) -> Tensor"); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
at::Tensor gemm(const at::Tensor& a, const at::Tensor& b) { return a; }
#else
at::Tensor gemm(const at::Tensor& a, const at::Tensor& b, bool fast) { return a; }
#endif
TORCH_LIBRARY_IMPL(kit, CUDA, m) { m.impl("gemm", &gemm); }
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800", "CUDA_VERSION < 12000", ["REG501"]),
        ("bool fast) { return a", "bool fast, int64_t n) { return a", ["REG501"]),
    ],
)
def test_what_is_compiled_for_a_gpu_alone_is_no_kernel(old: str, new: str, expected: list[str]) -> None:
    found = lint_files(PACK, {"gemm.cu": STUB.replace(old, new)}, ["REG501"]).diagnostics
    assert [item.code for item in found] == expected


SEVERAL_RELEASES = """\
#include <torch/library.h>
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2
at::Tensor relu(const at::Tensor& self, int64_t how) { return self; }
#else
at::Tensor relu(const at::Tensor& self) { return self; }
#endif
at::Tensor old(const at::Tensor& self) { return self; }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("relu", TORCH_FN(relu));
#ifdef IS_TORCH_1_13
  m.impl("sigmoid.out", TORCH_FN(old));
  m.impl("relu_old_", TORCH_FN(old));
#endif
}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 2", "#if USE_HOW", ["REG505"]),
        ("IS_TORCH_1_13", "USE_OLD", ["REG505", "REG504"]),
        ("relu(const at::Tensor& self) {", "relu(at::Tensor self) {", []),
    ],
)
def test_kernels_for_some_releases_of_torch_are_not_compared(old: str, new: str, expected: list[str]) -> None:
    files = {"backend.cpp": SEVERAL_RELEASES.replace(old, new)}
    assert [item.code for item in lint_files(PACK, files, ["REG504", "REG505"]).diagnostics] == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("[](void) { return at::Tensor(); }", []),
        ("[](at::Tensor x) { return x; }", ["REG501"]),
        ("static_cast<at::Tensor (*)(ARGUMENTS)>(&make)", []),
        ("[](ARGUMENTS) { return at::Tensor(); }", []),
    ],
)
def test_parameters_that_are_none_or_a_macro(function: str, expected: list[str]) -> None:
    text = f'#include <torch/library.h>\nTORCH_LIBRARY(kit, m) {{ m.def("make() -> Tensor", {function}); }}\n'
    assert [item.code for item in lint_files(PACK, {"ops.cpp": text}, ["REG501"]).diagnostics] == expected


ALTERNATIVES = "#ifdef USE_ROCM\nat::Tensor f(at::Tensor x, int64_t n);\n#else\nat::Tensor f(at::Tensor x);\n#endif\n"


@pytest.mark.parametrize(
    ("schema", "in_header", "count"),
    [
        ("f(Tensor x) -> Tensor", True, 0),  # the file may be compiled without USE_ROCM only
        ("f(Tensor x, int n) -> Tensor", True, 0),
        ("f(Tensor x, int n, int k) -> Tensor", True, 2),
        ("f(Tensor x) -> Tensor", False, 1),
    ],
)
def test_declarations_of_two_builds_in_a_header(schema: str, in_header: bool, count: int) -> None:
    block = f'TORCH_LIBRARY(kit, m) {{ m.def("{schema}"); m.impl("f", torch::kCUDA, &f); }}\n'
    head = "#include <torch/library.h>\n"
    files = {"ops.h": ALTERNATIVES, "ops.cpp": f'{head}#include "ops.h"\n{block}'}
    found = lint_files(PACK, files if in_header else {"ops.cpp": head + ALTERNATIVES + block}, ["REG501"]).diagnostics
    assert len(found) == count

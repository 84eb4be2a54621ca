"""Kernels that lists name, and the C++ functions of the tree."""

from __future__ import annotations

import pytest

from opschema_cli.testing import fix_files, lint_files
from opschema_rules.executorch.pack import PACK

SCHEMAS = {
    "scale": "scale.out(Tensor x, float factor, ScalarType? dtype, *, Tensor(a!) out) -> Tensor(a!)",
    "pad": "pad.out(Tensor x, SymInt[] sizes, Tensor? mask, str mode, *, Tensor(a!) out) -> Tensor(a!)",
    "both": "both.out(Tensor[] xs, Tensor?[] ys, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))",
}
LIST = "".join(
    f"- func: kit::{schema}\n  kernels:\n    - arg_meta: null\n      kernel_name: kit::{name}_out\n"
    for name, schema in SCHEMAS.items()
)
SCALE = "Tensor& scale_out(KernelRuntimeContext& c, const Tensor& x, double f, optional<ScalarType> t, Tensor& out) { return out; }"
PAD = (
    "executorch::aten::Tensor& pad_out(torch::executor::KernelRuntimeContext& c, const exec_aten::Tensor& x,"
    " executorch::aten::IntArrayRef s, const std::optional<executorch::aten::Tensor>& m, std::string_view mode,"
    " executorch::aten::Tensor& out) { return out; }"
)
BOTH = (
    "std::tuple<Tensor&, Tensor&> both_out(RuntimeContext& c, TensorList xs, ArrayRef<std::optional<Tensor>> ys, Tensor& a,"
    " Tensor& b) { return {a, b}; }"
)


def source(*functions: str, space: str = "kit::native") -> str:
    return f"namespace {space} {{\n" + "\n".join(functions) + "\n}\n"


def found(text: str, listed: str = LIST) -> list[str]:
    return [
        f"{item.code} {item.message}" for item in lint_files(PACK, {"ops.yaml": listed, "ops.cpp": text}).diagnostics
    ]


@pytest.mark.parametrize(
    "text",
    [
        source(SCALE, PAD, BOTH),
        source(SCALE.replace("Tensor& scale", "void scale").replace("return out;", ""), PAD, BOTH),
        source(SCALE, "Tensor& scale_out(const Tensor& x, Tensor& out) { return out; }", PAD, BOTH),
        source(SCALE.replace("KernelRuntimeContext&", "Context&"), PAD, BOTH),
        source(SCALE.replace("double", "Factor"), PAD, BOTH),
        source(SCALE, "template <typename T> Tensor& scale_out(T x) { return x; }", PAD, BOTH),
        "#define USE(name) Tensor& name(KernelRuntimeContext& c)\n"
        + source("template <typename T> Tensor& scale_out(T x) { return x; }", "USE(scale_out);", PAD, BOTH),
        source("DEFINE_SCALE(scale_out)", PAD, BOTH),
        "#define KERNEL(name) Tensor& name##_out(KernelRuntimeContext& c)\n" + source("KERNEL(scale) {}", PAD, BOTH),
        "#ifdef FAST\n" + source(SCALE, PAD, BOTH) + "#endif\n",
        source(SCALE, PAD) + source(BOTH),
        "using Factor = double;\nusing Ctx = torch::executor::KernelRuntimeContext;\n"
        + source(SCALE.replace("double", "Factor").replace("KernelRuntimeContext", "Ctx"), PAD, BOTH),
        source("BROKEN((] {", SCALE, PAD, BOTH, "}"),
        source(SCALE, space="other::native"),
        "int main() { return 0; }\n",
    ],
    ids=[
        *(
            "sound",
            "void",
            "overload",
            "alias of the context",
            "unknown type",
            "template beside it",
            "template and macro",
            "macro",
            "pasted",
            "conditional",
        ),
        *("two blocks", "aliases", "unreadable", "another library", "no kernels"),
    ],
)
def test_no_finding(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "files",
    [
        {"ops.cpp": source(PAD, BOTH) + '#include "scale.inc"\n', "scale.h": SCALE},
        {"ops.cpp": source(PAD, BOTH), "scale.cpp": source(SCALE, space="KIT_NAMESPACE::native")},
        {"ops.cpp": source(PAD, BOTH), "scale.cpp": f"KIT_NAMESPACE_BEGIN\n\n{SCALE}\n\nKIT_NAMESPACE_END\n"},
        {"ops.cpp": source(PAD, BOTH), "scale.cpp": f"namespace kit {{ NATIVE_BEGIN\n{SCALE}\nNATIVE_END }}\n"},
        {
            "ops.cpp": source(PAD, BOTH),
            "scale.cpp": f"NAMESPACE_BEGIN(kit)\nNAMESPACE_BEGIN(native)\n{SCALE}\nNAMESPACE_END(native)\nNAMESPACE_END(kit)\n",
        },
    ],
    ids=[
        "a file that is included",
        "a macro for a namespace",
        "a macro that opens it",
        "a macro inside of one",
        "macros with names",
    ],
)
def test_a_namespace_that_is_not_known(files: dict[str, str]) -> None:
    assert lint_files(PACK, {"ops.yaml": LIST, **files}).codes() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SCALE.replace("KernelRuntimeContext&", "const KernelRuntimeContext&"), "must take `KernelRuntimeContext&`"),
        (
            SCALE.replace("KernelRuntimeContext&", "torch::executor::KernelRuntimeContext*"),
            "must take `KernelRuntimeContext&`",
        ),
        (SCALE.replace("KernelRuntimeContext&", "RuntimeContext"), "must take `KernelRuntimeContext&`"),
        (f"using Factor = float;\n{SCALE.replace('double', 'Factor')}", "takes `float`, but must take `double`"),
        (f"template <typename T> {SCALE}", "is a template; the generated code calls a plain function"),
        (f"static {SCALE}", "is static or in a namespace without a name"),
        (f"namespace {{\n{SCALE}\n}}", "is static or in a namespace without a name"),
        (f'extern "C" {SCALE}', 'is `extern "C"`'),
        (f'extern "C" {{\n{SCALE}\n}}', 'is `extern "C"`'),
        (f"inline {SCALE}", "is inline and never used"),
    ],
)
def test_a_function_that_does_not_link(text: str, message: str) -> None:
    (one,) = found(source(text, PAD, BOTH))
    assert one.startswith("EXE403 ")
    assert message in one
    if "static" in message:  # an overload of the kernel may be static
        assert found(source(SCALE, text.replace(", double f", ""), PAD, BOTH)) == []


ANOTHER = [
    ("scale", "double", "float", "takes `float`, but must take `double` for `float factor`"),
    ("scale", "double", "int64_t", "takes `int64_t`, but must take `double` for `float factor`"),
    ("scale", "const Tensor& x", "Tensor& x", "takes `Tensor&`, but must take `const Tensor&` for `Tensor x`"),
    ("scale", "Tensor& out)", "const Tensor& out)", "takes `const Tensor&`, but must take `Tensor&` for `Tensor out`"),
    ("scale", ", double f", "", "takes 3 arguments after the context, but the schema has 4"),
    ("scale", "KernelRuntimeContext& c, ", "", "must take `KernelRuntimeContext&` as its first parameter"),
    ("scale", "Tensor& scale", "Tensor scale", "returns `Tensor`, but the generated code expects `Tensor&`"),
    ("both", "std::tuple<Tensor&, Tensor&>", "void", "but the generated code expects `tuple<Tensor&,Tensor&>`"),
    (
        "pad",
        "const std::optional<executorch::aten::Tensor>&",
        "std::optional<Tensor>",
        "must take `const optional<Tensor>&`",
    ),
    ("pad", "IntArrayRef", "TensorList", "`ArrayRef<int64_t>` for `SymInt[] sizes`"),
]


@pytest.mark.parametrize(("name", "before", "after", "message"), ANOTHER)
def test_another_signature(name: str, before: str, after: str, message: str) -> None:
    functions = {"scale": SCALE, "pad": PAD, "both": BOTH}
    functions[name] = functions[name].replace(before, after)
    (one,) = found(source(*functions.values()))
    assert one.startswith("EXE403")
    assert message in one


@pytest.mark.parametrize(
    "text",
    [
        source(SCALE, PAD),
        source(SCALE, PAD, "// both_out is gone"),
        source(SCALE, PAD, BOTH.replace("{ return {a, b}; }", ";")),
        source(SCALE, PAD, "void test() { both_out(1); }") + "using kit::native::both_out;\n",
    ],
    ids=["nowhere", "in a comment", "declared alone", "called"],
)
def test_a_missing_kernel(text: str) -> None:
    assert [item.split()[0] for item in found(text)] == ["EXE401"]


def test_a_kernel_in_the_namespace_as_it_is_written() -> None:
    text = source(SCALE, PAD, BOTH, space="kit")
    assert [item.split()[0] for item in found(text)] == ["EXE402"] * 3
    assert "but `scale_out()` is defined in `kit`: linking fails" in found(text)[0]


def test_a_kernel_without_a_namespace() -> None:
    (one,) = found(source(PAD, BOTH) + SCALE)
    assert one.startswith("EXE402 ")
    assert "but `scale_out()` is defined in no namespace: linking fails" in one


@pytest.mark.parametrize(
    "other",
    [source(SCALE, space="reference::backends::native"), SCALE.replace("KernelRuntimeContext& c, ", "")],
    ids=["of another backend", "an unrelated function"],
)
def test_another_function_of_the_name(other: str) -> None:
    (one,) = found(source(PAD, BOTH) + other)
    assert one.startswith("EXE401 no C++ file defines `kit::native::scale_out()`")


def test_the_fix_of_a_namespace_that_is_written_in_full() -> None:
    files = {"ops.yaml": LIST.replace("kit::scale_out", "kit::native::scale_out"), "ops.cpp": source(SCALE, PAD, BOTH)}
    texts, linted = fix_files(PACK, files, unsafe=True)
    assert (texts, linted.codes()) == ({"ops.yaml": LIST}, [])


def test_a_kernel_that_an_error_hides_in_its_file() -> None:
    """The parser loses the namespaces behind the macro; braces tell them."""
    broken = "static void helper() {\n  SWITCH(a, b, CTYPE, [&]() { if (x {} });\n}\n"
    assert found(source(broken, SCALE, PAD, BOTH)) == []


@pytest.mark.parametrize(
    "text",
    [
        source(f"inline {SCALE}", PAD, BOTH, "void* table = (void*) &scale_out;"),
        source(f"__attribute__((used)) inline {SCALE}", PAD, BOTH),
        source(f'extern "C++" {{\n{SCALE}\n}}', PAD, BOTH),
        source('extern "C" {\nint helper();\n}', SCALE, PAD, BOTH),
        source('extern "C" int helper();', SCALE, PAD, BOTH),
        source(f'extern "C" {{\nextern "C++" {SCALE}\n}}', PAD, BOTH),
        source(f'// extern "C"\n{SCALE}', PAD, BOTH),
        source(f'#define EXPORT extern "C"\n{SCALE}', PAD, BOTH),
        f'#ifdef PLAIN_C\nextern "C" {{\n#endif\n{source(SCALE, PAD, BOTH)}\n#ifdef PLAIN_C\n}}\n#endif\n',
        source(f"KIT_EXPORT inline {SCALE}", PAD, BOTH),
        source(f"inline {SCALE}", PAD, BOTH)
        + "#define USE(name) (void)&kit::native::name##_out;\nvoid run() { USE(scale) }\n",
    ],
)
def test_functions_that_link(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("path", ["table.def", "table.ipp", "table.cpp.in", "table.cpp"])
def test_an_inline_function_that_another_file_uses(path: str) -> None:
    files = {"ops.yaml": LIST, "ops.cpp": source(f"inline {SCALE}", PAD, BOTH), path: "auto table = &scale_out;\n"}
    assert lint_files(PACK, files).codes() == []


def test_a_function_in_a_block_of_c_that_all_compilers_of_cpp_see() -> None:
    guard = '#ifdef __cplusplus\nextern "C" {\n#endif\n', "#ifdef __cplusplus\n}\n#endif\n"
    (message,) = found(source(guard[0] + SCALE + "\n" + guard[1], PAD, BOTH))
    assert 'is `extern "C"`' in message


LIBRARY = 'EXECUTORCH_LIBRARY(kit, "scale.out", kit::native::scale_fast);\n'
FAST = SCALE.replace("scale_out", "scale_fast")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FAST, ""),
        (FAST.replace("KernelRuntimeContext& c", "Context& c"), ""),
        (FAST.replace("double f", "Factor f"), ""),
        (FAST.replace("double f", "const Scalar& f"), ""),
        (FAST.replace("double f", "optional<double> f"), ""),
        (FAST.replace("optional<ScalarType> t", "int64_t t"), ""),
        (f"#ifdef FAST\n{FAST}\n#else\n{FAST.replace('double f', 'bool f')}\n#endif\n", ""),
        (
            FAST.replace("double f", "bool f"),
            "takes `bool` where the schema of `kit::scale.out` has `float factor` (`double`)",
        ),
        (FAST.replace("double f, ", ""), "takes 3 arguments after the context, the schema of `kit::scale.out` has 4"),
    ],
)
def test_functions_of_executorch_library(text: str, message: str) -> None:
    wanted = [f"EXE404 `kit::native::scale_fast()` {message}: every call fails"] if message else []
    assert found(source(SCALE, PAD, BOTH, text) + LIBRARY) == wanted


def test_a_function_of_executorch_library_for_one_of_two_entries() -> None:
    other = LIST.replace("float factor", "bool factor").replace("_out\n", "_other\n")
    text = source(SCALE, PAD, BOTH, FAST.replace("double f", "bool f")) + LIBRARY
    codes = lint_files(PACK, {"ops.yaml": LIST, "other/ops.yaml": other, "ops.cpp": text}).codes()
    assert "EXE404" not in codes


def test_functions_of_executorch_library_for_operators_that_are_not_listed() -> None:
    assert (
        found(source(SCALE, PAD, BOTH, FAST.replace("double f", "bool f")) + LIBRARY.replace("scale.out", "other.out"))
        == []
    )

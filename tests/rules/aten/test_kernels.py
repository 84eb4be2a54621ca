from __future__ import annotations

import time

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.pack import PACK

CODES = [f"ATN70{number}" for number in range(1, 6)]

NATIVE = """\
- func: relu(Tensor self) -> Tensor
- func: square(Tensor self) -> Tensor
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
- func: add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
- func: expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
- func: clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
- func: mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
- func: pair(Tensor self, Tensor other) -> (Tensor, Tensor)
"""

RELU = "at::Tensor XLANativeFunctions::relu(const at::Tensor& self) { return self; }\n"
SQUARE = RELU.replace("relu", "square")
ADD = (
    "at::Tensor XLANativeFunctions::add(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {}\n"
)
ADD_SCALAR = (
    "at::Tensor XLANativeFunctions::add(const at::Tensor& self, const at::Scalar& other, const at::Scalar& alpha) {}\n"
)


def backend(**lists: str) -> str:
    return "backend: XLA\ncpp_namespace: torch_xla\n" + "".join(
        f"{key}: {value}".strip() + "\n" for key, value in lists.items()
    )


def lint(cpp: str, /, extra: dict[str, str] | None = None, config: str = "", **lists: str) -> Linted:
    files = {
        "native_functions.yaml": NATIVE,
        "xla.yaml": backend(**lists),
        "csrc/kernels.cpp": f"namespace torch_xla {{\n{cpp}}}\n",
        **(extra or {}),
        **({"opschema.toml": config} if config else {}),
    }
    return lint_files([PACK], files, CODES)


def messages(linted: Linted) -> list[str]:
    return [f"{item.code} {linted.text(item.place)!r}: {item.message}" for item in linted.diagnostics]


# -- missing kernels ---------------------------------------------------------------------------------------------------


def test_all_missing_kernels_at_once() -> None:
    found = lint(RELU + ADD, supported="[relu, square, add.Tensor, add.out]")
    assert messages(found) == [
        "ATN701 'square': `XLANativeFunctions` defines no `square`, the kernel of `square`; define"
        " `at::Tensor XLANativeFunctions::square(const at::Tensor & self)`, or take the operator off the list",
        "ATN701 'add.out': `XLANativeFunctions` defines no `add_out`, the kernel of `add.out`; define `at::Tensor &"
        " XLANativeFunctions::add_out(const at::Tensor & self, const at::Tensor & other, const at::Scalar & alpha,"
        " at::Tensor & out)`, or take the operator off the list",
    ]


def test_the_overload_that_is_missing_is_named() -> None:
    found = lint(RELU + ADD, supported="[relu, add.Tensor, add.Scalar]")
    assert [found.text(item.place) for item in found.diagnostics] == ["add.Scalar"]


@pytest.mark.parametrize(
    "decoy",
    [
        "// at::Tensor XLANativeFunctions::square(const at::Tensor& self) {}\n",
        "/*\nat::Tensor XLANativeFunctions::square(const at::Tensor& self) {}\n*/\n",
        'const char* text = "at::Tensor XLANativeFunctions::square(const at::Tensor& self) {}";\n',
        "#if 0\nat::Tensor XLANativeFunctions::square(const at::Tensor& self) {}\n#endif\n",
        "at::Tensor call(const at::Tensor& self) { return XLANativeFunctions::square(self); }\n",
        "void choose(bool b) {\n  if (XLANativeFunctions::square(b)) {\n  }\n}\n",
        "void choose(bool b) {\n  if ((XLANativeFunctions::square)(b)) {\n  }\n}\n",
        "struct XLANativeFunctions { static at::Tensor square(const at::Tensor& self); };\n",
        "at::Tensor OtherFunctions::square(const at::Tensor& self) {}\n",
        "NOINLINE at::Tensor OtherFunctions::square(const at::Tensor& self) {}\n",
        "}\nnamespace x = other;\nat::Tensor x::XLANativeFunctions::square(const at::Tensor& s) {}\nnamespace torch_xla {\n",
    ],
)
def test_what_looks_like_a_definition(decoy: str) -> None:
    found = lint(RELU + ADD + decoy, supported="[relu, square, add.Tensor]")
    assert [(item.code, found.text(item.place)) for item in found.diagnostics] == [("ATN701", "square")]


@pytest.mark.parametrize(
    "made",
    [
        "#define SAME(name) at::Tensor XLANativeFunctions::name(const at::Tensor& self) { return self; }\nSAME(square)\n",
        "#define JOIN(a, b) at::Tensor XLANativeFunctions::a##b(const at::Tensor& x) { return x; }\nJOIN(squ, are);\n",
        "#define IN(cls, name) at::Tensor cls::name(const at::Tensor& x) { return x; }\nIN(XLANativeFunctions, square)\n",
        "DEFINE_KERNEL(XLANativeFunctions, square);\n",
        "#define WITH(name, args) at::Tensor XLANativeFunctions::name args\nWITH(square, (const at::Tensor& x)) { return x; }\n",
        "#define ONE(name) at::Tensor XLANativeFunctions::name(const at::Tensor& x) { return x; }\n"
        "#define ALL(_) _(square) _(exp)\nALL(ONE)\n",
        "#define ONE(name) at::Tensor XLANativeFunctions::name(const at::Tensor& x) { return x; }\nALL_OF_ATEN(ONE)\n",
        "REGISTER_ALL(XLANativeFunctions)\n",
        "#define XLA XLANativeFunctions\nat::Tensor XLA::square(const at::Tensor& x) { return x; }\n",
        "#ifdef WITH_SQUARE\n" + SQUARE + "#endif\n",
        "struct XLANativeFunctions { static at::Tensor square(const at::Tensor& self) { return self; } };\n",
        "template <typename T>\n" + SQUARE,
        "ABSL_UNKNOWN(x y z\n" + SQUARE,
        '#include "generated.inc"\n',
        "using Kernels = XLANativeFunctions;\nat::Tensor Kernels::square(const at::Tensor& self) { return self; }\n",
        SQUARE.replace("XLANativeFunctions::square", "(XLANativeFunctions::square)"),
        f"NOINLINE {SQUARE}",
        f"NOINLINE inline {SQUARE}",
        f"BEGIN_KERNELS\n\n{SQUARE}END_KERNELS\n",
        SQUARE.replace("XLANative", "NOINLINE XLANative"),
        SQUARE.replace("at::Tensor XLA", "NOINLINE std::tuple<at::Tensor, at::Tensor> XLA"),
        f"}}\nnamespace x = ::torch_xla;\n{SQUARE.replace('XLA', 'x::XLA')}namespace torch_xla {{\n",
    ],
)
def test_what_may_define_a_kernel(made: str) -> None:
    assert messages(lint(RELU + ADD + made, supported="[relu, square, add.Tensor]")) == []


@pytest.mark.parametrize(
    ("path", "missing"),
    [("csrc/more.mlu", 0), ("csrc/more.mu", 0), ("csrc/more.inl", 0), ("csrc/more.cpp.in", 0), ("docs/more.md", 1)],
)
def test_a_kernel_in_a_file_that_is_not_read_as_cpp(path: str, missing: int) -> None:
    found = lint(RELU + ADD, {path: f"namespace torch_xla {{\n{SQUARE}}}\n"}, supported="[relu, square, add.Tensor]")
    assert [found.text(item.place) for item in found.diagnostics] == ["square"] * missing


def test_a_kernel_in_another_file() -> None:
    extra = {
        "csrc/more.cc": "at::Tensor torch_xla::XLANativeFunctions::square(const at::Tensor& self) { return self; }\n"
    }
    assert messages(lint(RELU, extra, supported="[relu, square]")) == []


def test_a_macro_of_a_header_that_another_file_uses() -> None:
    extra = {
        "csrc/macros.h": "#define SAME(name) at::Tensor XLANativeFunctions::name(const at::Tensor& self) { return self; }\n",
        "csrc/more.cc": '#include "macros.h"\nnamespace torch_xla {\nSAME(square)\n}\n',
    }
    assert messages(lint(RELU, extra, supported="[relu, square]")) == []


def test_a_class_of_the_same_name_in_another_namespace_is_another_one() -> None:
    extra = {"csrc/more.cc": f"namespace other {{\n{SQUARE}}}\n"}
    assert len(messages(lint(RELU + ADD, extra, supported="[relu, square, add.Tensor]"))) == 1


def test_nothing_is_missing_where_most_is_elsewhere() -> None:
    assert messages(lint(RELU, supported="[relu, square, add.Tensor, add.Scalar, clamp]")) == []


def test_nothing_is_known_of_a_tree_without_kernels() -> None:
    assert messages(lint("void f() {}\n", supported="[relu, square]")) == []


def test_the_named_files_alone() -> None:
    extra = {"csrc/more.cc": f"namespace torch_xla {{\n{SQUARE}}}\n"}
    config = '[aten]\nkernels = ["csrc/kernels.*"]\n'
    found = lint(RELU + ADD, extra, config, supported="[relu, square, add.Tensor]")
    assert [found.text(item.place) for item in found.diagnostics] == ["square"]


def test_the_class_that_the_yaml_names() -> None:
    cpp = RELU.replace("XLANativeFunctions", "MyKernels") + ADD.replace("XLANativeFunctions", "MyKernels")
    found = lint(cpp, class_name="MyKernels", supported="[relu, square, add.Tensor]")
    assert [found.text(item.place) for item in found.diagnostics] == ["square"]


def test_a_misspelt_kernel_is_one_finding() -> None:
    found = lint(RELU + ADD + SQUARE.replace("square", "sqaure"), supported="[relu, square, add.Tensor]")
    assert messages(found) == [
        "ATN701 'square': `XLANativeFunctions` defines no `square`, the kernel of `square`; did you mean it by `sqaure`?"
    ]
    assert [found.text(item.place) for item in found.diagnostics[0].related] == ["sqaure"]


EXPAND = "at::Tensor XLANativeFunctions::expand(const at::Tensor& self, at::IntArrayRef size, bool implicit) {}\n"
EXPAND_SYMINT = EXPAND.replace("expand(", "expand_symint(").replace("at::IntArrayRef", "c10::SymIntArrayRef")


def test_kernels_with_symint() -> None:
    assert messages(lint(EXPAND, supported="[expand]")) == []
    assert messages(lint(EXPAND_SYMINT, supported="[expand]", symint="[expand]")) == []


def test_a_kernel_with_symint_that_is_not_listed_so() -> None:
    found = lint(RELU + EXPAND_SYMINT, supported="[relu, expand]")
    assert messages(found) == [
        "ATN701 'expand': `XLANativeFunctions` defines no `expand`, the kernel of `expand`, but `expand_symint`; list the"
        " operator under `symint`, too"
    ]


def test_an_operator_under_a_misspelt_symint_is_left_to_the_rule_of_keys() -> None:
    assert messages(lint(RELU + EXPAND_SYMINT, supported="[relu, expand]", symInt="[expand]")) == []
    assert len(messages(lint(RELU + EXPAND_SYMINT, supported="[relu, expand]", symInt="[view]"))) == 1


@pytest.mark.parametrize(
    ("symint", "fixed"),
    [
        ({}, "symint: [expand]\n"),
        ({"symint": ""}, "symint: [expand]\n"),
        ({"symint": "[view]"}, "symint: [view, expand]\n"),
    ],
)
def test_the_operator_is_listed_under_symint(symint: dict[str, str], fixed: str) -> None:
    lists = {"supported": "[relu, expand]", **symint}
    files = {
        "native_functions.yaml": NATIVE,
        "xla.yaml": backend(**lists),
        "k.cpp": f"namespace torch_xla {{\n{RELU}{EXPAND_SYMINT}}}",
    }
    texts, left = fix_files([PACK], files, CODES)
    assert texts == {"xla.yaml": backend(supported="[relu, expand]") + fixed}
    assert messages(left) == []


def test_a_kernel_without_symint_that_is_listed_so() -> None:
    found = lint(RELU + EXPAND, supported="[relu, expand]", symint="[expand]")
    assert messages(found) == [
        "ATN701 'expand': torchgen looks for `XLANativeFunctions::expand_symint`, since `symint` lists `expand`; the class has"
        " `expand`: rename it, and have it take `c10::SymInt`"
    ]


def test_an_operator_that_is_not_known_hides_no_other() -> None:
    found = lint(RELU + ADD + SQUARE.replace("square", "reul_out"), supported="[relu, reul, square, add.Tensor]")
    assert [(item.code, found.text(item.place)) for item in found.diagnostics] == [("ATN701", "square")]


def test_generated_and_structured_operators_need_no_kernel() -> None:
    assert messages(lint(RELU, full_codegen="[square]", supported="[relu]")) == []
    assert messages(lint(RELU, supported="[relu, {square: {structured: true}}]")) == []


def test_kernels_of_autograd_are_kernels() -> None:
    found = lint(RELU + ADD, supported="[relu, add.Tensor]", autograd="[square]")
    assert [(item.code, found.text(item.place)) for item in found.diagnostics] == [("ATN701", "square")]


def test_two_files_for_one_class_are_not_judged() -> None:
    assert (
        messages(lint(RELU + ADD, {"copy.yaml": backend(supported="[relu]")}, supported="[square, add.Tensor]")) == []
    )


# -- kernels that no operator asks for ---------------------------------------------------------------------------------


def test_a_kernel_that_is_not_listed() -> None:
    found = lint(RELU + SQUARE, supported="[relu]")
    assert messages(found) == [
        "ATN702 'square': no operator of `xla.yaml` has the kernel `XLANativeFunctions::square`; list `square`, or remove it"
    ]


def test_an_overload_that_is_not_listed() -> None:
    found = lint(ADD + ADD_SCALAR, supported="[add.Tensor]")
    assert messages(found) == [
        "ATN702 'add': `XLANativeFunctions::add` is not the kernel of `add.Tensor`; list `add.Scalar`, or remove it"
    ]


def test_a_kernel_that_is_defined_twice() -> None:
    assert messages(lint(RELU + RELU, supported="[relu]")) == [
        "ATN702 'relu': `XLANativeFunctions::relu` is defined twice; remove one of them"
    ]
    assert messages(lint(f"#ifdef A\n{RELU}#else\n{RELU}#endif\n", supported="[relu]")) == []
    assert messages(lint(RELU, {"csrc/cuda.cc": f"namespace torch_xla {{\n{RELU}}}\n"}, supported="[relu]")) == []


def test_a_kernel_of_no_operator() -> None:
    found = lint(RELU + SQUARE.replace("square", "squared"), supported="[relu]")
    assert messages(found) == [
        "ATN702 'squared': no operator of `xla.yaml` has the kernel `XLANativeFunctions::squared`; did you mean `square`?"
    ]


@pytest.mark.parametrize(
    "written",
    [
        "struct XLANativeFunctions { static at::Tensor square(const at::Tensor& self); };\n" + SQUARE,
        "#if 0\n" + SQUARE + "#endif\n",
        "#if TORCH_MINOR < 8\n" + SQUARE + "#endif\n",
        "template <class T>\n" + SQUARE,
    ],
)
def test_a_method_that_is_not_meant_to_be_listed(written: str) -> None:
    assert messages(lint(RELU + written, supported="[relu]")) == []


def test_the_kernel_of_an_operator_whose_name_is_misspelt() -> None:
    assert messages(lint(RELU + SQUARE, supported="[relu, sqare]")) == []


# -- drift -------------------------------------------------------------------------------------------------------------


def test_arguments_and_returns_that_differ() -> None:
    cpp = (
        "at::Tensor& XLANativeFunctions::clamp(const at::Tensor& self, const at::Scalar& min,"
        " const std::optional<at::Scalar>& max) { return self; }\n"
    )
    found = lint(cpp, supported="[clamp]")
    assert messages(found) == [
        "ATN703 'const at::Scalar& min': `XLANativeFunctions::clamp` takes `const at::Scalar&` as `min`, not"
        " `const ::std::optional<at::Scalar> &`; returns `at::Tensor&`, not `at::Tensor`: `clamp` of"
        " `native_functions.yaml` asks for `at::Tensor clamp(const at::Tensor & self,"
        " const ::std::optional<at::Scalar> & min, const ::std::optional<at::Scalar> & max)`"
    ]
    assert [(item.place.path, found.text(item.place), item.message) for item in found.diagnostics[0].related] == [
        ("xla.yaml", "clamp", "`clamp` is under `supported`"),
        ("native_functions.yaml", "clamp", "it is `clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor`"),
    ]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("const at::Tensor& self", "lacks `const at::Tensor & other`"),
        (
            "const at::Tensor& self, const at::Tensor& other, bool fast",
            "takes `bool fast`, which the operator does not have",
        ),
        ("const at::Tensor& a", "lacks `const at::Tensor & other`"),
        ("", "lacks `const at::Tensor & self`, `const at::Tensor & other`"),
        (
            "int64_t n, const at::Tensor& self, const at::Tensor& other",
            "takes `int64_t n`, which the operator does not have",
        ),
    ],
)
def test_too_few_and_too_many_arguments(parameters: str, said: str) -> None:
    cpp = f"std::tuple<at::Tensor, at::Tensor> XLANativeFunctions::pair({parameters}) {{}}\n"
    (found,) = messages(lint(cpp, supported="[pair]"))
    assert f"`XLANativeFunctions::pair` {said}: `pair` of" in found


def test_a_kernel_that_takes_symint_without_being_listed_so() -> None:
    (found,) = messages(lint(EXPAND.replace("at::IntArrayRef", "c10::SymIntArrayRef"), supported="[expand]"))
    assert found.endswith("; list it under `symint`, and name the kernel `expand_symint`, if it is to take these")


@pytest.mark.parametrize(
    "written",
    [
        "Tensor XLANativeFunctions::mean(Tensor const &x, c10::optional<IntList> d, const bool, optional<ScalarType> t) {}\n",
        "TORCH_API at::Tensor XLANativeFunctions::mean(const at::Tensor& self, at::OptionalIntArrayRef dim, bool keepdim,\n"
        "    std::optional<at::ScalarType> dtype /* of the result */) {}\n",
        "auto XLANativeFunctions::mean(const at::Tensor& self, Dims dim, bool keepdim, DType dtype) -> at::Tensor {}\n",
        "Out XLANativeFunctions::mean(const at::Tensor& self, at::OptionalIntArrayRef d, bool k, UNUSED DType t) {}\n",
    ],
)
def test_another_spelling_of_the_same_types(written: str) -> None:
    assert messages(lint(written, supported="[mean.dim]")) == []


def test_two_versions_of_a_kernel() -> None:
    old = "at::Tensor XLANativeFunctions::clamp(const at::Tensor& self, at::Scalar min, at::Scalar max) {}\n"
    new = old.replace("at::Scalar", "const std::optional<at::Scalar>&")
    assert messages(lint(f"#if TORCH_MINOR > 8\n{new}#else\n{old}#endif\n", supported="[clamp]")) == []
    assert messages(lint(f"#if TORCH_MINOR < 8\n{old}#endif\n{RELU}", supported="[relu, clamp]")) == []


# -- generated kernels -------------------------------------------------------------------------------------------------


def test_a_kernel_that_torchgen_writes_as_well() -> None:
    found = lint(RELU + SQUARE, full_codegen="[square]", supported="[relu]")
    assert messages(found) == [
        "ATN704 'square': `XLANativeFunctions::square` is defined here, and torchgen defines it for `full_codegen`; remove"
        " this one, or move `square` to `supported`"
    ]


def test_a_generated_file_is_left_to_its_generator() -> None:
    head = "// Autogenerated file by gen_backend_stubs.py. Do not edit directly!\nnamespace torch_xla {\n"
    extra = {"csrc/XLANativeFunctions.cpp": f"{head}{SQUARE}{ADD}}}\n"}
    assert messages(lint(RELU, extra, full_codegen="[square]", supported="[relu]")) == []


def test_one_overload_is_generated_and_one_is_not() -> None:
    assert messages(lint(ADD, full_codegen="[add.Scalar]", supported="[add.Tensor]")) == []


# -- the order of arguments --------------------------------------------------------------------------------------------


def test_arguments_that_are_exchanged() -> None:
    written = "std::tuple<Tensor, Tensor> XLANativeFunctions::pair(const Tensor& other, const Tensor& self) {}\n"
    found = lint(written, supported="[pair]")
    assert messages(found) == [
        "ATN705 'const Tensor& other': `XLANativeFunctions::pair` takes `other` and `self` where `pair` has `self` and"
        " `other`; name them in the operator's order"
    ]


def test_some_arguments_that_are_exchanged() -> None:
    written = (
        "at::Tensor XLANativeFunctions::clamp(const at::Tensor& x, const std::optional<at::Scalar>& max,"
        " const std::optional<at::Scalar>& min) {}\n"
    )
    (found,) = messages(lint(written, supported="[clamp]"))
    assert "takes `max` and `min` where `clamp` has `min` and `max`" in found


def test_other_names_tell_nothing() -> None:
    cpp = "std::tuple<Tensor, Tensor> XLANativeFunctions::pair(const Tensor& other, const Tensor& third) {}\n"
    assert messages(lint(cpp, supported="[pair]")) == []


# -- what cannot be read -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_cpp")
def test_without_the_grammar_nothing_is_said_of_kernels() -> None:
    linted = lint(RELU, supported="[relu, square]")
    assert linted.diagnostics == []
    (missed,) = linted.outcome.not_checked
    assert missed.rules == ("ATN701", "ATN702", "ATN703", "ATN704", "ATN705")


@pytest.mark.parametrize(
    "text",
    [
        "at::Tensor XLANativeFunctions::",
        "at::Tensor XLANativeFunctions::relu(",
        "at::Tensor XLANativeFunctions::relu(" + "(" * 300,
        "#define A(x) A(x) XLANativeFunctions::x\nA(A(A(relu)))\n",
        "struct XLANativeFunctions",
        "at::Tensor XLANativeFunctions::rélu(const at::Tensor& sélf) {}",
    ],
)
def test_odd_text(text: str) -> None:
    assert all(item.code in CODES for item in lint(RELU + text, supported="[relu, square]").diagnostics)


@pytest.mark.parametrize(
    "text",
    [
        "a::b(} " * 10_000,
        "A(} " * 15_000,
        "/* " * 20_000,
        '"' + '\\"' * 30_000,
        "a::" * 20_000,
        "typedef " * 8_000,
        "#define M(x) x XLANativeFunctions\n" + "M(1) " * 12_000,
        "#define M(x) M(x) XLANativeFunctions M(x)\n" + "M(M(M(M(M(1)))))\n" * 3_000,
    ],
)
def test_long_and_hostile_text(text: str) -> None:
    begun = time.process_time()
    lint("void f() {}\n", {"csrc/more.cc": f"// XLANativeFunctions\n{text}"}, supported="[relu]")
    assert time.process_time() - begun < 5

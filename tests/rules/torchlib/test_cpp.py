"""Definitions and registrations in C++ files."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.project import Project
from opschema_cli.source.preprocessor import exclusive
from opschema_cli.source.resolution import Unresolved
from opschema_cli.workspace import Workspace
from opschema_rules.torchlib.cpp import read_cpp
from opschema_rules.torchlib.cpp_model import CppDefinition, CppOperators
from opschema_rules.torchlib.detection import TorchlibOptions


def read(root: Path, text: str = "", **files: str) -> CppOperators:
    """The definitions and registrations of `a.cpp` with that text, and of other files (`utils__h`)."""
    for name, content in {"a__cpp": text, **files}.items():
        (root / name.replace("__", ".")).write_bytes(content.encode())
    project = Project(Workspace(root))
    return read_cpp(project, project.workspace.files, {"named*": "_C"}, (2, 13))


def definitions(found: CppOperators) -> list[tuple[str | None, str]]:
    return [(item.name, _schema(item)) for item in found.definitions]


def _schema(item: CppDefinition) -> str:
    schema = item.definition.schema
    return f"? {schema.reason}" if isinstance(schema, Unresolved) else str(schema)


def registrations(found: CppOperators) -> list[tuple[str, str, list[str] | None, str]]:
    return [
        (
            item.name,
            item.registration.role,
            None if (keys := item.registration.keys) is None else sorted(keys),
            item.function,
        )
        for item in found.registrations
    ]


def gaps(found: CppOperators) -> list[tuple[str | None, str]]:
    return [(item.namespace, item.reason) for item in found.gaps]


SCHEMA = "f(Tensor x) -> Tensor"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('m.def("f(Tensor x) -> Tensor");', ("ns::f", SCHEMA)),
        ('m.def("f(Tensor x)" " -> Tensor");', ("ns::f", SCHEMA)),
        ('m.def("f(Tensor x)"  // why\n  R"( -> Tensor)");', ("ns::f", SCHEMA)),
        ('m.def("ns::f(Tensor x) -> Tensor");', ("ns::f", "ns::" + SCHEMA)),
        ('m.def("other::f.out(Tensor x) -> Tensor");', ("other::f.out", "other::f.out(Tensor x) -> Tensor")),
        ('m.def(TORCH_SELECTIVE_SCHEMA("f(Tensor x) -> Tensor"));', ("ns::f", SCHEMA)),
        ('m.def(torch::schema("f(Tensor x) -> Tensor", c10::AliasAnalysisKind::PURE_FUNCTION));', ("ns::f", SCHEMA)),
        ('m.def(("f(Tensor x) -> Tensor"), &f);', ("ns::f", SCHEMA)),
        ('m.def("f", &f);', ("ns::f", "? torch takes the schema from the C++ function")),
        ('m.def("f(");', ("ns::f", "? the schema cannot be read")),
    ],
)
def test_definitions(tmp_path: Path, call: str, expected: tuple[str, str]) -> None:
    found = read(tmp_path, f"TORCH_LIBRARY(ns, m) {{ {call} }}")
    assert definitions(found) == [expected]
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("TORCH_LIBRARY(ns, m)", "ns::f"),
        ("TORCH_LIBRARY_FRAGMENT(ns, m)", "ns::f"),
        ("STABLE_TORCH_LIBRARY(ns, m)", "ns::f"),
        ("STABLE_TORCH_LIBRARY_FRAGMENT( ns , m )", "ns::f"),
        ("TORCH_LIBRARY_EXPAND(ns, m)", "ns::f"),
        ("TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m)", None),
        ("TORCH_LIBRARY(TORCH_EXTENSION_NAME, m)", None),
        ("TORCH_LIBRARY_EXPAND(CONCAT(_C, _ops), m)", None),
        ("TORCH_LIBRARY_FRAGMENT({{ library }}, m)", None),
        ("MY_TORCH_LIBRARY(ns, m)", None),
    ],
)
def test_blocks_that_define(tmp_path: Path, head: str, name: str | None) -> None:
    found = read(tmp_path, f'namespace x {{\n{head}\n{{\n  m.def("f(Tensor x) -> Tensor");\n}}\n}}')
    assert [item.name for item in found.definitions] == [name]
    assert gaps(found) == ([] if name else [(None, "its namespace is not known")])


def test_macros_of_other_files_open_blocks(tmp_path: Path) -> None:
    header = "#define CONCAT(a, b) a ## b\n#define MY_LIBRARY(x) TORCH_LIBRARY(x, lib)\n"
    text = 'TORCH_LIBRARY_IMPL_EXPAND(CONCAT(_C, _ops), Meta, m) { m.impl("f", &f); }'
    found = read(tmp_path, text, utils__h=header)
    assert registrations(found) == [("_C_ops::f", "fake", ["Meta"], "&f")]
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("call", "role", "keys", "function"),
    [
        ('m.impl("f", &f);', "kernel", [], "&f"),
        ('m.impl("f", torch::kCUDA, &f);', "kernel", ["CUDA"], "&f"),
        ('m.impl("f", c10::DispatchKey::Meta, TORCH_FN(f));', "fake", ["Meta"], "TORCH_FN(f)"),
        ('m.impl("f", torch::dispatch(DispatchKey::AutogradCPU, TORCH_FN(g<a>)));', "autograd", ["AutogradCPU"], "TORCH_FN(g<a>)"),
        ('m.impl("f", torch::dispatch(at::kCPU, f));', "kernel", ["CPU"], "f"),
        ('m.impl("ns::f", DispatchKey::AutocastCUDA, f<1, 2>);', "autocast", ["AutocastCUDA"], "f<1, 2>"),
        ('m.impl(TORCH_SELECTIVE_NAME("ns::f"), f);', "kernel", [], "f"),
        ('m.impl("f", key_of(x), f);', "other", None, "f"),
        ('m.impl("f", c10::DispatchKey::FuncTorchBatched, f);', "vmap", ["FuncTorchBatched"], "f"),
        ('m.impl("f", c10::DispatchKey::ADInplaceOrView, f);', "other", ["ADInplaceOrView"], "f"),
        ('m.impl("f", [](Tensor x) { k<<<1, 2>>>(x); });', "kernel", [], "[](Tensor x) { k<<<1, 2>>>(x); }"),
        ('m.def("f(Tensor x) -> Tensor", &f);', "kernel", [], "&f"),
        ('m.def("f", torch::dispatch(c10::DispatchKey::CPU, &f));', "kernel", ["CPU"], "&f"),
    ],
)  # fmt: skip
def test_registrations(tmp_path: Path, call: str, role: str, keys: list[str] | None, function: str) -> None:
    found = read(tmp_path, f"TORCH_LIBRARY(ns, m) {{ {call} }}")
    assert registrations(found) == [("ns::f", role, keys, function)]
    assert gaps(found) == []


@pytest.mark.parametrize(
    ("key", "function", "role"),
    [
        ("AutogradCUDA", "torch::CppFunction::makeFallthrough()", "fallthrough"),
        ("Meta", "torch::CppFunction::makeFallthrough()", "fallthrough"),
        ("AutogradIPU", "torch::autograd::autogradNotImplementedFallback()", "fallthrough"),
        ("ADInplaceOrView", "autogradNotImplementedInplaceOrViewFallback()", "fallthrough"),
        ("AutogradIPU", "&makeFallthroughKernel", "autograd"),
    ],
)
def test_what_passes_calls_on_is_no_function(tmp_path: Path, key: str, function: str, role: str) -> None:
    found = read(tmp_path, f'TORCH_LIBRARY_IMPL(ns, {key}, m) {{ m.impl("f", {function}); }}')
    assert registrations(found) == [("ns::f", role, [key], function)]


def test_the_key_of_a_block(tmp_path: Path) -> None:
    text = 'TORCH_LIBRARY_IMPL(ns, PrivateUse1, ops) { ops.impl("f", &f); ops.impl("g", torch::kCPU, &g); }\n'
    text += (
        'TORCH_LIBRARY_IMPL(_, Meta, m) { m.fallback(torch::CppFunction::makeFallthrough()); m.impl("aten::h", &h); }'
    )
    assert registrations(read(tmp_path, text)) == [
        ("ns::f", "kernel", ["PrivateUse1"], "&f"),
        ("ns::g", "kernel", ["CPU"], "&g"),
        ("aten::h", "fake", ["Meta"], "&h"),
    ]


def test_chains_tags_and_conditions_of_the_program(tmp_path: Path) -> None:
    text = """TORCH_LIBRARY(ns, m) {
  m.def("f(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag, at::Tag::core}).def("g(Tensor x) -> Tensor");
  if (on()) { m.def("h(Tensor x) -> Tensor"); }
  m.set_python_module("ns.meta");
  m.impl_abstract_pystub("ns.meta");
}"""
    found = read(tmp_path, text)
    told = [(item.name, sorted(item.definition.tags or ()), item.definition.conditional) for item in found.definitions]
    assert told == [
        ("ns::f", ["core", "pt2_compliant_tag"], False),
        ("ns::g", [], False),
        ("ns::h", [], True),
    ]
    assert [text[slice(*item.definition.place.span)][:12] for item in found.definitions] == [
        'm.def("f(Ten',
        'def("g(Tenso',
        'm.def("h(Ten',
    ]
    assert gaps(found) == []


def test_places_lead_back_into_strings_side_by_side(tmp_path: Path) -> None:
    text = '// é𝄞\r\nTORCH_LIBRARY(ns, m) {\r\n  m.def("f(Tensor x, "\r\n        R"(int y)"\r\n        "=1) -> Tensor");\r\n}'
    found = read(tmp_path, "\ufeff" + text).definitions[0]
    schema = found.definition.schema
    assert not isinstance(schema, Unresolved)
    assert found.literal is not None
    spans = [found.literal.span(item.span) for item in schema.arguments]
    assert [text[slice(*span)] for span in spans] == ["Tensor x", 'int y)"\r\n        "=1']
    assert text[slice(*found.literal.span(schema.arguments[1].name_span))] == "y"
    assert found.definition.written.path == "a.cpp"


def test_alternatives_are_told_apart(tmp_path: Path) -> None:
    text = """TORCH_LIBRARY(ns, m) {
#ifdef USE_ROCM
  m.def("f(Tensor x) -> Tensor");
#else
  m.def("f(Tensor x, int y) -> Tensor");
#endif
  m.def("f(Tensor x, int z) -> Tensor");
#if 0
  m.def("dead(Tensor x) -> Tensor");
#endif
}
#if 0
TORCH_LIBRARY(dead, m) { m.def("f(Tensor x) -> Tensor"); }
#endif"""
    first, second, third = read(tmp_path, text).definitions
    assert exclusive(first.conditions, second.conditions)
    assert not exclusive(first.conditions, third.conditions)


DISPATCH = """#pragma once
#define DISPATCH_TO_CUDA(name, function) \\
  m.impl(name, torch::dispatch(c10::DispatchKey::CUDA, TORCH_FN(function)))
#define OP_DISPATCH(KEY, name, fn) \\
  TORCH_LIBRARY_IMPL(ns, KEY, m) { m.impl(name, torch::dispatch(c10::DispatchKey::KEY, fn)); }
#define both(name, f) DISPATCH_TO_CUDA(name, f); m.impl(name, torch::kMeta, f)
#define ENUM_OP(module, name) #name "() -> str", TORCH_FN(query<module>)
"""


def test_macros_that_register(tmp_path: Path) -> None:
    text = """
TORCH_LIBRARY(ns, m) {
  DISPATCH_TO_CUDA("f", f_cuda);
  both("g", g);
  m.def(ENUM_OP(uvm, names));
}
"""
    outside = 'namespace x {\nOP_DISPATCH(CPU, "h", TORCH_FN(h));\n}'
    found = read(tmp_path, text, ops__h=DISPATCH, b__cu=outside)
    assert registrations(found) == [
        ("ns::f", "kernel", ["CUDA"], "TORCH_FN(f_cuda)"),
        ("ns::g", "kernel", ["CUDA"], "TORCH_FN(g)"),
        ("ns::g", "fake", ["Meta"], "g"),
        ("ns::names", "kernel", [], "TORCH_FN(query<uvm>)"),
        ("ns::h", "kernel", ["CPU"], "TORCH_FN(h)"),
    ]
    assert definitions(found) == [("ns::names", "names() -> str")]
    assert gaps(found) == []
    places = [item.registration.place for item in found.registrations]
    assert text[slice(*places[0].span)] == 'DISPATCH_TO_CUDA("f", f_cuda)'
    assert (places[4].path, outside[slice(*places[4].span)]) == ("b.cu", 'OP_DISPATCH(CPU, "h", TORCH_FN(h))')
    assert found.definitions[0].literal is None


def test_a_macro_whose_file_has_no_other_word_of_it(tmp_path: Path) -> None:
    header = '#define DEFINE(bits) m.def("pack_" #bits "bit(Tensor x) -> Tensor")\n'
    found = read(tmp_path, "TORCH_LIBRARY(ns, m) { DEFINE(1); DEFINE(2); }", ops__h=header)
    assert definitions(found) == [
        ("ns::pack_1bit", "pack_1bit(Tensor x) -> Tensor"),
        ("ns::pack_2bit", "pack_2bit(Tensor x) -> Tensor"),
    ]


def test_macros_in_the_midst_of_a_schema(tmp_path: Path) -> None:
    text = """#define PAGE 64
#define STRING_(s) #s
#define STRING(x) STRING_(x)
TORCH_LIBRARY(ns, m) {
  m.def("f(Tensor x, int page=" STRING(
        PAGE) ", int y=1) -> Tensor");
  m.def(
      "g(Tensor x, int page=" STRING(PAGE) ") -> Tensor");
  m.def("h(Tensor x, int page=" UNKNOWN ") -> Tensor");
  m.def(UNKNOWN "i(Tensor x) -> Tensor");
  m.def("j(Tensor x) -> Tensor");
}"""
    found = read(tmp_path, text)
    assert definitions(found) == [
        ("ns::f", "f(Tensor x, int page=64, int y=1) -> Tensor"),
        ("ns::g", "g(Tensor x, int page=64) -> Tensor"),
        ("ns::h", "? a macro is part of the schema"),
        ("ns::j", "j(Tensor x) -> Tensor"),
    ]
    assert gaps(found) == [("ns", "the operator's name is not known")]


def test_functions_that_are_given_the_library(tmp_path: Path) -> None:
    text = """void more(torch::Library& lib) { lib.def("f(Tensor x) -> Tensor"); }
TORCH_LIBRARY(ns, m) { more(m); absent(m); harmless(1); }"""
    found = read(tmp_path, text)
    assert definitions(found) == [("ns::f", SCHEMA)]
    assert gaps(found) == [("ns", "`absent` is not understood here")]
    alone = read(tmp_path, 'void more(torch::Library& lib) { lib.def("f(Tensor x) -> Tensor"); }')
    assert (definitions(alone), gaps(alone)) == ([], [(None, "`more()` is called where it is not seen")])


def test_the_older_registrar(tmp_path: Path) -> None:
    text = """static auto a = torch::RegisterOperators()
    .op("old::f(Tensor x) -> Tensor", torch::RegisterOperators::options().kernel<decltype(f), &f>(c10::DispatchKey::CUDA))
    .op("old::g", &g);
static torch::RegisterOperators b("old::h(Tensor x) -> Tensor", &h);
static auto c = torch::RegisterOperators("old::i(Tensor x) -> Tensor", &i);"""
    found = read(tmp_path, text)
    assert [item.name for item in found.definitions] == ["old::f", "old::g", "old::h", "old::i"]
    assert [(name, role, keys) for name, role, keys, _ in registrations(found)] == [
        ("old::f", "kernel", ["CUDA"]),
        ("old::g", "kernel", []),
        ("old::h", "kernel", []),
        ("old::i", "kernel", []),
    ]


def test_the_registrar_of_the_jit_and_schemas_in_options(tmp_path: Path) -> None:
    text = """static auto a = torch::jit::RegisterOperators("old::f", &f);
torch::jit::RegisterOperators b("old::g(Tensor x) -> Tensor", &g);
torch::jit::RegisterOperators c({
    torch::jit::Operator("old::h(Tensor x) -> Tensor", [](Stack& stack) { pop(stack); }),
    Operator("old::i(Tensor x) -> Tensor", run, aliasAnalysisFromSchema()),
    made(),
});
static auto d = c10::RegisterOperators().op(
    torch::RegisterOperators::options().schema("old::j(Tensor x) -> Tensor").catchAllKernel<decltype(j), &j>());
static auto e = c10::RegisterOperators().op(torch::RegisterOperators::options().schema(name));"""
    found = read(tmp_path, text)
    assert [item.name for item in found.definitions] == [f"old::{name}" for name in "fghij"]
    assert [name for name, *_ in registrations(found)] == ["old::f", "old::g", "old::j"]
    assert len(found.gaps) == 2  # `made()` and `name`


@pytest.mark.parametrize(
    "text",
    [
        '// TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> Tensor"); }',
        '/* TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> Tensor"); } */',
        'auto s = "TORCH_LIBRARY(ns, m) { m.def(\\"f()\\"); }";',
        'auto s = R"(\nTORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> Tensor"); }\n)";',
        'TORCH_LIBRARY(ns, m) { /* m.def("f(Tensor x) -> Tensor"); */ auto s = "m.def(\\"g()\\")"; }',
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }  // no TORCH_LIBRARY',
        'EXECUTORCH_LIBRARY(ns, "f", f);',
        '#define REGISTER(x) TORCH_LIBRARY(ns, m) { m.def(x); }',
        "#undef TORCH_LIBRARY\n#ifdef TORCH_LIBRARY\n#endif\n#if defined(TORCH_LIBRARY)\n#endif",
        'static auto c = torch::class_<C>("ns", "C").def("f", &C::f);  // no TORCH_LIBRARY',
        'TORCH_LIBRARY(ns, m) { m.class_<C>("C").def("f", &C::f).def(torch::init<>()); other.def("g(Tensor x) -> Tensor"); }',
        'TORCH_LIBRARY_IMPL(ns, CPU, m) { auto f = [](torch::Tensor x) { CHECK(x); return x; }; }',
    ],
)  # fmt: skip
def test_what_registers_nothing(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert (definitions(found), registrations(found), gaps(found)) == ([], [], [])


@pytest.mark.parametrize(
    ("text", "namespace"),
    [
        ("TORCH_LIBRARY(ns, m) { m.def(name); }", "ns"),
        ("TORCH_LIBRARY(ns, m) { for (auto name : names) m.def(name); }", "ns"),
        ("TORCH_LIBRARY(ns, m) { m.def(); }", "ns"),
        ('TORCH_LIBRARY(ns, m) { m.impl("f"); }', "ns"),
        ("TORCH_LIBRARY(ns, m) { UNKNOWN(1); }", "ns"),
        ('TORCH_LIBRARY(ns, m) { m.def("f_{{ x }}(Tensor x) -> Tensor"); }', "ns"),
        ('TORCH_LIBRARY(ns, m) { m.def("f(Tensor x) -> Tensor"', "ns"),
        ("TORCH_LIBRARY(ns, m) {\n{%- for x in y %}\n{% endfor %}\n}", "ns"),
        ("TORCH_LIBRARY(ns, m)", "ns"),
        ("TORCH_LIBRARY(ns, m) #", "ns"),
        ("TORCH_LIBRARY(", None),
        ("TORCH_LIBRARY() {}", None),
        ("TORCH_LIBRARY(a, b, c, m) {}", None),
        ("TORCH_LIBRARY_IMPL(ns, m) {}", None),
        (
            'TORCH_LIBRARY(kit, m) {\n#define OP(name) m.def(#name "(Tensor x) -> Tensor");\n#include "ops.def"\n}',
            "kit",
        ),
    ],
)
def test_what_is_not_understood_is_a_gap(tmp_path: Path, text: str, namespace: str | None) -> None:
    found = read(tmp_path, text)
    assert {item.namespace for item in found.gaps} == {namespace}


def test_files_without_the_words_are_not_parsed(tmp_path: Path) -> None:
    deep = "(" * 1000
    found = read(tmp_path, "TORCH_LIBRARY(ns, m) {}", kernel__cu=deep, notes__md="TORCH_LIBRARY" + deep)
    assert found.unread == []
    found = read(tmp_path, "TORCH_LIBRARY(ns, m) {}", kernel__cu="TORCH_LIBRARY" + deep)
    assert found.unread == ["kernel.cu"]


@pytest.mark.parametrize(
    "text",
    [
        "TORCH_LIBRARY(" * 400,
        "TORCH_LIBRARY(a, m) {" * 400,
        "TORCH_LIBRARY(a, m) { m" + '.def("f(Tensor x) -> Tensor")' * 3_000 + "; }",
        "TORCH_LIBRARY(a, m) { " + 'm.def("f(Tensor x) -> Tensor");' * 5_000,
        "#define A(x) B(x x)\n#define B(x) C(x x)\n#define C(x) A(x)\nTORCH_LIBRARY(a, m) { " + "A(m.def);" * 300 + "}",
        "void f(torch::Library& m) { g(m); m.def(1); }\nvoid g(torch::Library& m) { f(m); }\nTORCH_LIBRARY(a, m) { f(m); }",
        "auto x = torch::RegisterOperators()" + '.op("a::f(Tensor x) -> Tensor")' * 2_000 + ";",
        "TORCH_LIBRARY" * 30_000,
        "TORCH_LIBRARY(((((((" * 50,
        "TORCH_LIBRARY(\x7f, \u202e) { \u202e.def(\"\u202e\"); }",
    ],
    ids=range(10),
)  # fmt: skip
def test_hostile_files(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert found.gaps or found.definitions or found.unread or not found.registrations


EXTENSION = """
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) { m.def("f(Tensor x) -> Tensor"); }
"""


@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists__txt": 'set(SRC "a.cpp" b.cu) # sources\ndefine_extension_target(_C SOURCES ${SRC})'},
        {"CMakeLists__txt": "add_library(k a.cpp)\ntarget_compile_definitions(k PRIVATE TORCH_EXTENSION_NAME=_C)"},
        {"CMakeLists__txt": 'project(_C)\nfile(GLOB SRC "*.cpp")\ntorch_extension(${PROJECT_NAME} SOURCES ${SRC})'},
        {
            "CMakeLists__txt": "add_compile_definitions(TORCH_EXTENSION_NAME=_C)\nadd_library(k ${CMAKE_SOURCE_DIR}/a.cpp)"
        },
        {
            "CMakeLists__txt": "pybind11_add_module(k MODULE a.cpp)\n"
            'target_compile_options(k PRIVATE "-DTORCH_EXTENSION_NAME=${EXTENSION}")',
            "pyproject__toml": '[tool.scikit-build.cmake.define]\nEXTENSION = "_C"',
        },
        {"pyproject__toml": '[[tool.setuptools.ext-modules]]\nname = "package._C"\nsources = ["a.cpp"]'},
        {"setup__py": "CUDAExtension(name='package._C', sources=['a.cpp', 'b.cu'])"},
        {"setup__py": "import glob\nS = glob.glob('*.cpp')\nsetup(ext_modules=[CppExtension('package._C', S)])"},
        {
            "setup__py": "def f(name, sources):\n    return CppExtension(f'p.{name}', sources)\nx = ['a.cpp']\nf('_C', x)"
        },
        {"setup__py": "print 'Python 2'\nCUDAExtension(name='package._C', sources=['a.cpp'])"},
        {"setup__py": "class B:\n    def run(self):\n        CUDAExtension(name='package._C', sources=['a.cpp'])"},
        {"a__cpp": f"#define TORCH_EXTENSION_NAME _C\n{EXTENSION}"},
        {"a__cpp": "", "named__cpp": EXTENSION},
    ],
)
def test_a_namespace_that_the_build_sets(files: dict[str, str], tmp_path: Path) -> None:
    found = read(tmp_path, **{"a__cpp": EXTENSION, **files})
    assert [name for name, _ in definitions(found)] == ["_C::f"]
    assert not found.gaps


def test_the_namespace_that_a_source_file_gives_itself_is_not_that_of_others(tmp_path: Path) -> None:
    own = f"#define TORCH_EXTENSION_NAME _C\n{EXTENSION}"
    found = read(tmp_path, own, stale__cpp=EXTENSION.replace('"f', '"g'))
    assert [name for name, _ in definitions(found)] == ["_C::f", None]
    assert [gap.names for gap in found.gaps] == [frozenset({"g"})]


def test_a_header_may_give_the_namespace(tmp_path: Path) -> None:
    found = read(tmp_path, EXTENSION, name__h="#define TORCH_EXTENSION_NAME _C\n#define OTHER TORCH_LIBRARY\n")
    assert [name for name, _ in definitions(found)] == ["_C::f"]


@pytest.mark.parametrize(
    "build",
    [
        "torch_extension(${UNKNOWN} SOURCES a.cpp)",
        "set(NAME _A)\nif(B)\nset(NAME _B)\nendif()\ntorch_extension(${NAME} SOURCES a.cpp)",
        "set(A ${A}${A}${A})\n" * 50 + "torch_extension(${A} SOURCES a.cpp)",
        "set(A x)\n" + 'set(A "${A}${A}")\n' * 50 + "torch_extension(${A} SOURCES a.cpp)",
        "torch_extension(_C SOURCES b.cpp)",
    ],
)
def test_a_build_of_cmake_that_does_not_tell_the_namespace(build: str, tmp_path: Path) -> None:
    found = read(tmp_path, EXTENSION, CMakeLists__txt=build)
    assert [gap.names for gap in found.gaps] == [frozenset({"f"})]


@pytest.mark.parametrize(
    "build",
    [
        "CppExtension(find_name(), ['a.cpp'])",
        "name = '_A'\nif find():\n    name = '_B'\nCppExtension(name, ['a.cpp'])",
        "for name in ('_A', '_B'):\n    CppExtension(name, ['a.cpp'])",
        "CppExtension('_A', find_sources())",
        "CppExtension('_A', ['b.cpp'])",
    ],
)
def test_a_setup_script_that_does_not_tell_the_namespace(build: str, tmp_path: Path) -> None:
    found = read(tmp_path, EXTENSION, setup__py=build)
    assert [gap.names for gap in found.gaps] == [frozenset({"f"})]


@pytest.mark.parametrize("namespaces", [{"csrc/[": "_C"}, {"csrc/*": "no name"}, {"csrc/*": ""}])
def test_namespaces_of_the_configuration_are_checked(namespaces: dict[str, str]) -> None:
    with pytest.raises(OpschemaError, match=r"torchlib: `namespaces`: `.*` is not a"):
        TorchlibOptions(namespaces=namespaces)


def test_a_source_of_two_extensions_has_no_known_namespace(tmp_path: Path) -> None:
    build = "torch_extension(_A SOURCES a.cpp)\ntorch_extension(_B SOURCES a.cpp)"
    found = read(tmp_path, EXTENSION, CMakeLists__txt=build)
    assert [(gap.namespace, gap.names) for gap in found.gaps] == [(None, frozenset({"f"}))]


INLINE = '''\
from torch.utils.cpp_extension import load_inline

CODE = r"""
at::Tensor halve(const at::Tensor& x, {type} by) {{ return x / by; }}

TORCH_LIBRARY(kit, m) {{
  m.def("halve(Tensor x, float by=2.0) -> Tensor");
}}
TORCH_LIBRARY_IMPL(kit, CPU, m) {{
  m.impl("halve", &halve);
}}
"""
load_inline("kit", cpp_sources=CODE, is_python_module=False)
'''


def test_cpp_in_strings_that_are_compiled_is_read_at_its_place(tmp_path: Path) -> None:
    text = INLINE.format(type="double")
    found = read(tmp_path, ops__py=text)
    assert definitions(found) == [("kit::halve", "halve(Tensor x, float by=2.0) -> Tensor")]
    place = found.definitions[0].definition.written
    assert place is not None
    assert (place.path, text[place.span.start :][:7]) == ("ops.py", '"halve(')
    assert found.definitions[0].definition.conditional
    assert registrations(found)[0][:3] == ("kit::halve", "kernel", ["CPU"])


def test_computed_cpp_in_strings_is_a_gap(tmp_path: Path) -> None:
    text = INLINE.format(type="double").replace("=CODE", '=CODE.replace("kit", name)')
    found = read(tmp_path, ops__py=text)
    assert (found.definitions, found.unread) == ([], ["ops.py"])


def test_two_alternatives_in_strings_are_no_second_library(tmp_path: Path) -> None:
    text = INLINE.format(type="double")
    found = read(tmp_path, ops__py=text + text.replace("CODE", "OTHER"))
    assert [item.name for item in found.definitions] == ["kit::halve"] * 2
    assert found.problems == []


@pytest.mark.parametrize(
    ("opening", "name"),
    [("_EXPAND(KIT", "_C::f"), ("_FRAGMENT(KIT", "_C::f"), ("_FRAGMENT(kit", "kit::f"), ("(KIT", "KIT::f")],
)
def test_the_configuration_names_what_may_be_a_macro_of_the_build(opening: str, name: str, tmp_path: Path) -> None:
    found = read(tmp_path, named__cpp=f'TORCH_LIBRARY{opening}, m) {{ m.def("f(Tensor x) -> Tensor"); }}')
    assert [item.name for item in found.definitions] == [name]

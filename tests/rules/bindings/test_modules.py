"""How modules are read: macros, helpers, submodules, builds, and reasons why one is incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.bindings.pack import PACK

SETUP = 'from torch.utils.cpp_extension import CppExtension\next = CppExtension("_C", ["ops.cpp"])\n'
HEAD = "#include <torch/extension.h>\nat::Tensor f(const at::Tensor& x, int64_t n) { return x; }\n"


def codes(block: str, python: str = "", head: str = HEAD, **files: str) -> list[str]:
    cpp = f"{head}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{block}\n}}\n"
    texts = {"setup.py": SETUP, "ops.cpp": cpp, "use.py": f"import _C\n{python}\n"}
    return lint_files(PACK, {**texts, **{name.replace("__", "."): text for name, text in files.items()}}).codes()


@pytest.mark.parametrize(
    ("block", "python", "expected"),
    [
        ('m.def("f", &f);', "_C.f(x)", ["BND301"]),
        ('m.def("f", &f);', "_C.g(x)", ["BND303"]),
        ('m.def("f", &f).def("g", &f);', "_C.g(x)", ["BND301"]),
        ('m.def("f", &f, "n"_a = 1);', "_C.f(x)", ["BND101"]),
        ('m.def("f", &f, "x"_a, "n"_a = 1);', "_C.f(x)", []),
        ('m.def("f", &f, py::arg("x").noconvert(), py::arg("n") = 1);', "_C.f(x)", []),
        ('m.def("f", &f, "x"_a.noconvert(), "n"_a.none(false) = 1);', "_C.f(x=x)", []),
        ('m.def("f", &f, "x"_a.noconvert());', "", ["BND101"]),
        ('m.def("f", &f, named("x"), named("n"));', "_C.f(x=x, n=1)", []),
        ('m.def("f", &f, pb::arg("x"), pb::arg("n"));', "_C.f(x=x, n=1)", []),
        ('m.def("f", &f, "text", R"(text)", py::call_guard<G>());', "_C.f(x=x, n=1)", ["BND302"]),
        ('m.def("f", &f, py::arg_v("x", 1), py::arg("n"));', "_C.f(n=1)", ["BND104"]),
        ('m.def("f", torch::wrap_pybind_function(f));', "_C.f(x)", ["BND301"]),
        ('m.def("f", +[](at::Tensor x, int n) { return x; });', "_C.f(x)", ["BND301"]),
        ('m.def("f", [](auto x) { return x; });', "_C.f(x, 1, 2)", []),
        ('m.def("f", [](void) { return 1; });', "_C.f()", []),
        ('m.def("f", [](void) { return 1; });', "_C.f(x)", ["BND301"]),
        ('m.def("f", [](void* x) { return 1; });', "_C.f()", ["BND301"]),
        ('m.def("f", py::overload_cast<F_TYPES>(&f));', "_C.f(x, 1, 2)", []),
        ('m.def("f", static_cast<at::Tensor (*)(const at::Tensor&, REST)>(&f));', "_C.f(x, 1, 2)", []),
        ('m.def("f", [](F_TYPES) { return 1; });', "_C.f(x, 1, 2)", []),
        ('m.def("f", [](FLAGS flags) { return 1; });', "_C.f(x, 1, 2)", ["BND301"]),
        ('m.def("f", [](py::args a, py::kwargs k) { return 1; });', "_C.f(1, 2, b=3)", []),
        ('py::class_<A>(m, "A").def("f", &f); m.attr("N") = 3;', "_C.A(), _C.N", []),
        ('py::class_<A> a(m, "A"); a.def("f", &f); m.doc() = "text";', "_C.A(), _C.B()", ["BND303"]),
        ('py::class_<A> a{m, "A"};', "_C.A(), _C.B()", ["BND303"]),
        ('py::enum_<E> e(m, "E"); e.value("one", E::one); e.export_values();', "_C.E, _C.one", []),
        ('PyModule_AddObject(m.ptr(), "A", make());', "_C.A()", []),
        ('auto& other = m; other.def("g", &f);', "_C.g(x)", []),
        ("Registrar all{m}; all.add();", "_C.g(x)", []),
        ('py::enum_<E>(m, "E").value("one", E::one).export_values();', "_C.one", []),
        ('auto sub = m.def_submodule("sub"); sub.def("f", &f);', "_C.sub.f(x)", ["BND301"]),
        ('auto sub = m.def_submodule("sub"); sub.def("f", &f);', "_C.sub.g(x)", ["BND303"]),
        ('m.def_submodule("sub").def("f", &f).def("h", &f);', "_C.sub.f(x, 1); _C.sub.h(x)", ["BND301"]),
        ('m.def_submodule("sub").def("f", &f);', "_C.sub.g(x)", ["BND303"]),
        ('auto sub = m.def_submodule("sub").def("f", &f); sub.def("h", &f);', "_C.sub.f(x), _C.sub.h(x)", ["BND301", "BND301"]),
        ('py::module_ sub; sub = m.def_submodule("sub"); sub.def("f", &f);', "_C.sub.f(x)", ["BND301"]),
        ('py::module_ sub; sub = m.def_submodule("sub"); sub.def("f", &f);', "_C.sub.g(x)", ["BND303"]),
        ('py::module_ sub{m.def_submodule("sub")}; sub.def("f", &f);', "_C.sub.g(x)", ["BND303"]),
        ('if (a) sub = m.def_submodule("a"); else sub = m.def_submodule("b"); sub.def("f", &f);', "_C.a.f(x, 1)", []),
        ('all.sub = m.def_submodule("sub"); all.sub.def("f", &f);', "_C.sub.f(x, 1)", []),
        ('auto sub = py::module_(m.def_submodule("sub")); sub.def("f", &f);', "_C.sub.f(x, 1)", []),
        ('auto sub = m.def_submodule("sub").more(); sub.def("f", &f);', "_C.sub.g(x)", []),
        ('m.attr("__dict__")["N"] = 3;', "_C.N", []),
        ('py::dict d = m.attr("__dict__"); d["N"] = 3;', "_C.N", []),
        ('m.attr("__dict__").attr("update")(make());', "_C.N", []),
        ('py::exec("N = 3", m.attr("__dict__"));', "_C.N", []),
        ('m.def("__getattr__", [](std::string name) { return name; });', "_C.N", []),
        ('m.attr("__getattr__") = py::cpp_function(&find);', "_C.N", []),
        ('for (auto& item : items) { m.attr(item.name) = item.value; }', "_C.N", []),
        ('m.attr("__all__") = 3; m.def("__dir__", [](void) { return 1; });', "_C.N", ["BND303"]),
        ('m.attr("g") = m.attr("f");', "", ["BND202"]),
        ('m.def("f", &f); m.attr("g") = m.attr("f");', "_C.g(x)", ["BND301"]),
        ('if (fast()) { m.def("f", &f); }', "_C.f(x, 1)", []),
        ('register_others(m);', "_C.g(x)", []),
        ("UNKNOWN_MACRO", "_C.g(x)", []),
        ("UNKNOWN_MACRO(m);", "_C.g(x)", []),
        ("UNKNOWN_MACRO(BIND_A, BIND_B, BIND_C, BIND_D, BIND_E, BIND_F)", "_C.g(x)", []),
        ("check(BIND_A, BIND_B);", "_C.g(x)", ["BND303"]),
        ('#ifdef A\npy::class_<A>(m, "f");\n#else\nm.def("f", &f);\n#endif', "_C.f(x)", []),
        ('#ifdef A\npy::class_<A>(m, "A");\n#else\nm.def("f", &f);\n#endif', "_C.f(x)", ["BND301"]),
        ("for (auto& item : items) { item.bind(m); }", "_C.g(x)", []),
    ],
)  # fmt: skip
def test_blocks(block: str, python: str, expected: list[str]) -> None:
    assert codes(block, python) == expected


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("args rest, const kwargs& named", []),
        ("pyb::args rest, pyb::kwargs named", []),
        ("py::Args<at::Tensor> rest, const py::KWArgs<double> &named", []),
        ("arguments rest, py::kwargs named", ["BND101", "BND301"]),
    ],
)
def test_classes_that_take_any_arguments(parameters: str, expected: list[str]) -> None:
    head = f"#include <torch/extension.h>\nat::Tensor f(at::Tensor x, {parameters}) {{ return x; }}\n"
    assert codes('m.def("f", &f, py::arg("x")); m.def("g", &f);', "_C.f(x, 1, a=2), _C.g(x, b=3)", head) == expected


def test_a_macro_that_makes_bindings() -> None:
    head = HEAD + '#define OP(name, type) m.def("f_" #name, &f<type>)\n#define OPS OP(half, float); OP(full, double);\n'
    head = head.replace("at::Tensor f(", "template <typename T> at::Tensor f(")
    assert codes("OPS\n", "_C.f_half(x), _C.f_full(x, 1), _C.f_none(x)", head) == ["BND301", "BND303"]


def test_helpers_of_other_files() -> None:
    helper = (
        '#include <torch/extension.h>\nvoid init(py::module_& mod) { mod.def("g", [](at::Tensor x) { return x; }); }\n'
    )
    assert codes("init(m);", "_C.g(), _C.h()", more__cpp=helper) == ["BND301", "BND303"]
    assert codes("init(m);", "_C.h()", more__cpp=f"namespace a {{\n{helper}}}\n") == []


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ('auto f = [](at::Tensor x) { return x; }; m.def("f", f, "x"_a);', []),
        ('at::Tensor (*f)(at::Tensor) = &one; m.def("f", f, "x"_a);', []),
        ('using other::f; m.def("f", &f, "x"_a);', []),
        ('for (auto* f : all) { m.def("f", f, "x"_a); }', []),
        ("auto f = [](at::Tensor x) { return x; }; BIND(f);", []),
        ("values(m, &one); pointers(m, &one); constants<&one>(m);", []),
        (
            'auto g = [](at::Tensor f) { return f; }; auto& [h, k] = all; int n = f(1); m.def("f", f, "x"_a);',
            ["BND101"],
        ),
    ],
)
def test_a_name_of_the_block_is_no_function_of_the_file(block: str, expected: list[str]) -> None:
    head = f"""{HEAD}
#define BIND(name) m.def(#name, name, "x"_a)
template <class F> void values(py::module_& m, F f) {{ m.def("a", f, "x"_a); }}
void pointers(py::module_& m, at::Tensor (*f)(at::Tensor) = nullptr) {{ m.def("b", f, "x"_a); }}
template <auto f> void constants(py::module_& m) {{ m.def("c", f, "x"_a); }}
"""
    assert codes(block, "_C.f(x)", head) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('py::module_ self = py::module_::import("_C"); self.def("g", &f);', []),
        ('py::module_::import("kit._C").def("g", &f);', []),
        ('nb::module_::import_("_C").attr("g") = 1;', []),
        ('py::module_::import("_C").attr("__dict__")["g"] = 1;', []),
        ('auto self = py::module_::import("_D"); self.def("g", &f);', ["BND303"]),
        ('py::module_::import("_C").attr("f")(x);', ["BND303"]),
        ('use(py::module_::import("_C").attr("f") == x);', ["BND303"]),
        ('auto f = py::module_::import("_C").attr("f");', ["BND303"]),
    ],
)
def test_a_module_that_other_code_imports(code: str, expected: list[str]) -> None:
    other = f"#include <torch/extension.h>\nvoid late() {{ {code} }}\n"
    assert codes('m.def("f", &f);', "_C.g(x)", other__cpp=other) == expected


@pytest.mark.parametrize(
    ("returned", "call", "expected"),
    [
        ("py::module_", "auto sub = make(m); sub", []),
        ("auto", "py::module_ sub; sub = make(m); sub", []),
        ("py::module_", "make(m)", []),
        ("py::module_", "make(m); other", ["BND303"]),
        ("py::class_<A>", "auto sub = make(m); sub", ["BND303"]),
    ],
)
def test_a_submodule_that_a_helper_returns(returned: str, call: str, expected: list[str]) -> None:
    head = f'{HEAD}{returned} make(py::module_& m) {{ return m.def_submodule("sub"); }}\n'
    assert codes(f'{call}.def("g", &f);', "_C.sub.g(x, 1), _C.g(x, 1)", head) == expected


def test_functions_of_different_builds() -> None:
    block = '#ifdef A\nm.def("f", &f);\n#else\nm.def("f", [](at::Tensor x) { return x; });\n#endif'
    assert codes(block, "_C.f(x), _C.f(x, 1)") == []
    assert codes(block, "_C.f(x, 1, 2)") == ["BND301"]
    assert codes('#if 0\nm.def("g", &f);\n#endif', "_C.g(x, 1)") == ["BND303"]


@pytest.mark.parametrize(
    ("binding", "expected"),
    [('m.def("g", &g);', []), ('#ifdef BIG\nm.def("g", &g);\n#endif', ["BND305"])],
)
def test_a_result_that_depends_on_the_build(binding: str, expected: list[str]) -> None:
    head = (
        "#include <torch/extension.h>\n#ifdef BIG\nstd::tuple<at::Tensor, at::Tensor> g(at::Tensor x) { return {x, x}; }\n"
        "#else\nat::Tensor g(at::Tensor x) { return x; }\n#endif\n"
    )
    assert codes(binding, "a, b, c = _C.g(x)", head) == expected


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ('m.def("f", &f, "x"_a, "n"_a); m.def("f", &g, "x"_a, "n"_a);', ["BND201"]),
        ('m.def("f", &f, "x"_a, "n"_a = 1); m.def("f", &g, "x"_a, "n"_a);', ["BND201"]),
        ('m.def("f", &f, "x"_a, "n"_a); m.def("f", &g, "x"_a, py::pos_only(), "n"_a);', ["BND201"]),
        ('m.def("f", &f, "x"_a.noconvert(), "n"_a); m.def("f", &g, py::arg("x") .noconvert(), "n"_a);', ["BND201"]),
        ('m.def("f", &f, py::prepend()); m.def("f", &g);', ["BND201"]),
        ('m.def("f", &f); py::delattr(m, "g"); m.def("f", &g);', ["BND201"]),
        ('m.def("f", &f, "x"_a, "n"_a); m.def("f", &g, "x"_a, "n"_a = 1);', []),
        ('m.def("f", &f, "x"_a, py::kw_only(), "n"_a); m.def("f", &g);', []),
        ('m.def("f", &f, "x"_a, py::kw_only(), "n"_a); m.def("f", &g, "x"_a, "n"_a);', []),
        ('m.def("f", &f, "x"_a, py::pos_only(), "n"_a); m.def("f", &g, "x"_a, "n"_a);', []),
        ('m.def("f", &f, "x"_a, "n"_a.noconvert()); m.def("f", &g, "x"_a, "n"_a);', []),
        ('m.def("f", &f, py::arg("x").none(false), "n"_a); m.def("f", &g, py::arg("x"), "n"_a);', []),
        ('m.def("f", &f); m.def("f", &g, py::prepend());', []),
        ('m.def("f", &f); m.def("f", &g, extra);', []),
        ('m.def("f", &f); py::delattr(m, "f"); m.def("f", &g);', []),
        ('m.def("f", &f); m.attr("f") = py::none(); m.def("f", &g);', []),
        ('m.def("f", &f); m.attr("f") = m.attr("g"); m.def("f", &g);', ["BND202"]),
    ],
)
def test_a_binding_that_no_call_reaches(block: str, expected: list[str]) -> None:
    head = f"{HEAD}at::Tensor g(const at::Tensor& x, int64_t n) {{ return -x; }}\n"
    assert codes(block, head=head) == expected


@pytest.mark.parametrize(
    ("path", "expected"), [("body__h", []), ("include/pybind11/cast__h", ["BND201"]), ("body__txt", ["BND201"])]
)
def test_a_function_may_pass_a_call_on_to_the_next_overload(path: str, expected: list[str]) -> None:
    text = "inline void check(bool fits) { if (!fits) throw py::reference_cast_error(); }\n"
    assert (
        codes('m.def("f", &f); m.def("f", [](const at::Tensor& x, int64_t n) { return x; });', **{path: text})
        == expected
    )


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ("namespace mini { struct Tensor { Tensor(double x); }; }\nusing mini::Tensor;", []),
        ("namespace mini { class Value; }\nusing Tensor = mini::Value;", []),
        ("using Tensor = double;", []),
        ("using Tensor = at::Tensor;", ["BND104", "BND304"]),
        ("namespace mini { class Tensor; }\nusing torch::Tensor;", ["BND104", "BND304"]),
        ("namespace mini { struct Tensors { Tensors(double x); }; }\nusing at::Tensor;", ["BND104", "BND304"]),
    ],
)
def test_a_class_of_the_tree_with_a_name_of_torch(types: str, expected: list[str]) -> None:
    head = (
        f"#include <torch/extension.h>\n{types}\nat::Tensor g(const at::Tensor& x, const Tensor& y) {{ return x; }}\n"
    )
    assert codes('m.def("g", &g, "x"_a, "y"_a = 1.0);', "_C.g(x, 2.0)", head) == expected
    assert codes('m.def("g", &g, "x"_a, "y"_a);', "_C.g(2.0, x)", head) == ["BND304"]


def test_the_name_of_a_module() -> None:
    assert codes('m.def("f", &f);', "_C.g()", opschema__toml='[bindings.modules]\n"*.cpp" = "other"\n') == []
    computed = {"setup.py": 'CppExtension(name=NAME, sources=["ops.cpp"])\n'}
    cpp = HEAD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    assert lint_files(PACK, {**computed, "ops.cpp": cpp, "use.py": "import _C\n_C.g()\n"}).codes() == []


def test_a_package_and_what_it_passes_on() -> None:
    texts = {
        "setup.py": 'CppExtension("pkg._C", ["csrc/ops.cpp"])\n',
        "csrc/ops.cpp": HEAD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); m.def("g", &f); }\n',
        "pkg/__init__.py": "from ._C import *\nfrom . import _C\nfrom ._C import f\n",
        "tests/test_f.py": "import pkg\nfrom pkg import f as h\n\nh(1)\npkg.f(x)\npkg._C.g(x)\npkg._C.k\n",
    }
    linted = lint_files(PACK, texts)
    assert [(item.code, linted.position(item.place).line) for item in linted.diagnostics] == [
        *(("BND301", 4), ("BND301", 5), ("BND301", 6), ("BND303", 7)),
    ]


@pytest.mark.parametrize(
    ("user", "others", "expected"),
    [
        ("new/pkg/use.py", {"old/pkg/__init__.py": ""}, ["BND301", "BND303"]),
        ("new/tools/use.py", {"old/other/__init__.py": ""}, ["BND301", "BND303"]),
        ("old/pkg/use.py", {"old/pkg/__init__.py": ""}, []),
        ("tools/use.py", {"old/pkg/__init__.py": ""}, []),
    ],
)
def test_a_package_of_which_the_tree_has_several_copies(user: str, others: dict[str, str], expected: list[str]) -> None:
    texts = {
        "new/setup.py": 'CppExtension("pkg._C", ["pkg/ops.cpp"])\n',
        "new/pkg/ops.cpp": HEAD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n',
        "new/pkg/__init__.py": "",
        user: "import importlib\n\next = importlib.import_module('pkg._C')\next.f()\next.g(x)\n",
    }
    assert lint_files(PACK, {**texts, **others}).codes() == expected


@pytest.mark.parametrize(
    ("build", "name", "expected"),
    [
        ({"setup.py": 'CMakeExtension("kit")\n', "CMakeLists.txt": "add_library(kit SHARED ops.cpp)\n"}, "libkit", []),
        (
            {"setup.py": 'CMakeExtension("kit")\n', "CMakeLists.txt": "add_library(kit SHARED ops.cpp)\n"},
            "kot",
            ["BND205"],
        ),
        ({"setup.py": 'CppExtension("kit", ["ops.cpp"])\n'}, "libkit", ["BND205"]),
    ],
)
def test_the_name_of_a_library_of_cmake(build: dict[str, str], name: str, expected: list[str]) -> None:
    cpp = HEAD + f'PYBIND11_MODULE({name}, m) {{ m.def("f", &f); }}\n'
    assert lint_files(PACK, {**build, "ops.cpp": cpp}).codes() == expected


@pytest.mark.parametrize(("name", "expected"), [("_C", []), ("_other", ["BND303"])])
def test_a_build_of_a_module_that_binds_no_tensors(name: str, expected: list[str]) -> None:
    other = f'#include <pybind11/pybind11.h>\nint g(int x) {{ return x; }}\nPYBIND11_MODULE({name}, m) {{ m.def("g", &g); }}\n'
    torch = HEAD + 'PYBIND11_MODULE(_C, m) { m.def("f", &f); }\n'
    use = {"use.py": "import _C\n_C.f(x, 1)\n_C.g(1)\n"}
    assert lint_files(PACK, {"torch/ops.cpp": torch, "mindspore/ops.cpp": other, **use}).codes() == expected


@pytest.mark.parametrize("text", ["", "PYBIND11_MODULE(", "PYBIND11_MODULE(_C, m) { m.def(", "PYBIND11_MODULE(,) {}", "\0\0",
    "PYBIND11_MODULE(_C, m) { m.def(\"f\" x, &); m.attr(); m.def(\"\", \"\"); m.def_submodule(); }",
    "void f(py::module_& m) { f(m); } PYBIND11_MODULE(_C, m) { f(m); }",
    "#define A A\n#define B(x) B(x) m.def(x)\nPYBIND11_MODULE(_C, m) { A B(A) B( }"])  # fmt: skip
def test_malformed_text_raises_nothing(text: str) -> None:
    assert lint_files(PACK, {"setup.py": SETUP, "ops.cpp": f"#include <torch/extension.h>\n{text}"}).codes() == []


@pytest.mark.parametrize(
    ("path", "expected"), [("ops.cpp", ["OPS101"]), ("other.cpp", []), ("use.py", []), ("other.py", [])]
)
def test_an_unreadable_file(path: str, expected: list[str], tmp_path: Path) -> None:
    cpp = HEAD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    files = {
        "setup.py": SETUP,
        "ops.cpp": cpp,
        "other.cpp": "void g();\n",
        "use.py": "import _C\n",
        "other.py": "x = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode() + (b"\xff\xfe\x00\xe9\n" if name == path else b""))
    project = Project(Workspace(tmp_path))
    registry = Registry((PACK,))
    outcome = run(Job(registry, resolve_settings(Config(), registry)), project)
    assert [item.code for item in outcome.diagnostics] == expected


METHODS = """
#include <torch/extension.h>
struct A {
  virtual at::Tensor run(at::Tensor x) = 0;
  at::Tensor step(at::Tensor x) const { return x; }
  static at::Tensor make(at::Tensor x);
};
at::Tensor A::make(at::Tensor x) { return x; }
at::Tensor f(at::Tensor x) { return x; }
at::Tensor g(at::Tensor x) { return x; }
"""


@pytest.mark.parametrize(
    ("block", "python", "expected"),
    [
        ('m.def("run", &A::run, py::arg("self"), py::arg("x"));', "_C.run(a, x)", []),
        ('m.def("step", &A::step);', "_C.step(a, x)", []),
        ('m.def("step", py::overload_cast<at::Tensor>(&A::step, py::const_));', "_C.step(a, x)", []),
        ('m.def("step", py::overload_cast<at::Tensor>(&A::step), py::arg("self"), py::arg("x"));', "_C.step(a, x)", []),
        ('m.def("make", &A::make);', "_C.make(x, 1)", ["BND301"]),
    ],
)
def test_methods_that_are_bound_as_functions(block: str, python: str, expected: list[str]) -> None:
    assert codes(f'm.def("f", &f); m.def("g", &g); {block}', python, METHODS) == expected


@pytest.mark.parametrize(
    "other",
    [
        "struct B : public kit::A {};",
        "struct hash<kit::A> {};",
        "class kit;",
        "struct kitten {};",
        "enum class kit_kind { a };",
    ],
)
def test_a_function_of_a_namespace_is_no_method(other: str) -> None:
    text = f"{METHODS}{other}\nnamespace kit {{ at::Tensor half(at::Tensor x) {{ return x; }} }}\n"
    block = 'm.def("f", &f); m.def("g", &g); m.def("half", &kit::half);'
    assert codes(block, "_C.half(x, 1)", text) == ["BND301"]


@pytest.mark.parametrize(
    "head", ["class EXPORT kit final", "struct kit : A", "struct kit<int> : public A", "struct a::kit"]
)
def test_a_method_of_a_class_in_other_forms(head: str) -> None:
    text = f"{METHODS}{head} {{\npublic:\n at::Tensor half(at::Tensor x) {{ return x; }}\n}};\n"
    assert codes('m.def("f", &f); m.def("g", &g); m.def("half", &kit::half);', "_C.half(a, x)", text) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["BND204"]),
        ({"gen__py": "TEXT = '#include <torch/extension.h>\\nat::Tensor made_f16(at::Tensor x) { return x; }'\n"}, []),
        (
            {
                "gen__py": "TEXT = f'#include <torch/extension.h>\\nat::Tensor made_{kind}(at::Tensor x) {{ return x; }}'\n"
            },
            [],
        ),
        ({"made__cu__j2": "at::Tensor made_{{ kind }}(at::Tensor x) { return x; }\n"}, []),
        ({"made__cu__in": "at::Tensor made_f16(at::Tensor x) { return x; }\n"}, []),
        ({"made__rs": "pub extern fn made_f16() {}\n"}, []),
        ({"made__md": "`made_f16` is fast.\n"}, ["BND204"]),
        ({"other__py": "made_f16 = 1\n"}, ["BND204"]),
    ],
)
def test_functions_that_are_generated(files: dict[str, str], expected: list[str]) -> None:
    head = f"{METHODS}at::Tensor made_f16(at::Tensor x);\n"
    assert codes('m.def("f", &f); m.def("g", &g); m.def("made", &made_f16);', "", head, **files) == expected


def test_functions_that_pass_the_module_to_each_other() -> None:
    others = "\n".join(f"void reg{at}(py::module_& m) {{ {'reg1(m); reg2(m); reg3(m); '} }}" for at in (1, 2, 3))
    head = f'{HEAD}{others}\nvoid all(py::module_& m) {{ reg1(m); reg2(m); m.def("f", &f); }}\n'
    assert codes("all(m);", "_C.f(x, 1), _C.g()", head) == ["BND303"]


@pytest.mark.parametrize(
    ("other", "python", "expected"),
    [
        ('m.def("g", &f);', "_C.g(x, 1)", []),
        ('m.def("f", &f);', "_C.f(x)", []),
        ("UNKNOWN_MACRO(m);", "_C.g(x)", []),
        ('m.def("g", &f);', "_C.h(x)", ["BND303"]),
        ('m.def("g", &f);', "_C.f(x)", ["BND301"]),
    ],
)
def test_a_module_without_a_known_name_may_be_the_one_that_is_used(
    other: str, python: str, expected: list[str]
) -> None:
    named = HEAD + 'PYBIND11_MODULE(_C, m) { m.def("f", &f); }'
    texts = {
        "a/ext.cpp": named,
        "b/ext.cpp": f"{HEAD}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {other} }}",
        "use.py": f"import _C\n\n\ndef use(x):\n    {python}\n",
    }
    assert lint_files(PACK, texts).codes() == expected


@pytest.mark.parametrize(
    ("setup", "expected"),
    [
        ('CppExtension("kit._C", sources())', ["BND303"]),
        ('CppExtension("kit._C", ["init.cpp"])', []),
        ('CppExtension("kit._C", sources=["init.cpp", *more()])', []),
        ('CppExtension("kit._C", ["gone.cpp"])', ["BND303"]),
    ],
)
def test_a_module_is_not_an_extension_of_other_sources(setup: str, expected: list[str]) -> None:
    texts = {
        "setup.py": f"from torch.utils.cpp_extension import CppExtension\next = {setup}\n",
        "init.cpp": "#include <Python.h>\nPyMODINIT_FUNC PyInit__C(void) { return make(); }\n",
        "adam/ops.cpp": f'{HEAD}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f); }}\n',
        "kit/__init__.py": "from . import _C\n\n_C.init()\n",
    }
    assert lint_files(PACK, texts).codes() == expected


def test_a_file_of_a_second_target_has_the_name_of_its_extension() -> None:
    texts = {
        "setup.py": 'from torch.utils.cpp_extension import CppExtension\next = CppExtension("kit._C", ["csrc/api.cpp"])\n',
        "CMakeLists.txt": "pybind11_add_module(kit_cpp csrc/api.cpp)\n",
        "csrc/api.cpp": f'{HEAD}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", &f); }}\n',
        "kit/__init__.py": "from . import _C\n\n_C.g()\n",
    }
    assert lint_files(PACK, texts).codes() == ["BND303"]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [('["kit/stub.c"]', []), ('["ref/ops.cpp"]', ["BND303"]), ("sources", ["BND303"])],
)
def test_an_extension_of_c_is_no_module_of_another_file(sources: str, expected: list[str]) -> None:
    texts = {
        "setup.py": f'from setuptools import Extension, setup\nsetup(ext_modules=[Extension(name="kit._C", sources={sources})])\n',
        "kit/__init__.py": "import kit._C\n\nkit._C.g()\n",
        "kit/stub.c": "PyObject* PyInit__C(void) { return make(); }\n",
        "ref/ops.cpp": HEAD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n',
    }
    assert lint_files(PACK, texts).codes() == expected


@pytest.mark.parametrize(
    ("block", "reasons"),
    [
        ("init(m);", ["nothing that `_C` binds could be followed"]),
        ("Registrar all{m}; all.add();", ["nothing that `_C` binds could be followed"]),
        ('m.def("f", &f);', []),
        ('m.def("f", &f); init(m);', []),
        ('py::class_<A>(m, "A"); init(m);', []),
        ("", []),
    ],
)
def test_a_module_that_is_not_followed_at_all_is_unresolved(block: str, reasons: list[str]) -> None:
    cpp = f"{HEAD}void init(py::module_& m);\nPYBIND11_MODULE(_C, m) {{\n{block}\n}}\n"
    linted = lint_files(PACK, {"setup.py": SETUP, "ops.cpp": cpp})
    assert [item.reason for item in linted.outcome.unresolved] == reasons


def test_a_binding_of_a_helper_that_is_called_twice_is_not_compared_with_itself() -> None:
    helper = 'void more(py::module_& m) {{ m.def("f", &f); {} }}\n'
    assert codes("more(m); more(m);", head=HEAD + helper.format("")) == []
    assert codes("more(m); more(m);", head=HEAD + helper.format('m.def("f", &f);')) == ["BND201"]


PLAIN = "#include <pybind11/pybind11.h>\nint f(int x, int n) { return x; }\n"


@pytest.mark.parametrize(("head", "expected"), [(HEAD, ["BND301"]), (PLAIN, [])])
def test_a_module_whose_tensors_are_in_the_file_of_a_helper(head: str, expected: list[str]) -> None:
    files = {
        "setup.py": SETUP,
        "ops.cpp": '#include "more.h"\nPYBIND11_MODULE(TORCH_EXTENSION, m) {\n  bind_more(m);\n}\n',
        "more.h": "void bind_more(py::module_& m);\n",
        "more.cpp": f'{head}void bind_more(py::module_& m) {{ m.def("f", &f); }}\n',
        "use.py": "import _C\n_C.f(1)\n",
    }
    assert lint_files(PACK, files).codes() == expected


@pytest.mark.parametrize(
    "header", ["<torch/extension.h>", '"torch/extension.h"', '"ATen/ATen.h"', '"torchless/extension.h"']
)
def test_the_header_of_torch_in_brackets_and_in_quotes(header: str) -> None:
    cpp = f'#include {header}\n#include "ops.h"\nPYBIND11_MODULE(_C, m) {{ m.def("f", &f); }}\n'
    files = {"ops.cpp": cpp, "use.py": "import _C\n_C.g(1)\n", "setup.py": SETUP}
    assert lint_files(PACK, files).codes() == ([] if "torchless" in header else ["BND303"])


OTHERS = (
    "#include <torch/torch.h>\nat::Tensor g(at::Tensor x);\nvoid f(int n, int m) { g({}); }\nvoid h(at::Tensor x);\n"
)
"""A header in which the function that is bound has nothing to do with tensors."""


@pytest.mark.parametrize(("head", "found"), [(HEAD, ["BND301"]), (PLAIN, []), (OTHERS, [])])
def test_a_module_whose_tensors_are_in_its_own_header(head: str, found: list[str]) -> None:
    files = {
        "setup.py": SETUP,
        "ops.cpp": '#include <pybind11/pybind11.h>\n#include "ops.h"\nPYBIND11_MODULE(_C, m) { m.def("f", &f); }\n',
        "ops.h": head,
        "use.py": "import _C\n_C.f(1)\n",
    }
    assert lint_files(PACK, files).codes() == found


@pytest.mark.parametrize(
    ("block", "stub", "expected"),
    [
        ('m.def("f", &f);', "", ["BND401"]),
        ('m.def("f", &f);', "from types import g\n", ["BND401"]),
        ('m.def("f", &f);', "from types import *\n", []),
        ('#ifdef A\nm.def("f", &f);\n#endif', "", []),
        ('#ifdef A\n#ifndef B\nm.def("f", &f);\n#endif\n#endif', "", []),
        ('#ifdef A\nm.def("f", &f);\n#else\nm.def("f", &f);\n#endif', "", ["BND401"]),
        ('#ifdef A\n#ifdef B\nm.def("f", &f);\n#else\nm.def("f", &f);\n#endif\n#endif', "", []),
        ('#ifdef A\nm.def("f", &f);\n#endif\nm.def("f", &f);', "", ["BND401"]),
    ],
)
def test_functions_that_a_stub_lacks(block: str, stub: str, expected: list[str]) -> None:
    assert codes(block, _C__pyi=f"import torch\n{stub}") == expected


def test_a_stub_of_a_module_that_some_builds_have() -> None:
    cpp = f'{HEAD}#ifdef A\nPYBIND11_MODULE(_C, m) {{ m.def("f", &f); }}\n#endif\n'
    files = {"setup.py": SETUP, "ops.cpp": cpp, "_C.pyi": "import torch\n"}
    assert lint_files(PACK, files).codes() == ["BND401"]

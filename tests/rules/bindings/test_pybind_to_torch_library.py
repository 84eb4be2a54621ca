"""The migration `pybind-to-torch-library`. With ``OPSCHEMA_SLOW`` an extension is compiled and run before and after."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from opschema_cli.testing import Migrated, lint_files, migrate_files
from opschema_rules.bindings.pack import PACK
from tests.rules.bindings.extension import FILES, built_and_run
from tests.rules.bindings.test_bindkit import texts_of_bindkit

HEAD = "#include <torch/extension.h>\n"


def migrated(cpp: str, options: tuple[str, ...] = (), **files: str) -> Migrated:
    texts = {
        "setup.py": FILES["setup.py"],
        "ext.cpp": HEAD + cpp,
        **{f"{name}.py": text for name, text in files.items()},
    }
    return migrate_files(PACK, "pybind-to-torch-library", texts, options)


TRUST = ("trust-const=true",)


def schemas(done: Migrated) -> list[str]:
    lines = (line.strip() for line in done.files["ext.cpp"].splitlines())
    return [
        line.removeprefix('m.def("').removesuffix('");')
        for line in lines
        if line.startswith('m.def("') and "->" in line
    ]


def test_an_extension() -> None:
    done = migrate_files(PACK, "pybind-to-torch-library", FILES)
    assert schemas(done) == [
        "shift(Tensor x, Tensor by) -> Tensor",
        "shift.float(Tensor x, float by) -> Tensor",
        "half(Tensor x, float factor, Tensor? bias) -> Tensor",
        "half(Tensor x) -> Tensor",
        "scale(Tensor x, float factor=2.0, *, Tensor? bias=None) -> Tensor",
        "scale_(Tensor(a!) x, float factor) -> ()",
        "roll(Tensor x, int steps=1, bool flip=False) -> Tensor",
        "copy_into(Tensor(a!) out, Tensor x) -> ()",
        "norm(Tensor x, float eps=1e-6) -> (Tensor, Tensor)",
        "split(Tensor x, int[] sizes, int dim=0) -> Tensor[]",
        'total(Tensor[] items, str mode=\\"sum\\") -> Tensor',
        "count(Tensor x, int? skip=None) -> int",
        "twice(Tensor x) -> Tensor",
        "inner_half(Tensor x) -> Tensor",
    ]
    cpp = done.files["ext.cpp"]
    device = cpp[cpp.index("TORCH_LIBRARY_IMPL(ext, CompositeExplicitAutograd, m)") :].partition("\n}")[0]
    assert [line for line in device.splitlines()[1:] if "roll" not in line and "copy_into" not in line] == []
    assert 'm.def("window", &window);  // a pair has no schema type' in cpp
    assert "ext.window(x, (0, 1))" in done.files["main.py"]
    assert (
        "multiply = torch.ops.ext.scale\nnorm = torch.ops.ext.norm\nsplit = torch.ops.ext.split\n"
        in done.files["main.py"]
    )
    assert '@torch.library.register_fake("ext::roll")' in done.files["_fakes.py"]
    assert done.notes() == [
        "ext.cpp:52: `window` stays a binding: `std::pair<int64_t, int64_t>`, the type of `size`, has no schema type",
    ]


@pytest.mark.skipif(not os.environ.get("OPSCHEMA_SLOW") or shutil.which("g++") is None, reason="compiles twice")
def test_an_extension_returns_the_same(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = migrate_files(PACK, "pybind-to-torch-library", FILES)
    assert built_and_run(FILES, tmp_path / "before") == built_and_run(done.files, tmp_path / "after")


def test_bindkit() -> None:
    done = migrate_files(PACK, "pybind-to-torch-library", texts_of_bindkit())
    assert len(done.sites()) == 11
    assert done.notes() == [
        "csrc/bindings.cpp:14: `numel` stays a binding: its return type, `auto`, has no schema type",
        "csrc/bindings.cpp:20: `threads` stays a binding: it takes no tensor",
        "csrc/bindings.cpp:17: no caller of `scale_cuda` was found in this tree",
    ]
    assert "TORCH_LIBRARY_FRAGMENT(bindkit, m)" in done.files["csrc/norm.cpp"]
    assert "from . import _C" in done.files["bindkit/ops.py"]
    assert "def norm" not in done.files["bindkit/_C.pyi"]
    assert lint_files(PACK, done.files).codes() == []


@pytest.mark.parametrize(
    ("cpp", "note"),
    [
        ("void f(at::Tensor x, at::Tensor y) { g(x, y); }", "it is not known whether it writes `x`, `y`"),
        ("void f(at::Tensor x) { x.numel(); }", "it is not known whether it writes any tensor"),
        (
            "at::Tensor f(at::Tensor x) { float* p = x.data_ptr<float>(); return g(p); }",
            "it is not known whether it writes `x`; pass `-o mutates=f.ARGUMENT`, or `-o mutates=f.` if it writes none",
        ),
        ("at::Tensor f(at::Tensor x, std::tuple<int, int> n) { return x; }", "has no schema type"),
        ("at::Tensor f(at::Tensor x, size_t n) { return x; }", "has no schema type"),
        ("at::Tensor f(at::Tensor x, py::object o) { return x; }", "has no schema type"),
        ("std::map<int, at::Tensor> f(at::Tensor x) { return {}; }", "has no schema type"),
        ("at::Tensor f(at::Tensor, int64_t n) { return n; }", "an argument has no name"),
        ("int64_t f(int64_t n) { return n; }", "it takes no tensor"),
        ("at::Tensor f(at::Tensor lambda) { return lambda; }", "is not a valid argument name"),
    ],
)
def test_what_stays_a_binding(cpp: str, note: str) -> None:
    done = migrated(cpp + '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n')
    assert schemas(done) == []
    assert [note in text for text in done.notes()] == [True]


def test_what_a_person_decides() -> None:
    cpp = 'void f(at::Tensor x, at::Tensor y) { g(x, y); }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    done = migrated(cpp, ("mutates=f.y", "namespace=own", "key=CUDA"))
    assert schemas(done) == ["f(Tensor x, Tensor(a!) y) -> ()"]
    assert "TORCH_LIBRARY(own, m)" in done.files["ext.cpp"]


def test_what_is_not_touched() -> None:
    cpp = (
        "at::Tensor f(at::Tensor x) { return x; }\n#define BIND(name) m.def(#name, &f)\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  BIND(e);\n  if (flag) m.def("b", &f);\n'
        '  m.def_submodule("s").def("t", &f);\n}\n'
    )
    done = migrated(cpp)
    assert (done.files["ext.cpp"], done.sites(), done.notes()) == (HEAD + cpp, [], [])


def test_notes_on_what_is_not_touched() -> None:
    cpp = """\
at::Tensor f(at::Tensor x) { return x + 1; }
int64_t n(int64_t x) { return x; }
#define BIND(name) m.def(#name, &f)
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  BIND(a);
  if (flag) m.def("b", &f);
  m.def("c", &f).def("d", &n);
  m.def("e", &f);
}
"""
    assert migrated(cpp, use="import ext\next.e(1)\n").notes() == [
        "ext.cpp:7: `b` stays a binding: it is made in a branch or a loop",
        "ext.cpp:8: `c` stays a binding: it is part of a longer expression",
    ]


def test_a_module_without_a_known_name_may_be_the_one_that_is_called() -> None:
    cpp = 'at::Tensor f(at::Tensor x) { return x + 1; }\nPYBIND11_MODULE(%s, m) { m.def("f", &f); }\n'
    texts = {
        "ext.cpp": HEAD + cpp % "ext",
        "make.cpp": HEAD + cpp % "TORCH_EXTENSION_NAME",
        "use.py": "import ext\n\next.f(1)\n",
    }
    done = migrate_files(PACK, "pybind-to-torch-library", texts)
    assert done.files == texts
    assert any("a module whose Python name is not known also has it (make.cpp)" in note for note in done.notes())


OTHERS = """at::Tensor f(at::Tensor x) { return x + 1; }
at::Tensor g(at::Tensor x, at::Tensor by) { return x + by; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("a", &f);
  m.def("a", &g);
  m.attr("c") = m.attr("a");
#ifdef D
  m.def("d", &f);
#else
  m.def("d", &g);
#endif
#if defined(E) && F > 1
  // Kept.
  m.def("e", &f);
#endif
  auto sub = m.def_submodule("s");
  sub.def("t", &f);
}
"""


def test_overloads_aliases_conditions_and_submodules() -> None:
    use = "import ext\nfrom ext import c\nfrom ext.s import t\n\next.a(1)\next.c(1, 2)\next.d(1)\next.s.t(1)\n"
    done = migrated(OTHERS, use=use)
    assert (
        done.files["ext.cpp"].partition("PYBIND11_MODULE")[2]
        == """(TORCH_EXTENSION_NAME, m) {
  auto sub = m.def_submodule("s");
}

TORCH_LIBRARY(ext, m) {
  m.def("a(Tensor x) -> Tensor");
  m.def("a.by(Tensor x, Tensor by) -> Tensor");
#ifdef D
  m.def("d(Tensor x) -> Tensor");
#endif
#ifndef D
  m.def("d(Tensor x, Tensor by) -> Tensor");
#endif
#if defined(E) && F > 1
  // Kept.
  m.def("e(Tensor x) -> Tensor");
#endif
  m.def("s_t(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(ext, CompositeImplicitAutograd, m) {
  m.impl("a", &f);
  m.impl("a.by", &g);
#ifdef D
  m.impl("d", &f);
#endif
#ifndef D
  m.impl("d", &g);
#endif
#if defined(E) && F > 1
  m.impl("e", &f);
#endif
  m.impl("s_t", &f);
}
"""
    )
    calls = "torch.ops.ext.a(1)\ntorch.ops.ext.a(1, 2)\ntorch.ops.ext.d(1)\ntorch.ops.ext.s_t(1)\n"
    assert done.files["use.py"].endswith(calls)
    assert "c = torch.ops.ext.a\n" in done.files["use.py"]


@pytest.mark.parametrize(
    ("block", "python", "why"),
    [
        ('m.def("f", &f); m.def("f", &h);', "", "its overloads differ only in the types of numbers"),
        ('m.def("f", &f); m.def("f", &bad);', "", "another overload of it cannot be migrated"),
        ('m.def("f", &f);', 'hasattr(ext, "f")', "Python code looks it up by a string, such as with `hasattr`"),
        ('m.def("f", &f); m.attr("g") = py::make_tuple(m.attr("f"));', "", "C++ reads it from the module (`attr`)"),
        (
            'm.def("f", &f);',
            "def lazy(name):\n    return getattr(ext, name)\nlazy('f')(1)",
            "not all uses of it can be",
        ),
    ],
)
def test_names_that_stay(block: str, python: str, why: str) -> None:
    cpp = (
        "at::Tensor f(at::Tensor x, int64_t n) { return x; }\nat::Tensor h(at::Tensor x, double n) { return x; }\n"
        f"at::Tensor bad(py::object x) {{ return f(x, 1); }}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {block} }}\n"
    )
    done = migrated(cpp, use=f"import ext\n{python}\n")
    assert any(f"`f` stays a binding: {why}" in note for note in done.notes()), done.notes()
    assert done.files["ext.cpp"] == HEAD + cpp


def test_fakes_have_defaults() -> None:
    cpp = "at::Tensor f(const at::Tensor& x, double n, bool b) { auto* p = x.data_ptr(); return launch(p); }\n"
    block = 'm.def("f", &f, py::arg("x"), py::arg("n") = 1, py::kw_only(), py::arg("b") = true);'
    done = migrated(f"{cpp}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {block} }}\n", TRUST)
    assert "def _f(x, n=1.0, *, b=True):" in done.files["_fakes.py"]


def test_callers() -> None:
    cpp = 'at::Tensor f(at::Tensor x) { return x + 1; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    done = migrated(
        cpp,
        use='"""Text."""\nfrom __future__ import annotations\n\nimport ext\n\n\ndef g(x):\n    return map(ext.f, [ext.f(x)])\n',
        late='import importlib\nimport torch\n\ne = importlib.import_module("ext")\ne.f(1)\n',
        other="import other as ext\n\next.f(1)\n",
        only="from ext import f as h\n\nh(1)\n",
        both="from ext import f, g\n\nf(1)\n",
    )
    assert done.files["use.py"] == (
        '"""Text."""\nfrom __future__ import annotations\n\nimport torch\nimport ext  # noqa: F401\n\n\n'
        "def g(x):\n    return map(torch.ops.ext.f, [torch.ops.ext.f(x)])\n"
    )
    assert done.files["late.py"].endswith("torch.ops.ext.f(1)\n")
    assert done.files["other.py"] == "import other as ext\n\next.f(1)\n"
    assert done.files["only.py"] == "import torch\nimport ext  # noqa: F401\nh = torch.ops.ext.f\n\nh(1)\n"
    assert done.files["both.py"] == "import torch\nfrom ext import g\nf = torch.ops.ext.f\n\nf(1)\n"


@pytest.mark.parametrize(
    ("body", "options", "schema"),
    [
        (
            "at::Tensor f(const at::Tensor& x, at::Tensor& out) { g(x.data_ptr(), out); return x; }",
            TRUST,
            "f(Tensor(a) x, Tensor(b!) out) -> Tensor(a)",
        ),
        (
            "at::Tensor f(at::Tensor x) { const float* p = x.data_ptr<float>(); return x + 1; }",
            (),
            "f(Tensor x) -> Tensor",
        ),
        (
            "at::Tensor f(at::Tensor x) { float* p = x.data_ptr<float>(); return at::relu(x); }",
            ("mutates=f.",),
            "f(Tensor x) -> Tensor",
        ),
        ("at::Tensor f(at::Tensor x) { x[0] = 1; return x; }", (), "f(Tensor(a!) x) -> Tensor(a!)"),
        ("at::Tensor f(at::Tensor x) { return x.is_contiguous() ? x : x.clone(); }", (), "f(Tensor(a) x) -> Tensor(a)"),
        (
            "at::Tensor f(at::Tensor x, at::Tensor y) { auto z = y.view({-1}); return z; }",
            (),
            "f(Tensor x, Tensor(a) y) -> Tensor(a)",
        ),
        ("at::Tensor f(at::Tensor x, at::Tensor y) { return x.add(y); }", (), "f(Tensor x, Tensor y) -> Tensor"),
        (
            "std::tuple<at::Tensor, at::Tensor> f(at::Tensor x) { return {x.sin(), x.cos()}; }",
            (),
            "f(Tensor x) -> (Tensor, Tensor)",
        ),
        (
            "void f(const at::Tensor& x, std::optional<at::Tensor> y) { auto z = y.value(); z.add_(x); }",
            (),
            "f(Tensor x, Tensor(a!)? y) -> ()",
        ),
        (
            "void f(at::Tensor x, std::optional<at::Tensor> y) { if (y) { y->zero_(); } }",
            (),
            "f(Tensor x, Tensor(a!)? y) -> ()",
        ),
        (
            "at::Tensor f(at::Tensor x) { auto y = at::empty_like(x); auto p = y.data_ptr(); return y.add_(x); }",
            (),
            "f(Tensor x) -> Tensor",
        ),
        (
            "void f(const std::optional<at::Tensor>& x) { at::Tensor y = x.has_value() ? *x : at::empty({1}); y.add_(1); }",
            (),
            "f(Tensor(a!)? x) -> ()",
        ),
        (
            "at::Tensor f(at::Tensor x) { auto n = x.sizes(); auto p = n.data(); return at::empty(n); }",
            (),
            "f(Tensor x) -> Tensor",
        ),
        ("void f(at::Tensor x, std::vector<at::Tensor> outs) { }", (), "f(Tensor x, Tensor(a!)[] outs) -> ()"),
    ],
)
def test_mutation(body: str, options: tuple[str, ...], schema: str) -> None:
    done = migrated(body + '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n', options)
    assert schemas(done) == [schema]


@pytest.mark.parametrize(
    "body",
    [
        "void f(const at::Tensor& x, at::Tensor& out) { params.x = x.data_ptr(); launch(params); out.zero_(); }",
        "at::Tensor f(const std::optional<at::Tensor>& x_) { auto x = x_.value(); return run(x.data_ptr<float>()); }",
        "at::Tensor f(const std::optional<at::Tensor>& x) { return x ? wrap(*x) : at::empty({1}); }",
        "at::Tensor f(at::Tensor x) { auto run = [&] { auto y = x.t(); y.add_(1); }; run(); return at::relu(x); }",
        "at::Tensor f(at::Tensor x) { return run(x.contiguous()); }",
        "at::Tensor f(at::Tensor x) { auto y = x.view({-1}); auto z = y; return run(z.data_ptr<float>()); }",
        "at::Tensor f(at::Tensor x) { at::Tensor y(x.t()); y[0] = 1; return y; }",
        "at::Tensor f(at::Tensor x) { at::Tensor y; y = std::move(x); return run(y.accessor<float, 1>()); }",
    ],
)
def test_what_may_be_written_is_asked(body: str) -> None:
    done = migrated(body + '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n')
    assert ["it is not known whether it writes `x" in note for note in done.notes()] == [True], done.notes()
    assert "TORCH_LIBRARY" not in done.files["ext.cpp"]


def test_a_tensor_that_is_returned_among_others() -> None:
    cpp = "std::vector<at::Tensor> f(at::Tensor x) { auto y = x; return {at::relu(x), y}; }\n"
    done = migrated(cpp + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n')
    assert any("`f` stays a binding: it returns `x` itself, or a view of it" in note for note in done.notes())


F = "at::Tensor f(const at::Tensor& x) "
LAUNCH = "void launch(const float* x) { kernel<<<1, 2>>>(x); }\n"

COMPOSITE = [
    F + "{ return at::relu(x) + x.sum(); }",
    F + '{ TORCH_CHECK(x.is_cuda(), "on a GPU"); at::Tensor y = x.clone(); y.mul_(2); return y; }',
    F + "{ auto g = [](at::Tensor a) { return a * 2; }; auto [y, z] = at::max(g(x), 0); return relu(y); }",
    F
    + "{ std::vector<at::Tensor> parts; for (int i = 0; i < 2; ++i) { parts.push_back(x * i); } return at::cat(parts); }",
    F + "{ at::NoGradGuard guard; at::Tensor y; y = at::relu(x); int64_t py = 2; return y * py; }",
    F + "{ return at::conv2d(x, x).view({x.size(0), -1}).to(at::kFloat); }",
    F
    + "{ at::Tensor y = at::empty_like(x); at::mul_out(y, x, x); return torch::utils::flatten_dense_tensors({y, x}); }",
    "static at::Tensor d_sigmoid(at::Tensor z) { return (1 - z) * z; }\n" + F + "{ return d_sigmoid(x) * 2; }",
    "#define SIZE(x) x.numel()\n" + F + "{ return x + SIZE(x); }",
]
"""Functions that only call operators of PyTorch."""

MEMORY = [
    F + "{ auto p = x.const_data_ptr<float>(); return at::relu(x); }",
    F + "{ auto p = x.packed_accessor32<float, 1>(); return at::relu(x); }",
    F + "{ const at::cuda::OptionalCUDAGuard guard(x.device()); return at::relu(x); }",
    "float* g(const at::Tensor& x) { return x.data_ptr<float>(); }\n" + F + "{ auto p = g(x); return at::relu(x); }",
    "namespace a { void g(const at::Tensor& x) { kernel<<<1, 2>>>(x); } }\n" + F + "{ a::g(x); return at::relu(x); }",
    "template <typename T, int N> void run(at::Tensor x) { kernel<T><<<1, N>>>(x); }\n"
    + F
    + "{ run<std::pair<int, std::vector<int>>, sizeof(int)>(x); return at::relu(x); }",
    "#define RUN(x) kernel<<<1, 2>>>(x)\n" + F + "{ RUN(x); return at::relu(x); }",
    "#define PREPARE kernel<<<1, 2>>>(0)\n" + F + "{ PREPARE; return at::relu(x); }",
    "void fp8_cast(at::Tensor x) { kernel<<<1, 2>>>(x); }\n" + F + "{ fp8_cast(x); return at::relu(x); }",
    "namespace at { namespace native { void mm(Tensor x) { kernel<<<1, 2>>>(x); } } }\n"
    + F
    + "{ at::native::mm(x); return at::relu(x); }",
]
"""Functions that access memory, themselves or in what they call."""


@pytest.mark.parametrize(
    ("cpp", "key"),
    [
        *((cpp, "CompositeImplicitAutograd") for cpp in COMPOSITE),
        *((cpp, "CompositeExplicitAutograd") for cpp in MEMORY),
    ],
)
def test_the_dispatch_key(cpp: str, key: str) -> None:
    cpp += '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    done = migrated(cpp, ("mutates=f.",))
    assert f"TORCH_LIBRARY_IMPL(ext, {key}, m)" in done.files["ext.cpp"], done.notes()
    given = key if key == "CompositeImplicitAutograd" else "CUDA"
    assert f"TORCH_LIBRARY_IMPL(ext, {given}, m)" in migrated(cpp, ("mutates=f.", "key=CUDA")).files["ext.cpp"]


@pytest.mark.parametrize(
    ("cpp", "why"),
    [
        (F + "{ return elsewhere(x); }", "its code has `elsewhere()`"),
        (F + "{ if (x.numel()>elsewhere(x)) { return x * 2; } return x + 1; }", "`elsewhere()`"),
        (F + "{ return at::cuda::elsewhere(x); }", "`at::cuda::elsewhere()`"),
        (F + "{ torch::manual_seed(0); return x + 1; }", "`torch::manual_seed()`"),
        (F + "{ Runner runner(3); return runner.run(x); }", "`Runner()`"),
        (F + "{ Runner runner{3}; return x + 1; }", "`Runner`"),
        (F + "{ Runner runner; return x + 1; }", "`Runner`"),
        (F + "{ auto y = std::make_shared<Plan>(x); return x + 1; }", "`std::make_shared()`"),
        (F + "{ return ELSEWHERE(x); }", "`ELSEWHERE()`"),
        (F + "{ return table[x.size(0)](x); }", "`table[x.size(0)]()`"),
        (F + "{ return tables[0][1](x); }", "`[…]()`"),
        (F + "{ return Op{}(x); }", "`{…}()`"),
        (F + "{ return (x.dim() > 1 ? at::relu : at::neg)(x); }", "`(…)()`"),
        (F + "{ queue << x; return x + 1; }", "`queue`"),
        (
            "at::Tensor g(at::Tensor x) { return x * 2; }\ntemplate <class G> at::Tensor run(at::Tensor x, G g) { return g(x); }\n"
            + F
            + "{ return run(x, other); }",
            "`g()`",
        ),
        (F.strip() + ";", "its definition is not found"),
        # effects that a compiled graph would lose
        ("Event event;\n" + F + "{ event.record(0); return x + 1; }", "`record()`"),
        ("Engine engine;\n" + F + "{ return engine.matmul(x); }", "`engine`"),
        ("at::Tensor cache;\n" + F + "{ cache = x; return x + 1; }", "`cache`"),
        ("int64_t calls;\n" + F + "{ ++calls; return x + 1; }", "`calls`"),
        (F + "{ State::calls += 1; return x + 1; }", "`State::calls`"),
        (F + "{ static at::Tensor w = at::zeros(1); w.add_(x); return w + 1; }", "`static`"),
        (F + "{ std::cout << x; return x + 1; }", "`std::cout`"),
        # gradients that an operator would lose
        (
            "struct Scale : public torch::autograd::Function<Scale> {};\n" + F + "{ return Scale::apply(x); }",
            "it applies `Scale`, an autograd function of C++",
        ),
        (
            "struct Scale : public torch::autograd::Function<Scale> {};\n"
            + F
            + "{ const at::cuda::CUDAGuard guard(x.device()); return Scale::apply(x); }",
            "it applies `Scale`, an autograd function of C++",
        ),
    ],
)
def test_a_dispatch_key_that_is_not_known(cpp: str, why: str) -> None:
    cpp += '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    done = migrated(cpp, ("mutates=f.",))
    assert done.files["ext.cpp"] == HEAD + cpp
    assert [why in note for note in done.notes()] == [True], done.notes()
    assert "TORCH_LIBRARY_IMPL(ext, CUDA, m)" in migrated(cpp, ("mutates=f.", "key=CUDA")).files["ext.cpp"]


@pytest.mark.parametrize(
    ("cpp", "used"),
    [
        (F + "{ py::gil_scoped_release r; return x + 1; }", "py::gil_scoped_release"),
        (F + "{ py::gil_scoped_acquire r; return x + 1; }", "py::gil_scoped_acquire"),
        (F + "{ pybind11::list names; return x + 1; }", "pybind11::list"),
        (F + "{ ::nanobind :: dict names; return x + 1; }", "nanobind::dict"),
        (F + "{ py::list names; auto p = x.const_data_ptr<float>(); return x + 1; }", "py::list"),
        (F + "{ Py_BEGIN_ALLOW_THREADS return x + 1; }", "Py_BEGIN_ALLOW_THREADS"),
        (F + "{ auto list = PyList_New(0); return x + 1; }", "PyList_New"),
        ("namespace pb = pybind11;\n" + F + "{ pb::list names; return x + 1; }", "pb::list"),
        ("using namespace pybind11;\n" + F + "{ list names; return x + 1; }", "list"),
        ("using pybind11::weakref;\n" + F + "{ weakref one; return x + 1; }", "weakref"),
        ("using Names = py::list;\n" + F + "{ Names names; return x + 1; }", "Names"),
        ("struct NoGil { int64_t n; py::gil_scoped_release r; };\n" + F + "{ NoGil r; return x + 1; }", "NoGil"),
        ("#define NO_GIL py::gil_scoped_release r\n" + F + "{ NO_GIL; return x + 1; }", "py::gil_scoped_release"),
        (
            "void h() { py::gil_scoped_release r; }\nat::Tensor g(at::Tensor x) { h(); return x; }\n"
            + F
            + "{ return g(x); }",
            "py::gil_scoped_release",
        ),
    ],
)
@pytest.mark.parametrize("options", [("mutates=f.",), ("mutates=f.", "key=CUDA")])
def test_code_that_uses_python_stays(cpp: str, used: str, options: tuple[str, ...]) -> None:
    cpp += '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    done = migrated(cpp, options)
    assert done.files["ext.cpp"] == HEAD + cpp
    assert done.notes() == [
        f"ext.cpp:{cpp.count(chr(10)) + 1}: `f` stays a binding: its code uses `{used}`, "
        "and an operator is called without the GIL"
    ]


ACME = """\
namespace acme {
using torch::Tensor;
using Real = double;
struct K { static constexpr int64_t k = 3; };
Tensor f(Tensor x) { return x + 1; }
Tensor one(Tensor x, int n) { return x + n; }
}
at::Tensor g(const at::Tensor& x) { return x + 1; }
"""


@pytest.mark.parametrize(
    ("before", "function", "name"),
    [
        ("using namespace acme;", "&f", "f"),
        ("using namespace acme;", "static_cast<at::Tensor (*)(at::Tensor)>(&f)", "f"),
        ("using namespace acme;", "[](at::Tensor x) -> at::Tensor { return x + K::k; }", "K"),
        ("using acme::f;", "&f", "f"),
        ("using acme::Real;", "[](at::Tensor x, Real r) -> at::Tensor { return x + r; }", "Real"),
        ("using T = double;", "[](at::Tensor x) -> at::Tensor { return x + T(1); }", "T"),
        ("typedef double T;", "[](at::Tensor x) -> at::Tensor { return x + T(1); }", "T"),
        ("namespace d = acme;", "[](at::Tensor x) -> at::Tensor { return d::f(x); }", "d"),
        ("constexpr int64_t k = 3;", "[](at::Tensor x) -> at::Tensor { return x * k; }", "k"),
        ("static const int64_t j(2), k = 3;", "[](at::Tensor x) -> at::Tensor { return k * x; }", "k"),
        ("static const auto [j, k] = pair;", "[](at::Tensor x) -> at::Tensor { return k * x; }", "k"),
        ("enum Way { UP = 1, DOWN };", "[](at::Tensor x) -> at::Tensor { return x + int64_t(DOWN); }", "DOWN"),
        (
            "struct S { static at::Tensor go(at::Tensor x) { return x; } };",
            "[](at::Tensor x) -> at::Tensor { return S::go(x); }",
            "S",
        ),
        ("at::Tensor g(const at::Tensor& x);", "&g", "g"),
        ("at::Tensor (*h)(at::Tensor) = &g;", "[](at::Tensor x) -> at::Tensor { return h(x); }", "h"),
    ],
)
def test_a_function_that_needs_a_name_of_its_block_stays(before: str, function: str, name: str) -> None:
    cpp = f'{ACME}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {before} m.def("f", {function}); }}\n'
    done = migrated(cpp)
    assert done.files["ext.cpp"] == HEAD + cpp
    (note,) = (note.partition(": ")[2] for note in done.notes())
    assert note in (
        f"`f` stays a binding: its function needs `{name}`, which may be known only where it is bound",
        f"`f` stays a binding: `{name}` is a name of the block around it",
    )


@pytest.mark.parametrize("captures", ["=", "&", "k", "k = 3"])
def test_a_lambda_that_captures_stays(captures: str) -> None:
    function = f"[{captures}](at::Tensor x) -> at::Tensor {{ return x + 1; }}"
    cpp = f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("f", {function}); }}\n'
    assert migrated(cpp).notes() == ["ext.cpp:2: `f` stays a binding: its lambda captures variables"]


@pytest.mark.parametrize(
    ("before", "function"),
    [
        ("using namespace py::literals;", "[](at::Tensor x) -> at::Tensor { return at::relu(x); }"),
        ("using namespace acme;", "&g"),
        ("using namespace acme;", "[](at::Tensor m) -> at::Tensor { auto k = m.numel(); return at::relu(m) * k; }"),
        ("{ using namespace acme; constexpr int64_t x = 1; }", "&acme::f"),
        ("int64_t x = 1; int64_t k = 2;", "[](at::Tensor x, int64_t k) -> at::Tensor { return x * k; }"),
        ('m.def("e", [](at::Tensor g) -> at::Tensor { auto f = g; return f; });', "&g"),
        ("", "[](at::Tensor x) -> at::Tensor { constexpr int64_t k = 1; return x * k; }"),
    ],
)
def test_a_function_that_needs_no_name_of_its_block(before: str, function: str) -> None:
    cpp = f'{ACME}PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {before} m.def("f", {function}); }}\n'
    assert f'm.impl("f", {function});' in migrated(cpp).files["ext.cpp"]


def test_a_template_parameter_is_a_name_of_its_block() -> None:
    cpp = """\
template <typename T> void bind(py::module& m, int64_t k) {
  m.def("f", [](at::Tensor x) -> at::Tensor { return x + T(1); });
  m.def("g", [](at::Tensor x) -> at::Tensor { return x + sizeof(k); });
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { bind(m, 1); }
"""
    assert [note.partition("needs ")[2][:3] for note in migrated(cpp).notes()] == ["`T`", "`k`"]


def test_a_lambda_around_a_function_names_types_as_every_namespace_knows_them() -> None:
    done = migrated(ACME + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &acme::one); }\n')
    assert "[](at::Tensor x, int64_t n) { return acme::one(x, static_cast<int>(n)); }" in done.files["ext.cpp"]


def test_the_dispatch_key_of_a_kernel_in_another_file() -> None:
    texts = {
        "setup.py": "CUDAExtension('ext', ['ext.cpp', 'launch.cu'])\n",
        "ext.cpp": HEAD
        + "void launch(const at::Tensor& x);\n"
        + F
        + '{ launch(x); return at::relu(x); }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n',
        "launch.cu": "void launch(const at::Tensor& x) { kernel<<<1, 2>>>(x); }\n",
    }
    done = migrate_files(PACK, "pybind-to-torch-library", texts, ("mutates=f.",))
    assert "TORCH_LIBRARY_IMPL(ext, CompositeExplicitAutograd, m)" in done.files["ext.cpp"], done.notes()


def test_modules_of_one_package() -> None:
    cpp = (
        HEAD
        + 'at::Tensor f(const at::Tensor& x) { return x + 1; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    )
    setup = 'CppExtension("pkg._a", ["a.cpp"])\nCppExtension("pkg._b", ["b.cpp"])\n'
    use = "from . import _a, _b\n\n_a.f(1)\n_b.f(1)\n"
    texts = {"setup.py": setup, "a.cpp": cpp, "b.cpp": cpp, "pkg/__init__.py": "", "pkg/use.py": use}
    done = migrate_files(PACK, "pybind-to-torch-library", texts)
    assert (
        done.files["pkg/use.py"] == "import torch\nfrom . import _a, _b\n\ntorch.ops.pkg_a.f(1)\ntorch.ops.pkg_b.f(1)\n"
    )
    done = migrate_files(PACK, "pybind-to-torch-library", texts, ("namespace=pkg",))
    assert done.files == texts
    assert ["two modules would define `pkg::f`" in note for note in done.notes()] == [True, True]


TWO = """at::Tensor f(at::Tensor x) { return x + 1; }
at::Tensor g(at::Tensor x) { return x + 1; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("f", &f); m.def("g", &g);  // both
}
"""


def test_what_would_break() -> None:
    """An operator that exists, a name that Python sets, `*`, and places where ``torch`` is another thing."""
    library = '\nTORCH_LIBRARY(ext, m) { m.def("f(Tensor x) -> Tensor"); }\n'
    assert "ext.cpp:5: `f` stays a binding: the operator `ext::f` already exists" in migrated(TWO + library).notes()
    python = 'import torch\ntorch.library.custom_op("ext::f", fn, mutates_args=())\n'
    assert "ext.cpp:5: `f` stays a binding: the operator `ext::f` already exists" in migrated(TWO, use=python).notes()
    for text, why in (
        ("import ext\next.f = print\n", "Python code replaces it in the module"),
        ("with mock.patch('ext.f'):\n    run()\n", "Python code replaces it in the module"),
        (
            "def test(monkeypatch):\n    import ext\n    monkeypatch.setattr(ext, 'f', 1)\n",
            "Python code replaces it in the module",
        ),
        ("from ext import *\nf(1)\n", "its module is imported with `*`"),
        ("import ext\ndef h(torch):\n    return ext.f(torch)\n", "not all uses of it can be rewritten"),
        ("import ext\ntorch = 3\next.f(1)\n", "not all uses of it can be rewritten"),
        ("import ext\ny = [ext.f(torch) for torch in xs]\n", "not all uses of it can be rewritten"),
    ):
        done = migrated(TWO, use=text)
        assert f"ext.cpp:5: `f` stays a binding: {why}" in done.notes(), text
        assert done.files["use.py"] == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "from ext import f\nimport ext\n",
            "import torch\nimport ext  # noqa: F401\nf = torch.ops.ext.f\nimport ext\n",
        ),
        (
            "from ext import f\nimport torch\n",
            "import torch\nimport ext  # noqa: F401\nf = torch.ops.ext.f\nimport torch\n",
        ),
        (
            "import ext\nif TYPE_CHECKING:\n    import torch\ndef h():\n    return ext.f\n",
            "import torch\nimport ext  # noqa: F401\nif TYPE_CHECKING:\n    import torch\ndef h():\n    return torch.ops.ext.f\n",
        ),
        (
            "import ext\nimport torch.nn\ndef h():\n    return ext.f\n",
            "import ext  # noqa: F401\nimport torch.nn\ndef h():\n    return torch.ops.ext.f\n",
        ),
        (
            "import ext\ndef h():\n    import torch\n    return ext.f\n",
            "import torch\nimport ext  # noqa: F401\ndef h():\n    import torch\n    return torch.ops.ext.f\n",
        ),
    ],
)
def test_the_extension_is_loaded_first(text: str, expected: str) -> None:
    assert migrated(TWO, use=text).files["use.py"] == expected


def test_line_ends_are_those_of_each_file() -> None:
    texts = {"setup.py": FILES["setup.py"], "ext.cpp": HEAD + TWO, "use.py": "import torch\nfrom ext import f\nf(1)\n"}
    plain = migrate_files(PACK, "pybind-to-torch-library", texts).files
    crlf = {path: text.replace("\n", "\r\n") for path, text in texts.items()}
    done = migrate_files(PACK, "pybind-to-torch-library", crlf).files
    assert done == {path: text.replace("\n", "\r\n") for path, text in plain.items()}


def test_what_is_left_to_do() -> None:
    texts = {
        "setup.py": FILES["setup.py"],
        "ext.cpp": HEAD + TWO,
        "use.py": "import ext\next.g(1)\nwith spying('ext.f'):\n    ext.f(1)\n",
        "broken.py": "import ext\next.g(\n",
        "docs/use.md": "Call `ext.f(x)`, not `next.f(x)` or `ext.free`.\n",
    }
    done = migrate_files(PACK, "pybind-to-torch-library", texts)
    assert '  m.def("g(Tensor x) -> Tensor");  // both\n' in done.files["ext.cpp"]
    assert done.notes() == [
        "broken.py:1: this file cannot be parsed; uses of bindings in it are not rewritten",
        "broken.py:2: still mentions `g` of `ext`",
        "docs/use.md:1: still mentions `f` of `ext`",
        "use.py:4: still mentions `f` of `ext`",
    ]


@pytest.mark.parametrize(
    ("result", "shared"),
    [
        ("x.view({x.size(0), (1 + 2)})", True),
        ("x.t().contiguous()", True),
        ("x[0]", True),
        ("x.index({0})[1].real()", True),
        ("at::transpose(x, 0, 1)", True),
        ("std::move(x)", True),
        ("k > 0 ? x * k : x.to(at::kHalf)", True),
        ("x.cuda() * k", False),
        ("x.view(-1).sum()", False),
        ("x[0] + 1", False),
        ("x.contiguous().mul(k)", False),
        ("(x * k).view(-1)", False),
        ("k > 0 ? x * k : x.sum()", False),
    ],
)
def test_a_result_that_shares_memory_is_one_that_ends_in_a_view(result: str, shared: bool) -> None:
    cpp = f"at::Tensor f(const at::Tensor& x, double k) {{ return {result}; }}\n"
    held = cpp.replace(f"return {result};", f"at::Tensor y = {result}; return y;")
    schema = "f(Tensor(a) x, float k) -> Tensor(a)" if shared else "f(Tensor x, float k) -> Tensor"
    for text in (cpp, held):
        done = migrated(text + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n')
        assert schemas(done) == [schema]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import ext", "import ext  # noqa: F401"),
        ("import ext as e", "import ext as e  # noqa: F401"),
        ("if True:\n    import ext", "if True:\n    import ext  # noqa: F401"),
        ("import ext  # loads", "import ext  # loads"),
        ("import os, ext", "import os, ext"),
        ("import ext; import os", "import ext; import os"),
        ("import ext\nprint(ext)", "import ext\nprint(ext)"),
        ("import ext\next.window(1)", "import ext\next.window(1)"),
        ('import ext\n__all__ = ["ext"]', 'import ext\n__all__ = ["ext"]'),
    ],
)
def test_an_import_that_only_loads_is_marked(before: str, after: str) -> None:
    cpp = 'at::Tensor f(at::Tensor x) { return x + 1; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    name = "e" if " as e" in before else "ext"
    done = migrated(cpp, use=f"import torch\n{before}\n{name}.f(torch.ones(1))\n")
    assert done.files["use.py"] == f"import torch\n{after}\ntorch.ops.ext.f(torch.ones(1))\n"


def test_a_comment_goes_along_unless_what_it_heads_stays() -> None:
    block = """\
  // Adds.
  //  One.
  m.def("f", &f);

  // Both.
  m.def("g", &f);
  m.def("window", &window);
  // Behind.
"""
    cpp = f"at::Tensor f(at::Tensor x) {{ return x + 1; }}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{block}}}\n"
    done = migrated(cpp, use="import ext\next.f(1)\next.g(1)\n").files["ext.cpp"]
    assert '(TORCH_EXTENSION_NAME, m) {\n\n  // Both.\n  m.def("window", &window);\n  // Behind.\n}\n' in done
    assert (
        'm) {\n  // Adds.\n  //  One.\n  m.def("f(Tensor x) -> Tensor");\n  m.def("g(Tensor x) -> Tensor");\n}\n'
        in done
    )


def test_a_comment_behind_goes_along_unless_its_line_stays() -> None:
    block = """\
  m.def("f", &f);  // Adds.
  m.def("g", &f); m.def("h", &f); /* Both. */
  m.def("window", &window); m.def("i", &f);  // Stays.
#ifdef D
  m.def("d", &f);  // If.
#endif
  m.attr("j") = m.attr("f");  // Alias.
"""
    cpp = f"at::Tensor f(at::Tensor x) {{ return x + 1; }}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{block}}}\n"
    done = migrated(cpp, use="import ext\next.f(1)\n").files["ext.cpp"]
    assert '(TORCH_EXTENSION_NAME, m) {\n  m.def("window", &window); // Stays.\n}\n' in done
    assert [line for line in done.splitlines() if "->" in line] == [
        '  m.def("f(Tensor x) -> Tensor");  // Adds.',
        '  m.def("g(Tensor x) -> Tensor");',
        '  m.def("h(Tensor x) -> Tensor");  /* Both. */',
        '  m.def("i(Tensor x) -> Tensor");',
        '  m.def("d(Tensor x) -> Tensor");  // If.',
    ]


def test_conditions_that_enclose_nothing_go_in_crlf_files() -> None:
    unix = migrated(OTHERS, use="import ext\n\next.a(1)\n")
    texts = {
        "setup.py": FILES["setup.py"],
        "ext.cpp": (HEAD + OTHERS).replace("\n", "\r\n"),
        "use.py": "import ext\n\next.a(1)\n",
    }
    done = migrate_files(PACK, "pybind-to-torch-library", texts)
    assert done.files["ext.cpp"] == unix.files["ext.cpp"].replace("\n", "\r\n")


def test_an_overload_in_a_function_that_is_given_two_modules() -> None:
    bind = 'void {}(py::module& m) {{ m.def("f", &f); }}\n'
    texts = {
        "a.cpp": HEAD + "at::Tensor f(at::Tensor x) { return x + 1; }\n" + bind.format("bind"),
        "b.cpp": HEAD + "at::Tensor f(at::Tensor x, double y) { return x + y; }\n" + bind.format("rest"),
        "one.cpp": HEAD
        + "void bind(py::module& m);\nvoid rest(py::module& m);\nPYBIND11_MODULE(one, m) { bind(m); rest(m); }\n",
        "two.cpp": HEAD + "void bind(py::module& m);\nPYBIND11_MODULE(two, m) { bind(m); }\n",
    }
    done = migrate_files(PACK, "pybind-to-torch-library", texts)
    assert done.files == texts
    assert done.notes() == ["b.cpp:3: `f` stays a binding: another overload of it is not migrated (a.cpp)"]

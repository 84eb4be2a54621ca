"""Trees that look wrong and are right: no finding in any of them."""

# ruff: noqa: E501 - tables of texts, one a line

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.bindings.pack import PACK
from tests.rules.bindings.test_loaders import FILES

SETUP = 'from torch.utils.cpp_extension import CppExtension\next = CppExtension("kit._C", ["csrc/ops.cpp"])\n'
HEAD = "#include <torch/extension.h>\n"
F = "at::Tensor f(const at::Tensor& x, int64_t n) { return x; }\n"


def module(block: str) -> str:
    return f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{block}\n}}\n"


PLAIN = HEAD + F + module('m.def("f", &f, py::arg("x"), py::arg("n"));')

TREES: dict[str, dict[str, str]] = {
    # C++
    "a macro binds all types": {
        "csrc/ops.cpp": HEAD
        + "template <typename T> at::Tensor fill(const at::Tensor& x, T v) { return x; }\n"
        + '#define BIND(NAME, T) m.def("fill_" #NAME, &fill<T>, py::arg("x"), py::arg("v"));\n#define ALL(_) _(f, float) _(d, double)\n'
        + module("ALL(BIND)"),
        "use.py": "from kit import _C\n_C.fill_f(x, 1.0)\n_C.fill_d(x, v=2.0)\n",
    },
    "a list of macros that the block includes": {
        "csrc/ops.cpp": HEAD
        + F
        + module('m.def("f", &f);\npy::module_ all = m.def_submodule("all");\n#define TYPE(T) bind<T>(all, "fill_" #T);\n#include "types.def"'),
        "csrc/types.def": "TYPE(float)\nTYPE(int)\n#undef TYPE\n",
        "kit/__init__.py": "",
        "use.py": "from kit import _C\n_C.all.fill_float(x)\n_C.f(x, 1)\n",
    },
    "a template with a default argument": {
        "csrc/ops.cpp": HEAD
        + "template <typename T, int N = 4> at::Tensor g(const at::Tensor& x, T v) { return x; }\n"
        + module('m.def("g", &g<int64_t>, py::arg("x"), py::arg("v") = 1);'),
        "use.py": "from kit import _C\n_C.g(x)\n",
    },
    "an overload that is const": {
        "csrc/ops.cpp": HEAD
        + F
        + "at::Tensor f(const at::Tensor& x) { return x; }\n"
        + module(
            'm.def("f", py::overload_cast<const at::Tensor&>(&f));\nm.def("f", py::overload_cast<const at::Tensor&, int64_t>(&f));'
        ),
        "use.py": "from kit import _C\n_C.f(x)\n_C.f(x, 1)\n",
    },
    "overloads under other keywords": {
        "csrc/ops.cpp": HEAD
        + F
        + "at::Tensor g(const at::Tensor& x, int64_t k) { return x; }\n"
        + module('m.def("f", &f, py::arg("x"), py::arg("n"));\nm.def("f", &g, py::arg("x"), py::arg("k"));'),
        "use.py": "from kit import _C\n_C.f(x, k=1)\n_C.f(x, n=1)\n",
    },
    "a lambda with captured state": {
        "csrc/ops.cpp": HEAD
        + F
        + module('int64_t scale = 2;\nm.def("f", [scale](const at::Tensor& x) { return f(x, scale); }, py::arg("x"));'),
        "use.py": "from kit import _C\n_C.f(x)\n",
    },
    "a lambda that takes anything": {
        "csrc/ops.cpp": HEAD
        + module('m.def("f", [](py::args args, const py::kwargs& kwargs) { return args.size(); });'),
        "use.py": "from kit import _C\n_C.f()\n_C.f(1, 2, key=None)\n",
    },
    "a generic lambda": {
        "csrc/ops.cpp": HEAD + module('m.def("f", [](auto x, auto... rest) { return x; });'),
        "use.py": "from kit import _C\n_C.f(1, 2, 3)\n",
    },
    "None for std::optional, by an alias": {
        "csrc/ops.cpp": HEAD
        + "using OptTensor = std::optional<at::Tensor>;\nat::Tensor g(const at::Tensor& x, const OptTensor& b) { return x; }\n"
        + module('m.def("g", &g, py::arg("x"), py::arg("b") = py::none());'),
        "use.py": "from kit import _C\n_C.g(x, None)\n_C.g(x)\n",
    },
    "None for a pointer and an object": {
        "csrc/ops.cpp": HEAD
        + "struct State;\nat::Tensor g(const at::Tensor& x, State* s, py::object o) { return x; }\n"
        + module('m.def("g", &g, py::arg("x"), py::arg("s") = nullptr, py::arg("o") = py::none());'),
        "use.py": "from kit import _C\n_C.g(x, None, None)\n",
    },
    "a bool for an integer and an integer for a float": {
        "csrc/ops.cpp": HEAD
        + "at::Tensor g(const at::Tensor& x, int64_t n, double d, bool b) { return x; }\n"
        + module('m.def("g", &g, py::arg("x"), py::arg("n") = true, py::arg("d") = 1, py::arg("b") = 0);'),
        "use.py": "from kit import _C\n_C.g(x, True, 2, 1)\n",
    },
    "a default that C++ computes": {
        "csrc/ops.cpp": HEAD
        + "at::Tensor g(const at::Tensor& x, at::ScalarType t, std::vector<int64_t> s) { return x; }\n"
        + module('m.def("g", &g, py::arg("x"), py::arg("t") = at::kFloat, py::arg("s") = std::vector<int64_t>{1, 2});'),
        "use.py": "import torch\nfrom kit import _C\n_C.g(x, torch.float16, (1, 2))\n",
    },
    "argument names that differ from C++": {
        "csrc/ops.cpp": HEAD
        + "at::Tensor g(const at::Tensor& b, const at::Tensor& a) { return a; }\n"
        + module('m.def("g", &g, py::arg("lhs"), py::arg("rhs"));'),
        "use.py": "from kit import _C\n_C.g(lhs=x, rhs=y)\n",
    },
    "a method of a class": {
        "csrc/ops.cpp": HEAD
        + "struct Plan { at::Tensor run(const at::Tensor& x) { return x; } static at::Tensor make(int64_t n) { return at::zeros(n); } };\n"
        + module('m.def("run", &Plan::run);\nm.def("make", &Plan::make);\npy::class_<Plan>(m, "Plan").def("run", &Plan::run);'),
        "use.py": "from kit import _C\nplan = _C.Plan()\n_C.run(plan, x)\n_C.make(3)\n",
    },
    "a function object": {
        "csrc/ops.cpp": HEAD
        + "struct Fn { at::Tensor operator()(const at::Tensor& x) const { return x; } };\n"
        + module('m.def("f", Fn{});\nm.def("g", std::function<at::Tensor(at::Tensor)>(Fn{}));'),
        "use.py": "from kit import _C\n_C.f(x)\n_C.g(x)\n",
    },
    "a function of a namespace that is opened": {
        "csrc/ops.cpp": HEAD + f"namespace kit {{ namespace cpu {{\n{F}}} }}\nusing namespace kit::cpu;\n" + module('m.def("f", &f);'),
        "use.py": "from kit import _C\n_C.f(x, 1)\n",
    },
    "declared here, defined by a macro": {
        "csrc/ops.cpp": HEAD + "at::Tensor add_cuda(const at::Tensor& x);\n" + module('m.def("add", &add_cuda);'),
        "csrc/kernels.cu": '#include <torch/extension.h>\n#define KERNEL(op) at::Tensor op##_cuda(const at::Tensor& x) { return x; }\nKERNEL(add)\n',
    },
    "two builds": {
        "csrc/ops.cpp": HEAD
        + F
        + "at::Tensor g(const at::Tensor& x) { return x; }\n"
        + module('#ifdef WITH_CUDA\nm.def("f", &f);\n#else\nm.def("f", &g);\n#endif'),
        "use.py": "from kit import _C\n_C.f(x) if cpu else _C.f(x, 1)\n",
    },
    "C++ that is off": {
        "csrc/ops.cpp": HEAD + F + module('m.def("f", &f);\n#if 0\nm.def("f", &f, py::arg("x"));\nm.def("g", &missing);\n#endif'),
    },
    "a module that another function fills": {
        "csrc/ops.cpp": HEAD + "void init_rest(py::module_& m);\n" + F + module('m.def("f", &f);\ninit_rest(m);'),
        "use.py": "from kit import _C\n_C.rest(x)\n",
    },
    "names of enumerations and constants": {
        "csrc/ops.cpp": HEAD
        + F
        + "enum class Mode { A, B };\n"
        + module(
            'm.def("f", &f);\npy::enum_<Mode>(m, "Mode").value("A", Mode::A).value("B", Mode::B).export_values();\nm.attr("LIMIT") = 4;'
        ),
        "use.py": "from kit import _C\n_C.f(x, _C.LIMIT)\n_C.Mode.A, _C.A, _C.__file__\n",
    },
    # Python
    "a call that is tried": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from kit import _C\ntry:\n    _C.f(x, 1, 2)\nexcept TypeError:\n    _C.f(x, 1)\n",
    },
    "an import that is tried": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "try:\n    from kit._C import f, fast\nexcept ImportError:\n    fast = None\n",
    },
    "a branch for another version": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "import kit\nfrom kit import _C\nif kit.__version__ < '2':\n    _C.f(x)\nelse:\n    _C.f(x, 1)\nif hasattr(_C, 'g'):\n    _C.g(x)\n",
        "kit/__init__.py": "__version__ = '2'\n",
    },
    "a wrapper with other keywords": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from kit import _C\ndef f(input, *, count=1, **kwargs):\n    return _C.f(input, n=count)\nf(x, count=2)\n",
    },
    "arguments that are unpacked": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from kit import _C\n_C.f(*args)\n_C.f(x, **kwargs)\n_C.f(*args, n=1)\n_C.f(x, *rest)\n",
    },
    "another module of the name": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from torch import _C\n_C._cuda_init()\n_C.f()\n",
        "vendor/use.py": "import vendor._C as _C\n_C.g(1)\n",
    },
    "a name that a function binds anew": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from kit import _C\ndef g(_C):\n    return _C.f()\ndef h():\n    _C = object()\n    return _C.g\nclass A:\n    def _C(self):\n        return self._C.f()\n",
    },
    "a substitute": {
        "csrc/ops.cpp": PLAIN,
        "use.py": "from kit import _C\ndef test(monkeypatch):\n    monkeypatch.setattr(_C, 'f', lambda: 1)\n    _C.f()\n",
    },
    "a test of errors": {
        "csrc/ops.cpp": PLAIN,
        "test_use.py": "import pytest\nfrom kit import _C\ndef test():\n    with pytest.raises(TypeError):\n        _C.f(x)\n    with pytest.raises(AttributeError):\n        _C.g\n",
    },
    "a fallback in Python": {
        "csrc/ops.cpp": PLAIN,
        "kit/__init__.py": "",
        "kit/ops.py": "try:\n    from . import _C as impl\nexcept ImportError:\n    from . import slow as impl\n\ndef f(x):\n    return impl.f(x)\n",
        "kit/slow.py": "def f(x):\n    return x\n",
    },
    "a loader that may give others": {
        "csrc/ops.cpp": PLAIN,
        "kit/__init__.py": "",
        "kit/ops.py": "def get(name):\n    if name == 'slow':\n        from . import slow\n        return slow\n    from . import _C\n    return _C\nget('slow').g(x)\nget('fast').f(x, 1)\n",
        "kit/slow.py": "def g(x):\n    return x\n",
    },
    "a result that is a list": {
        "csrc/ops.cpp": HEAD
        + "std::vector<at::Tensor> g(const at::Tensor& x) { return {x, x}; }\nstd::tuple<at::Tensor, at::Tensor, at::Tensor> h(const at::Tensor& x) { return {x, x, x}; }\n"
        + module('m.def("g", &g);\nm.def("h", &h);'),
        "use.py": "from kit import _C\na, b = _C.g(x)\ny, *rest = _C.h(x)\nt = _C.h(x)\nfor part in _C.h(x): pass\na, b = _C.h(x)[:2]\n",
    },
    "a stub with other forms": {
        "csrc/ops.cpp": PLAIN,
        "kit/__init__.py": "",
        "kit/_C.pyi": "from typing import Any\nfrom torch import Tensor\ndef f(x: Tensor, n: int) -> Tensor: ...\ndef __getattr__(name: str) -> Any: ...\n",
    },
    "a stub of operators whose module only loads them": {
        "csrc/ops.cpp": HEAD
        + F
        + 'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, int n) -> Tensor", &f); }\n'
        + module(""),
        "kit/__init__.py": "",
        "kit/_C.pyi": "from torch import Tensor\ndef f(x: Tensor, n: int) -> Tensor: ...\n",
    },
    "nanobind": {
        "csrc/ops.cpp": "#include <nanobind/nanobind.h>\n#include <nanobind/ndarray.h>\nnamespace nb = nanobind;\nusing namespace nb::literals;\n"
        "void g(nb::ndarray<float> x, std::optional<int> n, const char* s) {}\n"
        'NB_MODULE(_C, m) { m.def("g", &g, "x"_a, "n"_a.none() = nb::none(), nb::kw_only(), "s"_a = "a", nb::rv_policy::copy); }\n',
        "use.py": "from kit import _C\n_C.g(x)\n_C.g(x, None, s='b')\n",
    },
    "C++ after an unusual extra": {
        "csrc/ops.cpp": HEAD
        + F
        + "#define ARGS py::arg(\"x\"), py::arg(\"n\")\n"
        + module('m.def("f", &f, ARGS);\nm.def("g", &f, "doc", py::call_guard<py::gil_scoped_release>(), py::return_value_policy::move);'),
        "use.py": "from kit import _C\n_C.f(x, n=1)\n_C.g(x, 1)\n",
    },
}  # fmt: skip


OTHERS: dict[str, dict[str, str]] = {
    "getattr default": {**FILES, "kit/use.py":"from kit import _C\nf = getattr(_C, 'missing', None)\nif f: f(1,2,3)\n"},
    "loader shadowed": {**FILES, "kit/use.py":"from .loader import load_ext\ndef load_ext(name, funcs):\n    return Fake()\nm = load_ext('_C', ['f'])\nm.zz(x)\n"},
    "wrapper changes args": {**FILES, "kit/w.py":"def lazy(name):\n    def call(*args, **kwargs):\n        from kit import _C\n        return getattr(_C, name)(ctx(), *args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('f')(x)\n"},
    "wrapper swallows": {**FILES, "kit/w.py":"def lazy(name):\n    def call(*args, **kwargs):\n        from kit import _C\n        if not hasattr(_C, name):\n            return None\n        return getattr(_C, name)(*args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('g')(x)\n"},
    "wrapper kwargs added": {**FILES, "kit/w.py":"def lazy(name):\n    def call(*args, **kwargs):\n        from kit import _C\n        kwargs['n'] = 1\n        return getattr(_C, name)(*args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('f')(x)\n"},
    "args changed": {**FILES, "kit/w.py":"def lazy(name):\n    def call(*args, **kwargs):\n        from kit import _C\n        args = (*args, 1)\n        return getattr(_C, name)(*args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('f')(x)\n"},
    "name changed": {**FILES, "kit/w.py":"def lazy(name):\n    name = name + '_v2'\n    def call(*args, **kwargs):\n        from kit import _C\n        return getattr(_C, name)(*args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('g')(x)\n"},
    "decorated loader": {**FILES, "kit/w.py":"import functools\n@wrap\ndef get():\n    from kit import _C\n    return _C\n","kit/use.py":"from .w import get\nget().g(x)\n"},
    "cached loader": {**FILES, "kit/w.py":"import functools\n@functools.lru_cache\ndef get():\n    from kit import _C\n    return _C\n","kit/use.py":"from .w import get\nget().f(x, 1)\n"},
    "try loader": {**FILES, "kit/w.py":"def get():\n    try:\n        from kit import _C\n        return _C\n    except ImportError:\n        return None\n","kit/use.py":"from .w import get\nops = get()\nif ops is not None:\n    ops.f(x, 1)\n"},
    "loader fallback": {**FILES, "kit/w.py":"def get():\n    try:\n        from kit import _C as impl\n    except ImportError:\n        from kit import slow as impl\n    return impl\n","kit/slow.py":"def g(x): pass\n","kit/use.py":"from .w import get\nget().g(x)\n"},
    "method loader": {**FILES, "kit/use.py":"class A:\n    def load(self, name):\n        from kit import _C\n        return _C\n    def run(self):\n        self.load('x').f(x, 1)\n        self.ops = self.load('y')\n        self.ops.f(x, n=1)\n"},
    "subclass overrides loader": {**FILES, "kit/use.py":"class A:\n    def load(self):\n        from kit import _C\n        return _C\n    def run(self):\n        self.load().g(x)\nclass B(A):\n    def load(self):\n        return Other()\n"},
    "string arg other": {**FILES, "kit/use.py":"from kit import _C\ndef log(msg):\n    return _C\nlog('f').f(x, 1)\n"},
    "generator": {**FILES, "kit/use.py":"from kit import _C\ndef get():\n    yield _C\nfor m in get():\n    m.f(x, 1)\n"},
    "returned partial": {**FILES, "kit/use.py":"from kit import _C\nimport functools\ndef get(n):\n    return functools.partial(_C.f, n=n)\nget(1)(x)\n"},
    "async": {**FILES, "kit/use.py":"import importlib\nasync def get(name):\n    return importlib.import_module('kit.' + name)\nasync def main():\n    (await get('_C')).f(x, 1)\n    get('_C').g\n"},
    "property": {**FILES, "kit/use.py":"class A:\n    @property\n    def ops(self):\n        from kit import _C\n        return _C\n    def run(self):\n        return self.ops.f(x, 1)\n"},
    "lazy two modules": {**FILES, "kit/lazy2.py":"a, __getattr__ = make(public_name='_OPS', prebuilt_module='kit._C', other='kit.cached')\n","kit/use.py":"from . import lazy2\nlazy2._OPS.f(x, 1)\nlazy2.kit\n"},
    "vararg in wrapped keyword pass": {**FILES, "kit/w.py":"def lazy(name):\n    def call(*tensors, **opts):\n        from kit import _C\n        return getattr(_C, name)(*tensors, **DEFAULTS)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('f')(x)\n"},
    "conditional return": {**FILES, "kit/w.py":"def lazy(name):\n    if DEBUG:\n        return debug(name)\n    def call(*args, **kwargs):\n        from kit import _C\n        return getattr(_C, name)(*args, **kwargs)\n    return call\n","kit/use.py":"from .w import lazy\nlazy('f')(x)\n"},
    "import_module package arg": {**FILES, "kit/use.py":"import importlib\nm = importlib.import_module('._C', package='kit')\nm.f(x, 1)\nn = importlib.import_module('._C', 'other')\nn.g(x)\n"},
    "if/else import same name": {**FILES, "kit/use.py":"import os\nif os.environ.get('X'):\n    from kit import _C\nelse:\n    import other as _C\n_C.g(x)\n"},
    "walrus": {**FILES, "kit/use.py":"from kit import _C\nif (m := pick()) is not None:\n    m.g(x)\n_C = m\n_C.g(x)\n"},
    "del": {**FILES, "kit/use.py":"from kit import _C\ndel _C\nfrom other import thing as _C\n_C.g(x)\n"},
    "exec setattr loop": {**FILES, "kit/use.py":"from kit import _C\nfor k in names:\n    setattr(_C, k, make(k))\n_C.g(x)\n_C.f(x)\n"},
    "globals update": {**FILES, "kit/use.py":"from kit import _C\nglobals().update(table)\n_C.f(x, 1)\n"},
    "mock module sys.modules": {**FILES, "kit/use.py":"import sys\nsys.modules['kit._C'] = Fake()\nfrom kit import _C\n_C.g(x)\n"},
    "mock module setdefault": {**FILES, "tests/conftest.py":"import sys, types\nm = types.ModuleType('kit._C')\nm.g = lambda x: x\nsys.modules['kit._C'] = m\n","tests/test_x.py":"from kit import _C\n_C.g(x)\n"},
    "overload cast namespaced ext": {"csrc/ops.cpp":HEAD+module('m.def("f", py::overload_cast<int64_t>(&torch::cuda::foo));'),"use.py":"from kit import _C\n_C.f()\n"},
    "c cast": {"csrc/ops.cpp":HEAD+F+"at::Tensor f(const at::Tensor& x) { return x; }\n"+module('m.def("f", (at::Tensor (*)(const at::Tensor&)) &f);\nm.def("g", (at::Tensor (*)(const at::Tensor&, int64_t)) &f, py::arg("x"), py::arg("n"));'),"use.py":"from kit import _C\n_C.f(x)\n_C.g(x, n=1)\n"},
    "cast typedef": {"csrc/ops.cpp":HEAD+F+"using Fn = at::Tensor (*)(const at::Tensor&);\n"+module('m.def("f", static_cast<Fn>(&f));'),"use.py":"from kit import _C\n_C.f(x)\n"},
    "cast with defaulted args": {"csrc/ops.cpp":HEAD+"at::Tensor f(const at::Tensor& x, int64_t n = 1);\nat::Tensor f(const at::Tensor& x, int64_t n) { return x; }\n"+module('m.def("f", static_cast<at::Tensor (*)(const at::Tensor&, int64_t)>(&f), py::arg("x"), py::arg("count") = 1);'),"use.py":"from kit import _C\n_C.f(x, count=2)\n"},
    "module named twice in setups": {"a/setup.py":'CppExtension("kit_ops", ["ops.cpp"])\n',"b/setup.py":'CppExtension("kit_ops", ["ops.cpp"])\n',"a/ops.cpp":HEAD+F+module('m.def("f", &f);'),"b/ops.cpp":HEAD+"at::Tensor f(const at::Tensor& x) { return x; }\n"+module('m.def("f", &f);'),"use.py":"import kit_ops\nkit_ops.f(x)\nkit_ops.f(x, 1)\n"},
    "setup names by loop": {"setup.py":'from torch.utils.cpp_extension import CppExtension\next=[CppExtension(f"kit._{n}", [f"csrc/{n}.cpp"]) for n in ("a", "b")]\n',"csrc/a.cpp":HEAD+F+module('m.def("f", &f);'),"csrc/b.cpp":HEAD+F+module('m.def("g", &f);'),"kit/__init__.py":"","kit/use.py":"from . import _a, _b\n_a.f(x, 1)\n_b.g(x, 1)\n"},
    "named PYBIND and prefix": {"setup.py":'CppExtension("kit._impl", ["csrc/ops.cpp"])\n',"csrc/ops.cpp":HEAD+F+'#define NAME _impl\nPYBIND11_MODULE(NAME, m) { m.def("f", &f); }\n'},
    "inline two strings": {"use.py":"from torch.utils.cpp_extension import load_inline\nA='''\n#include <torch/extension.h>\nat::Tensor f(at::Tensor x) { return x; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }\n'''\nB='''\n#include <torch/extension.h>\nat::Tensor g(at::Tensor x, int64_t n) { return x; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"g\", &g); }\n'''\na = load_inline('a', A)\nb = load_inline('b', B)\na.f(x)\nb.g(x, 1)\n"},
    "inline with functions too": {"use.py":"from torch.utils.cpp_extension import load_inline\nA='''\nat::Tensor f(at::Tensor x) { return x; }\n'''\na = load_inline('a', A, functions='f')\na.f(x)\nb = load_inline('a', A, functions={'f': 'doc'})\nb.f(x)\nb.zz\n"},
    "inline rebinding": {"use.py":"from torch.utils.cpp_extension import load_inline\nCODE='''\n#include <torch/extension.h>\nat::Tensor f(at::Tensor x) { return x; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }\n'''\nCODE = CODE.replace('\"f\"', '\"g\"')\na = load_inline('a', [CODE])\na.g(x)\n"},
    "inline format": {"use.py":"from torch.utils.cpp_extension import load_inline\nCODE='''\n#include <torch/extension.h>\nat::Tensor f(at::Tensor x) { return x; }\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); /*EXTRA*/ }\n'''\na = load_inline('a', [CODE.replace('/*EXTRA*/', 'm.def(\"g\", &f);')])\na.g(x)\nb = load_inline('b', [CODE + MORE])\n"},
}  # fmt: skip
"""Loaders, casts, names of modules, C++ in strings."""


@pytest.mark.parametrize("name", TREES)
def test_no_finding(name: str) -> None:
    found = lint_files(PACK, {"setup.py": SETUP, **TREES[name]}).diagnostics
    assert [(item.code, item.message) for item in found] == []


@pytest.mark.parametrize("name", OTHERS)
def test_no_finding_with_loaders(name: str) -> None:
    found = lint_files(PACK, {"setup.py": SETUP, **OTHERS[name]}).diagnostics
    assert [(item.code, item.message) for item in found] == []

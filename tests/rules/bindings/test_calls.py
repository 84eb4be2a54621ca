"""Calls of bound functions: how code reaches a module, and which arguments fit."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.bindings.pack import PACK

SETUP = 'CppExtension("ext", ["ops.cpp"])\n'
CPP = """
#include <torch/extension.h>
at::Tensor f(const at::Tensor& x, std::optional<int64_t> n, bool flag) { return x; }
std::tuple<at::Tensor, at::Tensor> pair(at::Tensor x, std::tuple<int, int> size, std::vector<double> w) { return {x, x}; }
void none(at::IntArrayRef sizes) {}
void names(std::pair<std::string, std::string> x, std::array<char, 2> y, std::vector<std::string> z) {}
at::Tensor over(at::Tensor x) { return x; }
at::Tensor over_at(at::Tensor x, int n) { return x; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("f", &f, py::arg("x"), py::arg("n") = py::none(), py::arg("flag") = false);
  m.def("pair", &pair);
  m.def("none", &none);
  m.def("names", &names);
  m.def("over", &over);
  m.def("over", &over_at);
}
"""


def codes(python: str, **files: str) -> list[str]:
    return lint_files(PACK, {"setup.py": SETUP, "ops.cpp": CPP, "use.py": python, **files}).codes()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("f(x)", []),
        ("f(x, None, True)", []),
        ("f(x, 3, flag=1)", []),
        ("f(x, True)", []),
        ("f(x, 3.0)", ["BND304"]),
        ("f(x, -3.0)", ["BND304"]),
        ("f([x])", ["BND304"]),
        ("f(x, flag='yes')", ["BND304"]),
        ("f(x, n=1, **options)", []),
        ("f(**options)", []),
        ("f(*items, flg=1)", ["BND302"]),
        ("f(x, 1, x=x)", ["BND302"]),
        ("f(x, 1, True, 2)", ["BND301"]),
        ("f()", ["BND301"]),
        ("pair(x, (1, 2), [1, 2.5])", []),
        ("pair(x, [1, 2], ())", []),
        ("pair(x, (1, 2, 3), w)", ["BND304"]),
        ("pair(x, (1, *rest), w)", []),
        ("pair(x, size, ['a'])", ["BND304"]),
        ("none((1, 2))", []),
        ("none(3)", ["BND304"]),
        ("names('ab', 'ab', z)", []),
        ("names(x, y, 'ab')", ["BND304"]),
        ("names(None, y, z)", ["BND304"]),
        ("pair(x, 'ab', w)", ["BND304"]),
        ("over(x), ext.over(x, 1)", []),
        ("over(x, 1.5)", ["BND304"]),
        ("over(x, 1, 2)", ["BND301"]),
    ],
)
def test_arguments(call: str, expected: list[str]) -> None:
    assert codes(f"import ext\next.{call}\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b = ext.pair(x, s, w)", []),
        ("a, b, c = ext.pair(x, s, w)", ["BND305"]),
        ("a, *b = ext.pair(x, s, w)", []),
        ("a, b, *c = ext.pair(x, s, w)", []),
        ("a, b, c, *d = ext.pair(x, s, w)", ["BND305"]),
        ("a, b, c = ext.f(x)", []),
        ("a, b, c = wrap(ext.pair(x, s, w))", []),
        ("a, b = ext.none(s)", ["BND305"]),
    ],
)
def test_results(text: str, expected: list[str]) -> None:
    assert codes(f"import ext\n{text}\n") == expected


@pytest.mark.parametrize(
    "python",
    [
        "import ext as e\ne.f()\n",
        "from ext import f\nf()\n",
        "import importlib\ne = importlib.import_module('ext')\ne.f()\n",
        "def g():\n    global e\n    import importlib\n    e = importlib.import_module('ext')\n    e.f()\n",
        "e = None\ntry:\n    import ext as e\nexcept ImportError:\n    pass\ne.f()\n",
        "import ext\n\n\nclass A:\n    def __init__(self):\n        self.e = ext\n\n    def g(self):\n        self.e.f()\n",
        "import ext\nfunction = ext.f\nfunction()\n",
        "def g():\n    from ext import f\n    return f()\n",
        "from torch.utils.cpp_extension import load\ne = load(name='e', sources=['ops.cpp'])\ne.f()\n",
        "class B:\n    def sources(self):\n        return ['ops.cpp']\n\n\ne = B().load()\ne.f()\n",
    ],
)
def test_ways_to_a_module(python: str) -> None:
    assert codes(python) == ["BND301"]


@pytest.mark.parametrize(
    "python",
    [
        "import other as ext\next.f()\n",
        "import ext\next = 3\next.f()\n",
        "def g(ext):\n    ext.f()\n",
        "import ext\n\n\ndef g():\n    ext = make()\n    ext.f()\n",
        "try:\n    from ext import f\nexcept ImportError:\n    def f():\n        pass\nf()\n",
        "try:\n    from ext import nothing\nexcept ImportError:\n    nothing = None\n",
        "import ext\nif hasattr(ext, 'nothing'):\n    ext.nothing()\n",
        "import ext\next.__version__\n",
        "import ext\n\n\nclass A:\n    def __init__(self, e=None):\n        self.e = ext if e is None else e\n\n    def g(self):\n"
        "        self.e.f()\n",
        "from ext import f\nf = wrap(f)\nf()\n",
        "import ext\ng = lambda ext: (ext.nope, ext.a.nope, ext.nope())\n",
        "import ext\nfor y in [ext.nope for ext in mods]:\n    pass\n",
        "import ext\nassert {ext.a: ext.b for _, ext in mods if ext.nope}\n",
        "import ext\nany(ext.nope for mods in all for ext in mods)\n",
        "import ext\n{lambda: ext.nope for ext in mods}\n",
        "class B:\n    def sources(self):\n        return ['ops.cpp', 'missing.cpp']\n\n\ne = C().load()\ne.f()\n",
    ],
)
def test_what_may_be_something_else(python: str) -> None:
    assert codes(python) == []


@pytest.mark.parametrize(
    "python",
    [
        "g = lambda x: ext.nope\n",
        "g = lambda ext=ext.nope: ext.n\n",
        "[ext.nope for x in mods]\n",
        "[ext.n for ext in ext.nope]\n",
        "[ext.n for ext in mods], ext.nope\n",
    ],
)
def test_variables_of_other_expressions(python: str) -> None:
    assert codes(f"import ext\n{python}") == ["BND303"]


def test_a_python_module_of_the_same_name() -> None:
    assert codes("import ext\next.f()\n", **{"ext.py": "def f(): ...\n"}) == []


def test_a_module_of_strings() -> None:
    python = (
        "from torch.utils.cpp_extension import load_inline\n"
        'CPP = """\n#include <torch/extension.h>\nat::Tensor g(at::Tensor x, int n) { return x; }\n"""\n'
        'e = load_inline("e", cpp_sources=CPP, functions=["g", "h"])\ne.g(x)\ne.g(x, n=1)\ne.k(x)\n'
    )
    assert codes(python) == ["BND203", "BND301", "BND302", "BND303"]


@pytest.mark.parametrize(("named", "expected"), [("sum_16", []), ("sum_8", ["BND203"])])
def test_a_function_in_strings_that_a_macro_makes_of_its_name(named: str, expected: list[str]) -> None:
    cpp = "#include <torch/extension.h>\n#define SUM(NAME, SIZE) at::Tensor NAME(at::Tensor x) { return x; }\n"
    cpp += "at::Tensor g(at::Tensor x) { return x; }\nSUM(sum_16, 16)\nSUM(sum_32, 32)\n"
    python = f"from torch.utils.cpp_extension import load_inline\nCPP = '''{cpp}'''\n"
    python += f'e = load_inline("e", cpp_sources=CPP, functions=["g", "{named}"])\n'
    assert codes(python) == expected

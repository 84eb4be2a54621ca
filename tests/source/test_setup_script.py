"""The extensions that a ``setup.py`` makes, as it would make them."""

from __future__ import annotations

import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.source.cmake.conditions import are_together
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.starlark.setup_script import Made, SetupScript, as_function
from opschema_cli.source.text import Source

FILES = ("csrc/a.cpp", "csrc/b.cpp", "csrc/cuda/k.cu", "csrc/cpu/c.cpp", "other/o.cpp")
IMPORTS = """\
import glob
import os
import os.path as osp
from pathlib import Path
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension, CppExtension
import torch
"""


def matching(pattern: str) -> list[str]:
    folder = pattern.rpartition("/")[0]
    if "**" in pattern:
        return [path for path in FILES if fnmatch.fnmatch(path, pattern.replace("**/", ""))]
    return [path for path in FILES if fnmatch.fnmatch(path, pattern) and path.rpartition("/")[0] == folder]


def made_by(script: str, folder: str = "") -> list[Made]:
    text = as_function(script)
    return SetupScript(PythonFile(Source("setup.py", text), collect(text)), folder, matching).extensions()


def targets(script: str) -> list[tuple[str, list[str], bool]]:
    """Names and sources, and whether these are all."""
    found = made_by(IMPORTS + script)
    return [(item.target.name, [path.lstrip("/") for path, _ in item.target.sources], item.complete) for item in found]


KNOWN = {
    "literals": 'setup(ext_modules=[CppExtension("kit._C", ["csrc/a.cpp"])])',
    "a list of a module": 'sources = ["csrc/a.cpp"]\nsetup(ext_modules=[CppExtension("kit._C", sources)])',
    "in a function": 'def exts():\n    return [CppExtension(name="kit._C", sources=["csrc/a.cpp"])]\nsetup(ext_modules=exts())',
    "appended": 's = []\ns.append("csrc/a.cpp")\next = []\next.append(CppExtension("kit._C", s))\nsetup(ext_modules=ext)',
    "joined": 'HERE = os.path.dirname(os.path.abspath(__file__))\nCppExtension("kit._C", [os.path.join(HERE, "csrc", "a.cpp")])',
    "a comprehension": 'CppExtension("kit._C", [osp.join("csrc", name + ".cpp") for name in ["a"]])',
    "an f-string": 'pkg = "kit"\nCppExtension(f"{pkg}._C", [f"csrc/{name}.cpp" for name in ("a",)])',
    "pathlib": 'root = Path(__file__).resolve().parent\nCppExtension("kit._C", [str(root / "csrc" / "a.cpp")])',
    "another name": 'Ext = CUDAExtension if torch.cuda.is_available() else CppExtension\nExt("kit._C", ["csrc/a.cpp"])',
    "set later": 'Ext = CppExtension\nif torch.cuda.is_available():\n    Ext = CUDAExtension\nExt("kit._C", ["csrc/a.cpp"])',
    "a helper": 'def make(name, module, sources):\n    return CUDAExtension(name="%s.%s" % (module, name),'
    ' sources=[os.path.join(*module.split("."), p) for p in sources])\nmake("_C", "kit", ["../csrc/a.cpp"])',
    "in main": 'if __name__ == "__main__":\n    setup(ext_modules=[CppExtension("kit._C", ["csrc/a.cpp"])])',
    "in try": 'try:\n    import ninja\nexcept ImportError:\n    ninja = None\nCppExtension("kit._C", ["csrc/a.cpp"])',
    "with": 'with open("version.txt") as f:\n    version = f.read()\nCppExtension("kit._C", ["csrc/a.cpp"])',
    "annotated": 'sources: list[str] = ["csrc/a.cpp"]\nCppExtension("kit._C", sources)',
    "unpacked": 'name, sources = "kit._C", ["csrc/a.cpp"]\nCppExtension(name, sources)',
    "a mutable default": "def add(path=None, into=[]):\n    if path:\n        into.append(path)\n    return into\n"
    'add("csrc/a.cpp")\nCppExtension("kit._C", add())',
    "a default of its time": 'p = "csrc/a.cpp"\ndef f(q=p):\n    return [q]\np = "csrc/b.cpp"\nCppExtension("kit._C", f())',
    "an early return": 'def f():\n    if not osp.join("a"):\n        return ["csrc/b.cpp"]\n    return ["csrc/a.cpp"]\n'
    'CppExtension("kit._C", f())',
    "a return in a loop": 'def f():\n    for p in ["csrc/a.cpp", "csrc/b.cpp"]:\n        return [p]\nCppExtension("kit._C", f())',
    "a return in with": 'def f():\n    with open("version.txt"):\n        return ["csrc/a.cpp"]\n    return ["csrc/b.cpp"]\n'
    'CppExtension("kit._C", f())',
    "a set": 'CppExtension("".join(set(["kit._C", "kit._C"])), list(set(["csrc/a.cpp", "csrc/a.cpp"])))',
    "extensions of a set": 'for name in {"kit._C", *["kit._C"]}:\n    CppExtension(name, ["csrc/a.cpp"])',
    "extensions of a dictionary": 'for n in dict.fromkeys(["kit._C", "kit._C"]):\n    CppExtension(n, {p for p in ["csrc/a.cpp"]})',
    "a set with a condition": 's = ["csrc/a.cpp"]\nif torch.cuda.is_available():\n    s.append("csrc/a.cpp")\n'
    'CppExtension("kit._C", list(set(s)))',
    "over lines": 'CppExtension(\n    name="kit._C",\n    sources=[\n        "csrc/a.cpp",\n    ],\n)',
}


@pytest.mark.parametrize("script", KNOWN)
def test_an_extension_of_one_source(script: str) -> None:
    ((name, sources, complete),) = targets(KNOWN[script])
    assert (name, [path.replace("kit/../", "") for path in sources], complete) == ("kit._C", ["csrc/a.cpp"], True)


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ('glob.glob("csrc/*.cpp")', "csrc/a.cpp csrc/b.cpp"),
        ('sorted(glob.glob(os.path.join("csrc", "*.cpp")))', "csrc/a.cpp csrc/b.cpp"),
        ('glob.glob("csrc/**/*.cpp", recursive=True)', "csrc/a.cpp csrc/b.cpp csrc/cpu/c.cpp"),
        ('[str(p) for p in Path("csrc").glob("*.cpp")]', "csrc/a.cpp csrc/b.cpp"),
        ('glob.glob("csrc/*.cpp") + glob.glob("csrc/cuda/*.cu")', "csrc/a.cpp csrc/b.cpp csrc/cuda/k.cu"),
        ('["csrc/a.cpp", *glob.glob("csrc/cuda/*.cu")]', "csrc/a.cpp csrc/cuda/k.cu"),
    ],
)
def test_globs(sources: str, found: str) -> None:
    assert targets(f'CppExtension("kit._C", {sources})') == [("kit._C", found.split(), True)]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ('CppExtension("kit._C", find())', ("kit._C", [], False)),
        ('CppExtension("kit._C", ["csrc/a.cpp"] + find())', ("kit._C", ["csrc/a.cpp"], False)),
        ('CppExtension(find(), ["csrc/a.cpp"])', ("", ["csrc/a.cpp"], True)),
        ('s = ["csrc/a.cpp"]\ns += find()\nCppExtension("kit._C", s)', ("kit._C", ["csrc/a.cpp"], False)),
        ('s = ["csrc/a.cpp"]\ns.remove("csrc/a.cpp")\nCppExtension("kit._C", s)', ("kit._C", ["csrc/a.cpp"], False)),
        ('s = ["csrc/a.cpp"]\nchange(s)\nCppExtension("kit._C", s)', ("kit._C", ["csrc/a.cpp"], False)),
        ('n = "a"\nif find():\n    n = "b"\nCppExtension(n, ["csrc/a.cpp"])', ("", ["csrc/a.cpp"], True)),
    ],
)
def test_what_is_not_known(script: str, found: tuple[str, list[str], bool]) -> None:
    assert targets(script) == [found]


@pytest.mark.parametrize(
    ("script", "together"),
    [
        ('CppExtension("c", ["csrc/a.cpp", "csrc/b.cpp"])', True),
        ('s = ["csrc/a.cpp"]\nif on():\n    s.append("csrc/b.cpp")\nCppExtension("c", s)', True),
        ('s = []\nif on():\n    s += ["csrc/a.cpp"]\nelse:\n    s += ["csrc/b.cpp"]\nCppExtension("c", s)', False),
        ('if on():\n    s = ["csrc/a.cpp"]\nelse:\n    s = ["csrc/b.cpp"]\nCppExtension("c", s)', False),
        ('s = ["csrc/a.cpp"]\nif on():\n    s = ["csrc/b.cpp"]\nCppExtension("c", s)', False),
        ('s = ["csrc/a.cpp", "csrc/b.cpp"]\ns = [p for p in s if keep(p)]\nCppExtension("c", s)', False),
        ('s = ["csrc/a.cpp", "csrc/b.cpp"]\ns.remove(drop())\nCppExtension("c", s)', False),
        ('CppExtension("c", ["csrc/a.cpp"] if on() else ["csrc/b.cpp"])', False),
        (
            'def f():\n    s = ["csrc/a.cpp"]\n    if on():\n        return s\n    s.append("csrc/b.cpp")\n    return s\n'
            'CppExtension("c", f())',
            True,
        ),
        (
            'def f():\n    if on():\n        return ["csrc/a.cpp"]\n    return ["csrc/b.cpp"]\nCppExtension("c", f())',
            False,
        ),
        (
            'def f():\n    if on():\n        return ["csrc/a.cpp"]\n    s = ["csrc/a.cpp"]\n    s += ["csrc/b.cpp"]\n    return s\n'
            'CppExtension("c", f())',
            True,
        ),
        (
            's = ["csrc/a.cpp"]\ndef f():\n    if x():\n        if on():\n            return\n    s.append("csrc/b.cpp")\nf()\n'
            's = s + ["csrc/k.cu"] if on() else s\nCppExtension("c", s)',
            True,
        ),
        (
            'def f(s):\n    for p in ["csrc/a.cpp", "csrc/b.cpp"]:\n        if on(p):\n            return s\n        s.append(p)\n'
            '    return s\nCppExtension("c", f([]))',
            True,
        ),
        ('e = CppExtension("c", ["csrc/a.cpp"])\ne.sources.append("csrc/b.cpp")', True),
        ('e = CppExtension("c", ["csrc/a.cpp"])\ne.sources += ["csrc/b.cpp"]', True),
        ('for e in [CppExtension("c", ["csrc/a.cpp"])]:\n    if on():\n        e.sources.append("csrc/b.cpp")', True),
        ('s = ["csrc/a.cpp"]\ne = CppExtension("c", s)\ns.append("csrc/b.cpp")', False),
        ('s = ["csrc/a.cpp", "csrc/b.cpp"]\ne = CppExtension("c", s)\ns.clear()', False),
        ('e = CppExtension("c", ["csrc/a.cpp", "csrc/b.cpp"])\nchange(e)', False),
        ('e = CppExtension("c", ["csrc/a.cpp", "csrc/b.cpp"])\nf = [e]\nf[0].sources.pop()', False),
        ('e = CppExtension("c", ["csrc/a.cpp", "csrc/b.cpp"])\ndef f():\n    g(e).sources = []\nf()', False),
        (
            'def f(on=False):\n    try:\n        import k\n        return ["csrc/a.cpp"]\n    except ImportError:\n'
            '        return ["csrc/b.cpp"]\nCppExtension("c", f())',
            False,
        ),
        ('for p in find():\n    s = ["csrc/a.cpp"]\n    s.append("csrc/b.cpp")\n    CppExtension("c", s)', True),
    ],
)
def test_sources_that_are_surely_compiled_together(script: str, together: bool) -> None:
    (made,) = made_by(IMPORTS + script)
    origins = dict(made.target.sources)
    assert are_together(origins["csrc/a.cpp"], origins["csrc/b.cpp"]) is together


def test_macros_and_places() -> None:
    script = IMPORTS + 'def f():\n\treturn CppExtension("kit._C", [], define_macros=[("A", "b"), ("C", None)],\n'
    script += '\t\textra_compile_args={"cxx": ["-O3", "-DNS=kit"]})\nf()\n'
    (made,) = made_by(script)
    assert made.target.macros == (("A", "b"), ("NS", "kit"))
    assert script[: made.at].endswith("return CppExtension")


@pytest.mark.parametrize(
    "script",
    [
        "",
        "\\\n",
        "x = '''\nCppExtension\n'''",
        "def f(): f()\nf()",
        "while True:\n    x = [x, x]",
        "x = []\nfor i in x: x.append(x)\nCppExtension(x, x)",
        "s = ['a']\n" + "s += s\n" * 60 + "CppExtension('c', s)",
        "def f(x):\n    f(x)\n    f(x)\nf(1)",
        "from x import *\nimport y.z as w\nclass A:\n    CppExtension('a', [])",
        "CppExtension(''.split(''), ''.join([]))\n''.replace('', 'a' * 9)\nPath().parent / 1",
        "CppExtension(*x, **y)\nCppExtension()\nos.path.join()\nos.path.relpath('', '')\nglob.glob('[')",
    ],
)
def test_hostile_scripts_end(script: str) -> None:
    text = as_function(script)
    SetupScript(PythonFile(Source("setup.py", text), collect(text)), "", lambda pattern: []).extensions()


def test_what_python_makes_of_it(tmp_path: Path) -> None:
    """The names and sources that are known are those with which the script calls the constructors."""
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    stub = "import sys, types\n"
    stub += "m = types.ModuleType('torch.utils.cpp_extension')\n"
    stub += "t = types.ModuleType('torch')\nu = types.ModuleType('torch.utils')\n"
    stub += "t.cuda = types.SimpleNamespace(is_available=lambda: False)\n"
    stub += "def ext(name, sources, **more): print(name, *sources)\nm.CUDAExtension = m.CppExtension = ext\n"
    stub += "sys.modules.update({'torch': t, 'torch.utils': u, 'torch.utils.cpp_extension': m})\n"
    stub += "s = types.ModuleType('setuptools')\ns.setup = lambda **more: None\nsys.modules['setuptools'] = s\n"
    (tmp_path / "version.txt").write_text("1")
    for title, script in KNOWN.items():
        code = f"{stub}__file__ = 'setup.py'\n{IMPORTS}{script}\n"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        printed = [line.split() for line in done.stdout.replace(f"{tmp_path.resolve()}/", "").splitlines()]
        assert printed == [[name, *sources] for name, sources, _ in targets(script)], title


UNFOLLOWED = {
    "break": 'sources = []\nfor s in ["csrc/a.cpp", "csrc/b.cpp"]:\n    if "b" in s:\n        break\n    sources.append(s)\n',
    "continue": 'sources = []\nfor s in ["csrc/a.cpp", "csrc/b.cpp"]:\n    if "b" in s:\n        continue\n    sources.append(s)\n',
    "del": 'sources = ["csrc/b.cpp", "csrc/a.cpp"]\ndel sources[0]\n',
    "an item": 'sources = ["csrc/b.cpp"]\nsources[0] = "csrc/a.cpp"\n',
    "global": 'sources = ["csrc/b.cpp"]\ndef f():\n    global sources\n    sources = ["csrc/a.cpp"]\nf()\n',
    "match": 'sources = []\nmatch len(sources):\n    case 0:\n        sources.append("csrc/a.cpp")\n',
    "an error": 'sources = []\ntry:\n    import nowhere\n    sources.append("csrc/b.cpp")\nexcept ImportError:\n'
    '    sources.append("csrc/a.cpp")\n',
}


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_sources_of_a_script_that_is_not_followed_are_not_certain(name: str) -> None:
    found = made_by(f'{IMPORTS}{UNFOLLOWED[name]}setup(ext_modules=[CppExtension("kit._C", sources)])')
    origins = [origin for item in found for _, origin in item.target.sources]
    assert found
    assert frozenset() not in origins


def test_a_list_that_is_added_to_is_the_same_list() -> None:
    script = 'a = ["csrc/a.cpp"]\nb = a\nb += ["csrc/b.cpp"]\nsetup(ext_modules=[CppExtension("kit._C", a)])'
    assert targets(script) == [("kit._C", ["csrc/a.cpp", "csrc/b.cpp"], True)]


BUILD = """\
import glob
import os
from types import SimpleNamespace
PATH = os.path.dirname(os.path.abspath(__file__))
DEBUG = os.getenv("DEBUG") == "1"

def parameters():
    sources = list(glob.glob(os.path.join(PATH, "*.cpp"))) + [os.path.join(PATH, "cuda", "k.cu")]
    if not DEBUG:
        sources = [one for one in sources if not one.endswith("b.cpp")]
    return SimpleNamespace(name="jit", sources=sources)
"""
LOADING = """\
import importlib.util
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
HERE = os.path.dirname(os.path.abspath(__file__))
found = load("build", os.path.join("csrc", "build.py")).parameters()
setup(ext_modules=[CUDAExtension("kit._C", sources=[os.path.relpath(one, HERE) for one in found.sources])])
"""


def made_with(scripts: dict[str, str], loading: str = LOADING) -> list[tuple[str, list[str]]]:
    return [(name, sources) for name, sources, _ in made_of(scripts, loading)]


def made_of(scripts: dict[str, str], loading: str) -> list[tuple[str, list[str], bool]]:
    def script(path: str) -> PythonFile | None:
        text = as_function(scripts[path]) if path in scripts else ""
        return PythonFile(Source(path, text), collect(text)) if text else None

    text = as_function(IMPORTS + loading)
    found = SetupScript(PythonFile(Source("setup.py", text), collect(text)), "", matching, script).extensions()
    return [(item.target.name, [path.lstrip("/") for path, _ in item.target.sources], item.complete) for item in found]


def test_a_module_that_is_made_of_another_script() -> None:
    assert made_with({"csrc/build.py": BUILD}) == [("kit._C", ["csrc/a.cpp", "csrc/b.cpp", "csrc/cuda/k.cu"])]


def test_a_module_of_a_script_that_is_not_there() -> None:
    assert made_with({}) == [("kit._C", [])]


def test_a_module_of_a_script_that_makes_a_module_of_itself() -> None:
    again = f"import os\n{LOADING}"
    assert ("kit._C", []) in made_with({"csrc/build.py": again})


LOAD = LOADING[: LOADING.index("HERE")] + "import types\n"
SCRIPTS = {
    "a.py": 'SOURCES = ["csrc/a.cpp"]\ndef sources():\n    return SOURCES\ndef call(function):\n    return function()\n',
    "name.py": 'if __name__ == "build":\n    SOURCES = ["csrc/a.cpp"]\nelse:\n    SOURCES = ["csrc/b.cpp"]\n',
}
MODULE = f'{LOAD}m = load("build", "a.py")\n'


@pytest.mark.parametrize(
    ("script", "source"),
    [
        (f'{MODULE}m.SOURCES = ["csrc/b.cpp"]\nCppExtension("kit._C", m.sources())', "b"),
        (f'{LOAD}n = types.SimpleNamespace(s=["csrc/a.cpp"])\nn.s = ["csrc/b.cpp"]\nCppExtension("kit._C", n.s)', "b"),
        (f'{MODULE}SOURCES = ["csrc/b.cpp"]\ndef f():\n    return SOURCES\nCppExtension("kit._C", m.call(f))', "b"),
        (f'{MODULE}SOURCES = []\ndef f():\n    return m.sources()\nCppExtension("kit._C", m.call(f))', "a"),
        (f'{LOAD}CppExtension("kit._C", load("build", "name.py").SOURCES)', "a"),
    ],
    ids=["an attribute of a module", "one of a namespace", "a function that is passed", "and comes back", "its name"],
)
def test_what_a_module_holds(script: str, source: str) -> None:
    assert made_of(SCRIPTS, script) == [("kit._C", [f"csrc/{source}.cpp"], True)]


@pytest.mark.parametrize(
    "script",
    [
        f'{MODULE}setattr(m, "SOURCES", [])\nCppExtension("kit._C", m.SOURCES)',
        f'{MODULE}m.SOURCES.append("csrc/b.cpp")\nCppExtension("kit._C", load("build", "a.py").SOURCES)',
        f'{LOAD}n = types.SimpleNamespace(s=["csrc/a.cpp"])\nfill(n)\nother.fill(n)\nvars(n)\nCppExtension("kit._C", n.s)',
    ],
    ids=["set by name", "made twice", "a namespace that is passed"],
)
def test_a_module_or_namespace_that_may_change(script: str) -> None:
    ((_, _, complete),) = made_of(SCRIPTS, script)
    assert not complete


def test_scripts_that_are_loaded_under_conditions() -> None:
    made = 'from setuptools import Extension\nExtension("kit._C", ["csrc/%s.cpp"])\n'
    script = f'{LOAD}if os.getenv("FAST"):\n    load("build", "a.py")\nelse:\n    load("build", "b.py")\n'
    text = as_function(IMPORTS + script)
    scripts = {f"{name}.py": as_function(made % name) for name in "ab"}

    def read(path: str) -> PythonFile:
        return PythonFile(Source(path, scripts[path]), collect(scripts[path]))

    found = SetupScript(PythonFile(Source("setup.py", text), collect(text)), "", matching, read).extensions()
    ((_, first),), ((_, second),) = (item.target.sources for item in found)
    assert not are_together(first, second)


def test_scripts_that_load_each_other_over_and_over() -> None:
    load = LOAD + 'm = load("build", "%s.py")\nCppExtension("kit._C", ["csrc/a.cpp"] + m.SOURCES)\nSOURCES = []\n'
    scripts = {
        f"{number}.py": f"from setuptools import Extension as CppExtension\n{load % (number + 1)}"
        for number in range(300)
    }
    found = made_of(scripts, load % 0)
    assert 1 < len(found) < 20
    assert not found[0][2]


def test_a_script_that_takes_too_long_is_not_certain() -> None:
    many = "s = " + repr(["x"] * 700) + "\n"
    script = f'{many}CppExtension("kit._C", ["csrc/a.cpp"])\nfor a in s:\n    for b in s:\n        c = [a, b]\n'
    assert [complete for _, _, complete in targets(script)] == [False]

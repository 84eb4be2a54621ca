"""Definitions and registrations of two C++ files that one library is linked from."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

OPS = """
TORCH_LIBRARY(kit, m) { m.def("scale(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &f); }
"""
KERNEL = 'TORCH_LIBRARY_IMPL(kit, CPU, m) { m.impl("scale", &g); }\n'
TWICE = (
    "`kit::scale` has a kernel for `CPU` already;"
    " both files are linked into `k`, in an order that decides which one torch keeps"
)
BOTH = "add_library(k a.cpp b.cpp)"


def found(second: str, **build: str) -> list[str]:
    files = {"a.cpp": OPS, "b.cpp": second, **{name.replace("__", "."): text for name, text in build.items()}}
    linted = lint_files([PACK], files, select=["REG113", "REG506", "REG507"])
    return [item.message for item in linted.diagnostics]


@pytest.mark.parametrize(
    "build",
    [
        {"CMakeLists__txt": BOTH},
        {"CMakeLists__txt": 'file(GLOB SRC "*.cpp")\nadd_library(k ${SRC})'},
        {"CMakeLists__txt": "set(S a.cpp)\nif((A) OR B)\n list(APPEND S b.cpp)\nendif()\nadd_library(k ${S})"},
        {
            "CMakeLists__txt": "if(A)\n set(S a.cpp)\nendif()\nif(A)\n list(APPEND S b.cpp)\nendif()\nadd_library(k ${S})"
        },
        {
            "CMakeLists__txt": "include(Kit.cmake)\nkit_library(NAME k HOST a.cpp DEVICE b.cpp)",
            "Kit__cmake": 'macro(kit_library)\ncmake_parse_arguments(K "" NAME "HOST;DEVICE" ${ARGN})\n'
            "Python_add_library(${K_NAME} MODULE ${K_HOST} ${K_DEVICE})\nendmacro()",
        },
        {"BUILD": 'cc_library(name = "k", srcs = glob(["*.cpp"]))'},
        {
            "BUCK": 'load(":kit.bzl", "kit_library")\nkit_library("k", host = ["a.cpp"])',
            "kit__bzl": "def kit_library(name, host):\n    cxx_library(name = name, srcs = host + ['b.cpp'])\n",
        },
        {"setup__py": "CppExtension('k', sources=[\n  'a.cpp',  # the one\n  'b.cpp',\n])"},
        {"pyproject__toml": '[[tool.setuptools.ext-modules]]\nname = "k"\nsources = ["a.cpp", "b.cpp"]'},
    ],
    ids=["listed", "glob", "appended", "one-condition", "macro", "bazel", "buck", "setup", "pyproject"],
)
def test_two_kernels_of_one_library(build: dict[str, str]) -> None:
    assert found(KERNEL, **build) == [TWICE]


@pytest.mark.parametrize(
    "build",
    [
        {},
        {"CMakeLists__txt": "add_library(k a.cpp)\nadd_library(fast b.cpp)"},
        {"CMakeLists__txt": "if(A)\n set(S a.cpp)\nelse()\n set(S b.cpp)\nendif()\nadd_library(k ${S})"},
        {"CMakeLists__txt": "set(S a.cpp)\nif(A)\n set(S b.cpp)\nendif()\nadd_library(k ${S})"},
        {"CMakeLists__txt": "set(S a.cpp)\nset(S b.cpp)\nadd_library(k ${S})"},
        {"CMakeLists__txt": "if(A)\n list(APPEND S a.cpp)\nelseif(B)\n list(APPEND S b.cpp)\nendif()\nadd_library(k ${S})"},
        {"CMakeLists__txt": "if(A)\n set(S a.cpp)\nendif()\nif(NOT A)\n list(APPEND S b.cpp)\nendif()\nadd_library(k ${S})"},
        {"CMakeLists__txt": 'file(GLOB S "*.cpp")\nlist(FILTER S EXCLUDE REGEX "b\\.cpp$")\nadd_library(k ${S})'},
        {"CMakeLists__txt": 'file(GLOB S "*.cpp")\nlist(FILTER S EXCLUDE REGEX "(fast|b).cpp")\nadd_library(k ${S})'},
        {"CMakeLists__txt": "add_library(${A} a.cpp b.cpp)"},
        {"BUILD": 'cc_library(name = "k", srcs = select({"gpu": ["a.cpp"], "cpu": ["b.cpp"]}))'},
        {"BUILD": "This folder is built by hand: a.cpp, b.cpp"},
        {"setup__py": "CppExtension('k', sources=['a.cpp'] if A else ['b.cpp'])"},
        {"setup__py": "CppExtension('k', sources=s)\nfor s in ['a.cpp', 'b.cpp']:\n    pass"},
        {"setup__py": "CppExtension('k', sources=[s for s in ['a.cpp', 'b.cpp'] if A])"},
    ],
    ids=range(15),
)  # fmt: skip
def test_files_that_may_be_apart(build: dict[str, str]) -> None:
    assert found(KERNEL, **build) == []


def test_conditions_of_the_preprocessor() -> None:
    conditional = f"#ifdef KIT_FAST\n{KERNEL}#endif\n"
    assert found(conditional, CMakeLists__txt=BOTH) == [TWICE]
    assert found(f"#ifdef KIT_FAST\nint a;\n#else\n{KERNEL}#endif\n", CMakeLists__txt=BOTH) == [TWICE]
    both = f"#ifdef KIT_SLOW\n{OPS}#endif\n"
    linted = lint_files([PACK], {"a.cpp": both, "b.cpp": conditional, "CMakeLists.txt": BOTH}, select=["REG506"])
    assert not linted.diagnostics


def test_two_definitions_of_one_library() -> None:
    fragment = 'TORCH_LIBRARY_FRAGMENT(kit, m) { m.def("scale(Tensor x) -> Tensor"); }\n'
    assert found(fragment, CMakeLists__txt=BOTH) == ["`kit::scale` is defined already: torch refuses the second"]
    assert found(fragment) == []
    library = 'TORCH_LIBRARY(kit, m) { m.def("shift(Tensor x) -> Tensor"); }\n'
    assert found(library, CMakeLists__txt=BOTH) == [
        "`kit` has its `TORCH_LIBRARY` already: torch refuses another; write `TORCH_LIBRARY_FRAGMENT`"
    ]
    assert found(library) == []


@pytest.mark.parametrize(
    ("script", "findings"),
    [
        ("import glob\nCppExtension('k', glob.glob('*.cpp'))", [TWICE]),
        ("s = ['a.cpp']\ns += ['b.cpp']\nCppExtension('k', s)", [TWICE]),
        ("s = ['a.cpp']\nif cuda():\n    s.append('b.cpp')\nCppExtension('k', s)", [TWICE]),
        ("s = []\nif cuda():\n    s += ['a.cpp']\nelse:\n    s += ['b.cpp']\nCppExtension('k', s)", []),
        ("s = ['a.cpp', 'b.cpp']\ns.remove(skipped())\nCppExtension('k', s)", []),
        ("CppExtension('k', [p for p in ['a.cpp', 'b.cpp'] if kept(p)])", []),
        ("CppExtension('k', ['a.cpp'])\nCppExtension('k', ['b.cpp'])", []),
    ],
)
def test_files_that_a_setup_script_builds_together(script: str, findings: list[str]) -> None:
    assert found(KERNEL, setup__py=script) == findings


def test_comments_of_a_setup_script_count_once() -> None:
    script = "# opschema: ignore[REG506]\nimport glob\nCppExtension('k', glob.glob('*.cpp'))\n"
    linted = lint_files([PACK], {"a.cpp": OPS, "b.cpp": KERNEL, "setup.py": script})
    assert {item.place.path for item in linted.diagnostics} <= {"a.cpp", "b.cpp", "setup.py"}

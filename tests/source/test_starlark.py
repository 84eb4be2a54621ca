"""Bazel and Buck targets: rules, loaded functions, globs and alternatives."""

from __future__ import annotations

import time
from fnmatch import fnmatch

import pytest

from opschema_cli.source.cmake.conditions import are_together
from opschema_cli.source.cmake.targets import Target
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.starlark.targets import StarlarkTree
from opschema_cli.source.text import Source

FILES = ("kit/first.cpp", "kit/second.cpp", "kit/second_test.cpp", "other.cpp")


def read(files: dict[str, str]) -> list[Target]:
    def glob(pattern: str) -> list[str]:
        return [path for path in FILES if fnmatch(path, pattern)]

    parsed = {path: PythonFile(Source(path, text), collect(text)) for path, text in files.items()}
    return StarlarkTree(parsed, glob, lambda word: word.endswith((".cpp", ".cu"))).targets()


def built(text: str, rules: str = "") -> dict[str, list[str]]:
    targets = read({"kit/BUILD": text, "tools/rules.bzl": rules})
    return {target.name: [path.removeprefix("//") for path, _ in target.sources] for target in targets}


RULES = """
_FLAGS = ["-O3"]

def _name(base, suffix = ""):
    return base + "_" + suffix if suffix else base

def kit_ops(name, cpu, gpu = [], **kwargs):
    flags = kwargs.pop("flags", []) + _FLAGS
    sources = list(cpu)
    for item in gpu:
        sources.append(item)
    native.cc_library(
        name = _name(name, "ops"),
        srcs = sources,
        copts = flags + ["-DTORCH_EXTENSION_NAME=%s" % name],
        **kwargs
    )
"""
LOAD = 'load("//tools:rules.bzl", "kit_ops")\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('cc_library(name = "a", srcs = ["x.cpp", "y.cu", "z.h"])', {"a": ["kit/x.cpp", "kit/y.cu"]}),
        ('pybind_extension(name = "a", srcs = [":x.cpp", "//other:y.cpp"])', {"a": ["kit/x.cpp", "other/y.cpp"]}),
        ('cxx_library(name = "a", srcs = glob(["*.cpp"], exclude = ["*_test.cpp"]))', {"a": ["kit/first.cpp", "kit/second.cpp"]}),
        ('S = ["x.cpp"]\ncc_library(name = "a", srcs = S + ["y.cpp"])', {"a": ["kit/x.cpp", "kit/y.cpp"]}),
        ('cc_library(name = "a", srcs = [n + ".cpp" for n in ["x", "y"]])', {"a": ["kit/x.cpp", "kit/y.cpp"]}),
        ('cc_library(name = "a", srcs = ["{}_{x}.cpp".format("y", x = "z")])', {"a": ["kit/y_z.cpp"]}),
        ('filegroup(name = "g", srcs = ["x.cpp"])\ncc_library(name = "a", srcs = [":g", "y.cpp"])',
         {"a": ["kit/x.cpp", "kit/y.cpp"]}),
        ('cc_binary(name = "a.so", linkshared = True, srcs = ["x.cpp"])', {"a.so": ["kit/x.cpp"]}),
        (f'{LOAD}kit_ops(name = "a", cpu = ["x.cpp"], gpu = ["y.cu"])', {"a_ops": ["kit/x.cpp", "kit/y.cu"]}),
        (f'{LOAD}kit_ops("a", ["x.cpp"], visibility = [])', {"a_ops": ["kit/x.cpp"]}),
        ('load("//tools:rules.bzl", ops = "kit_ops")\nops("a", glob(["second.cpp"]))', {"a_ops": ["kit/second.cpp"]}),
        ('load("@main//x/tools:rules.bzl", "kit_ops")\nkit_ops("a", ["x.cpp"])', {"a_ops": ["kit/x.cpp"]}),
        (f'{LOAD}outside(kind = kit_ops, name = "a", cpu = ["x.cpp"])', {"a_ops": ["kit/x.cpp"]}),
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_built(text: str, expected: dict[str, list[str]]) -> None:
    assert built(text, RULES) == expected


@pytest.mark.parametrize(
    "text",
    [
        'cc_test(name = "a", srcs = ["x.cpp"])',
        'cc_binary(name = "a", srcs = ["x.cpp"])',
        'genrule(name = "a", srcs = ["x.cpp"])',
        'cc_library(name = elsewhere(), srcs = ["x.cpp"])',
        "this is a BUILD file for people",
        'load("//tools:missing.bzl", "kit_ops")\nkit_ops(name = "a", cpu = ["x.cpp"])',
        "load(\"//tools:rules.bzl\", \"again\")\nagain()",
    ],
)  # fmt: skip
def test_what_makes_no_library(text: str) -> None:
    assert built(text, RULES + "def again():\n    again()\n") == {}


def test_macros() -> None:
    (target,) = read({"kit/BUILD": f'{LOAD}kit_ops("a", ["x.cpp"], flags = ["-DX=1"])', "tools/rules.bzl": RULES})
    assert target.macros == (("TORCH_EXTENSION_NAME", "a"),)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ('["x.cpp", "y.cpp"]', True),
        ('["x.cpp"] + select({":gpu": ["y.cpp"], "//conditions:default": []})', True),
        ('select({":gpu": ["y.cpp"], "//conditions:default": ["x.cpp"]})', False),
        ('["x.cpp"] if GPU else ["y.cpp"]', False),
        ('[f for f in ["x.cpp", "y.cpp"] if picked(f)]', False),
        ('made("x.cpp", "y.cpp")', False),
        ('pick("x.cpp", "y.cpp")', True),
    ],
)
def test_files_that_are_compiled_together(sources: str, expected: bool) -> None:
    load = 'load("//tools:rules.bzl", "made", "pick")\n'
    rules = "def made(x, y):\n    if unknown():\n        return [x]\n    return [y]\ndef pick(*all):\n    return all\n"
    targets = read({"kit/BUCK": f'{load}cc_library(name = "a", srcs = {sources})', "tools/rules.bzl": rules})
    origins = dict(targets[0].sources)
    found = [origins.get(f"//kit/{name}.cpp") for name in "xy"]
    assert (len(origins) == 2 and are_together(*found)) is expected


DOUBLED = "def f():\n    a = ['x.cpp']\n" + "    a += a\n" * 40 + "    return a\n\ncc_library(name = 'a', srcs = f())\n"
EXTENDED = DOUBLED.replace("a += a", "a.extend(a)")
NESTED = (
    "def f():\n    n = ['x'] * 9 + ["
    + "'y', " * 60
    + "]\n"
    + "".join(
        f"{'    ' * depth}for i{depth} in [{repr('y') + ', ' * 1}{', '.join(['1'] * 59)}]:\n" for depth in range(1, 7)
    )
    + "    " * 7
    + "a = 1\n\nf()\n"
)
COMPREHENSIONS = (
    "L = [" + "1, " * 60 + "]\nA = " + "[" * 6 + "1" + "".join(f" for i{at} in L]" for at in range(6)) + "\n"
)
CYCLES = """
def f():
    d = {}
    d['a'] = d
    e = {}
    e['a'] = e
    return d if x.y else e

Z = f()
"""


@pytest.mark.parametrize("text", [DOUBLED, EXTENDED, NESTED, COMPREHENSIONS, CYCLES], ids=range(5))
def test_hostile_files_take_little_time_and_leave_the_others(text: str) -> None:
    started = time.process_time()
    found = read({"kit/BUILD": "cc_library(name = 'b', srcs = ['y.cpp'])\n", "other/BUILD": text})
    assert time.process_time() - started < 10
    assert "b" in [target.name for target in found]


def test_a_long_chain_of_files_that_load_one_another_is_followed_in_part() -> None:
    files = {f"kit/m{at}.bzl": f"load(':m{at + 1}.bzl', 'f')\n" for at in range(2_000)}
    files["kit/BUILD"] = "load(':m0.bzl', 'f')\ncc_library(name = 'a', srcs = ['x.cpp'])\n"
    assert [target.name for target in read(files)] == ["a"]

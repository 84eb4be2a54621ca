"""What Bazel and Buck build: rules, functions that are loaded, globs and alternatives."""

from __future__ import annotations

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

"""Compiles what torchgen writes for a tree against torch's headers.

That are the declarations of kernels, with the kernels of a backend where the tree has them, and the formulas of derivatives.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
import torchgen

DECLARATIONS = """\
#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>
"""

FORMULAS = """\
#include <ATen/ATen.h>
#include <ATen/TensorGeometry.h>
#include <ATen/core/functional.h>
#include <torch/csrc/autograd/FunctionsManual.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>
using namespace torch::autograd;
using namespace torch::autograd::generated::details;
"""

_DECLARED = re.compile(r"^static (?P<type>.+?) (?P<name>\w+)\((?P<arguments>.*)\);$", re.M)
_ERROR = re.compile(r"^case_(\d+):\d+:\d+: (?:fatal )?error: (.*)", re.M)


def unit(texts: Mapping[str, str], sources: str) -> str:
    """The C++ of one tree: the kernels that torchgen declares, and a backend's class with its definitions."""
    meta = texts.get("NativeMetaFunctions.h NativeMetaFunctions_declarations", "")
    native = texts.get("NativeFunctions.h NativeFunctions_declarations", "")
    own = f"namespace at {{\nnamespace meta {{\n{meta}\n}}\n}}\n{native}".replace("at::meta::", "own::meta::")
    own = re.sub(r"^namespace at \{", "namespace own {\nusing namespace ::at;", own, flags=re.M)
    return own + (_backend(texts, sources) if sources else "")


def formulas(texts: Mapping[str, str]) -> str:
    """The nodes of autograd's graph, in the templates that torchgen fills in."""
    folder = Path(torchgen.__file__).parent / "packaged/autograd/templates"
    found = ""
    for name in ("Functions.h", "Functions.cpp"):
        body = (folder / name).read_text(encoding="utf-8").partition(_GENERATED)[2].rpartition("}")[0]
        for slot in ("autograd_function_declarations", "autograd_function_definitions"):
            body = body.replace(f"${{{slot}}}", texts.get(f"{name} {slot}", ""))
        found += body
    return "using at::Tensor; using at::Scalar; using at::IntArrayRef; using at::TensorList;\n" + found


_GENERATED = "namespace torch::autograd::generated {"


def _backend(texts: Mapping[str, str], sources: str) -> str:
    """The class that a backend's header declares, the backend's C++, and what it has to define."""
    slots = {slot: texts[name] for name in texts for slot in [name.partition(" ")[2]] if "NativeFunctions.h " in name}
    if "class_name" not in slots:
        return sources
    name, declared = slots["class_name"], slots["dispatch_declarations"]
    wanted = "".join(
        f"{item['type']} {name}::{item['name']}({item['arguments']}) {{ __builtin_unreachable(); }}\n"
        for item in _DECLARED.finditer(declared)
    )
    head = f"struct {name} {{\n{declared}\n}};\n"
    own = f"{slots['namespace_prologue']}\n{head}{slots['namespace_epilogue']}\n"
    return f"\n{own}\n{sources}\nnamespace wanted {{\n{own.replace(head, head + wanted)}\n}}\n"


def complaints(units: Sequence[str], headers: str) -> list[str]:
    """The first complaint about each unit, empty if there is none; all are compiled together, each in its namespace."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(units))}
    said = {text: _unbalanced(text) for text in numbers}
    sound = {number: text for text, number in numbers.items() if text and not said[text]}
    with tempfile.TemporaryDirectory() as folder:
        errors = dict(_compile(Path(folder), headers, sound)) if sound else {}
    return [said[text] or errors.get(numbers[text], "") for text in units]


def _unbalanced(text: str) -> str:
    """What would put the errors of one unit into another."""
    at = 0
    for found in re.finditer(r"[{}]", _ALTERNATIVE.sub("", text)):
        at += 1 if found[0] == "{" else -1
        if at < 0:
            break
    return "unbalanced braces" if at else ""


_ALTERNATIVE = re.compile(r"^#if.*?^#else$", re.M | re.S)
"""What stands before `#else`: a brace that is opened there is opened behind it as well."""


def _compile(folder: Path, headers: str, units: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    refused = dict(_errors(folder, headers, units))
    yield from refused.items()
    linked = {number: text for number, text in units.items() if number not in refused and "namespace wanted" in text}
    if linked:
        assert not dict(_errors(folder, headers, linked, "-c", "-o", "kernels.o"))
        names = subprocess.run(
            ["nm", "-C", "--defined-only", "kernels.o"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        defined = {line.split(" ", 2)[2] for line in names.splitlines()}
        for name in sorted(defined):
            number, _, method = name.partition("::wanted::")
            if method and f"{number}::{method}" not in defined:
                yield int(number.removeprefix("case_")), f"undefined reference to `{method}`"


def _errors(folder: Path, headers: str, units: Mapping[int, str], *options: str) -> Iterator[tuple[int, str]]:
    """The first error of each unit, whose lines are numbered in a file named after it."""
    body = "".join(
        f'#line 1 "case_{number}"\nnamespace case_{number} {{\n{text}\n}}\n' for number, text in units.items()
    )
    (folder / "all.cpp").write_text(headers + body, encoding="utf-8")
    include = Path(torch.__file__).parent / "include"
    command = [_compiler(), "-std=c++20", "-w", "-fmax-errors=0", f"-I{include}", f"-I{include}/torch/csrc/api/include"]
    done = subprocess.run(
        [*command, *(options or ("-fsyntax-only",)), "all.cpp"], cwd=folder, capture_output=True, text=True, check=False
    )
    found: dict[int, str] = {}
    for number, message in _ERROR.findall(done.stderr):
        found.setdefault(int(number), message)
    assert found or not done.returncode, done.stderr[:2000]
    yield from found.items()


def _compiler() -> str:
    found = shutil.which("g++") or shutil.which("clang++")
    assert found is not None, "there is no C++ compiler"
    return found

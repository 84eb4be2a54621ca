"""Compiles what torchgen declares for a tree against torch's headers, with the kernels of a backend where the tree has them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

HEADERS = """\
#include <ATen/core/Tensor.h>
#include <ATen/TensorIterator.h>
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


def complaints(units: Sequence[str]) -> list[str]:
    """The first complaint about each unit, empty if there is none; all are compiled together, each in its namespace."""
    numbers = {text: number for number, text in enumerate(dict.fromkeys(units))}
    said = {text: _unbalanced(text) for text in numbers}
    sound = {number: text for text, number in numbers.items() if text and not said[text]}
    with tempfile.TemporaryDirectory() as folder:
        errors = dict(_compile(Path(folder), sound)) if sound else {}
    return [said[text] or errors.get(numbers[text], "") for text in units]


def _unbalanced(text: str) -> str:
    """What would put the errors of one unit into another."""
    at = 0
    for found in re.finditer(r"[{}]", text):
        at += 1 if found[0] == "{" else -1
        if at < 0:
            break
    return "unbalanced braces" if at else ""


def _compile(folder: Path, units: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    refused = dict(_errors(folder, units))
    yield from refused.items()
    linked = {number: text for number, text in units.items() if number not in refused and "namespace wanted" in text}
    if linked:
        assert not dict(_errors(folder, linked, "-c", "-o", "kernels.o"))
        names = subprocess.run(
            ["nm", "-C", "--defined-only", "kernels.o"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        defined = {line.split(" ", 2)[2] for line in names.splitlines()}
        for name in sorted(defined):
            number, _, method = name.partition("::wanted::")
            if method and f"{number}::{method}" not in defined:
                yield int(number.removeprefix("case_")), f"undefined reference to `{method}`"


def _errors(folder: Path, units: Mapping[int, str], *options: str) -> Iterator[tuple[int, str]]:
    """The first error of each unit, whose lines are numbered in a file named after it."""
    body = "".join(
        f'#line 1 "case_{number}"\nnamespace case_{number} {{\n{text}\n}}\n' for number, text in units.items()
    )
    (folder / "all.cpp").write_text(HEADERS + body, encoding="utf-8")
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

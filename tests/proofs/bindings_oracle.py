"""Compiles the extensions of a workspace with pybind11 or nanobind, imports them, and calls what they bind.

Each bound function reports which value each of its parameters gets; all arguments are passed by keyword. A call is right if every
parameter gets the value of the keyword of its name. A workspace lists its modules in the file :data:`MODULES`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs import records
from tests.proofs.bindings_libraries import Library, library
from tests.proofs.processes import in_folder, serve

PROGRAM = """\
import importlib, json, sys
module = importlib.import_module(sys.argv[1])
for name in json.loads(sys.argv[2]):
    signature = getattr(module, name).__doc__.partition("(")[2].partition(")")[0]
    words = [part.partition(":")[0].strip() for part in signature.split(",")]
    given = {word: number for number, word in enumerate(words, 1)}
    print("call", name, json.dumps(given), flush=True)
    getattr(module, name)(**given)
"""


MODULES = "modules.json"
"""The file of a workspace that lists its modules, each a :class:`BuiltModule`."""


class BoundFunction(msgspec.Struct, frozen=True):
    """A function that is called: the name that it is bound to, the offset at which its signature ends, and its parameters."""

    name: str
    end: int
    parameters: list[str]


class BuiltModule(msgspec.Struct, frozen=True):
    """A module to compile: its file, its dotted name, its library (``pybind11``, ``nanobind``), and the functions to call."""

    path: str
    name: str
    library: str
    functions: list[BoundFunction]


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The results of importing the modules of each workspace and calling their functions."""
    return records.ask("tests.proofs.bindings_oracle", workspaces)


def can_compile() -> bool:
    """Whether there is a compiler, and torch with its copy of pybind11."""
    return shutil.which("g++") is not None and importlib.util.find_spec("torch") is not None


def _examine(folder: Path, files: Files) -> dict[str, Seen]:
    (folder / "torch").mkdir()
    found: dict[str, Seen] = {}
    for module in msgspec.json.decode(files[MODULES], type=list[BuiltModule]):
        used = library(module.library)
        (folder / "torch/extension.h").write_text(used.header)
        name, functions = module.name, module.functions
        built = _built(folder, used, module.path, name, functions)
        run = _run(folder, name, [item.name for item in functions]) if not built else None
        failed = built or (run.stderr.strip().rpartition("\n")[2] if run is not None and run.returncode else "")
        found[f"import {name}"] = Seen("refused", failed[:300]) if failed else Seen("right")
        if run is not None:
            found.update(_calls(run.stdout))
    return found


def _built(folder: Path, used: Library, path: str, name: str, functions: Sequence[BoundFunction]) -> str:
    """Compile a module; the errors of the compiler, empty if it accepts the module."""
    text = (folder / path).read_bytes().decode()
    for item in sorted(functions, key=lambda item: -item.end):
        opening = text.index("{", item.end) + 1
        text = text[:opening] + "".join(f"REPORT({name});" for name in item.parameters) + text[opening:]
    (folder / "reporting.cpp").write_text(text)
    own = name.rpartition(".")[2]
    command = ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", f"-DTORCH_EXTENSION_NAME={own}"]
    command += ["-I.", "reporting.cpp", *used.arguments, "-o", f"{own}.so"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return next(iter(re.findall(r"error: .*", done.stderr)), "it does not compile") if done.returncode else ""


def _run(folder: Path, name: str, functions: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, name.rpartition(".")[2], json.dumps(functions)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _calls(printed: str) -> dict[str, Seen]:
    """For each call whether the parameters got the values of their names."""
    found: dict[str, Seen] = {}
    for call in printed.split("call ")[1:]:
        head, *reports = call.splitlines()
        name, _, written = head.partition(" ")
        given = json.loads(written)
        got = {word: float(value) for word, value in (item.split() for item in reports)}
        wrong = [word for word, value in given.items() if got.get(word, value) != value]
        found[f"call {name}"] = Seen("wrong", f"other values for {', '.join(wrong)}") if wrong else Seen("right")
    return found


if __name__ == "__main__":
    serve(in_folder(_examine))

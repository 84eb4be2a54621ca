"""Compiles the extensions of a workspace with pybind11 or nanobind, imports them, and calls what they bind.

Each bound function reports which value each of its parameters gets; all arguments are passed by keyword. A call is right if every
parameter gets the value of the keyword of its name.
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

from opschema_cli.project import Project
from opschema_cli.proof import Files, Observation, Seen
from opschema_cli.workspace import Workspace
from opschema_rules.bindings.detection import BindingsOptions
from opschema_rules.bindings.load import read_tree
from opschema_rules.bindings.model import Binding
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


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """What importing the modules of each workspace and calling their functions does."""
    return records.ask("tests.proofs.bindings_oracle", workspaces)


def can_compile() -> bool:
    """Whether there is a compiler, and torch with its copy of pybind11."""
    return shutil.which("g++") is not None and importlib.util.find_spec("torch") is not None


def _examine(folder: Path, files: Files) -> dict[str, Seen]:
    tree = read_tree(Project(Workspace(folder)), BindingsOptions())
    (folder / "torch").mkdir()
    found: dict[str, Seen] = {}
    for module in tree.modules:
        used = library(module.library)
        (folder / "torch/extension.h").write_text(used.header)
        name = module.built_as or module.name
        bindings = [item for item in module.bindings if item.annotations and item.signature is not None]
        built = _built(folder, used, module.path, name, bindings)
        run = _run(folder, name, [item.name for item in bindings]) if not built else None
        failed = built or (run.stderr.strip().rpartition("\n")[2] if run is not None and run.returncode else "")
        found[f"import {name}"] = Seen("refused", failed[:300]) if failed else Seen("right")
        if run is not None:
            found.update(_calls(run.stdout))
    return found


def _built(folder: Path, used: Library, path: str, name: str, bindings: Sequence[Binding]) -> str:
    """Compile a module; the errors of the compiler, empty if it accepts the module."""
    text = (folder / path).read_bytes().decode()
    for item in sorted(
        bindings, key=lambda item: -item.signature.place.span.start if item.signature is not None else 0
    ):
        signature = item.signature
        if signature is not None:
            opening = text.index("{", signature.place.span.end) + 1
            reports = "".join(f"REPORT({one.name});" for one in signature.parameters)
            text = text[:opening] + reports + text[opening:]
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

"""Loads descriptions with simpler itself: its own loader and its own C++ structures, without compilers and devices.

``OPSCHEMA_SIMPLER`` names a folder with an installation of simpler (``pip install --target``). Its loader of scene tests gets the
program of the description; its compilers are replaced by functions that return a few bytes. Probes and levels:

- ``simpler``: *refused* where the module, the loader or a C++ structure raises. The result is the content of the C++ structures:
  the function, the directions of the orchestration, and of each kernel its id and directions.
- ``stand-in``: the same of :mod:`tests.proofs.pypto_descriptions`, which the other proofs rely on.

Run as a module it reads workspaces (JSON, texts by path) from stdin and answers a line each; its argument is that folder.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs.processes import failure, in_folder, serve
from tests.proofs.pypto_descriptions import description, stand_in
from tests.proofs.records import ask


def observe(folder: Path, workspaces: Sequence[Files]) -> list[Observation]:
    """Ask the simpler that is installed in a folder."""
    return ask("tests.proofs.simpler_oracle", workspaces, str(folder))


Program = tuple[str, list[str], list[tuple[int, list[str]]]]
"""The function of the orchestration, its directions, and the id and directions of each kernel."""


class _Compiler:
    """Replaces simpler's; nothing is compiled."""

    _sanitizers = ()

    def __init__(self, platform: str) -> None: ...

    def __getattr__(self, name: str) -> Callable[..., Any]:
        made: Any = ([], []) if name == "get_orchestration_cache_inputs" else [] if name.startswith("get_") else b"code"
        return lambda *_, **__: made


def examine(root: Path, files: Mapping[str, str]) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    found = {}
    for path, text in files.items():
        if path.endswith("kernel_config.py") or "CALLABLE" in text:
            found["simpler"] = _seen(lambda path=root / path: loaded(path))
            stand_in()
            found["stand-in"] = _seen(lambda path=root / path: described(root, path))
    return found


def _seen(read: Callable[[], Program]) -> Seen:
    try:
        return Seen("right", result=str(read()))
    except Exception as error:
        return failure(error)


def loaded(path: Path) -> Program:
    """The program in simpler's C++ structures."""
    kernel_compiler, pto_isa, scene_test = (
        cast("Any", import_module(f"simpler_setup.{name}")) for name in ("kernel_compiler", "pto_isa", "scene_test")
    )
    kernel_compiler.KernelCompiler = _Compiler
    pto_isa.ensure_pto_isa_root = lambda: "/"
    scene_test.compile_artifact_key = scene_test.compile_incore_artifact_key = lambda *_: ""
    scene_test.get_or_compile = scene_test.get_or_compile_incore = lambda _, compiled: compiled()
    names = runpy.run_path(str(path))
    scenes = [value for value in names.values() if isinstance(value, type) and "CALLABLE" in vars(value)]
    program = scenes[0].CALLABLE if scenes else {"orchestration": names["ORCHESTRATION"], "incores": names["KERNELS"]}
    runtime = scenes[0]._st_runtime if scenes else names.get("RUNTIME_CONFIG", {}).get("runtime", "")
    made = scene_test._compile_chip_callable_from_spec(program, "a2a3sim", runtime, str(path))
    kernels = [(made.child_func_id(index), directions(made.child(index))) for index in range(made.child_count)]
    return made.func_name, directions(made), kernels


def described(root: Path, path: Path) -> Program:
    """The same program as the stand-in reads it."""
    found = description(root, path)
    kernels = [(item["func_id"], [entry.name for entry in item.get("signature", ())]) for item in found.kernels]
    return found.function, [entry.name for entry in found.signature], kernels


def directions(made: Any) -> list[str]:
    """The directions that a callable holds."""
    return [made.sig(index).name for index in range(made.sig_count)]


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    serve(in_folder(examine))

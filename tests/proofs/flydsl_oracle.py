"""What FlyDSL makes of a module of kernels: each launcher is traced, up to the linker, on a machine without a GPU.

A kernel that nothing launches is given a launcher with its parameters. Probes and levels:

- ``import``.
- ``NAME traced``: *refused* where FlyDSL raises; *wrong* where the traced program uses one of its launcher's arguments nowhere,
  such as a stream; else *right*. The result is a digest of FlyDSL's first intermediate program, without places in the source.
- ``NAME described``, where it is traced: the result is the bytes of its kernels' buffer descriptors, by the last program that
  FlyDSL makes; see :mod:`tests.proofs.flydsl_bytes`.
- ``NAME without warnings``: *refused* with what FlyDSL warns of.

Run as a module it reads workspaces (JSON, texts by path) from stdin and answers a line each; FlyDSL lies on its path.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs.flydsl_bytes import described
from tests.proofs.processes import failure, in_folder, serve
from tests.proofs.records import ask

_LINKING = ("lld", "ld.lld")
"""Words of the error with which a machine without the linker ends a trace that is complete."""

SHAPE, STRIDES = (4, 4), (4, 1)
"""Those of the tensors that are passed."""

_VALUES = {"Tensor": "torch.zeros(4, 4)", "Stream": "fx.Stream(None)", "str": "'fast'", "float": "0.5"}
"""What is passed for an annotation that holds such a word; else a number."""


def observe(folder: Path, workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, with the FlyDSL that is installed in a folder."""
    return ask("tests.proofs.flydsl_oracle", workspaces, str(folder))


def examine(root: Path, files: Mapping[str, str]) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    sys.path.insert(0, str(root))
    found: dict[str, Seen] = {}
    for path, text in files.items():
        if path.endswith(".py") and "flydsl" in text:
            added = "".join(_launchers(ast.parse(text)))
            (root / path).write_text(text + added, encoding="utf-8")
            found |= dict(_traced(root / path, text + added))
    return found


def _functions(tree: ast.Module, decorator: str) -> list[ast.FunctionDef]:
    functions = [item for item in tree.body if isinstance(item, ast.FunctionDef)]
    return [item for item in functions if any(decorator in ast.unparse(one) for one in item.decorator_list)]


def _launchers(tree: ast.Module) -> Iterator[str]:
    """Launchers of the kernels that nothing in the module calls."""
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for kernel in _functions(tree, "flyc.kernel"):
        if kernel.name not in called:
            names = ", ".join(item.arg for item in kernel.args.args)
            yield (
                f"\n\n@flyc.jit\ndef launch_{kernel.name}({ast.unparse(kernel.args)}, stream: fx.Stream = fx.Stream(None)):\n"
                f"    {kernel.name}({names}).launch(grid=(1,), block=(64,), stream=stream)\n"
            )


def _traced(path: Path, text: str) -> Iterator[tuple[str, Seen]]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        with warnings.catch_warnings(record=True) as loaded:
            warnings.simplefilter("always")
            spec.loader.exec_module(module)
    except Exception as error:
        yield "import", failure(error)
        return
    yield "import", Seen("right")
    for launcher in _functions(ast.parse(text), "flyc.jit"):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            traced, size = _trace(vars(module), launcher)
        yield f"{launcher.name} traced", traced
        if traced.level != "refused":
            yield f"{launcher.name} described", Seen("right", result=size)
        said = "; ".join(str(item.message) for item in [*loaded, *told])[:300]
        yield f"{launcher.name} without warnings", Seen("refused", said) if said else Seen("right")


def _trace(names: dict[str, Any], launcher: ast.FunctionDef) -> tuple[Seen, str]:
    """The outcome, and the bytes of the descriptors."""
    required = launcher.args.args[: len(launcher.args.args) - len(launcher.args.defaults)]
    values = ", ".join(_value(item) for item in required)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FLYDSL_DUMP_DIR"] = folder
        try:
            eval(f"{launcher.name}({values})", names)
        except Exception as error:  # whatever FlyDSL and Python refuse a program with
            if not any(word in str(error) for word in _LINKING):
                return failure(error), ""
        programs = sorted(Path(folder).rglob("*.mlir"))
        if not programs:
            return Seen("refused", "no program"), ""
        first, last = (program.read_text(encoding="utf-8") for program in (programs[0], programs[-1]))
        return _judged(first), str(described(last, SHAPE, STRIDES))


def _value(item: ast.arg) -> str:
    annotation = "" if item.annotation is None else ast.unparse(item.annotation)
    return next((value for word, value in _VALUES.items() if word in annotation), "4")


def _judged(program: str) -> Seen:
    """The level of a program that was traced."""
    program = re.sub(r" ?loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)|(?m:^#loc.*\n)", "", program)
    head = re.search(r"func\.func @\w+\((.*?)\) attributes", program)
    arguments = re.findall(r"%arg\d+", head[1]) if head else []
    body = program[head.end() :] if head else ""
    unused = [name for name in arguments if not re.search(rf"{name}\b", body)]
    result = hashlib.sha256(program.encode()).hexdigest()[:16]
    return Seen("wrong", f"the program uses {unused} nowhere", result) if unused else Seen("right", result=result)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    settings = {"ARCH": "gfx942", "COMPILE_ONLY": "1", "FLYDSL_RUNTIME_ENABLE_CACHE": "0", "FLYDSL_DUMP_IR": "1"}
    os.environ.update(settings)
    serve(in_folder(examine))

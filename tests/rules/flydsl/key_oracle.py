"""What the real FlyDSL makes of modules with factories: the cache keys of the functions that they build.

The process is one of its own (``python -m tests.rules.flydsl.key_oracle FOLDER``, FLYDSL lying in the folder). It gets, as
JSON, modules with their expressions, each of which gives ``(function under jit, what it captured)`` or a method under
``jit``, an instance and its arguments; it answers with the key and the ``repr`` of what was captured. From 0.5.0 on the key is
that of the traced program, so the function is called, with a tensor and numbers.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[3]

FOLDERS = [Path(item) for item in os.environ.get("OPSCHEMA_FLYDSL", "").split(os.pathsep) if item]
"""Where releases of FlyDSL are installed (``pip install --no-deps --target FOLDER flydsl==0.4.2 numpy``)."""

NEEDED = ("flydsl", "numpy", "torch")
"""Modules without which FlyDSL does not trace; they lie in the folder or are installed."""


def release_of(folder: Path) -> Version:
    """The release of FlyDSL that is installed in a folder."""
    (found,) = folder.glob("flydsl-*.dist-info")
    return Version(found.name.removeprefix("flydsl-").removesuffix(".dist-info"))


def _release(folder: Path) -> object:
    lacking = [name for name in NEEDED if PathFinder.find_spec(name, [str(folder), *sys.path]) is None]
    reason = f"the FlyDSL in {folder} cannot run: no module {', '.join(lacking)}"
    return pytest.param(folder, id=folder.name, marks=[pytest.mark.skip(reason=reason)] if lacking else [])


RELEASES = [_release(folder) for folder in FOLDERS] or [
    pytest.param(None, marks=pytest.mark.skip(reason="OPSCHEMA_FLYDSL names no folder with a FlyDSL"), id="none")
]

Answer = tuple[str, str]
"""A key, and what was captured."""

Module = tuple[dict[str, str], Sequence[str]]
"""Files by path, ``kit.py`` among them, and expressions for that module."""


def keys(folder: Path, modules: Sequence[Module]) -> list[list[Answer]]:
    """The keys of the functions that the expressions of each module build.

    Raises:
        subprocess.CalledProcessError: FlyDSL does not import, or a module or an expression raises.
    """
    paths = os.pathsep.join([str(folder), str(ROOT), *sys.path])
    command = [sys.executable, "-m", "tests.rules.flydsl.key_oracle"]
    settings = {"ARCH": "gfx942", "COMPILE_ONLY": "1", "FLYDSL_RUNTIME_ENABLE_CACHE": "1"}
    done = subprocess.run(
        command,
        input=json.dumps(modules),
        env={**os.environ, **settings, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [[(item[0], item[1]) for item in module] for module in json.loads(done.stdout)]


def _answers(folder: str, modules: list[Module]) -> list[list[Answer]]:
    jit_function: Any = importlib.import_module("flydsl.compiler.jit_function")
    jit_function._flydsl_key = lambda *_: "flydsl"  # the same for all, and slow
    if hasattr(jit_function, "_artifact_cache_key"):
        jit_function._artifact_cache_key = _stopping(jit_function._artifact_cache_key)
    found = []
    for number, (files, expressions) in enumerate(modules):
        root = Path(folder, str(number))
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()
        module = importlib.import_module("kit")
        found.append([_answer(jit_function, eval(item, vars(module))) for item in expressions])
        sys.path.remove(str(root))
        own = {path.partition("/")[0].removesuffix(".py") for path in files}
        for name in [name for name in sys.modules if name.partition(".")[0] in own]:
            del sys.modules[name]
    return found


class _TracedError(Exception):
    """A call is traced; its text is the key of the program."""


def _stopping(find: Any) -> Any:
    def stop(*arguments: Any, **options: Any) -> None:
        raise _TracedError(find(*arguments, **options))

    return stop


def _traced_key(function: Any, arguments: Sequence[object]) -> str:
    try:
        function(*arguments)
    except _TracedError as found:
        return str(found)
    raise AssertionError("the call is not traced")


def _arguments(function: Any) -> list[object]:
    """A tensor for a parameter ``A``, a number for another."""
    torch: Any = importlib.import_module("torch")
    return [torch.zeros(4) if name == "A" else 1 for name in inspect.signature(function).parameters]


def _answer(jit_function: Any, built: tuple[Any, ...]) -> Answer:
    if hasattr(jit_function, "_artifact_cache_key"):
        if len(built) == 2:
            return _traced_key(built[0], _arguments(built[0].func)), repr(built[1])
        return _traced_key(built[0], [built[1], *built[2]]), ""
    if len(built) == 2:
        function, captured = built
        return jit_function._jit_function_cache_key(function.func), repr(captured)
    method, instance, arguments = built
    method._ensure_sig()
    bound = method._sig.bind(*arguments)
    bound.apply_defaults()
    key = jit_function._jit_function_cache_key(method.func, owner_cls=type(instance))
    if hasattr(method, "_build_full_cache_key"):
        return key + str(
            method._build_full_cache_key(bound.arguments, owner_cls=type(instance), bound_self=instance)
        ), ""
    return key + str(method._make_cache_key(bound.arguments)), ""


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kit:
        sys.stdout.write(json.dumps(_answers(kit, json.loads(sys.stdin.read()))))

"""Runs modules of kernels without FlyDSL: what is launched on which grid, and by how many bytes tensors are described."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

Log = list[tuple[Any, ...]]


def run(files: dict[str, str], main: str) -> Log:
    """The result of importing the module ``main`` (dotted) of some files."""
    log: Log = []
    with _flydsl(log), _modules(files):
        __import__(main)
    return log


class _Finder(MetaPathFinder, Loader):
    """Finds and runs modules that are given as texts."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def _path(self, name: str) -> str:
        stem = name.replace(".", "/")
        return next((path for path in (f"{stem}/__init__.py", f"{stem}.py") if path in self.files), "")

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        found = self._path(name)
        return ModuleSpec(name, self, is_package=found.endswith("__init__.py")) if found else None

    def exec_module(self, module: ModuleType) -> None:
        path = self._path(module.__name__)
        exec(compile(self.files[path], path, "exec"), module.__dict__)


@contextmanager
def _modules(files: dict[str, str]) -> Iterator[None]:
    """The files as modules."""
    finder = _Finder(files)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        tops = {path.partition("/")[0].removesuffix(".py") for path in files}
        for name in [item for item in sys.modules if item.partition(".")[0] in tops]:
            del sys.modules[name]


@contextmanager
def _flydsl(log: Log) -> Iterator[None]:
    """A FlyDSL that runs kernels in Python."""

    def kernel(function: Any = None, **options: Any) -> Any:
        if function is None:
            return kernel

        def call(*args: Any, **kwargs: Any) -> SimpleNamespace:
            def launch(**given: Any) -> None:
                log.append((function.__name__, given))
                function(*args, **kwargs)

            return SimpleNamespace(launch=launch)

        return call

    def describe(tensor: Any, max_size: bool = True, *, num_records_bytes: Any = None) -> Any:
        log.append(("bytes", tensor, num_records_bytes))
        return tensor

    names: dict[str, type] = {
        name: type(name, (), {}) for name in ("Tensor", "Int32", "Stream", "Constexpr", "TiledMma")
    }
    names["Int64"] = int
    compiler = _module(
        "flydsl.compiler", kernel=kernel, jit=lambda function: function, from_dlpack=lambda tensor: tensor
    )
    rocdl = _module("flydsl.expr.rocdl", make_buffer_tensor=describe)
    expr = _module("flydsl.expr", rocdl=rocdl, thread_idx=SimpleNamespace(x=0), **names)
    modules = {
        "flydsl": _module("flydsl", compiler=compiler, expr=expr),
        "flydsl.compiler": compiler,
        "flydsl.expr": expr,
    }
    modules["torch"] = _module("torch")
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def _module(name: str, **given: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(given)
    return module

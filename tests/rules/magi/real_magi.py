"""MagiCompiler's own decorator, from a checkout, with torch's registration replaced by a record of what it is given.

Only the module of the decorator is imported; what it needs of its package is stubbed.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MODULE = "magi_compiler._magi_register_custom_op"


@dataclass
class Registered:
    """The result for one function: the error, or the arguments for torch."""

    function: Callable[..., object]
    op_name: str = ""
    error: Exception | None = None
    lowered: inspect.Signature | None = None
    path: str = ""
    tree: list[Any] | None = None
    mutates: tuple[str, ...] = ()


@contextmanager
def recording(checkout: Path) -> Iterator[list[Registered]]:
    """``magi_compiler.api.magi_register_custom_op`` can be imported, and files here what it does; it never raises."""
    records: list[Registered] = []
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "magi_compiler"}
    try:
        real = _import_decorator(checkout)
        _install("magi_compiler.api", magi_register_custom_op=_recorder(real, records))
        yield records
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "magi_compiler"]:
            del sys.modules[name]
        sys.modules.update(before)


def _recorder(real: ModuleType, records: list[Registered]) -> Callable[..., Any]:
    def magi_register_custom_op(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        def decorate(function: Callable[..., object]) -> object:
            record = Registered(function)
            records.append(record)

            def register(op_name: str, fn: Callable[..., object], mutates_args: Any, *_: Any, **given: Any) -> object:
                adapter = (*_, None, None, None, None)[3] or given.get("dataclass_runtime_adapter")
                record.op_name, record.lowered = op_name, inspect.signature(fn)
                record.path = "flatten" if adapter else "simple" if fn is function else "signature"
                record.mutates = adapter.expand_mutates_args(mutates_args) if adapter else tuple(mutates_args)
                return SimpleNamespace()

            real._register_torch_op = register  # type: ignore[attr-defined]
            try:
                op = real._magi_register_custom_op_impl(*args, **kwargs)(function)
                record.tree = getattr(op, "_magi_param_mapping_tree", None)
            except Exception as error:
                record.error = error
            return function

        return decorate

    return magi_register_custom_op


def _import_decorator(checkout: Path) -> ModuleType:
    _install("magi_compiler", __path__=[])
    config = SimpleNamespace(recompute_config=SimpleNamespace(custom_compute_sensitive_ops=[]), splitting_ops=[])
    _install("magi_compiler.config", get_compile_config=lambda: config)
    _install("magi_compiler.utils", __path__=[])
    logger = logging.getLogger("magi")
    _install("magi_compiler.utils.logger", magi_logger=SimpleNamespace(debug=lambda *args, **_: logger.debug(*args)))
    spec = importlib.util.spec_from_file_location(MODULE, checkout / f"{MODULE.replace('.', '/')}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def _install(name: str, **content: object) -> None:
    module = ModuleType(name)
    vars(module).update(content)
    sys.modules[name] = module

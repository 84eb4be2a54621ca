"""Executes modules that pass specs to entries, with stand-ins for PyPTO's language and the golden harness.

The probe ``ENTRY PARAMETER`` is *wrong* where the host does not get what an output's spec asks for, as the parameter is not copied
back, or where the kernel does not get an initial value, as the parameter is not copied to the device. The result is the type.
"""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from opschema_cli.proof import Seen
from tests.proofs.processes import failure

_STAGED, _RETURNED = ("Tensor", "InOut"), ("Out", "InOut")


class _Annotation:
    """`pl.Tensor`, `pl.Out` or `pl.InOut`, and what stands in its brackets."""

    def __init__(self, word: str, inner: Any = None) -> None:
        self.word, self.inner = word, inner

    def __getitem__(self, inner: Any) -> _Annotation:
        return _Annotation(self.word, inner)

    def tensor(self) -> str:
        """The type, whatever its direction."""
        return self.inner.tensor() if isinstance(self.inner, _Annotation) else str(self.inner)


class _Spec:
    def __init__(self, name: str, shape: Any, dtype: Any, init_value: Any = None, is_output: bool = False) -> None:
        self.name, self.init_value, self.is_output = name, init_value, is_output


def entries(path: Path) -> Iterator[tuple[str, Seen]]:
    """The outcomes of the entries that a module runs."""
    found: dict[str, Seen] = {}

    def run_jit(*, fn: Callable[..., Any], specs: list[_Spec], **_: Any) -> None:
        parameters = inspect.signature(fn).parameters.values()
        found.update(
            (f" {fn.__name__} {parameter.name}", _seen(parameter.annotation, spec))
            for parameter, spec in zip(parameters, specs, strict=True)
        )

    language = MagicMock(name="pl", FP32="FP32", jit=lambda function: function)
    for word in ("Tensor", "Out", "InOut"):
        setattr(language, word, _Annotation(word))
    golden = ModuleType("golden")
    vars(golden).update(TensorSpec=_Spec, run_jit=run_jit)
    pypto = MagicMock(language=language)
    sys.modules.update({"pypto": pypto, "pypto.language": language, "golden": golden, "torch": MagicMock()})
    try:
        runpy.run_path(str(path))
    except Exception as error:
        found[""] = failure(error)
    yield from found.items()


def _seen(annotation: _Annotation, spec: _Spec) -> Seen:
    if spec.is_output and annotation.word not in _RETURNED:
        return Seen("wrong", "the output is not copied back")
    if spec.init_value is not None and annotation.word not in _STAGED:
        return Seen("wrong", "the initial value is not copied to the device")
    return Seen("right", result=annotation.tensor())

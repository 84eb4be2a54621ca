"""Executes descriptions of programs, `kernel_config.py` or a scene test with a `CALLABLE`, with stand-ins for simpler's modules."""

from __future__ import annotations

import enum
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import msgspec


class ArgDirection(enum.IntEnum):
    """The directions of simpler's `arg_direction.h`."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


class Description(msgspec.Struct, frozen=True):
    """A program: its kernels, orchestration and settings; ``settings`` has each that a case runs with."""

    kernels: Sequence[Mapping[str, Any]]
    source: str
    function: str
    signature: Sequence[ArgDirection]
    settings: Sequence[Mapping[str, Any]]

    def said(self) -> str:
        """All of it but names, signatures and the function."""
        kernels = [
            {key: value for key, value in sorted(item.items()) if key not in ("name", "signature", "arg_index")}
            for item in self.kernels
        ]
        return f"{kernels} {self.source} {self.settings}"

    def claims(self, kernels: Sequence[int]) -> list[tuple[int, ArgDirection]]:
        """The entries that speak for a task of some kernels, each with the number of its tensor: those that `arg_index` names or,
        where there is no such field, those of the longest signatures.
        """
        mine = [item for item in self.kernels if item["func_id"] in kernels]
        if any("arg_index" in item for item in mine):
            pairs = (zip(item.get("arg_index", ()), item.get("signature", ()), strict=True) for item in mine)
            return [pair for found in pairs for pair in found]
        lists = [item.get("signature", ()) for item in mine]
        most = max(map(len, lists), default=0)
        return [pair for item in lists if len(item) == most for pair in enumerate(item)]


def stand_in() -> None:
    """Let what descriptions import be found."""

    def scene_test(**options: Any) -> Any:
        def mark(scene: Any) -> Any:
            scene.options = options
            return scene

        return mark

    interface = _module("simpler.task_interface", ArgDirection=ArgDirection)
    names = {name: MagicMock() for name in ("Scalar", "TaskArgsBuilder", "TensorArg", "Tensor")}
    setup = _module("simpler_setup", scene_test=scene_test, SceneTestCase=type("SceneTestCase", (), {}), **names)
    modules = [_module("simpler"), interface, setup, _module("torch", Tensor=MagicMock)]
    sys.modules.update((module.__name__, module) for module in modules)


def _module(name: str, **given: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(given)
    return module


def description(root: Path, path: Path) -> Description:
    """The description in a file, with paths below the root."""
    names = runpy.run_path(str(path))
    scenes: list[Any] = [value for value in names.values() if isinstance(value, type) and "CALLABLE" in vars(value)]
    if not scenes:
        return _description(root, path, names["ORCHESTRATION"], names["KERNELS"], [names.get("RUNTIME_CONFIG", {})])
    (scene,) = scenes
    settings = [{"runtime": scene.options["runtime"], **case["config"]} for case in scene.CASES]
    once = [item for number, item in enumerate(settings) if item not in settings[:number]]
    return _description(root, path, scene.CALLABLE["orchestration"], scene.CALLABLE["incores"], once)


def _description(
    root: Path, path: Path, main: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], settings: list[Any]
) -> Description:
    def placed(source: str) -> str:
        target = (path.parent / source).resolve()
        return str(target.relative_to(root.resolve())) if target.is_relative_to(root.resolve()) else source

    sources = [{**item, "source": placed(item["source"])} if "source" in item else item for item in kernels]
    signature = main.get("signature", ())
    return Description(sources, placed(main["source"]), main["function_name"], signature, settings)

"""CMake functions whose calls may affect targets and variables; most functions print, check or search, and are not run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from opschema_cli.source.cmake.scopes import Function
from opschema_cli.source.cmake.syntax import Command

MAKES_TARGET = re.compile(r"(?:\w+_)?add_library|\w+_add_module|target_sources")
MAKES_EXTENSION = re.compile(r"define_(?:gpu_|cpu_)?extension_target|torch_extension")
DEFINES = frozenset({"target_compile_definitions", "target_compile_options", "set_target_properties"})
DEFINES_ALL = frozenset({"add_compile_definitions", "add_definitions", "add_compile_options"})

_LEADS_ON = frozenset({"include", "add_subdirectory", "function", "macro", "cmake_language"})
_SETS = frozenset({"set", "list", "string", "file", "unset", "cmake_parse_arguments", "get_filename_component"})


class Effects:
    """The possible effects of calling the functions of a tree."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self._known: dict[int, tuple[Function, bool]] = {}

    def of(self, function: Function, others: Mapping[str, Function]) -> bool:
        """Whether a call may make or change a target, or set a variable of its caller."""
        known = self._known.get(id(function))
        if known is None:
            known = self._known[id(function)] = (function, self._matters(function, others))
        return known[1]

    def makes_targets(self, commands: Iterable[Command]) -> bool:
        """Whether some commands may make or change a target."""
        return any(
            _makes(command) or (command.name in self.functions and self.of(self.functions[command.name], {}))
            for command in _flat(commands)
        )

    def _matters(self, function: Function, others: Mapping[str, Function]) -> bool:
        seen: set[int] = set()
        waiting = [(function, True)]
        while waiting:
            called, is_direct = waiting.pop()
            if id(called) in seen:
                continue
            seen.add(id(called))
            for command in _flat(called.body):
                inner = others.get(command.name) or self.functions.get(command.name)
                if inner is not None:
                    waiting.append((inner, is_direct and called.is_macro and inner.is_macro))
                elif _reaches_out(command) or (is_direct and called.is_macro and command.name in _SETS):
                    return True
        return False


def _makes(command: Command) -> bool:
    name = command.name
    makes = MAKES_TARGET.fullmatch(name) or MAKES_EXTENSION.fullmatch(name) or name in DEFINES or name in DEFINES_ALL
    return bool(makes)


def _reaches_out(command: Command) -> bool:
    return _makes(command) or command.name in _LEADS_ON or "PARENT_SCOPE" in command.words


def _flat(commands: Iterable[Command]) -> Iterator[Command]:
    waiting = list(commands)
    while waiting:
        command = waiting.pop()
        yield command
        if command.name == "foreach":
            waiting += command.body

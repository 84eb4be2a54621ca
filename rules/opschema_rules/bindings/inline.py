"""Modules that ``load_inline`` of ``torch.utils.cpp_extension`` makes of C++ in strings, whose arguments have no names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.cpp_missing import MissingFunction
from opschema_cli.cpp_units import DECLARATIONS, Declared
from opschema_cli.project import Project
from opschema_cli.source.cpp_blocks import inside
from opschema_cli.source.cpp_functions import CppDeclarations
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.resolution import Unresolved
from opschema_cli.source.text import Span
from opschema_cli.suggestions import nearest
from opschema_rules.bindings.definitions import Lost, function_use
from opschema_rules.bindings.detection import python_marks
from opschema_rules.bindings.facts import Step
from opschema_rules.bindings.model import Binding, Module
from opschema_rules.bindings.modules import written_in_strings
from opschema_rules.torchlib.cpp_signature import signature_of


class Inline:
    """The modules of a tree that are made from strings, by the place of the call, and listed functions that their C++ lacks.

    ``written`` are those that the C++ opens itself.
    """

    def __init__(self, project: Project) -> None:
        self.modules: dict[tuple[str, int], Module] = {}
        self.lost: list[Lost] = []
        paths = [path for path, marks in python_marks(project) if marks.inline]
        read = project.cpp_readings(DECLARATIONS, paths)
        self.written = written_in_strings(project, paths)
        for path in paths:
            file = project.python(path)
            for call in _calls(file) if file is not None else ():
                module = _module(path, call, read.get(path))
                if module is not None:
                    self.modules[path, call.start] = module
                    self.lost += (
                        _lost(module, read[path], file.source.text) if path in read and file is not None else ()
                    )
                elif file is not None and call.keyword("functions") is None:
                    spans = [call.span, *_strings(file, call)]
                    opened = [item for item in self.written if item.path == path and inside(item.span, spans)]
                    if len(opened) == 1:
                        self.modules[path, call.start] = opened[0]


def _strings(file: PythonFile, call: Expr) -> Iterator[Span]:
    """The strings that a call is passed by names that are assigned once."""
    values = [part for item in call.items[1:] for part in (item.elements or (item,))]
    assigns = [item for scope in file.body.walk() for item in scope.assigns]
    for name in (item.text for item in values if item.kind == "name"):
        own = [item.value for item in assigns if item.target == name]
        yield from (item.span for item in own if len(own) == 1 and item is not None and item.kind == "const")


def _calls(file: PythonFile) -> Iterator[Expr]:
    for scope in file.body.walk():
        yield from (call for call in scope.calls if call.items[0].member == "load_inline")


def _module(path: str, call: Expr, read: CppDeclarations | None) -> Module | None:
    functions, name = call.keyword("functions"), call.keyword("name") or next(iter(call.positional()), None)
    listed = functions.elements if functions is not None and functions.kind == "list" else (functions,)
    items = [item for item in listed or () if item is not None and isinstance(item.value, str)]
    if not items or len(items) != len(listed or ()):
        return None
    shown = name.value if name is not None and isinstance(name.value, str) else "load_inline"
    module = Module(path, call.items[0].span, str(shown), "pybind11", "", None, "", title=str(shown))
    for item in items:
        step = Step("def", "", item.span, str(item.value), str(item.value), item.span)
        binding = Binding(module, path, step)
        found = [one for one in (read.functions if read is not None else ()) if one.name == step.name]
        if len({tuple(one.type for one in item.parameters) for item in found}) == 1 and not found[0].unsure:
            binding.found = (signature_of(Declared(path, found[0])),)
        else:
            binding.found = Unresolved(f"`{step.name}` is not found in the C++ of this file")
        module.bindings.append(binding)
    return module


def _lost(module: Module, read: CppDeclarations, text: str) -> Iterator[Lost]:
    """The listed functions that the C++ of the file does not have, if it has another one; a macro may make them of their names."""
    known = {item.name for item in read.functions}
    if read.loose or not any(item.name in known for item in module.bindings):
        return
    words = {word for macro in read.macros for word in (macro.name, *macro.body.split())}
    calls = re.compile(rf"\b(?:{'|'.join(macro.name for macro in read.macros)})\s*\(\s*(\w+)") if read.macros else None
    words.update(calls.findall(text) if calls is not None else ())
    for binding in module.bindings:
        if binding.name not in known and not any(binding.name in word for word in words):
            near = nearest(binding.name, known)
            yield Lost(binding, MissingFunction(function_use(binding), near=near))

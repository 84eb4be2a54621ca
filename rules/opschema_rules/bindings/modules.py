"""Joins the bindings of files to modules: functions that get a module, macros, and the names under which Python imports them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from opschema_cli.cpp_units import CppUnits
from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.source.cpp_namespaces import is_within, may_mean
from opschema_cli.source.expansion import ExpansionError, expand
from opschema_cli.source.preprocessor import exclusive, is_dead
from opschema_rules.bindings.detection import ROLES, BindingsOptions, declares_tensors, python_marks
from opschema_rules.bindings.facts import BindingFacts, Block, Step
from opschema_rules.bindings.model import Alias, Binding, Module
from opschema_rules.bindings.reader import FACTS, read_bindings
from opschema_rules.torchlib.cpp_build import EXTENSION_NAME
from opschema_rules.torchlib.extension_names import ExtensionNames

_LAST_WORD = re.compile(r"(\w+)\s*\Z")

_MAKES_NAMES = frozenset({"__class__", "__dict__", "__getattr__"})
"""Names in a module through which it may get any others."""

MAX_DEPTH = 20
"""Maximum length of a chain of functions that pass a module on."""


def read_modules(project: Project, options: BindingsOptions) -> list[Module]:
    """The modules of all files that bind functions of tensors, or call functions of a file that does, or include a header that
    declares some.
    """
    roles = dict(project.scan(ROLES, filter(is_cpp, project.workspace.files)))
    facts = project.cpp_readings(FACTS, [path for path, role in roles.items() if role])
    return list(_Join(project, options, facts).modules())


def written_in_strings(project: Project, paths: Iterable[str]) -> list[Module]:
    """The modules of C++ in strings of Python files."""
    return list(_Join(project, BindingsOptions(), project.cpp_readings(FACTS, paths)).modules())


class _Frame(msgspec.Struct):
    """A block whose steps are followed: the modules of its variables, and the call of a macro that makes the steps, if one does."""

    module: Module
    path: str
    block: Block
    receivers: dict[str, Module]
    depth: int
    at: Step | None = None


class _Join:
    def __init__(self, project: Project, options: BindingsOptions, facts: Mapping[str, BindingFacts]) -> None:
        self.project = project
        self.facts = facts
        self.units = CppUnits(project)
        loaders = [path for path, marks in python_marks(project) if marks.extension and marks.loads]
        self.extensions = ExtensionNames(project, options.modules, loaders)
        self.filled: set[tuple[int, int]] = set()
        self.helpers: dict[str, list[tuple[str, Block]]] = {}
        for path, item in facts.items():
            for block in item.blocks:
                if not block.is_module and not is_dead(block.conditions):
                    self.helpers.setdefault(block.name, []).append((path, block))

    def modules(self) -> Iterator[Module]:
        found = []
        for path, item in self.facts.items():
            for block in item.blocks:
                if block.is_module:
                    written = self._written(path, block)
                    module = Module(path, block.span, written, block.library, self.extensions.of(path, written))
                    module.of_tensors, module.name_span = item.torch, block.name_span
                    module.built_as = self.extensions.built_as(path, written)
                    self._fill(module, path, block, 0)
                    module.of_tensors |= any(self.facts[binding.path].torch for binding in module.bindings)
                    functions = {word for binding in module.bindings for word in _LAST_WORD.findall(binding.step.value)}
                    module.of_tensors = module.of_tensors or declares_tensors(self.units, path, functions)
                    found.append(module)
        names = dict(self.extensions.by_exclusion({item.path: item.name for item in found if is_cpp(item.path)}))
        changed = {name for item in self.facts.values() for name in item.imported}
        for module in found:
            module.name = module.name or names.get(module.path, "")
            for one in module.all() if (module.name or module.written).rpartition(".")[2] in changed else ():
                one.open()
        named = {module.name for module in found if module.of_tensors and module.name}
        yield from (module for module in found if module.of_tensors or module.name in named)  # builds of one module

    # Contents

    def _fill(self, module: Module, path: str, block: Block, depth: int) -> None:
        if block.broken:
            module.open()
        self._run(_Frame(module, path, block, {block.variable: module}, depth), block.steps)

    def _run(self, frame: _Frame, steps: Iterable[Step]) -> None:
        for step in steps:
            target = frame.receivers.get(step.receiver)
            if target is not None and not is_dead(step.conditions):
                self._step(frame, target, step if frame.at is None else _moved(step, frame.at))

    def _step(self, frame: _Frame, target: Module, step: Step) -> None:
        if step.name in _MAKES_NAMES:
            target.open()
        match step.kind:
            case "def":
                target.bindings.append(Binding(target, frame.path, step, frame.block, frame.at is None))
            case "alias":
                self._alias(target, frame.receivers.get(step.source), frame.path, step)
            case "name":
                target.names.add(step.name)
            case "submodule":
                frame.receivers[step.value] = _submodule(target, frame.path, step)
            case "call":
                self._pass_on(frame, target, step)
            case "macro":
                self._expand(frame, step)
            case _:
                target.open()

    def _alias(self, target: Module, source: Module | None, path: str, step: Step) -> None:
        if source is not target:
            target.names.add(step.name)
            return
        earlier = frozenset({item.name for item in target.bindings} | target.names | set(target.submodules))
        earlier |= {item.name for item in target.aliases}
        target.aliases.append(Alias(target, path, step, earlier if target.closed else None))

    def _pass_on(self, frame: _Frame, target: Module, step: Step) -> None:
        """Follow a function that gets a module; if there are several of its name, those that may be meant."""
        qualifier, _, name = re.sub(r"\s+|^::", "", step.value).rpartition("::")
        known = [
            (file, item)
            for file, item in self.helpers.get(name, ())
            if _may_be(item.namespace, qualifier, frame.block.namespace)
            and not exclusive(item.conditions, step.conditions)
        ]
        if len({item.namespace for _, item in known}) != 1 or frame.depth > MAX_DEPTH:
            target.open()
            return
        if len(known) > 1:  # which of them is part of the build is not known
            target.open()
        for file, item in known:
            if (id(target), id(item)) not in self.filled:  # functions may call each other
                self.filled.add((id(target), id(item)))
                self._fill(target, file, item, frame.depth + 1)
        if step.kept and any(item.gives_module for _, item in known):
            for module in target.all():
                module.open()

    def _expand(self, frame: _Frame, step: Step) -> None:
        """The steps of a call of a macro."""
        module, receivers = frame.module, frame.receivers
        macros = {name: item for name, item in self.units.macros(frame.path).items() if name not in receivers}
        try:
            text = expand(step.value, macros)
        except ExpansionError:
            text = step.value
        if receivers.keys().isdisjoint(_WORD.findall(text)):
            if _UNKNOWN.search(text):
                module.open()
            return
        found = self._steps_of(text, step.receiver)
        if found is None or any(item.kind == "macro" for item in found) or frame.depth > MAX_DEPTH:
            module.open()
            return
        self._run(_Frame(module, frame.path, frame.block, receivers, frame.depth + 1, step), found)

    def _steps_of(self, text: str, variable: str) -> tuple[Step, ...] | None:
        # Not at the top: few trees bind in macros.
        from opschema_cli.source.cpp import CppError, parse_cpp

        try:
            facts = read_bindings(parse_cpp(f"PYBIND11_MODULE(x, {variable}) {{ {text}; }}"))
        except CppError:
            return None
        return facts.blocks[0].steps if len(facts.blocks) == 1 and not facts.blocks[0].broken else None

    def _written(self, path: str, block: Block) -> str:
        """Return the name argument of a module's macro, which may be a macro as well; an unknown one is the build's."""
        if block.name == EXTENSION_NAME:
            return EXTENSION_NAME
        macro = self.units.macros(path).get(block.name) or self.extensions.build.macros(path).get(block.name)
        if macro is not None:
            return macro.body.strip()
        return EXTENSION_NAME if _CAPITALS.fullmatch(block.name) else block.name


_WORD = re.compile(r"[A-Za-z_]\w*")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_UNKNOWN = re.compile(r"\A\s*[A-Z][A-Z0-9_]{2,}\b|\b[A-Z][A-Z0-9_]{2,}\s*\(")
"""A macro that is called, or is alone, after the known ones were expanded."""


def _submodule(module: Module, path: str, step: Step) -> Module:
    if step.name not in module.submodules:
        inner = Module(path, step.span, step.name, module.library, "", module, step.name, of_tensors=module.of_tensors)
        module.submodules[step.name] = inner
    return module.submodules[step.name]


def _moved(step: Step, at: Step) -> Step:
    """A step that a macro makes, at the place of the macro's call."""
    return replace(
        step, span=at.span, value_span=at.span, conditions=(*at.conditions, *step.conditions), branch=at.branch
    )


def _may_be(namespace: str, qualifier: str, around: str) -> bool:
    """Whether a function of a namespace may be called by a qualified name in another namespace."""
    return may_mean(qualifier, namespace) if qualifier else is_within(around, namespace)

"""Extension modules as Python sees them: the names by which code reaches them, and what these mean.

Each module whose dotted name is known is put among the modules of the tree, so that imports and re-exports are followed as
those of Python are. Others are reached through :func:`torch.utils.cpp_extension.load`, and through classes that build them.
"""

from __future__ import annotations

import keyword
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

import msgspec

from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.import_text import import_statements
from opschema_cli.source.program import FunctionRef, Missing, ModuleRef, Program, Resolution, ValueRef
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Source
from opschema_rules.bindings.model import Binding, Module

MAX_HOPS = 10
"""Longest chain of assigned names that is followed."""


class Target(msgspec.Struct, frozen=True):
    """What a dotted name means: modules, each another build of the same one; and a ``name`` in them, empty for the modules."""

    modules: tuple[Module, ...]
    name: str = ""

    @property
    def bindings(self) -> list[Binding]:
        """The bindings of the name, in all builds."""
        return [item for module in self.modules for item in module.by_name.get(self.name, ())]

    def member(self, name: str) -> Target | None:
        """What a name in the modules means; None in a function."""
        if self.name:
            return None
        inner = tuple(module.submodules[name] for module in self.modules if name in module.submodules)
        return Target(inner) if inner else Target(self.modules, name)


class Extensions:
    """The extension modules of a tree, and the Python files that use them."""

    def __init__(self, project: Project, modules: Iterable[Module], inline: Mapping[tuple[str, int], Module]) -> None:
        self.project = project
        self.modules = list(modules)
        self.inline = inline
        files = project.workspace.files
        plain = Program(files, project.python)
        self.by_path: dict[str, list[Module]] = {}
        for module in self.modules:
            path = _path_of(project, plain, module) if module.name else ""
            for one, item in _paths(path, module) if path else ():
                self.by_path.setdefault(one, []).append(item)
        self._synthetic = {path: _parsed(path, items) for path, items in self.by_path.items()}
        self.program = Program([*files, *self._synthetic], self._load)
        self.bodies = Bodies(self.program, self.paths)
        self._meant: dict[tuple[int, str], Target | None] = {}

    def _load(self, path: str) -> PythonFile | None:
        return self._synthetic.get(path) or self.project.python(path)

    @cached_property
    def paths(self) -> list[str]:
        """The Python files that may use one of the modules."""
        own = [path for path in self.project.workspace.files if path.endswith(".py")]
        names = {item.name.rpartition(".")[2] for item in self.modules if item.name}
        mentions = self.project.readings(_MENTIONS, own)
        found = dict.fromkeys(_mentioning(mentions, names))
        # Those that import them may pass their names on.
        again = (
            posixpath.dirname(path) if path.endswith("/__init__.py") else path.removesuffix(".py") for path in found
        )
        found.update(dict.fromkeys(_mentioning(mentions, {posixpath.basename(item) for item in again})))
        words = [name.encode() for name in (*names, *self.builders)]
        for path in own:
            data = self.project.workspace.peek(path)
            late = _holds(data, (b"import_module", b"__import__", b"load(")) and _holds(data, words)
            if late or b"cpp_extension" in data:
                found[path] = None
        return [path for path in found if not path.endswith("setup.py")]

    @cached_property
    def builders(self) -> dict[str, tuple[Module, ...] | None]:
        """Classes with a method ``sources`` that returns the C++ files of modules, by name; None where those are not known."""
        found: dict[str, tuple[Module, ...] | None] = {}
        peek = self.project.workspace.peek
        for path in self.project.workspace.files:
            data = peek(path) if path.endswith(".py") else b""
            file = self.project.python(path) if b"def sources(" in data else None
            for cls in file.body.classes if file is not None else ():
                method = cls.body.function("sources")
                if method is None:
                    continue
                texts = [text for value in method.peek_body().returns for text in _strings(value)]
                named = tuple(item for item in self.modules if any(_is_source(item, text) for text in texts))
                earlier = found.get(cls.name, ())
                found[cls.name] = (*earlier, *named) if named and earlier is not None else None
        return found

    # Names

    def meaning(self, body: Body, dotted: str, hops: int = MAX_HOPS) -> Target | None:
        """What a dotted name means inside a body; None if that is no part of an extension module, or not known."""
        first, _, rest = dotted.partition(".")
        if first == body.this and body.owner is not None and rest:
            attribute, _, rest = rest.partition(".")
            found = self._attribute(body, f"{first}.{attribute}", hops)
        else:
            found = self._first(body, first, hops)
        full = found if isinstance(found, str) else None
        if full is not None:
            return self.full_meaning(".".join(filter(None, (full, rest))))
        target = found if isinstance(found, Target) else None
        for name in filter(None, rest.split(".")):
            target = target.member(name) if target is not None else None
        return target

    def _first(self, body: Body, name: str, hops: int) -> Target | str | None:
        """The module or full dotted name that a name stands for; None if it is bound to anything else as well."""
        binder = body.binder(name) if name not in body.file.rebound else None
        scopes = [(binder or self.bodies.module(body.file))]
        if name in body.file.rebound:
            scopes += [item for item in self.bodies.of(body.file) if name in item.scope.deleted]
        elif binder is not None and any(item.name == name for item in binder.params):
            return None
        found: list[Target | str | None] = []
        for scope in scopes:
            named = scope.scope.named.get(name, ())
            imports = [item for item in scope.scope.imports if item.name == name]
            found += [self.program.imported_name(body.file, item) for item in imports]
            assigned = [item for item in scope.scope.assigns if item.target == name]
            found += self._values(scope, [item.value for item in assigned], hops)
            if len(named) > len(imports) + len(assigned):
                return None
        return _same(found)

    def _attribute(self, body: Body, dotted: str, hops: int) -> Target | str | None:
        """What ``self.x`` stands for, if every method of the class that assigns it agrees."""
        owner = body.owner
        cls = self.bodies.cls(owner) if owner is not None else None
        methods = self.bodies.inside(cls) if cls is not None else ()
        found: list[Target | str | None] = []
        for item in methods:
            values = [one.value for one in item.scope.assigns if one.target == dotted]
            found += self._values(item, values, hops)
        return _same(found)

    def _values(self, body: Body, values: Iterable[Expr | None], hops: int) -> Iterator[Target | str | None]:
        for value in values:
            if value is None:
                yield None
            elif value.kind != "const" or value.value is not None:
                yield self._value(body, value, hops - 1) if hops else None

    def _value(self, body: Body, value: Expr, hops: int) -> Target | str | None:
        """The module that an expression gives."""
        if value.kind == "name":
            return self.meaning(body, value.text, hops)
        if value.kind != "call" or not value.items:
            return None
        called = value.items[0]
        last, given = called.member, value.positional()
        if last in ("import_module", "__import__") and given and isinstance(given[0].value, str):
            return given[0].value
        if last == "load_inline":
            made = self.inline.get((body.file.path, value.start))
            return Target((made,)) if made is not None else None
        if last != "load":
            return None
        owner = called.owner
        if owner is not None and owner.kind == "name" and owner.text:
            values = [item.value for item in body.scope.assigns if item.target == owner.text]
            owner = values[0] if len(values) == 1 else owner
        if owner is not None and owner.kind == "call":
            built = self.builders.get(owner.items[0].member)
            return Target(built) if built else None
        sources = value.keyword("sources") or (given[1] if len(given) > 1 else None)
        texts = list(_strings(sources)) if sources is not None else []
        named = tuple(item for item in self.modules if any(_is_source(item, text) for text in texts))
        return Target(named) if len(named) == 1 else None

    def full_meaning(self, dotted: str) -> Target | None:
        """The part of an extension module that a full dotted name means."""
        parts = dotted.split(".")
        for count in range(len(parts), 0, -1):
            path = self.program.module_path(".".join(parts[:count]))
            if path is None:
                continue
            rest = parts[count:]
            target = Target(tuple(self.by_path[path])) if path in self.by_path else None
            if target is None and rest:
                target = self._resolved(self.program.module_member(path, rest.pop(0)))
            for name in rest:
                target = target.member(name) if target is not None else None
            return target
        return None

    def _resolved(self, found: Resolution) -> Target | None:
        if isinstance(found, ModuleRef) and found.path in self.by_path:
            return Target(tuple(self.by_path[found.path]))
        if isinstance(found, Missing) and found.module in self.by_path:
            return Target(tuple(self.by_path[found.module]), found.name)
        if isinstance(found, FunctionRef) and found.file.path in self.by_path:
            return Target(tuple(self.by_path[found.file.path]), found.function.name)
        if isinstance(found, ValueRef):
            body = self.bodies.module(found.file)
            value = found.assign.value
            return self.meaning(body, value.text) if value is not None and value.kind == "name" else None
        return None

    def imported(self, body: Body) -> Iterator[tuple[Target, Expr]]:
        """The names of modules that a body imports from them (``from _C import f``)."""
        for item in body.scope.imports:
            full = self.program.imported_name(body.file, item) if item.attr and item.attr != "*" else None
            target = self.full_meaning(full) if full is not None else None
            if target is not None and target.name:
                yield target, Expr("name", item.start, item.end, item.attr)


def _same(found: Iterable[Target | str | None]) -> Target | str | None:
    """The only one of some meanings; None if one is not known, or two differ."""
    different = []
    for item in found:
        if item not in different:
            different.append(item)
    return different[0] if len(different) == 1 else None


def _strings(value: Expr) -> Iterator[str]:
    return (item.value for item in value.walk() if item.kind == "const" and isinstance(item.value, str))


def _is_source(module: Module, text: str) -> bool:
    plain = posixpath.normpath(text).lstrip("./")
    return "." in plain and f"/{module.path}".endswith(f"/{plain}")


def _imported_words(text: str) -> list[str]:
    """The last words of the modules and the names that a file imports."""
    words: set[str] = set()
    for module, names in import_statements(text):
        if module:
            words.add(module.rpartition(".")[2])
            words.update(_WORD.findall(names))
        else:
            items = (item.split() for item in names.split(","))
            words.update(item[0].rpartition(".")[2] for item in items if item)
    return sorted(words)


_WORD = re.compile(r"[A-Za-z_]\w*")
_MENTIONS = Reading("bindings words of imports", _imported_words, list[str])


def _mentioning(mentions: Mapping[str, Sequence[str]], names: Set[str]) -> list[str]:
    """The files that import one of some names, or from a module of such a name."""
    return [path for path, words in mentions.items() if not names.isdisjoint(words)]


def _holds(data: bytes, words: Iterable[bytes]) -> bool:
    return any(word in data for word in words)


def _path_of(project: Project, plain: Program, module: Module) -> str:
    """Where the Python file of a module would be; empty if there is one."""
    package, _, own = module.name.rpartition(".")
    above = plain.module_path(package) if package else None
    if above is not None:
        folder = posixpath.dirname(above)
    else:
        folder = posixpath.join(_project_folder(project, module.path), *package.split("."))
    path = posixpath.join(folder, own)
    taken = any(project.workspace.is_file(f"{path}{end}") for end in (".py", "/__init__.py"))
    return "" if taken or not module.name.replace(".", "").isidentifier() else path


def _project_folder(project: Project, path: str) -> str:
    folder = posixpath.dirname(path)
    while folder and not project.workspace.is_file(f"{folder}/setup.py"):
        folder = posixpath.dirname(folder)
    return folder


def _paths(path: str, module: Module) -> Iterator[tuple[str, Module]]:
    """The Python files that stand for a module and its submodules."""
    yield f"{path}/__init__.py" if module.submodules else f"{path}.py", module
    for name, item in module.submodules.items():
        if name.isidentifier():
            yield from _paths(f"{path}/{name}", item)


def _parsed(path: str, modules: Iterable[Module]) -> PythonFile:
    # Not at the top: most runs parse nothing in this process.
    from opschema_cli.source.python_facts import collect

    lines: dict[str, str] = {}
    for module in modules:
        for name in module.known:
            if name.isidentifier() and not keyword.iskeyword(name) and name not in module.submodules:
                is_function = name in module.by_name
                lines.setdefault(name, f"def {name}(*args, **kwargs): ..." if is_function else f"{name} = object()")
        if not module.closed:
            lines["__getattr__"] = "def __getattr__(name): ..."
    text = "\n".join(lines.values()) + "\n"
    return PythonFile(Source(path, text), collect(text))

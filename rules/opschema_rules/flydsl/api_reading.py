"""Names of FlyDSL's modules by their facts; nothing is imported. It writes ``api.json``, too:

    pip download --no-deps -d WHEELS flydsl==0.5.0
    python -m opschema_rules.flydsl.api_reading WHEELS

What ``api.json`` says of releases that have no wheel in the folder is kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from zipfile import ZipFile

import msgspec

from opschema_cli.source.program import MAX_HOPS
from opschema_cli.source.python import Assign, Class, Expr, Function, Import, Param, PythonFile, Scope, written_in
from opschema_cli.source.resolution import bindings_of
from opschema_cli.source.text import Source, holds_word
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.api_classes import (
    Signature,
    constructor_signature,
    members_of_class,
    members_of_enumeration,
    members_of_result,
    method_signature,
    result_signature,
    signature_of,
)
from opschema_rules.flydsl.api_table import PATH, Api, load_api, render_api
from opschema_rules.flydsl.detection import ROOT

WRAPPERS = ("from_dlpack", "from_torch_tensor")

_WORD = re.compile(r"\w+")
_NAMESPACES = frozenset({"globals", "vars", "locals"})
_BINDING = (*sorted(_NAMESPACES), "setattr", "exec", "modules")
"""Words in code that may bind names by string, the last through ``sys.modules``."""
_EXTENDED = re.compile(r"""__all__\s*\+=\s*[\[(]((?:\s*["']\w+["']\s*,?)+)\s*[\])]\Z""")


class Names(msgspec.Struct):
    """The names of one module; ``exported`` is its ``__all__``. Not all are known when it is ``open``."""

    names: set[str] = msgspec.field(default_factory=set)
    exported: set[str] | None = None
    open: bool = False

    @property
    def starred(self) -> set[str]:
        """The names that ``import *`` imports."""
        return self.exported if self.exported is not None else {name for name in self.names if name[0] != "_"}


class Package(Mapping[str, "frozenset[str] | None"]):
    """The names that the modules of one FlyDSL have; None for a module that is not known in full.

    ``paths`` are its files from the folder that holds the package, and ``load`` gives their facts, if they parse.
    """

    def __init__(self, paths: Iterable[str], load: Callable[[str], PythonFile | None]) -> None:
        self.paths = {
            _module(path): path for path in sorted(paths, key=_is_package)
        }  # which hides the file of its name
        self._load = load
        self._names: dict[str, Names] = {}
        self._kept: dict[str, frozenset[str] | None] = {}
        self._members: dict[str, frozenset[str] | None] = {}
        self._attributes: dict[str, frozenset[str]] = {}

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> Package:
        """The package of some texts by path."""
        # Not at the top: a run of `lint` leaves parsing to other processes.
        from opschema_cli.source.python_facts import collect

        def load(path: str) -> PythonFile | None:
            facts = collect(texts[path])
            return PythonFile(Source(path, texts[path]), facts) if not facts.error else None

        return cls(texts, load)

    @classmethod
    def of_wheel(cls, path: Path) -> Package:
        """The package in a wheel."""
        with ZipFile(path) as wheel:
            names = (name for name in wheel.namelist() if name.startswith(f"{ROOT}/") and name.endswith(".py"))
            return cls.of_texts({name: wheel.read(name).decode() for name in names})

    def __getitem__(self, module: str) -> frozenset[str] | None:
        if module not in self.paths:
            return self._of_class(module)
        if module not in self._kept:
            found = self.names(module)
            below = (name.removeprefix(f"{module}.") for name in self.paths if name.startswith(f"{module}."))
            inner = {name.partition(".")[0] for name in below}
            self._kept[module] = None if found.open else frozenset(found.names | inner)
        return self._kept[module]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.paths))

    def __len__(self) -> int:
        return len(self.paths)

    def api(self) -> Api:
        """Return the names of each public module, and the attributes of wrapped tensors by wrapper."""
        found: Api = {name: names for name, names in self.items() if not re.search(r"\._", name)}
        made = {f"{ROOT}.compiler.{wrapper}()": self.members(wrapper) for wrapper in WRAPPERS}
        return {**found, **{name: names for name, names in made.items() if names is not None}}

    def members(self, wrapper: str) -> frozenset[str] | None:
        """Return the attributes of the class in a wrapper's return annotation."""
        if wrapper not in self._members:
            file = self._file(f"{ROOT}.compiler.jit_argument")
            self._members[wrapper] = members_of_result(file.body, wrapper) if file is not None else None
        return self._members[wrapper]

    def names(self, module: str) -> Names:
        """Return a module's own names; those of a module that is compiled or does not parse are unknown."""
        if module not in self._names:
            self._names[module] = Names(open=True)  # what modules have that take each other's names is not known
            file = self._file(module)
            if file is not None:
                self._names[module] = self._read(module, file)
        return self._names[module]

    def signature(self, full: str) -> Signature | None:
        """Return the signature of the function, the class, or the method called on its class, that a full name refers to."""
        owner, _, name = full.rpartition(".")
        if owner in self.paths:
            defined = (self._definition(full) or (None, None))[1]
            if isinstance(defined, Class):
                return constructor_signature(defined) if defined.name not in self._changing else None
            return signature_of(defined) if defined is not None else None
        holder = self._class(owner)
        return method_signature(holder[1], name) if holder is not None else None

    def mark(self, wrapper: str, name: str) -> Signature | None:
        """Return the signature, without the instance, of a method of the object that a wrapper of tensors returns."""
        found = self._definition(f"{ROOT}.compiler.{wrapper}")
        if found is None or not isinstance(found[1], Function):
            return None
        return result_signature(found[0].body, found[1], name, self._changing)

    def methods(self, name: str) -> list[tuple[Param, ...]]:
        """Return the parameters, without the instance, of the methods of that name in classes of the modules ``flydsl.expr``; empty
        if something else may be called by that name.
        """
        classes = [cls for scope in self._language for cls in scope.classes]
        found = [item for cls in classes for item in cls.body.named.get(name, ())]
        methods = [item for item in found if isinstance(item, Function)]
        if len(methods) < len(found) or name in self._written:
            return []
        return [item.params[not _is_static(item) :] for item in methods]

    @cached_property
    def _language(self) -> list[Scope]:
        """The scopes of the modules ``flydsl.expr``."""
        modules = (module for module in self.paths if module.startswith(f"{ROOT}.expr"))
        files = [file for file in map(self._file, modules) if file is not None]
        return [scope for file in files for scope in file.body.walk()]

    def attributes(self, kind: str) -> frozenset[str]:
        """Return the attributes that a class of that name in the modules ``flydsl.expr``, its ancestors or its subclasses may
        have.
        """
        if kind not in self._attributes:
            related = set(_related(kind, self._bases))
            classes = [cls for scope in self._language for cls in scope.classes if cls.name in related]
            own = (scope for cls in classes for scope in cls.body.walk())
            self._attributes[kind] = self._written.union(name for scope in own for name in scope.named)
        return self._attributes[kind]

    @cached_property
    def _bases(self) -> list[tuple[str, str]]:
        """The classes of these modules with the last word of each base."""
        classes = (cls for scope in self._language for cls in scope.classes)
        return [(cls.name, called_word(base)) for cls in classes for base in cls.bases]

    @cached_property
    def _written(self) -> frozenset[str]:
        """The attributes that functions of these modules write."""
        found = (item.target.rpartition(".") for scope in self._language for item in scope.assigns)
        return frozenset(name for holder, _, name in found if holder)

    def _class(self, full: str) -> tuple[PythonFile, Class] | None:
        """Return the class that a full name refers to, and its file; None if its attributes are written from elsewhere."""
        file, found = self._definition(full) or (None, None)
        return (file, found) if file and isinstance(found, Class) and found.name not in self._changing else None

    def _of_class(self, full: str) -> frozenset[str]:
        """The attributes of an enumeration, or of a class without bases.

        Raises:
            KeyError: the name stands for none, or for one that may have other attributes than its body says.
        """
        found = self._class(full)
        members = members_of_enumeration(found[0].body, found[1]) if found is not None else None
        if found is not None and members is None:
            members = members_of_class(found[1])
        if members is None:
            raise KeyError(full)
        return members

    @cached_property
    def _changing(self) -> frozenset[str]:
        """The names whose attributes any module may write; for a module that sets attributes by string, all of its words."""
        files = list(filter(None, map(self._file, self.paths)))
        changed = [(item, _changed(item)) for item in files]
        words = (set(_WORD.findall(item.source.text)) if "*" in found else found for item, found in changed)
        return frozenset().union(*words)

    def _definition(self, full: str) -> tuple[PythonFile, Function | Class] | None:
        """Return the definition of a full name and its file, unless a later `import *` may rebind the name."""
        module, _, name = full.rpartition(".")
        for _ in range(MAX_HOPS):
            file = self._file(module)
            if file is None or self._may_change(module, file, name):
                return None
            bound = bindings_of(file.body, name)
            taken = self._starred(module, file.body, name, bound[0].start if bound else 0)
            first = bound[0] if len(bound) == 1 and taken == "" else None
            if isinstance(first, Function | Class):
                return file, first
            if isinstance(first, Import) and first.attr and not first.guarded:
                module, name = self._absolute(module, first.level, first.module), first.attr
            elif taken and not bound:
                module = taken
            else:
                return None
        return None

    def _may_change(self, module: str, file: PythonFile, name: str) -> bool:
        """Whether a module, or a package around it, may rebind a name at run time, or change the object it refers to."""
        around = (self._file(module.rsplit(".", count)[0]) for count in range(1, module.count(".") + 1))
        return any(not {"*", name}.isdisjoint(_changed(item)) for item in (file, *filter(None, around)))

    def _starred(self, module: str, body: Scope, name: str, since: int) -> str | None:
        """Return the module of the last `import *` after a place that binds a name; empty if there is none, None if that is not
        known.
        """
        for imported in reversed(body.imports):
            if imported.attr == "*" and imported.start >= since:
                source = self._absolute(module, imported.level, imported.module)
                taken = self.names(source)
                if name in taken.starred:
                    return source
                if taken.open and taken.exported is None:
                    return None
        return ""

    def _file(self, module: str) -> PythonFile | None:
        return self._load(self.paths[module]) if module in self.paths else None

    def _read(self, module: str, file: PythonFile) -> Names:
        found, body = Names(), file.body
        found.names |= {name for name in body.named if name != "*" and "." not in name}
        for item in file.assigns.get("__all__", ()):
            _export(found, file, item)
        for imported in body.imports:
            if imported.attr == "*":
                taken = self.names(self._absolute(module, imported.level, imported.module))
                found.names |= taken.starred
                found.open |= taken.open and taken.exported is None
        return _with_lazy(found, body)

    def _absolute(self, module: str, level: int, name: str) -> str:
        if not level:
            return name
        parts = module.split(".")
        base = parts[: len(parts) - level + _is_package(self.paths[module])]
        return ".".join([*base, *filter(None, [name])])


def _is_static(method: Function) -> bool:
    return any(item.text == "staticmethod" for item in method.decorators)


def _related(name: str, bases: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of a class, its ancestors and its subclasses."""
    for heir in (False, True):
        found, waiting = {name}, [name]
        while waiting:
            word = waiting.pop()
            fresh = {pair[not heir] for pair in bases if pair[heir] == word} - found
            found |= fresh
            waiting += fresh
        yield from found


@lru_cache(maxsize=256)
def _changed(file: PythonFile) -> frozenset[str]:
    """The names that a module's functions bind anew, or whose attributes it writes; ``*`` if it may bind any.

    What `__getattr__` binds is not there before.
    """
    lazy = file.body.function("__getattr__")
    targets = written_in(file.body, lambda function: function is not lazy)
    words = {word for name in targets if not name.startswith("self.") for word in name.split(".")}
    telling = (*_BINDING, *(["import"] if words else []))

    def may_tell(function: Function) -> bool:
        text = file.text(function.outer)
        return function is not lazy and any(holds_word(word, text) for word in telling)

    scopes = list(file.body.walk(may_tell))
    imported = {item.attr for scope in scopes for item in scope.imports if item.name in words}
    written = file.rebound | words | imported
    return written | {"*"} if _binds_any(scopes) else written


def _binds_any(scopes: Sequence[Scope]) -> bool:
    """Whether code may bind names by string: in a namespace that it does not only read, or in other modules."""
    calls = [call for scope in scopes for call in scope.calls]
    read = {
        call.items[0].items[0].span
        for call in calls
        if call.items[0].kind == "attribute" and call.items[0].text == "get"
    }
    setting = any(
        call.callee == "setattr"
        or (call.callee in _NAMESPACES and call.span not in read)
        or (call.callee == "exec" and len(call.args) < 2)
        for call in calls
    )
    return setting or any(use.name.startswith("sys.modules") for scope in scopes for use in scope.uses)


def _is_package(path: str) -> bool:
    return path.endswith("/__init__.py")


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _export(found: Names, file: PythonFile, item: Assign) -> None:
    """Add the words of ``__all__``; it is incomplete unless it is a literal of strings."""
    if item.value is not None:
        parts = item.value.items if item.value.kind in ("list", "tuple") else ()
        words = {part.value for part in parts if isinstance(part.value, str)}
        found.open |= len(words) != len(parts) or not parts
    else:
        extended = _EXTENDED.match(file.text(item.statement))
        words = set(re.findall(r"\w+", extended[1])) if extended is not None else set()
        found.open |= not words
    found.exported = (found.exported or set()) | words


def _with_lazy(found: Names, body: Scope) -> Names:
    """Return the names with those that ``__getattr__`` imports from a table in the module: ``{"rocdl": ".rocdl"}``."""
    if "__getattr__" in found.names:
        tables = [item.value for item in body.assigns if item.value is not None and item.value.kind == "dict"]
        pairs = [pair for table in tables for pair in zip(table.items[::2], table.items[1::2], strict=True)]
        lazy = {key.value for key, value in pairs if isinstance(key.value, str) and _is_relative(value)}
        found.names |= lazy
        found.open |= not lazy
    return found


def _is_relative(value: Expr) -> bool:
    return isinstance(value.value, str) and value.value.startswith(".")


def main(folder: Path) -> None:
    """Write ``api.json``."""
    from packaging.utils import parse_wheel_filename  # slow to import, and rules import this module

    found = dict(load_api())
    for path in folder.glob(f"{ROOT}-*.whl"):
        _, release, _, _ = parse_wheel_filename(path.name)
        found[release] = Package.of_wheel(path).api()
    PATH.write_bytes(render_api(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

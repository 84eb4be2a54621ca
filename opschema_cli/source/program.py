"""Python modules joined: imports, classes with their bases, constants, all resolved without running anything.

What cannot be known statically is :class:`Unresolved` and says why; it is never guessed.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import msgspec

from opschema_cli.source.python import Assign, Class, Constant, Expr, Function, Guard, Import, PythonFile, Scope

MAX_HOPS = 40
"""Longest chain of re-exports that is followed."""

HARMLESS_BASES = frozenset(
    {
        "object",
        "ABC",
        "abc.ABC",
        "Generic",
        "typing.Generic",
        "Protocol",
        "typing.Protocol",
        "typing_extensions.Protocol",
    }
)
"""Bases outside the workspace that define no operator method."""

HARMLESS_CLASS_DECORATORS = frozenset({"final", "typing.final", "typing.runtime_checkable", "functools.total_ordering"})

HARMLESS_METACLASSES = frozenset({"type", "ABCMeta", "abc.ABCMeta"})


@dataclass(frozen=True)
class Unresolved:
    """What cannot be known statically, and why."""

    reason: str


@dataclass(frozen=True)
class External:
    """A name that the workspace imports from elsewhere, by its full dotted name."""

    name: str


@dataclass(frozen=True)
class Missing:
    """A name that its module, which lies in the workspace, does not define."""

    module: str
    name: str


@dataclass(frozen=True)
class ModuleRef:
    """A module of the workspace."""

    path: str


@dataclass(frozen=True, eq=False)
class ClassRef:
    """A class and the file that defines it."""

    file: PythonFile
    cls: Class

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassRef) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[str, int]:
        """Its file and place, by which two references are the same."""
        return self.file.path, self.cls.start

    @property
    def name(self) -> str:
        """The class's name."""
        return self.cls.name


@dataclass(frozen=True, eq=False)
class FunctionRef:
    """A function, the file that defines it and, for a method, its class."""

    file: PythonFile
    function: Function
    owner: ClassRef | None = None


@dataclass(frozen=True, eq=False)
class ValueRef:
    """An assigned value and the file of the assignment; ``owner`` is the class whose attribute it is."""

    file: PythonFile
    assign: Assign
    owner: ClassRef | None = None


Resolution: TypeAlias = "ClassRef | FunctionRef | ValueRef | ModuleRef | External | Missing | Unresolved"
Member: TypeAlias = "FunctionRef | ValueRef | Unresolved | None"


@dataclass(frozen=True)
class Write:
    """That a function writes attribute ``name`` (``*`` is any) of the class it is given, where all ``guards`` let it."""

    name: str
    guards: tuple[Guard, ...] = ()


@dataclass(frozen=True)
class Folded:
    """A constant's value. ``symbol`` is a dotted name outside the workspace (``torch.float16``) instead of a value."""

    value: object = None
    symbol: str = ""


class Program:
    """The modules of one workspace.

    ``files`` are its paths, ``load`` gives a file's facts (None if it does not parse), and ``package_files`` the
    paths in which classes may be patched from outside their body.
    """

    def __init__(
        self, files: Iterable[str], load: Callable[[str], PythonFile | None], package_files: Iterable[str] = ()
    ) -> None:
        self.all_files = tuple(files)
        self.files = frozenset(path for path in self.all_files if path.endswith(".py"))
        self.load = load
        self.package_files = sorted(set(package_files))
        self._mro: dict[ClassRef, list[ClassRef | External] | Unresolved] = {}
        self._instance_writes: dict[ClassRef, frozenset[str]] = {}
        self._writes: dict[tuple[str, int, int], tuple[Write, ...]] = {}
        self._members: dict[tuple[ClassRef, str], Member] = {}

    # Modules

    @cached_property
    def roots(self) -> dict[str, list[str]]:
        """Folders from which modules are imported, by the first name below them."""
        packages = {path.rpartition("/")[0] for path in self.files if path.endswith("__init__.py")}
        found: dict[str, set[str]] = {}
        for path in self.files:
            folder, _, name = path.rpartition("/")
            while folder in packages and folder:
                folder, _, name = folder.rpartition("/")
            found.setdefault(name.removesuffix(".py"), set()).add(folder)
        return {name: sorted(folders) for name, folders in found.items()}

    def module_path(self, dotted: str) -> str | None:
        """The file of a module; None when the workspace has none of that name, or several."""
        first, _, rest = dotted.partition(".")
        tail = rest.replace(".", "/")
        found = []
        for folder in self.roots.get(first, []):
            base = "/".join(filter(None, (folder, first, tail)))
            found += [path for path in (f"{base}.py", f"{base}/__init__.py") if path in self.files]
        return found[0] if len(found) == 1 else None

    def may_exist(self, dotted: str) -> bool:
        """Whether the workspace holds anything that a module of that name could be made from: a file of any kind or a
        folder. Private modules may be generated.
        """
        first, _, rest = dotted.partition(".")
        if any(part.startswith("_") for part in dotted.split(".")):
            return True
        stems = ["/".join(filter(None, (folder, first, *rest.split(".")))) for folder in self.roots.get(first, [])]
        return any(path.startswith((f"{stem}/", f"{stem}.")) for stem in stems for path in self.all_files)

    def is_local(self, dotted: str) -> bool:
        """Whether a module's top package is a package of the workspace, not a lone script."""
        first = dotted.partition(".")[0]
        return any(
            "/".join(filter(None, (folder, first, "__init__.py"))) in self.files for folder in self.roots.get(first, [])
        )

    def module_name(self, path: str) -> str:
        """The dotted name under which a file is imported."""
        parts = [path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]]
        folder = path.rpartition("/")[0]
        if path.endswith("/__init__.py"):
            folder = folder.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self.files:
            folder, _, name = folder.rpartition("/")
            parts.append(name)
        return ".".join(reversed(parts))

    def absolute_module(self, file: PythonFile, item: Import) -> str | None:
        """The full name of the module an import names; None when its dots leave the package."""
        if not item.level:
            return item.module
        parts = self.module_name(file.path).split(".")
        drop = item.level - (1 if file.path.endswith("__init__.py") else 0)
        if drop > len(parts) or (drop == len(parts) and not item.module):
            return None
        return ".".join([*parts[: len(parts) - drop], *filter(None, [item.module])])

    # Names

    def resolve(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...] = ()) -> Resolution:
        """What a dotted name means in a module (or first in ``scopes``, innermost first)."""
        return self._resolve(file, dotted, scopes, MAX_HOPS)

    def module_member(self, path: str, name: str) -> Resolution:
        """What ``name`` is in the module of that file."""
        return self._module_attribute(ModuleRef(path), name, MAX_HOPS)

    def _resolve(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...], hops: int) -> Resolution:
        if hops <= 0:
            return Unresolved(f"`{dotted}` is re-exported in a circle")
        first, _, rest = dotted.partition(".")
        found = self._first(file, first, scopes, hops)
        for name in filter(None, rest.split(".")):
            found = self._attribute(found, name, hops)
        return found

    def _first(self, file: PythonFile, name: str, scopes: tuple[Scope, ...], hops: int) -> Resolution:
        for scope in (*scopes, file.body):
            if name in scope.deleted:
                return Unresolved(f"`{name}` is deleted or global in {file.path}")
            bindings = _bindings(file, scope, name)
            if bindings:
                return self._binding(file, name, bindings, hops)
        stars = [item for item in file.body.imports if item.attr == "*"]
        for item in stars:
            found = self._imported(file, Import(name, item.module, name, item.level, item.start, item.end), hops)
            if not isinstance(found, Missing):
                return found
        if name in _BUILTINS:
            return External(name)
        return Missing(file.path, name)

    def _binding(
        self, file: PythonFile, name: str, bindings: list[Class | Function | Assign | Import], hops: int
    ) -> Resolution:
        if len(bindings) > 1 and not all(isinstance(item, Import) for item in bindings):
            return Unresolved(f"`{name}` is bound {len(bindings)} times in {file.path}")
        bound = bindings[-1]
        if isinstance(bound, Class):
            return ClassRef(file, bound)
        if isinstance(bound, Function):
            return FunctionRef(file, bound)
        if isinstance(bound, Import):
            results = [self._imported(file, item, hops) for item in bindings if isinstance(item, Import)]
            good = [item for item in results if not isinstance(item, Missing | External)]
            return good[0] if good else results[-1]
        alias = bound.value
        if bound.sure and alias is not None and alias.kind == "name" and alias.text != name:
            target = self._resolve(file, alias.text, (), hops - 1)
            return target if not isinstance(target, Missing) else ValueRef(file, bound)
        return ValueRef(file, bound)

    def _imported(self, file: PythonFile, item: Import, hops: int) -> Resolution:
        module = self.absolute_module(file, item)
        if module is None:
            return Unresolved(f"the import of `{item.name}` leaves its package")
        if item.attr and self.module_path(module) == file.path:  # a package names its own submodule
            inner = self.module_path(f"{module}.{item.attr}")
            if inner is not None:
                return ModuleRef(inner)
        if not item.attr:
            return self._module(module if item.name == module else self._as_name(item, module))
        return self._from(module, item.attr, hops)

    def _as_name(self, item: Import, module: str) -> str:
        return module.partition(".")[0] if module.partition(".")[0] == item.name else module

    def _module(self, dotted: str) -> Resolution:
        path = self.module_path(dotted)
        if path is not None:
            return ModuleRef(path)
        return Unresolved(f"no file for the module `{dotted}`") if self.is_local(dotted) else External(dotted)

    def _from(self, module: str, attr: str, hops: int) -> Resolution:
        path = self.module_path(module)
        if path is not None:
            return self._attribute(ModuleRef(path), attr, hops - 1)
        inner = self.module_path(f"{module}.{attr}") if module else None
        if inner is not None:  # the module is a folder without `__init__.py`
            return ModuleRef(inner)
        if self.is_local(module):
            return Unresolved(f"no one file for the module `{module}`")
        return External(f"{module}.{attr}" if module else attr)

    def _attribute(self, owner: Resolution, name: str, hops: int) -> Resolution:
        if isinstance(owner, External):
            return External(f"{owner.name}.{name}")
        if isinstance(owner, ModuleRef):
            return self._module_attribute(owner, name, hops)
        if isinstance(owner, ClassRef):
            member = self.member(owner, name)
            return member if member is not None else Missing(owner.name, name)
        if isinstance(owner, Unresolved | Missing):
            return owner
        return Unresolved(f"`.{name}` of a value")

    def _module_attribute(self, owner: ModuleRef, name: str, hops: int) -> Resolution:
        file = self.load(owner.path)
        if file is None:
            return Unresolved(f"{owner.path} does not parse")
        found = self._resolve(file, name, (), hops - 1)
        if isinstance(found, Missing) or (found == External(name) and name in _BUILTINS):
            module = self.module_name(owner.path)
            if owner.path.endswith("__init__.py"):
                sub = self.module_path(f"{module}.{name}")
                if sub is not None:
                    return ModuleRef(sub)
                if self._is_folder_or_binary(owner.path, name):
                    return Unresolved(f"`{module}.{name}` is no Python file")
            if file.body.function("__getattr__") is not None or _writes_globals(file.body, name):
                return Unresolved(f"{owner.path} makes its names at run time")
            if any(item.attr == "*" for item in file.body.imports):
                return Unresolved(f"{owner.path} imports `*`")
            return Missing(owner.path, name)
        return found

    def _is_folder_or_binary(self, package: str, name: str) -> bool:
        """Whether a package may hold a submodule that is not Python: a plain folder, an extension, a stub."""
        folder = package.rpartition("/")[0]
        return name.startswith("_") or any(
            path.startswith((f"{folder}/{name}/", f"{folder}/{name}.")) for path in self.all_files
        )

    # Classes

    def mro(self, ref: ClassRef) -> list[ClassRef | External] | Unresolved:
        """The method resolution order; Unresolved when a base is, or when there is none."""
        if ref not in self._mro:
            self._mro[ref] = Unresolved(f"`{ref.name}` inherits from itself")
            self._mro[ref] = self._linearise(ref)
        return self._mro[ref]

    def _linearise(self, ref: ClassRef) -> list[ClassRef | External] | Unresolved:
        parents: list[ClassRef | External] = []
        for base in ref.cls.bases:
            target = base.items[0] if base.kind == "subscript" else base
            found = self.resolve(ref.file, target.text) if target.kind == "name" else Unresolved("an expression")
            if not isinstance(found, ClassRef | External):
                reason = found.reason if isinstance(found, Unresolved) else "it is not a class of the workspace"
                return Unresolved(f"the base `{ref.file.text(base)}` of `{ref.name}` cannot be followed: {reason}")
            parents.append(found)
        lines: list[list[ClassRef | External]] = []
        for parent in parents:
            line = self.mro(parent) if isinstance(parent, ClassRef) else [parent]
            if isinstance(line, Unresolved):
                return line
            lines.append(list(line))
        merged = _merge([*lines, list(parents)])
        return [ref, *merged] if merged is not None else Unresolved(f"the bases of `{ref.name}` have no order")

    def lineage(self, ref: ClassRef) -> list[ClassRef]:
        """The class and its ancestors in the workspace; those that cannot be followed are left out."""
        order = self.mro(ref)
        return [ref] if isinstance(order, Unresolved) else [item for item in order if isinstance(item, ClassRef)]

    def member(self, ref: ClassRef, name: str) -> Member:
        """The method or class attribute that an instance of ``ref`` has; None when no class defines it."""
        key = (ref, name)
        if key not in self._members:
            self._members[key] = Unresolved(f"`{ref.name}.{name}` refers to itself")
            self._members[key] = self._followed(self._member(ref, name))
        return self._members[key]

    def attribute(self, ref: ClassRef, name: str) -> Member:
        """The same, but an assigned name is not followed to what it stands for, so no further module is opened."""
        return self._member(ref, name)

    def own_member(self, owner: ClassRef, name: str) -> Member:
        """What a class itself says ``name`` is, whatever hooks may make of it; None if nothing.

        That is its body's word, or that of the one plain assignment (``Owner.name = value``) below it in its file.
        """
        return self._followed(self._own_member(owner, name))

    def instance_writes(self, ref: ClassRef) -> frozenset[str]:
        """Attributes that the methods of a class's body write on their first parameter."""
        if ref not in self._instance_writes:
            found = [
                item.target.partition(".")[2]
                for method in ref.cls.body.functions
                for scope in method.body.walk()
                for item in scope.assigns
                if method.params and item.target.startswith(method.params[0].name + ".")
            ]
            self._instance_writes[ref] = frozenset(found)
        return self._instance_writes[ref]

    def _member(self, ref: ClassRef, name: str) -> Member:
        order = self.mro(ref)
        if isinstance(order, Unresolved):
            own = self._own_member(ref, name)
            return own if own is not None and self.patched(ref, name, [ref]) is None else order
        passed: list[ClassRef] = []
        for owner in order:
            if isinstance(owner, External):
                if owner.name not in HARMLESS_BASES:
                    return Unresolved(f"`{ref.name}` inherits from `{owner.name}`, outside the workspace")
                continue
            passed.append(owner)
            own = self._own_member(owner, name)
            if own is not None:
                return self.patched(ref, name, passed) or own
        return self.patched(ref, name, passed)

    def _own_member(self, owner: ClassRef, name: str) -> Member:
        replaced = self._replacement(owner, name)
        if replaced is not None:
            return ValueRef(owner.file, replaced, owner)
        functions = _without_overloads([item for item in owner.cls.body.functions if item.name == name])
        assigns = [item for item in owner.cls.body.assigns if item.target == name and _binds(item)]
        if len(functions) + len(assigns) > 1:
            return Unresolved(f"`{owner.name}` defines `{name}` more than once")
        if functions:
            return FunctionRef(owner.file, functions[0], owner)
        return ValueRef(owner.file, assigns[0], owner) if assigns else None

    def _followed(self, found: Member) -> Member:
        """The function or the doubt behind an assigned name."""
        if not isinstance(found, ValueRef) or found.assign.value is None or found.assign.value.kind != "name":
            return found
        target = self.resolve(found.file, found.assign.value.text, _scopes(found))
        if isinstance(target, FunctionRef):
            return FunctionRef(target.file, target.function, found.owner)
        return target if isinstance(target, Unresolved) else found

    # Patches from outside the class body

    def patched(self, ref: ClassRef, name: str, lineage: list[ClassRef]) -> Unresolved | None:
        """Why ``name`` may be replaced at run time on ``ref`` or on the classes before its definition."""
        for item in lineage:
            reason = self._patched_class(item, name)
            if reason is not None:
                return reason
        for base in self.lineage(ref)[1:]:
            hook = base.cls.body.function("__init_subclass__")
            writes = self.writes(FunctionRef(base.file, hook, base), 0) if hook is not None else ()
            for write in writes:
                if write.name in (name, "*") and any(self._reached(base, item, write) for item in lineage):
                    return Unresolved(f"`{base.name}.__init_subclass__` makes `{name}`")
        return None

    def _patched_class(self, ref: ClassRef, name: str) -> Unresolved | None:
        written = self._outside_writes.get(ref.key, {})
        if (name in written or "*" in written) and self._replacement(ref, name) is None:
            return Unresolved(f"`{ref.name}.{name}` is assigned outside the class")
        for decorator in ref.cls.decorators:
            found = self.resolve(ref.file, decorator.callee or decorator.text)
            if isinstance(found, FunctionRef) and not self.written(found, 0) & {name, "*"}:
                continue
            if not isinstance(found, External) or found.name not in HARMLESS_CLASS_DECORATORS:
                return Unresolved(f"`{ref.name}` is decorated")
        return None if self._has_plain_metaclass(ref) else Unresolved(f"`{ref.name}` has a metaclass")

    def _has_plain_metaclass(self, ref: ClassRef) -> bool:
        if ref.cls.metaclass is None:
            return True
        found = self.resolve(ref.file, ref.cls.metaclass.text)
        return isinstance(found, External) and found.name in HARMLESS_METACLASSES

    def _reached(self, base: ClassRef, ref: ClassRef, write: Write) -> bool:
        """Whether the hook of ``base`` may carry out a write when ``ref`` is made."""
        if ref == base or base not in self.lineage(ref):
            return False
        return not any(self._shut(ref, guard) for guard in write.guards)

    def _shut(self, ref: ClassRef, guard: Guard) -> bool:
        """Whether a guarded stretch surely does not run for a class."""
        scopes = [item.cls.body for item in ([ref] if guard.own else self.lineage(ref))]
        bound = [_surely_bound(scope, guard.attribute) for scope in scopes]
        return not any(item is not False for item in bound) if guard.present else True in bound

    def written(self, ref: FunctionRef, index: int) -> frozenset[str]:
        """Attributes that a function may write on its parameter ``index``, itself or through calls; ``*`` is any."""
        return frozenset(write.name for write in self.writes(ref, index))

    def writes(self, ref: FunctionRef, index: int) -> tuple[Write, ...]:
        """What a function may write on its parameter ``index``, itself or through calls."""
        key = (ref.file.path, ref.function.start, index)
        if key not in self._writes:
            found: dict[Write, None] = {}
            self._follow_writes(ref, index, (), found, set())
            self._writes[key] = tuple(found)
        return self._writes[key]

    def _follow_writes(
        self, ref: FunctionRef, index: int, guards: tuple[Guard, ...], found: dict[Write, None], seen: set[object]
    ) -> None:
        key = (ref.file.path, ref.function.start, index, guards)
        if key in seen or index >= len(ref.function.params):
            return
        seen.add(key)
        name = ref.function.params[index].name
        here = [guard for guard in ref.function.guards if guard.variable == name]

        def at(offset: int) -> tuple[Guard, ...]:
            return (*guards, *(guard for guard in here if guard.start <= offset < guard.end))

        for scope in ref.function.body.walk():
            for assign in scope.assigns:
                if assign.target.startswith(name + "."):
                    found[Write(assign.target[len(name) + 1 :], at(assign.start))] = None
            for call in scope.calls:
                position = _argument(call, name)
                if position is not None and call.callee == "setattr":
                    found[Write(self._set_name(ref, call), at(call.start))] = None
                elif position is not None and call.callee:
                    target = self.resolve(ref.file, call.callee, (ref.function.body,))
                    if isinstance(target, FunctionRef):
                        self._follow_writes(target, position, at(call.start), found, seen)

    def _set_name(self, ref: FunctionRef, call: Expr) -> str:
        folded = self.fold(ref.file, call.items[2], (ref.function.body,)) if len(call.items) > 2 else None
        return folded.value if isinstance(folded, Folded) and isinstance(folded.value, str) else "*"

    def _replacement(self, ref: ClassRef, name: str) -> Assign | None:
        """The one statement of a class's own file that assigns ``name`` to it, if nothing else writes it from outside."""
        written = self._outside_writes.get(ref.key, {})
        found = written.get(name, [])
        if len(found) != 1 or "*" in written or not found[0].sure:
            return None
        return next((item for item in ref.file.body.assigns if item is found[0]), None)

    @cached_property
    def _outside_writes(self) -> dict[tuple[str, int], dict[str, list[Assign]]]:
        """What module-level code of the package writes on classes: by the class's key and attribute, each statement."""
        found: dict[tuple[str, int], dict[str, list[Assign]]] = {}
        for path in self.package_files:
            file = self.load(path)
            for ref, name, assign in self._module_writes(file) if file is not None else ():
                found.setdefault(ref.key, {}).setdefault(name, []).append(assign)
        return found

    def _module_writes(self, file: PythonFile) -> Iterator[tuple[ClassRef, str, Assign]]:
        for assign in file.body.assigns:
            owner, _, name = assign.target.rpartition(".")
            if owner:
                named = list(self._classes_named(file, owner, assign.start))
                sure = assign.sure and len(named) == 1
                for ref in named:
                    yield ref, name, assign if sure else msgspec.structs.replace(assign, sure=False)
        for call in file.body.calls:
            if not call.callee:
                continue
            for index, value in enumerate(call.items[1:]):
                if value.kind != "name":
                    continue
                for ref in self._classes_named(file, value.text, call.start):
                    for name in self._call_writes(file, call, index):
                        yield ref, name, Assign(name, call.start, call.end, None, call.span, False)

    def _call_writes(self, file: PythonFile, call: Expr, index: int) -> frozenset[str]:
        if call.callee == "setattr":
            name = call.items[2] if len(call.items) > 2 else None
            constant = name is not None and name.kind == "const" and isinstance(name.value, str)
            return frozenset({str(name.value) if name is not None and constant else "*"})
        target = self.resolve(file, call.callee)
        return self.written(target, index) if isinstance(target, FunctionRef) else frozenset()

    def _classes_named(self, file: PythonFile, name: str, at: int) -> Iterator[ClassRef]:
        """The classes a module-level name stands for: a class, or what a loop variable runs over."""
        for loop in file.body.loops:
            if name in loop.targets and loop.body.start <= at < loop.body.end:
                for element in self._elements(file, loop.iterable):
                    for item in element.walk():
                        found = self.resolve(file, item.text) if item.kind == "name" else None
                        if isinstance(found, ClassRef):
                            yield found
                return
        found = self.resolve(file, name)
        if isinstance(found, ClassRef):
            yield found

    def _elements(self, file: PythonFile, expr: Expr) -> list[Expr]:
        if expr.kind == "name":
            found = self.resolve(file, expr.text)
            if isinstance(found, ValueRef) and found.assign.value is not None:
                expr = found.assign.value
        return expr.items if expr.kind in ("list", "tuple", "set", "dict") else []

    # Constants

    def fold(
        self, file: PythonFile, expr: Expr, scopes: tuple[Scope, ...] = (), depth: int = 12
    ) -> Folded | Unresolved:
        """The constant value of an expression: literals, arithmetic, names bound once, ``float("inf")``."""
        if depth <= 0:
            return Unresolved("the expression is too deep")
        if expr.kind == "const":
            return Folded(expr.value)
        if expr.kind == "name":
            return self._fold_name(file, expr.text, scopes, depth)
        if expr.kind in ("tuple", "list"):
            parts = [self.fold(file, item, scopes, depth - 1) for item in expr.items]
            if all(isinstance(part, Folded) and not part.symbol for part in parts):
                values = [part.value for part in parts if isinstance(part, Folded)]
                return Folded(tuple(values) if expr.kind == "tuple" else values)
            return Unresolved("an element is not constant")
        if expr.kind == "call" and expr.callee == "float" and len(expr.items) == 2 and expr.items[1].kind == "const":
            return _float_of(expr.items[1].value)
        if expr.kind in ("unary", "binary"):
            return self._fold_operator(file, expr, scopes, depth)
        return Unresolved("it is computed at run time")

    def _fold_name(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...], depth: int) -> Folded | Unresolved:
        found = self.resolve(file, dotted, scopes)
        if isinstance(found, External):
            return Folded(_NUMBERS[found.name]) if found.name in _NUMBERS else Folded(symbol=found.name)
        if isinstance(found, ValueRef) and found.owner is not None and not self._is_plain(found.owner):
            return Unresolved(f"`{dotted}` may be a member of an enumeration")
        if isinstance(found, ValueRef) and found.assign.sure and found.assign.value is not None:
            inner = _scopes(found)
            if found.file is file and not found.owner:
                inner = scopes
            return self.fold(found.file, found.assign.value, inner, depth - 1)
        return found if isinstance(found, Unresolved) else Unresolved(f"`{dotted}` is not a constant")

    def _is_plain(self, ref: ClassRef) -> bool:
        """Whether a class's attributes are what its body assigns: no base or metaclass makes something else of them."""
        order = self.mro(ref)
        return not isinstance(order, Unresolved) and all(
            self._has_plain_metaclass(item) if isinstance(item, ClassRef) else item.name in HARMLESS_BASES
            for item in order
        )

    def _fold_operator(
        self, file: PythonFile, expr: Expr, scopes: tuple[Scope, ...], depth: int
    ) -> Folded | Unresolved:
        parts = [self.fold(file, item, scopes, depth - 1) for item in expr.items]
        values = [part.value for part in parts if isinstance(part, Folded) and not part.symbol]
        if len(values) != len(parts):
            return Unresolved("an operand is not constant")
        return _compute(expr.text, values)


def _bindings(file: PythonFile, scope: Scope, name: str) -> list[Class | Function | Assign | Import]:
    found: list[Class | Function | Assign | Import] = []
    if scope is file.body:
        found += file.classes.get(name, [])
        found += file.functions.get(name, [])
        found += [item for item in file.assigns.get(name, []) if _binds(item)]
        found += file.imports.get(name, [])
    else:
        found += [item for item in scope.classes if item.name == name]
        found += [item for item in scope.functions if item.name == name]
        found += [item for item in scope.assigns if item.target == name and _binds(item)]
        found += [item for item in scope.imports if item.name == name]
    return found


def _scopes(value: ValueRef) -> tuple[Scope, ...]:
    """Where the names of an assigned value are looked up before its module: in the class body that assigns it."""
    body = value.owner.cls.body if value.owner is not None else None
    return (body,) if body is not None and any(item is value.assign for item in body.assigns) else ()


def _binds(item: Assign) -> bool:
    """Whether an assignment gives its target a value: an annotation alone does not."""
    return item.value is not None or item.annotation is None


def _surely_bound(scope: Scope, name: str) -> bool | None:
    """Whether a class body binds a name: for sure, for sure not, or None where that depends."""
    found: list[Class | Function | Assign | Import] = [item for item in scope.functions if item.name == name]
    found += [item for item in scope.classes if item.name == name]
    found += [item for item in scope.assigns if item.target == name and _binds(item)]
    found += [item for item in scope.imports if item.name in (name, "*")]
    if not found:
        return None if name in scope.deleted else False
    last = found[-1]
    if len(found) > 1 or name in scope.deleted or isinstance(last, Import) or not last.sure:
        return None
    none = isinstance(last, Assign) and (
        last.value is None or (last.value.kind == "const" and last.value.value is None)
    )
    return None if none else True


def _argument(call: Expr, name: str) -> int | None:
    """The position at which a call passes a name by position; None if it does not."""
    for index, value in enumerate(call.positional()):
        if value.kind == "name" and value.text == name:
            return index
    return None


def _writes_globals(body: Scope, name: str) -> bool:
    """Whether a module may bind ``name`` by other means than a statement of its own."""
    if any(call.callee in ("vars", "setattr", "locals") for call in body.calls):
        return True
    return any(
        name in scope.deleted or any(call.callee in ("globals", "exec") for call in scope.calls)
        for scope in body.walk()
    )


def _without_overloads(functions: list[Function]) -> list[Function]:
    kept = [item for item in functions if not any(name.endswith("overload") for name in item.decorator_names)]
    setters = [item for item in kept if any(name.endswith((".setter", ".deleter")) for name in item.decorator_names)]
    return [item for item in kept if item not in setters]


def _merge(lines: list[list[ClassRef | External]]) -> list[ClassRef | External] | None:
    """The C3 merge of https://docs.python.org/3/howto/mro.html; None when there is no order."""
    merged: list[ClassRef | External] = []
    lines = [line for line in lines if line]
    while lines:
        tails = {item for line in lines for item in line[1:]}
        head = next((line[0] for line in lines if line[0] not in tails), None)
        if head is None:
            return None
        merged.append(head)
        lines = [rest for line in lines if (rest := [item for item in line if item != head])]
    return merged


def _float_of(value: Constant) -> Folded | Unresolved:
    try:
        return Folded(float(value)) if isinstance(value, str | int | float) else Unresolved("not a number")
    except ValueError:
        return Unresolved("not a number")


def _compute(operator: str, values: list[object]) -> Folded | Unresolved:
    if not all(isinstance(value, int | float) for value in values):
        return Unresolved("an operand is not a number")
    numbers = [value for value in values if isinstance(value, int | float)]
    try:
        if len(numbers) == 1:
            single: dict[str, Callable[[float], float]] = {"-": lambda a: -a, "+": lambda a: +a, "not": lambda a: not a}
            return Folded(single[operator](numbers[0]))
        left, right = numbers
        if operator == "**" and (abs(left) > 1e6 or abs(right) > 64):
            return Unresolved("a large power")
        operations: dict[str, Callable[[float, float], float]] = {
            "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
            "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b,
        }  # fmt: skip
        return Folded(operations[operator](left, right))
    except (KeyError, ArithmeticError):
        return Unresolved(f"`{operator}` is not folded")


_BUILTINS = frozenset(dir(builtins))

_NUMBERS = {
    **{f"{module}.inf": math.inf for module in ("math", "torch", "numpy")},
    **{f"{module}.nan": math.nan for module in ("math", "torch", "numpy")},
    **{f"{module}.pi": math.pi for module in ("math", "torch", "numpy")},
    "math.e": math.e, "math.tau": math.tau, "torch.e": math.e, "numpy.e": math.e,
}  # fmt: skip
"""Numbers of other packages that everybody knows."""

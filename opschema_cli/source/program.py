"""Python modules joined: imports, classes with their bases, constants, all resolved without running anything.

What cannot be known statically is :class:`Unresolved` and says why; it is never guessed.
"""

from __future__ import annotations

import builtins
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice

from opschema_cli.source.modules import Modules
from opschema_cli.source.patches import Patches
from opschema_cli.source.python import Assign, Binding, Class, Function, Import, PythonFile, Scope
from opschema_cli.source.resolution import (
    HARMLESS_BASES,
    ClassKey,
    ClassRef,
    External,
    Folded,
    FunctionRef,
    Member,
    Missing,
    ModuleRef,
    Resolution,
    Unresolved,
    ValueRef,
    bindings_of,
    binds,
    is_definition,
    only_definition,
    scopes_of,
    star_imports,
)
from opschema_cli.source.star_sources import StarSources, writes_globals

__all__ = [
    "HARMLESS_BASES",
    "ClassRef",
    "External",
    "Folded",
    "FunctionRef",
    "Member",
    "Missing",
    "ModuleRef",
    "Program",
    "Resolution",
    "Unresolved",
    "ValueRef",
]

MAX_HOPS = 40
"""Maximum length of a chain of re-exports to follow."""

MAX_ANCESTORS = 60
"""Maximum length of a chain of base classes to follow."""


class Program(Modules):
    """The modules of one workspace.

    ``files`` are its paths, ``load`` gives a file's facts (None if it does not parse), and ``package_files`` the
    paths in which classes may be patched from outside their body.
    """

    def __init__(
        self, files: Iterable[str], load: Callable[[str], PythonFile | None], package_files: Iterable[str] = ()
    ) -> None:
        super().__init__(files)
        self.load = load
        self.package_files = sorted(set(package_files))
        self._stars = StarSources(self, load)
        self._defined: dict[tuple[str, str], Resolution] = {}
        self._ancestors = 0
        self._mro: dict[ClassKey, list[ClassRef | External] | Unresolved] = {}
        self._lineages: dict[ClassKey, list[ClassRef]] = {}
        self._instance_writes: dict[ClassKey, frozenset[str]] = {}
        self._members: dict[tuple[ClassKey, str], Member] = {}
        self._own_members: dict[tuple[ClassKey, str], Member] = {}

    # Names

    def resolve(self, file: PythonFile, dotted: str, scopes: tuple[Scope, ...] = ()) -> Resolution:
        """Return the definition of a dotted name in a module (or first in ``scopes``, innermost first)."""
        return self._resolve(file, dotted, scopes, MAX_HOPS)

    def module_member(self, path: str, dotted: str) -> Resolution:
        """Return the definition of a dotted name in the module of that file."""
        found: Resolution = ModuleRef(path)
        for name in dotted.split("."):
            found = self._attribute(found, name, MAX_HOPS)
        return found

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
            bindings = bindings_of(scope, name)
            if bindings and scope is file.body and name in file.rebound:
                return Unresolved(f"a function of {file.path} deletes `{name}` or declares it global")
            if bindings:
                found = self._binding(file, name, bindings, hops)
                if scope is not file.body or "*" not in scope.named:
                    return found
                later = self._by_stars(file, name, hops, bindings[-1].start)
                return only_definition([found, *later], name, file.path) if any(map(is_definition, later)) else found
        stars = self._by_stars(file, name, hops)
        # A module is bound only if the package imports or lists it: other values come first.
        values: list[Resolution] = [item for item in stars if not isinstance(item, ModuleRef)] or stars[:1]
        if values and isinstance(values[-1], External) and any(map(is_definition, values)):
            return Unresolved(f"`*` of {values[-1].name} may hold another `{name}`")
        if values:
            return only_definition(values, name, file.path)
        return External(name) if name in _BUILTINS else Missing(file.path, name)

    def _by_stars(self, file: PythonFile, name: str, hops: int, after: int = 0) -> list[Resolution]:
        """Return the definitions that a name may have through ``from m import *`` after an offset."""
        stars = (item for item in star_imports(file.body, name, after) if self._stars.may_have(file, item))
        found = [self._imported(file, item, hops) for item in stars]
        return [item for item in found if not isinstance(item, Missing)]

    def _binding(self, file: PythonFile, name: str, bindings: list[Binding], hops: int) -> Resolution:
        if len(bindings) > 1 and not all(isinstance(item, Import) for item in bindings):
            return Unresolved(f"`{name}` is bound {len(bindings)} times in {file.path}")
        bound = bindings[-1]
        if isinstance(bound, Class):
            return ClassRef(file, bound)
        if isinstance(bound, Function):
            return FunctionRef(file, bound)
        if isinstance(bound, Import):
            imports = [item for item in bindings if isinstance(item, Import)]
            return only_definition([self._imported(file, item, hops) for item in imports], name, file.path)
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
            return self._module(module if item.name == module else self.as_name(item, module))
        return self._from(module, item.attr, hops)

    def imported_name(self, file: PythonFile, item: Import) -> str | None:
        """Return the full name of an imported object, as written in the import; None if the import leaves its package."""
        module = self.absolute_module(file, item)
        if module is None or not item.attr:
            return module and self.as_name(item, module)
        return f"{module}.{item.attr}"

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
            if self.patches.collecting or any(
                self.patches.replacement(base, name) is not None for base in self.lineage(owner)
            ):
                return Unresolved(f"`{owner.name}.{name}` is replaced below its class")
            member = self.member(owner, name)
            return member if member is not None else Missing(owner.name, name)
        if isinstance(owner, Unresolved | Missing):
            return owner
        return Unresolved(f"`.{name}` of a value")

    def _module_attribute(self, owner: ModuleRef, name: str, hops: int) -> Resolution:
        key = (owner.path, name)
        if key not in self._defined:
            self._defined[key] = Unresolved(f"`{name}` is re-exported in a circle")
            self._defined[key] = self._define(owner, name, hops)
        return self._defined[key]

    def _define(self, owner: ModuleRef, name: str, hops: int) -> Resolution:
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
                if self.may_hold(owner.path, name):
                    return Unresolved(f"`{module}.{name}` is not a Python file")
            if file.body.function("__getattr__") is not None or writes_globals(file, name):
                return Unresolved(f"{owner.path} makes its names at run time")
            if any(item.attr == "*" for item in file.body.imports):
                return Unresolved(f"{owner.path} imports `*`")
            return Missing(owner.path, name)
        return found

    # Classes

    def mro(self, ref: ClassRef) -> list[ClassRef | External] | Unresolved:
        """Return the method resolution order; Unresolved if a base is, or if there is none."""
        key = ref.key
        if key not in self._mro:
            self._mro[key] = Unresolved(f"`{ref.name}` inherits from itself")
            self._ancestors += 1
            deep = self._ancestors > MAX_ANCESTORS
            self._mro[key] = Unresolved(f"`{ref.name}` inherits too deeply") if deep else self._linearise(ref)
            self._ancestors -= 1
        return self._mro[key]

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

    def lineage(self, ref: ClassRef) -> Sequence[ClassRef]:
        """Return the class and its ancestors in the workspace, without those that cannot be followed."""
        found = self._lineages.get(ref.key)
        if found is None:
            order = self.mro(ref)
            if isinstance(order, Unresolved):  # which may change, while it is being found
                return [ref]
            found = self._lineages[ref.key] = [item for item in order if isinstance(item, ClassRef)]
        return found

    def member(self, ref: ClassRef, name: str) -> Member:
        """Return the method or class attribute that an instance of ``ref`` has; None if no class defines it."""
        key = (ref.key, name)
        if key not in self._members:
            self._members[key] = Unresolved(f"`{ref.name}.{name}` refers to itself")
            self._members[key] = self._followed(self._member(ref, name))
        return self._members[key]

    def attribute(self, ref: ClassRef, name: str) -> Member:
        """Return the attribute without following an assigned name to its value, so that no further module is opened."""
        return self._member(ref, name)

    def own_member(self, owner: ClassRef, name: str) -> Member:
        """The member ``name`` that a class itself defines, whatever hooks may make of it; None if it defines none.

        That is its body's word, or that of the one plain assignment (``Owner.name = value``) below it in its file.
        """
        return self._followed(self._own_member(owner, name))

    def instance_writes(self, ref: ClassRef) -> frozenset[str]:
        """Return the attributes that the methods of a class's body write on their first parameter."""
        if ref.key not in self._instance_writes:
            self._instance_writes[ref.key] = frozenset[str]().union(*(item.sets for item in ref.cls.body.functions))
        return self._instance_writes[ref.key]

    def _member(self, ref: ClassRef, name: str) -> Member:
        order = self.mro(ref)
        if isinstance(order, Unresolved):
            own = self._own_member(ref, name)
            return own if own is not None and self.patches.patched(ref, name, [ref]) is None else order
        passed: list[ClassRef] = []
        for owner in order:
            if isinstance(owner, External):
                if owner.name not in HARMLESS_BASES:
                    return Unresolved(f"`{ref.name}` inherits from `{owner.name}`, outside the workspace")
                continue
            passed.append(owner)
            own = self._own_member(owner, name)
            if own is not None:
                return self.patches.patched(ref, name, passed) or own
        return self.patches.patched(ref, name, passed)

    def _own_member(self, owner: ClassRef, name: str) -> Member:
        if self.patches.collecting:  # what is known now is not all
            return self._find_own_member(owner, name)
        key = (owner.key, name)
        if key not in self._own_members:
            self._own_members[key] = self._find_own_member(owner, name)
        return self._own_members[key]

    def _find_own_member(self, owner: ClassRef, name: str) -> Member:
        replaced = self.patches.replacement(owner, name)
        if replaced is not None:
            return ValueRef(owner.file, replaced, owner)
        found = owner.cls.body.named.get(name, [])
        functions = _without_overloads([item for item in found if isinstance(item, Function)])
        assigns = [item for item in found if isinstance(item, Assign) and binds(item)]
        if len(functions) + len(assigns) > 1:
            return Unresolved(f"`{owner.name}` defines `{name}` more than once")
        if functions:
            return FunctionRef(owner.file, functions[0], owner)
        return ValueRef(owner.file, assigns[0], owner) if assigns else None

    def _followed(self, found: Member) -> Member:
        """Return the function or the uncertainty behind an assigned name."""
        if not isinstance(found, ValueRef) or found.assign.value is None or found.assign.value.kind != "name":
            return found
        target = self.resolve(found.file, found.assign.value.text, scopes_of(found))
        if isinstance(target, FunctionRef):
            return FunctionRef(target.file, target.function, found.owner)
        return target if isinstance(target, Unresolved) else found

    @cached_property
    def patches(self) -> Patches:
        """The writes to classes from outside their bodies."""
        return Patches(self)

    def has_plain_metaclass(self, ref: ClassRef) -> bool:
        """Whether a class's metaclass leaves its attributes unchanged."""
        return self.patches.has_plain_metaclass(ref)


def _without_overloads(functions: list[Function]) -> list[Function]:
    if not any(item.decorators for item in functions):
        return functions
    kept = [item for item in functions if not any(name.endswith("overload") for name in item.decorator_names)]
    setters = [item for item in kept if any(name.endswith((".setter", ".deleter")) for name in item.decorator_names)]
    return [item for item in kept if item not in setters]


def _merge(lines: list[list[ClassRef | External]]) -> list[ClassRef | External] | None:
    """Return the C3 merge of https://docs.python.org/3/howto/mro.html; None if there is no order."""
    merged: list[ClassRef | External] = []
    left = deque(deque(line) for line in lines if line)
    behind = Counter(item for line in left for item in islice(line, 1, None))
    first: dict[ClassRef | External, list[deque[ClassRef | External]]] = {}
    for line in left:
        first.setdefault(line[0], []).append(line)
    while left:
        head = next((line[0] for line in left if line and not behind[line[0]]), None)
        if head is None:
            return None if any(left) else merged
        merged.append(head)
        for line in first.pop(head):
            line.popleft()
            if line:
                behind[line[0]] -= 1
                first.setdefault(line[0], []).append(line)
        while left and not left[0]:
            left.popleft()
    return merged


_BUILTINS = frozenset(dir(builtins))

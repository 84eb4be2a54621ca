"""Writes to a class from outside its body: statements below it, loops over classes, hooks of its bases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import msgspec

from opschema_cli.source.python import Assign, Class, Expr, Function, Guard, Import, PythonFile, Scope
from opschema_cli.source.resolution import (
    ClassKey,
    ClassRef,
    External,
    FunctionRef,
    Unresolved,
    ValueRef,
    binds,
)
from opschema_cli.source.resolver import Resolver

HARMLESS_CLASS_DECORATORS = frozenset({"final", "typing.final", "typing.runtime_checkable", "functools.total_ordering"})

GENERATED_BY_DATACLASS = frozenset(
    {"__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__setattr__", "__delattr__"}
    | {"__match_args__", "__dataclass_fields__", "__dataclass_params__", "__slots__", "__getstate__", "__setstate__"}
)
"""Attributes that ``dataclasses.dataclass`` may add to a class."""

MAX_CALLS = 200
"""Maximum number of functions to follow a class through; beyond that, any attribute may be written."""

HARMLESS_METACLASSES = frozenset({"type", "ABCMeta", "abc.ABCMeta"})


class Write(msgspec.Struct, frozen=True):
    """A function's write to attribute ``name`` (``*``: any) of its class argument, under all ``guards``."""

    name: str
    guards: tuple[Guard, ...] = ()


class Patches:
    """The patches of all classes of a program; while they are collected, no attribute of a class is known."""

    def __init__(self, program: Resolver) -> None:
        self.program = program
        self.collecting = False
        self._outside: dict[tuple[str, int], dict[str, list[Assign]]] | None = None
        self._writes: dict[tuple[str, int, int], tuple[Write, ...]] = {}
        self._hooked: dict[ClassKey, list[tuple[ClassRef, FunctionRef]]] = {}

    def share_outside(self, other: Patches) -> None:
        """Share the writes of module-level code with the patches of the same program."""
        self._outside = other._outside_writes

    @cached_property
    def outside_by_file(self) -> dict[str, str]:
        """The writes of module-level code in any file to the classes of each file, as a text that changes only with these
        writes.
        """
        found: dict[str, list[object]] = {}
        for (path, start), written in self._outside_writes.items():
            names = sorted((name, [(item.start, item.sure) for item in items]) for name, items in written.items())
            found.setdefault(path, []).append((start, names))
        return {path: repr(sorted(items, key=repr)) for path, items in found.items()}

    def patched(self, ref: ClassRef, name: str, lineage: list[ClassRef]) -> Unresolved | None:
        """Return why ``name`` may be replaced at run time on ``ref`` or on the classes before its definition."""
        for item in lineage:
            reason = self.replaced(item, name)
            if reason is not None:
                return reason
        for base, hook in self._hooks(ref):
            for write in self.writes(hook, 0):
                if write.name in (name, "*") and any(self._reached(base, item, write) for item in lineage):
                    return Unresolved(f"`{base.name}.__init_subclass__` makes `{name}`")
        return None

    def _hooks(self, ref: ClassRef) -> list[tuple[ClassRef, FunctionRef]]:
        """The hooks of a class's ancestors."""
        found = self._hooked.get(ref.key)
        if found is None:
            found = []
            for base in self.program.lineage(ref)[1:]:
                hook = base.cls.body.function("__init_subclass__")
                if hook is not None:
                    found.append((base, FunctionRef(base.file, hook, base)))
            if not isinstance(self.program.mro(ref), Unresolved):  # which may change, while it is being found
                self._hooked[ref.key] = found
        return found

    def replaced(self, ref: ClassRef, name: str) -> Unresolved | None:
        """Return why code outside a class, a decorator or a metaclass may replace its ``name``."""
        written = self._outside_writes.get(ref.key, {})
        if (name in written or "*" in written) and self.replacement(ref, name) is None:
            return Unresolved(f"`{ref.name}.{name}` is assigned outside the class")
        if not ref.cls.decorators and ref.cls.metaclass is None:
            return None
        for decorator in ref.cls.decorators:
            found = self.program.resolve(ref.file, decorator.callee or decorator.text)
            if isinstance(found, FunctionRef) and not self.written(found, 0) & {name, "*"}:
                continue
            if isinstance(found, External) and found.name == "dataclasses.dataclass" and not _is_generated(ref, name):
                continue
            if not isinstance(found, External) or found.name not in HARMLESS_CLASS_DECORATORS:
                return Unresolved(f"`{ref.name}` is decorated")
        return None if self.has_plain_metaclass(ref) else Unresolved(f"`{ref.name}` has a metaclass")

    def has_plain_metaclass(self, ref: ClassRef) -> bool:
        """Whether a class is created in the default way."""
        if ref.cls.metaclass is None:
            return True
        found = self.program.resolve(ref.file, ref.cls.metaclass.text)
        return isinstance(found, External) and found.name in HARMLESS_METACLASSES

    def _reached(self, base: ClassRef, ref: ClassRef, write: Write) -> bool:
        """Whether the hook of ``base`` may execute a write when ``ref`` is created."""
        if ref == base or base not in self.program.lineage(ref):
            return False
        return not any(self._shut(base, ref, guard) for guard in write.guards)

    def _shut(self, base: ClassRef, ref: ClassRef, guard: Guard) -> bool:
        """Whether a guarded stretch of the hook of ``base`` is known not to run for a class."""
        lineage = self.program.lineage(ref)
        lineage = [ref] if guard.own else lineage[: lineage.index(base)] if guard.base else lineage
        scopes = [item.cls.body for item in lineage]
        bound = [_surely_bound(scope, guard.attribute) for scope in scopes]
        return not any(item is not False for item in bound) if guard.present else True in bound

    def written(self, ref: FunctionRef, index: int) -> frozenset[str]:
        """Return the attributes that a function may write on its parameter ``index``, directly or through calls; ``*`` is any."""
        return frozenset(write.name for write in self.writes(ref, index))

    def writes(self, ref: FunctionRef, index: int) -> tuple[Write, ...]:
        """Return the possible writes of a function to its parameter ``index``, directly or through calls."""
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
        if len(seen) >= MAX_CALLS:
            found[Write("*")] = None
            return
        seen.add(key)
        name = ref.function.params[index].name
        here = [guard for guard in ref.function.guards if guard.variable == name and self._is_clear(ref, guard)]

        def at(offset: int) -> tuple[Guard, ...]:
            return tuple(dict.fromkeys((*guards, *(item for item in here if item.start <= offset < item.end))))

        for scope in ref.function.body.walk():
            for assign in scope.assigns:
                if assign.target.startswith(name + "."):
                    found[Write(assign.target[len(name) + 1 :], at(assign.start))] = None
            for call in scope.calls:
                for target, position in self._receivers(ref, call, name):
                    if isinstance(target, str):
                        found[Write(target, at(call.start))] = None
                    else:
                        self._follow_writes(target, position, at(call.start), found, seen)

    def _is_clear(self, ref: FunctionRef, guard: Guard) -> bool:
        """Whether the base that a guard names, if it names one, is the class that defines the hook."""
        return not guard.base or (
            ref.function.name == "__init_subclass__"
            and self.program.resolve(ref.file, guard.base, (ref.function.body,)) == ref.owner
        )

    def _receivers(self, ref: FunctionRef, call: Expr, name: str) -> Iterator[tuple[FunctionRef | str, int]]:
        """Yield the functions and parameters that a call passes the class in ``name`` to, or an attribute that it sets."""
        owner, _, method = call.callee.rpartition(".")
        if owner == name:
            yield from self._own_method(ref, method)
        for position, keyword in _passed(call, name):
            if call.callee == "setattr":
                yield self._set_name(ref, call), 0
            elif call.callee:
                target = self.program.resolve(ref.file, call.callee, (ref.function.body,))
                if isinstance(target, FunctionRef):
                    yield target, _index(target, position, keyword)

    def _own_method(self, ref: FunctionRef, name: str) -> Iterator[tuple[FunctionRef | str, int]]:
        """Yield a method that a class calls on itself; any attribute if it is not known."""
        lineage = self.program.lineage(ref.owner) if ref.owner is not None else []
        found = next((item for base in lineage if (item := self.program.own_member(base, name)) is not None), None)
        if isinstance(found, FunctionRef):
            yield found, 0
        elif name not in _TYPE_METHODS:
            yield "*", 0

    def _set_name(self, ref: FunctionRef, call: Expr) -> str:
        value = call.items[2] if len(call.items) > 2 else None
        if value is not None and value.kind == "name":
            found = self.program.resolve(ref.file, value.text, (ref.function.body,))
            value = found.assign.value if isinstance(found, ValueRef) and found.assign.sure else None
        return value.value if value is not None and isinstance(value.value, str) else "*"

    def replacement(self, ref: ClassRef, name: str) -> Assign | None:
        """Return the only statement of a class's own file that assigns ``name`` to it, if nothing else writes it from outside."""
        written = self._outside_writes.get(ref.key, {}) if not self.collecting else {}
        found = written.get(name, [])
        if len(found) != 1 or "*" in written or not found[0].sure:
            return None
        return next((item for item in ref.file.body.assigns if item is found[0]), None)

    @property
    def _outside_writes(self) -> dict[tuple[str, int], dict[str, list[Assign]]]:
        """The writes of module-level code to classes: statements by the class's key and attribute."""
        if self._outside is None:
            self._outside, self.collecting = {}, True
            for path in self.program.package_files:
                file = self.program.load(path)
                for ref, name, assign in self._module_writes(file) if file is not None else ():
                    self._outside.setdefault(ref.key, {}).setdefault(name, []).append(assign)
            self.collecting = False
        return self._outside

    def _module_writes(self, file: PythonFile) -> Iterator[tuple[ClassRef, str, Assign]]:
        for assign in file.body.assigns:
            owner, _, name = assign.target.rpartition(".")
            if owner:
                named = list(self.classes_named(file, owner, assign.start))
                sure = assign.sure and len(named) == 1
                for ref in named:
                    yield ref, name, assign if sure else msgspec.structs.replace(assign, sure=False)
        for call in file.body.calls:
            for value in call.items[1:] if call.callee else ():
                # First what the call writes, usually nothing: the value may be each of many imports.
                names = self._call_writes(file, call, value.text) if value.kind == "name" else ()
                if names:
                    for ref in self.classes_named(file, value.text, call.start):
                        for name in names:
                            yield ref, name, Assign(name, call.start, call.end, None, call.span, False)
        yield from self._writes_of_functions(file)

    def _writes_of_functions(self, file: PythonFile) -> Iterator[tuple[ClassRef, str, Assign]]:
        """Yield the writes on the module's classes in functions, which any code may call."""
        for function in file.body.functions:
            owners = {target.rpartition(".")[0] for target in function.written}
            if owners.isdisjoint(file.classes) and owners.isdisjoint(file.imports):
                continue
            for scope in function.body.walk():
                for assign in scope.assigns:
                    owner, _, name = assign.target.rpartition(".")
                    if owner in file.classes or owner in file.imports:
                        found = self.program.resolve(file, owner, (function.body,))
                        if isinstance(found, ClassRef):
                            yield found, name, msgspec.structs.replace(assign, sure=False)

    def _call_writes(self, file: PythonFile, call: Expr, argument: str) -> frozenset[str]:
        if call.callee == "setattr":
            name = call.items[2] if len(call.items) > 2 else None
            constant = name is not None and name.kind == "const" and isinstance(name.value, str)
            return frozenset({str(name.value) if name is not None and constant else "*"})
        target = self.program.resolve(file, call.callee)
        if not isinstance(target, FunctionRef):
            return frozenset()
        places = [_index(target, position, keyword) for position, keyword in _passed(call, argument)]
        return frozenset[str]().union(*(self.written(target, place) for place in places))

    def classes_named(self, file: PythonFile, name: str, at: int) -> Iterator[ClassRef]:
        """Yield the classes that a module-level name refers to: a class, or the values of a loop variable."""
        for loop in file.body.loops:
            if name in loop.targets and loop.body.start <= at < loop.body.end:
                for element in self.elements(file, loop.iterable):
                    for item in element.walk():
                        found = self.program.resolve(file, item.text) if item.kind == "name" else None
                        if isinstance(found, ClassRef):
                            yield found
                return
        found = self.program.resolve(file, name)
        if isinstance(found, ClassRef):
            yield found

    def elements(self, file: PythonFile, expr: Expr) -> tuple[Expr, ...]:
        """Return the elements of a literal collection, or of one that a name refers to."""
        if expr.kind == "name":
            found = self.program.resolve(file, expr.text)
            if isinstance(found, ValueRef) and found.assign.value is not None:
                expr = found.assign.value
        return expr.items if expr.kind == "dict" else expr.elements or ()


def _surely_bound(scope: Scope, name: str) -> bool | None:
    """Whether a class body binds a name: always, never, or None if that depends."""
    found: list[Class | Function | Assign | Import] = [item for item in scope.functions if item.name == name]
    found += [item for item in scope.classes if item.name == name]
    found += [item for item in scope.assigns if item.target == name and binds(item)]
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


def _passed(call: Expr, name: str) -> Iterator[tuple[int, str]]:
    """Yield the positions at which a call passes a name: index and keyword, one of them empty (-1 or none)."""
    position = 0
    for keyword, value in call.args:
        if value.kind == "name" and value.text == name:
            yield (-1, keyword) if keyword else (position, "")
        position += not keyword


def _index(target: FunctionRef, position: int, keyword: str) -> int:
    """Return the index of the parameter that an argument fills; one past the last if there is none."""
    params = target.function.params
    if not keyword:
        return position
    return next((index for index, item in enumerate(params) if item.name == keyword), len(params))


_TYPE_METHODS = frozenset(dir(type)) | frozenset(dir(object))


def _is_generated(ref: ClassRef, name: str) -> bool:
    """Whether ``dataclasses.dataclass`` may write an attribute of a class: a method that it adds, or a field made by a call."""
    fields = (item for item in ref.cls.body.assigns if item.target == name and item.annotation is not None)
    return name in GENERATED_BY_DATACLASS or any(
        item.value is not None and item.value.kind == "call" for item in fields
    )

"""Decides whether a module's name refers to one op class, or to something else with the same name."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.program import ClassRef, External, FunctionRef, Program, Resolution, ValueRef
from opschema_cli.source.python import Import, PythonFile, Scope
from opschema_cli.source.resolution import binds
from opschema_cli.source.text import Span


def another_meaning(program: Program, file: PythonFile, name: str, ref: ClassRef | None) -> Span | None:
    """Return the place where a module binds ``name`` to something other than the class ``ref``; None if there is none.

    A value that stands in for the class where its import fails is no other meaning.
    """
    others = _other_bindings(program, file, name, ref)
    others += _other_attributes(program, file, name, ref)
    return min(others, default=None)


def other_binding(program: Program, file: PythonFile, name: str, ref: ClassRef | None) -> Span | None:
    """Return the place where a module binds ``name``, in any scope, to something other than the class ``ref``; None if there is
    none.
    """
    return min(_other_bindings(program, file, name, ref), default=None)


def _other_bindings(program: Program, file: PythonFile, name: str, ref: ClassRef | None) -> list[Span]:
    scopes = list(file.body.walk())
    imports = [item for scope in scopes for item in scope.imports if name in (item.name, item.attr)]
    others = [item.span for item in imports if not _is_import_of(program, file, item, name, ref)]
    others += [span for scope in scopes for span in _definitions(file, scope, name, ref)]
    if not others and not imports:
        others = [item.span for scope in scopes for item in scope.assigns if item.target == name and binds(item)]
    if not imports and not others and any(item.attr == "*" for item in file.body.imports):
        uses = [use.span for scope in scopes for use in scope.uses if use.name.partition(".")[0] == name]
        others += uses if _is_other(program.resolve(file, name), ref) else []
    return others


def _is_import_of(program: Program, file: PythonFile, item: Import, name: str, ref: ClassRef | None) -> bool:
    if item.attr != name:
        return False
    module = program.absolute_module(file, item)
    path = program.module_path(module) if module is not None else None
    if path is None:
        return module is not None and program.is_local(module)
    return not _is_other(program.module_member(path, name), ref)


def _definitions(file: PythonFile, scope: Scope, name: str, ref: ClassRef | None) -> Iterator[Span]:
    for function in scope.functions:
        if function.name == name:
            yield function.span
        yield from (param.span for param in function.params if param.name == name)
    for cls in scope.classes:
        if cls.name == name and (ref is None or not _is_or_stubs(file, cls.start, ref)):
            yield cls.span


def _is_or_stubs(file: PythonFile, start: int, ref: ClassRef) -> bool:
    """Whether a class is ``ref``, or its stub in the `.pyi` file beside it."""
    return (file.path, start) == ref.key or file.path == f"{ref.file.path}i"


def _other_attributes(program: Program, file: PythonFile, name: str, ref: ClassRef | None) -> list[Span]:
    found: list[Span] = []
    for scope in file.body.walk():
        for use in scope.uses:
            head, _, rest = use.name.partition(f".{name}")
            if rest[:1] in ("", ".") and head != use.name and not head.startswith("torch.ops."):
                found += [use.span] if _is_other(program.resolve(file, f"{head}.{name}", (scope,)), ref) else []
    return found


def _is_other(found: Resolution, ref: ClassRef | None) -> bool:
    """Whether a name is known to refer to something other than ``ref``."""
    if isinstance(found, ClassRef):
        return found != ref
    return isinstance(found, FunctionRef | External | ValueRef)

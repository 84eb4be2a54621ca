"""Looks up names: in the scopes around their use, imports, and star imports."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.evaluation.conditions import doubts, runs
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_BINDINGS
from opschema_cli.evaluation.mutations import changed
from opschema_cli.evaluation.reaching import bindings, bound_at, excludes, loops, reaching
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    BoundArgument,
    ClassValue,
    ExternalName,
    Frame,
    Func,
    ModuleValue,
    PackValue,
    Unknown,
    Value,
    Values,
    distinct,
)
from opschema_cli.source.program import ClassRef, Program
from opschema_cli.source.python import Assign, Binding, Class, Expr, Function, Import, PythonFile
from opschema_cli.source.resolution import star_imports
from opschema_cli.source.text import Span


def found_by_name(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> Values:
    """Return the possible values of a name in a frame, at a place of its body or after it has run."""
    for item in frame.outward():
        if name in item.bindings:
            return _of_parameter(evaluator, item, name, at if item is frame else None)
        if item is not frame and item.body.cls is not None:
            continue
        if item.parent is not None and name in item.body.scope.deleted:
            continue  # `global`
        found = _bound(evaluator, item, name, at if item is frame else _called_at(frame, item))
        if found:
            return found
    return _beyond(evaluator, frame.body.file, name)


def _called_at(frame: Frame, outer: Frame) -> int | None:
    """Return the place where a module calls the code of a frame; None if other code calls it after the module has run."""
    sites = (item.site for item in frame.callers() if item.site is not None) if outer.parent is None else ()
    return next((site.call.start for site in sites if site.frame.body is outer.body), None)


def _of_parameter(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> Values:
    """Return the possible values of a parameter or loop target: its argument, and later assignments to a parameter."""
    given = frame.bindings[name]
    if name not in (item.name for item in frame.body.params):
        return evaluator.values(given)
    options = bindings(frame.body.scope, name)
    if len(options) >= MAX_BINDINGS:
        return UNKNOWN
    start = frame.body.function.start if frame.body.function is not None else 0
    entry = Assign(name, start, start, None, Span(start, start))
    seen = _seen(evaluator, frame, [entry, *options], at)
    values = [value for item in seen if item is not entry for value in _of_binding(evaluator, frame, item, at)]
    passed = evaluator.values(given) if entry in seen else ()
    return distinct([*(changed(evaluator, frame, entry, value, at) for value in passed), *values]) or UNKNOWN


def _bound(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> Values:
    if not (options := bindings(frame.body.scope, name)):
        return ()
    if len(options) > MAX_BINDINGS or (
        frame.parent is None and _may_be_submodule(evaluator, frame.body.file, options[-1])
    ):
        return UNKNOWN
    found = [
        value for item in _seen(evaluator, frame, options, at) for value in _of_binding(evaluator, frame, item, at)
    ]
    if frame.parent is None and "*" in frame.body.scope.named:
        found += _by_stars(evaluator, frame.body.file, name, options[-1].start)
    if frame.parent is None and name in frame.body.file.rebound:
        found += _written_by_functions(evaluator, frame, name)
    return distinct(found) or UNKNOWN


def bindings_seen(evaluator: Evaluator, frame: Frame, name: str, at: int | None) -> list[Binding]:
    """Return the bindings of a name in a body that a use at ``at`` may see; None means after all of them."""
    return _seen(evaluator, frame, bindings(frame.body.scope, name), at)


def _seen(evaluator: Evaluator, frame: Frame, options: list[Binding], at: int | None) -> list[Binding]:
    if len(options) < 2 or len(options) > MAX_BINDINGS:
        return options
    options = [item for item in options if _reaches(evaluator, frame, item, at)]
    return reaching(options, lambda place: doubts(evaluator, frame, place).union(loops(frame.body.scope, place)), at)


def _reaches(evaluator: Evaluator, frame: Frame, item: Binding, at: int | None) -> bool:
    """Whether a binding runs, and does so before a use at ``at``."""
    if at is not None and (bound_at(item) > at or excludes(frame.body.scope, item.start, at)):
        return False
    return runs(evaluator, frame, item.span)


def _of_binding(evaluator: Evaluator, frame: Frame, item: Binding, at: int | None) -> Values:
    if isinstance(item, Function):
        return decorated(evaluator, frame, item)
    if isinstance(item, Class):
        return (ClassValue(ClassRef(frame.body.file, item)),)
    if isinstance(item, Import):
        return _imported(evaluator, frame.body.file, item)
    if item.value is None:
        return _entered_as(evaluator, frame, item)
    return tuple(changed(evaluator, frame, item, value, at) for value in evaluator.evaluate(frame, item.value))


def _entered_as(evaluator: Evaluator, frame: Frame, item: Assign) -> Values:
    """Return the values that ``with … as name`` binds."""
    text = frame.body.file.source.text
    for call in frame.body.scope.calls:
        if call.end < item.start and text[call.end : item.start].split() == ["as"]:
            found = evaluator.evaluate(frame, call)
            return distinct(
                item for value in found for item in (value.entered if isinstance(value, PackValue) else UNKNOWN)
            )
    return UNKNOWN


def _written_by_functions(evaluator: Evaluator, frame: Frame, name: str) -> Iterator[Value]:
    """Yield the values that functions with a ``global`` declaration assign to a module's name."""
    file = frame.body.file
    for body in evaluator.bodies.of(file):
        if body.function is not None and name in body.scope.deleted:
            values = [item.value for item in body.scope.assigns if item.target == name]
            for value in values:
                yield from evaluator.evaluate(evaluator.frames.assumed(body), value) if value is not None else UNKNOWN


# Decorated functions


def decorated(evaluator: Evaluator, frame: Frame, function: Function) -> Values:
    """Return the value of a function's name, with its decorators applied."""
    body = next((item for item in evaluator.bodies.within(frame.body) if item.function is function), None)
    if body is None:
        return UNKNOWN
    found: Values = (Func(body, frame),)
    for decorator in reversed(function.decorators):
        found = decorate(evaluator, frame, decorator, found)
    return found


def decorate(evaluator: Evaluator, frame: Frame, decorator: Expr, found: Values) -> Values:
    """Return the result of a decorator for a function."""
    given = Arguments(frame, decorator, (BoundArgument(frame, None, found),))
    return distinct(item for callee in evaluator.evaluate(frame, decorator) for item in evaluator.apply(callee, given))


# Imports


def _imported(evaluator: Evaluator, file: PythonFile, item: Import) -> Values:
    """Return the value that an import binds."""
    module = evaluator.program.absolute_module(file, item)
    if module is None:
        return UNKNOWN
    if not item.attr:
        name = module if item.name != module.partition(".")[0] else item.name
        path = _module_path(evaluator, name)
        return (ModuleValue(path),) if path is not None else _elsewhere(evaluator, name)
    return _member(evaluator, module, item.attr, file)


def _member(evaluator: Evaluator, module: str, attr: str, file: PythonFile) -> Values:
    path, inner = _module_path(evaluator, module), _module_path(evaluator, f"{module}.{attr}")
    if path is not None and path != file.path:
        found = evaluator.attribute(ModuleValue(path), attr)
        if not isinstance(found[0], Unknown) or inner is None:
            return found
    return (ModuleValue(inner),) if inner is not None else _elsewhere(evaluator, f"{module}.{attr}")


def _module_path(evaluator: Evaluator, dotted: str) -> str | None:
    """Return the file of a module; in folders without ``__init__.py``, the one below the root."""
    plain = f"{dotted.replace('.', '/')}.py"
    return evaluator.program.module_path(dotted) or (plain if plain in evaluator.program.files else None)


def _may_be_submodule(evaluator: Evaluator, file: PythonFile, last: Binding) -> bool:
    """Whether a submodule may replace the object that a package binds to its name. The first import of a submodule, anywhere,
    binds it in its package; an import before that, or by the module that the name comes from, is the first.
    """
    if not file.path.endswith("/__init__.py"):
        return False
    name = last.target if isinstance(last, Assign) else last.name
    dotted = f"{evaluator.program.module_name(file.path)}.{name}"
    if evaluator.program.module_path(dotted) is None:
        return False
    path = evaluator.program.imported_from(file, name)
    source = evaluator.program.load(path[0]) if path is not None else None
    if source is not None and dotted in _imported_modules(evaluator.program, source):
        return False
    return _imported_modules(evaluator.program, file).get(dotted, last.start + 1) > last.start


@lru_cache(maxsize=256)
def _imported_modules(program: Program, file: PythonFile) -> dict[str, int]:
    """Return the modules that a file imports, and their submodules, each with the place of the first import."""
    found: dict[str, int] = {}
    for item in (item for bound in file.body.named.values() for item in bound if isinstance(item, Import)):
        parts = f"{program.absolute_module(file, item) or ''}.{item.attr}".split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            found[name] = min(item.start, found.get(name, item.start))
    return found


def _elsewhere(evaluator: Evaluator, dotted: str) -> Values:
    return UNKNOWN if evaluator.program.is_local(dotted) else (evaluator.external(dotted),)


def _beyond(evaluator: Evaluator, file: PythonFile, name: str) -> Values:
    """Return the value of a name that no scope binds: from a star import, or a built-in."""
    found = _by_stars(evaluator, file, name)
    if found:
        return found
    resolved = evaluator.program.resolve(file, name)
    return (evaluator.external(name),) if getattr(resolved, "name", "") == name else UNKNOWN


def _by_stars(evaluator: Evaluator, file: PythonFile, name: str, after: int = 0) -> Values:
    """Return the values of a name from star imports after an offset.

    A star import binds submodules only if its package imports or lists them, so other values of the name come first.
    """
    imports = star_imports(file.body, name, after)
    found = [value for item in imports for value in _imported(evaluator, file, item)]
    known = [value for value in found if not isinstance(value, Unknown | ExternalName)]
    others = [value for value in known if not isinstance(value, ModuleValue)]
    return distinct(others or (known[:1] if not after else ()))

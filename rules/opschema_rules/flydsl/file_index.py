"""Indexes the words of one file and its mentions of FlyDSL, by content, so that few functions of few files are decoded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from opschema_cli.evaluation.free_names import FreeNames, free_names
from opschema_cli.readings import Reading
from opschema_cli.source.python import Expr, Function, PythonFile, Scope
from opschema_cli.source.word_index import WordIndex, called_word, index_words, scopes_of
from opschema_rules.flydsl.deciding import Decisions
from opschema_rules.flydsl.detection import is_of_flydsl
from opschema_rules.flydsl.forwarding import forwarding_call
from opschema_rules.flydsl.replaced_names import computed_names, may_set, replaced_names, setting_calls
from opschema_rules.flydsl.unbound_names import unbound_names

_DISPLAYS = frozenset({"list", "dict", "set"})


class FileIndex(msgspec.Struct):
    """The words of a file's calls and decorators, and further names in it."""

    words: WordIndex
    imports: list[str]
    """Full names of its imports from FlyDSL."""
    exported: list[str]
    """The module's names that refer to FlyDSL or a part of it; ``*`` if it imports all."""
    making: list[str]
    """The module's functions with FlyDSL decorators, functions that contain such functions, and those in ``forwarding``."""
    forwarding: list[str]
    """The module's functions that compile their first argument with all other arguments."""
    uses: list[str]
    """The dotted uses of the names that these imports bind."""
    plain: bool
    """Whether these names have the same meaning in the entire file."""
    sized: list[str]
    """The functions with a parameter ``max_size``."""
    taking: list[str]
    """The last words of functions that are called with an argument whose kind a cache key may ignore."""
    deciding: list[str]
    """The functions without decorators that may use a parameter in a Python decision."""
    calling: list[str]
    """The last words of functions called by names that may lead to another file."""
    calling_package: list[str]
    """The last words of functions called by names that can only lead to FlyDSL's own files."""
    passing: dict[str, list[str]]
    """The last words of such names that are passed to calls as the first argument, directly or as the function of a passed call;
    each with the last words of the functions that are called.
    """
    bases: dict[str, list[str]]
    """The classes by the last words of their bases."""
    patching: list[str]
    """The top packages through which the file writes to classes of other files; those of one write are separated by spaces."""
    replacing: list[str]
    """The last words of the names that it sets in other modules, when it is imported or when a function runs."""
    replacing_first: list[str]
    """The last words of the names that it sets in other modules when it is imported."""
    computing: list[str]
    """Its strings that may be such names, if it sets names that it computes."""
    unbound: list[str]
    """The names that nothing around their uses binds, in a file that imports FlyDSL."""


def index_file(file: PythonFile) -> FileIndex:
    """Index a file."""
    found = list(scopes_of(file, keep=False))
    scopes = [scope for _, scope in found]
    imports = [item for scope in scopes for item in scope.imports]
    own = [item for item in imports if is_of_flydsl(item)]
    names = {item.name for item in own}
    inner = {name for scope in scopes[1:] for name in _bound(scope)} if names else set[str]()
    outside = _leading(scopes)
    leading = outside.union(names) if outside is not None and not any(item.attr == "*" for item in own) else None
    held = {name for scope in scopes for name in _holding(scope)}
    calls = [call for scope in scopes for call in scope.calls]
    used = [{use.name for use in scope.uses} for scope in scopes] if names else []
    decisions = Decisions(file.source.text)
    forwarding = sorted(item.name for item in file.body.functions if forwarding_call(item) is not None)
    called = {_name(call.items[0]) for call in calls}
    outward = {name for name in called if _leads(outside, name)}
    words = index_words(found)
    setting = [setting_calls(scope) for scope in scopes] if may_set(file.source.text, words.calls) else [[]]
    all_setting = [call for calls in setting for call in calls]
    return FileIndex(
        words,
        sorted({".".join(filter(None, [item.module, item.attr.strip("*")])) for item in own}),
        sorted(_exported(file.body)),
        sorted({*_making(file.body, names), *forwarding}) if names else [],
        forwarding,
        sorted(_uses(used, names)),
        names.isdisjoint(inner) and not any(item.level for item in imports),
        sorted({item.name for scope in scopes for item in scope.functions if item.param("max_size") is not None}),
        sorted(set(_taking(calls, held))),
        sorted(
            {
                item.name
                for scope in scopes
                for item in scope.functions
                if not item.decorators and decisions.may_decide(item)
            }
        ),
        sorted({name.rpartition(".")[2] for name in outward}),
        sorted({name.rpartition(".")[2] for name in called - outward if _leads(leading, name)}),
        _passing(calls, leading),
        _bases(scopes),
        sorted(set(_patches(file))),
        sorted(replaced_names(scopes, all_setting)),
        sorted(replaced_names(scopes[:1], setting[0])),
        sorted(computed_names(scopes, all_setting, words.calls)),
        unbound_names(file, found, used, words.calls) if names else [],
    )


def _bound(scope: Scope) -> Iterator[str]:
    """Yield the names that a scope defines, imports and assigns."""
    yield from (item.name for item in scope.functions)
    yield from (item.name for item in scope.classes)
    yield from (item.name for item in scope.imports)
    yield from (item.target for item in scope.assigns)


def _exported(module: Scope) -> set[str]:
    names = {item.name for item in module.imports if is_of_flydsl(item)}
    aliases = [
        (item.target, item.value.text)
        for item in module.assigns
        if item.value is not None and item.value.kind == "name"
    ]
    return names | {target for target, text in aliases if text.partition(".")[0] in names}


def _making(module: Scope, names: set[str]) -> Iterator[str]:
    for item in module.functions:
        inner = (function for scope in item.peek_body().walk() for function in scope.functions)
        if any(_is_decorated(function, names) for function in (item, *inner)):
            yield item.name


def _is_decorated(function: Function, names: set[str]) -> bool:
    return any(name.partition(".")[0] in names for name in function.decorator_names)


def _leading(scopes: list[Scope]) -> set[str] | None:
    """Return the first words of names that may lead to another file, without those imported from FlyDSL; None for all."""
    found: set[str] = set()
    for scope in scopes:
        imports = [item for item in scope.imports if not is_of_flydsl(item)]
        if any(item.attr == "*" for item in imports):
            return None
        found.update([item.name for item in imports], [item.name for item in scope.classes])
        found.update(item.target for item in scope.assigns if item.value is not None and item.value.kind == "name")
        found.update(item.params[0].name for cls in scope.classes for item in cls.body.functions if item.params)
    return found


def _passing(calls: Iterable[Expr], leading: Collection[str] | None) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for call in calls:
        name = _name(_first(call))
        if _leads(leading, name):
            found.setdefault(name.rpartition(".")[2], set()).add(called_word(call.items[0]))
    return {word: sorted(found[word]) for word in sorted(found)}


def _bases(scopes: Iterable[Scope]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for scope in scopes:
        for cls in scope.classes:
            for base in cls.bases:
                found.setdefault(called_word(base), set()).add(cls.name)
    return {word: sorted(found[word]) for word in sorted(found)}


def _first(call: Expr) -> Expr | None:
    """Return the first argument of a call, or the function called there if that is a call itself."""
    first = call.items[1] if len(call.items) > 1 else None
    return first.items[0] if first is not None and first.kind == "call" else first


def _name(expr: Expr | None) -> str:
    """Return the name in an expression, also in `name[0]` and `name(x)`; empty for anything else."""
    while expr is not None and expr.kind in ("call", "subscript"):
        expr = expr.items[0]
    return expr.text if expr is not None and expr.kind == "name" else ""


def _leads(leading: Collection[str] | None, name: str) -> bool:
    """Whether a name may lead to another file."""
    return bool(name) and (leading is None or name.partition(".")[0] in leading)


def _patches(file: PythonFile) -> Iterator[str]:
    """Yield the top packages through which each statement that may write to a class does so; empty for the file itself."""
    body = file.body
    packages = {item.name: "" if item.level else item.module.partition(".")[0] for item in body.imports}
    classes = packages | {item.name: "" for item in body.classes}
    classes |= {item.target: "" for item in body.assigns if item.value is not None and item.value.kind == "name"}
    functions = classes | {item.name: "" for item in body.functions} | {"setattr": ""}
    classes |= {name: "" for item in body.loops for name in item.targets}
    anything = any(item.attr == "*" for item in body.imports)

    def through(known: dict[str, str], name: str) -> str | None:
        return known.get(name.partition(".")[0], "" if anything else None)

    written = [item.target for item in body.assigns if "." in item.target]
    written += [target for item in body.functions for target in item.written if "." in target]
    yield from (package for target in written if (package := through(classes, target)) is not None)
    for call in body.calls:
        callee = through(functions, call.callee)
        passed = [item.text for item in call.items[1:] if item.kind == "name"] if callee is not None else ()
        yield from (f"{callee} {package}" for name in passed if (package := through(classes, name)) is not None)


def _uses(used: Iterable[set[str]], names: set[str]) -> set[str]:
    return {name for name in set().union(*used) if "." in name and name.partition(".")[0] in names}


def _holding(scope: Scope) -> Iterator[str]:
    """Yield the names that hold lists, dicts and sets, or elements of some in a loop or by a test."""
    tests = (item for item in scope.functions if any(name.endswith("parametrize") for name in item.decorator_names))
    yield from (param.name for item in tests for param in item.params)
    yield from (item.target for item in scope.assigns if item.value is not None and item.value.kind in _DISPLAYS)
    yield from (
        name
        for item in scope.loops
        if item.iterable.kind != "call" or _is_of_items(item.iterable)
        for name in item.targets
    )


def _is_of_items(call: Expr) -> bool:
    return call.items[0].text.rpartition(".")[2] in ("items", "values", "enumerate")


def _taking(calls: Iterable[Expr], held: Collection[str]) -> Iterator[str]:
    """Yield the last words of functions called with an argument whose kind a cache key may ignore; ``held`` are names of such
    values.
    """
    for call in calls:
        for item in call.items[1:]:
            kind = item.kind
            name = item if kind == "name" else item.items[0] if kind == "subscript" else None
            if name is not None:
                missed = (name.kind == "name" and name.text in held) or item.text.startswith("torch.")
            else:
                missed = kind in _DISPLAYS
            if missed:
                yield call.callee.rpartition(".")[2]
                break


FILE_INDEX: Reading[PythonFile, FileIndex] = Reading("flydsl index 10", index_file, FileIndex)

FREE_NAMES: Reading[PythonFile, FreeNames] = Reading("free variables", free_names, FreeNames)

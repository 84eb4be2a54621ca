"""Code of a file that may change the dicts and lists of its descriptions after they are written, under any name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import params_for
from opschema_cli.source.container_changes import CHANGING
from opschema_cli.source.python import Assign, Expr, Param, PythonFile, Scope

_DESCRIPTIONS = ("KERNELS", "ORCHESTRATION", "CALLABLE")
_LISTS = frozenset({"arg_index", "signature"})
_WORDS = frozenset({"config_name", "core_type", "func_id", "function_name", "name", "source"})
"""Fields that no code can change in place."""

_HOLDING = frozenset({"copy.copy", "copy.deepcopy", "dict", "enumerate", "filter", "iter", "list", "map", "next"})
_HOLDING |= {"reversed", "set", "sorted", "tuple", "zip"}
"""Functions that change nothing, and whose result may hold their arguments."""

_READING = _HOLDING | {"all", "any", "isinstance", "json.dumps", "len", "max", "min", "print", "repr", "str", "sum"}
_READING |= {"ChipCallable.build", "CoreCallable.build"}
_HARNESS = ("simpler", "simpler_setup")
"""Packages whose functions only read descriptions."""

_GIVING = frozenset({"copy", "get", "items", "pop", "setdefault", "values"})
"""Methods whose result may be a part of the object."""

_ADDING = frozenset({"append", "extend", "insert"})
_OF_KEY = frozenset({"__delitem__", "__setitem__", "pop", "setdefault"})
_OF_PARTS = frozenset({"boolop", "ifexp", "lambda", "list", "set", "starred", "tuple", "walrus"})
_OF_FIRST = frozenset({"generator", "listcomp", "setcomp", "subscript"})
_IN_PLACE = re.compile(r"\s*(?:[-+*/%@&|^]|//|\*\*|<<|>>)=")


def may_change(file: PythonFile, expr: Expr | None = None) -> bool:
    """Whether code of a file may change signatures in its descriptions, or the containers that an expression of it refers to:
    it stores into one, calls a method that changes it, or passes it to a function that is not known.
    """
    names, changed = _changes(file)
    asked = names.of(expr) if expr is not None else _DESCRIPTIONS
    return any(names.first(name) in changed for name in asked)


@cached_on_argument
def _changes(file: PythonFile) -> tuple[_Names, frozenset[str]]:
    """Return the groups of a file's names, and the first name of each group in which something may be changed."""
    scopes = list(file.body.walk())
    names = _Names(file, scopes)
    changed = set(_stored(file, scopes))
    for scope in scopes:
        names.follow(scope)
        changed.update(_last(item.target) for item in scope.assigns if _is_in_place(file, item))
        changed.update(name for call in scope.calls for name in names.changed(call))
    return names, frozenset(map(names.first, changed))


def _stored(file: PythonFile, scopes: Iterable[Scope]) -> Iterator[str]:
    """Yield the names under which items are written or deleted, but for items of known keys that are no part of a signature."""
    stores = (item for item in file.facts.changes if item.kind in ("write", "delete"))
    found = Counter(_last(item.holder) for item in stores if not item.key or item.key in _LISTS)
    items = (item for scope in scopes for item in scope.items)
    found.subtract(_last(item.target) for item in items if item.key not in _LISTS)
    yield from (name for name, number in found.items() if number > 0)


def _is_in_place(file: PythonFile, item: Assign) -> bool:
    """Whether a name is assigned as in ``x += y``; kernels may be added so."""
    augmented = item.value is None and _IN_PLACE.match(file.source.text, item.end) is not None
    return augmented and item.target != "KERNELS"


class _Names:
    """Groups the names of a file whose containers may be the same, or parts of each other."""

    def __init__(self, file: PythonFile, scopes: Sequence[Scope]) -> None:
        assigns = [item for scope in scopes for item in scope.assigns]
        values = [(_last(item.target), item.value) for item in assigns if item.value is not None]
        described = [value for name, value in values if name in _DESCRIPTIONS]
        self.attributes = {*_DESCRIPTIONS, *(_last(item.target) for item in assigns if "." in item.target)}
        self.fixed = {name for name, value in values if self._is_fixed(value)}
        self.fixed -= {name for name, value in values if not self._is_fixed(value)}
        imports = [item for scope in scopes for item in scope.imports]
        self.fixed |= {item.name for item in imports}
        self.harness = {item.name for item in imports if item.module.partition(".")[0] in _HARNESS}
        self.functions = {item.name: item.params for scope in scopes for item in scope.functions}
        self.inner = {part.start for value in described for part in value.walk() if part.kind == "call"}
        self._next: dict[str, str] = {}

    def first(self, name: str) -> str:
        """Return the first name of a name's group."""
        while (after := self._next.get(name, name)) != name:
            self._next[name] = self._next.get(after, after)
            name = after
        return name

    def follow(self, scope: Scope) -> None:
        """Group the names of a scope by what is assigned, iterated and passed."""
        for item in scope.assigns:
            if item.value is not None:
                self._group(_named(item.target), item.value)
        for loop in scope.loops:
            self._group(loop.target, loop.iterable)
        for unpack in scope.unpacks:
            self._group(*map(_named, unpack.targets), unpack.value)
        for call in scope.calls:
            self._group(call)
            for param, value in self._passed(call):
                if param is not None:
                    self._group(_named(param.name), value)

    def changed(self, call: Expr) -> Iterator[str]:
        """Yield the names of what a call may change."""
        owner, method = call.items[0].owner, call.items[0].member
        if owner is not None and method in CHANGING:
            if not _is_harmless(call, owner, method):
                yield from _DESCRIPTIONS if owner.kind == "other" else self.of(owner)
        elif method not in _GIVING and not self._only_reads(call):
            yield from (name for param, value in self._passed(call) if param is None for name in self.of(value))

    def of(self, expr: Expr) -> Iterator[str]:
        """Yield the names whose containers the value of an expression may be, hold or be a part of."""
        if expr.kind == "name":
            name = _last(expr.text)
            if name not in self.fixed and (name == expr.text or name in self.attributes):
                yield name
        else:
            yield from (name for part in _parts(expr) for name in self.of(part))

    def _only_reads(self, call: Expr) -> bool:
        """Whether a call changes no argument, or makes a part of a description."""
        known = call.callee in _READING or call.callee.partition(".")[0] in self.harness
        return known or call.start in self.inner

    def _group(self, *exprs: Expr) -> None:
        self._join(exprs)
        for expr in exprs:
            for part in expr.walk():
                if part.kind == "for":
                    self._join(part.items[:2])

    def _join(self, exprs: Iterable[Expr]) -> None:
        firsts = [self.first(name) for expr in exprs for name in self.of(expr)]
        self._next.update((name, firsts[0]) for name in firsts)

    def _passed(self, call: Expr) -> list[tuple[Param | None, Expr]]:
        """Return the arguments of a call, each with its parameter if the function is one of the file."""
        params = self.functions.get(call.items[0].member)
        if params is None:
            return [(None, value) for value in call.items[1:]]
        return list(zip(params_for(call, params[call.items[0].owner is not None :]), call.items[1:], strict=True))

    def _is_fixed(self, value: Expr) -> bool:
        """Whether a value is no container: a constant, or an attribute of something else."""
        return value.kind == "const" or (
            value.kind == "name" and _last(value.text) not in (value.text, *self.attributes)
        )


def _parts(expr: Expr) -> Sequence[Expr]:
    """Return the parts of an expression that its value may be, hold or be a part of."""
    if expr.kind == "dict":
        return [value for key, value in zip(expr.items[::2], expr.items[1::2], strict=True) if not _is_apart(key.value)]
    if expr.kind in _OF_FIRST:
        return expr.items[:1] if expr.kind != "subscript" or expr.items[1].value not in _WORDS else ()
    if expr.kind == "call":
        owner = expr.items[0].owner if expr.items[0].member in _GIVING else None
        held = [value for word, value in expr.args if not _is_apart(word)] if expr.callee in _HOLDING else []
        return held if owner is None else [owner]
    if expr.kind == "dictcomp":
        return expr.items[1:2]
    return expr.items if expr.kind in _OF_PARTS or (expr.kind == "binary" and expr.text in ("+", "*", "|")) else ()


def _is_apart(key: object) -> bool:
    """Whether a field holds no dict of a description. Lists of directions, which kernels may share, are asked about themselves."""
    return key in _WORDS or key in _LISTS


def _is_harmless(call: Expr, owner: Expr, method: str) -> bool:
    """Whether a method adds to a list of kernels, or sets or removes a field other than the lists of a signature."""
    if method in _ADDING and (
        owner.text == "KERNELS" or (owner.kind == "subscript" and owner.items[1].value == "incores")
    ):
        return True
    key = call.items[1].value if len(call.items) > 1 else None
    return method in _OF_KEY and isinstance(key, str) and key not in _LISTS


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _named(name: str) -> Expr:
    return Expr("name", 0, 0, name)

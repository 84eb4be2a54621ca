"""Extensions that a ``setup.py`` makes.

Its text is read as the body of a function, so that its statements are known in their order. Calls of ``CppExtension``,
``CUDAExtension`` and the like are targets; lists of sources are followed through functions, loops and conditions, with
``glob``, ``os.path`` and ``pathlib`` on paths relative to the script.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

import msgspec

from opschema_cli.source.cmake.conditions import Origin, joined
from opschema_cli.source.cmake.targets import Target
from opschema_cli.source.python import Expr, Function, Param, PythonFile, Scope, Statement
from opschema_cli.source.starlark.expressions import Scope as Names
from opschema_cli.source.starlark.expressions import evaluate, joined_path, parent_path
from opschema_cli.source.starlark.script_modules import (
    Location,
    Module,
    ScriptRunner,
    Scripts,
    doubt,
    may_change,
    no_script,
)
from opschema_cli.source.starlark.values import (
    UNKNOWN,
    ExtensionValue,
    FunctionValue,
    ListValue,
    NamedRule,
    Value,
    is_extension,
    macros_in,
    strings,
)

MAX_WORK = 200_000
"""Maximum number of expressions, statements and items of lists to evaluate in one script; this takes one second."""

_HEADER = "def setup_script():\n"
_COPIES = frozenset({"list", "tuple", "sorted", "reversed", "copy", "deepcopy"})
_DISTINCT = frozenset({"set", "frozenset", "fromkeys"})
_CHANGING = frozenset({"append", "extend", "insert", "remove", "pop", "clear"})
_SAME = frozenset({"str", "abspath", "realpath", "normpath", "fspath", "expanduser"})
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "dict"})
_SAME_METHODS = frozenset({"resolve", "absolute", "as_posix", "expanduser", "strip"})


def as_function(text: str) -> str:
    """Return the text of a script as a module with one function that does the same."""
    return _HEADER + "".join(f" {line}" for line in text.splitlines(keepends=True)) + "\n pass\n"


class Made(msgspec.Struct, frozen=True):
    """An extension, and the end of the name that creates it in the script; ``complete`` if all its sources are known."""

    target: Target
    at: int
    complete: bool


class _Making(msgspec.Struct):
    """An extension that may still change: ``given`` is the list that it was created from, and ``before`` its items at that time;
    later changes of the list may or may not apply to it.
    """

    value: ExtensionValue
    given: Value
    before: list[tuple[Value, Origin]]
    name: str
    macros: tuple[tuple[str, str], ...]
    at: int
    conditions: frozenset[tuple[str, bool]]

    def made(self) -> Made:
        """Return the extension with its final sources."""
        sources = self.value.sources
        if isinstance(self.given, ListValue) and not _same(self.given.items, self.before):
            known = {id(item) for item, _ in self.before}
            added = [pair for pair in self.given.items if id(pair[0]) not in known]
            sources = ListValue([(item, None) for item, _ in (*sources.items, *added)], open=True)
        listed = tuple((path, joined(origin, self.conditions)) for path, origin in strings(sources))
        target = Target(self.name, listed, self.macros, extension=True)
        return Made(target, self.at, not sources.open and len(listed) == len(sources.items))


class _TooMuchError(Exception):
    """Raised if a script exceeds :data:`MAX_WORK`."""


class SetupScript(ScriptRunner):
    """One script, from its :func:`as_function`. ``glob`` returns the files of the tree that match a pattern, ``scripts`` the
    function of another script by path.
    """

    def __init__(
        self,
        file: PythonFile,
        folder: str,
        glob: Callable[[str], Sequence[str]],
        scripts: Scripts = no_script,
    ) -> None:
        super().__init__(file, folder, scripts)
        self.glob = glob
        self._parent: SetupScript | None = None
        self._made: list[_Making] = []
        self._work_left = MAX_WORK
        self._functions: dict[int, Function] = {}
        self._defaults: dict[tuple[int, str], Value] = {}

    def extensions(self) -> list[Made]:
        """Return the extensions that the script makes, as far as it can be followed; otherwise none of their sources is certain."""
        self.execute()
        found = [item.made() for item in self._made]
        return list(map(_doubtful, found)) if self.unfollowed else found

    def beside(self, file: PythonFile) -> SetupScript:
        """Return a runner for another script, whose extensions are added to those of this one."""
        script = type(self)(file, self.folder, self.glob, self.scripts)
        script._made, script._parent = self._made, self
        return script

    def execute(self) -> None:
        """Run the statements of the script."""
        functions = self.file.body.functions
        if len(functions) == 1:
            body = functions[0].body
            self._note(body)
            try:
                self.block(functions[0].statements, self.names, self.names)
            except (_TooMuchError, RecursionError):
                self.unfollowed = True

    def _note(self, scope: Scope) -> None:
        """Record the functions in a scope, and the imports there or in them."""
        for item in scope.imports:
            plain = item.module.partition(".")[0] == item.name  # `import os.path`
            full = item.name if plain and not item.attr else ".".join(filter(None, (item.module, item.attr)))
            self.names.setdefault(item.name, NamedRule(full))
        for function in scope.functions:
            self._functions[function.outer.start] = function
            self._note(function.body)

    def spend(self, work: int) -> None:
        """Count work of the script, and of those that it loads."""
        if self._parent is not None:
            self._parent.spend(work)
        self._work_left -= work
        if self._work_left < 0:
            raise _TooMuchError

    def module_of(self, value: FunctionValue) -> Names:
        """Return the names of the script."""
        return self.names

    def ran(self, value: FunctionValue, named: Mapping[str, Value], *, makes: bool) -> None:
        """Do nothing: extensions are recorded by the calls that make them."""

    # Statements

    def other(self, statement: Statement, local: dict[str, Value], scope: Names) -> Value | None:
        """Run a statement that Starlark does not have."""
        if statement.kind == "def" and statement.start in self._functions:
            function = self._functions[statement.start]
            local[statement.text] = FunctionValue(function, self.file)
            for item in function.params:
                if item.default is not None:
                    self._defaults[statement.start, item.name] = evaluate(item.default, scope, self)
        elif statement.kind == "annassign" and len(statement.exprs) > 2:
            self.assign(statement.exprs[:1], evaluate(statement.exprs[2], scope, self), local, scope)
        elif statement.kind == "with":
            return self.block(statement.blocks[0], local, scope)
        elif statement.kind in ("try", "while"):
            self._repeated(statement, local, scope)
        elif statement.kind in ("break", "continue", "global", "nonlocal", "delete", "match", "other"):
            self.unfollowed = True
        return None

    def _repeated(self, statement: Statement, local: dict[str, Value], scope: Names) -> None:
        """Run a ``try`` or ``while``, which may run only partly."""
        before = self.conditions
        for at, block in enumerate(statement.blocks):
            is_try = statement.kind == "try"
            inner = [item for one in block for item in one.blocks[0]] if is_try and at == 1 else block
            if not is_try or at < 3:  # an error ends the body; `finally` always runs
                self.continue_under(before | {(f"{self.file.path} {statement.start}", not is_try or at == 1)})
            returned = self.block(inner, local, scope)
            if returned is not None:
                self.leave(returned, (f"{self.file.path} {statement.start} {at}", True))
            self.continue_under(before)

    def default(self, function: Function, param: Param, module: Names) -> Value:
        """Return the default of a parameter, the same object for all calls."""
        key = (function.outer.start, param.name)
        return self._defaults[key] if key in self._defaults else super().default(function, param, module)

    def assign(self, targets: Sequence[Expr], value: Value, local: dict[str, Value], scope: Names) -> None:
        """Bind names; under a condition, a name may also keep its previous value."""
        for target in targets:
            if target.kind == "name" and "." not in target.text:
                self._set(local, target.text, value)
            elif target.kind in ("tuple", "list"):
                listed = value.items if isinstance(value, ListValue) and not value.open else []
                values = (
                    [item for item, _ in listed] if len(listed) == len(target.items) else [UNKNOWN] * len(target.items)
                )
                for item, one in zip(target.items, values, strict=True):
                    self.assign([item], one, local, scope)
            else:
                owner = evaluate(target.items[0], scope, self) if target.kind == "subscript" else UNKNOWN
                if isinstance(owner, ListValue):
                    doubt(owner)
                self._set_attribute(target, value, scope)
                super().assign([target], value, local, scope)

    def _set(self, names: dict[str, Value], name: str, value: Value) -> None:
        """Bind a name; under a condition, it may also keep its previous value."""
        names[name] = self._either(names[name], value) if self.conditions and name in names else value

    def _set_attribute(self, target: Expr, value: Value, scope: Names) -> None:
        """Set an attribute of a module or namespace, or the sources of an extension."""
        name, holder = target.member, evaluate(target.owner, scope, self) if target.owner is not None else UNKNOWN
        names = holder.script.names if isinstance(holder, Module) else holder
        if name and isinstance(names, dict):
            self._set(names, name, value)
        elif (
            name == "sources"
            and isinstance(holder, ExtensionValue)
            and isinstance(value, ListValue)
            and not self.conditions
        ):
            holder.sources = value
        elif name == "sources":
            self.unfollowed = True

    def _extend(self, statement: Statement, local: dict[str, Value], scope: Names) -> None:
        target = statement.exprs[0]
        if target.member == "sources" and not isinstance(evaluate(target, scope, self), ListValue):
            self.unfollowed = True
        super()._extend(statement, local, scope)

    def _either(self, old: Value, new: Value) -> Value:
        """Return the value of a name that had another value before the conditions of this place."""
        if isinstance(new, ListValue):
            added = new.under(self.conditions)
            before = old.items if isinstance(old, ListValue) else []
            kept = [(item, origin if any(item == other for other, _ in new.items) else None) for item, origin in before]
            self.spend(len(kept) * len(new.items))
            fresh = [(item, origin) for item, origin in added.items if all(item != other for other, _ in before)]
            return ListValue([*kept, *fresh], new.open or not isinstance(old, ListValue) or old.open)
        return old if old == new or (is_extension(old) and is_extension(new)) else UNKNOWN

    # Calls

    def member(self, value: Value, name: str) -> Value:
        """Return the folder of a path, the sources of an extension, or a name of a module."""
        if isinstance(value, Module):
            return value.get(name)
        if isinstance(value, ExtensionValue) and name == "sources":
            return value.sources
        return parent_path(value) if isinstance(value, str) and name == "parent" else UNKNOWN

    def method(self, call: Expr, scope: Names) -> Value | None:
        """Return the result of a method of a path, string or list."""
        found = super().method(call, scope)
        owner = call.items[0].owner
        if found is not None or owner is None:
            return found
        value, name = evaluate(owner, scope, self), call.items[0].member
        if isinstance(value, str):
            return self._of_text(value, name, self.arguments(call, scope)[0])
        if isinstance(value, ListValue):
            return self._of_list(value, name, self.arguments(call, scope)[0])
        if owner.member == "sources" and name in _CHANGING:
            self.unfollowed = True
        return None

    def _of_text(self, value: str, name: str, given: list[Value]) -> Value:
        texts = [item for item in given if isinstance(item, str)]
        if name in _SAME_METHODS:
            return value
        if name == "joinpath" and len(texts) == len(given):
            return joined_path([value, *texts])
        if name in ("glob", "rglob") and texts:
            return self._glob(posixpath.join(value, *(["**"] if name == "rglob" else []), texts[0]))
        if name == "split" and len(given) == len(texts) <= 1 and "" not in texts:
            return ListValue([(item, frozenset()) for item in value.split(texts[0] if texts else None)])
        if name == "join" and given and isinstance(given[0], ListValue) and not given[0].open:
            parts = [item for item, _ in given[0].items if isinstance(item, str)]
            return value.join(parts) if len(parts) == len(given[0].items) else UNKNOWN
        if name == "replace" and len(texts) == len(given) == 2:
            return value.replace(texts[0], texts[1]) if len(value) * max(1, len(texts[1])) <= MAX_WORK else UNKNOWN
        return UNKNOWN

    def _of_list(self, value: ListValue, name: str, given: list[Value]) -> Value:
        if name == "copy":
            return ListValue(list(value.items), value.open)
        if name == "insert" and len(given) == 2:
            value.items.append((given[1], self.conditions))
        elif name not in ("sort", "reverse", "index", "count"):
            doubt(value)
        return UNKNOWN

    def outside(self, dotted: str, positional: list[Value], named: dict[str, Value], call: Expr) -> Value:
        """Return the value of a call of a function from outside the script."""
        name = dotted.rpartition(".")[2]
        if is_extension(NamedRule(dotted)):
            return self.extension(positional, named, call)
        if dotted in _NAMESPACES and not positional:
            return dict(named)
        copied = self._of_first(name, positional[0]) if positional else None
        if copied is not None:
            return copied
        texts = [item for item in positional if isinstance(item, str)]
        if len(texts) == len(positional):
            found = self._of_path(name, texts, dotted, named)
            if found is not None:
                return found
        for value in (*positional, *named.values()):
            self.unfollowed |= isinstance(value, Module)
            may_change(value, extensions=name != "setup")
        return UNKNOWN

    def _of_first(self, name: str, value: Value) -> Value | None:
        """Return the result of a function that copies a list or makes a module; None for any other."""
        if name == "module_from_spec" and isinstance(value, Location):
            return self.module(value)
        if name in _COPIES and isinstance(value, ListValue):
            return ListValue(list(value.items), value.open)
        return value.distinct() if name in _DISTINCT and isinstance(value, ListValue) else None

    def _of_path(self, name: str, given: list[str], dotted: str, named: Mapping[str, Value]) -> Value | None:
        """Return the result of a function on paths; None for any other."""
        if name == "spec_from_file_location" and len(given) == 2:
            return Location(given[0], given[1])
        if dotted in ("os.getcwd", "os.curdir", "pathlib.Path.cwd") and not given:
            return "."
        if not given:
            return None
        if name == "dirname":
            return parent_path(given[0])
        if dotted.endswith("path.join") or name in ("Path", "PurePath", "PosixPath"):
            return joined_path(given)
        if name == "relpath" and given[0].startswith("//"):
            return given[0]
        if name == "relpath":
            return posixpath.relpath(given[0] or ".", given[1] or ".") if len(given) > 1 else given[0]
        if name in ("glob", "iglob"):
            return self._glob(given[0] if named.get("recursive") is True else given[0].replace("**", "*"))
        return given[0] if name in _SAME else None

    def _glob(self, pattern: str) -> ListValue:
        found = self.glob(posixpath.normpath(posixpath.join(self.folder, pattern)))
        self.spend(len(found))
        return ListValue([(f"//{path}", frozenset()) for path in found])

    # Extensions

    def extension(self, positional: Sequence[Value], named: Mapping[str, Value], call: Expr) -> ExtensionValue:
        """Make an extension from its name and sources."""
        given = {**dict(zip(("name", "sources"), positional, strict=False)), **named}
        name, sources = given.get("name"), given.get("sources")
        pairs = given.get("define_macros")
        defined = [tuple(strings(item)) for item, _ in pairs.items] if isinstance(pairs, ListValue) else []
        macros = [(pair[0][0], pair[1][0]) for pair in defined if len(pair) == 2]
        flags = given.get("extra_compile_args")
        for value in flags.values() if isinstance(flags, dict) else (flags,):
            macros += macros_in(flag for flag, _ in strings(value))
        items: list[tuple[Value, Origin]] = (
            list(sources.items) if isinstance(sources, ListValue) else [*strings(sources)]
        )
        value = ExtensionValue(ListValue(list(items), not isinstance(sources, ListValue) or sources.open))
        self.made += 1
        title, at = name if isinstance(name, str) else "", self._at(call.items[0].end)
        self._made.append(_Making(value, sources, items, title, tuple(macros), at, self.conditions))
        return value

    def _at(self, offset: int) -> int:
        """Convert a place in the function to one in the script."""
        lines = self.file.source.text.count("\n", len(_HEADER), offset) + 1
        return offset - len(_HEADER) - lines


def _same(items: Sequence[tuple[Value, Origin]], others: Sequence[tuple[Value, Origin]]) -> bool:
    """Whether two lists have the same objects under the same conditions."""
    pairs = zip(items, others, strict=False)
    return len(items) == len(others) and all(a is b and one == other for (a, one), (b, other) in pairs)


def _doubtful(made: Made) -> Made:
    sources = tuple((path, None) for path, _ in made.target.sources)
    return Made(msgspec.structs.replace(made.target, sources=sources), made.at, False)

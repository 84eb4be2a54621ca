"""Finds the calls of traced functions: by name, on the result of a factory, through ``flyc.compile``, and through helpers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.forwarding import COMPILE, forwarding_call
from opschema_rules.flydsl.made_functions import Made, MadeFunctions
from opschema_rules.flydsl.model import Call, FlyTree, Traced
from opschema_rules.flydsl.rebinding import may_be_another


class _Use(msgspec.Struct, frozen=True, eq=False):
    """A call of one of several functions, such as those that a factory may return."""

    made: tuple[Made, ...]
    body: Body
    expr: Expr
    launches: tuple[Expr, ...] = ()


class Calls:
    """The calls of the traced functions of a tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self.bodies = tree.bodies
        self._made = MadeFunctions(tree)
        self._compilers = self._made.compilers
        self._launching: dict[Body, _Launches] = {}
        self._within: dict[Body, dict[Made, list[_Use]]] = {}

    def of(self, traced: Traced) -> list[Call]:
        """Return the calls of a traced function: first those by its name, then those through other names."""
        found = [
            Call(traced, body, expr, self._launches(body, expr)) for body, expr in self.bodies.calls_of(traced.body)
        ]
        compilers = self.tree.words.compiling()
        passed = compilers if traced.decorator in traced.function.decorators else compilers | self._compilers
        for use in self._uses(traced, traced.body, self._applied_names(traced), passed):
            others = tuple(item for item in use.made if isinstance(item, Traced) and item is not traced)
            if use.made[0] is traced and len(others) == len(use.made) - 1:
                found.append(Call(traced, use.body, use.expr, use.launches, others))
        return found

    def of_result(self, function: Body) -> list[tuple[Body, Expr]]:
        """Return the calls on results of factories that may call an untraced function."""
        uses = self._uses(function, function, set(), self.tree.words.compiling())
        return [(use.body, use.expr) for use in uses]

    def _uses(self, made: Made, body: Body, applied: set[str], passed: frozenset[str]) -> Iterator[_Use]:
        """Yield the calls of a function through other names, and the calls that compile it."""
        name, home, factory = body.function.name if body.function is not None else "", body.file.path, body.parent
        words = self.tree.words
        held = words.aliased(self._made.holders(made, factory) | applied)
        paths = {path for word in words.aliased([name]) for path in words.passing(word, home, passed)}
        for word in held:
            paths.update(words.calling(word, home))
        for path in words.in_order(paths):
            file = self.bodies.program.load(path)
            for caller in self.bodies.calling(file, held | words.compiling()) if file is not None else ():
                yield from self.within(caller).get(made, ())

    def called_in(self, body: Body) -> Iterator[Traced]:
        """Yield the traced functions that a body calls, by their own or other names."""
        for call in body.scope.calls:
            callee = call.items[0]
            found = self._named(body, callee) or _only(self._made.of(body, callee))
            if found is not None:
                yield found

    def within(self, body: Body) -> dict[Made, list[_Use]]:
        """Return the calls in a body on results of factories, and those of ``flyc.compile``, by the functions that they may
        call.
        """
        if body not in self._within:
            found = self._within[body] = {}
            for use in self._find_within(body):
                for made in use.made:
                    found.setdefault(made, []).append(use)
        return self._within[body]

    def _find_within(self, body: Body) -> Iterator[_Use]:
        for call in body.scope.calls:
            made = self._made.of(body, call.items[0])
            if made:
                yield _Use(made, body, call, self._launches(body, call))
            elif self._is_compile(body, call) or self._is_forwarded(body, call):
                target, *given = call.args
                made = self._made.of(body, target[1])
                named = self._named(body, target[1]) if not made else None
                made = made if named is None else (named,)
                if given and not target[0] and made:
                    expr = Expr("call", call.start, call.end, items=call.items[1:], keywords=call.keywords[1:])
                    yield _Use(made, body, expr)

    def _launches(self, body: Body, call: Expr) -> tuple[Expr, ...]:
        if body not in self._launching:
            self._launching[body] = _Launches(body)
        return self._launching[body].of(call)

    def _is_compile(self, body: Body, call: Expr) -> bool:
        callee = call.items[0].items[0] if call.items[0].kind == "subscript" else call.items[0]
        named = bool(call.args) and callee.text.endswith("compile")
        full = self.tree.names.full(body, callee.text) if named else ""
        return full.startswith("flydsl.compiler.") and full.rpartition(".")[2] == COMPILE

    def _is_forwarded(self, body: Body, call: Expr) -> bool:
        """Whether a call is of a helper that compiles its first argument with all other arguments."""
        name = called_word(call.items[0])
        if name not in self.tree.words.compiling() or may_be_another(self.tree, body, call.items[0]):
            return False
        helper = self.bodies.called(body, call.callee)
        inner = forwarding_call(helper.function) if helper is not None and helper.function is not None else None
        return helper is not None and inner is not None and self._is_compile(helper, inner)

    def _named(self, body: Body, expr: Expr) -> Traced | None:
        if expr.kind != "name" or self._is_never_traced(body, expr.text):
            return None
        return self.tree.traced_of(self.bodies.called(body, expr.text))

    def _is_never_traced(self, body: Body, dotted: str) -> bool:
        """Whether a name refers to a function that is never traced, by the recorded facts of its file alone."""
        wrapping = self.tree.names.wrapping(body, dotted)
        if wrapping is None or not wrapping.isdisjoint(self._compilers):
            return False
        name = self.tree.names.meaning(body, dotted).name.rpartition(".")[2]
        return not self.tree.words.is_passed(name, self._compilers)

    def _applied_names(self, traced: Traced) -> set[str]:
        """Return the names that are assigned the result of ``flyc.jit(function)``."""
        if traced.decorator in traced.function.decorators:
            return set()
        words, found = self.tree.words, set[str]()
        homes = (words.passing(word, traced.body.file.path, self._compilers) for word in words.aliased([traced.name]))
        for path in words.in_order(path for paths in homes for path in paths):
            file = self.bodies.program.load(path)
            for body in self.bodies.calling(file, self._compilers) if file is not None else ():
                found.update(item.target for item in body.scope.assigns if _is_at(item.value, traced.decorator))
        return {name.rpartition(".")[2] for name in found}


def _only(made: tuple[Made, ...]) -> Traced | None:
    """Return the traced function of an expression, if it can be no other."""
    return made[0] if len(made) == 1 and isinstance(made[0], Traced) else None


def _is_at(expr: Expr | None, other: Expr) -> bool:
    return expr is not None and expr.span == other.span


class _Launches:
    """The calls of ``.launch`` in a body, by their receivers."""

    def __init__(self, body: Body) -> None:
        self._held: dict[Span, list[str]] = {}
        for item in body.scope.assigns:
            if item.value is not None and item.value.kind == "call":
                self._held.setdefault(item.value.span, []).append(item.target)
        self._calls = body.scope.calls
        self._on: dict[Span | str, list[int]] = {}
        for number, call in enumerate(self._calls):
            callee = call.items[0]
            if callee.kind == "attribute" and callee.text == "launch":
                self._on.setdefault(callee.items[0].span, []).append(number)
            elif call.callee.endswith(".launch"):
                self._on.setdefault(call.callee.removesuffix(".launch"), []).append(number)

    def of(self, expr: Expr) -> tuple[Expr, ...]:
        """Return the launches on the result of a call, direct or through variables that hold it, in source order."""
        keys = {expr.span, *self._held.get(expr.span, ())}
        return tuple(self._calls[at] for at in sorted({at for key in keys for at in self._on.get(key, ())}))

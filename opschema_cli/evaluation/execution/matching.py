"""``match`` statements: whether a pattern matches a value, and the names that it binds.

Patterns are parsed from the text of the file, since statements hold only the names that they bind.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from opschema_cli.evaluation.execution.classes import ABSENT, member
from opschema_cli.evaluation.execution.comparisons import compared, contains_key
from opschema_cli.evaluation.execution.dataclass_fields import fields_of, is_dataclass
from opschema_cli.evaluation.execution.instances import isinstance_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import is_plain_enum
from opschema_cli.evaluation.execution.signals import Thrown
from opschema_cli.evaluation.execution.subscripts import item_of
from opschema_cli.evaluation.execution.values import Environment, ErrorValue, Opaque
from opschema_cli.evaluation.values import ClassValue, EnumMember, ExternalName
from opschema_cli.source.python import Expr, Statement

_SELF = frozenset({"bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"})
"""Classes whose single positional pattern matches the value itself."""


class Matcher:
    """Matches a value against the pattern of a ``case``; ``bound`` holds the names that it binds."""

    def __init__(self, machine: Machine, scope: Environment, item: Statement) -> None:
        self.machine = machine
        self.scope = scope
        self.item = item
        self.bound: dict[str, object] = {}

    def matches(self, value: object) -> bool:
        """Whether the pattern matches; if that is not known, both are tried."""
        pattern = _pattern(self.scope.body.file.source.text[self.item.start : self.item.blocks[0][0].start])
        if pattern is None:
            self.machine.stop("a pattern that is not followed")
        return self._one(pattern, value)

    def _one(self, pattern: ast.pattern, value: object) -> bool:
        self.machine.spend(1)
        if isinstance(pattern, ast.MatchAs):
            return self._as(pattern, value)
        if isinstance(pattern, ast.MatchOr):
            return any(self._one(item, value) for item in pattern.patterns)
        if isinstance(pattern, ast.MatchValue):
            return self._holds(compared(self.machine, "==", value, self._value(pattern.value)), value, pattern)
        if isinstance(pattern, ast.MatchSingleton):
            return self._holds(compared(self.machine, "is", value, pattern.value), value, pattern)
        return self._with_parts(pattern, value)

    def _with_parts(self, pattern: ast.pattern, value: object) -> bool:
        if isinstance(pattern, ast.MatchSequence):
            return self._sequence(pattern, value)
        if isinstance(pattern, ast.MatchMapping):
            return self._mapping(pattern, value)
        if isinstance(pattern, ast.MatchClass):
            return self._class(pattern, value)
        return self.machine.stop("a pattern that is not followed")

    def _holds(self, answer: object, value: object, pattern: ast.pattern) -> bool:
        """Whether an answer is true; it is the same each time for one unknown value."""
        known = isinstance(answer, Opaque) and isinstance(value, Opaque) and not isinstance(pattern, ast.MatchSingleton)
        return self.machine.truth(self.machine.derived(value, ast.dump(pattern)) if known else answer)

    def _value(self, expr: ast.expr) -> object:
        """Return the value of a dotted name or a constant in a pattern."""
        try:
            return ast.literal_eval(expr)
        except ValueError:
            return self.machine.evaluate(self.scope, Expr("name", self.item.start, self.item.end, ast.unparse(expr)))

    def _as(self, pattern: ast.MatchAs, value: object) -> bool:
        if pattern.pattern is not None and not self._one(pattern.pattern, value):
            return False
        if pattern.name is not None:
            self.bound[pattern.name] = value
        return True

    def _is_a(self, value: object, kind: object, pattern: ast.pattern) -> bool:
        if isinstance(value, EnumMember) and isinstance(kind, ExternalName) and is_plain_enum(self.machine, value):
            return False
        return self._holds(isinstance_of(self.machine, [value, kind], {}), value, pattern)

    def _sequence(self, pattern: ast.MatchSequence, value: object) -> bool:
        text = isinstance(value, str | bytes)
        if text or not self._is_a(value, ExternalName("collections.abc.Sequence"), pattern):
            return False
        starred = [index for index, item in enumerate(pattern.patterns) if isinstance(item, ast.MatchStar)]
        if isinstance(value, Opaque) or id(value) in self.machine.tainted:
            return self._unknown_parts(pattern.patterns)
        elements = list(self.machine.iterate(value))
        count = len(pattern.patterns) - len(starred)
        if len(elements) < count or (not starred and len(elements) > count):
            return False
        first = starred[0] if starred else count
        middle = len(elements) - (count - first)
        rest = pattern.patterns[first + 1 :] if starred else []
        if starred:
            self._star(pattern.patterns[first], elements[first:middle])
        pairs = [*zip(pattern.patterns[:first], elements), *zip(rest, elements[middle:])]  # noqa: B905
        return all(self._one(*pair) for pair in pairs)

    def _star(self, pattern: ast.pattern, values: object) -> None:
        name = pattern.name if isinstance(pattern, ast.MatchStar) else None
        if name is not None:
            self.bound[name] = values

    def _unknown_parts(self, patterns: Sequence[ast.pattern]) -> bool:
        """Whether patterns match unknown parts."""
        lost = self.machine.opaque("a part of a value that is not known")
        for item in patterns:
            if isinstance(item, ast.MatchStar):
                self._star(item, lost)
            elif not self._one(item, self.machine.opaque(lost.reason)):
                return False
        return True

    def _mapping(self, pattern: ast.MatchMapping, value: object) -> bool:
        if not self._is_a(value, ExternalName("collections.abc.Mapping"), pattern):
            return False
        if not isinstance(value, dict) or id(value) in self.machine.tainted:
            if pattern.rest is not None:
                self.bound[pattern.rest] = self.machine.opaque("a part of a value that is not known")
            return self._unknown_parts(pattern.patterns)
        keys = [self._value(key) for key in pattern.keys]
        for key, item in zip(keys, pattern.patterns, strict=True):
            if not self.machine.truth(contains_key(self.machine, value, key)):
                return False
            if not self._one(item, item_of(self.machine, value, key)):
                return False
        if pattern.rest is not None:
            if any(isinstance(key, Opaque) for key in keys):
                self.machine.stop("a pattern that is not followed")
            self.bound[pattern.rest] = {key: item for key, item in value.items() if key not in keys}
        return True

    # Classes

    def _class(self, pattern: ast.MatchClass, value: object) -> bool:
        kind = self._value(pattern.cls)
        if not self._is_a(value, kind, pattern):
            return False
        if isinstance(kind, ExternalName) and kind.name in _SELF and pattern.patterns:
            if len(pattern.patterns) > 1:
                self.machine.throw("TypeError")
            return self._one(pattern.patterns[0], value) and self._attributes(pattern, [], value)
        names = self._places(kind, pattern) if pattern.patterns else []
        return self._attributes(pattern, names, value)

    def _places(self, kind: object, pattern: ast.MatchClass) -> list[str]:
        """Return the attributes that the positional patterns of a class match."""
        found = member(self.machine, kind, "__match_args__") if isinstance(kind, ClassValue) else ABSENT
        if not isinstance(found, tuple) and isinstance(kind, ClassValue) and is_dataclass(self.machine, kind.ref):
            fields = fields_of(self.machine, kind.ref)
            if fields is not None:
                found = tuple(item.name for item in fields if item.in_init and not item.by_name_only)
        if not isinstance(found, tuple) or not all(isinstance(item, str) for item in found):
            self.machine.stop("a pattern of a class whose `__match_args__` are not known")
        if len(pattern.patterns) > len(found):
            self.machine.throw("TypeError")
        return [str(item) for item in found[: len(pattern.patterns)]]

    def _attributes(self, pattern: ast.MatchClass, names: Sequence[str], value: object) -> bool:
        places = [*zip(names, pattern.patterns), *zip(pattern.kwd_attrs, pattern.kwd_patterns)]  # noqa: B905
        for name, item in places:
            try:
                found = self.machine.attribute(value, name)
            except Thrown as thrown:
                if isinstance(thrown.error, ErrorValue) and thrown.error.name == "AttributeError":
                    return False
                raise
            if not self._one(item, found):
                return False
        return True


@lru_cache(maxsize=256)
def _pattern(text: str) -> ast.pattern | None:
    """Parse the pattern of a ``case`` from its text before the body; None if it cannot be parsed on its own."""
    try:
        (statement,) = ast.parse(f"match _:\n {text}pass").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return statement.cases[0].pattern if isinstance(statement, ast.Match) else None

"""Declarations of an orchestration: the values of new variables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.text import words_in
from opschema_rules.pypto.cpp_checks import ANY_LENGTH
from opschema_rules.pypto.cpp_numbers import is_zero, number_of, table_of
from opschema_rules.pypto.cpp_state import EMPTY, Scope, State
from opschema_rules.pypto.cpp_values import (
    OTHER,
    UNKNOWN,
    Bits,
    Created,
    Mixed,
    Number,
    Object,
    Pointer,
    Table,
    Tensors,
    Unknown,
    Value,
    united,
)
from opschema_rules.pypto.cpp_walk import Walk
from opschema_rules.pypto.facts import KernelId

FIELDS = {"aic_kernel_id": "aic", "aiv0_kernel_id": "aiv", "aiv1_kernel_id": "aiv"}
"""The fields of ``MixedKernels`` in order, each with the core that runs its kernel."""

_TENSOR = re.compile(r"\b(?:Chip)?Tensor\b|\bContinuousTensor\b")
_CREATED = re.compile(r"\bTensorCreateInfo\b")
_MIXED = re.compile(r"\bMixedKernels\b")
_PLAIN = re.compile(
    r"\b(?:u?int\w*|size_t|bool|float|double|char|long|short|unsigned|DataType|PTO2TaskId|TaskId|\w*Config)\b"
)
_NUMBERS = frozenset({"uint32_t", "int32_t", "uint64_t", "int64_t", "int", "unsigned", "size_t"})
_ARRAY = re.compile(r"\barray<\s*([\w:]+)\s*,\s*(\w+)\s*>")
_COPIES = re.compile(r"\b(?:auto|\w*Args?)\b")
_HOLDS = re.compile(r"\b(?:vector|array|span|initializer_list|reference_wrapper|optional|unique_ptr|shared_ptr)\s*\Z")
_LISTS = ("argument_list", "initializer_list", "parameter_list")


class Declarations:
    """Declares the variables of a walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def declare(self, node: CppNode, scope: Scope, state: State) -> None:
        """Declare the variables of one declaration."""
        of = type_of(node)
        told = {item.text for item in node.children if item.kind in ("storage_class_specifier", "type_qualifier")}
        fixed = bool(told & {"const", "constexpr"})
        for declarator in node.fields("declarator"):
            name = declared_name(declarator)
            if not name:
                self._unnamed(declarator, scope, state)
                continue
            given = _given(declarator)
            if not self._is_reference(name, declarator, given, scope, state):
                number = self.walk.declare(scope, name)
                self.walk.limit(number, of)
                if "static" not in told:
                    self.walk.checks.declare(number, of, self.walk.loops, node)
                if given is None or not is_zero(given.text):
                    self.walk.checks.declare_real(number, of, declarator)
                self._measure(number, declarator, given, of, scope, state)
                if "static" in told and not fixed:
                    self.walk.hide(number)
                table = self._table(declarator, given, of, scope, state) if fixed else None
                value = table or self._initial(number, declarator, given, of, scope, state)
                self.walk.checks.made(name, of, value, node)
                state.values[number] = self.walk.fitting(number, value)
                if "static" in told and number in state.held:
                    state.lose(number, "it is static", node.span)

    def _table(self, declarator: CppNode, given: CppNode | None, of: str, scope: Scope, state: State) -> Table | None:
        """Return a constant array of numbers: ``const int ids[] = {1, 2}``, ``const std::array<int, 2> ids{1, 2}``."""
        inner, match = declarator.field("declarator"), _ARRAY.search(of)
        is_array = inner is not None and inner.kind == "array_declarator"
        if given is None or given.kind not in _LISTS or not (is_array or match):
            return None
        size = self.walk.expressions.value(inner.field("size"), scope, state) if inner is not None else UNKNOWN
        if match is not None:
            size = Number(number_of(match[2]) or self.walk.parts.constants.get(match[2], 0))
        parts = [self.walk.expressions.value(item, scope, state) for item in given.children]
        if len(parts) == 1 and isinstance(parts[0], Table):
            parts = [Number(item) if item is not None else UNKNOWN for item in parts[0].items]
        known = bool(parts) and all(isinstance(item, Number | Unknown) for item in parts)
        plain = _PLAIN.search(match[1] if match is not None else of)
        return table_of(parts, size.value if isinstance(size, Number) else 0) if known and plain else None

    def _measure(
        self, number: int, declarator: CppNode, given: CppNode | None, of: str, scope: Scope, state: State
    ) -> None:
        """Record the size of an array of numbers, if it is known; the largest one if branches of ``#if`` declare several."""
        if of not in _NUMBERS:
            return
        lengths = self.walk.checks.lengths
        array = declarator.field("declarator") if declarator.kind == "init_declarator" else declarator
        if array is None or array.kind != "array_declarator":
            lengths[number] = ANY_LENGTH
            return
        size = self.walk.expressions.value(array.field("size"), scope, state)
        if array.field("size") is None and given is not None and given.kind == "initializer_list":
            macros = [self.walk.parts.macros.get(word) for word in words_in(given.text)]
            size = Number(len(given.children)) if not any(item and "," in item.body for item in macros) else UNKNOWN
        lengths[number] = max(lengths.get(number, 0), size.value) if isinstance(size, Number) else ANY_LENGTH

    def _unnamed(self, declarator: CppNode, scope: Scope, state: State) -> None:
        """Follow ``auto [a, b] = ...``."""
        value = self.walk.expressions.value(declarator.field("value"), scope, state)
        self.walk.expressions.keep([value], "it is taken apart", declarator, state)
        for item in declarator.walk():
            if item.kind == "identifier" and item.parent is not None and "binding" in item.parent.kind:
                self.walk.bind(scope, state, item.text, UNKNOWN)

    def _is_reference(self, name: str, declarator: CppNode, given: CppNode | None, scope: Scope, state: State) -> bool:
        """Bind the name of a reference to the variable it refers to. Return whether the declaration is one."""
        inner = declarator.field("declarator")
        number = scope.find(given.text) if given is not None and given.kind == "identifier" else None
        if number is None or inner is None or inner.kind != "reference_declarator":
            return False
        scope.names[name] = number
        return True

    def _initial(
        self, number: int, declarator: CppNode, given: CppNode | None, of: str, scope: Scope, state: State
    ) -> Value:
        """Return the initial value of a variable."""
        if _MIXED.search(of):
            return self._mixed(given, scope, state)
        is_list = given is not None and given.kind in _LISTS
        nodes = [] if given is None else given.children if is_list else [given]
        nodes = [item.field("type") or item if item.kind == "parameter_declaration" else item for item in nodes]
        parts = [self.walk.expressions.value(item, scope, state) for item in nodes]
        if _CREATED.search(of):
            self.walk.checks.shaped(of, nodes, parts, scope)
            return Created()
        kinds = {item.kind for item in declarator.walk(lambda item: "declarator" not in item.kind)}
        if "array_declarator" in kinds:
            return self._array(parts, of, declarator, state)
        if len(parts) == 1 and isinstance(parts[0], Object) and (not is_list or _COPIES.search(of)):
            return self._of_object(number, parts[0], kinds, state)
        if len(parts) == 1 and not is_list and not isinstance(parts[0], Unknown):
            return parts[0]
        if is_tensor(of):
            found = united(parts)
            return found if isinstance(found, Tensors | Pointer) else OTHER
        if _ARRAY.search(of) and is_list:
            self.walk.expressions.keep(parts, "it is one of several", declarator, state)
            return UNKNOWN
        if _PLAIN.search(of.partition("<")[0]) or "pointer_declarator" in kinds:
            return parts[0] if len(parts) == 1 and isinstance(parts[0], Number | Bits) else UNKNOWN
        return (
            self._made(number, given, parts, declarator, state)
            if is_list or given is None
            else self._other(number, given, of, state)
        )

    def _array(self, parts: Sequence[Value], of: str, declarator: CppNode, state: State) -> Value:
        """Return the value of an array: for tensors, one of them; for anything else, unknown."""
        if is_tensor(of):
            found = united([OTHER, *parts])
            return found if parts else OTHER
        self.walk.expressions.keep(parts, "it is one of several", declarator, state)
        return UNKNOWN

    def _of_object(self, number: int, value: Object, kinds: set[str], state: State) -> Value:
        """Return a copy of an object, or a reference to it."""
        if value.pointer or kinds & {"reference_declarator", "pointer_declarator"}:
            return value
        state.held[number] = self.walk.copied(value, state)
        return Object(number)

    def _made(
        self, number: int, given: CppNode | None, parts: Sequence[Value], declarator: CppNode, state: State
    ) -> Value:
        """Return an object constructed from some values, or from none."""
        state.held[number] = EMPTY
        if parts:
            self.walk.expressions.keep(parts, "it makes another object", declarator, state)
            state.lose(number, "the values that it is made from are not known", declarator.span)
        return Object(number)

    def _other(self, number: int, given: CppNode, of: str, state: State) -> Value:
        """Follow ``Args p = Args();``."""
        if not is_fresh(given, of):
            return UNKNOWN
        state.held[number] = EMPTY
        return Object(number)

    # -- the kernels of a task -----------------------------------------------------------------------------------------

    def _mixed(self, given: CppNode | None, scope: Scope, state: State) -> Value:
        if given is None:
            return Mixed()
        if given.kind == "compound_literal_expression":
            given = given.field("value") or given
        if given.kind not in _LISTS:
            value = self.walk.expressions.value(given, scope, state)
            return value if isinstance(value, Mixed) else UNKNOWN
        found = Mixed()
        for name, item in zip(FIELDS, given.children, strict=False):
            named = item.kind == "initializer_pair"
            target = item.field("value") if named else item
            name = next((field for field in FIELDS if field in item.text.partition("=")[0]), "") if named else name
            if target is None or not name:
                return UNKNOWN
            value = self.walk.expressions.value(target, scope, state)
            found = found.having(name, kernel_of(target, FIELDS[name], value))
        return found


def kernel_of(node: CppNode, core: str, value: Value) -> KernelId | None:
    """Return the kernel that an expression names; None if it names no kernel."""
    negative = isinstance(value, Number) and value.value < 0
    if node.text.rpartition("::")[2] in ("INVALID_KERNEL_ID", "PTO2_INVALID_KERNEL_ID") or negative:
        return None
    return KernelId(value.value if isinstance(value, Number) else None, node.text, node.span, core)


def _given(declarator: CppNode) -> CppNode | None:
    """Return the arguments in a variable's declaration; ``Args q(p)`` parses like a function."""
    if declarator.kind == "function_declarator":
        return declarator.field("parameters")
    return declarator.field("value") if declarator.kind == "init_declarator" else None


def is_tensor(of: str) -> bool:
    """Whether a type is a tensor type."""
    head, _, inner = of.partition("<")
    return _TENSOR.search(inner if _HOLDS.search(head) else head) is not None


def is_fresh(node: CppNode | None, of: str = "") -> bool:
    """Whether an expression makes an empty object: ``CoreTaskArgs()``, ``{}``."""
    match = re.fullmatch(r"([\w:<> ]*)(?:\(\s*\)|\{\s*\})", node.text) if node is not None else None
    return match is not None and (match[1] in ("", of) or re.search(r"(?:^|:)[A-Z]\w*Args?\Z", match[1]) is not None)


def parameters_of(function: CppNode) -> list[CppNode]:
    """Return the parameters of a function."""
    declarator = function.field("declarator")
    while declarator is not None and declarator.kind != "function_declarator":
        declarator = declarator.field("declarator") or (declarator.children[-1] if declarator.children else None)
    found = declarator.field("parameters") if declarator is not None else None
    return [item for item in found.children if "parameter_declaration" in item.kind] if found is not None else []


def declared_name(node: CppNode) -> str:
    """The name that a declarator declares; empty without one."""
    current: CppNode | None = node
    while current is not None and current.kind not in ("identifier", "field_identifier"):
        inner = current.field("declarator")
        if inner is None and current.kind in (
            "reference_declarator",
            "variadic_declarator",
            "parenthesized_declarator",
        ):
            inner = current.children[0] if current.children else None
        current = inner
    return current.text if current is not None else ""


def type_of(node: CppNode) -> str:
    """Return the type in a declaration or function; for a class defined there, only its name."""
    found = node.field("type")
    if found is not None and found.field("body") is not None:
        found = found.field("name")
    return found.text if found is not None else ""

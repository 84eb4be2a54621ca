"""Expressions of an orchestration: what each stands for, what a call adds to a payload, submits, or does to a tensor."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_values import (
    OTHER,
    UNKNOWN,
    Created,
    Mixed,
    Number,
    Object,
    Outside,
    Pointer,
    Scope,
    State,
    Tensors,
    Unknown,
    Value,
    merged,
)
from opschema_rules.pypto.facts import KernelId, Kind, Payload, Slot, Submit, Use

if TYPE_CHECKING:
    from opschema_rules.pypto.cpp_walk import Walk

ADDS: dict[str, Kind] = {
    "add_input": "in",
    "add_output": "out",
    "add_inout": "inout",
    "add_no_dep": "no_dep",
    "add_scalar": "scalar",
}
"""The methods of a payload that add one slot for each argument (simpler, ``pto_types.h``)."""

_SUBMIT = re.compile(r"(?:pto2_)?rt_submit_(?P<core>aic|aiv|)_?(?P<what>task|dummy_task)\Z")
_NO_EFFECT = re.compile(
    r"[A-Z][A-Z0-9_]*\Z|always_assert|assert|std::.*|(?:float_|double_)?to_\w+|get_element_size|\w*_cast(?:<.*>)?|memset|rt_\w+"
    r"|PTO2\w*|LOG_\w+|unlikely|likely|sizeof|pto2_rt_\w+|get_sys_cnt\w*"
)
_VIEWS = re.compile(
    r"(?:view|reshape|transpose|ref|slice|permute|flatten|sub_?\w*|expand|squeeze|unsqueeze|get_ref|as_\w+)\Z"
)
_MEMORY = re.compile(r"(?:data|data_as|addr|buffer|ptr|data_ptr|get_ptr)\Z")
_MAKES_TENSOR = re.compile(r"(?:make|from|create|init|alloc|to)_?\w*[Tt]ensor\w*\Z|\w*[Tt]ensor\Z")
_NO_KERNEL = ("INVALID_KERNEL_ID", "PTO2_INVALID_KERNEL_ID")
_FIELDS = {"aic_kernel_id": "aic", "aiv0_kernel_id": "aiv", "aiv1_kernel_id": "aiv"}


class Expressions:
    """Evaluates expressions in a walk."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk

    def value(self, node: CppNode | None, scope: Scope, state: State) -> Value:
        """What an expression stands for; what it does is done to the state."""
        if node is None:
            return UNKNOWN
        kind = node.kind
        if kind in ("parenthesized_expression", "condition_clause", "cast_expression", "pointer_expression"):
            inner = node.field("value") or node.field("argument") or (node.children[-1] if node.children else None)
            return self.value(inner, scope, state)
        if kind in ("identifier", "qualified_identifier"):
            return self._name(node, scope, state)
        if kind == "number_literal":
            return _number(node.text)
        handler = {
            "call_expression": self.call,
            "field_expression": self._field,
            "subscript_expression": self._item,
            "assignment_expression": self._assigned,
            "conditional_expression": self._either,
            "unary_expression": self._negated,
            "lambda_expression": self._lambda,
            "compound_literal_expression": self._made,
            "initializer_list": self._made,
        }.get(kind)
        if handler is not None:
            return handler(node, scope, state)
        for child in node.children:
            self.value(child, scope, state)
        return UNKNOWN

    def _name(self, node: CppNode, scope: Scope, state: State) -> Value:
        number = scope.find(node.text)
        if number is not None:
            return state.values.get(number, UNKNOWN)
        constant = self.walk.constant(node.text)
        return Number(constant) if constant is not None else UNKNOWN

    def _negated(self, node: CppNode, scope: Scope, state: State) -> Value:
        inner = self.value(node.field("argument"), scope, state)
        negative = node.text.startswith("-") and isinstance(inner, Number)
        return Number(-inner.value) if negative and isinstance(inner, Number) else UNKNOWN

    def _either(self, node: CppNode, scope: Scope, state: State) -> Value:
        self.value(node.field("condition"), scope, state)
        ways = [self.value(node.field(name), scope, state) for name in ("consequence", "alternative")]
        return merged(ways)

    def _lambda(self, node: CppNode, scope: Scope, state: State) -> Value:
        """A lambda may do to what it captures whatever its body says, whenever it is called."""
        for name in node.walk():
            value = self._name(name, scope, state) if name.kind == "identifier" else UNKNOWN
            if isinstance(value, Object):
                state.lose(value.number, "a lambda may fill it", node.span)
            self._escape(value, node)
        if any(_SUBMIT.match(item.text) for item in node.walk() if item.kind == "identifier"):
            self.walk.lose("a lambda submits tasks")
        return UNKNOWN

    def _made(self, node: CppNode, scope: Scope, state: State) -> Value:
        for child in node.children:
            self.value(child, scope, state)
        return UNKNOWN

    def _item(self, node: CppNode, scope: Scope, state: State) -> Value:
        owner = self.value(node.field("argument"), scope, state)
        for child in node.children[1:]:
            self.value(child, scope, state)
        if isinstance(owner, Pointer):
            self._use(owner.arguments, "read", node)
            return UNKNOWN
        return owner

    def _assigned(self, node: CppNode, scope: Scope, state: State) -> Value:
        value = self.value(node.field("right"), scope, state)
        target = node.field("left")
        if target is None:
            return value
        if target.kind == "identifier":
            number = scope.find(target.text)
            if number is not None:
                self.store(number, value, node, state)
        elif target.kind == "field_expression":
            self._set_field(target, node.field("right"), scope, state)
        elif target.kind in ("subscript_expression", "pointer_expression"):
            self._set_item(target, value, scope, state)
        return value

    def store(self, number: int, value: Value, node: CppNode, state: State) -> None:
        """Give a variable a value; an object that is assigned another holds the same from then on."""
        own = state.values.get(number)
        if isinstance(own, Object):
            if isinstance(value, Object):
                state.held[own.number] = state.payloads(value.number)
            elif _is_fresh(node.field("right")):
                state.held.pop(own.number, None)
            else:
                state.lose(own.number, "it is assigned what is not known", node.span)
            return
        state.values[number] = Number(0) if value is None else value

    def _set_field(self, target: CppNode, right: CppNode | None, scope: Scope, state: State) -> None:
        owner, name = target.field("argument"), target.field("field")
        number = scope.find(owner.text) if owner is not None and owner.kind == "identifier" else None
        value = state.values.get(number, UNKNOWN) if number is not None else UNKNOWN
        if number is None or name is None or right is None or name.text not in _FIELDS:
            return
        kernels = tuple(item for item in value.kernels if item.core != name.text) if isinstance(value, Mixed) else ()
        found = self.kernel(right, _FIELDS[name.text], scope, state)
        state.values[number] = Mixed((*kernels, *([found] if found is not None else [])))

    def _set_item(self, target: CppNode, value: Value, scope: Scope, state: State) -> None:
        owner = target.field("argument")
        number = scope.find(owner.text) if owner is not None and owner.kind == "identifier" else None
        held = state.values.get(number, UNKNOWN) if number is not None else UNKNOWN
        if isinstance(held, Pointer):
            self._use(held.arguments, "written", target)
        elif isinstance(held, Object):
            state.lose(held.number, "it is one of several", target.span)
        elif number is not None and isinstance(value, Tensors):
            state.values[number] = merged([held, value]) if isinstance(held, Tensors) else value

    # -- members -------------------------------------------------------------------------------------------------------

    def _field(self, node: CppNode, scope: Scope, state: State) -> Value:
        owner = self.value(node.field("argument"), scope, state)
        name = node.field("field")
        if isinstance(owner, Tensors | Pointer) and name is not None and _MEMORY.match(_plain(name.text)):
            return Pointer(owner.arguments)
        return UNKNOWN

    def call(self, node: CppNode, scope: Scope, state: State) -> Value:
        """What a call returns, and does."""
        function, given = node.field("function"), node.field("arguments")
        arguments = given.children if given is not None else []
        if function is None:
            return UNKNOWN
        if function.kind == "field_expression":
            return self._method(node, function, arguments, scope, state)
        name = _plain(function.text)
        submit = _SUBMIT.match(name)
        if submit is not None:
            return self._submit(node, submit["core"], submit["what"], arguments, scope, state)
        values = [self.value(item, scope, state) for item in arguments]
        if name in ("get_tensor_data", "set_tensor_data"):
            self._touch(values, "read" if name.startswith("get") else "written", node)
            return UNKNOWN
        if self.walk.has_function(name):
            return self.walk.enter(name, node, values, state)
        return self._foreign(name, node, values, state)

    def _foreign(self, name: str, node: CppNode, values: Sequence[Value], state: State) -> Value:
        """A call of what is not in the file."""
        if name.startswith("alloc_tensors"):
            return OTHER
        if _MAKES_TENSOR.match(name):
            found = [item.arguments for item in values if isinstance(item, Tensors | Pointer)]
            return Tensors(frozenset().union(*found)) if found else OTHER
        harmless = _NO_EFFECT.fullmatch(name) is not None
        for value in values:
            if isinstance(value, Object) and not harmless:
                state.lose(value.number, f"`{name}()` is not in this file", node.span)
            elif isinstance(value, Outside) and not harmless:
                self.walk.lose(f"`{name}()` is not in this file, and takes the arguments")
            elif not harmless:
                self._escape(value, node)
        kept = [item for item in values if isinstance(item, Tensors | Pointer | Number)]
        return kept[0] if len(kept) == len(values) == 1 and "cast" in name else UNKNOWN

    def _method(
        self, node: CppNode, function: CppNode, arguments: Sequence[CppNode], scope: Scope, state: State
    ) -> Value:
        owner = self.value(function.field("argument"), scope, state)
        field = function.field("field")
        name = _plain(field.text) if field is not None else ""
        if isinstance(owner, Outside):
            return self._own(node, name, arguments, scope, state)
        if isinstance(owner, Object):
            return self._of_object(owner, node, name, arguments, scope, state)
        values = [self.value(item, scope, state) for item in arguments]
        if isinstance(owner, Tensors | Pointer):
            if _MEMORY.match(name):
                return Pointer(owner.arguments)
            return Tensors(owner.arguments) if _VIEWS.match(name) else UNKNOWN
        for value in values:
            self._escape(value, node)
        return OTHER if _VIEWS.match(name) else UNKNOWN

    def _own(self, node: CppNode, name: str, arguments: Sequence[CppNode], scope: Scope, state: State) -> Value:
        """A method of the orchestration's arguments: ``tensor(i)``."""
        index = self.value(arguments[0], scope, state) if arguments else UNKNOWN
        if name not in ("tensor", "tensor_ref", "get_tensor"):
            return UNKNOWN
        if not isinstance(index, Number):
            self.walk.lose_arguments()
            return OTHER
        self.walk.taken.setdefault(index.value, node.span)
        return Tensors(frozenset({index.value}))

    def _of_object(
        self, owner: Object, node: CppNode, name: str, arguments: Sequence[CppNode], scope: Scope, state: State
    ) -> Value:
        if name in ADDS:
            values = [self.value(item, scope, state) for item in arguments]
            slots = [self._slot(ADDS[name], item, value) for item, value in zip(arguments, values, strict=True)]
            if any(item.text.endswith("...") for item in arguments):
                state.lose(owner.number, "a pack of arguments is added", node.span)
            state.add(owner.number, slots)
            return UNKNOWN
        values = [self.value(item, scope, state) for item in arguments]
        if name in ("add_scalars", "copy_scalars_from"):
            count = values[-1].value if name == "add_scalars" and values and isinstance(values[-1], Number) else -1
            state.add(owner.number, [Slot("scalar", node.span, count=count)])
        elif name == "reset":
            state.held[owner.number] = frozenset({Payload()})
        elif name.startswith(("add_", "copy_")) and not name.startswith(("add_dep", "add_next", "add_sub")):
            state.lose(owner.number, f"what `{name}()` adds is not known", node.span)
        return UNKNOWN

    def _slot(self, kind: Kind, node: CppNode, value: Value) -> Slot:
        if isinstance(value, Tensors) and len(value.arguments) > 1:
            self._escape(value, node)
        argument = value.argument if isinstance(value, Tensors) and kind != "scalar" else -1
        return Slot(kind, node.span, argument, isinstance(value, Created) and kind == "out")

    # -- submits -------------------------------------------------------------------------------------------------------

    def _submit(
        self, node: CppNode, core: str, what: str, arguments: Sequence[CppNode], scope: Scope, state: State
    ) -> Value:
        values = [self.value(item, scope, state) for item in arguments]
        at = next((index for index, item in enumerate(values) if isinstance(item, Object)), None)
        if what == "dummy_task":
            return OTHER
        held = values[at] if at is not None else None
        payloads = state.payloads(held.number) if isinstance(held, Object) else frozenset({_not_followed(node)})
        first = arguments[(at if at is not None else len(arguments) - 1) - 1] if len(arguments) > 1 else None
        kernels: tuple[KernelId, ...] = ()
        mixed = next((item for item in values if isinstance(item, Mixed)), None)
        if mixed is not None:
            kernels = mixed.kernels
        elif first is not None:
            found = self.kernel(first, core, scope, state)
            kernels = (found,) if found is not None else ()
        self.walk.submit(Submit(what, kernels, tuple(sorted(payloads, key=repr)), node.span))
        return OTHER

    def kernel(self, node: CppNode, core: str, scope: Scope, state: State) -> KernelId | None:
        """The kernel that an expression names; None when it says that there is none."""
        value = self.value(node, scope, state)
        if node.text.rpartition("::")[2] in _NO_KERNEL or (isinstance(value, Number) and value.value < 0):
            return None
        return KernelId(value.value if isinstance(value, Number) else None, node.text, node.span, core)

    # -- uses ----------------------------------------------------------------------------------------------------------

    def _touch(self, values: Sequence[Value], how: Literal["read", "written"], node: CppNode) -> None:
        for value in values[:1]:
            if isinstance(value, Tensors | Pointer):
                self._use(value.arguments, how, node)

    def _escape(self, value: Value, node: CppNode) -> None:
        if isinstance(value, Tensors | Pointer):
            self._use(value.arguments, "escapes", node)

    def _use(self, arguments: frozenset[int], how: Literal["read", "written", "escapes"], node: CppNode) -> None:
        for argument in sorted(arguments):
            if argument >= 0:
                self.walk.use(Use(argument, how if len(arguments) == 1 else "escapes", node.span))


def _not_followed(node: CppNode) -> Payload:
    return Payload((), "what it is given is not followed", node.span)


def _is_fresh(node: CppNode | None) -> bool:
    """Whether an expression makes an empty object: ``CoreTaskArgs()``, ``{}``."""
    return node is not None and re.fullmatch(r"[\w:<> ]*(?:\(\s*\)|\{\s*\})", node.text) is not None


def _plain(name: str) -> str:
    """A name without its namespace and template arguments."""
    return name.partition("<")[0].rpartition("::")[2].strip() if not name.startswith("std::") else name


def _number(text: str) -> Value:
    try:
        return Number(int(re.sub(r"[uUlLzZ]+\Z", "", text.replace("'", "")), 0))
    except ValueError:
        return Unknown()

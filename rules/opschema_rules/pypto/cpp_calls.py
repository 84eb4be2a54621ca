"""Calls in an orchestration: what each adds to a payload, submits, or does to a tensor."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from opschema_cli.source.cpp import CppNode
from opschema_rules.pypto.cpp_declarations import kernel_of
from opschema_rules.pypto.cpp_numbers import item_of, keeps_bits
from opschema_rules.pypto.cpp_scalars import type_of_scalar
from opschema_rules.pypto.cpp_state import EMPTY, LOST, SEVERAL, Scope, State
from opschema_rules.pypto.cpp_values import (
    OTHER,
    UNKNOWN,
    Bits,
    Created,
    Mixed,
    Number,
    Object,
    Outputs,
    Outside,
    Pointer,
    Several,
    Table,
    Tensors,
    Value,
    objects_of,
    united,
)
from opschema_rules.pypto.cpp_walk import Evaluation, Walk
from opschema_rules.pypto.facts import Beyond, KernelId, Kind, Payload, Slot, Submit

ADDS: dict[str, Kind] = {
    "add_input": "in",
    "add_output": "out",
    "add_inout": "inout",
    "add_no_dep": "no_dep",
    "add_scalar": "scalar",
}
"""Payload methods that add one slot for each argument (simpler, ``pto_types.h``)."""

OWN = ("tensor", "tensor_ref", "get_tensor")
"""Methods of arguments that return one of their tensors by index."""

MEMORY = re.compile(r"(?:data|data_as|addr|buffer|ptr|data_ptr|get_ptr)\Z")
"""Members of a tensor that refer to its memory."""

_SUBMIT = re.compile(r"(?:pto2_)?rt_submit_(?P<core>aic|aiv|)_?(?P<what>task|dummy_task)\Z")
_GRAPH = re.compile(r"(?:pto2_)?rt_submit_graph")
_NO_EFFECT = re.compile(
    r"(?:[A-Z]\w*_)?(?:LOG|ASSERT|CHECK|EXPECT|PRINT|PROF|TRACE|CYCLE_COUNT)\w*|always_assert|assert|printf"
    r"|std::(?:min|max|abs|ceil|floor|to_string|size)|(?:float_|double_)?to_(?!\w*[Tt]ensor)\w+"
    r"|get_element_size|\w*_cast|(?:pto2_)?rt_(?!submit)\w+|PTO2\w*|unlikely|likely|get_sys_cnt\w*"
)
_SUBMITS = re.compile(r"submit|launch|dispatch|enqueue|run|task", re.IGNORECASE)
"""Words in the names of functions that may submit an empty payload."""

_LEAVE = ("exit", "abort", "longjmp", "std::exit", "std::abort", "std::longjmp")
_STAYS = re.compile(r"LOG|PROF_|PTO2_SCOPE|ASSERT|CYCLE_COUNT")
"""Macros after which the code continues."""

_SAME = ("move", "ref", "cref", "forward", "std::move", "std::ref", "std::cref", "std::forward", "std::as_const")
_IDLE = ("dump", "set_dependencies")
_VIEWS = re.compile(
    r"(?:view|reshape|transpose|ref|slice|permute|flatten|sub_?\w*|expand|squeeze|unsqueeze|get_ref|as_(?!\w*info)\w+)\Z"
)
_MAKES_TENSOR = re.compile(
    r"(?!\w*(?:[Ii]nfo|[Ll]ike|[Dd]esc))(?:make|from|create|init|alloc|to)_?\w*[Tt]ensor\w*\Z|\w*[Tt]ensor\Z"
)
_TO = re.compile(r"<\s*([^<>]+?)\s*>\Z")
"""The type of a cast."""


class Calls:
    """Follows the calls of a walk."""

    def __init__(self, walk: Walk, expressions: Evaluation) -> None:
        self.walk = walk
        self.expressions = expressions

    def call(self, node: CppNode, scope: Scope, state: State) -> Value:
        """Return the value of a call, with its effects applied."""
        function, given = node.field("function"), node.field("arguments")
        arguments = given.children if given is not None else []
        if function is None:
            return UNKNOWN
        if function.kind == "field_expression":
            return self._method(node, function, arguments, scope, state)
        name = _plain(function.text)
        if function.kind not in ("identifier", "qualified_identifier", "template_function"):
            self.expressions.value(function, scope, state)
            name = ""
        values = [self.expressions.value(item, scope, state) for item in arguments]
        if (name in self.walk.parts.macros or name.isupper() or name in _LEAVE) and _STAYS.match(name) is None:
            self.walk.unsure += 1
        submit = _SUBMIT.match(name)
        if submit is not None:
            self.walk.checks.submit(name, arguments, scope)
            return self._submit(node, submit["core"], submit["what"], arguments, values, state)
        if scope.find(name) is not None:
            return self._foreign("", node, arguments, values, scope, state)
        if name in self.walk.parts.functions:
            return self.walk.enter(name, node, arguments, values, scope, state)
        if _GRAPH.fullmatch(name):
            return self._graph(name, node, arguments, values, scope, state)
        return self._foreign(name, node, arguments, values, scope, state)

    def _foreign(
        self,
        name: str,
        node: CppNode,
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        scope: Scope,
        state: State,
    ) -> Value:
        """Return the value of a call of a function outside the file."""
        self.walk.checks.called(name, node, arguments, values, scope)
        if name in _SAME and len(values) == 1:
            return values[0]
        if name in ("get_tensor_data", "set_tensor_data", "memset", "std::memset"):
            self._touch(name, values, node, state)
            return UNKNOWN
        if name.startswith("alloc_tensors"):
            self._submitted(values)
            made = name == "alloc_tensors" and all(isinstance(value, Created) for value in values)
            return Outputs(OTHER.arguments, len(values)) if made and values else OTHER
        if _MAKES_TENSOR.match(name):
            found = united(item for item in values if isinstance(item, Tensors | Pointer))
            return Tensors(found.arguments) if isinstance(found, Tensors | Pointer) else OTHER
        if name in self.walk.parts.macros:
            self.expressions.expand(name, node, scope, state)
        if _NO_EFFECT.fullmatch(name) is None or name in self.walk.parts.macros:
            filled = (number for value in values for number in objects_of(value) if _may_submit(name, number, state))
            self.walk.passed_on.update(dict.fromkeys(filled, name))
            self.expressions.give(
                values, f"{f'`{name}()`' if name else 'the called function'} is not in this file", node, state
            )
            self.expressions.changed(arguments, scope, state)
            if "rt_submit" in name:
                self.walk.reached.add(node.span.start)
                self.walk.lose(f"`{name}()` is not followed")
        is_cast = len(values) == 1 and "cast" in name and (not isinstance(values[0], Bits) or _keeps_bits(node))
        return values[0] if is_cast else UNKNOWN

    def _graph(
        self,
        name: str,
        node: CppNode,
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        scope: Scope,
        state: State,
    ) -> Value:
        """Follow a graph, ``rt_submit_graph(&layer, args, ...)``: its function submits tasks with the tensors that it gets."""
        functions = (item.text.lstrip("& ") for item in arguments)
        found = next(((at, item) for at, item in enumerate(functions) if item in self.walk.parts.functions), None)
        if found is None or scope.find(found[1]) is not None or len(arguments) < found[0] + 2:
            return self._foreign(name, node, arguments, values, scope, state)
        self.walk.reached.add(node.span.start)
        at, function = found
        self.walk.graphs.update(dict.fromkeys(objects_of(values[at + 1]), arguments[at + 1].text))
        self.walk.enter(function, node, arguments[at + 1 :], values[at + 1 :], scope, state)
        return UNKNOWN

    def _touch(self, name: str, values: Sequence[Value], node: CppNode, state: State) -> None:
        """Record that memory or elements of a tensor are read or set."""
        first, *others = values or [UNKNOWN]
        if isinstance(first, Tensors | Pointer):
            self.expressions.use(first.arguments, "read" if name.startswith("get") else "written", node, state)
            first = UNKNOWN
        self.expressions.give([first, *others], f"`{name}()` takes it", node, state)

    def _method(
        self, node: CppNode, function: CppNode, arguments: Sequence[CppNode], scope: Scope, state: State
    ) -> Value:
        owner = self.expressions.value(function.field("argument"), scope, state)
        values = [self.expressions.value(item, scope, state) for item in arguments]
        field = function.field("field")
        name = _plain(field.text) if field is not None else ""
        is_known = name != "view" or isinstance(owner, Tensors)
        self.walk.checks.method(name, function, arguments if is_known else (), values, scope)
        if name == "get_ref":
            self._output(owner, values, function, node)
        if isinstance(owner, Outside):
            return self._own(node, name, values)
        if isinstance(owner, Object) and (name in ADDS or name in ("add_scalars", "copy_scalars_from", "reset")):
            return self._fill(owner, node, name, arguments, values, scope, state)
        if isinstance(owner, Object) and name in OWN:
            return self._given(owner, node, values, state)
        if isinstance(owner, Table) and name in ("size", "at"):
            return Number(len(owner.items)) if name == "size" else item_of(owner, (*values, UNKNOWN)[0])
        self.expressions.changed(arguments, scope, state)
        if name not in _IDLE:
            self.expressions.keep(values, f"`{name}()` takes it", node, state)
        if isinstance(owner, Tensors | Pointer):
            if MEMORY.match(name):
                return Pointer(owner.arguments)
            return Tensors(owner.arguments) if _VIEWS.match(name) else UNKNOWN
        self._unknown_method(owner, name, node, state)
        return OTHER if _VIEWS.match(name) else UNKNOWN

    def _output(self, owner: Value, values: Sequence[Value], function: CppNode, node: CppNode) -> None:
        """Record an output that is taken, and whether the task has fewer."""
        taken, found = function.field("argument"), None
        index = values[0].value if len(values) == 1 and isinstance(values[0], Number) else -1
        if taken is not None and isinstance(owner, Outputs) and index >= owner.count:
            names = (taken.text, owner.payload, owner.tensors)
            found = Beyond(index, owner.count, node.span, *names, self.walk.may_not_run)
        self.walk.take(found, node.span)

    def _unknown_method(self, owner: Value, name: str, node: CppNode, state: State) -> None:
        """Follow a method of an object that may be a payload or may submit one."""
        changes = name.startswith(("add_", "copy_")) and not name.startswith(("add_dep", "add_next", "add_sub"))
        if isinstance(owner, Several) or (
            isinstance(owner, Object) and (changes or name in ("clear", "swap", "resize"))
        ):
            self.expressions.give([owner], f"the effect of `{name}()` is not known", node, state)
        elif "submit" in name:
            self.walk.lose(f"`{name}()` is not followed")

    def _own(self, node: CppNode, name: str, values: Sequence[Value]) -> Value:
        """Follow a method of the orchestration's arguments: ``tensor(i)``."""
        index = values[0] if values else UNKNOWN
        if isinstance(index, Number) and (name == "scalar" or name in OWN):
            self.walk.need("scalar" if name == "scalar" else "tensor", index.value, node.span)
        if name not in OWN:
            if "tensor" in name and not name.endswith("count"):
                self.walk.lose("a tensor is taken in a way that is not followed")
            return Bits(index.value) if name == "scalar" and isinstance(index, Number) else UNKNOWN
        if not isinstance(index, Number):
            self.walk.lose("a tensor is taken by a number that is not known")
            return OTHER
        self.walk.taken.setdefault(index.value, node.span)
        return Tensors(frozenset({index.value}))

    def _given(self, owner: Object, node: CppNode, values: Sequence[Value], state: State) -> Value:
        """Return a tensor of a graph's arguments."""
        index = values[0].value if values and isinstance(values[0], Number) else -1
        payloads = state.payloads(owner.number)
        self._compare(owner, index, payloads, node, state)
        found = [payload.tensors[index] for payload in payloads if 0 <= index < len(payload.tensors)]
        if len(found) < len(payloads):
            self.walk.lose("a tensor of a graph is taken in a way that is not followed")
            return OTHER
        return Tensors(frozenset(slot.argument for slot in found))

    def _compare(self, owner: Object, index: int, payloads: Collection[Payload], node: CppNode, state: State) -> None:
        """Record a tensor that a graph takes, and whether it is known to get fewer."""
        name, count = self.walk.graphs.get(owner.number, ""), max(len(payload.tensors) for payload in payloads)
        known = owner.number not in state.turned and not any(payload.unresolved for payload in payloads)
        is_beyond = name and known and index >= count and not self.walk.may_not_run
        self.walk.take(Beyond(index, count, node.span, "", name, ()) if is_beyond else None, node.span)

    # -- payloads ------------------------------------------------------------------------------------------------------

    def _fill(
        self,
        owner: Object,
        node: CppNode,
        name: str,
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        scope: Scope,
        state: State,
    ) -> Value:
        """Follow a method that fills or empties a payload."""
        self.walk.spend(1 + sum(len(payload.slots) for payload in state.payloads(owner.number)) // 16)
        if name == "reset":
            self.walk.checks.go_on([owner.number])
            self.walk.submitted_once.discard(owner.number)
        else:
            declared = self.walk.checks.loops.get(owner.number, 0)
            late = owner.number in self.walk.submitted_once and self.walk.loops == declared
            self.walk.checks.fill(owner.number, node, late=late)
        if name in ADDS:
            added = zip(arguments, values, strict=True)
            slots = [self._slot(ADDS[name], item, value, scope, state) for item, value in added]
            state.add(owner.number, slots)
            if any(item.text.endswith("...") for item in arguments):
                state.lose(owner.number, "a pack of arguments is added", node.span)
        elif name == "reset":
            state.held[owner.number] = EMPTY
            state.compiled -= {owner.number}
        else:
            count = values[-1].value if name == "add_scalars" and values and isinstance(values[-1], Number) else -1
            state.add(owner.number, [Slot("scalar", node.span, count=count)])
        return owner

    def _slot(self, kind: Kind, node: CppNode, value: Value, scope: Scope, state: State) -> Slot:
        if kind == "scalar":
            return Slot(kind, node.span, type=type_of_scalar(node, value, scope, self.walk))
        if isinstance(value, Tensors) and len(value.arguments) > 1:
            self.expressions.use(value.arguments, "escapes", node, state)
        argument = value.argument if isinstance(value, Tensors) else -1
        return Slot(kind, node.span, argument, isinstance(value, Created) and kind == "out")

    # -- submits -------------------------------------------------------------------------------------------------------

    def _submit(
        self,
        node: CppNode,
        core: str,
        what: str,
        arguments: Sequence[CppNode],
        values: Sequence[Value],
        state: State,
    ) -> Value:
        self.walk.reached.add(node.span.start)
        at = next((index for index, item in enumerate(values) if isinstance(item, Object)), None)
        if what == "dummy_task":
            self._submitted(values)
            return OTHER
        held = values[at] if at is not None else None
        self._submitted(values)
        if isinstance(held, Object) and self.walk.directives and held.number in state.compiled:
            state.lose(held.number, SEVERAL, node.span)
        payloads = state.payloads(held.number) if isinstance(held, Object) else LOST
        payloads = frozenset(_located(payload, node) for payload in payloads)
        self.walk.spend(sum(8 + len(payload.slots) for payload in payloads))
        before = (at if at is not None else len(arguments) - 1) - 1
        kernels: tuple[KernelId, ...] = ()
        mixed = next((item for item in values if isinstance(item, Mixed)), None)
        if mixed is not None:
            kernels = mixed.kernels
        elif len(arguments) > 1:
            found = kernel_of(arguments[before], core, values[before])
            kernels = (found,) if found is not None else ()
        submit = Submit(what, kernels, tuple(sorted(payloads, key=repr)), node.span)
        turned = isinstance(held, Object) and held.number in state.turned
        self.walk.submit(submit, state, turned=turned)
        return self._outputs(payloads, arguments[-1]) if arguments and not turned else OTHER

    def _submitted(self, values: Sequence[Value]) -> None:
        """Record that payloads are submitted."""
        numbers = [number for value in values for number in objects_of(value)]
        self.walk.submitted.update(numbers)
        self.walk.submitted_once.update(numbers)
        self.walk.checks.go_on(numbers)

    def _outputs(self, payloads: Collection[Payload], argument: CppNode) -> Value:
        """Return the tensors that the runtime makes for a task; any tensor if it is not certain which outputs these are."""
        outputs = [[slot for slot in payload.slots if slot.kind == "out"] for payload in payloads]
        own = [slot for slots in outputs for slot in slots if not slot.created]
        if any(payload.unresolved for payload in payloads) or any(slot.argument < 0 for slot in own):
            return OTHER
        names = tuple(sorted({argument.tree.text[slot.span.start : slot.span.end] for slot in own}))
        count = max(sum(slot.created for slot in slots) for slots in outputs)
        only = all(slot.kind in ("in", "scalar") or slot.created for payload in payloads for slot in payload.slots)
        return Outputs(OTHER.arguments, count, argument.text, names, only)


def _may_submit(name: str, number: int, state: State) -> bool:
    """Whether a function that is not followed may submit a payload that it gets: a filled one, or any, judging by its name."""
    return _SUBMITS.search(name) is not None or any(payload.slots for payload in state.payloads(number))


def _located(payload: Payload, node: CppNode) -> Payload:
    """Return a payload that records the place where it could not be followed further."""
    is_lost = payload.unresolved and payload.lost_at is None
    return Payload((), payload.unresolved, node.span) if is_lost else payload


def _plain(name: str) -> str:
    """Return a name without its namespace and template arguments."""
    name = name.partition("<")[0].strip()
    return name if name.startswith("std::") else name.rpartition("::")[2].strip()


def _keeps_bits(call: CppNode) -> bool:
    """Whether the target type of a cast such as ``static_cast<uint32_t>(...)`` keeps the bits of a scalar."""
    function = call.field("function")
    of = _TO.search(function.text) if function is not None else None
    return of is not None and keeps_bits(of[1])

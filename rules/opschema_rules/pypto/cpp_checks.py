"""Names and calls recorded while an orchestration is followed, for comparison with the runtime's headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opschema_cli.source.cpp import CppNode
from opschema_cli.source.text import Span
from opschema_rules.pypto.cpp_state import Scope
from opschema_rules.pypto.cpp_values import Number, Outputs, Value
from opschema_rules.pypto.facts import Misfit, Name

CLASSES = frozenset(
    [
        "CoreTaskArgs",
        "TaskOutputTensors",
        "ChipTensor",
        "TensorCreateInfo",
        "ChipTaskArgs",
        "GraphTaskArgs",
        "MixedKernels",
    ]
)
"""The classes of the runtime's interface whose members are recorded."""

PAYLOAD = "CoreTaskArgs"
PLAIN = frozenset({"short", "swapped", "late", "unequal", "slot"})
"""Kinds of misfits that are wrong as written, whatever the rest of the file does."""

ANY_LENGTH = 1 << 64
"""The length of an array of unknown length."""


COMMON = frozenset(
    {"add_input", "add_output", "add_inout", "add_scalar", "tensor", "scalar", "get_ref", "view", "ref"}
) | {
    *(
        "task_id",
        "reshape",
        "set_block_num",
        "set_core_num",
        "set_dependencies",
        "set_allow_early_resolve",
        "set_predicate",
    ),
}
"""Methods that are not recorded, since nearly every orchestration uses them."""

_USUAL = frozenset({"FLOAT32", "FLOAT16", "BFLOAT16", "INT32", "INT64", "INT8", "UINT8", "reset", "dump", "to_u64"}) | {
    *(
        "static_cast",
        "reinterpret_cast",
        "rt_report_fatal",
        "rt_scope_begin",
        "rt_scope_end",
        "rt_submit_graph",
        "from_u64",
    ),
    *("tensor_count", "scalar_count", "rt_available_cluster_count", "rt_available_aiv_count"),
}
"""Other names that are not recorded."""

_SUBMITS = re.compile(r"rt_submit_(?:aic_|aiv_|dummy_)?task")
_SURE_SLOTS = 8
"""The number of timing slots, the same in every runtime that has any."""

_POINTS = re.compile(r"[*\[(]")
"""Characters in the declaration of a pointer, an array or a function."""

_SHAPED = {"TensorCreateInfo": 0, "make_tensor_external": 1, "get_tensor_data": 2, "set_tensor_data": 2}
"""Functions that take an array of numbers and its length, with the position of the array; the last two take the length first."""


class Checks:
    """The records of one entry. ``types`` are the declared classes of variables, ``lengths`` the sizes of arrays of numbers,
    ``floats`` the types of variables with real numbers.
    """

    def __init__(self) -> None:
        self.types: dict[int, str] = {}
        self.lengths: dict[int, int] = {}
        self.floats: dict[int, str] = {}
        self.loops: dict[int, int] = {}
        self.names: dict[tuple[str, str], Name] = {}
        self.misfits: dict[Span, Misfit] = {}
        self.filled: dict[int, tuple[str, Span]] = {}
        self.late: dict[int, tuple[str, Span]] = {}
        self.submitted_later: set[Span] = set()
        self.sites: dict[int, int] = {}

    def declare(self, number: int, of: str, loops: int, node: CppNode | None = None) -> None:
        """Record the class of a variable, the depth of loops around its declaration, and its place."""
        if of in CLASSES:
            self.types[number] = of
            self.loops[number] = loops
            if node is not None:
                self.sites[number] = node.span.start

    def declare_real(self, number: int, of: str, declarator: CppNode) -> None:
        """Record the type of a real variable that is not a pointer or array and is declared unconditionally."""
        is_plain = of in ("float", "double") and not _POINTS.search(declarator.text.partition("=")[0])
        if is_plain and not declarator.tree.directives.conditions(declarator.span.start):
            self.floats[number] = of

    def name(self, owner: str, node: CppNode, text: str = "") -> None:
        """Record the use of a name."""
        member = text or node.text
        if member not in _USUAL and (owner or not member.isupper()):
            self.names.setdefault((owner, member), Name(owner, member, node.span))

    def shaped(self, name: str, arguments: Sequence[CppNode], values: Sequence[Value], scope: Scope) -> None:
        """Compare the length of an array argument with the number of dimensions passed beside it."""
        at = _SHAPED.get(name, len(values))
        beside = at - 1 if at == 2 else at + 1
        count = values[beside] if max(at, beside) < len(values) else None
        number = scope.find(arguments[at].text) if isinstance(count, Number) else None
        have = self.lengths.get(number, 0) if number is not None else 0
        if isinstance(count, Number) and 0 < have < count.value:
            place = arguments[at].span
            self.misfits[place] = Misfit("short", arguments[at].text, place, have, count.value)

    def called(
        self, name: str, node: CppNode, arguments: Sequence[CppNode], values: Sequence[Value], scope: Scope
    ) -> None:
        """Record a call of a function that is not in the file, and an array passed to it."""
        if name in _SHAPED:
            self.shaped(name, arguments, values, scope)
        if not name or name in _SHAPED or name in _USUAL or ("", name) in self.names:
            return
        function = node.field("function")
        if function is not None and function.kind != "qualified_identifier":
            self.name("", function, name)

    def method(
        self, name: str, function: CppNode, arguments: Sequence[CppNode], values: Sequence[Value], scope: Scope
    ) -> None:
        """Record a method, and its arguments, of a variable whose class is named in its declaration, or of a task's outputs."""
        if name in ("view", "set_task_timing_slot"):
            self._sized(name, arguments, values, scope)
        if name in COMMON:
            return
        argument, field = function.field("argument"), function.field("field")
        if argument is None or field is None or argument.kind not in ("identifier", "call_expression"):
            return
        number = scope.find(argument.text) if argument.kind == "identifier" else None
        of = self.types.get(number, "") if number is not None else _made_by(argument)
        if of and "->" not in function.text:
            self.name(of, field, name)

    def _sized(self, name: str, arguments: Sequence[CppNode], values: Sequence[Value], scope: Scope) -> None:
        """Record arrays of different lengths for one view, and the timing slot of a task."""
        if name == "view" and len(arguments) > 1:
            numbers = [scope.find(item.text) for item in arguments[:2]]
            have, want = (self.lengths.get(number, 0) if number is not None else 0 for number in numbers)
            if have != want and min(have, want) > 0 and max(have, want) < ANY_LENGTH:
                place = arguments[1].span
                self.misfits[place] = Misfit("unequal", arguments[1].text, place, want, have)
        elif name == "set_task_timing_slot" and len(values) == 1 and isinstance(values[0], Number):
            place = arguments[0].span
            if 0 <= values[0].value < _SURE_SLOTS:
                return
            self.misfits[place] = Misfit("slot", name, place, values[0].value)

    def fill(self, number: int, node: CppNode, *, late: bool) -> None:
        """Record a call that adds to a payload; ``late`` if its task is already submitted."""
        if (number not in self.filled or late) and self.types.get(number) == PAYLOAD:
            found = (node.text.partition(".")[0].strip(), node.span)
            self.filled.setdefault(number, found)
            if late:
                self.late.setdefault(number, found)

    def go_on(self, numbers: Iterable[int]) -> None:
        """Forget late additions to payloads that are submitted again, emptied, or passed to other code."""
        for number in numbers if self.late else ():
            late = self.late.pop(number, None)
            if late is not None:
                self.submitted_later.add(late[1])

    def submit(self, name: str, arguments: Sequence[CppNode], scope: Scope) -> None:
        """Record a payload that is passed as the kernel of a task."""
        if len(arguments) == 2 and arguments[0].kind == "identifier":
            number = scope.find(arguments[0].text)
            if number is not None and self.types.get(number) == PAYLOAD:
                self.misfits[arguments[0].span] = Misfit("swapped", name, arguments[0].span)

    def made(self, name: str, of: str, value: Value, node: CppNode) -> None:
        """Record a variable with outputs made by the runtime, for a task that has no other outputs."""
        if isinstance(value, Outputs) and value.count and value.only and of == "TaskOutputTensors":
            if "maybe_unused" in node.text:
                return
            self.misfits.setdefault(node.span, Misfit("untaken", name, node.span, node.span.start))

    def unsubmitted(self, submitted: set[int]) -> None:
        """Record the local payloads that are filled and not submitted in any iteration of a loop."""
        for name, span in self.late.values():
            if span not in self.submitted_later:
                self.misfits[span] = Misfit("late", name, span)
        done = {self.sites.get(number) for number in submitted}
        for number, (name, span) in self.filled.items():
            at = self.sites.get(number, -1)
            if at >= 0 and at not in done:
                self.misfits.setdefault(span, Misfit("unsubmitted", name, span, at))


def _made_by(call: CppNode) -> str:
    """Return the class of a runtime call's result; empty for any other expression."""
    function = call.field("function") if call.kind == "call_expression" else None
    return "TaskOutputTensors" if function is not None and _SUBMITS.fullmatch(function.text) else ""

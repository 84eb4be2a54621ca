"""Names that an orchestration uses and the runtime does not have, and calls that cannot be right."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span, places_of, words_in
from opschema_cli.suggestions import did_you_mean, near_name, near_names
from opschema_rules.pypto.facts import Misfit, Name
from opschema_rules.pypto.includes import headers_of, includes_others
from opschema_rules.pypto.model import Program
from opschema_rules.pypto.runtime_api import Interface, interface_of


@rule("PTO130", "orchestration-name", needs=(CPP,))
def orchestration_name(program: Program) -> Iterator[Diagnostic]:
    """A name that an orchestration uses and that the runtime does not have.

    The orchestration is compiled when a case runs, on a machine with the tool chain; until then nobody sees that a method, a
    function or a variable is misspelled.

    Members of `CoreTaskArgs`, `TaskOutputTensors`, `ChipTensor` and the like are compared with these classes in the headers of the
    tree, if the variable is declared with that class, and `DataType` with its enumerators. A function whose name begins with `rt_`
    must be in some header of the tree. Of any other function or variable it is reported that it is nowhere declared if its name is
    close to one that is, occurs once in the file and in no header of the tree, and cannot be a function of C's library. Neither is
    reported of a file that includes other headers than the runtime's and the standard library's, or runtime headers that are not
    part of the tree.

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_in_out(orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, p);
    ```

    ```cpp src/a5/runtime/tensormap_and_ringbuffer/runtime/pto_types.h
    struct CoreTaskArgs {
        void add_input(const ChipTensor &t);
        void add_inout(const ChipTensor &t);
    };
    ```

    Good, the method is that of another class of the same name in the tree:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref());
    p.add_in_out(orch_args.tensor(1).ref());
    rt_submit_aiv_task(0, p);
    ```

    ```cpp src/a5/runtime/tensormap_and_ringbuffer/runtime/pto_types.h
    struct CoreTaskArgs {
        void add_input(const ChipTensor &t);
    };
    ```

    ```cpp src/a3/runtime/host_build_graph/runtime/pto_types.h
    struct CoreTaskArgs : Base {
        void add_input(const ChipTensor &t);
    };
    struct Base {
        void add_in_out(const ChipTensor &t);
    };
    ```
    """
    part = program.orchestration
    entry = part.entry if part is not None else None
    source = program.project.source(part.source) if part is not None and part.source is not None else None
    if entry is None or source is None or not entry.names:
        return
    interface, near = interface_of(program.project), _Undeclared(source.text)
    own = {name for names in _OWN.findall(source.text) for name in names}
    for item in entry.names:
        if item.owner:
            found = _of_class(interface, item, own)
        else:
            found = near.message(interface, item)
        if found:
            yield Diagnostic(found, Place(source.path, item.span))


def _of_class(interface: Interface, item: Name, own: set[str]) -> str:
    """Return the message on a member that a class does not have; empty if it may have it, or if the class is one of the ``own``."""
    members = interface.members(item.owner) if item.owner not in own else None
    if members is not None and (item.owner, item.member) == ("CoreTaskArgs", "add_tensor"):
        is_refused = "add_tensor" not in members or interface.holds_references
        return f"`CoreTaskArgs` cannot copy a tensor: {_ADDS}" if is_refused else ""
    if members is None or item.member in members:
        return ""
    hint = did_you_mean(near_name(item.member, members, 0.7))
    return f"`{item.owner}` has no `{item.member}`{hint}"


_ADDS = "add it with `add_input()`, `add_output()` or `add_inout()`"


class _Undeclared:
    """Names that a file uses and nothing declares."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_alone: bool | None = None

    @cached_property
    def _words(self) -> list[str]:
        return sorted(words_in(self._text))

    def message(self, interface: Interface, item: Name) -> str:
        """Return the message on a name; empty if it may be declared."""
        name, is_function = item.member, self._text.startswith("(", item.span.end)
        if name.isupper() or name.startswith("_") or _STANDARD.fullmatch(name):
            return ""
        is_runtime = is_function and name.startswith("rt_")
        if is_function and not is_runtime and _LIBRARY.match(name):
            return ""
        if not is_runtime and self._text.count(name) > 1:
            return ""
        if self._is_open(interface) or interface.may_declare(name):
            return ""
        if is_runtime:
            return "" if self._is_declared(name) else f"the runtime has no function `{name}()`"
        near = next((other for other in near_names(name, self._words, 2, 0.8) if other != name), None)
        return f"nothing declares `{name}`{did_you_mean(near)}" if near is not None else ""

    def _is_declared(self, name: str) -> bool:
        """Whether a file seems to declare a function itself."""
        for at in places_of(name, self._text):
            before, end = self._text[max(0, at - _NEAR) : at], at + len(name)
            after = self._text[end : end + _NEAR].lstrip()[:1]
            if _MACRO.search(before) or after == "=" or (after == "(" and _TYPE.search(before)):
                return True
        return False

    def _is_open(self, interface: Interface) -> bool:
        """Whether macros or unknown files may declare names."""
        if self._is_alone is None:
            is_open = includes_others(self._text) or "##" in self._text or "using namespace" in self._text
            self._is_alone = not is_open and all(map(interface.has_header, headers_of(self._text)))
        return not self._is_alone


_NEAR = 100
"""Maximum number of characters before or after a name that show how it is used."""

_MACRO, _TYPE = re.compile(r"\b(?:define|using)\s+\Z"), re.compile(r"[\w>*&]\s+[*&]*\Z")
_STANDARD = re.compile(r"std\w*|errno|environ|nullptr|true|false|this|NULL|EOF|NAN|INFINITY|[a-z]\w?")
_LIBRARY = re.compile(r"[a-z0-9]+\Z|(?:atomic|mtx|cnd|thrd|tss|aligned|quick|at_quick|clock|call|va|sched|pthread)_")
"""Functions that the C and system libraries may have."""

_OWN = re.compile(r"\b(?:struct|class|enum|define|using)\s+(\w+)\b(?!\s*::)|\btypedef\b[^;{}]{0,200}?(\w+)\s*;")


@rule("PTO131", "orchestration-call", needs=(CPP,))
def orchestration_call(program: Program) -> Iterator[Diagnostic]:
    """A call of the runtime in an orchestration that cannot be right.

    * `TensorCreateInfo(shapes, n, ...)`, `make_tensor_external()`, `get_tensor_data()` and `set_tensor_data()` read `n` numbers
      from an array: one that is shorter makes a tensor of arbitrary size. The array has to be a variable with a known size.
    * `rt_submit_aiv_task(p, 0)` has its arguments in the wrong order.
    * `view(shapes, offsets)` reads as many numbers from both arrays; if one is shorter than the other, it has too few, or the
      other has some that nothing reads. That is a warning.
    * `set_task_timing_slot(n)` refuses a slot beyond the last one of the tree's runtime, so that the task fails.
    * What is added to a payload after its task was submitted reaches no task, unless a loop around it submits it again.
    * A payload that is filled and never submitted is a task that does not run, often since another payload is submitted twice.
    * Outputs that are kept in a variable which nothing uses are lost, if the task writes nothing else: often those of another task
      are taken instead.

    The last two are warnings, too. They are only reported where the variable has no other use in its block, a payload only where
    the entire orchestration can be followed.

    Bad:

    ```cpp
    uint32_t shapes[1] = {16};
    TensorCreateInfo made(shapes, 2, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(made);
    rt_submit_aiv_task(0, p);
    ```

    Bad:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    CoreTaskArgs q;
    q.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    q.add_inout(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```

    Good, an array may be longer than a tensor has dimensions:

    ```cpp
    uint32_t shapes[3] = {16, 16, 1};
    TensorCreateInfo made(shapes, 2, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(made);
    rt_submit_aiv_task(0, p);
    ```
    """
    part = program.orchestration
    entry = part.entry if part is not None else None
    source = program.project.source(part.source) if part is not None and part.source is not None else None
    if entry is None or source is None or not entry.misfits:
        return
    misfits = [item for item in entry.misfits if not (item.kind == "untaken" and _is_used_soon(source.text, item))]
    own = [item for item in misfits if item.kind in ("untaken", "unsubmitted")]
    uses = [_Uses(source.text), _Uses(only_code(source.text))] if own else []
    for item in misfits:
        place = Place(source.path, item.span)
        if item not in own:
            severity = Severity.WARNING if item.kind == "unequal" else Severity.ERROR
            message = _misfit(program, item)
            if message:
                yield Diagnostic(message, place, severity=severity)
        elif not all(text.is_alone(item) for text in uses):
            continue
        elif item.kind == "untaken":
            message = f"nothing uses `{item.name}`, and the task writes nothing else: its results are lost"
            yield Diagnostic(message, place, severity=Severity.WARNING)
        elif not entry.unresolved:
            message = f"`{item.name}` is filled and never submitted, so that this task does not run"
            related = (Related(Place(source.path, Span(item.have, item.have)), "declared here"),)
            yield Diagnostic(message, place, related, severity=Severity.WARNING)


def _misfit(program: Program, item: Misfit) -> str:
    """Return the message on a call that is wrong as written; empty if it is right in the tree's runtime."""
    if item.kind == "short":
        return f"`{item.name}` has {count(item.have, 'element')}, and {item.want} are read from it"
    if item.kind == "unequal":
        return f"`{item.name}` has {count(item.have, 'element')}, and the shapes {item.want}: `view()` reads as many of both"
    if item.kind == "slot":
        slots = interface_of(program.project).constant("NUM_TASK_TIMING_SLOTS")
        is_right = slots is None or 0 <= item.have < slots
        return "" if slots is None or is_right else f"there is no timing slot {item.have}; the last one is {slots - 1}"
    if item.kind == "swapped":
        return f"`{item.name}()` gets the kernel first, and then the payload"
    return f"the task of `{item.name}` is submitted already, and nothing submits it again"


def _is_used_soon(text: str, item: Misfit) -> bool:
    """Whether a variable is used in its block, close to its declaration: nearly all are, and the check is fast."""
    at, until = item.span.end, item.span.end + _SOON
    while (at := text.find(item.name, at, until)) >= 0:
        end = at + len(item.name)
        is_word = not (
            text[at - 1].isalnum() or text[at - 1] == "_" or text[end : end + 1].isalnum() or text[end : end + 1] == "_"
        )
        if is_word:
            depth = 0
            for brace in _BRACE.findall(text, item.span.end, at):
                depth += 1 if brace == "{" else -1
                if depth < 0:
                    return False
            return True
        at = end
    return False


class _Uses:
    """The places of the words of a text, and the ends of its blocks."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, list[int]] = {}
        for match in _WORD.finditer(text):
            self._places.setdefault(match[0], []).append(match.start())
        self._in_macros = set(_WORD.findall(" ".join(_DEFINE.findall(text))))
        self._braces = [match.start() for match in _BRACE.finditer(text)]
        self._ends: list[int] = [len(text)]
        left: list[int] = []
        for at in reversed(self._braces):
            if text[at] == "}":
                left.append(at)
            elif left:
                left.pop()
            self._ends.append(left[-1] if left else len(text))
        self._ends.reverse()

    def is_alone(self, item: Misfit) -> bool:
        """Whether a variable is only used in calls of a payload's methods in its block."""
        places = self._places.get(item.name, [])
        end = self._ends[bisect_left(self._braces, item.have)]
        own = places[bisect_left(places, item.have) : bisect_left(places, end)]
        if item.kind == "unsubmitted":
            own = [at for at in own if _METHOD.match(self._text, at + len(item.name)) is None]
        return len(own) == 1 and item.name not in self._in_macros


_SOON = 2_000
"""Maximum number of characters between the declaration of a variable and its next use to search at once."""

_BRACE, _WORD, _METHOD = re.compile(r"[{}]"), re.compile(r"\w+"), re.compile(r"\s{0,100}\.")
_DEFINE = re.compile(r"(?m)^[ \t]*#[ \t]*define\b(?:\\\r?\n|.)*")

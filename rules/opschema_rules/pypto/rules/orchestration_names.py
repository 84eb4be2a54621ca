"""Names that an orchestration uses and the runtime does not have, and calls that cannot be right."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span, words_in
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.pypto.facts import Misfit, Name
from opschema_rules.pypto.includes import includes_others
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
    close to one that is, occurs once in the file and in no header of the tree, and the file includes only the runtime's headers and
    the standard library. Nothing is reported where the runtime's headers are not part of the tree.

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
    for item in entry.names:
        if item.owner:
            found = _of_class(interface, item, source.text)
        else:
            found = near.message(interface, item)
        if found:
            yield Diagnostic(found, Place(source.path, item.span))


def _of_class(interface: Interface, item: Name, text: str) -> str:
    """The message about a member that a class does not have; empty if it may have it."""
    members = interface.members(item.owner)
    if members is None or item.member in members or re.search(rf"\b(?:struct|class|define)\s+{item.owner}\b", text):
        return ""
    hint = did_you_mean(near_name(item.member, members, 0.7))
    return f"`{item.owner}` has no `{item.member}`{hint}"


class _Undeclared:
    """Names that a file uses and nothing declares."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_alone: bool | None = None

    def message(self, interface: Interface, item: Name) -> str:
        """The message about a name; empty if it may be declared."""
        name, is_function = item.member, self._text.startswith("(", item.span.end)
        if name.isupper() or name.startswith("_") or _STANDARD.fullmatch(name):
            return ""
        is_runtime = is_function and name.startswith("rt_")
        if not is_runtime and self._text.count(name) > 1:
            return ""
        if self._is_open():
            return ""
        near = near_name(name, sorted(words_in(self._text) - {name}), 0.8) if not is_runtime else None
        if (near is None and not is_runtime) or interface.may_declare(name):
            return ""
        if is_runtime:
            own = rf"[\w>*&]\s+[*&]*{name}\s*\(|\b(?:define|using)\s+{name}\b|\b{name}\s*="
            return "" if re.search(own, self._text) else f"the runtime has no function `{name}()`"
        return f"nothing declares `{name}`{did_you_mean(near)}"

    def _is_open(self) -> bool:
        """Whether other files or macros may declare names."""
        if self._is_alone is None:
            self._is_alone = not includes_others(self._text) and "##" not in self._text
        return not self._is_alone


_STANDARD = re.compile(r"std\w*|errno|environ|nullptr|true|false|this|NULL|EOF|NAN|INFINITY|[a-z]\w?")


@rule("PTO131", "orchestration-call", needs=(CPP,))
def orchestration_call(program: Program) -> Iterator[Diagnostic]:
    """A call of the runtime in an orchestration that cannot be right.

    * `TensorCreateInfo(shapes, n, ...)`, `make_tensor_external()`, `get_tensor_data()` and `set_tensor_data()` read `n` numbers of
      an array: one that is shorter makes a tensor of arbitrary size. The array has to be a variable with a known size.
    * `rt_submit_aiv_task(p, 0)` has its arguments in the wrong order.
    * What is added to a payload after its task was submitted, outside of loops, reaches no task.
    * A payload that is filled and never submitted is a task that does not run, often since another payload is submitted twice.
    * Outputs that are kept in a variable which nothing uses are lost, if the task writes nothing else: often those of another task
      are taken instead.

    The last two are warnings. They are only reported where the variable has no other use in its block, a payload only where the
    entire orchestration can be followed.

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
    for item in entry.misfits if entry is not None and source is not None else ():
        place = Place(source.path if source is not None else "", item.span)
        if item.kind == "short":
            yield Diagnostic(f"`{item.name}` has {item.have}, and {item.want} dimensions are read of it", place)
        elif item.kind == "swapped":
            yield Diagnostic(f"`{item.name}()` gets the kernel first, and then the payload", place)
        elif item.kind == "late":
            yield Diagnostic(f"the task of `{item.name}` is submitted already, and nothing submits it again", place)
        elif source is not None and _goes_nowhere(source.text, item):
            if item.kind == "untaken":
                message = f"nothing uses `{item.name}`, and the task writes nothing else: its results are lost"
                yield Diagnostic(message, place, severity=Severity.WARNING)
            elif entry is not None and not entry.unresolved:
                message = f"`{item.name}` is filled and never submitted, so that this task does not run"
                related = (Related(Place(source.path, Span(item.have, item.have)), "declared here"),)
                yield Diagnostic(message, place, related, severity=Severity.WARNING)


def _goes_nowhere(text: str, item: Misfit) -> bool:
    """Whether nothing is done with a variable in its block, but calls of the methods of a payload."""
    return _is_alone(text, item) and _is_alone(only_code(text), item)


def _is_alone(code: str, item: Misfit) -> bool:
    """The same of a text whose braces are all code."""
    depth, end = 0, len(code)
    for match in _BRACE.finditer(code, item.have):
        depth += 1 if match[0] == "{" else -1
        if depth < 0:
            end = match.start()
            break
    methods = r"(?!\s*\.)" if item.kind == "unsubmitted" else ""
    uses = re.compile(rf"\b{item.name}\b{methods}").finditer(code, item.have, end)
    return sum(1 for _ in uses) == 1


_BRACE = re.compile(r"[{}]")

"""The orchestration's own tensors that none of its tasks uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.text import Span
from opschema_rules.pypto.model import Declared, Direction, OrchestrationPart, Program
from opschema_rules.pypto.staging import uses_of


@rule("PTO122", "orch-tensor-unused", severity="warning", needs=(CPP,))
def orch_tensor_unused(program: Program) -> Iterator[Diagnostic]:
    """A tensor that the orchestration declares and nothing uses.

    The runtime copies an `OUT` tensor back to the host although nothing wrote its memory on the device: the result is undefined.
    Often a task writes another tensor instead, or was removed. For an `IN` or `INOUT` tensor this is an info: it is copied
    for nothing, or was mixed up with another.

    A tensor is unused if the orchestration takes it nowhere, or gives it a name that it does not use again, be it for a shape
    only. Nothing is reported if the orchestration cannot be followed, if it uses its arguments in any form but
    `orch_args.tensor(2).ref()`, if it has macros that its file does not define, or if it is one of several `callables`.
    `orch-out-read` reports an `OUT` tensor that is only read.

    Bad:

    ```cpp
    const ChipTensor &a = orch_args.tensor(0).ref();
    const ChipTensor &b = orch_args.tensor(1).ref();
    const ChipTensor &c = orch_args.tensor(2).ref();
    TensorCreateInfo created(a.shapes, 2, DataType::FLOAT32);
    CoreTaskArgs p;
    p.add_input(a, b);
    p.add_output(created);
    rt_submit_aiv_task(0, p);
    ```

    Good:

    ```cpp
    const ChipTensor &a = orch_args.tensor(0).ref();
    const ChipTensor &b = orch_args.tensor(1).ref();
    const ChipTensor &c = orch_args.tensor(2).ref();
    CoreTaskArgs p;
    p.add_input(a, b);
    p.add_output(c);
    rt_submit_aiv_task(0, p);
    ```
    """
    part = program.orchestration
    unused = _without_uses(part) if part is not None and not program.listed else {}
    source = program.project.source(part.source) if unused and part is not None and part.source is not None else None
    if part is None or part.entry is None or source is None:
        return
    named = _named_again(source.text, part.entry.span, unused)
    where = Related(Place(source.path, part.entry.span), "all that it does")
    for index, declared in unused.items():
        if index not in named:
            is_output = declared.direction is Direction.OUT
            effect = "no task writes it: its memory is undefined" if is_output else "nothing uses it"
            yield Diagnostic(
                f"tensor {index} of the orchestration is declared `{declared.direction.value}`, and {effect}",
                part.at(declared.expr),
                (where,),
                severity=Severity.WARNING if is_output else Severity.INFO,
            )


def _without_uses(part: OrchestrationPart) -> dict[int, Declared]:
    """Return the tensors of an orchestration that neither a task nor its own code is known to use."""
    entry, signature = part.entry, part.signature
    if entry is None or signature is None or entry.unresolved or not entry.submits:
        return {}
    uses, slots = uses_of(entry), enumerate(signature.slots or ())
    return {at: slot for at, slot in slots if slot.direction is not Direction.SCALAR and not uses.get(at)}


def _named_again(text: str, entry: Span, among: Collection[int]) -> Collection[int]:
    """Return the tensors that an entry may use, by its text: all but those that it assigns to an unused name; all of ``among``
    if the text may use any through a macro or a pointer.
    """
    file = only_code(text)
    code = only_code(text, directives=False)
    body, macros = code[entry.start : entry.end], "\n".join(_DEFINES.findall(file))
    head, _, block = body.partition("{")
    found = _ARGUMENTS.search(head)
    if found is None or _INCLUDE.search(file, entry.start, entry.end) or _unknown(f"{body}\n{macros}", code, macros):
        return among
    taken = re.compile(
        rf"(?:\bconst\s+)?(?:\bauto|\b\w*Tensor)\s*(?:&\s*)?(?P<name>\w+)\s*=\s*{found[1]}\.tensor\((?P<at>\d+)\)\.ref\(\)\s*;"
        rf"|(?<!&)(?<!& ){found[1]}\.(?:tensor\((?P<other>\d+)\)\.ref\(\)|scalar\(|\w+_count\()"
    )
    uses = list(taken.finditer(block))
    addresses = {use["name"] for use in uses} & {*_ADDRESS.findall(block)}
    if addresses or len(uses) != len(re.findall(rf"\b{found[1]}\b", f"{block}\n{macros}")):
        return among
    names = re.findall(r"\b[A-Za-z_]\w*", f"{block}\n{macros}")
    again = {int(use["other"]) for use in uses if use["other"]}
    return again | {int(use["at"]) for use in uses if use["at"] and names.count(use["name"]) > 1}


def _unknown(body: str, code: str, macros: str) -> bool:
    """Whether a text may contain macros of other files."""
    known = {
        *_SET.findall(code),
        *_MACRO.findall(macros),
        *(name for inner in _ENUM.findall(code) for name in _CAPITALS.findall(inner)),
    }
    return any(name not in known and not name.startswith(("PTO", "LOG_")) for name in _CAPITALS.findall(body))


_ARGUMENTS = re.compile(r"\b\w*Args\s*&\s*(\w+)")
_ADDRESS = re.compile(r"(?:[(,{]|(?<!\.operand\.tensor )=)\s*&\s*(\w+)")  # but of a predicate, which reads one tensor
_INCLUDE = re.compile(r"#\s*include\b")
_DEFINES = re.compile(r"(?m)^[ \t]*#[ \t]*define\b(?:[^\\\n]|\\\r?\n|\\.)*")
_MACRO = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)")
_SET = re.compile(r"\b([A-Z]\w+)\s*=(?!=)")
_ENUM = re.compile(r"\benum\b[\s\w:]{0,100}\{([^{}]*)\}")
_CAPITALS = re.compile(r"(?<![\w:.>])[A-Z][A-Z0-9_]+\b")

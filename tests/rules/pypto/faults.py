"""Faults of 12 kinds that are put into programs of a tree, and the rules that report them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from opschema_cli.project import Project
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_cli.testing import lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.load import load_programs
from opschema_rules.pypto.model import Direction, Kernel, Program
from opschema_rules.pypto.pack import PACK
from opschema_rules.pypto.task_matching import Task, tasks


class Fault(msgspec.Struct, frozen=True):
    """An edit of a file, and the rules of which one has to report it."""

    path: str
    edit: Edit
    codes: frozenset[str]


class Tree(msgspec.Struct, frozen=True):
    """The files of a tree, and what it describes."""

    texts: Mapping[str, str]
    programs: list[Program]


def _alone(program: Program) -> Iterator[tuple[Task, Kernel]]:
    """The tasks of one kernel each, whose payload is known."""
    for task in tasks(program):
        if task.whole and len(task.kernels) == 1 and len(task.payloads) == 1:
            yield task, task.kernels[0]


def _matches(tree: Tree, path: str | None, pattern: str) -> Iterator[re.Match[str]]:
    yield from re.finditer(pattern, tree.texts.get(path or "", ""), re.MULTILINE)


def _statement(pattern: str, codes: str, replacement: str = "") -> Callable[[Tree, Program], Iterator[Fault]]:
    """A statement of an orchestration is another, or missing."""

    def faults(tree: Tree, program: Program) -> Iterator[Fault]:
        part = program.orchestration
        path = part.source if part is not None else None
        payloads = {task.submit.span for task, _ in _alone(program)}
        for match in _matches(tree, path, pattern) if payloads and path else ():
            yield Fault(path, Edit(Span(*match.span()), match.expand(replacement)), frozenset(codes.split()))

    return faults


def _kernel_code(pattern: str, codes: str, replacement: str) -> Callable[[Tree, Program], Iterator[Fault]]:
    """A statement of a kernel is another."""

    def faults(tree: Tree, program: Program) -> Iterator[Fault]:
        for _, kernel in _alone(program):
            for match in list(_matches(tree, kernel.source, pattern))[-1:]:
                edit = Edit(Span(*match.span()), match.expand(replacement))
                yield Fault(kernel.source or "", edit, frozenset(codes.split()))

    return faults


def _another_number(tree: Tree, program: Program) -> Iterator[Fault]:
    for _, kernel in _alone(program):
        if kernel.func_id is not None:
            number = kernel.fields["func_id"][1].span
            yield Fault(program.file.path, Edit(number, f"{kernel.func_id + 50}"), frozenset({"PTO108", "PTO119"}))


def _another_core(tree: Tree, program: Program) -> Iterator[Fault]:
    for _, kernel in _alone(program):
        other = {"aic": '"aiv"', "aiv": '"aic"'}.get(kernel.text("core_type") or "", "")
        if other:
            yield Fault(program.file.path, Edit(kernel.fields["core_type"][1].span, other), frozenset({"PTO108"}))


def _another_direction(tree: Tree, program: Program) -> Iterator[Fault]:
    for _, kernel in _alone(program):
        for slot in kernel.signature.tensors[:1] if kernel.signature is not None else ():
            if slot.direction is Direction.IN and slot.written:
                owner = slot.expr.text.rpartition(".")[0]
                yield Fault(program.file.path, Edit(slot.expr.span, f"{owner}.OUT"), frozenset({"PTO103"}))


def _shorter_signature(tree: Tree, program: Program) -> Iterator[Fault]:
    for task, kernel in _alone(program):
        slots = kernel.signature.tensors if kernel.signature is not None else ()
        if 1 < len(slots) == task.widest and slots[-1].written:
            edit = Edit(Span(slots[-2].expr.end, slots[-1].expr.end), "")
            yield Fault(program.file.path, edit, frozenset({"PTO102"}))


def _entry_direction(before: Direction, after: str, codes: str) -> Callable[[Tree, Program], Iterator[Fault]]:
    """A tensor of the orchestration has another direction."""

    def faults(tree: Tree, program: Program) -> Iterator[Fault]:
        part = program.orchestration
        for slot in part.signature.slots or () if part is not None and part.signature is not None else ():
            if slot.direction is before and slot.written and any(_alone(program)):
                owner = slot.expr.text.rpartition(".")[0]
                yield Fault(program.file.path, Edit(slot.expr.span, f"{owner}.{after}"), frozenset(codes.split()))
                break

    return faults


KINDS: dict[str, Callable[[Tree, Program], Iterator[Fault]]] = {
    "a kernel has another number": _another_number,
    "a kernel is built for the other core": _another_core,
    "a direction of a kernel is wrong": _another_direction,
    "a signature is too short": _shorter_signature,
    "an output is not added": _statement(r"^[ \t]*\w+(?:\.|->)add_output\([^;]*\);", "PTO116 PTO120 PTO102 PTO103"),
    "an input is not added": _statement(r"^[ \t]*\w+(?:\.|->)add_input\([^;]*\);", "PTO116 PTO120 PTO103"),
    "a scalar is not added": _statement(r"^[ \t]*\w+(?:\.|->)add_scalar\([^;,]*\);", "PTO116 PTO135"),
    "an output is added as an input": _statement(r"\badd_output\((?=[^;]*\);)", "PTO103 PTO117", "add_input("),
    "a kernel uses an argument too many": _kernel_code(r"(\bargs(?:\[|, ))(\d+)(?=[\])])", "PTO116", r"\g<1>1\2"),
    "a kernel writes an input": _kernel_code(r"\bTLOAD\((\w+), (\w+)\);", "PTO117", r"TLOAD(\1, \2); TSTORE(\2, \1);"),
    "an input of the orchestration is an output": _entry_direction(Direction.IN, "OUT", "PTO106"),
    "an output of the orchestration is an input": _entry_direction(Direction.OUT, "IN", "PTO107"),
}


def _found(files: Mapping[str, str]) -> Counter[tuple[str, str, str]]:
    """The findings by rule, file and message, with numbers of lines left out."""
    return Counter((item.code, item.place.path, item.message) for item in lint_files([PACK], dict(files)).diagnostics)


def _folder(path: str) -> str:
    """The folder of a program, in which all of its files are."""
    return re.split(r"/(?:kernels/|orchestration/|test_\w+\.py|main\.py|kernel_config\.py)", path)[0]


def missed(tree: Tree, each: int) -> list[str]:
    """The faults of which no rule that should tells anything, one of each kind in a program."""
    before = _found(tree.texts)
    rounds: list[dict[str, tuple[str, Fault]]] = []
    for kind, make in KINDS.items():
        chosen: dict[str, Fault] = {}
        for program in tree.programs:
            for fault in make(tree, program):
                chosen.setdefault(_folder(fault.path), fault)
        assert len(chosen) >= each, (kind, len(chosen))
        order = sorted(chosen.items(), key=lambda item: (sum(item[0] in others for others in rounds), item[0]))
        for folder, fault in order[:each]:
            free = next((item for item in rounds if folder not in item), None)
            if free is None:
                rounds.append(free := {})
            free[folder] = (kind, fault)
    lost: list[str] = []
    for faults in rounds:
        changed = {fault.path: apply_edits(tree.texts[fault.path], [fault.edit]) for _, fault in faults.values()}
        new = _found({**tree.texts, **changed}) - before
        for folder, (kind, fault) in faults.items():
            if not any(code in fault.codes and path.startswith(folder) for code, path, _ in new):
                line = tree.texts[fault.path].count("\n", 0, fault.edit.span.start) + 1
                lost.append(f"{kind}: {fault.path}:{line}")
    return lost


def read_tree(root: Path, left_out: re.Pattern[str] | None = None) -> Tree:
    """A tree without the files that a pattern matches."""
    project = Project(Workspace(root))
    texts = {
        path: project.workspace.peek(path).decode("utf-8", "replace")
        for path in project.workspace.files
        if path.endswith((".py", ".cpp", ".h", ".toml")) and not (left_out is not None and left_out.search(path))
    }
    programs = [item for item in load_programs(project, PyptoOptions()) if item.file.path in texts]
    return Tree(texts, programs)

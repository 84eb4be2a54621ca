"""Faults of 20 kinds that are put into operator lists and kernels of a tree, and the rules that report them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from opschema_cli.cache import Cache
from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.source.cpp_functions import CppFunction, CppParameterText
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_cli.workspace import Workspace
from opschema_rules.executorch.detection import ExecutorchOptions
from opschema_rules.executorch.kernels import KernelCheck, candidates, read_kernels
from opschema_rules.executorch.load import read_tree
from opschema_rules.executorch.pack import PACK


class Fault(msgspec.Struct, frozen=True):
    """An edit of a file, the rules of which one has to report it, and a text that the finding holds."""

    path: str
    edit: Edit
    codes: tuple[str, ...]
    hint: str


Make: TypeAlias = Callable[[Project, KernelCheck], Iterator[Fault]]


def _of_entry(pattern: str, replacement: str, *codes: str, hint: str = "", aten: bool | None = None) -> Make:
    """A part of an entry is another one; of ATen's operators alone, or of others alone, unless ``aten`` is None."""

    def faults(project: Project, check: KernelCheck) -> Iterator[Fault]:
        entry = check.entry
        if aten is not None and aten != (entry.schema_text is None):
            return
        text = entry.file.source.text
        found = re.compile(pattern).search(text, entry.node.start, entry.node.end)
        if found is not None:
            edit = Edit(Span(*found.span()), found.expand(replacement))
            shown = hint or entry.qualified.rpartition("::")[2]
            yield Fault(entry.file.path, edit, codes, found.expand(shown) if hint else shown)

    return faults


def _twice(project: Project, check: KernelCheck) -> Iterator[Fault]:
    entry = check.entry
    text, start = entry.file.source.text, entry.node.start
    begins = text.rfind("\n", 0, start) + 1
    copied = text[begins : entry.node.end].rstrip() + "\n\n"
    yield Fault(entry.file.path, Edit(Span(begins, begins), copied), ("EXE105",), entry.qualified)


def _of_function(change: Callable[[str, CppFunction], Edit | None], *codes: str) -> Make:
    """The only C++ function of a kernel is another one."""

    def faults(project: Project, check: KernelCheck) -> Iterator[Fault]:
        here = [item for item in check.here if item.function.defined]
        if len(check.here) != 1 or not here or not check.certain or here[0].function.unsure or candidates(check):
            return
        source = project.source(here[0].path)
        edit = change(source.text, here[0].function) if source is not None else None
        if edit is not None:
            yield Fault(here[0].path, edit, codes, check.kernel.symbol)

    return faults


def _without(at: int) -> Callable[[str, CppFunction], Edit | None]:
    def change(text: str, function: CppFunction) -> Edit | None:
        if len(function.parameters) < 4:
            return None
        return Edit(Span(function.parameters[at].span.start, function.parameters[at + 1].span.start), "")

    return change


def _typed(before: str, after: str) -> Callable[[str, CppFunction], Edit | None]:
    def change(text: str, function: CppFunction) -> Edit | None:
        for item in function.parameters[1:-1]:
            found = re.compile(before).search(text, item.span.start, item.span.end)
            if found is not None:
                return Edit(Span(*found.span()), found.expand(after))
        return None

    return change


def _by_value(text: str, function: CppFunction) -> Edit | None:
    found = re.compile(r"\bTensor\s*&").search(text, function.span.start, function.name_span.start)
    return Edit(Span(*found.span()), "Tensor ") if found is not None and "tuple" not in function.returns else None


def _swapped(text: str, function: CppFunction) -> Edit | None:
    for one, other in zip(function.parameters[1:-1], function.parameters[2:-1], strict=False):
        if one.type != other.type and _is_plain(one) and _is_plain(other):
            first, second = (text[item.span.start : item.span.end] for item in (one, other))
            between = text[one.span.end : other.span.start]
            return Edit(Span(one.span.start, other.span.end), f"{second}{between}{first}")
    return None


def _is_plain(item: CppParameterText) -> bool:
    return re.search(r"\b(?:int64_t|double|bool|Tensor)\b", item.type) is not None and "<" not in item.type


def _renamed(text: str, function: CppFunction) -> Edit | None:
    return Edit(Span(function.name_span.end, function.name_span.end), "_impl")


KINDS: dict[str, Make] = {
    "the overload is unknown": _of_entry(r"- op: (\w+)\.(\w+)", r"- op: \1.\2s", "EXE201", hint=r"\1.\2s", aten=True),
    "the operator is unknown": _of_entry(r"- op: (\w)(\w+\.\w+)", r"- op: \1\1\2", "EXE201", hint=r"\1\1\2", aten=True),
    "an entry is listed twice": _twice,
    "the key of the name is misspelt": _of_entry(r"kernel_name:", "kernel_nam:", "EXE102", "EXE301"),
    "the key of the kernels is misspelt": _of_entry(r"kernels:", "kernel:", "EXE102"),
    "there are no kernels": _of_entry(r"\n  kernels:\n(?:    .*\n?)+", "\n", "EXE106"),
    "the kernel has another name": _of_entry(r"(kernel_name: \S+)out\b", r"\1uot", "EXE401"),
    "the namespace is written in full": _of_entry(
        r"kernel_name: (\S+)::(\w+)", r"kernel_name: \1::native::\2", "EXE402"
    ),
    "a schema has an unknown type": _of_entry(r"\((Tensor) ", "(Tensr ", "EXE103", hint="Tensr", aten=False),
    "a schema lacks a space": _of_entry(r", \*, Tensor", r",*, Tensor", "EXE103", aten=False),
    "a schema has another type": _of_entry(r"\b(?:int|float) (?=\w+)", "Tensor ", "EXE403", "EXE501", aten=False),
    "a schema has an argument more": _of_entry(r", \*, ", ", int more, *, ", "EXE403", "EXE501", aten=False),
    "a schema has a generator": _of_entry(
        r", \*, ", ", *, Generator? g=None, ", "EXE104", hint="Generator", aten=False
    ),
    "a kernel does not take the context": _of_function(_without(0), "EXE403"),
    "a kernel takes an argument too few": _of_function(_without(1), "EXE403"),
    "a kernel writes what it reads": _of_function(_typed(r"const ((?:\w|:)*Tensor\s*&)", r"\1"), "EXE403"),
    "a kernel takes a narrow integer": _of_function(_typed(r"\bint64_t\b", "int32_t"), "EXE403"),
    "a kernel returns a tensor by value": _of_function(_by_value, "EXE403"),
    "a kernel has its arguments in another order": _of_function(_swapped, "EXE403"),
    "the function has another name": _of_function(_renamed, "EXE401", "EXE403"),
}


def _findings(project: Project) -> Counter[tuple[str, str, str]]:
    registry = Registry((PACK,))
    outcome = run(Job(registry, resolve_settings(Config(), registry)), project)
    return Counter((item.code, item.place.path, f"{item.message} {item.ops}") for item in outcome.diagnostics)


def missed(workspace: Workspace, each: int) -> tuple[int, list[str]]:
    """The number of faults that are put into a tree, ``each`` of a kind, and those that no rule reports which should."""
    cache = Cache.for_workspace(workspace.root)
    project = Project(workspace, cache)
    checks = sorted(read_kernels(read_tree(project, ExecutorchOptions())), key=lambda item: item.entry.qualified)
    before = _findings(project)
    rounds, lost, total = _rounds(project, checks, each), [], 0
    for faults in rounds:
        edits: dict[str, list[Edit]] = {}
        for _, fault in faults:
            edits.setdefault(fault.path, []).append(fault.edit)
        texts = {path: apply_edits(_text(project, path), found) for path, found in edits.items()}
        new = _findings(Project(workspace.with_overlay(texts), cache)) - before
        total += len(faults)
        for kind, fault in faults:
            if not any(code in fault.codes and fault.hint in message for code, _, message in new):
                line = _text(project, fault.path).count("\n", 0, fault.edit.span.start) + 1
                lost.append(f"{kind}: {fault.path}:{line}: {fault.hint}")
    return total, lost


def _rounds(project: Project, checks: list[KernelCheck], each: int) -> list[list[tuple[str, Fault]]]:
    """The faults of each round, of each kind one, all of different operators and kernels."""
    rounds: list[list[tuple[str, Fault]]] = []
    used: set[str] = set()
    counts = Counter(name for check in checks for name in (check.entry.qualified, check.kernel.symbol))
    for _ in range(each):
        taken: list[tuple[str, Fault]] = []
        seen: set[str] = set()
        for kind, make in KINDS.items():
            for check in checks:
                names = {check.entry.qualified, check.kernel.symbol}
                if names & (used | seen) or any(counts[name] > 1 for name in names):
                    continue
                fault = next(make(project, check), None)
                if fault is not None:
                    taken.append((kind, fault))
                    seen |= names
                    break
        used |= seen
        rounds.append(taken)
    return rounds


def _text(project: Project, path: str) -> str:
    source = project.source(path)
    assert source is not None
    return source.text

"""The ids, cores and names of kernels, against the tasks that name them and the sources that they are built from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from opschema_cli.lint.diagnostic import CPP, Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit
from opschema_rules.pypto import proofs
from opschema_rules.pypto.facts import KernelId
from opschema_rules.pypto.model import Kernel, Program


@rule("PTO108", "func-id", needs=(CPP,))
def func_id(program: Program) -> Iterator[Diagnostic]:
    """A `func_id` that names no kernel, or the wrong one.

    A task names its kernels by number, and the runtime looks these numbers up. Three mistakes cause no error message:

    * two kernels of one program have the same `func_id`: the later one takes the place of the earlier;
    * a task names a number that no kernel has. In a branch or loop, where it may never be submitted, that is a warning, and
      an info where several programs share the orchestration, as each registers what its cases need. Tasks under an `#if` are
      not reported;
    * a task runs a kernel on the cube core (`rt_submit_aic_task`, the first field of `MixedKernels`) that is built for vector
      cores, or the other way round.

    Bad (one id for two kernels):

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "name": "add",
            "source": "kernels/aiv/add.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
        },
        {
            "func_id": 0,
            "name": "mul",
            "source": "kernels/aiv/mul.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
        },
    ]
    ```

    Bad (the wrong core):

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aic_task(0, p);
    ```

    Bad (no such kernel):

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(1, p);
    ```

    Good:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```
    """
    yield from _duplicates(program)
    part = program.orchestration
    entry = part.entry if part is not None else None
    if part is None or entry is None or part.source is None:
        return
    named = [(submit, item) for submit in entry.submits for item in submit.kernels]
    for submit, item in named:
        sure = not submit.conditional and not submit.looped
        if item.value is not None and not submit.absent and _is_nowhere(program, item.value):
            severity = Severity.ERROR if sure and not entry.unresolved else Severity.WARNING
            severity = Severity.INFO if part.shared and not sure else severity
            yield _unknown(program, item, Place(part.source, item.span), severity)
    runs: dict[Kernel, list[KernelId]] = {}
    for submit, item in named:
        kernel = program.kernel(item.value)
        if kernel is not None and not submit.absent:
            runs.setdefault(kernel, []).append(item)
    for kernel in program.kernels:
        yield from _cores(kernel, list(dict.fromkeys(runs.get(kernel, ()))), part.source)


def _duplicates(program: Program) -> Iterator[Diagnostic]:
    first: dict[int, Kernel] = {}
    for kernel in program.kernels:
        if kernel.func_id is None:
            continue
        other = first.setdefault(kernel.func_id, kernel)
        if other is not kernel:
            names = [f"`{name}`" if (name := _name(item)) else "another" for item in (kernel, other)]
            message = (
                f"`func_id` {kernel.func_id} is also that of {names[1]}, which {names[0]} replaces: give one of them "
                "another id"
            )
            related = other.related(other.fields["func_id"][1], "the other kernel")
            yield Diagnostic(message, kernel.at(kernel.fields["func_id"][1]), (related,))


def _name(kernel: Kernel) -> str:
    return kernel.text("name") or _stem(kernel)


def _is_nowhere(program: Program, number: int) -> bool:
    """Whether no kernel has this id, in a program whose kernels and ids are all known."""
    known = {kernel.func_id for kernel in program.kernels}
    told = program.whole and not program.listed and len(known) == len(program.kernels)
    return told and bool(known) and number not in known


def _unknown(program: Program, item: KernelId, place: Place, severity: Severity) -> Diagnostic:
    written = f"`{item.text}`" if item.text == str(item.value) else f"`{item.text}` ({item.value})"
    message = f"a task names kernel {written}, and `{program.name}` has no kernel with this `func_id`"
    related = Related(Place(program.file.path, program.span), "the kernels that are registered")
    return Diagnostic(message, place, (related,), severity=severity)


def _cores(kernel: Kernel, named: list[KernelId], source: str) -> Iterator[Diagnostic]:
    """Yield findings on tasks that run a kernel on a core that it is not built for; if all do, the finding is on the kernel."""
    core = kernel.text("core_type")
    wrong = [item for item in named if item.core and item.core != core]
    if core not in ("aic", "aiv") or not wrong:
        return
    declared = kernel.fields["core_type"][1]
    if len(wrong) == len(named):
        message = f"{kernel.title} is built for `{core}`, and its tasks run it on `{wrong[0].core}`"
        places = tuple(Related(Place(source, item.span), "it is submitted here") for item in wrong)
        yield Diagnostic(message, kernel.at(declared), places)
        return
    for item in wrong:
        message = f"{kernel.title} is built for `{core}`, and this task runs it on `{item.core}`"
        yield Diagnostic(message, Place(source, item.span), (kernel.related(declared, "its `core_type`"),))


@rule("PTO119", "kernel-unused", severity="info", needs=(CPP,))
def kernel_unused(program: Program) -> Iterator[Diagnostic]:
    """A kernel that no task of its program submits.

    It is compiled and loaded for nothing, or a task that should submit it names another number. The runtime allows it, so
    this is an info. Nothing is reported if something that the orchestration submits is not known, if a task names a number that
    no kernel has (see `func-id`), or if the program is one of several `callables`.

    Bad:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "name": "add",
            "source": "kernels/aiv/add.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
        },
        {
            "func_id": 1,
            "name": "mul",
            "source": "kernels/aiv/mul.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.IN, D.OUT],
        },
    ]
    ```

    Good:

    ```cpp
    CoreTaskArgs p;
    p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
    p.add_output(orch_args.tensor(2).ref());
    rt_submit_aiv_task(0, p);
    ```
    """
    part = program.orchestration
    entry = part.entry if part is not None else None
    if part is None or part.source is None or entry is None or entry.unresolved or program.listed or not entry.submits:
        return
    named = {item.value for submit in entry.submits for item in submit.kernels}
    known = {kernel.func_id for kernel in program.kernels}
    if (
        not named <= known
        or None in named
        or any(not submit.kernels for submit in entry.submits if "dummy" not in submit.api)
    ):
        return
    for kernel in program.kernels:
        if kernel.func_id is not None and kernel.func_id not in named and kernel.written:
            yield Diagnostic(
                f"no task submits {kernel.title}",
                kernel.at(kernel.fields["func_id"][1]),
                (Related(Place(part.source, entry.span), "the tasks that are submitted"),),
                ops=(kernel.title,),
                severity=Severity.INFO,
            )


@rule("PTO109", "name-source", severity="warning", fixable="safe", proof=proofs.SAME)
def name_source(program: Program) -> Iterator[Diagnostic]:
    """Two kernels of a program whose names are swapped, judged by their source files.

    Traces and drawings of the task graph show a kernel's `name`. If the names of two kernels are swapped, the program still
    runs correctly, but whoever reads the graph searches for a problem in the wrong kernel.

    A name fits a source if its words are words of the file's name, or abbreviate such words (`SF` for `softmax`). A pair is
    reported only if each name fits the other's source and not its own.

    Bad:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "name": "PV",
            "source": "kernels/aiv/softmax_prepare.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.OUT],
        },
        {"func_id": 1, "name": "SF", "source": "kernels/aic/pv_matmul.cpp", "core_type": "aic", "signature": [D.IN, D.OUT]},
    ]
    ```

    Good:

    ```python
    KERNELS = [
        {
            "func_id": 0,
            "name": "SF",
            "source": "kernels/aiv/softmax_prepare.cpp",
            "core_type": "aiv",
            "signature": [D.IN, D.OUT],
        },
        {"func_id": 1, "name": "PV", "source": "kernels/aic/pv_matmul.cpp", "core_type": "aic", "signature": [D.IN, D.OUT]},
    ]
    ```
    """
    named = [kernel for kernel in program.kernels if kernel.text("name") and _stem(kernel)]
    unfit = [kernel for kernel in named if not _fits(kernel.text("name") or "", _stem(kernel))]
    for one, other in combinations(unfit[:MAX_UNFIT], 2):
        if _are_swapped(one, other):
            yield _swapped(one, other)


MAX_UNFIT = 100
"""Maximum number of kernels of a program to compare with each other; only those whose names do not fit their sources count."""


def _stem(kernel: Kernel) -> str:
    """Return the name of a kernel's source without folders and extensions; the file may be missing."""
    path = kernel.source or (kernel.text("source") or "")
    return path.rpartition("/")[2].partition(".")[0]


def _are_swapped(one: Kernel, other: Kernel) -> bool:
    """Whether the names of two kernels fit each other's sources, but not their own."""
    return _fits(one.text("name") or "", _stem(other)) and _fits(other.text("name") or "", _stem(one))


def _fits(name: str, stem: str) -> bool:
    """Whether all words of a name occur in a source's name."""
    words, parts = _words(name), _words(stem)
    return bool(words) and all(any(_is_short_for(word, part) for part in parts) for word in words)


def _words(name: str) -> list[str]:
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word and word not in ("aic", "aiv", "kernel")]


def _is_short_for(word: str, part: str) -> bool:
    """Whether a word equals another, or begins with the same letter and has its letters in order."""
    if word[0] != part[0]:
        return False
    rest = iter(part)
    return all(letter in rest for letter in word)


def _swapped(one: Kernel, other: Kernel) -> Diagnostic:
    mine, theirs = one.fields["name"][1], other.fields["name"][1]
    message = (
        f"the names `{one.text('name')}` and `{other.text('name')}` are swapped: `{_stem(one)}` is called"
        f" `{one.text('name')}`, and `{_stem(other)}` `{other.text('name')}`"
    )
    source = one.program.file.source.text
    texts = [(mine, theirs), (theirs, mine)]
    edits = tuple(
        FileEdit(one.place.path, Edit(target.span, source[value.start : value.end])) for target, value in texts
    )
    related = other.related(theirs, f"the name of `{_stem(other)}`")
    fix = Fix("swap the names", edits) if one.written and other.written else None
    return Diagnostic(message, one.at(mine), (related,), fix, severity=Severity.WARNING)

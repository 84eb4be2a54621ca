"""`arg-index`: adds or removes the parallel field that names the tensor of each signature entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import libcst as cst
import msgspec

from opschema_cli.lint.diagnostic import CPP
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note, Site, migration
from opschema_cli.project import Project
from opschema_cli.source.python import PythonFile
from opschema_cli.source.text import Place, Span
from opschema_rules.pypto import proofs
from opschema_rules.pypto.claims import in_order, misplaced, width
from opschema_rules.pypto.migrations.layout import declare, line_width
from opschema_rules.pypto.migrations.scopes import PROGRAMS
from opschema_rules.pypto.model import Kernel, Program
from opschema_rules.pypto.task_matching import Task, entry_of, tasks

_FIELD = "arg_index"


class ArgIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``action`` is `add` or `drop`."""

    action: Literal["add", "drop"]


class _Added(msgspec.Struct, frozen=True):
    """A kernel that gets the field: the tensors that it names, or the reason why they are not known."""

    kernel: Kernel
    slots: tuple[int, ...] | str


class _Elsewhere(msgspec.Struct, frozen=True):
    """A place that sets the field outside of the dict of a kernel."""


def find(draft: Draft, options: ArgIndex) -> Iterator[Site]:
    """Yield the kernels that have the field, or have a signature without it; with ``drop``, also other places that set it."""
    if options.action == "drop":
        yield from _given_elsewhere(draft)
    for program in draft.loaded.subjects:
        for kernel in program.kernels if isinstance(program, Program) else ():
            has = _FIELD in kernel.fields
            if options.action == "drop" and has and kernel.written:
                place = kernel.at(kernel.fields[_FIELD][1])
                yield Site(place, f"drop `{_FIELD}` of {kernel.title}", (kernel.title,), (), kernel)
            elif options.action == "add" and not has and kernel.signature is not None and _is_first(kernel):
                added = _Added(kernel, _slots(kernel))
                yield Site(
                    kernel.at(kernel.signature.expr), f"add `{_FIELD}` to {kernel.title}", (kernel.title,), (), added
                )


def _given_elsewhere(draft: Draft) -> Iterator[Site]:
    """Yield the places in descriptions that set the field outside of a kernel's dict: ``kernel["arg_index"] = slots``, or a call
    of another file's function that does.
    """
    programs = [item for item in draft.loaded.subjects if isinstance(item, Program)]
    known = {
        kernel.at(kernel.fields[_FIELD][0])
        for item in programs
        for kernel in item.kernels
        if _FIELD in kernel.fields and kernel.written
    }
    found = {
        Place(file.path, span)
        for file in {item.file.path: item.file for item in programs}.values()
        for span in (_given_in(file) if _FIELD in file.source.text else ())
    }
    imported = {
        kernel.place
        for item in programs
        for kernel in item.kernels
        if _FIELD in kernel.fields and _FIELD not in item.file.source.text
    }
    for place in sorted((found - known) | imported, key=lambda item: (item.path, item.span)):
        yield Site(place, f"drop `{_FIELD}`", (), (), _Elsewhere())


def _given_in(file: PythonFile) -> set[Span]:
    """Return the places of strings with the field's name in a module's values, and of values assigned to such an item or passed
    to `dict()` or `update()` under that name.
    """
    found: set[Span] = set()
    for scope in file.body.walk():
        values = [item.value for item in scope.assigns if item.value is not None]
        parts = [part for value in (*values, *scope.calls, *scope.returns) for part in value.walk()]
        found.update(part.span for part in parts if part.kind == "const" and part.value == _FIELD)
        made = (part for part in parts if part.kind == "call" and part.items[0].member in ("dict", "update"))
        found.update(value.span for call in made if (value := call.keyword(_FIELD)) is not None)
        found.update(item.value.span for item in scope.items if item.key == _FIELD)
    return found


@migration(
    "arg-index",
    find=find,
    options=ArgIndex,
    rewrites_trees=True,
    scope=PROGRAMS,
    settled="every kernel has the field as the runtime wants it",
    proof=proofs.RECORDED,
    needs=(CPP,),
)
def arg_index(draft: Draft, sites: Sequence[Site], options: ArgIndex) -> Iterator[Note]:
    """Add the field `arg_index` to kernels with a signature, or drop it.

    From simpler `b972b288e` until `b1e4bd239` each entry of a kernel's signature names its tensor in a parallel list; before and
    after that there is no such field.

    With `action=add` each kernel with a `signature` and without `arg_index` gets it below its signature:

    - a kernel that runs alone: `0` to one less than its entries;
    - one that shares tasks, and has as many entries as those have tensors: the same;
    - one that shares tasks in which the signatures of all kernels together have one entry for each tensor: its place behind those
      of the kernels before it, the cube core's first.

    A kernel is left unchanged, with a note, if its signature is computed, if its orchestration is not known, or if its
    tasks do not determine its place or disagree on it. Signatures stay unchanged; `derive-signatures` corrects them.

    With `action=drop` the field is removed from every kernel, with its comments. Entry *i* then stands for tensor *i*: a note
    names every list that says something else (`[3, 4, 5]`), as that is lost, and `derive-signatures` rewrites such signatures.
    Lists are evaluated: names, sums, comprehensions, helpers of the tree; a note says where that fails. If code sets the field
    in another way (`kernel["arg_index"] = slots`, a comprehension of dicts), a note asks you to drop it. Other mentions of the
    field in these files are reported as notes, too, and so are named lists that nothing else uses.

        opschema migrate arg-index -o action=add
        opschema migrate arg-index -o action=drop --apply
    """
    if options.action == "drop":
        yield from _dropped(draft, sites)
        return
    longest = line_width(draft.project)
    for site in sites:
        assert isinstance(site.subject, _Added)
        slots = site.subject.slots
        if isinstance(slots, str):
            yield Note(site.place, f"{site.title} by hand: {slots}", leaves_site=True)
            continue
        edits = declare(site.subject.kernel, {_FIELD: [*map(str, slots)]}, longest, "signature")
        if not edits:
            yield Note(site.place, f"{site.title} by hand: its dict takes no more fields", leaves_site=True)
        draft.edit(site.place.path, edits)


# -- drop --------------------------------------------------------------------------------------------------------------


def _dropped(draft: Draft, sites: Sequence[Site]) -> Iterator[Note]:
    elsewhere = [site for site in sites if isinstance(site.subject, _Elsewhere)]
    for site in elsewhere:
        yield Note(site.place, f"{site.title} by hand: it is not in the dict of a kernel", leaves_site=True)
    kernels = [site.subject for site in sites if isinstance(site.subject, Kernel)]
    lists = {kernel: kernel.at(kernel.fields[_FIELD][1]) for kernel in (*kernels, *_computed(draft, elsewhere))}
    lost = [
        (place, f"`{_FIELD}` of {kernel.title} {words}") for kernel, place in lists.items() if (words := _lost(kernel))
    ]
    names = {kernel.fields[_FIELD][1].text for kernel in kernels if kernel.fields[_FIELD][1].kind == "name"}
    _drop(draft, kernels)
    yield from (Note(*item) for item in lost)
    since, project = draft.revision, draft.settle()
    reported = [draft.forward(site.place, since) for site in elsewhere]
    paths = sorted({site.place.path for site in sites})
    yield from (
        Note(item.place, f"`{_FIELD}` is still mentioned here")
        for item in mentions(project, [_FIELD], paths)
        if not any(_on_one_line(project, item.place, place) for place in reported)
    )
    yield from _unused(project, names, paths)


def _computed(draft: Draft, elsewhere: Sequence[Site]) -> Iterator[Kernel]:
    """Yield the kernels with the field whose dicts are computed, in the files of some sites: it must be dropped there by hand."""
    paths = {site.place.path for site in elsewhere}
    for program in draft.loaded.subjects:
        for kernel in program.kernels if isinstance(program, Program) and program.file.path in paths else ():
            if _FIELD in kernel.fields and not kernel.written:
                yield kernel


def _on_one_line(project: Project, one: Place, other: Place) -> bool:
    if one.path != other.path:
        return False
    between = Span(min(one.span.start, other.span.start), max(one.span.end, other.span.end))
    return "\n" not in project.workspace.source(one.path).text[between.start : between.end]


def _unused(project: Project, names: set[str], paths: Sequence[str]) -> Iterator[Note]:
    """Yield notes on lists that only the field used."""
    found: dict[tuple[str, str], list[Place]] = {}
    for item in mentions(project, names, paths):
        found.setdefault((item.place.path, item.name), []).append(item.place)
    for (_, name), places in found.items():
        if len(places) == 1:
            yield Note(places[0], f"`{name}` is no longer used in this file")


def _lost(kernel: Kernel) -> str:
    """Return what is lost with the list of a kernel; empty if it only counts."""
    numbers = kernel.indexes
    if numbers is None:
        return "cannot be evaluated: check that its entries are in the order of the tensors"
    if numbers == tuple(range(len(numbers))):
        is_known = kernel.signature is not None and kernel.signature.slots is not None
        more = is_known and width(kernel) != len(numbers)
        return (
            f"listed {len(numbers)} tensors for {width(kernel)} entries; now each entry stands for one tensor"
            if more
            else ""
        )
    last = len(numbers) - 1
    verb = "was" if kernel.written else "is"
    return (
        f"{verb} {[*numbers]}: without it, its entries stand for tensors 0 to {last}; `derive-signatures` writes the entire "
        "signature"
    )


def _drop(draft: Draft, kernels: Sequence[Kernel]) -> None:
    rewrites: dict[str, Rewrite] = {}
    for kernel in kernels:
        path = kernel.program.file.path
        rewrite = rewrites.setdefault(path, Rewrite(draft.tree(path)))
        node = rewrite.tree.find(kernel.expr.span, cst.Dict)
        at = next(
            index
            for index, item in enumerate(node.elements)
            if isinstance(item, cst.DictElement) and rewrite.tree.span(item.key) == kernel.fields[_FIELD][0].span
        )
        rewrite.drop(node.elements, at)
    for path, rewrite in rewrites.items():
        draft.edit(path, rewrite.edits())


def _is_first(kernel: Kernel) -> bool:
    """Whether no earlier kernel is computed by the same dict."""
    return kernel.written or next(item for item in kernel.program.kernels if item.expr is kernel.expr) is kernel


# -- slots -------------------------------------------------------------------------------------------------------------


def _slots(kernel: Kernel) -> tuple[int, ...] | str:
    """Return the payload tensors that a kernel's entries apply to, or the reason why they are not known."""
    count = width(kernel)
    if not kernel.written:
        return "its dict is computed"
    if kernel.signature is None or kernel.signature.slots is None:
        return "its signature is not known"
    if not count:
        return ()
    if misplaced(kernel.signature):
        return "its signature has scalars before tensors"
    entry = entry_of(kernel.program)
    if entry is None or entry.unresolved or any(item.value is None for task in entry.submits for item in task.kernels):
        return "the tasks that its orchestration submits are not known"
    found: set[int] = set()
    for task in tasks(kernel.program):
        if kernel in task.kernels:
            first = _first(task, kernel)
            if isinstance(first, str):
                return first
            found.add(first)
    if len(found) > 1:
        return "its tasks have its tensors at different places"
    start = next(iter(found), 0)
    return tuple(range(start, start + count))


def _first(task: Task, kernel: Kernel) -> int | str:
    """Return the index of a kernel's first tensor in the payload of a task."""
    if set(task.kernels) == {kernel} and task.whole:
        return 0
    lengths = {len(payload.tensors) for payload in task.payloads}
    if len(lengths) != 1 or not task.whole:
        return "the arguments of a task that it shares are not known"
    (length,) = lengths
    if _tensors(kernel) == length:
        return 0
    kernels = in_order(task)
    if sum(map(_tensors, kernels)) != length or kernels.count(kernel) > 1 or _tensors(kernel) != width(kernel):
        return f"it is not known which of the {length} tensors of a task that it shares are its own"
    return sum(map(_tensors, kernels[: kernels.index(kernel)]))


def _tensors(kernel: Kernel) -> int:
    return len(kernel.signature.tensors) if kernel.signature is not None else 0

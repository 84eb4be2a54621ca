"""`move-supported`: operators of a backend's YAML from one list to another."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from opschema_cli.lint.diagnostic import CPP, Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.phrases import listed
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_rules.aten.kernels import BackendKernels
from opschema_rules.aten.migrations.backend_lists import (
    KERNELS,
    MARKS,
    Lists,
    backends,
    check_list,
    chosen,
    moved_comments,
    plain_item,
)
from opschema_rules.aten.migrations.list_move import Move, torn_apart
from opschema_rules.aten.migrations.scopes import BACKENDS
from opschema_rules.aten.model import BackendFile, BackendItem
from opschema_rules.aten.proofs import KEPT

_NAME = re.compile(r"[\w.:]+")


class MoveSupported(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ops`` are the operators, by name or shell pattern, ``to`` is the list to which they move.

    ``from`` removes them from that list alone.
    """

    ops: list[str]
    to: str
    source: str = msgspec.field(default="", name="from")


def find(draft: Draft, options: MoveSupported) -> Iterator[Site]:
    """The operators that are not yet where they are to be."""
    files = backends(draft)
    _check(files, options)
    for backend in files:
        for item in _items(backend, options):
            move = _move(backend, item.name, options)
            if move.leaves or move.joins:
                yield Site(backend.at(item.name_node), _title(move), (item.name,), subject=move)


@migration(
    "move-supported",
    find=find,
    options=MoveSupported,
    scope=BACKENDS,
    settled="the operators are in that list already",
    needs=(CPP,),
    proof=KEPT,
)
def move_supported(draft: Draft, sites: Sequence[Site], options: MoveSupported) -> Iterator[Note]:
    """Move operators between the lists of a backend's YAML.

    `supported`, `full_codegen` and `autograd` exclude each other: an operator that goes to one of them leaves the others.
    `symint` and `ir_gen` add to an operator that keeps its list: `-o to=symint` lists it there as well, and
    `-o from=symint -o to=supported` takes it out again. With `-o from=` an operator leaves only that list.

    Every backend's YAML that lists the operator is changed; `--only PATH` takes one of them.

    An item goes with its options and the comment above it, which is noted. It is put at its sorted place if most of the
    list is sorted, by ASCII or by letters alone, whichever the list keeps to, else at the end; always above the first comment
    that heads a group of others. A comment heads a group if it is the list's first, speaks of operators "below" or
    "following", of "these", a "section" or a "Note:", is a line of dashes, or has a blank line or an item that is commented
    out under it, but not if it names its operator; it stays where it is, and is noted if its first item goes. No other line
    changes.

    An operator is not moved if only some of its variants would be in `autograd`: torchgen requires its functional, in-place
    and out variants on the same side.

    Notes list definitions in C++ that are now generated (`full_codegen`), have another name (`symint`), or are to be written
    (out of `full_codegen`), and operators that torchgen would ignore.

        opschema migrate move-supported -o ops=abs,maximum -o to=full_codegen
        opschema migrate move-supported -o "ops=bitwise_*.Tensor" -o from=full_codegen -o to=supported
    """
    done: list[Lists] = []
    for backend in backends(draft):
        moves = [(site, site.subject) for site in sites if isinstance(site.subject, Move)]
        mine = [(site.place, move) for site, move in moves if move.backend.path == backend.path]
        if mine:
            done.append(Lists(backend))
            yield from _apply(draft, done[-1], mine, options)
    draft.settle()
    for lists in done:
        yield from moved_comments(draft, lists.backend.path, options.to, lists.commented)


def _check(files: Sequence[BackendFile], options: MoveSupported) -> None:
    """Refuse lists and operators that nothing here has.

    Raises:
        OptionError: naming the first.
    """
    check_list(options.to, "to", files)
    if options.source:
        check_list(options.source, "from", files)
    if options.source == options.to:
        raise OptionError(f"-o from={options.source}: it is the list that -o to= names")
    if not options.ops:
        raise OptionError("-o ops= names no operator")
    for pattern in options.ops:
        sections = {item.section for item in chosen(files, pattern)}
        if sections and options.source and not sections & {options.source, options.to}:
            where = listed(sorted(sections))
            raise OptionError(f"-o ops={pattern}: it is listed under {where}, not under `{options.source}`")


def _items(backend: BackendFile, options: MoveSupported) -> list[BackendItem]:
    """The first item of each operator that is meant."""
    first: dict[str, BackendItem] = {}
    for item in backend.items:
        meant = any(fnmatchcase(item.name, pattern) for pattern in options.ops)
        if meant and options.source in ("", item.section):
            first.setdefault(item.name, item)
    return list(first.values())


def _move(backend: BackendFile, name: str, options: MoveSupported) -> Move:
    sections = list(dict.fromkeys(item.section for item in backend.items if item.name == name))
    joins = "" if options.to in sections else options.to
    if options.to in MARKS:
        return Move(backend, name, (), joins)
    if options.source:
        return Move(backend, name, (options.source,), joins)
    kernels = KERNELS if options.to in KERNELS else [item for item in sections if item not in MARKS]
    return Move(backend, name, tuple(item for item in sections if item in kernels and item != options.to), joins)


def _title(move: Move) -> str:
    if not move.leaves:
        return f"list `{move.name}` in `{move.joins}`"
    if not move.joins:
        return f"take `{move.name}` out of {listed(move.leaves)}"
    return f"move `{move.name}` from {listed(move.leaves)} to `{move.joins}`"


def _apply(draft: Draft, lists: Lists, moves: Sequence[tuple[Place, Move]], options: MoveSupported) -> Iterator[Note]:
    backend = lists.backend
    fit: list[tuple[Place, Move]] = []
    torn = torn_apart(backend, [move for _, move in moves])
    for place, move in moves:
        reason = _refusal(move, options) or torn.get(move.name, "")
        if reason:
            yield Note(place, reason, leaves_site=True)
        else:
            fit.append((place, move))
        if not reason and move.joins == "symint" and _has_no_symint(move) and backend.reference is not None:
            where = backend.reference.origin
            yield Note(place, f"no argument of `{move.name}` is a `SymInt` in {where}; if so, torchgen refuses it")
    try:
        notes = [note for place, move in fit for note in _change(lists, place, move)]
        draft.edit(backend.path, list(lists.edits()))
        notes += _defined(draft, backend, {move.name for _, move in fit if move.joins}, options.to)
    except (YamlEditError, ValueError) as error:
        lists.commented.clear()
        notes = [Note(place, f"move `{move.name}` by hand: {error}", leaves_site=True) for place, move in fit]
    yield from notes


def _refusal(move: Move, options: MoveSupported) -> str:
    """The reason why torchgen would not look at the operator in its new list."""
    sections = {item.section for item in move.backend.items if item.name == move.name}
    if not _NAME.fullmatch(move.name):
        return "it is not a name of an operator"
    if move.joins in MARKS and not sections & {*KERNELS}:
        return f"`{move.name}` is not in {listed(KERNELS, 'or')}, so torchgen would ignore it in `{move.joins}`"
    if move.joins == "symint" and _is_certain(move) and _has_no_symint(move):
        return f"the schema of `{move.name}` has no SymInt, so torchgen refuses it in `symint`"
    if move.joins == "ir_gen" and "full_codegen" in sections:
        return f"`full_codegen` makes the IR class of `{move.name}` already; move it to `supported` first"
    if options.source in MARKS and move.joins:
        return (
            f"`{move.name}` is not in `{options.to}`, and `{options.source}` says only more of it; leave `-o from=` out"
        )
    return ""


def _is_certain(move: Move) -> bool:
    """Whether PyTorch's operators are certainly those of the version that the tree is built with."""
    reference = move.backend.reference
    return reference is not None and reference.certain


def _has_no_symint(move: Move) -> bool:
    """Whether the operator has no argument with a ``SymInt`` in the PyTorch that is known."""
    reference = move.backend.reference
    known = reference.catalogue.by_name.get(move.name) if reference is not None else None
    return known is not None and not known.symint


def _change(lists: Lists, place: Place, move: Move) -> Iterator[Note]:
    """Take an operator out of lists and put it into another; of several items the first goes on.

    Raises:
        YamlEditError: a list is written in a way that is not edited.
    """
    goal = f"moved to `{move.joins}`" if move.joins else "removed"
    for section in move.leaves:
        for heading in lists.headed(section, move.name):
            yield Note(heading, f"this comment was above `{move.name}`, which was {goal}")
    if "full_codegen" in move.leaves and move.joins in ("supported", "autograd"):
        yield Note(place, f"the kernel of `{move.name}` is not generated any more: define it in C++")
    plain = plain_item(lists.backend, move.name)
    taken = [item for section in move.leaves for item in lists.take(section, move.name)]
    if move.joins:
        lists.put(move.joins, taken.pop(0) if taken else plain)
    for item in taken:
        if item != plain:
            yield Note(
                place,
                f"the text next to an item of `{move.name}` was moved with it: `{' '.join(item.text.split())}`",
            )


def _defined(draft: Draft, backend: BackendFile, names: Collection[str], goal: str) -> Iterator[Note]:
    """The definitions of operators' kernels that are wrong once the operators are in a list."""
    found = draft.loaded.everything() if names and goal in ("full_codegen", "symint") else []
    for kernels in (item for item in found if isinstance(item, BackendKernels) and item.backend is backend):
        for asked, method in (*kernels.paired, *kernels.drifted):
            name = asked.item.name
            if name in names and goal == "full_codegen":
                yield Note(method.place, f"the kernel of `{name}` is generated now; this defines it as well")
            elif name in names:
                yield Note(
                    method.place, f"the kernel of `{name}` is called `{asked.name}_symint` now, and takes `SymInt`"
                )

"""`rename-dispatch-key`: another name for a dispatch key, wherever YAML files have it as a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import Entry, string
from opschema_rules.aten.migrations.scopes import FILES
from opschema_rules.aten.migrations.yaml_comments import in_comments
from opschema_rules.aten.model import BackendFile, DerivativeEntry, NativeEntry, NativeFile
from opschema_rules.aten.proofs import RESTORED
from opschema_rules.aten.torchgen_table import newest_torchgen

_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_PART = re.compile(r"[^\s,]+")
_CODE = (".cpp", ".cc", ".cu", ".h", ".hpp", ".cuh", ".mm", ".py")
_COMPOSITE = "CompositeImplicitAutograd"


class RenameDispatchKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``from`` is the old name of the key, ``to`` its new name."""

    old: str = msgspec.field(name="from")
    new: str = msgspec.field(name="to")


class _Use(msgspec.Struct, frozen=True):
    """An entry that has a dispatch key: where that is written, and the other keys of the table with their places."""

    entry: Entry
    places: tuple[Place, ...]
    others: tuple[tuple[str, Place], ...]


def find(draft: Draft, options: RenameDispatchKey) -> Iterator[Site]:
    """The entries that have the key."""
    _check_names(options)
    uses = [use for entry in _entries(draft) if (use := _use(entry, options.old)) is not None]
    if not uses:
        _check_known(draft, options)
    for use in uses:
        name = _name_of(use.entry)
        title = f"rename `{options.old}` to `{options.new}` in {f'`{name}`' if name else 'an entry'}"
        yield Site(use.places[0], title, (name,) if name else (), subject=use)


@migration(
    "rename-dispatch-key",
    find=find,
    options=RenameDispatchKey,
    scope=FILES,
    settled="no entry has the key",
    proof=RESTORED,
)
def rename_dispatch_key(draft: Draft, sites: Sequence[Site], options: RenameDispatchKey) -> Iterator[Note]:
    """Rename a dispatch key.

    It is renamed in the `dispatch:` tables of native_functions.yaml, in lists of keys (`CPU, CUDA: add`) too, in those of
    derivatives.yaml, and as the `backend:` of a backend's YAML. Kernels with the same name are kept, and so are comments.

    An entry that already has the new key is left unchanged, with a note, so that no kernel is lost. Notes also list a new
    key that torchgen does not know, tables with only `CompositeImplicitAutograd` left, which torchgen rejects, comments
    that mention the old key, and code that names it: `DispatchKey::Math`, `TORCH_LIBRARY_IMPL(aten, Math, m)`.

        opschema migrate rename-dispatch-key -o from=Math -o to=CompositeImplicitAutograd
        opschema migrate rename-dispatch-key -o from=DefaultBackend -o to=CompositeExplicitAutograd
    """
    done: list[_Use] = []
    for site in sites:
        use = site.subject
        if not isinstance(use, _Use):
            continue
        clash = next((place for key, place in use.others if key == options.new), None)
        if clash is not None:
            where = f"line {use.entry.file.source.position(clash.span.start).line}"
            text = (
                f"`{options.new}` is in this table already, {where}; drop one of the two, then rename `{options.old}`"
            )
            yield Note(site.place, text, leaves_site=True)
            continue
        done.append(use)
        draft.edit(site.place.path, [Edit(place.span, options.new) for place in use.places])
    known = _known(draft)
    if done and options.new not in known:
        yield Note(
            done[0].places[0],
            f"torchgen has no dispatch key `{options.new}`{did_you_mean(nearest(options.new, known))}",
        )
    yield from _consequences(done, options)
    draft.settle()
    yield from _left(draft, options)


def _check_names(options: RenameDispatchKey) -> None:
    """Refuse names that cannot be a key.

    Raises:
        OptionError: naming the option.
    """
    for option, name in (("from", options.old), ("to", options.new)):
        if not _NAME.fullmatch(name):
            raise OptionError(f"-o {option}={name}: a dispatch key is one word, such as `CPU`")
    if options.old == options.new:
        raise OptionError(f"-o to={options.new}: it is called so already")


def _check_known(draft: Draft, options: RenameDispatchKey) -> None:
    """Refuse a key that nothing here has and that is nearly one which is known, unless it has its new name already.

    Raises:
        OptionError: with the nearest key.
    """
    entries = _entries(draft)
    known = _known(draft)
    present = {key for entry in entries for key, _ in _keys(entry)}
    if not entries or draft.changes or options.old in known or options.new in present:
        return
    meant = did_you_mean(nearest(options.old, known | present))
    if meant:
        raise OptionError(f"-o from={options.old}: no entry has such a dispatch key{meant}")


def _known(draft: Draft) -> set[str]:
    """The keys of torchgen, by the tree's own where it has one."""
    own = {key for native in _natives(draft) for key in native.torchgen.vocabulary.dispatch_keys}
    return own or {*newest_torchgen().vocabulary.dispatch_keys}


def _natives(draft: Draft) -> list[NativeFile]:
    return [item for item in draft.loaded.subjects if isinstance(item, NativeFile)]


def _entries(draft: Draft) -> list[Entry]:
    """Everything that has dispatch keys."""
    return [item for item in draft.loaded.subjects if isinstance(item, NativeEntry | DerivativeEntry | BackendFile)]


def _name_of(entry: Entry) -> str:
    if isinstance(entry, NativeEntry | BackendFile):
        return entry.name
    return entry.text_of("name").partition("(")[0].strip()


def _use(entry: Entry, name: str) -> _Use | None:
    keys = list(_keys(entry))
    places = tuple(place for key, place in keys if key == name)
    return _Use(entry, places, tuple(pair for pair in keys if pair[0] != name)) if places else None


def _keys(entry: Entry) -> Iterator[tuple[str, Place]]:
    """Yield the dispatch keys in an entry itself, not those that an alias shares with it."""
    if isinstance(entry, BackendFile):
        node = entry.get("backend")
        if node is not None and string(node):
            yield from _parts(entry, node)
        return
    table = entry.get("dispatch")
    if table is not None and entry.node.start <= table.start < entry.node.end:
        for key, _ in table.pairs():
            if key.kind == "scalar" and isinstance(entry, NativeEntry):
                yield from _parts(entry, key)
            elif key.kind == "scalar":
                yield key.value, entry.at(entry.inner(key, Span(0, len(key.value))))


def _parts(entry: Entry, node: Node) -> Iterator[tuple[str, Place]]:
    """The keys of a scalar, which has commas between them."""
    for match in _PART.finditer(node.value):
        yield match.group(), entry.at(entry.inner(node, Span(*match.span())))


def _consequences(uses: Sequence[_Use], options: RenameDispatchKey) -> Iterator[Note]:
    """Further work where the key is renamed."""
    for use in uses:
        entry, place = use.entry, use.places[0]
        if isinstance(entry, BackendFile) and entry.get("class_name") is None:
            text = f"the kernels are now looked for in the class `{options.new}NativeFunctions`; rename it, or write `class_name:`"
            yield Note(place, text)
        if isinstance(entry, NativeEntry) and options.new == _COMPOSITE and _is_alone(entry, use):
            text = f"torchgen refuses a table of `{_COMPOSITE}` alone: delete it, and call the kernel as the operator"
            yield Note(place, text)


def _is_alone(entry: NativeEntry, use: _Use) -> bool:
    symint = any(item.kernel.endswith("_symint") for item in entry.dispatch())
    return not use.others and len(use.places) == 1 and not symint and entry.get("structured_delegate") is None


def _left(draft: Draft, options: RenameDispatchKey) -> Iterator[Note]:
    """Yield notes on comments and code with the old key; none while an entry has it, as they may then be right."""
    if any(key == options.old for entry in _entries(draft) for key, _ in _keys(entry)):
        return
    for place in in_comments(draft.project, options.old, draft.loaded.files):
        yield Note(place, f"this comment still mentions `{options.old}`")
    pattern = re.compile(
        rf"\bDispatchKey(?:::|\.)({options.old})\b|\bTORCH_LIBRARY_IMPL\(\s*\w+\s*,\s*({options.old})\s*,"
    )
    paths = [path for path in draft.project.workspace.files if path.endswith(_CODE)]
    for source in texts_with(draft.project, [options.old], paths):
        for match in pattern.finditer(source.text):
            span = Span(*match.span(1 if match[1] else 2))
            yield Note(Place(source.path, span), f"this still names `{options.old}`")

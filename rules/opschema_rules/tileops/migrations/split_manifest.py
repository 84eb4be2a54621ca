"""`split-manifest`: writes one file for each family, or for each given group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Span
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.migrations.arrangement import Arrangement, OpsKey, check_files, has_ops_key, is_chosen
from opschema_rules.tileops.migrations.entries import all_entries, is_inside, manifests, named, words_of
from opschema_rules.tileops.migrations.fields import read_path
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.model import Manifest, OpEntry
from opschema_rules.tileops.proofs import ROWS

_FILE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")


class SplitManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``into`` is the entries' key that names their file, or names files and the ops in each (``math: Exp*, Log*; logic:
    And*``); ``folder`` is the folder of new files, ``file`` restricts what is split, and ``ops`` decides about a top-level
    ``ops:``.
    """

    into: str
    folder: str = ""
    file: str = ""
    ops: OpsKey = "keep"


def find(draft: Draft, options: SplitManifest) -> Iterator[Site]:
    """The files from which entries go, and those whose `ops:` does."""
    if options.folder and not is_inside(options.folder.rstrip("/")):
        raise OptionError(f"`{options.folder}` is not a folder of the workspace")
    check_files(draft, options.file)
    _check_key(draft, options)
    for manifest in manifests(draft):
        targets = _targets(manifest, options)
        for file in manifest.files:
            moving = {entry: path for entry, path in targets.items() if entry.file.path == file.path}
            if moving or (is_chosen(file.path, options.file) and options.ops == "drop" and has_ops_key(file)):
                files = len(set(moving.values()))
                title = (
                    f"move {len(moving)} entries of {file.path} to {files} files"
                    if moving
                    else f"drop `ops:` of {file.path}"
                )
                names = tuple(entry.name for entry in moving)
                yield Site(Place(file.path, Span(0, 0)), title, names, subject=(manifest, moving))


@migration(
    "split-manifest",
    find=find,
    options=SplitManifest,
    scope=ENTRIES,
    settled="every entry is in the file that it belongs to",
    proof=ROWS,
)
def split_manifest(draft: Draft, sites: Sequence[Site], options: SplitManifest) -> Iterator[Note]:
    """Give each family of entries a file of its own.

    Each entry goes to the file that its key `-o into=` names (`family`), or to that of the group which lists it, unchanged,
    with the comments above it; other entries are not touched. The comments at the head of a file without remaining entries
    move to the file of its first entry. New files are written beside the old one, or to `-o folder=`; they have a top-level
    `ops:` where the old one has, unless `-o ops=drop`, which removes it and the indentation everywhere.

    Files with document markers, in flow style, or with aliases that would point into another file are left unchanged, with
    a note; notes also list code and documents that name a removed file, or read `ops`.

        opschema migrate split-manifest -o into=family -o folder=tileops/manifest
        opschema migrate split-manifest -o "into=unary: Exp*, Log*; binary: Add*, Mul*"
    """
    for manifest in manifests(draft):
        own = [site.subject[1] for site in sites if isinstance(site.subject, tuple) and site.subject[0] is manifest]
        targets = {entry: path for moving in own for entry, path in moving.items()}
        if own:
            yield from _unnamed(manifest, options)
            yield from Arrangement(draft, manifest, targets, options.ops).apply()


def _targets(manifest: Manifest, options: SplitManifest) -> dict[OpEntry, str]:
    """The entries that move, and where to."""
    groups = _groups(manifest, options)
    found: dict[OpEntry, str] = {}
    for entry in manifest.entries:
        name = groups.get(entry.name) if groups else _stem(entry, options)
        if name is None or not is_chosen(entry.file.path, options.file):
            continue
        path = f"{_folder(manifest, entry, options)}{name}.yaml"
        if path != entry.file.path:
            found[entry] = path
    return found


def _folder(manifest: Manifest, entry: OpEntry, options: SplitManifest) -> str:
    folder = options.folder.rstrip("/") or entry.file.path.rpartition("/")[0]
    return f"{folder}/" if folder and folder != "." else ""


def _stem(entry: OpEntry, options: SplitManifest) -> str | None:
    """Return the name of the entry's file; None if its key does not give one."""
    name = entry.text_at(*read_path(options.into))
    return name if name is not None and _FILE_NAME.fullmatch(name) else None


def _check_key(draft: Draft, options: SplitManifest) -> None:
    """Check that an entry has the key that names files, with a text: any other key moves nothing.

    Raises:
        OptionError: none has.
    """
    entries = all_entries(draft)
    path = read_path(options.into)
    if (
        ":" in options.into
        or not entries
        or draft.changes
        or any(entry.text_at(*path) is not None for entry in entries)
    ):
        return
    texts = {key.value for entry in entries for key, _ in entry.node.pairs() if entry.text_at(key.value) is not None}
    raise OptionError(f"no entry has a text `{options.into}`{did_you_mean(near_name(options.into, sorted(texts)))}")


def _groups(manifest: Manifest, options: SplitManifest) -> dict[str, str]:
    """The group of each op that is in one.

    Raises:
        OptionError: a group is malformed, or an op is in two.
    """
    found: dict[str, str] = {}
    for group in filter(str.strip, options.into.split(";") if ":" in options.into else ()):
        name, colon, patterns = (part.strip() for part in group.partition(":"))
        if not colon or not _FILE_NAME.fullmatch(name) or not words_of(patterns):
            raise OptionError(f"`{group.strip()}` is not written as `file: Op, Op`")
        for entry in named(manifest.entries, patterns):
            if found.setdefault(entry.name, name) != name:
                raise OptionError(f"`{entry.name}` is in two groups, `{found[entry.name]}` and `{name}`")
    return found


def _unnamed(manifest: Manifest, options: SplitManifest) -> Iterator[Note]:
    for entry in manifest.entries:
        if ":" not in options.into and is_chosen(entry.file.path, options.file) and _stem(entry, options) is None:
            yield Note(entry.place, f"`{entry.name}` stays here: its `{options.into}` names no file")

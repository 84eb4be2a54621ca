"""`merge-manifest`: the entries of several files in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.source.text import Span
from opschema_rules.tileops.migrations.arrangement import Arrangement, OpsKey, check_files, has_ops_key, is_chosen
from opschema_rules.tileops.migrations.entries import is_inside, manifests
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS


class MergeManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``to`` is the target file, ``file`` lists the files that are merged (default: all), and ``ops`` decides about a
    top-level ``ops:``.
    """

    to: str
    file: str = ""
    ops: OpsKey = "keep"


def find(draft: Draft, options: MergeManifest) -> Iterator[Site]:
    """The files whose entries go elsewhere, and the one whose `ops:` does."""
    if not options.to.endswith((".yaml", ".yml")) or not is_inside(options.to):
        raise OptionError(f"`{options.to}` is not a YAML file of the workspace")
    check_files(draft, options.file)
    for manifest in manifests(draft):
        for file in (item for item in manifest.files if is_chosen(item.path, options.file)):
            moving = [entry for entry in manifest.entries if entry.file.path == file.path != options.to]
            if moving or (options.ops == "drop" and has_ops_key(file)):
                title = (
                    f"move {len(moving)} entries of {file.path} to {options.to}"
                    if moving
                    else f"drop `ops:` of {file.path}"
                )
                names = tuple(entry.name for entry in moving)
                yield Site(Place(file.path, Span(0, 0)), title, names, subject=(manifest, moving))


@migration(
    "merge-manifest",
    find=find,
    options=MergeManifest,
    scope=ENTRIES,
    settled="the entries are in one file already",
    proof=ROWS,
)
def merge_manifest(draft: Draft, sites: Sequence[Site], options: MergeManifest) -> Iterator[Note]:
    """Put the entries of several manifest files into one.

    The entries are written one file after the other, each unchanged, with the comments above it; the head of a file is
    written before its first entry. An existing target file keeps its layout; otherwise it is that of the first merged file:
    with a top-level `ops:` if that has one, unless `-o ops=drop`. It is the reverse of `split-manifest`, and notes the same
    things.

        opschema migrate merge-manifest -o to=tileops/ops_manifest.yaml
    """
    for manifest in manifests(draft):
        own = [site.subject[1] for site in sites if isinstance(site.subject, tuple) and site.subject[0] is manifest]
        targets: dict[OpEntry, str] = {entry: options.to for moving in own for entry in moving}
        if own:
            yield from Arrangement(draft, manifest, targets, options.ops).apply()

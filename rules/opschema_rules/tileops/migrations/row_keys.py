"""The keys of workload rows that code reads by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note
from opschema_cli.phrases import quoted
from opschema_cli.source.text import Edit, Span
from opschema_rules.tileops.model import OpEntry


def rename_quoted_keys(draft: Draft, entries: Sequence[OpEntry], old: str, new: str) -> Iterator[Note]:
    """Rename ``"old"`` in the Python files that read rows of ``entries`` and of no other op whose rows have that key, and that
    build none themselves.
    """
    rows = [entry for entry in entries if any(row.node.pair(old) is not None for row in entry.rows)]
    if not rows:
        return
    known = frozenset(rows)
    others = [entry.name for entry in rows[0].manifest.entries if entry not in known and _has_key(entry, old)]
    for source in texts_with(draft.project, [old]):
        spans = quoted_words(source.text, old) if source.path.endswith(".py") else []
        mentioned = set(re.findall(r"\w+", source.text)) if spans else set()
        renamed = [entry.name for entry in rows if entry.name in mentioned]
        kept = [name for name in others if name in mentioned]
        if spans and renamed and not kept and not _builds(source.text, spans):
            draft.edit(source.path, [Edit(span, new) for span in spans])
        elif spans and (renamed or not others) and "workload" in source.text:
            names = quoted(renamed[:3] or [rows[0].name])
            yield Note(
                Place(source.path, spans[0]), f'"{old}" is no longer a key of the rows of {names}; they have "{new}"'
            )


def _builds(text: str, spans: Sequence[Span]) -> bool:
    """Whether one of these literals is a key of a dict that the code builds: a row of its own, not one of the manifest."""
    return any(re.match(r"""['"]\s*:""", text[span.end : span.end + 40]) for span in spans)


def _has_key(entry: OpEntry, key: str) -> bool:
    return any(row.node.pair(key) is not None for row in entry.rows)


def quoted_words(text: str, word: str) -> list[Span]:
    """The insides of the string literals that are exactly ``word``."""
    found = re.finditer(rf"""(?<!\w)(['"])({re.escape(word)})\1""", text)
    return [Span(*match.span(2)) for match in found]


def note_quoted_keys(draft: Draft, entries: Sequence[OpEntry], key: str) -> Iterator[Note]:
    """The benchmarks and tests of some entries that read ``key``, which their rows no longer have."""
    for entry in entries:
        if not _has_key(entry, key):
            continue
        paths = (entry.manifest.locate(path) for name in ("test", "bench") for _, path in entry.source_paths(name))
        for path in dict.fromkeys(filter(None, paths)):
            source = draft.project.source(path)
            spans = quoted_words(source.text, key) if source is not None else []
            if spans:
                yield Note(Place(path, spans[0]), f'"{key}" is no longer a key of the rows of `{entry.name}`')

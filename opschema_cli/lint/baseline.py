"""The baseline: findings that a repository has accepted for now, so that only new ones count.

An entry is keyed by rule, file and the text of its line, not by the line's number, so edits elsewhere do not wake it up.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.builtin import STALE
from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.regular_files import read_regular
from opschema_cli.source.text import Source

DEFAULT_NAME = ".opschema-baseline.json"

Key = tuple[str, str, str]

_LINE = re.compile(r'"line": "([^"]*)"')


class BaselineEntry(msgspec.Struct, frozen=True):
    """``count`` findings of one rule on lines of one text in one file."""

    code: str
    path: str
    line: str
    count: int = 1

    @property
    def key(self) -> Key:
        """The key by which an entry matches findings."""
        return self.code, self.path, self.line


class BaselineFile(msgspec.Struct, frozen=True):
    """The file's content."""

    version: int
    findings: list[BaselineEntry]


def finding_key(diagnostic: Diagnostic, source: Source | None) -> Key:
    """The key of a finding: its code, its file, and a digest of its line's text with white space folded."""
    line = source.position(diagnostic.place.span.start).line if source is not None else 0
    return diagnostic.code, diagnostic.place.path, _line_digest(source, line)


@lru_cache(maxsize=4096)
def _line_digest(source: Source | None, line: int) -> str:
    """Return a digest of a line's text with white space folded; cached, since a long line may have many findings."""
    text = " ".join(source.line_text(line).split()) if source is not None else ""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def read_baseline(path: Path) -> BaselineFile:
    """The baseline at ``path``.

    Raises:
        OpschemaError: it cannot be read, or is not a baseline of this version.
    """
    try:
        found = msgspec.json.decode(read_regular(path), type=BaselineFile)
    except FileNotFoundError:
        raise OpschemaError(f"{path}: no baseline; `opschema baseline` writes one") from None
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise OpschemaError(f"{path}: not a baseline: {error}; `opschema baseline` writes a new one") from None
    if found.version != 1:
        raise OpschemaError(
            f"{path}: baseline version {found.version} is not known; `opschema baseline` writes a new one"
        )
    return found


def render_baseline(
    diagnostics: Iterable[Diagnostic], source_of: Callable[[str], Source | None], kept: Iterable[BaselineEntry] = ()
) -> str:
    """Render the baseline that accepts these findings, and the entries ``kept`` from an earlier one: one line each, sorted, so
    that diffs are small.
    """
    import json

    counts = Counter(finding_key(item, source_of(item.place.path)) for item in diagnostics)
    for entry in kept:
        counts[entry.key] = max(counts[entry.key], entry.count)
    lines = [
        json.dumps({"code": code, "path": path, "line": line, "count": count}, ensure_ascii=False)
        for (code, path, line), count in sorted(counts.items(), key=lambda pair: (pair[0][1], pair[0][0], pair[0][2]))
    ]
    body = ",\n".join(f"  {line}" for line in lines)
    return '{"version": 1, "findings": [\n' + body + ("\n" if lines else "") + "]}\n"


def apply_baseline(
    diagnostics: Iterable[Diagnostic], baseline: BaselineFile, source_of: Callable[[str], Source | None]
) -> tuple[list[Diagnostic], int, list[BaselineEntry]]:
    """Return the findings that are not in the baseline, the number of those that are, and the baseline's unmatched entries."""
    left = Counter({entry.key: entry.count for entry in baseline.findings})
    kept: list[Diagnostic] = []
    held = 0
    for diagnostic in diagnostics:
        key = finding_key(diagnostic, source_of(diagnostic.place.path))
        if left[key] > 0:
            left[key] -= 1
            held += 1
        else:
            kept.append(diagnostic)
    return kept, held, [entry for entry in baseline.findings if left[entry.key] > 0]


def pruned(baseline: BaselineFile, texts: Mapping[str, str | None]) -> list[BaselineEntry]:
    """Return the entries without those on lines that these new texts of files no longer have; None is a removed file."""
    lines = {path: _digests(Source(path, text)) if text is not None else frozenset() for path, text in texts.items()}
    return [entry for entry in baseline.findings if entry.path not in lines or entry.line in lines[entry.path]]


def _digests(source: Source) -> frozenset[str]:
    count = source.position(len(source.text)).line
    return frozenset(_line_digest(source, line) for line in range(1, count + 1))


def stale_findings(stale: Iterable[BaselineEntry], path: str, text: str) -> list[Diagnostic]:
    """A diagnostic at the line of each stale entry of the baseline file at ``path``."""
    found: list[Diagnostic] = []
    starts: dict[str, int] = {}
    for match in _LINE.finditer(text):
        starts.setdefault(match[1], match.start())
    source = Source(path, text)
    for entry in stale:
        span = source.line_span(source.position(starts.get(entry.line, 0)).line)
        message = f"{entry.code} in {entry.path} is fixed; update the baseline with `opschema baseline`"
        found.append(Diagnostic(message, Place(path, span), code=STALE.code))
    return found

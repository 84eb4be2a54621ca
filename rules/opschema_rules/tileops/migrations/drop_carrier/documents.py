"""Documents that still require what the migration removed: an input of every op, or an exception for ops without tensors."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import occurrences, texts_with
from opschema_cli.migrate.migration import Note
from opschema_cli.source.text import Source, Span
from opschema_rules.tileops.migrations.words import is_history
from opschema_rules.tileops.model import Manifest

_CLAIM = re.compile(
    r"""
    \bat\s+least\s+(?:1|one)\s+(?:tensor\s+)?(?:inputs?|tensors?)\b[^.\n]*
    | (?:>=|≥)\s*1`?\s+(?:entry|entries|tensors?|inputs?)\b[^.\n]{0,40}\binputs?\b`?
    | \binputs?`?\s+(?:must|may|shall|can)\s*not\s+be\s+empty
    | \bnon-?empty\s+`?(?:signature\.)?inputs?\b`?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ACCEPTS = re.compile(r"inputs: ?\{\}|\bor\s+(?:at\s+least\s+)?(?:1|one|a)\s+param", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"\b(?:zero|no|without)\s+(?:positional\s+|tensor\s+)*(?:arg\w*|inputs?|parameters?)\b", re.IGNORECASE
)


def outdated(draft: Draft, manifest: Manifest, checks: Collection[str]) -> Iterator[Note]:
    """Yield a note on each paragraph that requires an input of every op, describes the exception for ops that take no tensor, or
    refers to one of the ``checks`` that required an input.
    """
    paths = [path for path in draft.project.workspace.under(manifest.base) if path.endswith((".md", ".rst"))]
    for source in texts_with(draft.project, {"input", "inputs", "ref_api", *checks}, paths):
        for paragraph in _paragraphs(source.text) if not is_history(source.path) else ():
            yield from _note(source, paragraph, checks)


def _paragraphs(text: str) -> Iterator[Span]:
    """The stretches of a text between lines that are blank."""
    start, at = 0, 0
    for line in [*text.splitlines(keepends=True), "\n"]:
        if not line.strip():
            if at > start:
                yield Span(start, at)
            start = at + len(line)
        at += len(line)


def _note(source: Source, paragraph: Span, checks: Collection[str]) -> Iterator[Note]:
    text = source.text[paragraph.start : paragraph.end]
    if _ACCEPTS.search(text):
        return
    claim = _CLAIM.search(text)
    if claim is not None:
        words = claim.group().strip("`")
        yield Note(_at(source, paragraph, claim.span()), f"`{words}`: an op needs only params now; update this text")
        return
    exception = _EXCEPTION.search(text) if "ref_api" in text and "forward" in text else None
    if exception is not None:
        yield Note(
            _at(source, paragraph, exception.span()), "ops without tensors are no longer an exception; update this text"
        )
        return
    for name in sorted(checks):
        for span in occurrences(text, name):
            yield Note(_at(source, paragraph, span), f"`{name}` accepts `inputs: {{}}` now; update this text")
            return


def _at(source: Source, paragraph: Span, span: tuple[int, int]) -> Place:
    return Place(source.path, Span(paragraph.start + span[0], paragraph.start + span[1]))

"""Comments on carriers: paragraphs that mention nothing else are removed, the others are left to a person."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec

from opschema_cli.source.text import Edit, Source, Span

_OWN_LINE = re.compile(r"[ \t]*#(?P<text>.*)")
_SENTENCE = re.compile(r"[.!?](?=\s+[^a-z\s])")
_NO_TENSOR = re.compile(
    r"\b(?:no|without|zero|takes? none)\b[^.]{0,20}\b(?:tensors?|inputs?)\b|\bat least one input\b", re.IGNORECASE
)


class Paragraph(msgspec.Struct, frozen=True):
    """Comment lines, counted from 1, without an empty one among them; ``block`` are the lines of all adjoining ones."""

    first: int
    last: int
    block: tuple[int, int]
    text: str

    @property
    def sentences(self) -> int:
        """The number of its sentences."""
        return len(_SENTENCE.findall(self.text.strip())) + 1

    @property
    def tells_of_no_tensor(self) -> bool:
        """Whether it says that something takes no tensor."""
        return _NO_TENSOR.search(self.text) is not None


def named_in(text: str, names: Collection[str]) -> bool:
    """Whether a text names one of some things: a plain word only where it is quoted."""
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)" if "_" in name else rf"[`'\"]{re.escape(name)}[`'\"]", text)
        for name in names
    )


def paragraphs(source: Source, lines: Collection[int] | None = None) -> Iterator[Paragraph]:
    """The paragraphs of the comments that have their lines to themselves, ``lines`` of the file or all."""
    texts: dict[int, str] = {}
    for number in sorted(lines) if lines is not None else range(1, source.line_count + 1):
        match = _OWN_LINE.fullmatch(source.line_text(number))
        if match is not None:
            texts[number] = match["text"].strip()
    for block in _runs(list(texts)):
        for run in _runs([number for number in block if texts[number]]):
            yield Paragraph(run[0], run[-1], (block[0], block[-1]), " ".join(texts[number] for number in run))


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for number in numbers:
        if run and number != run[-1] + 1:
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def without(source: Source, removed: Collection[Paragraph]) -> Iterator[Edit]:
    """The edits that take paragraphs out, with the empty comment line or blank lines that parted them."""
    for block in sorted({item.block for item in removed}):
        mine = sorted((item for item in removed if item.block == block), key=lambda item: item.first)
        kept = _kept_lines(source, block, mine)
        if any(_is_text(source, number) for number in kept):
            yield from _lines(source, [number for number in range(block[0], block[1] + 1) if number not in kept])
        else:
            yield from _lines(source, [*range(block[0], block[1] + 1), *_blank_around(source, block)])


def _kept_lines(source: Source, block: tuple[int, int], removed: Sequence[Paragraph]) -> list[int]:
    lines = [
        number
        for number in range(block[0], block[1] + 1)
        if not any(item.first <= number <= item.last for item in removed)
    ]
    kept: list[int] = []
    for number in lines:
        if _is_text(source, number) or (kept and _is_text(source, kept[-1])):
            kept.append(number)
    while kept and not _is_text(source, kept[-1]):
        kept.pop()
    return kept


def _is_text(source: Source, number: int) -> bool:
    return source.line_text(number).strip() not in ("", "#")


def _blank_around(source: Source, block: tuple[int, int]) -> Iterator[int]:
    """Yield the blank lines after a block, unless the line above it has text and does not open the enclosing block."""
    above = source.line_text(block[0] - 1).rstrip() if block[0] > 1 else ""
    if above and not above.endswith(":"):
        return
    number = block[1] + 1
    while number <= source.line_count and not source.line_text(number).strip():
        yield number
        number += 1


def _lines(source: Source, numbers: Sequence[int]) -> Iterator[Edit]:
    for run in _runs(sorted(numbers)):
        end = source.line_span(run[-1] + 1).start if run[-1] < source.line_count else len(source.text)
        yield Edit(Span(source.line_span(run[0]).start, end), "")

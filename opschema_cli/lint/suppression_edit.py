"""The edit that suppresses a finding on its line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opschema_cli.file_kinds import is_cpp
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.suppress import Suppression, find_suppressions
from opschema_cli.source.text import Edit, Source, Span, apply_edits
from opschema_cli.source.yaml import Node


def suppressing_edit(
    source: Source,
    offset: int,
    code: str,
    registry: Registry,
    root_of: Callable[[str], Node | None],
    parse: Callable[[str], Node | None],
) -> Edit | None:
    """Return the edit that suppresses a finding at an offset: in the brackets of a directive on its line, at the end of the line,
    or on a line above. None if none of these would be read as a directive, for example inside a multi-line string.

    ``root_of`` gives the tree of the file, ``parse`` that of a new text.
    """
    known = find_suppressions([source], registry, (), root_of)
    for edit in _candidates(source, offset, code, known):
        after = Source(source.path, apply_edits(source.text, [edit]), source.encoding)
        shift = len(edit.replacement) - (edit.span.end - edit.span.start) if edit.span.start <= offset else 0
        found = find_suppressions([after], registry, (), lambda path, text=after.text: parse(text))  # type: ignore[misc]
        if any(code in item.codes and _covers(item, offset + shift) for item in found):
            return edit
    return None


def _covers(item: Suppression, offset: int) -> bool:
    return item.covers is not None and item.covers.start <= offset <= item.covers.end


def _candidates(source: Source, offset: int, code: str, known: list[Suppression]) -> Iterator[Edit]:
    start, end = source.line_span(source.position(offset).line)
    for item in known:
        if start <= item.span.start < end and item.words:
            yield Edit(Span(item.inside.end, item.inside.end), f", {code}")
            return
    if source.path.endswith(".json"):
        return  # it has no comments
    mark = f"{'//' if is_cpp(source.path) else '#'} opschema: ignore[{code}]"
    line, before = source.text[start:end], source.text[max(0, start - 3) : start].removesuffix("\n").removesuffix("\r")
    if not line.endswith("\\"):  # a comment ends what the next line continues
        yield Edit(Span(end, end), f"  {mark}")
    if not before.endswith("\\"):
        indent = line[: len(line) - len(line.lstrip())]
        yield Edit(Span(start, start), f"{indent}{mark}{source.newline}")

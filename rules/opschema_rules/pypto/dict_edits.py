"""Edits a description: adds fields to a dict and replaces the directions in a list, in the file's own layout and spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from opschema_cli.lint.diagnostic import FileEdit, Fix
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Edit, Span
from opschema_rules.pypto.model import Direction, Part, Program, Signature

_BRACKETS = re.compile(r"(?:\s*\))*")
_BEHIND = re.compile(r"\s*(?P<comma>,)?(?P<rest>[^\S\r\n]*(?:#[^\r\n]*)?)(?P<end>\r?\n)?")


def enum_of(program: Program) -> str:
    """Return a description's name for the enum of directions (``D``); empty if no signature shows one."""
    parts: list[Part | None] = [*program.kernels, program.orchestration]
    spelled = (part.signature.enum for part in parts if part is not None and part.signature is not None)
    return next((name for name in spelled if name), "")


def fix_of(file: PythonFile, title: str, edits: Iterable[Edit]) -> Fix:
    """Return a fix of a description; it is safe unless it removes a comment together with an entry."""
    found = tuple(FileEdit(file.path, edit) for edit in edits)
    if any("#" in file.text(item.edit.span) and "#" not in item.edit.replacement for item in found):
        return Fix(title, found, "unsafe", "it removes a comment with its entry")
    return Fix(title, found)


def spelled(directions: Sequence[Direction], enum: str) -> str:
    """Return a list of directions on one line."""
    return f"[{', '.join(f'{enum}.{item.value}' for item in directions)}]"


def add_field(file: PythonFile, fields: Expr, name: str, text: str, behind: str = "") -> Edit | None:
    """Return the edit that adds a field to a dict, after its last field or a named one; see :func:`add_fields`."""
    return add_fields(file, fields, {name: text}, behind)


def add_fields(file: PythonFile, fields: Expr, new: Mapping[str, str], behind: str = "") -> Edit | None:
    """Return the edit that adds fields to a dict, after its last field or a named one; None if the named one is missing, the
    dict is empty, or another dict is unpacked there.
    """
    keys = [key for key in fields.items[::2] if not behind or key.value == behind]
    if not keys or keys[-1].kind != "const":
        return None
    source, key = file.source.text, keys[-1]
    last = fields.items[fields.items.index(key) + 1]
    brackets = _BRACKETS.match(source, last.end)
    end = brackets.end() if brackets is not None else last.end
    matched = _BEHIND.match(source, end)
    if matched is None or not _goes_on(source, matched, last is fields.items[-1]):
        return None
    indent = _line_start(source, key.start)
    quote = source[key.start] if source[key.start] in "\"'" else '"'
    text = _between(indent).join(f"{quote}{name}{quote}: {value}" for name, value in new.items())
    alone = indent is not None and bool(matched["end"])
    if not matched["comma"]:
        behind_comment = matched.end("rest") if alone and matched["rest"].strip() else end
        kept = source[end:behind_comment]
        return Edit(Span(end, behind_comment), f",{kept}{indent}{text}" if kept else f"{_between(indent)}{text}")
    at = matched.end("rest") if alone else matched.end("comma")
    return Edit(Span(at, at), f"{indent}{text}," if alone else f" {text},")


def _goes_on(source: str, matched: re.Match[str], last: bool) -> bool:
    """Whether the text after a value is understood: a comma, or the end of the dict."""
    if not last:
        return matched["comma"] is not None
    return source[matched.end("rest") :][:1] in ("\r", "\n", "}")


def turn_into(file: PythonFile, signature: Signature, directions: Sequence[Direction], enum: str) -> list[Edit]:
    """Return the fewest edits that give a known signature other directions; its comments are kept."""
    slots = signature.slots or ()
    if not slots or (signature.expr.kind == "tuple" and len(directions) < 2):
        return [Edit(signature.expr.span, spelled(directions, enum))]
    indent = _line_start(file.source.text, slots[-1].expr.start)
    every = [slot.expr for slot in slots]
    before, after = [slot.direction.value for slot in slots], [item.value for item in directions]
    same = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(before))
    same = min(same, len(after))
    matcher = SequenceMatcher(None, before[same:], after[same:], autojunk=False)
    found: list[Edit] = []
    for tag, *ends in matcher.get_opcodes():
        if tag != "equal":
            start, end, first, last = (same + at for at in ends)
            names = [f"{enum}.{item}" for item in after[first:last]]
            found += _changed(file.source.text, every, start, every[start:end], names, indent)
    return found


def _changed(
    source: str, every: Sequence[Expr], start: int, own: Sequence[Expr], names: Sequence[str], indent: str | None
) -> Iterator[Edit]:
    """Yield the edits that replace some entries of a list: the last ones one for one; surplus entries are added before them or
    removed.
    """
    more = names[: max(0, len(names) - len(own))]
    first = "".join(f"{name}{_between(indent)}" for name in more) if start == 0 else ""
    for expr, name in zip(own, names[len(more) :], strict=False):
        yield Edit(expr.span, (first if expr is own[0] else "") + name)
    if len(own) > len(names):
        yield from _removed(source, every, start + len(names), start + len(own))
    if more and start > 0:
        yield from _behind(source, every[start - 1], more, indent)
    elif more and not own:
        yield Edit(Span(every[0].start, every[0].start), first)


def _behind(source: str, last: Expr, names: Sequence[str], indent: str | None) -> Iterator[Edit]:
    """Yield the edits that add names after an entry, and after the comment on its line."""
    matched = _BEHIND.match(source, last.end)
    alone = indent is not None and matched is not None and matched["end"] is not None
    if matched is not None and matched["comma"]:
        at = matched.end("rest") if alone else matched.end("comma")
        yield Edit(Span(at, at), "".join(f"{indent if alone else ' '}{name}," for name in names))
    elif matched is not None and alone and matched["rest"].strip():
        yield Edit(Span(last.end, last.end), ",")
        yield Edit(Span(matched.end("rest"), matched.end("rest")), f",{indent}".join(["", *names])[1:])
    else:
        yield Edit(Span(last.end, last.end), "".join(f"{_between(indent)}{name}" for name in names))


def _removed(source: str, every: Sequence[Expr], start: int, end: int) -> Iterator[Edit]:
    """Yield the edits that remove some entries, each with the comma after it or, at the end of the list, before it."""
    line, tail = _line_start(source, every[start].start), _BEHIND.match(source, every[-1].end)
    if end < len(every):
        yield Edit(Span(every[start].start, every[end].start), "")
    elif start > 0 and line is not None and tail is not None and tail["end"]:
        yield Edit(Span(every[start].start - len(line), tail.end("rest")), "")
    elif start > 0:
        yield Edit(Span(every[start - 1].end, every[-1].end), "")
    else:
        yield Edit(Span(every[0].start, every[-1].end), "")


def _between(indent: str | None) -> str:
    return ", " if indent is None else f",{indent}"


def _line_start(text: str, at: int) -> str | None:
    """Return the line break and white space before a place; None if other text precedes it on its line."""
    end = text.rfind("\n", 0, at)
    before = text[end + 1 : at]
    newline = "\r\n" if text[max(end - 1, 0) : end + 1] == "\r\n" else "\n"
    return None if before.strip() or end < 0 else newline + before

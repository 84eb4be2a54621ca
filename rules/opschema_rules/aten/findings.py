"""Results of rules on YAML entries: findings at nodes or spans of an entry, and fixes that change nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_edit import YamlEditError
from opschema_cli.suggestions import suggested
from opschema_rules.aten.entry import Entry, string
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import NativeEntry


def found(
    entry: Entry,
    target: Node | Span,
    message: str,
    *related: Related,
    fix: Fix | None = None,
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    """A finding in an entry."""
    ops = (entry.name,) if entry.name else ()
    return Diagnostic(message, entry.at(target), related, fix, ops, severity=severity)


def unknown(
    entry: Entry,
    target: Node | Span,
    name: str,
    known: Iterable[str],
    message: str,
    *related: Related,
    cutoff: float = 0.7,
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    """Return a finding in an entry on a name that is not among the ``known`` ones; the message ends with the closest of these."""
    return found(entry, target, message + suggested(name, known, cutoff), *related, severity=severity)


def no_mappings(file: YamlFile, keys: str) -> Iterator[Diagnostic]:
    """Findings at the items of a file that are no mappings with certain ``keys``."""
    for item in items_of(file):
        if not item.is_mapping:
            yield Diagnostic(f"an entry must be a mapping with {keys}", Place(file.path, item.span))


def no_list(file: YamlFile, what: str, *, filled: bool = True) -> Iterator[Diagnostic]:
    """Yield a finding if the file is not a list, or, if it has to be ``filled``, an empty one; ``what`` describes it."""
    root = file.root
    if root is None or not root.is_sequence or (filled and not root.items):
        span = Span(0, 0) if root is None else root.items[0].span if root.items else root.span
        kind = "empty" if root is None else _written(root)
        yield Diagnostic(
            f"{file.path.rpartition('/')[2]} is a list of entries ({what}), and this is {kind}", Place(file.path, span)
        )


def _written(root: Node) -> str:
    return {"mapping": "a mapping", "sequence": "an empty list"}.get(root.kind, "text" if string(root) else "no text")


def func_text(entry: NativeEntry) -> str:
    """The value of `func`, text or not, for a fast check before closer reading."""
    node = entry.get("func")
    return node.value if node is not None else ""


def yaml_fix(entry: Entry, title: str, edit: Callable[[], Iterable[Edit]], why_unsafe: str = "") -> Fix | None:
    """Return a fix of the entry's file; None if the editor would have to change more."""
    try:
        edits = tuple(FileEdit(entry.file.path, item) for item in edit())
    except (YamlEditError, ValueError):  # the latter for a text that no YAML file can hold
        return None
    return Fix(title, edits, "unsafe" if why_unsafe else "safe", why_unsafe) if edits else None


def _in_flow(holder: Node, node: Node) -> bool:
    """Whether a node is in brackets or braces of its entry, where a comma ends plain text."""
    return holder.style == "flow" or any(
        _in_flow(item, node) for item in holder.items if item.start <= node.start < item.end and item is not node
    )


_PLAIN = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)


def listing(entry: Entry, node: Node, names: Sequence[str]) -> Fix | None:
    """A fix that makes a scalar a list of names, in brackets as the file writes them."""
    if node.anchor or node.tag or not all(map(_PLAIN.fullmatch, names)):
        return None
    text = f"[{', '.join(names)}]"
    return Fix(f"write `{text}`", (FileEdit(entry.file.path, Edit(node.span, text)),))


def respelling(entry: Entry, node: Node, span: Span, text: str, title: str = "", why_unsafe: str = "") -> Fix | None:
    """Return a fix that writes ``text`` for a part of a scalar's value; None if the value is not written character by character."""
    written = entry.inner(node, span)
    source = entry.file.source.text
    plain = source[written.start : written.end] == node.value[span.start : span.end]
    marks = (": ", " #", *(",[]{}" if _in_flow(entry.node, node) else ""))
    breaks = not node.style and any(mark in text for mark in marks)
    quoted = node.style in ("'", '"') and node.style in text
    if not plain or breaks or quoted or "\n" in text or "\\" in text:
        return None
    title = title or (f"write `{text}`" if text.strip() else "leave it out" if not text else "write a space")
    edit = FileEdit(entry.file.path, Edit(written, text))
    return Fix(title, (edit,), "unsafe" if why_unsafe else "safe", why_unsafe)

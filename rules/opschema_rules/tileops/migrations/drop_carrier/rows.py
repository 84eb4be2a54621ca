"""Workload rows without the carrier's shape, and with the dtype that the op is made with: one row for each dtype."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.text import Edit, EditConflictError, Source, Span, apply_edits
from opschema_cli.source.yaml import Data, Node, YamlFile, YamlSyntaxError
from opschema_cli.source.yaml_compose import compose
from opschema_cli.source.yaml_edit import YamlEditError, insert_key, remove_item, remove_key, set_value
from opschema_cli.source.yaml_places import column, line_end
from opschema_cli.source.yaml_places import entry as written
from opschema_rules.tileops.entry_parts import Row
from opschema_rules.tileops.model import OpEntry

Step = Callable[[YamlFile, Node], list[Edit]]


def row_edits(entry: OpEntry, shapes: Sequence[str], param: str) -> Iterator[Edit]:
    """The edits that take the keys ``shapes`` from every row, and set ``param``, empty for none, to the row's dtypes.

    Raises:
        LeftAlone: a row lists no dtypes, or shares its text with something else.
    """
    owner = entry.get("workloads")
    if owner is None or not owner.is_sequence:
        return
    labels = _Labels(row.data.get("label") for row in entry.rows)
    for row in entry.rows:
        drop = [key for key in shapes if key in row.data]
        if not drop and (not param or param in row.data):
            continue
        if owner.items[row.index].kind == "alias":
            raise LeftAlone(entry.at(owner.items[row.index]), "this row is an alias of another")
        yield from _edits(entry.file, owner, row, list(_texts(entry, owner, row, drop, param, labels)))


class _Labels:
    """The labels of an entry's rows; a row that becomes several keeps its own for the first."""

    def __init__(self, labels: Iterable[Data]) -> None:
        self.taken = {label for label in labels if isinstance(label, str)}

    def another(self, label: str) -> str:
        """A label like ``label`` that no row has."""
        found = next(name for number in count(2) if (name := f"{label}-{number}") not in self.taken)
        self.taken.add(found)
        return found


def _texts(entry: OpEntry, owner: Node, row: Row, drop: Iterable[str], param: str, labels: _Labels) -> Iterator[str]:
    """The texts of the rows that this one becomes."""
    without = [_removal(key) for key in drop]
    if not param or param in row.data:
        yield _rewritten(entry, owner, row, _alone(entry, owner, row), without)
        return
    names = row.dtypes
    if not names or names != row.data.get("dtypes") or len(set(names)) != len(names):
        raise LeftAlone(entry.at(row.node), f"this row lists no dtypes from which `{param}` could be set")
    alone = _alone(entry, owner, row)
    label = row.data.get("label")
    for index, name in enumerate(names):
        narrowed = [_narrowing(other) for other in names if other != name]
        relabelled = [_labelling(labels.another(label))] if index and isinstance(label, str) else []
        yield _rewritten(entry, owner, row, alone, [*without, _setting(param, name), *narrowed, *relabelled])


def _removal(key: str) -> Step:
    return lambda file, node: remove_key(file, node, key)


def _setting(param: str, dtype: str) -> Step:
    def set_dtype(file: YamlFile, node: Node) -> list[Edit]:
        written_as = next((file.source.text[slice(*item.span)] for item in _listed(node) if item.value == dtype), dtype)
        edits = insert_key(file, node, param, dtype, before="dtypes")
        quoted = re.compile(rf"""(["']){re.escape(dtype)}\1""")
        return [Edit(edit.span, quoted.sub(lambda _: written_as, edit.replacement)) for edit in edits]

    return set_dtype


def _labelling(label: str) -> Step:
    def relabel(file: YamlFile, node: Node) -> list[Edit]:
        written_at = node.get("label")
        return set_value(file, written_at, label) if written_at is not None else []

    return relabel


def _listed(node: Node) -> tuple[Node, ...]:
    listed = node.get("dtypes")
    return listed.items if listed is not None else ()


def _narrowing(other: str) -> Step:
    """The step that takes a dtype from those that the row lists."""

    def narrow(file: YamlFile, node: Node) -> list[Edit]:
        listed = node.get("dtypes")
        places = [index for index, item in enumerate(_listed(node)) if item.value == other]
        return remove_item(file, listed, places[0]) if listed is not None and places else []

    return narrow


def _alone(entry: OpEntry, owner: Node, row: Row) -> YamlFile:
    """A row as a file of its own, without the indentation that it has in its file."""
    start, end = written(entry.file, owner, row.index)
    newline, margin = entry.file.source.newline, " " * column(entry.file, start)
    lines = entry.file.source.text[start:end].split(newline)
    text = newline.join(line.removeprefix(margin) for line in lines) + newline
    try:
        return YamlFile(Source(entry.file.path, text), compose(text))
    except YamlSyntaxError as error:
        raise _left(entry, row, error) from None


def _left(entry: OpEntry, row: Row, error: Exception) -> LeftAlone:
    return LeftAlone(entry.at(row.node), f"this row cannot be rewritten: {error}")


def _rewritten(entry: OpEntry, owner: Node, row: Row, file: YamlFile, steps: Sequence[Step]) -> str:
    """The text of a row that is a file of its own after all steps, its lines indented as in the entry's file."""
    newline = entry.file.source.newline
    margin = " " * column(entry.file, written(entry.file, owner, row.index).start)
    try:
        text = _stepped(file, steps)
    except (YamlEditError, YamlSyntaxError) as error:
        raise _left(entry, row, error) from None
    first, *rest = text.removesuffix(newline).split(newline)
    return newline.join([first, *(margin + line if line else line for line in rest)])


def _stepped(file: YamlFile, steps: Sequence[Step]) -> str:
    """A row's text after all steps: at once, or one after the other where their edits meet."""
    text, root = file.source.text, file.root
    row = root.items[0] if root is not None and root.is_sequence else root
    if row is None:
        return text
    try:
        return apply_edits(text, [edit for step in steps for edit in step(file, row)])
    except EditConflictError:
        text = _stepped(file, steps[:1])
        return _stepped(YamlFile(Source(file.path, text), compose(text)), steps[1:])


def _edits(file: YamlFile, owner: Node, row: Row, texts: Sequence[str]) -> Iterator[Edit]:
    span = written(file, owner, row.index)
    if owner.style == "flow":
        yield Edit(span, ", ".join(texts))
        return
    yield Edit(span, texts[0])
    newline, margin, below = file.source.newline, " " * column(file, span.start), line_end(file, span.end)
    if len(texts) > 1:
        yield Edit(Span(below, below), "".join(newline + margin + text for text in texts[1:]))

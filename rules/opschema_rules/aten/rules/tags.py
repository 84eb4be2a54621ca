"""Torchgen's demands on tags.yaml, and text there that it accepts although it is not a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Place
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import rename_key
from opschema_cli.suggestions import nearest
from opschema_rules.aten.entry import Entry, string
from opschema_rules.aten.findings import found, no_list, yaml_fix
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import TagsFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.refused_yaml import refused
from opschema_rules.aten.rules.derivatives_entries import repeated_keys, written
from opschema_rules.aten.vocabulary import slip

_FIELDS = ("tag", "desc")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


@rule("ATN501", "tag-field", pure=True)
def tag_field(tags: TagsFile) -> Iterator[Diagnostic]:
    """tags.yaml is not a list, or one of its entries lacks `tag` or `desc`, or has the wrong type there.

    Both are text, and neither is empty. The tag names a value of the C++ enum `at::Tag`, so it is one word. torchgen fails
    with a bare `KeyError` if `tag` is missing, and accepts tags that no C++ compiler accepts.

    Bad:

    ```yaml tags.yaml
    - tag: core
      desc: ""
    - desc: Each element depends on one element.
    - tag: point wise
      desc: Each element depends on one element.
    ```

    Good:

    ```yaml tags.yaml
    - tag: core
      desc: |
        An operator of the core set.
    ```
    """
    yield from no_list(tags.file, "`- tag: ...`")
    for node in items_of(tags.file):
        if not node.is_mapping:
            message = f"an entry is a mapping with `tag` and `desc`, and this is {written(node)}"
            yield Diagnostic(message, Place(tags.path, node.span))
    for node, message in refused(tags.file):
        yield Diagnostic(message, Place(tags.path, node.span))
    for entry in tags.entries:
        yield from repeated_keys(entry, entry.node)
        yield from _tag(entry)
        yield from _description(entry)


def _tag(entry: Entry) -> Iterator[Diagnostic]:
    node = entry.get("tag")
    if node is None:
        if _misspelt(entry, "tag") is None:
            yield Diagnostic("the entry has no `tag`, which names it", entry.at(_first(entry)))
    elif not string(node):
        yield Diagnostic(f"a tag is a word, and this is {written(node)}", entry.at(_shown(entry, "tag", node)))
    elif _WORD.fullmatch(node.value) is None:
        name = " ".join(node.value.split())
        yield Diagnostic(f"`{name}` is not a name in C++, where tags are the values of an enum", entry.at(node))


def _description(entry: Entry) -> Iterator[Diagnostic]:
    node = entry.get("desc")
    if node is None:
        if _misspelt(entry, "desc") is None:
            yield Diagnostic(
                "the tag has no `desc`, which describes its meaning", entry.at(entry.get("tag") or _first(entry))
            )
    elif not (string(node) or "").strip():
        message = f"`desc` describes the meaning of the tag, and this is {written(node)}"
        yield Diagnostic(message, entry.at(_shown(entry, "desc", node)))


def _first(entry: Entry) -> Node:
    return entry.node.items[0] if entry.node.items else entry.node


def _shown(entry: Entry, field: str, node: Node) -> Node:
    """The value, or its key where nothing is written."""
    return node if node.end > node.start else entry.key(field) or node


def _misspelt(entry: Entry, field: str) -> str | None:
    """The key that is probably meant to be the field."""
    return next((name for name in entry.fields if name not in _FIELDS and nearest(name, _FIELDS, 0.5) == field), None)


@rule("ATN502", "tag-duplicate", pure=True)
def tag_duplicate(tags: TagsFile) -> Iterator[Diagnostic]:
    """A tag appears twice in tags.yaml.

    torchgen merges both; the second description is lost.

    Bad:

    ```yaml tags.yaml
    - tag: core
      desc: An operator of the core set.
    - tag: core
      desc: An operator that backends implement.
    ```

    Good:

    ```yaml tags.yaml
    - tag: core
      desc: An operator of the core set.
    - tag: pointwise
      desc: Each element depends on one element.
    ```
    """
    first: dict[str, Entry] = {}
    for entry in tags.entries:
        name, node = entry.text("tag"), entry.get("tag")
        if not name or node is None:
            continue
        if name in first:
            related = first[name].related(first[name].get("tag") or node, "it is already here")
            yield Diagnostic(f"the tag `{name}` appears twice; keep one", entry.at(node), (related,))
        first.setdefault(name, entry)


@rule("ATN503", "tag-unknown-field", fixable="safe", proof=WRITTEN, pure=True)
def tag_unknown_field(tags: TagsFile) -> Iterator[Diagnostic]:
    """An entry of tags.yaml has a field that torchgen does not know.

    The fields are `tag` and `desc`; torchgen drops any other silently.

    Bad:

    ```yaml tags.yaml
    - tag: core
      desc: An operator of the core set.
    - tag: pointwise
      description: Each element depends on one element.
    ```

    Good:

    ```yaml tags.yaml
    - tag: core
      desc: An operator of the core set.
    ```
    """
    for entry in tags.entries:
        for name, (key, _) in entry.fields.items():
            if name in _FIELDS or (name == "<<" and not key.style):
                continue
            near = nearest(name, _FIELDS, 0.5)
            if near is None or near in entry.fields:
                yield Diagnostic(f"`{name}` is not a field of a tag; these are `tag` and `desc`", entry.at(key))
            else:
                message = f"`{name}` is not a field of a tag; did you mean `{near}`?"
                certain = name.startswith(near) or slip(name, _FIELDS) == near
                yield found(entry, key, message, fix=_rename(entry, name, near) if certain else None)


def _rename(entry: Entry, name: str, near: str) -> Fix | None:
    return yaml_fix(entry, f"write `{near}`", lambda: rename_key(entry.file, entry.node, name, near))

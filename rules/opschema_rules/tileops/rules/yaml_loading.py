"""YAML that its grammar allows and the readers of a manifest refuse, with the entire file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.drift import short
from opschema_rules.tileops.entry_paths import entry_at, mappings
from opschema_rules.tileops.model import ManifestFile
from opschema_rules.tileops.proofs import ROWS

_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#[^\n\r]*", re.MULTILINE)
_TABS = re.compile(r"\t+")
_CLOSES_A_KEY = re.compile(r"[\]}]\s*:")
_LIBYAML = re.compile(r"\bC(?:Safe|Full|Unsafe)?Loader\b")


@rule("YML104", "yaml-refused", fixable="safe", proof=ROWS)
def yaml_refused(subject: ManifestFile) -> Iterator[Diagnostic]:
    """The reader of the manifest rejects the file, though it is YAML.

    `yaml.safe_load` is stricter than the grammar, and if it raises, every op of the file is lost, not only the entry:

    - `<<` merges mappings and nothing else; no list or mapping can be a key.
    - Between two tokens there are only spaces, even in front of a comment: a tab, as in `family:<TAB>scan`, is rejected,
      unless the code beside the manifest reads with libyaml (`CSafeLoader`). The fix writes a space.
    - A file in UTF-16 cannot be read where that code opens it as UTF-8.

    Bad:

    ```yaml
    workloads:
      - {x_shape: [4, 8], <<: 3, dtypes: [float16], label: "small"}
      - {x_shape: [8, 8], [eps, dim]: 1, dtypes: [float16], label: "large"}
    ```

    Good:

    ```yaml
    workloads:
      - &small {x_shape: [4, 8], dtypes: [float16], label: "small"}
      - {<<: [*small, {eps: 1.0}], label: "large"}
      - {? "x_shape" : [4, 9], "<<": 3, dtypes: [float16], label: "quoted"}
    ```
    """
    text = subject.file.source.text
    yield from _encoding(subject)
    if any(sign in text for sign in ("<<", "?", "&")) or _CLOSES_A_KEY.search(text):  # else there is no such key
        yield from _keys(subject)
    if "\t" in text and not any(_LIBYAML.search(code) for _, code in _readers(subject)):
        yield from _tabs(subject)


# Keys.


def _keys(subject: ManifestFile) -> Iterator[Diagnostic]:
    file = subject.file
    for mapping in mappings(file.root):
        for key, value in mapping.pairs():
            target = file.document.follow(key)
            if target.kind != "scalar":
                kind = "mapping" if target.is_mapping else "list"
                message = (
                    f"a {kind} is the key here; loaders reject it, and with it the entire file: write a key of text"
                )
                yield _refused(subject, key.span, message)
            elif key.value == "<<" and not key.style and not key.tag:
                yield from _merge(subject, value, key)


def _refused(subject: ManifestFile, span: Span, message: str, fix: Fix | None = None) -> Diagnostic:
    entry = entry_at(subject, span.start)
    ops = (entry.name,) if entry is not None else ()
    return Diagnostic(message, Place(subject.file.path, span), (), fix, ops)


def _merge(subject: ManifestFile, value: Node, key: Node) -> Iterator[Diagnostic]:
    file = subject.file
    target = file.document.follow(value)
    for item in target.items if target.is_sequence else [value]:
        if not file.document.follow(item).is_mapping:
            span = item.span if item.start < item.end else key.span
            written = short(file.source.text[item.start : item.end])
            what = f"`{written}`, which is not a mapping" if written else "nothing"
            message = f"`<<` merges {what}; loaders reject it, and with it the entire file"
            yield _refused(subject, span, message)


# Tabs.


def _tabs(subject: ManifestFile) -> Iterator[Diagnostic]:
    """Tabs that are in no quoted text, no block of text and no comment."""
    text, at = subject.file.source.text, 0
    for node in sorted(_leaves(subject.file.root), key=lambda node: node.start):
        yield from (_tab(subject, span) for span in _tabs_between(text, at, node.start))
        if not node.style:
            yield from (_tab(subject, span, "the text may be meant to hold it") for span in _tabs_in(text, *node.span))
        at = max(at, node.end)
    yield from (_tab(subject, span) for span in _tabs_between(text, at, len(text)))


def _leaves(root: Node | None) -> Iterator[Node]:
    waiting = [root] if root is not None else []
    for node in waiting:  # which grows meanwhile
        waiting += node.items
        if node.kind in ("scalar", "alias"):
            yield node


def _tabs_between(text: str, start: int, end: int) -> Iterator[Span]:
    if "\t" in text[start:end]:
        uncommented = _COMMENT.sub(lambda match: "#" * len(match.group()), text[start:end])
        yield from (Span(start + found.start, start + found.end) for found in _tabs_in(uncommented, 0, end - start))


def _tabs_in(text: str, start: int, end: int) -> Iterator[Span]:
    return (Span(*match.span()) for match in _TABS.finditer(text, start, end))


def _tab(subject: ManifestFile, span: Span, why_unsafe: str = "") -> Diagnostic:
    edits = (FileEdit(subject.file.path, Edit(span, " ")),)
    fix = Fix("write a space", edits, "unsafe" if why_unsafe else "safe", why_unsafe)
    return _refused(subject, span, "PyYAML takes no tab here, and rejects the entire file; write a space", fix)


# Encodings.


def _encoding(subject: ManifestFile) -> Iterator[Diagnostic]:
    encoding = subject.file.source.encoding
    if not encoding.startswith("utf-16"):
        return
    for path, text in _readers(subject):
        if _opens_as_text(text):
            message = f"the file is in UTF-16, and `{path}` opens it as UTF-8, which fails; save it as UTF-8"
            yield Diagnostic(message, subject.place)
            return


def _opens_as_text(code: str) -> bool:
    as_text = re.search(r"\.read_text\(|\bopen\(", code)
    return as_text is not None and not re.search(r"read_bytes|[\"']rb[\"']|utf[-_]?16", code, re.IGNORECASE)


def _readers(subject: ManifestFile) -> Iterator[tuple[str, str]]:
    """The Python files beside the manifest that load YAML, with their text."""
    manifest = subject.manifest
    for path in manifest.project.workspace.under(manifest.folder, ".py"):
        source = manifest.project.source(path)
        if source is not None and "yaml" in source.text:
            yield path, source.text

"""The tags of an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import insert_item, insert_key
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.draws import draws, words
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, func_text, listing, respelling, yaml_fix
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import kind_of
from opschema_rules.aten.vocabulary import slip


def _tags(entry: NativeEntry) -> Sequence[Node]:
    """Return the tags, wherever they are; empty if the field has the wrong type."""
    node = entry.get("tags")
    if node is None or node.kind == "mapping":
        return ()
    if node.kind == "sequence":
        return [entry.file.document.follow(item) for item in node.items]
    return (node,) if string(node) is not None else ()


@rule("ATN116", "unknown-tag", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def unknown_tag(native: NativeFile) -> Iterator[Diagnostic]:
    """A tag is not declared in tags.yaml.

    Without a tags.yaml in the tree the tags are those of the torch that reads the file. torchgen adds three by itself:
    `pt2_compliant_tag`, `out` and `inplace`. A tag that appears twice is a warning, for torchgen accepts it.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      tags: [core, pointwse]
    - func: sinh(Tensor self) -> Tensor
      tags: [core, pointwize]
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      tags: [core, pointwise]
    ```
    """
    known = native.tag_names or frozenset()
    for entry in native.having("tags"):
        seen: set[str] = set()
        for node in _tags(entry):
            if node.value in seen and node.kind == "scalar":
                yield found(entry, node, f"the tag `{node.value}` appears twice", severity=Severity.WARNING)
            elif (node.value not in known or string(node) is None) and known:
                yield _unknown_tag(entry, node, known)
            seen.add(node.value)


def _unknown_tag(entry: NativeEntry, node: Node, known: frozenset[str]) -> Diagnostic:
    if string(node) is None:
        return found(entry, node, f"a tag is a name, and this is {kind_of(node)}")
    parts = [item.strip() for item in node.value.split(",")]
    owner = entry.get("tags")
    if len(parts) > 1 and owner is node and known.issuperset(parts):
        fix = listing(entry, node, parts)
        return found(entry, node, f"several tags are a list: `[{', '.join(parts)}]`", fix=fix)
    near = slip(node.value, known)
    fix = respelling(entry, node, Span(0, len(node.value)), near) if near is not None else None
    tags, torchgen = entry.owner.tags, entry.owner.torchgen
    who = f"`{tags.path}` declares no tag" if tags is not None else f"{torchgen.origin} has no tag"
    return found(entry, node, f"{who} `{node.value}`{did_you_mean(nearest(node.value, known))}", fix=fix)


SEEDED = "nondeterministic_seeded"


@rule("ATN117", "nondeterministic-tag", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def nondeterministic_tag(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator that generates random numbers lacks the tag `nondeterministic_seeded`.

    torchgen requires it if an argument is a `Generator`, if the name contains `rand` (since 2.15, not if it contains
    `_philox_`), and if the name or an argument contains `dropout`, unless it is a backward operator. The condition is read
    from the torchgen of the tree, or of the release.

    Bad:

    ```yaml
    - func: cauchy(Tensor self, *, Generator? generator=None) -> Tensor
    ```

    Good:

    ```yaml
    - func: cauchy(Tensor self, *, Generator? generator=None) -> Tensor
      tags: nondeterministic_seeded
    - func: dropout_backward(Tensor self, float dropout) -> Tensor
    ```
    """
    condition, known = native.torchgen.limits.draws, native.tag_names
    if not condition or (known is not None and SEEDED not in known):
        return
    for entry in native.entries:
        text = func_text(entry)
        schema = entry.schema if any(word in text for word in words(condition)) else None
        reason = draws(condition, schema) if schema is not None else ""
        if reason and not _is_seeded(entry):
            message = f"{reason}, so that it needs the tag `{SEEDED}`"
            tags = entry.get("tags")
            related = (entry.related(tags, "its tags"),) if tags is not None else ()
            yield Diagnostic(message, entry.place, related, _tag_added(entry), (entry.name,))


def _is_seeded(entry: NativeEntry) -> bool:
    """Whether it has the tag, or one that is meant to be it."""
    names = [node.value for node in _tags(entry)]
    tags = entry.get("tags")
    malformed = tags is not None and not names and not tags.is_sequence
    return malformed or SEEDED in ",".join(names) or any(nearest(name, (SEEDED,)) is not None for name in names)


def _tag_added(entry: NativeEntry) -> Fix | None:
    node, title = entry.get("tags"), f"add the tag `{SEEDED}`"
    if node is None:
        return yaml_fix(entry, title, lambda: insert_key(entry.file, entry.node, "tags", SEEDED))
    if node.is_sequence:
        return yaml_fix(entry, title, lambda: insert_item(entry.file, node, len(node.items), SEEDED))
    return listing(entry, node, [node.value, SEEDED])

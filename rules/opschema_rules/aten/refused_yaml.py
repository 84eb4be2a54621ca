"""YAML that torchgen's loader refuses: PyYAML's safe one, which constructs keys before it merges."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.yaml import Node, YamlFile

TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "binary", "timestamp", "omap", "pairs", "set", "str", "seq", "map")
) | {"", "!"}
"""The tags that it constructs."""


def refused(file: YamlFile) -> Iterator[tuple[Node, str]]:
    """Errors that it reports in a file."""
    follow, tagged = file.document.follow, "!" in file.source.text
    for node in file.root.walk() if file.root is not None else ():
        if tagged and node.tag not in TAGS:
            yield node, f"torchgen's loader refuses the tag `{node.tag[:80]}`; leave it out"
        elif node.value == "=" and not node.style and not node.tag:
            yield node, "torchgen's loader does not support the value `=`; put it in quotes"
        for key in node.items[::2] if node.is_mapping else ():
            why = refused_key(key, follow(key))
            if why:
                yield key, why


def refused_key(key: Node, target: Node) -> str:
    """The reason why it refuses a key of a mapping, whose alias leads to ``target``; empty if it does not."""
    if target.kind != "scalar":
        return f"a key cannot be a {'list' if target.is_sequence else 'mapping'}"
    is_merge = key.value == "<<" and not key.style and not key.tag
    return "torchgen's loader does not support merges (`<<`); write the fields out" if is_merge else ""

"""Reads native_functions.yaml and tags.yaml."""

from __future__ import annotations

from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.entry import Entry
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.aten.model import NativeEntry, NativeFile, TagsFile
from opschema_rules.aten.torchgen import Torchgen
from opschema_rules.aten.torchgen_table import newest_torchgen

WHOLE = 500
"""Entries that only PyTorch's own native_functions.yaml has; that of PyTorch 1.0 has more than 1,000."""


def read_native(file: YamlFile, tags: TagsFile | None, torchgen: Torchgen | None = None) -> NativeFile:
    """A native_functions.yaml as a torchgen reads it, the newest known one without; items that are not mappings are left out."""
    native = NativeFile(file, torchgen or newest_torchgen(), tags)
    native.entries += [NativeEntry(file, index, node, native) for index, node in mappings_of(file)]
    return native


def is_older(native: NativeFile) -> bool:
    """Whether it is an entire file of a PyTorch before 1.12, which generated no variants: none of its entries has `autogen`."""
    return len(native.entries) > WHOLE and not native.having("autogen")


def read_tags(file: YamlFile) -> TagsFile:
    """A tags.yaml; items that are not mappings are left out."""
    return TagsFile(file, [Entry(file, index, node) for index, node in mappings_of(file)])

"""Reads native_functions.yaml and tags.yaml."""

from __future__ import annotations

from collections.abc import Set

from opschema_cli.cached_on_argument import cached_on_argument
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


def is_before_known(native: NativeFile) -> bool:
    """Whether a file is written for a torchgen that is older than all known ones, such as the tree's own without `autogen`."""
    return may_be_before_known(native.torchgen) and is_older(native)


def may_be_before_known(torchgen: Torchgen) -> bool:
    """Whether a torchgen may read a file that is older than all known releases."""
    return bool(torchgen.doubt) or "autogen" not in torchgen.vocabulary.fields


@cached_on_argument
def is_of_other_generator(native: NativeFile) -> bool:
    """Whether a backend keeps its own kernels in the language of native_functions.yaml and reads it with its own generator:
    several tables name a backend that torchgen does not accept there, and PyTorch's entries are only composites.
    """
    vocabulary = native.torchgen.vocabulary
    outside = vocabulary.backends - vocabulary.supported
    tables = [{item.key for item in entry.dispatch()} for entry in native.having("dispatch")]
    return len(tables) > 1 and all(_is_outside(table, outside) for table in tables)


def _is_outside(keys: Set[str], outside: Set[str]) -> bool:
    return bool(keys & outside) and all(key in outside or key.startswith("Composite") for key in keys)


def read_tags(file: YamlFile) -> TagsFile:
    """A tags.yaml; items that are not mappings are left out."""
    return TagsFile(file, [Entry(file, index, node) for index, node in mappings_of(file)])

"""Places where an entry writes dtypes, and the names that its tree accepts; the grammar is :mod:`opschema_cli.schema.dtypes`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache

from opschema_cli.schema.dtypes import DtypeExpression, canonical, parse_dtypes
from opschema_cli.source.yaml import Node, scalar_value
from opschema_rules.tileops.entry_parts import Tensor
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.scalars import misreading
from opschema_rules.tileops.spec import Spec

_LISTED = re.compile(r"_TORCH_DTYPES\s*(?::[^=\n]*)?=\s*(?:frozenset\()?\{([^}]*)\}")
_SHORT = re.compile(r"(b?)f(?:p|loat)?(16|32|64)")


@lru_cache(maxsize=8)
def listed_dtypes(spec: Spec) -> frozenset[str]:
    """Return the dtypes that the tree's own validator lists; empty if it has no list."""
    found = _LISTED.search(spec.text)
    return frozenset(re.findall(r"[\"'](\w+)[\"']", found[1])) if found is not None else frozenset()


def is_spelling_of(written: str, name: str) -> bool:
    """Whether ``written`` can only mean the dtype ``name``: by its case, a ``torch.`` before it, or as ``bf16``."""
    bare = written.strip().removeprefix("torch.").lower()
    short = _SHORT.fullmatch(bare)
    return name in (bare, canonical(bare)) or (short is not None and name == f"{short[1]}float{short[2]}")


def is_close(written: str, name: str) -> bool:
    """Whether two short names have enough in common for one to be meant by the other."""
    return difflib.SequenceMatcher(None, written[:100], name[:100]).ratio() >= 0.75


def knows_all_tensors(entry: OpEntry) -> bool:
    """Whether no declared tensor is malformed or merged in, so that a name which is not there is not declared."""
    for section, found in (("inputs", entry.inputs), ("outputs", entry.outputs)):
        node = entry.get("signature", section)
        if node is None or not node.is_mapping or len(node.items) != 2 * len(found):
            return False
        if entry.doubtful("signature", section):
            return False
    return all(tensor.name != "<<" for tensor in entry.tensors)


def expression(tensor: Tensor) -> DtypeExpression:
    """The dtype expression of a tensor, without alternatives where it has none."""
    return parse_dtypes(tensor.dtype) if tensor.dtype is not None else DtypeExpression("", ())


def dtype_node(entry: OpEntry, tensor: Tensor) -> Node:
    """Return the node of a tensor's dtype; of its name if there is none."""
    found = tensor.attribute("dtype")
    return entry.file.document.follow(found) if found is not None else tensor.key


def row_dtypes(entry: OpEntry) -> Iterator[Node]:
    """The dtypes that workload rows list, where they are text."""
    for row in entry.rows:
        found = row.value("dtypes")
        owner = entry.file.document.follow(found) if found is not None else None
        for item in owner.items if owner is not None and owner.is_sequence else ():
            item = entry.file.document.follow(item)
            if item.kind == "scalar" and isinstance(scalar_value(item), str) and misreading(item) is None:
                yield item

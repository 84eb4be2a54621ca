"""The form of an op's key, `{Name}[Fwd|Bwd]Op`, and the key that a wrong one should be."""

from __future__ import annotations

import re

import msgspec

from opschema_cli.source.yaml import Node, scalar_value
from opschema_rules.tileops.model import OpEntry

_VARIANT_BEHIND = re.compile(r"(.*)(Fwd|Bwd)Op(.+)", re.DOTALL)


class Misnomer(msgspec.Struct, frozen=True):
    """The reason why an op's key is wrong, as text; ``sibling`` is the op that makes a direction necessary."""

    reason: str
    sibling: OpEntry | None = None


def is_name(key: Node) -> bool:
    """Whether a key is text, and no merge."""
    return key.kind == "scalar" and isinstance(scalar_value(key), str) and (key.value != "<<" or bool(key.style))


def misnomer(entry: OpEntry) -> Misnomer | None:
    """The fault of an op's key; None if it has none, or its tree does not say how keys are written."""
    if not entry.manifest.spec.knows("key-format") or not is_name(entry.key):
        return None
    name = entry.name
    behind = _VARIANT_BEHIND.fullmatch(name)
    if behind is not None and not name.endswith("Op"):
        stem, direction, variant = behind.groups()
        better = f"{stem}{variant}{direction}Op"
        return Misnomer(f"`{variant}` follows `{direction}Op`; a variant word goes before it: `{better}`")
    if name.endswith("Op") and not name.endswith(("FwdOp", "BwdOp")):
        for own, other in (("Bwd", "Fwd"), ("Fwd", "Bwd")):
            sibling = f"{name[:-2]}{other}Op"
            if sibling in entry.manifest.by_name:
                reason = f"`{name}` does not say its direction, but `{sibling}` exists; write `{name[:-2]}{own}Op`"
                return Misnomer(reason, entry.manifest.by_name[sibling][0])
    return None

"""Whether a Python file gets hold of ``torch.library`` at all: where none of a tree does, its ``register_fake`` is another one."""

from __future__ import annotations

import re

from opschema_cli.source.python import Import, PythonFile
from opschema_rules.torchlib import apis

_MODULES = frozenset(
    {
        *("torch.library", "torch._library", "torch._library.custom_ops", "torch._library.triton"),
        *("torch._custom_op", "torch._custom_op.impl", "torch._custom_ops"),
    }
)
_NAMES = apis.WORDS | {"Library", "*", ""}
_USED = re.compile(rf"\.(?:_?library|_custom_ops?)(?:\.|\Z)|(?:\A|\.){apis.DIRECT.name}\Z")


def reaches(file: PythonFile) -> bool:
    """Whether the file imports something that registers, or reads a name of ``torch.library``."""
    return any(
        any(map(_is_of_torch, scope.imports)) or any(_USED.search(use.name) for use in scope.uses)
        for scope in file.body.walk()
    )


def _is_of_torch(item: Import) -> bool:
    full = ".".join(filter(None, (item.module, item.attr)))
    return item.attr == apis.DIRECT.name or full in _MODULES or (item.module in _MODULES and item.attr in _NAMES)

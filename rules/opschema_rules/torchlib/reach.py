"""Whether a Python file can reach ``torch.library`` at all: if none in a tree does, its ``register_fake`` is a different one."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from opschema_cli.source.python import Expr, Import, PythonFile, Scope
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.outlines import last_word

_MODULES = frozenset(
    {
        *("torch.library", "torch._library", "torch._library.custom_ops", "torch._library.triton"),
        *("torch._custom_op", "torch._custom_op.impl", "torch._custom_ops"),
    }
)
_KNOWN = _MODULES | apis.INFER
_NAMES = apis.WORDS | {"Library", "*", ""}
_USED = re.compile(rf"\A(?!self\.|cls\.).*\.(?:_?library|_custom_ops?)(?:\.|\Z)|(?:\A|\.){apis.DIRECT.name}\Z")


def reaches(file: PythonFile) -> bool:
    """Whether the file imports something that registers, or reads a name of ``torch.library``."""
    return any(
        any(map(_is_of_torch, scope.imports)) or any(_is_used(use.name) for use in scope.uses)
        for scope in file.body.walk()
    )


def _is_used(name: str) -> bool:
    # The search takes long, and nearly no name has one of these words.
    may_be = "library" in name or "custom_op" in name or apis.DIRECT.name in name
    return may_be and _USED.search(name) is not None


def handed_on(file: PythonFile, words: Container[str]) -> set[str]:
    """Return the words through which other files reach this file's uses of ``torch.library``: its module and package, the names
    that it imports from there, and its definitions that use one of some ``words``.
    """
    body = file.body
    imported = {item.name for item in body.imports if _is_of_torch(item)}
    functions = {item.name for item in body.functions if item.name in words or _uses(item.decorators, words)}
    classes = {item.name for item in body.classes if _uses(item.decorators, words) or _speaks(item.body, words)}
    assigned = {item.target for item in body.assigns if item.value is not None and _uses(item.value.walk(), words)}
    return imported | functions | classes | assigned | set(file.path.removesuffix(".py").split("/")[-2:])


def _speaks(scope: Scope, words: Container[str]) -> bool:
    parts = list(scope.walk())
    calls = (call.items[0] for part in parts for call in part.calls)
    return _uses(calls, words) or any(_uses(item.decorators, words) for part in parts for item in part.functions)


def _uses(exprs: Iterable[Expr], words: Container[str]) -> bool:
    return any(last_word(expr) in words for expr in exprs)


def _is_of_torch(item: Import) -> bool:
    full = ".".join(filter(None, (item.module, item.attr)))
    return item.attr == apis.DIRECT.name or full in _KNOWN or (item.module in _MODULES and item.attr in _NAMES)

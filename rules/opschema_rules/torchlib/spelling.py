"""Writes types as text that is valid at its place: with the names by which the code there knows them."""

from __future__ import annotations

import re

from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.model import Tree
from opschema_rules.torchlib.type_table import type_table

UNION_OPERATOR = (2, 9)
"""Since then torch runs on no Python that lacks ``T | None`` (3.10)."""

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_TYPE = re.compile(r"""(["']?)([^"'\\]+)\1""")
"""A type without quotes, or in quotes as a whole."""
_FULL = {"List": "typing.List", "Optional": "typing.Optional", "Sequence": "typing.Sequence", "Union": "typing.Union"}
_SAME = {"torch._tensor.Tensor": "torch.Tensor", "torch.types.Tensor": "torch.Tensor"}
_BUILTINS = frozenset({"int", "float", "bool", "str", "None", "list"})


def spelled_in(tree: Tree, body: Body, text: str) -> str | None:
    """A type that is written with the names of ``typing`` and ``torch.X``, in the names that a body knows; None if it lacks one."""
    found = [_known(tree, body, match[0]) for match in _WORD.finditer(text)]
    if None in found:
        return None
    words = iter(found)
    return _WORD.sub(lambda _: next(words) or "", text)


def optional_of(tree: Tree, body: Body, text: str) -> str | None:
    """Return ``Optional`` of a type written in a body, within its quotes; None if no spelling of it is certain to work."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    quote, inner = match.groups()
    word = _known(tree, body, "Optional")
    if word is not None:
        return f"{quote}{word}[{inner}]{quote}"
    return f"{inner} | None" if tree.torch >= UNION_OPERATOR and not quote else None


def _known(tree: Tree, body: Body, word: str) -> str | None:
    if word in _BUILTINS:
        return word
    wanted = _FULL.get(word, word)
    for name in (word, wanted, wanted.rpartition(".")[2]):
        external = tree.bodies.external(body, name)
        if _SAME.get(external, external) == wanted:
            return name
    return "list" if word == "List" and type_table(tree.torch).takes_builtin_lists else None

"""Lists of numbers that no code of their file can change."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile

_PLAIN = frozenset(("list", "tuple", "range", "sorted", "reversed", "len", "map", "int"))
"""Functions that do not change their arguments."""

_UNORDERED = frozenset(("set", "setcomp", "dict", "dictcomp", "lambda", "other"))
_MAX_NAMES = 8
"""Maximum number of names through which to follow a list."""

_CHANGED = re.compile(r"""["']arg_index["'](?!\s*:)|\bupdate\((?:[^()]|\([^()]*\))*\barg_index\b""")


def is_fixed(bodies: Sequence[Body], expr: Expr) -> bool:
    """Whether nothing in a file can change the numbers of an ``arg_index``."""
    return not _sets_elsewhere(bodies[0].file) and _is_fixed(bodies, expr, _MAX_NAMES)


@cached_on_argument
def _sets_elsewhere(file: PythonFile) -> bool:
    """Whether code of a file may assign a dict the field, or change it."""
    return _CHANGED.search(file.source.text) is not None


def _is_fixed(bodies: Sequence[Body], expr: Expr, names: int) -> bool:
    """Whether an expression only consists of constants, lists, known functions, and names that are used for nothing but the
    fields of dicts, so that nothing can change their values. Sets do not count: their number of elements is not known.
    """
    parts = list(expr.walk())
    if names < 0 or any(
        part.kind in _UNORDERED or (part.kind == "call" and part.callee not in _PLAIN) for part in parts
    ):
        return False
    local = {name.text for part in parts if part.kind == "for" for name in part.items[0].walk()}
    used = {part.text for part in parts if part.kind == "name"} - local - _PLAIN
    return all(_is_fixed_name(bodies, name, names) for name in used)


def _is_fixed_name(bodies: Sequence[Body], name: str, names: int) -> bool:
    assigned = [item.value for body in bodies for item in body.scope.assigns if item.target == name]
    value = assigned[0] if len(assigned) == 1 else None
    if value is None:
        return False
    return value.kind == "const" or (_is_fixed(bodies, value, names - 1) and _is_only_a_field(bodies[0], name))


def _is_only_a_field(body: Body, name: str) -> bool:
    """Whether a file only assigns a name once and uses it as a field."""
    text = body.file.source.text
    word = re.escape(name)
    uses = re.findall(rf"(?<!\w){word}(?!\w)", text)
    fields = re.findall(rf"""["'](?:signature|arg_index)["']\s*:\s*{word}\s*[,}}]""", text)
    return len(uses) == len(fields) + 1

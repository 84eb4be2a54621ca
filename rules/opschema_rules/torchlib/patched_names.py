"""Names that a file may rebind, so that a call through them may not reach the operator."""

from __future__ import annotations

import re

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile

_WRITES = re.compile(
    r"(?<![\w.])(?!(?:self|cls)\.\w+\s*[:=])[A-Za-z_][\w.\[\]]*\.(\w+)\s*(?::[^=\n]+)?=(?!=)(?!\s*torch\.ops\.)"
    r"|\b(?:setattr|delattr|patch|object|setitem)\(([^\n]*)|\bglobals\(\)\[[\"'](\w+)[\"']\]\s*=(?!=)"
)
"""Writes to attributes, except those of a class's own instance, calls that replace one, and writes to globals."""

_NAMED = re.compile(r"[\"'](?:[\w.]*\.)?(\w+)[\"']")


def may_be_patched(body: Body, call: Expr) -> bool:
    """Whether the file of a call may have rebound its name: ``kit.f = fake``, ``patch("kit.f", fake)``."""
    return call.callee.rpartition(".")[2] in _patched(body.file)


@cached_on_argument
def _patched(file: PythonFile) -> frozenset[str]:
    found: set[str] = set()
    for attribute, arguments, name in _WRITES.findall(file.source.text):
        found.update(_NAMED.findall(arguments) if arguments else [attribute or name])
    return frozenset(found)

"""Libraries of operators that a file destroys or deletes: another may be made in their place."""

from __future__ import annotations

import re

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile

_ENDS = re.compile(r"\.(_destroy)\(|\bdel[ \t]+([\w.]+)")


@cached_on_argument
def ended_libraries(file: PythonFile) -> frozenset[str]:
    """The names that a file deletes, and `_destroy` if it calls that."""
    return frozenset(name for found in _ENDS.findall(file.source.text) for name in found if name)


def ends_early(body: Body | None, call: Expr | None) -> bool:
    """Whether the file may end the library in which a call, ``lib.define(...)``, defines an operator."""
    ended = ended_libraries(body.file) if body is not None else frozenset[str]()
    return "_destroy" in ended or (call is not None and call.callee.rpartition(".")[0] in ended)

"""Meanings of names outside the workspace, as a pack defines them.

The evaluator follows the code of the workspace. What it cannot look into are names of other packages: a dialect says what
calling them gives. A dialect that knows one decorator which leaves a function unchanged, and one factory of handles::

    class Handle(PackValue, frozen=True):
        name: str

    def _make_handle(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
        yield Handle(evaluator.text(arguments.by_name(("name",)).get("name")) or "")

    DIALECT = Dialect(calls={"acme.handle": _make_handle}.get, transparent=frozenset({"acme.traced"}))

    evaluator = TreeEvaluator(bodies, (DIALECT,))

A value type of a pack's own is a struct that inherits from :class:`~opschema_cli.evaluation.values.PackValue`. Functions
registered for it say what its attributes are (``@attribute_of.register``) and what calling it gives (``@applied.register``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from opschema_cli.evaluation.evaluator import ExternalCall
from opschema_cli.evaluation.values import Value


def _no_call(name: str) -> ExternalCall | None:
    return None


class Dialect(msgspec.Struct, frozen=True):
    """A pack's knowledge of other packages.

    ``calls`` takes a full dotted name and returns the function that reads its calls, None if it knows no such name; the
    ``get`` of a dictionary will do. ``names`` are external names that stand for values of the pack's own. ``transparent``
    are decorators, called or not, under which a function is still itself. With ``reads_own`` calls of functions of the
    workspace that have such a name are read in the same way, as in the repository of the package itself.
    """

    calls: Callable[[str], ExternalCall | None] = _no_call
    names: Mapping[str, Value] = msgspec.field(default_factory=dict)
    transparent: frozenset[str] = frozenset()
    reads_own: bool = False

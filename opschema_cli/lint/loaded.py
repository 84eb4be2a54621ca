"""Contents of a project as a pack has loaded them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from opschema_cli.lint.diagnostic import Missing, NotUnderstood
from opschema_cli.source.text import Span


class Entry(msgspec.Struct, frozen=True):
    """The span of a file that declares one op; a suppression on the line of ``key`` covers all of ``span``, and findings
    elsewhere on the op ``name``, as in findings' ``ops``.
    """

    path: str
    key: Span
    span: Span
    name: str = ""


class Loaded(msgspec.Struct):
    """Contents of a project as a pack has loaded them.

    ``subjects`` go to the rules of their types, in this order, and after them those that ``late`` makes: what cannot be
    told before the implementation is parsed. ``ops`` counts operators; ``files`` are the schema files; ``entries`` are
    the stretches that suppressions on an op's key cover; ``missing`` is what rules need and the pack did not find;
    ``unresolved`` are the places that it could not follow; rules may add to it while they run. An operator
    counts once in ``ops``, however many lists name it; ``partly`` counts those that are not fully known.
    ``joint`` makes subjects, judged last, from what another pack shares (:attr:`~opschema_cli.lint.pack.Speed.shares`); it is
    passed None where that pack does not run in another process. ``counting`` fills in ``ops``, ``partly``, ``files`` and
    ``entries`` where they rest on work that rules do as well: a lint run calls it after the rules.
    """

    subjects: list[object] = msgspec.field(default_factory=list)
    ops: int = 0
    partly: int = 0
    files: list[str] = msgspec.field(default_factory=list)
    entries: list[Entry] = msgspec.field(default_factory=list)
    late: list[Callable[[], Iterable[object]]] = msgspec.field(default_factory=list)
    joint: list[Callable[[bytes | None], Iterable[object]]] = msgspec.field(default_factory=list)
    missing: list[Missing] = msgspec.field(default_factory=list)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)
    counting: Callable[[Loaded], None] | None = None

    def count(self) -> None:
        """Compute the late counts."""
        counting, self.counting = self.counting, None
        if counting is not None:
            counting(self)

    def everything(self) -> list[object]:
        """Return all subjects except joint ones, including late ones."""
        return [*self.subjects, *(subject for make in self.late for subject in make())]

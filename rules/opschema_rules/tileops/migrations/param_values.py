"""The values of a parameter in rows and calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.workbench import LeftAlone
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr
from opschema_cli.source.resolution import Folded
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.migrations.call_sites import CallSite, CallSites, FunctionKey, key_of
from opschema_rules.tileops.migrations.words import paths_with_any
from opschema_rules.tileops.model import OpEntry, OpImplementation


def same(one: object, other: object) -> bool:
    """Whether two values are the same: numbers by value, but a bool is not a number."""
    if type(one) in (int, float) and type(other) in (int, float):
        return one == other
    return repr(one) == repr(other)


def methods_with(entry: OpEntry, name: str) -> Iterator[FunctionRef]:
    """The methods of an op that callers pass a parameter to, where they take it."""
    ref = entry.op_class
    for called in ("__init__", "forward") if isinstance(ref, ClassRef) else ():
        method = OpImplementation(entry, ref).method(called) if isinstance(ref, ClassRef) else None
        if method is not None and method.function.param(name) is not None:
            yield method


def position_of(ref: FunctionRef, name: str) -> int | None:
    """The place at which calls pass a parameter, ``self`` left out; None if they cannot."""
    plain = [param.name for param in ref.function.params if param.kind in ("posonly", "normal")]
    return plain.index(name) - 1 if name in plain else None


def calls_of(draft: Draft, entries: Sequence[OpEntry], methods: Sequence[FunctionRef]) -> Iterator[CallSite]:
    """The calls in files that name one of the ops, or of the classes that define the methods."""
    words = {entry.name for entry in entries} | {ref.owner.name for ref in methods if ref.owner is not None}
    calls = CallSites(entries[0].manifest.program)
    for path in paths_with_any(draft, words):
        file = draft.project.python(path)
        yield from calls.of(file) if file is not None else ()


def literal(evaluator: Evaluator, site: CallSite, expr: Expr) -> Folded | None:
    """The value of an expression without names."""
    parts = [expr]
    for part in parts:  # which grows meanwhile
        parts += part.items
    found = evaluator.fold(site.file, expr) if all(part.kind != "name" for part in parts) else None
    return found if isinstance(found, Folded) and not found.symbol else None


class OtherValues:
    """Rows and calls of some ops of one manifest with a value of a parameter other than the one it is fixed to."""

    def __init__(self, draft: Draft, entries: Sequence[OpEntry], name: str, value: Data) -> None:
        self.name = name
        self.value = value
        methods = {key_of(ref): ref for entry in entries for ref in methods_with(entry, name)}
        self._calls: dict[FunctionKey, LeftAlone] = {}
        self._evaluator = entries[0].manifest.evaluator
        for site in calls_of(draft, entries, list(methods.values())) if methods else ():
            for key in {key_of(target) for target in site.targets or ()} & methods.keys():
                self._note_call(site, key, methods[key])

    def _note_call(self, site: CallSite, key: FunctionKey, method: FunctionRef) -> None:
        passed = site.call.argument(self.name, position_of(method, self.name))
        if passed is not None:
            found = literal(self._evaluator, site, passed)
            self._note(key, Place(site.file.path, passed.span), "call passes", found)
        elif not site.ahead and not any(word.startswith("*") for word in site.call.keywords):
            self._note(key, Place(site.file.path, site.call.span), "call takes the default", self._default(method))

    def _note(self, key: FunctionKey, place: Place, what: str, found: Folded | None) -> None:
        if found is not None and not same(found.value, self.value):
            self._calls.setdefault(key, LeftAlone(place, self._reason(what, found.value)))

    def _default(self, method: FunctionRef) -> Folded | None:
        param = method.function.param(self.name)
        default = param.default if param is not None else None
        found = self._evaluator.fold(method.file, default) if default is not None else None
        return found if isinstance(found, Folded) and not found.symbol else None

    def _reason(self, what: str, value: object) -> str:
        return f"this {what} {value!r} for `{self.name}`, not {self.value!r}"

    def check(self, entry: OpEntry) -> None:
        """Check that an entry's rows and its op's calls have no other value.

        Raises:
            LeftAlone: one does.
        """
        declared = entry.param(self.name)
        for row in entry.rows:
            if self.name in row.data and not same(row.data[self.name], self.value):
                place = entry.at(row.node.get(self.name) or row.node)
                raise LeftAlone(place, self._reason("row gives", row.data[self.name]))
            if (
                self.name not in row.data
                and declared
                and declared.has_default
                and not same(declared.default, self.value)
            ):
                raise LeftAlone(entry.at(row.node), self._reason("row takes the default", declared.default))
        for ref in methods_with(entry, self.name):
            if key_of(ref) in self._calls:
                raise self._calls[key_of(ref)]

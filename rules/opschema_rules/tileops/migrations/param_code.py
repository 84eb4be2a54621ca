"""A parameter taken out of the methods of some ops, and out of the calls that pass it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.docstrings import drop_docstring_parameter
from opschema_cli.migrate.codemods.folding import fold_parameter
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.scopes import local_uses
from opschema_cli.migrate.codemods.signatures import drop_parameter
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.drift import names
from opschema_rules.tileops.migrations.call_sites import CallSite, FunctionKey, key_of
from opschema_rules.tileops.migrations.input_code import method_node
from opschema_rules.tileops.migrations.param_values import calls_of, literal, methods_with, position_of, same
from opschema_rules.tileops.migrations.sharing import others
from opschema_rules.tileops.model import OpEntry


class ParamCode:
    """One parameter of some ops; with ``fold`` its uses become ``value``."""

    def __init__(self, draft: Draft, entries: Sequence[OpEntry], name: str, value: Data, fold: bool) -> None:
        self.draft = draft
        self.entries = entries
        self.name = name
        self.value = value
        self.fold = fold
        self.workbench = Workbench(draft)

    def rewrite(self) -> Iterator[Note]:
        """Draft the edits; yield notes on what remains."""
        notes: list[Note] = []
        found = {key_of(ref): ref for entry in self.entries for ref in methods_with(entry, self.name)}
        done = {key: ref for key, ref in found.items() if self._drop(ref, notes)}
        if done:
            notes += self._drop_arguments(done)
        yield from notes
        self.workbench.commit()
        self.draft.settle()

    def refused(self) -> dict[FunctionKey, Note]:
        """The methods that cannot lose the parameter, and why; nothing is drafted."""
        found = {key_of(ref): ref for entry in self.entries for ref in methods_with(entry, self.name)}
        notes: list[Note] = []
        return {key: notes[-1] for key, ref in found.items() if not self._drop(ref, notes)}

    def _drop(self, ref: FunctionRef, notes: list[Note]) -> bool:
        place = Place(ref.file.path, ref.function.span)
        sharing = others(self.entries[0].manifest, ref, frozenset(self.entries))
        keeping = [entry.name for entry in sharing if entry.param(self.name) is not None]
        if keeping:
            text = f"`{ref.function.name}()` keeps `{self.name}`: {names(keeping)} share it and declare it"
            notes.append(Note(place, text))
            return False
        try:
            with self.workbench.atomic(), self.workbench.on(ref.file.path) as rewrite:
                self._drop_from(rewrite, method_node(rewrite.tree, ref))
        except LeftAlone as left:
            notes.append(Note(left.place, f"`{ref.function.name}()` keeps `{self.name}`: {left.reason}"))
            return False
        return True

    def _drop_from(self, rewrite: Rewrite, node: cst.FunctionDef) -> None:
        uses = local_uses(rewrite, node, self.name)
        if uses and self.fold:
            if isinstance(self.value, float | list | dict):
                raise Refused([Problem(rewrite.tree.span(node.name).start, f"{self.value!r} is not folded")])
            fold_parameter(rewrite, node, self.name, self.value)
            return
        if uses:
            raise Refused([Problem(rewrite.tree.span(uses[0]).start, "it is used")])
        drop_parameter(rewrite, node, self.name)
        drop_docstring_parameter(rewrite, node, self.name)

    def _drop_arguments(self, done: dict[FunctionKey, FunctionRef]) -> Iterator[Note]:
        """Take the argument out of the calls of methods that no longer have it."""
        for site in calls_of(self.draft, self.entries, list(done.values())):
            keys = [key_of(target) for target in site.targets or ()]
            meant = {position_of(done[key], self.name) for key in keys if key in done}
            if len(meant) == 1 and all(key in done for key in keys):
                yield from self._drop_argument(site, meant.pop(), done)
            elif meant and self.name in site.call.keywords:
                text = f"this calls several ops, and only some still take `{self.name}`"
                yield Note(Place(site.file.path, site.call.span), text)

    def _drop_argument(
        self, site: CallSite, position: int | None, done: Mapping[FunctionKey, FunctionRef]
    ) -> Iterator[Note]:
        passed = site.call.argument(self.name, position)
        if self.fold and passed is not None and not self._is_value(site, passed, done):
            text = f"this passes `{self.name}`, which was removed and stood for {self.value!r}"
            yield Note(Place(site.file.path, passed.span), text)
            return
        if site.ahead and passed is None:
            text = f"calls of this may pass `{self.name}`, which was removed"
            yield Note(Place(site.file.path, site.call.span), text)
            return
        place = None if position is None else position + site.ahead
        try:
            with self.workbench.on(site.file.path) as rewrite:
                drop_argument(rewrite, rewrite.tree.find(site.call.span, cst.Call), self.name, place)
        except LeftAlone as left:
            yield Note(left.place, f"this may pass `{self.name}`, which was removed: {left.reason}")

    def _is_value(self, site: CallSite, passed: Expr, done: Mapping[FunctionKey, FunctionRef]) -> bool:
        """Whether an argument is the value that the parameter is fixed to, or the parameter of a method that lost it."""
        if passed.kind == "name" and passed.text == self.name:
            outers = (ref.function.outer for ref in done.values() if ref.file.path == site.file.path)
            return any(outer.start <= passed.start < outer.end for outer in outers)
        found = literal(self.entries[0].manifest.evaluator, site, passed)
        return found is not None and same(found.value, self.value)

"""An input's name in code: parameters of the op's methods, their uses, and calls that pass them by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.calls import rename_keyword
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.signatures import rename_parameter
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import texts_with
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_tree import PythonTree
from opschema_cli.source.text import Span
from opschema_rules.tileops.drift import names
from opschema_rules.tileops.formulas import variable_names
from opschema_rules.tileops.migrations.call_sites import CallSite, CallSites, FunctionKey, key_of
from opschema_rules.tileops.migrations.handing_on import instances, takes_any_input
from opschema_rules.tileops.migrations.input_prose import prose, rename_words
from opschema_rules.tileops.migrations.row_keys import quoted_words
from opschema_rules.tileops.migrations.sharing import (
    METHODS,
    computed_method,
    is_made,
    made_from,
    others,
    repeated_method,
)
from opschema_rules.tileops.migrations.words import has_any
from opschema_rules.tileops.model import Manifest, OpEntry, OpImplementation


def _renamed(old: str, new: str) -> dict[str, str]:
    """Return parameter names and their new names."""
    return {old: new, f"{old}_shape": f"{new}_shape"}


def old_parameters(entry: OpEntry, old: str, new: str) -> Iterator[tuple[FunctionRef, str]]:
    """The methods of an op that still take an input by its old name, and that parameter."""
    ref = entry.op_class
    op = OpImplementation(entry, ref) if isinstance(ref, ClassRef) else None
    for name in METHODS if op is not None else ():
        method = op.written_method(name) if op is not None else None
        for before, after in _renamed(old, new).items() if method is not None else ():
            if method is not None and method.function.param(before) and not method.function.param(after):
                yield method, before


def both_names(entry: OpEntry, old: str, new: str) -> FunctionRef | None:
    """A method of an op that takes the old name and the new one."""
    ref = entry.op_class
    op = OpImplementation(entry, ref) if isinstance(ref, ClassRef) else None
    methods = [op.written_method(name) for name in METHODS] if op is not None else []
    pairs = _renamed(old, new).items()
    return next(
        (item for item in methods if item and any(item.function.param(a) and item.function.param(b) for a, b in pairs)),
        None,
    )


def keep_the_name(manifest: Manifest, ref: FunctionRef, old: str, renamed: Collection[OpEntry] = ()) -> list[str]:
    """The ops, apart from those that are renamed, that run a method too and whose input has the old name."""
    return [entry.name for entry in others(manifest, ref, renamed) if entry.input(old) is not None]


def held_back(draft: Draft, entries: Sequence[OpEntry], old: str, new: str) -> dict[OpEntry, str]:
    """The entries whose code cannot take the new name, and why: they keep the old one, and so do those that share code."""
    trial, held = InputCode(draft, entries, old, new), dict[OpEntry, str]()
    while True:
        going = {entry: None for entry in entries if entry not in held}
        found = {entry: reason for entry in going if (reason := trial.obstacle(entry, going))}
        if not found:
            return held
        held.update(found)


class InputCode:
    """One renaming in the code of some ops."""

    def __init__(self, draft: Draft, entries: Sequence[OpEntry], old: str, new: str) -> None:
        self.draft = draft
        self.entries = entries
        self.old = old
        self.new = new
        self.workbench = Workbench(draft)
        self.calls = CallSites(entries[0].manifest.program)
        self.refused: set[FunctionKey] = set()
        self._prose: dict[str, list[Span]] = {}

    def rewrite(self) -> list[Note]:
        """Draft the edits. Return notes on what remains."""
        found: dict[FunctionKey, FunctionRef] = {}
        for entry in self.entries:
            found.update((key_of(ref), ref) for ref, _ in old_parameters(entry, self.old, self.new))
        notes: list[Note] = []
        done = {key: ref for key, ref in found.items() if self._rename(ref, notes)}
        for file in self._callers():
            for site in self.calls.of(file):
                notes += self._rename_argument(site, done)
        notes += dict.fromkeys(note for entry in self.entries for note in self._read_by_name(entry))
        self.workbench.commit()
        return notes

    def _read_by_name(self, entry: OpEntry) -> Iterator[Note]:
        """Yield notes on strings in `eval_roofline()` that are the old name: keys by which it reads what a call passed."""
        op_class = entry.op_class
        method = (
            OpImplementation(entry, op_class).written_method("eval_roofline")
            if isinstance(op_class, ClassRef)
            else None
        )
        if method is None:
            return
        outer = method.function.outer
        for span in quoted_words(method.file.source.text, self.old):
            if outer.start <= span.start < outer.end:
                yield Note(Place(method.file.path, span), f"this reads `{self.old}`; the input is now `{self.new}`")

    def obstacle(self, entry: OpEntry, renamed: Collection[OpEntry]) -> str:
        """The reason why an op's methods cannot take the new name, if those of ``renamed`` do; empty if they can."""
        if entry.input(self.old) is None:
            return ""
        if self.new in {tensor.name for tensor in entry.tensors} | {param.name for param in entry.params}:
            return f"it declares `{self.new}` already"
        repeated = repeated_method(entry, _renamed(self.old, self.new))
        taken = both_names(entry, self.old, self.new)
        if repeated is not None:
            return f"`{repeated[1]}()` is defined several times"
        if taken is not None:
            return f"`{taken.function.name}()` takes `{self.new}` too"
        if self.new in variable_names(entry):
            return f"`roofline.vars` has a variable `{self.new}`"
        methods = [ref for ref, _ in old_parameters(entry, self.old, self.new)]
        made = computed_method(entry) or ("forward" if is_made(entry, "forward") else "")
        if made and all(ref.function.name != made for ref in methods):
            return f"its `{made}()` is made at run time"
        return next(filter(None, (self._held(entry, ref, renamed) for ref in methods)), "")

    def _held(self, entry: OpEntry, ref: FunctionRef, renamed: Collection[OpEntry]) -> str:
        """The reason why one method cannot take the new name; empty if it can."""
        made = [item.name for item in made_from(entry.manifest, ref, renamed)]
        if made:
            return f"`{ref.function.name}()` of {names(made)} may be made from this one at run time"
        keeping = keep_the_name(entry.manifest, ref, self.old, renamed)
        if keeping:
            return f"`{ref.function.name}()` is also that of {names(keeping)}, which would keep `{self.old}`"
        try:
            with self.workbench.atomic(), self.workbench.on(ref.file.path) as rewrite:
                self._rename_parameters(rewrite, ref)
                raise LeftAlone(Place(ref.file.path, ref.function.span), "")  # it was a trial
        except LeftAlone as left:
            return left.reason

    def _rename_parameters(self, rewrite: Rewrite, ref: FunctionRef) -> cst.FunctionDef:
        node = method_node(rewrite.tree, ref)
        for before, after in _renamed(self.old, self.new).items():
            if ref.function.param(before) is not None:
                rename_parameter(rewrite, node, before, after)
        return node

    def _rename(self, ref: FunctionRef, notes: list[Note]) -> bool:
        """Rename the parameter of one method; whether that was done."""
        place = Place(ref.file.path, ref.function.span)
        keeping = keep_the_name(self.entries[0].manifest, ref, self.old, frozenset(self.entries))
        if keeping:
            text = f"`{ref.function.name}()` is left unchanged: {names(keeping)} share it and have `{self.old}`"
            notes.append(Note(place, text))
            return False
        try:
            with self.workbench.on(ref.file.path) as rewrite:
                node = self._rename_parameters(rewrite, ref)
                notes += self._rename_words(rewrite, node, ref)
        except LeftAlone as left:
            notes.append(Note(left.place, f"rename `{self.old}` in `{ref.function.name}()` by hand: {left.reason}"))
            self.refused.add(key_of(ref))
            return False
        return True

    def _rename_words(self, rewrite: Rewrite, node: cst.FunctionDef, ref: FunctionRef) -> Iterator[Note]:
        path = ref.file.path
        if path not in self._prose:
            self._prose[path] = prose(rewrite.tree)
        renamed = [name for name in _renamed(self.old, self.new) if ref.function.param(name) is not None]
        for span in rename_words(rewrite, node, self._prose[path], renamed, self.old, self.new):
            yield Note(Place(path, span), f"this says `{self.old}`, which is now `{self.new}`")

    def _callers(self) -> Iterator[PythonFile]:
        """The files that may pass the input by name or unpack a dict: they name an op, its class or one of its bases."""
        keyword = re.compile(rf"(?<!\w){re.escape(self.old)}(?:_shape)?\s*=(?!=)|[(,]\s*\*\*")
        classes = [entry.op_class for entry in self.entries]
        bases = (self.calls.program.lineage(ref) for ref in classes if isinstance(ref, ClassRef))
        words = {entry.name for entry in self.entries} | {ref.name for lineage in bases for ref in lineage}
        for source in texts_with(self.draft.project, [self.old]):
            if source.path.endswith(".py") and keyword.search(source.text) and has_any(source.text, words):
                file = self.draft.project.python(source.path)
                if file is not None:
                    yield file

    def _rename_argument(self, site: CallSite, methods: dict[FunctionKey, FunctionRef]) -> Iterator[Note]:
        renamed = _renamed(self.old, self.new)
        passed = [name for name in site.call.keywords if name in renamed]
        if not passed:
            yield from self._unpacked(site, methods)
            return
        place = Place(site.file.path, site.call.span)
        if site.targets is None:
            if _may_be_op(site):
                yield Note(place, f"this may call an op whose `{passed[0]}` is now `{renamed[passed[0]]}`")
            return
        meant = [is_one for target in site.targets for is_one in self._are_renamed(site, target, methods)]
        if meant and all(meant):
            try:
                with self.workbench.on(site.file.path) as rewrite:
                    for name in passed:
                        rename_keyword(rewrite, rewrite.tree.find(site.call.span, cst.Call), name, renamed[name])
            except LeftAlone as left:
                yield Note(left.place, left.reason)
        elif any(meant):
            yield Note(place, f"this calls several ops, and only some have `{passed[0]}` renamed")

    def _unpacked(self, site: CallSite, methods: dict[FunctionKey, FunctionRef]) -> Iterator[Note]:
        """Yield a note if an unpacked dict may have the old name."""
        if any(key_of(target) in methods for target in site.targets or ()):
            text = f"this may pass `{self.old}`, which is now `{self.new}`"
            yield from (Note(Place(site.file.path, value.span), text) for value in site.unpacked)

    def _are_renamed(
        self, site: CallSite, target: FunctionRef, methods: dict[FunctionKey, FunctionRef]
    ) -> Iterator[bool]:
        """For each op that a call may reach through ``target``, whether its input is renamed."""
        if key_of(target) in methods or not takes_any_input(self.calls, target):
            yield key_of(target) in methods
            return
        for entry in instances(site, self.entries[0].manifest.entries):
            if entry in self.entries or entry.input(self.old) is not None:
                yield entry in self.entries


def method_node(tree: PythonTree, ref: FunctionRef) -> cst.FunctionDef:
    """The node of a function that the facts know.

    Raises:
        LookupError: there is none.
    """
    found = tree.parent(tree.find(ref.function.span, cst.Name))
    if not isinstance(found, cst.FunctionDef):
        raise LookupError(f"`{ref.function.name}` is not a function")
    return found


def _may_be_op(site: CallSite) -> bool:
    """Whether a callee that cannot be followed may be an op or a method of one, by how it is called."""
    callee = site.call.items[0]
    last = callee.text.rpartition(".")[2]
    return callee.kind == "name" and (last in METHODS or last == "op" or last.endswith("_op"))

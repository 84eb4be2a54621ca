"""Drift between entries and code that several ops may share: each disagreement said once, at the side to change.

The manifest promises callers what the code grants. Where the code grants less than it, the code is the side to change,
and ops that inherit one method are one finding there; unless other ops inherit that method rightly and no class of the
wrong ones writes it itself, for then the entry is the odd one out. Where the code grants more, the manifest has to catch up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related, Severity
from opschema_cli.phrases import excerpt
from opschema_cli.schema.align import Slot, slots
from opschema_cli.source.program import Folded, FunctionRef
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import YamlEditError, remove_item
from opschema_rules.tileops.made_methods import made_method
from opschema_rules.tileops.model import Implementations, Manifest, OpEntry, OpImplementation
from opschema_rules.tileops.op_classes import call_params

MAX_SHOWN = 80
"""Maximum number of characters of source in a message."""


class Drift(msgspec.Struct, frozen=True):
    """One disagreement of an entry with a method.

    ``message`` names no op. ``declared`` and ``observed`` say what stands in the manifest (at ``target``) and in the code
    (at ``span``), for the note on the side that the finding does not stand on; ``in_manifest`` means that the manifest is
    the side to change.
    """

    method: Method
    message: str
    span: Span
    target: Node | Span
    declared: str = "declared here"
    observed: str = "defined here"
    fix: Fix | None = None
    in_manifest: bool = False
    severity: Severity = Severity.ERROR

    @property
    def code(self) -> Place:
        """The place in the code."""
        return Place(self.method.ref.file.path, self.span)

    @property
    def entry(self) -> Place:
        """The place in the manifest."""
        return self.method.op.entry.at(self.target)

    @property
    def counts(self) -> Severity:
        """Return the severity, limited to that of its entry."""
        return min(self.severity, self.method.op.entry.severity, key=lambda level: level.rank)


class Method(msgspec.Struct, frozen=True, dict=True):
    """A method of an op from its callers' view: ``params`` without ``self``."""

    op: OpImplementation
    name: str
    ref: FunctionRef
    params: Sequence[Param]
    made: bool = False
    """Whether a hook makes the method of the function that is written."""

    @property
    def key(self) -> tuple[str, int]:
        """Its file and place, by which two ops have the same method."""
        return self.ref.file.path, self.ref.function.start

    @cached_property
    def slots(self) -> Sequence[Slot]:
        """The parameters as slots."""
        return slots(self.params)

    @property
    def span(self) -> Span:
        """The span of its name."""
        return self.ref.function.span

    def param(self, name: str) -> Param | None:
        """The parameter of that name that a caller can pass."""
        return next((item for item in self.params if item.name == name and item.by_name), None)

    def fold(self, expr: Expr) -> Folded | None:
        """The constant value of an expression of the method's signature or body; None when it is computed."""
        owner = self.ref.owner
        found = self.op.entry.manifest.evaluator.fold(owner if owner is not None else self.ref.file, expr)
        return found if isinstance(found, Folded) else None

    def text(self, expr: Expr) -> str:
        """The text of an expression, for a message, with the brackets of a tuple, which lie outside its span."""
        written = self.ref.file.text(expr)
        return short(f"({written})" if expr.kind == "tuple" and not written.startswith("(") else written)

    @property
    def open(self) -> bool:
        """Whether it takes arguments that it does not name."""
        return any(item.kind == "kwarg" for item in self.params)


def method_of(op: OpImplementation, name: str) -> Method | None:
    """The method of that name; None when it is absent, generated or decorated beyond knowing."""
    known = _methods(op)
    if name not in known:
        known[name] = _method(op, name)
    return known[name]


def _method(op: OpImplementation, name: str) -> Method | None:
    ref = op.method(name)
    if ref is None:
        made = made_method(op, name)
        return Method(op, name, made.ref, made.params, made=True) if made is not None else None
    params = call_params(ref)
    return Method(op, name, ref, params) if params is not None else None


@cached_on_argument
def _methods(op: OpImplementation) -> dict[str, Method | None]:
    """The methods looked up so far."""
    return {}


def settle(ops: Implementations, check: Callable[[OpImplementation], Iterable[Drift]]) -> Iterator[Diagnostic]:
    """Findings of a check in every implementation, each shared cause once."""
    shared: dict[Place, dict[str, list[Drift]]] = {}
    users: dict[str, dict[tuple[str, int], set[str]]] = {}
    for op in ops.ops:
        for drift in check(op):
            if drift.in_manifest or drift.method.made:
                yield _at_entry(drift)
            else:
                shared.setdefault(drift.code, {}).setdefault(drift.message, []).append(drift)
    for messages in shared.values():
        drifts = [drift for found in messages.values() for drift in found]
        method = drifts[0].method
        if method.name not in users:
            users[method.name] = _users(ops.manifest, method.name)
        own = any(drift.method.ref.owner == drift.method.op.ref for drift in drifts)
        if own or users[method.name].get(method.key, set()) <= {drift.method.op.name for drift in drifts}:
            yield from map(_at_code, messages.values())
        else:
            yield from map(_at_entry, drifts)


def _users(manifest: Manifest, name: str) -> dict[tuple[str, int], set[str]]:
    """The ops that have each method of a name; its file and place say which it is."""
    found: dict[tuple[str, int], set[str]] = {}
    for op in manifest.implementations:
        ref = op.written_method(name)
        if ref is not None:
            found.setdefault((ref.file.path, ref.function.start), set()).add(op.name)
    return found


def _at_entry(drift: Drift) -> Diagnostic:
    related = (Related(drift.code, drift.observed),)
    ops = (drift.method.op.name,)
    return Diagnostic(drift.message, drift.entry, related, drift.fix, ops, severity=drift.counts)


def _at_code(drifts: Sequence[Drift]) -> Diagnostic:
    first = drifts[0]
    return Diagnostic(
        first.message,
        first.code,
        tuple(dict.fromkeys(Related(drift.entry, drift.declared) for drift in drifts)),
        _joined([drift.fix for drift in drifts]),
        tuple(dict.fromkeys(drift.method.op.name for drift in drifts)),
        severity=max((drift.counts for drift in drifts), key=lambda level: level.rank),
    )


def _joined(fixes: Sequence[Fix | None]) -> Fix | None:
    """Return the fixes of all entries as one; None if one entry has none."""
    present = [fix for fix in fixes if fix is not None]
    if len(present) < len(fixes) or not present:
        return None
    edits = tuple(dict.fromkeys(edit for fix in present for edit in fix.edits))
    unsafe = next((fix for fix in present if fix.safety == "unsafe"), present[0])
    return Fix(unsafe.title, edits, unsafe.safety, unsafe.why_unsafe)


def yaml_fix(entry: OpEntry, title: str, edit: Callable[[], list[Edit]], why_unsafe: str = "") -> Fix | None:
    """Return a fix of an entry's file; None if the editor would have to change more, or changes nothing."""
    try:
        edits = edit()
    except (YamlEditError, ValueError):  # the latter for a text that no YAML file can hold
        return None
    edits_of_file = tuple(FileEdit(entry.file.path, item) for item in edits)
    return Fix(title, edits_of_file, "unsafe" if why_unsafe else "safe", why_unsafe) if edits else None


def row_removal(entry: OpEntry, owner: Node, index: int) -> Fix | None:
    """Return a fix that removes one row of a list; None if a comment in the row would be removed with it."""
    item = owner.items[index]
    if "#" in entry.file.source.text[item.start : item.end]:
        return None
    fix = yaml_fix(entry, "drop the row", lambda: remove_item(entry.file, owner, index))
    if fix is not None and any("#" in entry.file.source.text[slice(*item.edit.span)] for item in fix.edits):
        return msgspec.structs.replace(fix, safety="unsafe", why_unsafe="the comment above the row goes with it")
    return fix


def short(text: str) -> str:
    """A stretch of source for a message: on one line, and not too long."""
    return excerpt(text, MAX_SHOWN)


def names(slots: Iterable[Slot | str]) -> str:
    """Names for a message: each in backticks, with commas."""
    return ", ".join(f"`{slot if isinstance(slot, str) else slot.name}`" for slot in slots)

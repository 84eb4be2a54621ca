"""Brings methods in line with the manifest's parameters: keyword-only, default, order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.codemods.rewrite import Problem, Refused, Rewrite
from opschema_cli.migrate.codemods.signatures import set_default
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note
from opschema_cli.migrate.workbench import LeftAlone, Workbench
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Param, PythonFile
from opschema_cli.source.yaml import Data
from opschema_rules.tileops.drift import Method, method_of, names
from opschema_rules.tileops.entry_parts import ParamDecl
from opschema_rules.tileops.migrations.call_sites import CallSite, CallSites, FunctionKey, key_of
from opschema_rules.tileops.migrations.entries import by_manifest
from opschema_rules.tileops.migrations.input_code import method_node
from opschema_rules.tileops.migrations.param_values import position_of
from opschema_rules.tileops.migrations.parameter_lists import (
    STAR,
    in_order,
    listed_names,
    reorder,
    with_keyword_only,
    with_positional,
    with_star,
)
from opschema_rules.tileops.migrations.sharing import definitions
from opschema_rules.tileops.migrations.words import paths_with_any
from opschema_rules.tileops.model import Manifest, OpEntry, OpImplementation
from opschema_rules.tileops.param_defaults import agree
from opschema_rules.tileops.rules.constructor import INFRASTRUCTURE
from opschema_rules.tileops.rules.parameters import constructor_params


class Wanted(msgspec.Struct, frozen=True):
    """The signature that one method should get: parameters by position or keyword only, defaults as these declare them, an order.

    ``entries`` are all that run it, ``declared`` the order in which they declare its parameters, and ``doubts`` what they
    do not agree in.
    """

    ref: FunctionRef
    positional: frozenset[str] = frozenset()
    keyword_only: frozenset[str] = frozenset()
    defaults: tuple[ParamDecl, ...] = ()
    order: tuple[str, ...] = ()
    entries: tuple[OpEntry, ...] = ()
    declared: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def place(self) -> Place:
        """The method's name."""
        return Place(self.ref.file.path, self.ref.function.span)

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops that run it."""
        return tuple(entry.name for entry in self.entries)

    @property
    def codes(self) -> tuple[str, ...]:
        """The rules that report it."""
        kw_only = ("SIG204",) if self.positional or self.keyword_only else ()
        return (*kw_only, *(("SIG203",) if self.defaults else ()), *(("SIG101",) if self.order else ()))

    @property
    def title(self) -> str:
        """A description of the change."""
        owner = f"{self.ref.owner.name}." if self.ref.owner is not None else ""
        parts = [f"take {names(sorted(self.positional))} by position"] if self.positional else []
        parts += [f"take {names(sorted(self.keyword_only))} by keyword only"] if self.keyword_only else []
        parts += [f"change the default of {names(param.name for param in self.defaults)}"] if self.defaults else []
        parts += [f"order the parameters as {names(self.order)}"] if self.order else []
        return f"{owner}{self.ref.function.name}(): {', '.join(parts) or 'by hand'}"


class _Said(NamedTuple):
    """One entry's declaration of one parameter of a constructor."""

    method: Method
    param: Param
    declared: ParamDecl


class _Votes(msgspec.Struct):
    """Declarations of the entries that share a method."""

    ref: FunctionRef
    ops: list[OpImplementation] = msgspec.field(default_factory=list)


def wanted_changes(ops: Sequence[OpImplementation], what: Sequence[str]) -> Iterator[Wanted]:
    """Yield the methods of some ops that differ from all entries that share them."""
    chosen = {op.entry for op in ops}
    for entries in by_manifest(chosen):
        for name in ("__init__", "forward"):
            for votes in _methods(entries[0].manifest, name).values():
                if any(op.entry in chosen for op in votes.ops):
                    wanted = _constructor(votes, what) if name == "__init__" else _forward(votes, what)
                    if wanted.codes:
                        yield wanted


def _methods(manifest: Manifest, name: str) -> dict[FunctionKey, _Votes]:
    found: dict[FunctionKey, _Votes] = {}
    for op in manifest.implementations:
        method = method_of(op, name)
        if method is not None and not method.made and op.entry.status != "spec-only":
            found.setdefault(key_of(method.ref), _Votes(method.ref)).ops.append(op)
    return found


def _constructor(votes: _Votes, what: Sequence[str]) -> Wanted:
    said: dict[str, list[_Said]] = {}
    for op in votes.ops:
        for method, param, declared in constructor_params(op):
            said.setdefault(param.name, []).append(_Said(method, param, declared))
    orders = {tuple(param.name for param in op.entry.params) for op in votes.ops}
    doubts: list[str] = []
    positional, keyword_only = _kinds(said, doubts) if "kw_only" in what else (set[str](), set[str]())
    if positional:
        taken = {param.name for param in votes.ref.function.params if param.kind == "kwonly"}
        positional |= taken & {name for op in votes.ops for name in _static_names(op.entry)} - said.keys()
    defaults = tuple(_defaults(said, doubts)) if "defaults" in what else ()
    longest = max(orders, key=len, default=())
    order = _order(votes, longest) if "order" in what and len(orders) == 1 else ()
    entries = tuple(op.entry for op in votes.ops)
    return Wanted(
        votes.ref, frozenset(positional), frozenset(keyword_only), defaults, order, entries, longest, tuple(doubts)
    )


def _kinds(said: Mapping[str, Sequence[_Said]], doubts: list[str]) -> tuple[set[str], set[str]]:
    """The parameters to take by position, and those to take by keyword only."""
    positional, keyword_only = set[str](), set[str]()
    for name, found in said.items():
        kinds = {item.declared.kw_only for item in found}
        if None in kinds:
            doubts.append(f"what `kw_only` of `{name}` is to mean is not known")
        elif (found[0].param.kind == "kwonly") not in kinds:
            (keyword_only if True in kinds else positional).add(name)
        elif len(kinds) > 1:
            doubts.append(f"entries differ in whether `{name}` is keyword-only")
    return positional, keyword_only


def _defaults(said: Mapping[str, Sequence[_Said]], doubts: list[str]) -> Iterator[ParamDecl]:
    """The declarations whose default, or lack of one, the code is to get."""
    for name, found in said.items():
        if any(map(_differs, found)):
            if len({repr((item.declared.has_default, item.declared.default)) for item in found}) == 1:
                yield found[0].declared
            else:
                doubts.append(f"entries differ in the default of `{name}`")


def _static_names(entry: OpEntry) -> list[str]:
    """The names that a caller commits to when the op is made, beside its params."""
    owner = entry.get("signature", "static_dims")
    return [key.value for key, _ in owner.pairs()] if owner is not None else []


def _differs(said: _Said) -> bool:
    method, param, declared = said
    if param.default is None or not declared.has_default:
        return (param.default is not None) != declared.has_default and not declared.doubtful("default")
    value = method.fold(param.default)
    return value is not None and not agree(value, declared.default, declared.node.get("default"))


def _forward(votes: _Votes, what: Sequence[str]) -> Wanted:
    orders = {tuple(tensor.name for tensor in op.entry.inputs) for op in votes.ops}
    declared = next(iter(orders)) if len(orders) == 1 else ()
    order = _order(votes, declared) if "order" in what else ()
    return Wanted(votes.ref, order=order, entries=tuple(op.entry for op in votes.ops), declared=declared)


def _order(votes: _Votes, declared: Sequence[str]) -> tuple[str, ...]:
    """Return the positional parameters in declared order; nothing if they are in that order."""
    taken = [param.name for param in votes.ref.function.params if param.kind == "normal"]
    order = in_order(taken, declared)
    return tuple(order) if order != taken else ()


class CodeSignatures:
    """Changes signatures in a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.workbench = Workbench(draft)

    def apply(self, changes: Sequence[Wanted]) -> Iterator[Note]:
        """Draft all changes; yield notes on what remains."""
        notes = [Note(wanted.place, doubt) for wanted in changes for doubt in wanted.doubts]
        changed: dict[FunctionKey, tuple[Wanted, int | None]] = {}
        for wanted in changes:
            try:
                with self.workbench.atomic(), self.workbench.on(wanted.ref.file.path) as rewrite:
                    changed[key_of(wanted.ref)] = wanted, self._change(rewrite, wanted)
            except LeftAlone as left:
                notes.append(Note(wanted.place, f"{wanted.title}: by hand, because {left.reason}", leaves_site=True))
        yield from notes
        yield from self._calls(changed)
        self.workbench.commit()
        self.draft.settle()

    def _change(self, rewrite: Rewrite, wanted: Wanted) -> int | None:
        """Record one method's changes; return the index of the first positional parameter that differs now."""
        node = method_node(rewrite.tree, wanted.ref)
        owner = wanted.ref.owner
        if owner is not None and len(definitions(owner, wanted.ref.function.name)) > 1:
            raise Refused([Problem(rewrite.tree.span(node.name).start, "it is defined several times")])
        before = listed_names(node)
        after = _moved(before, wanted)
        if after != before and wanted.defaults:
            raise Refused(
                [Problem(rewrite.tree.span(node.name).start, "defaults and places change at once; change one first")]
            )
        reorder(rewrite, node, after)
        for param in wanted.defaults:
            set_default(rewrite, node, param.name, _code(param) if param.has_default else None)
        old, new = _positional(before), _positional(after)
        return next((at for at, name in enumerate(old) if new[at : at + 1] != [name]), None)

    def _calls(self, changed: dict[FunctionKey, tuple[Wanted, int | None]]) -> Iterator[Note]:
        """Yield the calls that pass a moved parameter by position, or omit one without a default now."""
        for file in self._callers(wanted for wanted, _ in changed.values()):
            manifest = next(iter(changed.values()))[0].entries[0].manifest
            for site in CallSites(manifest.program).of(file):
                for target in site.targets or ():
                    if key_of(target) in changed:
                        yield from _judged(site, *changed[key_of(target)])

    def _callers(self, changes: Iterable[Wanted]) -> Iterator[PythonFile]:
        for path in paths_with_any(self.draft, {entry.name for wanted in changes for entry in wanted.entries}):
            file = self.draft.project.python(path)
            if file is not None:
                yield file


def _judged(site: CallSite, wanted: Wanted, first: int | None) -> Iterator[Note]:
    """Notes on a call of a method that has changed."""
    place, method = Place(site.file.path, site.call.span), f"`{wanted.title.partition('(')[0]}()`"
    unpacked = {"*", "**"} & set(site.call.keywords)
    if first is not None and (len(site.call.positional()) > first or "*" in unpacked):
        verb = "passes" if len(site.call.positional()) > first else "may pass"
        yield Note(place, f"this {verb} arguments of {method} by position; they have moved")
    for param in wanted.defaults if not unpacked and not site.ahead else ():
        position = position_of(wanted.ref, param.name)
        if not param.has_default and site.call.argument(param.name, position) is None:
            yield Note(place, f"this passes no `{param.name}`, which has no default in {method} any more")


def _moved(before: list[str], wanted: Wanted) -> list[str]:
    """Return the parameters in the wanted order."""
    after = before
    if wanted.positional or wanted.keyword_only:
        if STAR not in before:
            after = with_star(after, wanted.keyword_only.__contains__, INFRASTRUCTURE.__contains__)
        after = with_keyword_only(after, wanted.keyword_only.__contains__)
        declared = {param.name for entry in wanted.entries for param in entry.params if param.kw_only}
        barred = INFRASTRUCTURE | declared
        after = with_positional(after, wanted.positional.__contains__, barred.__contains__, wanted.declared)
        after = after[:-1] if after[-1] == STAR else after
    if wanted.order:
        positional = after[: after.index(STAR)] if STAR in after else after
        after = [*in_order(positional, wanted.order), *after[len(positional) :]]
    return after


def _positional(listed: Sequence[str]) -> list[str]:
    """The positional parameters, ``self`` left out."""
    end = listed.index(STAR) if STAR in listed else len(listed)
    return list(listed[1:end])


def _code(param: ParamDecl) -> str:
    """A declared default as Python code.

    Raises:
        Refused: it has no literal.
    """
    kind = param.type or ""
    if isinstance(param.default, str) and "dtype" in kind:
        return f"torch.{param.default.removeprefix('torch.')}"
    return _literal(param.default, "tuple" in kind)


def _literal(value: Data, as_tuple: bool) -> str:
    if isinstance(value, list):
        items = [_literal(item, as_tuple) for item in value]
        comma = "," if as_tuple and len(items) == 1 else ""
        return f"({', '.join(items)}{comma})" if as_tuple else f"[{', '.join(items)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        raise Refused([Problem(0, "a mapping is not a default")])
    return repr(value)

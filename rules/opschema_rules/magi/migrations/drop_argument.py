"""`drop-argument`: an argument away from every call of the decorator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import msgspec

from opschema_cli.migrate.codemods.calls import drop_argument as drop_from_call
from opschema_cli.migrate.codemods.rewrite import Refused
from opschema_cli.migrate.codemods.scopes import effects
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.mentions import mentions
from opschema_cli.migrate.migration import Note, OptionError, Site, migration
from opschema_cli.migrate.workbench import LeftAlone, Workbench, left
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Place
from opschema_cli.suggestions import near_names
from opschema_rules.magi.dialect import PARAMETERS
from opschema_rules.magi.migrations.scopes import OPS
from opschema_rules.magi.migrations.trees import tree_of
from opschema_rules.magi.model import MagiTree
from opschema_rules.magi.proofs import PROGRAMS
from opschema_rules.magi.registrations import Registrations


class DropArgument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``name`` is the argument, such as `has_internal_collective`."""

    name: str


class _Call(msgspec.Struct, frozen=True):
    """A call that passes the argument, by its name or in a dict that it unpacks, in a body."""

    body: Body
    call: Expr
    unpacked: Expr | None = None


def find(draft: Draft, options: DropArgument) -> Iterator[Site]:
    """The calls of the decorator that pass the argument by name."""
    if options.name in PARAMETERS:
        raise OptionError(f"`{options.name}` is a parameter of the decorator: what it says would be lost")
    tree = tree_of(draft)
    known: set[str] = set()
    found: set[Place] = set()
    for body, call in _calls(tree) if tree is not None else ():
        known.update(call.keywords)
        named = call.keyword(options.name)
        unpacked = _unpacked(tree, body, call, options.name) if tree is not None and named is None else None
        value = named or unpacked
        if value is not None and body.at(value) not in found:
            found.add(body.at(value))
            titles = {op.title for op in tree.ops if _holds(op.registration.call, call)} if tree is not None else set()
            yield Site(body.at(value), f"drop `{options.name}`", tuple(sorted(titles)), (), _Call(body, call, unpacked))
    near = near_names(options.name, sorted(known - set(PARAMETERS) - {"", "*", "**"}), 1)
    if near and not found and not draft.changes:
        raise OptionError(f"no call of the decorator passes `{options.name}`; did you mean `{near[0]}`?")


def _unpacked(tree: MagiTree, body: Body, call: Expr, name: str) -> Expr | None:
    """The dict that a call unpacks and that has the argument: written there, or assigned to the variable."""
    for keyword, value in call.args:
        if keyword == "**":
            binder = body.binder(value.text) or tree.bodies.module(body.file)
            values = (binder.values(value.text) if value.kind == "name" else None) or [value]
            parts = [part for item in values for part in item.walk()]
            if any(part.value == name or (part.kind == "call" and part.keyword(name)) for part in parts):
                return value
    return None


def _holds(outer: Expr, inner: Expr) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _calls(tree: MagiTree) -> Iterator[tuple[Body, Expr]]:
    """Yield the calls that pass the decorator arguments: its own, those of functions that pass theirs on, and of partials."""
    registrations = tree.registrations
    for file in tree.bodies.files:
        for body in tree.bodies.of(file):
            for call in body.scope.calls:
                if _is_partial(registrations, body, call) or _hands_on(registrations, body, call):
                    yield body, call
            for inner in tree.bodies.within(body):
                for decorator in inner.function.decorators if inner.function is not None else ():
                    if decorator.kind == "call" and _hands_on(registrations, body, decorator):
                        yield body, decorator


def _is_partial(registrations: Registrations, body: Body, call: Expr) -> bool:
    first = call.positional()[:1]
    partial = registrations.bodies.external(body, call.callee) == "functools.partial"
    return partial and bool(first) and registrations.is_registrar(body, first[0].text)


def _hands_on(registrations: Registrations, body: Body, call: Expr) -> bool:
    """Whether the keywords of a call reach the decorator: it is called itself, or a function that unpacks the rest."""
    if registrations.is_registrar(body, call.callee):
        return True
    if not registrations.makes_decorator(body, call):
        return False
    target = registrations.bodies.called(body, call.callee)
    named = {item.name for item in target.params if item.by_name} if target is not None else set()
    given = {keyword for keyword in call.keywords if keyword not in ("", "*", "**") and keyword not in named}
    rest = target is None or any(item.kind == "kwarg" for item in target.params)
    return bool(given) and rest


@migration(
    "drop-argument",
    find=find,
    options=DropArgument,
    scope=OPS,
    settled="no call of the decorator passes the argument by name",
    proof=PROGRAMS,
)
def drop_argument(draft: Draft, sites: Sequence[Site], options: DropArgument) -> Iterator[Note]:
    """Drop an argument that `magi_register_custom_op` no longer accepts.

    The keyword goes from every call of the decorator, of a `functools.partial` of it, and of functions that hand the rest of their
    arguments on to it. Comments that stand with it go along.

    A call is left unchanged, with a note, where the argument's value may have effects, or a dictionary that is unpacked has
    it. What else mentions the name is reported as a note: a parameter of a function that wraps the decorator, text.

        opschema migrate drop-argument -o name=has_internal_collective
    """
    workbench = Workbench(draft)
    for site in sites:
        assert isinstance(site.subject, _Call)
        try:
            with workbench.atomic():
                _drop(workbench, site.subject, options.name)
        except LeftAlone as found:
            yield from left(site, found)
    workbench.commit()
    for mention in mentions(draft.settle(), [options.name]):
        yield Note(mention.place, f"`{options.name}` is still mentioned here")


def _drop(workbench: Workbench, found: _Call, name: str) -> None:
    if found.unpacked is not None:
        raise LeftAlone(found.body.at(found.unpacked), "it is in a dict that is unpacked")
    with workbench.on(found.body.file.path) as rewrite:
        node = rewrite.tree.find(found.call.span, cst.Call)
        value = next(arg for arg in node.args if arg.keyword is not None and arg.keyword.value == name)
        problems = list(effects(rewrite.tree, value.value))
        if problems:
            raise Refused(problems)
        drop_from_call(rewrite, node, name)

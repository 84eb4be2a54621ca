"""Resolves expressions to specs: lists of ``TensorSpec(...)``, functions that build one, and items appended to one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.binding import arguments_of
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.origins import Origin, origin, origins
from opschema_cli.evaluation.values import BoundArgument, Frame, Func
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_rules.pypto.language import called, full_name
from opschema_rules.pypto.model import SpecItem
from opschema_rules.pypto.spec_calls import SpecClasses

_MOST = 16
"""Maximum number of lists that one expression may refer to."""

_FIELDS = ("name", "shape", "dtype", "init_value", "is_output", "resident")
_COMPUTED = frozenset({"listcomp", "generator", "ifexp", "other"})
_VALUES = frozenset({"call", "binary", "subscript", "list", "tuple", "lambda"})
_WRITTEN = re.compile(r"\.(is_output|init_value|resident)\s*=(?!=)")


class Specs(msgspec.Struct, frozen=True):
    """Specs of tensors that may be passed: those that are known, whether they are all, and the functions that build them.

    ``at`` is the innermost statement that may not run which the value stands in, None outside of all. ``written`` are all specs
    of a list that is written, with those of scalars; None where that is not known.
    """

    items: tuple[SpecItem, ...]
    whole: bool
    builders: tuple[Body, ...] = ()
    at: Span | None = None
    written: tuple[SpecItem, ...] | None = None


class SpecLists(msgspec.Struct):
    """Resolves lists of specs in the bodies of a tree; names and functions are resolved once."""

    bodies: Bodies
    evaluator: Evaluator
    _known: dict[tuple[Body, int], tuple[Specs, ...]] = msgspec.field(default_factory=dict)
    _set: dict[tuple[Body, str], bool | None] = msgspec.field(default_factory=dict)
    _classes: SpecClasses | None = None

    def of(self, body: Body, expr: Expr) -> list[Specs]:
        """Return every list that an expression may refer to; empty if it is not known."""
        return [_blurred(found, body) for found in islice(self._read(body, expr, MAX_CALLS), _MOST)]

    def in_order(self, body: Body, expr: Expr, hops: int = MAX_CALLS) -> bool:
        """Whether an expression is a list literal, or a call of a function that only returns one: nothing can reorder or rename
        its specs.
        """
        if expr.kind in ("list", "tuple"):
            return all(item.kind == "call" for item in expr.items)
        if expr.kind == "binary" and expr.text == "+":
            return all(self.in_order(body, item, hops) for item in expr.items)
        target = called(self.bodies, body, expr) if expr.kind == "call" and hops else None
        if target is None or target.function is None or target.function.decorator_names:
            return False
        return len(target.scope.returns) == 1 and self.in_order(target, target.scope.returns[0], hops - 1)

    def _read(self, body: Body, expr: Expr, hops: int) -> Iterator[Specs]:
        if hops < 0:
            return
        if expr.kind in ("list", "tuple"):
            yield self._display(body, expr)
        elif expr.kind == "binary" and expr.text == "+":
            yield from self._sum(body, expr, hops)
        elif expr.kind == "call" and expr.callee in ("list", "tuple") and expr.keywords == ("",):
            yield from self._read(body, expr.items[1], hops - 1)
        elif expr.kind == "call":
            yield from self._returned(body, expr, None, hops)
        elif expr.kind == "name" and "." not in expr.text:
            yield from self._named(body, expr, hops)
        elif expr.kind in _COMPUTED:
            yield Specs(tuple(self._singled_out(body, expr)), False)

    def _singled_out(self, body: Body, expr: Expr) -> Iterator[SpecItem]:
        """Yield the outputs that a comprehension selects by name: ``TensorSpec(name, ..., is_output=name == "cache")``."""
        for call in body.scope.calls:
            fields, certain = _arguments(call)
            test, name = fields.get("is_output"), fields.get("name")
            if not expr.start <= call.start < expr.end or not certain or test is None or name is None:
                continue
            if self._is(body, call, "TensorSpec") and test.kind == "compare" and test.text == "==":
                left, right = test.items
                if left.kind == name.kind == "name" and left.text == name.text and isinstance(right.value, str):
                    given, resident = (
                        self._flag(body, fields.get(field), certain) for field in ("init_value", "resident")
                    )
                    yield SpecItem(body.file, right.value, call, True, given, resident)

    def _is(self, body: Body, call: Expr, name: str) -> bool:
        full = full_name(self.bodies, body, call.callee) or call.callee
        return full.rpartition(".")[2] == name

    def _display(self, body: Body, expr: Expr) -> Specs:
        found = [self._item(body, item) for item in expr.items]
        known = tuple(item for item in found if isinstance(item, SpecItem))
        tensors = tuple(item for item in known if not item.is_scalar)
        written = known if len(known) == len(found) else None
        return Specs(tensors, all(item is not None for item in found), written=written)

    def _sum(self, body: Body, expr: Expr, hops: int) -> Iterator[Specs]:
        lefts, rights = (list(islice(self._read(body, item, hops - 1), _MOST)) for item in expr.items)
        for left in lefts or [Specs((), False)]:
            for right in rights or [Specs((), False)]:
                builders, both = (*left.builders, *right.builders), (left.written, right.written)
                written = tuple(item for part in both for item in part or ()) if None not in both else None
                yield Specs((*left.items, *right.items), left.whole and right.whole, builders, written=written)

    def _returned(self, body: Body, call: Expr, index: int | None, hops: int) -> Iterator[Specs]:
        """Yield the return values of a function; for a tuple, the part at ``index``."""
        target = called(self.bodies, body, call) if call.kind == "call" else None
        returns = target.scope.returns if target is not None else ()
        if target is None or len(returns) != 1:
            return
        value: Expr | None = returns[0]
        if index is not None and value is not None:
            elements = value.elements if value.kind == "tuple" else None
            value = elements[index] if elements is not None and index < len(elements) else None
        for found in self._read(target, value, hops - 1) if value is not None else ():
            yield Specs(found.items, found.whole, (target, *found.builders), written=found.written)

    def _named(self, body: Body, expr: Expr, hops: int) -> Iterator[Specs]:
        for item in origins(self.evaluator, self.evaluator.frames.at(body), expr.text, expr.start):
            binder = item.frame.body
            until = expr.start if binder is body else len(body.file.source.text)
            items, whole = self._added(binder, expr.text, item.start, until)
            for found in self._assigned(binder, item, hops):
                yield Specs((*found.items, *items), found.whole and whole, found.builders, item.guard)

    def _assigned(self, body: Body, item: Origin, hops: int) -> tuple[Specs, ...]:
        key = (body, item.start)
        if key not in self._known:
            self._known[key] = ()
            if item.index is None:
                found = self._read(body, item.expr, hops - 1)
            else:
                found = self._returned(body, item.expr, item.index, hops - 1)
            self._known[key] = tuple(islice(found, _MOST))
        return self._known[key]

    def _added(self, body: Body, name: str, start: int, end: int) -> tuple[tuple[SpecItem, ...], bool]:
        """Return the specs appended to a list between two places, and whether nothing else happens to it there."""
        found: list[SpecItem] = []
        whole = True
        for call in body.scope.calls:
            owner, _, method = call.callee.rpartition(".")
            if owner != name or not start < call.start < end:
                continue
            value = call.items[-1]
            if method == "extend" and value.kind in ("list", "tuple"):
                more = self._display(body, value)
                found, whole = [*found, *more.items], whole and more.whole
                continue
            item = self._item(body, value) if method in ("append", "insert") and len(call.items) > 1 else None
            whole = whole and item is not None
            found += [item] if isinstance(item, SpecItem) and not item.is_scalar else []
        return tuple(found), whole

    # -- one spec ------------------------------------------------------------------------------------------------------

    def _item(self, body: Body, expr: Expr) -> SpecItem | str | None:
        """Return a spec; a word for a scalar's whose name is not known; None if it is not known."""
        made = self._made(self.evaluator.frames.at(body), expr)
        if made is None:
            return None
        frame, call = made
        is_scalar = self._is(frame.body, call, "ScalarSpec")
        fields, certain = _arguments(call)
        name = self.evaluator.text(BoundArgument(frame, fields["name"])) if "name" in fields else None
        self._classes = self._classes or SpecClasses(self.bodies)
        misfit = self._classes.misfit(frame.body, call)
        if name is None or is_scalar:
            scalar = (
                SpecItem(body.file, name, expr, False, False, False, is_scalar=True, misfit=misfit)
                if name is not None
                else "scalar"
            )
            return scalar if is_scalar else None
        is_output, has_init, resident = (
            self._field(frame, fields.get(field), certain) for field in ("is_output", "init_value", "resident")
        )
        if "is_output" not in fields and self._classes.may_be_output(frame.body, call):
            is_output = None
        return SpecItem(body.file, name, expr, is_output, has_init, resident, misfit=misfit)

    def _made(self, frame: Frame, expr: Expr) -> tuple[Frame, Expr] | None:
        """Return the call that makes a spec, directly or in a function called for it; None if there is none."""
        found = origin(self.evaluator, frame, expr)
        frame, call = found.frame, found.expr
        if call is None or call.kind != "call":
            return None
        if self._is(frame.body, call, "TensorSpec") or self._is(frame.body, call, "ScalarSpec"):
            return frame, call
        target = called(self.bodies, frame.body, call)
        if target is None or target.parent is None or len(target.scope.returns) != 1:
            return None
        if target.file is not frame.body.file and _WRITTEN.search(target.file.source.text):
            return None  # which it may write on the spec
        function = Func(target, self.evaluator.frames.assumed(target.parent))
        inner = self.evaluator.frames.entered(function, arguments_of(self.evaluator, frame, call))
        return self._made(inner, target.scope.returns[0]) if inner is not None else None

    def _field(self, frame: Frame, expr: Expr | None, certain: bool) -> bool | None:
        """Whether a field is set, by the argument that it refers to."""
        found = origin(self.evaluator, frame, expr) if expr is not None else None
        return (
            self._flag(found.frame.body, found.expr, certain)
            if found is not None
            else self._flag(frame.body, None, certain)
        )

    def _flag(self, body: Body, expr: Expr | None, certain: bool) -> bool | None:
        """Whether a field is set to anything but None or False; None if that is not known."""
        return self._given(body, expr, MAX_CALLS) if expr is not None else False if certain else None

    def _given(self, body: Body, expr: Expr, hops: int) -> bool | None:
        if expr.kind == "const":
            return expr.value is not None and expr.value is not False
        if expr.kind in ("lambda", "list", "tuple", "binary", "unary"):
            return True
        if expr.kind == "call":
            return self._makes(body, expr)
        if expr.kind != "name" or hops <= 0:
            return None
        first = expr.text.partition(".")[0]
        binder = body.binder(first) or self.bodies.module(body.file)
        if "." in expr.text:
            return True if full_name(self.bodies, body, expr.text).startswith("torch.") else None
        if any(item.name == expr.text for item in binder.scope.functions):
            return True
        key = (binder, expr.text)
        if key not in self._set:
            self._set[key] = None
            values = {self._given(binder, value, hops - 1) for value in binder.values(expr.text) or ()}
            self._set[key] = values.pop() if len(values) == 1 else None
        return self._set[key]

    def _makes(self, body: Body, call: Expr) -> bool | None:
        """Whether a call returns something other than None; None if that is not known."""
        if full_name(self.bodies, body, call.callee).startswith("torch."):
            return True
        target = called(self.bodies, body, call)
        if target is None:
            return None
        sure = [item for item in target.scope.returns if item.kind in _VALUES or _is_function(target, item)]
        return True if sure and len(sure) == len(target.scope.returns) else None


def _is_function(body: Body, expr: Expr) -> bool:
    return expr.kind == "name" and any(item.name == expr.text for item in body.scope.functions)


def _arguments(call: Expr) -> tuple[dict[str, Expr], bool]:
    """Return the fields that a call sets, and whether unpacking hides none."""
    positional = zip(_FIELDS, call.positional(), strict=False)
    named = {word: value for word, value in call.args if word not in ("", "*", "**")}
    return {**dict(positional), **named}, not {"*", "**"} & set(call.keywords)


def _blurred(found: Specs, body: Body) -> Specs:
    """Return the specs without the fields that files on the way set after construction."""
    files = {item.file.path: item.file for item in (body, *found.builders)}
    written = {name for file in files.values() for name in _WRITTEN.findall(file.source.text)}
    if not written:
        return found
    return Specs(tuple(_without(found.items, written)), found.whole, found.builders, found.at, found.written)


def _without(items: Iterable[SpecItem], written: set[str]) -> Iterator[SpecItem]:
    for item in items:
        is_output = None if "is_output" in written else item.is_output
        has_init = None if "init_value" in written else item.has_init
        resident = None if "resident" in written else item.resident
        yield replace(item, is_output=is_output, has_init=has_init, resident=resident)

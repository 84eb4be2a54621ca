"""Tuners made by FlyDSL's `autotune`: the functions that they tune, their configurations and their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.statements import all_statements, own_expressions
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Assign, Expr, Param, PythonFile
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.model import FlyTree
from opschema_rules.flydsl.rebinding import may_be_another

MAKING = frozenset({"autotune", "Autotuner"})
"""The last words of functions that make tuners."""

_MOST = 200
"""Maximum number of elements in lists of configurations to examine for one tuner."""

_COPYING = frozenset({"list", "tuple"})
"""Functions that return a list of the same elements."""

_MODULE = f"{ROOT}.autotune"


class Tuner(msgspec.Struct, frozen=True, eq=False):
    """A tuner for the function ``target``, and the call that makes it. ``decorates`` is set if the call is a decorator."""

    body: Body
    expr: Expr
    target: Body
    decorates: bool = False

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters of the function."""
        return self.target.params

    def argument(self, name: str) -> Expr | None:
        """Return an argument of the call: by keyword, or one of the first two of `autotune()`."""
        places = ("configs", "key") if called_word(self.expr.items[0]) == "autotune" else ()
        known = name in places and "*" not in self.expr.keywords
        return self.expr.argument(name, places.index(name) if known else None)


class Configs(msgspec.Struct):
    """The `Config` calls that make a tuner's configurations, each with its body. ``complete`` is set if these are all."""

    calls: list[tuple[Body, Expr]]
    complete: bool = True


def is_of_autotune(tree: FlyTree, body: Body, call: Expr, word: str) -> bool:
    """Whether a call is known to be of that function in FlyDSL's module `autotune`."""
    if called_word(call.items[0]) != word or not call.callee or may_be_another(tree, body, call.items[0]):
        return False
    full = tree.names.full(body, call.callee)
    return full in (f"{_MODULE}.{word}", f"{ROOT}.{word}")


def tuners_in(tree: FlyTree, body: Body) -> Iterator[Tuner]:
    """Yield the tuners that a body makes for functions with known parameters."""
    for call in body.scope.calls:
        word, applied = called_word(call.items[0]), call.items[0].kind == "call"
        if word not in MAKING or applied is not (word == "autotune") or (applied and call.keywords != ("",)):
            continue
        made, name = (call.items[0], call.items[1]) if applied else (call, call.keyword("fn"))
        target = tree.bodies.called(body, name.text) if name is not None and name.kind == "name" else None
        if target is None or not is_of_autotune(tree, body, made, word):
            continue
        if target.function is not None and not target.this and not _is_wrapped(tree, target):
            yield Tuner(body, made, target)
    for inner in tree.bodies.within(body):
        decorators = inner.function.decorators if inner.function is not None else ()
        first = decorators[0] if decorators else None
        if first is None or first.kind != "call" or not is_of_autotune(tree, body, first, "autotune"):
            continue
        traced = tree.traced_of(inner)
        if len(decorators) == 2 and traced is not None and traced.decorator in decorators and not inner.this:
            yield Tuner(body, first, inner, decorates=True)


def _is_wrapped(tree: FlyTree, target: Body) -> bool:
    """Whether a decorator other than FlyDSL's may change the arguments that a function takes."""
    traced = tree.traced_of(target)
    decorators = target.function.decorators if target.function is not None else ()
    return any(traced is None or item is not traced.decorator for item in decorators)


def configs_of(tree: FlyTree, tuner: Tuner) -> Configs:
    """Return the configurations that a tuner is known to use: the elements of lists in its call, in the variables and functions of
    its file named there, and in names used by those; for a function, of all lists that it returns. Lists that code filters or
    changes do not count.
    """
    found = Configs([])
    if "prune_configs_by" in tuner.expr.keywords:  # which may drop any
        found.complete = False
        return found
    waiting = [(tuner.body, item, 0) for item in map(tuner.argument, ("configs", "default")) if item is not None]
    calls: dict[tuple[Body, int], Expr] = {}
    read: dict[tuple[PythonFile, str], list[Expr]] = {}
    seen: set[tuple[Body, str]] = set()
    left = _MOST
    while waiting:
        body, expr, hops = waiting.pop()
        for part in _elements(expr):
            if left == 0:
                found.complete = False
                break
            left -= 1
            name = part.callee if part.kind == "call" and len(part.items) == 1 else part.text
            if _is_config(part):
                is_own = is_of_autotune(tree, body, part, "Config")
                found.complete &= is_own and "**" not in part.keywords
                if is_own:
                    calls[body, part.start] = part
            elif (part.kind != "name" and name == part.text) or not name or hops >= MAX_CALLS:
                found.complete = False
            elif (body, name) not in seen:
                seen.add((body, name))
                read.setdefault((body.file, name.partition(".")[0]), []).append(part)
                values = _values(tree, body, name, found, tuner if hops == 0 and part.kind == "name" else None)
                waiting += ((*item, hops + 1) for item in values)
    found.calls = [(body, call) for (body, _), call in calls.items()]
    found.complete &= not any(_is_used_elsewhere(file, name, parts) for (file, name), parts in read.items())
    return found


def _is_config(expr: Expr) -> bool:
    return expr.kind == "call" and called_word(expr.items[0]) == "Config"


def _elements(expr: Expr) -> Iterator[Expr]:
    """Yield the elements of a list expression, and the expressions that stand for further ones: names, calls and others."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        match part.kind:
            case "list" | "tuple" | "starred":
                waiting += part.items
            case "binary" if part.text == "+":
                waiting += part.items
            case "listcomp" | "generator" if all(len(item.items) == 2 for item in part.items[1:]):
                waiting += part.items[:1]
            case "lambda":
                waiting += part.items[-1:]
            case "call" if part.callee in _COPYING and part.keywords == ("",):
                waiting += part.items[1:]
            case _:
                yield part


def _values(tree: FlyTree, body: Body, name: str, found: Configs, tuner: Tuner | None) -> Iterator[tuple[Body, Expr]]:
    """Yield the values of a name in the file of a body: a variable's, or a function's return values. ``tuner`` calls the function
    itself.
    """
    binder = body.binder(name) or tree.bodies.module(body.file)
    bound = binder.scope.named.get(name, ())
    one = bound[0] if len(bound) == 1 and name not in binder.file.rebound else None
    if isinstance(one, Assign) and one.value is not None:
        yield binder, one.value
        return
    target = tree.bodies.called(body, name) if one is not None and not isinstance(one, Assign) else None
    returned = target.scope.returns if target is not None else ()
    if target is None or not returned or any(item.name == name for item in binder.params) or not _is_plain(target):
        found.complete = False
    elif len(returned) > 1 and (tuner is None or not _is_made_for(tuner, target, name)):
        found.complete = False  # some of them may be for another function
    else:
        yield from ((target, item) for item in returned)


def _is_plain(target: Body) -> bool:
    """Whether a function is called as it is defined, and what it returns is the result of the call."""
    exprs = (expr for item in all_statements(target.statements) for expr in own_expressions(item))
    is_changed = target.function is None or bool(target.function.decorators)
    return not is_changed and not any(expr.kind in ("yield", "yield-from") for expr in exprs)


def _is_made_for(tuner: Tuner, target: Body, name: str) -> bool:
    """Whether a function that returns several lists only serves one tuner: a private function of its file that the file names
    once, which decides by arguments of the tuned function.
    """
    names = {item.name for item in tuner.params}
    own = all(item.name in names or item.default is None for item in target.params)  # and no option of its own
    is_private = name.startswith("_") and target.file is tuner.body.file and len(_uses(target.file).get(name, ())) == 1
    return own and is_private and not any(item.kind == "try" for item in all_statements(target.statements))


def _is_used_elsewhere(file: PythonFile, name: str, parts: Iterable[Expr]) -> bool:
    """Whether a list, or a function that makes one, is also used elsewhere in the file, where it may be changed."""
    places = _uses(file).get(name, ())
    return not all(any(part.start <= place < part.end for part in parts) for place in places)


@cached_on_argument
def _uses(file: PythonFile) -> dict[str, list[int]]:
    """The places in a file where names are used, by first word."""
    found: dict[str, list[int]] = {}
    for scope in file.body.walk():
        for use in scope.uses:
            found.setdefault(use.name.partition(".")[0], []).append(use.start)
    return found


def calls_of_tuner(tree: FlyTree, tuner: Tuner) -> Iterator[tuple[Body, Expr]]:
    """Yield the calls of a tuner in its file, by the module variable that holds it or by the function's name."""
    module = tree.bodies.module(tuner.body.file)
    if tuner.decorates:
        yield from tree.bodies.calls_of(tuner.target)
        return
    if tuner.body is not module:
        return
    names = [name for span, held in index_of(module).targets.items() if tuner.expr.start == span.start for name in held]
    for name in names:
        if len(module.scope.named.get(name, ())) != 1 or name in module.file.rebound:
            continue
        for body in tree.bodies.calling(module.file, [name]):
            calls = (call for call in body.scope.calls if call.callee == name)
            yield from ((body, call) for call in calls if body.binder(name) is None)

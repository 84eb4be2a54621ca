"""The names by which a golden function reads the specs' values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.statements import all_statements, own_expressions, sure_expressions, targets
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import FunctionRef
from opschema_cli.source.python import Expr, Statement, Use
from opschema_cli.source.text import Span, SpanSet
from opschema_rules.pypto.language import resolve
from opschema_rules.pypto.model import UnknownKey
from opschema_rules.pypto.spec_lists import Specs

_MAY_LEAVE = frozenset({"return", "raise"})
_REPEATED = frozenset({"listcomp", "setcomp", "dictcomp", "generator"})


def unknown_keys(bodies: Bodies, body: Body, call: Expr, lists: Sequence[Specs]) -> Iterator[UnknownKey]:
    """Yield the items that a call's golden function always reads although no spec has their name, if all specs are known."""
    golden, compiles = _golden(call.keyword("golden_fn")), call.keyword("compile_only")
    if golden is None or "**" in call.keywords or not _may_run(bodies, body, call.keyword("golden_data")):
        return
    if compiles is not None and compiles.value is True:
        return
    found = resolve(bodies, body, golden.text)
    function = bodies.function(found) if isinstance(found, FunctionRef) else None
    names = {item.name for specs in lists for item in specs.written or ()}
    if function is None or not lists or not all(specs.whole and specs.written is not None for specs in lists):
        return
    reported: set[str] = set()
    for expr in _read(function) if _is_plain(function) else ():
        key = expr.items[1].value
        if isinstance(key, str) and key not in names and key not in reported:
            reported.add(key)
            yield UnknownKey(function.at(expr.items[1]), key, tuple(sorted(names)), body.at(call.items[0]))


def _golden(expr: Expr | None) -> Expr | None:
    """Return the name of the golden function, possibly under a condition (``None if args.no_golden else golden``)."""
    parts = expr.items[1:] if expr is not None and expr.kind == "ifexp" else [expr]
    named = [item for item in parts if item is not None and item.value is None and item.kind != "const"]
    return named[0] if len(named) == 1 and named[0].kind == "name" else None


def _may_run(bodies: Bodies, body: Body, data: Expr | None) -> bool:
    """Whether the golden function runs unless a command-line option supplies its results: ``golden_data=args.golden_data``."""
    if data is None or (data.kind == "const" and data.value is None):
        return True
    owner, _, option = data.text.partition(".") if data.kind == "name" else ("", "", "")
    values = (body.binder(owner) or bodies.module(body.file)).values(owner) if option else None
    if values is None or len(values) != 1 or not f".{values[0].callee}".endswith(".parse_args"):
        return False
    added = [item for item in body.scope.calls if item.callee.endswith(".add_argument")]
    own = [item for item in added if any(_names_option(name, option) for name in item.positional())]
    defaults = [item.keyword("default") for item in own]
    return len(own) == 1 and (defaults[0] is None or (defaults[0].kind == "const" and defaults[0].value is None))


def _names_option(expr: Expr, option: str) -> bool:
    return isinstance(expr.value, str) and expr.value.lstrip("-").replace("-", "_") == option


def _is_plain(golden: Body) -> bool:
    """Whether a function only takes the values, and only reads and writes items of them."""
    function = golden.function
    if function is None or function.decorators or len(function.params) != 1:
        return False
    if function.params[0].kind not in ("posonly", "normal"):
        return False
    name = function.params[0].name
    first, *inner = golden.scope.walk()
    if any(item.target == name for item in first.assigns) or any(_names(scope.uses, name) for scope in inner):
        return False
    parts = (expr for item in all_statements(golden.statements) for expr in _parts(item))
    bases = {expr.items[0].start for expr in parts if _is_item(expr, name)}
    return all(use.start in bases for use in _names(first.uses, name))


def _names(uses: Sequence[Use], name: str) -> list[Use]:
    return [use for use in uses if use.name.partition(".")[0] == name]


def _parts(item: Statement) -> Iterator[Expr]:
    return (part for expr in item.exprs for part in expr.walk())


def _is_item(expr: Expr, name: str) -> bool:
    return expr.kind == "subscript" and expr.items[0].kind == "name" and expr.items[0].text == name


def _read(golden: Body) -> Iterator[Expr]:
    """Yield the items that a golden function reads in every run, except those that it writes itself."""
    assert golden.function is not None
    name = golden.function.params[0].name
    kept = [part for item in all_statements(golden.statements) if item.kind != "augassign" for part in _stored(item)]
    stored = {part.span for part in kept}
    written = {part.items[1].value if part.items[1].kind == "const" else None for part in kept if _is_item(part, name)}
    for item in _surely_run(golden.statements) if None not in written else ():
        left_out = SpanSet(_may_not_run(item))
        for expr in sure_expressions(item):
            read = _is_item(expr, name) and expr.span not in stored and expr.start not in left_out
            if read and expr.items[1].value not in written:
                yield expr


def _stored(item: Statement) -> Iterator[Expr]:
    """Yield the targets of a statement; those of a tuple one by one."""
    waiting = list(targets(item))
    while waiting:
        target = waiting.pop()
        if target.kind in ("tuple", "list", "starred"):
            waiting += target.items
        else:
            yield target


def _may_not_run(item: Statement) -> Iterator[Span]:
    """Yield the comprehensions of a statement, which may have no iteration, and the annotation of a local variable."""
    yield from (expr.span for expr in own_expressions(item) if expr.kind in _REPEATED)
    if item.kind == "annassign":
        yield item.exprs[1].span


def _surely_run(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements that run in every call of a function, including those in ``with`` blocks of torch contexts."""
    for item in statements:
        inner = list(all_statements([item]))
        if item.kind in ("expr", "assign", "annassign", "augassign", "return", "with"):
            yield item
        if item.kind == "with" and all(context.callee.startswith("torch.") for context in item.exprs[::2]):
            yield from _surely_run(item.blocks[0])
        if any(part.kind in _MAY_LEAVE for part in inner):
            return

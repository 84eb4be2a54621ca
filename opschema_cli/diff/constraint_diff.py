"""Changes of the conditions that every call of an operator satisfies, compared by their meaning as far as that is decidable.

Two sets of conditions are the same if their canonical forms are, but for consistently renamed sizes. A condition that the new side
adds narrows calls, unless an earlier one implies it; one that reads a returned value is a promise to callers.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from opschema_cli.diff.entries import Condition, Entry, Output, Parameter
from opschema_cli.diff.model import Audience, Change
from opschema_cli.diff.size_equalities import Sizes
from opschema_cli.schema.canonical_rule import canonical_rules
from opschema_cli.schema.expression import ExpressionSyntaxError, parse_expression
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.source.text import Place


class _Rule(msgspec.Struct, frozen=True):
    """One condition in canonical form, the names that it reads, its place, and the text that reports show."""

    text: str
    names: tuple[str, ...]
    place: Place | None
    shown: str


def constraint_changes(old: Entry, new: Entry) -> Iterator[Change]:
    """The changes of the conditions of an operator, and of the combinations of dtypes that it takes."""
    if _texts(old.constraints) != _texts(new.constraints):
        yield from _of_rules(_with_new_names(old, new), new)
    yield from _of_combinations(old, new)


def _texts(items: Sequence[Condition]) -> list[str]:
    return [item.text for item in items]


def _with_new_names(old: Entry, new: Entry) -> Entry:
    """Return the earlier side with the new names of its returned values, which are reported as such: `out.ndim == 2` is now a
    condition on `y`.
    """
    if len(old.returns) != len(new.returns):
        return old
    pairs = zip(old.returns, new.returns, strict=True)
    before, now = _fixed(old, old), _fixed(new, new)
    names = {one.name: other.name for one, other in pairs if one.name not in now and other.name not in before}
    if not names:
        return old
    constraints = tuple(replace(item, text=_renamed(item.text, names)) for item in old.constraints)
    returns = tuple(replace(item, name=names.get(item.name, item.name)) for item in old.returns)
    return replace(old, constraints=constraints, returns=returns)


def _of_rules(old: Entry, new: Entry) -> Iterator[Change]:
    before, now = _rules(old.constraints), _rules(new.constraints)
    lost, gained = _without(before, now), _without(now, before)
    if _same_but_for_sizes(old, new, lost, gained):
        return
    stated, kept = (_Stated([*_rules(side.constraints), *_declared(side)], _fixed(old, new)) for side in (old, new))
    dropped = [item for item in lost if not kept.implies(item, stated)]
    is_edit, fixed = len(lost) == len(gained), _fixed(old, new)
    for item in gained:
        others = [one for one in lost if is_edit and set(one.names) & fixed == set(item.names) & fixed]
        earlier = others[0] if len(others) == 1 else None
        if earlier is not None:
            lost.remove(earlier)
        rivals = [one for one in dropped if set(one.names) & set(item.names) & fixed]
        yield _gained(old, new, item, earlier, is_implied=stated.implies(item, kept), is_restated=bool(rivals))
    for item in lost:
        if not kept.implies(item, stated):
            yield _lost(old, new, item)


def _gained(
    old: Entry, new: Entry, item: _Rule, earlier: _Rule | None, *, is_implied: bool, is_restated: bool
) -> Change:
    place, tail = (earlier.place, f"; it was `{earlier.shown}`") if earlier is not None else (None, "")
    narrows = not _reads_result(new, item) and _reads_only(old, item) and not is_implied
    hits: tuple[Audience, ...] = ()
    if narrows:
        # Where earlier rules of the same arguments were dropped, it is not decidable whether fewer calls are left.
        hits = ("semantics",) if is_restated else ("callers",)
    if earlier is not None and _reads_result(new, item):
        hits = ("semantics",)
    words = "calls must now satisfy" if narrows and not is_restated else "the declaration now states"
    return Change("constraint", old.name, f"{words} `{item.shown}`{tail}", place, item.place, hits)


def _lost(old: Entry, new: Entry, item: _Rule) -> Change:
    if _reads_result(old, item):
        message = f"the declaration does not state `{item.shown}` any more"
        return Change("constraint", old.name, message, item.place, None, ("semantics",))
    message = f"calls need not satisfy `{item.shown}` any more"
    return Change("constraint", old.name, message, item.place, None)


# -- rules -------------------------------------------------------------------------------------------------------------


def _rules(items: Iterable[Condition]) -> list[_Rule]:
    found: list[_Rule] = []
    for item in items:
        texts = canonical_rules(item.text)
        own = " ".join(item.text.split())
        found += [_Rule(text, _names(text), item.place, own if len(texts) == 1 else text) for text in texts]
    return found


def _declared(entry: Entry) -> list[_Rule]:
    """The declared shapes as rules."""
    tensors: tuple[Parameter | Output, ...] = (*entry.arguments, *entry.returns)
    shapes = [(item.name, item.shape) for item in tensors if item.shape]
    rules = [parse_shape(shape).as_rule(name) for name, shape in shapes]
    return _rules(Condition(rule.snippet) for rule in rules if rule is not None)


def _without(items: Sequence[_Rule], others: Sequence[_Rule]) -> list[_Rule]:
    known = {item.text for item in others}
    return [item for item in items if item.text not in known]


@lru_cache(maxsize=8192)
def _names(text: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(item.name for item in parse_expression(text).names()))
    except ExpressionSyntaxError:
        return ()


def _reads_result(entry: Entry, item: _Rule) -> bool:
    arguments = {one.name for one in entry.arguments}
    return any(one.name in item.names and one.name not in arguments for one in entry.returns)


def _reads_only(entry: Entry, item: _Rule) -> bool:
    """Whether a condition concerns calls of the earlier side: it only reads arguments of it, or their sizes."""
    arguments = {one.name for one in entry.arguments}
    sizes = {name for rule in (*_rules(entry.constraints), *_declared(entry)) for name in rule.names}
    return bool(item.names) and all(name in arguments or name in sizes for name in item.names)


# -- equal but for the names of sizes ----------------------------------------------------------------------------------


def _same_but_for_sizes(old: Entry, new: Entry, lost: Sequence[_Rule], gained: Sequence[_Rule]) -> bool:
    """Whether the new conditions are the earlier ones with sizes renamed one to one."""
    fixed = _fixed(old, new)
    kept = {name for rule in _without(_rules(old.constraints), lost) for name in rule.names}
    sizes: dict[str, str] = {}
    left = list(gained)
    for item in lost:
        other = next((one for one in left if _pattern(one, fixed) == _pattern(item, fixed)), None)
        if other is None:
            return False
        left.remove(other)
        for one, two in zip(_sizes(item, fixed), _sizes(other, fixed), strict=True):
            if sizes.setdefault(one, two) != two or (one != two and one in kept):
                return False
    return not left and len(set(sizes.values())) == len(sizes)


def _fixed(old: Entry, new: Entry) -> set[str]:
    """The names of arguments and returns; other names are sizes."""
    arguments = {one.name for side in (old, new) for one in side.arguments}
    return arguments | {one.name for side in (old, new) for one in side.returns}


def _sizes(item: _Rule, fixed: set[str]) -> list[str]:
    return [name for name in item.names if name not in fixed]


def _pattern(item: _Rule, fixed: set[str]) -> str:
    """Return the text with the names of sizes replaced by numbers, in order of first use."""
    numbers = {name: f"_{number}" for number, name in enumerate(_sizes(item, fixed))}
    return _renamed(item.text, numbers) if item.names else item.text


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A rule with other names; one that cannot be parsed is returned unchanged."""
    tree = _expression(text)
    if tree is None:
        return text
    tree = copy.deepcopy(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
    return ast.unparse(tree)


# -- implied conditions ------------------------------------------------------------------------------------------------


class _Stated:
    """The rules of a side, with the sizes that they equate."""

    def __init__(self, rules: Sequence[_Rule], arguments: Collection[str]) -> None:
        self.sizes = Sizes((item.text for item in rules), arguments)
        self._texts = {text for item in rules for text in (item.text, *self.sizes.rewritten(item.text))}
        self._trees = [tree for tree in map(_expression, self._texts) if tree is not None]

    def implies(self, item: _Rule, other: _Stated) -> bool:
        """Whether these rules imply one of another side, as far as their forms decide that."""
        return self._implies(item.text) or all(map(self._implies, other.sizes.defined(item.text)))

    def _implies(self, text: str) -> bool:
        """Whether the rules imply a condition, or one of those that it joins with ``or``."""
        tree = _expression(text)
        if self._holds(text) or all(map(self._holds, self.sizes.rewritten(text))):
            return True
        choices = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.Or) else []
        return any(self._implies(_text(choice)) for choice in choices)

    def _holds(self, text: str) -> bool:
        return text in self._texts or any(_implies(tree, _expression(text)) for tree in self._trees)


@lru_cache(maxsize=8192)
def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=65536)
def _text(node: ast.expr) -> str:
    """The text of a tree that is kept."""
    return ast.unparse(node)


def _implies(given: ast.expr, wanted: ast.expr | None) -> bool:
    """``a`` implies ``a or b``; a bound a wider one, a divisor its divisors, a shape its rank, a choice a wider choice."""
    if isinstance(wanted, ast.BoolOp) and isinstance(wanted.op, ast.Or):
        parts = given.values if isinstance(given, ast.BoolOp) and isinstance(given.op, ast.Or) else [given]
        texts = {_text(value) for value in wanted.values}
        return all(_text(part) in texts or any(_implies(part, value) for value in wanted.values) for part in parts)
    if not _is_single(given) or not _is_single(wanted):
        return False
    one, other = (given.left, given.ops[0], given.comparators[0]), (wanted.left, wanted.ops[0], wanted.comparators[0])  # type: ignore[attr-defined, union-attr]
    return _bounds(one, other) or _divides(one, other) or _has_rank(one, other) or _widens(one, other)


_Link = tuple[ast.expr, ast.cmpop, ast.expr]


def _is_single(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1


def _bounds(given: _Link, wanted: _Link) -> bool:
    """``x <= 4`` implies ``x <= 8``, and ``8 <= x`` implies ``4 <= x``."""
    if type(given[1]) is not type(wanted[1]) or not isinstance(given[1], ast.Lt | ast.LtE):
        return False
    upper, others = (_number(given[2]), _number(wanted[2])), (given[0], wanted[0])
    if upper[0] is not None and upper[1] is not None:
        return _same(*others) and upper[0] <= upper[1]
    lower = _number(given[0]), _number(wanted[0])
    return lower[0] is not None and lower[1] is not None and _same(given[2], wanted[2]) and lower[0] >= lower[1]


def _divides(given: _Link, wanted: _Link) -> bool:
    """``0 == x % 16`` implies ``0 == x % 8``."""
    parts = [_remainder(item) for item in (given, wanted)]
    (one, two), (other, divisor) = parts[0] or (None, 0), parts[1] or (None, 0)
    return one is not None and other is not None and _same(one, other) and bool(divisor) and two % divisor == 0


def _remainder(item: _Link) -> tuple[ast.expr, int] | None:
    sides = (item[0], item[2]) if isinstance(item[1], ast.Eq) else ()
    if not any(_number(side) == 0 for side in sides):
        return None
    for side in sides:
        divisor = _number(side.right) if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod) else None
        if divisor is not None and isinstance(side, ast.BinOp):
            return side.left, divisor
    return None


def _has_rank(given: _Link, wanted: _Link) -> bool:
    """``x.shape == (M, N)`` implies ``x.ndim == 2``."""
    if not isinstance(given[1], ast.Eq) or not isinstance(wanted[1], ast.Eq):
        return False
    shapes = {_text(a): len(b.elts) for a, b in _both(given) if isinstance(b, ast.Tuple)}
    ranks = [(_text(a), _number(b)) for a, b in _both(wanted)]
    return any(
        name.endswith(".ndim") and rank is not None and shapes.get(f"{name.removesuffix('.ndim')}.shape") == rank
        for name, rank in ranks
    )


def _widens(given: _Link, wanted: _Link) -> bool:
    """``x in (1, 2)`` and ``x == 1`` imply ``x in (1, 2, 3)``."""
    if not isinstance(wanted[1], ast.In) or not isinstance(wanted[2], ast.Tuple):
        return False
    choices = {_text(item) for item in wanted[2].elts}
    if isinstance(given[1], ast.In) and isinstance(given[2], ast.Tuple):
        return _same(given[0], wanted[0]) and {_text(item) for item in given[2].elts} <= choices
    return isinstance(given[1], ast.Eq) and any(_same(a, wanted[0]) and _text(b) in choices for a, b in _both(given))


def _both(item: _Link) -> tuple[tuple[ast.expr, ast.expr], tuple[ast.expr, ast.expr]]:
    return (item[0], item[2]), (item[2], item[0])


def _same(one: ast.expr, other: ast.expr) -> bool:
    return _text(one) == _text(other)


def _number(node: ast.expr) -> int | None:
    return node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


# -- combinations of dtypes --------------------------------------------------------------------------------------------


def _of_combinations(old: Entry, new: Entry) -> Iterator[Change]:
    before, now = (dict(map(_combination, side.combinations)) for side in (old, new))
    if before and now:
        for key in sorted({*before} - {*now}):
            message = f"it does not take the dtypes {key} together any more"
            yield Change("dtypes", old.name, message, before[key], None, ("callers",))
        for key in sorted({*now} - {*before}) if before else ():
            yield Change("dtypes", old.name, f"it now takes the dtypes {key} together", None, now[key])
    elif now:
        message = f"it now takes certain combinations of dtypes only, {len(now)} in number"
        yield Change("dtypes", old.name, message, None, next(iter(now.values())), ("callers",))
    elif before:
        yield Change("dtypes", old.name, "it now takes dtypes in any combination", next(iter(before.values())), None)


def _combination(item: Condition) -> tuple[str, Place | None]:
    return item.text, item.place

"""Sizes that rules equate, so that rules which state the same in other words can be compared.

`x.shape == (M, N)` and `w.shape == (N,)` say that `w.shape[0]` is `x.shape[1]`; a name of a size stands for the sizes that it is
equal to. They give the rank of `x`, too, with which `x.shape[-1]` is `x.shape[1]`, and `y.shape == x.shape` is three equations.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from opschema_cli.schema.canonical_rule import canonical_rules

_HIGHEST = 64
"""The highest rank that torch has."""


class Sizes:
    """The equal sizes of some rules; ``arguments`` are names that no size defines."""

    def __init__(self, rules: Iterable[str], arguments: Collection[str]) -> None:
        self._arguments = arguments
        self._same: dict[str, str] = {}
        self._definitions: dict[str, str] = {}
        self._rewritten: dict[str, tuple[str, ...]] = {}
        parts = [part for text in rules for part in expanded(text)]
        self._ranks = dict(found for part in parts if (found := _rank_of(part)) is not None)
        for part in parts:
            for equation in self._by_rank(part):
                self._equate(equation)

    def rewritten(self, text: str) -> tuple[str, ...]:
        """The conditions of a rule in canonical form, each size as the first one that it is equal to; without those that say
        that a size is itself.
        """
        if text not in self._rewritten:
            self._rewritten[text] = self._replaced(text, self.first)
        return self._rewritten[text]

    def defined(self, text: str) -> tuple[str, ...]:
        """Return the conditions with only the names of sizes replaced, each by the first size of an argument that defines it."""
        return self._replaced(text, lambda size: self._definitions.get(size, size))

    def _replaced(self, text: str, replacement: Callable[[str], str]) -> tuple[str, ...]:
        found: list[str] = []
        for part in (found for whole in expanded(text) for found in self._by_rank(whole)):
            tree = _parsed(part)
            if tree is None:
                found.append(part)
                continue
            texts = canonical_rules(ast.unparse(_Renamer(self, replacement).visit(tree)))
            found += [item for item in texts if not _is_trivial(item)]
        return tuple(found)

    def _by_rank(self, text: str) -> Iterator[str]:
        """Yield a condition with the indexes that the known ranks determine: sizes counted from the end, and equal shapes size
        by size.
        """
        tree = _parsed(text)
        if tree is None or ".shape" not in text:
            yield text
            return
        owners = [_owner(side) for side in _equation(tree) or ()]
        rank = next((self._ranks[owner] for owner in owners if owner in self._ranks), None)
        if len(owners) == 2 and all(owners) and rank is not None:
            one, other = owners
            yield from canonical_rules(f"{one}.ndim == {other}.ndim")
            for place in range(rank):
                yield from canonical_rules(f"{one}.shape[{place}] == {other}.shape[{place}]")
        else:
            yield from canonical_rules(ast.unparse(_FromEnd(self._ranks).visit(tree))) if "[-" in text else (text,)

    def first(self, size: str) -> str:
        """Return the size that represents all equal ones: one of an argument, if there is any."""
        while self._same.get(size, size) != size:
            size = self._same[size]
        return size

    def is_size(self, node: ast.expr) -> bool:
        """Whether an expression is a name, `x.shape[0]`, `x.ndim`, or an integer."""
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.Attribute):
            return node.attr == "ndim" and isinstance(node.value, ast.Name)
        is_item = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        owner = node.value if is_item and isinstance(node, ast.Subscript) else None
        return isinstance(owner, ast.Attribute) and owner.attr == "shape" and isinstance(owner.value, ast.Name)

    def _equate(self, text: str) -> None:
        sides = _equation(_parsed(text))
        if sides is not None and any(map(self.is_size, sides)):
            for one, other in (sides, sides[::-1]):
                if isinstance(one, ast.Name) and one.id not in self._arguments and not isinstance(other, ast.Name):
                    self._definitions.setdefault(one.id, ast.unparse(other))
            first, second = sorted(
                (self.first(ast.unparse(side)) for side in sides), key=lambda item: ("." not in item, item)
            )
            self._same[second] = first


def _rank(size: str) -> tuple[bool, bool, bool, str]:
    """The order of equal sizes: integers, those of arguments, names, expressions."""
    return not size.isdigit(), " " in size, "." not in size, size


@lru_cache(maxsize=8192)
def expanded(text: str) -> tuple[str, ...]:
    """Return the conditions of a rule, with those on a shape split by size: `x.shape == (M, N)` as `x.ndim == 2` and its sizes."""
    return tuple(_expanded(text))


def _expanded(text: str) -> Iterator[str]:
    for part in canonical_rules(text):
        sides = _equation(_parsed(part))
        shape = next((pair for pair in (sides, sides[::-1]) if isinstance(pair[1], ast.Tuple)), None) if sides else None
        if shape is None or not isinstance(shape[1], ast.Tuple) or not ast.unparse(shape[0]).endswith(".shape"):
            yield part
            continue
        owner = ast.unparse(shape[0]).removesuffix(".shape")
        yield from canonical_rules(f"{owner}.ndim == {len(shape[1].elts)}")
        for place, size in enumerate(shape[1].elts):
            yield from canonical_rules(f"{owner}.shape[{place}] == {ast.unparse(size)}")


def _rank_of(text: str) -> tuple[str, int] | None:
    """The tensor and its rank that a condition like `x.ndim == 2` gives."""
    sides = _equation(_parsed(text))
    for one, other in (sides, sides[::-1]) if sides is not None else ():
        is_rank = isinstance(one, ast.Attribute) and one.attr == "ndim" and isinstance(one.value, ast.Name)
        if is_rank and isinstance(other, ast.Constant) and type(other.value) is int and 0 <= other.value <= _HIGHEST:
            return ast.unparse(one).removesuffix(".ndim"), other.value
    return None


def _owner(node: ast.expr) -> str:
    """Return the name of the tensor whose shape an expression is; empty for anything else."""
    is_shape = isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name)
    return ast.unparse(node).removesuffix(".shape") if is_shape else ""


class _FromEnd(ast.NodeTransformer):
    """Writes `x.shape[-1]` as `x.shape[1]` where the rank is known."""

    def __init__(self, ranks: Mapping[str, int]) -> None:
        self._ranks = ranks

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        rank, place = self._ranks.get(_owner(node.value)), node.slice
        is_negative = isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub)
        number = place.operand if is_negative and isinstance(place, ast.UnaryOp) else None
        back = number.value if isinstance(number, ast.Constant) and type(number.value) is int else 0
        if rank is None or not 0 < back <= rank:
            return self.generic_visit(node)  # type: ignore[return-value]
        return ast.Subscript(node.value, ast.Constant(rank - back), node.ctx)


class _Renamer(ast.NodeTransformer):
    def __init__(self, sizes: Sizes, replacement: Callable[[str], str]) -> None:
        self._sizes = sizes
        self._replacement = replacement

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._replaced(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A rank."""
        return self._replaced(node) if self._sizes.is_size(node) else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return self._replaced(node) if self._sizes.is_size(node) else self.generic_visit(node)  # type: ignore[return-value]

    def _replaced(self, node: ast.expr) -> ast.expr:
        text = ast.unparse(node)
        first = self._replacement(text)
        return (_parsed(first) or node) if first != text else node


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _equation(node: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        return node.left, node.comparators[0]
    return None


@lru_cache(maxsize=8192)
def _is_trivial(text: str) -> bool:
    sides = _equation(_parsed(text))
    return sides is not None and ast.unparse(sides[0]) == ast.unparse(sides[1])

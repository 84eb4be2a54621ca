"""Sizes that rules equate, so that rules which state the same in other words can be compared.

`x.shape == (M, N)` and `w.shape == (N,)` say that `w.shape[0]` is `x.shape[1]`; a name of a size stands for the sizes that it is
equal to.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

from opschema_cli.schema.canonical_rule import canonical_rules


class Sizes:
    """The equal sizes of some rules; ``arguments`` are names that no size defines."""

    def __init__(self, rules: Iterable[str], arguments: Collection[str]) -> None:
        self._arguments = arguments
        self._same: dict[str, str] = {}
        self._definitions: dict[str, str] = {}
        self._rewritten: dict[str, tuple[str, ...]] = {}
        for text in rules:
            for part in expanded(text):
                self._equate(part)

    def rewritten(self, text: str) -> tuple[str, ...]:
        """The conditions of a rule in canonical form, each size as the first one that it is equal to; without those that say
        that a size is itself.
        """
        if text not in self._rewritten:
            self._rewritten[text] = self._replaced(text, self.first)
        return self._rewritten[text]

    def defined(self, text: str) -> tuple[str, ...]:
        """The same with the names of sizes alone replaced, each by the first size of an argument that defines it."""
        return self._replaced(text, lambda size: self._definitions.get(size, size))

    def _replaced(self, text: str, replacement: Callable[[str], str]) -> tuple[str, ...]:
        found: list[str] = []
        for part in expanded(text):
            tree = _parsed(part)
            if tree is None:
                found.append(part)
                continue
            texts = canonical_rules(ast.unparse(_Renamer(self, replacement).visit(tree)))
            found += [item for item in texts if not _is_trivial(item)]
        return tuple(found)

    def first(self, size: str) -> str:
        """The size that stands for all that are equal to one: one of an argument, if there is any."""
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
    """The conditions of a rule, those of a shape size by size: `x.shape == (M, N)` as `x.ndim == 2` and its sizes."""
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

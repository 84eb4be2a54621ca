"""Counts of elements and bytes as sums of products of extents, which can be compared."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

MAX_TERMS = 64
"""Maximum number of products in one sum."""

Product = tuple[str, ...]


class TooLargeError(ValueError):
    """Raised when a count has too many terms."""


class Count(msgspec.Struct, frozen=True):
    """A sum as a mapping from products of extents (the sorted names; empty for 1) to their nonzero coefficients."""

    terms: Mapping[Product, int]

    @classmethod
    def of(cls, value: int) -> Count:
        """Make a count from a number."""
        return cls({(): value} if value else {})

    @classmethod
    def named(cls, name: str) -> Count:
        """Make a count from an extent that is only known by name."""
        return cls({(name,): 1})

    @property
    def value(self) -> int | None:
        """The number; None if it depends on an extent."""
        return self.terms.get((), 0) if set(self.terms) <= {()} else None

    def __add__(self, other: Count) -> Count:
        return _count([*self.terms.items(), *other.terms.items()])

    def __mul__(self, other: Count) -> Count:
        if len(self.terms) * len(other.terms) > MAX_TERMS:
            raise TooLargeError("the sum is too long")
        pairs = [(one, two) for one in self.terms.items() for two in other.terms.items()]
        return _count([(tuple(sorted(a + b)), x * y) for (a, x), (b, y) in pairs])

    def __sub__(self, other: Count) -> Count:
        return self + Count.of(-1) * other

    def ratio(self, other: Count) -> int | None:
        """Return the integer that ``other`` must be multiplied by to give this count; None if there is none."""
        if not other.terms or set(self.terms) != set(other.terms):
            return None
        found = {divmod(self.terms[product], factor) for product, factor in other.terms.items()}
        ((whole, rest),) = found if len(found) == 1 else {(0, 1)}
        return whole if not rest else None


def _count(terms: list[tuple[Product, int]]) -> Count:
    found: dict[Product, int] = {}
    for product, factor in terms:
        found[product] = found.get(product, 0) + factor
    if len(found) > MAX_TERMS:
        raise TooLargeError("the sum is too long")
    return Count({product: factor for product, factor in found.items() if factor})

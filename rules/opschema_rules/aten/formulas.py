"""The formulas of derivatives.yaml as text: torchgen searches C++ with patterns, and so does this."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

GRADIENT_INDEX = re.compile(r"(?:^|\W)grads\[(\d+)\]")
"""``torchgen``'s own pattern for a gradient by its number (load_derivatives.GRAD_INDEX_REGEX)."""

FORBIDDEN = re.compile(r"(?:\.|->)((?:sizes|strides)\(\)|size\(-?\d+\))")
"""Calls that return sizes as plain ints, where torchgen requires SymInts."""

MANY = 10**9
"""More than there can be of anything."""

_WORD = re.compile(
    r"""/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:\d[\w.]*)|((?:->|\.|::)\s*)?([A-Za-z_]\w*)(\s*(?:\(|::))?""",
    re.DOTALL,
)
_BRACKET = re.compile(r"""/\*.*?\*/|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'|[][(){}]""", re.DOTALL)
_CLOSING = {")": "(", "]": "[", "}": "{"}


def bare_words(text: str) -> dict[str, int]:
    """Return the unqualified names in C++ and their places: no members, calls, namespaces and names in these."""
    found: dict[str, int] = {}
    qualified = False
    for match in _WORD.finditer(text):
        member, name, called = match.groups()
        if name is not None and not (member or called or qualified):
            found.setdefault(name, match.start(2))
        qualified = called is not None and called.endswith("::")
    return found


@lru_cache(maxsize=4096)
def word(name: str) -> re.Pattern[str]:
    """Return a pattern for the name as a word (``torchgen.utils.IDENT_REGEX``), without the surrounding text."""
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")


def uses(text: str, name: str) -> bool:
    """Whether the name occurs in the formula as a word."""
    return name in text and word(name).search(text) is not None


def places(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the name as a word."""
    for match in word(name).finditer(text):
        yield match.span()


def gradient_indices(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield each ``grads[i]``: its number and place."""
    for match in GRADIENT_INDEX.finditer(text):
        yield number_of(match.group(1)), match.end() - len(f"grads[{match.group(1)}]"), match.end()


def number_of(digits: str) -> int:
    """Return an index as a number; one that no operator can have may be truncated."""
    return int(digits) if len(digits) < 10 else MANY


def indexed_only(texts: Iterable[str]) -> bool:
    """Whether ``grads`` only occurs with an index, counted as torchgen does."""
    plain = numbered = 0
    for text in texts:
        plain += len(re.findall(r"(?:^|\W)grads(?:$|\W)", text))
        numbered += len(GRADIENT_INDEX.findall(text))
    return plain == numbered


def unbalanced(text: str) -> tuple[int, str] | None:
    """Return the first unmatched bracket, and what is wrong with it; brackets in strings do not count."""
    opened: list[tuple[str, int]] = []
    for match in _BRACKET.finditer(text):
        bracket = match.group()
        if bracket in "([{":
            opened.append((bracket, match.start()))
        elif bracket in _CLOSING:
            if not opened:
                return match.start(), f"nothing opens the `{bracket}`"
            if opened[-1][0] != _CLOSING[bracket]:
                return match.start(), f"`{bracket}` closes the `{opened[-1][0]}` of another kind"
            opened.pop()
    return (opened[-1][1], f"nothing closes the `{opened[-1][0]}`") if opened else None


@lru_cache(maxsize=4096)
def _attribute(name: str) -> re.Pattern[str]:
    """The attribute of an argument or output that torchgen evaluates early and saves (``load_derivatives.saved_variables``)."""
    members = "sym_sizes|sym_blocksize|options|numel|sym_numel|scalar_type|dim|sym_strides|layout|is_conj"
    functions = "zeros_like|to_args_sizes|to_args_sizes_symint|to_args_scalartypes|TensorGeometry"
    # As there, the dot is any character, and a longer name may stand before.
    return re.compile(
        rf"{name}.(?:{members})\(\)|{name}->sym_sizes\(\)|{name}.sym_size\(-?\w+\)|(?:{functions})\({name}\)"
    )


def with_saved(text: str, names: Iterable[str]) -> str:
    """The formula with a name of its own for each saved attribute, as torchgen then searches it."""
    for name in names:
        if name in text:
            text = _attribute(name).sub(f"{name}_saved", text)
    return text


def saves(text: str, name: str) -> bool:
    """Whether a backward formula makes torchgen save the argument, or a property of it."""
    return name in text and (uses(text, name) or _attribute(name).search(text) is not None)


def saves_of(text: str, name: str) -> re.Match[str] | None:
    """Return the part of the argument or output that a backward formula makes torchgen save; None if all of it, or nothing."""
    return _attribute(name).search(text) if name in text else None


def element_wise(text: str, argument: str) -> str:
    """The forward formula that torchgen makes of a backward one for ``auto_element_wise``."""
    text = re.sub(r"(^|\W)grad($|\W)", rf"\g<1>{argument}_t.conj()\g<2>", text)
    return re.sub(rf"(^|\W){re.escape(argument)}($|\W)", rf"\g<1>{argument}_p\g<2>", text)

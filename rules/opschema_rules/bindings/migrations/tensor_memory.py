"""Textual analysis of C++ function bodies: which tensors they write, access or return."""

from __future__ import annotations

import re


def writes(body: str, name: str) -> bool:
    """Whether a body is known to write a tensor: by an in-place method, an out variant, or an assignment to a part."""
    return any(_writes_as(body, item) for item in _aliases(body, name, _UNWRAPPED))


def _writes_as(body: str, name: str) -> bool:
    own = re.escape(name)
    in_place = rf"\b{own}\s*\.\s*(?!(?:set_)?requires_grad_?\b)\w*[a-z0-9]_\s*\("
    unwrapped = rf"\b{own}\s*(?:\.\s*value\s*\(\s*\)\s*\.|->)\s*(?!(?:set_)?requires_grad_?\b)\w*[a-z0-9]_\s*\("
    assigned = rf"\b{own}\s*(?:\[[^\]]*\]|\.\s*index\([^;]*?\))\s*[-+*/]?=[^=]"
    others = rf"\b{own}\s*\.\s*mutable_data_ptr|\b\w+_out\s*\(\s*{own}\b"
    return re.search(f"{in_place}|{unwrapped}|{assigned}|{others}", body) is not None


_UNWRAPPED = "value"
_SHARED = (
    "value|value_or|contiguous|to|view\\w*|reshape\\w*|flatten|unflatten|squeeze|unsqueeze|transpose|permute|movedim|expand\\w*|"
    "narrow|select|slice|index|t|detach|alias|as_strided|unfold|data|cpu|cuda|type|toType|"
    "T|mT|H|mH|numpy_T|matrix_H|adjoint|diagonal|real|imag|ravel|swapaxes|swapdims|moveaxis|conj|"
    r"\w*[a-z0-9]_"
)
"""Methods whose result may share the memory of the tensor, or of the optional one; the last ones change it in place."""

_ASSIGNED = re.compile(
    r"(?<![\w.>\]])(\w+)\s*=(?!=)\s*(?=([^;{}]{0,400}))|\b(?:auto|Tensor)\b[\s&*]+(\w+)\s*[({](?=([^;{}]{0,400})[)}]\s*;)"
)
"""A variable and the expression assigned to it, also inside a lambda that is assigned itself."""


def _aliases(body: str, name: str, methods: str) -> list[str]:
    """Return a tensor, and the variables that are set to it or to the result of some of its methods."""
    found = [name]
    values = [(match[1] or match[3], match[2] or match[4] or "") for match in _ASSIGNED.finditer(body)]
    for one in found:  # which grows meanwhile
        known = set(found)
        found += [name for name, value in values if name not in known and one in value and _shares(value, one, methods)]
    return found


def _shares(text: str, name: str, methods: str) -> bool:
    """Whether an expression may be the tensor itself, or share its memory through some methods or functions of that name."""
    ahead = rf"(?:(?:std::move|(?:at|torch)::(?:{methods}))\s*\(\s*)*"
    own = re.compile(rf"(?:\A|[?:](?!:)){ahead}[*(\s]*{ahead}\b{re.escape(name)}\b")
    return any(_goes_on(text, match.end(), methods) for match in own.finditer(text))


def _goes_on(text: str, at: int, methods: str) -> bool:
    """Whether the methods and indices after a tensor keep its memory: neither another method nor an operator follows."""
    step = re.compile(rf"\s*(?:(?:\.|->)\s*(?:{methods})\s*\(|{_INDEX if methods == _SHARED else '(?!)'})")
    while (match := step.match(text, at)) is not None:
        at = _closed(text, match.end())
    return _NEW.match(text, at) is None


_INDEX = r"\["
_NEW = re.compile(r"\s*(?:\.|->|[-+*/%&|^<>=!])")
"""A method whose result is another tensor, or an operator."""


def _closed(text: str, at: int) -> int:
    """Return the end of a bracket's contents, from after the opening one; the end of the text if it is not closed."""
    depth = 1
    while at < len(text) and depth:
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    return at


def returns(body: str, name: str) -> bool:
    """Whether a body returns a tensor itself or a view of it, alone or among other results."""
    results = re.findall(r"\breturn\b([^;]{0,2000})", body)
    for own in _aliases(body, name, _SHARED):
        among = re.compile(rf"[{{(,]\s*{re.escape(own)}\s*[,)}}]")
        if any(_shares(result, own, _SHARED) or _in_braces(result, among) for result in results):
            return True
    return False


def _in_braces(result: str, among: re.Pattern[str]) -> bool:
    """Whether a result is a list or tuple with an item that ``among`` matches."""
    return re.match(
        r"\s*(?:\{|std::(?:make_tuple|vector|tuple|make_pair|pair|forward_as_tuple)\b)", result
    ) is not None and (among.search(result) is not None)


def may_write(body: str, name: str) -> bool:
    """Whether a body uses the memory of a tensor otherwise than by a pointer to constants, or passes it to other functions."""
    return any(_may_write_as(body, item) for item in _aliases(body, name, _SHARED))


def _may_write_as(body: str, name: str) -> bool:
    own = rf"\b{re.escape(name)}\s*(?:\.\s*value\s*\(\s*\)\s*\.|\.|->)\s*"
    pointer = rf"{own}(?:data_ptr|data)\b"
    constant = rf"\bconst\s+[\w:]+\s*\*\s*(?:const\s+)?(?:\w+\s*=\s*|>\s*\(\s*){pointer}|{own}data_ptr\s*<\s*const\b"
    memory = len(re.findall(rf"{own}(?:data_ptr|packed_accessor\w*|accessor|data)\b", body))
    called = unknown_calls(body) or "(?!)"
    itself = rf"\b{re.escape(name)}\b(?:\s*(?:\.|->)\s*(?:{_SHARED})\s*\(|(?!\s*(?:\.|->)))"
    passed = re.search(rf"(?<![\w.:>])(?:{called})\s*(?:<[^<>()]*>)?\([^;]{{0,2000}}?{itself}", body)
    return memory > len(re.findall(constant, body)) or passed is not None or _writes_as(body, name)


_CALL = re.compile(r"(?<![\w.>])((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s*(?:<[^<>()]*>\s*)?\(")
_KNOWN_CALL = re.compile(
    r"(?:at|torch|std|c10)::.*|[A-Z][A-Z0-9_]*|if|for|while|switch|return|sizeof|decltype|\w+_cast|u?int\d*_t|int|float|double|bool"
)


def unknown_calls(body: str) -> str:
    """The functions that a body calls and that are not PyTorch's, as a pattern; empty if it calls none."""
    names = {match[1] for match in _CALL.finditer(body)}
    declared = set(re.findall(r"\b(?:at::Tensor|torch::Tensor|auto|std::vector<[^;>]*>+)\s+(\w+)\s*\(", body))
    return "|".join(sorted(re.escape(name) for name in names - declared if not _KNOWN_CALL.fullmatch(name)))

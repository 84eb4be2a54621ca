"""Preprocessor directives of a C++ file: the conditions under which text is compiled, and the macros it defines.

Read from the text alone, line by line, so that branches which split a statement are distinguished as well; what stands in
comments and strings is none. :mod:`opschema_cli.source.expansion` replaces macros. Files that are included are not followed.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from opschema_cli.source.cpp_text import parts_of_file, without_comments
from opschema_cli.source.text import Span


class Condition(msgspec.Struct, frozen=True, array_like=True):
    """An expression of an ``#if`` that is true or false; ``#ifdef X`` tests ``defined(X)``."""

    text: str
    holds: bool = True

    def __str__(self) -> str:
        return self.text if self.holds else f"!({self.text})"


class Macro(msgspec.Struct, frozen=True, array_like=True):
    """A ``#define``. ``parameters`` is None without parentheses; ``body`` is one line; ``span`` covers the directive.

    ``undefined_at`` is the place of the ``#undef`` that is compiled whenever the macro is; -1 if there is none.
    """

    name: str
    parameters: tuple[str, ...] | None
    body: str
    span: Span
    undefined_at: int = -1

    def holds_at(self, offset: int) -> bool:
        """Whether a character is between the definition and its end."""
        return self.span.end <= offset < self.undefined_at


class _Layer(msgspec.Struct, frozen=True, eq=False):
    """Conditions, and the enclosing ones."""

    around: _Layer | None
    own: tuple[Condition, ...]


MAX_LAYERS = 1_000
"""Maximum number of conditions to report around a place, innermost ones first."""


MAX_MACRO = 20_000
"""Maximum length of a macro body to keep, in characters."""


class Directives(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The conditions and macros of one text. From each of ``starts`` on, the layer at the same index applies."""

    starts: tuple[int, ...]
    layers: tuple[_Layer | None, ...]
    macros: tuple[Macro, ...]

    def conditions(self, offset: int) -> tuple[Condition, ...]:
        """Return the conditions under which a character is compiled, outermost first. Include guards are left out."""
        layer = self.layers[bisect.bisect_right(self.starts, offset) - 1]
        found: list[tuple[Condition, ...]] = []
        while layer is not None and len(found) < MAX_LAYERS:
            found.append(layer.own)
            layer = layer.around
        return tuple(dict.fromkeys(item for own in reversed(found) for item in own))

    @property
    def kept(self) -> tuple[Macro, ...]:
        """The macros whose bodies are short enough to be part of a file's facts."""
        return tuple(item for item in self.macros if len(item.body) <= MAX_MACRO)

    @cached_property
    def defined(self) -> Mapping[str, Macro]:
        """The macros that are defined once, or always in the same way, by name."""
        return unambiguous(self.macros)


def unambiguous(macros: Iterable[Macro]) -> dict[str, Macro]:
    """Return macros by name, without those with several different definitions."""
    found: dict[str, Macro] = {}
    doubtful: set[str] = set()
    for macro in macros:
        known = found.setdefault(macro.name, macro)
        if (known.parameters, known.body) != (macro.parameters, macro.body):
            doubtful.add(macro.name)
    return {name: macro for name, macro in found.items() if name not in doubtful}


def is_dead(conditions: Iterable[Condition]) -> bool:
    """Whether text under these conditions is never compiled (``#if 0``), or only for a GPU: registrations and registered code
    run on the host.
    """
    return any((_NEVER if item.holds else _ALWAYS).fullmatch(item.text) for item in conditions)


_GPU = r"__(?:CUDA_ARCH|HIP_DEVICE_COMPILE|SYCL_DEVICE_ONLY)__"
"""The macros that compilers define when they compile a file for a GPU, before or after compiling it for the host."""

_NEVER = re.compile(rf"0|false|defined\({_GPU}\)|{_GPU}(?: ?(?:>=|==) ?[1-9]\d*| ?> ?\d+)?")
_ALWAYS = re.compile(rf"1|true|(?!.*&&)(?:.*\|\| ?)?! ?defined\({_GPU}\)(?: ?\|\|.*)?")


def exclusive(some: Iterable[Condition], others: Iterable[Condition]) -> bool:
    """Whether texts under these conditions are never compiled together: one requires what the other excludes."""
    refused = {Condition(item.text, not item.holds) for item in others}
    return any(item in refused for item in some)


def are_nested(some: Iterable[Condition], others: Iterable[Condition]) -> bool:
    """Whether the conditions of one of two texts include those of the other, so that it is never compiled without the other."""
    one, other = set(some), set(others)
    return one <= other or other <= one


# Reading

CONTINUED = re.compile(r"\\\r?\n")
_WORD = re.compile(r"\s*([a-z]+)(.*)", re.DOTALL)
_DEFINE = re.compile(r"\s*([A-Za-z_]\w*)(?:\(([^)]*)\))?[ \t]*(.*)", re.DOTALL)


class _Directive(msgspec.Struct, frozen=True):
    word: str
    rest: str
    span: Span


def _directives(text: str) -> Iterator[_Directive]:
    for kind, start, end in parts_of_file(text) if "#" in text else ():
        match = _WORD.match(without_comments(text[start + 1 : end])) if kind == "directive" else None
        if match is not None:
            line = start
            while line and text[line - 1] in " \t":
                line -= 1
            yield _Directive(match[1], CONTINUED.sub("", match[2]).strip(), Span(line, end))


class _Group(msgspec.Struct):
    """An open ``#if``: the condition of its current branch, and the conditions that hold because no earlier branch was taken."""

    around: _Layer | None
    asked: str
    refused: _Layer | None


class _Reader(msgspec.Struct):
    starts: list[int] = msgspec.field(default_factory=lambda: [0])
    layers: list[_Layer | None] = msgspec.field(default_factory=lambda: [None])
    macros: list[Macro] = msgspec.field(default_factory=list)
    open: list[_Group] = msgspec.field(default_factory=list)
    latest: dict[str, tuple[int, _Layer | None]] = msgspec.field(default_factory=dict)

    def take(self, item: _Directive, following: _Directive | None) -> None:
        if item.word in ("if", "ifdef", "ifndef"):
            guard = item.word == "ifndef" and following is not None and _defines(following, item.rest)
            around = self.layers[-1]
            self.open.append(_Group(around, _asked(item), around))
            self._note(item, around if guard else _Layer(around, _holding(_asked(item))))
        elif item.word.startswith("el") and self.open:
            group = self.open[-1]
            group.refused = _Layer(group.refused, (_plain(Condition(group.asked, False)),))
            group.asked = _asked(item)
            self._note(item, _Layer(group.refused, _holding(group.asked)) if group.asked else group.refused)
        elif item.word == "endif" and self.open:
            self._note(item, self.open.pop().around)
        elif item.word == "define" and (macro := _macro(item)) is not None:
            self.latest[macro.name] = len(self.macros), self.layers[-1]
            self.macros.append(macro)
        elif item.word == "undef":
            self._end(item)

    def _end(self, item: _Directive) -> None:
        """Record the end of a macro that is defined under the same conditions."""
        at, layer = self.latest.pop(item.rest, (-1, None))
        if at >= 0 and layer is self.layers[-1]:
            self.macros[at] = replace(self.macros[at], undefined_at=item.span.start)

    def _note(self, item: _Directive, layer: _Layer | None) -> None:
        self.starts.append(item.span.end)
        self.layers.append(layer)


def read_directives(text: str) -> Directives:
    """Read the conditions and macros of a C++ text."""
    reader = _Reader()
    items = [*_directives(text), None]
    for item, following in pairwise(items):
        if item is not None:
            reader.take(item, following)
    return Directives(tuple(reader.starts), tuple(reader.layers), tuple(reader.macros))


def _asked(item: _Directive) -> str:
    if item.word in ("ifdef", "elifdef"):
        return f"defined({item.rest})"
    if item.word in ("ifndef", "elifndef"):
        return f"!defined({item.rest})"
    return item.rest if item.word in ("if", "elif") else ""


_DEFINED = re.compile(r"\bdefined\s*\(?\s*([A-Za-z_]\w*)\s*\)?")
_SPACE = re.compile(r"\s+")


@lru_cache(maxsize=4096)
def _holding(asked: str) -> tuple[Condition, ...]:
    """Return the conditions that hold if an expression does: the expression, and each part joined by ``&&``."""
    text = _DEFINED.sub(r"defined(\1)", _SPACE.sub(" ", asked))
    simple = "&&" in text and not re.search(r"\|\||\?|\([^()]*&&", text)
    return tuple(_plain(Condition(part.strip())) for part in (text, *(text.split("&&") if simple else ())))


_NEGATED = re.compile(r"!\s*(defined\(\w+\)|\w+|\([^()]*\))")


@lru_cache(maxsize=4096)
def _plain(item: Condition) -> Condition:
    """Return a condition in a normal form, without a leading ``!``."""
    text = _DEFINED.sub(r"defined(\1)", _SPACE.sub(" ", item.text)).strip()
    negated = _NEGATED.fullmatch(text)
    if negated is not None:
        return _plain(Condition(negated[1], not item.holds))
    inner = text[1:-1] if text.startswith("(") and text.endswith(")") else ""
    return Condition(inner.strip(), item.holds) if inner and not set("()") & set(inner) else Condition(text, item.holds)


def _defines(item: _Directive, name: str) -> bool:
    match = _DEFINE.match(item.rest) if item.word == "define" else None
    return match is not None and match[1] == name


def _macro(item: _Directive) -> Macro | None:
    match = _DEFINE.match(item.rest)
    if match is None:
        return None
    parameters = None if match[2] is None else tuple(part.strip() for part in match[2].split(",") if part.strip())
    return Macro(match[1], parameters, match[3].strip(), item.span)

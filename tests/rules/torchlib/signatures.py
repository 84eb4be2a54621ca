"""Signatures of operators, drawn with a seed, and functions that take their arguments rightly or with one slip.

The output's shape tells every argument, so that one in a wrong place or with a wrong default shows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Value:
    """A value of an argument: as Python, as a schema's default (empty: none), and the size that it stands for."""

    text: str
    schema: str
    size: int


@dataclass(frozen=True)
class Kind:
    """A type of arguments: its annotation, its type in a schema, values, and how a body counts one (``@``)."""

    annotation: str
    schema: str
    values: tuple[Value, ...]
    size: str

    @property
    def defaults(self) -> list[Value]:
        """The values that may be defaults."""
        return [item for item in self.values if item.schema]


def _kind(annotation: str, schema: str, size: str, *values: tuple[str, str, int]) -> Kind:
    return Kind(annotation, schema, tuple(Value(*item) for item in values), size)


KINDS = (
    _kind("int", "SymInt", "@ + 1", ("1", "1", 2), ("4", "4", 5), ("6", "6", 7)),
    _kind("float", "float", "int(@ * 4)", ("0.5", "0.5", 2), ("2.0", "2.0", 8), ("1.25", "1.25", 5)),
    _kind("bool", "bool", "int(@) + 1", ("False", "False", 1), ("True", "True", 2)),
    _kind("str", "str", "len(@) + 1", ('"mean"', '"mean"', 5), ('"no"', '"no"', 3), ('""', '""', 1)),
    _kind("torch.dtype", "ScalarType", "@.itemsize", ("torch.float32", "float32", 4), ("torch.float64", "float64", 8)),
    _kind("Optional[int]", "SymInt?", "(7 if @ is None else @)", ("None", "None", 7), ("3", "3", 3)),
    _kind("List[int]", "SymInt[]", "sum(@) + len(@)", ("[2, 1]", "", 5), ("[6]", "", 7)),
    _kind("list[int] | None", "SymInt[]?", "(6 if @ is None else sum(@))", ("None", "None", 6), ("[3, 1]", "", 4)),
    _kind("Tensor", "Tensor", "@.shape[0]", ("y", "", 2), ("y[:1]", "", 1)),
    _kind("Optional[Tensor]", "Tensor?", "(9 if @ is None else @.shape[0])", ("None", "None", 9), ("y", "", 2)),
    _kind("list[Tensor]", "Tensor[]", "len(@)", ("[y, y + 1]", "", 2), ("[y]", "", 1)),
    _kind("float | None", "float?", "(8 if @ is None else int(@ * 4))", ("None", "None", 8), ("1.5", "1.5", 6)),
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operator or of a function for it."""

    name: str
    kind: Kind
    default: Value | None = None
    star: str = ""
    keyword_only: bool = False

    def text(self, annotated: bool) -> str:
        """As it stands in a function."""
        annotation = f": {self.kind.annotation}" if annotated and not self.star else ""
        default = "" if self.default is None else f" = {self.default.text}" if annotation else f"={self.default.text}"
        return f"{self.star}{self.name}{annotation}{default}"

    def schema(self) -> str:
        """As it stands in a schema."""
        return f"{self.kind.schema} {self.name}" + ("" if self.default is None else f"={self.default.schema}")


Parameters = tuple[Parameter, ...]


def listed(parameters: Parameters, annotated: bool = False) -> str:
    """The parameter list of a Python function, behind ``x``."""
    parts = ["x: Tensor" if annotated else "x"]
    starred = False
    for item in parameters:
        if item.keyword_only and not starred:
            parts.append("*")
        starred = starred or item.keyword_only or item.star == "*"
        parts.append(item.text(annotated))
    return ", ".join(parts)


def schema_of(parameters: Parameters) -> str:
    """The schema of an operator with these parameters behind ``x``."""
    positional = ["Tensor x", *(item.schema() for item in parameters if not item.keyword_only)]
    rest = [item.schema() for item in parameters if item.keyword_only]
    return f"({', '.join(positional + (['*'] if rest else []) + rest)}) -> Tensor"


def draw(rng: random.Random, least: int = 0) -> Parameters:
    """A signature: required ones, then those with defaults, then keyword-only ones."""
    names = list("abcdefgh")
    rng.shuffle(names)
    found: list[Parameter] = []
    for keyword_only, most in ((False, 4), (True, 2)):
        kinds = [rng.choice(KINDS) for _ in range(rng.randint(0 if keyword_only else least, most))]
        if keyword_only:
            kinds = [kind for kind in kinds if "Tensor" not in kind.annotation]
        cut = rng.randint(0, len(kinds))
        for place, kind in enumerate(kinds):
            default = rng.choice(kind.defaults) if kind.defaults and place >= cut else None
            found.append(Parameter(names.pop(), kind, default, keyword_only=keyword_only))
    return _defaults_last(found)


def _defaults_last(parameters: list[Parameter]) -> Parameters:
    positional = [item for item in parameters if not item.keyword_only]
    return tuple(
        [item for item in positional if item.default is None]
        + [item for item in positional if item.default is not None]
        + [item for item in parameters if item.keyword_only]
    )


def calls(parameters: Parameters, function: str = "f") -> Iterator[tuple[str, tuple[int, ...]]]:
    """Calls with their output's shape: by the defaults, all said, and each default alone left."""
    required = {item.name: item.kind.values[0] for item in parameters if item.default is None}
    tried = [required, {item.name: item.default or required[item.name] for item in parameters}]
    for item in parameters:
        if item.default is not None:
            other = next(value for value in item.kind.values if value != item.default)
            tried.append({**required, item.name: other})
    for values in tried:
        told = (values.get(item.name, item.default) for item in parameters)
        yield _call(parameters, values, function), (2, *(value.size for value in told if value is not None))


def _call(parameters: Parameters, values: dict[str, Value], function: str) -> str:
    parts = ["x"]
    for item in parameters:
        if item.name in values:
            by_name = item.default is not None or item.keyword_only
            parts.append(f"{item.name}={values[item.name].text}" if by_name else values[item.name].text)
    return f"{function}({', '.join(parts)})"


def sizes(operator: Parameters, function: Parameters) -> str:
    """The shape as a function's body computes it, from what it takes under stars, too; what it lacks counts with its default."""
    return ", ".join(["x.shape[0]", *(_size(item, operator, function) for item in operator)])


def _size(item: Parameter, operator: Parameters, function: Parameters) -> str:
    if item in function or item.name in {own.name for own in function}:
        return item.kind.size.replace("@", item.name)
    default = (item.default or item.kind.values[0]).size
    star = "**" if item.keyword_only else "*"
    if all(own.star != star for own in function):
        return str(default)
    if item.keyword_only:
        return f"({item.kind.size.replace('@', f'rest[{item.name!r}]')} if {item.name!r} in rest else {default})"
    before = sum(not own.star and not own.keyword_only for own in function)
    place = [own for own in operator if not own.keyword_only].index(item) - before
    return f"({item.kind.size.replace('@', f'rest[{place}]')} if len(rest) > {place} else {default})"


# --- slips in a function's parameters against the operator's


def _at(items: Parameters, place: int, *new: Parameter) -> Parameters:
    return items[:place] + new + items[place + 1 :]


def _places(items: Parameters, keyword_only: bool | None = None, default: bool | None = None) -> list[int]:
    return [
        place
        for place, item in enumerate(items)
        if keyword_only in (None, item.keyword_only) and default in (None, item.default is not None)
    ]


EXTRA = Parameter("extra", KINDS[0])


def slips(rng: random.Random, items: Parameters) -> Iterator[tuple[str, Parameters]]:
    """Functions that take an operator's arguments in another way: harmless ones and faults; the oracle tells which."""
    positional, keywords = _places(items, keyword_only=False), _places(items, keyword_only=True)
    last = positional[-1] if positional else -1
    yield "right", items
    if len(positional) > 1:
        a, b = sorted(rng.sample(positional, 2))
        swapped = list(items)
        swapped[a], swapped[b] = items[b], items[a]
        yield "reordered", _legal(tuple(swapped))
    for name, places in (("default", _places(items, False, True)), ("keyword default", _places(items, True, True))):
        if places:
            place = rng.choice(places)
            yield f"no {name}", _legal(_at(items, place, replace(items[place], default=None)))
            for title, changed in _other_default(name, items[place]):
                yield title, _at(items, place, changed)
            yield f"no {name}s", tuple(replace(item, default=None) for item in items)
    if positional:
        yield "lacks the last", _at(items, last)
        yield "extra default", (*items[: last + 1], replace(EXTRA, default=Value("0", "0", 1)), *items[last + 1 :])
        yield "star", (Parameter("rest", KINDS[0], star="*"), *(items[place] for place in keywords))
        star_last = replace(items[last], name="rest", star="*", default=None)
        yield "star last", (*items[:last], star_last, *items[last + 1 :])
        yield "keyword-only", tuple(replace(item, keyword_only=True) for item in items)
    required = _legal((*items[: last + 1], EXTRA, *items[last + 1 :]))
    yield "extra required", required
    yield "extra keyword", (*items, replace(EXTRA, keyword_only=True))
    yield "two stars", (*(items[place] for place in positional), Parameter("rest", KINDS[0], star="**"))
    if keywords:
        place = rng.choice(keywords)
        yield "lacks a keyword", _at(items, place)
        yield "keywords as positional", tuple(replace(item, keyword_only=False) for item in _defaults_after(items))


def _other_default(name: str, item: Parameter) -> Iterator[tuple[str, Parameter]]:
    """The parameter with another default than its own: one that says something, or None."""
    for other in [value for value in item.kind.defaults if value != item.default][:1]:
        none = "None" in (other.text, item.default and item.default.text)
        yield f"None for the {name}" if none else f"other {name}", replace(item, default=other)


def _defaults_after(items: Parameters) -> Parameters:
    """With no parameter without a default behind one with."""
    return items if _is_legal(items, loose=True) else tuple(replace(item, default=None) for item in items)


def _is_legal(items: Parameters, loose: bool = False) -> bool:
    seen = False
    for item in items:
        if item.keyword_only and not loose:
            continue
        if item.default is None and not item.star and seen:
            return False
        seen = seen or item.default is not None
    return True


def _legal(items: Parameters) -> Parameters:
    """Valid Python: positional parameters before one without a default lose their own default."""
    if _is_legal(items):
        return items
    cut = max(place for place in _places(items, False, False))
    return tuple(replace(item, default=None) if place < cut else item for place, item in enumerate(items))

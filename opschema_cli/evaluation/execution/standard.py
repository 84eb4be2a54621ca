"""Functions of the standard library."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate, chain, product, repeat, zip_longest

from opschema_cli.evaluation.execution.builtins import Builtin, all_elements, computing
from opschema_cli.evaluation.execution.comparisons import compared
from opschema_cli.evaluation.execution.copies import Copier
from opschema_cli.evaluation.execution.dataclass_fields import fields_of, is_dataclass
from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.operations import binary, unary
from opschema_cli.evaluation.execution.plain import Identical, is_plain
from opschema_cli.evaluation.execution.records import named_tuple
from opschema_cli.evaluation.execution.subscripts import item_of
from opschema_cli.evaluation.execution.values import (
    Closure,
    Native,
    Object,
    Opaque,
    PartialCall,
    PropertyValue,
    Record,
    Running,
    TensorValue,
)
from opschema_cli.evaluation.limits import MAX_ELEMENTS
from opschema_cli.evaluation.standard import TRANSPARENT
from opschema_cli.evaluation.values import ClassValue

Positional = list[object]
Keywords = dict[str, object]


# functools


def transparent(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    """Return a decorator that leaves a function unchanged, called with options or not."""
    if len(positional) == 1 and not keywords and isinstance(positional[0], Closure | ClassValue):
        return positional[0]
    return Native("decorator", lambda call: call.positional[0] if call.positional else call.opaque("no function"))


def _static(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0] if len(positional) == 1 else None
    if not isinstance(value, Closure):
        return NOT_KNOWN
    return Closure(value.body, value.around, value.defaults, value.attributes, True)


def _wraps(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    shown = positional[0] if positional else None

    def decorate(call: Call) -> object:
        function = call.positional[0] if call.positional else None
        if isinstance(function, Closure) and isinstance(shown, Closure):
            function.attributes.update(shown.attributes)
            function.attributes.setdefault("__wrapped__", shown)
            function.attributes["__name__"] = machine.attribute(shown, "__name__")
        return function

    return Native("wraps", decorate)


def _partial(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return PartialCall(positional[0], tuple(positional[1:]), keywords) if positional else NOT_KNOWN


def _reduce(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    function, iterable, *first = positional
    found = all_elements(machine, iterable)
    if isinstance(found, Opaque):
        return found
    values = [*first, *found]
    if not values:
        machine.throw("TypeError", "reduce() of empty iterable with no initial value")
    total = values[0]
    for item in values[1:]:
        total = machine.call(function, (total, item), {})
    return total


# math


def _prod(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = all_elements(machine, positional[0])
    total = keywords.get("start", 1)
    if isinstance(found, Opaque):
        return found
    for item in found:
        total = binary(machine, "*", total, item)
    return total


_MATH = {
    name: getattr(math, name)
    for name in (
        "ceil",
        "floor",
        "trunc",
        "sqrt",
        "isqrt",
        "log",
        "log2",
        "log10",
        "exp",
        "gcd",
        "lcm",
        "isnan",
        "isinf",
    )
}
_MATH |= {
    name: getattr(math, name)
    for name in ("isfinite", "fabs", "fmod", "copysign", "sin", "cos", "tan", "tanh", "erf", "pow", "hypot", "isclose")
}


# itertools


def _iterables(machine: Machine, values: Positional) -> list[list[object]] | Opaque:
    """Return the elements of all iterables."""
    found: list[list[object]] = []
    for value in values:
        elements = all_elements(machine, value)
        if isinstance(elements, Opaque):
            return elements
        found.append(elements)
    return found


def _joining(function: Callable[..., Iterator[object]]) -> Builtin:
    """Wrap a function of ``itertools`` that takes iterables."""

    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        found = _iterables(machine, positional)
        if isinstance(found, Opaque):
            return found
        if function is product and math.prod(map(len, found)) > MAX_ELEMENTS:
            machine.stop("a large container")
        known = not keywords or function is zip_longest
        return Running(iter(function(*found, **keywords))) if known else NOT_KNOWN

    return compute


def _chained(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    outer = all_elements(machine, positional[0])
    found = outer if isinstance(outer, Opaque) else _iterables(machine, outer)
    return found if isinstance(found, Opaque) else Running(chain.from_iterable(found))


def _repeat(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    times = positional[1] if len(positional) == 2 else None
    if not isinstance(times, int) or times > MAX_ELEMENTS:
        return NOT_KNOWN
    return Running(repeat(positional[0], times))


def _count(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    numbers = [*positional, *keywords.values()]
    if keywords or not all(isinstance(item, int) for item in numbers):
        return NOT_KNOWN
    start, step = [*positional, 0, 1][:2] if len(positional) != 1 else (positional[0], 1)
    return Running(_counted(machine, start, step))


def _counted(machine: Machine, start: object, step: object) -> Iterator[object]:
    value = start
    while True:
        machine.spend(1)
        yield value
        value = binary(machine, "+", value, step)


def _accumulate(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = all_elements(machine, positional[0])
    if isinstance(found, Opaque) or keywords or len(positional) > 2:
        return found if isinstance(found, Opaque) else NOT_KNOWN
    function = positional[1] if len(positional) == 2 else None

    def add(left: object, right: object) -> object:
        return binary(machine, "+", left, right) if function is None else machine.call(function, (left, right), {})

    return Running(accumulate(found, add))


# Others


def _second(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return positional[1] if len(positional) == 2 else NOT_KNOWN


def _property(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = dict(zip(("fget", "fset"), positional, strict=False)) | keywords
    return PropertyValue(found.get("fget"), found.get("fset"))


def _nothing(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return None


def _copy(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    if isinstance(value, list | dict | set) and id(value) not in machine.tainted:
        return value.copy()
    known = isinstance(value, Opaque) or is_plain(machine, value)
    return value if known else machine.opaque("the copy of a value")


def _deepcopy(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    return Copier().copy(value) if is_plain(machine, value) else machine.opaque("the copy of a value")


def _fields(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return machine.opaque("the fields of a dataclass")


def _is_dataclass(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    cls = value.cls if isinstance(value, Object) else value
    if isinstance(value, Opaque):
        return value
    if not isinstance(cls, ClassValue):
        return False
    return any(is_dataclass(machine, item) for item in machine.evaluator.program.lineage(cls.ref))


def _replace(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    fields = fields_of(machine, value.cls.ref) if isinstance(value, Object) else None
    if not isinstance(value, Object) or fields is None:
        return NOT_KNOWN
    given = {
        item.name: value.attributes[item.name] for item in fields if item.in_init and item.name in value.attributes
    }
    return machine.call(value.cls, (), {**given, **keywords})


def _as(kind: type[dict[object, object]] | type[tuple[object, ...]]) -> Builtin:
    """Return ``dataclasses.asdict`` or ``astuple``."""

    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        value = positional[0]
        if len(positional) != 1 or keywords or isinstance(value, Opaque):
            return NOT_KNOWN
        if not isinstance(value, Object) or not any(
            is_dataclass(machine, item) for item in machine.evaluator.program.lineage(value.cls.ref)
        ):
            machine.throw(
                "TypeError", f"{'asdict' if kind is dict else 'astuple'}() should be called on dataclass instances"
            )
        return _parts(machine, value, kind)

    return compute


def _parts(machine: Machine, value: object, kind: type) -> object:
    """Return a value as ``asdict`` and ``astuple`` copy it."""
    machine.spend(1)
    if id(value) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    if isinstance(value, Object):
        fields = fields_of(machine, value.cls.ref)
        if fields is None:
            return machine.opaque("the copy of a value")
        pairs = [(item.name, _parts(machine, machine.attribute(value, item.name), kind)) for item in fields]
        return dict(pairs) if kind is dict else tuple(item for _, item in pairs)
    if isinstance(value, Record):
        return value.rebuilt(_parts(machine, item, kind) for item in value)
    if isinstance(value, list | tuple):
        return type(value)([_parts(machine, item, kind) for item in value])
    if isinstance(value, dict):
        return {key: _parts(machine, item, kind) for key, item in value.items()}
    return value if isinstance(value, Opaque | Identical | TensorValue) else _deepcopy(machine, [value], {})


def _itemgetter(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return _getter(machine, positional, item_of)


def _attrgetter(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if not all(isinstance(name, str) for name in positional):
        return NOT_KNOWN

    return _getter(machine, positional, _path_of)


def _path_of(machine: Machine, value: object, path: object) -> object:
    for name in str(path).split("."):
        value = machine.attribute(value, name)
    return value


def _getter(machine: Machine, keys: list[object], read: Callable[[Machine, object, object], object]) -> object:
    def get(call: Call) -> object:
        (value,) = call.positional
        found = tuple(read(machine, value, key) for key in keys)
        return found if len(found) > 1 else found[0]

    return Native("getter", get) if keys else NOT_KNOWN


def _methodcaller(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    name, *arguments = positional
    if not isinstance(name, str):
        return NOT_KNOWN
    return Native(name, lambda call: machine.call(machine.attribute(call.positional[0], name), arguments, keywords))


def _operator(word: str) -> Builtin:
    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        if len(positional) == 1:
            return unary(machine, word, positional[0])
        return binary(machine, word, *positional) if len(positional) == 2 else NOT_KNOWN

    return compute


def _comparison(word: str) -> Builtin:
    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        return compared(machine, word, *positional) if len(positional) == 2 else NOT_KNOWN

    return compute


_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "neg": "-", "pow": "**"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _checked(function: Builtin) -> Builtin:
    """Wrap a function so that a wrong number of arguments raises in the executed code too."""

    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        try:
            return function(machine, positional, keywords)
        except (IndexError, ValueError):
            return NOT_KNOWN

    return compute


_FUNCTIONS: dict[str, Builtin] = {
    "functools.partial": _partial,
    "functools.reduce": _reduce,
    "functools.wraps": _wraps,
    "math.prod": _prod,
    **{f"math.{name}": computing(function) for name, function in _MATH.items()},
    "itertools.product": _joining(product),
    "itertools.chain": _joining(chain),
    "itertools.chain.from_iterable": _chained,
    "itertools.zip_longest": _joining(zip_longest),
    "itertools.repeat": _repeat,
    "itertools.count": _count,
    "itertools.accumulate": _accumulate,
    "typing.cast": _second,
    "warnings.warn": _nothing,
    "copy.copy": _copy,
    "copy.deepcopy": _deepcopy,
    "collections.namedtuple": named_tuple,
    "dataclasses.asdict": _as(dict),
    "dataclasses.astuple": _as(tuple),
    "dataclasses.fields": _fields,
    "dataclasses.is_dataclass": _is_dataclass,
    "dataclasses.replace": _replace,
    "operator.itemgetter": _itemgetter,
    "operator.attrgetter": _attrgetter,
    "operator.methodcaller": _methodcaller,
    "staticmethod": _static,
    "property": _property,
    **{f"operator.{name}": _operator(word) for name, word in _OPERATORS.items()},
    **{f"operator.{name}": _comparison(word) for name, word in _COMPARISONS.items()},
}
STANDARD: dict[str, Builtin] = {
    **dict.fromkeys(TRANSPARENT - {"classmethod", "staticmethod"}, transparent),
    "abc.abstractmethod": transparent,
    **{name: _checked(function) for name, function in _FUNCTIONS.items()},
}

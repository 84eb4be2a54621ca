"""Built-in functions and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from itertools import count

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN
from opschema_cli.evaluation.execution.formats import text_of
from opschema_cli.evaluation.execution.instances import isinstance_of, issubclass_of, type_of
from opschema_cli.evaluation.execution.iteration import elements_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.methods import mapping_of, set_of
from opschema_cli.evaluation.execution.operations import binary
from opschema_cli.evaluation.execution.plain import CONTAINERS, asked, first_opaque, is_hashable, is_plain, performed
from opschema_cli.evaluation.execution.reflection import delattr_of, getattr_of, hasattr_of, setattr_of
from opschema_cli.evaluation.execution.sorting import extreme, sorted_values
from opschema_cli.evaluation.execution.supers import super_with
from opschema_cli.evaluation.execution.values import (
    BoundMethod,
    Closure,
    Native,
    Object,
    Opaque,
    PartialCall,
    Running,
    Sentinel,
    ValueMethod,
)
from opschema_cli.evaluation.limits import MAX_ELEMENTS
from opschema_cli.evaluation.values import ClassValue, ExternalName

Positional = list[object]
Keywords = dict[str, object]
Builtin = Callable[[Machine, Positional, Keywords], object]


def all_elements(machine: Machine, value: object, *, ordered: bool = True) -> list[object] | Opaque:
    """Return the elements of an iterable, in order or in any order; opaque if they are not known."""
    if isinstance(value, Opaque):
        return value
    if id(value) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    found: list[object] = []
    for item in elements_of(machine, value, ordered=ordered):
        found.append(item)
        if len(found) > MAX_ELEMENTS:
            machine.stop("a large container")
    machine.spend(len(found) // 4)
    return found


def computing(function: Callable[..., object]) -> Builtin:
    """Wrap a function that is computed on Python's own values."""

    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        values = [*positional, *keywords.values()]
        opaque = first_opaque(values)
        if opaque is not None:
            return opaque
        if not all(is_plain(machine, item) for item in values):
            return NOT_KNOWN
        return performed(machine, lambda: function(*positional, **keywords))

    return compute


_SIZED: tuple[type[Sized], ...] = (*CONTAINERS, str, bytes, range)


def _len(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if len(positional) != 1 or isinstance(positional[0], Opaque):
        return NOT_KNOWN
    value = positional[0]
    if isinstance(value, Running):
        machine.stop("the length of an iterator")
    if id(value) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, ClassValue):
        return len(machine.evaluator.members(value.ref)) or NOT_KNOWN
    if isinstance(value, Object):
        method = machine.special(value, "__len__")
        return NOT_KNOWN if method is None else machine.call(method, (), {})
    if value is None or isinstance(value, int | float):
        machine.throw("TypeError", f"object of type '{type(value).__name__}' has no len()")
    return asked(machine, "len", (value,))


def _range(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    opaque = first_opaque(positional)
    if opaque is not None:
        return opaque
    if not all(isinstance(item, int | float | str | None) for item in positional):
        return NOT_KNOWN
    return performed(machine, lambda: range(*positional))  # type: ignore[call-overload]


def _container(kind: type) -> Builtin:
    def make(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        if not positional:
            return kind()
        found = all_elements(machine, positional[0])
        return found if isinstance(found, Opaque) else kind(found)

    return make


def _set(kind: type) -> Builtin:
    def make(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        found = set_of(machine, positional[0]) if positional else set[object]()
        return found if isinstance(found, Opaque) else kind(found)

    return make


def _dict(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = mapping_of(machine, positional[0] if positional else {})
    if isinstance(found, Opaque):
        return found
    found.update(keywords)
    return found


def _fromkeys(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    keys, value = [*positional, None][:2]
    found = all_elements(machine, keys)
    return found if isinstance(found, Opaque) else mapping_of(machine, [(key, value) for key in found])


def _vars(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    known = len(positional) == 1 and isinstance(positional[0], Object)
    return machine.attribute(positional[0], "__dict__") if known else NOT_KNOWN


def _sorted(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = all_elements(machine, positional[0], ordered="key" in keywords)
    return found if isinstance(found, Opaque) else sorted_values(machine, found, keywords)


def _extreme(function: Callable[..., int]) -> Builtin:
    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        values = positional
        if len(positional) == 1:
            found = all_elements(machine, positional[0], ordered="key" in keywords)
            if isinstance(found, Opaque):
                return found
            values = found
        return extreme(machine, function, values, keywords)

    return compute


def _sum(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = all_elements(machine, positional[0])
    if isinstance(found, Opaque):
        return found
    total = positional[1] if len(positional) > 1 else keywords.get("start", 0)
    for item in found:
        total = binary(machine, "+", total, item)
    return total


def _quantifier(decisive: bool) -> Builtin:
    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        if isinstance(positional[0], Opaque):
            return positional[0]
        for item in elements_of(machine, positional[0], ordered=False):
            machine.spend(1)
            if machine.truth(item) is decisive:
                return decisive
        return not decisive

    return compute


def _enumerate(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if isinstance(positional[0], Opaque):
        return positional[0]
    start = positional[1] if len(positional) > 1 else keywords.get("start", 0)
    if not isinstance(start, int):
        return NOT_KNOWN
    return Running(zip(count(start), machine.iterate(positional[0]), strict=False))


def _zip(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    opaque = first_opaque(positional)
    if opaque is not None:
        return opaque
    strict = keywords.get("strict", False)
    return Running(_zipped(machine, [machine.iterate(item) for item in positional], strict is True))


def _zipped(machine: Machine, iterators: list[Iterator[object]], strict: bool) -> Iterator[object]:
    rows = iter(zip(*iterators, strict=strict))
    while True:
        try:
            row = next(rows, None)
        except ValueError as error:
            machine.throw("ValueError", error.args[0])
        if row is None:
            return
        yield row


def _map(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    function, *iterables = positional
    opaque = first_opaque(iterables)
    if opaque is not None:
        return opaque
    rows = zip(*(machine.iterate(item) for item in iterables), strict=False)
    return Running(machine.call(function, row, {}) for row in rows)


def _filter(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    function, iterable = positional
    if isinstance(iterable, Opaque):
        return iterable
    kept = (item for item in machine.iterate(iterable) if _keeps(machine, function, item))
    return Running(kept)


def _keeps(machine: Machine, function: object, item: object) -> bool:
    return machine.truth(item if function is None else machine.call(function, (item,), {}))


def _reversed(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    found = all_elements(machine, positional[0])
    return found if isinstance(found, Opaque) else Running(iter(found[::-1]))


def _iter(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if len(positional) != 1 or isinstance(positional[0], Opaque):
        return NOT_KNOWN
    return positional[0] if isinstance(positional[0], Running) else Running(iter(machine.iterate(positional[0])))


def _next(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    running = positional[0]
    if not isinstance(running, Running):
        return NOT_KNOWN
    machine.changes(running)
    for item in running.iterator:
        return item
    if len(positional) > 1:
        return positional[1]
    return machine.throw("StopIteration")


def _str(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if not positional:
        return ""
    value = positional[0]
    return text_of(machine, value) if len(positional) == 1 else NOT_KNOWN


def _repr(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return text_of(machine, positional[0], "r")


def _int(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if positional and isinstance(positional[0], str) and len(positional[0]) > 1000:
        return machine.opaque("a large number")
    if positional and not isinstance(positional[0], Opaque):
        found = asked(machine, "int", positional)
        if found is not NOT_KNOWN:
            return found
    return computing(int)(machine, positional, keywords)


def _float(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if positional and isinstance(positional[0], str) and len(positional[0]) > 1000:
        return machine.opaque("a large number")
    return computing(float)(machine, positional, keywords)


def _bool(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if positional and isinstance(positional[0], Opaque):
        return positional[0]
    return machine.truth(positional[0]) if positional else False


def _pow(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return binary(machine, "**", *positional) if len(positional) == 2 else NOT_KNOWN


def _callable(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    if isinstance(value, Object):
        return value.cls is not None and machine.special(value, "__call__") is not None
    if isinstance(value, Closure | BoundMethod | Native | PartialCall | ClassValue | ValueMethod):
        return True
    if isinstance(value, Opaque | ExternalName):
        return machine.opaque("whether a value is callable")
    return False


def _hash(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    hashable = is_hashable(machine, positional[0])
    return machine.throw("TypeError") if hashable is False else machine.opaque("a hash")


def _id(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    value = positional[0]
    if isinstance(value, Object | list | dict | set | Sentinel | Closure):
        return machine.identities.setdefault(id(value), (len(machine.identities), value))[0]
    return machine.opaque("the identity of a value")


def _object(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return Sentinel()


def _slice(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return slice(*positional) if 0 < len(positional) < 4 else NOT_KNOWN


def _divmod(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return tuple(binary(machine, word, *positional) for word in ("//", "%")) if len(positional) == 2 else NOT_KNOWN


def _print(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    return None


def _object_setattr(machine: Machine, positional: Positional, keywords: Keywords) -> object:
    if len(positional) != 3 or not isinstance(positional[0], Object) or not isinstance(positional[1], str):
        return NOT_KNOWN
    positional[0].attributes[positional[1]] = positional[2]
    return None


def _guarded(function: Builtin) -> Builtin:
    """Wrap a function so that a wrong number of arguments raises in the executed code too."""

    def compute(machine: Machine, positional: Positional, keywords: Keywords) -> object:
        try:
            return function(machine, positional, keywords)
        except IndexError:
            machine.throw("TypeError")

    return compute


BUILTINS: dict[str, Builtin] = {
    name: _guarded(function)
    for name, function in {
        "len": _len,
        "range": _range,
        "tuple": _container(tuple),
        "list": _container(list),
        "set": _set(set),
        "frozenset": _set(frozenset),
        "dict": _dict,
        "dict.fromkeys": _fromkeys,
        "vars": _vars,
        "sorted": _sorted,
        "min": _extreme(min),
        "max": _extreme(max),
        "sum": _sum,
        "any": _quantifier(True),
        "all": _quantifier(False),
        "enumerate": _enumerate,
        "zip": _zip,
        "map": _map,
        "filter": _filter,
        "reversed": _reversed,
        "iter": _iter,
        "next": _next,
        "str": _str,
        "repr": _repr,
        "int": _int,
        "float": _float,
        "bool": _bool,
        "pow": _pow,
        "divmod": _divmod,
        "abs": computing(abs),
        "round": computing(round),
        "ord": computing(ord),
        "chr": computing(chr),
        "bin": computing(bin),
        "hex": computing(hex),
        "slice": _slice,
        "object": _object,
        "object.__setattr__": _object_setattr,
        "print": _print,
        "callable": _callable,
        "hash": _hash,
        "id": _id,
        "super": super_with,
        "isinstance": isinstance_of,
        "issubclass": issubclass_of,
        "type": type_of,
        "getattr": getattr_of,
        "hasattr": hasattr_of,
        "setattr": setattr_of,
        "delattr": delattr_of,
    }.items()
}

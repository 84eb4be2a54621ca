"""Methods of Python's own values: the supported ones, and their results for values that are not plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opschema_cli.evaluation.execution.comparisons import contains_key, matches
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.plain import first_opaque, is_hashable, is_plain, performed
from opschema_cli.evaluation.execution.sorting import sorted_values
from opschema_cli.evaluation.execution.values import Opaque
from opschema_cli.evaluation.limits import MAX_CHARACTERS

_STRING = frozenset(
    {
        "capitalize",
        "casefold",
        "center",
        "count",
        "endswith",
        "find",
        "index",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
    }
    | {
        "isdigit",
        "isidentifier",
        "islower",
        "isnumeric",
        "isprintable",
        "isspace",
        "istitle",
        "isupper",
        "join",
        "ljust",
    }
    | {
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rjust",
        "rpartition",
    }
    | {
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
        "zfill",
        "format",
    }
)
_LIST = frozenset({"append", "extend", "insert", "pop", "remove", "reverse", "sort", "copy", "clear", "index", "count"})
_DICT = frozenset({"get", "keys", "values", "items", "pop", "popitem", "setdefault", "update", "copy", "clear"})
_FROZEN = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint", "copy"}
)
_SET = _FROZEN | {"add", "discard", "remove", "update", "clear", "pop", "intersection_update", "difference_update"}

_CHANGING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "reverse",
        "sort",
        "clear",
        "popitem",
        "setdefault",
        "update",
        "add",
    }
    | {"discard", "intersection_update", "difference_update"}
)

METHODS: Mapping[type, frozenset[str]] = {
    str: _STRING,
    list: _LIST,
    dict: _DICT,
    set: _SET,
    frozenset: _FROZEN,
    tuple: frozenset({"index", "count"}),
    int: frozenset({"bit_length", "conjugate"}),
    bool: frozenset({"bit_length"}),
    float: frozenset({"is_integer", "conjugate"}),
    range: frozenset({"index", "count"}),
    type(None): frozenset(),
    slice: frozenset({"indices"}),
}
"""The supported methods of each type."""


def call_method(
    machine: Machine, this: object, name: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Return the result of a method of one of Python's own values."""
    if name in _CHANGING:
        machine.changes(this)
    if id(this) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    if isinstance(this, str):
        return _of_string(machine, this, name, positional, keywords)
    if isinstance(this, list):
        return _of_list(machine, this, name, positional, keywords)
    if isinstance(this, dict):
        return _of_dict(machine, this, name, positional, keywords)
    if isinstance(this, set | frozenset):
        return _of_set(machine, this, name, positional, keywords)
    if isinstance(this, tuple):
        return _search(machine, this, name, positional)
    return _plain(machine, this, name, positional, keywords)


def _plain(
    machine: Machine, this: object, name: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    """Return the result of a method for arguments that are Python's own values."""
    opaque = first_opaque((*positional, *keywords.values()))
    if opaque is not None:
        return opaque
    if not all(is_plain(machine, item) for item in (*positional, *keywords.values())):
        return machine.opaque(f"`{name}` of values that are not known")
    return performed(machine, lambda: getattr(this, name)(*positional, **keywords))


def _of_string(
    machine: Machine, this: str, name: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    if name == "join" and len(positional) == 1:
        texts = list(machine.iterate(positional[0]))
        opaque = first_opaque(texts)
        if opaque is not None:
            return opaque
        if sum(len(this) + (len(item) if isinstance(item, str) else 0) for item in texts) > MAX_CHARACTERS:
            machine.stop("a long string")
        positional = (texts,)
    if name == "format":
        return machine.opaque("a format that is not followed")
    numbers = [item for item in positional if isinstance(item, int)]
    if name in ("center", "ljust", "rjust", "zfill") and max(numbers, default=0) > MAX_CHARACTERS:
        machine.stop("a long string")
    sizes = [len(item) for item in positional if isinstance(item, str)]
    if name == "replace" and (len(this) + 1) * max([*sizes, 0]) > MAX_CHARACTERS:
        machine.stop("a long string")
    machine.spend(len(this) // 50)
    found = _plain(machine, this, name, positional, keywords)
    if isinstance(found, str) and len(found) > MAX_CHARACTERS:
        machine.stop("a long string")
    return found


def _of_list(
    machine: Machine, this: list[object], name: str, positional: Sequence[object], keywords: Mapping[str, object]
) -> object:
    machine.spend(1 + len(this) // 10 if name == "copy" else 1)
    if name == "sort":
        if positional:
            machine.throw("TypeError")
        found = sorted_values(machine, this, keywords)
        if isinstance(found, Opaque):
            machine.taint(this)
            return None
        this[:] = found
        return None
    if name in ("index", "count", "remove"):
        return _search(machine, this, name, positional)
    if name == "extend" and len(positional) == 1:
        if isinstance(positional[0], Opaque):
            machine.taint(this)
            return None
        elements = list(machine.iterate(positional[0]))
        machine.spend(len(elements))
        this.extend(elements)
        return None
    index = positional[0] if positional and name in ("pop", "insert") else None
    if isinstance(index, Opaque):
        machine.taint(this)
        return index if name == "pop" else None
    return performed(machine, lambda: getattr(this, name)(*positional, **keywords))


def _search(machine: Machine, this: Sequence[object], name: str, positional: Sequence[object]) -> object:
    """Return the result of ``index``, ``count`` or ``remove`` on a list or tuple."""
    if len(positional) != 1:
        return machine.opaque(f"`{name}` between bounds")
    answers = [matches(machine, item, positional[0]) for item in this]
    opaque = first_opaque(answers)
    if opaque is not None:
        if name == "remove":
            machine.taint(this)
        return opaque
    if name == "count":
        return answers.count(True)
    if True not in answers:
        machine.throw("ValueError")
    if name == "remove" and isinstance(this, list):
        del this[answers.index(True)]
        return None
    return answers.index(True)


def _of_dict(
    machine: Machine,
    this: dict[object, object],
    name: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    machine.spend(1)
    if name == "update":
        _updated(machine, this, positional, keywords)
        return None
    if name in ("get", "pop", "setdefault") and positional:
        known = contains_key(machine, this, positional[0])
        if isinstance(known, Opaque):
            if name != "get":
                machine.taint(this)
            return known
    return performed(machine, lambda: getattr(this, name)(*positional, **keywords))


def _updated(
    machine: Machine, this: dict[object, object], positional: Sequence[object], keywords: Mapping[str, object]
) -> None:
    for item in positional:
        pairs = mapping_of(machine, item)
        if isinstance(pairs, Opaque):
            machine.taint(this)
            return
        machine.spend(len(pairs))
        this.update(pairs)
    this.update(keywords)


def mapping_of(machine: Machine, value: object) -> dict[object, object] | Opaque:
    """Return the dictionary made from a mapping or an iterable of pairs."""
    if isinstance(value, Opaque):
        return value
    if id(value) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    if isinstance(value, dict):
        machine.spend(len(value) // 4)
        return dict(value)
    found: dict[object, object] = {}
    for pair in machine.iterate(value):
        parts = list(machine.iterate(pair))
        if len(parts) != 2:
            machine.throw("ValueError")
        hashable = is_hashable(machine, parts[0])
        if isinstance(hashable, Opaque):
            return hashable
        if not hashable:
            machine.throw("TypeError", f"unhashable type: '{type(parts[0]).__name__}'")
        found[parts[0]] = parts[1]
    return found


def _of_set(
    machine: Machine,
    this: set[object] | frozenset[object],
    name: str,
    positional: Sequence[object],
    keywords: Mapping[str, object],
) -> object:
    machine.spend(len(this) + 1)
    if name == "pop" and len(this) > 1:
        machine.taint(this)
        return machine.opaque("any element of a set")
    if name in ("add", "discard", "remove"):
        values: list[object] = list(positional)
    else:
        values = [set_of(machine, item) for item in positional]
    for item in values:
        known = contains_key(machine, this, item) if name in ("add", "discard", "remove") else item
        if isinstance(known, Opaque) or (isinstance(is_hashable(machine, item), Opaque) and name == "add"):
            machine.taint(this)
            return known if name not in ("add", "discard", "remove") else None
    return performed(machine, lambda: getattr(this, name)(*values, **keywords))


def set_of(machine: Machine, value: object) -> set[object] | Opaque:
    """Return the set of the elements of an iterable."""
    if isinstance(value, Opaque):
        return value
    if id(value) in machine.tainted:
        return machine.opaque("a container whose contents are not known")
    elements = list(value) if isinstance(value, set | frozenset) else list(machine.iterate(value))
    machine.spend(len(elements) // 4)
    for item in elements:
        hashable = is_hashable(machine, item)
        if isinstance(hashable, Opaque):
            return hashable
        if not hashable:
            machine.throw("TypeError", f"unhashable type: '{type(item).__name__}'")
    return set(elements)

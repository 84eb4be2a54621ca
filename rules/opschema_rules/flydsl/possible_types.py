"""Possible types of the values in functions, by words alone, so that few values need to be followed."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Function, PythonFile
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.annotations import is_number
from opschema_rules.flydsl.arguments import is_simple
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.value_table import KEEPING, MAKERS, METHOD_RESULTS, NUMERIC, TYPES, has_type

UNKNOWN = "?"
"""A possible type of parameters and of results of other files' functions, in addition to all others; finding these takes more work.
"""

METHOD_WORDS = frozenset({"select", *(method for _, method in METHOD_RESULTS)})
"""The names of methods with a known result type."""

COMPUTED = frozenset({NUMERIC, "Vector"})
"""The types of computed values."""

CHOOSING = frozenset({"max", "min"})
"""Functions of FlyDSL that return one of their arguments."""

CASTS = frozenset({"to", "bitcast"})
"""Methods that convert the element type."""

INDEXES = frozenset({"thread_idx", "block_idx", "block_dim", "grid_dim"})
"""FlyDSL's names of grid positions, each with the axes `x`, `y` and `z`."""

_BY_WORD = {name.rpartition(".")[2]: frozenset({kind}) for name, kind in MAKERS.items()}
"""The possible types of call results, by the last word of the function."""

_OTHERS = frozenset({ROOT, "torch", "typing", "math", "functools", "enum", "dataclasses"})
"""Packages whose functions return no values of FlyDSL's types, or only known ones."""

_TYPED = frozenset({"call", "name", "subscript", "binary", "compare", "unary", "ifexp"})
_NONE, _ANY = frozenset[str](), frozenset(TYPES)
_UNKNOWN = _ANY | {UNKNOWN}
_NUMERIC, _TENSOR = frozenset({NUMERIC}), frozenset({"Tensor"})
_ALIAS = re.compile(r"x\d+\Z")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the FlyDSL type of that name is a scalar number."""
    return is_number(name) and _ALIAS.search(name) is None


def is_float(name: str) -> bool:
    """Whether the FlyDSL type of that name is a scalar float."""
    return is_scalar(name) and "Float" in name


def is_local(helper: Body) -> bool:
    """Whether a plain function is nested in another function, or by its name only used in its own file."""
    around, name = helper.parent, helper.function.name if helper.function is not None else ""
    return is_simple(helper) and around is not None and (around.function is not None or name.startswith("_"))


@cached_on_argument
def own_variables(body: Body) -> dict[str, frozenset[str]]:
    """Return the possible types of a function's variables, without variables that have no FlyDSL type."""
    if body.function is None:
        return {}
    found: dict[str, frozenset[str]] = {}
    for param in body.params:
        word = param.annotation.text.rpartition(".")[2] if param.annotation is not None else ""
        if has_type(word) or is_scalar(word):
            found[param.name] = frozenset({word if has_type(word) else NUMERIC})
        elif param.annotation is None and is_local(body):
            found[param.name] = _UNKNOWN
    for item in body.scope.assigns:
        if item.value is None or "." in item.target:
            continue
        types = _possible(body, item.value, found)
        if types:
            found[item.target] = types | found.get(item.target, _NONE)
    return found


@cached_on_argument
def variables(body: Body) -> ChainMap[str, frozenset[str]]:
    """Return the possible types of the variables that a function sees; those of each function are cached."""
    around = variables(body.parent) if body.parent is not None else ChainMap[str, frozenset[str]]()
    own = own_variables(body)
    return around.new_child(own) if own else around


def possible_of(body: Body, expr: Expr) -> frozenset[str]:
    """Return the possible types of an expression, by its words; nothing is resolved."""
    return _possible(body, expr, variables(body)) if expr.kind in _TYPED else _NONE


def _possible(body: Body, expr: Expr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    match expr.kind:
        case "call":
            word = called_word(expr.items[0])
            if is_scalar(word) or word == "memref_load":
                return _NUMERIC
            if word in KEEPING:
                return _possible(body, expr.items[1], known) if len(expr.items) > 1 else _NONE
            if word in CHOOSING:
                return COMPUTED & _NONE.union(*(_possible(body, item, known) for item in expr.items[1:]))
            types = _BY_WORD.get(word) or _results(body, expr, word, known)
            return types or (_of_helper(body, word) if expr.callee == word else _NONE)
        case "name":
            if "." not in expr.text:
                return known.get(expr.text, _NONE)
            return _NUMERIC if expr.text.split(".")[-2] in INDEXES else _NONE
        case "subscript":
            owner = expr.items[0]
            kinds = known.get(owner.text, _NONE) if owner.kind == "name" else _possible(body, owner, known)
            return (kinds & _TENSOR if owner.kind == "name" else _TENSOR) | (_NUMERIC if "Vector" in kinds else _NONE)
        case "ifexp":
            return _possible(body, expr.items[1], known) & _possible(body, expr.items[2], known)
        case "binary" | "compare" | "unary":
            return COMPUTED & _NONE.union(*(_possible(body, item, known) for item in expr.items))
    return _NONE


def _results(body: Body, call: Expr, word: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the possible result types of a method, by the possible types of its value."""
    owner = call.items[0].owner if word in METHOD_WORDS else None
    kinds = _possible(body, owner, known) if owner is not None else _NONE
    if NUMERIC in kinds and word in CASTS:
        return _NUMERIC | ({"Vector"} & kinds)
    if word == "select":
        return COMPUTED & kinds
    return frozenset(METHOD_RESULTS[kind, word] for kind in kinds if (kind, word) in METHOD_RESULTS)


def _of_helper(body: Body, name: str) -> frozenset[str]:
    """Return the possible result types of a function of this name."""
    if any(name in _functions(item) for item in body.outward()) or name in _functions_of(body.file):
        return _ANY
    return _UNKNOWN if name in _imported(body.file) else _NONE


@cached_on_argument
def _functions(body: Body) -> frozenset[str]:
    return _plain(body.scope.functions) if body.function is not None else frozenset()


@cached_on_argument
def _functions_of(file: PythonFile) -> frozenset[str]:
    return _plain(file.body.functions)


@cached_on_argument
def _imported(file: PythonFile) -> frozenset[str]:
    """The names that a module imports, except from known packages."""
    imported = (item for item in file.body.imports if item.attr)
    return frozenset(item.name for item in imported if item.module.partition(".")[0] not in _OTHERS)


def _plain(functions: Iterable[Function]) -> frozenset[str]:
    """Return the functions without decorators."""
    return frozenset(item.name for item in functions if not item.decorators)


def may_be_floats(body: Body, names: Collection[str]) -> bool:
    """Whether any of some names is a variable that the function sees and that may be assigned a float."""
    return any(not _floats(item).isdisjoint(names) for item in body.outward())


@cached_on_argument
def _floats(body: Body) -> frozenset[str]:
    """The variables of a function that may be assigned a float."""
    values = ((item.target, item.value) for item in body.scope.assigns) if body.function is not None else ()
    return frozenset(name for name, value in values if value is not None and _is_float_written(value))


def _is_float_written(value: Expr) -> bool:
    if value.kind == "call":
        return is_float(value.callee.rpartition(".")[2])
    return isinstance(value.value, float) or (value.kind == "binary" and value.text == "/")

"""FlyDSL's types of the values in functions, as far as they are sure: what its functions and methods return, and what parameters of
traced functions are annotated as.
"""

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
from opschema_rules.flydsl.arguments import call_arguments, is_simple
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.device_values import DEEPEST, is_plain_number, launches
from opschema_rules.flydsl.dsl_types import clash
from opschema_rules.flydsl.model import FlyTree, Kind, Traced
from opschema_rules.flydsl.rebinding import is_bound_around
from opschema_rules.flydsl.value_table import KEEPING, MAKERS, METHOD_RESULTS, NUMERIC, TYPES, has_type

_METHODS = frozenset(method for _, method in METHOD_RESULTS)
MAKING = frozenset(word.rpartition(".")[2] for word in MAKERS)
"""The last words of calls whose results have a known type; those of numbers are others."""

_BY_WORD = {name.rpartition(".")[2]: frozenset({kind}) for name, kind in MAKERS.items()}
"""The types that results of calls may have, by the last words of what is called."""

_TYPED = frozenset({"call", "name", "subscript", "binary", "compare", "unary"})
_NONE, _ANY = frozenset[str](), frozenset(TYPES)
_NUMERIC, _TENSOR = frozenset({NUMERIC}), frozenset({"Tensor"})
_CASTS = frozenset({"to", "bitcast"})
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"})
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_NUMBERS = frozenset({"thread_idx", "block_idx", "block_dim", "grid_dim"})


_OWNERS = frozenset(f"{ROOT}.{name}" for name in ("expr", "compiler"))
_MODULES = frozenset(
    {"primitive", "derived", "typing", "gpu", "numeric", "jit_argument", "rocdl", "universal", "inst", "struct"}
)
_ALIAS = re.compile(r"x\d+\Z")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether FlyDSL's type of that name is one of single numbers."""
    return is_number(name) and _ALIAS.search(name) is None


def is_float(name: str) -> bool:
    """Whether FlyDSL's type of that name is one of single floats."""
    return is_scalar(name) and "Float" in name


def plain_name(full: str) -> str:
    """The last word of a full name of FlyDSL's language or compiler, with the class before it if that is `Vector`; empty for
    names of other modules, such as the dialects'.
    """
    owner, _, word = full.rpartition(".")
    if owner.rpartition(".")[2] == "Vector":
        owner, word = owner.rpartition(".")[0], f"Vector.{word}"
    around, _, module = owner.rpartition(".")
    known = owner in _OWNERS or (module in _MODULES and (around in _OWNERS or around.rpartition(".")[0] in _OWNERS))
    return word if known else ""


class ValueClasses:
    """The types of values in one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._depth = 0
        self._helpers: dict[Body, str] = {}
        self._known: dict[tuple[Body, int, int], str] = {}

    def of(self, body: Body, expr: Expr) -> str:
        """The type of an expression that stands in a body; empty if it is not sure, as of a very deep one."""
        key = (body, expr.start, expr.end)
        if key not in self._known:
            self._depth += 1
            # Also where it rests on what is too deep: a variable may be made of others in an exponential number of ways.
            self._known[key] = self._of(body, expr) if self._depth <= DEEPEST else ""
            self._depth -= 1
        return self._known[key]

    def _of(self, body: Body, expr: Expr) -> str:
        match expr.kind:
            case "name":
                return self._name(body, expr) if "." not in expr.text else self._index(body, expr.text)
            case "call":
                return self._call(body, expr)
            case "subscript":
                return self._slice(body, expr)
            case "unary" if expr.text == "-":
                return NUMERIC if self.of(body, expr.items[0]) == NUMERIC else ""
            case "binary" if expr.text in _OPERATORS:
                return self._computed(body, expr)
            case "compare" if expr.text in _COMPARISONS:
                return self._computed(body, expr)
        return ""

    def _index(self, body: Body, name: str) -> str:
        words = name.split(".")
        known = len(words) > 1 and words[-2] in _NUMBERS and words[-1] in ("x", "y", "z")
        return NUMERIC if known and self.tree.names.full(body, name) else ""

    def _computed(self, body: Body, expr: Expr) -> str:
        """A number that is computed of others."""
        kinds = {NUMERIC if is_plain_number(item) else self.of(body, item) for item in expr.items}
        return NUMERIC if kinds == {NUMERIC} and not all(map(is_plain_number, expr.items)) else ""

    def _slice(self, body: Body, expr: Expr) -> str:
        """A part of a tensor: with `None` among the coordinates it is a tensor, too."""
        given = expr.items[1].elements or expr.items[1:] if len(expr.items) == 2 else expr.items[1:]
        sliced = any(item.kind == "const" and item.value is None for item in given)
        return "Tensor" if sliced and self.of(body, expr.items[0]) == "Tensor" else ""

    def _call(self, body: Body, call: Expr) -> str:
        callee = call.items[0]
        word = callee.text.rpartition(".")[2]
        full = self.tree.names.full(body, call.callee) if call.callee else ""
        if full:
            return self._made(body, call, plain_name(full))
        owner = callee.owner
        if owner is not None and word in _METHODS:
            return self._method(body, call, owner, word)
        return self._of_helper(body, call.callee) if call.callee and "." not in call.callee else ""

    def _made(self, body: Body, call: Expr, word: str) -> str:
        if word in KEEPING:
            given = call.positional()
            return self.of(body, given[0]) if given else ""
        if is_scalar(word):
            return NUMERIC if call.keywords == ("",) else ""
        return MAKERS.get(word, "")

    def _of_helper(self, body: Body, name: str) -> str:
        """The type that every `return` of a function of the same file has, which is called by its name."""
        target = self._helper(body, name)
        if target is None or target.function is None:
            return ""
        if target not in self._helpers:
            self._helpers[target] = ""  # of functions that call each other
            found = {self.of(target, item) for item in target.scope.returns}
            self._helpers[target] = found.pop() if len(found) == 1 else ""
        return self._helpers[target]

    def _helper(self, body: Body, name: str) -> Body | None:
        """The function without decorators that a name stands for, if nothing else ever does."""
        binder = body.binder(name) or self.tree.bodies.module(body.file)
        bound = binder.scope.named.get(name, ())
        one = bound[0] if len(bound) == 1 and name not in body.file.rebound else None
        helper = self.tree.bodies.defined(body.file, one) if isinstance(one, Function) else None
        return helper if helper is not None and is_simple(helper) else None

    def _method(self, body: Body, call: Expr, owner: Expr, word: str) -> str:
        kind = self.of(body, owner)
        if kind == NUMERIC and word in _CASTS:
            given = call.positional()
            own = self.tree.names.last(body, given[0]) if given else ""
            return NUMERIC if is_scalar(own) else ""
        return METHOD_RESULTS.get((kind, word), "")

    def _name(self, body: Body, name: Expr) -> str:
        binder = body.binder(name.text)
        if binder is None or is_bound_around(body, name.text, name.start):
            return ""
        if any(item.name == name.text for item in binder.params):
            return self._parameter(binder, name.text)
        value = value_at(body, binder, name)
        return self.of(binder, value) if value is not None and value.span != name.span else ""

    def _parameter(self, binder: Body, name: str) -> str:
        traced = self.tree.traced_of(binder)
        if traced is None or name in binder.file.rebound or len(binder.scope.named.get(name, ())) > 0:
            return ""
        found = traced.parameter(name)
        if found is None or found.kind is Kind.CONSTEXPR or not self._is_passed_so(traced, name):
            return ""
        kind = NUMERIC if found.kind is Kind.NUMBER else found.dsl
        return kind if has_type(kind) else ""

    def _is_passed_so(self, traced: Traced, name: str) -> bool:
        """Whether the annotation of a parameter says what it gets: FlyDSL makes such values of what a host passes a launcher, and a
        kernel gets what its launches pass.
        """
        if traced.kind == "jit":
            return launches(self.tree, traced)
        found = [list(call_arguments(self.tree, call)) for call in traced.calls]
        given = [item for items in found for item in items if item.parameter.name == name]
        return all(found) and not any(item.python or clash(item) is not None for item in given)


def value_at(body: Body, binder: Body, name: Expr) -> Expr | None:
    """The value that a variable surely has where a body uses it."""
    if binder.function is None or is_bound_around(body, name.text, name.start):
        return None
    if body is binder:
        return index_of(body).value_before(name.text, name.start)
    values = binder.values(name.text)
    bound = binder.scope.named.get(name.text, ())
    one = values is not None and len(values) == 1 and len(bound) == 1 and name.text not in binder.file.rebound
    return values[0] if one and values is not None and name.text not in index_of(binder).walruses else None


@cached_on_argument
def own_variables(body: Body) -> dict[str, frozenset[str]]:
    """The types that the variables of a function may have, without those that have none of FlyDSL's."""
    if body.function is None:
        return {}
    found: dict[str, frozenset[str]] = {}
    for param in body.params:
        word = param.annotation.text.rpartition(".")[2] if param.annotation is not None else ""
        if has_type(word) or is_scalar(word):
            found[param.name] = frozenset({word if has_type(word) else NUMERIC})
    for item in body.scope.assigns:
        if item.value is None or "." in item.target:
            continue
        types = _possible(body, item.value, found)
        if types:
            found[item.target] = types | found.get(item.target, _NONE)
    return found


@cached_on_argument
def variables(body: Body) -> ChainMap[str, frozenset[str]]:
    """The variables that a function sees and that may have such types, with these; those of each function are kept once."""
    around = variables(body.parent) if body.parent is not None else ChainMap[str, frozenset[str]]()
    own = own_variables(body)
    return around.new_child(own) if own else around


def possible_of(body: Body, expr: Expr) -> frozenset[str]:
    """The types that an expression may have, by its words; nothing is resolved."""
    return _possible(body, expr, variables(body)) if expr.kind in _TYPED else _NONE


def _possible(body: Body, expr: Expr, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    match expr.kind:
        case "call":
            word = called_word(expr.items[0])
            if is_scalar(word):
                return _NUMERIC
            if word in KEEPING:
                return _possible(body, expr.items[1], known) if len(expr.items) > 1 else _NONE
            types = _BY_WORD.get(word) or _results(body, expr, word, known)
            return types or (_ANY if expr.callee == word and _is_helper(body, word) else _NONE)
        case "name":
            if "." not in expr.text:
                return known.get(expr.text, _NONE)
            return _NUMERIC if expr.text.split(".")[-2] in _NUMBERS else _NONE
        case "subscript":
            return known.get(expr.items[0].text, _NONE) & _TENSOR if expr.items[0].kind == "name" else _TENSOR
        case "binary" | "compare" | "unary":
            return _NUMERIC if any(NUMERIC in _possible(body, item, known) for item in expr.items) else _NONE
    return _NONE


def _results(body: Body, call: Expr, word: str, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The types that a method may return, by the types that its value may have."""
    owner = call.items[0].owner if word in _METHODS else None
    kinds = _possible(body, owner, known) if owner is not None else _NONE
    if NUMERIC in kinds and word in _CASTS:
        return _NUMERIC | ({"Vector"} & kinds)
    return frozenset(METHOD_RESULTS[kind, word] for kind in kinds if (kind, word) in METHOD_RESULTS)


def _is_helper(body: Body, name: str) -> bool:
    """Whether a function around, or the module, defines a function of that name."""
    return any(name in _functions(item) for item in body.outward()) or name in _functions_of(body.file)


@cached_on_argument
def _functions(body: Body) -> frozenset[str]:
    return _plain(body.scope.functions) if body.function is not None else frozenset()


@cached_on_argument
def _functions_of(file: PythonFile) -> frozenset[str]:
    return _plain(file.body.functions)


def _plain(functions: Iterable[Function]) -> frozenset[str]:
    """The functions without decorators."""
    return frozenset(item.name for item in functions if not item.decorators)


def may_be_floats(body: Body, names: Collection[str]) -> bool:
    """Whether any of some names is a variable that a function sees and that may be given a float."""
    return any(not _floats(item).isdisjoint(names) for item in body.outward())


@cached_on_argument
def _floats(body: Body) -> frozenset[str]:
    """The variables of a function that may be given a float."""
    values = ((item.target, item.value) for item in body.scope.assigns) if body.function is not None else ()
    return frozenset(name for name, value in values if value is not None and _is_float_written(value))


def _is_float_written(value: Expr) -> bool:
    if value.kind == "call":
        return is_float(value.callee.rpartition(".")[2])
    return isinstance(value.value, float) or (value.kind == "binary" and value.text == "/")


@cached_on_argument
def value_classes(tree: FlyTree) -> ValueClasses:
    """The types of values in a tree."""
    return ValueClasses(tree)


@cached_on_argument
def bodies_with_values(tree: FlyTree) -> list[Body]:
    """The functions that make values of known types or are traced, with the functions inside them; none of FlyDSL's own files."""
    module_name = tree.bodies.program.module_name
    files = [file for file in tree.files if module_name(file.path).partition(".")[0] != ROOT]
    making = [body for file in files for body in tree.bodies.calling(file, MAKING) if body.function is not None]
    traced = [item.body for item in tree.traced if item.body.file in files]
    return list(dict.fromkeys(item for body in (*making, *traced) for item in tree.bodies.inside(body)))

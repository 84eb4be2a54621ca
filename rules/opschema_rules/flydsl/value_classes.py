"""FlyDSL's types of the values in functions, as far as they are sure: what its functions and methods return, and what parameters of
traced functions are annotated as.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cached_property
from typing import TypeAlias

from packaging.version import Version

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Function, Import
from opschema_rules.flydsl.arguments import call_arguments, is_simple
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.detection import ROOT
from opschema_rules.flydsl.device_values import DEEPEST, launches
from opschema_rules.flydsl.dsl_types import clash
from opschema_rules.flydsl.host_values import is_of_host
from opschema_rules.flydsl.model import FlyTree, Kind, Traced
from opschema_rules.flydsl.possible_types import CASTS, CHOOSING, COMPUTED, INDEXES, METHOD_WORDS, is_local, is_scalar
from opschema_rules.flydsl.rebinding import is_bound_around, may_be_another
from opschema_rules.flydsl.value_table import KEEPING, MAKERS, METHOD_RESULTS, NUMERIC, has_type

MAKING = frozenset(word.rpartition(".")[2] for word in MAKERS)
"""The last words of calls whose results have a known type; those of numbers are others."""

ASKING = ("hasattr", "getattr", "isinstance", "type")
"""Functions of Python's that ask for the type of a value."""

_WRAPPING = Version("0.3.2")
"""A release that gives what it loads and selects its own types."""

_MOST = 200
"""Most expressions that are followed to find whether a variable keeps its type."""

_INDEX = frozenset({"const", "name", "binary", "call"})
_OPERATORS = frozenset({"+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>"})
_COMPARISONS = frozenset({"<", "<=", ">", ">="})


_OWNERS = frozenset(f"{ROOT}.{name}" for name in ("expr", "compiler"))
_MODULES = frozenset(
    {
        "primitive",
        "derived",
        "typing",
        "gpu",
        "numeric",
        "arith",
        "jit_argument",
        "rocdl",
        "universal",
        "inst",
        "struct",
    }
)


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


_Key: TypeAlias = "tuple[Body, int, int] | tuple[Body, str] | tuple[Body]"
"""An expression by its place, a variable of a function, or what a function returns."""


class ValueClasses:
    """The types of values in one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._depth = 0
        self._known: MutableMapping[_Key, str] = {}
        self._left = 0
        """The number of expressions that may still be followed under an assumption, so that many variables take linear time."""
        self._assumed = False
        """Whether the type of a variable is assumed, which what is found may rest on."""

    def of(self, body: Body, expr: Expr) -> str:
        """The type of an expression that stands in a body; empty if it is not sure, as of a very deep one."""
        key = (body, expr.start, expr.end)
        if key not in self._known:
            self._left -= self._assumed
            if self._left < 0:
                return ""
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
            case "ifexp":
                first, second = (self.of(body, item) for item in expr.items[1:])
                return first if first == second else ""
            case "binary" if expr.text in _OPERATORS:
                return self._computed(body, expr)
            case "compare" if expr.text in _COMPARISONS:
                return self._computed(body, expr)
        return ""

    def _index(self, body: Body, name: str) -> str:
        words = name.split(".")
        known = len(words) > 1 and words[-2] in INDEXES and words[-1] in ("x", "y", "z")
        return NUMERIC if known and self.tree.names.full(body, name) else ""

    def _computed(self, body: Body, expr: Expr) -> str:
        """A number or a vector that is computed of others, and of values of Python."""
        return self._joined(body, expr.items)

    def _joined(self, body: Body, items: Sequence[Expr]) -> str:
        """The type of what is computed of several values: a vector, if one of them is, or a number."""
        kinds = [self.of(body, item) for item in items]
        found = set(kinds) - {""}
        if not found or found - COMPUTED:
            return ""
        others = (item for item, kind in zip(items, kinds, strict=True) if not kind)
        kind = "Vector" if "Vector" in found else NUMERIC
        return kind if all(is_of_host(self.tree, body, item) for item in others) else ""

    def _slice(self, body: Body, expr: Expr) -> str:
        """A part of a tensor, which is a tensor, too, with `None` among the coordinates; or an element of a vector."""
        if self.of(body, expr.items[0]) == "Vector" and len(expr.items) == 2 and expr.items[1].kind in _INDEX:
            return NUMERIC
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
        if owner is not None and word in METHOD_WORDS:
            return self._method(body, call, owner, word)
        return self._of_helper(body, call.callee) if call.callee and "." not in call.callee else ""

    def _made(self, body: Body, call: Expr, word: str) -> str:
        if word in KEEPING:
            given = call.positional()
            return self.of(body, given[0]) if given else ""
        if word == "memref_load":
            return NUMERIC if self._wraps and not any(call.keywords) else ""
        if word in CHOOSING:
            return self._joined(body, call.items[1:]) if not any(call.keywords) else ""
        if is_scalar(word):
            return NUMERIC if call.keywords == ("",) else ""
        return MAKERS.get(word, "")

    def _of_helper(self, body: Body, name: str) -> str:
        """The type that every `return` of a function of the same file has, which is called by its name."""
        target = self._helper(body, name)
        if target is None or target.function is None:
            return ""
        key = (target,)
        if key not in self._known:
            self._known[key] = ""  # of functions that call each other
            found = {self.of(target, item) for item in target.scope.returns}
            self._known[key] = found.pop() if len(found) == 1 else ""
        return self._known[key]

    def _helper(self, body: Body, name: str) -> Body | None:
        """The function without decorators that a name stands for, if nothing else ever does; also one of another file."""
        binder = body.binder(name) or self.tree.bodies.module(body.file)
        bound = binder.scope.named.get(name, ())
        one = bound[0] if len(bound) == 1 and name not in body.file.rebound else None
        helper = self.tree.bodies.defined(body.file, one) if isinstance(one, Function) else None
        if isinstance(one, Import) and not may_be_another(self.tree, body, Expr("name", 0, 0, name)):
            helper = self.tree.bodies.called(body, name)
        return helper if helper is not None and is_simple(helper) else None

    def _method(self, body: Body, call: Expr, owner: Expr, word: str) -> str:
        kind = self.of(body, owner)
        if kind == NUMERIC and word in CASTS:
            given = call.positional()
            own = self.tree.names.last(body, given[0]) if given else ""
            return NUMERIC if is_scalar(own) else ""
        if kind == NUMERIC and word == "select":
            return self._joined(body, call.items[1:]) if self._wraps and not any(call.keywords) else ""
        return METHOD_RESULTS.get((kind, word), "")

    @cached_property
    def _wraps(self) -> bool:
        """Whether what FlyDSL loads and selects has its types, and is no value of MLIR, as it is up to 0.2."""
        contract = self.tree.contract
        if contract.own:
            found = self.tree.answers.signature(f"{ROOT}.expr.primitive.memref_load")
            return found is not None and "dsl_wrap_result" in found[0]
        return bool(contract.releases) and min(contract.releases) >= _WRAPPING

    def _name(self, body: Body, name: Expr) -> str:
        binder = body.binder(name.text)
        if binder is None or is_bound_around(body, name.text, name.start):
            return ""
        if any(item.name == name.text for item in binder.params):
            return self._parameter(binder, name.text)
        value = value_at(body, binder, name)
        if value is not None:
            return self.of(binder, value) if value.span != name.span else ""
        return self._carried(binder, name.text)

    def _carried(self, binder: Body, name: str) -> str:
        """The type of a variable that has the same one in all its values, where those after the first may be computed of it."""
        key = (binder, name)
        if key in self._known:
            return self._known[key]
        values = own_values(binder, name)
        if self._assumed or not values:  # one variable at a time
            return ""
        first = self.of(binder, values[0])
        holds = bool(first) and self._holds(key, first, values[1:])
        self._known[key] = first if holds else ""
        return self._known[key]

    def _holds(self, key: tuple[Body, str], kind: str, values: Sequence[Expr]) -> bool:
        """Whether some values of a variable have a type if the variable has it; what rests on a wrong assumption is dropped."""
        known = self._known
        assumed: dict[_Key, str] = {key: kind}
        self._known, self._assumed, self._left = ChainMap(assumed, known), True, _MOST
        holds = all(self.of(key[0], item) == kind for item in values)
        self._known, self._assumed, self._left = known, False, 0
        if holds:
            known.update(assumed)
        return holds

    def _of_arguments(self, binder: Body, name: str) -> str:
        """The type that calls of a plain function pass for a parameter: all of them, if it decides by any; else those known."""
        key = (binder, name)
        if key in self._known:
            return self._known[key]
        self._known[key] = ""  # of functions that call each other
        deciding = _deciding(binder)
        if name in deciding or not is_local(binder) or name in binder.file.rebound or binder.scope.named.get(name):
            return ""
        calls = self._calls_of(binder)
        given = [(caller, argument_for(call, binder.params, name)) for caller, call in calls]
        found = {self.of(caller, item) if item is not None else "" for caller, item in given}
        if deciding.isdisjoint(item.name for item in binder.params):
            found -= {""}
        self._known[key] = found.pop() if len(found) == 1 else ""
        return self._known[key]

    def _calls_of(self, helper: Body) -> Iterator[tuple[Body, Expr]]:
        """The calls of a function that only code around it calls, or its file."""
        around, name = helper.parent, helper.function.name if helper.function is not None else ""
        if around is None or len(around.scope.named.get(name, ())) != 1 or name in helper.file.rebound:
            return
        binder = around if around.function is not None else None
        for body in self.tree.bodies.calling(helper.file, [name]):
            if body.binder(name) is binder:
                yield from ((body, call) for call in body.scope.calls if call.callee == name)

    def _parameter(self, binder: Body, name: str) -> str:
        traced = self.tree.traced_of(binder)
        if traced is None:
            return self._of_arguments(binder, name)
        if name in binder.file.rebound or len(binder.scope.named.get(name, ())) > 0:
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
def _deciding(body: Body) -> frozenset[str]:
    """The names in the conditions of a function, and those about whose types it asks."""
    tests = [item.expr for item in body.scope.conditions]
    tests += [item.items[0] for item in body.scope.conditional_expressions]
    tests += [call for call in body.scope.calls if call.callee in ASKING]
    return frozenset(item.text.partition(".")[0] for test in tests for item in test.walk() if item.kind == "name")


def own_values(body: Body, name: str) -> list[Expr]:
    """The values of a variable of a function in their order, if all that binds it are assignments of them."""
    bound, values = body.scope.named.get(name, ()), body.values(name)
    known = values is not None and len(values) == len(bound) and name not in body.file.rebound
    return values if values is not None and known and name not in index_of(body).walruses else []


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

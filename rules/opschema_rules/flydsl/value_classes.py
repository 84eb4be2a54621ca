"""FlyDSL's types of the values in functions, where they are known: results of FlyDSL's functions and methods, and annotated
parameters of traced functions.
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
"""The last words of calls with a known result type, without those that return numbers."""

ASKING = ("hasattr", "getattr", "isinstance", "type")
"""Built-in functions that test the type of a value."""

_WRAPPING = Version("0.3.2")
"""The first release in which loads and selects return FlyDSL's own types."""

_MOST = 200
"""Maximum number of expressions to follow to find out whether a variable keeps its type."""

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
    """Return the last word of a full name in FlyDSL's language or compiler, with its class if that is `Vector`; empty for names of
    other modules, such as the dialects.
    """
    owner, _, word = full.rpartition(".")
    if owner.rpartition(".")[2] == "Vector":
        owner, word = owner.rpartition(".")[0], f"Vector.{word}"
    around, _, module = owner.rpartition(".")
    known = owner in _OWNERS or (module in _MODULES and (around in _OWNERS or around.rpartition(".")[0] in _OWNERS))
    return word if known else ""


_Key: TypeAlias = "tuple[Body, int, int] | tuple[Body, str] | tuple[Body]"
"""An expression by its place, a variable of a function, or the result of a function."""


class ValueClasses:
    """The types of the values in one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._depth = 0
        self._known: MutableMapping[_Key, str] = {}
        self._left = 0
        """The number of expressions that may still be followed under an assumption, so that many variables take linear time."""
        self._assumed = False
        """Whether the type of a variable is assumed, which what is found may rest on."""

    def of(self, body: Body, expr: Expr) -> str:
        """Return the type of an expression in a body; empty if it is not known, as for a very deeply nested one."""
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
        """Return the type of a number or vector computed from such values and Python values."""
        return self._joined(body, expr.items)

    def _joined(self, body: Body, items: Sequence[Expr]) -> str:
        """Return the type of a value computed from several others: a vector if one of them is a vector, otherwise a number."""
        kinds = [self.of(body, item) for item in items]
        found = set(kinds) - {""}
        if not found or found - COMPUTED:
            return ""
        others = (item for item, kind in zip(items, kinds, strict=True) if not kind)
        kind = "Vector" if "Vector" in found else NUMERIC
        return kind if all(is_of_host(self.tree, body, item) for item in others) else ""

    def _slice(self, body: Body, expr: Expr) -> str:
        """Return the type of a slice of a tensor, which is a tensor too, with `None` among the coordinates, or of an element of a
        vector.
        """
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
        """Return the type of every `return` of a function in the same file that is called by its name."""
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
        """Return the function without decorators that a name refers to, if it is never rebound; it may be in another file."""
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
        """Whether loads and selects return FlyDSL's own types; up to 0.2 they return raw MLIR values."""
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
        """Return the type of a variable whose values all have the same type; later values may be computed from the variable
        itself.
        """
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
        """Whether values of a variable have a type, assuming that the variable has it; results of a wrong assumption are
        discarded.
        """
        known = self._known
        assumed: dict[_Key, str] = {key: kind}
        self._known, self._assumed, self._left = ChainMap(assumed, known), True, _MOST
        holds = all(self.of(key[0], item) == kind for item in values)
        self._known, self._assumed, self._left = known, False, 0
        if holds:
            known.update(assumed)
        return holds

    def _of_arguments(self, binder: Body, name: str) -> str:
        """Return the type that calls of a plain function pass for a parameter: of all calls, if it decides by a parameter;
        otherwise of those with a known type.
        """
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
        """Yield the calls of a function that only the enclosing code or its file calls."""
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
        """Whether arguments have the annotated type of their parameter: FlyDSL converts what the host passes to a launcher; a
        kernel gets the values that its launches pass.
        """
        if traced.kind == "jit":
            return launches(self.tree, traced)
        found = [list(call_arguments(self.tree, call)) for call in traced.calls]
        given = [item for items in found for item in items if item.parameter.name == name]
        return all(found) and not any(item.python or clash(item) is not None for item in given)


def value_at(body: Body, binder: Body, name: Expr) -> Expr | None:
    """Return the value that a variable is known to have where a body uses it."""
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
    """The names in the conditions of a function, and those whose types it tests."""
    tests = [item.expr for item in body.scope.conditions]
    tests += [item.items[0] for item in body.scope.conditional_expressions]
    tests += [call for call in body.scope.calls if call.callee in ASKING]
    return frozenset(item.text.partition(".")[0] for test in tests for item in test.walk() if item.kind == "name")


def own_values(body: Body, name: str) -> list[Expr]:
    """Return the values of a variable of a function in order, if all its bindings are plain assignments."""
    bound, values = body.scope.named.get(name, ()), body.values(name)
    known = values is not None and len(values) == len(bound) and name not in body.file.rebound
    return values if values is not None and known and name not in index_of(body).walruses else []


@cached_on_argument
def value_classes(tree: FlyTree) -> ValueClasses:
    """Return the types of the values in a tree."""
    return ValueClasses(tree)


@cached_on_argument
def bodies_with_values(tree: FlyTree) -> list[Body]:
    """Return the functions that make values of known types or are traced, with their nested functions; FlyDSL's own files are left
    out.
    """
    module_name = tree.bodies.program.module_name
    files = [file for file in tree.files if module_name(file.path).partition(".")[0] != ROOT]
    making = [body for file in files for body in tree.bodies.calling(file, MAKING) if body.function is not None]
    traced = [item.body for item in tree.traced if item.body.file in files]
    return list(dict.fromkeys(item for body in (*making, *traced) for item in tree.bodies.inside(body)))

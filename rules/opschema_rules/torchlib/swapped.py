"""Values that a caller passes to an operator in each other's place, by their annotations and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opschema_cli.schema.operator_schema import Argument, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import Tree

_SAMPLES: dict[str, int | float | str] = {"int": 1, "float": 1.5, "bool": True, "str": "s"}
_TENSORS = ("torch.Tensor", "torch._tensor.Tensor")
_NO_TENSORS = frozenset({"int", "SymInt", "float", "bool", "str", "ScalarType", "Device"})

Misfits = Callable[[SchemaType, Expr], bool]


def swapped(
    tree: Tree, body: Body, pairs: Sequence[tuple[Argument, Expr]], misfits: Misfits
) -> Iterator[tuple[Argument, Expr, str, Argument, Expr]]:
    """Return two values that are clearly swapped: the argument that the first is passed for, the value and its annotated type,
    then the other argument and its value. The type is empty if only the names show the swap.
    """
    kinds = [_kind(tree, body, value) for _, value in pairs]
    wrong = [at for at, (argument, _) in enumerate(pairs) if kinds[at] and not _fits(argument.type, kinds[at], misfits)]
    if not wrong:
        yield from _swapped_names(body, pairs, kinds)
    for one in wrong[:1] if len(wrong) == 2 else ():
        other = wrong[1]
        (first, value), (second, instead) = pairs[one], pairs[other]
        crossed = _fits(first.type, kinds[other], misfits) and _fits(second.type, kinds[one], misfits)
        sure = any(_is_refused(pairs[at][0].type, kinds[at], misfits) for at in wrong)
        names = {value.text, instead.text}
        if crossed and sure and not _are_assigned(body, names) and not _are_tested(body, names):
            yield first, value, kinds[one], second, instead


def _swapped_names(
    body: Body, pairs: Sequence[tuple[Argument, Expr]], kinds: Sequence[str]
) -> Iterator[tuple[Argument, Expr, str, Argument, Expr]]:
    """Yield pairs of values with each other's names, if their types differ or the operator writes exactly one of them."""
    at = {argument.name: place for place, (argument, _) in enumerate(pairs)}
    for one, (first, value) in enumerate(pairs):
        other = at.get(value.text, one) if value.kind == "name" else one
        second, instead = pairs[other]
        if other <= one or instead.kind != "name" or instead.text != first.name:
            continue
        names = {value.text, instead.text}
        typed = kinds[one] == str(second.type) != kinds[other] == str(first.type)
        if typed and not _are_assigned(body, names) and not _are_tested(body, names):
            yield first, value, kinds[one], second, instead
        elif first.is_write != second.is_write:
            yield first, value, "", second, instead


def _kind(tree: Tree, body: Body, value: Expr) -> str:
    """The plain type with which a value is annotated, if it is a parameter; else empty."""
    param = next((item for item in body.params if value.kind == "name" and item.name == value.text), None)
    if param is None or param.annotation is None or param.kind not in ("posonly", "normal", "kwonly"):
        return ""
    text = body.file.text(param.annotation).strip("'\"")
    if text in _SAMPLES:
        return text
    return "Tensor" if tree.bodies.external(body, text) in _TENSORS else ""


def _are_assigned(body: Body, names: set[str]) -> bool:
    return any(item.target in names for scope in body.scope.walk() for item in scope.assigns)


def _are_tested(body: Body, names: set[str]) -> bool:
    """Whether a function tests the type of a name, which may then differ from the annotation."""
    calls = (call for scope in body.scope.walk() for call in scope.calls if call.callee in ("isinstance", "type"))
    return any(item.text in names for call in calls for item in call.items[1:2])


def _fits(type_: SchemaType, kind: str, misfits: Misfits) -> bool:
    plain = type_.inner if type_.optional and type_.inner is not None else type_
    if kind == "Tensor":
        return not plain.is_list and plain.name not in _NO_TENSORS
    return not _is_refused(plain, kind, misfits)


def _is_refused(type_: SchemaType, kind: str, misfits: Misfits) -> bool:
    """Whether torch is known to reject each value of a type; it may accept a tensor of one element as a number."""
    if kind == "Tensor":
        plain = type_.inner if type_.optional and type_.inner is not None else type_
        return plain.is_list or plain.name == "str"
    return misfits(type_, Expr("const", 0, 0, value=_SAMPLES[kind]))

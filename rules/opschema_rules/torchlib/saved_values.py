"""Values that `setup_context` saves: those known to be neither a tensor nor `None`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from opschema_cli.schema.operator_schema import Argument, SchemaType
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.gradients import Gradient

_PLAIN = frozenset(
    {"int", "SymInt", "float", "bool", "SymBool", "str", "complex", "Scalar", "number", "ScalarType", "Device"}
    | {"Layout", "MemoryFormat", "Generator"}
)
_DISPLAYS = {"tuple": "a tuple", "list": "a list", "dict": "a dictionary", "set": "a set"}
_DISPLAYS |= {"listcomp": "a list", "dictcomp": "a dictionary", "setcomp": "a set", "generator": "a generator"}
_METADATA = frozenset({"shape", "dtype", "device", "ndim", "layout"})


class NoTensor(msgspec.Struct, frozen=True):
    """A value that is not a tensor: its description, the schema argument that it is, if any, and whether it may be `None`."""

    described: str
    argument: Argument | None = None
    optional: bool = False


def saved_values(setup: Body, context: str) -> Iterator[tuple[Expr, str]]:
    """The values that one `save_for_backward` that always runs is passed, each with its `*` or `**`, else an empty text."""
    name = f"{context}.save_for_backward"
    calls = [call for scope in setup.scope.walk() for call in scope.calls if call.callee == name]
    if len(calls) != 1 or calls[0] not in setup.scope.calls:
        return  # of several, the last that runs counts
    start = calls[0].start
    skipped = [*setup.scope.guarded, *(loop.body for loop in setup.scope.loops)]
    if not any(span.start <= start < span.end for span in skipped):
        yield from zip(calls[0].items[1:], calls[0].keywords, strict=True)


def no_tensors(gradient: Gradient, setup: Body, value: Expr, star: str) -> Iterator[NoTensor]:
    """The values that are no tensors among those of one argument of `save_for_backward`; of an unpacked one there are several."""
    reader = _Reader(gradient, setup)
    found = [reader.value(value)] if not star else reader.unpacked(value) if star == "*" else []
    yield from (item for item in found if item is not None)


class _Reader:
    def __init__(self, gradient: Gradient, setup: Body) -> None:
        self.schema = gradient.schema
        self.scope = setup.scope
        self.file = setup.file

    def value(self, value: Expr) -> NoTensor | None:
        if value.kind == "const" and isinstance(value.value, int | float | str | bytes | complex):
            return NoTensor(f"`{self.file.text(value)}`")
        if value.kind in _DISPLAYS or value.kind == "fstring":
            return NoTensor(_DISPLAYS.get(value.kind, "a string"))
        argument = self._argument(value)
        if argument is not None:
            return _of_type(f"`{argument.name}`", argument.type, argument)
        if value.kind == "name" and self._is_own(value.text):
            return self._parameter(value.text)
        return self._metadata(value)

    def unpacked(self, value: Expr) -> list[NoTensor | None]:
        if value.kind == "name" and value.text == "inputs" and self._is_own("inputs"):
            return [_of_type(f"`{item.name}`", item.type, item) for item in self.schema.positional]
        if value.kind == "name" and value.text == "output" and self._is_own("output") and len(self.schema.returns) > 1:
            return [_of_type(f"output {place}", item.type) for place, item in enumerate(self.schema.returns)]
        elements = value.elements if value.kind in ("tuple", "list") else None
        return [self.value(item) for item in elements or ()]

    def _parameter(self, name: str) -> NoTensor | None:
        """A parameter of `setup_context` itself."""
        if name in ("inputs", "keyword_only_inputs"):
            return NoTensor(f"`{name}`, which is a {'tuple' if name == 'inputs' else 'dictionary'},")
        if name != "output" or not self.schema.returns:
            return None
        if len(self.schema.returns) > 1:
            return NoTensor("`output`, which is a tuple,")
        return _of_type("`output`", self.schema.returns[0].type)

    def _metadata(self, value: Expr) -> NoTensor | None:
        """`x.shape`, `x.dtype` and the like of a tensor, and items of `x.shape`."""
        if value.kind == "subscript":
            return NoTensor(f"`{self.file.text(value)}`") if self._metadata(value.items[0]) is not None else None
        first, _, rest = value.text.partition(".")
        argument = self._argument(Expr("name", value.start, value.end, first)) if value.kind == "name" else None
        if argument is None or rest not in _METADATA or str(argument.type) != "Tensor":
            return None
        return NoTensor(f"`{value.text}`")

    def _is_own(self, name: str) -> bool:
        return name in ("inputs", "output", "keyword_only_inputs") and all(
            item.target != name for scope in self.scope.walk() for item in scope.assigns
        )

    def _argument(self, value: Expr) -> Argument | None:
        """The argument of the schema that an expression is, as an item of `inputs` or a name that is only assigned once."""
        if value.kind == "name":
            return self._assigned(value.text)
        if value.kind != "subscript" or value.items[0].kind != "name" or not self._is_own(value.items[0].text):
            return None
        index = value.items[1].value
        if value.items[0].text == "inputs" and isinstance(index, int) and 0 <= index < len(self.schema.positional):
            return self.schema.positional[index]
        if value.items[0].text == "keyword_only_inputs":
            return next((item for item in self.schema.kwarg_only if item.name == index), None)
        return None

    def _assigned(self, name: str) -> Argument | None:
        assigns = [item for scope in self.scope.walk() for item in scope.assigns if item.target == name]
        if len(assigns) != 1 or not assigns[0].sure or assigns[0] not in self.scope.assigns:
            return None
        if assigns[0].value is not None:
            return self._argument(assigns[0].value) if assigns[0].value.kind == "subscript" else None
        for item in self.scope.unpacks:
            if name in item.targets and item.value.text == "inputs" and self._is_own("inputs") and not item.starred:
                place = item.targets.index(name)
                return self.schema.positional[place] if len(item.targets) == len(self.schema.positional) else None
        return None


def _of_type(described: str, kind: SchemaType, argument: Argument | None = None) -> NoTensor | None:
    """Return a value of a schema's type, if that is not a tensor type."""
    if kind.is_list or kind.base in _PLAIN:
        return NoTensor(f"{described}, which is `{kind}`,", argument, kind.optional)
    return None

"""Calls of operators against their schemas."""

from __future__ import annotations

from collections.abc import Container, Iterator

from opschema_cli.evaluation.conditions import chosen, reached, runs
from opschema_cli.evaluation.expected_errors import allows_failure
from opschema_cli.lint.diagnostic import CPP, Diagnostic, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_cli.source.python import Expr
from opschema_rules.torchlib.model import OpCall, Operator
from opschema_rules.torchlib.patched_names import may_be_patched
from opschema_rules.torchlib.places import declared
from opschema_rules.torchlib.stray_uses import is_for_another_build, is_for_another_device
from opschema_rules.torchlib.swapped import swapped


@rule("REG401", "call-arguments", needs=(CPP,))
def call_arguments(operator: Operator) -> Iterator[Diagnostic]:
    """A call whose arguments do not match the operator's schema.

    The rule checks calls through `torch.ops.ns.name`, through a handle, and of the decorated function for too many
    arguments, unknown names, an argument after `*` that is passed by position, one that is missing or passed twice,
    literals of a type that torch rejects (`1.5` for an `int`), and two parameters of the caller that are passed in each other's
    place by their annotations. Two values with each other's names, `op(x, out)` for `op(out, x)`, are a warning if the operator
    writes only one of them. Calls whose errors are caught or expected are not checked. If an operator has several overloads,
    nothing is reported; if C++ defines it several times, for different devices, a call must match none of the definitions. Python
    files for a build that is not in the tree, which use several other names of the namespace that nothing defines, are not checked,
    nor is code for another device (`if current_platform.is_xpu():`) for which the tree's C++ has no kernel.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float, *, clamp: bool = False) -> Tensor:
        return x * factor


    def forward(x):
        return scale(x, 2.0, True)
    ```

    Bad:

    ```python
    torch.library.define("kit::pad", "(Tensor x, int size, str mode='zero') -> Tensor")


    def forward(x):
        return torch.ops.kit.pad(x, size=1.5, value=0)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float, sizes: Optional[List[int]] = None, *, clamp: bool = False) -> Tensor:
        return x * factor


    def forward(x, *rest, **options):
        return scale(x, 2, (1, 2), clamp=True) + torch.ops.kit.scale(x, *rest) + scale(factor=1, **options)
    ```
    """
    schema = called_schema(operator)
    if schema is None or schema.vararg:
        return
    found = [(call, item) for call in operator.calls for item in call_faults(operator, schema, call)]
    bodies = operator.tree.bodies
    found = [(call, item) for call, item in found if not allows_failure(bodies, call.body, call.call.start)]
    found = [(call, item) for call, item in found if is_meant(operator, call)]
    if found and not has_namesakes(operator):
        others = other_definitions(operator)
        found = [(call, item) for call, item in found if all(_is_refused_by(other, call) for other in others)]
        yield from (item for call, item in found if not _is_for_another_build(operator, call))


def is_meant(operator: Operator, call: OpCall) -> bool:
    """Whether a call may run, for all that is known of the conditions around it, and its name is the operator's to the end."""
    evaluator = operator.tree.evaluator
    frame = evaluator.frames.assumed(call.body)
    may_run = all(test(evaluator, frame, call.call.span) for test in (runs, chosen, reached))
    return may_run and not may_be_patched(call.body, call.call)


def called_schema(operator: Operator) -> OperatorSchema | None:
    """The schema of an operator that is called somewhere; None if it is not known, or refused."""
    definition, schema = operator.definition, operator.definition.schema
    refused = definition.problems or any(item.refused for item in definition.errors)
    if refused or not isinstance(schema, OperatorSchema) or schema.name_only or not operator.calls:
        return None
    return schema


def has_namesakes(operator: Operator) -> bool:
    """Whether a call by its name may refer to another operator: an overload, or one that is not merely redefined in C++."""
    names = {name.partition(".")[0] for name in operator.names or ()}
    same = {id(item) for item in (operator, *other_definitions(operator))}
    others = (item for item in operator.tree.operators if id(item) not in same)
    return any(item.names is None or names & {name.partition(".")[0] for name in item.names} for item in others)


def other_definitions(operator: Operator) -> list[Operator]:
    """Definitions of the same operator in other C++, as builds for different devices have them."""
    if operator.definition.api != "cpp" or len(operator.names or ()) != 1:
        return []
    found = operator.tree.by_name[min(operator.names or ())]
    return [
        item for item in found if item is not operator and item.definition.api == "cpp" and item.names == operator.names
    ]


def _is_for_another_build(operator: Operator, call: OpCall) -> bool:
    if operator.definition.api != "cpp" or call.through != "torch.ops":
        return False
    elsewhere = is_for_another_build(operator.tree, call.place.path, operator.title)
    return elsewhere or is_for_another_device(operator, call.body, call.call.start)


def _is_refused_by(operator: Operator, call: OpCall) -> bool:
    schema = operator.definition.schema
    known = isinstance(schema, OperatorSchema) and not schema.vararg and not schema.name_only
    return known and isinstance(schema, OperatorSchema) and any(True for _ in call_faults(operator, schema, call))


def call_faults(
    operator: Operator, schema: OperatorSchema, call: OpCall, title: str = "", related: tuple[Related, ...] = ()
) -> Iterator[Diagnostic]:
    """All that is wrong with one call of an operator that has this schema; of something else with ``title``, which ``related``
    declares, for the operator.
    """
    return _Call(operator, schema, call, title or operator.title, related).faults()


class _Call:
    """One call against the schema."""

    def __init__(
        self, operator: Operator, schema: OperatorSchema, call: OpCall, title: str, related: tuple[Related, ...]
    ) -> None:
        self.operator, self.schema, self.call = operator, schema, call
        self.title, self.related = title, related
        words = call.call.keywords
        self.open_places = "*" in words
        self.open_names = "**" in words
        self.by_position = call.call.positional()
        self.by_name = [(word, item) for word, item in call.call.args if word not in ("", "*", "**")]

    def faults(self) -> Iterator[Diagnostic]:
        """All that torch would refuse."""
        arguments = self.schema.positional
        yield from self._too_many(self.by_position[len(arguments) :])
        given = dict(zip((item.name for item in arguments), self.by_position, strict=False))
        unknown = [item for item in self.by_name if self.schema.argument(item[0]) is None]
        lacking = self._lacking({*given, *(word for word, _ in self.by_name)})
        # One name too many and one too few are one argument under another name.
        renamed = len(unknown) == len(lacking) == 1
        for word, item in self.by_name:
            if self.schema.argument(word) is None:
                meant = f": it is called `{lacking[0].name}`" if renamed else ""
                yield self._fault(f"takes no argument `{word}`{meant}", item, lacking if renamed else ())
            elif word in given:
                yield self._fault(f"is passed `{word}` twice, by position and by name", item, self._named(word))
        given.update((word, item) for word, item in self.by_name if word not in given)
        if lacking and not renamed:
            names = quoted(item.name for item in lacking)
            yield self._fault(f"is called without the required {names}", self.call.call.items[0], lacking)
        for argument in self.schema.arguments:
            value = given.get(argument.name)
            if value is not None and misfits(argument.type, value):
                text = self.call.body.file.text(value)
                shown = text if len(text) <= 40 else "a literal"
                yield self._fault(
                    f"takes no `{shown}` for `{argument.name}`, which is `{argument.type}`", value, [argument]
                )
        pairs = [(item, given[item.name]) for item in self.schema.arguments if item.name in given]
        for argument, value, kind, other, second in swapped(self.operator.tree, self.call.body, pairs, misfits):
            typed = (f" (`{kind}`)", f" (`{argument.type}`)") if kind else ("", "")
            said = f"is passed `{value.text}`{typed[0]} for `{argument.name}`{typed[1]}, and `{second.text}` for `{other.name}`"
            yield self._fault(
                f"{said}: the two {'are' if kind else 'seem'} swapped",
                value,
                [argument, other],
                Severity.ERROR if kind else Severity.WARNING,
            )

    def _too_many(self, spare: list[Expr]) -> Iterator[Diagnostic]:
        if not spare:
            return
        named, count = self.schema.kwarg_only, len(self.schema.positional)
        takes = f"takes {count} argument{'s' * (count != 1)} by position and is passed {len(self.by_position)}"
        do = f"; pass {quoted(item.name for item in named)} by name" if named and len(spare) <= len(named) else ""
        yield self._fault(takes + do, spare[0], named)

    def _lacking(self, given: Container[str]) -> list[Argument]:
        """The arguments that the call must pass, and does not."""
        if self.open_names:
            return []
        arguments = self.schema.kwarg_only if self.open_places else self.schema.arguments
        return [item for item in arguments if item.default is None and item.name not in given]

    def _named(self, word: str) -> list[Argument]:
        return [item for item in self.schema.arguments if item.name == word]

    def _fault(
        self,
        said: str,
        at: Expr,
        arguments: tuple[Argument, ...] | list[Argument],
        severity: Severity = Severity.ERROR,
    ) -> Diagnostic:
        related = self.related or declared(self.operator, arguments or self.schema.arguments[:1])
        place = self.call.body.at(at)
        return Diagnostic(f"`{self.title}` {said}", place, related, ops=(self.operator.title,), severity=severity)


_REFUSED: dict[str, tuple[type, ...]] = {
    "int": (float, str), "SymInt": (float, str), "float": (str,), "bool": (str,), "str": (int, float), "Scalar": (str,),
    "ScalarType": (str, float), "Device": (int, float), "Tensor": (int, float, str),
}  # fmt: skip
"""Literals that torch refuses for a type; of those not named here nothing is known."""

_REFUSED_LETTERS = frozenset({"int", "SymInt", "float", "bool", "Tensor"})
"""Types of which a string is not a list; a string is a valid ``str[]``, letter by letter."""

_TAKES_NONE = frozenset({"Tensor", "bool"})


def misfits(type_: SchemaType, value: Expr) -> bool:
    """Whether torch is known to reject a literal for a type."""
    if type_.optional and type_.inner is not None:
        return not (value.kind == "const" and value.value is None) and misfits(type_.inner, value)
    if type_.is_list and type_.inner is not None:
        if value.kind in ("list", "tuple"):
            return any(_is_bad_element(type_.inner, item) for item in value.items)
        number = isinstance(value.value, int | float) and type_.size is not None
        spread = isinstance(value.value, str) and type_.inner.name not in _REFUSED_LETTERS
        return value.kind == "const" and not number and not spread
    if value.kind in ("list", "tuple", "dict"):
        return type_.name in _REFUSED
    if value.kind != "const" or type_.name not in _REFUSED:
        return False
    return type_.name not in _TAKES_NONE if value.value is None else isinstance(value.value, _REFUSED[type_.name])


def _is_bad_element(type_: SchemaType, item: Expr) -> bool:
    if item.kind == "const" and item.value is None:
        return type_.name in ("Tensor", "int", "SymInt", "float") and not type_.optional
    return misfits(type_, item)

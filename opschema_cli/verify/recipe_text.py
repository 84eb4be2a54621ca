"""Generates recipes to complete, from what is known about ops: the calls found, the reasons why none were found, and references."""

from __future__ import annotations

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.verify.model import Call
from opschema_cli.verify.recipe_calls import call_text, literal
from opschema_cli.verify.search.candidates import candidates, unmakable

_WIDTH = 116
_HEAD = '''"""Recipes of `opschema verify`: how ops are called, and what they must return."""

from opschema_cli.verify.recipes import Recipe, recipe{extra}
'''
_REASON = 300


class Draft(msgspec.Struct, frozen=True):
    """The known facts about an op that has no recipe yet.

    ``calls`` are those that it accepts, by their labels, and ``sample`` is one that it may accept; ``order`` are the names of all
    its arguments. ``arguments`` are expressions for a reference's variables. ``reference`` describes what it is compared with
    already, and ``functions`` are those of the tree that may compute the same, with their places. ``is_searched`` is false for an
    op whose calls a manifest declares.
    """

    op: str
    declaration: str
    calls: dict[str, Call] = {}
    reason: str = ""
    sample: Call = Call(inputs=())
    order: tuple[str, ...] = ()
    unmakable: tuple[str, ...] = ()
    arguments: dict[str, str] = {}
    reference: str = ""
    functions: tuple[str, ...] = ()
    is_searched: bool = True


def first_call(schema: OperatorSchema) -> Call:
    """The likeliest call by a schema, whether or not it is accepted, without the arguments for which no value can be made."""
    makable = tuple(item for item in schema.arguments if not unmakable(item))
    return next(candidates(msgspec.structs.replace(schema, arguments=makable)))


def arguments_of_schema(schema: OperatorSchema) -> dict[str, str]:
    """Return the expression with which a reference reads each argument of an operator, by the name of its variable."""
    return {_variable(item.name): _expression(item) for item in schema.arguments if not unmakable(item)}


def arguments_of_call(call: Call) -> dict[str, str]:
    """Return the expression with which a reference reads each argument of a declared call, by the name of its variable."""
    inputs = {item.name: f'tensors["{item.name}"]' for item in call.inputs}
    params = {name: f'params["{name}"]' for name in call.params}
    params |= {name: f'params.get("{name}", {literal(value)})' for name, value in call.defaults.items()}
    return {_variable(name): value for name, value in (inputs | params).items()}


def _expression(argument: Argument) -> str:
    name = argument.name
    if argument.type.is_list and argument.type.base == "Tensor":
        return f'[tensor for name, tensor in tensors.items() if name.startswith("{name}.")]'
    if argument.type.base == "Tensor":
        return f'tensors.get("{name}")' if argument.type.optional else f'tensors["{name}"]'
    if argument.default is None:
        return f'params["{name}"]'
    try:
        return f'params.get("{name}", {literal(ast.literal_eval(argument.default))})'
    except (ValueError, SyntaxError):
        return f'params.get("{name}")'


def _variable(name: str) -> str:
    return "input" if name == "self" else f"{name}_" if keyword.iskeyword(name) else name


def recipes_text(drafts: Sequence[Draft]) -> str:
    """Return a Python file with a recipe for each op. It is valid without changes; comments mark the parts to complete."""
    extra = ", tensor" if any(draft.is_searched for draft in drafts) else ""
    taken: set[str] = set()
    return "\n\n".join([_HEAD.format(extra=extra), *("\n".join(_class(draft, taken)) + "\n" for draft in drafts)])


def _class(draft: Draft, taken: set[str]) -> Iterator[str]:
    yield f'@recipe("{draft.op}")'
    yield f"class {_class_name(draft.op, taken)}(Recipe):"
    yield f'    """Recipe of `{draft.op}`."""'
    yield ""
    yield from _comment(f"Declared: {draft.declaration}")
    if draft.is_searched:
        yield ""
        yield from _calls(draft)
    yield ""
    yield from _reference(draft)


def _calls(draft: Draft) -> Iterator[str]:
    if draft.calls:
        yield from _comment(
            "Calls that it accepts. Replace them by those that it is used with: the shapes, dtypes and flags."
        )
        yield "    calls = {"
        yield from (f'        "{label}": {call_text(call, draft.order)},' for label, call in draft.calls.items())
        yield "    }"
        return
    yield from _comment(f"No call was found: {_one_line(draft.reason)}.")
    yield from _comment("Write one or more that it accepts:")
    yield "    #"
    yield "    # calls = {"
    yield f'    #     "small": {call_text(draft.sample, draft.order)},'
    yield "    # }"
    if draft.unmakable:
        names = ", ".join(f"{name}=..." for name in draft.unmakable)
        yield "    #"
        yield "    # def call(self, op, tensors, params):"
        yield f"    #     return op(**tensors, **params, {names})"


def _reference(draft: Draft) -> Iterator[str]:
    if draft.reference:
        yield from _comment(f"It is compared with {draft.reference}. To compare it with something else:")
    else:
        yield from _comment(
            "It has no reference: only before and after are compared. To judge its results, compute the same:"
        )
    yield "    #"
    yield "    # def reference(self, tensors, params):  # tensors in float64, then in float32"
    yield from (f"    #     {name} = {value}" for name, value in draft.arguments.items())
    yield "    #     return ..."
    if draft.functions:
        yield "    #"
        yield from _comment(f"By their names, these may compute the same: {', '.join(draft.functions)}.")


def _comment(text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, _WIDTH - 6, break_long_words=False, break_on_hyphens=False)
    return (f"    # {line}" for line in lines)


def _one_line(reason: str) -> str:
    return textwrap.shorten(" ".join(reason.split()), _REASON, placeholder=" ...").rstrip(".")


def _class_name(op: str, taken: set[str]) -> str:
    """A name of a class for an op: ``kit::rms_norm.out`` is ``KitRmsNormOut``."""
    words = re.split(r"[^0-9A-Za-z]+|_", op)
    base = "".join(word[:1].upper() + word[1:] for word in words if word) or "Op"
    base = base if base[0].isalpha() else f"Op{base}"
    name = next(name for name in (base, *(f"{base}{n}" for n in range(2, 1000))) if name not in taken)
    taken.add(name)
    return name

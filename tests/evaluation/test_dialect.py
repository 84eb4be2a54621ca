"""A pack's dialect: calls of external names, decorators that change nothing, value types of its own."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.attributes import attribute_of
from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import (
    UNKNOWN,
    Arguments,
    ExternalName,
    Func,
    PackValue,
    Plain,
    Text,
    Unknown,
    Value,
    Values,
)
from tests.evaluation.evaluating import values_of


class Handle(PackValue, frozen=True):
    """The result of `acme.handle("name")`."""

    name: str


@attribute_of.register(Handle)
def _of_handle(value: Handle, evaluator: Evaluator, name: str) -> Values:
    return (Text(frozenset({value.name})),) if name == "name" else UNKNOWN


@applied.register(Handle)
def _call_of_handle(callee: Handle, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Handle(callee.name + "()")


def _make_handle(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Handle(evaluator.text(arguments.by_name(("name",)).get("name")) or "")


ACME = Dialect(
    calls={"acme.handle": _make_handle}.get,
    names={"acme.DEFAULT": Handle("default")},
    transparent=frozenset({"acme.traced"}),
)


def test_a_dialect_reads_calls_of_external_names() -> None:
    text = """
from acme import handle as make
def helper(prefix):
    return make(name=prefix + "_op")
found = helper("add")
"""
    assert values_of(text, ACME) == (Handle("add_op"),)
    assert values_of(text) == (Unknown("it is what `acme.handle` returns"),)


def test_values_of_a_pack_have_attributes_and_calls() -> None:
    assert values_of("import acme\nfound = acme.handle('x')().name\n", ACME) == (Text(frozenset({"x()"})),)


def test_an_external_name_may_stand_for_a_value() -> None:
    assert values_of("import acme\nfound = acme.DEFAULT\n", ACME) == (Handle("default"),)
    assert values_of("import acme\nfound = acme.OTHER\n", ACME) == (ExternalName("acme.OTHER"),)


def test_a_transparent_decorator_leaves_a_function_unchanged() -> None:
    text = "import acme\n@acme.traced\ndef f(): return 2\nfound = f\nresult = f()\n"
    (function,) = values_of(text, ACME)
    assert isinstance(function, Func)
    assert values_of(text, ACME, name="result") == (Plain(2),)
    assert isinstance(values_of(text)[0], Unknown)


def test_the_first_dialect_that_knows_a_name_reads_it() -> None:
    def other(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
        yield Plain(1)

    text = "import acme\nfound = acme.handle('x')\n"
    assert values_of(text, Dialect(calls={"acme.handle": other}.get), ACME) == (Plain(1),)
    assert values_of(text, Dialect(), ACME) == (Handle("x"),)

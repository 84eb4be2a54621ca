"""FLY207 and FLY228: Classes of FlyDSL's own, and functions that are imported by their names."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.test_own_functions import OWN

CLASSES = """\
from contextlib import contextmanager


class Context:
    _current = None

    def __init__(self, name, *, depth=0):
        self.name = name

    @classmethod
    @contextmanager
    def hints(cls, values: dict):
        cls._hints = values
        yield


class Open(Unknown):
    def __init__(self, name): ...


@registered
class Registered:
    def __init__(self, name): ...


class Made:
    def __new__(cls, *args): ...

    def __init__(self, name): ...


def full(shape, value, dtype): ...
"""


def found(text: str, code: str, classes: str = CLASSES) -> list[str]:
    head = "from flydsl.compiler.context import Context, Made, Open, Registered, full\n\n\n"
    files = {**OWN, "python/flydsl/compiler/context.py": classes, KERNELS_PATH: f"{HEAD}{head}{text}"}
    return [item.message for item in lint_files([PACK], files, [code]).diagnostics]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("full(1, 2)", "`full(shape, value, dtype)` in this FlyDSL needs `dtype`"),
        ("Context()", "`Context(name, depth)` in this FlyDSL needs `name`"),
        ("Context('a', 1)", "`Context(name, depth)` in this FlyDSL takes at most 1 positional argument"),
        ("Context.hints(fast=True)", "`hints(values)` in this FlyDSL has no parameter `fast`"),
        ("Context.hints()", "`hints(values)` in this FlyDSL needs `values`"),
    ],
)
def test_calls_that_do_not_fit(call: str, message: str) -> None:
    assert message in found(f"def use(x):\n    return {call}\n", "FLY228")


@pytest.mark.parametrize(
    "call",
    [
        "full(1, 2, dtype=3)",
        "Context('a', depth=1)",
        "Context.hints({})",
        "Context.hints(**x)",
        "Open()",
        "Registered()",
        "Made()",
    ],
)
def test_calls_that_fit_or_are_not_known(call: str) -> None:
    assert found(f"def use(x):\n    return {call}\n", "FLY228") == []


def test_a_parameter_of_the_same_name_is_another_function() -> None:
    assert found("def use(full, Context):\n    return full(1), Context()\n", "FLY228") == []


def test_an_attribute_that_a_class_lacks() -> None:
    text = (
        "def use(x):\n    return Context.hint({}), Context.hints({}), Context._hints, Context._current, Context.mro()\n"
    )
    assert found(text, "FLY207") == ["this FlyDSL has no `flydsl.compiler.context.Context.hint`"]


@pytest.mark.parametrize("name", ["Open", "Registered"])
def test_other_classes_may_have_any_attribute(name: str) -> None:
    assert found(f"def use(x):\n    return {name}.hint\n", "FLY207") == []


def test_attributes_that_are_written_elsewhere() -> None:
    assert found("Context.hint = 1\nprint(Context.hint)\n", "FLY207") == []
    changed = f"{CLASSES}\n\ndef change():\n    Context.hint = 1\n"
    assert found("print(Context.hint)\n", "FLY207", changed) == []

"""Members that ``__init_subclass__`` makes, compared with the ones that Python makes."""

from __future__ import annotations

import inspect

import pytest

from opschema_cli.evaluation.execution.outcomes import Returned, Unresolved
from opschema_cli.evaluation.execution.signatures import INSPECT, signature_of
from opschema_cli.evaluation.values import ClassValue
from tests.evaluation.executing import executor_of, named

HOOKS = """
import inspect


def remember(cls):
    cls.known = True


class Base:
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for line in open("names.txt"):
            cls.described = line
        remember(cls)


class Renaming(Base):
    other = "b"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        name = cls.__dict__.get("other")
        if name is None or name == "b":
            return
        before = cls.forward
        signature = inspect.signature(before)
        names = [p.replace(name=name) if p.name == "b" else p for p in signature.parameters.values()]

        def forward(self, *args, **words):
            return before(self, *args, **words)

        forward.__signature__ = signature.replace(parameters=names)
        cls.forward = forward

    def forward(self, a, b, *, scale=1):
        return a


class Plain(Renaming):
    pass


class Renamed(Renaming):
    other = "end"


class Below(Renamed):
    other = "other"


class Written(Renaming):
    other = "last"

    def forward(self, b, c=None):
        return b


class Bare(Base):
    def forward(self, x):
        return x
"""


@pytest.mark.parametrize("name", ["Plain", "Renamed", "Below", "Written", "Bare"])
def test_the_signature_of_a_method_that_a_hook_makes(name: str) -> None:
    space: dict[str, object] = {"open": lambda path: []}
    exec(HOOKS, space)
    executor = executor_of(HOOKS, INSPECT)
    cls = named(executor, name)
    assert isinstance(cls, ClassValue)
    outcome = executor.made(cls, "forward")
    assert isinstance(outcome, Returned)
    found = signature_of(outcome.value)
    assert found is not None
    made = inspect.signature(space[name].forward)  # type: ignore[attr-defined]
    assert [item.param.name for item in found.parameters] == list(made.parameters)


@pytest.mark.parametrize(
    "hook",
    [
        "cls.forward = make(cls)",
        "setattr(cls, name_of(cls), None)",
        "if chosen():\n            cls.forward = lambda self, x: x",
    ],
)
def test_what_cannot_be_known_of_a_hook(hook: str) -> None:
    text = f"""
import inspect
from elsewhere import chosen, make, name_of


class Base:
    def __init_subclass__(cls):
        {hook}


class Op(Base):
    def forward(self, a):
        return a
"""
    executor = executor_of(text, INSPECT)
    cls = named(executor, "Op")
    assert isinstance(cls, ClassValue)
    outcome = executor.made(cls, "forward")
    assert isinstance(outcome, Unresolved) or signature_of(getattr(outcome, "value", None)) is None

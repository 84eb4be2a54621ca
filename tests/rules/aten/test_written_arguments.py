"""Aliases of written arguments, the order of out arguments, and classes that structured kernels inherit from."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK


def told(native: str) -> list[tuple[str, str, str]]:
    """Code, text at the place, and message of each finding."""
    linted = lint_files([PACK], {"native_functions.yaml": native}, ("ATN153", "ATN215", "ATN325"))
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


def entry(schema: str, kernel: str = "f") -> str:
    return f"- func: {schema}\n  dispatch:\n    CPU: {kernel}\n"


def test_two_arguments_written_under_one_letter() -> None:
    assert told(entry("f_(Tensor(a!)[] self, Tensor(b!)[] x, Tensor(a!)[] y) -> ()")) == [
        ("ATN215", "y", "`y` is written under the alias of `self`, `a`: give it a letter of its own")
    ]


@pytest.mark.parametrize(
    "schema",
    [
        "f_(Tensor(a!) self, Tensor(b!) x) -> Tensor(a!)",
        "f_(Tensor(a!) self, Tensor(a) x) -> Tensor(a!)",
        "f(Tensor(a) self, Tensor(a) x) -> Tensor(a)",
        "f.out(Tensor self, *, Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!) x, Tensor(b!) y)",
    ],
)
def test_letters_of_their_own(schema: str) -> None:
    assert told(entry(schema)) == []


TOP = "top(Tensor self) -> (Tensor values, Tensor indices)"
OUT = "top.out(Tensor self, *, Tensor(a!) {0}, Tensor(b!) {1}) -> (Tensor(a!) {0}, Tensor(b!) {1})"


def test_out_arguments_in_another_order() -> None:
    message = "the out arguments are `indices`, `values`, and `top` returns `values`, `indices`: they are swapped"
    assert told(entry(TOP) + entry(OUT.format("indices", "values"), "g")) == [("ATN325", "indices", message)]


@pytest.mark.parametrize(
    ("returns", "outs"),
    [("values indices", "values indices"), ("values indices", "max max_values"), ("values indices", "values rest")],
)
def test_out_arguments_in_order_or_with_names_of_their_own(returns: str, outs: str) -> None:
    functional = TOP.replace("values", returns.split()[0]).replace("indices", returns.split()[1])
    assert told(entry(functional) + entry(OUT.format(*outs.split()), "g")) == []


def test_returns_without_names() -> None:
    assert told(entry("top(Tensor self) -> (Tensor, Tensor)") + entry(OUT.format("a", "b"), "g")) == []


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("TensorIterator", True),
        ("TensorIteratorBas", True),
        ("TensorIteratorBase", False),
        ("MetaBase", False),
        ("MyIterator", False),
    ],
)
def test_a_class_that_is_almost_the_iterator(name: str, *, is_told: bool) -> None:
    native = f"- func: f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n  structured: True\n  structured_inherits: {name}\n"
    message = f"structured kernels cannot inherit from `{name}`; did you mean `TensorIteratorBase`?"
    assert told(native + "  dispatch:\n    CPU: f_out\n") == ([("ATN153", name, message)] if is_told else [])

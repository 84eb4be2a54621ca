"""Declared slots against observed uses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.schema.align import Alignment, Slot, align, slots
from opschema_cli.source.python import Function, PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source


def signature(text: str) -> list[Slot]:
    """The slots of ``def f(<text>)``."""
    source = Source("f.py", f"def f({text}): ...\n")
    function: Function = PythonFile(source, collect(source.text)).functions["f"][0]
    return slots(function.params)


def shown(found: Alignment) -> dict[str, list[str]]:
    """A description of an alignment's contents apart from its matches."""
    pairs = {"renamed": found.renamed, "swallowed": found.swallowed, "reordered": found.reordered}
    words = {name: [f"{declared.name}->{observed.name}" for declared, observed in kept] for name, kept in pairs.items()}
    words |= {"missing": [slot.name for slot in found.missing], "extra": [slot.name for slot in found.extra]}
    return {name: kept for name, kept in words.items() if kept}


def test_slots_keep_kind_default_and_place() -> None:
    found = signature("a, /, b=1, *args, c, d=None, **rest")
    assert [(slot.name, slot.kind, slot.required) for slot in found] == [
        ("a", "posonly", True),
        ("b", "normal", False),
        ("args", "vararg", False),
        ("c", "kwonly", True),
        ("d", "kwonly", False),
        ("rest", "kwarg", False),
    ]
    assert found[1].span == (12, 13)


BY_NAME = [
    ("x, weight", "x, weight", {}),
    ("x, weight", "weight, x", {"reordered": ["x->x"]}),
    ("a, b, c, d", "b, c, d, a", {"reordered": ["a->a"]}),
    ("x, weight", "input, weight", {"renamed": ["x->input"]}),
    ("x, weight, bias", "x, weight", {"missing": ["bias"]}),
    ("x", "x, out", {"extra": ["out"]}),
    ("x, weight", "x, *tensors", {"swallowed": ["weight->tensors"]}),
    ("x, *, eps", "x, **options", {"swallowed": ["eps->options"]}),
    ("x, *, eps", "x, *tensors", {"missing": ["eps"]}),
    ("x, eps", "x, *, eps", {}),
    ("x, *, a, b", "x, *, b, a", {}),
    ("", "*args, **kwargs", {}),
    ("x, y", "p, q, y", {"renamed": ["x->p"], "extra": ["q"]}),
]


@pytest.mark.parametrize(("declared", "observed", "expected"), BY_NAME)
def test_by_name(declared: str, observed: str, expected: dict[str, list[str]]) -> None:
    assert shown(align(signature(declared), signature(observed))) == expected


BY_POSITION = [
    ("x, weight", "x, weight", {}),
    ("x, weight", "a, b", {"renamed": ["x->a", "weight->b"]}),
    ("x, weight", "weight, x", {"renamed": ["x->weight", "weight->x"]}),
    ("x, weight, key", "x", {"missing": ["weight", "key"]}),
    ("x", "x, weight", {"extra": ["weight"]}),
    ("x, weight, key", "x, *inputs", {"swallowed": ["weight->inputs", "key->inputs"]}),
    ("x, *, eps", "x, *, eps=1.0", {}),
    ("x, *, eps", "x, eps", {}),
    ("x, *, eps", "x, *, epsilon", {"missing": ["eps"], "extra": ["epsilon"]}),
]


@pytest.mark.parametrize(("declared", "observed", "expected"), BY_POSITION)
def test_by_position(declared: str, observed: str, expected: dict[str, list[str]]) -> None:
    assert shown(align(signature(declared), signature(observed), by="position")) == expected


def test_matches_are_pairs_of_both_sides() -> None:
    declared, observed = signature("x, weight"), signature("weight, x=None")
    assert align(declared, observed).matched == ((declared[0], observed[1]), (declared[1], observed[0]))


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(NAMES, NAMES, st.sampled_from(["name", "position"]))
def test_every_slot_is_spoken_for_once(left: list[str], right: list[str], by: str) -> None:
    declared, observed = [Slot(name) for name in left], [Slot(name) for name in right]
    found = align(declared, observed, by="name" if by == "name" else "position")
    pairs = [*found.matched, *found.renamed]
    assert sorted(slot.name for slot in [*(pair[0] for pair in pairs), *found.missing]) == sorted(left)
    assert sorted(slot.name for slot in [*(pair[1] for pair in pairs), *found.extra]) == sorted(right)


@given(st.permutations("abcdefg"))
def test_moving_the_reordered_slots_puts_the_order_right(order: list[str]) -> None:
    found = align([Slot(name) for name in "abcdefg"], [Slot(name) for name in order])
    moved = {declared.name for declared, _ in found.reordered}
    assert [name for name in order if name not in moved] == [name for name in "abcdefg" if name not in moved]
    assert (not moved) == (order == list("abcdefg"))

"""Compatibility of schemas, against torch's own ``is_backward_compatible_with`` and ``check_forward_compatible_with``.

``OPSCHEMA_MUTANTS`` is how many pairs of schemas are tried, ``OPSCHEMA_SEED`` which.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import pytest

from opschema_cli.diff.schema_diff import schema_differences
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_compatibility import backward_incompatibility, forward_incompatibility
from opschema_cli.schema.schema_string import parse_schema

COUNT = int(os.environ.get("OPSCHEMA_MUTANTS", "400"))
SEED = int(os.environ.get("OPSCHEMA_SEED", "22"))


def schema(text: str) -> OperatorSchema:
    found = parse_schema(text).schema
    assert found is not None, text
    return found


@pytest.mark.parametrize(
    ("old", "new", "backward", "forward"),
    [
        ("f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", True, True),
        ("f(Tensor x) -> Tensor", "f(Tensor x, int n=1) -> Tensor", True, True),
        ("f(Tensor x) -> Tensor", "f(Tensor x, int n) -> Tensor", False, False),
        ("f(Tensor x) -> Tensor", "f(Tensor x, int[2] n=1) -> Tensor", True, False),  # a list is not serialised as a default
        ("f(Tensor x, int n=1) -> Tensor", "f(Tensor x) -> Tensor", False, True),
        ("f(int n) -> Tensor", "f(int? n) -> Tensor", True, False),
        ("f(int n) -> Tensor", "f(SymInt n) -> Tensor", True, True),  # one type for who calls
        ("f(int n=1) -> Tensor", "f(int n=2) -> Tensor", False, False),
        ("f(int n) -> Tensor", "f(int m) -> Tensor", False, False),
        ("f(int n) -> Tensor", "f(*, int n) -> Tensor", False, False),
        ("f(Tensor x) -> Tensor", "f(Tensor(a!) x) -> Tensor", False, False),
        ("f(Tensor x) -> Tensor", "f(Tensor x) -> (Tensor, Tensor)", False, False),
        ("f(Tensor x) -> Tensor?", "f(Tensor x) -> Tensor", True, True),
        ("f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor?", False, True),  # forward, torch does not compare returns
        ("f(*, Tensor(a!) out) -> Tensor(a!)", "f(int n=1, *, Tensor(a!) out) -> Tensor(a!)", True, True),
    ],
)  # fmt: skip
def test_compatibility(old: str, new: str, backward: bool, forward: bool) -> None:
    before, now = schema(old), schema(new)
    assert (backward_incompatibility(before, now) == "") is backward
    assert (forward_incompatibility(before, now) == "") is forward


def test_the_reason_names_the_argument() -> None:
    before, now = schema("f(Tensor x) -> Tensor"), schema("f(Tensor x, int n) -> Tensor")
    assert backward_incompatibility(before, now) == "the new argument `n` has no default"


# -- random pairs ------------------------------------------------------------------------------------------------------

TYPES = (
    *("Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "Tensor(a!)", "Tensor(a)", "Tensor(b!)", "Tensor(a -> *)", "Tensor!"),
    *("Tensor(a!)[]", "Tensor(a)[]", "Tensor(a!)?", "Tensor(a|b)", "Tensor[](a!)", "Tensor(*)", "int", "int?", "int[]"),
    *("int[2]", "int[2]?", "int[]?", "int?[]", "SymInt", "SymInt?", "SymInt[]", "SymInt[2]", "float", "float?", "float[]"),
    *("bool", "bool?", "bool[]", "bool[3]", "str", "str?", "str[]", "Scalar", "Scalar?", "Scalar[]", "ScalarType"),
    *("ScalarType?", "Layout", "MemoryFormat?", "Device", "Device?", "Generator?", "SymBool", "complex", "Any", "Stream"),
    *("(int, int)", "(Scalar, int)", "(int, int)[]", "Future(int)", "Future(Scalar)", "Dict(str, int)", "Dict(int, int)"),
    *("Union(int, str)", "Union(int, None)", "Union(int, float, complex)", "Union(str, int, float)", "Storage", "NoneType"),
)  # fmt: skip

DEFAULTS = {
    "int": ("0", "1", "-1", "Mean", "01"),
    "float": ("0", "0.", "1", "1.0", "1e-5", "-1.5"),
    "bool": ("True", "False"),
    "str": ('"a"', "'a'", '"b"', '"a\\n"'),
    "Scalar": ("1", "1.0", "True"),
    "ScalarType": ("float", "long", "double", "int64"),
    "Device": ('"cpu"', '"cpu:0"', '"cuda"'),
    "int[2]": ("1", "[1,1]", "[1, 2]", "0"),
    "SymInt[2]": ("1", "[1,1]"),
    "int[]": ("[]", "[0,1]", "[0, 1]", "[-1]"),
    "float[]": ("[1]", "[1.0]", "[]"),
    "bool[3]": ("True", "[True,True,True]"),
    "int?": ("None", "1", "1.0"),
    "float?": ("None", "1", "1.0"),
    "Scalar?": ("None", "1", "1.0"),
    "ScalarType?": ("None", "float"),
    "Tensor?": ("None",),
    "Generator?": ("None",),
    "SymInt": ("0", "1"),
    "complex": ("1", "1j", "2.5j"),
    "Layout": ("strided",),
}


def argument(chance: random.Random, name: str) -> str:
    of = chance.choice(TYPES)
    defaults = DEFAULTS.get(of, ())
    return f"{of} {name}" + (f"={chance.choice(defaults)}" if defaults and chance.random() < 0.6 else "")


Parts = tuple[list[str], list[str], list[str]]
"""The positional arguments, those behind `*`, and the returns."""


def parts(chance: random.Random) -> Parts:
    def some(most: int, prefix: str) -> list[str]:
        return [argument(chance, f"{prefix}{index}") for index in range(chance.randint(0, most))]

    returns = [chance.choice(TYPES) + chance.choice(("", "", f" r{index}")) for index in range(chance.randint(0, 2))]
    return some(3, "p"), [*some(2, "k"), *(["Tensor(a!) out"] if chance.random() < 0.3 else [])], returns


def mutated(chance: random.Random, of: Parts) -> Parts:
    """The same with one change: an argument or return more, fewer, elsewhere, or with another type, name or default."""
    found: Parts = (list(of[0]), list(of[1]), list(of[2]))
    part = chance.choice((0, 0, 0, 1, 1, 2))
    items = found[part]
    index = chance.randrange(len(items)) if items else 0
    kind = chance.choice(("add", "drop", "type", "default", "name", "swap", "over"))
    fresh = argument(chance, "n") if part < 2 else chance.choice(TYPES)
    if kind == "add" or not items:
        items.insert(chance.choice((index, len(items))), fresh)
    elif kind == "drop":
        del items[index]
    elif kind == "swap":
        items.append(items.pop(index))
    elif kind == "over" and part < 2:
        found[1 - part].append(items.pop(index))
    elif part == 2:
        items[index] = fresh
    else:
        items[index] = changed_argument(chance, items[index], kind)
    return found


def changed_argument(chance: random.Random, item: str, kind: str) -> str:
    written, _, _ = item.partition("=")
    of, _, name = written.rpartition(" ")
    defaults = DEFAULTS.get(of, ())
    if kind == "default" and defaults:
        return f"{of} {name}" + chance.choice(("", f"={chance.choice(defaults)}", f"={chance.choice(defaults)}"))
    if kind == "name":
        return item.replace(f" {name}", f" {name}x")
    return argument(chance, name)


def text_of(of: Parts) -> str:
    positional, keyword, returns = of
    arguments = [*positional, *(["*", *keyword] if keyword else [])]
    return f"f({', '.join(arguments)}) -> ({', '.join(returns)})"


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    found = []
    while len(found) < count:
        before = parts(chance)
        now = before
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            now = mutated(chance, now)
        found.append((text_of(before), text_of(now)))
    return found


def verdicts_of_torch(old: Any, new: Any) -> tuple[bool, bool]:
    """Backward and forward; no, too, where torch reads behind the end of the arguments, to compare or to name one."""
    try:
        backward = new.is_backward_compatible_with(old)
    except IndexError:
        backward = False
    try:
        return backward, new.check_forward_compatible_with(old)[0]
    except IndexError:
        return backward, False


def differences_from_torch(given: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """The pairs that torch judges otherwise, and how many it could judge."""
    torch = pytest.importorskip("torch")
    found, judged = [], 0
    for old, new in given:
        try:
            before, now = torch._C.parse_schema(old), torch._C.parse_schema(new)
        except (RuntimeError, ValueError):
            continue
        judged += 1
        expected = verdicts_of_torch(before, now)
        mine, other = schema(old), schema(new)
        answer = (not backward_incompatibility(mine, other), not forward_incompatibility(mine, other))
        if answer != expected:
            found.append(f"{old}\n{new}\n  torch: {expected}, here: {answer}")
    return found, judged


def test_random_pairs_are_judged_as_torch_judges_them() -> None:
    found, judged = differences_from_torch(pairs(COUNT, SEED))
    assert found == []
    assert judged > COUNT // 2


def test_changes_that_affect_saved_graphs_are_those_that_torch_refuses() -> None:
    judged = 0
    for old, new in pairs(COUNT, SEED):
        before, now = parse_schema(old).schema, parse_schema(new).schema
        if before is not None and now is not None:
            judged += 1
            hits = {item for change in schema_differences("f", before, now, ({}, {})) for item in change.hits}
            assert ("graphs" in hits) is bool(backward_incompatibility(before, now)), (old, new)
            assert ("new-graphs" in hits) is bool(forward_incompatibility(before, now)), (old, new)
    assert judged > COUNT // 2


def test_the_words_of_dtypes_are_torchs() -> None:
    """Each word that torch takes for a dtype, against each number."""
    torch = pytest.importorskip("torch")
    words = [name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)]
    given = [(f"f(ScalarType x={word}) -> ()", f"f(int x={number}) -> ()") for word in words for number in range(50)]
    found, judged = differences_from_torch(given)
    assert found == []
    assert judged > 2000

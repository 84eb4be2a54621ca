"""Binding: what rules and declared shapes say about the open names, and what becomes of each rule."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from opschema_cli.schema.describe import describe
from opschema_cli.schema.evaluate import BudgetExceeded, Tensor, Unsupported, Value
from opschema_cli.schema.expression import parse_expression
from opschema_cli.schema.outcomes import Failed, Holds, Solution, Unresolved, Violated
from opschema_cli.schema.shapes import parse_shape
from opschema_cli.schema.solve import solve


def solved(
    *rules: str, shapes: Mapping[str, str] | None = None, unknown: tuple[str, ...] = (), **known: Value
) -> Solution:
    declared = {tensor: parse_shape(text) for tensor, text in (shapes or {}).items()}
    tensors = {
        name: Tensor(value, name) if name in "qxyzw" and isinstance(value, tuple) else value
        for name, value in known.items()
    }
    return solve([parse_expression(rule) for rule in rules], tensors, shapes=declared, unknown=unknown)


Y = Tensor(None, "y")


@pytest.mark.parametrize(
    ("rules", "known", "found"),
    [
        (["q.shape == (B, S, H)"], {"q": (2, 8, 4)}, {"B": 2, "S": 8, "H": 4}),
        (["(B, S) == q.shape"], {"q": (2, 8)}, {"B": 2, "S": 8}),
        (["y.shape == (B, S)", "q.shape == (S, B)"], {"q": (2, 8), "y": Y}, {"B": 8, "S": 2, "y": Tensor((8, 2), "y")}),
        (["_kH == (k[0] if isinstance(k, (tuple, list)) else k)"], {"k": [3, 5]}, {"_kH": 3}),
        (["w is None or y.shape == q.shape"], {"q": (2, 8), "w": (3,), "y": Y}, {"y": Tensor((2, 8), "y")}),
        (["B == 2 or S == 3", "B == 4"], {}, {"S": 3}),
        (["a == b", "b == c", "c == 3"], {}, {"a": 3, "b": 3, "c": 3}),
        (["_oH == (None if s is None else s)"], {"s": None}, {"_oH": None}),
        (["q.shape == (B + 1, 2 * N, 7 - M, -K)"], {"q": (5, 6, 3, 4)}, {"B": 4, "N": 3, "M": 4, "K": -4}),
        (["q.shape == (2 * (N + 1) + N,)"], {"q": (8,)}, {"N": 2}),
        (["S == NC * Q"], {"S": 64, "Q": 16}, {"NC": 4}),
        (["(x.shape[0], N) == (M, 4)"], {"x": (7,)}, {"M": 7, "N": 4}),
        (["B == 2 and q.shape == (B, S)"], {"q": (2, 8)}, {"B": 2, "S": 8}),
        (["y.shape == (q.shape[0] if t else q.shape[1],)"], {"q": (2, 8), "t": False, "y": Y}, {"y": Tensor((8,), "y")}),
        (["y.shape == (B,) if t else y.shape == (S,)"], {"S": 8, "t": False, "y": Y}, {"y": Tensor((8,), "y")}),
        (["max == q.shape[0]"], {"q": (2,)}, {"max": 2}),
    ],
)  # fmt: skip
def test_what_follows_from_rules(rules: list[str], known: dict[str, Value], found: dict[str, Value]) -> None:
    solution = solved(*rules, **known)
    assert all(isinstance(outcome, Holds) for outcome in solution.rules)
    assert {name: solution.values[name] for name in found} == found


@pytest.mark.parametrize(
    ("rules", "known"),
    [
        (["B == 2 or S == 3"], {}),
        (["q.shape == (2 * N,)"], {"q": (7,)}),
        (["q.shape == (N * N, M * K, N // 2)"], {"q": (4, 4, 4)}),
        (["x.shape == y.shape"], {"x": Tensor(None, "x"), "y": Y}),
        (["y.shape == [2, 3]"], {"y": Y}),
        (["y.shape == (2, -3)"], {"y": Y}),
        (["S % 2 == 0"], {}),
        (["N == x"], {"x": (2,)}),
        (["not N == 3"], {}),
    ],
)
def test_what_stays_open(rules: list[str], known: dict[str, Value]) -> None:
    solution = solved(*rules, **known)
    assert [type(outcome) for outcome in solution.rules] == [Unresolved]
    assert solution.found_by == {}


def test_what_gave_a_value_is_told() -> None:
    solution = solved("q.shape == (B, S)", "S == H", q=(2, 8))
    assert {name: rule.snippet for name, rule in solution.found_by.items()} == {
        **dict.fromkeys(("B", "S"), "q.shape == (B, S)"),
        "H": "S == H",
    }


@pytest.mark.parametrize(
    ("rule", "known", "blamed", "detail"),
    [
        ("w.shape == (C,)", {"w": (64,), "C": 128}, "w.shape == (C,)", "`w.shape` is (64,), `C` is 128"),
        ("w is None or w.shape == (C,)", {"w": (64,), "C": 128}, "w.shape == (C,)", "`w.shape` is (64,), `C` is 128"),
        ("H % G == 0 and H > 0", {"H": 30, "G": 4}, "H % G == 0", "`H` is 30, `G` is 4"),
        ("0 <= P <= K // 2", {"P": 3, "K": 4}, "P <= K // 2", "`P` is 3, `K` is 4"),
        ("S == 1 if p == 'same' else S == 2", {"S": 1, "p": "valid"}, "S == 2", "`S` is 1"),
        ("(w is None) == (b is None)", {"w": (3,), "b": None}, "(w is None) == (b is None)",
         "`w` is a tensor of shape (3,), `b` is None"),
        ("not t", {"t": [1]}, "not t", "`t` is [1]"),
        ("isinstance(t, int)", {"t": "a"}, "isinstance(t, int)", "`t` is 'a'"),
        ("q.shape == (B, S, H)", {"q": (2, 8)}, "q.shape == (B, S, H)",
         "`q.shape` is (2, 8), `(B, S, H)` has 3 entries, (2, 8) has 2"),
        ("q.shape == (B, S)", {"q": (2, 8), "S": 9}, "q.shape == (B, S)",
         "`q.shape` is (2, 8), `S` is 9, `S` is 9, not 8"),
        ("q.shape == (B, B)", {"q": (2, 8)}, "q.shape == (B, B)",
         "`q.shape` is (2, 8), `B` would be both 2 and 8"),
        ("q.shape == (B, B + 1)", {"q": (2, 8)}, "q.shape == (B, B + 1)",
         "`q.shape` is (2, 8), `B` would be both 2 and 7"),
        ("k == (B, S)", {"k": 3}, "k == (B, S)", "`k` is 3, `(B, S)` is a tuple, 3 is none"),
        ("(B,) == (S, H)", {}, "(B,) == (S, H)", "`(B,)` and `(S, H)` differ in length"),
        ("N > 0 and (H == 3 and M > 0)", {"H": 4}, "H == 3", "`H` is 4"),
    ],
)  # fmt: skip
def test_a_violation_blames_the_narrowest_part(rule: str, known: dict[str, Value], blamed: str, detail: str) -> None:
    [outcome] = solved(rule, **known).rules
    assert isinstance(outcome, Violated)
    assert (outcome.part.snippet, outcome.detail) == (blamed, detail)


@pytest.mark.parametrize("rule", ["N > 0 and H == 3", "H == 3 and N > 0"])
def test_a_false_part_is_enough_for_and(rule: str) -> None:
    [outcome] = solved(rule, H=4).rules
    assert isinstance(outcome, Violated)


@pytest.mark.parametrize("rule", ["H == 3 or N > 0", "N > 0 or H == 3", "H == 3 if N else H == 4"])
def test_an_open_name_that_could_save_the_rule_leaves_it_open(rule: str) -> None:
    [outcome] = solved(rule, H=4).rules
    assert isinstance(outcome, Unresolved)
    assert (outcome.names, outcome.reason) == (("N",), "`N` cannot be found")


def test_a_contradicted_equation_binds_nothing() -> None:
    solution = solved("q.shape == (B, S, 9)", "B == 5", q=(2, 8, 4))
    assert [type(outcome) for outcome in solution.rules] == [Violated, Holds]
    assert solution.values["B"] == 5


def test_a_rule_that_cannot_be_evaluated_fails() -> None:
    outcomes = solved(
        "w.shape == (1,)", "x.numel() > 0", "all(i >= 0 for i in range(10**12))", "x", w=None, x=(1,)
    ).rules
    reasons = [outcome.error.reason for outcome in outcomes if isinstance(outcome, Failed)]
    kinds = [type(outcome.error) for outcome in outcomes if isinstance(outcome, Failed)]
    assert reasons[0] == "`w` is None, which has no `.shape`"
    assert kinds[1:3] == [Unsupported, BudgetExceeded]
    assert reasons[3] == "a tensor is not a truth value"


def test_a_value_that_is_no_bool_is_kept() -> None:
    assert solved("S == 2 if p else S + 1", S=8, p=False).rules == (Holds(9),)


def test_declared_shapes_are_rules_too() -> None:
    shapes = {"x": "[M, 2 * N]", "y": "[M, N]", "z": "same_as(y)", "w": "[N]", "v": "[..., N]"}
    solution = solved("M > 0", shapes=shapes, x=(3, 8), w=None)
    assert solution.shapes == {"x": Holds(), "y": Holds(), "z": Holds(), "w": Holds()}
    assert solution.values["z"] == Tensor((3, 4), "z")
    broken = solved(shapes=shapes, x=(3, 8), y=(3, 5), w=(4,)).shapes["y"]
    assert isinstance(broken, Violated)
    assert broken.detail == "`y.shape` is (3, 5), `M` is 3, `N` is 4"


def test_a_size_may_be_called_like_a_tensor() -> None:
    shapes = {"q": "[B, S]", "S": "[B, NC + 1]"}
    solution = solved("NC == S // 4", "S.shape[1] == NC + 1 and S is not None", shapes=shapes, q=(2, 8))
    assert all(isinstance(outcome, Holds) for outcome in (*solution.rules, *solution.shapes.values()))
    assert solution.values["S"] == Tensor((2, 3), "S")
    assert solution.values["S (size)"] == 8


def test_a_size_may_be_called_like_a_param_or_tensor_that_is_none() -> None:
    shapes = {"q": "[B, chunk]", "x": "[B, w]", "w": "[B]"}
    solution = solved("chunk is None or q.shape[0] == chunk", shapes=shapes, q=(2, 8), x=(2, 3), chunk=None, w=None)
    assert all(isinstance(outcome, Holds) for outcome in (*solution.rules, *solution.shapes.values()))
    assert (solution.values["chunk"], solution.values["chunk (size)"]) == (None, 8)


def test_a_declared_name_hides_the_function_even_without_a_value() -> None:
    for rule in ("type is None", "int == 3 or type is None", "max(1, 2) == 1"):
        [outcome] = solved(rule, unknown=("type", "int", "max")).rules
        assert isinstance(outcome, Unresolved), rule
    assert solved("int == 3", "int + 1 == 4", unknown=("int",)).rules == (Holds(True), Holds(True))


def test_many_rules_in_the_worst_order_take_no_time() -> None:
    rules = [f"a{index} == a{index + 1} + 1" for index in range(2000)] + ["a2000 == 0"]
    start = time.process_time()
    assert solved(*rules).values["a0"] == 2000
    assert time.process_time() - start < 2


def test_values_are_described_in_a_few_words() -> None:
    assert describe(10**5000) == "an integer of 16610 bits"
    assert describe(Tensor()) == "a tensor"
    assert describe((int, [None] * 99)).startswith("(int, [None, None")
    assert len(describe(["a" * 999] * 999)) < 1200

"""Checks of one side alone: poison, inputs, storage, metadata, repetitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.checks import (  # noqa: E402
    changed,
    digest,
    metadata,
    poisoned,
    repeats,
    returned,
    shared_storage,
    snapshot,
)
from opschema_cli.verify.inputs import make_inputs  # noqa: E402
from opschema_cli.verify.model import Call, Cell, Finding, Input, Layout, Output  # noqa: E402

Y = Output(name="y", shape=(4, 6), dtype="float16")


def call(*, mutated: bool = False, aliases: dict[str, str] | None = None) -> Call:
    x = Input(name="x", shape=(4, 6), dtype="float16", mutated=mutated)
    return Call(inputs=(x,), outputs=(Y,), aliases=aliases or {})


def drawn(layout: Layout = "contiguous") -> Tensor:
    cell = Cell(op="Op", row="r", dtype="float16", values="special", layout=layout, call=call())
    return make_inputs(cell)["x"]


def checks(found: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.about) for finding in found]


def test_fresh_memory_is_poisoned_and_the_setting_restored() -> None:
    assert not torch.are_deterministic_algorithms_enabled()
    with poisoned():
        assert torch.empty(3).isnan().all()
        assert torch.empty(3, dtype=torch.int16).eq(2**15 - 1).all()
        with poisoned(fill=False):
            assert not torch.utils.deterministic.fill_uninitialized_memory
        assert torch.empty(3).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory


def test_the_setting_is_restored_when_the_op_raises() -> None:
    with pytest.raises(ZeroDivisionError), poisoned():
        raise ZeroDivisionError
    assert not torch.are_deterministic_algorithms_enabled()


CHANGES: dict[str, tuple[Callable[[Tensor], object], list[str], list[str]]] = {
    "nothing": (lambda x: x + 1, [], []),
    "one element": (lambda x: x[3, 5].fill_(9.5), ["input-changed"], []),
    "the sign of a zero": (lambda x: x.masked_fill_(x == 0, 0.0), ["input-changed"], []),
    "the same bits written": (lambda x: x.copy_(x.clone()), [], []),
    "all of it": (lambda x: x.fill_(2.5), ["input-changed"], []),
    "between the elements": (
        lambda x: x.as_strided(x.shape, x.stride(), x.storage_offset() + 1).fill_(1.0),
        ["input-overrun"],
        ["input-overrun"],
    ),
    "before the first": (lambda x: x.as_strided((1,), (1,), 0).fill_(1.0), ["input-overrun"], ["input-overrun"]),
    "how it lies": (lambda x: x.t_(), ["input-changed"], ["input-changed"]),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("mutated", [False, True])
def test_changes_of_a_strided_input(name: str, mutated: bool) -> None:
    change, plain, declared = CHANGES[name]
    x = drawn("strided")
    before = snapshot({"x": x})
    change(x)
    found = changed({"x": x}, before, call(mutated=mutated), "after")
    assert checks(found) == [(check, "x") for check in (declared if mutated else plain)]


def test_a_changed_nan_of_an_input_is_a_change() -> None:
    x = torch.tensor([torch.nan, 1.0]).half()
    before = snapshot({"x": x})
    assert changed({"x": x}, before, call(), "after") == []
    x.view(torch.int16)[0] += 1
    assert x.isnan()[0]
    assert checks(changed({"x": x}, before, call(), "after")) == [("input-changed", "x")]


def test_a_grown_input_is_a_change() -> None:
    x = drawn()
    before = snapshot({"x": x})
    x.resize_(9, 9)
    assert checks(changed({"x": x}, before, call(), "after")) == [("input-changed", "x")]


@pytest.mark.parametrize(
    ("output", "shares"),
    [
        (lambda x: x, True),
        (lambda x: x.view(-1)[20:], True),
        (lambda x: x.t(), True),
        (lambda x: x.expand(2, 4, 6), True),
        (lambda x: x.detach().view(torch.int16), True),
        (lambda x: x.clone(), False),
        (lambda x: x[:0], False),
        (lambda x: x + 0, False),
    ],
)
def test_shared_storage(output: Callable[[Tensor], Tensor], shares: bool) -> None:
    x = drawn()
    found = shared_storage({"y": output(x)}, {"x": x}, call(), "after")
    assert checks(found) == ([("shared-storage", "y")] if shares else [])
    assert shared_storage({"y": output(x)}, {"x": x}, call(aliases={"y": "x"}), "after") == []


def test_parts_of_one_storage_that_do_not_meet_are_not_shared() -> None:
    pool = torch.zeros(20)
    assert shared_storage({"y": pool[10:]}, {"x": pool[:10]}, call(), "after") == []
    assert shared_storage({"y": pool[9:]}, {"x": pool[:10]}, call(), "after")


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({"y": torch.zeros(4, 6, dtype=torch.float16)}, []),
        ({"y": torch.zeros(6, 4, dtype=torch.float16)}, [("shape", "y")]),
        ({"y": torch.zeros(1, 4, 6, dtype=torch.float16)}, [("shape", "y")]),
        ({"y": torch.zeros(4, 6)}, [("dtype", "y")]),
        ({"y": torch.zeros(4)}, [("shape", "y"), ("dtype", "y")]),
        ({}, [("outputs", "y")]),
        ({"y": torch.zeros(4, 6, dtype=torch.float16), "z": torch.zeros(1)}, [("outputs", "z")]),
    ],
)
def test_metadata(outputs: dict[str, Tensor], expected: list[tuple[str, str]]) -> None:
    assert checks(metadata(outputs, call(), "after")) == expected


def test_what_is_not_declared_is_not_checked() -> None:
    outputs = {"y": torch.zeros(3)}
    assert metadata(outputs, Call(inputs=(), outputs=(Output(name="y"),)), "after") == []
    assert metadata(outputs, Call(inputs=()), "after") == []


def test_equal_calls_are_no_finding() -> None:
    result = torch.tensor([torch.nan, 0.0, 1.0])
    assert repeats({"y": result}, lambda: {"y": result.clone()}, "after") == []


@pytest.mark.parametrize("fails", [1, 2])
def test_a_call_that_gives_other_bits_is_found(fails: int) -> None:
    calls = []

    def again() -> dict[str, Tensor]:
        calls.append(None)
        return {"y": torch.tensor([-0.0 if len(calls) == fails else 0.0])}

    assert checks(repeats({"y": torch.tensor([0.0])}, again, "after")) == [(("repeat", "poison")[fails - 1], "y")]


@pytest.mark.parametrize("size", [64, 100_000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
def test_an_unwritten_element_is_found_without_a_reference(size: int, dtype: torch.dtype) -> None:
    def op() -> dict[str, Tensor]:
        out = torch.empty(size, dtype=dtype)
        out[:-8] = 1
        return {"y": out}

    with poisoned():
        first = op()
    assert checks(repeats(first, op, "after")) == [("poison", "y")]


def test_an_allocator_that_hands_out_poison_again_hides_nothing() -> None:
    calls = []

    def again() -> dict[str, Tensor]:
        calls.append(None)
        return {"y": torch.tensor([1.0, torch.nan if len(calls) < 4 else 0.5])}

    assert checks(repeats({"y": torch.tensor([1.0, torch.nan])}, again, "after")) == [("poison", "y")]


@pytest.mark.parametrize(("value", "calls"), [(torch.nan, 5), (1.0, 2)])
def test_only_results_that_hold_poison_are_asked_for_again(value: float, calls: int) -> None:
    called = []

    def again() -> dict[str, Tensor]:
        called.append(None)
        return {
            "y": torch.tensor([value]),
            "e": torch.empty(0, dtype=torch.float8_e4m3fn),
            "c": torch.ones(1, dtype=torch.cfloat),
        }

    assert repeats(again(), again, "after") == []
    assert len(called) == 1 + calls


def test_an_output_that_comes_and_goes_is_found() -> None:
    assert checks(repeats({"y": torch.zeros(1)}, dict, "after")) == [("repeat", "y")]


def test_digests_tell_bits_dtypes_and_shapes_apart_but_not_strides() -> None:
    x = drawn()
    others = [x.view(torch.int16), x.view(6, 4), -x, x[:2], x[:0], x[:0, :2]]
    assert len({digest(x), *map(digest, others)}) == 7
    assert digest(x) == digest(drawn().t().contiguous().t())
    assert digest(torch.tensor(1.0)) == digest(torch.ones(()))


def test_what_a_run_reports_of_an_output() -> None:
    told = returned("y", drawn("strided"))
    assert (told.name, told.shape, told.dtype, told.strides) == ("y", (4, 6), "float16", (12, 2))

"""Calls on a side stream of a GPU, with stand-ins for what needs one."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.devices import SideStream, pool_of_calls, release_memory, side_stream  # noqa: E402


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each call to come, whether the device still sleeps when it returns; what is not there needs a GPU."""
    found: list[bool] = []
    event = SimpleNamespace(record=lambda: None, query=lambda: not found.pop(0))
    stand_ins = {
        "Stream": lambda device: SimpleNamespace(synchronize=lambda: None),
        "Event": lambda: event,
        "stream": lambda stream: nullcontext(stream),
        "synchronize": lambda: None,
        "_sleep": lambda cycles: None,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return found


def test_a_call_that_outlasts_the_sleep_is_made_again_unless_that_is_usual(asleep: list[bool]) -> None:
    made = []

    def call(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        made.append(torch.rand(2))
        return {"y": tensors["x"] + 1}

    drawn = {"x": torch.arange(3.0)}
    compiles, waits = SideStream("cpu"), SideStream("cpu")
    for stream, answers, calls in (
        (compiles, [True], 1),
        (compiles, [False, True], 2),  # a first call of another shape
        (compiles, [False, True], 2),
        (waits, [False, False], 2),
        (waits, [False], 1),
    ):
        asleep[:] = answers
        made.clear()
        tensors, outputs = stream.call(call, drawn)
        assert len(made) == calls
        assert not asleep
        assert torch.equal(made[0], made[-1])  # the same random numbers for each
        assert torch.equal(outputs["y"], torch.arange(3.0) + 1)
        assert torch.equal(tensors["x"], drawn["x"])
        assert tensors["x"].data_ptr() != drawn["x"].data_ptr()


def test_memory_is_dirtied_on_the_stream_of_the_calls(asleep: list[bool]) -> None:
    side_stream.cache_clear()
    with pool_of_calls("cuda") as entered, pool_of_calls(torch.device("cuda")) as again:
        assert entered is side_stream("cuda").stream is again
    with pool_of_calls("cpu") as entered:
        assert entered is None
    side_stream.cache_clear()


def test_much_unused_memory_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    given_back = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 << 20)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: given_back.append(True))
    for reserved, expected in ((1 << 20, 0), (2 << 30, 1)):
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device, reserved=reserved: reserved)
        release_memory("cuda")
        release_memory("cpu")
        assert len(given_back) == expected

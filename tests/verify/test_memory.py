"""Memory that every call of an op keeps."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify import memory  # noqa: E402

pytestmark = pytest.mark.skipif(memory._mallinfo is None, reason="the C library does not report the bytes in use")


class Op:
    """An op with a list, which it fills without end, or with up to three tensors."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.outputs: list[Tensor] = []

    def __call__(self) -> Tensor:
        y = torch.ones(32, 32) + 1
        if len(self.outputs) < self.most:
            self.outputs.append(y)
        return y


class Cycle:
    def __init__(self) -> None:
        self.tensor, self.own = torch.ones(32, 32), self


def test_what_each_call_keeps_is_found() -> None:
    (found,) = memory.memory_kept(Op(float("inf")), 4096, "after", "cpu")
    assert found.check == "memory"
    assert found.message.startswith("every call with the same inputs keeps 4,")


def test_garbage_does_not_hide_what_each_call_keeps() -> None:
    """Python collects some during every other call."""
    op, waste = Op(float("inf")), gc.get_threshold()[0] // 2

    def call() -> Tensor:
        cycle: list[object] = [bytearray(1 << 16), *([] for _ in range(waste))]
        cycle.append(cycle)
        return op()

    (found,) = memory.memory_kept(call, 4096, "after", "cpu")
    assert found.message.startswith("every call with the same inputs keeps 4,")


@pytest.mark.parametrize("call", [Op(0), Op(3), Cycle])
def test_what_is_kept_once_or_freed_later_is_not(call: object) -> None:
    assert memory.memory_kept(call, 4096, "after", "cpu") == []

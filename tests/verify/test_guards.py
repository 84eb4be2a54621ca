"""Guard bands around what an op allocates and is given."""

from __future__ import annotations

import ctypes

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from opschema_cli.verify.guards import BAND, Bands, banded, with_bands  # noqa: E402


def poke(tensor: Tensor, offset: int) -> None:
    """Write a byte at a distance from the first element."""
    ctypes.memset(tensor.data_ptr() + offset, 0, 1)


@torch.library.custom_op("opschema_guards::poke", mutates_args=())
def inner(x: Tensor, offset: int) -> Tensor:
    out = torch.empty_like(x)
    out.fill_(1)
    poke(out, offset)
    return out


@pytest.mark.parametrize(("offset", "found"), [(0, 0), (23, 0), (24, 1), (24 + BAND - 1, 1), (-1, 1), (-BAND, 1)])
def test_what_is_written_beyond_an_allocation_is_found_also_inside_an_operator(offset: int, found: int) -> None:
    bands = Bands()
    bands.around(lambda tensors: {"y": inner(tensors["x"], offset)})({"x": torch.zeros(2, 3)})
    assert [(finding.check, finding.side) for finding in bands.findings("after")] == [("overrun", "after")] * found


@pytest.mark.parametrize(
    "make",
    [
        lambda x: torch.empty(3, 4, dtype=torch.bfloat16),
        lambda x: torch.zeros((5,)),
        lambda x: torch.full((2, 2), 7.0),
        lambda x: torch.ones_like(x),
        lambda x: x.new_zeros(4),
        lambda x: torch.empty_strided((2, 3), (1, 2)).fill_(1),
        lambda x: torch.empty(0, 4),
        lambda x: torch.zeros(()),
    ],
)
def test_an_allocation_is_what_it_would_be(make: object) -> None:
    assert callable(make)
    x = torch.arange(6.0).view(2, 3)
    bands = Bands()
    plain, guarded = make(x), bands.around(lambda tensors: {"y": make(tensors["x"])})({"x": x})["y"]
    assert (guarded.shape, guarded.dtype, guarded.stride()) == (plain.shape, plain.dtype, plain.stride())
    assert guarded.untyped_storage().nbytes() == plain.untyped_storage().nbytes() + 2 * BAND
    assert guarded.data_ptr() % 64 == 0 or not guarded.numel()
    assert bands.findings("after") == []


def test_values_layout_and_gaps_are_kept() -> None:
    x = torch.arange(20.0)[3:].as_strided((3, 2), (4, 2))
    copy = banded({"x": x})["x"]
    assert torch.equal(copy, x)
    assert copy.stride() == x.stride()
    assert copy.data_ptr() != x.data_ptr()


def test_torch_is_left_as_it_was() -> None:
    def fails(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        torch.empty(3)
        raise ValueError("no")

    before = torch.empty, torch.zeros_like, Tensor.new_empty
    with pytest.raises(ValueError, match="no"):
        Bands().around(fails)({})
    assert (torch.empty, torch.zeros_like, Tensor.new_empty) == before
    assert with_bands(torch.zeros(3)).requires_grad is False

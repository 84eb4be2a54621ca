"""Large tensors in pieces, here of few elements: drawn, hashed, compared."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from opschema_cli.verify.large import tensors
from opschema_cli.verify.large.tensors import block_hashes, draw_tiled, is_tiled, tiled, tiles, unlike
from opschema_cli.verify.model import Call, Cell, Input

DTYPES = ("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "int64")


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "PERIOD", 101)
    monkeypatch.setattr(tensors, "BLOCK", 64)


def cell(dtype: str, rows: int = 40) -> Cell:
    return Cell(op="Op", row="r", dtype=dtype, call=Call(inputs=(Input(name="x", shape=(rows, 7), dtype=dtype),)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_repeat_and_a_change_of_one_is_seen(dtype: str) -> None:
    x = draw_tiled(cell(dtype), "cpu")["x"]
    tile, shape = tiles(cell(dtype))["x"]
    assert (x.shape, x.dtype, shape) == ((40, 7), getattr(torch, dtype), (40, 7))
    assert len(tile) == 101
    assert is_tiled(x, tile)
    flat = x.view(-1).view(torch.uint8) if x.element_size() == 1 else x.view(-1)
    flat[279] = flat[279] + 1 if dtype != "bool" else 1 - flat[279]
    assert not is_tiled(x, tile)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hashes_say_in_which_block_tensors_differ(dtype: str) -> None:
    x, y = draw_tiled(cell(dtype), "cpu")["x"], draw_tiled(cell(dtype), "cpu")["x"]
    assert block_hashes(x) == block_hashes(y)
    assert len(block_hashes(x)) == 5
    y.view(-1)[130] = y.view(-1)[130].to(torch.float32) + 1 if dtype != "bool" else ~y.view(-1)[130]
    assert [one == other for one, other in zip(block_hashes(x), block_hashes(y), strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert block_hashes(x.t()) != block_hashes(x), "the order of the elements counts"


def test_all_nan_are_the_same_and_a_nan_is_no_zero() -> None:
    bits = torch.tensor([0x7FC00000, 0x7FC00001, 0], dtype=torch.int32)
    one, other, zero = (x.view(torch.float32) for x in (bits[:1], bits[1:2], bits[2:]))
    assert block_hashes(one) == block_hashes(other) != block_hashes(zero)


def rounded(x: Tensor) -> Tensor:
    return x + torch.finfo(x.dtype).eps


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (torch.tensor([1, 2, 3]), torch.tensor([1, 2, 3]), (0, -1)),
        (torch.tensor([1, 2, 3]), torch.tensor([1, 5, 6]), (2, 1)),
        (torch.tensor([1.0, 2.0]), rounded(torch.tensor([1.0, 2.0])), (0, -1)),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), (1, 1)),
        (torch.tensor([torch.nan, 2.0]), torch.tensor([torch.nan, 2.0]), (0, -1)),
        (torch.tensor([torch.nan, 2.0]), torch.tensor([1.0, 2.0]), (1, 0)),
        (torch.tensor([torch.inf, 2.0]), torch.tensor([-torch.inf, 2.0]), (1, 0)),
        (torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn), torch.tensor([1.0, -64.0]).to(torch.float8_e4m3fn), (1, 1)),
    ],
)
def test_parts_are_compared(one: Tensor, other: Tensor, expected: tuple[int, int]) -> None:
    assert unlike(one, other) == expected


def test_no_elements() -> None:
    assert tiled(torch.empty(0), (0, 7), "cpu").shape == (0, 7)
    assert block_hashes(torch.empty(0)) == ()

"""FLY215: blocks that are not known as numbers, but surely are not the promised ones."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

FACTORY = """\
def build(tile, waves):
    threads = tile * waves
{before}
    @flyc.kernel(known_block_size={known})
    def fill(A: fx.Tensor):
        A[0] = 1
{between}
    @flyc.jit
    def launch({params}):
        fill(A).launch(grid=(1,), block={block})

    return launch
"""


def _lint(known: str, block: str, before: str = "", between: str = "", params: str = "A: fx.Tensor") -> list[str]:
    text = FACTORY.format(known=known, block=block, before=before, between=between, params=params)
    return [
        item.message for item in lint_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, ["FLY215"]).diagnostics
    ]


@pytest.mark.parametrize(
    ("known", "block", "entries"),
    [
        ("[threads, 1, 1]", "(2 * threads, 1, 1)", ("2 * threads", "threads")),
        ("[threads, 1, 1]", "[threads + 64, 1, 1]", ("threads + 64", "threads")),
        ("[64, tile, 1]", "(64, tile - 1, 1)", ("tile - 1", "tile")),
    ],
)
def test_a_multiple_of_the_promised_variable(known: str, block: str, entries: tuple[str, str]) -> None:
    one, other = entries
    assert _lint(known, block) == [f"this block has `{one}` where `fill` promises `{other}`: it raises"]


@pytest.mark.parametrize(
    ("known", "block"),
    [
        ("[threads, 1, 1]", "(threads, 1, 1)"),
        ("[threads, 1, 1]", "(1 * threads, 1, 1)"),
        ("[threads, 1, 1]", "(threads + 0, 1, 1)"),
        ("[threads, 1, 1]", "(2 * tile, 1, 1)"),
        ("[threads, 1, 1]", "(tile * waves, 1, 1)"),
        ("[threads, 1, 1]", "(threads // 1, 1, 1)"),
        ("[2 * tile, 1, 1]", "(2 * tile, 1, 1)"),
        ("[threads, 1, 1]", "(waves * threads, 1, 1)"),
        ("[threads, 1, 1]", "(fill.sizes * 2, 1, 1)"),
        ("[threads, 1, 1]", "(*[2 * threads], 1, 1)"),
    ],
)
def test_a_block_that_may_be_the_promised_one(known: str, block: str) -> None:
    assert _lint(known, block) == []


@pytest.mark.parametrize(
    ("before", "between", "params"),
    [
        ("", "    threads = threads // 2\n", "A: fx.Tensor"),
        ("    if tile > 4:\n        threads = 64\n", "", "A: fx.Tensor"),
        ("    for threads in (64, 128):\n        pass\n", "", "A: fx.Tensor"),
        ("", "", "A: fx.Tensor, threads: fx.Constexpr[int] = 32"),
        ("", "    def halve():\n        nonlocal threads\n        threads //= 2\n\n    halve()\n", "A: fx.Tensor"),
    ],
)
def test_a_variable_with_several_values(before: str, between: str, params: str) -> None:
    assert _lint("[threads, 1, 1]", "(2 * threads, 1, 1)", before, between, params) == []

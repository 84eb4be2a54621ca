"""FLY227: functions without a decorator that are right, or that only may be wrong."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

KERNEL = "@flyc.kernel\ndef fill(A: fx.Tensor):\n    A[0] = 1\n\n\n"
LAUNCH = "def launch(A: fx.Tensor):\n    fill(A).launch(grid=(1,), block=(64,))\n\n\n"
RUN = "def run(x):\n    launch(x)\n"


def _lint(text: str) -> list[str]:
    return [
        item.message for item in lint_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, ["FLY227"]).diagnostics
    ]


def test_a_launcher_that_the_host_calls() -> None:
    assert _lint(KERNEL + LAUNCH + RUN) == [
        "`launch` launches the kernel `fill`, but has no `@flyc.jit`: the host's call raises `RuntimeError`"
    ]


@pytest.mark.parametrize(
    "use",
    [
        "step = compiled(launch)",
        "step = launch",
        "steps = [launch]",
        "steps = {0: launch}",
        "steps = fill, (launch), 1",
    ],
)
def test_a_launcher_that_is_passed_on_may_be_traced(use: str) -> None:
    assert not _lint(f"{KERNEL}{LAUNCH}{RUN}\n\n{use}\n")


@pytest.mark.parametrize("both", ["fill, launch", "launch, fill"])
def test_a_launcher_that_is_returned_among_others_may_be_traced(both: str) -> None:
    assert not _lint(f"{KERNEL}{LAUNCH}{RUN}\n\ndef both():\n    return {both}\n")


@pytest.mark.parametrize("body", ["yield A", "A[0] = 1\n    yield A"])
def test_a_generator_does_not_return_none(body: str) -> None:
    assert not _lint(f"def steps(A: fx.Tensor):\n    {body}\n\n\n@flyc.jit\n{LAUNCH.replace('fill', 'steps')}")

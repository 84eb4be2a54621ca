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


PREP = f"{KERNEL}def prep(A: fx.Tensor):\n    # raise, exit, skip: only words\n    assert A\n    A[0] = 1\n\n\n"
GO = "@flyc.jit\ndef go(A: fx.Tensor):\n"
START = "w.launch(grid=(1,), block=(64,))\n"
NO_KERNEL = "`prep` is launched, but has no `@flyc.kernel`: its call returns `None`, which has no `launch`"


@pytest.mark.parametrize(
    "start",
    [f"prep(A).{START[2:]}", f"w = prep(A)\n    n = 4\n    {START}", f"if A:\n        w = prep(A)\n        {START}"],
)
def test_a_kernel_without_its_decorator(start: str) -> None:
    assert _lint(f"{PREP}{GO}    {start}") == [NO_KERNEL]


@pytest.mark.parametrize(
    "start",
    [
        f"w = prep(A)\n    if w is not None:\n        {START}",
        f"w = prep(A)\n    if w is None:\n        return\n    {START}",
        f"w = prep(A)\n    w and {START}",
        f"w = prep(A)\n    return\n    {START}",
        f"w = prep(A)\n    [{START[:-1]} for w in [fill(A)]]\n",
        f"w = prep(A)\n    f = lambda w: {START}    f(fill(A))\n",
        f"w = prep(A)\n\n    def setup():\n        nonlocal w\n        w = fill(A)\n\n    setup()\n    {START}",
        f"w = prep(A)\n    print(w := fill(A))\n    {START}",
        f"w = prep(A)\n    w = w or fill(A)\n    {START}",
        f"prep = fill\n    w = prep(A)\n    {START}",
    ],
)
def test_a_variable_that_may_hold_a_kernel(start: str) -> None:
    assert not _lint(f"{PREP}{GO}    {start}")


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError",
        "with A:\n        raise ValueError",
        "if A:\n        raise ValueError\n    else:\n        raise TypeError",
        "assert False",
        "while True:\n        print(A)",
        "sys.exit(1)",
        "quit()",
        "x = True\n    while x:\n        print(A)",
        "for i in itertools.count():\n        A[0] = i",
        "def f(x=(yield A)):\n        pass",
        "@(yield A)\n    def f():\n        pass",
        "pytest.skip('no GPU')",
        "bad()",
    ],
)
def test_a_function_that_never_returns(body: str) -> None:
    bad = "def bad():\n    raise ValueError\n\n\n"
    assert not _lint(f"{bad}def stop(A: fx.Tensor):\n    print(A)\n    {body}\n\n\n{GO}    w = stop(A)\n    {START}")

"""Launches through helpers that have a launcher compiled with all that they are passed."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

LAUNCHERS = """\
@flyc.kernel
def scale(A: fx.Tensor, n: fx.Int32):
    A[fx.thread_idx.x] = n


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    scale(A, n).launch(grid=(1,), block=(64,))


def build():
    @flyc.jit
    def inner(A: fx.Tensor, n: fx.Int32):
        scale(A, n).launch(grid=(1,), block=(64,))

    return inner
"""

HELPER = """\
import flydsl.compiler as flyc


def run(exe, *args):
    cf = getattr(exe, "_cf", None)
    if cf is not None:
        cf(*args)
        return
    try:
        cf = flyc.compile(exe, *args)
        exe._cf = cf
    except Exception:
        raise
"""


def found(use: str, helper: str = HELPER, **others: str) -> list[str]:
    """The places of what is found in a file that launches through the helper."""
    files = {
        **BASE_FILES,
        "opschema.toml": '[flydsl]\nversion = "0.4.2"\n',
        KERNELS_PATH: HEAD + LAUNCHERS,
        "kit/shim.py": helper,
        "kit/use.py": f"from kit.kernels import build, launch\nfrom kit.shim import run\n\n\n{use}",
        **{path.replace("__", "/") + ".py": text for path, text in others.items()},
    }
    linted = lint_files([PACK], files, ["FLY211"])
    return [linted.text(item.place) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("run(launch, a)", ["launch"]),
        ("run(launch, a, 1)", []),
        ("run(launch, a, 1, 2)", ["2"]),
        ("run(build(), a, 1, 2)", ["2"]),
        ("exe = build()\n    run(exe, a)", ["exe"]),
        ("exe = build()\n    run(exe, a, 1)", []),
        ("run(launch, *a)", []),
        ("run(a, launch)", []),
        ("[run(launch, a) for launch in a]", []),
        ("[run(launch, a) for run in a]", []),
        ("try:\n        run(launch, a)\n    except TypeError:\n        pass", []),
    ],
)
def test_arguments_that_a_helper_passes_on(call: str, expected: list[str]) -> None:
    assert found(f"def use(a):\n    {call}\n") == expected


USE = "def use(a):\n    run(launch, a)\n"


@pytest.mark.parametrize(
    "helper",
    [
        HELPER.replace("flyc.compile(exe, *args)", "flyc.compile(exe, *args, 0)"),
        HELPER.replace("flyc.compile(exe, *args)", "flyc.compile(exe, *args[1:])"),
        HELPER.replace("flyc.compile(exe, *args)", "flyc.compile(exe.inner, *args)"),
        HELPER.replace("    cf = getattr", "    args = (*args, 0)\n    cf = getattr"),
        HELPER.replace("    cf = getattr", "    for exe in exe.all:\n        pass\n    cf = getattr"),
        HELPER.replace("    try:\n", "    try:\n        flyc.compile(exe, *args, 0)\n"),
        HELPER.replace("flyc.compile", "exe.compile"),
        HELPER.replace("import flydsl.compiler as flyc", "import other as flyc"),
        HELPER.replace("def run(exe, *args)", "def run(exe, *args, n=0)"),
        HELPER.replace("def run(exe, *args)", "def run(exe, first, *args)"),
        HELPER.replace("def run", "import functools\n\n\n@functools.wraps(print)\ndef run"),
        "def run(exe, *args):\n    return exe\n",
    ],
)
def test_helpers_that_do_anything_else(helper: str) -> None:
    assert found(USE, helper) == []


@pytest.mark.parametrize(
    "other",
    [
        "import kit.shim\n\nkit.shim.run = print\n",
        "from kit import shim\n\n\ndef patch():\n    shim.run = print\n",
        "import kit.kernels as k\n\nk.launch = print\n",
    ],
)
def test_a_helper_or_launcher_that_another_module_replaces(other: str) -> None:
    assert found(USE, kit__fast=other) == []


def test_a_helper_that_the_settings_of_tests_replace() -> None:
    settings = "def pytest_configure(monkeypatch):\n    monkeypatch.setattr('kit.shim.run', print)\n"
    assert found(USE, conftest=settings) == []


def test_a_helper_under_another_name() -> None:
    use = "from kit.shim import run as start\n\n\ndef use(a):\n    start(launch, a)\n"
    assert found(use) == ["launch"]

"""Kernels in files that get FlyDSL's names from a module of the repository itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.cache import Cache
from opschema_cli.testing import lint_files
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.test_cached_files import lint, write

CONFIG = '[flydsl]\nversion = "0.4.2"\n'
OWN = """\
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.compiler import jit, kernel as kern

device = flyc.kernel
"""
KERNEL = "@{kernel}\ndef fill(A: {fx}.Tensor, n: {fx}.Int32):\n    if n > 3:\n        return\n    A[0] = n\n"
"""With a `return` under a GPU condition (FLY215 or FLY216)."""


def codes(files: dict[str, str]) -> list[str]:
    return lint_files([PACK], {"opschema.toml": CONFIG, **files}).codes()


WRONG = codes({"k.py": OWN + KERNEL.format(kernel="flyc.kernel", fx="fx")})


def test_the_kernel_has_a_finding() -> None:
    assert WRONG


@pytest.mark.parametrize(
    ("imports", "kernel", "fx"),
    [
        ("from kit.fly import flyc, fx\n", "flyc.kernel", "fx"),
        ("from kit.fly import (\n    kern,  # a remark\n    fx as f,\n)\n", "kern", "f"),
        ("from kit.fly import device, fx\n", "device", "fx"),
        ("from kit import fly\n", "fly.flyc.kernel", "fly.fx"),
        ("import kit.fly as fly\n", "fly.kern", "fly.fx"),
        ("from kit.fly import *\n", "kern", "fx"),
        ("from kit.more import flyc, fx\n", "flyc.kernel", "fx"),
        ("from kit import flyc, fx\n", "flyc.kernel", "fx"),
    ],
)
def test_names_through_a_module_of_the_repository(imports: str, kernel: str, fx: str) -> None:
    kit = {"__init__": "from .more import flyc, fx\n", "more": "from .fly import flyc, fx\n", "fly": OWN}
    files = {f"kit/{name}.py": text for name, text in kit.items()}
    assert codes({**files, "ops/a.py": imports + KERNEL.format(kernel=kernel, fx=fx)}) == WRONG


@pytest.mark.parametrize("path", ["kit/a.py", "kit/deep/a.py"])
def test_names_of_the_package_around_a_file(path: str) -> None:
    """The file names no module."""
    imports = f"from {'.' * path.count('/')} import flyc, fx\n"
    files = {
        "kit/__init__.py": "import flydsl.compiler as flyc\nimport flydsl.expr as fx\n",
        "kit/deep/__init__.py": "",
    }
    assert codes({**files, path: imports + KERNEL.format(kernel="flyc.kernel", fx="fx")}) == WRONG


@pytest.mark.parametrize(
    "text",
    [
        "from kit.fly import own\n\n\n@own\ndef fill(A, n):\n    if n > 3:\n        return\n",
        "from elsewhere.fly import flyc, fx\n" + KERNEL.format(kernel="flyc.kernel", fx="fx"),
        "class flyc:\n    kernel = staticmethod(lambda f: f)\n\n\nfx = None\n"
        + KERNEL.format(kernel="flyc.kernel", fx="object"),
        "text = 'from kit.fly import flyc'\n",
        "from kit.fly import\n",
    ],
)
def test_other_files_are_left_alone(text: str) -> None:
    fly = OWN + "\n\ndef own(f):\n    return f\n"
    assert codes({"kit/__init__.py": "", "kit/fly.py": fly, "ops/a.py": text}) == []


def test_an_absent_name_through_a_module_of_the_repository() -> None:
    use = "from kit.fly import fx\n\n\ndef wrap(x):\n    return fx.nothing_of_that_name(x)\n"
    linted = lint_files([PACK], {"opschema.toml": CONFIG, "kit/__init__.py": "", "kit/fly.py": OWN, "ops/a.py": use})
    assert [(item.code, item.place.path) for item in linted.diagnostics] == [("FLY207", "ops/a.py")]


def test_a_launch_in_a_file_without_the_word(tmp_path: Path) -> None:
    """It is a call of the kernel for the file that defines it, too; what is cached follows a change of what is re-exported."""
    cache, folder = Cache(tmp_path / "cache.sqlite"), tmp_path / "tree"
    write(folder, "kit/__init__.py", "")
    write(folder, "kit/fly.py", OWN)
    write(folder, "ops/a.py", "from kit.fly import flyc, fx\n\n\n" + KERNEL.format(kernel="flyc.kernel", fx="fx"))
    for text in (
        OWN,
        OWN.replace("compiler as flyc", "expr as flyc"),
        OWN,
        "flyc = fx = None\n",
        "import flydsl\n",
        OWN,
    ):
        write(folder, "kit/fly.py", text)
        found = lint(folder, cache)[0]
        assert found == lint(folder, None)[0]
        codes = {item.code for item in found if item.place.path == "ops/a.py"}
        assert codes - {"FLY207"} == (set(WRONG) if text == OWN else set())
        assert ("FLY207" in codes) == ("expr as flyc" in text)


LAUNCHERS = """\
import functools

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def fill(A: fx.Tensor, n: fx.Int32):
    A[0] = n


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    fill(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1))


@functools.cache
def build(width):
    @flyc.jit
    def run(A: fx.Tensor, n: fx.Int32):
        fill(A, n).launch(grid=(width, 1, 1), block=(64, 1, 1))

    return run


def plain(A):
    return A
"""


@pytest.mark.parametrize(
    "text",
    [
        "from kit.ops import launch\n\nlaunch(1)\n",
        "from kit.ops import build\n\ngo = build(4)\ngo(1)\n",
        "from kit.ops import build as make\n\n\ndef test():\n    make(4)(1)\n",
        "import kit.ops as ops\n\nops.launch(1)\n",
        "from kit import launch\n\nlaunch(1)\n",
        "def test():\n    from kit.ops import launch\n\n    launch(1)\n",
    ],
)
def test_callers_of_launchers_that_name_nothing_of_flydsl(text: str) -> None:
    files = {"kit/__init__.py": "from .ops import launch\n", "kit/ops.py": LAUNCHERS, "tests/a.py": text}
    (found,) = lint_files([PACK], {"opschema.toml": CONFIG, **files}, ["FLY211"]).diagnostics
    assert found.place.path == "tests/a.py"
    assert found.message.endswith("does not match its signature: nothing is passed for `n`")


@pytest.mark.parametrize(
    "text",
    [
        "from kit.ops import launch\n\nlaunch(1, 2)\n",
        "from kit.ops import plain as launch\n\nlaunch(1)\n",
        "from kit.other import launch\n\nlaunch(1)\n",
        "from kit.ops import launch\n\nlaunch = print\nlaunch(1)\n",
        "from kit.ops import *\nfrom kit.other import *\n\nlaunch(1)\n",
        "from kit.ops import launch\nfrom kit.other import *\n\nlaunch(1)\n",
    ],
)
def test_other_callers(text: str) -> None:
    files = {"kit/__init__.py": "", "kit/ops.py": LAUNCHERS, "kit/other.py": "def launch(a):\n    return a\n"}
    assert codes({**files, "tests/a.py": text}) == []

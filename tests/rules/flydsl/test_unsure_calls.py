"""FLY211, FLY213 and FLY227: calls that are tried, or of names for which something else may stand when they run."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.pack import PACK

CONFIG = '[flydsl]\nversion = "0.4.2"\n'

OPS = """\
import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def fill(A: fx.Tensor, n: fx.Int32):
    A[0] = n


@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream):
    fill(A, n).launch(grid=(1, 1, 1), block=(64, 1, 1), stream=stream)


def prep(A: fx.Tensor):
    A[0] = 1


class Base:
    def make(self, A: fx.Tensor):
        A[0] = 1
"""

HEAD = """\
import flydsl.compiler as flyc
import flydsl.expr as fx
import kit.ops as ops
from kit.ops import Base, fill, launch, prep

"""


def found(text: str) -> list[str]:
    files = {"opschema.toml": CONFIG, "kit/__init__.py": "", "kit/ops.py": OPS, "tests/a.py": f"{HEAD}{text}\n"}
    codes = ["FLY211", "FLY213", "FLY227"]
    return [f"{item.code} {item.place.path}" for item in lint_files([PACK], files, codes).diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        "launch(1)",
        "def go(x):\n    launch(x)",
        "def go(x):\n    for y in [x]:\n        launch(y)",
        "def other(launch):\n    launch(1)\n\n\ndef go(x):\n    launch(x)",
        "if FAST:\n    launch(1)",
    ],
)
def test_calls_that_surely_run(text: str) -> None:
    assert found(text) == ["FLY211 tests/a.py"]


@pytest.mark.parametrize(
    "text",
    [
        "def go(launch, x):\n    launch(x)",
        "class T:\n    launch = print\n    launch(1)",
        "def go(x):\n    for launch in [print]:\n        launch(x)",
        "def go(x):\n    match x:\n        case {'go': launch}:\n            launch(1)",
        "import functools\ngo = functools.partial(launch, n=3)\ngo(1)",
        "import functools\nlaunch = functools.partial(launch, 1)\nlaunch(2)",
        "(launch if FAST else print)(1, *REST)",
        "def go(x, *, launch=None):\n    launch(x)",
        "def go(launch):\n    def inner():\n        launch(1)\n    inner()",
        "f = lambda launch: launch(1)",
        "def go():\n    return [launch(1) for launch in [print]]",
        "x = [launch(1) for launch in [print]]",
        "def setup():\n    global launch\n    launch = print\n\n\ndef go():\n    launch(1)",
        "try:\n    launch(1)\nexcept TypeError:\n    launch(1, 1, 1)",
        "def go(x):\n    try:\n        launch(x)\n    except TypeError:\n        pass",
        "def go(x):\n    if len(inspect.signature(launch).parameters) == 1:\n        launch(x)",
        'def test(monkeypatch):\n    monkeypatch.setattr(ops, "launch", lambda a: a)\n    ops.launch(1)',
        '@pytest.fixture(autouse=True)\ndef _all(mp):\n    setattr(ops, "launch", print)\n\n\ndef test():\n    ops.launch(1)',
        '@mock.patch("kit.ops.launch")\ndef test(m):\n    ops.launch(1)',
        "ops.launch = print\nops.launch(1)",
        "ops.launch, x = print, 1\nops.launch(1)",
        'def test():\n    with patch.object(ops, "launch"):\n        ops.launch(1)',
        "def bad():\n    launch(1)\n\n\ndef test():\n    with pytest.raises(TypeError):\n        bad()",
        "def test():\n    try:\n        fill(1, 2)\n    except RuntimeError:\n        pass",
        'def test():\n    with mock.patch("kit.ops.fill"):\n        fill(1, 2)',
        "@flyc.jit\ndef go(A: fx.Tensor):\n    work = prep(A)\n\n"
        "    def setup():\n        nonlocal work\n        work = fill(A, 1)\n\n"
        "    setup()\n    work.launch(grid=(1,), block=(64,))",
        "@flyc.jit\ndef go(A: fx.Tensor, prep):\n    prep(A).launch(grid=(1,), block=(64,))",
        "def go(A):\n    return lambda prep: prep(A).launch(grid=(1,), block=(64,))",
        "def stop(A: fx.Tensor):\n    sys.exit(1)\n\n\ndef go(A):\n    stop(A).launch(grid=(1,), block=(64,))",
        "def stop(A):\n    leave()\n\n\ndef go(A):\n    stop(A).launch(grid=(1,), block=(64,))",
        "class Mine(Base):\n    def go(self, A):\n        self.make(A).launch(grid=(1,), block=(64,))",
        'def test(monkeypatch):\n    monkeypatch.setattr(ops, "prep", print)\n    ops.prep(1).launch(grid=(1,), block=(64,))',
    ],
)
def test_calls_that_are_not_sure(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "settings",
    [
        'def pytest_configure():\n    setattr(kit.ops, "launch", print)',
        '@pytest.fixture(autouse=True)\ndef _all(monkeypatch):\n    monkeypatch.setattr("kit.ops.launch", print)',
        "kit.ops.launch = print",
        'for name in ("fill", "launch"):\n    monkeypatch.setattr(kit.ops, name, print)',
        'sys.modules["kit.ops"] = FAKE',
        'vars(kit.ops).update({"launch": print})',
    ],
)
def test_calls_of_what_the_settings_of_tests_replace(settings: str) -> None:
    files = {"opschema.toml": CONFIG, "kit/__init__.py": "", "kit/ops.py": OPS, "tests/a.py": f"{HEAD}launch(1)\n"}
    conftest = f"import sys\n\nimport kit.ops\nimport pytest\n\n\n{settings}\n"
    assert lint_files([PACK], {**files, "conftest.py": conftest}, ["FLY211"]).diagnostics == []


TESTED = """\
def test():
    {head}
    @flyc.jit
    def go(A: fx.Tensor):
        fill(A).launch(grid=(1,), block=(64,))

    {calls}
"""


@pytest.mark.parametrize(
    ("head", "calls", "told"),
    [
        ("", "go(1)", True),
        ("", "go(1)\n    with pytest.raises(ValueError):\n        other(1)", True),
        ("", "go(1)\n    with pytest.raises(ValueError):\n        go(1)", True),
        ("", "with pytest.raises(ValueError):\n        go(1)", False),
        ("", "with pytest.raises(TypeError):\n        run(go)", False),
        ("", "pytest.raises(TypeError, go, 1)", False),
        ("", "try:\n        go(1)\n    except TypeError:\n        pass", False),
        ("error = pytest.raises(TypeError)\n", "with error:\n        go(1)", False),
        ("pytest.xfail('not yet')\n", "go(1)", False),
    ],
)
def test_calls_in_a_test_that_expects_an_error(head: str, calls: str, told: bool) -> None:
    text = "import pytest\n\n" + TESTED.format(head=head, calls=calls)
    assert found(text) == (["FLY211 tests/a.py"] if told else [])


@pytest.mark.parametrize("mark", ["pytestmark = pytest.mark.xfail\n\n", "@pytest.mark.xfail\n"])
def test_calls_in_a_test_that_is_marked(mark: str) -> None:
    assert found(f"{mark}class TestGo:\n    def test(self):\n        launch(1)") == []

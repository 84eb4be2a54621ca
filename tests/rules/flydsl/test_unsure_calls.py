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
        "def go(x):\n    try:\n        launch(x)\n    except ImportError:\n        pass",
        "def go(x):\n    with torch.no_grad():\n        launch(x)",
        "def go(x):\n    with timed():\n        launch(x)\n\n\ndef timed():\n    return torch.cuda.device(0)",
        "def go(x):\n    bench(lambda: launch(x))",
        "def go(x):\n    bench(lambda: launch(x))\n\n\ndef bench(f):\n    f()",
        "def other(x):\n    return x\n    launch(x, 1, 1)\n\n\ndef go(x):\n    launch(x)",
        "def go(x):\n    launch(x)\n\n\nbench(go)",
        "@pytest.mark.filterwarnings('ignore::UserWarning')\ndef test(x):\n    launch(x)",
        "@timed\ndef go(x):\n    launch(x)\n\n\ndef timed(f):\n    return f",
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
    "text",
    [
        "def go(x):\n    try:\n        launch(x)\n    except ERRORS:\n        pass",
        "def go(x):\n    try:\n        launch(x)\n    except (KeyError, ValueError):\n        pass",
        "try:\n    launch(1)\nexcept ERRORS:\n    pass",
        "def attempt(f):\n    try:\n        f()\n    except TypeError:\n        pass\n\n\nattempt(lambda: launch(1))",
        "def attempt(f):\n    try:\n        f()\n    except TypeError:\n        pass\n\n\ndef go():\n    launch(1)\n\n\n"
        "attempt(go)",
        "check(TypeError, lambda: launch(1))",
        "def test():\n    assert_raises(TypeError, lambda: launch(1))",
        "@contextmanager\ndef ignoring():\n    try:\n        yield\n    except TypeError:\n        pass\n\n\n"
        "def test():\n    with ignoring():\n        launch(1)",
        "def test():\n    with expect_error(TypeError):\n        launch(1)",
        "def test(expectation):\n    with expectation:\n        launch(1)",
        "def test(case):\n    with case['expectation']:\n        launch(1)",
        "def test():\n    error = must_raise(TypeError)\n    with error:\n        launch(1)",
        "def test():\n    f = lambda: launch(1)\n    with pytest.raises(TypeError):\n        f()",
        "def check_raises(f):\n    with pytest.raises(TypeError):\n        f()\n\n\ndef test():\n    def bad():\n"
        "        launch(1)\n\n    check_raises(bad)",
        "def test(request):\n    request.node.add_marker(pytest.mark.xfail)\n    launch(1)",
        "class TestGo:\n    pytestmark = pytest.mark.xfail\n\n    def test(self):\n        launch(1)",
        "CASES = [lambda: launch(1)]\n\n\ndef test():\n    with pytest.raises(TypeError):\n        CASES[0]()",
        "def bad():\n    launch(1)\n\n\ndef test():\n    with pytest.raises(TypeError):\n        run(bad)",
        "def bad():\n    launch(1)\n\n\n@pytest.mark.parametrize('case', [bad])\ndef test(case):\n"
        "    with pytest.raises(TypeError):\n        case()",
        "def bad(x):\n    bad(x)\n    launch(x)\n\n\ndef test():\n    with pytest.raises(TypeError):\n        bad(1)",
        "class Bad:\n    def go(self):\n        launch(1)\n\n\ndef test():\n    with pytest.raises(TypeError):\n"
        "        Bad().go()",
        "@expect_raises(TypeError)\ndef test():\n    launch(1)",
        "def failing(f):\n    with pytest.raises(TypeError):\n        f()\n\n\n@failing\ndef test():\n    launch(1)",
        "broken = pytest.mark.xfail(strict=True)\n\n\n@broken\ndef test():\n    launch(1)",
        "@pytest.mark.skip('of the old launcher')\ndef test():\n    launch(1)",
        "def test():\n    pytest.skip('of the old launcher')\n    launch(1)",
        "def test():\n    raise NotImplementedError\n    launch(1)",
        "ARITY = len(inspect.signature(launch).parameters)\n\n\ndef go():\n    if ARITY == 1:\n        launch(1)",
        "def go():\n    if launch.__code__.co_argcount == 1:\n        launch(1)",
        "def go():\n    if takes_one(launch):\n        launch(1)",
        "NEW = kit.__version__ >= '2'\n\n\ndef go():\n    if NEW:\n        launch(1, 1, 1)\n    else:\n        launch(1)",
        "def go():\n    if kit.__version__ >= '2':\n        return launch(1, 1, 1)\n    return launch(1)",
        "def go():\n    try:\n        pass\n    except ValueError as launch:\n        launch(1)",
        "class A:\n    class launch:\n        pass\n\n    x = launch(1)",
        "def test():\n    with mock.patch.dict(ops.__dict__, {'launch': print}):\n        ops.launch(1)",
        "def test():\n    with mock.patch.dict('kit.ops.__dict__', launch=print):\n        ops.launch(1)",
        "def test(monkeypatch):\n    swap(monkeypatch, 'launch', print)\n    ops.launch(1)",
        "def build():\n    def make(A: fx.Tensor):\n        A[0] = 1\n\n    def init():\n        nonlocal make\n"
        "        make = flyc.kernel(make)\n\n    @flyc.jit\n    def go(A: fx.Tensor):\n"
        "        make(A).launch(grid=(1,), block=(64,))",
    ],
)
def test_calls_that_may_fail_or_be_of_something_else(text: str) -> None:
    assert found(text) == []


def test_a_module_that_sets_names_of_another_which_it_computes() -> None:
    files = {"opschema.toml": CONFIG, "kit/__init__.py": "", "kit/ops.py": OPS, "tests/a.py": f"{HEAD}launch(1)\n"}
    setup = "import flydsl.compiler as flyc\nimport kit.ops as ops\nfor name in ('launch',):\n    setattr(ops, name, print)\n"
    assert lint_files([PACK], {**files, "kit/setup.py": setup}, ["FLY211"]).diagnostics == []
    setup = setup.replace("setattr(ops", "setattr(values")
    assert lint_files([PACK], {**files, "kit/setup.py": setup}, ["FLY211"]).diagnostics != []


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

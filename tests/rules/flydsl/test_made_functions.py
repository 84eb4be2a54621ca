"""Calls of what factories return, and with the arguments of a tuple: FLY211 and FLY227."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

ONE = "    @flyc.jit\n    def launch(A: fx.Tensor):\n        print(A)\n\n"
TWO = "    @flyc.jit\n    def launch(A: fx.Tensor, n: fx.Int32):\n        print(A, n)\n\n"
FACTORIES = f"""
def one():
{ONE}    return launch


def two():
{TWO}    return launch


def either(wide):
    if wide:
        return two()
{ONE}    return launch


def var():
    f = one()
    return f


@functools.cache
def cached():
    return one()


@wrap
def wrapped():
    return one()


def mixed(wide):
    return one() if wide else torch.sum


def changed():
    made = one()

    def change():
        nonlocal made
        made = two()

    change()
    return made


def pair():
    f, g = one(), two()
    return f, g


def other(wide):
    if wide:
        return torch.sum
    return one()
"""


def _lint(text: str, code: str) -> list[str]:
    return [item.message for item in lint_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, [code]).diagnostics]


def _arguments(run: str) -> list[str]:
    body = "".join(f"    {line}\n" for line in run.splitlines())
    return _lint(f"import functools\n{FACTORIES}\n\ndef run(x):\n{body}", "FLY211")


@pytest.mark.parametrize(
    "run",
    [
        "f = var()\nf(x, 1)",
        "f = either(x)\nf(x, 1, 2)",
        "either(x)(x, 1, 2)",
        "cached()(x, 2)",
        "f = two()\nf(x, 1)\nf = one()\nf(x, 1)",
        "if x:\n    f = two()\n    f(x)\nelse:\n    f = one()\n    f(x)",
        "for i in x:\n    f = one()\n    f(x, 1)",
    ],
)
def test_a_call_that_fits_nothing_which_the_factory_returns(run: str) -> None:
    assert len(_arguments(run)) == 1


@pytest.mark.parametrize(
    "run",
    [
        "f = either(x)\nf(x)\nf(x, 1)",
        "f = mixed(x)\nf(x, 1, 2)",
        "f = other(x)\nf(x, 1, 2)",
        "wrapped()(x, 1)",
        "changed()(x, 1)",
        "f, g = pair()\ng(x, 1)\nf(x)",
        "f = two()\nf(x, 1)\nf = one()\nf(x)",
        "if x:\n    f = two()\nelse:\n    f = one()\nf(x, 1)",
        "f = one()\nif x:\n    f = two()\nf(x, 1)",
        "f = one()\nfor i in x:\n    f = two()\nf(x, 1)",
        "f = one()\nfor i in x:\n    if i:\n        f(x, 1)\n    f = two()",
        "f = one()\nwhile x:\n    f = two()\nf(x, 1)",
        "f = one()\ntry:\n    f = two()\nexcept ImportError:\n    pass\nf(x, 1)",
        "f = one()\ng = lambda: f(x, 1)\nf = two()\ng()",
        "f = one()\ndef g():\n    f(x, 1)\nf = two()\ng()",
        "f = one()\ndef g():\n    nonlocal f\n    f = two()\ng()\nf(x, 1)",
        "f = one()\nfor f in [two()]:\n    f(x, 1)",
        "f = one()\nwith two() as f:\n    f(x, 1)",
        "f = one()\nif f := two():\n    f(x, 1)",
        "f = one()\n[f(x, 1) for f in [two()]]",
        "f = one()\nfrom m import f\nf(x, 1)",
        "f = one()\ndef f(a, b):\n    pass\nf(x, 1)",
        "f = one()\nclass f:\n    pass\nf(x, 1)",
        "f = one()\nf, g = two(), 1\nf(x, 1)",
        "f = one()\nf += two()\nf(x, 1)",
        "f = one()\n[f(x, 1) for n in x if (f := two())]",
        "f = two()\nwith suppress(KeyError):\n    x[0]\n    f = one()\n    f(x)\nf(x, 1)",
        "f = one() if x else two()\nf(x, 1)",
    ],
)
def test_a_call_that_may_be_of_another_function(run: str) -> None:
    assert not _arguments(run)


KERNEL = "@flyc.kernel\ndef fill(A: fx.Tensor):\n    A[0] = 1\n\n\n"
PLAIN = "def launch(A: fx.Tensor):\n        fill(A).launch(grid=(n,), block=(64,))\n"
BUILD = f"def build(n):\n    {PLAIN}\n    return launch\n\n\ndef outer(n):\n    return build(n)\n\n\n"
BUILD_EITHER = f"def outer(n):\n    if n:\n        return one()\n    {PLAIN}\n    return launch\n\n\n"


@pytest.mark.parametrize("build", [BUILD, FACTORIES + BUILD_EITHER])
@pytest.mark.parametrize(
    "run",
    [
        "f = outer(1)\n    f(x)",
        "f = outer(1)\n    flyc.compile(f, x)",
        "outer(1)(x)",
        "f = 1\n    f = outer(1)\n    f(x)",
        "@torch.no_grad()\n    def helper():\n        outer(1)(x)\n    helper()",
        "@wrap\n    def test_it():\n        outer(1)(x)",
    ],
)
def test_the_host_calls_a_result_that_nothing_traces(build: str, run: str) -> None:
    assert len(_lint(f"import functools\n{KERNEL}{build}def run(x):\n    {run}\n", "FLY227")) == 1


GO = "@flyc.jit\n{0}def go(A: fx.Tensor):\n{0}    f(A)\n"


@pytest.mark.parametrize("build", [BUILD, FACTORIES + BUILD_EITHER])
@pytest.mark.parametrize(
    "code",
    [
        "def run(x):\n    f = outer(1)\n    go = flyc.jit(f)\n    go(x)\n",
        "def run(x):\n    go = flyc.jit(outer(1))\n    go(x)\n",
        f"def run(x):\n    f = outer(1)\n    {GO.format('    ')}    go(x)\n",
        f"f = outer(1)\n{GO.format('')}",
        "@flyc.jit\ndef go(A: fx.Tensor):\n    f = outer(1)\n    f(A)\n",
        "def run(x):\n    f = outer(1)\n    go = wrap(f)\n    go(x)\n",
        "def run(x):\n    d = {1: outer(1)}\n    flyc.jit(d[1])(x)\n",
        "def get():\n    f = outer(1)\n    return f\n\ndef run(x):\n    flyc.jit(get())(x)\n",
        "def run(x):\n    f = functools.partial(outer(1), n=2)\n    flyc.jit(f)(x)\n",
        "def run(x):\n    f = outer(1)\n    flyc.jit(lambda A: f(A))(x)\n",
        "def run():\n    f = outer(1)\n    print(f)\n",
        "def helper(x):\n    outer(1)(x)\n\ndef run(x):\n    wrap(helper)(x)\n",
        "def helper(x):\n    outer(1)(x)\n\nALL = {1: helper}\n",
        "def run():\n    def helper(x):\n        outer(1)(x)\n    return helper\n",
        "def run(x):\n    @wrap\n    def helper(x):\n        outer(1)(x)\n    helper(x)\n",
        "def test_it(x):\n    f = outer(1)\n    with pytest.raises(RuntimeError):\n        f(x)\n",
    ],
)
def test_a_result_that_may_be_traced(build: str, code: str) -> None:
    assert not _lint(f"import functools\n{KERNEL}{build}{code}", "FLY227")


HELPERS = """
@flyc.jit
def go(A: fx.Tensor, n: fx.Int32, s: fx.Stream = fx.Stream(None)):
    print(A, n, s)


def two(x):
    return x, 1


def four(x):
    return (x, 1, 2, 3)


def mixed(x):
    if x:
        return x, 1
    return x, 1, 2, 3


def steps(x):
    yield x
    return x, 1, 2, 3


@wrap
def wrapped(x):
    return x, 1, 2, 3


async def later(x):
    return x, 1, 2, 3


def unpacked(x):
    return (*x, 1, 2, 3)


def listed(x):
    return [x, 1, 2, 3]


ARGS = (1,)
from kit.others import *
"""


def _unpacking(run: str) -> list[str]:
    body = "".join(f"    {line}\n" for line in run.splitlines())
    return _lint(f"{HELPERS}\n\ndef run(x, s=None):\n{body}", "FLY211")


@pytest.mark.parametrize(
    "run",
    [
        "go(*four(x))",
        "args = four(x)\ngo(*args)",
        "args = (x, 1, 2, 3)\ngo(*args)",
        "go(*(x,))",
        "go(*two(x), 1, 2)",
        "flyc.compile(go, *four(x))",
    ],
)
def test_a_tuple_of_arguments_that_does_not_fit(run: str) -> None:
    assert len(_unpacking(run)) == 1


@pytest.mark.parametrize(
    "run",
    [
        "go(*two(x))",
        "go(*two(x), s)",
        "go(*two(x), s=s)",
        "go(*(x,), *(1,))",
        "go(x, 1, *())",
        "go(*mixed(x))",
        "go(*steps(x))",
        "go(*wrapped(x))",
        "go(*later(x))",
        "go(*unpacked(x))",
        "go(*listed(x))",
        "go(*(x,), *x)",
        "go(*(x,), **x)",
        "args = [x, 1, 2, 3]\nargs.pop()\ngo(*args)",
        "args = (x,)\nargs += (1,)\ngo(*args)",
        "args = (x,)\nif x:\n    args = (x, 1)\ngo(*args)",
        "args = ()\nfor i in x:\n    args = (*args, i)\ngo(*args)",
        "args = ()\nfor i in x:\n    args = args + (i,)\ngo(*args)",
        "args = (x,)\ndef f():\n    nonlocal args\n    args = (x, 1)\nf()\ngo(*args)",
        "args = (x,)\ndef f():\n    go(*args)\nargs = (x, 1)\nf()",
        "args = (x,)\nf = lambda: go(*args)\nargs = (x, 1)\nf()",
        "args = (x,)\n[go(*args) for args in ((x, 1), (x, 2))]",
        "args = (x,)\nf = lambda args: go(*args)\nf((x, 1))",
        "args = (x, 1)\nwith suppress(KeyError):\n    x[0]\n    args = (x, 1, 2, 3)\ngo(*args)",
        "args = (x,)\n[go(*args) for i in x if (args := i)]",
        "go(*ARGS)",
        "args = (x,)\ncalls = (go(*args) for _ in x)\nargs = (x, 1)\nlist(calls)",
        "two = x\ngo(*two(x))",
        "with pytest.raises(TypeError):\n    go(*four(x))",
    ],
)
def test_a_tuple_of_arguments_that_fits_or_is_not_known(run: str) -> None:
    assert not _unpacking(run)

"""Calls and launches of kernels against their signatures: what is said, where, and what is left alone."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

KERNEL = """\
@flyc.kernel
def scale(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):
    if fx.thread_idx.x < n:
        C[fx.thread_idx.x] = A[fx.thread_idx.x]


"""

LAUNCHER = """\
@flyc.jit
def launch(A: fx.Tensor, C: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    scale(A, C, n).launch(grid=(1,), block=(64,), stream=stream)


"""


def lint(text: str, *codes: str, version: str = "0.4.2", **files: str) -> Linted:
    others = {path.replace("__", "/") + ".py": HEAD + source for path, source in files.items()}
    toml = f'[flydsl]\nversion = "{version}"\n'
    return lint_files([PACK], {**BASE_FILES, "opschema.toml": toml, KERNELS_PATH: HEAD + text, **others}, codes)


def told(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_a_call_that_does_not_fit_is_told_with_the_signature() -> None:
    linted = lint(KERNEL + LAUNCHER.replace("scale(A, C, n)", "scale(A, C, m=n)"), "FLY211")
    assert told(linted) == [
        (
            "n",
            "this call of `scale` does not match its signature: it has no parameter `m`, but `n`, for which nothing else is passed",
        ),
    ]
    (related,) = linted.diagnostics[0].related
    assert (linted.text(related.place), related.message) == ("scale", "`scale(A, C, n)`")


def test_a_stale_caller_in_another_file() -> None:
    caller = "from kit.kernels import launch\n\n\ndef run(a, c):\n    launch(a, c, 4, 5, 6)\n"
    linted = lint(KERNEL + LAUNCHER, "FLY211", kit__run=caller)
    assert told(linted) == [
        ("6", "this call of `launch` does not match its signature: at most 4 positional arguments are accepted")
    ]
    assert linted.diagnostics[0].place.path == "kit/run.py"


FACTORY = """\
import functools


@functools.lru_cache(maxsize=None)
def build(tile):
    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        print(A, n, tile)

    return launch


"""


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("def run(x):\n    go = build(4)\n    go(x)\n", ["go"]),
        ("def run(x):\n    go = build(4)\n    def inner():\n        go(x)\n    inner()\n", ["go"]),
        ("def run(x):\n    build(4)(x)\n", ["build(4)"]),
        ("def run(x):\n    go = build(4)\n    flyc.compile(go, x)\n", ["go"]),
        ("def run(x):\n    flyc.compile[{'fast_fp_math': True}](build(4), x)\n", ["build(4)"]),
        ("go = build(4)\n\n\ndef run(x):\n    go(x)\n", ["go"]),
        ("def run(x):\n    go = build(4)\n    go = wrap(go)\n    go(x)\n", []),
        ("def run(x, go):\n    go(x)\n", []),
        ("def run(x):\n    go = build(4)\n    go(x, 3)\n", []),
        ("def run(x):\n    go = build(4)\n    flyc.compile(go)\n", []),
    ],
)
def test_what_a_factory_returns_is_followed(run: str, found: list[str]) -> None:
    assert [text for text, _ in told(lint(FACTORY + run, "FLY211"))] == found


HELD = """\
class Op:
    def __init__(self, other=None, **kw):
        self.go = build(4)
        self.other = other
        self.__dict__.update(kw)

    def __call__(self, a):
        {}


"""


@pytest.mark.parametrize(
    "call",
    [
        "self.go(a)",
        "self = self.other\n        self.go(a)",
        "def inner(self):\n            self.go(a)\n        inner(self.other)",
        "(lambda self: self.go(a))(self.other)",
        "[self.go(a) for self in self.other]",
    ],
)
def test_what_an_instance_holds_is_not_followed(call: str) -> None:
    """It may be given another function from anywhere."""
    other = "from kit.kernels import Op\nimport functools\n\nop = Op()\nop.go = functools.partial(op.go, n=3)\n"
    linted = lint(FACTORY + HELD.format(call), "FLY211", kit__run=other)
    assert (linted.codes(), told(linted)) == ([], [])


@pytest.mark.parametrize(
    "factory",
    [
        FACTORY.replace("return launch", "return wrap(launch)"),
        FACTORY.replace("return launch", "if tile:\n        return launch\n    return other"),
        FACTORY.replace("@functools.lru_cache(maxsize=None)", "@adapted"),
        FACTORY.replace("@flyc.jit", "@adapted\n    @flyc.jit"),
        FACTORY.replace("    return launch", "    launch = adapted(launch)\n    return launch"),
    ],
)
def test_what_is_wrapped_is_not_judged(factory: str) -> None:
    assert told(lint(factory + "def run(x):\n    go = build(4)\n    go(x)\n", "FLY211")) == []


def test_methods_take_their_instance() -> None:
    text = """\
class Kit:
    @flyc.kernel
    def fill(self, A: fx.Tensor, n: fx.Int32):
        A[0] = n

    @flyc.jit
    def launch(self, A: fx.Tensor, n: fx.Int32):
        self.fill(A, n).launch(grid=(1,), block=(64,))
        self.fill(A).launch(grid=(1,), block=(64,))
        Kit.fill(self, A, n).launch(grid=(1,), block=(64,))
"""
    assert told(lint(text, "FLY211")) == [
        ("self.fill", "this call of `fill` does not match its signature: nothing is passed for `n`")
    ]


def test_what_a_test_expects_to_fail_is_left_alone() -> None:
    test = """\
from kit.kernels import launch, scale
import pytest


def test_refusal():
    @flyc.jit
    def wrong(A: fx.Tensor):
        scale(A).launch((1,), block=(512,))

    with pytest.raises(TypeError):
        wrong(1)
    with pytest.raises(TypeError):
        launch(1)
"""
    assert lint(KERNEL + LAUNCHER, tests__test_launch=test).codes() == []


def test_a_kernel_that_is_not_launched() -> None:
    text = KERNEL + LAUNCHER.replace(
        "scale(A, C, n).launch", "scale(A, C, n)\n    first = scale(A, C, n)\n    first.launch"
    )
    linted = lint(text, "FLY213")
    assert told(linted) == [
        ("scale(A, C, n)", "`scale` is called and never launched, so it does not run: add `.launch(...)`")
    ]
    assert linted.position(linted.diagnostics[0].place).line == 15


@pytest.mark.parametrize(
    "body",
    [
        "return scale(A, C, n)",
        "start(scale(A, C, n))",
        "pending = [scale(A, C, n)]",
        "self.pending = scale(A, C, n)",
        "with scale(A, C, n) as kernel:\n        pass",
        "kernel = scale(A, C, n)\n    def later():\n        kernel.launch(grid=(1,), block=(1,))\n    later()",
    ],
)
def test_a_kernel_that_is_passed_on_may_be_launched(body: str) -> None:
    text = KERNEL + f"@flyc.jit\ndef launch(A: fx.Tensor, C: fx.Tensor, n: fx.Int32):\n    {body}\n"
    assert told(lint(text, "FLY213")) == []


def test_the_nearest_keyword_is_named() -> None:
    linted = lint(KERNEL + LAUNCHER.replace("grid=(1,)", "grids=(1,)"), "FLY214")
    assert told(linted) == [("1,", "`.launch` takes no `grids`, but `grid`")]


def test_a_constant_block_is_compared_with_the_promise() -> None:
    promise = KERNEL.replace("@flyc.kernel", "THREADS = 128\n\n\n@flyc.kernel(known_block_size=[THREADS * 2, 1, 1])")
    linted = lint(promise + LAUNCHER, "FLY215")
    assert told(linted) == [("64,", "this block is 64 x 1 x 1, and `scale` promises 256 x 1 x 1: it raises")]
    (related,) = linted.diagnostics[0].related
    assert linted.text(related.place) == "[THREADS * 2, 1, 1]"


@pytest.mark.parametrize(("version", "count"), [("0.1.8", 1), ("0.3.0", 1), ("0.3.1", 0), ("0.4.2", 0)])
def test_large_blocks_need_a_promise_before_0_3_1(version: str, count: int) -> None:
    assert len(lint(KERNEL + LAUNCHER.replace("(64,)", "(16, 32)"), "FLY215", version=version).codes()) == count
    by_parameter = LAUNCHER.replace("(64,)", "(threads,)").replace(
        "n: fx.Int32", "n: fx.Int32, threads: fx.Constexpr[int]"
    )
    assert lint("threads = 512\n" + KERNEL + by_parameter, "FLY215", version=version).codes() == []


def test_a_kernel_with_hidden_options_is_left_alone() -> None:
    hidden = KERNEL.replace("@flyc.kernel", "@flyc.kernel(**options())")
    assert lint(hidden + LAUNCHER.replace("(64,)", "(512,)"), "FLY215", version="0.3.0").codes() == []


@pytest.mark.parametrize(
    ("launch", "fixed"),
    [
        (".launch(grid=(1,), block=(64,))", ".launch(grid=(1,), block=(64,), stream=stream)"),
        (".launch(\n        grid=(1,),\n    )", ".launch(\n        grid=(1,),\n        stream=stream,\n    )"),
        (".launch()", ".launch(stream=stream)"),
    ],
)
def test_a_stream_that_is_not_passed_is_put_in(launch: str, fixed: str) -> None:
    text = KERNEL + LAUNCHER.replace(".launch(grid=(1,), block=(64,), stream=stream)", launch)
    linted = lint(text, "FLY219")
    assert told(linted) == [
        ("launch", "`launch` takes `stream`, and this launch of `scale` is on the default stream: pass `stream=stream`")
    ]
    assert linted.diagnostics[0].severity is Severity.WARNING
    texts, _ = fix_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, ["FLY219"])
    assert texts[KERNELS_PATH] == HEAD + text.replace(launch, fixed)

"""The arguments and uses of parameters: places, messages, fixes, and code that is left alone."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

LAUNCH = """\
@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    fill(A, n).launch(grid=(1,), block=(64,), stream=stream)


"""


def lint(text: str, *codes: str) -> Linted:
    return lint_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, codes)


def told(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def fixed(text: str, code: str) -> str:
    texts, _ = fix_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, [code], unsafe=True)
    return texts.get(KERNELS_PATH, HEAD + text).removeprefix(HEAD)


def kernel(body: str, params: str = "A: fx.Tensor, n: fx.Int32") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"@flyc.kernel\ndef fill({params}):\n{lines}\n\n"


# -- FLY212


def test_an_unread_parameter_and_what_passes_it() -> None:
    linted = lint(kernel("A[0] = 1") + LAUNCH, "FLY212")
    assert told(linted) == [
        ("n", "`fill` takes `n` and does not read it: drop it here and in the calls, or name it `_n`")
    ]
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics[0].related] == [("n", "passed here")]


def test_the_unread_parameters_of_a_function_are_one_finding() -> None:
    launch = LAUNCH.replace("fill(A, n)", "fill(A, n, 4, 5)")
    linted = lint(kernel("A[0] = 1", "A: fx.Tensor, n: fx.Int32, m: fx.Int32, k: fx.Int32") + launch, "FLY212")
    assert told(linted) == [
        (
            "n",
            "`fill` takes `n`, `m` and `k` and does not read them: drop them here and in the calls, or begin their names "
            "with `_`",
        )
    ]
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics[0].related] == [
        ("m", "not read either"),
        ("k", "not read either"),
        ("n", "passed here"),
        ("4", "passed here"),
        ("5", "passed here"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        kernel("A[0] = 1", "A: fx.Tensor, _n: fx.Int32"),
        kernel("del n\nA[0] = 1"),
        kernel("def inner():\n    A[0] = n\ninner()"),
        kernel("A[0] = [n for _ in fx.range_constexpr(2)][0]"),
        kernel("A[0] = (lambda: n)()"),
        kernel("A[0] = locals()['n']"),
        kernel("pass"),
        kernel("x = fx.thread_idx.x"),
        LAUNCH.replace("fill(A, n)", "fill(A)").replace("n: fx.Int32", "tag: fx.Constexpr[int]"),
        kernel("A[0] = 1") + kernel("A[0] = n").replace("fill", "fill_by"),
    ],
)
def test_parameters_that_are_read_or_meant_to_be_there(text: str) -> None:
    assert told(lint(text, "FLY212")) == []


# -- FLY216, FLY218


def test_a_late_constexpr_names_both_declarations() -> None:
    constant = kernel("A[0] = fx.thread_idx.x + n", "A: fx.Tensor, n: fx.Constexpr[int]")
    linted = lint(constant + LAUNCH.replace("fill(A, n)", "fill(A, (n + 63) // 64)"), "FLY216")
    assert told(linted) == [
        (
            "(n + 63) // 64",
            "`(n + 63) // 64` is known at run time only, and `fill` takes `n` as a `Constexpr`, which it needs while it is "
            "traced: give both the same kind",
        )
    ]
    assert [linted.text(item.place) for item in linted.diagnostics[0].related] == [
        "n: fx.Int32",
        "n: fx.Constexpr[int]",
    ]


@pytest.mark.parametrize(
    "call", ["fill(A, 4)", "fill(A, TILE)", "fill(A, m)", "fill(A, unknown())", "fill(A, A.shape[0])"]
)
def test_constants_and_what_is_not_known_may_be_a_constexpr(call: str) -> None:
    constant = kernel("A[0] = fx.thread_idx.x + n", "A: fx.Tensor, n: fx.Constexpr[int]")
    launch = LAUNCH.replace("fill(A, n)", call).replace("n: fx.Int32", "n: fx.Int32, m: fx.Constexpr[int]")
    assert told(lint("TILE = 4\n" + constant + launch, "FLY216")) == []


def test_a_constant_is_wrapped() -> None:
    text = kernel("A[0] = n") + LAUNCH.replace("fill(A, n)", "fill(A, 4)")
    assert [place for place, _ in told(lint(text, "FLY218"))] == ["4"]
    assert fixed(text, "FLY218") == text.replace("fill(A, 4)", "fill(A, fx.Int32(4))")


def test_a_name_of_the_launcher_hides_a_constant_of_its_module() -> None:
    assert told(lint("n = 4\n" + kernel("A[0] = n") + LAUNCH, "FLY218")) == []


def test_arguments_that_have_changed_places_are_a_warning() -> None:
    linted = lint(kernel("A[0] = n") + LAUNCH.replace("fill(A, n)", "fill(n, A)"), "FLY218")
    assert [(place, linted.diagnostics[0].severity.value) for place, _ in told(linted)] == [
        ("n", "warning"),
        ("A", "warning"),
    ]


@pytest.mark.parametrize(
    "launch",
    [
        LAUNCH.replace("fill(A, n)", "fill(A, m)").replace("n: fx.Int32", "n: fx.Int32, m"),
        LAUNCH.replace("    fill(A, n)", "    n = fx.Int64(n)\n    fill(A, n)"),
        LAUNCH.replace("@flyc.jit\n", ""),
        LAUNCH + "@flyc.jit\ndef outer(A: fx.Tensor):\n    launch(A, 4)\n",
    ],
)
def test_kinds_that_are_not_certain_are_left_alone(launch: str) -> None:
    text = kernel("A[0] = n", "A: fx.Tensor, n: fx.Int64") + launch
    assert told(lint(text, "FLY218")) == []


KERNEL = kernel("A[0] = n")
BUILD = """\
def build(tile: int):
    @flyc.kernel
    def fill(A: fx.Tensor, n: fx.Int32):
        A[0] = n

    {before}

    @flyc.jit
    def launch(A: fx.Tensor, m: fx.Int32):
        {call}

    return launch
"""
RUNS = "fill(A, tile).launch(grid=(1,), block=(64,))"


def test_a_number_that_the_factory_takes_is_plain() -> None:
    assert [place for place, _ in told(lint(BUILD.format(before="pass", call=RUNS), "FLY218"))] == ["tile"]


@pytest.mark.parametrize(
    "text",
    [
        KERNEL + f"def go(A, tile: int):\n    {RUNS}\n\n\n"
        "@flyc.jit\ndef launch(A: fx.Tensor, m: fx.Int32):\n    go(A, m)\n",
        BUILD.format(before=f"def go(A, tile: int):\n        {RUNS}", call="go(A, m)"),
        BUILD.format(before="def late():\n        nonlocal tile\n        tile = fx.Int32(4)", call=RUNS),
        BUILD.format(before="tile = fx.Int32(tile)", call=RUNS),
        BUILD.format(before="pass", call=RUNS)
        + "\n\n@flyc.jit\ndef outer(A: fx.Tensor, m: fx.Int32):\n    build(m)(A, m)\n",
    ],
)
def test_a_number_may_be_one_of_the_gpu(text: str) -> None:
    linted = lint(text, "FLY218")
    assert (linted.codes(), told(linted)) == ([], [])


@pytest.mark.parametrize(("write", "found"), [("pass", ["bias"]), ("nonlocal bias; bias = torch.zeros(4)", [])])
def test_a_variable_that_an_inner_function_may_write(write: str, found: list[str]) -> None:
    taken = "A: fx.Tensor, B: fx.Tensor"
    launch = f"@flyc.jit\ndef launch({taken}):\n    fill(A, B).launch(grid=(1,), block=(64,))\n\n\n"
    run = f"def run(a):\n    bias = None\n    def load():\n        {write}\n    load()\n    launch(a, bias)\n"
    assert [place for place, _ in told(lint(kernel("A[0] = B[0]", taken) + launch + run, "FLY218"))] == found


PRINTS = "@flyc.jit\ndef launch(A: fx.Tensor, n: fx.Int32, k: fx.Constexpr[int] = 1, other=None):\n    print(A, n, k, other)\n\n\n"


@pytest.mark.parametrize(
    "run",
    [
        "y = torch.empty_like(x)\n    launch(x, y)",
        "launch(x, torch.zeros(4, 4))",
        "y = torch.empty((M, N), device='cuda')\n    launch(M, y)",
        "y = torch.randn(M, N).to(torch.float16)\n    launch(x, y)",
        "y = torch.empty(8)\n    def go():\n        launch(x, y)\n    go()",
    ],
)
def test_a_tensor_for_a_number(run: str) -> None:
    (found,) = lint(f"{PRINTS}def run(x):\n    {run}\n", "FLY218").diagnostics
    assert "which cannot be a tensor" in found.message


@pytest.mark.parametrize(
    "run",
    [
        *(
            f"launch(x, torch.{tensor})"
            for tensor in ("tensor(4)", "zeros(1)", "ones(1, 1)", "ones(())", "full((1,), 4)")
        ),
        *(
            f"launch(x, torch.{tensor})"
            for tensor in ("zeros(n)", "zeros(1, n)", "randint(0, 9, (1,))", "zeros_like(x)")
        ),
        *(
            f"y = torch.zeros(4, 4)\n    launch(x, y{n})"
            for n in (".shape[0]", ".numel()", ".sum()", "[0, 0]", ".size(0)")
        ),
        "y = torch.zeros(4, 4)\n    launch(x, len(y))",
        "launch(x, int(torch.zeros(4, 4)))",
        "launch(x, mytorch.zeros(4, 4))",
        "y = torch.zeros(4, 4)\n    y = 4\n    launch(x, y)",
        "y = torch.zeros(4, 4) if x else 1\n    launch(x, y)",
        "y = torch.zeros(4, 4)\n    y.resize_(1)\n    launch(x, y)",
        "launch(torch.zeros(4, 4), 1, torch.zeros(4, 4), torch.zeros(4, 4))",
        "with pytest.raises(ValueError):\n        launch(x, torch.zeros(4, 4))",
    ],
)
def test_a_number_that_may_be_in_a_tensor(run: str) -> None:
    assert not lint(f"{PRINTS}def run(x):\n    {run}\n", "FLY218").diagnostics


@pytest.mark.parametrize("value", ["torch.zeros(4, 4)", "None", "'a'", "[1]"])
@pytest.mark.parametrize(
    "run",
    [
        "[launch(x, y) for y in (3,)]",
        "(lambda y: launch(x, y))(3)",
        "def change():\n        nonlocal y\n        y = 3\n    change()\n    launch(x, y)",
        "class Sizes:\n        y = 3\n        launch(x, y)",
    ],
)
def test_an_argument_of_the_same_name_as_a_variable(value: str, run: str) -> None:
    assert not lint(f"{PRINTS}def run(x):\n    y = {value}\n    {run}\n", "FLY218").diagnostics


def test_what_a_call_that_does_not_fit_passes_is_not_judged() -> None:
    text = kernel("A[0] = n") + LAUNCH.replace("fill(A, n)", "fill(4, A, n)")
    assert lint(text, "FLY211", "FLY216", "FLY218").codes() == ["FLY211"]


# -- FLY217


def test_a_late_count_and_where_it_comes_from() -> None:
    text = kernel("steps = n // 4\nfor i in fx.range_constexpr(steps):\n    A[i] = i")
    linted = lint(text, "FLY217")
    assert told(linted) == [
        (
            "steps",
            "`steps` is known at run time only, and `range_constexpr` needs a number while the function is traced: it raises",
        )
    ]
    assert fixed(text, "FLY217") == text.replace("fx.range_constexpr", "range")


def test_the_index_of_a_loop_of_the_gpu() -> None:
    text = kernel("xs = [1, 2]\nfor i in range(2):\n    A[0] = xs[i]")
    linted = lint(text, "FLY217")
    assert told(linted) == [
        (
            "i",
            "`i` belongs to a GPU loop, and `xs` is a Python list or tuple, which cannot be indexed by it: it raises",
        )
    ]
    assert [linted.text(item.place) for item in linted.diagnostics[0].related] == ["range"]
    assert fixed(text, "FLY217") == text.replace("in range(2)", "in fx.range_constexpr(2)")


def test_a_loop_of_the_gpu_over_a_late_bound_is_not_unrolled() -> None:
    text = kernel("xs = [1, 2]\nfor i in range(n):\n    A[0] = xs[i]")
    assert len(told(lint(text, "FLY217"))) == 1
    assert fixed(text, "FLY217") == text


def test_a_condition_becomes_one_of_the_gpu() -> None:
    text = kernel("x = 0\nif fx.const_expr(n > 0):\n    x = 1\nA[0] = x")
    assert fixed(text, "FLY217") == text.replace("fx.const_expr(n > 0)", "n > 0")
    commented = text.replace("(n > 0)", "(  # at compile time\n        n > 0\n    )")
    assert fixed(commented, "FLY217") == commented


@pytest.mark.parametrize(
    "body",
    [
        "n = 4\nA[0] = int(n)",
        "for n in fx.range_constexpr(3):\n    A[0] = int(n)",
        "if A:\n    n = 3\nA[0] = int(n)",
        "n, m = unknown()\nA[0] = int(n)",
        "with unknown() as n:\n    A[0] = int(n)",
        "def f(n):\n    return int(n)\nA[0] = f(3)",
        "def f():\n    nonlocal n\n    n = 3\nf()\nA[0] = int(n)",
        "A[0] = [int(n) for n in (1, 2)][0]",
        "int = unknown\nA[0] = int(n)",
        "A[0] = other.min(n, 3)",
        "A[0] = fx.min(n, 3)",
        "xs = {1: 2}\nA[0] = xs[n]",
        "xs = unknown()\nA[0] = xs[n]",
        "A[0] = A[n]",
        "for i in range(3):\n    pass\nA[0] = XS[i]",
        "range = unknown\nA[0] = [i for i in range(n)]",
        "A[0] = int(n.value)",
        "A[0] = int(n is None)",
        "A[0] = int(unknown(n))",
        "return lambda: int(n)",
    ],
)
def test_what_looks_late_and_is_not_certainly(body: str) -> None:
    assert told(lint("XS = [1, 2]\n\n\n" + kernel(body), "FLY217")) == []


@pytest.mark.parametrize(
    "body",
    [
        "x = any([])",
        "x = all(())\ny = any([*XS, n > 1])",
        "seen = []\nfor i in fx.range_constexpr(4):\n    if fx.const_expr(n not in seen):\n        seen.append(n)",
        "names = []\nx = names.count(n)",
        "x = n in [fx.Int32(i) for i in range(0)]",
        "xs = [fx.Int32(i) for i in range(0)]\nx = n in xs",
        "m = n + 1\norder = [n, m]\nx = order.index(n)",
        "m = n + 1\norder = [n, m]\nx = n in order",
        "m = n\nx = m in (n, 1)",
        "x = n in [n, 1]",
        "x = n in (None, None)",
        "x = n in ('auto', 'none')",
        "x = n in [fx.Int32, fx.Int64]",
        "first = [1]\nfirst.clear()\nx = n in first",
        "first = [1]\nfirst[0] = n\nx = n in first",
        "first = [1]\nfirst.insert(0, n)\nx = n in first",
        "x = n in [*(), n]",
        "m = n + 1\nx = sorted([n, m], key=id)",
        "m = n + 1\nx = max([n, m], key=lambda v: v.dtype.width)",
        "m = n + 1\nx = min(n, m, key=id)",
        "x = sorted([*(), n])",
        "x = max(n + i for i in (1,))",
        "x = any(n > i for i in range(0))",
        "none = []\nx = all(n > i for i in none)",
        "x = all(n > i for i in XS if i > 5)",
    ],
)
def test_what_python_compares_with_nothing(body: str) -> None:
    linted = lint("XS = [1, 2]\n\n\n" + kernel(body), "FLY217")
    assert (linted.codes(), told(linted)) == ([], [])


def test_functions_under_jit_that_launch_nothing_may_be_given_python_values() -> None:
    text = "@flyc.jit\ndef steps(A: fx.Tensor, n: fx.Int32):\n    A[0] = int(n)\n\n\n"
    assert told(lint(text, "FLY217")) == []
    launching = kernel("A[0] = n") + LAUNCH.replace("    fill", "    m = int(n)\n    fill")
    assert [place for place, _ in told(lint(launching, "FLY217"))] == ["n"]
    assert told(lint(launching + "@flyc.jit\ndef outer(A: fx.Tensor):\n    launch(A, 4)\n", "FLY217")) == []


# -- FLY229

STORE = """\
@flyc.{}
def store(x: fx.Int32, flag: fx.Int32):
    if flag:
        print(x)


"""
RUNNING = "@flyc.kernel\ndef fill(A: fx.Tensor, n: fx.Int32):\n    HELPERS['store'](n, 1)\n\n\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (STORE.format("kernel"), ["flag"]),
        (STORE.format("jit"), []),
        ("HELPERS = {}\n" + STORE.format("jit") + "HELPERS['store'] = store\n\n\n" + RUNNING, []),
        ("HELPERS = {}\n" + STORE.format("kernel") + "HELPERS['store'] = store\n\n\n" + RUNNING, []),
        (STORE.format("kernel").replace("@flyc", "@register\n@flyc", 1), []),
        (STORE.format("kernel") + "def other(n):\n    return [store]\n", []),
    ],
)
def test_the_annotation_counts_where_nothing_else_can_be_passed(text: str, found: list[str]) -> None:
    linted = lint(text, "FLY229")
    assert [place for place, _ in told(linted)] == found

"""Calls between functions of pypto's language (PTO127), and the names that golden functions read (PTO128)."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK
from tests.scaling import Work, check_linear

HEAD = """\
import pypto.language as pl
import torch
from golden import ScalarSpec, TensorSpec, run, run_jit

T = pl.Tensor[[8], pl.FP32]

"""

INLINE = "@pl.jit.inline\ndef scale(x: T, by: pl.Scalar[pl.FP32], y: T):\n    ...\n\n"

RUN = """\

def specs():
    return [
        TensorSpec("x", [8], torch.float32, init_value=torch.randn),
        TensorSpec("y", [8], torch.float32, is_output=True),
    ]


"""


def entry(body: str, decorated: str = "@pl.jit") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{decorated}\ndef double(x: T, y: pl.Out[T]):\n{lines}\n"


def run(golden: str = "", call: str = "run_jit(fn=double, specs=specs(){})\n") -> str:
    return RUN + call.format(f", golden_fn={golden}" if golden else "")


def codes(text: str, **others: str) -> list[str]:
    files = {"run.py": HEAD + text, **{f"{name}.py": other for name, other in others.items()}}
    return lint_files([PACK], files, ["PTO127", "PTO128"]).codes()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return scale(x, y)", 1),
        ("return scale(x, 2.0, y, 4)", 1),
        ("for _ in pl.range(2):\n    y = scale(x)\nreturn y", 1),
        ("return scale(x, 2.0, y)", 0),
        ("return scale(x, y=y, by=2.0)", 0),
        ("return scale(*given)", 0),
        ("return pl.submit(scale, x, y)", 0),
        ("scale = pl.add\nreturn scale(x, y)", 0),
        ("def scale(x, y):\n    return y\nreturn scale(x, y)", 0),
    ],
)
def test_arguments_of_an_inline_function(body: str, found: int) -> None:
    assert codes(INLINE + entry(body) + run()) == ["PTO127"] * found


@pytest.mark.parametrize(
    "called",
    [
        "@pl.jit.inline\ndef scale(x: T, y: T, eps: pl.Scalar[pl.FP32] = 1e-6):\n    ...\n\n",
        "def scale(x, by, y):\n    ...\n\n",
        "def traced(fn):\n    return fn\n\n\n@traced\n@pl.jit.inline\ndef scale(x: T, by: pl.Scalar[pl.FP32], y: T):\n    ...\n\n",
        "@pl.jit\ndef scale(x: T, by: T, y: pl.Out[T]):\n    ...\n\n",
        "@pl.jit.inline\ndef scale(x: T, *rest):\n    ...\n\n",
        "from elsewhere import scale\n\n",
    ],
)
def test_functions_that_may_take_them(called: str) -> None:
    assert codes(called + entry("return scale(x, y)") + run()) == []


def test_functions_of_functions_and_of_other_files() -> None:
    outer = "@pl.jit.inline\ndef outer(x: T, y: T):\n    return scale(x, y)\n\n"
    assert codes(INLINE + outer + entry("return outer(x, y)") + run()) == ["PTO127"]
    assert codes(f"from parts import scale\n{entry('return scale(x, y)')}{run()}", parts=HEAD + INLINE) == ["PTO127"]
    assert codes(INLINE + outer + entry("return y") + run()) == []  # nothing calls it


def test_an_error_that_is_expected() -> None:
    text = INLINE + entry("return scale(x, y)") + RUN
    test = "\n\ndef test():\n    with pytest.raises(Exception):\n        run_jit(fn=double, specs=specs())\n"
    assert codes(text + test) == []


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("def test():\n    with pytest.raises(Exception):\n        run_jit(fn=double, specs=specs())\n", 0),
        ("def test():\n    try:\n        run_jit(fn=double, specs=specs())\n    except Exception:\n        pass\n", 0),
        ("def test():\n    run_jit(fn=double, specs=specs())\n", 1),
    ],
)
def test_an_error_that_another_file_expects(test: str, found: int) -> None:
    kernels = HEAD + INLINE + entry("return scale(x, y)")
    assert codes(f"import pytest\nfrom kernels import double\n{RUN}{test}", kernels=kernels) == ["PTO127"] * found


def test_a_comment_about_skipping() -> None:
    text = f'{PLAIN}# skip the first\ndef golden(t):\n    t["y"][:] = t["z"]\n{run("golden")}'
    assert codes(text) == ["PTO128"]
    assert codes(f'{text}\nif quick:\n    pytest.skip("too slow")\n') == []


PLAIN = entry("return y")
PARSED = (
    'parser = argparse.ArgumentParser()\nparser.add_argument("--golden-data", type=str)\nargs = parser.parse_args()\n'
)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('t["out"][:] = t["x"] * 2', 1),
        ('t["y"][:] = t["in"] * 2\nt["y"] += t["in"]', 1),
        ('t["y"] = t["x"]\nt["z"] += 1', 1),
        ('with torch.no_grad():\n    t["y"][:] = t["z"]', 1),
        ('t["y"][:] = t["x"] * 2', 0),
        ('t["twice"] = t["x"] * 2\nt["y"][:] = t["twice"]', 0),
        ('if scaled:\n    t["y"][:] = t["z"]', 0),
        ('if scaled:\n    return\nt["y"][:] = t["z"]', 0),
        ('t["y"][:] = t["z"] if scaled else t["x"]', 0),
        ('if "z" in t:\n    pass\nt["y"][:] = t["z"]', 0),
        ('prepare(t)\nt["y"][:] = t["z"]', 0),
        ('t.update(z=t["x"])\nt["y"][:] = t["z"]', 0),
        ('t = prepared\nt["y"][:] = t["z"]', 0),
        ('try:\n    t["y"][:] = t["z"]\nexcept KeyError:\n    pass', 0),
        ('def f():\n    t["z"] = 1\nf()\nt["y"][:] = t["z"]', 0),
        ('for name in ("x", "y"):\n    t[name] += 1', 0),
        ('t["y"][:] = {"z": 1}["z"]', 0),
        ('with suppress(KeyError):\n    t["y"][:] = t["z"]', 0),
        ('for name in ("z", "w"):\n    t[name] = 1\nt["y"][:] = t["z"]', 0),
        ('t["z"], [t["w"], *_] = 1, given\nt["y"][:] = t["z"] + t["w"]', 0),
        ('t["y"][:] = sum(t["z"] for _ in t["x"].shape)', 0),
        ('v: t["z"] = t["x"]\nt["y"][:] = v', 0),
        ('v: int = t["z"]\nt["y"][:] = v', 1),
    ],
)
def test_names_of_a_golden_function(body: str, found: int) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    assert codes(f"{PLAIN}def golden(t):\n{lines}{run('golden')}") == ["PTO128"] * found


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("run_jit(fn=double, specs=specs(), golden_fn=golden)", 1),
        ("run_jit(fn=double, specs=[*specs()], golden_fn=golden)", 0),
        ('run_jit(fn=double, specs=specs() + [TensorSpec("z", [8], torch.float32)], golden_fn=golden)', 0),
        ("run_jit(fn=double, specs=specs() + more(), golden_fn=golden)", 0),
        ('run_jit(fn=double, specs=[*specs(), ScalarSpec("z", torch.int32, 3)], golden_fn=golden)', 0),
        ("run_jit(fn=double, specs=[item for item in specs()], golden_fn=golden)", 0),
        (
            'all = specs()\nall.append(TensorSpec("z", [8], torch.float32))\nrun_jit(fn=double, specs=all, golden_fn=golden)',
            0,
        ),
        ("run_jit(fn=double, specs=specs(), golden_fn=golden, golden_data=folder)", 0),
        ("run_jit(fn=double, specs=specs(), golden_fn=golden, golden_data=None)", 1),
        (f"{PARSED}run_jit(fn=double, specs=specs(), golden_fn=golden, golden_data=args.golden_data)", 1),
        (
            PARSED.replace("=str", '=str, default="data"')
            + "run_jit(fn=double, specs=specs(), golden_fn=golden, golden_data=args.golden_data)",
            0,
        ),
        (f"{PARSED}run_jit(fn=double, specs=specs(), golden_fn=golden, golden_data=args.data)", 0),
        (f"{PARSED}run_jit(fn=double, specs=specs(), golden_fn=None if args.quick else golden)", 1),
        (f"{PARSED}run_jit(fn=double, specs=specs(), golden_fn=other if args.quick else golden)", 0),
        ("run_jit(fn=double, specs=specs(), golden_fn=golden, **options)", 0),
        ("run_jit(fn=double, specs=specs(), golden_fn=wrapped(golden))", 0),
        ("run_jit(fn=double, specs=specs(), golden_fn=golden, compile_only=True)", 0),
        ("run_jit(fn=double, specs=specs(), golden_fn=golden, compile_only=args.compile_only)", 1),
        ("try:\n    run_jit(fn=double, specs=specs(), golden_fn=golden)\nexcept KeyError:\n    pass", 0),
        ("with suppress(KeyError):\n    run_jit(fn=double, specs=specs(), golden_fn=golden)", 0),
        ("@with_more\ndef more():\n    return specs()\nrun_jit(fn=double, specs=more(), golden_fn=golden)", 0),
        ("class TensorSpec(Named):\n    pass\nrun_jit(fn=double, specs=specs(), golden_fn=golden)", 0),
    ],
)
def test_specs_of_a_golden_function(call: str, found: int) -> None:
    golden = 'def golden(t):\n    t["y"][:] = t["z"]\n\n'
    assert codes(f"{PLAIN}{golden}{RUN}{call}\n") == ["PTO128"] * found


@pytest.mark.parametrize("params", ["*t", "**t", "*, t"])
def test_golden_functions_that_get_no_dict(params: str) -> None:
    assert codes(f'{PLAIN}def golden({params}):\n    t["y"][:] = t["z"]\n{run("golden")}') == []


def test_many_functions_are_followed_once() -> None:
    def prepare(size: int) -> Work:
        inline = "".join(
            f"@pl.jit.inline\ndef f{at}(x: T, y: T):\n    f{at + 1}(x, y)\n    return f{at + 1}(x, y)\n\n"
            for at in range(size)
        )
        last = f"@pl.jit.inline\ndef f{size}(x: T, y: T):\n    return y\n\n"
        text = inline + last + entry("return f0(x, y)") + run()
        assert codes(text) == []
        return lambda: codes(text)

    check_linear(prepare, 50)


COMPARES = "run_jit(fn=double, specs={}, compare_fn={{{}}})\n"


def compared(keys: str, specs: str = "specs()", before: str = "") -> list[str]:
    text = HEAD + PLAIN + RUN + before + COMPARES.format(specs, keys)
    return [item.message for item in lint_files([PACK], {"run.py": text}, ["PTO137"]).diagnostics]


def test_a_comparison_that_is_not_used() -> None:
    assert compared('"y": close, "x": close') == [
        "`x` is not an output of `double`, so nothing compares it: `is_output` is not set"
    ]
    assert compared('"ys": close') == [
        "`double` has no output `ys`, so that this function is not called; did you mean `y`?"
    ]


@pytest.mark.parametrize(
    ("keys", "specs", "before"),
    [
        ('"y": close', "specs()", ""),
        ('name: close, **{"x": close}', "specs()", ""),
        ('"x": close', "specs() + more()", ""),
        ('"z": close', "specs() + more", "more = [build(name) for name in names]\n"),
        ('"z": close', 'specs() + [TensorSpec("z", [8], torch.float32, is_output=mode)]', ""),
        ('"x": close', "marked(specs())", "def marked(specs):\n    specs[0].is_output = True\n    return specs\n"),
    ],
)
def test_comparisons_that_may_be_used(keys: str, specs: str, before: str) -> None:
    assert compared(keys, specs, before) == []


def test_comparisons_in_a_tree_whose_specs_are_outputs_by_default() -> None:
    golden = """\
from dataclasses import dataclass


@dataclass
class TensorSpec:
    name: str
    shape: list
    dtype: object
    init_value: object = None
    is_output: bool = {}
"""
    text = HEAD + PLAIN + RUN + COMPARES.format("specs()", '"x": close, "*": close')
    for default, expected in (("True", []), ("False", ["PTO137"])):
        files = {"run.py": text, "golden/__init__.py": golden.format(default)}
        assert lint_files([PACK], files, ["PTO137"]).codes() == expected

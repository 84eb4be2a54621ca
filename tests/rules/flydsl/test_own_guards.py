"""FLY207 in a tree that has its own FlyDSL: the conditions under which a name may be absent."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK

OWN = {
    "opschema.toml": "",
    "python/flydsl/__init__.py": "__version__ = '1'\n",
    "python/flydsl/compiler/__init__.py": "",
    "python/flydsl/compiler/jit_argument.py": "class TensorAdaptor:\n    def __init__(self, tensor): ...\n",
    "python/flydsl/expr/__init__.py": "def good(a): ...\n\n\ndef const_expr(a): ...\n",
    "kit/__init__.py": "",
    "kit/flags.py": """
import flydsl

FLAG = flydsl.__version__ >= "2"


class Features:
    later = FLAG

    @property
    def latest(self):
        return self.later
""",
}
PLAIN = """
def element_bits(dtype):
    if dtype not in ("f16", "f32"):
        raise ValueError(f"unsupported {dtype}")
    return 32 if dtype == "f32" else 16


class Layout:
    wide = True
"""
BEFORE = """
import flydsl
from kit import flags


def modern():
    return hasattr(fx, "other")


def tried():
    try:
        return fx.good(1)
    except AttributeError:
        return False


FLAG = hasattr(fx, "other")
FLAG_OF_FUNCTION = modern()
VERSION = flydsl.__version__
LATER = VERSION >= "2"


def later():
    return LATER


def indirectly():
    return flags.FLAG


class Kernel:
    later = LATER
"""


def _lint(run: str, before: str = BEFORE) -> list[str]:
    text = f"{HEAD}{before}\n\ndef run(n, m):\n    {run}\n"
    return [item.message for item in lint_files([PACK], {**OWN, KERNELS_PATH: text}, ["FLY207"]).diagnostics]


@pytest.mark.parametrize(
    "run",
    [
        "fx.bad(1)",
        "if n > 2:\n        fx.bad(1)",
        "if n:\n        pass\n    else:\n        fx.bad(1)",
        "if fx.const_expr(n == 4 and m <= 16):\n        fx.bad(1)",
        "x = fx.bad(1) if n else fx.good(1)",
        "x = n and fx.bad(1) and FLAG",
        "if n:\n        return\n    fx.bad(1)",
        "assert n\n    fx.bad(1)",
        "def inner(op):\n        if op > 1:\n            fx.bad(1)\n    for op in (1, 2):\n        inner(op)",
    ],
)
@pytest.mark.parametrize("before", [PLAIN, BEFORE])
def test_conditions_that_ask_for_no_other_flydsl(run: str, before: str) -> None:
    assert _lint(run, before) == ["this FlyDSL has no `flydsl.expr.bad`"]


@pytest.mark.parametrize("test", ["element_bits(n) <= 16", "unknown(n)", "Layout.wide", "Layout().wide"])
def test_unknown_conditions_in_files_that_ask_for_no_other_flydsl(test: str) -> None:
    run = f"def inner(self):\n        if {test}:\n            fx.bad(1)"
    assert _lint(run, PLAIN) == ["this FlyDSL has no `flydsl.expr.bad`"]
    assert not _lint(run, PLAIN + "from kit import flags\n")
    assert not _lint(run)


@pytest.mark.parametrize(
    "run",
    [
        *(
            f"if {test}:\n        fx.bad(1)"
            for test in (
                *("FLAG", "FLAG_OF_FUNCTION", "modern()", "tried()", "LATER", "n and FLAG", "later()", "indirectly()"),
                *("flags.FLAG", "flags.Features().later", "flags.Features().latest", "Kernel.later", "Kernel().later"),
            )
        ),
        "if VERSION >= '2':\n        fx.bad(1)",
        "if hasattr(fx, 'other'):\n        fx.bad(1)",
        "if 'other' in dir(fx):\n        fx.bad(1)",
        "if not FLAG:\n        fx.good(1)\n    else:\n        fx.bad(1)",
        "if not hasattr(fx, 'other'):\n        return\n    fx.bad(1)",
        "later = hasattr(fx, 'other')\n    if later:\n        fx.bad(1)",
        "def inner(flag):\n        if flag:\n            fx.bad(1)\n    inner(hasattr(fx, 'other'))",
        "x = fx.bad(1) if FLAG else fx.good(1)",
        "x = FLAG and n and fx.bad(1)",
        "x = [fx.bad(i) for i in n if FLAG]",
        "x = sum(fx.bad(i) for i in n if i if LATER)",
        "if 'other' in fx.__dict__:\n        fx.bad(1)",
        "try:\n        fx.bad(1)\n    except AttributeError:\n        pass",
        "if False:\n        fx.bad(1)",
        "print('bad')\n    fx.bad(1)",
        "if not later():\n        return\n    fx.bad(1)",
        "if not indirectly():\n        return\n    fx.bad(1)",
        "assert LATER\n    fx.bad(1)",
        "with suppress(AttributeError):\n        fx.bad(1)",
        "def inner(flag=FLAG):\n        if flag:\n            fx.bad(1)\n    inner()",
        "for flag in (FLAG,):\n        if flag:\n            fx.bad(1)",
        "fx.bad = fx.good\n    fx.bad(1)",
    ],
)
def test_conditions_that_may_ask_for_another_flydsl(run: str) -> None:
    assert not _lint(run)

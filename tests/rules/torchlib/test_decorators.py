"""Registering calls as decorators: those that torch takes for none, and what only looks like one."""

from __future__ import annotations

import pytest

from opschema_cli.testing import fix_files, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """\
import functools
import torch
from torch import Tensor


@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor) -> Tensor:
    return x.clone()


LIB = torch.library.Library("kit", "FRAGMENT")
LIB.define("h(Tensor x) -> Tensor")
"""
FAKE = "def fake(x):\n    return torch.empty_like(x)\n"


OPTIONAL = """\
def reg(op, fn=None):
    if fn is None:
        return functools.partial(reg, op)
    return op.register_fake(fn)


"""
OPTIONAL_HERE = """\
def reg(fn=None):
    if fn is None:
        return reg
    return f.register_fake(fn)


"""


def found(text: str) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"kit/ops.py": HEAD + text}, select=["REG121"])
    return [(linted.text(item.place), item.message.partition(" ")[0]) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("text", "where", "name"),
    [
        (f"@f.register_fake()\n{FAKE}", "f.register_fake()", "`register_fake()`"),
        (f"@f.register_autograd(setup_context=None)\n{FAKE}", "f.register_autograd(setup_context=None)", "`register_autograd()`"),
        (f'{FAKE}LIB.impl("h")(fake)', 'LIB.impl("h")(fake)', "`impl()`"),
        (f'@LIB._register_fake("h")\n{FAKE}', 'LIB._register_fake("h")', "`_register_fake()`"),
    ],
)  # fmt: skip
def test_what_torch_refuses(text: str, where: str, name: str) -> None:
    assert found(text) == [(where, name)]


@pytest.mark.parametrize(
    "text",
    [
        f"@f.register_fake\n{FAKE}",
        f"{FAKE}f.register_fake(fake)",
        f"@f.register_vmap()\n{FAKE}",
        f"@functools.partial(LIB.impl, 'h')\n{FAKE}",
        f"GIVEN = [fake]\n{FAKE}f.register_fake(*GIVEN)",
        f"@LIB.impl(*NAMES)\n{FAKE}",
        f"@reg(f)\n{FAKE}".replace("@", OPTIONAL + "@"),
        f"@reg()\n{FAKE}".replace("@", OPTIONAL_HERE + "@"),
        f"GIVEN = None\n\n\n@f.register_fake(GIVEN)\n{FAKE}",
        f"if torch.cuda.is_available():\n    f = make()\n\n\n@f.register_fake()\n{FAKE}",
        f'{FAKE}with suppress(TypeError):\n    LIB.impl("h")(fake)',
        "with raises(TypeError):\n    @f.register_fake()\n    def fake(x):\n        return x.clone()\n",
        f'{FAKE}with suppress(TypeError): LIB.impl("h")(fake)',
        f'{FAKE}raises(TypeError, lambda: LIB.impl("h")(fake))',
        f'{FAKE}raises(\nTypeError, lambda:\nLIB.impl("h")(fake))',
        "def setup():\n    @f.register_fake()\n    def g(x):\n        return x\n",
        "try:\n    @f.register_fake()\n    def fake(x):\n        return x.clone()\nexcept TypeError:\n    pass\n",
        "class Op:\n    def register_fake(self):\n        return print\n\n\nop = Op()\n\n\n@op.register_fake()\n" + FAKE,
    ],
)  # fmt: skip
def test_what_only_looks_wrong(text: str) -> None:
    assert found(text) == []


def test_the_fix_takes_the_brackets_away() -> None:
    text = f"{HEAD}\n\n@f.register_fake()\n{FAKE}\n\n@f.register_autograd(setup_context=None)\n{FAKE}"
    texts, left = fix_files([PACK], {"kit/ops.py": text}, select=["REG121"])
    assert texts["kit/ops.py"] == text.replace("register_fake()", "register_fake")
    assert [item.code for item in left.diagnostics] == ["REG121"]


def test_no_fix_where_more_than_the_brackets_would_go() -> None:
    text = f"{HEAD}\n\n@(f.register_fake)()\n{FAKE}"
    linted = lint_files([PACK], {"kit/ops.py": text}, select=["REG121"])
    assert all(item.fix is None for item in linted.diagnostics)

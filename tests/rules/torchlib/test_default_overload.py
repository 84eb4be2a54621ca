"""`.default` in the name for which something is registered: refused as a string, taken as the overload itself."""

from __future__ import annotations

import pytest

from opschema_cli.testing import fix_files, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = """\
import torch

torch.library.define("kit::f", "(Tensor x) -> Tensor")
LIB = torch.library.Library("kit", "FRAGMENT")
NAME = "kit::f.default"
"""
FAKE = "def fake(x):\n    return torch.empty_like(x)\n"


def found(text: str) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"kit/ops.py": HEAD + text}, select=["REG120"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f'@torch.library.register_fake("kit::f.default")\n{FAKE}', '"kit::f.default"'),
        (f'@torch.library.impl("kit::f.default", "cpu")\n{FAKE}', '"kit::f.default"'),
        (f'{FAKE}LIB.impl("f.default", fake, "CPU")', '"f.default"'),
        (f'{FAKE}torch.library.register_autograd("kit::f.default", fake)', '"kit::f.default"'),
    ],
)
def test_a_string_is_refused(text: str, where: str) -> None:
    assert found(text) == [(where, "`default` cannot name an overload, so that this raises: write `kit::f`")]


@pytest.mark.parametrize(
    "text",
    [
        f"@torch.library.register_fake(torch.ops.kit.f.default)\n{FAKE}",
        f'@torch.library.register_fake("kit::f")\n{FAKE}',
        "torch.ops.kit.f.default(torch.ones(1))",
        f'torch.library.define("kit::g.default_scale", "(Tensor x) -> Tensor")\n'
        f'@torch.library.register_fake("kit::g.default_scale")\n{FAKE}',
    ],
)
def test_what_only_looks_so(text: str) -> None:
    assert found(text) == []


def test_the_fix_drops_it() -> None:
    text = HEAD + f'@torch.library.register_fake("kit::f.default")\n{FAKE}'
    texts, left = fix_files([PACK], {"kit/ops.py": text}, select=["REG120"])
    assert texts == {"kit/ops.py": HEAD + f'@torch.library.register_fake("kit::f")\n{FAKE}'}
    assert left.diagnostics == []

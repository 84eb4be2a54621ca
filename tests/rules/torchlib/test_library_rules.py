"""How libraries are made and used: what is refused, at its characters, and what only looks wrong."""

from __future__ import annotations

import pytest

from opschema_cli.testing import fix_files, lint_files
from opschema_rules.torchlib.pack import PACK

HEAD = "import torch\nfrom torch.library import Library\n\n"
LIB = 'lib = Library("kit", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n\n\n'


def found(text: str) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"kit/ops.py": HEAD + text}, select=["REG119"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('lib = Library("kit", "def")', '"def"', "`def` is not a kind of library; torch knows `DEF`, `IMPL` and `FRAGMENT`"),
        ('lib = Library("kit")', 'Library("kit")', "`Library` lacks its kind: `DEF`, `IMPL` or `FRAGMENT`"),
        ('lib = Library("prim", "DEF")', '"prim"', "the namespace `prim` is torch's own"),
        ('lib = Library("kit", "DEF", "CPU")', '"CPU"', "a library of kind `DEF` takes no dispatch key; give it to `impl()`"),
        ('lib = Library("kit", "IMPL", "cuda")', '"cuda"', "`cuda` is not a dispatch key; torch knows `CUDA`"),
        (
            'lib = Library("kit", "IMPL")\nlib.impl("other::f", print, "CPU")',
            '"other::f"',
            "this library is of the namespace `kit`, and takes no name of `other`",
        ),
        (
            'NS = "kit"\nlib = Library(NS, "IMPL")\nlib.define("f(Tensor x) -> Tensor")',
            'lib.define("f(Tensor x) -> Tensor")',
            "a library of kind `IMPL` defines no operators; make one of kind `FRAGMENT` for that",
        ),
        (
            'lib = Library("kit", "IMPL")\n\n\ndef setup():\n    lib.define("f(Tensor x) -> Tensor")',
            'lib.define("f(Tensor x) -> Tensor")',
            "a library of kind `IMPL` defines no operators; make one of kind `FRAGMENT` for that",
        ),
        (
            'lib = Library("kit", "IMPL")\nlib.impl("f", print, "AutogradCUAD")',
            '"AutogradCUAD"',
            "`AutogradCUAD` is not a dispatch key; did you mean `AutogradCUDA`?",
        ),
        (
            LIB + '@torch.library.impl(lib, "f", "cpu")\ndef f(x):\n    return x',
            '"cpu"',
            "`cpu` is not a dispatch key; torch knows `CPU`",
        ),
        (
            'lib = Library("kit", "IMPL")\nlib.impl("f", "CPU", print)',
            '"CPU"',
            "`impl()` takes the function before the dispatch key, and is passed a string for it",
        ),
    ],
)  # fmt: skip
def test_what_torch_refuses(text: str, where: str, message: str) -> None:
    assert found(text) == [(where, message)]


@pytest.mark.parametrize(
    "text",
    [
        'lib = Library("prim", "IMPL", "CPU")',
        'lib = Library("kit", KIND)',
        LIB + '@torch.library.impl(lib, "f", "CPU")\ndef f(x):\n    return x',
        LIB + '@torch.library.impl(lib, "f")\ndef f(x):\n    return x',
        '@torch.library.impl("kit::f", "cpu")\ndef f(x):\n    return x',
        '@torch.library.impl("kit::f", ("cpu", "cuda"))\ndef f(x):\n    return x',
        'lib = given()\n\n\n@torch.library.impl(lib, "f", "cpu")\ndef f(x):\n    return x',
        'lib = Library(*("kit", "DEF"))',
        'import os\nif os.name:\n    lib = Library("kit", "DEF")\nelse:\n    lib = Library("kit", "DEF")',
        'try:\n    lib = Library("kit", "DEF")\nexcept RuntimeError:\n    lib = Library("kit", "DEF")',
        'def one():\n    return Library("kit", "DEF")\n\n\ndef two():\n    return Library("kit", "DEF")',
        'lib = Library("kit", "IMPL")\nlib = Library("kit", "FRAGMENT")\nlib.define("f(Tensor x) -> Tensor")',
        'lib = Library("kit", "IMPL")\n\n\ndef define(lib):\n    lib.define("f(Tensor x) -> Tensor")',
        'class Library:\n    def __init__(self, name, kind):\n        self.name = name\n\n\nlib = Library("kit", "shared")',
        'lib = Library("kit", "IMPL")\nlib.impl("f", print, "Sparse" + "CUDA")',
        '@torch.library.impl("kit::f", "cuda")\ndef f(x):\n    return x\n\n\nlib = Library("kit", "IMPL")',
        'lib = Library("kit", "IMPL")\nlib.impl("f", print, "AutogradMLU")  # of a vendor\'s torch',
        '@torch.library.impl("kit::f", "SparseNPU")\ndef f(x):\n    return x',
        'import pytest\nlib = Library("kit", "IMPL")\nwith pytest.raises(RuntimeError):\n    lib.impl("f", print, "Tile")',
        'import pytest\nwith pytest.raises(RuntimeError):\n    torch.library.impl("kit::f", "Tile", print)',
        'import pytest\nwith pytest.raises(ValueError):\n    Library("kit", "def")',
        'lib = Library("kit", "IMPL")\ntry:\n    lib.impl("f", print, "Tile")\nexcept RuntimeError:\n    pass',
    ],
)
def test_what_only_looks_wrong(text: str) -> None:
    assert found(text) == []


def test_fixes() -> None:
    text = HEAD + "lib = Library('kit', 'def')\nmore = Library('kit', 'DEF')\nlib.impl('f', print, 'cuda')\n"
    fixed, _ = fix_files([PACK], {"kit/ops.py": text}, select=["REG119"])
    assert fixed["kit/ops.py"] == HEAD + (
        "lib = Library('kit', 'DEF')\nmore = Library('kit', 'FRAGMENT')\nlib.impl('f', print, 'CUDA')\n"
    )


SCOPED = """
with torch.library.{0}("kit", "DEF") as lib:
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")

with torch.library.{0}("kit", "DEF") as lib:
    lib.define("f(Tensor x, int n) -> Tensor")
    lib.impl("f", lambda x, {1}: x + 1, "CPU")
"""


def test_an_operator_of_a_scoped_library_ends_with_it() -> None:
    def codes(kind: str, params: str) -> list[str]:
        return lint_files([PACK], {"kit.py": HEAD + SCOPED.format(kind, params)}, ["REG113", "REG202"]).codes()

    assert codes("_scoped_library", "n") == []
    assert codes("_scoped_library", "n, k") == ["REG202", "REG202"]
    assert "REG113" in codes("Library", "n")


ENDED = """
from torch import Tensor

lib = Library("kit", "DEF")
lib.define("f(Tensor x) -> Tensor")
{0}
other = Library("kit", "DEF")
other.define("f(Tensor x, int n) -> Tensor")
other.impl("f", lambda x, n: x + n, "CPU")
"""


@pytest.mark.parametrize(
    ("ends", "expected"),
    [("lib._destroy()", []), ("del lib", []), ("del Tensor", ["REG113", "REG119", "REG202"])],
)
def test_a_library_that_is_destroyed_before_the_next(ends: str, expected: list[str]) -> None:
    linted = lint_files([PACK], {"kit.py": HEAD + ENDED.format(ends)}, ["REG113", "REG119", "REG202"])
    assert sorted(linted.codes()) == expected

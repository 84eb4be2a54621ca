"""FLY209: sizes of tensors that are constants of their module."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.pack import PACK

MODULE = """\
{constants}


@flyc.kernel
def scale(A: fx.Tensor):
    print(A)


@flyc.jit
def launch(A: fx.Tensor):
{before}    scale(A).launch(grid={grid}, block=(BLOCK, 1, 1))


A = {tensor}
"""


def lint(
    constants: str = "M, BLOCK = 4096, 128",
    grid: str = "(M // BLOCK, 1, 1)",
    tensor: str = "torch.randn(M, 16)",
    before: str = "",
    version: str = "0.4.2",
) -> Linted:
    toml = ("toml", f'[flydsl]\nversion = "{version}"\n' if version else "")
    text = MODULE.format(constants=constants, grid=grid, tensor=tensor, before=before)
    return lint_files([PACK], example_files([toml, ("python", text)]), ["FLY209"])


@pytest.mark.parametrize(
    ("version", "severity", "effect"),
    [
        (
            "0.1.8",
            Severity.WARNING,
            "the cache key does not have it, so that after an edit the artifact of the old size runs",
        ),
        ("0.2.0", Severity.INFO, "the artifact is for this size only"),
        ("", Severity.INFO, "the artifact is for this size only"),
    ],
)
def test_what_becomes_of_it_in_each_release(version: str, severity: Severity, effect: str) -> None:
    linted = lint(version=version)
    (found,) = linted.diagnostics
    assert found.message == (
        f"`M`, a constant of the module and the size of a tensor, is baked into `launch`: {effect}; make it a parameter"
    )
    assert found.severity is severity
    assert linted.text(found.place) == "M"
    assert [(linted.text(item.place), item.message) for item in found.related] == [
        ("M", "the constant"),
        ("M", "the size of a tensor"),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"grid": "((M + BLOCK - 1) // BLOCK, 1, 1)"},
        {"grid": "(blocks, 1, 1)", "before": "    blocks = M // BLOCK\n"},
        {"tensor": "torch.zeros((16, M), dtype=torch.float16)"},
        {"constants": "M = 2 ** 12\nBLOCK = 128"},
    ],
)
def test_ways_to_write_it(changed: dict[str, str]) -> None:
    assert lint(**changed).codes() == ["FLY209"]


@pytest.mark.parametrize(
    "changed",
    [
        {"grid": "(1, 1, 1)"},
        {"grid": "(M, 1, 1)"},
        {"grid": "(M // BLOCK, BLOCK // M, 1)"},
        {"tensor": "torch.randn(4096, 16)"},
        {"tensor": "torch.randn(M * 2, 16)"},
        {"tensor": "numpy.zeros(M)"},
        {"constants": "M, BLOCK = size(), 128"},
        {"constants": "M, BLOCK = 4096.0, 128"},
        {"constants": "M, BLOCK = 4096, 128\nM = 8192"},
        {"constants": "from sizes import M\n\nBLOCK = 128"},
        {"before": "    M = 512\n"},
        {"tensor": "(lambda M: torch.randn(16))(1)"},
    ],
)
def test_what_is_no_extent_or_not_known(changed: dict[str, str]) -> None:
    assert not lint(**changed).diagnostics

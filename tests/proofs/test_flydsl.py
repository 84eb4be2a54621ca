"""The fixes of the pack `flydsl`, proved by the FlyDSL that `OPSCHEMA_FLYDSL` names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from packaging.version import Version

from opschema_cli.lint.rule import Rule
from opschema_cli.proof import Case, Files, fix_cases, windows_lines
from opschema_rules.flydsl import proofs
from opschema_rules.flydsl.pack import PACK
from tests.proofs.by_rule import complaints_by_rule
from tests.proofs.flydsl_oracle import observe
from tests.proofs.python_variants import python_variants
from tests.rules.flydsl.key_oracle import RELEASES, release_of

_DESCRIBED = """\
import torch
import flydsl.compiler as flyc
import flydsl.expr as fx
from flydsl.expr import buffer_ops
from flydsl.expr.typing import T


@flyc.kernel
def copy(A: fx.Tensor, B: fx.Tensor):
    a = buffer_ops.create_buffer_resource(A, max_size=False)
    b = buffer_ops.create_buffer_resource(B, max_size=False, num_records_bytes=64)
    buffer_ops.buffer_store(buffer_ops.buffer_load(a, fx.Int32(0), vec_width=1, dtype=T.f32), b, fx.Int32(0))
"""

FIXABLE = [pytest.param(rule, id=f"{rule.code}-{rule.name}") for rule in PACK.rules if rule.fixable]


def _variants(files: Files) -> Iterator[Files]:
    yield from windows_lines(files)
    if os.environ.get("OPSCHEMA_SLOW"):
        yield from python_variants(files)


@cache
def _cases() -> dict[str, list[Case]]:
    return {rule.code: list(fix_cases(PACK, rule, _variants)) for rule in PACK.rules if rule.fixable}


@cache
def _complaints(folder: Path) -> dict[str, list[str]]:
    """The errors of FlyDSL after the fixes of each rule."""
    same = {rule.code for rule in PACK.rules if rule.proof == proofs.SAME}
    return complaints_by_rule(_cases(), partial(observe, folder), cured=_cases().keys() - same, same=same)


@pytest.mark.parametrize("rule", FIXABLE)
def test_every_fix_names_its_proof(rule: Rule) -> None:
    assert rule.proof in (proofs.TRACED, proofs.SAME)
    assert any(case.cures for case in _cases()[rule.code]), "no Bad example has a fix"


@pytest.mark.parametrize("folder", RELEASES)
@pytest.mark.parametrize("rule", FIXABLE)
def test_fixes_are_proved(rule: Rule, folder: Path) -> None:
    assert _complaints(folder)[rule.code] == []


@pytest.mark.parametrize("folder", RELEASES)
def test_a_resource_finds_no_size_in_a_tensor(folder: Path) -> None:
    if release_of(folder) >= Version("0.2.5"):
        pytest.skip("this FlyDSL has no `buffer_ops`")
    (seen,) = observe(folder, [{"kernels.py": _DESCRIBED}])
    assert seen["launch_copy described"].result == str([2**32 - 1, 64])

"""Programs with launchers in attributes, tuples and calls of `flyc.jit`, and that FlyDSL itself says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, HEAD, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.key_oracle import RELEASES
from tests.rules.flydsl.programs import FAULTS, RIGHT
from tests.rules.flydsl.test_launches_against_flydsl import RULES
from tests.rules.flydsl.trace_oracle import errors


def _codes(text: str) -> list[str]:
    return lint_files([PACK], {**BASE_FILES, KERNELS_PATH: HEAD + text}, RULES).codes()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported(name: str) -> None:
    code, text = FAULTS[name]
    assert _codes(text) == [code]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_silent(name: str) -> None:
    assert _codes(RIGHT[name]) == []


@pytest.mark.parametrize("folder", RELEASES)
def test_flydsl_says_the_same(folder: Path) -> None:
    wrong = errors(folder, [HEAD + text for _, text in FAULTS.values()])
    right = errors(folder, [HEAD + text for text in RIGHT.values()])
    assert [name for name, error in zip(FAULTS, wrong, strict=True) if not error] == []
    assert [(name, error) for name, error in zip(RIGHT, right, strict=True) if error] == []

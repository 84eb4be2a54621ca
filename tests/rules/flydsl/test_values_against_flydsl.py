"""Each small program with values of FlyDSL's types: what the rules say, and that FlyDSL itself says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.version import Version

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.key_oracle import RELEASES, release_of
from tests.rules.flydsl.launch_cases import Case
from tests.rules.flydsl.trace_oracle import errors_apart
from tests.rules.flydsl.value_cases import VALUES

RULES = ["FLY228", "FLY231", "FLY233", "FLY234", "FLY235", "FLY236", "FLY237", "FLY238"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in VALUES])
def test_what_the_rules_say(case: Case) -> None:
    linted = lint_files([PACK], {**BASE_FILES, KERNELS_PATH: case.text()}, RULES)
    assert linted.codes() == list(case.codes), [item.message for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (
            "x = A.shape[0] * 2",
            "write `fx.get_scalar(A.shape[0])`, or `fx.get_scalar(A.shape)` if the tensor has one dimension",
        ),
        ("rows, columns = A.shape\nx = rows * 2", "write `fx.get_scalar(rows)`"),
        ("for i in fx.range_constexpr(A.shape[1]):\n    x = n + i", "pass the size as an `fx.Constexpr`"),
    ],
)
def test_what_to_write_for_an_item_of_a_shape(body: str, advice: str) -> None:
    (found,) = lint_files([PACK], {**BASE_FILES, KERNELS_PATH: Case(body).text()}, ["FLY231"]).diagnostics
    assert found.message.rpartition("; ")[2] == advice


@pytest.mark.parametrize("folder", RELEASES)
def test_flydsl_says_the_same(folder: Path) -> None:
    release = release_of(folder)
    if release < Version("0.2.0"):
        pytest.skip("0.1.8 has none of what all programs use")
    plain, *found = errors_apart(folder, [case.text() for case in (Case(), *VALUES)])
    if plain:
        pytest.skip(f"this FlyDSL traces nothing here: {plain}")
    differ = [
        (case.id, error) for case, error in zip(VALUES, found, strict=True) if bool(error) != case.raises(release)
    ]
    assert differ == []

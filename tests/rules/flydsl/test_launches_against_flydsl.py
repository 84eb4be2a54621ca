"""Each small program with a launch: what the rules say, and that FlyDSL itself says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.flydsl.examples import BASE_FILES, KERNELS_PATH
from opschema_rules.flydsl.pack import PACK
from tests.rules.flydsl.code_cases import CODE
from tests.rules.flydsl.dead_cases import UNREACHED
from tests.rules.flydsl.key_oracle import RELEASES, release_of
from tests.rules.flydsl.launch_cases import ALWAYS_TRUE, BLOCKS, CALLS, FINE, HASHED, HELPERS, KINDS, LATE, Case
from tests.rules.flydsl.trace_oracle import errors
from tests.rules.flydsl.usage_cases import USAGES

CASES = [*LATE, *ALWAYS_TRUE, *FINE, *CALLS, *KINDS, *HELPERS, *BLOCKS, *UNREACHED, *USAGES, *CODE]
RULES = [
    f"FLY{number}"
    for number in (211, 213, 214, 215, 216, 217, 218, 219, 221, 222, 223, 224, 229, 230, 231, 232, 237, 240, 241, 242)
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_what_the_rules_say(case: Case) -> None:
    select = RULES if "FLY212" not in case.codes else [*RULES, "FLY212"]
    linted = lint_files([PACK], {**BASE_FILES, KERNELS_PATH: case.text()}, select)
    assert sorted(linted.codes()) == sorted(case.codes), [item.message for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("contract", "reported"),
    [
        ('[flydsl]\nversion = "0.1.8"\n', True),
        ('[flydsl]\nversion = "0.4.2"\n', True),
        ('[flydsl]\nversion = "0.5.0"\n', False),
        ("", False),
    ],
)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in HASHED])
def test_what_a_key_cannot_hold(case: Case, contract: str, reported: bool) -> None:
    files = {**BASE_FILES, "opschema.toml": contract, KERNELS_PATH: case.text()}
    assert lint_files([PACK], files, RULES).codes() == list(case.codes) * reported


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("launch(torch.zeros(4, 4).half(), 3)\n    launch(torch.ones(4, 4).half(), 4)", 1),
        ("launch(torch.zeros(4, 4).half(), 3)\n    launch(torch.zeros(4, 4).float(), 3)", 0),
        ("launch(torch.zeros(4, 4).half(), 3)\n    launch(given, 3)", 0),
        ("with pytest.raises(TypeError):\n        launch(torch.zeros(4, 4).half(), 3)", 0),
        ("launch(torch.zeros(4, 4, dtype=given), 3)", 0),
    ],
)
def test_elements_have_a_type_only_if_all_callers_pass_it(host: str, found: int) -> None:
    text = Case("x = 0.0\nfor i in range(n):\n    x = A[i, 0]", host=host).text()
    assert lint_files([PACK], {**BASE_FILES, KERNELS_PATH: text}, ["FLY223"]).codes() == ["FLY223"] * found


def test_the_first_release_leaves_while_to_python() -> None:
    files = {**BASE_FILES, "opschema.toml": '[flydsl]\nversion = "0.1.8"\n'}
    texts = [Case("while n > 2:\n    x = n\n    break").text(), Case("while n > 2:\n    y = n\nx = y").text()]
    assert [lint_files([PACK], {**files, KERNELS_PATH: text}, RULES).codes() for text in texts] == [[], []]


@pytest.mark.parametrize("folder", RELEASES)
def test_flydsl_says_the_same(folder: Path) -> None:
    cases, release = [*CASES, *HASHED], release_of(folder)
    plain, *found = errors(folder, [case.text() for case in (Case(), *cases)])
    if plain:
        pytest.skip(f"this FlyDSL traces nothing here: {plain}")
    differ = [(case.id, error) for case, error in zip(cases, found, strict=True) if bool(error) != case.raises(release)]
    assert differ == []

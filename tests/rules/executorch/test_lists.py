"""Operator lists that are sound, and those that ExecuTorch's code generator refuses; a corpus test asks the generator itself."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import fix_files, lint_files
from opschema_rules.executorch.pack import PACK
from tests.rules.executorch.list_cases import ADD, OWN, REFUSED, SILENT, SOUND, SPECIAL

Found = dict[str, list[tuple[str, Severity]]]

TEXTS = {**SOUND, **REFUSED, **{name: text for name, (text, _) in SILENT.items()}}


@pytest.fixture(scope="module")
def found() -> Found:
    """The findings in the list of each case; all are read in one run, and their schemas not compared with each other."""
    codes = [rule.code for rule in PACK.rules if rule.code < "EXE4"]
    linted = lint_files(PACK, {f"{name}/functions.yaml": text for name, text in TEXTS.items()}, select=codes)
    by_case: Found = {name: [] for name in TEXTS}
    for item in linted.diagnostics:
        by_case[item.place.path.partition("/")[0]].append((item.code, item.severity))
    return by_case


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_list(found: Found, name: str) -> None:
    assert [code for code, severity in found[name] if severity is Severity.ERROR] == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_list_that_the_code_generator_refuses(found: Found, name: str) -> None:
    assert any(severity is Severity.ERROR for _, severity in found[name])


@pytest.mark.parametrize("name", SILENT)
def test_a_list_that_has_another_effect(found: Found, name: str) -> None:
    assert {code for code, _ in found[name]} == {SILENT[name][1]}


@pytest.mark.parametrize(
    ("before", "after", "unsafe"),
    [
        (ADD.replace("kernels:", "kernel:") + OWN, ADD + OWN, False),
        (OWN.replace(", *, ", ",*, "), OWN, False),
        (SPECIAL.replace("self: [T0, D0]", "self: [T00, D0]"), SPECIAL, True),
    ],
)
def test_a_fix(before: str, after: str, unsafe: bool) -> None:
    texts, linted = fix_files(PACK, {"functions.yaml": before}, unsafe=unsafe)
    assert (texts, linted.codes()) == ({"functions.yaml": after}, [])


@pytest.mark.parametrize(
    "text",
    [
        "- op: replace.all\n  path: /spec\n",
        "- op: add\n  kernels: 3\n",
        "- func: aten::add\n  inherits: aten::add\n  type_alias:\n    T0: [Bool]\n  type_constraint:\n  - self: T0\n",
        "kernels:\n  - kernel_name: add\n    op: add.out\n",
    ],
    ids=["a patch", "no kernels", "the edge dialect", "a mapping"],
)
def test_yaml_of_others_is_not_read(text: str) -> None:
    assert lint_files(PACK, {"ops.yaml": text}).codes() == []


def test_lists_of_tests_are_read_on_request() -> None:
    files = {"tests/functions.yaml": ADD + ADD, "functions.yaml": OWN}
    assert lint_files(PACK, files).codes() == []
    assert lint_files(PACK, {**files, "opschema.toml": "[executorch]\ntests = true\n"}).codes() == ["EXE105"]

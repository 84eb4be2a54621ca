"""Every rule's page: its Bad examples are found, its Good ones are not, its fixes cure."""

from __future__ import annotations

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.testing import check_examples
from opschema_rules.tileops.pack import PACK as TILEOPS


@pytest.mark.parametrize("rule", TILEOPS.rules, ids=lambda rule: f"{rule.code}-{rule.name}")
def test_examples_hold(rule: Rule) -> None:
    check_examples(TILEOPS, rule)

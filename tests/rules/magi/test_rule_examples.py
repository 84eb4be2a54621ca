"""The examples of the rules' pages."""

from __future__ import annotations

import pytest

from opschema_cli.lint.rule import Rule
from opschema_cli.testing import check_examples
from opschema_rules.magi.pack import PACK


@pytest.mark.parametrize("rule", PACK.rules, ids=lambda item: item.code)
def test_examples_hold(rule: Rule) -> None:
    check_examples(PACK, rule)

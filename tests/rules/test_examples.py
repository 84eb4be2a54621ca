"""Every rule's page: its Bad examples are found, its Good ones are not, its fixes cure."""

from __future__ import annotations

import pytest

from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule
from opschema_cli.testing import check_examples
from opschema_rules.aten.pack import PACK as ATEN
from opschema_rules.bindings.pack import PACK as BINDINGS
from opschema_rules.executorch.pack import PACK as EXECUTORCH
from opschema_rules.flydsl.pack import PACK as FLYDSL
from opschema_rules.magi.pack import PACK as MAGI
from opschema_rules.paddle.pack import PACK as PADDLE
from opschema_rules.pypto.pack import PACK as PYPTO
from opschema_rules.tileops.pack import PACK as TILEOPS
from opschema_rules.torchlib.pack import PACK as TORCHLIB

PAGES = [
    pytest.param(pack, rule, id=f"{rule.code}-{rule.name}")
    for pack in (TILEOPS, TORCHLIB, MAGI, ATEN, PYPTO, FLYDSL, EXECUTORCH, PADDLE, BINDINGS)
    for rule in pack.rules
]


@pytest.mark.parametrize(("pack", "rule"), PAGES)
def test_examples_hold(pack: Pack, rule: Rule) -> None:
    check_examples(pack, rule)

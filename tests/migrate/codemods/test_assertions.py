from __future__ import annotations

import libcst as cst
import pytest

from opschema_cli.migrate.codemods.assertions import replace_assertion
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import rewritten


@pytest.mark.parametrize(
    ("before", "message", "after"),
    [
        ("assert a >= 1, 'old'  # why", "'new'", "assert b, 'new'  # why"),
        ("assert a >= 1, 'old'", None, "assert b, 'old'"),
        ("assert a >= 1", "'new'", "assert b, 'new'"),
        ("assert(a >= 1), ('old')", "'new'", "assert(b), 'new'"),
        ("assert (\n    a\n    >= 1  # why\n), (\n    'old'\n)", "'new'", "assert b, 'new'"),
        ("x = 1; assert a; y = 1", "'new'", "x = 1; assert b, 'new'; y = 1"),
    ],
)
def test_condition_and_message(before: str, message: str | None, after: str) -> None:
    def mark(rewrite: Rewrite) -> None:
        statement = next(node for node in rewrite.tree.nodes if isinstance(node, cst.Assert))
        replace_assertion(rewrite, statement, "b", message)

    assert rewritten(before + "\n", mark) == after + "\n"

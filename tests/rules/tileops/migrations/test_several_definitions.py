"""A method that its class defines several times, under conditions or as overloads: all or none has to change."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_rules.tileops.pack import PACK
from tests.rules.tileops.migrations.drafts import files, migrate

MIGRATIONS = {item.name: item for item in PACK.all_migrations()}
CONDITIONAL = """\
class ExampleFwdOp(Op):
    if torch.cuda.is_available():
        def __init__(self, n: int, eps: float = 0.5):
            self.n = n

        def forward(self, x):
            return x
    else:
        def __init__(self, n: int, eps: float = 0.5):
            self.n = n + 1

        def forward(self, x):
            return -x
"""
OVERLOADED = """\
class ExampleFwdOp(Op):
    @overload
    def __init__(self, n: int) -> None: ...
    @overload
    def __init__(self, n: str) -> None: ...
    def __init__(self, n):
        self.n = n

    @overload
    def forward(self, x: int) -> int: ...
    @overload
    def forward(self, x: float) -> float: ...
    def forward(self, x):
        return x
"""
PARAMS = "signature:\n  params:\n    n: {type: int, default: 4}\n    eps: {type: float, default: 0.5}\n"


@pytest.mark.parametrize("code", [CONDITIONAL, OVERLOADED])
@pytest.mark.parametrize(
    ("migration", "options", "method"),
    [
        (MIGRATIONS["rename-input"], {"old": "x", "new": "input"}, "forward"),
        (MIGRATIONS["drop-param"], {"param": "n", "value": "4"}, "__init__"),
    ],
)
def test_a_method_that_is_defined_several_times(
    code: str, migration: Migration, options: dict[str, str], method: str
) -> None:
    done = migrate(files(("yaml", PARAMS), ("python", code)), migration, **options)
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]
    assert f"`{method}()` is defined several times" in done.said[0][2]


def test_an_overloaded_method_keeps_its_defaults() -> None:
    done = migrate(
        files(("yaml", PARAMS), ("python", OVERLOADED)),
        MIGRATIONS["sync-signature"],
        **{"from": "yaml", "what": "defaults"},
    )
    assert done.texts == {}
    assert [said.rpartition("because ")[2] for _, _, said in done.said] == ["it is defined several times"]

"""Which rules run: the configuration's choice, the command line's, and what is left of both without plugins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from opschema_cli.config import Config
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.settings import Settings, resolve_settings
from tests.toypack import PACK

TOYS = Registry((PACK,))
NO_TOYS = Registry((), partial=True)


def toys(settings: Settings) -> list[str]:
    """The rules of the toy pack that run, of the first hundred."""
    return sorted(code for code in settings.enabled if code.startswith("TOY1"))


IGNORING = Config(ignore=["TOY101", "loud-doc"], per_file_ignores={"*.yaml": ["TOY104"]})


@pytest.mark.parametrize(
    ("select", "runs"),
    [
        ([], ["TOY103", "TOY104"]),
        (["TOY101"], ["TOY101"]),
        (["toy101"], ["TOY101"]),
        (["missing-doc"], ["TOY101"]),
        (["TOY102", "TOY103"], ["TOY102", "TOY103"]),
        (["TOY1"], ["TOY103", "TOY104"]),
        (["TOY"], ["TOY103", "TOY104"]),
        (["ALL"], ["TOY103", "TOY104"]),
        (["ALL", "loud-doc"], ["TOY102", "TOY103", "TOY104"]),
    ],
)
def test_a_code_or_name_on_the_command_line_runs_though_the_configuration_ignores_it(
    select: list[str], runs: list[str]
) -> None:
    assert toys(resolve_settings(IGNORING, TOYS, select=select)) == runs


def test_a_prefix_that_one_rule_has_is_still_a_prefix() -> None:
    only = Registry((type(PACK)("one", "one rule", PACK.detect, PACK.load, PACK.rules[:1]),))
    assert toys(resolve_settings(Config(ignore=["TOY101"]), only, select=["TOY10"])) == []


def test_what_the_command_line_ignores_does_not_run_though_it_is_selected_there() -> None:
    assert toys(resolve_settings(IGNORING, TOYS, select=["TOY101", "TOY103"], ignore=["TOY101"])) == ["TOY103"]
    assert toys(resolve_settings(Config(), TOYS, select=["TOY101"], ignore=["TOY"])) == []


def test_a_selection_leaves_per_file_ignores_in_force() -> None:
    settings = resolve_settings(IGNORING, TOYS, select=["TOY104"])
    assert settings.ignored_in("a.toy.yaml", "TOY104")


NAMING_TOYS = Config(
    select=["TOY", "OPS"],
    ignore=["missing-doc"],
    per_file_ignores={"*.yaml": ["TOY104", "OPS102"]},
    severity={"TOY": "info", "OPS102": "warning"},
    rules={"known-dtype": {"allowed": ["f8"]}},
    pack_options={"toy": {"fail": "load"}},
)


def test_without_plugins_the_configuration_may_name_what_is_theirs() -> None:
    settings = resolve_settings(NAMING_TOYS, NO_TOYS)
    assert settings.enabled == {
        "OPS101",
        "OPS102",
        "OPS103",
        "OPS104",
        "OPS105",
        "OPS106",
        "OPS107",
        "OPS201",
        "OPS202",
        "OPS900",
        "YML001",
    }
    assert settings.severity["OPS102"].value == "warning"
    assert settings.ignored_in("a.yaml", "OPS102")
    with pytest.raises(OpschemaError, match="no rule is called `TOY`"):
        resolve_settings(NAMING_TOYS, Registry(()))


@pytest.mark.parametrize("option", ["select", "ignore"])
def test_without_plugins_the_command_line_may_not(option: str) -> None:
    with pytest.raises(OpschemaError, match=f"{option}: no rule is called `TOY101`"):
        resolve_settings(Config(), NO_TOYS, **{option: ["TOY101"]})  # type: ignore[arg-type]


def test_without_plugins_a_suppression_may_name_their_rules() -> None:
    assert "SUP002" in resolve_settings(Config(), TOYS).enabled
    assert "SUP002" not in resolve_settings(Config(), NO_TOYS).enabled


def staged(config: Config, *select: str, preview: bool = False) -> list[str]:
    rules = tuple(replace(rule, stage="preview" if rule.code == "TOY101" else "stable") for rule in PACK.rules)
    registry = Registry((type(PACK)("staged", "rules of two stages", PACK.detect, PACK.load, rules),))
    return toys(resolve_settings(config, registry, select=select, preview=preview))


@pytest.mark.parametrize(
    ("config", "select", "preview", "runs"),
    [
        (Config(), [], False, False),
        (Config(), ["ALL"], False, False),
        (Config(), ["TOY1"], False, False),
        (Config(), ["TOY101"], False, True),
        (Config(), ["missing-doc"], False, True),
        (Config(select=["TOY101"]), [], False, True),
        (Config(select=["TOY101"]), ["TOY"], False, False),
        (Config(preview=True), [], False, True),
        (Config(), [], True, True),
        (Config(ignore=["TOY101"]), [], True, False),
    ],
)
def test_preview_rules_run_where_they_are_asked_for(
    config: Config, select: list[str], preview: bool, runs: bool
) -> None:
    assert ("TOY101" in staged(config, *select, preview=preview)) is runs
    assert "TOY103" in staged(Config(), preview=preview)

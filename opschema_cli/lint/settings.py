"""The settings of one lint run: configuration and command line, resolved to rule codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from opschema_cli.config import KEYS, Config, check_keys, convert
from opschema_cli.errors import OpschemaError
from opschema_cli.gitignore import IgnoreSpec, glob_spec
from opschema_cli.lint.builtin import UNCHECKED, UNKNOWN
from opschema_cli.lint.collisions import rules_of
from opschema_cli.lint.diagnostic import Severity
from opschema_cli.lint.registry import Registry


class Settings(msgspec.Struct, frozen=True):
    """The selected rules and the severities of findings. ``enabled`` are the ``selected`` rules and those on unchecked files."""

    enabled: frozenset[str]
    severity: Mapping[str, Severity]
    per_file: Sequence[tuple[IgnoreSpec, frozenset[str]]]
    fail_on: Severity
    pack_options: Mapping[str, object]
    rule_options: Mapping[str, object]
    overrides: Mapping[str, Severity] = msgspec.field(default_factory=dict)
    selected: frozenset[str] = frozenset()
    dropped: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    """The codes that per-file ignores drop, for each requested path."""

    def ignored_in(self, path: str, code: str) -> bool:
        """Whether per-file ignores drop this rule's findings in this file."""
        if path not in self.dropped:
            self.dropped[path] = frozenset(
                code for spec, codes in self.per_file if spec.ignores(path) for code in codes
            )
        return code in self.dropped[path]


def resolve_settings(
    config: Config,
    registry: Registry,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    fail_on: str | None = None,
    preview: bool = False,
) -> Settings:
    """Join configuration and command line.

    The command line's ``select`` replaces the configured one, and a code or name in it runs though the configuration
    ignores it; the command line's ``ignore`` adds. Preview rules run with ``preview``, or if the configuration has it, or if
    ``select`` has their code or name. What could not be checked is reported unless
    ``ignore`` names it, or no rule that is selected would have read it.

    Raises:
        OpschemaError: a code, name, level or option is not known; the message says where.
    """
    asked = list(select)
    configured = _configured(config, registry, config.select or ["ALL"], "select")
    selected = registry.expand(asked, "select") if asked else configured
    named = {rule.code for rule in registry.exact(asked)}
    if not (preview or config.preview):
        chosen = named if asked else {rule.code for rule in registry.exact(config.select)}
        selected -= {code for code, rule in registry.rules.items() if rule.stage == "preview"} - chosen
    ignored = (_configured(config, registry, config.ignore, "ignore") - named) | registry.expand(ignore, "ignore")
    # A suppression may name a plugin's rule, which nothing knows while the plugin does not run.
    unknown = {UNKNOWN.code} if registry.partial else set()
    levels = [
        (_configured(config, registry, [selector], "severity"), level) for selector, level in config.severity.items()
    ]
    # The widest first, so that a single code wins over its prefix.
    levels.sort(key=lambda pair: -len(pair[0]))
    overrides = {code: Severity(level) for codes, level in levels for code in codes}
    return Settings(
        enabled=(selected | {rule.code for rule in UNCHECKED}) - ignored - unknown,
        severity={code: overrides.get(code, rule.severity) for code, rule in registry.rules.items()},
        per_file=[
            (_glob(config, glob), _configured(config, registry, codes, f"per-file-ignores {glob!r}"))
            for glob, codes in config.per_file_ignores.items()
        ],
        fail_on=Severity(fail_on or config.fail_on),
        pack_options=pack_options(config, registry),
        rule_options=_rule_options(config, registry),
        overrides=overrides,
        selected=selected,
    )


def _configured(config: Config, registry: Registry, selectors: Iterable[str], where: str) -> frozenset[str]:
    with config.placed():
        return registry.configured(selectors, where)


def _glob(config: Config, glob: str) -> IgnoreSpec:
    with config.placed(glob):
        return glob_spec([glob], "per-file-ignores")


def pack_options(config: Config, registry: Registry) -> dict[str, object]:
    """The options of every pack, by name.

    Raises:
        OpschemaError: an option, or a pack, is not known; the message says where.
    """
    with config.placed():
        if not registry.partial:
            check_keys(config.pack_options, [*(pack.name for pack in registry.all_packs), *KEYS])
        return {
            pack.name: convert(config.pack_options.get(pack.name, {}), pack.options, f"{pack.name}: ")
            for pack in registry.all_packs
        }


def _rule_options(config: Config, registry: Registry) -> dict[str, object]:
    found: dict[str, object] = {}
    given: dict[str, dict[str, Any]] = {}
    written: dict[str, str] = {}
    for selector, options in config.rules.items():
        for code in _configured(config, registry, [selector], "rules"):
            given[code] = options
            written[code] = selector
    for code, rule in registry.rules.items():
        if rule.options is not None:
            with config.placed():
                found[code] = convert(given.pop(code, {}), rule.options, f"rules.{rule.name}: ")
    unknown = {rule.code for pack in registry.unused for rule in rules_of(pack)}
    for code in given.keys() - unknown:
        with config.placed(written[code]):
            raise OpschemaError(f"rules: {code} has no options")
    return found

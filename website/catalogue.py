"""The catalogue: one table of all rules, which ``assets/catalogue.js`` filters, and a page for each rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opschema_cli.lint.docs import rule_page
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule

_HEAD = """\
---
hide: [toc]
---

# Rules

The {count} rules of opschema. A rule with the fix *safe* is repaired by `opschema lint --fix`, one with *unsafe* by
`--fix --unsafe-fixes`. [Proofs of fixes](proofs.md) lists what each fix is tested with.

"""


def rule_pages(packs: Sequence[Pack], rules: Mapping[str, Rule]) -> dict[str, str]:
    """The pages of the rules by name, and their catalogue."""
    pack_of = {rule.code: pack.name for pack in packs for rule in pack.rules}
    pages = {f"{code}.md": rule_page(rule, pack_of.get(code, "")) for code, rule in rules.items()}
    return {"README.md": catalogue(rules.values(), pack_of), **pages}


def catalogue(rules: Iterable[Rule], pack_of: Mapping[str, str]) -> str:
    """The page with the table of all rules; those of no pack belong to opschema itself."""
    rows = [_row(rule, pack_of.get(rule.code, "opschema")) for rule in rules]
    table = ["| Code | Name | Pack | Severity | Fix | What it finds |", "| --- | --- | --- | --- | --- | --- |", *rows]
    return _HEAD.format(count=len(rows)) + '<div id="catalogue" markdown>\n\n' + "\n".join(table) + "\n\n</div>\n"


def _row(rule: Rule, pack: str) -> str:
    summary = rule.summary.replace("|", "\\|")
    link = f"[{rule.code}]({rule.code}.md)"
    return f"| {link} | `{rule.name}` | {pack} | {rule.severity.value} | {rule.fixable or 'none'} | {summary} |"

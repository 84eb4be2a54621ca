"""Renders rule pages as Markdown: the output of ``opschema rule`` and the files of ``docs/rules``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from opschema_cli.lint.rule import Rule

_FIX = {"": "none", "safe": "safe (`--fix`)", "unsafe": "unsafe (`--fix --unsafe-fixes`)"}


_PROOFS = """\
# Proofs of fixes

Generated from the rules by `python -m opschema_cli.lint.docs`; do not edit.

Each fix is tested with an *oracle*: the real system, which observes the files before and after the fix, for every Bad
example of the rule and for generated variants of it. What was right must stay right, with the same result; what was refused
may become right, but never silently wrong; and each example must get better. `tests/proofs` holds the oracles.

"""


def rule_page(rule: Rule, pack: str = "") -> str:
    """One rule's page, with the name of its pack if it is given."""
    head, _, rest = rule.doc.partition("\n")
    facts = f"Severity: {rule.severity.value}. Fix: {_FIX[rule.fixable]}." + _proof(rule)
    facts = f"Stage: {rule.stage}. {facts}" if rule.stage != "stable" else facts
    facts = f"Pack: {pack}. {facts}" if pack else facts
    body = rest.strip("\n")
    return f"# {rule.code} {rule.name}\n\n{head}\n\n{facts}\n" + (f"\n{body}\n" if body else "")


def _proof(rule: Rule) -> str:
    return f" Proof of the fix: {rule.proof}." if rule.proof else ""


def proofs_table(rules: Iterable[Rule]) -> str:
    """Render the rules with fixes, and the proof of each fix, as a table."""
    lines = ["| Rule | Fix | Proof |", "| --- | --- | --- |"]
    lines += [
        f"| [{rule.code}]({rule.code}.md) `{rule.name}` | {rule.fixable} | {_cell(rule.proof)} |"
        for rule in rules
        if rule.fixable
    ]
    return "\n".join(lines) + "\n"


def rules_table(rules: Iterable[Rule]) -> str:
    """All rules as a table."""
    lines = ["| Code | Name | Severity | Fix | What it finds |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.severity.value} | {rule.fixable or '-'} | {_cell(rule.summary)} |"
        for rule in rules
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def doc_files(rules: Mapping[str, Rule]) -> dict[str, str]:
    """Every file of ``docs/rules`` by name."""
    index = (
        "# Rules\n\nGenerated from the rules' docstrings by `python -m opschema_cli.lint.docs`; do not edit.\n\n"
        + rules_table(rules.values())
    )
    proofs = _PROOFS + proofs_table(rules.values())
    return {"README.md": index, "proofs.md": proofs, **{f"{code}.md": rule_page(rule) for code, rule in rules.items()}}


def write_pages(folder: Path, files: Mapping[str, str]) -> None:
    """Write pages by name into a folder, and remove all others in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.md"):
        if stale.name not in files:
            stale.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write ``docs/rules`` of the project in the current folder, and the catalogues of its packs."""
    from opschema_cli.lint.lazy_pack import LazyPack, catalogue_text
    from opschema_cli.lint.registry import load_registry

    registry = load_registry()
    write_pages(Path("docs/rules"), doc_files(registry.rules))
    for pack in registry.all_packs:
        if isinstance(pack, LazyPack):
            pack.catalogue.write_text(catalogue_text(pack.pack.rules), encoding="utf-8")


if __name__ == "__main__":
    main()

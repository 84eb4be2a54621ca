"""Rules of two packs that share a code or a name."""

from __future__ import annotations

from collections.abc import Sequence

from opschema_cli.authoring import at
from opschema_cli.lint.lazy_pack import AnyPack
from opschema_cli.lint.rule import Rule


def collision(pack: AnyPack, others: Sequence[AnyPack], place: str = "") -> str:
    """Return a rule of a pack whose code or name a rule of another pack has, with both; empty if there is none."""
    for other in others:
        words = {word: item for item in rules_of(other) for word in (item.code, item.name)}
        for item in rules_of(pack):
            for word in (item.code, item.name):
                if word in words:
                    return (
                        f"its rule {item.code} `{item.name}`{_at(pack, item)} has the {_kind(word, item)} of "
                        f"{words[word].code} `{words[word].name}`{_at(other, words[word])} of the pack `{other.name}`"
                    )
    return ""


def _kind(word: str, item: Rule) -> str:
    return "code" if word == item.code else "name"


def _at(pack: AnyPack, rule: Rule) -> str:
    """Return the place of a rule, including one that is only listed in a catalogue."""
    if rule.check is not None:
        return at(rule.check)
    try:
        own = getattr(pack, "pack", pack).rules
    except (Exception, SystemExit):  # foreign code
        return ""
    return next((at(item.check) for item in own if item.code == rule.code), "")


def rules_of(pack: AnyPack) -> tuple[Rule, ...]:
    """Return the rules of a pack; empty if it has no list of them and cannot be imported."""
    try:
        return pack.rules
    except (Exception, SystemExit):  # foreign code
        return ()

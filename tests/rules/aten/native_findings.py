"""What the rules say of the entries of a native_functions.yaml, in lines that a test can compare."""

from __future__ import annotations

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.examples import SOUND_TAGS
from opschema_rules.aten.pack import PACK

NATIVE = "native_functions.yaml"


def across(text: str) -> Linted:
    """The findings between entries (ATN3xx) of a native_functions.yaml."""
    codes = [rule.code for rule in PACK.rules if rule.code.startswith("ATN3")]
    return lint_files([PACK], {NATIVE: text, "tags.yaml": SOUND_TAGS}, codes)


def lines(text: str) -> list[str]:
    """Code, line and text of the place of each finding, and of what stands on the other side."""
    linted = across(text)
    found: list[str] = []
    for item in linted.diagnostics:
        others = "".join(f" <- {linted.position(side.place).line}:{linted.text(side.place)}" for side in item.related)
        found.append(f"{item.code} {linted.position(item.place).line}:{linted.text(item.place)}{others}")
    return found


def messages(text: str) -> list[str]:
    """The messages."""
    return [item.message for item in across(text).diagnostics]


def fixed(text: str, code: str, *, unsafe: bool = False) -> str:
    """The text after the fixes of one rule."""
    texts, _ = fix_files([PACK], {NATIVE: text, "tags.yaml": SOUND_TAGS}, [code], unsafe=unsafe)
    return texts.get(NATIVE, text)

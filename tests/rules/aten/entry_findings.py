"""What the rules of one entry by itself (ATN1xx, ATN2xx) say of native_functions.yaml, in lines that a test can compare."""

from __future__ import annotations

from collections.abc import Mapping

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.examples import SOUND_TAGS
from opschema_rules.aten.pack import PACK

NATIVE = "native_functions.yaml"
LONG = 96
WITHOUT_KERNEL = "ATN158"
"""What the short entries of these tests would all be reported for."""
CODES = [rule.code for rule in PACK.rules if rule.code[:4] in ("ATN1", "ATN2") and rule.code != WITHOUT_KERNEL]


def _files(text: str, files: Mapping[str, str] | None) -> dict[str, str]:
    return {NATIVE: text, "tags.yaml": SOUND_TAGS, **(files or {})}


def linted(text: str, files: Mapping[str, str] | None = None) -> Linted:
    """The findings in a native_functions.yaml, with other files beside it."""
    return lint_files([PACK], _files(text, files), CODES)


def lines(text: str, files: Mapping[str, str] | None = None) -> list[str]:
    """Code, text of the place, and message of each finding; a long one ends with an ellipsis."""
    found = linted(text, files)
    said = [f"{item.code} {found.text(item.place)!r}: {item.message}" for item in found.diagnostics]
    return [line if len(line) <= LONG else f"{line[:LONG]}…" for line in said]


def places(text: str) -> list[str]:
    """Code and text of the place of each finding, and of what stands on the other side."""
    found = linted(text)
    return [
        f"{item.code} {found.text(item.place)}" + "".join(f" <- {found.text(side.place)}" for side in item.related)
        for item in found.diagnostics
    ]


def fixed(text: str, *, unsafe: bool = False) -> str:
    """The text after all fixes."""
    return fix_files([PACK], _files(text, None), CODES, unsafe=unsafe)[0].get(NATIVE, text)


def entry(fields: str, func: str = "tanh(Tensor self) -> Tensor") -> str:
    """An entry with these fields, each on its line."""
    return f"- func: {func}\n" + "".join(f"  {line}\n" for line in fields.splitlines())

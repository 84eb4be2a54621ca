from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.aten.examples import SOUND_TAGS, example_files
from opschema_rules.aten.pack import PACK

RULES = ("ATN501", "ATN502", "ATN503")


def lint(tags: str) -> Linted:
    return lint_files([PACK], {**example_files([]), "tags.yaml": SOUND_TAGS + tags}, RULES)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("- tag: fast\n  desc: Runs fast.\n", []),
        ("- tag: fast\n", [("fast", "the tag has no `desc`, which describes its meaning")]),
        ("- tag: fast\n  desc: '  '\n", [("'  '", "`desc` describes the meaning of the tag, and this is blank text")]),
        ("- tag: fast\n  desc:\n", [("desc", "`desc` describes the meaning of the tag, and this is empty")]),
        ("- tag: 3\n  desc: x\n", [("3", "a tag is a word, and this is the number `3`")]),
        ("- desc: x\n", [("desc", "the entry has no `tag`, which names it")]),
        ("- fast\n", [("fast", "an entry is a mapping with `tag` and `desc`, and this is text")]),
        ("- tag: a-b\n  desc: x\n", [("a-b", "`a-b` is not a name in C++, where tags are the values of an enum")]),
        ("- tag: core\n  desc: x\n", [("core", "the tag `core` appears twice; keep one")]),
        ("- tag: a\n  desc: x\n  desc: y\n", [("desc", "the key `desc` is said twice; keep one")]),
        ("- tag: a\n  desc: x\n  see: y\n", [("see", "`see` is not a field of a tag; these are `tag` and `desc`")]),
        (
            "- tag: a\n  description: x\n",
            [("description", "`description` is not a field of a tag; did you mean `desc`?")],
        ),
    ],
)
def test_tags(tags: str, found: list[tuple[str, str]]) -> None:
    linted = lint(tags)
    assert [(linted.text(item.place), item.message) for item in linted.diagnostics] == found


def test_a_misspelt_field_is_renamed() -> None:
    files = {**example_files([]), "tags.yaml": f"{SOUND_TAGS}- tag: fast\n  descr: Runs fast.\n"}
    texts, left = fix_files([PACK], files, RULES)
    assert texts == {"tags.yaml": f"{SOUND_TAGS}- tag: fast\n  desc: Runs fast.\n"}
    assert left.codes() == []


def test_a_field_that_is_only_like_one_is_left_alone() -> None:
    files = {**example_files([]), "tags.yaml": f"{SOUND_TAGS}- 1- tag: fast\n  desc: Runs fast.\n"}
    assert fix_files([PACK], files, RULES, unsafe=True)[0] == {}

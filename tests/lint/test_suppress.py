"""Inline suppressions: what they cover, what they are not, and what becomes of those that hide nothing."""

from __future__ import annotations

import re
import textwrap
import time

import pytest

from opschema_cli.lint.directives import directives
from opschema_cli.source.text import Source
from opschema_cli.testing import Linted, fix_files, lint_files
from tests.toypack import PACK


def lint(text: str, *select: str, **files: str) -> Linted:
    return lint_files(
        [PACK], {"a.toy.yaml": text, **{name.replace("__", "."): text for name, text in files.items()}}, select
    )


def codes(text: str, *select: str) -> list[str]:
    return lint(textwrap.dedent(text), *select).codes()


# What is covered


def test_the_same_line() -> None:
    assert codes("add:\n  doc: LOUD  # opschema: ignore[TOY102] it must shout\n") == []


def test_the_line_below_a_line_of_its_own() -> None:
    assert codes("add:\n  # opschema: ignore[TOY102]\n  doc: LOUD\n") == []


def test_the_next_line_with_content_below_comments_and_blank_lines() -> None:
    text = """\
        add:
          # opschema: ignore[TOY102] for this reason
          # and another one

          # opschema: ignore[TOY103]
          doc: LOUD  # nothing of a dtype here, so TOY103 is idle
    """
    assert codes(text) == ["SUP001"]


def test_neither_the_line_above_nor_the_one_after() -> None:
    text = """\
        add:
          doc: LOUD
          dtype: f16  # opschema: ignore[TOY102]
        mul:
          doc: LOUD
    """
    assert codes(text) == ["TOY102", "SUP001", "TOY102"]


def test_on_an_ops_key_the_whole_entry() -> None:
    text = """\
        add:  # opschema: ignore[TOY102,TOY103] an old friend
          doc: LOUD
          dtype: f8
        mul:
          doc: LOUD
    """
    assert codes(text) == ["TOY102"]


def test_above_an_ops_key_the_whole_entry() -> None:
    assert codes("# opschema: ignore[loud-doc]\nadd:\n  doc: LOUD\n") == []


def test_on_an_ops_key_what_is_found_of_the_op_elsewhere() -> None:
    linted = lint("add:  # opschema: ignore[TOY104] not ours\n  doc: x\n  impl: m.py\n", m__py="class A: ...\n")
    assert (linted.codes(), linted.outcome.suppressed) == ([], 1)


def test_a_shared_finding_stays_for_the_ops_that_are_not_covered() -> None:
    text = "add: {doc: x, impl: m.py}  # opschema: ignore[TOY104]\nmul: {doc: x, impl: m.py}\n"
    linted = lint(text, m__py="class A: ...\n")
    assert [(item.code, item.ops) for item in linted.diagnostics] == [("TOY104", ("mul",))]
    assert linted.outcome.suppressed == 0
    both = text.replace("m.py}\n", "m.py}  # opschema: ignore[impl-forward]\n")
    linted = lint(both, m__py="class A: ...\n")
    assert (linted.codes(), linted.outcome.suppressed) == ([], 1)


def test_a_line_of_an_entry_covers_nothing_elsewhere() -> None:
    text = "add:\n  doc: x\n  impl: m.py  # opschema: ignore[TOY104]\n"
    assert lint(text, m__py="class A: ...\n").codes() == ["SUP001", "TOY104"]


def test_of_two_ops_with_one_name_neither_is_covered_elsewhere() -> None:
    text = "add: {doc: x, impl: m.py}  # opschema: ignore[TOY104]\n"
    linted = lint(text, b__toy__yaml="add: {doc: x, impl: m.py}\n", m__py="class A: ...\n")
    assert linted.codes() == ["SUP001", "TOY104"]


def test_ignore_file_in_the_head_the_whole_file() -> None:
    head = "# A header.\n\n  # opschema: ignore-file[TOY102] generated\n# more\n"
    assert codes(head + "add:\n  doc: LOUD\nmul:\n  doc: LOUD\n") == []


def test_ignore_file_below_the_head_nothing_and_that_is_told() -> None:
    linted = lint("add:\n  doc: LOUD\n# opschema: ignore-file[TOY102]\n")
    assert linted.codes() == ["TOY102", "SUP001"]
    assert "only above the file's first line" in linted.diagnostics[1].message
    assert linted.diagnostics[1].fix is None


@pytest.mark.parametrize("words", ["TOY102", "loud-doc", "TOY", "TOY1", "TOY103, loud-doc", " TOY102 ,"])
def test_codes_names_and_prefixes(words: str) -> None:
    assert "TOY102" not in codes(f"add: {{doc: LOUD}}  # opschema: ignore[{words}]\n")


@pytest.mark.parametrize(
    "spelling", ["#opschema:ignore[TOY102]", "#  opschema:  ignore [TOY102]", "# x # opschema: ignore[TOY102]"]
)
def test_spellings(spelling: str) -> None:
    assert codes(f"add: {{doc: LOUD}} {spelling}\n") == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_line_end(newline: str) -> None:
    text = "add:\n  # opschema: ignore[TOY103]\n  dtype: f8\n  doc: LOUD  # opschema: ignore[TOY102]\n"
    assert codes(text.replace("\n", newline)) == []


def test_findings_in_python_files() -> None:
    for comment in (
        "# opschema: ignore[TOY104]",
        "# noqa: E501  # opschema: ignore[TOY104] both",
        "# opschema: ignore[TOY104]  # noqa",
    ):
        linted = lint("add: {doc: x, impl: m.py}\n", m__py=f"class A: ...  {comment}\n")
        assert linted.codes() == []
        assert linted.outcome.suppressed == 1


def test_the_count_is_of_findings_not_of_comments() -> None:
    linted = lint("add:  # opschema: ignore[TOY]\n  doc: LOUD  # opschema: ignore[TOY102]\n  dtype: f8\n")
    assert (linted.codes(), linted.outcome.suppressed) == ([], 2)


# What only looks like one


@pytest.mark.parametrize(
    "text",
    [
        'add: {note: "# opschema: ignore[TOY101]"}\n',
        "add:\n  note: '\n    # opschema: ignore[TOY103]\n    LOUD'\n",
        "add:\n  note: |\n    # opschema: ignore[TOY101]\n  dtype: x#opschema:ignore[TOY101]\n",
        "add: {}\n# write `# opschema: ignore[TOY101]` to hide it\n",
        "add: {}\n#\nopschema: ignore[TOY101]\n",
    ],
)
def test_text_of_a_yaml_file_is_no_directive(text: str) -> None:
    found = codes(text)
    assert not any(code.startswith("SUP") for code in found)
    assert found


def test_the_comment_behind_a_block_scalars_header_is_one() -> None:
    assert codes("add:\n  doc: |  # opschema: ignore[TOY102]\n    LOUD\n") == []


@pytest.mark.parametrize(
    "text",
    [
        'X = "# opschema: ignore-file[TOY104]"\n',
        '"""\n# opschema: ignore-file[TOY104]\n"""\n',
        "X = f'{1}# opschema: ignore[TOY104]'\n",
    ],
)
def test_text_of_a_python_file_is_no_directive(text: str) -> None:
    assert lint("add: {doc: x, impl: m.py}\n", m__py=text).codes() == ["TOY104"]


def test_a_python_file_that_does_not_parse_may_say_so() -> None:
    assert lint("add: {doc: x, impl: m.py}\n", m__py="def (:  # opschema: ignore[OPS102]\n").codes() == []


# Unknown and idle ones


def test_an_unknown_rule_is_told_with_a_suggestion() -> None:
    linted = lint("add: {doc: x}  # opschema: ignore[mising-doc]\n")
    assert [(item.code, item.message) for item in linted.diagnostics] == [
        ("SUP002", "`mising-doc` is not a rule that opschema knows; did you mean `missing-doc`?")
    ]
    assert linted.text(linted.diagnostics[0].place) == "# opschema: ignore[mising-doc]"


@pytest.mark.parametrize(
    "directive", ["ignore", "ignore[]", "ignore[ , ]", "ignore-file", "ignore this please", "ignore[TOY101"]
)
def test_a_directive_without_a_rule_is_told(directive: str) -> None:
    linted = lint(f"# opschema: {directive}\nadd: {{doc: x}}\n")
    assert linted.codes() == ["SUP002"]


@pytest.mark.parametrize(
    "directive",
    [
        "disable[TOY101]",
        "disable[TOY]",
        "disable=TOY101",
        "noqa",
        "noqa: TOY101",
        "ignored[TOY101, TOY102,mising-doc]",
        "ignore_file[TOY101]",
        "ignore-next-line [TOY101]",
        "suppress[TOY101] why",
    ],
)
def test_a_directive_with_another_word_is_told(directive: str) -> None:
    linted = lint(f"# opschema: {directive}\nadd: {{doc: x}}\n")
    word = re.match(r"[\w-]+", directive)
    assert word is not None
    message = f"`{word[0]}` suppresses nothing; write `# opschema: ignore[CODE] why`"
    assert [(item.code, item.message) for item in linted.diagnostics] == [("SUP002", message)]
    assert linted.text(linted.diagnostics[0].place) == f"# opschema: {word[0]}"


@pytest.mark.parametrize(
    "text",
    [
        "see [docs]",
        "see [the]",
        "disable it later",
        "the rules",
        "note: TOY101 is odd",
        "why (TOY101)",
        "schema v2",
        "x = [1]",
    ],
)
def test_a_sentence_is_no_directive(text: str) -> None:
    assert lint(f"# opschema: {text}\nadd: {{doc: x}}\n").codes() == []


def test_a_directive_with_another_word_at_the_end_of_a_file_is_told() -> None:
    assert lint("add: {doc: x}\n# opschema: disable=TOY101").codes() == ["SUP002"]


def test_brackets_that_never_close_take_no_time() -> None:
    source = Source("a.yaml", "add: {doc: x}\n#" + " # opschema: ignore[" * 20_000)
    started = time.process_time()
    assert len(list(directives(source, lambda text: None))) == 20_000
    assert time.process_time() - started < 5


def fixed(text: str, *select: str) -> str:
    texts, _ = fix_files([PACK], {"a.toy.yaml": text}, ["SUP", *select])
    return texts.get("a.toy.yaml", text)


ALL = ("TOY101", "TOY102", "TOY103")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("add: {doc: x}  # opschema: ignore[TOY102] old\nb: 1\n", "add: {doc: x}\nb: 1\n"),
        ("# opschema: ignore[TOY102] old\nadd: {doc: x}\n", "add: {doc: x}\n"),
        ("a: 1\r\n  # opschema: ignore[TOY102]\r\nadd: {doc: x}\r\n", "a: 1\r\nadd: {doc: x}\r\n"),
        ("add: {doc: x}\n# opschema: ignore[TOY102]", "add: {doc: x}\n"),
        ("add: {doc: x}  # opschema: ignore[TOY102] old  # noqa\n", "add: {doc: x}  # noqa\n"),
        ("add: {doc: x}  # noqa  # opschema: ignore[TOY102] old\n", "add: {doc: x}  # noqa\n"),
        (
            "add: {doc: LOUD}  # opschema: ignore[TOY102, TOY103] why\n",
            "add: {doc: LOUD}  # opschema: ignore[TOY102] why\n",
        ),
        (
            "add: {doc: LOUD}  # opschema: ignore[loud-doc,nope,TOY101]\n",
            "add: {doc: LOUD}  # opschema: ignore[loud-doc, nope]\n",
        ),
    ],
)
def test_an_idle_one_is_told_and_its_fix_deletes_just_that(before: str, after: str) -> None:
    assert "SUP001" in lint(before, "SUP", *ALL).codes()
    assert fixed(before, *ALL) == after


def test_the_message_names_what_is_idle() -> None:
    [finding] = lint("add: {doc: LOUD}  # opschema: ignore[TOY102, missing-doc, TOY103]\n").diagnostics
    assert finding.message == "nothing here breaks missing-doc, TOY103; the suppression can go"


def test_one_whose_rule_did_not_run_is_not_judged() -> None:
    text = "add: {doc: x}  # opschema: ignore[TOY102]\n"
    assert codes(text, "SUP001", "TOY101") == []
    assert codes(text, "SUP001", "TOY102") == ["SUP001"]


def test_a_prefix_is_judged_only_if_all_its_rules_ran() -> None:
    text = "add: {doc: x}  # opschema: ignore[TOY1]\n"
    assert codes(text, "SUP001", "TOY101", "TOY102") == []
    assert codes(text, "SUP001", "TOY1") == ["SUP001"]


def test_what_per_file_ignores_drop_needs_no_suppression() -> None:
    config = "[per-file-ignores]\n'*.yaml' = ['TOY102']\n"
    linted = lint("add: {doc: LOUD}  # opschema: ignore[TOY102]\n", opschema__toml=config)
    assert (linted.codes(), linted.outcome.suppressed) == (["SUP001"], 0)


def test_the_findings_on_suppressions_obey_per_file_ignores() -> None:
    config = "[per-file-ignores]\n'*.yaml' = ['SUP']\n"
    assert lint("add: {doc: x}  # opschema: ignore[TOY102, nope]\n", opschema__toml=config).codes() == []


def test_ten_thousand_of_them_take_no_time_to_speak_of() -> None:
    text = "".join(f"op{number}: {{doc: LOUD}}  # opschema: ignore[TOY102]\n" for number in range(3000))
    heads = "# opschema: ignore-file[TOY103]\n" * 7000
    linted = lint(heads + text, "loud-doc")
    assert linted.outcome.suppressed == 3000

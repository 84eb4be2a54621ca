"""Manifest files split and merged, with every comment."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.engine import MigrationFailure
from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.merge_manifest import merge_manifest
from opschema_rules.tileops.migrations.split_manifest import split_manifest
from tests.rules.tileops.migrations.drafts import YAML, files, migrate

SPLIT: Migration = split_manifest
MERGE: Migration = merge_manifest

FOLDER = "kit/manifest/"


def entry(name: str, family: str) -> str:
    return f"""\
{name}:
  family: {family}  # kept
  signature: {{inputs: {{}}, outputs: {{}}}}
  workloads: []
  roofline:
    flops: "1"
    bytes: |
      2
"""


HEAD = "# All ops.\n#\n# Two families.\n\n"
NORM, LONG, REDUCE = entry("NormOp", "norm"), entry("LongOp", "norm"), entry("ReduceOp", "reduction")


def one_file(text: str, path: str = YAML) -> dict[str, str]:
    texts = {name: body for name, body in files().items() if name != YAML}
    return {**texts, path: text}


def shifted(text: str) -> str:
    return "".join(f"  {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def test_each_family_gets_a_file_with_its_text() -> None:
    text = HEAD + NORM + "\n# --- reductions ---\n\n" + REDUCE + "\n# A long one.\n" + LONG
    done = migrate(one_file(text), SPLIT, into="family")
    assert done.texts == {
        YAML: None,
        FOLDER + "norm.yaml": HEAD + NORM + "\n# A long one.\n" + LONG,
        FOLDER + "reduction.yaml": "# --- reductions ---\n\n" + REDUCE,
    }


def test_a_file_without_a_last_line_end() -> None:
    text = NORM + "\n" + REDUCE.replace("|\n      2\n", "|-\n      2")
    done = migrate(one_file(text), SPLIT, into="family")
    assert done.texts[FOLDER + "reduction.yaml"] == REDUCE.replace("|\n", "|-\n")
    text = NORM + "\n" + REDUCE.removesuffix("\n")
    done = migrate(one_file(text), SPLIT, into="family")
    assert done.texts == {}
    (note,) = done.notes
    assert "it ends in a text whose last line has no end" in note.message


def test_what_stays_is_not_touched() -> None:
    text = HEAD + NORM + "\n\n" + REDUCE + "\n" + LONG
    done = migrate(one_file(text, FOLDER + "norm.yaml"), SPLIT, into="family")
    assert done.texts == {FOLDER + "norm.yaml": HEAD + NORM + "\n" + LONG, FOLDER + "reduction.yaml": REDUCE}


def test_entries_are_added_to_a_file_that_is_there() -> None:
    texts = {
        **one_file(HEAD + NORM + "\n" + REDUCE, FOLDER + "norm.yaml"),
        FOLDER + "reduction.yaml": "# Old.\n" + entry("OldOp", "reduction"),
    }
    done = migrate(texts, SPLIT, into="family")
    assert done.texts[FOLDER + "reduction.yaml"] == "# Old.\n" + entry("OldOp", "reduction") + "\n" + REDUCE


def test_a_top_level_ops_is_kept() -> None:
    text = HEAD + "ops:\n\n" + shifted("# norms\n" + NORM + "\n" + REDUCE)
    done = migrate(one_file(text), SPLIT, into="family")
    assert done.texts == {
        YAML: None,
        FOLDER + "norm.yaml": HEAD + "ops:\n" + shifted("# norms\n" + NORM),
        FOLDER + "reduction.yaml": "ops:\n" + shifted(REDUCE),
    }


def test_a_top_level_ops_is_dropped_with_its_indentation() -> None:
    text = HEAD + "ops:\n" + shifted(NORM + "\n" + LONG)
    done = migrate(one_file(text, FOLDER + "norm.yaml"), SPLIT, into="family", ops="drop")
    assert done.texts == {FOLDER + "norm.yaml": HEAD + NORM + "\n" + LONG}


def test_groups_that_are_told() -> None:
    done = migrate(one_file(NORM + "\n" + LONG), SPLIT, into="short: Norm*; far: LongOp")
    assert done.texts == {YAML: None, FOLDER + "short.yaml": NORM, FOLDER + "far.yaml": LONG}


def test_another_folder_and_crlf() -> None:
    text = (NORM + "\n" + REDUCE).replace("\n", "\r\n")
    done = migrate(one_file(text), SPLIT, into="family", folder="kit/all/manifest")
    assert done.texts["kit/all/manifest/norm.yaml"] == NORM.replace("\n", "\r\n")
    assert done.texts["kit/all/manifest/reduction.yaml"] == REDUCE.replace("\n", "\r\n")


def test_what_names_the_file_or_reads_its_key_is_noted() -> None:
    texts = one_file("ops:\n" + shifted(NORM))
    texts["kit/load.py"] = 'import yaml\n\nOPS = yaml.safe_load(open("example.yaml"))["ops"]\n'
    done = migrate(texts, SPLIT, into="family", ops="drop")
    assert done.said == [
        ("kit/load.py", 3, "this names `example.yaml`; `kit/manifest/example.yaml` was removed"),
        ("kit/load.py", 3, "this reads a key `ops`; the manifest no longer has one"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\n" + NORM, "it has document markers (line 1)"),
        (
            "{NormOp: {family: norm, signature: {}, roofline: {}, workloads: []}}\n",
            "it is not a block of entries (line 1)",
        ),
        (
            NORM.replace("workloads: []", "workloads: &w []") + REDUCE.replace("workloads: []", "workloads: *w"),
            "`*w` would be in another file than `&w` (line 4)",
        ),
        ("ops:\n" + shifted(NORM) + "version: 1\n", "there are other keys next to it (line 1)"),
    ],
)
def test_a_file_that_is_written_otherwise_stays(text: str, reason: str) -> None:
    done = migrate(one_file(text), SPLIT, into="family")
    assert done.texts == {}
    assert [message for _, _, message in done.said] == [f"{YAML} is left unchanged: {reason}"]
    assert len(done.left) == 1


def test_a_family_that_is_no_file_name_is_noted() -> None:
    done = migrate(one_file(entry("NormOp", "../norm")), SPLIT, into="family")
    assert done.sites == []


def test_entries_that_would_no_longer_be_read_are_an_error() -> None:
    with pytest.raises(MigrationFailure):
        migrate(one_file(NORM + "\nBare:\n  family: bare\n"), SPLIT, into="family", folder="elsewhere")


def test_merging_is_the_reverse() -> None:
    parts = {
        FOLDER + "norm.yaml": "# Norms.\n\n" + NORM + "\n" + LONG,
        FOLDER + "reduction.yaml": "# Sums.\n\n" + REDUCE,
    }
    texts = {**{name: body for name, body in files().items() if name != YAML}, **parts}
    merged = migrate(texts, MERGE, to=YAML)
    assert merged.texts == {
        YAML: parts[FOLDER + "norm.yaml"] + "\n" + parts[FOLDER + "reduction.yaml"],
        **dict.fromkeys(parts, None),
    }
    again = migrate(one_file(merged.text(YAML)), SPLIT, into="family")
    assert again.texts == {YAML: None, **parts}


def test_merging_one_file_that_is_named() -> None:
    """Once it is emptied it is not a file of the manifest any more, and still no unknown name."""
    named, other = FOLDER + "norm.yaml", FOLDER + "reduction.yaml"
    texts = {**{name: body for name, body in files().items() if name != YAML}, named: NORM, other: REDUCE}
    done = migrate(texts, MERGE, to=YAML, file=named)
    assert done.texts == {YAML: NORM, named: None}
    with pytest.raises(OptionError, match=r"no file of a manifest is `nowhere\.yaml`"):
        migrate(texts, MERGE, to=YAML, file="nowhere.yaml")


def test_files_with_the_same_anchor_are_not_merged() -> None:
    one, other = f"{FOLDER}a.yaml", f"{FOLDER}b.yaml"
    texts = {**one_file(NORM.replace("workloads: []", "workloads: &rows []"), one), other: REDUCE}
    texts[other] = texts[other].replace("workloads: []", "workloads: &rows []")
    done = migrate(texts, MERGE, to=f"{FOLDER}all.yaml")
    assert done.texts == {}
    assert [said for _, _, said in done.said] == [
        f"{one} is left unchanged: `&rows` is an anchor of {other} too (line 4)",
        f"{other} is left unchanged: `&rows` is an anchor of {one} too (line 4)",
    ]


def test_files_with_other_anchors_are_merged() -> None:
    one, other = f"{FOLDER}a.yaml", f"{FOLDER}b.yaml"
    first, second = NORM.replace("workloads: []", "workloads: &rows []"), REDUCE.replace("[]", "&none []")
    done = migrate({**one_file(first, one), other: second}, MERGE, to=f"{FOLDER}all.yaml")
    assert done.text(f"{FOLDER}all.yaml") == f"{first}\n{second}"


def test_merging_below_ops() -> None:
    texts = one_file("ops:\n" + shifted(NORM), FOLDER + "a.yaml")
    texts[FOLDER + "b.yaml"] = "# Sums.\n" + REDUCE
    done = migrate(texts, MERGE, to=YAML)
    assert done.texts[YAML] == "ops:\n" + shifted(NORM + "\n# Sums.\n" + REDUCE)


@pytest.mark.parametrize(
    ("migration", "options", "message"),
    [
        (SPLIT, {"into": "family", "file": "other.yaml"}, "no file of a manifest is `other.yaml`"),
        (SPLIT, {"into": "famly"}, "no entry has a text `famly`; did you mean `family`?"),
        (SPLIT, {"into": "signature"}, "no entry has a text `signature`"),
        (
            SPLIT,
            {"into": "family", "file": "kit/manifest/exmple.yaml"},
            f"no file of a manifest is `kit/manifest/exmple.yaml`; did you mean `{YAML}`?",
        ),
        (SPLIT, {"into": "short: ; far: NormOp"}, "`short:` is not written as `file: Op, Op`"),
        (SPLIT, {"into": "a..b"}, "`a..b` is not a path such as `source.bench`"),
        (SPLIT, {"into": "a: NormOp; b: Norm*"}, "`NormOp` is in two groups, `a` and `b`"),
        (SPLIT, {"into": "family", "folder": "kit/../../out"}, "`kit/../../out` is not a folder of the workspace"),
        (MERGE, {"to": "kit//ops.yaml"}, "`kit//ops.yaml` is not a YAML file of the workspace"),
        (MERGE, {"to": "ops.txt"}, "`ops.txt` is not a YAML file of the workspace"),
        (MERGE, {"to": "../ops.yaml"}, "`../ops.yaml` is not a YAML file of the workspace"),
    ],
)
def test_options_that_do_not_fit(migration: Migration, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        migrate(one_file(NORM), migration, **options)
    assert str(error.value) == message

"""Files that are YAML and that their readers refuse: compared with PyYAML itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from opschema_cli.config import load_config
from opschema_cli.lint.registry import load_registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML = "kit/manifest/example.yaml"
FAMILY = "  family: example\n"


def files(text: str, **others: str) -> dict[str, str]:
    """The sound manifest with this text in place of the line of its family."""
    sound = example_files([])
    return {**sound, YAML: sound[YAML].replace(FAMILY, text), **others}


def lint(text: str, **others: str) -> Linted:
    return lint_files([PACK], files(text, **others), ["YML104"])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


LIST = "a list is the key here; loaders reject it, and with it the entire file: write a key of text"
TAB = "PyYAML takes no tab here, and rejects the entire file; write a space"

REFUSED = [
    ("  <<: 3\n", "3", "`<<` merges `3`, which is not a mapping; loaders reject it, and with it the entire file"),
    ("  <<:\n", "<<", "`<<` merges nothing; loaders reject it, and with it the entire file"),
    ("  <<: [{a: 1}, b]\n", "b", "`<<` merges `b`, which is not a mapping; loaders reject it, and with it the entire file"),
    ("  note: &n [a]\n  <<: *n\n", "a", "`<<` merges `a`, which is not a mapping; loaders reject it, and with it the entire file"),
    ("  [a, b]: 3\n", "[a, b]", LIST),
    ("  {a: b}: 3\n", "{a: b}", "a mapping is the key here; loaders reject it, and with it the entire file: write a key of text"),
    ("  ? - a\n  : 3\n", "- a", LIST),
    ("  note: &n [a]\n  *n : 3\n", "*n", LIST),
    ("  family:\texample\n", "\t", TAB),
    ("  family: example\t# why\n", "\t", TAB),
    ("  note: [a,\t b]\n", "\t", TAB),
    ("  note: \t\n    - a\n", "\t", TAB),
    ("  note: a\tb\n", "\t", TAB),
    ("  note: &n\ta\n", "\t", TAB),
]  # fmt: skip

READ = [
    FAMILY,
    "  note: &n {a: 1}\n  <<: *n\n",
    "  note: &n [{a: 1}, {b: 2}]\n  <<: *n\n",
    "  <<: []\n",
    '  "<<": 3\n',
    "  note: &n a\n  *n : 3\n",
    "  ? a\n  : 3\n",
    "  null: 3\n",
    '  note: "a\tb"\n',
    "  note: 'a\tb' # a\tb\n",
    "  # a\tb\n",
    "  note: |\n    a\tb\n    \tc\n",
    "  note: a#b # c\td\n",
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_what_pyyaml_refuses(text: str, place: str, message: str) -> None:
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(files(text)[YAML])
    linted = lint(text)
    shown = [(linted.text(item.place).lstrip("&n"), item.message) for item in linted.diagnostics]
    assert shown == [(place, message)]


@pytest.mark.parametrize("text", READ)
def test_what_pyyaml_reads(text: str) -> None:
    assert yaml.safe_load(files(text)[YAML])
    assert found(lint(text)) == []


def test_a_tab_becomes_a_space() -> None:
    texts, after = fix_files([PACK], files("  family:\texample\t\t# why\n"), ["YML104"])
    assert "  family: example # why\n" in texts[YAML]
    assert after.codes() == []
    assert fix_files([PACK], files("  note: a\tb\n"), ["YML104"])[0] == {}  # the tab may be meant


def test_libyaml_reads_tabs() -> None:
    reader = {"kit/manifest/__init__.py": "import yaml\n\nLoader = yaml.CSafeLoader\n"}
    assert found(lint("  family:\texample\n", **reader)) == []


def test_a_key_that_is_a_list_has_no_other_consequence() -> None:
    sound = example_files([])
    text = (
        sound[YAML]
        .replace("      x:", "      [a, b]: {dtype: float16}\n      x:")
        .replace("- {x_shape", "- {[a]: 1, x_shape")
    )
    assert set(lint_files([PACK], {**sound, YAML: text}).codes()) == {"YML104"}


READER = "import yaml\n\n\ndef load(path):\n    return yaml.safe_load(path.read_{})\n"


@pytest.mark.parametrize(
    ("encoding", "how", "expected"),
    [
        ("utf-16", 'text(encoding="utf-8")', ["YML104"]),
        ("utf-16", "bytes()", []),
        ("utf-16-le", "bytes()", ["OPS101"]),
        ("utf-8-sig", 'text(encoding="utf-8")', []),
    ],
)
def test_a_file_in_utf_16(encoding: str, how: str, expected: list[str], tmp_path: Path) -> None:
    for path, text in {**example_files([]), "kit/manifest/__init__.py": READER.format(how)}.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode(encoding if path == YAML else "utf-8"))
    registry, (config, _) = load_registry(), load_config(tmp_path)
    outcome = run(Job(registry, resolve_settings(config, registry)), Project(Workspace(tmp_path)))
    assert [item.code for item in outcome.diagnostics] == expected
    assert all("UTF-16" in item.message for item in outcome.diagnostics)

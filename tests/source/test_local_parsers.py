"""Parsing where no process can be started, and without the libraries that have no WebAssembly build."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opschema_cli.source import parsing, python_workers, yaml_compose
from opschema_cli.source.parse_process import Parsed
from opschema_cli.source.parsing import encoded_facts
from opschema_cli.source.python_facts import collect
from opschema_cli.source.python_workers import Parsers
from opschema_cli.source.yaml import YamlSyntaxError
from opschema_cli.source.yaml_compose import compose
from opschema_cli.user_key import user_key
from opschema_rules.tileops.manifest_schema import entry_schema
from tests.command import Here, environment

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXTS = {"a": "x = 1\n", "b": "def f(a, b=2):\n    return a\n", "c": "x = (\n"}


def no_process(*_: object) -> None:
    raise AssertionError("a process is started")


def collected(parsers: Parsers) -> dict[str, Parsed]:
    found: dict[str, Parsed] = {}
    while batch := parsers.collect(wait=True):
        found.update((item.key, item) for item in batch)
    return found


def test_texts_are_parsed_when_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_workers.Worker, "__init__", no_process)
    parsers = Parsers(4, local=True)
    parsers.submit(TEXTS)
    assert parsers.collect(wait=False) == []
    found = collected(parsers)
    assert {key: item.facts for key, item in found.items()} == {key: encoded_facts(text) for key, text in TEXTS.items()}
    assert parsers.collect(wait=True) == []


def test_trees_come_with_the_facts_that_ask_for_them() -> None:
    parsers = Parsers(1, local=True)
    parsers.submit({"b": TEXTS["b"]}, with_trees=True)
    assert collected(parsers)["b"].tree


def test_a_run_that_has_spent_its_time_refuses_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "RUN_SECONDS", 1e-9)
    parsers = Parsers(1, local=True)
    parsers.submit({str(number): f"x = {number}\n" * 100 for number in range(3)})
    assert sorted(item.refused for item in collected(parsers).values()) == [False, True, True]
    monkeypatch.setattr(parsing, "RUN_SECONDS", 60.0)
    parsers.begin_run()
    parsers.submit({"again": "x = 1\n"})
    assert not collected(parsers)["again"].refused


def test_closed_parsers_forget_what_they_were_asked() -> None:
    parsers = Parsers(1, local=True)
    parsers.submit(TEXTS)
    parsers.close()
    assert parsers.collect(wait=True) == []


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system as in a browser: it starts no process, and lacks libcst, libyaml and jsonschema-rs."""
    monkeypatch.setattr(python_workers, "STARTS_PROCESSES", False)
    monkeypatch.setattr(python_workers.Worker, "__init__", no_process)
    for name in ("libcst", "_ruamel_yaml", "jsonschema_rs"):
        monkeypatch.setitem(sys.modules, name, None)
    entry_schema.cache_clear()


@pytest.fixture(
    params=["tilekit", "tilekit_drifted", "atenkit_broken", "flykit_broken", "magikit", "orchkit", "torchkit"]
)
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A fixture; what is written as changes of another one lies upon a copy of that."""
    name = request.param
    for part in ("tilekit", "tilekit_migrated", name) if name == "tilekit_drifted" else (name,):
        shutil.copytree(FIXTURES / part, tmp_path / "kit", dirs_exist_ok=True)
    return tmp_path / "kit"


def test_the_findings_are_those_of_an_ordinary_run(
    kit: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    opschema = Here(kit, tmp_path / "cache", monkeypatch, capsys)
    command = ("lint", "--no-cache", "--jobs", "1", "--output-format", "json", "--show-unresolved")
    ordinary = opschema(*command)
    assert json.loads(ordinary.out)["summary"]["files"]
    request.getfixturevalue("bare")
    assert opschema(*command) == ordinary


@pytest.mark.usefixtures("bare")
def test_without_libcst_the_error_of_a_text_is_that_of_python() -> None:
    found = collect("def f(:\n    pass\n")
    assert (found.error, found.error_at) == ("invalid syntax", 6)
    deep = collect("x = " + " + ".join("a" * 6000) + "\n")
    assert "too deeply" in deep.error


YAML_FILES = sorted(path.relative_to(FIXTURES).as_posix() for path in FIXTURES.rglob("*.y*ml"))
TRAPS = (
    "",
    "# nothing\n",
    "a: &x [1, 'two', \"three\"]\nb: *x\n",
    "a: |\n  text\n\n  more\n\n# behind\nb: >-\n  folded\n  text\n",
    "a: !!python/object:os.system x\nb: ! y\n",
    "- {a: 1, b: [2, 3]}\n-\n  - é: 𝕏\n    k: v  # 𝕏\n",
    "%YAML 1.1\n---\na: yes\n...\n",
    "? complex key\n: value\n? [a, b]\n: c\n",
    "a: {CPU: at::add}\n",
    "a:\r\n  - b\r\n  - c\r\n",
)


@pytest.mark.parametrize("text", [*((FIXTURES / name).read_text("utf-8") for name in YAML_FILES), *TRAPS])
def test_the_tree_of_a_yaml_text_is_that_of_libyaml(text: str, request: pytest.FixtureRequest) -> None:
    expected = compose(text)
    request.getfixturevalue("bare")
    assert compose(text) == expected


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("a: [1,\nb: 2\n", "expected ',' or ']', but got", 12),
        ("a:\n\t- b\n", "a tab is used where only spaces are allowed", 3),
        ("a: *x\n", "the alias `*x` has no anchor", 3),
        ("{a:}\n", "in different ways", 1),
        ("a: 1\n---\nb: 2\n", "a second document starts here", 5),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_place(text: str, reason: str, at: int) -> None:
    with pytest.raises(YamlSyntaxError, match=re.escape(reason)) as caught:
        compose(text)
    assert caught.value.span.start == at


@pytest.mark.usefixtures("bare")
def test_long_yaml_is_refused_where_only_the_slow_parser_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_compose, "MAX_SLOW_CHARACTERS", 10)
    with pytest.raises(YamlSyntaxError, match="has 12 characters; up to 10 are parsed"):
        compose("a: 123456789")


def test_the_cache_is_kept_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "link")
    key = user_key(tmp_path / "user.key")
    assert user_key(tmp_path / "user.key") == key


BARE = """
import sys
from opschema_cli.source import python_workers
python_workers.STARTS_PROCESSES = False
sys.modules.update(dict.fromkeys(("libcst", "_ruamel_yaml", "jsonschema_rs")))
from opschema_cli.main import run
run(["lint", "--output-format", "json"])
"""


def test_a_text_outside_the_tree_that_takes_libyaml_is_not_checked(tmp_path: Path) -> None:
    """In a process of its own: once read, the text is kept."""
    folder = shutil.copytree(FIXTURES.parent / "website/playground/examples/executorch", tmp_path / "kit")
    (folder / "opschema.toml").touch()
    done = subprocess.run(
        [sys.executable, "-c", BARE], cwd=folder, env=environment(tmp_path / "cache"), capture_output=True, check=True
    )
    found = {item["code"]: item for item in json.loads(done.stdout)["diagnostics"]}
    assert found.keys() == {"OPS104", "EXE501"}
    assert found["OPS104"]["severity"] == "warning"
    assert "native_functions.yaml` is not read, and what is compared with it" in found["OPS104"]["message"]

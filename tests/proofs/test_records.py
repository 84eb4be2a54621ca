"""Answers of oracles that are kept: none is taken for a question that it does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.proof import Seen
from tests.proofs import records
from tests.proofs.records import Records

MODULE = "tests.proofs.torch_oracle"
TEXT = b'{"a.py":"x = 1"}'
ANSWER = {"import": Seen("right", result="1")}


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of answers that has one, in a run that neither writes nor asks anew."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    monkeypatch.setattr(records, "ALL_ANEW", False)
    monkeypatch.setattr(records, "WRITTEN", True)
    Records(MODULE, ["--a"]).compare([(TEXT, ANSWER)])
    monkeypatch.setattr(records, "WRITTEN", False)


def test_an_answer_is_taken_for_the_same_question_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Records(MODULE, ["--a"]).answers([TEXT, TEXT + b" "]) == {TEXT: ANSWER}
    assert Records(MODULE, []).answers([TEXT]) == {}
    monkeypatch.setattr(records, "_releases", lambda: ("3.99",))
    assert Records(MODULE, ["--a"]).answers([TEXT]) == {}


def test_an_oracle_that_was_changed_is_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").mkdir()
    for name, text in (("one", "from tests import two"), ("two", "A = 1"), ("other", "B = 1")):
        (tmp_path / f"tests/{name}.py").write_text(text)
    monkeypatch.setattr(records, "ROOT", tmp_path)
    found = [records._sources.__wrapped__("tests.one")]
    (tmp_path / "tests/other.py").write_text("B = 2")
    (tmp_path / "tests/two.py").write_text('"""Two."""\n\nA = 1  # one\n')
    found.append(records._sources.__wrapped__("tests.one"))
    (tmp_path / "tests/two.py").write_text("A = 2")
    found.append(records._sources.__wrapped__("tests.one"))
    assert found[0] == found[1] != found[2]


def test_nothing_is_kept_where_a_folder_outside_has_a_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(records, "WRITTEN", True)
    Records(MODULE, ["/opt/corpus"]).compare([(TEXT, ANSWER)])
    monkeypatch.setattr(records, "WRITTEN", False)
    assert Records(MODULE, ["/opt/corpus"]).answers([TEXT]) == {}
    assert len((tmp_path / "torch_oracle.jsonl").read_text().splitlines()) == 1


def test_a_slow_run_asks_all_and_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "ALL_ANEW", True)
    asked = Records(MODULE, ["--a"])
    assert asked.answers([TEXT]) == {}
    asked.compare([(TEXT, {"import": Seen("right", "other words", "1")})])
    with pytest.raises(AssertionError, match=r"the record \w+ in .*torch_oracle.jsonl is wrong"):
        asked.compare([(TEXT, {"import": Seen("right", result="2")})])

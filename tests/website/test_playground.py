"""The code behind the page in the browser, run here on its examples; ``test_playground_page.py`` opens the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from website.playground import browser
from website.playground.bundle import HERE
from website.playground.examples import Example, examples

FOUND = {
    "tileops": [("WKL201", "kit/manifest/norm.yaml"), ("SIG203", "kit/ops/norm.py")],
    "torchlib": [("REG206", "norm.py"), ("REG202", "norm.py"), ("REG201", "norm.py")],
    "aten": [(code, "aten/src/ATen/native/native_functions.yaml") for code in ("ATN102", "ATN131", "ATN204")],
    "magi": [("MAG301", "scale.py")],
    "flydsl": [("FLY211", "fill.py")],
    "pypto": [("PTO110", "accumulate.py")],
    "executorch": [("EXE501", "custom.yaml"), ("EXE201", "custom.yaml")],
    "paddle": [("PDL302", "backward.yaml"), ("PDL104", "ops.yaml")],
}


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)  # the page's program changes to its folder; this leaves it again
    for name in (*browser.ENVIRONMENT, "COLUMNS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setitem(browser.ENVIRONMENT, "OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    return lambda files: json.loads(browser.answer(json.dumps(files), str(tmp_path / "folder")))


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.pack)
def test_each_example_has_its_findings(example: Example, answer: Any) -> None:
    found = answer(example.files)
    assert [(item["code"], item["path"]) for item in found["diagnostics"]] == FOUND[example.pack]
    assert found["code"] == any(item["severity"] == "error" for item in found["diagnostics"])
    assert all(code in re.sub(r"\x1b\[[0-9;]*m", "", found["text"]) for code, _ in FOUND[example.pack])


def test_a_finding_goes_away_with_its_cause(answer: Any) -> None:
    (example,) = (each for each in examples() if each.pack == "magi")
    fixed = {path: text.replace("@dataclass\n", "@dataclass(frozen=True)\n") for path, text in example.files.items()}
    assert fixed != example.files
    assert answer(example.files)["diagnostics"]
    found = answer(fixed)
    assert (found["code"], found["diagnostics"], found["errors"]) == (0, [], "")


def test_a_wrong_configuration_is_an_error(answer: Any) -> None:
    found = answer({"opschema.toml": "nonsense = 1\n"})
    assert (found["code"], found["text"]) == (2, "")
    assert "nonsense" in found["errors"]


@pytest.mark.parametrize("path", ["../outside.py", "/outside.py", ".", ""])
def test_a_path_stays_in_the_folder(path: str, answer: Any) -> None:
    with pytest.raises(ValueError, match="is not a path inside the workspace"):
        answer({path: "x = 1\n"})


def test_every_wheel_is_pinned_with_its_hash() -> None:
    lines = [line for line in (HERE / "requirements.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)

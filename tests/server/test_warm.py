"""After any edits a warm run finds what a first run finds."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from opschema_cli.lint.runner import Job, Outcome, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.lint.touched import Change
from opschema_cli.server.warm import Superseded, WarmLint
from opschema_cli.session import open_session
from opschema_cli.source.text import Span
from tests.command import TILEKIT

MANIFEST, OPS = "tilekit/manifest/normalization.yaml", "tilekit/ops/norm.py"


def cold(root: Path, overlay: dict[str, str | None]) -> Outcome:
    with closing(open_session(root)) as session:
        project = session.project(overlay)
        registry = session.registry_for(project)
        return run(Job(registry, resolve_settings(session.config, registry)), project)


EDITS = (
    (OPS, "DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-5"),
    (MANIFEST, "weight: {dtype:", "scale: {dtype:"),
    (MANIFEST, "  signature:\n", "  signature: {\n"),  # no YAML
    (OPS, "def forward(self, x: torch.Tensor, weight", "def forward(self, x: torch.Tensor, scale"),
    (MANIFEST, "  signature: {\n", "  signature:\n"),
    (OPS, None, None),  # closed without saving
)


def test_warm_runs_find_what_cold_ones_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = Path(shutil.copytree(TILEKIT, tmp_path / "tilekit")).resolve()
    overlay: dict[str, str | None] = {}
    steps = 0

    def checkpoint() -> None:
        nonlocal steps
        steps -= 1
        if steps == 0:
            raise Superseded

    with closing(open_session(root)) as session:
        warm = WarmLint(session, checkpoint)
        warm.run({}, [])
        seen = set()
        for number, (path, old, new) in enumerate(EDITS):
            text = overlay.get(path) or (root / path).read_text(encoding="utf-8")
            overlay = {name: known for name, known in overlay.items() if name != path}
            if old is not None and new is not None:
                overlay[path] = text.replace(old, new, 1)
            steps = 40 * (number % 2)  # every other run is given up, and its changes are taken up by the next
            try:
                found = warm.run(overlay, [path])
            except Superseded:
                found = warm.run(overlay, [])
            expected = cold(root, overlay).diagnostics
            assert found.diagnostics == expected
            seen.add(repr(expected))
    assert len(seen) >= 5, "nothing is tested where no edit changes what is found"


STEPS = int(os.environ.get("OPSCHEMA_SLOW", "0")) * 190 + 10
TYPED = ("\n", "  ", "x", "_new", "{", "# new\n", "7", ": ", "None", "(", "*", "\n    y = 1\n")


def typed(text: str, draw: random.Random) -> str:
    """A text in which something is typed over a few characters, or a line is deleted."""
    start = draw.randrange(len(text))
    if draw.random() < 0.2:
        return text[: text.rfind("\n", 0, start) + 1] + text[text.find("\n", start) + 1 :]
    return text[:start] + draw.choice(TYPED) + text[start + draw.choice((0, 0, 1, 4)) :]


def test_random_edits_find_what_a_first_run_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = Path(shutil.copytree(TILEKIT, tmp_path / "tilekit")).resolve()
    draw = random.Random(int(os.environ.get("OPSCHEMA_SEEDS", "1")))
    paths = [MANIFEST, OPS, "tilekit/ops/op_base.py", "tilekit/ops/softmax.py", "tilekit/kernels/norm.py"]
    overlay: dict[str, str | None] = {}
    looks: list[Collection[str]] = []
    seen = set()
    with closing(open_session(root)) as session:
        warm = WarmLint(session, lambda: None)
        warm.run({}, [])
        for _ in range(STEPS):
            path = draw.choice(paths)
            text = overlay.get(path) or (root / path).read_text(encoding="utf-8")
            if path in overlay and draw.random() < 0.4:
                del overlay[path]
            else:
                overlay[path] = typed(text, draw)
            found = warm.run(overlay, [path], lambda outcome, changed: looks.append(changed))
            expected = cold(root, overlay)
            assert found.diagnostics == expected.diagnostics, (path, overlay.get(path))
            assert found.unresolved == expected.unresolved
            seen.add(repr(expected.diagnostics))
    assert looks, "no edit is looked at first"
    assert len(seen) >= 4, "nothing is tested where no edit changes what is found"


def test_the_first_look_finds_what_is_wrong_with_an_edited_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCHEMA_CACHE_DIR", str(tmp_path / "cache"))
    root = Path(shutil.copytree(TILEKIT, tmp_path / "tilekit")).resolve()
    looks: list[Outcome] = []

    def first(outcome: Outcome, changed: Collection[str]) -> None:
        looks.append(outcome)
        raise Superseded  # nothing else is judged

    def codes(overlay: dict[str, str | None], path: str) -> list[tuple[str, str]]:
        with pytest.raises(Superseded):
            warm.run(overlay, [path], first)
        found = [item for item in looks[-1].diagnostics if item.place.path == path and item.code not in known]
        return [(item.code, (overlay[path] or "")[slice(*item.place.span)]) for item in found]

    code, entries = ((root / path).read_text(encoding="utf-8") for path in (OPS, MANIFEST))
    with closing(open_session(root)) as session:
        warm = WarmLint(session, lambda: None)
        known = {item.code for item in warm.run({}, []).diagnostics}
        wrong = code.replace("DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-5")
        assert codes({OPS: wrong}, OPS) == [("SIG203", "DEFAULT_EPS")]
        assert codes({OPS: code}, OPS) == []
        warm.run({OPS: wrong}, [OPS])
        moved = wrong.replace("import math\n", "import math\nimport os\n")
        assert codes({OPS: moved}, OPS) == [("SIG203", "DEFAULT_EPS")], "a finding moves with its line"
        assert codes({OPS: code}, OPS) == [], "a finding that is mended is not shown"
        assert codes({OPS: code + "def ("}, OPS)[0][0] == "OPS102"
        misspelt = entries.replace("weight: {dtype:", "weight: {dtpye:", 1)
        other = entries.replace("default: 1.0e-6", "default: 1.0e-7", 1)
        codes({MANIFEST: other, OPS: code}, MANIFEST)
        elsewhere = [item for item in looks[-1].diagnostics if item.place.path == OPS]
        assert [item.code for item in elsewhere] == ["SIG203"], "the other side is judged as well"
        assert ("MAN101", "dtpye") in codes({MANIFEST: misspelt, OPS: code}, MANIFEST)


@pytest.mark.parametrize(
    ("old", "new", "span", "moved"),
    [
        ("abcdef", "abXcdef", (4, 6), (5, 7)),  # after the edit
        ("abcdef", "abXcdef", (0, 2), (0, 2)),  # before it
        ("abcdef", "abXcdef", (0, 4), (0, 5)),  # around it
        ("abcdef", "abf", (3, 4), (2, 2)),  # removed
        ("abcdef", "aXf", (2, 3), (1, 2)),  # replaced
        ("aaa", "aaaa", (3, 3), (3, 3)),
        ("", "x", (0, 0), (0, 0)),  # at the head of a file
    ],
)
def test_places_move_with_the_text(old: str, new: str, span: tuple[int, int], moved: tuple[int, int]) -> None:
    assert Change.between("a", old, new).moved(Span(*span)) == moved

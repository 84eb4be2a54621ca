"""Quick fixes of unsaved texts."""

from __future__ import annotations

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types

from tests.server.editor import Editor

OPS = "tilekit/ops/norm.py"
TOY = "a.toy.yaml"


def test_a_fix_is_for_the_text_as_it_is_typed(editor: Editor) -> None:
    editor.open(TOY, "# \U0001f600\nFirst:\n  doc: HELLO\n  dtype: f64\n")
    assert {"TOY102", "TOY103"} <= set(editor.codes(TOY))
    (fix,) = (item for title, item in editor.actions(TOY, "HELLO").items() if "Suppress" not in title and item.edit)
    assert (fix.kind, fix.is_preferred) == (types.CodeActionKind.QuickFix, True)
    (unsafe,) = (title for title in editor.actions(TOY, "f64") if "unsafe: " in title)
    assert fix.edit is not None
    editor.apply(fix.edit)
    assert "TOY102" not in editor.codes(TOY)
    repaired = editor.actions(TOY, "f64")[unsafe]
    assert repaired.edit is not None
    assert repaired.is_preferred is None
    editor.apply(repaired.edit)
    assert "TOY103" not in editor.codes(TOY)
    editor.shut(TOY)


def test_all_safe_fixes_are_applied_at_once(editor: Editor) -> None:
    editor.open(TOY, "First:\n  doc: HELLO\n  dtype: f64\nSecond:\n  doc: YES\n")
    action = editor.actions(TOY, "First")["Fix all safe findings (opschema)"]
    resolved = editor.request(types.CODE_ACTION_RESOLVE, action)
    editor.apply(resolved.edit)
    assert "TOY102" not in editor.codes(TOY)
    assert "f64" in editor.texts[TOY], "an unsafe fix is left to the user"
    editor.shut(TOY)


def test_a_finding_is_suppressed_on_its_line(editor: Editor) -> None:
    editor.open(OPS)
    editor.replace(OPS, "DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-5")
    (found,) = editor.diagnostics(OPS)
    title = f"Suppress {found.code} (ctor-default) on this line"
    edit = editor.actions(OPS, "DEFAULT_EPS,")[title].edit
    assert edit is not None
    editor.apply(edit)
    assert editor.codes(OPS) == []
    assert "eps: float | None = DEFAULT_EPS,  # opschema: ignore[SIG203]\n" in editor.texts[OPS]
    editor.shut(OPS)

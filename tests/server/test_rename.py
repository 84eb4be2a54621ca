"""Renaming by migrations, over unsaved texts."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.editor import Editor

MANIFEST = "tilekit/manifest/normalization.yaml"
OPS = "tilekit/ops/norm.py"


def rename(editor: Editor, path: str, text: str, name: str, inside: int = 0) -> Any:
    at = editor.at(path, text, inside)
    return editor.request(types.TEXT_DOCUMENT_RENAME, types.RenameParams(at.text_document, at.position, name))


def prepared(editor: Editor, path: str, text: str, inside: int = 0) -> Any:
    at = editor.at(path, text, inside)
    return editor.request(types.TEXT_DOCUMENT_PREPARE_RENAME, types.PrepareRenameParams(at.text_document, at.position))


def test_names_are_changed_on_all_sides_or_refused(editor: Editor) -> None:
    editor.open(MANIFEST, "# not saved\n" + (editor.root / MANIFEST).read_text(encoding="utf-8"))
    editor.open(OPS)
    assert prepared(editor, OPS, "class RMSNormFwdOp", 8).placeholder == "RMSNormFwdOp"
    edit = rename(editor, OPS, "class RMSNormFwdOp", "RootNormFwdOp", 8)
    changed = {change.text_document.uri for change in edit.document_changes}
    assert {editor.uri(MANIFEST), editor.uri(OPS)} < changed, "others, too, which are not open"
    editor.apply(edit)
    assert editor.texts[MANIFEST].startswith("# not saved\n# Family")
    assert "\nRootNormFwdOp:\n" in editor.texts[MANIFEST]
    assert "class RootNormFwdOp(Op):" in editor.texts[OPS]

    assert prepared(editor, MANIFEST, "weight: {dtype").placeholder == "weight"
    edit = rename(editor, MANIFEST, "weight: {dtype", "scale")
    editor.apply(edit)
    assert '"scale.shape == tuple(normalized_shape)"' in editor.texts[MANIFEST]
    assert "def forward(self, x: torch.Tensor, scale: torch.Tensor)" in editor.texts[OPS]

    with pytest.raises(JsonRpcException, match="the argument `eps` cannot be renamed here"):
        prepared(editor, MANIFEST, "eps: {type")
    with pytest.raises(JsonRpcException, match="`a b` is not a name for an input"):
        rename(editor, MANIFEST, "scale: {dtype", "a b")
    editor.shut(MANIFEST)
    editor.shut(OPS)

"""Hover, definitions, references and symbols."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types

from tests.server.editor import Editor

MANIFEST = "tilekit/manifest/normalization.yaml"
OPS = "tilekit/ops/norm.py"


@pytest.fixture(autouse=True)
def opened(editor: Editor) -> Iterator[None]:
    editor.open(MANIFEST, "# not saved\n\n" + (editor.root / MANIFEST).read_text(encoding="utf-8"))
    editor.open(OPS, "# not saved either\n" + (editor.root / OPS).read_text(encoding="utf-8"))
    yield
    editor.shut(MANIFEST)
    editor.shut(OPS)


def located(editor: Editor, method: str, at: types.TextDocumentPositionParams, **more: Any) -> list[tuple[str, str]]:
    """The files and the texts of the answer to a request about a position."""
    kinds = {
        types.TEXT_DOCUMENT_REFERENCES: types.ReferenceParams,
        types.TEXT_DOCUMENT_DEFINITION: types.DefinitionParams,
    }
    params = kinds[method](text_document=at.text_document, position=at.position, **more)
    found = editor.request(method, params) or []
    paths = {editor.uri(path): path for path in editor.texts}
    return [(paths.get(item.uri, Path(item.uri).name), editor.reads_at(item)) for item in found]


def hovered(editor: Editor, path: str, text: str, inside: int = 0) -> str:
    at = editor.at(path, text, inside)
    found = editor.request(types.TEXT_DOCUMENT_HOVER, types.HoverParams(at.text_document, at.position))
    return found.contents.value if found is not None else ""


def test_hover_shows_the_declaration_beside_the_implementation(editor: Editor) -> None:
    text = hovered(editor, MANIFEST, "RMSNormFwdOp")
    assert "RMSNormFwdOp (implemented)" in text
    assert f"{MANIFEST}:5" in text
    assert "eps                param float | None = 1e-06" in text
    assert hovered(editor, OPS, "class RMSNormFwdOp", 8) == text
    assert hovered(editor, MANIFEST, "eps: {type") == (
        "```text\neps: argument of RMSNormFwdOp (implemented)\n"
        "  declared     param float | None = 1e-06\n"
        "  implemented  __init__: eps: float | None = DEFAULT_EPS\n```"
    )
    assert hovered(editor, MANIFEST, "weight.shape ==", 2).startswith("```text\nweight: argument of"), "in a formula"
    assert hovered(editor, OPS, "import math") == ""


def test_definition_leads_to_the_other_side(editor: Editor) -> None:
    there = located(editor, types.TEXT_DOCUMENT_DEFINITION, editor.at(MANIFEST, "RMSNormFwdOp", 3))
    assert (OPS, "RMSNormFwdOp") in there
    back = located(editor, types.TEXT_DOCUMENT_DEFINITION, editor.at(OPS, "class RMSNormFwdOp", 8))
    assert back == [(MANIFEST, "RMSNormFwdOp")]
    assert located(editor, types.TEXT_DOCUMENT_DEFINITION, editor.at(MANIFEST, "eps: {")) == [(OPS, "eps")]
    assert located(editor, types.TEXT_DOCUMENT_DEFINITION, editor.at(OPS, "eps: float")) == [(MANIFEST, "eps")]


def test_references_are_all_places_of_an_argument(editor: Editor) -> None:
    context = types.ReferenceContext(include_declaration=True)
    found = located(editor, types.TEXT_DOCUMENT_REFERENCES, editor.at(OPS, "weight: torch"), context=context)
    assert {(MANIFEST, "weight"), (OPS, "weight")} <= set(found)


def test_symbols_are_operators_with_their_arguments(editor: Editor) -> None:
    params = types.DocumentSymbolParams(types.TextDocumentIdentifier(editor.uri(MANIFEST)))
    first, *_ = editor.request(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, params)
    assert first.name == "RMSNormFwdOp"
    assert [item.name for item in first.children] == ["x", "weight", "output", "normalized_shape", "eps"]
    assert editor.reads(MANIFEST, first.selection_range) == "RMSNormFwdOp"
    found = editor.request(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("rmsfwd"))
    assert [item.name for item in found if item.container_name == "tileops"] == ["RMSNormFwdOp"]

"""Diagnostics of texts that are being typed, on both sides."""

from __future__ import annotations

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types

from opschema_cli.server.documents import Document, changed
from opschema_cli.server.positions import Encoding, offset_of, position_of
from opschema_cli.source.text import Source
from tests.server.editor import Editor

MANIFEST = "tilekit/manifest/normalization.yaml"
OPS = "tilekit/ops/norm.py"


def test_an_edit_of_either_side_is_compared_with_the_unsaved_text_of_the_other(editor: Editor) -> None:
    editor.open(MANIFEST)
    editor.open(OPS)
    assert editor.codes(OPS) == editor.codes(MANIFEST) == []

    editor.replace(OPS, "DEFAULT_EPS = 1.0e-6", "DEFAULT_EPS = 1.0e-5")
    (found,) = editor.diagnostics(OPS) + editor.diagnostics(MANIFEST)
    assert (found.code, found.severity, found.source) == ("SIG203", types.DiagnosticSeverity.Error, "opschema")
    assert found.code_description is not None
    assert found.code_description.href.endswith("/docs/rules/SIG203.md")
    (other,) = found.related_information or ()
    assert other.location.uri in (editor.uri(OPS), editor.uri(MANIFEST))

    editor.replace(
        MANIFEST, 'eps: {type: "float | None", default: 1.0e-6}', 'eps: {type: "float | None", default: 1.0e-5}'
    )
    editor.wait(lambda: not editor.found())

    editor.shut(OPS)  # unsaved: the file on the disk counts again
    editor.wait(lambda: bool(editor.found()))
    editor.shut(MANIFEST)
    editor.wait(lambda: not editor.found())


def test_places_count_utf16_and_line_ends_as_the_editor_does(editor: Editor) -> None:
    text = (editor.root / MANIFEST).read_text(encoding="utf-8").replace("\n", "\r\n")
    editor.open(MANIFEST, text)
    editor.replace(MANIFEST, "weight: {dtype:", "weight: {note: '\U0001f600é', dtype:")
    editor.replace(MANIFEST, "\U0001f600é', dtype: \"float16", "\U0001f600é', dtype: \"flaot16")
    assert "flaot16" in [editor.reads(MANIFEST, item.range) for item in editor.diagnostics(MANIFEST)]
    editor.replace(MANIFEST, "flaot16", "float16")
    assert editor.codes(MANIFEST) == []
    editor.shut(MANIFEST)


def test_files_come_go_and_change_on_the_disk(editor: Editor) -> None:
    new = editor.root / "tilekit/manifest/new.yaml"
    text = (editor.root / MANIFEST).read_text(encoding="utf-8")
    editor.open("tilekit/manifest/new.yaml", text)  # not saved yet
    editor.wait(lambda: "MAN102" in editor.found())  # every op of it is declared twice
    editor.shut("tilekit/manifest/new.yaml")
    editor.wait(lambda: not editor.found())
    new.write_text(text, encoding="utf-8")
    editor.changed_on_disk("tilekit/manifest/new.yaml")
    editor.wait(lambda: bool(editor.found()))
    new.unlink()
    editor.changed_on_disk("tilekit/manifest/new.yaml")
    editor.wait(lambda: not editor.found())


def test_a_crash_of_a_rule_is_a_message_and_not_the_end(editor: Editor) -> None:
    editor.open("a.toy.yaml", "First:\n  doc: A doc.\n  dtype: float16\n  crash: yes\n")
    assert "TOY301" in editor.codes("a.toy.yaml"), "found before the crash"
    editor.wait(lambda: any("TOY301 (crash)" in message and "the toy broke" in message for message in editor.messages))
    editor.replace("a.toy.yaml", "  crash: yes\n", "")
    assert "TOY301" not in editor.codes("a.toy.yaml")
    editor.shut("a.toy.yaml")


def test_an_error_of_the_configuration_is_shown_at_its_place(editor: Editor) -> None:
    editor.open("opschema.toml")
    right = editor.texts["opschema.toml"]
    for wrong, place in (("fail-no = 'error'\n", "fail-no"), ("select = ['NOPE1']\n", "NOPE1"), ("x = [\n", None)):
        editor.write("opschema.toml", wrong + right)
        (found,) = editor.diagnostics("opschema.toml")
        assert found.code == "configuration"
        assert place is None or editor.reads("opschema.toml", found.range) == place
    editor.write("opschema.toml", right)
    assert editor.codes("opschema.toml") == []
    editor.shut("opschema.toml")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_count_code_units_and_only_the_protocols_line_ends(encoding: Encoding) -> None:
    source = Source("a", "x = '\U0001f600é'  # \x0c\u2028\r\nsecond\rthird\n")
    offsets = [position_of(source, offset, encoding) for offset in range(len(source.text))]
    at = {"utf-8": 11, "utf-16": 8, "utf-32": 7}[encoding]
    assert position_of(source, source.text.index("é") + 1, encoding) == types.Position(0, at)
    assert position_of(source, source.text.index("second"), encoding) == types.Position(1, 0)
    assert position_of(source, source.text.index("third"), encoding) == types.Position(2, 0)
    back = [offset_of(source, position, encoding) for position in offsets]
    line_end = source.text.index("\r\n")
    assert back == [line_end if offset == line_end + 1 else offset for offset in range(len(source.text))]
    assert offset_of(source, types.Position(0, 99), encoding) == line_end
    assert offset_of(source, types.Position(9, 0), encoding) == len(source.text)


def test_changes_of_one_message_follow_each_other() -> None:
    def typed(line: int, start: int, end: int, text: str) -> types.TextDocumentContentChangeEvent:
        found = types.Range(types.Position(line, start), types.Position(line, end))
        return types.TextDocumentContentChangePartial(found, text)

    before = Document("file:///a", 1, "a\U0001f600b\r\nc\x0cd\r\n")
    after = changed(before, 2, [typed(0, 3, 4, "B"), typed(1, 2, 3, "D"), typed(0, 0, 1, "")], "utf-16")
    assert after == Document("file:///a", 2, "\U0001f600B\r\nc\x0cD\r\n")
    whole = types.TextDocumentContentChangeWholeDocument("new")
    assert changed(before, 3, [whole], "utf-16").text == "new"

"""After a file is closed, an editor shows the findings of the last run."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest

pytest.importorskip("pygls", reason="the language server needs pygls")

from lsprotocol import types

from opschema_cli.server.app import OpschemaServer
from opschema_cli.server.documents import Document


def finding(message: str) -> types.Diagnostic:
    start = types.Position(0, 0)
    return types.Diagnostic(types.Range(start, start), message)


Sent: TypeAlias = "tuple[OpschemaServer, list[list[str]]]"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """A server, and the messages that it publishes."""
    found: list[list[str]] = []
    server = OpschemaServer()
    monkeypatch.setattr(
        server,
        "text_document_publish_diagnostics",
        lambda params: found.append([item.message for item in params.diagnostics]),
    )
    return server, found


def test_a_first_look_does_not_stay_when_the_file_is_closed(sent: Sent, tmp_path: Path) -> None:
    server, found = sent
    path, uri = tmp_path / "a.py", (tmp_path / "a.py").as_uri()
    server.documents[path] = Document(uri, 1, "x = 1\n")
    server._publish(tmp_path, {uri: [finding("saved")]}, {uri: 1})
    server.documents[path] = edited = Document(uri, 2, "x = 2\n")
    server._publish_one(tmp_path, path, edited, [finding("edited")], edited=True)
    del server.documents[path]
    server._publish(tmp_path, {uri: [finding("saved")]}, {})
    assert found == [["saved"], ["edited"], ["saved"]]


def test_a_first_look_is_published_for_an_open_file_only_where_it_finds_something_else(
    sent: Sent, tmp_path: Path
) -> None:
    server, found = sent
    path, uri = tmp_path / "a.py", (tmp_path / "a.py").as_uri()
    server.documents[path] = document = Document(uri, 1, "x = 1\n")
    server._publish(tmp_path, {uri: [finding("one")]}, {uri: 1})
    for messages in (["one"], ["one", "another"], []):
        server._publish_one(tmp_path, path, document, list(map(finding, messages)), edited=False)
    assert found == [["one"], ["one", "another"], []]

"""Reports of migrations."""

from __future__ import annotations

import json

from opschema_cli.reporters.migrations import MigrationReport, NoteReport, RunReport
from opschema_cli.reporters.migrations.json import write


def test_notes_are_in_the_order_of_their_places_and_each_told_once() -> None:
    notes = [("b.py", 1, 1), ("a.py", 10, 1), ("a.py", 9, 8), ("a.py", 9, 2), ("a.py", 9, 8)]
    report = MigrationReport("rename-op", [], [NoteReport(*place, "look here") for place in notes], [])
    document = json.loads(write(RunReport([report], [], "diff")))
    found = [(note["path"], note["line"], note["column"]) for note in document["migrations"][0]["notes"]]
    assert found == [("a.py", 9, 2), ("a.py", 9, 8), ("a.py", 10, 1), ("b.py", 1, 1)]
    assert document["summary"]["notes"] == 4

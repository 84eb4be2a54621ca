"""Import statements in texts that are not parsed."""

from __future__ import annotations

import time

import pytest

from opschema_cli.source.import_text import import_statements


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b as c, d  # e\n", [("", "a.b as c, d  ")]),
        ("import i\n\tfrom .kit._C import f as g, h; import j", [("", "i"), (".kit._C", "f as g, h")]),
        ("from . import (\n    one,  # 1\n    two,\n)\n", [(".", "(\n    one,  # 1\n    two,\n)")]),
        ("y = important\n# import a\nx = 'from a import b'\nreimport b\nx = 1; import c\n", []),
        ("import (\nfrom import x\nfrom a import (b", [("", ""), ("a", "")]),
        ("from a import (\n  b,\nfrom c import (\n  d,\n)\n", [("a", "(\n  b,"), ("c", "(\n  d,\n)")]),
        ("", []),
    ],
)
def test_statements(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(import_statements(text)) == expected


@pytest.mark.parametrize(
    "line",
    ["import (x) ", "import a from b import ", "from a import (b\n", "from a import (b) ", "        import", "from aa"],
)
def test_the_time_grows_with_the_text(line: str) -> None:
    started = time.process_time()
    for _ in import_statements(line * 50_000 + "\n)"):
        pass
    assert time.process_time() - started < 2.0

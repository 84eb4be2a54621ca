"""Reports of ``opschema stubs``."""

from __future__ import annotations

import io
from typing import Literal

import pytest
from rich.console import Console

from opschema_cli.reporters.migrations import FileReport
from opschema_cli.reporters.stubs import StubsReport, write_patch, write_text

SAME = FileReport("out/RegisterXLA.cpp", "int a;\n", "int a;\n")
OTHER = FileReport("out/XLANativeFunctions.h", "int a;\nint b;\n", "int a;\nint c;\n")
NEW = FileReport("out/RegisterAutogradXLA.cpp", None, "int d;\n")


def _text(files: list[FileReport], mode: Literal["dry-run", "check", "apply"], *, terminal: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=terminal, color_system=None)
    write_text(StubsReport("xla.yaml", "torchgen 2.13.0", files, mode), console)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("files", "mode", "summary"),
    [
        ([], "check", "torchgen 2.13.0 generates nothing from xla.yaml: it supports no operator."),
        ([SAME], "check", "1 file up to date with xla.yaml (torchgen 2.13.0)."),
        ([SAME], "apply", "1 file up to date with xla.yaml (torchgen 2.13.0)."),
        ([SAME, OTHER], "check", "1 of 2 files differs from what torchgen 2.13.0 makes of xla.yaml; --apply writes."),
        ([NEW, OTHER], "dry-run", "2 of 2 files differ from what torchgen 2.13.0 makes of xla.yaml; --apply writes."),
        ([NEW, SAME], "apply", "Wrote 1 of 2 files (torchgen 2.13.0)."),
    ],
)
def test_the_summary(files: list[FileReport], mode: Literal["dry-run", "check", "apply"], summary: str) -> None:
    assert _text(files, mode).splitlines()[-1] == summary


def test_a_terminal_shows_the_lines_and_files_that_are_new_whole() -> None:
    shown = _text([SAME, OTHER, NEW], "dry-run", terminal=True)
    assert [line.rstrip() for line in shown.splitlines()[:-1]] == [
        "out/XLANativeFunctions.h +1 -1",
        "    1   1   int a;",
        "    2     - int b;",
        "        2 + int c;",
        "",
        "out/RegisterAutogradXLA.cpp added +1 -0",
        "        1 + int d;",
        "",
    ]


def test_a_check_names_the_files_alone() -> None:
    assert _text([SAME, OTHER], "check", terminal=True).splitlines()[:-1] == ["out/XLANativeFunctions.h +1 -1"]


def test_elsewhere_it_is_a_patch() -> None:
    assert write_patch(StubsReport("xla.yaml", "torchgen", [SAME, NEW], "dry-run")) == (
        "--- /dev/null\n+++ b/out/RegisterAutogradXLA.cpp\n@@ -0,0 +1 @@\n+int d;\n"
    )

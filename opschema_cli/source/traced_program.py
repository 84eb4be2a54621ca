"""A program that records which of its files are read."""

from __future__ import annotations

from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile


class TracedProgram(Program):
    """The modules of a program, read again: ``read`` holds each file that was loaded, and whether it can be parsed.

    What follows from the list of files alone, and the writes to classes from outside their bodies, are those of ``main``; they are
    not recorded.
    """

    def __init__(self, main: Program) -> None:
        super().__init__(main.all_files, self._load_traced, main.package_files)
        self.share_names(main)
        self.patches.share_outside(main.patches)
        self._load_untraced = main.load
        self.read: dict[str, bool] = {}

    def _load_traced(self, path: str) -> PythonFile | None:
        file = self._load_untraced(path)
        self.read[path] = file is not None
        return file

"""The progress of a long run, shown by the editor."""

from __future__ import annotations

import asyncio
from itertools import count

from lsprotocol import types
from pygls.lsp.server import LanguageServer


class RunProgress:
    """One progress bar after the other, for runs that parse many files."""

    FEW = 8
    """Files up to which parsing takes no time that is worth a progress bar."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._token = ""
        self._shown = False

    def report(self, done: int, total: int) -> None:
        """Show the number of files that are parsed; begins with the first."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress or total <= self.FEW:
            return
        if not self._token:
            self._token = f"opschema-{next(self._numbers)}"
            asyncio.get_running_loop().create_task(self._begin(self._token))
        elif self._shown:
            value = types.WorkDoneProgressReport(percentage=100 * done // total, message=f"{done} of {total} files")
            self._server.work_done_progress.report(self._token, value)

    async def _begin(self, token: str) -> None:
        await self._server.work_done_progress.create_async(token)
        if token == self._token:
            value = types.WorkDoneProgressBegin("opschema", message="reading files", percentage=0, cancellable=True)
            self._server.work_done_progress.begin(token, value)
            self._shown = True

    def end(self) -> None:
        """End the progress display."""
        if self._shown:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
        self._token, self._shown = "", False

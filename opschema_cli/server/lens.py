"""The code lens `verify` on the operators that `opschema verify` can run, and the run itself."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from opschema_cli.server.findings import Converter
from opschema_cli.server.positions import range_of
from opschema_cli.server.warm import WarmLint
from opschema_cli.source.text import Source

VERIFY = "opschema.verify"
"""The command of the lens."""

_RUN = "import sys; sys.path[:] = filter(None, sys.path); from opschema_cli.main import main; main()"
"""Runs the command line of this installation, not that of a folder ``opschema_cli`` in the tree."""


def verify_lenses(warm: WarmLint, source: Source, converter: Converter) -> list[types.CodeLens]:
    """A lens on each declaration in a file of an operator that is implemented, if its pack has plans for it."""
    planned = {pack.name for pack in warm.registry.packs if pack.plans is not None}
    found: list[types.CodeLens] = []
    for operator in warm.operators():
        place = operator.declaration.place
        if (
            operator.pack in planned
            and place is not None
            and place.path == source.path
            and not operator.declaration.planned
        ):
            command = types.Command("verify", VERIFY, arguments=[str(warm.session.root), operator.name])
            found.append(types.CodeLens(range_of(source, place.span, converter.encoding), command))
    return found


async def run_verify(server: LanguageServer, root: str, op: str) -> None:
    """Run ``opschema verify`` for an operator, using the saved files. Show the last line of the output, and log all of it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _RUN, "verify", "--", op), cwd=root, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    output, _ = await process.communicate()
    text = output.decode("utf-8", "replace").strip()
    kind = types.MessageType.Info if process.returncode == 0 else types.MessageType.Warning
    server.window_log_message(types.LogMessageParams(kind, text))
    last = text.rpartition("\n")[2] or f"exit code {process.returncode}"
    server.window_show_message(types.ShowMessageParams(kind, f"verify {op}: {last}"))

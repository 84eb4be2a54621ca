"""``opschema server``."""

from __future__ import annotations

import sys

import click

from opschema_cli.errors import OpschemaError, install_command


@click.command(short_help="Run a language server for editors, over standard input and output.")
@click.option("--stdio", is_flag=True, help="Use standard input and output, the only transport.")
def server(stdio: bool) -> int:
    """Run a language server (LSP) for an editor, over standard input and output.

    Lints the unsaved texts of the editor with all other files of the workspace. Editors start it; see docs/editors.md. Needs the
    extra `lsp`.
    """
    try:
        from opschema_cli.server.features import make_server
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        raise OpschemaError(f"the language server needs pygls: {install_command('lsp')}") from None
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what anything prints must not get between the messages
    served = make_server()
    served.start_io(reader, writer)
    served.worker.close()
    return 0

"""The requests that the server answers."""

from __future__ import annotations

from lsprotocol import types

from opschema_cli.server.actions import FIX_ALL, Actions
from opschema_cli.server.app import Asked, OpschemaServer
from opschema_cli.server.positions import span_of


def register(server: OpschemaServer) -> None:
    """Answer requests."""
    _code_actions(server)


def _code_actions(server: OpschemaServer) -> None:
    kinds = [types.CodeActionKind.QuickFix, FIX_ALL]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(kinds, resolve_provider=True))
    async def code_action(ls: OpschemaServer, params: types.CodeActionParams) -> list[types.CodeAction] | None:
        only = [getattr(kind, "value", kind) for kind in params.context.only or ()]

        def actions(asked: Asked) -> list[types.CodeAction]:
            span = span_of(asked.source, params.range, asked.converter.encoding)
            return _actions(asked).at(asked.source.path, span, only)

        return await ls.ask(params.text_document.uri, actions)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(ls: OpschemaServer, params: types.CodeAction) -> types.CodeAction:
        if isinstance(params.data, dict) and "uri" in params.data:
            params.edit = await ls.ask(params.data["uri"], lambda asked: _actions(asked).fixed())
        return params


def _actions(asked: Asked) -> Actions:
    return Actions(asked.warm, asked.outcome, asked.converter, asked.versions)

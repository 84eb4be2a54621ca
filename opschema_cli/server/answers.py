"""The requests that the server answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from opschema_cli.errors import OpschemaError
from opschema_cli.file_kinds import is_yaml
from opschema_cli.server import navigation
from opschema_cli.server.actions import FIX_ALL, Actions
from opschema_cli.server.app import Asked, OpschemaServer
from opschema_cli.server.completion import completions, decoded_schema
from opschema_cli.server.lens import VERIFY, run_verify, verify_lenses
from opschema_cli.server.outline import cursor_at
from opschema_cli.server.positions import offset_of, range_of, span_of
from opschema_cli.server.rename import edit_of, renamed, renaming_at
from opschema_cli.server.rooted import RootedLint
from opschema_cli.server.table import Hit, Side, Table
from opschema_cli.source.text import Place

T = TypeVar("T")


class _AtPosition(Protocol):
    """Parameters of a request about a position."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


def register(server: OpschemaServer) -> None:
    """Answer requests."""
    _code_actions(server)
    _navigation(server)
    _symbols(server)
    _rename(server)
    _completion(server)
    _lenses(server)


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


def _navigation(server: OpschemaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: OpschemaServer, params: types.HoverParams) -> types.Hover | None:
        def answer(asked: Asked, table: Table, hit: Hit) -> types.Hover:
            return navigation.hover(hit, asked.source, asked.converter)

        return await _ask_hit(ls, params, answer)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(ls: OpschemaServer, params: types.DefinitionParams) -> list[types.Location] | None:
        return await _ask_hit(ls, params, _located(navigation.other_side))

    @server.feature(types.TEXT_DOCUMENT_DECLARATION)
    async def declaration(ls: OpschemaServer, params: types.DeclarationParams) -> list[types.Location] | None:
        return await _ask_hit(ls, params, _located(lambda table, hit: table.places(hit, ["declaration"])))

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    async def implementation(ls: OpschemaServer, params: types.ImplementationParams) -> list[types.Location] | None:
        return await _ask_hit(ls, params, _located(lambda table, hit: table.places(hit, ["implementation"])))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(ls: OpschemaServer, params: types.ReferenceParams) -> list[types.Location] | None:
        sides: list[Side] = ["implementation", "use"]
        sides += ["declaration"] if params.context.include_declaration else []
        return await _ask_hit(ls, params, _located(lambda table, hit: table.places(hit, sides)))


def _located(
    places: Callable[[Table, Hit], Iterable[Place]],
) -> Callable[[Asked, Table, Hit], list[types.Location]]:
    return lambda asked, table, hit: navigation.locations(places(table, hit), asked.converter)


async def _ask_hit(ls: OpschemaServer, params: _AtPosition, answer: Callable[[Asked, Table, Hit], T]) -> T | None:
    """Answer a question about the operator at a position, or return None if there is no operator."""

    def question(asked: Asked) -> T | None:
        table = asked.table
        hit = table.at(asked.source, offset_of(asked.source, params.position, asked.converter.encoding))
        return answer(asked, table, hit) if hit is not None else None

    return await ls.ask(params.text_document.uri, question)


def _symbols(server: OpschemaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document(ls: OpschemaServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol] | None:
        return await ls.ask(
            params.text_document.uri,
            lambda asked: navigation.document_symbols(asked.table, asked.source, asked.converter),
        )

    @server.feature(types.WORKSPACE_SYMBOL)
    async def workspace(ls: OpschemaServer, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        def answer(rooted: RootedLint) -> list[types.WorkspaceSymbol]:
            if rooted.warm is None or rooted.outcome is None:
                return []
            return navigation.workspace_symbols(rooted.warm.operators(), params.query, ls.converter(rooted))

        found = [await ls.ask_root(root, answer) for root in ls.roots()]
        return [item for items in found for item in items][: navigation.MOST_SYMBOLS]


def _rename(server: OpschemaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare(ls: OpschemaServer, params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        def answer(asked: Asked, table: Table, hit: Hit) -> types.PrepareRenamePlaceholder:
            found = _refusable(lambda: renaming_at(asked.warm, hit, asked.source))
            return types.PrepareRenamePlaceholder(
                range_of(asked.source, found.span, asked.converter.encoding), found.name
            )

        return await _ask_hit(ls, params, answer)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(ls: OpschemaServer, params: types.RenameParams) -> types.WorkspaceEdit | None:
        def answer(asked: Asked, table: Table, hit: Hit) -> tuple[types.WorkspaceEdit, list[str]]:
            found = _refusable(lambda: renaming_at(asked.warm, hit, asked.source))
            changes, result = _refusable(lambda: renamed(asked.warm, found, params.new_name))
            notes = [f"{left.note.place.path}:{left.position.line}: {left.note.message}" for left in result.notes]
            return edit_of(changes, asked.converter, asked.versions), notes

        found = await _ask_hit(ls, params, answer)
        if found is None:
            return None
        edit, notes = found
        if notes:
            ls.show_notes(notes)
        return edit


def _refusable(work: Callable[[], T]) -> T:
    """The result of work that may be refused, which is then reported to the user."""
    try:
        return work()
    except OpschemaError as error:
        raise JsonRpcException(str(error), code=types.LSPErrorCodes.RequestFailed.value) from None


def _completion(server: OpschemaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[" ", ":", "{", "["]))
    async def completion(ls: OpschemaServer, params: types.CompletionParams) -> list[types.CompletionItem] | None:
        def answer(asked: Asked) -> list[types.CompletionItem]:
            schema = asked.warm.schema_of(asked.source.path) if is_yaml(asked.source.path) else None
            if schema is None:
                return []
            offset = offset_of(asked.source, params.position, asked.converter.encoding)
            names = (operator.name.removeprefix("aten::") for operator in asked.warm.operators())
            return completions(decoded_schema(schema), cursor_at(asked.source.text, offset), names)

        return await ls.ask(params.text_document.uri, answer)


def _lenses(server: OpschemaServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def lenses(ls: OpschemaServer, params: types.CodeLensParams) -> list[types.CodeLens] | None:
        return await ls.ask(
            params.text_document.uri, lambda asked: verify_lenses(asked.warm, asked.source, asked.converter)
        )

    @server.command(VERIFY)
    async def verify(ls: OpschemaServer, root: str, op: str) -> None:
        await run_verify(ls, root, op)

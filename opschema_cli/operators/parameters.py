"""Parameters of Python functions as arguments of the table."""

from __future__ import annotations

from collections.abc import Iterable

from opschema_cli.operators.model import Argument
from opschema_cli.source.python import Param, PythonFile
from opschema_cli.source.text import Place, Span

_STARS = {"vararg": "*", "kwarg": "**"}


def arguments_of(file: PythonFile, params: Iterable[Param]) -> tuple[Argument, ...]:
    """The parameters, as the file writes them."""
    return tuple(argument_of(file, item) for item in params)


def argument_of(file: PythonFile, param: Param) -> Argument:
    """One parameter."""
    return Argument(
        param.name,
        one_line(file, param.annotation.span) if param.annotation is not None else "",
        param.kind,
        default=one_line(file, param.default.span) if param.default is not None else None,
        mutated=None,
        text=_STARS.get(param.kind, "") + _renamed(file, param),
        place=Place(file.path, param.span),
    )


def _renamed(file: PythonFile, param: Param) -> str:
    """The text of a parameter with its own name, which code may have changed when it made the function."""
    return param.name + one_line(file, Span(param.end, param.full_end))


def one_line(file: PythonFile, span: Span) -> str:
    """A stretch of a file without its line breaks."""
    return " ".join(file.text(span).split())

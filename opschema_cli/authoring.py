"""Mistakes in packs, rules and migrations, reported with the file and line of their author's code."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import wraps
from types import CodeType, FunctionType, TracebackType
from typing import Any, NoReturn, TypeVar

import msgspec

T = TypeVar("T")

_ENGINE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class AuthorError(TypeError):
    """A pack, rule or migration is defined incorrectly; the message says which one, where, and how to fix it."""


def refuse(what: str, function: object = None) -> NoReturn:
    """Raise an AuthorError, with the place of a function if it has one.

    Raises:
        AuthorError: always.
    """
    raise AuthorError(what + at(function))


def at(function: object) -> str:
    """File and line of a function, ready to append: `` (line 3 of ours.py)``; empty if it has none."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return f" (line {code.co_firstlineno} of {_shown(code.co_filename)})" if isinstance(code, CodeType) else ""


def failure(error: BaseException, function: object = None) -> str:
    """Return the error that foreign code raised, and the line that raised it: the last one of its author's code, not one of the
    engine or of Python's library. If there is none, return the place of ``function``.
    """
    what = str(error) if isinstance(error, AuthorError) else f"{type(error).__name__}: {error}"
    if " (line " in what or isinstance(error, SyntaxError):
        return what
    frames = list(_frames(error.__traceback__))
    own = [frame for frame in frames if not _is_ours(frame[0])]
    placed = bool(at(function)) or isinstance(error, AuthorError)
    path, line = own[-1] if own else frames[-1] if frames and not placed else ("<", 0)
    return what + at(function) if path.startswith("<") else f"{what} (line {line} of {_shown(path)})"


def _frames(trace: TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def _is_ours(path: str) -> bool:
    """Whether a file belongs to the engine or to Python itself."""
    library = path.startswith(_LIBRARY) and f"{os.sep}site-packages{os.sep}" not in path
    return path.startswith(("<", _ENGINE)) or library


def _shown(path: str) -> str:
    """Return a path relative to the current folder, if it is inside it."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)


def params_of(function: Callable[..., object]) -> list[str]:
    """The names of a function's parameters."""
    if isinstance(function, FunctionType) and not vars(function) and not function.__code__.co_flags & _VARIADIC:
        code = function.__code__
        return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])  # in a tenth of the time
    return list(inspect.signature(function).parameters)


def with_options(function: Callable[..., T], what: str, *params: str, needed: bool = False) -> Callable[..., T]:
    """A function that is called with ``params`` and options; one that takes no options, unless they are ``needed``, is wrapped.

    Raises:
        AuthorError: it is not a function, or takes other parameters.
    """
    if not callable(function):
        refuse(f"{what} is {_article(function)}, not a function")
    if not isinstance(function, FunctionType) or function.__code__.co_flags & _VARIADIC:
        return function
    least, most = _counts(function)
    if least <= len(params) + 1 <= most:
        return function
    if least <= len(params) <= most and not needed:
        return wraps(function)(lambda *arguments: function(*arguments[:-1]))
    expected = (
        f"({', '.join(params)}, options)" if needed else f"({', '.join(params)}) or ({', '.join(params)}, options)"
    )
    return refuse(f"{what} takes ({', '.join(params_of(function))}); it is called with {expected}", function)


def _counts(function: FunctionType) -> tuple[int, int]:
    """Return the smallest and the largest number of positional arguments that a function takes."""
    most = function.__code__.co_argcount
    by_name = function.__code__.co_kwonlyargcount - len(function.__kwdefaults__ or ())
    return most - len(function.__defaults__ or ()) + (99 if by_name else 0), most


def _article(value: object) -> str:
    """A value's type, with its article."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def described(value: object) -> str:
    """Describe a value that an author passed, for a message: a name with its place, or its type."""
    name = getattr(value, "__name__", "") if callable(value) else ""
    return f"`{name}`{at(value)}" if name else _article(value)


def is_options(kind: object) -> bool:
    """Whether a type describes options: a struct."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def needs_value(kind: Any) -> str:
    """The first option without a default; empty if there is none."""
    return next((field.name for field in msgspec.structs.fields(kind) if field.required), "")

"""Evaluates paths in a description: strings, ``os.path`` and ``pathlib``, relative to the file's own folder."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.evaluation.origins import origin
from opschema_cli.evaluation.values import Frame, Text
from opschema_cli.source.python import Expr

_SAME = ("str", "Path", "pathlib.Path", "os.fspath", "os.path.abspath", "os.path.realpath", "os.path.normpath")
_FILE = "__file__"


def path_of(evaluator: Evaluator, frame: Frame, expr: Expr, hops: int = MAX_CALLS) -> str | None:
    """Return the path of an expression in a frame, relative to the folder of the frame's file; None if it is not known."""
    if hops < 0:
        return None
    if expr.kind == "call" and expr.callee in _SAME and len(expr.items) == 2:
        return path_of(evaluator, frame, expr.items[1], hops)
    if expr.kind == "call" and expr.callee.endswith("os.path.join") and not any(expr.keywords):
        return _joined(path_of(evaluator, frame, item, hops) for item in expr.items[1:])
    if expr.kind == "call" and expr.callee.endswith("os.path.dirname") and len(expr.items) == 2:
        return _folder_of(path_of(evaluator, frame, expr.items[1], hops))
    if expr.kind == "binary" and expr.text == "/":
        return _joined(path_of(evaluator, frame, item, hops) for item in expr.items)
    if expr.kind == "name" and expr.text == _FILE:
        return _FILE
    above = _above(evaluator, frame, expr, hops)
    return above if above is not None else _of_name(evaluator, frame, expr, hops)


def _above(evaluator: Evaluator, frame: Frame, expr: Expr, hops: int) -> str | None:
    """Follow ``Path(__file__).resolve().parent`` and equivalent expressions."""
    if expr.kind == "call" and len(expr.items) == 1 and expr.items[0].kind == "attribute":
        attribute = expr.items[0]
        return (
            path_of(evaluator, frame, attribute.items[0], hops) if attribute.text in ("resolve", "absolute") else None
        )
    if expr.kind == "attribute" and expr.text == "parent":
        return _folder_of(path_of(evaluator, frame, expr.items[0], hops))
    if expr.kind == "name" and expr.text.endswith(".parent"):
        inner = Expr("name", expr.start, expr.end, expr.text.removesuffix(".parent"))
        return _folder_of(path_of(evaluator, frame, inner, hops))
    return None


def _of_name(evaluator: Evaluator, frame: Frame, expr: Expr, hops: int) -> str | None:
    """Return the path that a name refers to, an item of a list that it refers to, or any other string."""
    if expr.kind == "subscript" and len(expr.items) == 2 and isinstance(expr.items[1].value, int):
        listed, index = origin(evaluator, frame, expr.items[0]), expr.items[1].value
        if listed.expr is not None and listed.expr.kind in ("list", "tuple") and 0 <= index < len(listed.expr.items):
            return path_of(evaluator, listed.frame, listed.expr.items[index], hops - 1)
    found = origin(evaluator, frame, expr) if expr.kind == "name" and "." not in expr.text else None
    further = found.expr if found is not None and found.frame.body.file is frame.body.file else None
    if found is not None and further is not None and further is not expr and further.kind != "const":
        return path_of(evaluator, found.frame, further, hops - 1)
    if frame.assumed or frame.site is None:
        texts = evaluator.texts(frame.body, expr)
        return min(texts) if texts is not None and len(texts) == 1 else None
    values = evaluator.evaluate(frame, expr)
    names = values[0].names if len(values) == 1 and isinstance(values[0], Text) else None
    return min(names) if names is not None and len(names) == 1 else None


def _folder_of(path: str | None) -> str | None:
    return None if path is None else "." if path == _FILE else posixpath.join(path, "..")


def _joined(parts: Iterable[str | None]) -> str | None:
    found = list(parts)
    known = [part for part in found if part is not None]
    return posixpath.join(*known) if known and len(known) == len(found) else None

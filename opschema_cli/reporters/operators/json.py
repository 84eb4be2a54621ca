"""The operator table as JSON, version 1: every field of the model, places as lines and columns, ASCII only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from opschema_cli.operators.model import Operator
from opschema_cli.phrases import unbroken
from opschema_cli.reporters.operators.parts import Sources
from opschema_cli.reporters.places import region
from opschema_cli.source.text import Span

VERSION = 1
"""Raised when a field is renamed, removed or changes its meaning; further fields do not raise it."""

_PLACES = frozenset({"place", "registered"})


def write(operators: Iterable[Operator], sources: Sources) -> str:
    """Write the operators as one object; ``gaps`` collects the unresolved parts of each one."""
    document = {"version": VERSION, "operators": [_operator(item, sources) for item in operators]}
    return json.dumps(document, indent=2) + "\n"


def _operator(operator: Operator, sources: Sources) -> Any:
    data = {**msgspec.to_builtins(operator), "gaps": [msgspec.to_builtins(item) for item in operator.gaps()]}
    return _located(data, sources)


def _located(data: Any, sources: Sources) -> Any:
    """The data with each place as an object, and each text on one line."""
    if isinstance(data, str):
        return unbroken(data)
    if isinstance(data, dict):
        return {
            key: _place(value, sources) if key in _PLACES and value is not None else _located(value, sources)
            for key, value in data.items()
        }
    return [_located(item, sources) for item in data] if isinstance(data, list | tuple) else data


def _place(place: Any, sources: Sources) -> Any:
    path, span = place
    found = region(sources(path), Span(*span))
    return {"path": path, **msgspec.to_builtins(found)}

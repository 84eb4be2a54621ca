"""Uses of PyTorch's operators in code: ``torch.ops.aten.NAME`` in Python, ``at::NAME(...)`` and ``at::_ops::NAME`` in C++.

Code that is compiled or run only with certain releases is left out, as far as its conditions say so: an ``#if`` or ``if`` with
``version`` in it, ``hasattr``, and what is tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from opschema_cli.file_kinds import is_cpp
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.cpp_text import only_code
from opschema_cli.source.guarded_code import asks_what_exists, is_guarded
from opschema_cli.source.preprocessor import is_dead, read_directives
from opschema_cli.source.program import Program
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Place, Span

_PYTHON = re.compile(rb"\bops\.aten\b")
_CPP = re.compile(r"(?<![\w:.>])(?:::)?at::(?:(_ops)::(\w+)\b|(\w+)\s*\()")


class TorchCall(msgspec.Struct, frozen=True, eq=False):
    """One use: ``name`` is the part after ``aten.`` (``add``, ``add.Tensor``), or the C++ function's name (``add``,
    ``add_Tensor``).

    ``form`` is ``ops`` for Python, ``function`` for ``at::NAME`` and ``struct`` for ``at::_ops::NAME``; ``call`` the call in
    Python, where it is one.
    """

    form: Literal["ops", "function", "struct"]
    name: str
    place: Place
    call: Expr | None = None


def torch_calls(project: Project) -> Iterator[TorchCall]:
    """All uses in a tree."""
    workspace = project.workspace
    for path in workspace.files:
        if is_cpp(path) and b"at::" in workspace.peek(path):
            yield from _of_cpp(project, path)
    paths = [path for path in workspace.files if path.endswith(".py") and _PYTHON.search(workspace.peek(path))]
    bodies = Bodies(Program(workspace.files, project.python, paths), paths)
    for file in bodies.files:
        yield from _of_python(bodies, file)


def _of_cpp(project: Project, path: str) -> Iterator[TorchCall]:
    source = project.source(path)
    if source is None:
        return
    found = list(_CPP.finditer(only_code(source.text)))
    directives = read_directives(source.text) if found else None
    for match in found:
        conditions = directives.conditions(match.start()) if directives is not None else ()
        if not is_dead(conditions) and not any(asks_what_exists(item.text) for item in conditions):
            group = 2 if match[1] else 3
            form: Literal["function", "struct"] = "struct" if match[1] else "function"
            yield TorchCall(form, match[group], Place(path, Span(*match.span(group))))


def _of_python(bodies: Bodies, file: PythonFile) -> Iterator[TorchCall]:
    aliases = {
        item.target for item in file.body.assigns if item.value is not None and item.value.text == "torch.ops.aten"
    }
    for body in bodies.of(file):
        calls = {call.items[0].start: call for call in body.scope.calls}
        for use in body.scope.uses:
            name = _operator_of(bodies, body, use.name, aliases)
            if name and not is_guarded(body, use.start):
                yield TorchCall("ops", name, body.at(use.span), calls.get(use.start))


def _operator_of(bodies: Bodies, body: Body, dotted: str, aliases: set[str]) -> str:
    """Return the part of a dotted name after ``torch.ops.aten``; empty for other names."""
    first, _, rest = dotted.partition(".")
    if first in aliases and rest:
        return rest if _is_torch(bodies, bodies.module(body.file)) and first not in body.visible else ""
    _, found, name = dotted.partition("torch.ops.aten.")
    return name if found and dotted.startswith("torch.") and _is_torch(bodies, body) else ""


def _is_torch(bodies: Bodies, body: Body) -> bool:
    return bodies.external(body, "torch.ops.aten") == "torch.ops.aten"

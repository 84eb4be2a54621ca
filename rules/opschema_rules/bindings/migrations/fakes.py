"""Fake kernels of the operators that bindings become, to be filled in."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note
from opschema_cli.source.text import Span
from opschema_rules.bindings.imports import Extensions
from opschema_rules.bindings.migrations.derived import COMPOSITE, DerivedOperator
from opschema_rules.bindings.model import Module

_TO_FILL = "return empty tensors of the right shapes"


def add_fakes(
    extensions: Extensions,
    module: Module,
    operators: Sequence[DerivedOperator],
    namespace: str,
    fakes: dict[str, list[str]],
) -> None:
    """Add the fakes of a module's operators with a dispatch key of their own to the texts of files, by path."""
    home = next((path for path, modules in extensions.by_path.items() if module.root in modules), "")
    own = [item for item in operators if item.key != COMPOSITE] if home else []
    if not own:
        return
    path = posixpath.join(posixpath.dirname(home.removesuffix("/__init__.py")), "_fakes.py")
    name = module.root.name
    last = name.rpartition(".")[2]
    loads = f"from . import {last}  # noqa: F401\n" if "." in name else f"import {last}  # noqa: F401\n"
    parts = fakes.setdefault(path, [])
    if loads not in parts:
        parts.insert(0, loads)
    for item in {one.full: one for one in own}.values():
        function = f"_{item.full.replace('.', '_')}"
        if any(f"\ndef {function}(" in part for part in parts):
            function = f"_{namespace}{function}"
        does = "return None" if item.returns_nothing else f'raise NotImplementedError("{_TO_FILL}")'
        parts.append(
            f'\n\n@torch.library.register_fake("{namespace}::{item.full}")\n'
            f"def {function}({', '.join(item.params)}):\n    {does}\n"
        )


def write_fakes(draft: Draft, fakes: dict[str, list[str]]) -> Iterator[Note]:
    """Create the files of fakes, or yield a note for those that are there already."""
    for path, parts in fakes.items():
        if draft.project.workspace.is_file(path):
            yield Note(Place(path, Span(0, 0)), "add fake kernels for the new operators here")
        else:
            head = '"""Fake kernels of operators, to be filled in and imported."""\n\nimport torch\n\n'
            draft.create(path, head + "".join(parts))

"""Writes the functions of ``torch.library`` of each release, from their own text.

python -m opschema_rules.torchlib.api_history FOLDER...   # each holds torch/library.py and torch/_library of one release
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opschema_cli.requirements import Version, dotted, read_version
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.api_table import TABLE

_MODULES = ("library.py", "_library/custom_ops.py", "_library/triton.py")
_CLASSES = {"Library": apis.LIBRARY, "CustomOpDef": apis.HANDLE}


def read_release(folder: Path) -> dict[str, str]:
    """The functions that register, and their parameters without annotations."""
    found: dict[str, str] = {}
    for name in _MODULES:
        path = folder / "torch" / name
        if path.is_file():
            found.update(_functions(ast.parse(path.read_text(encoding="utf-8"))))
    return dict(sorted(found.items()))


def _functions(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in apis.FUNCTIONS:
            yield f"torch.library.{node.name}", _parameters(node)
        elif isinstance(node, ast.ClassDef) and node.name in _CLASSES:
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name in _CLASSES[node.name]:
                    yield f"torch.library.{node.name}.{item.name}", _parameters(item)


def _parameters(function: ast.FunctionDef) -> str:
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    for item in every:
        item.annotation = None
    return ast.unparse(function.args)


def table_text(releases: Mapping[Version, Mapping[str, str]]) -> str:
    """The table, a function a line."""
    before: Mapping[str, str] = {}
    found: dict[str, dict[str, str | None]] = {}
    for version, now in sorted(releases.items()):
        names = sorted({*now, *before})
        found[dotted(version)] = {name: now.get(name) for name in names if now.get(name) != before.get(name)}
        before = now
    return json.dumps(found, indent=1) + "\n"


def write(folders: Iterable[Path]) -> None:
    """Write the table of the releases in these folders."""
    versions = {read_version(folder.name.removeprefix("torch-")): folder for folder in folders}
    found = {version: read_release(folder) for version, folder in versions.items() if version is not None}
    TABLE.write_text(table_text(found), encoding="utf-8")


if __name__ == "__main__":
    write(map(Path, sys.argv[1:]))

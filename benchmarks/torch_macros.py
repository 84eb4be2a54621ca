"""Writes the macros of torch that apply a macro to each of some types, from the headers of its releases.

Those that apply one to each of some operators (``AT_FORALL_FP32``) name operators of torch alone; they are written with an
empty body.

python -m benchmarks.torch_macros corpus-folder   # see benchmarks.corpus
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from opschema_cli.source.preprocessor import Macro, read_directives
from opschema_cli.source.text import Span
from opschema_rules import TORCH_RELEASES
from opschema_rules.torchlib.type_lists import TABLE

TYPES = ("torch/headeronly/core/ScalarType.h", "c10/core/ScalarType.h")
OPERATORS = ("ATen/autocast_mode.h",)


def read(include: Path) -> dict[str, Macro]:
    """The lists in a folder of headers; releases before 2.9 have those of types in the second of these headers."""
    types = {
        item.name: Macro(item.name, item.parameters, " ".join(item.body.split()), Span(0, 0))
        for item in _lists(include, TYPES)
    }
    return types | {item.name: Macro(item.name, item.parameters, "", Span(0, 0)) for item in _lists(include, OPERATORS)}


def _lists(include: Path, headers: Iterable[str]) -> list[Macro]:
    texts = [path.read_text(encoding="utf-8") for name in headers if (path := include / name).is_file()]
    return [macro for text in texts for macro in read_directives(text).macros if macro.name.startswith("AT_FORALL_")]


def table_text(releases: Mapping[str, Mapping[str, Macro]]) -> str:
    """The table of some releases as JSON, a macro a line."""
    before: Mapping[str, Macro] = {}
    parts = []
    for release, now in releases.items():
        changed = [name for name in sorted({*before, *now}) if now.get(name) != before.get(name)]
        lines = [f' "{name}": {msgspec.json.encode(now.get(name)).decode()}' for name in changed]
        parts.append(f'"{release}": {{\n' + ",\n".join(lines) + "\n}" if lines else f'"{release}": {{}}')
        before = now
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(folders: Iterable[Path]) -> None:
    """Write the table of releases, the oldest first."""
    found = {folder.name.removeprefix("torch-"): read(folder / "torch/include") for folder in folders}
    TABLE.write_text(table_text(found), encoding="utf-8")


def main() -> None:
    """Write the table of the corpus."""
    write(Path(sys.argv[1], "aten", f"torch-{name}") for name in TORCH_RELEASES)


if __name__ == "__main__":
    main()

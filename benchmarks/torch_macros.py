"""Writes the macros of torch that apply a macro to each of some types, from the headers of an installed torch.

Those that apply one to each of some operators (``AT_FORALL_FP32``) differ between releases, and name operators of torch alone; they
are written with an empty body.

python -m benchmarks.torch_macros   # of the torch that runs it
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from opschema_cli.source.preprocessor import Macro, read_directives
from opschema_cli.source.text import Span
from opschema_rules.torchlib.cpp_macros import TYPE_LISTS

TYPES = ("torch/headeronly/core/ScalarType.h", "c10/core/ScalarType.h")
OPERATORS = ("ATen/autocast_mode.h",)


def read(include: Path) -> list[Macro]:
    """The lists in a folder of headers; releases before 2.9 have those of types in the second of these headers."""
    types = [
        Macro(item.name, item.parameters, " ".join(item.body.split()), Span(0, 0)) for item in _lists(include, TYPES)
    ]
    return types + [Macro(item.name, item.parameters, "", Span(0, 0)) for item in _lists(include, OPERATORS)]


def _lists(include: Path, headers: Iterable[str]) -> list[Macro]:
    texts = [path.read_text(encoding="utf-8") for name in headers if (path := include / name).is_file()]
    return [macro for text in texts for macro in read_directives(text).macros if macro.name.startswith("AT_FORALL_")]


def main() -> None:
    """Write the table.

    Raises:
        SystemExit: torch is not installed.
    """
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise SystemExit("torch is not installed")
    lines = [msgspec.json.encode(macro).decode() for macro in read(Path(spec.origin).with_name("include"))]
    TYPE_LISTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()

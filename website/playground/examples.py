"""The examples of the page: small workspaces with a fault, one for each pack."""

from __future__ import annotations

from pathlib import Path

import msgspec

FOLDER = Path(__file__).with_name("examples")

TITLES = {
    "tileops": "A manifest entry and its op (TileOPs)",
    "torchlib": "Operators of torch.library",
    "aten": "native_functions.yaml (PyTorch)",
    "magi": "A function under MagiCompiler",
    "flydsl": "A FlyDSL kernel",
    "pypto": "An entry in pypto's language",
    "executorch": "An operator list of ExecuTorch",
    "paddle": "Operator YAML of PaddlePaddle",
}


class Example(msgspec.Struct, frozen=True):
    """A workspace to start from: its pack, a title, and its files by path."""

    pack: str
    title: str
    files: dict[str, str]


def examples() -> list[Example]:
    """All examples."""
    return [Example(pack, title, _files(FOLDER / pack)) for pack, title in TITLES.items()]


def _files(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}

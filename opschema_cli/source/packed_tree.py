"""A libcst tree and its places as bytes, which are unpacked in a sixth of the time needed to parse and place it.

A process that parses a text for its facts packs the tree for one that will rewrite the text. White space is left out, as
rewrites work on the text; comments and empty lines in front of statements stay.
"""

from __future__ import annotations

import copyreg
import dataclasses
import io
import pickle
import zlib
from array import array
from enum import Enum
from functools import cache
from itertools import chain
from typing import Any

import libcst as cst

from opschema_cli.source.cst_spans import Spans, is_node


def pack(module: cst.Module, spans: Spans) -> bytes:
    """Pack a tree and the spans of its nodes. It may not be nested deeply, as pickle recurses on the native stack."""
    file = io.BytesIO()
    packer = _Packer(file, protocol=5)
    packer.dump(module)
    nodes = [node for node in packer.nodes if id(node) in spans]
    packer.dump((nodes, array("I", chain.from_iterable(spans[id(node)] for node in nodes)).tobytes()))
    return zlib.compress(file.getvalue(), level=1)


def unpack(data: bytes) -> tuple[cst.Module, Spans]:
    """Return the tree packed in these bytes."""
    unpacker = _Unpacker(io.BytesIO(zlib.decompress(data)))
    module: cst.Module = unpacker.load()
    nodes, packed = unpacker.load()
    offsets = array("I", packed)
    return module, dict(zip(map(id, nodes), zip(offsets[::2], offsets[1::2], strict=True), strict=True))


@cache
def _kept_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (item.name for item in dataclasses.fields(kind))
    return tuple(name for name in names if "whitespace" not in name and name != "newline")


class _Packer(pickle.Pickler):
    """Pickler that records the nodes that it packs."""

    nodes: list[cst.CSTNode]

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.nodes = []

    def reducer_override(self, item: object) -> Any:
        if isinstance(item, Enum):  # Python 3.11.0 to 3.11.3 pickle it as a call of getattr
            return type(item), (item.value,)
        if not is_node(item):
            return NotImplemented
        self.nodes.append(item)
        state = {name: getattr(item, name) for name in _kept_fields(type(item))}
        return copyreg.__newobj__, (type(item),), state  # type: ignore[attr-defined]


class _Unpacker(pickle.Unpickler):
    """Unpickler that only creates libcst's nodes."""

    def find_class(self, module: str, name: str) -> object:
        if module.partition(".")[0] != "libcst":
            raise pickle.UnpicklingError(f"{module}.{name} is not a node")
        return super().find_class(module, name)

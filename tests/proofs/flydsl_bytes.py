"""The bytes of buffer descriptors, computed from a program that FlyDSL has lowered to LLVM's dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONSTANT = re.compile(r"(%\w+) = llvm\.mlir\.constant\((-?\d+) :")
_SIZE = re.compile(r"(%\w+) = llvm\.extractvalue %arg\d+\[(\d+), (\d+)\]")
_EXTENDED = re.compile(r"(%\w+) = llvm\.[sz]ext (%\w+)")
_COMPUTED = re.compile(r"(%\w+) = llvm\.(add|sub|mul) (%\w+), (%\w+)")
_DESCRIPTOR = re.compile(r"rocdl\.make\.buffer\.rsrc %\w+, %\w+, (%\w+),")


def described(program: str, shape: Sequence[int], strides: Sequence[int]) -> list[int | None]:
    """The bytes of each descriptor for tensors of one shape; None where something else decides them."""
    values: dict[str, int | None] = {}
    found: list[int | None] = []
    for line in program.splitlines():
        if match := _CONSTANT.search(line):
            values[match[1]] = int(match[2])
        elif match := _SIZE.search(line):
            values[match[1]] = (shape, strides)[int(match[2])][int(match[3])]
        elif match := _EXTENDED.search(line):
            values[match[1]] = values.get(match[2])
        elif match := _COMPUTED.search(line):
            values[match[1]] = _computed(match[2], values.get(match[3]), values.get(match[4]))
        elif match := _DESCRIPTOR.search(line):
            found.append(values.get(match[1]))
    return found


def _computed(name: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    return left + right if name == "add" else left - right if name == "sub" else left * right

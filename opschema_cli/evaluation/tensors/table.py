"""The table of torch's functions: parameters, shape semantics and dtype rule of each overload.

``python -m benchmarks.torch_shapes`` writes it from an installed torch. A signature is written
``input:T dim:I1?=None * dtype:d?=None``: name, type and default, with the types of :data:`CODES`.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import msgspec

from opschema_cli.installed_tables import installed_table

TABLE = Path(__file__).with_name("torch.json")

CODES = {
    "T": "a tensor",
    "L": "a list of tensors",
    "i": "an int",
    "I": "a list of ints",
    "b": "a bool",
    "n": "a number",
    "f": "a float",
    "s": "a string",
    "d": "a dtype",
    "o": "what has no influence: a device, a layout, a memory format, a generator",
}
"""Parameter types. ``I1`` also accepts a single int; ``?`` after a type accepts None."""


class _Required:
    """Type of :data:`REQUIRED`."""


REQUIRED = _Required()
"""Default of a parameter that has none."""


class Param(msgspec.Struct, frozen=True):
    """A parameter of an overload."""

    name: str
    code: str
    optional: bool
    default: object
    keyword_only: bool


class Overload(msgspec.Struct, frozen=True, array_like=True):
    """An overload: the index of its signature, its semantics, the rule of its dtypes, and a dtype map for each result."""

    signature: int
    shape: str
    dtype: str
    maps: tuple[int, ...]


class Table(msgspec.Struct, frozen=True, dict=True):
    """The table of one release of torch.

    A map gives a letter for each of ``dtypes``: that of the dtype that comes out, ``-`` for none. ``promotion`` is such a
    map for each dtype: what it and another one are promoted to.
    """

    torch: str
    dtypes: tuple[str, ...]
    aliases: dict[str, str]
    promotion: tuple[str, ...]
    maps: tuple[str, ...]
    signatures: tuple[str, ...]
    functions: str
    """Names of functions under ``torch.``, separated by spaces."""
    methods: str
    operators: dict[str, tuple[Overload, ...]]
    limits: dict[str, dict[str, int | float]]
    """The attributes of ``torch.finfo`` or ``torch.iinfo`` of each dtype that has them."""

    def mapped(self, text: str, dtype: str | None) -> str | None:
        """Return the dtype that a map gives for a dtype; None if it is not known."""
        if len(set(text) - {"-"}) == 1 and dtype is None:
            return self.dtypes[ord(max(text)) - ord("A")]
        if dtype not in self.dtypes:
            return None
        letter = text[self.dtypes.index(dtype)]
        return None if letter == "-" else self.dtypes[ord(letter) - ord("A")]


@cache
def torch_table() -> Table:
    """The table.

    Raises:
        OpschemaError: its file is missing or damaged.
    """
    return installed_table(TABLE, Table)


@cache
def parsed_signature(text: str) -> tuple[Param, ...]:
    """The parameters of a signature."""
    found, keyword_only = [], False
    for word in text.split():
        if word == "*":
            keyword_only = True
            continue
        name, _, rest = word.partition(":")
        code, equals, default = rest.partition("=")
        value = ast.literal_eval(default) if equals else REQUIRED
        found.append(Param(name, code.rstrip("?"), code.endswith("?"), value, keyword_only))
    return tuple(found)

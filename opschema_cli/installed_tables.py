"""Tables that are installed with opschema and its packs."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from opschema_cli.errors import OpschemaError

T = TypeVar("T")


def installed_table(path: Path, kind: type[T], *, compressed: bool = False) -> T:
    """The content of a table.

    Raises:
        OpschemaError: the file is missing or damaged.
    """
    try:
        content = path.read_bytes()
        return msgspec.json.decode(zlib.decompress(content) if compressed else content, type=kind)
    except (OSError, zlib.error, msgspec.DecodeError, RecursionError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error)
        raise OpschemaError(f"{path}: this part of opschema cannot be read ({text}); install opschema again") from None

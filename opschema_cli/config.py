"""Configuration: ``[tool.opschema]`` in pyproject.toml, or opschema.toml, checked key by key."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from opschema_cli.errors import OpschemaError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Level = Literal["info", "warning", "error"]
T = TypeVar("T", bound=msgspec.Struct)


class Config(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings a workspace may make.

    ``select`` and ``ignore`` take codes, code prefixes (``SIG``) and names; ``per_file_ignores`` maps globs to such lists;
    ``severity`` maps a code or name to a level; ``exclude`` are gitignore patterns; ``plugins`` are Python files
    (relative to the root) or modules with a ``PACK``; ``packs`` limits the packs; ``rules`` holds rule options.
    """

    select: list[str] = []
    ignore: list[str] = []
    per_file_ignores: dict[str, list[str]] = {}
    severity: dict[str, Level] = {}
    fail_on: Level = "error"
    exclude: list[str] = []
    baseline: str = ""
    plugins: list[str] = []
    packs: list[str] = []
    rules: dict[str, dict[str, Any]] = {}
    pack_options: dict[str, dict[str, Any]] = {}


def load_config(root: Path, pack_names: Iterable[str] = ()) -> tuple[Config, Path | None]:
    """The configuration of the workspace at ``root`` and the file it comes from.

    A table named after a pack (``[tool.opschema.tileops]``) holds that pack's options.

    Raises:
        OpschemaError: the file cannot be read, or a key or value is wrong; the message names it.
    """
    for path, table in ((root / "opschema.toml", None), (root / "pyproject.toml", "opschema")):
        if path.is_file():
            data = _read(path)
            found = data if table is None else data.get("tool", {}).get(table)
            if found is not None:
                return _convert(found, path, set(pack_names)), path
    return Config(), None


def _read(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return data
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OpschemaError(f"{path}: {error}") from None


def _convert(data: object, path: Path, packs: set[str]) -> Config:
    if not isinstance(data, dict):
        raise OpschemaError(f"{path}: `tool.opschema` must be a table")
    known = {field.encode_name for field in msgspec.structs.fields(Config)} - {"pack-options"}
    options = {key: value for key, value in data.items() if isinstance(value, dict) and key not in known}
    plain = {key: value for key, value in data.items() if key not in options}
    check_keys(data, known | packs, f"{path}: ")
    return convert({**plain, "pack-options": options}, Config, f"{path}: ")


def check_keys(data: Mapping[str, object], known: Iterable[str], where: str) -> None:
    """Refuse unknown keys, with a suggestion.

    Raises:
        OpschemaError: naming the first unknown key.
    """
    known = sorted(known)
    for key in data:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean `{close[0]}`?" if close else f"; known keys: {', '.join(known) or 'none'}"
            raise OpschemaError(f"{where}unknown key `{key}`{hint}")


def convert(data: object, kind: type[T], where: str) -> T:
    """``data`` as a typed struct.

    Raises:
        OpschemaError: naming the key that is wrong.
    """
    if isinstance(data, dict):
        fields = msgspec.structs.fields(kind)
        check_keys(data, [field.encode_name for field in fields], where)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise OpschemaError(f"{where}{error}") from None

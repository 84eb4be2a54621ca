"""Configuration: ``[tool.opschema]`` in pyproject.toml, or opschema.toml, checked key by key."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from opschema_cli import __version__
from opschema_cli.cache import Cache, decoded
from opschema_cli.config_places import WordError, placed
from opschema_cli.errors import OpschemaError
from opschema_cli.regular_files import content_digest, read_regular
from opschema_cli.root import leads_out
from opschema_cli.suggestions import did_you_mean, near_name

Level = Literal["info", "warning", "error"]
T = TypeVar("T", bound=msgspec.Struct)


class VerifyConfig(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``recipe`` is a Python file, relative to the root, that says of ops what their declarations cannot. ``imports`` register
    operators: modules, or files and folders of built extensions, relative to the root.
    """

    recipe: str = ""
    imports: list[str] = []


PRIVATE = ("test/", "tests/", "testing/", "example/", "examples/", "benchmark/", "benchmarks/", "docs/", "tutorials/")
"""Folders whose operators are not part of a public API."""


class Allowance(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A breaking change that is accepted: the name of the ``operator``, which may have ``*``, the ``kind`` of the change (all if it
    is empty), the ``reason``, and the day from which on it counts again: ``2027-01-31``.
    """

    operator: str
    reason: str
    expires: str
    kind: str = ""


class DiffConfig(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``level`` decides which changes are breaking. ``main-branch`` is compared with by default. ``private`` are gitignore patterns
    of files whose operators are not compared, ``allow`` the accepted changes.
    """

    level: Literal["schema", "callers", "serialised"] = "callers"
    main_branch: str = ""
    private: tuple[str, ...] = PRIVATE
    allow: list[Allowance] = []


class Config(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings a workspace may make.

    ``select`` and ``ignore`` take codes, code prefixes (``SIG``) and names; ``per-file-ignores`` maps globs to such lists;
    ``severity`` maps a code or name to a level; ``exclude`` are gitignore patterns; ``plugins`` are Python files
    (relative to the root) with a ``PACK``; ``packs`` limits the packs; ``preview`` runs preview rules, too;
    ``required-version`` are the versions of opschema that may lint here (``>=0.2,<0.4``); ``rules`` holds rule options,
    ``verify`` those of ``opschema verify``, ``diff`` those of ``opschema diff``. ``file`` is the path of the file that makes
    them, empty without one.
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
    preview: bool = False
    required_version: str = ""
    rules: dict[str, dict[str, Any]] = {}
    verify: VerifyConfig = VerifyConfig()
    diff: DiffConfig = DiffConfig()
    pack_options: dict[str, dict[str, Any]] = {}
    file: str = ""

    def placed(self, word: str | None = None) -> AbstractContextManager[None]:
        """Begin the messages of errors with the place of a word in the file: see :func:`~opschema_cli.config_places.placed`."""
        return placed(self.file, word)

    @property
    def unplaced(self) -> Config:
        """Return the same settings, without their place."""
        return msgspec.structs.replace(self, file="")


NO_KEYS = ("pack-options", "file")
"""The fields of :class:`Config` that no file may set."""

KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(Config)).difference(NO_KEYS)
"""The keys that are not a pack's."""


_KIND = "config"


class _Known(msgspec.Struct, array_like=True):
    """The configuration in a file; None if it has none."""

    table: Any


def load_config(
    root: Path, cache: Cache | None = None, texts: Mapping[Path, str] | None = None
) -> tuple[Config, Path | None]:
    """The configuration of the workspace at ``root`` and the file it comes from; ``cache`` remembers what files say, ``texts``
    replace files.

    Tables with other names (``[tool.opschema.tileops]``) are taken for the options of packs.

    Raises:
        OpschemaError: the file cannot be read, or a key or value is wrong; the message names it.
    """
    for path, table in ((root / "opschema.toml", None), (root / "pyproject.toml", "opschema")):
        if path in (texts or {}) or path.is_file() or (table is None and path.is_symlink()):
            _check_inside(path, root)
            found = _said(path, table, cache or Cache(None), texts or {})
            if found is not None:
                check_version(found.required_version, path)
                return found, path
    return Config(), None


def check_version(required: str, path: Path) -> None:
    """Refuse a workspace that requires another version of opschema.

    Raises:
        OpschemaError: it does, or the specifiers are malformed; ``path`` is the file that has them.
    """
    if not required:
        return
    # Not at the top: few configurations ask for a version.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        suits = SpecifierSet(required).contains(__version__, prereleases=True)
    except InvalidSpecifier:
        raise OpschemaError(
            f'{path}: `required-version`: {required!r} is not a version specifier; write it as ">=0.2,<0.4"'
        ) from None
    if not suits:
        raise OpschemaError(
            f"{path}: `required-version` is {required!r}, and this is opschema {__version__}; install a version that suits, "
            "in pre-commit by its `rev`"
        )


def _check_inside(path: Path, root: Path) -> None:
    if leads_out(path, root):
        hint = "put the settings into a file of the tree" if path.name == "opschema.toml" else "write an opschema.toml"
        raise OpschemaError(f"{path} is a link that leads out of {root}, so it is not read; {hint}")


def _said(path: Path, table: str | None, cache: Cache, texts: Mapping[Path, str]) -> Config | None:
    """Return the configuration in a file, or in its table ``tool.<table>``; None if there is none."""
    try:
        data = texts[path].encode("utf-8", "surrogatepass") if path in texts else read_regular(path)
    except OSError as error:
        raise OpschemaError(f"{path}: {error}") from None
    key = f"{table}/{content_digest(data)}"
    known = decoded(cache.get(_KIND, [key]).get(key), _Known)
    if known is None:
        parsed = _parsed(path, data)
        tool = parsed.get("tool")
        known = _Known(parsed if table is None else tool.get(table) if isinstance(tool, dict) else None)
        with suppress(OverflowError, RecursionError):  # what it holds is larger than what is kept
            stored = msgspec.msgpack.encode(known)
            if repr(decoded(stored, _Known)) == repr(known):  # a date becomes a text, a time that of another zone
                cache.put(_KIND, {key: stored})
    with placed(str(path), "", text=data.decode(errors="replace")):
        return _convert(known.table, path) if known.table is not None else None


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    # Not at the top: what a file said before is remembered.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        found: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OpschemaError(f"{path}: {error}") from None
    except RecursionError:
        raise OpschemaError(f"{path}: it nests too deeply") from None
    return found


def _convert(data: object, path: Path) -> Config:
    if not isinstance(data, dict):
        raise OpschemaError("`tool.opschema` must be a table")
    if path.name == "opschema.toml" and isinstance(data.get("tool"), dict):
        raise OpschemaError(
            "`[tool.opschema]` is for pyproject.toml; in opschema.toml write its keys at the top level, and a table "
            "such as `[tool.opschema.rules]` as `[rules]`"
        )
    options = {key: value for key, value in data.items() if isinstance(value, dict) and key not in KEYS}
    plain = {key: value for key, value in data.items() if key not in options}
    check_keys(plain, KEYS)
    return convert({**plain, "pack-options": options, "file": str(path)}, Config)


def check_keys(data: Mapping[str, object], known: Iterable[str], where: str = "") -> None:
    """Refuse unknown keys, with a suggestion.

    Raises:
        WordError: naming the first unknown key.
    """
    known = sorted(known)
    for key in data:
        if key not in known:
            hint = did_you_mean(near_name(key, known)) or f"; known keys: {', '.join(known) or 'none'}"
            raise WordError(f"{where}unknown key `{key}`{hint}", key)


def convert(data: object, kind: type[T], where: str = "", *, strict: bool = True) -> T:
    """``data`` as a typed struct; unless ``strict``, numbers and truth values may be written as strings.

    Raises:
        WordError: naming the key that is wrong.
    """
    _check_table(data, kind, where)
    try:
        return msgspec.convert(data, kind, strict=strict)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        key = place.rstrip("`")
        choices = ", ".join(f"`{choice}`" for choice in _choices(kind, key.partition("[")[0]))
        hint = f"; choose {choices}" if choices else ""
        message = f"{where}{f'`{key}`: ' if key else ''}{reason}{hint}"
        raise WordError(message, key.partition("[")[0].rpartition(".")[2]) from None


def _check_table(data: object, kind: type[msgspec.Struct], where: str) -> None:
    """Check the keys of a table, and of the tables in it that have known keys."""
    if not isinstance(data, dict):
        return
    fields = msgspec.structs.fields(kind)
    check_keys(data, [field.encode_name for field in fields], where)
    for field in fields:
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            _check_table(data.get(field.encode_name), field.type, f"{where}{field.encode_name}: ")


def _choices(kind: type, key: str) -> Sequence[object]:
    """Return the words that a key, or each entry of its table or list, may have; empty if it is not such a key."""
    import msgspec.inspect

    field = next((field for field in msgspec.structs.fields(kind) if field.encode_name == key), None)
    if field is None:
        return ()
    found = msgspec.inspect.type_info(field.type)
    inner = getattr(found, "value_type", None) or getattr(found, "item_type", found)
    return inner.values if isinstance(inner, msgspec.inspect.LiteralType) else ()

"""The result file: JSON lines, one for the planned run and one for each cell, so that shards can be merged.

A file is written by one process, line by line; a run that is killed leaves what it had. Numbers that JSON lacks are strings
there: ``"inf"``, ``"-inf"``, ``"nan"``.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import msgspec

from opschema_cli import __version__
from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import CellResult, Plan, Verdict

FORMAT = 1

VERDICTS: tuple[Verdict, ...] = (
    "unchanged",
    "within-tolerance",
    "regression",
    "wrong-already",
    "crashed",
    "not-checked",
)

FAILED: frozenset[Verdict] = frozenset({"regression", "crashed"})
"""The verdicts that fail a run."""


def finding_lines(result: CellResult) -> list[str]:
    """Return the findings of a cell, one line each: sides, check, message. A finding of both sides is one line. A finding of the
    side after is left out if the reason already contains it.
    """
    sides: dict[str, list[str]] = {}
    for finding in result.findings:
        sides.setdefault(f"{finding.check}: {finding.message}", []).append(finding.side)
    return [
        f"{' and '.join(dict.fromkeys(found))}: {text}"
        for text, found in sides.items()
        if "after" not in found or text not in result.reason
    ]


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tree that was run: how the user calls it, and the ``commit`` whose files it holds. Where they are no commit's,
    ``content`` is their digest.
    """

    name: str
    commit: str = ""
    content: str = ""

    @property
    def key(self) -> str:
        """The identity of the version, whatever it is called."""
        return self.commit or self.content


class Header(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="run"):
    """The header of a result file: ``run`` identifies all cells of all shards, ``cells`` are those of this one. ``renamed`` maps
    current names of ops to earlier ones; ``notes`` are caveats about the results.
    """

    format: int = FORMAT
    run: str
    shard: int
    shards: int
    total: int
    before: Version | None
    after: Version
    device: str
    cells: tuple[str, ...]
    renamed: dict[str, str] = {}
    notes: tuple[str, ...] = ()

    def called(self, op: str) -> str:
        """The name of an op in reports, with the name that it had before."""
        return f"{op} (was {self.renamed[op]})" if op in self.renamed else op


class _Line(CellResult, frozen=True, kw_only=True, tag_field="kind", tag="cell"):
    pass


class Results(msgspec.Struct):
    """The results of a run: its header and a result for each of its cells.

    ``errors`` are failures of the harness itself, ``lacks`` what is missing from merged results. ``stopped`` is set
    if the run ended with its first failure, and ``unwritten`` says which files of the run could not be written.
    """

    header: Header
    cells: dict[str, CellResult] = msgspec.field(default_factory=dict)
    errors: list[str] = msgspec.field(default_factory=list)
    lacks: list[str] = msgspec.field(default_factory=list)
    stopped: bool = False
    unwritten: list[str] = msgspec.field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """Cells that were to be run and have no result."""
        return [cell for cell in self.header.cells if cell not in self.cells]

    @property
    def failed(self) -> bool:
        """Whether a cell failed, or has no result, or a shard is missing."""
        return bool(self.missing or self.lacks) or any(cell.verdict in FAILED for cell in self.cells.values())

    @property
    def unimported(self) -> list[str]:
        """Return the ops that could not be imported on one of the sides."""
        return list(dict.fromkeys(cell.op for cell in self.cells.values() if cell.unimported))

    @property
    def unchecked_ops(self) -> list[str]:
        """Return the ops without any checked cell."""
        ops = dict.fromkeys(cell.op for cell in self.cells.values())
        checked = {cell.op for cell in self.cells.values() if cell.verdict != "not-checked"}
        return [op for op in ops if op not in checked]

    @property
    def unchecked(self) -> bool:
        """Whether there were cells to run and nothing was checked."""
        return bool(self.cells) and all(cell.verdict == "not-checked" for cell in self.cells.values())

    def counts(self) -> Counter[Verdict]:
        """The number of cells with each verdict."""
        return Counter(cell.verdict for cell in self.cells.values())

    def by_op(self) -> Mapping[str, Sequence[CellResult]]:
        """The cells of each op, in the order in which they ran."""
        found: dict[str, list[CellResult]] = {}
        for cell in self.cells.values():
            found.setdefault(cell.op, []).append(cell)
        return found


def run_key(plans: Iterable[Plan], before: Version | None, after: Version, renamed: Mapping[str, str]) -> str:
    """Return the identity of a run: its cells with their calls, and the compared trees."""
    digest = hashlib.blake2b(__version__.encode(), digest_size=12)
    digest.update(msgspec.msgpack.encode((before.key if before else None, after.key, sorted(renamed.items()))))
    for plan in plans:
        digest.update(msgspec.msgpack.encode((plan.op, plan.cells, plan.unplanned, plan.removed)))
    return digest.hexdigest()


def to_json(data: object) -> bytes:
    """Return structs and their containers as JSON, with strings for numbers that JSON does not support."""
    return msgspec.json.encode(_plain(msgspec.to_builtins(data)))


def result_from_json(data: str) -> CellResult:
    """A result that :func:`to_json` wrote."""
    return msgspec.json.decode(data, type=CellResult, strict=False)


def _plain(data: object) -> object:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def _line(result: CellResult) -> _Line:
    return _Line(**msgspec.structs.asdict(result))


class Writer:
    """Writes a file of results; each line is flushed."""

    def __init__(self, path: Path, header: Header, earlier: Iterable[CellResult] = ()) -> None:
        """Begin a file, with the results of an ``earlier`` run in place of those that it has; they are never lost.

        Raises:
            OpschemaError: it cannot be written.
        """
        lines = [to_json(header), *(to_json(_line(result)) for result in earlier)]
        fresh = path.with_name(f"{path.name}.new")
        try:
            place = fresh if len(lines) > 1 else path
            place.write_bytes(b"".join(line + b"\n" for line in lines))
            if place != path:
                place.replace(path)
            self._stream: TextIO = path.open("a", encoding="utf-8")
        except OSError as error:
            raise OpschemaError(f"{path} cannot be written: {error.strerror or error}") from None

    def add(self, result: CellResult) -> None:
        """Write one result.

        Raises:
            OpschemaError: it cannot be written.
        """
        self._put(_line(result))

    def _put(self, line: msgspec.Struct) -> None:
        try:
            self._stream.write(to_json(line).decode() + "\n")
            self._stream.flush()
        except OSError as error:
            raise OpschemaError(f"{self._stream.name} cannot be written: {error.strerror or error}") from None

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):  # what is lost was told when it was written
            self._stream.close()


def read_results(path: Path) -> Results:
    """A file of results.

    Raises:
        OpschemaError: it cannot be read, or is none.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise OpschemaError(f"{path} cannot be read: {error.strerror or error}") from None
    decoder = msgspec.json.Decoder(Header | _Line, strict=False)
    found: Results | None = None
    for number, line in enumerate(lines, 1):
        try:
            item = decoder.decode(line)
        except msgspec.DecodeError as error:
            if number == len(lines) and found is not None:
                break  # a killed run leaves half a line
            raise OpschemaError(f"{path}:{number}: this is not a result of `opschema verify`: {error}") from None
        if isinstance(item, Header):
            if found is not None or item.format != FORMAT:
                raise OpschemaError(f"{path}:{number}: this is not a result of this version of `opschema verify`")
            found = Results(item)
        elif found is None:
            raise OpschemaError(f"{path}:{number}: the header line is missing")
        else:
            found.cells[item.id] = CellResult(**msgspec.structs.asdict(item))
    if found is None:
        raise OpschemaError(f"{path}: this is not a result of `opschema verify`: it is empty")
    return found


def difference(one: Header, other: Header) -> str:
    """Describe how the headers of two runs differ."""
    for side, here, there in (("before", one.before, other.before), ("after", one.after, other.after)):
        if (here.key if here else "") != (there.key if there else ""):
            return f"the tree {side} is {_called(here)} in one and {_called(there)} in another"
    if one.shards != other.shards:
        return f"one is of {one.shards} shards, another of {other.shards}"
    return "they have other cells"


def _called(version: Version | None) -> str:
    if version is None:
        return "missing"
    return f"`{version.name}` ({'commit' if version.commit else 'content'} {version.key[:12]})"


def merge(parts: Sequence[Results]) -> tuple[Results, list[str]]:
    """Merge the results of all shards. Also return what is missing for the entire run: shards and cells.

    Raises:
        OpschemaError: they are not of one run, or a shard is there twice.
    """
    first = parts[0].header
    for part in parts:
        if (part.header.run, part.header.shards) != (first.run, first.shards):
            raise OpschemaError(f"the results are not of one run: {difference(first, part.header)}")
    shards = Counter(part.header.shard for part in parts)
    twice = [number for number, count in shards.items() if count > 1]
    if twice:
        raise OpschemaError(f"shard {twice[0]} of {first.shards} is given twice")
    ordered = sorted(parts, key=lambda part: part.header.shard)
    devices = ", ".join(dict.fromkeys(part.header.device for part in ordered))
    cells = tuple(cell for part in ordered for cell in part.header.cells)
    header = msgspec.structs.replace(first, shard=1, shards=1, device=devices, cells=cells)
    whole = Results(header, {name: cell for part in ordered for name, cell in part.cells.items()})
    lacks = [
        f"shard {number} of {first.shards} is missing" for number in range(1, first.shards + 1) if not shards[number]
    ]
    lacks += [f"{cell} has no result" for cell in whole.missing]
    if not lacks and len(cells) != first.total:
        lacks = [f"the run has {first.total} cells, the shards {len(cells)}"]
    whole.lacks = lacks
    return whole, lacks

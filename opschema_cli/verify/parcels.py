"""Trees as they travel to other machines: packed, identified by their content, and unpacked once on each.

A parcel has every file of a tree that an op may need, those that git ignores too, such as built extensions. It is the same for
the same files, whatever their times and owners.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import Target
from opschema_cli.verify.run import Run
from opschema_cli.verify.sides import LEFT_OUT, unpack


class Parcel(msgspec.Struct, frozen=True):
    """A packed tree: the name of its folder, the digest of its content, and the tar file."""

    name: str
    digest: str
    data: bytes


def pack(root: Path) -> Parcel:
    """Pack a tree.

    Raises:
        OpschemaError: a file cannot be read.
    """
    buffer = io.BytesIO()
    try:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path in _files(root):
                archive.add(path, path.relative_to(root).as_posix(), recursive=False, filter=_plain)
    except OSError as error:
        raise OpschemaError(f"{root} cannot be sent to the cluster: {error}") from None
    data = buffer.getvalue()
    return Parcel(root.name, hashlib.blake2b(data, digest_size=16).hexdigest(), data)


def _files(root: Path) -> Iterator[Path]:
    """The files and links of a tree, in one order."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in sorted([*files, *links]):
            path = Path(folder, name)
            if path.is_symlink() or path.is_file():
                yield path


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without the metadata that differs between copies of one tree."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


def unpacked(parcel: Parcel, folder: Path) -> Path:
    """The tree of a parcel below ``folder``; unpacked unless it is there already.

    Raises:
        OpschemaError: it cannot be unpacked.
    """
    place = folder / parcel.digest
    if not place.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=folder))
        try:
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".tar") as packed:
                packed.write(parcel.data)
                packed.flush()
                tree = fresh / parcel.name
                tree.mkdir()
                unpack(Path(packed.name), tree)
            try:
                fresh.rename(place)
            except OSError:  # another process was faster
                shutil.rmtree(fresh)
        except OSError as error:
            raise OpschemaError(f"a tree cannot be unpacked on a node of the cluster: {error}") from None
    return place / parcel.name


def roots(run: Run) -> list[str]:
    """The folders of the trees of a run."""
    targets = [*(plan.target for plan in run.plans), *run.before.values()]
    return list(dict.fromkeys(target.root for target in targets))


def moved(run: Run, places: Mapping[str, Path]) -> Run:
    """The run with its trees in other places, by the folders that they had."""
    plans = tuple(msgspec.structs.replace(plan, target=_moved(plan.target, places)) for plan in run.plans)
    before = {op: _moved(target, places) for op, target in run.before.items()}
    return msgspec.structs.replace(run, plans=plans, before=before)


def _moved(target: Target, places: Mapping[str, Path]) -> Target:
    """Return the target in another place. Paths outside the trees must exist on every node."""
    imports = tuple(_moved_path(path, places) for path in target.imports)
    recipe = _moved_path(target.recipe, places)
    return msgspec.structs.replace(target, root=str(places[target.root]), recipe=recipe, imports=imports)


def _moved_path(path: str, places: Mapping[str, Path]) -> str:
    for root, place in places.items():
        if os.path.isabs(path) and os.path.commonpath([path, root]) == root:
            return str(place / os.path.relpath(path, root))
    return path

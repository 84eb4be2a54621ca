"""Detects that a tree holds TileOPs-style manifests, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.pack import Speed
from opschema_cli.project import Project
from opschema_cli.readings import Reading
from opschema_rules.shipped import shipped_pack

_MARKS = {
    word: re.compile(rb"(?:^|[\s{,])['\"]?" + word + rb"['\"]?\s*:")
    for word in (b"signature", b"roofline", b"workloads")
}


class TileopsOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``manifests`` are folders or files to read beside those found by content; ``spec`` lists demands of the manifest
    specification that hold whatever the tree's own documents say (``latest`` for all).
    """

    manifests: list[str] = []
    spec: list[str] = []


def manifest_files(project: Project, options: TileopsOptions) -> dict[str, list[str]]:
    """Manifest files by folder."""
    found: dict[str, list[str]] = {}
    for path in _manifests(project):
        found.setdefault(path.rpartition("/")[0] or ".", []).append(path)
    for place in options.manifests:
        if project.workspace.is_file(place):
            found.setdefault(place.rpartition("/")[0] or ".", []).append(place)
        else:
            found.setdefault(place.rstrip("/"), [])
    for folder, paths in found.items():
        if len(paths) != 1 or folder.rpartition("/")[2] == "manifest" or folder in options.manifests:
            siblings = project.workspace.under(folder)
            paths += [path for path in siblings if path.endswith(".yaml") and path.rpartition("/")[0] == folder]
    return {folder: sorted(set(paths)) for folder, paths in sorted(found.items()) if paths}


def _looks_like_manifest(data: bytes) -> bool:
    data = data.replace(b"\0", b"")  # of UTF-16
    return all(word in data and mark.search(data) is not None for word, mark in _MARKS.items())


_IS_MANIFEST = Reading("tileops manifests", _looks_like_manifest, bool)


def _manifests(project: Project) -> Iterator[str]:
    paths = (path for path in project.workspace.files if path.endswith((".yaml", ".yml")))
    return (path for path, found in project.scan(_IS_MANIFEST, paths) if found)


def detect(project: Project, options: TileopsOptions) -> bool:
    """Whether the workspace holds a manifest."""
    return any(True for _ in _manifests(project)) or bool(options.manifests and manifest_files(project, options))


_OP = re.compile(rb"\bop:\s*['\"]?((?:[\w.-]+/)*[\w.-]+\.py)\b")
_NAMED: Reading[bytes, list[str]] = Reading(
    "tileops op files", lambda data: sorted({path.decode("ascii", "replace") for path in _OP.findall(data)}), list[str]
)


def reads(project: Project, options: TileopsOptions) -> Iterator[str]:
    """The Python files in and below the folders of those that manifests name as `op`, found in the text of the manifests."""
    named = {path for _, paths in project.scan(_NAMED, _manifests(project)) for path in paths}
    names = {path.rpartition("/")[2] for path in named}
    files = [path for path in project.workspace.files if path.rpartition("/")[2] in names]
    folders = {path.rpartition("/")[0] for path in files if any(f"/{path}".endswith(f"/{name}") for name in named)}
    tops = {folder for folder in folders if not any(folder.startswith(f"{other}/") for other in folders)}
    yield from (path for folder in sorted(tops) for path in project.workspace.under(folder or ".", ".py"))


def claims(project: Project, options: TileopsOptions, path: str) -> bool:
    """Whether a file is a manifest, by its content, its folder or the configuration."""
    return any(path in paths for paths in manifest_files(project, options).values())


LAZY_PACK = shipped_pack(__name__, detect, TileopsOptions, claims, speed=Speed(reads))

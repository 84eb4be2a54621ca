"""Detects that a tree holds TileOPs-style manifests, without importing the rest of the pack."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

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


def claims(project: Project, options: TileopsOptions, path: str) -> bool:
    """Whether a file is a manifest, by its content, its folder or the configuration."""
    return any(path in paths for paths in manifest_files(project, options).values())


LAZY_PACK = shipped_pack(__name__, detect, TileopsOptions, claims)

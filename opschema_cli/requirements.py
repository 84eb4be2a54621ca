"""The release of a distribution that a tree is for, by its requirement files: `torch>=2.4,<2.7` is for 2.6.

A release is a major and a minor version. Packs hold tables for the releases that they know; where a tree requires another
one, the release says so in ``doubt``, and findings that rest on tables are warnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from opschema_cli.readings import Reading
from opschema_cli.workspace import Workspace

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from opschema_cli.project import Project

Version: TypeAlias = tuple[int, int]

_FILES = re.compile(
    r"(?P<folder>(?:.*/)??)"
    r"(?:requirements[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|setup\.(?:py|cfg)|pyproject\.toml)\Z"
)
_SPECIFIERS = r"(?:(?:===|[<>~!=]=|[<>])[ \t]*v?\d[\w.*+!-]*[ \t]*,?[ \t]*)+"
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_COMMAND = re.compile(r"\b(?:pip3?|conda|mamba)[ \t]+install\b[^\n\"']*")
_LOCAL = re.compile(r"\+[\w.]+")
_POETRY = r"""(?mi)^[ \t]*["']?{name}["']?[ \t]*=[ \t]*(?:\{{[^}}\n]*\bversion[ \t]*=[ \t]*)?["']([^"']+)["']"""
_POETRY_VERSION = re.compile(r"(\^|~|)(\d+(?:\.\d+)*)\Z")
_BOUND = re.compile(r"(>=|~=|===?|>|<=?)\s*v?(\d+)\.(\d+)(\.[1-9])?")
_PATCHES = range(10)
"""Patch versions that are tried of a minor one."""


class Release(msgspec.Struct, frozen=True):
    """The release that a tree is for, and the ``source`` that says so, for messages.

    ``doubt`` is empty where the tables of a known release apply, else it says why none is certain to.
    """

    version: Version
    source: str
    doubt: str = ""

    def __str__(self) -> str:
        return dotted(self.version)


def dotted(version: Version) -> str:
    """Return a version in dotted form."""
    return f"{version[0]}.{version[1]}"


def read_version(text: str) -> Version | None:
    """Return the major and minor version of ``2.6.0+cpu``, or None if the text is not a version."""
    match = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def release_of(version: Version, name: str, source: str, known: Sequence[Version]) -> Release:
    """Return the version that ``source`` names. It is in doubt unless it is one of the sorted ``known`` versions."""
    if version in known:
        return Release(version, source)
    span = f"{dotted(known[0])} to {dotted(known[-1])}"
    return Release(version, source, f"opschema knows {name} {span}, and {source} asks for {dotted(version)}")


def nearest_release(version: Version, known: Sequence[Version]) -> Version:
    """Return the known release whose tables are closest to a version: the newest one that is not newer. ``known`` is sorted."""
    return max((item for item in known if item <= version), default=known[0])


def required_release(project: Project, name: str, known: Sequence[Version]) -> Release | None:
    """The newest release that a requirement file of the root admits; None without a requirement.

    ``known`` are the releases that there are tables for, sorted. Of several requirements the one that admits the newest
    release counts.
    """
    found = [
        release_of(version, name, f"`{path}`", known)
        for path in _files(project.workspace)
        for _, versions in project.scan(_newest_releases(path, name, known), [path])
        for version in versions
    ]
    return max(found, key=lambda item: item.version, default=None)


def _newest_releases(path: str, name: str, known: Sequence[Version]) -> Reading[bytes, list[Version]]:
    """The newest release that each requirement of a file such as ``path`` admits. It is cached, as it imports `packaging`."""

    def read(content: bytes) -> list[Version]:
        found = (_newest(specifiers, text, known) for specifiers, text in _specifiers(path, content, name))
        return [version for version in found if version is not None]

    kind = "toml" if path.endswith(".toml") else "text"
    return Reading(f"requirements/{kind}/{name}/{dotted(known[0])}-{dotted(known[-1])}", read, list[Version])


def admits(workspace: Workspace, name: str, version: str) -> bool | None:
    """Whether a requirement file of the root admits a version such as ``2.13.0+cpu``; None without a requirement."""
    public = _LOCAL.sub("", version)
    return max((public in specifiers for _, specifiers, _ in requirements(workspace, name)), default=None)


def requirements(workspace: Workspace, name: str, *, anywhere: bool = False) -> Iterator[tuple[str, SpecifierSet, str]]:
    """The requirements of a distribution: the file, the versions that it admits, and their text. The files are those of the
    root, or those of all folders.
    """
    for path in _files(workspace, anywhere=anywhere):
        for specifiers, written in _specifiers(path, workspace.peek(path), name):
            yield path, specifiers, written


def _files(workspace: Workspace, *, anywhere: bool = False) -> Iterator[str]:
    """The requirement files of the root, or of all folders."""
    matches = filter(None, map(_FILES.match, workspace.files))
    return (match.string for match in matches if anywhere or not match["folder"])


def _specifiers(path: str, content: bytes, name: str) -> Iterator[tuple[SpecifierSet, str]]:
    """The versions of a distribution that a file's requirements admit, and their text."""
    for written in _written(path, requirement_text(content), name):
        specifiers = _parsed(written)
        if specifiers is not None:
            yield specifiers, written


def requirement_text(content: bytes) -> str:
    """The text of a requirement file without comments, and without commands in the texts of its strings: examples and tasks."""
    return _COMMAND.sub("", _COMMENT.sub("", content.decode("utf-8", "replace")))


def _written(path: str, text: str, name: str) -> Iterator[str]:
    """The specifiers of a distribution in a file."""
    pin = re.compile(rf"""(?mi)(?:^|["'\s])(?:py)?{name}[ \t]*(?:\[[^\]]*\])?[ \t]*\(?[ \t]*({_SPECIFIERS})""")
    yield from (match[1] for match in pin.finditer(text))
    if path.endswith(".toml"):
        yield from (_of_poetry(match[1].strip()) for match in re.finditer(_POETRY.format(name=name), text))


def _of_poetry(written: str) -> str:
    """Poetry's ``^0.3.1``, ``~0.3`` and ``0.3.1`` as a specifier; any other text unchanged."""
    match = _POETRY_VERSION.match(written)
    if match is None:
        return written
    sign, version = match.groups()
    if not sign:
        return f"=={version}"
    parts = [int(item) for item in version.split(".")]
    last = len(parts) - 1
    place = next((at for at, part in enumerate(parts) if part), last) if sign == "^" else min(1, last)
    above = ".".join(map(str, [*parts[:place], parts[place] + 1]))
    return f">={version},<{above}"


def _parsed(text: str) -> SpecifierSet | None:
    # Not at the top: most trees require nothing, and the import takes 20 ms.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(_LOCAL.sub("", text).strip().rstrip(","), prereleases=True)
    except InvalidSpecifier:
        return None


def _newest(specifiers: SpecifierSet, text: str, known: Sequence[Version]) -> Version | None:
    """The newest release that clauses such as ``>=2.4,<2.7`` admit; the lowest that they ask for if none is known."""
    admitted = [version for version in known if any(f"{dotted(version)}.{patch}" in specifiers for patch in _PATCHES)]
    if admitted:
        return admitted[-1]
    bounds = [(sign, int(major), int(minor), patch) for sign, major, minor, patch in _BOUND.findall(text)]
    below = [
        (major, max(minor - (sign == "<" and not patch), 0)) for sign, major, minor, patch in bounds if "<" in sign
    ]
    asked = [(major, minor) for sign, major, minor, _ in bounds if "<" not in sign]
    return max(asked, default=min(below, default=None))

"""PyTorch release that a tree pins, and the files that say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.requirements import Version, dotted, read_version, requirement_text
from opschema_cli.workspace import Workspace
from opschema_rules.aten.ci_pins import CI_FILES, MARKED, REQUIRED, commits_in, installing, takes_others, versions_in

_FILES = re.compile(
    r"(?!(?:.*[-_./])?docs?[-_.])(?:(?:requirements|constraints)[\w.-]*\.(?:txt|in)|requirements/[\w.-]+\.(?:txt|in)|(?:ci/)?environment[\w.-]*\.ya?ml"
    r"|[\w-]+-requirements\.txt|setup\.(?:py|cfg)|(?:pyproject|pixi)\.toml|torch_pin\.py)"
)
_LOCK_FILES = re.compile(r"(?:uv|poetry|pdm|pylock)\.(?:lock|toml)")
_COMMIT_FILES = re.compile(
    r"(?!(?:.*[-_./])?docs?[-_.])(?:\.ci/|ci/|\.github/|torch_patches/)?\.?(?:py)?torch[_-](?:commit|pin|hash)(?:\.txt)?"
    r"|(?:\.github|\.ci/docker|\.ci|ci)/(?:ci_commit_pins|pins)/(?:py)?torch\.txt"
)

_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
_TOML = re.compile(
    r"(?m)^[ \t]*[\"']?(?:py)?torch[\"']?[ \t]*=[ \t]*(?:\{[^}\n]*\bversion[ \t]*=[ \t]*)?[\"'](?:==|~=(?=[ \t]*\d+\.\d+\.\d)|=)?"
    r"[ \t]*v?(\d+\.\d+)"
)
"""A dependency of Poetry or pixi with an exact version."""
_LOCKED = re.compile(r"(?m)^name = \"torch\"\r?\nversion = \"(\d+\.\d+)")
_OWN = re.compile(r"(?:\bbase_version|\bTORCH_(?:[A-Z]+_)?VERSION)[\"']?[ \t]*[=,:][ \t]*[\"'](\d+\.\d+)")
"""pytorch/xla's own version, which follows PyTorch's: ``base_version`` or the default of ``TORCH_XLA_VERSION`` in setup.py; and
``TORCH_VERSION`` in ExecuTorch's torch_pin.py.
"""

_OWN_FILES = ("setup.py", "torch_pin.py")

_NIGHTLY = re.compile(
    r"(?<![\w.-])(?:py)?torch[ \t]*===?[ \t]*v?\d[\d.]*\.?dev\d|^name = \"torch\"\r?\nversion = \"\d[\d.]*dev", re.M
)

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_RELEASE = re.compile(r"(?m)^(?:release/|v)(\d+\.\d+)")
_SUBMODULE = re.compile(r"(?ms)^[ \t]*\[submodule[^\]]*\](.*?)(?=^[ \t]*\[|\Z)")
_PYTORCH = re.compile(r"(?m)^[ \t]*url[ \t]*=.*[/:]pytorch/pytorch(?:\.git)?/?[ \t]*$")

COMMITS: Mapping[str, Version] = {
    "e4ee3be4063b7c430974252fdf7db42273388d86": (2, 4),
    "32f585d9346e316e554c8d9bf7548af9f62141fc": (2, 5),
    "2236df1770800ffea5697b11b0bb0d910b2e59e1": (2, 6),
    "134179474539648ba7dee1317959529fbd0e7f89": (2, 7),
    "a1cb3cc05d46d198467bebbb6e8fba50a325d4e7": (2, 8),
    "0fabc3ba44823f257e70ce397d989c8de5e362c1": (2, 9),
    "449b1768410104d3ed79d3bcfe4ba1d65c7f22c0": (2, 10),
    "70d99e998b4955e0049d13a98d77ae1b14db1f45": (2, 11),
    "7661cd9c6b841b62b7f411aa52ec51f05457263b": (2, 12),
    "cf30153c4c131c8164ee7798e5022d810682e2cb": (2, 13),
    "08187d9e0fba026dc8217405802ab5381dc88d90": (2, 14),
    "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e": (2, 15),
}
"""The commits of releases, as ``torch/version.py`` of their wheels has them."""


class Pins(msgspec.Struct, frozen=True):
    """``versions`` are those that the tree names, major and minor; ``commits`` those of PyTorch's repository. Both have the file
    that names them. ``nightly`` if a version is from the days before a release, ``others`` if the tree uses other releases, too.
    """

    versions: Mapping[str, str]
    commits: Mapping[str, str]
    nightly: bool = False
    others: bool = False

    def agree(self, version: str, commit: str) -> bool:
        """Whether all of them, and at least one, identify a torch of this version built from this commit. The days before a release
        do not identify it.
        """
        if not (self.versions or self.commits) or self.others or (self.nightly and ".dev" not in version):
            return False
        return self.versions.keys() <= {minor_version(version)} and self.commits.keys() <= {commit}

    @property
    def release(self) -> Version | None:
        """The only release that they name, by its version or its commit; None if there is none, or another one."""
        versions = {read_version(name) for name in self.versions} | {COMMITS.get(name) for name in self.commits}
        versions.discard(None)
        return next(iter(versions)) if len(versions) == 1 else None

    @property
    def certain(self) -> bool:
        """Whether the release itself is pinned, and nothing else."""
        return not self.nightly and not self.others and self.commits.keys() <= COMMITS.keys()

    def may_be_other_than(self, known: Sequence[Version]) -> bool:
        """Whether they may refer to a torch that is neither one of the known releases, which are sorted, nor between two of
        them.
        """
        if not {read_version(name) for name in self.versions} <= {None, *known}:
            return True
        return not self.certain and (self.release is None or self.release >= known[-1])

    def are_before(self, known: Sequence[Version]) -> bool:
        """Whether they say a torch that is older than all known releases, which are sorted, and nothing else."""
        versions = [read_version(name) for name in self.versions]
        return bool(versions) and not self.others and all(item is not None and item < known[0] for item in versions)

    @property
    def descriptions(self) -> list[tuple[str, str]]:
        """Return each pin as text, with its file."""
        nightly = ", or a day before it" if self.nightly else ""
        versions = [(path, f"torch {name}{nightly}") for name, path in self.versions.items()]
        return versions + [(path, _commit_text(name)) for name, path in self.commits.items()]


def _commit_text(commit: str) -> str:
    version = COMMITS.get(commit)
    return f"commit {commit[:10]}" if version is None else f"commit {commit[:10]} of torch {dotted(version)}"


def minor_version(version: str) -> str:
    """Return ``2.13`` for ``2.13.0+cpu``; empty if there is none."""
    found = re.match(r"v?(\d+\.\d+)", version)
    return found[1] if found is not None else ""


@cached_on_argument
def pins_of(workspace: Workspace) -> Pins:
    """Pins in the files at the root of a workspace, of its submodules, and without any those of its CI files."""
    found = list(_versions(workspace))
    commits = _first([*_commits(workspace), *_submodules(workspace)])
    others = False
    if not found and not commits:
        texts = [(path, installing(text)) for path, text in _ci_texts(workspace)]
        found = [(version, path) for path, text in texts for version in versions_in(text)]
        commits = _first((commit, path) for path, text in texts for commit in commits_in(text))
        others = bool(found or commits) and any(takes_others(text) for _, text in texts)
    named = [_COMMENT.sub("", _text(workspace, path)) for path in sorted({path for _, path in found})]
    nightly = any(map(_NIGHTLY.search, named))
    others = others or any(map(MARKED.search, named))
    return Pins(_first(found), {name: path for name, path in commits.items() if name}, nightly, others)


def _first(found: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The first file that names each."""
    first: dict[str, str] = {}
    for name, path in found:
        first.setdefault(name, path)
    return first


def _versions(workspace: Workspace) -> Iterator[tuple[str, str]]:
    for path in workspace.files:
        if _FILES.fullmatch(path):
            text = requirement_text(workspace.peek(path))
            own = _OWN.findall(text) if path in _OWN_FILES else _TOML.findall(text) if path.endswith(".toml") else ()
            yield from ((version, path) for version in (*REQUIRED.findall(text), *own))
        elif _LOCK_FILES.fullmatch(path):
            yield from ((version, path) for version in _LOCKED.findall(_text(workspace, path)))
        elif _COMMIT_FILES.fullmatch(path):
            yield from ((version, path) for version in _RELEASE.findall(_text(workspace, path)))


def _commits(workspace: Workspace) -> Iterator[tuple[str, str]]:
    for path in workspace.files:
        if _COMMIT_FILES.fullmatch(path):
            yield from ((commit, path) for commit in _COMMIT.findall(_text(workspace, path)))


def _submodules(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The commits at which submodules of PyTorch are pinned."""
    text = _text(workspace, ".gitmodules") if workspace.is_file(".gitmodules") else ""
    for section in _SUBMODULE.finditer(text):
        path = re.search(r"(?m)^[ \t]*path[ \t]*=[ \t]*(\S+)", section[1])
        if path is not None and _PYTORCH.search(section[1]):
            yield workspace.submodule_pin(path[1]) or "", path[1]


def _ci_texts(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The CI files with their texts, without comments."""
    paths = filter(CI_FILES.fullmatch, workspace.files)
    return ((path, _COMMENT.sub("", _text(workspace, path))) for path in paths)


def _text(workspace: Workspace, path: str) -> str:
    return workspace.peek(path).decode("utf-8", "replace")

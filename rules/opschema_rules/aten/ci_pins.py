"""Releases and commits of PyTorch that the CI of a tree and its images install, in the ways in which these are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import takewhile

_DOCKERFILE = r"(?:[^/]+\.)?[Dd]ockerfile[\w.-]*"
CI_FILES = re.compile(
    r"\.github/(?:workflows/[^/]+|actions/(?:.+/)?action)\.ya?ml|\.github/.+\.json|\.circleci/config\.ya?ml|\.gitlab-ci\.ya?ml"
    r"|(?:\.?azure-pipelines?/[^/]+|azure-pipelines[\w.-]*|\.buildkite/.+)\.ya?ml"
    rf"|(?:\.ci|ci|\.github|\.circleci|\.buildkite|\.?docker(?:s|files)?)/(?:.+/)?(?:[^/]+\.sh|{_DOCKERFILE})|{_DOCKERFILE}"
    r"|tox\.ini|noxfile\.py"
)

REQUIRED = re.compile(r"(?<![\w.$-])(?:py)?torch[ \t]*(?:==?|~=|===)[ \t]*v?(\d+\.\d+)")
_NUMBER = r"[\"']?v?\d+\.\d+[\w.+]{0,40}[\"']?"
_NUMBERS = r"[\"']v?\d+\.\d+[\w.+]{0,40}(?:[ ,;]{1,4}v?\d+\.\d+[\w.+]{0,40}){1,40}[\"']"
_KEY = re.compile(
    r"(?i)(?<![\w./-])"
    r"(?:(?:lib|py)?torch[_-]?(?:ver(?:sion)?|release|tag)s?[\"']?[ \t]*(?:=|:[-=]?)|(?:py)?torch(?:es)?[\"']?[ \t]*[:=])"
    rf"[ \t]*(?P<value>{_NUMBERS}|{_NUMBER}(?=[\s,;&|}})\"']|\Z)|\[[^\]]{{0,400}}\]|\([^)\n]{{0,400}}\)"
    rf"|(?:\n[ \t]*-[ \t]*{_NUMBER}[ \t]*(?=\n|\Z))+"
    rf"|(?:\n[ \t]+(?:description|required|type)[ \t]*:[^\n]*){{0,4}}\n[ \t]+default[ \t]*:[ \t]*{_NUMBER})"
)
"""A variable, an input or an entry of a matrix with its value, its values or its default."""

_TEST = re.compile(r"(?:\[\[?[ \t]+(?:![ \t]|-[a-z][ \t]|[\"']?\w?\$)[^\]\n]*\]|\btest[ \t]+[\"']?\w?\$[^;&|\n]*)")
"""A test of the shell, which compares a variable by ``=``."""

_VALUE = re.compile(r"(?<![\w.])v?(\d+\.\d+)")
_IMAGE = re.compile(r"(?<![\w.-])pytorch/pytorch:v?(\d+\.\d+)|(?<![A-Za-z])pytorch_release_(\d+\.\d+)")
_WHEEL = re.compile(r"(?<![\w-])torch-v?(\d+\.\d+)\.\d+(?:%2B|\+|-cp)")
_PYTORCH = re.compile(r"\bpytorch/pytorch(?:\.git)?(?:[\s\"']|\Z)")
_BRANCH = re.compile(r"(?:-b|--branch)[ =][\"']?(?:v|release/)(\d+\.\d+)")
_REPOSITORY = re.compile(r"([ \t]*)repository:[ \t]*[\"']?pytorch/pytorch[\"']?[ \t]*\Z")
_REF = re.compile(r"[ \t]*ref:[ \t]*[\"']?(?:(?:refs/tags/)?(?:v|release/)(\d+\.\d+)|([0-9a-f]{40})\b)")

MOST_INPUTS = 20
"""Most lines between the repository of a checkout and its commit."""


def versions_in(text: str) -> Iterator[str]:
    """The releases, major and minor version, that a file without its comments installs."""
    text = _TEST.sub("", text)
    yield from REQUIRED.findall(text)
    for key in _KEY.finditer(text):
        yield from _VALUE.findall(key["value"].rpartition("default")[2])
    yield from (first or second for first, second in _IMAGE.findall(text))
    yield from _WHEEL.findall(text)
    cloning = (line for line in text.splitlines() if "git clone" in line and _PYTORCH.search(line))
    yield from (version for line in cloning for version in _BRANCH.findall(line))
    yield from (version for version, _ in _checkouts(text) if version)


def commits_in(text: str) -> Iterator[str]:
    """The commits of PyTorch that a file checks out."""
    return (commit for _, commit in _checkouts(text) if commit)


def _checkouts(text: str) -> Iterator[tuple[str, str]]:
    """The release or the commit of each checkout of PyTorch by an action, whose other inputs stand around its repository."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        found = _REPOSITORY.match(line)
        if found is not None:
            before, after = lines[max(0, at - MOST_INPUTS) : at], lines[at + 1 : at + 1 + MOST_INPUTS]
            for near in (reversed(before), after):
                refs = map(_REF.match, takewhile(partial(_is_beside, found[1]), near))
                yield from ((ref[1] or "", ref[2] or "") for ref in refs if ref is not None)


def _is_beside(indent: str, line: str) -> bool:
    """Whether a line is indented at least as far as another, and begins no item of a list."""
    return line.startswith(indent) and not line.lstrip().startswith("-")

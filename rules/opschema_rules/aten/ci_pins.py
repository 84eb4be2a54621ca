"""Releases and commits of PyTorch that the CI of a tree and its images install, in the ways in which these are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import takewhile

_DOCKERFILE = r"(?:[^/]+\.)?[Dd]ockerfile[\w.-]*"
_REQUIREMENTS = r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)"
CI_FILES = re.compile(
    r"(?!.*(?:\A|/)(?:examples?|docs?|demos?|tutorials?)/)"
    r"(?:\.github/(?:workflows/[^/]+|actions/(?:.+/)?action)\.ya?ml|\.github/.+\.json"
    r"|\.circleci/config\.ya?ml|\.gitlab-ci\.ya?ml"
    r"|(?:\.?azure-pipelines?/[^/]+|azure-pipelines[\w.-]*|\.buildkite/.+)\.ya?ml"
    rf"|(?:\.ci|ci|\.github|\.circleci|\.buildkite|\.?docker(?:s|files)?)/(?:.+/)?(?:[^/]+\.sh|{_DOCKERFILE}|{_REQUIREMENTS})"
    rf"|{_DOCKERFILE}"
    r"|tox\.ini|noxfile\.py)"
)

REQUIRED = re.compile(r"(?<![\w.$-])(?:py)?torch[ \t]*(?:===?|=|~=(?=[ \t]*\d+\.\d+\.\d))[ \t]*v?(\d+\.\d+)")
"""An exact version, or ``~=2.8.0``; ``~=2.8`` admits all later ones."""

MARKED = re.compile(REQUIRED.pattern + r"[\w.+]*[ \t]*;[ \t]*(?:python_|sys_|platform_|os_name|implementation_|extra)")
"""One that holds in some environments only."""

_NUMBER = r"[\"']?v?\d+\.\d+[\w.+]{0,40}[\"']?"
_NUMBERS = r"[\"']v?\d+\.\d+[\w.+]{0,40}(?:[ ,;]{1,4}v?\d+\.\d+[\w.+]{0,40}){1,40}[\"']"
_NAMED = (
    r"(?i)(?<![\w./$-])"
    r"(?:(?:lib|py)?torch[_-]?(?:ver(?:sion)?|release|tag)s?[\"']?[ \t]*(?:=|:[-=]?)|(?:py)?torch(?:es)?[\"']?[ \t]*[:=])"
)
_KEY = re.compile(
    rf"{_NAMED}[ \t]*(?P<value>{_NUMBERS}|{_NUMBER}(?=[\s,;&|}})\"']|\Z)|\[[^\]]{{0,400}}\]|\([^)\n]{{0,400}}\)"
    rf"|(?:\n[ \t]*-[ \t]*{_NUMBER}[ \t]*(?=\n|\Z))+"
    rf"|(?:\n[ \t]+(?:description|required|type)[ \t]*:[^\n]*){{0,4}}\n[ \t]+default[ \t]*:[ \t]*{_NUMBER})"
)
"""A variable, an input or an entry of a matrix with its value, its values or its default."""

_TEST = re.compile(r"(?:\[\[?[ \t]+(?:![ \t]|-[a-z][ \t]|[\"']?\w?\$)[^\]\n]*\]|\btest[ \t]+[\"']?\w?\$[^;&|\n]*)")
"""A test of the shell, which compares a variable by ``=``."""

_MOVING = re.compile(
    rf"{_NAMED}(?:[^\n]{{0,100}}|(?:\n[ \t]*-[^\n]{{0,60}}){{1,20}})"
    r"(?<=[\s\[\"'.,\d])(?:nightly|latest|stable|master|main|dev\d)"
)
"""Such a variable whose value, or one of whose values, is a different release each time."""

_LATEST = re.compile(
    r"download\.pytorch\.org/whl/(?:nightly|test)\b|(?<![\w.-])(?:py)?torch[ \t]*(?:[<>]|!=|~=[ \t]*\d+\.\d+(?![\d.]))"
    r"|(?m:^[ \t]*(?:-[ \t]+|[\w,{}-]+:[ \t]*)?[\"']?torch[\"']?(?:[ \t]*;[^\n]*|[ \t]*)$)"
)
_INSTALLS = re.compile(r"\b(?:pip3?|conda|mamba)[\"']?[ \t,]+[\"']?install\b([^\n;&|]*)")
_UNPINNED = re.compile(r"(?<=[ \t\"'])(?<!-c[ \t])(?<!channel[ \t])(?:py)?torch(?=[\"'\s]|\Z)(?![\"']?[ \t]*[=~])")
_BRANCHES = re.compile(r"(?m)^[ \t]*branches:[ \t]*(?:\[([^\]\n]*)\]|((?:\n[ \t]*-[^\n]*)+))")
_OF_RELEASES = re.compile(r"(?:releases?|rel|stable|backports?|v?\d)[\w./*-]*")

_NOT_INSTALLED = re.compile(
    r"(?m)^(?P<indent>[ \t]*)exclude:[ \t]*\n(?:(?P=indent)(?:[ \t]|-)[^\n]*(?:\n|\Z)|[ \t]*\n)*"
    r"|^(?P<key>[ \t]*(?:-[ \t]+)?(?:name|description):)[^\n]*"
    r"|\becho\b[^\n>|&;]*(?=$|&&|;)|\bgrep\b[^\n|]*|\buninstall\b[^\n;&|]*"
    r"|\bs(?P<sign>[/|#@,])[^\n/|#@,]{0,200}(?P=sign)"
)
"""Parts of a file that name versions without installing them: excluded matrix combinations, names, messages, search and
replacement texts.
"""

_VALUE = re.compile(r"(?<![\w.])v?(\d+\.\d+)")
_IMAGE = re.compile(r"(?<![\w.-])pytorch/pytorch:v?(\d+\.\d+)|(?<![A-Za-z])pytorch_release_(\d+\.\d+)")
_OTHER_IMAGE = re.compile(
    r"(?<![\w./-])(?!pytorch/pytorch:(?:\$|v?\d))(?:[\w.-]+/)+[\w-]*pytorch[\w-]*:(?![\w.-]*pytorch_release_\d+\.\d)[\w.${-]"
)
"""An image whose tag does not say which release is in it, such as those of NVIDIA."""

_WHEEL = re.compile(r"(?<![\w-])torch-v?(\d+\.\d+)\.\d+(?:%2B|\+|-cp)")
_PYTORCH = re.compile(r"\bpytorch/pytorch(?:\.git)?(?:[\s\"']|\Z)")
_BRANCH = re.compile(r"(?:-b|--branch)[ =][\"']?(?:v|release/)(\d+\.\d+)")
_COMMANDS = re.compile(r"&&|;|\|")
_REPOSITORY = re.compile(r"([ \t]*)repository:[ \t]*[\"']?pytorch/pytorch[\"']?[ \t]*\Z")
_REF = re.compile(r"[ \t]*ref:[ \t]*[\"']?(?:(?:refs/tags/)?(?:v|release/)(\d+\.\d+)|([0-9a-f]{40})\b)")

MOST_INPUTS = 20
"""Maximum number of lines between the repository of a checkout and its commit."""


def installing(text: str) -> str:
    """A file without the parts that name versions but install nothing, and with its continued lines joined."""
    return _NOT_INSTALLED.sub(r"\g<key>", text.replace("\\\n", " "))


def takes_others(text: str) -> bool:
    """Whether a file, or a part of it, uses releases other than the exact ones: the newest, a nightly build, a range; or is only
    for release branches.
    """
    if any(sign.search(text) for sign in (MARKED, _MOVING, _LATEST, _OTHER_IMAGE)):
        return True
    if any(_UNPINNED.search(found[1]) for found in _INSTALLS.finditer(text)):
        return True
    names = [name for found in _BRANCHES.finditer(text) for name in re.split(r"[\s,\"']+|-[ \t]", found[1] or found[2])]
    return any(names) and all(map(_OF_RELEASES.fullmatch, filter(None, names)))


def versions_in(text: str) -> Iterator[str]:
    """The releases, major and minor version, that a file without its comments installs."""
    text = _TEST.sub("", text)
    yield from REQUIRED.findall(text)
    for key in _KEY.finditer(text):
        yield from _VALUE.findall(key["value"].rpartition("default")[2])
    yield from (first or second for first, second in _IMAGE.findall(text))
    yield from _WHEEL.findall(text)
    commands = (part for line in text.splitlines() if "git clone" in line for part in _COMMANDS.split(line))
    cloning = (part for part in commands if _PYTORCH.search(part))
    yield from (version for line in cloning for version in _BRANCH.findall(line))
    yield from (version for version, _ in _checkouts(text) if version)


def commits_in(text: str) -> Iterator[str]:
    """The commits of PyTorch that a file checks out."""
    return (commit for _, commit in _checkouts(text) if commit)


def _checkouts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the release or the commit of each checkout of PyTorch by an action; the other inputs are around its repository."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        found = _REPOSITORY.match(line)
        if found is not None:
            before, after = lines[max(0, at - MOST_INPUTS) : at], lines[at + 1 : at + 1 + MOST_INPUTS]
            for near in (reversed(before), after):
                refs = map(_REF.match, takewhile(partial(_is_beside, found[1]), near))
                yield from ((ref[1] or "", ref[2] or "") for ref in refs if ref is not None)


def _is_beside(indent: str, line: str) -> bool:
    """Whether a line is indented at least as far as another, and does not begin a list item."""
    return line.startswith(indent) and not line.lstrip().startswith("-")

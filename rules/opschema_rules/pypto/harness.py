"""The names that simpler's test harness (``simpler_setup``) accepts in the tree: platforms, runtimes, settings of a case."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.project import Project

_TESTS, _PLATFORMS = "simpler_setup/scene_test.py", "simpler_setup/platform_info.py"
_BUILDS = "/build_config.py"
_RUNTIME = re.compile(r"(?:^|/)src/\w+/runtime/(\w+)/build_config\.py\Z")
_PLATFORM_MAP = re.compile(r"(?m)^PLATFORM_MAP\b[^=\n]*= \{\n((?:    \"\w+\": .*\n)+)\}$")
_LEVELS = re.compile(r"(?m)^class SceneTestLevel\(IntEnum\):\n((?:    \w+ = \d+\n)+)")
_KEYS = r"(?m)^{} = frozenset\(\{{([^{{}}]*)\}}\)$"
_OF_CASE = re.compile(r"case(?:\[|\.get\()\"(\w+)\"")
_REQUIRED = re.compile(r"case\[\"(\w+)\"\]")
_BUILDER = re.compile(r"(?ms)^class TaskArgsBuilder\b.*?(?=^\S)")
_MEMBER = re.compile(r"(?m)^    def ([a-z]\w*)\(")
_WORD = re.compile(r"\"(\w+)\"")


class Harness(msgspec.Struct, frozen=True):
    """The names that a harness accepts; a set is empty if the tree does not show its names.

    ``config`` and ``ring`` are the settings of a case's ``config`` and of ``runtime_env`` in it, ``fields`` those of a case, and
    ``required`` those that it cannot do without. ``members`` are the names that no argument of a test may have, empty where
    arguments may have any name.
    """

    platforms: frozenset[str] = frozenset()
    runtimes: frozenset[str] = frozenset()
    levels: frozenset[int] = frozenset()
    config: frozenset[str] = frozenset()
    ring: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    members: frozenset[str] = frozenset()


@cached_on_argument
def harness_of(project: Project) -> Harness:
    """Return the harness in the tree."""
    workspace = project.workspace
    tests, platforms = (
        workspace.peek(path).decode("utf-8", "replace") if path in workspace.file_set else ""
        for path in (_TESTS, _PLATFORMS)
    )
    levels, mapped = _LEVELS.search(tests), _PLATFORM_MAP.search(platforms)
    return Harness(
        platforms=_words(mapped[1].replace("(", "#")) if mapped is not None else frozenset(),
        runtimes=_runtimes(path for path in workspace.files if path.endswith(_BUILDS)),
        levels=frozenset(int(number) for number in re.findall(r"= (\d+)", levels[1]))
        if levels is not None
        else frozenset(),
        config=_keys("_CASE_CONFIG_KEYS", tests),
        ring=_keys("_RUNTIME_ENV_KEYS", tests),
        fields=frozenset(_OF_CASE.findall(tests)),
        required=frozenset(_REQUIRED.findall(tests)),
        members=_members(tests),
    )


def _runtimes(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(match[1] for path in paths if (match := _RUNTIME.search(path)) is not None)


def _words(text: str) -> frozenset[str]:
    """Return the first string of each line."""
    return frozenset(match[1] for line in text.splitlines() if (match := _WORD.search(line)) is not None)


def _keys(name: str, text: str) -> frozenset[str]:
    """Return the strings of a set that the harness compares the keys of a mapping with."""
    found = re.search(_KEYS.format(name), text)
    return frozenset(_WORD.findall(found[1])) if found is not None and text.count(name) > 1 else frozenset()


def _members(text: str) -> frozenset[str]:
    """Return the methods and properties of the argument builder, if it rejects arguments with these names and repeated ones."""
    found = _BUILDER.search(text)
    refuses = found is not None and "duplicate argument name" in found[0] and "conflicts with" in found[0]
    return frozenset(_MEMBER.findall(found[0])) if found is not None and refuses else frozenset()

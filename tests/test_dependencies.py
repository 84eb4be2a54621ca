"""The dependencies of opschema: permissive licences, upper bounds, and a matching lock file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
LOCK = ROOT / "requirements/ci.txt"

# Licences

PERMISSIVE = {
    *(
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "NCSA",
    ),
    *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib", "Apache-2.0 WITH LLVM-exception"),
}
"""SPDX identifiers: all that a user gets is under one of these."""

OF_TOOLS = {*PERMISSIVE, "MPL-2.0"}
"""For what only tests and builds use, which nobody gets with opschema, also a copyleft of single files."""

FOR_USERS = ("lsp", "stubs", "verify")
NOT_OURS = re.compile(r"nvidia-|cuda-|triton")
"""What a torch that is built for CUDA brings, under terms of its own; a torch for the CPU has none of it."""

WORDS = {
    "MIT": "MIT",
    "MIT License": "MIT",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "PSF-2.0": "PSF-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""Licence names in metadata older than SPDX."""


def allows(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with allowed licences: one side of each OR, both of each AND."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?:\s+WITH\s+[^\s()]+)?", expression)

    def alternatives() -> bool:
        found = all_of()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            found = all_of() or found
        return found

    def all_of() -> bool:
        found = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        token = tokens.pop(0)
        if token != "(":
            return " ".join(token.split()) in allowed
        found = alternatives()
        tokens.pop(0)
        return found

    return alternatives()


def licence(distribution: metadata.Distribution) -> str:
    """What the metadata of a distribution say, as an SPDX expression; empty if they say nothing that is understood."""
    data = distribution.metadata
    if data.get("License-Expression"):
        return str(data["License-Expression"])
    classifiers = [
        item.rpartition(" :: ")[2] for item in data.get_all("Classifier") or () if item.startswith("License")
    ]
    said = [WORDS[word] for word in classifiers if word in WORDS] if all(word in WORDS for word in classifiers) else []
    return " AND ".join(said) if said else WORDS.get(str(data.get("License", "")).strip(), "")


def needed(requirements: Iterable[str]) -> dict[str, metadata.Distribution]:
    """The installed distributions that requirements bring here, with all that those require."""
    found: dict[str, metadata.Distribution] = {}
    queue = [*_holding(requirements)]
    while queue:
        requirement = queue.pop()
        name = canonicalize_name(requirement.name)
        if name == canonicalize_name(PROJECT["name"]):
            queue += _holding(text for extra in requirement.extras for text in EXTRAS[extra])
        elif name not in found and not NOT_OURS.match(name):
            found[name] = metadata.distribution(name)
            queue += _holding(found[name].requires or (), requirement.extras)
    return found


def _holding(requirements: Iterable[str], extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """The requirements whose markers hold here."""
    for requirement in map(Requirement, requirements):
        environments = [{**default_environment(), "extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield requirement


def refused(requirements: Iterable[str], allowed: set[str]) -> dict[str, str]:
    expressions = {name: licence(distribution) for name, distribution in needed(requirements).items()}
    return {name: said for name, said in expressions.items() if not said or not allows(said, allowed)}


def test_all_that_users_get_is_under_permissive_licences() -> None:
    requirements = [*PROJECT["dependencies"], *(item for extra in FOR_USERS for item in EXTRAS[extra])]
    assert {"click", "torch", "sympy", "mdurl"} <= needed(requirements).keys(), "transitively"
    assert refused(requirements, PERMISSIVE) == {}


def test_the_tools_of_tests_and_builds_are_under_licences_that_bind_nobody_else() -> None:
    assert refused(EXTRAS["dev"], OF_TOOLS) == {}


def test_every_extra_is_looked_at() -> None:
    assert EXTRAS.keys() == {
        *FOR_USERS,
        "test",
        "dev",
        "bench",
        "cluster",
    }  # Ray is under Apache-2.0; tests do not install it


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-2.0-or-later", False),
        ("MPL-2.0", False),
        ("MIT OR GPL-2.0-only", True),
        ("MIT AND GPL-2.0-only", False),
        ("(GPL-2.0-only OR MIT) AND Apache-2.0 WITH LLVM-exception", True),
        ("MIT AND (LGPL-3.0-only OR GPL-3.0-only)", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("LicenseRef-Proprietary", False),
    ],
)
def test_an_expression_is_met_by_permissive_licences(expression: str, expected: bool) -> None:
    assert allows(expression, PERMISSIVE) is expected


# Bounds


def test_every_requirement_has_an_upper_bound() -> None:
    texts = [*PROJECT["dependencies"], *(text for group in EXTRAS.values() for text in group)]
    found = [Requirement(text) for text in texts if canonicalize_name(Requirement(text).name) != PROJECT["name"]]
    assert len(found) > 20
    assert [
        str(item) for item in found if not {part.operator for part in item.specifier} & {"<", "<=", "==", "~="}
    ] == []


# The lock file


def pins() -> dict[str, list[tuple[Requirement, int]]]:
    """The pins of the lock file, by name: each requirement and the number of its hashes."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    for block in re.split(r"\n(?=\S)", LOCK.read_text(encoding="utf-8")):
        lines = [line.strip().rstrip("\\").strip() for line in block.splitlines() if not line.lstrip().startswith("#")]
        if lines:
            requirement = Requirement(lines[0])
            hashes = [line for line in lines[1:] if re.fullmatch("--hash=sha256:[0-9a-f]{64}", line)]
            assert len(hashes) == len(lines) - 1, block
            found.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(hashes)))
    return found


def test_the_lock_pins_what_is_required_but_torch_each_with_its_hashes() -> None:
    locked = pins()
    texts = [*PROJECT["dependencies"], *(text for extra in ("test", "dev", *FOR_USERS) for text in EXTRAS[extra])]
    for requirement in map(Requirement, texts):
        name = canonicalize_name(requirement.name)
        if name in ("torch", PROJECT["name"]):
            assert name not in locked, "which build of torch is right depends on the machine"
            continue
        assert name in locked, f"{requirement}: run `make lock`"
        for pin, _ in locked[name]:
            [version] = [part.version for part in pin.specifier]
            assert requirement.specifier.contains(version), f"{requirement}: run `make lock`"
    assert all(hashes for found in locked.values() for _, hashes in found)
    assert all(str(pin.specifier).startswith("==") for found in locked.values() for pin, _ in found)


def test_the_lock_holds_for_all_that_the_installed_distributions_require() -> None:
    """Whatever is needed here is locked, but torch; otherwise an install with hashes would fail."""
    assert needed([*PROJECT["dependencies"], *EXTRAS["dev"]]).keys() - pins().keys() <= {"torch", "setuptools"}


def test_the_lock_names_no_index_and_no_file() -> None:
    text = LOCK.read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--find-links|--extra|(?m:^\s*-e)|(?m:^\s*/)", text)

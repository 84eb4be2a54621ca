"""The fixes of small faults in PyTorch's own entries: what torchgen then takes is what stood there, or what it asked for."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from importlib.metadata import version
from typing import NamedTuple

import pytest

from opschema_cli.proof import Files, Observation, apply_fix, judge
from opschema_cli.testing import lint_files
from opschema_rules.aten.pack import PACK
from tests.proofs.aten_oracle import observe_large
from tests.rules.aten.mutations import mutants
from tests.rules.aten.oracle import BACKEND, DERIVATIVES, NATIVE, TAGS
from tests.rules.aten.plots import families, plot, with_backend

pytestmark = pytest.mark.skipif(not version("torch").startswith("2.13."), reason="the entries are of torch 2.13")

COUNT = 400 if os.environ.get("OPSCHEMA_SLOW") else 16
SEED = int(os.environ.get("OPSCHEMA_SEED", "20261122"))


class Mended(NamedTuple):
    """A sound tree, the same with a fault, and that with one fix."""

    title: str
    sound: Files
    broken: Files
    fixed: Files


def mended() -> Iterator[Mended]:
    """Faults at random places, as long as a rule has a fix for them."""
    chance = random.Random(SEED)
    names = sorted(families())
    while True:
        path = chance.choices([NATIVE, DERIVATIVES, BACKEND, TAGS], [60, 20, 16, 4])[0]
        taken = chance.sample(names, 2)
        files = with_backend(taken, chance) if path == BACKEND else plot(taken)
        mutant = next(mutants(files, path, chance))
        for item in lint_files([PACK], mutant.files).diagnostics:
            if item.fix is not None:
                title = f"{item.code}, {item.fix.title}: {mutant.kind} {mutant.changes}"
                yield Mended(title, files, mutant.files, apply_fix(mutant.files, item.fix))


def complaints(sound: Observation, broken: Observation, fixed: Observation) -> list[str]:
    """The fault of a fix, or nothing if torchgen writes the same files as for the correct tree."""
    return [] if fixed["emission"] == sound["emission"] else list(judge(broken, fixed, cures=False))


def test_no_fix_makes_anything_worse() -> None:
    source = mended()
    cases = [next(source) for _ in range(COUNT)]
    seen = observe_large([files for case in cases for files in (case.sound, case.broken, case.fixed)])
    found = [
        f"{case.title}: {line}"
        for case, *three in zip(cases, seen[::3], seen[1::3], seen[2::3], strict=True)
        for line in complaints(*three)
    ]
    assert found == []

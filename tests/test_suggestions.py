"""Names that are close to one that is not known: difflib's, as long as a run may look for them."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator

import pytest

from opschema_cli.suggestions import (
    did_you_mean,
    exhausted,
    may_be_near,
    misspelt_names,
    near_name,
    near_names,
    nearest,
    start_anew,
)

WORDS = ["workloads", "workload", "roofline", "source", "signature", "status", "sourse", "x" * 50, ""]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    start_anew()
    yield
    start_anew()


@pytest.mark.parametrize("name", ["worklaods", "sorce", "Source", "sig", "", "statusstatus"])
@pytest.mark.parametrize("cutoff", [0.0, 0.4, 0.6, 0.9])
def test_they_are_those_that_difflib_finds(name: str, cutoff: float) -> None:
    assert near_names(name, WORDS, 3, cutoff) == difflib.get_close_matches(name, WORDS, 3, cutoff)


def test_a_run_looks_for_them_only_so_long() -> None:
    known = [f"colour{number}" for number in range(1000)]
    started = time.process_time()
    found = [near_names(f"color{number}", known) for number in range(10_000)]
    assert time.process_time() - started < 20
    assert found[0]
    assert not found[-1]
    assert exhausted()
    assert may_be_near("nothing", known, 0.9), "nothing may be concluded from names that were not compared"
    start_anew()
    assert not may_be_near("nothing", known, 0.9)
    assert near_names("color1", known)


def test_the_nearest_name_ignores_case_and_is_another_one() -> None:
    assert nearest("SOURCES", WORDS) == "source"
    assert nearest("source", ["source", "roofline"]) is None
    assert did_you_mean(nearest("roof", WORDS)) == ""
    assert did_you_mean(near_name("rooflien", WORDS)) == "; did you mean `roofline`?"


def test_unknown_keys_stand_for_known_ones_that_are_not_written() -> None:
    known = ("supported", "symint", "autograd")
    assert misspelt_names(["suported", "symint", "other"], known) == {"suported": "supported"}
    assert misspelt_names(["supported", "supportd"], known) == {}
    assert misspelt_names(["anything"], ()) == {}

"""The interpreter's results for generated orchestrations, compared with every path through them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import pytest

from opschema_cli.source.cpp import parse_cpp
from opschema_cli.testing import lint_files
from opschema_rules.pypto import cpp_loops
from opschema_rules.pypto.examples import SOURCE, example_files
from opschema_rules.pypto.facts import Entry, Payload, Slot, Submit
from opschema_rules.pypto.orchestration import read_orchestration
from opschema_rules.pypto.pack import PACK
from tests.rules.pypto.generated import Generator, Loops
from tests.rules.pypto.paths import Added, Machine, Program, Submitted, TooManyPathsError, Touched

SEEDS = int(os.environ.get("OPSCHEMA_SEEDS", "3"))
PROGRAMS, PATHS = 40, 300


def read(text: str) -> Entry:
    (entry,) = read_orchestration(parse_cpp(text)).entries
    return entry


def has(slots: tuple[Slot, ...], added: tuple[Added, ...]) -> bool:
    """Whether slots, as they are read, may be what was added."""
    if not slots:
        return not added
    first, rest = slots[0], slots[1:]
    if first.kind == "scalar":
        counts = range(len(added) + 1) if first.count < 0 else [first.count]
        return any(
            all(item.kind == "scalar" for item in added[:count]) and has(rest, added[count:])
            for count in counts
            if count <= len(added)
        )
    return (
        bool(added)
        and added[0].kind == first.kind
        and added[0].created == first.created
        and first.argument in (-1, added[0].argument)
        and has(rest, added[1:])
    )


def names(submit: Submit, ids: tuple[int, ...]) -> bool:
    """Whether a submit's kernels may be these; where one is not known, there may be any number of others."""
    known = Counter(kernel.value for kernel in submit.kernels if kernel.value is not None)
    others = Counter(ids) - known
    return known.total() + others.total() == len(ids) and (not others or known.total() < len(submit.kernels))


class Comparison:
    """One program, as it is read and as it runs."""

    def __init__(self, program: Program, most: int) -> None:
        self.text = program.text()
        self.entry = read(self.text)
        runs: list[Machine] = list(program.paths(most))
        self.undefined = {argument for run in runs for argument in run.undefined}
        self.changed = {argument for run in runs for argument in run.changed}
        self.submitted: set[Submitted] = {item for run in runs for item in run.submitted}
        self.touched: set[Touched] = {item for run in runs for item in run.touched if item.argument >= 0}
        self.sites: dict[int, list[Submit]] = {}
        for submit in self.entry.submits:
            self.sites.setdefault(self.line(submit.span.start), []).append(submit)
        self.escaped = {use.argument for use in self.entry.uses if use.how == "escapes"}

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def missed(self) -> Iterator[str]:
        """Events on some path that are not reported."""
        if self.entry.unresolved:
            return
        for item in sorted(self.submitted, key=repr):
            named = [submit for submit in self.sites.get(item.line, []) if names(submit, item.kernels)]
            fitting = [payload for submit in named for payload in submit.payloads if self.tells(payload, item.slots)]
            yield from self.not_untouched(item, [submit for submit in named if self.may_be(submit, item)])
            if not fitting:
                yield f"line {item.line}: kernels {item.kernels} with {[(slot.kind, slot.argument) for slot in item.slots]}"
        for touch in sorted(self.touched, key=repr):
            found = {
                use.how
                for use in self.entry.uses
                if use.argument == touch.argument and self.line(use.span.start) == touch.line
            }
            lost = "args.tensor" in self.text and touch.argument in self.escaped
            if not found & {touch.how, "escapes"} and not lost:
                yield f"line {touch.line}: tensor {touch.argument} is {touch.how}"

    def may_be(self, submit: Submit, item: Submitted) -> bool:
        return any(self.tells(payload, item.slots) for payload in submit.payloads)

    def not_untouched(self, item: Submitted, submits: list[Submit]) -> Iterator[str]:
        """The tensors that are said to be untouched by every submit that this one may be, and are not."""
        for argument in {slot.argument for slot in item.slots} & item.used:
            if submits and all(argument in submit.first for submit in submits):
                yield f"line {item.line}: tensor {argument} is used before"
        for argument in {slot.argument for slot in item.slots} & item.written:
            if submits and all(argument in submit.fresh for submit in submits):
                yield f"line {item.line}: tensor {argument} is written before"

    def tells(self, payload: Payload, slots: tuple[Added, ...]) -> bool:
        if payload.unresolved:
            return True
        own = {slot.argument for slot in slots} - {slot.argument for slot in payload.slots} - {-1}
        return has(payload.slots, slots) and own <= self.escaped

    def invented(self) -> Iterator[str]:
        """Reported events that are on no path."""
        for line, submits in self.sites.items():
            real = [item for item in self.submitted if item.line == line]
            for submit in submits:
                for payload in submit.payloads:
                    if not payload.unresolved and not any(has(payload.slots, item.slots) for item in real):
                        yield f"line {line}: {[(slot.kind, slot.argument, slot.count) for slot in payload.slots]}"

    @property
    def resolved(self) -> int:
        """How many submits are told without a doubt."""
        return sum(all(not item.unresolved for one in found for item in one.payloads) for found in self.sites.values())


def comparisons(seed: int, loops: Loops = "any") -> Iterator[Comparison]:
    generator = Generator(seed, loops=loops)
    for _ in range(PROGRAMS):
        with suppress(TooManyPathsError):
            yield Comparison(generator.program(), PATHS)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_happens_on_some_way_is_told(seed: int) -> None:
    for compared in comparisons(seed):
        assert not list(compared.missed()), compared.text


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_told_happens_on_some_way(seed: int) -> None:
    """Where a loop turns a known number of times and nothing hangs on it, it is told as if it might turn any number of times."""
    for compared in comparisons(seed, "open"):
        assert not list(compared.invented()), compared.text


@pytest.mark.parametrize("seed", range(SEEDS))
def test_counted_turns_are_told_as_they_happen(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_loops, "_is_open", lambda walk, mark, before, ways: ways is not None)
    monkeypatch.setattr(cpp_loops._Counted, "is_better", lambda self, mark, state: True)
    for compared in comparisons(seed, "counted"):
        assert not list(compared.missed()), compared.text
        assert not list(compared.invented()), compared.text


def reported(text: str, direction: str) -> set[int]:
    """The orchestration's own tensors of which a rule says that this direction is wrong for them."""
    config = f"""\
ORCHESTRATION = {{
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [{", ".join([f"D.{direction}"] * 5)}],
}}
"""
    files = example_files([("python", config), (f"cpp {SOURCE}", text)])
    linted = lint_files([PACK], files, ["PTO106", "PTO107"])
    return {int(item.message.split()[1]) for item in linted.diagnostics}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_reported_is_so_on_some_way(seed: int) -> None:
    for compared in comparisons(seed):
        assert reported(compared.text, "OUT") <= compared.undefined, compared.text
        assert reported(compared.text, "IN") <= compared.changed, compared.text


def test_most_of_what_is_so_is_reported() -> None:
    every = [item for item in comparisons(0) if not item.entry.unresolved]
    found = sum(len(reported(item.text, "OUT")) for item in every)
    assert found > 0.3 * sum(len(item.undefined & set(range(5))) for item in every)


def test_most_submits_are_told_without_a_doubt() -> None:
    every = list(comparisons(0))
    assert sum(item.resolved for item in every) > 0.7 * sum(len(item.sites) for item in every)


def test_some_tensors_are_told_to_be_untouched() -> None:
    submits = [submit for item in comparisons(0) for found in item.sites.values() for submit in found]
    assert sum(bool(submit.first) for submit in submits) > 0.1 * len(submits)

"""The rules against the real decorator, with dataclasses and before them: what is found, and what really happens."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import lint_files
from opschema_rules.magi.pack import PACK
from tests.rules.magi.faults import CASES, HEAD, FaultCase
from tests.rules.magi.generated import Generator
from tests.rules.magi.oracle import judge
from tests.rules.torchlib.oracle import Case, Fault, How, Probe

CORPUS = Path(os.environ.get("OPSCHEMA_CORPUS", "."))
CHECKOUTS = {"dataclasses": CORPUS / "oplibs/magi-e68e0b0", "plain": CORPUS / "oplibs/magi-e68e0b0p"}

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(
        not all(path.is_dir() for path in CHECKOUTS.values()), reason="OPSCHEMA_CORPUS has no oplibs/magi-e68e0b0(p)"
    ),
]

OPS, MODULES = 12, 24
"""Ops of one generated module, and how many modules."""

ALL = "\n\nfrom quiet_magi import all_registered\n"

_HOW: dict[str, How] = {"real": "real", "fake": "fake", "back": "backward"}


def _expected(item: FaultCase, contract: str) -> tuple[str, ...] | None:
    return item.new if contract == "dataclasses" else item.old


def _text(number: int, item: FaultCase) -> str:
    future = "from __future__ import annotations\n\n" if item.postponed else ""
    return future + HEAD + item.text.replace("NS", f"n{number}")


def _probe(number: int, call: str) -> Probe:
    how, _, text = call.partition(": ")
    return Probe(_HOW[how], text.replace("NS", f"n{number}"))


@cache
def _verdicts(contract: str) -> dict[str, list[Fault]]:
    cases = [
        Case(f"n{number}", item.title, _text(number, item), tuple(_probe(number, call) for call in item.calls))
        for number, item in enumerate(CASES)
        if _expected(item, contract) is not None
    ]
    return judge(CHECKOUTS[contract], cases)


@cache
def _found(contract: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for number, item in enumerate(CASES):
        files = {"opschema.toml": f'[magi]\nmagi = "{contract}"\n', "ops.py": _text(number, item)}
        found[f"n{number}"] = tuple(sorted(set(lint_files([PACK], files).codes())))
    return found


@pytest.mark.parametrize("contract", CHECKOUTS)
def test_every_case_has_the_findings_that_it_should(contract: str) -> None:
    wrong = [
        f"{item.title}: {_found(contract)[f'n{number}']}, expected {expected}"
        for number, item in enumerate(CASES)
        if (expected := _expected(item, contract)) is not None and _found(contract)[f"n{number}"] != expected
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("contract", CHECKOUTS)
def test_what_is_found_is_what_happens(contract: str) -> None:
    wrong = [
        f"{item.title}: expected {expected}, and {[fault.message for fault in faults] or 'nothing happens'}"
        for number, item in enumerate(CASES)
        if (expected := _expected(item, contract)) is not None
        and bool(faults := _verdicts(contract)[f"n{number}"]) != bool(expected)
        and not item.why
    ]
    assert not wrong, "\n" + "\n".join(wrong)


REFUSING = {
    "dataclasses": {"MAG301", "MAG302", "MAG303", "MAG304", "MAG305", "MAG312", "MAG313", "MAG314", "MAG317", "MAG332"},
    "plain": {"MAG302", "MAG303", "MAG304", "MAG305", "MAG313", "MAG315", "MAG316", "MAG332"},
}
"""Rules that find what is refused when an op is registered."""


@pytest.mark.parametrize("contract", CHECKOUTS)
def test_generated_ops_are_refused_alike(contract: str) -> None:
    texts = {f"g{seed}": Generator(seed).module(OPS) for seed in range(MODULES)}
    cases = [
        Case(name, name, text.replace("magi_compiler.api", "quiet_magi") + ALL, (Probe("real", "all_registered()"),))
        for name, text in texts.items()
    ]
    verdicts = judge(CHECKOUTS[contract], cases)
    wrong, refused, untold = [], 0, []
    for name, text in texts.items():
        theirs = {word for fault in verdicts[name] for word in fault.message.split() if re.fullmatch(r"op\d+", word)}
        assert theirs or not verdicts[name], verdicts[name]
        told = _errors(contract, text)
        ours = {op: code for op, code in told if code in REFUSING[contract]}
        wrong += [f"{name} {op}: {ours[op]}" for op in sorted(ours.keys() - theirs)]
        refused += len(theirs)
        untold += [f"{name} {op}" for op in sorted(theirs - {op for op, _ in told})]
    assert wrong == []
    assert len(untold) <= refused // 100, untold  # a dataclass may define a field twice, and is not known then


def _errors(contract: str, text: str) -> list[tuple[str, str]]:
    """The ops with errors, each with a rule's code."""
    files = {"opschema.toml": f'[magi]\nmagi = "{contract}"\n', "ops.py": text}
    found = lint_files([PACK], files).diagnostics
    rules = {rule.code: rule for rule in PACK.rules}
    errors = [item for item in found if (item.severity or rules[item.code].severity) is Severity.ERROR]
    return [(title.rpartition("::")[2], item.code) for item in errors for title in item.ops]


def test_every_rule_has_cases() -> None:
    found = {code for contract in CHECKOUTS for codes in _found(contract).values() for code in codes}
    assert found == {rule.code for rule in PACK.rules}

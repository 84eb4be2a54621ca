"""The bound on chains, which protects a process that parses Python and that nobody replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.source.chains import MAX_CHAIN, too_long_chain
from opschema_cli.source.python_facts import collect
from opschema_cli.source.python_workers import Parsers

LONG = MAX_CHAIN + 10

DEEP = {
    "attributes": "x = a" + ".b" * LONG,
    "signs": "x = " + "-" * LONG + "1",
    "sums": "x = 1" + " + 1" * LONG,
    "calls": "x = f" + "()" * LONG,
    "subscripts": "x = f" + "[0]" * LONG,
    "lambdas": "x = " + "lambda: " * LONG + "1",
    "ternaries": "x = " + "a if b else " * LONG + "1",
    "over lines": "x = (a" + "\n  .b()" * LONG + ")",
    "continued": "x = a" + " + \\\n b" * LONG,
    "in a formatted string": "x = f'{a" + ".b" * LONG + "}'",
    "in a call": "f(" + "a, 1" + " + 1" * LONG + ")",
    "around brackets": "x = " + "-(" * 100 + "-" * LONG + "1" + ")" * 100,
    "branches": "if a: pass\n" + "elif b: pass\n" * LONG,
    "branches of a method": "class A:\n def f(a):\n  if a:\n   pass\n" + "  elif b:\n   pass\n" * LONG,
}
FLAT = {
    "a list of numbers": "x = [" + "1.5, -2.5,\n" * LONG + "]",
    "statements": "a.b.c(1 + 2)\n" * LONG,
    "a string of dots": "x = '" + "." * LONG + "'",
    "a text": 'x = ("""' + "It ends. So it does - now.\n" * LONG + '""")',
    "a comment": "x = [  # " + "-" * LONG + "\n]",
    "cases": "if a: pass\nelse: pass\n" * LONG,
    "elifs apart": "if a: pass\nelif b: pass\nelse: pass\nc = 1\n" * LONG,
    "many calls": "f(" + "g(a.b.c, d(-1)),\n" * LONG + ")",
    "unclosed": "x = (" + "\ny = 1" * LONG,
    "closed too often": ")" * 300 + "\n" + ")" * 300,
}


@pytest.mark.parametrize("kind", DEEP)
def test_long_chains_are_found_where_they_pass_the_limit(kind: str) -> None:
    place = too_long_chain(DEEP[kind])
    assert place is not None
    assert too_long_chain(DEEP[kind][:place]) is None


@pytest.mark.parametrize("kind", FLAT)
def test_what_is_long_but_flat_is_none(kind: str) -> None:
    assert too_long_chain(FLAT[kind]) is None


def test_no_module_of_the_engine_has_a_long_chain() -> None:
    for path in (Path(__file__).parents[2] / "opschema_cli").rglob("*.py"):
        assert too_long_chain(path.read_text("utf-8")) is None, path


def test_only_the_stand_in_for_a_worker_refuses_them() -> None:
    text = DEEP["attributes"]
    assert collect(text).error == ""
    parsers = Parsers(1, local=True)
    parsers.submit({"deep": text})
    (parsed,) = parsers.collect(wait=True)
    assert b"it chains more than 400 operators" in parsed.facts

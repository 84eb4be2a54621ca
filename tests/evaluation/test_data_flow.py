"""The variables that the value of a local variable surely, or at most, comes from."""

from __future__ import annotations

import pytest

from opschema_cli.evaluation.closures import Cell
from opschema_cli.evaluation.data_flow import comes_from, roots
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source


def function(*lines: str) -> Body:
    """The function ``f`` of three parameters with these statements."""
    text = "\n    ".join(["def f(a, b, n: int):", *lines, "return x", ""])
    file = PythonFile(Source("m.py", text), collect(text))
    bodies = Bodies(Program(["m.py"], {"m.py": file}.get), ["m.py"])
    return bodies.functions_within(bodies.module(file), "f")[0]


def surely(*lines: str) -> str:
    return "".join(sorted(cell.name for cell in roots(Cell(function(*lines), "x"))))


def at_most(*lines: str) -> set[str] | None:
    found = comes_from([Cell(function(*lines), "x")])
    return found and {f"{cell.name}.{part}".rstrip(".") for cell, parts in found.items() for part in parts}


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["x = a"], "a"),
        (["x = a + b"], "ab"),
        (["x = [a, *b]"], "ab"),
        (["x = {a: b}"], "b"),
        (["x = sorted(a)"], "a"),
        (["x = Config(a, b)"], "ab"),
        (["x = unknown(a)"], ""),
        (["x = a.rows[b]"], "ab"),
        (["x = f'{a}-{b}'"], "ab"),
        (["x = [0 for _ in a]"], "a"),
        (["y = a", "x = y"], "a"),
        (["x = []", "x.append(a)"], "a"),
        (["x = {}", "x['b'] = b"], "b"),
        (["x = 1 if n else 2"], "n"),
        (["x = 1 if n else 1"], ""),
        (["x = 1 if a else 2"], ""),
        (["x = 1 if a == 'fast' else 2"], "a"),
        (["if n:", "    x = 1", "else:", "    x = 2"], "n"),
        (["if n:", "    x = 1", "else:", "    x = 1"], ""),
        (["x = a", "del x"], ""),
        (["x = x"], ""),
    ],
)
def test_parameters_that_a_value_surely_varies_with(lines: list[str], names: str) -> None:
    assert surely(*lines) == names


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["x = unknown(a)"], {"x", "a"}),
        (["x = len(a)"], {"x"}),
        (["x = a.rows"], {"x", "a.rows"}),
        (["x, y = a"], {"x", "a"}),
        (["x = 0", "for i in a:", "    x += i"], {"x", "a", "i"}),
        (["if b:", "    x = 1"], {"x", "b"}),
        (["with a as x: pass"], {"x", "a"}),
        (["print(x := a)"], {"x", "a"}),
        (["x = []", "fill(x, b)"], {"x", "b"}),
        (["x = 1", "fill(x, b)"], {"x"}),
        (["match a:", "    case [x]: pass"], {"x", "a"}),
        (["x = (lambda a: b)(1)"], {"x", "b"}),
        (["x = a", "del x"], None),
    ],
)
def test_variables_that_a_value_may_come_from(lines: list[str], names: set[str] | None) -> None:
    assert at_most(*lines) == names

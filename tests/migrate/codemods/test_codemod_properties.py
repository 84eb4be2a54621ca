"""Over generated modules: what codemods leave parses, means what it should, and keeps all other lines."""

from __future__ import annotations

import ast
import os
from itertools import product
from typing import Any

import libcst as cst
from hypothesis import given, settings
from hypothesis import strategies as st

from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.folding import fold_parameter
from opschema_cli.migrate.codemods.methods import inline_method
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.migrate.codemods.signatures import drop_parameter
from opschema_cli.source.python_tree import PythonTree

# Modules of statements, comments and blank lines

SIMPLE = (
    "g(1)", "x = 1  # own", "a = 1; b = 2", "a = 1; b = 2;", "g(\n      # in\n  2,\n)", 'y = """\n# no\n\n  comment\n"""',
    "z = 1 + \\\n  2", "import os, sys", "'text'", "x: int = 3  # type: int",
)  # fmt: skip
HEADS = (
    "if a:  # head",
    "for i in a:",
    "while a:",
    "def f(x):",
    "class C:",
    "@d  # d\n@e\ndef f(x):",
    "@d\nclass C():",
    "with a:",
)
TRIVIA = ("", "", "# own", "# --- Title ---", "# ------", "# fmt: off", "\t# odd")

EXAMPLES = 100 if "OPSCHEMA_SLOW" in os.environ else 40


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """The lines of a suite, without its indentation; multi-line strings and brackets go their own way."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        lines += draw(st.lists(st.sampled_from(TRIVIA), max_size=3))
        if depth < 3 and draw(st.integers(0, 2)) == 0:
            lines += draw(compounds(depth))
        else:
            lines.append(draw(st.sampled_from(SIMPLE)))
    return [*lines, *draw(st.lists(st.sampled_from(TRIVIA), max_size=2))]


@st.composite
def compounds(draw: st.DrawFn, depth: int) -> list[str]:
    head = draw(st.sampled_from(HEADS))
    if draw(st.integers(0, 4)) == 0:
        return [
            f"{head.partition('  #')[0] if head[0] != '@' else 'if a:'} "
            + draw(st.sampled_from(("g(3)", "g(4); g(5)  # own")))
        ]
    body = [f"    {line}" if line.strip() else line for line in draw(blocks(depth + 1))]
    lines = [*head.split("\n"), *body]
    if head.startswith("if") and draw(st.booleans()):
        lines += ["# of else", "else:", "    g(6)"]
    return lines


@st.composite
def modules(draw: st.DrawFn) -> str:
    text = "\n".join(draw(blocks())) + draw(st.sampled_from(("\n", "", "\n\n")))
    if draw(st.booleans()):
        text = "\n".join(line.replace("    ", "\t") for line in text.split("\n"))
    return text.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class Without(ast.NodeTransformer):
    """Takes out the statements that begin at some places; an empty suite gets ``pass``."""

    def __init__(self, places: set[tuple[int, int]]) -> None:
        self.places = places

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements and not isinstance(node, ast.Lambda):
                left = [item for item in statements if (item.lineno, item.col_offset) not in self.places]
                setattr(node, name, left or ([] if isinstance(node, ast.Module) else [ast.Pass()]))
        return super().generic_visit(node)


@settings(max_examples=EXAMPLES)
@given(st.data(), modules().filter(is_python))
def test_removing_any_statements_leaves_the_others(data: st.DataObject, text: str) -> None:
    tree = PythonTree.parse(text)
    statements = [node for node in tree.nodes if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement)]
    chosen = data.draw(st.sets(st.integers(0, len(statements) - 1), max_size=4))
    rewrite = Rewrite(tree)
    rewrite.remove(*(statements[index] for index in chosen))
    result = rewrite.text()
    starts = [tree.span(statements[index]).start for index in chosen]
    places = {(text.count("\n", 0, start) + 1, start - tree.line_start(start)) for start in starts}
    expected = Without(places).visit(ast.parse(text))
    assert ast.dump(ast.parse(result)) == ast.dump(expected)
    touched = {line for index in chosen for line in lines_of(tree, statements[index])}
    left = iter(result.splitlines(keepends=True))
    untouched = [
        line for number, line in enumerate(text.splitlines(keepends=True)) if number not in touched and is_code(line)
    ]
    assert all(any(other.rstrip("\r\n") == line.rstrip("\r\n") for other in left) for line in untouched)
    assert not result or text.endswith("\n") == result.endswith("\n")
    assert "\r\n" in text or "\r" not in result


def lines_of(tree: PythonTree, node: cst.CSTNode) -> range:
    start, end = tree.outer(node)
    first = tree.text.count("\n", 0, start)
    return range(first, first + tree.text.count("\n", start, end) + 1)


def is_code(line: str) -> bool:
    return bool(line.strip()) and not line.strip().startswith("#")


# Lists between commas


@st.composite
def listings(draw: st.DrawFn, items: list[str]) -> str:
    """Items between commas, over lines in any way."""
    gaps = st.sampled_from(("", " ", "\n    ", "\n    # own\n    ", "  # behind\n    "))
    text = draw(st.sampled_from(("", "\n    ", "  # open\n    ")))
    for index, item in enumerate(items):
        last = index == len(items) - 1
        comma = "," if not last or draw(st.booleans()) else ""
        text += item + comma + ("" if last else draw(gaps))
    return text + draw(st.sampled_from(("", "\n", "  # last\n")))


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_dropping_any_arguments_leaves_the_others(data: st.DataObject) -> None:
    names = ["a", "b", "c", "d"][: data.draw(st.integers(1, 4))]
    items = [f"{name}={value}" for name, value in zip(names, ("1", "(2)", "g(\n  3)", "'4'"), strict=False)]
    text = f"f({data.draw(listings(items))})\n"
    gone = data.draw(st.sets(st.sampled_from(names), min_size=1))
    rewrite = Rewrite(PythonTree.parse(text))
    for name in sorted(gone):
        drop_argument(rewrite, rewrite.tree.calls("f")[0], name)
    left = ", ".join(item for name, item in zip(names, items, strict=True) if name not in gone)
    assert ast.dump(ast.parse(rewrite.text())) == ast.dump(ast.parse(f"f({left})"))


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_dropping_any_parameters_leaves_the_others(data: st.DataObject) -> None:
    params = {"a": "a", "b": "b: int", "c": "c=(1)", "d": "d: int = 2"}
    marks = data.draw(st.sampled_from((("/", 1), ("*", 2), ("*", 3), ("*rest", 4), ("", 0))))
    items = list(params.values())
    if marks[0]:
        items.insert(marks[1], marks[0])
    if items[-1] == "*":
        items.pop()
    text = f"def f({data.draw(listings(items))}): pass\n"
    gone = data.draw(st.sets(st.sampled_from(sorted(params)), min_size=1))
    rewrite = Rewrite(PythonTree.parse(text))
    for name in sorted(gone):
        drop_parameter(rewrite, rewrite.tree.function("f"), name)
    left = [item for item in items if item[0] not in gone]
    if left and left[-1] == "*":
        left.pop()
    if left and left[0] == "/":
        left.pop(0)
    assert ast.dump(ast.parse(rewrite.text())) == ast.dump(ast.parse(f"def f({', '.join(left)}): pass"))


# Functions that log what they do

ATOMS = (
    "x",
    "a",
    "b",
    "not x",
    "(x)",
    "x is None",
    "x == 1",
    "x is not None",
    "g(a)",
    "(a if x else b)",
    "True",
    "None",
)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 0) -> str:
    if depth > 2 or draw(st.booleans()):
        return draw(st.sampled_from(ATOMS))
    left, right = draw(conditions(depth + 1)), draw(conditions(depth + 1))
    pattern = draw(
        st.sampled_from(("{} and {}", "{} or {}", "({} or {})", "not ({} and {})", "({}\n   and {})", "not({} or {})"))
    )
    return pattern.format(left, right)


@st.composite
def suites(draw: st.DrawFn, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for index in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 6)) if depth < 3 else 0
        if kind < 2:
            lines.append(f"log({depth + 1}{index}, {draw(conditions())})" if kind else f"log({depth + 1}{index})")
        elif kind == 2:
            lines.append(draw(st.sampled_from(("return a", "log(x); log('one')", "# own", ""))))
        elif kind == 3:
            lines += [
                "for i in (1, 2):",
                *indented(draw(suites(depth + 1))),
                "    " + draw(st.sampled_from(("continue", "break"))),
            ]
        else:
            lines += draw(chains(depth))
    return [*lines, "log('end')"]


@st.composite
def chains(draw: st.DrawFn, depth: int) -> list[str]:
    lines = ["# if", f"if ({draw(conditions())}):", *indented(draw(suites(depth + 1)))]
    for _ in range(draw(st.integers(0, 2))):
        lines += [f"elif {draw(conditions())}:".replace("\n   ", " "), *indented(draw(suites(depth + 1)))]
    if draw(st.booleans()):
        lines += ["# else", "else:", *indented(draw(suites(depth + 1)))]
    return lines


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def run(text: str, *args: object) -> tuple[object, list[object]]:
    """The result of ``f`` and its log."""
    logged: list[object] = []

    def g(value: object) -> object:
        logged.append(value)
        return value

    space: dict[str, Any] = {"log": lambda *found: logged.append(found), "g": g}
    exec(compile(text, "generated", "exec"), space)
    return space["f"](*args), logged


@settings(max_examples=EXAMPLES)
@given(suites(), st.sampled_from((True, False, None, 1, "s")))
def test_a_folded_function_does_what_it_did_with_that_value(lines: list[str], value: bool | int | str | None) -> None:
    text = "\n".join(["def f(a, b, x):", *indented(lines), ""])
    rewrite = Rewrite(PythonTree.parse(text))
    fold_parameter(rewrite, rewrite.tree.function("f"), "x", value)
    folded = rewrite.text()
    for a, b in product((True, False), repeat=2):
        assert run(folded, a, b) == run(text, a, b, value)


@settings(max_examples=EXAMPLES)
@given(suites(), st.booleans())
def test_an_inlined_method_does_what_it_did(lines: list[str], named: bool) -> None:
    passed = ("u", "v", "w") if named else ("a", "b", "x")
    text = "\n".join(
        [
            "class A:",
            f"    def forward(self, {', '.join(passed)}):",
            "        log('first')",
            f"        return self._eager({passed[0]}, x={passed[2]}, b={passed[1]})",
            "",
            "    def _eager(self, a, b, x):",
            *indented(indented(lines)),
            "",
            "def f(*args):",
            "    return A().forward(*args)",
            "",
        ]
    )
    rewrite = Rewrite(PythonTree.parse(text))
    inline_method(rewrite, rewrite.tree.method("A", "forward"), rewrite.tree.method("A", "_eager"))
    inlined = rewrite.text()
    assert "_eager" not in inlined
    for args in product((True, None), repeat=3):
        assert run(inlined, *args) == run(text, *args)

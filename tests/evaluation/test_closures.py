"""Free variables of functions against Python's own symbol tables."""

from __future__ import annotations

import symtable
import sys
from pathlib import Path

import pytest

from opschema_cli.evaluation.free_names import free_names
from opschema_cli.source.python import PythonFile, Scope
from opschema_cli.source.python_facts import collect
from opschema_cli.source.text import Source

COMPREHENSIONS = frozenset({"lambda", "listcomp", "setcomp", "dictcomp", "genexpr"})


def found(text: str) -> dict[str, set[str]]:
    """The free variables of each function by its name and place."""
    file = PythonFile(Source("m.py", text), collect(text))
    free = free_names(file)
    names: dict[str, set[str]] = {}

    def walk(scope: Scope) -> None:
        for function in scope.functions:
            line = text.count("\n", 0, function.start) + 1
            names[f"{function.name}:{line}"] = set(free.get(function.start, ()))
            walk(function.body)
        for cls in scope.classes:
            walk(cls.body)

    walk(file.body)
    return names


def expected(text: str) -> dict[str, set[str]]:
    """The same, as Python says it."""
    names: dict[str, set[str]] = {}
    waiting = [symtable.symtable(text, "m.py", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        if isinstance(table, symtable.Function) and table.get_name() not in COMPREHENSIONS:
            names[f"{table.get_name()}:{table.get_lineno()}"] = set(table.get_frees()) - {"__class__"}
    return names


@pytest.mark.parametrize(
    "body",
    [
        "return a + b.c",
        "a = 1\n        return a",
        "return [a for a in b]",
        "return [c for c in a if b]",
        "return {a: b for a, b in a}",
        "return sum(d for c in a for d in c(b))",
        "return lambda a: a + b",
        "return lambda c=a: c",
        "return lambda: (a := 1) + a",
        "return (a := 1) + b",
        "return [(a := c) for c in b]",
        "nonlocal a\n        a = 1",
        "global a\n        return a + b",
        "global a\n        def inner():\n            return a + b",
        "def inner():\n            return a\n        return inner",
        "def inner(b=a):\n            return b\n        return inner",
        "@a\n        def inner() -> b: ...",
        "class C:\n            a = 1\n            def inner(self):\n                return a",
        "class C(a):\n            c = b",
        "for a in b: pass\n        return a",
        "with a as b: return b",
        "try: pass\n        except a as b: return b",
        "import a\n        from b import c as b\n        return a, b",
        "del a\n        return b",
        "a.b = 1\n        b[a] = 2",
        "a, *b = 1, 2\n        return a",
        "a: b = 1",
        "a += 1",
        "return f'{a!r:>{b}}'",
        "match a:\n            case [b, *_] if c: return b\n            case a.D(): return 1",
    ],
)
def test_free_names(body: str) -> None:
    text = f"c = 1\ndef outer(a, b):\n    def f():\n        {body}\n    return f\n"
    assert found(text) == expected(text)


def test_the_standard_library() -> None:
    folder = Path(symtable.__file__).parent
    for name in ("functools.py", "dataclasses.py", "contextlib.py", "enum.py", "inspect.py", "typing.py", "tarfile.py"):
        text = (folder / name).read_text(encoding="utf-8")
        python = expected(text)
        ours = found(text)
        assert {key: ours.get(key) for key in python} == python, f"{name} of Python {sys.version}"

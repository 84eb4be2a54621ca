"""Which uses of a name are a module's."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.rewrite import Refused
from opschema_cli.migrate.codemods.scopes import module_uses
from opschema_cli.source.python_tree import PythonTree


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("M = 1\nprint(M)\n", [1, 2]),
        ("from k import M\nM\n", [1, 2]),
        ("from k import M as N\nx.M\nf(M=1)\n", []),
        ("M = 1\ndef f(M):\n    return M\n", [1]),
        ("M = 1\ndef f(n=M):\n    return M + n\n", [1, 2, 3]),
        ("M = 1\ndef f():\n    M = 2\n    def g():\n        return M\n", [1]),
        ("M = 1\nclass C:\n    M = 2\n    n = M\n    def f(self):\n        return M\n", [1, 6]),
        ("M = 1\nx = [M for M in y]\nz = [M for n in M]\n", [1, 3, 3]),
        ("M = 1\nf = lambda M: M\ng = lambda n=M: n\n", [1, 3]),
        ("for M, n in x:\n    print(f'{M}')\n", [1, 2]),
    ],
)
def test_uses_of_a_module(text: str, lines: list[int]) -> None:
    tree = PythonTree.parse(text)
    found = [text.count("\n", 0, tree.span(node).start) + 1 for node in module_uses(tree, "M")]
    assert found == lines


def test_a_global_statement() -> None:
    with pytest.raises(Refused, match="declared global"):
        module_uses(PythonTree.parse("def f():\n    global M\n    M = 1\n"), "M")

"""A parsed file: places, relations and the ways to find a node."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.text import Span

TREE = PythonTree.parse(
    dedent(
        '''\
        """Doc."""
        import x.y as z


        # own
        @deco(x)
        class A(B, metaclass=x):
            x = 1; y = (x)

            def f(self, x=2):
                """Of f."""
                return self.x.f(x=x), f"{x}"


        def f(): A().f()
        '''
    )
)


def places(nodes: list[cst.Name] | list[cst.Attribute] | list[cst.Call]) -> list[str]:
    return [f"{TREE.text.count(chr(10), 0, TREE.span(node).start) + 1}: {TREE.code(node)}" for node in nodes]


def test_names_are_variables() -> None:
    assert places(TREE.names("x")) == ["6: x", "7: x", "8: x", "8: x", "10: x", "12: x", "12: x"]


def test_attributes_and_calls() -> None:
    assert places(TREE.attributes("x")) == ["12: self.x"]
    assert places(TREE.calls("f")) == ["12: self.x.f(x=x)", "15: A().f()"]


def test_definitions() -> None:
    assert TREE.method("A", "f") is not TREE.function("f")
    assert TREE.code(TREE.class_def("A")).startswith("class A(B")
    with pytest.raises(LookupError, match="'g' is defined 0 times"):
        TREE.function("g")
    with pytest.raises(LookupError, match="'A' is defined 0 times"):
        TREE.function("A")


def test_places() -> None:
    cls = TREE.class_def("A")
    assert TREE.text[TREE.outer(cls).start :].startswith("@deco")
    assert TREE.text[TREE.top(cls) :].startswith("# own")
    y = TREE.statement(TREE.names("y")[-1])
    assert isinstance(y, cst.Assign)
    assert TREE.code(y.value) == "x"
    assert TREE.text[slice(*TREE.outer(y.value))] == "(x)"
    assert TREE.text[TREE.top(y) :].startswith("    x = 1; y")


def test_finding_by_place() -> None:
    name = TREE.function("f").name
    assert TREE.find(TREE.span(name), cst.Name) is name
    assert TREE.parent(name) is TREE.function("f")
    with pytest.raises(LookupError, match="no Call is written at 0-3"):
        TREE.find(Span(0, 3), cst.Call)


def test_relations() -> None:
    (call,) = [node for node in TREE.walk(TREE.method("A", "f")) if isinstance(node, cst.Call)]
    assert TREE.enclosing(call, cst.ClassDef) is TREE.class_def("A")
    assert isinstance(TREE.statement(call), cst.Return)
    with pytest.raises(LookupError):
        TREE.statement(TREE.module)


def test_docstrings() -> None:
    found = [
        TREE.docstring(node) for node in (TREE.module, TREE.method("A", "f"), TREE.class_def("A"), TREE.function("f"))
    ]
    assert [node.value if node is not None else None for node in found] == ['"""Doc."""', '"""Of f."""', None, None]


def test_walking_a_part() -> None:
    method = TREE.method("A", "f")
    names = {node.value for node in TREE.walk(method) if isinstance(node, cst.Name)}
    assert names == {"f", "self", "x"}
    assert TREE.walk(TREE.module) == TREE.nodes
    assert all(TREE.walk(node)[0] is node for node in TREE.nodes)


@pytest.mark.parametrize("text", ["def f(:\n", "(" * 300 + ")" * 300, "x = '\n"])
def test_what_does_not_parse(text: str) -> None:
    with pytest.raises(TreeError):
        PythonTree.parse(text)

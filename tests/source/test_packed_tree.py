"""Trees that one process packs and another unpacks: the same nodes at the same places, white space left out."""

from __future__ import annotations

import pickle
import sysconfig
import zlib
from functools import cache
from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest

from opschema_cli.project import Project
from opschema_cli.source.cst_spans import positions
from opschema_cli.source.packed_tree import pack, unpack
from opschema_cli.source.python_facts import collect_with_tree
from opschema_cli.source.python_tree import PythonTree, TreeError
from opschema_cli.source.python_workers import Parsers
from opschema_cli.workspace import Workspace

TEXT = dedent(
    '''\
    #!/usr/bin/env python
    """Doc ü."""
    from . import (a, b as c,)  # both


    @deco(  x , *y, k = 1)
    # of f
    async def f[T](p, /, q: int = (0), *, r) -> "T":
        if (p): x = 1; del x
        # or else
        elif q:
            return f"{p!r:>{q}}" 'b'   # done
        else: pass

        x[1:2, ::3] @= lambda: {**r}
    # the end
    '''
)


def pair(text: str) -> tuple[PythonTree, PythonTree]:
    """A tree as it is parsed, and as it comes out of its pack."""
    module = cst.parse_module(text)
    spans = positions(module, text)
    return PythonTree(text, module, spans), PythonTree.unpacked(text, pack(module, spans))


def library(name: str) -> str:
    return Path(sysconfig.get_path("stdlib"), f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("\n", "\r\n"), "", *map(library, ["abc", "bisect", "types"])])
def test_the_nodes_and_their_places_are_those_that_were_packed(text: str) -> None:
    parsed, unpacked = pair(text)
    assert list(map(type, parsed.nodes)) == list(map(type, unpacked.nodes))
    assert list(map(parsed.outer, parsed.nodes)) == list(map(unpacked.outer, unpacked.nodes))
    names = [[node.value for node in tree.nodes if isinstance(node, cst.Name)] for tree in (parsed, unpacked)]
    assert names[0] == names[1]


def test_commas_headers_and_comments_keep_their_places() -> None:
    for tree in pair(TEXT):
        function = tree.function("f")
        chain = function.body.body[0]
        assert isinstance(chain, cst.If)
        assert isinstance(chain.orelse, cst.If)
        assert [item.comment.value for item in chain.orelse.leading_lines if item.comment] == ["# or else"]
        assert isinstance(function.body, cst.IndentedBlock)
        assert TEXT[: tree.span(function.body.header).start].endswith('"T":')
        comma = function.params.posonly_params[0].comma
        assert isinstance(comma, cst.Comma)
        assert tree.code(comma).strip() == ","


@pytest.mark.parametrize(("terms", "is_handed_on"), [(140, True), (160, False)])
def test_what_nests_too_deeply_is_not_handed_on(terms: int, is_handed_on: bool) -> None:
    facts, tree = collect_with_tree("x = " + "a + " * terms + "a\n")
    assert [item.target for item in facts.body.assigns] == ["x"]
    assert (tree is not None and len(pack(*tree)) > 0) == is_handed_on


def test_the_members_of_enums_are_packed_where_python_pickles_them_as_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.2, which Debian 12 has, pickles `MaybeSentinel.DEFAULT` as `getattr(MaybeSentinel, "DEFAULT")`."""
    by_getattr = lambda self, _: (getattr, (type(self), self.name))  # noqa: E731
    monkeypatch.setattr(cst.MaybeSentinel, "__reduce_ex__", by_getattr)
    assert b"getattr" in pickle.dumps(cst.MaybeSentinel.DEFAULT)
    _, unpacked = pair("f(a)\n")
    line = cst.ensure_type(unpacked.module.body[0], cst.SimpleStatementLine)
    call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
    assert call.args[0].comma is cst.MaybeSentinel.DEFAULT


def test_a_pack_makes_nothing_but_nodes() -> None:
    with pytest.raises(pickle.UnpicklingError, match="eval is not a node"):
        unpack(zlib.compress(pickle.dumps(eval)))


@pytest.fixture
def parsed_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed in this process."""
    found: list[str] = []
    parse = PythonTree.parse

    def counted(text: str) -> PythonTree:
        found.append(text)
        return parse(text)

    monkeypatch.setattr(PythonTree, "parse", counted)
    return found


@pytest.mark.parametrize("with_trees", [True, False])
def test_workers_send_the_trees_that_are_asked_for(tmp_path: Path, with_trees: bool, parsed_again: list[str]) -> None:
    texts = {"a.py": "x = 1\n", "deep.py": "x = " + "a + " * 200 + "a\n", "bad.py": "(\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    parsers = cache(lambda: Parsers(1))
    project = Project(Workspace(tmp_path), parsers=parsers)
    project.with_trees = with_trees
    project.load_python(texts)
    project.settle()
    parsers().close()
    draft = project.with_overlay({"new.py": "y = 2\n"})
    assert [node.value for node in draft.tree("a.py").names("x")] == ["x"]
    assert parsed_again == ([] if with_trees else [texts["a.py"]])
    assert len(draft.tree("deep.py").names("a")) == 201
    assert [node.value for node in draft.tree("new.py").names("y")] == ["y"]
    with pytest.raises(TreeError):
        draft.tree("bad.py")

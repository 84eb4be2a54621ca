from __future__ import annotations

import pytest

from opschema_cli.source.text import Span
from opschema_rules.aten.formulas import (
    bare_words,
    element_wise,
    gradient_indices,
    indexed_only,
    saves,
    unbalanced,
    uses,
    with_saved,
)
from opschema_rules.aten.text_diff import stretches


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("f(a[0], {1})", None),
        ("f(a", 1),
        ("f(a))", 4),
        ("f(a]", 3),
        ("f(\"(\", ')') /* ( */", None),
        ("", None),
        ("([)]", 2),
    ],
)
def test_unbalanced(text: str, at: int | None) -> None:
    found = unbalanced(text)
    assert (None if found is None else found[0]) == at


def test_bare_words_are_no_members_calls_or_namespaces() -> None:
    text = 'f(self, x.y, p->q, std::get<0>(r), /*no=*/"no", 1e5, c10::SymInt(n), at::Reduction::None, i)'
    assert bare_words(text) == {"self": 2, "x": 8, "p": 13, "r": 31, "n": 65, "i": 90}


def test_gradient_indices() -> None:
    text = "grads[0] + f(grads[12],mygrads[3], grads)"
    assert [(index, text[start:end]) for index, start, end in gradient_indices(text)] == [
        (0, "grads[0]"),
        (12, "grads[12]"),
    ]


@pytest.mark.parametrize(("text", "only"), [("grads[0]", True), ("f(grads, grads[0])", False), ("grad", True)])
def test_indexed_only(text: str, only: bool) -> None:
    assert indexed_only([text]) is only


def test_saved_attributes_hide_the_name_of_an_argument() -> None:
    text = "f(grad.sym_sizes(), zeros_like(grad), self.sym_size(-1))"
    assert with_saved(text, ["grad", "self"]) == "f(grad_saved, grad_saved, self_saved)"
    assert not uses(with_saved(text, ["grad"]), "grad")


@pytest.mark.parametrize(
    ("text", "saved"), [("f(self)", True), ("f(self.dim())", True), ("f(myself)", False), ("f(grad)", False)]
)
def test_saves(text: str, saved: bool) -> None:
    assert saves(text, "self") is saved


def test_element_wise_misses_a_name_one_character_behind_another() -> None:
    assert element_wise("grad * self * self", "self") == "self_t.conj() * self_p * self_p"
    assert element_wise("grad * (self*self)", "self") == "self_t.conj() * (self_p*self)"


@pytest.mark.parametrize(
    ("text", "other", "parts"),
    [
        ("f(int a=1) -> int", "f(int a=2) -> int", [("1", "int a=1", "int a=2")]),
        ("f(int a) -> int", "f(int a, int b) -> int", [("", "", "int b")]),
        ("f(int a, int b) -> int", "f(int a) -> int", [(", int b", "int b", "")]),
        ("f(int a,int b) -> int", "f(int a, int b) -> int", [("", "", "")]),
        ("f(Tensor(a!) x) -> ()", "f(Tensor(b!) x) -> ()", [("a", "Tensor(a!) x", "Tensor(b!) x")]),
        ("f(str a='x') -> int", 'f(str a="x") -> int', [("'x'", "str a='x'", 'str a="x"')]),
        ("f(int[2] a=1) -> int", "f(int[3] a=2) -> int", [("2] a=1", "int[2] a=1", "int[3] a=2")]),
        ("(int) -> (int, int)", "(int) -> (str, str)", [("int", "int", "str"), ("int", "int", "str")]),
        ("f(int a) -> int", "f(int a) -> int", []),
    ],
)
def test_stretches_that_differ(text: str, other: str, parts: list[tuple[str, str, str]]) -> None:
    assert [(text[slice(*item.here)], item.mine, item.theirs) for item in stretches(text, other)] == parts


def test_texts_without_likeness_differ_as_a_whole() -> None:
    found = stretches("a b c d e f g h", "1 b 2 d 3 f 4 h 5")
    assert [item.here for item in found] == [Span(0, 15)]


def test_putting_the_other_text_into_each_stretch_makes_the_other_text() -> None:
    text, other = "f(int x, Tensor[] b) -> (Tensor, int)", "g.x(Tensor a=None, Tensor[] b, *, int c) -> Tensor"
    made = text
    for item in reversed(stretches(text, other)):
        made = made[: item.here.start] + other[slice(*item.there)] + made[item.here.end :]
    assert made == other

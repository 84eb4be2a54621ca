"""The names that a block of C++ declares, and those of them that its parts need."""

from __future__ import annotations

import pytest

from opschema_cli.source.cpp import CppNode, parse_cpp
from opschema_cli.source.cpp_scopes import declared_in, names_needed
from tests.scaling import Work, check_linear


def block(text: str) -> CppNode:
    """The body of a function."""
    tree = parse_cpp(f"void bind() {{ {text} }}")
    return next(node for node in tree.root.walk() if node.kind == "compound_statement")


def needed(text: str) -> list[tuple[str, set[str], set[str]]]:
    """What the functions that ``bind`` gets need of their block."""
    node = block(text)
    calls = (item for item in node.walk() if item.kind == "call_expression" and item.text.startswith("bind("))
    parts = {argument.span for call in calls if (list_ := call.field("arguments")) for argument in list_.children}
    found = names_needed(node, parts, ["outer"])
    return [(node.tree.text[span.start : span.end], set(item.declared), set(item.brought)) for span, item in found]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int k = 3;", ["k"]),
        ("static const int64_t j(2), k = 3, *p, a[2];", ["j", "k", "p", "a"]),
        ("const auto& [a, b] = pair;", ["a", "b"]),
        ("auto f = [=](int x) { int y; };", ["f"]),
        ("at::Tensor g(const at::Tensor& x);", ["g", "x"]),
        ("at::Tensor (*h)(at::Tensor) = &g;", ["h"]),
        ("for (auto& [a, b] : pairs) { int c; }", ["a", "b", "c"]),
        ("if (auto found = get(); found) {}", ["found"]),
        ("try { f(); } catch (const std::exception& error) {}", ["error"]),
        ("using acme::f;", ["f"]),
        ("using acme::f, acme::g;", ["f", "g"]),
        ("using T = double;", ["T"]),
        ("typedef double T;", ["T"]),
        ("typedef void (*fn)(int);", ["fn"]),
        ("namespace d = acme;", ["d"]),
        ("enum Way { UP = 1, DOWN };", ["Way", "UP", "DOWN"]),
        ("struct S { static int go(int x) { return x; } };", ["S", "x"]),
        ("using namespace acme; using namespace py::literals;", []),
        ("struct S* one(); enum Way way;", ["one", "way"]),
        ("f(k); k = 3; s.k = 4; return k;", []),
    ],
)
def test_the_names_that_a_block_declares(text: str, names: list[str]) -> None:
    assert sorted(declared_in(block(text))) == sorted(names)


def test_the_parameters_of_a_function_and_its_template() -> None:
    tree = parse_cpp("template <class T, typename... Ts, int N = 3, class U = int> void f(T x, int y = 2, int) {}")
    heads = [node for node in tree.root.walk() if node.kind in ("template_parameter_list", "function_declarator")]
    assert [list(declared_in(head)) for head in heads] == [["T", "Ts", "N", "U"], ["x", "y"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int k; bind(&k);", {"k"}),
        ("bind(&k); int k;", set()),
        ("{ int k; } bind(&k);", set()),
        ("for (int k = 0; k < 3; ++k) { bind(&k); }", {"k"}),
        ("for (int k : all) {} bind(&k);", set()),
        ("int k; { int k; } bind(&k);", {"k"}),
        ("bind(&outer);", {"outer"}),
        ("int k; bind([](int k) { return k; });", set()),
        ("int k; bind([](int x) { int k = x; return k; });", set()),
        ("int k; bind([](auto x) { return x.k + acme::k + ::k + acme::k<3>(); });", set()),
        ("int k; bind([](auto x) { return acme::f<k>(x[k]); });", {"k"}),
        ("struct S {}; bind(&S::go);", {"S"}),
        ("struct S { int k; }; bind(&k);", set()),
        ("int f(int k); bind(&k);", set()),
        ("auto f = [](int k) { return k; }; bind(&k);", set()),
        ("enum Way { UP }; bind([]() { return UP; });", {"UP"}),
    ],
)
def test_the_names_that_a_part_needs(text: str, names: set[str]) -> None:
    ((_, declared, brought),) = needed(text)
    assert (declared, brought) == (names, set())


def test_a_using_directive_may_bring_each_name_behind_it_in_its_scope() -> None:
    found = needed(
        "bind(&f); { using namespace acme; bind(&f); bind(&kit::g); bind([](int x) { return x; }); } bind(&f);"
    )
    assert [(part, brought) for part, _, brought in found] == [
        ("&f", set()),
        ("&f", {"f"}),
        ("&kit::g", {"kit"}),
        ("[](int x) { return x; }", set()),
        ("&f", set()),
    ]
    assert needed("using namespace py::literals; bind(&f);") == [("&f", set(), set())]


def test_many_parts_take_linear_time() -> None:
    def prepare(count: int) -> Work:
        node = block("".join(f"int k{n}; bind(&k{n});" for n in range(count)))
        parts = {item.span for item in node.walk() if item.kind == "pointer_expression"}
        return lambda: list(names_needed(node, parts, []))

    check_linear(prepare, 50)

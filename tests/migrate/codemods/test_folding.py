from __future__ import annotations

import libcst as cst
import pytest

from opschema_cli.migrate.codemods.folding import Literal, fold_expression, fold_local, fold_parameter
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import Mark, check, refused, rewritten


def fold(value: Literal, function: str = "f", name: str = "x") -> Mark:
    return lambda rewrite: fold_parameter(rewrite, rewrite.tree.function(function), name, value)


def body(code: str, value: Literal) -> str:
    """The body after folding ``x``."""
    head = "def f(a, b, x):\n"
    lines = "".join(f"    {line}\n" if line else "\n" for line in code.split("\n"))
    result = rewritten(head + lines, fold(value))
    assert result.startswith("def f(a, b):\n")
    return "\n".join(line[4:] for line in result.split("\n")[1:-1])


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        ("if x:\n    a()\nb()", True, "a()\nb()"),
        ("if x:\n    a()\nb()", False, "b()"),
        ("if not x:\n    a()\n    # own\n    b()", False, "a()\n# own\nb()"),
        ("# why\nif x:  # gone\n    # own\n    a()\n\n    b()\n    # end\nc()", True, "# why\n# own\na()\n\nb()\n# end\nc()"),
        ("# why\nif x:\n    a()\nb()", False, "b()"),
        ("if x:\n    a()\nelse:\n    b()\nc()", True, "a()\nc()"),
        ("if x:\n    a()\n# else\nelse:\n    # own\n    b()\nc()", False, "# own\nb()\nc()"),
        ("if x: a(); b()  # one\nc()", True, "a(); b()  # one\nc()"),
        ("if x: a()\nelse: b()  # two", False, "b()  # two"),
        ("if x:\n    a()\nelif b:\n    b()\nelse:\n    c()", False, "if b:\n    b()\nelse:\n    c()"),
        ("if x:\n    a()\n# two\nelif b:\n    b()", False, "# two\nif b:\n    b()"),
        ("if a:\n    a()\nelif x:\n    b()\nelse:\n    c()", False, "if a:\n    a()\nelse:\n    c()"),
        ("if a:\n    a()\nelif x:\n    b()\nelse:\n    c()", True, "if a:\n    a()\nelse:\n    b()"),
        ("if a:\n    a()\nelif x:\n    b()\nc()", False, "if a:\n    a()\nc()"),
        ("if x:\n    a()\nelif not x:\n    b()\nelse:\n    c()", False, "b()"),
        ("if x:\n    a()\nelif b:\n    b()\nelif x is None:\n    c()\nelse:\n    d()", None, "if b:\n    b()\nelse:\n    c()"),
        ("if a and not x:\n    b()", False, "if a:\n    b()"),
        ("if a and not x:\n    b()\nc()", True, "c()"),
        ("if a() and x:\n    b()\nc()", False, "if a() and False:\n    b()\nc()"),
        ("if (\n    x\n    and b\n):\n    c()", True, "if b:\n    c()"),
        ("if (\n    x  # why x\n    and b  # why b\n):\n    c()", True, "if (\n    b  # why b\n):\n    c()"),
        ("if (\n    b  # why b\n    and x  # why x\n):\n    c()", True, "if (\n    b  # why b\n):\n    c()"),
        ("if (\n    b and  # why b\n    x  # why x\n):\n    c()", True, "if (\n    b  # why b\n):\n    c()"),
        ("if (b and x  # why\n):\n    c()", True, "if (b  # why\n):\n    c()"),
        ("if (x or a) and b:\n    c()", False, "if a and b:\n    c()"),
        ("if not(x or a):\n    c()", False, "if not(a):\n    c()"),
        ("if(x and a):\n    c()", True, "if(a):\n    c()"),
        ("return(x)", True, "return(True)"),
        ("return a if x else b", True, "return a"),
        ("return (a if x else b) + 1", False, "return b + 1"),
        ("return (a + 1 if x else b) * 2", True, "return (a + 1) * 2"),
        ("return [a if x else b, (x)]", False, "return [b, False]"),
        ("return a and x", True, "return a and True"),
        ("return x and a", True, "return a"),
        ("return x or a", "s", "return 's'"),
        ("return x == 'q' or b", "q", "return True"),
        ("return g(x=x, y=a.x)", None, "return g(x=None, y=a.x)"),
        ("assert x", True, ""),
        ("a()\nassert x, 'why'\nb()", True, "a()\nb()"),
        ("assert a and x, 'why'", True, "assert a, 'why'"),
        ("assert not x, 'why'", True, "assert False, 'why'"),
        ("while x and a:\n    b()", True, "while a:\n    b()"),
        ("return f'{x} {a}'", 3, "return f'{3} {a}'"),
        ("return x ** 2, -x", -1, "return (-1) ** 2, -(-1)"),
        ("return x.upper()", "s", "return 's'.upper()"),
        ("return x() if x is not None else a", None, "return a"),
        ("if x is not None:\n    return x.y(x[0])\nreturn a", None, "return a"),
        ("if not x:\n    return a\nreturn b", False, "return a"),
        ("for i in a:\n    if x:\n        continue\n    b()\nc()", True, "for i in a:\n    continue\nc()"),
        ("if x:\n    return a\nyield b", True, "return a\nyield b"),
        ("return [x for x in a]", 1, "return [x for x in a]"),
        ("return [x for _ in x]", 1, "return [1 for _ in 1]"),
        ("return lambda x: x, lambda y=x: y", 1, "return lambda x: x, lambda y=1: y"),
        ("def g(y=x):\n    x = 2\n    return x\nreturn g", 1, "def g(y=1):\n    x = 2\n    return x\nreturn g"),
        ("def g():\n    return x\nreturn g", 1, "def g():\n    return 1\nreturn g"),
        ("class A:\n    def x(self):\n        return 1\nreturn A", 1, None),
    ],
)  # fmt: skip
def test_uses(code: str, value: Literal, expected: str | None) -> None:
    if expected is None:
        assert refused("def f(a, b, x):\n    " + code.replace("\n", "\n    "), fold(value))
    else:
        assert body(code, value) == (expected or "pass")


def test_dedenting_leaves_string_literals_alone() -> None:
    check(
        '''
        def f(x):
            if x:
                text = """
                one
            two
        three
                """
                g(a,
                  b)
            h()
        ''',
        fold(True),
        '''
        def f():
            text = """
                one
            two
        three
                """
            g(a,
              b)
            h()
        ''',
    )


def test_nested_conditions_and_tabs() -> None:
    before = "def f(x):\r\n\tif x:\r\n\t\tif not x:\r\n\t\t\ta()\r\n\t\telse:\r\n\t\t\tb()\r\n\t\tc()"
    assert rewritten(before, fold(True)) == "def f():\r\n\tb()\r\n\tc()"


def test_what_another_codemod_takes_out_of_a_kept_suite() -> None:
    def mark(rewrite: Rewrite) -> None:
        rewrite.remove(rewrite.tree.statement(rewrite.tree.names("only")[0]))
        fold(True)(rewrite)

    check(
        """
        def f(x):
            if x:
                # own
                only = 1
            return 2
        """,
        mark,
        """
        def f():
            pass
            return 2
        """,
    )


@pytest.mark.parametrize(
    ("code", "line", "reason"),
    [
        ("x = x or 1", 2, "x is written to"),
        ("for x in a: pass", 2, "x is written to"),
        ("g = lambda: (x := 1)", None, None),
        ("def g():\n    nonlocal x\n    x = 1", 3, "x is declared global or nonlocal"),
        ("return f'{x=}'", 2, "an f-string prints the name x"),
        ("a()\nif x: b()\nreturn x()", 4, "True cannot be written in place of `x` here"),
        ("return x.y", 2, "True cannot be written in place of `x` here"),
        ("return locals()", 2, "locals() may use any local"),
        ("return g  # type: (int, bool) -> int", None, None),
    ],
)
def test_refusals(code: str, line: int | None, reason: str | None) -> None:
    text = "def f(a, x):\n    " + code.replace("\n", "\n    ") + "\n"
    if line is None:
        rewritten(text, fold(True))
    else:
        assert (line, reason) in refused(text, fold(True))


@pytest.mark.parametrize("signature", ["(*x)", "(**x)", "()", "(x):\n    # type: (bool) -> int\n    return 1\ndef g("])
def test_parameters_that_are_none(signature: str) -> None:
    close = ")" if signature.endswith("(") else ""
    assert refused(f"def f{signature}{close}:\n    return 1\n", fold(True))


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("(x)", "()"),
        ("(a, x=False)", "(a)"),
        ("(x: bool, a: int)", "(a: int)"),
        ("(a, *, x=1)", "(a)"),
        ("(a, *, x=1, b)", "(a, *, b)"),
        ("(x, /, a)", "(a)"),
        ("(a, x, /)", "(a, /)"),
        ("(*, x)", "()"),
        ("(\n    a,\n    x: bool = False,  # why\n)", "(\n    a,\n)"),
        ("(\n    a,\n    # own\n    x=(1),\n    b=2\n)", "(\n    a,\n    b=2\n)"),
        ("(\n    a,\n    x=1\n)", "(\n    a\n)"),
        ("(\n    a, *, x=1,\n)", "(\n    a,\n)"),
        ("(\n    a,\n    *,\n    x: int = 1,\n)", "(\n    a,\n)"),
        ("(a, x=1, *args, **kw)", "(a, *args, **kw)"),
    ],
)
def test_signatures(signature: str, expected: str) -> None:
    assert rewritten(f"def f{signature}:\n    return 1\n", fold(True)) == f"def f{expected}:\n    return 1\n"


def test_a_local_goes_with_its_comment() -> None:
    check(
        """
        def check_class(entry, forward):
            a = 1

            # An op that synthesises its output.
            is_synth = (
                entry["ref_api"] == "none"
                and len(forward) == 0
            )

            if not is_synth:
                return g(a, is_synth=is_synth)
            return []
        """,
        lambda rewrite: fold_local(rewrite, rewrite.tree.function("check_class"), "is_synth", False),
        """
        def check_class(entry, forward):
            a = 1

            return g(a, is_synth=False)
        """,
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = g()", "g() may have effects"),
        ("x = y = 1", "x is written other than by a plain assignment of its own"),
        ("x, y = 1, 2", "x is written other than by a plain assignment of its own"),
        ("x += 1", "x is written other than by a plain assignment of its own"),
        ("y = 1", "x is not assigned in f()"),
    ],
)
def test_locals_that_stay(code: str, reason: str) -> None:
    mark = lambda rewrite: fold_local(rewrite, rewrite.tree.function("f"), "x", False)  # noqa: E731
    assert reason in [found for _, found in refused(f"def f():\n    {code}\n", mark)]


def test_pure_names_functions_without_effect() -> None:
    text = "def f():\n    x = g(len([]))\n    if x:\n        a()\n    b()\n"
    mark = lambda rewrite: fold_local(rewrite, rewrite.tree.function("f"), "x", False, ["g"])  # noqa: E731
    assert rewritten(text, mark) == "def f():\n    b()\n"


def test_a_condition_that_a_person_knows() -> None:
    def mark(rewrite: Rewrite) -> None:
        node = next(node for node in rewrite.tree.nodes if isinstance(node, cst.If))
        fold_expression(rewrite, node.test, False)

    check(
        """
        def check(entry, positional):
            if positional is None:
                return None

            # Nothing to align.
            if entry.get("ref_api") == "none" and len(positional) == 0:
                return []

            return positional
        """.replace("if positional is None:\n                return None", "a = 1"),
        mark,
        """
        def check(entry, positional):
            a = 1

            return positional
        """,
    )


def test_two_parameters_of_one_condition() -> None:
    def mark(rewrite: Rewrite) -> None:
        with rewrite.all_or_nothing():
            fold(True)(rewrite)
            fold(True, name="y")(rewrite)

    text = "def f(x, y):\n    if x and y:\n        g()\n"
    assert refused(text, mark) == [(2, "it was folded already in this round")]


def test_a_statement_that_goes_although_something_in_it_changed() -> None:
    def mark(rewrite: Rewrite) -> None:
        fold(True)(rewrite)
        rewrite.remove(rewrite.tree.function("f").body.body[0].body[0])  # type: ignore[union-attr]

    assert rewritten("def f(x):\n    y = x\n", mark) == "def f():\n    pass\n"

from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.names import drop_local, rename_local
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import check, refused, rewritten


def drop(rewrite: Rewrite) -> None:
    drop_local(rewrite, rewrite.tree.function("f"), "x", ["inspect"])


def rename(rewrite: Rewrite) -> None:
    rename_local(rewrite, rewrite.tree.function("f"), "x", "y")


def test_a_dead_local() -> None:
    check(
        """
        def f(a):
            b = 1
            # why
            x = inspect(a)
            x: int = len(a)
            return b
        """,
        drop,
        """
        def f(a):
            b = 1
            return b
        """,
    )


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = 1; return x", "x is read"),
        ("x = run(a)", "run() may have effects"),
        ("x = (y := 2)", "`y := 2` has effects"),
        ("for x in a: pass", "x is written other than by a plain assignment of its own"),
        ("with a as x: pass", "x is written other than by a plain assignment of its own"),
        ("x = 1; del x", "x is written other than by a plain assignment of its own"),
        ("global x; x = 1", "x is declared global or nonlocal"),
        ("x = 1; return eval('x')", "eval() may use any local"),
        ("x = 1; return [x for _ in a]", "x is read"),
        ("y = 1", "x is not assigned in f()"),
    ],
)
def test_locals_that_stay(code: str, reason: str) -> None:
    assert reason in [found for _, found in refused(f"def f(a):\n    {code}\n", drop)]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 1; return x.x, g(x=x)", "y = 1; return y.x, g(x=y)"),
        ("for x in a: b(x)", "for y in a: b(y)"),
        ("with a as x: b(x)", "with a as y: b(y)"),
        ("x = 1; return f'{x!r} x {a[x]}'", "y = 1; return f'{y!r} x {a[y]}'"),
        ("x = [x for x in a]; return x", "y = [x for x in a]; return y"),
        ("x = 1; return [x for b in x if x]", "y = 1; return [y for b in y if y]"),
        ("x = 1; return lambda b=x: x", "y = 1; return lambda b=y: y"),
        ("x = 1; return [(x := b) for b in a], x", "y = 1; return [(y := b) for b in a], y"),
        ("x, [*b] = a; return x", "y, [*b] = a; return y"),
        ("x = 1  # x\n    return 'x'", "y = 1  # x\n    return 'x'"),
        ("x = 1\n    class A:\n        def x(self): return 1\n    return x", None),
        ("x = 1\n    class A:\n        b = x, lambda: x", "y = 1\n    class A:\n        b = y, lambda: y"),
        ("x = 1\n    match a:\n        case [1, *x]: return x", "y = 1\n    match a:\n        case [1, *y]: return y"),
        ("x = 1; return y", None),
        ("x = 1; return lambda y: x", None),
        ("import x", None),
        ("import x.z", None),
        ("x = 1; from x import z; from z import x as b", "y = 1; from x import z; from z import x as b"),
        ("x = 1; import x.z as b", "y = 1; import x.z as b"),
        ("import z as x", "import z as y"),
        ("x = 1; return f'{x=}'", None),
    ],
)  # fmt: skip
def test_renaming(code: str, expected: str | None) -> None:
    if expected is None:
        assert refused(f"def f(a):\n    {code}\n", rename)
    else:
        assert rewritten(f"def f(a):\n    {code}\n", rename) == f"def f(a):\n    {expected}\n"


def test_the_same_name_elsewhere_is_another() -> None:
    other = "x = 1\n\n\ndef g(x, y):\n    return x\n"
    assert rewritten(f"def f(x):\n    return x\n\n\n{other}", rename) == f"def f(x):\n    return y\n\n\n{other}"

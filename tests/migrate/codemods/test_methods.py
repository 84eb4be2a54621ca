from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.folding import fold_local
from opschema_cli.migrate.codemods.methods import inline_method
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import check, refused


def inline(rewrite: Rewrite) -> None:
    inline_method(rewrite, rewrite.tree.method("A", "forward"), rewrite.tree.method("A", "_eager"))


def eagerly(rewrite: Rewrite) -> None:
    fold_local(rewrite, rewrite.tree.method("A", "forward"), "wrapped", None, ["type"])
    inline(rewrite)
    drop_attribute(rewrite, rewrite.tree.class_def("A"), "_wrapped")


def test_the_dispatch_of_a_custom_op() -> None:
    check(
        """
        class A:
            _wrapped = None

            # of the body
            def _eager(self):  # gone
                # first
                out = self.kernel()
                return out  # last

            # of forward
            @traced
            def forward(self) -> Tensor:
                wrapped = type(self)._wrapped
                if wrapped is not None:
                    return wrapped(self.key)
                # run it here
                return self._eager()

            def other(self):
                pass
        """,
        eagerly,
        """
        class A:
            # of the body
            # of forward
            @traced
            def forward(self) -> Tensor:
                # first
                out = self.kernel()
                return out  # last

            def other(self):
                pass
        """,
    )


def test_the_docstring_of_what_stays_is_kept_and_the_test_may_be_the_other_way() -> None:
    check(
        '''
        class A:
            _wrapped = None

            def forward(self):
                """The table."""
                wrapped = type(self)._wrapped
                if wrapped is None:
                    return self._eager()
                return wrapped(self.key)

            def _eager(self):
                """Without tracing."""
                return self.kernel()
        ''',
        eagerly,
        '''
        class A:
            def forward(self):
                """The table."""
                return self.kernel()
        ''',
    )


def test_the_docstring_moves_where_the_caller_has_none() -> None:
    check(
        '''
        class A:
            def forward(self):
                return self._eager()

            def _eager(self):
                """Without tracing."""
                return self.kernel()
        ''',
        inline,
        '''
        class A:
            def forward(self):
                """Without tracing."""
                return self.kernel()
        ''',
    )


def test_statements_before_the_call_and_other_names() -> None:
    check(
        """
        class A:
            def _eager(self, value, *rest, scale):
                value = value * scale
                return [value for _ in rest], lambda value: value

            def forward(self, x, *rest, scale=1):
                check(x)

                return self._eager(x, *rest, scale=scale)
        """,
        inline,
        """
        class A:
            def forward(self, x, *rest, scale=1):
                check(x)

                x = x * scale
                return [x for _ in rest], lambda value: value
        """,
    )


def test_other_marks_in_the_body_and_in_the_head() -> None:
    def mark(rewrite: Rewrite) -> None:
        inline(rewrite)
        for name in ("one", "two"):
            rewrite.remove(rewrite.tree.statement(rewrite.tree.names(name)[0]))

    check(
        """
        class A:
            def _eager(self):
                two = 1
                return self.kernel()

            def forward(self):
                one = 1
                self.run()
                return self._eager()
        """,
        mark,
        """
        class A:
            def forward(self):
                self.run()
                return self.kernel()
        """,
    )


@pytest.mark.parametrize(
    ("eager", "forward", "reason"),
    [
        ("(self):\n        return 1", "(self):\n        return self._eager() + 1", "forward() does not end in a call of _eager()"),
        ("(self):\n        return 1", "(self):\n        return other._eager()", "forward() does not end in a call of _eager()"),
        ("(self):\n        return 1", "(self):\n        self._eager()", "_eager() returns a value that forward() does not"),
        (
            "(self):\n        return 1",
            "(self):\n        if self.k: return 2\n        with self: return self._eager()",
            "forward() does not end in a call of _eager()",
        ),
        ("(self, x):\n        return x", "(self, y):\n        return self._eager(y + 1)", None),
        ("(self, x=1):\n        return x", "(self):\n        return self._eager()", "the call passes nothing for x"),
        ("(self, x):\n        y = 1\n        return x", "(self, y):\n        return self._eager(y)", None),
        ("(self, a, b):\n        return a", "(self, y):\n        return self._eager(y, y)", None),
        (
            "(self):\n        return scale",
            "(self, scale):\n        return self._eager()",
            "scale is a variable of forward() as well",
        ),
        (
            "(self):\n        out = 1\n        return out",
            "(self):\n        out = 2\n        return self._eager()",
            "out is a variable of forward() as well",
        ),
        ("(self):\n        yield 1", "(self):\n        return self._eager()", "_eager() is a coroutine or a generator"),
        ("(self): return 1", "(self):\n        return self._eager()", "a body is written on the line of its def"),
        (
            "(this):\n        return 1",
            "(self):\n        return self._eager()",
            "_eager() and forward() do not name their first parameter alike",
        ),
        (
            "(self):\n        return 1",
            "(self):\n        a = self._eager\n        return self._eager()",
            "_eager() is used here too",
        ),
        (
            "(self):\n        return 1",
            "(self):\n        a = 1; return self._eager()",
            "the call shares its line with another statement",
        ),
    ],
)  # fmt: skip
def test_refusals(eager: str, forward: str, reason: str | None) -> None:
    found = refused(f"class A:\n    def _eager{eager}\n\n    def forward{forward}\n", inline)
    assert reason is None or reason in [text for _, text in found]


def test_a_decorated_method() -> None:
    text = """
    class A:
        @property
        def _eager(self):
            return 1

        def forward(self):
            return self._eager()
    """
    assert refused(text, inline) == [(4, "_eager() is decorated")]


def test_two_classes_in_one_file_with_methods_of_the_same_names() -> None:
    text = (
        "class {}:\n    def _eager(self):\n        return 1\n\n    def forward(self):\n        return self._eager()\n"
    )
    b = text.format("B")
    check(text.format("A") + "\n\n" + b, inline, "class A:\n    def forward(self):\n        return 1\n\n\n" + b)

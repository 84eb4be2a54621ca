from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import Mark, check, refused


def drop(name: str, *pure: str) -> Mark:
    return lambda rewrite: drop_attribute(rewrite, rewrite.tree.class_def("A"), name, pure)


def test_a_class_attribute_and_its_assignments() -> None:
    check(
        """
        class A:
            name = "a"
            # set by the factory
            _wrapped = None

            def __init__(self, x):
                self.x = x
                # lent to the trace
                self._wrapped = torch.empty((), dtype=x)  # gone
                self.y = 1

            @classmethod
            def clear(cls):
                cls._wrapped: object = None


        class B:
            _wrapped = None
        """,
        drop("_wrapped", "torch.empty"),
        """
        class A:
            name = "a"

            def __init__(self, x):
                self.x = x
                self.y = 1

            @classmethod
            def clear(cls):
                pass


        class B:
            _wrapped = None
        """,
    )


@pytest.mark.parametrize(
    ("code", "line", "reason"),
    [
        ("self.k = make()", 5, "make() may have effects"),
        ("self.k, self.j = 1, 2", 5, "self.k is written other than by a plain assignment of its own"),
        ("self.j = self.k = 1", 5, "self.k is written other than by a plain assignment of its own"),
        ("self.k += 1", 5, "self.k is written other than by a plain assignment of its own"),
        ("for self.k in []: pass", 5, "self.k is written other than by a plain assignment of its own"),
        ("return self.k", 5, "self.k is used"),
        ("return other.k", 5, "other.k is used"),
        ("self.k.j = 1", 5, "self.k is used"),
        ("setattr(self, 'k', 1)", 5, "a string names k"),
    ],
)
def test_what_is_left_over_is_reported(code: str, line: int, reason: str) -> None:
    text = f"class A:\n    k = None\n\n    def f(self, other):\n        {code}\n        return self.f(k=1)\n"
    assert refused(text, drop("k")) == [(line, reason)]


def test_a_class_body_that_reads_it() -> None:
    assert refused("class A:\n    k = 1\n    j = k\n", drop("k")) == [(3, "k is used")]


def test_an_attribute_that_is_not_there() -> None:
    assert refused("class A:\n    j = 1\n", drop("k")) == [(1, "A does not assign k")]


def test_a_use_that_is_gone_does_not_count() -> None:
    def mark(rewrite: Rewrite) -> None:
        rewrite.remove(rewrite.tree.method("A", "g"))
        drop("k")(rewrite)

    check(
        """
        class A:
            def f(self):
                self.k = 1
                self.j = 2

            def g(self):
                return self.k
        """,
        mark,
        """
        class A:
            def f(self):
                self.j = 2
        """,
    )

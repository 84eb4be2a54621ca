from __future__ import annotations

from opschema_cli.migrate.codemods.definitions import delete_calls, delete_definition
from opschema_cli.migrate.codemods.imports import drop_exports, drop_imports
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import check, refused


def delete_helper(rewrite: Rewrite) -> None:
    drop_exports(rewrite, ["helper"])
    delete_calls(rewrite, rewrite.tree.calls("helper"))
    delete_definition(rewrite, rewrite.tree.function("helper"))
    drop_imports(rewrite, ["Callable"])


def test_a_function_its_calls_its_export_and_the_import_that_it_needed() -> None:
    check(
        """
        from typing import Any, Callable

        __all__ = ["A", "helper"]

        A: Any = 1


        def helper(call: Callable) -> None:
            if call:
                helper(None)


        # --- registered ---
        helper(
            lambda: 1,
        )
        helper(A); print(A)
        """,
        delete_helper,
        """
        from typing import Any

        __all__ = ["A"]

        A: Any = 1


        # --- registered ---
        print(A)
        """,
    )


def test_a_call_whose_value_is_used() -> None:
    assert refused("def helper():\n    pass\n\n\nx = helper()\nhelper()\n", delete_helper) == [
        (5, "the value of helper() is used")
    ]


def test_a_use_that_is_no_call() -> None:
    mark = lambda rewrite: delete_definition(rewrite, rewrite.tree.function("helper"))  # noqa: E731
    text = "__all__ = ['helper']\n\n\ndef helper():\n    return helper\n\n\nx = [helper]\n"
    assert refused(text, mark) == [(1, "helper is used"), (8, "helper is used")]


def test_a_method_is_used_as_attribute() -> None:
    mark = lambda rewrite: delete_definition(rewrite, rewrite.tree.method("A", "f"))  # noqa: E731
    assert refused("class A:\n    def f(self):\n        pass\n\n\nA().f()\n", mark) == [(6, "f is used")]
    check(
        "class A:\n    def f(self):\n        pass\n\n\ndef f():\n    f()\n",
        mark,
        "class A:\n    pass\n\n\ndef f():\n    f()\n",
    )

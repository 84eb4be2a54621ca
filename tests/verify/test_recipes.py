"""Files of recipes."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify import recipes
from opschema_cli.verify.model import Tolerance
from opschema_cli.verify.recipes import Recipe, find_recipe, has, ops_with_recipes

HEAD = "from opschema_cli.verify.recipes import Recipe, Tolerance, recipe\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "recipes.py"
    path.write_text(HEAD + text)
    return path


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    example = (recipes.__doc__ or "").split("Each op that needs a recipe has a class::")[1]
    code = textwrap.dedent(example.split("\nThe file is executed")[0])
    found = find_recipe(write(tmp_path, code), "BatchCenterFwdOp")
    assert found.tolerance == Tolerance(
        ulps=2, reason="the mean is rounded to the input's dtype before it is subtracted"
    )
    methods = [node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    assert methods == ["skip", "inputs", "arguments", "call", "reference"]
    assert all(has(found, method) for method in methods)


def test_an_op_without_a_recipe(tmp_path: Path) -> None:
    found = find_recipe(write(tmp_path, "@recipe('A', 'B')\nclass R(Recipe): ...\n"), "C")
    assert type(found) is Recipe
    assert not has(found, "reference")


def test_several_ops_may_share_one(tmp_path: Path) -> None:
    path = write(tmp_path, "@recipe('A', 'B')\nclass R(Recipe):\n    def reference(self, tensors, params): ...\n")
    assert all(has(find_recipe(path, op), "reference") for op in ("A", "B"))


def test_two_recipes_of_one_op(tmp_path: Path) -> None:
    path = write(tmp_path, "@recipe('A')\nclass R(Recipe): ...\n@recipe('A')\nclass S(Recipe): ...\n")
    with pytest.raises(OpschemaError, match="A has two recipes: R and S"):
        find_recipe(path, "A")


def test_a_tolerance_needs_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "@recipe('A')\nclass R(Recipe):\n    tolerance = Tolerance(ulps=2)\n")
    with pytest.raises(OpschemaError, match="the tolerance of A is changed without a reason"):
        find_recipe(path, "A")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(OpschemaError, match="there is no such file of recipes"):
        find_recipe(tmp_path / "gone.py", "A")


def test_a_file_that_raises(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        find_recipe(write(tmp_path, "1 / 0\n"), "A")


def test_which_ops_have_recipes_is_told_without_running_them(tmp_path: Path) -> None:
    text = "1 / 0\n@recipe('A', 'B')\nclass R(Recipe): ...\n@recipe(*names)\nclass S(Recipe): ...\n"
    assert ops_with_recipes(write(tmp_path, text)) == {"A": 3, "B": 3}


@pytest.mark.parametrize(
    ("text", "says"), [("def", ":2: invalid syntax"), ("\0", "null bytes"), ("(" * 9999, "recipes.py")]
)
def test_a_file_that_is_no_python(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(OpschemaError, match=f"the recipes cannot be read: .*{says}"):
        ops_with_recipes(write(tmp_path, text))
    with pytest.raises(OpschemaError, match=r"gone\.py: No such file"):
        ops_with_recipes(tmp_path / "gone.py")

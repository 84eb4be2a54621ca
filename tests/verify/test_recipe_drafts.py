"""``opschema verify --init``: recipes to fill in, from what is found of ops."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from opschema_cli.errors import OpschemaError
from opschema_cli.main import run as opschema
from opschema_cli.verify.model import Call, Input
from opschema_cli.verify.recipe_calls import call_text, recipe_calls
from opschema_cli.verify.recipe_text import Draft, recipes_text
from opschema_cli.verify.recipes import Recipe, find_recipe, tensor

OPS = """
import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("kit::thirds", mutates_args=())
def thirds(x: Tensor, y: Tensor, eps: float = 1e-6) -> Tensor:
    assert x.shape[1] == 3 * y.shape[1]
    return x.unflatten(1, (3, -1)).sum(1) + y + eps


@custom_op("kit::halved", mutates_args=())
def halved(x: Tensor) -> Tensor:
    return x / 2


@thirds.register_fake
def _(x, y, eps=1e-6):
    return torch.empty_like(y)


@halved.register_fake
def _(x):
    return torch.empty_like(x)


def ref_thirds(x, y, eps): ...
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_recipe_is_written_filled_in_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kit.py").write_text(OPS)
    config, recipes = tmp_path / "opschema.toml", tmp_path / "opschema_recipes.py"
    config.write_text("")
    monkeypatch.chdir(tmp_path)
    assert opschema(["verify", "--init", "kit::thirds", "halved"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "wrote opschema_recipes.py: 2 recipes"
    assert shown[1] == "no call was found for `kit::thirds`; write one in the file"
    assert shown[-1] == 'recipe = "opschema_recipes.py"'

    text = recipes.read_text()
    sample = '"small": {"x": tensor(32, 64), "y": tensor(32, 64)},'
    assert f"    # calls = {{\n    #     {sample}\n    # }}" in text
    assert '"call-1": {"x": tensor(32, 64)},' in text
    assert 'eps = params.get("eps", 1e-06)' in text
    assert "these may compute the same: `ref_thirds` (kit.py:" in text
    assert opschema(["verify", "--init", "halved"]) == 2
    assert recipes.read_text() == text
    assert "opschema_recipes.py exists, and is not overwritten" in capsys.readouterr().err

    calls = (
        '    calls = {"given": {"x": tensor(4, 96), "y": tensor(4, 32)}, "wrong": {"x": tensor(4, 96), "y": tensor(4)}}'
    )
    recipes.write_text(text.replace(f"    # calls = {{\n    #     {sample}\n    # }}", calls))
    config.write_text('[verify]\nrecipe = "opschema_recipes.py"\n')
    assert opschema(["verify", "--list", "kit::thirds", "--cells", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == ["kit::thirds[given-float32-row-s0]", "kit::thirds[wrong]"]


def test_calls_are_read_as_they_are_written(tmp_path: Path) -> None:
    call = Call(
        inputs=(
            Input(name="xs.0", shape=(2, 3), dtype="float16"),
            Input(name="xs.1", shape=(), dtype="float32"),
            Input(name="i", shape=(4,), dtype="int64", low=0, high=7),
        ),
        lists={"xs": ("xs.0", "xs.1")},
        params={"mode": 'a"b', "sizes": [1, -1], "p": float("inf"), "dtype": "torch.float16", "none": None},
    )
    path = tmp_path / "recipes.py"
    drafts = [Draft(op="kit::a.b", declaration="", calls={"one": call}), Draft(op="kit::a_b", declaration="")]
    path.write_text(recipes_text(drafts))
    assert recipe_calls(find_recipe(path, "kit::a.b"), "kit::a.b") == {"one": call}
    assert type(find_recipe(path, "kit::a_b")).__name__ == "KitAB2"
    assert call_text(call).startswith('{"xs": [tensor(2, 3, dtype="float16"), tensor()], "i": tensor(4, ')


def test_a_real_tensor_in_calls_is_refused_with_what_to_write() -> None:
    import torch

    class Wrong(Recipe):
        calls = {"one": {"x": tensor(2), "y": torch.zeros(2)}}

    with pytest.raises(OpschemaError, match=r"the recipe of kit::a, call `one`, `y`: write a tensor as its shape"):
        recipe_calls(Wrong(), "kit::a")

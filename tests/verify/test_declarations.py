"""Differences between two declarations of an op are reported, and both sides are called according to one of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from opschema_cli.verify.declarations import other_recipes, redeclared
from opschema_cli.verify.model import Call, Cell, Input, Output, Plan, Target


def plan(eps: float = 1e-6, out: str = "float16", reference: str = "torch.exp", recipe: Path | None = None) -> Plan:
    call = Call(
        inputs=(Input(name="x", shape=(4,), dtype="float16"),),
        outputs=(Output(name="y", dtype=out),),
        defaults={"eps": eps},
    )
    target = Target(root="/", module="m", name="Op", recipe=str(recipe or ""))
    return Plan(
        op="Op", target=target, cells=(Cell(op="Op", row="r", dtype="float16", call=call),), reference=reference
    )


def test_the_same_declaration() -> None:
    assert list(redeclared(plan(), plan())) == []


def test_another_default_dtype_and_reference() -> None:
    assert list(redeclared(plan(eps=1e-3), plan())) == ["the default of `eps` is 0.001, before 1e-06"]
    assert list(redeclared(plan(out="float32"), plan())) == ["`y` is float32 in rows of float16, before float16"]
    assert list(redeclared(plan(reference=""), plan())) == ["the reference is none of torch, before torch.exp"]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        ("(Tensor x, float eps) -> Tensor", ["`eps` now has no default; it had the default `1e-6`"]),
        ("(Tensor y, float eps=1e-6) -> Tensor", ["the argument `x` is now called `y`"]),
        ("(Tensor x) -> Tensor", ["the argument `float eps=1e-6` was removed"]),
        ("(Tensor x, float eps=1e-06) -> Tensor", []),
        ("", []),
        ("(Tensor x, ? eps) -> Tensor", []),
    ],
)
def test_another_schema(now: str, told: list[str]) -> None:
    old = Plan(op="k::f", target=plan().target, cells=(), schema="k::f(Tensor x, float eps=1e-6) -> Tensor")
    new = msgspec.structs.replace(old, schema=now and f"k::f{now}")
    assert list(redeclared(new, old)) == told


def test_what_only_one_of_them_names_is_no_difference() -> None:
    empty = Plan(op="Op", target=plan().target, cells=())
    assert list(redeclared(plan(), empty)) == list(redeclared(empty, plan())) == []


def test_other_recipes(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    for path, text in ((one, "a"), (same, "a"), (other, "b")):
        path.write_text(text)
    assert not other_recipes(plan(recipe=one), plan(recipe=same))
    assert other_recipes(plan(recipe=one), plan(recipe=other))
    assert not other_recipes(plan(recipe=one), plan())

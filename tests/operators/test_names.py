"""Suggestions for an unknown name."""

from __future__ import annotations

import pytest

from opschema_cli.operators.names import closest_names, meant_name

OPS = ["RMSNormFwdOp", "RMSNormBwdOp", "kit::rotate", "add.Tensor", "ADD.tensor"]


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("rmsnormfwdop", ["RMSNormFwdOp", "RMSNormBwdOp"]),
        ("RMSNorm", ["RMSNormFwdOp", "RMSNormBwdOp"]),
        ("Rotate", ["kit::rotate"]),
        ("kit::rotat", ["kit::rotate"]),
        ("add.tensor", ["ADD.tensor", "add.Tensor"]),
        ("zzz", []),
        ("", []),
    ],
)
def test_the_closest_names(name: str, closest: list[str]) -> None:
    assert closest_names(name, OPS) == closest


@pytest.mark.parametrize(
    ("name", "close", "meant"),
    [
        ("rmsnormfwdop", ["RMSNormFwdOp", "RMSNormBwdOp"], "RMSNormFwdOp"),
        ("ROTATE", ["kit::rotate", "kit::rotated"], "kit::rotate"),
        ("rotate", ["kit::rotate", "other::rotate"], None),
        ("add.tENSOR", ["ADD.tensor", "add.Tensor"], None),
        ("RMSNorm", ["RMSNormFwdOp"], None),
        ("rotate", ["Rotate", "kit::rotate"], "Rotate"),
    ],
)
def test_only_one_name_can_be_meant(name: str, close: list[str], meant: str | None) -> None:
    assert meant_name(name, close) == meant

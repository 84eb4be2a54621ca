"""Numbers that Python can neither turn into floats nor write in decimal, wherever a manifest may hold one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from opschema_cli.source.yaml_compose import compose
from opschema_cli.source.yaml_scalars import plain_value
from tests.command import Opschema
from tests.hostile.growth.measure import write
from tests.hostile.growth.yaml_inputs import entry, manifest

HEX = "0x" + "f" * 3000
FORMULAS = [
    "2**2000",
    "-2**2000",
    "[2**2000]*64",
    "2**2000/3",
    "1e300*10**400",
    "ceil(2**2000*1.0)",
    "0*2**4000",
    "range(2**2000)",
]
VALUES = [HEX, f"-{HEX}", f"!!float {HEX}", "9" * 3400, f"'{'9' * 5000}'", ".inf", "1e999", f"!!int '1{':59' * 1000}'"]


def test_no_rule_fails_on_them(tmp_path: Path) -> None:
    entries = [
        *(
            entry(f"A{at}FwdOp", flops=f"'{text}'", rules=f"['x.shape[0] < {text}']")
            for at, text in enumerate(FORMULAS)
        ),
        *(
            entry(
                f"B{at}FwdOp",
                params=f"{{scale: {{type: int, default: {value} }}}}",
                workloads=f"[{{x_shape: [{value} , 2], dtypes: [float16], scale: {value} }}]",
                flops=value,
            )
            for at, value in enumerate(VALUES)
        ),
    ]
    tree = tmp_path / "tree"
    write(tree, manifest("".join(entries)))
    opschema = Opschema(tree, tmp_path / "cache")
    found = json.loads(opschema("lint", "--output-format", "json").out)["diagnostics"]
    assert {item["code"] for item in found} & {"OPS900", "YML001"} == set()
    assert max(len(item["message"]) for item in found) <= 2000
    assert opschema("lint", "--output-format", "text").code == 1


@pytest.mark.parametrize(
    ("text", "value"), [("1:59", 119), ("1" + ":59" * 5000, "1" + ":59" * 5000), ("9" * 5000, "9" * 5000)]
)
def test_a_number_of_very_many_digits_is_text(text: str, value: object) -> None:
    assert plain_value(text) == value


def test_an_integer_that_is_to_be_a_float_and_is_too_large_is_infinite() -> None:
    assert compose(f"[!!float {HEX}, !!float -{HEX}]").data() == [math.inf, -math.inf]

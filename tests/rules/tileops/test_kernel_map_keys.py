"""SRC107: keys by which methods read `self.kernel_map`."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.tileops.examples import OP, example_files
from opschema_rules.tileops.pack import PACK


def messages(code: str) -> list[str]:
    linted = lint_files([PACK], example_files([("python", code)]), ["SRC107"])
    return [item.message for item in linted.diagnostics]


KEYS = [
    ('return self.kernel_map["exmaple"](x)', ["exmaple"]),
    ('return self.build(lambda: self.kernel_map["fast"](x, tune=True))', ["fast"]),
    ('kernel = self.kernel_map["fast"]\n        return kernel(x)', ["fast"]),
    ('slot = "example" if self.eps else "fast"\n        return self.kernel_map[slot](x)', ["fast"]),
    ("return self.kernel_map[FAST](x)", ["fast"]),
    ("return self.kernel_map[self.FAST](x)", ["fast"]),
    ('if self.eps:\n            return self.kernel_map["fast"](x)\n        return x', ["fast"]),
    ('return self.kernel_map["example"](x)', []),
    ('slot = "example" if self.eps else "wide"\n        return self.kernel_map[slot](x)', []),
    ('slot = pick("example")\n        return self.kernel_map[slot](x)', []),
    ('slot = "fast"\n        slot += "er"\n        return self.kernel_map[slot](x)', []),
    ('return self.kernel_map.get("fast", self.kernel_map["wide"])(x)', []),
    ('return self.other_map["fast"](x)', []),
    ('return [self.kernel_map[key](x) for key in ("example", "fast")]', []),
    ('self.kernel_map["fast"] = fast\n        return self.kernel_map["fast"](x)', []),
    ('self.kernel_map.update(fast=1)\n        return self.kernel_map["fast"](x)', []),
    ('return self.kernel_map["fast"](x) if "fast" in self.kernel_map else x', []),
    ('try:\n            return self.kernel_map["fast"](x)\n        except KeyError:\n            return x', []),
]


@pytest.mark.parametrize(("body", "expected"), KEYS)
def test_keys_that_the_map_does_not_have(body: str, expected: list[str]) -> None:
    code = OP.replace('return {"example": ExampleKernel}', 'return {"example": ExampleKernel, "wide": ExampleKernel}')
    forward = code.index("        return self.kernel_map")
    code = f"FAST = 'fast'\n\n\n{code[:forward]}        {body}\n".replace(
        "class ExampleFwdOp(Op):\n", 'class ExampleFwdOp(Op):\n    FAST = "fast"\n\n'
    )

    assert [message.partition(";")[0] for message in messages(code)] == [
        f"`default_kernel_map` has no kernel `{name}`" for name in expected
    ]


@pytest.mark.parametrize(
    "returned", ["{}", "{key: ExampleKernel for key in KEYS}", "make()", "{**others, 'wide': ExampleKernel}"]
)
def test_maps_that_are_not_known(returned: str) -> None:
    code = OP.replace('return {"example": ExampleKernel}', f"return {returned}")
    assert messages(code) == []


RIGHT = (Path(__file__).parent / "kernel_map_keys.txt").read_text("utf-8").split("#### ")[1:]


@pytest.mark.parametrize("text", RIGHT)
def test_keys_that_may_be_there_or_are_not_read(text: str) -> None:
    assert messages(text.partition("\n")[2]) == []

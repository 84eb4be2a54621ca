"""Which contract holds: as configured, as MagiCompiler's own copy shows, as pinned, or as an op needs it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from opschema_rules.magi.model import MagiTree

ReadTree = Callable[..., MagiTree]

MODULE = "magi_compiler/_magi_register_custom_op.py"
PLAIN = "@magi_register_custom_op()\ndef f(x: Tensor) -> Tensor: ...\n"
FROZEN = (
    "@dataclass(frozen=True)\nclass C:\n    a: int\n@magi_register_custom_op()\ndef f(x: Tensor, c: C) -> Tensor: ...\n"
)


@pytest.mark.parametrize(
    ("text", "files", "magi", "name", "sure"),
    [
        (PLAIN, {}, "", "dataclasses", False),
        (PLAIN, {}, "plain", "plain", True),
        (PLAIN, {MODULE: "def _lower_op_signature(fn): ...\n"}, "", "dataclasses", True),
        (PLAIN, {f"third_party/{MODULE}": "def _generate_op_name(fn): ...\n"}, "", "plain", True),
        (
            PLAIN,
            {"requirements.txt": "magi @ git+https://github.com/SandAI-org/MagiCompiler.git@517fc88\n"},
            "",
            "plain",
            True,
        ),
        (
            PLAIN,
            {"requirements.txt": "magi @ git+https://github.com/SandAI-org/MagiCompiler@main\n"},
            "",
            "dataclasses",
            False,
        ),
        (FROZEN, {}, "", "dataclasses", True),
        (FROZEN, {}, "plain", "plain", True),
    ],
)
def test_contract(text: str, files: dict[str, str], magi: str, name: str, sure: bool, read_tree: ReadTree) -> None:
    contract = read_tree(text, files, magi=magi).contract
    assert (contract.name, contract.sure, contract.surely("plain")) == (name, sure, name == "plain")

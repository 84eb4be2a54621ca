"""The codemods on TileOPs before its commit bfae9be4, against what its people wrote there by hand."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from opschema_cli.migrate.codemods.assignments import plain_assignments
from opschema_cli.migrate.codemods.attributes import drop_attribute
from opschema_cli.migrate.codemods.calls import drop_argument
from opschema_cli.migrate.codemods.definitions import delete_calls, delete_definition
from opschema_cli.migrate.codemods.folding import fold_expression, fold_local, fold_parameter
from opschema_cli.migrate.codemods.imports import drop_imports
from opschema_cli.migrate.codemods.methods import inline_method
from opschema_cli.migrate.codemods.names import drop_local
from opschema_cli.migrate.codemods.rewrite import Rewrite
from tests.migrate.codemods.rounds import Mark, rewritten

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not os.environ.get("OPSCHEMA_CORPUS"), reason="OPSCHEMA_CORPUS is not set"),
]
HELPER = "_register_generative_custom_op"


def op_class(name: str) -> Mark:
    def mark(rewrite: Rewrite) -> None:
        tree = rewrite.tree
        op, forward = tree.class_def(name), tree.method(name, "forward")
        fold_local(rewrite, forward, "wrapped", None, ["type"])
        inline_method(rewrite, forward, tree.method(name, "_eager_forward"))
        drop_attribute(rewrite, op, "_wrapped")
        drop_attribute(rewrite, op, "_device_carrier", ["torch.empty"])
        targets = [item.target for item in tree.walk(op) if isinstance(item, cst.AssignTarget)]
        registry = [item for item in targets if tree.code(item) == "_OP_REGISTRY[self._instance_key]"]
        rewrite.remove(*plain_assignments(rewrite, registry))
        drop_attribute(rewrite, op, "_instance_key")
        drop_imports(rewrite, ["_OP_REGISTRY"])

    return mark


def package(rewrite: Rewrite) -> None:
    delete_calls(rewrite, rewrite.tree.calls(HELPER))
    drop_imports(rewrite, [HELPER])


def base(rewrite: Rewrite) -> None:
    delete_definition(rewrite, rewrite.tree.function(HELPER))


def validator(rewrite: Rewrite) -> None:
    tree = rewrite.tree
    fold_parameter(rewrite, tree.function("check_l1_signature"), "is_generative", False)
    for call in tree.calls("check_l1_signature"):
        drop_argument(rewrite, call, "is_generative")
    caller = tree.function("check_l1")
    fold_local(rewrite, caller, "is_generative", False)
    drop_local(rewrite, caller, "positional_forward_params", ["_forward_positional_params"])
    parity = tree.walk(tree.function("check_c4_forward_signature_parity"))
    fold_expression(
        rewrite,
        next(node.test for node in parity if isinstance(node, cst.If) and "ref_api" in tree.code(node.test)),
        False,
    )


def both(path: str, mark: Mark) -> tuple[str, str]:
    """The results of the codemods and of people for a file."""
    corpus = Path(os.environ["OPSCHEMA_CORPUS"])
    before, after = corpus / "tileops-bfae9be4-parent" / path, corpus / "tileops-bfae9be4" / path
    if not before.exists() or not after.exists():
        pytest.skip("tileops-bfae9be4 and its parent are not below OPSCHEMA_CORPUS")
    return rewritten(before.read_text(encoding="utf-8"), mark), after.read_text(encoding="utf-8")


def without_notes(text: str) -> str:
    """Without the paragraph and the comment that people added."""
    lines = text.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line == "    Note:\n"]
    for start in starts:
        del lines[start : lines.index("\n", start) + 1]
    return "".join(lines)


@pytest.mark.parametrize("name", ["alibi", "sinusoidal"])
def test_op_classes_come_out_as_by_hand(name: str) -> None:
    ours, theirs = both(f"tileops/ops/elementwise/{name}.py", op_class(f"{name.title()}FwdOp"))
    assert ours == without_notes(theirs)


def test_the_helper_goes_as_by_hand() -> None:
    ours, theirs = both("tileops/ops/elementwise/_base.py", base)
    assert ours == theirs


def test_the_registrations_go_as_by_hand() -> None:
    ours, theirs = both("tileops/ops/elementwise/__init__.py", package)
    banner = theirs[theirs.index("# torch.compile registration") : theirs.index("# --- Unary ops: float")]
    assert ours == theirs.replace(
        banner, banner[banner.index("# ------") :].join(["# torch.compile registration for all 66 concrete ops\n", ""])
    )


FUNCTIONS: list[tuple[str, Callable[[str], str]]] = [
    ("check_l1", str),
    ("check_c4_forward_signature_parity", str),
    (
        "check_l1_signature",
        lambda text: "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#")),
    ),
]


@pytest.mark.parametrize(("name", "part"), FUNCTIONS)
def test_the_validator_is_folded_as_by_hand(name: str, part: Callable[[str], str]) -> None:
    ours, theirs = (part(function(text, name)) for text in both("scripts/validate_manifest.py", validator))
    assert ours == theirs


def function(text: str, name: str) -> str:
    found = next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name)
    return ast.get_source_segment(text, found) or ""

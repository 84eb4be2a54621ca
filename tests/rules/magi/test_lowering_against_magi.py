"""The static lowering against MagiCompiler's own: the same lowered signatures, trees, paths and refusals."""

from __future__ import annotations

import enum
import importlib.util
import inspect
import os
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.magi.detection import MagiOptions
from opschema_rules.magi.given import Mutates
from opschema_rules.magi.load import load_tree
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Branch, Lowering, Node
from tests.rules.magi.generated import Generator
from tests.rules.magi.real_magi import Registered, recording

CHECKOUT = Path(os.environ.get("OPSCHEMA_CORPUS", ".")) / "oplibs/magi-e68e0b0"

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CHECKOUT.is_dir(), reason="OPSCHEMA_CORPUS has no oplibs/magi-e68e0b0"),
]

OPS = 12
"""Ops of one module."""

MESSAGES = {
    "mutable-dataclass": r"(?:parameter|field) \S+?(?: of '\w+')? has mutable dataclass",
    "tuple": "has tuple annotation",
    "dict": "has dict-typed annotation",
    "dataclass-return": "returns dataclass",
    "no-return": r"return value of '\w+' has no type annotation",
    "no-annotation": r"parameter .* has no type annotation",
    "variadic": "variadics aren't supported",
    "text-field": "has unresolved string annotation",
    "literal": "has Literal",
    "enum": "has non-string Enum",
    "default-order": "non-default argument follows default argument",
    "duplicate-name": "duplicate parameter name",
    "mutates": "mutates_args entry",
}


@pytest.mark.parametrize("seed", range(40))
def test_generated_ops_are_lowered_alike(seed: int, tmp_path: Path) -> None:
    text = Generator(seed).module(OPS)
    path = tmp_path / f"generated_{seed}.py"
    path.write_text(text)
    theirs = {record.function.__name__: record for record in _run(path)}
    ours = {op.function_name: op for op in load_tree(Project(Workspace(tmp_path)), MagiOptions()).ops}
    assert theirs.keys() == ours.keys()
    assert len(ours) == OPS
    wrong = {name: found for name, op in ours.items() if (found := _difference(op, theirs[name]))}
    assert not wrong, f"{path}\n" + "\n".join(f"{name}: {found}" for name, found in wrong.items())


def _run(path: Path) -> list[Registered]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    with recording(CHECKOUT) as records:
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        finally:
            del sys.modules[path.stem]
    return records


def _difference(op: MagiOp, real: Registered) -> str:
    """The difference, or an empty string if there is none."""
    lowering = op.lowering
    if not lowering.complete:
        return f"not resolved: {lowering.unknown}"
    refused = _refused(op)
    expected = _kind(real.error) if real.error is not None else ""
    if refused or expected:
        return "" if refused == expected else f"refused for {refused!r}, theirs {real.error!r}"
    assert real.lowered is not None
    ours = (op.name, lowering.path, _tree(lowering), _signature(lowering), _mutates(op))
    want = (real.op_name, real.path, _real_tree(real), _real_signature(real.lowered), real.mutates)
    return "" if ours == want else f"{ours}\n    {want}"


def _refused(op: MagiOp) -> str:
    if op.lowering.problems:
        return op.lowering.problems[0].kind
    mutates = op.mutates
    assert isinstance(mutates, Mutates)
    return "mutates" if op.lowering.expand_mutates([item.name for item in mutates.names])[1] else ""


def _kind(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "recursive"
    return next(kind for kind, pattern in MESSAGES.items() if re.search(pattern, str(error)))


def _mutates(op: MagiOp) -> tuple[str, ...]:
    assert isinstance(op.mutates, Mutates)
    return op.lowering.expand_mutates([item.name for item in op.mutates.names])[0]


def _tree(lowering: Lowering) -> list[Any] | None:
    return [_node(node) for node in lowering.nodes] if lowering.flattens else None


def _node(node: Node) -> Any:
    if isinstance(node, Branch):
        return "dataclass", node.name, node.dataclass.name, [_node(child) for child in node.children]
    return "primitive", node.name, node.lowered, None


def _real_tree(real: Registered) -> list[Any] | None:
    def node(item: Any) -> Any:
        kind, name, third, children = item
        return (kind, name, third.__name__, [node(child) for child in children]) if children is not None else item

    return [node(item) for item in real.tree] if real.tree is not None else None


def _signature(lowering: Lowering) -> tuple[list[tuple[str, str, str]], str]:
    leaves = [(leaf.lowered, str(leaf.lowered_type), str(leaf.default) or "-") for leaf in lowering.leaves]
    return leaves, str(lowering.returns)


def _real_signature(signature: inspect.Signature) -> tuple[list[tuple[str, str, str]], str]:
    params = signature.parameters.values()
    return [(item.name, _written(item.annotation), _default(item.default)) for item in params], _written(
        signature.return_annotation
    )


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "-"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    return re.sub(r"^device\(type=('\w+')\)$", r"torch.device(\1)", repr(value))


def _written(form: Any) -> str:
    """A type of Python as the static reader writes its own."""
    if isinstance(form, typing.ForwardRef):
        return repr(form.__forward_arg__)
    if isinstance(form, str):
        return repr(form)
    if form is type(None) or form is None:
        return "None"
    if form is ...:
        return "..."
    origin, args = typing.get_origin(form), typing.get_args(form)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(_written, args))
    if origin is typing.Annotated:
        return f"Annotated[{_written(args[0])}]"
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin is not None and args:
        return f"{origin.__name__}[{', '.join(map(_written, args))}]"
    return str(form).rpartition(".")[2] if not isinstance(form, type) else form.__name__

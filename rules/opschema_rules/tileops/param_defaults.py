"""Defaults of params: the entry's declaration, the constructor's value, and whether both are the same."""

from __future__ import annotations

import math

from opschema_cli.lint.diagnostic import Fix
from opschema_cli.schema import dtypes
from opschema_cli.source.program import ClassRef, Folded
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.yaml import Data, Node
from opschema_cli.source.yaml_edit import insert_key, set_value
from opschema_cli.source.yaml_render import flow_text
from opschema_rules.tileops.drift import Method, method_of, short, yaml_fix
from opschema_rules.tileops.entry_parts import ParamDecl
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.param_types import admits, type_problem
from opschema_rules.tileops.scalar_roles import is_misread
from opschema_rules.tileops.scalars import misreading


def in_constructor(entry: OpEntry, name: str) -> tuple[Method, Param] | None:
    """Return the constructor and its parameter of that name; None if either is not known."""
    ref = entry.op_class
    method = method_of(OpImplementation(entry, ref), "__init__") if isinstance(ref, ClassRef) else None
    param = method.param(name) if method is not None else None
    return (method, param) if method is not None and param is not None else None


def is_refused(entry: OpEntry, param: ParamDecl) -> bool:
    """Whether the type of a param is known not to admit its default. `null`, and values that YAML misreads, are not checked."""
    node = param.node.get("default")
    if (
        node is None
        or param.type is None
        or not param.has_default
        or param.default is None
        or param.doubtful("default")
    ):
        return False
    if type_problem(param.type) is not None or _holds_misread(entry, param, node):
        return False
    return admits(param.type, param.default) is False


def _holds_misread(entry: OpEntry, param: ParamDecl, node: Node) -> bool:
    """Whether a default has a scalar in it that is read otherwise than it looks, or that is tagged or an alias."""
    path = ("signature", "params", param.name, "default")
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if item.tag or item.kind == "alias" or is_misread(entry, path, item):
            return True
        waiting += item.items
    return False


def state_default(method: Method, default: Expr, declared: ParamDecl, why_unsafe: str) -> Fix | None:
    """Return the fix that makes the manifest declare the code's default; None if YAML cannot represent it."""
    entry, value, node = method.op.entry, method.fold(default), declared.node.get("default")
    if value is None or (value.symbol and not value.symbol.startswith("torch.")):
        return None
    data = value.symbol.removeprefix("torch.") if value.symbol else as_data(value.value)
    try:
        title = f"declare `default: {short(flow_text(data))}`"
    except ValueError:  # a text that no YAML file can hold
        return None
    if node is not None:
        return yaml_fix(entry, title, lambda: set_value(entry.file, node, data), why_unsafe)
    after = "type" if declared.node.get("type") is not None else None
    return yaml_fix(
        entry, title, lambda: insert_key(entry.file, declared.node, "default", data, after=after), why_unsafe
    )


def agree(code: Folded, stated: Data, node: Node | None) -> bool:
    """Whether code and manifest have the same value. A dtype is written by name, a tuple as a list; values that YAML reads
    differently than they look (``1e-5``, ``no``) are left to another rule.
    """
    if code.symbol:
        return not code.symbol.startswith("torch.") or _dtype(code.symbol) == _dtype(stated)
    value = as_data(code.value)
    if isinstance(value, float) and isinstance(stated, str):
        return _number(stated) == value
    both_nan = isinstance(value, float) and isinstance(stated, float) and math.isnan(value) and math.isnan(stated)
    return value == stated or both_nan or (node is not None and _looks_like(node, value))


def _dtype(name: Data) -> Data:
    """A constant of torch by one name: `torch.half` is `float16`."""
    return dtypes.canonical(name.removeprefix("torch.")) if isinstance(name, str) else name


def _looks_like(node: Node, value: Data) -> bool:
    """Whether a scalar that is read otherwise than it looks is written like a value."""
    found = misreading(node)
    if found is None:
        return False
    return value == node.value or (isinstance(value, int | float) and _number(found.number or node.value) == value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def as_data(value: object) -> Data:
    """A folded value as YAML has it: a tuple is a list."""
    if isinstance(value, tuple | list):
        return [as_data(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None

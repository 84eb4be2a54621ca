"""Values that a call of an op refuses for a parameter, or for a field of a dataclass."""

from __future__ import annotations

from opschema_cli.phrases import quoted
from opschema_cli.source.resolution import ClassRef
from opschema_rules.magi.argument_values import ArgumentValue, values_of
from opschema_rules.magi.calls import OpCall
from opschema_rules.magi.instance_attributes import attributes_of, is_inherited, is_patched
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import passed
from opschema_rules.magi.registrations import Written
from opschema_rules.magi.signature import Branch, Leaf, Node
from opschema_rules.magi.types_of_torch import type_in_schema
from opschema_rules.torchlib.rules.op_calls import misfits

_TENSOR_PROPERTIES = frozenset(
    {"H", "T", "data", "device", "dtype", "grad", "grad_dtype", "grad_fn", "imag", "is_cpu", "is_cuda", "is_leaf"}
    | {"is_meta", "is_nested", "is_quantized", "is_sparse", "itemsize", "layout", "mH", "mT", "name", "names", "nbytes"}
    | {"ndim", "output_nr", "real", "requires_grad", "retains_grad", "shape", "volatile"}
)
"""Attributes of tensors that are not methods."""

_NO_TENSOR = frozenset({"str", "ScalarType", "Device"})
_CONVERTS = frozenset({"__torch_function__", "__index__", "__int__", "__float__", "__iter__", "__len__", "__str__"})


def misfit(op: MagiOp, item: OpCall, node: Node, value: Written) -> str:
    """The reason why each value that an argument may have is refused; empty if one is accepted, or not known."""
    values = values_of(op, value)
    if not values and _is_also_tensor(op, item, node, value):
        values = [ArgumentValue("tensor")]
    reasons = [_refused(op, node, value, found) for found in values]
    return reasons[0] if reasons and all(reasons) else ""


def _is_also_tensor(op: MagiOp, item: OpCall, node: Node, value: Written) -> bool:
    """Whether the call passes the same variable for a tensor as well."""
    if item.through != "handle" or value.expr.kind != "name" or "." in value.expr.text:
        return False
    tensors = (leaf for leaf in op.lowering.nodes if isinstance(leaf, Leaf) and leaf.is_tensor and leaf is not node)
    others = (passed(op, item, leaf) for leaf in tensors)
    return any(
        other is not None and other.expr.kind == "name" and other.expr.text == value.expr.text for other in others
    )


def _refused(op: MagiOp, node: Node, value: Written, found: ArgumentValue) -> str:
    shown = _shown(value, found)
    if isinstance(node, Branch):
        lacking = _lacking(op, node, found)
        wanted = f"takes a `{node.dataclass.name}` for `{'.'.join(node.path)}`, and"
        if not lacking:
            return ""
        if found.ref is not None:
            return f"{wanted} {shown} has no {quoted(lacking)}"
        return f"{wanted} is passed {shown}"
    if _refuses(op, node, value, found):
        return f"takes no {shown.removeprefix('a ')} for `{'.'.join(node.path)}`, which is `{node.lowered_type}`"
    return ""


def _shown(value: Written, found: ArgumentValue) -> str:
    if found.ref is not None:
        return f"a member of `{found.ref.name}`" if found.kind == "member" else f"a `{found.ref.name}`"
    text = " ".join(value.body.file.text(value.expr).split())
    return "a tensor" if found.kind == "tensor" else f"`{text}`" if len(text) <= 40 else "a literal"


def _lacking(op: MagiOp, node: Branch, found: ArgumentValue) -> list[str]:
    """The fields of a dataclass that a value does not have."""
    fields = [child.name for child in node.children]
    if found.kind == "tensor":
        return [name for name in fields if name not in _TENSOR_PROPERTIES]
    if found.ref is not None and found.kind == "instance":
        return _lacking_in_class(op, found.ref, fields, below=found.below)
    if found.kind == "constant" and found.expr is not None:
        example = _EXAMPLES.get(found.expr.kind, found.expr.value)
        return [name for name in fields if not hasattr(example, name)]
    return []


_EXAMPLES: dict[str, object] = {"list": [], "tuple": (), "dict": {}, "set": set()}


def _lacking_in_class(op: MagiOp, ref: ClassRef, fields: list[str], *, below: bool) -> list[str]:
    names = attributes_of(op.tree, ref)
    lacking = [name for name in fields if names is not None and name not in names]
    if any(is_patched(op.tree, ref, name) for name in lacking) or (lacking and below and is_inherited(op.tree, ref)):
        return []
    return lacking


def _refuses(op: MagiOp, leaf: Leaf, value: Written, found: ArgumentValue) -> bool:
    """Whether torch refuses a value for a lowered parameter."""
    type_ = type_in_schema(leaf.lowered_type)
    if not type_.base:
        return False
    if found.kind == "tensor":
        return type_.name in _NO_TENSOR
    if found.kind == "constant" and found.expr is not None:
        direct = found.expr is value.expr and len(leaf.path) == 1
        return not direct and misfits(type_, found.expr)
    if found.ref is None:
        return False
    if found.kind == "member":
        enum = op.tree.lowerer.classes.enum(found.ref)
        plain = enum is not None and not enum.mixed and enum.values in ("str", "other")
        takes_strings = leaf.enum is None or leaf.enum.mixed  # a parameter of a plain enumeration is wrong itself
        return plain and takes_strings and type_.name in ("str", "Tensor")
    names = attributes_of(op.tree, found.ref)
    converts = names is None or _CONVERTS & (names - set(dir(object)))
    return not converts and not (found.below and is_inherited(op.tree, found.ref))

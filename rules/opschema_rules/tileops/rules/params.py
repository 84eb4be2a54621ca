"""Declarations of a param, checked by themselves: a valid type, and a default of that type."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import ClassRef, Folded
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import set_value
from opschema_rules.tileops.annotations import annotation_admits_none, text_admits_none
from opschema_rules.tileops.drift import method_of, yaml_fix
from opschema_rules.tileops.entry_parts import ParamDecl
from opschema_rules.tileops.model import OpEntry, OpImplementation
from opschema_rules.tileops.param_defaults import agree, as_data, in_constructor, is_refused, state_default
from opschema_rules.tileops.param_types import admits, type_problem
from opschema_rules.tileops.proofs import ROWS


@rule("MAN201", "param-type", pure=True)
def param_type(entry: OpEntry) -> Iterator[Diagnostic]:
    """The type of a param is not a Python type expression.

    Readers parse `type` to learn whether a caller may pass `None`: `int`, `float | None`, `"list[int] | tuple[int, ...]"`,
    `torch.dtype`, `Optional[int]`. They cannot parse prose, literals or calls.

    This is checked if the tree's specification says that `type` is such an expression.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: "float (positive)", default: 0.5}
    ```

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: "float | 0", default: 0.5}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: "float | Literal['auto', 0] | Callable[[int, ...], None]", default: 0.5}
    ```
    """
    if not entry.manifest.spec.knows("param-type"):
        return
    for param in entry.params:
        node = _type_node(param)
        problem = type_problem(param.type) if param.type is not None else None
        if node is not None and problem is not None:
            reason, span = problem
            place = entry.inner(node, span) if span.start < span.end else node
            message = f"`{param.type}` is not a type expression: {reason}"
            yield Diagnostic(message, entry.at(place), ops=(entry.name,))


def _refused_nulls(entry: OpEntry) -> Iterator[tuple[ParamDecl, str, Node, Node]]:
    """Params that default to null, with a type that does not admit it: the type, its node and the default's."""
    for param in entry.params if entry.manifest.spec.knows("null-default") else ():
        node, default = _type_node(param), param.node.get("default")
        stated = param.type
        if node is None or default is None or stated is None or not param.has_default or param.default is not None:
            continue
        if type_problem(stated) is None and text_admits_none(stated) is False:
            yield param, stated, node, default


@rule("MAN202", "null-default", fixable="safe", candidates=_refused_nulls, proof=ROWS)
def null_default(entry: OpEntry) -> Iterator[Diagnostic]:
    """A param defaults to null, and its type does not admit `None`.

    Together they say that the op rejects its own default. The fix declares `| None`; it is safe if the code admits `None`
    for the param, by its annotation or its default, and otherwise unsafe. If the constructor is known to have another
    default, or none, then null is wrong, and `ctor-default` reports it.

    This is checked if the tree's specification forbids it.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: null}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float | None = None, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: "Optional[float]", default: null}
    ```
    """
    for param, stated, node, default in _refused_nulls(entry):
        if not _settled_by_code(entry, param):
            yield _null_default(entry, param, stated, node, default)


def _settled_by_code(entry: OpEntry, param: ParamDecl) -> bool:
    """Whether the constructor is known not to default a param to ``None``: so that null is wrong, as `ctor-default` says."""
    found = in_constructor(entry, param.name)
    if found is None or param.doubtful("default"):
        return param.doubtful("default")
    default = found[1].default
    value = found[0].fold(default) if default is not None else None
    return default is None or (value is not None and not agree(value, None, None))


def _null_default(entry: OpEntry, param: ParamDecl, stated: str, node: Node, default: Node) -> Diagnostic:
    in_code = next(_none_in_code(entry, param.name), None)
    unsure = "" if in_code is not None else "the default may be wrong, not the type"
    wider = f"{stated} | None"
    return Diagnostic(
        f"`{param.name}` defaults to null, but its type `{stated}` does not admit `None`; declare `{wider}`",
        entry.at(node),
        tuple(filter(None, (entry.related(default if default.value else param.key, "null here"), in_code))),
        yaml_fix(entry, f"declare `{wider}`", lambda: set_value(entry.file, node, wider), unsure),
        ops=(entry.name,),
    )


def _none_in_code(entry: OpEntry, name: str) -> Iterator[Related]:
    """The place where the code admits ``None`` for a param."""
    found = entry.op_class
    if not isinstance(found, ClassRef):
        return
    op = OpImplementation(entry, found)
    for method in (method_of(op, "__init__"), method_of(op, "forward")):
        param = method.param(name) if method is not None else None
        if method is None or param is None:
            continue
        default = method.fold(param.default) if param.default is not None else None
        file = method.ref.file
        optional = param.annotation is not None and annotation_admits_none(method.op.program, file, param.annotation)
        if optional or (default is not None and default.value is None and not default.symbol):
            yield Related(Place(file.path, param.span), "the code admits `None`")


def _refused_defaults(entry: OpEntry) -> Iterator[tuple[ParamDecl, Node]]:
    """Params whose type does not admit their default, and its node."""
    for param in entry.params if entry.manifest.spec.knows("param-type") else ():
        node = param.node.get("default")
        if node is not None and is_refused(entry, param):
            yield param, node


@rule("MAN203", "param-default-type", fixable="unsafe", candidates=_refused_defaults, proof=ROWS)
def param_default_type(entry: OpEntry) -> Iterator[Diagnostic]:
    """The default of a param does not match its type.

    Checked for the types whose values YAML can write: numbers, booleans, text, dtypes by name, lists (which stand for
    tuples too, with their elements and length), mappings, `Literal`. As in Python an `int` is a `float`, and a `bool` an
    `int`. A type with an unknown part is not checked. `null-default` checks `null`, and `yaml11-scalar` numbers that YAML
    reads as text. The fix declares the constructor's default if that matches the type; it is unsafe.

    This is checked if the tree's specification says that `type` is a Python type expression.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: int, default: "auto"}
    ```

    Bad, and the constructor has the right default:

    ```yaml
    signature:
      params:
        eps: {type: float, default: "auto"}
    ```

    Bad:

    ```yaml
    signature:
      params:
        dim: {type: "tuple[int, int]", default: [0]}
        dtype: {type: torch.dtype, default: float61}
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 1}
        dims: {type: "int | tuple[int, ...]", default: [0, 1]}
        dtype: {type: torch.dtype, default: float16}
        mode: {type: "Mode | int", default: fast}
    ```
    """
    for param, node in _refused_defaults(entry):
        yield _foreign_default(entry, param, node)


def _foreign_default(entry: OpEntry, param: ParamDecl, node: Node) -> Diagnostic:
    shown = entry.file.source.text[node.start : node.end]
    message = f"the default of `{param.name}` is `{shown}`, which its type `{param.type}` does not admit"
    declared, found = _type_node(param), in_constructor(entry, param.name)
    related = [entry.related(declared, "the type")] if declared is not None else []
    fix = None
    if found is not None and found[1].default is not None:
        method, default = found[0], found[1].default
        related.append(Related(Place(method.ref.file.path, default.span), f"`{method.text(default)}` in the code"))
        if _is_admitted(param, method.fold(default)):
            fix = state_default(method, default, param, "it takes the code's default for the one that is meant")
    return Diagnostic(message, entry.at(node), tuple(related), fix, (entry.name,))


def _is_admitted(param: ParamDecl, value: Folded | None) -> bool:
    """Whether the type of a param is known to admit a value of the code."""
    if value is None or param.type is None:
        return False
    data = value.symbol.removeprefix("torch.") if value.symbol else as_data(value.value)
    return admits(param.type, data) is True


def _type_node(param: ParamDecl) -> Node | None:
    found = param.node.get("type")
    return found if found is not None and found.kind == "scalar" else None

"""Tensors passed to kernels: how callers wrap them, and the shape that they are created with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from opschema_cli.evaluation.expected_errors import expects_failure
from opschema_cli.evaluation.limits import MAX_CALLS
from opschema_cli.source.bodies import Body, argument_for
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import Unresolved
from opschema_rules.flydsl.body_index import index_of
from opschema_rules.flydsl.model import FlyTree, Traced, Wrap
from opschema_rules.flydsl.reader import MARKS
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.usage import is_meant_to_fail

_MAKERS = ("empty", "zeros", "ones", "rand", "randn")
_KEEPING = frozenset(
    ("to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "detach", "contiguous", "requires_grad_")
)
"""Tensor methods whose result is contiguous if the tensor is."""

_OF_TORCH = frozenset(
    (
        "empty",
        "zeros",
        "ones",
        "rand",
        "randn",
        "randint",
        "arange",
        "full",
        "tensor",
        "empty_like",
        "zeros_like",
        "ones_like",
    )
)
_RESHAPED = frozenset(("reshape", "view", "flatten", "permute", "transpose", "squeeze", "unsqueeze", "clone", "t"))
_LEAVING = {"numpy": "a NumPy array", "tolist": "a list"}
"""Methods of torch tensors whose result is not a tensor."""

_DEEPEST = 16
"""Maximum length of a chain of operations and variables to follow to an integer."""

_INTEGER = frozenset({"+", "-", "*", "//", "%"})
_COMPLEX = frozenset({"torch.complex32", "torch.complex64", "torch.complex128", "torch.cfloat", "torch.cdouble"})
"""Dtypes of tensors that FlyDSL does not accept."""

_NO_NUMBERS = frozenset({"shape", "dtype", "device"})
_CONVERTING = {"half": "Float16", "float": "Float32", "double": "Float64", "bfloat16": "BFloat16"}
_ELEMENTS = {
    "torch.float16": "Float16",
    "torch.half": "Float16",
    "torch.bfloat16": "BFloat16",
    "torch.float32": "Float32",
    "torch.float": "Float32",
    "torch.float64": "Float64",
    "torch.int32": "Int32",
    "torch.int64": "Int64",
}

_RESHAPING = ("resize_", "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_", "set_")


class TensorArgument(msgspec.Struct, frozen=True):
    """A caller's argument where a tensor enters traced code; ``marks`` if it is known to be a wrapping."""

    body: Body
    expr: Expr
    marks: frozenset[str] | None = None

    @property
    def is_dynamic(self) -> bool:
        """Whether its layout is known to be dynamic."""
        return self.marks is not None and "mark_layout_dynamic" in self.marks


class Tensors:
    """Follows the tensors of one tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self._wraps = {(item.body.file.path, *item.whole.span): item for item in tree.wraps}

    def wrap_of(self, body: Body, expr: Expr) -> Wrap | None:
        """Return the wrapping of an expression: the expression itself, or the only value assigned to its name."""
        if expr.kind != "name":
            return self._wraps.get((body.file.path, *expr.span))
        value = value_of(self.tree, body, expr.text)
        return self._wraps.get((body.file.path, *value.span)) if value is not None else None

    def marks(self, body: Body, expr: Expr) -> frozenset[str] | None:
        """Return the methods that mark the wrapping of an expression, at once or later; None if it may not be a wrapping."""
        wrap = self.wrap_of(body, expr)
        return frozenset(map(method_of, self.mark_calls(wrap))) if wrap is not None else None

    def mark_calls(self, wrap: Wrap) -> list[Expr]:
        """Return the calls that mark a wrapping: chained to it, or on the only name that it is assigned to."""
        found = list(wrap.marks)
        for name in self.held_by(wrap):
            found += [call for call in index_of(wrap.body).methods.get(name, ()) if call.items[0].member in MARKS]
        return found

    def held_by(self, wrap: Wrap) -> list[str]:
        """Return the names in its body that are assigned a wrapping and nothing else."""
        names = index_of(wrap.body).targets.get(wrap.whole.span, [])
        return [name for name in names if self.wrap_of(wrap.body, Expr("name", 0, 0, name)) is wrap]

    def arguments(self, body: Body, expr: Expr) -> list[TensorArgument] | None:
        """Return the callers' arguments for a tensor used in a body; None if not all are known."""
        found: list[TensorArgument] = []
        return found if self._collect(body, expr, found, MAX_CALLS) else None

    def element(self, traced: Traced, name: str) -> str:
        """Return FlyDSL's element type of a traced function's tensor, if all callers in the tree pass tensors of one type and none
        of them is expected to fail.
        """
        body = traced.body
        found: set[str] = set()
        for item in self.arguments(body, Expr("name", 0, 0, name)) or ():
            wrap = self.wrap_of(item.body, item.expr)
            made, expr = (wrap.body, wrap.tensor) if wrap is not None else (item.body, item.expr)
            failing = is_meant_to_fail(self.tree, item.body)
            failing = failing or expects_failure(self.tree.bodies, item.body, item.expr.start)
            found.add(element_of(self.tree, made, expr) if expr is not None and not failing else "")
        return found.pop() if len(found) == 1 else ""

    def _collect(self, body: Body, expr: Expr, found: list[TensorArgument], hops: int) -> bool:
        binder = body.binder(expr.text) if expr.kind == "name" else None
        if binder is None or hops <= 0 or not any(item.name == expr.text for item in binder.params):
            return False
        arguments = list(self._arguments_for(binder, expr.text))
        return bool(arguments) and all(
            item is not None and self._follow(caller, item, found, hops - 1) for caller, item in arguments
        )

    def _follow(self, body: Body, expr: Expr, found: list[TensorArgument], hops: int) -> bool:
        """Collect an argument; a parameter of a traced function is followed to its callers."""
        if self._is_traced(body) and expr.kind == "name":
            return self._collect(body, expr, found, hops)
        found.append(TensorArgument(body, expr, self.marks(body, expr)))
        return True

    def _is_traced(self, body: Body) -> bool:
        """Whether a function is traced, or called by a traced one."""
        if self.tree.around(body) is not None:
            return True
        callers = self.tree.bodies.calls_of(body) if body.function is not None else []
        return any(self.tree.around(caller) is not None for caller, _ in callers)

    def _arguments_for(self, target: Body, name: str) -> Iterator[tuple[Body, Expr | None]]:
        """Yield the arguments that calls of a function pass for one parameter."""
        traced = self.tree.traced_of(target)
        if traced is not None:
            yield from ((call.body, call.argument(name)) for call in traced.calls)
        else:
            for body, call in self.tree.bodies.calls_of(target):
                yield body, argument_for(call, _call_params(target), name)


def value_of(tree: FlyTree, body: Body, name: str) -> Expr | None:
    """Return the only value that a local or module variable ever has; None if it may have several, or if they are not known."""
    binder = body.binder(name) or tree.bodies.module(body.file)
    values = binder.values(name) if "." not in name else None
    if values is None or len(values) != 1:
        return None
    reshaped = any(call.items[0].member in _RESHAPING for call in index_of(binder).methods.get(name, ()))
    return values[0] if not reshaped else None


def shape_of(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> tuple[Body, tuple[Expr, ...]] | None:
    """Return the sizes that a contiguous tensor is created with, and the body that contains them."""
    if hops <= 0:
        return None
    if expr.kind == "name":
        value = value_of(tree, body, expr.text)
        return shape_of(tree, body.binder(expr.text) or body, value, hops - 1) if value is not None else None
    if expr.kind != "call":
        return None
    made = tree.names.external(body, expr.callee)
    if made.rpartition(".")[0] == "torch" and made.rpartition(".")[2] in _MAKERS:
        sizes = _sizes(tree, body, expr)
        return (body, sizes) if sizes is not None else None
    if made == "torch.randint":
        size = expr.keyword("size") or next(
            (item for item in expr.positional() if item.kind in ("tuple", "list")), None
        )
        sizes = size.elements if size is not None else None
        return (body, sizes) if sizes is not None else None
    return shape_of(tree, body, owner, hops - 1) if (owner := _keeper(expr)) is not None else None


def is_no_scalar(tree: FlyTree, body: Body, expr: Expr) -> bool:
    """Whether an expression is known to be a tensor created without a value, or with several elements."""
    if expr.kind == "name" and may_be_another(tree, body, expr):
        return False
    value = value_of(tree, body, expr.text) if expr.kind == "name" else expr
    if value is not None and tree.names.external(body.binder(expr.text) or body, value.callee) == "torch.empty_like":
        return True
    _, sizes = shape_of(tree, body, expr) or (body, ())
    return (
        any(size.kind == "const" and size.value not in (0, 1) for size in sizes)
        or sum(size.kind != "const" for size in sizes) > 1
    )


def attribute_of_tensor(tree: FlyTree, body: Body, expr: Expr) -> str:
    """Return the attribute of a torch tensor that an expression reads, if that is neither a tensor nor a number."""
    owner, _, word = expr.text.rpartition(".") if expr.kind == "name" else ("", "", "")
    tensor = Expr("name", expr.start, expr.end, owner)
    if word not in _NO_NUMBERS or not owner or "." in owner or may_be_another(tree, body, tensor):
        return ""
    return word if shape_of(tree, body, tensor) is not None else ""


def what_it_is(tree: FlyTree, body: Body, expr: Expr) -> str:
    """Describe an expression that is known to be a NumPy array, a list, a dtype or a device; empty for anything else."""
    if expr.kind == "call":
        if tree.names.external(body, expr.callee) == "torch.device":
            return "a device"
        owner, method = expr.items[0].owner, method_of(expr)
        if method in _LEAVING and len(expr.items) == 1 and owner is not None and _is_of_torch(tree, body, owner):
            return _LEAVING[method]
        return ""
    is_dtype = expr.kind == "name" and tree.names.external(body, expr.text) in _ELEMENTS
    return "a torch dtype" if is_dtype and not may_be_another(tree, body, expr) else ""


def is_address(tree: FlyTree, body: Body, expr: Expr) -> bool:
    """Whether an expression is known to be the address of a torch tensor."""
    owner = expr.items[0].owner if expr.kind == "call" and len(expr.items) == 1 else None
    return owner is not None and method_of(expr) == "data_ptr" and _is_of_torch(tree, body, owner)


def is_complex(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> bool:
    """Whether an expression is known to be a torch tensor of complex numbers."""
    if expr.kind == "name" and hops > 0 and not may_be_another(tree, body, expr):
        value = value_of(tree, body, expr.text)
        return value is not None and is_complex(tree, body.binder(expr.text) or body, value, hops - 1)
    if expr.kind != "call" or hops <= 0:
        return False
    made = tree.names.external(body, expr.callee)
    if made.rpartition(".")[0] == "torch":
        dtype = expr.keyword("dtype") if made.rpartition(".")[2] in _MAKERS else None
        return dtype is not None and dtype.kind == "name" and tree.names.external(body, dtype.text) in _COMPLEX
    owner = _keeper(expr) if method_of(expr) in ("cuda", "cpu", "contiguous", "detach") else None
    return owner is not None and is_complex(tree, body, owner, hops - 1)


def _is_of_torch(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> bool:
    """Whether an expression is known to be a tensor that a torch function creates."""
    if hops <= 0:
        return False
    if expr.kind == "name":
        value = value_of(tree, body, expr.text) if not may_be_another(tree, body, expr) else None
        return value is not None and _is_of_torch(tree, body.binder(expr.text) or body, value, hops - 1)
    if expr.kind != "call":
        return False
    made = tree.names.external(body, expr.callee)
    if made.rpartition(".")[0] == "torch":
        return made.rpartition(".")[2] in _OF_TORCH
    owner, method = expr.items[0].owner, method_of(expr)
    return method in _KEEPING | _RESHAPED and owner is not None and _is_of_torch(tree, body, owner, hops - 1)


def element_of(tree: FlyTree, body: Body, expr: Expr, hops: int = MAX_CALLS) -> str:
    """Return FlyDSL's element type of a tensor whose type is written where it is created or converted; empty if it is not known."""
    if hops <= 0:
        return ""
    if expr.kind == "name":
        value = value_of(tree, body, expr.text)
        return element_of(tree, body.binder(expr.text) or body, value, hops - 1) if value is not None else ""
    if expr.kind != "call":
        return ""
    made = tree.names.external(body, expr.callee)
    if made.rpartition(".")[0] == "torch":
        written = expr.keyword("dtype") if made.rpartition(".")[2] in _MAKERS else None
        return _element(tree, body, written) if written is not None else ""
    owner, method = _keeper(expr), expr.items[0].text.rpartition(".")[2]
    if owner is None or (method in _CONVERTING and len(expr.items) > 1):
        return ""
    if method in _CONVERTING:
        return _CONVERTING[method]
    given = [item for _, item in expr.args]
    found = [kind for item in given if (kind := _element(tree, body, item))]
    if found or method == "type":
        return found[0] if len(found) == 1 else ""
    devices = all(item.kind == "const" and isinstance(item.value, str) for item in given)
    return element_of(tree, body, owner, hops - 1) if devices else ""


def _element(tree: FlyTree, body: Body, dtype: Expr) -> str:
    return _ELEMENTS.get(tree.names.external(body, dtype.text), "") if dtype.kind == "name" else ""


def number(tree: FlyTree, body: Body, expr: Expr) -> int | None:
    """Return the integer value of an expression that is always the same."""
    found = tree.evaluator.fold(body, expr)
    value = None if isinstance(found, Unresolved) or found.symbol else found.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def method_of(call: Expr) -> str:
    """Return the last word of the function that a call calls."""
    return call.items[0].text.rpartition(".")[2]


def _call_params(body: Body) -> tuple[Param, ...]:
    is_method = body.parent is not None and body.parent.cls is not None and bool(body.this)
    return body.params[1:] if is_method else body.params


def _sizes(tree: FlyTree, body: Body, call: Expr) -> tuple[Expr, ...] | None:
    """Return the sizes of ``torch.empty(2, 3)`` or ``torch.empty((2, 3))``."""
    if any(word in ("*", "**", "memory_format", "names", "out") for word in call.keywords):
        return None
    given = call.positional() or [item for item in [call.keyword("size")] if item is not None]
    if len(given) == 1:
        return given[0].elements if given[0].kind in ("tuple", "list") else _single(tree, body, given[0])
    return tuple(given) or None


def _single(tree: FlyTree, body: Body, size: Expr) -> tuple[Expr, ...] | None:
    return (size,) if _is_integer(tree, body, size) else None


def _is_integer(tree: FlyTree, body: Body, expr: Expr, hops: int = _DEEPEST) -> bool:
    """Whether an expression is known to be an integer: a constant, a parameter with that annotation, or a value computed from
    these.
    """
    if expr.kind == "binary":
        return (
            expr.text in _INTEGER and hops > 0 and all(_is_integer(tree, body, item, hops - 1) for item in expr.items)
        )
    if expr.kind != "name" or "." in expr.text or hops <= 0:
        return expr.kind == "const"
    binder = body.binder(expr.text) or tree.bodies.module(body.file)
    param = next((item for item in binder.params if item.name == expr.text), None)
    if param is not None:
        return param.annotation is not None and param.annotation.text == "int"
    value = value_of(tree, body, expr.text)
    return value is not None and _is_integer(tree, binder, value, hops - 1)


def _keeper(call: Expr) -> Expr | None:
    """Return the tensor in ``tensor.to(...)`` and similar calls."""
    callee = call.items[0]
    return callee.owner if callee.member in _KEEPING and "memory_format" not in call.keywords else None


def names_in(exprs: Iterable[Expr]) -> set[str]:
    """Return the first words of all names in expressions."""
    return {item.text.partition(".")[0] for expr in exprs for item in expr.walk() if item.kind == "name"}

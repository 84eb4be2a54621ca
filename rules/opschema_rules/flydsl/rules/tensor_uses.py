"""Tensors and shapes in traced functions that are used like torch's."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from opschema_cli.evaluation.statements import all_statements, is_variable, own_expressions
from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Statement
from opschema_cli.source.text import places_of
from opschema_rules.flydsl.arguments import call_arguments
from opschema_rules.flydsl.code import FlyFile
from opschema_rules.flydsl.device_values import DeviceValues, device_values, launches
from opschema_rules.flydsl.dsl_types import clash
from opschema_rules.flydsl.model import FlyTree, Kind, Traced
from opschema_rules.flydsl.number_types import NumberTypes
from opschema_rules.flydsl.rebinding import may_be_another
from opschema_rules.flydsl.type_tests import TypeTests
from opschema_rules.flydsl.usage import is_meant_to_fail

_NAMES = """
T bfloat16 clone contiguous copy_ cpu cuda data_ptr detach device dim element_size expand fill_ flatten float
half is_contiguous is_cuda item itemsize nbytes ndim nelement numel permute reshape size squeeze
storage_offset t to tolist transpose unsqueeze untyped_storage view zero_
"""
OF_TORCH = frozenset(_NAMES.split())
"""Attributes of torch tensors that no FlyDSL tensor has, in any release from 0.1.8 to 0.5.0."""

_TUPLES = ("shape", "stride")
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%"})
_REPLACED = "add radd sub rsub mul rmul truediv floordiv mod lt le gt ge"
_METHODS = [f"__{name}__" for name in re.findall(r"\w+", _REPLACED)]
"""Methods by which a file may define arithmetic for tensors and shapes."""

_COUNTING = frozenset({"range", "range_constexpr", "int", "float"})
_ORDERED = frozenset({"<", "<=", ">", ">="})
_BEHIND = re.compile(rf"[ \t]*(?:\.(?:{'|'.join(sorted({*OF_TORCH, *_TUPLES}))})\b|[-+*/%<>])")
_BEFORE = re.compile(r"(?:[-+/%<>]=?|[\w\])] ?\*=?|_like\()[ \t]*\Z")
_LOOK_BACK = 20
"""The number of characters before a name to search for an operator."""
_GUARD = re.compile(r"\b(?:isinstance|hasattr|getattr|type)\(\s*([A-Za-z_]\w*)")
_ASKING = ("isinstance(", "hasattr(", "getattr(", "type(")


@rule("FLY231", "tensor-use", pure=True)
def tensor_use(file: FlyFile) -> Iterator[Diagnostic]:
    """A tensor or its shape that a traced function uses as if it were torch's.

    While a kernel or launcher is traced, its tensors are values of FlyDSL. They have none of torch's methods (`numel()`,
    `size()`, `data_ptr()`, `contiguous()`), and no arithmetic: only their elements do, `A[i] + 1`. Their shapes and strides are
    of the type `IntTuple`, and so are the items, which are no numbers: `A.shape[0] * 2`, `i < A.shape[0]`,
    `range(A.shape[0])`, `grid=(A.shape[0], 1, 1)` and `len(A.shape)` raise, in every release.

    `fx.get_scalar(A.shape[0])` makes a number of an item; for a tensor of one dimension, whose shape has no items, it is
    `fx.get_scalar(A.shape)`. What the host knows of a tensor may also be passed as a parameter.

    Functions under `@flyc.jit` that launch no kernel are not checked, as they may be called with other values. Names that
    `isinstance()`, `hasattr()` and the like are asked about are left alone, and so is code under a condition that calls a
    function, which may ask the same.

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        if n < A.shape[0]:
            A[n] = 0
    ```

    Bad:

    ```python
    @flyc.jit
    def launch(A: fx.Tensor):
        blocks = A.numel() // 64
        print(blocks)
        scale(A).launch(grid=(blocks, 1, 1), block=(64, 1, 1))


    @flyc.kernel
    def scale(A: fx.Tensor):
        A[0] = A * 2
    ```

    Bad:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor):
        rows, columns = A.shape
        for row in range(rows):
            A[row, columns - 1] = 0
    ```

    Good:

    ```python
    @flyc.kernel
    def scale(A: fx.Tensor, n: fx.Int32):
        rows = fx.get_scalar(A.shape[0])
        if n < rows:
            A[n] = A[n] * 2
        layout = fx.make_layout(A.shape, A.stride)
    ```
    """
    tree = file.tree
    for traced in tree.traced:
        if traced.kind == "kernel" or launches(tree, traced):
            names = _tensors(traced)
            found = list(_uses(tree, traced, names)) if names else []
            if found and not is_meant_to_fail(tree, traced.body) and not _gets_others(tree, traced):
                yield from found


def _tensors(traced: Traced) -> frozenset[str]:
    """The tensors of a function that its text may use like torch's."""
    names = {item.name for item in traced.call_parameters if item.kind is Kind.TENSOR}
    text = traced.body.file.text(traced.function.outer)
    names -= {match[1] for match in _GUARD.finditer(text)} if any(item in text for item in _ASKING) else set()
    return frozenset(name for name in names if _is_used_so(text, name))


def _is_used_so(text: str, name: str) -> bool:
    """Whether a text may read an attribute of a name or compute with it."""
    for at in places_of(name, text):
        behind = _BEHIND.match(text, at + len(name))
        if behind is not None or _BEFORE.search(text[max(0, at - _LOOK_BACK) : at]) is not None:
            return True
    return False


def _gets_others(tree: FlyTree, traced: Traced) -> bool:
    """Whether a call passes, or may pass, something other than a tensor for a tensor parameter."""
    if traced.kind == "jit":
        return False
    arguments = [list(call_arguments(tree, call)) for call in traced.calls]
    tensors = [item for items in arguments for item in items if item.parameter.kind is Kind.TENSOR]
    return not all(arguments) or any(item.python or item.device or clash(item) is not None for item in tensors)


def _uses(tree: FlyTree, traced: Traced, names: frozenset[str]) -> Iterator[Diagnostic]:
    values = device_values(tree, traced)
    tests = TypeTests(values)
    for body in values.bodies:
        found = _Found(tree, values, body, names)
        for item in all_statements(body.statements):
            for expr, message in found.of(item):
                if not tests.may_leave_out(body, expr.start):
                    yield Diagnostic(message, body.at(expr), ops=(traced.title,))


class _Found(msgspec.Struct, dict=True):
    """Finds such uses in one body of a traced function."""

    tree: FlyTree
    values: DeviceValues
    body: Body
    names: frozenset[str]

    def __post_init__(self) -> None:
        self.types = NumberTypes(self.values)
        self.unpacked: set[str] = set()

    def of(self, item: Statement) -> Iterator[tuple[Expr, str]]:
        """The uses in a statement."""
        if item.kind == "assign" and self._is_tuple(item.exprs[-1]):
            self.unpacked |= {part.text for target in item.exprs[:-1] for part in target.items if is_variable(part)}
        if item.kind == "augassign" and item.text in _ARITHMETIC:
            yield from self._operation(item.exprs[1], item.exprs)
        for expr in own_expressions(item):
            match expr.kind:
                case "name":
                    yield from self._attribute(expr)
                case "binary" if expr.text in _ARITHMETIC:
                    yield from self._operation(expr, expr.items)
                case "compare" if _ORDERED.issuperset(expr.text.split()):
                    yield from self._operation(expr, expr.items)
                case "call":
                    yield from self._call(expr)

    def _is_tensor(self, expr: Expr) -> bool:
        """Whether an expression is a tensor parameter of the function."""
        if not is_variable(expr) or expr.text not in self.names:
            return False
        top = self.values.traced.body
        return self.body.binder(expr.text) is top and self.values.bindings(top, expr.text) == [None]

    def _is_tuple(self, expr: Expr) -> bool:
        """Whether an expression is the shape or stride of a tensor."""
        first, _, rest = expr.text.partition(".") if expr.kind == "name" else ("", "", "")
        return rest in _TUPLES and self._is_tensor(Expr("name", expr.start, expr.end, first))

    def _is_item(self, expr: Expr) -> bool:
        """Whether an expression is an item of a shape or stride, or a variable that holds one."""
        if expr.kind == "subscript":
            return self._is_tuple(expr.items[0]) and len(expr.items) == 2 and expr.items[1].kind != "slice"
        bound = self.values.bindings(self.body, expr.text) if is_variable(expr) else None
        if bound == [None] and expr.text in self.unpacked:
            return all(item.name != expr.text for item in self.body.params)
        one = bound[0] if bound is not None and len(bound) == 1 else None
        return isinstance(one, Expr) and one.kind == "subscript" and self._is_item(one)

    def _attribute(self, expr: Expr) -> Iterator[tuple[Expr, str]]:
        first, _, rest = expr.text.partition(".")
        word = rest.partition(".")[0]
        is_tensor = word in OF_TORCH and not self.tree.contract.own and self._is_tensor(Expr("name", 0, 0, first))
        if is_tensor and not may_be_another(self.tree, self.body, expr):
            yield (
                expr,
                f"`{first}` is a FlyDSL tensor while `{self.values.traced.name}` is traced, and has no `{word}`: it "
                "raises `AttributeError`; pass what the host knows of the tensor as a parameter",
            )

    def _operation(self, expr: Expr, operands: tuple[Expr, ...]) -> Iterator[tuple[Expr, str]]:
        """Yield a tensor or an item of a shape in arithmetic or a comparison with numbers."""
        wrong = [item for item in operands if self._is_tensor(item) or self._is_item(item)]
        others = [item for item in operands if item not in wrong]
        if wrong and all(map(self._is_number, others)) and not any(map(self.tree.words.is_replaced, _METHODS)):
            yield expr, self._message(wrong[0], f"`{self.body.file.text(expr)}`")

    def _is_number(self, expr: Expr) -> bool:
        return bool(self.types.of(self.body, expr) or self.values.of(self.body, expr))

    def _call(self, call: Expr) -> Iterator[tuple[Expr, str]]:
        last = call.callee.rpartition(".")[2]
        if last == "len" and self._is_measured(call):
            what = "a tensor" if self._is_tensor(call.items[1]) else "an `IntTuple`"
            yield call, f"`{self.body.file.text(call.items[1])}` is {what}, which has no `len()`: it raises `TypeError`"
        elif last.endswith("_like") and len(call.items) > 1 and self._is_tensor(call.items[1]):
            if self.values.names.external(self.body, call.callee).startswith("torch."):
                made = (
                    f"`{call.callee}` takes a torch tensor, and `{self.body.file.text(call.items[1])}` is not one while"
                )
                yield call, f"{made} `{self.values.traced.name}` is traced: it raises `TypeError`; let the host make it"
        elif last in _COUNTING and self._counts(call):
            yield from ((item, self._message(item, f"`{last}`")) for item in call.positional() if self._is_item(item))
        elif call.items[0].text.rpartition(".")[2] == "launch":
            sizes = [(word, call.keyword(word)) for word in ("grid", "block")]
            listed = ((word, item) for word, size in sizes if size is not None for item in size.elements or ())
            yield from (
                (item, self._message(item, f"`{word}`"))
                for word, item in listed
                if self._is_item(item) or self._is_tensor(item) or self._is_tuple(item)
            )

    def _is_measured(self, call: Expr) -> bool:
        """Whether a call is Python's ``len()`` of a tensor or shape."""
        measured = call.items[1] if len(call.items) == 2 else None
        if measured is None or not (self._is_tuple(measured) or self._is_tensor(measured)):
            return False
        return self.values.names.external(self.body, call.callee) == "len"

    def _counts(self, call: Expr) -> bool:
        """Whether a function is a Python built-in, or FlyDSL's ``range_constexpr``."""
        own = self.values.names.called(self.body, call)
        return own == "range_constexpr" or self.values.names.external(self.body, call.callee) in _COUNTING

    def _message(self, wrong: Expr, by: str) -> str:
        written = self.body.file.text(wrong)
        if self._is_tensor(wrong):
            return f"`{written}` is a tensor, and only its elements are numbers: {by} raises `TypeError`"
        instead = f"write `fx.get_scalar({written})`"
        if by == "`range_constexpr`":
            instead = "pass the size as an `fx.Constexpr`"
        elif wrong.kind == "subscript":
            whole = self.body.file.text(wrong.items[0])
            instead += f", or `fx.get_scalar({whole})` if the tensor has one dimension"
        return f"`{written}` is an `IntTuple`, and {by} takes a number: it raises; {instead}"

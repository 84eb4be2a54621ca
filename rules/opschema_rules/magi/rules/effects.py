"""Op bodies that return or write their input tensors, passed directly or in a dataclass."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import Argument
from opschema_cli.source.text import Edit, Span
from opschema_rules.magi.as_torch import as_operator, schema_type
from opschema_rules.magi.given import Mutates, Named
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.proofs import CALLS
from opschema_rules.magi.reporting import defined, is_known, is_refused, is_sound, registered, type_place
from opschema_rules.magi.signature import Branch, Leaf
from opschema_rules.magi.usage import is_called_to_fail
from opschema_rules.torchlib.model import Operator
from opschema_rules.torchlib.rules.effects import first_writes, puts_back, returned_values, shared_argument
from opschema_rules.torchlib.storage import Tensors, rebound


def _tensors(op: MagiOp) -> Tensors:
    """Return the tensors that the body gets, by its names for them: ``x``, ``config.w``."""
    bound = rebound(op.body)
    leaves = [item for item in op.lowering.leaves if item.path[0] not in bound and item.lowered_type is not None]
    found = {".".join(item.path): Argument(item.lowered, schema_type(item.lowered_type)) for item in leaves}
    return {name: item for name, item in found.items() if item.type.base == "Tensor"}


def _judged(op: MagiOp) -> tuple[Operator, Tensors] | None:
    operator = as_operator(op)
    return (operator, _tensors(op)) if operator is not None and not is_called_to_fail(op) else None


def _declared(op: MagiOp, lowered: str) -> tuple[Related, ...]:
    leaf = op.lowering.leaf(lowered)
    return (Related(type_place(leaf), "the tensor"),) if leaf is not None else ()


@rule("MAG330", "undeclared-write")
def undeclared_write(op: MagiOp) -> Iterator[Diagnostic]:
    """A body that writes to a tensor that `mutates_args` does not name.

    There is no error message: the call works, but the compiler assumes that the tensor is unchanged, and moves or removes
    code around the call. Name it in `mutates_args`, by its own name or, for a tensor in a dataclass, by the lowered name
    `config__w`. See the rule `undeclared-mutation` of the pack torchlib for what is checked.

    Bad:

    ```python
    @magi_register_custom_op("kit::step")
    def step(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        return x + y
    ```

    Bad:

    ```python
    @dataclass(frozen=True)
    class Cache:
        keys: Tensor


    @magi_register_custom_op("kit::store")
    def store(x: Tensor, cache: Cache) -> Tensor:
        cache.keys[0] = x
        return x + 1
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Cache:
        keys: Tensor


    @magi_register_custom_op("kit::store", mutates_args=("x", "cache__keys"))
    def store(x: Tensor, cache: Cache, y: Tensor) -> Tensor:
        cache.keys[0] = x.add_(1)
        y = y + 1
        y[0] = 2
        return y
    ```
    """
    found = _judged(op)
    if found is None or not isinstance(op.mutates, Mutates):
        return
    if any(_wrong(op, item) for item in op.mutates.names):
        return  # `mutates-name` reports it, and the op is not registered
    operator, tensors = found
    named = op.lowering.expand_mutates([item.name for item in op.mutates.names])[0]
    unmarked = {name: item for name, item in tensors.items() if item.name not in named}
    for written, name in first_writes(operator, op.body, unmarked):
        if puts_back(op.body, name):
            continue
        lowered = unmarked[name].name
        yield Diagnostic(
            f"`{name}` is written here, and `mutates_args` of `{op.title}` does not name `{lowered}`",
            op.body.at(written),
            (*_declared(op, lowered), *registered(op)),
            ops=(op.title,),
        )


@rule("MAG331", "aliased-output", fixable="unsafe", proof=CALLS)
def aliased_output(op: MagiOp) -> Iterator[Diagnostic]:
    """A body that returns one of its arguments, or a view of one.

    An output of an op may not share its storage with an input: torch raises at each call that reaches such a `return`.
    Return a copy. See `returned-input` of the pack torchlib for what counts as a view.

    Bad:

    ```python
    @magi_register_custom_op("kit::same")
    def same(x: Tensor) -> Tensor:
        return x
    ```

    Bad:

    ```python
    @dataclass(frozen=True)
    class Pair:
        left: Tensor
        right: Tensor


    @magi_register_custom_op("kit::both")
    def both(pair: Pair) -> tuple[Tensor, Tensor]:
        return pair.left.detach(), pair.right + 1
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::rows")
    def rows(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y = y + 1
        return x.clone(), y
    ```
    """
    found = _judged(op)
    if found is None:
        return
    _, tensors = found
    for value in returned_values(op.body):
        name = shared_argument(op.body, value, tensors)
        if name:
            written = op.body.file.text(value)
            what = f"`{name}` itself" if written == name else f"data that shares the storage of `{name}`"
            yield Diagnostic(
                f"`{op.title}` returns {what}, and torch raises: return a copy",
                op.body.at(value),
                _declared(op, tensors[name].name),
                _copying(op, value.span, written),
                (op.title,),
            )


def _copying(op: MagiOp, span: Span, written: str) -> Fix:
    edit = Edit(Span(span.end, span.end), ".clone()")
    why = "an op that writes the tensor may do better to return nothing of it"
    return Fix(f"return a copy of `{written}`", (FileEdit(op.body.file.path, edit),), "unsafe", why)


@rule("MAG332", "mutates-name")
def mutates_name(op: MagiOp) -> Iterator[Diagnostic]:
    """A `mutates_args` with a name that the op cannot write to.

    It lists names of tensors, before or after lowering; the name of a dataclass means all of its fields, so all of them
    must be tensors. Any other name, and a string instead of the list, is rejected when the op is registered.

    Bad:

    ```python
    @magi_register_custom_op("kit::fill", mutates_args=("out", "factor"))
    def fill(output: Tensor, factor: float) -> Tensor:
        return output.fill_(factor) + 1
    ```

    Bad:

    ```python
    @dataclass(frozen=True)
    class Cache:
        keys: Tensor
        size: int


    @magi_register_custom_op("kit::fill", mutates_args=("cache",))
    def fill(cache: Cache) -> Tensor:
        return cache.keys.fill_(cache.size) + 1
    ```

    Good:

    ```python
    @dataclass(frozen=True)
    class Cache:
        keys: Tensor
        values: Optional[Tensor] = None


    @magi_register_custom_op("kit::fill", mutates_args=["cache"])
    def fill(cache: Cache) -> Tensor:
        return cache.keys.fill_(1) + 1
    ```
    """
    mutates = op.mutates
    if not is_sound(op) or is_refused(op) or not op.lowering.complete or not isinstance(mutates, Mutates):
        return
    if mutates.string is not None and mutates.written is not None and _is_refused_string(op, mutates.string):
        message = f"`mutates_args` is the string {mutates.string!r}: list names in a tuple"
        yield Diagnostic(message, mutates.written.place, registered(op), ops=(op.title,))
    for item in mutates.names if is_known(op) else ():
        reason = _wrong(op, item)
        if reason:
            message = f"`mutates_args` names `{item.name}`, {reason}"
            yield Diagnostic(message, item.place, defined(op.body, "the op's parameters"), ops=(op.title,))


def _is_refused_string(op: MagiOp, string: str) -> bool:
    """Whether torch refuses a string; where the op is flattened its letters are taken for names."""
    if not op.lowering.flattens:
        return string != "unknown"
    return any(op.lowering.node(letter) is None and op.lowering.leaf(letter) is None for letter in string)


def _wrong(op: MagiOp, item: Named) -> str:
    node = op.lowering.node(item.name)
    leaf = op.lowering.leaf(item.name)
    if node is None and (leaf is None or not op.lowering.flattens):
        names = quoted(op.lowering.tensors) or "none"
        return f"and the op has no such parameter; its tensors are {names}"
    leaves = node.leaves if node is not None else [leaf] if leaf is not None else []
    others = [part for part in leaves if not _is_mutable(part)]
    if others and isinstance(node, Branch):
        no_tensor = "is not a tensor" if len(others) == 1 else "are no tensors"
        return f"a dataclass, whose {quoted(part.name for part in others)} {no_tensor}"
    return f"which is not a tensor, but `{others[0].lowered_type}`" if others else ""


def _is_mutable(leaf: Leaf) -> bool:
    form = leaf.lowered_type
    return form is None or any(item.is_tensor or item.kind in ("unresolved", "text") for item in form.walk())

"""The values that functions return, against the annotation of the op."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace as with_fields

from opschema_cli.evaluation.expected_errors import is_handled
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.magi.as_torch import as_operator, returns_of
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.passed import meant_calls
from opschema_rules.magi.reporting import registered
from opschema_rules.magi.usage import is_called_to_fail
from opschema_rules.torchlib.patched_names import may_be_patched
from opschema_rules.torchlib.rules.results import returned_count


@rule("MAG333", "body-returns")
def body_returns(op: MagiOp) -> Iterator[Diagnostic]:
    """A body that returns something other than its annotation says.

    The annotation makes the op's schema. A tuple where it says one tensor raises at each call; torch does not check the
    length of a tuple: fewer values than declared go unnoticed or raise later, more of them crash the process. See the rule
    `returned-count` of the pack torchlib for the values that are checked.

    Bad:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x", "x"])
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2, x + 3
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x", "x"])
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2
    ```
    """
    yield from returned_misfits(op, "the function", f"`{op.title}`")


def returned_misfits(op: MagiOp, role: str, called: str) -> Iterator[Diagnostic]:
    """Yield findings on the results of ``the function`` or ``the fake`` of torch's rule, which has another name here."""
    operator = as_operator(op)
    if operator is None or is_called_to_fail(op):
        return
    prefix = f"{role} of `{op.title}`"
    for found in returned_count(operator):
        if found.message.startswith(prefix):
            text = found.message.removeprefix(prefix).replace("and the schema returns", "and the op's annotation is")
            yield with_fields(found, message=called + text, related=_annotation(op))


def _annotation(op: MagiOp) -> tuple[Related, ...]:
    function = op.body.function
    if function is None or function.returns is None:
        return registered(op)
    return (Related(op.body.at(function.returns), "the annotation"),)


@rule("MAG334", "unpacked-count")
def unpacked_count(op: MagiOp) -> Iterator[Diagnostic]:
    """A call whose outputs are unpacked into another number of names.

    An op whose annotation is a tuple returns that many tensors; unpacking them into more or fewer names raises. Calls whose
    exceptions are caught, or that a test expects to fail, are not reported.

    Bad:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x", "x"])
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2


    def run(x):
        a, b, c = split(x)
        return a + b + c
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::split", infer_output_meta_fn=["x", "x"])
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2


    def run(x):
        a, *rest = split(x)
        return a + rest[0]
    ```
    """
    outputs = returns_of(op)
    if as_operator(op) is None or len(outputs) < 2 or any(str(item.type) != "Tensor" for item in outputs):
        return
    for item in meant_calls(op):
        unpacked = [part for part in item.body.scope.unpacks if part.value.span == item.call.span and not part.starred]
        caught = is_handled(op.tree.bodies, item.body, item.call.start)
        for part in unpacked if not caught and not may_be_patched(item.body, item.call) else ():
            if len(part.targets) != len(outputs):
                message = f"`{op.title}` returns {len(outputs)} tensors, unpacked into {len(part.targets)} here"
                yield Diagnostic(message, item.body.at(part.span), _annotation(op), ops=(op.title,))

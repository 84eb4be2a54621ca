"""Arguments of the decorator that it does not have."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.evaluation.values import BoundArgument
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Span
from opschema_cli.suggestions import did_you_mean
from opschema_rules.magi.dialect import PARAMETERS
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.reporting import is_sound
from opschema_rules.magi.usage import is_called_to_fail


@rule("MAG351", "decorator-argument")
def decorator_argument(op: MagiOp) -> Iterator[Diagnostic]:
    """An argument of the decorator that it does not have.

    The module raises a `TypeError` when it is imported. Where MagiCompiler is in the tree, its own parameters count;
    otherwise only names are reported that are almost a known one, as other versions may have more. The argument is read
    under the name that is meant.

    Bad:

    ```python
    @magi_register_custom_op("kit::fill", mutate_args=("x",))
    def fill(x: Tensor) -> Tensor:
        return x.fill_(1) + 1
    ```

    Good:

    ```python
    @magi_register_custom_op("kit::fill", mutates_args=("x",), extra_triton_kernels=[])
    def fill(x: Tensor) -> Tensor:
        return x.fill_(1) + 1
    ```
    """
    arguments = op.registration.arguments
    if not arguments.unknown or not is_sound(op) or is_called_to_fail(op):
        return
    call, outer = op.registration.call, op.registration.outer
    if allows_any_error(op.tree.bodies, outer, call.start):
        return
    known = _own_parameters(op)
    for name, (argument, meant) in arguments.unknown.items():
        place = _place(name, argument)
        if place is not None and (meant or known is not None) and name not in (known or PARAMETERS):
            message = f"`magi_register_custom_op()` has no parameter `{name}`{did_you_mean(meant)}"
            yield Diagnostic(message, place, (Related(op.place, "the op"),), ops=(op.title,))


def _own_parameters(op: MagiOp) -> frozenset[str] | None:
    """Return the parameters of the tree's own decorator; None if they are not known."""
    call, outer = op.registration.call, op.registration.outer
    found = op.tree.bodies.called(outer, call.callee or call.text)
    if not isinstance(found, Body) or any(item.kind == "kwarg" for item in found.params):
        return None
    names = frozenset(item.name for item in found.params)
    return names if "infer_output_meta_fn" in names else None


def _place(name: str, argument: BoundArgument) -> Place | None:
    """The keyword in front of an argument."""
    if argument.expr is None:
        return None
    body = argument.frame.body
    end = argument.expr.start
    at = body.file.source.text.rfind(name, max(0, end - len(name) - 40), end)
    return body.at(Span(at, at + len(name))) if at >= 0 else None

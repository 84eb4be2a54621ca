"""Calls that register, written as decorators."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.bodies import Body
from opschema_cli.source.text import Edit, Span
from opschema_rules.torchlib.model import Operator, Registration
from opschema_rules.torchlib.proofs import REGISTRATION


@rule("REG121", "no-decorator", fixable="safe", proof=REGISTRATION)
def no_decorator(operator: Operator) -> Iterator[Diagnostic]:
    """A registering call without its function, used as a decorator.

    `register_fake` and `register_autograd` of a custom op, `torch.library.register_autograd`, and `impl` and
    `_register_fake` of a `Library` take the function together with their other arguments, whereas `register_kernel`,
    `register_vmap` and the other functions of `torch.library` return a decorator. Without the function, torch raises a
    `TypeError` when the module is imported. The bare method is a decorator: `@scale.register_fake`.

    Only calls at the top level of a module are checked, not those under a condition or in a `try` or `with`.

    Bad:

    ```python
    @torch.library.custom_op("kit::scale", mutates_args=())
    def scale(x: Tensor, factor: float) -> Tensor:
        return x * factor


    @scale.register_fake()
    def _(x, factor):
        return torch.empty_like(x)
    ```

    Bad:

    ```python
    lib = torch.library.Library("kit", "DEF")
    lib.define("scale(Tensor x, float factor) -> Tensor")


    @lib.impl("scale")
    def scale(x, factor):
        return x * factor
    ```

    Good:

    ```python
    lib = torch.library.Library("kit", "DEF")
    lib.define("scale(Tensor x, float factor) -> Tensor")


    @torch.library.impl(lib, "scale", "CPU")
    def scale(x, factor):
        return x * factor


    @torch.library.custom_op("kit::shift", mutates_args=())
    def shift(x: Tensor, by: float) -> Tensor:
        return x + by


    @shift.register_fake
    def _(x, by):
        return torch.empty_like(x)


    @shift.register_vmap()
    def _(info, in_dims, x, by):
        return x + by, in_dims[0]
    ```
    """
    for item in operator.registrations:
        if item.refused and item.body is not None and _surely_raises(item, item.body):
            yield Diagnostic(
                f"`{item.refused}()` takes its function at once and is not a decorator without it:"
                " torch raises a `TypeError` here",
                item.place,
                _taken(item),
                fix=_bare(item, item.body),
                ops=(operator.title,),
            )


def _surely_raises(item: Registration, body: Body) -> bool:
    """Whether a call is a statement of its own in a module, or a decorator in one, so that nothing handles its exception."""
    call, text = item.call, body.file.source.text
    if call is None or body.parent is not None:
        return False
    before = text[text.rfind("\n", 0, call.start) + 1 : call.start]
    within = any(other.start < call.start and call.end <= other.end for other in body.scope.calls)
    return before.rstrip() in ("", "@") and not before[:1].isspace() and not within


def _taken(item: Registration) -> tuple[Related, ...]:
    """The function, as the other side of a finding."""
    function = item.function
    if not isinstance(function, Body) or function.function is None:
        return ()
    return (Related(function.at(function.function.span), "the function that it is to take"),)


def _bare(item: Registration, body: Body) -> Fix | None:
    """Return the bare method in place of a call without arguments; it takes the operator from the expression before it."""
    call = item.call
    if call is None or len(call.items) != 1 or "." not in call.items[0].text:
        return None
    brackets = Span(call.items[0].end, call.end)
    if body.file.text(brackets) != "()":
        return None
    return Fix("write the method itself", (FileEdit(body.file.path, Edit(brackets, "")),))

"""Python kernels that are registered for operators of torch itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.model import AtenKernel
from opschema_rules.torchlib.passing import Mismatch, filled, mismatches
from opschema_rules.torchlib.rules.signatures import is_method, mismatch_place, mismatch_words


@rule("REG509", "aten-python-kernel")
def aten_python_kernel(kernel: AtenKernel) -> Iterator[Diagnostic]:
    """A Python kernel whose parameters do not match the schema of an operator of torch.

    `Library("aten", "IMPL").impl` and `torch.library.impl("aten::...")` take any function. The dispatcher calls it according to
    the schema: arguments before `*` are passed by position, those after it by name, and trailing arguments that equal the
    schema's defaults are omitted; see [REG201](REG201.md) for the consequences. Tables of kernels are read, too: tuples and
    lists of at least three rows, `("name.overload", function)`, in a file that makes a library of the namespace `aten`.

    The schema is that of the torch that the tree is for. Where that is not known, a difference is reported only if it holds for
    every known release that has the operator.

    Bad (`out` is never taken):

    ```python kit/__init__.py
    import torch

    from kit.ops import add, add_out, mul

    lib = torch.library.Library("aten", "IMPL")
    KERNELS = (
        ("add.Tensor", add),
        ("add.out", add_out),
        ("mul.Tensor", mul),
    )
    for name, function in KERNELS:
        lib.impl(name, function, "CUDA")
    ```

    ```python kit/ops.py
    def add(x, y, *, alpha=1):
        return run("add", x, y, alpha)


    def add_out(x, y, *, alpha=1):
        return run("add", x, y, alpha)


    def mul(x, y):
        return run("mul", x, y)
    ```

    Bad (`alpha` is passed by name):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::add.Tensor", "CUDA")
    def add(x, y, scale=1):
        return run("add", x, y, scale)
    ```

    Good (other names of what is passed by position, and a parameter more):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::add.out", "CUDA")
    def add_out(x, y, *, alpha=1, out, block=128):
        return run("add", x, y, alpha, out, block)
    ```
    """
    function = kernel.registration.function
    if not isinstance(function, Body) or function.function is None or is_method(function):
        return
    known = kernel.tree.aten
    schemas = [item for item in known.schemas(kernel.name) if not item.vararg]
    found = _common(schemas, function, filled(kernel.registration))
    operator = known.operator(kernel.name) if found else None
    for item in found:
        yield Diagnostic(
            f"the kernel of `{kernel.title}` {mismatch_words(item)}",
            mismatch_place(function, item),
            related=tuple(
                filter(
                    None,
                    [
                        operator.related if operator is not None else None,
                        Related(kernel.registration.place, f"it is registered for `{kernel.title}` here"),
                    ],
                )
            ),
            ops=(kernel.title,),
        )


def _common(schemas: Sequence[OperatorSchema], function: Body, skip: int) -> list[Mismatch]:
    """The differences from the first schema that are differences from all of them."""
    found = [mismatches(schema, function.params, skip) for schema in schemas]
    others = [{_key(item) for item in items} for items in found[1:]]
    return [item for item in (found[0] if found else ()) if all(_key(item) in keys for keys in others)]


def _key(item: Mismatch) -> tuple[object, ...]:
    names = tuple(argument.name for argument in item.arguments)
    return item.kind, names, tuple(param.name for param in item.params), item.always

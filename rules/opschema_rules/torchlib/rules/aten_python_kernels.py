"""Python kernels that are registered for operators of torch itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opschema_cli.evaluation.reaching import bindings
from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import count, listed
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Function
from opschema_rules.torchlib.api_table import functions_of
from opschema_rules.torchlib.model import AtenKernel, Registration, StrayRegistration, Tree
from opschema_rules.torchlib.passing import Mismatch, filled, mismatches
from opschema_rules.torchlib.rules.results import gives_nothing
from opschema_rules.torchlib.rules.signatures import is_method, mismatch_place, mismatch_words
from opschema_rules.torchlib.tensor_values import followed
from opschema_rules.torchlib.unwritten import is_unwritten


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
    schemas = (item for item in known.schemas(kernel.name) if not item.vararg)
    found = _common(schemas, function, filled(kernel.registration))
    operator = known.operator(kernel.name) if found else None
    registered = Related(kernel.registration.place, f"it is registered for `{kernel.title}` here")
    for item in found:
        yield Diagnostic(
            f"the kernel of `{kernel.title}` {mismatch_words(item)}",
            mismatch_place(function, item),
            related=(*([operator.related] if operator is not None else []), registered),
            ops=(kernel.title,),
        )


def _common(schemas: Iterator[OperatorSchema], function: Body, skip: int) -> list[Mismatch]:
    """Return the differences from the first schema that are differences from all of them."""
    first = next(schemas, None)
    found = mismatches(first, function.params, skip) if first is not None else []
    while found and (schema := next(schemas, None)) is not None:
        keys = {_key(item) for item in mismatches(schema, function.params, skip)}
        found = [item for item in found if _key(item) in keys]
    return found


def _key(item: Mismatch) -> tuple[object, ...]:
    names = tuple(argument.name for argument in item.arguments)
    return item.kind, names, tuple(param.name for param in item.params), item.always


@rule("REG511", "aten-kernel-result")
def aten_kernel_result(kernel: AtenKernel) -> Iterator[Diagnostic]:
    """A Python kernel whose return value does not match the PyTorch operator it implements.

    The dispatcher converts the returned value to the types of the schema: the wrong number of values raises when the kernel is
    called (`Unable to cast Python instance`), and one that returns nothing passes `None` for a tensor. In-place operators
    and out variants that return one tensor return the one that they are given, whatever their kernels return. Checked are literal
    tuples, `None`, functions without `return`, and kernels of in-place operators that only compute new tensors with functions of
    torch, or are also registered for the operator that is not in-place. [REG509](REG509.md) says what counts as a kernel.

    Bad (the caller gets `None`):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::neg", "CUDA")
    def neg(x):
        run("neg", x, torch.empty_like(x))
    ```

    Bad (two values):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::sort", "CUDA")
    def sort(x, dim=-1, descending=False):
        values = run("sort", x, dim, descending)
        return values, values.indices, values.count
    ```

    Bad (returns a new tensor; `x` is unchanged):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::sigmoid_", "CUDA")
    def sigmoid_(x):
        return 1 / (1 + torch.exp(-x))
    ```

    Bad (one function for both):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::neg_", "CUDA")
    @torch.library.impl("aten::neg", "CUDA")
    def neg(x):
        return run("neg", x)
    ```

    Good (a list of tensors, operators that return nothing, or what they are given):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::unbind.int", "CUDA")
    def unbind(x, dim=0):
        return (x.select(dim, 0), x.select(dim, 1), x.select(dim, 2))


    @torch.library.impl("aten::_foreach_neg_", "CUDA")
    def foreach_neg_(xs):
        for x in xs:
            run("neg", x, x)


    @torch.library.impl("aten::neg_", "CUDA")
    def neg_(x):
        run("neg", x, x)


    @torch.library.impl("aten::neg.out", "CUDA")
    def neg_out(x, *, out):
        raise NotImplementedError
    ```
    """
    function = kernel.registration.function
    if not isinstance(function, Body) or function.function is None or _is_wrapped(function.function):
        return
    schemas = [item for item in kernel.tree.aten.schemas(kernel.name) if not item.varret]
    if not schemas or not all(item.returns for item in schemas):
        return
    registered = Related(kernel.registration.place, f"it is registered for `{kernel.title}` here")
    returns = f"and `{kernel.title}` returns `{', '.join(str(item.type) for item in schemas[0].returns)}`"
    if gives_nothing(function) and not all(map(_returns_what_it_is_given, schemas)):
        place = Place(function.file.path, function.function.span)
        yield Diagnostic(f"the kernel returns nothing, {returns}", place, (registered,), ops=(kernel.title,))
    yield from _unwritten(kernel, function, schemas, registered)
    for value in function.scope.returns:
        found = followed(function, value)
        if (
            found.kind == "tuple"
            and found.elements is not None
            and not any(_takes(item, len(found.items)) for item in schemas)
        ):
            message = f"the kernel returns {count(len(found.items), 'value')}, {returns}"
            yield Diagnostic(message, function.at(value), (registered,), ops=(kernel.title,))


def _unwritten(
    kernel: AtenKernel, function: Body, schemas: Sequence[OperatorSchema], registered: Related
) -> Iterator[Diagnostic]:
    """An in-place operator whose function returns a new tensor and does not write its argument."""
    written = {tuple(at for at, item in enumerate(schema.arguments) if item.is_write) for schema in schemas}
    first = next(iter(function.function.params), None) if function.function is not None else None
    in_place = kernel.name.partition(".")[0].endswith("_") and not kernel.name.startswith("__")
    if not in_place or written != {(0,)} or first is None or not function.scope.returns:
        return
    place = Place(function.file.path, first.span)
    twin = _twin(kernel, function) if any(item.text != first.name for item in function.scope.returns) else None
    if is_unwritten(kernel, function, first.name):
        message = f"`{kernel.title}` is an in-place operator, but the kernel does not write `{first.name}`"
        yield Diagnostic(message, place, (registered,), ops=(kernel.title,))
    elif twin is not None:
        message = (
            f"the kernel of `{twin.name}`, which does not write its argument, is registered for `{kernel.title}`, too"
        )
        related = Related(twin.registration.place, f"it is registered for `{twin.name}` here")
        yield Diagnostic(message, kernel.registration.place, (related,), ops=(kernel.title,))


def _returns_what_it_is_given(schema: OperatorSchema) -> bool:
    """Whether torch returns the only tensor that the operator writes, and not the kernel's result."""
    alias = schema.returns[0].alias
    return len(schema.returns) == 1 and alias is not None and alias.write


def _twin(kernel: AtenKernel, function: Body) -> StrayRegistration | None:
    """The registration of the same function for the operator of the same name that does not write its argument."""
    base, dot, overload = kernel.name.partition(".")
    name = f"aten::{base[:-1]}{dot}{overload}"
    around = function.parent
    made = around is not None and around.function is not None  # each call of what is around makes another one
    if made or kernel.registration.role != "kernel" or kernel.registration.conditional:
        return None
    same = kernel.tree.of_torch_by_function.get(id(function), ())
    return next((item for item in same if item.name == name and not item.registration.conditional), None)


def _is_wrapped(function: Function) -> bool:
    """Whether a decorator may replace the function's result."""
    return any((item.callee or item.text).rpartition(".")[2] != "impl" for item in function.decorators)


def _takes(schema: OperatorSchema, values: int) -> bool:
    """Whether a tuple with that many values may be the result for a schema."""
    return len(schema.returns) == values or (len(schema.returns) == 1 and schema.returns[0].type.is_list)


@rule("REG510", "aten-kernel-twice")
def aten_kernel_twice(tree: Tree) -> Iterator[Diagnostic]:
    """Two Python kernels for one operator of torch: twice in a table, or for one dispatch key in one file.

    Before torch 2.13, a library of Python refuses a second kernel for the same operator and dispatch key (`RuntimeError: This is
    not allowed since there's already a kernel registered from python`). Later releases warn and replace the first one, unless
    `allow_override=False` is passed. Registrations under a condition are not checked, nor those of libraries that are deleted
    or destroyed, nor rows with more than two items, which may have conditions. See [REG509](REG509.md) for what a table is.

    Bad:

    ```python kit/__init__.py
    import torch

    from kit.ops import add, mul, neg

    lib = torch.library.Library("aten", "IMPL")
    KERNELS = (
        ("add.Tensor", add),
        ("mul.Tensor", mul),
        ("neg", neg),
        ("add.Tensor", mul),
    )
    for name, function in KERNELS:
        lib.impl(name, function, "CUDA")
    ```

    ```python kit/ops.py
    def add(x, y, *, alpha=1):
        return run("add", x, y, alpha)


    def mul(x, y, *, alpha=1):
        return run("mul", x, y)


    def neg(x):
        return run("neg", x)
    ```

    Bad (without a table):

    ```python kit/ops.py
    import torch


    @torch.library.impl("aten::neg", "PrivateUse1")
    def neg(x):
        return run("neg", x)


    @torch.library.impl("aten::neg", "PrivateUse1")
    def abs(x):
        return run("abs", x)
    ```

    Good (the second has a condition):

    ```python kit/__init__.py
    import torch

    from kit.ops import abs, add, add_new, neg

    lib = torch.library.Library("aten", "IMPL")
    register(
        (
            ("abs", abs),
            ("neg", neg),
            ("add.Tensor", add, lambda: not is_new()),
            ("add.Tensor", add_new, lambda: is_new()),
        ),
        lib,
    )
    ```
    """
    first: dict[tuple[Place, str], Place] = {}
    for row in tree.rows:
        before = first.setdefault((row.table, row.name), row.place) if not row.conditional else row.place
        if before is not row.place:
            yield _twice(tree, f"aten::{row.name}", "is listed twice in this table", row.place, before)
    known: dict[tuple[str, str, frozenset[str]], Registration] = {}
    for item in tree.of_torch:
        found = item.registration
        if found.language != "python" or found.form == "row" or found.conditional or not found.keys:
            continue
        earlier = known.setdefault((found.place.path, item.name, found.keys), found)
        if earlier.place != found.place and not _may_follow(found, earlier):
            keys = listed(sorted(found.keys))
            yield _twice(tree, item.name, f"already has a kernel for {keys}", found.place, earlier.place)


def _may_follow(found: Registration, earlier: Registration) -> bool:
    """Whether a kernel replaces an earlier one on purpose, or may run after the library of that one is deleted."""
    overrides = found.call is not None and found.call.keyword("allow_override") is not None
    return overrides or _may_end(found) or _may_end(earlier)


def _may_end(item: Registration) -> bool:
    """Whether the library of a registration is destroyed, deleted or assigned again."""
    body, call = item.body, item.call
    if body is None or call is None:
        return False
    first = next(iter(call.positional()), None)
    library = first.text if first is not None and first.kind == "name" else call.callee.rpartition(".")[0]
    bound = [one for around in body.outward() for one in bindings(around.scope, library)]
    text = body.file.source.text
    return "_destroy" in text or "_scoped_library" in text or len(bound) > 1 or library in body.file.rebound


def _twice(tree: Tree, name: str, what: str, place: Place, before: Place) -> Diagnostic:
    replaces = "allow_override=True" in functions_of(tree.torch)["torch.library.Library.impl"]
    effect = "replaces the first kernel" if replaces else "refuses the second kernel"
    related = (Related(before, "the first one"),)
    return Diagnostic(f"`{name}` {what}; torch {effect}", place, related=related, ops=(name,))

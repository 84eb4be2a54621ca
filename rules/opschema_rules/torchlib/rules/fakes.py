"""Whether an operator has the fake that ``torch.compile`` needs: none, one too many, or one where it may not be."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.applied_order import runs_before
from opschema_rules.torchlib.model import Operator, Registration

OVERRIDING_FAKES = (2, 10)
"""The first release in which a second fake of a defined operator, or one beside a kernel for ``Meta``, does not always raise."""

_COMPOSITE = frozenset({"CompositeImplicitAutograd", "CompositeExplicitAutograd", "default"})
_COMPOSITE |= {"CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutogradNestedTensor", "CatchAll"}


@rule("REG206", "no-fake", severity="warning", needs=(CPP,))
def no_fake(operator: Operator) -> Iterator[Diagnostic]:
    """An operator without a fake.

    `torch.compile`, `torch.export` and everything else that runs with fake tensors needs to know what an operator returns
    without running it; without a fake it stops there. No fake is needed for an operator that writes to its arguments and
    returns nothing, one with the tag `inplace` or `out`, a `triton_op`, and one whose kernel is composite, since that runs
    with fake tensors itself. Nothing is reported if registrations of the namespace cannot be followed. For operators that
    C++ defines it is an info.

    Bad:

    ```python
    @torch.library.custom_op("kit::sort", mutates_args=())
    def sort(x: Tensor) -> Tensor:
        return x.sort().values
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::sort", mutates_args=())
    def sort(x: Tensor) -> Tensor:
        return x.sort().values


    @sort.register_fake
    def _(x):
        return torch.empty_like(x)


    @torch.library.custom_op("kit::sort_into", mutates_args=("out",))
    def sort_into(x: Tensor, out: Tensor) -> None:
        out.copy_(x.sort().values)
    ```
    """
    definition = operator.definition
    if operator.complete and _needs_fake(operator) and not _may_have_fake(operator):
        severity = Severity.INFO if definition.api == "cpp" else Severity.WARNING
        yield Diagnostic(
            f"`{operator.title}` has no fake: `torch.compile` and `torch.export` stop at it; register one with `register_fake`",
            _named_at(operator),
            ops=(operator.title,),
            severity=severity,
        )


def _named_at(operator: Operator) -> Place:
    definition = operator.definition
    if definition.api == "cpp":
        return definition.place
    return definition.written if definition.function is not None else definition.name_place or definition.written


def _needs_fake(operator: Operator) -> bool:
    definition, schema = operator.definition, operator.definition.schema
    if definition.api == "triton_op" or definition.tags is None or {"inplace", "out"} & definition.tags:
        return False
    if not isinstance(schema, OperatorSchema) or definition.errors or definition.problems:
        return False
    if schema.mutated and not schema.returns:
        return False
    if definition.mutates is None and definition.api == "custom_op" and not schema.returns:
        return False  # what it writes is not known
    return any(item.type.base == "Tensor" for item in schema.slots)


def _may_have_fake(operator: Operator) -> bool:
    kernels, registered = (
        operator.of_role("kernel"),
        [item for item in operator.registrations if item.role != "fallthrough"],
    )
    if any(item.role not in ("kernel", "vmap", "autocast", "autograd") for item in registered):
        return True
    if operator.definition.api == "custom_op":
        return False
    if not kernels or any(not item.keys or item.keys & _COMPOSITE for item in kernels):
        return True  # it is composite, or its kernels are not seen
    return any(item.keys and any(key.startswith("Autograd") for key in item.keys) for item in registered)


@rule("REG207", "fake-and-meta", by_release=True, needs=(CPP,))
def fake_and_meta(operator: Operator) -> Iterator[Diagnostic]:
    """A fake and a kernel for `Meta`.

    Both define the results for fake tensors. Before torch 2.10 `register_fake` raises if there is a kernel for `Meta`, also
    one in C++; since then one of the two is never used, which is a warning.

    Bad:

    ```python
    torch.library.define("kit::double", "(Tensor x) -> Tensor")


    @torch.library.impl("kit::double", "Meta")
    def double_meta(x):
        return torch.empty_like(x)


    @torch.library.register_fake("kit::double")
    def double_fake(x):
        return torch.empty_like(x)
    ```

    Good:

    ```python
    torch.library.define("kit::double", "(Tensor x) -> Tensor")


    @torch.library.impl("kit::double", "cpu")
    def double_cpu(x):
        return x * 2


    @torch.library.register_fake("kit::double")
    def double_fake(x):
        return torch.empty_like(x)
    ```
    """
    if operator.definition.api in ("custom_op", "triton_op"):
        return
    metas = [item for item in _sure_fakes(operator) if _is_meta(item)]
    fakes = [item for item in _sure_fakes(operator) if not _is_meta(item)]
    if metas and fakes:
        refused = operator.tree.torch < OVERRIDING_FAKES
        effect = "`register_fake` raises" if refused else "one of both is never used"
        yield Diagnostic(
            f"`{operator.title}` has a fake and a kernel for `Meta`: {effect}; keep one",
            fakes[0].place,
            related=tuple(Related(item.place, "the kernel for `Meta`") for item in metas),
            ops=(operator.title,),
            severity=Severity.ERROR if refused else Severity.WARNING,
        )


@rule("REG208", "two-fakes", by_release=True, needs=(CPP,))
def two_fakes(operator: Operator) -> Iterator[Diagnostic]:
    """An operator for which one module registers two fakes.

    The last one counts, and the first is dead code. For an operator of `define`, torch before 2.10 rejects the second.

    Bad:

    ```python
    @torch.library.custom_op("kit::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2


    @double.register_fake
    def _(x):
        return torch.empty_like(x)


    @double.register_fake
    def _(x):
        return x.new_empty(x.shape)
    ```

    Good:

    ```python
    @torch.library.custom_op("kit::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2


    if torch.cuda.is_available():

        @double.register_fake
        def _(x):
            return torch.empty_like(x)
    else:

        @double.register_fake
        def _(x):
            return x.new_empty(x.shape)
    ```
    """
    last: dict[str, Registration] = {}
    refused = operator.definition.api in ("define", "cpp") and operator.tree.torch < OVERRIDING_FAKES
    fakes = [item for item in _sure_fakes(operator) if not _is_meta(item) and isinstance(item.function, Body)]
    for item in sorted(fakes, key=lambda found: (found.place.path, found.place.span)):
        first = last.setdefault(item.place.path, item)
        if first.function is not item.function:
            effect = "torch refuses the second" if refused else "only the last one counts"
            yield Diagnostic(
                f"`{operator.title}` has a fake already: {effect}",
                item.place,
                related=(Related(first.place, "the fake before"),),
                ops=(operator.title,),
                severity=Severity.ERROR if refused else Severity.WARNING,
            )


@rule("REG209", "fake-of-composite", needs=(CPP,))
def fake_of_composite(operator: Operator) -> Iterator[Diagnostic]:
    """A fake for an operator whose kernel is `CompositeImplicitAutograd`.

    Such a kernel is composed of other operators and runs with fake tensors itself, so `register_fake` raises. A kernel that
    is passed to `Library.impl` or `m.def` without a key is one.

    Bad:

    ```python
    torch.library.define("kit::double", "(Tensor x) -> Tensor")


    @torch.library.impl("kit::double", "CompositeImplicitAutograd")
    def double_composite(x):
        return x * 2


    @torch.library.register_fake("kit::double")
    def double_fake(x):
        return torch.empty_like(x)
    ```

    Good:

    ```python
    torch.library.define("kit::double", "(Tensor x) -> Tensor")


    @torch.library.impl("kit::double", "CompositeExplicitAutograd")
    def double_composite(x):
        return x * 2


    @torch.library.register_fake("kit::double")
    def double_fake(x):
        return torch.empty_like(x)
    ```
    """
    if operator.definition.api not in ("define", "cpp") or operator.definition.conditional:
        return
    composites = [item for item in operator.of_role("kernel") if not item.conditional and _is_composite(item)]
    for fake in _sure_fakes(operator):
        before = next((item for item in composites if _is_before(item, fake)), None)
        if before is not None and fake.language == "python" and not _is_meta(fake):
            yield Diagnostic(
                f"`{operator.title}` has a composite kernel, which runs with fake tensors itself: `register_fake` raises",
                fake.place,
                related=(Related(before.place, "the composite kernel"),),
                ops=(operator.title,),
            )


def _sure_fakes(operator: Operator) -> list[Registration]:
    return [item for item in operator.of_role("fake") if not item.conditional]


def _is_meta(item: Registration) -> bool:
    return bool(item.keys) or item.language == "cpp"


def _is_composite(item: Registration) -> bool:
    if item.keys == frozenset() and item.call is not None:
        return item.call.items[0].text.endswith(".impl")  # of a Library; `torch.library.impl` always has keys
    return item.keys == frozenset({"CompositeImplicitAutograd"})


def _is_before(first: Registration, second: Registration) -> bool:
    """Whether a registration certainly runs before another: both are in one module or function."""
    if first.place.path != second.place.path or first.body is not second.body:
        return False
    if first.body is None or first.call is None or second.call is None:
        return first.place.span < second.place.span
    return runs_before(first.body.scope, first.call, second.call)

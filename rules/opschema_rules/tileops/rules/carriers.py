"""Carriers: 0-dim tensors, in the manifest and in the code, that stand for a dtype and a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_rules.tileops.carrier_attributes import CarrierAttribute
from opschema_rules.tileops.carrier_inputs import CarrierInput
from opschema_rules.tileops.carriers import Carriers, carriers_of
from opschema_rules.tileops.manifest_checks import forces_inputs
from opschema_rules.tileops.model import Manifest, OpImplementation


def _severity(manifest: Manifest) -> Severity:
    """A warning if a tree's own checks demand an input of every op, since a carrier only satisfies these."""
    return Severity.WARNING if forces_inputs(manifest) else Severity.ERROR


@rule("CAR101", "carrier-input")
def carrier_input(op: OpImplementation) -> Iterator[Diagnostic]:
    """An input is a carrier: it only stands in for a dtype or a device, and no call passes it.

    A carrier is a required 0-dimensional input that `forward()` does not take. The entry uses only its dtype, so the
    manifest declares an argument that callers cannot pass. Declare a parameter for the dtype or device instead, and
    `inputs: {}` if no tensor is left.

    This is checked if `forward()` is known and has no `*args` or `**kwargs`. Another tensor must have the carrier's dtype,
    or the class must create the carrier itself (see `carrier-attribute`). An entry that is not implemented may declare an
    input that the code will take later, so there the class must create a carrier, or take a dtype in the constructor and
    nothing in `forward()`. This is a warning in a tree whose own checks still require an input of every op.

    Bad:

    ```yaml
    signature:
      inputs:
        like: {dtype: "float16 | float32", shape: "[]"}
      outputs:
        y: {dtype: "same_as(like)", shape: "[n]"}
      params:
        n: {type: int}
      shape_rules: ["n > 0"]
    workloads:
      - {like_shape: [], n: 4, dtypes: [float16], label: "small"}
      - {like_shape: [], n: 1024, dtypes: [float32], label: "large"}
    roofline: {flops: "n", bytes: "n * elem_bytes"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
            self.n, self.dtype = n, dtype
            self.dispatch_kernel(kernel_map)

        def forward(self) -> torch.Tensor:
            return self.kernel_map["example"](self.n, self.dtype)
    ```

    Good:

    ```yaml
    signature:
      inputs: {}
      outputs:
        y: {dtype: "float16 | float32", shape: "[n]"}
      params:
        n: {type: int}
        dtype: {type: torch.dtype}
      shape_rules: ["n > 0"]
    workloads:
      - {n: 4, dtype: float16, dtypes: [float16], label: "small"}
      - {n: 1024, dtype: float32, dtypes: [float32], label: "large"}
    roofline: {flops: "n", bytes: "n * elem_bytes"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
            self.n, self.dtype = n, dtype
            self.dispatch_kernel(kernel_map)

        def forward(self) -> torch.Tensor:
            return self.kernel_map["example"](self.n, self.dtype)
    ```

    Good, a scalar that `forward()` takes:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        scale: {dtype: "same_as(x)", shape: "[]"}
    workloads:
      - {x_shape: [4, 8], scale_shape: [], dtypes: [float16], label: "small"}
      - {x_shape: [1024, 1024], scale_shape: [], dtypes: [float32], label: "large"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.eps = eps
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps) * scale
    ```
    """
    for found in carriers_of(op.entry.manifest).inputs_of(op):
        name = found.tensor.name
        typed = any(param.type == "torch.dtype" for param in op.entry.params)
        instead = "drop it and declare a `dtype` param" if found.lent and not typed else "drop it"
        yield Diagnostic(
            f"`{name}` is a carrier: `forward()` does not take it, it is 0-dimensional and only lends its dtype or "
            f"device; {instead}",
            op.entry.at(found.tensor.key),
            (_taken(op, found), *_made(found.attributes)),
            ops=(op.name,),
            severity=_severity(op.entry.manifest),
        )


def _taken(op: OpImplementation, found: CarrierInput) -> Related:
    params = [f"`{item.name}`" for item in op.call_params("forward") or ()]
    takes = ", ".join(params) if params else "no argument"
    return Related(op.code_place(found.forward), f"`forward()` takes {takes}")


def _made(attributes: Iterable[CarrierAttribute]) -> Iterator[Related]:
    for item in attributes:
        name = f"`self.{item.name}`" if item.name else "it"
        yield from (Related(place, f"the op makes {name} itself") for place in item.writes)


@rule("CAR103", "carrier-same-as")
def carrier_same_as(op: OpImplementation) -> Iterator[Diagnostic]:
    """A dtype refers to a carrier, not to a tensor that a call passes.

    `same_as(x)` and `promote_int_to_float(x)` say that a caller chooses the dtype by the tensor that it passes as `x`.
    Nobody passes a carrier (see `carrier-input`), so the reference hides which dtypes are supported: list them, and declare
    the choice among them as a param.

    Bad:

    ```yaml
    signature:
      inputs:
        like: {dtype: "float16 | float32", shape: "[]"}
      outputs:
        y: {dtype: "same_as(like)", shape: "[n]"}
      params:
        n: {type: int}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, n: int, dtype: torch.dtype, *, kernel_map=None):
            self.n, self.dtype = n, dtype

        def forward(self) -> torch.Tensor:
            return ExampleKernel()(self.n, self.dtype)
    ```

    Good:

    ```yaml
    signature:
      outputs:
        y: {dtype: "same_as(x)"}
    ```
    """
    for found in carriers_of(op.entry.manifest).inputs_of(op):
        dtypes = f"`{found.tensor.dtype}`" if found.tensor.dtype else "its dtypes"
        carrier = op.entry.related(found.tensor.key, f"`{found.tensor.name}` is not an argument of `forward()`")
        for lent in found.lent:
            yield Diagnostic(
                f"`{lent.tensor.name}` takes its dtype from the carrier `{found.tensor.name}`, which no call passes; "
                f"write {dtypes}",
                op.entry.at(lent.span),
                (carrier,),
                ops=(op.name,),
                severity=_severity(op.entry.manifest),
            )


@rule("CAR102", "carrier-attribute")
def carrier_attribute(manifest: Manifest) -> Iterator[Diagnostic]:
    """An op passes its custom op a tensor that only stands in for a dtype or a device.

    The rule finds 0-dimensional tensors that an op class creates, in `__init__()` or elsewhere, and passes to a custom op
    that never uses their values: its implementation ignores the parameter or reads only its dtype, device or shape. They
    may be created by any chain of creation, conversion, reshaping and indexing whose shape is known, and stored by
    assignment, by `setattr` or as a buffer. Every use of the tensor is followed. One that is read anywhere, mutated, part
    of autograd, or passed to something that cannot be resolved is not a carrier. This is a warning in a tree whose own
    checks still require an input of every op.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self.eps = eps
            self._like = torch.empty((), device="cuda")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, self._like, self.eps)


    @torch.library.custom_op("kit::example_fwd", mutates_args=())
    def _example_fwd(x: torch.Tensor, like: torch.Tensor, eps: float) -> torch.Tensor:
        return ExampleKernel()(x, eps)


    @_example_fwd.register_fake
    def _(x, like, eps):
        return like.new_empty(x.shape)
    ```

    Good, a scalar that the custom op reads:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self._one = torch.ones((), device="cuda")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, self._one)


    @torch.library.custom_op("kit::example_fwd", mutates_args=())
    def _example_fwd(x: torch.Tensor, one: torch.Tensor) -> torch.Tensor:
        return ExampleKernel()(x, one)


    @_example_fwd.register_fake
    def _(x, one):
        return x.new_empty(x.shape)
    ```

    Good, a counter that the custom op writes:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self._calls = torch.zeros((), dtype=torch.int64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, self._calls)


    @torch.library.custom_op("kit::example_fwd", mutates_args=("calls",))
    def _example_fwd(x: torch.Tensor, calls: torch.Tensor) -> torch.Tensor:
        return ExampleKernel()(x, calls.data_ptr())
    ```
    """
    carriers = carriers_of(manifest)
    for found in carriers.attributes:
        what = f"`self.{found.name}` is a carrier" if found.name else "this is a carrier"
        yield Diagnostic(
            f"{what}: a 0-dimensional tensor, made only to be handed to a custom op that never uses its values; "
            "call the op without it",
            found.writes[0],
            (*(Related(place, "and here") for place in found.writes[1:]), *_handed(found)),
            ops=_ops(carriers, [found]),
            severity=_severity(manifest),
        )


def _handed(found: CarrierAttribute) -> Iterator[Related]:
    takers: dict[Place, str] = {}
    for handing in found.handings:
        if found.name:
            yield Related(handing.body.at(handing.argument), "passed to the custom op")
        takers.update({op.body.at(param.span): param.name for op, param in handing.takers})
    yield from (Related(place, f"the op never uses the values of `{name}`") for place, name in takers.items())


def _ops(carriers: Carriers, attributes: Iterable[CarrierAttribute]) -> tuple[str, ...]:
    names = {name for item in attributes for name in carriers.entries_by_class.get(item.owner, ())}
    return tuple(sorted(names))


@rule("CAR104", "carrier-registration")
def carrier_registration(manifest: Manifest) -> Iterator[Diagnostic]:
    """A custom op takes a tensor that only stands in for a dtype or a device.

    The rule finds parameters of a custom op, registered by decorator, by call, through `torch.library.Library` or in a
    helper that registers several, whose values no implementation uses and for which every caller passes a carrier (see
    `carrier-attribute`). An op that ignores a real tensor, or mutates it, is not reported. This is a warning in a tree
    whose own checks still require an input of every op.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self.eps = eps
            self._like = torch.empty((), device="cuda")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, self._like, self.eps)


    @torch.library.custom_op("kit::example_fwd", mutates_args=())
    def _example_fwd(x: torch.Tensor, like: torch.Tensor, eps: float) -> torch.Tensor:
        return ExampleKernel()(x, eps)


    @_example_fwd.register_fake
    def _(x, like, eps):
        return like.new_empty(x.shape)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self.eps = eps

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, self.eps)


    @torch.library.custom_op("kit::example_fwd", mutates_args=())
    def _example_fwd(x: torch.Tensor, eps: float) -> torch.Tensor:
        return ExampleKernel()(x, eps)


    @_example_fwd.register_fake
    def _(x, eps):
        return x.new_empty(x.shape)
    ```

    Good, a real tensor that the implementation does not need:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)
            self.eps = eps

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return _example_fwd(x, mask, self.eps)


    @torch.library.custom_op("kit::example_fwd", mutates_args=())
    def _example_fwd(x: torch.Tensor, mask: torch.Tensor, eps: float) -> torch.Tensor:
        return ExampleKernel()(x, eps)
    ```
    """
    carriers = carriers_of(manifest)
    for found in carriers.params:
        name = found.param.name
        place = found.op.body.params.index(found.param)
        fakes = [body for body in found.op.fakes if place < len(body.params)]
        yield Diagnostic(
            f"the custom op never uses the values of `{name}`, and every caller fills it with a carrier; drop the "
            "parameter and take dtype and device from the op's instance",
            found.op.body.at(found.param.span),
            (
                *(Related(body.at(body.params[place].span), "the fake kernel's parameter") for body in fakes),
                *(Related(item.body.at(item.argument), "a carrier is handed over") for item in found.handings),
            ),
            ops=_ops(carriers, found.attributes),
            severity=_severity(manifest),
        )

"""Parameters of ``forward()``, against the manifest's declaration."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.align import Alignment, Slot, align
from opschema_rules.tileops.carriers import carrier_names
from opschema_rules.tileops.drift import Drift, Method, method_of, names, settle
from opschema_rules.tileops.model import Implementations, OpImplementation


@rule("SIG101", "forward-order")
def forward_order(ops: Implementations) -> Iterator[Diagnostic]:
    """`forward()` does not take the inputs and parameters that the manifest declares, in their order.

    A caller passes inputs by position. If `forward()` takes them in another order, under other names, or takes fewer or
    more of them, code that is written or generated from the manifest passes the wrong tensors, often without an error.
    `forward()` must take the inputs in the order of `signature.inputs`, and then, in the order of `signature.params`, the
    parameters that it takes. Keyword-only parameters have no order.

    Not checked are a `forward()` that is generated or decorated so that its parameters are not known, inputs that `*args`
    or `**kwargs` may take, and carriers, which have their own rule (`carrier-input`). Findings in `spec-only` entries are
    warnings.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        weight: {dtype: "same_as(x)"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, weight)
    ```

    Bad, an input under another name:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](input)
    ```

    Good, `scale` is a parameter that `forward()` takes after the inputs:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        weight: {dtype: "same_as(x)"}
      params:
        eps: {type: float, default: 0.5}
        scale: {type: float}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, weight: torch.Tensor, scale: float) -> torch.Tensor:
            return self.kernel_map["example"](x, weight, scale)
    ```
    """
    yield from settle(ops, _order)


def _order(op: OpImplementation) -> Iterator[Drift]:
    found = _compared(op)
    if found is None:
        return
    method, result = found
    carriers = carrier_names(op) if result.missing else set()
    missing = [slot for slot in result.missing if slot.name not in carriers]
    if missing:
        text = f"`forward()` does not take the input{'s' if len(missing) > 1 else ''} {names(missing)}"
        yield Drift(method, text, method.span, missing[0].span, observed=f"takes {names(method.slots) or 'nothing'}")
    for slot, use in result.renamed:
        text = f"`forward()` takes `{use.name}` where the manifest declares `{slot.name}`"
        yield Drift(method, text, use.span, slot.span, observed=f"named `{use.name}` here")
    for use in result.extra:
        text = f"`forward()` takes `{use.name}`, which the manifest declares neither as an input nor as a parameter"
        yield Drift(
            method, text, use.span, op.entry.key_of("signature", "inputs") or op.entry.key, "the inputs", "taken here"
        )
    if result.reordered:
        yield _reordered(method, result)


def _compared(op: OpImplementation) -> tuple[Method, Alignment] | None:
    """Return the alignment of the declared inputs with the parameters that ``forward`` takes."""
    method = method_of(op, "forward")
    inputs, params = op.entry.input_slots, op.entry.param_slots
    if method is None or inputs is None or params is None:
        return None
    tensors = {slot.name for slot in inputs}
    declared = [*inputs, *(slot for slot in params if slot.name not in tensors and method.param(slot.name) is not None)]
    return method, align(declared, method.slots)


def _reordered(method: Method, result: Alignment) -> Drift:
    place = {slot.name: index for index, slot in enumerate(method.slots)}
    pairs = [pair for pair in result.matched if "kwonly" not in (pair[0].kind, pair[1].kind)]
    written = sorted(pairs, key=lambda pair: place[pair[1].name])
    wrong = [index for index, pair in enumerate(pairs) if pair != written[index]]
    part = slice(wrong[0], wrong[-1] + 1)
    declared, taken = (names(pair[0] for pair in order[part]) for order in (pairs, written))
    text = f"`forward()` takes {taken}; the manifest declares {declared}"
    return Drift(method, text, written[wrong[0]][1].span, pairs[wrong[0]][0].span, observed=f"takes {taken}")


@rule("SIG102", "forward-positional")
def forward_positional(ops: Implementations) -> Iterator[Diagnostic]:
    """`forward()` takes a declared input by keyword only.

    Inputs are passed by position, in the order of `signature.inputs`: benchmarks, fakes and compiled graphs do so. An input
    after the `*` of `forward()` cannot be passed that way. Parameters may follow the `*`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, *, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        scale: {type: float}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, *, scale: float) -> torch.Tensor:
            return self.kernel_map["example"](x, scale)
    ```
    """
    yield from settle(ops, _positional)


def _positional(op: OpImplementation) -> Iterator[Drift]:
    for method, slot, use in _inputs(op):
        if use.kind == "kwonly":
            text = f"`forward()` takes the input `{slot.name}` by keyword only; inputs are passed by position"
            yield Drift(method, text, use.span, slot.span, observed="keyword-only here")


def _inputs(op: OpImplementation) -> Iterator[tuple[Method, Slot, Slot]]:
    """``forward`` and each declared input that it takes, as declared and as taken."""
    method, inputs = method_of(op, "forward"), op.entry.input_slots
    if method is not None and inputs is not None:
        yield from ((method, slot, use) for slot, use in align(inputs, method.slots).matched)


@rule("SIG103", "optional-default")
def optional_default(ops: Implementations) -> Iterator[Diagnostic]:
    """An input is optional in only one of manifest and code.

    `optional: true` promises that a call may omit the input, so `forward()` must default it to `None`; otherwise it is an
    error. Conversely, an input that the manifest requires and `forward()` defaults is a warning: a call without it
    succeeds, and no workload, shape rule or roofline says what it means.

    This is checked if the tree's manifest specification mentions `optional: true`.

    Bad:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, bias)
    ```

    Bad, the code allows what the manifest does not promise:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)"}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            return self.kernel_map["example"](x, bias)
    ```

    Good:

    ```yaml
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        bias: {dtype: "same_as(x)", optional: true}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            return self.kernel_map["example"](x, bias)
    ```
    """
    if ops.manifest.spec.knows("optional"):
        yield from settle(ops, _defaults)


def _defaults(op: OpImplementation) -> Iterator[Drift]:
    for method, slot, use in _inputs(op):
        tensor = op.entry.input(slot.name)
        if tensor is not None and tensor.misstates("optional"):
            continue
        if use.required and not slot.required:
            text = f"`forward()` requires the optional input `{slot.name}`; give it the default `None`"
            yield Drift(method, text, use.span, slot.span, "optional here", "no default here")
        elif slot.required and not use.required:
            text = f"`forward()` defaults the input `{slot.name}`, which the manifest requires"
            note = "defaulted here"
            yield Drift(method, text, use.span, slot.span, observed=note, in_manifest=True, severity=Severity.WARNING)

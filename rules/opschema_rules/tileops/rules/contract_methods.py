"""The methods that an op's contract derives from its manifest entry, where somebody wrote them by hand."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.align import Alignment, Slot, align
from opschema_cli.source.python import Expr
from opschema_cli.source.text import Span
from opschema_rules.tileops.carriers import carrier_names
from opschema_rules.tileops.drift import Drift, Method, method_of, names, settle
from opschema_rules.tileops.model import Implementations, OpEntry, OpImplementation


@rule("SIG301", "infer-shapes-signature")
def infer_shapes_signature(ops: Implementations) -> Iterator[Diagnostic]:
    """`_infer_output_shapes()` does not take the inputs' shapes.

    It is called with one argument for each declared input, named `<input>_shape`, including optional ones. With a parameter
    of another name, a missing one, or an additional one without a default, that call raises a `TypeError`, and so does the
    fake implementation under `torch.compile`. A method that takes `*args` or `**kwargs` is not checked. This is checked if
    the tree's specification mentions `_infer_output_shapes`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, input_shape):
            return {"y": input_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape, strict=False):
            return {"y": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    if ops.manifest.spec.knows("infer-shapes"):
        yield from settle(ops, _infer_signature)


def _infer_signature(op: OpImplementation) -> Iterator[Drift]:
    inputs = op.entry.input_slots
    if inputs is not None:
        wanted = [Slot(f"{slot.name}_shape", "normal", True, slot.span) for slot in inputs]
        yield from _named_arguments(op, "_infer_output_shapes", wanted, "_shape")


def _foreign_inputs(op: OpImplementation) -> dict[str, str]:
    """The inputs that `forward()` does not take either, each with the name that it takes instead: CAR101's and SIG101's."""
    forward = method_of(op, "forward")
    found = align(op.entry.input_slots or [], forward.slots) if forward is not None else Alignment()
    missing = {*(slot.name for slot in found.missing), *carrier_names(op)}
    return {**dict.fromkeys(missing, ""), **{slot.name: use.name for slot, use in found.renamed}}


def _named_arguments(op: OpImplementation, name: str, wanted: list[Slot], suffix: str = "") -> Iterator[Drift]:
    """Describe how a method fails to take ``wanted`` arguments by name: the inputs, with ``suffix`` after their names."""
    method = method_of(op, name)
    if method is None or "abstractmethod" in " ".join(method.ref.function.decorator_names):
        return
    found = align(wanted, method.slots)
    uses = _foreign_inputs(op).items() if found.missing or found.renamed else ()
    foreign = {own + suffix: other + suffix for own, other in uses}
    for slot, use in found.renamed:
        if foreign.get(slot.name) == use.name:
            continue
        text = f"`{name}()` takes `{use.name}` where the manifest makes it `{slot.name}`"
        yield Drift(method, text, use.span, slot.span, observed=f"named `{use.name}` here")
    missing = [slot for slot in found.missing if slot.name not in foreign]
    if missing:
        text = f"`{name}()` does not take {names(missing)}"
        yield Drift(method, text, method.span, missing[0].span, observed=f"takes {names(method.slots) or 'nothing'}")
    for use in found.extra:
        if use.required:
            text = f"`{name}()` requires `{use.name}`, which no declared input gives it"
            yield Drift(method, text, use.span, _inputs_key(op.entry), "the inputs", "required here")
    for slot, use in found.matched:
        if use.kind == "posonly":
            text = f"`{name}()` takes `{use.name}` by position only; it is passed by name"
            yield Drift(method, text, use.span, slot.span, observed="position-only here")
        elif use.required and not slot.required:
            text = f"`{name}()` requires the optional input `{slot.name}`; give it the default `None`"
            yield Drift(method, text, use.span, slot.span, "optional here", "no default here")


def _inputs_key(entry: OpEntry) -> Span:
    key = entry.key_of("signature", "inputs")
    return key.span if key is not None else entry.key.span


@rule("SIG302", "infer-shapes-outputs")
def infer_shapes_outputs(ops: Implementations) -> Iterator[Diagnostic]:
    """`_infer_output_shapes()` returns shapes for other outputs than the manifest declares.

    Callers look each declared output up in the dictionary that it returns. If it returns only literal dictionaries, the
    keys of at least one must be the names under `signature.outputs`; a method that several ops share may return others for
    the other ops. A dictionary that is computed is not checked. This is checked if the tree's specification mentions
    `_infer_output_shapes`.

    Bad:

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            return {"output": x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good:

    ```python
    OUTPUT = "y"


    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def _infer_output_shapes(self, x_shape):
            if not x_shape:
                return dict(y=())
            return {OUTPUT: x_shape}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```
    """
    if ops.manifest.spec.knows("infer-shapes"):
        yield from settle(ops, _infer_outputs)


def returns_other_outputs(op: OpImplementation) -> bool:
    """Whether `_infer_output_shapes()` returns literal shapes of other outputs than the manifest declares."""
    return any(True for _ in _infer_outputs(op))


def _infer_outputs(op: OpImplementation) -> Iterator[Drift]:
    method, outputs = method_of(op, "_infer_output_shapes"), op.entry.output_slots
    if method is None or not outputs:
        return
    declared = {slot.name: slot.span for slot in outputs}
    values = method.ref.function.body.returns
    found = [(value, keys) for value in values if (keys := _literal_keys(method, value)) is not None]
    # A return of other keys may belong to another class that shares the method.
    if len(found) < len(values) or any(keys.keys() == declared.keys() for _, keys in found):
        return
    for value, keys in found:
        returned = f"returns {names(keys) or 'no output'}"
        text = f"`{method.name}()` {returned}; the manifest declares {names(declared)}"
        wrong = next((span for name, span in keys.items() if name not in declared), value.span)
        missing = next((span for name, span in declared.items() if name not in keys), outputs[0].span)
        yield Drift(method, text, wrong, missing, observed=returned)


def _literal_keys(method: Method, value: Expr) -> dict[str, Span] | None:
    """Return the keys of a dictionary display, or of ``dict(name=...)``, with their places; None if one is not constant."""
    if value.callee == "dict" and len(value.items) > 1:
        named = value.args
        return {name: item.span for name, item in named} if all(name.isidentifier() for name, _ in named) else None
    if value.kind != "dict":
        return None
    found: dict[str, Span] = {}
    for key in value.items[::2]:
        folded = method.fold(key)
        if key.text == "**" or folded is None or not isinstance(folded.value, str):
            return None
        found[folded.value] = key.span
    return found


@rule("SIG303", "validate-dtypes-signature")
def validate_dtypes_signature(ops: Implementations) -> Iterator[Diagnostic]:
    """A hand-written `_validate_dtypes()` does not take the declared inputs.

    It is called with the inputs by name, without the optional ones that a call omits. A method that is generated from the
    manifest is always right; one that a class defines, or assigns from a function, must match the manifest. A method that
    takes `*args` or `**kwargs` is not checked. This is checked if the tree's specification mentions `_validate_dtypes`.

    Bad:

    ```python
    def _validate_two(self, x, weight):
        pass


    class ExampleFwdOp(Op):
        _validate_dtypes = _validate_two

        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
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

        def _validate_dtypes(self, x, bias=None):
            pass

        def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            return self.kernel_map["example"](x, bias)
    ```
    """
    if ops.manifest.spec.knows("validate-dtypes"):
        yield from settle(ops, _validate_signature)


def _validate_signature(op: OpImplementation) -> Iterator[Drift]:
    if op.entry.input_slots is not None:
        yield from _named_arguments(op, "_validate_dtypes", op.entry.input_slots)

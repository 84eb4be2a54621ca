"""Special treatment of carriers in checks: exceptions for ops without tensor inputs, and the demand for an input."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_rules.tileops.carriers import carriers_of
from opschema_rules.tileops.carve_outs import CarveOut, carve_outs
from opschema_rules.tileops.demands import demands
from opschema_rules.tileops.manifest_checks import checks
from opschema_rules.tileops.model import Manifest, Validator


@rule("CAR105", "carrier-carve-out", severity="warning")
def carrier_carve_out(validator: Validator) -> Iterator[Diagnostic]:
    """A validator exempts ops without tensor inputs from a check.

    An exemption keyed on `ref_api: "none"` and a `forward()` without arguments lets such an op declare inputs that nothing
    passes (see `carrier-input`). An op that declares `inputs: {}` needs no exemption: there is nothing to compare.

    The rule finds an expression that tests both, whatever the names and wherever its result is used, if it skips a check:
    an early return, or a condition that runs the check for other ops only. A test of `ref_api: "none"` alone is not
    reported, and neither is a test that reports the op.

    Bad:

    ```python scripts/check_manifest.py
    # shape_rules, workloads, roofline, signature, status
    import inspect


    def check_forward(entry, cls):
        errors = []
        names = list(inspect.signature(cls.forward).parameters)[1:]
        if entry["ref_api"] == "none" and len(names) == 0:
            return errors
        if names != list(entry["signature"]["inputs"]):
            errors.append(f"forward() takes {names}")
        return errors
    ```

    Good:

    ```python scripts/check_manifest.py
    # shape_rules, workloads, roofline, signature, status
    import inspect


    def check_forward(entry, cls):
        names = list(inspect.signature(cls.forward).parameters)[1:]
        if names != list(entry["signature"]["inputs"]):
            return [f"forward() takes {names}"]
        return []


    def check_reference(entry):
        if entry["ref_api"] == "none":
            return []
        return [] if "." in entry["ref_api"] else ["ref_api names no module"]
    ```
    """
    for found in carve_outs(validator.manifest.program, validator.file):
        yield Diagnostic(
            'an op with `ref_api: "none"` and a `forward()` without arguments is exempt here, so its manifest may declare '
            "inputs that nothing passes; let such an op declare `inputs: {}` and check it like any other",
            found.body.at(found.test),
            tuple(_consequences(found)),
        )


def _consequences(found: CarveOut) -> Iterator[Related]:
    for body, param in found.params:
        yield Related(body.at(param.span), f"`{param.name}` passes the exception on")
    for body, condition in found.guards:
        if condition.expr.span != found.test.span:
            yield Related(body.at(condition.expr), "a check is skipped")


@rule("CAR106", "carrier-invariant", severity="info")
def carrier_invariant(manifest: Manifest) -> Iterator[Diagnostic]:
    """A check requires an input of every op, though an op may have no tensor inputs.

    A validator or test that requires an input of every op makes ops that have none declare a carrier. This is reported only
    if some entry has no input but a carrier (see `carrier-input`). Require an output, and an input or a param.

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

    ```python tests/test_manifest.py
    from kit.manifest import load_manifest


    def test_every_signature_has_inputs_and_outputs():
        for entry in load_manifest().values():
            signature = entry["signature"]
            assert len(signature["inputs"]) >= 1
            assert len(signature["outputs"]) >= 1
    ```

    Good:

    ```python tests/test_manifest.py
    from kit.manifest import load_manifest


    def test_every_signature_has_outputs_and_something_to_make_them_of():
        for entry in load_manifest().values():
            signature = entry["signature"]
            assert len(signature["outputs"]) >= 1
            assert len(signature["inputs"]) >= 1 or len(signature["params"]) >= 1
    ```
    """
    forced = [found for found in carriers_of(manifest).inputs if len(found.entry.inputs) == 1]
    if not forced:
        return
    related = tuple(found.entry.related(found.tensor.key, f"the carrier of `{found.entry.name}`") for found in forced)
    for file in checks(manifest):
        for demand in demands(manifest.program, file):
            yield Diagnostic(
                "this demands an input of every op, so an op without tensor inputs has to declare a carrier; accept "
                "`inputs: {}` where an op has params",
                demand.body.at(demand.test),
                related,
                ops=tuple(sorted(found.entry.name for found in forced)),
            )

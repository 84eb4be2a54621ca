"""Parameters that the manifest declares, against those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.python import Param
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.tileops.drift import Method, method_of, names
from opschema_rules.tileops.model import OpImplementation

INFRASTRUCTURE = frozenset({"kernel_map", "tune", "target"})
"""Constructor parameters that an op has and no manifest declares."""


@rule("SIG201", "param-not-in-code")
def param_not_in_code(op: OpImplementation) -> Iterator[Diagnostic]:
    """Neither `__init__()` nor `forward()` has a parameter that the manifest declares.

    A caller who reads the manifest passes it, and gets a `TypeError`. If one of the methods is not known, or takes
    `**kwargs`, nothing is reported. Findings in `spec-only` entries are warnings.

    Bad:

    ```yaml
    signature:
      params:
        epsilon: {type: float, default: 0.5}
    ```

    Good, one parameter for each method:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        scale: {type: float, default: 1.0}
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            return self.kernel_map["example"](x, scale)
    ```
    """
    methods = [method_of(op, name) for name in ("__init__", "forward") if _defined(op, name)]
    declared = op.entry.param_slots
    if declared is None or None in methods or any(method.open for method in methods if method is not None):
        return
    known = [method for method in methods if method is not None]
    taken = {param.name for method in known for param in method.params}
    used = {slot.name for slot in (*declared, *(op.entry.input_slots or ()))} | INFRASTRUCTURE
    spare = {param.name: _kinds(method, param) for method in known for param in method.params if param.name not in used}
    related = tuple(Related(op.code_place(method.ref), _takes(method)) for method in known)
    for slot in declared:
        if slot.name not in taken:
            kinds = _kinds_in(_declared_type(op, slot.name))
            alike = [name for name, other in spare.items() if _are_alike(kinds, other)]
            text = f"neither `__init__()` nor `forward()` takes the parameter `{slot.name}`{_hint(slot.name, alike)}"
            yield Diagnostic(text, op.entry.at(slot.span), related, ops=(op.name,), severity=op.entry.severity)


def _defined(op: OpImplementation, name: str) -> bool:
    return op.program.member(op.ref, name) is not None


def _takes(method: Method) -> str:
    return f"takes {names(method.slots) or 'nothing'}"


_KINDS = {
    **dict.fromkeys(("int", "float", "complex", "Number"), "number"),
    **dict.fromkeys(("list", "List", "tuple", "Tuple", "Sequence", "Iterable", "Size"), "array"),
    **{name: name for name in ("bool", "str", "dict", "dtype", "device", "Callable", "Tensor")},
}
"""Words in type expressions that distinguish kinds of values."""


def _declared_type(op: OpImplementation, name: str) -> str:
    param = op.entry.param(name)
    return (param.type if param is not None else None) or ""


def _kinds(method: Method, param: Param) -> set[str]:
    return _kinds_in(method.ref.file.text(param.annotation)) if param.annotation is not None else set()


def _kinds_in(text: str) -> set[str]:
    return {_KINDS[word] for word in re.findall(r"\w+", text) if word in _KINDS}


def _are_alike(declared: set[str], taken: set[str]) -> bool:
    """Whether a parameter of the code may be the declared one; a tensor is not a param."""
    return taken != {"Tensor"} and (not declared or not taken or not declared.isdisjoint(taken))


def _hint(name: str, choices: list[str]) -> str:
    close = nearest(name, choices, 0.6)
    return did_you_mean(close)


@rule("SIG202", "static-dim-not-in-constructor")
def static_dim_not_in_constructor(op: OpImplementation) -> Iterator[Diagnostic]:
    """A name in `static_dims` is not a parameter of `__init__()`.

    `static_dims` names what the caller commits to when the op is constructed, so each name must be a parameter of the
    constructor. This is checked if the tree's specification mentions `static_dims`.

    Bad:

    ```yaml
    signature:
      static_dims:
        N: "x.shape[-1]"
    ```

    Good:

    ```yaml
    signature:
      static_dims:
        N: "x.shape[-1]"
    ```

    ```python
    class ExampleFwdOp(Op):
        def __init__(self, N: int, eps: float = 0.5, *, kernel_map=None):
            self.dispatch_kernel(kernel_map)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x, self.eps)
    ```
    """
    method, dims = method_of(op, "__init__"), op.entry.data_at("signature", "static_dims")
    if method is None or method.open or not isinstance(dims, dict) or not op.entry.manifest.spec.knows("static-dims"):
        return
    taken = sorted(param.name for param in method.params)
    for name in dims:
        key = op.entry.key_of("signature", "static_dims", name) if isinstance(name, str) else None
        if key is not None and key.value not in taken:
            text = f"`__init__()` does not take `{key.value}` of `static_dims`{_hint(key.value, taken)}"
            related = (Related(op.code_place(method.ref), _takes(method)),)
            yield Diagnostic(text, op.entry.at(key), related, ops=(op.name,), severity=op.entry.severity)

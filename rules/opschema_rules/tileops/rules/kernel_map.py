"""The kernels that an entry declares against those that its class dispatches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import Folded, FunctionRef, ValueRef
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Data, Node
from opschema_cli.suggestions import near_names
from opschema_rules.tileops.drift import names
from opschema_rules.tileops.model import OpImplementation


@rule("SRC103", "kernel-map")
def kernel_map(op: OpImplementation) -> Iterator[Diagnostic]:
    """`source.kernel_map` differs from the class's `default_kernel_map`.

    The manifest's map lists the op's kernels: those that a caller can replace, and that an implementation of the op must
    provide. Its keys and class names must be those of the dictionary that `default_kernel_map` returns, in all its
    branches. Class attributes such as `self._op_name` and `self.kernel_cls` are followed. A class that returns an empty map
    uses the kernels of the ops that it is composed of and is not compared; neither is a computed part. Findings in
    `spec-only` entries are warnings.

    Bad:

    ```yaml
    source:
      kernel_map: {example: OtherKernel}
    ```

    Bad, a kernel that the manifest does not list:

    ```python
    class ExampleFwdOp(Op):
        @property
        def default_kernel_map(self):
            return {"example": ExampleKernel, "example_wide": ExampleWideKernel}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, by the attributes of the class:

    ```python
    class ExampleBase(Op):
        @property
        def default_kernel_map(self):
            return {self._op_name: self.kernel_cls}


    class ExampleFwdOp(ExampleBase):
        _op_name = "example"
        kernel_cls = ExampleKernel

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.kernel_map["example"](x)
    ```

    Good, composed of other ops:

    ```python
    class ExampleFwdOp(Op):
        @property
        def default_kernel_map(self):
            return {}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)
    ```
    """
    declared = op.entry.data_at("source", "kernel_map")
    found = op.method("default_kernel_map")
    if found is None or not isinstance(declared, dict) or not all(isinstance(key, str) for key in declared):
        return
    dispatched = kernels_of(op, found)
    if not dispatched.kernels:
        return
    stated = {str(key): value for key, value in declared.items()}
    renamed = _renamed(stated, dispatched) if dispatched.complete else {}
    for name, value in stated.items():
        if name in renamed:
            yield _other_key(op, found, name, renamed[name], dispatched.kernels[renamed[name]])
        elif name not in dispatched.kernels:
            if dispatched.complete:
                yield _unknown_key(op, found, name)
        elif isinstance(value, str) and dispatched.kernels[name].differs(value):
            yield _other_class(op, found, name, value, dispatched.kernels[name])
    for name, kernel in dispatched.kernels.items():
        if name not in stated and name not in renamed.values():
            yield _undeclared(op, found, name, kernel)


def _renamed(stated: dict[str, Data], dispatched: Dispatched) -> dict[str, str]:
    """Return the keys that refer to one kernel on both sides under two names: the same class, or else similar names."""
    found: dict[str, str] = {}
    for name in stated.keys() - dispatched.kernels.keys():
        value = stated[name]
        spare = {key: kernel for key, kernel in dispatched.kernels.items() if key not in stated}
        same = [
            key for key, kernel in spare.items() if kernel.known and isinstance(value, str) and value in kernel.classes
        ]
        close = near_names(name, same or spare, 1, 0.0 if len(same) == 1 else 0.6)
        found.update({name: close[0]} if close else {})
    counts = Counter(found.values())
    return {name: key for name, key in found.items() if counts[key] == 1}


def dispatched_kernels(op: OpImplementation) -> dict[str, str] | None:
    """Return the kernels of ``default_kernel_map`` by key; None if one is not known."""
    found = op.method("default_kernel_map")
    dispatched = kernels_of(op, found) if found is not None else None
    if dispatched is None or not dispatched.complete:
        return None
    known = {name: next(iter(item.classes)) for name, item in dispatched.kernels.items() if len(item.classes) == 1}
    sure = len(known) == len(dispatched.kernels) and all(item.known for item in dispatched.kernels.values())
    return known if known and sure else None


class _Kernel(msgspec.Struct):
    """A key of the map: its place, and the classes that branches assign to it."""

    span: Span
    classes: set[str] = msgspec.field(default_factory=set)
    known: bool = True

    def differs(self, name: str) -> bool:
        """Whether the key is known to refer to other classes."""
        return self.known and name not in self.classes


class Dispatched(msgspec.Struct):
    """The kernels of a class by their keys; ``complete`` unless some part is computed."""

    kernels: dict[str, _Kernel] = msgspec.field(default_factory=dict)
    complete: bool = True


def kernels_of(op: OpImplementation, ref: FunctionRef) -> Dispatched:
    """The kernels of the dictionaries that `default_kernel_map` returns."""
    found = Dispatched()
    for value in ref.function.body.returns:
        if value.kind != "dict":
            found.complete = False
            continue
        for key, kernel in zip(value.items[::2], value.items[1::2], strict=True):
            name = key_text(op, ref, key)
            if name is None:
                found.complete = False
                continue
            known = found.kernels.setdefault(name, _Kernel(key.span))
            cls = _class_name(op, ref, kernel)
            known.classes.update([cls] if cls is not None else [])
            known.known = known.known and cls is not None
    return found


def key_text(op: OpImplementation, ref: FunctionRef, expr: Expr) -> str | None:
    """The text that a key is, through class attributes and constants."""
    attribute = _attribute(op, ref, expr)
    file, value = (attribute.file, attribute.assign.value) if attribute is not None else (ref.file, expr)
    where = ref.owner if ref.owner is not None and attribute is None else file
    folded = op.entry.manifest.evaluator.fold(where, value) if value is not None and value.text != "**" else None
    return folded.value if isinstance(folded, Folded) and isinstance(folded.value, str) else None


def _class_name(op: OpImplementation, ref: FunctionRef, expr: Expr) -> str | None:
    attribute = _attribute(op, ref, expr)
    if attribute is not None and attribute.assign.value is not None:
        return _named(attribute.file, attribute.assign.value.text)
    return _named(ref.file, expr.text) if expr.kind == "name" else None


def _attribute(op: OpImplementation, ref: FunctionRef, expr: Expr) -> ValueRef | None:
    """The class attribute that ``self.name`` reads, if nothing writes it on the instance."""
    owner, _, name = expr.text.rpartition(".")
    params = ref.function.params
    if expr.kind != "name" or not params or owner != params[0].name:
        return None
    if any(name in op.program.instance_writes(base) for base in op.program.lineage(op.ref)):
        return None
    found = op.program.attribute(op.ref, name)
    return found if isinstance(found, ValueRef) and found.assign.sure else None


def _named(file: PythonFile, name: str, hops: int = 8) -> str | None:
    """Return the class's own name for a module's name, without opening the module that it comes from."""
    if not name or "." in name or hops <= 0:
        return None
    imports, assigns = file.imports.get(name, []), file.assigns.get(name, [])
    if len(imports) + len(assigns) + len(file.classes.get(name, [])) != 1:
        return None
    if imports:
        return imports[0].attr or None
    if assigns:
        value = assigns[0].value
        return (
            _named(file, value.text, hops - 1)
            if value is not None and value.kind == "name" and assigns[0].sure
            else None
        )
    return name


def _unknown_key(op: OpImplementation, ref: FunctionRef, name: str) -> Diagnostic:
    text = f"`default_kernel_map` has no kernel `{name}`"
    return _diagnostic(
        op, text, op.entry.key_of("source", "kernel_map", name), ref, ref.function.span, "the code's map"
    )


def _other_key(op: OpImplementation, ref: FunctionRef, name: str, key: str, kernel: _Kernel) -> Diagnostic:
    text = f"`default_kernel_map` has the kernel `{key}` where the manifest declares `{name}`"
    return _diagnostic(op, text, op.entry.key_of("source", "kernel_map", name), ref, kernel.span, f"`{key}` here")


def _other_class(op: OpImplementation, ref: FunctionRef, name: str, value: str, kernel: _Kernel) -> Diagnostic:
    classes = names(sorted(kernel.classes))
    text = f"the manifest's kernel for `{name}` is `{value}`; `default_kernel_map` has {classes}"
    return _diagnostic(op, text, op.entry.get("source", "kernel_map", name), ref, kernel.span, f"{classes} here")


def _undeclared(op: OpImplementation, ref: FunctionRef, name: str, kernel: _Kernel) -> Diagnostic:
    text = f"`default_kernel_map` has the kernel `{name}`, which `source.kernel_map` does not declare"
    return _diagnostic(op, text, op.entry.key_of("source", "kernel_map"), ref, kernel.span, "dispatched here")


def _diagnostic(
    op: OpImplementation, text: str, node: Node | None, ref: FunctionRef, span: Span, note: str
) -> Diagnostic:
    related = (Related(Place(ref.file.path, span), note),)
    return Diagnostic(text, op.entry.at(node or op.entry.key), related, ops=(op.name,), severity=op.entry.severity)

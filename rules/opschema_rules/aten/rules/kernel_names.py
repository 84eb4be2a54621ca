"""Kernels by their names: declarations that C++ refuses, and names of another device's or the functional variant's kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node
from opschema_rules.aten.cpp_types import CppSignature, is_out, kernel_name, kernel_signature
from opschema_rules.aten.findings import found
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.signatures import full_name
from opschema_rules.aten.traits import dispatch_of, is_structured


class _Named(msgspec.Struct, frozen=True, eq=False):
    """An entry that names a kernel, where, and whether it is a structured one."""

    entry: NativeEntry
    node: Node
    structured: bool


@rule("ATN323", "kernel-declared-twice", pure=True, by_release=True)
def kernel_declared_twice(native: NativeFile) -> Iterator[Diagnostic]:
    """Two operators name one kernel, and C++ cannot declare it for both.

    torchgen declares each kernel once for each operator that names it, and checks nothing. Two declarations of one function
    are legal unless they return different types, or both have defaults. A structured kernel is a class, which can be
    declared for one operator only. The C++ compiler reports these mistakes, in generated headers.

    Bad, one class for two structured operators:

    ```yaml
    - func: sum.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sum_out
    - func: sum(Tensor self) -> Tensor
      structured_delegate: sum.out
    - func: prod.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: sum_out
    - func: prod(Tensor self) -> Tensor
      structured_delegate: prod.out
    ```

    Bad, different types are returned:

    ```yaml
    - func: _sign(Tensor self) -> Tensor
      dispatch:
        CPU: sign
    - func: _sign_and_abs(Tensor self) -> (Tensor, Tensor)
      dispatch:
        CPU: sign
    ```

    Bad, a default is declared twice:

    ```yaml
    - func: _smooth(Tensor self, float beta=1.0) -> Tensor
      dispatch:
        CPU: smooth
    - func: _soften(Tensor self, float beta=1.0) -> Tensor
      dispatch:
        CPU: smooth
    ```

    Good, a shared kernel without defaults, and an overload:

    ```yaml
    - func: _smooth(Tensor self, float beta) -> Tensor
      dispatch:
        CPU: smooth
    - func: _soften(Tensor self, float beta) -> Tensor
      dispatch:
        CPU: smooth
    - func: _smooth.Tensor(Tensor self, Tensor beta) -> (Tensor, Tensor)
      dispatch:
        CPU: smooth
    ```
    """
    for kernel, users in _shared(native).items():
        structured = [item for item in users if item.structured]
        for later in structured[1:]:
            message = (
                f"the class `structured_{kernel}` is declared for `{structured[0].entry.name}` already: C++ refuses it"
            )
            yield _clash(later, structured[0], message)
        yield from _redeclared(native, kernel, [item for item in users if not item.structured])


def _shared(native: NativeFile) -> dict[str, list[_Named]]:
    """The kernels that several operators name, with each operator once."""
    users: dict[str, list[_Named]] = {}
    for entry in native.entries:
        seen: set[str] = set()
        schema = entry.schema
        for item in entry.dispatch() if schema is not None else ():
            if item.kernel not in seen:
                seen.add(item.kernel)
                structured = is_structured(entry) and item.key in native.torchgen.vocabulary.structured
                users.setdefault(item.kernel, []).append(_Named(entry, item.node, structured))
        if schema is not None and "dispatch" not in entry.fields and dispatch_of(entry):
            users.setdefault(kernel_name(schema), []).append(_Named(entry, entry.first, structured=False))
    return {kernel: items for kernel, items in users.items() if len(items) > 1}


def _redeclared(native: NativeFile, kernel: str, users: list[_Named]) -> Iterator[Diagnostic]:
    first: dict[tuple[str, ...], tuple[_Named, CppSignature]] = {}
    numbers = Counter(_arity(user) for user in users)
    for user in [user for user in users if numbers[_arity(user)] > 1]:
        signature = _declaration(native, kernel, user.entry)
        if signature is None:
            continue
        earlier, declared = first.setdefault(tuple(item.type for item in signature.parameters), (user, signature))
        if earlier is user or earlier.entry.name == user.entry.name:
            continue
        if declared.returns != signature.returns:
            message = (
                f"`{kernel}` returns `{signature.returns}` for `{user.entry.name}`, and `{declared.returns}` for"
                f" `{earlier.entry.name}`, with the same parameters: C++ refuses the second declaration"
            )
            yield _clash(user, earlier, message)
        elif both := [item for item in _defaults(user.entry) if item in _defaults(earlier.entry)]:
            message = (
                f"`{kernel}` is declared for `{earlier.entry.name}` already, with the same parameters and a default for"
                f" `{signature.parameters[both[0]].name}`: C++ refuses a second default"
            )
            yield _clash(user, earlier, message)


def _arity(user: _Named) -> int:
    return len(user.entry.schema.arguments) if user.entry.schema is not None else 0


def _declaration(native: NativeFile, kernel: str, entry: NativeEntry) -> CppSignature | None:
    function = functions_of(native).get(full_name(entry.schema)) if entry.schema is not None else None
    if function is None or function.entry is not entry:
        return None
    return kernel_signature(function, symint="_symint" in kernel, convention="native")


def _defaults(entry: NativeEntry) -> list[int]:
    """Return the indexes of the parameters for which torchgen declares a default; empty for an out variant."""
    schema = entry.schema
    if schema is None or is_out(schema):
        return []
    return [at for at, item in enumerate(schema.arguments) if item.default is not None]


def _clash(later: _Named, earlier: _Named, message: str) -> Diagnostic:
    related = earlier.entry.related(earlier.node.span, "the other operator")
    return found(later.entry, later.node, message, related)


@rule("ATN139", "kernel-of-other-device", severity="warning", pure=True)
def kernel_of_other_device(native: NativeFile) -> Iterator[Diagnostic]:
    """A kernel's name says another device than its dispatch key.

    `CUDA: tanh_cpu` compiles: the kernel is called with tensors of the other device. The words `cpu`, `cuda`, `mps`, `xpu`
    and `mtia` in a name are compared with the key's last word; names with none or several of them, and other keys, are not
    checked, nor is a `fallback`. A line with several keys is right if the name fits one of them.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh_cpu
        SparseCUDA: tanh_sparse_cpu
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh_cpu
        CUDA, XPU: tanh
        SparseCPU, SparseCUDA, SparseMPS: tanh_sparse_cpu_or_cuda
        SparseMeta: tanh_sparse_cpu
    ```
    """
    for entry in native.having("dispatch"):
        for item in entry.dispatch():
            words = item.kernel.lower().split("_")
            named = {word for word in words if word in _DEVICES} if "fallback" not in words else set[str]()
            line = [_device(key.strip()) for key in item.key_node.value.split(",")] if len(named) == 1 else []
            if line and _device(item.key) and named.isdisjoint(line):
                message = (
                    f"`{item.key}` has the kernel `{item.kernel}`, which is for {''.join(named).upper()} by its name"
                )
                yield found(entry, item.node, message, entry.related(item.key_node, "its dispatch key"))


def _device(key: str) -> str:
    return next((word for word in _DEVICES if key.endswith(word.upper())), "")


_DEVICES = ("cpu", "cuda", "mps", "xpu", "mtia")


@rule("ATN324", "kernel-of-variant", severity="warning", pure=True)
def kernel_of_variant(native: NativeFile) -> Iterator[Diagnostic]:
    """An in-place variant names the kernel of the functional variant.

    The kernels have different parameters and results, so the in-place variant calls an overload of this name that is probably
    not written: PyTorch calls them `tanh` and `tanh_`. The linker reports it, if anything does. Out variants may overload
    the name, as they have a parameter more.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
      dispatch:
        CPU: tanh
      autogen: tanh.out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
      dispatch:
        CPU: tanh_
      autogen: tanh.out
    ```
    """
    for group in groups_of(native).all:
        functional = group.variants.get("functional")
        inplace = group.variants.get("inplace")
        if functional is None or inplace is None:
            continue
        kernels = {item.kernel: item.node for item in functional.dispatch()}
        for item in inplace.dispatch():
            if item.kernel in kernels:
                message = (
                    f"`{item.kernel}` is the kernel of `{functional.name}`, and `{inplace.name}` needs one of its own"
                )
                related = functional.related(kernels[item.kernel], "the functional variant")
                yield found(inplace, item.node, message, related)

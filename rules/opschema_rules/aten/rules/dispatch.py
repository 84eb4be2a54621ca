"""The field ``dispatch``: its keys and its kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.findings import found, respelling
from opschema_rules.aten.model import DispatchItem, NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import is_text, kind_of
from opschema_rules.aten.vocabulary import Vocabulary, slip

IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
NESTED, NON_FUNCTIONAL = "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutogradNonFunctional"
COMPOSITES = frozenset((IMPLICIT, EXPLICIT, NESTED, NON_FUNCTIONAL))

_RENAMED = {"Math": IMPLICIT, "DefaultBackend": EXPLICIT, "MkldnnCpu": "MkldnnCPU"}
"""Keys of older torchgen releases, with their present names."""


def key_spans(key: Node) -> Iterator[tuple[str, Span]]:
    """Each dispatch key that a key of the table holds, and its stretch of the key's text."""
    at = 0
    for part in key.value.split(","):
        name = part.strip()
        start = at + len(part) - len(part.lstrip()) if name else at
        yield name, Span(start, start + len(name or part))
        at += len(part) + 1


def keys_in(entry: NativeEntry, wanted: frozenset[str]) -> Iterator[tuple[str, Node, Span]]:
    """Yield the ``wanted`` keys of the entry's table, with the node and the span of its text that contain them."""
    items = entry.dispatch()
    if wanted.isdisjoint([item.key for item in items]):
        return
    for node in {id(item.key_node): item.key_node for item in items}.values():
        yield from ((name, node, span) for name, span in key_spans(node) if name in wanted)


@rule("ATN131", "unknown-dispatch-key", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def unknown_dispatch_key(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch key that torchgen does not know, or that native_functions.yaml may not contain.

    torchgen reports the key, without a suggestion. Kernels of a backend outside of PyTorch's tree are listed in the
    backend's own YAML. The known keys are read from the tree's own `torchgen/model.py`, if it has one.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU, CDUA: tanh
    - func: sinh(Tensor self) -> Tensor
      dispatch:
        XLA: sinh_xla
    ```

    Bad, a key of long ago:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
        Math: math_tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU, CUDA: tanh
        CompositeImplicitAutograd: math_tanh
    ```
    """
    supported = native.torchgen.vocabulary.supported
    for entry in native.having("dispatch"):
        unknown = {id(item.key_node): item.key_node for item in entry.dispatch() if item.key not in supported}
        for node in unknown.values():
            for name, span in key_spans(node):
                if name not in supported and name != "__line__":
                    yield _unknown_key(entry, node, name, span)


def _unknown_key(entry: NativeEntry, node: Node, name: str, span: Span) -> Diagnostic:
    vocabulary = entry.owner.torchgen.vocabulary
    place = entry.inner(node, span)
    if not name:
        return found(entry, place if place.start < place.end else node, "a dispatch key is missing at the comma")
    if name in vocabulary.dispatch_keys:
        where = "; kernels of an external backend are listed in its own YAML" if _is_external(name, vocabulary) else ""
        return found(entry, place, f"native_functions.yaml takes no dispatch key `{name}`{where}")
    certain = _RENAMED.get(name) or slip(name, vocabulary.supported)
    near = certain or nearest(name, vocabulary.supported)
    fix = None
    if certain is not None and certain not in {item.key for item in entry.dispatch()}:
        fix = respelling(entry, node, span, certain)
    hint = did_you_mean(near)
    return found(entry, place, f"torchgen has no dispatch key `{name}`{hint}", fix=fix)


def _is_external(name: str, vocabulary: Vocabulary) -> bool:
    return name in vocabulary.backends and name not in vocabulary.supported


@rule("ATN132", "dispatch-entry", pure=True)
def dispatch_entry(native: NativeFile) -> Iterator[Diagnostic]:
    """A line of a dispatch table has no kernel.

    A kernel is the name of a C++ function. torchgen accepts an empty one, and writes C++ that does not compile.
    (`dispatch: {}` is an operator without kernels, which others register.)

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU:
        CUDA: 1
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU, CUDA: tanh
    - func: tanhshrink(Tensor self) -> Tensor
      dispatch: {}
    ```
    """
    for entry in native.having("dispatch"):
        table = entry.get("dispatch")
        if table is None or not table.is_mapping:
            continue
        for key, node in table.pairs():
            value = entry.file.document.follow(node)
            if value.kind == "scalar" and value.value and is_text(value):
                continue
            if value.kind != "scalar" or not value.value or kind_of(value) != "text":
                yield _no_kernel(entry, key, value)


def _no_kernel(entry: NativeEntry, key: Node, value: Node) -> Diagnostic:
    kind = kind_of(value)
    if kind == "nothing" or (kind == "text" and not value.value):
        return found(entry, key, f"`{key.value}` has no kernel")
    return found(entry, value, f"a kernel is the name of a C++ function, and this is {kind}")


_KERNEL = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", re.ASCII)


@rule("ATN133", "kernel-name", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def kernel_name(native: NativeFile) -> Iterator[Diagnostic]:
    """A kernel is not the name of a C++ function, or is nested in too many namespaces.

    torchgen copies the name into C++ unchanged. It accepts up to three namespaces, and appends `native` to them; how many
    is read from the torchgen of the tree, or of the release.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh-cpu
        CUDA: at::cuda::detail::impl::tanh
    ```

    Bad, as torchgen declares the kernel twice, each time with the default:

    ```yaml
    - func: tanh(Tensor self, int step=1) -> Tensor
      dispatch:
        CPU: tanh
        CUDA: "tanh "
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh_cpu
        CUDA: at::cuda::tanh
    ```
    """
    known: set[str] = set()
    for entry in native.having("dispatch"):
        for item in entry.dispatch():
            if item.kernel in known:
                continue
            node = entry.file.document.follow(item.node)
            message, fix = _unfit_kernel(entry, node, item.kernel)
            if message:
                yield found(entry, node, message, fix=fix)
            else:
                known.add(item.kernel)


def _unfit_kernel(entry: NativeEntry, node: Node, kernel: str) -> tuple[str, Fix | None]:
    if not kernel or _KERNEL.fullmatch(kernel) is None:
        stripped = kernel.strip()
        sound = kernel != stripped and _KERNEL.fullmatch(stripped) is not None
        fix = respelling(entry, node, Span(0, len(kernel)), stripped) if sound else None
        return (f"`{kernel}` is not a name of a C++ function" if kernel else ""), fix
    depth, most = kernel.count("::"), entry.owner.torchgen.limits.kernel_depth
    if most is None or depth <= most:
        return "", None
    return f"`{kernel}` lies in {depth} namespaces; torchgen takes at most {most}", None


@rule("ATN134", "repeated-dispatch-key", pure=True)
def repeated_dispatch_key(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch key has two kernels in one table.

    torchgen accepts it, and the last one counts: `CPU, CUDA: a` and `CUDA: b` leave `a` for CPU only.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU, CUDA: tanh
        CUDA: tanh_cuda
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
        CUDA: tanh_cuda
    ```
    """
    for entry in native.having("dispatch"):
        items = entry.dispatch()
        if len({item.key for item in items}) < len(items):
            yield from _repeated(entry)


def _repeated(entry: NativeEntry) -> Iterator[Diagnostic]:
    table = entry.get("dispatch")
    first: dict[str, tuple[Node, Span, str]] = {}
    for node, value in table.pairs() if table is not None else ():
        if node.kind != "scalar":
            continue
        for name, span in key_spans(node):
            earlier, where, kernel = first.setdefault(name, (node, span, value.value))
            if (earlier, where) == (node, span) or not name:
                continue
            if earlier is node or earlier.value != node.value:  # else the whole key repeats, which ATN103 tells
                related = entry.related(entry.inner(earlier, where), f"its first kernel is `{kernel}`")
                same = kernel == value.value
                message = (
                    f"`{name}` appears twice in this table"
                    if same
                    else f"`{name}` has two kernels, the last of which counts"
                )
                yield found(entry, entry.inner(node, span), message, related)


@rule("ATN135", "composite-clash", pure=True)
def composite_clash(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch table has two composite keys that exclude each other.

    A composite kernel serves every backend, so a second one is ambiguous. Only `CompositeImplicitAutogradNestedTensor` may
    be combined with `CompositeImplicitAutograd` or `CompositeExplicitAutograd`. Use `CompositeExplicitAutograd` for a
    kernel with its own derivative, else `CompositeImplicitAutograd`.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CompositeExplicitAutograd: tanh
        CompositeImplicitAutograd: math_tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CompositeImplicitAutograd: math_tanh
        CompositeImplicitAutogradNestedTensor: nested_tanh
    ```
    """
    for entry in native.having("dispatch"):
        keys = COMPOSITES.intersection([item.key for item in entry.dispatch()])
        if len(keys) > 1 and not (len(keys) == 2 and NESTED in keys and NON_FUNCTIONAL not in keys):
            yield from _clashing(entry)


def _clashing(entry: NativeEntry) -> Iterator[Diagnostic]:
    earlier: list[DispatchItem] = []
    for item in entry.dispatch():
        if item.key not in COMPOSITES:
            continue
        other = next((other for other in earlier if _clash(item.key, other.key)), None)
        if other is not None:
            related = entry.related(_key_span(entry, other), f"`{other.key}`")
            message = f"`{item.key}` cannot be combined with `{other.key}`; each includes the other"
            yield found(entry, _key_span(entry, item), message, related)
        earlier.append(item)


def _clash(key: str, other: str) -> bool:
    return key != other and {key, other} not in ({NESTED, IMPLICIT}, {NESTED, EXPLICIT})


def _key_span(entry: NativeEntry, item: DispatchItem) -> Span:
    spans = [span for name, span in key_spans(item.key_node) if name == item.key]
    return entry.inner(item.key_node, spans[0])

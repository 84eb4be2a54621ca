"""The field ``dispatch``: its keys, its kernels, and whether an operator may have such a table at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import insert_key, remove_key
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.findings import found, func_text, respelling, yaml_fix
from opschema_rules.aten.model import DispatchItem, NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import is_text, kind_of
from opschema_rules.aten.signatures import is_tensor_like, options_of, out_arguments
from opschema_rules.aten.vocabulary import Vocabulary, slip

IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
NESTED, NON_FUNCTIONAL = "CompositeImplicitAutogradNestedTensor", "CompositeExplicitAutogradNonFunctional"
COMPOSITES = frozenset((IMPLICIT, EXPLICIT, NESTED, NON_FUNCTIONAL))

_RENAMED = {"Math": IMPLICIT, "DefaultBackend": EXPLICIT, "MkldnnCpu": "MkldnnCPU"}
"""Keys that torchgen knew once, and what they are called now."""


def key_spans(key: Node) -> Iterator[tuple[str, Span]]:
    """Each dispatch key that a key of the table holds, and its stretch of the key's text."""
    at = 0
    for part in key.value.split(","):
        name = part.strip()
        start = at + len(part) - len(part.lstrip()) if name else at
        yield name, Span(start, start + len(name or part))
        at += len(part) + 1


def keys_in(entry: NativeEntry, wanted: frozenset[str]) -> Iterator[tuple[str, Node, Span]]:
    """The keys of the entry's table that are ``wanted``, with the node and the stretch of its text that they stand in."""
    items = entry.dispatch()
    if wanted.isdisjoint([item.key for item in items]):
        return
    for node in {id(item.key_node): item.key_node for item in items}.values():
        yield from ((name, node, span) for name, span in key_spans(node) if name in wanted)


@rule("ATN131", "unknown-dispatch-key", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def unknown_dispatch_key(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch key that torchgen does not know, or that native_functions.yaml may not hold.

    torchgen tells the key, and none that may be meant. Kernels of a backend outside of PyTorch's tree are listed in the
    backend's own YAML. Which keys there are is read from the tree's own `torchgen/model.py`, if it has one.

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
    return found(entry, place, f"torchgen knows no dispatch key `{name}`{hint}", fix=fix)


def _is_external(name: str, vocabulary: Vocabulary) -> bool:
    return name in vocabulary.backends and name not in vocabulary.supported


@rule("ATN132", "dispatch-entry", pure=True)
def dispatch_entry(native: NativeFile) -> Iterator[Diagnostic]:
    """A line of a dispatch table has no kernel.

    A kernel is the name of a C++ function. torchgen takes an empty one, and writes C++ that does not compile. (`dispatch: {}`
    is an operator without kernels, which others register.)

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
    """A kernel is no name of a C++ function, or lies too deep in namespaces.

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
        return (f"`{kernel}` is no name of a C++ function" if kernel else ""), fix
    depth, most = kernel.count("::"), entry.owner.torchgen.limits.kernel_depth
    if most is None or depth <= most:
        return "", None
    return f"`{kernel}` lies in {depth} namespaces; torchgen takes at most {most}", None


@rule("ATN134", "repeated-dispatch-key", pure=True)
def repeated_dispatch_key(native: NativeFile) -> Iterator[Diagnostic]:
    """A dispatch key has two kernels in one table.

    torchgen takes it, and the last one counts: `CPU, CUDA: a` and `CUDA: b` leave `a` for CPU only.

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
    """A table has two composite keys, of which each takes in the other.

    Only `CompositeImplicitAutogradNestedTensor` may stand beside `CompositeImplicitAutograd` or
    `CompositeExplicitAutograd`. For a kernel with its own derivative take `CompositeExplicitAutograd`, else
    `CompositeImplicitAutograd`.

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
            message = f"`{item.key}` cannot stand beside `{other.key}`; each takes in the other"
            yield found(entry, _key_span(entry, item), message, related)
        earlier.append(item)


def _clash(key: str, other: str) -> bool:
    return key != other and {key, other} not in ({NESTED, IMPLICIT}, {NESTED, EXPLICIT})


def _key_span(entry: NativeEntry, item: DispatchItem) -> Span:
    spans = [span for name, span in key_spans(item.key_node) if name == item.key]
    return entry.inner(item.key_node, spans[0])


# -- may it have a table at all? ---------------------------------------------------------------------------------------


@rule("ATN136", "redundant-dispatch", fixable="safe", proof=WRITTEN, pure=True)
def redundant_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """A table holds nothing but `CompositeImplicitAutograd`, which is what an operator has without a table.

    The kernel is then called as the operator is, with `_out` behind it for an operator with out arguments. torchgen
    refuses a table that says so, and one that names the kernel otherwise (unless it holds `_symint`).

    Bad:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      variants: function, method
      dispatch:
        CompositeImplicitAutograd: tanhshrink
    ```

    Bad:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      dispatch:
        CompositeImplicitAutograd: math_tanhshrink
    ```

    Good:

    ```yaml
    - func: tanhshrink(Tensor self) -> Tensor
      variants: function, method
    - func: expand_twice(Tensor self, SymInt[] size) -> Tensor
      dispatch:
        CompositeImplicitAutograd: expand_twice_symint
    ```
    """
    for entry in native.having("dispatch"):
        items = entry.dispatch()
        if len(items) != 1 or items[0].key != IMPLICIT:
            continue
        table, schema = entry.get("dispatch"), entry.schema
        if schema is not None and table is not None and len(table.items) == 2:
            yield from _redundant(entry, items[0], default_kernel(schema))


def default_kernel(schema: OperatorSchema) -> str:
    """The kernel of an operator that has no table (``torchgen.api.cpp.name``)."""
    return f"{schema.name}_out" if out_arguments(schema) else schema.name


def _redundant(entry: NativeEntry, item: DispatchItem, default: str) -> Iterator[Diagnostic]:
    node = entry.file.document.follow(item.node)
    delegate = entry.get("structured_delegate")
    delegates = delegate is not None and kind_of(delegate) != "nothing"
    if item.kernel == default:
        message = f"the table says what holds without it: `{IMPLICIT}: {default}`; leave it out"
        edit = partial(remove_key, entry.file, entry.node, "dispatch")
        why = "the operator then has the kernel that it delegates to" if delegates else ""
        yield found(entry, entry.fields["dispatch"][0], message, fix=yaml_fix(entry, "remove `dispatch`", edit, why))
    elif not delegates and "_symint" not in item.kernel.rpartition("::")[2]:
        message = f"the only kernel is composite and must be called `{default}`: rename `{item.kernel}`, and leave the table out"
        yield found(entry, node, message)


@rule("ATN137", "manual-registration", pure=True)
def manual_registration(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator has `manual_kernel_registration` and a dispatch table, which has no effect then.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      manual_kernel_registration: True
      dispatch:
        CPU: tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      manual_kernel_registration: True
    ```
    """
    for entry in native.having("manual_kernel_registration"):
        table = entry.get("dispatch")
        if table is not None and table.is_mapping and entry.flag("manual_kernel_registration"):
            related = entry.related(entry.fields["manual_kernel_registration"][0], "registered by hand here")
            message = "`dispatch` has no effect beside `manual_kernel_registration`; keep one"
            yield found(entry, entry.fields["dispatch"][0], message, related)


@rule("ATN138", "factory-dispatch", fixable="unsafe", proof=WRITTEN, pure=True, by_release=True)
def factory_dispatch(native: NativeFile) -> Iterator[Diagnostic]:
    """A factory has no dispatch table, so that it would be decomposed for `__torch_dispatch__`.

    Operators called `new_*` and `*_like`, and those that take dtype, layout, device and pin_memory but no tensor, need an
    explicit kernel, usually `CompositeExplicitAutograd`.

    Bad:

    ```yaml
    - func: new_eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    ```

    Good:

    ```yaml
    - func: new_eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: new_eye
    ```
    """
    for entry in native.entries:
        table = entry.get("dispatch")
        text = func_text(entry)
        if (table is not None and table.is_mapping) or not ("new_" in text or "_like" in text or "pin_memory" in text):
            continue
        schema = entry.schema
        reason = _factory(schema, native.torchgen.vocabulary) if schema is not None and _is_plain(entry) else ""
        if reason and schema is not None:
            message = f"{reason}; a factory needs a kernel in `dispatch`, usually `{EXPLICIT}`"
            yield Diagnostic(message, entry.place, (), _table(entry, default_kernel(schema)), (entry.name,))


def _is_plain(entry: NativeEntry) -> bool:
    """Whether it surely is neither structured nor delegates."""
    delegate, table = entry.get("structured_delegate"), entry.get("dispatch")
    return (
        entry.flag("structured") is False
        and (delegate is None or kind_of(delegate) == "nothing")
        and (table is None or kind_of(table) == "nothing")
    )


def _factory(schema: OperatorSchema, vocabulary: Vocabulary) -> str:
    """Why torchgen takes an operator for a factory; empty if it does not."""
    if "_like" in vocabulary.checks:
        if schema.name.startswith("new_"):
            return f"`{schema.name}` is a factory by its name"
        if schema.name.endswith("_like"):
            return f"`{schema.name}` is a factory by its name"
    taken = {id(item) for item in out_arguments(schema)}
    tensors = any(is_tensor_like(item.type) for item in schema.arguments if id(item) not in taken)
    return "" if tensors or not options_of(schema) else f"`{schema.name}` takes a dtype and no tensor"


def _table(entry: NativeEntry, kernel: str) -> Fix | None:
    if entry.get("dispatch") is not None:
        return None
    why = f"`{kernel}` may need a derivative then, which derivatives.yaml gives"
    edit = partial(insert_key, entry.file, entry.node, "dispatch", {EXPLICIT: kernel})
    return yaml_fix(entry, f"add `dispatch` with `{EXPLICIT}: {kernel}`", edit, why)

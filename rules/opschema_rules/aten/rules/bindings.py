"""Needs of generated methods, kernels and Python bindings, which torchgen checks only when it writes them."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import Argument, OperatorSchema, SchemaType
from opschema_cli.source.text import Span
from opschema_rules.aten.entry import SchemaText, string
from opschema_rules.aten.findings import found
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.rules.dispatch_tables import default_kernel
from opschema_rules.aten.rules.schema import returns_cpp, takes_cpp
from opschema_rules.aten.signatures import is_tensor_like, options_of, out_arguments, self_argument, type_text


@rule("ATN211", "method-self", pure=True)
def method_self(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator is declared as a method and has no positional argument `Tensor self`.

    torchgen accepts the schema, and fails when it writes the class `Tensor`.

    Bad:

    ```yaml
    - func: tanh(Tensor input) -> Tensor
      variants: function, method
    ```

    Good:

    ```yaml
    - func: where_like_self(Tensor condition, Tensor self) -> Tensor
      variants: method
      dispatch:
        CPU: where
    ```
    """
    for entry in native.having("variants"):
        node, text = entry.get("variants"), entry.schema_text
        at = (string(node) or "").find("method")
        schema = entry.schema if at >= 0 else None
        if node is None or text is None or schema is None:
            continue
        own = self_argument(schema)
        if own is None or type_text(own.type) != "Tensor":
            place = text.span(own.type_span if own is not None else schema.name_span)
            related = entry.related(place, "it is another type" if own is not None else "it has none")
            message = "a method needs the positional argument `Tensor self`"
            yield found(entry, entry.inner(node, Span(at, at + len("method"))), message, related)


@rule("ATN212", "symint-kernel", pure=True)
def symint_kernel(native: NativeFile) -> Iterator[Diagnostic]:
    """A kernel has `_symint` in its name, and the operator has no argument of type `SymInt`.

    By this name torchgen expects a kernel with `c10::SymInt`; without a `SymInt` argument, it fails when it writes the
    declaration.

    Bad:

    ```yaml
    - func: tanh(Tensor self, int[] size) -> Tensor
      dispatch:
        CPU: tanh_symint
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, SymInt[] size) -> Tensor
      dispatch:
        CPU: tanh_symint
    ```
    """
    for entry in native.having("dispatch"):
        for item in entry.dispatch():
            if "_symint" not in item.kernel.rpartition("::")[2]:
                continue
            schema = entry.schema
            if schema is not None and all(argument.type.base != "SymInt" for argument in schema.arguments):
                node = entry.file.document.follow(item.node)
                yield found(entry, node, f"`{item.kernel}` takes a `SymInt` by its name, and no argument is one")


@rule("ATN213", "written-optional", pure=True)
def written_optional(native: NativeFile) -> Iterator[Diagnostic]:
    """An optional tensor is written, which torchgen has no C++ for.

    torchgen accepts the schema, and fails when it writes the operator's call.

    Bad:

    ```yaml
    - func: tanh_(Tensor(a!) self, Tensor(b!)? count) -> Tensor(a!)
    ```

    Good:

    ```yaml
    - func: tanh_(Tensor(a!) self, Tensor(b!) count, Tensor? weight) -> Tensor(a!)
    ```
    """
    for entry in native.entries:
        text = entry.schema_text
        schema = entry.schema if text is not None and "!)?" in text.text else None
        for item in schema.arguments if schema is not None else ():
            if item.is_write and item.type.optional and text is not None:
                yield found(entry, text.span(item.type_span), f"`{item.name}` is optional and cannot be written")


@rule("ATN214", "python-binding", pure=True, by_release=True)
def python_binding(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator for which torchgen cannot write a Python binding.

    A binding takes and returns a fixed set of types, names all fields of a tuple or none, has its own `requires_grad`, and
    treats a factory's dtype, layout, device and pin_memory as one group, so the schema must list them together (or
    `category_override: dummy`). `tools/autograd/gen_python_functions.py` defines which operators get a binding.

    Bad:

    ```yaml
    - func: tanh(Tensor self, str[] names) -> (Tensor value, Generator)
    ```

    Bad:

    ```yaml
    - func: square_eye(int n, *, ScalarType? dtype=None, Device? device=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: square_eye
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, str name, int[2] size, Tensor?[] indices) -> (Tensor value, Tensor index)
    - func: tanh_backward(Tensor self, str[] names) -> Generator
    - func: square_eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
      dispatch:
        CompositeExplicitAutograd: square_eye
    ```
    """
    if not native.torchgen.bindings.known:
        return
    sound: set[str] = set()
    for entry in native.entries:
        schema, text = entry.schema, entry.schema_text
        if schema is None or text is None:
            continue
        findings = list(_unbound(entry, schema, text, sound))
        if findings and not _is_skipped(entry, schema):
            yield from findings


def _is_skipped(entry: NativeEntry, schema: OperatorSchema) -> bool:
    tags = entry.get("tags")
    names = [item.value for item in tags.items] if tags is not None and tags.is_sequence else [entry.text("tags")]
    return ("generated" in names and "view_copy" not in names) or entry.owner.torchgen.bindings.skips(
        default_kernel(schema)
    )


def _unbound(entry: NativeEntry, schema: OperatorSchema, text: SchemaText, sound: set[str]) -> Iterator[Diagnostic]:
    """Obstacles to a binding; ``sound`` are types known to be returnable so far."""
    returned = ", ".join([type_text(item.type) for item in schema.returns])
    if returned not in sound:
        if _cpp(schema) in entry.owner.torchgen.bindings.returned:
            sound.add(returned)
        elif schema.returns and all(returns_cpp(item.type) for item in schema.returns):  # else ATN209 tells
            span = Span(schema.returns[0].span.start, schema.returns[-1].span.end)
            yield found(entry, text.span(span), f"a Python binding cannot return `{returned}`")
    names = [item.name for item in schema.returns]
    if len(names) > 1 and None in names and any(names):
        value = schema.returns[names.index(None)]
        yield found(entry, text.span(value.span), "either all returned values are named or none is")
    for item in schema.arguments:
        known = item.type.name in _TAKEN or item.type.base in entry.own_types or _is_taken(item.type)
        if not known and takes_cpp(item.type):
            yield found(entry, text.span(item.type_span), f"a Python binding cannot take `{item.type}`")
        if item.name == "requires_grad":
            yield found(entry, text.span(item.name_span), "`requires_grad` is the binding's own argument")
    options = options_of(schema) if "pin_memory" in text.text else ()
    if not options and _is_factory(entry, schema) and not out_arguments(schema):
        yield found(entry, text.span(_options_span(schema)), _FACTORY)
    elif options and not _is_factory(entry, schema):
        yield found(entry, text.span(_options_span(schema)), _NO_FACTORY)


_FACTORY = "the Python binding of a factory needs dtype, layout, device and pin_memory, keyword-only and in this order"
_NO_FACTORY = (
    "a Python binding takes dtype, layout, device and pin_memory of a factory only: say `category_override: factory`"
)


def _options_span(schema: OperatorSchema) -> Span:
    spans = [item.span for item in schema.arguments if item.name in ("dtype", "layout", "device", "pin_memory")]
    return Span(min(spans).start, max(spans).end) if spans else schema.name_span


_TAKEN = frozenset(
    (
        *("Tensor", "Stream", "Storage", "Scalar", "ScalarType", "Device", "DeviceIndex", "int", "SymInt", "bool"),
        *("float", "str", "Layout", "MemoryFormat"),
    )
)
"""Types that ``torchgen.api.python.arg_parser_unpack_method`` reads."""

_ELEMENTS = frozenset(("Tensor", "int", "float", "SymInt", "Scalar"))


def _is_taken(of: SchemaType) -> bool:
    inner = of.inner
    if inner is None:
        return of.name in _TAKEN
    if of.optional:
        return inner.name == "Generator" or _is_taken(inner)
    return inner.name in _ELEMENTS or (inner.optional and inner.inner is not None and inner.inner.name == "Tensor")


_CPP = {"int": "int64_t", "float": "double", "SymInt": "c10::SymInt", "SymBool": "c10::SymBool", "bool": "bool"}


def _cpp(schema: OperatorSchema) -> str:
    """Return the C++ type of an operator's result, as ``torchgen.api.cpp.returns_type`` writes it for plain tensors."""
    types = [_cpp_type(item.type) for item in schema.returns]
    return "void" if not types else types[0] if len(types) == 1 else f"::std::tuple<{','.join(types)}>"


def _cpp_type(of: SchemaType) -> str:
    if of.inner is None:
        return _CPP.get(of.name, f"at::{of.name}")
    return f"::std::{'optional' if of.optional else 'vector'}<{_cpp_type(of.inner)}>"


def _is_factory(entry: NativeEntry, schema: OperatorSchema) -> bool:
    """Whether the binding has arguments for dtype, layout, device and pin_memory."""
    category = entry.text("category_override") if entry.get("category_override") is not None else None
    if category == "dummy":
        return False
    name = schema.name
    if category in ("factory", "new", "like") or name.startswith("new_") or name.endswith("_like"):
        return True
    if any(map(_is_input, schema.arguments)):
        return False
    return any(is_tensor_like(item.type) for item in schema.returns)


def _is_input(item: Argument) -> bool:
    return is_tensor_like(item.type) and not (item.kwarg_only and item.is_write)

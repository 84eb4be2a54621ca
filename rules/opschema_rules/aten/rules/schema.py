"""The field ``func``: parts of a schema that torchgen or the dispatcher cannot parse, each fault at its characters."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema, SchemaType
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_rules.aten.entry import SchemaText
from opschema_rules.aten.findings import found, respelling
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.signatures import options_of


def faults(native: NativeFile, kinds: frozenset[str]) -> Iterator[Diagnostic]:
    """The faults of these kinds in the schemas of a file."""
    for entry in native.entries:
        text = entry.schema_text
        if text is None or not text.parsed.errors:
            continue
        for error in text.parsed.errors:
            if error.kind in kinds and not text.is_own_type(error):
                yield _diagnostic(entry, text, error)


def _diagnostic(entry: NativeEntry, text: SchemaText, error: SchemaError) -> Diagnostic:
    severity = Severity.WARNING if error.kind == "removed-type" and _is_older(entry, text, error) else Severity.ERROR
    return found(entry, text.span(error.span), error.message, fix=_fix(entry, text, error), severity=severity)


def _is_older(entry: NativeEntry, text: SchemaText, error: SchemaError) -> bool:
    """Whether the entire file is written for a PyTorch that has the type: several entries use it."""
    return entry.file.source.text.count(text.text[error.span.start : error.span.end]) > _SEVERAL


_SEVERAL = 2


def _fix(entry: NativeEntry, text: SchemaText, error: SchemaError) -> Fix | None:
    edit = error.edit
    return respelling(entry, text.node, edit.span, edit.replacement) if edit is not None else None


@rule("ATN201", "schema-syntax", fixable="safe", proof=WRITTEN, pure=True)
def schema_syntax(native: NativeFile) -> Iterator[Diagnostic]:
    """A schema that cannot be parsed: a bracket, a comma, the arrow or the returns are missing or superfluous.

    A schema has the form `name.overload(type name, *, type name=default) -> type`. torchgen stops at the first error and
    reports the entry's line; here every error is shown with its column.

    Bad:

    ```yaml
    - func: tanh(Tensor self int n) -> Tensor
    - func: sinh(Tensor self, int n Tensor
    ```

    Bad:

    ```yaml
    - func: tanh(Tensor self,, int n) => Tensor
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int n) -> Tensor
    - func: tanh_check(Tensor self) -> ()
    ```
    """
    yield from faults(native, _SYNTAX)


_SYNTAX = frozenset(("arrow", "character", "comma", "syntax", "too-long", "unclosed", "vararg"))


@rule("ATN202", "schema-spelling", fixable="safe", proof=WRITTEN, pure=True)
def schema_spelling(native: NativeFile) -> Iterator[Diagnostic]:
    """A schema is not written as torchgen writes it: spaces, the size of a list, parentheses around a single return.

    torchgen prints the parsed schema, compares it with the text, and rejects any difference. A comma is followed by one
    space, except in the default of a list.

    Bad:

    ```yaml
    - func: tanh(Tensor self,int  n, int[02] size=[1, 2]) ->(Tensor)
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int n, int[2] size=[1,2]) -> Tensor
    ```
    """
    yield from faults(native, frozenset(("spacing", "list-size")))


@rule("ATN203", "schema-name", pure=True)
def schema_name(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator's name that torchgen rejects, or that is not a name in Python and C++.

    A name cannot end with `_out`, since `out` is an overload, nor be that of a Python in-place method that does not exist;
    an overload cannot be called `default`. At most one namespace is allowed. torchgen accepts names such as `add-x` and
    `add x`.

    Bad:

    ```yaml
    - func: tanh_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    - func: aten::native::tanh(Tensor self) -> Tensor
    - func: tanh-x(Tensor self) -> Tensor
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    - func: mine::tanh(Tensor self) -> Tensor
    ```
    """
    yield from faults(native, frozenset(("name", "overload-name")))


@rule("ATN204", "schema-type", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def schema_type(native: NativeFile) -> Iterator[Diagnostic]:
    """A type that torchgen or the dispatcher does not know, or a combination of types that does not exist.

    torchgen reports "unrecognized type" without a suggestion. A type that PyTorch used to have (`Dimname`) is a warning in
    a file that uses it several times: the file is written for an older PyTorch, which is not part of the tree.

    Bad:

    ```yaml
    - func: tanh(tensor self, Optional[int] n) -> Tensor
    - func: sinh(Tensor self, Dimname dim) -> Tensr
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int? n, SymInt[] size) -> (Tensor, Tensor)
    ```
    """
    yield from faults(native, frozenset(("unknown-type", "removed-type", "type")))


@rule("ATN205", "schema-alias", fixable="safe", proof=WRITTEN, pure=True)
def schema_alias(native: NativeFile) -> Iterator[Diagnostic]:
    """An alias annotation that cannot be parsed, or on a type that cannot have one.

    `(a)` means aliased, `(a!)` written, and `(a -> *)` joins any set; the annotation follows `Tensor` and uses one
    lower-case letter.

    Bad:

    ```yaml
    - func: tanh_(Tensor(A!) self, int(b!) n) -> Tensor(A!)
    - func: sinh_all(Tensor? self, Tensor?(a!) mask) -> ()
    ```

    Good:

    ```yaml
    - func: tanh_(Tensor(a!) self, int n) -> Tensor(a!)
    ```
    """
    yield from faults(native, frozenset(("alias", "alias-type")))


@rule("ATN206", "schema-default", fixable="safe", proof=WRITTEN, pure=True)
def schema_default(native: NativeFile) -> Iterator[Diagnostic]:
    """A default that is not a value of its type, or a positional argument without a default after one with a default.

    torchgen copies defaults unchanged into C++ and Python, where they fail; the dispatcher parses most of them.

    Bad:

    ```yaml
    - func: tanh(Tensor self, bool flag=true) -> Tensor
    - func: sinh(Tensor self, int n=half, int m) -> Tensor
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int m, bool flag=True, int[2] size=0, *, ScalarType? dtype=None) -> Tensor
    ```
    """
    yield from faults(native, frozenset(("default", "default-order", "default-type")))


@rule("ATN207", "schema-arguments", pure=True)
def schema_arguments(native: NativeFile) -> Iterator[Diagnostic]:
    """Two arguments with one name, a misplaced `*`, or misplaced dtype, layout, device and pin_memory.

    torchgen accepts two arguments with one name, and writes C++ that does not compile.

    Bad:

    ```yaml
    - func: tanh(Tensor self, int n, *, int n) -> Tensor
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int n, *, int m) -> Tensor
    ```
    """
    yield from faults(native, frozenset(("duplicate-argument", "star", "tensor-options")))


@rule("ATN208", "schema-mutation", fixable="safe", proof=WRITTEN, pure=True)
def schema_mutation(native: NativeFile) -> Iterator[Diagnostic]:
    """Out arguments, the written `self` and the returns do not fit together.

    Each out argument is returned, in order, with its annotation; a positional argument that is written is returned only if
    it is `self`; an operator whose name ends with `_` writes `self` and returns it.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor
    - func: tanh_(Tensor self) -> Tensor
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
    ```
    """
    yield from faults(native, frozenset(("inplace", "out")))


@rule("ATN209", "schema-cpp-type", pure=True)
def schema_cpp_type(native: NativeFile) -> Iterator[Diagnostic]:
    """A type that torchgen parses but has no C++ for, so it fails when it writes the code.

    A list of `bool` needs a size, since it becomes a `std::array`; classes are not supported; a factory's dtype, layout,
    device and pin_memory are optional. An operator returns a tensor, a value, an optional tensor or an unsized list of
    these; it cannot return a list of written tensors.

    Bad:

    ```yaml
    - func: tanh(Tensor self, bool[] mask) -> int[2]
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, bool[2] mask) -> (Tensor[], int?)
    ```
    """
    for entry in native.entries:
        schema, text = entry.schema, entry.schema_text
        if schema is None or text is None:
            continue
        if "bool[]" in text.text or _CLASS in text.text or "pin_memory" in text.text:
            yield from _arguments(entry, schema, text)
        for value in schema.returns:
            if not returns_cpp(value.type):
                message = f"torchgen has no C++ for the returned type `{value.type.text()}`"
                yield found(entry, text.span(value.type_span), message)


_CLASS = "__torch__."


def _arguments(entry: NativeEntry, schema: OperatorSchema, text: SchemaText) -> Iterator[Diagnostic]:
    for item in schema.arguments:
        if not takes_cpp(item.type):
            yield found(entry, text.span(item.type_span), f"torchgen has no C++ for `{item.type}`{_sized(item.type)}")
    for item in options_of(schema):
        if not item.type.optional:
            message = f"`{item.name}` of a factory is optional: `{item.type}?`"
            yield found(entry, text.span(item.type_span), message)


def _sized(of: SchemaType) -> str:
    return "" if of.base.startswith(_CLASS) else "; a list of `bool` needs a size: `bool[2]`"


def _is_bool(of: SchemaType | None) -> bool:
    return of is not None and of.name == "bool"


def takes_cpp(of: SchemaType) -> bool:
    """Whether ``torchgen.api.cpp.argumenttype_type`` takes a type of an argument."""
    unsized = any(part.is_list and part.size is None and _is_bool(part.inner) for part in of.parts())
    return not unsized and not of.base.startswith(_CLASS)


def returns_cpp(of: SchemaType) -> bool:
    """Whether ``torchgen.api.cpp.returntype_type`` takes a type that is returned."""
    inner = of.inner
    if inner is None:
        return not of.name.startswith(_CLASS)
    if of.optional:
        plain = inner.name not in ("", "Scalar") and returns_cpp(inner)
        return plain or (inner.is_list and _is_bool(inner.inner) and inner.size is not None)
    if _is_bool(inner):
        return of.size is not None
    written = of.annotation is not None and of.annotation.write
    return of.size is None and not written and returns_cpp(inner)

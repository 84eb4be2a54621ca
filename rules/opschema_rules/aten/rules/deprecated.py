"""deprecated.yaml: old Python signatures, and the calls that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.text import Edit
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.deprecated import (
    CONSTANTS,
    Call,
    DeprecatedEntry,
    DeprecatedFile,
    Misfit,
    by_base,
    misfit,
    read_call,
)
from opschema_rules.aten.entry import SchemaText, string
from opschema_rules.aten.findings import found, unknown
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.python_functions import is_bound
from opschema_rules.aten.refused_yaml import refused
from opschema_rules.aten.rules.derivatives_entries import repeated_keys, written

_FIELDS = {"name": "the deprecated signature, a schema", "aten": "the call that it stands for"}


@rule("ATN451", "deprecated-field", pure=True)
def deprecated_field(deprecated: DeprecatedFile) -> Iterator[Diagnostic]:
    """An entry in deprecated.yaml lacks `name` or `aten`, has other fields, or a field is not text.

    `name` is a schema without an overload, `aten` the operator call that it stands for. torchgen fails with a bare
    `KeyError` if one is missing, and drops fields that it does not know.

    Bad:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
      since: 1.5
    - name: relu(Tensor self) -> Tensor
      atn: relu(self)
    ```

    Good:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
    ```
    """
    for node, message in refused(deprecated.file):
        yield Diagnostic(message, Place(deprecated.path, node.span))
    for node in items_of(deprecated.file):
        if not node.is_mapping:
            message = f"an entry is a mapping with `name` and `aten`, and this is {written(node)}"
            yield Diagnostic(message, Place(deprecated.path, node.span))
    for entry in deprecated.entries:
        yield from repeated_keys(entry, entry.node)
        yield from _fields(entry)


def _fields(entry: DeprecatedEntry) -> Iterator[Diagnostic]:
    for name, (key, _) in entry.fields.items():
        if name not in _FIELDS and name != "<<":
            missing = [field for field in _FIELDS if field not in entry.fields]
            yield found(
                entry,
                key,
                f"`{name}` is not a field here; these are `name` and `aten`{did_you_mean(nearest(name, missing))}",
            )
    for name, what in _FIELDS.items():
        node = entry.get(name)
        if node is None:
            yield found(
                entry, entry.node.items[0] if entry.node.items else entry.node, f"the entry has no `{name}`, {what}"
            )
        elif not (string(node) or "").strip():
            place = node if node.end > node.start else entry.key(name) or node
            yield found(entry, place, f"`{name}` is {what}, and this is {written(node)}")


@rule("ATN452", "deprecated-schema", fixable="safe", proof=WRITTEN, pure=True)
def deprecated_schema(deprecated: DeprecatedFile) -> Iterator[Diagnostic]:
    """The `name` of an entry in deprecated.yaml is not a schema that torchgen can parse.

    Bad:

    ```yaml deprecated.yaml
    - name: add(Tensor self,Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
    ```

    Bad, with a type that there is not:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensr other) -> Tensor
      aten: add(self, other, alpha)
    ```

    Good:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
    ```
    """
    for entry in deprecated.entries:
        text = entry.schema_text
        for error in text.parsed.errors if text is not None and text.text.strip() else ():
            if error.refused and text is not None:
                yield found(entry, text.span(error.span), error.message, fix=_fix(text, error.edit))


def _fix(text: SchemaText, edit: Edit | None) -> Fix | None:
    if edit is None:
        return None
    span, path = text.span(edit.span), text.entry.file.path
    if text.entry.file.source.text[span.start : span.end] != text.text[edit.span.start : edit.span.end]:
        return None
    return Fix(f"write `{edit.replacement}`", (FileEdit(path, Edit(span, edit.replacement)),))


@rule("ATN453", "deprecated-call", pure=True)
def deprecated_call(deprecated: DeprecatedFile) -> Iterator[Diagnostic]:
    """The call in `aten` cannot be parsed by torchgen, or passes something that the deprecated signature does not have.

    It is written `name(a, b)`, with the arguments of the signature, or the constant `1`, separated by a comma and a space.

    Bad:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, othr, alpha)
    ```

    Good:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
    ```
    """
    for entry in deprecated.entries:
        node, text = entry.get("aten"), entry.text("aten")
        if node is None or text is None or not text.strip():
            continue
        call = read_call(text)
        if call is None:
            yield found(entry, node, "this is not a call of an operator, such as `add(self, other, alpha)`")
        elif entry.schema is not None:
            names = [item.name for item in entry.schema.arguments]
            for name, span in call.arguments:
                if name not in names and name not in CONSTANTS:
                    yield found(entry, entry.inner(node, span), _unknown(name, names))


def _unknown(name: str, names: list[str]) -> str:
    spaced = name.replace(",", ", ").split() if "," in name else [name.strip()]
    if len(spaced) > 1 or name.strip() != name:
        return "arguments are separated by a comma and one space"
    return (
        f"the signature has no `{name}`{did_you_mean(nearest(name, names)) or f'; its arguments are {listed(names)}'}"
    )


@rule("ATN454", "deprecated-operator", pure=True, by_release=True)
def deprecated_operator(deprecated: DeprecatedFile) -> Iterator[Diagnostic]:
    """No operator in native_functions.yaml takes the call in `aten`.

    The passed arguments must have the types and annotations of an overload's arguments, in order; the overload's other
    arguments must have defaults, and both must return the same. `add_out(out, ...)` is the out variant, with its out
    arguments first. The operator needs a Python binding; `add.Scalar` and its like have none.

    Bad:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, alpha, other)
    ```

    Good:

    ```yaml deprecated.yaml
    - name: add(Tensor self, Scalar alpha, Tensor other) -> Tensor
      aten: add(self, other, alpha)
    - name: add(Tensor self, Scalar alpha, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
      aten: add_out(out, self, other, alpha)
    ```
    """
    if deprecated.native is None or not deprecated.native.complete:
        return
    known = by_base(deprecated.native)
    for entry in deprecated.entries:
        call, schema = read_call(entry.text_of("aten")), entry.schema
        if call is None or schema is None:
            continue
        names = {item.name for item in schema.arguments}
        if all(name in names or name in CONSTANTS for name, _ in call.arguments):
            yield from _unmatched(entry, schema, call, known)


def _unmatched(
    entry: DeprecatedEntry, schema: OperatorSchema, call: Call, known: Mapping[str, list[NativeEntry]]
) -> Iterator[Diagnostic]:
    overloads, node = known.get(call.operator, ()), entry.get("aten")
    if not overloads and node is not None:
        message = f"no operator is called `{call.operator}`"
        yield unknown(entry, entry.part(call.name_span, "aten"), call.operator, known, message)
        return
    faults = [(item, misfit(schema, call, item.schema)) for item in overloads if item.schema is not None]
    if faults and all(fault is not None or not is_bound(item) for item, fault in faults):
        closest, fault = max(faults, key=lambda pair: _reach(pair[1]))
        yield _misfit(entry, call, closest, fault)


def _reach(fault: Misfit | None) -> int:
    """A score of how far a call fits: up to the first unfit argument, up to the returns, or entirely."""
    return 2_000_000 if fault is None else 1_000_000 if fault.at is None else fault.at


def _misfit(entry: DeprecatedEntry, call: Call, closest: NativeEntry, fault: Misfit | None) -> Diagnostic:
    node = entry.get("aten") or entry.node
    at = fault.at if fault is not None else None
    span = entry.inner(node, call.arguments[at][1]) if at is not None and call.arguments else node.span
    why = fault.why if fault is not None else "it has no Python binding"
    message = f"no overload of `{call.operator}` takes this call; the closest is `{closest.name}`: {why}"
    related = Related(closest.place, f"`{closest.name}`")
    return found(entry, span, message, related)

"""Reads deprecated.yaml: Python signatures that are no more documented, and the operator that each calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from opschema_cli.phrases import count
from opschema_cli.schema.operator_schema import AliasInfo, Argument, OperatorSchema
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import YamlFile
from opschema_rules.aten.entry import Entry, SchemaText, string
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.signatures import out_arguments, type_text

CONSTANTS = {"1": "Scalar"}
"""Names that a call may use beside the signature's arguments, with their types (``load_deprecated_signatures``)."""

_CALL = re.compile(r"(\w+)(\.\w+)?\((.*)\)")


class DeprecatedEntry(Entry, eq=False, dict=True):
    """An entry of a deprecated.yaml: ``name`` is a Python signature, ``aten`` the call that it stands for."""

    owner: DeprecatedFile

    @property
    def name(self) -> str:
        """The name of the deprecated function; empty when it is not known."""
        return self.text_of("name").partition("(")[0].strip()

    @cached_property
    def schema_text(self) -> SchemaText | None:
        """The field ``name``; None when it is not a string."""
        node = self.get("name")
        text = string(node)
        return SchemaText(self, node, text) if node is not None and text is not None else None

    @property
    def schema(self) -> OperatorSchema | None:
        """The schema, if torchgen takes it."""
        return self.schema_text.schema if self.schema_text is not None else None


class DeprecatedFile(msgspec.Struct, eq=False):
    """A deprecated.yaml; ``native`` is the native_functions.yaml that it belongs to, None if that is not known."""

    file: YamlFile
    native: NativeFile | None = None
    entries: list[DeprecatedEntry] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on: this file and the operators."""
        return f"{self.path} {self.file.source.digest} {self.native.content_key if self.native is not None else ''}"


def read_deprecated(file: YamlFile, native: NativeFile | None) -> DeprecatedFile:
    """A deprecated.yaml; items that are not mappings are left out."""
    deprecated = DeprecatedFile(file, native)
    deprecated.entries += [DeprecatedEntry(file, index, node, deprecated) for index, node in mappings_of(file)]
    return deprecated


class Call(msgspec.Struct, frozen=True):
    """``aten``: the called operator and its arguments; spans count the characters of the text."""

    name: str
    arguments: tuple[tuple[str, Span], ...]
    name_span: Span

    @property
    def operator(self) -> str:
        """The operator's name without overload: ``add`` for ``add_out`` as well."""
        return self.name.replace("_out", "") if self.is_out else self.name

    @property
    def is_out(self) -> bool:
        """Whether the out variant is called, whose out arguments come first."""
        return self.name.endswith("_out")


def read_call(text: str) -> Call | None:
    """Parse a call as torchgen's ``split_name_params`` does; None if it would fail."""
    match = _CALL.match(text)
    if match is None:
        return None
    start = match.start(3)
    found: list[tuple[str, Span]] = []
    for part in match.group(3).split(", "):
        found.append((part, Span(start, start + len(part))))
        start += len(part) + 2
    return Call(match.group(1), tuple(found), Span(*match.span(1)))


class Misfit(msgspec.Struct, frozen=True):
    """The reason why an operator cannot take a call: the number of the argument that does not fit, or None for the returns."""

    at: int | None
    why: str


def misfit(signature: OperatorSchema, call: Call, operator: OperatorSchema) -> Misfit | None:
    """Return the first reason why an operator cannot be the one that a call means."""
    arguments = list(_in_call_order(operator, call))
    for at, item in enumerate(arguments):
        if at >= len(call.arguments):
            if item.default is None:
                return Misfit(len(call.arguments) - 1, f"it also takes `{item}`")
            continue
        name = call.arguments[at][0]
        of, alias = _given(signature, name)
        if of != type_text(item.type) or alias != item.alias:
            return Misfit(at, f"it takes `{item}` there")
    if len(call.arguments) > len(arguments):  # which torchgen does not see
        return Misfit(len(arguments), f"it takes {count(len(arguments), 'argument')} only")
    returns = [str(item) for item in operator.returns]
    if [str(item) for item in signature.returns] != returns:
        return Misfit(None, f"it returns `{', '.join(returns)}`")
    return None


def _in_call_order(operator: OperatorSchema, call: Call) -> Sequence[Argument]:
    outs = out_arguments(operator)
    others = [item for item in operator.arguments if item not in outs]
    return [*outs, *others] if call.is_out else [*others, *outs]


def _given(signature: OperatorSchema, name: str) -> tuple[str, AliasInfo | None]:
    """Return the type and annotation of an argument of a call."""
    argument = signature.argument(name)
    return (type_text(argument.type), argument.alias) if argument is not None else (CONSTANTS.get(name, ""), None)


def by_base(native: NativeFile) -> Mapping[str, list[NativeEntry]]:
    """The entries of all overloads of each name."""
    found: dict[str, list[NativeEntry]] = {}
    for name, entries in native.by_name.items():
        found.setdefault(name.partition(".")[0], []).extend(entries)
    return found

"""Copies of ATen's schemas in other projects' YAML, and how they differ from ATen's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.phrases import quoted
from opschema_cli.schema.operator_schema import Argument, OperatorSchema
from opschema_cli.schema.schema_changes import ChangeKind, SchemaChange, returned, schema_changes
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.entry import SchemaText, string
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import BackendFile, BackendItem, NativeFile, Reference
from opschema_rules.aten.pins import minor_version

Side: TypeAlias = Literal["removed", "arguments", "type", "symint", "alias", "default", "returns"]

OWN_KEYS = ("acl_op", "op_api", "sparse")
"""The keys of op-plugin's entries that say for which versions of PyTorch they hold."""

_COPIES = ("official", "quant", "autograd", "symint")
"""The sections of op-plugin's YAML that copy schemas of ATen; ``symint`` holds some of its own operators as well."""


class Copy(msgspec.Struct, frozen=True):
    """A schema that is written down a second time. ``sure`` says that the operator is meant to be ATen's."""

    name: str
    text: SchemaText
    sure: bool = True


class Difference(msgspec.Struct, frozen=True):
    """One thing in which a copy differs: where, in both, and a message that says how."""

    side: Side
    message: str
    place: Place
    related: tuple[Related, ...] = ()


class CopiedSchemas(msgspec.Struct, eq=False, dict=True):
    """The copies of schemas in one file, and their originals."""

    file: YamlFile
    reference: Reference
    copies: Sequence[Copy] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        return f"{self.path} {self.file.source.digest} {self.reference.content_key}"

    @cached_property
    def differences(self) -> Sequence[tuple[Copy, Difference]]:
        """Return all differences, in file order."""
        return [(copy, item) for copy in self.copies for item in _differences(copy, self.reference)]


def copies_of_backend(backend: BackendFile) -> CopiedSchemas | None:
    """Return the copies in op-plugin's YAML for the reference's version, or for the newest if the tree itself contains the
    reference; None if there is no such version.
    """
    reference = backend.reference
    if backend.dialect != "op-plugin" or reference is None:
        return None
    all_versions = _strings(backend.file, backend.get("all_version"))
    version = f"v{minor_version(reference.version)}"
    if not reference.version and reference.certain and all_versions:
        version = all_versions[-1]
    if version not in all_versions:
        return None
    copies = [
        Copy(item.name, SchemaText(backend, item.name_node, item.name_node.value), sure=item.section != "symint")
        for item in backend.items
        if item.section in _COPIES and version in _versions(backend.file, item, all_versions)
    ]
    return CopiedSchemas(backend.file, reference, copies)


def copies_of_native(native: NativeFile, reference: Reference | None) -> CopiedSchemas | None:
    """Return the entries of a native_functions.yaml that is a copy of another one: nine tenths of its operators are also there.
    None if it is not a copy, or if both may be of different versions.
    """
    if reference is None or not reference.certain:
        return None
    known = reference.catalogue.by_name
    if 10 * sum(entry.name in known for entry in native.entries) < 9 * len(native.entries):
        return None
    texts = [(entry.name, entry.schema_text) for entry in native.entries]
    return CopiedSchemas(native.file, reference, [Copy(name, text) for name, text in texts if text is not None])


def _strings(file: YamlFile, node: Node | None) -> list[str]:
    items = map(file.document.follow, node.items if node is not None and node.is_sequence else ())
    return [text for text in map(string, items) if text]


def _versions(file: YamlFile, item: BackendItem, known: Sequence[str]) -> set[str]:
    """The versions of PyTorch for which op-plugin generates an entry (``get_version`` of its generator)."""
    found: set[str] = set()
    for key in OWN_KEYS:
        node = item.options.get(key) if item.options is not None else None
        node = file.document.follow(node) if node is not None else None
        text = string(node)
        if text == "all_version":
            found.update(known)
        elif text is not None:
            found.update(part.strip() for part in text.split(","))
        else:
            found.update(_range(_strings(file, node), known))
    return found


def _range(bounds: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """``[v2.1, newest]``: from one to the other, both included."""
    if len(bounds) != 2 or bounds[0] not in known:
        return ()
    start = known.index(bounds[0])
    if bounds[1] == "newest":
        return known[start:]
    return known[start : known.index(bounds[1]) + 1] if bounds[1] in known else ()


# -- comparing ---------------------------------------------------------------------------------------------------------


def _differences(copy: Copy, reference: Reference) -> Iterator[Difference]:
    """Yield the differences between a copy and its original; none if one of them cannot be parsed."""
    entries = reference.native.by_name.get(copy.name, ())
    if entries and entries[0].schema_text is not None and entries[0].schema_text.text == copy.text.text:
        return
    if copy.name not in reference.catalogue.by_name:
        if copy.sure and reference.catalogue.complete:
            yield _removed(copy, reference)
        return
    schema = copy.text.parsed.schema  # whatever torchgen would say of it: that is what the comparison shows
    if schema is None:
        return
    if entries:
        text = entries[0].schema_text
        other = text.schema if text is not None else None
    else:
        text, other = None, functions_of(reference.native)[copy.name].schema
    if other is not None:
        yield from _Comparison(copy, schema, other, text).differences()


def _removed(copy: Copy, reference: Reference) -> Difference:
    candidates = reference.catalogue.candidates(copy.name)
    hint = f"; it has {quoted(candidates[:3])}" if candidates else ""
    message = f"`{copy.name}` is not an operator of {reference.origin}{hint}"
    return Difference("removed", message, copy.text.place(Span(0, len(copy.text.text.partition("(")[0]))))


class _Comparison(msgspec.Struct, frozen=True):
    """A copy beside its original. ``text`` is the place of the original; None for an operator that torchgen generates."""

    copy: Copy
    ours: OperatorSchema
    theirs: OperatorSchema
    text: SchemaText | None

    def differences(self) -> Iterator[Difference]:
        found = list(schema_changes(self.ours, self.theirs))
        for change in found:
            yield from self._difference(change)
        yield from self._kinds([item for item in found if item.kind in ("keyword-only", "positional")])

    def _difference(self, change: SchemaChange) -> Iterator[Difference]:
        mine, other = change.old, change.new
        if isinstance(mine, Argument) and isinstance(other, Argument):
            yield from self._argument(change.kind, mine, other)
        elif isinstance(mine, Argument):
            message = f"PyTorch's `{self.copy.name}` has no argument `{mine.name}`"
            yield self._at("arguments", message, mine.span, None)
        elif isinstance(other, Argument):
            where = self.ours.arguments[-1].span if self.ours.arguments else self.ours.name_span
            message = f"the argument `{other}` of PyTorch's `{self.copy.name}` is missing"
            yield self._at("arguments", message, where, other)
        elif change.kind == "returns":
            message = f"it returns {returned(self.ours)} here and {returned(self.theirs)} in PyTorch"
            yield self._at("returns", message, self._returns_span(), None)
        elif change.kind == "return-alias" and mine is not None and other is not None:
            message = f"it returns `{mine.type.text()}` here and `{other.type.text()}` in PyTorch"
            yield self._at("alias", message, mine.type_span, None)

    def _argument(self, kind: ChangeKind, mine: Argument, other: Argument) -> Iterator[Difference]:
        if kind == "argument-renamed":
            message = f"PyTorch calls the argument `{mine.name}` `{other.name}`"
            yield self._at("arguments", message, mine.name_span, other)
        elif kind == "argument-moved":
            message = f"`{mine.name}` stands where PyTorch has `{other.name}`"
            yield self._at("arguments", message, mine.span, other)
        elif kind in ("symint", "type"):
            message = f"`{mine.name}` is `{mine.type}` here and `{other.type}` in PyTorch"
            yield self._at("symint" if kind == "symint" else "type", message, mine.type_span, other)
        elif kind == "alias":
            message = f"`{mine.name}` is annotated `{mine.type.text()}` here and `{other.type.text()}` in PyTorch"
            yield self._at("alias", message, mine.type_span, other)
        elif kind == "default" and _value(mine.default) != _value(other.default):
            message = f"`{mine.name}` has {_default(mine)} here and {_default(other)} in PyTorch"
            yield self._at("default", message, mine.default_span or mine.span, other)

    def _kinds(self, changes: Sequence[SchemaChange]) -> Iterator[Difference]:
        """Arguments that are keyword-only on one side: one ``*`` too many, too few or elsewhere."""
        pairs = [(item.old, item.new) for item in changes]
        if pairs and isinstance(mine := pairs[0][0], Argument) and isinstance(other := pairs[0][1], Argument):
            words = ("positional", "keyword-only")
            names = ", ".join(f"`{item.name}`" for item, _ in pairs if item is not None)
            verb = "are" if len(pairs) > 1 else "is"
            message = f"{names} {verb} {words[mine.kwarg_only]} here and {words[other.kwarg_only]} in PyTorch"
            yield self._at("arguments", message, mine.span, other)

    def _returns_span(self) -> Span:
        returns = self.ours.returns
        return Span(returns[0].span.start, returns[-1].span.end) if returns else self.ours.name_span

    def _at(self, side: Side, message: str, span: Span, other: Argument | None) -> Difference:
        related: tuple[Related, ...] = ()
        if self.text is not None:
            theirs = self.theirs.name_span if other is None else other.span
            place = self.text.place(theirs)
            related = (Related(place, f"PyTorch has `{other}`" if other is not None else "PyTorch declares it here"),)
        return Difference(side, message, self.copy.text.place(span), related)


def _value(default: str | None) -> object:
    """A default by its value: ``1.`` is ``1.0``, and ``'none'`` is ``"none"``."""
    if default is None:
        return None
    try:
        return float(default)
    except ValueError:
        return default.replace("'", '"').replace(" ", "")


def _default(argument: Argument) -> str:
    return "no default" if argument.default is None else f"the default `{argument.default}`"

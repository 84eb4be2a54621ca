"""The field ``precomputed``: values that a structured kernel's meta function passes to the kernel instead of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.schema.schema_tokens import SchemaError
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, respelling
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import kind_of
from opschema_rules.aten.signatures import out_arguments

_FIELD = "precomputed"


@rule("ATN161", "precomputed-structured", pure=True)
def precomputed_structured(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator has `precomputed` without `structured: True`.

    Bad:

    ```yaml
    - func: tanh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      precomputed:
      - dim -> int dim
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - dim -> int dim
      dispatch:
        CPU: tanh_out
    ```
    """
    for entry in native.having(_FIELD):
        key, node = entry.fields[_FIELD]
        if entry.flag("structured") is False and kind_of(node) != "nothing":
            yield found(entry, key, "`precomputed` needs `structured: True`")


@rule("ATN162", "precomputed-item", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def precomputed_item(native: NativeFile) -> Iterator[Diagnostic]:
    """An item of `precomputed` is not of the form `argument -> type name, type name`, or does not fit the operator.

    Each item replaces an argument of the kernel; the last one may have no `argument -> ` and adds parameters. Declarations
    are written as in a schema, and no name may be all upper case, like the template's parameters. torchgen accepts items
    that replace something other than an argument, and then replaces nothing.

    Bad:

    ```yaml
    - func: tanh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - dim -> int dim,int size
    - func: sinh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - dims -> int dim, int N
      - int
    ```

    Bad:

    ```yaml
    - func: tanh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - dim->int dim
    - func: sinh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - int size
      - dim -> int dim
    ```

    Good:

    ```yaml
    - func: tanh.dim_out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      precomputed:
      - dim -> int dim, DimVector sizes
      - int size
    ```
    """
    for entry in native.having(_FIELD):
        node = entry.get(_FIELD)
        items = (
            [entry.file.document.follow(item) for item in node.items] if node is not None and node.is_sequence else []
        )
        if items:
            yield from _Reader(entry, entry.schema).read(items)


class _Reader(msgspec.Struct):
    """Reads the items of one entry. ``replaced`` and ``declared`` hold the items read so far, by name."""

    entry: NativeEntry
    schema: OperatorSchema | None
    replaced: dict[str, Span] = msgspec.field(default_factory=dict)
    declared: dict[str, Span] = msgspec.field(default_factory=dict)

    def read(self, items: Sequence[Node]) -> Iterator[Diagnostic]:
        for number, node in enumerate(items, 1):
            if string(node) is None:
                what = kind_of(node)
                yield found(self.entry, node, f"an item has the form `argument -> type name`, and this is {what}")
            else:
                yield from self._item(node, last=number == len(items))
        yield from self._clashes()

    def _item(self, node: Node, *, last: bool) -> Iterator[Diagnostic]:
        text = node.value
        loose = _ARROW.sub(" -> ", text)
        if text.count("->") > 1:
            yield found(self.entry, node, "an item has one `->`, and this has more")
        elif loose != text:
            fix = respelling(self.entry, node, Span(0, len(text)), loose)
            yield found(self.entry, node, "`->` needs one space before and after it", fix=fix)
        elif "->" in text:
            name, _, declarations = text.partition(" -> ")
            yield from self._replaced(node, name)
            yield from self._declared(node, declarations, len(name) + 4, strict=True)
        elif last:
            yield from self._declared(node, text, 0, strict=False)
        else:
            yield found(self.entry, node, "only the last item may be without `argument -> `")

    def _replaced(self, node: Node, name: str) -> Iterator[Diagnostic]:
        span = self.entry.inner(node, Span(0, len(name)))
        if name in self.replaced:
            first = self.entry.related(self.replaced[name], "its first item")
            yield found(self.entry, span, f"`{name}` is replaced twice; one item holds all that replaces it", first)
            return
        self.replaced[name] = span
        if self.schema is None:
            return
        outs = {item.name for item in out_arguments(self.schema)}
        names = [item.name for item in self.schema.arguments if item.name not in outs and item.name != "self"]
        if not name:
            yield found(self.entry, node, "write the argument to replace before `->`")
        elif name not in names:
            is_own = self.schema.argument(name) is not None
            what = (
                f"`{name}` cannot be replaced"
                if is_own
                else f"the operator has no argument `{name}`{did_you_mean(nearest(name, names))}"
            )
            yield found(self.entry, span, what)

    def _declared(self, node: Node, text: str, start: int, *, strict: bool) -> Iterator[Diagnostic]:
        at = start
        for number, part in enumerate(text.split(",")):
            gap = " " if number else ""
            yield from self._declaration(node, part.strip(), at + len(part) - len(part.lstrip()))
            if strict and part.strip() and part != gap + part.strip():
                span = Span(at, at + len(part))
                fix = respelling(self.entry, node, span, gap + part.strip())
                message = "a comma must be followed by one space, and other spaces are not allowed"
                yield found(self.entry, self.entry.inner(node, span), message, fix=fix)
            at += len(part) + 1

    def _declaration(self, node: Node, text: str, start: int) -> Iterator[Diagnostic]:
        if not text:
            yield found(self.entry, node, "a declaration (`type name`) is missing")
            return
        if " " not in text:
            span = self.entry.inner(node, Span(start, start + len(text)))
            yield found(self.entry, span, f"a declaration has the form `type name`, and this is `{text}`")
            return
        parsed = parse_schema(f"{_HEAD}{text}) -> ()", "torchgen")
        shift = start - len(_HEAD)
        for error in parsed.errors:
            if not self._is_known(error, text):
                yield self._unreadable(node, error, shift, len(text) + start)
        for item in parsed.schema.arguments if parsed.schema is not None else ():
            span = self.entry.inner(node, Span(item.name_span.start + shift, item.name_span.end + shift))
            if item.name.upper() == item.name:
                yield found(
                    self.entry, span, f"`{item.name}` cannot be all upper case, as the template's parameters are"
                )
            elif item.name in self.declared:
                first = self.entry.related(self.declared[item.name], "the first")
                yield found(self.entry, span, f"`{item.name}` is declared twice", first)
            self.declared.setdefault(item.name, span)

    def _is_known(self, error: SchemaError, text: str) -> bool:
        """Whether the error concerns a type that only kernels have, such as ``DimVector``."""
        word = f"{_HEAD}{text}"[error.span.start : error.span.end]
        return error.kind == "unknown-type" and word in self.entry.owner.torchgen.vocabulary.types

    def _unreadable(self, node: Node, error: SchemaError, shift: int, end: int) -> Diagnostic:
        last = max(error.span.end + shift, 0)
        span = Span(min(max(error.span.start + shift, 0), end), min(last, end))
        fix = None
        if error.edit is not None and error.edit.span.end + shift <= end:
            edit = error.edit
            fix = respelling(self.entry, node, Span(edit.span.start + shift, edit.span.end + shift), edit.replacement)
        place = self.entry.inner(node, span) if span.start < span.end else node
        return found(self.entry, place, error.message, fix=fix)

    def _clashes(self) -> Iterator[Diagnostic]:
        """Parameters of the kernel that have one name."""
        for item in self.schema.arguments if self.schema is not None else ():
            span = self.declared.get(item.name)
            if span is not None and item.name not in self.replaced and self.entry.schema_text is not None:
                related = self.entry.related(self.entry.schema_text.span(item.span), "the argument")
                yield found(self.entry, span, f"`{item.name}` is an argument of the kernel, too", related)


_HEAD = "f("
_ARROW = re.compile(r"\s*->\s*")

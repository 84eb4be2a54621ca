"""The form of native_functions.yaml: a list of mappings whose fields are known, unique and of the right type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import excerpt
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.source.yaml_edit import quote_scalar, rename_key, set_value
from opschema_rules.aten.entry import is_binary, is_date
from opschema_rules.aten.findings import found, listing, no_list, yaml_fix
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.refused_yaml import TAGS, refused_key
from opschema_rules.aten.vocabulary import slip


@rule("ATN101", "native-entry", pure=True, by_release=True)
def native_entry(native: NativeFile) -> Iterator[Diagnostic]:
    """The file is not a list of entries, or an entry is not a mapping with the field `func`.

    torchgen reads native_functions.yaml as a list; each item is a mapping, and its field `func` is the operator's schema.

    Bad:

    ```yaml
    - variants: function, method
    - tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
    ```
    """
    yield from no_list(native.file, "`- func: ...`", filled=False)
    for node in items_of(native.file):
        if not node.is_mapping:
            message = f"an entry is a mapping with the field `func`, and this is {kind_of(node)}"
            yield Diagnostic(message, Place(native.path, node.span))
    if len(native.having("func")) == len(native.entries) and all(map(_has_func, native.entries)):
        return
    for entry in native.entries:
        key = entry.key("func")
        if key is not None and not _has_func(entry):
            yield found(entry, key, "`func` is empty; it holds the operator's schema")
        elif key is None:
            first = entry.node.items[0] if entry.node.items else entry.node
            yield found(entry, first, "the entry has no field `func`, which holds the operator's schema")


def _has_func(entry: NativeEntry) -> bool:
    node = entry.get("func")
    return node is not None and (node.kind != "scalar" or is_text(node) or kind_of(node) != "nothing")


def _unknown(entry: NativeEntry) -> list[str]:
    return sorted(entry.written.keys() - entry.owner.torchgen.vocabulary.fields - {"<<"})  # which is ATN105's


@rule("ATN102", "unknown-field", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def unknown_field(native: NativeFile) -> Iterator[Diagnostic]:
    """An entry has a field that torchgen does not know.

    torchgen rejects the file with "leftover entries". The known fields are read from the tree's own `torchgen/model.py`, if
    it has one.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variant: function, method
      device_gard: False
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
      device_guard: False
    ```
    """
    known = native.torchgen.vocabulary.fields
    for entry in native.entries:
        if not entry.written.keys() <= known:
            yield from (_unknown_field(entry, name) for name in _unknown(entry))


def _unknown_field(entry: NativeEntry, name: str) -> Diagnostic:
    near = entry.misspelt.get(name)
    hint, fix = "", None
    if near is not None:
        hint = f"; did you mean `{near}`?"
        if slip(name, (near,)):
            fix = yaml_fix(entry, f"write `{near}`", partial(rename_key, entry.file, entry.node, name, near))
    return found(entry, entry.written[name][0], f"torchgen has no field `{name}`{hint}", fix=fix)


@rule("ATN103", "repeated-key", fixable="safe", proof=WRITTEN, pure=True)
def repeated_key(native: NativeFile) -> Iterator[Diagnostic]:
    """A field or dispatch key appears twice in one mapping.

    torchgen rejects the file, and reports the line of the mapping, counted from 0, instead of the key's line.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
      dispatch:
        CPU: tanh
        CPU: tanh
    ```

    Bad, with two different values:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
      variants: function
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
      dispatch:
        CPU, CUDA: tanh
    ```
    """
    for entry in native.entries:
        for mapping in _mappings(entry):
            if len({key.value for key in mapping.items[::2]}) < len(mapping.items) // 2:
                yield from _repeated(entry, mapping)


def _mappings(entry: NativeEntry) -> Iterator[Node]:
    yield entry.node
    for _, value in entry.fields.values():
        if value.kind == "mapping":
            yield value


def _repeated(entry: NativeEntry, mapping: Node) -> Iterator[Diagnostic]:
    first: dict[str, tuple[Node, Node]] = {}
    for key, value in mapping.pairs():
        if key.kind != "scalar":
            continue
        earlier = first.setdefault(key.value, (key, value))
        if earlier[0] is not key:
            message = f"`{key.value}` appears twice; keep one"
            related = entry.related(earlier[0], "it appears here first")
            yield found(entry, key, message, related, fix=_removal(entry, mapping, earlier[1], (key, value)))


def _removal(entry: NativeEntry, mapping: Node, earlier: Node, pair: tuple[Node, Node]) -> Fix | None:
    """Return a fix that removes the second of two equal pairs, if nothing else is on its lines."""
    text = entry.file.source.text
    key, value = pair
    start, newline = text.rfind("\n", 0, key.start) + 1, text.find("\n", value.end)
    end = newline + 1 if newline >= 0 else len(text)
    same = text[earlier.start : earlier.end] == text[value.start : value.end] and not value.anchor
    if not same or mapping.style == "flow" or text[start : key.start].strip() or text[value.end : end].strip():
        return None
    return Fix(f"remove the second `{key.value}`", (FileEdit(entry.file.path, Edit(Span(start, end), "")),))


_FLAG: Final = ("true or false",)
_TEXT: Final = ("text",)
_OPTIONAL_TEXT: Final = ("text", "nothing")
_TYPES: Final = {
    "func": ("text", "nothing", ""),  # nothing is ATN101's
    "variants": _TEXT,
    "autogen": _TEXT,
    **dict.fromkeys(
        ("device_check", "structured_delegate", "structured_inherits", "python_module", "category_override"),
        _OPTIONAL_TEXT,
    ),
    **dict.fromkeys(
        (
            *("device_guard", "structured", "manual_kernel_registration", "manual_cpp_binding"),
            "use_const_ref_for_mutable_tensors",
        ),
        _FLAG,
    ),
    "cpp_no_default_args": ("a list",),
    "tags": ("text", "a list"),
    "dispatch": ("a mapping", "nothing"),
    "precomputed": ("a list", "nothing"),
    "ufunc_inner_loop": ("text", "a mapping"),
}
"""Types of each field, as ``torchgen.model.NativeFunction.from_yaml`` takes it."""

_WORD = re.compile(r"(?!(?:yes|no|true|false|on|off|null)\Z)[A-Za-z_]", re.IGNORECASE)
"""The beginning of plain text that is certainly text."""


@rule("ATN104", "field-type", fixable="safe", proof=WRITTEN, pure=True)
def field_type(native: NativeFile) -> Iterator[Diagnostic]:
    """A field is of the wrong type: text instead of true or false, one name instead of a list.

    torchgen rejects it, usually with nothing more than "not a bool: 1". YAML 1.1 reads `yes`, `no`, `on` and `off` as true
    and false, and `"True"` in quotes as text. Only some fields may be empty.

    Bad:

    ```yaml
    - func: tanh(Tensor self, int step=1) -> Tensor
      device_guard: "False"
      cpp_no_default_args: step
    - func: sinh(Tensor self) -> Tensor
      tags:
    ```

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: [function, method]
    - func: sinh(Tensor self) -> Tensor
      dispatch: sinh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int step=1) -> Tensor
      variants: function, method
      device_guard: False
      cpp_no_default_args: ['step']
      tags: pointwise
      dispatch:
        CPU: tanh
    ```
    """
    types = _TYPES
    for entry in native.entries:
        for name, (key, value) in entry.fields.items():
            wanted = types.get(name)
            if wanted is None or (wanted[0] == "text" and value.kind == "scalar" and is_text(value)):
                continue
            kind = kind_of(value)
            if kind not in wanted:
                yield _mistyped(entry, name, key, value)


def is_text(node: Node) -> bool:
    """Whether a scalar is certainly text; a fast check."""
    return not node.tag and (bool(node.style) or _WORD.match(node.value) is not None)


def kind_of(node: Node) -> str:
    """Return the kind of the value that PyYAML reads, as text."""
    if node.kind != "scalar":
        return {"mapping": "a mapping", "sequence": "a list"}.get(node.kind, "an alias")
    value = scalar_value(node)
    if is_binary(node):
        return "binary data"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if value is None:
        return "nothing"
    return "a date" if is_date(node) else "text"


def _mistyped(entry: NativeEntry, name: str, key: Node, value: Node) -> Diagnostic:
    wanted, kind = _TYPES[name], kind_of(value)
    allowed = " or ".join(item for item in wanted if item not in ("nothing", ""))
    near = slip(value.value, ("True", "False")) if wanted == _FLAG and kind == "text" else None
    hint = f"; did you mean `{near}`?" if near is not None and near != value.value else ""
    is_now = "empty" if kind == "nothing" else f"{kind}: `{_shown(entry, value)}`{hint}"
    place = value if value.start < value.end else key
    return found(entry, place, f"`{name}` must be {allowed}, and is {is_now}", fix=_retyped(entry, wanted, value))


def _shown(entry: NativeEntry, node: Node) -> str:
    return excerpt(entry.file.source.text[node.start : node.end], 40)


def _retyped(entry: NativeEntry, wanted: tuple[str, ...], value: Node) -> Fix | None:
    """Return a fix that writes the same value with the right type, if that is certain."""
    kind = kind_of(value)
    meant = slip(value.value, ("True", "False")) if wanted == _FLAG and kind == "text" else None
    if meant is not None and not value.anchor:
        return Fix(f"write `{meant}`", (FileEdit(entry.file.path, Edit(value.span, meant)),))
    if wanted == ("a list",) and kind == "text":
        return listing(entry, value, [value.value])
    if wanted == _OPTIONAL_TEXT and kind in ("true or false", "a number", "a date"):
        why = "the field may be meant to hold something else"
        return yaml_fix(entry, "put it in quotes", partial(quote_scalar, entry.file, value), why)
    names = [item.value for item in value.items if item.kind == "scalar" and is_text(item)]
    if wanted == _TEXT and kind == "a list" and names and len(names) == len(value.items):
        text = ", ".join(names)
        return yaml_fix(entry, f"write `{text}`", partial(set_value, entry.file, value, text))
    return None


_MARKS = (" !", "\n!", "\t!", "[!", "{!", ",!")


@rule("ATN105", "native-yaml", pure=True)
def native_yaml(native: NativeFile) -> Iterator[Diagnostic]:
    """YAML that torchgen's loader rejects: a merge (`<<`), a tag, a key that is a list or a mapping.

    The loader raises, so the entire file is lost, not only the entry.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      <<: {variants: method}
      python_module: !name nn
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: method
      python_module: !!str nn
    ```
    """
    root, text = native.file.root, native.file.source.text
    tagged = any(mark in text for mark in _MARKS) and _TAG.search(text) is not None
    for node in root.walk() if root is not None and tagged else ():
        if node.tag not in TAGS:
            yield Diagnostic(
                f"torchgen's loader refuses the tag `{node.tag}`; leave it out", Place(native.path, node.span)
            )
    for entry in native.entries:
        for mapping in _mappings(entry):
            for key in mapping.items[::2]:
                suspect = key.kind != "scalar" or key.value == "<<"
                why = refused_key(key, entry.file.document.follow(key)) if suspect else ""
                if why:
                    yield found(entry, key, why)


_TAG = re.compile(r"[\s\[{,]![\w!<]")

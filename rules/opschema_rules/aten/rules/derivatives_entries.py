"""Parts of an entry of derivatives.yaml: its fields, its formulas, its dispatch keys."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, Place
from opschema_cli.lint.rule import rule
from opschema_cli.source.yaml import Node, scalar_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.derivatives import DEFAULT, NOT_FORMULAS
from opschema_rules.aten.entry import Entry, is_date, string
from opschema_rules.aten.findings import found, no_list
from opschema_rules.aten.kinds import items_of
from opschema_rules.aten.model import DerivativeEntry, DerivativesFile
from opschema_rules.aten.refused_yaml import refused

_KINDS = {"mapping": "a mapping", "sequence": "a list"}


def written(node: Node) -> str:
    """Kind of a node, for a message."""
    if node.kind != "scalar":
        return _KINDS.get(node.kind, node.kind)
    value = scalar_value(node)
    if is_date(node):
        return f"the date `{node.value}`"
    if isinstance(value, str):
        return "text" if value.strip() else "blank text" if value else "empty text"
    return "empty" if value is None else f"the {_noun(value)} `{node.value}`"


def _noun(value: bool | int | float) -> str:
    return "boolean" if isinstance(value, bool) else "number"


@rule("ATN401", "derivative-item", pure=True)
def derivative_item(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """derivatives.yaml is not a list, or one of its items is not a mapping.

    torchgen fails with a Python error that names no place.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: grad
    - square(Tensor self) -> Tensor
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: grad
    ```
    """
    yield from no_list(derivatives.file, "`- name: ...`")
    for node in items_of(derivatives.file):
        if not node.is_mapping:
            message = f"an entry is a mapping with the field `name`, and this is {written(node)}"
            yield Diagnostic(message, Place(derivatives.path, node.span))


@rule("ATN410", "derivative-yaml", pure=True)
def derivative_yaml(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """YAML in derivatives.yaml that torchgen's loader rejects: a merge (`<<`), a tag, a key that is a list or a mapping.

    The loader raises, so the entire file is lost, not only the entry.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: !formula grad
      <<: {result: auto_linear}
    ```

    Good:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: !!str grad
      result: auto_linear
    ```
    """
    yield from (Diagnostic(message, Place(derivatives.path, node.span)) for node, message in refused(derivatives.file))


@rule("ATN402", "derivative-field", pure=True)
def derivative_field(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A field of an entry in derivatives.yaml is missing or has the wrong type.

    `name` is text. A formula is text, too: a plain `0`, `true` or `[...]` is a different type in YAML, and an empty one is
    not C++. A number in quotes compiles only if the formula is not for a tensor: the gradient zero of `self` is
    `zeros_like(self)`. `dispatch` is a mapping from dispatch keys to mappings of formulas. torchgen answers most of these
    with a `KeyError` or `AttributeError`.

    Bad:

    ```yaml derivatives.yaml
    - name: relu(Tensor self) -> Tensor
      self: 0
    ```

    Bad, two formulas that are not text:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: {grad}
      result:
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: zeros_like(self)
      result: auto_element_wise
    ```

    Good, a formula per dispatch key:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      dispatch:
        Default:
          self: grad * 2 * self
        AutogradNestedTensor:
          self: grad * self * 2
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_field(entry)


def _derivative_field(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    name = entry.get("name")
    if name is None:
        message = "the entry has no `name`, which holds the schema of the operator that it is for"
        yield found(entry, entry.first, message)
    elif not (string(name) or "").strip():
        yield found(entry, name, f"`name` is the schema of an operator, and this is {written(name)}")
    table = entry.get("dispatch")
    if table is None:
        yield from _formulas(entry, entry.node, NOT_FORMULAS)
    else:
        yield from _table(entry, table)


def _table(entry: DerivativeEntry, table: Node) -> Iterator[Diagnostic]:
    if not table.is_mapping:
        message = f"`dispatch` is a mapping from dispatch keys to formulas, and this is {written(table)}"
        yield found(entry, table, message)
    elif not table.items:
        yield found(entry, table, "`dispatch` names no dispatch key, so that the entry says nothing")
    for key, value in table.pairs():
        node = entry.file.document.follow(value)
        if key.kind != "scalar" or (key.value == "<<" and not key.style):
            continue
        if string(key) is None:
            yield found(entry, key, f"a dispatch key is text, and this is {written(key)}")
        elif not node.is_mapping:
            message = f"`{key.value}` holds formulas by the names of arguments, and this is {written(node)}"
            yield found(entry, value if value.end > value.start else key, message)
        else:
            yield from _formulas(entry, node, ())


def _formulas(entry: DerivativeEntry, table: Node, leave_out: tuple[str, ...]) -> Iterator[Diagnostic]:
    for key, value in table.pairs():
        if key.kind == "scalar" and key.value in leave_out:
            continue
        node = entry.file.document.follow(value)
        if key.kind != "scalar" or (key.value == "<<" and not key.style):
            continue
        if string(key) is None:
            message = f"a formula follows the names of arguments or outputs, not {written(key)}"
            yield found(entry, key, message)
        elif not (string(node) or "").strip():
            yield _no_formula(entry, key, value, node)


def _no_formula(entry: DerivativeEntry, key: Node, value: Node, node: Node) -> Diagnostic:
    message = f"the formula of `{key.value}` is C++ in a string, and this is {written(node)}"
    return found(entry, value if value.end > value.start else key, message)


@rule("ATN403", "derivative-duplicate-key", pure=True)
def derivative_duplicate_key(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """An entry of derivatives.yaml has the same key twice.

    torchgen stops, and reports the line on which the mapping begins, counted from 0.

    Bad:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      self: grad * alpha
    ```

    Good:

    ```yaml derivatives.yaml
    - name: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
      self: grad
      other: grad * alpha
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_duplicate_key(entry)


def _derivative_duplicate_key(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    yield from repeated_keys(entry, entry.node)
    table = entry.get("dispatch")
    if table is not None:
        yield from repeated_keys(entry, table)
        for _, value in table.pairs():
            yield from repeated_keys(entry, entry.file.document.follow(value))


def repeated_keys(entry: Entry, mapping: Node) -> Iterator[Diagnostic]:
    """Report keys that are written twice in a mapping."""
    keys = [key for key, _ in mapping.pairs() if key.kind == "scalar"]
    if len({key.value for key in keys}) == len(keys):
        return
    first: dict[str, Node] = {}
    for key in keys:
        if key.value in first:
            related = (entry.related(first[key.value], "it is first said here"),)
            yield found(entry, key, f"the key `{key.value}` is said twice; keep one", *related)
        first.setdefault(key.value, key)


@rule("ATN404", "derivative-beside-dispatch", pure=True)
def derivative_beside_dispatch(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A formula is placed beside `dispatch`, where torchgen never reads it.

    An entry with `dispatch` takes its formulas from there only. Formulas for all other dispatch keys belong under
    `Default`. torchgen drops the formula silently.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      self: grad * 2 * self
      dispatch:
        AutogradNestedTensor:
          self: grad * self * 2
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      dispatch:
        Default:
          self: grad * 2 * self
        AutogradNestedTensor:
          self: grad * self * 2
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_beside_dispatch(entry)


def _derivative_beside_dispatch(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    table = entry.fields.get("dispatch")
    if table is None:
        return
    for key, _ in entry.node.pairs():
        if key.kind == "scalar" and key.value not in NOT_FORMULAS:
            message = (
                f"`{key.value}` is next to `dispatch` and is dropped; it belongs below a dispatch key, as `{DEFAULT}`"
            )
            yield found(entry, key, message, entry.related(table[0], "formulas are taken from here"))


@rule("ATN405", "derivative-dispatch-key", pure=True, by_release=True)
def derivative_dispatch_key(derivatives: DerivativesFile) -> Iterator[Diagnostic]:
    """A key below `dispatch` in derivatives.yaml is not one of autograd's.

    `Default`, `AutogradNestedTensor` and `Autograd` with the name of a backend (`AutogradCUDA`) are
    (`torchgen.model.AUTOGRAD_KEYS`); the dispatch key of the backend itself is not.

    Bad:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      dispatch:
        Default:
          self: grad * 2 * self
        CUDA:
          self: grad * self * 2
    ```

    Good:

    ```yaml derivatives.yaml
    - name: square(Tensor self) -> Tensor
      dispatch:
        Default:
          self: grad * 2 * self
        AutogradCUDA:
          self: grad * self * 2
    ```
    """
    for entry in derivatives.entries:
        yield from _derivative_dispatch_key(entry)


def _derivative_dispatch_key(entry: DerivativeEntry) -> Iterator[Diagnostic]:
    table = entry.get("dispatch")
    if table is None:
        return
    backends = entry.owner.torchgen.vocabulary.backends
    known = {DEFAULT, "AutogradNestedTensor", *(f"Autograd{name}" for name in backends)}
    for key, _ in table.pairs():
        if string(key) is not None and key.value not in known and (key.value != "<<" or key.style):
            near = (
                did_you_mean(f"Autograd{key.value}")
                if f"Autograd{key.value}" in known
                else did_you_mean(nearest(key.value, known))
            )
            message = f"`{key.value}` is not a dispatch key that a derivative can be for{near}"
            yield found(entry, key, message)

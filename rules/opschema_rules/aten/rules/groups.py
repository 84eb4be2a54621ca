"""The variants of one operator fit together: signatures, namespaces, names."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_rules.aten.differences import differences, has_twice, name_of, pairs_of
from opschema_rules.aten.findings import found
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.signatures import base_name


@rule("ATN311", "variants-differ", pure=True, by_release=True)
def variants_differ(native: NativeFile) -> Iterator[Diagnostic]:
    """Variants of one operator have different arguments or returns.

    torchgen groups entries whose signatures are equal: names, types, defaults and order of the arguments, and the types
    that are returned or written. If one of them differs in a letter, torchgen reports only the consequences: a missing
    `autogen` line, an out variant without a functional one, a wrong delegate. This rule reports the difference itself, in
    the entry that fewer variants agree with.

    Bad, an argument that is called otherwise:

    ```yaml
    - func: scale(Tensor self, Scalar factor=1) -> Tensor
      structured_delegate: scale.out
    - func: scale_(Tensor(a!) self, Scalar factor=1) -> Tensor(a!)
      structured_delegate: scale.out
    - func: scale.out(Tensor self, Scalar value=1, *, Tensor(a!) out) -> Tensor(a!)
      structured: True
      dispatch:
        CPU: scale_out
    ```

    Bad, another type:

    ```yaml
    - func: tanh(Tensor self, int dim) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, SymInt dim, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good, names of returns do not count:

    ```yaml
    - func: tanh(Tensor self, int dim) -> Tensor result
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good, overloads that are not variants of each other:

    ```yaml
    - func: tanh(Tensor self, int dim) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_.named(Tensor(a!) self, str dim) -> Tensor(a!)
      dispatch:
        CPU: tanh_named_
    ```
    """
    for pair in pairs_of(groups_of(native)):
        odd, other = pair.odd, pair.other
        here, there = odd.schema_text, other.schema_text
        if here is None or there is None or here.schema is None or there.schema is None:
            continue
        if has_twice(here.schema) or has_twice(there.schema):
            continue  # two arguments of one name are told as such
        names = f"`{name_of(odd)}` and `{name_of(other)}` are not variants of one operator"
        for item in differences(here.schema, there.schema, name_of(other)):
            message = f"{names}: {item.message}"
            yield found(odd, here.span(item.here), message, other.related(there.span(item.there), "the other variant"))


@rule("ATN319", "variants-namespace", pure=True)
def variants_namespace(native: NativeFile) -> Iterator[Diagnostic]:
    """Variants of one operator are in different namespaces.

    An operator without namespace is in `aten`.

    Bad:

    ```yaml
    - func: custom::tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: custom::tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: custom::tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```
    """
    named = [entry for entry in groups_of(native).by_entry if "::" in entry.text_of("func")]
    for group in dict.fromkeys(groups_of(native).by_entry[entry] for entry in named):
        spaces = {_namespace(entry) for entry in group.entries}
        if len(spaces) < 2 or not group.formed:
            continue
        first = group.entries[0]
        for entry in group.entries[1:]:
            if _namespace(entry) != _namespace(first):
                message = (
                    f"`{name_of(entry)}` is in the namespace `{_namespace(entry)}`, and its variant `{name_of(first)}` in "
                    f"`{_namespace(first)}`"
                )
                yield found(entry, entry.place.span, message, first.related(first.place.span, "the other variant"))


def _namespace(entry: NativeEntry) -> str:
    return (entry.schema.namespace if entry.schema is not None else "") or "aten"


@rule("ATN320", "functional-of-mutable", pure=True)
def functional_of_mutable(native: NativeFile) -> Iterator[Diagnostic]:
    """A mutable operator has a functional variant whose name does not end in `_functional`.

    A mutable operator writes an argument that is neither `self` nor an out argument. It is called with the same arguments
    as the functional one, so that overloads could not be distinguished; the functional one has a name of its own.

    Bad:

    ```yaml
    - func: norm.pure(Tensor x, Tensor mean) -> (Tensor, Tensor)
      dispatch:
        CPU: norm_pure
    - func: norm(Tensor x, Tensor(a!) mean) -> Tensor
      dispatch:
        CPU: norm
      autogen: norm.out
    ```

    Good:

    ```yaml
    - func: norm_functional(Tensor x, Tensor mean) -> (Tensor, Tensor)
      dispatch:
        CPU: norm_functional
    - func: norm(Tensor x, Tensor(a!) mean) -> Tensor
      dispatch:
        CPU: norm
      autogen: norm.out
    ```
    """
    for group in groups_of(native).all:
        functional, mutable = group.variants.get("functional"), group.variants.get("mutable")
        if functional is None or mutable is None or functional.schema is None or not group.formed:
            continue
        name = base_name(functional.schema.name)
        if not name.functional:
            message = (
                f"`{functional.name}` is the functional variant of `{mutable.name}`, which writes its arguments, and must "
                f"be called `{name.base}_functional`"
            )
            yield found(functional, functional.place.span, message, mutable.related(mutable.place.span, "it writes"))


@rule("ATN321", "scratch-variant", pure=True)
def scratch_variant(native: NativeFile) -> Iterator[Diagnostic]:
    """An out variant has scratch arguments, and there are other variants.

    A written keyword-only argument whose name begins with `_scratch_` is a buffer that is planned ahead. torchgen cannot
    group such an operator with others: "unexpected keys in dict".

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) _scratch_0, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```
    """
    for group in groups_of(native).all:
        scratch = group.variants.get("scratch")
        if scratch is None or len(group.variants) < 2 or scratch.schema_text is None or scratch.schema is None:
            continue
        first = next(entry for entry in group.variants.values() if entry is not scratch)
        related = first.related(first.place.span, "another variant")
        for item in scratch.schema.arguments:
            if item.name.startswith("_scratch_"):
                message = f"`{scratch.name}` has the scratch argument `{item.name}`, so that torchgen groups it with no others"
                yield found(scratch, scratch.schema_text.span(item.span), message, related)

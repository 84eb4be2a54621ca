"""Operators that torchgen cannot distinguish, and names that it reserves."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_rules.aten.findings import found
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.signatures import full_name, kind_of, out_arguments
from opschema_rules.aten.traits import tags_of

_KEYWORDS_KEPT = frozenset(
    {("_has_compatible_shallow_copy_type", "from"), ("random_.from", "from"), ("uniform_", "from")}
)
"""Arguments that torchgen lets be called by a word of Python's (``torchgen.gen.error_check_native_functions``)."""


@rule("ATN301", "repeated-operator", pure=True)
def repeated_operator(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator is declared twice.

    An operator is known by its name with the overload, without a namespace. torchgen rejects two that share a dispatch key
    ("duplicate operator ... for dispatch key ..."). It accepts two that share none, even with two schemas, and then
    generates some code for one and some for the other.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh(Tensor self, bool fast) -> Tensor
      dispatch:
        CUDA: tanh
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.fast(Tensor self, bool fast) -> Tensor
      dispatch:
        CUDA: tanh
    ```
    """
    for entry, first in groups_of(native).repeats:
        if entry.schema is None or first.schema is None:
            continue
        how = "" if entry.schema == first.schema else ", with another schema"
        message = f"`{full_name(entry.schema)}` is declared a second time{how}; leave one of them"
        yield found(entry, entry.place.span, message, first.related(first.place.span, "the first declaration"))


@rule("ATN302", "repeated-signature", pure=True)
def repeated_signature(native: NativeFile) -> Iterator[Diagnostic]:
    """Two overloads of one operator have the same signature.

    Overloads must differ in their arguments or returns. Two of the same kind (functional, in-place, out) that do not are
    rejected ("Duplicate schema kind ..."): torchgen could not decide which one the others are variants of. Names of
    returns, annotations and `TensorOptions` do not count.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
    - func: tanh.named(Tensor self) -> Tensor result
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
    - func: tanh.named(Tensor self, *, str name) -> Tensor
    ```

    Good, variants of one operator:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
    ```
    """
    for group in groups_of(native).all:
        for entry, first in group.repeated:
            message = (
                f"`{entry.name}` has the signature of `{first.name}`, and both are {_WORDS[_kind(entry)]}; "
                "overloads differ in their arguments or returns"
            )
            yield found(entry, entry.place.span, message, first.related(first.place.span, f"`{first.name}`"))


_WORDS = {
    "functional": "functional",
    "inplace": "in-place",
    "out": "out variants",
    "mutable": "mutable",
    "scratch": "out variants with scratch arguments",
}


def _kind(entry: NativeEntry) -> str:
    return kind_of(entry.schema) if entry.schema is not None else "functional"


@rule("ATN303", "python-keyword", pure=True)
def python_keyword(native: NativeFile) -> Iterator[Diagnostic]:
    """An argument's name is a reserved word of Python.

    It could not be passed by name. torchgen rejects it, except for three operators that are older than the check.

    Bad:

    ```yaml
    - func: tanh(Tensor self, float lambda) -> Tensor
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, float lambd) -> Tensor
    ```

    Good, an operator that is older than the check:

    ```yaml
    - func: random_.from(Tensor(a!) self, int from, int? to) -> Tensor(a!)
      tags: nondeterministic_seeded
    ```
    """
    for entry in native.entries:
        text, schema = entry.schema_text, entry.schema
        for item in schema.arguments if schema is not None else ():
            if item.name not in _KEYWORDS or text is None or schema is None:
                continue
            if (full_name(schema), item.name) not in _KEYWORDS_KEPT:
                message = f"the argument `{item.name}` is called by a reserved word of Python; name it otherwise"
                yield found(entry, text.span(item.name_span), message)


_KEYWORDS = frozenset(keyword.kwlist)


@rule("ATN304", "in-place-with-out", pure=True)
def in_place_with_out(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator is in-place and has out arguments.

    By its name it writes `self`, by its arguments it writes another tensor, and torchgen has no such kind of operator.

    Bad:

    ```yaml
    - func: _foreach_tanh_(Tensor(a!)[] self, *, Tensor(b!)[] out) -> ()
      device_check: NoCheck
    ```

    Good:

    ```yaml
    - func: _foreach_tanh_(Tensor(a!)[] self, Tensor(b!)[] rest) -> ()
      device_check: NoCheck
    ```
    """
    for entry in filter(None, (group.variants.get("inplace") for group in groups_of(native).all)):
        text, schema = entry.schema_text, entry.schema
        if text is None or schema is None:
            continue
        for item in out_arguments(schema):
            message = (
                f"`{schema.name}` is in-place by its name, and `{item.name}` is an out argument; it can be only one"
            )
            yield found(entry, text.span(item.span), message)


@rule("ATN305", "kernel-namespaces", pure=True)
def kernel_namespaces(native: NativeFile) -> Iterator[Diagnostic]:
    """The kernels of one operator lie in several C++ namespaces.

    torchgen declares the kernels of an operator in one namespace: "Codegen only supports one namespace per operator". If
    there is an out variant, torchgen checks only that one, and declares the kernels of the others in the wrong namespace. A
    kernel without a namespace is in `at`.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh_cpu
        CUDA: custom::tanh_cuda
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: custom::tanh_cpu
        CUDA: custom::tanh_cuda
    ```

    Good, `at` written out:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      dispatch:
        CPU: tanh_cpu
        CUDA: at::tanh_cuda
    ```
    """
    for entry in native.having("dispatch"):
        items = entry.dispatch()
        if not any("::" in item.kernel for item in items):
            continue
        spaces: dict[str, list[int]] = {}
        for at, item in enumerate(items):
            spaces.setdefault(item.kernel.rpartition("::")[0] or "at", []).append(at)
        if "ufunc_inner_loop" in entry.fields:
            spaces.setdefault("at", [])
        if len(spaces) < 2:
            continue
        usual = max(spaces, key=lambda name: (len(spaces[name]), name == "at"))
        places = [at for name in spaces if name != usual for at in spaces[name]]
        message = f"the kernels of one operator lie in one namespace, and these lie in {listed(sorted(spaces))}"
        others = [entry.related(items[at].node, f"in `{usual}`") for at in spaces[usual][:1]]
        for node in dict.fromkeys(items[at].node.span for at in places):
            yield found(entry, node, message, *others)


@rule("ATN306", "tagged-generated", pure=True)
def tagged_generated(native: NativeFile) -> Iterator[Diagnostic]:
    """An entry has the tag `generated`, which is reserved for operators that torchgen generates.

    torchgen treats the entry as generated: it leaves it out of the Python bindings, and expects it in `autogen`.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      tags: generated
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      tags: pointwise
    ```
    """
    for entry in native.having("tags"):
        node = entry.get("tags")
        if node is not None and "generated" in tags_of(entry):
            target = next((item for item in node.items if item.value == "generated"), node)
            yield found(entry, target, "the tag `generated` is for what torchgen itself generates; leave it out")

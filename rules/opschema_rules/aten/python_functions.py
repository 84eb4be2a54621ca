"""Operators as functions and methods of Python (``torchgen/packaged/autograd/gen_python_functions.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_rules.aten.groups import Group, Groups, returns_tensors
from opschema_rules.aten.model import NativeEntry
from opschema_rules.aten.signatures import full_name, is_tensor_like

_WITH_NUMBERS = "add.Scalar add_.Scalar sub.Scalar sub_.Scalar mul.Scalar mul_.Scalar div.Scalar div_.Scalar"
_HIDDEN = frozenset(_WITH_NUMBERS.split())
"""Overloads with a number that those with a tensor hide (``SKIP_PYTHON_BINDINGS_SIGNATURES``)."""

_MODULES = frozenset({"nn", "fft", "linalg", "nested", "sparse", "special"})
_SELF = re.compile(r"(?:^|(?<=, ))[^,]+ self=[^,]*(?:, |$)")

Call: TypeAlias = tuple[str, str, bool]
"""Python signature of an overload: positional arguments, keyword-only ones, and whether it makes a tensor by options."""


class PythonFunction(msgspec.Struct):
    """All overloads that are one function of Python, by how they are called."""

    bases: dict[Call, NativeEntry] = msgspec.field(default_factory=dict)
    outs: dict[Call, NativeEntry] = msgspec.field(default_factory=dict)
    clashes: list[tuple[NativeEntry, NativeEntry]] = msgspec.field(default_factory=list)


@cached_on_argument
def python_functions(groups: Groups) -> Mapping[tuple[str, str], PythonFunction]:
    """The functions of Python that have several overloads or out variants, by module and name."""
    found: dict[tuple[str, str], PythonFunction] = {}
    for name, entries in groups.by_base.items():
        for entry in entries:
            group = groups.by_entry[entry]
            is_out = group.variants.get("out") is entry or group.variants.get("scratch") is entry
            if (len(entries) == 1 and not is_out) or _is_malformed(entry):
                continue
            for module in _modules(entry):
                function = found.setdefault((module, name), PythonFunction())
                calls = function.outs if is_out else function.bases
                first = calls.setdefault(_call(entry, group, module), entry)
                if first is not entry:
                    function.clashes.append((entry, first))
    return found


def _is_malformed(entry: NativeEntry) -> bool:
    """Whether it is not known where Python has it."""
    fields = entry.fields
    if "variants" in fields and not set((entry.text("variants") or "?").split(", ")) <= {"function", "method"}:
        return True
    return any(name in fields and not entry.text(name) for name in ("python_module", "category_override"))


@cached_on_argument
def lone_outs(groups: Groups) -> Sequence[tuple[str, NativeEntry]]:
    """The out variants that no function of Python takes the arguments of, with the module."""
    return [
        (module, out)
        for (module, name), function in python_functions(groups).items()
        if not any(map(_is_malformed, groups.of_name(name)))
        for call, out in function.outs.items()
        if not (call in function.bases and is_bound(function.bases[call])) and is_bound(out)
    ]


@cached_on_argument
def lone_groups(groups: Groups) -> frozenset[Group]:
    """The groups of such out variants that have no other entry."""
    alone = (groups.by_entry[out] for _, out in lone_outs(groups) if out.owner.torchgen.bindings.known)
    return frozenset(group for group in alone if len(group.variants) == 1)


def _modules(entry: NativeEntry) -> Iterator[str]:
    """Yield the Python modules of an operator: as a method, in `torch`, in a module of it."""
    fields = entry.fields
    if "python_module" in fields:
        module = entry.text("python_module")
        if module in _MODULES:
            yield str(module)
        if module is not None:
            return
    variants = entry.text_of("variants").split(", ") if "variants" in fields else ["function"]
    if "function" in variants:
        yield "torch"
    if "method" in variants:
        yield "Tensor"


def _call(entry: NativeEntry, group: Group, module: str) -> Call:
    _, positional, others, _ = group.key
    if module == "Tensor":
        positional = _SELF.sub("", positional, count=1).removesuffix(", ")
    elif "Tensor self=" in positional:
        positional = f", {positional}".replace(", Tensor self=", ", Tensor input=")[2:]
    return positional, others, _takes_options(entry)


def _takes_options(entry: NativeEntry) -> bool:
    """Whether Python accepts ``dtype``, ``layout``, ``device``, ``pin_memory`` and ``requires_grad`` for it."""
    schema = entry.schema
    category = entry.text("category_override") if "category_override" in entry.fields else None
    if schema is None or category == "dummy":
        return False
    name = schema.name
    if category in ("factory", "new", "like") or name.startswith("new_") or name.endswith("_like"):
        return True
    if any(is_tensor_like(item.type) and not (item.kwarg_only and item.is_write) for item in schema.arguments):
        return False
    return returns_tensors(schema)


def is_bound(entry: NativeEntry) -> bool:
    """Whether torchgen makes a Python binding for it at all."""
    schema = entry.schema
    if schema is None or full_name(schema) in _HIDDEN:
        return False
    is_out = any(item.kwarg_only and item.is_write for item in schema.arguments)
    return not entry.owner.torchgen.bindings.skips(f"{schema.name}_out" if is_out else schema.name)

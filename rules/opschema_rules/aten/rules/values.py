"""The values of an entry's plain fields: variants and device check, and their requirements on each other and on the schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from opschema_cli.lint.diagnostic import Diagnostic, Fix, Related, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_edit import insert_key, set_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.entry import string
from opschema_rules.aten.findings import found, func_text, respelling, yaml_fix
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.proofs import WRITTEN
from opschema_rules.aten.rules.fields import kind_of
from opschema_rules.aten.signatures import out_arguments
from opschema_rules.aten.vocabulary import slip

VARIANTS = ("function", "method")
_SOUND_VARIANTS = frozenset(("function", "method", "function, method", "method, function"))
DEVICE_CHECKS = ("NoCheck", "ExactSame")


@rule("ATN111", "illegal-variant", fixable="safe", proof=WRITTEN, pure=True)
def illegal_variant(native: NativeFile) -> Iterator[Diagnostic]:
    """`variants` is not `function` or `method`, or both separated by a comma and one space.

    A variant that appears twice is a warning, for torchgen accepts it.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function,methods
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      variants: function, method
    ```
    """
    for entry in native.having("variants"):
        node = entry.get("variants")
        text = string(node)
        if node is not None and text is not None and text not in _SOUND_VARIANTS:
            yield from _variants(entry, node, text)


_PART = re.compile(r"[^,]+")


def _variants(entry: NativeEntry, node: Node, text: str) -> Iterator[Diagnostic]:
    parts = [(match.group().strip(), match.start(), match.end()) for match in _PART.finditer(text)]
    names = [name for name, *_ in parts]
    if set(names) <= set(VARIANTS) and names:
        once = list(dict.fromkeys(names))
        fix = respelling(entry, node, Span(0, len(text)), ", ".join(once))
        if len(once) < len(names) and text == ", ".join(names):
            yield found(entry, node, "a variant appears twice", fix=fix, severity=Severity.WARNING)
        else:
            yield found(entry, node, "variants are separated by a comma and one space", fix=fix)
        return
    if not names:
        yield found(entry, node, "`variants` is empty; the default is `function`")
    for name, start, end in parts:
        if name not in VARIANTS:
            yield _illegal_variant(entry, node, Span(start, end), name)


def _illegal_variant(entry: NativeEntry, node: Node, span: Span, name: str) -> Diagnostic:
    near = slip(name, VARIANTS)
    fix = None
    written = node.value[slice(*span)]
    inner = Span(span.start + len(written) - len(written.lstrip()), span.end - len(written) + len(written.rstrip()))
    if near is not None:
        fix = respelling(entry, node, inner, near)
    message = f"`{name}` is not a variant; there are `function` and `method`" if name else "a variant is missing"
    return found(entry, entry.inner(node, inner if name else span), message, fix=fix)


@rule("ATN112", "out-variants", fixable="safe", proof=WRITTEN, pure=True)
def out_variants(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with out arguments is declared as a method.

    It can only be a function: a method with out arguments triggers a bug in the Python argument binding.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      variants: function, method
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      variants: function
      dispatch:
        CPU: tanh_out
    ```
    """
    for entry in native.having("variants"):
        node = entry.get("variants")
        if node is None or "method" not in _names(string(node)):
            continue
        schema, text = entry.schema, entry.schema_text
        outs = out_arguments(schema) if schema is not None else ()
        if outs and text is not None:
            fix = respelling(entry, node, Span(0, len(node.value)), "function")
            related = entry.related(text.span(outs[0].span), "the out argument")
            yield found(entry, node, "an operator with out arguments can only be a `function`", related, fix=fix)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",")] if text is not None else []


@rule("ATN113", "module-method", pure=True)
def module_method(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator of a Python module is declared as a method.

    `python_module` puts the function into `torch._C._nn` and the like; methods of `Tensor` belong to no module.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      python_module: nn
      variants: function, method
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      python_module: nn
      variants: function
    ```
    """
    for entry in native.having("python_module"):
        module, variants = entry.get("python_module"), entry.get("variants")
        if module is None or variants is None or string(module) is None:
            continue
        text = string(variants) or ""
        if "method" in _names(text):
            at = text.index("method")
            message = f"an operator of the Python module `{module.value}` cannot be a method"
            related = entry.related(module, "the module")
            yield found(entry, entry.inner(variants, Span(at, at + len("method"))), message, related)


@rule("ATN114", "illegal-device-check", fixable="safe", proof=WRITTEN, pure=True)
def illegal_device_check(native: NativeFile) -> Iterator[Diagnostic]:
    """`device_check` is neither `NoCheck` nor `ExactSame`.

    Bad:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      device_check: Nocheck
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      device_check: NoCheck
    ```
    """
    for entry in native.having("device_check"):
        node = entry.get("device_check")
        text = string(node)
        if node is None or text is None or text in DEVICE_CHECKS:
            continue
        near = slip(text.strip(), DEVICE_CHECKS)
        fix = respelling(entry, node, Span(0, len(text)), near) if near is not None else None
        yield found(entry, node, f"`{text}` is not a device check; there are `NoCheck` and `ExactSame`", fix=fix)


@rule("ATN115", "foreach-device-check", fixable="safe", proof=WRITTEN, pure=True, by_release=True)
def foreach_device_check(native: NativeFile) -> Iterator[Diagnostic]:
    """A `_foreach_` operator lacks `device_check: NoCheck`.

    Its kernels fall back to the slow path if the tensors are on several devices, so the devices must not be checked.

    Bad:

    ```yaml
    - func: _foreach_tanh(Tensor[] self) -> Tensor[]
      dispatch:
        CUDA: foreach_tanh
    ```

    Good:

    ```yaml
    - func: _foreach_tanh(Tensor[] self) -> Tensor[]
      device_check: NoCheck
      dispatch:
        CUDA: foreach_tanh
    ```
    """
    if "_foreach" not in native.torchgen.vocabulary.checks:
        return
    for entry in native.entries:
        schema = entry.schema if "_foreach" in func_text(entry) else None
        if schema is None or not schema.name.startswith("_foreach"):
            continue
        node = entry.get("device_check")
        message = "a `_foreach` operator needs `device_check: NoCheck`: its tensors may lie on several devices"
        if node is None:
            yield Diagnostic(message, entry.place, (), _inserted(entry, "device_check", "NoCheck"), (entry.name,))
        elif string(node) == "ExactSame" or kind_of(node) == "nothing":
            fix = yaml_fix(entry, "write `NoCheck`", partial(set_value, entry.file, node, "NoCheck"))
            yield found(entry, node if node.value else entry.fields["device_check"][0], message, fix=fix)


def _inserted(entry: NativeEntry, key: str, value: str, after: str = "func") -> Fix | None:
    edit = partial(insert_key, entry.file, entry.node, key, value, after=after)
    return yaml_fix(entry, f"add `{key}: {value}`", edit)


# -- arguments ---------------------------------------------------------------------------------------------------------


@rule("ATN118", "no-default-argument", fixable="safe", proof=WRITTEN, pure=True)
def no_default_argument(native: NativeFile) -> Iterator[Diagnostic]:
    """`cpp_no_default_args` names something that is not an argument, or an argument without a default.

    Bad:

    ```yaml
    - func: tanh(Tensor self, int step=1) -> Tensor
      cpp_no_default_args: ['steps']
    - func: sinh(Tensor self) -> Tensor
      cpp_no_default_args: ['self']
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int step=1) -> Tensor
      cpp_no_default_args: ['step']
    ```
    """
    for entry in native.having("cpp_no_default_args"):
        node, schema = entry.get("cpp_no_default_args"), entry.schema
        if node is None or schema is None:
            continue
        seen: set[str] = set()
        for item in map(entry.file.document.follow, node.items if node.is_sequence else ()):
            name = string(item)
            if name is not None and name in seen:
                yield found(entry, item, f"`{name}` appears twice", severity=Severity.WARNING)
            else:
                yield from _no_default(entry, schema, item, name)
            seen.add(name or "")


def _no_default(entry: NativeEntry, schema: OperatorSchema, item: Node, name: str | None) -> Iterator[Diagnostic]:
    argument = schema.argument(name) if name is not None else None
    if name is None:
        yield found(entry, item, f"an item is the name of an argument, and this is {kind_of(item)}")
    elif argument is None:
        names = [other.name for other in schema.arguments if other.default is not None]
        near = slip(name, names)
        fix = respelling(entry, item, Span(0, len(name)), near) if near is not None else None
        message = f"the operator has no argument `{name}`{did_you_mean(nearest(name, names))}"
        yield found(entry, item, message, Related(entry.place, "the operator"), fix=fix)
    elif argument.default is None and entry.schema_text is not None:
        related = entry.related(entry.schema_text.span(argument.span), "the argument")
        yield found(entry, item, f"the argument `{name}` has no default that C++ could go without", related)


@rule("ATN119", "const-ref-out", pure=True, by_release=True)
def const_ref_out(native: NativeFile) -> Iterator[Diagnostic]:
    """An operator with out arguments has `use_const_ref_for_mutable_tensors`.

    torchgen rejects it, see https://github.com/pytorch/pytorch/issues/145522; the field is for operators such as
    `_amp_update_scale_`, whose written tensors C++ takes as `const Tensor&`.

    Bad:

    ```yaml
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      use_const_ref_for_mutable_tensors: True
      dispatch:
        CPU: tanh_out
    ```

    Good:

    ```yaml
    - func: tanh_(Tensor(a!) self) -> Tensor(a!)
      use_const_ref_for_mutable_tensors: True
    ```
    """
    field = "use_const_ref_for_mutable_tensors"
    if "pytorch/issues/145522" not in native.torchgen.vocabulary.checks:
        return
    for entry in native.having(field):
        schema, text = entry.schema, entry.schema_text
        outs = out_arguments(schema) if schema is not None and entry.flag(field) else ()
        if outs and text is not None:
            related = entry.related(text.span(outs[0].span), "the out argument")
            names = listed([item.name for item in outs])
            yield found(entry, entry.fields[field][0], f"`{field}` cannot go with out arguments ({names})", related)

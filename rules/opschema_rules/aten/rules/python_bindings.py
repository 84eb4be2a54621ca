"""Overloads as Python calls them: an out variant and the others are one function, and result types do not distinguish them."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import listed
from opschema_rules.aten.differences import name_of, needs_functional, torn
from opschema_rules.aten.findings import found
from opschema_rules.aten.groups import Group, groups_of
from opschema_rules.aten.model import NativeEntry, NativeFile
from opschema_rules.aten.python_functions import is_bound, lone_outs, python_functions


@rule("ATN361", "python-clash", pure=True, by_release=True)
def python_clash(native: NativeFile) -> Iterator[Diagnostic]:
    """Python cannot distinguish two overloads of one operator.

    Overloads that differ in what they return or write, in the options of a factory, or in whether the first argument is
    called `self` or `input`, are called with the same arguments from Python. torchgen rejects them when it writes the
    bindings: "Found duplicated function definition".

    Bad:

    ```yaml
    - func: tanh(Tensor self, int n) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.pair(Tensor self, int n) -> (Tensor, Tensor)
      dispatch:
        CPU: tanh_pair
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self, int n) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh.pair(Tensor self, int n, bool pair) -> (Tensor, Tensor)
      dispatch:
        CPU: tanh_pair
    ```

    Good, without a binding (`_backward` has none):

    ```yaml
    - func: tanh_backward(Tensor self, int n) -> Tensor
      dispatch:
        CPU: tanh
    - func: tanh_backward.pair(Tensor self, int n) -> (Tensor, Tensor)
      dispatch:
        CPU: tanh_pair
    ```
    """
    seen: set[NativeEntry] = set()
    groups = groups_of(native)
    for function in python_functions(groups_of(native)).values() if native.torchgen.bindings.known else ():
        for entry, first in function.clashes:
            if entry in seen or not (is_bound(entry) and is_bound(first)):
                continue
            group = groups.by_entry[entry]
            if groups.by_entry[first] is group:
                continue  # of one signature: reported as such
            seen.add(entry)
            message = (
                f"Python calls `{entry.name}` and `{first.name}` with the same arguments, and cannot tell them apart"
            )
            yield found(entry, entry.place.span, message, first.related(first.place.span, "the other overload"))


@rule("ATN362", "python-out", pure=True, by_release=True)
def python_out(native: NativeFile) -> Iterator[Diagnostic]:
    """An out variant has no other overload with its arguments in Python.

    In Python the out variant is the function with the argument `out=`. So the same module must have a function with that
    name that takes the same arguments. torchgen looks it up when it writes the bindings.

    Bad, in another module:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      python_module: special
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      dispatch:
        CPU: tanh_out
    ```

    Bad, composite, and no other overload:

    ```yaml
    - func: tanh.out(Tensor self, bool fast, *, Tensor(a!) out) -> Tensor(a!)
    ```

    Good:

    ```yaml
    - func: tanh(Tensor self) -> Tensor
      python_module: special
      dispatch:
        CPU: tanh
    - func: tanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
      python_module: special
      dispatch:
        CPU: tanh_out
    ```
    """
    groups = groups_of(native)
    for module, out in lone_outs(groups) if native.torchgen.bindings.known else ():
        group = groups.by_entry[out]
        functional = group.variants.get("functional")
        if functional is None and needs_functional(group):
            continue
        if functional is not None and "category_override" in functional.fields:
            continue  # what that asks of the functional variant is told by its own rule
        if group in torn(groups) or not groups.complete or out.schema is None:
            continue
        others = [name_of(item) for item in groups.of_name(out.schema.name) if not _is_out(groups.by_entry[item], item)]
        where = f"`torch.{module}`" if module != "torch" else "`torch`"
        what = f"; there are {listed(others)}" if others else ""
        related = [functional.related(functional.place.span, "bound elsewhere")] if functional is not None else []
        message = f"in {where} no function takes the arguments of `{out.name}` without `out`{what}"
        yield found(out, out.place.span, message, *related)


def _is_out(group: Group, entry: NativeEntry) -> bool:
    return group.variants.get("out") is entry

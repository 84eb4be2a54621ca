"""Operators that are declared twice."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import CPP, Diagnostic, Severity
from opschema_cli.lint.rule import rule
from opschema_cli.schema.schema_changes import SchemaChange, returned
from opschema_rules.aten.findings import found
from opschema_rules.executorch.declarations import SHOWN, DeclaredTwice


@rule("EXE501", "declared-differently", needs=(CPP,))
def declared_differently(twice: DeclaredTwice) -> Iterator[Diagnostic]:
    """An operator whose schema differs between an operator list and another declaration.

    A model is exported with the operator that Python or C++ defines for PyTorch, and runs with the kernel of the list. The runtime
    passes all arguments by position. If their number, order or types differ, the call fails or the kernel reads the wrong
    argument; this is reported as an error. Differences in names, defaults or the position of `*` are a warning: they do not
    affect the kernel, but one of the two declarations is out of date. The lists of different backends are also compared, since
    one model may be exported for all of them. The schema of an ATen operator in `func` is compared with PyTorch's own.

    Bad:

    ```yaml
    - func: kit::scale.out(Tensor x, int factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    ```python
    import torch

    lib = torch.library.Library("kit", "DEF")
    lib.define("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)")
    ```

    Bad (only a default differs; a warning):

    ```yaml
    - func: kit::scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::scale_out
    ```

    ```cpp
    #include <torch/library.h>

    TORCH_LIBRARY(kit, m) { m.def("scale.out(Tensor x, float factor=1.0, *, Tensor(a!) out) -> Tensor(a!)"); }
    ```

    Good (the runtime has no `SymInt`):

    ```yaml
    - func: kit::pad.out(Tensor x, int size, *, Tensor(a!) out) -> Tensor(a!)
      kernels:
        - arg_meta: null
          kernel_name: kit::pad_out
    ```

    ```python
    import torch

    lib = torch.library.Library("kit", "DEF")
    lib.define("pad(Tensor x, SymInt size) -> Tensor")
    lib.define("pad.out(Tensor x, SymInt size, *, Tensor(a!) out) -> Tensor(a!)")
    ```
    """
    entry, breaking = twice.entry, twice.breaking
    shown = breaking or [item for item in twice.changes if item.kind in SHOWN]
    if not shown:
        return
    text, first = entry.schema_text, shown[0]
    place = text.span(first.new.span) if text is not None and first.new is not None else entry.place.span
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    yield found(
        entry,
        place,
        f"{twice.where} declares `{entry.name}` differently: {_words(first, twice)}{more}",
        twice.related,
        severity=Severity.ERROR if breaking else Severity.WARNING,
    )


def _words(change: SchemaChange, twice: DeclaredTwice) -> str:
    """Return a difference as text, with both sides."""
    old, new = change.old, change.new
    match change.kind:
        case "argument-removed":
            return f"argument `{old}` is missing here"
        case "argument-added":
            return f"argument `{new}` exists only in this entry"
        case "argument-renamed" if old is not None and new is not None:
            return f"argument `{old.name}` is named `{new.name}` here"
        case "argument-moved" if old is not None and new is not None:
            return f"it has `{old.name}` where this entry has `{new.name}`"
        case "keyword-only" | "positional" if new is not None:
            return f"`{new.name}` is {change.kind} here"
        case _ if old is not None and new is not None:
            return f"it declares `{old}`, this entry `{new}`"
        case _:
            return f"it returns {returned(twice.other)}; this entry returns {returned(twice.schema)}"

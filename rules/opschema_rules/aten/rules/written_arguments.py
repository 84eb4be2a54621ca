"""Arguments that an operator writes: their aliases, and the order in which an out variant has them."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic
from opschema_cli.lint.rule import rule
from opschema_cli.phrases import quoted
from opschema_rules.aten.findings import found
from opschema_rules.aten.groups import groups_of
from opschema_rules.aten.model import NativeFile
from opschema_rules.aten.signatures import out_arguments


@rule("ATN215", "shared-alias", severity="warning", pure=True)
def shared_alias(native: NativeFile) -> Iterator[Diagnostic]:
    """Two arguments are written under one alias letter.

    Equal letters say that the arguments may be one tensor, so code that reads the schema takes a write to one for a write to
    both. torchgen accepts it; no operator of PyTorch has it. Each written argument has a letter of its own.

    Bad:

    ```yaml
    - func: _step_(Tensor(a!)[] self, Tensor(a!)[] states) -> ()
      dispatch:
        CPU: step_
      autogen: _step, _step.out
    ```

    Good:

    ```yaml
    - func: _step_(Tensor(a!)[] self, Tensor(b!)[] states) -> ()
      dispatch:
        CPU: step_
      autogen: _step, _step.out
    ```
    """
    for entry in native.entries:
        text = entry.schema_text
        schema = entry.schema if text is not None and text.text.count("!)") > 1 else None
        first: dict[tuple[str, ...], str] = {}
        for item in schema.arguments if schema is not None else ():
            alias = item.alias
            if alias is None or not alias.write or text is None:
                continue
            other = first.setdefault(alias.before, item.name)
            if other != item.name:
                message = f"`{item.name}` is written under the alias of `{other}`, `{alias.before[0]}`: give it a letter of its own"
                yield found(entry, text.span(item.name_span), message)


@rule("ATN325", "out-order", severity="warning", pure=True)
def out_order(native: NativeFile) -> Iterator[Diagnostic]:
    """An out variant has its out arguments in another order than the functional variant has its returns.

    Both are matched by position: generated code returns the first out argument as the first result. The names say that
    another one is meant. Out arguments with other names than the returns are not checked.

    Bad:

    ```yaml
    - func: top(Tensor self) -> (Tensor values, Tensor indices)
      dispatch:
        CPU: top
    - func: top.out(Tensor self, *, Tensor(a!) indices, Tensor(b!) values) -> (Tensor(a!) indices, Tensor(b!) values)
      dispatch:
        CPU: top_out
    ```

    Good:

    ```yaml
    - func: top(Tensor self) -> (Tensor values, Tensor indices)
      dispatch:
        CPU: top
    - func: top.out(Tensor self, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
      dispatch:
        CPU: top_out
    ```
    """
    for group in groups_of(native).all:
        functional, out = group.variants.get("functional"), group.variants.get("out")
        if functional is None or out is None or functional.schema is None or out.schema is None:
            continue
        returns = [item.name or "" for item in functional.schema.returns]
        outs = out_arguments(out.schema)
        names = [item.name for item in outs]
        if names != returns and sorted(names) == sorted(returns) and out.schema_text is not None:
            message = f"the out arguments are {quoted(names)}, and `{functional.name}` returns {quoted(returns)}: they are swapped"
            place = out.schema_text.span(outs[0].name_span)
            yield found(out, place, message, functional.related(functional.place.span, "the functional variant"))

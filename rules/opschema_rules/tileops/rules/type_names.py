"""The names in the types of params: is each the name of a type."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix
from opschema_cli.lint.rule import rule
from opschema_cli.source.program import External, Missing
from opschema_cli.source.text import Edit
from opschema_cli.source.yaml import Node
from opschema_rules.tileops.entry_parts import ParamDecl
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS
from opschema_rules.tileops.type_names import WrongName, is_function, wrong_names


def _no_types(entry: OpEntry) -> Iterator[tuple[ParamDecl, Node, WrongName]]:
    """Params with a name in their type, and the type's node, that is near a type's and none itself."""
    for param in entry.params if entry.manifest.spec.knows("param-type") else ():
        node = param.node.get("type")
        if node is not None and param.type is not None and not param.doubtful("type"):
            for wrong in wrong_names(param.type):
                yield param, entry.file.document.follow(node), wrong


@rule("MAN204", "param-type-name", fixable="unsafe", candidates=_no_types, proof=ROWS)
def param_type_name(entry: OpEntry) -> Iterator[Diagnostic]:
    """The type of a param contains a name that is not a type.

    `flaot` parses like any name, so a tool that checks values against the type takes it for an unknown class. The rule
    reports names that differ by one letter or by case from a type of Python, `typing` or `torch`, and built-in functions, such
    as `any` for `Any`. A name that the op's module or another Python file of the tree defines is accepted.

    The fix replaces the name with the one that it resembles.

    This is checked if the tree's specification says that `type` is a Python type expression.

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: "flaot | None", default: 0.5}
    ```

    Bad:

    ```yaml
    signature:
      params:
        eps: {type: float, default: 0.5}
        hook: {type: "list[callable]", default: []}
        kind: {type: torch.dytpe, default: float16}
    ```

    Good, another file of the tree defines `Tensors`, and text in quotes may be anything:

    ```yaml
    signature:
      params:
        eps: {type: "float | Literal['flaot'] | 'Flaot' | Reduction", default: 0.5}
        scales: {type: Tensors, default: []}
    ```

    ```python kit/types.py
    import torch

    Tensors = list[torch.Tensor]
    ```
    """
    for param, node, wrong in _no_types(entry):
        if not _may_be_a_type(entry, wrong):
            yield _misspelt(entry, param, node, wrong)


def _may_be_a_type(entry: OpEntry, wrong: WrongName) -> bool:
    """Whether the tree may have a type of that name."""
    if not wrong.free:
        return False
    if entry.op_file is not None:
        found = entry.manifest.program.module_member(entry.op_file.path, wrong.name)
        if not isinstance(found, Missing | External) or (isinstance(found, External) and found.name != wrong.name):
            return True
    return not is_function(wrong.name) and entry.manifest.definitions.mentions(wrong.name)


def _misspelt(entry: OpEntry, param: ParamDecl, node: Node, wrong: WrongName) -> Diagnostic:
    place = entry.at(entry.inner(node, wrong.span))
    kind = "a function of Python, not a type" if is_function(wrong.name) else "not a type that Python or the tree knows"
    message = f"`{wrong.name}` in the type of `{param.name}` is {kind}; did you mean `{wrong.meant}`?"
    return Diagnostic(message, place, fix=_respelt(entry, node, wrong), ops=(entry.name,))


def _respelt(entry: OpEntry, node: Node, wrong: WrongName) -> Fix | None:
    span = entry.inner(node, wrong.span)
    if entry.file.source.text[span.start : span.end] != wrong.name:
        return None
    edits = (FileEdit(entry.file.path, Edit(span, wrong.meant)),)
    return Fix(f"write `{wrong.meant}`", edits, "unsafe", f"it takes `{wrong.name}` for a misspelling")

"""The place of an op, for a worker that imports it, and the torch function that it is compared with."""

from __future__ import annotations

import re

from opschema_cli.source.program import ClassRef, Folded, ValueRef
from opschema_cli.verify.model import Target
from opschema_cli.verify.table_plans import importable
from opschema_rules.tileops.model import OpEntry, OpImplementation

_TORCH = re.compile(r"torch(?:\.[A-Za-z_]\w*)+", re.ASCII)


def target(op: OpImplementation) -> Target | str:
    """The module and class to import an op from; else why it cannot be imported.

    ``paths`` are relative to the root: the folder that holds the outermost package, ``src`` where that is the layout.
    """
    found = importable(op.ref.file.path, op.program)
    if isinstance(found, str):
        return found
    module, folder = found
    root = str(op.entry.manifest.project.workspace.root)
    return Target(
        root=root,
        module=module,
        name=op.ref.cls.name,
        paths=(folder,),
        operators=_operators(op),
        operators_attribute="compile_op_names",
    )


def no_target(entry: OpEntry) -> Target:
    """The target of an op that cannot be found."""
    return Target(root=str(entry.manifest.project.workspace.root), module="", name=entry.name)


def class_of(entry: OpEntry) -> ClassRef | str:
    """The class of an entry; else why it is not known."""
    found = entry.op_class
    if isinstance(found, ClassRef):
        return found
    if found is None:
        return "`source.op` names no Python file that can be read"
    return getattr(found, "reason", "") or f"no class `{entry.name}` in the file that `source.op` names"


def _operators(op: OpImplementation) -> tuple[str, ...]:
    """The torch.library operators that ``compile_op_names`` lists, where it is a literal."""
    found = op.attribute("compile_op_names")
    value = found.assign.value if isinstance(found, ValueRef) else None
    if not isinstance(found, ValueRef) or value is None:
        return ()
    folded = op.entry.manifest.evaluator.fold(found.file, value)
    names = folded.value if isinstance(folded, Folded) else None
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, tuple | list) else ()


def reference(entry: OpEntry) -> str:
    """Return the dotted torch function in ``ref_api``; empty for ``none`` and for functions of other packages.

    References that a tree keeps elsewhere (``ref_program`` of a workload class) need a recipe: what they take is not
    declared, and many have a precision of their own (see docs/verify.md).
    """
    name = entry.text_at("ref_api") or ""
    return name if _TORCH.fullmatch(name) else ""

"""Classes of ops in the code: the one that a key refers to, and the parameters of its methods for callers."""

from __future__ import annotations

from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Param, PythonFile


def class_by_convention(file: PythonFile, key: str) -> ClassRef | None:
    """Return the class that a key of the first layout (``softmax_fwd``) refers to: the file's only op class, or the only one
    that the key spells, apart from its direction. None if the key is a class name, or matches none or several.
    """
    if key != key.lower():
        return None
    ops = [cls for name, (cls, *more) in file.classes.items() if name.endswith("Op") and name[0] != "_" and not more]
    stem = key.removesuffix("_fwd").removesuffix("_bwd")
    spellings = [{key.replace("_", "")}, {stem.replace("_", "")}]
    choices = [ops if len(ops) == 1 else []]
    choices += [[cls for cls in ops if cls.name.lower().removesuffix("op") in words] for words in spellings]
    choices += [[cls for cls in ops if cls.name.lower().endswith(f"{key.rpartition('_')[2]}op")] if stem != key else []]
    return next((ClassRef(file, found[0]) for found in choices if len(found) == 1), None)


SIGNATURE_KEEPING = frozenset(
    {
        "no_grad",
        "inference_mode",
        "wraps",
        "abstractmethod",
        "override",
        "torch_compile",
        "disable",
        "final",
        "jit_ignore",
    }
)
"""Last names of decorators that keep a method's signature."""


def call_params(ref: FunctionRef) -> list[Param] | None:
    """Parameters without ``self``/``cls``; None when a decorator may change them."""
    if ref.function.decorators:
        names = [name.rpartition(".")[2] for name in ref.function.decorator_names]
        if "staticmethod" in names:
            return list(ref.function.params)
        if not all(name in SIGNATURE_KEEPING for name in names):
            return None
    return list(ref.function.params[1:])

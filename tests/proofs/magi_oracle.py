"""What MagiCompiler's own decorators, from checkouts, and torch make of a tree of modules with ops.

Beside the probes of :mod:`tests.proofs.torch_oracle`, for the operators that the decorator registers with torch, each op is called
as a user calls it, with dataclasses and members of enumerations:

- ``OP()``, ``OP(), a changed to value 1``: *wrong* if the function under the decorator gives another result.
- ``... under FakeTensorMode``: *wrong* if the outputs are not like those of the real call.
- ``... backward``: for ops with a backward function; *wrong* if the gradients are not those that autograd finds in the function.

Run as a module, with the newer and the older checkout, it reads workspaces from stdin and answers a line each. The older one is for
workspaces whose configuration says ``magi = "plain"``. Without checkouts the functions are registered with torch as both decorators
do for ops without dataclasses and enumerations: what a meta function and the functions for gradients get is up to torch then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs import processes, records, torch_oracle

CORPUS = Path(os.environ.get("OPSCHEMA_CORPUS", "."))
CHECKOUTS = (CORPUS / "oplibs/magi-e68e0b0", CORPUS / "oplibs/magi-e68e0b0p")
"""The commit since which the decorator takes dataclasses, and the one before it."""
REAL = all(path.is_dir() for path in CHECKOUTS)
"""Whether they are there."""


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, in a process of its own; see :data:`opschema_cli.proof.Oracle`."""
    return records.ask("tests.proofs.magi_oracle", workspaces, *map(str, CHECKOUTS))


def observe_torch(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle without Magi's decorators; see :func:`only_torch` for what it may be asked."""
    return records.ask("tests.proofs.magi_oracle", workspaces)


def only_torch(files: Files) -> bool:
    """Whether torch alone says how the ops of a workspace behave."""
    return not any(word in text for text in files.values() for word in ("@dataclass", "Enum)", "Literal["))


# --- in the forked process


def checkout_for(files: Files, arguments: Sequence[str]) -> Path:
    """The checkout among a command's arguments whose decorator a workspace is for."""
    return Path(arguments[2 if 'magi = "plain"' in files.get("opschema.toml", "") else 1])


def _register(
    name: str = "",
    mutates_args: Sequence[str] = (),
    infer_output_meta_fn: Any = None,
    setup_context_fn: Any = None,
    backward_fn: Any = None,
    **_: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Registers a function with torch: what the decorators do where they lower nothing."""

    def decorate(function: Callable[..., Any]) -> Any:
        import torch

        op = torch.library.custom_op(name or f"kit::{function.__name__}", function, mutates_args=mutates_args)
        if callable(infer_output_meta_fn):
            op.register_fake(infer_output_meta_fn)
        if backward_fn is not None:
            op.register_autograd(backward_fn, setup_context=setup_context_fn)
        return op

    return decorate


def examine(files: Files) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    from tests.proofs.magi_calls import outcomes
    from tests.proofs.torch_values import know_members
    from tests.rules.magi.oracle import Registry
    from tests.rules.magi.real_magi import _import_decorator, _install

    real = _register
    if sys.argv[1:]:
        real = _import_decorator(checkout_for(files, sys.argv))._magi_register_custom_op_impl
    else:
        _install("magi_compiler", __path__=[])
    registry = Registry(real)
    _install("magi_compiler.api", magi_register_custom_op=registry.loud)
    _install("magi_oracle", same=registry.same)
    know_members(text for path, text in files.items() if path.endswith(".py"))
    found = torch_oracle.examine(files)
    for name, op in registry.ops.items() if found["import"].level == "right" else ():
        found |= dict(outcomes(name, op, registry.functions[name]))
    return found


if __name__ == "__main__":
    torch_oracle.warm()
    processes.serve(examine)

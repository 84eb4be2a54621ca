"""What programs compute that define ops and call them in ``run()``: without a decorator, and under MagiCompiler's own ones.

- ``run() undecorated``: what the functions compute that the ops are made of.
- ``run()``: *wrong* if the ops give other values. The decorator is the one that the workspace's configuration is for.

Run as a module, with both checkouts or without, it reads workspaces from stdin and answers a line each.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs import processes, records, torch_oracle
from tests.proofs.magi_oracle import CHECKOUTS, REAL, checkout_for

MODULE = "kit.ops"
UNDECORATED = "run() undecorated"


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle, in processes of its own; under the decorators if they are there."""
    given = [[], list(map(str, CHECKOUTS))] if REAL else [[]]
    by_decorator = [records.ask("tests.proofs.magi_programs", workspaces, *item) for item in given]
    return [dict(_compared(outcomes)) for outcomes in zip(*by_decorator, strict=True)]


def _compared(outcomes: Sequence[Observation]) -> Iterator[tuple[str, Seen]]:
    """The outcomes of one program; values that are not those of the functions themselves are wrong."""
    wanted = outcomes[0].get(UNDECORATED)
    for found in outcomes:
        for probe, seen in found.items():
            other = wanted is not None and seen.level == wanted.level == "right" and seen.result != wanted.result
            yield (
                probe,
                Seen("wrong", "the functions themselves compute something else", seen.result) if other else seen,
            )


# --- in the forked process


def _nothing(*args: Any, **kwargs: Any) -> Callable[..., Any]:
    return lambda function: function


def examine(files: Files) -> dict[str, Seen]:
    """The outcome of one program."""
    from tests.proofs.torch_calls import failure
    from tests.proofs.torch_values import digest
    from tests.rules.magi.real_magi import _import_decorator, _install

    probe, decorator = UNDECORATED, _nothing
    if sys.argv[1:]:
        probe, decorator = "run()", _import_decorator(checkout_for(files, sys.argv))._magi_register_custom_op_impl
    else:
        _install("magi_compiler", __path__=[])
    _install("magi_compiler.api", magi_register_custom_op=decorator)
    try:
        torch_oracle.import_all(files)
        return {probe: Seen("right", result=digest(importlib.import_module(MODULE).run()))}
    except Exception as error:
        return {probe: failure(error)}


if __name__ == "__main__":
    torch_oracle.warm()
    processes.serve(examine)

"""Methods that hooks of base classes make, with the parameters that callers pass."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.evaluation.values import ClassValue
from opschema_cli.source.program import FunctionRef, Unresolved
from opschema_cli.source.python import Param
from opschema_rules.tileops.model import Manifest, OpImplementation

if TYPE_CHECKING:
    from opschema_cli.evaluation.execution.executor import Executor


class MadeMethod(msgspec.Struct, frozen=True):
    """The function whose parameters a made method has, and these without ``self``; a hook may have renamed them."""

    ref: FunctionRef
    params: list[Param]


@lru_cache(maxsize=2)
def _executor(manifest: Manifest) -> Executor:
    from opschema_cli.evaluation.execution.executor import Executor  # not at the top: most trees make no methods
    from opschema_cli.evaluation.execution.signatures import INSPECT

    return Executor(manifest.evaluator, (INSPECT,))


def made_method(op: OpImplementation, name: str) -> MadeMethod | None:
    """A method that ``__init_subclass__`` of a base makes when the op's class is made; None if it is not known, and for methods
    that users do not call: those are generated from the manifest, by code of another size.
    """
    if name not in ("__init__", "forward"):
        return None
    if not isinstance(op.program.member(op.ref, name), Unresolved) or op.written_method(name) is None:
        return None
    from opschema_cli.evaluation.execution.outcomes import Returned  # not at the top: see above
    from opschema_cli.evaluation.execution.signatures import signature_of

    outcome = _executor(op.entry.manifest).made(ClassValue(op.ref), name)
    found = signature_of(outcome.value) if isinstance(outcome, Returned) else None
    if found is None or found.body.function is None:
        return None
    ref = FunctionRef(found.body.file, found.body.function, found.body.owner)
    return MadeMethod(ref, [item.param for item in found.parameters[1:]])

"""Custom ops that op classes call, taken from the registration graph of the pack ``torchlib``.

An op is known when the tree registers it and Python implements it, with nothing but kernels and fake kernels; nothing is said of
any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body
from opschema_cli.source.program import ClassRef, FunctionRef
from opschema_cli.source.python import Expr, Param
from opschema_cli.source.resolution import ClassKey
from opschema_cli.source.text import Place

if TYPE_CHECKING:
    from opschema_rules.torchlib.graph import Graph
    from opschema_rules.torchlib.model import Operator


class CustomOp(msgspec.Struct, frozen=True, eq=False):
    """One registered op.

    ``bodies`` are its implementations, ``fakes`` its fake kernels, ``mutated`` the parameters that it may write, ``names`` the
    qualified names that it may have, None when they are not known.
    """

    operator: Operator
    bodies: tuple[Body, ...]
    fakes: tuple[Body, ...]
    mutated: frozenset[str]

    @property
    def names(self) -> frozenset[str] | None:
        """The qualified names that it may have; None when they are not known."""
        return self.operator.names

    @property
    def body(self) -> Body:
        """The implementation that the op was made from."""
        return self.bodies[0]

    @property
    def factory(self) -> Body | None:
        """The function that registers it, when it is nested in one."""
        parent = self.body.parent
        return parent if parent is not None and parent.function is not None else None

    def leaves(self, param: Param) -> bool:
        """Whether no implementation reads or writes the values of a parameter."""
        place = self.body.params.index(param)
        return param.name not in self.mutated and not any(_uses_values(body, place) for body in self.bodies)


def _uses_values(body: Body, place: int) -> bool:
    """Whether a function may use the values of its parameter at ``place``."""
    if place >= len(body.params) or not body.params[place].by_name:
        return True
    name = body.params[place].name
    for scope in body.scope.walk():
        if any(call.callee in ("locals", "vars", "eval", "exec") for call in scope.calls):
            return True
        for use in scope.uses:
            first, _, rest = use.name.partition(".")
            if first == name and not _is_metadata(rest.partition(".")[0]):
                return True
    return False


def _is_metadata(name: str) -> bool:
    """Whether an attribute of a tensor does not depend on its values."""
    return name in torch_names("metadata") or (name.startswith("new_") and name in torch_names("methods"))


class CustomOps:
    """The custom ops of a tree, each resolved on demand. ``bodies`` are those of the package of op classes."""

    def __init__(self, project: Project, bodies: Bodies) -> None:
        self.project = project
        self.bodies = bodies
        self._known: dict[Operator, CustomOp | None] = {}

    @cached_property
    def graph(self) -> Graph:
        """All operators of the tree."""
        # Not at the top: most trees make no tensor that might be a carrier.
        from opschema_rules.torchlib.detection import TorchlibOptions
        from opschema_rules.torchlib.graph import graph_of

        return graph_of(self.project, TorchlibOptions())

    def called(self, body: Body, callee: Expr, owner: ClassRef) -> tuple[CustomOp, ...]:
        """Return every op that ``callee`` may be for an instance of ``owner``; empty if one of them is not known."""
        program = self.bodies.program
        classes = (ref for ref in self.bodies.family(owner) if owner in program.lineage(ref))
        found = [self.graph.called(body, callee, ref) for ref in classes]
        operators = dict.fromkeys(operator for item in found for operator in item or ())
        known = [op for op in map(self._of, operators) if op is not None]
        return tuple(known) if None not in found and len(known) == len(operators) else ()

    def holders(self, op: CustomOp) -> set[ClassKey]:
        """The classes on which code outside them puts an op."""
        return {key for key, _ in self.graph.holders.get(op.operator, ())}

    def calls(self, op: CustomOp) -> set[Place]:
        """Return the places of the calls of an op, if it is the only one that they may call."""
        return {call.place for call in op.operator.calls}

    def _of(self, operator: Operator) -> CustomOp | None:
        if operator not in self._known:
            self._known[operator] = self._read(operator)
        return self._known[operator]

    def _read(self, operator: Operator) -> CustomOp | None:
        kernels = list(self._functions(self.graph.kernels(operator)))
        known = operator.complete and all(item.role in ("fake", "kernel") for item in operator.registrations)
        functions = [item.function for item in operator.registrations]
        if not known or not kernels or not all(isinstance(item, Body) for item in functions):
            return None
        if any(body.function is None or body.function.stub for body in kernels):
            return None
        mutated = operator.mutated
        fakes = self._functions(item.function for item in operator.of_role("fake") if isinstance(item.function, Body))
        return CustomOp(operator, tuple(kernels), tuple(fakes), mutated) if mutated is not None else None

    def _functions(self, bodies: Iterable[Body]) -> Iterable[Body]:
        """Return the same functions among the bodies of the package."""
        found = (self.bodies.function(FunctionRef(body.file, body.function)) for body in bodies if body.function)
        return dict.fromkeys(body for body in found if body is not None)

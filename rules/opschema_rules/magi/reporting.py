"""Shared code of the rules: which ops they look at, and how they point at places."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.lint.diagnostic import Place, Related
from opschema_cli.source.bodies import Body
from opschema_rules.magi.dataclasses import Field
from opschema_rules.magi.model import MagiOp
from opschema_rules.magi.signature import Leaf, Problem, ProblemKind
from opschema_rules.magi.types_of_torch import is_returned, is_taken

_OF_LOWERING = frozenset({"enum", "default-order", "duplicate-name"})
"""Problems that only a lowered signature has."""


def is_sound(op: MagiOp) -> bool:
    """Whether an op is meant to be registered: it is in no test that expects an error, and its signature is its own."""
    return not op.fails_on_purpose and op.signature_known


def lowers(op: MagiOp) -> bool:
    """Whether the decorator is known to lower dataclasses, as rules for that contract require."""
    return op.contract.surely("dataclasses")


def is_plain(op: MagiOp) -> bool:
    """Whether the decorator is known to pass signatures to torch unchanged."""
    return op.contract.surely("plain")


def refusals(op: MagiOp) -> list[Problem]:
    """The refusals of the op's signature. Before dataclasses were lowered, fields and enumerations did not matter."""
    problems = op.lowering.problems
    if is_plain(op):
        return [item for item in problems if not item.is_field and item.kind not in _OF_LOWERING]
    return list(problems)


def problems_of(op: MagiOp, *kinds: ProblemKind) -> Iterator[Problem]:
    """The refusals of these kinds, for an op whose signature is sound."""
    if is_sound(op):
        yield from (problem for problem in refusals(op) if problem.kind in kinds)


def is_refused(op: MagiOp) -> bool:
    """Whether the op is not registered, so that its calls do not matter."""
    returns = op.returns
    if refusals(op) or any(
        leaf.lowered_type is not None and is_taken(op, leaf.lowered_type) is False for leaf in op.lowering.leaves
    ):
        return True
    if (lowers(op) and op.lowering.returns_none_type) or (returns is not None and is_returned(returns) is False):
        return True
    return is_plain(op) and (op.lowering.flattens or any(map(_is_refused_plainly, op.lowering.leaves)))


def _is_refused_plainly(leaf: Leaf) -> bool:
    return leaf.written.kind in ("other", "enum") or (leaf.type is not None and leaf.type.kind == "literal")


def is_known(op: MagiOp) -> bool:
    """Whether it is known how the op's functions are called: by its contract, or because every contract does the same."""
    plain = all(item.kind == "normal" for item in op.params)
    rewritten = any(leaf.downgraded or leaf.scrubbed for leaf in op.lowering.leaves)
    return lowers(op) or is_plain(op) or (plain and not rewritten and not op.lowering.flattens)


def by_keyword(op: MagiOp) -> bool:
    """Whether the op's own functions get its original parameters, rebuilt and by their names."""
    return lowers(op) and op.lowering.flattens


def annotation_place(op: MagiOp, problem: Problem) -> Place:
    """Return the place of the annotation that a problem is about; the name's place if there is none."""
    if problem.kind == "variadic":
        return problem.place
    if problem.is_field:
        found = next((item for item in _fields(op) if item.place == problem.place), None)
        return found.body.at(found.annotation) if found is not None else problem.place
    function = op.body.function
    param = function.param(problem.name) if function is not None and problem.name else None
    return op.body.at(param.annotation) if param is not None and param.annotation is not None else problem.place


def type_place(leaf: Leaf) -> Place:
    """The place of a lowered parameter's annotation."""
    if isinstance(leaf.source, Field):
        return leaf.source.body.at(leaf.source.annotation)
    return Place(leaf.place.path, leaf.source.annotation.span) if leaf.source.annotation is not None else leaf.place


def called(leaf: Leaf) -> str:
    """The name in messages for the origin of a lowered parameter: a parameter, or the field of a class."""
    if isinstance(leaf.source, Field):
        return f"field `{leaf.source.owner.name}.{leaf.name}`"
    return f"parameter `{leaf.name}`"


def registered(op: MagiOp) -> tuple[Related, ...]:
    """The decorator, as the other side."""
    return (Related(op.registration.place, "registered here"),)


def taken(op: MagiOp, leaf: Leaf) -> tuple[Related, ...]:
    """The op's parameter through which a field reaches it; nothing for a parameter of its own."""
    function = op.body.function
    param = function.param(leaf.path[0]) if function is not None else None
    if not isinstance(leaf.source, Field) or param is None:
        return ()
    return (Related(op.body.at(param.full_span), "taken here"),)


def defined(body: Body, what: str) -> tuple[Related, ...]:
    """A function's name, as the other side."""
    return (Related(body.at(body.function.span), what),) if body.function is not None else ()


def _fields(op: MagiOp) -> list[Field]:
    return [item for branch in op.lowering.branches for item in branch.dataclass.fields]

"""Names of ops to verify: looks them up in the operator table, and explains why an operator cannot be verified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.operators import operators_of
from opschema_cli.lint.settings import pack_options
from opschema_cli.operators.lookup import named
from opschema_cli.operators.model import Operator
from opschema_cli.phrases import count, joined, listed
from opschema_cli.session import Session
from opschema_cli.verify.plan_names import operator_of


class OpNames(msgspec.Struct, frozen=True):
    """The operators of a tree, and the names of the packs that plan operators."""

    operators: Sequence[Operator]
    planning: Sequence[str]

    def meant(self, names: Iterable[str], planned: Iterable[str]) -> list[str]:
        """Resolve names to the names in the plans. A name that is not planned as written stands for the operator that it refers to.

        Raises:
            OpschemaError: a name means no operator, or several.
        """
        known = set(planned)
        return [name if name in known else self._meant(name) for name in names]

    def _meant(self, name: str) -> str:
        operator = operator_of(name)
        return named(operator, self.operators)[0].name + name.removeprefix(operator)

    def check_planned(self, names: Iterable[str], planned: Iterable[str]) -> None:
        """Check that operators of these names have plans.

        Raises:
            OpschemaError: one has none; it names the packs that know the operator, and the reason.
        """
        for name in sorted(set(names).difference(planned)):
            found = named(name, self.operators)
            reasons = joined([f"it is an operator of {self._reason(item)}" for item in found])
            others = [pack for pack in self.planning if pack not in {item.pack for item in found}]
            rest = f"; here, only operators of {listed(others)} can be" if others else ""
            raise OpschemaError(f"`{found[0].name}` cannot be verified: {reasons}{rest}")

    def unplanned(self) -> list[Operator]:
        """The operators of packs that make no plans."""
        return [item for item in self.operators if item.pack not in self.planning]

    def nothing_planned(self, reason: str = "") -> OpschemaError:
        """The error for a tree without any plan; ``reason`` is that of its first operator."""
        packs = dict.fromkeys(item.pack for item in self.operators)
        if not packs:
            return OpschemaError("found no op to verify here; `opschema init` shows what opschema looks for")
        known = f"{count(len(self.operators), 'operator')} of {listed(packs)}"
        return OpschemaError(f"found no op to verify among the {known}: {reason or 'none has a verification plan'}")

    def _reason(self, operator: Operator) -> str:
        if operator.pack not in self.planning:
            return f"the pack `{operator.pack}`, which has no verification plans"
        gaps = [f"{gap.part}: {gap.reason}" if gap.part else gap.reason for gap in operator.gaps()]
        why = f" ({'; '.join(dict.fromkeys(gaps))})" if gaps else ""
        return f"the pack `{operator.pack}`, which has no plan for it{why}"


def op_names(session: Session) -> OpNames:
    """The operators and packs of the workspace of a session."""
    project = session.project()
    packs = session.registry_for(project).packs
    operators = operators_of(packs, project, pack_options(session.config, session.registry))
    return OpNames(list(operators), [pack.name for pack in packs if pack.plans is not None])

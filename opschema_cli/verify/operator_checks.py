"""Checks of the torch.library operators that the calls of one op run, and the choice of checks for each call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

from opschema_cli.verify import operators
from opschema_cli.verify.model import Cell, Finding
from opschema_cli.verify.recipes import Recipe

_OPCHECKS = 4
"""Calls of an operator on which torch's own tests are run, which take some 150 ms each; its fake is compared in all."""


class OperatorChecks:
    """The checks of one op on one side. A call like an earlier one, by shapes, dtypes and strides, is not checked again."""

    def __init__(self, side: str, root: str, recipe: Recipe) -> None:
        self._side, self._root, self._recipe = side, root, recipe
        self._checked: set[operators.Key] = set()
        self._opchecks = Counter[str]()

    def findings(self, names: Collection[str], cell: Cell, call: Callable[[], object]) -> list[Finding]:
        """Faults of the operators of these names that a call runs: their fakes, torch's own tests, compilation and gradients."""
        if not names or cell.again:
            return []
        with operators.recorded(names) as calls:
            call()
        found: list[Finding] = []
        for item in calls:
            if item.key in self._checked:
                continue
            self._checked.add(item.key)
            done = self._opchecks[item.name] if cell.values == "normal" else _OPCHECKS
            self._opchecks[item.name] += cell.values == "normal"
            finding = partial(Finding, side=self._side, about=item.name)
            exact = self._recipe.exact_gradient and self._recipe.deterministic
            faults = operators.faults(item, self._root, self._depth(done), exact_gradient=exact)
            found += [finding(check=check, message=message) for check, message in faults]
        return found

    def _depth(self, done: int) -> operators.Depth:
        if done >= _OPCHECKS:
            return "fake"
        return "all" if done == 0 and self._recipe.deterministic else "opcheck"

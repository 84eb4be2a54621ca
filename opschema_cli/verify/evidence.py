"""The comparisons of a cell's tensors: after with before, both with the reference, and with repeated calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.compare import against, differences, unlike
from opschema_cli.verify.judge import Compared
from opschema_cli.verify.marks import marks_of
from opschema_cli.verify.measure import Comparison
from opschema_cli.verify.model import FOUND_ROWS, Cell, Figures, Finding, Plan, Ran, Side, Weakness
from opschema_cli.verify.own_gradients import GRADIENT, gradient_differences
from opschema_cli.verify.results_file import INPUT, OWN
from opschema_cli.verify.spread import HIGH, LOW, comparable_as, within
from opschema_cli.verify.ties import only_ties
from opschema_cli.verify.worth import weakness

_APART = (INPUT, LOW, HIGH, GRADIENT)

Tensors = Mapping[str, Tensor]


class Evidence:
    """The tensors of one cell by side."""

    def __init__(self, plan: Plan, cell: Cell, ran: Mapping[Side, Ran]) -> None:
        self._plan, self._cell, self._ran = plan, cell, ran
        self._tensors = {side: load(item) for side, item in ran.items()}

    def differences(self) -> tuple[Finding, ...]:
        """After's outputs against before's, if both ran."""
        if not self._both():
            return ()
        before, after = self._tensors["before"], self._tensors["after"]
        found = differences(_outputs(before), _outputs(after))
        return (*found, *gradient_differences(before, after)) if self._same_ends() else tuple(found)

    def _same_ends(self) -> bool:
        """Whether the same outputs require a gradient on both sides. Gradients are computed for all of them together."""
        before, after = ({item.name for item in self._ran[side].outputs if item.grad} for side in ("before", "after"))
        return before == after

    def compared(self) -> dict[str, Compared]:
        """The sides that ran against the reference."""
        found = {side: self._against(side) for side in self._ran if side != "reference"}
        return {side: item for side, item in found.items() if item is not None}

    def explained(self, found: tuple[Finding, ...], spread: Tensors | None = None) -> str:
        """The explanation of other bits that says that they are no other result: ties between indices, or the spread of before,
        which ``spread`` holds if it was measured apart.
        """
        names = {finding.about for finding in found if finding.check == "bits"}
        if not self._both() or not names:
            return ""
        before, after = {**self._tensors["before"], **(spread or {})}, self._tensors["after"]
        sources = _sources(after)
        tied = {name for name in names if only_ties(after[name], before[name], sources)}
        if tied == names:
            return "the indices differ only between equal values"
        return within(before, after, names - tied)

    def weakness(self) -> Weakness | None:
        """Why the results of a call found by search test little, for a cell with normal values and no empty input."""
        cell = self._cell
        ordinary = cell.values == "normal" and all(0 not in item.shape for item in cell.call.inputs)
        if self._plan.search is None or not cell.row.startswith(FOUND_ROWS) or not ordinary or cell.wrong:
            return None
        return weakness(cell.call, _outputs(self._tensors["after"])) if self._ran["after"].status == "ok" else None

    def _both(self) -> bool:
        return all(side in self._ran and self._ran[side].status == "ok" for side in ("before", "after"))

    def _against(self, side: Side) -> Compared | None:
        """Compare one side with the reference. Return None unless it shows that all results are right or that some are wrong."""
        ran = self._ran.get("reference")
        if ran is None or ran.status != "ok" or self._ran[side].status != "ok":
            return None
        tensors, findings, figures = self._tensors[side], list[Finding](), list[Figures]()
        outputs = _outputs(tensors)
        findings += self._undefined(side, outputs)
        for name, tensor in outputs.items():
            if "ref64:" + name not in self._tensors["reference"]:
                continue
            right = self._one(side, name, tensor, findings, figures)
            for kind in (LOW, HIGH) if right else ():
                if kind + name in tensors:
                    self._one(side, name, comparable_as(tensors[kind + name], tensor), findings, [])
        if not findings and len(figures) < len(outputs):  # what it says is right, but it does not say all
            return None
        return Compared(tuple(findings), tuple(figures))

    def _undefined(self, side: Side, outputs: Tensors) -> Iterator[Finding]:
        """Undefined optional outputs that the reference returns."""
        optional = (output.name for output in self._cell.call.outputs if output.optional)
        for name in optional:
            if name not in outputs and f"ref64:{name}" in self._tensors["reference"]:
                message = f"`{name}` is undefined, but the reference returns it"
                yield Finding(check="outputs", side=side, about=name, message=message)

    def _one(self, side: Side, name: str, tensor: Tensor, findings: list[Finding], figures: list[Figures]) -> bool:
        """Compares one output, or the smallest or largest results of several calls; whether it is right."""
        reference = self._tensors["reference"]
        comparison = against(
            tensor,
            reference[f"ref64:{name}"],
            reference.get(f"ref32:{name}"),
            self._ran["reference"].tolerance or self._plan.tolerance,
            side=side,
            output=name,
            values=self._cell.values,
            short=reference.get(f"ref16:{name}"),
            marks=marks_of(reference, name),
            sources=[*_sources(self._tensors[side]), *(x for key, x in reference.items() if key.startswith("ref64:"))],
        )
        own = reference.get(OWN + name)
        if not comparison.right and own is not None and not unlike(tensor, own):
            comparison = Comparison(msgspec.structs.replace(comparison.figures, share=0.0, beyond=0.0))
        findings += comparison.findings
        figures.append(comparison.figures)
        return comparison.right


def load(ran: Ran) -> dict[str, Tensor]:
    """The tensors of a side."""
    if ran.status != "ok" or not ran.file:
        return {}
    found: dict[str, Tensor] = torch.load(ran.file, weights_only=True)
    return found


def _outputs(tensors: Tensors) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(_APART)}


def _sources(tensors: Tensors) -> list[Tensor]:
    return [tensor for name, tensor in tensors.items() if name.startswith(INPUT)]

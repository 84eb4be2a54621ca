"""A fake and a kernel run on the same inputs, and the results in which they differ for each input that both take.

Which sizes of arguments belong together is not known: a kernel may take the rows of one tensor, its fake those of another, and
both are always equal. So sizes of a result are compared only where both sides make them of the same sizes, or of those of one
tensor. Sizes are multiples of 256, for kernels that take no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Outcome, Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import Opaque
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Body
from opschema_rules.torchlib.fitted_kernels import FittedKernel, called
from opschema_rules.torchlib.shape_differences import Difference, Results, differences, dtype_at, results_of, size_at
from opschema_rules.torchlib.shape_inputs import SIZE, Atom, Family, Input, families
from opschema_rules.torchlib.tilelang import TileLang

MAX_RUNS = 200
"""Maximum number of inputs to run for one fake and kernel."""
RANKS = range(1, 5)
"""Ranks to try for a tensor instead of the guessed one."""
MAX_ACCEPTED = 9
"""Maximum number of accepted inputs of one family to compare."""
MAX_STEPS = 5_000
"""Steps of work after which no further inputs of one fake and kernel are run."""
_INTEGERS = {"float64": "int64", "float32": "int32", "float16": "int16", "bfloat16": "int16"}
"""Integers of the same size."""
MAX_UNKNOWN = 1
"""Runs without a known result after which nothing is expected of others, where none has had one."""


class Finding(msgspec.Struct, frozen=True):
    """Differences of one input, with the results of both sides."""

    differences: tuple[Difference, ...]
    input: Input
    fake: Results
    kernel: Results


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of comparing a fake and a kernel: inputs that were compared, a finding, or the reason why nothing is known."""

    taken: int = 0
    finding: Finding | None = None
    reason: str = ""


class Comparison:
    """The runs of a fake and a kernel of one operator."""

    def __init__(
        self, executor: Executor, schema: OperatorSchema, fake: Body, kernel: Body, tilelang: TileLang | None = None
    ) -> None:
        self.executor = executor
        self._confirmed: dict[object, bool] = {}
        self._known: dict[object, tuple[Results, Results]] = {}
        self.most_steps = executor.steps + MAX_STEPS
        self.schema = schema
        self.fake = fake
        self.kernel = FittedKernel(executor, schema, kernel, tilelang)
        self.runs = self.unknown = 0
        self.taken = False
        self.reasons: Counter[str] = Counter()

    def first_verdict(self) -> Verdict | None:
        """Return the verdict if the first input of each family shows no difference; None if one does."""
        taken = 0
        for family in families(self.schema, (self.fake, self.kernel.body)):
            spread = next(map(self._spread, self._accepted(family)), None)
            both = self.run(spread) if spread is not None else None
            taken += both is not None
            if both is not None and differences(*both):
                return None
        return Verdict(taken, None, self._reason(taken))

    def verdict(self) -> Verdict:
        """Return the differences that all inputs of one family show; otherwise what is known."""
        taken, found = 0, None
        for family in families(self.schema, (self.fake, self.kernel.body)):
            accepted = list(islice(self._accepted(family), MAX_ACCEPTED))
            inputs = [item for item in map(self._spread, accepted) if item is not None]
            taken += len(inputs)
            if inputs and found is None:
                found = self._common(inputs)
        return Verdict(taken, found, self._reason(taken))

    def _reason(self, taken: int) -> str:
        """The reason why nothing is known; empty if inputs were taken."""
        if taken:
            return ""
        return self.reasons.most_common(1)[0][0] if self.reasons else "no input is taken by both"

    def _accepted(self, family: Family) -> Iterator[Input]:
        """Inputs that both sides take, of each combination of ranks and dtypes."""
        found = set()
        for item in map(self.fitted, self._distinct(family)):
            key = (tuple((name, len(shape)) for name, shape in item.shapes.items()), tuple(item.dtypes.values()))
            if key not in found and self.run(item) is not None:
                found.add(key)
                yield item

    def _distinct(self, family: Family) -> Iterator[Input]:
        """The inputs of a family; where all shapes are fitted, one for each dtype and number."""
        seen = set()
        for item in family.inputs:
            key = (*item.dtypes.values(), repr(item.values))
            if key not in seen or not self.kernel.fitted >= item.shapes.keys():
                seen.add(key)
                yield item

    def _common(self, inputs: Sequence[Input]) -> Finding | None:
        """The finding for the first input, with the differences that each other one shows too."""
        self._confirmed.clear()
        first = self._finding(inputs[0])
        kept = first.differences
        for item in inputs[1:]:
            parts = {one.part for one in self._finding(item).differences} if kept else set()
            kept = tuple(one for one in kept if one.part in parts)
        return msgspec.structs.replace(first, differences=kept) if kept else None

    # Runs

    def run(self, item: Input) -> tuple[Results, Results] | None:
        """Return the results of both sides; None if one raises, or is not known."""
        known = self._known.get(item.key)
        if known is not None:
            return known
        self.runs += 1
        if self._exhausted:
            return None
        if not self.taken and self.unknown >= MAX_UNKNOWN:
            return None
        item = self.fitted(item)
        kernel = self._results(self.kernel.outcome(item), "kernel")
        fake = (
            self._results(called(self.executor, self.schema, self.fake, item), "fake") if kernel is not None else None
        )
        if kernel is None or fake is None or len(fake) != len(kernel):
            return None
        self.taken = True
        self._known[item.key] = fake, kernel
        return fake, kernel

    def _kernel_takes(self, item: Input) -> bool:
        """Whether the kernel takes an input, which is fitted to the shapes that a kernel of TileLang requires."""
        self.runs += 1
        if self._exhausted:
            return False
        return isinstance(self.kernel.outcome(self.fitted(item), strict=False), Returned)

    def _both_take(self, item: Input) -> bool:
        return not self._exhausted and self.run(item) is not None

    @property
    def _exhausted(self) -> bool:
        """Whether no further inputs are run."""
        return self.runs > MAX_RUNS or self.executor.steps > self.most_steps

    def fitted(self, item: Input) -> Input:
        """The input with the shapes that a kernel of TileLang requires."""
        if self._exhausted:
            return item
        # With more steps than are left nothing would be run after it.
        return self.kernel.fit(item, self.most_steps - self.executor.steps + 1)

    def _results(self, outcome: Outcome, side: str) -> Results | None:
        results = results_of(outcome.value) if isinstance(outcome, Returned) else None
        if results is None:
            self.unknown += not isinstance(outcome, Raised)
            self.reasons[_reason(side, outcome)] += 1
        return results

    # Sizes

    def _spread(self, item: Input) -> Input | None:
        """The input with as many different sizes as both sides take."""
        if self.run(item) is None:
            return None
        at_once = self._distinct_sizes(item)
        if self.run(at_once) is not None:
            return at_once
        of_kernel = self._changes(item, self._kernel_takes, keep=True)[1]
        if self.run(of_kernel) is not None:
            return of_kernel
        return self._changes(item, self._both_take, keep=True)[1]

    def _distinct_sizes(self, item: Input) -> Input:
        """The input with another size for each dimension and number."""
        for atom in item.atoms:
            if atom[0] not in self.kernel.fitted:
                item = item.changed(frozenset({atom}), _next_size(item))
        return self.fitted(item)

    def _groups(self, item: Input) -> list[frozenset[Atom]]:
        """Dimensions and numbers that can be changed alone, and pairs that can be changed together."""
        return self._changes(item, self._both_take, keep=False)[0]

    def _changes(
        self, item: Input, takes: Callable[[Input], bool], *, keep: bool
    ) -> tuple[list[frozenset[Atom]], Input]:
        """The groups of dimensions and numbers with whose changes the input is taken: each changed alone, or with ``keep`` one
        after another; and the input with the changes that are kept.
        """
        groups: list[frozenset[Atom]] = []

        def accepts(*atoms: Atom) -> bool:
            nonlocal item
            changed = self.fitted(item.changed(frozenset(atoms), _next_size(item) if keep else 3 * SIZE))
            if not takes(changed):
                return False
            groups.append(frozenset(atoms))
            item = changed if keep else item
            return True

        tied = [atom for atom in item.atoms if atom[0] not in self.kernel.fitted and not accepts(atom)]
        while tied and not self._exhausted:
            first = tied.pop(0)
            partner = next((one for one in tied if accepts(first, one)), None)
            if partner is not None:
                tied.remove(partner)
        return groups, item

    def _finding(self, item: Input) -> Finding:
        both = self.run(item)
        if both is None:
            return Finding((), item, (), ())
        sure = {"size": self._is_confirmed, "dtype": self._has_same_dtypes, "rank": self._is_confirmed}
        found: dict[object, Difference] = {}
        for one in differences(*both):
            if one.part not in found and sure[one.kind](item, one):
                found[one.part] = one
        return Finding(tuple(found.values()), item, *both)

    def _has_same_dtypes(self, item: Input, difference: Difference) -> bool:
        """Whether the dtype of a result depends on those of the same tensors on both sides."""
        before = self.run(item)
        uses: tuple[set[str], set[str]] = (set(), set())
        for name, dtype in item.dtypes.items():
            for other in ("float64", "float16", "bfloat16"):
                after = self._of_dtype(item, name, other)
                if before is None or after is None or other == dtype:
                    continue
                for used, old, new in zip(uses, before, after, strict=True):
                    if dtype_at(old, difference) != dtype_at(new, difference):
                        used.add(name)
        return uses[0] == uses[1]

    def _is_confirmed(self, item: Input, difference: Difference) -> bool:
        """Return :meth:`_is_sure`, cached for tensors of the same ranks, regardless of dtypes."""
        key = (tuple(map(len, item.shapes.values())), difference)
        if key not in self._confirmed:
            self._confirmed[key] = self._is_sure(item, difference)
        return self._confirmed[key]

    def _is_sure(self, item: Input, difference: Difference) -> bool:
        """Whether a rank or size differs whatever ranks the inputs have, and a size however their sizes relate, which both sides
        compute from comparable ones.
        """
        if not self._persists_for_ranks(item, difference) or not self._persists_for_bytes(item, difference):
            return False
        if difference.kind == "rank":
            return True
        self._renew()
        groups = self._groups(item)
        comparable = self.kernel.fitted >= item.shapes.keys() or self._is_comparable(item, difference, groups)
        if self._exhausted or not comparable:
            return False
        return self._persists(item, difference, groups) and self._persists(item, difference, groups[::-1])

    def _persists_for_ranks(self, item: Input, difference: Difference) -> bool:
        """Whether no input with another rank of one tensor makes the result the same: the ranks of tensors are guessed."""
        self._renew()
        for name, shape in item.shapes.items():
            for rank in () if name in self.kernel.fitted else RANKS:
                if rank == len(shape):
                    continue
                other = Input({**item.shapes, name: (SIZE,) * rank}, item.dtypes, item.values)
                alike = other.changed(frozenset(other.atoms), SIZE)  # its sizes fit those of the others
                for tried in (other, alike) if difference.kind == "rank" else (self._distinct_sizes(other),):
                    both = self.run(tried)
                    if both is not None and all(one.part != difference.part for one in differences(*both)):
                        return False
        return not self._exhausted

    def _persists_for_bytes(self, item: Input, difference: Difference) -> bool:
        """Whether the result remains different if one tensor has one-byte elements: a kernel may treat it as packed bytes, and
        view it as such. The difference also counts if the kernel rejects these, but accepts integers of the same element size.
        """
        self._renew()
        for name in item.shapes:
            both = self._of_dtype(item, name, "uint8")
            as_large = _INTEGERS.get(item.dtypes.get(name, ""), "")
            if both is None and as_large and self._of_dtype(item, name, as_large) is not None:
                return False
            if both is not None and all(one.part != difference.part for one in differences(*both)):
                return False
        return not self._exhausted

    def _of_dtype(self, item: Input, name: str, dtype: str) -> tuple[Results, Results] | None:
        """The results of both sides where a tensor has a dtype."""
        return self.run(Input(item.shapes, {**item.dtypes, name: dtype}, item.values))

    def _renew(self) -> None:
        """Allow as many further runs as at first, to confirm a difference."""
        self.runs, self.most_steps = 0, self.executor.steps + MAX_STEPS

    def _is_comparable(self, item: Input, difference: Difference, groups: Sequence[frozenset[Atom]]) -> bool:
        """Whether a size depends on the same sizes on both sides, or on those of one tensor."""
        uses: tuple[set[frozenset[Atom]], set[frozenset[Atom]]] = (set(), set())
        before = self.run(item)
        for group in groups:
            after = self.run(item.changed(group, 5 * SIZE + _next_size(item)))
            if before is None or after is None:
                return False
            for used, old, new in zip(uses, before, after, strict=True):
                if size_at(old, difference) != size_at(new, difference):
                    used.add(group)
        tensors = [{name for name, dim in group if dim >= 0} for group in uses[0] | uses[1]]
        return uses[0] == uses[1] or bool(uses[0] and uses[1] and set.intersection(*tensors))

    def _persists(self, item: Input, difference: Difference, groups: Sequence[frozenset[Atom]]) -> bool:
        """Whether sizes differ that are powers of two, each larger than the one before: one may always be a multiple of another,
        or not be larger.
        """
        self._renew()
        size = SIZE
        for group in groups:
            size *= 2
            larger = self.fitted(item.changed(group, size))
            item = larger if self.run(larger) is not None else item
        both = self.run(item)
        return both is not None and not self._exhausted and difference in differences(*both)


def _next_size(item: Input) -> int:
    sizes = [size for shape in item.shapes.values() for size in shape]
    numbers = [value for value in item.values.values() if type(value) is int]
    return max([*sizes, *numbers, SIZE]) + SIZE


def _reason(side: str, outcome: Returned | Raised | Unresolved) -> str:
    match outcome:
        case Raised():
            return f"the {side} raises `{outcome.exception}`: {outcome.message}"
        case Unresolved():
            return f"the {side}: {outcome.reason}"
    value = outcome.value
    parts = value if isinstance(value, tuple | list) else (value,)
    opaque = next((part for part in parts if isinstance(part, Opaque)), None)
    return f"the {side}: {opaque.reason if opaque is not None else 'a result that is not a tensor'}"

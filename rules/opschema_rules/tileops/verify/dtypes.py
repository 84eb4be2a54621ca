"""Derives the dtype of each tensor of a call from the one that a workload row lists."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import prod

import msgspec

from opschema_cli.schema.dtypes import DtypeExpression, canonical, is_dtype, parse_dtypes, resolve_dtypes
from opschema_rules.tileops.model import OpEntry

MAX_VARIANTS = 8
"""Maximum number of combinations to plan if a row's dtype leaves those of other tensors open."""


class Assignment(msgspec.Struct, frozen=True):
    """The dtypes of a call's tensors, by their keys in :attr:`OpEntry.dtype_keys`.

    ``variant`` distinguishes assignments for one dtype of a row (``weight:float32``); ``carried`` says whether an input that
    the call passes has the row's dtype.
    """

    dtypes: Mapping[str, str]
    variant: str
    carried: bool


def assignments(entry: OpEntry, dtype: str, passed: Collection[str]) -> list[Assignment] | str:
    """Return all dtype assignments for a row's dtype and a call with the inputs ``passed``; otherwise the reason why there is none.

    The row's dtype is that of the first input that leaves a choice and admits it, and of all others that do, unless
    ``dtype_combos`` says which go together. Where an input does not admit it, each of its dtypes makes an assignment.
    """
    if not is_dtype(dtype):
        return f"`{dtype}` is not a dtype"
    allowed = entry.dtypes.dtypes
    unread = next((name for name in passed if name not in allowed), None)
    if unread is not None:
        return f"the dtype of `{unread}` is not known"
    dtype = canonical(dtype)
    if not any(dtype in choices for choices in allowed.values()):
        return f"no tensor of the declaration may be `{dtype}`"
    return _Chooser(entry, dtype, passed).assignments()


class _Chooser:
    """The choices that one dtype of a row leaves: ``open`` are the inputs that have several, by name."""

    def __init__(self, entry: OpEntry, dtype: str, passed: Collection[str]) -> None:
        self.entry, self.dtype, self.passed = entry, dtype, passed
        self.expressions = {key: parse_dtypes(tensor.dtype or "") for key, tensor in entry.dtype_keys.items()}
        allowed = entry.dtypes.dtypes
        roots = (item.name for item in entry.inputs if item.name in allowed and not self.follows(item.name))
        self.open = {name: allowed[name] for name in roots if len(allowed[name]) > 1}

    def follows(self, key: str) -> bool:
        """Whether a tensor's dtype is another one's."""
        tokens = self.expressions[key].tokens
        return len(tokens) == 1 and tokens[0].refers

    def assignments(self) -> list[Assignment] | str:
        combos = list(_combos(self.entry))
        choices = self.from_combos(combos) if combos else self.from_unions()
        if isinstance(choices, str):
            return choices
        found = [item for item in map(self.assignment, choices) if item is not None]
        return found or f"`dtype_combos` has no combination with `{self.dtype}`"

    def from_unions(self) -> list[dict[str, str]] | str:
        """Every combination is supported: all that may have the row's dtype have it."""
        options = {name: (self.dtype,) if self.dtype in given else given for name, given in self.open.items()}
        if prod(map(len, options.values())) > MAX_VARIANTS:
            several = ", ".join(f"`{name}`" for name, given in options.items() if len(given) > 1)
            return f"`{self.dtype}` leaves too many dtypes open for {several}"
        return [dict(zip(options, chosen, strict=True)) for chosen in product(*options.values())]

    def from_combos(self, combos: list[dict[str, str]]) -> list[dict[str, str]] | str:
        """Return the declared combinations that give the row's dtype to the first input that can have it.

        Those that differ only in outputs are one, and leave these open.
        """
        first = next((name for name, given in self.open.items() if self.dtype in given), None)
        found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        for combo in combos:
            choice = {name: combo.get(name, self.dtype) for name in self.open}
            fits = all(choice[name] in given for name, given in self.open.items())
            if fits and (first is None or choice[first] == self.dtype) and self.agrees(combo, choice):
                known = found.setdefault(tuple(choice.items()), {**self.outputs(combo), **choice})
                for key, other in self.outputs(combo).items():
                    if known.get(key) != other:
                        known.pop(key, None)
        return list(found.values())

    def outputs(self, combo: Mapping[str, str]) -> dict[str, str]:
        """Dtypes of outputs under a combination."""
        allowed = self.entry.dtypes.dtypes
        keys = (key for key, tensor in self.entry.dtype_keys.items() if tensor.direction == "outputs")
        return {key: combo[key] for key in keys if combo.get(key, "") in allowed.get(key, ())}

    def agrees(self, combo: Mapping[str, str], choice: Mapping[str, str]) -> bool:
        """Whether a combination has the dtypes of inputs that follow from a choice."""
        settled = self.settled(choice)
        return all(
            settled[item.name] == combo.get(item.name, settled[item.name])
            for item in self.entry.inputs
            if item.name in settled
        )

    def settled(self, choice: Mapping[str, str]) -> dict[str, str]:
        """The dtypes that follow from a choice, where one is left."""
        given: dict[str, DtypeExpression] = {key: parse_dtypes(dtype) for key, dtype in choice.items()}
        found = resolve_dtypes({key: given.get(key, own) for key, own in self.expressions.items()})
        return {key: only[0] for key, only in found.dtypes.items() if len(only) == 1}

    def assignment(self, choice: Mapping[str, str]) -> Assignment | None:
        dtypes = self.settled(choice)
        if not all(name in dtypes for name in self.passed):
            return None
        carried = any(dtypes[name] == self.dtype for name in self.passed)
        for key, allowed in self.entry.dtypes.dtypes.items():
            if not carried and key not in dtypes and self.dtype in allowed:
                dtypes[key] = self.dtype
        others = [f"{name}:{choice[name]}" for name in self.open if choice[name] != self.dtype]
        return Assignment(dtypes, "+".join(others), carried)


def _combos(entry: OpEntry) -> Iterator[dict[str, str]]:
    """The combinations that the entry declares, under torch's own names."""
    found = entry.data_at("signature", "dtype_combos")
    for combo in found if isinstance(found, list) else ():
        pairs = combo.items() if isinstance(combo, dict) else ()
        named = {key: canonical(dtype) for key, dtype in pairs if isinstance(key, str) and isinstance(dtype, str)}
        if named:
            yield named

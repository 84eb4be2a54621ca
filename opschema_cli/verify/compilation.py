"""A call of an operator under ``torch.compile``, against the same call in eager mode.

With the backend ``aot_eager``: the operator is traced with its fake kernel and run, and no compiler is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from opschema_cli.verify.devices import out_of_memory
from opschema_cli.verify.loading import passes


def compilation_faults(
    operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any], root: str
) -> Iterator[tuple[str, str]]:
    """Differences that a call shows: ``compile``, ``compile-raises`` in code of the tree, ``compile-skipped`` with the reason."""
    name = str(operator._schema.name)
    eager, again = (_called(operator, args, kwargs) for _ in range(2))
    if not all(_same_bits(one, other) for one, other in zip(eager, again, strict=True)):
        yield "compile-skipped", f"`{name}` was not compiled: it differs from call to call"
        return
    try:
        compiled = _called(torch.compile(operator, backend="aot_eager", fullgraph=True), args, kwargs)
    except Exception as error:
        if out_of_memory(error):
            raise
        own = any(passes(cause, root) for cause in _causes(error))
        says = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if own:
            yield "compile-raises", f"`{name}` raises under torch.compile, not in eager mode: {says}"
        else:
            yield "compile-skipped", f"`{name}` was not compiled: {says}"
        return
    if len(compiled) != len(eager):
        yield "compile", f"`{name}` gives {len(compiled)} tensors under torch.compile, {len(eager)} in eager mode"
        return
    for place, (got, wanted) in enumerate(zip(compiled, eager, strict=True)):
        if difference := _difference(got, wanted):
            yield "compile", f"`{name}` tensor {place} under torch.compile is not that of eager mode: {difference}"
            return


def _called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """Return the results of a call followed by its arguments, which it may change."""
    own_args, own_kwargs = tree_map_only(Tensor, Tensor.clone, (args, kwargs))
    torch.manual_seed(0)
    result = function(*own_args, **own_kwargs)
    return [leaf for leaf in tree_leaves((result, own_args, own_kwargs)) if isinstance(leaf, Tensor)]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and those that it was raised from."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        error = error.__cause__ or error.__context__


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype is other.dtype and not _difference(one, other, exact=True)


def _difference(got: Tensor, wanted: Tensor, *, exact: bool = False) -> str:
    """The difference of two tensors, in the first line of words; empty if they are close."""
    if got.dtype is not wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype} {tuple(got.shape)}, not {wanted.dtype} {tuple(wanted.shape)}"
    tolerance = 0.0 if exact else None
    wide = torch.float64 if wanted.is_floating_point() and wanted.element_size() == 1 else wanted.dtype
    try:
        torch.testing.assert_close(got.to(wide), wanted.to(wide), equal_nan=True, rtol=tolerance, atol=tolerance)
    except AssertionError as error:
        return "; ".join(line.strip() for line in str(error).splitlines()[2:5] if line.strip()) or "its values differ"
    return ""

"""The file of tensors that a worker leaves for a cell: plain CPU tensors by name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor

from opschema_cli.verify.loading import HarnessError, RefusedError, printable
from opschema_cli.verify.model import Call

_write = torch.save  # an op library may replace it
INPUT = "in:"
"""The beginning of the names of inputs in the file of a side whose outputs may be indices into them."""

_OVERHEAD = 1 << 16

OWN = "own:"
"""Prefix of the names of results that another kernel of an operator computes in the dtypes of a call."""


def save(tensors: Mapping[str, Tensor], folder: str, cell: str) -> str:
    """Write the tensors of a cell; the file's path. Read it with ``torch.load(file, weights_only=True)``.

    Raises:
        HarnessError: they cannot be written.
    """
    path = Path(folder, blake2b(cell.encode(), digest_size=12).hexdigest() + ".pt")
    plain = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    try:
        _write(plain, path)
    except (OSError, RuntimeError) as error:
        needed = _OVERHEAD + sum(tensor.nbytes for tensor in plain.values())
        full = Path(folder).is_dir() and shutil.disk_usage(folder).free < needed
        why = "no space is left there" if full else error
        raise HarnessError(f"the results cannot be written below {folder}: {why}") from error
    return str(path)


def named(result: object, call: Call) -> dict[str, Tensor]:
    """Return the tensors that a call returned, by the declared names of outputs, or as ``output0``... if their number differs from
    the declared one.

    Raises:
        RefusedError: it is nothing that can be compared.
    """
    return {name: tensor.detach() for name, tensor in attached(result, call).items()}


def attached(result: object, call: Call) -> dict[str, Tensor]:
    """Return the same tensors without detaching them from their autograd graphs.

    Raises:
        RefusedError: it is nothing that can be compared.
    """
    if isinstance(result, Mapping):
        return {printable(str(name)): _tensor(value) for name, value in result.items() if value is not None}
    if result is None:
        return {}
    values = list(result) if isinstance(result, tuple | list) else [result]
    declared = [output.name for output in call.outputs]
    names = declared if len(declared) == len(values) else [f"output{place}" for place in range(len(values))]
    return {name: _tensor(value) for name, value in zip(names, values, strict=True) if value is not None}


def structure(result: object) -> str:
    """Container type of the tensors that a call returns: ``Tensor``, ``tuple of 2``, ``dict of a, b``. Dicts that differ only in
    their order are equal.
    """
    kind = type(result).__name__
    if isinstance(result, Mapping):
        return f"{kind} of {', '.join(sorted(printable(str(name)) for name in result))}"
    return f"{kind} of {len(result)}" if isinstance(result, tuple | list) else kind


def _tensor(value: object) -> Tensor:
    if isinstance(value, Tensor):
        if value.is_meta or value.layout is not torch.strided:
            kind = "on no device" if value.is_meta else f"{value.layout}"
            raise RefusedError(f"the call returns a tensor that is {kind}, which cannot be compared")
        return value.resolve_conj().resolve_neg()  # of a lazy view, its memory does not hold the elements
    if isinstance(value, bool | int | float):
        return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
    raise RefusedError(f"the call returns a {type(value).__name__}, which cannot be compared")

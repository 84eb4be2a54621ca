"""Checks of one side alone, around a call: they need no reference and no other side.

Fresh memory is filled with NaN (integers: the largest value), so that an element which the op never writes shows. Inputs are
compared as bits, and so is the memory between the elements of strided ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from itertools import pairwise

import msgspec
import torch
import torch.utils.deterministic
from torch import Tensor

from opschema_cli.verify.compare import bits, dtype_name, is_nan, unlike
from opschema_cli.verify.devices import pool_of_calls
from opschema_cli.verify.elements import bytes_of
from opschema_cli.verify.inputs import storage_bytes, view_like
from opschema_cli.verify.model import Call, Finding, Returned

_FILL = "fill_uninitialized_memory"
_DIRT = 0x3C
"""A byte that makes moderate numbers of every floating dtype."""
_BLOCKS, _DIRTIED = 16, 1 << 26
_TRIES = 4


@contextmanager
def poisoned(fill: bool = True) -> Iterator[None]:
    """Fill the results of ``torch.empty`` and similar functions with NaN or the largest value; with ``fill`` False only select
    torch's deterministic algorithms. Restore the previous settings afterwards.
    """
    mode = torch.get_deterministic_debug_mode()
    filled = bool(getattr(torch.utils.deterministic, _FILL))
    torch.set_deterministic_debug_mode("warn")  # `use_deterministic_algorithms` imports the compiler
    setattr(torch.utils.deterministic, _FILL, fill)
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        setattr(torch.utils.deterministic, _FILL, filled)


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot of an input: a copy of its entire storage, and the input's layout in it."""

    storage: Tensor
    shape: torch.Size
    strides: tuple[int, ...]


def snapshot(inputs: Mapping[str, Tensor]) -> dict[str, Snapshot]:
    """Copies of the inputs' storages, gaps included, on the inputs' device."""
    return {name: Snapshot(storage_bytes(x).clone(), x.shape, x.stride()) for name, x in inputs.items()}


def changed(inputs: Mapping[str, Tensor], before: Mapping[str, Snapshot], call: Call, side: str) -> list[Finding]:
    """Inputs that the call changed and may not: ``input-changed``; and memory around their elements: ``input-overrun``.

    A declared mutation that did not happen is not a finding. Bits are compared, so a NaN is equal to itself.
    """
    mutated = {spec.name for spec in call.inputs if spec.mutated}
    return [
        Finding(check=check, side=side, about=name, message=f"`{name}`: {message}")
        for name, tensor in inputs.items()
        for check, message in _changes(tensor, before[name], name in mutated)
    ]


def _changes(tensor: Tensor, before: Snapshot, mutated: bool) -> Iterator[tuple[str, str]]:
    now = storage_bytes(tensor)
    if tensor.shape != before.shape or tensor.stride() != before.strides or now.shape != before.storage.shape:
        yield (
            "input-changed",
            f"the call changed how it lies, from {tuple(before.shape)} by {before.strides} to {tuple(tensor.shape)} by "
            f"{tensor.stride()}",
        )
        return
    if torch.equal(now, before.storage):
        return
    count = int((bits(tensor) != bits(view_like(before.storage, tensor))).count_nonzero())
    if count and not mutated:
        yield (
            "input-changed",
            f"the call changed {count} of {tensor.numel()} elements, and it is not declared as mutated",
        )
    around = _outside(now, tensor).ne(_outside(before.storage, tensor)).count_nonzero()
    if around:
        yield "input-overrun", f"the call wrote {int(around)} bytes between or around its elements"


def _outside(storage: Tensor, tensor: Tensor) -> Tensor:
    """A copy of a storage in which the tensor's elements are zero."""
    copy = storage.clone()
    bits(view_like(copy, tensor)).zero_()
    return copy


def shared_storage(outputs: Mapping[str, Tensor], inputs: Mapping[str, Tensor], call: Call, side: str) -> list[Finding]:
    """Outputs that lie in the memory of an input, unless the call declares it: ``shared-storage``."""
    return [
        Finding(
            check="shared-storage",
            side=side,
            about=output,
            message=f"`{output}` lies in the memory of the input `{name}`, which is not declared",
        )
        for output, y in outputs.items()
        for name, x in inputs.items()
        if call.aliases.get(output) != name and _overlap(y, x)
    ]


def _overlap(one: Tensor, other: Tensor) -> bool:
    if one.device != other.device or not one.numel() or not other.numel():
        return False
    (start, end), (first, last) = _range(one), _range(other)
    return start < last and first < end


def _range(tensor: Tensor) -> tuple[int, int]:
    """Return the addresses of a tensor's first byte and of the byte after its last one."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (steps + 1) * tensor.element_size()


def kept(
    outputs: Mapping[str, Tensor],
    copies: Mapping[str, Tensor],
    later: Mapping[str, Tensor],
    call: Call,
    side: str,
) -> list[Finding]:
    """Report outputs that change when the op is called again: ``overwritten`` if the later call changed them, ``kept-output`` if
    they share memory with its result, so that writing to one changes the other.
    """
    found: list[Finding] = []
    for name, tensor in outputs.items():
        if name in call.aliases:
            continue
        if not _same(copies[name], tensor):
            message = f"`{name}`: a later call with other inputs changed what this one had returned"
            found.append(Finding(check="overwritten", side=side, about=name, message=message))
        elif any(_overlap(tensor, other) for other in later.values()):
            message = f"`{name}` shares memory with the result of a later call: the op keeps this tensor"
            found.append(Finding(check="kept-output", side=side, about=name, message=message))
    return found


def shared_outputs(outputs: Mapping[str, Tensor], call: Call, side: str) -> list[Finding]:
    """Outputs that lie in each other's memory, each in one piece: ``shared-outputs``."""
    whole = [(name, y) for name, y in outputs.items() if name not in call.aliases and y.is_contiguous()]
    return [
        Finding(
            check="shared-outputs",
            side=side,
            about=name,
            message=f"`{name}` lies in the memory of the output `{other}`: writing to one changes the other",
        )
        for (other, x), (name, y) in pairwise(sorted(whole, key=lambda item: item[1].data_ptr()))
        if _overlap(x, y)
    ]


def inference_tensors(outputs: Mapping[str, Tensor], side: str) -> list[Finding]:
    """Report outputs that are inference tensors as ``inference-tensor``. Outside of inference mode they can neither be changed
    nor saved for a gradient.
    """
    message = "`{}` is an inference tensor: it cannot be changed or saved for a gradient outside of inference mode"
    return [
        Finding(check="inference-tensor", side=side, about=name, message=message.format(name))
        for name, y in outputs.items()
        if y.is_inference()
    ]


def unasked_gradients(outputs: Mapping[str, Tensor], side: str) -> list[Finding]:
    """Report outputs that require a gradient after a call without gradients as ``unasked-gradient``."""
    message = "`{}` requires a gradient, though no input does and none are recorded"
    return [
        Finding(check="unasked-gradient", side=side, about=name, message=message.format(name))
        for name, y in outputs.items()
        if y.requires_grad
    ]


def metadata(outputs: Mapping[str, Tensor], call: Call, side: str) -> list[Finding]:
    """Outputs that are not as declared: ``outputs`` for missing and surplus ones, ``shape``, ``dtype``."""
    return [
        Finding(check=check, side=side, about=name, message=message)
        for name, check, message in _metadata(outputs, call)
    ]


def _metadata(outputs: Mapping[str, Tensor], call: Call) -> Iterator[tuple[str, str, str]]:
    declared = {output.name: output for output in call.outputs}
    for name in outputs.keys() - declared.keys() if declared else ():
        yield name, "outputs", f"the call returns `{name}`, which is not declared"
    for name, output in declared.items():
        if name not in outputs:
            if not output.optional:
                yield name, "outputs", f"the call does not return the declared `{name}`"
            continue
        shape, dtype = tuple(outputs[name].shape), dtype_name(outputs[name].dtype)
        if output.shape is not None and output.shape != shape:
            yield name, "shape", f"`{name}` is {shape}; the declaration says {output.shape}"
        if output.dtype is not None and output.dtype != dtype:
            yield name, "dtype", f"`{name}` is {dtype}; the declaration says {output.dtype}"


def repeats(
    first: Mapping[str, Tensor],
    again: Callable[[], Mapping[str, Tensor]],
    side: str,
    device: torch.device | str = "cpu",
) -> list[Finding]:
    """Calls twice more and compares bits with the first results, which must be copies made under :func:`poisoned`.

    The second call runs on poisoned memory as the first did: a difference is ``repeat``. The third runs on memory that holds
    ordinary numbers instead: a difference, if the second made none, is ``poison``, an output that was not written. The allocator
    may still hand out a block with poison in it, so results that hold poison are asked for several times, and those blocks kept
    meanwhile. ``again`` must give the op fresh inputs each time.
    """
    with poisoned():
        second = _unequal(first, again())
    if second:
        message = "`{}`: the same call gave other bits the second time"
        return [Finding(check="repeat", side=side, about=name, message=message.format(name)) for name in second]
    third: list[str] = []
    with poisoned(fill=False):
        kept = []
        for _ in range(_TRIES if any(map(_holds_poison, first.values())) else 1):
            with pool_of_calls(device):
                between = _dirty(first, device)
            kept.append(again())
            del between
            if third := _unequal(first, kept[-1]):
                break
    message = "`{}`: depends on what fresh memory held: elements that were not written, or a race"
    return [Finding(check="poison", side=side, about=name, message=message.format(name)) for name in third]


def differs_at_first(
    earliest: Mapping[str, Tensor], first: Mapping[str, Tensor], guarded: Callable[[], Mapping[str, Tensor]], side: str
) -> list[Finding]:
    """Compares the very first call, made in guard bands, with one made without them after it.

    A difference is ``repeat`` if a further call in bands, ``guarded``, gives what the call without them gave: otherwise it may be
    due to where the memory is.
    """
    changed = _unequal(earliest, {name: first[name] for name in earliest if name in first})
    again = guarded() if changed else {}
    message = "`{}`: the first call gave other bits than the same call after it"
    return [
        Finding(check="repeat", side=side, about=name, message=message.format(name))
        for name in changed
        if _same(first.get(name), again.get(name))
    ]


def _holds_poison(y: Tensor) -> bool:
    """Whether an element has the value that :func:`poisoned` writes to memory of this dtype."""
    if y.is_floating_point() or y.is_complex():
        return bool(is_nan(y).any())
    with poisoned():
        poison = torch.empty(1, dtype=y.dtype, device=y.device)
    return bool((bits(y) == bits(poison)).any())


def _unequal(first: Mapping[str, Tensor], again: Mapping[str, Tensor]) -> list[str]:
    return [name for name in {**first, **again} if not _same(first.get(name), again.get(name))]


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is not None and other is not None and not unlike(one, other)


def _dirty(like: Mapping[str, Tensor], device: torch.device | str) -> list[Tensor]:
    """Leave free blocks of the outputs' sizes with ordinary numbers in the allocator, several of each unless they are large. The
    returned tensors lie between them. While they live, they keep blocks from being merged into larger ones, which an allocator
    would reuse later than a block with poison.
    """
    sizes = [y.nbytes for y in like.values() for _ in range(max(1, min(_BLOCKS, _DIRTIED // max(y.nbytes, 1))))]
    return [torch.full((size,), _DIRT, dtype=torch.uint8, device=device) for size in sizes][1::2]


def returned(name: str, tensor: Tensor) -> Returned:
    """The report of an output."""
    return Returned(
        name=name,
        shape=tuple(tensor.shape),
        dtype=dtype_name(tensor.dtype),
        strides=tensor.stride(),
        digest=digest(tensor),
    )


def digest(tensor: Tensor) -> str:
    """A hash of dtype, shape and elements as bits, whatever the strides. Equal digests mean equal bits."""
    whole = tensor.detach().cpu().contiguous()
    hashed = blake2b(f"{dtype_name(whole.dtype)}{list(whole.shape)}".encode(), digest_size=16)
    if whole.nbytes:
        hashed.update(bytes_of(whole))
    return hashed.hexdigest()

"""Gradients of an op with respect to its inputs, by the graph that a call records, and how those of two sides differ.

An op that is a function of torch or an ``autograd.Function`` has gradients without saying so. They are no part of the
declaration, so nothing says what they should be but the side before. A few elements may lie at a kink or a tie, where several
derivatives are right: gradients differ only where many elements do, and by more than other roundings in between explain. Where many
elements of an input are equal, one that sorts or selects them may give each the gradient of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import torch
from torch import Tensor

from opschema_cli.verify.devices import call_on
from opschema_cli.verify.gradients import NO_FORMULA
from opschema_cli.verify.loading import described, passes
from opschema_cli.verify.model import Call, Finding, Returned
from opschema_cli.verify.results_file import attached

GRADIENT = "grad:"
"""The beginning of the names of gradients in the file of a side."""

_LAYOUTS = ("contiguous", "strided")
_SCALE, _TIED = "scale", "tied"
_MOST_ELEMENTS = 1 << 20
_OFF, _OFF_SHORT = 0.02, 0.15
"""Differences, in parts of an element and of the root mean square, that are none: of 32 and more bits, of 16 and fewer."""
_NOISE, _NOISE_SHORT = 1e-3, 0.1
"""Gradients below these fractions of the magnitude suggested by the sizes of outputs and inputs may be noise, left over from
cancellation.
"""
_MANY = 0.1


class Recorded(msgspec.Struct, frozen=True):
    """Whether each output of a call requires a gradient, the gradients by name, and findings about them."""

    required: dict[str, bool] = {}
    gradients: dict[str, Tensor] = {}
    findings: tuple[Finding, ...] = ()

    def added_to(self, reports: list[Returned]) -> list[Returned]:
        """The reports of outputs, with whether they require a gradient."""
        known = self.required
        return [
            msgspec.structs.replace(report, grad=known[report.name]) if report.name in known else report
            for report in reports
        ]


def recorded(
    device: str,
    function: Callable[[dict[str, Tensor]], object],
    drawn: Mapping[str, Tensor],
    call: Call,
    side: str,
    root: str,
) -> Recorded:
    """Call an op with inputs that require gradients, and compute these; nothing of an op that refuses them."""

    def recording(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.enable_grad():
            for tensor in tensors.values():
                tensor.requires_grad_(tensor.is_floating_point())
            outputs = attached(function(tensors), call)
            left.extend(_turned_off(side))
            return outputs

    left: list[Finding] = []
    try:
        tensors, outputs = call_on(device, recording, drawn)
    except Exception:  # many an op has no gradient, and says so as it likes
        return Recorded()
    required = {name: tensor.requires_grad for name, tensor in outputs.items()}
    ends = [tensor for tensor in outputs.values() if tensor.requires_grad]
    leaves = {name: tensor for name, tensor in tensors.items() if tensor.requires_grad}
    if not ends or sum(tensor.numel() for tensor in (*ends, *leaves.values())) > _MOST_ELEMENTS:
        return Recorded(required, findings=tuple(left))
    found = {f"{GRADIENT}{_SCALE}:{name}": _scale(leaf, ends) for name, leaf in leaves.items()}
    found |= {f"{GRADIENT}{_TIED}:{name}": _tied(leaf) for name, leaf in leaves.items()}
    for layout in _LAYOUTS:
        cotangents = [_cotangent(end, layout, seed) for seed, end in enumerate(ends)]
        try:
            gradients = torch.autograd.grad(
                ends, list(leaves.values()), cotangents, retain_graph=True, allow_unused=True
            )
        except Exception as error:
            lacks = NO_FORMULA in str(error)
            if not lacks and not passes(error, root):  # torch's own, of an op that was not written for it
                return Recorded(required, found, tuple(left))
            what = "an operator" if lacks else "the op's own backward"
            message = f"with {layout} gradients of its outputs, {what} raises {described(error, root)}"
            return Recorded(required, found, (*left, Finding(check="gradient-raises", side=side, message=message)))
        found |= {
            f"{GRADIENT}{layout}:{name}": _plain(gradient)
            for name, gradient in zip(leaves, gradients, strict=True)
            if gradient is not None
        }
    return Recorded(required, found, tuple(left))


def _turned_off(side: str) -> Iterator[Finding]:
    """Yield a finding if a call with gradients has left their recording off; a call without gradients does not show this."""
    if not torch.is_grad_enabled():
        message = "the call turns off the recording of gradients and does not restore it"
        yield Finding(check="state", side=side, about="whether gradients are recorded", message=message)


def _cotangent(output: Tensor, layout: str, seed: int) -> Tensor:
    """Return random numbers, different for each output. With equal ones, gradients could cancel in the sum of the outputs."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(output.shape, generator=generator, dtype=torch.float32).to(output.device, output.dtype)
    if layout == "contiguous" or not output.dim():
        return drawn
    wider = drawn.new_full((*drawn.shape[:-1], 2 * drawn.shape[-1] + 1), torch.nan)
    return wider[..., 1::2].copy_(drawn)


def _scale(leaf: Tensor, ends: Sequence[Tensor]) -> Tensor:
    """The magnitude of an element of the gradient, as the size of the input and of the outputs suggests it."""
    whole = sum(_norm(end) * math.sqrt(end.numel()) for end in ends)
    below = _norm(leaf) * math.sqrt(leaf.numel())
    return torch.tensor(whole / below if below else 0.0, dtype=torch.float64).nan_to_num(0.0, 0.0, 0.0)


def _tied(leaf: Tensor) -> Tensor:
    """Whether many elements of an input equal another one."""
    ordered = leaf.detach().flatten().to(torch.float64).sort().values
    return torch.tensor(int((ordered[1:] == ordered[:-1]).count_nonzero()) > _MANY * leaf.numel())


def _norm(tensor: Tensor) -> float:
    wide = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    return float(torch.linalg.vector_norm(wide))


def _plain(gradient: Tensor) -> Tensor:
    whole = gradient if gradient.layout is torch.strided else gradient.to_dense()
    return whole.detach().cpu()


def gradient_differences(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> Iterator[Finding]:
    """Gradients that after lacks or computes otherwise than before: ``gradient``, once for each input."""
    told: set[str] = set()
    for key, old in before.items():
        kind, _, rest = key.partition(":")
        layout, _, name = rest.partition(":")
        if f"{kind}:" != GRADIENT or layout not in _LAYOUTS or name in told:
            continue
        scale, tied = (before[f"{GRADIENT}{kind}:{name}"] for kind in (_SCALE, _TIED))
        alike = [other for other in after if other.startswith(f"{GRADIENT}{layout}:")]
        message = _difference(old, after.get(key), float(scale), tied=bool(tied)) if alike else ""
        if message:
            told.add(name)
            where = "" if layout == "contiguous" else ", if those of the outputs are strided,"
            yield Finding(
                check="gradient", side="after", about=name, message=f"the gradient of `{name}`{where} {message}"
            )


def _difference(old: Tensor, new: Tensor | None, scale: float, *, tied: bool) -> str:
    short = old.element_size() < 4
    noise = scale * (_NOISE_SHORT if short else _NOISE)
    a = old.to(torch.float64)
    if new is None:
        return "is missing, and was computed before" if bool((a.abs() > noise).any()) else ""
    if old.shape != new.shape or not old.numel():
        return ""
    b = new.to(torch.float64)
    held = a.isfinite()
    lost = held & ~b.isfinite()
    if old.dtype is not torch.float16 and int(lost.count_nonzero()):
        return f"is not finite at {int(lost.count_nonzero())} of {old.numel()} elements, and was finite before"
    held &= b.isfinite()
    a, b = a[held], b[held]
    if not a.numel():
        return ""
    typical = float(torch.maximum(a.abs(), b.abs()).square().mean().sqrt())
    typical = max(typical, noise)
    most, parts = int(_MANY * old.numel()), _OFF_SHORT if short else _OFF
    off = _off(a, b, typical, parts)
    if off > most and tied:
        off = _off(a.sort().values, b.sort().values, typical, parts)
    return f"differs from that of before at {off} of {old.numel()} elements" if off > most else ""


def _off(a: Tensor, b: Tensor, typical: float, parts: float) -> int:
    return int(((a - b).abs() > parts * (a.abs() + typical)).count_nonzero())

# ruff: noqa: E501
"""Further ops with faults and rewrites, which were written after the judge and before any run, to measure it on cases it had not seen."""

from __future__ import annotations

from tests.verify.variants import OPS, Op, X

_ROPE = "v = x.float(); n = x.shape[-1] // 2; p = torch.arange(len(x)).float()[:, None] * 0.7 ** torch.arange(n).float(); a, b = v[:, :n], v[:, n : 2 * n]; "
_SWIGLU = "F.silu(g.float()) * u.float()"
_LENGTHS = "m = torch.arange(x.shape[-1])[None] < i[:, None]; "
_FIR = "p = F.pad(x.float(), (1, 1)); n = x.shape[-1]; "

FURTHER = (
    Op(
        "rope",
        X,
        "n = x.shape[-1] // 2; p = torch.arange(len(x)).to(x.dtype)[:, None] * 0.7 ** torch.arange(n).to(x.dtype); a, b = x[:, :n], x[:, n : 2 * n]; "
        "return torch.cat([a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin(), x[:, 2 * n :]], -1)",
        _ROPE
        + "return torch.cat([a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin(), v[:, 2 * n :]], -1).to(x.dtype)",
        {
            "angles in float16": _ROPE
            + "p = p.half().float(); return torch.cat([a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin(), v[:, 2 * n :]], -1).to(x.dtype)",
            "positions from 1": _ROPE
            + "p = p + 0.7 ** torch.arange(n).float(); return torch.cat([a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin(), v[:, 2 * n :]], -1).to(x.dtype)",
            "the odd column is zero": _ROPE
            + "return torch.cat([a * p.cos() - b * p.sin(), b * p.cos() + a * p.sin(), v[:, 2 * n :] * 0], -1).to(x.dtype)",
        },
        {
            "complex numbers": _ROPE
            + "z = torch.complex(a.contiguous(), b.contiguous()) * torch.polar(torch.ones_like(p), p); return torch.cat([z.real, z.imag, v[:, 2 * n :]], -1).to(x.dtype)",
            "angles in float64": _ROPE
            + "p = p.double(); c, s = p.cos().float(), p.sin().float(); return torch.cat([torch.addcmul(a * c, b, -s), torch.addcmul(b * c, a, s), v[:, 2 * n :]], -1).to(x.dtype)",
        },
    ),
    Op(
        "swiglu",
        {"g": "MN", "u": "MN"},
        "F.silu(g) * u",
        f"({_SWIGLU}).to(g.dtype)",
        {
            "gate and value exchanged": "(F.silu(u.float()) * g.float()).to(g.dtype)",
            "the gate is clamped at 8": "(F.silu(g.float().clamp(max=8)) * u.float()).to(g.dtype)",
            "the gate's sigmoid has 8 bits": "s = (torch.sigmoid(g.float()) * 256).round() / 256; return (g.float() * s * u.float()).to(g.dtype)",
        },
        {
            "in float64": "(F.silu(g.double()) * u.double()).to(g.dtype)",
            "product first": "(g.float() * u.float() * torch.sigmoid(g.float())).to(g.dtype)",
            "divided by 1 + exp": "(g.float() * u.float() / (1 + torch.exp(-g.float()))).to(g.dtype)",
            "row by row in place": "y = torch.empty_like(g, memory_format=torch.contiguous_format)\nfor r in range(len(g)):\n    y[r] = (F.silu(g[r].float()).mul_(u[r].float())).to(g.dtype)\nreturn y",
        },
    ),
    Op(
        "length_mean",
        {"x": "MN", "i": "M:int64"},
        "(x.masked_fill(torch.arange(x.shape[-1])[None] >= i[:, None], 0)).sum(-1) / i.clamp(min=1)",
        _LENGTHS + "return (x.float().masked_fill(~m, 0).sum(-1) / i.clamp(min=1)).to(x.dtype)",
        {
            "one column too many": _LENGTHS.replace("<", "<=")
            + "return (x.float().masked_fill(~m, 0).sum(-1) / i.clamp(min=1)).to(x.dtype)",
            "the mask is a factor: 0 * NaN": _LENGTHS + "return ((x.float() * m).sum(-1) / i.clamp(min=1)).to(x.dtype)",
            "divides by the width": _LENGTHS
            + "return (x.float().masked_fill(~m, 0).sum(-1) / max(x.shape[-1], 1)).to(x.dtype)",
            "a length of 0 divides by 0": _LENGTHS + "return (x.float().masked_fill(~m, 0).sum(-1) / i).to(x.dtype)",
        },
        {
            "row by row": "y = x.new_empty(len(x), dtype=torch.float32)\nfor r in range(len(x)):\n    y[r] = x[r, : int(i[r])].float().sum() / max(int(i[r]), 1)\nreturn y.to(x.dtype)",
            "by where, times the reciprocal": _LENGTHS
            + "return (torch.where(m, x.float(), 0.0).sum(-1) * (1 / i.clamp(min=1).float())).to(x.dtype)",
        },
    ),
    Op(
        "row_quantize",
        X,
        "s = x.abs().amax(-1) / 127 if x.shape[-1] else x.sum(-1); return (torch.round(x / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s)",
        "v = x.float(); s = v.abs().amax(-1) / 127 if x.shape[-1] else v.sum(-1); return (torch.round(v / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s.to(x.dtype))",
        {
            "one scale for all rows": "v = x.float(); s = (v.abs().amax() / 127).expand(len(x)).clone() if v.numel() else v.sum(-1); return (torch.round(v / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s.to(x.dtype))",
            "rounds towards zero": "v = x.float(); s = v.abs().amax(-1) / 127 if x.shape[-1] else v.sum(-1); return ((v / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s.to(x.dtype))",
            "the scale of the positive numbers": "v = x.float(); s = v.amax(-1) / 127 if x.shape[-1] else v.sum(-1); return (torch.round(v / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s.to(x.dtype))",
        },
        {
            "maximum of maximum and minimum": "v = x.float(); s = torch.maximum(v.amax(-1), -v.amin(-1)) / 127 if x.shape[-1] else v.sum(-1); return (torch.round(v / s.clamp(min=2.0 ** -30)[:, None]).nan_to_num(0.0, 127.0, -127.0).clamp(-127, 127).to(torch.int8), s.to(x.dtype))",
        },
        outputs=("q", "scale"),
    ),
    Op(
        "dequant_product",
        {"x": "MK", "q": "KN:int8"},
        "x @ (q.to(x.dtype) - 8)",
        "(x.float() @ (q.float() - 8)).to(x.dtype)",
        {
            "the zero point is lost in the last column": "w = q.float() - 8; w[:, -1:] += 8; return (x.float() @ w).to(x.dtype)",
            "8 * the sum, in float16": "c = 8 * x.half().sum(-1, keepdim=True).float(); return (x.float() @ q.float() - c).to(x.dtype)",
        },
        {
            "weights in the input's dtype": "(x.float() @ (q - 8).to(x.dtype).float()).to(x.dtype)",
            "one rank at a time": "y = torch.zeros(len(x), q.shape[1])\nfor k in range(x.shape[1]):\n    y = torch.addcmul(y, x[:, k : k + 1].float(), (q[k] - 8).float())\nreturn y.to(x.dtype)",
        },
    ),
    Op(
        "fir",
        X,
        "p = F.pad(x, (1, 1)); n = x.shape[-1]; return p[:, :n] * 0.25 + p[:, 1 : n + 1] * 0.5 - p[:, 2 : n + 2]",
        _FIR + "return (p[:, :n] * 0.25 + p[:, 1 : n + 1] * 0.5 - p[:, 2 : n + 2]).to(x.dtype)",
        {
            "the taps are reversed": _FIR
            + "return (p[:, 2 : n + 2] * 0.25 + p[:, 1 : n + 1] * 0.5 - p[:, :n]).to(x.dtype)",
            "the edge is repeated": "p = torch.cat([x[:, :1], x, x[:, -1:]], -1).float(); n = x.shape[-1]; return (p[:, :n] * 0.25 + p[:, 1 : n + 1] * 0.5 - p[:, 2 : n + 2]).to(x.dtype)",
            "wraps to the other edge": "v = x.float(); return (v.roll(1, -1) * 0.25 + v * 0.5 - v.roll(-1, -1)).to(x.dtype)",
        },
        {
            "a convolution": "F.conv1d(x.float()[:, None], torch.tensor([[[0.25, 0.5, -1.0]]]), padding=1)[:, 0].to(x.dtype) if x.numel() else x.clone()",
            "fused from the right": _FIR
            + "return torch.add(torch.add(-p[:, 2 : n + 2], p[:, 1 : n + 1], alpha=0.5), p[:, :n], alpha=0.25).to(x.dtype)",
        },
    ),
    Op(
        "remainder",
        {"x": "MN", "d": "MN"},
        "torch.remainder(x, d)",
        "torch.remainder(x, d)",
        {"the sign of the dividend": "torch.fmod(x, d)", "always positive": "torch.remainder(x, d.abs())"},
        {"by fmod": "r = torch.fmod(x, d); return torch.where((r != 0) & ((r < 0) != (d < 0)), r + d, r)"},
    ),
    Op(
        "sort",
        X,
        "tuple(torch.sort(x, -1))",
        "v, i = torch.sort(x, dim=-1, stable=True); return v, i",
        {
            "NaN is smallest": "v, i = torch.sort(x.nan_to_num(-torch.inf, torch.inf, -torch.inf), dim=-1, stable=True); return x.gather(-1, i), i",
            "ties out of place": "v, i = torch.sort(x, dim=-1, stable=True); j = torch.where((v == v.roll(-1, -1)) & (v.roll(-1, -1) != v.roll(-2, -1)), i.roll(-1, -1), i); return v, j",
            "one exchange is missing": "v, i = torch.sort(x, dim=-1, stable=True); k = x.shape[-1]; o = torch.arange(k); o[k // 2 : k // 2 + 2] = o[k // 2 : k // 2 + 2].flip(0); return v[:, o], i[:, o]",
        },
        {
            "unstable, of float32": "i = torch.sort(x.float(), -1).indices; return x.gather(-1, i), i",
            "equal ones in reverse": "n = x.shape[-1]; i = n - 1 - torch.sort(x.flip(-1), dim=-1, stable=True).indices; return x.gather(-1, i), i",
        },
        outputs=("values", "indices"),
    ),
    Op(
        "counts",
        {"i": "K:int64"},
        "torch.bincount(i, minlength=16)",
        "torch.bincount(i, minlength=16)",
        {
            "bin 15 is not counted": "c = torch.bincount(i, minlength=16); c[15] = 0; return c",
            "as float32": "torch.bincount(i, minlength=16).float()",
        },
        {
            "one-hot": "F.one_hot(i, 16).sum(0)",
            "scatter_add": "torch.zeros(16, dtype=torch.int64).scatter_add_(0, i, torch.ones_like(i))",
        },
    ),
    Op(
        "cosine",
        {"x": "MN", "w": "MN"},
        "(x * w).sum(-1) / (x.square().sum(-1).sqrt() * w.square().sum(-1).sqrt()).clamp(min=1e-6)",
        "a, b = x.float(), w.float(); return ((a * b).sum(-1) / (a.square().sum(-1).sqrt() * b.square().sum(-1).sqrt()).clamp(min=1e-6)).to(x.dtype)",
        {
            "the norm of x twice": "a, b = x.float(), w.float(); return ((a * b).sum(-1) / a.square().sum(-1).clamp(min=1e-6)).to(x.dtype)",
            "the result is clamped at 0": "a, b = x.float(), w.float(); return ((a * b).sum(-1) / (a.square().sum(-1).sqrt() * b.square().sum(-1).sqrt()).clamp(min=1e-6)).clamp(min=0).to(x.dtype)",
        },
        {
            "the scalar product of unit rows in float64": "a, b = x.double(), w.double(); return ((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=1e-6)).to(x.dtype)",
            "by einsum and rsqrt": "a, b = x.float(), w.float(); s = a.square().sum(-1).sqrt() * b.square().sum(-1).sqrt(); return (torch.einsum('mn,mn->m', a, b) * (1 / s.clamp(min=1e-6))).to(x.dtype)",
        },
    ),
    Op(
        "expm1",
        X,
        "torch.expm1(x)",
        "torch.expm1(x.float()).to(x.dtype)",
        {
            "exp(x) - 1": "(torch.exp(x.float()) - 1).to(x.dtype)",
            "a series of 3 terms below 0.1": "v = x.float(); return torch.where(v.abs() < 0.1, v + v * v / 2, torch.expm1(v)).to(x.dtype)",
        },
        {
            "by tanh": "v = x.double(); t = torch.tanh(v / 2); return torch.where(v.abs() < 1, 2 * t / (1 - t), torch.exp(v) - 1).to(x.dtype)",
            "in float64": "torch.expm1(x.double()).to(x.dtype)",
        },
    ),
    Op(
        "cross_entropy",
        {"x": "MN", "i": "M:int64"},
        "torch.logsumexp(x, -1) - x.gather(-1, i.clamp(max=max(x.shape[-1] - 1, 0))[:, None])[:, 0] if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
        "(torch.logsumexp(x.float(), -1) - x.float().gather(-1, i.clamp(max=x.shape[-1] - 1)[:, None])[:, 0]).to(x.dtype) if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
        {
            "the class before": "(torch.logsumexp(x.float(), -1) - x.float().gather(-1, (i - 1).clamp(0, x.shape[-1] - 1)[:, None])[:, 0]).to(x.dtype) if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
            "label smoothing of 0.01": "(torch.logsumexp(x.float(), -1) - x.float().gather(-1, i.clamp(max=x.shape[-1] - 1)[:, None])[:, 0] * 0.99 - 0.01 * x.float().mean(-1)).to(x.dtype) if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
            "class 0 is ignored": "((torch.logsumexp(x.float(), -1) - x.float().gather(-1, i.clamp(max=x.shape[-1] - 1)[:, None])[:, 0]) * (i != 0)).to(x.dtype) if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
            "log_softmax: NaN for an infinite logit": "(-torch.log_softmax(x.float(), -1).gather(-1, i.clamp(max=x.shape[-1] - 1)[:, None])[:, 0]).to(x.dtype) if x.shape[-1] else torch.zeros(len(x), dtype=x.dtype)",
            "torch's own: NaN for an infinite logit": "F.cross_entropy(x.float(), i.clamp(max=x.shape[-1] - 1), reduction='none').to(x.dtype) if x.numel() else torch.zeros(len(x), dtype=x.dtype)",
        },
        {
            "by the difference from the class": "v = x.float(); d = v - v.gather(-1, i.clamp(max=x.shape[-1] - 1)[:, None]); return torch.logsumexp(d, -1).to(x.dtype)".replace(
                "v = x.float()", "v = x.float() if x.shape[-1] else torch.zeros(len(x), 1)"
            ).replace("x.shape[-1] - 1", "v.shape[-1] - 1"),
        },
    ),
    Op(
        "half",
        X,
        "x * 0.5",
        "x * 0.5",
        {
            "gradients stay off": "torch.set_grad_enabled(False); return x * 0.5",
            "denormals stay off": "torch.set_flush_denormal(True); return x * 0.5",
            "the first call is wrong": "w = CACHE.setdefault('first', len(KEPT)); KEPT.append(1); del KEPT[2:]; return x * (0.25 if len(KEPT) == 1 else 0.5)",
            "the fifth shape is wrong": "k = CACHE.setdefault(tuple(x.shape), len(CACHE)); return x * (0.25 if k == 4 else 0.5)",
            "unaligned starts are rounded down": "o = x.storage_offset(); return x.as_strided(x.shape, x.stride(), o - o % 2) * 0.5",
            "writes between the elements of its input": "y = x * 0.5; x.as_strided((max(sum((s - 1) * t for s, t in zip(x.shape, x.stride())) + 1, 0) if x.numel() else 0,), (1,), x.storage_offset()).mul_(1 if x.is_contiguous() else 2); x.div_(1 if x.is_contiguous() else 2); return y",
            "a stride of 0 in its output": "y = x * 0.5; return y[:1].expand(y.shape) if len(y) == 24 and y.shape[-1] == 64 and bool((y == 0).all()) else y",
            "a list": "[x * 0.5]",
            "only contiguous inputs are taken": "return x.view(-1).mul(0.5).view(x.shape)",
            "a hidden float32 result": "x.float() * 0.5 if x.shape[-1] % 2 else x * 0.5",
            "the input is returned if it is all zeros": "x if not bool(x.any()) else x * 0.5",
            "ldexp by an integer: its gradient is 0": "torch.ldexp(x.float(), torch.tensor(-1)).to(x.dtype)",
            "the gradient of a part is lost": "torch.cat([x[:1], x[1:].detach()]) * 0.5",
            "no gradient is recorded": "with torch.no_grad():\n    y = x.clone(memory_format=torch.contiguous_format)\nreturn y * 0.5",
        },
        {
            "part of a larger buffer": "b = torch.empty(x.numel() + 8, dtype=x.dtype)[: x.numel()].view(x.shape); return torch.mul(x, 0.5, out=b)",
            "division": "x / 2",
            "in place, on a copy": "x.clone(memory_format=torch.contiguous_format).mul_(0.5)",
            "ldexp": "torch.ldexp(x.float(), torch.tensor(-1.0)).to(x.dtype)",
            "random numbers whose state it restores": "s = torch.get_rng_state(); torch.rand(3); torch.set_rng_state(s); return x * 0.5",
            "modes that it restores": "n = torch.get_num_threads(); torch.set_num_threads(1); y = x * 0.5; torch.set_num_threads(n); return y",
            "a cache by shape, of 64 entries at most": "k = (x.shape, x.dtype); b = CACHE.setdefault(k, torch.empty(x.shape, dtype=x.dtype)); y = torch.mul(x, 0.5, out=b).clone(); CACHE.pop(next(iter(CACHE))) if len(CACHE) > 64 else None; return y",
        },
    ),
)

ALL = (*OPS, *FURTHER)

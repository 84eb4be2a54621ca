# ruff: noqa: E501
"""Sound ops, faults of them and legitimate rewrites, for tables of what `opschema verify` finds and of what it must let pass.

Each op is the text of a function of its inputs; faults and rewrites replace the text. ``F`` is ``torch.nn.functional``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Op(NamedTuple):
    """An op: ``inputs`` are axes by name, or axes, a colon and a dtype; a text without ``return`` is an expression. ``kernel`` is C++
    that all of its texts call as ``kernel``, ``kernels`` replaces that by the names of faults and rewrites.
    """

    name: str
    inputs: Mapping[str, str]
    reference: str
    sound: str
    faults: Mapping[str, str]
    rewrites: Mapping[str, str]
    outputs: tuple[str, ...] = ("y",)
    mutated: str = ""
    deterministic: bool = True
    kernel: str = ""


X = {"x": "MN"}

ELEMENTWISE = (
    Op(
        "silu",
        X,
        "F.silu(x)",
        "F.silu(x.float()).to(x.dtype)",
        {
            "wrong from 8 to 1000": "torch.where((x > 8) & (x < 1000), 0.99 * x, F.silu(x.float()).to(x.dtype))",
            "hard sigmoid beyond 5": "(x * torch.where(x.abs() > 5, (x > 0).float(), torch.sigmoid(x.float()))).to(x.dtype)",
            "exp(x) in the numerator: NaN from 89 up": "v = x.float(); return (v * v.exp() / (1 + v.exp())).to(x.dtype)",
            "-0.0 becomes 0.0": "F.silu(x.float()).to(x.dtype) + 0.0",
        },
        {
            "x / (1 + exp(-x))": "v = x.float(); return (v / (1 + torch.exp(-v))).to(x.dtype)",
            "x * sigmoid(x)": "v = x.float(); return (v * torch.sigmoid(v)).to(x.dtype)",
            "by tanh": "v = x.float(); return (0.5 * v * (1 + torch.tanh(0.5 * v))).to(x.dtype)",
        },
    ),
    Op(
        "gelu",
        X,
        "F.gelu(x)",
        "F.gelu(x.float()).to(x.dtype)",
        {
            "wrong from 4 to 100": "torch.where((x > 4) & (x < 100), 1.01 * x, F.gelu(x.float()).to(x.dtype))",
            "tanh approximation": "F.gelu(x.float(), approximate='tanh').to(x.dtype)",
        },
        {
            "by erf": "v = x.float(); return (0.5 * v * (1 + torch.erf(v * 0.7071067811865476))).to(x.dtype)",
            "by erfc": "v = x.float(); return (0.5 * v * torch.erfc(v * -0.7071067811865476)).to(x.dtype)",
            "in float64": "F.gelu(x.double()).to(x.dtype)",
        },
    ),
    Op(
        "sigmoid",
        X,
        "torch.sigmoid(x)",
        "torch.sigmoid(x.float()).to(x.dtype)",
        {
            "0 below -4": "torch.where(x < -4, 0.0, torch.sigmoid(x.float())).to(x.dtype)",
            "1 above 6": "torch.where(x > 6, 1.0, torch.sigmoid(x.float())).to(x.dtype)",
            "NaN where exp overflows": "v = x.float(); return (v.exp() / (1 + v.exp())).to(x.dtype)",
        },
        {
            "1 / (1 + exp(-x))": "(1 / (1 + torch.exp(-x.float()))).to(x.dtype)",
            "by tanh": "(0.5 + 0.5 * torch.tanh(0.5 * x.float())).to(x.dtype)",
            "by the sign": "v = x.float(); e = torch.exp(-v.abs()); return torch.where(v >= 0, 1 / (1 + e), e / (1 + e)).to(x.dtype)",
        },
    ),
    Op(
        "softplus",
        X,
        "torch.logaddexp(x, torch.zeros_like(x))",
        "torch.logaddexp(x.float(), torch.zeros_like(x.float())).to(x.dtype)",
        {
            "infinite from 89 up": "torch.log(1 + torch.exp(x.float())).to(x.dtype)",
            "linear from 5 up": "torch.where(x > 5, x.float(), F.softplus(x.float())).to(x.dtype)",
        },
        {
            "max(x, 0) + log1p(exp(-|x|))": "v = x.float(); return (v.relu() + torch.log1p(torch.exp(-v.abs()))).to(x.dtype)",
            "-log sigmoid(-x)": "(-F.logsigmoid(-x.float())).to(x.dtype)",
        },
    ),
    Op(
        "tanh",
        X,
        "torch.tanh(x)",
        "torch.tanh(x.float()).to(x.dtype)",
        {
            "rational approximation": "v = x.float().clamp(-3, 3); return (v * (27 + v * v) / (27 + 9 * v * v)).to(x.dtype)",
            "NaN for large": "v = x.float(); return ((torch.exp(2 * v) - 1) / (torch.exp(2 * v) + 1)).to(x.dtype)",
        },
        {
            "in float64": "torch.tanh(x.double()).to(x.dtype)",
            "by expm1": "e = torch.expm1(-2 * x.double().abs()); return torch.copysign(-e / (e + 2), x.double()).to(x.dtype)",
        },
    ),
    Op(
        "neg",
        X,
        "-x",
        "-x",
        {"0 - x loses the sign of zero": "0 - x", "NaN becomes 0": "(-x).nan_to_num(0.0, torch.inf, -torch.inf)"},
        {"x * -1": "x * -1", "by bits of float64": "(-x.double()).to(x.dtype)"},
    ),
    Op(
        "relu6",
        X,
        "x.clamp(0, 6)",
        "x.clamp(0, 6)",
        {
            "no upper bound beyond 32": "torch.where(x > 32, x, x.clamp(0, 6))",
            "NaN becomes 0": "torch.where(x > 0, x, torch.zeros_like(x)).clamp(max=6)",
        },
        {
            "minimum and maximum": "torch.minimum(torch.maximum(x, x.new_zeros(())), x.new_full((), 6.0))",
            "where": "torch.where(x <= 0, 0.0, torch.where(x > 6, 6.0, x)).to(x.dtype)",
            "hardtanh": "F.hardtanh(x, 0.0, 6.0)",
        },
    ),
    Op(
        "hardswish",
        X,
        "x * (x + 3).clamp(0, 6) / 6",
        "v = x.float(); return (v * (v + 3).clamp(0, 6) / 6).to(x.dtype)",
        {"from -2 instead of -3": "v = x.float(); return (v * (v + 3).clamp(1, 6) / 6).to(x.dtype)"},
        {
            "torch's own": "F.hardswish(x.float()).to(x.dtype)",
            "in pieces": "v = x.float(); m = v * (v + 3) * (1 / 6); y = torch.where(v >= 3, v, m); "
            "return torch.where(v <= -3, v * 0, y).to(x.dtype)",
        },
    ),
    Op(
        "round",
        X,
        "torch.round(x)",
        "torch.round(x)",
        {"halves go up": "torch.floor(x.float() + 0.5).to(x.dtype)", "towards zero": "torch.trunc(x)"},
        {"in float64": "torch.round(x.double()).to(x.dtype)"},
    ),
    Op(
        "quantize",
        X,
        "torch.round(x.nan_to_num(0.0, 1e9, -1e9) * 16).clamp(-128, 127).to(torch.int8)",
        "torch.round(x.float().nan_to_num(0.0, 1e9, -1e9) * 16).clamp(-128, 127).to(torch.int8)",
        {
            "wraps instead of saturating": "torch.round(x.float().nan_to_num(0.0, 1e9, -1e9) * 16).to(torch.int32).to(torch.int8)",
            "truncates": "(x.float().nan_to_num(0.0, 1e9, -1e9) * 16).clamp(-128, 127).to(torch.int8)",
        },
        {"clamped first": "torch.round((x.double().nan_to_num(0.0, 1e9, -1e9) * 16).clamp(-128, 127)).to(torch.int8)"},
    ),
    Op(
        "divide",
        {"x": "MN", "d": "MN"},
        "x / d",
        "(x.float() / d.float()).to(x.dtype)",
        {
            "reciprocal of 12 bits": "r = 1 / d.float(); r = (r * 4096 / 2 ** r.abs().log2().floor()).round() * 2 ** r.abs().log2().floor() / 4096; "
            "return (x.float() * r).to(x.dtype)",
            "guards the zero": "(x.float() / (d.float() + 1e-6)).to(x.dtype)",
        },
        {"by the reciprocal": "(x.float() * (1 / d.float())).to(x.dtype)"},
    ),
)

REDUCTIONS = (
    Op(
        "softmax",
        X,
        "torch.softmax(x, -1)",
        "torch.softmax(x.float(), -1).to(x.dtype)",
        {
            "without the maximum": "e = torch.exp(x.float()); return (e / e.sum(-1, keepdim=True)).to(x.dtype)",
            "sums in float16": "e = torch.exp(x.float() - x.float().amax(-1, keepdim=True)); "
            "return (e / e.half().cumsum(-1)[..., -1:].float()).to(x.dtype)",
            "only the first 1024 columns are summed": "e = torch.exp(x.float() - x.float().amax(-1, keepdim=True)); "
            "return (e / e[..., :1024].sum(-1, keepdim=True)).to(x.dtype)",
        },
        {
            "by exp2": "v = (x.float() - x.float().amax(-1, keepdim=True)) * 1.4426950408889634; "
            "e = torch.exp2(v); return (e / e.sum(-1, keepdim=True)).to(x.dtype)",
            "exp of log_softmax": "torch.log_softmax(x.float(), -1).exp().to(x.dtype)",
            "online, by blocks": """
m, s = torch.full(x.shape[:-1], -torch.inf), torch.zeros(x.shape[:-1])
for part in x.float().split(32, -1):
    new = torch.maximum(m, part.amax(-1))
    s = s * torch.exp(m - new).nan_to_num(0.0) + torch.exp(part - new[..., None]).sum(-1)
    m = new
return (torch.exp(x.float() - m[..., None]) / s[..., None]).to(x.dtype)
""",
            "times the reciprocal": "v = x.float(); e = torch.exp(v - v.amax(-1, keepdim=True)); "
            "return (e * (1 / e.sum(-1, keepdim=True))).to(x.dtype)",
        },
    ),
    Op(
        "logsumexp",
        X,
        "torch.logsumexp(x, -1)",
        "torch.logsumexp(x.float(), -1).to(x.dtype)",
        {
            "without the maximum": "torch.exp(x.float()).sum(-1).log().to(x.dtype)",
            "one column less in odd rows": "torch.logsumexp(x.float()[..., : x.shape[-1] // 2 * 2], -1).to(x.dtype)",
        },
        {
            "by the maximum of the row": "v = x.float(); m = v.amax(-1, keepdim=True); m = torch.where(m.isfinite(), m, 0.0); "
            "return (torch.exp(v - m).sum(-1).log() + m[..., 0]).to(x.dtype)",
            "in two halves": "a, b = x.float().tensor_split(2, -1); "
            "return torch.logaddexp(torch.logsumexp(a, -1), torch.logsumexp(b, -1)).to(x.dtype)",
        },
    ),
    Op(
        "row_sum",
        X,
        "x.sum(-1)",
        "x.float().sum(-1).to(x.dtype)",
        {
            "partial sums in float16": "torch.stack([p.half().cumsum(-1)[..., -1] for p in x.split(16, -1) if p.shape[-1]] or "
            "[x.half().sum(-1)], -1).float().sum(-1).to(x.dtype)",
            "beyond 2048 columns are left out": "x[..., :2048].float().sum(-1).to(x.dtype)",
            "the first row of one column is doubled": "y = x.float().sum(-1); y[:1] *= 1 + (x.shape[-1] == 1); return y.to(x.dtype)",
        },
        {
            "in reverse": "x.float().flip(-1).sum(-1).to(x.dtype)",
            "one after the other": "y = torch.zeros(x.shape[:-1])\nfor c in x.float().unbind(-1):\n    y = y + c\nreturn y.to(x.dtype)",
            "in blocks of 32": "torch.stack([p.sum(-1) for p in x.float().split(32, -1)], -1).sum(-1).to(x.dtype)",
            "a product with ones": "(x.float() @ torch.ones(x.shape[-1])).to(x.dtype)",
            "in float64": "x.double().sum(-1).to(x.dtype)",
        },
    ),
    Op(
        "window_mean",
        X,
        "F.avg_pool1d(F.pad(x, (0, 3)).unsqueeze(1), 4, 1)[:, 0] if x.numel() else x.clone()",
        "F.pad(x.float(), (0, 3)).unfold(-1, 4, 1).sum(-1).mul(0.25).to(x.dtype)",
        {
            "sums in float16": "F.pad(x.half(), (0, 3)).unfold(-1, 4, 1).sum(-1).half().float().mul(0.25).to(x.dtype)",
            "the last window is cut": "y = F.pad(x.float(), (0, 3)).unfold(-1, 4, 1).sum(-1).mul(0.25); "
            "y[..., -1:] *= 4 if x.shape[-1] % 2 else 1; return y.to(x.dtype)",
        },
        {
            "four shifted sums": "p = F.pad(x.float(), (0, 3)); n = x.shape[-1]; "
            "return ((p[..., :n] + p[..., 1 : n + 1] + p[..., 2 : n + 2] + p[..., 3 : n + 3]) * 0.25).to(x.dtype)",
            "means of pairs": "p = F.pad(x.float(), (0, 3)) * 0.25; n = x.shape[-1]; "
            "return ((p[..., :n] + p[..., 1 : n + 1]) + (p[..., 2 : n + 2] + p[..., 3 : n + 3])).to(x.dtype)",
        },
    ),
    Op(
        "variance",
        X,
        "x.var(-1, correction=0)",
        "x.float().var(-1, correction=0).to(x.dtype)",
        {
            "divides by N - 1": "x.float().var(-1, correction=1).to(x.dtype)",
            "squares in the input's dtype": "v = x - x.float().mean(-1, keepdim=True).to(x.dtype); return (v * v).float().mean(-1).to(x.dtype)",
        },
        {
            "two passes": "v = x.float(); return (v - v.mean(-1, keepdim=True)).square().mean(-1).to(x.dtype)",
            "joined halves": """
v = x.float()
a, b = v.tensor_split(2, -1)
n, m = a.shape[-1], b.shape[-1]
if not n or not m:
    return v.var(-1, correction=0).to(x.dtype)
d = b.mean(-1) - a.mean(-1)
return ((a.var(-1, correction=0) * n + b.var(-1, correction=0) * m + d * d * n * m / (n + m)) / (n + m)).to(x.dtype)
""",
        },
    ),
    Op(
        "rms_norm",
        {"x": "MN", "w": "N"},
        "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w",
        "v = x.float(); return (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)",
        {
            "squares in float16": "v = x.float(); return (v * torch.rsqrt(x.half().square().float().mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)",
            "eps of 1e-5": "v = x.float(); return (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-5) * w.float()).to(x.dtype)",
            "the weights of the second half are the first's": "v = x.float(); n = (x.shape[-1] + 1) // 2; "
            "return (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6) * w.float()[:n].repeat(2)[: x.shape[-1]]).to(x.dtype)",
        },
        {
            "divided by the root": "v = x.float(); return (v / torch.sqrt(v.square().mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)",
            "by the norm": "v = x.float(); n = max(x.shape[-1], 1); s = (v * v).sum(-1, keepdim=True) * (1 / n); "
            "return (v * (s + 1e-6) ** -0.5 * w.float()).to(x.dtype)",
            "weight first": "v = x.float(); return (v * w.float() * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype)",
        },
    ),
    Op(
        "layer_norm",
        {"x": "MN", "w": "N", "b": "N"},
        "(x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5) * w + b",
        "v = x.float(); return ((v - v.mean(-1, keepdim=True)) * torch.rsqrt(v.var(-1, correction=0, keepdim=True) + 1e-5) * w.float() + b.float()).to(x.dtype)",
        {
            "eps outside of the root": "v = x.float(); return ((v - v.mean(-1, keepdim=True)) / (v.var(-1, correction=0, keepdim=True).sqrt() + 1e-5) * w.float() + b.float()).to(x.dtype)",
            "the bias of the first row for all": "v = x.float(); y = ((v - v.mean(-1, keepdim=True)) * torch.rsqrt(v.var(-1, correction=0, keepdim=True) + 1e-5) * w.float() + b.float().roll(1)).to(x.dtype); return y",
        },
        {
            "torch's own": "F.layer_norm(x.float(), x.shape[-1:], w.float(), b.float(), 1e-5).to(x.dtype) if x.shape[-1] else x.clone()",
            "two passes, divided": "v = x.float(); c = v - v.mean(-1, keepdim=True); "
            "return (c / torch.sqrt(c.square().mean(-1, keepdim=True) + 1e-5) * w.float() + b.float()).to(x.dtype)",
            "weight joined to the scale": "v = x.float(); c = v - v.mean(-1, keepdim=True); "
            "return torch.addcmul(b.float(), c, torch.rsqrt(c.square().mean(-1, keepdim=True) + 1e-5) * w.float()).to(x.dtype)",
        },
    ),
    Op(
        "prefix_sum",
        X,
        "x.cumsum(-1)",
        "x.float().cumsum(-1).to(x.dtype)",
        {
            "starts again after 1024": "torch.cat([p.float().cumsum(-1) for p in x.split(1024, -1)], -1).to(x.dtype)",
            "the carry is rounded": """
carry, parts = torch.zeros(x.shape[0], 1, dtype=x.dtype), []
for p in x.split(32, -1):
    parts.append(p.float().cumsum(-1) + carry.float())
    carry = parts[-1][:, -1:].bfloat16().to(x.dtype) if p.shape[-1] else carry
return torch.cat(parts, -1).to(x.dtype)
""",
        },
        {
            "in blocks with a carry": """
carry, parts = torch.zeros(x.shape[0], 1), []
for p in x.float().split(32, -1):
    parts.append(p.cumsum(-1) + carry)
    carry = parts[-1][:, -1:] if p.shape[-1] else carry
return torch.cat(parts, -1).to(x.dtype)
""",
            "in float64": "x.double().cumsum(-1).to(x.dtype)",
        },
    ),
)

INDICES = (
    Op(
        "argmax",
        X,
        "x.argmax(-1)",
        "x.argmax(-1)",
        {
            "as int32": "x.argmax(-1).int()",
            "of magnitudes": "x.abs().argmax(-1)",
            "NaN never wins": "x.nan_to_num(-torch.inf, torch.inf, -torch.inf).argmax(-1)",
            "after rounding to bfloat16": "x.bfloat16().argmax(-1)",
        },
        {
            "the last of equal ones": "x.shape[-1] - 1 - x.flip(-1).argmax(-1)",
            "by topk": "x.float().topk(1, -1).indices[..., 0]",
            "by max": "x.max(-1).indices",
        },
    ),
    Op(
        "top3",
        X,
        "tuple(x.topk(min(3, x.shape[-1]), -1))",
        "tuple(x.topk(min(3, x.shape[-1]), -1))",
        {
            "an index twice": "v, i = x.topk(min(3, x.shape[-1]), -1); i = torch.stack([(x == u[:, None]).float().argmax(-1) for u in v.unbind(-1)], -1) if i.numel() else i; return v, i",
            "not in order": "v, i = x.topk(min(3, x.shape[-1]), -1); return v.flip(-1), i.flip(-1)",
        },
        {
            "by a stable sort": "v, i = torch.sort(x, dim=-1, descending=True, stable=True); return v[..., :3].contiguous(), i[..., :3].contiguous()",
            "by argsort of the reverse": "n = x.shape[-1]; i = (n - 1 - torch.argsort(x.flip(-1), dim=-1, descending=True, stable=True))[..., :3].contiguous(); return x.gather(-1, i), i",
        },
        outputs=("values", "indices"),
    ),
    Op(
        "lookup",
        {"table": "MN", "i": "K:int64"},
        "table[i]",
        "table[i]",
        {
            "row 5 and above are row 5": "table[i.clamp(max=5)]",
            "the last of an odd number is row 0": "y = table[i]; y[-1:] = table[:1] if len(i) % 2 else y[-1:]; return y",
        },
        {"index_select": "table.index_select(0, i)", "embedding": "F.embedding(i, table)"},
    ),
    Op(
        "scatter",
        {"x": "KN", "i": "K:int64"},
        "torch.zeros(16, x.shape[-1], dtype=x.dtype).index_add(0, i, x)",
        "order = torch.randperm(len(i), generator=G); y = torch.zeros(16, x.shape[-1])\n"
        "for place in order.tolist():\n    y[i[place]] += x[place].float()\nreturn y.to(x.dtype)",
        {
            "an update is lost now and then": "order = torch.randperm(len(i), generator=G)[int(torch.randint(3, (), generator=G)) == 0 :]; y = torch.zeros(16, x.shape[-1])\n"
            "for place in order.tolist():\n    y[i[place]] += x[place].float()\nreturn y.to(x.dtype)",
            "adds in the output's dtype": "y = torch.zeros(16, x.shape[-1], dtype=torch.bfloat16)\n"
            "for place in torch.randperm(len(i), generator=G).tolist():\n    y[i[place]] += x[place].bfloat16()\nreturn y.to(x.dtype)",
        },
        {
            "in order": "torch.zeros(16, x.shape[-1]).index_add(0, i, x.float()).to(x.dtype)",
            "in another random order": "order = torch.randperm(len(i), generator=G).flip(0); y = torch.zeros(16, x.shape[-1])\n"
            "for place in order.tolist():\n    y[i[place]] += x[place].float()\nreturn y.to(x.dtype)",
        },
        deterministic=False,
    ),
)

_CALLS = "x, w = x.float(), w.float()\n"

PRODUCTS = (
    Op(
        "product",
        {"x": "MK", "w": "KN"},
        "x @ w",
        "(x.float() @ w.float()).to(x.dtype)",
        {
            "the last of an odd K is left out": "k = x.shape[-1] // 2 * 2; return (x[:, :k].float() @ w[:k].float()).to(x.dtype)",
            "inputs of 10 bits (TF32)": "t = lambda v: (v.float().view(torch.int32) & ~0x1FFF).view(torch.float32); return (t(x.contiguous()) @ t(w.contiguous())).to(x.dtype)",
            "sums in bfloat16": "y = torch.zeros(x.shape[0], w.shape[1], dtype=torch.bfloat16)\n"
            "for p, q in zip(x.split(8, 1), w.split(8, 0)):\n    y = y + (p.float() @ q.float()).bfloat16()\nreturn y.to(x.dtype)",
            "takes strides for granted": "d = x.as_strided(x.shape, (x.shape[1], 1), x.storage_offset()); return (d.float() @ w.float()).to(x.dtype)",
        },
        {
            "einsum": "torch.einsum('mk,kn->mn', x.float(), w.float()).to(x.dtype)",
            "split K": "y = torch.zeros(x.shape[0], w.shape[1])\n"
            "for p, q in zip(x.float().split(16, 1), w.float().split(16, 0)):\n    y = y + p @ q\nreturn y.to(x.dtype)",
            "transposed": "(w.float().t() @ x.float().t()).t().contiguous().to(x.dtype)",
            "products summed": "(x.float()[:, :, None] * w.float()[None]).sum(1).to(x.dtype)",
        },
    ),
    Op(
        "attention",
        {"q": "MK", "k": "NK", "v": "NK"},
        "torch.softmax(q @ k.t() / max(q.shape[-1], 1) ** 0.5, -1) @ v",
        "(torch.softmax(q.float() @ k.float().t() / max(q.shape[-1], 1) ** 0.5, -1) @ v.float()).to(q.dtype)",
        {
            "the scale of another width": "(torch.softmax(q.float() @ k.float().t() / (max(q.shape[-1], 1) + 1) ** 0.5, -1) @ v.float()).to(q.dtype)",
            "the last key is not seen": "p = torch.softmax((q.float() @ k.float().t() / max(q.shape[-1], 1) ** 0.5)[:, : max(k.shape[0] - 1, 1)], -1); return (p @ v.float()[: p.shape[1]]).to(q.dtype)",
        },
        {
            "scaled first": "s = max(q.shape[-1], 1) ** -0.5; return (torch.softmax((q.float() * s) @ k.float().t(), -1) @ v.float()).to(q.dtype)",
            "normalized last": "s = q.float() @ k.float().t() / max(q.shape[-1], 1) ** 0.5; e = torch.exp(s - s.amax(-1, keepdim=True)); return ((e @ v.float()) / e.sum(-1, keepdim=True)).to(q.dtype)",
            "torch's own": "F.scaled_dot_product_attention(q.float()[None], k.float()[None], v.float()[None])[0].to(q.dtype) if q.numel() and k.numel() else (torch.softmax(q.float() @ k.float().t(), -1) @ v.float()).to(q.dtype)",
        },
    ),
)

STATE = (
    Op(
        "add_into",
        {"x": "MN", "d": "MN"},
        "x.add_(d); return x",
        "return x.add_(d)",
        {
            "returns a new tensor": "return x + d",
            "writes its other input": "d.mul_(1.5); return x.add_(d / 1.5)",
        },
        {"by out": "return torch.add(x, d, out=x)", "+=": "x += d; return x"},
        mutated="x",
    ),
    Op(
        "shift",
        X,
        "x - x.mean(0, keepdim=True)",
        "(x.float() - x.float().mean(0, keepdim=True)).to(x.dtype)",
        {
            "keeps every result": "y = (x.float() - x.float().mean(0, keepdim=True)).to(x.dtype); KEPT.append(y); return y.clone()",
            "returns a buffer that it keeps": "y = (x.float() - x.float().mean(0, keepdim=True)).to(x.dtype); "
            "b = CACHE.setdefault((x.shape, x.dtype), torch.empty(x.shape, dtype=x.dtype)); return b.copy_(y)",
            "a mean of the first call for each shape": "m = CACHE.setdefault((x.shape, x.dtype), x.float().mean(0, keepdim=True)); return (x.float() - m).to(x.dtype)",
            "a row of fresh memory is not written": "y = torch.empty(x.shape, dtype=x.dtype); y[:-1] = (x.float() - x.float().mean(0, keepdim=True))[:-1].to(x.dtype); return y",
            "draws random numbers": "torch.rand(()); return (x.float() - x.float().mean(0, keepdim=True)).to(x.dtype)",
            "other strides": "(x.float() - x.float().mean(0, keepdim=True)).to(x.dtype).t().contiguous().t()",
            "refuses no rows": "if not len(x):\n    raise ValueError('no rows')\nreturn (x.float() - x.float().mean(0, keepdim=True)).to(x.dtype)",
        },
        {
            "by a product": "n = max(len(x), 1); m = torch.full((1, len(x)), 1 / n) @ x.float() if len(x) else torch.nan; return (x.float() - m).to(x.dtype)",
            "with a workspace that it keeps": "b = CACHE.setdefault((x.shape, x.dtype), torch.empty(x.shape)); b.copy_(x); b.sub_(b.mean(0, keepdim=True)); return b.to(x.dtype, copy=True)",
            "a bounded cache": "KEPT.append(x.float().mean(0, keepdim=True)); del KEPT[:-2]; return (x.float() - KEPT[-1]).to(x.dtype)",
        },
    ),
    Op(
        "strict_scale",
        {"x": "MN", "w": "N"},
        "x * w",
        "if x.dim() != 2 or w.shape != x.shape[-1:] or not x.is_floating_point():\n    raise ValueError(f'x and w do not fit: {tuple(x.shape)}, {tuple(w.shape)}')\nreturn (x.float() * w.float()).to(x.dtype)",
        {
            "any dtype is taken": "if x.dim() != 2 or w.shape != x.shape[-1:]:\n    raise ValueError('x and w do not fit')\nreturn (x.float() * w.float()).to(x.dtype)",
            "any number of axes is taken": "if w.shape != x.shape[-1:] or not x.is_floating_point():\n    raise ValueError('x and w do not fit')\nreturn (x.float() * w.float()).to(x.dtype)",
            "rows beyond 64 are not scaled": "if x.dim() != 2 or w.shape != x.shape[-1:] or not x.is_floating_point():\n    raise ValueError('no')\ny = (x.float() * w.float()).to(x.dtype); y[:, 2000:] = x[:, 2000:]; return y",
        },
        {
            "other words of the refusal": "if x.dim() != 2 or w.shape != x.shape[-1:] or not x.is_floating_point():\n    raise TypeError('strict_scale takes a matrix and a row')\nreturn (w.float() * x.float()).to(x.dtype)",
            "in the input's dtype": "if x.dim() != 2 or w.shape != x.shape[-1:] or not x.is_floating_point():\n    raise ValueError('x and w')\nreturn x * w",
        },
    ),
)

_ROWS = """
#include <cmath>
#include <cstdint>
extern "C" void kernel(const float *x, float *y, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    const float *a = x + row * columns;
    float *b = y + row * columns;
    BODY
  }
}
"""
_COMPILED = "v = x.float().contiguous(); y = torch.empty_like(v); kernel(v, y); return y.to(x.dtype)"


def rows_kernel(body: str) -> str:
    """C++ for every row ``a`` of ``columns`` elements, whose result is ``b``."""
    return _ROWS.replace("BODY", body)


_SOFT = """
    float top = -INFINITY, total = 0;
    for (int64_t i = 0; i < columns; ++i) if (a[i] > top || std::isnan(a[i])) top = a[i];
    for (int64_t i = 0; i < columns; ++i) total += expf(a[i] - top);
    for (int64_t i = 0; i < columns; ++i) b[i] = expf(a[i] - top) / total;
"""
_SCAN = "float s = 0; for (int64_t i = 0; i < columns; ++i) b[i] = s += a[i];"
_SCALE = "float s = 0; for (int64_t i = 0; i < columns; ++i) s += a[i] * a[i]; for (int64_t i = 0; i < columns; ++i) b[i] = a[i] / sqrtf(s + 1);"

COMPILED = (
    Op(
        "cpp_softmax",
        X,
        "torch.softmax(x, -1)",
        rows_kernel(_SOFT),
        {
            "the maximum of the first tile of 64": rows_kernel(
                _SOFT.replace("i < columns; ++i) if", "i < columns && i < 64; ++i) if")
            ),
            "the tail of 4 is not written": rows_kernel(
                _SOFT.replace("i < columns; ++i) b", "i < columns / 4 * 4; ++i) b")
            ),
            "an int16 counts": rows_kernel(
                _SOFT.replace(
                    "int64_t i = 0; i < columns; ++i) total", "int16_t i = 0; i < (int16_t)(columns & 1023); ++i) total"
                )
            ),
        },
        {
            "two partial sums": rows_kernel(
                _SOFT.replace(
                    "total += expf(a[i] - top);", "(i % 2 ? odd : total) += expf(a[i] - top); total += odd;"
                ).replace("total = 0;", "total = 0, odd = 0;")
            ),
            "sums in double": rows_kernel(
                _SOFT.replace("float top = -INFINITY, total = 0;", "float top = -INFINITY; double total = 0;")
            ),
            "times the reciprocal": rows_kernel(_SOFT.replace("/ total", "* (1.0f / total)")),
        },
        kernel="rows",
    ),
    Op(
        "cpp_scan",
        X,
        "x.cumsum(-1)",
        rows_kernel(_SCAN),
        {
            "the sum goes on into the next row": rows_kernel(
                _SCAN.replace("float s", "static float s; if (row % 4 == 0) s")
            ),
            "compensates with the wrong sign": rows_kernel(
                "float s = 0, c = 0; for (int64_t i = 0; i < columns; ++i) { float t = s + a[i]; c = t - s - a[i]; s = t + c; b[i] = s; }"
            ),
            "a thread's partial sum is late": rows_kernel(
                "static int calls = 0; float s = 0; for (int64_t i = 0; i < columns; ++i) b[i] = s += a[i]; if (row == 0 && columns && ++calls % 3 == 0) b[columns - 1] -= a[0] + 1;"
            ),
        },
        {
            "compensated": rows_kernel(
                "float s = 0, c = 0; for (int64_t i = 0; i < columns; ++i) { float z = a[i] - c; float t = s + z; c = (t - s) - z; if (!std::isfinite(c)) c = 0; b[i] = s = t; }"
            ),
            "in double": rows_kernel(_SCAN.replace("float s", "double s")),
        },
        kernel="rows",
    ),
    Op(
        "cpp_unit",
        X,
        "x / torch.sqrt(x.square().sum(-1, keepdim=True) + 1)",
        rows_kernel(_SCALE),
        {
            "squares wrap at 65504": rows_kernel(
                _SCALE.replace("s += a[i] * a[i]", "s += fminf(a[i] * a[i], 65504.0f)")
            ),
            "denormals are flushed": rows_kernel(
                _SCALE.replace("b[i] = a[i] /", "b[i] = (fabsf(a[i]) < 1.1754944e-38f ? 0.0f : a[i]) /")
            ),
            "reads one element of the next row": rows_kernel(
                _SCALE.replace("i < columns; ++i) s", "i < columns + (row + 1 < rows); ++i) s")
            ),
        },
        {
            "four lanes": rows_kernel(
                "float s[4] = {0, 0, 0, 0}; for (int64_t i = 0; i < columns; ++i) s[i % 4] += a[i] * a[i]; float t = sqrtf((s[0] + s[2]) + (s[1] + s[3]) + 1); for (int64_t i = 0; i < columns; ++i) b[i] = a[i] / t;"
            ),
            "reciprocal root": rows_kernel(_SCALE.replace("a[i] / sqrtf(s + 1)", "a[i] * (1.0f / sqrtf(s + 1))")),
        },
        kernel="rows",
    ),
)

OPS = (*ELEMENTWISE, *REDUCTIONS, *INDICES, *PRODUCTS, *STATE, *COMPILED)

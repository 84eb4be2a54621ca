"""Torch's functions on shapes and dtypes, against the installed torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.evaluation.execution.outcomes import Raised, Returned, Unresolved
from opschema_cli.evaluation.execution.values import Device, DtypeValue, Opaque, TensorValue
from opschema_cli.evaluation.tensors import table
from opschema_cli.evaluation.tensors.dialect import TORCH
from opschema_cli.evaluation.tensors.results import torch_names
from opschema_cli.evaluation.tensors.table import TABLE, torch_table
from tests.evaluation.executing import executor_of, named, outcome_of

ARGUMENTS = {
    "x": ((2, 3, 4), "float16"),
    "y": ((3, 1), "float32"),
    "m": ((4, 6), "float16"),
    "b": ((2, 4, 5), "float16"),
    "i": ((5,), "int64"),
    "mask": ((2, 3, 4), "bool"),
    "s": ((), "float64"),
    "none": ((0, 7), "bfloat16"),
    "image": ((2, 3, 8, 9), "float32"),
    "filter": ((6, 3, 3, 2), "float32"),
}

EXPRESSIONS = """
x + y ; y - x ; x * 2 ; 2 / i ; i / 2 ; i // 2 ; x ** 2 ; x @ m ; x.matmul(m) ; -x ; ~mask ; x < y ; 1 < x ; x == x
i % 3 ; mask & mask ; x + s ; i + s ; i + 1.5 ; i + True ; mask + 1 ; mask * mask ; x.float() ; x.to(torch.int8)
x.to(y) ; x.type_as(y) ; x.half() ; x.sum() ; x.sum(1) ; x.sum((0, 2), keepdim=True) ; i.sum() ; mask.sum(-1)
x.mean(dim=-1) ; x.amax(1) ; x.argmax(-1) ; x.prod(0) ; x.max() ; x.max(1) ; x.max(1).values
x.min(0, True).indices ; torch.maximum(x, y) ; x.any(1) ; x.norm() ; x.var(1) ; x.std(-1) ; x.topk(2) ; x.sort(1)
x.argsort() ; x.cumsum(0) ; i.cumsum(0) ; x.softmax(-1) ; torch.softmax(x, 1, dtype=torch.float32) ; x.view(6, 4)
x.view(-1) ; x.view((2, 12)) ; x.reshape(4, -1) ; x.flatten() ; x.flatten(1) ; x.unflatten(2, (2, -1)) ; x.ravel()
x.permute(2, 0, 1) ; torch.permute(x, (0, 2, 1)) ; x.transpose(0, -1) ; x.T ; m.t() ; x.mT ; x.movedim(0, 2)
x.swapaxes(0, 1) ; y.squeeze() ; y.squeeze(-1) ; x.unsqueeze(0) ; x.unsqueeze(-1) ; y.expand(2, 3, 4)
y.expand(-1, 5) ; y.expand_as(x) ; x.repeat(1, 2, 3, 1) ; torch.broadcast_to(y, (2, 3, 4)) ; x.tile(2)
x.repeat_interleave(3, dim=1) ; x.repeat_interleave(2) ; x[0] ; x[:, 1:] ; x[..., None] ; x[None] ; x[:, -1, ::2]
x[0, 0, 0] ; x[1:1] ; x[:, [0, 2]] ; m[i[:3]] ; x[..., 0] ; m[:, i] ; x.select(1, 0) ; x.narrow(2, 1, 2)
m.index_select(1, i) ; x.gather(2, torch.zeros((2, 3, 1), dtype=torch.int64)) ; x.unbind(1) ; x.chunk(3, dim=2)
x.split(3, dim=2) ; x.split([1, 3], -1) ; x.tensor_split(3, 2) ; torch.cat([x, x], dim=-1) ; torch.stack([m, m], 1)
torch.cat((i, i, i[:2])) ; torch.hstack([m, m]) ; torch.vstack([i, i]) ; torch.cat([x, x.float()])
torch.empty(2, 3) ; torch.empty((2, 3), dtype=torch.int32, device="cuda") ; torch.zeros(4)
torch.ones([1, 2], dtype=x.dtype) ; torch.full((2,), 1) ; torch.full((2,), 1.0) ; torch.arange(5)
torch.arange(1, 2.5, 0.5) ; torch.arange(0, 10, 3, dtype=torch.int32) ; torch.empty_like(x)
torch.zeros_like(x, dtype=torch.float8_e4m3fn) ; x.new_empty(3, 4) ; x.new_zeros((2,), dtype=torch.int8)
x.new_empty(x.shape[:-1] + (7,)) ; torch.empty(*x.shape[1:], 2) ; torch.eye(3) ; torch.linspace(0, 1, 7)
torch.tensor([[1, 2], [3, 4]]) ; torch.tensor(2.5) ; torch.tensor([1, 2.0]) ; torch.tensor([True])
torch.rand(2, 2) ; torch.randint(0, 5, (3,)) ; torch.full_like(i, 2) ; x.contiguous() ; x.clone() ; x.detach()
x.abs() ; x.exp() ; i.exp() ; torch.rsqrt(i) ; x.clamp(0, 1) ; i.clamp(min=0) ; x.isnan()
torch.where(mask, x, 0.0) ; torch.where(mask, x, s) ; x.masked_fill(mask, 0) ; x.triu() ; x.flip(0) ; x.roll(1, 0)
m.diagonal() ; torch.mm(m.t(), m) ; torch.bmm(x, b) ; torch.addmm(m[0], m, m.t() @ m) ; torch.outer(i, i)
m @ m[0] ; i.dot(i) ; torch.matmul(x, b) ; F.linear(x, m.t()) ; F.relu(x) ; F.gelu(x, approximate="tanh")
F.silu(x) ; F.softmax(x, dim=-1) ; F.layer_norm(x, (4,)) ; F.pad(x, (1, 2)) ; F.rms_norm(x, (4,), m[:, 0])
F.embedding(i, m) ; F.one_hot(i, 7) ; F.scaled_dot_product_attention(x, x, x) ; F.conv2d(image, filter)
F.conv2d(image, filter, stride=2, padding=1) ; F.dropout(x, 0.5) ; F.log_softmax(y, -1, dtype=torch.float64)
F.normalize(x) ; x.add_(1) ; x.mul_(x) ; x.copy_(y) ; x.zero_() ; x.fill_(2) ; none.sum(0) ; none.mean() ; none + 1
none.amax(1) ; none.max() ; none.reshape(-1) ; x.view(5, 5) ; x + b ; torch.mm(m, m) ; x.sum(3) ; torch.cat([x, m])
x[3] ; x.permute(0, 1) ; y.expand(2, 2) ; x.squeeze(7) ; x.view(0, -1) ; x.shape ; x.size() ; x.size(-1) ; x.dim()
x.ndim ; x.numel() ; len(x) ; x.dtype ; x.element_size() ; x.is_floating_point() ; i.dtype.itemsize
x.dtype == torch.half ; isinstance(x, torch.Tensor) ; torch.is_tensor(x)
torch.promote_types(torch.int8, torch.float16) ; x.nelement() ; torch.result_type(i, 1.5)
torch._check(x.dim() == 3) ; torch.broadcast_shapes((2, 1), (3,)) ; torch.numel(x) ; [item.shape for item in x] ; torch.Size([1, 2])
torch.ops.aten.mul.Tensor(x, 2) ; torch.special.expit(x) ; x.bfloat16().sum(-1, dtype=torch.float32)
x.view(torch.int8) ; x.view(dtype=torch.int32) ; x.view(torch.float32).view(torch.bfloat16) ; y.view(torch.float64)
s.view(torch.int64) ; s.view(torch.int8) ; torch.finfo(torch.half).max ; torch.finfo().eps ; torch.iinfo(torch.uint8).min
torch.finfo(x.dtype).dtype ; torch.iinfo(torch.int64).bits ; torch.finfo(torch.int8) ; torch.iinfo(torch.bool)
torch.iinfo(i.dtype).max - 1 ; torch.finfo(torch.complex64).tiny ; torch.index_select(m, 1, i) ; x.norm(2, 1)
x.mul(2).sum(1).view(-1)
"""
CASES = [item.strip() for line in EXPRESSIONS.splitlines() for item in line.split(" ; ") if item.strip()]


def _metadata(value: object) -> object:
    """Shapes and dtypes of a result of torch, written as the table's values are."""
    import torch

    if isinstance(value, torch.Tensor):
        return tuple(value.shape), str(value.dtype).removeprefix("torch.")
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    return tuple(map(_metadata, value)) if isinstance(value, tuple | list) else value


def _computed(value: object) -> object:
    if isinstance(value, TensorValue):
        return value.shape, value.dtype
    if isinstance(value, DtypeValue):
        return value.name
    return tuple(map(_computed, value)) if isinstance(value, tuple | list) else value


def test_expressions_give_what_torch_gives() -> None:
    torch = pytest.importorskip("torch")
    names = ", ".join(ARGUMENTS)
    functions = "\n".join(f"def f{index}({names}):\n    return {case}" for index, case in enumerate(CASES))
    executor = executor_of(f"import torch\nimport torch.nn.functional as F\n\n{functions}\n", TORCH)
    values = {name: TensorValue(shape, dtype) for name, (shape, dtype) in ARGUMENTS.items()}
    different, unknown = [], []
    for index, case in enumerate(CASES):
        outcome = executor.call(named(executor, f"f{index}"), values)
        tensors = {name: torch.zeros(shape, dtype=getattr(torch, dtype)) for name, (shape, dtype) in ARGUMENTS.items()}
        scope = {"torch": torch, "F": torch.nn.functional, **tensors}
        try:
            expected = _metadata(eval(case.replace(', device="cuda"', ""), scope))
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            expected = type(error).__name__
        if isinstance(outcome, Unresolved):
            unknown.append((case, outcome.reason))
            continue
        computed = outcome.exception if isinstance(outcome, Raised) else _computed(outcome.value)
        if computed != expected:
            different.append((case, computed, expected))
    assert different == []
    assert unknown == []


def test_an_operator_in_place_keeps_shape_and_dtype() -> None:
    text = "def f(x, y):\n    x += y\n    x @= x\n    return x"
    values = (TensorValue((3, 3), "float16"), TensorValue((), "float32"))
    found = outcome_of(text, *values, dialects=(TORCH,))
    assert isinstance(found, Returned)
    assert _computed(found.value) == ((3, 3), "float16")
    wider = outcome_of(text, TensorValue((3, 1)), TensorValue((3, 3)), dialects=(TORCH,))
    assert isinstance(wider, Raised)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x.nonzero()", "`nonzero` of a tensor"),
        ("x.resize_(3)", "`resize_` may change a shape"),
        ("x.new_empty(given.sizes)", "the result of `torch.new_empty`"),  # as many sizes as there are
        ("x[mask]", "an index that is not known"),
        ("x.data_ptr()", "`data_ptr` of a tensor"),
        ("torch.sum(x, given)", "the result of `torch.sum`"),
        ("torch.add(x, x, out=x[0])", "`out` has another shape"),
        ("torch.empty(10 ** 12).split(1)", "a tensor in too many parts"),
        ("torch.empty(0).chunk(10 ** 12)", "a tensor in too many parts"),
        ("torch.empty(10 ** 12, 1).unbind()", "a tensor in too many parts"),
    ],
)
def test_what_is_not_known(text: str, reason: str) -> None:
    head = "import torch\nfrom elsewhere import given\n\ndef f(x, mask):\n"
    values = (TensorValue((2, 3), "float16"), TensorValue((2, 3), "bool"))
    found = outcome_of(f"{head}    return {text}", *values, dialects=(TORCH,))
    assert isinstance(found, Unresolved)
    assert found.reason.startswith(reason)


def test_sizes_and_dtypes_that_are_not_known_are_passed_on() -> None:
    text = "import torch\nfrom elsewhere import n\n\ndef f(x):\n    return torch.empty(n, 2), (x + 1).relu(), x.sum(), x > 0"
    found = outcome_of(text, TensorValue((3,)), dialects=(TORCH,))
    assert isinstance(found, Returned)
    made, same, total, compared = found.value  # type: ignore[misc, attr-defined]
    assert (type(made.shape[0]), made.shape[1], made.dtype) == (Opaque, 2, "float32")
    assert [(item.shape, item.dtype) for item in (same, total, compared)] == [((3,), None), ((), None), ((3,), "bool")]


def test_a_truth_beside_a_tensor_of_truths() -> None:
    found = outcome_of(
        "def f(x):\n    return x & 1, x & True, x.int() & True", TensorValue((3,), "bool"), dialects=(TORCH,)
    )
    assert isinstance(found, Returned)
    assert [item.dtype for item in found.value] == ["int64", None, "int32"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("check", "exception", "message"),
    [
        ("torch._check(x.dim() == 2, lambda: f'{x.dim()} dimensions')", "RuntimeError", "1 dimensions"),
        ("torch._check(False)", "RuntimeError", None),
        ("torch._check(False, message)", "RuntimeError", None),
        ("torch._check_value(x.shape == (4,), lambda: 'another shape')", "ValueError", "another shape"),
        ("torch._check_type(x.is_floating_point())", "TypeError", None),
        ("torch._check_index(message=lambda: 'beyond', cond=x.shape[0] > 3)", "IndexError", "beyond"),
    ],
)
def test_a_check_that_fails_raises(check: str, exception: str, message: str | None) -> None:
    text = f"import torch\nfrom elsewhere import message\n\ndef f(x):\n    {check}\n    return 1"
    found = outcome_of(text, TensorValue((3,), "int32"), dialects=(TORCH,))
    assert isinstance(found, Raised)
    assert (found.exception, found.message) == (exception, message)


@pytest.mark.parametrize(
    "check", ["torch._check(x.dim() == 1)", "torch._check(known)", "torch._check(len(x) == known)"]
)
def test_a_check_that_may_hold_is_taken_to_hold(check: str) -> None:
    text = f"import torch\nfrom elsewhere import known\n\ndef f(x):\n    {check}\n    return 1"
    found = outcome_of(text, TensorValue((3,)), dialects=(TORCH,))
    assert isinstance(found, Returned)
    assert found.value == 1


SAMPLE = frozenset({"sum", "cat", "view", "where", "linear", "topk", "expand", "conv2d"})


def test_a_part_of_the_table_is_what_torch_answers_today() -> None:
    """All of it is probed by ``make torch-table``, which takes minutes."""
    pytest.importorskip("torch")
    from benchmarks.torch_shapes import probe

    names = frozenset(torch_table().operators) if os.environ.get("OPSCHEMA_TORCH_TABLE") else SAMPLE
    table = torch_table()
    stored = {
        (name, table.signatures[item.signature]): (
            item.shape,
            item.dtype,
            tuple(table.maps[index] for index in item.maps),
        )
        for name in names
        for item in table.operators[name]
    }
    assert {(item.operator, item.signature): tuple(fit) for item, fit, _ in probe(names) if fit is not None} == stored


def test_a_part_of_the_results_is_what_torch_answers_today() -> None:
    pytest.importorskip("torch")
    from benchmarks.torch_results import FIELDS, is_method, judged, schemas

    known = schemas()
    sample = ("view", "t_", "reshape")
    for name in sample:
        judgement = judged(name, [item for item in known[name] if is_method(item)])
        assert judgement == {field for field in FIELDS if name in torch_names(field)}, name


@pytest.mark.parametrize(
    "content", [None, b"", TABLE.read_bytes()[:5000], b"\xff\x00", b'{"torch": 2}', b"[" * 100_000]
)
def test_a_damaged_table_is_an_error_that_names_the_file(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "torch.json"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(table, "TABLE", path)
    with pytest.raises(
        OpschemaError, match=r"torch\.json: this part of opschema cannot be read \(.+\); install opschema again"
    ):
        torch_table.__wrapped__()


DEVICES = """
def f(x, y):
    if x.device != y.device or x[0].float().T.device != (x + y).device:
        raise ValueError("two devices")
    if all(item.is_cuda for item in (x, y, x @ y)):
        return 1 if x.relu().is_cuda else 2
    return 3 if y.is_cuda else 1
"""


def test_tensors_on_one_device_share_what_is_known_of_it() -> None:
    device = Device()
    one, other = (TensorValue((3, 3), "float16", item) for item in (device, device))
    executor = executor_of(DEVICES, TORCH)
    function = named(executor, "f")
    assert executor.call(function, {"x": one, "y": other}) == Returned(1)
    text = """
import torch
def f(x, y):
    host = torch.ops.aten.cpu(x), torch.Tensor.cpu(x), x.cpu(), x.to("cpu")
    return x.device == y.device, x.device == "cuda", *[item.is_cuda == x.is_cuda for item in host]
"""
    same = outcome_of(text, one, other, dialects=(TORCH,))
    assert isinstance(same, Returned)
    equal, *unknown = same.value
    assert equal is True
    assert all(isinstance(item, Opaque) for item in unknown)
    elsewhere = outcome_of(text, one, TensorValue((3, 3), "float16", Device()), dialects=(TORCH,))
    assert isinstance(elsewhere, Returned)
    assert all(isinstance(item, Opaque) for item in elsewhere.value)

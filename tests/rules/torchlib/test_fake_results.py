"""REG212: shapes and dtypes of a fake against those of the kernel."""

from __future__ import annotations

import pytest

from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK
from opschema_rules.torchlib.shape_inputs import MAX_INPUTS, families

HEAD = """\
import torch
from torch import Tensor
from typing import Optional
from elsewhere import run, aligned

"""


def reported(parameters: str, kernel: str, fake: str, returns: str = "Tensor") -> list[str]:
    """The messages for an operator whose kernel and fake have these bodies."""
    names = ", ".join(item.partition(":")[0] for item in parameters.split(", "))
    bodies = [body.replace("; ", "\n    ") for body in (kernel, fake)]
    text = (
        f'{HEAD}@torch.library.custom_op("kit::f", mutates_args=())\ndef f({parameters}) -> {returns}:\n    {bodies[0]}\n\n\n'
        f"@f.register_fake\ndef fake({names}):\n    {bodies[1]}\n"
    )
    linted = lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": text}, ("REG212",))
    return [item.message for item in linted.diagnostics]


HALF = "assert x.dtype == torch.float16"


@pytest.mark.parametrize(
    ("parameters", "kernel", "fake", "promised", "returned"),
    [
        (
            "x: Tensor",
            "return x.transpose(0, 1).contiguous()",
            "return torch.empty_like(x)",
            "bfloat16[2, 3]",
            "bfloat16[3, 2]",
        ),
        (
            "x: Tensor",
            "return x.sum(-1)",
            "m, n = x.shape; return x.new_empty(m, 1)",
            "bfloat16[2, 1]",
            "bfloat16[2]",
        ),
        (
            "x: Tensor",
            "out = torch.empty(x.shape, dtype=torch.int8); run(x, out); return out",
            "return x.new_empty(x.shape, dtype=torch.uint8)",
            "uint8[2, 3]",
            "int8[2, 3]",
        ),
        (
            "q: Tensor, k: Tensor",
            "b, h, s, d = q.shape; assert k.shape[-1] == d; return q @ k.transpose(-1, -2)",
            "b, h, s, d = q.shape; return q.new_empty(b, h, s, s, 1)",
            "bfloat16[2, 3, 5, 5, 1]",
            "bfloat16[2, 3, 5, 11]",
        ),
        (
            "x: Tensor",
            "a, b, c = x.shape; assert a % 256 == b % 256 == c % 256 == 0; return x.transpose(0, 1).contiguous()",
            "a, b, c = x.shape; return torch.empty_like(x)",
            "bfloat16[256, 768, 1024]",
            "bfloat16[768, 256, 1024]",
        ),
        (
            "x: Tensor, flag: bool",
            "return torch.cat([x, x], -1) if flag else x.clone()",
            "return torch.empty_like(x)",
            "bfloat16[2, 3]",
            "bfloat16[2, 6]",
        ),
        (
            "x: Tensor",
            f"{HALF}; return x.type(torch.FloatTensor)",
            "return torch.empty_like(x)",
            "float16[2, 3]",
            "float32[2, 3]",
        ),
        (
            "x: Tensor, n: int",
            "return torch.empty(n * 2, x.shape[0])",
            "return torch.empty(n, x.shape[0])",
            "float32[",
            "float32[",
        ),
    ],
)
def test_another_shape_or_dtype(parameters: str, kernel: str, fake: str, promised: str, returned: str) -> None:
    (message,) = reported(parameters, kernel, fake)
    assert f"returns `{promised}" in message
    assert f"kernel returns `{returned}" in message


def test_the_second_of_two_results() -> None:
    kernel = "m, n = x.shape; return x.clone(), x.float().amax(-1, keepdim=True)"
    fake = "return torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32)"
    (message,) = reported("x: Tensor", kernel, fake, "tuple[Tensor, Tensor]")
    assert "returns `float32[2]` as result 1 where the kernel returns `float32[2, 1]`" in message


@pytest.mark.parametrize(
    ("parameters", "kernel", "fake"),
    [
        (
            "packed: Tensor",
            "bits = packed.view(torch.uint8); return torch.stack([bits & 15, bits >> 4], dim=-1).reshape(bits.shape[0], -1)",
            "return packed.new_empty(packed.shape[0], packed.shape[1] * 2, dtype=torch.uint8)",
        ),
        (  # which fit the other tensors as bytes alone
            "packed: Tensor, scale: Tensor, zero: Tensor, group_size: int",
            "bits = packed.view(torch.uint8); rows = torch.stack([bits & 15, bits >> 4], dim=-1).reshape(bits.shape[0], -1); "
            "wide = [item.t().float().repeat_interleave(group_size, dim=-1) for item in (scale, zero)]; "
            "return (rows.float() - wide[1]) * wide[0]",
            "return packed.new_empty(packed.shape[0], packed.shape[1] * 2, dtype=torch.float32)",
        ),
        # a matrix with a factor for each row and column
        (
            "x: Tensor, rows: Tensor, columns: Tensor",
            "return x.view(-1, x.shape[-1]) * (rows.reshape(-1).unsqueeze(-1) * columns.reshape(-1).unsqueeze(0))",
            "return torch.empty_like(x)",
        ),
        # what is refused is not compared
        (
            "x: Tensor",
            "torch._check(x.dtype == torch.int64, lambda: f'not {x.dtype}'); return x.view(torch.uint8)",
            "return x.new_empty(x.shape[0], x.shape[1] * 8, dtype=torch.uint8)",
        ),
        ("x: Tensor", "return x * 2", "return torch.empty_like(x)"),
        # rows of two tensors that may always be as many
        ("x: Tensor, y: Tensor", "return torch.empty(x.shape[0], 4)", "return torch.empty(y.shape[0], 4)"),
        ("x: Tensor, n: int", "return torch.empty(n, 4)", "return torch.empty(x.shape[0], 4)"),
        # a width that the tensor may always have
        ("x: Tensor", "return torch.empty(x.shape[0], 128)", "return torch.empty_like(x, dtype=torch.float32)"),
        # tensors that may always have one dtype
        ("x: Tensor, y: Tensor", "return torch.empty_like(x, dtype=y.dtype)", "return torch.empty_like(x)"),
        ("x: Tensor", "return torch.empty_like(x, dtype=torch.float32)", "return torch.empty_like(x)"),
        # a tensor that may always have one dimension
        ("w: Tensor, b: Tensor", "return torch.zeros(b.numel(), dtype=b.dtype)", "return b.new_empty(b.shape)"),
        ("w: Tensor, b: Tensor", "return b.flatten()", "return b.new_empty(b.shape[0])"),
        # sizes that are rounded up, as those of the inputs may be already
        ("x: Tensor", "return x.new_empty((x.shape[0] + 127) // 128 * 128)", "return x.new_empty(x.shape[0])"),
        # sizes that may always be multiples of each other
        ("x: Tensor, n: int", "return x.new_empty(x.shape[0] // n * n)", "return x.new_empty(x.shape[0])"),
        (
            "q: Tensor, k: Tensor",
            "group = q.shape[0] // k.shape[0]; return q.new_empty(group * k.shape[0])",
            "return q.new_empty(q.shape[0])",
        ),
        (
            "x: Tensor",
            "g = x.shape[0] // x.shape[1]; return x.new_empty(g * x.shape[1], 2)",
            "return x.new_empty(x.shape[0], 2)",
        ),
        # a number that may never exceed a size
        ("x: Tensor, n: int", "return x[:n].clone()", "return x.new_empty(n, x.shape[1])"),
        ("x: Tensor, n: int", "return x.new_empty(min(n, x.shape[0]))", "return x.new_empty(n)"),
        ("x: Tensor, n: int", "return x.new_empty(max(n, x.shape[0]))", "return x.new_empty(x.shape[0])"),
        # ranks that only one of them means
        ("x: Tensor", "return x.new_empty(x.shape[0], x.shape[1])", "return torch.empty_like(x)"),
        # types of tensors
        ("x: Tensor", f"{HALF}; return x.type(torch.FloatTensor)", "return torch.empty_like(x, dtype=torch.float32)"),
        (
            "x: Tensor",
            f"{HALF}; return x.type('torch.cuda.IntTensor')",
            "return torch.empty_like(x, dtype=torch.int32)",
        ),
        ("x: Tensor", f"{HALF}; return x.type(torch.OtherTensor)", "return torch.empty_like(x, dtype=torch.int8)"),
        # unknown code
        ("x: Tensor", "return run(x)", "return torch.empty_like(x)"),
        ("x: Tensor", "return torch.empty(aligned(x.shape[0]), 4)", "return torch.empty(x.shape[0], 4)"),
        ("x: Tensor", "raise NotImplementedError", "return torch.empty_like(x)"),
        ("x: Tensor", "return x[x > 0]", "return torch.empty_like(x)"),
        ("x: Optional[Tensor], n: int", "return torch.empty(n) if x is None else x.clone()", "return torch.empty(n)"),
    ],
)
def test_what_may_agree(parameters: str, kernel: str, fake: str) -> None:
    found = reported(parameters, kernel, fake)
    assert found == []


def test_a_fake_under_a_condition_belongs_to_the_one_kernel() -> None:
    define = 'lib = torch.library.Library("kit", "DEF")\nlib.define("f(Tensor x) -> Tensor")\n\n\n'
    kernel = "    @torch.library.impl(lib, 'f', '{}')\n    def {}(x):\n        return x.unsqueeze(0)\n\n"
    fake = "    @torch.library.register_fake('kit::f')\n    def fake(x):\n        return torch.empty_like(x)\n"
    one = f"{HEAD}{define}if aligned():\n{kernel.format('CPU', 'cpu')}{fake}"
    two = f"{HEAD}{define}if aligned():\n{kernel.format('CPU', 'cpu')}{kernel.format('CUDA', 'cuda')}{fake}"
    found = [
        lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": text}, ("REG212",)).codes() for text in (one, two)
    ]
    assert found == [["REG212"], []]


INNER = """\
@torch.library.custom_op("kit::inner", mutates_args=())
def inner(x: Tensor, n: int = 2) -> Tensor:
    return run(x)


@inner.register_fake
def inner_fake(x, n=2):
    return x.new_empty(x.shape[0], n)


"""


@pytest.mark.parametrize(("size", "count"), [("(0,)", 0), ("(0, 4)", 0), ("(1,)", 1), ("x.shape", 1)])
def test_dtypes_of_empty_results_are_not_compared(size: str, count: int) -> None:
    kernel, fake = (f"return x.new_empty({size}, dtype=torch.{name})" for name in ("int8", "int32"))
    assert len(reported("x: Tensor", kernel, fake)) == count


@pytest.mark.parametrize(
    ("kernel", "fake", "count"),
    [
        ("torch.ops.kit.inner(x, 3)", "x.new_empty(x.shape[0], 2)", 1),
        ("torch.ops.kit.inner.default(x)", "x.new_empty(x.shape[0], 3)", 1),
        ("x.new_empty(x.shape[0], 2)", "torch.ops.kit.inner(x, n=4)", 1),
        ("torch.ops.kit.inner(x, 3)", "x.new_empty(x.shape[0], 3)", 0),
        ("torch.ops.kit.other(x)", "x.new_empty(x.shape[0], 3)", 0),
        ("torch.ops.kit.outer(x)", "torch.empty_like(x)", 0),
        ("x.clone()", "torch.ops.kit.outer(x)", 0),
    ],
)
def test_calls_of_operators_return_what_their_fakes_do(kernel: str, fake: str, count: int) -> None:
    outer = f'@torch.library.custom_op("kit::outer", mutates_args=())\ndef outer(x: Tensor) -> Tensor:\n    return {kernel}\n'
    text = f"{HEAD}{INNER}{outer}\n\n@outer.register_fake\ndef fake(x):\n    return {fake}\n"
    linted = lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": text}, ("REG212",))
    assert linted.codes() == ["REG212"] * count


TILELANG = """\
import tilelang
import torch
from tilelang import language as T
from torch import Tensor


def rows(batch, heads, dtype, accumulated="float32"):
    out_shape = (batch, heads // 2)

    @tilelang.jit(out_idx=[-2, -1], pass_configs={{tilelang.PassConfigKey.FAST: True}})
    def make(threads):
        @T.prim_func
        def main(
            q: T.Tensor([batch, heads, 8], dtype),
            lengths: T.Tensor([batch + 1], T.int32),
            out: T.Tensor(out_shape, dtype),
            lse: T.Tensor((batch,), accumulated),
        ):
            with T.Kernel(batch, threads=threads) as bx:
                T.copy(q, out)

        return main

    return make


@torch.library.custom_op("kit::rows", mutates_args=())
def kernel(batch: int, heads: int, dtype: str, q: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return rows(batch, heads, dtype)(128)(q, lengths)


@kernel.register_fake
def fake(batch, heads, dtype, *tensors):
    q, lengths = tensors
    return {}, {}
"""


ROWS = "q.new_empty(batch, q.shape[1] // 2)"
LSE = "q.new_empty(batch, dtype=torch.float32)"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (ROWS, LSE, ""),
        (ROWS, "q.new_empty(lengths.shape[0] - 1, dtype=torch.float32)", ""),
        (ROWS, "q.new_empty(batch)", ""),  # agrees for float32
        (ROWS, "q.new_empty(batch, 1, dtype=torch.float32)", "returns `float32[3, 1]` as result 1"),
        (ROWS, "q.new_empty(lengths.shape, dtype=torch.float32)", "returns `float32[4]` as result 1"),
        (
            "q.new_empty(q.shape[0], heads)",
            LSE,
            "the kernel returns `bfloat16[3, 2]`, for `q: bfloat16[3, 5, 8], lengths: int32[4], batch=3",
        ),
    ],
)
def test_a_kernel_that_tilelang_compiles(first: str, second: str, message: str) -> None:
    linted = lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": TILELANG.format(first, second)}, ("REG212",))
    assert [item.message for item in linted.diagnostics if message not in item.message] == []
    assert len(linted.diagnostics) == bool(message)


GROUPED = """\
import tilelang
import torch
from tilelang import language as T
from torch import Tensor


def attend(batch, heads, heads_kv, dim):
    if heads % heads_kv:
        raise ValueError("heads must be divisible by heads_kv")

    @tilelang.jit(out_idx=[-1])
    def make(threads):
        @T.prim_func
        def main(
            q: T.Tensor([batch, heads, dim], T.bfloat16),
            k: T.Tensor([batch, heads_kv, dim], T.bfloat16),
            out: T.Tensor([batch, heads, dim], T.bfloat16),
        ):
            T.copy(q, out)

        return main

    return make


@torch.library.custom_op("kit::attend", mutates_args=())
def kernel(batch: int, heads: int, heads_kv: int, dim: int, q: Tensor, k: Tensor) -> Tensor:
    return attend(batch, heads, heads_kv, dim)(128)(q, k)


@kernel.register_fake
def fake(batch, heads, heads_kv, dim, q, k):
    return q.new_empty({})
"""


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("batch, heads, dim", ""),
        ("q.shape", ""),
        ("batch, dim, heads", "returns `bfloat16[16, 2, 8]`"),
        ("heads, heads, dim", "the kernel returns `bfloat16[16, 8, 2]`"),
    ],
)
def test_sizes_are_told_apart_of_a_kernel_that_refuses_some(sizes: str, message: str) -> None:
    linted = lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": GROUPED.format(sizes)}, ("REG212",))
    assert [item.message for item in linted.diagnostics if message not in item.message] == []
    assert len(linted.diagnostics) == bool(message)


def test_small_numbers_are_tried_before_other_ranks() -> None:
    tensors = ", ".join(f"Tensor {name}" for name in "abcdefgh")
    parsed = parse_schema(f"kit::attend({tensors}, int heads) -> Tensor")
    assert parsed.schema is not None
    (family,) = families(parsed.schema, ())
    assert {item.values["heads"] for item in family.inputs} == {256, 8, 1}
    assert len({item.key for item in family.inputs}) == len(family.inputs) == MAX_INPUTS


ASSERTING = """\
import torch
from torch import Tensor


@torch.library.custom_op("kit::unpack", mutates_args=())
def kernel(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    assert x.ndim == 2 and x.dtype in (torch.half, torch.bfloat16)
    assert weight.dtype == torch.uint8, "packed"
    assert scale.dtype == torch.float8_e4m3fn
    return x.new_empty(x.shape[0], {})


@kernel.register_fake
def fake(x, weight, scale):
    return x.new_empty(x.shape[0], weight.shape[0])
"""


@pytest.mark.parametrize(("size", "count"), [("weight.shape[0]", 0), ("2 * weight.shape[0]", 1), ("scale.shape[0]", 0)])
def test_tensors_have_the_dtypes_that_a_kernel_asserts(size: str, count: int) -> None:
    linted = lint_files([PACK], {"kit/__init__.py": "", "kit/ops.py": ASSERTING.format(size)}, ("REG212",))
    assert linted.codes() == ["REG212"] * count


DEFAULT = """\
import torch
from torch import Tensor


@torch.library.custom_op("kit::zeros", mutates_args=())
def kernel(x: Tensor) -> Tensor:
    return torch.zeros({}, dtype={})


@kernel.register_fake
def fake(x):
    return torch.empty(x.shape, dtype=torch.float64)
"""


@pytest.mark.parametrize(
    ("module", "size", "dtype", "count"),
    [
        ("torch.set_default_dtype(torch.float64)", "x.shape", "None", 0),
        ("torch.set_default_tensor_type(torch.DoubleTensor)", "x.shape", "None", 0),
        ("def use():\n    torch.set_default_dtype(torch.float64)", "x.shape", "None", 1),
        ("torch.set_default_dtype(torch.float64)", "x.shape", "torch.float16", 1),
        ("torch.set_default_dtype(torch.float64)", "(*x.shape, 2)", "torch.float64", 1),
        ("", "x.shape", "None", 1),
    ],
)
def test_a_default_dtype_that_code_sets_is_not_known(module: str, size: str, dtype: str, count: int) -> None:
    files = {"kit/__init__.py": f"import torch\n{module}\n", "kit/ops.py": DEFAULT.format(size, dtype)}
    assert lint_files([PACK], files, ("REG212",)).codes() == ["REG212"] * count

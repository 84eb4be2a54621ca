"""Inputs named for the fakes of ops whose outputs are like them, and only where that is proven."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, lint_files, migrate_files
from opschema_rules.magi.examples import HEAD, OPS_PATH, example_files
from opschema_rules.magi.pack import PACK

HELP = "import torch.nn.functional as F\n\n\n"


def op(
    body: str, meta: str = "", params: str = "a: Tensor, x: Tensor, s: float = 1.0, n: int = 1", returns: str = "Tensor"
) -> str:
    return f'{HELP}@magi_register_custom_op("kit::f"{meta})\ndef f({params}) -> {returns}:\n    {body}\n'


def migrate(text: str, *options: str) -> Migrated:
    return migrate_files(PACK, "add-meta", example_files([("python", text)]), options)


def code(done: Migrated) -> str:
    return done.files[OPS_PATH].removeprefix(HEAD)


PROVEN = [
    "return torch.empty_like(x)",
    "return torch.zeros_like(input=x)",
    "return torch.full_like(x, 3)",
    "return torch.full_like(x, fill_value=s)",
    "return torch.empty_like(x, dtype=x.dtype)",
    "return x.clone()",
    "return torch.clone(x)",
    "return -x",
    "return torch.relu(x)",
    "return F.silu(x)",
    'return F.gelu(x, approximate="tanh")',
    "return x + x",
    "return (x * s).to(x.dtype)",
    "return (2 * x - n).to(dtype=x.dtype)",
    "return (x * torch.sigmoid(x)).type_as(x)",
    "return x.float().exp().to(x.dtype)",
    "out = torch.empty_like(x)\n    out.copy_(a)\n    return out",
    "out = x * s\n    return out.to(x.dtype)",
    "if s > 1:\n        return x.clone()\n    return torch.zeros_like(x)",
    "out = x.clone() if False else None\n    del out\n    return -x",
    "if s > 1:\n        out = x.clone()\n    else:\n        out = -x\n    return out",
]
"""Bodies that return something like `x`, which is not the first tensor."""

UNPROVEN = [
    "return x",
    "return x * s",
    "return x * 2",
    "return x / n",
    "return x + a",
    "return (x * a).to(x.dtype)",
    "return (x * s).to(a.dtype)",
    "return x.exp()",
    "return x @ helper(a)",
    "return x.unsqueeze(0)",
    "return x.nonzero()",
    "return torch.cat([x, a], out=a)",
    "y = x @ a\n    return y",
    "return x.float()",
    "return x.to(x.dtype)",
    "return x.contiguous()",
    "return x.view(-1)",
    "return x.flip(0)",
    "return torch.empty_like(x, dtype=torch.float32)",
    "return torch.empty_like(x, dtype=a.dtype)",
    "return torch.empty_like(x, device='cpu')",
    "return torch.empty_like(x, memory_format=torch.contiguous_format)",
    "return torch.empty_like(x.view(-1))",
    "return torch.zeros(x.shape)",
    "return x.new_empty(x.shape)",
    "return F.relu(x, inplace=True)",
    "return torch.round(x, decimals=1)",
    "return helper(x)",
    "x = x.float()\n    return torch.empty_like(x)",
    "x, s = a, 1\n    return torch.empty_like(x)",
    "for x in a:\n        pass\n    return torch.empty_like(x)",
    "x.resize_(3)\n    return torch.empty_like(x)",
    "out = torch.empty_like(x)\n    out.unsqueeze_(0)\n    return out",
    "out = torch.empty_like(x)\n    torch.mm(a, x, out=out)\n    return out",
    "out = torch.empty_like(x)\n    out = out[0]\n    return out",
    "y = x\n    y.t_()\n    return torch.empty_like(x)",
    "y = x\n    torch.mm(a, a, out=y)\n    return torch.empty_like(x)",
    "out = torch.empty_like(x)\n    if s > 1:\n        out = x.sum()\n    return out",
    "if s > 1:\n        return torch.empty_like(a)\n    return torch.empty_like(x)",
    "if s > 1:\n        return None\n    return torch.empty_like(x)",
    "del x\n    return torch.empty_like(x)",
    "x.data = a\n    return torch.empty_like(x)",
    "torch = a\n    return torch.empty_like(x)",
]
"""Bodies whose result is not like `x`, or not certainly."""


COMPUTED = [
    "return x @ a",
    "return a.sum()",
    "return torch.sum(a, dim=0)",
    "return a.argmax()",
    "return torch.cat([a, x])",
    "return torch.stack((a, x))",
    "return a > 0",
    "return a.unsqueeze(0).clone()",
    "return (a == x).clone()",
    "return F.linear(a, x)",
]
"""Bodies whose result is not like the first tensor, and that work on fake tensors."""


@pytest.mark.parametrize("body", COMPUTED)
def test_what_is_reported_gets_a_function(body: str) -> None:
    done = migrate(op(body))
    value = body.removeprefix("return ")
    assert lint_files([PACK], example_files([("python", op(body))])).codes() == ["MAG322"]
    assert code(done) == op(body, f", infer_output_meta_fn=lambda a, x, s=1.0, n=1: {value}")
    assert lint_files([PACK], done.files).codes() == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("(a @ x, a.sum())", "(a @ x, a.sum())"),
        ("a @ x, a.sum()", "(a @ x, a.sum())"),
        ("(a @ x).clone(), a.sum()", "((a @ x).clone(), a.sum())"),
        ("(a @ x), (a.sum())", "((a @ x), (a.sum()))"),
    ],
)
def test_a_function_of_two_results(value: str, written: str) -> None:
    text = op(f"return {value}").replace("-> Tensor", "-> tuple[Tensor, Tensor]")
    assert f"infer_output_meta_fn=lambda a, x, s=1.0, n=1: {written})" in code(migrate(text))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("torch.sum(\n        a, dim=0\n    )", "torch.sum(a, dim=0)"),
        ("(\n        a\n        @ x\n    )", "a @ x"),
        ("torch.cat(\n        [\n            a,\n            x\n        ]\n    ).clone()", "torch.cat([a, x]).clone()"),
    ],
)
def test_a_function_of_several_lines(value: str, written: str) -> None:
    assert f"infer_output_meta_fn=lambda a, x, s=1.0, n=1: {written})" in code(migrate(op(f"return {value}")))


@pytest.mark.parametrize("value", ["torch.sum(\n        a,  # all\n        dim=0)", "a \\\n        @ x"])
def test_lines_that_cannot_be_joined_stay(value: str) -> None:
    assert code(migrate(op(f"return {value}"))) == op(f"return {value}")


@pytest.mark.parametrize("body", PROVEN)
def test_what_is_proven(body: str) -> None:
    done = migrate(op(body))
    assert code(done) == op(body, ', infer_output_meta_fn=["x"]')
    assert done.notes() == []


@pytest.mark.parametrize("body", UNPROVEN)
def test_what_is_not_proven(body: str) -> None:
    for options in ((), ("explicit=true",)):
        done = migrate(op(body), *options)
        assert code(done) == op(body)
        assert done.sites() == []


def test_the_default_that_is_right_stays_unless_asked_for() -> None:
    text = op("return torch.empty_like(a)")
    assert migrate(text).sites() == []
    assert code(migrate(text, "explicit=true")) == op("return torch.empty_like(a)", ', infer_output_meta_fn=["a"]')


def test_a_first_tensor_that_may_be_none() -> None:
    params = "bias: Optional[Tensor], x: Tensor"
    assert code(migrate(op("return -x", params=params))) == op("return -x", ', infer_output_meta_fn=["x"]', params)


def test_a_field_by_its_lowered_name() -> None:
    cfg = "@dataclass(frozen=True)\nclass Cfg:\n    w: Tensor\n    s: float\n\n\n"
    body, params = "return (cfg.w * cfg.s).to(cfg.w.dtype)", "a: Tensor, cfg: Cfg"
    done = migrate(cfg + op(body, params=params))
    assert code(done) == cfg + op(body, ', infer_output_meta_fn=["cfg__w"]', params)


def test_several_outputs() -> None:
    body, returns = "return torch.empty_like(x), -a", "tuple[Tensor, Tensor]"
    done = migrate(op(body, returns=returns))
    assert code(done) == op(body, ', infer_output_meta_fn=["x", "a"]', returns=returns)
    for wrong in (
        "return -x, x",
        "y = -x\n    return y, y",
        "return [-x, -a]",
        "return -x, -a, -a",
        "y = -x, -a\n    return y",
    ):
        assert migrate(op(wrong, returns=returns)).sites() == []
    assert migrate(op("return [-x]", returns="list[Tensor]")).sites() == []


def test_where_the_decorator_is_called() -> None:
    written = op("return -x", ",\n    infer_output_meta_fn=None,  # todo\n")
    assert code(migrate(written)) == written.replace("=None", '=["x"]')
    bare = op("return -x").replace('("kit::f")', "()")
    assert code(migrate(bare)) == bare.replace("op()", 'op(infer_output_meta_fn=["x"])')
    later = "def f(a: Tensor, x: Tensor) -> Tensor:\n    return -x\n\n\nop = magi_register_custom_op('kit::f')(f)\n"
    assert code(migrate(later)) == later.replace("'kit::f'", "'kit::f', infer_output_meta_fn=[\"x\"]")


@pytest.mark.parametrize(
    "text",
    [
        op("return -x", ", infer_output_meta_fn=['a']"),
        op("return -x", ", infer_output_meta_fn=lambda a, x, s, n: -x"),
        op("return -x", ", **more"),
        op("return -x", params="a: Tensor, x: 'Missing'"),
        "def wrap(name):\n    return magi_register_custom_op(name)\n\n\n"
        + op("return -x").replace("magi_register_custom_op", "wrap"),
        op("return -x").replace("\ndef", "\n@other\ndef"),
        "import pytest\n\n\ndef test():\n    with pytest.raises(ValueError):\n        @magi_register_custom_op()\n"
        "        def f(a: Tensor, x: Tensor) -> Tensor:\n            return -x\n",
    ],
)
def test_what_is_no_site(text: str) -> None:
    done = migrate(text, "explicit=true")
    assert code(done) == text
    assert done.sites() == []

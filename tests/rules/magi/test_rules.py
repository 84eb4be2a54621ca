"""Places, messages and fixes of the rules, and what looks wrong and is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.magi.examples import OPS_PATH, example_files
from opschema_rules.magi.pack import PACK
from opschema_rules.torchlib.pack import PACK as TORCHLIB


def lint(text: str, *codes: str) -> Linted:
    return lint_files([PACK], example_files([("python", text)]), codes)


def told(text: str) -> list[tuple[str, str, str]]:
    """Of each finding its code, the text at its place, and that of the other sides."""
    linted = lint(text)
    return [
        (item.code, linted.text(item.place), " / ".join(linted.text(other.place) for other in item.related))
        for item in linted.diagnostics
    ]


def fixed(text: str, *codes: str, unsafe: bool = False) -> str:
    files = example_files([("python", text)])
    changed, _ = fix_files([PACK], files, codes, unsafe=unsafe)
    return changed.get(OPS_PATH, files[OPS_PATH]).partition("from torch import Tensor\n\n\n")[2]


DECORATOR = 'magi_register_custom_op("kit::f")'
OP = '@magi_register_custom_op("kit::f"{given})\ndef f({params}) -> {returns}:\n    {body}\n'


def op(params: str, body: str = "return x + 1", given: str = "", returns: str = "Tensor") -> str:
    return OP.format(params=params, body=body, given=f", {given}" if given else "", returns=returns)


TAKES = op("x: Tensor, c: Config")
FROZEN = "@dataclass(frozen=True)\nclass Config:\n    k: float\n    w: Optional[Tensor] = None\n\n\n"
MUTABLE = FROZEN.replace("(frozen=True)", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MUTABLE + TAKES, [("MAG301", "dataclass", "Config")]),
        (op("x: Tensor, k: tuple[int, int]"), [("MAG302", "tuple[int, int]", DECORATOR)]),
        (op("x: Tensor, *k: int"), [("MAG303", "k: int", DECORATOR)]),
        (FROZEN.replace("float", "dict[str, int]") + TAKES, [("MAG302", "dict[str, int]", DECORATOR)]),
        (FROZEN + op("c: Config, x: Tensor"), [("MAG312", "x", f"w / {DECORATOR}")]),
        (op("x: Tensor", given='infer_output_meta_fn=["y"]'), [("MAG320", '"y"', "f")]),
        (FROZEN + op("c: Config", "return c.w + 1", 'infer_output_meta_fn=["c"]'), [("MAG320", '"c"', "c")]),
        (op("x: Tensor", "return x.view(-1)"), [("MAG322", "x.view(-1)", DECORATOR), ("MAG331", "x.view(-1)", "Tensor")]),
        (op("x: Tensor", "x[0] = 1\n    return x + 1"), [("MAG330", "x[0]", f"Tensor / {DECORATOR}")]),
        (op("x: Tensor", given="mutates_args=('y',)"), [("MAG332", "'y'", "f")]),
        (FROZEN + op("x: Tensor, c: Config", "c.k = 1\n    return x + 1"), [("MAG362", "c.k", "dataclass(frozen=True)")]),
        (FROZEN + op("x: Tensor, c: Config", "return x + c.n"), [("MAG363", "c.n", "Config")]),
        (op("x: Tensor, k: int") + "\n\ndef g(x):\n    return f(x)\n", [("MAG360", "f", "k")]),
        (op("x: Tensor, k: int") + "\n\ndef g(x):\n    return f(x, n=1)\n", [("MAG360", "1", "k")]),
        (FROZEN + TAKES + "\n\ndef g(x):\n    return f(x, Config(k='a'))\n", [("MAG361", "'a'", "k")]),
        (FROZEN + TAKES + "\n\ndef g(x):\n    return f(x, Config(kk=1.0))\n", [("MAG360", "1.0", "Config")]),
    ],
)  # fmt: skip
def test_places(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert told(text) == expected


def test_messages_say_what_is_wrong_on_both_sides() -> None:
    mode = 'class Mode(str, Enum):\n    A = "a"\n\n\n'
    messages = [
        item.message
        for text in (
            MUTABLE + TAKES,
            mode + op("x: Tensor, m: Mode", "return x + (m is Mode.A)"),
            op("x: Tensor", "return x.sum()"),
        )
        for item in lint(text).diagnostics
    ]
    assert messages == [
        "dataclass `Config` is not frozen, and an op takes it: add `frozen=True`",
        "`m` is a plain `str` here: `m is Mode.A` is always false; write `==`",
        "`f()` returns `sum()` of all elements, which is one value, and without `infer_output_meta_fn` tracing takes it"
        " for one like `x`",
    ]


# Fixes


@pytest.mark.parametrize(
    ("maker", "expected"),
    [
        ("@dataclass", "@dataclass(frozen=True)"),
        ("@dataclass()", "@dataclass(frozen=True)"),
        ("@dataclass(frozen=False)", "@dataclass(frozen=True)"),
        ("@dataclass(eq=False, order=True)", "@dataclass(eq=False, order=True, frozen=True)"),
        ("@dataclass(\n    eq=False,\n)", "@dataclass(\n    eq=False,\n    frozen=True,\n)"),
    ],
)
def test_a_dataclass_is_frozen(maker: str, expected: str) -> None:
    assert fixed(MUTABLE.replace("@dataclass", maker) + TAKES) == MUTABLE.replace("@dataclass", expected) + TAKES


@pytest.mark.parametrize(
    "use",
    [
        "def g(c):\n    c.k = 3.0\n",
        "def g(c):\n    c.k += 3.0\n",
        "@dataclass\nclass More(Config):\n    b: int = 0\n",
        "def g(c: Config, name):\n    setattr(c, name, 1)\n",
        "def g(c):\n    del c.k\n",
        "def g(c, d):\n    (c.k, d) = 1, 2\n",
        "def g(c, d):\n    for c.k in d:\n        print(d)\n",
        "def g(c, d):\n    with d as c.k:\n        print(d)\n",
        "def g(c: Config):\n    c.__dict__['k'] = 1\n",
        "def g(c: Config):\n    c.more = 1\n",
        "def g():\n    c = Config(1.0)\n    c.more = 1\n",
    ],
)
def test_a_dataclass_that_may_be_written_is_not_frozen_safely(use: str) -> None:
    text = MUTABLE + TAKES + "\n\n" + use
    assert fixed(text) == text
    assert fixed(text, unsafe=True) != text


@pytest.mark.parametrize(
    "use",
    [
        "def g(c: Config, d):\n    print(c.k, file=d)\n    d.more = c.w\n    d[c.k] = 2\n",
        "def g(cs):\n    return [c.k for c in cs]\n",
        "def g(c, d):\n    with open(c.k) as d:\n        del d\n",
    ],
)
def test_a_dataclass_that_is_only_read_is_frozen(use: str) -> None:
    text = MUTABLE + TAKES + "\n\n" + use
    assert fixed(text) == text.replace("@dataclass\n", "@dataclass(frozen=True)\n")


@pytest.mark.parametrize(
    "text",
    [
        MUTABLE.replace("    k: float\n", "    k: float\n\n    def grow(self):\n        self.k = 2.0\n\n"),
        "@dataclass\nclass Base:\n    b: int = 0\n\n\n"
        + MUTABLE.replace("Config:", "Config(Base):").replace("float", "float = 1.0"),
    ],
)
def test_a_dataclass_that_cannot_be_frozen_has_no_fix(text: str) -> None:
    linted = lint(text + TAKES, "MAG301")
    assert [item.fix for item in linted.diagnostics] == [None]


def test_an_equality_keeps_what_stands_around_it() -> None:
    mode = 'class Mode(str, Enum):\n    A = "a"\n\n\n'
    before = mode + op("x: Tensor, m: Mode", "return x * 2 if (m) is not (Mode.A) else x + (m.value == 'a')")
    after = mode + op("x: Tensor, m: Mode", "return x * 2 if (m) != (Mode.A) else x + (m == 'a')")
    assert fixed(before, "MAG307") == after


@pytest.mark.parametrize(
    ("given", "expected"),
    [('["c"]', '["c__w"]'), ("['w']", "['c__w']"), ('["c.w"]', '["c__w"]'), ('("x",)', '["x"]'), ('"x"', '["x"]')],
)
def test_meta_names_are_mended(given: str, expected: str) -> None:
    tensor = FROZEN.replace("w: Optional[Tensor] = None", "w: Tensor")
    before = tensor + op("x: Tensor, c: Config", given=f"infer_output_meta_fn={given}")
    assert fixed(before) == before.replace(f"={given}", f"={expected}")


def test_setup_parameters_are_renamed_with_their_uses() -> None:
    backward = "def backward(ctx, g):\n    return g * ctx.saved_tensors[0]\n\n\n"
    given = "setup_context_fn=setup, backward_fn=backward"
    before = "def setup(c, inp, out):\n    c.save_for_backward(inp[0])\n    c.n = len(inp)\n\n\n"
    after = "def setup(ctx, inputs, output):\n    ctx.save_for_backward(inputs[0])\n    ctx.n = len(inputs)\n\n\n"
    text = backward + op("x: Tensor", "return x * x / 2", given)
    assert fixed(before + text, "MAG340") == after + text
    clash = before.replace("len(inp)", "[inputs for inputs in inp]")
    assert fixed(clash + text, "MAG340") == clash + text


# What looks wrong and is right


def test_what_a_test_expects_to_fail_is_left_alone() -> None:
    raising = "import pytest\n\n\ndef test_mutable():\n    with pytest.raises(TypeError):\n\n" + "\n".join(
        f"        {line}" for line in (MUTABLE + TAKES).splitlines()
    )
    assert told(raising) == []
    backward = op("x: Tensor, k: float", given="backward_fn=lambda ctx, g: g")
    inside = "\n".join(f"    {line}" for line in backward.splitlines())
    call = "    y = f(x, 1.0)\n    with pytest.raises(RuntimeError):\n        y.sum().backward()\n"
    assert told(f"import pytest\n\n\ndef test_count(x):\n{inside}\n{call}") == []
    assert [code for code, *_ in told(backward)] == ["MAG342"]


def test_an_op_that_is_never_traced_needs_no_meta() -> None:
    eager = "\n".join(f"    {line}" for line in op("k: int", "return torch.ones(k)").splitlines())
    assert told(f"def test_eager():\n{eager}\n    assert f(3).sum() == 3\n") == []
    traced = f"def test_traced():\n{eager}\n    assert torch.compile(f)(3).sum() == 3\n"
    assert [code for code, *_ in told(traced)] == ["MAG321"]
    assert [code for code, *_ in told(f"def make():\n{eager}\n    return f\n")] == ["MAG321"]


def test_tensors_of_a_dataclass_count_for_the_default_meta() -> None:
    pair = "@dataclass(frozen=True)\nclass Pair:\n    a: Tensor\n    b: Tensor\n\n\n"
    assert told(pair + op("p: Pair", "return p.a + 1, p.b + 1", returns="tuple[Tensor, Tensor]")) == []


@pytest.mark.parametrize(
    "product",
    [
        "x @ (w.t() @ w)",
        "x @ torch.linalg.inv(w)",
        "torch.matmul(x, x.transpose(-1, -2).matmul(x))",
        "torch.nn.functional.linear(x, torch.eye(x.shape[-1]))",
        "torch.nn.functional.linear(x, weight=w.t() @ w)",
        "x.mm(square)",
    ],
)
def test_a_product_with_a_computed_factor_may_keep_the_shape(product: str) -> None:
    assert told(op("x: Tensor, w: Tensor", f"square = w.t() @ w\n    return {product}")) == []


@pytest.mark.parametrize(
    "product",
    [
        "x @ w",
        "x @ w.T.to(x.dtype)",
        "x @ x.transpose(-1, -2)",
        "torch.matmul(x, turned)",
        "torch.nn.functional.linear(x, w, None)",
        "torch.outer(x, w * 2)",
    ],
)
def test_a_product_with_another_input_has_another_shape(product: str) -> None:
    text = op("x: Tensor, w: Tensor", f"turned = w.t()\n    return {product}")
    assert told(text) == [("MAG322", product, DECORATOR)]


@pytest.mark.parametrize(
    ("more", "said"), [("", "`k` is not a tensor"), ("    n: int = 1\n", "`k`, `n` are no tensors")]
)
def test_fields_that_are_no_tensors(more: str, said: str) -> None:
    fields = f"@dataclass(frozen=True)\nclass Config:\n    w: Tensor\n    k: float = 1.0\n{more}\n\n"
    (found,) = lint(fields + op("x: Tensor, c: Config", given='mutates_args=("c",)'), "MAG332").diagnostics
    assert found.message == f"`mutates_args` names `c`, a dataclass, whose {said}"


@pytest.mark.parametrize("tensor", ["x", "c.w"])
def test_items_that_are_put_back_are_not_written(tensor: str) -> None:
    body = (
        f"kept = {tensor}[0].clone()\n    {tensor}[0] = 1\n    y = x + {tensor}\n    {tensor}[0] = {{0}}\n    return y"
    )
    text = FROZEN.replace("Optional[Tensor] = None", "Tensor") + op("x: Tensor, c: Config", body)
    assert told(text.format("kept")) == []
    assert [code for code, *_ in told(text.format("2"))] == ["MAG330"]


SETS = "    object.__setattr__(self, {}, {})\n    "


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ("", ["MAG309"]),
        (SETS.format("'z'", "1.0"), ["MAG309"]),
        (SETS.format("'k'", "1.0"), []),
        (SETS.format("'s'", "self.s / 2"), []),
        (SETS.format("name", "1.0"), []),
    ],
)
def test_a_field_that_is_reset_so_that_nothing_changes_again(others: str, expected: list[str]) -> None:
    start = "    def __post_init__(self):\n    "
    scaled = SETS.format("'s'", "self.s * self.k")
    fields = "@dataclass(frozen=True)\nclass Config:\n    s: float\n    k: float = 2.0\n    z: float = 0.0\n\n"
    assert [item[0] for item in told(fields + start + scaled + others + "\n\n" + TAKES)] == expected


MADE_OF_X = [
    "x.sum(0)",
    "x.mean()",
    "x > 0",
    "torch.isnan(x)",
    "x.argmax(-1)",
    "torch.stack([x, x])",
    "x @ x.t()",
    "x[:, 0].clone()",
]


@pytest.mark.parametrize("value", MADE_OF_X)
@pytest.mark.parametrize("given", ["", 'infer_output_meta_fn=["y"]'])
def test_an_output_is_compared_with_the_tensor_that_it_is_made_of(value: str, given: str) -> None:
    assert told(op("y: Tensor, x: Tensor", f"return {value}", given)) == []
    pair = op(
        "x: Tensor, y: Tensor", f"return x + 1, {value}", given.replace('["y"]', '["x", "y"]'), "tuple[Tensor, Tensor]"
    )
    assert told(pair) == []
    assert [code for code, *_ in told(op("x: Tensor, y: Tensor", f"return {value}"))] == ["MAG322"]


@pytest.mark.parametrize(
    ("value", "severities"),
    [
        ("x == y", ["warning"]),
        ("x.argsort(-1)", ["warning"]),
        ("torch.ne(x, y)", ["warning"]),
        ("x < y", ["error"]),
        ("torch.logical_and(x, y)", []),
        ("x.logical_not()", []),
        ("x[..., -1].contiguous()", ["error"]),
        ("x[:, None, 0].contiguous()", []),
        ("x[y, 0].contiguous()", []),
    ],
)
def test_operations_that_keep_the_type_of_indices_and_truth_values(value: str, severities: list[str]) -> None:
    params, body = "x: Tensor, y: Tensor", f"return {value}"
    assert [item.severity.value for item in lint(op(params, body)).diagnostics] == severities
    named = op(params, body, 'infer_output_meta_fn=["x"]')
    assert [item.severity.value for item in lint(named).diagnostics] == [item for item in severities if item == "error"]


def test_without_a_stated_contract_only_what_fails_with_both_is_told() -> None:
    both = op("x: Tensor, k: tuple[int, int]")
    one = op("x: Tensor", "x.add_(1)", 'mutates_args=("x",)', "None").replace('"kit::f"', '"kit::g"')
    files = {**example_files([("python", both + "\n\n" + one)]), "opschema.toml": ""}
    assert [item.code for item in lint_files([PACK], files).diagnostics] == ["MAG302", "MAG321"]


def test_both_packs_tell_of_a_fault_once() -> None:
    decorator = (
        "import torch\n\n\ndef _magi_register_custom_op_impl(name=None, mutates_args=()):\n    def decorate(fn):\n"
        "        return torch.library.custom_op(name, mutates_args=mutates_args)(fn)\n\n    return decorate\n"
    )
    api = (
        "from ._magi_register_custom_op import _magi_register_custom_op_impl\n\n\n"
        "def magi_register_custom_op(name=None, mutates_args=()):\n"
        "    return _magi_register_custom_op_impl(name=name, mutates_args=mutates_args)\n"
    )
    files = {
        **example_files([("python", op("x: Tensor", "return x"))]),
        "magi_compiler/__init__.py": "",
        "magi_compiler/api.py": api,
        "magi_compiler/_magi_register_custom_op.py": decorator,
    }
    assert [item.code for item in lint_files([PACK, TORCHLIB], files).diagnostics] == ["MAG331"]


def test_equal_names_count_by_where_they_are() -> None:
    named, unnamed = op("x: Tensor"), op("x: Tensor").replace('"kit::f"', "")
    severities = {}
    for title, one, other in (("written", named, named), ("by the file", unnamed, unnamed)):
        files = example_files([("python", one), ("python far/ops.py", example_files([("python", other)])[OPS_PATH])])
        found = lint_files([PACK], files, ["MAG350"]).diagnostics
        severities[title] = [(item.place.path, item.severity.value) for item in found]
    assert severities == {"written": [("kit/ops.py", "info")], "by the file": [("kit/ops.py", "warning")]}


def test_examples_in_folders_of_their_own_may_use_one_name() -> None:
    text = example_files([("python", op("x: Tensor"))])[OPS_PATH]

    def places(first: str, second: str) -> list[str]:
        files = {first: text, second: text}
        return [item.place.path for item in lint_files([PACK], files, ["MAG350"]).diagnostics]

    assert places("examples/a/op.py", "examples/b/op.py") == []
    assert places("examples/a/op.py", "examples/a/more/op.py") == ["examples/a/op.py"]
    assert places("kit/a.py", "tests/test_a.py") == ["tests/test_a.py"]


HOSTILE = {
    "*names, **more": "f(x: Tensor) -> Tensor: ...",
    "'a::b', infer_output_meta_fn=[*names, 3], mutates_args=3, backward_fn=3, setup_context_fn='x'": "f(): ...",
    "'a::b', infer_output_meta_fn={}, mutates_args=[[]]": "f(x: [1], y: 3 = 4, *, z: lambda: 1) -> {}: return",
    "'a::b', mutates_args=''": "f(self, /, *a: Tensor, **k: Tensor) -> tuple[()]: yield a",
    "'', backward_fn=lambda: (), infer_output_meta_fn=lambda *, a=1: a": "f(x: Tensor) -> '(': return (x,)[0]",
    "'a::b', mutates_args=('c', 'c')": "f(c: Config = Config(), d: 'Config' = 1) -> Tensor: return c @ d",
    "'a::b', infer_output_meta_fn=()": "f(c: Config) -> tuple: return c.k, *c.w, c[0]",
}


@pytest.mark.parametrize("given", HOSTILE)
@pytest.mark.parametrize("contract", ["dataclasses", "plain", ""])
def test_odd_ops_crash_no_rule(given: str, contract: str) -> None:
    text = f"{FROZEN}@magi_register_custom_op({given})\ndef {HOSTILE[given]}\n"
    files = {**example_files([("python", text)]), "opschema.toml": f'[magi]\nmagi = "{contract}"\n'}
    assert "OPS900" not in [item.code for item in lint_files([PACK], files).diagnostics]


@pytest.mark.parametrize(
    ("fields", "call"),
    [
        ("a: int\n    b: int = field(init=False, default=3)", "Config(1)"),
        ("b: int = field(default=2, kw_only=True)\n    a: int = 1", "Config(1, b=3)"),
        ("a: int\n    _: KW_ONLY\n    b: int", "Config(b=1, a=2)"),
        ("a: int\n    seed: InitVar[int] = 0\n    def __post_init__(self, seed): pass", "Config(1, seed=2)"),
        ("n: ClassVar[int] = 3\n    a: int = 0", "Config(1)"),
        ("a: int\n    def __init__(self, *rest, **kw): pass", "Config(1, 2, q=3)"),
        ("a: int\n    def __new__(cls, *rest): return object.__new__(cls)", "Config(1)"),
        ("a: list = field(default_factory=list)\n    b: int = 1", "Config(b=2)"),
        ("a: int\n    b: int = 1", "replace(Config(1), b=2)"),
        ("a: int\n    b: int = 1", "Config(*pair)"),
        ("a: int\n    b: int = 1", "Config(**{'a': 1})"),
        ("a: int\n    b: int = field(**options)", "Config(1)"),
    ],
)
def test_constructors_that_python_accepts(fields: str, call: str) -> None:
    head = "from dataclasses import InitVar, KW_ONLY, field, replace\nfrom typing import ClassVar\n"
    text = f"{head}@dataclass(frozen=True)\nclass Config:\n    {fields}\n\n\n{TAKES}\n\ndef g(x, pair):\n    return f(x, {call})\n"
    assert "MAG360" not in lint(text).codes()


def test_a_parameter_may_be_another_class() -> None:
    text = f"{FROZEN}{TAKES}\n\ndef g(x, Config):\n    return f(x, Config(1, 2, 3))\n"
    assert "MAG360" not in lint(text).codes()

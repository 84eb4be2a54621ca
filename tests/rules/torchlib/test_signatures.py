"""Fakes, kernels and vmap rules against the schema: what is found, where, and what is not."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.torchlib.examples import MODULE, example_files
from opschema_rules.torchlib.pack import PACK

OP = """
@torch.library.custom_op("kit::f", mutates_args=())
def f({schema}) -> Tensor:
    return x.clone()


@f.register_fake
def fake({fake}):
    return torch.empty_like(x)
"""

SIGNATURES = ["REG201", "REG202", "REG203", "REG204"]


def files(text: str) -> dict[str, str]:
    return example_files([("python", text)])


def lint(text: str) -> Linted:
    return lint_files([PACK], files(text), SIGNATURES)


def told(text: str) -> list[tuple[str, str]]:
    """Each finding as the text at its place and its message, without the operator's name."""
    linted = lint(text)
    return [(linted.text(item.place), item.message.replace(" of `kit::f`", "")) for item in linted.diagnostics]


SOUND = [
    ("x: Tensor, a: int", "y, b"),  # names never matter
    ("x: Tensor, a: int, b: int", "a, b, c"),  # not even when one is another's: no permutation
    ("x: Tensor, a: int = 1", "x, a=1, b=2"),
    ("x: Tensor, a: int = 1", "x, *rest"),
    ("x: Tensor, a: int = 1, b: int = 2", "*args"),
    ("x: Tensor, a: int, b: int", "x, *inputs"),
    ("x: Tensor, *, a: int = 1", "x, **kwargs"),
    ("x: Tensor, *, a: int = 1", "x, a=1"),
    ("x: Tensor, *, a: int, b: int = 2", "x, b=2, *, a"),
    ("x: Tensor, *, a: int", "x, a"),
    ("x: Tensor, a: int", "x, a=1"),  # more defaults than the schema
    ("x: Tensor, a: int", "x, a, /"),
    ("x: Tensor, a: int", "x, a, *, extra=None"),
    ("x: Tensor, a: int = 1", "x: Tensor, a: int = 1"),
]


@pytest.mark.parametrize(("schema", "fake"), SOUND)
def test_what_takes_all_that_is_passed_is_let_be(schema: str, fake: str) -> None:
    assert told(OP.format(schema=schema, fake=fake)) == []


BROKEN = [
    (
        "x: Tensor, a: int, b: int",
        "x, b, a",
        ("b", "the fake takes `b`, `a` where the schema passes `a`, `b`, by position: the arguments are shifted"),
    ),
    (
        "x: Tensor, a: int, b: int",
        "x, b",
        ("fake", "the fake does not take `a`, which the schema passes: every call fails"),
    ),
    (
        "x: Tensor, a: int, y: Tensor, b: int",
        "w, c, b",
        ("fake", "the fake takes 1 argument fewer than the schema passes by position: every call fails"),
    ),
    (
        "x: Tensor, a: int, y: Tensor, b: int = 1, d: int = 2",
        "w, b, d",
        (
            "fake",
            "the fake takes 2 arguments fewer than the schema passes by position: a call that passes more than the defaults fails",
        ),
    ),
    (
        "x: Tensor, a: int = 1",
        "x",
        ("fake", "the fake does not take `a`, which the schema passes: a call that passes more than the defaults fails"),
    ),
    (
        "x: Tensor, a: int, b: int, y: Tensor",
        "x, b, *inputs",
        ("b", "the fake does not take `a`, which the schema passes before `b`: the arguments are shifted"),
    ),
    (
        "x: Tensor, a: int = 1",
        "x, a",
        ("a", "the fake has no default for `a`, but torch omits values that equal the schema's default: add that default"),
    ),
    (
        "x: Tensor, *, a: int = 1",
        "x, *, a",
        ("a", "the fake has no default for `a`, but torch omits values that equal the schema's default: add that default"),
    ),
    (
        "x: Tensor, *, a: int",
        "x, *, b=1",
        ("fake", "the fake does not take `a`, which the schema passes by name: every call fails"),
    ),
    (
        "x: Tensor",
        "x, a",
        ("a", "the fake requires `a`, which the schema does not pass: every call fails"),
    ),
    (
        "x: Tensor, dim: int = 0",
        "y, block, dim=0",
        (
            "block",
            "the fake has no default for `block`, but torch omits values that equal the schema's default: add that default",
        ),
    ),
    (
        "x: Tensor",
        "x, *, a",
        ("a", "the fake requires `a`, which the schema does not pass: every call fails"),
    ),
    (
        "x: Tensor, a: int",
        "x, *, a",
        ("a", "the fake takes `a` by name only, but the schema passes by position: every call fails"),
    ),
    (
        "x: Tensor, a: int, *, b: int",
        "x, b, a",
        ("b", "the fake takes `b` by position before others, but the schema passes by name: move `b` to the end"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fake", "expected"), BROKEN)
def test_what_does_not_take_what_is_passed(schema: str, fake: str, expected: tuple[str, str]) -> None:
    assert told(OP.format(schema=schema, fake=fake)) == [expected]


@pytest.mark.parametrize(
    ("changed", "count"), [("f.__defaults__ = (2,)", 0), ("f.__kwdefaults__ = {}", 0), ("f.__doc__ = ''", 1)]
)
def test_defaults_that_code_sets_are_not_read_from_the_function(changed: str, count: int) -> None:
    text = "lib = torch.library.Library('kit', 'FRAGMENT')\nlib.define('f(Tensor x, int n=2) -> Tensor')\n\n\n"
    text += f"def f(x, n):\n    return x * n\n\n\n{changed}\nlib.impl('f', f, 'CPU')\n"
    assert len(told(text)) == count


def test_both_sides_are_shown() -> None:
    linted = lint(OP.format(schema="x: Tensor, rows: int, columns: int", fake="x, columns, rows"))
    (found,) = linted.diagnostics
    assert [(linted.text(item.place), item.message) for item in found.related] == [
        ("rows", "the schema of `kit::f`"),
        ("columns", "the schema of `kit::f`"),
    ]


def test_the_argument_is_shown_in_a_schema_string() -> None:
    linted = lint("""
torch.library.define("kit::f", "(Tensor x, int size=1) -> Tensor")


@torch.library.register_fake("kit::f")
def fake(x):
    return torch.empty_like(x)
""")
    (found,) = linted.diagnostics
    (related,) = found.related
    assert linted.text(related.place) == "size"


@pytest.mark.parametrize(
    ("imports", "written", "fixed"),
    [
        ("from typing import Optional", "b: Tensor", "b: Optional[Tensor] = None"),
        ("import typing", "b: torch.Tensor", "b: typing.Optional[torch.Tensor] = None"),
        ("from typing import Optional", "b: Optional[Tensor]", "b: Optional[Tensor] = None"),
        ("from typing import Any, Optional", "b: Any", "b: Any = None"),
        ("", "b: Tensor | None", "b: Tensor | None = None"),
        ("", "b: Tensor", "b: Tensor | None = None"),
        ("", 'b: "Tensor"', 'b: "Tensor" = None'),
        ("from typing import Optional", 'b: "Tensor"', 'b: "Optional[Tensor]" = None'),
        ("from typing import Optional", "b", "b=None"),
    ],
)
def test_a_default_of_none_comes_with_a_type_that_admits_it(imports: str, written: str, fixed: str) -> None:
    text = OP.format(schema="x: Tensor, b: Tensor | None = None", fake=f"x: Tensor, {written}")
    source = {MODULE: f"{imports}\n{files(text)[MODULE].partition('Tuple')[2]}"}
    texts, left = fix_files([PACK], source, SIGNATURES)
    assert f"def fake(x: Tensor, {fixed}):" in texts[MODULE]
    assert left.diagnostics == []


@pytest.mark.parametrize(
    ("schema", "fake", "fixed"),
    [
        ("x: Tensor, a: int = 1, b: float = 1e-6", "x, a, b", "x, a=1, b=1e-6"),
        ("x: Tensor, a: int = 1", "x: Tensor, a: int", "x: Tensor, a: int = 1"),
        ("x: Tensor, *, a: int = 1", "x, *, a", "x, *, a=1"),
    ],
)
def test_fixes_write_what_the_schema_says(schema: str, fake: str, fixed: str) -> None:
    texts, left = fix_files([PACK], files(OP.format(schema=schema, fake=fake)), SIGNATURES)
    assert f"def fake({fixed}):" in texts[MODULE]
    assert left.diagnostics == []


@pytest.mark.parametrize(
    ("schema", "fake", "fixed"),
    [
        ("x: Tensor, a: int, b: str = 'n', c: bool = False", "x, c=False", "x, a, b='n', c=False"),
        ("x: Tensor, a: int, b: int = 2", "x: Tensor", "x: Tensor, a: int, b: int = 2"),
        ("x: Tensor, a: int, b: int, y: Tensor", "x, b, *inputs", "x, a, b, *inputs"),
    ],
)
def test_a_fake_ignores_what_it_did_not_take_only_if_asked(schema: str, fake: str, fixed: str) -> None:
    source = files(OP.format(schema=schema, fake=fake))
    assert fix_files([PACK], source, SIGNATURES)[0] == {}
    texts, left = fix_files([PACK], source, SIGNATURES, unsafe=True)
    assert f"def fake({fixed}):" in texts[MODULE]
    assert left.diagnostics == []


@pytest.mark.parametrize(
    ("fake", "fixed"),
    [
        ("\n    x,  # the first\n    c=False,\n", "\n    x,  # the first\n    a,\n    b='n',\n    c=False,\n"),
        ("\n    x,\n    c=False\n", "\n    x,\n    a,\n    b='n',\n    c=False\n"),
        ("\n    x\n", "\n    x,\n    a,\n    b='n',\n    c=False\n"),
        ("\n    x  # the first\n", "\n    x, a, b='n', c=False  # the first\n"),
        ("\n    x, c=False\n", "\n    x, a, b='n', c=False\n"),
        ("x,\n    c=False", "x, a, b='n',\n    c=False"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_parameter_stands_where_the_others_do(fake: str, fixed: str, newline: str) -> None:
    schema = "x: Tensor, a: int, b: str = 'n', c: bool = False"
    source = {path: text.replace("\n", newline) for path, text in files(OP.format(schema=schema, fake=fake)).items()}
    texts, left = fix_files([PACK], source, SIGNATURES, unsafe=True)
    assert f"def fake({fixed}):".replace("\n", newline) in texts[MODULE]
    assert left.diagnostics == []


KERNEL = """
torch.library.define("kit::f", "(Tensor x, bool zero=False, float y=1) -> Tensor")


def made(x, zero=False, *, y=1.0):
    return x * y + zero


def strict(x, zero=True, y=1.0):
    return x * y + zero


@torch.library.impl("kit::f", "cpu")
def kernel({taken}):
    {body}
"""


@pytest.mark.parametrize(
    ("taken", "body", "fixed"),
    [
        ("x, zero=(False)", "return made(x, zero)", "return made(x, zero, y=y)"),
        ("x", "x = x.contiguous()\n    return made(x)", "return made(x, zero=zero, y=y)"),
        ("x", "return made(\n        x,\n    )", "return made(\n        x,\n        zero=zero,\n        y=y,\n    )"),
    ],
)
def test_a_kernel_passes_on_what_it_did_not_take(taken: str, body: str, fixed: str) -> None:
    texts, left = fix_files([PACK], files(KERNEL.format(taken=taken, body=body)), SIGNATURES)
    assert "def kernel(x, zero=False, y=1.0):" in texts[MODULE].replace("(False)", "False")
    assert fixed in texts[MODULE]
    assert left.diagnostics == []


@pytest.mark.parametrize(
    "body",
    [
        "return x + 1",
        "return x if x.numel() == 0 else made(x)",
        "return made(x) + 1",
        "return strict(x)",  # with another default for `zero`
        "y = x + 1\n    return made(y)",  # `y` is something else here
        "return made(x, True, y=2.0)",
        "return unknown(x)",
        "return made(x, *zero)",
        "if x.numel():\n        return made(x)",
    ],
)
def test_a_kernel_that_would_ignore_an_argument_has_no_fix(body: str) -> None:
    source = files(KERNEL.format(taken="x", body=body))
    assert lint_files([PACK], source, ["REG202"]).codes() == ["REG202"]
    assert fix_files([PACK], source, SIGNATURES, unsafe=True)[0] == {}


@pytest.mark.parametrize(
    ("schema", "fake"),
    [
        ("(Tensor x, int n, float lam=0.5)", "x, *, n"),
        ("(Tensor x, int from=1)", "x"),
        ("(Tensor x, int n, int m, int k)", "x, m, *, n"),
    ],
)
def test_a_parameter_that_cannot_be_added_has_no_fix(schema: str, fake: str) -> None:
    text = f'torch.library.define("kit::f", "{schema} -> Tensor")\n'
    text += f'@torch.library.register_fake("kit::f")\ndef fake({fake}):\n    return torch.empty_like(x)\n'
    assert [item.fix for item in lint(text).diagnostics] == [None]


@pytest.mark.parametrize(("written", "is_fixed"), [("n: int = 2", True), ("n: tuple = ()", False)])
def test_a_parameter_is_added_only_of_a_type_that_torch_takes(written: str, is_fixed: bool) -> None:
    found = lint(OP.format(schema=f"x: Tensor, {written}", fake="x")).diagnostics
    assert [item.fix is not None for item in found] == [is_fixed]


def test_a_vmap_rule_passes_on_to_the_operator() -> None:
    text = """
@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


@f.register_vmap
def _(info, in_dims, x):
    return f(x), in_dims[0]
"""
    texts, _ = fix_files([PACK], files(text), SIGNATURES)
    assert "def _(info, in_dims, x, factor=2.0):\n    return f(x, factor=factor), in_dims[0]\n" in texts[MODULE]


@pytest.mark.parametrize(
    ("schema", "fake"),
    [
        ("x: Tensor, a: int = 1, b: int = 2", "x, a, other"),  # a default cannot stand before `other`
        ("x: Tensor, a: int, b: int", "x"),  # fine to add, but see below
    ],
)
def test_a_fix_leaves_nothing_behind(schema: str, fake: str) -> None:
    texts, left = fix_files([PACK], files(OP.format(schema=schema, fake=fake)), SIGNATURES)
    assert not texts or left.diagnostics == []


def test_the_order_is_an_unsafe_fix() -> None:
    source = files(OP.format(schema="x: Tensor, a: int, b: int", fake="x, b: int, a: int"))
    assert fix_files([PACK], source, SIGNATURES)[0] == {}
    texts, left = fix_files([PACK], source, SIGNATURES, unsafe=True)
    assert "def fake(x, a: int, b: int):" in texts[MODULE]
    assert left.diagnostics == []


def test_functions_of_one_name_in_two_scopes_are_told_apart() -> None:
    assert (
        told("""
def first():
    @torch.library.custom_op("kit::f", mutates_args=())
    def _op(x: Tensor, a: int) -> Tensor:
        return x.clone()

    @_op.register_fake
    def _(x, a):
        return torch.empty_like(x)


def second():
    @torch.library.custom_op("kit::g", mutates_args=())
    def _op(x: Tensor) -> Tensor:
        return x.clone()

    @_op.register_fake
    def _(x):
        return torch.empty_like(x)
""")
        == []
    )


def test_each_of_many_ops_of_one_factory_is_one_finding() -> None:
    linted = lint("""
def register(name):
    @torch.library.custom_op(f"kit::{name}", mutates_args=())
    def op(x: Tensor, a: int) -> Tensor:
        return x.clone()

    @op.register_fake
    def _(x):
        return torch.empty_like(x)

    return op


for word in ("relu", "gelu"):
    register(word)
""")
    assert [item.code for item in linted.diagnostics] == ["REG201"]


@pytest.mark.parametrize(
    "text",
    [
        """
@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor, a: int) -> Tensor:
    return x.clone()


def make():
    return some_module.fake


f.register_fake(make())
""",
        """
@torch.library.custom_op("kit::f", mutates_args=())
def f(x: Tensor, a: int) -> Tensor:
    return x.clone()


@f.register_fake
@unknown.adapts_arguments
def fake(x):
    return torch.empty_like(x)
""",
        """
torch.library.define("kit::f", SCHEMAS["f"])


@torch.library.register_fake("kit::f")
def fake(x):
    return torch.empty_like(x)
""",
    ],
)
def test_what_cannot_be_followed_is_let_be(text: str) -> None:
    assert told(text) == []


ALTERNATIVES = """
from torch.library import Library

HAS = torch.cuda.is_available()
lib = Library("kit", "DEF")
if HAS:
    lib.define("f(Tensor x) -> Tensor")
else:
    lib.define("f(Tensor x, int y) -> Tensor")


def one({one}):
    return x.clone()


def two({two}):
    return x.clone()


if HAS:
    lib.impl("f", one, "CUDA")
else:
    lib.impl("f", two, "CPU")
"""


def test_a_function_is_compared_with_the_definition_of_its_condition() -> None:
    assert told(ALTERNATIVES.format(one="x", two="x, y")) == []
    assert told(ALTERNATIVES.format(one="x", two="x, z")) == []


def test_a_function_that_fits_no_definition_is_reported_for_each() -> None:
    assert [place for place, _ in told(ALTERNATIVES.format(one="x", two="x, y, z"))] == ["y", "z"]


def test_a_kernel_with_a_keyset_takes_one_more() -> None:
    assert (
        told("""
lib = torch.library.Library("kit", "FRAGMENT")
lib.define("f(Tensor x) -> Tensor")


def kernel(keyset, x):
    return x.clone()


lib.impl("f", kernel, "CUDA", with_keyset=True)
""")
        == []
    )


def test_a_cpp_schema_is_compared_with_a_fake_in_python() -> None:
    linted = lint_files(
        [PACK],
        {
            "csrc/ops.cpp": 'TORCH_LIBRARY(kit, m) {\n  m.def("f(Tensor x, int a=1) -> Tensor");\n}\n',
            "kit/ops.py": "import torch\n\n\n@torch.library.register_fake('kit::f')\ndef fake(x):\n    return x\n",
        },
        SIGNATURES,
    )
    (found,) = linted.diagnostics
    assert found.place.path == "kit/ops.py"
    assert [item.place.path for item in found.related] == ["csrc/ops.cpp"]

"""FLY208 and FLY210: how tensors are wrapped and marked."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, lint_files
from opschema_rules.flydsl.examples import example_files
from opschema_rules.flydsl.pack import PACK


def lint(text: str, code: str, version: str = "0.4.2") -> Linted:
    return lint_files([PACK], example_files([("toml", f'[flydsl]\nversion = "{version}"\n'), ("python", text)]), [code])


def messages(linted: Linted) -> list[str]:
    return [f"{linted.text(item.place)}: {item.message}" for item in linted.diagnostics]


LOOP = """\
def run(sizes, k):
    for m in {values}:
        rows = m * 2
        a = torch.empty({shape}, device="cuda").half()
        t = flyc.from_torch_tensor(a){marks}
        launch(t)
"""


@pytest.mark.parametrize(
    ("values", "shape", "mark"),
    [
        ("(128, 256)", "(m, 64)", "mark_shape_dynamic(0)"),
        ("(128, 256)", "rows, k", "mark_shape_dynamic(0)"),
        ("range(k)", "[64, m + 1]", "mark_layout_dynamic()"),
        ("range(1, 3)", "m, m", "mark_shape_dynamic(0)"),
    ],
)
def test_sizes_that_a_loop_changes(values: str, shape: str, mark: str) -> None:
    linted = lint(LOOP.format(values=values, shape=shape, marks=""), "FLY208")
    (found,) = linted.diagnostics
    assert linted.text(found.place) == "flyc.from_torch_tensor(a)"
    assert found.message.endswith(f"mark it with `.{mark}`")
    assert [linted.text(item.place) for item in found.related] == [values.strip("()") if values[0] == "(" else values]


@pytest.mark.parametrize(
    ("values", "shape", "marks"),
    [
        ("(128, 256)", "(64, k)", ""),
        ("(128,)", "(m, k)", ""),
        ("range(1)", "(m, k)", ""),
        ("range(0, 9, 0)", "(m, k)", ""),
        ("sizes", "(m, k)", ""),  # perhaps only one
        ("(128, 256)", "(m, k)", ".mark_layout_dynamic()"),
        ("(128, 256)", "(m, k)", "\n        t.mark_shape_dynamic(0)"),
        ("(128, 256)", "*shapes[m]", ""),
        ("(128, 256)", "m", ""),  # a number, or a shape
    ],
)
def test_sizes_that_stay_or_are_marked(values: str, shape: str, marks: str) -> None:
    assert messages(lint(LOOP.format(values=values, shape=shape, marks=marks), "FLY208")) == []


@pytest.mark.parametrize(("version", "codes"), [("0.1.8", []), ("0.2.0", ["FLY208"]), ("0.4.2", ["FLY208"])])
def test_versions_whose_key_has_the_shape(version: str, codes: list[str]) -> None:
    text = LOOP.format(values="(128, 256)", shape="(m, 64)", marks="").replace("from_torch_tensor", "from_dlpack")
    assert lint(text, "FLY208", version).codes() == codes


def test_a_loop_around_the_call() -> None:
    text = """\
def run(m, k=64):
    launch(flyc.from_dlpack(torch.randn(m, k)))


for m in (1, 2):
    run(m)
for k in (1, 2):
    run(m=5)
"""
    linted = lint(text, "FLY208")
    (found,) = linted.diagnostics
    assert "`m`" in found.message
    assert [linted.position(item.place).line for item in found.related] == [11]


# FLY210


@pytest.mark.parametrize(
    ("mark", "found"),
    [
        (
            "mark_shape_dynamic(0, 12)",
            ["12: `mark_shape_dynamic()` raises: the divisibility 12 is not a power of two; use 4 instead"],
        ),
        (
            "mark_stride_dynamic(dims=1, divisibility=0)",
            ["0: `mark_stride_dynamic()` raises: the divisibility 0 is not a power of two"],
        ),
        ("mark_shape_dynamic(0, -8)", ["-8: `mark_shape_dynamic()` raises: the divisibility -8 is not a power of two"]),
        (
            "mark_shape_dynamic([0, 1], [16, 3])",
            ["3: `mark_shape_dynamic()` raises: the divisibility 3 is not a power of two; use 1 instead"],
        ),
        (
            "mark_shape_dynamic(0, VEC)",
            ["VEC: `mark_shape_dynamic()` raises: the divisibility 6 is not a power of two; use 2 instead"],
        ),
        (
            "mark_shape_dynamic(0, [8])",
            ["[8]: `mark_shape_dynamic()` raises: one dimension takes one divisibility, not a list"],
        ),
        (
            "mark_stride_dynamic([0, 1], (8,))",
            ["8,: `mark_stride_dynamic()` raises: 2 dimensions and 1 divisibilities"],
        ),
        ("mark_shape_dynamic(0).mark_stride_dynamic(0, 5)", None),
    ],
)
def test_divisibilities(mark: str, found: list[str] | None) -> None:
    linted = lint(f"VEC = 6\n\n\ndef wrap(x):\n    return flyc.from_torch_tensor(x).{mark}\n", "FLY210")
    if found is None:
        assert len(linted.diagnostics) == 1
    else:
        assert messages(linted) == found


@pytest.mark.parametrize(
    "mark",
    [
        "mark_shape_dynamic(0)",
        "mark_shape_dynamic(0, 1)",
        "mark_shape_dynamic([0, 1], 1 << 4)",
        "mark_shape_dynamic([*dims, 1], [16])",
        "mark_shape_dynamic(dims, [16])",
        "mark_shape_dynamic(*dims)",
        "mark_shape_dynamic(0, **dims)",
        "mark_shape_dynamic(0, dims * 3)",
        "mark_layout_dynamic(0, 12)",  # it asks for no power of two
        "mark_layout_dynamic(leading_dim=7)",  # of a tensor that is not known
    ],
)
def test_marks_that_are_right_or_not_known(mark: str) -> None:
    assert messages(lint(f"def wrap(x, dims):\n    return flyc.from_torch_tensor(x).{mark}\n", "FLY210")) == []


def test_marks_of_other_packages() -> None:
    assert messages(lint("def wrap(x):\n    return cute.from_dlpack(x).mark_shape_dynamic(0, 12)\n", "FLY210")) == []


@pytest.mark.parametrize(
    ("tensor", "dim", "stride"),
    [
        ("torch.empty(4, 8)", 0, "8"),
        ("torch.zeros((2, 3, 4), dtype=torch.float16)", 1, "4"),
        ("torch.randint(0, 9, (2, 3, 4))", 0, "12"),
        ("torch.randn(size=(K, K)).cuda().to(torch.bfloat16)", 0, "6"),
    ],
)
def test_a_leading_dimension_whose_stride_is_not_1(tensor: str, dim: int, stride: str) -> None:
    linted = lint(f"K = 6\na = {tensor}\nt = flyc.from_torch_tensor(a).mark_layout_dynamic({dim})\n", "FLY210")
    (found,) = linted.diagnostics
    assert linted.text(found.place) == str(dim)
    assert f"the stride of dimension {dim} is {stride}, that of " in found.message


def test_a_dimension_that_the_tensor_does_not_have() -> None:
    text = "a = torch.empty(4, 8)\nt = flyc.from_dlpack(a)\nt.mark_layout_dynamic(leading_dim=2)\n"
    assert messages(lint(text, "FLY210", "0.1.8")) == [
        "2: `mark_layout_dynamic()` raises: the tensor has no dimension 2, it has 2"
    ]


@pytest.mark.parametrize(
    "tensor",
    [
        "torch.empty(4, 8).t()",
        "torch.empty(4, 8).to(memory_format=torch.channels_last)",
        "torch.empty(4, 1)",
        "torch.empty(4, n)",
        "torch.empty(n)",
        "torch.empty(*n)",
        "torch.empty(4, 8)[0]",
        "numpy.empty((4, 8), order='F')",
        "torch.empty(4, 8) if n else torch.empty(4)",
    ],
)
def test_layouts_that_are_right_or_not_known(tensor: str) -> None:
    assert messages(lint(f"a = {tensor}\nt = flyc.from_torch_tensor(a).mark_layout_dynamic(0)\n", "FLY210")) == []


def test_a_tensor_that_is_changed_in_place() -> None:
    text = "a = torch.empty(4, 8)\na.t_()\nt = flyc.from_torch_tensor(a).mark_layout_dynamic(0)\n"
    assert messages(lint(text, "FLY210")) == []


def test_errors_that_are_expected() -> None:
    text = """\
import pytest


def test_marks(x):
    t = flyc.from_torch_tensor(x)
    with pytest.raises(ValueError, match="power of two"):
        t.mark_shape_dynamic(0, divisibility=3)
"""
    assert messages(lint(text, "FLY210")) == []


@pytest.mark.parametrize(
    "tensor", ["torch.empty(4, 8)", "torch.empty(4, 1)", "torch.empty((2, 3, 4)).to(torch.float16)"]
)
@pytest.mark.parametrize(
    "mark",
    [
        *(
            f"mark_shape_dynamic({rest})"
            for rest in ("0", "0, 8", "0, 12", "0, 0", "[0, 1], 4", "[0, 1], [4]", "0, [4]", "-1, 3")
        ),
        *(f"mark_stride_dynamic({rest})" for rest in ("0, 6", "[0, 1], [8, 5]", "(0, 1), divisibility=(8, 4)")),
        *(f"mark_layout_dynamic({rest})" for rest in ("", "0", "1", "2", "5", "-1", "-2", "leading_dim=0", "1, 12")),
    ],
)
def test_marks_against_the_installed_flydsl(tensor: str, mark: str) -> None:
    """Every reported call raises, and every call that raises is reported."""
    torch = pytest.importorskip("torch")
    flydsl = pytest.importorskip("flydsl", reason="FlyDSL is not installed")
    flyc = pytest.importorskip("flydsl.compiler")
    if not hasattr(flyc, "from_torch_tensor"):
        pytest.skip(f"FlyDSL {flydsl.__version__} has no from_torch_tensor")
    expr = f"flyc.from_torch_tensor({tensor}).{mark}"
    try:
        eval(expr, {"flyc": flyc, "torch": torch})
        codes = []
    except (ValueError, RuntimeError):
        codes = ["FLY210"]
    assert lint(f"t = {expr}\n", "FLY210", flydsl.__version__).codes() == codes


@pytest.mark.parametrize(
    ("marks", "found"),
    [
        ("y.mark_layout_dynamic(1).mark_layout_dynamic(0)", []),  # which may be anything
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1).mark_layout_dynamic(0)", ["0"]),
        (
            "t = flyc.from_dlpack(x)\n    t.mark_layout_dynamic(0)\n    t.mark_layout_dynamic(leading_dim=OTHER)",
            ["OTHER"],
        ),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1).mark_layout_dynamic(1, divisibility=8)", []),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1).mark_layout_dynamic()", []),
        ("t = flyc.from_dlpack(x)\n    t.mark_layout_dynamic(1) if y else t.mark_layout_dynamic(0)", []),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1)\n    y and t.mark_layout_dynamic(0)", []),
        ("y(flyc.from_dlpack(x).mark_layout_dynamic(1).mark_layout_dynamic(0))", ["0"]),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1)\n    if y:\n        t.mark_layout_dynamic(0)", []),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(1)\n    t = flyc.from_dlpack(x).mark_layout_dynamic(0)", []),
        ("t = flyc.from_dlpack(x).mark_layout_dynamic(y).mark_layout_dynamic(0)", []),
    ],
)
def test_a_second_leading_dimension(marks: str, found: list[str]) -> None:
    linted = lint(f"OTHER = 2\n\n\ndef wrap(x, y):\n    {marks}\n", "FLY210")
    assert [linted.text(item.place) for item in linted.diagnostics] == found

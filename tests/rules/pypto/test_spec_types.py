"""Types and ranks of specs against the annotations of the parameters that they are passed for."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

TEXT = """\
import pypto.language as pl
import torch
from golden import ScalarSpec, TensorSpec, run_jit
{before}

@pl.jit
def scale(x: {x}, n: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[8, 4], pl.FP32]]): ...


run_jit(
    fn=scale,
    specs=[
        {spec},
        ScalarSpec("n", torch.float32, 2.0),
        TensorSpec("y", [8, 4], torch.float32, is_output=True),
    ],
)
"""
X, SPEC = "pl.Tensor[[8, 4], pl.FP32]", 'TensorSpec("x", [8, 4], torch.float32, init_value=torch.randn)'


def found(x: str = X, spec: str = SPEC, before: str = "") -> list[tuple[str, str]]:
    linted = lint_files([PACK], {"examples/scale.py": TEXT.format(x=x, spec=spec, before=before)}, ["PTO134"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_types() -> None:
    message = "the spec `x` has the type `float16`, and `scale` declares `pl.FP32`"
    assert found(spec=SPEC.replace("float32", "float16")) == [("torch.float16", message)]


def test_ranks() -> None:
    message = "the spec `x` has 1 dimension, and `scale` declares 2 dimensions"
    assert found(spec=SPEC.replace("[8, 4]", "[32]")) == [("[32]", message)]


@pytest.mark.parametrize(
    ("x", "spec"),
    [
        (X, SPEC),
        (X, 'TensorSpec(name="x", shape=[8, 4], dtype=torch.float32)'),
        (X, 'TensorSpec("x", [8, 4], KIND)'),
        (X, 'TensorSpec("x", [*rows, 4, 2], torch.float32)'),
        (X, 'TensorSpec("x", shape, torch.float32)'),
        (X, 'TensorSpec("x", [4] + [8, 2], torch.float32)'),
        (X, 'TensorSpec("x", [8, 4], torch.float8_e4m3fn)'),
        ("pl.Tensor[[8, 4], KIND]", SPEC.replace("float32", "float16")),
        ("pl.Tensor[[8, 4], KIND or pl.FP32]", SPEC.replace("float32", "float16")),
        ("pl.Tensor[SHAPE, pl.FP32]", SPEC.replace("[8, 4]", "[32]")),
        ("pl.Tensor", SPEC.replace("[8, 4]", "[32]")),
        ("pl.Tensor[[8] * 2, pl.FP32]", SPEC),
        ("pl.Tensor[SHAPES[[0]], pl.FP32]", SPEC),
    ],
)
def test_what_may_be_equal(x: str, spec: str) -> None:
    assert found(x, spec) == []


def test_the_rank_of_a_tensor_that_an_entry_takes_apart() -> None:
    before = f"""

@pl.jit
def inner(x: {X}, y: pl.Out[{X}]): ...


@pl.jit.host
def outer(x: pl.Tensor[[2, 8, 4], pl.FP32], y: pl.Out[pl.Tensor[[2, 8, 4], pl.FP32]]):
    for i in range(2):
        inner(x[i], y[i], device=i)


run_jit(
    fn=outer,
    specs=[TensorSpec("x", [2, 8, 4], torch.float32), TensorSpec("y", [2, 8, 4], torch.float32, is_output=True)],
)
"""
    assert found(before=before) == []


SPEC_CLASSES = """\
from dataclasses import dataclass, field


@dataclass{options}
class TensorSpec:
    name: str
    shape: list[int]
    dtype: object
    init_value: object = field(default=None)
    is_output: bool = False
{own}

@dataclass
class ScalarSpec:
    name: str
    dtype: object
    value: object
"""


def arguments(spec: str, *, options: str = "", own: str = "", before: str = "") -> list[tuple[str, str]]:
    text = TEXT.format(x=X, spec=spec, before=before)
    files = {
        "examples/scale.py": text,
        "golden/__init__.py": "from .spec import ScalarSpec, TensorSpec\n",
        "golden/spec.py": SPEC_CLASSES.format(options=options, own=own),
    }
    linted = lint_files([PACK], files, ["PTO136"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            SPEC.replace("init_value", "init_values"),
            ("torch.randn", "`TensorSpec` takes no `init_values`; did you mean `init_value`?"),
        ),
        ('TensorSpec("x", [8, 4])', ("TensorSpec", "`TensorSpec` needs an argument `dtype`")),
        (
            'TensorSpec("x", [8, 4], torch.float32, None, True, 0)',
            ("0", "`TensorSpec` takes 5 arguments, and this is one too many"),
        ),
        ('TensorSpec("x", [8, 4], torch.float32, shape=[8])', ("[8]", "`TensorSpec` gets `shape` twice")),
        (
            SPEC + ', ScalarSpec("m", torch.int32, values=3)',
            ("3", "`ScalarSpec` takes no `values`; did you mean `value`?"),
        ),
    ],
)
def test_arguments_that_a_class_of_specs_does_not_take(spec: str, expected: tuple[str, str]) -> None:
    assert arguments(spec) == [expected]


WRONG = SPEC.replace("init_value", "values")


@pytest.mark.parametrize(
    ("spec", "options", "own", "before"),
    [
        (SPEC, "", "", ""),
        (SPEC.replace("init_value=torch.randn", "**more"), "", "", "more = {}"),
        (WRONG, "(init=False)", "    def __init__(self, *args, **kwargs): ...\n", ""),
        (WRONG, "\n@patched", "", ""),
        (WRONG, "", "", "class TensorSpec:\n    def __init__(self, *args, **kwargs): ...\n"),
        (WRONG, "", "", "import pytest\n\ndef test():\n    with pytest.raises(TypeError):\n        run()\n"),
        (WRONG, "", "", "if x:\n    from other import TensorSpec\n"),
    ],
)
def test_arguments_that_may_be_right(spec: str, options: str, own: str, before: str) -> None:
    assert arguments(spec, options=options, own=own, before=before) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class TensorSpec:", "class TensorSpec(metaclass=Relaxed):"),
        ("    is_output: bool = False\n", "    is_output: bool = False\n    __init__ = relaxed()\n"),
        ("class ScalarSpec", "class ScalarSpec"),
        ("@dataclass\nclass TensorSpec", "@dataclass(init=OWN)\nclass TensorSpec"),
        ("@dataclass\nclass TensorSpec", "@dataclass(**OPTIONS)\nclass TensorSpec"),
    ],
)
def test_constructors_that_are_not_those_of_the_fields(old: str, new: str) -> None:
    own = SPEC_CLASSES.format(options="", own="")
    assert old in own
    after = "\nTensorSpec.__init__ = relaxed()\n" if old == new else ""
    assert with_classes(own.replace(old, new) + after, WRONG) == []


@pytest.mark.parametrize(
    ("head", "field"),
    [
        ("from typing import ClassVar", "kinds: 'ClassVar[dict]'"),
        ("from typing_extensions import ClassVar", "kinds: ClassVar[dict]"),
        ("OPTIONS = {}", "kinds: dict = field(**OPTIONS)"),
    ],
)
def test_fields_that_may_be_left_out(head: str, field: str) -> None:
    own = f"{head}\n" + SPEC_CLASSES.format(options="", own="").replace(
        "    name: str\n", f"    {field}\n    name: str\n"
    )
    assert with_classes(own, SPEC) == []


@pytest.mark.parametrize(
    "package",
    [
        "try:\n    from fast import TensorSpec\nexcept ImportError:\n    from .spec import TensorSpec\n",
        "from .spec import TensorSpec\n\nTensorSpec.__init__ = relaxed()\n",
    ],
)
def test_packages_that_may_have_another_class(package: str) -> None:
    own = SPEC_CLASSES.format(options="", own="")
    assert with_classes(own, WRONG, package + "from .spec import ScalarSpec\n") == []
    assert with_classes(own, WRONG, before="from mine import *\n") == []
    assert with_classes(own, WRONG) != []


def with_classes(
    classes: str, spec: str, package: str = "from .spec import ScalarSpec, TensorSpec\n", before: str = ""
) -> list[str]:
    text = TEXT.format(x=X, spec=spec, before=before)
    files = {"examples/scale.py": text, "golden/__init__.py": package, "golden/spec.py": classes}
    return [item.message for item in lint_files([PACK], files, ["PTO136"]).diagnostics]

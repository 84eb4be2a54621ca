"""Kernels for the Hugging Face Hub: kernel-builder names the namespace, and writes the module that reaches the operators."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.torchlib.pack import PACK

BINDING = """
STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("scale(Tensor x, float by) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) { ops.impl("scale", TORCH_BOX(&scale)); }
"""
KERNEL = {
    "layer-norm/build.toml": '[general]\nname = "layer-norm"\n[torch]\nsrc = ["torch-ext/torch_binding.cpp"]\n',
    "layer-norm/torch-ext/torch_binding.cpp": BINDING,
    "layer-norm/torch-ext/layer_norm/__init__.py": "",
}
FAKE = """
import torch
from .._ops import add_op_namespace_prefix

@torch.library.register_fake(add_op_namespace_prefix("scale"))
def scale_fake(x):
    return torch.empty_like(x)
"""
CALL = "from ._ops import ops\n\ndef scale(x):\n    return ops.scale(x)\n"
HELPER = """
import torch
from ._ops import ops

lib = torch.library.Library(ops.__name__.split(".")[-1], "FRAGMENT")
lib.define("shift(Tensor x) -> Tensor")

@torch.library.register_fake(f"{ops.name}::shift")
def shift_fake(x, y):
    return x
"""


def found(more: dict[str, str]) -> list[str]:
    linted = lint_files([PACK], {**KERNEL, **more})
    return [f"{item.code} {item.message}" for item in linted.diagnostics if item.code != "REG206"]


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        ("fakes/__init__", FAKE, "REG201 the fake of `_layer_norm::scale` does not take `by`, which the schema passes"),
        ("calls", CALL, "REG401 `_layer_norm::scale` is called without the required `by`"),
        ("helper", HELPER, "REG201 the fake of `_layer_norm::shift` requires `y`, which the schema does not pass"),
    ],
)
def test_python_reaches_the_operators_through_the_module_that_the_build_writes(
    module: str, text: str, message: str
) -> None:
    [only] = found({f"layer-norm/torch-ext/layer_norm/{module}.py": text})
    assert only.startswith(message)


@pytest.mark.parametrize(
    "more",
    [
        {"layer-norm/torch-ext/layer_norm/_ops.py": "ops = make()\n"},
        {"layer-norm/build.toml": "[general]\nname = 1\n"},
        {"layer-norm/build.toml": "[general\n"},
        {"layer-norm/build.toml": '[general]\nname = "other"\n'},
    ],
    ids=["written", "no-name", "broken", "another-package"],
)
def test_a_module_of_the_tree_counts_and_another_build_file_says_nothing(more: dict[str, str]) -> None:
    assert found({"layer-norm/torch-ext/layer_norm/calls.py": CALL, **more}) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("from ._ops import ops\n\ndef f(x):\n    return ops.scael(x, 1.0)\n", 1),
        ("from ._ops import ops\n\nscale = ops.scael.default\n", 1),
        ("from ._ops import ops\n\ndef f(x):\n    return ops.rotate(x, 1.0)\n", 0),
        ("from ._ops import ops\n\ndef f(ops, x):\n    return ops.scael(x, 1.0)\n", 0),
        ("from ._ops import ops\n\ntry:\n    scale = ops.scael\nexcept AttributeError:\n    scale = None\n", 0),
        ("from ._ops import ops\n\nhas = hasattr(ops, 'scael')\nscale = ops.scael if has else None\n", 0),
        ("from . import ops\n\ndef f(x):\n    return ops.scael(x, 1.0)\n", 0),
    ],
)
def test_misspelt_names_after_ops(text: str, count: int) -> None:
    said = "REG406 nothing defines `_layer_norm::scael`, so that this raises; did you mean `_layer_norm::scale`?"
    assert found({"layer-norm/torch-ext/layer_norm/calls.py": text}) == [said] * count
    assert found({"layer-norm/benchmarks/calls.py": text}) == []


OWN = {"layer-norm/torch-ext/layer_norm/ops/__init__.py": "def scale(x):\n    return x * 2\n"}


@pytest.mark.parametrize(
    ("first", "more", "expected"),
    [
        ("", OWN, []),
        ("from .ops import scale as own\n", OWN, ["REG401"]),  # only the first import of a submodule binds it
        ("from . import ops as own\n", OWN, ["REG401"]),
        ("from .layers import Layer\n", OWN, []),
        ("", {"layer-norm/torch-ext/layer_norm/other/__init__.py": ""}, ["REG401"]),
        ("", {"layer-norm/torch-ext/layer_norm/inner/ops.py": ""}, ["REG401"]),
    ],
)
def test_a_submodule_that_takes_the_place_of_a_name_of_its_package(
    first: str, more: dict[str, str], expected: list[str]
) -> None:
    package = {"layer-norm/torch-ext/layer_norm/__init__.py": first + CALL}
    assert [item.partition(" ")[0] for item in found({**package, **more})] == expected


OPTIONAL = """
import torch
try:
    from ._ops import add_op_namespace_prefix, ops
    HAS_OPS = True
except ImportError:
    add_op_namespace_prefix = ops = {}
    HAS_OPS = False

if HAS_OPS:
    @torch.library.register_fake(add_op_namespace_prefix("scale"))
    def scale_fake(x):
        return torch.empty_like(x)

def scale(x):
    return ops.scale(x)
"""


@pytest.mark.parametrize(
    ("fallback", "codes"),
    [("None", ["REG401", "REG201"]), ("other_ops", [])],
)
def test_a_name_that_is_none_where_the_module_is_not_built(fallback: str, codes: list[str]) -> None:
    """A call and an attribute of `None` raise, so that what is called is that of the module."""
    told = found({"layer-norm/torch-ext/layer_norm/optional.py": OPTIONAL.format(fallback)})
    assert sorted(item.partition(" ")[0] for item in told) == sorted(codes)

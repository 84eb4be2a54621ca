from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.workspace import Workspace
from opschema_rules.aten.generated import functions_of
from opschema_rules.aten.model import NativeFile
from opschema_rules.aten.native import read_native, read_tags

RELU = """\
- func: relu(Tensor self) -> Tensor
- func: relu_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU: relu_
  autogen: relu.out
"""


def native(text: str) -> NativeFile:
    project = Project(Workspace(Path(), {"native_functions.yaml": text}))
    file = project.yaml("native_functions.yaml")
    assert file is not None
    return read_native(file, None)


def generated(text: str) -> list[str]:
    return [str(item.schema) for item in functions_of(native(text)).values() if item.generated]


@cache
def installed() -> NativeFile:
    torchgen = pytest.importorskip("torchgen")
    folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
    project = Project(Workspace(folder))
    file, tags = project.yaml("native_functions.yaml"), project.yaml("tags.yaml")
    assert file is not None
    assert tags is not None
    return read_native(file, read_tags(tags))


def test_an_out_variant_is_generated_from_self() -> None:
    assert generated(RELU) == ["relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"]


def test_none_is_generated_unless_autogen_asks_for_one() -> None:
    assert generated(RELU.replace("  autogen: relu.out\n", "")) == []


def test_a_functional_variant_is_generated_with_the_out_variant() -> None:
    text = """\
- func: _amp_update_scale_(Tensor(a!) self, Tensor(b!) growth, Tensor found, int n=1) -> Tensor(a!)
  dispatch:
    CUDA: _amp_update_scale_cuda_
  autogen: _amp_update_scale, _amp_update_scale.out
"""
    assert generated(text) == [
        "_amp_update_scale.out(Tensor self, Tensor(b!) growth, Tensor found, int n=1, *, Tensor(a!) out) -> Tensor(a!)",
        "_amp_update_scale(Tensor self, Tensor growth, Tensor found, int n=1) -> (Tensor, Tensor growth_out)",
    ]


def test_the_functional_variant_of_a_mutable_operator_has_a_name_of_its_own() -> None:
    text = """\
- func: norm(Tensor x, Tensor(a!)? mean, Tensor(c!)[] rest) -> (Tensor y, Tensor)
  dispatch:
    CPU: norm
  autogen: norm.out, norm_functional
"""
    assert generated(text) == [
        "norm.out(Tensor x, Tensor(a!)? mean, Tensor(c!)[] rest, *, Tensor(b!) out0, Tensor(d!) out1)"
        " -> (Tensor(b!), Tensor(d!))",
        "norm_functional(Tensor x, Tensor? mean, Tensor[] rest) -> (Tensor y, Tensor, Tensor? mean_out, Tensor[] rest_out)",
    ]


def test_an_out_variant_has_no_tensor_options_and_returns_nothing_beside_lists() -> None:
    options = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
    text = f"""\
- func: pad.int(Tensor self, *, {options}, bool wide=False) -> (Tensor, Tensor[])
  dispatch:
    CPU: pad
  autogen: pad.int_out
"""
    assert generated(text) == ["pad.int_out(Tensor self, *, bool wide=False, Tensor(a!) out0, Tensor(b!)[] out1) -> ()"]


@pytest.mark.parametrize(
    "text",
    [
        "- func: f(Tensor self) -> Tensor\n  autogen: f.out\n",  # composite
        "- func: f(Tensor(a) self) -> Tensor(a)\n  autogen: f.out\n  dispatch:\n    CPU: f\n",  # a view
        "- func: f(Tensor self) -> int\n  autogen: f.out\n  dispatch:\n    CPU: f\n",  # no tensor is returned
        "- func: f(Tensor self) -> Tensor\n  autogen: f.out\n  dispatch:\n    CPU: f\n  manual_cpp_binding: True\n",
    ],
)
def test_nothing_is_generated(text: str) -> None:
    assert generated(text) == []


def test_dispatch_keys_are_filled_in() -> None:
    text = """\
- func: a(Tensor self) -> Tensor
- func: b(Tensor self) -> Tensor
  dispatch:
    CPU, CUDA: b
- func: c(Tensor self) -> Tensor
  structured_delegate: c.out
  dispatch:
    SparseCPU: c_sparse
- func: c.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: c_out
    MkldnnCPU: c_mkldnn
"""
    functions = functions_of(native(text))
    assert {name: sorted(item.dispatch) for name, item in functions.items()} == {
        "a": ["CompositeImplicitAutograd"],
        "b": ["CPU", "CUDA"],
        "c": ["CPU", "CompositeExplicitAutogradNonFunctional", "Meta", "SparseCPU"],
        "c.out": ["CPU", "Meta", "MkldnnCPU"],
    }


@pytest.mark.parametrize(
    "field", ["dispatch: 3", "dispatch: [CPU]", "autogen: [f.out]", "autogen: f.out, ,f", "tags: 3"]
)
def test_malformed_fields_do_no_harm(field: str) -> None:
    assert "f" in functions_of(native(f"- func: f(Tensor self) -> Tensor\n  {field}\n"))


def test_the_functions_of_the_installed_torch_are_torchgens() -> None:
    native = installed()
    folder = Path(pytest.importorskip("torchgen").__file__).parent / "packaged/ATen/native"
    parsed = pytest.importorskip("torchgen.gen").parse_native_yaml(
        str(folder / "native_functions.yaml"), str(folder / "tags.yaml")
    )
    theirs = {str(item.func.name): item for item in parsed.native_functions}
    assert len(theirs) > 3000
    assert {name: str(item.schema) for name, item in functions_of(native).items()} == {
        name: str(item.func) for name, item in theirs.items()
    }
    assert {item.name for item in functions_of(native).values() if item.generated} == {
        name for name, item in theirs.items() if "generated" in item.tags
    }
    keys: dict[str, set[str]] = defaultdict(set)
    for key, index in parsed.backend_indices.items():
        for name in index.index:
            keys[str(name)].add(str(key))
    explicit = [name for name, item in theirs.items() if not item.part_of_structured_group]
    assert {name: functions_of(native)[name].dispatch for name in explicit} == {name: keys[name] for name in explicit}


def test_the_kernels_of_structured_operators_are_those_that_torch_registers() -> None:
    torch = pytest.importorskip("torch")
    keys = ("CPU", "CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "SparseCPU", "QuantizedCPU")
    functions = functions_of(installed()).values()
    structured = [item for item in functions if {"structured", "structured_delegate"} & set(item.entry.fields)]
    registered = torch._C._dispatch_has_kernel_for_dispatch_key
    assert len(structured) > 600
    for key in keys:
        theirs = {item.name for item in structured if registered(f"aten::{item.name}", key)}
        assert {item.name for item in structured if key in item.dispatch} == theirs
    assert all("Meta" in item.dispatch for item in structured if not item.generated)

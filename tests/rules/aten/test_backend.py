"""Reading a backend's YAML: its lists, the forms of an item, and the dialects of other generators."""

from __future__ import annotations

import pytest

from opschema_cli.source.text import Source
from opschema_cli.source.yaml import YamlFile
from opschema_cli.source.yaml_compose import compose
from opschema_rules.aten.backend import read_backend
from opschema_rules.aten.kinds import kind_of
from opschema_rules.aten.model import BackendFile

HEAD = "backend: XLA\ncpp_namespace: torch_xla\n"


def read(text: str) -> BackendFile:
    found = read_backend(YamlFile(Source("x.yaml", text, "utf-8", ""), compose(text)), None)
    assert found is not None
    return found


def items(text: str) -> list[tuple[str, str, str, str]]:
    """Section, name, the text of the name and that of the options of every item."""
    found = read(text)
    return [
        (
            item.section,
            item.name,
            text[item.name_node.start : item.name_node.end],
            text[item.options.start : item.options.end] if item.options is not None else "",
        )
        for item in found.items
    ]


def test_the_lists_of_torchgen_are_read() -> None:
    text = (
        HEAD
        + "full_codegen:\n  - abs\nsupported: [add.Tensor, 'relu']\nsymint:\nir_gen:\n- selu\nautograd:\n  - max_pool3d\n"
    )
    assert [(item.section, item.name) for item in read(text).items] == [
        ("supported", "add.Tensor"),
        ("supported", "relu"),
        ("full_codegen", "abs"),
        ("autograd", "max_pool3d"),
        ("ir_gen", "selu"),
    ]


@pytest.mark.parametrize(
    ("item", "name", "written", "options"),
    [
        ("add.out", "add.out", "add.out", ""),
        ('"add.out"', "add.out", '"add.out"', ""),
        ("add.out: {structured: true}", "add.out", "add.out", "{structured: true}"),
        ("add.out:\n      structured: true", "add.out", "add.out", "structured: true"),
        ("add.out:\n    structured: true", "add.out", "add.out", "add.out:\n    structured: true"),
        ("func: add.out\n    op_api: True", "add.out", "add.out", "func: add.out\n    op_api: True"),
        ("{func: add.out, op_api: True}", "add.out", "add.out", "{func: add.out, op_api: True}"),
    ],
)
def test_the_forms_of_an_item(item: str, name: str, written: str, options: str) -> None:
    assert items(f"{HEAD}supported:\n  - {item}\n") == [("supported", name, written, options)]


@pytest.mark.parametrize(
    "item", ["3", "", "''", "[abs]", "{}", "true", "{abs: , sin: true}", "{[a]: b}", "func:", "{func: [a]}", "~"]
)
def test_what_names_no_operator_is_left_out(item: str) -> None:
    assert items(f"{HEAD}supported:\n  - {item}\n  - relu\n") == [("supported", "relu", "relu", "")]


@pytest.mark.parametrize("value", ["abs", "3", "{abs: }", "", "!!set {a}"])
def test_a_list_that_is_none_has_no_items(value: str) -> None:
    assert items(f"{HEAD}supported: {value}\n") == []


def test_aliases_are_followed() -> None:
    text = HEAD + "supported: &all\n  - &a abs\n  - *a\nsymint: *all\n"
    assert [item.name for item in read(text).items] == ["abs"] * 4


OP_PLUGIN = """\
all_version: [v2.1, v2.2]
official:
  - func: abs(Tensor self) -> Tensor
    op_api: all_version
custom:
  - func: npu_gelu(Tensor self) -> Tensor
"""
TORCH_NPU = """\
backend: NPU
cpp_namespace: at_npu::native
supported:
  - full
  - func: clone
    op_api: True
custom:
  - func: npu_gelu(Tensor self) -> Tensor
"""
TORCH_MLIR = "blacklist:\n- rsub\nsupported:\n- clone\nadditional_ops:\n- _copy_from\n"
LAZY = "backend: Lazy\ncpp_namespace: torch::lazy\nsupported: [abs]\nnon_native:\n  - func: cast(Tensor x) -> Tensor\n"


@pytest.mark.parametrize(
    ("text", "dialect", "names"),
    [
        (HEAD + "supported: [abs]\n", "torchgen", ["abs"]),
        (HEAD + "supported: [abs]\ncustom: [npu_gelu]\n", "torchgen", ["abs"]),
        (OP_PLUGIN, "op-plugin", ["abs", "npu_gelu"]),
        (TORCH_NPU, "torch-npu", ["full", "clone", "npu_gelu"]),
        (TORCH_MLIR, "torch-mlir", ["clone", "_copy_from", "rsub"]),
        (LAZY, "lazy-tensor", ["abs", "cast"]),
    ],
)
def test_a_dialect_is_told_by_its_keys(text: str, dialect: str, names: list[str]) -> None:
    found = read(text)
    assert (found.dialect, [item.name for item in found.items]) == (dialect, names)
    assert kind_of(found.file) == "backend"


@pytest.mark.parametrize(
    "text", ["- backend: XLA\n- cpp_namespace: torch_xla\n", "- {backend: XLA, cpp_namespace: x}\n"]
)
def test_a_list_where_a_mapping_is_meant_is_still_a_backend(text: str) -> None:
    assert kind_of(YamlFile(Source("x.yaml", text, "utf-8", ""), compose(text))) == "backend"
    assert read(text).items == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("backend: XLA\ncpp_namespce: torch_xla\n", "backend"),
        ("backend: XLA\ncp_namespace: torch_xla\nsuported: [abs]\n", "backend"),
        ("Backend: XLA\ncpp_namespace: torch_xla\n", "backend"),
        ("cpp_namespace: torch_xla\nsuported: [abs]\n", "backend"),
        ("cpp_namespace: torch_xla\nsuported: yes\n", ""),
        ("cpp_namespace: torch_xla\nbackends: CPU\n", ""),
        ("cpp_namespace: torch_xla\nbakend: [CPU]\n", ""),
        ("backend: s3\nnamespace: x\n", ""),
        ("backend: s3\nsuported: [x]\n", ""),
        ("backnd: XLA\ncpp_namespce: torch_xla\n", ""),
    ],
)
def test_a_slip_in_a_key_does_not_hide_a_backend(text: str, kind: str) -> None:
    assert kind_of(YamlFile(Source("x.yaml", text, "utf-8", ""), compose(text))) == kind


def test_an_empty_file_is_none() -> None:
    assert read_backend(YamlFile(Source("x.yaml", "", "utf-8", ""), compose("")), None) is None

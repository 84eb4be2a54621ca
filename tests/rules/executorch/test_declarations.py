"""Operators of a list that are declared elsewhere, and those that builds select."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.executorch.pack import PACK

SCHEMA = "scale.out(Tensor x, float factor, int n=1, *, Tensor(a!) out) -> Tensor(a!)"


def listed(schema: str, name: str = "scale_out") -> str:
    return f"- func: kit::{schema}\n  kernels:\n    - arg_meta: null\n      kernel_name: kit::{name}\n"


def python(schema: str) -> str:
    return f'import torch\n\nlib = torch.library.Library("kit", "DEF")\nlib.define("{schema}")\n'


DIFFERS = "Python declares `kit::scale.out` differently"


def found(schema: str) -> list[str]:
    linted = lint_files(PACK, {"ops.yaml": listed(SCHEMA), "ops.py": python(schema)})
    return [f"{item.severity.name} {item.message}" for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (SCHEMA.replace("float", "int"), f"ERROR {DIFFERS}: it declares `int factor`, this entry `float factor`"),
        (SCHEMA.replace("float factor, ", ""), f"ERROR {DIFFERS}: argument `float factor` exists only in this entry"),
        (SCHEMA.replace("int n", "int m, int n"), f"ERROR {DIFFERS}: argument `int m` is missing here"),
        (
            SCHEMA.replace("float factor, int n=1", "int n, float factor"),
            f"ERROR {DIFFERS}: it has `n` where this entry has `factor`",
        ),
        (
            SCHEMA.replace("-> Tensor(a!)", "-> (Tensor(a!), Tensor)"),
            f"ERROR {DIFFERS}: it returns `Tensor, Tensor`; this entry returns `Tensor`",
        ),
        (SCHEMA.replace("n=1", "n=2"), f"WARNING {DIFFERS}: it declares `int n=2`, this entry `int n=1`"),
        (SCHEMA.replace("factor", "by"), f"WARNING {DIFFERS}: argument `by` is named `factor` here"),
        (SCHEMA.replace("int n=1, *, ", "*, int n=1, "), f"WARNING {DIFFERS}: `n` is positional here"),
    ],
)
def test_another_declaration_in_python(schema: str, message: str) -> None:
    assert found(schema) == [message]


@pytest.mark.parametrize(
    "schema", [SCHEMA, SCHEMA.replace("int n", "SymInt n"), SCHEMA.replace("scale.out", "scale2.out")]
)
def test_the_same_declaration_in_python(schema: str) -> None:
    assert found(schema) == []


def test_another_list() -> None:
    files = {"a.yaml": listed(SCHEMA), "b.yaml": listed(SCHEMA.replace("float", "int"))}
    (item,) = lint_files(PACK, files).diagnostics
    assert (item.place.path, item.related[0].place.path) == ("b.yaml", "a.yaml")


ADD = "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (ADD, []),
        (ADD.replace("Scalar alpha", "float alpha"), ["it declares `Scalar alpha=1`, this entry `float alpha=1`"]),
        (ADD.replace(" Scalar alpha=1,", ""), ["argument `Scalar alpha=1` is missing here"]),
    ],
)
def test_an_operator_of_aten_with_a_schema(schema: str, expected: list[str]) -> None:
    listed_ = f"- func: {schema}\n  kernels:\n    - arg_meta: null\n      kernel_name: kit::add_out\n"
    found = [item.message for item in lint_files(PACK, {"ops.yaml": listed_}).diagnostics]
    assert [message.partition("differently: ")[2] for message in found] == expected


def test_a_torch_that_is_not_known_may_declare_it_so() -> None:
    schema = ADD.replace("Scalar alpha", "float alpha")
    files = {"ops.yaml": f"- func: {schema}\n  kernels:\n    - arg_meta: null\n      kernel_name: kit::add_out\n"}
    assert lint_files(PACK, files).codes() == ["EXE501"]
    assert lint_files(PACK, {**files, ".torch_commit": "b" * 40}).codes() == []


CMAKE = 'set(_ops "{}"  # "kit::gone.out"\n)\ngen_selected_ops(LIB_NAME "x" ROOT_OPS ${{_ops}} INCLUDE_ALL_OPS "")\n'
BUCK = 'et_operator_library(\n    name = "x",\n    ops = ["{}"],\n    deps = ["kit::no.dep"],\n)\n'


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("CMakeLists.txt", CMAKE),
        ("CMakeLists.txt", 'gen_selected_ops(LIB_NAME "x" ROOT_OPS {})\n'),
        ("x/targets.bzl", BUCK),
        ("x/targets.bzl", BUCK.replace('ops = ["{}"]', 'ops_dict = {{"{}": ["v1/6;0,1"]}}')),
        ("build.sh", 'cmake -DEXECUTORCH_SELECT_OPS_LIST="kit::scale.out,\\\n{}" -B out  # kit::gone.out\n'),
        ("build.sh", "python gen_oplist.py --root_ops={} --output_path=x.yaml\n"),
        ("build.sh", "(cmake -DEXECUTORCH_SELECT_OPS_LIST={})\n"),
        ("ci.yml", "args: [-DEXECUTORCH_SELECT_OPS_LIST={}, -DX=Y]\n"),
        ("CMakeLists.txt", "set(EXECUTORCH_SELECT_OPS_LIST {})\n"),
        ("CMakePresets.json", '{{"cacheVariables": {{"EXECUTORCH_SELECT_OPS_LIST": "{}"}}}}\n'),
        ("CMakeLists.txt", 'set(EXECUTORCH_SELECT_OPS_LIST "{}" CACHE STRING "")\n'),
        ("selected_operators.yaml", "operators:\n  {}:\n    is_root_operator: true\n"),
    ],
)
def test_selected_operators(path: str, text: str) -> None:
    for name, codes in (("kit::scale.out", []), ("kit::scale.uot", ["EXE601"]), ("acme::scale.uot", [])):
        assert lint_files(PACK, {"ops.yaml": listed(SCHEMA), path: text.format(name)}).codes() == codes


@pytest.mark.parametrize(
    "text",
    [
        '--root_ops="${OPS}"',
        '-DEXECUTORCH_SELECT_OPS_LIST="kit::$NAME"',
        "--root_ops=all",
        "--root_ops=kit::scale.out,kit::${NAME}",
        "--root_ops=kit::scale.out,kit::<name>",
    ],
)
def test_selected_operators_in_variables(text: str) -> None:
    assert lint_files(PACK, {"ops.yaml": listed(SCHEMA), "build.sh": f"cmake {text}\n"}).codes() == []

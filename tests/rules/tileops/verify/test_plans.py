"""Plans of ops: what they target, what a call passes, and what is named where nothing can be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.project import Project
from opschema_cli.verify.model import Call, Limits
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.detection import TileopsOptions
from opschema_rules.tileops.examples import MANIFEST_PATH, OP_PATH, example_files
from opschema_rules.tileops.pack import PACK
from tests.rules.tileops.test_malformed import VALUES, entries
from tests.rules.tileops.verify.planned import cells, plan, plans, shapes

TILEKIT = Path(__file__).parents[4] / "fixtures/tilekit"


def call(entry: str, row: str = "small", shape: str = "row") -> Call:
    return cells(plan(entry), row)[shape].call


@pytest.mark.parametrize(
    ("kind", "value", "tuples"),
    [
        ("int | tuple[int, int]", "[1, 2]", ("scale",)),
        ("Tuple[int, ...]", "[1, 2]", ("scale",)),
        ("tuple[int, int] | list[int]", "[1, 2]", ()),
        ("list[int]", "[1, 2]", ()),
        ("Sequence[int]", "[1, 2]", ()),
        ("float", "1.5", ()),
    ],
)
def test_arrays_that_are_declared_as_tuples_only_are_passed_as_tuples(
    kind: str, value: str, tuples: tuple[str, ...]
) -> None:
    found = plan(
        "signature:\n  inputs: {x: {dtype: float16, shape: '[M, N]'}}\n  outputs: {y: {dtype: same_as(x), shape: '[M, N]'}}\n"
        f"  params: {{scale: {{type: '{kind}', default: 1}}}}\n"
        f"workloads: [{{x_shape: [4, 8], scale: {value}, dtypes: [float16], label: small}}]"
    )
    assert cells(found, "small")["row"].call.tuples == tuples


# Targets


def moved(files: dict[str, str], folder: str) -> dict[str, str]:
    return {
        path.replace("kit/", f"{folder}kit/", 1) if path.startswith("kit/") else path: text
        for path, text in files.items()
    }


@pytest.mark.parametrize(("folder", "paths"), [("", (".",)), ("src/", ("src",))])
def test_a_class_is_imported_from_where_its_package_lies(folder: str, paths: tuple[str, ...]) -> None:
    found = plans(moved(example_files([]), folder))["ExampleFwdOp"].target
    assert (found.module, found.name, found.paths) == ("kit.ops.example", "ExampleFwdOp", paths)


def test_a_class_is_imported_from_the_module_that_defines_it() -> None:
    files = example_files([])
    files |= {"kit/ops/inner.py": files[OP_PATH], OP_PATH: "from kit.ops.inner import ExampleFwdOp\n"}
    assert plans(files)["ExampleFwdOp"].target.module == "kit.ops.inner"


def test_a_package_is_a_module() -> None:
    files = example_files([("yaml", "source: {op: kit/ops/__init__.py}")])
    files["kit/ops/__init__.py"] = files.pop(OP_PATH)
    assert plans(files)["ExampleFwdOp"].target.module == "kit.ops"
    assert plans(files)["ExampleFwdOp"].target.paths == (".",)


OPERATORS = """\
PREFIX = "kit::"


class ExampleFwdOp(Op):
    compile_op_names = (%s,)

    def forward(self, x): ...
"""


@pytest.mark.parametrize(
    ("names", "found"),
    [('"kit::a", "kit::b"', ("kit::a", "kit::b")), ("PREFIX", ("kit::",)), ("name_of(PREFIX)", ())],
)
def test_operators_are_those_that_the_class_lists(names: str, found: tuple[str, ...]) -> None:
    assert plan("", OPERATORS % names).target.operators == found


@pytest.mark.parametrize(
    ("api", "found"),
    [
        ("torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("none", ""),
        ("flash_attn.flash_attn_func", ""),
        ("torch", ""),
        ("torch.relu(x)", ""),
    ],
)
def test_the_reference_is_a_function_of_torch(api: str, found: str) -> None:
    assert plan(f'ref_api: "{api}"').reference == found


# Calls

OPTIONAL = """\
signature:
  inputs:
    x: {dtype: "float16 | float32"}
    state: {dtype: "float32", mutated: true}
    mask: {dtype: bool, optional: true}
  outputs: {y: {dtype: "same_as(x)"}, state: {dtype: "float32"}}
  params: {eps: {type: float, default: 0.5}, mode: {type: str}}
  static_dims: {N: "x.shape[1]"}
  shape_rules:
    - "y.shape == x.shape"
    - "state.shape == (x.shape[1],)"
    - "mask is None or mask.shape == x.shape"
workloads:
  - {x_shape: [4, 8], mode: fast, dtypes: [float16], label: plain}
  - {x_shape: [4, 8], mask_shape: [4, 8], mode: fast, eps: 1.5, dtypes: [float16], label: masked}
"""


def test_inputs_are_passed_where_the_row_or_a_rule_gives_their_shape() -> None:
    assert shapes(call(OPTIONAL, "plain")) == {"x": (4, 8), "state": (8,)}
    assert shapes(call(OPTIONAL, "masked")) == {"x": (4, 8), "state": (8,), "mask": (4, 8)}
    assert shapes(call(OPTIONAL, "masked", "odd")) == {"x": (3, 67), "state": (67,), "mask": (3, 67)}
    assert call(OPTIONAL, "plain").omitted == ("mask",)


def test_params_are_those_of_the_row_and_static_dimensions() -> None:
    assert call(OPTIONAL, "plain").params == {"N": 8, "mode": "fast"}
    assert call(OPTIONAL, "masked").params == {"N": 8, "mode": "fast", "eps": 1.5}
    assert call(OPTIONAL, "plain", "odd").params["N"] == 67
    assert call(OPTIONAL, "plain").static_dims == ("N",)


def test_defaults_are_told_beside_what_is_passed() -> None:
    assert call(OPTIONAL, "plain").defaults == {"eps": 0.5}
    assert call(OPTIONAL, "masked").defaults == {}


def test_what_an_op_writes_is_told() -> None:
    found = call(OPTIONAL, "plain")
    assert [item.name for item in found.inputs if item.mutated] == ["state"]
    assert found.aliases == {"state": "state"}


def test_outputs_are_predicted_where_the_rules_tell() -> None:
    outputs = {item.name: (item.shape, item.dtype) for item in call(OPTIONAL, "plain").outputs}
    assert outputs == {"y": ((4, 8), "float16"), "state": ((8,), "float32")}
    unknown = call("""\
signature:
  shape_rules: ["y.ndim == 1"]
""")
    assert [(item.shape, item.dtype) for item in unknown.outputs] == [(None, "float16")]


def test_carriers_are_no_arguments() -> None:
    project = Project(Workspace(TILEKIT))
    (found,) = PACK.plans(project, TileopsOptions(), ["WindowMaskFwdOp"], Limits())
    calls = [cell.call for cell in found.cells]
    assert {item.inputs for item in calls} == {()}
    assert {output.dtype for item in calls for output in item.outputs} == {"float16", "bfloat16"}


# What cannot be run


def reason(entry: str) -> dict[str, str]:
    found = plan(entry)
    assert found.cells == ()
    return found.unplanned


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            "workloads: [{m: 4, dtypes: [float16], label: r}]",
            "the row gives no shape of `x`, and no rule gives it",
        ),
        (
            "workloads: [{x_shape: [-4], dtypes: [float16], label: r}]",
            "the row gives no shape of `x`, and no rule gives it",
        ),
        ("workloads: [{x_shape: [4], x_shape: [5], dtypes: [float16], label: r}]", "the row gives `x_shape` twice"),
        (
            "workloads: [{x_shape: [4], eps: [1000000000000000000000], dtypes: [float16], label: r}]",
            "the value of `eps` cannot be passed on",
        ),
        (
            "signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}, params: {k: {type: int}}}\n"
            "workloads: [{x_shape: [4], dtypes: [float16], label: r}]",
            "the row gives no value of `k`, which has no default",
        ),
        (
            'signature:\n  static_dims: {N: "x.shape[k]"}\nworkloads: [{x_shape: [4], dtypes: [float16], label: r}]',
            "the static dimension `N` is not known",
        ),
        (
            'signature:\n  shape_rules: ["x.ndim == 3"]\nworkloads: [{x_shape: [4], dtypes: [float16], label: r}]',
            "the row breaks `x.ndim == 3`",
        ),
    ],
)
def test_a_row_that_is_no_call_is_named(entry: str, why: str) -> None:
    assert reason(entry) == {"ExampleFwdOp[r-float16-row-s0]": why}


def test_a_row_without_dtypes_is_named() -> None:
    assert reason("workloads: [{x_shape: [4], label: r}]") == {"ExampleFwdOp[r]": "the row lists no dtypes"}


def test_an_op_without_rows_is_named() -> None:
    assert reason("workloads: []") == {"ExampleFwdOp": "it has no workload rows"}


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("class OtherOp(Op): ...\n", "no class `ExampleFwdOp` in the file that `source.op` names"),
        ("ExampleFwdOp = make()\n", "`ExampleFwdOp` is not a class of kit/ops/example.py"),
    ],
)
def test_an_op_whose_class_is_not_known_is_named(code: str, why: str) -> None:
    found = plan("", code)
    assert found.unplanned == {"ExampleFwdOp": why}
    assert found.target.module == ""


def test_an_op_that_is_not_implemented_is_run_only_if_it_is_asked_for() -> None:
    files = example_files([("yaml", "status: spec-only")])
    assert plans(files)["ExampleFwdOp"].unplanned == {"ExampleFwdOp": "its status is `spec-only`, not `implemented`"}
    assert len(plans(files, ["ExampleFwdOp"])["ExampleFwdOp"].cells) > 9


def test_a_name_that_no_entry_has_is_left_out() -> None:
    assert list(plans(example_files([]), ["ExampelFwdOp", "ExampleFwdOp"])) == ["ExampleFwdOp"]


def test_a_param_may_be_infinite() -> None:
    workloads = "workloads: [{x_shape: [4, 4], eps: -.inf, dtypes: [float16], label: r}]"
    assert call(workloads, "r").params["eps"] == float("-inf")


def test_an_op_that_two_entries_declare_is_named() -> None:
    files = example_files([])
    files["kit/manifest/again.yaml"] = files[MANIFEST_PATH]
    assert plans(files)["ExampleFwdOp"].unplanned == {"ExampleFwdOp": "2 entries have this name"}


# Names of cells


def test_rows_of_one_label_and_dtype_are_told_apart() -> None:
    found = plan("""\
workloads:
  - {x_shape: [4, 8], dtypes: [float16], label: same}
  - {x_shape: [4, 8], dtypes: [float32], label: same}
  - {x_shape: [4, 16], dtypes: [float16, float16], label: same}
  - {x_shape: [4, 32], dtypes: [float16], label: "strange [label]/\\u00e9"}
  - {x_shape: [4, 64], dtypes: [float16]}
""")
    rows = dict.fromkeys((cell.row, cell.dtype) for cell in found.cells)
    assert list(rows) == [
        ("same", "float16"),
        ("same", "float32"),
        ("same.2", "float16"),
        ("strange-label-\u00e9", "float16"),
        ("row4", "float16"),
    ]


# Malformed entries


@pytest.mark.parametrize("value", VALUES[::2])
def test_no_malformed_entry_takes_a_plan_down(value: str) -> None:
    files = example_files([])
    text = "".join([files[MANIFEST_PATH].replace("ExampleFwdOp:", "ExampleFwdOp: &whole"), *entries(value)])
    names = [line.partition(":")[0] for line in text.splitlines() if line[:1] == "A"]
    classes = "".join(f"\n\nclass {name}(ExampleFwdOp):\n    pass\n" for name in names)
    found = plans({**files, MANIFEST_PATH: text, OP_PATH: files[OP_PATH] + classes})
    assert set(names) <= set(found)
    assert [name for name, item in found.items() if not item.cells and not item.unplanned] == []

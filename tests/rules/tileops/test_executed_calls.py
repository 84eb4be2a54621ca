"""The code executed on the calls that an entry describes, compared with the entry's declaration."""

from __future__ import annotations

import re

import pytest

from opschema_cli.config import Config
from opschema_cli.lint.registry import Registry
from opschema_cli.lint.runner import Job, run
from opschema_cli.lint.settings import resolve_settings
from opschema_cli.project import Project
from opschema_cli.testing import Linted, lint_files
from opschema_cli.workspace import Workspace
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK
from tests.command import TILEKIT

CODES = ("SHP113", "SHP114", "DTY109", "DTY110")
SIGNATURE = """\
signature:
  inputs:
    x: {{dtype: "float16 | float32", shape: "{inputs}"}}
  outputs:
    y: {{dtype: "same_as(x)", shape: "{outputs}"}}
  params:
    size: {{type: "int | None", default: null}}
  shape_rules:
    - "{rule}"
workloads:
  - {row}
"""
CLASS = """\
class ExampleFwdOp(Op):
    def __init__(self, size=None, *, kernel_map=None):
        {init}
        self.dispatch_kernel(kernel_map)

    def _infer_output_shapes(self, x_shape):
        {infer}

    def _validate_dtypes(self, x):
        {validate}
"""
ROW = '{x_shape: [4, 8], dtypes: [float16], label: "row"}'


def lint(
    infer: str,
    *,
    inputs: str = "[M, K]",
    outputs: str = "[M, K]",
    rule: str = "size is None or size > 0",
    row: str = ROW,
    init: str = "self.size = size",
    validate: str = "pass",
) -> Linted:
    entry = SIGNATURE.format(inputs=inputs, outputs=outputs, rule=rule, row=row)
    code = CLASS.format(init=init, infer=infer.replace("\n", "\n        "), validate=validate)
    return lint_files([PACK], example_files([("yaml", entry), ("python", code)]), CODES)


def messages(linted: Linted) -> list[str]:
    return [item.message.replace("`_infer_output_shapes()` returns", "returns") for item in linted.diagnostics]


DIFFERENT = [
    ('return {"y": x_shape[:-1]}', {}, "the shape (4,) for `y`; the manifest declares (4, 8): `x` is (4, 8)"),
    ('return {"y": (x_shape[0], x_shape[1] + 1)}', {}, "the shape (4, 9) for `y`; the manifest declares (4, 8): `x` is (4, 8)"),
    ('m, k = x_shape\nreturn {"y": (k, m)}', {}, "the shape (8, 4) for `y`; the manifest declares (4, 8): `x` is (4, 8)"),
    ('return {"y": x_shape} if self.size else {}', {}, "no shape of `y`, which the manifest declares: `x` is (4, 8)"),
    # equal in the row, distinct in a row that is derived from it
    ('return {"y": x_shape[::-1]}', {"row": ROW.replace("8", "4")},
     "the shape (7, 11) for `y`; the manifest declares (11, 7): `x` is (11, 7)"),
    # the dimension follows from a rule over a helper definition
    ('return {"y": (x_shape[0], x_shape[1] // 2)}', {"outputs": "[M, N]", "rule": "N == (K + 1) // 2"},
     "the shape (11, 3) for `y`; the manifest declares (11, 4): `x` is (11, 7)"),
    # only the empty call differs
    ('return {"y": x_shape if 0 not in x_shape else (0,)}', {},
     "the shape (0,) for `y`; the manifest declares (11, 0): `x` is (11, 0)"),
    # the row gives no shape: sizes are chosen
    ('return {"y": (x_shape[0], 1)}', {"row": '{size: 2, dtypes: [float16], label: "row"}'},
     "the shape (6, 1) for `y`; the manifest declares (6, 10): `x` is (6, 10), `size` is 2"),
    # nothing is returned, and a fraction is no size
    ('if x_shape[0] == 3:\n    return {"y": x_shape}', {}, "no shape of `y`, which the manifest declares: `x` is (4, 8)"),
    ('return {"y": (x_shape[0], x_shape[1] / 16)}', {"outputs": "[M, N]", "rule": "N == (K + 15) // 16"},
     "the shape (4, 0.5) for `y`; the manifest declares (4, 1): `x` is (4, 8)"),
    # no equation gives the shape
    ('return {"y": (x_shape[0],)}', {"outputs": "[M, N]", "rule": "y.ndim == 2"},
     "the shape (4,) for `y`; that breaks the declared shape of `y`, `[M, N]`: `x` is (4, 8)"),
]  # fmt: skip


@pytest.mark.parametrize(("infer", "entry", "message"), DIFFERENT)
def test_a_shape_that_differs(infer: str, entry: dict[str, str], message: str) -> None:
    assert messages(lint(infer, **entry)) == [f"returns {message}"]


SAME = [
    ('return {"y": list(x_shape), "other": ()}', {}),
    ('return dict(y=tuple(n for n in x_shape))', {}),
    ('return {"y": torch.broadcast_shapes(x_shape, (1,))}', {}),
    ('return {"y": (x_shape[0], -(-x_shape[1] // 2))}', {"outputs": "[M, N]", "rule": "N == (K + 1) // 2"}),
    ('return {"y": (x_shape[0], x_shape[1] / 1)}', {}),
    ('return self._shapes(x_shape) if x_shape else None', {"init": "self._shapes = kernel_map"}),
    # refuses the calls that differ
    ('if 0 in x_shape or x_shape[0] % 4:\n    raise ValueError("no")\nreturn {"y": (x_shape[0] // 4 * 4, x_shape[1])}', {}),
    # depends on what is not known
    ('return {"y": (x_shape[0], x_shape[1] + torch.cuda.device_count())}', {}),
    ('return {"y": self._shapes(x_shape)}', {"init": "self._shapes = kernel_map"}),
    # the row is not a call that the signature allows
    ('return {"y": (4, 8)}', {"rule": "size is not None", "inputs": "[4, 8]"}),
    # nothing is declared of the size
    ('return {"y": (x_shape[0], 3)}', {"outputs": "[M, N]"}),
]  # fmt: skip


@pytest.mark.parametrize(("infer", "entry"), SAME)
def test_no_difference_that_is_certain(infer: str, entry: dict[str, str]) -> None:
    assert messages(lint(infer, **entry)) == []


def test_what_cannot_be_followed_is_unresolved() -> None:
    linted = lint('return {"y": (x_shape[0], torch.cuda.device_count())}')
    reasons = [item.reason for item in linted.outcome.unresolved]
    assert reasons == ["the shape of `y` that `_infer_output_shapes()` of ExampleFwdOp returns is not known"]


def test_a_row_that_the_code_refuses() -> None:
    row = ROW.replace("dtypes", "size: 3, dtypes")
    linted = lint('return {"y": x_shape}', row=row, init='if size == 3:\n            raise ValueError(f"not {size}")')
    (item,) = linted.diagnostics
    assert item.message == "`__init__()` refuses the workload row with `ValueError`: not 3: `x` is (4, 8), `size` is 3"
    assert [linted.text(other.place).split("(")[0] for other in item.related] == ["raise ValueError"]
    innocent = ["if torch.no():\n            raise ValueError", "raise NotImplementedError"]
    assert [messages(lint('return {"y": x_shape}', init=init)) for init in innocent] == [[], []]


def test_a_constructor_that_refuses_for_what_the_manifest_does_not_declare() -> None:
    code = CLASS.format(
        init="if other is None:\n            raise ValueError", infer='return {"y": x_shape}', validate="pass"
    )
    entry = SIGNATURE.format(inputs="[M, K]", outputs="[M, K]", rule="size is None", row=ROW)
    texts = example_files([("yaml", entry), ("python", code.replace("size=None", "size=None, other=None"))])
    assert lint_files([PACK], texts, CODES).codes() == []


REFUSES = "if x.dtype not in {}: raise ValueError"


def test_dtypes_that_are_refused_or_taken() -> None:
    infer = 'return {"y": x_shape}'
    taken = "`_validate_dtypes()` takes `bfloat16` for `x`; the manifest declares `float16`, `float32`"
    refused = "`_validate_dtypes()` refuses dtypes that the manifest declares, with `ValueError`: `x` is float16"
    three = "(torch.float16, torch.bfloat16, torch.float32)"
    assert messages(lint(infer, validate=REFUSES.format(three))) == [taken]
    assert messages(lint(infer, validate=REFUSES.format("(torch.float32,)"))) == [refused]
    assert messages(lint(infer, validate=REFUSES.format("(torch.half, torch.float)"))) == []
    assert messages(lint(infer, validate=REFUSES.format("self.size"), init="self.size = kernel_map")) == []


def test_ops_that_share_a_method_are_one_finding_unless_one_agrees() -> None:
    entry = SIGNATURE.format(inputs="[M, K]", outputs="[M, K]", rule="size is None", row=ROW)
    base = CLASS.format(init="pass", infer='return {"y": x_shape[:-1]}', validate="pass").replace(
        "ExampleFwdOp", "Base", 1
    )
    texts = example_files([("yaml", entry), ("python", f"{base}\n\nclass ExampleFwdOp(Base): ...\n")])
    (item,) = lint_files([PACK], texts, CODES).diagnostics
    assert (item.place.path, item.ops) == ("kit/ops/example.py", ("ExampleFwdOp",))
    path = "kit/manifest/example.yaml"
    declared = 'y: {dtype: "same_as(x)", shape: "[M, K]"}'
    texts[path] += (
        texts[path].replace("ExampleFwdOp", "OtherFwdOp").replace(declared, "y: {dtype: float16, shape: '[M]'}")
    )
    texts["kit/ops/example.py"] += "\n\nclass OtherFwdOp(Base): ...\n"
    linted = lint_files([PACK], texts, CODES)
    (item,) = linted.diagnostics
    assert (item.place.path, item.ops, linted.text(item.place)) == (path, ("ExampleFwdOp",), '"[M, K]"')


FAULTS = [
    ("tilekit/ops/pool.py", "+ 1\n        if windows", "+ 2\n        if windows"),
    ("tilekit/ops/pool.py", "(n, c, windows)", "(n, windows, c)"),
    ("tilekit/ops/pool.py", "(n, c, windows)", "(n, c)"),
    ("tilekit/ops/sum.py", "x_shape[:axis] + x_shape[axis + 1 :]", "x_shape[:axis] + x_shape[axis:]"),
    ("tilekit/ops/softmax.py", '{"output": x_shape}', '{"output": (*x_shape, 1)}'),
    ("tilekit/ops/norm.py", '{"output": x_shape}', '{"output": weight_shape}'),
    ("tilekit/ops/elementwise/_base.py", '{"output": input_shape}', '{"output": input_shape[1:]}'),
    ("tilekit/ops/elementwise/window_mask.py", "(self.q_len, self.kv_len)", "(self.kv_len, self.q_len)"),
    ("tilekit/ops/elementwise/rotary_table.py", "(self.length, self.head_dim)", "(self.length, self.head_dim // 2)"),
]


def test_faults_in_tilekit() -> None:
    job = Job(registry := Registry((PACK,)), resolve_settings(Config(), registry, select=CODES))
    plain = Project(Workspace(TILEKIT))
    assert run(job, plain).diagnostics == []
    for path, old, new in FAULTS:
        text = plain.workspace.source(path).text
        assert text.count(old) >= 1, (path, old)
        found = run(job, Project(Workspace(TILEKIT, {path: text.replace(old, new, 1)}))).diagnostics
        assert [item.code for item in found] == ["SHP113"], (path, new, found)
        assert re.search(r"`_infer_output_shapes\(\)` returns the shape", found[0].message)


ROWLESS = """\
signature:
  inputs:
    x: {dtype: "float16", shape: "[B, C, L]"}
    weight: {dtype: "same_as(x)", shape: "[F, C, K]"}
  outputs:
    y: {dtype: "same_as(x)", shape: "[B, F, M]"}
  params:
    step: {type: int}
    edge: {type: int, default: 0}
  shape_rules:
    - "M == (L + 2 * edge - K) // step + 1"
    - "step > 0"
workloads: []
"""


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ("b, f, (n + 2 * self.edge - k) // self.step + 1", ""),
        ("b, f, (n + 2 * self.edge - k + self.step) // self.step", ""),
        ("b, f, (n + 2 * self.edge - k) // self.step", "(6, 48, "),
        ("f, b, (n + 2 * self.edge - k) // self.step + 1", "(48, 6, "),
        ("b, c, (n - k) // self.step + 1", "(6, 10, "),
    ],
)
def test_an_entry_without_rows_is_judged_with_sizes_of_its_own(sizes: str, found: str) -> None:
    code = (
        "class ExampleFwdOp(Op):\n    def __init__(self, step, edge=0, *, kernel_map=None):\n"
        "        if step <= 0:\n            raise ValueError\n        self.step, self.edge = step, edge\n\n"
        "    def _infer_output_shapes(self, x_shape, weight_shape):\n"
        f"        b, c, n = x_shape\n        f, _, k = weight_shape\n        return {{'y': ({sizes})}}\n"
    )
    linted = lint_files([PACK], example_files([("yaml", ROWLESS), ("python", code)]), CODES)
    assert linted.codes() == ["SHP113"] * bool(found)
    assert all(
        f"returns the shape {found}" in item.message and "`step` is 2" in item.message for item in linted.diagnostics
    )
    assert not any("workload row" in item.message for diagnostic in linted.diagnostics for item in diagnostic.related)

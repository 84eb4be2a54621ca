"""One fault for each check of TileOPs' own validator, as changes of the example's workspace."""

from __future__ import annotations

from typing import TypeAlias

Change: TypeAlias = "tuple[str, str, str]"
"""A file, a stretch of its text, and what stands there instead."""

YAML, CODE, BENCH = "kit/manifest/example.yaml", "kit/ops/example.py", "benchmarks/bench_example.py"

X = 'x: {dtype: "float16 | float32"}'
EPS = "eps: {type: float, default: 0.5}"
RULE = '- "y.shape == x.shape"'
SMALL = '- {x_shape: [4, 8], dtypes: [float16], label: "small"}'
LARGE = '- {x_shape: [1024, 1024], dtypes: [float16, float32], label: "large"}'
KERNELS = "kernel_map: {example: ExampleKernel}"
FORWARD = "def forward(self, x: torch.Tensor)"
INIT = "def __init__(self, eps: float = 0.5, *, kernel_map=None):"
SIBLING = """\
ExampleOp: {ref_api: none, family: e, status: spec-only, source: {}, workloads: [], roofline: {flops: '1', bytes: '1'},
  signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16, shape: '[n]'}}}}"""
READS, WRITES = (
    f"""\
@torch.library.custom_op("kit::example", mutates_args={arguments})
def _example(x: torch.Tensor{more}) -> torch.Tensor: ...


class ExampleFwdOp"""
    for arguments, more in (("()", ""), ('("seen",)', ", seen: torch.Tensor"))
)
NAMES = '    compile_op_names = ("kit::{}",)\n\n    @property\n    def default'
OPTIONAL = (f"      {X}\n", f'      {X}\n      b: {{dtype: "same_as(x)", optional: true}}\n')


def _entry(*changes: tuple[str, str]) -> list[Change]:
    return [(YAML, old, new) for old, new in changes]


def _code(*changes: tuple[str, str]) -> list[Change]:
    return [(CODE, old, new) for old, new in changes]


FAULTS: dict[str, list[Change]] = {
    "entry is not a mapping": _entry(("ExampleFwdOp:\n", "OtherFwdOp: [1]\n\nExampleFwdOp:\n")),
    "variant word after direction": _entry(("ExampleFwdOp:\n", "ExampleFwdOpCausal:\n")),
    "no direction suffix": [
        (
            YAML,
            "ExampleFwdOp:\n",
            SIBLING + "\n\nExampleFwdOp:\n",
        )
    ],
    "missing top-level fields": _entry(("  family: example\n", "")),
    "section of the wrong type": _entry(("  workloads:\n    " + SMALL + "\n    " + LARGE + "\n", "  workloads: 3\n")),
    "unknown entry keys": _entry(("  family:", "  familly: x\n  family:")),
    "missing or non-string ref_api": _entry(('ref_api: "none"', "ref_api: 3")),
    "status of the wrong type, or an unknown value": _entry(("status: implemented", "status: done")),
    "torch_compile_fullgraph is not true": _entry(
        ("status: implemented", "status: implemented\n  torch_compile_fullgraph: false")
    ),
    "torch_compile_fullgraph on a spec-only entry": _entry(
        ("status: implemented", "status: spec-only\n  torch_compile_fullgraph: true")
    ),
    "signature lacks inputs or outputs": _entry(('    outputs:\n      y: {dtype: "same_as(x)"}\n', "")),
    "unknown signature keys": _entry(("    shape_rules:", "    shape_rule: []\n    shape_rules:")),
    "names that are not strings": _entry((X, X + "\n      1: {dtype: float16}")),
    "tensors or a tensor of the wrong type": _entry((X, "x: float16")),
    "tensor without dtype": _entry((X, 'x: {shape: "[n]"}')),
    "alternatives in a shape": _entry((X, 'x: {dtype: "float16 | float32", shape: "[n] | [n, m]"}')),
    "constraints of the wrong type, without a shape, or on an unknown dimension": _entry(
        (X, 'x: {dtype: "float16 | float32", shape: "[n, m]", constraints: {k: "divisible_by(2)"}}')
    ),
    "layout of the wrong type, or an unknown value": _entry((X, 'x: {dtype: "float16 | float32", layout: diagonal}')),
    "params or a param of the wrong type, or a param without a type": _entry((EPS, "eps: {default: 0.5}")),
    "no outputs": _entry(('outputs:\n      y: {dtype: "same_as(x)"}\n', "outputs: {}\n")),
    "neither inputs nor params": _entry(("inputs:\n      " + X, "inputs: {}"), ("params:\n      " + EPS, "params: {}")),
    "output without shape": _entry((f"    shape_rules:\n      {RULE}\n", "")),
    "dtype_combos of the wrong type, or with an unknown tensor": _entry(
        ("    params:", "    dtype_combos: [{x: float16, z: float16}]\n    params:")
    ),
    "shape_rules or a rule of the wrong type": _entry((RULE, "- 3")),
    "syntax error in a rule": _entry((RULE, '- "y.shape = x.shape"')),
    "unknown helper in a rule": _entry((RULE, '- "y.shape == same_shape(x.shape)"')),
    "static_dims or a value of the wrong type": _entry(("    params:", "    static_dims: {N: 3}\n    params:")),
    "static dimension of the wrong form, or of an unknown tensor or axis": _entry(
        ("    params:", '    static_dims: {N: "z.shape[0]"}\n    params:')
    ),
    "param type is not a type expression": _entry((EPS, 'eps: {type: "float or int", default: 0.5}')),
    "null default that the type does not allow": _entry((EPS, "eps: {type: float, default: null}"))
    + _code(("eps: float = 0.5", "eps: float = None")),
    "optional on a param or output, or not true": _entry((EPS, "eps: {type: float, default: 0.5, optional: true}")),
    "mutated on a param or output, or not true": _entry((X, 'x: {dtype: "float16 | float32", mutated: 1}')),
    "optional input without a guard": _entry(OPTIONAL, (RULE, RULE + '\n      - "b.shape == x.shape"')),
    "optional input in roofline.vars or a formula": _entry(
        OPTIONAL, ('N: "product(x.shape)"', 'N: "product(b.shape)"')
    ),
    "dtype_combos or same_as on an optional input": _entry(
        OPTIONAL, ('y: {dtype: "same_as(x)"}', 'y: {dtype: "same_as(b)"}')
    ),
    "dimension that only an optional input binds": _entry(
        (
            "      " + X + "\n",
            '      x: {dtype: "float16 | float32"}\n      b: {dtype: "same_as(x)", shape: "[D]", optional: true}\n',
        ),
        ('y: {dtype: "same_as(x)"}', 'y: {dtype: "same_as(x)", shape: "[D]"}'),
    ),
    "optional input that no row, or every row, passes": _entry(OPTIONAL),
    "fewer than two rows": _entry(("    " + LARGE + "\n", "")),
    "row of the wrong type or without dtypes": _entry((SMALL, "- 3")),
    "row keys that are not strings": _entry((SMALL, '- {x_shape: [4, 8], 1: 2, dtypes: [float16], label: "small"}')),
    "row without a required param": _entry((EPS, "eps: {type: float}")),
    "label that names a dtype of the row": _entry(('label: "small"', 'label: "small-fp16"')),
    "param named like a reserved row key": _entry((EPS, EPS + "\n      label: {type: str, default: a}")),
    "row without x_shape": _entry((SMALL, '- {dtypes: [float16], label: "small"}')),
    "row with unknown keys": _entry((SMALL, '- {x_shape: [4, 8], batch: 3, dtypes: [float16], label: "small"}')),
    "incomplete roofline": _entry(('    bytes: "2 * N * elem_bytes"\n', "")),
    "roofline in both modes": _entry(("    vars:", "    func: kit.perf.formulas.example_roofline\n    vars:")),
    "roofline fields of the wrong type": _entry(('flops: "2 * N"', "flops: 3")),
    "roofline.func that does not resolve": _entry(
        (
            '    vars:\n      N: "product(x.shape)"\n    flops: "2 * N"\n    bytes: "2 * N * elem_bytes"\n',
            "    func: kit.perf.formulas.missing\n",
        )
    ),
    "missing source fields": _entry(("    test: tests/test_example.py\n", "")),
    "source.kernel of the wrong type": _entry(("kernel: kit/kernels/example.py", "kernel: 3")),
    "bench_manifest_driven is not a boolean": _entry(
        ("bench_manifest_driven: true", "bench_manifest_driven: yes please")
    ),
    "kernel_map of the wrong type, with entries that are not strings, or missing": _entry(
        ("    " + KERNELS + "\n", "")
    ),
    "source path that is not a file": _entry(("kit/kernels/example.py", "kit/kernels/missing.py")),
    "missing source.op": _entry(("    op: kit/ops/example.py\n", "")),
    "op file that cannot be imported": _code(("import torch\n", "import torch\nfrom kit.ops.op_base import missing\n")),
    "no op class, or an ambiguous one": _code(("class ExampleFwdOp", "class OtherOp")),
    "order and names of the arguments of forward()": _code((FORWARD, "def forward(self, input: torch.Tensor)")),
    "param that neither method takes": _entry((EPS, EPS + "\n      scale: {type: float, default: 1.0}")),
    "static dimension that __init__() does not take": _entry(
        ("    params:", '    static_dims: {N: "x.shape[0]"}\n    params:')
    ),
    "None in the type but not in the annotation, or vice versa": _entry(
        (EPS, 'eps: {type: "float | None", default: 0.5}')
    ),
    "default of a param: missing, extra, different": _entry((EPS, "eps: {type: float, default: 0.25}")),
    "kw_only differs": _entry((EPS, "eps: {type: float, default: 0.5, kw_only: true}")),
    "forward() does not begin with the inputs": _code(
        (FORWARD, "def forward(self, scale: torch.Tensor, x: torch.Tensor)")
    ),
    "no kernel_map argument": _code((INIT, "def __init__(self, eps: float = 0.5):\n        kernel_map = None")),
    "dispatch_kernel() is not called": _code(("        self.dispatch_kernel(kernel_map)\n", "")),
    "method left as a stub of the base class": _code(
        ('    def eval_roofline(self):\n        return self.kernel_map["example"].counts()\n\n', "")
    ),
    "compile_op_names names an operator that is not registered": _code(
        (
            "    @property\n    def default",
            NAMES.format("missing"),
        ),
        (
            "class ExampleFwdOp",
            READS,
        ),
    ),
    "operators write other inputs than those marked mutated": _entry(
        (X, 'x: {dtype: "float16 | float32", mutated: true}')
    )
    + _code(
        (
            "    @property\n    def default",
            NAMES.format("example"),
        ),
        (
            "class ExampleFwdOp",
            READS,
        ),
    ),
    "operator writes a buffer that no input declares": _code(
        (
            "    @property\n    def default",
            NAMES.format("example"),
        ),
        (
            "class ExampleFwdOp",
            WRITES,
        ),
        ('return self.kernel_map["example"](x, self.eps)', "return _example(x, self.seen)"),
    ),
    "_infer_output_shapes() not overridden": _code(
        ('    def _infer_output_shapes(self, x_shape):\n        return {"y": x_shape}\n\n', "")
    ),
    "_infer_output_shapes() takes other arguments": _code(
        ("def _infer_output_shapes(self, x_shape)", "def _infer_output_shapes(self, shape)"),
        ('{"y": x_shape}', '{"y": shape}'),
    ),
    "_infer_output_shapes() does not return a dict, or lacks an output": _code(('{"y": x_shape}', '{"z": x_shape}')),
    "rule that cannot be evaluated": _entry((RULE, RULE + '\n      - "unknown.shape == x.shape"')),
    "rule that the rows do not satisfy": _entry((RULE, RULE + '\n      - "x.shape[0] > 8"')),
    "same_as of an unknown tensor": _entry(("same_as(x)", "same_as(z)")),
    "promote_int_to_float on an input, or of a tensor that is not an input": _entry(
        (X, X + '\n      b: {dtype: "promote_int_to_float(x)"}')
    ),
    "unknown dtype, also of a row": _entry((X, 'x: {dtype: "float17 | float32"}')),
    "dtype of a row that is not a string": _entry((SMALL, '- {x_shape: [4, 8], dtypes: [16], label: "small"}')),
    "combination that contradicts same_as": _entry(
        ("    params:", "    dtype_combos: [{x: float16, y: float32}]\n    params:")
    ),
    "same_as cycle, dangling reference": _entry((X, 'x: {dtype: "same_as(w)"}\n      w: {dtype: "same_as(x)"}')),
    "combination that lacks an input, or has an invalid dtype": _entry(
        ("    params:", "    dtype_combos: [{y: float16}]\n    params:")
    ),
    "combination outside the declared dtypes": _entry(
        ("    params:", "    dtype_combos: [{x: bfloat16}]\n    params:")
    ),
    "_validate_dtypes() takes other arguments": _code(
        ("def _validate_dtypes(self, x)", "def _validate_dtypes(self, x, y)")
    ),
    "bench_manifest_driven not declared": _entry(("    bench_manifest_driven: true\n", "")),
    "bench file missing": _entry(("benchmarks/bench_example.py", "benchmarks/bench_missing.py")),
    "bench without load_workloads": [(BENCH, 'load_workloads("ExampleFwdOp")', "rows()")],
    "bench without eval_roofline": [(BENCH, "op.eval_roofline()", "op()")],
    "manifest whose root is not a mapping": [("kit/manifest/other.yaml", "", "- ExampleFwdOp\n")],
    "duplicate op": _entry(("ExampleFwdOp:\n", "ExampleFwdOp: {}\n\nExampleFwdOp:\n")),
}

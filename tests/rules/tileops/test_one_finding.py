"""One fault gives one finding: the root cause is reported, and nothing that only follows from it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.source.yaml import Node
from opschema_cli.source.yaml_compose import compose
from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import MANIFEST_PATH, example_files
from opschema_rules.tileops.pack import PACK

TILEKIT = Path(__file__).parents[3] / "fixtures/tilekit"
LATEST = '[tileops]\nspec = ["latest"]\nmanifests = ["kit/manifest"]\n'

OP = """\
class ExampleFwdOp(Op):
    def __init__(self, {init}kernel_map=None):
        self.dispatch_kernel(kernel_map)

    @property
    def default_kernel_map(self):
        return {{"example": ExampleKernel}}

    def _infer_output_shapes(self, {shapes}):
        return {outputs}

    def _validate_dtypes(self, {tensors}):
        pass

    def eval_roofline(self):
        return self.kernel_map["example"].counts()

    def forward(self, {forward}) -> torch.Tensor:
        return self.kernel_map["example"](x)
"""


def op(inputs: str = "x", init: str = "eps: float = 0.5, *, ", outputs: str = '{"y": x_shape}') -> str:
    """The op's class; an input that ends in `?` may be left out."""
    names = [name.rstrip("?") for name in inputs.split()]
    ends = ["=None" if name.endswith("?") else "" for name in inputs.split()]
    shapes = ", ".join(f"{name}_shape{end}" for name, end in zip(names, ends, strict=True))
    tensors = ", ".join(f"{name}{end}" for name, end in zip(names, ends, strict=True))
    annotated = ", ".join(
        f"{name}: torch.Tensor | None = None" if end else f"{name}: torch.Tensor"
        for name, end in zip(names, ends, strict=True)
    )
    return OP.format(init=init, shapes=shapes, tensors=tensors, forward=annotated, outputs=outputs)


def lint(entry: str, code: str = "", **files: str) -> Linted:
    fences = [("yaml", textwrap.dedent(entry)), *([("python", code)] if code else [])]
    return lint_files([PACK], {**example_files(fences), "opschema.toml": LATEST, **files})


def codes(entry: str, code: str = "") -> list[str]:
    return sorted(lint(entry, code).codes())


def inputs(bias: str) -> str:
    return f'signature:\n  inputs:\n    x: {{dtype: "float16 | float32"}}\n    bias: {{dtype: "same_as(x)", {bias}}}\n'


BIASED = """\
workloads:
  - {x_shape: [4, 8], dtypes: [float16], label: "plain"}
  - {x_shape: [4, 8], bias_shape: [8], dtypes: [float16], label: "biased"}
"""
WITH_BIAS = op("x bias?")


def test_a_misspelt_shape_binds_names_all_the_same() -> None:
    entry = """\
    signature:
      inputs:
        x: {dtype: "float16 | float32", shap: "[M, K]"}
      params: {}
      shape_rules: ["y.shape == x.shape", "M % 8 == 0"]
    roofline: {vars: {N: "M * K"}, flops: "2 * M * K", bytes: "M * K * elem_bytes"}
    """
    assert codes(entry, op(init="*, ")) == ["MAN101"]


def test_a_misspelt_default_is_a_default() -> None:
    assert codes("signature:\n  params: {eps: {type: float, defualt: 0.5}}\n") == ["MAN101"]


def test_misspelt_shape_rules_are_shape_rules() -> None:
    entry = example_files([])[MANIFEST_PATH].replace("shape_rules:", "shape_rule:")
    assert lint("", "", **{MANIFEST_PATH: entry}).codes() == ["MAN101"]


def test_a_rule_that_needs_an_optional_input() -> None:
    rules = '  shape_rules: ["y.shape == x.shape", "bias.shape == (x.shape[1],)"]\n'
    assert codes(inputs("optional: true") + rules + BIASED, WITH_BIAS) == ["SHP106"]
    rules = '  shape_rules: ["y.shape == x.shape", "bias is not None and bias.shape == (x.shape[1],)"]\n'
    assert codes(inputs("optional: true") + rules + BIASED, WITH_BIAS) == ["SHP106"]


def test_what_is_wrong_with_such_a_rule_where_the_input_is_passed_is_another_fault() -> None:
    rules = '  shape_rules: ["y.shape == x.shape", "bias.numel() == x.shape[1]"]\n'
    assert codes(inputs("optional: true") + rules + BIASED, WITH_BIAS) == ["SHP106", "WKL202"]
    rules = '  shape_rules: ["y.shape == x.shape", "bias.shape == (x.shape[0],)"]\n'
    assert codes(inputs("optional: true") + rules + BIASED, WITH_BIAS) == ["SHP106", "WKL201"]


def roofline(variable: str, flops: str = "2 * N + C") -> str:
    return (
        f'roofline:\n  vars: {{N: "product(x.shape)", C: "{variable}"}}\n'
        f'  flops: "{flops}"\n  bytes: "N * elem_bytes"\n'
    )


def test_a_formula_that_needs_an_optional_input() -> None:
    entry = inputs("optional: true") + BIASED
    assert codes(entry + roofline("bias.shape[0]"), WITH_BIAS) == ["ROO105"]
    assert codes(entry + roofline("x.shape[0] if bias is None else bias.shape[0]"), WITH_BIAS) == ["ROO105"]


@pytest.mark.parametrize("flag", ['optional: "true"', "optional: 1", "optinal: true", "optional: true, optional: no"])
def test_an_input_of_which_it_is_not_known_whether_it_is_optional(flag: str) -> None:
    entry = inputs(flag) + BIASED + roofline("bias is not None", "2 * N + (N if C else 0)")
    expected = "YML101" if "no" in flag else "MAN301" if "optional" in flag else "MAN101"
    assert codes(entry, WITH_BIAS) == [expected]


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ('xshape: [4, 8], dtypes: [float16], label: "small"', "did you mean `x_shape`?"),
        ('X_shape: [4, 8], dtypes: [float16], label: "small"', "as `x_shape`"),
        ('input_shape: [4, 8], dtypes: [float16], label: "small"', "as `x_shape`"),
        ('x_shape: [4, 8], dtypes: [float16], lable: "small"', "did you mean `label`?"),
    ],
)
def test_a_misspelt_key_of_a_row(row: str, hint: str) -> None:
    other = 'x_shape: [8, 8], dtypes: [float16], label: "large"'
    linted = lint(f"workloads:\n  - {{{row}}}\n  - {{{other}}}\n")
    assert linted.codes() == ["WKL104"]
    assert linted.diagnostics[0].message.endswith(hint)


def test_a_misspelt_param_of_a_row_is_not_missing_too() -> None:
    linted = lint(PARAMS.format(row="scal: 1, n: 1"), op(init="scale: float, n: int, *, "))
    assert linted.codes() == ["WKL104"]
    assert linted.diagnostics[0].message == "`scal` is not a param of the op; did you mean `scale`?"


def test_a_row_that_lacks_another_param_too_is_two_findings() -> None:
    assert codes(PARAMS.format(row="scal: 1"), op(init="scale: float, n: int, *, ")) == ["WKL102", "WKL104"]


PARAMS = """\
signature:
  params: {{scale: {{type: float}}, n: {{type: int}}}}
workloads:
  - {{x_shape: [4, 8], {row}, dtypes: [float16], label: "small"}}
  - {{x_shape: [8, 8], scale: 1, n: 1, dtypes: [float16], label: "large"}}
"""


def test_misspelt_dtypes_of_a_row() -> None:
    rows = '  - {x_shape: [4, 8], dtype: [float16], label: "a"}\n  - {x_shape: [8, 8], dtypes: [float16], label: "b"}\n'
    linted = lint("workloads:\n" + rows)
    assert [item.message for item in linted.diagnostics] == [
        "`workloads[0]` lacks `dtypes`; add a list of dtypes, or rename `dtype` to it"
    ]


def test_a_column_in_the_wrong_case() -> None:
    entry = """\
    signature:
      inputs:
        x: {dtype: "float16 | float32"}
        scale_a: {dtype: "float16 | float32"}
        scale_b: {dtype: "float16 | float32"}
      dtype_combos:
        - {x: float16, scale_A: float32, scale_b: float32}
        - {x: float32, scale_a: float32, scale_b: float32}
    """
    rows = "".join(
        f'  - {{x_shape: [4, {size}], scale_a_shape: [], scale_b_shape: [], dtypes: [float16], label: "{size}"}}\n'
        for size in (8, 9)
    )
    linted = lint(f"{textwrap.dedent(entry)}workloads:\n{rows}", op("x scale_a scale_b"))
    assert [item.message for item in linted.diagnostics] == [
        "`scale_A` is not a tensor of the signature; did you mean `scale_a`?"
    ]


def test_a_second_list_of_workloads() -> None:
    text = example_files([])[MANIFEST_PATH] + "  workloads: []\n"
    assert lint("", **{MANIFEST_PATH: text}).codes() == ["YML101"]


@pytest.mark.parametrize(
    ("param", "init", "expected"),
    [
        ("type: float, default: null", "eps: float = 0.5", "SIG203"),
        ("type: float, default: null", "eps: float", "SIG203"),
        ("type: float, default: null", "eps: float | None = None", "MAN202"),
        ("type: float, default: null", "eps=compute()", "MAN202"),
        ("type: float, default: auto", "eps: float = 0.5", "MAN203"),
        ("type: float, default: auto", "eps='auto'", "MAN203"),
        ("type: float, default: [1]", "eps", "MAN203"),
        ("type: float, default: 0.25", "eps: float = 0.5", "SIG203"),
        ("type: float, default: 0.5, default: 0.25", "eps: float = 0.5", "YML101"),
        ("type: float, default: 0.5, default: 0.5", "eps: float = 0.5", "YML101"),
        ("type: int, default: 1e0", "eps: int = 1", "YML102"),
        ("type: int, default: 010", "eps: int = 10", "YML102"),
        ("type: str, default: no", "eps: str = 'no'", "YML102"),
    ],
)
def test_a_default_is_wrong_once(param: str, init: str, expected: str) -> None:
    entry = f"signature:\n  params:\n    eps: {{{param}}}\n"
    assert codes(entry, op(init=f"{init}, *, ")) == [expected]


def test_a_default_that_differs_and_is_repeated_is_two_faults() -> None:
    entry = "signature:\n  params:\n    eps: {type: float, default: 0.25, default: 0.25}\n"
    assert codes(entry) == ["SIG203", "YML101"]


def test_a_formula_that_is_a_tuple() -> None:
    entry = 'roofline: {vars: {N: "product(x.shape)"}, flops: "(2 * N, N)", bytes: "N * elem_bytes"}\n'
    assert codes(entry) == ["ROO103"]
    assert codes(entry.replace("(2 * N, N)", "x.shape[0] - 100000")) == ["ROO103", "ROO104"]


def test_variables_that_cannot_be_read_are_variables() -> None:
    for text in ('vars: {N: 3}, flops: "2 * N"', 'vars: [N], flops: "2 * N"', 'vrs: {N: "3"}, flops: "2 * N"'):
        assert codes(f'roofline: {{{text}, bytes: "elem_bytes"}}\n') == ["MAN101"]


CARRIER = """\
signature:
  inputs:
    like: {dtype: "float16 | float32", shape: "[]"}
  outputs:
    y: {dtype: "same_as(like)", shape: "[n]"}
  params:
    n: {type: int}
  shape_rules: ["n > 0"]
workloads:
  - {like_shape: [], n: 4, dtypes: [float16], label: "small"}
  - {n: 1024, dtypes: [float32], label: "large"}
roofline: {flops: "n", bytes: "n * elem_bytes"}
"""


def test_a_carrier_without_a_shape_in_a_row() -> None:
    sized = OP.replace("        self.dispatch", "        self.n = n\n        self.dispatch")
    code = {"init": "n: int, *, ", "outputs": '{"y": (self.n,)}'}
    generative = sized.format(**code, shapes="", tensors="", forward="")
    generative = generative.replace("(self, )", "(self)").replace("(x)", "()")
    assert codes(CARRIER, generative) == ["CAR101", "CAR103"]
    taken = sized.format(**code, shapes="like_shape", tensors="like", forward="like: torch.Tensor").replace(
        "(x)", "(like)"
    )
    assert codes(CARRIER, taken) == ["WKL104"]


@pytest.mark.parametrize("key", ["42", "1.5", "null", "~"])
def test_a_key_that_names_no_op(key: str) -> None:
    entry = example_files([])[MANIFEST_PATH]
    for value in ("{a: 1}", "3", "\n" + entry.partition("\n")[2].rstrip()):
        linted = lint("", **{MANIFEST_PATH: f"{entry}? {key}\n: {value}\n"})
        assert linted.codes() == ["MAN101"]
        assert linted.text(linted.diagnostics[0].place) == key


def test_a_mapping_that_is_no_entry() -> None:
    entry = example_files([])[MANIFEST_PATH]
    for value in ("{}", "{a: 1}", "{version: 2, kernels: []}", "3", "[]"):
        assert lint("", **{MANIFEST_PATH: f"{entry}Common: {value}\n"}).codes() == ["MAN101"]
    assert lint("", **{MANIFEST_PATH: entry + "Common: {signature: {}}\n"}).codes().count("MAN101") > 2


def test_a_misplaced_variant_word() -> None:
    files = {MANIFEST_PATH: example_files([])[MANIFEST_PATH].replace("ExampleFwdOp", "ExampleFwdOpIndices")}
    files["tests/test_example.py"] = "# ExampleFwdOpIndices\n"
    assert lint("", **files).codes() == ["MAN103"]
    assert lint("", op().replace("ExampleFwdOp", "ExampleIndicesFwdOp"), **files).codes() == ["MAN103"]


def test_a_name_that_many_rules_read_is_unbound_once() -> None:
    rules = ", ".join(f'"torch.f{number} == {number}"' for number in range(26))
    assert codes(f'signature:\n  shape_rules: ["y.shape == x.shape", {rules}]\n').count("SHP107") == 1


def test_an_input_that_all_methods_call_otherwise_is_one_finding_in_code() -> None:
    linted = lint("", op().replace("x: torch", "a: torch").replace("x_shape", "a_shape").replace("self, x", "self, a"))
    assert linted.codes() == ["SIG101"]
    linted = lint("", op().replace("x: torch", "a: torch").replace("x_shape", "b_shape"))
    assert sorted(linted.codes()) == ["SIG101", "SIG301"]


# Every key of an entry, misspelt or given twice

RICH = """\
torch_compile_fullgraph: true
signature:
  inputs:
    x: {dtype: "float16 | float32", shape: "[M, K]", constraints: {K: "even"}}
    w: {dtype: "same_as(x)", shape: "[K]"}
    bias: {dtype: "same_as(x)", shape: "[K]", optional: true}
  outputs:
    y: {dtype: "same_as(x)", shape: "[M, K]"}
  params:
    n: {type: int}
    eps: {type: float, default: 0.5, kw_only: true}
  static_dims:
    N: "x.shape[-1]"
  shape_rules:
    - "y.shape == x.shape"
    - "n > 0"
    - "bias is None or bias.shape == w.shape"
  dtype_combos:
    - {x: float16, w: float16}
    - {x: float32, w: float32}
workloads:
  - {x_shape: [4, 8], w_shape: [8], n: 2, dtypes: [float16], label: "small"}
  - {x_shape: [8, 8], w_shape: [8], bias_shape: [8], n: 3, dtypes: [float16, float32], label: "large"}
roofline:
  vars:
    S: "M * K"
    has_bias: "bias is not None"
  flops: "2 * S + K * n + (K if has_bias else 0)"
  bytes: "2 * S * elem_bytes"
"""
SINGLE = """\
signature:
  params:
    n: {type: int}
workloads:
  - {x_shape: [4, 8], n: 2, dtypes: [float16], label: "small"}
  - {x_shape: [8, 8], n: 3, dtypes: [float16, float32], label: "large"}
"""
ENTRIES = {
    "rich": (RICH, op("x w bias?", "N: int, n: int, *, eps: float = 0.5, ")),
    "single": (SINGLE, op(init="n: int, *, ")),
}
NAMES = {"x", "w", "bias", "y", "n", "eps", "N", "K", "S", "has_bias", "example", "x_shape", "w_shape", "bias_shape"}
"""Keys that the author of an entry chooses: another one is another name, not a misspelling."""


def entry_keys(text: str) -> list[tuple[str, Node, Node, Node]]:
    """Every key of the manifest's entry: its path, the mapping, the key and its value."""

    def walk(node: Node, path: str) -> Iterator[tuple[str, Node, Node, Node]]:
        for key, value in node.pairs():
            yield f"{path}{key.value}", node, key, value
            yield from walk(value, f"{path}{key.value}.")
        for index, item in enumerate(node.items if node.is_sequence else ()):
            yield from walk(item, f"{path}{index}.")

    root = compose(text).root
    assert root is not None
    return list(walk(root.items[1], ""))


def manifest(kind: str) -> str:
    entry, code = ENTRIES[kind]
    return example_files([("yaml", entry), ("python", code)])[MANIFEST_PATH]


PATHS = [(kind, path) for kind in ENTRIES for path, _, key, _ in entry_keys(manifest(kind)) if key.value not in NAMES]


@pytest.mark.parametrize("kind", ENTRIES)
def test_the_entries_are_sound(kind: str) -> None:
    assert codes(*ENTRIES[kind]) == []


@pytest.mark.parametrize(("kind", "path"), PATHS)
def test_a_misspelt_key_is_one_finding(kind: str, path: str) -> None:
    text = manifest(kind)
    key = next(key for where, _, key, _ in entry_keys(text) if where == path)
    middle = (key.start + key.end) // 2
    linted = lint(*ENTRIES[kind], **{MANIFEST_PATH: text[:middle] + text[middle + 1 :]})
    # The rows of an op with several inputs may have other keys, and a label may be left out.
    free = kind == "rich" and path.endswith(".label")
    assert linted.codes() == ([] if free else ["WKL104"] if path.endswith(".label") else ["MAN101"])


TWICE = [
    (kind, path)
    for kind in ENTRIES
    for path, _, key, _ in entry_keys(manifest(kind))
    if key.value not in NAMES or path.startswith("workloads.")
]


@pytest.mark.parametrize(("kind", "path"), TWICE)
def test_a_key_that_is_given_twice_is_one_finding(kind: str, path: str) -> None:
    text = manifest(kind)
    owner, key, value = next((owner, key, value) for where, owner, key, value in entry_keys(text) if where == path)
    end = text.find("\n", max(value.end, key.end)) + 1
    indent = key.start - text.rfind("\n", 0, key.start) - 1
    where, again = (
        (value.end, f", {key.value}: []") if owner.style == "flow" else (end, f"{' ' * indent}{key.value}: []\n")
    )
    linted = lint(*ENTRIES[kind], **{MANIFEST_PATH: text[:where] + again + text[where:]})
    assert linted.codes() == ["YML101"]


# A whole repository


@pytest.fixture(scope="module")
def tilekit() -> dict[str, str]:
    files = (path for path in TILEKIT.rglob("*") if path.suffix in (".py", ".yaml", ".md", ".toml"))
    return {path.relative_to(TILEKIT).as_posix(): path.read_text() for path in files}


@pytest.fixture(scope="module")
def known(tilekit: dict[str, str]) -> Counter[str]:
    return Counter(lint_files([PACK], tilekit).codes())


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("normalization", '"float16 | bfloat16 | float32", shape: "[N, C]"', '"float16", shap: "[N, C]"', ["MAN101"]),
        ("elementwise", "    - {input_shape:", "    - {inputshape:", ["WKL104"]),
        ("generative", "    - {proto_shape: [], ", "    - {", []),
    ],
)
def test_in_a_repository(
    tilekit: dict[str, str], known: Counter[str], file: str, old: str, new: str, expected: list[str]
) -> None:
    path = f"tilekit/manifest/{file}.yaml"
    assert old in tilekit[path]
    found = lint_files([PACK], {**tilekit, path: tilekit[path].replace(old, new, 1)}).codes()
    assert Counter(found) - known == Counter(expected)


REFUSING = """\
    def _validate_dtypes(self, x):
        if x.dtype not in (torch.float16, torch.bfloat16):
            raise TypeError(x.dtype)

    def eval_roofline(self):
        elements = math.prod(self.bound["x"].shape)
        return elements, elements

"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('{"output": x_shape[:axis]', '{"output": (1,) + x_shape[:axis]', ["SHP113"]),
        (
            "        axis = ",
            "        if len(x_shape) == 2:\n            raise ValueError(2)\n        axis = ",
            ["SHP114"],
        ),
        ("    def forward(", REFUSING + "    def forward(", ["DTY109"]),
    ],
)
def test_in_the_code_of_a_repository(
    tilekit: dict[str, str], known: Counter[str], old: str, new: str, expected: list[str]
) -> None:
    path = "tilekit/ops/sum.py"
    assert old in tilekit[path]
    text = "import math\n" + tilekit[path].replace(old, new, 1)
    found = lint_files([PACK], {**tilekit, path: text}).codes()
    assert Counter(found) - known == Counter(expected)

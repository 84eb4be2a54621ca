"""The structure of entries: one finding for each malformed value, at its place, and none for what follows from it."""

# ruff: noqa: E501 - a table of messages, one a line

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources

import jsonschema
import pytest
import yaml

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.source.yaml import Data
from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import MANIFEST_PATH, OP_PATH, example_files
from opschema_rules.tileops.features import FEATURES
from opschema_rules.tileops.manifest_schema import as_json, entry_schema, other_keys
from opschema_rules.tileops.pack import PACK

SCHEMA = json.loads(resources.files("opschema_rules.tileops").joinpath("manifest.schema.json").read_text("utf-8"))


def lint(entry: str, files: Mapping[str, str] | None = None) -> Linted:
    return lint_files([PACK], {**example_files([("yaml", entry)]), **(files or {})}, ["MAN101"])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


VALUES = [
    ("signature: 3\n", "3", "`signature` is `3`; it must be a mapping with `inputs` and `outputs`"),
    ("workloads: {a: 1}\n", "{a: 1}", "`workloads` is a mapping; it must be a list of rows"),
    ("workloads:\n", "workloads", "`workloads` is empty; it must be a list of rows"),
    ("source: []\n", "[]", "`source` is empty; it must be a mapping with `kernel`, `op`, `test` and `bench`"),
    (
        "roofline:\n  - a\n  - b\n",
        "roofline",
        "`roofline` is a list; it must be a mapping with `flops` and `bytes`, or `func`",
    ),
    ("family: [a]\n", "[a]", "`family` is a list; it must be the name of the op family"),
    ("ref_api: 3\n", "3", '`ref_api` is `3`; it must be the external API that the op mirrors, or "none"'),
    ("status: done\n", "done", "`status` is `done`; it must be `implemented` or `spec-only`"),
    (
        "status: spec_only\n",
        "spec_only",
        "`status` is `spec_only`; it must be `implemented` or `spec-only`, probably `spec-only`",
    ),
    (
        "torch_compile_fullgraph: false\n",
        "false",
        "`torch_compile_fullgraph` is `false`; it must be literal `true`, or left out to make no promise",
    ),
    (
        "parity_opt_out: true\n",
        "true",
        "`parity_opt_out` is `true`; it must be left out: demote the op to `status: spec-only` instead",
    ),
]

SIGNATURES = [
    ("inputs: [x]", "[x]", "`signature.inputs` is a list; it must be a mapping of tensor names to their attributes"),
    ("inputs: {x: }", "x", "`signature.inputs.x` is empty; it must be a mapping with a `dtype`"),
    ("inputs: {x: {shape: '[M]'}}", "x", '`signature.inputs.x` lacks `dtype`; add the dtypes it accepts, such as "float16 | float32" or "same_as(x)"'),
    ("inputs: {x: {dtype: int8, shape: 4}}", "4", '`signature.inputs.x.shape` is `4`; it must be the dimensions, such as "[M, K]"'),
    ("inputs: {x: {dtype: int8, shape: [M, [N]]}}", "[N]", "`signature.inputs.x.shape[1]` is a list; it must be one dimension"),
    ("inputs: {x: {dtype: int8, layout: nchw}}", "nchw", "`signature.inputs.x.layout` is `nchw`; it must be a memory order that the specification knows, such as `channels_last`"),
    ("inputs: {x: {dtype: int8, constraints: {N: even}}}", "x", "`signature.inputs.x` has `constraints` but no `shape`, whose dimensions they restrict; add it"),
    ("inputs: {x: {dtype: int8, shape: '[N]', constraints: even}}", "even", "`signature.inputs.x.constraints` is `even`; it must be a mapping of dimensions to restrictions"),
    ("inputs: {x y: {dtype: int8}}", "x y", "`signature.inputs` declares `x y`, which is not a Python name; rename it"),
    ("inputs: {1: {dtype: int8}, x: {dtype: int8}}", "1", "the key `1` of `signature.inputs` is a number; keys are text, rename it"),
    ("outputs: {}", "{}", "`signature.outputs` is empty; it must be a mapping of at least one tensor to its attributes"),
    ("params: 3", "3", "`signature.params` is `3`; it must be a mapping of param names to their attributes"),
    ("params: {p: int}", "int", "`signature.params.p` is `int`; it must be a mapping with a `type`"),
    ("params: {p: {default: 1}}", "p", '`signature.params.p` lacks `type`; add a Python type, such as `int` or "float | None"'),
    ("params: {p: {type: int, kw_only: 1}}", "1", "`signature.params.p.kw_only` is `1`; it must be `true` or `false`"),
    ("shape_rules: 'y.shape == x.shape'", "'y.shape == x.shape'", "`signature.shape_rules` is `'y.shape == x.shape'`; it must be a list of Python expressions"),
    ("shape_rules: [3]", "3", "`signature.shape_rules[0]` is `3`; it must be a Python expression as text"),
    ("static_dims: {N: 3}", "3", '`signature.static_dims.N` is `3`; it must be an axis such as "x.shape[-1]"'),
    ("init_dims: {}", "{}", "`signature.init_dims` is empty; it must be left out: `static_dims` took its place"),
    ("dtype_combos: {x: int8}", "{x: int8}", "`signature.dtype_combos` is a mapping; it must be a list of mappings, each from tensor names to dtypes"),
    ("dtype_combos: [int8]", "int8", "`signature.dtype_combos[0]` is `int8`; it must be a mapping of tensor names to dtypes"),
    ("shape_rules: []", "y", "`signature.outputs.y` has no `shape`, and the signature no `shape_rules`; add one of them"),
    ("extra: 1", "extra", "`signature` has no key `extra`, so nothing reads it; it knows `inputs`, `outputs`, `params`, `static_dims`, `shape_rules`, `dtype_combos`"),
]  # fmt: skip

PARTS = [
    ("workloads: [3]\n", "3", "`workloads[0]` is `3`; it must be a mapping of shapes, dtypes and params"),
    ("workloads: [{x_shape: [1]}]\n", "{x_shape: [1]}", "`workloads[0]` lacks `dtypes`; add a list of dtypes"),
    ("workloads:\n  - x_shape: [1]\n    n: 2\n", "x_shape: [1]", "`workloads[0]` lacks `dtypes`; add a list of dtypes"),
    ("workloads: [{dtypes: int8}]\n", "int8", "`workloads[0].dtypes` is `int8`; it must be a list of dtypes"),
    ("workloads: [{dtypes: [8]}]\n", "8", "`workloads[0].dtypes[0]` is `8`; it must be a dtype as text"),
    ("workloads: [{dtypes: []}]\n", "[]", "`workloads[0].dtypes` is empty; it must be a list of dtypes"),
    ("workloads: [{dtypes: [int8], 3: a}]\n", "3", "the key `3` of `workloads[0]` is a number; keys are text, rename it"),
    ("roofline: {flops: '1'}\n", "{flops: '1'}", "`roofline` has `flops`; it must have `flops` and `bytes`, or `func`"),
    ("roofline: {}\n", "{}", "`roofline` has nothing; it must have `flops` and `bytes`, or `func`"),
    ("roofline: {func: f, vars: {}, flops: '1'}\n", "func", "`roofline` has `func` beside `vars`, `flops`; the modes exclude each other, keep one"),
    ("roofline: {flops: 4, bytes: '1'}\n", "4", "`roofline.flops` is `4`; it must be a non-empty Python expression as text"),
    ("roofline: {flops: ' ', bytes: '1'}\n", "' '", "`roofline.flops` is blank; it must be a non-empty Python expression as text"),
    ("roofline: {flops: '1', bytes: '1', vars: [N]}\n", "[N]", "`roofline.vars` is a list; it must be a mapping of variable names to Python expressions"),
    ("roofline: {flops: '1', bytes: '1', vars: {N: ''}}\n", "''", "`roofline.vars.N` is empty; it must be a non-empty Python expression as text"),
    ("roofline: {func: [f]}\n", "[f]", "`roofline.func` is a list; it must be the dotted name of a function"),
    ("source:\n  kernel: [a, 3]\n", "3", "`source.kernel[1]` is `3`; it must be a path"),
    ("source:\n  op: null\n", "null", "`source.op` is `null`; it must be the path of the op's file"),
    ("source:\n  kernel_map: [a]\n", "[a]", "`source.kernel_map` is a list; it must be a mapping of dispatch keys to kernel class names"),
    ("source:\n  kernel_map: {a: 3}\n", "3", "`source.kernel_map.a` is `3`; it must be the name of a kernel class"),
    ("source:\n  bench_manifest_driven: 'yes'\n", "'yes'", "`source.bench_manifest_driven` is `'yes'`; it must be `true` or `false`"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "text", "message"), VALUES)
def test_a_malformed_section(entry: str, text: str, message: str) -> None:
    assert found(lint(entry)) == [(text, message)]


@pytest.mark.parametrize(("part", "text", "message"), SIGNATURES)
def test_a_malformed_signature(part: str, text: str, message: str) -> None:
    assert found(lint(f"signature:\n  {part}\n")) == [(text, message)]


@pytest.mark.parametrize(("entry", "text", "message"), PARTS)
def test_a_malformed_part(entry: str, text: str, message: str) -> None:
    assert found(lint(entry)) == [(text, message)]


def test_every_missing_section_is_reported_at_the_op() -> None:
    linted = lint("", {MANIFEST_PATH: "ExampleFwdOp:\n  signature: {}\n  workloads: []\n  roofline: {func: f}\n"})
    assert found(linted) == [
        ("ExampleFwdOp", "the entry lacks `family`; add the name of the op family"),
        ("ExampleFwdOp", 'the entry lacks `ref_api`; add the external API that the op mirrors, or "none"'),
        ("ExampleFwdOp", "the entry lacks `source`; add a mapping with `kernel`, `op`, `test` and `bench`"),
        ("ExampleFwdOp", "the entry lacks `status`; add `implemented` or `spec-only`"),
        ("signature", "`signature` lacks `inputs`; add a mapping of tensor names to their attributes"),
        ("signature", "`signature` lacks `outputs`; add a mapping of tensor names to their attributes"),
    ]


def test_an_op_has_an_input_or_a_param() -> None:
    message = "`signature` declares neither an input nor a param; an op has at least one of them"
    assert [text for _, text in found(lint("signature: {inputs: {}, outputs: {y: {dtype: int8, shape: '[]'}}}\n"))] == [
        message
    ]
    assert [text for _, text in found(lint("signature: {inputs: 3, outputs: {y: {dtype: int8, shape: '[]'}}}\n"))] == [
        "`signature.inputs` is `3`; it must be a mapping of tensor names to their attributes"
    ]


@pytest.mark.parametrize("body", ["3", "[]", "", "text"])
def test_an_entry_that_is_no_mapping(body: str) -> None:
    text = example_files([])[MANIFEST_PATH]
    linted = lint("", {MANIFEST_PATH: f"{text}\nOtherFwdOp: {body}\n"})
    ((place, message),) = found(linted)
    assert place == "OtherFwdOp"
    assert message.startswith("the entry is ")
    assert message.endswith("; it must be a mapping with `signature`, `workloads`, `roofline` and `source`")
    assert linted.diagnostics[0].ops == ("OtherFwdOp",)


def test_a_file_that_holds_no_entries() -> None:
    linted = lint("", {"kit/manifest/list.yaml": "- a\n- b\n", "kit/manifest/empty.yaml": "# nothing yet\n"})
    assert found(linted) == [("- a", "the file holds a list; a manifest file maps op names to entries")]


@pytest.mark.parametrize(
    ("entry", "key", "message", "fixed"),
    [
        ("signature:\n  params:\n    p: {typ: int}\n", "typ", "`signature.params.p` has no key `typ`, so nothing reads it; did you mean `type`?", "p: {type: int}"),
        ("signature:\n  params:\n    p: {type: int, defualt: 3}\n", "defualt", "`signature.params.p` has no key `defualt`, so nothing reads it; did you mean `default`?", "p: {type: int, default: 3}"),
        ("roofline: {flop: '1', bytes: '1'}\n", "flop", "`roofline` has no key `flop`, so nothing reads it; did you mean `flops`?", "{flops: '1', bytes: '1'}"),
        ("signature:\n  inputs:\n    x: {dtypes: int8}\n", "dtypes", "`signature.inputs.x` has no key `dtypes`, so nothing reads it; did you mean `dtype`?", "x: {dtype: int8}"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_one_finding(entry: str, key: str, message: str, fixed: str) -> None:
    assert found(lint(entry)) == [(key, message)]
    texts, after = fix_files([PACK], example_files([("yaml", entry)]), ["MAN101"], unsafe=True)
    assert fixed in texts[MANIFEST_PATH]
    assert after.codes() == []


@pytest.mark.parametrize(
    ("entry", "fixed"),
    [
        ("status: Spec_Only\n", "status: spec-only\n"),
        ("roofline: {flops: 4, bytes: 0.5}\n", 'roofline: {flops: "4", bytes: "0.5"}'),
        ("torch_compile_fullgraph: false\n", "roofline:"),
    ],
)
def test_what_leaves_no_doubt_is_fixed(entry: str, fixed: str) -> None:
    texts, after = fix_files([PACK], example_files([("yaml", entry)]), ["MAN101"])
    assert fixed in texts[MANIFEST_PATH]
    assert after.codes() == []


@pytest.mark.parametrize(
    "entry",
    [
        "signature:\n  inputs: {x: {dtype: int8, note: free text, shape: [M, 4]}}\n",
        "signature:\n  params: {p: {type: dict, default: {1: {2: 3}}}, q: {type: float, default: .nan, doc: why}}\n",
        "signature:\n  params: {p: {type: int, default: 123456789012345678901234567890}}\n",
        "signature:\n  inputs: &t {x: {dtype: int8, shape: '[]'}}\n  outputs: *t\n",
        "signature:\n  inputs: {}\n  params: {p: {type: int}}\n",
        "workloads: [{dtypes: [int8], label: 3, deep: {1: 2}}]\n",
        "workloads: [&a {dtypes: [int8]}, {<<: *a, x_shape: [1]}]\n",
        "source: {kernel: null, op: null, test: null, bench: null, notes: x}\nstatus: spec-only\n",
        "source:\n  kernel: [a.py, b.py]\n  test: [a.py]\n",
    ],
)
def test_unusual_entries_that_are_sound(entry: str) -> None:
    assert found(lint(entry)) == []


def test_a_misread_scalar_is_reported_by_its_own_rule_only() -> None:
    assert found(lint("ref_api: no\nworkloads: [{dtypes: [no], on: 1}]\n")) == []
    assert [text for text, _ in found(lint("torch_compile_fullgraph: no\n"))] == ["no"]


def test_endless_aliases_are_reported_where_they_end() -> None:
    text = example_files([])[MANIFEST_PATH] + "LoopFwdOp: &l\n  signature: {inputs: *l}\n"
    linted = lint("", {MANIFEST_PATH: text})
    assert found(linted) == [("*l", "the alias `*l` contains itself")]


def test_aliases_that_nest_too_deeply_are_reported() -> None:
    chain = "".join(f"A{i}FwdOp: &a{i} {'[' * 90}{f'*a{i - 1}' if i else 1}{']' * 90}\n" for i in range(4))
    linted = lint("", {MANIFEST_PATH: example_files([])[MANIFEST_PATH] + chain})
    deep = [item.ops for item in linted.diagnostics if item.message == "its aliases nest deeper than 200 levels"]
    assert sorted(deep) == [("A2FwdOp",), ("A3FwdOp",)]
    assert linted.codes() == ["MAN101"] * 4


OLD = {"opschema.toml": "", "docs/m.md": "status signature workloads roofline shape_rules"}


def test_older_trees_are_held_to_what_they_know() -> None:
    entry = (
        "ref_api: 3\nsignature: {inputs: [x], outputs: [y]}\nroofline: {func: f, flops: 3, bytes: 4}\n"
        "parity_opt_out: 1\nstatus: implemented\nsource: {kernel: k, op: kit/ops/example.py, test: t, bench: b}\n"
    )
    assert [message for _, message in found(lint(entry, OLD))] == [
        '`ref_api` is `3`; it must be the external API that the op mirrors, or "none"'
    ]


def test_a_key_that_the_specification_mentions_is_not_unknown() -> None:
    words = OLD["docs/m.md"] + " unknown entry keys are errors"
    entry = "tolerance: 1\n"
    assert len(found(lint(entry, {**OLD, "docs/m.md": words}))) == 1
    assert found(lint(entry, {**OLD, "docs/m.md": words + "; `tolerance` is one"})) == []


def test_the_keys_that_the_tree_s_validator_lists_count() -> None:
    lists = '"""status signature workloads roofline shape_rules tolerance"""\n_VALID_TOP_KEYS = _REQUIRED_TOP | {\n    "mood",\n}\n'
    spec = {"opschema.toml": "", "scripts/validate.py": lists + "# unknown entry keys\n"}
    assert found(lint("mood: good\n", spec)) == []
    assert [text for text, _ in found(lint("tolerance: 1\n", spec))] == ["tolerance"]


def test_a_missing_kernel_map_is_an_error_once_the_validator_says_so() -> None:
    entry = "source: {kernel: k, op: kit/ops/example.py, test: t, bench: b}\n"
    message = (
        "`source` lacks `kernel_map`, which an implemented op has; add a mapping of dispatch keys to kernel class names"
    )
    warned = lint(entry, {**OLD, "docs/m.md": OLD["docs/m.md"] + " kernel_map is missing (should be"})
    assert found(warned) == [("source", message)]
    assert warned.diagnostics[0].severity is Severity.WARNING
    assert lint(entry).diagnostics[0].severity is Severity.ERROR
    assert found(lint(entry + "status: spec-only\n")) == []


def test_the_published_schema_is_one_and_accepts_the_sound_entry() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    editor = jsonschema.Draft202012Validator(SCHEMA)
    assert list(editor.iter_errors(yaml.safe_load(example_files([])[MANIFEST_PATH]))) == []
    wrong = yaml.safe_load(
        example_files([("yaml", "status: done\nsignature:\n  params: {p: {type: int, optional: true}}\n")])[
            MANIFEST_PATH
        ]
    )
    assert sorted(error.json_path for error in editor.iter_errors(wrong)) == [
        "$.ExampleFwdOp.signature.params.p.optional",
        "$.ExampleFwdOp.status",
    ]


def test_every_demand_of_the_schema_is_a_known_feature() -> None:
    def features(node: object) -> set[str]:
        if isinstance(node, dict):
            own = {node[key] for key in ("x-spec", "x-error-since") if isinstance(node.get(key), str)}
            return own.union(*map(features, node.values())) if node else own
        return set().union(*map(features, node)) if isinstance(node, list) else set()

    assert features(SCHEMA["$defs"]) <= set(FEATURES)


def test_any_set_of_demands_compiles() -> None:
    for known in ([], ["status"], ["roofline-strings", "optional"], list(FEATURES)):
        assert entry_schema(frozenset(known)).accepts({}) is False


def test_data_becomes_json() -> None:
    data: Data = {"a": float("inf"), "b": 10**30, 1: "c", "d": ["\ud800", True, None]}
    assert as_json(data) == {"a": 0.5, "b": 2**62, "d": ["?", True, None]}
    assert list(other_keys(data)) == [((), 1)]


def test_the_op_s_own_file_is_not_needed() -> None:
    files = {path: text for path, text in example_files([("yaml", "status: done\n")]).items() if path != OP_PATH}
    assert lint_files([PACK], files, ["MAN101"]).codes() == ["MAN101"]

"""Names of ops and of what an entry declares, and promises that a status cannot keep."""

from __future__ import annotations

import textwrap

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

YAML = "kit/manifest/example.yaml"


def op(name: str, more: str = "") -> str:
    """An entry, with ``more`` lines at its end."""
    lines = [
        "signature: {inputs: {x: {dtype: float16}}, outputs: {y: {dtype: float16}}}",
        "workloads: []",
        "roofline: {}",
    ]
    return f"{name}:\n" + textwrap.indent("\n".join([*lines, more]), "  ").rstrip() + "\n"


def lint(files: dict[str, str], code: str) -> Linted:
    return lint_files([PACK], {**example_files([]), **files}, [code])


def found(linted: Linted) -> list[tuple[str, str, list[str]]]:
    """Text at the place, message, and path and message of the other sides."""
    return [
        (linted.text(item.place), item.message, [f"{other.place.path}: {other.message}" for other in item.related])
        for item in linted.diagnostics
    ]


def test_the_second_declaration_is_wrong_whichever_file_it_stands_in() -> None:
    linted = lint({"kit/manifest/a.yaml": op("BFwdOp"), "kit/manifest/b.yaml": op("BFwdOp")}, "MAN102")
    message = "`BFwdOp` is declared a second time; the loader refuses two, so remove or rename one"
    assert found(linted) == [("BFwdOp", message, ["kit/manifest/a.yaml: first declared here"])]
    assert linted.diagnostics[0].place.path == "kit/manifest/b.yaml"


def test_within_one_file_the_first_is_lost() -> None:
    linted = lint({YAML: op("BFwdOp") + op("CFwdOp") + op("'BFwdOp'")}, "MAN102")
    message = "`BFwdOp` is declared a second time; YAML keeps only the last, so remove or rename one"
    assert found(linted) == [("'BFwdOp'", message, [f"{YAML}: first declared here"])]


def test_keys_that_are_no_names_are_not_compared() -> None:
    assert found(lint({YAML: op("1") + op("'1'") + "<<: {}\n<<: {}\n"}, "MAN102")) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("PoolFwdOpIndices", "`Indices` follows `FwdOp`; a variant word goes before it: `PoolIndicesFwdOp`"),
        ("PoolBwdOpV2", "`V2` follows `BwdOp`; a variant word goes before it: `PoolV2BwdOp`"),
    ],
)
def test_a_variant_word_stands_before_the_direction(name: str, message: str) -> None:
    code = f"class {name}:\n    pass\n"
    linted = lint({YAML: op(name, "source: {op: kit/ops/pool.py}"), "kit/ops/pool.py": code}, "MAN103")
    assert found(linted) == [(name, message, ["kit/ops/pool.py: the class has the same name"])]


def test_a_sibling_makes_the_direction_necessary() -> None:
    linted = lint({YAML: op("PoolOp") + op("PoolBwdOp")}, "MAN103")
    message = "`PoolOp` does not say its direction, but `PoolBwdOp` exists; write `PoolFwdOp`"
    assert found(linted) == [("PoolOp", message, [f"{YAML}: its sibling"])]


@pytest.mark.parametrize("name", ["PoolOp", "FwdOpsOp", "PoolIndicesFwdOp", "pool_fwd", "Fwd", "FwdOpsFwdOp"])
def test_names_without_a_sibling_are_free(name: str) -> None:
    assert found(lint({YAML: op(name)}, "MAN103")) == []


def test_the_format_holds_only_where_the_tree_states_it() -> None:
    assert found(lint({YAML: op("PoolFwdOpIndices"), "opschema.toml": ""}, "MAN103")) == []


def signature(text: str) -> dict[str, str]:
    return example_files([("yaml", f"signature:\n{text}")])


def test_inputs_params_and_static_dims_share_their_names() -> None:
    text = (
        "  inputs: {x: {dtype: int8}}\n  params: {x: {type: int}, n: {type: int}}\n  static_dims: {n: 'x.shape[0]'}\n"
    )
    linted = lint(signature(text), "MAN104")
    assert found(linted) == [
        ("x", "the param `x` has the name of an input; rename one of them", [f"{YAML}: the input"]),
        ("n", "the static dim `n` has the name of a param; rename one of them", [f"{YAML}: the param"]),
    ]


def test_an_output_may_repeat_the_input_it_overwrites() -> None:
    text = "  inputs:\n    y: {dtype: float16, mutated: true}\n  outputs:\n    y: {dtype: float16}\n"
    assert found(lint(signature(text), "MAN104")) == []


def test_malformed_sections_collide_with_nothing() -> None:
    text = "  inputs: [x]\n  params: {x: 3, 1: {type: int}}\n  static_dims: [x]\n"
    assert found(lint(signature(text), "MAN104")) == []


def test_a_promise_and_a_status_that_cannot_keep_it() -> None:
    files = example_files([("yaml", "status: spec-only\ntorch_compile_fullgraph: true\n")])
    linted = lint(files, "MAN105")
    message = "`torch_compile_fullgraph` promises something of the implementation, and the entry is `spec-only`; remove one of them"
    assert found(linted) == [("torch_compile_fullgraph", message, [f"{YAML}: it claims no implementation"])]
    assert fix_files([PACK], files, ["MAN105"])[0] == {}
    texts, _ = fix_files([PACK], files, ["MAN105"], unsafe=True)
    assert "torch_compile_fullgraph" not in texts[YAML]


OLD = {
    "opschema.toml": "",
    "docs/manifest.md": "status, signature, workloads, shape_rules, roofline; `variant_of` names the primary.\n",
}


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("variant_of: AFwdOp\nsource: {op: a.py, kernel: k.py}", []),
        ("variant_of: CFwdOp", ["`variant_of` names `CFwdOp`, which the manifest does not declare"]),
        ("variant_of: 3", ["`variant_of` must be the name of an op"]),
        (
            "variant_of: AFwdOp\nsource: {op: b.py, kernel: k.py}",
            ["`source.op` is not that of `AFwdOp`, of which this is a variant"],
        ),
    ],
)
def test_variants_of_older_trees(variant: str, expected: list[str]) -> None:
    text = op("AFwdOp", "source: {op: a.py, kernel: k.py}") + op("BFwdOp", variant)
    linted = lint({YAML: text, **OLD}, "MAN106")
    assert [item.message for item in linted.diagnostics] == expected


def test_variants_are_one_level_deep() -> None:
    text = op("AFwdOp") + op("BFwdOp", "variant_of: AFwdOp") + op("CFwdOp", "variant_of: BFwdOp")
    linted = lint({YAML: text, **OLD}, "MAN106")
    message = "`variant_of` names `BFwdOp`, which is a variant itself; name its primary"
    assert found(linted) == [("BFwdOp", message, [f"{YAML}: its own primary"])]

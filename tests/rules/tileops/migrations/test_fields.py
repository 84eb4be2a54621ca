"""Fields added to and dropped from the entries that a condition chooses."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.add_field import add_field
from opschema_rules.tileops.migrations.drop_field import drop_field
from tests.rules.tileops.migrations.drafts import YAML, Migrated, files, migrate

ADD: Migration = add_field
DROP: Migration = drop_field

TWO = """\
OneFwdOp:
  family: norm
  status: implemented

  signature:
    inputs:
      x: {dtype: float16}  # kept
      w: {dtype: float16, optional: true, layout: NCHW}
    outputs:
      y:
        dtype: float16
    params:
      eps: {type: float, default: 0.5, kw_only: true}

  workloads: []

  roofline: {flops: "1", bytes: "1"}
  source:
    op: kit/ops/one.py
    bench: null
    bench_manifest_driven: false

TwoFwdOp:
  family: scan
  status: spec-only

  signature:
    inputs: {}
    outputs: {}
    params:
      dim:
        type: int

  workloads: []
  source:
    op: kit/ops/two.py
    bench_manifest_driven: true
"""


def tree() -> dict[str, str]:
    return {**{path: text for path, text in files().items() if path != YAML}, YAML: TWO}


def added(path: str, value: str, **options: object) -> Migrated:
    return migrate(tree(), ADD, path=path, value=value, **options)


def dropped(path: str, **options: object) -> Migrated:
    return migrate(tree(), DROP, path=path, **options)


def test_a_field_is_added_where_it_is_missing_in_the_place_that_it_has_elsewhere() -> None:
    done = added("source.bench", "benchmarks/b.py")
    assert done.text(YAML) == TWO.replace("op: kit/ops/two.py\n", "op: kit/ops/two.py\n    bench: benchmarks/b.py\n")


def test_a_section_is_set_apart_as_the_others() -> None:
    done = added("roofline", '{flops: "2"}')
    assert done.text(YAML) == TWO.replace(
        "workloads: []\n  source:\n    op: kit/ops/two",
        'workloads: []\n  roofline:\n    flops: "2"\n  source:\n    op: kit/ops/two',
    )


def test_a_value_is_replaced_only_when_told() -> None:
    assert not added("source.bench_manifest_driven", "true").sites
    done = added("source.bench_manifest_driven", "true", replace=True)
    assert done.text(YAML) == TWO.replace("driven: false", "driven: true")


def test_every_key_in_block_and_in_flow_style() -> None:
    done = added("signature.params.*.kw_only", "true")
    assert done.text(YAML) == TWO.replace("type: int\n", "type: int\n        kw_only: true\n")
    done = added("signature.*.*.optional", "true", op="OneFwdOp")
    assert done.lines(YAML) == [
        "x: {dtype: float16, optional: true}  # kept",
        "optional: true",
        "eps: {type: float, default: 0.5, kw_only: true, optional: true}",
    ]


def test_a_mapping_on_the_way_is_made() -> None:
    done = added("signature.static_dims.N", "x.shape[0]", where="status=implemented")
    assert done.lines(YAML) == ["static_dims:", "N: x.shape[0]"]


@pytest.mark.parametrize(
    ("where", "ops"),
    [
        ("status=implemented", ["OneFwdOp"]),
        ("status!=implemented", ["TwoFwdOp"]),
        ("family=n*", ["OneFwdOp"]),
        ("has:roofline", ["OneFwdOp"]),
        ("lacks:roofline", ["TwoFwdOp"]),
        ("status=implemented, lacks:roofline", []),
        ("signature.inputs.*.layout=NCHW", ["OneFwdOp"]),
        ("source.bench_manifest_driven=true", ["TwoFwdOp"]),
        ("", ["OneFwdOp", "TwoFwdOp"]),
    ],
)
def test_conditions(where: str, ops: list[str]) -> None:
    assert [op for site in added("new", "1", where=where).sites for op in site.ops] == ops


def test_a_field_goes_with_its_comments() -> None:
    text = TWO.replace("    bench_manifest_driven: false", "    # not yet\n    bench_manifest_driven: false  # why")
    done = migrate({**tree(), YAML: text}, DROP, path="source.bench_manifest_driven", value="false")
    assert done.text(YAML) == TWO.replace("    bench_manifest_driven: false\n", "")


def test_a_mapping_that_is_left_empty_goes_unless_the_tree_has_empty_ones() -> None:
    done = dropped("signature.params.eps", op="OneFwdOp")
    assert done.text(YAML) == TWO.replace("eps: {type: float, default: 0.5, kw_only: true}", "").replace(
        "    params:\n      \n", "    params: {}\n"
    )
    done = dropped("roofline.*")
    assert done.sites == []
    text = TWO.replace("    params:\n      dim:\n        type: int\n", "")
    done = migrate({**tree(), YAML: text}, DROP, path="signature.params.eps")
    assert "params:" not in done.text(YAML)


def test_several_fields_of_one_mapping() -> None:
    text = TWO.replace("  roofline: {flops", "  roofline: {func: null, flops")
    done = migrate({**tree(), YAML: text}, DROP, path="roofline.flops")
    assert 'roofline: {func: null, bytes: "1"}' in done.text(YAML)


def test_code_that_reads_a_field_which_nobody_has_is_noted() -> None:
    texts = {**tree(), "scripts/check.py": 'def check(entry):\n    return entry["family"]\n'}
    done = migrate(texts, DROP, path="family")
    assert ("scripts/check.py", 2, "this names `family`, which no entry has any more") in done.said
    done = migrate(texts, DROP, path="family", op="OneFwdOp")
    assert done.notes == []


def test_an_alias_is_left_to_a_person() -> None:
    text = TWO.replace("x: {dtype: float16}", "x: &x {dtype: float16}").replace("inputs: {}", "inputs: {a: *x}")
    done = migrate({**tree(), YAML: text}, ADD, path="signature.inputs.*.optional", value="true", op="TwoFwdOp")
    assert done.text(YAML) == text
    assert len(done.notes) == 1


ANCHORED = TWO.replace("op: kit/ops/one.py", "op: kit/ops/one.py\n    kernel_map: &kernels {a: AKernel}").replace(
    "op: kit/ops/two.py", "op: kit/ops/two.py\n    kernel_map: *kernels"
)


def test_an_anchor_goes_together_with_all_of_its_aliases() -> None:
    done = migrate({**tree(), YAML: ANCHORED}, DROP, path="source.kernel_map")
    assert (done.text(YAML), done.notes) == (TWO, [])


def test_a_chain_of_anchors_goes_link_by_link() -> None:
    text = TWO.replace("op: kit/ops/one.py", "op: kit/ops/one.py\n    kernel_map: &outer {a: &inner {b: 1}}").replace(
        "op: kit/ops/two.py", "op: kit/ops/two.py\n    kernel_map: &third {c: *inner, d: *outer}"
    )
    text += "ThreeFwdOp:\n  source:\n    op: kit/ops/three.py\n    kernel_map: *third\n"
    done = migrate({**tree(), YAML: text}, DROP, path="source.kernel_map")
    assert "kernel_map" not in done.text(YAML)
    assert done.notes == []


def test_an_anchor_stays_while_an_alias_does() -> None:
    done = migrate({**tree(), YAML: ANCHORED}, DROP, path="source.kernel_map", op="OneFwdOp")
    assert done.texts == {}
    assert [message for _, _, message in done.said] == [
        "drop `source.kernel_map` by hand: it holds `&kernels`, which `*kernels` needs elsewhere"
    ]
    text = ANCHORED + "    kernels: *kernels\n"
    done = migrate({**tree(), YAML: text}, DROP, path="source.kernel_map")
    assert done.text(YAML) == text.replace("\n    kernel_map: *kernels", "")
    assert [line for _, line, _ in done.said] == [20]
    assert [site.ops for site in done.left] == [("OneFwdOp",)]


def test_an_input_that_is_left_without_attributes_stays() -> None:
    text = TWO.replace("    inputs: {}\n    outputs", "    inputs: {v: {layout: NCHW}, u: {layout: NCHW}}\n    outputs")
    done = migrate({**tree(), YAML: text}, DROP, path="signature.inputs.*.layout", op="TwoFwdOp")
    assert done.lines(YAML) == ["inputs: {v: {}, u: {}}"]


def test_mappings_side_by_side_that_are_left_empty() -> None:
    text = TWO.replace("  roofline: {", "  hints: {gpu: {old: 1}, cpu: {old: 2}, kept: 3}\n  roofline: {")
    done = migrate({**tree(), YAML: text}, DROP, path="hints.*.old")
    assert done.lines(YAML) == ["hints: {kept: 3}"]
    assert done.notes == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "a..b", "value": "1"}, "`a..b` is not a path such as `source.bench`"),
        ({"path": "a", "value": "[1"}, "`[1` is not a YAML value"),
        ({"path": "a", "value": "1", "where": "implemented"}, "`implemented` is not a condition"),
        ({"path": "a", "value": "1", "op": "OneFwdOpp"}, "no op is called `OneFwdOpp`; did you mean `OneFwdOp`?"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        added(**options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("migration", "options", "message"),
    [
        (DROP, {"path": "signatur.params.eps"}, "no entry has `signatur`; did you mean `signature`?"),
        (DROP, {"path": "signature.inputs.*.Layot"}, "no entry has `signature.inputs.*.Layot`; did you mean `layout`?"),
        (DROP, {"path": "source.bench_manifest_drivn"}, "did you mean `bench_manifest_driven`?"),
        (DROP, {"path": "family", "where": "has:sorce.bench"}, "no entry has `sorce`; did you mean `source`?"),
        (DROP, {"path": "family", "where": "famly=norm"}, "no entry has `famly`; did you mean `family`?"),
        (DROP, {"path": "family", "where": "status=implementd"}, "as `status`; did you mean `implemented`?"),
        (ADD, {"path": "signature.parms.*.kw_only", "value": "true"}, "did you mean `params`?"),
        (ADD, {"path": "new", "value": "1", "where": "stauts=spec-only"}, "did you mean `status`?"),
    ],
)
def test_a_misspelt_name_is_refused(migration: Migration, options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        migrate(tree(), migration, **options)
    assert str(error.value).endswith(message)


@pytest.mark.parametrize(
    "options",
    [
        {"path": "signature.init_dims"},  # the schema knows it
        {"path": "signature.static_dims.Nn"},  # its author named it
        {"path": "signature.params.epsilon"},
        {"path": "bench_notes"},  # a field of the tree's own, which an earlier run may have dropped
        {"path": "workloads.*.lable"},
        {"path": "family", "where": "lacks:signature.inputs, has:signature.dtype_combos"},
        {"path": "family", "where": "lacks:famly, status=planned"},
        {"path": "family", "where": "status!=implementd, status=neither"},
        {"path": "family", "where": "family=nrm"},
        {"path": "family", "where": "status=imp*, status=spec*"},
    ],
)
def test_a_name_that_may_be_gone_is_not(options: dict[str, str]) -> None:
    assert migrate(tree(), DROP, **options).result.sites == []


def test_a_field_that_this_very_run_dropped_is_not_misspelt() -> None:
    text = TWO.replace("  status: spec-only\n", "  status: spec-only\n  familly: scan\n")
    done = migrate({**tree(), YAML: text}, DROP, path="familly")
    assert done.text(YAML) == TWO
    with pytest.raises(OptionError, match="did you mean `family`"):
        dropped("familly")

"""Fields that entries lack, with the values that follow from the code."""

from __future__ import annotations

import re

import pytest

from opschema_cli.migrate.migration import Migration, OptionError
from opschema_rules.tileops.migrations.derive_field import derive_field
from tests.rules.tileops.migrations.drafts import BENCH, CODE, YAML, files, migrate

DERIVE: Migration = derive_field

DRIVEN = """\
from kit.manifest import load_workloads


def bench():
    for row in load_workloads("ExampleFwdOp"):
        make(row).eval_roofline()
"""


def without(pattern: str, **changes: str) -> dict[str, str]:
    """The example's workspace without what a pattern finds in the manifest."""
    texts = {**files(), BENCH: DRIVEN, **changes}
    return {**texts, YAML: re.sub(pattern, "", texts[YAML])}


@pytest.mark.parametrize(
    ("path", "pattern", "lines"),
    [
        ("status", r"(?m)^ +status: .*\n", ["status: implemented"]),
        ("source.kernel_map", r"(?m)^ +kernel_map: .*\n", ["kernel_map:", "example: ExampleKernel"]),
        ("source.bench_manifest_driven", r"(?m)^ +bench_manifest_driven: .*\n", ["bench_manifest_driven: true"]),
    ],
)
def test_the_value_follows_from_the_code(path: str, pattern: str, lines: list[str]) -> None:
    done = migrate(without(pattern), DERIVE, path=path)
    assert done.lines(YAML) == lines
    assert done.notes == []
    assert not migrate(dict(done.after), DERIVE, path=path).sites


def test_the_file_of_the_only_class_of_that_name() -> None:
    texts = {**files(), "kit/ops/other.py": "class OtherFwdOp:\n    pass\n"}
    entry = texts[YAML].replace("ExampleFwdOp", "OtherFwdOp")
    texts[YAML] += "\n" + re.sub(r"(?m)^ +op: .*\n", "", entry)
    assert migrate(texts, DERIVE, path="source.op").lines(YAML) == ["op: kit/ops/other.py"]


def test_an_op_without_a_class_is_planned() -> None:
    texts = without(r"(?m)^ +status: .*\n")
    texts[CODE] = texts[CODE].replace("class ExampleFwdOp", "class OtherFwdOp")
    assert migrate(texts, DERIVE, path="status").lines(YAML) == ["status: spec-only"]


@pytest.mark.parametrize(
    ("path", "pattern", "change"),
    [
        ("source.kernel_map", r"(?m)^ +kernel_map: .*\n", {CODE: ('{"example": ExampleKernel}', "kernels()")}),
        ("source.bench_manifest_driven", r"(?m)^ +bench_manifest_driven: .*\n", {BENCH: ("eval_roofline", "run")}),
        ("source.op", r"(?m)^ +op: .*\n", {CODE: ("class ExampleFwdOp", "class OtherFwdOp")}),
    ],
)
def test_a_value_that_does_not_follow_is_left(path: str, pattern: str, change: dict[str, tuple[str, str]]) -> None:
    texts = without(pattern)
    texts.update({file: texts[file].replace(*words) for file, words in change.items()})
    done = migrate(texts, DERIVE, path=path)
    assert done.texts == {}
    assert [site.ops for site in done.left] == [("ExampleFwdOp",)]


def test_a_field_of_which_the_code_says_nothing() -> None:
    with pytest.raises(OptionError, match=r"did you mean `source\.kernel_map`"):
        migrate(files(), DERIVE, path="source.kernelmap")
    with pytest.raises(OptionError, match="no value of `family` follows from the code; known are `status`"):
        migrate(files(), DERIVE, path="family")

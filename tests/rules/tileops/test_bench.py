"""Benchmarks: what an entry declares, and which workloads and rooflines the file uses."""

from __future__ import annotations

import pytest

from opschema_cli.lint.diagnostic import Severity
from opschema_cli.testing import Linted, lint_files
from opschema_rules.tileops.examples import example_files
from opschema_rules.tileops.pack import PACK

BENCH = "benchmarks/bench_example.py"


def lint(
    select: str, bench: str = "", source: str = "bench_manifest_driven: true", status: str = "implemented"
) -> Linted:
    texts = example_files([("yaml", f"status: {status}\nsource:\n  {source}\n"), (f"python {BENCH}", bench)])
    return lint_files([PACK], texts, [select])


def found(linted: Linted) -> list[tuple[str, str]]:
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_the_declaration() -> None:
    stated = "the entry is implemented and says `bench_manifest_driven: false`, so nothing holds its benchmark to the manifest"
    assert found(lint("BEN101", source="bench_manifest_driven: false")) == [("false", stated)]
    for source, status in [("bench_manifest_driven: false", "spec-only"), ("bench: null", "implemented")]:
        assert found(lint("BEN101", source=source, status=status)) == []
    assert found(lint("BEN101", source="bench_manifest_driven: 'no'")) == []  # malformed, another rule's business


USES = {
    "the name in the call": 'load_workloads("ExampleFwdOp")',
    "by keyword": 'load_workloads(op_name="ExampleFwdOp")',
    "of a module": 'manifest.load_workloads("ExampleFwdOp")',
    "over lines": 'load_workloads(\n    "ExampleFwdOp",\n)',
    "a constant": 'NAME = "ExampleFwdOp"\nload_workloads(NAME)',
    "an annotated constant": 'NAME: str = "ExampleFwdOp"  # the op\nload_workloads(NAME)',
    "two constants": 'A = "ExampleFwdOp"\nB = A\nload_workloads(B)',
    "the other function": 'workloads_to_params("ExampleFwdOp", include_extra=True)',
    "in a function": 'def rows():\n    return load_workloads("ExampleFwdOp")',
    "behind a string with a hash": 'x = "#"; load_workloads("ExampleFwdOp")',
    "handed to a helper": 'run("ExampleFwdOp")',
    "a constant handed to a helper": 'NAME = "ExampleFwdOp"\nrun(NAME)\nManifestBenchmark(NAME, op)',
    "in a list": 'for name in ["ExampleFwdOp", "B"]:\n    load_workloads(name)',
    "by the class": "load_workloads(ExampleFwdOp.__name__)",
}


@pytest.mark.parametrize("bench", USES.values(), ids=USES.keys())
def test_benchmarks_that_take_the_workloads_or_may(bench: str) -> None:
    assert found(lint("BEN102", bench + "\n")) == []


MISSES = {
    "nothing": "",
    "another op": 'load_workloads("OtherFwdOp")',
    "shapes of its own": "for shape in [(1, 2)]:\n    ExampleFwdOp()(make(shape))",
    "a comment": '# load_workloads("ExampleFwdOp")',
    "a docstring": '"""Runs ``load_workloads("ExampleFwdOp")``."""',
    "another constant": 'NAME = "OtherFwdOp"\nload_workloads(NAME)',
    "only the roofline": 'ManifestBenchmark("ExampleFwdOp", op)',
    "only the roofline, by a constant": 'NAME = "ExampleFwdOp"\nload_workloads("B")\nManifestBenchmark(NAME, op)',
}


@pytest.mark.parametrize("bench", MISSES.values(), ids=MISSES.keys())
def test_benchmarks_that_do_not(bench: str) -> None:
    linted = lint("BEN102", bench + "\n")
    text = f"`{BENCH}` never calls `load_workloads` with `ExampleFwdOp`, so its workloads are not the manifest's"
    assert found(linted) == [(BENCH, text)]
    assert linted.diagnostics[0].severity is Severity.ERROR


REPORTED = {
    "on the op": "op.eval_roofline()",
    "on a call": "make(workload).eval_roofline()",
    "handed on": "report(op.eval_roofline)",
    "by a benchmark": 'ManifestBenchmark("ExampleFwdOp", op, workload)',
    "by a constant": 'NAME = "ExampleFwdOp"\nbm = ManifestBenchmark(NAME, op)',
    "by a parameter": 'def run(name):\n    ManifestBenchmark(name, op)\n\n\nrun("ExampleFwdOp")',
}


@pytest.mark.parametrize("bench", REPORTED.values(), ids=REPORTED.keys())
def test_benchmarks_that_report_the_roofline_or_may(bench: str) -> None:
    assert found(lint("BEN103", bench + "\n")) == []


@pytest.mark.parametrize(
    "bench", ['load_workloads("ExampleFwdOp")', 'ManifestBenchmark("OtherFwdOp", op)', "# eval_roofline()"]
)
def test_benchmarks_that_report_none(bench: str) -> None:
    assert found(lint("BEN103", bench + "\n")) == [(BENCH, f"`{BENCH}` never evaluates the roofline of `ExampleFwdOp`")]


@pytest.mark.parametrize(
    ("source", "status", "expected"),
    [
        ("bench_manifest_driven: true", "spec-only", [Severity.WARNING]),
        ("bench_manifest_driven: false", "spec-only", []),
        ("bench_manifest_driven: false", "implmented", []),  # misspelt: another rule's finding
        ("bench_manifest_driven: false", "implemented", [Severity.WARNING]),
        ("bench: benchmarks/gone.py", "implemented", []),
    ],
)
def test_how_much_it_counts(source: str, status: str, expected: list[Severity]) -> None:
    assert [item.severity for item in lint("BEN102", "", source, status).diagnostics] == expected


@pytest.mark.parametrize("select", ["BEN102", "BEN103"])
def test_a_class_that_is_not_there_is_another_rules_finding(select: str) -> None:
    texts = example_files([("python", "class ExampleOp(Op): ...\n"), (f"python {BENCH}", "")])
    assert found(lint_files([PACK], texts, [select])) == []


def test_a_benchmark_that_does_not_parse_is_reported_once() -> None:
    linted = lint("ALL", 'load_workloads("ExampleFwdOp"\n')
    assert [item.code for item in linted.diagnostics if item.place.path == BENCH] == ["OPS102"]
    assert "BEN102" not in linted.codes()

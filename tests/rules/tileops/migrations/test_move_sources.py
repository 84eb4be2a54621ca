"""Paths of entries whose files have moved."""

from __future__ import annotations

from opschema_cli.migrate.migration import Migration
from opschema_rules.tileops.migrations.move_sources import move_sources
from tests.rules.tileops.migrations.drafts import BENCH, TEST, YAML, Migrated, files, migrate

MOVE: Migration = move_sources.__migration__  # type: ignore[attr-defined]


def moved(source: str, *gone: str, status: str = "implemented", **more: str) -> Migrated:
    texts = files(("yaml", f"status: {status}\nsource:\n  {source}\n"), **more)
    return migrate({path: text for path, text in texts.items() if path not in gone}, MOVE)


def test_the_file_that_defines_the_class() -> None:
    done = moved("op: kit/ops/old.py")
    assert done.lines(YAML) == ["op: kit/ops/example.py"]
    assert done.notes == []


def test_a_list_and_quotes_stay_as_they_are() -> None:
    done = moved("kernel: [kit/kernels/example.py, 'kit/old.py']  # two", kit__kernels__more__old="A = 1\n")
    assert done.lines(YAML) == ["kernel: [kit/kernels/example.py, 'kit/kernels/more/old.py']  # two"]
    assert [note for _, _, note in done.said] == [
        "`source.kernel` of `ExampleFwdOp` is now `kit/kernels/more/old.py`, found by its name alone"
    ]


def test_a_test_that_names_the_class_and_a_benchmark_that_moved() -> None:
    done = moved("test: tests/test_one.py\n  bench: benchmarks/old/bench_example.py")
    assert done.lines(YAML) == [f"test: {TEST}", f"bench: {BENCH}"]
    assert [note for _, _, note in done.said] == [
        "`source.test` of `ExampleFwdOp` is now `tests/test_example.py`, found as the only one that names its class",
        "`source.bench` of `ExampleFwdOp` is now `benchmarks/bench_example.py`, found by its name alone",
    ]


def test_two_tests_that_name_the_class_are_a_choice() -> None:
    done = moved("op: kit/old.py\n  test: tests/test_one.py", tests__test_two='OP = "ExampleFwdOp"\n')
    assert done.lines(YAML) == ["op: kit/ops/example.py"]
    assert done.said == [
        (YAML, 26, "`source.test` of `ExampleFwdOp` names `tests/test_one.py`; where that is now is not known")
    ]


def test_a_package_that_became_a_module() -> None:
    done = moved("kernel: kit/kernels/wide/fwd.py\n  kernel_map: {a: A, b: B}", kit__kernels__wide="C = 1\n")
    assert done.lines(YAML)[0] == "kernel: kit/kernels/wide.py"


def test_the_file_of_all_kernels() -> None:
    kernels = "class WideKernel:\n    pass\n\n\nclass SlimKernel:\n    pass\n"
    done = moved("kernel: kit/gone.py\n  kernel_map: {w: WideKernel, s: SlimKernel}", kit__kernels__both=kernels)
    assert done.lines(YAML)[0] == "kernel: kit/kernels/both.py"


def test_kernels_in_two_files_are_not_one() -> None:
    done = moved(
        "kernel: kit/gone.py\n  kernel_map: {w: WideKernel, s: SlimKernel}",
        kit__kernels__wide="class WideKernel:\n    pass\n",
        kit__kernels__slim="class SlimKernel:\n    pass\n",
    )
    assert done.sites == []


def test_a_kernel_that_is_spelled_in_another_case() -> None:
    done = moved("kernel_map: {example: EXAMPLEKernel}")
    assert done.lines(YAML) == ["kernel_map: {example: ExampleKernel}"]


def test_another_kernel_of_nearly_that_name_is_left() -> None:
    assert moved("kernel_map: {example: ExamplesKernel}").sites == []


def test_a_placeholder_of_an_entry_without_code_is_left() -> None:
    done = moved("op: kit/ops/planned.py\n  test: tests/test_planned.py", "kit/ops/example.py", status="spec-only")
    assert done.sites == []
    assert done.notes == []


def test_the_path_that_every_other_entry_has_moved() -> None:
    texts = files(("yaml", "source:\n  bench: benchmarks/bench_old.py\n"))
    texts["kit/ops/other.py"] = "class OtherFwdOp:\n    pass\n"
    texts[YAML] += (
        "\nOtherFwdOp:\n  status: implemented\n  signature: {}\n"
        "  source: {op: kit/ops/other.py, bench: benchmarks/bench_old.py}\n"
    )
    texts["benchmarks/bench_all.py"] = texts.pop(BENCH)
    done = migrate(texts, MOVE)
    assert done.lines(YAML) == [
        "bench: benchmarks/bench_all.py",
        "source: {op: kit/ops/other.py, bench: benchmarks/bench_all.py}",
    ]

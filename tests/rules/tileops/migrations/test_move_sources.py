"""Paths of entries whose files have moved."""

from __future__ import annotations

import pytest

from opschema_cli.migrate.migration import Migration
from opschema_rules.tileops.migrations.move_sources import move_sources
from tests.rules.tileops.migrations.drafts import BENCH, TEST, YAML, Migrated, files, migrate

MOVE: Migration = move_sources


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


TWO_KERNELS = {
    "kit__kernels__wide": "class WideKernel:\n    pass\n",
    "kit__kernels__slim": "class SlimKernel:\n    pass\n",
}


def test_a_file_of_kernels_that_was_split_in_two() -> None:
    done = moved("kernel: kit/gone.py\n  kernel_map: {w: WideKernel, s: SlimKernel}", **TWO_KERNELS)
    assert done.lines(YAML)[:3] == ["kernel:", "- kit/kernels/wide.py", "- kit/kernels/slim.py"]
    assert done.notes == []


def test_one_file_of_a_list_that_was_split_in_two_is_left() -> None:
    paths = "[kit/kernels/example.py, kit/gone.py]"
    done = moved(f"kernel: {paths}\n  kernel_map: {{w: WideKernel, s: SlimKernel}}", **TWO_KERNELS)
    assert done.sites == []
    assert [note for _, _, note in done.said] == [
        "`source.kernel` of `ExampleFwdOp` names `kit/gone.py`; where that is now is not known"
    ]


def test_of_a_list_the_file_that_holds_what_the_others_do_not() -> None:
    paths = "[kit/gone.py, kit/kernels/wide.py]"
    done = moved(f"kernel: {paths}\n  kernel_map: {{w: WideKernel, s: SlimKernel}}", **TWO_KERNELS)
    assert done.lines(YAML) == ["kernel: [kit/kernels/slim.py, kit/kernels/wide.py]"]


def test_a_kernel_that_is_spelled_in_another_case() -> None:
    done = moved("kernel_map: {example: EXAMPLEKernel}")
    assert done.lines(YAML) == ["kernel_map: {example: ExampleKernel}"]


def test_another_kernel_of_nearly_that_name_is_left() -> None:
    assert moved("kernel_map: {example: ExamplesKernel}").sites == []


def test_a_placeholder_of_an_entry_without_code_is_left() -> None:
    done = moved("op: kit/ops/planned.py\n  test: tests/test_planned.py", "kit/ops/example.py", status="spec-only")
    assert done.sites == []
    assert done.notes == []


def test_all_paths_of_an_entry_that_is_spec_only_at_once() -> None:
    done = moved("op: kit/ops/old.py\n  test: tests/test_one.py", status="spec-only")
    assert done.lines(YAML) == ["op: kit/ops/example.py", f"test: {TEST}"]


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


OP = files()["kit/ops/example.py"]


def test_a_class_of_the_same_name_elsewhere_is_another_one() -> None:
    homonyms = {"tests__helper": "class ExampleFwdOp:\n    pass\n", "build__lib__kit__ops__example": OP}
    done = moved("op: kit/ops/old.py", **homonyms)
    assert done.lines(YAML) == ["op: kit/ops/example.py"]
    done = moved("kernel: kit/old.py", third_party__example="class ExampleKernel:\n    pass\n")
    assert done.lines(YAML) == ["kernel: kit/kernels/example.py"]


def test_two_classes_of_one_name_below_the_same_folder_are_a_choice() -> None:
    done = moved("op: kit/ops/old.py", kit__ops__more=OP)
    assert done.texts == {}
    assert [note for _, _, note in done.said] == [
        "`source.op` of `ExampleFwdOp` names `kit/ops/old.py`; where that is now is not known"
    ]


def test_a_file_that_hands_the_class_on_is_not_its_own() -> None:
    done = moved("op: kit/ops/old.py", kit__ops__old="from kit.ops.example import ExampleFwdOp\n")
    assert done.lines(YAML) == ["op: kit/ops/example.py"]


def test_a_module_that_became_a_package_which_hands_the_class_on() -> None:
    texts = files(("yaml", "source:\n  op: kit/ops/example.py\n"))
    texts["kit/ops/example/impl.py"] = texts.pop("kit/ops/example.py")
    texts["kit/ops/example/__init__.py"] = "from .impl import ExampleFwdOp\n"
    assert migrate(texts, MOVE).lines(YAML) == ["op: kit/ops/example/impl.py"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("kernel: kit/kernels/EXAMPLE.py\n  kernel_map: {a: A, b: B}", "kernel: kit/kernels/example.py"),
        ("test: tests/Test_Example.py", "test: tests/test_example.py"),
        ("op: kit/ops/Example.py", "op: kit/ops/example.py"),
    ],
)
def test_a_path_that_changed_in_its_case_only(source: str, line: str) -> None:
    assert moved(source).lines(YAML)[:1] == [line]


def test_of_files_of_one_name_the_one_with_the_same_folder_above() -> None:
    tests = {"tests__unit__norm__test_fwd": "A = 1\n", "tests__unit__scan__test_fwd": "A = 1\n"}
    done = moved("test: tests/ops/norm/test_fwd.py", **tests)
    assert done.lines(YAML) == ["test: tests/unit/norm/test_fwd.py"]
    assert [note.rpartition(", ")[2] for _, _, note in done.said] == ["found by its name and the folder above it"]
    assert moved("test: tests/ops/gemm/test_fwd.py", TEST, **tests).sites == []


@pytest.mark.parametrize("path", ["tests/example", "tests/example/", "."])
def test_a_test_that_names_a_folder(path: str) -> None:
    done = moved(f"test: {path}", tests__example__test_a="OP = 'ExampleFwdOp'\n")
    assert done.texts == {}
    assert [note for _, _, note in done.said] == [
        f"`source.test` of `ExampleFwdOp` names the folder `{path}`; which of its files is meant is not known"
    ]


def test_several_paths_in_one_text_are_no_path() -> None:
    done = moved("test: tests/old/test_example.py, tests/test_b.py")
    assert done.texts == {}
    assert len(done.notes) == 1


OTHER = "\nOtherFwdOp:\n  status: spec-only\n  signature: {}\n  source: {op: kit/ops/other.py, KEY}\n"


def test_what_is_another_entrys_and_does_not_speak_of_this_one() -> None:
    texts = files(("yaml", "source:\n  test: tests/a/test_fwd.py\n"), tests__b__test_fwd="OP = 'OtherFwdOp'\n")
    texts[YAML] += OTHER.replace("KEY", "test: tests/b/test_fwd.py")
    assert migrate(texts, MOVE).lines(YAML) == [f"test: {TEST}"], "the only one that names its class"
    kernel = "source:\n  kernel: kit/kernels/attention_fwd_v1.py\n  kernel_map: {a: A, b: B}\n"
    texts = files(("yaml", kernel), kit__kernels__attention_fwd_v2="A = 1\n")
    assert migrate(texts, MOVE).lines(YAML) == ["kernel: kit/kernels/attention_fwd_v2.py"], "nearly that name"
    texts[YAML] += OTHER.replace("KEY", "kernel: kit/kernels/attention_fwd_v2.py")
    assert migrate(texts, MOVE).texts == {}


def shared(first: str, second: str) -> dict[str, str]:
    """Two ops whose file was split, the source of the second written with an anchor of the first."""
    texts = files(("yaml", "source:\n  op: kit/ops/old.py\n"), kit__ops__other=OP.replace("ExampleFwdOp", "OtherFwdOp"))
    head, _, tail = texts[YAML].partition("  source:\n")
    other = head.replace("ExampleFwdOp", "OtherFwdOp")
    texts[YAML] = f"{head}  source: {first}\n{tail}\n{other}  source: {second}\n"
    return texts


@pytest.mark.parametrize(
    ("second", "lines"),
    [("{<<: *both, op: kit/ops/old.py}", ["source: {<<: *both, op: kit/ops/other.py}"]), ("*both", [])],
)
def test_what_an_anchor_shares_is_left_with_the_path_that_it_should_be(second: str, lines: list[str]) -> None:
    done = migrate(shared("&both", second), MOVE)
    assert done.lines(YAML) == lines
    said = "write `kit/ops/example.py` by hand: it lies in `&both`, so that each `*both` would change too"
    assert f"`source.op` of `ExampleFwdOp`: {said}" in [note for _, _, note in done.said]


def test_line_ends_comments_and_quotes_stay() -> None:
    texts = files(("yaml", "source:\n  op: kit/ops/old.py  # here\n  test: 'tests/old/test_example.py'\n"))
    texts[YAML] = texts[YAML].replace("\n", "\r\n")
    wanted = texts[YAML].replace("kit/ops/old.py", "kit/ops/example.py").replace("tests/old/", "tests/")
    assert migrate(texts, MOVE).text(YAML) == wanted


def test_a_list_in_block_style_and_an_entry_in_flow_style() -> None:
    paths = "kernel:\n    - kit/kernels/example.py\n    - kit/kernels/old.py  # two\n"
    done = moved(
        f"{paths}  kernel_map: {{a: ExampleKernel, b: NewKernel}}", kit__kernels__new="class NewKernel:\n    pass\n"
    )
    assert done.lines(YAML) == ["- kit/kernels/new.py  # two"]
    texts = files()
    texts[YAML] = (
        "ExampleFwdOp: {family: e, status: implemented, signature: {inputs: {}, outputs: {}}, workloads: [],\n"
        "  roofline: {flops: '1', bytes: '1'},\n"
        "  source: {kernel: kit/kernels/example.py, op: kit/ops/old.py, test: [tests/old/test_example.py]}}\n"
    )
    wanted = texts[YAML].replace("kit/ops/old.py", "kit/ops/example.py").replace("tests/old/", "tests/")
    assert migrate(texts, MOVE).text(YAML) == wanted


def test_a_file_that_does_not_define_the_class_and_none_that_does() -> None:
    done = moved("op: kit/ops/example.py", kit__ops__example=OP.replace("class ExampleFwdOp", "class SampleOp"))
    assert [note for _, _, note in done.said] == [
        "`source.op` of `ExampleFwdOp` names `kit/ops/example.py`, which does not define its class; "
        "where that is now is not known"
    ]


def test_only_ops_and_kernels_are_written_as_they_lie_below_src() -> None:
    texts = files(("yaml", "source:\n  op: kit/old.py\n  test: tests/old/test_example.py\n"))
    texts["src/kit/more/example.py"] = texts.pop("kit/ops/example.py")
    texts["src/tests/test_example.py"] = texts.pop(TEST)
    assert migrate(texts, MOVE).lines(YAML) == ["op: kit/more/example.py", "test: src/tests/test_example.py"]


def test_of_entries_that_share_a_source_the_one_whose_class_is_not_there() -> None:
    texts = files()
    texts[YAML] = texts[YAML].replace("ExampleFwdOp:\n", "ExampleFwdOp: &whole\n") + "\nOtherFwdOp: *whole\n"
    done = migrate(texts, MOVE)
    assert [note.partition(",")[0] for _, _, note in done.said] == [
        "`source.op` of `OtherFwdOp` names `kit/ops/example.py`"
    ]

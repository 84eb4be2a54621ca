"""Coverage that only the tree before has is reported and fails the run. Rows may be relabelled, moved or reshaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opschema_cli.verify.model import Call, Cell, Input, Plan, Target
from opschema_cli.verify.removed_coverage import lost_plans, mark_removed, rows_removed
from opschema_cli.verify.run import unplanned

TARGET = Target(root="/", module="m", name="Op")


def plan(*dtypes: str, op: str = "Op", row: str = "r", name: str = "x", size: int = 4, **more: dict[str, str]) -> Plan:
    cells = tuple(
        Cell(op=op, row=row, dtype=dtype, call=Call(inputs=(Input(name=name, shape=(size,), dtype=dtype),)))
        for dtype in dtypes
    )
    return Plan(op=op, target=TARGET, cells=cells, dtypes=dtypes, **more)


def removed(after: Plan, before: Plan, expected: Collection[str] = ()) -> dict[str, str]:
    return mark_removed([after], {after.op: before}, expected)[0].removed


def test_nothing_is_removed() -> None:
    both = plan("float16", "float32")
    assert removed(both, both) == {}
    assert removed(plan("float16", "float32"), plan("float16")) == {}
    assert removed(plan(), plan()) == {}
    assert mark_removed([both], {}, ()) == [both]


def test_rows_may_be_called_otherwise_and_lie_elsewhere() -> None:
    assert removed(plan("float16", row="new", name="input"), plan("float16", row="old")) == {}
    assert rows_removed(plan("float16", row="new", name="input"), plan("float16", row="old")) == 0
    assert removed(plan("float16", size=8), plan("float16", size=4)) == {}
    assert rows_removed(plan("float16", size=8), plan("float16", size=4)) == 1


def test_a_dtype_is_removed() -> None:
    assert removed(plan("float32"), plan("float16", "float32")) == {
        "Op[float16]": "removed: no row runs in float16, unlike in the tree before"
    }


def test_a_dtype_that_the_limit_leaves_out_is_not_removed() -> None:
    short = Plan(op="Op", target=TARGET, cells=plan("float16").cells, dtypes=("float16", "float32"), left_out=1)
    assert removed(short, plan("float16", "float32")) == {}


def test_an_op_whose_class_is_removed_is_no_line_among_the_unchecked() -> None:
    after = plan(unplanned={"Op": "no class `Op` in the file that `source.op` names"})
    marked = mark_removed([after], {"Op": plan("float16")}, ())[0]
    assert marked.unplanned == {}
    (result,) = unplanned(marked, "cpu-sim")
    assert (result.id, result.verdict) == ("Op", "regression")
    assert result.reason == "removed: no class `Op` in the file that `source.op` names; the tree before had 1 cell"


def test_what_could_not_be_run_before_is_not_removed() -> None:
    after = plan(unplanned={"Op": "its status is `spec-only`, not `implemented`"})
    assert mark_removed([after], {"Op": plan(unplanned={"Op": "no class"})}, ()) == [after]


def lost(every: Collection[str], earlier: Sequence[Plan], expected: Collection[str] = ()) -> list[tuple[str, str]]:
    found = lost_plans(every, earlier, expected)
    return [(result.id, result.verdict) for plan in found for result in unplanned(plan, "cpu-sim")]


def test_ops_that_the_tree_after_does_not_declare() -> None:
    earlier = [plan("float16", op="A"), plan("float16", op="B"), plan(op="C")]
    assert lost({"A", "B", "C"}, earlier) == []
    assert lost({"B"}, earlier) == [("A", "regression")]
    assert lost({"B"}, earlier, ["A"]) == [("A", "not-checked")]


def test_what_was_expected_is_not_checked() -> None:
    after, before = plan("float32"), plan("float16", "float32")
    for expected in ("Op", "Op[float16]"):
        marked = mark_removed([after], {"Op": before}, [expected])[0]
        assert [result.verdict for result in unplanned(marked, "cpu-sim")] == ["not-checked"]
    assert list(removed(after, before, ["Op[float32]", "Other"])) == ["Op[float16]"]

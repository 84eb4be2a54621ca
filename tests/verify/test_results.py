"""Results are written line by line and merged only when the shards are the whole run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.verify.model import Call, Cell, CellResult, Finding, Plan, Target, Verdict
from opschema_cli.verify.results import Header, Results, Version, Writer, finding_lines, merge, read_results, run_key
from opschema_cli.verify.shards import parse_shard, shard_of

HEAD, HERE = Version(name="HEAD", commit="c0ffee"), Version(name=".", content="5eed")


def result(name: str, verdict: Verdict = "unchanged") -> CellResult:
    return CellResult(id=name, op=name[0], verdict=verdict, device="cpu-sim")


def header(*cells: str, shard: int = 1, shards: int = 1, total: int = 0, run: str = "key") -> Header:
    return Header(
        run=run,
        shard=shard,
        shards=shards,
        total=total or len(cells),
        before=HEAD,
        after=HERE,
        device="cpu-sim",
        cells=cells,
    )


def results(head: Header, *cells: CellResult) -> Results:
    return Results(head, {cell.id: cell for cell in cells})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    writer = Writer(path, header("a1", "a2"))
    writer.add(result("a1", "regression"))
    writer.close()
    found = read_results(path)
    assert found == results(header("a1", "a2"), result("a1", "regression"))
    assert found.missing == ["a2"]
    assert found.failed


def test_the_last_line_of_a_killed_run_may_be_half(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    writer = Writer(path, header("a1", "a2"))
    writer.add(result("a1"))
    writer.close()
    path.write_bytes(path.read_bytes() + b'{"kind":"cell","id":"a')
    assert read_results(path).missing == ["a2"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("rubbish\n", "is not a result"),
        ('{"kind":"cell","id":"a","op":"a","verdict":"unchanged","device":"cpu"}\n', "the header line is missing"),
        ('{"kind":"cell","id":"a","op":"a","verdict":"green","device":"cpu"}\n{}\n', "is not a result"),
    ],
)
def test_what_is_no_file_of_results_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(OpschemaError, match=reason):
        read_results(path)


def test_shards_of_one_run_are_the_run() -> None:
    parts = [
        results(header("b1", shard=2, shards=2, total=3), result("b1", "not-checked")),
        results(header("a1", "a2", shard=1, shards=2, total=3), result("a1"), result("a2")),
    ]
    whole, lacks = merge(parts)
    assert lacks == []
    assert list(whole.cells) == ["a1", "a2", "b1"]
    assert not whole.failed


def test_a_missing_shard_or_cell_is_told() -> None:
    part = results(header("a1", "a2", shard=1, shards=2, total=3), result("a1"))
    whole, lacks = merge([part])
    assert lacks == ["shard 2 of 2 is missing", "a2 has no result"]
    assert whole.failed
    assert merge([results(header("a1", total=2), result("a1"))])[1] == ["the run has 2 cells, the shards 1"]


def test_shards_of_other_runs_and_repeated_ones_are_refused() -> None:
    first = results(header("a1", shard=1, shards=2))
    with pytest.raises(OpschemaError, match="not of one run"):
        merge([first, results(header("b1", shard=2, shards=2, run="other"))])
    other = msgspec.structs.replace(
        header("b1", shard=2, shards=2, run="other"), before=Version(name="~", commit="beef")
    )
    with pytest.raises(
        OpschemaError, match=r"before is `HEAD` \(commit c0ffee\) in one and `~` \(commit beef\) in another"
    ):
        merge([first, results(other)])
    other = msgspec.structs.replace(other, before=None)
    with pytest.raises(OpschemaError, match=r"the tree before is `HEAD` .* and missing in another"):
        merge([first, results(other)])
    with pytest.raises(OpschemaError, match="one is of 2 shards, another of 3"):
        merge([first, results(header("b1", shard=2, shards=3))])
    with pytest.raises(OpschemaError, match="given twice"):
        merge([first, first])


def plan(op: str, cells: int) -> Plan:
    call = Call(inputs=())
    return Plan(
        op=op,
        target=Target(root=".", module="m", name=op),
        cells=tuple(Cell(op=op, row="r", dtype="float32", seed=number, call=call) for number in range(cells)),
    )


def test_shards_are_whole_ops_and_together_all_of_them() -> None:
    plans = [plan("A", 5), plan("B", 1), plan("C", 4), plan("D", 0)]
    for count in (1, 2, 3, 7):
        shards = [shard_of(plans, number, count) for number in range(1, count + 1)]
        assert sorted(item.op for shard in shards for item in shard) == ["A", "B", "C", "D"]
    assert [item.op for item in shard_of(plans, 1, 2)] == ["A", "D"]
    assert shard_of(list(reversed(plans)), 1, 2) == [plans[3], plans[0]]


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "a/b", "-1/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(OpschemaError, match="is not a shard"):
        parse_shard(text)


def test_a_run_is_known_by_its_cells_and_sides() -> None:
    plans = [plan("A", 2)]
    other = [msgspec.structs.replace(plans[0], cells=plans[0].cells[:1])]
    keys = [
        run_key(plans, HEAD, HERE, {}),
        run_key(other, HEAD, HERE, {}),
        run_key(plans, HERE, HERE, {}),
        run_key(plans, HEAD, HEAD, {}),
        run_key(plans, None, HERE, {}),
        run_key(plans, HEAD, HERE, {"A": "B"}),
    ]
    assert len(set(keys)) == len(keys)


def test_a_tree_is_known_however_it_is_called() -> None:
    named = Version(name="v1.2", commit=HEAD.commit)
    assert run_key([plan("A", 2)], HEAD, HERE, {}) == run_key([plan("A", 2)], named, HERE, {})


def test_a_finding_is_reported_once() -> None:
    def found(check: str, side: str) -> Finding:
        return Finding(check=check, side=side, message="`y` is off")

    both = msgspec.structs.replace(result("a1"), findings=(found("poison", "before"), found("poison", "after")))
    assert finding_lines(both) == ["before and after: poison: `y` is off"]
    said = msgspec.structs.replace(both, reason="poison: `y` is off")
    assert finding_lines(said) == []
    earlier = msgspec.structs.replace(said, findings=(found("poison", "before"), found("bits", "after")))
    assert finding_lines(earlier) == ["before: poison: `y` is off", "after: bits: `y` is off"]

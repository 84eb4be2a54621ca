"""Runs on a Ray cluster: three nodes on this machine, of which one is killed in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opschema_cli.main import run as opschema
from opschema_cli.verify.gathering import ResultOptions
from opschema_cli.verify.model import Plan, Target
from opschema_cli.verify.results import Header, Version, read_results
from opschema_cli.verify.run import Run
from tests.verify.kit import write_kit
from tests.verify.oplib import cell, write_library

OPS = ("Op", "Other", "Third")


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head and two nodes, each of one processor."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'opschema-cli[cluster]'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    room = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=room)
    cluster.others = [cluster.add_node(**room) for _ in range(2)]
    yield cluster
    cluster.shutdown()


def run_of(folder: Path) -> Run:
    """Ten cells of each of three ops."""
    target = Target(root=str(write_library(folder / "lib", folder / "log")), module="lib", name="Op")
    cells = {op: tuple(cell(f"r{number}", op=op) for number in range(10)) for op in OPS}
    plans = tuple(Plan(op=op, target=target, cells=found) for op, found in cells.items())
    names = tuple(item.id for plan in plans for item in plan.cells)
    header = Header(
        run=f"cluster-{folder.name}",
        shard=1,
        shards=1,
        total=len(names),
        before=None,
        after=Version(name="."),
        device="cpu-sim",
        cells=names,
    )
    return Run(header=header, plans=plans, compared=False, folder=str(folder))


def complaints(text: str) -> list[str]:
    """The lines on standard error other than those that a slow machine has for progress."""
    return [line for line in text.splitlines() if not line.startswith("opschema: verifying: ")]


def test_a_node_that_is_lost_costs_no_cell(nodes: Any, tmp_path: Path) -> None:
    from opschema_cli.verify.cluster import connected
    from opschema_cli.verify.cluster_node import shared_folder

    run = run_of(tmp_path)
    seen: list[int] = []

    def progress(done: int, total: int, op: str) -> None:
        seen.append(done)
        if done == 4:
            for node in nodes.others:
                nodes.remove_node(node, allow_graceful=False)

    with connected(nodes.address) as cluster:
        results, again = cluster.run_cells(run, options=ResultOptions(tmp_path / "results.jsonl", progress=progress))
    assert (results.missing, results.errors) == ([], [])
    assert list(results.cells) == list(run.header.cells)
    assert again
    assert seen == list(range(1, 31)), "each cell is reported once"
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 30
    assert read_results(tmp_path / "results.jsonl").cells == results.cells
    assert not shared_folder(run).exists()


def test_the_command_compares_two_trees(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = write_kit(tmp_path / "before"), write_kit(tmp_path / "after")
    wrong = after / "kit/times.py"
    wrong.write_text(wrong.read_text().replace("x * self.amount", "x + self.amount"))
    monkeypatch.chdir(after)
    arguments = ["--before", str(before), "--device", "cpu", "--cells", "4", "--output-format", "json"]
    here = opschema(["verify", *arguments])
    first = capsys.readouterr()
    assert complaints(first.err) == []
    alone = json.loads(first.out)
    there = opschema(["verify", "--ray", nodes.address, *arguments])
    said = capsys.readouterr()
    assert complaints(said.err) == []
    told = json.loads(said.out)
    assert here == there == 1
    verdicts = [{item["id"]: item["verdict"] for item in found["cells"]} for found in (alone, told)]
    assert verdicts[0] == verdicts[1]
    assert set(verdicts[0].values()) >= {"unchanged", "regression"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "2"], "--jobs does not go with --ray"),
        (["--junit", "x.xml"], "--junit does not go with --ray"),
    ],
)
def test_what_does_not_go_with_a_cluster(
    tmp_path: Path,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(write_kit(tmp_path))
    assert opschema(["verify", "--ray", "auto", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("address", ["ray://localhost:10001", "127.0.0.1:1"])
def test_where_there_is_no_cluster(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'opschema-cli[cluster]'")
    monkeypatch.chdir(write_kit(tmp_path))
    assert opschema(["verify", "--ray", address]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "on a node" in said if address.startswith("ray:") else f"there is no Ray cluster at `{address}`" in said

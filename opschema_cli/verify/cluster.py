"""Runs a run on a Ray cluster.

Every op is checked by one actor, which runs all its sides on one node: they are compared bit by bit, so they need the same
device, and their tensors stay where they are. An actor takes one op after the other. Trees travel once to each node. Results
come back cell by cell; if a node is lost, the ops that it was checking are checked again elsewhere, and cells that already have a
result keep it.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from opschema_cli.errors import OpschemaError, install_command
from opschema_cli.verify.cluster_node import Checker, Report, Versions, forget, versions
from opschema_cli.verify.gathering import Gathering, ResultOptions
from opschema_cli.verify.parcels import pack, roots
from opschema_cli.verify.prepare import Device, device_label
from opschema_cli.verify.results import Results
from opschema_cli.verify.run import CPU_LABEL, Run, unplanned

MAX_LOSSES = 3
"""Nodes that may be lost while they check one op; after that its cells have no result."""

_POLL = 0.5
"""Seconds between two polls for results."""

_PATIENCE = 10.0
"""Seconds for processes on the nodes to end."""


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the cluster at an address; ``auto`` is the one that this machine belongs to.

    Raises:
        OpschemaError: there is none, or a node lacks this version of opschema.
    """
    if address.startswith("ray://"):
        raise OpschemaError(
            "--ray takes the address of a cluster that this machine belongs to, not of a Ray client; start the command on a node,"
            " for example with `ray job submit -- opschema verify --ray auto`"
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except (OSError, ValueError, RuntimeError) as error:
        raise OpschemaError(f"there is no Ray cluster at `{address}`: {error}") from None
    try:
        cluster = Cluster()
        cluster.check_versions()
        yield cluster
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Connect to an address: Ray itself tries for minutes.

    Raises:
        OSError: nothing answers there.
    """
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


class Cluster:
    """A cluster to which this process is connected."""

    def check_versions(self) -> None:
        """Check that every node has the same opschema and torch as this machine.

        Raises:
            OpschemaError: it names the node and both versions.
        """
        here = versions()
        for node, found in self._on_each_node(versions).items():
            if isinstance(found, Exception):
                reason = str(getattr(found, "cause", None) or found).strip().splitlines()[-1]
                hint = install_command("cluster")
                raise OpschemaError(f"the node {node} of the cluster cannot run opschema: {reason}; there: {hint}")
            if found != here:
                raise OpschemaError(f"the node {node} of the cluster has {_named(found)}, this machine {_named(here)}")

    def device(self, asked: Device, share: float) -> str:
        """Return the label of the device for cells: a GPU if the cluster has one, unless the CPU is requested.

        Raises:
            OpschemaError: a GPU is asked for, and the cluster has none.
        """
        if asked == "cpu" or (asked == "auto" and not self._total("GPU")):
            return CPU_LABEL
        if not self._total("GPU"):
            raise OpschemaError("no node of the cluster has a GPU; --device cpu runs on the CPU")
        label: str = ray.get(ray.remote(device_label).options(num_gpus=share).remote("cuda"))
        return label

    def run_cells(
        self,
        run: Run,
        *,
        share: float = 1.0,
        options: ResultOptions | None = None,
    ) -> tuple[Results, list[str]]:
        """Run all cells. Cells without a result are missing in the returned results. ``share`` is the part of a GPU for one op.

        The second value names the ops that were checked again, since their node was lost.

        Raises:
            OpschemaError: a tree cannot be sent, the recipes cannot be read, or the results not be written.
            KeyboardInterrupt: the run was stopped.
        """
        gathering = Gathering(run, options or ResultOptions())
        driver = _Driver(gathering, self._slots(run, share), share)
        try:
            driver.run()
        finally:
            driver.close()
            gathering.close()
            self._on_each_node(forget, run)
        return gathering.settled(), driver.checked_again

    def _slots(self, run: Run, share: float) -> int:
        """The number of ops that the cluster can check at a time."""
        room = self._total("GPU") / share if run.device == "cuda" else self._total("CPU")
        return max(1, min(int(room), len(run.plans)))

    def _total(self, resource: str) -> float:
        return float(ray.cluster_resources().get(resource, 0.0))

    def _on_each_node(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """The results of a function on every node, by its name; an exception where it raised."""
        found: dict[str, Any] = {}
        waiting = {}
        for node in ray.nodes():
            if node["Alive"]:
                here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                remote = ray.remote(function).options(num_cpus=0, max_retries=0, scheduling_strategy=here)
                waiting[remote.remote(*arguments)] = f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"
        ready, late = ray.wait(list(waiting), num_returns=len(waiting), timeout=_PATIENCE * 6)
        for reference in ready:
            try:
                found[waiting[reference]] = ray.get(reference)
            except exceptions.RayError as error:
                found[waiting[reference]] = error
        return {**found, **{waiting[item]: OpschemaError("it does not answer") for item in late}}


def _named(found: Versions) -> str:
    return f"opschema {found.opschema} with torch {found.torch}"


class _Driver:
    """Gives ops to actors and takes their reports."""

    def __init__(self, gathering: Gathering, slots: int, share: float) -> None:
        run = gathering.run
        self._gathering, self._results = gathering, gathering.results
        self.checked_again: list[str] = []
        self._run, self._slots = run, slots
        device: Device = "cuda" if run.device == "cuda" else "cpu"
        places = roots(run)
        parcels = [ray.put(pack(Path(place))) for place in places]
        self._arguments = (ray.put(run), device, places, *parcels)
        needs = {"num_gpus": share, "num_cpus": 0} if device == "cuda" else {"num_cpus": 1}
        self._actor = ray.remote(Checker).options(max_restarts=0, max_concurrency=2, **needs)
        order = sorted(range(len(run.plans)), key=lambda index: -len(run.plans[index].cells))
        self._waiting = deque(index for index in order if run.plans[index].cells)
        self._losses: Counter[int] = Counter()
        self._busy: dict[Any, tuple[Any, int]] = {}
        self._idle: list[Any] = []

    def run(self) -> None:
        """Check all ops."""
        for plan in self._run.plans:
            for result in unplanned(plan, self._run.header.device):
                self._take(Report(result.id, result))
        while (self._waiting or self._busy) and not self._gathering.stopped:
            while self._waiting and len(self._busy) < self._slots:
                self._start(self._waiting.popleft())
            ready, _ = ray.wait(list(self._busy), num_returns=1, timeout=_POLL)
            for stream in ready:
                self._follow(stream)

    def close(self) -> None:
        """End all actors, with the processes that they have started."""
        self._end([*self._idle, *(actor for actor, _ in self._busy.values())])

    def _end(self, actors: Sequence[Any]) -> None:
        with suppress(exceptions.RayError):
            closing = [actor.close.remote() for actor in actors]
            if closing:
                ray.wait(closing, num_returns=len(closing), timeout=_PATIENCE)
        for actor in actors:
            ray.kill(actor)

    def _start(self, index: int) -> None:
        actor = self._idle.pop() if self._idle else self._actor.remote(*self._arguments)
        stream = actor.check.options(num_returns="streaming").remote(index)
        self._busy[stream] = actor, index

    def _follow(self, stream: Any) -> None:
        """Take the next report of an op."""
        actor, index = self._busy[stream]
        op = self._run.plans[index].op
        try:
            self._take(msgspec.msgpack.decode(ray.get(next(stream)), type=Report))
        except StopIteration:
            del self._busy[stream]
            self._done(actor)
        except (exceptions.ActorDiedError, exceptions.ActorUnavailableError, exceptions.ObjectLostError) as error:
            del self._busy[stream]
            self._lost(index, op, error)
        except exceptions.RayTaskError as error:
            del self._busy[stream]
            self._done(actor)
            self._results.errors.append(f"{op}: the harness failed on the cluster: {error.cause}")

    def _done(self, actor: Any) -> None:
        """Keep an actor for another op, or end it if none is waiting, since a new actor may need its slot."""
        if self._waiting:
            self._idle.append(actor)
        else:
            self._end([actor])

    def _lost(self, index: int, op: str, error: Exception) -> None:
        """Have an op checked again whose node was lost."""
        self._losses[index] += 1
        if self._losses[index] < MAX_LOSSES:
            self._waiting.append(index)
            self.checked_again.append(op)
        else:
            reason = str(error).strip().splitlines()[0]
            self._results.errors.append(
                f"{op}: {MAX_LOSSES} nodes of the cluster were lost while they checked it: {reason}"
            )

    def _take(self, report: Report) -> None:
        if report.error:
            self._results.errors.append(f"{report.cell}: {report.error}")
        if report.result is not None and report.cell not in self._results.cells:
            self._gathering.take(report.result)

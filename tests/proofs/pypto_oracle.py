"""What descriptions of programs promise, against what their orchestrations do when they run, without a device.

Python executes the description; :mod:`tests.proofs.pypto_runs` builds the orchestration with a stand-in for simpler's headers, and
runs it. Probes and levels:

- ``PATH``: the description is executed. The result is all that it says but names, signatures and the function.
- ``PATH names``: the result is the names of the kernels, in order.
- ``PATH orchestration``: *refused* where it cannot be built or has no such function. The result is what it submits.
- ``PATH task KERNELS PAYLOAD``: *wrong* where the longest signature of the task's kernels leaves a tensor out or says otherwise
  than the task does; *refused* where the runtime refuses the task.
- ``PATH tensor INDEX``: *wrong* where a task reads a tensor of the orchestration that was neither copied to the device nor written,
  or where what was written is not copied back. The result is whose data the host has in the end.
- ``PATH ENTRY PARAMETER``: see :mod:`tests.proofs.pypto_specs`.

Run as a module it reads workspaces (JSON, texts by path) from stdin and answers a line each; its argument is a folder for builds.
"""

from __future__ import annotations

import enum
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs.processes import failure, observe_with, serve
from tests.proofs.pypto_runs import RefusedError, Submitted, Used, runs
from tests.proofs.pypto_specs import entries


class ArgDirection(enum.IntEnum):
    """The directions of simpler's `arg_direction.h`."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle."""
    with tempfile.TemporaryDirectory() as cache:
        return observe_with(__file__, workspaces, cache)


def examine(root: Path, files: Mapping[str, str]) -> dict[str, Seen]:
    """The outcomes of one workspace."""
    module = ModuleType("simpler.task_interface")
    vars(module)["ArgDirection"] = ArgDirection
    sys.modules |= {"simpler": ModuleType("simpler"), "simpler.task_interface": module}
    os.chdir(root)
    found: dict[str, Seen] = {}
    for path, text in files.items():
        if path.endswith("kernel_config.py"):
            found |= {f"{path}{probe}": seen for probe, seen in _described(root, root / path)}
        elif path.endswith(".py") and "TensorSpec" in text:
            found |= {f"{path}{probe}": seen for probe, seen in entries(root / path)}
    return found


def _described(root: Path, path: Path) -> Iterator[tuple[str, Seen]]:
    try:
        config = runpy.run_path(str(path))
    except Exception as error:
        yield "", failure(error)
        return
    orchestration, kernels = config["ORCHESTRATION"], config["KERNELS"]
    plain = [{key: value for key, value in item.items() if key not in ("name", "signature")} for item in kernels]
    said = f"{plain} {orchestration['source']} {config.get('RUNTIME_CONFIG')}".replace(str(root), "")
    yield "", Seen("right", result=said)
    yield " names", Seen("right", result=str(sorted(str(item.get("name")) for item in kernels)))
    try:
        text = Path(orchestration["source"]).read_text(encoding="utf-8")
        ways = runs(text, orchestration["function_name"], Path(sys.argv[1]))
    except (RefusedError, OSError) as error:
        yield " orchestration", failure(error)
        return
    yield " orchestration", Seen("right", result=str(ways))
    signatures = {item["func_id"]: list(item.get("signature", ())) for item in kernels}
    for task in dict.fromkeys(task for way in ways for task in way):
        payload = ", ".join(item.kind for item in task.tensors)
        yield f" task {task.kernels} [{payload}]", _task(task, signatures)
    yield from _staged(orchestration.get("signature", ()), ways)


def _task(task: Submitted, signatures: Mapping[int, Sequence[ArgDirection]]) -> Seen:
    if task.refused:
        return Seen("refused", "a tensor is added behind a scalar")
    lists = [signatures.get(kernel, ()) for kernel in task.kernels]
    most = max(map(len, lists), default=0)
    if most < len(task.tensors):
        return Seen("wrong", f"{len(task.tensors)} tensors, and the longest signature has {most} entries")
    for longest in (item for item in lists if len(item) == most):
        for number, (entry, used) in enumerate(zip(longest, task.tensors, strict=False)):
            if entry == ArgDirection.SCALAR or used.kind not in ("NO_DEP", entry.name):
                return Seen("wrong", f"tensor {number} is {used.kind}, and the signature says {entry.name}")
    return Seen("right")


def _staged(signature: Sequence[ArgDirection], ways: Sequence[Sequence[Submitted]]) -> Iterator[tuple[str, Seen]]:
    indices = {used.index for way in ways for task in way for used in task.tensors if used.index >= 0}
    for index in sorted(indices | set(range(len(signature)))):
        declared = signature[index] if index < len(signature) else None
        seen = [_tensor(declared, [use for task in way for use in task.tensors if use.index == index]) for way in ways]
        wrong = [item for item in seen if item.level != "right"]
        yield f" tensor {index}", wrong[0] if wrong else Seen("right", result=str([item.result for item in seen]))


def _tensor(declared: ArgDirection | None, uses: Sequence[Used]) -> Seen:
    """What becomes of one tensor on one way."""
    if declared in (None, ArgDirection.SCALAR):
        return Seen("wrong", "no entry is for it") if uses else Seen("right", result="scalar")
    holds = "undefined" if declared == ArgDirection.OUT else "host"
    for use in uses:
        if use.kind in ("IN", "INOUT") and holds == "undefined":
            return Seen("wrong", "what is read was neither copied to the device nor written")
        if use.kind in ("OUT", "INOUT"):
            holds = "device"
    if holds == "device" and declared == ArgDirection.IN:
        return Seen("wrong", "what was written is not copied back")
    return Seen("right", result=holds)


if __name__ == "__main__":
    serve(examine)

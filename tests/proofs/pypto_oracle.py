"""Descriptions of programs, compared with the behaviour of their orchestrations at run time, without a device.

Python executes the description; :mod:`tests.proofs.pypto_runs` builds the orchestration with a stand-in for simpler's headers, and
runs it. Probes and levels:

- ``program``: the description is executed. The result is all that it says but names, signatures and the function.
- ``program names``: the result is the names of the kernels, in order.
- ``program orchestration``: *refused* where it cannot be built or has no such function. The result is what it submits.
- ``program task KERNELS PAYLOAD``: *wrong* where the longest signature of the task's kernels, or their `arg_index`, leaves a tensor
  out or says otherwise than the task does; *refused* where the runtime refuses the task.
- ``program tensor INDEX``: *wrong* where a task reads a tensor of the orchestration that was neither copied to the device nor
  written, or where what was written is not copied back. The result is whose data the host has in the end.
- ``PATH ENTRY PARAMETER``: see :mod:`tests.proofs.pypto_specs`.

Run as a module it reads workspaces (JSON, texts by path) from stdin and answers a line each; its argument is a folder for builds.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from opschema_cli.proof import Files, Observation, Seen
from tests.proofs.processes import failure, in_folder, serve
from tests.proofs.pypto_descriptions import ArgDirection, Description, description, stand_in
from tests.proofs.pypto_runs import RefusedError, Submitted, Used, runs
from tests.proofs.pypto_specs import entries
from tests.proofs.records import ask


def observe(workspaces: Sequence[Files]) -> list[Observation]:
    """The oracle."""
    return ask("tests.proofs.pypto_oracle", workspaces)


def examine(root: Path, files: Mapping[str, str], built: Path) -> dict[str, Seen]:
    """The outcomes of one workspace; the folder ``built`` has the libraries that were built for others."""
    stand_in()
    os.chdir(root)
    found: dict[str, Seen] = {}
    for path, text in files.items():
        if path.endswith("kernel_config.py") or "CALLABLE" in text:
            found |= {f"program{probe}": seen for probe, seen in _described(root, root / path, built)}
        elif path.endswith(".py") and "TensorSpec" in text:
            found |= {f"{path}{probe}": seen for probe, seen in entries(root / path)}
    return found


def _described(root: Path, path: Path, built: Path) -> Iterator[tuple[str, Seen]]:
    try:
        found = description(root, path)
    except Exception as error:
        yield "", failure(error)
        return
    yield "", Seen("right", result=found.said())
    yield " names", Seen("right", result=str(sorted(str(item.get("name")) for item in found.kernels)))
    try:
        text = Path(found.source).read_text(encoding="utf-8")
        ways = runs(text, found.function, built)
    except (RefusedError, OSError) as error:
        yield " orchestration", failure(error)
        return
    yield " orchestration", Seen("right", result=str(ways))
    for task in dict.fromkeys(task for way in ways for task in way):
        payload = ", ".join(item.kind for item in task.tensors)
        yield f" task {task.kernels} [{payload}]", _task(task, found)
    yield from _staged(found.signature, ways)


def _task(task: Submitted, found: Description) -> Seen:
    if task.refused:
        return Seen("refused", "a tensor is added behind a scalar")
    claims = found.claims(task.kernels)
    if missing := set(range(len(task.tensors))) - {number for number, _ in claims}:
        return Seen("wrong", f"no entry is for the tensors {missing} of {len(task.tensors)}")
    for number, entry in claims:
        kind = task.tensors[number].kind if number < len(task.tensors) else entry.name
        if kind not in ("NO_DEP", entry.name) or (entry == ArgDirection.SCALAR and number < len(task.tensors)):
            return Seen("wrong", f"tensor {number} is {kind}, and the signature says {entry.name}")
    return Seen("right")


def _staged(signature: Sequence[ArgDirection], ways: Sequence[Sequence[Submitted]]) -> Iterator[tuple[str, Seen]]:
    indices = {used.index for way in ways for task in way for used in task.tensors if used.index >= 0}
    for index in sorted(indices | set(range(len(signature)))):
        declared = signature[index] if index < len(signature) else None
        seen = [_tensor(declared, [use for task in way for use in task.tensors if use.index == index]) for way in ways]
        wrong = [item for item in seen if item.level != "right"]
        yield f" tensor {index}", wrong[0] if wrong else Seen("right", result=str([item.result for item in seen]))


def _tensor(declared: ArgDirection | None, uses: Sequence[Used]) -> Seen:
    """The history of one tensor on one path."""
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
    with tempfile.TemporaryDirectory() as folder:
        serve(in_folder(partial(examine, built=Path(folder))))

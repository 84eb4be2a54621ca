"""Writes the table of torch's functions: every overload is probed, and held against each shape semantics and dtype rule.

python -m benchmarks.torch_shapes            # writes opschema_cli/evaluation/tensors/torch.json
python -m benchmarks.torch_shapes NAME ...   # probes these operators, and prints what explains them
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterator

import torch

from benchmarks.torch_probing import DTYPES, Fit, Prober
from benchmarks.torch_signatures import Candidate, candidates, functions, methods
from opschema_cli.evaluation.tensors.table import TABLE

PROCESSES = 2
_LIMITS = ("bits", "min", "max", "eps", "tiny", "smallest_normal", "resolution")


def probe(operators: frozenset[str] = frozenset(), seed: int = 0) -> Iterator[tuple[Candidate, Fit | None, str]]:
    """Each overload of the operators, of all if none are given, what explains it, and else why nothing does.

    Some functions of torch end the process for arguments that make no sense, so that each overload is probed in one of its own.
    """
    torch.set_num_threads(1)
    torch.empty(2, 2, device="meta").addmm_(
        torch.empty(2, 2, device="meta"), torch.empty(2, 2, device="meta")
    )  # imports much
    waiting = [item for item in candidates() if not operators or item.operator in operators]
    running: list[tuple[Candidate, int, int]] = []
    while waiting or running:
        while waiting and len(running) < PROCESSES:
            running.append((waiting[0], *_fork(waiting.pop(0), seed)))
        candidate, process, reader = running.pop(0)
        with open(reader, "rb") as file:
            text = file.read()
        os.waitpid(process, 0)
        fit, log = pickle.loads(text) if text else (None, "ends the process")
        yield candidate, fit, log


def _fork(candidate: Candidate, seed: int) -> tuple[int, int]:
    """A process that probes an overload, and the descriptor from which its answer can be read."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    # oneDNN takes tensors of two dtypes for some convolutions where the processor has instructions for them.
    torch.backends.mkldnn.set_flags(False)
    prober = Prober(candidate, seed)
    try:
        answer = pickle.dumps((prober.fit(), prober.log))
        with open(writer, "wb") as file:
            file.write(answer)
    finally:
        os._exit(0)


def promotion() -> list[str]:
    """The promotion of each dtype with each other one, as maps."""
    return ["".join(_promoted(first, second) for second in DTYPES) for first in DTYPES]


def _promoted(first: str, second: str) -> str:
    try:
        found = torch.promote_types(getattr(torch, first), getattr(torch, second))
    except RuntimeError:
        return "-"
    return chr(ord("A") + DTYPES.index(str(found).removeprefix("torch.")))


def aliases() -> dict[str, str]:
    """Names of dtypes and the main name of each."""
    found = {
        name: str(value).removeprefix("torch.") for name, value in vars(torch).items() if isinstance(value, torch.dtype)
    }
    return dict(sorted(found.items()))


def limits() -> dict[str, dict[str, int | float]]:
    """The attributes of ``torch.finfo`` or ``torch.iinfo`` of each dtype that has them."""
    found = {name: _limits(getattr(torch, name)) for name in DTYPES}
    return {name: values for name, values in found.items() if values}


def _limits(dtype: torch.dtype) -> dict[str, int | float]:
    for kind in (torch.iinfo, torch.finfo):
        try:
            info = kind(dtype)
            return {name: getattr(info, name) for name in _LIMITS if hasattr(info, name)}
        except (TypeError, RuntimeError):
            continue
    return {}


def table(found: list[tuple[Candidate, Fit]]) -> dict[str, object]:
    """The table as JSON."""
    maps = sorted({item for _, fit in found for item in fit.maps})
    signatures = sorted({candidate.signature for candidate, _ in found})
    operators: dict[str, list[object]] = {}
    for candidate, fit in found:
        row = [signatures.index(candidate.signature), fit.shape, fit.dtype, [maps.index(item) for item in fit.maps]]
        operators.setdefault(candidate.operator, []).append(row)
    return {
        "torch": torch.__version__.partition("+")[0],
        "dtypes": DTYPES,
        "aliases": aliases(),
        "promotion": promotion(),
        "maps": maps,
        "signatures": signatures,
        "functions": " ".join(
            sorted(
                f"{name}={operator}" if name != operator else name
                for name, operator in functions().items()
                if operator in operators
            )
        ),
        "methods": " ".join(name for name in methods() if name in operators),
        "operators": dict(sorted(operators.items())),
        "limits": limits(),
    }


def main() -> None:
    """Write the table, or print what explains some operators."""
    found: list[tuple[Candidate, Fit]] = []
    if not TABLE.exists():
        _write(found)  # the probes need the promotion of dtypes
    for candidate, fit, log in probe(frozenset(sys.argv[1:])):
        if fit is not None:
            found.append((candidate, fit))
        if fit is None or len(sys.argv) > 1:
            print(candidate.operator, "|", candidate.signature, "|", *(fit or (log,)), flush=True)
    print(len(found), "overloads of", len({item.operator for item, _ in found}), "operators")
    if len(sys.argv) == 1:
        _write(found)


def _write(found: list[tuple[Candidate, Fit]]) -> None:
    text = json.dumps(table(found), separators=(",", ":"))
    TABLE.write_text(text.replace('"],"', '"],\n"').replace("]],", "]],\n") + "\n")


if __name__ == "__main__":
    main()

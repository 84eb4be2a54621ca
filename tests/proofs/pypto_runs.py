"""Builds an orchestration with `pypto_recorder.h`, runs it, and reads what it submitted."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import msgspec

RECORDER = Path(__file__).with_name("pypto_recorder.h")

MAX_CHOICES = 4
"""Most names without a declaration, each a condition that is taken both ways."""

_UNDECLARED = re.compile(r"error: .(\w+). was not declared in this scope")
_COMMAND = ["g++", "-std=c++17", "-O0", "-fPIC", "-shared", "-Wl,-z,defs", "-w"]


class Used(msgspec.Struct, frozen=True):
    """A tensor of a task: how it is added, and which of the orchestration's own it is; -1 for one of another's making."""

    kind: str
    index: int


class Submitted(msgspec.Struct, frozen=True):
    """A task that was submitted: its kernels and tensors, and whether the runtime refuses it."""

    kernels: tuple[int, ...]
    tensors: tuple[Used, ...]
    refused: bool


class RefusedError(Exception):
    """The orchestration cannot be built, or has no such function."""


def runs(text: str, function: str, cache: Path) -> list[list[Submitted]]:
    """What the orchestration submits, once for each way through the conditions that nothing declares.

    Raises:
        RefusedError: it cannot be built, or has no such function.
    """
    library, choices = _built(text, cache)
    loaded = ctypes.CDLL(str(library))
    try:
        entry = loaded[function]
    except AttributeError as error:
        raise RefusedError(f"undefined symbol: {function}") from error
    loaded.opschema_args.restype = ctypes.c_void_p
    loaded.opschema_recorded.restype = ctypes.c_char_p
    found = []
    for bits in range(2**choices):
        entry(ctypes.c_void_p(loaded.opschema_args(ctypes.c_uint(bits))))
        found.append([_submitted(line) for line in loaded.opschema_recorded().decode().splitlines()])
    return found


def _built(text: str, cache: Path) -> tuple[Path, int]:
    """The orchestration as a library, which lies in the cache if a text like it was built before, and its choices."""
    target = cache / hashlib.sha256(text.encode()).hexdigest()
    library, told = target / "main.so", target / "choices"
    if not told.exists():
        target.mkdir(exist_ok=True)
        shutil.copy(RECORDER, target / "pto_orchestration_api.h")
        (target / "main.cpp").write_text(text, encoding="utf-8")
        told.write_text(_compile(target / "main.cpp", library))
    said = told.read_text()
    if not said.isdigit():
        raise RefusedError(said)
    return library, int(said)


def _compile(source: Path, library: Path) -> str:
    """The number of choices, or what g++ complains of."""
    names: list[str] = []
    while True:
        defined = [f"-D{name}=opschema_choice({number})" for number, name in enumerate(names)]
        done = subprocess.run(
            [*_COMMAND, *defined, str(source), "-o", str(library)], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return str(len(names))
        more = [name for name in dict.fromkeys(_UNDECLARED.findall(done.stderr)) if name not in names]
        names += more
        if not more or len(names) > MAX_CHOICES:
            return "g++: " + next((line for line in done.stderr.splitlines() if "error" in line), "failed")


def _submitted(line: str) -> Submitted:
    head, _, tail = line.partition(" |")
    word, *kernels = head.split()
    pairs = (item.split(":") for item in tail.split())
    tensors = tuple(Used(kind, int(index)) for kind, index in pairs)
    return Submitted(tuple(map(int, kernels)), tensors, word == "refused")

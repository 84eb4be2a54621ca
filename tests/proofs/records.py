"""Recorded answers of oracles, so that a test run starts an oracle only for workspaces without a recorded answer.

An answer is recorded under a digest of everything it depends on: the workspace, the oracle's arguments and sources, and the
versions of Python, torch and g++. If any of them changes, such as a file that a fix writes, the oracle runs again. With
``OPSCHEMA_SLOW`` it always runs, and its answers are compared with the records. ``make records`` writes the records.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

from opschema_cli.proof import Files, Level, Observation, Seen

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("answers")
WRITTEN, ALL_ANEW = bool(os.environ.get("OPSCHEMA_RECORD")), bool(os.environ.get("OPSCHEMA_SLOW"))

Answer = dict[str, Seen]


def ask(module: str, workspaces: Sequence[Files], *arguments: str) -> list[Observation]:
    """The answers of an oracle: a module that calls :func:`tests.proofs.processes.serve` when it is run, or works like it.

    Recorded answers are used without running the oracle. Windows line endings are converted first, so that texts that differ only
    in them share an answer: Python, YAML and C++ treat both kinds alike.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
        subprocess.TimeoutExpired: the oracle takes longer than 20 minutes.
    """
    texts = [
        msgspec.json.encode({path: text.replace("\r\n", "\n") for path, text in files.items()}) for files in workspaces
    ]
    kept = Records(module, arguments)
    known = kept.answers(texts)
    unknown = [text for text in dict.fromkeys(texts) if text not in known]
    if unknown and kept.is_used:
        warnings.warn(
            f"{module} runs for {len(unknown)} workspaces without a recorded answer; `make records` records them",
            stacklevel=2,
        )
    asked = dict(zip(unknown, _ask(module, unknown, arguments), strict=True)) if unknown else {}
    kept.compare(asked.items())
    answers = known | asked
    return [answers[text] for text in texts]


def _ask(module: str, texts: Sequence[bytes], arguments: Sequence[str]) -> list[dict[str, Seen]]:
    """Run an oracle on some workspaces."""
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        input=b"[" + b",".join(texts) + b"]",
        stdout=subprocess.PIPE,
        check=True,
        timeout=1200,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return [msgspec.json.decode(line, type=dict[str, Seen]) for line in done.stdout.splitlines()]


class Records:
    """The recorded answers of an oracle, a module of the tests, with some arguments.

    Nothing is recorded if an argument is a path outside the repository.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._path = FOLDER / f"{module.rpartition('.')[2]}.jsonl"
        self._asked = msgspec.json.encode([*_releases(), *_sources(module), *arguments])
        self._kept = all(argument.startswith("--") for argument in arguments)
        self._known = {} if WRITTEN or not self._kept else _read(self._path)

    @property
    def is_used(self) -> bool:
        """Whether this run uses recorded answers, and answers with these arguments are recorded."""
        return self._kept and not (ALL_ANEW or WRITTEN)

    def answers(self, texts: Iterable[bytes]) -> dict[bytes, Answer]:
        """The recorded answers for some workspaces; empty if the oracle must run for all of them."""
        if ALL_ANEW:
            return {}
        found = ((text, self._known.get(self._key(text))) for text in texts)
        return {text: answer for text, answer in found if answer is not None}

    def compare(self, answers: Iterable[tuple[bytes, Answer]]) -> None:
        """Compare new answers with the recorded ones; with ``OPSCHEMA_RECORD``, write them.

        Raises:
            AssertionError: an answer has changed, although nothing that it depends on has.
        """
        new = {self._key(text): answer for text, answer in answers}
        for key, answer in new.items():
            kept = self._known.get(key)
            assert kept is None or _outcomes(kept) == _outcomes(answer), f"the record {key} in {self._path} is wrong"
        if WRITTEN and self._kept:
            FOLDER.mkdir(exist_ok=True)
            lines = [
                msgspec.json.encode((key, _short(item))) for key, item in sorted((_read(self._path) | new).items())
            ]
            self._path.write_bytes(b"".join(line + b"\n" for line in lines))

    def _key(self, text: bytes) -> str:
        return hashlib.sha256(self._asked + text).hexdigest()[:24]


def _outcomes(answer: Answer) -> dict[str, tuple[str, str]]:
    """An answer without its messages, which may contain paths and addresses."""
    return {probe: (seen.level, seen.result) for probe, seen in answer.items()}


Short = str | tuple[Level, str, str]
"""The outcome of a probe; only the result if the outcome is right and has no message."""


def _short(answer: Answer) -> dict[str, Short]:
    return {
        probe: seen.result if seen == Seen("right", result=seen.result) else (seen.level, seen.message, seen.result)
        for probe, seen in answer.items()
    }


def _read(path: Path) -> dict[str, Answer]:
    lines = path.read_bytes().splitlines() if path.is_file() else ()
    found = (msgspec.json.decode(line, type=tuple[str, dict[str, Short]]) for line in lines)
    return {
        key: {probe: Seen("right", result=it) if isinstance(it, str) else Seen(*it) for probe, it in short.items()}
        for key, short in found
    }


@cache
def _releases() -> tuple[str, ...]:
    try:
        compiler = subprocess.run(["g++", "-dumpfullversion", "-dumpmachine"], capture_output=True, text=True).stdout
    except OSError:
        compiler = ""
    return platform.python_version(), version("torch"), compiler


@cache
def _sources(module: str) -> tuple[str, ...]:
    """The code of a module, of all modules of the tests and packs that it imports, and of the C++ headers beside it."""
    found = {path.name: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.h")}
    names = [module]
    while names:
        name = names.pop()
        path = _path(name)
        if name not in found and name != __name__ and path is not None:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names += _imported(tree)
            found[name] = ast.dump(_without_docstrings(tree))
    return tuple(text for _, text in sorted(found.items()))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """The same tree without docstrings and other statements that are only a string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [item for item in node.body if not _is_string(item)]
    return tree


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _path(name: str) -> Path | None:
    first = name.partition(".")[0]
    if first not in ("tests", "opschema_rules"):
        return None
    path = (ROOT / "rules" if first == "opschema_rules" else ROOT).joinpath(*name.split(".")).with_suffix(".py")
    return path if path.is_file() else None


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{item.name}" for item in node.names))

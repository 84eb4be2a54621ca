"""What the real decorator, from a checkout, and torch make of modules with ops: what is refused, and how calls go wrong.

The process is one of its own (``python -m tests.rules.magi.oracle CHECKOUT``); cases are tried as torchlib's oracle tries
them. ``same("f", ...)`` calls the op ``f`` and the function under its decorator, and raises when they give other values.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.rules.magi.real_magi import _import_decorator, _install
from tests.rules.torchlib.oracle import Case, Fault, _answers, _warm

ROOT = Path(__file__).parents[3]


def judge(checkout: Path, cases: Sequence[Case]) -> dict[str, list[Fault]]:
    """The faults of each case by its name.

    Raises:
        subprocess.CalledProcessError: the oracle itself fails.
    """
    paths = os.pathsep.join([str(ROOT), *sys.path])
    command = [sys.executable, "-m", "tests.rules.magi.oracle", str(checkout)]
    done = subprocess.run(
        command,
        input=msgspec.json.encode(list(cases)),
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
    )
    return dict(msgspec.json.decode(line, type=tuple[str, list[Fault]]) for line in done.stdout.splitlines())


class Registry:
    """The decorator, with the functions it was given; with ``quiet`` it files what it raises instead."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real = real
        self.functions: dict[str, Callable[..., Any]] = {}
        self.ops: dict[str, Any] = {}
        self.errors: dict[str, str] = {}

    def loud(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """The decorator; it raises as the real one does."""

        def decorate(function: Callable[..., Any]) -> Any:
            self.functions[function.__name__] = function
            self.ops[function.__name__] = self.real(*args, **kwargs)(function)
            return self.ops[function.__name__]

        return decorate

    def quiet(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """The decorator for modules whose every op is to be tried."""

        def decorate(function: Callable[..., Any]) -> Any:
            try:
                self.real(*args, **kwargs)(function)
            except (Exception, RecursionError) as error:
                self.errors[function.__name__] = f"{type(error).__name__}: {str(error).strip()[:120]}"
            return function

        return decorate

    def same(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The result of the op. Raises an error if the function returns something else."""
        given = self.ops[name](*args, **kwargs)
        wanted = self.functions[name](*args, **kwargs)
        for one, other in zip(_flat(given), _flat(wanted), strict=True):
            assert one.equal(other), f"another value: {one} instead of {other}"
        return given

    def all_registered(self) -> None:
        """Raises with the names of the ops that were refused."""
        refused = " ".join(sorted(self.errors))
        self.errors.clear()
        assert not refused, f"refused {refused}"


def _flat(value: Any) -> Iterator[Any]:
    yield from value if isinstance(value, tuple | list) else [value]


def _main(checkout: Path) -> None:
    cases = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Case])
    _warm()
    registry = Registry(_import_decorator(checkout)._magi_register_custom_op_impl)
    _install("magi_compiler.api", magi_register_custom_op=registry.loud)
    _install("quiet_magi", magi_register_custom_op=registry.quiet, all_registered=registry.all_registered)
    _install("magi_oracle", same=registry.same)
    for answer in _answers(cases):
        sys.stdout.buffer.write(answer + b"\n")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))

"""MagiCompiler's decorator for the evaluator, whichever wrapper, partial or alias calls it, and values that no schema holds."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.evaluation.calls import applied
from opschema_cli.evaluation.dialect import Dialect
from opschema_cli.evaluation.evaluator import Evaluator, ExternalCall
from opschema_cli.evaluation.values import Arguments, ExternalName, Func, PackValue, Value
from opschema_rules.magi.detection import MARK

PARAMETERS = (
    "name", "mutates_args", "infer_output_meta_fn", "setup_context_fn", "backward_fn", "is_compute_sensitive",
    "is_subgraph_boundary",
)  # fmt: skip
"""The decorator's parameters, in order."""

_REGISTRARS = frozenset({MARK, f"_{MARK}_impl"})


class Decorator(PackValue, frozen=True):
    """The value of ``magi_register_custom_op(...)``."""

    arguments: Arguments


class Made(PackValue, frozen=True):
    """An op: the decorator applied to a function."""

    decorator: Decorator
    function: Value


class TorchValue(PackValue, frozen=True):
    """A result that is not a constant: a device, as written in ``text``; with an empty text, anything else."""

    text: str = ""


_MAKERS = frozenset(
    {f"torch.{name}" for name in ("zeros", "ones", "empty", "tensor", "full", "rand", "randn")}
    | {"bytes", "bytearray", "complex", "object"}
)


def _calls(name: str) -> ExternalCall | None:
    package, _, rest = name.partition(".")
    if package == "magi_compiler" and rest.rpartition(".")[2] in _REGISTRARS:
        return _decorator
    return _device if name == "torch.device" else _other if name in _MAKERS else None


def _device(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield TorchValue(" ".join(arguments.frame.body.file.text(arguments.call).split()))


def _other(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield TorchValue()


def _decorator(evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Decorator(arguments)


@applied.register(Decorator)
def _applied(callee: Decorator, evaluator: Evaluator, arguments: Arguments) -> Iterator[Value]:
    yield Made(callee, evaluator.decorated(arguments))


MAGI = Dialect(calls=_calls, reads_own=True)


def is_registrar(evaluator: Evaluator, value: Value) -> bool:
    """Whether a value is MagiCompiler's decorator, without a call."""
    name = value.name if isinstance(value, ExternalName) else ""
    if isinstance(value, Func) and value.body.parent is not None and value.body.function is not None:
        name = evaluator.qualified_name(value.body)
    return _calls(name) is _decorator

"""Calls of operators in interpreted code: each returns the result of the operator's fake, or of its own function."""

from __future__ import annotations

from collections.abc import Callable

from opschema_cli.evaluation.execution.dialect import NOT_KNOWN, Call, Caller, ExecutionDialect, ExternalFunction
from opschema_cli.evaluation.execution.values import Closure, Native, Opaque
from opschema_cli.source.bodies import Body

_DEFINING = frozenset({"torch.library.custom_op", "torch.library.triton_op"})
_FAKES = frozenset({"torch.library.register_fake", "torch.library.impl_abstract"})
_OTHERS = frozenset(
    f"torch.library.{name}"
    for name in ("register_kernel", "register_autograd", "register_vmap", "impl", "opaque_object")
)
_METHODS = frozenset({"register_kernel", "register_autograd", "register_vmap", "register_autocast"})


class OperatorHandle(Native, frozen=True, eq=False):
    """The value of a function under ``custom_op``; ``fakes`` are those that the interpreted code has registered for it."""

    fakes: list[object]


class FakeCalls:
    """Operators by their fakes: those that ``fake_of`` finds by name, and those that the interpreted code registers itself.

    ``used`` are the fakes that were called. With ``eager``, a call returns what the operator's own function returns instead; the
    result is not known where the interpreted code does not pass that to ``custom_op``. ``called`` are then the operators that
    were called outside others, by their names.
    """

    def __init__(self, fake_of: Callable[[str], Body | None], *, eager: bool = False) -> None:
        self.fake_of = fake_of
        self.eager = eager
        self.used: list[Body] = []
        self.called: set[str] = set()
        self._inside = False
        self._made: dict[str, OperatorHandle] = {}
        self.dialect = ExecutionDialect(functions=self._function, attribute=self._attribute)

    def clear(self) -> None:
        """Forget the operators that code has made, and the fakes that were called."""
        self.used.clear()
        self.called.clear()
        self._inside = False
        self._made.clear()

    # Definitions

    def _function(self, name: str) -> ExternalFunction | None:
        if name in _DEFINING:
            return self._define
        if name in _FAKES:
            return self._register
        if name in _OTHERS:
            return lambda call: call.positional[-1] if isinstance(call.positional[-1:], Closure) else _RETURNING
        return self.operator(name)

    def operator(self, name: str) -> ExternalFunction | None:
        """The function that computes calls of ``torch.ops.namespace.name``, if the operator has a fake."""
        parts = name.split(".")
        if parts[:2] != ["torch", "ops"] or len(parts) not in (4, 5):
            return None
        operator = f"{parts[2]}::{'.'.join(parts[3:])}".removesuffix(".default")
        return (lambda call: self._call(operator, [], None, call)) if self.fake_of(operator) is not None else None

    def _define(self, call: Call) -> object:
        found = call.positional[0] if call.positional else call.keywords.get("name")
        name = found if isinstance(found, str) else ""
        if len(call.positional) > 1:
            return self._handle(name, call.positional[1])
        return Native("custom_op", lambda made: self._handle(name, made.positional[0]))

    def _handle(self, name: str, kernel: object) -> OperatorHandle:
        fakes: list[object] = []
        made = OperatorHandle(name, lambda call: self._call(name, fakes, kernel, call), fakes)
        self._made[name] = made
        return made

    def _register(self, call: Call) -> object:
        operator, *functions = call.positional or (None,)
        handle = operator if isinstance(operator, OperatorHandle) else self._made.get(str(operator))
        functions += [value for name, value in call.keywords.items() if name == "func"]
        add = _adding(handle.fakes if handle is not None else [])
        return add(Call(call.machine, tuple(functions))) if functions else Native("register_fake", add)

    def _attribute(self, machine: Caller, value: object, name: str) -> object:
        if not isinstance(value, OperatorHandle):
            return NOT_KNOWN
        if name == "register_fake":
            return Native(name, _adding(value.fakes))
        return (
            Native(name, lambda call: call.positional[-1] if call.positional else _RETURNING)
            if name in _METHODS
            else NOT_KNOWN
        )

    # Calls

    def _call(self, name: str, fakes: list[object], kernel: object, call: Call) -> object:
        if self.eager:
            return self._run(name, kernel, call)
        body = self.fake_of(name) if name and not fakes else None
        function = fakes[-1] if fakes else Closure(body) if body is not None else None
        if isinstance(function, Closure):
            self.used.append(function.body)
        if function is None:
            return call.opaque(f"the result of the operator `{name}`, which has no fake in Python")
        return call.machine.call(function, call.positional, call.keywords)

    def _run(self, name: str, kernel: object, call: Call) -> object:
        if not isinstance(kernel, Closure):
            return call.opaque(f"the result of the operator `{name}`")
        inside = self._inside
        if name and not inside:
            self.called.add(name)
        self._inside = True
        try:
            return call.machine.call(kernel, call.positional, call.keywords)
        finally:
            self._inside = inside


_RETURNING = Native("decorator", lambda call: call.positional[0] if call.positional else Opaque("a decorated function"))


def _adding(fakes: list[object]) -> Callable[[Call], object]:
    def add(call: Call) -> object:
        fakes.append(call.positional[0])
        return call.positional[0]

    return add

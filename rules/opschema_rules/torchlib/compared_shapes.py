"""Comparisons of the shapes of fakes and kernels, each kept while the files that it rests on are the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.code_values import CodeValues, Group
from opschema_cli.regular_files import content_digest
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.bodies import Bodies, Body
from opschema_rules.torchlib.model import Operator, Registration, Tree
from opschema_rules.torchlib.passing import filled, in_force, mismatches
from opschema_rules.torchlib.storage import implementations

if TYPE_CHECKING:
    from opschema_cli.evaluation.execution.executor import Executor
    from opschema_rules.torchlib.shape_runs import Finding
    from opschema_rules.torchlib.tilelang import TileLang


MOST_STEPS = 30_000
"""Maximum number of steps of one run of a fake or kernel: those that finish take fewer than 25,000 in vLLM, most of them fewer
than 500.
"""

_TRANSPARENT = frozenset({"no_grad", "inference_mode", "compile", "disable", "allow_in_graph", "cache", "lru_cache"})
_TRANSPARENT |= {"custom_op", "triton_op", "register_fake", "register_kernel", "impl", "impl_abstract"}
"""Last parts of the names of decorators that do not change a function's result."""


class Disagreement(msgspec.Struct, array_like=True):
    """A result in which a fake and a kernel differ, as text: both sides, the index of the result, and the input."""

    fake: str
    kernel: str
    result: str
    input: str


class Compared(msgspec.Struct, array_like=True):
    """A comparison: the number of inputs that both functions accept, the reason if nothing is known, and the difference if there
    is one.
    """

    taken: int
    reason: str
    difference: Disagreement | None = None


class ComparedShapes:
    """The comparisons of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        program = tree.evaluator.program
        self._known = CodeValues(tree.project, program, "torchlib shapes", Compared)
        self._executors: dict[str, tuple[Executor, TileLang]] = {}
        self._fakes = _fakes_by_name(tree)
        self._fake_names = sorted(f"{name} {_name(body)}" for name, body in self._fakes.items())

    def compared(self, schema: OperatorSchema, fake: Body, kernel: Body) -> Compared:
        """The comparison of a fake and a kernel of an operator."""
        group = self._known.group(fake.file.path)
        key = content_digest(
            f"{schema} {_place(fake)} {_place(kernel)} {self._fake_names}".encode("utf-8", "surrogatepass")
        )
        found = group.get(key)
        if found is None:
            found = self._compared(group, schema, fake, kernel)
            group.put(key, found)
        return found

    def _compared(self, group: Group[Compared], schema: OperatorSchema, fake: Body, kernel: Body) -> Compared:
        # Not at the top: most runs compare nothing, and the interpreter takes time to import.
        from opschema_rules.torchlib.shape_comparisons import compare

        executor, tilelang = self._executor(fake.file.path, group)
        fake, kernel = (_again(executor.evaluator.bodies, body) for body in (fake, kernel))
        found = compare(executor, schema, fake, kernel, tilelang)
        return Compared(found.taken, found.reason, _in_words(found.finding) if found.finding is not None else None)

    def _executor(self, path: str, group: Group[Compared]) -> tuple[Executor, TileLang]:
        """Return the executor for the fakes of one file; its program records the files that are read."""
        from opschema_cli.evaluation.execution.dialect import ExecutionDialect
        from opschema_cli.evaluation.execution.executor import Executor
        from opschema_cli.evaluation.tensors.dialect import TORCH
        from opschema_rules.torchlib.fake_calls import FakeCalls
        from opschema_rules.torchlib.tilelang import TileLang

        if path not in self._executors:
            bodies = Bodies(group.program, self._tree.bodies.paths)
            tilelang = TileLang()
            calls = FakeCalls(lambda name: _again(bodies, self._fakes[name]) if name in self._fakes else None)
            dialects = (ExecutionDialect(functions=calls.operator), TORCH, tilelang.dialect)
            self._executors[path] = Executor(self._tree.evaluator.anew(bodies), dialects, MOST_STEPS), tilelang
        return self._executors[path]


@cached_on_argument
def compared_shapes(tree: Tree) -> ComparedShapes:
    """The comparisons of a tree."""
    return ComparedShapes(tree)


def _in_words(finding: Finding) -> Disagreement:
    indices = sorted({item.index for item in finding.differences})
    result = "" if len(finding.fake) == 1 else f" as result {indices[0]}"
    fake, kernel = (_text(results[indices[0]]) for results in (finding.fake, finding.kernel))
    return Disagreement(fake, kernel, result, str(finding.input))


def _text(result: object) -> str:
    from opschema_cli.evaluation.execution.values import TensorValue

    if not isinstance(result, TensorValue):
        return "no tensor"
    sizes = ", ".join(str(size) if isinstance(size, int) else "?" for size in result.shape)
    return f"`{result.dtype or 'a tensor '}[{sizes}]`"


def _again(bodies: Bodies, body: Body) -> Body:
    """Return the same function among other bodies."""
    bodies.program.load(body.file.path)
    found = bodies.defined(body.file, body.definition) if body.definition is not None else None
    return found or body


def _fakes_by_name(tree: Tree) -> dict[str, Body]:
    """Return the fakes that are module-level functions, by the names of their operators; operators that may have another fake
    are left out.
    """
    found: dict[str, list[Body | None]] = {}
    for operator in tree.operators:
        fakes = [item.function for item in in_force(operator.of_role("fake")) if not item.conditional]
        only = fakes[0] if len(fakes) == 1 and len(operator.of_role("fake")) == 1 else None
        plain = isinstance(only, Body) and only.parent is not None and only.parent.definition is None
        for name in operator.names or ():
            found.setdefault(name, []).append(only if isinstance(only, Body) and plain else None)
    return {name: fakes[0] for name, fakes in found.items() if len(fakes) == 1 and fakes[0] is not None}


def _name(body: Body) -> str:
    return f"{body.file.path} {body.function.name if body.function is not None else ''}"


def _place(body: Body) -> str:
    start = body.definition.start if body.definition is not None else 0
    return f"{body.file.path} {start}"


# Fakes and kernels of an operator


class ComparedPair(NamedTuple):
    """A fake and a kernel of an operator, compared."""

    fake: Registration
    kernel: Body
    compared: Compared


def compared_pairs(operator: Operator) -> Iterator[ComparedPair]:
    """The fakes of an operator, each with the kernels that it can be compared with."""
    schema = operator.definition.schema
    if not isinstance(schema, OperatorSchema) or operator.definition.problems or operator.definition.errors:
        return
    kernels = list(implementations(operator))
    fakes = in_force(operator.of_role("fake"))
    if any(item.conditional for item in fakes) and (len(fakes) > 1 or len(kernels) > 1):
        return  # which of them belong together is not known
    for fake in fakes:
        for kernel, registration in kernels:
            plain = _is_plain(operator, kernel) and _is_plain(operator, fake.function)
            if isinstance(fake.function, Body) and plain and _fit(schema, fake, kernel, registration):
                compared = compared_shapes(operator.tree).compared(schema, fake.function, kernel)
                yield ComparedPair(fake, kernel, compared)


def _is_plain(operator: Operator, function: object) -> bool:
    """Whether a function has no decorators but those that register it, and some that leave its results unchanged."""
    if not isinstance(function, Body) or function.function is None:
        return False
    calls = [operator.definition.call, *(item.call for item in operator.registrations)]
    spans = {call.span for call in calls if call is not None}
    return all(
        item.span in spans or (item.callee or item.text).rpartition(".")[2] in _TRANSPARENT
        for item in function.function.decorators
    )


def _fit(schema: OperatorSchema, fake: Registration, kernel: Body, registration: Registration | None) -> bool:
    """Whether both functions take the schema's arguments, and are not one function."""
    if not isinstance(fake.function, Body) or fake.function is kernel or filled(fake):
        return False
    if registration is not None and filled(registration):
        return False
    return not mismatches(schema, fake.function.params) and not mismatches(schema, kernel.params)

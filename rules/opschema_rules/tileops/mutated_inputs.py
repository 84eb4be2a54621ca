"""Inputs that the operators of an op class write: those that it lists, those that it calls, and those of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.project import Project
from opschema_cli.source.program import ClassRef, Folded, FunctionRef, ValueRef
from opschema_cli.source.python import Expr, Function
from opschema_rules.tileops.model import Manifest, OpImplementation
from opschema_rules.torchlib.shared import SharedOperator, SharedOperators, Write


class Writes(msgspec.Struct):
    """The places where ``operators`` declare that they write each input, and where they declare all their writes. ``complete``
    is false if the op may have others, or one writes something that is not known to be an input.
    """

    places: dict[str, list[Place]] = msgspec.field(default_factory=dict)
    stated: list[Place] = msgspec.field(default_factory=list)
    operators: list[SharedOperator] = msgspec.field(default_factory=list)
    own: dict[str, list[Place]] = msgspec.field(default_factory=dict)
    """The same for attributes of the op (``self.x``) that a listed operator takes in addition to the inputs and writes."""
    unregistered: list[str] = msgspec.field(default_factory=list)
    """Operators that the op lists and that nothing in the tree registers."""
    complete: bool = True

    def add(self, name: str, operator: SharedOperator, place: Place) -> None:
        """Record that an operator writes an input."""
        places = self.places.setdefault(name, [])
        if place not in places:
            places.append(place)
        if operator not in self.operators:
            self.operators.append(operator)


class OpWithOperators(msgspec.Struct, eq=False):
    """An op class and the operators of its tree, and the parameters that some ``forward`` of the tree writes."""

    op: OpImplementation
    operators: SharedOperators
    written: frozenset[str]

    @property
    def name(self) -> str:
        """The op's name."""
        return self.op.name

    @property
    def place(self) -> Place:
        """The entry's key."""
        return self.op.place

    def writes(self, inputs: Sequence[str]) -> Writes:
        """Inputs that the operators of the op write."""
        found = Writes()
        self._listed(inputs, found)
        found.complete = found.complete and bool(found.operators)
        for write in self._of_forward(self.op.ref) or (() if found.operators else self._by_kernels(inputs)):
            operator = self.operators.operators[write.operator]
            if write.parameter in inputs:
                found.add(write.parameter, operator, write.place)
            elif write.parameter.startswith("self.") and operator in found.operators:
                found.own.setdefault(write.parameter, []).append(write.place)
        return found

    def _listed(self, inputs: Sequence[str], found: Writes) -> None:
        """Record the writes of the operators that ``compile_op_names`` lists."""
        names = self.listed()
        found.complete = names is not None
        namespaces = {name.partition("::")[0] for item in self.operators.operators for name in item.names}
        for name in names or ():
            named = [item for item in self.operators.operators if name in item.names]
            known = len(named) == 1 and _collect(named[0], inputs, found)
            found.complete = found.complete and known
            if not named and name.partition("::")[0] in namespaces and not self._may_be_elsewhere():
                found.unregistered.append(name)

    def _may_be_elsewhere(self) -> bool:
        """Whether an operator may be registered where nothing is read: under a computed name, or in C++."""
        files = self.op.entry.manifest.project.workspace.files
        return self.operators.unnamed or any(
            path.endswith((".cpp", ".cc", ".cxx", ".cu", ".h", ".cuh")) for path in files
        )

    def listed(self) -> Sequence[str] | None:
        """Return the operators that ``compile_op_names`` lists; None if they are not known."""
        for ref in self.op.program.lineage(self.op.ref):
            written = self.operators.names.get(ref.key, {})
            if "compile_op_names" in written:
                return written["compile_op_names"]
        attribute = self.op.attribute("compile_op_names")
        if not isinstance(attribute, ValueRef) or attribute.assign.value is None:
            return None
        folded = self.op.entry.manifest.evaluator.fold(attribute.file, attribute.assign.value)
        names = folded.value if isinstance(folded, Folded) else None
        return [str(name) for name in names] if isinstance(names, tuple | list) else None

    def _of_forward(self, ref: ClassRef) -> tuple[Write, ...]:
        return self.operators.writes.get(ref.key, {}).get("forward", ())

    # Operators of kernels

    def _by_kernels(self, inputs: Sequence[str]) -> Iterator[Write]:
        """Writes to inputs that ``forward`` passes, under their own names, to a kernel; all that it may be must write them."""
        forward = self.op.method("forward")
        if forward is None:
            return
        passed = _passed_on(forward.function)
        assigned = {item.target for item in forward.function.body.assigns}
        common = self.written.intersection(inputs, (name for names in passed for name in names)) - assigned
        kernels = self._kernels() if common else []  # to resolve them reads their files
        found = [self._of_forward(kernel) for kernel in kernels]
        common = common.intersection(*({write.parameter for write in writes} for writes in found))
        if common and all(self._parameters(kernel) in passed for kernel in kernels):
            yield from (write for writes in found[:1] for write in writes if write.parameter in common)

    def _kernels(self) -> list[ClassRef]:
        """Return the kernels of ``default_kernel_map``, if that returns one display of classes; empty if one is not known."""
        method = self.op.method("default_kernel_map")
        returns = method.function.body.returns if method is not None else []
        items = returns[0].items[1::2] if len(returns) == 1 and returns[0].kind == "dict" else ()
        found = [self.op.program.resolve(method.file, item.text) for item in items if method is not None]
        classes = [item for item in found if isinstance(item, ClassRef)]
        return classes if len(classes) == len(items) else []

    def _parameters(self, kernel: ClassRef) -> list[str]:
        """The parameters of a kernel's ``forward``."""
        member = self.op.program.member(kernel, "forward")
        return [item.name for item in member.function.params[1:]] if isinstance(member, FunctionRef) else []


def _passed_on(forward: Function) -> list[list[str]]:
    """Return the parameters that a function passes in each call of a value obtained from a call, if it passes nothing else."""
    scope = forward.body
    made = {item.target for item in scope.assigns if item.value is not None and item.value.kind == "call"}
    names = {item.name for item in forward.params}
    calls = [_plain_names(call) for call in scope.calls if call.callee in made]
    return [passed for passed in calls if passed and names.issuperset(passed)]


def _plain_names(call: Expr) -> list[str]:
    """Return the names that a call passes, if all are positional; otherwise empty."""
    plain = all(not word and item.kind == "name" for word, item in call.args)
    return [item.text for _, item in call.args] if plain else []


def _collect(operator: SharedOperator, inputs: Sequence[str], found: Writes) -> bool:
    """Record what a listed operator writes. Return False if that is not known, or is not a known tensor."""
    if operator.mutated is None:
        return False
    found.operators.append(operator)
    found.stated.append(operator.stated)
    by_name = set(inputs) <= set(operator.tensors)
    for name, place in operator.mutated.items():
        if not by_name and name not in operator.tensors:
            return False
        index = operator.tensors.index(name) if not by_name else len(inputs)
        found.add(inputs[index] if index < len(inputs) else name, operator, place)
    return True


class OpsWithOperators(msgspec.Struct, eq=False, dict=True):
    """All op classes of a manifest and the operators of its tree."""

    manifest: Manifest
    ops: tuple[OpWithOperators, ...]
    operators: SharedOperators


def with_operators(
    manifest: Manifest, project: Project, shared: bytes | None
) -> Iterator[OpWithOperators | OpsWithOperators]:
    """Op classes with the operators of their tree, each and all together: those ``shared`` by another process, else read here."""
    if shared is None:
        # Not at the top: in most runs another process shares them.
        from opschema_rules.torchlib.detection import TorchlibOptions
        from opschema_rules.torchlib.sharing import share

        shared = share(project, TorchlibOptions())
    operators = msgspec.msgpack.decode(shared, type=SharedOperators)
    written = frozenset(write.parameter for item in operators.writes.values() for write in item.get("forward", ()))
    ops = tuple(OpWithOperators(op, operators, written) for op in manifest.implementations)
    yield from ops
    yield OpsWithOperators(manifest, ops, operators)

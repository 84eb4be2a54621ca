"""The interpreter: the parts of this package put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opschema_cli.evaluation.execution.attributes import attribute_of
from opschema_cli.evaluation.execution.calls import called
from opschema_cli.evaluation.execution.class_hooks import namespace
from opschema_cli.evaluation.execution.classes import ABSENT, in_class, member
from opschema_cli.evaluation.execution.conversion import value_in_frame
from opschema_cli.evaluation.execution.dataclass_fields import is_dataclass
from opschema_cli.evaluation.execution.expressions import value_of
from opschema_cli.evaluation.execution.iteration import elements_of
from opschema_cli.evaluation.execution.machine import Machine
from opschema_cli.evaluation.execution.names import module_name, module_scope
from opschema_cli.evaluation.execution.objects import bound, held
from opschema_cli.evaluation.execution.scopes import names_in
from opschema_cli.evaluation.execution.statements import run
from opschema_cli.evaluation.execution.truths import truth_of
from opschema_cli.evaluation.execution.values import Closure, Environment, Names, Object, Opaque, Running
from opschema_cli.evaluation.values import ClassValue
from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, PythonFile, Statement


class Interpreter(Machine):
    """A machine with the operations of this package."""

    evaluate = value_of

    def call(self, function: object, positional: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Call a value, and return the result."""
        found = called(self, function, positional, keywords)
        if self.joins and isinstance(found, Running):
            self.born[id(found)] = found
        return found

    def attribute(self, value: object, name: str) -> object:
        """Return an attribute of a value."""
        if name == "__dict__" and isinstance(value, ClassValue):
            return namespace(self, value)
        return attribute_of(self, value, name)

    def annotations(self, function: Closure) -> list[object]:
        """Return the annotations of a function's parameters, evaluated at its definition; None for those without one."""
        scope = function.around or module_scope(self, function.body.file)
        found = (param.annotation for param in function.body.params)
        return [None if item is None else self.evaluate(scope, item) for item in found]

    def iterate(self, value: object) -> Iterator[object]:
        """Yield the elements of an iterable."""
        return elements_of(self, value)

    def truth(self, value: object) -> bool:
        """Whether a value is true; for an opaque value, both are tried."""
        if value is True or value is False:
            return value
        found = truth_of(self, value)
        return self.decide(found) if isinstance(found, Opaque) else found

    def run(self, scope: Environment, statements: Sequence[Statement]) -> Iterator[object]:
        """Run statements, and yield what they yield."""
        return run(self, scope, statements)

    def special(self, value: Object, name: str) -> object:
        """Return a method of an object that Python calls implicitly; None if its class has none."""
        found = member(self, value.cls, name)
        return None if found is ABSENT else found if isinstance(found, Opaque) else bound(self, value, found, name)

    def hashes_by_identity(self, value: Object) -> bool:
        """Whether an object only equals itself."""
        methods = [member(self, value.cls, name) for name in ("__eq__", "__hash__")]
        return all(item is ABSENT for item in methods) and not is_dataclass(self, value.cls.ref)

    def held(self, scope: Environment, expr: Expr) -> object:
        """Return the value of an expression assigned to a module's name."""
        return held(self, scope, expr)

    def module_name(self, file: PythonFile, name: str) -> object:
        """Return the value of a module's name."""
        return module_name(self, file, name)

    def framed(self, scope: Environment, name: str) -> object:
        """Return the value of a name in the frame of a function that is not executed, or in a class body."""
        return in_class(self, scope, name) if scope.body.cls is not None else value_in_frame(self, scope, name)

    def names_of(self, body: Body) -> Names:
        """Return the names of a function."""
        return names_in(body)

"""Definitions and registrations of a tree joined into its operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.reaching import excludes
from opschema_cli.evaluation.values import Frame, Plain, Text, Unknown, Value
from opschema_cli.lint.diagnostic import Place
from opschema_cli.sequences import shared_start
from opschema_cli.source.preprocessor import exclusive
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.definitions import Definer, Named, names_in, qualified
from opschema_rules.torchlib.gap import Gap
from opschema_rules.torchlib.gaps import Gaps
from opschema_rules.torchlib.model import Definition, Operator, Registration, StrayRegistration, Tree
from opschema_rules.torchlib.origin import is_mentioned
from opschema_rules.torchlib.registering import call_path, handle_key
from opschema_rules.torchlib.registrations import Event
from opschema_rules.torchlib.roles import Part, parts_of, read_part
from opschema_rules.torchlib.values import Handle, HandleKey, OpName

if TYPE_CHECKING:
    from opschema_rules.torchlib.cpp_model import CppOperators


class NamedEvent(msgspec.Struct, frozen=True, eq=False):
    """An event that defines operators, or registers fakes for them, and the names that it does it for. ``fake`` is the parameter
    that takes the fake; empty of a definition.
    """

    event: Event
    names: frozenset[str]
    fake: str = ""


class Join:
    """Joins the events of one tree."""

    def __init__(self, tree: Tree, evaluator: Evaluator, definer: Definer) -> None:
        self.tree = tree
        self.evaluator = evaluator
        self.definer = definer
        self.by_handle: dict[HandleKey, Operator] = {}
        self.named_events: list[NamedEvent] = []
        self._by_site: dict[tuple[str, int, int], Operator] = {}
        self._defined: dict[object, Operator] = {}
        self._by_name: dict[str, list[Operator]] = {}
        self._seen: set[object] = set()
        self._gaps = Gaps(tree)

    def join(self, events: Iterable[Event], cpp: CppOperators | None) -> None:
        """Build the tree's operators from the events, and from the definitions and registrations in C++."""
        events = list(events)
        if cpp is not None:
            self.tree.cpp_registrations += cpp.registrations
            self.tree.cpp_problems += cpp.problems
            self.tree.runtime_kernels += cpp.runtime_kernels
            self.tree.target_of_both = cpp.target_of_both
            self._define_cpp(cpp)
        told = self._names_told(events)
        for event in events:
            if event.api.defines is not None:
                self._define(event, told)
        self._index()
        self.tree.namespaces = frozenset(name.partition("::")[0] for name in self._by_name)
        for event in events:
            for part in parts_of(self.evaluator, event):
                self._register(event, part)
        for item in cpp.registrations if cpp is not None else ():
            conditional = item.registration.conditional or bool(item.conditions)
            names = Text(frozenset({item.name}))
            operators = self._of_names(names, item.registration.place.path)
            together = [one for one in operators if not exclusive(one.definition.conditions, item.conditions)]
            if together or not operators:
                registration = replace(item.registration, conditional=conditional)
                self._attach(names, together, registration)
        self._gaps.close()

    # Definitions

    def _names_told(self, events: Iterable[Event]) -> dict[Frame, set[str]]:
        """Return the names for which the calls of a helper register, without those that define."""
        found: dict[Frame, set[str]] = {}
        for event in events:
            if event.api.defines is None and event.waiting.receiver is not None and event.frame.site is not None:
                names = self._names(event, self.evaluator.values(event.given.get(event.api.op)))
                found.setdefault(event.frame, set()).update(names.names or ())
        return found

    def _define(self, event: Event, told: Mapping[Frame, set[str]]) -> None:
        named = self.definer.define(event)
        if named.names.names is None and named.names.start in told.get(event.frame, ()):
            named = self.definer.renamed(event, named, named.names.start)
        definition = named.definition
        self.named_events.append(NamedEvent(event, named.names.names or frozenset()))
        if definition.function is None and named.names.names is None:
            reason = "neither the name of the operator nor its function is known"
            self._not_followed(event, self._gap(event, definition.place, reason, named.names))
            return
        if named.names.names is None:
            self._gaps.add_silently(self._gap(event, definition.place, "its name is not known", named.names))
        key = self._key(event, named)
        operator = self._defined.get(key)
        if operator is None:
            operator = self._defined[key] = Operator(self.tree, named.names.names, definition)
            self.tree.operators.append(operator)
        else:
            known = operator.names is not None and named.names.names is not None
            operator.names = (operator.names or frozenset()) | (named.names.names or frozenset()) if known else None
        if event.api.defines in ("custom_op", "triton_op"):
            key = self._handle(event, named)
            self.by_handle[key] = self._by_site[key[:3]] = operator

    def of_value(self, value: Value) -> list[Operator]:
        """The operators that a value may be."""
        if isinstance(value, Handle):
            found = self.by_handle.get(value.key) or self._by_site.get(value.key[:3])
            return [found] if found is not None else []
        return self._of_names(Text(frozenset({value.name}))) if isinstance(value, OpName) and value.name else []

    def _handle(self, event: Event, named: Named) -> HandleKey:
        values = [item for item in self.evaluator.values(event.given.get(event.api.function)) if item != Plain(None)]
        return handle_key(event.waiting.arguments, values[0] if len(values) == 1 else Unknown(), named.names)

    def _key(self, event: Event, named: Named) -> object:
        """Return the key that identifies the operator of a definition: its place, and the function in a factory of operators."""
        definition = named.definition
        if named.names.names is None:
            return definition.place, definition.function, call_path(event.frame)
        if definition.explicit or definition.function is None or event.api.defines == "define":
            return definition.place, named.names.names
        return definition.place, definition.function

    def _index(self) -> None:
        for operator in self.tree.operators:
            for name in operator.names or ():
                self._by_name.setdefault(plain_name(name), []).append(operator)

    def _define_cpp(self, cpp: CppOperators) -> None:
        for item in cpp.definitions:
            conditional = item.definition.conditional or bool(item.conditions)
            definition = replace(
                item.definition, conditional=conditional, conditions=item.conditions, literal=item.literal
            )
            names = frozenset({item.name}) if item.name is not None else None
            self.tree.operators.append(Operator(self.tree, names, definition))
        self._gaps.add_cpp(cpp)

    # Registrations

    def _register(self, event: Event, part: Part) -> None:
        operators, names = self._targets(event)
        registration = read_part(self.evaluator, event, part, names)
        if registration.role == "fake":
            self.named_events.append(NamedEvent(event, self._own_names(event, operators, names), part.function))
        if names.names and all(plain_name(name) != name for name in names.names):
            registration = replace(registration, default_place=names.place)
        if not operators and names.names is None:
            reason = "the operator that it is for is not known"
            self._not_followed(event, self._gap(event, registration.place, reason, names))
        self._attach(names, operators, registration)

    def _attach(self, names: Text, operators: list[Operator], registration: Registration) -> None:
        operators = operators or self._of_names(names, registration.place.path)
        key = (registration.place, id(getattr(registration.function, "function", None)), registration.role)
        for operator in operators:
            if (operator, key) not in self._seen and not _apart(operator.definition, registration):
                self._seen.add((operator, key))
                operator.registrations.append(registration)
        found = {plain_name(name) for operator in operators for name in operator.names or ()}
        for name in sorted(names.names or ()):
            if name.startswith("aten::") and not operators:
                self.tree.of_torch.append(StrayRegistration(self.tree, name, registration))
            ours = name.partition("::")[0] in self.tree.namespaces
            if ours and plain_name(name) not in found and (name, key) not in self._seen:
                self._seen.add((name, key))
                self.tree.strays.append(StrayRegistration(self.tree, name, registration))

    def _own_names(self, event: Event, operators: list[Operator], names: Text) -> frozenset[str]:
        """The names of the operators that an event itself is for: a factory makes others too."""
        receiver = event.waiting.receiver
        if isinstance(receiver, Handle) and receiver.names.names:
            return receiver.names.names
        only = operators[0].names if len(operators) == 1 and len(operators[0].names or ()) == 1 else None
        return names.names or only or frozenset()

    def _targets(self, event: Event) -> tuple[list[Operator], Text]:
        """Return the operators that an event is for, and the names that it uses."""
        receiver = event.waiting.receiver
        if isinstance(receiver, Handle):
            operator = self.by_handle.get(receiver.key)
            return ([operator] if operator is not None else []), receiver.names if operator is None else Text(
                frozenset()
            )
        values = self.evaluator.values(event.given.get(event.api.op))
        handles = [item for item in values if isinstance(item, Handle)]
        if handles:
            held = [self.by_handle[item.key] for item in handles if item.key in self.by_handle]
            return held, Text(frozenset()) if len(held) == len(values) else Text(None)
        names = self._names(event, values)
        return self._of_names(names, event.frame.body.file.path), names

    def _names(self, event: Event, values: tuple[Value, ...]) -> Text:
        ops = [item.name for item in values if isinstance(item, OpName)]
        if ops and len(ops) == len(values) and all(ops):
            return Text(frozenset(ops))
        names = self.evaluator.strings(event.given.get(event.api.op))
        return qualified(self.definer.namespace(event), names) if self._is_through_library(event) else names

    def _is_through_library(self, event: Event) -> bool:
        """Whether an event takes its namespace from a library."""
        through_library = event.waiting.receiver is not None or event.api is apis.DIRECT
        return through_library or event.api in apis.LIBRARY_FUNCTIONS.values()

    def _of_names(self, names: Text, path: str = "") -> list[Operator]:
        """The operators of these names; of several of one name, those that a registration in the file ``path`` is for."""
        found = (nearest(self._by_name.get(plain_name(name), ()), path) for name in sorted(names.names or ()))
        return list(dict.fromkeys(item for items in found for item in items))

    def _gap(self, event: Event, place: Place, reason: str, names: Text) -> Gap:
        """The gap that an event for an operator of an unknown name leaves.

        What it defines is another operator than those that are known, as is what is registered through the handle of one that is
        not known.
        """
        defines = event.api.defines is not None
        registers = not defines and not isinstance(event.waiting.receiver, Handle)
        space, colons, start = names.start.partition("::")
        if colons:
            return Gap(place, reason, space, None, start, defines, registers)
        if not self._is_through_library(event):
            return Gap(place, reason, defines=defines, registers=registers)
        own = names_in(self.evaluator.strings(event.given.get(event.api.op)))
        words = frozenset(name.partition(".")[0] for name in own.names) if own.names is not None else None
        return Gap(place, reason, None, words, own.start if words is None else "", defines, registers)

    def _not_followed(self, event: Event, gap: Gap) -> None:
        around = [body for body in event.frame.body.outward() if body.function is not None]
        if event.frame.assumed and around and not is_mentioned(self.evaluator, around[-1]):
            return  # a helper for others, who register operators of their own
        self._gaps.add(gap)


def _apart(definition: Definition, registration: Registration) -> bool:
    """Whether only one of the two takes place: they are in different branches of one ``if``."""
    body, one, other = definition.body, definition.call, registration.call
    if body is None or body is not registration.body or one is None or other is None:
        return False
    return excludes(body.scope, one.start, other.start)


def nearest(operators: Sequence[Operator], path: str) -> Sequence[Operator]:
    """Of operators of one name those whose definition is nearest to a file: in it, else in the folders that it shares most of.

    Definitions that all take place belong to programs that do not run together, such as two examples. Those that depend on a
    condition stand for one another.
    """
    if len(operators) < 2 or not path or any(item.definition.conditional for item in operators):
        return operators
    shared = [shared_start(item.place.path.split("/"), path.split("/")) for item in operators]
    return [item for item, count in zip(operators, shared, strict=True) if count == max(shared)]


def plain_name(name: str) -> str:
    """A qualified name without the overload that is there by default."""
    return name.removesuffix(".default")

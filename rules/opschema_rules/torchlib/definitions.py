"""Registering calls that define an operator, read as :class:`~opschema_rules.torchlib.model.Definition`."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.values import BoundArgument, Func, Plain, Text
from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.schema_string import parse_schema
from opschema_cli.source.program import Unresolved
from opschema_rules.torchlib import apis
from opschema_rules.torchlib.inference import Inferrer, Mutates, is_restated
from opschema_rules.torchlib.model import Definition
from opschema_rules.torchlib.options import mutates_of, mutates_problems, tags_of, words_of
from opschema_rules.torchlib.origin import moment, origin
from opschema_rules.torchlib.registrations import Event
from opschema_rules.torchlib.tags import refused, tagged
from opschema_rules.torchlib.values import Inferred, LibraryValue


class Named(msgspec.Struct, frozen=True):
    """A definition and its possible qualified names; of unknown names, their beginning."""

    definition: Definition
    names: Text


class Definer:
    """Reads the definitions of one tree."""

    def __init__(self, evaluator: Evaluator, inferrer: Inferrer) -> None:
        self.evaluator = evaluator
        self.inferrer = inferrer

    def define(self, event: Event) -> Named:
        """The definition that an event makes."""
        if event.api.defines == "define":
            return self._direct(event) if event.api is apis.DIRECT else self._defined(event)
        return self._custom_op(event)

    # `custom_op` and `triton_op`

    def _custom_op(self, event: Event) -> Named:
        given = event.given
        names = self.evaluator.strings(given.get(event.api.op))
        function = self._function(given.get(event.api.function))
        made = self._made(event, function, names)
        text = self._schema_text(event)
        if isinstance(text, Text) and function is not None:
            made = self._made(event, function, names, text)
        if isinstance(text, Unresolved):
            return Named(replace(made, schema=text), names)
        mutates = mutates_of(self.evaluator, given.get("mutates_args"))
        if text is not None:
            made = self._mutating(made, mutates)
            return Named(self._with_text(made, f"{min(names.names or {''})}{text.start}", text.place), names)
        return Named(self._inferred(event, made, function, mutates, made.tags), names)

    def _schema_text(self, event: Event) -> Text | Unresolved | None:
        """Return the schema string argument; None without one."""
        given = (event.given.get(name) for name in ("schema", "manual_schema"))
        found = self.evaluator.values(next(filter(None, given), None))
        texts = [item for item in found if isinstance(item, Text)]
        if not found and event.open:
            return Unresolved("the call may pass a schema")
        if all(item == Plain(None) or isinstance(item, Func) for item in found):
            return None
        if len(found) != 1 or not texts or texts[0].names is None or len(texts[0].names) != 1:
            return Unresolved("its schema string is not known")
        return texts[0]

    # `define`

    def _defined(self, event: Event) -> Named:
        name_given = event.given.get("qualname")
        found = self.evaluator.values(event.given.get("schema") or event.given.get("func_or_schema"))
        value = found[0] if len(found) == 1 else None
        if name_given is not None:
            names = self.evaluator.strings(name_given)
            whole, own = value, value
        else:
            own = value
            whole = value.name if isinstance(value, Inferred) else value
            text = whole if isinstance(whole, Text) else Text(None)
            names = qualified(self.namespace(event), names_in(text))
        function = (
            self._function(BoundArgument(event.frame, None, (own.function,))) if isinstance(own, Inferred) else None
        )
        made = self._made(event, function, names)
        if isinstance(own, Inferred):
            arguments = own.arguments
            given = arguments.by_name(("prototype_function", "mutates_args", "op_name", "tags"))
            mutates = mutates_of(self.evaluator, given.get("mutates_args"))
            tags = tags_of(self.evaluator, given, is_open=arguments.open)
            return Named(self._inferred(event, made, function, mutates, tags), names)
        if isinstance(own, Text) and own.names is not None and len(own.names) == 1:
            prefix = min(names.names or {""}) if name_given is not None else ""
            return Named(self._with_text(made, prefix + own.start, own.place), names)
        return Named(replace(made, schema=Unresolved("its schema string is not known")), names)

    def _direct(self, event: Event) -> Named:
        """VLLM's helper: a schema inferred from the function, in the library that is passed or the helper's own."""
        given = event.given
        function = self._function(given.get("op_func"))
        names = qualified(self.namespace(event), self.evaluator.strings(given.get("op_name")))
        made = self._made(event, function, names)
        mutates = mutates_of(self.evaluator, given.get("mutates_args"), default=not event.open)
        return Named(self._inferred(event, made, function, mutates, frozenset()), names)

    def renamed(self, event: Event, named: Named, name: str) -> Named:
        """A definition whose name is known by other means than its own schema."""
        names = Text(frozenset({name}), "", named.names.place)
        frame, call = origin(self.evaluator, event, None, names)
        place = frame.body.at(call)
        return Named(replace(named.definition, place=place, body=frame.body, call=call), names)

    def namespace(self, event: Event) -> str | None:
        """Return the namespace of the library that an event registers through; None if that is not known."""
        held = [event.waiting.receiver] if event.waiting.receiver is not None else []
        for word in ("lib", "target_lib"):
            held += [item for item in self.evaluator.values(event.given.get(word)) if item != Plain(None)]
        found = {item.namespace if isinstance(item, LibraryValue) else None for item in held}
        if not found and event.api is apis.DIRECT:
            return _own_library(self.evaluator, event)
        return found.pop() if len(found) == 1 else None

    # Parts

    def _made(self, event: Event, function: Func | None, names: Text, text: Text | None = None) -> Definition:
        frame, call = origin(self.evaluator, event, function, names, text)
        place = frame.body.at(call)
        shown = function.shown.body if function is not None else None
        written = shown.at(shown.function.span) if shown is not None and shown.function is not None else place
        return Definition(
            event.api.defines or "define", place, written, Unresolved("its function is not known"), False,
            frame.body, call, shown,
            name_place=names.place,
            device_types=words_of(self.evaluator, event.given.get("device_types") if event.api.keys == "device_types" else None),
            tags=tags_of(self.evaluator, event.given, is_open=event.open),
            conditional=event.conditional,
            helper=event.helper,
        )  # fmt: skip

    def _with_text(self, made: Definition, text: str, place: Place | None) -> Definition:
        parsed = parse_schema(text)
        schema, written = parsed.schema, place or made.place
        problems = refused(schema, made.tags, written) if schema is not None and not parsed.errors else ()
        known = schema or Unresolved("its schema cannot be read")
        return replace(made, schema=known, errors=parsed.errors, problems=problems, explicit=True, written=written)

    def _inferred(
        self, event: Event, made: Definition, function: Func | None, mutates: Mutates, tags: frozenset[str] | None
    ) -> Definition:
        if function is None:
            return self._mutating(made, mutates)
        body = function.shown.body
        if is_restated(function.body) or is_restated(body):
            return replace(self._mutating(made, mutates), schema=Unresolved("code sets the function's signature"))
        found = tagged(self.inferrer.infer(body, mutates, moment(event, function)), body, mutates, tags)
        problems = [*found.problems, *mutates_problems(mutates, body)]
        return replace(self._mutating(made, mutates), schema=found.schema, problems=tuple(problems))

    def _mutating(self, made: Definition, mutates: Mutates) -> Definition:
        names = frozenset(mutates.names) if mutates.names is not None else None
        place = made.body.at(mutates.expr) if mutates.expr is not None and made.body is not None else None
        if mutates.path and place is not None:
            place = Place(mutates.path, place.span)
        return replace(made, mutates=names, mutates_unknown=mutates.unknown, mutates_place=place)

    def _function(self, given: BoundArgument | None) -> Func | None:
        found = self.evaluator.not_none(given)
        value = found[0] if len(found) == 1 else None
        return value if isinstance(value, Func) else None


def _own_library(evaluator: Evaluator, event: Event) -> str | None:
    """The namespace of the library that a helper of another package registers into when it is passed none."""
    for value in evaluator.evaluate(event.frame, event.call.items[0]) if event.call.kind == "call" else ():
        package = getattr(value, "name", "").partition(".")[0]
        if package in ("vllm", "sglang"):
            return package
    return None


def names_in(text: Text) -> Text:
    """The names at the head of schema strings."""
    if text.names is not None:
        return Text(frozenset(name.partition("(")[0].strip() for name in text.names), "", text.place)
    head, bracket, _ = text.prefix.partition("(")
    return Text(frozenset({head.strip()}), "", text.place) if bracket else Text(None, head, text.place)


def qualified(namespace: str | None, names: Text) -> Text:
    """Names with their namespace, where they are written without one."""
    if names.names is not None and all("::" in name for name in names.names):
        return names
    if namespace is None:
        return Text(None, "", names.place)
    if names.names is None:
        return Text(None, names.prefix if "::" in names.prefix else f"{namespace}::{names.prefix}", names.place)
    return Text(frozenset(name if "::" in name else f"{namespace}::{name}" for name in names.names), "", names.place)

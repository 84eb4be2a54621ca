"""Reading operator schemas from strings, with places, every fault of a string at once.

Two dialects: the *dispatcher's* is what ``Library.define``, ``m.def`` and ``custom_op(schema=...)`` take, torch's C++
parser (torch/csrc/jit/frontend/function_schema_parser.cpp and schema_type_parser.cpp); *torchgen's*, that of
native_functions.yaml, is the part of it that ``torchgen.model.FunctionSchema.parse`` takes too.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from opschema_cli.schema.operator_schema import Argument, OperatorSchema, Return, SchemaType
from opschema_cli.schema.schema_defaults import BASE_TYPES, Constant, Default, misfits
from opschema_cli.schema.schema_reader import Unreadable
from opschema_cli.schema.schema_rules import faults_of_schema
from opschema_cli.schema.schema_spelling import faults_of_spelling
from opschema_cli.schema.schema_tokens import KEYWORDS, SchemaError, is_name, is_number, is_stray, is_string
from opschema_cli.schema.schema_torchgen import faults_of_torchgen
from opschema_cli.schema.schema_types import TypeReader
from opschema_cli.source.text import Edit, Span

Dialect: TypeAlias = Literal["dispatcher", "torchgen"]

MAX_LENGTH = 10_000
"""Characters of the longest schema that is read; the longest of PyTorch has 1,500."""

_TORCHGEN_REFUSES = ("alias-type", "list-size", "star")
"""Faults that the dispatcher takes and torchgen does not."""


class ParsedSchema(msgspec.Struct, frozen=True):
    """A parsed schema string. ``schema`` is None if a part could not be parsed; ``errors`` are in text order."""

    schema: OperatorSchema | None
    errors: tuple[SchemaError, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether torch rejects the string."""
        return any(error.refused for error in self.errors)


def parse_schema(text: str, dialect: Dialect = "dispatcher", *, type_variables: bool = False) -> ParsedSchema:
    """Read an entire schema, one without name (``(Tensor x) -> Tensor``), or a name alone.

    ``type_variables`` takes unknown words in lower case for type variables, as TorchScript's own operators use them; the
    namespaces ``aten`` and ``prim`` always have them. What a program registers is not known here: a dotted type
    (``__torch__.torch.classes.ns.Name``, ``module.Name``) and the word for a device are taken as they are.
    """
    if len(text) > MAX_LENGTH:
        message = f"the schema has {len(text)} characters; at most {MAX_LENGTH} are read"
        return ParsedSchema(None, (SchemaError("too-long", message, Span(0, len(text))),))
    strict = dialect == "torchgen"
    type_variables = type_variables or (not strict and text.startswith(("aten::", "prim::")))
    reader = _SchemaReader(text, type_variables=type_variables)
    schema = reader.schema()
    errors = reader.errors + faults_of_schema(schema)
    if strict:
        errors = [replace(error, refused=error.refused or error.kind in _TORCHGEN_REFUSES) for error in errors]
        errors += faults_of_spelling(schema, reader.tokens, reader.unread) + faults_of_torchgen(
            schema, whole=reader.readable
        )
    errors = sorted(dict.fromkeys(errors), key=lambda error: error.span) if errors else []
    return ParsedSchema(schema if reader.readable else None, tuple(errors))


class _SchemaReader(TypeReader):
    """One pass over the words of a schema."""

    def schema(self) -> OperatorSchema:
        """Return the entire schema, without the parts that cannot be parsed."""
        namespace, name, overload, span = self._name()
        self._arguments: list[Argument] = []
        self._returns: list[Return] = []
        self._dots: int | None = None
        self._varret = self._star = False
        name_only = self.word != "("
        if name_only:
            self._no_arguments(name)
        else:
            self._signature()
            self._rest()
        self._lines()
        return OperatorSchema(
            name,
            tuple(self._arguments),
            tuple(self._returns),
            namespace,
            overload,
            span,
            self._dots is not None,
            self._varret,
            name_only,
        )

    def _signature(self) -> None:
        self.items(self._argument)
        if self._dots is not None and any(item.default is not None for item in self._arguments):
            self.error("vararg", "a schema with `...` can have no defaults", self.tokens.span(self._dots))
        if not self._arrow():
            return
        if self.word == "(":
            self.items(self._return)
            return
        first = self.at
        try:
            self._return()
        except Unreadable:
            self.go(len(self.words) - 1)
            self.unread.append(Span(self.tokens.starts[first], len(self.tokens.text)))

    # -- the name ------------------------------------------------------------------------------------------------------

    def _name(self) -> tuple[str, str, str, Span]:
        """Parse namespace, name and overload, and return them with their place. All are empty in a schema without a name."""
        last = self.words.index("(") if "(" in self.words else len(self.words) - 1
        if last == 0:
            return "", "", "", Span(self.tokens.starts[0], self.tokens.starts[0])
        namespace = overload = ""
        span = self.tokens.span(0, last - 1)
        self.go(last)
        match self.words[:last]:
            case [name]:
                pass
            case [namespace, ":", ":", name]:
                pass
            case [name, ".", overload]:
                pass
            case [namespace, ":", ":", name, ".", overload]:
                pass
            case _:
                name = "."
        if not (is_name(name) and is_name(namespace or name) and is_name(overload or name)):
            written = self.tokens.text[slice(*span)]
            reserved = next((word for word in self.words[:last] if word in KEYWORDS), None)
            why = "its form is `ns::name.overload`" if reserved is None else f"`{reserved}` is a reserved word"
            self.broken("name", f"`{written[:60]}` is not an operator name; {why}", span)
            return "", written, "", span
        if overload == "default" or overload.startswith("__"):
            what = "how `torch.ops` calls the overload without name" if overload == "default" else "kept for Python"
            self.error(
                "overload-name", f"`{overload}` cannot name an overload: it is {what}", self.tokens.span(last - 1)
            )
        return namespace, name, overload, span

    def _no_arguments(self, name: str) -> None:
        if not name:
            self.broken("name", "the schema is empty")

    # -- arguments -----------------------------------------------------------------------------------------------------

    def _argument(self) -> None:
        if self._dots is not None:
            self.fail("vararg", "`...` must be the last argument")
        if self.word == "*":
            again = "`*` appears twice; all arguments after the first are keyword-only" if self._star else ""
            self._star = True
            message = again or ("no argument follows `*`" if self.peek in (")", "") else "")
            if message:
                self.error("star", message, self.tokens.span(self.at), refused=False)
            self.next()
        elif self.word == "...":
            self._dots = self.at
            self.next()
        else:
            self._named_argument()

    def _named_argument(self) -> None:
        first, errors = self.at, len(self.errors)
        of = self.slot_type()
        known = len(self.errors) == errors
        type_span = self.tokens.span(first, self.at - 1)
        if not is_name(self.word):
            why = ", a reserved word" if self.word in KEYWORDS else ""
            self.fail("syntax", f"`{of.text()}` must be followed by the argument's name, not by {self.found}{why}")
        name, name_span = self.word, self.tokens.span(self.at)
        default, place = None, None
        if self.next() == "=":
            self.next()
            place = self._default(of, known=known)
            default = self.tokens.text[slice(*place)]
        span = self.tokens.span(first, self.at - 1)
        self._arguments.append(Argument(name, of, span, name_span, type_span, default, place, self._star))

    def _default(self, of: SchemaType, *, known: bool) -> Span:
        first = self.at
        is_list = self.word == "["
        items = self._constants() if is_list else [self._constant()]
        span = self.tokens.span(first, self.at - 1)
        default = Default(tuple(items), is_list, self.tokens.text[slice(*span)])
        for found in misfits(of, default) if known else ():
            place = span if found.word is None else found.word.span
            edit = None if found.meant is None else Edit(place, found.meant)
            self.error(found.kind, found.message, place, edit, refused=found.refused)
        return span

    def _constants(self) -> list[Constant]:
        items: list[Constant] = []
        if self.next() != "]":
            items.append(self._constant())
            while self.word == ",":
                self.next()
                items.append(self._constant())
            if self.word != "]":
                self.fail("unclosed", f"`,` or `]` must follow in the list, not {self.found}")
        self.next()
        return items

    def _constant(self) -> Constant:
        first, sign = self.at, ""
        if self.word == "-":
            sign = "-"
            self.next()
        word = self.word
        if is_number(word):
            sort = "number"
        elif sign:
            self.fail("default", f"a number must follow `-`, not {self.found}")
        elif word in ("None", "True", "False"):
            sort = "None" if word == "None" else "bool"
        elif is_string(word):
            sort = "str"
        elif is_name(word):
            sort = "word"
        else:
            self.fail(
                "default", f"a default is a number, a string, a list, `None`, `True` or `False`, not {self.found}"
            )
        self.next()
        return Constant(sort, sign + word, self.tokens.span(first, self.at - 1))

    # -- returns -------------------------------------------------------------------------------------------------------

    def _arrow(self) -> bool:
        """Skip ``->``, or record an error if there is other text. Return whether returns can follow."""
        if self.word == "->":
            self.next()
            return True
        gap = self.tokens.gap(self.at)
        if not self.word:
            self.broken("arrow", "the returns are missing; an operator without any says `-> ()`")
            return False
        if (self.word, self.peek) in (("=", ">"), ("-", ">"), ("-", "->")):
            span = self.tokens.span(self.at, self.at + 1)
            self.broken("arrow", "the returns follow `->`", span, Edit(span, "->"))
            self.go(self.at + 2)
        elif self.word == "(" or self.word in BASE_TYPES:
            self.broken("arrow", "`->` must precede the returns", edit=Edit(gap, " -> "))
        else:
            self.broken("arrow", f"`->` must follow the arguments, not {self.found}")
            while self.word and self.word != "->":
                self.next()
            self.next()
        return bool(self.word)

    def _return(self) -> None:
        if self._varret:
            self.fail("vararg", "`...` must be the last return")
        if self.word == "...":
            self._varret = True
            self.next()
            return
        first = self.at
        of = self.slot_type()
        type_span = self.tokens.span(first, self.at - 1)
        name = self.word if is_name(self.word) else None
        if name is not None:
            self.next()
        self._returns.append(Return(of, self.tokens.span(first, self.at - 1), type_span, name))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Nothing may follow the returns."""
        if not self.word:
            return
        last = len(self.words) - 2
        stray = next((index for index in range(self.at, last + 1) if is_stray(self.words[index])), None)
        if stray is not None:
            self.go(stray)
            self.broken("character", f"{self.found} is not allowed in a schema")
        elif self._dots is None or self.readable:
            span = self.tokens.span(self.at, last)
            self.broken("syntax", f"nothing can follow the returns, but found {self.found}", span)

    def _lines(self) -> None:
        """A schema goes on over lines only inside of brackets."""
        last = len(self.words) - 1
        broken = [index for index in self.tokens.line_breaks() if index < last]
        if broken:
            gap = self.tokens.gap(broken[0])
            self.broken("syntax", "a schema can go on in another line only inside of brackets", gap, Edit(gap, " "))

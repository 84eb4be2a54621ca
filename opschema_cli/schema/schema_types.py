"""The types of a schema string, with their alias annotations."""

from __future__ import annotations

import re

from opschema_cli.phrases import listed
from opschema_cli.schema.operator_schema import AliasInfo, SchemaType
from opschema_cli.schema.schema_defaults import BASE_TYPES, COMPOSED, DICT_KEYS, PYTHON_GENERICS, REMOVED, meant_types
from opschema_cli.schema.schema_reader import Reader
from opschema_cli.schema.schema_tokens import is_name, is_number
from opschema_cli.source.text import Edit, Span

MAX_DEPTH = 64
"""Types within types that are read."""

MAX_SUGGESTIONS = 16
"""Unknown types of one schema for which near names are sought."""

_PLAIN = {name: SchemaType(name) for name in BASE_TYPES}
_NONE = ("None", "NoneType")
_SIZE_LIMIT = 2**31


class TypeReader(Reader):
    """A reader that knows types."""

    def __init__(self, text: str, *, type_variables: bool) -> None:
        super().__init__(text)
        self.type_variables = type_variables
        self._suggestions = MAX_SUGGESTIONS

    def slot_type(self) -> SchemaType:
        """The type of an argument or a return, which alone can be a list with a size."""
        first = self.at
        of = self.type()
        if self.word == "[":
            of = self._sized(of)
        return self._late_alias(of, first) if self.word == "(" and of.optional else of

    def _late_alias(self, of: SchemaType, first: int) -> SchemaType:
        """``Tensor?(a!)``, which is written ``Tensor(a!)?``."""
        if of.inner is None or of.annotation is not None:
            return of
        meant = SchemaType(inner=of.inner.aliased(self._alias()), optional=True)
        span = self.tokens.span(first, self.at - 1)
        self.broken("alias", f"the annotation goes before `?`: `{meant.text()}`", span, Edit(span, meant.text()))
        return meant

    def _sized(self, of: SchemaType) -> SchemaType:
        """Parse a list with a size, and its suffix."""
        self.next()
        digits = re.match(r"\d+", self.word)
        if not is_number(self.word) or digits is None:
            self.fail("list-size", f"the size of a list is an integer, not {self.found}")
        size = int(digits[0].lstrip("0")[:20] or "0")
        if digits[0] != self.word or size >= _SIZE_LIMIT:
            self.error(
                "list-size", f"torch reads {self.found} as another number", self.tokens.span(self.at), refused=False
            )
        if self.next() != "]":
            self.fail("unclosed", f"`]` must follow the size of the list, not {self.found}")
        self.next()
        of = SchemaType(inner=of, size=size, alias=self._alias())
        if self.word == "?":
            self.next()
            of = SchemaType(inner=of, optional=True)
        return of

    def type(self) -> SchemaType:
        """Parse a type with its suffixes: lists, optionals and annotations."""
        self._deeper()
        word = self.word
        if word == "Tensor":
            self.next()
            alias = self._alias()
            of = _PLAIN["Tensor"] if alias is None else SchemaType("Tensor", alias=alias)
        elif word == "(":
            of = SchemaType("Tuple", items=self._types())
        elif word in COMPOSED:
            of = self._composed(word)
        elif word == "__torch__":
            of = self._class()
        else:
            of = self._base()
            if self.word in ("(", "!"):
                of = SchemaType(of.name, of.inner, of.optional, alias=self._alias())
        depth = self.depth
        while True:
            if self.word == "[" and self.peek == "]":
                self.next()
                self.next()
                of = SchemaType(inner=of, alias=self._alias())
            elif self.word == "?":
                of = self._optional(of)
            else:
                break
            self._deeper()
        self.depth = depth - 1
        return of

    def _optional(self, of: SchemaType) -> SchemaType:
        span = self.tokens.span(self.at)
        self.next()
        if of.name in _NONE:
            self.error("type", "`None` cannot be optional", span)
        elif of.optional:
            self.error("type", "the second `?` has no effect", span, Edit(span, ""), refused=False)
            return of
        return SchemaType(inner=of, optional=True)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("too-long", f"more than {MAX_DEPTH} types are nested in each other")

    def _types(self) -> tuple[SchemaType, ...]:
        """Types in parentheses."""
        found: list[SchemaType] = []
        if self.next() == ")":
            self.next()
            return ()
        while True:
            found.append(self.type())
            if self.word == ")":
                self.next()
                return tuple(found)
            if self.word != ",":
                self.fail("unclosed", f"`,` or `)` must follow `{found[-1]}`, not {self.found}")
            self.next()

    def _composed(self, name: str) -> SchemaType:
        first = self.at
        if self.next() != "(":
            self.fail(
                "type", f"`{name}` takes types in parentheses, as in `{name}({', '.join(['int'] * COMPOSED[name])})`"
            )
        errors = len(self.errors)
        items = self._types()
        of = SchemaType(name, items=items, alias=self._alias() if name in ("Dict", "Union") else None)
        if len(self.errors) > errors:
            return of
        wanted = COMPOSED[name]
        message = ""
        if wanted and len(items) != wanted:
            message = f"`{name}` takes {wanted} type{'s'[: wanted - 1]}, not {len(items)}"
        elif name == "Dict" and items[0].name not in DICT_KEYS:
            message = f"a `Dict` cannot have keys of type `{items[0]}`"
        elif name == "Union" and (len(set(items)) < 2 or any(item.name == "Any" for item in items)):
            message = "a `Union` takes two or more types that differ"
        if message:
            self.error("type", message, self.tokens.span(first, self.at - 1))
        return of

    def _class(self) -> SchemaType:
        """``__torch__.torch.classes.ns.Name``, a class registered in C++."""
        for expected in ("__torch__", ".", "torch", ".", "classes", ".", "", ".", ""):
            if self.word != expected if expected else not is_name(self.word):
                self.fail("type", f"a class is written `__torch__.torch.classes.ns.Name`; found {self.found}")
            self.next()
        return SchemaType("".join(self.words[self.at - 9 : self.at]))

    def _base(self) -> SchemaType:
        first, name = self.at, self.word
        if name not in _NONE and not is_name(name):
            self.fail("syntax", f"expected a type, not {self.found}")
        while self.next() == "." and is_name(self.peek):
            self.next()
            name += f".{self.word}"
        if name in _PLAIN:
            return _PLAIN[name]
        if name in PYTHON_GENERICS and self.word == "[" and self.peek != "]" and not is_number(self.peek):
            return self._generic(first, name)
        span = self.tokens.span(first, self.at - 1)
        if self.type_variables and name[0].islower():
            return SchemaType(name)
        if "torch.classes." in name:
            meant = f"__torch__.torch.classes.{name.partition('torch.classes.')[2]}"
            self.error("unknown-type", f"a class is written `{meant}`", span, Edit(span, meant))
        elif "." not in name:
            self._unknown(name, span)
        return SchemaType(name)

    def _generic(self, first: int, name: str) -> SchemaType:
        """``Optional[int]``, which Python writes for ``int?``."""
        errors = len(self.errors)
        self.next()
        inner = self.type()
        if self.word != "]":
            self.fail("unclosed", f"`]` must follow `{inner}`, not {self.found}")
        self.next()
        span = self.tokens.span(first, self.at - 1)
        meant = f"{inner.text()}{PYTHON_GENERICS[name]}"
        edit = Edit(span, meant) if len(self.errors) == errors else None
        self.error("unknown-type", f"`{name}[...]` is Python's; a schema writes `{meant}`", span, edit)
        return SchemaType(inner=inner, optional=PYTHON_GENERICS[name] == "?")

    def _unknown(self, name: str, span: Span) -> None:
        if name in REMOVED:
            self.error("removed-type", f"PyTorch has no `{name}` any more; {REMOVED[name]} were removed", span)
            return
        near: tuple[str, ...] = ()
        certain = False
        if self._suggestions:
            self._suggestions -= 1
            near, certain = meant_types(name)
        hint = f"; did you mean {listed(near, 'or')}?" if near else ""
        self.error(
            "unknown-type", f"no type is called `{name[:40]}`{hint}", span, Edit(span, near[0]) if certain else None
        )

    # -- alias annotations ---------------------------------------------------------------------------------------------

    def _alias(self) -> AliasInfo | None:
        if self.word == "!":
            self.next()
            return AliasInfo((), write=True)
        if self.word != "(":
            return None
        self.next()
        before = self._alias_set()
        write = self.word == "!"
        if write:
            self.next()
        after: tuple[str, ...] = ()
        if self.word == "->":
            self.next()
            after = self._alias_set()
        if self.word == ")":
            self.next()
        elif is_name(self.word) and self.tokens.starts[self.at] > self.tokens.end(self.at - 1):
            end = self.tokens.end(self.at - 1)
            self.broken("unclosed", "the alias annotation must end with `)`", edit=Edit(Span(end, end), ")"))
        else:
            self.fail("alias", f"an alias annotation has the form `(a)`, `(a!)` or `(a -> *)`; found {self.found}")
        return AliasInfo(before, write, after)

    def _alias_set(self) -> tuple[str, ...]:
        """Parse ``a|b`` or ``*``. Torch reads no more names after ``*``."""
        names: list[str] = []
        while True:
            if self.word == "*":
                names.append("*")
                self.next()
            elif "*" not in names:
                if not is_name(self.word):
                    self.fail("alias", f"an alias annotation names a set by a letter, as in `(a!)`; found {self.found}")
                names.append(self.word)
                self.next()
            if self.word != "|":
                return tuple(names)
            self.next()

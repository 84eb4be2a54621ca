"""A Python file as a libcst tree whose nodes have places, for rewriting.

Facts (:mod:`opschema_cli.source.python`) are enough to find things; a tree is parsed only for the files that change.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TypeAlias, TypeGuard, TypeVar

import libcst as cst
import msgspec

from opschema_cli.source.cst_spans import Spans, children, positions
from opschema_cli.source.packed_tree import unpack
from opschema_cli.source.python_facts import MAX_CHARACTERS, too_deep
from opschema_cli.source.text import Span

Definition: TypeAlias = "cst.FunctionDef | cst.ClassDef"
Statement: TypeAlias = "cst.BaseSmallStatement | cst.BaseCompoundStatement"

N = TypeVar("N", bound=cst.CSTNode)

_NEWLINE = re.compile(r"\r\n|\r|\n")
_STATEMENTS = (cst.BaseSmallStatement, cst.BaseCompoundStatement)


@cache
def _is_statement_type(kind: type[object]) -> bool:
    return issubclass(kind, _STATEMENTS)


def is_statement(node: object) -> TypeGuard[Statement]:
    """Whether a node is a statement; a line of statements is not. Cached by type, because `isinstance` is slow here."""
    return _is_statement_type(type(node))  # type: ignore[arg-type]  # mypy: a type is not Hashable


class TreeError(ValueError):
    """Raised for text that is not valid Python, or is too long or nested too deeply to be parsed."""


class PythonTree:
    """A module's text, its tree, and the place of each node.

    A node's span leaves out its own parentheses and decorators, as libcst's positions do; :meth:`outer` has them.
    """

    def __init__(self, text: str, module: cst.Module, spans: Spans) -> None:
        self.text = text
        self.module = module
        self._spans = spans
        self._variables: dict[str, list[cst.Name]] = {}

    @classmethod
    def parse(cls, text: str) -> PythonTree:
        """Parse the text of a module.

        Raises:
            TreeError: it does not parse.
        """
        if len(text) > MAX_CHARACTERS or too_deep(text) is not None:
            raise TreeError("it is too long, or nests too deeply")
        try:
            module = cst.parse_module(text)
            return cls(text, module, positions(module, text))
        except (cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError) as error:
            raise TreeError("it does not parse") from error

    @classmethod
    def unpacked(cls, text: str, data: bytes) -> PythonTree:
        """Return the tree of a module's text that another process parsed and packed."""
        return cls(text, *unpack(data))

    # Places

    def span(self, node: cst.CSTNode) -> Span:
        """Return the span of a node."""
        return Span(*self._spans[id(node)])

    def outer(self, node: cst.CSTNode) -> Span:
        """Return the span of a node with its own parentheses or decorators."""
        start, end = self._spans[id(node)]
        defines = type(node) in (cst.FunctionDef, cst.ClassDef)
        before = getattr(node, "decorators" if defines else "lpar", ())
        after = () if defines else getattr(node, "rpar", ())
        if isinstance(before, list | tuple) and before:
            start = min(start, self._spans[id(before[0])][0])
        if isinstance(after, list | tuple) and after:
            end = max(end, self._spans[id(after[-1])][1])
        return Span(start, end)

    def code(self, node: cst.CSTNode) -> str:
        """Return a node's text without its own parentheses."""
        start, end = self.span(node)
        return self.text[start:end]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def line_start(self, offset: int) -> int:
        """Return the start of the line of a character."""
        return self._line_starts[bisect.bisect_right(self._line_starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Return the end of the line of a character, including its line end."""
        after = bisect.bisect_right(self._line_starts, offset)
        return self._line_starts[after] if after < len(self._line_starts) else len(self.text)

    def indent(self, offset: int) -> str:
        """Return the white space at the beginning of the line of a character."""
        line = self.text[self.line_start(offset) : self.line_end(offset)]
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    def comments_above(self, offset: int, floor: int = 0) -> int:
        """Return the start of the comments directly above the line of a character, but not before ``floor``; without comments,
        the start of that line.
        """
        at = self.line_start(offset)
        while at > floor:
            above = self.line_start(at - 1)
            if above < floor or not self.text[above:at].lstrip().startswith("#"):
                break
            at = above
        return at

    def top(self, statement: Statement | cst.BaseStatement) -> int:
        """Return the start of the line of a statement, or of the comments directly above it."""
        line: cst.CSTNode = statement
        block = self.parent(line)
        if isinstance(block, cst.SimpleStatementLine):
            line, block = block, self.parent(block)
        floor = 0
        if isinstance(block, cst.Module | cst.IndentedBlock):
            at = next(index for index, item in enumerate(block.body) if item is line)
            before = block.body[at - 1] if at else None
            header = block.header if isinstance(block, cst.IndentedBlock) else None
            floor = self.line_end(self.outer(before).end) if before is not None else floor
            floor = self.line_end(self.span(header).start) if before is None and header is not None else floor
        return self.comments_above(self.outer(statement).start, floor)

    # Relations

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the parent of a node; None for the module."""
        return self._order.parents.get(id(node))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the ancestors of a node, nearest first."""
        parents = self._order.parents
        above = parents.get(id(node))
        while above is not None:
            yield above
            above = parents.get(id(above))

    def enclosing(self, node: cst.CSTNode, kind: type[N]) -> N | None:
        """Return the nearest ancestor of a node whose type is exactly ``kind``."""
        # libcst's classes are abstract base classes, for which `isinstance` is slow.
        return next((item for item in self.ancestors(node) if type(item) is kind), None)

    def statement(self, node: cst.CSTNode) -> Statement:
        """Return the innermost statement that a node is or is part of.

        Raises:
            LookupError: it is in none.
        """
        for item in (node, *self.ancestors(node)):
            if is_statement(item):
                return item
        raise LookupError("it is in no statement")

    # Indexes

    @cached_property
    def _order(self) -> _Order:
        return _Order.of(self.module)

    @property
    def nodes(self) -> list[cst.CSTNode]:
        """All nodes except white space and punctuation, each before its descendants."""
        return self._order.nodes

    def place(self, node: cst.CSTNode) -> int:
        """Return a node's index in :attr:`nodes`, which is the same each time the text is parsed."""
        return self._order.places[id(node)]

    def places(self, node: cst.CSTNode) -> range:
        """Return the indexes of a node and its descendants."""
        at = self.place(node)
        return range(at, self._order.ends[at])

    def _of_kind(self, kind: type[N]) -> list[N]:
        """Return all nodes of exactly that type."""
        return self._order.kinds.get(kind, [])  # type: ignore[return-value]

    def walk(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Return a node and its descendants, each before its own descendants, without white space and punctuation."""
        places = self.places(node)
        return self._order.nodes[places.start : places.stop]

    @cached_property
    def _by_span(self) -> dict[tuple[int, int], list[cst.CSTNode]]:
        found: dict[tuple[int, int], list[cst.CSTNode]] = {}
        spans = self._spans
        for node in self.nodes[1:]:
            found.setdefault(spans[id(node)], []).append(node)
        return found

    def find(self, span: Span, kind: type[N]) -> N:
        """Return the node at exactly a span whose type is exactly ``kind``.

        Raises:
            LookupError: there is none.
        """
        for node in self._by_span.get(span, ()):
            if type(node) is kind:
                return node
        raise LookupError(f"no {kind.__name__} is written at {span.start}-{span.end}")

    @cached_property
    def _definitions(self) -> dict[str, list[Definition]]:
        found: dict[str, list[Definition]] = {}
        names: dict[int, str] = {}
        nodes: list[Definition] = [*self._of_kind(cst.FunctionDef), *self._of_kind(cst.ClassDef)]
        for node in sorted(nodes, key=lambda node: self._order.places[id(node)]):
            around = next((names[id(item)] for item in self.ancestors(node) if id(item) in names), "")
            name = f"{around}.{node.name.value}" if around else node.name.value
            names[id(node)] = name
            found.setdefault(name, []).append(node)
        return found

    def definitions(self, name: str) -> list[Definition]:
        """Return the classes and functions with a qualified name (``Class.method``, ``outer.inner``)."""
        return self._definitions.get(name, [])

    def function(self, name: str) -> cst.FunctionDef:
        """Return the function with a qualified name.

        Raises:
            LookupError: there is none, or several.
        """
        return _only(self.definitions(name), name, cst.FunctionDef)

    def method(self, class_name: str, name: str) -> cst.FunctionDef:
        """Return a method by its class and name; raises as :meth:`function` does."""
        return self.function(f"{class_name}.{name}")

    def class_def(self, name: str) -> cst.ClassDef:
        """Return the class with a qualified name; raises as :meth:`function` does."""
        return _only(self.definitions(name), name, cst.ClassDef)

    @cached_property
    def _names(self) -> dict[str, list[cst.Name]]:
        found: dict[str, list[cst.Name]] = {}
        for node in sorted(self._of_kind(cst.Name), key=lambda node: self._spans[id(node)]):
            found.setdefault(node.value, []).append(node)
        return found

    def names(self, name: str, within: cst.CSTNode | None = None) -> list[cst.Name]:
        """Return the places where a variable of that name is read, written, imported, or declared as parameter or definition.

        Names of attributes, keyword arguments, modules, and things imported under another name are none. ``within`` is the
        node to look in, decorators included; else it is the module.
        """
        if name not in self._variables:
            self._variables[name] = [node for node in self._names.get(name, ()) if not self._is_label(node)]
        return self._within(self._variables[name], within)

    def _within(self, names: list[cst.Name], node: cst.CSTNode | None) -> list[cst.Name]:
        """Return the names, in order, that begin inside a node."""
        if node is None:
            return list(names)
        first, after = (bisect.bisect_left(names, at, key=self._start) for at in self.outer(node))
        return names[first:after]

    def _start(self, node: cst.CSTNode) -> int:
        return self._spans[id(node)][0]

    def _is_label(self, node: cst.Name) -> bool:
        child: cst.CSTNode = node
        above = self.parent(node)
        if type(above) is cst.Arg:
            return above.keyword is node
        while type(above) is cst.Attribute:
            if above.attr is child:
                return True
            child, above = above, self.parent(above)
        if type(above) is cst.ImportAlias:
            return above.name is child and above.asname is not None
        return type(above) is cst.ImportFrom

    def attributes(self, name: str, within: cst.CSTNode | None = None) -> list[cst.Attribute]:
        """Return the places where an attribute of that name is read or written, on any object; ``within`` as for :meth:`names`."""
        above = (self.parent(node) for node in self._within(self._names.get(name, []), within))
        return [node for node in above if type(node) is cst.Attribute and node.attr.value == name]

    def calls(self, name: str) -> list[cst.Call]:
        """Return the calls whose callee ends with that name (``f()``, ``module.f()``)."""
        found: list[cst.Call] = []
        for node in self._names.get(name, ()):
            above = self.parent(node)
            callee = above if type(above) is cst.Attribute and above.attr is node else node
            call = self.parent(callee)
            if type(call) is cst.Call and call.func is callee:
                found.append(call)
        return found

    def strings(self, value: str) -> list[cst.SimpleString]:
        """Return the string literals with that value."""
        return self._strings.get(value, [])

    @property
    def literals(self) -> Iterator[cst.SimpleString]:
        """Yield all plain string literals."""
        return (node for found in self._strings.values() for node in found)

    @cached_property
    def _strings(self) -> dict[str, list[cst.SimpleString]]:
        found: dict[str, list[cst.SimpleString]] = {}
        for node in self._of_kind(cst.SimpleString):
            found.setdefault(node.raw_value, []).append(node)
        return found

    def docstring(self, node: Definition | cst.Module) -> cst.SimpleString | None:
        """Return the docstring, if it is one plain literal."""
        body = node.body.body if isinstance(node, cst.FunctionDef | cst.ClassDef) else node.body
        first = body[0] if body else None
        if isinstance(first, cst.SimpleStatementLine):
            first = first.body[0]
        value = first.value if isinstance(first, cst.Expr) else None
        return value if isinstance(value, cst.SimpleString) and "b" not in value.prefix.lower() else None


class _Order(msgspec.Struct, frozen=True):
    """All nodes, each before its descendants; the parent and index of each by ``id``, and the end of its descendants.

    ``kinds`` has them by type.
    """

    nodes: list[cst.CSTNode]
    parents: dict[int, cst.CSTNode]
    places: dict[int, int]
    ends: list[int]
    kinds: dict[type, list[cst.CSTNode]]

    @classmethod
    def of(cls, module: cst.Module) -> _Order:
        nodes: list[cst.CSTNode] = []
        above: list[int] = []
        parents: dict[int, cst.CSTNode] = {}
        kinds: dict[type, list[cst.CSTNode]] = {}
        waiting: list[cst.CSTNode] = [module]
        origins = [0]
        while waiting:
            node, place = waiting.pop(), len(nodes)
            nodes.append(node)
            above.append(origins.pop())
            kinds.setdefault(type(node), []).append(node)
            for child in reversed(children(node)):
                parents[id(child)] = node
                waiting.append(child)
                origins.append(place)
        ends = list(range(1, len(nodes) + 1))
        for place in range(len(nodes) - 1, 0, -1):
            if ends[place] > ends[above[place]]:
                ends[above[place]] = ends[place]
        return cls(nodes, parents, {id(node): place for place, node in enumerate(nodes)}, ends, kinds)


def _only(found: list[Definition], name: str, kind: type[N]) -> N:
    matching = [node for node in found if isinstance(node, kind)]
    if len(matching) != 1:
        raise LookupError(f"{name!r} is defined {len(matching)} times")
    return matching[0]

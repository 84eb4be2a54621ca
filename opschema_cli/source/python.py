"""Facts of a Python module: what it imports, defines, assigns and calls, each with its place.

Plain data, cached by content, so that a run over unchanged files parses nothing. The facts are
collected by :mod:`opschema_cli.source.python_facts` and joined over modules by
:mod:`opschema_cli.source.program`. It is one module because these structures refer to
one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Literal, TypeAlias, TypeVar

import msgspec

from opschema_cli.source.text import NestedSpans, Source, Span, holds_word, may_begin_statement

T = TypeVar("T")

FACTS_VERSION = 17
"""Part of every cache key; raise it when the facts or their collection change."""

Constant: TypeAlias = "None | bool | int | float | str"
ExprKind: TypeAlias = Literal[
    "const", "literal", "name", "attribute", "call", "tuple", "list", "set", "dict", "starred", "unary", "binary",
    "boolop", "compare", "subscript", "slice", "absent", "ifexp", "fstring", "field", "listcomp", "setcomp",
    "generator", "dictcomp", "for", "lambda", "walrus", "await", "yield", "yield-from", "other",
]  # fmt: skip
StatementKind: TypeAlias = Literal[
    "expr", "assign", "annassign", "augassign", "return", "delete", "if", "while", "for", "with", "try", "except",
    "match", "case", "raise", "assert", "import", "def", "class", "global", "nonlocal", "pass", "break", "continue",
    "other",
]  # fmt: skip
ParamKind: TypeAlias = Literal["posonly", "normal", "kwonly", "vararg", "kwarg"]

LEAVING: frozenset[StatementKind] = frozenset({"return", "raise", "break", "continue"})
"""The statements after which a block does not continue."""


class Expr(msgspec.Struct, array_like=True, gc=False):
    """An expression.

    ========================== =========================================================================================
    kind                       ``text`` and ``items``
    ========================== =========================================================================================
    ``const``                  a constant in ``value``: None, a boolean, an integer of up to 64 bits, a float, a string
    ``literal``                any other constant (bytes, ``...``, ``1j``): ``text`` is its source text
    ``name``                   ``text`` is a dotted path (``torch.float16``)
    ``attribute``              of a value that is not a dotted path (``type(self).op``): ``text``; the value
    ``call``                   the callee and the arguments; ``keywords`` names each argument: empty by position, ``*``,
                               ``**``, or the keyword
    ``tuple`` ``list`` ``set`` the elements
    ``dict``                   keys and values in turn; the key of an unpacked mapping is ``absent`` with the text ``**``
    ``starred``                the value
    ``unary`` ``binary``       ``text`` is the operator; the operands
    ``boolop``                 ``text`` is ``and`` or ``or``; all operands
    ``compare``                ``text`` has the operators with a blank between them (``<``, ``is-not``); the operands
    ``subscript``              the value and the indices: one, or the elements of a tuple without brackets
    ``slice``                  lower bound, upper bound and step; ``absent`` where there is none
    ``ifexp``                  the test, the value if it holds, the value if not
    ``fstring``                its parts: ``const`` strings and ``field``
    ``field``                  ``text`` is the conversion (``r``, ``s``, ``a`` or empty); the value, and the format
                               specification as ``fstring`` if there is one
    ``listcomp`` ``setcomp``   the element and a ``for`` for each clause; ``generator`` is the same
    ``dictcomp``               the key, the value, and a ``for`` for each clause
    ``for``                    ``text`` may be ``async``; the target, the iterable and the conditions
    ``lambda``                 the names of the parameters, and last the body; see also :attr:`Scope.lambdas`
    ``walrus``                 the name and the value
    ``await`` ``yield-from``   the value
    ``yield``                  the value if there is one
    ``other``                  what nests too deeply
    ========================== =========================================================================================

    Parts of an ``fstring`` other than the values of its fields have the span of the entire ``fstring``. The span of a
    ``for`` reaches from its target to its last part.
    """

    kind: ExprKind
    start: int
    end: int
    text: str = ""
    value: Constant = None
    items: tuple[Expr, ...] = ()
    keywords: tuple[str, ...] = ()

    @property
    def span(self) -> Span:
        """Span of the expression."""
        return Span(self.start, self.end)

    @property
    def callee(self) -> str:
        """The dotted name that a call calls; empty if there is none."""
        return self.items[0].text if self.kind == "call" and self.items[0].kind == "name" else ""

    @property
    def args(self) -> list[tuple[str, Expr]]:
        """The arguments of a call with their keywords."""
        return list(zip(self.keywords, self.items[1:], strict=True)) if self.kind == "call" else []

    @property
    def owner(self) -> Expr | None:
        """The object of an attribute, ``a.b`` in ``a.b.c``; None for anything but an attribute."""
        if self.kind == "attribute":
            return self.items[0]
        holder, dot, _ = self.text.rpartition(".")
        return Expr("name", self.start, self.start + len(holder), holder) if self.kind == "name" and dot else None

    @property
    def member(self) -> str:
        """The name of an attribute, ``c`` in ``a.b.c``; for a name without dots the name itself, and empty for anything else."""
        return self.text.rpartition(".")[2] if self.kind in ("name", "attribute") else ""

    def keyword(self, name: str) -> Expr | None:
        """Return the argument of a call passed as ``name=``."""
        return next((value for keyword, value in self.args if keyword == name), None)

    def argument(self, name: str, position: int | None) -> Expr | None:
        """Return the argument that a call visibly passes for a parameter: by keyword, or by position if that is known."""
        passed = self.keyword(name)
        before = self.positional() if passed is None and position is not None else []
        return before[position] if position is not None and position < len(before) else passed

    def positional(self) -> list[Expr]:
        """Return the plain positional arguments of a call, up to the first unpacked one."""
        found: list[Expr] = []
        for keyword, value in self.args:
            if keyword == "*":
                break
            if not keyword:
                found.append(value)
        return found

    @property
    def elements(self) -> tuple[Expr, ...] | None:
        """The elements of a tuple, list or set; None for anything else, and if one is unpacked (``*a``)."""
        if self.kind not in ("tuple", "list", "set") or any(item.kind == "starred" for item in self.items):
            return None
        return self.items

    def walk(self) -> Iterator[Expr]:
        """Yield the expression and all nested ones."""
        yield self
        for item in self.items:
            yield from item.walk()


class Statement(msgspec.Struct, array_like=True, gc=False):
    """A statement of a function.

    ======================== ====================================== ==================================================
    kind                     ``exprs``                              ``blocks``; ``text``
    ======================== ====================================== ==================================================
    ``expr``                 the value
    ``assign``               the targets, and last the value
    ``annassign``            target, annotation, value if any
    ``augassign``            target and value                       ``text`` is the operator (``+``)
    ``return``               the value if any
    ``delete``               the targets
    ``if`` ``while``         the test                               body, else; ``elif`` is an ``if`` in the else
    ``for``                  target and iterable                    body, else; ``text`` may be ``async``
    ``with``                 contexts and targets in turn, a        body; ``text`` may be ``async``
                             missing target is ``absent``
    ``try``                  none                                   body, handlers (``except``), else, finally;
                                                                    ``text`` is ``*`` for ``except*``
    ``except``               the type and the name, if any          body; ``text`` is the name
    ``match``                the subject                            the cases (``case``)
    ``case``                 the guard if any                       body; ``text`` has the names that it binds
    ``raise``                exception and cause, if any
    ``assert``               the test, the message if any
    ``import``               none                                   ``text`` has the names that it binds
    ``def`` ``class``        none                                   ``text`` is the name; see :attr:`Scope.functions`
    ``global`` ``nonlocal``  none                                   ``text`` has the names
    ``pass`` ``break``       none                                   ``continue`` is the same
    ``other``                none                                   nests too deeply
    ======================== ====================================== ==================================================

    Several names in ``text`` are joined by commas. The span of a ``def`` or ``class`` includes its decorators and is the
    ``outer`` span of the :class:`Function` or :class:`Class`.
    """

    kind: StatementKind
    start: int
    end: int
    text: str = ""
    exprs: tuple[Expr, ...] = ()
    blocks: tuple[tuple[Statement, ...], ...] = ()

    @property
    def span(self) -> Span:
        """Span of the statement."""
        return Span(self.start, self.end)

    @property
    def names(self) -> list[str]:
        """The names in ``text``, for a statement that binds or declares names."""
        return self.text.split(",") if self.text else []


class Param(msgspec.Struct, array_like=True, gc=False):
    """A parameter. ``start`` and ``end`` delimit its name; ``full_end`` is the end of its annotation and default, including
    brackets.
    """

    name: str
    kind: ParamKind
    start: int
    end: int
    full_end: int
    annotation: Expr | None = None
    default: Expr | None = None

    @property
    def span(self) -> Span:
        """Span of its name."""
        return Span(self.start, self.end)

    @property
    def full_span(self) -> Span:
        """Name, annotation and default."""
        return Span(self.start, self.full_end)

    @property
    def by_name(self) -> bool:
        """Whether an argument may be passed to it by name or position (not ``*args``/``**kwargs``)."""
        return self.kind not in ("vararg", "kwarg")


class Assign(msgspec.Struct, array_like=True, gc=False):
    """A write to a name or attribute: ``target`` is dotted (``x``, ``self.x``, ``cls.y``); the span is the target's.

    ``value`` is None for an annotation without value, a loop target and the like. ``sure`` is false when
    the write stands under a condition, in a loop or in a handler.
    """

    target: str
    start: int
    end: int
    value: Expr | None
    statement: Span
    sure: bool = True
    annotation: Expr | None = None

    @property
    def span(self) -> Span:
        """Span of the target."""
        return Span(self.start, self.end)


class Import(msgspec.Struct, array_like=True, gc=False):
    """One imported name: ``import module as name`` (``attr`` empty) or ``from module import attr as name``.

    ``level`` counts leading dots; a star import has ``attr`` ``*``. ``guarded`` is true inside ``try``, ``if`` or a function.
    """

    name: str
    module: str
    attr: str
    level: int
    start: int
    end: int
    guarded: bool = False

    @property
    def span(self) -> Span:
        """Span of the imported name."""
        return Span(self.start, self.end)


class Use(msgspec.Struct, array_like=True, gc=False):
    """One read of a dotted name."""

    name: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Span of the use."""
        return Span(self.start, self.end)


class Loop(msgspec.Struct, array_like=True, gc=False):
    """A ``for`` statement: the names in its target, its iterable, the span of its body, and the target itself."""

    targets: tuple[str, ...]
    iterable: Expr
    body: Span
    target: Expr


class Condition(msgspec.Struct, array_like=True, gc=False):
    """The condition of an ``if``, ``elif`` or ``assert``, and the span that runs when it holds (an assert's own).

    ``orelse`` is the span of what runs when an ``if`` does not hold: its ``else``, or all that begins with ``elif``.
    """

    kind: Literal["if", "assert"]
    expr: Expr
    body: Span
    orelse: Span | None = None


class Item(msgspec.Struct, array_like=True, gc=False):
    """A write to an item by a constant string: ``target[key] = value``, where ``target`` is dotted."""

    target: str
    key: str
    value: Expr


class ContainerChange(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A change of a list, dictionary or set, or of a container that it holds.

    ``holder`` is the name of the container, with a dot before that of an attribute of any object. ``depth`` counts the indexes
    between the container and what changes: 0 for a method of its own. ``key`` is the constant string of the item that a
    ``delete``, a ``removal`` (a method that takes items out) or a ``write`` changes; it is empty where it is not known, and for
    a write that an :class:`Item` describes.
    """

    holder: str
    depth: int
    kind: Literal["method", "removal", "write", "delete"]
    key: str = ""


class Unpack(msgspec.Struct, array_like=True, gc=False):
    """An assignment to several targets at once that no display of as many values stands behind: ``a, b = value``.

    ``targets`` are dotted names, empty for what is none (an item, a nested tuple); ``starred`` when one takes the rest.
    """

    targets: tuple[str, ...]
    starred: bool
    value: Expr
    start: int
    end: int

    @property
    def span(self) -> Span:
        """The span of the targets."""
        return Span(self.start, self.end)


_USES = msgspec.msgpack.Decoder(tuple[Use, ...])


def _no_uses() -> bytes:
    return packed_uses(())


def packed_uses(uses: Iterable[tuple[str, int, int]]) -> bytes:
    """Pack uses of names, each as the fields of a :class:`Use`, for storage in a scope."""
    return msgspec.msgpack.encode(tuple(uses))


class Scope(msgspec.Struct, array_like=True, dict=True):
    """Facts of one module, class or function body, without nested definitions.

    ``guarded`` are the spans of statements that may not run: branches, what is tried, handlers, bodies of ``while`` and ``case``.
    ``packed_uses`` holds ``uses``, a third of all that is told of a module, for the few who ask.
    ``lambdas`` are functions too; what their bodies do is also told of the scope around them, so that a walk leaves them out.
    """

    assigns: tuple[Assign, ...] = ()
    imports: tuple[Import, ...] = ()
    calls: tuple[Expr, ...] = ()
    packed_uses: bytes = msgspec.field(default_factory=_no_uses)
    loops: tuple[Loop, ...] = ()
    returns: tuple[Expr, ...] = ()
    functions: tuple[Function, ...] = ()
    classes: tuple[Class, ...] = ()
    deleted: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    guarded: tuple[Span, ...] = ()
    items: tuple[Item, ...] = ()
    unpacks: tuple[Unpack, ...] = ()
    lambdas: tuple[Function, ...] = ()

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every use of a name, in the order in which they were recorded."""
        return _USES.decode(self.packed_uses)

    @cached_property
    def guarding(self) -> NestedSpans:
        """The spans of :attr:`guarded`, for finding those around a place."""
        return NestedSpans(self.guarded)

    @cached_property
    def conditional_expressions(self) -> tuple[Expr, ...]:
        """The conditional expressions in returned and assigned values and in arguments."""
        values = (item.value for item in self.assigns if item.value is not None)
        parts = (part for expr in (*self.returns, *values, *self.calls) for part in expr.walk())
        return tuple({part.span: part for part in parts if part.kind == "ifexp"}.values())

    @cached_property
    def named(self) -> dict[str, list[Binding]]:
        """Its functions, classes and imports by name, and its assignments by target."""
        defined: tuple[Function | Class | Import, ...] = (*self.functions, *self.classes, *self.imports)
        return _grouped(chain(((item.name, item) for item in defined), ((item.target, item) for item in self.assigns)))

    def function(self, name: str) -> Function | None:
        """Return the function of that name; the last one if there are several."""
        return next((item for item in reversed(self.functions) if item.name == name), None)

    def walk(self, wanted: Callable[[Function], bool] = lambda function: True) -> Iterator[Scope]:
        """Yield this scope and all nested ones, except those of functions that are not ``wanted``, which are not unpacked."""
        yield self
        for function in self.functions:
            if wanted(function):
                yield from function.peek_body().walk(wanted)
        for cls in self.classes:
            yield from cls.body.walk(wanted)

    def names(self) -> set[str]:
        """Return every identifier, attribute and short string in this scope and nested ones."""
        found: set[str] = set()
        for scope in self.walk():
            for name in (*(use.name for use in scope.uses), *(item.target for item in scope.assigns)):
                found.update(name.split("."))
            found.update(scope.strings)
        return found


Binding: TypeAlias = "Assign | Class | Function | Import"
"""A binding of a name."""


class Guard(msgspec.Struct, array_like=True, frozen=True):
    """A stretch of a function that only runs if the class in ``variable`` has (``present``) or lacks an attribute, in its own
    body (``own``) or in any class that it inherits from, or else in one that comes before the class named ``base``.
    """

    variable: str
    attribute: str
    own: bool
    present: bool
    start: int
    end: int
    base: str = ""


def written_in(body: Scope, wanted: Callable[[Function], bool] = lambda function: True) -> tuple[str, ...]:
    """Return the attributes that a scope and nested code assign, as dotted targets; only ``wanted`` functions count."""
    found = [item.target for item in body.assigns if "." in item.target]
    found += [target for function in body.functions if wanted(function) for target in function.written]
    found += [target for cls in body.classes for target in written_in(cls.body)]
    return tuple(dict.fromkeys(found))


def packed_body(body: Scope) -> bytes:
    """Pack the body of a function for storage."""
    return msgspec.msgpack.encode(body)


def packed_statements(statements: Iterable[Statement]) -> bytes:
    """Pack the statements of a function for storage."""
    return msgspec.msgpack.encode(tuple(statements))


class Function(msgspec.Struct, array_like=True, dict=True):
    """A function or method. ``start``/``end`` bound its name, ``outer`` the entire definition with decorators.

    ``packed_body`` holds ``body`` and ``packed_statements`` holds ``statements``, since most functions are only asked how to
    call them. ``written`` are the attributes to which it assigns something, or what is written in it does, as dotted targets.
    """

    name: str
    start: int
    end: int
    outer: Span
    params: tuple[Param, ...]
    decorators: tuple[Expr, ...]
    returns: Expr | None
    packed_body: bytes
    stub: bool
    sure: bool = True
    guards: tuple[Guard, ...] = ()
    written: tuple[str, ...] = ()
    packed_statements: bytes = b""

    @cached_property
    def body(self) -> Scope:
        """The facts of its body."""
        return _BODY.decode(self.packed_body)

    def peek_body(self) -> Scope:
        """Return the body without caching it, unless it is already cached."""
        kept: Scope | None = vars(self).get("body")
        return kept if kept is not None else _BODY.decode(self.packed_body)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """Its statements without the docstring; for a lambda, one ``return``."""
        return _STATEMENTS.decode(self.packed_statements) if self.packed_statements else ()

    def peek_statements(self) -> tuple[Statement, ...]:
        """Return the statements without caching them, unless they are already cached."""
        kept: tuple[Statement, ...] | None = vars(self).get("statements")
        return (
            kept if kept is not None else _STATEMENTS.decode(self.packed_statements) if self.packed_statements else ()
        )

    @property
    def span(self) -> Span:
        """Span of its name."""
        return Span(self.start, self.end)

    def param(self, name: str) -> Param | None:
        """Return the parameter of that name."""
        return next((item for item in self.params if item.name == name), None)

    @property
    def sets(self) -> set[str]:
        """The attributes that it writes on its first parameter."""
        this = f"{self.params[0].name}." if self.params else ""
        return {target.removeprefix(this) for target in self.written if this and target.startswith(this)}

    @property
    def decorator_names(self) -> list[str]:
        """The dotted names of its decorators, called or not."""
        return [item.callee or item.text for item in self.decorators]

    @property
    def is_property(self) -> bool:
        """Whether it is read as an attribute."""
        return any(name.rpartition(".")[2] in ("property", "cached_property") for name in self.decorator_names)


class Class(msgspec.Struct, array_like=True, gc=False):
    """A class. ``start``/``end`` bound its name, ``outer`` the entire definition with decorators."""

    name: str
    start: int
    end: int
    outer: Span
    bases: tuple[Expr, ...]
    keywords: tuple[str, ...]
    decorators: tuple[Expr, ...]
    body: Scope
    sure: bool = True
    metaclass: Expr | None = None

    @property
    def span(self) -> Span:
        """Span of its name."""
        return Span(self.start, self.end)


class ModuleFacts(msgspec.Struct, array_like=True, gc=False):
    """All facts of one file; ``error`` and ``error_at`` are the reason and place if it cannot be parsed."""

    body: Scope
    docstring: Span | None = None
    error: str = ""
    error_at: int = 0
    changes: tuple[ContainerChange, ...] = ()


_BODY = msgspec.msgpack.Decoder(Scope)
_STATEMENTS = msgspec.msgpack.Decoder(tuple[Statement, ...])


_REBINDING = ("del", "global", "nonlocal")
"""The words that begin statements by which code binds or deletes names of other scopes, or deletes its own."""

_RUNNING = ("globals", "exec")
"""The functions with which code may bind any name."""


class PythonFile:
    """A Python file: its source and its facts."""

    def __init__(self, source: Source, facts: ModuleFacts) -> None:
        self.source = source
        self.facts = facts

    @property
    def path(self) -> str:
        """The file's path, relative to the workspace."""
        return self.source.path

    @property
    def body(self) -> Scope:
        """The module's own scope."""
        return self.facts.body

    @cached_property
    def rebound(self) -> frozenset[str]:
        """The names that code anywhere in the file deletes or declares global."""
        return frozenset(name for scope in self.body.walk(self._may_rebind) for name in scope.deleted)

    def _may_rebind(self, function: Function) -> bool:
        text = self.text(function.outer)
        return any(may_begin_statement(word, text) for word in _REBINDING)

    @cached_property
    def runs_code(self) -> bool:
        """Whether code anywhere in the file calls ``globals`` or ``exec``, by which it may bind any name."""
        return any(call.callee in _RUNNING for scope in self.body.walk(self._may_run_code) for call in scope.calls)

    def _may_run_code(self, function: Function) -> bool:
        text = self.text(function.outer)
        return any(holds_word(word, text) for word in _RUNNING)

    def with_own_bodies(self) -> PythonFile:
        """Return the same file, with functions that are unpacked separately from those of this object."""
        return PythonFile(self.source, msgspec.structs.replace(self.facts, body=_with_own_bodies(self.facts.body)))

    def forget_bodies(self) -> None:
        """Drop the unpacked contents of its functions. Unpacking again creates new objects."""
        waiting = [self.body]
        while waiting:
            scope = waiting.pop()
            waiting += (item.body for item in scope.classes)
            for function in scope.functions:
                vars(function).clear()

    def text(self, span: Span | Expr) -> str:
        """Return the source text of a span or expression."""
        start, end = (span.start, span.end) if isinstance(span, Expr) else span
        return self.source.text[start:end]

    @cached_property
    def classes(self) -> dict[str, list[Class]]:
        """The top-level classes by name."""
        return _grouped((item.name, item) for item in self.body.classes)

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """The top-level functions by name."""
        return _grouped((item.name, item) for item in self.body.functions)

    @cached_property
    def imports(self) -> dict[str, list[Import]]:
        """The imports of the module's scope by local name."""
        return _grouped((item.name, item) for item in self.body.imports)

    @cached_property
    def assigns(self) -> dict[str, list[Assign]]:
        """The module-level writes by target."""
        return _grouped((item.target, item) for item in self.body.assigns)


def _with_own_bodies(scope: Scope) -> Scope:
    functions = tuple(msgspec.structs.replace(item) for item in scope.functions)
    classes = tuple(msgspec.structs.replace(item, body=_with_own_bodies(item.body)) for item in scope.classes)
    return msgspec.structs.replace(scope, functions=functions, classes=classes)


def _grouped(items: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    """Group items by name."""
    found: dict[str, list[T]] = {}
    for name, item in items:
        found.setdefault(name, []).append(item)
    return found

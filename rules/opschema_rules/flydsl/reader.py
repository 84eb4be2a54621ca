"""Finds the traced functions of a tree, and the tensors that are wrapped and described."""

from __future__ import annotations

from collections.abc import Iterator

from opschema_cli.source.bodies import Body
from opschema_cli.source.python import Expr, Param, PythonFile
from opschema_cli.source.word_index import called_word
from opschema_rules.flydsl.annotations import parameter
from opschema_rules.flydsl.calls import Calls
from opschema_rules.flydsl.contract import Era
from opschema_rules.flydsl.model import Descriptor, FlyTree, Parameter, Traced, TracedKind, Wrap
from opschema_rules.flydsl.names import Names

WRAPPERS = ("from_dlpack", "from_torch_tensor", "TensorAdaptor")
MARKS = ("mark_layout_dynamic", "mark_shape_dynamic", "mark_stride_dynamic", "mark_static")

_KINDS: dict[str, TracedKind] = {"kernel": "kernel", "jit": "jit"}


def params(*names: str) -> tuple[Param, ...]:
    """Return parameters by name; those after ``*`` are keyword-only."""
    cut = names.index("*") if "*" in names else len(names)
    plain = [Param(name, "normal", 0, 0, 0) for name in names[:cut]]
    return (*plain, *(Param(name, "kwonly", 0, 0, 0) for name in names[cut + 1 :]))


DESCRIBERS = {
    "make_buffer_tensor": params("tensor", "max_size", "*", "num_records_bytes"),
    "create_buffer_resource": params("memref_val", "stride", "max_size", "*", "num_records_bytes", "base_byte_offset"),
}
"""The parameters of FlyDSL's functions that make buffer descriptors, for a tree without their source."""

FIRST_DESCRIBERS = {**DESCRIBERS, "make_buffer_tensor": params("tensor", "max_size")}
"""The parameters of these functions up to 0.1.8."""


class Reader:
    """Finds what the files of one tree trace, wrap and describe; the :class:`~opschema_rules.flydsl.model.Finder` of a tree."""

    def __init__(self, tree: FlyTree) -> None:
        self.tree = tree
        self.names = tree.names
        self.bodies = tree.bodies
        self._calls = Calls(tree)
        self._traced: dict[str, list[Traced]] = {}
        self._by_body: dict[Body, Traced | None] = {}
        self._applications: dict[Body, list[Traced]] = {}
        self._compilers = tree.words.aliased(_KINDS)

    def traced_in(self, file: PythonFile) -> list[Traced]:
        """Return the traced functions of a file; in each body, decorated ones come before those that a call traces."""
        if file.path not in self._traced:
            self._traced[file.path] = list(self._find_traced(file))
        return self._traced[file.path]

    def _find_traced(self, file: PythonFile) -> Iterator[Traced]:
        words = self._compilers
        decorated, calling = self.bodies.decorated(file, words), self.bodies.calling(file, words)
        for body in self.bodies.sorted({*decorated, *calling}):
            if body in decorated and (found := self.traced_of(body)) is not None:
                yield found
            if body in calling:
                yield from self.applied_in(body)

    def traced_of(self, body: Body) -> Traced | None:
        """Return the traced function of a body: traced by its decorator, or by a call in any file."""
        if body not in self._by_body:
            self._by_body[body] = next(self._decorated(body), None) or next(self._applied_to(body), None)
        return self._by_body[body]

    def _applied_to(self, body: Body) -> Iterator[Traced]:
        """Yield the traced functions that calls in any file make of a function."""
        words, name = self.tree.words, body.function.name if body.function is not None else ""
        passing = {
            path for word in words.aliased([name]) for path in words.passing(word, body.file.path, self._compilers)
        }
        for path in words.in_order(passing):
            file = self.bodies.program.load(path)
            for caller in self.bodies.calling(file, self._compilers) if file is not None else ():
                yield from (item for item in self.applied_in(caller) if item.body is body)

    def called_in(self, body: Body) -> list[Traced]:
        """Return the traced functions that a body calls, in the order of their first calls."""
        return list(dict.fromkeys(self._calls.called_in(body)))

    def calls_of_result(self, function: Body) -> list[tuple[Body, Expr]]:
        """Return the calls on results of factories that may call an untraced function."""
        return self._calls.of_result(function)

    def wraps_in(self, file: PythonFile) -> list[Wrap]:
        """The tensors that a file wraps."""
        words = self.tree.words.aliased(WRAPPERS)
        return [wrap for body in self.bodies.calling(file, words) for wrap in _wraps(self.names, body, words)]

    def descriptors_in(self, file: PythonFile) -> list[Descriptor]:
        """The descriptors that a file makes."""
        words = self.tree.words.sized() | self.tree.words.aliased(DESCRIBERS)
        bodies = self.bodies.calling(file, words)
        return [item for body in bodies for item in _descriptors(self.tree, body, words)]

    def _decorated(self, body: Body) -> Iterator[Traced]:
        """Yield the function of a body, if a decorator traces it."""
        around = body.parent or body
        for decorator in body.function.decorators if body.function is not None else ():
            target = decorator.items[0] if decorator.kind == "call" else decorator
            kind = _KINDS.get(_compiler(self.names, around, target))
            if kind is not None:
                yield Traced(body, kind, decorator, _parameters(self.names, body), self._calls.of)

    def applied_in(self, body: Body) -> list[Traced]:
        """Return the functions that ``flyc.jit(function)`` traces in a body."""
        if body not in self._applications:
            self._applications[body] = list(self._find_applied(body))
        return self._applications[body]

    def _find_applied(self, body: Body) -> Iterator[Traced]:
        for call in _calls(body, self._compilers):
            kind = _KINDS.get(_compiler(self.names, body, call.items[0]))
            arguments = call.positional() if kind is not None else []
            named = bool(arguments) and arguments[0].kind == "name"
            target = self.bodies.called(body, arguments[0].text) if named else None
            if kind is not None and target is not None:
                yield Traced(target, kind, call, _parameters(self.names, target), self._calls.of)


def _calls(body: Body, words: frozenset[str]) -> Iterator[Expr]:
    """Yield the calls in a body whose last word is one of these."""
    return (call for call in body.scope.calls if called_word(call.items[0]) in words)


def _compiler(names: Names, body: Body, expr: Expr) -> str:
    """Return the last word of a name of ``flydsl.compiler``."""
    full = names.full(body, expr.text) if expr.kind == "name" else ""
    return full.rpartition(".")[2] if full.startswith("flydsl.compiler.") else ""


def _parameters(names: Names, body: Body) -> tuple[Parameter, ...]:
    return tuple(parameter(names, body.parent or body, item) for item in body.params)


def _wraps(names: Names, body: Body, words: frozenset[str]) -> Iterator[Wrap]:
    marks = {
        item.items[0].items[0].span: item
        for item in body.scope.calls
        if item.items[0].kind == "attribute" and item.items[0].text in MARKS
    }
    for call in _calls(body, words):
        api = _compiler(names, body, call.items[0])
        if api in WRAPPERS:
            chain: list[Expr] = []
            while (found := marks.get((chain[-1] if chain else call).span)) is not None:
                chain.append(found)
            yield Wrap(body, call, api, tuple(chain))


def _descriptors(tree: FlyTree, body: Body, words: frozenset[str]) -> Iterator[Descriptor]:
    names = tree.names
    is_first = tree.contract.surely(Era.BAKED) and not tree.contract.own
    for call in _calls(body, words):
        if not call.callee:
            continue
        api, found = names.called(body, call), names.parameters(body, call.callee)
        if found is None and api in DESCRIBERS:
            own = tree.answers.definition(api)
            found = (api, own.function.params) if own is not None else None
        if found is not None:
            name, taken = found[0], {item.name for item in found[1][1:]}
            if "max_size" in taken and (name in DESCRIBERS or "num_records_bytes" in taken):
                yield Descriptor(body, call, *found)
        elif api in DESCRIBERS:
            yield Descriptor(body, call, api, (FIRST_DESCRIBERS if is_first else DESCRIBERS)[api])

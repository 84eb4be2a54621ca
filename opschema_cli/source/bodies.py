"""The bodies of a package's Python code, each with the enclosing ones, and the meanings of names in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from opschema_cli.source.body_tree import Body, BodyTree
from opschema_cli.source.program import ClassRef, External, FunctionRef, Program, Resolution, Unresolved
from opschema_cli.source.python import Assign, Expr, Function, Import, Param, PythonFile
from opschema_cli.source.resolution import bindings_of
from opschema_cli.source.word_index import WordIndex, index_words, scopes_of

__all__ = ["Bodies", "Body", "argument_for", "arguments_for", "param_for", "params_for"]


class Bodies(BodyTree):
    """All bodies of a program's package, found by the words in them.

    If the words are kept, ``index`` gives those of a file, ``callers`` the files that may call a function, and ``heirs`` those
    that may have a class below one.
    """

    def __init__(
        self,
        program: Program,
        paths: Iterable[str],
        index: Callable[[PythonFile], WordIndex] | None = None,
        callers: Callable[[Body], Iterable[str]] | None = None,
        heirs: Callable[[ClassRef], Iterable[str]] | None = None,
    ) -> None:
        super().__init__()
        self.program = program
        self._index = index
        self._callers = callers
        self._heirs = heirs
        self._indexes: dict[str, WordIndex] = {}
        self.paths = list(paths)
        self._lambdas: dict[int, Body] = {}
        self._calls: dict[Body, list[tuple[Body, Expr]]] = {}
        self._called: dict[Body, dict[str, list[Expr]]] = {}
        self._meanings: dict[tuple[str, str], Resolution] = {}

    def share_calls(self, other: Bodies) -> None:
        """Share the bodies, and the known calls in each, with another object."""
        self.share_bodies(other)
        self._lambdas, self._called = other._lambdas, other._called

    def forget(self) -> None:
        """Drop all bodies, their unpacked contents, and the calls in them."""
        super().forget()
        for known in (self._lambdas, self._called, self._calls):
            known.clear()

    @cached_property
    def files(self) -> list[PythonFile]:
        """The package's files that can be parsed."""
        return [file for file in map(self.program.load, self.paths) if file is not None]

    def files_holding(self, *words: str) -> Iterator[PythonFile]:
        """Yield the files whose text contains one of the words."""
        return (file for file in self.files if any(word in file.source.text for word in words))

    def holding(self, *words: str) -> Iterator[Body]:
        """Every body of these files."""
        for file in self.files_holding(*words):
            yield from self.of(file)

    def near(self, *words: str) -> Iterator[Body]:
        """Yield every body whose own text, or that of a nested one, contains one of the words."""
        for file in self.files_holding(*words):
            yield from self.of(file, partial(_holds, file.source.text, words))

    def function(self, ref: FunctionRef) -> Body | None:
        """Return the body of a function."""
        return self.defined(ref.file, ref.function)

    def cls(self, ref: ClassRef) -> Body | None:
        """Return the body of a class."""
        return self.defined(ref.file, ref.cls)

    def of_lambda(self, body: Body, expr: Expr) -> Body | None:
        """Return the body of a lambda in another body; None for anything else."""
        found = next((item for item in body.scope.lambdas if item.span == expr.span), None)
        if found is None:
            return None
        return self._lambdas.setdefault(id(found), Body(body.file, found, None, body))

    # Names

    def resolve(self, body: Body, dotted: str) -> Resolution:
        """Return the meaning of a dotted name in a body."""
        first = dotted.partition(".")[0]
        if first in body.visible or self.program.patches.collecting:
            binder = body.binder(first)
            if binder is not None and any(item.name == first for item in binder.params):
                return Unresolved(f"`{first}` is a parameter")
            return self.program.resolve(body.file, dotted, body.scopes)
        key = (body.file.path, dotted)
        found = self._meanings.get(key)
        if found is None:
            found = self._meanings[key] = self.program.resolve(body.file, dotted)
        return found

    def imported_from(self, body: Body, dotted: str) -> tuple[str, str] | None:
        """Return the other module, and the name in it, that a dotted name refers to through one import; see
        :meth:`Program.imported_from`.
        """
        scopes = body.scopes if dotted.partition(".")[0] in body.visible else ()
        return self.program.imported_from(body.file, dotted, scopes)

    def imported_name(self, body: Body, dotted: str) -> str:
        """Return the full name of a dotted name, according to the import that binds its first word; empty if another statement
        may bind it.
        """
        first, _, rest = dotted.partition(".")
        scope = (body.binder(first) or self.module(body.file)).scope
        others = [item for item in bindings_of(scope, first) if not isinstance(item, Import)]
        if not all(
            isinstance(item, Assign) and item.value is not None and item.value.kind == "const" for item in others
        ):
            return ""  # not just `None` if the import fails
        names = {self.program.imported_name(body.file, item) for item in scope.imports if item.name == first}
        name = names.pop() if len(names) == 1 else None
        return ".".join(filter(None, (name, rest))) if name else ""

    def external(self, body: Body, dotted: str) -> str:
        """Return the full name of an object outside the workspace; empty for anything else."""
        found = self.resolve(body, dotted) if dotted else None
        return found.name if isinstance(found, External) else ""

    def called(self, body: Body, callee: str) -> Body | None:
        """Return the body of the function or method of the package that ``callee`` names; None if it is not known."""
        first, _, rest = callee.partition(".")
        if rest and "." not in rest and first == body.this and body.owner is not None:
            member = self.program.member(body.owner, rest)
            return self.function(member) if isinstance(member, FunctionRef) else None
        found = self.resolve(body, callee) if callee else None
        return self.function(found) if isinstance(found, FunctionRef) else None

    def calls_of(self, target: Body) -> list[tuple[Body, Expr]]:
        """Return every call that names the function ``target``, and the body that contains it."""
        if target not in self._calls:
            name = target.function.name if target.function is not None else ""
            bodies = (
                (body for file in self._naming(target, name) for body in self.calling(file, [name])) if name else ()
            )
            calls = ((body, call) for body in bodies for call in self._calls_in(body).get(name, ()))
            self._calls[target] = [(body, call) for body, call in calls if self.called(body, call.callee) is target]
        return self._calls[target]

    def _calls_in(self, body: Body) -> dict[str, list[Expr]]:
        """Return the calls in a body, by the last word of the called name."""
        if body not in self._called:
            found: dict[str, list[Expr]] = {}
            for call in body.scope.calls:
                found.setdefault(call.callee.rpartition(".")[2], []).append(call)
            self._called[body] = found
        return self._called[body]

    def words(self, file: PythonFile) -> WordIndex:
        """Return the words of a file's calls and decorators."""
        found = self._indexes.get(file.path)
        if found is None:
            index = self._index(file) if self._index is not None else index_words(scopes_of(file, keep=True))
            found = self._indexes[file.path] = index
        return found

    def _naming(self, target: Body, name: str) -> Iterable[PythonFile]:
        """Return the files that may call a function; without an index of all files, those whose text contains its name."""
        if self._callers is not None:
            return filter(None, map(self.program.load, self._callers(target)))
        return (file for file in self.files if name in file.source.text)

    def calling(self, file: PythonFile, words: Iterable[str]) -> list[Body]:
        """Return the bodies of a file that call functions with one of these last words, in the order of :meth:`of`."""
        calls = self.words(file).calls
        return self.starting(file, {start for word in words for start in calls.get(word, ())})

    def decorated(self, file: PythonFile, words: Iterable[str]) -> list[Body]:
        """Return the functions of a file with a decorator that has one of these last words, in the order of :meth:`of`."""
        decorators = self.words(file).decorators
        return self.starting(file, {start for word in words for start in decorators.get(word, ())})

    # Classes

    @cached_property
    def classes(self) -> list[ClassRef]:
        """Every top-level class."""
        return [ClassRef(file, cls) for file in self.files for cls in file.body.classes]

    @cached_property
    def _below(self) -> dict[ClassRef, list[ClassRef]]:
        found: dict[ClassRef, list[ClassRef]] = {}
        for ref in self.classes:
            for ancestor in self.program.lineage(ref):
                found.setdefault(ancestor, []).append(ref)
        return found

    def family(self, ref: ClassRef) -> list[ClassRef]:
        """Return a class, its ancestors and its descendants: an instance may run methods of all of them."""
        return list(dict.fromkeys([ref, *self.program.lineage(ref), *self._descendants(ref)]))

    def _descendants(self, ref: ClassRef) -> Iterable[ClassRef]:
        """Return the top-level subclasses of a class. Without an index of all files, every file is decoded for this."""
        if self._heirs is None:
            return self._below.get(ref, ())
        files = filter(None, map(self.program.load, self._heirs(ref)))
        candidates = (ClassRef(file, cls) for file in files for cls in file.body.classes if cls.bases)
        return [item for item in candidates if ref in self.program.lineage(item)]


def _holds(text: str, words: Iterable[str], function: Function) -> bool:
    start, end = function.outer
    return any(text.find(word, start, end) >= 0 for word in words)


def param_for(call: Expr, index: int, params: Sequence[Param]) -> Param | None:
    """Return the parameter for the argument ``call.items[index]``; None if unpacking hides it."""
    return params_for(call, params)[index - 1]


def params_for(call: Expr, params: Sequence[Param]) -> list[Param | None]:
    """Return the parameter for each argument of a call; None if unpacking hides it."""
    by_name: dict[str, Param] = {}
    for item in params:
        if item.kind in ("normal", "kwonly"):
            by_name.setdefault(item.name, item)
    plain = [item for item in params if item.kind in ("posonly", "normal")]
    found: list[Param | None] = []
    place, hidden = 0, False
    for keyword in call.keywords:
        hidden = hidden or keyword == "*"
        taken = by_name.get(keyword) if keyword else plain[place] if place < len(plain) else None
        found.append(None if hidden else taken)
        place += not keyword
    return found


def argument_for(call: Expr, params: Sequence[Param], name: str) -> Expr | None:
    """Return the argument that a call passes for the parameter ``name``; None if there is none or unpacking hides it."""
    return arguments_for(call, params).get(name)


def arguments_for(call: Expr, params: Sequence[Param]) -> dict[str, Expr]:
    """Return the arguments of a call by parameter name, without those that unpacking hides; for repeated ones, the first."""
    found: dict[str, Expr] = {}
    for param, item in zip(params_for(call, params), call.items[1:], strict=True):
        if param is not None:
            found.setdefault(param.name, item)
    return found

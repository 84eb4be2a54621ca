"""Reads the entries that a golden harness runs in pypto-lib and pypto, each with its specs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from opschema_cli.cached_on_argument import cached_on_argument
from opschema_cli.evaluation.expected_errors import allows_any_error
from opschema_cli.evaluation.origins import origins
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies, Body, param_for
from opschema_cli.source.program import ClassRef, FunctionRef, Program
from opschema_cli.source.python import Expr, PythonFile
from opschema_cli.source.text import Span
from opschema_rules.pypto.compared_outputs import unused_comparisons
from opschema_rules.pypto.golden_keys import unknown_keys
from opschema_rules.pypto.language import called, direction_of, entries, full_name, is_entry, language_name
from opschema_rules.pypto.language_calls import wrong_calls
from opschema_rules.pypto.model import EntryParam, SpecEntry, SpecItem, SpecOrder, UnknownKey, UnusedComparison
from opschema_rules.pypto.spec_lists import SpecLists, Specs

_LOADS = ("load", "slice", "read", "tensor.slice", "tensor.read", "tile.load")
_RUNS = frozenset({"run", "run_jit", "compile_and_run"})
_SPECS = {"TensorSpec", "ScalarSpec"}
_PASSES_ELSE, _MOST_PASSED = {"runtime_dir", "*", "**"}, 10
"""Arguments of ``run_jit()`` because of which the function may not get the specs, and the number of arguments before them."""

_EXPECTS_ERROR = re.compile(
    r"\b(?:raises|assertRaises\w*|xfail|expectedFailure|suppress|monkeypatch|patch|mock|setattr|globals)\b"
    r"|[.@]skip\w*|\bskip\w*\s*\("
    r"|\bassert\s+not\b|\bassert\b[^\n]*\bFalse\b|\bimport\s*\*|(?m:^\s*except\b)"
)
_RAISES = re.compile(r"\b(?:raises|assertRaises\w*|xfail|expectedFailure)\b")
_INNER = re.compile(r"\b(?:for|lambda)\b([^\n:]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")
_HARNESSES = frozenset({"golden", "pypto"})


def read_entries(project: Project, paths: Iterable[str]) -> list[SpecEntry]:
    """Return the entries that some Python files pass specs to."""
    known = list(paths)
    project.load_python(known)
    bodies = Bodies(Program(project.workspace.files, project.python, known), known)
    return Pairs(project, bodies, SpecLists(bodies, TreeEvaluator(bodies))).entries()


class Pairs(msgspec.Struct):
    """Entries and specs that are passed together."""

    project: Project
    bodies: Bodies
    lists: SpecLists
    found: dict[tuple[str, int], tuple[Body, list[Specs]]] = msgspec.field(default_factory=dict)
    ordered: dict[tuple[str, int], list[SpecOrder]] = msgspec.field(default_factory=dict)
    keys: dict[tuple[str, int], list[UnknownKey]] = msgspec.field(default_factory=dict)
    unused: dict[tuple[str, int], list[UnusedComparison]] = msgspec.field(default_factory=dict)
    followed: set[Body] = msgspec.field(default_factory=set)
    succeeding: set[tuple[str, int]] = msgspec.field(default_factory=set)

    def entries(self) -> list[SpecEntry]:
        """Return every entry, with all specs that are passed to it."""
        for file in self.bodies.files:
            for body in self.bodies.of(file):
                self._of_calls(body)
                self._of_class(body)
        made = {key: self._entry(body, lists) for key, (body, lists) in self.found.items()}
        for key, (body, _) in self.found.items():
            for param in made[key].params if made[key].host else ():
                self._hand_on(made, body, param)
        return list(made.values())

    def _hand_on(self, made: dict[tuple[str, int], SpecEntry], body: Body, param: EntryParam) -> None:
        """Pass the specs of a host's parameter on to the parameter of the function that receives it."""
        target, index = handed_to(self.bodies, body, param.param.name) if param.specs else (None, 0)
        if target is None:
            return
        key = _key(target)
        entry = made.get(key) or made.setdefault(key, self._entry(target, []))
        own = entry.params[index]
        specs = tuple({(item.file.path, item.call.start): item for item in (*own.specs, *param.specs)}.values())
        hosts = (*own.hosts, body.at(param.param.span))
        entry.params[index] = replace(own, specs=specs, whole=own.whole and param.whole, hosts=hosts)

    def _of_calls(self, body: Body) -> None:
        """Join the functions and specs that ``run_jit(fn=..., specs=...)`` and similar calls pass together."""
        for call in body.scope.calls:
            entry, specs = _passed(call)
            if entry is None or specs is None:
                continue
            lists = self.lists.of(body, specs)
            candidates = list(self._candidates(body, entry))
            if len(candidates) == 1 and candidates[0][1] is None and self._is_harness(body, call):
                self._order(candidates[0][0], body, specs, counted=self._is_counted(candidates[0][0], body, call))
                if _assigned(body.file) is not None and self.lists.in_order(body, specs):
                    unknown = unknown_keys(self.bodies, body, call, lists)
                    self.keys.setdefault(_key(candidates[0][0]), []).extend(unknown)
                    self.unused.setdefault(_key(candidates[0][0]), []).extend(unused_comparisons(body, call, lists))
            is_sure = not _expects_exception(body.file) and not allows_any_error(self.bodies, body, call.start)
            self.succeeding.update(_key(function) for function, _ in candidates if is_sure)
            for function, at in candidates:
                for found in lists:
                    if (
                        found.at == at
                        or (at is None and len(candidates) == 1)
                        or (found.at is None and len(lists) == 1)
                    ):
                        self._file(function, found)

    def _candidates(self, body: Body, expr: Expr) -> Iterator[tuple[Body, Span | None]]:
        """Yield the entries that an argument may refer to, each with the conditional statement that chooses it."""
        found = list(entries(self.bodies, body, expr))
        yield from ((item, None) for item in found)
        if not found and expr.kind == "name" and "." not in expr.text:
            evaluator = self.lists.evaluator
            for choice in origins(evaluator, evaluator.frames.at(body), expr.text, expr.start):
                if choice.index is None:
                    chosen = entries(self.bodies, choice.frame.body, choice.expr)
                    yield from ((item, choice.guard) for item in chosen)

    def _of_class(self, body: Body) -> None:
        """Join the specs and programs that a pypto test case returns: ``define_tensors()`` and ``get_program()``."""
        names = {item.name for item in body.cls.body.functions} if body.cls is not None else set()
        if body.cls is None or not names & {"define_tensors", "get_program"}:
            return
        ref = ClassRef(body.file, body.cls)
        methods = [self.bodies.program.member(ref, name) for name in ("define_tensors", "get_program")]
        held = [self.bodies.function(item) for item in methods if isinstance(item, FunctionRef)]
        known = [item for item in held if item is not None]
        if len(known) != 2 or any(len(item.scope.returns) != 1 for item in known):
            return
        for function in entries(self.bodies, known[1], known[1].scope.returns[0]):
            if not _expects_exception(body.file):
                self.succeeding.add(_key(function))
            for found in self.lists.of(known[0], known[0].scope.returns[0]):
                self._file(function, found)
            self._order(function, known[0], known[0].scope.returns[0], counted=False)

    def _is_harness(self, body: Body, call: Expr) -> bool:
        """Whether a call is of the harness of pypto-lib or pypto, which passes specs in order."""
        module, _, name = full_name(self.bodies, body, call.callee).rpartition(".")
        return name in _RUNS and module.partition(".")[0] in _HARNESSES and not _expects_exception(body.file)

    def _is_counted(self, entry: Body, body: Body, call: Expr) -> bool:
        """Whether each spec in a call is known to be one argument of a function, in a run that should succeed."""
        function, outer = entry.function, entry.parent
        if function is None or outer is not self.bodies.module(entry.file) or len(function.decorators) != 1:
            return False
        is_jit = language_name(self.bodies, outer, function.decorators[0].text) == "jit"
        required = all(item.kind in ("posonly", "normal") and item.default is None for item in function.params)
        given, _ = _passed(call)
        is_named = given is not None and given.kind == "name" and given.text == function.name
        passes = _PASSES_ELSE.isdisjoint(call.keywords) and len(call.positional()) <= _MOST_PASSED
        runs = call.callee.rpartition(".")[2] == "run_jit" and passes
        names = [_assigned(file) for file in (entry.file, body.file)]
        is_once = all(found is not None and function.name not in found for found in names)
        return is_jit and required and is_named and runs and is_once

    def _order(self, function: Body, body: Body, expr: Expr, *, counted: bool) -> None:
        """Record specs that are passed in the order in which they are written."""
        if self.lists.in_order(body, expr):
            orders = [_ordered(found, counted=counted) for found in self.lists.of(body, expr) if found.whole]
            self.ordered.setdefault(_key(function), []).extend(orders)

    def _file(self, function: Body, found: Specs) -> None:
        self.found.setdefault(_key(function), (function, []))[1].append(found)

    def _entry(self, body: Body, lists: list[Specs]) -> SpecEntry:
        function, outer = body.function, body.parent or body
        assert function is not None
        whole = all(found.whole for found in lists)
        read = {call.items[1].text for call in body.scope.calls if len(call.items) > 1 and self._loads(body, call)}
        params = [
            EntryParam(
                item,
                direction_of(self.bodies, outer, item.annotation),
                _named(lists, item.name),
                whole,
                item.name in read,
            )
            for item in function.params
        ]
        names = {language_name(self.bodies, outer, name) for name in function.decorator_names}
        spelled = {name: self._spelled(outer, name) for name in ("Out", "InOut")}
        known = {name: text for name, text in spelled.items() if text}
        host = "jit.host" in names
        succeeds = _key(body) in self.succeeding and not _expects_exception(body.file)
        wrong = tuple(wrong_calls(self.bodies, body, self.followed)) if succeeds else ()
        expects = _expects_exception(body.file)
        misfits = (
            () if expects else tuple(dict.fromkeys(item.misfit for item in _all(lists) if item.misfit is not None))
        )
        ordered, keys = tuple(self.ordered.get(_key(body), ())), tuple(self.keys.get(_key(body), ()))
        unused = tuple(self.unused.get(_key(body), ()))
        place = (self.project, body.file, function.name, function.span, function.outer)
        return SpecEntry(*place, host, params, known, ordered, wrong, keys, misfits, unused)

    def _loads(self, body: Body, call: Expr) -> bool:
        return call.callee.endswith(_LOADS) and language_name(self.bodies, body, call.callee) in _LOADS

    def _spelled(self, body: Body, name: str) -> str:
        """Return a body's spelling of a name of pypto's language; empty if it imports none."""
        for item in (*body.scope.imports, *self.bodies.module(body.file).scope.imports):
            for text in (f"{item.name}.{name}", item.name):
                if language_name(self.bodies, body, text) == name:
                    return text
        return ""


def _key(body: Body) -> tuple[str, int]:
    assert body.function is not None
    return body.file.path, body.function.start


def _ordered(found: Specs, *, counted: bool) -> SpecOrder:
    every = found.written if counted and found.written is not None else ()
    if every and all(item.call.callee in _SPECS and _assigned(item.file) is not None for item in every):
        return SpecOrder(every, counted=True)
    return SpecOrder(found.items, counted=False)


@cached_on_argument
def _assigned(file: PythonFile) -> frozenset[str] | None:
    """The names that a file may rebind; None if it may expect an error, or takes specs or ``run_jit()`` from anywhere but the
    harness.
    """
    scopes = list(file.body.walk())
    defined = {item.name for scope in scopes for item in scope.classes}
    defined |= {item.name for scope in scopes for item in scope.functions}
    imports = [item for scope in scopes for item in scope.imports if item.name in _SPECS]
    assigned = frozenset(item.target for scope in scopes for item in scope.assigns)
    own = all(item.module.partition(".")[0] in _HARNESSES and item.attr == item.name for item in imports)
    text = file.source.text
    is_plain = own and not {*_SPECS, "run_jit"} & (defined | assigned) and not _EXPECTS_ERROR.search(text)
    inner = {name for part in _INNER.findall(text) for name in _WORD.findall(part)}
    return assigned | inner if is_plain else None


@cached_on_argument
def _expects_exception(file: PythonFile) -> bool:
    return _RAISES.search(file.source.text) is not None


def handed_to(bodies: Bodies, body: Body, name: str) -> tuple[Body | None, int]:
    """Return the compiled function that a host passes its own parameter or a part of it (``x[rank]``) to, and the index of the
    receiving parameter; None if it does anything else with it.
    """
    found: set[tuple[Body, int]] = set()
    handed: set[int] = set()
    for call in body.scope.calls:
        for place, item in enumerate(call.items):
            value = item.items[0] if item.kind == "subscript" else item
            if place and value.kind == "name" and value.text == name:
                target = called(bodies, body, call)
                param = param_for(call, place, target.params) if target is not None else None
                if target is None or param is None or not is_entry(bodies, target):
                    return None, 0
                handed.add(value.start)
                found.add((target, target.params.index(param)))
    returned = {item.start for value in body.scope.returns for item in value.walk()}
    others = [item for item in body.scope.uses if item.name == name and item.start not in handed | returned]
    if len(found) != 1 or others or any(item.target == name for item in body.scope.assigns):
        return None, 0
    return found.pop()


def _passed(call: Expr) -> tuple[Expr | None, Expr | None]:
    """Return the entry and the specs that one call passes."""
    runs = call.callee.rpartition(".")[2] in _RUNS
    if not runs and "specs" not in call.keywords:
        return None, None
    entry = call.keyword("fn") or call.argument("program", 0 if runs else None)
    return entry, call.argument("specs", 1 if runs else None)


def _all(lists: Iterable[Specs]) -> Iterator[SpecItem]:
    """Yield the specs of some lists, including those of scalars, without those of files that may expect an error."""
    for specs in lists:
        yield from (item for item in (*specs.items, *(specs.written or ())) if not _expects_exception(item.file))


def _named(lists: Iterable[Specs], name: str) -> tuple[SpecItem, ...]:
    """Return the distinct specs of one name."""
    found = (item for specs in lists for item in specs.items if item.name == name)
    return tuple({(item.file.path, item.call.start): item for item in found}.values())

"""Detects operators registered with ``torch.library`` and loads them, each with all that is registered for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.lint.diagnostic import NotUnderstood
from opschema_cli.lint.pack import Description, Entry, Loaded, Pack, Speed, collect_rules
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.source.python import PythonFile
from opschema_rules.torchlib import rules
from opschema_rules.torchlib.annotations import Annotations
from opschema_rules.torchlib.calls import CallFinder
from opschema_rules.torchlib.definitions import Definer
from opschema_rules.torchlib.describe import describe_tree
from opschema_rules.torchlib.detection import (
    TorchlibOptions,
    claims,
    cpp_sources,
    detect,
    reaching,
    registering,
    sources,
)
from opschema_rules.torchlib.dialect import TORCH
from opschema_rules.torchlib.examples import example_files
from opschema_rules.torchlib.inference import Inferrer
from opschema_rules.torchlib.mentions import REGISTERS_CLASSES, files_that_call, files_that_mention, files_that_use
from opschema_rules.torchlib.model import Operator, Tree
from opschema_rules.torchlib.operators import Join
from opschema_rules.torchlib.outlines import Words
from opschema_rules.torchlib.reach import handed_on, reaches
from opschema_rules.torchlib.registrations import Walker, helpers
from opschema_rules.torchlib.show import show
from opschema_rules.torchlib.sightings import SIGHTINGS
from opschema_rules.torchlib.versions import find_release

if TYPE_CHECKING:
    from opschema_rules.torchlib.cpp_model import CppOperators

MAX_ROUNDS = 3
"""How often files that call newly found helpers are looked for."""


def load(project: Project, options: TorchlibOptions) -> Loaded:
    """All operators of the workspace."""
    tree = read_tree(project, options)
    operators = [item for item in tree.operators if not _is_of_magi(item)]
    loaded = Loaded(ops=len(operators))
    loaded.subjects += [*operators, *tree.strays, tree]
    loaded.unresolved += [NotUnderstood(place, reason) for place, reason in tree.unresolved]
    loaded.entries += [entry for operator in operators for entry in _entries(operator)]
    return loaded


def describe(project: Project, options: TorchlibOptions) -> list[Description]:
    """For which torch the operators are judged, and what is not known of them."""
    return [describe_tree(read_tree(project, options))]


def _is_of_magi(operator: Operator) -> bool:
    """Whether MagiCompiler's decorator, in the tree itself, makes the operator: the pack ``magi`` judges it."""
    body, call = operator.definition.body, operator.definition.call
    named = call is not None and call.callee.rpartition(".")[2] == "magi_register_custom_op"
    return named or (body is not None and f"/{body.file.path}".endswith("/magi_compiler/_magi_register_custom_op.py"))


def _entries(operator: Operator) -> Iterable[Entry]:
    body = operator.definition.function
    if body is not None and body.function is not None:
        names = sorted(operator.names or ())
        yield Entry(body.file.path, body.function.span, body.function.outer, names[0] if len(names) == 1 else "")


def read_tree(project: Project, options: TorchlibOptions) -> Tree:
    """The operators of a workspace, with what is registered for them."""
    modules = sources(project, options)
    paths, words = _search(project, options).finish()
    evaluator = Evaluator(Bodies(Program(project.workspace.files, project.python, paths), paths), (TORCH,))
    tree = Tree(project, evaluator, find_release(project, options.torch))
    opaque = any(found for _, found in project.scan(REGISTERS_CLASSES, modules))
    definer = Definer(evaluator, Inferrer(Annotations(evaluator, opaque=opaque), tree.torch))
    join = Join(tree, evaluator, definer)
    walker = Walker(evaluator, filter(None, map(project.python, paths)), words)
    join.join(walker.walk_all(), _cpp(project, options))
    callers = files_that_call(project, tree.operators, set(modules) - set(paths))
    project.load_python(callers)
    finder = CallFinder(evaluator, join, tree.operators)
    for asked in (paths, callers):  # the latter are parsed meanwhile
        finder.find(project, [file for file in map(project.python, asked) if file is not None])
    return tree


class _Search:
    """The search for files that register, or call helpers that do, and for the words by which they may.

    It begins with the files that get hold of ``torch.library``. Others that hold its words join where they import from a file
    that was found: in many trees ``register_fake`` is another one.
    """

    def __init__(self, project: Project, options: TorchlibOptions) -> None:
        self.project = project
        self.found = _reaching(project, options)
        self.words = Words(project)
        self._modules = set(sources(project, options))
        self._left = set(registering(project, options)) - set(self.found) if self.found else set[str]()
        self._next, self._rounds = list(self.found), 0

    def step(self) -> list[str]:
        """The files that are to be looked at next, once those before them are."""
        if self._next and self._rounds < MAX_ROUNDS:
            self.project.load_python(self._next)
            new = [file for file in map(self.project.python, self._next) if file is not None]
            self.words.add(new)
            known = filter(None, map(self.project.python, self.found))
            more = set(files_that_use(self.project, helpers(known, self.words), self._modules - set(self.found)))
            more.update(self._joining(new))
            self._left -= more
            self._next, self.found = sorted(more), self.found + sorted(more)
            self._rounds += 1
        return self._next if self._rounds < MAX_ROUNDS else []

    def _joining(self, new: Sequence[PythonFile]) -> list[str]:
        """The files that hold words of ``torch.library`` and import from new files."""
        handed = (handed_on(file, self.words.of(file.path)) for file in new)
        return files_that_mention(self.project, set().union(*handed), self._left) if self._left else []

    def finish(self) -> tuple[list[str], Words]:
        """All such files, and their words."""
        while self.step():
            pass
        return sorted(self.found), self.words


def _reaching(project: Project, options: TorchlibOptions) -> list[str]:
    """The files that get hold of ``torch.library``; of many only comments speak of it."""
    paths = list(reaching(project, options))
    project.load_python(paths)
    return [file.path for file in filter(None, map(project.python, paths)) if reaches(file)]


@lru_cache(maxsize=2)
def _search(project: Project, options: TorchlibOptions) -> _Search:
    return _Search(project, options)


def _reads_on(project: Project, options: TorchlibOptions) -> list[str]:
    return _search(project, options).step()


def _cpp(project: Project, options: TorchlibOptions) -> CppOperators | None:
    """What the C++ of the workspace defines and registers; None if there is nothing of it."""
    paths = cpp_sources(project, options)
    if not paths:
        return None
    # Not at the top: most trees register in Python alone.
    from opschema_rules.torchlib.cpp import read_cpp

    return read_cpp(project, paths)


PACK = Pack(
    name="torchlib",
    claims=claims,
    unread=SIGHTINGS,
    summary="operators of torch.library: schemas against fakes, kernels, autograd and callers",
    detect=detect,
    load=load,
    rules=collect_rules(rules),
    options=TorchlibOptions,
    example=example_files,
    show=show,
    describe=describe,
    speed=Speed(reads_on=_reads_on),
)

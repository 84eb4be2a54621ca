"""A pack as the engine sees it: how to detect and load one kind of op schema repository, and its rules."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from opschema_cli.authoring import refuse, with_options
from opschema_cli.errors import OpschemaError
from opschema_cli.lint.examples import files_named
from opschema_cli.lint.loaded import Loaded
from opschema_cli.lint.pack_checks import check_detection, check_records, check_rules
from opschema_cli.lint.rule import Rule
from opschema_cli.lint.unread import Sighting
from opschema_cli.project import Project
from opschema_cli.source.text import Span

if TYPE_CHECKING:
    from opschema_cli.lint.diagnostic import Diagnostic
    from opschema_cli.lint.torch_uses import TorchUse
    from opschema_cli.migrate.migration import Migration
    from opschema_cli.operators.answers import RowAnswer
    from opschema_cli.operators.model import Operator, WorkloadRow
    from opschema_cli.verify.model import Limits, Plan


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pack without options of its own."""


class Fact(msgspec.Struct, frozen=True):
    """A fact that a pack found about a workspace: its name, its value, and where it comes from or what it means."""

    name: str
    value: str
    note: str = ""


class Description(msgspec.Struct, frozen=True):
    """A pack's reading of one part of a workspace, for ``--show-settings``; ``hint`` says how to change it."""

    title: str
    facts: Sequence[Fact]
    hint: str = ""


class StubRequest(msgspec.Struct, frozen=True):
    """A request of ``opschema stubs``: the stubs of the file ``source``, to lie in the folder ``output_dir`` (empty: where a
    pack finds earlier ones, or beside the source), checked against the kernels in ``impl_path`` if that is given. ``python``
    is the interpreter whose packages hold the generator. Paths are the workspace's.
    """

    source: str
    python: str
    output_dir: str = ""
    impl_path: str = ""


class StubsRefused(OpschemaError):  # noqa: N818 - the generator's answer
    """The generator rejects the source."""


class Stubs(msgspec.Struct, frozen=True):
    """The output of a generator for a source: texts by path with line feeds only, and None for a file of an earlier run that is
    no longer made. ``generator`` is its name and version.
    """

    files: Mapping[str, str | None]
    generator: str


class StubMaker(msgspec.Struct, frozen=True):
    """A pack's generator of code from its declarations.

    ``sources`` are the files that it can be generated from. ``make`` asks the generator, which runs in a process of its own;
    it raises StubsRefused with what that says, and OpschemaError if it cannot be asked. ``is_generated`` decides from its text
    whether a file is an earlier result, which may be overwritten. ``later`` are the codes of rules that judge the code which
    is written after the stubs. ``bodies`` returns a file of the workspace with bodies for the code that is missing; None if none
    is missing.
    """

    sources: Callable[[Project, Any], Sequence[str]]
    make: Callable[[Project, Any, StubRequest], Stubs]
    is_generated: Callable[[str], bool]
    later: Sequence[str] = ()
    bodies: Callable[[Project, Any, str, str], str | None] | None = None


class FileSchema(msgspec.Struct, frozen=True):
    """The JSON Schema (draft 2020-12) of one kind of file, made from the same data that rules check with.

    ``text`` returns it as JSON, ``files`` the files of a workspace that it is of. Editors complete by it: keys, values of an
    ``enum``, and where ``x-values`` says so names of operators (``operator``) or dtypes (``dtype``).
    """

    name: str
    text: Callable[[Project, Any], bytes]
    files: Callable[[Project, Any], Iterable[str]]


def _nothing_described(project: Project, options: Any) -> Sequence[Description]:
    return ()


def _no_operators(project: Project, options: Any) -> Iterable[Operator]:
    return ()


def _no_uses(project: Project, options: Any) -> Iterable[TorchUse]:
    return ()


def nothing_read(project: Project, options: Any) -> Iterable[str]:
    """Return no files, for a pack that does not name those it reads."""
    return ()


def nothing_touched(loaded: Loaded, edits: Mapping[str, Span]) -> Iterable[object]:
    """Return no subjects, for a pack that does not name those that edits touch."""
    return ()


def claims_all(project: Project, options: Any, path: str) -> bool:
    """Claim every file, for a pack that does not say which are its own."""
    return True


class Speed(msgspec.Struct, frozen=True):
    """Work that a pack lets be done early or once. None of it changes what is found.

    Files that the pack needs are named before ``load`` asks for them, so that they are parsed while other work is done: ``reads``
    returns the Python files that ``load`` asks for in any case; ``reads_on`` returns further ones once all these are parsed, and
    is called until it returns none; ``reads_first`` has the files of ``reads`` parsed before those of other packs. ``along``
    names readings of all these files that the pack will ask for, ``module:attribute`` each: where much is to be parsed, they are
    computed by the processes that parse. ``shares`` returns what the pack has found out for packs that build on it, if they run
    in another process; ``builds_on`` names the pack on which this one builds (see :attr:`Loaded.joint`).

    ``touched`` returns a few subjects that edits are likely to concern, each by the span that was edited of a file. An editor shows
    what is found in these before all others are judged. Rules report what they find in a subject under its ``name`` in ``ops``.
    """

    reads: Callable[[Project, Any], Iterable[str]] = nothing_read
    reads_on: Callable[[Project, Any], Iterable[str]] = nothing_read
    reads_first: bool = False
    along: tuple[str, ...] = ()
    shares: Callable[[Project, Any], bytes] | None = None
    builds_on: str = ""
    touched: Callable[[Loaded, Mapping[str, Span]], Iterable[object]] = nothing_touched


class Pack(msgspec.Struct, frozen=True):
    """One kind of op schema repository.

    ``detect`` is cheap and reads little; ``load`` turns files into subjects. ``migrations`` may be a function that imports
    them, which a lint run does not pay for. ``example`` builds a workspace from the fences of a rule's example; by default each
    fence names its file. ``operators`` fills the operator table, which ``show``, ``list``, ``diff`` and ``verify`` read;
    ``answers`` returns what the code of operators certainly does with workloads, those of another revision too; ``describe``
    returns facts about the workspace for ``--show-settings``; ``plans`` returns what ``opschema verify`` is to run of the ops
    that are named, or of all that are implemented; ``stubs`` generates code from declarations. ``unread`` are kinds of
    declarations that the pack recognises and does not read; reports name them. ``pages`` is the address of a rule's page on the
    web, with ``{code}`` in it. ``claims`` is called for a file that cannot be read or parsed: it returns whether the file is of
    the pack's kind by name, place, configuration or content. Others are not reported, unless :meth:`Project.claim` names them.
    ``releases`` are those of torch that its option ``torch`` can name, if it has one: ``2.15``. For ``opschema upgrade``,
    ``torch_uses`` returns the uses of PyTorch's operators in the tree, and ``torch_changes`` compares those operators in two
    releases. ``scaffold`` returns the files of a new backend for a dispatch key and a name, and the commands that follow.
    ``speed`` makes a pack that reads much Python faster.
    """

    name: str
    summary: str
    detect: Callable[..., bool]
    load: Callable[..., Loaded]
    rules: tuple[Rule, ...] = ()
    migrations: tuple[Migration, ...] | Callable[[], tuple[Migration, ...]] = ()
    options: type[Any] = NoOptions
    operators: Callable[[Project, Any], Iterable[Operator]] = _no_operators
    example: Callable[[Sequence[tuple[str, str]]], dict[str, str]] = files_named
    describe: Callable[[Project, Any], Sequence[Description]] = _nothing_described
    answers: Callable[[Project, Any, Mapping[str, Sequence[WorkloadRow]]], Mapping[str, Sequence[RowAnswer]]] | None = (
        None
    )
    plans: Callable[[Project, Any, Sequence[str], Limits], Iterable[Plan]] | None = None
    stubs: StubMaker | None = None
    unread: tuple[Sighting, ...] = ()
    pages: str = ""
    claims: Callable[[Project, Any, str], bool] = claims_all
    speed: Speed = Speed()
    releases: tuple[str, ...] = ()
    torch_uses: Callable[[Project, Any], Iterable[TorchUse]] = _no_uses
    torch_changes: Callable[[Project, Sequence[TorchUse], str, str], Iterable[Diagnostic]] | None = None
    scaffold: Callable[[str, str], tuple[Mapping[str, str], Sequence[str]]] | None = None
    schemas: tuple[FileSchema, ...] = ()

    def __post_init__(self) -> None:
        """Check the author's definition.

        Raises:
            AuthorError: a field is not what it should be.
        """
        check_detection(self)
        has_options = self.options is not NoOptions
        for name in ("detect", "load", "operators"):
            function = with_options(
                getattr(self, name), f"`{name}` of the pack `{self.name}`", "project", needed=has_options
            )
            msgspec.structs.force_setattr(self, name, function)
        check_records(self.name, "rules", self.rules, Rule.record_kind)
        check_rules(self.name, self.rules)

    def all_migrations(self) -> tuple[Migration, ...]:
        """The migrations, imported.

        Raises:
            AuthorError: they are not a tuple of migrations, or two have one name.
        """
        found = self.migrations() if callable(self.migrations) else self.migrations
        check_records(self.name, "migrations", found, "migration")
        return found


def collect_rules(package: ModuleType) -> tuple[Rule, ...]:
    """The rules of every module of a package, by code.

    Raises:
        AuthorError: two rules share a code or a name.
    """
    found = list(_records(package, Rule.record_kind))
    check_rules(package.__name__, found)
    return tuple(sorted(found, key=lambda item: item.code))


def collect_migrations(package: ModuleType) -> Callable[[], tuple[Migration, ...]]:
    """A function that imports every module of a package and returns their migrations, by name.

    Raises:
        AuthorError: when it is called; two migrations share a name.
    """

    def collect() -> tuple[Migration, ...]:
        found: dict[str, Migration] = {}
        for item in _records(package, "migration"):
            if item.name in found:
                refuse(f"two migrations are called `{item.name}`:{item.written} and{found[item.name].written}")
            found[item.name] = item
        return tuple(found[name] for name in sorted(found))

    return collect


def _records(package: ModuleType, kind: str) -> Iterator[Any]:
    """The records of one kind that the modules of a package define."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if getattr(type(value), "record_kind", "") == kind and value.module == module.__name__:
                yield value

"""A pack for the engine's tests: ops in ``*.toy.yaml``, each with a `doc`, a `dtype` and an `impl` file.

Its rules do what rules may do, well or badly, when the schema asks for it. It is imported by tests and named as a plugin.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.diagnostic import Diagnostic, FileEdit, Fix, Place, Related
from opschema_cli.lint.loaded import Entry, Loaded
from opschema_cli.lint.pack import Pack
from opschema_cli.lint.rule import Rule, rule
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Migration, Note, Scope, Site, migration
from opschema_cli.operators.model import Argument, Declaration, Implementation, Operator, Signature
from opschema_cli.project import Project
from opschema_cli.source.text import Edit, Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.suggestions import near_names

SUFFIX = ".toy.yaml"


@dataclass(frozen=True)
class ToyOp:
    """One op: a key of the file, and the mapping behind it."""

    project: Project
    file: YamlFile
    key: Node
    node: Node

    @property
    def name(self) -> str:
        return self.key.value

    @property
    def place(self) -> Place:
        return Place(self.file.path, self.key.span)

    def scalar(self, key: str) -> Node | None:
        value = self.node.get(key)
        return value if value is not None and value.kind == "scalar" else None

    def at(self, node: Node) -> Place:
        return Place(self.file.path, node.span)

    def replace(self, node: Node, text: str) -> FileEdit:
        return FileEdit(self.file.path, Edit(node.span, text))


@dataclass(frozen=True)
class ToyFile:
    """A whole file; no op of it needs to be sound."""

    project: Project
    file: YamlFile


class ToyOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``fail`` names a step of the pack that raises."""

    fail: str = ""


class DtypeOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``allowed`` are the known dtypes."""

    allowed: tuple[str, ...] = ("f16", "f32")


@rule("TOY101", "missing-doc")
def missing_doc(op: ToyOp) -> Iterator[Diagnostic]:
    """An op without a doc."""
    if op.node.get("doc") is None:
        yield Diagnostic(f"`{op.name}` has no doc", op.place, ops=(op.name,))


@rule("TOY102", "loud-doc", severity="warning", fixable="safe")
def loud_doc(op: ToyOp) -> Iterator[Diagnostic]:
    """A doc in capitals."""
    doc = op.scalar("doc")
    if doc is not None and doc.value.isupper():
        fix = Fix("lower it", (op.replace(doc, doc.value.lower()),))
        yield Diagnostic(f"`{op.name}` shouts", op.at(doc), (), fix, (op.name,))


@rule("TOY103", "known-dtype", fixable="unsafe")
def known_dtype(op: ToyOp, options: DtypeOptions) -> Iterator[Diagnostic]:
    """A dtype that is not allowed."""
    dtype = op.scalar("dtype")
    if dtype is not None and dtype.value not in options.allowed:
        fix = Fix("take the first one", (op.replace(dtype, options.allowed[0]),), "unsafe", "the numbers change")
        yield Diagnostic(
            f"`{dtype.value}` is not one of {', '.join(options.allowed)}", op.at(dtype), (), fix, (op.name,)
        )


@rule("TOY104", "impl-forward")
def impl_forward(op: ToyOp) -> Iterator[Diagnostic]:
    """An implementation without ``forward``; one finding for all the ops that share it."""
    impl = op.scalar("impl")
    if impl is None:
        return
    module = op.project.python(impl.value)
    if module is not None and not any(cls.body.function("forward") for cls in module.body.classes):
        place = Place(impl.value, Span(0, 0))
        yield Diagnostic("no class here has `forward`", place, (Related(op.place, "declared here"),), None, (op.name,))


@rule("TOY201", "flip", fixable="safe")
def flip(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix that never settles: a becomes b, b becomes a."""
    value = op.scalar("flip")
    if value is not None:
        other = "b" if value.value == "a" else "a"
        yield Diagnostic("it flips", op.at(value), (), Fix("flip it", (op.replace(value, other),)))


@rule("TOY202", "grow", fixable="safe")
def grow(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix that never settles: the value grows."""
    value = op.scalar("grow")
    if value is not None:
        yield Diagnostic("it grows", op.at(value), (), Fix("grow it", (op.replace(value, value.value + "x"),)))


@rule("TOY203", "breaks", fixable="safe")
def breaks(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix that leaves a file that is not YAML."""
    value = op.scalar("breaks")
    if value is not None:
        yield Diagnostic("it breaks", op.at(value), (), Fix("break it", (op.replace(value, "["),)))


@rule("TOY204", "twin", fixable="safe")
def twin(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix in two files: ``twin: FILE`` goes, and the file's ``x`` becomes ``y``."""
    value = op.scalar("twin")
    known = value is not None and value.value in op.project.workspace.file_set
    source = op.project.source(value.value) if value is not None and known else None
    if value is not None and source is not None and "x" in source.text:
        at = source.text.index("x")
        edits = (FileEdit(source.path, Edit(Span(at, at + 1), "y")), op.replace(value, "done"))
        yield Diagnostic("twin", op.at(value), (), Fix("fix both", edits))


@rule("TOY205", "first-word", fixable="safe")
def first_word(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix that overlaps that of TOY206: both rewrite `word`."""
    value = op.scalar("word")
    if value is not None and value.value == "start":
        yield Diagnostic("first", op.at(value), (), Fix("first", (op.replace(value, "middle"),)))


@rule("TOY206", "second-word", fixable="safe")
def second_word(op: ToyOp) -> Iterator[Diagnostic]:
    """A fix that overlaps that of TOY205, and has something to do behind it too."""
    value = op.scalar("word")
    if value is not None and value.value in ("start", "middle"):
        yield Diagnostic("second", op.at(value), (), Fix("second", (op.replace(value, "end"),)))


@rule("TOY301", "crash")
def crash(op: ToyOp) -> Iterator[Diagnostic]:
    """A rule that finds something, then fails."""
    if op.node.get("crash") is not None:
        yield Diagnostic("found before the crash", op.place)
        raise ZeroDivisionError("the toy broke")


@rule("TOY302", "bare-crash")
def bare_crash(file: ToyFile) -> Iterator[Diagnostic]:
    """A rule that fails on a subject without a place."""
    if "bare_crash:" in file.file.source.text:
        raise ValueError("\x1b[31mno place\x1b[0m")
    yield from ()


@rule("TOY303", "todo", severity="info")
def todo(file: ToyFile) -> Iterator[Diagnostic]:
    """A mark in the text of a file."""
    for match in re.finditer(r"TODO", file.file.source.text):
        yield Diagnostic("something is left to do", Place(file.file.path, Span(*match.span())))


@rule("TOY304", "probe")
def probe(op: ToyOp) -> Iterator[Diagnostic]:
    """A file that must exist, whether git ignores it or not."""
    value = op.scalar("needs")
    if value is not None and not op.project.workspace.is_file(value.value):
        yield Diagnostic(f"`{value.value}` does not exist", op.at(value))


@rule("TOY305", "near-dtype", severity="info")
def near_dtype(op: ToyOp) -> Iterator[Diagnostic]:
    """A name that is close to the one of a dtype, if the op asks for it."""
    near = op.scalar("near")
    if near is not None:
        yield Diagnostic(f"close to `{near.value}`: {near_names(near.value, ('float16', 'float32'))}", op.at(near))


def _paths(project: Project) -> list[str]:
    return [path for path in project.workspace.files if path.endswith(SUFFIX)]


def detect(project: Project, options: ToyOptions) -> bool:
    """Whether there is a toy file."""
    return bool(_paths(project))


def load(project: Project, options: ToyOptions) -> Loaded:
    """The files, and their ops."""
    if options.fail == "load":
        raise RuntimeError("the toy cannot load")
    loaded = Loaded(files=_paths(project))
    project.load_yaml(loaded.files)
    for file in filter(None, map(project.yaml, loaded.files)):
        loaded.subjects.append(ToyFile(project, file))
        for key, value in file.root.pairs() if file.root is not None else ():
            if value.is_mapping:
                loaded.subjects.append(ToyOp(project, file, key, value))
                loaded.entries.append(Entry(file.path, key.span, value.span, key.value))
                loaded.ops += 1
    return loaded


def operators(project: Project, options: ToyOptions) -> Iterator[Operator]:
    """The ops, each key of one as an argument."""
    for op in load(project, options).subjects:
        if isinstance(op, ToyOp):
            arguments = tuple(Argument(key.value, value.value, place=op.at(key)) for key, value in op.node.pairs())
            call = Signature("call", op.place, None, unresolved="the toy has no code")
            yield Operator(
                op.name,
                Declaration("declared", op.place, arguments),
                implementations=(Implementation("kernel", signatures=(call,)),),
            )


def _ops(draft: Draft) -> list[ToyOp]:
    return [subject for subject in draft.loaded.subjects if isinstance(subject, ToyOp)]


def _loud(draft: Draft, options: object) -> Iterator[Site]:
    for op in _ops(draft):
        doc = op.scalar("doc")
        if doc is not None and doc.value.isupper():
            yield Site(op.at(doc), f"lower the doc of `{op.name}`", (op.name,), ("TOY102",), (op, doc))


@migration("lower-docs", find=_loud, scope=Scope((ToyOp,), "no toy op in this tree"), settled="no doc shouts")
def lower_docs(draft: Draft, sites: Sequence[Site], options: object) -> Iterator[Note]:
    """Lower the docs that shout.

    An op without a dtype comes back as a note.
    """
    for site in sites:
        op, doc = site.subject  # type: ignore[misc]
        if op.node.get("keep") is not None:
            yield Note(site.place, f"`{op.name}` is to keep its doc", leaves_site=True)
            continue
        draft.edit(op.file.path, [op.replace(doc, doc.value.lower()).edit])
        if op.scalar("dtype") is None:
            yield Note(op.place, f"`{op.name}` has no dtype")


class KeyOptions(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """``old`` becomes ``new`` in ``ops``, or in all; at most ``at_most`` times."""

    old: str
    new: str
    ops: tuple[str, ...] = ()
    at_most: int = 100


def _keys(draft: Draft, options: KeyOptions) -> Iterator[Site]:
    for op in _ops(draft):
        for key, _ in op.node.pairs():
            if key.value == options.old and (not options.ops or op.name in options.ops):
                yield Site(op.at(key), f"`{options.old}` of `{op.name}`", (op.name,), subject=key)


@migration("rename-key", find=_keys, options=KeyOptions)
def rename_key(draft: Draft, sites: Sequence[Site], options: KeyOptions) -> Sequence[Note]:
    """Rename a key of ops."""
    for site in sites[: options.at_most]:
        draft.edit(site.place.path, [Edit(site.place.span, options.new)])
    return []


class FileOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``into`` is the folder that the files move to."""

    into: str = "moved"


def _outside(draft: Draft, options: FileOptions) -> Iterator[Site]:
    for file in draft.loaded.subjects:
        if isinstance(file, ToyFile) and not file.file.path.startswith(options.into + "/"):
            yield Site(Place(file.file.path, Span(0, 0)), f"move {file.file.path}", subject=file)


@migration("move-files", find=_outside, options=FileOptions)
def move_files(draft: Draft, sites: Sequence[Site], options: FileOptions) -> Iterator[Note]:
    """Move toy files into one folder, with a list of them."""
    for site in sites:
        draft.move(site.place.path, f"{options.into}/{site.place.path.rpartition('/')[2]}")
    draft.create(f"{options.into}/list.txt", "".join(f"{site.place.path}\n" for site in sites))
    yield from ()


class Misdeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``how`` it misbehaves."""

    how: str


def _misdeeds(draft: Draft, options: Misdeed) -> Iterator[Site]:
    if options.how == "raise in find":
        raise ZeroDivisionError("the toy broke")
    if options.how == "refuse":
        raise OpschemaError("the toy refuses")
    yield from (Site(op.place, f"harm `{op.name}`", (op.name,)) for op in _ops(draft))


@migration("misbehave", find=_misdeeds, options=Misdeed)
def misbehave(draft: Draft, sites: Sequence[Site], options: Misdeed) -> Iterator[Note]:
    """Do what a migration must not do."""
    for site in sites:
        if options.how == "raise":
            raise KeyError("the toy broke")
        if options.how == "overlap":
            start = site.place.span.start
            draft.edit(site.place.path, [Edit(Span(start, start + 2), "x"), Edit(Span(start + 1, start + 3), "y")])
        if options.how == "break":
            draft.edit(site.place.path, [Edit(site.place.span, "[")])
        if options.how == "create twice":
            draft.create("new.txt", "")
        if options.how == "reach too far":
            draft.edit(site.place.path, [Edit(Span(0, 10**6), "")])
    yield from ()


def migrations() -> tuple[Migration, ...]:
    """The migrations above."""
    return lower_docs, misbehave, move_files, rename_key


RULES = tuple(value for value in vars(sys.modules[__name__]).values() if isinstance(value, Rule))

PACK = Pack("toy", "ops in *.toy.yaml", detect, load, RULES, migrations, ToyOptions, operators=operators)

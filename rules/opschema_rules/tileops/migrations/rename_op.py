"""`rename-op`: an op under another name, in the manifest, in code and in text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.engine import position
from opschema_cli.migrate.mentions import occurrences, texts_with
from opschema_cli.migrate.migration import OPERATOR, Note, OptionError, Site, migration
from opschema_cli.source.program import ClassRef
from opschema_cli.source.text import Edit, Source, Span
from opschema_cli.suggestions import did_you_mean, near_name
from opschema_rules.tileops.migrations.class_names import another_meaning, other_binding
from opschema_rules.tileops.migrations.entries import all_entries, is_name, places_of
from opschema_rules.tileops.migrations.scopes import ENTRIES
from opschema_rules.tileops.migrations.words import EDITED, PYTHON, is_history, longer_names
from opschema_rules.tileops.model import OpEntry
from opschema_rules.tileops.proofs import ROWS

_LONGEST_ADDRESS = 500
_ADDRESS = re.compile(r"""\w://[^\s()<>"'`]*\Z""")
_OPERATOR = re.compile(r"(?:::|\btorch[\s\\]*\.[\s\\]*ops[\s\\]*\.[\s\\]*\w+[\s\\]*\.[\s\\]*)\Z")
"""The text before the name of a registered operator."""


class RenameOp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``old`` is the op's key in the manifest, ``new`` the one it gets."""

    old: str
    new: str


def find(draft: Draft, options: RenameOp) -> Iterator[Site]:
    """Yield the entry to rename; none if the new name already exists."""
    entries = all_entries(draft)
    found = [entry for entry in entries if entry.name == options.old]
    taken = [entry for entry in entries if entry.name == options.new]
    if not is_name(options.new):
        raise OptionError(f"`{options.new}` is not a name for a class")
    if found and taken:
        raise OptionError(f"there is an op `{options.new}` already, in {taken[0].file.path}")
    if not found and not taken:
        raise OptionError(
            f"no op is called `{options.old}`{did_you_mean(near_name(options.old, (item.name for item in entries)))}"
        )
    if len(found) > 1:
        raise OptionError(f"`{options.old}` has {len(found)} entries, {places_of(found)}; which of them is meant?")
    for entry in found:
        home = entry.manifest.definitions.of_class(options.new)
        if home is not None and not _has_class(entry, options.new):
            raise OptionError(f"{home} defines a class `{options.new}` already")
        _check_unbound(draft, entry, options)
        title = f"rename `{options.old}` to `{options.new}`"
        yield Site(entry.place, title, (options.old,), subject=entry, renamed=options.new)


def _check_unbound(draft: Draft, entry: OpEntry, options: RenameOp) -> None:
    """Check that no file which names the class has the new name for something else: the two would be mixed up.

    Raises:
        OptionError: one has.
    """
    ref = entry.op_class
    if not isinstance(ref, ClassRef) or ref.name != options.old:
        return
    sources = {source.path: source for source in texts_with(draft.project, [options.new])}
    for source in texts_with(draft.project, [options.old]):
        if source.path in sources and source.path.endswith(PYTHON) and not is_history(source.path):
            file = draft.project.python(source.path)
            span = other_binding(entry.manifest.program, file, options.new, ref) if file is not None else None
            if span is not None:
                raise OptionError(f"`{options.new}` is the name of something else in {_at(draft, source.path, span)}")


def _at(draft: Draft, path: str, span: Span) -> str:
    return f"{path}:{position(draft, Place(path, span)).line}"


def _has_class(entry: OpEntry, name: str) -> bool:
    """Whether the op's own class is called ``name`` already, and the key alone is to follow."""
    found = entry.op_class
    own = found.name if isinstance(found, ClassRef) else None
    return own == name or (own is None and entry.op_file is not None and name in entry.op_file.classes)


@migration(
    "rename-op",
    find=find,
    options=RenameOp,
    scope=ENTRIES,
    settled="the op has that name already",
    proof=ROWS,
    renames=OPERATOR,
)
def rename_op(draft: Draft, sites: Sequence[Site], options: RenameOp) -> Iterator[Note]:
    """Rename an op: its key in the manifest, its class, and every mention of them.

    The class is renamed where it is defined, imported, exported and used, in ops, tests, benchmarks and scripts; so are
    other entries that name the op (`variant_of`), and strings, comments, docstrings and documents where they hold exactly
    that identifier. A module in which the name means something else (a class of its own, an import from elsewhere) is not
    changed, nor are historical files (a changelog) and data files; each is reported as a note. So is every longer name that
    contains the old one (`TestOldOp`).

    If the key is not the name of a class, it may be any word, and the op's class may have the new name already: then only
    entire strings and words in backticks that are exactly the key are changed, and `variant_of`.

    Paths, addresses, names of registered custom operators and the order of sorted lists stay unchanged. If the class itself
    cannot be renamed, because its own file gives the name another meaning or defines it twice, nothing is.

        opschema migrate rename-op -o old=GroupNormFwdOpNoAffine -o new=GroupNormNoAffineFwdOp
    """
    for site in sites:
        if isinstance(site.subject, OpEntry):
            renaming = _Renaming.of(draft, site.subject, options)
            obstacle = renaming.obstacle()
            if obstacle:
                yield Note(site.place, f"`{options.old}` keeps its name: {obstacle}", leaves_site=True)
                continue
            left = {source.path: renaming.rewrite(source) for source in texts_with(draft.project, [options.old])}
            draft.settle()
            yield from _remaining(draft, renaming, left)


class _Renaming(msgspec.Struct, frozen=True):
    """One renaming: ``ref`` is the class that has the old name, ``paths`` parts of paths that begin with it."""

    draft: Draft
    entry: OpEntry
    old: str
    new: str
    ref: ClassRef | None
    paths: tuple[str, ...]

    @classmethod
    def of(cls, draft: Draft, entry: OpEntry, options: RenameOp) -> _Renaming:
        ref = entry.op_class
        named = ref if isinstance(ref, ClassRef) and ref.name == options.old else None
        parts = {part for path in draft.project.workspace.files for part in path.split("/")}
        paths = tuple(sorted(part for part in parts if part.partition(".")[0] == options.old))
        return cls(draft, entry, options.old, options.new, named, paths)

    def obstacle(self) -> str:
        """Return why the class cannot be renamed, so that nothing is; empty if it can."""
        file = self.entry.op_file
        if file is None or self.old not in file.classes:
            return ""
        if self.ref is None:
            return f"which class of {file.path} has the name is not known"
        other = another_meaning(self.entry.manifest.program, self.ref.file, self.old, self.ref)
        return "" if other is None else f"{_at(self.draft, self.ref.file.path, other)} gives it another meaning"

    def rewrite(self, source: Source) -> str:
        """Draft the edits of one file; returned is why its other mentions stay."""
        if is_history(source.path):
            return "the file is a history"
        if not source.path.endswith(EDITED):
            return "files of this kind are not rewritten"
        file = self.draft.project.python(source.path) if source.path.endswith(PYTHON) else None
        if file is None and source.path.endswith(PYTHON):
            return "the file does not parse"
        if self.ref is None:
            self.draft.edit(source.path, [Edit(span, self.new) for span in self._exact(source)])
            return "the op has no class of that name, so the word may mean something else"
        other = another_meaning(self.entry.manifest.program, file, self.old, self.ref) if file is not None else None
        if other is not None:
            return f"line {source.position(other.start).line} gives the name another meaning in this file"
        spans = [span for span in occurrences(source.text, self.old) if not self._is_other_name(source.text, span)]
        self.draft.edit(source.path, [Edit(span, self.new) for span in spans])
        return "it is part of a path or of the name of an operator"

    def _is_other_name(self, text: str, span: Span) -> bool:
        """Whether a mention is a part of an address, of an operator's name, or of the path of a file or folder in the tree."""
        before = text[max(0, span.start - _LONGEST_ADDRESS) : span.start]
        if _ADDRESS.search(before) or _OPERATOR.search(before):
            return True
        slash = "/" in (text[max(0, span.start - 1) : span.start], text[span.end : span.end + 1])
        return any(text.startswith(part, span.start) and (slash or part != self.old) for part in self.paths)

    def _exact(self, source: Source) -> set[Span]:
        """Places where a file has the old name in quotes or backticks, or a manifest as a key or `variant_of`, and nothing else
        there.
        """
        text = source.text
        manifest = self.entry.manifest
        marks = "`" if any(entry.file.path == source.path for entry in manifest.entries) else "['\"`]"
        quoted = re.finditer(rf"({marks}){re.escape(self.old)}\1", text)
        found = {Span(match.start() + 1, match.end() - 1) for match in quoted}
        own = [entry.get("variant_of") for entry in manifest.entries if entry.file.path == source.path]
        for node in [self.entry.key if self.entry.file.path == source.path else None, *own]:
            if node is not None and node.value == self.old:
                at = text.find(self.old, node.start, node.end)
                found |= {Span(at, at + len(self.old))} if at >= 0 else set()
        return found


def _remaining(draft: Draft, renaming: _Renaming, left: dict[str, str]) -> Iterator[Note]:
    old = renaming.old
    others = [entry.name for entry in all_entries(draft) if old in entry.name]
    for source in texts_with(draft.project, [old]):
        spans = list(occurrences(source.text, old))
        for span in spans[:1]:
            yield Note(Place(source.path, span), f"`{old}` stays here{_more(spans)}: {left.get(source.path, '')}")
        longer: dict[str, list[Span]] = {}
        for span, name in longer_names(source.text, old) if renaming.ref is not None else ():
            if old in _without(name, others):
                longer.setdefault(name, []).append(span)
        for name, places in longer.items():
            yield Note(Place(source.path, places[0]), f"`{name}` holds the old name `{old}`{_more(places)}")


def _more(spans: Sequence[Span]) -> str:
    return f" (and {len(spans) - 1} times more)" if len(spans) > 1 else ""


def _without(name: str, others: Sequence[str]) -> str:
    """A name without those of other ops that hold the old one too."""
    for other in sorted(others, key=len, reverse=True):
        name = name.replace(other, "")
    return name

"""Describes torchgen's files in ``opschema lint --show-settings``: the kind of each, and what it is checked against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opschema_cli.lint.pack import Description, Fact
from opschema_cli.phrases import count
from opschema_cli.project import Project
from opschema_rules.aten.load import load
from opschema_rules.aten.model import BackendFile, DerivativesFile, NativeFile, Reference, TagsFile
from opschema_rules.aten.pins import pins_of

if TYPE_CHECKING:
    from opschema_rules.aten.detection import AtenOptions

_HINT = (
    "Files are recognised by their contents. A backend is compared with the `native-functions` of the configuration, a"
    " native_functions.yaml of the tree that has its operators, the release that the tree pins, or the installed torch."
)


def describe(project: Project, options: AtenOptions) -> list[Description]:
    """Describe every file of the pack, and the operators that it is checked against."""
    subjects = load(project, options).subjects
    return [Description("PyTorch's schemas", [*_facts(subjects), *_pins(project, subjects)], _HINT)]


def _pins(project: Project, subjects: Sequence[object]) -> Iterator[Fact]:
    """The torch that a tree with backends pins, and where."""
    if any(isinstance(item, BackendFile) for item in subjects):
        for path, text in pins_of(project.workspace).descriptions:
            yield Fact("pinned torch", path, text)


def _facts(subjects: Sequence[object]) -> Iterator[Fact]:
    for item in subjects:
        if isinstance(item, NativeFile):
            tags = f"tags: {item.tags.path}" if item.tags is not None else "no tags.yaml"
            reader = f"read by {item.torchgen.origin}{f'? {item.release_doubt}' if item.release_doubt else ''}"
            yield Fact("operators", item.path, f"{count(len(item.entries), 'operator')}; {tags}; {reader}")
        elif isinstance(item, TagsFile):
            yield Fact("tags", item.path, count(len(item.entries), "tag"))
        elif isinstance(item, DerivativesFile):
            of = f"of {item.native.path}" if item.native is not None else "whose operators are not known"
            yield Fact("derivatives", item.path, f"{count(len(item.entries), 'operator')} {of}")
        elif isinstance(item, BackendFile):
            lists = f"{count(len({found.name for found in item.items}), 'operator')}, dialect {item.dialect}"
            yield Fact("backend", item.path, f"{lists}; {_judged(item.reference)}")


def _judged(reference: Reference | None) -> str:
    if reference is None:
        return "no operators to compare it with are known"
    if not reference.certain:
        return f"compared with {reference.origin}, perhaps another version: what is missing there is a warning"
    return f"compared with {reference.origin}"

"""The pack's subjects: the files of PyTorch's code generator (``torchgen``), and their entries.

A part of an entry that is malformed reads as absent; one rule says what is malformed, and no other judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from opschema_cli.lint.diagnostic import Place
from opschema_cli.schema.operator_schema import OperatorSchema
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.catalogue import Catalogue
from opschema_rules.aten.dialects import BACKEND_KEYS, DIALECTS, TORCHGEN
from opschema_rules.aten.entry import Entry, FuncEntry, SchemaText, string
from opschema_rules.aten.signatures import base_name
from opschema_rules.aten.torchgen import Torchgen
from opschema_rules.aten.torchgen_table import own_types

_BACKEND_FIELDS = frozenset((*BACKEND_KEYS, *TORCHGEN.lists))

REFERENCE = "reference"
"""The need of rules that compare with the operators of PyTorch."""


class DispatchItem(NamedTuple):
    """One line of a ``dispatch`` table: a dispatch key and its kernel, both as written."""

    key: str
    kernel: str
    key_node: Node
    node: Node


class NativeEntry(FuncEntry, eq=False, dict=True):
    """An entry of a native_functions.yaml."""

    owner: NativeFile

    @property
    def known_fields(self) -> frozenset[str]:
        """The fields of the torchgen that reads the file."""
        return self.owner.torchgen.vocabulary.fields

    @property
    def own_types(self) -> frozenset[str]:
        """Types that the torchgen of the file takes in a schema, and the newest known one does not."""
        return own_types(self.owner.torchgen)

    @property
    def content_key(self) -> str:
        """The key of the content that findings of pure rules depend on: its place, and the dependencies of the file's findings."""
        return f"{self.node.start} {self.owner.content_key}"

    @cached_property
    def schema(self) -> OperatorSchema | None:
        """The operator's schema, if torchgen takes it."""
        return self.schema_text.schema if self.schema_text is not None else None

    @property
    def name(self) -> str:
        """The operator's name with its overload (``add.Tensor``), without the namespace ``aten``; empty when it is not known."""
        text = self.text_of("func")
        head = text.partition("(")[0].strip()
        return head.removeprefix("aten::")

    @property
    def place(self) -> Place:
        """The operator's name in ``func``, or the entry's first key."""
        if self.schema_text is not None:
            return self.schema_text.place(Span(0, len(self.schema_text.text.partition("(")[0])))
        return self.at(self.first)

    def dispatch(self) -> Sequence[DispatchItem]:
        """Every key of the field ``dispatch`` separately: torchgen accepts several separated by commas."""
        return self._dispatch

    @cached_property
    def _dispatch(self) -> list[DispatchItem]:
        return list(self._dispatch_items())

    def _dispatch_items(self) -> Iterator[DispatchItem]:
        table = self.get("dispatch")
        for key_node, node in table.pairs() if table is not None else ():
            kernel = string(self.file.document.follow(node))
            if key_node.kind != "scalar" or kernel is None:
                continue
            for key in key_node.value.split(","):
                yield DispatchItem(key.strip(), kernel, key_node, node)


class Function(msgspec.Struct, frozen=True):
    """An operator as torchgen knows it: of an entry, or ``generated`` for one.

    ``dispatch`` are the dispatch keys that have a kernel, those that torchgen fills in included
    (``CompositeImplicitAutograd`` without a ``dispatch`` table; the keys of the functional operator for a structured one).
    """

    name: str
    schema: OperatorSchema
    entry: NativeEntry
    dispatch: frozenset[str] = frozenset()
    generated: bool = False


class NativeFile(msgspec.Struct, eq=False, dict=True):
    """A native_functions.yaml, the torchgen that reads it, and the tags.yaml that belongs to it, None without one."""

    file: YamlFile
    torchgen: Torchgen
    tags: TagsFile | None = None
    entries: list[NativeEntry] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on: this file, the tags and the torchgen."""
        tags = self.tags.file.source.digest if self.tags is not None else ""
        return f"{self.path} {self.file.source.digest} {tags} {self.torchgen.digest}"

    @property
    def release_doubt(self) -> str:
        """The reason why another torchgen may read it; empty if that is certain."""
        return self.torchgen.doubt

    @property
    def tag_names(self) -> frozenset[str] | None:
        """The existing tags, from the tags.yaml or the torchgen; None if neither is known."""
        return self.tags.names if self.tags is not None else self.torchgen.tags

    @cached_property
    def _having(self) -> Mapping[str, list[NativeEntry]]:
        found: dict[str, list[NativeEntry]] = {}
        for entry in self.entries:
            for name in entry.fields:
                found.setdefault(name, []).append(entry)
        return found

    def having(self, name: str) -> Sequence[NativeEntry]:
        """The entries that have a field."""
        return self._having.get(name, ())

    @cached_property
    def by_name(self) -> Mapping[str, list[NativeEntry]]:
        """The entries by :attr:`NativeEntry.name`; more than one where it repeats."""
        found: dict[str, list[NativeEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return found

    @cached_property
    def complete(self) -> bool:
        """Whether every entry could be parsed, so that a missing name does not exist."""
        items = self.file.root.items if self.file.root is not None else ()
        mappings = bool(items) and len(self.entries) == len(items)
        return mappings and all(entry.schema is not None for entry in self.entries)


class TagsFile(msgspec.Struct, eq=False, dict=True):
    """A tags.yaml; its entries have the fields ``tag`` and ``desc``."""

    file: YamlFile
    entries: list[Entry] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        return f"{self.path} {self.file.source.digest}"

    @cached_property
    def names(self) -> frozenset[str]:
        """The tags."""
        return frozenset(filter(None, (entry.text("tag") for entry in self.entries)))


class DerivativeEntry(Entry, eq=False, dict=True):
    """An entry of a derivatives.yaml: ``name`` holds a copy of an operator's schema, other keys are formulas."""

    owner: DerivativesFile

    @property
    def own_types(self) -> frozenset[str]:
        """Types that the torchgen of the file takes in a schema, and the newest known one does not."""
        return own_types(self.owner.torchgen)

    @property
    def name(self) -> str:
        """The operator's name with its overload; empty when it is not known."""
        return self.text_of("name").partition("(")[0].strip()

    @cached_property
    def schema_text(self) -> SchemaText | None:
        """The field ``name``; None when it is not a string."""
        node = self.get("name")
        text = string(node)
        return SchemaText(self, node, text) if node is not None and text is not None else None

    @property
    def schema(self) -> OperatorSchema | None:
        """The schema, if torchgen takes it."""
        return self.schema_text.schema if self.schema_text is not None else None


class DerivativesFile(msgspec.Struct, eq=False, dict=True):
    """A derivatives.yaml; ``native`` is the native_functions.yaml that it belongs to, None if that is not known.

    ``torchgen`` reads it.
    """

    file: YamlFile
    torchgen: Torchgen
    native: NativeFile | None = None
    entries: list[DerivativeEntry] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @cached_property
    def complete(self) -> bool:
        """Whether every item names an operator, so that a missing one does not exist."""
        items = self.file.root.items if self.file.root is not None else ()
        return bool(items) and len(self.entries) == len(items) and all(entry.name for entry in self.entries)

    @cached_property
    def by_base(self) -> Mapping[str, list[DerivativeEntry]]:
        """The entries by the name of their operator, without the overload and the in-place suffix."""
        found: dict[str, list[DerivativeEntry]] = {}
        for entry in self.entries:
            found.setdefault(base_name(entry.name.partition(".")[0]).base, []).append(entry)
        return found

    @cached_property
    def described(self) -> Mapping[str, int]:
        """The schemas of its entries as written, and the index of the last entry of each."""
        return {text: entry.index for entry in self.entries if (text := entry.text("name"))}

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on: this file and the operators."""
        native = self.native.content_key if self.native is not None else ""
        return f"{self.path} {self.file.source.digest} {self.torchgen.digest} {native}"

    @property
    def release_doubt(self) -> str:
        """The reason why another torchgen may read it; empty if that is certain."""
        return self.torchgen.doubt


class Reference(msgspec.Struct, eq=False, dict=True):
    """The operators of PyTorch that a backend's YAML or another copy of schemas is checked against.

    ``path`` is their native_functions.yaml, outside of the workspace an absolute path, and ``key`` what findings depend on.
    ``origin`` says where they come from, for messages (``the installed torch 2.13.0``), ``version`` the release, if it is
    known. ``certain`` says that it is the version that the tree is built with: named by the configuration, in the tree
    itself, or of the version that the tree pins. Where it is not certain, an operator that is missing there is a warning at
    most. ``torchgen`` reads it. The file is read only when it is asked for.
    """

    path: str
    key: str
    origin: str
    certain: bool
    read: Callable[[], NativeFile]
    summarise: Callable[[Reference], Catalogue]
    torchgen: Torchgen
    version: str = ""

    @cached_property
    def native(self) -> NativeFile:
        """The file, its entries and all operators."""
        return self.read()

    @cached_property
    def catalogue(self) -> Catalogue:
        """The operators in a few words each, which are kept for the next run."""
        return self.summarise(self)

    @property
    def content_key(self) -> str:
        """Key of the content that findings of pure rules depend on."""
        parts = (
            self.path,
            self.key,
            self.origin,
            self.certain,
            self.version,
            self.torchgen.digest,
        )
        return " ".join(map(str, parts))


class BackendItem(msgspec.Struct, frozen=True):
    """An operator of one of a backend's lists. ``section`` is the list's key, ``name`` the operator with its overload.

    ``node`` is the item, ``name_node`` where the name is written: of ``- mul.out: {structured: true}`` the key, whose
    value is ``options``; of ``- func: add.Tensor`` the value of ``func``.
    """

    section: str
    name: str
    node: Node
    name_node: Node
    options: Node | None = None


class BackendFile(Entry, eq=False):
    """A backend's YAML: a mapping with ``backend``, ``cpp_namespace`` and lists of operators.

    ``dialect`` is ``torchgen``, or the generator that it is written for (``op-plugin``, ``torch-npu``, ``lazy-tensor``,
    ``torch-mlir``), of which only what it shares with torchgen is judged.
    """

    torchgen: Torchgen
    dialect: str = "torchgen"
    reference: Reference | None = None
    items: list[BackendItem] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def name(self) -> str:
        """The backend's name (``XLA``); empty when it is not known."""
        return self.text_of("backend")

    @property
    def content_key(self) -> str:
        """The key of the content that findings of pure rules depend on: this file and the operators that it is checked against."""
        known = self.reference.content_key if self.reference is not None else ""
        return f"{self.path} {self.file.source.digest} {self.torchgen.digest} {known}"

    @property
    def known_fields(self) -> frozenset[str]:
        """The keys of torchgen; empty for the dialects that it does not read."""
        return _BACKEND_FIELDS if DIALECTS[self.dialect].strict else frozenset()

    @property
    def release_doubt(self) -> str:
        """The reason why another torchgen may read it; empty if that is certain."""
        return self.torchgen.doubt

    def section(self, name: str) -> list[BackendItem]:
        """The operators of one list."""
        return [item for item in self.items if item.section == name]

"""The pack's subjects: a manifest, its files, its entries, and the op classes that implement them.

Every part of an entry knows its node, so a rule can say where it stands; malformed parts read as absent here and
are the business of the structure rule alone. It is one module because these classes refer to one another.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.evaluation.evaluator import Evaluator
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.lint.diagnostic import NotUnderstood, Place, Related, Severity
from opschema_cli.project import Project
from opschema_cli.schema.align import Slot
from opschema_cli.schema.dtypes import DtypeResolution, parse_dtypes, resolve_dtypes
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import ClassRef, FunctionRef, Missing, Program, Unresolved, ValueRef
from opschema_cli.source.python import Param, PythonFile
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Data, Node, YamlFile, YamlSyntaxError, scalar_value
from opschema_rules.tileops.definitions import Definitions
from opschema_rules.tileops.doubtful_keys import is_doubtful, repeated
from opschema_rules.tileops.entry_parts import ParamDecl, Row, Rule, Tensor
from opschema_rules.tileops.op_classes import call_params, class_by_convention
from opschema_rules.tileops.scalars import misreading
from opschema_rules.tileops.spec import Spec

SOURCE_PATH_KEYS = ("kernel", "op", "test", "bench")


class Manifest(msgspec.Struct, eq=False, dict=True, weakref=True):
    """All entries of one manifest folder or file, and the resolution of their paths and classes.

    ``unresolved`` collects the places in the code that executing it could not follow.
    """

    project: Project
    folder: str
    base: str
    files: list[YamlFile]
    spec: Spec
    program: Program
    entries: list[OpEntry] = msgspec.field(default_factory=list)
    unresolved: list[NotUnderstood] = msgspec.field(default_factory=list)

    @property
    def name(self) -> str:
        """The folder, for messages."""
        return self.folder

    @cached_property
    def evaluator(self) -> Evaluator:
        """The evaluator of the package's expressions."""
        return TreeEvaluator(Bodies(self.program, self.program.package_files))

    @property
    def content_key(self) -> str:
        """The inputs of pure rules' findings: the files, and the tree's specification."""
        return " ".join(f"{file.path} {file.source.digest}" for file in self.files) + f" {self.spec.digest}"

    @property
    def place(self) -> Place:
        """The head of its first file."""
        return Place(self.files[0].path if self.files else self.folder, Span(0, 0))

    @cached_property
    def by_name(self) -> dict[str, list[OpEntry]]:
        """Entries by op name, in the order of the files; more than one where a name repeats."""
        found: dict[str, list[OpEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name, []).append(entry)
        return found

    def repeats(self, entry: OpEntry) -> bool:
        """Whether an entry has the name of another one and no class in its own file: it may well be another op."""
        return len(self.by_name[entry.name]) > 1 and not isinstance(entry.op_class, ClassRef)

    @cached_property
    def implementations(self) -> list[OpImplementation]:
        """Every entry whose class is found, with that class."""
        found = ((entry, entry.op_class) for entry in self.entries)
        return [OpImplementation(entry, ref) for entry, ref in found if isinstance(ref, ClassRef)]

    @cached_property
    def definitions(self) -> Definitions:
        """Definitions in the workspace's files, by their text."""
        return Definitions(self.project, self.base)

    def locate(self, path: str) -> str | None:
        """The workspace path of a path that an entry names: as written from the base, or below its ``src``."""
        for folder in (self.base, f"{self.base}/src" if self.base != "." else "src"):
            full = posixpath.normpath(path if folder == "." else f"{folder}/{path}")
            if not path.endswith("/") and self.project.workspace.is_file(full):
                return full
        return None


class ManifestFile(msgspec.Struct, eq=False):
    """One YAML file of a manifest."""

    manifest: Manifest
    file: YamlFile

    @property
    def name(self) -> str:
        """The file's path."""
        return self.file.path

    @property
    def content_key(self) -> str:
        """The inputs of pure rules' findings: the file itself, and the tree's specification."""
        return f"{self.file.path} {self.file.source.digest} {self.manifest.spec.digest}"

    @property
    def place(self) -> Place:
        """The head of the file."""
        return Place(self.file.path, Span(0, 0))

    @property
    def entries(self) -> Iterator[OpEntry]:
        """Its entries."""
        return (entry for entry in self.manifest.entries if entry.file is self.file)


def entries_node(file: YamlFile) -> Node | None:
    """Return the mapping of op names to entries: the root, or in the first layout the value of a top-level ``ops``."""
    root = file.root
    if root is None or not root.is_mapping:
        return None
    old = root.get("ops")
    return old if old is not None and old.is_mapping and old.get("signature") is None else root


def is_op_name(key: Node) -> bool:
    """Whether the key of an entry may be meant as an op's name: it is text, or text to all but a YAML 1.1 reader."""
    return key.kind == "alias" or (
        key.kind == "scalar" and (isinstance(scalar_value(key), str) or misreading(key) is not None)
    )


class OpEntry(msgspec.Struct, eq=False, dict=True, weakref=True):
    """One operator's declaration. ``node`` is the entry's value, ``key`` its key."""

    manifest: Manifest
    file: YamlFile
    name: str
    key: Node
    node: Node
    _nodes: dict[Sequence[str | int], Node | None] = msgspec.field(default_factory=dict)

    __repr__ = object.__repr__

    @property
    def place(self) -> Place:
        """The entry's key."""
        return self.at(self.key)

    def at(self, target: Node | Span) -> Place:
        """A node or span of the entry's file as a place."""
        return Place(self.file.path, target.span if isinstance(target, Node) else target)

    def related(self, target: Node | Span, message: str) -> Related:
        """A node of the entry's file as the other side of a finding."""
        return Related(self.at(target), message)

    def inner(self, node: Node, span: tuple[int, int]) -> Span:
        """A stretch of a scalar's *value* as a span of the file; the entire node where escapes or folds shift places."""
        raw = self.file.source.text[node.start : node.end]
        offset = raw.find(node.value)
        if offset < 0 or not node.value:
            return node.span
        start = node.start + offset
        return Span(start + max(0, span[0]), start + min(len(node.value), max(span[1], span[0])))

    def get(self, *path: str | int) -> Node | None:
        """The node at a path below the entry; aliases are followed."""
        if path not in self._nodes:
            self._nodes[path] = self._find(path)
        return self._nodes[path]

    def _find(self, path: Sequence[str | int]) -> Node | None:
        node: Node | None = self.node
        for step in path:
            node = self.file.document.follow(node).get(step) if node is not None else None
        return self.file.document.follow(node) if node is not None else None

    def key_of(self, *path: str) -> Node | None:
        """The key node at a path below the entry."""
        owner = self.get(*path[:-1])
        pair = owner.pair(path[-1]) if owner is not None else None
        return pair[0] if pair else None

    def doubtful(self, *path: str) -> bool:
        """Whether the meaning of a key at a path below the entry is unclear: see :func:`is_doubtful`."""
        owner = self.get(*path[:-1])
        return owner is not None and is_doubtful(owner, path[-1])

    @cached_property
    def data(self) -> Data:
        """The entire entry as plain data; None when aliases run wild."""
        return self.data_of(self.node)

    def data_at(self, *path: str | int) -> Data:
        """Plain data at a path; None when absent or when aliases run wild."""
        return self.data_of(self.get(*path))

    def data_of(self, node: Node | None) -> Data:
        """Plain data of a node; None when it is absent or when aliases run wild."""
        try:
            return self.file.document.data(node) if node is not None else None
        except YamlSyntaxError:
            return None

    def text_at(self, *path: str | int) -> str | None:
        """A string at a path; None when absent or not a string."""
        value = self.data_at(*path)
        return value if isinstance(value, str) else None

    @cached_property
    def status(self) -> str | None:
        """``implemented``, ``spec-only``, or any other value."""
        return "implemented" if self.assumed else self.text_at("status")

    @property
    def assumed(self) -> bool:
        """Whether the run judges the entry as if it were implemented."""
        return self.name in self.manifest.project.as_implemented

    @property
    def implemented(self) -> bool:
        """Whether the entry claims an implementation."""
        return self.status == "implemented"

    @property
    def content_key(self) -> str:
        """The inputs of pure rules' findings: the entry's file and place, and the tree's specification."""
        assumed = " as implemented" if self.assumed else ""
        return f"{self.file.path} {self.key.start} {self.file.source.digest} {self.manifest.spec.digest}{assumed}"

    @cached_property
    def meaning(self) -> str:
        """A digest of the entry's content, independent of its place in the file: its text, the tree's specification, and the
        entire file if aliases may lead elsewhere.
        """
        text = self.file.source.text[self.node.start : self.node.end]
        others = self.file.source.digest if self.file.document.anchors else ""
        return f"{self.name} {self.manifest.spec.digest} {others} {self.assumed} {text}"

    @property
    def severity(self) -> Severity:
        """The severity of drift from the code: an entry that is spec-only may precede the code."""
        return Severity.WARNING if self.status == "spec-only" else Severity.ERROR

    @cached_property
    def inputs(self) -> list[Tensor]:
        """Declared inputs, in order."""
        return list(self._tensors("inputs"))

    @cached_property
    def outputs(self) -> list[Tensor]:
        """Declared outputs, in order."""
        return list(self._tensors("outputs"))

    @property
    def tensors(self) -> list[Tensor]:
        """Inputs, then outputs."""
        return [*self.inputs, *self.outputs]

    @cached_property
    def dtype_keys(self) -> dict[str, Tensor]:
        """The tensors with a dtype expression, by name; an output that repeats an input's name has a prime after it."""
        found: dict[str, Tensor] = {}
        for tensor in self.tensors:
            if tensor.dtype is not None:
                found[tensor.name + "'" if tensor.name in found else tensor.name] = tensor
        return found

    @cached_property
    def dtypes(self) -> DtypeResolution:
        """The dtypes of each tensor of :attr:`dtype_keys`, and the faults of the expressions."""
        return resolve_dtypes({key: parse_dtypes(tensor.dtype or "") for key, tensor in self.dtype_keys.items()})

    def _tensors(self, direction: str) -> Iterator[Tensor]:
        owner = self.get("signature", direction)
        for key, value in owner.pairs() if owner is not None else ():
            value = self.file.document.follow(value)
            if key.kind == "scalar" and isinstance(scalar_value(key), str) and value.is_mapping:
                yield Tensor(key.value, direction, key, value)

    @cached_property
    def params(self) -> list[ParamDecl]:
        """Declared parameters, in order."""
        found: list[ParamDecl] = []
        owner = self.get("signature", "params")
        for key, value in owner.pairs() if owner is not None else ():
            value = self.file.document.follow(value)
            if key.kind == "scalar" and isinstance(scalar_value(key), str) and value.is_mapping:
                default = value.get("default")
                data = self.data_of(default)
                found.append(ParamDecl(key.value, key, value, data, default is not None and data != "REQUIRED"))
        return found

    @cached_property
    def input_slots(self) -> list[Slot] | None:
        """The inputs as slots, merged ones included; None when their section is missing or malformed."""
        return self._slots("inputs", lambda found: Slot("", "normal", found.get("optional") is not True))

    @cached_property
    def output_slots(self) -> list[Slot] | None:
        """The outputs as slots, merged ones included; None when their section is missing or malformed."""
        return self._slots("outputs", lambda found: Slot(""))

    @cached_property
    def param_slots(self) -> list[Slot] | None:
        """The parameters as slots, none when the section is absent; None when it is malformed."""
        if self.get("signature") is not None and self.data_at("signature", "params") is None:
            return None if self.doubtful("signature", "params") else []
        return self._slots("params", _param_slot)

    def _slots(self, section: str, read: Callable[[Mapping[Data, Data]], Slot]) -> list[Slot] | None:
        data, owner = self.data_at("signature", section), self.get("signature", section)
        if not isinstance(data, dict) or owner is None or self.doubtful("signature", section):
            return None
        keys = {key.value: key.span for key, _ in owner.pairs() if key.kind == "scalar"}
        if repeated(owner):
            return None
        found: list[Slot] = []
        for name, attributes in data.items():
            if not isinstance(name, str):
                return None
            slot = read(attributes if isinstance(attributes, dict) else {})
            found.append(replace(slot, name=name, span=keys.get(name, owner.span)))
        return found

    @cached_property
    def shape_rules(self) -> list[Rule]:
        """The shape rules that are strings."""
        owner = self.get("signature", "shape_rules")
        items = owner.items if owner is not None and owner.is_sequence else []
        found: list[Rule] = []
        for index, item in enumerate(items):
            item = self.file.document.follow(item)
            if item.kind == "scalar" and isinstance(scalar_value(item), str):
                found.append(Rule(index, item, item.value))
        return found

    @cached_property
    def rows(self) -> list[Row]:
        """The workload rows that are mappings."""
        owner = self.get("workloads")
        rows = self.data.get("workloads") if isinstance(self.data, dict) else None
        if owner is None or not owner.is_sequence or not isinstance(rows, list) or self.doubtful("workloads"):
            return []
        found: list[Row] = []
        for index, (item, data) in enumerate(zip(owner.items, rows, strict=True)):
            if isinstance(data, dict):
                own = {key: value for key, value in data.items() if isinstance(key, str)}
                found.append(Row(index, self.file.document.follow(item), own))
        return found

    def input(self, name: str) -> Tensor | None:
        """The input of that name."""
        return self._inputs_by_name.get(name)

    @cached_property
    def _inputs_by_name(self) -> dict[str, Tensor]:
        return {item.name: item for item in reversed(self.inputs)}

    def param(self, name: str) -> ParamDecl | None:
        """The parameter of that name."""
        return self._params_by_name.get(name)

    @cached_property
    def _params_by_name(self) -> dict[str, ParamDecl]:
        return {item.name: item for item in reversed(self.params)}

    def source_paths(self, key: str) -> list[tuple[Node, str]]:
        """Return the paths in ``source.<key>``, with their nodes: one, or a list."""
        node = self.get("source", key) if not self.doubtful("source", key) else None
        items = [] if node is None else node.items if node.is_sequence else [node]
        return [(item, item.value) for item in items if item.kind == "scalar" and isinstance(scalar_value(item), str)]

    @cached_property
    def op_file(self) -> PythonFile | None:
        """The file that ``source.op`` names, parsed; None when it is not there or does not parse."""
        path = next((path for _, path in self.source_paths("op")), None)
        found = self.manifest.locate(path) if path else None
        return self.manifest.project.python(found) if found is not None and found.endswith(".py") else None

    @cached_property
    def op_class(self) -> ClassRef | Missing | Unresolved | None:
        """The class of the entry's name in its op file; None if there is no file to search."""
        if self.op_file is None:
            return None
        found = self.manifest.program.module_member(self.op_file.path, self.name)
        if isinstance(found, Missing):
            return class_by_convention(self.op_file, self.name) or found
        if isinstance(found, ClassRef | Unresolved):
            return found
        return Unresolved(f"`{self.name}` is not a class of {self.op_file.path}")

    @property
    def unnamed(self) -> bool:
        """Whether no class of the op's file has its name, though the tree's specification says how a key is spelled."""
        found = self.op_class
        by_convention = isinstance(found, ClassRef) and self.name == self.name.lower() != found.name
        return isinstance(found, Missing) or (by_convention and self.manifest.spec.knows("key-format"))


def _param_slot(attributes: Mapping[Data, Data]) -> Slot:
    required = attributes.get("default", "REQUIRED") == "REQUIRED"
    return Slot("", "kwonly" if attributes.get("kw_only") is True else "normal", required)


class OpImplementation(msgspec.Struct, eq=False, dict=True):
    """An entry and the class that implements it: the subject of every check of one against the other.

    ``modules`` are those of the workspace; None: the manifest's.
    """

    entry: OpEntry
    ref: ClassRef
    modules: Program | None = None

    @property
    def name(self) -> str:
        """The op's name."""
        return self.entry.name

    @property
    def place(self) -> Place:
        """The entry's key."""
        return self.entry.place

    @property
    def program(self) -> Program:
        """The modules of the workspace."""
        return self.modules or self.entry.manifest.program

    def method(self, name: str) -> FunctionRef | None:
        """A method as an instance has it; None when it is absent, generated or otherwise not known."""
        found = self.program.member(self.ref, name)
        return found if isinstance(found, FunctionRef) else None

    def written_method(self, name: str) -> FunctionRef | None:
        """A method as some class body of the lineage writes it, even where a hook may replace it at run time."""
        for owner in self.program.lineage(self.ref):
            found = self.program.own_member(owner, name)
            if found is not None:
                return found if isinstance(found, FunctionRef) else None
        return None

    def attribute(self, name: str) -> ValueRef | FunctionRef | None:
        """A class attribute or method as an instance has it; None when not known."""
        found = self.program.member(self.ref, name)
        return found if isinstance(found, FunctionRef | ValueRef) else None

    def call_params(self, name: str) -> list[Param] | None:
        """The parameters of a method that a caller passes, ``self`` left out; None when not known.

        A decorated method is known only when its decorators keep the signature.
        """
        found = self.method(name)
        return call_params(found) if found is not None else None

    def code_place(self, ref: FunctionRef, span: Span | None = None) -> Place:
        """A place in the code."""
        return Place(ref.file.path, span if span is not None else ref.function.span)


class Implementations(msgspec.Struct, eq=False):
    """The op classes of a manifest, for rules that compare each with its entry and report a shared cause once: all of them, or
    in an editor those that an edit touches.
    """

    manifest: Manifest
    ops: Sequence[OpImplementation]

    @property
    def name(self) -> str:
        """The manifest's folder."""
        return self.manifest.name

    @property
    def place(self) -> Place:
        """The head of the manifest's first file."""
        return self.manifest.place


class Validator(msgspec.Struct, eq=False):
    """A script of the tree that validates manifests: it reads their vocabulary and is not a library code."""

    manifest: Manifest
    file: PythonFile

    @property
    def name(self) -> str:
        """The script's path."""
        return self.file.path

    @property
    def place(self) -> Place:
        """The head of the script."""
        return Place(self.file.path, Span(0, 0))

"""The pack's subjects: files of operator YAML, their entries, and the tree that they are part of.

A part of an entry that is malformed reads as absent; one rule reports it, and no other judges it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from opschema_cli.lint.diagnostic import Related
from opschema_cli.project import Project
from opschema_cli.sequences import grouped
from opschema_cli.source.pieces import Piece
from opschema_cli.source.text import Span
from opschema_cli.source.yaml import Node, YamlFile
from opschema_rules.aten.entry import Entry, string
from opschema_rules.aten.kinds import mappings_of
from opschema_rules.paddle import grammar
from opschema_rules.paddle.detection import OLD_PIR, Kind, PaddleOptions, home
from opschema_rules.paddle.grammar import Arg, Kernel, Parsed

_TENSOR_FIELDS = ("inplace", "view", "optional", "intermediate", "no_need_buffer", "data_transform", "support_tensor")
_OTHER_FIELDS = ("support_dygraph_mode", "composite", "invoke", "infer_meta", "kernel", "traits", "interfaces")
FIELDS = frozenset(("op", "backward_op", "forward", "args", "output", "backward", *_TENSOR_FIELDS, *_OTHER_FIELDS))
INFER_META = frozenset(("func", "param", "spmd_rule", "local_shape", "global_shape"))
KERNEL = frozenset(("func", "param", "data_type", "layout", "backend", "force_backend"))
DATA_TRANSFORM = frozenset(("skip_transform", "support_trans_dtype"))
"""Keys of an entry and of the mappings in it (``check_op_config`` of ``parse_utils.py``)."""

_STEM = re.compile(r"(?:(\w+)_)?(?:ops|backward)\.ya?ml")
_KEY_SET = re.compile(r"(?:base|infer_meta|kernel)_key_set = \(([^)]*)\)")
_PARSER = "paddle/fluid/operators/generator/parse_utils.py"


class Item(Entry, eq=False, dict=True):
    """A mapping in a list of a YAML file."""

    def placed(self, pieces: Iterable[Piece], *path: str) -> list[Piece]:
        """Parts of the string in a field or below it, with their places in the file."""
        return [Piece(text, self.part(span, *path)) for text, span in pieces]

    def names(self, *path: str) -> list[Piece]:
        """The names in a field that lists them in a string, with their places in the file."""
        return self.placed((name for name in grammar.split(self.text_of(*path)) if name.text), *path)


class OpEntry(Item, eq=False, dict=True):
    """An operator, or with ``backward_op`` the gradient of one."""

    listed: OpFile

    @property
    def known_fields(self) -> frozenset[str]:
        """The keys that the parser knows."""
        return self.listed.tree.keys | FIELDS

    @cached_property
    def head(self) -> Node | None:
        """The node that names the operator."""
        node = self.get("op") or self.get("backward_op")
        return node if string(node) else None

    @property
    def name(self) -> str:
        """The name; empty without one."""
        return self.head.value.strip() if self.head is not None else ""

    @property
    def is_backward(self) -> bool:
        """Whether it is the gradient of another entry."""
        return self.get("backward_op") is not None

    @property
    def place(self) -> Span:
        """The operator's name, or the start of an entry without one."""
        return (self.head or self.first).span

    @property
    def eager(self) -> bool:
        """Whether code for eager mode is generated for it, which joins gradients and operators by the names of tensors."""
        if self.listed.group == "fused":
            return self.flag("support_dygraph_mode") is True
        return self.listed.group in ("", "sparse", "strings") and not self.listed.foreign

    @property
    def calls_through_pointer(self) -> bool:
        """Whether its kernel is called through a pointer, and not with a context of inputs, attributes and outputs."""
        return self.eager and self.listed.group != "sparse"

    @property
    def is_legacy(self) -> bool:
        """Whether it is an operator of the old static graph, whose names are those of ``op_compat.yaml``."""
        return self.listed.group.startswith("legacy ")

    @property
    def calls_cpp(self) -> bool:
        """Whether its calls of C++ functions are generated, and not written by hand."""
        by_hand = self.is_legacy and self.name.rstrip("_") in self.listed.tree.signed_by_hand
        return not self.listed.foreign and not by_hand

    @cached_property
    def signature(self) -> Parsed:
        """The arguments and outputs."""
        args, errors = grammar.parse_args(text) if (text := self.text("args")) is not None else ([], [])
        outputs, more = grammar.parse_outputs(text) if (text := self.text("output")) is not None else ([], [])
        return Parsed(args, outputs, [*errors, *more])

    @property
    def is_sound(self) -> bool:
        """Whether all arguments and outputs are known."""
        return not self.signature.errors and self.text("args") is not None and self.get("output") is not None

    @cached_property
    def forward(self) -> Parsed:
        """The operator that a gradient belongs to, as the gradient repeats it."""
        text = self.text("forward")
        return grammar.parse_forward(text) if text is not None else Parsed()

    @cached_property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that it dispatches to, with the places of their names in the file."""
        found = grammar.parse_kernels(self.text_of("kernel", "func"))[0]
        return [replace(kernel, span=self.part(kernel.span, "kernel", "func")) for kernel in found]

    def pairs(self, field: str) -> Iterator[tuple[Piece, Piece]]:
        """The pairs of an input and an output in ``inplace`` or ``view``, with their places in the file."""
        for pair in grammar.parse_pairs(self.text_of(field))[0]:
            first, second = self.placed(pair, field)
            yield first, second

    def candidates(self, field: str) -> tuple[str, list[Piece]]:
        """The separator and names in ``data_type``, ``layout`` or ``backend`` of ``kernel``."""
        mark, names = grammar.parse_candidates(self.text_of("kernel", field))
        return mark, self.placed(names, "kernel", field)

    def params(self, field: str) -> Sequence[Node] | None:
        """The items of ``param`` in ``kernel`` or ``infer_meta``; None without a list."""
        node = self.within(field, "param")
        return list(map(self.file.document.follow, node.items)) if node is not None and node.is_sequence else None

    @cached_property
    def arguments(self) -> Mapping[str, Arg]:
        """The arguments by name; in the old static graph, also by the names in ``op_compat.yaml``."""
        found = {arg.name: arg for arg in self.signature.args}
        renamed = self.listed.tree.legacy_names.get(self.name, {}) if self.is_legacy else {}
        return {**{name: found[other] for name, other in renamed.items() if other in found}, **found}

    @cached_property
    def optional(self) -> frozenset[str]:
        """The names of tensors that may be absent."""
        return frozenset(name.text for name in self.names("optional"))

    @property
    def returned(self) -> list[str]:
        """The types of the outputs that the C++ function returns."""
        hidden = {name.text for name in self.names("intermediate")}
        return [item.type for item in self.signature.outputs if item.name not in hidden]

    def declared(self) -> Related:
        """The arguments as the other side of a finding."""
        return self.related(self.get("args") or self.place, f"the arguments of `{self.name}`")


class OpFile(msgspec.Struct, eq=False, dict=True):
    """A file that lists operators.

    ``group`` names the files whose gradients and operators belong together: the main ones (empty), ``pir`` for the new static
    graph, which builds on them, and others for themselves. ``part`` is the first word of the file's name.
    """

    file: YamlFile
    tree: Tree
    group: str
    part: str
    entries: list[OpEntry] = msgspec.field(default_factory=list)

    @property
    def foreign(self) -> bool:
        """Whether CINN compiles its operators, which have no kernels."""
        return "/cinn/" in f"/{self.file.path}"


class OtherItem(Item, eq=False, dict=True):
    """An item of a file beside those that list operators."""

    @cached_property
    def name(self) -> str:
        """The operator that it is about, without its name in the old static graph."""
        return self.text_of("op").partition("(")[0].strip()


class OtherFile(msgspec.Struct, eq=False, dict=True):
    """A file beside those that list operators, and its kind."""

    kind: Kind
    file: YamlFile
    tree: Tree

    @cached_property
    def items(self) -> Sequence[OtherItem]:
        """The items of its list that are mappings."""
        return [OtherItem(self.file, index, item) for index, item in mappings_of(self.file)]


class Tree(msgspec.Struct, eq=False, dict=True):
    """One workspace with its files."""

    project: Project
    options: PaddleOptions
    files: list[OpFile] = msgspec.field(default_factory=list)
    others: list[OtherFile] = msgspec.field(default_factory=list)

    @property
    def entries(self) -> Iterator[OpEntry]:
        """All entries."""
        return (entry for file in self.files for entry in file.entries)

    @cached_property
    def by_name(self) -> Mapping[str, list[OpEntry]]:
        """The entries by their names, without the underscore at the end of in-place operators."""
        return grouped((entry.name.rstrip("_"), entry) for entry in self.entries)

    @cached_property
    def _groups(self) -> Mapping[tuple[str, str], Mapping[str, list[OpEntry]]]:
        """The entries by their names, for each folder of main files and group."""
        groups = grouped(((home(entry.file.path), entry.listed.group), entry) for entry in self.entries)
        return {key: grouped((entry.name, entry) for entry in entries) for key, entries in groups.items()}

    def beside(self, entry: OpEntry, group: str | None = None) -> Mapping[str, list[OpEntry]]:
        """The entries in the group of an entry, or in another one of the same folder, by their names."""
        return self._groups.get((home(entry.file.path), entry.listed.group if group is None else group), {})

    def named(self, name: str, of: OpEntry) -> list[OpEntry]:
        """The entries of that name in the group of an entry; for the new static graph also in the main files."""
        found = self.beside(of).get(name, [])
        return found or (self.beside(of, "").get(name, []) if of.listed.group == "pir" else [])

    def may_be_elsewhere(self, name: str, entry: OpEntry) -> bool:
        """Whether a name that is not in the group of an entry is from the new static graph or the main files, which some entries
        of the other share.
        """
        shared = ("", "pir", "legacy static")
        return entry.listed.group in ("", "pir") and any(name in self.beside(entry, group) for group in shared)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of entries that the parser of the tree knows."""
        text = self.project.workspace.peek(_PARSER).decode("utf-8", "replace")
        return frozenset(key for keys in _KEY_SET.findall(text) for key in re.findall(r"['\"](\w+)['\"]", keys))

    @property
    def _compat(self) -> Iterator[OtherItem]:
        return (item for other in self.others if other.kind == "compat" for item in other.items)

    @cached_property
    def new_names(self) -> Mapping[str, str]:
        """The names of operators, by those in the old static graph (``maximum (elementwise_max)``)."""
        pairs = (item.text_of("op").partition("(") for item in self._compat)
        return {old.rstrip(") "): new.strip() for new, _, old in pairs if old}

    @cached_property
    def signed_by_hand(self) -> frozenset[str]:
        """The operators of the old static graph whose kernels are called by hand-written code."""
        found = (item.get("manual_signature") for item in self._compat)
        return frozenset(name.value.rstrip("_") for node in found if node is not None for name in node.items)

    @cached_property
    def legacy_names(self) -> Mapping[str, Mapping[str, str]]:
        """The names of arguments in ``op_compat.yaml``, by those of operators and gradients."""
        found: dict[str, dict[str, str]] = {}
        for item in self._compat:
            pairs = (
                pair for name in ("inputs", "attrs", "outputs") if (part := item.get(name)) for pair in part.pairs()
            )
            mapped = {key.value: item.file.document.follow(value).value for key, value in pairs}
            for name in (*item.names("op"), *item.names("backward")):
                found.setdefault(name.text.partition("(")[0].strip(), {}).update(mapped)
        return found


def group_of(path: str) -> tuple[str, str]:
    """The group of a file that lists operators, and the first word of its name."""
    folder, _, name = path.rpartition("/")
    stem = _STEM.fullmatch(name)
    part = (stem[1] or "") if stem is not None else name.partition(".")[0]
    last = folder.rpartition("/")[2]
    if folder.endswith(OLD_PIR) or (last == "inconsistent" and part in ("static", "update")):
        return "pir", part
    if last == "legacy" or part == "static":
        return f"legacy {part}", part
    return ("" if part in ("", "legacy", "dygraph") else part), part

"""The lists of a backend's YAML, to take operators out of and to put them into."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from opschema_cli.lint.diagnostic import Place
from opschema_cli.migrate.draft import Draft
from opschema_cli.migrate.migration import Note, OptionError
from opschema_cli.phrases import quoted
from opschema_cli.source.text import Edit, Span, apply_edits
from opschema_cli.source.yaml import Data, Node, scalar_value
from opschema_cli.source.yaml_edit import YamlEditError, insert_item, remove_item, set_value
from opschema_cli.suggestions import did_you_mean, nearest
from opschema_rules.aten.migrations.empty_list import EmptyList, empty_list
from opschema_rules.aten.migrations.list_text import ListItem, ListText, read_list
from opschema_rules.aten.model import BackendFile, BackendItem

KERNELS = ("supported", "full_codegen", "autograd")
"""The lists of torchgen that say where an operator's kernel comes from; an operator is in one of them."""

MARKS = ("symint", "ir_gen")
"""The lists of torchgen with further properties of an operator from one of the others."""


def backends(draft: Draft) -> list[BackendFile]:
    """The YAML files of backends, as of the draft's last step."""
    return [item for item in draft.loaded.subjects if isinstance(item, BackendFile)]


def list_names(files: Sequence[BackendFile]) -> list[str]:
    """The keys of torchgen's lists, and of those that the files have."""
    found = (key for file in files for key, (_, node) in file.fields.items() if node.is_sequence)
    return list(dict.fromkeys((*KERNELS, *MARKS, *found)))


def check_list(name: str, option: str, files: Sequence[BackendFile]) -> None:
    """Refuse the name of a list that neither torchgen nor a file knows.

    Raises:
        OptionError: with the nearest name.
    """
    known = list_names(files)
    if name not in known:
        listed = quoted(known)
        raise OptionError(
            f"-o {option}={name}: there is no such list{did_you_mean(nearest(name, known)) or f'; known: {listed}'}"
        )


def chosen(files: Sequence[BackendFile], pattern: str) -> list[BackendItem]:
    """The items that a name or shell pattern means.

    Raises:
        OptionError: no list of any file has one, though there are files.
    """
    found = [item for file in files for item in file.items if fnmatchcase(item.name, pattern)]
    if files and not found:
        hint_text = did_you_mean(nearest(pattern, {item.name for file in files for item in file.items}))
        raise OptionError(f"-o ops={pattern}: no list here has such an operator{hint_text}")
    return found


def moved_comments(draft: Draft, path: str, section: str, names: Collection[str]) -> Iterator[Note]:
    """Yield notes on operators of a list that moved, with the comment above them: it may have been for others, too."""
    for backend in backends(draft):
        for item in backend.section(section) if backend.path == path else ():
            if item.name in names:
                yield Note(backend.at(item.name_node), f"the comment above `{item.name}` went with it")


class Lists:
    """The lists of one file, changed one by one and written together.

    ``commented`` are the operators that were put into one with the comment above them.
    """

    def __init__(self, backend: BackendFile) -> None:
        self.backend = backend
        self.commented: set[str] = set()
        self._blocks: dict[str, ListText] = {}
        self._empty: dict[str, EmptyList] = {}
        self._flow: dict[str, list[Data]] = {}

    def headed(self, section: str, name: str) -> list[Place]:
        """Return the comments at the head of several list items, the first of which is the operator.

        Raises:
            YamlEditError: the list is written in a way that is not edited.
        """
        block = self._block(section)
        return [self.backend.at(span) for span in block.headed(name)] if block is not None else []

    def take(self, section: str, name: str) -> list[ListItem]:
        """Take an operator's items out of a list that has it.

        Raises:
            YamlEditError: the list is written in a way that is not edited.
        """
        block = self._block(section)
        if block is not None:
            return block.take(name)
        items = self._in_flow(section)
        if name not in items:
            raise YamlEditError(f"`{name}` has options between the brackets of `{section}`", self.backend.node.span)
        self._flow[section] = [item for item in items if item != name]
        return [plain_item(self.backend, name) for item in items if item == name]

    def put(self, section: str, item: ListItem) -> None:
        """Put an item into a list, which is created if it is missing.

        Raises:
            YamlEditError: the list is written in a way that is not edited.
        """
        block = self._block(section)
        if item.has_comment:
            self.commented.add(item.name)
        if block is not None:
            block.put(item)
        elif self._is_empty(section):
            if section not in self._empty:
                self._empty[section] = empty_list(self.backend, section)
            self._empty[section].put(item)
        elif item != plain_item(self.backend, item.name):
            raise YamlEditError(f"`{section}` has no lines for its comments or options", self.backend.node.span)
        else:
            names = self._in_flow(section)
            self._flow[section] = [*names, item.name] if item.name not in names else names

    def edits(self) -> Iterator[Edit]:
        """All changes of the file.

        Raises:
            YamlEditError, ValueError: the editor refuses.
        """
        for block in self._blocks.values():
            yield from block.edits()
        for empty in self._empty.values():
            yield from empty.edits()
        for section, names in self._flow.items():
            node = self.backend.get(section)
            if node is not None:
                yield from self._flow_edits(node, names)

    def _flow_edits(self, node: Node, names: list[Data]) -> list[Edit]:
        """The changes of a list in brackets. One that is written over several lines keeps these."""
        file = self.backend.file
        if not names:
            return set_value(file, node, [])
        old = file.document.data(node)
        assert isinstance(old, list)
        edits = [edit for at, item in enumerate(old) if item not in names for edit in remove_item(file, node, at)]
        added = [insert_item(file, node, len(old), name) for name in names if name not in old]
        ends: dict[Span, str] = {}
        for edit in (edit for inserted in added for edit in inserted):
            ends[edit.span] = ends.get(edit.span, "") + edit.replacement
        edits += [Edit(span, text) for span, text in ends.items()]
        try:
            apply_edits("", edits)  # for its check alone
        except ValueError:
            if "\n" in file.source.text[node.start : node.end]:
                raise YamlEditError("neighbours in a list of several lines change at once", node.span) from None
            return set_value(file, node, list(names))
        return edits

    def _block(self, section: str) -> ListText | None:
        node = self.backend.get(section)
        if node is None or not node.is_sequence or node.style != "block":
            return None
        if section not in self._blocks:
            self._blocks[section] = read_list(self.backend, section)
        return self._blocks[section]

    def _is_empty(self, section: str) -> bool:
        node = self.backend.get(section)
        if node is None or (node.kind == "scalar" and scalar_value(node) is None):
            return True
        return node.is_sequence and not node.items and "#" not in self._written(section)

    def _written(self, section: str) -> str:
        node = self.backend.get(section)
        return self.backend.file.source.text[node.start : node.end] if node is not None else ""

    def _in_flow(self, section: str) -> list[Data]:
        """The items of a list in flow style."""
        if section not in self._flow:
            node = self.backend.get(section)
            data = self.backend.file.document.data(node) if node is not None else None
            if not isinstance(data, list) or "#" in self._written(section):
                raise YamlEditError(
                    f"`{section}` is not a list, or has comments between brackets", self.backend.node.span
                )
            self._flow[section] = data
        return self._flow[section]


def plain_item(backend: BackendFile, name: str) -> ListItem:
    """An operator as an item without options or comments."""
    return ListItem(name, f"- {name}{backend.file.source.newline}")

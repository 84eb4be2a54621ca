"""Composes the tree of a YAML text from libyaml's events with its own stack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from opschema_cli.source.text import Source, Span
from opschema_cli.source.yaml import MAX_DEPTH, Document, Node, YamlFile, YamlSyntaxError

MAX_NODES = 1_000_000
"""Maximum number of nodes in one file, and of values that its aliases may expand to."""

MAX_DIRECTIVES = 100
"""Maximum number of ``%`` lines before a document: libyaml compares each with all others."""

MAX_SLOW_CHARACTERS = 250_000
"""Maximum length of a text to retry with the slow parser."""

_HEAD = re.compile(r"(?:[ \t]*(?:[%#][^\r\n]*)?[\r\n])*")

_DIRECTIVE = re.compile(r"(?:\A|(?<=[\r\n]))%")


def compose(text: str) -> Document:
    """The tree of the first document in ``text``; without a root if that is empty, with ``---`` before it or not.

    Raises:
        YamlSyntaxError: the text is not YAML, nests deeper than :data:`MAX_DEPTH`, holds more than one
            document, more than :data:`MAX_NODES` nodes or values of aliases, an alias without anchor, or an anchor twice.
    """
    from ruamel.yaml.error import YAMLError

    head = _HEAD.match(text)
    if head is not None and len(_DIRECTIVE.findall(head.group())) > MAX_DIRECTIVES:
        raise YamlSyntaxError(f"it begins with more than {MAX_DIRECTIVES} directives", Span(0, 0))
    try:
        from _ruamel_yaml import CParser
    except ImportError:  # no WebAssembly build of it is published
        return _compose_without_libyaml(text)
    try:
        return _Composer(CParser(text).get_event, text).compose()
    except YAMLError as error:
        # The C parser is an old libyaml, which refuses `{CPU: at::add}` and `[x:y]`; readers do not.
        return _compose_slowly(text, _syntax_error(error, text))


def _compose_slowly(text: str, refused: YamlSyntaxError) -> Document:
    """Compose the tree with ruamel's own parser, about 20 times slower; raise ``refused`` if that rejects the text as well."""
    if len(text) > MAX_SLOW_CHARACTERS or "':'" not in refused.reason:
        raise refused
    from ruamel.yaml.error import YAMLError

    try:
        document = _Composer(_slow_events(text), text).compose()
    except (YAMLError, ValueError, OverflowError):  # the latter of an escape that is not a character
        raise refused from None
    # To YAML 1.2 `{a:}` has the key `a:`, to its readers here the key `a`: better no answer than another one.
    if document.root is not None and any(map(_read_otherwise, document.root.walk())):
        raise refused
    return document


def _compose_without_libyaml(text: str) -> Document:
    """Compose the tree with ruamel's own parser, if libyaml's is not installed."""
    from ruamel.yaml.error import YAMLError

    if len(text) > MAX_SLOW_CHARACTERS:
        reason = f"it has {len(text):,} characters; up to {MAX_SLOW_CHARACTERS:,} are parsed without ruamel.yaml.clib"
        raise YamlSyntaxError(reason, Span(0, 0))
    try:
        document = _Composer(_slow_events(text), text).compose()
    except YAMLError as error:
        raise _syntax_error(error, text) from None
    except YamlSyntaxError:
        raise
    except (ValueError, OverflowError) as error:
        raise YamlSyntaxError(str(error).partition("\n")[0], Span(0, 0)) from None
    for node in document.root.walk() if document.root is not None else ():
        if _read_otherwise(node):
            raise YamlSyntaxError("parsers of YAML read this in different ways; quote it", node.span)
    return document


def _slow_events(text: str) -> Callable[[], Any]:
    """Return a function that returns the next event of ruamel's own parser."""
    from ruamel.yaml import YAML

    events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
    return events.__next__


def _read_otherwise(node: Node) -> bool:
    half = any("\ud800" <= character <= "\udfff" for character in node.value) if node.style == '"' else False
    return half or (node.kind == "scalar" and not node.style and node.value.endswith(":"))


def _syntax_error(error: Exception, text: str) -> YamlSyntaxError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        at = min(mark.index, len(text))
        if text[at : at + 1] == "\t":
            return YamlSyntaxError("a tab is used where only spaces are allowed; write spaces", Span(at, at + 1))
        words = (getattr(error, "problem", None), getattr(error, "context", None))
        return YamlSyntaxError(" ".join(filter(None, words)), Span(at, at))
    read = text.encode(errors="replace")[: getattr(error, "position", 0) or 0]  # the reader counts bytes
    at = len(read.decode(errors="ignore"))
    return YamlSyntaxError(str(error).partition("\n")[0], Span(at, at))


class _Composer:
    """Builds the tree with its own stack: libyaml's composer recurses until the process dies."""

    def __init__(self, step: Callable[[], Any], text: str) -> None:
        self.step = step
        self.text = text
        self.anchors: dict[str, Node] = {}
        self.stack: list[tuple[Node, list[Node]]] = []
        self.words: dict[str, str] = {}
        self.values = [0]  # so far in the document and in each open collection, aliases followed
        self.sizes: dict[str, int] = {}
        self.root: Node | None = None
        self.documents = 0
        self.nodes = 0

    def compose(self) -> Document:
        from ruamel.yaml import events as e

        handlers: dict[type, Callable[[Any], None]] = {
            e.ScalarEvent: self._scalar,
            e.MappingStartEvent: lambda event: self._open("mapping", event),
            e.SequenceStartEvent: lambda event: self._open("sequence", event),
            e.MappingEndEvent: self._close,
            e.SequenceEndEvent: self._close,
            e.AliasEvent: self._alias,
            e.DocumentStartEvent: self._document,
        }
        while type(event := self.step()) is not e.StreamEndEvent:
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
        root = self.root if self.root is not None and not _is_nothing(self.root) else None
        return Document(root, self.anchors)

    def _scalar(self, event: Any) -> None:
        start, end, style = event.start_mark.index, event.end_mark.index, event.style or ""
        if style in {"|", ">"}:
            end = self._block_scalar_end(start, end, event.value)
        value = self.words.setdefault(event.value, event.value)  # the same few words fill every entry
        self._add(Node("scalar", start, end, value, style, event.tag or ""), event)

    def _open(self, kind: Literal["mapping", "sequence"], event: Any) -> None:
        style = "flow" if event.flow_style else "block"
        node = Node(kind, event.start_mark.index, event.end_mark.index, "", style, event.tag or "")
        self._add(node, event)
        self.stack.append((node, []))
        self.values.append(0)
        if len(self.stack) > MAX_DEPTH:
            raise YamlSyntaxError(f"it nests deeper than {MAX_DEPTH} levels", node.span)

    def _close(self, event: Any) -> None:
        node, items = self.stack.pop()
        node.items = tuple(items)
        node.end = self._collection_end(node, event)
        size = self.values.pop()
        self.values[-1] += size
        self.sizes[node.anchor] = size + 1

    def _alias(self, event: Any) -> None:
        span = Span(event.start_mark.index, event.end_mark.index)
        if event.anchor not in self.anchors:
            raise YamlSyntaxError(f"the alias `*{event.anchor}` has no anchor above it", span)
        self._add(Node("alias", *span, event.anchor), None)
        self.values[-1] += self.sizes.get(event.anchor, 0)
        if sum(self.values) > MAX_NODES:
            raise YamlSyntaxError(f"its aliases expand to more than {MAX_NODES:,} values", span)

    def _document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            span = Span(event.start_mark.index, event.end_mark.index)
            raise YamlSyntaxError("a second document starts here; a schema file holds one", span)

    def _add(self, node: Node, event: object) -> None:
        self.nodes += 1
        self.values[-1] += 1
        if self.nodes > MAX_NODES:
            raise YamlSyntaxError(f"it holds more than {MAX_NODES:,} nodes", node.span)
        anchor = getattr(event, "anchor", None)
        if anchor:
            if anchor in self.anchors:
                raise YamlSyntaxError(f"the anchor `&{anchor}` is set twice", node.span)
            node.anchor = anchor
            self.anchors[anchor] = node
        if self.stack:
            self.stack[-1][1].append(node)
        elif self.root is None:
            self.root = node

    def _collection_end(self, node: Node, event: object) -> int:
        start, end = event.start_mark.index, event.end_mark.index  # type: ignore[attr-defined]
        if node.style == "flow" and start < end:  # closed by a bracket; else the mark is the next token's
            return int(end)
        return max(node.start, node.items[-1].end) if node.items else node.start

    def _block_scalar_end(self, start: int, end: int, value: str) -> int:
        """Return the end of a block scalar's text; its end mark is after its last line and all blank ones."""
        written = self.text[start:end]
        header = written.partition("\n")[0].partition("#")[0]
        if "+" in header:  # the blank lines are text
            return end - len(written) + len(re.sub(r"(?:\r\n|\r|\n)\Z", "", written))
        kept = "\r\n" if value.rstrip("\n").endswith((" ", "\t")) else " \t\r\n"
        return start + len(written.rstrip(kept))


def _is_nothing(node: Node) -> bool:
    """Whether the text contains no node: the document only has ``---``, directives and comments."""
    return node.kind == "scalar" and not (node.value or node.style or node.tag or node.anchor)


def parse(source: Source) -> YamlFile:
    """Parse one YAML file.

    Raises:
        YamlSyntaxError: see :func:`compose`.
    """
    return YamlFile(source, compose(source.text))

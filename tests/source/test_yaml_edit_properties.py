"""The editor on random documents: the data changes as asked, PyYAML agrees, and nothing else moves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opschema_cli.source.text import Edit, Source, Span, apply_edits
from opschema_cli.source.yaml import Data, Node, YamlFile, scalar_value
from opschema_cli.source.yaml_compose import parse
from opschema_cli.source.yaml_edit import (
    YamlEditError,
    insert_item,
    insert_key,
    quote_scalar,
    remove_item,
    remove_key,
    rename_key,
    set_value,
)

KEYS = ["a", "b", "key", "no", "17", "x y", '"d: q"', "'s # q'", '"- x"', "a/b", "long_name", "é"]
SCALARS = ["1", "text", "1.0e-6", "true", "null", "~", '"d"', "'s'", "'it''s'", '"a # b"', "x#y", "a b c", "010", "-x"]
WORDS = st.text(st.sampled_from("ab1.0:#-?,[]{}&*!|>'\"%@` \n\t\\é\x85\u2028\U0001f600~e+"), max_size=6)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), WORDS, st.sampled_from(["no", "1e5", "1:30"])
)
VALUES: st.SearchStrategy[Data] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc") | WORDS, inner, max_size=3),
    max_leaves=6,
)
Entry = tuple[Data, Data]


class Writer:
    """Writes YAML that a person might: every choice of style is drawn."""

    def __init__(self, draw: Callable[..., object]) -> None:
        self.serial = count()
        self.pick: Callable[..., str] = lambda *choices: draw(st.sampled_from(choices))  # type: ignore[return-value]
        self.size: Callable[[int, int], int] = lambda low, high: draw(st.integers(low, high))  # type: ignore[return-value]

    def comment(self) -> str:
        return f"# c{next(self.serial)}{self.pick('', ': x', ' [', ', }', chr(34))}"

    def trail(self) -> str:
        return self.pick("", "", "  " + self.comment(), " ")

    def between(self, *, after_text: bool) -> list[str]:
        """Blank lines and comments between entries; deep comments would be text of a block scalar."""
        kinds = ["", "", "", "blank", "comment", "comment", "both", "odd"] + ["deep"] * (not after_text)
        kind = self.pick(*kinds)
        comments = {"comment": self.comment, "both": self.comment, "deep": lambda: "   " + self.comment()}
        comments["odd"] = lambda: "\0" + self.comment()
        lines = [""] * self.size(1, 2) if kind in {"blank", "both"} else []
        return lines + ([comments[kind]()] if kind in comments else [])

    def keys(self, low: int) -> list[str]:
        number = self.size(low, 4)
        return [key for n, key in enumerate(KEYS) if n % 4 < number][self.size(0, 2) :][:number] or ["only"]

    def block(self, depth: int, sequence: bool) -> list[str]:
        gap = "-" + " " * self.size(1, 3)
        heads = [gap] * self.size(1, 4) if sequence else [key + ":" for key in self.keys(1)]
        lines: list[str] = []
        after_text = False
        for number, head in enumerate(heads):
            if number:
                lines += self.between(after_text=after_text)
            kind, value = self.value(head, depth)
            after_text = kind == "text"
            lines += value
        return lines

    def value(self, head: str, depth: int) -> tuple[str, list[str]]:
        kinds = ["scalar", "scalar", "empty", "flow", "multi-flow", "text", "below", "long"]
        kind = self.pick(*kinds, *["mapping", "sequence", "mapping", "sequence"] * (depth < 3))
        bare = head.rstrip()
        space = head if head != bare else head + self.pick(" ", "   ")
        if kind == "scalar":
            return kind, [space + self.pick(*SCALARS) + self.trail()]
        if kind == "empty":
            return kind, [bare + self.trail()]
        if kind == "flow":
            return kind, [space + self.flow(depth) + self.trail()]
        if kind == "multi-flow":
            return kind, self.multi_flow(space)
        if kind == "text":
            return kind, self.text(space)
        if kind == "below":
            return kind, [bare + self.trail(), " " * self.size(1, 3) + self.pick(*SCALARS) + self.trail()]
        if kind == "long":
            first, last = self.pick("word words", '"open'), self.trail()
            return kind, [space + first, "   and more" + ('"' if first[0] == '"' else "") + last]
        return self.nested(bare, head, depth, kind == "sequence")

    def nested(self, bare: str, head: str, depth: int, sequence: bool) -> tuple[str, list[str]]:
        lines = self.block(depth + 1, sequence)
        kind = "text" if any("|" in line for line in lines) else "nested"
        if bare == "-" and self.pick("compact", "compact", "below") == "compact":
            return kind, [head + lines[0], *(" " * len(head) + line if line else "" for line in lines[1:])]
        indent = " " * self.size(0 if sequence and bare != "-" else 1, 4)
        opening = [bare + self.trail(), *self.between(after_text=False)]
        return kind, [*opening, *(indent + line if line else "" for line in lines)]

    def text(self, space: str) -> list[str]:
        indent = " " * self.size(1, 4)
        header = self.pick("|", "|-", "|+", ">", ">-", ">+") + self.pick("", "  " + self.comment())
        body = [self.pick("one", "two # no comment", "", "  deep")[: self.size(0, 20)] for _ in range(self.size(0, 3))]
        return [space + header, *(indent + line if line else "" for line in ["text", *body])]

    def flow(self, depth: int) -> str:
        opening, closing = self.pick("{}", "[]")
        pad, comma = self.pick("", " "), self.pick(",", ", ")
        entries = self.flow_entries(depth, opening == "{")
        return opening + pad + comma.join(entries) + (self.pick("", ",") if entries else "") + pad + closing

    def flow_entries(self, depth: int, mapping: bool) -> list[str]:
        if mapping:
            return [self.flow_pair(key, depth) for key in self.keys(0) if key != "only"]
        return [self.pick("", "", "pair: ") + self.flow_value(depth) for _ in range(self.size(0, 3))]

    def flow_pair(self, key: str, depth: int) -> str:
        value = self.flow_value(depth)
        return self.pick(f"{key}: {value}", f"{key}: {value}", f"{key}:  {value}", f"{key}: ", key, f"{key} : {value}")

    def flow_value(self, depth: int) -> str:
        return self.flow(depth + 1) if depth < 3 and self.size(0, 3) == 0 else self.pick(*SCALARS)

    def multi_flow(self, space: str) -> list[str]:
        opening, closing = self.pick("{}", "[]")
        entries = self.flow_entries(2, opening == "{")
        lines = [space + opening + self.trail()]
        for number, text in enumerate(entries):
            comma = "," if number + 1 < len(entries) else self.pick("", ",")
            if self.pick("", "", "comment") == "comment":
                lines.append("    " + self.comment())
            if self.pick("own", "own", "joined") == "joined" and "#" not in lines[-1].replace("# q", "").replace(
                "a # b", ""
            ):
                lines[-1] += " " + text + comma + self.trail()
            else:
                lines.append("    " + text + comma + self.trail())
        if self.pick("own", "joined") == "joined" and not re.search(r"# c\d", lines[-1]):
            return [*lines[:-1], lines[-1] + closing + self.trail()]
        return [*lines, "  " + closing + self.trail()]


@st.composite
def documents(draw: Callable[..., object]) -> str:
    writer = Writer(draw)
    head = ["# c-head", *writer.between(after_text=False)] if writer.size(0, 2) == 0 else []
    lines = head + writer.block(0, writer.size(0, 3) == 0) + writer.between(after_text=True)
    lines = [line.lstrip(" ").replace("\0", "") if "\0" in line else line for line in lines]
    newline = writer.pick("\n", "\r\n")
    return newline.join(lines) + writer.pick(newline, "")


def parsed(text: str) -> YamlFile:
    return parse(Source("random.yaml", text))


def collections(node: Node) -> Iterator[Node]:
    if node.kind != "scalar":
        yield node
    for child in node.items:
        yield from collections(child)


def expected(file: YamlFile, target: Node, change: Callable[[list[Entry]], None]) -> Data:
    """The data of ``file`` with ``change`` made to the entries, (key, value), of ``target``."""

    def build(node: Node) -> Data:
        if node.kind == "scalar":
            return scalar_value(node)
        if node.is_mapping:
            entries = [(build(key), build(value)) for key, value in node.pairs()]
        else:
            entries = [(None, build(item)) for item in node.items]
        if node is target:
            change(entries)
        return dict(entries) if node.is_mapping else [value for _, value in entries]

    assert file.root is not None
    return build(file.root)


class Case(NamedTuple):
    """One edit: what was done, to which characters, and the data it should give."""

    action: str
    reach: Span
    edits: list[Edit]
    data: Data


def draw_case(draw: st.DataObject, file: YamlFile, target: Node) -> Case:
    """One edit of ``target``'s entries."""
    total = len(target.items) // 2 if target.is_mapping else len(target.items)
    actions = ["set", "insert", "remove", "quote", *["rename"] * target.is_mapping] if total else ["insert"]
    action = draw.draw(st.sampled_from(actions))
    value = draw.draw(VALUES)
    if action == "insert":
        return draw_insertion(draw, file, target, total, value)
    number = draw.draw(st.integers(0, total - 1))
    start, node = entry_of(file, target, number)
    reach = Span(start, node.end) if total > 1 or action != "remove" else target.span
    key = target.items[2 * number].value if target.is_mapping else ""
    if action == "remove":
        edits = remove_key(file, target, key) if target.is_mapping else remove_item(file, target, number)
        return Case(action, reach, edits, expected(file, target, lambda entries: entries.__delitem__(number)))
    if action == "rename":
        new = draw.draw(st.sampled_from(["new", "- new", "new: ", "'new'", "on", "1.5", ""]))
        edits = rename_key(file, target, key, new)
        return Case(action, reach, edits, expected(file, target, replace(number, lambda old: (new, old[1]))))
    if action == "quote" and node.kind == "scalar":
        value, edits = node.value, quote_scalar(file, node)
    else:
        action, edits = "set", set_value(file, node, value)
    return Case(action, reach, edits, expected(file, target, replace(number, lambda old: (old[0], value))))


def draw_insertion(draw: st.DataObject, file: YamlFile, target: Node, total: int, value: Data) -> Case:
    at = draw.draw(st.integers(0, total))
    if target.is_sequence:
        edits, entry = insert_item(file, target, at, value), (None, value)
    else:
        key = draw.draw(st.sampled_from(["new", "- new", "new: ", "'new'", "on", "1.5", ""]))
        names = [name.value for name, _ in target.pairs()]
        before = names[at] if at < total else None
        after = names[at - 1] if at and draw.draw(st.booleans()) else None
        edits = insert_key(file, target, key, value, before=None if after else before, after=after)
        entry = (key, value)
    return Case("insert", target.span, edits, expected(file, target, lambda entries: entries.insert(at, entry)))


def replace(number: int, change: Callable[[Entry], Entry]) -> Callable[[list[Entry]], None]:
    return lambda entries: entries.__setitem__(number, change(entries[number]))


def entry_of(file: YamlFile, target: Node, number: int) -> tuple[int, Node]:
    """Where an entry begins (the dash is looked for from behind), and its value."""
    if target.is_mapping:
        return target.items[2 * number].start, target.items[2 * number + 1]
    node = target.items[number]
    if target.style == "flow":
        return node.start, node
    behind = target.items[number - 1].end if number else target.start
    between = re.sub(r"#.*", lambda comment: " " * len(comment.group()), file.source.text[behind : node.start])
    return behind + between.rindex("-"), node


def check_reach(file: YamlFile, target: Node, case: Case) -> None:
    """The spans of the edits lie where the entry is written, with its comments and the blank lines around."""
    text = file.source.text
    if case.action == "insert" and target.items:
        assert all(edit.span.start == edit.span.end for edit in case.edits)
        return
    around = re.compile(r"[ \t]*(#.*)?")
    first, last = (file.source.position(offset).line for offset in case.reach)
    if case.action == "remove":
        while first > 1 and around.fullmatch(file.source.line_text(first - 1)):
            first -= 1
    while last < file.source.line_count and around.fullmatch(file.source.line_text(last + 1)):
        last += 1
    start, end = file.source.line_span(first).start, file.source.line_span(last).end
    for edit in case.edits:
        outside = text[edit.span.start : min(start, edit.span.end)] + text[max(end, edit.span.start) : edit.span.end]
        assert outside.strip() in {"", ","}
        assert start - 2 <= edit.span.start or outside or edit.replacement in {" {}", " []"}


def comments(text: str) -> Counter[str]:
    return Counter(re.findall(r"# c\d+|# c-head", text))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(), st.data())
def test_an_edit_changes_what_it_should(text: str, draw: st.DataObject) -> None:
    file = parsed(text)
    assert repr(file.data) == repr(yaml.safe_load(text)), "the parser and PyYAML differ"
    assert file.root is not None
    target = draw.draw(st.sampled_from(list(collections(file.root))))
    try:
        case = draw_case(draw, file, target)
    except YamlEditError as error:
        if not re.search("the line end that the file lacks|a single pair without braces", error.reason):
            raise
        return
    check_reach(file, target, case)
    result = apply_edits(text, case.edits)
    assert repr(yaml.safe_load(result)) == repr(case.data)
    assert repr(parsed(result).data) == repr(case.data)
    if case.action in {"insert", "rename", "quote"}:
        assert comments(result) == comments(text)
    if "\r\n" in text:
        assert "\n" not in result.replace("\r\n", "")
    elif "\n" in text:
        assert "\r" not in result

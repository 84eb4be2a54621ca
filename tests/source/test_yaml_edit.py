"""The lossless editor by example: a text, an edit, the text after it. Random documents: test_yaml_edit_properties."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.source.text import Edit, EditConflictError, Source, Span, apply_edits
from opschema_cli.source.yaml import Node, YamlFile
from opschema_cli.source.yaml_compose import parse
from opschema_cli.source.yaml_edit import (
    YamlEditError,
    insert_item,
    insert_key,
    quote_scalar,
    remove_item,
    remove_key,
    rename_key,
    render_scalar,
    set_value,
)
from opschema_cli.source.yaml_render import Context, key_text

Change = Callable[[YamlFile], list[Edit]]


def parsed(text: str) -> YamlFile:
    return parse(Source("ops.yaml", text))


def at(file: YamlFile, *path: str | int) -> Node:
    node = file.root.get(*path) if file.root else None
    assert node is not None
    return node


def edited(text: str, change: Change) -> str:
    return apply_edits(text, change(parsed(text)))


def put(key: str, value: object, **where: str) -> Change:
    return lambda file: insert_key(file, at(file), key, value, **where)  # type: ignore[arg-type]


def put_in(step: str | int, key: str, value: object, **where: str) -> Change:
    return lambda file: insert_key(file, at(file, step), key, value, **where)  # type: ignore[arg-type]


SET = {
    "a plain scalar": ("a: 1  # why\nb: 2\n", ["a"], 2, "a: 2  # why\nb: 2\n"),
    "text that needs no quotes": ("a: x\n", ["a"], "y z", "a: y z\n"),
    "text that needs quotes": ("a: x\n", ["a"], "no", 'a: "no"\n'),
    "double quotes are kept": ('a: "x"\n', ["a"], "y", 'a: "y"\n'),
    "single quotes are kept": ("a: 'x'\n", ["a"], "it's", "a: 'it''s'\n"),
    "single quotes cannot hold a line end": ("a: 'x'\n", ["a"], "y\nz", 'a: "y\\nz"\n'),
    "quotes cannot hold a number": ("a: '1'\n", ["a"], 1, "a: 1\n"),
    "1.0 is not 1": ("a: 1\n", ["a"], 1.0, "a: 1.0\n"),
    "the same value is not an edit": ("a: 0x10  # hex\n", ["a"], 16, "a: 0x10  # hex\n"),
    "a date becomes text": ("a: 2020-01-01\n", ["a"], "2020-01-01", 'a: "2020-01-01"\n'),
    "an empty value": ("a:  # why\nb:\n", ["a"], 1, "a: 1  # why\nb:\n"),
    "an empty value behind an anchor": ("a: &x\n", ["a"], 1, "a: &x 1\n"),
    "an empty item": ("-\n- b\n", [0], "a", "- a\n- b\n"),
    "an empty value in flow": ("{a: , b}\n", ["a"], 1, "{a: 1 , b}\n"),
    "a key alone in flow": ("{a, b}\n", ["b"], 1, "{a, b: 1}\n"),
    "a value on the next line": ("a:\n  x  # why\n", ["a"], "y", "a:\n  y  # why\n"),
    "in flow, brackets need quotes": ("{a: x}\n", ["a"], "f[0]", '{a: "f[0]"}\n'),
    "a plain scalar of two lines": ("a: x\n  y  # why\nb: 1\n", ["a"], "z", "a: z  # why\nb: 1\n"),
    "the root": ("--- 1  # why\n", [], 2, "--- 2  # why\n"),
    "a root of null": ("--- ~\n", [], 2, "--- 2\n"),
    "a literal stays one": ("a: |  # why\n    x\n    y\nb: 1\n", ["a"], "u\n\nv\n", "a: |  # why\n    u\n\n    v\nb: 1\n"),
    "a folded scalar of one line": ("a: >-\n  x\n  y\n", ["a"], "z", "a: >-\n  z\n"),
    "a literal cannot hold a leading blank": ("a: |\n  x\nb: 1\n", ["a"], " x", 'a: " x"\nb: 1\n'),
    "a literal at the end without line end": ("a: |\n  x", ["a"], "y\n", 'a: "y\\n"'),
    "a literal becomes a number": ("a: |+  # why\n  x\n\n\nb: 1\n", ["a"], 2, "a: 2  # why\nb: 1\n"),
    "a scalar becomes a block": ("a: 1  # why\nb: 2\n", ["a"], {"x": [1]}, "a:  # why\n  x:\n    - 1\nb: 2\n"),
    "a scalar becomes flow beside flow": ("a: 1\nb: {x: 1}\n", ["a"], {"y": 2}, "a: {y: 2}\nb: {x: 1}\n"),
    "a scalar item becomes a block": ("- 1  # why\n- 2\n", [0], {"x": 1, "y": 2}, "- x: 1  # why\n  y: 2\n- 2\n"),
    "an empty item becomes a block": ("-  # why\n- 2\n", [0], {"x": 1, "y": 2}, "- x: 1  # why\n  y: 2\n- 2\n"),
    "a block becomes a scalar": ("a:  # why\n  # x\n  b: 1  # b\n  # end\nc: 2\n", ["a"], 3, "a: 3  # why\nc: 2\n"),
    "a block becomes another": ("a:\n    b: 1\nc: 2\n", ["a"], {"d": 3, "e": {}}, "a:\n    d: 3\n    e: {}\nc: 2\n"),
    "dashes become keys": ("a:\n- 1\nb: 2\n", ["a"], {"c": 1}, "a:\n  c: 1\nb: 2\n"),
    "keys become dashes": ("a:\n  b: 1\nc:\n- 1\n", ["a"], [2], "a:\n- 2\nc:\n- 1\n"),
    "a block item becomes a scalar": ("- a: 1\n  b: 2\n- 3\n", [0], 4, "- 4\n- 3\n"),
    "a block item below its dash": ("-\n  a: 1\n- 3\n", [0], 4, "- 4\n- 3\n"),
    "flow stays flow": ("a: {b: 1}  # why\n", ["a"], {"c": [1, "x, y"]}, 'a: {c: [1, "x, y"]}  # why\n'),
    "an empty collection follows its neighbours": ("a: {}\nb:\n  c: 1\n", ["a"], {"d": 1}, "a:\n  d: 1\nb:\n  c: 1\n"),
    "carriage returns": ("a: 1\r\nb: 2\r\n", ["a"], {"x": 1}, "a:\r\n  x: 1\r\nb: 2\r\n"),
    "behind an anchor nobody uses": ("- &x a: 1\n- &y\n  b: 2\n", [1], {"c": 3, "d": 4}, "- &x a: 1\n- &y\n  c: 3\n  d: 4\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "value", "expected"), SET.values(), ids=SET)
def test_set_value(text: str, path: list[str | int], value: object, expected: str) -> None:
    assert edited(text, lambda file: set_value(file, at(file, *path), value)) == expected  # type: ignore[arg-type]


INSERT_KEY = {
    "at the end": ("a: 1\n", put("b", 2), "a: 1\nb: 2\n"),
    "at the end without line end": ("a: 1", put("b", 2), "a: 1\nb: 2"),
    "before comments at the end": ("a: 1  # why\n\n# end\n", put("b", 2), "a: 1  # why\nb: 2\n\n# end\n"),
    "behind deeper comments": (
        "a:\n  x: 1\n  # y: 2\nc: 3\n",
        put("b", 2, after="a"),
        "a:\n  x: 1\n  # y: 2\nb: 2\nc: 3\n",
    ),
    "after a key": ("a: 1\nc: 3\n", put("b", 2, after="a"), "a: 1\nb: 2\nc: 3\n"),
    "before a key and its comment": ("a: 1\n# c\nc: 3\n", put("b", 2, before="c"), "a: 1\nb: 2\n# c\nc: 3\n"),
    "before the first key": ("# head\n\n# a\na: 1\n", put("b", 2, before="a"), "# head\n\nb: 2\n# a\na: 1\n"),
    "below the licence": (
        "# SPDX-License-Identifier: MIT\na: 1\n",
        put("b", 2, before="a"),
        "# SPDX-License-Identifier: MIT\nb: 2\na: 1\n",
    ),
    "blank lines between entries": ("a: 1\n\nb: 2\n", put("c", 3), "a: 1\n\nb: 2\n\nc: 3\n"),
    "no blank line where one side has none": (
        "a: 1\nb: 2\n\nd: 4\n",
        put("c", 3, after="b"),
        "a: 1\nb: 2\nc: 3\n\nd: 4\n",
    ),
    "deep indentation": (
        "a:\n      b: 1\nz: 0\n",
        put_in("a", "c", {"d": 1}),
        "a:\n      b: 1\n      c:\n            d: 1\nz: 0\n",
    ),
    "dashes as the file has them": ("a:\n- 1\n", put("b", [1, 2]), "a:\n- 1\nb:\n- 1\n- 2\n"),
    "carriage returns": ("a: 1\r\n", put("b", {"c": 1}), "a: 1\r\nb:\r\n  c: 1\r\n"),
    "on a dash line": ("- a: 1\n", put_in(0, "b", 2), "- a: 1\n  b: 2\n"),
    "before the key on a dash line": ("- a: 1\n", put_in(0, "b", 2, before="a"), "- b: 2\n  a: 1\n"),
    "behind kept blank lines": ("a: |+\n  x\n\n", put("b", 2), "a: |+\n  x\n\nb: 2\n"),
    "before the end of the document": ("---\na: 1\n...\n", put("b", 2), "---\na: 1\nb: 2\n...\n"),
    "quotes as the neighbours have them": (
        'x: {dtype: "f16"}\n',
        put("y", {"dtype": "f32"}),
        'x: {dtype: "f16"}\ny: {dtype: "f32"}\n',
    ),
    "an empty mapping": ("a: {}  # why\n", put_in("a", "b", 1), "a: {b: 1}  # why\n"),
    "an empty mapping with a comment": ("a: {  # why\n  }\n", put_in("a", "b", 1), "a: {b: 1  # why\n  }\n"),
    "an empty mapping beside blocks": ("a: {}\nc:\n  d: 1\n", put_in("a", "b", 1), "a:\n  b: 1\nc:\n  d: 1\n"),
    "flow": ("{a: 1}\n", put("b", {"c": [1]}), "{a: 1, b: {c: [1]}}\n"),
    "flow, first": ("{a: 1}\n", put("b", 2, before="a"), "{b: 2, a: 1}\n"),
    "flow, trailing comma": ("{a: 1,}\n", put("b", 2), "{a: 1, b: 2,}\n"),
    "flow, quoted keys": ('{"a": 1}\n', put("b", 2), '{"a": 1, "b": 2}\n'),
    "flow, a key alone": ("{a}\n", put("b", 2), "{a, b: 2}\n"),
    "flow, an empty value": ("{a: }\n", put("b", 2), "{a: , b: 2 }\n"),
    "flow of many lines": ("{\n  a: 1  # a\n}\n", put("b", 2), "{\n  a: 1,  # a\n  b: 2\n}\n"),
    "flow of many lines, trailing comma": ("{\n  a: 1,  # a\n}\n", put("b", 2), "{\n  a: 1,  # a\n  b: 2,\n}\n"),
    "flow of many lines, first": ("{\n  # a\n  a: 1\n}\n", put("b", 2, before="a"), "{\n  b: 2,\n  # a\n  a: 1\n}\n"),
    "flow, commas ahead": ("{ a: 1\n, c: 3\n}\n", put("b", 2, after="a"), "{ a: 1, b: 2\n, c: 3\n}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "change", "expected"), INSERT_KEY.values(), ids=INSERT_KEY)
def test_insert_key(text: str, change: Change, expected: str) -> None:
    assert edited(text, change) == expected


def test_a_new_block_is_written_as_its_neighbour() -> None:
    op = 'relu:\n  inputs:\n    x: {dtype: "f16 | f32"}\n  workloads:\n  - {shape: [1, 2], label: "a"}\n'
    new = {"inputs": {"y": {"dtype": "f16"}}, "workloads": [{"shape": [3], "label": "b"}], "extra": {"k": ["v"]}}
    assert edited(op, put("gelu", new)) == op + (
        'gelu:\n  inputs:\n    y: {dtype: "f16"}\n  workloads:\n  - {shape: [3], label: "b"}\n'
        "  extra:\n    k:\n    - v\n"
    )


REMOVE_KEY = {
    "in the middle": ("a: 1\nb: 2  # b\nc: 3\n", [], "b", "a: 1\nc: 3\n"),
    "with the comments above": ("a: 1\n# b\n# b\nb: 2\nc: 3\n", [], "b", "a: 1\nc: 3\n"),
    "but not with others'": ("a: 1\n# a\n\nb: 2\n# c\nc: 3\n", [], "b", "a: 1\n# a\n\n# c\nc: 3\n"),
    "with the comments inside": ("a:\n  x: 1\n\n  # y: 2\nb: 2\n", [], "a", "b: 2\n"),
    "not with the head of the file": ("# head\n\n# a\na: 1\nb: 2\n", [], "a", "# head\n\nb: 2\n"),
    "not with the licence": ("# Copyright x\n# a\na: 1\nb: 2\n", [], "a", "# Copyright x\nb: 2\n"),
    "one of two blank lines": ("a: 1\n\nb: 2\n\nc: 3\n", [], "b", "a: 1\n\nc: 3\n"),
    "the last with the blank line above": ("a: 1\n\nb: 2\n", [], "b", "a: 1\n"),
    "the last without line end": ("a: 1\nb: 2", [], "b", "a: 1"),
    "the last, keeping a literal's line end": ("a: |\n  x\nb: 2", [], "b", "a: |\n  x\n"),
    "blank lines that a literal would keep": ("a: |+\n  x\nb: 2\n\n\nc: 3\n", [], "b", "a: |+\n  x\nc: 3\n"),
    "the last, keeping a literal's blank lines": ("a: |+\n  x\n\nb: 2", [], "b", "a: |+\n  x\n\n"),
    "carriage returns": ("a: 1\r\nb: 2\r\nc: 3\r\n", [], "b", "a: 1\r\nc: 3\r\n"),
    "the only one": ("a:  # why\n  # b\n  b: 1  # b\nc: 3\n", ["a"], "b", "a: {}  # why\nc: 3\n"),
    "the only one of the root": ("# head\na: 1\n# end\n", [], "a", "# head\n{}\n# end\n"),
    "the only one of an item": ("- a: 1\n- 2\n", [0], "a", "- {}\n- 2\n"),
    "on the dash line": ("- a: 1  # a\n  # b\n  b: 2\n", [0], "a", "- # b\n  b: 2\n"),
    "on the dash line, another's comment below": ("- a: 1\n # odd\n  b: 2\n", [0], "a", "-\n # odd\n  b: 2\n"),
    "flow, first": ("{a: 1, b: 2}\n", [], "a", "{b: 2}\n"),
    "flow, middle": ("{a: 1, b: 2, c: 3}\n", [], "b", "{a: 1, c: 3}\n"),
    "flow, last": ("{ a: 1, b: 2 }\n", [], "b", "{ a: 1 }\n"),
    "flow, last before a comma": ("{a: 1, b: 2,}\n", [], "b", "{a: 1,}\n"),
    "flow, the only one": ("{a: 1,}\n", [], "a", "{}\n"),
    "flow, behind an empty value": ("{a: , b: 2}\n", [], "b", "{a: }\n"),
    "flow of many lines, first": ("{\n  a: 1,  # a\n  b: 2\n}\n", [], "a", "{\n  b: 2\n}\n"),
    "flow of many lines, last": ("{\n  a: 1,  # a\n  # b\n  b: 2  # b\n}\n", [], "b", "{\n  a: 1  # a\n}\n"),
    "flow, first of its line": ("{a: 1, # a\n  b: 2}\n", [], "b", "{a: 1 # a\n  }\n"),
    "flow, commas ahead": ("{ a: 1\n, b: 2\n, c: 3\n}\n", [], "b", "{ a: 1\n, c: 3\n}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "key", "expected"), REMOVE_KEY.values(), ids=REMOVE_KEY)
def test_remove_key(text: str, path: list[str | int], key: str, expected: str) -> None:
    assert edited(text, lambda file: remove_key(file, at(file, *path), key)) == expected


RENAME = {
    "plain": ("a: 1  # why\n", "a", "b", "b: 1  # why\n"),
    "double quotes": ('"a": 1\n', "a", "b", '"b": 1\n'),
    "single quotes": ("{'a': 1}\n", "a", "b", "{'b': 1}\n"),
    "a name that needs quotes": ("a: 1\n", "a", "on", '"on": 1\n'),
    "a colon in flow": ("{a: 1}\n", "a", "x:y", '{"x:y": 1}\n'),
    "a colon in a block": ("a: 1\n", "a", "x::y", "x::y: 1\n"),
    "behind an anchor": ("&k a: 1\n", "a", "b", "&k b: 1\n"),
    "an explicit key": ("? a\n: 1\n", "a", "b", "? b\n: 1\n"),
    "the same name": ("'a': 1\n", "a", "a", "'a': 1\n"),
}


@pytest.mark.parametrize(("text", "old", "new", "expected"), RENAME.values(), ids=RENAME)
def test_rename_key(text: str, old: str, new: str, expected: str) -> None:
    assert edited(text, lambda file: rename_key(file, at(file), old, new)) == expected


INSERT_ITEM = {
    "first": ("# a\n- a\n", 0, "b", "- b\n# a\n- a\n"),
    "last": ("- a  # a\n", 1, "b", "- a  # a\n- b\n"),
    "last without line end": ("- a", 1, "b", "- a\n- b"),
    "between blocks": ("- a: 1\n  b: 2\n\n- a: 3\n", 1, {"a": 5, "b": 6}, "- a: 1\n  b: 2\n\n- a: 5\n  b: 6\n\n- a: 3\n"),
    "beside flow": ("- {a: 1}\n", 1, {"a": [2]}, "- {a: 1}\n- {a: [2]}\n"),
    "a wide dash": ("-   a\n", 1, {"x": 1, "y": [2]}, "-   a\n-   x: 1\n    y:\n      -   2\n"),
    "a sequence in a sequence": ("- - 1\n  - 2\n", 1, [3, 4], "- - 1\n  - 2\n- - 3\n  - 4\n"),
    "on an inner dash line": ("- - 1\n", 1, 2, "- - 1\n- 2\n"),
    "empty": ("[]\n", 0, 1, "[1]\n"),
    "flow, first": ("[a]\n", 0, "b", "[b, a]\n"),
    "flow, last": ("[a]\n", 1, "b", "[a, b]\n"),
    "flow of many lines": ("[\n  a,\n  c\n]\n", 1, "b", "[\n  a,\n  b,\n  c\n]\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "index", "value", "expected"), INSERT_ITEM.values(), ids=INSERT_ITEM)
def test_insert_item(text: str, index: int, value: object, expected: str) -> None:
    assert edited(text, lambda file: insert_item(file, at(file), index, value)) == expected  # type: ignore[arg-type]


REMOVE_ITEM = {
    "first": ("- a  # a\n# b\n- b\n", [], 0, "# b\n- b\n"),
    "last": ("- a\n# b\n- b\n", [], 1, "- a\n"),
    "the only one": ("a:\n- b\nc: 1\n", ["a"], 0, "a: []\nc: 1\n"),
    "a block item": ("- a: 1\n  b: 2\n- c\n", [], 0, "- c\n"),
    "an empty item": ("- a\n-  # none\n- b\n", [], 1, "- a\n- b\n"),
    "an item below its dash": ("- a\n-\n  b: 1\n- c\n", [], 1, "- a\n- c\n"),
    "behind a dash": ("- - 1\n  - 2\n", [0], 0, "- - 2\n"),
    "flow, first": ("[a, b]\n", [], 0, "[b]\n"),
    "flow, last": ("[a, b]\n", [], 1, "[a]\n"),
    "flow, last of its line": ("[a, b,\n c]\n", [], 1, "[a,\n c]\n"),
    "flow, first of its line": ("[a, b,\n c, d]\n", [], 2, "[a, b,\n d]\n"),
    "flow, alone in the last line": ("[a, b,\n c]\n", [], 2, "[a, b]\n"),
    "flow, a single pair": ("[a, b: 1 , c]\n", [], 1, "[a , c]\n"),
}


@pytest.mark.parametrize(("text", "path", "index", "expected"), REMOVE_ITEM.values(), ids=REMOVE_ITEM)
def test_remove_item(text: str, path: list[str | int], index: int, expected: str) -> None:
    assert edited(text, lambda file: remove_item(file, at(file, *path), index)) == expected


QUOTE = {
    "a number": ("a: 1e5  # why\n", ["a"], 'a: "1e5"  # why\n'),
    "a backslash": ("a: x\\d\n", ["a"], 'a: "x\\\\d"\n'),
    "two lines": ("a: x\n  y\n", ["a"], 'a: "x y"\n'),
    "nothing": ("a:  # why\n", ["a"], 'a: ""  # why\n'),
    "quoted already": ("a: 'x'\n", ["a"], "a: 'x'\n"),
    "in flow": ("[a, b]\n", [1], '[a, "b"]\n'),
}


@pytest.mark.parametrize(("text", "path", "expected"), QUOTE.values(), ids=QUOTE)
def test_quote_scalar(text: str, path: list[str | int], expected: str) -> None:
    assert edited(text, lambda file: quote_scalar(file, at(file, *path))) == expected


def test_quote_a_key() -> None:
    assert edited("on: 1\n", lambda file: quote_scalar(file, at(file).items[0])) == '"on": 1\n'


SHARED = "base: &base\n  a: 1\n  b: 2\nop:\n  <<: *base\n  b: 3\nlike: *base\n"
REFUSED: dict[str, tuple[str, Change, str]] = {
    "an alias": (SHARED, lambda f: set_value(f, at(f, "like"), 1), "it is the alias `*base`"),
    "what an alias shares": (SHARED, lambda f: set_value(f, at(f, "base", "a"), 2), "it lies in `&base`"),
    "a key of what an alias shares": (SHARED, lambda f: insert_key(f, at(f, "base"), "c", 2), "it lies in `&base`"),
    "an anchor that is needed": (SHARED, lambda f: remove_key(f, at(f), "base"), "`*base` needs elsewhere"),
    "a merged key": (SHARED, lambda f: remove_key(f, at(f, "op"), "a"), "the key `a` comes from a merge"),
    "a key that a merge brings back": (SHARED, lambda f: rename_key(f, at(f, "op"), "b", "c"), "a merge would bring"),
    "a merge": (SHARED, lambda f: remove_key(f, at(f, "op"), "<<"), "it merges other keys in"),
    "a merge in quotes": (SHARED, lambda f: quote_scalar(f, at(f, "op").items[0]), "it merges other keys in"),
    "a key that is missing": ("a: 1\n", lambda f: remove_key(f, at(f), "b"), "the key `b` is not there"),
    "a key that is there": ("a: 1\n", put("a", 2), "the key `a` is already there"),
    "a new name that is there": ("a: 1\nb: 2\n", lambda f: rename_key(f, at(f), "a", "b"), "`b` is already there"),
    "a repeated key": ("a: 1\na: 2\n", lambda f: remove_key(f, at(f), "a"), "the key `a` is written 2 times"),
    "two places": ("a: 1\n", put("b", 2, before="a", after="a"), "not both"),
    "an explicit key": ("? a\n: 1\nb: 2\n", lambda f: remove_key(f, at(f), "a"), "apart from its colon"),
    "a pair without braces": ("[a: 1]\n", lambda f: insert_key(f, at(f, 0), "b", 2), "a single pair without braces"),
    "a tagged value": ("a: !!str 1\n", lambda f: set_value(f, at(f, "a"), 2), "its tag `tag:yaml.org,2002:str`"),
    "a key as a value": ("a: 1\n", lambda f: set_value(f, at(f).items[0], "b"), "it is a key"),
    "a node of another kind": ("a: 1\n", lambda f: insert_key(f, at(f, "a"), "b", 2), "it is a scalar, not a mapping"),
    "a node of another file": ("a: 1\n", lambda f: set_value(f, at(parsed("a: 1\n"), "a"), 2), "not a node of this file"),
    "an item that is missing": ("- a\n", lambda f: remove_item(f, at(f), 1), "there is no item 1 among 1"),
    "an item too far": ("- a\n", lambda f: insert_item(f, at(f), 2, "b"), "item 2 cannot follow 1 items"),
    "a literal without its line end": ("a: |\n  x", put("b", 2), "the line end that the file lacks"),
    "line breaks of YAML only": ("a: 1 # \u2028\nb: 2\n", lambda f: remove_key(f, at(f), "a"), "break lines in YAML only"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "change", "reason"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str, change: Change, reason: str) -> None:
    with pytest.raises(YamlEditError) as caught:
        change(parsed(text))
    assert reason in caught.value.reason
    assert 0 <= caught.value.span.start <= caught.value.span.end <= len(text)


def test_an_entry_goes_with_an_anchor_that_only_it_uses() -> None:
    text = "a:\n  x: &x 1\n  y: *x\nb: 2\n"
    assert edited(text, lambda file: remove_key(file, at(file), "a")) == "b: 2\n"


def test_edits_of_one_parse_apply_together() -> None:
    file = parsed("a:\n  x: 1\nb:\n  x: 1\n")
    edits = [edit for key in "ab" for edit in insert_key(file, at(file, key), "y", 2)]
    edits += rename_key(file, at(file), "a", "c") + remove_key(file, at(file, "b"), "x")[:0]
    assert apply_edits(file.source.text, edits) == "c:\n  x: 1\n  y: 2\nb:\n  x: 1\n  y: 2\n"


def test_edits_that_meet_are_refused_not_lost() -> None:
    file = parsed("[a, b, c]\n")
    with pytest.raises(EditConflictError):
        apply_edits(file.source.text, remove_item(file, at(file), 1) + insert_item(file, at(file), 1, "x"))


def test_an_edit_is_as_small_as_its_change() -> None:
    file = parsed("a: 1\nb: {c: old, d: 2}\n")
    assert set_value(file, at(file, "b", "c"), "new") == [Edit(Span(12, 15), "new")]


RENDERED = [
    (None, "null"), (True, "true"), (False, "false"), (7, "7"), (-7, "-7"),
    (1e-06, "1.0e-06"), (1e16, "1.0e+16"), (1.5e-7, "1.5e-07"), (0.1, "0.1"), (-0.0, "-0.0"),
    (math.inf, ".inf"), (-math.inf, "-.inf"),
    ("x", "x"), ("two words", "two words"), ("a-b/c.py", "a-b/c.py"), ("é", "é"), ("a#b", "a#b"), ("-x", "-x"),
    ("y", "y"), ("3d", "3d"), ("torch::relu", "torch::relu"), ("f(x)", "f(x)"), ("a, b", "a, b"),
    ("", '""'), ("no", '"no"'), ("NULL", '"NULL"'), ("~", '"~"'), ("010", '"010"'), ("0x_", '"0x_"'),
    ("0o17", '"0o17"'), ("1e5", '"1e5"'), ("1_000", '"1_000"'), ("1:30", '"1:30"'), (".5", '".5"'),
    ("-.inf", '"-.inf"'), (".NaN", '".NaN"'), ("2020-01-01", '"2020-01-01"'),
    ("2020-01-01 10:00:00", '"2020-01-01 10:00:00"'), ("=", '"="'), ("<<", '"<<"'),
    (" x", '" x"'), ("x ", '"x "'), ("a: b", '"a: b"'), ("a:", '"a:"'), ("a #b", '"a #b"'),
    ("- a", '"- a"'), ("-", '"-"'), ("---", '"---"'), ("...", '"..."'), ("? a", '"? a"'), (":a", '":a"'),
    ("[a", '"[a"'), ("{a", '"{a"'), ("*a", '"*a"'), ("&a", '"&a"'), ("!a", '"!a"'), ("|", '"|"'), (">", '">"'),
    ("%a", '"%a"'), ("@a", '"@a"'), ("`a", '"`a"'), ("#a", '"#a"'), ("'a", '"\'a"'), ('"a', '"\\"a"'),
    ("a\nb", '"a\\nb"'), ("a\tb", '"a\\tb"'), ("\x00\x85\u2028\ufeff\U000e0001", '"\\0\\x85\\u2028\\uFEFF\\U000E0001"'),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), RENDERED)
def test_render_scalar(value: float | str | None, text: str) -> None:
    assert render_scalar(value) == text
    assert repr(yaml.safe_load(text)) == repr(value)


@pytest.mark.parametrize("text", ["a, b", "f[0]", "torch::relu", "a?"])
def test_more_needs_quotes_in_flow(text: str) -> None:
    assert render_scalar(text, "block") == text
    assert render_scalar(text, "flow") == f'"{text}"'


def test_nan_is_written() -> None:
    assert math.isnan(yaml.safe_load(render_scalar(math.nan)))


@given(
    st.text(st.sampled_from("0123456789_.:+-eExXbonyfalsturNOYES~ #,[]{}&*!|>'\"%@`?=<\n\t\\"), max_size=6)
    | st.text(max_size=6)
    | st.integers()
    | st.floats(allow_nan=False),
    st.sampled_from(["block", "flow"]),
    st.sampled_from(["", '"', "'"]),
)
def test_a_rendered_scalar_is_read_back(value: float | str, context: Context, style: str) -> None:
    text = render_scalar(value, context, style)
    around = f"a: {text}\n" if context == "block" else f"{{a: {text}, b: [{text}]}}\n"
    assert repr(yaml.safe_load(around)["a"]) == repr(value)
    assert repr(at(parsed(f"{text}: 1\n")).items[0].value) == repr(value) or not isinstance(value, str)


def test_what_yaml_cannot_hold_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"lone surrogate U\+D800"):
        render_scalar("\ud800")
    with pytest.raises(ValueError, match="longer than a YAML reader takes"):
        key_text("k" * 2000, "block")

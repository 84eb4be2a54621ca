"""The YAML tree: spans, and values as PyYAML reads them."""

from __future__ import annotations

import datetime

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from opschema_cli.source.text import Source
from opschema_cli.source.yaml import MAX_DEPTH, Data, Node, YamlSyntaxError
from opschema_cli.source.yaml_compose import compose, parse
from opschema_cli.source.yaml_scalars import plain_value

ALPHABET = "0123456789_.:+-eExXbonyfalsturNOYES~"

TABLE = """
~ null Null NULL nUll none None
yes Yes YES yEs no No NO on On ON off Off OFF true True TRUE tRue false False FALSE y Y n N t f
0 1 -1 +1 00 01 010 -010 +010 08 09 0o17 0_1 1_000 1__0 1_ _1 -_1
0x0 0x1F 0X1F -0xff 0x_f 0xg 0b0 0b101 -0b11 0b2 0B1
1:30 1:30:45 -1:30 1:60 0:30 10:59:59 1:3_0 99999999999999999999:00
1. 1.0 -1.0 +1.0 .5 -.5 +.5 1.5e3 1.5e+3 1.5e-3 1.5E+3 1e5 1e+5 1.e+5 .5e+1 1_0.5 1.0_0 ._5 1.0e400 1.0e+400
1:30.5 -1:30.25 1:30. 59:59.999
.inf .Inf .INF -.inf +.inf .iNf inf .nan .NaN .NAN -.nan nan
1.2.3 1-2 +- + . .. -.- e5 E 0. -0.0 0e0 1e 12e03 x-1 a:b
"""
PLAIN = TABLE.split()

SETTLES_CONFLICTS = pytest.mark.skipif(
    tuple(map(int, yaml.__version__.split(".")[:3])) >= (6, 0, 4),
    reason="in PyYAML 6.0.4, which of two merged mappings counts depends on the identity of strings",
)


def read(text: str) -> object:
    """The plain scalar ``text`` as ``safe_load`` reads it; dates stay text."""
    assert yaml.load(text, yaml.BaseLoader) == text
    try:
        value = yaml.safe_load(text)
    except ValueError:  # PyYAML resolves `0x_` and `2020-99-99`, and cannot construct them
        return text
    return text if isinstance(value, datetime.date) else value


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_scalar_is_read_as_pyyaml_reads_it(text: str) -> None:
    assert repr(plain_value(text)) == repr(read(text))
    assert repr(compose(f"k: {text}\n").data()) == repr({"k": read(text)})


@given(st.text(ALPHABET, max_size=8))
@example("0x_")
@example("2020-01-01")
def test_short_scalars_are_read_as_pyyaml_reads_them(text: str) -> None:
    assume(is_plain(text))
    assert repr(plain_value(text)) == repr(read(text))


def is_plain(text: str) -> bool:
    try:
        return bool(yaml.load(text, yaml.BaseLoader) == text)
    except yaml.YAMLError:
        return False


DOCUMENTS = {
    "empty": "",
    "comments only": "# a\n\n# b\n",
    "dashes only": "---",
    "dashes, a directive and comments": "%YAML 1.1\n--- # a\n# b\n...\n# c\n",
    "a scalar": "--- x  # why\n...\n",
    "quotes": "'it''s': \"a\\n\\u2248\\\n  b\"\n",
    "a folded plain scalar": "a: x\n  y\n\n  z\n",
    "literals": "a: |\n  x\n   y\n\nb: |-\n  x\n\nc: |+\n  x\n\nd: >\n  x\n  y\n",
    "a literal without line end": "a: |\n  x",
    "dashes at the key": "a:\n- 1\n-\n- - 2\nb:\n",
    "flow": "{a: [1, {b: c}, ], 'd': , e, f: \"g\"}",
    "single pairs": "[a: 1 , b: , {c: d}]",
    "explicit keys": "? a\n: 1\n? b\n",
    "repeated keys": "a: 1\na: 2\n",
    "keys that are not text": "no: 1\n~: 2\n3: 4\n1.5: 6\n",
    "aliases": "a: &x [1, &y {b: 2}]\nc: *x\nd: *y\n",
    "a merge": "a: &x {b: 1, c: 2}\nd:\n  c: 3\n  <<: *x\n",
    "two merges": "a: &x {b: 1}\nc: &y {d: 2}\nd:\n  <<: *x\n  <<: *y\n",
    "a merge of a merge": "a: &x {b: 1}\nc: &y\n  <<: *x\n  d: 2\ne:\n  <<: *y\n",
    "tags": "a: !!str 1\nb: !!int '3'\nc: !!float 3\nd: !!bool yes\ne: !!null x\nf: ! 12\n",
    "carriage returns": "a: 1\r\nb:\r\n  - |\r\n    x\r\n    y\r\n",
    "beyond the basic plane": "\U0001f600: [≈, \U0001f600]\nb: 1\n",
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_is_read_as_pyyaml_reads_it(text: str) -> None:
    assert repr(parse(Source("f.yaml", text)).data) == repr(yaml.safe_load(text))


@pytest.mark.parametrize("text", ["", "---", "# a\n---\n# b\n", "%YAML 1.1\n---\n", "---\n...\n", "\ufeff--- # a\n"])
def test_a_document_of_nothing_has_no_root(text: str) -> None:
    assert compose(text).root is None


@pytest.mark.parametrize("text", ["null", "--- ''", "--- !!null", "--- &a", "--- |\n", "- \n"])
def test_what_is_written_is_a_root(text: str) -> None:
    assert compose(text).root is not None


def written(text: str) -> list[str]:
    """The source text of each node, in text order."""

    def walk(node: Node) -> list[str]:
        return [text[node.start : node.end], *(part for item in node.items for part in walk(item))]

    root = compose(text).root
    return walk(root) if root else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1  # why\n\n# end\n", ["a: 1", "a", "1"]),
        ("a:  # why\n", ["a:", "a", ""]),
        ("a:\n  b: 1\n\n# c\nc: 2\n", ["a:\n  b: 1\n\n# c\nc: 2", "a", "b: 1", "b", "1", "c", "2"]),
        ("a:\n- 1\n-\n# b\nb: 2\n", ["a:\n- 1\n-\n# b\nb: 2", "a", "- 1\n-", "1", "", "b", "2"]),
        ("- &x a: !!str 1\n", ["- &x a: !!str 1", "&x a: !!str 1", "&x a", "!!str 1"]),
        ("a: &x  # why\n  b: 1\n", ["a: &x  # why\n  b: 1", "a", "&x  # why\n  b: 1", "b", "1"]),
        ("[a , b: 1 , {c}]\n", ["[a , b: 1 , {c}]", "a", "b: 1", "b", "1", "{c}", "c", ""]),
        ("≈: \U0001f600\nb: 'c' # d\n", ["≈: \U0001f600\nb: 'c'", "≈", "\U0001f600", "b", "'c'"]),
        ("a: x\n  y  # why\n", ["a: x\n  y", "a", "x\n  y"]),
        ("- |  # why\n  x\n\n# end\n", ["- |  # why\n  x", "|  # why\n  x"]),
        ("- |+\n  x\n\n\n- 1\n", ["- |+\n  x\n\n\n- 1", "|+\n  x\n\n", "1"]),
        ("- |+\r\n  x\r\n\r\n- 1\r\n", ["- |+\r\n  x\r\n\r\n- 1", "|+\r\n  x\r\n", "1"]),
        ("- |\n  x\n   \n\n- 1\n", ["- |\n  x\n   \n\n- 1", "|\n  x\n   ", "1"]),
        ("- >-\n  x", ["- >-\n  x", ">-\n  x"]),
    ],
)
def test_a_span_holds_what_is_written_and_no_more(text: str, expected: list[str]) -> None:
    assert written(text) == expected


def test_a_node_is_found_by_its_path() -> None:
    document = compose("ops:\n  - {name: relu, name: gelu}\n  - x\n")
    assert document.root is not None
    name = document.root.get("ops", 0, "name")
    assert name is not None
    assert name.value == "gelu", "a repeated key counts as the reader takes it"
    assert document.root.get("ops", -1) is document.root.get("ops", 1)
    for path in (["nope"], ["ops", 2], ["ops", "name"], ["ops", 1, 0]):
        assert document.root.get(*path) is None


def test_an_alias_is_a_node_of_its_own() -> None:
    document = compose("a: &x [1]\nb: *x\n")
    assert document.root is not None
    alias = document.root.get("b")
    assert alias is not None
    assert (alias.kind, alias.value) == ("alias", "x")
    assert document.follow(alias) is document.root.get("a")


def test_unsafe_tags_stay_text() -> None:
    text = "a: !!python/object/apply:os.system [ls]\nb: !custom x\n"
    assert compose(text).data() == {"a": ["ls"], "b": "x"}


@pytest.mark.parametrize(
    ("text", "reason", "offset"),
    [
        ("a: [1\nb: 2\n", "did not find expected ',' or ']' while parsing a flow sequence", 7),
        ("a: *x\n", "the alias `*x` has no anchor above it", 3),
        ("a: &x 1\nb: &x 2\n", "the anchor `&x` is set twice", 11),
        ("a: 1\n---\nb: 2\n", "a second document starts here; a schema file holds one", 5),
        ("a: 'b\n", "found unexpected end of stream while scanning a quoted scalar", 6),
        ("≈: \x01\n", "unacceptable character #x0001: control characters are not allowed", 3),
        ("[" * (MAX_DEPTH + 1), f"it nests deeper than {MAX_DEPTH} levels", MAX_DEPTH),
        ("- " * 100_000, f"it nests deeper than {MAX_DEPTH} levels", 2 * MAX_DEPTH),
    ],
)
def test_what_is_not_read_says_why_and_where(text: str, reason: str, offset: int) -> None:
    with pytest.raises(YamlSyntaxError) as caught:
        compose(text)
    assert (caught.value.reason, caught.value.span.start) == (reason, offset)


def test_aliases_cannot_explode() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(YamlSyntaxError, match="expand to more than"):
        compose("\n".join(lines))


def test_an_alias_cannot_hold_itself() -> None:
    document = compose("a: &x [1, *x]\n")
    with pytest.raises(YamlSyntaxError, match="contains itself"):
        document.data()


def test_data_of_one_node() -> None:
    document = compose("a: {b: [1, no]}\n")
    assert document.root is not None
    node = document.root.get("a")
    expected: Data = {"b": [1, False]}
    assert document.data(node) == expected


@pytest.mark.parametrize("text", ["{CPU: at::add, CUDA: at::add_cuda}\n", "[x:y, b]\n"])
def test_what_the_old_c_parser_refuses_is_read_as_pyyaml_reads_it(text: str) -> None:
    document = compose(text)
    assert document.data() == yaml.safe_load(text)
    assert document.root is not None
    assert document.root.span == (0, len(text) - 1)


def test_a_flow_key_without_value_is_refused_rather_than_read_otherwise() -> None:
    with pytest.raises(YamlSyntaxError):
        compose("{a:}\n")


def test_a_key_of_a_large_mapping_is_the_last_of_its_name_as_in_a_small_one() -> None:
    many = "".join(f"k{number}: {number}\n" for number in range(100))
    root = compose(f"a: 1\n{many}a: 2\n? [a]\n: 3\n").root
    assert root is not None
    pair = root.pair("a")
    assert pair is not None
    assert pair[1].value == "2"
    assert [node.value for node in root.values_of("a")] == ["1", "2"]
    assert root.pair("b") is None
    assert root.pair("") is None


@SETTLES_CONFLICTS
@pytest.mark.parametrize(
    ("merges", "merged"),
    [
        ("<<: [*x, *y]", {"key": 1, "other": 3}),
        ("<<: [*y, *x]", {"key": 2, "other": 3}),
        ("<<: *x, <<: *y", {"key": 2, "other": 3}),
    ],
)
def test_mappings_of_one_key_are_merged_as_pyyaml_merges_them(merges: str, merged: dict[str, int]) -> None:
    text = f"a: &x {{key: 1}}\nb: &y {{key: 2, other: 3}}\nc: {{{merges}}}\n"
    found = parse(Source("f.yaml", text)).data
    assert repr(found) == repr(yaml.safe_load(text))
    assert isinstance(found, dict)
    assert found["c"] == merged


@SETTLES_CONFLICTS
@pytest.mark.parametrize(
    "text",
    [
        "- &a {x: 1, y: 2}\n- {<<: *a, y: 3, z: 4}\n",
        "- &a {x: 1, y: 2}\n- &b {y: 3}\n- {<<: [*b, *a], z: 5, '<<': 6}\n",
        "- &a {x: 1, y: 2}\n- &b {y: 3}\n- {z: 1, <<: *a, <<: *b}\n",
        "- &a {x: 1, w: 0}\n- &b {<<: *a, y: 3}\n- &c {x: 5, w: 2}\n- {<<: [*b, *c]}\n",
    ],
)
def test_merge_keys_bring_what_pyyaml_reads_from_where_it_is_written(text: str) -> None:
    document = compose(text)
    assert document.root is not None
    for item, wanted in zip(document.root.items, yaml.safe_load(text), strict=True):
        found = document.merged(item)
        assert {key.value: int(text[value.start : value.end]) for key, value in found.pairs()} == wanted
    assert document.merged(document.root.items[0]) is document.root.items[0]


def test_a_mapping_that_is_merged_with_itself_ends() -> None:
    document = compose("- &a {<<: *a, x: 1}\n")
    assert document.root is not None
    assert [key.value for key, _ in document.merged(document.root.items[0]).pairs()] == ["x"]

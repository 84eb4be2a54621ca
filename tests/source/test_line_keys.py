"""Keys of mappings that are found without parsing, against patterns that are tried on each line."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opschema_cli.source.line_keys import LineKeys

_TEXTS = st.lists(
    st.sampled_from(["op", "name", ":", " ", "-", "\n", "\r\n", "\t", '"', "x", "backward_", "op:", "- op: add"])
).map(lambda parts: "".join(parts).encode())


@given(_TEXTS)
def test_the_same_lines_as_a_pattern_that_begins_with_the_start_of_a_line(data: bytes) -> None:
    plain = re.compile(rb"(?m)^[ \t-]*[\"']?(op|name)[\"']?[ \t]*:")
    keys = LineKeys(b"op", b"name", before=rb"[ \t-]*[\"']?", after=rb"[\"']?[ \t]*:")
    assert sorted(match.start() for match in keys.matches(data)) == [item.start(1) for item in plain.finditer(data)]
    assert keys.count(data) == len(plain.findall(data))
    assert keys.found(data) == (plain.search(data) is not None)


def test_what_follows_may_reach_to_the_end_of_the_line() -> None:
    keys = LineKeys(b"op", before=rb"[ \t]*-[ \t]+", after=rb"[ \t]*:[ \t]*\w+\.\w+[ \t]*(?=\r?(?:\n|\Z))")
    assert keys.count(b"- op: add.out\n- op: add.out x\n - op : add.out \r\n- op: add.out") == 3
    assert keys.count(b"drop: add.out\n- drop: add.out\nop: add.out\n") == 0


@pytest.mark.parametrize("piece", [b"op: ", b" ", b"-", b"\n", b"op", b"xop: ", b"op: \n"])
def test_time_is_linear(piece: bytes) -> None:
    keys = LineKeys(b"op", before=rb"[ \t-]*[\"']?")
    started = time.process_time()
    keys.count(piece * (1_000_000 // len(piece)))
    assert time.process_time() - started < 4

"""The balance of events against all ways that a program can take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opschema_rules.pypto.event_balance import Net, balances
from opschema_rules.pypto.kernel_events import event_faults

SET, WAIT = "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);", "wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);"

Node = tuple[str, list["Node"], list["Node"]]
"""A statement: its kind and its blocks."""

_LEAVES = st.sampled_from(["set", "wait", "set", "wait", "use", "return", "break", "continue"]).map(
    lambda kind: (kind, [], [])
)


def _around(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    block = st.lists(inner, max_size=3)
    kind = st.sampled_from(["if", "else", "for", "do", "block"])
    return st.tuples(kind, block, block)


PROGRAMS = st.lists(st.recursive(_LEAVES, _around, max_leaves=10), max_size=5)


def written(block: list[Node], *, inside: bool = False) -> str:
    """The code of a block; what leaves a loop only stands in one."""
    return " ".join(_statement(item, inside) for item in block)


def _statement(node: Node, inside: bool) -> str:
    kind, one, other = node
    loop = inside or kind in ("for", "do")
    body = f"{{ {written(one, inside=loop)} }}"
    match kind:
        case "set" | "wait":
            return SET if kind == "set" else WAIT
        case "if":
            return f"if (f(a)) {body}"
        case "else":
            return f"if (f(a)) {body} else {{ {written(other, inside=inside)} }}"
        case "for":
            return f"for (int i = 0; i < n; i++) {body}"
        case "do":
            return f"do {body} while (f(a));"
        case "block":
            return body
        case "break" | "continue":
            return f"{kind};" if inside else "use();"
    return f"{kind};" if kind == "return" else "use();"


def ways(block: list[Node], *, inside: bool = False) -> set[tuple[int, str]]:
    """What each way through a block adds, and how that ends."""
    found = {(0, "")}
    for item in block:
        steps = _ways(item, inside)
        found = {
            (total + more if not end else total, end or then) for (total, end), (more, then) in product(found, steps)
        }
    return found


def _ways(node: Node, inside: bool) -> set[tuple[int, str]]:
    kind, one, other = node
    match kind:
        case "set" | "wait":
            return {(1 if kind == "set" else -1, "")}
        case "if" | "else":
            return ways(one, inside=inside) | (ways(other, inside=inside) if kind == "else" else {(0, "")})
        case "for" | "do":
            turn = ways(one, inside=True)
            found = set(_turns(turn, 1)) | set(_turns(turn, 2))
            return found | {(0, "")} if kind == "for" else found
        case "block":
            return ways(one, inside=inside)
        case "break" | "continue":
            return {(0, kind if inside else "")}
    return {(0, "return" if kind == "return" else "")}


def _turns(turn: set[tuple[int, str]], count: int) -> Iterator[tuple[int, str]]:
    for taken in product(turn, repeat=count):
        total = 0
        for more, end in taken:
            total += more
            if end in ("break", "return"):
                yield total, end if end == "return" else ""
                break
        else:
            yield total, ""


@settings(max_examples=1500, deadline=None)
@given(PROGRAMS)
def test_a_known_balance_is_that_of_all_ways(program: list[Node]) -> None:
    code = f"void kernel_entry() {{ {written(program)} }}"
    places = {
        match.start(): ("key", 1 if match[0].startswith("set") else -1)
        for match in re.finditer("(?:set|wait)_flag", code)
    }
    [found] = balances(code, places)
    net = found.get("key", Net())
    totals = {total for total, end in ways(program) if end != "return"}
    if net is None or net.sign is None or not totals:
        return
    assert all(total * net.sign >= 0 if net.sign else total == 0 for total in totals), (code, net, totals)
    assert net.sign == 0 or any(total != 0 for total in totals), (code, net, totals)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{SET} for (;;) {{ {WAIT} use(); {SET} }} {WAIT} {WAIT}", [Net(-1)]),
        (f"{SET} if (a) {{ {WAIT} }} else {{ use(); {WAIT} {WAIT} {SET} }} {WAIT}", [Net(-1)]),
        (f"if (a) {{ for (int i = 0; i < 4; i++) {{ {SET} {WAIT} {SET} }} }}", [Net(0, 1)]),
        (f"{SET} while (f(a)) {{ {WAIT} if (b) break; {SET} }}", [None]),
        (f"{SET} if (a) {{ {WAIT} return; }} {WAIT}", [None]),
        (f"EACH(i) {{ {WAIT} }}", [None]),
        (f"auto wait = [&]() {{ {WAIT} }}; wait(); wait();", [None]),
        (f"a ? f() : {WAIT}", [None]),
        (f"int shape[2] = {{1, n}}; f(Shape<1>{{}}); {WAIT}", [Net(-1)]),
        (f"if constexpr (a) {WAIT} else if (b) {WAIT} else {{ {WAIT} }}", [Net(-1)]),
    ],
)
def test_balances(body: str, expected: list[Net | None]) -> None:
    code = f'extern "C" {{ template <typename T> __aicore__ void kernel_entry(T *args) {{ {body} }} }}'
    places = {
        match.start(): ("key", 1 if match[0].startswith("set") else -1)
        for match in re.finditer("(?:set|wait)_flag", code)
    }
    assert [item.get("key") for item in balances(code, places)] == expected


@pytest.mark.parametrize(
    "text",
    [
        f"void kernel_entry() {{\n#ifdef A\n if (a) {{\n#else\n if (b) {{\n#endif\n {SET} }} {SET} {WAIT} }}",
        f"void kernel_entry() {{ {'{' * 200} {SET} {SET} {WAIT} {'}' * 200} }}",
        f"void kernel_entry() {{ {SET} {SET} {WAIT} ",
        f"void kernel_entry() }} {{ {SET} {SET} {WAIT} }}",
        f"{SET} {SET} {WAIT}",
        f"void kernel_entry() {{ if {SET} {SET} {WAIT} }}",
    ],
)
def test_blocks_that_are_not_clear(text: str) -> None:
    assert event_faults(text) == ()

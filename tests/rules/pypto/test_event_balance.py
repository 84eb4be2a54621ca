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
from opschema_rules.pypto.kernel_walk import ENTRY
from tests.scaling import Work, check_linear

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
    found, _ = balances(code, places, ENTRY)
    net = found.get("key", Net())
    totals = {total for total, end in ways(program) if end != "return"}
    if net is None or net.sign is None or not totals:
        return
    assert all(total * net.sign >= 0 if net.sign else total == 0 for total in totals), (code, net, totals)
    assert net.sign == 0 or any(total != 0 for total in totals), (code, net, totals)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{SET} for (int i = 0; i < n; i++) {{ {WAIT} use(); {SET} }} {WAIT} {WAIT}", [Net(-1)]),
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
    assert [item.get("key") for item in balances(code, places, ENTRY)[:-1]] == expected


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


ONCE, TWICE = f"{SET} use(); {WAIT} {WAIT}", f"{SET} use(); {SET} {WAIT}"


def _faults(body: str, before: str = "") -> int:
    return len(event_faults(f"{before}\nvoid kernel_entry() {{ {body} }}\n"))


@pytest.mark.parametrize("body", [ONCE, TWICE, f"if (n > 0) {{ {ONCE} }}", f"while (more()) {{ {TWICE} }}"])
def test_uneven_kernels(body: str) -> None:
    assert _faults(body) == 1
    assert _faults(body, "#define __gm__\n#ifndef N\n#define N 4\n#endif\n") == 1
    assert _faults("use();", f"static void helper(int n) {{ {body} }}\nvoid other() {{ helper(1); }}") == 1


EITHER = f"if (n > 8) {{ big(); {SET} }} else {{ {SET} }} finish();"

RIGHT = {
    "a helper that leaves early": (
        f"{SET} for (int i = 0; i < n; i++) {{ step(i == n - 1); }}",
        f"void step(bool last) {{ {WAIT} use(); if (last) return; {SET} }}",
    ),
    "a helper that leaves early in a branch": (
        f"for (int i = 0; i < n; i++) {{ step(i == 0); }} {WAIT}",
        f"void step(bool first) {{ {SET} if (first) {{ return; }} else {{ use(); }} {WAIT} }}",
    ),
    "a recursive helper": (
        f"{SET} again(4);",
        f"void again(int n) {{ {WAIT} if (n == 0) return; {SET} again(n - 1); }}",
    ),
    "a helper that nothing calls": (f"{SET} use(); {WAIT}", f"static void drain() {{ {WAIT} }}"),
    "a macro that leaves": (
        f"{SET} while (true) {{ {WAIT} BREAK_IF(last()); {SET} }}",
        "#define BREAK_IF(c) if (c) break",
    ),
    "a macro of another file": (f"{SET} while (more()) {{ {WAIT} STOP_AT(i, n); {SET} }}", ""),
    "macros with a brace each": (
        f"LOOP(2); use(); {SET} ENDLOOP(); {WAIT} {WAIT}",
        "#define LOOP(n) for (int i = 0; i < n; i++) {\n#define ENDLOOP() }",
    ),
    "a function that does not return": (
        f"{SET} while (more()) {{ {WAIT} if (last()) finish(); {SET} }}",
        "[[noreturn]] void finish();",
    ),
    "a trap": (f"if (bad) {{ {SET} trap(); }} {SET} use(); {WAIT}", ""),
    "a macro that defines a function": (
        EITHER,
        f"#define DEFINE(name, ...) void name() __VA_ARGS__\nDEFINE(finish, {{ {WAIT} }})",
    ),
    "a lambda of the file": (EITHER, f"static const auto finish = fn([](int) {{ {WAIT} }});"),
    "an initializer": (f"K k; {EITHER}", f"struct K {{ K() : x(call([] {{ {WAIT} }})) {{}} int x; }};"),
    "a branch that is not compiled": (
        f"{SET} {WAIT} if constexpr (DEBUG) {{ {SET} }}",
        "constexpr bool DEBUG = false;",
    ),
    "a constant": (f"{SET} {WAIT} if (DEBUG) {{ {SET} }}", "constexpr bool DEBUG = false;"),
    "zero": (f"{SET} {WAIT} if (0) {{ {SET} }}", ""),
    "false": (f"{SET} {WAIT} while (false) {{ {WAIT} }}", ""),
    "code behind a return": (f"{SET} use(); {WAIT} return; {SET} more();", ""),
    "a loop that never ends": (f"{SET} for (;;) {{ {WAIT} serve(); {SET} }}", ""),
    "another loop that never ends": (f"{SET} while (1) {{ {WAIT} serve(); {SET} }}", ""),
    "a statement that directives divide": (
        f"for (int i = 0; i < 2; i++)\n#if defined(__DAV_CUBE__)\n{{ use(); }}\n#else\n{{ {SET} }}\n#endif\n{WAIT} {WAIT}",
        "",
    ),
    "a pipe of a template": (
        f"{SET} {WAIT} signal<PIPE_S>();",
        "template <pipe_t PIPE_A> void signal() { set_flag(PIPE_A, PIPE_V, EVENT_ID0); }",
    ),
    "another name of an event": (f"{SET} {WAIT} {SET}", "#define EVENT_ID10 EVENT_ID0"),
    "assembler": (f'{SET} __asm__("wait"); {SET} {WAIT}', ""),
    "digraphs": (f"for (int i = 0; i < 2; i++) <% use(); {SET} %> {WAIT} {WAIT}", ""),
    "a word of two lines": (f"{SET} while (more()) {{ {WAIT} if (last()) bre\\\nak; {SET} }}", ""),
}


@pytest.mark.parametrize(("body", "before"), RIGHT.values(), ids=RIGHT)
def test_kernels_that_may_be_right(body: str, before: str) -> None:
    assert _faults(body, before) == 0


@pytest.mark.parametrize("part", ["if (a) {} else ", "if (a) ", "for (;;) ", "do ", "{ ", "while (a) if (b) "])
def test_deep_statements(part: str) -> None:
    assert _faults(f"{part * 20_000}use(); {ONCE}") in (0, 1)


@pytest.mark.parametrize(
    "part",
    [
        f"void f{{0}}() {{{{ {SET} {SET} {WAIT} }}}} ".replace("EVENT_ID0", "EVENT_ID{0}"),
        f"void f{{0}}() {{{{ if (flag{{0}}) {{{{ {SET} {SET} {WAIT} }}}} }}}} ",
        f"#define A{{0}} \\\n 1 \\\n + 1\nvoid f{{0}}() {{{{ {SET} {SET} {WAIT} }}}}\n",
    ],
)
def test_many_functions_take_linear_time(part: str) -> None:
    def prepare(number: int) -> Work:
        code = "".join(part.format(i) for i in range(number))
        return lambda: event_faults(code)

    check_linear(prepare, 50)

"""Loops whose turns can be counted, conditions that are known, and graphs."""

from __future__ import annotations

import time

import pytest

from opschema_rules.pypto import cpp_loops
from tests.rules.pypto.test_orchestration import RUN, payloads, read

TAKE = "p.reset(); p.add_input(orch_args.tensor(i).ref()); " + RUN


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"for (int i = 0; i < 3; ++i) {{ {TAKE} }}", ["in 0", "in 1", "in 2"]),
        (f"for (int i = 4; i >= 0; i -= 2) {{ {TAKE} }}", ["in 4", "in 2", "in 0"]),
        (f"for (uint32_t i = 1; 4 > i; i = i + 2) {{ {TAKE} }}", ["in 1", "in 3"]),
        (f"int i = 1; while (i != 3) {{ {TAKE} i++; }}", ["in 1", "in 2"]),
        (f"int i = 1; do {{ {TAKE} }} while (++i < 3);", ["in 1", "in 2"]),
        (f"int i = 1; for (;;) {{ {TAKE} if (++i == 3) break; }}", ["in 1", "in 2"]),
        (f"for (int i = 0; i < 4; i++) {{ if (i % 2) continue; {TAKE} }}", ["in 0", "in 2"]),
        (f"for (int i = 0; i < 9; i++) {{ if (i == 1) {{ {TAKE} }} else if (i > 1) break; }}", ["in 1"]),
        (f"for (int i : {{3, 1}}) {{ {TAKE} }}", ["in 3", "in 1"]),
        (f"const std::array<int, 2> at{{3, 1}}; for (size_t k = 0; k < at.size(); k++) {{ int i = at[k]; {TAKE} }}",
         ["in 3", "in 1"]),
        (f"constexpr int N = 2; for (int i = 0; i < N * 2 - 2; i++) {{ {TAKE} }}", ["in 0", "in 1"]),
        (f"for (int j = 0; j < 2; j++) for (int k = 0; k < 2; k++) {{ int i = 2 * j + k; {TAKE} }}",
         ["in 0", "in 1", "in 2", "in 3"]),
        (f"for (int j = 0; j < n; j++) for (int i = 0; i < 2; i++) {{ {TAKE} }}", ["in 0", "in 1"]),
        (f"for (int i = 0; i < 2; i++) p.add_input(orch_args.tensor(i).ref()); {RUN}", ["in 0, in 1"]),
        (f"for (int i = 0; i < 2; i++) {{ p.add_output(info); if (x) break; }} {RUN}", ["out+ | out+, out+"]),
        (f"for (int i = 0; i < 2; i++) {{ p.add_inout(i == 0 ? a : b); }} {RUN}", ["inout 0, inout 1"]),
        (f"for (int i = 0; i < 0; i++) {{ {TAKE} }}", []),
        (f"for (int i = 0; i < 2; i++) {{ p.reset(); p.add_input(a); p.add_input(orch_args.tensor(0).ref()); {RUN} }}",
         ["in 0, in 0"]),
    ],
)  # fmt: skip
def test_turns_are_followed_one_by_one(body: str, expected: list[str]) -> None:
    entry = read(body)
    assert payloads(body) == expected
    assert not entry.unresolved


@pytest.mark.parametrize(
    "body",
    [
        f"for (int i = 0; i < n; i++) {{ {TAKE} }}",
        f"for (int i = n; i < 3; i++) {{ {TAKE} }}",
        f"for (int i = 0; i < 3; i += n) {{ {TAKE} }}",
        f"for (int i = 0; i < 1000; i++) {{ {TAKE} }}",
        f"for (int i = 0; i < 3; i--) {{ {TAKE} }}",
        f"for (uint32_t i = 2; i >= 0; i--) {{ {TAKE} }}",
        f"for (int i = 0; i < 3; i++) {{ {TAKE} if (x) i++; }}",
        f"for (int i = 0; i < 3; i++) {{ {TAKE} skip(&i); }}",
        f"for (int i = 0; i < 3; i++) {{ {TAKE} skip(i); }}",
        f"for (int i = 0; i < 3; i++) {{ auto f = [&] {{ i = 2; }}; f(); {TAKE} }}",
        f"int i = 0; int &r = i; for (int k = 0; k < 3; k++) {{ {TAKE} r += n; }}",
        f"for (auto i : indexes) {{ {TAKE} }}",
        f"for (;;) {{ int i = n; {TAKE} }}",
        f"auto i = 2u; while (i < 3) {{ {TAKE} i--; }}",
        f"static int i = 0; while (i < 3) {{ {TAKE} i++; }}",
    ],
)
def test_loops_that_cannot_be_counted_leave_open_what_they_take(body: str) -> None:
    assert read(body).unresolved == "a tensor is taken by a number that is not known"
    assert payloads(body) == ["in"]


def test_other_loops_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing hangs on the number of a turn one stands for all."""
    monkeypatch.setattr(cpp_loops, "MAX_TURNS", 0)
    assert payloads(f"for (int i = 0; i < 9; i++) {{ p.reset(); p.add_input(a); p.add_scalar(i); {RUN} }}") == [
        "in 0, scalar"
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"for (int i = 0; i < 2; i++) {{ p.reset(); p.add_scalar(i); }} {RUN}", "scalar"),
        (f"for (int i = 0; i < n; i++) {{ p.reset(); p.add_scalar(i); }} {RUN}", "in 0 | scalar"),
        (f"for (int i = 2; i < 2; i++) {{ p.reset(); }} {RUN}", "in 0"),
        (f"int i = 0; while (i++ < 0) {{ p.reset(); }} if (i == 1) p.add_input(b); {RUN}", "in 0, in 1"),
    ],
)
def test_a_loop_that_surely_runs_or_never_does(body: str, expected: str) -> None:
    assert payloads(f"p.add_input(a); {body}") == [expected]


def test_what_turns_do_alike_is_told_once() -> None:
    entry = read(
        "for (int i = 0; i < 4; i++) { p.reset(); p.add_input(a); rt_submit_aiv_task(7, p);"
        " p.add_input(orch_args.tensor(i / 2).ref()); rt_submit_aiv_task(8, p); }"
    )
    assert [[kernel.value for kernel in submit.kernels] for submit in entry.submits] == [[7], [8], [8]]
    assert [submit.conditional for submit in entry.submits] == [False, False, False]


def test_turns_behind_a_way_out_may_not_run() -> None:
    entry = read(f"for (int i = 0; i < 2; i++) {{ {TAKE} if (x) break; }}")
    assert [submit.conditional for submit in entry.submits] == [False, True]


def test_ways_out_of_a_function_are_those_of_the_turns() -> None:
    before = "void f(CoreTaskArgs &q, const ChipTensor &t) { for (int i = 0; i < 2; i++) { q.add_input(t); if (x) return; } }"
    assert payloads(f"f(p, a); {RUN}", before) == ["in 0 | in 0, in 0"]


def test_a_loop_is_counted_where_its_end_is_known() -> None:
    before = "void f(CoreTaskArgs &q, const ChipTensor &t, int k) { for (int i = 0; i < k; i++) q.add_input(t); }"
    body = f"f(p, a, n); {RUN} p.reset(); f(p, a, 2); {RUN} p.reset(); f(p, b, 1); {RUN}"
    assert payloads(body, before) == ["?", "in 0, in 0", "in 1"]


# Conditions


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"const int k = 1; if (k) p.add_input(a); else p.add_input(b); {RUN}", ["in 0"]),
        (f"const int k = 0; if (!k && x) p.add_input(a); {RUN}", ["", "in 0"]),
        (f"const int k = 0; if (k && x) p.add_input(a); else p.add_input(b); {RUN}", ["in 1"]),
        (f"const int k = 1; if (k || x) p.add_input(a); {RUN}", ["in 0"]),
        (f"bool k = n > 3; if (k) p.add_input(a); {RUN}", ["", "in 0"]),
        (f"bool k = false; if (x) k = true; if (k) p.add_input(a); {RUN}", ["", "in 0"]),
        (f"bool k = false; while (x) {{ if (k) p.add_scalar(1); k = true; }} {RUN}", ["", "scalar*"]),
        (f"uint32_t k = 0; if (k - 1 < 5) p.add_input(a); {RUN}", ["", "in 0"]),
        (f"int k = -1; if (k < sizes) p.add_input(a); {RUN}", ["", "in 0"]),
        (f"int k = 3; if (x) goto end; k = 4; end: if (k == 4) p.add_input(a); {RUN}", ["?"]),
    ],
)
def test_conditions(body: str, expected: list[str]) -> None:
    assert payloads(body) == [" | ".join(expected)]


def test_what_never_runs_is_not_forgotten() -> None:
    assert not read("const bool on = false; if (on) rt_submit_aiv_task(1, p);").unresolved
    assert not read("const bool on = false; on ? rt_submit_aiv_task(1, p) : rt_submit_aiv_task(2, p);").unresolved
    assert not read("if (true) { } else { rt_submit_aiv_task(1, p); }").unresolved


# Graphs

LAYER = """\
void layer(const GraphTaskArgs &args, int variant) {
    CoreTaskArgs q;
    q.add_input(args.tensor(0).ref());
    if (variant == 0) q.add_output(args.tensor(1).ref()); else q.add_inout(args.tensor(1).ref());
    rt_submit_aiv_task(variant, q);
}
"""
GRAPH = "GraphTaskArgs g; g.add_input(a); g.add_output(b); g.add_scalar(1); "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{GRAPH} rt_submit_graph(&layer, g, 0);", ["in 0, out 1"]),
        (f"{GRAPH} rt_submit_graph(layer, g, 1);", ["in 0, inout 1"]),
        (f"{GRAPH} rt_submit_graph(7, &layer, g, 0);", ["in 0, out 1"]),
        (f"{GRAPH} rt_submit_graph(&layer, g, n);", ["in 0, inout 1 | in 0, out 1"]),
        ("for (int i = 0; i < 2; i++) { GraphTaskArgs g; g.add_input(a); g.add_output(orch_args.tensor(i + 1).ref());"
         " rt_submit_graph(&layer, g, i); }", ["in 0, out 1", "in 0, inout 2"]),
        (f"{GRAPH} if (x) {{ g.reset(); g.add_input(c, b); }} rt_submit_graph(&layer, g, 0);", ["in, out 1"]),
    ],
)  # fmt: skip
def test_graphs(body: str, expected: list[str]) -> None:
    assert payloads(body, LAYER) == expected
    assert not read(body, LAYER).unresolved


@pytest.mark.parametrize(
    "body",
    [
        "GraphTaskArgs g; g.add_input(a); rt_submit_graph(&layer, g, 0);",
        "GraphTaskArgs g; elsewhere(g); rt_submit_graph(&layer, g, 0);",
        f"{GRAPH} rt_submit_graph(&other, g, 0);",
        f"{GRAPH} auto layer = pick(); rt_submit_graph(layer, g, 0);",
        f"{GRAPH} rt_submit_graph(&layer);",
        f"{GRAPH} rt_submit_graph([](const GraphTaskArgs &args) {{ rt_submit_aiv_task(0, p); }}, g);",
    ],
)
def test_graphs_that_are_not_followed(body: str) -> None:
    assert read(body, LAYER).unresolved


# Hostile loops


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = 0; i < 32; i++) " * 12 + f"{{ {TAKE} }}",
        "for (int i = 0; i < 2; i++) " * 40 + f"{{ {TAKE} }}",
        f"for (int i = 0; i < 4611686018427387903; i++) {{ {TAKE} }}",
        f"for (int i = 1; i > 0; i *= 2) {{ {TAKE} }}",
        "for (int i = 0; i < 30; i++) { if (x) p.add_input(orch_args.tensor(i).ref()); else p.add_output(b); } " + RUN,
        f"const std::array<int, 999999999> k{{1}}; for (auto i : k) {{ {TAKE} }}",
        f"for (;;) for (;;) for (;;) {{ int i = 0; {TAKE} orch_args.tensor(n); }}",
        "for (int i = 0; i < 3; i++) {",
        "for (int i = 0; i < 3; i / 0, i % 0) orch_args.tensor(i % 0);",
    ],
)
def test_loops_end_in_time(body: str) -> None:
    start = time.process_time()
    read(body)
    assert time.process_time() - start < 8

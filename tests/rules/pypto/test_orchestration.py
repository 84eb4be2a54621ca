"""The data read from an orchestration's C++: payloads and their alternatives, kernels, uses of tensors; and hostile texts."""

from __future__ import annotations

import random
import re
import time

import pytest

from opschema_cli.source.cpp import CppError, parse_cpp
from opschema_rules.pypto.facts import Entry, Orchestration, Payload
from opschema_rules.pypto.orchestration import read_orchestration

FRAME = """\
#include "pto_orchestration_api.h"
{before}
extern "C" {{
void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {{
    const ChipTensor &a = orch_args.tensor(0).ref();
    const ChipTensor &b = orch_args.tensor(1).ref();
    const ChipTensor &c = orch_args.tensor(2).ref();
    TensorCreateInfo info(shapes, 2, DataType::FLOAT32);
    CoreTaskArgs p;
{body}
}}
}}
"""


def read(body: str, before: str = "") -> Entry:
    (entry,) = read_orchestration(parse_cpp(FRAME.format(body=body, before=before))).entries
    return entry


def shown(payload: Payload) -> str:
    """``in 0, out, scalar*``: tensors by the orchestration's own that they are, ``+`` for those that are made."""
    if payload.unresolved:
        return "?"
    slots = []
    for slot in payload.slots:
        named = slot.kind + ("+" if slot.created else f" {slot.argument}" if slot.argument >= 0 else "")
        slots.append(named + {1: "", -1: "*"}.get(slot.count, f"*{slot.count}"))
    return ", ".join(slots)


def payloads(body: str, before: str = "") -> list[str]:
    """The alternatives of each submit, in order: ``in 0 | in 1``."""
    return [" | ".join(sorted(shown(item) for item in submit.payloads)) for submit in read(body, before).submits]


RUN = "rt_submit_aiv_task(0, p);"


# Payloads


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"p.add_input(a, b); p.add_output(info, info); p.add_scalar(1); {RUN}", "in 0, in 1, out+, out+, scalar"),
        (f"p.add_inout(a); p.add_no_dep(b.view(s, o)); {RUN}", "inout 0, no_dep 1"),
        (f"p.add_scalars(numbers, 3); p.add_scalars(numbers, n); {RUN}", "scalar*3, scalar*"),
        (f"p.add_input(a).add_output(b); {RUN}", "in 0, out 1"),
        (f"p.add_input(a); p.reset(); p.add_input(b); {RUN}", "in 1"),
        (f"p.add_input(a); p = CoreTaskArgs(); p.add_input(b); {RUN}", "in 1"),
        (f"p.add_input(a); p.add_anything(b); {RUN}", "?"),
        (f"p.add_input(make_tensor_external(a.data_as<float>(), s, 2)); {RUN}", "in 0"),
        (f"p.add_input(alloc_tensors(info).get_ref(0)); {RUN}", "in"),
        (f"auto t = x ? a : b; p.add_input(t); {RUN}", "in"),
        (f"auto t = a; auto u = t.reshape(s); p.add_input(u.view(s, o)); {RUN}", "in 0"),
        (f"ChipTensor t(a); p.add_input(t); {RUN}", "in 0"),
        (f"const ChipTensor *t = &a; p.add_input(*t); {RUN}", "in 0"),
        (f"const int i = 2; p.add_input(orch_args.tensor(i - 1).ref()); {RUN}", "in 1"),
    ],
)
def test_slots(body: str, expected: str) -> None:
    assert payloads(body) == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("CoreTaskArgs q(p); q.add_input(b); rt_submit_aiv_task(0, q); rt_submit_aiv_task(0, p);", ["in 0, in 1", "in 0"]),
        ("CoreTaskArgs q{p}; q.add_input(b); rt_submit_aiv_task(0, q);", ["in 0, in 1"]),
        ("auto q = p; q.add_input(b); rt_submit_aiv_task(0, p);", ["in 0"]),
        ("auto q = std::move(p); rt_submit_aiv_task(0, q);", ["in 0"]),
        ("CoreTaskArgs q; q = p; q.add_input(b); rt_submit_aiv_task(0, p);", ["in 0"]),
        ("auto &q = p; q.add_input(b); rt_submit_aiv_task(0, p);", ["in 0, in 1"]),
        ("CoreTaskArgs *q = &p; q->add_input(b); (*q).add_input(c); rt_submit_aiv_task(0, p);", ["in 0, in 1, in 2"]),
        ("if (x) { CoreTaskArgs &q = p; q.add_input(b); } rt_submit_aiv_task(0, p);", ["in 0 | in 0, in 1"]),
        ("{ CoreTaskArgs p; p.add_input(b); rt_submit_aiv_task(0, p); } rt_submit_aiv_task(0, p);", ["in 1", "in 0"]),
        ("CoreTaskArgs q; auto &r = x ? p : q; r.add_input(b); rt_submit_aiv_task(0, p);", ["?"]),
        ("CoreTaskArgs q; auto *r = &p; if (x) r = &q; r->add_input(b); rt_submit_aiv_task(0, p);", ["?"]),
        ("std::swap(p, other); rt_submit_aiv_task(0, p);", ["?"]),
        ("Builder made(p); p.reset(); made.run(b); rt_submit_aiv_task(0, p);", ["?"]),
        ("holder.args = &p; p.reset(); rt_submit_aiv_task(0, p);", ["?"]),
        ("elsewhere(p); rt_submit_aiv_task(0, p);", ["?"]),
        ("elsewhere(p); p.reset(); p.add_input(b); rt_submit_aiv_task(0, p);", ["in 1"]),
    ],
)  # fmt: skip
def test_copies_and_other_names(body: str, expected: list[str]) -> None:
    assert payloads(f"p.add_input(a); {body}") == expected


@pytest.mark.parametrize(
    "body",
    [
        "CoreTaskArgs q[2]; q[0].reset(); q[0].add_input(a); q[1].reset(); rt_submit_aiv_task(0, q[1]);",
        "std::vector<CoreTaskArgs> q(2); q[0].add_input(a); rt_submit_aiv_task(0, q[1]);",
        "std::array<CoreTaskArgs, 2> q; q[0].reset(); q[0].add_input(a); rt_submit_aiv_task(0, q[1]);",
        "auto fill = [&]() { p.add_input(a); }; p.reset(); fill(); rt_submit_aiv_task(0, p);",
        "[&] { p.add_input(a); }(); rt_submit_aiv_task(0, p);",
        "static CoreTaskArgs q; q.add_input(a); rt_submit_aiv_task(0, q);",
        "auto q = make_args(); rt_submit_aiv_task(0, q);",
        "global.add_input(a); rt_submit_aiv_task(0, global);",
    ],
)
def test_what_is_not_followed_is_not_guessed(body: str) -> None:
    assert payloads(body) == ["?"]


# Ways


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if (x) p.add_input(a); else p.add_output(b);", "in 0 | out 1"),
        ("if (x) p.add_input(a);", " | in 0"),
        ("if (x) p.add_input(a); else if (y) p.add_input(b); else p.add_input(c);", "in 0 | in 1 | in 2"),
        ("if (auto a = f(); x) p.add_input(a); else p.add_input(b);", "in | in 1"),
        ("x ? p.add_input(a) : p.add_input(b);", "in 0 | in 1"),
        ("x && p.add_input(a);", " | in 0"),
        ("if (x) { p.add_input(a); return; } p.add_input(b);", "in 1"),
        ("if (x) { throw 1; } p.add_input(b);", "in 1"),
        ("switch (x) { case 0: p.add_input(a); case 1: p.add_input(b); break; default: p.add_input(c); }",
         "in 0, in 1 | in 1 | in 2"),
        ("switch (x) { case 0: { p.add_input(a); break; } case 1: if (y) break; p.add_input(b); }", " | in 0 | in 1"),
        ("switch (x) { default: { p.add_input(a); break; } }", "in 0"),
        ("try { p.add_input(a); } catch (...) { p.reset(); p.add_input(b); }", "in 0 | in 1"),
        ("try { p.add_input(a); } catch (...) { p.add_input(b); }", "? | in 0"),
        ("for (int i = 0; i < n; i++) { if (i) continue; p.add_scalar(i); }", " | scalar*"),
        ("for (int i = 0; i < n; i++) { p.reset(); p.add_input(a); if (i) break; p.reset(); }", " | in 0"),
        ("while (x) { p.reset(); p.add_input(a); }", " | in 0"),
        ("do { p.reset(); p.add_input(a); } while (x);", "in 0"),
        ("do { p.add_input(a); } while (0);", "in 0"),
        ("for (int i = 0; i < n; i++) p.add_input(a);", "?"),
        ("for (;;) { p.add_input(a); break; }", "in 0"),
        ("while (true) { p.reset(); p.add_input(a); if (x) break; }", "in 0"),
        ("PTO2_SCOPE() { p.add_input(a); }", "in 0"),
        ("FOR_EACH(i, n) { p.add_input(a); }", "?"),
        ("#ifdef X\np.add_input(a);\n#elif defined(Y)\np.add_input(b);\n#else\np.add_input(c);\n#endif\n",
         "in 0 | in 1 | in 2"),
        ("#if 0\np.add_input(a);\n#endif\np.add_input(b);", "in 1"),
        ("#if X\np.add_input(a);\n#if Y\np.add_input(b);\n#endif\n#endif\n", " | in 0 | in 0, in 1"),
        ("#if X\np.add_input(a);\n#endif\n#if X\nuse(n);\n#endif\np.add_input(b);", "in 0, in 1 | in 1"),
        ("#if X\np.add_input(a);\n#endif\np.reset();\n#if X\np.add_input(b);\n#endif\n", " | in 1"),
        ("#if X\np.add_input(a);\n#endif\n#if 0\np.add_input(b);\n#endif\n", " | in 0"),
        ("#ifdef X\np.add_input(a);\n#endif\n#ifndef X\np.add_input(b);\n#endif\n", "?"),
        ("#if X > 2\np.add_input(a);\n#endif\np.add_output(c);\n#if X <= 2\np.add_scalar(1);\n#endif\n", "?"),
        ("p.add_input(a); goto end; p.add_input(b); end:", "?"),
    ],
)  # fmt: skip
def test_each_way_is_an_alternative(body: str, expected: str) -> None:
    assert payloads(f"{body}\n{RUN}") == [expected]


def test_a_submit_under_a_condition_of_the_preprocessor_may_exclude_what_another_added() -> None:
    added = "#if X\np.add_input(a);\n#endif\n"
    assert payloads(f"{added}#if !X\np.add_input(b);\n{RUN}\n#endif\n") == ["?"]
    assert payloads(f"#if X\np.add_input(a);\n{RUN}\n#endif\n") == ["in 0"]
    twice = "#if X\nCoreTaskArgs q; q.add_input(a);\n#else\nCoreTaskArgs q;\n#endif\n"
    assert payloads(f"{twice}#if !X\nq.add_input(b);\n#endif\nrt_submit_aiv_task(0, q);") == ["?"]


def test_a_declaration_in_every_branch_of_the_preprocessor_is_one_variable() -> None:
    body = "#if X\nCoreTaskArgs q; q.add_input(a);\n#else\nCoreTaskArgs q; q.add_input(b);\n#endif\nrt_submit_aiv_task(0, q);"
    assert payloads(body) == ["in 0 | in 1"]


def test_a_variable_that_a_loop_changes_is_so_from_its_second_turn_on() -> None:
    entry = read(
        "auto t = a; for (int i = 0; i < n; i++) { p.reset(); p.add_input(t); rt_submit_aiv_task(i, p); t = b; }"
    )
    (submit,) = entry.submits
    assert [kernel.value for kernel in submit.kernels] == [None]
    assert [slot.argument for slot in submit.payloads[0].slots] == [-1]
    assert {use.argument for use in entry.uses if use.how == "escapes"} == {0, 1}


def test_alternatives_that_are_too_many_are_unresolved() -> None:
    assert payloads("if (x) p.add_input(a); else p.add_input(b);" * 3 + RUN) != ["?"]
    assert payloads("if (x) p.add_input(a); else p.add_input(b);" * 8 + RUN) == ["?"]


# Functions and macros


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        ("void f(CoreTaskArgs &q, const ChipTensor &t) { q.add_input(t); }", f"f(p, b); {RUN}", ["in 1"]),
        ("void f(CoreTaskArgs *q) { q->add_scalar(1); }", f"f(&p); {RUN}", ["scalar"]),
        ("void f(CoreTaskArgs q) { q.add_scalar(1); }", f"f(p); {RUN}", [""]),
        ("CoreTaskArgs f(const ChipTensor &t) { CoreTaskArgs q; q.add_input(t); return q; }",
         "auto q = f(b); rt_submit_aiv_task(0, q);", ["in 1"]),
        ("CoreTaskArgs &f(CoreTaskArgs &q) { return q; }", f"f(p).add_input(a); {RUN}", ["in 0"]),
        ("ChipTensor f(const ChipTensor &t) { return t.view(s, o); }", f"p.add_input(f(c)); {RUN}", ["in 2"]),
        ("void f(int k, CoreTaskArgs &q) { if (k) return; rt_submit_aiv_task(k, q); }", "f(n, p);", [""]),
        ("void f(int k, CoreTaskArgs &q) { if (k) return; rt_submit_aiv_task(k, q); }", "f(3, p); f(0, p);", [""]),
        ("void f(CoreTaskArgs &q, int n = 2) { q.add_scalars(x, n); }", f"f(p); {RUN}", ["scalar*2"]),
        ("void f(CoreTaskArgs &q) { q.add_scalar(1); f(q); }", f"f(p); {RUN}", ["?"]),
        ("void f(CoreTaskArgs &q) {} void f(CoreTaskArgs &q, int n) { q.add_scalar(n); }", f"f(p, 1); {RUN}", ["?"]),
        ("template <class... T> void f(CoreTaskArgs &q, T &&...t) { (q.add_input(t), ...); }", f"f(p, a); {RUN}", ["?"]),
        ("void f(CoreTaskArgs &q) { q.add_scalar(1); }", f"auto f = pick(); f(p); {RUN}", ["?"]),
        ("#define ADD(q, t) q.add_input(t)", f"ADD(p, a); {RUN}", ["?"]),
        ("#define IT p", f"IT.add_input(a); {RUN}", ["?"]),
        ("#define FILL_P() p.add_input(a)", f"FILL_P(); {RUN}", ["?"]),
        ("", f"SOMETHING(p); {RUN}", ["?"]),
        ("", f'LOG_INFO("%p", &p); {RUN}', [""]),
    ],
)  # fmt: skip
def test_functions_and_macros_of_the_file(before: str, body: str, expected: list[str]) -> None:
    assert payloads(body, before) == expected


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("rt_submit_graph(p);", ""),
        ("elsewhere(orch_args);", ""),
        ("auto f = [&] { rt_submit_aiv_task(0, p); };", ""),
        ("p.add_input(a", ""),
        ("orch_args.tensor(n).ref();", ""),
        ("goto end; end:", ""),
        ("SUBMIT(p);", "#define SUBMIT(q) rt_submit_aiv_task(0, q)"),
        ("submitter.run();", "struct S { void run() { rt_submit_aiv_task(0, q); } };"),
        ("f();", "void f() {} void f(int) { rt_submit_aiv_task(0, q); }"),
        ("CoreTaskArgs p; p.add_input(a); go(0, p);", ""),
        ("CoreTaskArgs p; submit_all(p);", ""),
    ],
)
def test_an_entry_says_that_it_may_do_more(body: str, before: str) -> None:
    assert read(body, before).unresolved


@pytest.mark.parametrize(
    "body",
    [
        "// rt_submit_aiv_task(0, p);",
        "#if 0\nrt_submit_aiv_task(0, p);\n#endif",
        'LOG_INFO("%" PRIu64 " of\\n", n);',
        "f(n);",
        "CoreTaskArgs p; fill(p); rt_submit_aiv_task(0, p);",
        "CoreTaskArgs p; p.add_input(a); complete(p); rt_submit_aiv_task(0, p);",
        "Sizes sizes; prepare(sizes);",
    ],
)
def test_an_entry_that_is_followed_whole_says_nothing(body: str) -> None:
    assert not read(body).unresolved


# Kernels


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("rt_submit_aic_task(7, p);", [(7, "aic")]),
        ("rt_submit_aiv_task(FUNC + 1, p);", [(6, "aiv")]),
        ("rt_submit_aiv_task(010, p);", [(8, "aiv")]),
        ("int k = 1; k++; rt_submit_aiv_task(k, p);", [(2, "aiv")]),
        ("int k = 1; rt_submit_aiv_task(k++, p);", [(1, "aiv")]),
        ("int k = 1; rt_submit_aiv_task(++k, p);", [(2, "aiv")]),
        ("int k = 3; k -= 1; k *= 2; rt_submit_aiv_task(k, p);", [(4, "aiv")]),
        ("int k = 1; k += n; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("uint32_t k = 0; k--; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("uint8_t k = 255; k++; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("float k = 1; rt_submit_aiv_task(k / 2, p);", [(None, "aiv")]),
        ("static int k = 1; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("static const int k = 1; rt_submit_aiv_task(k, p);", [(1, "aiv")]),
        ("int k = 1; auto f = [&] { k = 2; }; k = 3; f(); rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("int k = 1; int *q = &k; k = 3; *q = 2; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("int k = 1; in >> k; rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("int k = 1; reader.next(k); rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("const int k[] = {4, 5}; rt_submit_aiv_task(k[1], p);", [(5, "aiv")]),
        ("const int k[3] = {4}; rt_submit_aiv_task(k[2], p);", [(0, "aiv")]),
        ("const std::array<int, 2> k{4, 5}; rt_submit_aiv_task(k.size() == 2 ? k.at(0) : 9, p);", [(4, "aiv")]),
        ("const int k[] = {4, n}; rt_submit_aiv_task(k[1], p);", [(None, "aiv")]),
        ("const int k[] = {4, 5}; rt_submit_aiv_task(k[2], p);", [(None, "aiv")]),
        ("int k[] = {4, 5}; rt_submit_aiv_task(k[1], p);", [(None, "aiv")]),
        ("int k = 1; k = 2; rt_submit_aiv_task(k, p);", [(2, "aiv")]),
        ("int k = 1; elsewhere(k); rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("int k = 1; elsewhere(&k); rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("for (int k = 0; k < n; k++) rt_submit_aiv_task(k, p);", [(None, "aiv")]),
        ("MixedKernels m = {1, 2, 3}; rt_submit_task(m, p);", [(1, "aic"), (2, "aiv"), (3, "aiv")]),
        ("MixedKernels m{.aic_kernel_id = 1, .aiv1_kernel_id = 4}; rt_submit_task(m, p);", [(1, "aic"), (4, "aiv")]),
        ("MixedKernels m; m.aiv0_kernel_id = 2; m.aic_kernel_id = 1; rt_submit_task(m, p);", [(1, "aic"), (2, "aiv")]),
        ("MixedKernels m = {1, 2}; m.aic_kernel_id = 5; rt_submit_task(m, p);", [(5, "aic"), (2, "aiv")]),
        ("MixedKernels m = {INVALID_KERNEL_ID, 2}; rt_submit_task(m, p);", [(2, "aiv")]),
        ("MixedKernels m; if (x) m.aic_kernel_id = 1; m.aiv0_kernel_id = 2; rt_submit_task(m, p);", [(None, "")]),
        ("MixedKernels m; elsewhere(m); rt_submit_task(m, p);", [(None, "")]),
        ("MixedKernels m; set(&m); rt_submit_task(m, p);", [(None, "")]),
    ],
)
def test_kernels(body: str, expected: list[tuple[int | None, str]]) -> None:
    (submit,) = read(body, "constexpr int FUNC = 5; void set(MixedKernels *m) { m->aic_kernel_id = 3; }").submits
    assert sorted((item.value, item.core) for item in submit.kernels) == sorted(expected)


def test_when_tasks_are_submitted() -> None:
    body = f"{RUN} if (x) {{ {RUN} }} while (x) {{ {RUN} }} if (y) return; {RUN}"
    assert [(item.order, item.conditional, item.looped) for item in read(body).submits] == [
        (1, False, False),
        (2, True, False),
        (3, False, True),
        (4, True, False),
    ]


# Uses


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("float x = get_tensor_data<float>(a, 1, i);", ["0 read"]),
        ("set_tensor_data(b, 1, i, 2.0f);", ["1 written"]),
        ("auto *m = a.data_as<float>(); m[0] = 1;", ["0 written"]),
        ("auto *m = a.data_as<float>(); *(m + 1) = m[0];", ["0 read", "0 written"]),
        ("auto *m = a.data_as<float>(); m[0] += 1;", ["0 read", "0 written"]),
        ("auto *m = a.data_as<float>(); m++; m += 2; m[i++] = 1;", ["0 written"]),
        ("memset(a.data_as<float>(), 0, 4);", ["0 written"]),
        ("elsewhere(b);", ["1 escapes"]),
        ("elsewhere(a.shapes[0]);", []),
        ("holder.tensor = b;", ["1 escapes"]),
        ("Holder holder{a, b};", ["0 escapes", "1 escapes"]),
        ("others.push_back(c);", ["2 escapes"]),
        ("auto f = [&] { return a; };", ["0 escapes"]),
        ("auto [x, y] = split(a);", ["0 escapes"]),
        ("p.dump(a);", []),
        ("auto t = x ? a : b; set_tensor_data(t, 1, i, 2.0f);", ["0 escapes", "1 escapes"]),
    ],
)
def test_uses_outside_of_payloads(body: str, expected: list[str]) -> None:
    assert [f"{use.argument} {use.how}" for use in read(body).uses] == expected


# Hostile texts

N = 4_000
HOSTILE = {
    "adds": "p.add_input(a);" * N,
    "ifs": "if (x) p.add_input(a);" * N,
    "variables": "".join(f"int v{i}; if (x) v{i} = {i};" for i in range(N)),
    "copies": "if (a) p.add_input(b);" * 6 + "p.add_input(a);" * 900 + "{ CoreTaskArgs q(p); q.add_input(a); }" * N,
    "submits": "if (a) p.add_input(b);" * 6 + "p.add_input(a);" * 900 + RUN * N,
    "sum": f"int z = {'+'.join(['a'] * N)};",
    "and": f"bool z = {'&&'.join(['f(p)'] * N)};",
    "else if": f"if (x) {{}}{' else if (x) p.add_input(a);' * N}",
    "blocks": "{" * 490 + "}" * 490,
    "loops": "for (int i = 0; i < n; i++) { if (x) p.add_input(a); " * 60 + "}" * 60,
    "counted": "for (int i = 0; i < 32; i++) " * 30 + "p.add_input(orch_args.tensor(i).ref());",
    "counted apart": "".join(
        f"for (int i{n} = 0; i{n} < 32; i{n}++) {{ if (x) p.reset(); orch_args.tensor(i{n}); {RUN}" for n in range(20)
    )
    + "}" * 20,
    "graphs": "GraphTaskArgs g; " + "g.add_input(a); rt_submit_graph(&aicpu_orchestration_entry, g);" * 100,
    "switch": f"switch (x) {{ {''.join(f'case {i}: p.add_input(a);' for i in range(N))} }}",
    "chain": f"p{'.add_input(a)' * N};",
    "counters": f"{'x[' * 400}i++{']++' * 400};",
    "pointers": f"auto q = {'*' * N}p;",
    "labels": "".join(f"l{i}: " for i in range(N)) + ";",
    "conditions": "#if A\n" * 1_500 + "p.add_input(a);\n" + "#endif\n" * 1_500,
    "split": "if (x) {\n#if A\n} else {\n#endif\n}" * 500,
    "turning": "".join(f"auto t{i} = orch_args.tensor({i});" for i in range(300))
    + f"for (;;) {{ {''.join(f't{i} = t{i + 1};' for i in range(299))} p.add_input(t0); }}",
    "numbers": f"rt_submit_aiv_task({'9' * N}, p); rt_submit_aiv_task(08, p); orch_args.tensor(9999999999999999999999 * 9);",
    "open": "if (x) { p.add_input(a",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_body_takes_no_more_than_its_time(name: str) -> None:
    started = time.thread_time()
    read_anything(FRAME.format(body=HOSTILE[name], before=""))
    assert time.thread_time() - started < 20  # some 3 s where it is most


@pytest.mark.parametrize(
    "before",
    [
        "".join(f"void f{i}(CoreTaskArgs &p) {{ {f'f{i + 1}(p);' * 6} }}\n" for i in range(20)),
        f"#define K {'9' * 5_000}\n#define L 08\nenum {{ A = 0x{'f' * 50}, B }};",
        "".join(f"#define M{i} M{i + 1} p rt_submit_\n" for i in range(N)),
        "\0\0é\U0001f600",
    ],
)
def test_a_hostile_file_takes_no_more_than_its_time(before: str) -> None:
    started = time.thread_time()
    read_anything(FRAME.format(body="f0(p); M0; rt_submit_aiv_task(K + A + L, p);", before=before))
    assert time.thread_time() - started < 20


def read_anything(text: str) -> Orchestration:
    try:
        return read_orchestration(parse_cpp(text))
    except CppError:
        return Orchestration()


SOUND = FRAME.format(
    before="void f(CoreTaskArgs &q, int k) { q.add_scalar(k); }\n"
    "void layer(const GraphTaskArgs &g, int k) { CoreTaskArgs q; q.add_inout(g.tensor(0).ref()); rt_submit_aiv_task(k, q); }",
    body="""\
    MixedKernels m = {1, 2, INVALID_KERNEL_ID};
    for (int i = 0; i < n; i++) {
        PTO2_SCOPE() {
            CoreTaskArgs q(p);
            auto t = i ? a.view(s, o) : b;
            if (i == 0) { q.add_output(t); } else { q.add_inout(t); }
            switch (i) { case 1: { f(q, 1); break; } default: continue; }
            rt_submit_task(m, q);
        }
    }
    const std::array<int, 3> ids{3, 5, 4};
    for (size_t at = 0; at < ids.size(); ++at) {
        GraphTaskArgs g;
        g.add_inout(orch_args.tensor(ids[at]).ref());
        if (at == 1 || n) { continue; }
        rt_submit_graph(&layer, g, ids[at]);
    }
""",
)


@pytest.mark.parametrize("seed", range(40))
def test_a_text_with_tokens_lost_and_doubled_is_read(seed: int) -> None:
    chance = random.Random(seed)
    tokens = re.findall(r"\s+|\w+|[^\w\s]", SOUND)
    for _ in range(chance.choice((1, 3, 10, 40))):
        at = chance.randrange(len(tokens))
        tokens[at : at + chance.choice((0, 1, 4))] = chance.choices(tokens, k=chance.choice((0, 1, 4)))
    for entry in read_anything("".join(tokens)).entries:
        for submit in entry.submits:
            assert submit.payloads
            assert not any(payload.unresolved and payload.slots for payload in submit.payloads)

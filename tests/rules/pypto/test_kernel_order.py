"""Which reads of a kernel surely come before all of its writes (PTO106)."""

from __future__ import annotations

import pytest

from tests.rules.pypto.test_kernel_rules import ADD, IN, LOADS, OUTPUTS, found, kernel, payload, tensor

HELPERS = """\
template <typename G, typename T> static void add(G g, T t) { TLOAD(t, g); TADD(t, t, t); TSTORE(g, t); }
template <typename G, typename T> static void twice(G g, T t) { add(g, t); }
template <typename G, typename T> static void fill(G g, T t) { TSTORE(g, t); }
template <typename G> static void copy(G to, G from) { TLOAD(tile, from); TSTORE(to, tile); }
template <typename G, typename T> static void maybe(G g, T t, int k) { if (k == 0) return; TLOAD(t, g); TSTORE(g, t); }
#define WHEN(c) if (c)
#define END }
#define is_on(c) ((c) > 0)
constexpr bool ACC = false;
#ifdef __DAV_CUBE__
constexpr bool DAV_CUBE = true;
#else
constexpr bool DAV_CUBE = false;
#endif
"""
POINTER = "auto *p = c_t->data_as<float>();"


def reads(body: str) -> bool:
    whole = {ADD: f"{HELPERS}{kernel(f'{LOADS} {tensor(2)} {body}')}"}
    return bool(found("", "PTO106", cpp=payload(IN, "p.add_inout(c);"), config=OUTPUTS, others=whole))


@pytest.mark.parametrize(
    "body",
    [
        "TLOAD(tile, c); set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); TADD(sum, tile, t); TSTORE(c, sum);",
        "TLOAD(tile, c); TLOAD(t, a); pipe_barrier(PIPE_ALL); TADD(t, tile, t); TSTORE(c, t);",
        "{ TLOAD(tile, c); TMULS(tile, tile, 2.f); TSTORE(c, tile); }",
        "for (int k = 0; k < 4; k++) if (k) fill(a, t); TLOAD(tile, c); TSTORE(c, tile);",
        f"{POINTER} p[0] = p[0] + 1;",
        f"{POINTER} for (int i = 0; i < 8; i++) {{ use(a); }} p[1] += 1;",
        "add(c, tile);",
        "twice(c, tile);",
        "\n#ifdef __DAV_VEC__\nTLOAD(tile, c);\nTSTORE(c, tile);\n#endif\n",
        "if constexpr (!DAV_CUBE) { TLOAD(tile, c); TSTORE(c, tile); }",
    ],
)
def test_a_read_that_surely_comes_first(body: str) -> None:
    assert reads(body)


@pytest.mark.parametrize(
    "body",
    [
        # Another core, call or turn may write before
        "\n#ifdef __DAV_CUBE__\nTSTORE(c, t);\n#endif\n#ifdef __DAV_VEC__\nTLOAD(tile, c);\nTSTORE(c, tile);\n#endif\n",
        "\n#ifdef __DAV_VEC__\nTLOAD(tile, c);\nTSTORE(c, tile);\n#endif\n#ifdef __DAV_CUBE__\nTSTORE(c, t);\n#endif\n",
        "if constexpr (DAV_CUBE) { TSTORE(c, t); } else { TLOAD(tile, c); TSTORE(c, tile); }",
        "fill(c, tile); add(c, tile);",
        "INIT; TLOAD(tile, c); TADD(tile, tile, t); TSTORE(c, tile);",
        # Another variable
        *(
            f"{change} TLOAD(tile, c); TADD(tile, tile, t); TSTORE(c, tile);"
            for change in ("c = other;", "TASSIGN(c, other);")
        ),
        *(
            f"{{ {declared} c(ws); TLOAD(tile, c); TADD(tile, tile, t); TSTORE(c, tile); }}"
            for declared in ("GlobalTensor<float, S, S>", "Tile", "auto")
        ),
        f"{POINTER} p = ub; p[0] += 1;",
        f"{POINTER} {{ float *p = ub; p[0] += 1; }}",
        f"{POINTER} for (auto *p : list) {{ p[0] += 1; }}",
        f"{POINTER} auto f = [&](auto *p) {{ p[0] += 1; }}; f(ub);",
        "copy(c, a); copy(b, c);",
        f"{POINTER} for (int b = 0; b < n; b++) {{ for (int k = 0; k < b; k++) s += p[k]; p[b] = s; }}",
        f"{POINTER} for (int b = 0; b < n; b++) {{ int k = 0; while (k < b) s += p[k++]; p[b] = s; }}",
        f"{POINTER} p[0] = 0, x = p[0], p[1] = x;",
        f"{POINTER} x = p[0] = 0; y = p[0]; p[1] = y;",
        # A branch around it, or around the call that leads there
        "if (n > 0) { TLOAD(tile, c); TSTORE(c, tile); }",
        "if constexpr (ACC) { TLOAD(tile, c); TSTORE(c, tile); }",
        "if (0) add(c, tile);",
        "if (0) { twice(c, tile); }",
        "0 ? add(c, tile) : fill(a, tile);",
        "n && add(c, tile);",
        "for (int i = 0; i < 0; i++) add(c, tile);",
        "switch (n) { case 1: add(c, tile); break; case 2: add(c, tile); break; }",
        "\n#ifdef ACC\nadd(c, tile);\n#endif\n",
        "\n#if ACC\nTLOAD(tile, c); TADD(tile, tile, t); TSTORE(c, tile);\n#else\nTSTORE(c, tile);\n#endif\n",
        "\n#ifndef INIT\nTLOAD(tile, c);\n#else\nTEXPANDS(tile, 0);\n#endif\nTSTORE(c, tile);",
        "bool first = true; for (;;) { first ? z() : TLOAD(tile, c); TSTORE(c, tile); }",
        "if (n) { TSTORE(c, tile); return; } TLOAD(tile, c); TSTORE(c, tile);",
        "if (n == 0) { return; } TLOAD(tile, c); TSTORE(c, tile);",
        "for (;;) { if (n == 0) continue; TLOAD(tile, c); TSTORE(c, tile); }",
        "maybe(c, tile, 0);",
        "while (x) { TLOAD(tile, c); TSTORE(c, tile); }",
        "for (int k = 0; k < N; k++) { TLOAD(tile, c); TADD(tile, tile, t); TSTORE(c, tile); }",
        "for (int k = 1; k < n; k++) { twice(c, tile); }",
        # Macros
        "for (int k = 0; k < 4; k++) { IF_NOT_FIRST(k) TLOAD(tile, c); TSTORE(c, tile); }",
        "for (int k = 0; k < 4; k++) { WHEN(k > 0) TLOAD(tile, c); TSTORE(c, tile); }",
        "for (int k = 0; k < 4; k++) { WHEN(k > 0) { TLOAD(tile, c); } TSTORE(c, tile); }",
        "for (int k = 0; k < 4; k++) { WHEN(k > 0) { TLOAD(tile, c); TSTORE(c, tile); END }",
        "for (int k = 0; k < 4; k++) { WHEN(k > 0, TLOAD(tile, c)); TSTORE(c, tile); }",
        "NOT_FIRST(TLOAD(tile, c)); TSTORE(c, tile);",
        "NOT_FIRST(add(c, tile));",
        "RETURN_IF(n == 0); TLOAD(tile, c); TSTORE(c, tile);",
        "BEGIN_IF(n); TLOAD(tile, c); TSTORE(c, tile);",
        "TLOAD(tile, c); bool on = is_on(n); TSTORE(c, tile);",
        # Lambdas
        "auto step = [&] { TLOAD(tile, c); TSTORE(c, tile); }; auto init = [&] { TSTORE(c, tile); }; init(); step();",
        "auto step = [&]() { TLOAD(tile, c); TSTORE(c, tile); }; fill(c, tile); step();",
        "auto step = [&] { TLOAD(tile, c); TSTORE(c, tile); }; if (k) step(); TSTORE(c, tile);",
        "run([=]() mutable { TLOAD(tile, c); TSTORE(c, tile); });",
        # What is read may be dropped
        "TLOAD(tile, c); if (k == 0) { TEXPANDS(tile, 0); } TADD(tile, tile, t); TSTORE(c, tile);",
        "TLOAD(tile, c); TADD(sum, tile, t); if (k == 0) TMOV(sum, t); TSTORE(c, sum);",
        "TLOAD(tile, c); TSEL(tile, mask, tile, zero); TSTORE(c, tile);",
        "TLOAD(tile, c); TMOV(tile, t); TSTORE(c, tile);",
        "TLOAD(tile, c); TSTORE(c, t);",
        "TLOAD(tile, c); use(tile); TSTORE(c, tile);",
        "auto &z = tile; TLOAD(tile, c); TEXPANDS(z, 0); TADD(tile, tile, t); TSTORE(c, tile);",
        "auto *z = &tile; TLOAD(tile, c); TEXPANDS(*z, 0); TADD(tile, tile, t); TSTORE(c, tile);",
        "TLOAD(tile, c); clear(); TADD(tile, tile, t); TSTORE(c, tile);",
        "TLOAD(tile, c); z = zero; TADD(tile, tile, t); TSTORE(c, tile);",
        f"{POINTER} for (int b = 0; b < n; b++) {{ float old = p[b - (b > 0)]; p[b] = (b > 0) ? old : 0; }}",
        f"{POINTER} p[0] = n > 0 ? p[0] : 0;",
        f"{POINTER} p[0] = n && p[0];",
        f"{POINTER} float old = p[0]; p[0] = 1;",
        f'{POINTER} printf("%f", p[0]); p[0] = 1;',
        f"{POINTER} while (p[1] == 0) {{ }} p[0] = 1;",
    ],
)
def test_a_read_that_may_come_later_or_not_at_all(body: str) -> None:
    assert not reads(body)

"""Kernels' C++: the arguments that they use, and what they do to their memory."""

from __future__ import annotations

import pytest

from opschema_rules.pypto.kernel_facts import KernelCode
from opschema_rules.pypto.kernel_reading import read_arguments, read_kernel

HELPERS = """\
constexpr int RESULT = 2;
using View = GlobalTensor<float, Shape<1, 1>, Stride<1, 1>>;
template <typename T>
static __aicore__ inline auto memory_of(T &tensor) -> decltype(tensor.data()) { return tensor.data(); }
static __aicore__ __gm__ float *data(__gm__ int64_t *args, int at) {
    __gm__ ChipTensor *tensor = reinterpret_cast<__gm__ ChipTensor *>(args[at]);  // not args[9]
    return reinterpret_cast<__gm__ float *>(tensor->buffer.addr) + tensor->start_offset;
}
template <typename T>
static __aicore__ inline __gm__ T *remote(__gm__ CommContext *ctx, __gm__ T *local, int peer) {
    uint64_t offset = reinterpret_cast<uint64_t>(local) - ctx->windowsIn[ctx->rankId];
    return reinterpret_cast<__gm__ T *>(ctx->windowsIn[peer] + offset);
}
template <int N>
static __aicore__ void copy(__gm__ float *to, __gm__ float *from) {
    View source(from), target(to);
    TLOAD(tile, source);
    TSTORE(target, tile);
}
static __aicore__ void set(__gm__ float &x) { x = 1.0f; }
static __aicore__ float last(float x) { return x; }
static __aicore__ __gm__ float &item(__gm__ float *from, int at) { return from[at]; }
#if defined(__DAV_CUBE__)
constexpr bool CUBE = true;
#else
constexpr bool CUBE = false;
#endif
"""


def read(body: str, helpers: str = HELPERS) -> KernelCode:
    return read_kernel(f'{helpers}extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{\n{body}\n}}\n')


def effects(body: str, core: str = "", helpers: str = HELPERS) -> dict[int, str]:
    """The accesses to each argument: ``read``, ``written``, both, or ``lost``."""
    found: dict[int, set[str]] = {}
    for item in read(body, helpers).of_core(core).effects:
        found.setdefault(item.index, set()).add(item.kind)
    return {index: "lost" if "lost" in kinds else "+".join(sorted(kinds)) for index, kinds in sorted(found.items())}


T = "auto *{0} = reinterpret_cast<__gm__ float *>(reinterpret_cast<__gm__ ChipTensor *>(args[{1}])->buffer.addr);"
BOTH = {0: "read+written", 1: "written"}
PIPE, REMOTE = {0: "exchanged"}, {0: "written", 1: "exchanged"}
A, B, C = (T.format(name, index) for index, name in enumerate("abc"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("View g(data(args, 0)); TLOAD(tile, g);", {0: "read"}),
        ("View g(data(args, RESULT)); TSTORE(g, tile);", {2: "written"}),
        ("View g(data(args, 2)); auto *to = &g; TSTORE(*to, tile);", {2: "written"}),
        ("using P = __gm__ ChipTensor *; auto *t = (P)args[1]; View g(t->buffer.addr); TSTORE(g, tile);", {1: "written"}),
        (
            "typedef __gm__ ChipTensor *P; auto *t = static_cast<P>(args[1]); View g(t->buffer.addr); TLOAD(tile, g);",
            {1: "read"},
        ),
        ("copy<4>(data(args, 1), data(args, 0));", {0: "read", 1: "written"}),
        (f"{A} a[3] = 1.0f;", {0: "written"}),
        (f"{A} a[3] += 1.0f;", {0: "read+written"}),
        (f"{A} float x = a[3];", {0: "read"}),
        (f"{A} *a = 0;", {0: "written"}),
        (f"{A} float x = float(a[3]) + last(a[3]);", {0: "read"}),
        (f"{A} if (*(a + 1) > 0) return;", {0: "read"}),
        (f"{A} {B} b[i] = a[i];", {0: "read", 1: "written"}),
        (f"{A} auto *p = a + 4; auto *q = p; q[0] = 1;", {0: "written"}),
        (f"{A} float *p; p = a; p[0] = 1;", {0: "written"}),
        (f"{A} View g{{a}}; TSTORE(g, tile);", {0: "written"}),
        (f"{A} View g(a); TSTORE<Tile, View, AtomicType::AtomicAdd>(g, tile);", {0: "read+written"}),
        (f"{A} View g(a); TSTORE<View, pto::AtomicType::AtomicMax>(g, t);{B} View h(b); TSTORE(h, t);", BOTH),
        (f"{A} View g(a); TSTORE<Tile, View, AtomicType::AtomicNone>(g, tile);", {0: "written"}),
        (f"{A} auto g = GlobalTensor<float, Shape<1, 16>, Stride<1, 1>>(a + (x + y), s, t); TLOAD(tile, g);", {0: "read"}),
        (f"{A} auto *p = a + static_cast<size_t>(n) * 4 * M; p[0] = 1;", {0: "written"}),
        (f"{A} auto *p = n * 4 + a; p[0] = 1;", {0: "written"}),
        (f"{A} View g; TASSIGN(g, a); TLOAD(tile, g);", {0: "read"}),
        (f"{A} View g(a); auto *p = memory_of(g); p[0] = 1;", {0: "written"}),
        (f"{A} View g(a); float x = memory_of(g)[0];", {0: "read"}),
        (f"{A} for (int i = 0; i < 4; i++) {{ View g(a + i); TLOAD(tile, g); }}", {0: "read"}),
        (f"{A} {B} {{ View g(a); TLOAD(tile, g); }} {{ View g(b); TSTORE(g, tile); }}", {0: "read", 1: "written"}),
        (f"{A} {B} for (auto *p = a; n; p++) x += p[0]; for (auto *p = b; n; p++) *p = 0;", {0: "read", 1: "written"}),
        (f"{A} auto work = [&]() {{ a[0] = 1; }}; work();", {0: "written"}),
        (f"{A} dcci((__gm__ void *)a, x); (void)a;", {}),
        ("auto t = reinterpret_cast<__gm__ ChipTensor *>(args[0]); int n = t->shapes[0] * t->strides[1];", {}),
        ("uint64_t x = args[0]; auto *p = reinterpret_cast<__gm__ float *>(x); p[0] = 1;", {0: "written"}),
        ("auto *p = (__gm__ float *)args[0]; p[0] = 1;", {0: "written"}),
        (f"{A} // a[0] = 1;\n/* a[1] = 2; */ float x = a[0];", {0: "read"}),
        (f"#if 0\n{A} a[0] = 1;\n#endif", {}),
        (f"{A} auto p = TPipe<0, Direction::DIR_C2V, 1024, 8, 8, true>(a, 0, 0); TPUSH<P, Tile, NO_SPLIT>(p, t);", PIPE),
        (f"{A} using P = TPipe<0, Direction::DIR_V2C, 64, 8>; P p(a, BASE, 0U); TPOP<P, Tile, A::B>(p, t); TFREE<P>(p);", PIPE),
        (f"{A} {B} View g(remote(ctx, a, 3)), h(b); pto::comm::TPUT(g, h, tile);", {0: "exchanged", 1: "read"}),
        (f"{A} {B} View g(a), h(remote(ctx, b, 3)); pto::comm::TGET(g, h, tile);", {0: "written", 1: "exchanged"}),
        (f"{A} pto::comm::Signal s(remote(ctx, a, 3)); pto::comm::TNOTIFY(s, (int32_t)1, NotifyOp::AtomicAdd);", PIPE),
        (f"{A} pto::comm::Signal s(a + peer); pto::comm::TWAIT(s, (int32_t)1, pto::comm::WaitCmp::GE);", {0: "read"}),
        (f"{A} {B} View g(a), h(remote(ctx, b, 1)); send_request_entry(c, SdmaTget(g, h, tile, w));", REMOTE),
        (f"{A} {B} View g(remote(ctx, a, 1)), h(b); auto r = SdmaTput(g, h, tile, w);", {0: "exchanged", 1: "read"}),
        (f"{A} st_dev(static_cast<uint32_t>(v), reinterpret_cast<__gm__ uint32_t *>(a), 0);", {0: "written"}),
        (f"{A} uint32_t x = ld_dev(reinterpret_cast<__gm__ uint32_t *>(a), 0);", {0: "read"}),
        ("float x = from_u64<float>(static_cast<uint64_t>(args[3]));", {}),
    ],
)  # fmt: skip
def test_what_is_followed(body: str, expected: dict[int, str]) -> None:
    assert effects(body) == expected
    assert read(body).open == ""


@pytest.mark.parametrize(
    "body",
    [
        f"{A} elsewhere(a);",
        f"{A} auto *p = x ? a : b; {B} p = b; p[0] = 1;",
        f"{A} object.field = a;",
        f"{A} object.method(a);",
        f"{A} global_pointer = a;",
        f"{A} table[0] = a; a[0] = a;",
        f"{A} __gm__ float *both[2] = {{a, b}}; both[0][1] = 1;",
        f"{A} *out_pointer = elsewhere(a);",
        f"{A} View g(a); set_atomic_add(); TSTORE(g, tile);",
        f"{A} View g(a); constexpr auto mode = AtomicType::AtomicAdd; TSTORE<Tile, View, mode>(g, tile);",
        f"{A} View g(a); g.method();",
        f"{A} (void)elsewhere(a);",
        f"{A} elsewhere(*a);",
        f"{A} elsewhere(a[3]);",
        f"{A} object.method(a[3]);",
        f"{A} Object object(a[3]);",
        f"{A} memcpy(reinterpret_cast<__gm__ Item *>(a)->field, x, 4); memcpy(elsewhere(a), x, 4);",
        f"{A} set(*a);",
        f"{A} set(a[3]);",
        f"{A} set(*data(args, 0));",
        f"{A} auto &e = a[3]; e = 1;",
        f"{A} float &e = *a; e = 1;",
        f"{A} auto &[x, y] = *reinterpret_cast<__gm__ Item *>(a); x = 1;",
        f"{A} auto *rest = reinterpret_cast<__gm__ Item *>(a)->field; rest[0] = 1;",
        f"{A} item(a, 3) = 1;",
        "auto *a = reinterpret_cast<Unknown>(args[0]); a[0] = 1;",
        "auto *a = (Unknown)args[0]; a[0] = 1;",
        f"{A} View g(a); (void)elsewhere(n, Other(g));",
        f"{A} TPUSH(tile, a);",
        f"{A} View g(a); pto::comm::TBROADCAST(group, g, tile);",
        f"{A} View g(b), h(b); SdmaTget(g, h, tile, a);",
        f"{A} {B} pto::comm::Signal s(n ? a : b); pto::comm::TNOTIFY(s, 1, x);",
        "struct P { P(float *p); }; " + A + " P object(a);",
    ],
)
def test_what_cannot_be_followed_is_lost(body: str) -> None:
    assert effects(body)[0] == "lost"


MACROS = """\
#define STORE_TO(to, tile) TSTORE(to, tile)
#define STORE_IT TSTORE(g, \\
    tile)
#define STORE STORE_IT
#define OUT g
#define ARG(i) args[i]
#define COUNT 4
"""


@pytest.mark.parametrize("use", ["STORE_TO(g, tile);", "STORE_IT;", "STORE;", "TSTORE(OUT, tile);"])
def test_what_a_macro_uses_is_lost(use: str) -> None:
    assert effects(f"{A} View g(a); {use}", helpers=MACROS + HELPERS)[0] == "lost"


def test_a_macro_that_reaches_for_arguments_opens_the_kernel() -> None:
    assert read(f"{A} auto *b = ARG(1);", MACROS + HELPERS).open == "the macro `ARG` uses it"


def test_macros_that_have_nothing_to_do_with_arguments() -> None:
    loop = f"{A} View g(a); for (int i = 0; i < COUNT; i++) TSTORE(g, tile);"
    assert effects(loop, helpers=MACROS + HELPERS) == {0: "written"}


@pytest.mark.parametrize(
    "body",
    [
        "use(args[n]);",
        "for (int i = 0; i < 4; i++) use(args[i]);",
        "elsewhere(args);",
        "Kernel kernel; kernel.run(args);",
        "args++; auto *a = reinterpret_cast<__gm__ ChipTensor *>(*args);",
        "++args; auto *a = reinterpret_cast<__gm__ ChipTensor *>(*args);",
        "args += 2; auto *a = reinterpret_cast<__gm__ ChipTensor *>(*args);",
        "args = args + 2; auto *a = reinterpret_cast<__gm__ ChipTensor *>(*args);",
    ],
)
def test_an_index_that_is_not_known_opens_the_kernel(body: str) -> None:
    assert read(body).open


def test_arguments_through_a_pointer() -> None:
    assert {use.index for use in read("use(reinterpret_cast<__gm__ ChipTensor *>(*args));").uses} == {0}
    assert read("__gm__ int64_t *rest = args + 1; use(rest[0]);").open
    assert read("use(*(args + 2));").open


def test_the_runtimes_own_functions_take_no_argument() -> None:
    code = read("int i = get_block_idx(args); int n = static_cast<int>(args[3]);")
    assert (code.open, [(use.index, use.kind) for use in code.uses]) == ("", [(3, "other"), (3, "number")])


def test_a_union_takes_a_scalar() -> None:
    code = read("union { uint64_t u; float f; } both; both.u = args[4]; float x = both.f;")
    assert (code.open, {use.index for use in code.uses}, code.effects) == ("", {4}, ())


def test_the_core_decides_what_is_compiled() -> None:
    body = (
        f"{A} {B} if constexpr (CUBE) {{ a[0] = 1; }} else {{ b[0] = 1; }}\n#ifdef __DAV_VEC__\nfloat x = a[0];\n#endif"
    )
    assert effects(body, "aic") == {0: "written"}
    assert effects(body, "aiv") == {0: "read", 1: "written"}
    assert effects(body) == {0: "read+written", 1: "written"}


def test_a_helper_is_compiled_where_it_is_called() -> None:
    helpers = HELPERS.replace("template <int N>", "#ifdef __DAV_VEC__\ntemplate <int N>").replace(
        "#if def", "#endif\n#if def"
    )
    code = read("if constexpr (CUBE) { } copy<4>(data(args, 1), data(args, 0));", helpers)
    assert {item.core for item in code.effects} == {"aiv"}


def test_overloads_are_not_followed() -> None:
    helpers = HELPERS + "void both(float *p) { p[0] = 1; }\nvoid both(int *p) { }\n"
    assert {item.kind for item in read(f"{A} both(a);", helpers).effects} == {"lost"}


def test_recursion_ends() -> None:
    helpers = HELPERS + "void again(float *p, int n) { p[0] = 1; again(p + 1, n - 1); }\n"
    assert {item.kind for item in read(f"{A} again(a, 3);", helpers).effects} == {"written"}


def test_memory_of_a_generated_kernel_is_not_followed() -> None:
    text = f"// Generated by PyPTO IR Compiler\n{HELPERS}void kernel_entry(__gm__ int64_t *args) {{ {A} a[0] = 1; }}\n"
    assert read_arguments(text).brief
    assert read_arguments(text).effects == ()
    assert read_kernel(text).effects


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("\n", True),
        ("void kernel_entry(int64_t *args) { (void)args; }", True),
        ('#include "body.h"\n', False),
        ('#include "tensor.h"\n', True),
        ("#define ENTRY kernel_entry\n", False),
        ("void kernel_entry(int64_t *args) { use(args[0]); }", False),
    ],
)
def test_a_file_that_shows_nothing(text: str, absent: bool) -> None:
    assert read_kernel(text).absent is absent


@pytest.mark.parametrize(
    "text",
    [
        "void kernel_entry(",
        "void kernel_entry(int64_t *args) {",
        "kernel_entry(args) }{",
        "void kernel_entry(x) { args[",
        "}}}} kernel_entry((((",
    ],
)
def test_text_that_is_cut_off(text: str) -> None:
    assert read_kernel(text).effects == ()


MANY = 3_000


@pytest.mark.parametrize(
    "body",
    [
        f"x = {'(' * MANY}args[0]{')' * MANY};",
        f"x = {'*' * MANY}args[0];",
        f"{'x = ' * MANY}args[0];",
        f"{'if (a) ' * MANY}use(args[0]);",
        "".join(f"float *v{at} = (float *)args[{at}]; p = v{at};" for at in range(MANY)),
    ],
)
def test_what_would_take_too_long_is_not_followed(body: str) -> None:
    assert read(body).open


def test_too_many_macros_are_not_followed() -> None:
    macros = "".join(f"#define M{n} M{n + 1}\n" for n in range(MANY))
    assert read("use(args[0]); M0;", macros).open == "its file defines too many macros"


@pytest.mark.parametrize("call", ["last(", "elsewhere(", "object.method(", "*item("])
def test_nested_calls_are_followed_once(call: str) -> None:
    assert effects(f"{A} float x = {call * 12}a[3]{')' * 12};")[0] in ("read", "lost")

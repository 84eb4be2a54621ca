"""Rules that compare tasks with the code of their kernels: what is found, and what looks wrong and is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.examples import SOURCE, example_files
from opschema_rules.pypto.pack import PACK

ADD = "program/kernels/aiv/add.cpp"
NAMES = ("a", "b", "c", "d")


def tensor(index: int) -> str:
    name = NAMES[index]
    return (
        f"auto *{name}_t = reinterpret_cast<__gm__ ChipTensor *>(args[{index}]);"
        f"GlobalTensor<float, S, S> {name}(reinterpret_cast<__gm__ float *>({name}_t->buffer.addr));"
    )


LOADS = "".join(f"{tensor(index)} TLOAD(tile, {NAMES[index]});" for index in (0, 1))
SOUND = f"{LOADS} {tensor(2)} TSTORE(c, tile);"


def kernel(body: str) -> str:
    return f'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{\n{body}\n}}\n'


def found(
    body: str, *codes: str, cpp: str = "", config: str = "", others: dict[str, str] | None = None
) -> list[tuple[str, str, str]]:
    """Code, severity and message of each finding of the program ``add``, whose kernel has this body."""
    fences = [("cpp", cpp)] if cpp else []
    fences += [("python", config)] if config else []
    files = {**example_files(fences), ADD: kernel(body), **(others or {})}
    linted = lint_files([PACK], files, codes or ("PTO116", "PTO117", "PTO118", "PTO119", "PTO120"))
    return [(item.code, item.severity.value, item.message) for item in linted.diagnostics]


def payload(*lines: str) -> str:
    arguments = "".join(f"const ChipTensor &{name} = orch_args.tensor({at}).ref();\n" for at, name in enumerate("abc"))
    return f"{arguments}CoreTaskArgs p;\n" + "".join(f"{line}\n" for line in lines) + "rt_submit_aiv_task(0, p);\n"


IN, OUT = "p.add_input(a, b);", "p.add_output(c);"


LEFT, PASSED = "arguments: it reads the value that an earlier task left", "and this task passes a tensor there"


def test_a_kernel_that_does_what_its_task_says() -> None:
    assert found(SOUND) == []


@pytest.mark.parametrize(
    ("body", "lines", "message"),
    [
        (f"{SOUND} use(args[3]);", (IN, OUT), f"uses `args[3]`, and this task passes 3 {LEFT}"),
        (SOUND, (IN,), f"uses `args[2]`, and this task passes 2 {LEFT}"),
        (SOUND, (IN, "p.add_scalar(1);"), "takes `args[2]` as a tensor, and this task passes a scalar there"),
        (f"{LOADS} int n = static_cast<int>(args[2]);", (IN, OUT), f"takes `args[2]` as a number, {PASSED}"),
        (f"{LOADS} float x = args[2];", (IN, OUT), f"takes `args[2]` as a number, {PASSED}"),
    ],
)  # fmt: skip
def test_an_argument_that_is_not_passed(body: str, lines: tuple[str, ...], message: str) -> None:
    assert found(body, "PTO116", cpp=payload(*lines)) == [("PTO116", "error", f"kernel 0 (`add`) {message}")]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (f"{SOUND} use(args[3]);", (IN, OUT, "if (x) p.add_scalar(1);")),
        (f"{SOUND} use(args[3]);", (IN, OUT, "for (int i = 0; i < n; i++) p.add_scalar(i);")),
        (f"{SOUND} use(args[3]);", (IN, OUT, "fill(p);")),
        (f"{SOUND} auto *c = reinterpret_cast<__gm__ CommContext *>(args[3]);", (IN, OUT, "p.add_scalar(1);")),
        (f"{LOADS} uint64_t at = static_cast<uint64_t>(args[2]);", (IN, OUT)),
        (f"{SOUND} auto *context = reinterpret_cast<__gm__ LocalContext *>(args[48]);", (IN, OUT)),
        (f"{SOUND} // args[7]", (IN, OUT)),
        ("for (int i = 0; i < 9; i++) use(args[i]);", (IN, OUT)),
    ],
)
def test_an_argument_that_may_be_passed(body: str, lines: tuple[str, ...]) -> None:
    assert found(body, "PTO116", cpp=payload(*lines)) == []


SCALAR = (IN, OUT, "p.add_scalar(1);")
MOVED = [
    "auto *q = args; use((__gm__ ChipTensor *)*q++); use((__gm__ ChipTensor *)*q++); q++; int n = (int)*q;",
    "auto *q = args; use((__gm__ ChipTensor *)*q); ++q; ++q; int n = (int)*++q;",
    "use((__gm__ ChipTensor *)*args++); args++; args++; int n = (int)*args;",
    "use((__gm__ ChipTensor *)args[0]); args += 3; int n = (int)args[0];",
    "auto *q = args; q = q + 3; int n = (int)q[0];",
    "const __gm__ int64_t *q = args + 3; int n = (int)q[0];",
    "int n = (int)*(args + 3);",
    "auto *q = args; use((__gm__ ChipTensor *)q[0]); q = numbers; int n = (int)q[0];",
    "auto *q = args; advance(&q, 3); int n = (int)q[0];",
    "auto *q = args; for (int i = 0; i < 3; i++) q++; int n = (int)q[0];",
]


@pytest.mark.parametrize("body", MOVED)
def test_an_argument_at_a_pointer_that_is_moved(body: str) -> None:
    assert found(body, "PTO116", cpp=payload(*SCALAR)) == []


def test_an_argument_at_a_pointer_that_a_function_moves() -> None:
    following = "static int64_t next(__gm__ int64_t *&q) { return *q++; }\n"
    body = "auto *q = args; use((__gm__ ChipTensor *)next(q)); next(q); next(q); int n = (int)next(q);"
    assert found("", "PTO116", cpp=payload(*SCALAR), others={ADD: following + kernel(body)}) == []


@pytest.mark.parametrize(
    "body",
    ["auto *q = args; int n = (int)q[0];", "int n = (int)*args;", "auto *q = &args[3]; q++; int n = (int)args[0];"],
)
def test_an_argument_at_a_pointer_that_stays(body: str) -> None:
    message = f"kernel 0 (`add`) takes `args[0]` as a number, {PASSED}"
    assert found(body, "PTO116", cpp=payload(*SCALAR)) == [("PTO116", "error", message)]


CONDITIONAL = [
    "if (n) use(args[3]);",
    "if (n) { use(x); } else { use(args[3]); }",
    "if (n) use(x); else use(args[3]);",
    "if (args[0]) for (int i = 0; i < 2; i++) use(args[3]);",
    "if (n) while (m) { use(args[3]); }",
    "for (int i = 0; i < 2; i++) { if (i > n) { use(args[3]); } }",
    "switch (n) { case 1: use(args[3]); }",
    "int64_t x = n ? args[3] : 0;",
    "bool x = n > 0 && args[3] > 0;",
    "auto f = [&]() { use(args[3]); };",
    "#ifdef WITH_BIAS\nuse(args[3]);\n#endif\n",
    "use(x,\n#if BIAS\nargs[3],\n#endif\ny);",
    "if (n) bias(args);",
    "#ifdef WITH_BIAS\nbias(args);\n#endif\n",
]
UNCONDITIONAL = [
    "if (args[3]) use(x);",
    "if (n) { use(x); } use(args[3]);",
    "for (int i = 0; i < 2; i++) { use(args[3]); }",
    "while (n) { use(args[3]); }",
    "{ use(args[3]); }",
    "bool x = args[3] > 0 && n > 0;",
    "bool x = (n > 0 && m > 0) + args[3];",
    "#ifdef WITH_BIAS\nuse(x);\n#endif\nuse(args[3]);",
    "if (n) bias(args); bias(args);",
    "#if defined(__DAV_VEC__)\nuse(args[3]);\n#endif\n",
]
BIAS = "static void bias(__gm__ int64_t *args) { use(args[3]); }\n"


@pytest.mark.parametrize("body", CONDITIONAL)
def test_an_argument_that_is_only_used_under_a_condition(body: str) -> None:
    assert found("", "PTO116", cpp=payload(IN, OUT), others={ADD: BIAS + kernel(f"{SOUND}\n{body}")}) == []


@pytest.mark.parametrize("body", UNCONDITIONAL)
def test_an_argument_that_is_used_beside_a_condition(body: str) -> None:
    others = {ADD: BIAS + kernel(f"{SOUND}\n{body}")}
    message = f"kernel 0 (`add`) uses `args[3]`, and this task passes 3 {LEFT}"
    assert found("", "PTO116", cpp=payload(IN, OUT), others=others) == [("PTO116", "error", message)]


def test_a_condition_of_the_whole_entry_holds() -> None:
    code = f"#ifdef DEVICE\n{kernel(f'{SOUND} use(args[3]);')}#endif\n"
    assert len(found("", "PTO116", cpp=payload(IN, OUT), others={ADD: code})) == 1


def test_a_kernel_that_writes_an_input() -> None:
    written = found(f"{SOUND} TSTORE(b, tile);", "PTO117")
    assert written == [
        (
            "PTO117",
            "warning",
            "tensor 1 of the task is added as `IN`, and kernel 0 (`add`) writes it; no task waits for that: use `add_inout`",
        )
    ]


MARK = "static void mark(__gm__ int64_t *args) { " + tensor(1) + " TSTORE(b, tile); }\n"


@pytest.mark.parametrize(
    "body",
    [
        "#ifdef DEBUG\nTSTORE(b, tile);\n#endif\n",
        "#ifdef DEBUG\nmark(args);\n#endif\n",
        "#if DEBUG\nTSTORE(b, tile);\n#else\nuse(n);\n#endif\n",
    ],
)
def test_an_input_that_a_kernel_may_not_write(body: str) -> None:
    assert found("", "PTO117", others={ADD: MARK + kernel(f"{SOUND}\n{body}")}) == []


@pytest.mark.parametrize(
    "body",
    [
        "#ifdef DEBUG\nTSTORE(b, tile);\n#endif\nTSTORE(b, tile);",
        "#ifdef DEBUG\nmark(args);\n#endif\nmark(args);",
        "#if defined(__DAV_VEC__)\nmark(args);\n#endif\n",
        "if (n) mark(args);",
    ],
)
def test_an_input_that_a_kernel_writes_beside_a_condition(body: str) -> None:
    assert len(found("", "PTO117", others={ADD: MARK + kernel(f"{SOUND}\n{body}")})) == 1


ANOTHER = [
    "b = other; TSTORE(b, tile);",
    "TASSIGN(b, other); TSTORE(b, tile);",
    "{ GlobalTensor<float, S, S> b(ws); TSTORE(b, tile); }",
    "for (int i = 0; i < 2; i++) { GlobalTensor<float, S, S> b(ws + i); TSTORE(b, tile); }",
    "for (auto b : list) { TSTORE(b, tile); }",
    "auto f = [&](auto &b) { TSTORE(b, tile); }; f(z);",
    "auto f = [&](int i, GlobalTensor<float, S, S> &b) -> void { TSTORE(b, tile); }; f(0, z);",
    "auto *p = b_t->data_as<float>(); p = ub; p[0] = 1;",
    "auto *p = b_t->data_as<float>(); { float *p = ub, x = 1; p[0] = x; }",
    "auto *p = b_t->data_as<float>(); if (p[0] > 0) { p = ub; } p[0] = 1;",
]


@pytest.mark.parametrize("body", ANOTHER)
def test_a_variable_of_the_same_name_is_another(body: str) -> None:
    assert found(f"{SOUND} {tensor(1)} {body}", "PTO117") == []


@pytest.mark.parametrize(
    "body",
    [
        "{ int n = 0; TSTORE(b, tile); }",
        "auto *p = b_t->data_as<float>(); auto *q = p; q = p + 4; q[0] = 1;",
        "auto *p = b_t->data_as<float>(); p += 4; p[0] = 1;",
        "auto f = [&](int i) { TSTORE(b, tile); }; f(0);",
    ],
)
def test_a_variable_that_stays_the_same(body: str) -> None:
    assert len(found(f"{SOUND} {tensor(1)} {body}", "PTO117")) == 1


def test_an_output_that_is_only_read() -> None:
    read = found(f"{LOADS} {tensor(2)} TLOAD(tile, c);", "PTO117")
    assert [message for _, _, message in read] == [
        "tensor 2 of the task is added as `OUT`, and kernel 0 (`add`) only reads it: use `add_input`"
    ]


def test_an_output_that_no_code_writes() -> None:
    unwritten = (
        "tensor 2 of the task is added as `OUT`, and no code of kernel 0 (`add`) writes it: its memory stays undefined"
    )
    assert [message for _, _, message in found(f"{LOADS} {tensor(2)}", "PTO117")] == [unwritten]
    assert [message for _, _, message in found(LOADS, "PTO117")] == [unwritten]


READS_OF_OLD = [
    "TLOAD(tile, c); TSTORE(c, tile);",
    "for (int k = 0; k < 4; k++) { if (k > 0) TLOAD(acc, c); TSTORE(c, acc); }",
    "for (int k = 0; k < 4; k++) { if (k) TLOAD(acc, c); else TEXPANDS(acc, 0.f); TSTORE(c, acc); }",
    "auto *p = c_t->data_as<float>(); for (int i = 0; i < 8; i++) p[i] = i > 0 ? p[i - 1] + 1 : 0;",
    "int i = 0; do { if (i) TLOAD(acc, c); TSTORE(c, acc); } while (++i < 8);",
    "for (int s = 0; s < 2; s++) switch (s) { case 1: TLOAD(tile, c); break; case 0: TSTORE(c, tile); }",
    "goto first; last: TLOAD(tile, c); return; first: TSTORE(c, tile); goto last;",
    "auto load = [&]() { TLOAD(tile, c); }; TSTORE(c, tile); load();",
    "TSTORE(c, tile); load(c);",
    "if (get_block_idx() == 1) { SyncAll(); TLOAD(tile, c); } else { TSTORE(c, tile); SyncAll(); }",
]


@pytest.mark.parametrize("body", READS_OF_OLD)
def test_an_output_that_is_read_and_written(body: str) -> None:
    helper = "static void load(GlobalTensor<float, S, S> &g) { TLOAD(tile, g); }\n"
    whole = {ADD: helper + kernel(f"{LOADS} {tensor(2)} {body}")}
    assert found("", "PTO117", others=whole) == []


ADDRESS = (IN, OUT, "p.add_scalar(x);")
UNPACKED = "struct Unpacked { int64_t a, b, c; __gm__ float *p; };\n"
UNSEEN_WRITES = [
    ("union { int64_t i; __gm__ float *p; } u; u.i = args[3]; u.p[0] = 1;", ADDRESS, ""),
    ("union { int64_t i; __gm__ float *p; } u; u.i = args[3]; *u.p = 1;", ADDRESS, ""),
    ("__gm__ float *q; memcpy(&q, &args[3], 8); q[0] = 1;", ADDRESS, ""),
    ("auto *s = reinterpret_cast<__gm__ Unpacked *>(args); s->p[0] = 1;", ADDRESS, UNPACKED),
    ("Unpacked s = *(__gm__ Unpacked *)args; s.p[0] = 1;", ADDRESS, UNPACKED),
    ("put(args[3]);", ADDRESS, "static void put(uint64_t at) { *(__gm__ float *)at = 1; }\n"),
    ("g = args[3]; put();", ADDRESS, "static int64_t g; static void put() { *(__gm__ float *)g = 1; }\n"),
    ("auto put = [=]() { *(__gm__ float *)args[3] = 1; }; put();", ADDRESS, ""),
    ("int64_t all[1] = {args[3]}; *(__gm__ float *)all[0] = 1;", ADDRESS, ""),
    ("uint32_t low = args[3], high = args[3] >> 32; put((uint64_t)high << 32 | low);", ADDRESS, ""),
    ('uint64_t q = args[3]; asm volatile("st %0" :: "r"(q));', ADDRESS, ""),
    ("S::at = args[3]; S::store();", ADDRESS, ""),
    ("int n = static_cast<int>(args[3]);", (IN, OUT, "p.add_scalars(values, 2);"), ""),
    ("auto *p = (__gm__ float *)args[3]; p[0] = 1;", (IN, OUT, "p.add_scalar(c.buffer.addr);"), ""),
    ("EPILOGUE;", (IN, OUT), '#include "epilogue.h"\n'),
    ("STORE_OUT(2, tile);", (IN, OUT), '#include "../common/epilogue.hpp"\n'),
    ("EPILOGUE;", (IN, OUT), "#include <common/epilogue.h>\n"),
    ("EPILOGUE;", (IN, OUT), "#define HEADER <epilogue.h>\n#include HEADER\n"),
    ("set(*c_t->data_as<float>());", (IN, OUT), "static void set(__gm__ float &x) { x = 1.f; }\n"),
    ("auto *o = c_t->data_as<float>(); set(o[1]);", (IN, OUT), "static void set(__gm__ float &x) { x = 1.f; }\n"),
    ("auto *o = c_t->data_as<float>(); auto &e = o[1]; e = 1.f;", (IN, OUT), ""),
    ("auto *o = c_t->data_as<float>(); auto &&e = *o; e += 1.f;", (IN, OUT), ""),
    ("args++; args++; auto *t = (__gm__ ChipTensor *)*args; t->data_as<float>()[0] = 1;", (IN, OUT), ""),
]


@pytest.mark.parametrize(("body", "lines", "before"), UNSEEN_WRITES)
@pytest.mark.parametrize("reads", ["", "TLOAD(tile, c);"])
def test_an_output_that_may_be_written(body: str, lines: tuple[str, ...], before: str, reads: str) -> None:
    whole = {ADD: before + kernel(f"{LOADS} {tensor(2)} {reads} {body}")}
    assert found("", "PTO117", cpp=payload(*lines), others=whole) == []


BY_NUMBER = [
    (body.replace("args[3]", "args[2]"), before) for body, lines, before in UNSEEN_WRITES[:9] if lines == ADDRESS
]


@pytest.mark.parametrize(("body", "before"), BY_NUMBER)
def test_an_output_whose_address_is_a_number(body: str, before: str) -> None:
    assert found("", "PTO117", others={ADD: before + kernel(f"{LOADS} {body}")}) == []


def test_headers_of_the_runtime_hide_no_writes() -> None:
    headers = '#include <cstdint>\n#include <pto/pto-inst.hpp>\n#include "tensor.h"\n#include "intrinsic.h"\n'
    assert len(found("", "PTO117", others={ADD: headers + kernel(LOADS)})) == 1


def test_an_output_that_only_orders_tasks() -> None:
    assert found(LOADS, "PTO117", cpp=payload(IN, "p.add_output(TensorCreateInfo(shape, 1, DataType::INT32));")) == []


@pytest.mark.parametrize(
    "body",
    [
        f"{SOUND} elsewhere(b);",
        f"{SOUND} GlobalTensor<float, S, S> x = n ? b : c; TSTORE(x, tile);",
        f"#ifdef __DAV_CUBE__\nTSTORE(b, tile);\n#endif\n{SOUND}",
        f"{SOUND} {{ GlobalTensor<float, S, S> b(ub); TLOAD(tile, b); }}",
        f"{LOADS} {tensor(2)} elsewhere(c);",
    ],
)
def test_what_a_kernel_does_is_not_known_or_right(body: str) -> None:
    assert found(body, "PTO117") == []


def test_an_input_that_is_added_with_inout_is_not_wrong() -> None:
    assert found(f"{LOADS} {tensor(2)} TLOAD(tile, c);", cpp=payload(IN, "p.add_inout(c);")) == []


def test_the_cores_of_a_task_are_judged_together() -> None:
    config = """\
KERNELS = [
    {"func_id": 0, "source": str(_ROOT_DIR / "kernels" / "aiv" / "add.cpp"), "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    {"func_id": 1, "source": str(_ROOT_DIR / "kernels" / "aic" / "cube.cpp"), "core_type": "aic", "signature": [D.IN, D.IN, D.OUT]},
]
"""
    cpp = payload(IN, OUT).replace("rt_submit_aiv_task(0, p);", "MixedKernels m = {1, 0, 0};\nrt_submit_task(m, p);")
    cube = "program/kernels/aic/cube.cpp"
    reads = f"{LOADS} {tensor(2)} TLOAD(tile, c);"
    assert found(reads, cpp=cpp, config=config, others={cube: kernel(SOUND)}) == []
    both = found(reads, "PTO117", cpp=cpp, config=config, others={cube: kernel(reads)})
    assert len(both) == 1
    assert "only read it" in both[0][2]


def test_a_scalar_that_no_code_uses() -> None:
    assert found(SOUND, cpp=payload(IN, OUT, "p.add_scalar(1, 2);")) == [
        ("PTO118", "info", "2 arguments of kernel 0 (`add`) are not used by any code: `args[3]`, `args[4]`")
    ]


@pytest.mark.parametrize(
    "lines",
    [
        (IN, "p.add_output(info);"),
        ("CoreTaskArgs q; q.add_output(b); rt_submit_aiv_task(0, q);", IN, OUT),
        ("p.add_input(a);", "p.add_inout(b);", OUT),
    ],
)
def test_a_tensor_that_may_only_order_tasks(lines: tuple[str, ...]) -> None:
    body = f"{tensor(0)} TLOAD(tile, a); {tensor(2)} TSTORE(c, tile);"
    assert [code for code, _, _ in found(body, "PTO118", cpp=payload(*lines))] == ["PTO118"] * (lines[0] == IN)


def test_a_stub_shows_nothing() -> None:
    assert found("(void)args;", cpp=payload(IN, OUT, "p.add_scalar(1);")) == []


# The orchestration's own tensors


OUTPUTS = 'ORCHESTRATION = {"source": str(_ROOT_DIR / "orchestration" / "main.cpp"), "signature": [D.IN, D.IN, D.OUT], "function_name": "aicpu_orchestration_entry"}\n'  # noqa: E501


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"{LOADS} {tensor(2)} TLOAD(tile, c); TSTORE(c, tile);", 1),
        (SOUND, 0),
        (f"{LOADS} {tensor(2)} TSTORE(c, tile); TLOAD(tile, c);", 0),
        (f"{LOADS} {tensor(2)} elsewhere(c);", 0),
        ("(void)args;", 1),
        (f"{LOADS} {tensor(2)} TLOAD(tile, c);", 1),
        *((f"{LOADS} {tensor(2)} {body}", 0) for body in READS_OF_OLD[1:]),
    ],
)
def test_an_output_is_read_if_its_kernel_reads_it(body: str, count: int) -> None:
    cpp = payload(IN, "p.add_inout(c);")
    whole = {ADD: f"template <typename G> static void load(G &g) {{ TLOAD(tile, g); }}\n{kernel(body)}"}
    assert len(found("", "PTO106", cpp=cpp, config=OUTPUTS, others=whole)) == count


@pytest.mark.parametrize(
    ("declaration", "advised"),
    [
        ("void add_output(const TensorCreateInfo &ci) {}", False),
        ("void add_output(const TensorCreateInfo &ci) {}\n    void add_output(const Tensor &t) {}", True),
        ("void add_output(Args &&...args) {}", True),
        ("", True),
    ],
)
def test_an_output_is_advised_where_the_runtime_takes_tensors(declaration: str, advised: bool) -> None:
    types = {"src/runtime/tensormap_and_ringbuffer/runtime/pto_types.h": f"struct Arg {{\n    {declaration}\n}};\n"}
    (finding,) = found("(void)args;", "PTO106", cpp=payload(IN, "p.add_inout(c);"), config=OUTPUTS, others=types)
    assert ("`add_output`" in finding[2]) is advised


@pytest.mark.parametrize(("body", "count"), [(SOUND, 0), (f"{LOADS} {tensor(2)} TLOAD(tile, c); TSTORE(c, tile);", 1)])
def test_a_direction_that_the_kernel_shows_is_right(body: str, count: int) -> None:
    assert len(found(body, "PTO103", cpp=payload(IN, "p.add_inout(c);"))) == count


PIPED = f"{LOADS} {tensor(2)} auto p = TPipe<0, Direction::DIR_C2V, 64, 8>(c.data(), 0, 0); TPUSH<P, T>(p, tile); TPOP<P, T>(p, t);"
SENT = f"{LOADS} {tensor(2)} pto::comm::TPUT(c, a, tile);"
RECEIVED = f"{LOADS} {tensor(2)} pto::comm::TPUT(c, a, tile); TLOAD(tile, c);"


@pytest.mark.parametrize("body", [PIPED, SENT, RECEIVED])
@pytest.mark.parametrize("added", ["p.add_input(c);", "p.add_output(c);", "p.add_inout(c);"])
def test_no_direction_is_wrong_for_memory_that_is_exchanged(body: str, added: str) -> None:
    assert found(body, "PTO117", cpp=payload(IN, added)) == []


def test_the_other_side_of_an_exchange_has_a_direction() -> None:
    got = f"{LOADS} {tensor(2)} pto::comm::TGET(c, a, tile);"
    ((_, _, message),) = found(got, "PTO117", cpp=payload(IN, "p.add_input(c);"))
    assert message == (
        "tensor 2 of the task is added as `IN`, and kernel 0 (`add`) writes it; no task waits for that: use `add_output`"
    )
    sent = f"{tensor(0)} {tensor(2)} {tensor(1)} pto::comm::TPUT(a, c, tile); TLOAD(tile, b);"
    ((_, _, message),) = found(sent, "PTO117", cpp=payload(IN, OUT))
    assert message == "tensor 2 of the task is added as `OUT`, and kernel 0 (`add`) only reads it: use `add_input`"


def test_a_store_to_the_device_writes() -> None:
    body = f"{LOADS} {tensor(2)} st_dev(1, c.data(), 0);"
    assert found(body, "PTO117", cpp=payload(IN, OUT)) == []


# Ids and counts


def test_a_kernel_that_no_task_submits() -> None:
    config = """\
KERNELS = [
    {"func_id": 0, "name": "add", "source": "add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
    {"func_id": 1, "name": "mul", "source": "mul.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},
]
"""
    unused = ("PTO119", "info", "no task submits kernel 1 (`mul`)")
    assert found(SOUND, "PTO119", config=config) == [unused]
    assert found(SOUND, "PTO119", config=config, cpp=payload(IN, OUT) + "rt_submit_aiv_task(n, p);\n") == []
    assert found(SOUND, "PTO119", config=config, cpp=payload(IN, OUT) + "elsewhere::rt_submit_it(p);\n") == []


def test_a_number_in_a_shared_orchestration() -> None:
    other = "other/kernel_config.py"
    files = example_files([("cpp", "if (x) {\n" + payload(IN, OUT).replace("(0, p)", "(7, p)") + "}\n")])
    shared = files["program/kernel_config.py"].replace(
        '_ROOT_DIR / "orchestration"', '_ROOT_DIR.parent / "program" / "orchestration"'
    )
    alone = [item.severity.value for item in lint_files([PACK], files, ("PTO108",)).diagnostics]
    both = lint_files([PACK], {**files, other: shared}, ("PTO108",)).diagnostics
    assert alone == ["warning"]
    assert [(item.place.path, item.severity.value) for item in both] == [(SOURCE, "info")]


@pytest.mark.parametrize(
    ("cpp", "count"),
    [
        (payload(IN), 1),
        (payload(IN, OUT), 0),
        (payload(IN, "if (x) p.add_output(c);"), 0),
        (payload(IN, "fill(p);"), 0),
        (payload(IN) + "rt_submit_aiv_task(n, p);\n", 0),
    ],
)
def test_a_signature_that_is_wider_than_any_task(cpp: str, count: int) -> None:
    assert [code for code, _, _ in found("(void)args;", "PTO120", cpp=cpp)] == ["PTO120"] * count

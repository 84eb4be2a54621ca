"""The functions that the runtime calls, and the tensors that an orchestration takes."""

from __future__ import annotations

import time

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.pack import PACK

CONFIG = """\
ORCHESTRATION = {
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "%s",
    "signature": [%s],
}
"""
EXECUTOR = "src/a5/runtime/tensormap_and_ringbuffer/aicpu/aicpu_executor.cpp"
OLD = 'dlsym(handle, "aicpu_orchestration_entry");\n'
NEW = 'constexpr const char *DEFAULT_ORCH_ENTRY_SYMBOL = "aicpu_orchestration_entry";\n'
SOURCE = "program/orchestration/main.cpp"


def found(name: str, signature: str, more: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    files = {**PACK.example([("python", CONFIG % (name, signature))]), **(more or {})}
    linted = lint_files([PACK], files, ["PTO113", "PTO114"])
    return [(item.code, linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize("more", [{}, {EXECUTOR: NEW}])
def test_a_function_that_is_not_there(more: dict[str, str]) -> None:
    message = f"`{SOURCE}` has no function `aicpu_orchestration_enter`; did you mean `aicpu_orchestration_entry`?"
    assert found("aicpu_orchestration_enter", "D.IN, D.IN, D.OUT", more) == [
        ("PTO113", '"aicpu_orchestration_enter"', message)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {EXECUTOR: OLD},
        {SOURCE: '#include "shared.inc"\nvoid other(const ChipTaskArgs &orch_args) {}\n'},
        {
            SOURCE: "#define ENTRY(name) void name(const ChipTaskArgs &a) {}\nENTRY(run)\nvoid other(const CArgs &b) {}\n"
        },
        {SOURCE: "// generated\n"},
    ],
)
def test_what_may_be_there(more: dict[str, str]) -> None:
    assert found("run", "D.IN, D.IN, D.OUT", more) == []


def test_a_signature_that_is_too_short_is_told_where_it_stands() -> None:
    message = "the signature has 2 entries, and the orchestration takes tensor 2: declare it"
    assert found("aicpu_orchestration_entry", "D.IN, D.IN") == [("PTO114", "[D.IN, D.IN]", message)]


TAKEN = "use(orch_args.tensor(3));"


def beyond(body: str, before: str = "") -> list[str]:
    files = PACK.example([("cpp", body)])
    linted = lint_files([PACK], {**files, SOURCE: before + files[SOURCE]}, ["PTO114"])
    return [item.message for item in linted.diagnostics]


@pytest.mark.parametrize(
    "body",
    [
        f"if (orch_args.tensor_count() > 3) {{ {TAKEN} }}",
        f"if (orch_args.tensor_count() < 4) return; {TAKEN}",
        "for (int i = 0; i < 5; i++) { if (i >= orch_args.tensor_count()) break; use(orch_args.tensor(i)); }",
        f"#ifdef WITH_BIAS\n{TAKEN}\n#endif",
        f"if constexpr (kBias) {{ {TAKEN} }}",
        f"if (kBias) {TAKEN}",
        "auto &x = kBias ? orch_args.tensor(3) : orch_args.tensor(0);",
        f"switch (n) {{ case 1: {TAKEN} }}",
        f"CHECK_COUNT(orch_args, 4); {TAKEN}",
    ],
)
def test_a_tensor_that_is_taken_under_a_condition(body: str) -> None:
    assert beyond(f"{body}\n", "constexpr bool kBias = false;\n") == []


@pytest.mark.parametrize(
    "body",
    [
        TAKEN,
        f"if (n) {{ use(orch_args.tensor(0)); }} {TAKEN}",
        "for (int i = 0; i < 4; i++) { use(orch_args.tensor(i)); }",
        f"#ifdef WITH_BIAS\nuse(n);\n#endif\n{TAKEN}",
        f"if (n) {{ {TAKEN} }} {TAKEN}",
    ],
)
def test_a_tensor_that_is_taken_beside_a_condition(body: str) -> None:
    message = "the signature has 3 entries, and the orchestration takes tensor 3: declare it"
    assert beyond(f"{body}\n") == [message]


@pytest.mark.parametrize(
    ("after", "codes"),
    [
        ("ORCHESTRATION.update({'signature': [D.IN, D.IN, D.OUT]})\n", []),
        ("also = ORCHESTRATION\nalso |= common\n", []),
        ("import common\ncommon.finish(KERNELS, ORCHESTRATION)\n", []),
        ("ORCHESTRATION['note'] = [D.IN, D.IN, D.OUT]\n", ["PTO113", "PTO114"]),
    ],
)
def test_an_orchestration_that_other_code_may_change_is_not_known(after: str, codes: list[str]) -> None:
    linted = [
        lint_files([PACK], PACK.example([("python", CONFIG % names + after)]), ["PTO113", "PTO114"]).codes()
        for names in (("aicpu_orchestration_enter", "D.IN"), ("aicpu_orchestration_entry", "D.IN"))
    ]
    assert [code for found in linted for code in found] == codes


@pytest.mark.parametrize("signature", ["D.IN, D.IN, D.OUT, D.OUT", "*REST", ""])
def test_a_signature_that_may_be_long_enough(signature: str) -> None:
    assert found("aicpu_orchestration_entry", signature) == []


API = "src/a5/runtime/host_build_graph/orchestration/pto_orchestration_api.h"
BODY = "void aicpu_orchestration_entry(const ChipTaskArgs &orch_args) {}\n"
DECLARED = 'extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &orch_args);\n'


def entry(text: str, more: dict[str, str] | None = None) -> list[tuple[str, str, str]]:
    return found("aicpu_orchestration_entry", "D.IN", {SOURCE: text, **(more or {})})


def test_a_function_that_is_not_exported() -> None:
    message = (
        '`aicpu_orchestration_entry` is defined without `extern "C"`, so that the runtime does not find it by its name'
    )
    text = f'/* extern "C" {{ */\n#include <cstdint>\n#include "pto_orchestration_api.h"\nnamespace program {{\n%s{BODY}}}\n'
    visible = '__attribute__((visibility("default")))'
    before_it = "enum { ADD, MUL };\nstatic int run() {\n    return ADD;\n}\n"
    for before in ("", "static inline ", f"{visible} ", f"{visible}\n", before_it):
        for more in ({}, {API: "// aicpu_orchestration_entry\nint turns;\n"}):
            assert entry(text % before, more) == [("PTO113", "aicpu_orchestration_entry", message)]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (f'extern "C" {{\n{BODY}}}\n', {}),
        (f'extern "C" {BODY}', {}),
        (f'#define EXPORT extern "C"\nEXPORT {BODY}', {}),
        (f'#include "program.h"\n{BODY}', {"include/program.h": DECLARED}),
        (f'#include "pto_program.h"\n{BODY}', {"include/pto_program.h": DECLARED}),
        (f'#include "api.h"\nORCH_API {BODY}', {"include/api.h": '#define ORCH_API extern "C"\n'}),
        (f'#include "api.h"\nBEGIN_C\n{BODY}END_C\n', {"include/api.h": '#define BEGIN_C extern "C" {\n'}),
        (f'#include "pto_orchestration_api.h"\nPTO_EXPORT {BODY}', {}),
        (f'#include "pto_orchestration_api.h"\nBEGIN_C\nstatic int turns;\n{BODY}END_C\n', {}),
        (f'#include "pto_orchestration_api.h"\nBEGIN_C static int turns;\n{BODY}END_C\n', {}),
        (f'#include "pto_orchestration_api.h"\nEXPORT(aicpu)\nstatic int turns;\n{BODY}', {}),
        (f"#include <program.h>\n{BODY}", {"include/program.h": DECLARED}),
        (f"#include PROGRAM\n{BODY}", {"include/program.h": DECLARED}),
        (f'#include "a.h"\n{BODY}', {"include/a.h": '#include "b.h"\n', "include/b.h": DECLARED}),
        (f'#define LINK(x) extern x\nLINK("C") {BODY}', {}),
        (f"__attribute__((visibility)) {BODY}", {}),
        (f'__attribute__((visibility("hidden"))) {BODY}', {}),
        (f'__attribute__((alias("entry"))) {BODY}', {}),
        (f'__attribute__((visibility("default"), alias("entry"))) {BODY}', {}),
        (f"#include_next <program.h>\n{BODY}", {}),
        (f'#import "pto_orchestration_api.h"\n{BODY}', {}),
        (f'#include "pto_orchestration_api.h"\n{BODY}', {"include/pto_orchestration_api.h": "int turns;\n"}),
        (f'#include "pto_orchestration_api.h"\n{BODY}', {API: DECLARED}),
        (f'#include "tensor.h"\n{BODY}', {"program/tensor.h": '#include "declarations.h"\n'}),
        (f'#include "pto_begin.h"\n{BODY}#include "pto_end.h"\n', {"include/pto_begin.h": 'extern "C" {\n'}),
        (f'#include "pto_begin.h"\n{BODY}#include "pto_end.h"\n', {}),
        (f"begin_c() {{\n{BODY}}}\n", {}),
        (f'ext\\\nern "C" {BODY}', {}),
        (f"#ifdef HOST\n{BODY}#else\nint turns;\n#endif\n", {}),
        (f"#if 0\n{BODY}#endif\n", {}),
        (f"struct Entries {{\n{BODY}}};\n", {}),
        (f'_Pragma("redefine_extname a b")\n{BODY}', {}),
        (f"#pragma redefine_extname aicpu_orchestration_entry entry\n{BODY}", {}),
        ('void run(const CArgs &a) asm("aicpu_orchestration_entry");\nvoid run(const CArgs &a) {}\n', {}),
    ],
)
def test_a_function_that_is_or_may_be_exported(text: str, more: dict[str, str]) -> None:
    assert entry(text, more) == []


KERNEL = "program/kernels/aiv/add.cpp"
OTHER_NAME = '// kernel_entry\nextern "C" __aicore__ void add(__gm__ int64_t *args) {}\n'
DUMP = {"src/common/platform/include/aicpu/args_dump_aicpu.h": "// the widest signature; callable.sig_count()\n"}


def kernel(text: str, runtime: dict[str, str] = DUMP) -> list[tuple[str, str]]:
    linted = lint_files([PACK], {**PACK.example([]), KERNEL: text, **runtime}, ["PTO123"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_a_kernel_under_another_name() -> None:
    message = f"`{KERNEL}` defines `add()`; kernel 0 (`add`) is called by the name `kernel_entry()`"
    includes = '#include <cstdint>\n#include <pto/pto-inst.hpp>\n#include "tensor.h"\nusing namespace pto;\n'
    helper = "#ifndef __gm__\n#define __gm__\n#endif\nstatic void run() {\n    TLOAD(a, b);\n}\n"
    for text in (OTHER_NAME, includes + helper + OTHER_NAME, OTHER_NAME.replace("void", "__attribute__((weak)) void")):
        assert kernel(text) == [("add", message)]


@pytest.mark.parametrize("runtime", [{}, {EXECUTOR: OLD}, {EXECUTOR: NEW}])
def test_a_kernel_of_a_runtime_that_may_take_any_name(runtime: dict[str, str]) -> None:
    assert kernel(OTHER_NAME, runtime) == []


@pytest.mark.parametrize(
    "text",
    [
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {}\n',
        "#define KERNEL(name) void name(__gm__ int64_t *args)\nKERNEL(kernel_entry) {}\n",
        f'#include "add_impl.h"\n{OTHER_NAME}',
        "",
        f"#include <entry.hpp>\n{OTHER_NAME}",
        f'#define H "entry.h"\n#include H\n{OTHER_NAME}',
        f'{OTHER_NAME}#include "entry.inl"\n',
        "static void add(__gm__ int64_t *args) {}\n",
        "extern void add(__gm__ int64_t *args) {}\n",
        "template <> void add(__gm__ int64_t *args) {}\n",
        f'#define CAT(a, b) a##b\n{OTHER_NAME}extern "C" __aicore__ void CAT(kernel, _entry)(__gm__ int64_t *args) {{}}\n',
        f"#define entry(a) a##_entry\n{OTHER_NAME}void entry(kernel)(__gm__ int64_t *args) {{}}\n",
        f"#include <pto/pto-inst.hpp>\n{OTHER_NAME}PTO_KERNEL(add)\n",
        f"#include <pto/pto-inst.hpp>\n{OTHER_NAME}PTO_KERNEL(body)\n",
        f"#include <pto/pto-inst.hpp>\n{OTHER_NAME}PTO_KERNEL\n",
        f"{OTHER_NAME}static void run() {{ add(nullptr); }}\n",
        OTHER_NAME.replace("add", "KERNEL_NAME"),
    ],
)
def test_a_kernel_that_has_its_entry_or_may_have_it(text: str) -> None:
    assert kernel(text) == []


ENTRY = "__aicore__ void kernel_entry(__gm__ int64_t *args) {}\n"
HEADERS = '#include <cstdint>\n#include <pto/pto-inst.hpp>\n#include "tensor.h"\n'


DECLARES = 'extern "C" void kernel_entry(__gm__ int64_t *args);\n'


@pytest.mark.parametrize(
    "before", ["", "static ", "__attribute__((always_inline)) ", f"{HEADERS}inline ", "#define __aicore__ [aicore]\n"]
)
def test_an_entry_that_is_not_exported(before: str) -> None:
    message = '`kernel_entry()` of kernel 0 (`add`) is defined without `extern "C"`: it is compiled under another name'
    assert kernel(before + ENTRY) == [("kernel_entry", message)]
    assert kernel(f"namespace {{\n{before}{ENTRY}}}\n") == [("kernel_entry", message)]


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (f'extern "C" {ENTRY}', {}),
        (f'extern "C" {{\n{ENTRY}}}\n', {}),
        (f'extern "C" void kernel_entry(__gm__ int64_t *args);\n{ENTRY}', {}),
        (f'#define KERNEL extern "C"\nKERNEL {ENTRY}', {}),
        (f'#include "kernel_api.h"\n{ENTRY}', {}),
        (f'#include "pto_kernel.h"\n{ENTRY}', {}),
        (f'#include "tensor.h"\n{ENTRY}', {"program/kernels/aiv/tensor.h": '#include "declarations.h"\n'}),
        (f'#include "tensor.h"\n{ENTRY}', {"src/common/tensor.h": 'extern "C" void kernel_entry(__gm__ int64_t *);\n'}),
        (f"#include <pto/pto-inst.hpp>\n{ENTRY}", {"include/pto/pto-inst.hpp": '#include "declarations.h"\n'}),
        (
            f'#include "tensor.h"\n{ENTRY}',
            {"src/common/tensor.h": '#include "entries.h"\n', "src/common/entries.h": DECLARES},
        ),
        (f'#include "tensor.h"\n{ENTRY}', {"src/common/tensor.h": '#define __aicore__ extern "C" [aicore]\n'}),
        (f'#include "pto_begin.h"\n{ENTRY}#include "pto_end.h"\n', {"src/runtime/pto_begin.h": 'extern "C" {\n'}),
        (f"#include <pto/entries.h>\n{ENTRY}", {}),
        (f"#include <entries>\n{ENTRY}", {}),
        (f'#inc\\\nlude "entries.h"\n{ENTRY}', {}),
        (f'/* API */ #include "entries.h"\n{ENTRY}', {}),
        (f'# /* API */ include "entries.h"\n{ENTRY}', {}),
        (f"KERNEL_API {ENTRY}", {}),
        (f"kernel_api {ENTRY}", {}),
        (f"kernel_api(add) {ENTRY}", {}),
        (f"EXPORT({ENTRY.strip()})\n", {}),
        (f"BEGIN_C\n{ENTRY}END_C\n", {}),
        (f"BeginC\n{ENTRY}EndC\n", {}),
        (f"BeginC;\n{ENTRY}EndC;\n", {}),
        (f"begin_c(kernel);\n{ENTRY}", {}),
        (f"#define __aicore__ KERNEL_API [aicore]\n{ENTRY}", {}),
        (f"#define inline KERNEL_API\ninline {ENTRY}", {}),
        (f"static {ENTRY}#include <pto/kernel_main.inc>\n", {}),
        (f"begin_c() {{\n{ENTRY}}}\n", {}),
        (f"__global__ {ENTRY}", {}),
        (f"#define kernel_entry other\n{ENTRY}", {}),
        (f'void kernel_entry(__gm__ int64_t *args) asm("kernel_entry");\n{ENTRY}', {}),
        (f"template <int N>\n{ENTRY}", {}),
        ("void kernel_entry(int n) {}\n", {}),
        ("struct K {\n    static void run() { kernel_entry(nullptr); }\n};\n", {}),
        (f'const char *text = R"(\n;\n{ENTRY})";\n', {}),
    ],
)
def test_an_entry_that_is_or_may_be_exported(text: str, more: dict[str, str]) -> None:
    assert kernel(text, {**DUMP, **more}) == []


def test_an_entry_that_an_old_runtime_does_not_look_up() -> None:
    assert kernel(ENTRY, {}) == []


def test_many_kernels_and_headers_end_in_time() -> None:
    number = 600
    fields = '"core_type": "aiv", "signature": [D.IN]'
    kernels = "".join(f'    {{"func_id": {at}, "source": "kernels/k{at}.cpp", {fields}}},\n' for at in range(number))
    files = {
        "program/kernel_config.py": f"from simpler.task_interface import ArgDirection as D\nKERNELS = [\n{kernels}]\n"
    }
    files |= {f"program/kernels/k{at}.cpp": f'#include "tensor.h"\n{ENTRY}' for at in range(number)}
    files |= {f"src/a5/runtime/r{at}/tensor.h": "int turns;\n" * 200 for at in range(number)}
    start = time.process_time()
    assert len(lint_files([PACK], {**files, **DUMP}, ["PTO123"]).diagnostics) == number
    assert time.process_time() - start < 3


KERNEL_SOURCE = 'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {\n    use(args[0]);\n}\n'


def test_the_source_of_a_kernel() -> None:
    message = f"`{SOURCE}` is the source of a kernel: it has no function `aicpu_orchestration_entry`"
    (item,) = found("aicpu_orchestration_entry", "D.IN, D.IN, D.OUT", {SOURCE: KERNEL_SOURCE})
    assert (item[0], item[2]) == ("PTO113", message)


@pytest.mark.parametrize(
    "text",
    [
        KERNEL_SOURCE.replace("kernel_entry", "kernel"),
        f'#include "shared.h"\n{KERNEL_SOURCE}',
        f"#define MAIN aicpu_orchestration_entry\n{KERNEL_SOURCE}",
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args);\n',
    ],
)
def test_a_source_that_may_have_both(text: str) -> None:
    assert found("aicpu_orchestration_entry", "D.IN, D.IN, D.OUT", {SOURCE: text}) == []

"""Events of a kernel: each wait needs a set, and each set a wait."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.kernel_events import event_faults
from opschema_rules.pypto.pack import PACK
from tests.scaling import Work, check_linear

PATH = "program/kernels/aiv/add.cpp"
HEAD = '#include <pto/pto-inst.hpp>\n#include "pipe_sync.h"\n'
PIPES = "PIPE_MTE2, PIPE_V, EVENT_ID0"
SET, WAIT = f"set_flag({PIPES});", f"wait_flag({PIPES});"
HANGS = "kernel 0 (`add`) waits for `{}` here, and has {} for it, so that the core hangs"
STAYS = "kernel 0 (`add`) sets `{}` here, and has {} for it, so that the event stays set"


def found(body: str, before: str = "") -> list[tuple[str, str]]:
    files = PACK.example([])
    text = f'{HEAD}{before}extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {{\n{body}\n}}\n'
    linted = lint_files([PACK], {**files, PATH: text}, ["PTO132"])
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


def test_a_wait_for_another_event() -> None:
    other = PIPES.replace("0", "1")
    assert found(f"{SET}\nwait_flag({other});") == [
        (SET.rstrip(";"), STAYS.format(PIPES, "no `wait_flag()`")),
        (f"wait_flag({other})", HANGS.format(other, "no `set_flag()`")),
    ]


def test_a_call_more_in_a_block() -> None:
    assert found(f"{SET}\n{WAIT}\n{WAIT}") == [(WAIT.rstrip(";"), HANGS.format(PIPES, "only 1 `set_flag()`"))]
    loop = f"for (int i = 0; i < n; i++) {{\n{SET}\n{WAIT}\n{SET}\n}}"
    assert found(loop) == [(SET.rstrip(";"), STAYS.format(PIPES, "only 1 `wait_flag()`"))]
    assert found(f"if (n) {{ {SET} {WAIT} }}\n// {WAIT}\n") == []


@pytest.mark.parametrize(
    "body",
    [
        f"{SET}\nuse();\n{WAIT}",
        f"{SET} // {WAIT}\n{WAIT}",
        f"{SET}\nif (n) {{ {SET} }}\n{WAIT}",
        f"if (n) {SET} else {{ use(); {SET} }}\n{WAIT}",
        f"if (n) {SET}\nelse {SET}\n{WAIT}",
        f"{SET}\nfor (int i = 0; i < n; i++) {{ {WAIT} use(); }}\n{WAIT}",
        f"{SET}\nwait_flag(PIPE_MTE2, PIPE_V, event);",
        f"{SET}\nwait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0 + i);",
        f"#if defined(__DAV_VEC__)\n{SET}\n#else\n{SET}\n#endif\n{WAIT}",
        f"switch (n) {{ case 0: {SET} {SET} break; default: {WAIT} }}",
        f"switch (n) {{ case 0: f(); {SET} break; case 1: f(); {SET} case 2: f(); {WAIT} }}",
        f"switch (n) {{ default: f(); {SET} break; case 1: f(); {SET} case 2: f(); {WAIT} }}",
    ],
)
def test_calls_that_may_have_a_counterpart(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    "before",
    [
        f"#define FINISH() {WAIT}\n",
        "#define WAIT_FLAG wait_flag\n",
        '#include "sync_helpers.h"\n',
        "#define WAIT(id) wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID##id)\n",
        "static Event<Op::TLOAD, Op::TADD> loaded;\n",
        "template <event_t E> static __aicore__ void finish() { wait_flag(PIPE_MTE2, PIPE_V, E); }\n",
    ],
)
def test_code_that_may_wait(before: str) -> None:
    assert found(SET, before) == []


def test_a_helper_of_the_file() -> None:
    assert found(f"{SET}\nfinish();", f"static __aicore__ void finish() {{ {WAIT} }}\n") == []


def test_many_calls_take_linear_time() -> None:
    def prepare(number: int) -> Work:
        text = f"void kernel_entry() {{ {f'{SET} {WAIT} ' * number} {WAIT} }}"
        assert len(event_faults(text)) == 1
        return lambda: event_faults(text)

    check_linear(prepare, 200)


@pytest.mark.parametrize("body", [f"#if 0\n{WAIT}\n#endif", f"#ifdef SYNCED\n{WAIT}\n#endif", f'{WAIT}\nasm("set");'])
def test_calls_that_may_be_left_out_and_assembler(body: str) -> None:
    assert found(body) == []

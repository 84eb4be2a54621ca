"""Names that an orchestration uses and the runtime does not have, and calls that cannot be right."""

from __future__ import annotations

import time

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.examples import SOURCE
from opschema_rules.pypto.pack import PACK

RUNTIME = "src/a5/runtime/tensormap_and_ringbuffer/"
HEADERS = {
    f"{RUNTIME}runtime/pto_types.h": """\
class TaskOutputTensors { const ChipTensor &get_ref(uint32_t index) const; PTO2TaskId task_id() const; };
template <size_t T>
struct Arg : TaskArgsTpl<TensorRef, uint64_t, T> { void add_input(const ChipTensor &t); void add_output(); void reset(); };
using CoreTaskArgs = Arg<32>;
enum class DataType : uint8_t { FLOAT32, BFLOAT16 };
""",
    f"{RUNTIME}runtime/task_args.h": "template <typename T>\nstruct TaskArgsTpl { void add_scalar(T t); void add_inout(T t); };\n",
    f"{RUNTIME}orchestration/pto_orchestration_api.h": """\
TaskOutputTensors rt_submit_aiv_task(int32_t kernel, const CoreTaskArgs &args);
void get_tensor_data(const ChipTensor &tensor, uint32_t ndims, const uint32_t indices[]);
""",
}
T0 = "orch_args.tensor(0).ref()"
P = "CoreTaskArgs p;\np.add_input(orch_args.tensor(0).ref());\n"
RUN = "rt_submit_aiv_task(0, p);\n"
MADE = "TensorCreateInfo made(shapes, 1, DataType::FLOAT32);\n"


def found(
    body: str, before: str = "", headers: dict[str, str] = HEADERS, codes: tuple[str, ...] = ("PTO130", "PTO131")
) -> list[tuple[str, str]]:
    files = PACK.example([("cpp", body)])
    files[SOURCE] = files[SOURCE].replace('extern "C" {', f'{before}extern "C" {{')
    linted = lint_files([PACK], {**files, **headers}, list(codes))
    return [(linted.text(item.place), item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        (f"{P}p.add_inputs(x);\n{RUN}", "add_inputs", "`CoreTaskArgs` has no `add_inputs`; did you mean `add_input`?"),
        (f"{P}p.add_sclar(1);\n{RUN}", "add_sclar", "`CoreTaskArgs` has no `add_sclar`; did you mean `add_scalar`?"),
        (f"{P}TaskOutputTensors o = {RUN}use(o.get(0));", "get", "`TaskOutputTensors` has no `get`"),
        (
            f"{P}use(rt_submit_aiv_task(0, p).taskid());",
            "taskid",
            "`TaskOutputTensors` has no `taskid`; did you mean `task_id`?",
        ),
        (
            f"{P}TensorCreateInfo made(shapes, 1, DataType::BFLOAT);\n{RUN}",
            "DataType::BFLOAT",
            "`DataType` has no `BFLOAT`; did you mean `BFLOAT16`?",
        ),
        (f"{P}rt_submit_vector(0, p);", "rt_submit_vector", "the runtime has no function `rt_submit_vector()`"),
        (
            f"const ChipTensor &ext_a = orch_args.tensor(0).ref();\n{P}p.add_input(ext_aa);\n{RUN}use(ext_a);",
            "ext_aa",
            "nothing declares `ext_aa`; did you mean `ext_a`?",
        ),
    ],
)
def test_a_name_that_nothing_declares(body: str, place: str, message: str) -> None:
    assert found(body, codes=("PTO130",)) == [(place, message)]
    assert found(body, codes=("PTO130",), headers={}) == []


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", f"{P}p.add_scalar(1);\np.add_inout(x);\n{RUN}"),
        ("struct Payload : CoreTaskArgs { void add_inputs(); };\n", f"Payload p;\np.add_inputs();\n{RUN}"),
        ("struct CoreTaskArgs { void add_inputs(); };\n", f"{P}p.add_inputs();\n{RUN}"),
        ("static void rt_submit_both(const CoreTaskArgs &p);\n", f"{P}rt_submit_both(p);"),
        ("#define rt_submit_both(p) rt_submit_aiv_task(0, p)\n", f"{P}rt_submit_both(p);"),
        ('#include "both.h"\n', f"{P}rt_submit_both(p);"),
        (
            "static ChipTensor ext_aa;\n",
            f"const ChipTensor &ext_a = orch_args.tensor(0).ref();\n{P}p.add_input(ext_aa);\n{RUN}",
        ),
        (
            '#include "more.h"\n',
            f"const ChipTensor &ext_a = orch_args.tensor(0).ref();\n{P}p.add_input(ext_aa);\n{RUN}",
        ),
        ("", f"auto p = make();\np.add_inputs(x);\n{RUN}"),
        ("using CoreTaskArgs = Mine;\n", f"{P}p.add_inputs(x);\n{RUN}"),
        ("typedef Mine CoreTaskArgs;\n", f"{P}p.add_inputs(x);\n{RUN}"),
        ("", f"{P}memcpy(a, b, 4);\nif (memcmp(c, d, 4)) {{ printf(text); fprintf(stderr, text); }}\n{RUN}"),
        (
            '#include "pto/none.h"\n',
            f"const ChipTensor &ext_a = orch_args.tensor(0).ref();\n{P}p.add_input(ext_aa);\n{RUN}",
        ),
        ("", f"{P}std::vector<int> sizes;\nsizes.push_back(1);\nsnprintf(text, 4, fmt);\n{RUN}"),
        ("", f"std::array<ChipTensor, 2> items;\n{P}for (auto item : items) {{ p.add_input(item); }}\n{RUN}"),
    ],
)
def test_a_name_that_may_be_declared(before: str, body: str) -> None:
    assert found(body, before, codes=("PTO130",)) == []


def test_members_of_a_class_whose_base_is_not_in_the_tree() -> None:
    headers = {path: text for path, text in HEADERS.items() if not path.endswith("task_args.h")}
    assert found(f"{P}p.add_inputs(x);\n{RUN}", headers=headers) == []


def test_braces_in_comments_of_headers() -> None:
    path = f"{RUNTIME}runtime/pto_types.h"
    more = HEADERS[path].replace("void add_output();", "// closes }\nvoid add_inputs();")
    assert found(f"{P}p.add_inputs(x);\n{RUN}", headers={**HEADERS, path: more}) == []


@pytest.mark.parametrize(
    "header",
    [
        "struct CoreTaskArgs : A0 {};\n"
        + "".join(f"struct A{i} : A{i + 1} {{}};\n" for i in range(3_000))
        + "struct A3000 {};",
        "struct CoreTaskArgs {\n" * 4_500,
        "struct CoreTaskArgs {" + "/*" * 45_000,
    ],
)
def test_headers_that_are_hard_to_read(header: str) -> None:
    began = time.process_time()
    message = [("add_inputs", "`CoreTaskArgs` has no `add_inputs`")]
    assert found(f"{P}p.add_inputs(x);\n{RUN}", headers={f"{RUNTIME}runtime/pto_types.h": header}) == message
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "line", ["rt_name_{}_x();", "CoreTaskArgs q{0}; q{0}.add_input(x);", "u{}_x();", "p.add_m{}(x);"]
)
def test_many_faults_take_linear_time(line: str) -> None:
    began = time.process_time()
    found(P + "".join(line.format(i) for i in range(3_000)) + RUN)
    assert time.process_time() - began < 4


def test_a_member_that_one_of_several_runtimes_has() -> None:
    other = "src/a2a3/runtime/host_build_graph/runtime/pto_types.h"
    assert found(f"{P}p.add_inputs(x);\n{RUN}", headers={**HEADERS, other: "struct Arg { void add_inputs(); };"}) == []


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        (
            f"uint32_t shapes[1] = {{16}};\nTensorCreateInfo made(shapes, 2, DataType::FLOAT32);\n{P}{RUN}",
            "shapes",
            "`shapes` has 1 element, and 2 are read from it",
        ),
        (
            f"constexpr uint32_t at[] = {{0, 1}};\n{P}{RUN}get_tensor_data<int32_t>(x, 3, at);",
            "at",
            "`at` has 2 elements, and 3 are read from it",
        ),
        (f"{P}rt_submit_aiv_task(p, 0);", "p", "`rt_submit_aiv_task()` gets the kernel first, and then the payload"),
        (
            f"{P}{RUN}p.add_scalar(1);",
            "p.add_scalar(1)",
            "the task of `p` is submitted already, and nothing submits it again",
        ),
        (
            f"while (more()) {{ {P}{RUN}p.add_scalar(1); }}",
            "p.add_scalar(1)",
            "the task of `p` is submitted already, and nothing submits it again",
        ),
        (
            f"uint32_t sizes[2] = {{1, 2}};\nuint32_t starts[1] = {{0}};\n{P}p.add_input({T0}.view(sizes, starts));\n{RUN}",
            "starts",
            "`starts` has 1 element, and the shapes 2: `view()` reads as many of both",
        ),
        (
            f"{P}{RUN}CoreTaskArgs q;\nq.add_input(x);\n{RUN}",
            "q.add_input(x)",
            "`q` is filled and never submitted, so that this task does not run",
        ),
        (
            f"{P}{MADE}p.add_output(made);\nTaskOutputTensors o = {RUN}",
            f"TaskOutputTensors o = {RUN}".strip(),
            "nothing uses `o`, and the task writes nothing else: its results are lost",
        ),
    ],
)
def test_a_call_that_cannot_be_right(body: str, place: str, message: str) -> None:
    assert found(body) == [(place, message)]


@pytest.mark.parametrize(
    "body",
    [
        f"uint32_t shapes[2] = {{16, 1}};\n{MADE}{P}{RUN}",
        f"uint32_t shapes[1] = {{16}};\n{{ uint32_t shapes[2]; TensorCreateInfo made(shapes, 2, kind); }}\n{P}{RUN}",
        f"TensorCreateInfo made(shape.data(), 2, kind);\n{P}{RUN}",
        f"#define DIMS 4, 8\nuint32_t shapes[] = {{DIMS}};\nTensorCreateInfo made(shapes, 2, kind);\n{P}{RUN}",
        f"{P}{RUN}p.add_scalar(1);\nCoreTaskArgs q = p;\nrt_submit_aiv_task(0, q);",
        f"{P}{RUN}p.add_scalar(1);\nauto q{{p}};\nrt_submit_aiv_task(0, q);",
        f"{P}{RUN}CoreTaskArgs q;\np.add_scalar(1);\nq = p;\nrt_submit_aiv_task(0, q);",
        f"#define SEE use(o);\n{P}{MADE}p.add_output(made);\nTaskOutputTensors o = {RUN}SEE",
        f"CoreTaskArgs q;\n(*&q).add_input(x);\n{P}{RUN}",
        f"{P}again:\n{RUN}p.add_scalar(1);\nif (c) {{ goto again; }}",
        f"auto step = [&](CoreTaskArgs &a) {{ rt_submit_aiv_task(0, a); a.add_scalar(1); }};\n{P}step(p);\nstep(p);",
        f"static CoreTaskArgs p;\np.add_input(x);\n{RUN}p.add_scalar(1);",
        f"{P}{MADE}p.add_output(made);\n[[maybe_unused]] TaskOutputTensors o = {RUN}",
        "#ifdef X\nuint32_t shapes[2] = {1, 2};\n#else\nuint32_t shapes[1] = {16};\n#endif\n"
        f"#ifdef X\nTensorCreateInfo made(shapes, 2, kind);\n#endif\n{P}{RUN}",
        f"uint32_t shapes[N] = {{16}};\nTensorCreateInfo made(shapes, 2, kind);\n{P}{RUN}",
        f"CoreTaskArgs q;\n{P}{RUN}",
        f"CoreTaskArgs q;\nq.add_input(x);\nsubmit_all(q);\n{P}{RUN}",
        f"CoreTaskArgs q;\nq.add_input(x);\nauto run = [&] {{ rt_submit_aiv_task(0, q); }};\nrun();\n{P}{RUN}",
        f"CoreTaskArgs q;\nq.add_input(x);\nCoreTaskArgs *next = &q;\nrt_submit_aiv_task(0, *next);\n{P}{RUN}",
        f"CoreTaskArgs q;\nq.add_input(x);\nif (on) {{ rt_submit_aiv_task(0, q); }}\n{P}{RUN}",
        f"constexpr bool on = false;\nCoreTaskArgs q;\nq.add_input(x);\nif (on) {{ rt_submit_aiv_task(0, q); }}\n{P}{RUN}",
        "for (int i = 0; i < 2; i++) { CoreTaskArgs q; q.add_input(x); if (i == 0) { continue; } rt_submit_aiv_task(0, q); }",
        f"CoreTaskArgs q;\nq.add_input(x);\nalloc_tensors(q);\n{P}{RUN}",
        f"CoreTaskArgs q;\nq.add_input(x);\nrt_submit_dummy_task(q);\n{P}{RUN}",
        f"{P}{RUN}p.reset();\np.add_input(x);\n{RUN}",
        f"{P}{RUN}p.add_scalar(1);\n{RUN}",
        f"{P}while (more()) {{ {RUN} p.reset(); p.add_scalar(1); }}",
        f"{P}while (more()) {{ {RUN} p.add_scalar(1); }}",
        f"while (more()) {{ {P}while (more()) {{ {RUN}p.add_scalar(1); }} }}",
        f"uint32_t sizes[2] = {{1, 2}};\nuint32_t starts[2] = {{0}};\n{P}p.add_input({T0}.view(sizes, starts));\n{RUN}",
        f"uint32_t starts[1] = {{0}};\n{P}p.add_input({T0}.view(sizes, starts));\n{RUN}",
        f"uint32_t sizes[2] = {{1, 2}};\n{P}p.add_input(x.view(sizes, &start));\n{RUN}",
        f"{P}p.set_task_timing_slot(99);\n{RUN}",
        f"{P}p.add_inout(x);\n{MADE}p.add_output(made);\nTaskOutputTensors o = {RUN}",
        f"{P}TaskOutputTensors o = {RUN}",
        f"{P}{MADE}p.add_output(made);\nTaskOutputTensors o = {RUN}use(o);",
        f"{P}{MADE}p.add_output(made);\nTaskOutputTensors o = {RUN}auto then = [&o] {{}};",
        f"{P}{MADE}p.add_output(made);\n{RUN}",
    ],
)
def test_a_call_that_may_be_right(body: str) -> None:
    assert found(body, codes=("PTO131",)) == []


TIMED = {**HEADERS, "src/common/phase.h": "constexpr int NUM_TASK_TIMING_SLOTS = 16;\n"}


@pytest.mark.parametrize("slot", [15, 16, 0])
def test_a_timing_slot(slot: int) -> None:
    message = "there is no timing slot 16; the last one is 15"
    text = f"{P}p.set_task_timing_slot({slot});\n{RUN}"
    assert found(text, headers=TIMED, codes=("PTO131",)) == ([("16", message)] if slot == 16 else [])
    other = {**TIMED, "src/a5/phase.h": "constexpr int NUM_TASK_TIMING_SLOTS = 32;\n"}
    assert found(text, headers=other, codes=("PTO131",)) == []


def test_a_payload_that_cannot_copy_a_tensor() -> None:
    base = "template <typename T>\nstruct TaskArgsTpl { void add_scalar(T t); void add_tensor(const T &t); };\n"
    refs = "class TensorRef { public: TensorRef &operator=(const TensorRef &) = delete; };\n"
    headers = {**HEADERS, f"{RUNTIME}runtime/task_args.h": base}
    text = f"{P}p.add_tensor(x);\n{RUN}"
    message = "`CoreTaskArgs` cannot copy a tensor: add it with `add_input()`, `add_output()` or `add_inout()`"
    types = f"{RUNTIME}runtime/pto_types.h"
    refused = {**headers, types: refs + headers[types]}
    assert found(text, headers=refused, codes=("PTO130",)) == [("add_tensor", message)]
    copied = {**headers, types: refs.replace("= delete", "") + headers[types]}
    assert found(text, headers=copied, codes=("PTO130",)) == []
    assert found(text, headers=headers, codes=("PTO130",)) == []
    assert found(f"TaskArgs other;\nother.add_tensor(x);\n{P}{RUN}", headers=refused, codes=("PTO130",)) == []


def test_functions_of_graphs() -> None:
    graph = f"void layer(const GraphTaskArgs &args) {{\n{P.replace('orch_args', 'args')}p.add_inputs(x);\n{RUN}}}\n"
    body = "auto make = [&](GraphTaskArgs &given) { rt_submit_graph(&layer, given); };\nmake(graph_args);"
    message = "`CoreTaskArgs` has no `add_inputs`; did you mean `add_input`?"
    exported = 'extern "C" {\n' + graph + "}\n"
    assert found(body, exported, codes=("PTO130",)) == [("add_inputs", message)]
    assert found(body, exported.replace("add_inputs", "add_input"), codes=("PTO130",)) == []


def test_a_view_of_another_class() -> None:
    grid = "uint32_t sizes[2] = {1, 2};\nuint32_t starts[1] = {0};\nGrid grid;\nuse(grid.view(sizes, starts));\n"
    assert found(grid) == []

"""Tensors that an orchestration takes of its tasks and graphs, where these have fewer."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.examples import SOURCE
from opschema_rules.pypto.pack import PACK

MADE = "TensorCreateInfo made(shapes, 1, DataType::FLOAT32);\nCoreTaskArgs p;\n"
OWN = "const ChipTensor &own = orch_args.tensor(2).ref();\n"
ONE = f"{MADE}p.add_input(orch_args.tensor(0).ref());\np.add_output(made);\n"
RUN = "TaskOutputTensors o = rt_submit_aiv_task(0, p);\n"
TAKEN = "auto &x = o.get_ref(1);"
HELPERS = """\
static const ChipTensor &nth(const TaskOutputTensors &of, int at) { return of.get_ref(at); }
template <typename... T>
static TaskOutputTensors make(const T &...infos) { return alloc_tensors(infos...); }
static void layer(const GraphTaskArgs &args, int kind) {
    CoreTaskArgs q;
    q.add_input(args.tensor(1).ref());
    rt_submit_aiv_task(0, q);
}
"""


def found(body: str, before: str = "") -> list[tuple[str, str, str]]:
    files = PACK.example([("cpp", body)])
    files[SOURCE] = files[SOURCE].replace('extern "C" {', f'{HELPERS}{before}extern "C" {{')
    linted = lint_files([PACK], files, ["PTO125"])
    return [(linted.text(item.place), item.severity.value, item.message) for item in linted.diagnostics]


@pytest.mark.parametrize(
    ("body", "place", "has"),
    [
        (f"{ONE}{RUN}auto &x = o.get_ref(1);", "o.get_ref(1)", "one"),
        (f"{ONE}p.add_output(made);\n{RUN}auto &x = o.get_ref(2);", "o.get_ref(2)", "2"),
        (f"{MADE}{OWN}p.add_output(own);\n{RUN}auto &x = o.get_ref(0);", "o.get_ref(0)", "none"),
        (
            f"{MADE}p.add_inout(orch_args.tensor(2).ref());\n{RUN}auto &x = o.get_ref(0);",
            "o.get_ref(0)",
            "none",
        ),
        (f"{ONE}auto o = rt_submit_aiv_task(0, p);\nauto &x = o.get_ref(1);", "o.get_ref(1)", "one"),
        (f"{ONE}{RUN}CoreTaskArgs q;\nq.add_input(o.get_ref(1));", "o.get_ref(1)", "one"),
        (f"{ONE}{RUN}use(shape.size());\nauto &x = o.get_ref(1);", "o.get_ref(1)", "one"),
        (f"{ONE}p.add_scalar(1);\n{RUN}use(o.task_id());\nauto &x = o.get_ref(1);", "o.get_ref(1)", "one"),
        (
            f"{ONE}for (int i = 0; i < 2; i++) {{ p.add_output(made); }}\n{RUN}auto &x = o.get_ref(3);",
            "o.get_ref(3)",
            "3",
        ),
    ],
)
def test_an_output_that_a_task_does_not_have(body: str, place: str, has: str) -> None:
    index = place[-2]
    message = f"the orchestration takes output {index}, and the runtime makes {has} for this task"
    assert found(body) == [(place, "error", message)]


def test_an_output_of_allocated_tensors() -> None:
    body = f"{MADE}TaskOutputTensors o = alloc_tensors(made, made);\nauto &x = o.get_ref(1);\nauto &y = o.get_ref(2);"
    message = "the orchestration takes output 2, and the runtime makes 2 for this task"
    assert found(body) == [("o.get_ref(2)", "error", message)]


ARGS = "GraphTaskArgs g;\ng.add_input(orch_args.tensor(0).ref());\n"
GRAPH = f"{ARGS}rt_submit_graph(&block, g, 0);"
LAYER = """\
static void block(const GraphTaskArgs &args, int kind) {
    (void)kind;
    const ChipTensor &x = args.tensor(0).ref();
    %s
}
"""
TAKES = "const ChipTensor &y = args.tensor(1).ref();"


def graph(body: str, takes: str = TAKES, before: str = "") -> list[tuple[str, str, str]]:
    return found(body, before + LAYER % takes)


def test_a_tensor_that_a_graph_does_not_get() -> None:
    message = "the graph takes tensor 1, and `g` has one"
    error = [("args.tensor(1)", "error", message)]
    assert graph(GRAPH) == graph(f"for (int i = 0; i < 4; i++) {{\n{GRAPH}\n}}") == error
    assert graph(f"{ARGS}g.add_scalar(3);\nrt_submit_graph(&block, g, 0);") == error


@pytest.mark.parametrize(
    ("body", "takes", "before"),
    [
        (f"{ARGS}g.add_output(own);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}g.add_input(both);\nrt_submit_graph(&block, g, 0);", TAKES.replace("1", "2"), '#include "both.h"\n'),
        (GRAPH.replace("block", "deep"), "", f"namespace old {{\n{(LAYER % TAKES).replace('block', 'deep')}}}\n"),
        (
            GRAPH.replace("block", "deep"),
            "",
            (LAYER % TAKES).replace("block", "deep").replace("int kind", "float kind")
            + "void deep(const GraphTaskArgs &args, int kind);\n",
        ),
        (GRAPH, f"if (kind) {{ {TAKES} }}", ""),
        (GRAPH, f"if (args.tensor_count() < 2) {{ return; }}\n{TAKES}", ""),
        (GRAPH, f"RETURN_IF(kind);\n{TAKES}", ""),
        (GRAPH, "kind ? use(args.tensor(1).ref()) : use(x);", ""),
        (GRAPH, f"WHEN(kind) {{ {TAKES} }}", ""),
        (GRAPH, "trace(args.tensor(1).ref());", ""),
        (GRAPH, f"auto late = [&]() {{ {TAKES} }};", ""),
        (GRAPH, f"#ifdef WITH_BIAS\n{TAKES}\n#endif", ""),
        (GRAPH, f"const_cast<GraphTaskArgs &>(args).add_input(x);\n{TAKES}", ""),
        (f"{ARGS}g.add_input(ALL);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}g.add_input(both);\nrt_submit_graph(&block, g, 0);", TAKES.replace("1", "2"), "#define both a, b\n"),
        (f"{ARGS}fill(g);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}GraphTaskArgs *h = &g;\nh->add_input(a);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}auto &h = g;\nh.add_input(a);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}if (x) {{ g.add_input(a); }}\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}for (int i = 0; i < n; i++) {{ g.add_input(a); }}\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}TWICE g.add_input(a);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}PTO_FOR(i, 2) {{ g.add_input(a); }}\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}g << a;\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        ("MyGraphArgs g;\ng.add_input(a);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (GRAPH, TAKES, "struct GraphTaskArgs { GraphTaskArgs() { add_input(held); } };\n"),
        (GRAPH, TAKES, "#define rt_submit_graph(f, g, ...) (f)(with_bias(g), 0)\n"),
        ("GraphTaskArgs g = made();\ng.add_input(a);\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}auto more = [&]() {{ g.add_input(a); }};\nmore();\nrt_submit_graph(&block, g, 0);", TAKES, ""),
        (f"{ARGS}pool::rt_submit_graph(&block, g, 0);", TAKES, ""),
    ],
)
def test_tensors_that_a_graph_gets_or_may_get(body: str, takes: str, before: str) -> None:
    assert graph(body, takes, before) == []


def test_an_output_in_a_branch() -> None:
    assert [item[1] for item in found(f"{ONE}{RUN}if (x) {{ auto &x = o.get_ref(1); }}")] == ["warning"]


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE}{RUN}auto &x = o.get_ref(0);",
        f"{ONE}{RUN}auto &x = o.get_ref(n);",
        f"{ONE}if (x) {{ p.add_output(made); }}\n{RUN}if (x) {{ auto &x = o.get_ref(1); }}",
        f"{ONE}{RUN}if (o.size() > 1) {{ auto &x = o.get_ref(1); }}",
        f"{ONE}{RUN}use(o.size() > 1 ? o.get_ref(1) : o.get_ref(0));",
        f"{ONE}for (int i = 0; i < n; i++) p.add_output(made);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}fill(p);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}auto more = [&]() {{ p.add_output(made); }};\nmore();\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}TensorCreateInfo infos[2] = {{made, made}};\np.add_output(infos[0], infos[1]);\n{RUN}auto &x = o.get_ref(2);",
        f"{ONE}auto info = make_tensor_info_like(orch_args.tensor(0).ref());\np.add_output(info);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}{RUN}if (names.size() > 1) {{ auto &x = o.get_ref(1); }}",
        f"{ONE}if (names.size() > 1) {{ p.add_output(made); }}\n{RUN}if (names.size() > 1) {{ auto &x = o.get_ref(1); }}",
        f"{ONE}if (names.size() < 2) {{ return; }}\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}p.add_output(x ? made : other);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}p.add_output(made.with(x));\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}{RUN}p.add_output(made);\no = rt_submit_aiv_task(0, p);\nauto &x = o.get_ref(1);",
        f"{ONE}CoreTaskArgs q;\nq.add_output(made);\nauto o = x ? rt_submit_aiv_task(0, p) : rt_submit_aiv_task(0, q);\n"
        "auto &x = o.get_ref(1);",
        f"{ONE}{RUN}for (int i = 0; i < n; i++) {{\nif (i > 0) auto &x = o.get_ref(1);\nCoreTaskArgs q;\n"
        "q.add_output(made, made);\no = rt_submit_aiv_task(0, q);\n}",
        f"{ONE}{RUN}use(nth(o, 0));\nCoreTaskArgs q;\nq.add_output(made, made);\nuse(nth(rt_submit_aiv_task(0, q), 1));",
        f"{ONE}p.reset();\np.add_output(made, made);\n{RUN}auto &x = o.get_ref(1);",
        f"{MADE}TensorCreateInfo infos[3];\nTaskOutputTensors o = alloc_tensors(infos, 3);\nauto &x = o.get_ref(2);",
        f"{ONE}p.add_output(made);\nTaskOutputTensors o = alloc_tensors(p);\nauto &x = o.get_ref(1);",
        f"{MADE}TaskOutputTensors o = make(made, made);\nauto &x = o.get_ref(1);",
        f"{ONE}Held o;\nauto &x = o.get_ref(7);",
        f"{ONE}{RUN}#ifdef TWO\nauto &x = o.get_ref(1);\n#endif",
        f"{ONE}#ifdef TWO\np.add_output(made);\n#endif\n{RUN}#ifdef TWO\nauto &x = o.get_ref(1);\n#endif",
        f"{ONE}{RUN}if (x) goto end;\nauto &x = o.get_ref(1);\nend:\nuse(1);",
        f"{ONE}CoreTaskArgs *q = &p;\nq->add_output(made);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}std::swap(p, other);\n{RUN}auto &x = o.get_ref(1);",
        f"{MADE}TensorCreateInfo info = orch_args.tensor(2).ref().info();\np.add_output(info);\n{RUN}auto &x = o.get_ref(0);",
        f"{MADE}auto info = create_tensor_like(orch_args.tensor(2).ref());\np.add_output(info);\n{RUN}auto &x = o.get_ref(0);",
        f"{MADE}p.add_output(orch_args.tensor(2).ref().as_create_info());\n{RUN}auto &x = o.get_ref(0);",
        f"{MADE}p.add_output(TensorCreateInfo(orch_args.tensor(2).ref()));\n{RUN}auto &x = o.get_ref(0);",
        "GraphTaskArgs g;\ng.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());\nrt_submit_graph(&layer, g, 0);",
        "GraphTaskArgs g;\nfill(g);\nrt_submit_graph(&layer, g, 0);",
        "GraphTaskArgs g;\nfor (int i = 0; i < n; i++) g.add_input(orch_args.tensor(0).ref());\nrt_submit_graph(&layer, g, 0);",
        "rt_submit_graph(&layer, made_elsewhere(), 0);",
        f"{ONE}{RUN}fill(o);\nauto &x = o.get_ref(1);",
        f"{ONE}{RUN}fill(&o);\nauto &x = o.get_ref(1);",
        f"{ONE}{RUN}auto f = [&]() {{ o = alloc_tensors(made, made); }};\nf();\nauto &x = o.get_ref(1);",
        f"{ONE}{RUN}std::swap(o, other);\nauto &x = o.get_ref(1);",
        f"{ONE}{RUN}o.materialize_output(c);\nauto &x = o.get_ref(1);",
        f"{ONE}Pool o = rt_submit_aiv_task(0, p);\nauto &x = o.get_ref(1);",
        f"{MADE}p.add_output(OUTS);\n{RUN}auto &x = o.get_ref(1);",
        f"{MADE}MyArgs q;\nq.add_output(made);\nauto o = rt_submit_aiv_task(0, q);\nauto &x = o.get_ref(1);",
        f"{MADE}auto ci = new_tensor(orch_args.tensor(2).ref());\np.add_output(ci);\n{RUN}auto &x = o.get_ref(0);",
        f"{MADE}{OWN}p.add_output((TensorCreateInfo)own);\n{RUN}auto &x = o.get_ref(0);",
        f"{MADE}{OWN}p.add_output(own.as_spec());\n{RUN}auto &x = o.get_ref(0);",
        f"{ONE}{RUN}RETURN_IF(x);\nauto &x = o.get_ref(1);",
        f"{ONE}{RUN}exit(0);\nauto &x = o.get_ref(1);",
        f"{ONE}auto o = pool::rt_submit_aiv_task(0, p);\nauto &x = o.get_ref(1);",
        f"{ONE}auto o = rt_submit_aiv_task(0, p, made);\nauto &x = o.get_ref(1);",
        f"{MADE}auto o = Pool::alloc_tensors(made);\nauto &x = o.get_ref(1);",
        f"{ONE}PTO_FOR(i, 2) {{ p.add_output(made); }}\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}TWICE p.add_output(made);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}p << made;\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}p.set_outputs(made, made);\n{RUN}auto &x = o.get_ref(1);",
        f"{ONE}{RUN}WHEN(x) {{ auto &x = o.get_ref(1); }}",
        f"{ONE}{RUN}IF_BIAS use(o.get_ref(1));",
        f"#define FILL {{p.add_output(made);}}\n{ONE}FILL\n{RUN}auto &x = o.get_ref(1);",
        "GraphTaskArgs g;\ng.add_input(ALL);\nrt_submit_graph(&layer, g, 0);",
    ],
)
def test_outputs_that_a_task_has_or_may_have(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("run<WideArgs>();", f"template <typename CoreTaskArgs>\nstatic void run() {{ {ONE}{RUN}{TAKEN} }}\n"),
        (
            "run(wide_submit);",
            f"template <typename F>\nstatic void run(F rt_submit_aiv_task) {{ {ONE}{RUN}{TAKEN} }}\n",
        ),
        (f"{ONE}auto rt_submit_aiv_task = wide_submit;\n{RUN}{TAKEN}", ""),
        (f"using wide::rt_submit_aiv_task;\n{ONE}{RUN}{TAKEN}", ""),
        (f"{ONE}{RUN}{TAKEN}", '#undef rt_submit_aiv_task\n#include "wide.h"\n'),
    ],
)
def test_names_of_the_runtime_that_mean_something_else(body: str, before: str) -> None:
    assert found(body, before) == []

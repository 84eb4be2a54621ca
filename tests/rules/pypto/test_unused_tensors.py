"""Tensors of an orchestration that nothing uses."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.examples import SOURCE
from opschema_rules.pypto.pack import PACK

TENSORS = "".join(f"const ChipTensor &{name} = orch_args.tensor({at}).ref();\n" for at, name in enumerate("abc"))
RUN = "rt_submit_aiv_task(0, p);\n"


def found(*lines: str, run: str = RUN) -> list[tuple[str, str]]:
    body = f"{TENSORS}CoreTaskArgs p;\n" + "".join(f"{line}\n" for line in lines) + run
    linted = lint_files([PACK], PACK.example([("cpp", body)]), ["PTO122"])
    assert all(item.related[0].place.path == SOURCE for item in linted.diagnostics)
    return [(item.severity.value, item.message) for item in linted.diagnostics]


UNWRITTEN = "tensor 2 of the orchestration is declared `OUT`, and no task writes it: its memory is undefined"
UNUSED = "tensor 1 of the orchestration is declared `IN`, and nothing uses it"


@pytest.mark.parametrize(
    "more",
    ["", "LOG_INFO(1);", "enum { MUL, ADD };\nrun(ADD);", "const int TURNS = 4;\nrun(TURNS);", "// SUBMIT_REST c"],
)
def test_an_output_that_no_task_has(more: str) -> None:
    assert found("p.add_input(a, b);", "p.add_output(created);", more) == [("warning", UNWRITTEN)]


def test_an_input_that_no_task_has() -> None:
    assert found("p.add_input(a, a);", "p.add_output(c);") == [("info", UNUSED)]


@pytest.mark.parametrize(
    "lines",
    [
        ("p.add_input(a, b);", "p.add_output(c);"),
        ("p.add_input(a, b);", "p.add_inout(c.view(shape, offsets));"),
        ("p.add_input(a, b);", "p.add_no_dep(c);"),
        ("p.add_input(a, b);", "if (x) { p.add_output(c); }"),
        ("p.add_input(a, b);", "fill(p, c);"),
        ("p.add_input(a, b);", "elsewhere(c);", "p.add_output(created);"),
        ("p.add_input(a, b);", "set_tensor_data(c, 1, at, 0.0f);", "p.add_output(created);"),
        ("fill(p);",),
        ("p.add_input(a, b);", "std::pair<const ChipTensor &, int> one{c, 0};", "p.add_output(one.first);"),
        ("p.add_input(a, b);", "auto one = std::make_pair(std::cref(c), 0);", "p.add_output(one.first);"),
        ("p.add_input(a, b);", "run_rest(orch_args);"),
        ("p.add_input(a, b);", "p.add_input(c);"),
        ("p.add_input(a, b);", "p.add_scalar(c.buffer.addr);"),
        ("p.add_input(a, b);", "p.add_scalar(reinterpret_cast<uint64_t>(c.data()));"),
        ("p.add_input(a, b);", "std::optional<ChipTensor> one(c);", "p.add_output(one.value());"),
        ("p.add_input(a, b);", "std::vector<ChipTensor> v = {c};", "p.add_output(v.front());"),
        ("p.add_input(a, b);", "std::reference_wrapper<const ChipTensor> one = c;", "p.add_output(one.get());"),
        ("p.add_input(a, b);", "const ChipTensor &one = std::max(c, c);", "p.add_output(one);"),
        ("p.add_input(a, b);", "ChipTensor one{c.buffer.addr, 4};", "p.add_output(one);"),
        ("p.add_input(a, b);", "int turns = c.shapes[0];", "p.add_scalar(turns);"),
        ("p.add_input(a, b);", "SUBMIT_REST(1);"),
        ("p.add_input(a, b);", "SUBMIT_REST;"),
        ("p.add_input(a, b);", '#include "rest.inc"'),
        ("p.add_input(a, b);", "#define rest(p) p.add_output(c)", "rest(p);"),
        ("p.add_input(a, b);", "auto *one = &orch_args.tensor(0);", "p.add_output(one[2].ref());"),
        ("p.add_input(a, b);", "auto *one = &orch_args.tensor(0).ref();", "p.add_output(one[2]);"),
        ("p.add_input(a, b);", "auto *one = & orch_args.tensor(0).ref();", "p.add_output(one[2]);"),
        ("p.add_input(a, b);", "auto *one = &a;", "p.add_output(one[2]);"),
        ("p.add_input(a, b);", "int turns = orch_args.tensor(2).ref().shapes[0];", "p.add_scalar(turns);"),
    ],
)
def test_what_is_or_may_be_used(lines: tuple[str, ...]) -> None:
    assert found(*lines) == []


def test_nothing_is_said_of_an_orchestration_that_passes_its_payload_on() -> None:
    assert found("p.add_input(a);", run="go(0, p);\n" + RUN.replace("p)", "q)")) == []

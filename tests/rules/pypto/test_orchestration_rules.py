"""PTO106 and PTO107: places, messages and fixes, and what looks wrong and is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.pypto.examples import CONFIG, example_files
from opschema_rules.pypto.pack import PACK

CODES = ("PTO106", "PTO107")
ARGUMENTS = "".join(
    f"const ChipTensor &{name} = orch_args.tensor({index}).ref();\n" for index, name in enumerate("abc")
)
RUN = "rt_submit_aiv_task(0, p);"


def files(body: str, *directions: str) -> dict[str, str]:
    config = f"""\
ORCHESTRATION = {{
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "aicpu_orchestration_entry",
    "signature": [{", ".join(f"D.{item}" for item in directions)}],
}}
"""
    return example_files([("python", config), ("cpp", f"{ARGUMENTS}CoreTaskArgs p, q;\n{body}\n")])


def lint(body: str, *directions: str) -> Linted:
    return lint_files([PACK], files(body, *directions), CODES)


def found(body: str, *directions: str) -> list[tuple[str, str, int, str]]:
    """Of each finding its code and severity, the number of the signature's entry, and the text of the other side."""
    linted = lint(body, *directions)
    return [
        (
            item.code,
            item.severity.value,
            linted.project.workspace.source(CONFIG).text[: item.place.span.start].rpartition("[")[2].count(","),
            linted.text(item.related[0].place),
        )
        for item in linted.diagnostics
    ]


READ = ("PTO106", "warning", 2)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (f"p.add_input(c); {RUN}", "c"),
        (f"p.add_inout(c.view(s, o)); {RUN}", "c.view(s, o)"),
        ("for (int k = 0; k < n; k++) { q.reset(); q.add_input(a); q.add_inout(c); rt_submit_aiv_task(0, q); }", "c"),
        (f"p.add_output(c.view(s, o)); p.add_input(c); {RUN}", "c"),
        (f"if (x) {{ p.add_input(c); {RUN} }}", "c"),
        (f"p.add_inout(c); p.add_scalar(n); {RUN}", "c"),
        (f"for (int k = 0; k < n; k++) {{ p.reset(); p.add_input(c); p.add_scalar(k); {RUN} }}", "c"),
        (f"if (x) {{ p.add_inout(c); {RUN} }} else {{ q.add_inout(c); rt_submit_aiv_task(0, q); }}", "c"),
        (f"if (x) {{ p.add_inout(c); {RUN} }} else {{ q.add_output(c); rt_submit_aiv_task(0, q); }}", "c"),
        (f"if (x) {{ q.add_output(c); rt_submit_aiv_task(0, q); return; }} p.add_inout(c); {RUN}", "c"),
        (f"if (x) {{ p.add_input(c); {RUN} }} q.add_output(c); rt_submit_aiv_task(0, q);", "c"),
        (f"switch (x) {{ case 0: q.add_output(c); rt_submit_aiv_task(0, q); break; default: p.add_input(c); {RUN} }}", "c"),
        (f"if (x) p.add_output(c); else p.add_inout(c.view(s, o)); {RUN}", "c.view(s, o)"),
        (f"for (int k = 0; k < n; k++) {{ p.reset(); if (x) {{ p.add_inout(c); {RUN} }} }}", "c"),
        (f"for (int k = 0; k < n; k++) {{ q.reset(); q.add_input(b); rt_submit_aiv_task(0, q); }} p.add_input(c); {RUN}", "c"),
        (f"for (int k = 2; k < 3; k++) {{ p.reset(); p.add_inout(orch_args.tensor(k).ref()); {RUN} }}",
         "orch_args.tensor(k).ref()"),
        (f"p.add_input(c); {RUN} q.add_output(c); rt_submit_aiv_task(0, q);", "c"),
        (f"auto v = get_tensor_data<float>(c, 1, i); p.add_output(c); {RUN}", "get_tensor_data<float>(c, 1, i)"),
        (f"auto v = x ? get_tensor_data<int>(c, 1, i) : 0; p.add_output(c); {RUN}", "get_tensor_data<int>(c, 1, i)"),
    ],
)  # fmt: skip
def test_an_out_that_is_read_first(body: str, place: str) -> None:
    assert found(body, "IN", "IN", "OUT") == [(*READ, place)]


MAKER = "src/a5/runtime/{}/host/runtime_maker.cpp"
SKIPS = "bool is_pure_output = signature[i] == ArgDirection::OUT;\nif (!is_pure_output) {\n"


@pytest.mark.parametrize(
    ("maker", "codes"),
    [
        ({MAKER.format("tensormap_and_ringbuffer"): SKIPS}, ["PTO106"]),
        (
            {
                MAKER.format(
                    "tensormap_and_ringbuffer"
                ): f"{SKIPS}}} else {{\nrc = api->device_memset(dev_ptr, 0, size);\n"
            },
            [],
        ),
        ({MAKER.format("tensormap_and_ringbuffer"): "rc = api->copy_to_device(dev_ptr, data, size);\n"}, []),
        ({"src/runtime_maker.cpp": ""}, ["PTO106"]),
    ],
)
def test_a_runtime_that_fills_outputs(maker: dict[str, str], codes: list[str]) -> None:
    tree = {**files(f"p.add_input(c); {RUN}", "IN", "IN", "OUT"), **maker}
    assert lint_files([PACK], tree, CODES).codes() == codes


@pytest.mark.parametrize(
    "body",
    [
        f"p.add_output(c); {RUN}",
        f"p.add_output(c); {RUN} q.add_inout(c); rt_submit_aiv_task(0, q);",
        f"p.add_no_dep(c); {RUN} q.add_inout(c); rt_submit_aiv_task(0, q);",
        f"set_tensor_data(c, 1, i, 0.0f); p.add_inout(c); {RUN}",
        f"memset(c.data_as<float>(), 0, n); p.add_inout(c); {RUN}",
        f"elsewhere(c); p.add_inout(c); {RUN}",
        f"elsewhere(q); rt_submit_aiv_task(0, q); p.add_inout(c); {RUN}",
        f"for (int k = 0; k < n; k++) {{ p.reset(); p.add_inout(c); p.add_scalar(k == 0); {RUN} }}",
        f"for (int k = 0; k < n; k++) {{ p.reset(); if (k) p.add_inout(c); else p.add_output(c); {RUN} }}",
        f"if (x) {{ q.add_output(c); rt_submit_aiv_task(0, q); }} p.add_inout(c); {RUN}",
        f"if (x) {{ q.add_output(c); rt_submit_aiv_task(0, q); }} if (!x) {{ p.add_inout(c); {RUN} }}",
        f"for (int k = 0; k < n; k++) {{ if (k) {{ p.add_inout(c); {RUN} }} else {{ q.add_output(c);"
        " rt_submit_aiv_task(0, q); } }",
        f"bool made = false; while (n) {{ if (made) {{ p.add_input(c); {RUN} }} q.reset(); q.add_output(c);"
        " rt_submit_aiv_task(0, q); made = true; }",
        f"for (int k = 0; k < n; k++) {{ for (int j = 0; j < n; j++) {{ if (x) {{ p.add_inout(c); {RUN} }} }} q.reset();"
        " if (y) q.add_output(c); rt_submit_aiv_task(0, q); }",
        f"if (x) {{ elsewhere(c); }} else {{ p.add_no_dep(c); {RUN} }} p.add_inout(c); {RUN}",
        f"if (x) {{ elsewhere(q); rt_submit_aiv_task(0, q); }} if (y) {{ p.add_inout(c); {RUN} }}",
        f"for (int k = 0; k < 2; k++) {{ p.reset(); if (k == 0) p.add_output(c); else p.add_inout(c);"
        f" p.add_input(orch_args.tensor(k).ref()); {RUN} }}",
        f"for (int k = 0; k < n; k++) {{ p.reset(); if (k > 0) {{ p.add_input(c); {RUN} continue; }} p.add_output(c); {RUN} }}",
        f"auto t = x ? b : c; p.add_output(t); {RUN} q.add_inout(c); rt_submit_aiv_task(0, q);",
        f"for (int k = 0; k < n; k++) {{ if (k) get_tensor_data<int>(c, 1, i); p.reset(); p.add_output(c); {RUN} }}",
        f"p.add_inout(c); {RUN} orch_args.tensor(n).ref();",
        f"p.add_inout(c); {RUN} goto end; end:;",
        f"p.add_inout(c.shapes[0]); {RUN}",
        "",
    ],
)
def test_an_out_that_may_be_written_first(body: str) -> None:
    assert found(body, "IN", "IN", "OUT") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"p.add_output(b); {RUN}", [("PTO107", "warning", 1, "b")]),
        (f"p.add_input(b); {RUN} q.add_output(b); rt_submit_aiv_task(0, q);", [("PTO107", "warning", 1, "b")]),
        (f"p.add_inout(b); {RUN}", [("PTO107", "info", 1, "b")]),
        (f"p.add_output(b); {RUN} q.add_input(b); rt_submit_aiv_task(0, q);", [("PTO107", "info", 1, "b")]),
        ("set_tensor_data(b, 1, i, 0.0f);", [("PTO107", "warning", 1, "set_tensor_data(b, 1, i, 0.0f)")]),
        (f"p.add_input(b); p.add_no_dep(b); {RUN}", []),
        (f"elsewhere(b); p.add_output(b); {RUN}", []),
        (f"p.add_output(b); {RUN} elsewhere(b);", []),
        (f"if (x) p.add_output(b); else p.add_no_dep(b); {RUN}", []),
        (f"if (x) p.add_output(b); else p.add_inout(b); {RUN}", [("PTO107", "info", 1, "b")]),
        (f"ChipTensor b = other; p.add_output(b); {RUN}", []),
    ],
)
def test_an_in_that_is_written(body: str, expected: list[tuple[str, str, int, str]]) -> None:
    assert found(f"{{ {body} }}", "IN", "IN", "INOUT") == expected


@pytest.mark.parametrize("directions", [(), ("OUT",), ("SCALAR", "OUT", "OUT"), ("OUT", "OUT", "OUT, *more")])
def test_a_signature_that_is_not_known_or_tells_nothing_of_a_tensor(directions: tuple[str, ...]) -> None:
    assert found(f"p.add_inout(c); {RUN}", *directions) == []


def test_messages_tell_both_sides() -> None:
    (read,) = lint(f"p.add_inout(c); {RUN}", "IN", "IN", "OUT").diagnostics
    (written,) = lint(f"p.add_output(a); {RUN}", "IN", "IN", "OUT").diagnostics
    assert read.message == (
        "tensor 2 of the orchestration is declared `OUT`, so that it is not copied to the device, and kernel 0 (`add`) takes it"
        " as `INOUT` first: declare `INOUT`, or add it with `add_output`"
    )
    assert written.message == (
        "tensor 0 of the orchestration is declared `IN`, so that it is not copied back to the host, and kernel 0 (`add`) takes it"
        " as `OUT`: declare `OUT` or `INOUT`"
    )


def test_in_branches_each_first_use_is_shown() -> None:
    arms = f"if (x) {{ p.add_inout(c); {RUN} }} else {{ q.add_input(c); rt_submit_aiv_task(0, q); }}"
    linted = lint(f"{arms} q.reset(); q.add_input(c); rt_submit_aiv_task(0, q);", "IN", "IN", "OUT")
    (item,) = linted.diagnostics
    assert "takes it as `INOUT` first, in a branch: declare `INOUT`, or add it with `add_output`" in item.message
    assert len(item.related) == 2


@pytest.mark.parametrize(
    ("body", "after"), [("p.add_inout(c);", "D.IN, D.INOUT]"), ("p.add_output(b);", "D.INOUT, D.OUT]")]
)
def test_the_fix_declares_both(body: str, after: str) -> None:
    changed, left = fix_files([PACK], files(f"{body} {RUN}", "IN", "IN", "OUT"), CODES, unsafe=True)
    assert after in changed[CONFIG]
    assert left.diagnostics == []


def test_programs_that_share_an_orchestration_are_judged_each_by_its_own_signature() -> None:
    texts = files(f"p.add_inout(c); {RUN}", "IN", "IN", "OUT")
    texts["other/kernel_config.py"] = (
        texts[CONFIG]
        .replace("_ROOT_DIR /", '_ROOT_DIR / ".." / "program" /')
        .replace("D.IN, D.IN, D.OUT]", "D.IN, D.IN, D.INOUT]", 1)
    )
    assert [item.place.path for item in lint_files([PACK], texts, CODES).diagnostics] == [CONFIG]


def test_an_orchestration_beside_others_is_left_out() -> None:
    callable_ = """{
        "orchestration": {
            "source": "orchestration/main.cpp",
            "function_name": "aicpu_orchestration_entry",
            "signature": [D.IN, D.IN] + [D.OUT],
        },
        "incores": [{"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"}],
    }
"""
    body = f"{ARGUMENTS}CoreTaskArgs p;\np.add_input(c);\n{RUN}\n"
    codes = []
    for value in (callable_, f'{{"callables": [{callable_}]}}'):
        config = f"ORCHESTRATION = {{}}\nKERNELS = []\n\n\nclass TestOne:\n    CALLABLE = {value}\n"
        codes.append(lint_files([PACK], example_files([("python", config), ("cpp", body)]), CODES).codes())
    assert codes == [["PTO106"], []]

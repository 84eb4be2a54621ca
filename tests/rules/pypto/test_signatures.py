"""Signatures against the tensors that kernels are submitted with, as each runtime reads them."""

from __future__ import annotations

import pytest

from tests.rules.pypto.programs import ALONE, MIXED, THREE, beside, fixed, found, kernels, lint, program, signed

# signature-missing


def test_a_kernel_without_signature() -> None:
    files = program(kernels(""))
    assert found(files, "PTO101") == [
        '"func_id": 0: kernel 0 has no `signature`, so that none of its tensors [IN, IN, OUT] are dumped: declare them'
    ]
    assert beside(files, "PTO101") == ["rt_submit_aiv_task(0, p): submitted here"]
    assert lint(files).codes() == ["PTO101"]


def test_an_empty_signature_is_none() -> None:
    assert found(program(signed("")), "PTO101") == [
        "[]: kernel 0 has an empty `signature`, so that none of its tensors [IN, IN, OUT] are dumped: declare them"
    ]


@pytest.mark.parametrize(
    ("one", "other", "codes"),
    [
        ("#ifdef A", "#ifndef A", []),
        ("#if A >= 3", "#if A < 3", []),
        ("#if A == 1", "#if A == 2", []),
        ("#if 0", "#ifdef A", ["PTO102"]),
    ],
)
def test_tensors_of_several_preprocessor_conditions_are_not_counted(one: str, other: str, codes: list[str]) -> None:
    added = "p.add_input(orch_args.tensor(3).ref());\n#endif\n"
    body = f"{THREE}{one}\n{added}{other}\n{added}rt_submit_aiv_task(0, p);\n"
    assert lint(program(signed("IN, IN, OUT"), body), "PTO102").codes() == codes


def test_a_signature_is_added_as_the_dict_is_laid_out() -> None:
    one_line = kernels("")
    assert fixed(program(one_line), "PTO101") == one_line.replace('"aiv"}', '"aiv", "signature": [D.IN, D.IN, D.OUT]}')
    lines = 'KERNELS = [\n    {\n        "func_id": 0,\n        "core_type": "aiv",  # any\n    },\n]\n'
    assert fixed(program(lines), "PTO101") == lines.replace(
        "# any\n", '# any\n        "signature": [D.IN, D.IN, D.OUT],\n'
    )
    assert fixed(program(signed("")), "PTO101") == signed("IN, IN, OUT")


def test_nothing_is_added_where_the_file_does_not_spell_the_enum() -> None:
    orchestration = (
        'ORCHESTRATION = {"source": "orchestration/main.cpp", "function_name": "aicpu_orchestration_entry"}\n'
    )
    linted = lint(program(kernels("") + orchestration), "PTO101")
    assert [item.fix for item in linted.diagnostics] == [None]


def test_nothing_is_added_where_tasks_differ_or_one_is_not_known() -> None:
    other = "CoreTaskArgs q;\nq.add_inout(orch_args.tensor(2).ref());\nrt_submit_aiv_task(0, q);\n"
    lost = "CoreTaskArgs q;\nfill(q);\nrt_submit_aiv_task(0, q);\n"
    unknown = "rt_submit_aiv_task(pick(), p);\n"
    for more in (other, lost, unknown):
        linted = lint(program(kernels(""), ALONE + more), "PTO101")
        assert [item.fix for item in linted.diagnostics] == [None]


def test_one_of_the_kernels_of_a_task_is_enough() -> None:
    assert lint(program(signed("-", "IN, IN, OUT", ""), MIXED)).codes() == []
    assert lint(program(signed("-", "-", ""), MIXED)).codes() == ["PTO101", "PTO101", "PTO101"]


def test_where_entries_add_up_one_kernel_of_a_task_is_to_declare() -> None:
    files = program(signed("-", "-", "-"), MIXED, "sum")
    assert len(found(files, "PTO101")) == 1
    assert fixed(files, "PTO101") == signed("IN, IN, OUT", "-", "-")


def test_the_fix_adds_the_parallel_list_where_there_has_to_be_one() -> None:
    assert fixed(program(kernels(""), contract="arg-index"), "PTO101") == kernels(
        ', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 2]'
    )


def test_what_is_not_known_is_not_missed() -> None:
    computed = kernels(', "signature": make()')
    assert lint(program(computed)).codes() == []
    assert lint(program(signed("-"), THREE + "fill(p);\nrt_submit_aiv_task(0, p);\n")).codes() == []


@pytest.mark.parametrize(
    "text",
    [
        'KERNELS[0]["signature"] = [D.IN, D.IN, D.OUT]\n',
        "for kernel in KERNELS:\n    kernel.setdefault('signature', TABLE[kernel['func_id']])\n",
    ],
)
def test_a_signature_that_statements_set_is_not_known(text: str) -> None:
    assert lint(program(kernels("") + text)).codes() == []
    assert lint(program(kernels("") + text.replace("signature", "name"))).codes() == ["PTO101"]


FILLED = '"signature": [D.IN, D.IN, D.OUT]'


@pytest.mark.parametrize(
    "text",
    [
        "KERNELS[0].update(signature=SIG)\n",
        "for k in KERNELS:\n    k.update(signature=SIG)\n",
        "for _, k in enumerate(KERNELS):\n    k['signature'][:] = SIG\n",
        f"KERNELS[0] = {{**KERNELS[0], {FILLED}}}\n",
        f"KERNELS[:] = [{{**k, {FILLED}}} for k in KERNELS]\n",
        f"KERNELS[0] |= {{{FILLED}}}\n",
        "from _common import finish\nfinish(KERNELS)\n",
        "import _common\n_common.finish(kernels=KERNELS[0])\n",
        "first, = KERNELS\nfirst |= common\n",
        "by_id = {k['func_id']: k for k in KERNELS}\nby_id[0].update(common)\n",
        "def fill(items):\n    for item in items:\n        item.update(common)\n\n\nfill(KERNELS)\n",
        "class Filler:\n    def fill(self, items):\n        items[0].update(common)\n\n\nFiller().fill(KERNELS)\n",
        "list(map(lambda k: k.update(common), KERNELS))\n",
        "[k.update(common) for k in KERNELS]\n",
        "KERNELS[0].setdefault(KEY, SIG)\n",
    ],
)
def test_a_kernel_that_other_code_may_change_is_not_known(text: str) -> None:
    assert lint(program(kernels("") + text)).codes() == []


@pytest.mark.parametrize(
    "text",
    [
        "cases = [{}]\nfor case in cases:\n    case.update(common)\n",
        "print(len(KERNELS), sorted(KERNELS))\n",
        "names = [k['name'] for k in KERNELS]\nnames.append('all')\nregister(names)\n",
        "for k in KERNELS:\n    k.pop('note', None)\n    k['note'] += 'x'\n",
        "def named(items):\n    return [item['name'] for item in items]\n\n\nnamed(KERNELS)\n",
        "KERNELS.append({'func_id': 9, 'source': 'x.cpp', 'core_type': 'aiv'})\n",
        "from simpler_setup.scene_test import build\nbuild(KERNELS[0]['signature'])\n",
        "import os\nHERE = os.path.dirname(__file__)\nos.path.join(HERE, 'x')\n",
    ],
)
def test_a_kernel_that_other_code_only_reads_is_known(text: str) -> None:
    assert lint(program(kernels("") + text), "PTO101").codes() == ["PTO101"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "SIG += [D.OUT]\n"),
        ("OTHER = SIG\nOTHER.append(D.OUT)\n", ""),
        ("", "from _common import fill\nfill(SIG)\n"),
    ],
)
def test_a_shared_signature_that_is_changed_is_not_known(before: str, after: str) -> None:
    sig = "SIG = [D.IN, D.IN]\n"
    assert lint(program(sig + before + kernels(', "signature": SIG') + after)).codes() == []
    assert lint(program(sig + before + kernels(', "signature": [D.IN, D.IN]') + after)).codes() == ["PTO102"]
    assert lint(program(sig + kernels(', "signature": SIG'))).codes() == ["PTO102"]


def test_a_dict_that_unpacks_another_may_hold_anything() -> None:
    assert lint(program(kernels(", **MORE"))).codes() == []
    assert lint(program(kernels(", SIGNATURE: [D.IN]"))).codes() == []


def test_a_runtime_without_a_dump_reads_no_signatures() -> None:
    header = "inline constexpr int CORE_MAX_TENSOR_ARGS = 16;\n"
    dump = "for (int i = 0; i < callable.sig_count(); i++) {}\n"
    files = {**program(kernels("")), "src/arg_direction.h": header}
    assert lint(files).codes() == []
    assert lint({**files, "src/tensor_dump_aicpu.h": dump}).codes() == ["PTO101"]


# signature-short


def test_a_signature_that_leaves_the_last_tensor_out() -> None:
    files = program(signed("IN, IN"))
    assert found(files, "PTO102") == [
        "[D.IN, D.IN]: the signature of kernel 0 has entries for 2 of the 3 tensors [IN, IN, OUT]: "
        "the rest are not dumped"
    ]
    assert beside(files, "PTO102") == ["orch_args.tensor(2).ref(): tensor 2 is added here as OUT"]
    assert fixed(files, "PTO102") == signed("IN, IN, OUT")


def test_a_tensor_left_out_in_the_middle_is_one_finding() -> None:
    files = program(signed("IN, OUT"))
    assert lint(files).codes() == ["PTO102"]
    assert beside(files, "PTO102") == ["orch_args.tensor(1).ref(): tensor 1 is added here as IN"]
    assert fixed(files, "PTO102") == signed("IN, IN, OUT")


def test_a_list_over_several_lines_keeps_its_comments() -> None:
    lines = (
        'KERNELS = [\n    {\n        "func_id": 0,\n        "signature": [\n            D.IN,  # a\n'
        "            D.OUT,  # c\n        ],\n    },\n]\n"
    )
    assert fixed(program(lines), "PTO102") == lines.replace("D.IN,  # a\n", "D.IN,  # a\n            D.IN,\n")


def test_the_enum_is_spelled_as_in_the_file() -> None:
    files = program(signed("IN, IN"))
    files = {path: text.replace("D.", "_D.").replace("as D", "as _D") for path, text in files.items()}
    assert "[_D.IN, _D.IN, _D.OUT]}" in fixed(files, "PTO102")


@pytest.mark.parametrize("signature", ["IN, IN, OUT", "IN, IN, OUT, SCALAR", "IN, IN, OUT, INOUT"])
def test_a_signature_may_be_longer(signature: str) -> None:
    assert lint(program(signed(signature))).codes() == []


MIXED_FOUR = MIXED.replace("MixedKernels", "p.add_input(orch_args.tensor(3).ref());\nMixedKernels")


def test_the_longest_signature_of_a_task_counts() -> None:
    assert lint(program(signed("IN, IN, OUT", "IN", "OUT"), MIXED)).codes() == []
    files = program(signed("IN", "IN, IN", "-"), MIXED)
    assert found(files, "PTO102") == [
        "[D.IN, D.IN]: the signatures of the task's kernels have entries for 2 of the 3 tensors (longest: kernel 1) "
        "[IN, IN, OUT]: the rest are not dumped"
    ]


@pytest.mark.parametrize("shorter", ["", "IN", "IN, IN", "OUT", "IN, OUT", "IN, OUT, SCALAR"])
def test_a_shorter_list_may_begin_or_be_part_of_the_longest(shorter: str) -> None:
    assert lint(program(signed("IN, IN, OUT, IN", shorter, "-"), MIXED_FOUR)).codes() == []


@pytest.mark.parametrize(("shorter", "wrong"), [("IN, INOUT", 1), ("OUT, OUT", 0), ("IN, OUT, OUT", 1), ("INOUT", 0)])
def test_a_shorter_list_that_is_no_part_of_the_longest(shorter: str, wrong: int) -> None:
    files = program(signed("IN, IN, OUT, IN", shorter, "-"), MIXED_FOUR)
    (item,) = lint(files).diagnostics
    entry = shorter.split(", ")[wrong]
    assert item.code == "PTO103"
    assert item.message == (
        f"tensor {wrong} of kernel 1 is `{entry}` here, and the orchestration adds it as `IN`; nor is [{shorter}] a part of "
        "what the task gets, [IN, IN, OUT, IN]: declare all of that"
    )
    assert beside(files, "PTO103") == [f"orch_args.tensor({wrong}).ref(): added here as IN"]
    assert item.fix is None


@pytest.mark.parametrize(
    ("contract", "alone"),
    [
        ("widest", "CoreTaskArgs q;\nq.add_inout(orch_args.tensor(0).ref());\nrt_submit_aiv_task(1, q);\n"),
        ("widest", "CoreTaskArgs q;\nq.add_no_dep(orch_args.tensor(0).ref());\nrt_submit_aiv_task(1, q);\n"),
        ("sum", ""),
    ],
)
def test_a_shorter_list_that_is_right_elsewhere(contract: str, alone: str) -> None:
    assert "PTO103" not in lint(program(signed("IN, IN, OUT, IN", "INOUT", "-"), MIXED_FOUR + alone, contract)).codes()


ARMS = """\
CoreTaskArgs p;
p.add_input(orch_args.tensor(0).ref(), orch_args.tensor(1).ref());
if (first) {
    p.add_output(orch_args.tensor(2).ref());
} else {
    p.add_inout(orch_args.tensor(2).ref());
}
rt_submit_aiv_task(0, p);
"""


def test_a_direction_that_is_right_in_no_arm() -> None:
    files = program(signed("IN, IN, IN"), ARMS)
    assert found(files, "PTO103") == [
        "D.IN: tensor 2 of kernel 0 is `IN` here, and the orchestration adds it as `INOUT` and `OUT`: it is dumped at the "
        "wrong time"
    ]
    assert beside(files, "PTO103") == [
        "orch_args.tensor(2).ref(): added here as INOUT",
        "orch_args.tensor(2).ref(): added here as OUT",
    ]
    assert fixed(files, "PTO103") == signed("IN, IN, IN")


@pytest.mark.parametrize("signature", ["IN, IN, OUT", "IN, IN, INOUT"])
def test_a_direction_that_is_right_in_one_arm(signature: str) -> None:
    assert lint(program(signed(signature), ARMS)).codes() == []


TURNS = """\
for (int k = 0; k < 2; k++) {
    CoreTaskArgs p;
    if (k == 0) {
        p.add_output(orch_args.tensor(k).ref());
    } else {
        p.add_inout(orch_args.tensor(k).ref());
    }
    rt_submit_aiv_task(0, p);
}
"""


def test_turns_of_a_loop_are_one_task() -> None:
    assert lint(program(signed("OUT"), TURNS)).codes() == []
    assert lint(program(signed("IN"), TURNS)).codes() == ["PTO103"]


def test_of_two_lists_of_one_length_the_first_is_told() -> None:
    files = program(signed("IN, IN", "IN, IN", "-"), MIXED)
    assert [item.ops for item in lint(files).diagnostics] == [("kernel 0",)]
    assert beside(files, "PTO102") == ["orch_args.tensor(2).ref(): tensor 2 is added here as OUT"]


def test_the_branch_with_more_tensors_counts() -> None:
    body = THREE + "if (masked) {\n    p.add_input(orch_args.tensor(0).ref());\n}\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(signed("IN, IN, OUT, IN"), body)).codes() == []
    assert lint(program(signed("IN, IN, OUT"), body)).codes() == ["PTO102"]


def test_counts_have_to_be_equal_where_they_add_up() -> None:
    assert lint(program(signed("IN", "IN", "OUT"), MIXED, "sum")).codes() == []
    assert lint(program(signed("IN, SCALAR", "SCALAR, IN, OUT", "-"), MIXED, "sum")).codes() == []
    files = program(signed("IN, IN, OUT", "IN, IN, OUT", "-"), MIXED, "sum")
    assert found(files, "PTO102") == [
        "[D.IN, D.IN, D.OUT]: the signatures of the task's kernels have 6 tensors (longest: kernel 0), "
        "and its payload 3, [IN, IN, OUT]: none of it is dumped (`sum`, says the configuration)"
    ]
    assert beside(files, "PTO102") == ["rt_submit_task(mixed, p): submitted here"]


def test_a_kernel_that_runs_twice_counts_twice_where_they_add_up() -> None:
    twice = THREE + "MixedKernels mixed = {0, 1, 1};\nrt_submit_task(mixed, p);\n"
    assert lint(program(signed("IN", "IN, OUT"), twice, "sum")).codes() == ["PTO102"]
    assert lint(program(signed("IN, IN, OUT", "-"), twice, "sum")).codes() == []


def test_a_prefix_is_short_where_counts_have_to_be_equal() -> None:
    body = ALONE + "CoreTaskArgs q;\nq.add_input(orch_args.tensor(0).ref());\nrt_submit_aiv_task(0, q);\n"
    assert lint(program(signed("IN, IN, OUT"), body)).codes() == []
    linted = lint(program(signed("IN, IN, OUT"), body, "sum"))
    assert [(item.code, item.fix) for item in linted.diagnostics] == [("PTO102", None)]


def test_slots_are_covered_by_name_where_entries_name_them() -> None:
    halves = kernels(
        ', "signature": [D.OUT], "arg_index": [2]', ', "signature": [D.IN, D.IN], "arg_index": list(range(2))', ""
    )
    assert lint(program(halves, MIXED, "arg-index")).codes() == []
    short = program(halves.replace("range(2)", "[0, 2]"), MIXED, "arg-index")
    assert found(short, "PTO102") == [
        "[D.IN, D.IN]: the signatures of the task's kernels have entries for 2 of the 3 tensors (longest: kernel 1) "
        "[IN, IN, OUT]: the rest are not dumped (`arg-index`, says the configuration)"
    ]
    assert beside(short, "PTO102") == ["orch_args.tensor(1).ref(): tensor 1 is added here as IN"]


# signature-direction


def test_a_direction_that_is_not_how_the_tensor_is_added() -> None:
    files = program(signed("IN, OUT, OUT"))
    assert found(files, "PTO103") == [
        "D.OUT: tensor 1 of kernel 0 is `OUT` here, and the orchestration adds it as `IN`: it is dumped at the wrong time"
    ]
    assert beside(files, "PTO103") == ["orch_args.tensor(1).ref(): added here as IN"]
    assert fixed(files, "PTO103") == signed("IN, IN, OUT")


def test_all_wrong_directions_of_a_kernel_are_one_finding() -> None:
    files = program(signed("OUT, OUT, IN"))
    assert found(files, "PTO103") == [
        "D.OUT: 3 tensors of kernel 0 have other directions here than in the orchestration, so that they are dumped at the wrong"
        " time: declared `OUT`, added as `IN`: 0, 1; declared `IN`, added as `OUT`: 2"
    ]
    assert fixed(files, "PTO103") == signed("IN, IN, OUT")


@pytest.mark.parametrize("direction", ["IN", "OUT", "INOUT"])
def test_any_direction_is_right_without_dependencies(direction: str) -> None:
    body = "CoreTaskArgs p;\np.add_no_dep(orch_args.tensor(0).ref());\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(signed(direction), body)).codes() == []


def test_branches_that_differ_leave_a_tensor_open() -> None:
    body = (
        "CoreTaskArgs p;\nif (is_first) {\n    p.add_output(orch_args.tensor(2).ref());\n} else {\n"
        "    p.add_inout(orch_args.tensor(2).ref());\n}\nrt_submit_aiv_task(0, p);\n"
    )
    for direction in ("OUT", "INOUT"):
        assert lint(program(signed(direction), body)).codes() == []


def test_only_the_longest_signature_of_a_task_is_read() -> None:
    assert lint(program(signed("OUT", "IN, IN, OUT", "-"), MIXED)).codes() == []
    assert found(program(signed("IN, IN, IN", "IN, IN, OUT", "-"), MIXED), "PTO103") == [
        "D.IN: tensor 2 of kernel 0 is `IN` here, and the orchestration adds it as `OUT`: it is dumped at the wrong time"
    ]


def test_the_cube_kernel_is_read_first_where_entries_add_up() -> None:
    body = (
        THREE + "MixedKernels mixed;\nmixed.aiv0_kernel_id = 0;\nmixed.aic_kernel_id = 1;\nrt_submit_task(mixed, p);\n"
    )
    assert lint(program(signed("OUT", "IN, IN"), body, "sum")).codes() == []
    assert len(found(program(signed("IN, IN", "OUT"), body, "sum"), "PTO103")) == 2


def test_each_kernel_says_what_it_does_itself_where_entries_name_their_slots() -> None:
    body = (
        "CoreTaskArgs p;\np.add_input(orch_args.tensor(0).ref());\np.add_inout(orch_args.tensor(2).ref());\n"
        "MixedKernels mixed = {0, 1, 1};\nrt_submit_task(mixed, p);\n"
    )
    write, read = ', "signature": [D.IN, D.OUT], "arg_index": [0, 1]', ', "signature": [D.IN], "arg_index": [1]'
    assert lint(program(kernels(write, read), body, "arg-index")).codes() == []
    wrong = read.replace("D.IN", "D.OUT").replace("[1]", "[0]")
    assert len(found(program(kernels(write, wrong), body, "arg-index"), "PTO103")) == 1


# first-call-wins

TWICE = ALONE + (
    "CoreTaskArgs q;\nq.add_input(orch_args.tensor(0).ref());\nq.add_inout(orch_args.tensor(1).ref());\n"
    "rt_submit_aiv_task(0, q);\n"
)


def test_two_tasks_that_add_a_tensor_in_different_ways() -> None:
    files = program(signed("IN, INOUT, OUT"), TWICE)
    assert lint(files).codes() == ["PTO111"]
    assert found(files, "PTO111") == [
        "D.INOUT: tensor 1 of kernel 0 is added as `IN` and `INOUT` by different tasks, and `INOUT` is right for one of "
        "them only: add it alike, or give the kernel another id"
    ]
    assert beside(files, "PTO111") == [
        "orch_args.tensor(1).ref(): added here as IN",
        "orch_args.tensor(1).ref(): added here as INOUT",
    ]


def test_a_direction_that_is_right_for_neither_task_is_wrong() -> None:
    files = program(signed("IN, OUT, OUT"), TWICE)
    assert lint(files).codes() == ["PTO103"]
    assert [item.fix for item in lint(files).diagnostics] == [None]


def test_a_kernel_that_runs_twice_in_one_task_is_no_two_tasks() -> None:
    body = (
        "CoreTaskArgs p;\np.add_input(orch_args.tensor(0).ref());\np.add_output(orch_args.tensor(2).ref());\n"
        "MixedKernels mixed = {1, 0, 0};\nrt_submit_task(mixed, p);\n"
    )
    assert lint(program(signed("IN", "-"), body, "sum")).codes() == []


# scalar-position


def test_a_scalar_before_a_tensor_shifts_the_rest() -> None:
    files = program(signed("IN, SCALAR, IN, OUT"))
    assert found(files, "PTO104") == [
        "D.SCALAR: a scalar precedes a tensor in the signature of kernel 0, and shifts all directions after it: "
        "put it last, or leave it out"
    ]
    assert [(item.code, item.severity.value) for item in lint(files).diagnostics] == [("PTO104", "warning")]
    assert fixed(files, "PTO104") == signed("IN, IN, OUT, SCALAR")


def test_a_fix_that_would_remove_a_comment_is_not_safe() -> None:
    plain = signed("IN, SCALAR, IN, OUT")
    lines = plain.replace("D.SCALAR, ", "D.SCALAR,  # rows\n        ")
    for config, safety in ((plain, "safe"), (lines, "unsafe")):
        [finding] = lint(program(config), "PTO104").diagnostics
        assert finding.fix is not None
        assert finding.fix.safety == safety
    assert fixed(program(lines), "PTO104") == lines


@pytest.mark.parametrize("contract", ["sum", "arg-index"])
def test_older_runtimes_pass_over_scalars_in_a_signature(contract: str) -> None:
    text = ', "signature": [D.IN, D.SCALAR, D.IN, D.OUT], "arg_index": [0, 0, 1, 2]'
    assert lint(program(kernels(text), contract=contract)).codes() == []


def test_a_scalar_before_a_tensor_of_the_orchestration_is_an_error() -> None:
    part = (
        'ORCHESTRATION = {"source": "orchestration/main.cpp", "function_name": "aicpu_orchestration_entry", '
        '"signature": [D.IN, D.SCALAR, D.IN, D.SCALAR]}\n'
    )
    linted = lint(program(signed("IN, IN, OUT") + part), "PTO104")
    assert [(linted.text(item.place), item.severity.value) for item in linted.diagnostics] == [("D.SCALAR", "error")]


def test_a_tensor_behind_a_scalar_is_an_error() -> None:
    body = "CoreTaskArgs p;\np.add_scalar(4);\np.add_input(orch_args.tensor(0).ref());\nrt_submit_aiv_task(0, p);\n"
    files = program(signed("IN"), body)
    assert found(files, "PTO104") == [
        "orch_args.tensor(0).ref(): a tensor is added after a scalar, so that the runtime rejects the task: "
        "add all tensors first"
    ]
    assert beside(files, "PTO104") == ["4: the scalar"]


def test_a_payload_that_is_reset_begins_anew() -> None:
    body = "CoreTaskArgs p;\np.add_scalar(4);\np.reset();\np.add_input(orch_args.tensor(0).ref());\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(signed("IN"), body)).codes() == []


@pytest.mark.parametrize(
    ("head", "signature"),
    [
        ("", "[D.IN] * 2 + [D.INOUT]"),
        ("", "[*[D.IN, D.IN], D.INOUT]"),
        ("", "[D.IN if n < 2 else D.INOUT for n in range(3)]"),
        ("BOTH = [D.IN, D.IN]\n", "BOTH + [D.INOUT]"),
        (
            'DIRS = {"i": D.IN, "x": D.INOUT}\n\n\ndef made(text):\n    return [DIRS[c] for c in text]\n\n\n',
            'made("iix")',
        ),
    ],
)
def test_a_computed_signature_is_known_and_not_edited(head: str, signature: str) -> None:
    files = program(head + kernels(f', "signature": {signature}'))
    assert found(files, "PTO103") == [
        f"{signature}: tensor 2 of kernel 0 is `INOUT` here, and the orchestration adds it as `OUT`: "
        "it is dumped at the wrong time"
    ]
    assert [item.fix for item in lint(files, "PTO103").diagnostics] == [None]

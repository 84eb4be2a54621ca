"""Counts of arguments against the limits of the runtime, and the parallel list that some runtimes ask for."""

from __future__ import annotations

import pytest

from opschema_rules.pypto.examples import SOURCE
from tests.rules.pypto.programs import ALONE, MIXED, THREE, beside, found, kernels, lint, program, signed

SEVENTEEN = (
    "CoreTaskArgs p;\n"
    + "p.add_input(orch_args.tensor(0).ref());\n" * 16
    + "p.add_output(orch_args.tensor(2).ref());\n"
)
WIDE = ", ".join(["IN"] * 16 + ["OUT"])


def limits(**values: int) -> dict[str, str]:
    """A runtime's header with these limits: ``CORE_TENSOR=16``."""
    lines = [f"inline constexpr int {name.replace('_', '_MAX_')}_ARGS = {number};\n" for name, number in values.items()]
    dump = "// the widest signature drives\n"
    return {"src/common/arg_direction.h": "".join(lines), "src/platform/args_dump_aicpu.h": dump}


@pytest.mark.parametrize(("room", "expected"), [(16, ["PTO105", "PTO105"]), (17, []), (32, [])])
def test_a_task_of_two_kernels_with_seventeen_tensors(room: int, expected: list[str]) -> None:
    body = SEVENTEEN + "MixedKernels mixed = {0, 1, 1};\nrt_submit_task(mixed, p);\n"
    assert lint({**program(signed(WIDE, WIDE), body), **limits(CORE_TENSOR=room)}).codes() == expected


def test_a_signature_beyond_the_limit() -> None:
    files = {**program(signed(WIDE), SEVENTEEN + "rt_submit_aiv_task(0, p);\n"), **limits(CORE_TENSOR=16)}
    assert found(files, "PTO105") == [
        "D.OUT: the signature of kernel 0 has 17 entries, and the runtime takes 16 (src/common/arg_direction.h): split the kernel"
    ]
    assert beside(files, "PTO105") == ["orch_args.tensor(2).ref(): tensor 16 is added here"]


def test_scalars_of_a_signature_take_room() -> None:
    files = {**program(signed("IN, IN, OUT, SCALAR")), **limits(CORE_TENSOR=3)}
    assert found(files, "PTO105") == [
        "D.SCALAR: the signature of kernel 0 has 4 entries, and the runtime takes 3 (src/common/arg_direction.h): "
        "leave the scalars out"
    ]


def test_a_payload_beyond_the_limit() -> None:
    files = program(kernels(', "signature": make()'), options="max-tensors = 2")
    assert found(files, "PTO105") == [
        "orch_args.tensor(2).ref(): the payload has more than 2 tensors from here on, and the runtime rejects the task "
        "(the configuration, the newest runtime): split it"
    ]


def test_two_tasks_with_one_payload_are_one_finding() -> None:
    body = THREE + "rt_submit_aiv_task(0, p);\nrt_submit_aiv_task(1, p);\n"
    linted = lint(program(kernels("", ""), body, options="max-tensors = 2"), "PTO105")
    assert [item.ops for item in linted.diagnostics] == [("kernel 0", "kernel 1")]


def test_scalars_have_a_limit_of_their_own() -> None:
    body = "CoreTaskArgs p;\np.add_scalar(1, 2);\np.add_scalars(values, 3);\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(kernels(""), body, options="max-scalars = 5")).codes() == []
    assert found(program(kernels(""), body, options="max-scalars = 4"), "PTO105") == [
        "p.add_scalars(values, 3): the payload has more than 4 scalars from here on, and the runtime rejects the task "
        "(the configuration, the newest runtime): split it"
    ]


def test_scalars_of_an_unknown_count_are_none() -> None:
    body = "CoreTaskArgs p;\np.add_scalar(1);\np.add_scalars(values, count);\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(kernels(""), body, options="max-scalars = 1")).codes() == []


def test_a_limit_that_the_header_does_not_name_is_not_known() -> None:
    body = "CoreTaskArgs p;\np.add_scalars(values, 100);\nrt_submit_aiv_task(0, p);\n"
    assert lint(program(kernels(""), body)).codes() == ["PTO105"]
    assert lint({**program(kernels(""), body), **limits(CORE_TENSOR=16, CHIP_TENSOR=16)}).codes() == []


def test_the_orchestration_has_limits_of_its_own() -> None:
    files = {**program(signed("IN, IN, OUT")), **limits(CORE_TENSOR=32, CORE_SCALAR=16, CHIP_TENSOR=2, CHIP_SCALAR=1)}
    assert found(files, "PTO105") == [
        "D.OUT: the orchestration's `signature` has 3 entries, and the runtime takes 2 (src/common/arg_direction.h)"
    ]


def test_more_arguments_expected_than_there_is_room_for() -> None:
    configuration = (
        'extern "C" Config aicpu_orchestration_config(const ChipTaskArgs &args) {{\n'
        "    return Config{{ .expected_arg_count = {} }};\n}}\n"
    )
    files = program(signed("IN, IN, OUT"))
    room = {**files, SOURCE: files[SOURCE] + configuration.format(384)}
    assert lint(room).codes() == []
    beyond = {**files, SOURCE: files[SOURCE] + configuration.format(385)}
    assert found(beyond, "PTO105") == [
        "385: `expected_arg_count` is 385, and the runtime passes 256 tensors and 128 scalars at most "
        "(the newest runtime)"
    ]


# arg-index


def test_a_signature_without_the_parallel_list() -> None:
    files = program(signed("IN, IN, OUT"), contract="arg-index")
    linted = lint(files)
    assert [(item.code, item.severity.value) for item in linted.diagnostics] == [("PTO112", "error")]
    assert found(files, "PTO112") == [
        "[D.IN, D.IN, D.OUT]: kernel 0 has a `signature` and no `arg_index`, which the runtime requires: "
        "list the tensor of each entry (`arg-index`, says the configuration)"
    ]


def test_a_parallel_list_of_another_length() -> None:
    text = ', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1]'
    assert found(program(kernels(text), contract="arg-index"), "PTO112") == [
        "[0, 1]: the `arg_index` of kernel 0 has 2 numbers, and its `signature` 3 entries: the runtime rejects it "
        "(`arg-index`, says the configuration)"
    ]
    assert lint(program(kernels(text))).codes() == []


def test_a_number_that_no_task_has_a_tensor_for() -> None:
    text = ', "signature": [D.IN, D.IN, D.OUT, D.IN], "arg_index": [0, 1, 2, 3]'
    linted = lint(program(kernels(text), contract="arg-index"))
    assert [(linted.text(item.place), item.severity.value) for item in linted.diagnostics] == [("3", "warning")]


@pytest.mark.parametrize(
    "written", ["[*range(3)]", "make()", "range(size)", "[0, 1, two]", "{0, 1, 2}", "[0] + [1, 2]", "SLOTS"]
)
def test_a_parallel_list_that_is_not_known(written: str) -> None:
    text = f', "signature": [D.IN, D.IN, D.OUT], "arg_index": {written}'
    assert lint(program(kernels(text), contract="arg-index")).codes() == []


def test_a_parallel_list_that_is_computed() -> None:
    text = ', "signature": [D.IN, D.IN, D.OUT], "arg_index": '
    assert len(found(program(kernels(text + "list(range(-1))"), contract="arg-index"), "PTO112")) == 1
    (short,) = found(program("SLOTS = [0, 1]\n" + kernels(text + "SLOTS"), contract="arg-index"), "PTO112")
    assert short.startswith("SLOTS: the `arg_index` of kernel 0 has 2 numbers, and its `signature` 3 entries")
    (beyond,) = found(program(kernels(text + "[i + 2 for i in range(3)]"), contract="arg-index"), "PTO112")
    assert beyond.endswith("kernel 0 declares tensors 3 and 4, and no task of it has more than 3")


@pytest.mark.parametrize(
    ("written", "before", "after"),
    [
        ("SLOTS", "SLOTS = [0, 1]\nALSO = SLOTS\nALSO.append(2)\n", ""),
        ("SLOTS", "SLOTS = [0, 1]\nSLOTS.append(2)\n", ""),
        ("SLOTS", "SLOTS = [0, 1]\nSLOTS += [2]\n", ""),
        ("SLOTS", "def add(z):\n    z.append(2)\n\n\nSLOTS = [0, 1]\nadd(SLOTS)\n", ""),
        ("SLOTS", "SLOTS = [0, 1]\n", "for item in KERNELS:\n    SLOTS.append(2)\n"),
        ("SLOTS", "import bisect\nSLOTS = [0, 2]\nbisect.insort(SLOTS, 1)\n", ""),
        ("SLOTS", "from other import SLOTS\n", ""),
        ("make([0, 1])", "def make(x):\n    add(x)\n    return x\ndef add(z):\n    z.append(2)\n", ""),
        ("make([0, 1])", "def make(x):\n    x.append(2)\n    return x\n", ""),
        ("list({0, 1, 1, 2})", "", ""),
        ("list(set([0, 1, 1, 2]))", "", ""),
        ("sorted(SLOTS)", "SLOTS = {0, 1, 1, 2}\n", ""),
        ("[0, 1]", "", "KERNELS[0]['arg_index'].append(2)\n"),
        ("[0, 1]", "", "KERNELS[0]['arg_index'].insert(0, 2)\n"),
        ("[0, 1]", "", "KERNELS[0]['arg_index'] += [2]\n"),
        ("[0, 1]", "", "for item in KERNELS:\n    item.update(arg_index=list(range(3)))\n"),
        ("[0, 1]", "", "for item in KERNELS:\n    item.update({'arg_index': [0, 1, 2]})\n"),
        ("[0, 1]", "FIELD = 'arg_index'\n", "KERNELS[0][FIELD] = [0, 1, 2]\n"),
    ],
)
def test_a_parallel_list_that_may_change(written: str, before: str, after: str) -> None:
    text = f', "signature": [D.IN, D.IN, D.OUT], "arg_index": {written}'
    assert lint(program(before + kernels(text) + after, contract="arg-index")).codes() == []


def test_kernels_that_declare_nothing_need_no_list() -> None:
    whole = ', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 2]'
    assert lint(program(kernels("", whole, ', "signature": []'), MIXED, "arg-index")).codes() == []
    assert lint(program(kernels(whole), ALONE, "arg-index")).codes() == []


@pytest.mark.parametrize(
    "signature",
    [
        "[D.IN] * 14 + [D.SCALAR] * 5",
        "[D.IN for _ in range(19)]",
        "make(19)",
        "[*[D.IN] * 18, D.OUT]",
        "[D.IN, *REST]",
        "list((D.IN,) * COUNT)",
        "[(D.IN if i < 18 else D.OUT) for i in range(COUNT)]",
        "[getattr(D, name) for name in NAMES]",
        "[WORDS[letter] for letter in 'i' * 19]",
    ],
)
def test_a_computed_signature_beyond_the_limit(signature: str) -> None:
    names = 'COUNT = 19\nREST = [D.OUT] * 18\nNAMES = ["IN"] * 19\nWORDS = {"i": D.IN}\n\n\n'
    config = f"{names}def make(n):\n    return [D.IN] * n\n\n\n" + kernels(f', "signature": {signature}')
    (finding,) = found(program(config, options="max-tensors = 16"), "PTO105")
    assert "the signature of kernel 0 has 19 entries, and the runtime takes 16" in finding

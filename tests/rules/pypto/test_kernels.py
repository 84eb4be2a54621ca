"""PTO108 and PTO109: places, messages and fixes, and what looks wrong and is right."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Linted, fix_files, lint_files
from opschema_rules.pypto.examples import CONFIG, example_files
from opschema_rules.pypto.pack import PACK

CODES = ("PTO108", "PTO109")
PAYLOAD = "CoreTaskArgs p;\np.add_input(orch_args.tensor(0).ref());\n"


def kernels(*items: tuple[int, str, str, str]) -> str:
    """Kernels by ``func_id``, ``name``, source and ``core_type``."""
    rows = (
        f'    {{"func_id": {number}, "name": "{name}", "source": "kernels/{core}/{source}.cpp", "core_type": "{core}"}},\n'
        for number, name, source, core in items
    )
    return f"KERNELS = [\n{''.join(rows)}]\n"


TWO = kernels((0, "mul", "mul", "aic"), (1, "add", "add", "aiv"))


def lint(config: str, body: str = "") -> Linted:
    return lint_files([PACK], example_files([("python", config), ("cpp", f"{PAYLOAD}{body}\n")]), CODES)


def found(config: str, body: str = "") -> list[tuple[str, str]]:
    """The text at each finding's place, and at its other sides."""
    linted = lint(config, body)
    return [
        (linted.text(item.place), " / ".join(linted.text(other.place) for other in item.related))
        for item in linted.diagnostics
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("rt_submit_aic_task(0, p); rt_submit_aiv_task(1, p);", []),
        ("rt_submit_aiv_task(0, p);", [('"aic"', "0")]),
        ("rt_submit_aiv_task(0, p); rt_submit_aiv_task(0, p);", [('"aic"', "0 / 0")]),
        ("rt_submit_aic_task(0, p); rt_submit_aiv_task(0, p);", [("0", '"aic"')]),
        ("rt_submit_task(MixedKernels{0, 1, 1}, p);", []),
        ("MixedKernels m = {0, 1, 1}; rt_submit_task(m, p);", []),
        ("MixedKernels m = {1, 0}; rt_submit_task(m, p);", [('"aic"', "0"), ('"aiv"', "1")]),
        ("MixedKernels m; m.aiv1_kernel_id = 0; rt_submit_task(m, p);", [('"aic"', "0")]),
        ("rt_submit_task(0, p);", []),
        ("rt_submit_aiv_task(orch_args.scalar(0), p);", []),
        ("for (int i = 0; i < n; i++) rt_submit_aiv_task(i, p);", []),
        ("for (int i = 0; i < 2; i++) rt_submit_aiv_task(i, p);", [('"aic"', "i")]),
        ("#if CUBE\nrt_submit_aic_task(1, p);\n#else\nrt_submit_aiv_task(1, p);\n#endif", []),
    ],
)
def test_cores(body: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(found(TWO, body)) == sorted(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("rt_submit_aiv_task(2, p);", [("2", "error")]),
        ("const int FUNC = 3; rt_submit_aiv_task(FUNC, p);", [("FUNC", "error")]),
        ("MixedKernels m = {0, 4}; rt_submit_task(m, p);", [("4", "error")]),
        ("if (n) rt_submit_aiv_task(2, p);", [("2", "warning")]),
        ("if (n) return; rt_submit_aiv_task(2, p);", [("2", "warning")]),
        ("while (n) rt_submit_aiv_task(2, p);", [("2", "warning")]),
        ("rt_submit_aiv_task(2, p); elsewhere(orch_args);", [("2", "warning")]),
        ("#ifdef FAST\nrt_submit_aiv_task(2, p);\n#endif", []),
        ("#define FAST 0\n#if FAST\nrt_submit_aiv_task(2, p);\n#else\nrt_submit_aiv_task(3, p);\n#endif", []),
        ("#ifdef FAST\nuse(n);\n#endif\nrt_submit_aiv_task(2, p);", [("2", "error")]),
        ("rt_submit_aiv_task(INVALID_KERNEL_ID, p);", []),
        ("rt_submit_aiv_task(UNKNOWN_ID, p);", []),
    ],
)
def test_an_id_that_no_kernel_has(body: str, expected: list[tuple[str, str]]) -> None:
    linted = lint(TWO, body)
    assert [(linted.text(item.place), item.severity.value) for item in linted.diagnostics] == expected


@pytest.mark.parametrize(
    ("body", "expected"), [("rt_submit_aiv_task(2, p);", "error"), ("if (n) rt_submit_aiv_task(2, p);", "info")]
)
def test_programs_that_share_an_orchestration_may_each_register_what_they_need(body: str, expected: str) -> None:
    texts = example_files([("python", TWO), ("cpp", f"{PAYLOAD}{body}\n")])
    texts["other/kernel_config.py"] = texts[CONFIG].replace("_ROOT_DIR /", '_ROOT_DIR / ".." / "program" /')
    found = lint_files([PACK], texts, CODES).diagnostics
    assert {item.severity.value for item in found} == {expected}
    assert sum(len(item.related) for item in found) == 2


@pytest.mark.parametrize(
    "config",
    [
        TWO + 'KERNELS.append({"func_id": 2, "source": "kernels/aiv/more.cpp", "core_type": "aiv"})\n',
        TWO + "KERNELS += more()\n",
        TWO.replace("]", "    *more,\n]"),
        TWO.replace('"func_id": 1', '"func_id": ADD'),
        "KERNELS = made()\n",
    ],
)
def test_an_id_that_may_be_registered_elsewhere(config: str) -> None:
    assert found(config, "rt_submit_aiv_task(2, p);") == []


def test_callables_of_a_case_that_need_not_be_run_may_lack_kernels() -> None:
    callables = """\
from simpler.task_interface import ArgDirection as D


class TestCase:
    CALLABLE = {
        "callables": [
            {
                "orchestration": {"source": "orchestration/main.cpp", "function_name": "aicpu_orchestration_entry"},
                "incores": [{"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"}],
            },
        ],
    }
"""
    texts = example_files([("cpp", f"{PAYLOAD}rt_submit_aiv_task(2, p);\n")])
    del texts[CONFIG]
    alone = callables.replace('        "callables": [\n            {\n', "").replace("            },\n        ],\n", "")
    assert lint_files([PACK], {**texts, "program/test_case.py": callables}, CODES).diagnostics == []
    assert len(lint_files([PACK], {**texts, "program/test_case.py": alone}, CODES).diagnostics) == 1


def test_one_id_for_several_kernels() -> None:
    config = kernels(
        (3, "add", "add", "aiv"), (3, "mul", "mul", "aiv"), (3, "sub", "sub", "aiv"), (4, "div", "div", "aiv")
    )
    linted = lint(config)
    assert [item.message for item in linted.diagnostics] == [
        "`func_id` 3 is also that of `add`, which `mul` replaces: give one of them another id",
        "`func_id` 3 is also that of `add`, which `sub` replaces: give one of them another id",
    ]
    assert [linted.position(item.place).line for item in linted.diagnostics] == [9, 10]


def swapped(*names: tuple[str, str]) -> list[str]:
    config = kernels(*((number, name, source, "aiv") for number, (name, source) in enumerate(names)))
    return [item.message for item in lint(config).diagnostics]


@pytest.mark.parametrize(
    "names",
    [
        (("PV", "aiv_softmax_prepare"), ("SF", "aic_pv_matmul")),
        (("softmax", "matmul"), ("matmul", "softmax")),
        (("KERNEL_ADD", "kernel_mul"), ("KERNEL_MUL", "kernel_add")),
        (("tileAdd", "gemm"), ("GEMM", "kernel_tile_add")),
    ],
)
def test_names_that_are_swapped(names: tuple[tuple[str, str], ...]) -> None:
    ((one, first), (other, second)) = names
    message = f"the names `{one}` and `{other}` are swapped: `{first}` is called `{one}`, and `{second}` `{other}`"
    assert swapped(*names) == [message]


@pytest.mark.parametrize(
    "names",
    [
        (("SF", "aiv_softmax_prepare"), ("PV", "aic_pv_matmul")),
        (("add", "add"), ("add_two", "add")),
        (("add", "add"), ("mul", "add")),
        (("first", "second"), ("third", "first")),
        (("add_mul", "mul_add"), ("mul_add", "add_mul")),
        (("a", "add_b"), ("b", "bind_a")),
        (("stage1", "stage2"), ("other", "stage1")),
        (("", "add"), ("add", "")),
        (("é", "add"), ("add", "x")),
    ],
)
def test_names_that_are_not_swapped(names: tuple[tuple[str, str], ...]) -> None:
    assert swapped(*names) == []


def test_the_fix_swaps_the_names() -> None:
    config = kernels((0, "PV", "softmax", "aiv"), (1, "SF", "pv_matmul", "aic"))
    changed, left = fix_files([PACK], example_files([("python", config)]), CODES)
    assert kernels((0, "SF", "softmax", "aiv"), (1, "PV", "pv_matmul", "aic")) in changed[CONFIG]
    assert left.diagnostics == []


COMPUTED = """\
NAMES = [(0, "one", "io"), (%d, "two", "ii")]
DIRS = {"i": D.IN, "o": D.OUT}


def made(number, name, text="i"):
    return {"func_id": number, "name": name, "core_type": "aic", "signature": [DIRS[c] for c in text]}


KERNELS = %s
"""


@pytest.mark.parametrize(
    ("listed", "place"),
    [
        ("[made(*item) for item in NAMES]", "made(*item)"),
        ("[made(0, 'one'), made(%d, 'two')]", "made(0, 'two')"),
        ('[{"func_id": n, "name": name, "core_type": "aic"} for n, name, _ in NAMES]', "n"),
        ('[*[{"func_id": n, "name": name, "core_type": "aic"} for n, name, _ in NAMES]]', "n"),
    ],
)
def test_kernels_that_a_comprehension_or_a_function_makes(listed: str, place: str) -> None:
    def config(second: int) -> str:
        return COMPUTED % (second, listed.replace("%d", str(second)))

    assert [at for at, _ in found(config(0))] == [place]
    body = "rt_submit_aic_task(1, p); rt_submit_aiv_task(0, p); rt_submit_aic_task(2, p);"
    assert sorted(item.message for item in lint(config(1), body).diagnostics) == [
        "a task names kernel `2`, and `KERNELS` has no kernel with this `func_id`",
        "kernel 0 (`one`) is built for `aic`, and its tasks run it on `aiv`",
    ]


def test_swapped_names_of_computed_kernels_are_not_edited() -> None:
    pairs = '[(0, "PV", "softmax"), (1, "SF", "pv_matmul")]'
    config = f"KERNELS = [\n    {{'func_id': n, 'name': t, 'source': f'{{s}}.cpp'}} for n, t, s in {pairs}\n]\n"
    assert [(item.name, item.fix) for item in lint(config).diagnostics] == [("name-source", None)]


SCENE = """\
def incore(source, number=0):
    return {"func_id": number, "name": "one", "source": source, "core_type": "aic", "signature": [D.IN]}


MODES = [
    {
        "name": "ring",
        "orchestration": {"source": "kernels/orchestration/orch.cpp", "function_name": "build"},
        "incores": [incore("kernels/aic/one.cpp"), incore("kernels/aic/two.cpp")],
    }
]


class TestRing:
    CALLABLE = {"orchestration": run, "callables": MODES}


class TestRingAgain:
    CALLABLE = {"orchestration": run, "callables": MODES}
"""


def test_callables_that_several_classes_share_are_judged_once() -> None:
    assert found(SCENE) == [('incore("kernels/aic/two.cpp")', 'incore("kernels/aic/one.cpp")')]

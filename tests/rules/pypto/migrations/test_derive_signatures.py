"""Signatures as the orchestration calls for them, in the layout and the words of the file."""

from __future__ import annotations

import random

import pytest

from opschema_cli.testing import Migrated, lint_files, migrate_files
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.examples import CONFIG, HEAD
from opschema_rules.pypto.load import load_programs
from opschema_rules.pypto.pack import PACK
from opschema_rules.pypto.task_matching import tasks
from tests.rules.pypto.programs import ALONE, MIXED, THREE, kernels, program, signed

BODIES = {"alone": ALONE, "mixed": MIXED}

NO_DEP = """\
CoreTaskArgs p;
p.add_input(orch_args.tensor(0).ref());
p.add_no_dep(orch_args.tensor(1).ref());
rt_submit_aiv_task(0, p);
"""

BRANCHED = """\
CoreTaskArgs p;
p.add_input(orch_args.tensor(0).ref());
if (first) {
    p.add_output(orch_args.tensor(1).ref());
} else {
    p.add_inout(orch_args.tensor(1).ref());
}
rt_submit_aiv_task(0, p);
"""

LONGER = THREE + "rt_submit_aiv_task(0, p);\np.add_inout(orch_args.tensor(2).ref());\nrt_submit_aiv_task(0, p);\n"

CONTRARY = (
    THREE + "rt_submit_aiv_task(0, p);\nCoreTaskArgs q;\nq.add_inout(orch_args.tensor(0).ref());\n"
    "rt_submit_aiv_task(0, q);\n"
)


def derive(files: dict[str, str], *options: str) -> Migrated:
    return migrate_files(PACK, "derive-signatures", files, options)


def lists(done: Migrated) -> list[str]:
    """The text after the core of each kernel."""
    config = done.files[CONFIG].partition("KERNELS")[2].partition("]\nORCHESTRATION")[0]
    return [line.partition('"core_type": "aiv"')[2].removesuffix("},") for line in config.splitlines()[1:] if line]


@pytest.mark.parametrize(
    ("contract", "body", "before", "after"),
    [
        ("", ALONE, ["-"], ["IN, IN, OUT"]),
        ("", ALONE, [""], ["IN, IN, OUT"]),
        ("", ALONE, ["IN, OUT"], ["IN, IN, OUT"]),
        ("", ALONE, ["IN, IN, INOUT"], ["IN, IN, OUT"]),
        ("", ALONE, ["IN, SCALAR, OUT"], ["IN, IN, OUT, SCALAR"]),
        ("", ALONE, ["IN, IN, OUT, SCALAR"], ["IN, IN, OUT, SCALAR"]),
        ("", ALONE, ["IN, IN, OUT, INOUT"], ["IN, IN, OUT, INOUT"]),
        ("", MIXED, ["-", "-", "-"], ["IN, IN, OUT", "IN, IN, OUT", "IN, IN, OUT"]),
        ("", MIXED, ["-", "IN, IN, OUT", "IN"], ["-", "IN, IN, OUT", "IN"]),
        ("", MIXED, ["IN, IN, OUT", "-", "IN, IN, SCALAR"], ["IN, IN, OUT", "-", "IN, IN, SCALAR"]),
        ("", MIXED, ["-", "IN, IN", "IN"], ["-", "IN, IN, OUT", "IN"]),
        ("", NO_DEP, ["-"], ["IN, INOUT"]),
        ("", NO_DEP, ["INOUT, OUT"], ["IN, OUT"]),
        ("", NO_DEP, ["IN, OUT"], ["IN, OUT"]),
        ("", LONGER, ["IN, IN, OUT"], ["IN, IN, OUT, INOUT"]),
        ("sum", ALONE, ["IN, OUT"], ["IN, IN, OUT"]),
        ("sum", ALONE, ["IN, IN, OUT, OUT"], ["IN, IN, OUT"]),
        ("sum", ALONE, ["IN, SCALAR, IN, OUT"], ["IN, SCALAR, IN, OUT"]),
        ("sum", MIXED, ["-", "-", "-"], ["IN, IN, OUT", "-", "-"]),
        ("sum", MIXED, ["-", "IN", "-"], ["-", "IN, IN, OUT", "-"]),
        ("sum", MIXED, ["IN", "IN", "OUT"], ["IN", "IN", "OUT"]),
        ("sum", MIXED, ["IN", "OUT", "OUT"], ["IN", "IN", "OUT"]),
    ],
)
def test_what_is_derived(contract: str, body: str, before: list[str], after: list[str]) -> None:
    done = derive(program(signed(*before), body, contract))
    assert done.files[CONFIG].startswith(HEAD + signed(*after))
    assert done.notes() == []


@pytest.mark.parametrize(
    ("contract", "body", "before", "reason"),
    [
        ("", BRANCHED, "-", "the branches before its task add tensors in different ways"),
        ("", CONTRARY, "", "its tasks add tensors in different ways"),
        ("sum", LONGER, "IN, IN", "its tasks add tensors in different ways"),
        ("", "CoreTaskArgs p;\nfill(p);\nrt_submit_aiv_task(0, p);\n", "-", "fill"),
        ("", ALONE + "rt_submit_aiv_task(unknown_id, p);\n", "-", "a kernel that is not known"),
        ("sum", THREE + "MixedKernels m = {0, 0};\nrt_submit_task(m, p);\n", "IN, IN", "it is not known which kernel"),
    ],
)
def test_what_a_person_has_to_say(contract: str, body: str, before: str, reason: str) -> None:
    files = program(signed(before), body, contract)
    done = derive(files)
    assert done.files == files
    (note,) = done.notes()
    assert reason in note
    assert "(program/orchestration/main.cpp:" in note
    assert done.sites()[0].endswith("(left)")


@pytest.mark.parametrize("body", [BRANCHED, CONTRARY.replace("add_inout", "add_input")])
def test_a_signature_that_may_be_right_is_not_touched(body: str) -> None:
    files = program(signed("IN, OUT" if body is BRANCHED else "IN, IN, OUT"), body)
    assert derive(files).files == files
    assert derive(files).sites() == []


def test_what_is_computed_is_not_touched() -> None:
    assert derive(program(kernels(', "signature": made()'))).sites() == []
    files = program(kernels(', "signature": [D.IN] * 2'))
    done = derive(files)
    assert done.files == files
    assert "by hand: its signature is computed" in done.notes()[0]


def test_a_dict_that_unpacks_another_is_not_touched() -> None:
    config = 'BASE = {"signature": [D.IN, D.IN, D.OUT]}\nKERNELS = [{**BASE, "func_id": 0, "core_type": "aiv"}]\n'
    assert derive(program(config)).sites() == []


def test_named_slots_come_along() -> None:
    done = derive(program(signed("-"), contract="arg-index"))
    assert lists(done) == [', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 2]']
    short = kernels(', "signature": [D.IN], "arg_index": [0]')
    done = derive(program(short, contract="arg-index"))
    assert lists(done) == [', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 2]']
    wrong = kernels(', "signature": [D.IN, D.IN, D.OUT], "arg_index": [0, 1, 1]')
    assert lists(derive(program(wrong, contract="arg-index"))) == lists(done)


def test_kernels_that_name_their_slots_keep_them() -> None:
    fields = [
        ', "signature": [D.OUT, D.IN], "arg_index": [1, 0]',
        ', "signature": [D.IN], "arg_index": [2]',
        ', "signature": [], "arg_index": []',
    ]
    done = derive(program(kernels(*fields), MIXED, "arg-index"))
    assert lists(done) == [', "signature": [D.IN, D.IN], "arg_index": [1, 0]', *fields[1:]]


def test_only_what_is_incomplete() -> None:
    files = program(signed("IN, IN, INOUT"))
    assert derive(files, "incomplete-only=true").sites() == []
    assert lists(derive(program(signed("IN, INOUT")), "incomplete-only=true")) == [', "signature": [D.IN, D.IN, D.OUT]']


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '    {\n        "func_id": 0,  # the only one\n        "core_type": "aiv",  # vector\n    },\n',
            '    {\n        "func_id": 0,  # the only one\n        "core_type": "aiv",  # vector\n'
            '        "signature": [D.IN, D.IN, D.OUT],\n    },\n',
        ),
        (
            "    {\n        'func_id': 0,\n        'core_type': 'aiv'\n    }\n",
            "    {\n        'func_id': 0,\n        'core_type': 'aiv',\n        'signature': [D.IN, D.IN, D.OUT]\n    }\n",
        ),
        (
            '\t{"func_id": 0, "core_type": "aiv"},\n',
            '\t{"func_id": 0, "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]},\n',
        ),
        (
            '    {\n        "func_id": 0,\n        "signature": [\n            D.IN,  # a\n            D.OUT,  # c\n'
            '        ],\n        "core_type": "aiv",\n    },\n',
            '    {\n        "func_id": 0,\n        "signature": [\n            D.IN,  # a\n            D.IN,\n'
            '            D.OUT,  # c\n        ],\n        "core_type": "aiv",\n    },\n',
        ),
        (
            '    {\n        "func_id": 0,\n        "signature": [\n'
            "            D.IN,  # a\n            D.IN  # b\n        ],\n    },\n",
            '    {\n        "func_id": 0,\n        "signature": [\n'
            "            D.IN,  # a\n            D.IN,  # b\n            D.OUT\n        ],\n    },\n",
        ),
    ],
)
def test_the_layout_of_the_file_stays(before: str, after: str) -> None:
    done = derive(program(f"KERNELS = [\n{before}]\n"))
    assert done.files[CONFIG].startswith(f"{HEAD}KERNELS = [\n{after}]\n")


def test_a_line_that_gets_too_long_is_spread_where_a_formatter_is_configured() -> None:
    line = '    {"func_id": 0, "source": "kernels/aiv/add.cpp", "core_type": "aiv"},\n'
    files = program(f"KERNELS = [\n{line}]\n")
    done = derive({**files, "pyproject.toml": "[tool.ruff]\nline-length = 88\n"})
    assert done.files[CONFIG].startswith(
        HEAD + 'KERNELS = [\n    {\n        "func_id": 0,\n        "source": "kernels/aiv/add.cpp",\n'
        '        "core_type": "aiv",\n        "signature": [D.IN, D.IN, D.OUT],\n    },\n]\n'
    )
    assert line.rstrip("},\n") + ', "signature": [D.IN, D.IN, D.OUT]},' in derive(files).files[CONFIG]


def test_a_list_that_gets_too_long_has_a_line_for_each() -> None:
    body = "CoreTaskArgs p;\n" + "p.add_input(orch_args.tensor(0).ref());\n" * 14 + "rt_submit_aiv_task(0, p);\n"
    config = 'KERNELS = [\n    {\n        "func_id": 0,\n        "signature": [D.IN, D.IN],\n    },\n]\n'
    done = derive({**program(config, body), "ruff.toml": "line-length = 88\n"})
    listed = "            D.IN,\n" * 14
    assert f'        "signature": [\n{listed}        ],\n    }},\n' in done.files[CONFIG]


@pytest.mark.parametrize(
    ("imports", "after"),
    [
        ("", "from simpler.task_interface import ArgDirection as D\n\n"),
        (
            "import torch\nfrom simpler_setup import SceneTestCase\n\nfrom mine import x\n",
            "import torch\nfrom simpler.task_interface import ArgDirection as D\nfrom simpler_setup import SceneTestCase\n\n"
            "from mine import x\n",
        ),
        (
            '"""A program."""\n\nfrom pathlib import Path\n\n',
            '"""A program."""\n\nfrom pathlib import Path\nfrom simpler.task_interface import ArgDirection as D\n\n',
        ),
        (
            "from simpler.task_interface import CallConfig\n\n",
            "from simpler.task_interface import ArgDirection as D, CallConfig\n\n",
        ),
        ("D = 3\n", "from simpler.task_interface import ArgDirection as _D\n\nD = 3\n"),
        ("from simpler.task_interface import ArgDirection\n\n", "from simpler.task_interface import ArgDirection\n\n"),
    ],
)
def test_the_enum_is_imported(imports: str, after: str) -> None:
    tail = (
        'ORCHESTRATION = {"source": "orchestration/main.cpp", "function_name": "aicpu_orchestration_entry"}\nKERNELS = [\n'
        '    {"func_id": 0, "core_type": "aiv"},\n]\n'
    )
    files = {**program(signed("-")), CONFIG: imports + tail}
    done = derive(files)
    enum = "_D" if "_D" in after else "D" if " as D" in after else "ArgDirection"
    field = ", ".join(f"{enum}.{name}" for name in ("IN", "IN", "OUT"))
    assert done.files[CONFIG] == after + tail.replace('"aiv"}', f'"aiv", "signature": [{field}]}}')


def test_other_files_say_how_the_enum_is_called() -> None:
    files = program(signed("IN, IN, OUT"))
    files[CONFIG] = files[CONFIG].replace("ArgDirection as D", "ArgDirection as Dir").replace("D.", "Dir.")
    files["program/other.py"] = files[CONFIG].replace(', "signature": [Dir.IN, Dir.IN, Dir.OUT]', "")
    files["program/other.py"] = files["program/other.py"].replace(
        "from simpler.task_interface import ArgDirection as Dir\n", ""
    )
    files["program/other.py"] = files["program/other.py"].replace('    "signature": [Dir.IN, Dir.IN, Dir.OUT],\n', "")
    done = derive(files)
    assert "from simpler.task_interface import ArgDirection as Dir\n" in done.files["program/other.py"]
    assert done.files[CONFIG] == files[CONFIG]


def test_a_suppressed_kernel_stays() -> None:
    config = signed("-").replace('aiv"},', 'aiv"},  # opschema: ignore[PTO101] not dumped')
    files = program(config)
    done = derive(files)
    assert done.files == files
    assert done.sites()[0].endswith("(suppressed)")


def test_nothing_is_said_of_runtimes_without_a_dump() -> None:
    header = "constexpr int CORE_MAX_TENSOR_ARGS = 16;\n"
    files = {**program(signed("-")), "runtime/arg_direction.h": header}
    assert derive(files).sites() == []


NAMES = ("IN", "OUT", "INOUT", "SCALAR")

RULES = ("PTO101", "PTO102", "PTO103", "PTO104")


def some_program(rng: random.Random) -> dict[str, str]:
    """Three kernels with any signatures, submitted together and alone, under any contract."""
    adds = [rng.choice(("add_input", "add_output", "add_inout", "add_no_dep")) for _ in range(rng.randint(1, 4))]
    body = "CoreTaskArgs p;\n" + "".join(f"p.{name}(orch_args.tensor({at}).ref());\n" for at, name in enumerate(adds))
    submits = [
        "MixedKernels m = {0, 1, 2};\nrt_submit_task(m, p);\n",
        *(f"rt_submit_aiv_task({at}, p);\n" for at in range(3)),
    ]
    body += "".join(rng.sample(submits, rng.randint(1, 2)))
    contract = rng.choice(("widest", "sum", "arg-index"))
    fields = []
    for _ in range(3):
        names = [rng.choice(NAMES) for _ in range(rng.choice((0, 0, 1, 2, len(adds))))]
        listed = ", ".join(f"D.{name}" for name in names)
        slots = f', "arg_index": {[*range(len(names))]}' if contract == "arg-index" else ""
        fields.append("" if not names and rng.random() < 0.5 else f', "signature": [{listed}]{slots}')
    return program(kernels(*fields), body, contract)


@pytest.mark.parametrize("seed", range(60))
def test_it_does_what_the_rules_ask_for(seed: int) -> None:
    """What no rule reports is not touched, nor is a task of which none reports any kernel; what is reported is mended, or left
    with a note. But a scalar before tensors is reported in every signature (PTO104).
    """
    files = some_program(random.Random(seed))
    before = lint_files([PACK], files, RULES)
    done = derive(files)
    after = lint_files([PACK], done.files, RULES).diagnostics
    reported = {op for item in before.diagnostics for op in item.ops}
    changed = {op for item in done.result.sites if item.status == "migrated" for op in item.site.ops}
    contract = files["opschema.toml"].split('"')[1]
    (read,) = load_programs(before.project, PyptoOptions(signatures=contract))  # type: ignore[arg-type]
    together = [{kernel.title for kernel in task.kernels} for task in tasks(read)]
    assert changed <= {kernel for kernels in together if kernels & reported for kernel in kernels}
    assert bool(changed) == (done.files != files)
    left = {op for item in done.result.sites if item.status == "left" for op in item.site.ops}
    assert {op for item in after for op in item.ops if item.code != "PTO104"} <= left


def test_what_a_kernel_says_of_a_tensor_that_its_task_writes_stays() -> None:
    """It may only read it there (simpler's second contract), though it gets the tensor to write in a task of its own."""
    body = (
        "CoreTaskArgs p;\np.add_inout(orch_args.tensor(0).ref());\nMixedKernels m = {0, 1, 2};\nrt_submit_task(m, p);\n"
    )
    fields = [f', "signature": [D.{name}], "arg_index": [0]' for name in ("IN", "INOUT")]
    files = program(kernels(*fields, ""), body + "rt_submit_aiv_task(0, p);\n", "arg-index")
    assert lint_files([PACK], files, RULES).codes() == []
    assert derive(files).sites() == []

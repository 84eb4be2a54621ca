"""The parallel field of signatures, added and dropped."""

from __future__ import annotations

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.pypto.examples import CONFIG, HEAD
from opschema_rules.pypto.pack import PACK
from tests.rules.pypto.programs import ALONE, MIXED, kernels, program, signed


def migrate(files: dict[str, str], action: str) -> Migrated:
    return migrate_files(PACK, "arg-index", files, [f"action={action}"])


def indexed(*pairs: tuple[str, str]) -> str:
    """``KERNELS`` with these signatures and slots."""
    lists = (f"[{', '.join(f'D.{name}' for name in names.split(', ') if name)}]" for names, _ in pairs)
    return kernels(
        *(f', "signature": {text}, "arg_index": [{slots}]' for text, (_, slots) in zip(lists, pairs, strict=True))
    )


@pytest.mark.parametrize(
    ("body", "before", "slots"),
    [
        (ALONE, ["IN, IN, OUT"], ["0, 1, 2"]),
        (ALONE, ["IN, IN, OUT, SCALAR"], ["0, 1, 2, 3"]),
        (ALONE, [""], [""]),
        (ALONE, ["IN, OUT"], ["0, 1"]),
        (MIXED, ["IN", "IN", "OUT"], ["0", "1", "2"]),
        (MIXED, ["IN, IN", "", "OUT"], ["0, 1", "", "2"]),
        (MIXED, ["IN, IN, OUT", "IN, IN, OUT", ""], ["0, 1, 2", "0, 1, 2", ""]),
        (MIXED + "rt_submit_aiv_task(3, p);\n", ["IN", "IN", "OUT", "IN, IN, OUT"], ["0", "1", "2", "0, 1, 2"]),
        (ALONE + "p.add_input(orch_args.tensor(1).ref());\nrt_submit_aiv_task(0, p);\n", ["IN, IN, OUT"], ["0, 1, 2"]),
    ],
)
def test_added(body: str, before: list[str], slots: list[str]) -> None:
    files = program(signed(*before), body)
    done = migrate(files, "add")
    assert done.files[CONFIG].startswith(HEAD + indexed(*zip(before, slots, strict=True)))
    assert done.notes() == []
    assert migrate(done.files, "drop").files == files


@pytest.mark.parametrize(
    ("body", "before", "reason"),
    [
        (MIXED, ["IN", "IN", ""], "it is not known which of the 3 tensors of a task that it shares are its own"),
        (MIXED + "rt_submit_aiv_task(1, p);\n", ["IN", "IN", "OUT"], "its tasks have its tensors at different places"),
        ("CoreTaskArgs p;\nfill(p);\nMixedKernels m = {0, 1, 1};\nrt_submit_task(m, p);\n", ["IN", "OUT"], "not known"),
        (
            ALONE + "rt_submit_aiv_task(unknown_id, p);\n",
            ["IN, IN, OUT"],
            "the tasks that its orchestration submits are not known",
        ),
        (ALONE, ["IN, SCALAR, OUT"], "its signature has scalars before tensors"),
    ],
)
def test_places_that_are_not_known_are_told(body: str, before: list[str], reason: str) -> None:
    done = migrate(program(signed(*before), body), "add")
    assert any(reason in note for note in done.notes())
    assert any(site.endswith("(left)") for site in done.sites())


def test_a_signature_that_is_computed_is_told() -> None:
    files = program(kernels(', "signature": made()'))
    done = migrate(files, "add")
    assert done.files == files
    assert "its signature is not known" in done.notes()[0]


def test_a_kernel_without_a_signature_needs_none() -> None:
    assert migrate(program(signed("-")), "add").sites() == []


LAID_OUT = """\
KERNELS = [
    {
        "func_id": 0,
        # what it gets
        "signature": [D.IN, D.IN, D.OUT],  # all
        "core_type": "aiv",
    },
]
"""


def test_it_stands_below_the_signature() -> None:
    files = program(LAID_OUT)
    done = migrate(files, "add")
    line = '"signature": [D.IN, D.IN, D.OUT],  # all\n'
    assert done.files[CONFIG] == files[CONFIG].replace(line, f'{line}        "arg_index": [0, 1, 2],\n')
    assert migrate(done.files, "drop").files == files


def test_its_comments_go_along_and_others_stay() -> None:
    field = '        # absolute slots\n        "arg_index": [0, 1, 2],  # of the payload\n'
    files = program(LAID_OUT.replace('        "core_type"', f'{field}        "core_type"'))
    done = migrate(files, "drop")
    assert done.files == program(LAID_OUT)


def test_what_still_mentions_it_is_told() -> None:
    files = program(indexed(("IN, IN, OUT", "0, 1, 2")))
    files[CONFIG] = files[CONFIG] + "# the arg_index above names slots\n"
    done = migrate(files, "drop")
    line = done.files[CONFIG].count("\n")
    assert done.notes() == [f"{CONFIG}:{line}: `arg_index` is still mentioned here"]


def test_a_kernel_that_comes_first_in_a_mix_may_run_alone() -> None:
    body = MIXED + "CoreTaskArgs q;\nq.add_input(orch_args.tensor(2).ref());\nrt_submit_aiv_task(0, q);\n"
    done = migrate(program(signed("IN", "IN", "OUT"), body), "add")
    assert done.files[CONFIG].startswith(HEAD + indexed(("IN", "0"), ("IN", "1"), ("OUT", "2")))


def test_a_list_that_says_something_else_is_told() -> None:
    done = migrate(program(indexed(("IN, IN", "3, 4"), ("OUT", "0")), MIXED), "drop")
    (note,) = done.notes()
    assert note.endswith(
        "`arg_index` of kernel 0 was [3, 4]: without it, its entries stand for tensors 0 to 1; `derive-signatures` writes the "
        "entire signature"
    )


@pytest.mark.parametrize(
    "config",
    [
        signed("IN, IN, OUT") + 'for item in KERNELS:\n    item["arg_index"] = list(range(3))\n',
        kernels(', "signature": [D.IN, D.IN, D.OUT], **{"arg_index": [0, 1, 2]}'),
        'KERNELS = [\n    {"func_id": i, "core_type": "aiv", "signature": [D.IN], "arg_index": [0]} for i in range(3)\n]\n',
        'KERNELS = [dict(func_id=0, core_type="aiv", signature=[D.IN], arg_index=[0])]\n',
        'KERNELS = [{"func_id": 0, "core_type": "aiv", "signature": [D.IN]}]\nKERNELS[0].update(arg_index=[0])\n',
        'def made(i):\n    return {"func_id": i, "core_type": "aiv", "arg_index": [0]}\n\n\nKERNELS = [made(0), made(1)]\n',
    ],
)
def test_a_field_that_is_given_otherwise_is_left_and_told(config: str) -> None:
    files = program(config)
    done = migrate(files, "drop")
    assert done.files == files
    assert [site.endswith("drop `arg_index` (left)") for site in done.sites()] == [True]
    (note,) = done.notes()
    assert note.endswith("drop `arg_index` by hand: it is not in the dict of a kernel")


FULL = "[D.IN, D.IN, D.OUT]"


def listing(slots: str, before: str = "", signature: str = FULL) -> str:
    """A kernel whose ``arg_index`` is an expression."""
    return before + kernels(f', "signature": {signature}, "arg_index": {slots}')


@pytest.mark.parametrize(
    ("slots", "before"),
    [
        ("OFFSETS", "OFFSETS = [3, 4, 5]\n"),
        ("OFFSETS", "OFFSETS: list[int] = [3, 4, 5]\n"),
        ("FIRST + [4, 5]", "FIRST = [3]\n"),
        ("[3 + i for i in range(3)]", ""),
        ("list(range(3, 6))", ""),
        ("[*range(3, 6)]", ""),
        ("tuple(range(3, 6))", ""),
        ("behind(3)", "def behind(first, count=3):\n    return [first + i for i in range(count)]\n"),
        ('SLOTS["vector"]', 'SLOTS = {"cube": [0, 1, 2], "vector": [3, 4, 5]}\n'),
        ("EVERY[3:]", "EVERY = [0, 1, 2, 3, 4, 5]\n"),
        ("[START, START + 1, START + 2]", "START = 3\n"),
    ],
)
def test_offsets_that_a_list_computes_are_told(slots: str, before: str) -> None:
    done = migrate(program(listing(slots, before)), "drop")
    assert '"arg_index"' not in done.files[CONFIG]
    assert any("was [3, 4, 5]: without it, its entries stand for tensors 0 to 2" in note for note in done.notes())


@pytest.mark.parametrize(
    ("slots", "before"),
    [
        ("[*range(3)]", ""),
        ("[0] + [1, 2]", ""),
        ("first(3)", "def first(count):\n    return list(range(count))\n"),
    ],
)
def test_lists_that_count_are_dropped_without_a_note(slots: str, before: str) -> None:
    done = migrate(program(listing(slots, before)), "drop")
    assert done.files == program(before + signed("IN, IN, OUT"))
    assert done.notes() == []


@pytest.mark.parametrize(
    ("slots", "before"),
    [
        ("SLOTS", ""),
        ("SLOTS", "import os\nSLOTS = [0, 1, int(os.environ['LAST'])]\n"),
        ("SLOTS", "SLOTS = [0, 1]\nSLOTS.append(5)\n"),
        ("SLOTS", "SLOTS = [0, 1, 2]\nSLOTS[2] = 5\n"),
        ("SLOTS", "SLOTS = [0, 1, 2]\nfor _ in range(2):\n    SLOTS += [3]\n"),
        ("made()", "def made(slots=[]):\n    slots.append(1)\n    return slots\n"),
        ("made([0])", "def made(slots):\n    slots[0] = 1\n    return slots\n"),
    ],
)
def test_a_list_that_cannot_be_evaluated_is_told(slots: str, before: str) -> None:
    done = migrate(program(listing(slots, before)), "drop")
    assert '"arg_index"' not in done.files[CONFIG]
    assert any("cannot be evaluated: check that its entries are in the order" in note for note in done.notes())


def test_a_list_that_differs_in_length_is_told() -> None:
    (note,) = migrate(program(listing("[0, 1]")), "drop").notes()
    assert "listed 2 tensors for 3 entries" in note


def test_nothing_is_said_of_the_entries_of_a_signature_that_is_not_known() -> None:
    assert migrate(program(listing("[0, 1]", signature="made()")), "drop").notes() == []


def test_a_list_that_nothing_else_uses_is_told() -> None:
    used = migrate(program(listing("SLOTS", "SLOTS = [0, 1, 2]\n") + "COUNT = len(SLOTS)\n"), "drop")
    assert used.notes() == []
    (note,) = migrate(program(listing("SLOTS", "SLOTS = [0, 1, 2]\n")), "drop").notes()
    assert note.endswith("`SLOTS` is no longer used in this file")


COMPUTED = """\
def kernel(number, slots):
    return {"func_id": number, "core_type": "aiv", "signature": [D.IN, D.OUT], "arg_index": slots}


KERNELS = [kernel(0, [0, 1]), kernel(1, [2, 3])]
"""


def test_what_a_person_loses_with_a_computed_dict_is_told() -> None:
    files = program(COMPUTED)
    done = migrate(files, "drop")
    assert done.files == files
    by_hand, lost = done.notes()
    assert by_hand.endswith("drop `arg_index` by hand: it is not in the dict of a kernel")
    assert "`arg_index` of kernel 1 is [2, 3]: without it, its entries stand for tensors 0 to 1" in lost


def test_a_helper_of_another_file_that_sets_the_field_is_told() -> None:
    helper = COMPUTED[: COMPUTED.index("\n\n\n")]
    head = "from made import kernel\n"
    listed = 'KERNELS = [{"func_id": 5, "core_type": "aiv"}, kernel(0, [0, 1]), kernel(1, [2, 3])]\n'
    files = program(head + listed)
    files["program/made.py"] = HEAD + helper + "\n"
    done = migrate(files, "drop")
    assert done.files == files
    assert any("drop `arg_index` by hand" in note for note in done.notes())
    assert any("`arg_index` of kernel 1 is [2, 3]" in note for note in done.notes())

"""Which contract the runtime of a tree has."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.contract import find_contract
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.model import Contract
from opschema_rules.pypto.pack import PACK

HEADER = """\
inline constexpr int CORE_MAX_TENSOR_ARGS = 32;
inline constexpr int CHIP_MAX_TENSOR_ARGS = 256;
inline constexpr int CORE_MAX_SCALAR_ARGS = 16;
inline constexpr int CHIP_MAX_SCALAR_ARGS = 128;
#define MAX_TENSOR_ARGS CORE_MAX_TENSOR_ARGS
"""

SUM = "for (int i = 0; i < callable.sig_count(); i++) {}\n"
NAMED = SUM + "uint32_t slot = callable.arg_index(i);\n"
WIDEST = SUM + "// the widest active subtask's signature drives\n"


def contract(options: PyptoOptions | None = None, **files: str) -> Contract:
    names = {
        "limits": "src/common/arg_direction.h",
        "dump": "src/aicpu/args_dump_aicpu.h",
        "old": "src/tensor_dump_aicpu.h",
    }
    project = lint_files([PACK], {names[name]: text for name, text in files.items()}).project
    return find_contract(project, options or PyptoOptions())


def test_a_tree_without_a_runtime_has_the_newest() -> None:
    found = contract()
    assert (found.rule, found.core_tensors, found.core_scalars) == ("widest", 32, 16)
    assert (found.dumps, found.certain) == (True, False)


@pytest.mark.parametrize(("dump", "rule"), [(SUM, "sum"), (NAMED, "arg_index"), (WIDEST, "widest")])
def test_the_dump_tells_how_signatures_are_read(dump: str, rule: str) -> None:
    for name in ("dump", "old"):
        found = contract(None, **{name: dump}, limits=HEADER)
        assert (found.rule, found.certain, found.dumps) == (rule, True, True)


def test_limits_are_those_of_the_header() -> None:
    found = contract(limits=HEADER.replace("32", "16"), dump=SUM)
    assert (found.core_tensors, found.core_scalars, found.chip_tensors, found.chip_scalars) == (16, 16, 256, 128)


def test_a_limit_that_the_header_does_not_name_is_not_known() -> None:
    found = contract(limits="inline constexpr int CORE_MAX_TENSOR_ARGS = 16;\n")
    assert (found.core_tensors, found.core_scalars, found.chip_tensors, found.chip_scalars) == (16, 0, 0, 0)


def test_another_header_of_that_name_says_nothing() -> None:
    assert contract(limits="enum class ArgDirection { kInput };\n") == contract()


def test_a_runtime_without_a_dump_reads_no_signatures() -> None:
    assert not contract(limits=HEADER).dumps


def test_two_dumps_that_differ_leave_the_newest() -> None:
    found = contract(limits=HEADER, dump=WIDEST, old=SUM)
    assert (found.rule, found.certain, found.dumps) == ("widest", False, True)


def test_the_configuration_says_it_better() -> None:
    found = contract(PyptoOptions(signatures="arg-index", max_tensors=8, max_scalars=4), limits=HEADER, dump=SUM)
    assert (found.rule, found.core_tensors, found.core_scalars) == ("arg_index", 8, 4)
    assert contract(PyptoOptions(signatures="sum"), limits=HEADER).dumps

"""Fields and directions that are written into a description."""

from __future__ import annotations

import pytest

from opschema_cli.project import Project
from opschema_cli.source.text import Edit, apply_edits
from opschema_cli.testing import lint_files
from opschema_rules.pypto.detection import PyptoOptions
from opschema_rules.pypto.dict_edits import add_field, turn_into
from opschema_rules.pypto.load import load_programs
from opschema_rules.pypto.model import Direction, Kernel
from opschema_rules.pypto.pack import PACK

IMPORT = "from simpler.task_interface import ArgDirection as D\n"


def kernel(text: str) -> tuple[Kernel, str]:
    """The one kernel that a dict describes, and the whole file."""
    whole = f"{IMPORT}KERNELS = [{text}]\n"
    project: Project = lint_files([PACK], {"kernel_config.py": whole}).project
    return load_programs(project, PyptoOptions())[0].kernels[0], whole


def edited(whole: str, edits: list[Edit]) -> str:
    text = apply_edits(whole, edits)
    compile(text, "kernel_config.py", "exec")
    return text.removeprefix(f"{IMPORT}KERNELS = [").removesuffix("]\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"func_id": 0}', '{"func_id": 0, "new": 1}'),
        ("{'func_id': 0, }", "{'func_id': 0, 'new': 1, }"),
        ('{"func_id": 0}, {}', '{"func_id": 0, "new": 1}, {}'),
        ('{\n\t"func_id": 0,\n}', '{\n\t"func_id": 0,\n\t"new": 1,\n}'),
        ('{\n  "func_id": 0,  # a\n}', '{\n  "func_id": 0,  # a\n  "new": 1,\n}'),
        ('{\n  "func_id": 0\n}', '{\n  "func_id": 0,\n  "new": 1\n}'),
        ('{\n  "func_id": 0  # a\n}', '{\n  "func_id": 0,  # a\n  "new": 1\n}'),
        ('{\n  "func_id": 0\n  # a\n}', '{\n  "func_id": 0,\n  # a\n  "new": 1\n}'),
        ('{"a": 1, "func_id": 0  # a\n}', '{"a": 1, "func_id": 0, "new": 1  # a\n}'),
        ('{\r\n  "func_id": 0  # a\r\n}', '{\r\n  "func_id": 0,  # a\r\n  "new": 1\r\n}'),
        ('{\r\n  "func_id": 0,\r\n}', '{\r\n  "func_id": 0,\r\n  "new": 1,\r\n}'),
        ('{"func_id": 0, "a": [\n  1,\n]}', '{"func_id": 0, "a": [\n  1,\n], "new": 1}'),
    ],
)
def test_a_field_is_added_as_the_dict_is_laid_out(before: str, after: str) -> None:
    found, whole = kernel(before)
    edit = add_field(found.program.file, found.expr, "new", "1")
    assert edit is not None
    assert edited(whole, [edit]) == after


@pytest.mark.parametrize("text", ['{"func_id": (0)}', '{"func_id": 0, "a": (\n1\n)}'])
def test_where_a_field_would_go_is_not_guessed(text: str) -> None:
    found, whole = kernel(text)
    edit = add_field(found.program.file, found.expr, "new", "1")
    assert edit is None or edited(whole, [edit]).count("new") == 1


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("[]", "OUT", "[D.OUT]"),
        ("()", "OUT", "([D.OUT])"),
        ("[D.IN]", "IN OUT", "[D.IN, D.OUT]"),
        ("[D.IN,]", "IN OUT", "[D.IN, D.OUT,]"),
        ("[D.OUT]", "IN OUT", "[D.IN, D.OUT]"),
        ("[D.IN, D.OUT]", "IN IN OUT OUT", "[D.IN, D.IN, D.OUT, D.OUT]"),
        ("[D.IN, D.SCALAR, D.OUT]", "IN OUT", "[D.IN, D.OUT]"),
        ("[D.IN, D.OUT, D.SCALAR]", "IN OUT", "[D.IN, D.OUT]"),
        ("[D.IN, D.OUT]", "INOUT", "[D.INOUT]"),
        ("(D.IN, D.OUT)", "OUT", "([D.OUT])"),
        ("[D.IN, D.OUT]", "", "[]"),
        ("[D.IN, D.SCALAR, D.OUT]", "INOUT OUT IN SCALAR", "[D.INOUT, D.OUT, D.IN, D.SCALAR]"),
        ("[\n  D.IN,  # a\n  D.OUT,  # b\n  D.OUT,  # c\n]", "IN OUT", "[\n  D.IN,  # a\n  D.OUT,  # b\n]"),
        ("[\n  D.IN,  # a\n  D.OUT  # b\n]", "IN OUT IN", "[\n  D.IN,  # a\n  D.OUT,  # b\n  D.IN\n]"),
        ("[\n  D.IN,  # a\n  D.OUT,  # b\n]", "IN IN INOUT", "[\n  D.IN,  # a\n  D.IN,\n  D.INOUT,  # b\n]"),
    ],
)
def test_a_list_becomes_another_with_few_edits(before: str, wanted: str, after: str) -> None:
    found, whole = kernel(f'{{"func_id": 0, "signature": {before}}}')
    assert found.signature is not None
    edits = turn_into(found.program.file, found.signature, [Direction(name) for name in wanted.split()], "D")
    assert edited(whole, edits) == f'{{"func_id": 0, "signature": {after}}}'

"""Which files are parsed at all: every one that may hold a program or an entry, and few others."""

from __future__ import annotations

import pytest

from opschema_cli.testing import lint_files
from opschema_rules.pypto.detection import PyptoOptions, describing, detect, specifying
from opschema_rules.pypto.examples import HEAD, SOUND
from opschema_rules.pypto.load import load
from opschema_rules.pypto.pack import PACK

LISTED = '[{"func_id": 0, "source": "a.cpp", "core_type": "aiv"}]'
HELD = '{"incores": [{"func_id": 0, "source": "a.cpp", "core_type": "aiv"}]}'


def paths(text: str) -> tuple[list[str], list[str], int]:
    """Code that may describe a program or pair specs, and several programs and entries in one file."""
    project = lint_files([PACK], {"a.py": text}).project
    return [*describing(project)], [*specifying(project)], len(load(project, PyptoOptions()).subjects)


@pytest.mark.parametrize(
    "text",
    [
        HEAD + SOUND,
        f"KERNELS = {LISTED}\n",
        f"KERNELS: list = {LISTED}\n",
        f"KERNELS={LISTED}\n",
        f"KERNELS \\\n    = {LISTED}\n",
        f"ALL = KERNELS = {LISTED}\n",
        f"(KERNELS) = {LISTED}\n",
        f"x = 1; KERNELS = {LISTED}\n",
        f"class A:\n    CALLABLE = {HELD}\n",
        f"class A:\n    CALLABLE: dict = {HELD}\n",
        f"class A:\n    CALLABLE = {{'callables': [{HELD}]}}\n",
        f"SPEC = {HELD}\nCALLABLE = SPEC\n",
        f"CALLABLE = {HELD}\n",
    ],
)
def test_what_describes_a_program_is_read(text: str) -> None:
    assert paths(text) == (["a.py"], [], 1)


@pytest.mark.parametrize(
    "text",
    [
        f"config.KERNELS = {LISTED}\n",
        f"found = config.KERNELS == {LISTED}\n",
        f'setattr(config, "KERNELS", {LISTED})\n',
        f"if KERNELS == {LISTED}: pass\n",
        f"class A:\n    CALLABLE = {LISTED}\n",
        f"A.CALLABLE = {HELD}\n",
        f"ALL_KERNELS = {LISTED}\n",
        "KERNELS = []\n",
    ],
)
def test_what_only_speaks_of_one_is_not(text: str) -> None:
    assert paths(text) == ([], [], 0)


ENTRY = """\
import pypto.language as pl
from golden import TensorSpec, run, run_jit

@pl.jit
def entry(x: pl.Tensor[[8], pl.FP32]): ...

"""
SPECS = '[TensorSpec("x", [8], "fp32")]'


@pytest.mark.parametrize(
    "text",
    [
        f"run_jit(fn=entry, specs={SPECS})\n",
        f"run_jit (entry, {SPECS})\n",
        f"run \\\n    (entry, {SPECS})\n",
        f"check(fn=entry, specs = {SPECS})\n",
        f"class Case:\n    def define_tensors(self):\n        return {SPECS}\n    def get_program(self):\n        return entry\n",
    ],
)
def test_what_passes_specs_is_read(text: str) -> None:
    assert paths(ENTRY + text) == ([], ["a.py"], 1)


@pytest.mark.parametrize("text", [f"specs == {SPECS}\n", f"build({SPECS})\n", f"rerun_jit(entry, {SPECS})\n"])
def test_what_only_makes_specs_is_not(text: str) -> None:
    assert paths(ENTRY + text) == ([], [], 0)


def test_specs_of_another_file_are_read_there() -> None:
    maker = f"from golden import TensorSpec\n\ndef build():\n    return {SPECS}\n"
    user = (
        ENTRY.replace("TensorSpec, ", "") + "from maker import build\nrun_jit(fn=entry, specs=build())  # TensorSpec(\n"
    )
    project = lint_files([PACK], {"maker.py": maker, "user.py": user}).project
    assert detect(project, PyptoOptions())
    assert [*specifying(project)] == ["user.py"]
    (entry,) = load(project, PyptoOptions()).subjects
    assert [item.name for param in getattr(entry, "params", ()) for item in param.specs] == ["x"]

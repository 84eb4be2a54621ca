"""The guard of `make_buffer_tensor` against constant sizes: away with the tests that only expect it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from opschema_cli.testing import Migrated, migrate_files
from opschema_rules.flydsl.examples import HEAD
from opschema_rules.flydsl.pack import PACK

DYNAMIC = """\
class TensorAdaptor:
    def __init__(self, tensor):
        self.mark_layout_dynamic()

    def other(self): ...
"""
BAKED = "class TensorAdaptor:\n    def __init__(self, tensor): ...\n\n    def other(self): ...\n"
MAKER = "flydsl/expr/__init__.py"
TEST = "tests/test_guard.py"

GUARDED = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if num_records_bytes is None and not max_size:
        from .types import LayoutType

        if not LayoutType(tensor.layout).is_static_shape:
            num_records_bytes = cosize(tensor) * 4
        else:
            raise ValueError("pass num_records_bytes")
    return tensor, num_records_bytes
"""
PLAIN = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if num_records_bytes is None and not max_size:
        num_records_bytes = cosize(tensor) * 4
    return tensor, num_records_bytes
"""
EARLY = """\
def make_buffer_tensor(tensor, max_size=True, *, num_records_bytes=None):
    if layout_of(tensor).is_static_shape:
        raise ValueError("pass num_records_bytes")
    return tensor, cosize(tensor) * 4
"""

TESTS = (
    HEAD.replace("import torch", "import pytest\nimport torch")
    + """\
def probe(size):
    fx.make_buffer_tensor(torch.empty(4), max_size=size)


def test_raises():
    with pytest.raises(ValueError) as error:
        probe(False)
    assert "num_records_bytes" in str(error.value)


def test_works():
    probe(True)
"""
)


def migrate(
    maker: str, tests: str = TESTS, argument: str = DYNAMIC, others: Mapping[str, str] | None = None
) -> Migrated:
    files = {"flydsl/__init__.py": "", "flydsl/compiler/__init__.py": "", "flydsl/compiler/jit_argument.py": argument}
    return migrate_files(PACK, "drop-size-guard", {**files, MAKER: maker, TEST: tests, **(others or {})})


def test_the_guard_and_its_test_are_dropped() -> None:
    done = migrate(GUARDED)
    assert done.files[MAKER] == PLAIN
    assert "test_raises" not in done.files[TEST]
    assert "import pytest" not in done.files[TEST]
    assert "def test_works():\n    probe(True)\n" in done.files[TEST]
    assert done.notes() == [f"{MAKER}:1: its docstring and comments may still mention the guard: check them"]


def test_an_early_guard_is_dropped() -> None:
    done = migrate(EARLY)
    assert "raise" not in done.files[MAKER]
    assert "return tensor, cosize(tensor) * 4" in done.files[MAKER]


def test_the_tests_of_a_guard_that_was_dropped_before_go_too() -> None:
    done = migrate(PLAIN)
    assert done.files[MAKER] == PLAIN
    assert "test_raises" not in done.files[TEST]


@pytest.mark.parametrize(
    "maker",
    [
        PLAIN.replace(
            "    if num", "    assert not tensor.layout.is_static_shape, 'pass num_records_bytes'\n    if num", 1
        ),
        PLAIN.replace("    if num", "    _check(tensor)\n    if num", 1)
        + "\n\ndef _check(tensor):\n    if tensor.layout.is_static_shape:\n"
        "        raise ValueError(f'pass num_records_bytes for {tensor}')\n",
        PLAIN.replace("    if num", "    refuse(tensor, _MESSAGE)\n    if num", 1)
        + "\n\n_MESSAGE = 'pass num_records_bytes'\n",
    ],
)
def test_tests_of_a_guard_of_another_form_remain(maker: str) -> None:
    done = migrate(maker)
    assert done.files[MAKER] == maker
    assert done.files[TEST] == TESTS


def test_a_docstring_that_names_the_count_is_no_guard() -> None:
    documented = GUARDED.replace("    if num", '    """Without `num_records_bytes` it is derived."""\n    if num', 1)
    assert "test_raises" not in migrate(documented).files[TEST]


def test_what_a_test_file_still_says_of_the_guard_is_noted() -> None:
    notes = migrate(GUARDED, f'"""The guard of sizes."""\n\n{TESTS}').notes()
    assert notes[1:] == [f"{TEST}:1: this may still mention the guard: check the rest of the file"]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("flydsl/checks.py", "def check(n):\n    raise ValueError(f'num_records_bytes is {n}')\n", 2),
        ("flydsl/names.py", "\nNAMES = ['num_records_bytes']\n", 2),
        (MAKER, f"{GUARDED}\n\nMESSAGE = 'no num_records_bytes'\n", 7),
    ],
)
def test_a_test_that_another_string_keeps_is_noted(path: str, text: str, line: int) -> None:
    done = migrate(GUARDED, others={path: text})
    assert "is_static_shape" not in done.files[MAKER]
    assert done.files[TEST] == TESTS
    at = TESTS[: TESTS.index("def test_raises")].count("\n") + 1
    assert done.notes()[0] == (
        f"{TEST}:{at}: this test may expect the guard: it is kept, as `{path}:{line}` names `num_records_bytes`, too"
    )


def test_what_elsewhere_demands_the_count_is_noted() -> None:
    others = {
        "kernels/store.py": "# `num_records_bytes` is required when `max_size=False`.\nN = 4\n",
        "kernels/load.py": "# `num_records_bytes` is the size in bytes.\nassert (num_records_bytes := 4)  # required\n",
        "kernels/copy.py": "def copy(num_records_bytes):\n    raise ValueError\n",
        "docs/buffers.md": "Pass `num_records_bytes`,\nor the call raises.\n",
    }
    assert migrate(GUARDED, others=others).notes()[1:] == [
        "docs/buffers.md:1: this may describe the guard: check it",
        "kernels/store.py:1: this may describe the guard: check it",
    ]


def test_nothing_is_done_where_sizes_are_compiled_in() -> None:
    done = migrate(GUARDED, argument=BAKED)
    assert done.files[MAKER] == GUARDED
    assert done.files[TEST] == TESTS


@pytest.mark.parametrize(
    "maker",
    [
        GUARDED.replace("raise ValueError", "print('why')\n            raise ValueError"),
        GUARDED.replace("is_static_shape", "is_row_major"),
        GUARDED.replace(
            "LayoutType(tensor.layout).is_static_shape", "(LayoutType(tensor.layout).is_static_shape and strict)"
        ),
        EARLY.replace('raise ValueError("pass num_records_bytes")', "max_size = False"),
    ],
)
def test_other_conditions_remain(maker: str) -> None:
    done = migrate(maker)
    assert done.files[MAKER] == maker


@pytest.mark.parametrize(
    "test",
    [
        TESTS.replace('assert "num', 'assert probe(True) is None\n    assert "num'),
        TESTS.replace('assert "num_records_bytes" in', 'assert "unsupported" in'),
        TESTS.replace("    probe(True)", "    probe(True)").replace(
            "def test_raises", "@pytest.mark.parametrize('a', [1])\ndef test_raises"
        ),
        TESTS.replace(
            "        probe(False)", "        probe(False)\n    with pytest.raises(TypeError):\n        probe()"
        ),
    ],
)
def test_tests_of_more_remain(test: str) -> None:
    done = migrate(GUARDED, test)
    assert done.files[TEST] == test

"""Which ops are run when files change: those that run them, and in doubt all that could."""

from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.commands.affected import affected, changes_code
from opschema_cli.project import Project
from opschema_cli.verify.model import Plan, Target
from opschema_cli.workspace import Workspace

FILES = {
    "kit/__init__.py": "from kit.ops import Add, Mul, Sub\n",
    "kit/ops/__init__.py": "from .add import Add\nfrom .mul import Mul\nfrom .sub import Sub\n",
    "kit/ops/add.py": "from kit.kernels import AddKernel\nclass Add: ...\n",
    "kit/ops/mul.py": "from ..kernels import MulKernel\nclass Mul: ...\n",
    "kit/ops/sub.py": "class Sub:\n    def forward(self, x):\n        from kit import late\n",
    "kit/late.py": "import torch\n",
    "kit/kernels/__init__.py": "from .adding import AddKernel\nfrom .multiplying import MulKernel as MulKernel\n",
    "kit/kernels/adding.py": "from kit.build import load\nclass AddKernel:\n    source = 'add'\n",
    "kit/kernels/multiplying.py": "from kit.build import load\nclass MulKernel:\n    lib = load('src/mul_v2.cu')\n",
    "kit/build.py": "def load(name): return [*SOURCES.glob('*.cuh'), SOURCES / f'{name}.cu']\n",
    "kit/src/add.cu": '#include "add_types.h"\n',
    "kit/src/add_types.h": "",
    "kit/src/mul_v2.cu": '#include "common.cuh"\n',
    "kit/src/common.cuh": "",
    "kit/src/other.cu": "",
    "kit/tuning.json": "{}",
    "kit/README.md": "add.cu",
    "kit/manifest.yaml": "{}",
    "csrc/native.cpp": "",
    "csrc/listed.cpp": "",
    "setup.py": "sources = ['csrc/listed.cpp']\n",
    "tests/test_add.py": "from kit import Add\n# other.cu\n",
    "docs/picture.svg": "",
}
ALL = ["Add", "Mul", "Sub"]


def run(*touched: str, files: dict[str, str] | None = None) -> list[str]:
    plans = [
        Plan(op=op, target=Target(root="/", module=f"kit.ops.{op.lower()}", name=op, paths=(".",)), cells=())
        for op in ALL
    ]
    plans.append(Plan(op="Gone", target=Target(root="/", module="", name="Gone"), cells=()))
    project = Project(Workspace(Path("/nonexistent"), files or FILES))
    return affected(project, plans, touched, ["kit/manifest.yaml"])


@pytest.mark.parametrize(
    ("touched", "ops"),
    [
        # Python: what an op runs, name by name through packages
        ("kit/ops/add.py", ["Add"]),
        ("kit/kernels/multiplying.py", ["Mul"]),
        ("kit/kernels/__init__.py", ["Add", "Mul"]),
        ("kit/build.py", ["Add", "Mul"]),
        ("kit/late.py", ["Sub"]),
        ("tests/test_add.py", []),
        # kernels: named by stem, by name, through one that includes them, by a pattern
        ("kit/src/add.cu", ["Add"]),
        ("kit/src/mul_v2.cu", ["Mul"]),
        ("kit/src/add_types.h", ["Add"]),
        ("kit/src/common.cuh", ["Add", "Mul"]),
        # nothing that an op runs names it: all that could
        ("kit/src/other.cu", ALL),
        ("kit/src/removed.cu", ALL),
        ("kit/tuning.json", ALL),
        ("csrc/native.cpp", ALL),
        ("csrc/listed.cpp", ["Add", "Mul", "Sub"]),
        # declarations, prose, and what no op could run
        ("kit/manifest.yaml", []),
        ("kit/README.md", []),
        ("docs/picture.svg", []),
    ],
)
def test_a_file_belongs_to_the_ops_that_run_it(touched: str, ops: list[str]) -> None:
    assert run(touched) == ops


def test_a_module_that_lists_folders_may_load_any_file() -> None:
    lists = {**FILES, "kit/late.py": "sources = [path for path in HERE.iterdir()]\n"}
    assert run("kit/src/add.cu", files=lists) == ["Add", "Sub"]


def test_all_files_count_together() -> None:
    assert run("kit/src/add.cu", "kit/late.py") == ["Add", "Sub"]


def test_modules_that_import_each_other_or_do_not_parse_end_the_search() -> None:
    circle = {**FILES, "kit/late.py": "from kit.ops import sub\nimport kit.broken\n", "kit/broken.py": "def"}
    assert run("kit/broken.py", files=circle) == ["Sub"]


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ('"""Doc."""\nx = 1  # one\n', '"""Other."""\n\nx = 1\n', False),
        ("def f():\n    '''Doc.'''\n    return 1\n", "def f():\n    # none\n    return 1\n", False),
        ("x = 1\n", "x = 2\n", True),
        ("x = '''a'''\n", "x = '''b'''\n", True),
        ("if x:\n    y()\n    z()\n", "if x:\n    y()\nz()\n", True),
        ("f(\n    'a')\n", "f(\n    'b')\n", True),
        ("x = (\n", "x = [\n", True),
        (None, "x = 1\n", True),
        ("x = 1\n", None, True),
    ],
)
def test_comments_and_docstrings_are_no_code(before: str | None, after: str | None, changes: bool) -> None:
    assert changes_code(before, after) is changes

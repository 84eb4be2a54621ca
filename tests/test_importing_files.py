from __future__ import annotations

from pathlib import Path

import pytest

from opschema_cli.importing_files import _imported, importing_files
from opschema_cli.project import Project
from opschema_cli.source.modules import Modules
from opschema_cli.workspace import Workspace


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "import a.b as c, d\nfrom kit._C import f as g, h\n",
            [("a.b", ""), ("d", ""), ("kit._C", "f"), ("kit._C", "h")],
        ),
        ("if x:\n    from . import (\n        one,\n        two,\n    )\n", [(".", "one"), (".", "two")]),
        ("y = important\n# import a\nx = 'from a import b'\nreimport b\n", []),
        ("from a import *\n", [("a", "*")]),
    ],
)
def test_imported_names(text: str, expected: list[tuple[str, str]]) -> None:
    assert _imported(text.encode()) == expected


def test_files_that_may_use_a_module(tmp_path: Path) -> None:
    texts = {
        "kit/__init__.py": "from .wrap import fwd\n",
        "kit/wrap.py": "from kit._C import fwd\n",
        "kit/other.py": "from torch import _C\nfwd = 1\n",
        "kit/plain.py": "import kit.wrap\n",  # holds no name of the module
        "use.py": "from kit import fwd\nfwd(1)\n",
        "load.py": "ext = load_ext('_C')\n",
        "word.py": "x = 'see kit._C.fwd'\n",
    }
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    project = Project(Workspace(tmp_path))
    modules = Modules([*project.workspace.files, "kit/_C.py"])
    found = importing_files(project, modules, ["kit/_C.py"], {"_C"}, ["fwd"])
    assert sorted(found) == ["kit/__init__.py", "kit/wrap.py", "load.py", "use.py"]

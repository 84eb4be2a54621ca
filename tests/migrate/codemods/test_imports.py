from __future__ import annotations

import pytest

from opschema_cli.migrate.codemods.imports import drop_exports, drop_imports, unused_imports
from opschema_cli.migrate.codemods.rewrite import Rewrite
from opschema_cli.source.python_tree import PythonTree
from tests.migrate.codemods.rounds import refused, rewritten


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\nimport x\nimport sys\n", "import os\nimport sys\n"),
        ("import os, x, sys\n", "import os, sys\n"),
        ("import os.path as x\nimport os\n", "import os\n"),
        ("import x.y\nimport x.z as a\na()\n", "import x.z as a\na()\n"),
        ("import x.y\nfrom x import a\na()\n", "from x import a\na()\n"),
        ("import x.y\n\na = 1\n", "a = 1\n"),
        ("from a import x, b\n", "from a import b\n"),
        ("from a import b, x  # noqa: F401\n", "from a import b  # noqa: F401\n"),
        ("from a import b, c as x, d\n", "from a import b, d\n"),
        ("from a import b, \\\n    x\n", "from a import b\n"),
        ("from a import b, \\\n    x, \\\n    c\n", "from a import b, \\\n    c\n"),
        ("from a import (b, x)\n", "from a import (b)\n"),
        ("from a import (\n    b,\n    x,  # why\n    c,\n)\n", "from a import (\n    b,\n    c,\n)\n"),
        ("from a import (\n    # why\n    x,\n    c,\n)\n", "from a import (\n    c,\n)\n"),
        ("from a import (\n    b, x,\n    c\n)\n", "from a import (\n    b,\n    c\n)\n"),
        ("# own\nimport a\n# why\nfrom a import (\n    x,\n)\n\nb = 1\n", "# own\nimport a\n\nb = 1\n"),
        ("import x; import a\n", "import a\n"),
        ("import x\n\n\ndef f(x):\n    x = 1\n", None),
        ("import x\nx.y()\n", None),
        ("import x\na: 'x.Y' = 1\n", None),
        ("import x\na = cast('x', b)\n", None),
        ("import x\na = 'x'\nb = c.x\nd(x=1)\n", "a = 'x'\nb = c.x\nd(x=1)\n"),
        ("import x\na = []  # type: List[x]\n", None),
        ("import x\na = []  # type: ignore[x]\n", "a = []  # type: ignore[x]\n"),
        ("import x\n__all__ = ['x']\n", None),
        ("import x\n__all__ += ['x']\n", None),
        ("import x\n__all__.append('x')\n", None),
        ("if a:\n    import x\n", None),
        ("try:\n    import x\nexcept ImportError:\n    x = None\n", None),
        ("from a import *\n", None),
        ("from a import x as x\n", None),
        ("import a\n", None),
    ],
)
def test_imports(before: str, after: str | None) -> None:
    if after is None:
        assert refused(before, lambda rewrite: drop_imports(rewrite, ["x"]))
    else:
        assert rewritten(before, lambda rewrite: drop_imports(rewrite, ["x"])) == after


def test_names_one_after_the_other_come_to_the_same_as_together() -> None:
    def apart(rewrite: Rewrite) -> None:
        for name in ("c", "b"):
            drop_imports(rewrite, [name])

    text = "from m import a, b, c\nfrom n import (\n    d,\n)\n"
    assert rewritten(text, apart) == rewritten(text, lambda rewrite: drop_imports(rewrite, ["b", "c"]))
    assert rewritten(text, apart) == "from m import a\nfrom n import (\n    d,\n)\n"
    assert rewritten("from m import b, c\na = 1\n", apart) == "a = 1\n"


def test_unused_imports() -> None:
    rewrite = Rewrite(PythonTree.parse("import a\nimport b\nb()\n"))
    assert unused_imports(rewrite, ["a", "b", "c"]) == ["a"]
    rewrite.remove(rewrite.tree.statement(rewrite.tree.calls("b")[0]))
    assert unused_imports(rewrite, ["a", "b", "c"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('__all__ = ["a", "x"]\n', '__all__ = ["a"]\n'),
        ('__all__ = ("a", "x")\n', '__all__ = ("a",)\n'),
        ('__all__ = "a", "x"\n', '__all__ = "a",\n'),
        ('__all__ = ["x"]\n', "__all__ = []\n"),
        ('__all__ = ("x",)\n', "__all__ = ()\n"),
        ('__all__ = [\n    "a",\n    "x",\n    "b",\n]\n', '__all__ = [\n    "a",\n    "b",\n]\n'),
        ('__all__ = [\n    "x",\n]\n', "__all__ = []\n"),
        ('__all__: list[str] = ["a"]\n__all__ += ["x", "b"]\n', '__all__: list[str] = ["a"]\n__all__ += ["b"]\n'),
        ('__all__ = []\n__all__.append("x")\n__all__.extend(["x", "b"])\n', '__all__ = []\n__all__.extend(["b"])\n'),
        ('__all__ = ["a"]\nprint(len(__all__))\n', '__all__ = ["a"]\nprint(len(__all__))\n'),
        ('__all__ = ["a"] + other\n', None),
        ("__all__ = [n for n in names]\n", None),
        ('__all__ = ["a", name]\n', None),
    ],
)
def test_exports(before: str, after: str | None) -> None:
    if after is None:
        assert refused(before, lambda rewrite: drop_exports(rewrite, ["x"]))
    else:
        assert rewritten(before, lambda rewrite: drop_exports(rewrite, ["x"])) == after

"""Values that follow from code in several files are the same with and without the cache, whatever is edited."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from opschema_cli.cache import Cache
from opschema_cli.code_values import CodeValues, Group
from opschema_cli.evaluation.execution.executor import Executor
from opschema_cli.evaluation.execution.outcomes import Returned
from opschema_cli.evaluation.tree_evaluator import TreeEvaluator
from opschema_cli.project import Project
from opschema_cli.source.bodies import Bodies
from opschema_cli.source.program import Program
from opschema_cli.workspace import Workspace

NAMES = ("m0", "m1", "m2", "m3")

PARTS = (
    "X = {number}\n",
    "from pkg.{other} import X\n",
    "from pkg.{other} import *\n",
    "from pkg import {other}\nX = {other}.X\n",
    "import pkg\nX = pkg.{other}.X\n",
    "from pkg.{other} import Op as Base\n\n\nclass Op(Base):\n    size = {number}\n",
    "class Op:\n    size = {number}\n\n    def run(self):\n        return self.size + 1\n",
    "from pkg.{other} import Op\nOp.size = {number}\n",
    "from pkg.{other} import Op\nsetattr(Op, 'size', {number})\n",
    "def helper():\n    from pkg.{other} import X\n    return X\n",
    "from pkg.{other} import helper\n",
    "# a remark\n",
    "def (\n",
)
RESULT = """

def result():
    try:
        made = [X, helper()]
    except Exception:
        made = []
    return made, Op().run(), Op.size
"""


def _edits(seed: int) -> Iterator[tuple[str, str | None]]:
    """Paths with their new texts; None deletes a file."""
    drawn = random.Random(seed)
    while True:
        name = drawn.choice((*NAMES, *NAMES, "__init__", "late", "X"))
        parts = drawn.choices(PARTS[:-1], k=drawn.randrange(4)) + ([PARTS[-1]] if drawn.random() < 0.03 else [])
        number, other = drawn.randrange(3), drawn.choice(NAMES)
        text = "".join(parts).format(number=number, other=other) + (RESULT if name in NAMES else "")
        yield f"pkg/{name}.py", None if drawn.random() < 0.1 and name != "__init__" else text


def _outcomes(folder: Path, cache: Cache) -> tuple[dict[str, str], set[str]]:
    """The outcome of `result()` in each module, and the modules in which it was computed."""
    project = Project(Workspace(folder), cache, stamp="one")
    files = [path for path in project.workspace.files if path.endswith(".py")]
    program = Program(project.workspace.files, project.python, files)
    values = CodeValues(project, program, "results", str)
    found, computed = {}, set()
    for name in NAMES:
        path = f"pkg/{name}.py"
        if path in files:
            group = values.group(path)
            known = group.get("result")
            if known is None:
                computed.add(name)
                known = _computed(group, path)
                group.put("result", known)
            found[name] = known
    project.save_readings()
    return found, computed


def _computed(group: Group[str], path: str) -> str:
    program = group.program
    evaluator = TreeEvaluator(Bodies(program, program.package_files))
    file = program.load(path)
    function = file.functions.get("result") if file is not None else None
    if file is None or not function:
        return "nothing"
    body = evaluator.bodies.defined(file, function[-1])
    outcome = Executor(evaluator).call(body)
    return repr(outcome.value) if isinstance(outcome, Returned) else str(outcome)


def _write(folder: Path, **texts: str) -> None:
    (folder / "pkg").mkdir(parents=True, exist_ok=True)
    (folder / "pkg/__init__.py").touch()
    for name, text in texts.items():
        (folder / f"pkg/{name}.py").write_text(text)


def test_a_cached_value_is_what_would_be_computed(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    _write(folder, **dict.fromkeys(NAMES, "X = 0\n" + RESULT))
    cache = Cache(tmp_path / "cache.sqlite")
    taken = different = 0
    seen: dict[str, str] = {}
    for _, (path, text) in zip(range(250), _edits(20261123), strict=False):
        if text is None:
            (folder / path).unlink(missing_ok=True)
        else:
            (folder / path).write_text(text)
        found, computed = _outcomes(folder, cache)
        assert found == _outcomes(folder, Cache(None))[0]
        taken += len(found) - len(computed)
        different += found != seen
        seen = found
    assert taken > 150, "nothing is tested where nothing is taken from the cache"
    assert different > 50


def test_only_what_leads_to_a_change_is_computed_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    tree = tmp_path / "tree"
    result = "\n\ndef result():\n    return X\n"
    _write(tree, m0="X = 1" + result, m1="from pkg.m0 import X" + result, m2="X = 3" + result, m3="X = 4" + result)
    assert _outcomes(tree, cache)[1] == set(NAMES)
    assert _outcomes(tree, cache)[1] == set()
    _write(tree, m0="X = 5" + result)
    assert _outcomes(tree, cache) == ({"m0": "5", "m1": "5", "m2": "3", "m3": "4"}, {"m0", "m1"})


def test_a_file_that_does_not_parse_is_read_by_each_run(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    tree = tmp_path / "tree"
    _write(tree, m0="from pkg.m1 import X\n\n\ndef result():\n    return X\n", m1="def (\n")
    for _ in range(2):
        assert "m0" in _outcomes(tree, cache)[1], "else nobody reports that m1 does not parse"


def test_a_value_is_computed_again_when_a_part_of_another_file_changes(tmp_path: Path) -> None:
    cache, entries = Cache(tmp_path / "cache.sqlite"), {"a": "1", "b": "2"}
    _write(tmp_path / "tree", m0="X = 1\n")

    def known() -> str | None:
        project = Project(Workspace(tmp_path / "tree"), cache, stamp="one")
        program = Program(project.workspace.files, project.python, ["pkg/m0.py"])
        values = CodeValues(project, program, "results", str, lambda name: entries.get(name, ""))
        group = values.group("pkg/m0.py")
        found = group.get("result")
        if found is None:
            group.reads_value("a")
            group.put("result", entries["a"])
        project.save_readings()
        return found

    assert (known(), known()) == (None, "1")
    entries["b"] = "3"
    assert known() == "1", "it does not depend on `b`"
    entries["a"] = "4"
    assert (known(), known()) == (None, "4")
    del entries["a"]
    entries["a"] = "1"
    assert known() is None


def test_a_group_that_an_abandoned_run_has_put(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("X = 1\n")
    computed: list[str] = []

    def value(project: Project) -> str:
        program = Program(project.workspace.files, project.python, ["m.py"])
        group = CodeValues(project, program, "texts", str).group("m")
        found = group.get("text")
        if found is None:
            file = group.program.load("m.py")
            found = file.source.text if file is not None else ""
            computed.append(found)
            group.put("text", found)
        return found

    project = Project(Workspace(tmp_path), Cache(None), stamp="one")
    for text in ("X = 2\n", "X = 3\n"):  # nothing is stored in between
        project = project.updated({"m.py": text}, ["m.py"])
        assert value(project) == text
    assert value(project.updated({"m.py": "X = 3\n"}, [])) == "X = 3\n"
    assert computed == ["X = 2\n", "X = 3\n"]

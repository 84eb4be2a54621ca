"""Work between the imports of modules."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from opschema_cli.errors import OpschemaError
from opschema_cli.lint.between_imports import between_imports


def test_it_is_done_before_each_module_and_not_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outer_of_two.py").write_text("import inner_of_two\n")
    (tmp_path / "inner_of_two.py").write_text("")
    (tmp_path / "another_one.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    done: list[bool] = []
    try:
        with between_imports(lambda: done.append("inner_of_two" in sys.modules)):
            importlib.import_module("outer_of_two")
        importlib.import_module("another_one")
        assert done == [False, False]
    finally:
        for name in ("outer_of_two", "inner_of_two", "another_one"):
            sys.modules.pop(name, None)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two modules that can be imported."""
    names = ("first_of_two", "second_of_two")
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("modules")
def test_work_that_imports_is_not_done_before_its_own_imports() -> None:
    done: list[str] = []

    def act() -> None:
        done.append("begun")
        importlib.import_module("first_of_two")

    with between_imports(act):
        importlib.import_module("second_of_two")
    assert done == ["begun"]


@pytest.mark.usefixtures("modules")
def test_it_is_not_done_in_other_threads() -> None:
    done: list[int] = []
    with between_imports(lambda: done.append(threading.get_ident())):
        thread = threading.Thread(target=importlib.import_module, args=("first_of_two",))
        thread.start()
        thread.join()
        importlib.import_module("second_of_two")
    assert done == [threading.get_ident()]


@pytest.mark.usefixtures("modules")
def test_an_error_of_the_work_is_not_one_of_the_module() -> None:
    done: list[bool] = []

    def act() -> None:
        done.append(True)
        raise OpschemaError("no process")

    with pytest.raises(OpschemaError, match="no process"), between_imports(act):
        importlib.import_module("first_of_two")
    assert done == [True]
    assert "first_of_two" in sys.modules


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
def test_a_worker_that_takes_the_place_of_a_dead_one_starts(tmp_path: Path) -> None:
    """Forked between two imports, it imported the parser, and took answers before each module."""
    code = """\
        import os, signal, sys
        from opschema_cli.lint.between_imports import between_imports
        from opschema_cli.project import Project
        from opschema_cli.source.python_workers import Parsers
        from pathlib import Path
        from opschema_cli.workspace import Workspace

        parsers = Parsers(1)
        project = Project(Workspace(Path(sys.argv[1])), parsers=lambda: parsers)
        project.load_python(["a.py", "b.py"])
        worker = parsers._workers[0]
        worker.has_started()
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.join()
        with between_imports(project.feed):
            import wave
        project.settle()
        print(sum(file is not None for file in project._python.values()), len(project.problems))
        parsers.close()
    """
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"x = {name!r}\n" * 2000)
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (found.stdout, found.stderr) == ("1 1\n", "")

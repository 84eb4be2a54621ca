"""The C++ files that a description names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opschema_cli.errors import OpschemaError
from opschema_cli.gitignore import glob_spec
from opschema_cli.lint.diagnostic import Diagnostic, Related
from opschema_cli.lint.rule import rule
from opschema_cli.project import Project
from opschema_cli.suggestions import did_you_mean, near_names
from opschema_rules.pypto.model import Kernel, Part, Program
from opschema_rules.pypto.submodules import submodules


@rule("PTO115", "source-missing")
def source_missing(program: Program) -> Iterator[Diagnostic]:
    """A source that a description names but that does not exist.

    Orchestrations and kernels are compiled when a case runs, on a machine with the tool chain, so a path that is outdated
    after a move or rename is noticed only then. A path in `CALLABLE` of a class below `@scene_test` is relative to the file
    of the class; in `kernel_config.py` only one that is built from `__file__` is known, as any other depends on the folder
    that the program runs in.

    Nothing is reported for absolute or computed paths, paths outside the workspace or in a submodule, and paths that a
    `.gitignore` excludes, as they may be generated. Nothing is reported either if the description's own file writes files.

    Bad:

    ```python program/test_add.py
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {
            "orchestration": {
                "source": "orchestration/main.cpp",
                "function_name": "aicpu_orchestration_entry",
                "signature": [D.IN, D.IN, D.OUT],
            },
            "incores": [
                {
                    "func_id": 0,
                    "source": "kernels/aiv/addition.cpp",
                    "core_type": "aiv",
                    "signature": [D.IN, D.IN, D.OUT],
                },
            ],
        }
    ```

    Good:

    ```python program/test_add.py
    from simpler.task_interface import ArgDirection as D
    from simpler_setup import SceneTestCase, scene_test


    @scene_test(level=2, runtime="tensormap_and_ringbuffer")
    class TestAdd(SceneTestCase):
        CALLABLE = {
            "orchestration": {
                "source": "orchestration/main.cpp",
                "function_name": "aicpu_orchestration_entry",
                "signature": [D.IN, D.IN, D.OUT],
            },
            "incores": [
                {
                    "func_id": 0,
                    "source": "kernels/aiv/add.cpp",
                    "core_type": "aiv",
                    "signature": [D.IN, D.IN, D.OUT],
                },
            ],
        }
    ```
    """
    parts = [program.orchestration, *program.kernels]
    missing = [part for part in parts if part is not None and part.missing]
    if not missing or _WRITES.search(program.file.source.text):
        return
    for part in missing:
        if not _is_made(program.project, part.missing):
            yield _diagnostic(part)


_WRITES = re.compile(r"\bwrite_(?:text|bytes)\b|\.write\(")


def _diagnostic(part: Part) -> Diagnostic:
    whose = part.title if isinstance(part, Kernel) else "the orchestration"
    folder, _, name = part.missing.rpartition("/")
    files = part.program.project.workspace.files
    elsewhere = [path for path in files if path.rpartition("/")[2] == name]
    beside = {path.rpartition("/")[2]: path for path in files if path.rpartition("/")[0] == folder}
    close = [beside[item] for item in near_names(name, sorted(beside), 1, 0.7)]
    near = elsewhere if len(elsewhere) == 1 else close
    hint = did_you_mean(next(iter(near), None))
    message = f"there is no `{part.missing}`, the source of {whose}{hint}"
    return Diagnostic(message, part.at(part.fields["source"][1]), _users(part))


def _users(part: Part) -> tuple[Related, ...]:
    """Return other parts of the program that name the same file."""
    program = part.program
    parts = [program.orchestration, *program.kernels]
    same = [item for item in parts if item is not None and item is not part and item.missing == part.missing]
    return tuple(item.related(item.fields["source"][1], "named here too") for item in same[:1])


def _is_made(project: Project, path: str) -> bool:
    """Whether something creates a file: a build, as git ignores it, or a submodule."""
    if any(path.startswith(f"{module.path}/") for module in submodules(project)):
        return True
    folders = path.split("/")[:-1]
    above = ["/".join(folders[:depth]) for depth in range(len(folders) + 1)]
    return any(_is_ignored(project, folder, path) for folder in above)


def _is_ignored(project: Project, folder: str, path: str) -> bool:
    """Whether the patterns of one folder ignore a file; unreadable patterns may."""
    prefix = f"{folder}/" if folder else ""
    try:
        return glob_spec(_text(project, f"{prefix}.gitignore").splitlines()).ignores(path.removeprefix(prefix))
    except OpschemaError:
        return True


def _text(project: Project, path: str) -> str:
    return project.workspace.peek(path).decode("utf-8", "replace")
